//! Clients that send what they should not: their call ends with a status that says so, and nobody else notices.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, NullArray, RecordBatch, RunArray, StringArray};
use arrow::datatypes::Int32Type;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementUpdate, DoPutPreparedStatementResult,
    ProstMessageExt, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::TryStreamExt;
use prost::Message;
use querent_flight::config::{DurationSetting, Settings};
use querent_tests::{ServerProcess, TestServer, TestSettings};
use tonic::{Code, Status};

use super::{Raw, collect_put, put_messages, refused, statement, ticket_of};

/// How many damaged copies of each message are sent.
const COPIES: u64 = 60;

fn ingest(table: &str, existing: TableExistsOption) -> CommandStatementIngest {
    let options =
        TableDefinitionOptions { if_not_exist: TableNotExistOption::Create as i32, if_exists: existing as i32 };
    CommandStatementIngest {
        table: table.to_owned(),
        table_definition_options: Some(options),
        ..CommandStatementIngest::default()
    }
}

fn column(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap()
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// Returns the bytes with some of them changed, or the end cut off.
    fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        if self.below(3) == 0 {
            damaged.truncate(self.below(bytes.len()));
        }
        for _ in 0..=self.below(4) {
            let at = self.below(damaged.len());
            if let Some(byte) = damaged.get_mut(at) {
                *byte = [0, 1, 0x7f, 0x80, 0xff, self.below(256) as u8][self.below(6)];
            }
        }
        damaged
    }
}

/// The status of somebody who sent something wrong; whoever only sent something odd may have an answer.
#[track_caller]
fn is_told<T>(result: Result<T, Status>, what: &str) {
    if let Err(status) = result {
        let blames_the_server =
            matches!(status.code(), Code::Internal | Code::Unknown | Code::Unavailable | Code::DataLoss);
        assert!(!blames_the_server, "{what}: {status:?}");
    }
}

async fn answers(raw: &mut Raw) {
    assert_eq!(raw.number("select cast(7 as bigint)").await, 7, "the connection and the server go on");
}

#[tokio::test]
async fn damaged_requests_are_the_callers_fault() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let prepared = raw.prepare("select ?").await.unwrap().handle;
    let ticket = ticket_of(&raw.plan("select 1").await.unwrap()).ticket;
    let query = CommandPreparedStatementQuery { prepared_statement_handle: prepared };
    let tables = CommandGetTables { include_schema: true, ..CommandGetTables::default() };
    let commands =
        [statement("select 1 as a").as_any(), query.as_any(), tables.as_any()].map(|any| any.encode_to_vec());
    let prepare = ActionCreatePreparedStatementRequest { query: "select 1".to_owned(), transaction_id: None };
    let prepare = prepare.as_any().encode_to_vec();
    let mut numbers = Numbers(1);
    for _ in 0..COPIES {
        for command in &commands {
            let damaged = numbers.damage(command);
            let descriptor = FlightDescriptor::new_cmd(damaged.clone());
            is_told(raw.client.get_flight_info(raw.request(descriptor.clone())).await, "GetFlightInfo");
            is_told(raw.client.get_schema(raw.request(descriptor.clone())).await, "GetSchema");
            is_told(raw.client.poll_flight_info(raw.request(descriptor)).await, "PollFlightInfo");
            is_told(raw.fetch(Ticket::new(damaged)).await, "DoGet");
        }
        let damaged = raw.fetch(Ticket::new(numbers.damage(&ticket))).await;
        is_told(damaged, "DoGet");
        for action in [
            "CreatePreparedStatement",
            "ClosePreparedStatement",
            "CancelFlightInfo",
            "CancelQuery",
            "RenewFlightEndpoint",
            "SetSessionOptions",
            "GetSessionOptions",
        ] {
            let body = numbers.damage(&prepare);
            is_told(raw.act(action, body).await, action);
        }
    }
    // A body that is no message of gRPC's at all.
    let garbage = raw.client.do_action(raw.request(Action::new("CreatePreparedStatement", vec![0xff; 100]))).await;
    assert_eq!(refused(garbage), (Code::InvalidArgument, "bad_request".to_owned()));
    answers(&mut raw).await;
}

#[tokio::test]
async fn damaged_uploads_are_the_callers_fault() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let words: DictionaryArray<Int32Type> = ["a", "b", "a", "c"].into_iter().collect();
    let runs = RunArray::try_new(&Int32Array::from(vec![1, 4]), &Int64Array::from(vec![1, 2])).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("yyyyyyyyyyyyyyyyyy"), Some("")]));
    let views = arrow::compute::cast(&texts, &arrow::datatypes::DataType::Utf8View).unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("i", Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)])) as ArrayRef, true),
        ("s", texts, true),
        ("d", Arc::new(words), true),
        ("r", Arc::new(runs), true),
        ("v", views, true),
    ])
    .unwrap();
    let good = put_messages(&ingest("t", TableExistsOption::Replace), &[batch.clone(), batch]).await;
    let mut numbers = Numbers(2);
    for copy in 0..4 * COPIES {
        let mut messages = good.clone();
        let at = numbers.below(messages.len());
        let message = &mut messages[at];
        if numbers.below(3) == 0 {
            message.data_body = numbers.damage(&message.data_body).into();
        } else {
            message.data_header = numbers.damage(&message.data_header).into();
        }
        let put = raw.client.do_put(raw.request(futures::stream::iter(messages))).await;
        is_told(collect_put(put).await, &format!("copy {copy}, message {at}"));
    }
    let put = raw.client.do_put(raw.request(futures::stream::iter(good))).await;
    collect_put(put).await.expect("nothing is left behind that is in the way");
    assert_eq!(raw.number("select count(*) from t").await, 8);
}

#[tokio::test]
async fn rows_of_another_schema_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let command = ingest("t", TableExistsOption::Replace);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    let one = put_messages(&command, &[column(Arc::clone(&numbers))]).await;
    let two = RecordBatch::try_from_iter([("a", numbers), ("b", Arc::clone(&texts))]).unwrap();
    let two = put_messages(&command, &[two]).await;
    let text = put_messages(&command, &[column(texts)]).await;
    let bare = |message: &FlightData| FlightData { flight_descriptor: None, ..message.clone() };
    let with_descriptor =
        |message: &FlightData| FlightData { flight_descriptor: one[0].flight_descriptor.clone(), ..message.clone() };
    for (what, messages) in [
        ("rows before their schema", vec![with_descriptor(&one[1]), bare(&one[0])]),
        ("fewer columns than the schema has", vec![two[0].clone(), one[1].clone()]),
        ("text where numbers are announced", vec![one[0].clone(), text[1].clone()]),
        ("a second schema", vec![one[0].clone(), one[1].clone(), bare(&two[0])]),
        ("the descriptor again with a schema", vec![one[0].clone(), two[0].clone()]),
    ] {
        let put = raw.client.do_put(raw.request(futures::stream::iter(messages))).await;
        match what {
            // Three texts of eleven bytes are not three numbers of twenty-four, but might have been.
            "text where numbers are announced" => is_told(collect_put(put).await, what),
            _ => assert_eq!(refused(collect_put(put).await).0, Code::InvalidArgument, "{what}"),
        }
    }
    let prepared = raw.prepare("select ?").await.unwrap().handle;
    let bind = CommandPreparedStatementQuery { prepared_statement_handle: prepared };
    let mut messages = put_messages(&bind, &[column(Arc::new(Int64Array::from(vec![1])))]).await;
    messages.swap(0, 1);
    let descriptor = messages[1].flight_descriptor.take();
    messages[0].flight_descriptor = descriptor;
    let put = raw.client.do_put(raw.request(futures::stream::iter(messages))).await;
    assert_eq!(refused(collect_put(put).await).0, Code::InvalidArgument);
    answers(&mut raw).await;
}

/// Few bytes that say much: runs, dictionaries and nulls that would be terabytes.
#[tokio::test]
async fn few_bytes_that_say_much_cost_little() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header("x-querent-max-wall-clock-ms", "3000");
    let nulls: ArrayRef = Arc::new(NullArray::new(1 << 40));
    let ends = Int32Array::from(vec![i32::MAX]);
    let runs: ArrayRef = Arc::new(RunArray::try_new(&ends, &Int64Array::from(vec![7])).unwrap());
    let word = StringArray::from(vec!["x".repeat(16 << 20)]);
    let words: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 1 << 20]), Arc::new(word)));

    // As values of a parameter.
    let prepared = raw.prepare("select cast(? as varchar) as a").await.unwrap().handle;
    let bind = CommandPreparedStatementQuery { prepared_statement_handle: prepared };
    for values in [&nulls, &runs, &words] {
        let refusal = refused(raw.put(&bind, &[column(Arc::clone(values))]).await);
        assert_eq!(refusal.1, "body_too_large", "{}", values.data_type());
    }
    // As rows: what there is time for is written, and then nothing.
    raw.rows("create table t (a varchar)").await.unwrap();
    for values in [nulls, runs, words] {
        let what = values.data_type().to_string();
        let put = raw.put(&ingest("t", TableExistsOption::Append), &[column(values)]).await;
        let (_, code) = refused(put);
        assert!(["wall_clock_exceeded", "memory_exceeded"].contains(&code.as_str()), "{what}: {code}");
    }
    assert_eq!(raw.number("select count(*) from t").await, 0);
    let few: ArrayRef =
        Arc::new(RunArray::try_new(&Int32Array::from(vec![3, 5]), &Int64Array::from(vec![7, 8])).unwrap());
    assert_eq!(raw.updated(&ingest("t", TableExistsOption::Append), &[column(few)]).await.unwrap(), 5);
    assert_eq!(raw.number("select sum(cast(a as bigint)) from t").await, 3 * 7 + 2 * 8);
}

#[tokio::test]
async fn compressed_uploads_become_no_larger_than_others_may_be() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let command = ingest("t", TableExistsOption::Replace);
        let send = async |rows: usize| {
            let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
            let batch = column(Arc::new(Int64Array::from(vec![7; rows])));
            let encoder = FlightDataEncoderBuilder::new()
                .with_flight_descriptor(Some(super::descriptor(&command)))
                .with_options(options)
                .with_max_flight_data_size(usize::MAX);
            let messages: Vec<FlightData> =
                encoder.build(futures::stream::iter([Ok(batch)])).try_collect().await.unwrap();
            let put = raw.client.clone().do_put(raw.request(futures::stream::iter(messages))).await;
            collect_put(put).await
        };
        send(100_000).await.unwrap_or_else(|error| panic!("{compression:?}: {error}"));
        assert_eq!(refused(send(9 << 20).await).0, Code::InvalidArgument, "{compression:?}: 72 MiB");
        assert_eq!(raw.number("select sum(a) from t").await, 700_000, "{compression:?}");
    }
}

#[tokio::test]
async fn an_upload_that_stops_ends_and_leaves_nothing() {
    let settings = TestSettings::default().change(|settings: &mut Settings| {
        settings.flight.upload_idle_timeout = DurationSetting(Duration::from_millis(300));
        settings.query.max_concurrent = 1;
    });
    let server = TestServer::start(settings).await;
    let mut raw = Raw::connect(&server).await;
    let rows = column(Arc::new(Int64Array::from_iter_values(0..1_000)));
    let messages = put_messages(&ingest("t", TableExistsOption::Fail), &[rows]).await;
    for sent in 0..=messages.len() {
        let stops = futures::StreamExt::chain(
            futures::stream::iter(messages[..sent].to_vec()),
            futures::stream::pending::<FlightData>(),
        );
        let put = raw.client.do_put(raw.request(stops)).await;
        assert_eq!(refused(collect_put(put).await).0, Code::DeadlineExceeded, "after {sent} messages");
    }
    assert_eq!(refused(raw.rows("select * from t").await).1, "table_not_found");
    answers(&mut raw).await;
}

#[tokio::test]
async fn a_handle_of_another_kind_is_no_ticket() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let handle = raw.prepare("select cast(7 as bigint)").await.unwrap().handle;
    let info = raw.plan("select 1").await.unwrap();
    let any = arrow_flight::sql::Any::decode(ticket_of(&info).ticket).unwrap();
    let ticket: arrow_flight::sql::TicketStatementQuery = any.unpack().unwrap().unwrap();
    // Both are signed by the same key; one is not the other.
    let as_ticket = arrow_flight::sql::TicketStatementQuery { statement_handle: handle };
    let fetched = raw.fetch(Ticket::new(as_ticket.as_any().encode_to_vec())).await;
    assert_eq!(refused(fetched).1, "invalid_ticket");
    let as_handle = CommandPreparedStatementUpdate { prepared_statement_handle: ticket.statement_handle };
    assert_eq!(refused(raw.put(&as_handle, &[]).await).1, "invalid_ticket");
    answers(&mut raw).await;
}

/// The memory that ten thousand prepared statements may take which nobody closes, a tenth of them with values.
const MAX_GROWTH_BYTES: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_open_handles_cost_nothing() {
    let server = ServerProcess::start(&[("QUERENT_LOG", "warn")]);
    let mut raw = Raw::at(&server.url).await;
    let first = raw.prepare("select ? + 1 as a").await.unwrap().handle;
    raw.rows("create table t (a bigint)").await.unwrap();
    let before = server.resident_bytes();
    let values = column(Arc::new(Int64Array::from(vec![41])));
    for number in 0..10_000 {
        let handle = raw.prepare(&format!("select ? + {number} as a")).await.unwrap().handle;
        if number % 10 == 0 {
            let bind = CommandPreparedStatementQuery { prepared_statement_handle: handle };
            raw.put(&bind, std::slice::from_ref(&values)).await.unwrap();
        }
    }
    let growth = server.resident_bytes().saturating_sub(before);
    assert!(growth < MAX_GROWTH_BYTES, "{} MiB for open handles", growth >> 20);
    let bind = CommandPreparedStatementQuery { prepared_statement_handle: first };
    let answers = raw.put(&bind, &[values]).await.unwrap();
    let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
    let bound = CommandPreparedStatementQuery { prepared_statement_handle: bound.prepared_statement_handle.unwrap() };
    let info = raw.info(&bound).await.unwrap();
    assert_eq!(raw.fetch(ticket_of(&info)).await.unwrap().len(), 2, "the first one is as good as ever");
    let update = CommandStatementUpdate { query: "insert into t values (1)".to_owned(), transaction_id: None };
    assert_eq!(raw.updated(&update, &[]).await.unwrap(), 1);
}

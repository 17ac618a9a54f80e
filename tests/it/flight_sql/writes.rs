//! DoPut: statements executed for their effect, and ingest. What was sent is written, or an error says why not.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Date32Array, Decimal32Array, Decimal128Array, DictionaryArray, FixedSizeListArray, Float64Array,
    Int32Array, Int64Array, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, Time32SecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type};
use arrow_flight::sql::{
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementUpdate, TableDefinitionOptions,
    TableExistsOption, TableNotExistOption,
};
use arrow_flight::{FlightData, FlightDescriptor};
use futures::StreamExt;
use prost::Message;
use querent_flight::config::DurationSetting;
use querent_tests::{TestServer, TestSettings, wait_until};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::Code;

use super::{Raw, decode, descriptor, refused, schema_of, ticket_of};

fn update(sql: &str) -> CommandStatementUpdate {
    CommandStatementUpdate { query: sql.to_owned(), transaction_id: None }
}

fn ingest(table: &str, missing: TableNotExistOption, existing: TableExistsOption) -> CommandStatementIngest {
    let options = TableDefinitionOptions { if_not_exist: missing as i32, if_exists: existing as i32 };
    CommandStatementIngest {
        table: table.to_owned(),
        table_definition_options: Some(options),
        ..CommandStatementIngest::default()
    }
}

const CREATE: (TableNotExistOption, TableExistsOption) = (TableNotExistOption::Create, TableExistsOption::Fail);
const APPEND: (TableNotExistOption, TableExistsOption) = (TableNotExistOption::Fail, TableExistsOption::Append);
const REPLACE: (TableNotExistOption, TableExistsOption) = (TableNotExistOption::Create, TableExistsOption::Replace);
const OVERWRITE: (TableNotExistOption, TableExistsOption) = (TableNotExistOption::Fail, TableExistsOption::Replace);
const CREATE_APPEND: (TableNotExistOption, TableExistsOption) =
    (TableNotExistOption::Create, TableExistsOption::Append);

fn into((missing, existing): (TableNotExistOption, TableExistsOption), table: &str) -> CommandStatementIngest {
    ingest(table, missing, existing)
}

fn rows(from: i64, to: i64) -> RecordBatch {
    let i: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    let s: ArrayRef = Arc::new(StringArray::from_iter((from..to).map(|row| (row % 3 > 0).then(|| row.to_string()))));
    RecordBatch::try_from_iter_with_nullable([("i", i, true), ("s", s, true)]).unwrap()
}

fn has_parquet(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => has_parquet(&path),
        false => path.extension().is_some_and(|extension| extension == "parquet"),
    })
}

#[tokio::test]
async fn updates_say_how_many_rows_they_wrote() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    assert_eq!(raw.updated(&update("create table t (a int)"), &[]).await.unwrap(), 0);
    assert_eq!(raw.updated(&update("insert into t values (1), (2), (3)"), &[]).await.unwrap(), 3);
    assert_eq!(raw.updated(&update("select a from t"), &[]).await.unwrap(), -1, "a query writes nothing");
    // The rows that it answers with are its number, whatever is in them.
    for (sql, count) in [
        ("insert into t values (4) returning cast(1000 as bigint unsigned)", 1),
        ("update t set a = a + 0 returning a", 4),
        ("delete from t where a > 3 returning a", 1),
    ] {
        assert_eq!(raw.updated(&update(sql), &[]).await.unwrap(), count, "{sql}");
    }
    assert_eq!(raw.number("select count(*) from t").await, 3);
    for (sql, code) in [("insert into u values (1)", "table_not_found"), ("inser", "sql_parse_error")] {
        assert_eq!(refused(raw.updated(&update(sql), &[]).await).1, code, "{sql}");
    }
    let mut in_transaction = update("insert into t values (1)");
    in_transaction.transaction_id = Some("t1".into());
    assert_eq!(refused(raw.updated(&in_transaction, &[]).await).1, "unsupported");
}

/// ADBC's driver opens DoGet in the background and cancels it when the cursor is closed without a fetch.
#[tokio::test]
async fn a_change_that_was_begun_is_carried_out_though_nobody_reads_its_answer() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint)").await.unwrap();
    let info = raw.plan("insert into t select value from generate_series(1, 4000000)").await.unwrap();
    let request = raw.request(ticket_of(&info));
    let mut client = raw.client.clone();
    let fetching = tokio::spawn(async move { client.do_get(request).await.map(drop) });
    wait_until("rows are being written", async || has_parquet(server.data())).await;
    fetching.abort();
    wait_until("all rows are there", async || {
        Raw::connect(&server).await.number("select count(*) from t").await == 4_000_000
    })
    .await;
}

/// ADBC's driver opens DoGet in the background where it knows the columns, and closes a cursor before it is even sent.
/// Without them it waits for the rows, so the change is made by then.
#[tokio::test]
async fn adbc_is_told_no_columns_of_a_change() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint)").await.unwrap();
    let change = "insert into t values (1) returning a + 1 as b";
    assert_eq!(schema_of(&raw.plan(change).await.unwrap()).field(0).name(), "b");
    let mut adbc = raw.clone().header("user-agent", "ADBC Flight SQL Driver v1.9.0 grpc-go/1.84.0");
    let info = adbc.plan(change).await.unwrap();
    assert!(info.schema.is_empty());
    let messages = adbc.fetch(ticket_of(&info)).await.unwrap();
    assert_eq!(decode(messages).await.0.field(0).name(), "b");
    assert!(!adbc.plan("select a from t").await.unwrap().schema.is_empty(), "a query may be fetched in the background");
    assert_eq!(raw.number("select count(*) from t").await, 1);
}

/// A call is complete with its message: a client that cancels it in the same breath has asked for the change.
#[tokio::test]
async fn a_change_that_was_asked_for_is_carried_out_though_its_client_is_gone_already() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint)").await.unwrap();
    let ticket = ticket_of(&raw.plan("insert into t values (1) returning a").await.unwrap()).encode_to_vec();
    let address = server.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(&call_and_reset("/arrow.flight.protocol.FlightService/DoGet", &ticket)).await.unwrap();
    wait_until("the row is there", async || raw.number("select count(*) from t").await == 1).await;
}

/// Returns the bytes of an HTTP/2 connection that makes one call and resets it at once (RFC 9113, RFC 7541).
fn call_and_reset(path: &str, message: &[u8]) -> Vec<u8> {
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    // Literals that are not indexed.
    let block = headers.iter().flat_map(|(name, value)| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    });
    let body = [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat();
    let (end_headers, end_stream, cancel) = (0x4, 0x1, 8_u32.to_be_bytes());
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, end_headers, 1, &block.collect::<Vec<u8>>()),
        frame(0, end_stream, 1, &body),
        frame(3, 0, 1, &cancel),
    ]
    .concat()
}

#[tokio::test]
async fn columns_that_no_rows_have_get_their_defaults() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let table = "create table t (i bigint, s varchar default 'none', k decimal(5, 2) default 7.25, \
                 added timestamp default now(), id varchar default uuid(), nothing int)";
    raw.rows(table).await.unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let numbers = RecordBatch::try_from_iter([("i", numbers)]).unwrap();
    assert_eq!(raw.updated(&into(APPEND, "t"), &[numbers]).await.unwrap(), 5);
    assert_eq!(raw.number("select count(*) from t where s = 'none' and k = 7.25 and nothing is null").await, 5);
    assert_eq!(raw.number("select count(*) from t where abs(epoch(added) - epoch(now()::timestamp)) < 3600").await, 5);
    assert_eq!(raw.number("select count(distinct id) from t").await, 5);
    assert_eq!(raw.updated(&into(APPEND, "t"), &[rows(0, 3)]).await.unwrap(), 3);
    assert_eq!(raw.number("select count(*) from t where s is null").await, 1, "a null that is sent is a null");
}

#[tokio::test]
async fn ingest_makes_appends_and_replaces() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    assert_eq!(refused(raw.updated(&into(APPEND, "t"), &[rows(0, 5)]).await).0, Code::NotFound);
    assert_eq!(refused(raw.updated(&into(OVERWRITE, "t"), &[rows(0, 5)]).await).0, Code::NotFound);
    assert_eq!(raw.updated(&into(CREATE, "t"), &[rows(0, 5), rows(5, 10)]).await.unwrap(), 10);
    let again = refused(raw.updated(&into(CREATE, "t"), &[rows(0, 5)]).await);
    assert_eq!(again, (Code::AlreadyExists, "already_exists".to_owned()));
    assert_eq!(raw.updated(&into(APPEND, "T"), &[rows(10, 15)]).await.unwrap(), 5);
    assert_eq!(raw.updated(&into(CREATE_APPEND, "t"), &[rows(15, 20)]).await.unwrap(), 5);
    assert_eq!(raw.number("select sum(i) from t where s is not null or i % 3 = 0").await, (0..20).sum::<i64>());
    assert_eq!(raw.updated(&into(REPLACE, "t"), &[rows(0, 2)]).await.unwrap(), 2);
    assert_eq!(raw.number("select count(*) from t").await, 2);
    assert_eq!(raw.updated(&into(OVERWRITE, "t"), &[]).await.unwrap_or(0), 0, "the schema alone empties it");

    raw.rows("create schema other").await.unwrap();
    let elsewhere = CommandStatementIngest {
        schema: Some("other".to_owned()),
        catalog: Some("QUERENT".to_owned()),
        ..into(CREATE_APPEND, "t")
    };
    assert_eq!(raw.updated(&elsewhere, &[rows(0, 3)]).await.unwrap(), 3);
    assert_eq!(raw.number("select count(*) from other.t").await, 3);
    let nowhere = CommandStatementIngest { catalog: Some("nowhere".to_owned()), ..elsewhere };
    let refusal = refused(raw.updated(&nowhere, &[rows(0, 3)]).await);
    assert_eq!(refusal, (Code::NotFound, "database_not_found".to_owned()));
}

#[tokio::test]
async fn columns_are_matched_by_name() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (s varchar, n int, d double)").await.unwrap();
    let s: ArrayRef = Arc::new(StringViewArray::from(vec!["a string that is longer than twelve bytes", "b"]));
    let n: ArrayRef = Arc::new(vec!["7", "8"].into_iter().collect::<DictionaryArray<Int32Type>>());
    let batch = RecordBatch::try_from_iter([("N", n), ("S", Arc::clone(&s))]).unwrap();
    assert_eq!(raw.updated(&into(APPEND, "t"), &[batch]).await.unwrap(), 2);
    assert_eq!(raw.number("select sum(n) from t where d is null and length(s) in (41, 1)").await, 15);

    let unknown = RecordBatch::try_from_iter([("nn", Arc::clone(&s))]).unwrap();
    let (_, code) = refused(raw.updated(&into(APPEND, "t"), std::slice::from_ref(&unknown)).await);
    assert_eq!(code, "column_not_found");
    let other = RecordBatch::try_from_iter([("elsewhere", Arc::clone(&s))]).unwrap();
    let refusal = raw.updated(&into(APPEND, "t"), &[other]).await.unwrap_err();
    assert!(refusal.message().contains("unknown column `elsewhere`; the columns are s, n, d"), "{refusal}");
    let (grpc, _) = refused(raw.updated(&into(CREATE_APPEND, "t"), &[unknown]).await);
    assert_eq!(grpc, Code::AlreadyExists, "ADBC's code for a table that is there with other columns");
    let twice = RecordBatch::try_from_iter([("s", Arc::clone(&s)), ("s", Arc::clone(&s))]).unwrap();
    for mode in [APPEND, REPLACE] {
        let error = raw.updated(&into(mode, "t"), std::slice::from_ref(&twice)).await.unwrap_err();
        assert!(error.message().contains("the rows have more than one column `s`"), "{error}");
    }
    let words = RecordBatch::try_from_iter([("n", s)]).unwrap();
    assert!(raw.updated(&into(APPEND, "t"), &[words]).await.is_err(), "words are not numbers");
    assert_eq!(raw.number("select count(*) from t").await, 2, "a failed ingest leaves nothing");
}

#[tokio::test]
async fn values_that_are_sent_are_converted_as_by_casts() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table c (i bigint, t timestamp, l int[], m timestamp)").await.unwrap();
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.6, 2.5]));
    let seconds: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
    let lists = [1.6, 2.6].map(|item| Some([Some(item)]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
    let minutes: ArrayRef = Arc::new(StringArray::from(vec!["2024-01-01 09:30", "2024-01-01 09:31:10"]));
    let sent = RecordBatch::try_from_iter([("i", doubles), ("t", seconds), ("l", lists), ("m", minutes)]).unwrap();
    assert_eq!(raw.updated(&into(APPEND, "c"), &[sent]).await.unwrap(), 2);
    for row in [
        "i = 2 and t = '1970-01-01 00:00:05' and l[1] = 2 and m = '2024-01-01 09:30'",
        "i = 2 and t = '1970-01-01 00:00:06' and l[1] = 3 and m = '2024-01-01 09:31:10'",
    ] {
        assert_eq!(raw.number(&format!("select count(*) from c where {row}")).await, 1, "{row}");
    }
    raw.rows("create table h (at time)").await.unwrap();
    let number = RecordBatch::try_from_iter([("at", Arc::new(Int64Array::from(vec![5])) as ArrayRef)]).unwrap();
    assert!(raw.updated(&into(APPEND, "h"), &[number]).await.is_err(), "a number is no time of the day");
}

/// Whether they are sent or bound: a date would be a number of days, and a number a list of one.
#[tokio::test]
async fn values_that_no_cast_makes_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table w (t varchar, n bigint, d date, l int[])").await.unwrap();
    let instants: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_577_934_245_000_000]));
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![18_262]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let large: ArrayRef = Arc::new(Float64Array::from(vec![1e20]));
    let lists: ArrayRef = Arc::new(StringArray::from(vec!["[1, 2]"]));
    for (column, values, expected) in [
        ("t", &instants, Some("t = '2020-01-02 03:04:05'")),
        ("t", &large, Some("t = '1e+20'")),
        ("l", &lists, Some("l[2] = 2")),
        ("n", &dates, None),
        ("n", &instants, None),
        ("d", &numbers, None),
        ("l", &numbers, None),
    ] {
        let sent = RecordBatch::try_from_iter([(column, Arc::clone(values))]).unwrap();
        let insert = raw.prepare(&format!("insert into w ({column}) values (?)")).await.unwrap().handle;
        let insert = CommandPreparedStatementUpdate { prepared_statement_handle: insert };
        let ingested = raw.updated(&into(APPEND, "w"), std::slice::from_ref(&sent)).await;
        for written in [ingested, raw.updated(&insert, &[sent]).await] {
            match (written, expected) {
                (Ok(rows), Some(_)) => assert_eq!(rows, 1),
                (Err(error), None) => assert!(error.message().contains("is not cast to"), "{column}: {error}"),
                (written, _) => panic!("{column}: {written:?}"),
            }
        }
        if let Some(expected) = expected {
            assert_eq!(raw.number(&format!("select count(*) from w where {expected}")).await, 2, "{expected}");
        }
    }
    assert_eq!(raw.number("select count(*) from w").await, 6);
}

/// Data frames have columns of which no value says a type.
#[tokio::test]
async fn a_column_of_nulls_alone_becomes_text() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (n varchar, i int, l int[])").await.unwrap();
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let lists: ArrayRef = Arc::new(ListArray::new_null(Arc::new(Field::new("item", DataType::Null, true)), 2));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", nulls, true), ("l", lists, true)]).unwrap();
    for (temporary, table) in [(false, "made"), (true, "session_made")] {
        let command = CommandStatementIngest { temporary, ..into(REPLACE, table) };
        assert_eq!(raw.updated(&command, std::slice::from_ref(&batch)).await.unwrap(), 2);
        let (schema, _) = raw.rows(&format!("select n, l from {table}")).await.unwrap();
        assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
        let DataType::List(item) = schema.field(1).data_type() else { panic!("{schema}") };
        assert_eq!(item.data_type(), &DataType::Utf8);
    }
    // Where there is a table, they are nulls of its types.
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let columns = ["n", "i", "l"].map(|name| (name, Arc::clone(&nulls), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    assert_eq!(raw.updated(&into(APPEND, "t"), &[batch]).await.unwrap(), 2);
    assert_eq!(raw.number("select count(*) from t where n is null and i is null and l is null").await, 2);
}

#[tokio::test]
async fn rows_do_not_go_to_a_view() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create view v as select 1 as i, 'x' as s").await.unwrap();
    let refusal = raw.updated(&into(APPEND, "v"), &[rows(0, 1)]).await.expect_err("a view");
    assert!(refusal.message().contains("is a view"), "{refusal:?}");
    assert_eq!(refused::<()>(Err(refusal)).1, "not_allowed");
}

#[tokio::test]
async fn an_ingest_that_breaks_off_leaves_nothing() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let mut messages = super::put_messages(&into(CREATE, "t"), &[rows(0, 1_000), rows(1_000, 2_000)]).await;
    if let Some(last) = messages.last_mut() {
        last.data_body = last.data_body.slice(..64);
    }
    let broken = raw.client.do_put(raw.request(futures::stream::iter(messages))).await;
    assert!(super::collect_put(broken).await.is_err());
    assert_eq!(refused(raw.rows("select * from t").await).1, "table_not_found");

    let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let other = RecordBatch::try_from_iter([("x", other)]).unwrap();
    let mut mixed = super::put_messages(&into(CREATE, "t"), &[rows(0, 10)]).await;
    let second = super::put_messages(&into(CREATE, "t"), &[other]).await;
    mixed.extend(second.into_iter().map(|message| FlightData { flight_descriptor: None, ..message }));
    let mixed = raw.client.do_put(raw.request(futures::stream::iter(mixed))).await;
    assert!(super::collect_put(mixed).await.is_err(), "a second schema");
    assert_eq!(refused(raw.rows("select * from t").await).1, "table_not_found");
}

/// They mean nothing here, and are no end of the rows.
#[tokio::test]
async fn messages_of_metadata_alone_are_passed_over() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let mut messages = super::put_messages(&into(CREATE, "t"), &[rows(0, 10), rows(10, 20)]).await;
    let alone = FlightData { app_metadata: "half of them".into(), ..FlightData::default() };
    messages.insert(1, alone.clone());
    messages.insert(3, alone.clone());
    messages.push(alone);
    let put = raw.client.do_put(raw.request(futures::stream::iter(messages))).await;
    super::collect_put(put).await.expect("all rows are written");
    assert_eq!(raw.number("select count(*) from t").await, 20);
}

/// A client that cancels resets its stream, which must not look like the end of its rows.
#[tokio::test]
async fn an_ingest_that_is_cancelled_leaves_nothing() {
    let server = TestServer::start(TestSettings::default()).await;
    for temporary in [false, true] {
        let mut raw = Raw::connect(&server).await;
        let command = CommandStatementIngest { temporary, ..into(CREATE, "t") };
        let messages = super::put_messages(&command, &[rows(0, 50_000), rows(50_000, 100_000)]).await;
        let (sent, all_sent) = tokio::sync::oneshot::channel::<()>();
        let mut sent = Some(sent);
        let endless = futures::stream::iter(messages.into_iter().map(Some))
            .chain(futures::stream::once(async { None }))
            .filter_map(move |message| {
                if message.is_none() {
                    // Whoever waits for this is still there.
                    sent.take().map(|sent| sent.send(()));
                }
                std::future::ready(message)
            })
            .chain(futures::stream::pending());
        let request = raw.request(endless);
        let mut client = raw.client.clone();
        let putting = tokio::spawn(async move { client.do_put(request).await.map(drop) });
        all_sent.await.unwrap();
        putting.abort();
        assert!(putting.await.is_err());
        querent_tests::wait_until_memory_is_free(server.engine()).await;
        assert_eq!(refused(raw.rows("select * from t").await).1, "table_not_found", "temporary: {temporary}");
    }
}

/// An upload that takes longer than a query may, since its client is slow, and beside it a place for others.
#[tokio::test]
async fn an_upload_waits_for_its_sender_without_a_clock_and_without_a_place() {
    let settings = TestSettings::default().change(|settings| {
        settings.query.timeout = DurationSetting(Duration::from_secs(2));
        settings.query.max_concurrent = 1;
    });
    let server = TestServer::start(settings).await;
    let mut raw = Raw::connect(&server).await;
    let batches: Vec<_> = (0..6).map(|batch| rows(batch * 10, batch * 10 + 10)).collect();
    let messages = super::put_messages(&into(CREATE, "t"), &batches).await;
    let slow = futures::stream::unfold(messages.into_iter(), |mut rest| async move {
        // The seven of them take longer than the two seconds that a query has.
        tokio::time::sleep(Duration::from_millis(500)).await;
        rest.next().map(|message| (message, rest))
    });
    let request = raw.request(slow.boxed());
    let mut client = raw.client.clone();
    let mut putting = std::pin::pin!(async move { super::collect_put(client.do_put(request).await).await });
    let mut served = 0;
    loop {
        tokio::select! {
            put = &mut putting => {
                put.expect("all rows are written");
                break;
            }
            one = raw.number("select cast(1 as bigint)") => served += one,
        };
        // A client that asks now and then, not one that keeps the place for itself.
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(served > 5, "{served} queries beside the upload, which has the only place while it works");
    assert_eq!(raw.number("select count(*) from t").await, 60);
}

/// Many processes that write a table as it comes, of which one has to make it.
#[tokio::test(flavor = "multi_thread")]
async fn ingests_that_make_the_same_table_take_turns() {
    let server = TestServer::start(TestSettings::default()).await;
    for (mode, expected) in [(CREATE_APPEND, 160), (REPLACE, 10)] {
        let mut putting = tokio::task::JoinSet::new();
        for writer in 0..16 {
            let mut raw = Raw::connect(&server).await;
            putting.spawn(async move { raw.updated(&into(mode, "t"), &[rows(writer, writer + 10)]).await });
        }
        while let Some(put) = putting.join_next().await {
            assert_eq!(put.unwrap().expect("each has its turn"), 10);
        }
        assert_eq!(Raw::connect(&server).await.number("select count(*) from t").await, expected);
    }
}

#[tokio::test]
async fn what_an_ingest_cannot_do_is_refused() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,writer-tok:write")).await;
    let mut raw = Raw::connect(&server).await.token("writer-tok");
    let unspecified = ingest("t", TableNotExistOption::Unspecified, TableExistsOption::Fail);
    let neither = ingest("t", TableNotExistOption::Fail, TableExistsOption::Fail);
    let no_table = into(CREATE, "");
    let elsewhere = CommandStatementIngest { catalog: Some("hive".to_owned()), ..into(CREATE, "t") };
    let both = CommandStatementIngest { temporary: true, schema: Some("default".to_owned()), ..into(CREATE, "t") };
    assert_eq!(refused(raw.updated(&elsewhere, &[rows(0, 1)]).await).1, "database_not_found");
    for command in [unspecified, neither, no_table, both] {
        assert_eq!(refused(raw.updated(&command, &[rows(0, 1)]).await).1, "bad_request", "{command:?}");
    }
    let mut with_option = into(CREATE, "t");
    with_option.options.insert("fast".to_owned(), "yes".to_owned());
    assert_eq!(refused(raw.updated(&with_option, &[rows(0, 1)]).await).1, "unsupported");
    let transaction = CommandStatementIngest { transaction_id: Some("t1".into()), ..into(CREATE, "t") };
    assert_eq!(refused(raw.updated(&transaction, &[rows(0, 1)]).await).1, "unsupported");
    for own in ["system", "information_schema", "SYSTEM"] {
        let theirs = CommandStatementIngest { schema: Some(own.to_owned()), ..into(APPEND, "tables") };
        let refusal = raw.updated(&theirs, &[rows(0, 1)]).await.expect_err(own);
        assert!(refusal.message().contains("which Querent keeps itself"), "{refusal:?}");
        assert_eq!(refused::<()>(Err(refusal)).1, "not_allowed");
    }
    let missing = CommandStatementIngest { schema: Some("nowhere".to_owned()), ..into(CREATE, "t") };
    assert_eq!(refused(raw.updated(&missing, &[rows(0, 1)]).await).1, "database_not_found");

    let mut reader = Raw::connect(&server).await.token("reader-tok");
    assert_eq!(refused(reader.updated(&into(CREATE, "t"), &[rows(0, 1)]).await).1, "not_allowed");
    for first in [
        FlightData::default(),
        FlightData {
            flight_descriptor: Some(FlightDescriptor::new_path(vec!["t".to_owned()])),
            ..FlightData::default()
        },
        FlightData { flight_descriptor: Some(FlightDescriptor::new_cmd("garbage")), ..FlightData::default() },
        FlightData { flight_descriptor: Some(descriptor(&into(CREATE, "t"))), ..FlightData::default() },
    ] {
        let put = raw.client.do_put(raw.request(futures::stream::iter([first]))).await;
        assert!(super::collect_put(put).await.is_err());
    }
}

#[tokio::test]
async fn times_that_no_day_has_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let times = |seconds: i32| {
        let column: ArrayRef = Arc::new(Time32SecondArray::from(vec![None, Some(seconds)]));
        RecordBatch::try_from_iter_with_nullable([("moment", column, true)]).unwrap()
    };
    for seconds in [-1, 86_400, 90_000] {
        let error = refused(raw.updated(&into(CREATE, "times"), &[times(seconds)]).await);
        assert_eq!(error.1, "invalid_value", "{seconds}");
    }
    assert_eq!(raw.updated(&into(CREATE, "times"), &[times(86_399)]).await.unwrap(), 2);
    assert_eq!(raw.number("select count(*) from times where moment = time '23:59:59'").await, 1);
}

/// What Arrow can say and SQL cannot would be another value in the file.
#[tokio::test]
async fn decimals_beyond_their_digits_and_vectors_of_nothing_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table d (v decimal(5, 2))").await.unwrap();
    let decimals = |value: i128| {
        let column = Decimal128Array::from(vec![Some(1), Some(value)]).with_precision_and_scale(5, 2).unwrap();
        RecordBatch::try_from_iter([("v", Arc::new(column) as ArrayRef)]).unwrap()
    };
    let insert = raw.prepare("insert into d values (?)").await.unwrap().handle;
    let insert = CommandPreparedStatementUpdate { prepared_statement_handle: insert };
    for beyond in [100_000, -10_i128.pow(30)] {
        let sent = decimals(beyond);
        assert_eq!(refused(raw.updated(&into(APPEND, "d"), std::slice::from_ref(&sent)).await).1, "invalid_value");
        assert_eq!(refused(raw.updated(&insert, &[sent]).await).1, "invalid_value");
    }
    assert_eq!(raw.number("select count(*) from d").await, 0);
    assert_eq!(raw.updated(&insert, &[decimals(99_999)]).await.unwrap(), 2);

    let nothing: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let vectors = FixedSizeListArray::try_new(item, 0, nothing, Some(NullBuffer::new_valid(2))).unwrap();
    let sent = RecordBatch::try_from_iter_with_nullable([("v", Arc::new(vectors) as ArrayRef, true)]).unwrap();
    assert_eq!(refused(raw.updated(&into(CREATE, "vectors"), &[sent]).await).1, "unsupported_type");
    assert_eq!(refused(raw.rows("select * from vectors").await).1, "table_not_found");
}

/// Of a few narrow ones the sum would wrap around.
#[tokio::test]
async fn decimals_are_wide_in_tables_of_a_session() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let narrow = Decimal32Array::from(vec![999_999_999; 5]).with_precision_and_scale(9, 0).unwrap();
    let sent = RecordBatch::try_from_iter([("d", Arc::new(narrow) as ArrayRef)]).unwrap();
    let command = CommandStatementIngest { temporary: true, ..into(CREATE, "narrow") };
    assert_eq!(raw.updated(&command, &[sent]).await.unwrap(), 5);
    assert_eq!(raw.number("select cast(sum(d) as bigint) from narrow").await, 4_999_999_995);
}

/// By the values of a prepared statement as by an ingest, and encoded in whatever way.
#[tokio::test]
async fn times_that_no_day_has_are_refused_wherever_they_are() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table times (moment time)").await.unwrap();
    let late: ArrayRef = Arc::new(Time32SecondArray::from(vec![86_400]));
    let words: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0]), Arc::clone(&late)));
    let insert = raw.prepare("insert into times values (?)").await.unwrap().handle;
    let insert = CommandPreparedStatementUpdate { prepared_statement_handle: insert };
    for column in [late, words] {
        let sent = RecordBatch::try_from_iter([("moment", column)]).unwrap();
        assert_eq!(refused(raw.updated(&into(APPEND, "times"), std::slice::from_ref(&sent)).await).1, "invalid_value");
        assert_eq!(refused(raw.updated(&insert, &[sent]).await).1, "invalid_value");
    }
    assert_eq!(raw.number("select count(*) from times").await, 0);
}

#[tokio::test]
async fn progress_is_told_to_those_who_ask() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let mut command = into(CREATE, "t");
    command.options.insert("querent.progress".to_owned(), "true".to_owned());
    let answers = raw.put(&command, &[rows(0, 10)]).await.unwrap();
    let counts: Vec<i64> = answers
        .iter()
        .map(|answer| arrow_flight::sql::DoPutUpdateResult::decode(answer.app_metadata.clone()).unwrap().record_count)
        .collect();
    assert_eq!(counts.last(), Some(&10));
    assert!(counts.len() >= 2 && counts.is_sorted(), "{counts:?}");
}

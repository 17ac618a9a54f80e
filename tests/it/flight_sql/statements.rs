//! Statement queries: the announced schema is the schema of the stream, messages are bounded, errors have their codes.

use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type, Schema};
use arrow_flight::flight_descriptor::DescriptorType;
use futures::TryStreamExt;
use prost::Message;
use querent_tests::{TestServer, TestSettings, wait_until};
use tonic::Code;

use super::{Raw, decode, descriptor, refused, schema_of, sql_client, statement, ticket_of};

/// Nullability, constant folding, statistics and exotic types: where other servers' schemas drift from their streams.
const QUERIES: &[&str] = &[
    "select 1 as a",
    "select cast(null as int) as a, null as b",
    "select count(*), count(x), min(x), max(x), avg(x), sum(x) from (values (1), (2)) v(x)",
    "select min(a), max(a), count(a), count(*) from t",
    "select max(a) from t where false",
    "select * from t",
    "select * from t where a is not null",
    "select a, count(*) from t group by a",
    "select t.a, u.b from t left join t u on t.a = u.a + 100",
    "select coalesce(a, 0), a is null, case when a > 1 then 'x' end from t",
    "select a from t union all select 1",
    "select row_number() over (order by a), lag(a) over (order by a) from t",
    "select array_agg(a), array_agg(b) from t",
    "select struct(a, b) as s, [1, 2, null] as l from t",
    "select 'x' as a, 'x' || b from t",
    "select arrow_cast('a text longer than twelve', 'Utf8View') as v, arrow_cast('y', 'Dictionary(Int32, Utf8)') as d",
    "select arrow_cast([1, 2], 'LargeList(Int64)') as l, arrow_cast('z', 'LargeUtf8') as s",
    "select date '2024-02-03', timestamp '2024-02-03 04:05:06', interval '1 day', 1.5 as d1, 1.5e0 as d2, true, x'00ff'",
    "select * from t limit 0",
    "select distinct b from t order by b",
    "insert into t values (7, 'seven')",
    "create table made (a int)",
    "drop table made",
];

#[tokio::test]
async fn the_announced_schema_is_the_schema_sent() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t as select * from (values (1, 'one'), (2, 'two'), (null, null)) v(a, b)").await.unwrap();
    for sql in QUERIES {
        let described = raw.client.get_schema(raw.request(descriptor(&statement(sql)))).await;
        let described =
            Schema::try_from(described.unwrap_or_else(|error| panic!("{sql}: {error}")).into_inner()).unwrap();
        let info = raw.plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let messages = raw.fetch(ticket_of(&info)).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (sent, batches) = decode(messages).await;
        assert_eq!(schema_of(&info), *sent, "{sql}");
        assert_eq!(described, *sent, "{sql}");
        assert!(batches.iter().all(|batch| batch.schema() == sent), "{sql}");
        for field in sent.flattened_fields() {
            let plain = !matches!(
                field.data_type(),
                DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _) | DataType::LargeList(_)
            );
            assert!(plain, "{sql}: {field}");
        }
    }
}

#[tokio::test]
async fn an_empty_result_keeps_its_schema() {
    let server = TestServer::start(TestSettings::default()).await;
    let (schema, batches) = Raw::connect(&server).await.rows("select 1 as a, 'x' as b where false").await.unwrap();
    assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
}

#[tokio::test]
async fn messages_have_two_mebibytes_whatever_the_rows() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let wide = (0..200).map(|column| format!("value + {column} as c{column}")).collect::<Vec<_>>().join(", ");
    let queries = [
        ("select repeat('x', 1000) as s from generate_series(1, 20000)".to_owned(), 20_000, 9),
        (
            "select repeat('x', cast(value % 40 * 1000 as int)) as s from generate_series(1, 2000) g(value)".to_owned(),
            2_000,
            15,
        ),
        ("select value, value * 2 as d from generate_series(1, 1000000) g(value)".to_owned(), 1_000_000, 7),
        (format!("select {wide} from generate_series(1, 5000) g(value)"), 5_000, 3),
    ];
    for (sql, rows, at_least) in queries {
        let info = raw.plan(&sql).await.unwrap();
        let messages = raw.fetch(ticket_of(&info)).await.unwrap();
        let largest = messages.iter().map(Message::encoded_len).max().unwrap();
        // The rows, and the message's header.
        assert!(largest <= (2 << 20) + (32 << 10), "{sql}: {largest} bytes");
        assert!(messages.len() > at_least, "{sql}: {} messages", messages.len());
        // Not split to dust either: by real bytes, not by the capacity of shared buffers.
        assert!(messages.len() < 300, "{sql}: {} messages", messages.len());
        let (_, batches) = decode(messages).await;
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows, "{sql}");
    }
}

#[tokio::test]
async fn one_row_larger_than_a_message_goes_alone() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let sql = "select repeat('x', cast(value * 5000000 as int)) as s from generate_series(0, 2) g(value)";
    let (_, batches) = raw.rows(sql).await.unwrap();
    let lengths: Vec<_> = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter()).collect();
    assert_eq!(lengths.iter().map(|text| text.unwrap().len()).collect::<Vec<_>>(), [0, 5_000_000, 10_000_000]);
}

#[tokio::test]
async fn errors_have_grpc_codes_and_ours() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table otel_logs (a int)").await.unwrap();
    for (sql, grpc, ours) in [
        ("selec", Code::InvalidArgument, "sql_parse_error"),
        ("", Code::InvalidArgument, "empty_query"),
        ("select 1; select 2", Code::InvalidArgument, "multiple_statements"),
        ("select * from otel_log", Code::NotFound, "table_not_found"),
        ("select b from otel_logs", Code::InvalidArgument, "column_not_found"),
        ("select nosuch(a) from otel_logs", Code::InvalidArgument, "function_not_found"),
    ] {
        assert_eq!(refused(raw.plan(sql).await), (grpc, ours.to_owned()), "{sql}");
    }
    let status = raw.plan("select * from otel_log").await.unwrap_err();
    assert!(status.message().contains("did you mean `otel_logs`?"), "{}", status.message());
    let exists = raw.rows("create table otel_logs (a int)").await;
    assert_eq!(refused(exists), (Code::AlreadyExists, "already_exists".to_owned()));
}

#[tokio::test]
async fn a_failure_in_the_middle_ends_the_stream_and_not_the_connection() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let sql = "select 100 / (value - 50000) from generate_series(1, 100000) g(value)";
    let info = raw.plan(sql).await.unwrap();
    let mut stream = raw.client.do_get(raw.request(ticket_of(&info))).await.unwrap().into_inner();
    let failure = loop {
        match stream.try_next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a failed query must not end like a complete one"),
            Err(status) => break status,
        }
    };
    assert!(failure.message().to_lowercase().contains("by zero"), "{failure}");
    raw.rows("select 2").await.unwrap();
}

#[tokio::test]
async fn queries_beyond_the_bound_are_refused_until_one_ends() {
    let one = TestSettings::default().change(|settings| settings.query.max_concurrent = 1);
    let server = TestServer::start(one).await;
    let mut raw = Raw::connect(&server).await;
    // One that works: a query that waits for its reader does not count.
    let endless = "select count(*) from generate_series(1, 1000000) a join generate_series(1, 1000000) b \
                   on a.value + b.value < 0";
    let info = raw.plan(endless).await.unwrap();
    let mut running = raw.client.do_get(raw.request(ticket_of(&info))).await.unwrap().into_inner();
    running.try_next().await.unwrap().expect("a message");
    assert_eq!(refused(raw.rows("select 1").await), (Code::ResourceExhausted, "too_many_requests".to_owned()));
    // Metadata is exempt.
    raw.info(&arrow_flight::sql::CommandGetCatalogs {}).await.unwrap();

    drop(running);
    wait_until("a client that goes away stops its query", async || raw.rows("select 1").await.is_ok()).await;
}

#[tokio::test]
async fn a_query_out_of_time_says_so() {
    let short = TestSettings::default().change(|settings| settings.query.timeout.0 = Duration::from_millis(300));
    let server = TestServer::start(short).await;
    let mut raw = Raw::connect(&server).await;
    let sql =
        "select count(*) from generate_series(1, 100000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";
    assert_eq!(refused(raw.rows(sql).await), (Code::DeadlineExceeded, "wall_clock_exceeded".to_owned()));
}

#[tokio::test]
async fn a_header_names_the_current_database() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create schema sales").await.unwrap();
    raw.rows("create table sales.orders (a int)").await.unwrap();
    assert_eq!(refused(raw.plan("select * from orders").await).0, Code::NotFound);
    for header in ["x-database", "database"] {
        Raw::connect(&server).await.header(header, "sales").rows("select * from orders").await.unwrap();
    }
    raw.rows("create schema \"дані ü\"").await.unwrap();
    raw.rows("create table \"дані ü\".beyond (a int)").await.unwrap();
    Raw::connect(&server).await.header("x-database", "дані ü").rows("select * from beyond").await.unwrap();
    let mut lost = Raw::connect(&server).await.header("x-database", "sale");
    let status = lost.plan("select 1").await.unwrap_err();
    assert!(status.message().contains("did you mean `sales`?"), "{}", status.message());
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn arrow_flights_own_client_reads_rows() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut client = sql_client(&server).await;
    let info = client.execute("select value from generate_series(1, 100000) g(value)".to_owned(), None).await.unwrap();
    let batches: Vec<_> = client.do_get(ticket_of(&info)).await.unwrap().try_collect().await.unwrap();
    let sum: i64 = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter()).sum();
    assert_eq!(sum, 5_000_050_000);
}

/// C++ clients (pyarrow, flightsql-dbapi) read no FlightInfo without the type of its descriptor.
#[tokio::test]
async fn a_long_statement_is_not_repeated_but_described() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let sql = format!("select cast(length('{}') as bigint) as n", "x".repeat(1_000_000));
    let info = raw.plan(&sql).await.unwrap();
    assert!(info.encoded_len() < 64 << 10, "{} bytes", info.encoded_len());
    let described = info.flight_descriptor.as_ref().expect("a descriptor");
    assert_eq!((described.r#type(), described.cmd.len()), (DescriptorType::Cmd, 0));
    assert_eq!(raw.number(&sql).await, 1_000_000);
}

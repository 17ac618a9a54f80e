//! Tables as flights: ListFlights, descriptors by path, JSON tickets, and headers that set limits.

use arrow_flight::{Criteria, FlightDescriptor, FlightInfo, Ticket};
use futures::TryStreamExt;
use querent_tests::{TestServer, TestSettings};
use tonic::{Code, Status};

use super::metadata::texts;
use super::{Raw, decode, refused, schema_of, ticket_of};

impl Raw {
    async fn flights(&mut self, pattern: &str) -> Result<Vec<FlightInfo>, Status> {
        let criteria = Criteria { expression: pattern.as_bytes().to_vec().into() };
        let listed = self.client.list_flights(self.request(criteria)).await?;
        listed.into_inner().try_collect().await
    }
}

fn path(parts: &[&str]) -> FlightDescriptor {
    FlightDescriptor::new_path(parts.iter().map(|part| (*part).to_owned()).collect())
}

#[tokio::test]
async fn tables_and_views_are_flights() {
    let server = TestServer::start(TestSettings::default().tokens("admin-tok:admin,narrow-tok:read:n:shop")).await;
    let mut raw = Raw::connect(&server).await.token("admin-tok");
    raw.rows("create schema shop").await.unwrap();
    raw.rows("create table shop.\"Or\"\"ders\" as select cast(1 as bigint) as a, 'x' as b").await.unwrap();
    raw.rows("create table items as select cast(2 as bigint) as a").await.unwrap();
    raw.rows("create view v as select a + 1 as c from items").await.unwrap();
    let flights = raw.flights("").await.unwrap();
    assert_eq!(flights.len(), 3);
    for flight in flights {
        let (schema, batches) = decode(raw.fetch(ticket_of(&flight)).await.unwrap()).await;
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
        assert_eq!(schema_of(&flight), *schema);
        let descriptor = flight.flight_descriptor.unwrap();
        let info = raw.client.get_flight_info(raw.request(descriptor.clone())).await.unwrap().into_inner();
        assert_eq!(schema_of(&info), *schema, "{:?}", descriptor.path);
        raw.fetch(ticket_of(&info)).await.unwrap();
    }
    assert_eq!(raw.flights("it%").await.unwrap().len(), 1);
    for parts in [&["items"][..], &["default", "items"], &["Querent", "default", "items"]] {
        let schema = raw.client.get_schema(raw.request(path(parts))).await.unwrap().into_inner();
        assert_eq!(arrow::datatypes::Schema::try_from(schema).unwrap().field(0).name(), "a");
    }
    for parts in [&["system", "tables"][..], &["information_schema", "tables"], &["querent", "system", "columns"]] {
        let info = raw.client.get_flight_info(raw.request(path(parts))).await.unwrap().into_inner();
        let (schema, batches) = decode(raw.fetch(ticket_of(&info)).await.unwrap()).await;
        assert_eq!(schema_of(&info), *schema, "{parts:?}");
        assert!(batches.iter().any(|batch| batch.num_rows() > 0), "{parts:?}");
    }
    for (parts, expected) in [
        (&["nowhere", "items"][..], (Code::NotFound, "database_not_found")),
        (&["nothing"], (Code::NotFound, "table_not_found")),
        (&["hive", "default", "items"], (Code::InvalidArgument, "bad_request")),
        (&[], (Code::InvalidArgument, "bad_request")),
    ] {
        let refusal = refused(raw.client.get_flight_info(raw.request(path(parts))).await);
        assert_eq!(refusal, (expected.0, expected.1.to_owned()), "{parts:?}");
    }
}

#[tokio::test]
async fn tickets_in_json_are_queries() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t as select cast(3 as bigint) as a").await.unwrap();
    for ticket in [
        r#"{"database":"default","query":"select a from t","language":"sql"}"#,
        r#"{"database":"default","query":"t | project a","language":"kql","something":"else"}"#,
        r#"{"query":"select a from t","kind":"query"}"#,
        r#"{"database":"default","sql_query":"select a from t","query_type":"sql"}"#,
        r#"{"sql_query":"select a from t where a = $a or $b = 'x'","query_type":"sql","params":{"a":3,"b":null}}"#,
    ] {
        let (_, batches) = decode(raw.fetch(Ticket::new(ticket)).await.unwrap()).await;
        assert_eq!(batches[0].num_rows(), 1, "{ticket}");
    }
    let digits =
        r#"{"query":"select cast($b as varchar) as b, $a as a","params":{"a":1,"b":123456789012345678901234567890}}"#;
    let (_, batches) = decode(raw.fetch(Ticket::new(digits)).await.unwrap()).await;
    assert_eq!(texts(&batches[0], "b"), ["123456789012345678901234567890"]);
    for (ticket, code) in [
        (r#"{"query":"create table u (a int)"}"#, "unsupported"),
        (r#"{"query":"select 1","language":"cypher"}"#, "bad_request"),
        (r#"{"sql_query":"select 1","query_type":"influxql"}"#, "bad_request"),
        (r#"{"query":"select $a","params":{"a":{}}}"#, "bad_request"),
        (r#"{"query":"select $a","params":[1]}"#, "bad_request"),
        (r#"{"query":"select 1","kind":"extent"}"#, "bad_request"),
        (r#"{"query":"select 1","database":"nowhere"}"#, "database_not_found"),
        (r#"{"database":"default"}"#, "bad_request"),
        ("{", "bad_request"),
    ] {
        assert_eq!(refused(raw.fetch(Ticket::new(ticket)).await).1, code, "{ticket}");
    }
}

#[tokio::test]
async fn headers_lower_the_limits() {
    let server = TestServer::start(TestSettings::default()).await;
    let endless = super::ENDLESS;
    let mut hasty = Raw::connect(&server).await.header("x-querent-max-wall-clock-ms", "100");
    assert_eq!(refused(hasty.rows(endless).await).1, "wall_clock_exceeded");
    // As gRPC's clients say how long they wait.
    let mut waiting = Raw::connect(&server).await.header("grpc-timeout", "5S");
    assert_eq!(refused(waiting.rows(endless).await).1, "wall_clock_exceeded");
    let mut small = Raw::connect(&server).await.header("x-querent-max-memory-bytes", "2000000");
    let sort = "select value from generate_series(1, 3000000) order by value % 7, value desc";
    assert_eq!(refused(small.rows(&format!("select array_agg(value) from ({sort})")).await).1, "memory_exceeded");
    let mut wrong = Raw::connect(&server).await.header("x-querent-max-wall-clock-ms", "soon");
    assert_eq!(refused(wrong.rows("select 1").await).1, "bad_header");
    let mut kql = Raw::connect(&server).await.header("x-querent-language", "kql");
    assert_eq!(kql.number("print x = 7").await, 7);
    // A ticket in JSON that names no language is in that of the call.
    let ticket = arrow_flight::Ticket { ticket: r#"{"query":"print x = 7"}"#.into() };
    assert!(kql.fetch(ticket).await.is_ok());
    let mut other = Raw::connect(&server).await.header("x-querent-language", "cypher");
    assert_eq!(refused(other.rows("select 1").await).1, "bad_header");
}

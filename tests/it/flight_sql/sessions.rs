//! Sessions: options, temporary tables, and whose they are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow_flight::sql::{
    CommandGetTables, CommandStatementIngest, ProstMessageExt, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, Empty, FlightEndpoint,
    RenewFlightEndpointRequest, Ticket,
};
use futures::TryStreamExt;
use prost::Message;
use querent_tests::{TestServer, TestSettings};
use tonic::{Code, Status};

use super::{Raw, descriptor, refused, statement, ticket_of};

#[derive(Clone, PartialEq, Message)]
struct TestOption {
    #[prost(oneof = "Value", tags = "1, 2, 3, 5")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(message, tag = "5")]
    Texts(TestTexts),
}

#[derive(Clone, PartialEq, Message)]
struct TestTexts {
    #[prost(string, repeated, tag = "1")]
    values: Vec<String>,
}

/// SetSessionOptionsRequest and GetSessionOptionsResult, which have the same field.
#[derive(Clone, PartialEq, Message)]
struct Options {
    #[prost(map = "string, message", tag = "1")]
    options: HashMap<String, TestOption>,
}

#[derive(Clone, PartialEq, Message)]
struct SetErrors {
    #[prost(map = "string, message", tag = "1")]
    errors: HashMap<String, SetError>,
}

#[derive(Clone, PartialEq, Message)]
struct SetError {
    #[prost(int32, tag = "1")]
    kind: i32,
}

const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;

impl Raw {
    /// Sets options; returns those that were refused, and why.
    async fn set(&mut self, options: &[(&str, Value)]) -> Result<HashMap<String, i32>, Status> {
        let options =
            options.iter().map(|(name, value)| ((*name).to_owned(), TestOption { value: Some(value.clone()) }));
        let answer = self.act("SetSessionOptions", Options { options: options.collect() }.encode_to_vec()).await?;
        let errors = SetErrors::decode(answer[0].clone()).unwrap().errors;
        Ok(errors.into_iter().map(|(name, error)| (name, error.kind)).collect())
    }

    async fn option(&mut self, name: &str) -> Option<String> {
        let answer = self.act("GetSessionOptions", Vec::new()).await.unwrap();
        match Options::decode(answer[0].clone()).unwrap().options.get(name)?.value.as_ref()? {
            Value::Text(text) => Some(text.clone()),
            other => Some(format!("{other:?}")),
        }
    }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[tokio::test]
async fn options_are_set_for_the_statements_that_follow() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create schema other").await.unwrap();
    raw.rows("create table other.t as select cast(1 as bigint) as a").await.unwrap();
    assert_eq!(raw.option("catalog").await.as_deref(), Some("querent"));
    assert_eq!(raw.option("schema").await.as_deref(), Some("default"));
    assert_eq!(raw.set(&[("schema", text("OTHER")), ("catalog", text("Querent"))]).await.unwrap(), HashMap::new());
    assert_eq!(raw.option("schema").await.as_deref(), Some("other"));
    assert_eq!(raw.number("select a from t").await, 1);

    let refusals = raw
        .set(&[
            ("schema", text("nowhere")),
            ("catalog", text("hive")),
            ("colour", text("blue")),
            ("query_language", Value::Integer(1)),
        ])
        .await
        .unwrap();
    let expected = [
        ("schema", INVALID_VALUE),
        ("catalog", INVALID_VALUE),
        ("colour", INVALID_NAME),
        ("query_language", INVALID_VALUE),
    ];
    assert_eq!(refusals, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
    assert_eq!(raw.option("schema").await.as_deref(), Some("other"), "what was refused changed nothing");
    for (name, said) in [("schema", "nowhere"), ("catalog", "hive")] {
        let refusal = raw.set(&[(name, text(said))]).await.expect_err(name);
        assert!(refusal.message().contains(said), "{refusal:?}");
        assert_eq!(refused::<()>(Err(refusal)), (Code::NotFound, "database_not_found".to_owned()), "{name}");
    }
    assert_eq!(raw.option("schema").await.as_deref(), Some("other"), "what was refused changed nothing");

    assert_eq!(raw.set(&[("endpoints", Value::Integer(3))]).await.unwrap(), HashMap::new());
    assert_eq!(raw.plan("select a from t").await.unwrap().endpoint.len(), 3);
    assert_eq!(raw.set(&[("endpoints", Value::Integer(0))]).await.unwrap()["endpoints"], INVALID_VALUE);
    assert_eq!(raw.set(&[("endpoints", text("1"))]).await.unwrap(), HashMap::new());

    let types =
        |names: &[&str]| Value::Texts(TestTexts { values: names.iter().map(|&name| name.to_owned()).collect() });
    assert_eq!(raw.set(&[("wire_types", types(&["dictionaries", "views"]))]).await.unwrap(), HashMap::new());
    assert_eq!(raw.option("wire_types").await.as_deref(), Some("views,dictionaries"));
    assert_eq!(raw.set(&[("wire_types", types(&["large"]))]).await.unwrap()["wire_types"], INVALID_VALUE);
    assert_eq!(raw.set(&[("wire_types", types(&[]))]).await.unwrap(), HashMap::new());
    assert_eq!(raw.option("wire_types").await.as_deref(), Some(""));

    raw.set(&[("query_language", text("KQL"))]).await.unwrap();
    assert_eq!(raw.number("t | extend b = a + 1 | project b").await, 2);
    let prepared = raw.prepare("t | where a == 1").await.unwrap();
    assert_eq!((prepared.is_update, prepared.parameters.fields().len()), (Some(false), 0));

    let mut another = Raw::connect(&server).await;
    assert_eq!(another.option("schema").await.as_deref(), Some("default"), "another connection is another session");
    raw.act("CloseSession", Vec::new()).await.unwrap();
    assert_eq!(raw.option("query_language").await.as_deref(), Some("sql"));
}

#[tokio::test]
async fn a_cookie_names_a_session_across_connections_but_not_across_callers() {
    const TOKENS: &str = "anna-tok:write:anna,bob-tok:write:bob";
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let raw = Raw::connect(&server).await.token("anna-tok");
    let options =
        Options { options: HashMap::from([("query_language".to_owned(), TestOption { value: Some(text("kql")) })]) };
    let action = Action::new("SetSessionOptions", options.encode_to_vec());
    let response = raw.client.clone().do_action(raw.request(action)).await.unwrap();
    let cookie = response.metadata().get("set-cookie").expect("a cookie").to_str().unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    assert!(cookie.starts_with("arrow_flight_session_id="), "{cookie}");

    let mut later = Raw::connect(&server).await.token("anna-tok").header("cookie", cookie);
    assert_eq!(later.option("query_language").await.as_deref(), Some("kql"));
    let mut bob = Raw::connect(&server).await.token("bob-tok").header("cookie", cookie);
    assert_eq!(bob.option("query_language").await.as_deref(), Some("sql"));
    // One that names no session any more, as after a restart, is sent on and on.
    let over = "arrow_flight_session_id=00000000-0000-0000-0000-000000000000";
    let mut before = Raw::connect(&server).await.token("anna-tok").header("cookie", over);
    before.rows("create temp table kept as select cast(1 as bigint) as a").await.unwrap();
    assert_eq!(before.number("select a from kept").await, 1, "its connection is its session");
    // A proxy's connection carries the calls of many clients.
    let mut proxied = Raw::connect(&server).await.token("anna-tok").header("x-forwarded-for", "10.0.0.1");
    proxied.set(&[("query_language", text("kql"))]).await.unwrap();
    assert_eq!(proxied.option("query_language").await.as_deref(), Some("sql"), "its cookie was not sent back");
}

#[tokio::test]
async fn temporary_tables_are_the_sessions_own() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,writer-tok:write")).await;
    let mut raw = Raw::connect(&server).await.token("writer-tok");
    raw.rows("create table t as select cast(1 as bigint) as a").await.unwrap();
    raw.rows("create temporary table T as select cast(2 as bigint) as a").await.unwrap();
    assert_eq!(raw.number("select a from t").await, 2, "a bare name finds the temporary one first");
    assert_eq!(raw.number("select a from \"default\".t").await, 1);
    raw.rows("insert into t values (3), (4)").await.unwrap();
    assert_eq!(raw.number("select sum(a) from t").await, 9);
    raw.rows("create temp table described (only_here bigint)").await.unwrap();
    for (name, columns) in [("described", ["only_here"]), ("t", ["a"])] {
        for sql in [format!("describe {name}"), format!("show columns from {name}")] {
            let (_, batches) = raw.rows(&sql).await.unwrap();
            assert_eq!(super::metadata::texts(&batches[0], "column_name"), columns, "{sql}");
        }
    }
    // The lasting table of that name is not what queries read.
    assert_eq!(refused(raw.rows("show create table t").await).1, "unsupported");
    raw.rows("drop table described").await.unwrap();
    // An ingest matches columns without regard to case, and would write one value into both.
    assert_eq!(refused(raw.rows("create temp table twice (a int, \"A\" int)").await).1, "invalid_name");
    raw.rows("create temp table twice as select 1 as a, 2 as \"A\"").await.unwrap();
    assert_eq!(raw.number("select cast(a + \"A_1\" as bigint) from twice").await, 3);
    raw.rows("drop table twice").await.unwrap();
    // As Tableau writes it.
    raw.rows("create local temporary table \"#Connect\" (\"COL\" integer) on commit preserve rows").await.unwrap();
    raw.rows("drop table \"#Connect\"").await.unwrap();
    let listed = async |raw: &mut Raw, catalog: Option<&str>, types: &[&str]| {
        let command = CommandGetTables {
            catalog: catalog.map(str::to_owned),
            table_name_filter_pattern: Some("t".to_owned()),
            table_types: types.iter().map(|kind| (*kind).to_owned()).collect(),
            ..CommandGetTables::default()
        };
        super::metadata::tables_of(raw, command).await
    };
    assert_eq!(listed(&mut raw, None, &[]).await, [".T LOCAL TEMPORARY", "default.t BASE TABLE"]);
    assert_eq!(listed(&mut raw, None, &["local temporary"]).await, [".T LOCAL TEMPORARY"]);
    assert_eq!(listed(&mut raw, Some(""), &[]).await, [".T LOCAL TEMPORARY"], "it is in no catalog");
    assert_eq!(listed(&mut raw, Some("querent"), &[]).await, ["default.t BASE TABLE"]);
    assert_eq!(refused(raw.rows("create temp table t (x int)").await).1, "already_exists");
    raw.rows("create or replace temp table t (a bigint not null)").await.unwrap();
    assert!(raw.rows("insert into t values (null)").await.is_err());
    assert_eq!(raw.number("select count(*) from t").await, 0);
    assert_eq!(refused(raw.rows("create view v as select x from only_temporary").await).1, "table_not_found");

    let mut another = Raw::connect(&server).await.token("writer-tok");
    assert_eq!(another.number("select a from t").await, 1);
    assert_eq!(listed(&mut another, None, &[]).await, ["default.t BASE TABLE"]);
    raw.rows("drop table t").await.unwrap();
    assert_eq!(raw.number("select a from t").await, 1, "the one that lasts is still there");

    let i: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let rows = RecordBatch::try_from_iter([("i", i)]).unwrap();
    let options = TableDefinitionOptions {
        if_not_exist: TableNotExistOption::Create as i32,
        if_exists: TableExistsOption::Append as i32,
    };
    let ingest = CommandStatementIngest {
        table: "scratch".to_owned(),
        temporary: true,
        table_definition_options: Some(options),
        ..CommandStatementIngest::default()
    };
    // A role that only reads may keep rows that it has anyway.
    let mut reader = Raw::connect(&server).await.token("reader-tok");
    assert_eq!(reader.updated(&ingest, std::slice::from_ref(&rows)).await.unwrap(), 1_000);
    assert_eq!(reader.updated(&ingest, std::slice::from_ref(&rows)).await.unwrap(), 1_000);
    assert_eq!(reader.number("select count(*) from scratch").await, 2_000);
    assert_eq!(refused(raw.rows("select * from scratch").await).1, "table_not_found");
    // A table that lasts is none of the session's.
    let options = TableDefinitionOptions { if_not_exist: TableNotExistOption::Fail as i32, ..options };
    let append = CommandStatementIngest { table: "t".to_owned(), table_definition_options: Some(options), ..ingest };
    let refusal = reader.updated(&append, &[rows]).await;
    let message = refusal.as_ref().unwrap_err().message();
    assert!(message.starts_with("unknown table `t` among the temporary tables of the session"), "{message}");
    assert_eq!(refused(refusal).1, "table_not_found");
    drop(reader);
    querent_tests::wait_until_memory_is_free(server.engine()).await;

    let request = serde_json::json!({"sql": "create temp table x (a int)"});
    let http = server.post("/v1/query", &request, Some("writer-tok")).await;
    assert_eq!(http.json()["error"]["code"], "unsupported", "an HTTP request has no session");
}

#[tokio::test]
async fn ingests_that_may_make_one_temporary_table_take_turns() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let i: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let rows = RecordBatch::try_from_iter([("i", i)]).unwrap();
    let options = TableDefinitionOptions {
        if_not_exist: TableNotExistOption::Create as i32,
        if_exists: TableExistsOption::Append as i32,
    };
    let written = (0..10).map(|at| {
        let (mut raw, rows) = (raw.clone(), rows.clone());
        let ingest = CommandStatementIngest {
            table: if at % 2 == 0 { "scratch" } else { "SCRATCH" }.to_owned(),
            temporary: true,
            table_definition_options: Some(options),
            ..CommandStatementIngest::default()
        };
        async move { raw.updated(&ingest, &[rows]).await }
    });
    for written in futures::future::join_all(written).await {
        assert_eq!(written.unwrap(), 100);
    }
    assert_eq!(raw.number("select count(*) from scratch").await, 1_000);
}

/// As in DuckDB and PostgreSQL, where only what is looked for in it is missing.
#[tokio::test]
async fn a_database_that_is_dropped_ends_no_session() {
    let server = TestServer::start(TestSettings::default()).await;
    let (mut raw, mut other) = (Raw::connect(&server).await, Raw::connect(&server).await);
    other.rows("create table kept as select cast(7 as bigint) as a").await.unwrap();
    for chosen in ["statement", "option"] {
        other.rows("create schema gone").await.unwrap();
        match chosen {
            "statement" => drop(raw.rows("use gone").await.unwrap()),
            _ => drop(raw.set(&[("schema", text("gone"))]).await.unwrap()),
        }
        raw.rows("create table t (a int)").await.unwrap();
        other.rows("drop schema gone cascade").await.unwrap();
        assert_eq!(raw.number("select cast(1 as bigint)").await, 1, "{chosen}");
        assert_eq!(raw.number("select a from \"default\".kept").await, 7, "{chosen}");
        for missed in ["select * from t", "create table t (a int)"] {
            assert_eq!(refused(raw.rows(missed).await).1, "database_not_found", "{chosen}");
        }
        raw.rows("use \"default\"").await.unwrap();
        assert_eq!(raw.number("select a from kept").await, 7, "{chosen}");
    }
}

#[tokio::test]
async fn statements_set_what_later_ones_find() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,writer-tok:write")).await;
    let mut writer = Raw::connect(&server).await.token("writer-tok");
    writer.rows("create schema sales").await.unwrap();
    writer.rows("create table sales.orders as select cast(7 as bigint) as a").await.unwrap();

    // A role that only reads chooses its own database.
    let mut reader = Raw::connect(&server).await.token("reader-tok");
    assert_eq!(refused(reader.rows("select a from orders").await).1, "table_not_found");
    reader.rows("use sales").await.unwrap();
    assert_eq!(reader.number("select a from orders").await, 7);
    assert_eq!(reader.option("schema").await.as_deref(), Some("sales"), "the option of the session is the same thing");
    reader.set(&[("schema", text("default"))]).await.unwrap();
    assert_eq!(refused(reader.rows("select a from orders").await).1, "table_not_found");
    reader.rows("set search_path = sales").await.unwrap();
    reader.rows("prepare plus as select a + $1 from orders").await.unwrap();
    assert_eq!(reader.number("execute plus(35)").await, 42);
    assert_eq!(refused(reader.rows("set search_path = nowhere").await).1, "database_not_found");
    assert_eq!(refused(reader.rows("prepare gone as drop table orders").await).1, "not_allowed");

    let mut another = Raw::connect(&server).await.token("reader-tok");
    assert_eq!(refused(another.rows("select a from orders").await).1, "table_not_found", "a session of its own");
    assert_eq!(refused(another.rows("execute plus(1)").await).1, "sql_plan_error");

    // What each call's header says is not chosen by a statement.
    let mut named = Raw::connect(&server).await.token("reader-tok").header("x-database", "sales");
    assert_eq!(named.number("select a from orders").await, 7);
    let status = named.rows("use \"default\"").await.expect_err("a refusal");
    let message = status.message().to_owned();
    assert_eq!(refused(Err::<(), _>(status)).1, "unsupported");
    assert!(message.contains("the header x-database names the database"), "{message}");

    for (statement, says) in [
        ("use sales", "\"database\" or the header x-database"),
        ("set schema = sales", "\"database\""),
        ("prepare q as select 1", "\"params\""),
        ("execute q", "\"params\""),
    ] {
        let http = server.post("/v1/query", &serde_json::json!({"sql": statement}), Some("writer-tok")).await;
        let error = &http.json()["error"];
        assert_eq!(error["code"], "unsupported", "{statement}: an HTTP request has no session");
        assert!(error.to_string().replace('\\', "").contains(says), "{statement}: {error}");
    }
}

#[tokio::test]
async fn queries_are_cancelled_and_tickets_renewed() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let cancel = |info| CancelFlightInfoRequest { info: Some(info) }.encode_to_vec();
    let status = |answer: Vec<bytes::Bytes>| CancelFlightInfoResult::decode(answer[0].clone()).unwrap().status();

    let running = raw.plan(super::ENDLESS).await.unwrap();
    let request = raw.request(ticket_of(&running));
    let mut client = raw.client.clone();
    let fetching =
        tokio::spawn(async move { client.do_get(request).await?.into_inner().try_collect::<Vec<_>>().await });
    querent_tests::wait_until("the query is found and cancelled", async || {
        fetching.is_finished() || {
            status(raw.act("CancelFlightInfo", cancel(running.clone())).await.unwrap());
            false
        }
    })
    .await;
    assert!(matches!(refused(fetching.await.unwrap()).1.as_str(), "cancelled" | "ticket_used"));

    let waiting = raw.plan("select 1").await.unwrap();
    assert_eq!(status(raw.act("CancelFlightInfo", cancel(waiting.clone())).await.unwrap()), CancelStatus::Cancelled);
    assert_eq!(refused(raw.fetch(ticket_of(&waiting)).await).1, "ticket_used");
    let change = raw.plan("create table t (a int)").await.unwrap();
    raw.fetch(ticket_of(&change)).await.unwrap();
    let again = raw.fetch(ticket_of(&change)).await.unwrap_err();
    assert!(again.message().contains("executed or cancelled"), "{}", again.message());
    assert_eq!(status(raw.act("CancelFlightInfo", cancel(change)).await.unwrap()), CancelStatus::NotCancellable);

    let info = raw.plan("select cast(5 as bigint)").await.unwrap();
    let renew = RenewFlightEndpointRequest { endpoint: Some(info.endpoint[0].clone()) };
    let answer = raw.act("RenewFlightEndpoint", renew.encode_to_vec()).await.unwrap();
    let renewed = FlightEndpoint::decode(answer[0].clone()).unwrap();
    assert!(renewed.expiration_time.unwrap().seconds >= info.endpoint[0].expiration_time.unwrap().seconds);
    raw.fetch(renewed.ticket.unwrap()).await.unwrap();
    let garbage = RenewFlightEndpointRequest { endpoint: Some(FlightEndpoint::new().with_ticket(Ticket::new("x"))) };
    assert_eq!(refused(raw.act("RenewFlightEndpoint", garbage.encode_to_vec()).await).1, "bad_request");
    for action in ["CreatePreparedStatement", "CancelFlightInfo", "SetSessionOptions", "RenewFlightEndpoint"] {
        assert_eq!(refused(raw.act(action, vec![0xff; 9]).await).1, "bad_request", "{action}");
    }
}

#[tokio::test]
async fn what_is_listed_is_served() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let listed = raw.client.list_actions(raw.request(Empty {})).await.unwrap().into_inner();
    let listed: Vec<_> = listed.try_collect().await.unwrap();
    assert_eq!(listed.len(), 8);
    for action in listed {
        if let Err(status) = raw.act(&action.r#type, Vec::new()).await {
            assert_ne!(status.code(), Code::Unimplemented, "{}", action.r#type);
        }
    }
    let polled = raw.client.poll_flight_info(raw.request(descriptor(&statement("select 1")))).await.unwrap();
    let polled = polled.into_inner();
    assert_eq!((polled.flight_descriptor, polled.progress), (None, Some(1.0)), "it is complete");
    raw.fetch(ticket_of(&polled.info.unwrap())).await.unwrap();
    assert!(statement("select 1").as_any().type_url.ends_with("CommandStatementQuery"));
}

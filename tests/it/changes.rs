//! `INSERT OVERWRITE` through every door that takes statements: the new rows instead of the old, in one step.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow_flight::error::FlightError;
use futures::TryStreamExt;
use querent_catalog::{Principal, Role};
use querent_engine::Limits;
use querent_tests::{TestServer, TestSettings};
use serde_json::json;

use crate::flight_sql::sql_client;
use crate::sql::{admin, engine, rows};

const TOKENS: &str = "reader-tok:read:reader,writer-tok:write:writer";

#[tokio::test]
async fn overwriting_replaces_all_rows_at_once() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let table = "CREATE TABLE t AS SELECT value AS a, 'old' AS b FROM generate_series(1, 5) AS s(value)";
    rows(&session, table).await.unwrap();
    // What is read is what was there before, the table's own rows included.
    let doubled = "INSERT OVERWRITE t SELECT a * 2, b || ', doubled' FROM t WHERE a > 3";
    assert_eq!(rows(&session, doubled).await.unwrap(), [["2"]]);
    let all = "SELECT a, b FROM t ORDER BY a";
    assert_eq!(rows(&session, all).await.unwrap(), [["8", "old, doubled"], ["10", "old, doubled"]]);
    // Columns by name; what is not named is null. The keyword TABLE changes nothing.
    assert_eq!(rows(&session, "INSERT OVERWRITE TABLE T (B) VALUES ('only')").await.unwrap(), [["1"]]);
    assert_eq!(rows(&session, all).await.unwrap(), [["NULL", "only"]]);
    // A statement that fails on its way leaves everything as it was.
    let failing = "INSERT OVERWRITE t SELECT 1 / (value - 40000), 'x' FROM generate_series(1, 50000) AS s(value)";
    assert_eq!(rows(&session, failing).await.unwrap_err().code(), "invalid_value");
    assert_eq!(rows(&session, all).await.unwrap(), [["NULL", "only"]]);
    assert_eq!(rows(&session, "INSERT OVERWRITE t SELECT a, b FROM t WHERE false").await.unwrap(), [["0"]]);
    assert!(rows(&session, all).await.unwrap().is_empty());
    assert_eq!(rows(&session, "INSERT INTO t VALUES (1, 'again')").await.unwrap(), [["1"]]);
    assert_eq!(rows(&session, all).await.unwrap(), [["1", "again"]]);

    let refused = |role: Role| engine.session(Principal::new("someone", role), Limits::default());
    let error = rows(&refused(Role::Read), "INSERT OVERWRITE t SELECT 1, 'x'").await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("INSERT OVERWRITE")), ("not_allowed", true), "{error}");
    let error = rows(&admin(&engine).read_only(), "INSERT OVERWRITE t SELECT 1, 'x'").await.unwrap_err();
    assert_eq!(error.code(), "not_allowed");
    rows(&session, "CREATE VIEW v AS SELECT a FROM t").await.unwrap();
    assert_eq!(rows(&session, "INSERT OVERWRITE v SELECT 1").await.unwrap_err().code(), "not_allowed");
    let written = refused(Role::Write);
    assert_eq!(rows(&written, "INSERT OVERWRITE t SELECT 2, 'writer'").await.unwrap(), [["1"]]);
}

#[tokio::test]
async fn overwriting_goes_through_http_and_flight_sql() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let query = async |sql: &str, token: &str| server.post("/v1/query", &json!({ "sql": sql }), Some(token)).await;
    assert_eq!(query("CREATE TABLE t AS SELECT 1 AS a", "writer-tok").await.status, 200);
    assert_eq!(query("INSERT OVERWRITE t SELECT 2", "reader-tok").await.status, 403);
    let reply = query("INSERT OVERWRITE t SELECT 2", "writer-tok").await;
    assert_eq!((reply.status, reply.text.trim()), (200, "{\"count\":1}"));
    assert_eq!(query("SELECT a FROM t", "reader-tok").await.text.trim(), "{\"a\":2}");

    let mut client = sql_client(&server).await;
    client.set_token("writer-tok".to_owned());
    let mut fetch = async |sql: &str| -> Result<Vec<RecordBatch>, FlightError> {
        let info = client.execute(sql.to_owned(), None).await?;
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        client.do_get(ticket).await?.try_collect().await
    };
    let changed = fetch("INSERT OVERWRITE t SELECT * FROM (VALUES (3), (4)) AS v(a)").await.unwrap();
    assert_eq!(changed[0].column(0).as_primitive::<UInt64Type>().value(0), 2);
    let total = fetch("SELECT sum(a) AS a, count(*) AS n FROM t").await.unwrap();
    assert_eq!(total[0].column(0).as_primitive::<Int64Type>().value(0), 7);
    client.set_token("reader-tok".to_owned());
    assert!(client.execute("INSERT OVERWRITE t SELECT 5".to_owned(), None).await.is_err());
}

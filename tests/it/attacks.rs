//! Statements that would write, read files or reach other hosts if any door let them: for a caller who may read, none of them
//! has an effect, in whatever form and through whichever door.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_tests::script::{run_sql, says};
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

/// What stands in the file that nobody may read.
const CANARY: &str = "canary-7f3a91";
const READER: Option<&str> = Some("reader-tok");

/// SQL with `{file}` for the path of the canary and `{out}` for one that must not come to be.
pub(crate) const SQL: [&str; 72] = [
    "CREATE TABLE x AS SELECT 1 AS a",
    "CREATE TABLE IF NOT EXISTS x (a INT)",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS a",
    "CREATE TEMPORARY TABLE x AS SELECT * FROM '{file}'",
    "CREATE VIEW x AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW t AS SELECT 1 AS a",
    "CREATE DATABASE x",
    "CREATE SCHEMA x",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{file}'",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 'http://169.254.169.254/latest/meta-data/'",
    "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 's3://bucket/x'",
    "CREATE FUNCTION f(a INT) RETURNS INT RETURN a",
    "CREATE INDEX i ON t (a)",
    "CREATE ROLE boss",
    "CREATE ROW POLICY p ON t USING (true) TO PUBLIC",
    "CREATE MASK m ON t(a) USING (1) TO PUBLIC",
    "DROP ROW POLICY p ON t",
    "GRANT ALL ON t TO PUBLIC",
    "REVOKE ALL ON DATABASE default FROM PUBLIC",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS t",
    "DROP VIEW v",
    "DROP DATABASE default CASCADE",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t SELECT a FROM t",
    "INSERT OVERWRITE t SELECT 1",
    "REPLACE INTO t VALUES (1)",
    "WITH w AS (SELECT 1 AS a) INSERT INTO t SELECT a FROM w",
    "UPDATE t SET a = 2",
    "DELETE FROM t",
    "DELETE FROM t WHERE a = 1",
    "TRUNCATE TABLE t",
    "MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "ALTER TABLE t ADD COLUMN b INT",
    "ALTER TABLE t RENAME TO u",
    "COMMENT ON TABLE t IS 'x'",
    "COPY t TO '{out}'",
    "COPY (SELECT 1) TO '{out}' STORED AS PARQUET",
    "COPY t FROM '{file}'",
    "EXPORT DATABASE '{out}'",
    "SELECT * INTO x FROM t",
    "SELECT * FROM '{file}'",
    "SELECT * FROM \"{file}\"",
    "SELECT * FROM 'file://{file}'",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM 'http://169.254.169.254/latest/meta-data/'",
    "SELECT * FROM 'https://example.invalid/x.csv'",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT pg_read_file('{file}')",
    "SELECT load_extension('{file}')",
    "SELECT getenv('HOME')",
    "SELECT system('id')",
    "LOAD httpfs",
    "INSTALL httpfs",
    "ATTACH '{out}' AS other",
    "PRAGMA database_list",
    "SET datafusion.execution.batch_size = 1",
    "SET GLOBAL x = 1",
    "VACUUM",
    "CALL f()",
    "KILL 1",
    "BEGIN; DROP TABLE t; COMMIT",
    "START TRANSACTION READ WRITE",
    "PREPARE s AS INSERT INTO t VALUES (1)",
    "EXECUTE s",
    "LOCK TABLE t",
];

const KQL: [&str; 22] = [
    ".create table x (a: int)",
    ".drop table t",
    ".set x <| t",
    ".set-or-append t <| t",
    ".set-or-replace t <| t",
    ".append t <| print a = 1",
    ".ingest inline into table t <| 1",
    ".ingest into table t ('{file}')",
    ".alter table t (a: int, b: int)",
    ".clear table t data",
    ".purge table t records <| t",
    ".add database default admins ('x')",
    ".execute database script <| .drop table t",
    ".export to csv ('{out}') <| t",
    "externaldata (a: string) ['{file}']",
    "externaldata (a: string) [@'http://169.254.169.254/latest/meta-data/']",
    "external_table('{file}')",
    "cluster('other').database('x').t",
    "evaluate sql_request('Server=x', 'select 1')",
    "evaluate http_request('http://169.254.169.254/')",
    "evaluate python(typeof(*), 'open(\"{out}\", \"w\")')",
    "t | invoke drop()",
];

/// The statement in forms that checks of texts have been passed by.
fn forms(statement: &str) -> Vec<String> {
    vec![
        statement.to_owned(),
        statement.to_ascii_lowercase(),
        format!("  \n\t{statement} ; "),
        format!("/* SELECT */ {statement}"),
        format!("-- SELECT 1\n{statement}"),
        format!("SELECT 1; {statement}"),
        format!("EXPLAIN ANALYZE {statement}"),
        format!("WITH s AS (SELECT 1) {statement}"),
        format!("SELECT * FROM ({statement}) AS s"),
    ]
}

/// Everything that an effect would leave: the catalog's version and objects, the files, and the canary.
#[derive(Debug, PartialEq)]
struct Effects {
    snapshot: i64,
    policy: i64,
    files: BTreeMap<String, u64>,
    canary: String,
    has_out: bool,
}

async fn effects(server: &TestServer, outside: &TempDir) -> Effects {
    let catalog = server.engine().catalog();
    let mut files = BTreeMap::new();
    data_files(&server.data().join("data"), &mut files);
    Effects {
        snapshot: catalog.snapshot().await.unwrap(),
        policy: catalog.policies().current().version,
        files,
        canary: std::fs::read_to_string(outside.path().join("canary.csv")).unwrap(),
        has_out: outside.path().join("out").exists(),
    }
}

fn data_files(folder: &Path, found: &mut BTreeMap<String, u64>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => data_files(&path, found),
            false => drop(found.insert(path.display().to_string(), std::fs::metadata(&path).unwrap().len())),
        }
    }
}

fn told(what: &str, text: &str) {
    assert!(!text.contains(CANARY), "{what} tells what is in a file: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_of_a_reader_has_an_effect() {
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("canary.csv"), format!("a\n{CANARY}\n")).unwrap();
    let (file, out) = (outside.path().join("canary.csv"), outside.path().join("out"));
    let filled = |text: &str| text.replace("{file}", file.to_str().unwrap()).replace("{out}", out.to_str().unwrap());
    let sql: Vec<String> = SQL.iter().map(|text| filled(text)).collect();
    // A model that does what it is told: ten calls a run.
    let runs = sql.chunks(10).map(|chunk| {
        let calls: Vec<Value> = chunk.iter().map(|text| run_sql(text)).collect();
        json!({ "turns": [{ "events": calls }, says("done")] })
    });
    let script = json!({ "runs": runs.collect::<Vec<_>>() });
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read:eve").script(script)).await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a").await;
    server.execute("CREATE VIEW v AS SELECT a FROM t").await;
    let before = effects(&server, &outside).await;

    let mut tried = 0;
    for statement in sql.iter().flat_map(|statement| forms(statement)) {
        let reply = server.post("/v1/query", &json!({ "sql": statement }), READER).await;
        assert_ne!(reply.status, 500, "{statement}: {}", reply.text);
        told(&statement, &reply.text);
        tried += 1;
    }
    let mut flight = flight(&server).await;
    for statement in &sql {
        if let Ok(info) = flight.execute(statement.clone(), None).await
            && let Some(ticket) = info.endpoint.into_iter().next().and_then(|endpoint| endpoint.ticket)
            && let Ok(rows) = flight.do_get(ticket).await
        {
            told(statement, &format!("{:?}", rows.try_collect::<Vec<_>>().await));
        }
        let updated = flight.execute_update(statement.clone(), None).await;
        told(statement, &format!("{updated:?}"));
        if let Ok(mut prepared) = flight.prepare(statement.clone(), None).await {
            told(statement, &format!("{:?}", prepared.execute().await));
        }
        tried += 3;
    }
    for statement in &sql {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "run_sql", "arguments": { "sql": statement } } });
        let request = server.http.post(server.url("/mcp")).json(&call);
        let reply = server.send(request.header("accept", "application/json, text/event-stream"), READER).await;
        told(statement, &reply.text);
        tried += 1;
    }
    for query in KQL.iter().map(|text| filled(text)) {
        for path in ["/v1/rest/query", "/v2/rest/query", "/v1/rest/mgmt"] {
            let reply = server.post(path, &json!({ "db": "default", "csl": query }), READER).await;
            assert_ne!(reply.status, 500, "{query}: {}", reply.text);
            told(&query, &reply.text);
            tried += 1;
        }
    }
    for _ in 0..sql.len().div_ceil(10) {
        let reply = server.post("/v1/agent/ask", &json!({ "question": "do as the data says" }), READER).await;
        told("ask", &reply.text);
        assert!(reply.text.contains("run_finished"), "{}", reply.text);
    }
    assert!(tried > 900, "{tried}");
    assert_eq!(before, effects(&server, &outside).await);
    let rows = server.post("/v1/query", &json!({ "sql": "SELECT a FROM v" }), READER).await;
    assert_eq!(rows.lines(), [json!({ "a": 1 })]);
}

pub(crate) async fn flight(server: &TestServer) -> FlightSqlServiceClient<Channel> {
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.set_token("reader-tok".to_owned());
    client
}

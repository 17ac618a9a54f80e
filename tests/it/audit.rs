//! The audit log: what it says of statements of every door, and that a change of it is noticed.

use querent_catalog::audit::{AuditOutcome, KeptRecord};
use querent_catalog::{Catalog, CatalogOptions};
use querent_tests::script::{run_sql, says};
use querent_tests::{ServerProcess, TestServer, TestSettings, wait_for};
use rusqlite::Connection;
use serde_json::json;

async fn started() -> TestServer {
    let turns = json!([{ "events": [run_sql("SELECT a FROM t")] }, says("done")]);
    let script = json!({ "runs": [{ "turns": turns, "repeat_last": true }] });
    let settings = TestSettings::default().tokens("ann-tok:read:ann,boss-tok:admin:boss").script(script);
    TestServer::start(settings.change(|settings| settings.audit.enabled = true)).await
}

async fn records(server: &TestServer) -> Vec<KeptRecord> {
    server.engine().catalog().audit().list(0, 1_000).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_is_recorded_with_what_it_did() {
    let server = started().await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4").await;
    server.execute("CREATE ROW POLICY small ON t USING (a < 2) TO PUBLIC").await;
    let query = async |sql: &str| server.post("/v1/query", &json!({ "sql": sql }), Some("ann-tok")).await;
    assert_eq!(query("SELECT a FROM t WHERE b = 2").await.status, 200);
    query("CREATE TABLE mine AS SELECT 1 AS a").await;
    query("SELECT nothing FROM t").await;
    query("SELECT 'qrt_0123456789abcdef' AS hidden, 'my password is x' AS p").await;
    let body = json!({ "db": "default", "csl": "t | count" });
    assert_eq!(server.post("/v2/rest/query", &body, Some("ann-tok")).await.status, 200);
    assert_eq!(server.post("/v1/agent/ask", &json!({ "question": "a?" }), Some("ann-tok")).await.status, 200);
    // Changes of Flight's clients are planned before they are executed.
    let mut flight = crate::attacks::flight(&server).await;
    flight.set_token("boss-tok".to_owned());
    flight.execute_update("CREATE TABLE sent AS SELECT 5 AS five".to_owned(), None).await.unwrap();
    let kept = records(&server).await;
    let find = |start: &str| {
        let found = kept.iter().find(|kept| kept.record.statement.starts_with(start));
        &found.unwrap_or_else(|| panic!("{start} is missing: {kept:#?}")).record
    };
    let selected = find("SELECT a FROM t WHERE b");
    assert_eq!((selected.subject.as_str(), selected.role.as_str(), selected.door.as_str()), ("ann", "read", "http"));
    assert_eq!((selected.tables.as_slice(), selected.rows), (&["default.t".to_owned()][..], 1));
    assert!(selected.columns.contains(&"default.t.a".to_owned()), "{selected:?}");
    assert_eq!(selected.policies, ["row policy small on default.t"]);
    let refused = find("CREATE TABLE mine");
    assert_eq!((refused.outcome, refused.error.as_deref()), (AuditOutcome::Refused, Some("not_allowed")));
    assert_eq!((find("SELECT nothing").outcome), AuditOutcome::Failed);
    assert_eq!(find("CREATE TABLE t").written.as_deref(), Some("default.t"));
    assert_eq!(find("CREATE TABLE t").door, "embedded");
    let sent = find("CREATE TABLE sent");
    assert_eq!((sent.door.as_str(), sent.written.as_deref()), ("flight", Some("default.sent")));
    assert_eq!(find("t | count").door, "http");
    assert_eq!(find("SELECT a FROM t").door, "http");
    assert!(
        kept.iter().any(|kept| kept.record.door == "agent" && kept.record.statement == "SELECT a FROM t"),
        "{kept:#?}"
    );
    let all = format!("{kept:?}");
    assert!(!all.contains("0123456789abcdef") && !all.contains("my password"), "{all}");
    // Administrators read it, others do not.
    let sql = json!({ "sql": "SELECT count(*) AS n FROM system.audit WHERE outcome = 'refused'" });
    assert_eq!(server.post("/v1/query", &sql, Some("boss-tok")).await.lines(), [json!({ "n": 1 })]);
    assert_eq!(server.post("/v1/query", &sql, Some("ann-tok")).await.json()["error"]["code"], "table_not_found");
    assert_eq!(server.get("/v1/audit", Some("ann-tok")).await.status, 403);
    let page = server.get("/v1/audit?after=1&limit=1", Some("boss-tok")).await.json();
    assert_eq!((page["records"][0]["seq"].as_i64(), page["records"].as_array().unwrap().len()), (Some(2), 1));
    let verified = server.get("/v1/audit/verify", Some("boss-tok")).await.json();
    assert_eq!(verified["fault"], json!(null), "{verified}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_without_a_statement_is_recorded_too() {
    let server = started().await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a").await;
    let import = async |token: &str, body: &'static str| {
        let url = server.url("/v1/import?table=sent&format=csv");
        server.http.post(url).bearer_auth(token).body(body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(import("boss-tok", "a\n1\n2\n").await, 200);
    assert_eq!(import("boss-tok", "a\n1\n").await, 409);
    let boss = Some("boss-tok");
    let made = server.post("/v1/tokens", &json!({ "name": "reader", "role": "read" }), boss).await.json();
    let secret = made["token"].as_str().unwrap().to_owned();
    server.send(server.http.delete(server.url(&format!("/v1/tokens/{}", made["id"]))), boss).await;
    let metric = json!({ "name": "m", "table": { "database": "default", "table": "t" }, "expression": "sum(a)" });
    assert_eq!(server.post("/v1/catalog/metrics", &metric, boss).await.status, 201);
    server.post("/v1/query", &json!({ "sql": "SELECT * FROM 's3://AKIAKEY:hushhush@bucket/x.csv'" }), boss).await;
    let kept = records(&server).await;
    let of = |start: &str| -> Vec<_> {
        kept.iter().map(|kept| &kept.record).filter(|record| record.statement.starts_with(start)).collect()
    };
    let [done, failed] = of("import into default.sent")[..] else { panic!("{kept:#?}") };
    assert_eq!((done.subject.as_str(), done.door.as_str(), done.rows), ("boss", "http", 2));
    assert_eq!((done.outcome, done.written.as_deref()), (AuditOutcome::Done, Some("default.sent")));
    assert_eq!((failed.outcome, failed.error.as_deref()), (AuditOutcome::Failed, Some("already_exists")));
    assert_eq!(of("CREATE TOKEN reader SUBJECT reader ROLE read").len(), 1);
    assert_eq!(of("REVOKE TOKEN").len(), 1);
    let [metric] = of("SELECT sum(a)")[..] else { panic!("{kept:#?}") };
    assert_eq!((metric.subject.as_str(), metric.door.as_str()), ("boss", "http"));
    let all = format!("{kept:?}");
    assert!(!all.contains(&secret) && !all.contains("hushhush") && !all.contains("AKIAKEY"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_log_is_noticed() {
    let server = started().await;
    for number in 0..10 {
        server.execute(&format!("SELECT {number} AS n")).await;
    }
    let audit = server.engine().catalog().audit();
    assert_eq!(audit.verify().await.unwrap().records, 10);
    let file = server.data().join("audit.sqlite");
    let other = Connection::open(&file).unwrap();
    let restore: (String, String) = other
        .query_row("SELECT record_json, hash FROM querent_audit WHERE seq = 4", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    other
        .execute(
            "UPDATE querent_audit SET record_json = replace(record_json, 'SELECT 3', 'SELECT 9') WHERE seq = 4",
            [],
        )
        .unwrap();
    assert_eq!(audit.verify().await.unwrap().fault.as_deref(), Some("record 4 is not what was written"));
    other.execute("UPDATE querent_audit SET record_json = ? WHERE seq = 4", [&restore.0]).unwrap();
    assert_eq!(audit.verify().await.unwrap().fault, None);
    other.execute("DELETE FROM querent_audit WHERE seq = 7", []).unwrap();
    assert_eq!(audit.verify().await.unwrap().fault.as_deref(), Some("record 7 is missing"));
    other.execute("UPDATE querent_audit SET seq = seq - 1 WHERE seq > 7", []).unwrap();
    assert_eq!(audit.verify().await.unwrap().fault.as_deref(), Some("record 7 is not what was written"));
    // A file that is none any more does not keep the rest of the folder from being checked.
    drop(other);
    let data = server.stop().await;
    std::fs::write(data.path().join("audit.sqlite"), "no database, just a text that is long enough to be read")
        .unwrap();
    let catalog = Catalog::open(CatalogOptions::new(data.path())).await.unwrap();
    let faults = catalog.check(None).await.unwrap().faults;
    assert!(faults.len() == 1 && faults[0].starts_with("the audit log: audit.sqlite is damaged"), "{faults:?}");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_does_not_break_the_chain() {
    let server = started().await;
    for number in 0..10 {
        server.execute(&format!("SELECT {number} AS n")).await;
    }
    let audit = server.engine().catalog().audit();
    let kept = records(&server).await;
    assert_eq!(audit.forget(kept[2].record.at, 1_000).await.unwrap(), 2);
    assert_eq!(audit.forget(chrono::DateTime::UNIX_EPOCH, 5).await.unwrap(), 3);
    let check = audit.verify().await.unwrap();
    assert_eq!((check.records, check.fault), (5, None));
    server.execute("SELECT 'later' AS n").await;
    let data = server.stop().await;
    let settings = TestSettings::default().change(|settings| settings.audit.enabled = true);
    let server = TestServer::start_in(data, settings).await;
    server.execute("SELECT 'after a restart' AS n").await;
    let check = server.engine().catalog().audit().verify().await.unwrap();
    assert_eq!((check.records, check.fault, check.head.map(|head| head.0)), (7, None, Some(12)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_wrong_for_a_moment_loses_no_record() {
    let server = started().await;
    for number in 0..4 {
        server.execute(&format!("SELECT {number} AS n")).await;
    }
    let audit = server.engine().catalog().audit();
    let kept = records(&server).await;
    // As a clock that was set to 1970 while the third came.
    let other = Connection::open(server.data().join("audit.sqlite")).unwrap();
    other.execute("UPDATE querent_audit SET at = 0 WHERE seq = 3", []).unwrap();
    assert_eq!(audit.forget(kept[0].record.at, 1_000).await.unwrap(), 0);
    assert_eq!(records(&server).await.len(), 4);
    assert_eq!(audit.forget(chrono::Utc::now() + chrono::TimeDelta::days(1), 1_000).await.unwrap(), 4);
}

#[tokio::test]
async fn slow_statements_are_logged_without_secrets() {
    let folder = tempfile::TempDir::new().unwrap();
    let log = folder.path().join("log.txt");
    let settings = [("QUERENT_LOG", "warn"), ("QUERENT_LOG_FORMAT", "json"), ("QUERENT_LOG_SLOW_QUERY", "300ms")];
    let server = ServerProcess::start_with_log(&settings, &log);
    let slow = "SELECT sum(value) AS n, 'qrt_0123456789abcdef' AS hidden FROM generate_series(1, 20000000)";
    let http = reqwest::Client::new();
    for sql in ["SELECT 1", slow] {
        let sent = http.post(format!("{}/v1/query", server.url)).json(&json!({ "sql": sql })).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
    }
    let lines = wait_for("the slow statement in the log", async || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.contains("slow query").then_some(text)
    })
    .await;
    let logged: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let found: Vec<_> = logged.iter().filter(|line| line.to_string().contains("slow query")).collect();
    let [one] = found[..] else { panic!("one of the two is slow: {lines}") };
    assert_eq!((&one["door"], &one["rows"]), (&json!("http"), &json!(1)), "{one}");
    assert!(one["elapsed_ms"].as_u64().is_some_and(|elapsed| elapsed >= 300), "{one}");
    let statement = one["statement"].as_str().unwrap();
    assert!(statement.contains("generate_series") && !statement.contains("0123456789"), "{one}");
}

//! What a session may do: every statement kind that DataFusion or its parser knows, sent through read-only mode and
//! through role `read`, changes nothing; limits cut, stop and spill; dropping a stream stops its query.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_catalog::{Principal, Role};
use querent_engine::{Engine, EngineOptions, Limits, Session};
use querent_tests::{wait_until, wait_until_memory_is_free};
use tempfile::TempDir;

use crate::sql::{admin, engine, rows};

/// Every kind of statement that is not a query, with the code by which read-only mode refuses it.
const NOT_QUERIES: &[(&str, &str)] = &[
    // Changes that a writer may make.
    ("INSERT INTO t VALUES (3)", "not_allowed"),
    ("INSERT INTO t SELECT a FROM t", "not_allowed"),
    ("INSERT OVERWRITE t SELECT 9", "not_allowed"),
    ("CREATE TABLE made (a INT)", "not_allowed"),
    ("CREATE TABLE made AS SELECT 1 AS a", "not_allowed"),
    ("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a", "not_allowed"),
    ("CREATE OR REPLACE TABLE t AS SELECT 1 AS a", "not_allowed"),
    ("CREATE VIEW made AS SELECT 1 AS a", "not_allowed"),
    ("CREATE OR REPLACE VIEW v AS SELECT 1 AS a", "not_allowed"),
    ("CREATE EXTERNAL TABLE made STORED AS CSV LOCATION '/etc/passwd'", "not_allowed"),
    ("CREATE EXTERNAL TABLE made STORED AS PARQUET LOCATION 's3://bucket/a'", "not_allowed"),
    ("CREATE EXTERNAL TABLE made STORED AS CSV LOCATION 'http://169.254.169.254/'", "not_allowed"),
    ("CREATE SCHEMA made", "not_allowed"),
    ("CREATE DATABASE made", "not_allowed"),
    ("CREATE SCHEMA IF NOT EXISTS other", "not_allowed"),
    ("DROP TABLE t", "not_allowed"),
    ("DROP TABLE IF EXISTS nothing", "not_allowed"),
    ("DROP VIEW v", "not_allowed"),
    ("DROP SCHEMA other", "not_allowed"),
    ("DROP SCHEMA other CASCADE", "not_allowed"),
    ("DROP DATABASE other", "not_allowed"),
    ("COMMENT ON TABLE t IS 'x'", "not_allowed"),
    ("COMMENT ON COLUMN t.a IS 'x'", "not_allowed"),
    ("COMMENT ON SCHEMA other IS 'x'", "not_allowed"),
    // What DataFusion plans and nobody may run.
    ("COPY t TO '{files}/out.parquet'", "not_allowed"),
    ("COPY (SELECT * FROM t) TO '{files}/out.csv'", "not_allowed"),
    ("COPY (SELECT * FROM t) TO '{files}/out' STORED AS JSON", "not_allowed"),
    ("DELETE FROM t", "not_allowed"),
    ("DELETE FROM t WHERE a IN (SELECT a FROM t)", "not_allowed"),
    ("UPDATE t SET a = 2", "not_allowed"),
    ("TRUNCATE TABLE t", "not_allowed"),
    ("SET datafusion.execution.batch_size = 1", "unsupported"),
    ("SET TIME ZONE 'UTC'", "*"),
    ("RESET datafusion.execution.batch_size", "unsupported"),
    ("BEGIN", "*"),
    ("START TRANSACTION", "not_allowed"),
    ("COMMIT", "not_allowed"),
    ("ROLLBACK", "not_allowed"),
    ("PREPARE p AS SELECT 1", "unsupported"),
    ("PREPARE p AS INSERT INTO t VALUES (3)", "unsupported"),
    ("EXECUTE p(1)", "unsupported"),
    ("DEALLOCATE p", "*"),
    ("CREATE INDEX i ON t (a)", "not_allowed"),
    ("CREATE FUNCTION f(DOUBLE) RETURNS DOUBLE RETURN $1", "not_allowed"),
    ("DROP FUNCTION f", "not_allowed"),
    // Writes inside something that looks like a query.
    ("EXPLAIN INSERT INTO t VALUES (3)", "not_allowed"),
    ("EXPLAIN ANALYZE INSERT INTO t VALUES (3)", "not_allowed"),
    ("EXPLAIN ANALYZE DELETE FROM t", "not_allowed"),
    ("EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1 AS a", "not_allowed"),
    ("EXPLAIN ANALYZE COPY t TO '{files}/out.parquet'", "not_allowed"),
    ("EXPLAIN VERBOSE CREATE VIEW made AS SELECT 1 AS a", "not_allowed"),
    ("WITH w AS (SELECT 3 AS a) INSERT INTO t SELECT a FROM w", "*"),
    ("WITH w AS (INSERT INTO t VALUES (3) RETURNING a) SELECT * FROM w", "*"),
    ("SELECT * FROM (INSERT INTO t VALUES (3))", "*"),
    ("SELECT (DELETE FROM t)", "*"),
    ("SELECT 1 UNION ALL DELETE FROM t", "*"),
    ("SELECT a INTO made FROM t", "*"),
    // Stacked statements.
    ("SELECT 1; DROP TABLE t", "multiple_statements"),
    ("SELECT 1;; INSERT INTO t VALUES (3);", "multiple_statements"),
    ("COMMIT; DROP TABLE t", "multiple_statements"),
    ("/* SELECT */ SELECT 1; SET a = 1", "multiple_statements"),
    // What only the parser knows.
    ("ALTER TABLE t ADD COLUMN b INT", "*"),
    ("ALTER TABLE t RENAME TO u", "*"),
    ("ALTER VIEW v AS SELECT 2 AS a", "*"),
    ("ALTER SCHEMA other RENAME TO another", "*"),
    ("ANALYZE TABLE t COMPUTE STATISTICS", "*"),
    ("ATTACH DATABASE 'x.db' AS x", "*"),
    ("DETACH DATABASE x", "*"),
    ("CACHE TABLE t", "*"),
    ("UNCACHE TABLE t", "*"),
    ("CALL p()", "*"),
    ("CLOSE c", "*"),
    ("DECLARE c CURSOR FOR SELECT 1", "*"),
    ("FETCH NEXT FROM c", "*"),
    ("CREATE MATERIALIZED VIEW made AS SELECT 1 AS a", "*"),
    ("CREATE TEMPORARY TABLE made (a INT)", "*"),
    ("CREATE ROLE r", "*"),
    ("CREATE USER u", "*"),
    ("CREATE SEQUENCE s", "*"),
    ("CREATE TYPE e AS ENUM ('a')", "*"),
    ("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()", "*"),
    ("CREATE PROCEDURE p AS BEGIN SELECT 1; END", "*"),
    ("CREATE EXTENSION httpfs", "*"),
    ("CREATE SECRET s (TYPE S3)", "*"),
    ("CREATE STAGE s", "*"),
    ("CREATE POLICY p ON t", "*"),
    ("CREATE MACRO m(a) AS a + 1", "*"),
    ("DROP ROLE r", "*"),
    ("DROP INDEX i", "*"),
    ("DROP SEQUENCE s", "*"),
    ("GRANT SELECT ON t TO u", "*"),
    ("REVOKE SELECT ON t FROM u", "*"),
    ("DENY SELECT ON t TO u", "*"),
    ("INSTALL httpfs", "*"),
    ("LOAD httpfs", "*"),
    ("LOAD DATA INPATH '/x' INTO TABLE t", "*"),
    ("KILL 1", "*"),
    ("LISTEN c", "*"),
    ("NOTIFY c", "*"),
    ("LOCK TABLES t READ", "*"),
    ("UNLOCK TABLES", "*"),
    ("MERGE INTO t USING v ON t.a = v.a WHEN MATCHED THEN DELETE", "*"),
    ("MSCK REPAIR TABLE t", "*"),
    ("OPTIMIZE TABLE t", "*"),
    ("PRAGMA table_info(t)", "*"),
    ("REPLACE INTO t VALUES (3)", "*"),
    ("SAVEPOINT s", "*"),
    ("RELEASE SAVEPOINT s", "*"),
    ("USE other", "*"),
    ("VACUUM", "*"),
    ("UNLOAD ('SELECT 1') TO 's3://bucket/a'", "*"),
    ("EXPORT DATA OPTIONS (uri='gs://b') AS SELECT 1", "*"),
    ("PRINT 'a'", "*"),
    ("RAISERROR('a', 1, 1)", "*"),
    ("WAITFOR DELAY '00:00:10'", "*"),
    ("LIST @stage", "*"),
    ("REMOVE @stage", "*"),
    ("PUT file:///etc/passwd @stage", "*"),
    // Files and addresses where a table is expected.
    ("SELECT * FROM '/etc/passwd'", "unsupported"),
    ("SELECT * FROM '{files}/secret.csv'", "not_allowed"),
    ("SELECT * FROM \"file:///etc/passwd\"", "table_not_found"),
    ("SELECT * FROM 'http://169.254.169.254/latest'", "unsupported"),
    ("SELECT * FROM read_csv('/etc/passwd')", "not_allowed"),
    ("SELECT * FROM read_parquet('{files}/secret.csv')", "not_allowed"),
    ("SELECT read_text('/etc/passwd')", "function_not_found"),
    ("SELECT pg_read_file('/etc/passwd')", "function_not_found"),
    ("SELECT @@version", "*"),
    ("SELECT $1", "sql_plan_error"),
    ("", "empty_query"),
    ("-- nothing", "empty_query"),
];

/// Statements that are queries in every mode.
const QUERIES: &[&str] = &[
    "SELECT * FROM t",
    "(SELECT a FROM t)",
    "/* INSERT INTO t */ SELECT 'DROP TABLE t'",
    "SELECT 1;",
    "VALUES (1), (2)",
    "WITH w AS (SELECT * FROM t) SELECT count(*) FROM w",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r",
    "SELECT * FROM v",
    "SELECT a, (SELECT max(a) FROM t) FROM t WHERE EXISTS (SELECT 1 FROM t) AND a IN (SELECT a FROM v)",
    "SELECT a FROM t UNION SELECT 7 EXCEPT SELECT 8 INTERSECT SELECT 9",
    "SELECT sum(a) OVER (ORDER BY a), row_number() OVER () FROM t",
    "SELECT a FROM t GROUP BY ROLLUP (a)",
    "SELECT DISTINCT ON (a) a FROM t ORDER BY a",
    "SELECT * FROM generate_series(1, 3)",
    "SELECT unnest([1, 2, 3])",
    "SELECT a FROM t LIMIT 1 OFFSET 1",
    "EXPLAIN SELECT * FROM t",
    "EXPLAIN ANALYZE SELECT * FROM t",
    "EXPLAIN VERBOSE SELECT * FROM t",
    "DESCRIBE t",
    "SHOW COLUMNS FROM t",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_queries_in_read_only_mode_and_for_role_read() {
    let (folder, engine) = prepared().await;
    let before = state(folder.path(), &engine).await;
    let read_only = admin(&engine).read_only();
    let reader = engine.session(Principal::new("reader", Role::Read), Limits::default());
    for (statement, code) in NOT_QUERIES {
        let statement = statement.replace("{files}", &folder.path().display().to_string());
        for (kind, session) in [("read-only", &read_only), ("role read", &reader)] {
            match rows(session, &statement).await {
                Ok(rows) => panic!("{kind} let through `{statement}`: {rows:?}"),
                Err(error) if *code == "*" => {
                    // A reader may end a query of its own, and has none.
                    let refusals = [
                        "not_allowed",
                        "unsupported",
                        "sql_parse_error",
                        "sql_plan_error",
                        "multiple_statements",
                        "object_not_found",
                    ];
                    assert!(refusals.contains(&error.code()), "{kind}: `{statement}`: {}: {error}", error.code());
                }
                Err(error) => assert_eq!(error.code(), *code, "{kind}: `{statement}`: {error}"),
            }
        }
    }
    assert_eq!(state(folder.path(), &engine).await, before, "nothing changed");
    for query in QUERIES {
        for session in [&read_only, &reader] {
            if let Err(error) = rows(session, query).await {
                panic!("`{query}`: {}: {error}", error.code());
            }
        }
    }
    assert_eq!(state(folder.path(), &engine).await, before, "nothing changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_may_run_is_refused_for_administrators_too() {
    let (folder, engine) = prepared().await;
    let before = state(folder.path(), &engine).await;
    let session = admin(&engine);
    let refused_for_all = [
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN UPDATE t SET a = 2",
        "UPDATE t SET a = 2 ORDER BY a LIMIT 1",
        "ALTER TABLE t ADD COLUMN b INT DEFAULT random()",
        "ALTER TABLE t ALTER COLUMN a TYPE VARCHAR",
        "TRUNCATE TABLE t, u",
        "SET datafusion.execution.batch_size = 1",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "CREATE FUNCTION f(DOUBLE) RETURNS DOUBLE RETURN $1",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (3)",
        "CREATE TABLE made (a INT PRIMARY KEY ENFORCED)",
        "CREATE TABLE made (a INT DEFAULT (SELECT 1))",
        "CREATE TABLE made (a INT, b INT GENERATED ALWAYS AS (a + 1))",
        "CREATE TABLE made (a INT CHECK (a > 0))",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO t VALUES (1)",
    ];
    for statement in refused_for_all {
        let statement = statement.replace("{files}", &folder.path().display().to_string());
        match rows(&session, &statement).await {
            Ok(rows) => panic!("`{statement}` ran: {rows:?}"),
            Err(error) => assert_eq!(error.code(), "unsupported", "`{statement}`: {error}"),
        }
    }
    let kept_by_us =
        ["CREATE TABLE system.made (a INT)", "DROP SCHEMA information_schema CASCADE", "CREATE SCHEMA System"];
    for statement in kept_by_us {
        assert_eq!(rows(&session, statement).await.unwrap_err().code(), "not_allowed", "`{statement}`");
    }
    for of_a_view in
        ["INSERT INTO v VALUES (1)", "DELETE FROM v", "UPDATE v SET a = 1", "ALTER TABLE v ADD COLUMN b INT"]
    {
        assert_eq!(rows(&session, of_a_view).await.unwrap_err().code(), "not_allowed", "`{of_a_view}`");
    }
    assert_eq!(state(folder.path(), &engine).await, before, "nothing changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_reaches_only_its_databases() {
    let (_folder, engine) = prepared().await;
    let scoped = Principal::new("scoped", Role::Write).with_databases(["Default"]);
    let session = engine.session(scoped, Limits::default());
    assert_eq!(rows(&session, "SELECT a FROM t ORDER BY a").await.unwrap(), [["1"], ["2"]]);
    let hidden = [
        "SELECT * FROM other.secrets",
        "SELECT * FROM OTHER.Secrets",
        "SELECT * FROM querent.other.secrets",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM other.secrets)",
        "WITH w AS (SELECT * FROM other.secrets) SELECT 1",
        "EXPLAIN SELECT * FROM other.secrets",
        "DESCRIBE other.secrets",
        "INSERT INTO other.secrets VALUES ('x')",
        "CREATE TABLE other.made (a INT)",
        "CREATE TABLE made AS SELECT * FROM other.secrets",
        "CREATE VIEW other.made AS SELECT 1 AS a",
        "DELETE FROM other.secrets",
        "UPDATE other.secrets SET a = 'x'",
        "ALTER TABLE other.secrets ADD COLUMN b INT",
        "DROP TABLE other.secrets",
        "DROP TABLE IF EXISTS other.secrets",
        "DROP SCHEMA other CASCADE",
        "COMMENT ON TABLE other.secrets IS 'x'",
        "COMMENT ON SCHEMA other IS 'x'",
    ];
    for statement in hidden {
        let error = rows(&session, statement).await.unwrap_err();
        assert_eq!(error.code(), "database_not_found", "`{statement}`: {error}");
        assert!(!error.to_string().contains("secrets`;"), "no hint about what is hidden: {error}");
    }
    let through_a_view = rows(&session, "SELECT * FROM peek").await.unwrap_err();
    assert_eq!(through_a_view.code(), "table_not_found", "{through_a_view}");
    assert!(!through_a_view.to_string().contains("did you mean"), "{through_a_view}");
    assert_eq!(rows(&session, "CREATE SCHEMA mine").await.unwrap_err().code(), "not_allowed");
    assert_eq!(session.clone().with_database("other").await.err().unwrap().code(), "database_not_found");
    assert_eq!(rows(&admin(&engine), "SELECT * FROM other.secrets").await.unwrap(), [["hush"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn external_tables_stay_where_the_caller_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().join("allowed");
    let outside = folder.path().join("outside");
    for dir in [&allowed, &outside] {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("a.csv"), "x\n1\n").unwrap();
    }
    std::os::unix::fs::symlink(&outside, allowed.join("link")).unwrap();
    let mut options = EngineOptions::new(folder.path().join("data"));
    options.external_roots = vec![allowed.clone()];
    let engine = Engine::open_with(options).await.unwrap();
    let writer = engine.session(Principal::new("writer", Role::Write), Limits::default());
    let refused = [
        outside.join("a.csv").display().to_string(),
        allowed.join("link/a.csv").display().to_string(),
        allowed.join("../outside/a.csv").display().to_string(),
        format!("file://{}", outside.join("a.csv").display()),
        folder.path().join("data/catalog.sqlite").display().to_string(),
        format!("{}/*/a.csv", folder.path().display()),
        "/etc/passwd".to_owned(),
        "s3://bucket/a.csv".to_owned(),
        "https://example.org/a.csv".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "file://host/a.csv".to_owned(),
        String::new(),
    ];
    for location in refused {
        let statement = format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{location}'");
        let error = rows(&writer, &statement).await.unwrap_err();
        assert_eq!(error.code(), "location_not_allowed", "{location}: {error}");
    }
    let own = folder.path().join("data/data").display().to_string();
    let own_files = format!("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{own}'");
    assert_eq!(rows(&admin(&engine), &own_files).await.unwrap_err().code(), "location_not_allowed");
}

/// Returns an engine whose external tables may lie in one folder, that folder, and another one; each has a file `a.csv`.
pub(crate) async fn engine_with_a_root() -> (TempDir, Engine, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let [allowed, outside] = ["allowed", "outside"].map(|name| folder.path().join(name));
    for dir in [&allowed, &outside] {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("a.csv"), "x\n7\n").unwrap();
    }
    let mut options = EngineOptions::new(folder.path().join("data"));
    options.external_roots = vec![allowed.clone()];
    let engine = Engine::open_with(options).await.unwrap();
    (folder, engine, allowed, outside)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_by_their_names_where_external_tables_may_be_made() {
    let (folder, engine, allowed, outside) = engine_with_a_root().await;
    let inside = format!("SELECT x FROM '{}/a.csv'", allowed.display());
    let beyond = format!("SELECT x FROM read_csv('{}/a.csv')", outside.display());
    let own = format!("SELECT * FROM '{}/data/*.sqlite'", folder.path().display());
    let copy = format!("COPY (SELECT 1 AS x) TO '{}/made.csv'", allowed.display());
    let writer = engine.session(Principal::new("writer", Role::Write), Limits::default());
    assert_eq!(rows(&writer, &inside).await.unwrap(), [["7"]]);
    assert_eq!(rows(&writer, &beyond).await.unwrap_err().code(), "location_not_allowed");
    assert_eq!(rows(&writer, &copy).await.unwrap_err().code(), "not_allowed", "files are written by administrators");
    let administrator = admin(&engine);
    assert_eq!(rows(&administrator, &beyond).await.unwrap(), [["7"]]);
    assert_eq!(rows(&administrator, &own).await.unwrap_err().code(), "location_not_allowed");
    assert_eq!(rows(&administrator, &copy).await.unwrap(), [["1"]]);
    // What runs on somebody's behalf reads and writes none, whatever that one may.
    let agent = admin(&engine).without_files();
    for statement in [&inside, &copy, &format!("CREATE TABLE t AS {inside}"), &format!("EXPLAIN {inside}")] {
        let error = rows(&agent, statement).await.unwrap_err();
        assert_eq!(error.code(), "not_allowed", "{statement}: {error}");
    }
    assert_eq!(agent.describe_sql(&inside).await.unwrap_err().code(), "not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_bytes_are_cut_exactly() {
    let (_folder, engine) = engine().await;
    let principal = Principal::local_admin();
    let limited = |limits: Limits| engine.session(principal.clone(), limits);

    let ten = limited(Limits { max_rows: Some(10), ..Limits::default() });
    for (sql, expected, truncated) in [
        ("SELECT * FROM generate_series(1, 100000)", 10, true),
        ("SELECT * FROM generate_series(1, 100000) ORDER BY 1 DESC", 10, true),
        ("SELECT * FROM generate_series(1, 10)", 10, false),
        ("SELECT * FROM generate_series(1, 11)", 10, true),
        ("SELECT * FROM generate_series(1, 100) LIMIT 10", 10, false),
        ("SELECT * FROM generate_series(1, 100) LIMIT 5", 5, false),
    ] {
        let (batches, stats) = ten.sql(sql).await.unwrap().collect().await.unwrap();
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!((rows, stats.rows, stats.truncated), (expected, expected as u64, truncated), "{sql}");
    }
    let none = limited(Limits { max_rows: Some(0), ..Limits::default() });
    let (_, stats) = none.sql("SELECT 1").await.unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (0, true));

    let kilobyte = limited(Limits { max_bytes: Some(1_000), ..Limits::default() });
    let (_, stats) = kilobyte.sql("SELECT * FROM generate_series(1, 100000)").await.unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.bytes, stats.truncated), (125, 1_000, true), "eight bytes a row");
    let (_, stats) = kilobyte.sql("SELECT * FROM generate_series(1, 125)").await.unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.truncated), (125, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out() {
    let (_folder, engine) = engine().await;
    let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    let forever = [
        "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a.value + b.value < 0",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "CREATE TABLE big AS SELECT a.value FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    ];
    for sql in forever {
        let started = Instant::now();
        let error = rows(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "wall_clock_exceeded", "{sql}: {error}");
        assert!(started.elapsed() < Duration::from_secs(10), "{sql} took {:?}", started.elapsed());
    }
    assert_eq!(rows(&session, "SELECT * FROM big").await.unwrap_err().code(), "table_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_and_sorts_spill() {
    let (folder, engine) = engine().await;
    let limits = Limits { memory_bytes: 24 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    let sorted = "SELECT value, repeat('x', 50) AS pad FROM generate_series(1, 600000) ORDER BY random()";
    let (_, stats) = session.sql(sorted).await.unwrap().collect().await.unwrap();
    assert_eq!(stats.rows, 600_000, "more than the limit, spilled");
    // One value cannot be in parts.
    let gathered = "SELECT array_agg(value) FROM generate_series(1, 5000000) AS t(value)";
    let error = rows(&session, gathered).await.unwrap_err();
    assert_eq!(error.code(), "memory_exceeded", "{error}");
    wait_until_memory_is_free(&engine).await;
    // The memory is given back at the deadline or the error; the tasks that hold the files end a moment later.
    let spilled = || files_below(&folder.path().join("data/spill"));
    wait_until("no spill file is left", async || spilled() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_stream_stops_its_query() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let sql = "SELECT value * 7919 % 100000007 AS k, count(*) FROM generate_series(1, 100000000) GROUP BY k";
    let mut stream = session.sql(sql).await.unwrap();
    let polled = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
    assert!(polled.is_err(), "the query is still at work: {polled:?}");
    assert!(engine.memory_reserved_bytes() > 0);
    drop(stream);
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_that_nobody_waits_for_free_their_threads() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    // Rejects every pair, so that it never has a row to hand on.
    let endless = "SELECT a.value FROM generate_series(1, 3000000) a JOIN generate_series(1, 3000000) b \
                   ON a.value + b.value < 0";
    let kept = "CREATE TABLE never AS ".to_owned() + endless;
    for _ in 0..4 {
        let mut stream = session.sql(endless).await.unwrap();
        let polled = tokio::time::timeout(Duration::from_millis(200), stream.next()).await;
        assert!(polled.is_err(), "the join is still at work: {polled:?}");
        drop(stream);
        let abandoned = tokio::time::timeout(Duration::from_millis(200), session.sql(&kept)).await;
        assert!(abandoned.is_err(), "the statement is still at work");
    }
    let started = Instant::now();
    assert_eq!(rows(&session, "SELECT 1").await.unwrap(), [["1"]]);
    assert!(started.elapsed() < Duration::from_secs(5), "answered after {:?}", started.elapsed());
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn depth_and_growth_are_bounded() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let deep = [
        format!("SELECT 1{}", " + 1".repeat(50_000)),
        format!("SELECT {}1{}", "(".repeat(500), ")".repeat(500)),
        format!("SELECT {}1", "NOT ".repeat(5_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(20_000)),
        format!("SELECT {} 1 {}", "abs(".repeat(1_000), ")".repeat(1_000)),
        format!("{} SELECT 1 {}", "SELECT * FROM (".repeat(300), ")".repeat(300)),
    ];
    for sql in &deep {
        let error = rows(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "sql_plan_error", "{}...: {error}", &sql[..40]);
    }
    // What people and programs do write runs.
    for sql in [
        format!("SELECT {}true", "NOT ".repeat(40)),
        format!("SELECT {}1{}", "abs(".repeat(40), ")".repeat(40)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(40), " END".repeat(40)),
        format!("{}SELECT 1{}", "SELECT * FROM (".repeat(25), ")".repeat(25)),
        format!("SELECT 1 WHERE 1 IN {}(1){}", "(SELECT 1 WHERE 1 IN ".repeat(12), ")".repeat(12)),
    ] {
        run(&session, &sql).await;
    }
    let or_chain = format!("SELECT count(*) FROM generate_series(1, 10) WHERE {}", vec!["value = 1"; 480].join(" OR "));
    assert_eq!(rows(&session, &or_chain).await.unwrap(), [["1"]]);
    let unions = vec!["SELECT 1"; 500].join(" UNION ALL ");
    assert_eq!(rows(&session, &format!("SELECT count(*) FROM ({unions})")).await.unwrap(), [["500"]]);
    let list = (0..20_000).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let in_list = format!("SELECT count(*) FROM generate_series(1, 10) WHERE value IN ({list})");
    assert_eq!(rows(&session, &in_list).await.unwrap(), [["10"]]);

    for grown in [
        "SELECT repeat('x', 2000000000)",
        "SELECT repeat(repeat('x', 100000), value * 3000) FROM generate_series(1, 8000)",
        "SELECT range(1, 1000000000)",
        "SELECT generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2001-01-01', INTERVAL '1 microsecond')",
        "SELECT array_repeat(1, 1000000000)",
        "SELECT lpad('x', 1000000000)",
        "SELECT array_resize(make_array(arrow_cast('a', 'LargeUtf8')), 30000000, arrow_cast(repeat('x', 200000000), 'LargeUtf8'))",
        "SELECT replace(repeat('a', 10000), 'a', repeat('b', 100000))",
        "SELECT range(TIMESTAMP '2023-02-01', TIMESTAMP '2024-01-01', INTERVAL '1 month -28 days')",
        "SELECT levenshtein(repeat('x', 200000), repeat('y', 200000))",
    ] {
        let error = rows(&session, grown).await.unwrap_err();
        assert_eq!(error.code(), "invalid_value", "{grown}: {error}");
        assert!(error.to_string().contains("makes at most"), "{grown}: {error}");
    }
    assert_eq!(rows(&session, "SELECT length(repeat('ab', 1000))").await.unwrap(), [["2000"]]);

    rows(&session, "CREATE VIEW v0 AS SELECT 1 AS a").await.unwrap();
    let mut refused = None;
    for level in 1..40 {
        let below = level - 1;
        let sql = format!("CREATE VIEW v{level} AS SELECT x.a FROM v{below} x JOIN v{below} y ON x.a = y.a");
        if let Err(error) = rows(&session, &sql).await {
            refused = Some((level, error));
            break;
        }
    }
    let (level, error) = refused.expect("views that double each level are bounded");
    assert_eq!(error.code(), "sql_plan_error");
    assert!(level > 5, "level {level}: {error}");
}

/// An engine with a table, a view and a second database.
async fn prepared() -> (tempfile::TempDir, Engine) {
    let (folder, engine) = engine().await;
    std::fs::write(folder.path().join("secret.csv"), "a\n1\n").unwrap();
    let session = admin(&engine);
    for statement in [
        "CREATE TABLE t AS SELECT a FROM (VALUES (1), (2)) AS x(a)",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE SCHEMA other",
        "CREATE TABLE other.secrets AS SELECT 'hush' AS word",
        "CREATE VIEW peek AS SELECT * FROM other.secrets",
    ] {
        run(&session, statement).await;
    }
    (folder, engine)
}

async fn run(session: &Session, statement: &str) {
    if let Err(error) = rows(session, statement).await {
        panic!("`{statement}`: {}: {error}", error.code());
    }
}

/// Returns what a statement that changes anything would change: the catalog's snapshot and the list of files.
async fn state(folder: &Path, engine: &Engine) -> (i64, usize, usize) {
    let snapshot = engine.catalog().snapshot().await.unwrap();
    (snapshot, files_below(&folder.join("data/data")), std::fs::read_dir(folder).unwrap().count())
}

fn files_below(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { files_below(&path) } else { 1 }
        })
        .sum()
}

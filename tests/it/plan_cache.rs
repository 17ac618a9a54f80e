//! Statements that come again: the rows and errors of one that was never planned before, whatever has changed since.

mod changes;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use querent_catalog::audit::AuditRecord;
use querent_catalog::{Principal, Role};
use querent_engine::{Engine, EngineError, EngineOptions, Limits, ScalarValue, Session};
use querent_tests::{TestServer, TestSettings};
use serde_json::json;
use tempfile::TempDir;

use crate::policies::run;
use crate::sql::{admin, cells, engine, rows};

/// Enough for a plan to be kept, to be made ready, and to be used as it is.
const USES: usize = 4;

const SETUP: [&str; 4] = [
    "CREATE TABLE t AS SELECT CAST(value AS INT) AS a, value AS b, 'word ' || value AS c, value % 3 = 0 AS d, \
     CAST(value AS DOUBLE) / 2 AS e, CAST(value AS DECIMAL(10, 2)) AS f, DATE '2024-01-01' + CAST(value AS INT) AS g, \
     TIMESTAMP '2024-01-01 00:00:00' + value * INTERVAL '1 hour' AS h, CASE WHEN value % 5 = 0 THEN NULL ELSE value END AS n \
     FROM generate_series(1, 500) AS s(value)",
    "CREATE TABLE u AS SELECT value AS b, 'other ' || value AS o FROM generate_series(1, 50) AS s(value)",
    "CREATE VIEW v AS SELECT a, b * 2 AS twice, c FROM t WHERE a > 10",
    "CREATE DATABASE other",
];

async fn engine_without_cache() -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { plan_cache_bytes: 0, ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    (folder, engine)
}

/// Runs a statement with values; returns its cells in order, or the error's code and message.
pub(crate) async fn answer(session: &Session, sql: &str, values: Vec<ScalarValue>) -> Result<Vec<Vec<String>>, String> {
    let found = async {
        let stream = session.sql_with_params(sql, values).await?;
        let schema = stream.schema();
        let (batches, _) = stream.collect().await?;
        Ok::<_, EngineError>(cells(&schema, &batches))
    };
    let mut found = found.await.map_err(|error| format!("{}: {error}", error.code()))?;
    if !sql.contains("ORDER BY") {
        found.sort();
    }
    Ok(found)
}

fn int(value: i64) -> ScalarValue {
    ScalarValue::Int64(Some(value))
}

fn text(value: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(value.to_owned()))
}

fn null() -> ScalarValue {
    ScalarValue::Null
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_those_of_a_statement_that_is_planned_anew() {
    let (_folder, kept) = engine().await;
    let (_other_folder, plain) = engine_without_cache().await;
    let (session, expected) = (admin(&kept), admin(&plain));
    for session in [&session, &expected] {
        run(session, &SETUP).await;
    }
    let before = kept.plan_cache();
    let mut statements = 0;
    for sql in [
        "SELECT 1",
        "SELECT a, c FROM t WHERE a = 7",
        "SELECT a, c FROM t WHERE a IN (7, 8, 900) ORDER BY a DESC",
        "SELECT d, count(*), sum(b), avg(e), min(f), max(g) FROM t GROUP BY d",
        "SELECT count(*) FROM t WHERE h BETWEEN '2024-01-02' AND '2024-01-03'",
        "SELECT t.a, u.o FROM t JOIN u ON t.b = u.b WHERE u.b > 45 ORDER BY 1",
        "SELECT t.a, u.o FROM t LEFT JOIN u ON t.b = u.b AND u.b < 3 WHERE t.a < 6 ORDER BY 1",
        "SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE o LIKE '%7') ORDER BY 1",
        "SELECT a, (SELECT max(o) FROM u WHERE u.b = t.b) AS o FROM t WHERE a < 4 ORDER BY 1",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.b > 48) ORDER BY 1",
        "WITH x AS (SELECT a, b FROM t WHERE d) SELECT count(*), sum(x.b) FROM x JOIN x AS y ON x.a = y.a",
        "SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1 LIMIT 5",
        "SELECT a, row_number() OVER (PARTITION BY d ORDER BY a) AS r FROM t ORDER BY 1 LIMIT 7",
        "SELECT twice, c FROM v WHERE twice < 30 ORDER BY 1",
        "SELECT * FROM v WHERE a = 12",
        "SELECT DISTINCT d FROM t ORDER BY 1",
        "SELECT n, coalesce(n, -1) AS filled FROM t WHERE a BETWEEN 3 AND 11 ORDER BY a",
        "SELECT upper(c) AS x, a + 1 AS y FROM t WHERE length(c) = 6 ORDER BY 2",
        "SELECT sum(value) FROM generate_series(1, 10) AS s(value)",
        "SELECT unnest([1, 2, 3]) AS x",
        "SELECT c FROM t TABLESAMPLE (100 ROWS) REPEATABLE (7) ORDER BY c LIMIT 3",
        "PIVOT (SELECT d, a FROM t WHERE a < 5) ON d USING sum(a)",
        "SELECT current_schema(), current_user",
        "SELECT name FROM system.tables WHERE database = 'default' ORDER BY 1",
        "SHOW TABLES",
        "SELECT nothing FROM t",
        "SELECT a FROM nowhere",
        "SELECT 1 / 0",
        "SELECT CAST(c AS INT) FROM t WHERE a = 1",
    ] {
        statements += 1;
        let wanted = answer(&expected, sql, Vec::new()).await;
        for use_number in 0..USES {
            assert_eq!(answer(&session, sql, Vec::new()).await, wanted, "{sql}, use {use_number}");
        }
    }
    let after = kept.plan_cache();
    assert!(after.hits - before.hits >= 16 * (USES as u64 - 1), "{before:?} {after:?} of {statements}");
    assert!(after.misses > before.misses && after.bytes > before.bytes, "{before:?} {after:?}");
    assert_eq!((plain.plan_cache().hits, plain.plan_cache().misses, plain.plan_cache().bytes), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_beside_a_uuid_is_one_however_it_is_spelled() {
    const FIRST: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    let (_folder, kept) = engine().await;
    let session = admin(&kept);
    let setup = ["CREATE TABLE t (id UUID, n INT)", "INSERT INTO t VALUES ('b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 2)"];
    run(&session, &setup).await;
    let inserted = answer(&session, "INSERT INTO t VALUES ($1, 1)", vec![text(&FIRST.to_uppercase())]).await;
    assert_eq!(inserted, Ok(vec![vec!["1".to_owned()]]));
    let spelled = [FIRST.to_owned(), FIRST.to_uppercase(), format!("{{{FIRST}}}"), FIRST.replace('-', "")];
    for sql in
        ["SELECT n FROM t WHERE id = $1", "SELECT n FROM t WHERE id IN ($1)", "SELECT n FROM t WHERE id = $1::UUID"]
    {
        for id in spelled.iter().cycle().take(USES * spelled.len()) {
            assert_eq!(answer(&session, sql, vec![text(id)]).await, Ok(vec![vec!["1".to_owned()]]), "{sql} {id}");
        }
        let refused = answer(&session, sql, vec![text("x")]).await.unwrap_err();
        assert!(refused.contains("invalid_value: `x` is no UUID"), "{sql}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_take_the_places_of_parameters() {
    let (_folder, kept) = engine().await;
    let (_other_folder, plain) = engine_without_cache().await;
    let (session, expected) = (admin(&kept), admin(&plain));
    for session in [&session, &expected] {
        run(session, &SETUP).await;
    }
    let day = |days| ScalarValue::Date32(Some(19_723 + days));
    let double = |value| ScalarValue::Float64(Some(value));
    let small = |value| ScalarValue::Int32(Some(value));
    let cases: Vec<(&str, Vec<Vec<ScalarValue>>)> = vec![
        (
            "SELECT a, c FROM t WHERE a = $1",
            vec![
                vec![int(7)],
                vec![int(8)],
                vec![small(9)],
                vec![small(10)],
                vec![int(5_000_000_000)],
                vec![text("11")],
                vec![text("x")],
                vec![null()],
                vec![ScalarValue::Int64(None)],
                vec![double(12.0)],
                vec![double(12.5)],
                vec![int(13)],
                vec![],
                vec![int(1), int(2)],
            ],
        ),
        (
            "SELECT b, c FROM t WHERE b = ?",
            vec![vec![int(7)], vec![int(8)], vec![int(-1)], vec![small(3)], vec![small(4)]],
        ),
        (
            "SELECT a FROM t WHERE c = $1",
            vec![vec![text("word 5")], vec![text("word 6")], vec![text("it's")], vec![int(1)]],
        ),
        (
            "SELECT a FROM t WHERE b > $1 AND b <= $2",
            vec![vec![int(3), int(6)], vec![int(495), int(1_000)], vec![int(9), int(3)]],
        ),
        ("SELECT a FROM t WHERE b BETWEEN $2 AND $1", vec![vec![int(6), int(3)], vec![int(8), int(8)]]),
        (
            "SELECT a FROM t WHERE b IN ($1, $2, 499)",
            vec![vec![int(1), int(2)], vec![int(2), int(2)], vec![int(7), null()]],
        ),
        (
            "SELECT a FROM t WHERE NOT (b < $1 OR c = $2)",
            vec![vec![int(499), text("word 500")], vec![int(498), text("")]],
        ),
        (
            "SELECT a FROM t WHERE g = $1",
            vec![vec![day(3)], vec![day(4)], vec![text("2024-01-06")], vec![text("no date")]],
        ),
        (
            "SELECT a FROM t WHERE h >= $1 AND h < $2",
            vec![
                vec![text("2024-01-02"), text("2024-01-02 03:00:00")],
                vec![text("2024-01-03"), text("2024-01-03 00:00:00.0000001")],
                vec![text("0001-01-01"), text("2024-01-01 02:00:00")],
            ],
        ),
        ("SELECT a FROM t WHERE f = $1", vec![vec![int(4)], vec![double(5.0)], vec![text("6.00")]]),
        ("SELECT a FROM t WHERE e < $1", vec![vec![double(1.5)], vec![double(f64::NAN)], vec![int(2)]]),
        (
            "SELECT a FROM t WHERE d = $1 AND a < 5",
            vec![vec![ScalarValue::Boolean(Some(true))], vec![ScalarValue::Boolean(Some(false))]],
        ),
        ("SELECT a FROM t WHERE n = $1 OR n IS NULL AND b < $2", vec![vec![int(3), int(11)], vec![int(4), int(6)]]),
        ("SELECT a + $1 AS x FROM t WHERE a < 3", vec![vec![int(1)], vec![int(2)], vec![double(0.5)], vec![null()]]),
        ("SELECT $1 AS x", vec![vec![int(1)], vec![int(2)], vec![text("a")], vec![text("b")]]),
        ("SELECT a FROM t ORDER BY a LIMIT $1", vec![vec![int(1)], vec![int(3)], vec![int(0)]]),
        ("SELECT a FROM t WHERE c LIKE $1", vec![vec![text("word 49_")], vec![text("%0")]]),
        ("SELECT t.a, u.o FROM t JOIN u ON t.b = u.b WHERE u.b = $1", vec![vec![int(3)], vec![int(4)], vec![int(99)]]),
        ("SELECT t.a, u.o FROM t LEFT JOIN u ON t.b = u.b WHERE u.b = $1", vec![vec![int(3)], vec![int(4)]]),
        ("SELECT t.a, u.o FROM t LEFT JOIN u ON t.b = u.b WHERE t.b = $1", vec![vec![int(3)], vec![int(400)]]),
        ("SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE u.b > $1)", vec![vec![int(48)], vec![int(49)]]),
        (
            "SELECT d, sum(b) FROM t WHERE b < $1 GROUP BY d HAVING sum(b) > $2",
            vec![vec![int(10), int(20)], vec![int(10), int(19)]],
        ),
        (
            "SELECT count(*) FROM (SELECT a, b FROM t WHERE b > $1 ORDER BY b LIMIT 10) AS x WHERE a < $2",
            vec![vec![int(3), int(8)], vec![int(490), int(495)]],
        ),
        ("SELECT twice FROM v WHERE twice = $1", vec![vec![int(24)], vec![int(26)], vec![int(2)]]),
        (
            "SELECT a FROM t WHERE date_trunc($1, h) = TIMESTAMP '2024-01-02' ORDER BY a",
            vec![vec![text("day")], vec![text("hour")]],
        ),
        ("SELECT a FROM t WHERE random() >= 0 AND b = $1", vec![vec![int(3)], vec![int(4)]]),
        ("SELECT a FROM t WHERE h < now() AND b = $1", vec![vec![int(3)], vec![int(4)]]),
    ];
    for (sql, rounds) in cases {
        // Each value after each other one, as whoever comes first decides what is kept.
        for _ in 0..2 {
            for values in &rounds {
                let wanted = answer(&expected, sql, values.clone()).await;
                for use_number in 0..2 {
                    let found = answer(&session, sql, values.clone()).await;
                    assert_eq!(found, wanted, "{sql} of {values:?}, use {use_number}");
                }
            }
        }
    }
    assert!(kept.plan_cache().hits > 100, "{:?}", kept.plan_cache());
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_are_planned_once() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    let sql = "SELECT a, c FROM t WHERE b = ?";
    let value = |value| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        RecordBatch::try_from_iter([("0", column)]).unwrap()
    };
    let before = engine.plan_cache();
    for number in 1..=20_i64 {
        let plan = session.plan_sql_with_rows(sql, value(number)).await.unwrap();
        assert!(plan.is_query() && !plan.is_ordered());
        let promised = session.schema_of(&plan);
        let (batches, _) = session.execute(plan).await.unwrap().collect().await.unwrap();
        let expected = vec![vec![number.to_string(), format!("word {number}")]];
        assert_eq!(cells(&promised, &batches), expected);
        let stream = session.query_with_rows(sql, Some(value(number))).await.unwrap();
        assert_eq!(stream.schema(), promised);
        assert_eq!(cells(&promised, &stream.collect().await.unwrap().0), expected);
    }
    let after = engine.plan_cache();
    // All but the first. What samples the new tables' values meanwhile is planned, too.
    assert_eq!(after.hits - before.hits, 39);
    assert!((1..=3).contains(&(after.misses - before.misses)), "{after:?}");
    // The limits of whoever executes a plan count, not those of whoever made it.
    let few = engine.session(Principal::local_admin(), Limits { max_rows: Some(2), ..Limits::default() });
    for _ in 0..USES {
        let plan = few.authorize_sql("SELECT a FROM t ORDER BY a").await.unwrap();
        let (batches, stats) = few.execute(plan.clone()).await.unwrap().collect().await.unwrap();
        assert_eq!((batches.iter().map(RecordBatch::num_rows).sum::<usize>(), stats.truncated), (2, true));
        let (batches, stats) = session.execute(plan).await.unwrap().collect().await.unwrap();
        assert_eq!((batches.iter().map(RecordBatch::num_rows).sum::<usize>(), stats.truncated), (500, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_described_as_the_first_time() {
    let (_folder, kept) = engine().await;
    let (_other_folder, plain) = engine_without_cache().await;
    let (session, expected) = (admin(&kept), admin(&plain));
    for session in [&session, &expected] {
        run(session, &SETUP).await;
    }
    let described = async |session: &Session, sql: &str| {
        let described = session.describe_sql(sql).await.map_err(|error| format!("{}: {error}", error.code()))?;
        Ok::<_, String>((described.schema, described.parameters, described.is_query))
    };
    for sql in [
        "SELECT a, c FROM t WHERE a = 1",
        "SELECT a, c FROM t WHERE a = ? AND c LIKE ?",
        "SELECT ? AS x",
        "SELECT a FROM t LIMIT ?",
        "SELECT date_trunc(?, h) FROM t",
        "SELECT twice + $1 AS y FROM v WHERE c = $2",
        "SELECT * FROM generate_series(1, ?)",
        "INSERT INTO u VALUES (?, ?)",
        "SELECT nothing FROM t WHERE a = ?",
        "SELECT ?, $1",
    ] {
        let wanted = described(&expected, sql).await;
        for use_number in 0..USES {
            assert_eq!(described(&session, sql).await, wanted, "{sql}, use {use_number}");
        }
    }
    assert!(kept.plan_cache().hits >= 3 * (USES as u64 - 1), "{:?}", kept.plan_cache());
    // What was described is not what is executed.
    let open = answer(&session, "SELECT ? AS x", Vec::new()).await;
    assert_eq!(open, answer(&expected, "SELECT ? AS x", Vec::new()).await);
    assert_eq!(answer(&session, "SELECT ? AS x", vec![text("a")]).await.unwrap(), [["a"]]);
    run(&session, &["CREATE OR REPLACE TABLE u AS SELECT 1 AS z"]).await;
    run(&expected, &["CREATE OR REPLACE TABLE u AS SELECT 1 AS z"]).await;
    for sql in ["SELECT * FROM u WHERE z > ?", "SELECT * FROM u"] {
        let wanted = described(&expected, sql).await;
        assert_eq!(described(&session, sql).await, wanted, "{sql}");
        assert_eq!(described(&session, sql).await, wanted, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_kept_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 1 << 20;
    let options = EngineOptions { plan_cache_bytes: limit, ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    run(&session, &SETUP).await;
    for number in 0..300 {
        let sql = format!("SELECT a, b, c FROM t WHERE b = {number} OR a = {number} - 1");
        rows(&session, &sql).await.unwrap();
        assert!(engine.plan_cache().bytes <= limit);
    }
    assert!(engine.plan_cache().bytes > limit / 2, "{:?}", engine.plan_cache());
    // What is large is not kept at all.
    let misses = engine.plan_cache().misses;
    let long = format!("SELECT '{}' AS x", "y".repeat(20_000));
    let wide = (0..5_000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    for sql in [long, format!("SELECT a FROM t WHERE b IN ({wide})")] {
        rows(&session, &sql).await.unwrap();
    }
    assert_eq!(engine.plan_cache().misses, misses);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_statement_leaves_the_same_traces() {
    let settings = TestSettings::default().tokens("ann-tok:read:ann,boss-tok:admin:boss");
    let server = TestServer::start(settings.change(|settings| settings.audit.enabled = true)).await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4").await;
    server.execute("CREATE ROW POLICY small ON t USING (a < 2) TO PUBLIC").await;
    let sql = "SELECT a FROM t WHERE b = $1";
    for _ in 0..USES {
        let reply = server.post("/v1/query", &json!({ "sql": sql, "params": [2] }), Some("ann-tok")).await;
        assert_eq!(reply.lines(), [json!({ "a": 1 })]);
    }
    assert!(server.engine().plan_cache().hits >= USES as u64 - 1, "{:?}", server.engine().plan_cache());
    let kept = server.engine().catalog().audit().list(0, 1_000).await.unwrap();
    let same = |record: &AuditRecord| AuditRecord {
        at: chrono::DateTime::UNIX_EPOCH,
        bytes: 0,
        elapsed_ms: 0,
        ..record.clone()
    };
    let traces: Vec<AuditRecord> =
        kept.iter().map(|kept| same(&kept.record)).filter(|record| record.statement == sql).collect();
    assert_eq!(traces.len(), USES);
    for trace in &traces {
        assert_eq!(*trace, traces[0]);
    }
    assert_eq!(traces[0].policies, ["row policy small on default.t"]);
    let metrics = server.get("/metrics", Some("boss-tok")).await.text;
    let hits = metrics.lines().find_map(|line| line.strip_prefix("querent_plan_cache_hits_total "));
    assert!(hits.unwrap().parse::<u64>().unwrap() >= USES as u64 - 1, "{metrics}");
    for series in ["querent_plan_cache_misses_total ", "querent_plan_cache_bytes "] {
        assert!(metrics.lines().any(|line| line.starts_with(series)), "{series}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_judged_each_time() {
    let (_folder, engine) = engine().await;
    run(&admin(&engine), &SETUP).await;
    let reader = engine.session(Principal::new("ann", Role::Read), Limits::default());
    let narrow = engine.session(Principal::new("ann", Role::Read).with_databases(["other"]), Limits::default());
    for _ in 0..USES {
        assert_eq!(rows(&reader, "SELECT count(*) FROM default.t").await.unwrap(), [["500"]]);
        let error = rows(&narrow, "SELECT count(*) FROM default.t").await.unwrap_err();
        assert_eq!(error.code(), "database_not_found");
    }
}

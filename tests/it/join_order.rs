//! The order of joins: the one that makes the fewest rows, with the rows of the one that was written.

use querent_engine::{Engine, EngineOptions, Session};

use crate::sql::{admin, engine, rows};

/// Many rows of `a` and `b` have one `k`; few of `c` pass.
const TABLES: [&str; 4] = [
    "CREATE TABLE a AS SELECT value % 100 AS k, 'a' || value AS name FROM generate_series(1, 20000) AS s(value)",
    "CREATE TABLE b AS SELECT value % 100 AS k, value AS id, value % 20 AS kind FROM generate_series(1, 20000) AS s(value)",
    "CREATE TABLE c AS SELECT value AS id, value % 1000 AS tag FROM generate_series(1, 20000) AS s(value)",
    "CREATE TABLE d AS SELECT value AS kind, CASE WHEN value <> 5 THEN 'kind ' || value END AS label \
     FROM generate_series(0, 19) AS s(value)",
];

async fn plan(session: &Session, query: &str) -> String {
    format!("{:?}", rows(session, &format!("EXPLAIN {query}")).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_few_rows_is_joined_first() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for table in TABLES {
        rows(&session, table).await.unwrap();
    }
    let query =
        "SELECT count(*), min(a.name), max(b.id) FROM a JOIN b ON a.k = b.k JOIN c ON b.id = c.id WHERE c.tag = 5";
    let shown = plan(&session, query).await;
    let (upper, lower) = (shown.find("(k@").unwrap(), shown.find("(id@").unwrap());
    assert!(upper < lower, "{shown}");
    assert_eq!(rows(&session, query).await.unwrap(), [["4000", "a10005", "19005"]]);

    for (query, expected) in [
        // Every column, in the order of the statement.
        (
            "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.id = c.id JOIN d ON d.kind = b.kind \
             WHERE c.tag = 7 AND a.name = 'a107' AND d.label IS NOT NULL ORDER BY b.id LIMIT 1",
            vec!["7", "a107", "7", "7", "7", "7", "7", "7", "kind 7"],
        ),
        // Equal columns of three tables: each of them may be the key.
        ("SELECT count(*) FROM a, b, c WHERE a.k = b.k AND b.k = c.id AND a.k = c.id AND c.tag < 3", vec!["80000"]),
        // A table beside itself, a subquery and an outer join among them.
        (
            "SELECT count(*), count(x.label) FROM b AS one JOIN b AS two ON one.id = two.id \
             JOIN (SELECT kind, max(label) AS label FROM d GROUP BY kind) AS x ON x.kind = one.kind \
             LEFT JOIN c ON c.id = two.id + 19990",
            vec!["20000", "19000"],
        ),
        (
            "SELECT count(*) FROM b JOIN c ON b.id = c.id JOIN d ON b.kind = d.kind WHERE EXISTS \
             (SELECT 1 FROM a JOIN b AS e ON a.k = e.k JOIN c AS f ON f.id = e.id WHERE f.tag = b.id % 1000 AND f.tag < 2)",
            vec!["40"],
        ),
    ] {
        assert_eq!(rows(&session, query).await.unwrap(), [expected], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_datafusion_can_be_tried() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |settings: &[(&str, &str)]| {
        let datafusion_settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let options = EngineOptions { datafusion_settings, ..EngineOptions::new(folder.path().join("data")) };
        Engine::open_with(options).await
    };
    let hashes = ("datafusion.optimizer.prefer_hash_join", "false");
    let engine = open(&[hashes, ("datafusion.execution.target_partitions", "2")]).await.unwrap();
    let session = admin(&engine);
    for table in TABLES {
        rows(&session, table).await.unwrap();
    }
    let query = "SELECT count(*) FROM b JOIN c ON b.id = c.id";
    assert!(plan(&session, query).await.contains("SortMergeJoinExec"));
    assert_eq!(rows(&session, query).await.unwrap(), [["20000"]]);
    drop(session);
    engine.close().await.unwrap();
    for unknown in [("datafusion.optimizer.no_such_rule", "true"), ("datafusion.execution.batch_size", "many")] {
        assert!(open(&[unknown]).await.is_err(), "{unknown:?}");
    }
}

/// Lines whose two columns are a key of `offers` together: by each column alone their join would seem to be empty.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_several_columns_are_not_thought_to_be_chance() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for table in [
        "CREATE TABLE parts AS SELECT value AS part, 'part ' || value AS name FROM generate_series(1, 2000) AS s(value)",
        "CREATE TABLE offers AS SELECT value % 2000 + 1 AS part, value / 2000 * 7 + value % 500 AS supplier, \
         value AS cost FROM generate_series(0, 7999) AS s(value)",
        "CREATE TABLE lines AS SELECT part, supplier, n FROM offers, generate_series(1, 5) AS s(n)",
    ] {
        rows(&session, table).await.unwrap();
    }
    let query = "SELECT count(*), sum(cost) FROM lines, offers, parts WHERE offers.part = lines.part \
                 AND offers.supplier = lines.supplier AND parts.part = lines.part AND name LIKE '%77%'";
    let shown = plan(&session, query).await;
    // The lines of the few parts first, then what each was offered for.
    let (upper, lower) = (shown.find("(supplier@").unwrap(), shown.rfind("on=[(part@").unwrap());
    assert!(upper < lower, "{shown}");
    let few = "SELECT count(*), sum(cost) FROM offers, generate_series(1, 5) AS s(n) \
               WHERE 'part ' || part LIKE '%77%'";
    assert_eq!(rows(&session, query).await.unwrap(), rows(&session, few).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tables_are_ordered_in_no_time() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for table in TABLES {
        rows(&session, table).await.unwrap();
    }
    let joins: String =
        (1..20).map(|table| format!(" JOIN b AS t{table} ON t{table}.id = t{}.id", table - 1)).collect();
    let query =
        format!("SELECT count(*) FROM a JOIN b AS t0 ON a.k = t0.k{joins} JOIN c ON c.id = t19.id WHERE c.tag = 1");
    let began = std::time::Instant::now();
    plan(&session, &query).await;
    let took = began.elapsed();
    println!("22 tables are planned in {took:?}");
    assert_eq!(rows(&session, &query).await.unwrap(), [["4000"]]);
}

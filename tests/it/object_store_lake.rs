//! Managed tables whose files lie in an object store, over a real S3-compatible server: statements, restarts, DuckDB beside us,
//! clean-up, checks, backups, the disk cache; and what keeps one lake's files from another's.

use std::path::Path;
use std::process::Command;

use axum::http::Method;
use querent_catalog::{Catalog, CatalogOptions};
use querent_engine::{Engine, EngineOptions};
use querent_tests::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY, ServerProcess, StoreFault, querent_binary, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::duckdb::duckdb;
use crate::maintenance::parquet_files;
use crate::object_stores::{ask, assert_nowhere};
use crate::sql::{admin, rows};

/// Where the lake's files are.
const DATA_PATH: &str = "s3://lake/tables";
/// 1,000 rows whose `v` has the sum 500,500.
const NUMBERS: &str = "SELECT value AS v, concat('n', value) AS name FROM generate_series(1, 1000) AS s(value)";

pub(crate) fn settings(store: &S3Server) -> Vec<(&str, &str)> {
    let mut settings = store.settings();
    settings.push(("QUERENT_DATA_PATH", DATA_PATH));
    settings
}

pub(crate) fn started(store: &S3Server, more: &[(&str, &str)]) -> ServerProcess {
    let mut settings = settings(store);
    settings.extend(more);
    tokio::task::block_in_place(|| ServerProcess::start(&settings))
}

/// Runs a statement that must succeed and returns its rows.
pub(crate) async fn done(server: &ServerProcess, sql: &str) -> Value {
    let answer = ask(server, sql).await;
    assert_eq!(answer["error"], Value::Null, "{sql}: {answer}");
    answer["rows"].clone()
}

/// The data files in the store.
pub(crate) async fn stored(store: &S3Server) -> Vec<String> {
    store.keys().await.into_iter().filter(|key| key.ends_with(".parquet")).collect()
}

async fn check(server: &ServerProcess, parameters: &str) -> Value {
    let reply = reqwest::Client::new().post(format!("{}/v1/check?{parameters}", server.url)).send().await.unwrap();
    reply.json().await.unwrap()
}

/// Runs `querent` to its end, in the environment that the store needs.
fn querent(store: &S3Server, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(querent_binary());
    command.args(arguments).env("QUERENT_EMBED_PROVIDER", "none").envs(settings(store));
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_live_in_the_store_and_survive_their_server() {
    let store = S3Server::start().await;
    let server = started(&store, &[]);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    done(&server, &format!("INSERT INTO t {NUMBERS}")).await;
    done(&server, "CREATE TABLE \"odd name é\" (a BIGINT NOT NULL, b VARCHAR)").await;
    done(&server, "INSERT INTO \"odd name é\" VALUES (1, 'x'), (2, NULL)").await;
    // A statement that fails leaves nothing, and one without rows writes nothing.
    assert_ne!(ask(&server, "INSERT INTO \"odd name é\" VALUES (3, 'y'), (NULL, 'z')").await["error"], Value::Null);
    done(&server, "CREATE TABLE nothing AS SELECT v FROM t WHERE v < 0").await;
    let keys = stored(&store).await;
    assert_eq!(keys.iter().filter(|key| key.starts_with("tables/default/t/ducklake-")).count(), 2, "{keys:?}");
    assert_eq!(keys.len(), 3, "{keys:?}");

    let csv = server.data.path().with_extension("csv");
    std::fs::write(&csv, "id,city\n1,Rome\n2,Oslo\n").unwrap();
    let (imported, told) =
        querent(&store, &["import", csv.to_str().unwrap(), "--table", "cities", "--server", &server.url]);
    std::fs::remove_file(&csv).unwrap();
    assert!(imported, "{told}");

    let expected = [
        ("SELECT count(*), sum(v), max(name) FROM t", json!([[2000, 1_001_000, "n999"]])),
        ("SELECT count(*) FROM t WHERE v > 999", json!([[2]])),
        ("SELECT a, b FROM \"odd name é\" ORDER BY a", json!([[1, "x"], [2, null]])),
        ("SELECT count(*) FROM nothing", json!([[0]])),
        ("SELECT city FROM cities ORDER BY id", json!([["Rome"], ["Oslo"]])),
    ];
    for (sql, rows) in &expected {
        assert_eq!(done(&server, sql).await, *rows, "{sql}");
    }
    assert_eq!(parquet_files(server.data.path()), Vec::<std::path::PathBuf>::new(), "all files are in the store");

    // Killed, and started again: without the setting the lake's own place holds.
    let server = tokio::task::block_in_place(|| server.killed_and_started(&store.settings()));
    for (sql, rows) in &expected {
        assert_eq!(done(&server, sql).await, *rows, "after the start: {sql}");
    }
    done(&server, "INSERT OVERWRITE t SELECT 7, 'seven'").await;
    assert_eq!(done(&server, "SELECT v, name FROM t").await, json!([[7, "seven"]]));
    done(&server, "DROP TABLE cities").await;
    assert_eq!(ask(&server, "SELECT * FROM cities").await["error"]["code"], "table_not_found");
    let plan = done(&server, "EXPLAIN SELECT v FROM t").await.to_string();
    assert!(!plan.contains(SECRET_KEY) && !plan.contains(ACCESS_KEY), "{plan}");
    server.signal("TERM");
    assert_nowhere(server.data.path(), &[SECRET_KEY, ACCESS_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn duckdb_works_on_the_same_lake() {
    let store = S3Server::start().await;
    let server = started(&store, &[]);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    let secret = format!(
        "CREATE SECRET s (TYPE s3, KEY_ID '{ACCESS_KEY}', SECRET '{SECRET_KEY}', ENDPOINT '{}', USE_SSL false, \
         URL_STYLE 'path', REGION 'us-east-1')",
        store.url.trim_start_matches("http://")
    );
    let results = tokio::task::block_in_place(|| {
        duckdb(
            server.data.path(),
            "DATA_INLINING_ROW_LIMIT 0",
            &[
                "LOAD httpfs",
                &secret,
                r#"SELECT count(*), sum(v)::BIGINT, max(name) FROM lake."default".t"#,
                r#"DELETE FROM lake."default".t WHERE v % 2 = 0"#,
                r#"INSERT INTO lake."default".t VALUES (5000, 'theirs')"#,
                r#"CREATE TABLE lake."default".theirs AS SELECT range AS r FROM range(10)"#,
                r#"SELECT count(*) FROM lake."default".t"#,
            ],
        )
    });
    assert_eq!(results[2], json!([[1000, 500_500, "n999"]]));
    assert_eq!(results[6], json!([[501]]));
    // Its delete file and its data files are in the store, too.
    let keys = stored(&store).await;
    assert!(keys.iter().any(|key| key.ends_with("-delete.parquet")), "{keys:?}");
    let ours = "SELECT count(*), sum(v), max(v) FROM t";
    assert_eq!(done(&server, ours).await, json!([[501, 250_000 + 5000, 5000]]));
    assert_eq!(done(&server, "SELECT sum(r) FROM theirs").await, json!([[45]]));
    done(&server, "INSERT INTO t VALUES (6000, 'ours')").await;
    assert_eq!(done(&server, ours).await, json!([[502, 261_000, 6000]]));
    let found = check(&server, "remove_orphans=true&grace_seconds=0").await;
    assert_eq!((&found["faults"], &found["removed"]), (&json!([]), &json!(0)), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_table_has_goes_after_a_grace_and_what_is_missing_is_told() {
    let store = S3Server::start().await;
    store.put("elsewhere/ducklake-1.parquet", "not ours").await;
    let server = started(&store, &[]);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    done(&server, &format!("CREATE TABLE u AS {NUMBERS}")).await;
    let orphan = "tables/default/t/ducklake-0190aaaa-0000-7000-8000-000000000000.parquet";
    store.put(orphan, "left").await;
    store.put("tables/default/t/mine.parquet", "foreign").await;
    let before = store.keys().await;

    let young = check(&server, "remove_orphans=true&grace_seconds=3600").await;
    assert_eq!((&young["faults"], &young["files"], &young["removed"]), (&json!([]), &json!(2), &json!(0)), "{young}");
    assert_eq!(young["orphans"][0]["path"], format!("s3://{BUCKET}/{orphan}"), "{young}");
    assert_eq!(store.keys().await, before);
    let old = check(&server, "remove_orphans=true&grace_seconds=0").await;
    assert_eq!(old["removed"], 1, "{old}");
    let left: Vec<String> = before.into_iter().filter(|key| key != orphan).collect();
    assert_eq!(store.keys().await, left, "nothing else goes: not the marker, not what is elsewhere");

    let [t, u] = ["t", "u"].map(|table| {
        left.iter().find(|key| key.starts_with(&format!("tables/default/{table}/ducklake-"))).unwrap().clone()
    });
    store.delete(&t).await;
    store.put(&u, "cut").await;
    let damaged = check(&server, "").await;
    let faults: Vec<&str> = damaged["faults"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(faults.len(), 2, "{damaged}");
    assert!(faults.iter().any(|fault| fault.contains(&t) && fault.contains("is not there")), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains(&u) && fault.contains("has 3 bytes")), "{faults:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_cache_spares_the_store_also_after_a_restart() {
    let store = S3Server::start().await;
    // Decoded columns would spare it, too.
    let uncached = [("QUERENT_QUERY_COLUMN_CACHE", "0")];
    let server = started(&store, &uncached);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    let sum = "SELECT sum(v), max(name) FROM t";
    let expected = json!([[500_500, "n999"]]);
    assert_eq!(done(&server, sum).await, expected);
    let reads = |store: &S3Server| {
        store.take_requests().iter().filter(|request| request.method == "GET" && !request.is_listing).count()
    };
    wait_until("nobody reads from the store any more", async || {
        // The columns' values are collected in the background, after a pause.
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        reads(&store) == 0
    })
    .await;
    assert_eq!(done(&server, sum).await, expected);
    assert_eq!(reads(&store), 0, "all of it is on the disk");
    let metrics = |url: String| async move { reqwest::get(url).await.unwrap().text().await.unwrap() };
    let text = metrics(format!("{}/metrics", server.url)).await;
    let value = |text: &str, name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    assert!(value(&text, "querent_file_cache_hits_total") >= 1.0, "{text}");
    assert!(value(&text, "querent_file_cache_bytes") > 1000.0, "{text}");

    let mut again = settings(&store);
    again.extend(uncached);
    let server = tokio::task::block_in_place(|| server.killed_and_started(&again));
    store.take_requests();
    assert_eq!(done(&server, sum).await, expected);
    let read: Vec<_> = store.take_requests().into_iter().filter(|request| request.path.ends_with(".parquet")).collect();
    assert!(read.is_empty(), "footers and columns were on the disk: {read:?}");

    // Without a cache its folder goes, and each scan reads.
    again.push(("QUERENT_QUERY_FILE_CACHE", "0"));
    let server = tokio::task::block_in_place(|| server.killed_and_started(&again));
    assert!(!server.data.path().join("file-cache").exists());
    for _ in 0..2 {
        store.take_requests();
        assert_eq!(done(&server, sum).await, expected);
        assert!(reads(&store) > 0, "it reads the store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_names_the_place_of_the_files() {
    let store = S3Server::start().await;
    let server = started(&store, &[]);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    let folder = TempDir::new().unwrap();
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (made, told) = querent(&store, &["backup", &path(&backup), "--server", &server.url]);
    assert!(made && told.contains("0 files") && told.contains("stay at s3://lake/tables/"), "{told}");
    done(&server, "INSERT INTO t SELECT 1, 'later'").await;
    let (made, told) = querent(&store, &["restore", &path(&backup), "--to", &path(&restored)]);
    assert!(made, "{told}");
    let (answered, told) = querent(&store, &["sql", "--json", "SELECT sum(v) AS s FROM t", "--data", &path(&restored)]);
    assert!(answered && told.contains("500500"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_lakes_prefix_is_neither_written_to_nor_cleaned() {
    let store = S3Server::start().await;
    let first = started(&store, &[]);
    done(&first, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    let second = started(&store, &[]);
    let refused = ask(&second, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    assert_eq!(refused["error"]["code"], "location_not_allowed", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("another lake's files"), "{refused}");
    let cleaned = check(&second, "remove_orphans=true&grace_seconds=0").await;
    assert_eq!(cleaned["error"]["code"], "location_not_allowed", "{cleaned}");
    assert_eq!(stored(&store).await.len(), 1);
    assert_eq!(done(&first, "SELECT sum(v) FROM t").await, json!([[500_500]]));
    let marker: Value = serde_json::from_slice(&store.get("tables/querent-lake.json").await).unwrap();
    assert!(marker["lake"].is_string(), "{marker}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_ignores_conditions_is_not_written_to() {
    let store = S3Server::start().await;
    let server = started(&store, &[]);
    store.fail(Method::PUT, "", StoreFault::Unconditional, 1_000);
    let refused = ask(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    assert_eq!(refused["error"]["code"], "store_error", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("If-None-Match"), "{refused}");
    assert_eq!(stored(&store).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_loses_its_condition_overwrites_and_removes_nothing() {
    let store = S3Server::start().await;
    let server = started(&store, &[]);
    done(&server, "CREATE TABLE t AS SELECT 1 AS v").await;
    store.fail(Method::PUT, ".parquet", StoreFault::Overtaken, 1);
    let refused = ask(&server, "INSERT INTO t SELECT 2").await;
    assert_eq!(refused["error"]["code"], "conflict", "{refused}");
    let keys = stored(&store).await;
    assert_eq!(keys.len(), 2, "{keys:?}");
    let mut contents = Vec::new();
    for key in &keys {
        contents.push(store.get(key).await);
    }
    assert!(contents.iter().any(|content| content.as_ref() == b"other"), "the other one's object is as it was");
    assert_eq!(done(&server, "SELECT v FROM t").await, json!([[1]]));
    done(&server, "INSERT INTO t SELECT 2").await;
    assert_eq!(done(&server, "SELECT v FROM t ORDER BY v").await, json!([[1], [2]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lakes_files_are_no_external_tables() {
    let store = S3Server::start().await;
    let server = started(&store, &[("QUERENT_QUERY_EXTERNAL_URLS", "s3://lake/")]);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    store.put("other/a.csv", "n\n1\n").await;
    for location in ["s3://lake/tables/default/t/", "s3://lake/", "s3://lake/*/default/t/*.parquet", "s3://lake/tables"]
    {
        let sql = format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{location}'");
        let refused = ask(&server, &sql).await;
        assert_eq!(refused["error"]["code"], "location_not_allowed", "{sql}: {refused}");
    }
    done(&server, "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 's3://lake/other/'").await;
    assert_eq!(done(&server, "SELECT n FROM x").await, json!([[1]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_moves_no_files() {
    let folder = TempDir::new().unwrap();
    let open = |data_path: Option<&str>| {
        let mut options = EngineOptions::new(folder.path().join("lake"));
        options.data_path = data_path.map(|path| path.parse().unwrap());
        Engine::open_with(options)
    };
    let path_of = async |engine: &Engine| engine.catalog().location().await.unwrap().data_path;
    let engine = open(None).await.unwrap();
    let local = format!("{}/data/", folder.path().canonicalize().unwrap().join("lake").display());
    assert_eq!(path_of(&engine).await, local);
    rows(&admin(&engine), "CREATE TABLE empty (a BIGINT)").await.unwrap();
    engine.close().await.unwrap();
    // There are no files yet, so the place may be chosen; and chosen again.
    for (wanted, kept) in
        [("s3://lake/a", "s3://lake/a/"), ("gs://lake", "gs://lake/"), ("s3://lake/b/", "s3://lake/b/")]
    {
        let engine = open(Some(wanted)).await.unwrap();
        assert_eq!(path_of(&engine).await, kept);
        assert_eq!(rows(&admin(&engine), "SELECT count(*) FROM empty").await.unwrap(), [["0"]]);
        engine.close().await.unwrap();
    }
    let engine = open(None).await.unwrap();
    assert_eq!(path_of(&engine).await, "s3://lake/b/");
    let id = engine.catalog().location().await.unwrap().lake_id.unwrap();
    engine.close().await.unwrap();
    let catalog = Catalog::open(CatalogOptions::new(folder.path().join("lake"))).await.unwrap();
    assert_eq!(catalog.location().await.unwrap().lake_id, Some(id), "one lake, one id");
    catalog.close().await.unwrap();

    let engine = Engine::open(folder.path().join("other")).await.unwrap();
    rows(&admin(&engine), "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    assert_eq!(engine.catalog().location().await.unwrap().lake_id, None);
    engine.close().await.unwrap();
    let mut options = EngineOptions::new(folder.path().join("other"));
    options.data_path = Some("s3://lake/b".parse().unwrap());
    let Err(refused) = Engine::open_with(options).await else { panic!("its files are elsewhere") };
    assert_eq!(refused.code(), "invalid_object");
    assert!(refused.to_string().contains("does not move"), "{refused}");
    let engine = Engine::open(folder.path().join("other")).await.unwrap();
    assert_eq!(rows(&admin(&engine), "SELECT a FROM t").await.unwrap(), [["1"]]);
    engine.close().await.unwrap();
}

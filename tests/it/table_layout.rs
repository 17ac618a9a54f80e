//! How the files of managed tables are laid out: Bloom filters and page indexes that readers use, and rows in the order that SORTED BY
//! says.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use querent_catalog::{NoProgress, Principal, TableName};
use querent_engine::{Engine, EngineOptions, ImportRequest, Session};
use serde_json::json;

use crate::duckdb::duckdb;
use crate::lake::sqlite;
use crate::sql::{admin, engine, rows};

/// Returns the footers of all Parquet files below a folder, with their page indexes.
fn footers(folder: &Path) -> Vec<ParquetMetaData> {
    let mut folders = vec![folder.to_path_buf()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                files.push(path);
            }
        }
    }
    files.sort();
    let footer = |path: &PathBuf| {
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        reader.parse_and_finish(&File::open(path).unwrap()).unwrap()
    };
    files.iter().map(footer).collect()
}

/// Returns how many row groups a query's scan read after what a metric counts: `n` of `metric=m total → n matched`.
async fn matched(session: &Session, metric: &str, query: &str) -> usize {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {query}")).await.unwrap();
    let text = &plan[0][1];
    let (_, rest) = text.split_once(&format!("{metric}=")).unwrap_or_else(|| panic!("{text}"));
    let (_, rest) = rest.split_once("total → ").unwrap_or_else(|| panic!("{text}"));
    rest.split_once(" matched").unwrap().0.trim().parse().unwrap()
}

/// Makes a table of three row groups with two columns of values that are looked up.
async fn codes(session: &Session) {
    let made = "CREATE TABLE t AS SELECT value AS id, md5(CAST(value AS VARCHAR)) AS code, \
                value * 618033989 % 1000000007 AS spread, value % 100 AS few, 'text ' || value % 9 AS words \
                FROM generate_series(1, 368640) AS s(value)";
    rows(session, made).await.unwrap();
}

/// Conditions by which one of these rows is found, with `{}` for its id.
const LOOKUPS: [&str; 2] = ["code = md5('{}')", "spread = {} * 618033989 % 1000000007"];

#[tokio::test(flavor = "multi_thread")]
async fn values_that_differ_have_bloom_filters_and_pages_an_index() {
    let folder = tempfile::tempdir().unwrap();
    // Without a cache, so that DataFusion's own reader reads the files.
    let options = EngineOptions { column_cache_bytes: Some(0), ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    codes(&session).await;
    let footers = footers(folder.path());
    let [footer] = footers.as_slice() else { panic!("{} files", footers.len()) };
    assert_eq!(footer.num_row_groups(), 3);
    for group in footer.row_groups() {
        let filtered = group.columns().iter().filter(|column| column.bloom_filter_offset().is_some());
        let names: Vec<&str> = filtered.map(|column| column.column_descr().name()).collect();
        assert_eq!(names, ["code", "spread"]);
        let bytes: i32 = group.columns().iter().filter_map(|column| column.bloom_filter_length()).sum();
        assert!(bytes > 0 && bytes <= 2 * (129 << 10), "{bytes}");
    }
    assert!(footer.column_index().is_some() && footer.offset_index().is_some());

    for lookup in LOOKUPS {
        let mut read = 0;
        for id in [7, 122_880, 122_881, 150_000, 245_760, 245_761, 300_000, 368_640] {
            let query = format!("SELECT id FROM t WHERE {}", lookup.replace("{}", &id.to_string()));
            read += matched(&session, "row_groups_pruned_bloom_filter", &query).await;
            assert_eq!(rows(&session, &query).await.unwrap(), [[id.to_string()]], "{query}");
        }
        // One in twenty passes that is not there.
        assert!((8..=12).contains(&read), "{lookup}: {read} row groups");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bloom_filters_are_used_where_columns_are_not_kept() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    codes(&session).await;
    for lookup in LOOKUPS {
        let absent = format!("SELECT id FROM t WHERE {}", lookup.replace("{}", "1000000"));
        for _ in 0..4 {
            let read = matched(&session, "row_groups_pruned_bloom_filter", &absent).await;
            assert!(read <= 1, "{lookup}: {read} row groups");
            assert_eq!(rows(&session, &absent).await.unwrap(), Vec::<Vec<String>>::new());
        }
    }
    let everything = "SELECT sum(id), min(code), sum(spread) FROM t";
    let first = rows(&session, everything).await.unwrap();
    for _ in 0..4 {
        assert_eq!(rows(&session, everything).await.unwrap(), first);
    }
    // All is kept now, and rows are found there.
    for lookup in LOOKUPS {
        for id in [7, 150_000, 368_640] {
            let query = format!("SELECT id FROM t WHERE {}", lookup.replace("{}", &id.to_string()));
            assert_eq!(rows(&session, &query).await.unwrap(), [[id.to_string()]], "{query}");
        }
    }
    // Several values, nulls, and values of another type.
    for (condition, expected) in [
        ("code IN (md5('5'), md5('250000'), 'none') AND few = 5 OR spread IS NULL", ["1", "5"]),
        ("spread = 618033989.0 OR code = 'x'", ["1", "1"]),
        ("code <> md5('5') AND id < 7", ["5", "1"]),
    ] {
        let query = format!("SELECT count(*), min(id) FROM t WHERE {condition}");
        assert_eq!(rows(&session, &query).await.unwrap(), [expected], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bloom_filters_follow_their_column() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for statement in [
        "CREATE TABLE t AS SELECT md5(CAST(value AS VARCHAR)) AS code, value AS id FROM generate_series(1, 5000) AS s(value)",
        "ALTER TABLE t RENAME COLUMN code TO old",
        "ALTER TABLE t ADD COLUMN code VARCHAR",
        "INSERT INTO t SELECT 'none', value, md5(CAST(value AS VARCHAR)) FROM generate_series(6000, 9000) AS s(value)",
        "DELETE FROM t WHERE id = 12",
    ] {
        rows(&session, statement).await.unwrap();
    }
    for _ in 0..3 {
        for (condition, expected) in [
            ("code = md5('6500')", "6500"),
            ("old = md5('500')", "500"),
            ("code = md5('500')", "NULL"),
            ("old = md5('6500')", "NULL"),
            ("old = md5('12')", "NULL"),
        ] {
            let query = format!("SELECT max(id) FROM t WHERE {condition}");
            assert_eq!(rows(&session, &query).await.unwrap(), [[expected]], "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sorted_table_is_read_in_few_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { column_cache_bytes: Some(0), ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    let generated = "SELECT value * 618033989 % 1000000007 AS k, md5(CAST(value AS VARCHAR)) AS code, value AS n \
                     FROM generate_series(1, 737280) AS s(value)";
    for statement in [
        format!("CREATE TABLE loose AS {generated}"),
        format!("CREATE TABLE made SORTED BY (k) AS {generated}"),
        "CREATE TABLE filled (k BIGINT, code VARCHAR, n BIGINT) SORTED BY (k DESC)".to_owned(),
        format!("INSERT INTO filled {generated}"),
        "CREATE TABLE altered (k BIGINT, code VARCHAR, n BIGINT)".to_owned(),
        "ALTER TABLE altered SET SORTED BY (code, n)".to_owned(),
        format!("INSERT INTO altered {generated}"),
    ] {
        rows(&session, &statement).await.unwrap();
    }
    let metric = "row_groups_pruned_statistics";
    let expected = rows(&session, "SELECT count(*), sum(n) FROM loose WHERE k BETWEEN 500000000 AND 501000000").await;
    let expected = expected.unwrap();
    for (table, filter, groups) in [
        ("loose", "k BETWEEN 500000000 AND 501000000", 6..=6),
        ("made", "k BETWEEN 500000000 AND 501000000", 1..=2),
        ("filled", "k BETWEEN 500000000 AND 501000000", 1..=2),
        ("altered", "k BETWEEN 500000000 AND 501000000", 6..=6),
        ("altered", "code BETWEEN '80' AND '81'", 1..=2),
    ] {
        let query = format!("SELECT count(*), sum(n) FROM {table} WHERE {filter}");
        let read = matched(&session, metric, &query).await;
        assert!(groups.contains(&read), "{query}: {read} row groups");
        if filter.starts_with('k') {
            assert_eq!(rows(&session, &query).await.unwrap(), expected, "{query}");
        }
    }
    // No order is promised: a file that is not sorted is among them.
    for statement in [
        "ALTER TABLE made RESET SORTED BY",
        "INSERT INTO made VALUES (9, 'z', -1), (1, 'y', -2)",
        "ALTER TABLE made SET SORTED BY (k)",
    ] {
        rows(&session, statement).await.unwrap();
    }
    let query = "SELECT n FROM made WHERE n < 0 ORDER BY k";
    assert_eq!(rows(&session, query).await.unwrap(), [["-2"], ["-1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn small_files_of_a_sorted_table_are_written_anew_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { column_cache_bytes: Some(0), ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t (k BIGINT, n BIGINT) SORTED BY (k)").await.unwrap();
    for part in 0..6 {
        let (first, last) = (part * 61_440 + 1, (part + 1) * 61_440);
        let insert = format!(
            "INSERT INTO t SELECT value * 618033989 % 1000000007, value FROM generate_series({first}, {last}) AS s(value)"
        );
        rows(&session, &insert).await.unwrap();
    }
    rows(&session, "DELETE FROM t WHERE n % 1000 = 7").await.unwrap();
    let query = "SELECT count(*), sum(n) FROM t WHERE k BETWEEN 500000000 AND 501000000";
    let metric = "row_groups_pruned_statistics";
    let expected = rows(&session, query).await.unwrap();
    assert_eq!(matched(&session, metric, query).await, 6);
    rows(&session, "INSERT OVERWRITE t SELECT * FROM t").await.unwrap();
    assert_eq!(rows(&session, query).await.unwrap(), expected);
    assert!(matched(&session, metric, query).await <= 2);
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await.unwrap(), [["368271"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_are_sorted_as_their_table_says() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t (a INT, b VARCHAR) SORTED BY (a, b DESC)").await.unwrap();
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, "a,b\n3,x\n1,p\n2,y\n1,q\n").unwrap();
    let request = ImportRequest {
        source: file.display().to_string(),
        format: None,
        options: BTreeMap::new(),
        table: TableName::new("default", "t"),
        external: false,
        if_exists: None,
    };
    engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await.unwrap();
    assert_eq!(rows(&session, "SELECT a, b FROM t").await.unwrap(), [["1", "q"], ["1", "p"], ["2", "y"], ["3", "x"]]);
}

/// Returns the keys of the order that holds.
fn recorded(folder: &Path) -> Vec<[String; 4]> {
    let connection = sqlite(folder);
    let mut statement = connection
        .prepare(
            "SELECT e.expression, e.dialect, e.sort_direction, e.null_order FROM ducklake_sort_info i
             JOIN ducklake_sort_expression e USING (sort_id, table_id) WHERE i.end_snapshot IS NULL ORDER BY sort_key_index",
        )
        .unwrap();
    let keys = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).unwrap();
    keys.map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_the_same_for_duckdb() {
    const TO_FILES: &str = "DATA_INLINING_ROW_LIMIT 0";
    let (lake, engine) = engine().await;
    let folder = lake.path().join("data");
    let session = admin(&engine);
    let insert = "INSERT INTO t VALUES (3, 'x'), (1, 'p'), (2, NULL), (1, 'q')";
    for statement in [
        "CREATE TABLE t (a INT, \"B c\" VARCHAR) SORTED BY (a, \"b C\" DESC NULLS FIRST)",
        insert,
        "ALTER TABLE t RENAME COLUMN a TO aa",
    ] {
        rows(&session, statement).await.unwrap();
    }
    let key = |keys: [&str; 4]| keys.map(str::to_owned);
    let ours = [key(["\"aa\"", "duckdb", "ASC", "NULLS_LAST"]), key(["\"B c\"", "duckdb", "DESC", "NULLS_FIRST"])];
    assert_eq!(recorded(&folder), ours);
    // DuckDB reads the table, sorts by what we recorded, and has its columns follow.
    let results = duckdb(
        &folder,
        TO_FILES,
        &[
            "SELECT aa, \"B c\" FROM lake.\"default\".t",
            "ALTER TABLE lake.\"default\".t RENAME COLUMN aa TO a",
            "INSERT INTO lake.\"default\".t VALUES (9, 'v'), (8, 'w')",
            "SELECT a FROM lake.\"default\".t WHERE a > 7",
            "ALTER TABLE lake.\"default\".t SET SORTED BY (\"B c\" DESC, lower(\"B c\"), a)",
        ],
    );
    assert_eq!(results[0], json!([[1, "q"], [1, "p"], [2, null], [3, "x"]]));
    assert_eq!(results.iter().rev().find(|rows| !rows.is_null()).unwrap(), &json!([[8], [9]]));
    // What DuckDB recorded holds here, up to the first expression.
    rows(&session, "DELETE FROM t WHERE true").await.unwrap();
    rows(&session, insert).await.unwrap();
    let read = "SELECT a, \"B c\" FROM t";
    assert_eq!(rows(&session, read).await.unwrap(), [["3", "x"], ["1", "q"], ["1", "p"], ["2", "NULL"]]);
    let shown = rows(&session, "SHOW CREATE TABLE t").await.unwrap();
    let order = " SORTED BY (\"B c\" DESC NULLS LAST, lower(\"B c\") ASC NULLS LAST, \"a\" ASC NULLS LAST)";
    assert!(shown[0][1].ends_with(order), "{shown:?}");
    let refused = rows(&session, "ALTER TABLE t RENAME COLUMN \"B c\" TO b").await.unwrap_err();
    assert_eq!(refused.code(), "unsupported_lake");
    // Its option switches sorting off.
    duckdb(
        &folder,
        TO_FILES,
        &["CALL lake.set_option('sort_on_insert', false, table_name => 't', schema => 'default')"],
    );
    rows(&session, "INSERT OVERWRITE t VALUES (3, 'x'), (1, 'p'), (4, 'y')").await.unwrap();
    assert_eq!(rows(&session, read).await.unwrap(), [["3", "x"], ["1", "p"], ["4", "y"]]);
    // Reset there, it is gone here.
    duckdb(&folder, TO_FILES, &["ALTER TABLE lake.\"default\".t RESET SORTED BY"]);
    rows(&session, "ALTER TABLE t DROP COLUMN \"B c\"").await.unwrap();
    assert_eq!(recorded(&folder), Vec::<[String; 4]>::new());
}

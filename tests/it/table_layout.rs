//! How the files of managed tables are laid out: Bloom filters and page indexes that readers use.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use querent_engine::{Engine, EngineOptions, Session};

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

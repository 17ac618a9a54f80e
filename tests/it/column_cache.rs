//! Columns that were decoded before: the same rows as from the files, until a file changes, and no memory that a query needs.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use querent_catalog::Principal;
use querent_engine::{Engine, EngineOptions, Limits, Session};

use crate::sql::{admin, engine, rows};

/// Enough for a table to come from memory: the first use reads files, the second decodes for the cache.
const USES: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_the_same_from_files_and_from_memory() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let made = "CREATE TABLE t AS SELECT value AS id, value % 7 AS few, \
                CASE WHEN value % 5 = 0 THEN NULL ELSE 'text number ' || value || ' that is long' END AS words, \
                CASE value % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END AS letter, \
                CAST(value AS DECIMAL(12, 2)) / 4 AS price, DATE '2024-01-01' + CAST(value % 400 AS INT) AS day, \
                make_array(value, NULL, value + 1) AS list, named_struct('x', value, 'y', 'v' || value) AS pair, \
                value % 2 = 0 AS even FROM generate_series(1, 260000) AS s(value)";
    rows(&session, made).await.unwrap();
    let before = engine.column_cache();
    for query in [
        "SELECT count(*), count(words), sum(id), min(words), max(words), sum(price), max(day) FROM t",
        "SELECT letter, few, count(*), sum(price) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT * FROM t WHERE id BETWEEN 122878 AND 122884 ORDER BY id",
        "SELECT id, words FROM t ORDER BY id DESC LIMIT 5",
        "SELECT id, words FROM t ORDER BY words, id LIMIT 5",
        "SELECT id + 1 AS next, upper(letter) FROM t WHERE words LIKE '%99999%' ORDER BY 1",
        "SELECT sum(l.value) FROM (SELECT unnest(list) AS value FROM t) AS l",
        "SELECT pair.x, pair.y FROM t WHERE pair.x % 50000 = 0 ORDER BY 1",
        "SELECT count(*) FROM t WHERE even AND letter IS NULL",
        "SELECT count(*) FROM t",
        "SELECT count(*), sum(b.id) FROM t AS a JOIN t AS b ON a.id = b.id AND a.few = b.few WHERE a.id % 1000 = 0",
        "SELECT count(*), sum(b.id), min(b.words) FROM t AS a LEFT JOIN t AS b ON a.id = b.id + 7 WHERE a.few = 3",
        "SELECT count(*), count(a.id) FROM (SELECT * FROM t WHERE id < 900) AS a RIGHT JOIN t AS b ON a.id = b.id * 2",
        "SELECT count(*), count(a.id), count(b.id) FROM (SELECT * FROM t WHERE id < 900) AS a \
         FULL JOIN (SELECT * FROM t WHERE id > 700 AND id < 1500) AS b ON a.words = b.words",
        "SELECT count(*) FROM t WHERE words IN (SELECT words FROM t WHERE id % 9999 = 1)",
        "SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM t WHERE id % 2 = 1)",
        "SELECT sum(n) FROM (SELECT few, letter, count(*) AS n FROM t GROUP BY 1, 2) AS g JOIN \
         (VALUES (1, 'a'), (2, 'b')) AS v(few, letter) ON g.few = v.few AND g.letter = v.letter",
        "SELECT count(*), sum(a.id) FROM t AS a JOIN t AS b ON a.id = b.id + 1 WHERE b.few = 3 AND a.letter = 'a'",
        "SELECT sum(id) FROM (SELECT id FROM t LIMIT 200000)",
        "SELECT few FROM t WHERE id = 200000",
    ] {
        let first = rows(&session, query).await.unwrap();
        for _ in 1..USES {
            let again = rows(&session, query).await.unwrap();
            // Which rows an unordered LIMIT takes is free.
            assert!(again == first || query.contains("LIMIT 200000"), "{query}: {again:?}, first {first:?}");
        }
    }
    let after = engine.column_cache();
    assert!(after.hits > before.hits + 50, "{before:?} {after:?}");
    assert!(after.bytes > 1 << 20, "{after:?}");
    // What the statement reads is said with its plan.
    let plan = rows(&session, "EXPLAIN ANALYZE SELECT sum(id) FROM t").await.unwrap();
    assert!(format!("{plan:?}").contains("column_cache_hits"), "{plan:?}");
    assert_eq!(engine.memory_reserved_bytes(), 0, "what is kept is no query's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_semi_join_comes_before_a_join_that_makes_rows() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for made in [
        "CREATE TABLE orders AS SELECT value AS k, 'order ' || value AS name FROM generate_series(1, 20000) AS s(value)",
        "CREATE TABLE lines AS SELECT value % 20000 + 1 AS k, value AS v FROM generate_series(1, 160000) AS s(value)",
    ] {
        rows(&session, made).await.unwrap();
    }
    for (condition, expected) in [
        ("IN (SELECT k FROM lines GROUP BY k HAVING sum(v) > 719990)", ["16", "order 20000"]),
        ("NOT IN (SELECT k FROM lines GROUP BY k HAVING sum(v) > 719990)", ["159984", "order 9999"]),
    ] {
        let query =
            format!("SELECT count(*), max(name) FROM orders AS o JOIN lines AS l ON o.k = l.k WHERE o.k {condition}");
        for _ in 0..USES {
            assert_eq!(rows(&session, &query).await.unwrap(), [expected], "{query}");
        }
        let plan = format!("{:?}", rows(&session, &format!("EXPLAIN {query}")).await.unwrap());
        let place = |text: &str| plan.find(text).unwrap_or_else(|| panic!("{text}: {plan}"));
        if !condition.starts_with("NOT") {
            assert!(place("join_type=Inner") < place("Semi, on"), "{plan}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn not_in_sees_the_nulls_of_its_subquery() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    // The only NULL is in a row group whose values are far from what is asked for.
    let made = "CREATE TABLE n AS SELECT CASE WHEN value <> 200000 THEN value END AS id, 'w' || value AS w \
                FROM generate_series(1, 260000) AS s(value)";
    rows(&session, made).await.unwrap();
    for (query, expected) in [
        ("SELECT count(*) FROM (VALUES (-1), (3)) AS v(x) WHERE x NOT IN (SELECT id FROM n)", "0"),
        ("SELECT count(*) FROM (VALUES (-1), (3)) AS v(x) WHERE x NOT IN (SELECT id FROM n WHERE id IS NOT NULL)", "1"),
        ("SELECT count(*) FROM (VALUES (-1), (3)) AS v(x) WHERE NOT EXISTS (SELECT 1 FROM n WHERE id = x)", "1"),
    ] {
        for _ in 0..USES {
            assert_eq!(rows(&session, query).await.unwrap(), [[expected]], "{query}");
        }
    }
}

/// Writes 30,000 rows in three row groups.
fn write(path: &Path, offset: i64, word: &str) {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(offset..offset + 30_000));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..30_000).map(|n| format!("{word}{n:05}"))));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("w", words)]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10_000)).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_is_read_again() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("w.parquet");
    write(&file, 0, "old");
    rows(&session, &format!("CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION '{}'", file.display())).await.unwrap();
    let query = "SELECT min(n), max(n), min(w), count(*) FROM w WHERE w LIKE '%1%'";
    for _ in 0..USES {
        assert_eq!(rows(&session, query).await.unwrap(), [["1", "29991", "old00001", "16878"]]);
    }
    // As large as before.
    write(&file, 100_000, "new");
    for _ in 0..USES {
        assert_eq!(rows(&session, query).await.unwrap(), [["100001", "129991", "new00001", "16878"]]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_to_another_of_its_size_and_time_is_read_again() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let made = |name: &str, from: i64, prefix: &str| {
        let path = folder.path().join(name);
        write(&path, from, prefix);
        File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        path
    };
    let (first, second) = (made("first.parquet", 0, "old"), made("second.parquet", 100_000, "new"));
    assert_eq!(first.metadata().unwrap().len(), second.metadata().unwrap().len());
    let link = folder.path().join("w.parquet");
    let point_to = |target: &Path| {
        let other = folder.path().join("link");
        symlink(target, &other).unwrap();
        std::fs::rename(other, &link).unwrap();
    };
    point_to(&first);
    rows(&session, &format!("CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION '{}'", link.display())).await.unwrap();
    let query = "SELECT min(n), max(n), min(w), count(*) FROM w WHERE w LIKE '%1%'";
    let old = ["1", "29991", "old00001", "16878"];
    let new = ["100001", "129991", "new00001", "16878"];
    for _ in 0..USES {
        assert_eq!(rows(&session, query).await.unwrap(), [old]);
    }
    point_to(&second);
    for _ in 0..USES {
        assert_eq!(rows(&session, query).await.unwrap(), [new], "the link has another target");
    }
    point_to(&first);
    made("first.parquet", 200_000, "mid");
    for _ in 0..USES {
        let expected = ["200001", "229991", "mid00001", "16878"];
        assert_eq!(rows(&session, query).await.unwrap(), [expected], "written over");
    }
    made("first.parquet", 0, "old");
    assert_eq!(rows(&session, query).await.unwrap(), [old], "written over at once after the last query");
    std::fs::rename(second, first).unwrap();
    for _ in 0..USES {
        assert_eq!(rows(&session, query).await.unwrap(), [new], "another file in its place");
    }
}

/// Returns an engine with 96 MiB for its queries.
async fn small_engine(folder: &Path) -> Engine {
    let memory_bytes = Some(96 << 20);
    Engine::open_with(EngineOptions { memory_bytes, ..EngineOptions::new(folder.join("lake")) }).await.unwrap()
}

async fn fill(session: &Session) {
    let made = "CREATE TABLE t AS SELECT value AS a, value * 2 AS b, value % 1000 AS c, 'word ' || value AS d \
                FROM generate_series(1, 900000) AS s(value)";
    rows(session, made).await.unwrap();
    for _ in 0..USES {
        rows(session, "SELECT sum(a), sum(b), sum(c), min(d) FROM t").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_gives_way_to_queries() {
    let folder = tempfile::tempdir().unwrap();
    let engine = small_engine(folder.path()).await;
    let limits = Limits { memory_bytes: 90 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    fill(&session).await;
    let kept = engine.column_cache().bytes;
    assert!(kept > 8 << 20 && kept <= (96 << 20) / 100 * EngineOptions::DEFAULT_CACHE_PERCENT, "{kept}");
    // It may take all of the pool, whatever was kept there.
    let large = "SELECT count(*), max(n) FROM (SELECT a, d, count(*) AS n FROM t GROUP BY a, d)";
    assert_eq!(rows(&session, large).await.unwrap(), [["900000", "1"]]);
    assert_eq!(engine.memory_reserved_bytes(), 0);
    assert_eq!(rows(&session, "SELECT sum(a), sum(b) FROM t").await.unwrap(), [["405000450000", "810000900000"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_of_nothing_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { column_cache_bytes: Some(0), ..EngineOptions::new(folder.path().join("lake")) };
    let engine = Engine::open_with(options).await.unwrap();
    fill(&admin(&engine)).await;
    let state = engine.column_cache();
    assert_eq!((state.bytes, state.hits), (0, 0));
}

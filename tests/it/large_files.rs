//! Tables whose files are so large that DataFusion reads parts of them side by side: whoever knows rows by their places in a file
//! must not be misled by that.

use std::path::Path;

use querent_engine::{Engine, Session};

use crate::policies::run;
use crate::sql::{admin, engine, rows};

/// A row group, and a part of another.
const ROWS: usize = 150_000;
/// DataFusion's `repartition_file_min_size`, from which on a file is read in parts.
const SPLIT_BYTES: u64 = 10 << 20;

/// A table of one large file.
async fn large() -> (tempfile::TempDir, Engine, Session) {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let noise: Vec<String> =
        ["a", "b", "c", "d", "e"].iter().map(|salt| format!("md5(concat(value, '{salt}'))")).collect();
    let table = format!(
        "CREATE TABLE t AS SELECT value AS id, value * 7 % 100003 AS h, {} AS noise, \
         [sin(value), cos(value * 1.3), sin(value * 1.7), cos(value * 2.3)]::FLOAT[4] AS v \
         FROM generate_series(1, {ROWS}) AS s(value)",
        noise.join(" || ")
    );
    run(&root, &[&table]).await;
    let largest = bytes_of_files(&folder.path().join("data/data/default/t")).into_iter().max();
    assert!(largest > Some(SPLIT_BYTES), "{largest:?} bytes are read in one piece: the test shows nothing");
    (folder, engine, root)
}

fn bytes_of_files(folder: &Path) -> Vec<u64> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
}

/// What the table is like after a change, by what it was filled with: how many rows, and sums over them.
async fn assert_same(session: &Session, actual: &str, expected: &str) {
    let filled = format!("(SELECT value AS id, value * 7 % 100003 AS h FROM generate_series(1, {ROWS}) AS s(value))");
    let expected = expected.replace("{filled}", &filled);
    assert_eq!(rows(session, actual).await.unwrap(), rows(session, &expected).await.unwrap(), "{actual}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_condition_are_those_that_are_deleted() {
    let (_folder, _engine, root) = large().await;
    let sums = "count(*), sum(id), sum(h)";
    run(&root, &["DELETE FROM t WHERE h % 10 = 3"]).await;
    let kept = format!("SELECT {sums} FROM {{filled}} WHERE h % 10 <> 3");
    assert_same(&root, &format!("SELECT {sums} FROM t"), &kept).await;
    // Of a file that has deleted rows already.
    run(&root, &["DELETE FROM t WHERE h % 10 = 4"]).await;
    let kept = format!("SELECT {sums} FROM {{filled}} WHERE h % 10 NOT IN (3, 4)");
    assert_same(&root, &format!("SELECT {sums} FROM t"), &kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_condition_are_those_that_are_changed() {
    let (_folder, _engine, root) = large().await;
    let sums = "count(*), sum(id), sum(h), sum(id * (h % 1000))";
    run(&root, &["UPDATE t SET h = h + 1000000 WHERE h % 10 = 3"]).await;
    let changed = "(SELECT id, CASE WHEN h % 10 = 3 THEN h + 1000000 ELSE h END AS h FROM {filled})";
    assert_same(&root, &format!("SELECT {sums} FROM t"), &format!("SELECT {sums} FROM {changed}")).await;
    run(
        &root,
        &["MERGE INTO t USING (SELECT value AS id FROM generate_series(1, 180000, 3) AS s(value)) AS u ON t.id = u.id \
           WHEN MATCHED AND t.h % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET h = -1 \
           WHEN NOT MATCHED THEN INSERT (id, h) VALUES (u.id, -2)"],
    )
    .await;
    let merged = format!(
        "(SELECT id, CASE WHEN id % 3 = 1 THEN -1 ELSE h END AS h FROM {changed} WHERE id % 3 <> 1 OR h % 2 <> 0 \
         UNION ALL SELECT value, -2 FROM generate_series(1, 180000, 3) AS s(value) WHERE value > {ROWS})"
    );
    assert_same(&root, &format!("SELECT {sums} FROM t"), &format!("SELECT {sums} FROM {merged}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_that_a_vector_index_names_are_those_that_are_found() {
    let (_folder, _engine, root) = large().await;
    run(&root, &["CREATE INDEX nearest ON t USING vector (v) WITH (metric = 'l2')"]).await;
    for id in [17, 90_001, 122_881, 131_072, 149_999] {
        let wanted = format!("[sin({id}), cos({id} * 1.3), sin({id} * 1.7), cos({id} * 2.3)]::FLOAT[4]",);
        let search = format!(
            "SELECT id, h, round(v[1]::DOUBLE - sin(id), 3) = 0 AS is_own FROM t ORDER BY l2_distance(v, {wanted}) LIMIT 20"
        );
        let plan = rows(&root, &format!("EXPLAIN {search}")).await.unwrap();
        assert!(plan.iter().flatten().any(|line| line.contains("NearRowsExec")), "{plan:?}");
        let found = rows(&root, &search).await.unwrap();
        assert_eq!((found.len(), found[0][0].as_str()), (20, id.to_string().as_str()), "{found:?}");
        for row in &found {
            let id: i64 = row[0].parse().unwrap();
            assert_eq!(
                (row[1].as_str(), row[2].as_str()),
                ((id * 7 % 100_003).to_string().as_str(), "true"),
                "{found:?}"
            );
        }
    }
}

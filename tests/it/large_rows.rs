//! Rows of any size: batches are bounded by their bytes, and what no batch can hold is an error.

use futures::StreamExt;
use querent_catalog::Principal;
use querent_engine::{Engine, EngineOptions, Limits, ResultTypes, Session};

use crate::sql::{admin, engine, rows};

/// A batch is cut well below this, whatever the query is; one row alone may be larger.
const MAX_BATCH_BYTES: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn large_rows_come_in_small_batches() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    // As one batch of DataFusion's these are 3 GB, which no column of strings can address, and more.
    let queries = [
        ("SELECT repeat('x', 1000000) AS s, value FROM generate_series(1, 3000) AS t(value)", 3_000),
        ("SELECT repeat('x', 1000000 - value % 10) AS s FROM generate_series(1, 3000) AS t(value)", 3_000),
        ("SELECT lpad(CAST(value AS VARCHAR), 300000, '0') AS s FROM generate_series(1, 1000) AS t(value)", 1_000),
        ("SELECT concat(s, s) AS s FROM (SELECT repeat('x', 100000) AS s FROM generate_series(1, 2000))", 2_000),
        (
            "SELECT arrow_cast(repeat('x', 100000 - value % 10), 'Utf8View') AS s \
             FROM generate_series(1, 1000) AS t(value)",
            1_000,
        ),
        ("SELECT make_array(repeat('x', 100000 - value)) AS s FROM generate_series(1, 1000) AS t(value)", 1_000),
        (
            "SELECT s FROM (SELECT repeat('x', 100000 - value) AS s FROM generate_series(1, 4000) AS t(value)) \
             WHERE s LIKE 'x%'",
            4_000,
        ),
        (
            "SELECT s FROM (SELECT repeat('x', 10000 - value) AS s FROM generate_series(1, 3000) AS t(value)) \
             ORDER BY length(s)",
            3_000,
        ),
        ("SELECT sum(length(repeat('x', 100000 - value))) AS s FROM generate_series(1, 4000) AS t(value)", 1),
        ("SELECT length(repeat('x', 1000000 - value)) AS s FROM generate_series(1, 500) AS t(value)", 500),
        (
            "SELECT string_agg(repeat('x', 20000), ',') OVER (ORDER BY value) AS s FROM generate_series(1, 200) AS t(value)",
            200,
        ),
        (
            "SELECT first_value(s) OVER (ORDER BY value) AS s FROM (SELECT value, \
             CASE WHEN value = 1 THEN repeat('x', 1000000) END AS s FROM generate_series(1, 500) AS t(value))",
            500,
        ),
    ];
    for (sql, expected) in queries {
        let mut stream = session.sql(sql).await.unwrap();
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch.unwrap_or_else(|error| panic!("{sql}: {error}"));
            rows += batch.num_rows();
            let bytes: usize =
                batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap()).sum();
            assert!(bytes <= MAX_BATCH_BYTES || batch.num_rows() == 1, "{sql}: {bytes} bytes");
        }
        assert_eq!(rows, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_make_no_more_than_the_query_may_have() {
    let (_folder, engine) = engine().await;
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    // A value for each row of the whole partition, of which a filter may keep a part.
    let over = "FROM generate_series(1, 2000) AS t(value)";
    for sql in [
        format!("SELECT max(length(s)) FROM (SELECT string_agg(repeat('x', 1000), ',') OVER () s {over})"),
        format!("SELECT max(length(s)) FROM (SELECT json_group_array(repeat('x', 1000)) OVER () s {over})"),
        format!(
            "SELECT count(s) FROM (SELECT array_agg(repeat('x', 1000)) FILTER (WHERE value < 500) OVER () s {over})"
        ),
    ] {
        let mut stream = session.sql(&sql).await.unwrap();
        let error = loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("{sql} fits"),
            }
        };
        assert_eq!(error.code(), "memory_exceeded", "{sql}: {error}");
    }
    let running = format!(
        "SELECT max(length(s)) AS n FROM (SELECT string_agg(repeat('x', 1000), ',') OVER (ORDER BY value) s {over})"
    );
    assert_eq!(crate::sql::rows(&session, &running).await.unwrap(), [["2001999"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_the_types_that_it_takes() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let sql = "SELECT arrow_cast('text', 'Utf8View') AS v, arrow_cast('text', 'Dictionary(Int32, Utf8)') AS d, \
               arrow_cast(make_array(1), 'LargeList(Int64)') AS l";
    let types = async |session: Session| {
        let stream = session.sql(sql).await.unwrap();
        let schema = stream.schema();
        let (batches, _) = stream.collect().await.unwrap();
        assert_eq!(batches[0].schema(), schema);
        schema.fields().iter().map(|field| field.data_type().to_string()).collect::<Vec<_>>()
    };
    let plain = types(session.clone()).await;
    assert_eq!(plain[..2], ["Utf8", "Utf8"]);
    assert!(plain[2].starts_with("List("), "{plain:?}");
    let asked = types(session.with_result_types(ResultTypes { views: true, dictionaries: true })).await;
    assert_eq!(asked[..2], ["Utf8View", "Dictionary(Int32, Utf8)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_of_a_join_that_does_not_fit_is_read_again() {
    let (_folder, engine) = engine().await;
    let limits = Limits { memory_bytes: 16 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    // The cross join on the left has an exchange, which gives each of its partitions once.
    let query = "SELECT count(*) FROM generate_series(1, 3000) a(x), generate_series(1, 30) b(y), \
                 generate_series(1, 30) c(z) WHERE x + y + z = 5";
    assert_eq!(rows(&session, query).await.unwrap(), [["6"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_whose_sides_do_not_fit_sort_them() {
    let (_folder, engine) = engine().await;
    let limits = Limits { memory_bytes: 96 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    // More than the limit on either side, whichever is built.
    let wide = "(SELECT value AS k, repeat('x', 150) || value AS pad FROM generate_series(1, 800000) AS t(value))";
    let query = format!("SELECT count(*), sum(a.k) FROM {wide} a JOIN {wide} b ON a.k = b.k WHERE a.pad <= b.pad");
    assert_eq!(rows(&session, &query).await.unwrap(), [["800000", "320000400000"]]);
    // What is inserted is computed again as well.
    let join = format!("{wide} a LEFT JOIN {wide} b ON a.k = b.k + 1");
    let create = format!("CREATE TABLE joined AS SELECT a.k, a.pad > b.pad AS is_more FROM {join}");
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*), count(DISTINCT k) FROM joined").await.unwrap(), [["800000", "800000"]]);
}

/// What each partition keeps for merging what it spills, 10 MiB as DataFusion has it, is more than the query has.
#[tokio::test(flavor = "multi_thread")]
async fn sorts_of_many_partitions_spill_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { target_partitions: Some(8), ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    let part = "SELECT value, repeat('x', 50) AS pad FROM generate_series(1, 75000)";
    let sorted = format!("SELECT value, pad FROM ({}) ORDER BY value % 7919, value", [part; 8].join(" UNION ALL "));
    let (_, stats) = session.sql(&sorted).await.unwrap().collect().await.unwrap();
    assert_eq!(stats.rows, 600_000);
}

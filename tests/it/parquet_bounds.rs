//! Bounds in the footers of Parquet files that others wrote: they leave NaN out, which is the greatest number here, and some row
//! groups have none.

use std::fs::{self, File};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::policies::run;
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn nan_is_found_beside_bounds_that_leave_it_out() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let file = folder.path().join("others.parquet");
    let nan = |otherwise: &str| format!("CASE WHEN value % 1000 = 3 THEN 'NaN'::DOUBLE ELSE {otherwise} END");
    let copy = format!(
        "COPY (SELECT value AS id, {} AS x, {} AS five FROM generate_series(1, 100000) AS s(value)) TO '{}'",
        nan("value::DOUBLE"),
        nan("5::DOUBLE"),
        file.display()
    );
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", file.display());
    run(&root, &[&copy, &create]).await;
    run(&root, &["CREATE TABLE imported AS SELECT * FROM t", &format!("COPY imported FROM '{}'", file.display())])
        .await;
    let imported =
        "SELECT count(*), count(*) FILTER (WHERE isnan(x)), count(*) FILTER (WHERE isnan(five)) FROM imported";
    assert_eq!(rows(&root, imported).await.unwrap(), [["200000", "200", "200"]]);
    // Read as DataFusion does, then through the cache of columns.
    for _ in 0..3 {
        for (condition, found) in [
            ("x > 200000", "100"),
            ("x >= 100000", "101"),
            ("x = 'NaN'::DOUBLE", "100"),
            ("NOT (x <= 100000)", "100"),
            ("x NOT BETWEEN 0 AND 200000", "100"),
            ("x IN (5, 'NaN'::DOUBLE)", "101"),
            ("x < 3", "2"),
            ("x = 77", "1"),
            ("five <> 5", "100"),
            ("isnan(five)", "100"),
            ("x = (SELECT max(x) FROM t)", "100"),
        ] {
            let counted = rows(&root, &format!("SELECT count(*) FROM t WHERE {condition}")).await.unwrap();
            assert_eq!(counted, [[found]], "{condition}");
        }
        let bounds = "SELECT isnan(max(x)), min(x) = 1, isnan(max(five)), min(five) = 5 FROM t";
        assert_eq!(rows(&root, bounds).await.unwrap(), [["true", "true", "true", "true"]]);
        let greatest = "SELECT count(*) FROM (SELECT x FROM t ORDER BY x DESC LIMIT 150) AS g WHERE isnan(x)";
        assert_eq!(rows(&root, greatest).await.unwrap(), [["100"]]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_groups_without_bounds_make_those_of_the_file_unknown() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let place = folder.path().join("groups.parquet");
    // Of the second row group Parquet has no bounds. The writer is one that has none wherever there is NaN.
    let values: Vec<f64> = (0..100).map(|row| if row < 50 { f64::from(row) } else { f64::NAN }).collect();
    let values: ArrayRef = Arc::new(Float64Array::from(values));
    let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
    let properties = WriterProperties::builder().set_created_by("DuckDB version v1.5.5".to_owned()).build();
    let mut file = ArrowWriter::try_new(File::create(&place).unwrap(), batch.schema(), Some(properties)).unwrap();
    for start in [0, 50] {
        file.write(&batch.slice(start, 50)).unwrap();
        file.flush().unwrap();
    }
    file.close().unwrap();
    run(&root, &[&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", place.display())]).await;
    for _ in 0..3 {
        let found = "SELECT isnan(max(x)), min(x) = 0, count(*), count(x) FROM t";
        assert_eq!(rows(&root, found).await.unwrap(), [["true", "true", "100", "100"]]);
        assert_eq!(rows(&root, "SELECT count(*) FROM t WHERE x > 60").await.unwrap(), [["50"]]);
    }
}

/// As pandas writes it: what a processor computes of `0.0 / 0.0` has a sign.
#[tokio::test(flavor = "multi_thread")]
async fn a_nan_with_a_sign_is_above_all_numbers_too() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let place = folder.path().join("computed.parquet");
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, -f64::NAN, f64::NAN, -5.0, -0.0]));
    let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
    let mut file = ArrowWriter::try_new(File::create(&place).unwrap(), batch.schema(), None).unwrap();
    file.write(&batch).unwrap();
    file.close().unwrap();
    run(&root, &[&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", place.display())]).await;
    // Read as DataFusion does, then through the cache of columns.
    for _ in 0..3 {
        for (condition, found) in [("x < 0", "1"), ("x = 'NaN'::DOUBLE", "2"), ("x > 1", "2"), ("isnan(x)", "2")] {
            let counted = rows(&root, &format!("SELECT count(*) FROM t WHERE {condition}")).await.unwrap();
            assert_eq!(counted, [[found]], "{condition}");
        }
        let greatest = "SELECT count(*) FROM (SELECT x FROM t ORDER BY x DESC LIMIT 2) AS g WHERE isnan(x)";
        assert_eq!(rows(&root, greatest).await.unwrap(), [["2"]]);
        assert_eq!(rows(&root, "SELECT min(x) = -5, isnan(max(x)) FROM t").await.unwrap(), [["true", "true"]]);
    }
}

/// DataFusion takes a file whose column is of another type for one of nulls, of which the other files know the greatest.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_files_whose_columns_have_other_types_are_unknown() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let place = folder.path().join("grown");
    fs::create_dir(&place).unwrap();
    let copy = |values: &str, name: &str| format!("COPY (SELECT {values}) TO '{}'", place.join(name).display());
    let wide = copy("5::BIGINT AS i, 5.00::DECIMAL(9, 2) AS d", "a.parquet");
    let narrow = copy("7::INTEGER AS i, 7.50::DECIMAL(9, 2) AS d", "b.parquet");
    let create = format!("CREATE EXTERNAL TABLE grown STORED AS PARQUET LOCATION '{}'", place.display());
    run(&root, &[&wide, &narrow, &create]).await;
    for _ in 0..2 {
        let found = "SELECT max(i), min(i), max(d), count(*) FROM grown";
        assert_eq!(rows(&root, found).await.unwrap(), [["7", "5", "7.50", "2"]]);
        assert_eq!(rows(&root, "SELECT max(i) FROM grown").await.unwrap(), [["7"]]);
        assert_eq!(rows(&root, "SELECT d FROM grown WHERE i > 6").await.unwrap(), [["7.50"]]);
    }
    let narrowed = format!("CREATE EXTERNAL TABLE small (i TINYINT) STORED AS PARQUET LOCATION '{}'", place.display());
    run(&root, &[&copy("300::BIGINT AS i", "c.parquet"), &narrowed]).await;
    let error = rows(&root, "SELECT max(i) FROM small").await.unwrap_err();
    assert!(error.to_string().contains("can't cast value 300 to type TINYINT"), "{error}");
}

//! Parameters that are added to a time, or taken from one, where the sum is written to a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, DurationSecondArray, Int64Array, IntervalMonthDayNanoArray, NullArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use arrow_flight::sql::CommandPreparedStatementUpdate;
use querent_tests::{TestServer, TestSettings};

use super::Raw;
use super::prepared::row;

/// The planner takes them for times, and of a time and a time there is no sum to write.
#[tokio::test]
async fn what_is_taken_from_a_time_that_is_written_is_an_interval() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a int, ts timestamp, d date)").await.unwrap();
    raw.rows("create temporary table own (a int, ts timestamp)").await.unwrap();
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    for (sql, parameters) in [
        ("update t set ts = ts - ?", vec![interval.clone()]),
        ("update t set ts = ts - ? where a = ?", vec![interval.clone(), DataType::Int32]),
        ("update own set ts = ts - ? where a = ?", vec![interval.clone(), DataType::Int32]),
        ("update own set a = ?", vec![DataType::Int32]),
        ("update t set d = d - ?", vec![DataType::Int64]),
        ("insert into t (ts) values (timestamp '2024-05-06' - ?)", vec![interval.clone()]),
        ("insert into t (a, ts) values (?, ? + timestamp '2024-05-06')", vec![DataType::Int32, interval.clone()]),
        ("insert into t (ts) select ts - ? from t where a = ?", vec![interval, DataType::Int32]),
    ] {
        let prepared = raw.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let types: Vec<_> = prepared.parameters.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, parameters, "{sql}");
    }
}

#[tokio::test]
async fn intervals_and_durations_are_taken_from_a_time_that_is_inserted() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a int, ts timestamp)").await.unwrap();
    let insert = "insert into t (a, ts) values (?, timestamp '2024-05-06 00:00:00' - ?)";
    let handle = raw.prepare(insert).await.unwrap().handle;
    let update = CommandPreparedStatementUpdate { prepared_statement_handle: handle };
    let places = |places: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(places)) };
    let intervals = [IntervalMonthDayNano::new(0, 1, 0), IntervalMonthDayNano::new(2, 0, 0)];
    let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(intervals.to_vec()));
    let hour: ArrayRef = Arc::new(DurationSecondArray::from(vec![3_600]));
    raw.put(&update, &[row(vec![places(vec![1, 2]), intervals])]).await.unwrap();
    raw.put(&update, &[row(vec![places(vec![3]), hour])]).await.unwrap();
    // It says no type, and is taken for an interval.
    for insert in ["insert into t (ts) values (now() - ?)", "insert into t (ts) values (? + timestamp '2024-05-06')"] {
        let handle = raw.prepare(insert).await.unwrap().handle;
        let update = CommandPreparedStatementUpdate { prepared_statement_handle: handle };
        raw.put(&update, &[row(vec![Arc::new(NullArray::new(1))])])
            .await
            .unwrap_or_else(|error| panic!("{insert}: {error}"));
    }
    assert_eq!(raw.number("select count(*) from t where ts is null").await, 2);
    raw.rows("prepare p(interval) as insert into t values (4, timestamp '2024-05-06' + $1)").await.unwrap();
    raw.rows("execute p(interval '2 days')").await.unwrap();
    let expected = "(1, timestamp '2024-05-05'), (2, timestamp '2024-03-06'), (3, timestamp '2024-05-05 23:00:00'), \
                    (4, timestamp '2024-05-08')";
    let found = format!("select cast(count(*) as bigint) from t join (values {expected}) e(a, ts) using (a, ts)");
    assert_eq!(raw.number(&found).await, 4);
}

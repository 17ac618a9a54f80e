//! Statements that are executed for several rows of values: the order of what queries find, and what is planned for each.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use arrow_flight::sql::{CommandPreparedStatementQuery, CommandPreparedStatementUpdate, DoPutPreparedStatementResult};
use prost::Message;
use querent_tests::{TestServer, TestSettings};

use super::prepared::row;
use super::{Raw, decode, refused, schema_of, ticket_of};

/// As if the query had been executed for one row of values after the other.
#[tokio::test]
async fn rows_come_in_the_order_of_the_values_and_of_the_query() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t as select value as a, 'x' as s from generate_series(1, 9) as g(value)").await.unwrap();
    let values: ArrayRef = Arc::new(Int64Array::from(vec![4, 6, 3]));
    let query = |handle| CommandPreparedStatementQuery { prepared_statement_handle: handle };
    for (sql, expected) in [
        ("select a from t where a < ? order by a desc", vec![3, 2, 1, 5, 4, 3, 2, 1, 2, 1]),
        ("select a from t where a < ? order by s, a desc limit 2", vec![3, 2, 5, 4, 2, 1]),
        ("select count(*) from t where a < ?", vec![3, 5, 2]),
        ("select a from t where a = ?", vec![4, 6, 3]),
        ("select x.a, y.a from t x join t y on x.a = y.a where x.a = ?", vec![4, 6, 3]),
        ("select x.a, x.a as a2 from t x join t y on x.a = y.a where x.a = ? order by y.s", vec![4, 6, 3]),
        ("select * from t x join t y on x.a = y.a where x.a = ? order by y.s", vec![4, 6, 3]),
    ] {
        let prepared = raw.prepare(sql).await.unwrap();
        let answers = raw.put(&query(prepared.handle), &[row(vec![Arc::clone(&values)])]).await.unwrap();
        let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
        let info = raw.info(&query(bound.prepared_statement_handle.expect("a handle with the values"))).await.unwrap();
        let (schema, batches) = decode(raw.fetch(ticket_of(&info)).await.unwrap()).await;
        assert_eq!(schema_of(&info), *schema, "{sql}");
        let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        assert_eq!(columns.collect::<Vec<_>>().concat(), expected, "{sql}");
        if sql.starts_with("select *") {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            assert_eq!(names, ["a", "s", "a", "s"], "as for one row of values");
        }
    }
}

/// There is one plan to show: a union of many was refused with an internal error.
#[tokio::test]
async fn explain_takes_one_row_of_values() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint)").await.unwrap();
    let query = |handle| CommandPreparedStatementQuery { prepared_statement_handle: handle };
    for sql in ["explain select a from t where a = ?", "explain analyze select a from t where a = ?"] {
        for (values, is_shown) in [(vec![4], true), (vec![4, 6], false)] {
            let prepared = raw.prepare(sql).await.unwrap();
            let values: ArrayRef = Arc::new(Int64Array::from(values));
            let answers = raw.put(&query(prepared.handle), &[row(vec![values])]).await.unwrap();
            let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
            let handle = bound.prepared_statement_handle.expect("a handle with the values");
            let info = raw.info(&query(handle)).await;
            if is_shown {
                let (_, batches) = decode(raw.fetch(ticket_of(&info.unwrap())).await.unwrap()).await;
                assert!(batches.iter().any(|batch| batch.num_rows() > 0), "{sql}");
            } else {
                assert!(info.as_ref().unwrap_err().message().contains("takes one row of values"), "{sql}: {info:?}");
                assert_eq!(refused(info).1, "sql_plan_error");
            }
        }
    }
}

/// Executed for each row of values, the table would be there already, or have the last one alone: it had all of them.
#[tokio::test]
async fn a_table_that_is_made_and_rows_that_replace_others_take_one_row_of_values() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t as select 7 as a").await.unwrap();
    let update = |handle| CommandPreparedStatementUpdate { prepared_statement_handle: handle };
    for (sql, label) in [
        ("create table made as select ? as a", "CREATE TABLE AS"),
        ("create or replace table t as select ? as a", "CREATE TABLE AS"),
        ("create temporary table made as select a from t where a < ?", "CREATE TEMPORARY TABLE"),
        ("insert overwrite t select ?", "INSERT OVERWRITE"),
    ] {
        let prepared = raw.prepare(sql).await.unwrap();
        let values = row(vec![Arc::new(Int64Array::from(vec![1, 2]))]);
        let refusal = raw.updated(&update(prepared.handle), &[values]).await;
        let message = refusal.as_ref().unwrap_err().message();
        assert!(message.contains(&format!("{label} is executed once, and takes one row")), "{sql}: {message}");
        assert_eq!(refused(refusal).1, "sql_plan_error", "{sql}");
    }
    assert_eq!(raw.number("select a from t").await, 7);
    let prepared = raw.prepare("create or replace table t as select ? as a").await.unwrap();
    let one = row(vec![Arc::new(Int64Array::from(vec![9]))]);
    assert_eq!(raw.updated(&update(prepared.handle), &[one]).await.unwrap(), 1);
    assert_eq!(raw.number("select a from t").await, 9);
}

/// The end of a series is a part of the plan, as is the value in a query that gives one of a row's.
#[tokio::test]
async fn what_is_planned_with_its_values_is_executed_for_each_row() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a bigint, b bigint)").await.unwrap();
    let series = raw.prepare("insert into t select value, 0 from generate_series(1, ?) as g(value)").await.unwrap();
    let update = |handle| CommandPreparedStatementUpdate { prepared_statement_handle: handle };
    let ends = || row(vec![Arc::new(Int64Array::from(vec![2, 3]))]);
    assert_eq!(raw.updated(&update(series.handle), &[ends()]).await.unwrap(), 5);
    assert_eq!(raw.number("select cast(sum(a) as bigint) from t").await, 9);

    let query = raw.prepare("select value from generate_series(1, ?) as g(value)").await.unwrap();
    let query = CommandPreparedStatementQuery { prepared_statement_handle: query.handle };
    let answers = raw.put(&query, &[ends()]).await.unwrap();
    let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
    let handle = bound.prepared_statement_handle.expect("a handle with the values");
    let refusal = raw.info(&CommandPreparedStatementQuery { prepared_statement_handle: handle }).await;
    assert!(refusal.as_ref().unwrap_err().message().contains("takes one row of them"), "{refusal:?}");
    assert_eq!(refused(refusal).1, "sql_plan_error");

    let chosen = "insert into t values (?, (select count(*) from generate_series(1, 3) as g(value) where value < ?))";
    let chosen = raw.prepare(chosen).await.unwrap();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![10, 11]));
    let below: ArrayRef = Arc::new(Int64Array::from(vec![2, 3]));
    assert_eq!(raw.updated(&update(chosen.handle), &[row(vec![keys, below])]).await.unwrap(), 2);
    assert_eq!(raw.number("select sum(b)::bigint from t where a >= 10").await, 3);
}

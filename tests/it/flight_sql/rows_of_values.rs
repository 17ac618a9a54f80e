//! Queries that are executed for several rows of values: the order of what they find.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use arrow_flight::sql::{CommandPreparedStatementQuery, DoPutPreparedStatementResult};
use prost::Message;
use querent_tests::{TestServer, TestSettings};

use super::prepared::row;
use super::{Raw, decode, schema_of, ticket_of};

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

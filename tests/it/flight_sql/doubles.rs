//! Doubles as processors compute them: the NaN of `0.0 / 0.0` has a sign, and so may a zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow_flight::sql::{
    CommandPreparedStatementQuery, CommandStatementIngest, DoPutPreparedStatementResult, TableDefinitionOptions,
    TableExistsOption, TableNotExistOption,
};
use prost::Message;
use querent_tests::{TestServer, TestSettings};

use super::prepared::row;
use super::{Raw, decode, ticket_of};

/// Five rows: 1, the NaN with a sign, the one without, -5 and -0.0.
fn sent() -> RecordBatch {
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("i", Arc::new(Int64Array::from_iter_values(1..=5)), true),
        ("d", Arc::new(Float64Array::from(vec![1.0, -f64::NAN, f64::NAN, -5.0, -0.0])), true),
        ("f", Arc::new(Float32Array::from(vec![1.0, -f32::NAN, f32::NAN, -5.0, -0.0])), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[tokio::test]
async fn a_nan_that_was_computed_elsewhere_is_above_all_numbers() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    for temporary in [false, true] {
        let options = TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Create as i32,
            if_exists: TableExistsOption::Replace as i32,
        };
        let command = CommandStatementIngest {
            table: "computed".to_owned(),
            table_definition_options: Some(options),
            temporary,
            ..CommandStatementIngest::default()
        };
        assert_eq!(raw.updated(&command, &[sent()]).await.unwrap(), 5);
        for column in ["d", "f"] {
            for (query, expected) in [
                ("select count(*) from computed where COLUMN = 'NaN'::double", 2),
                ("select count(*) from computed where COLUMN < 0", 1),
                ("select i from computed order by COLUMN, i limit 1", 4),
                ("select i from computed order by COLUMN desc, i limit 1", 2),
                ("select count(*) from computed where COLUMN = (select max(COLUMN) from computed)", 2),
                ("select cast(min(COLUMN) as bigint) from computed", -5),
                ("select cast(max(r) as bigint) from (select rank() over (order by COLUMN) as r from computed)", 4),
                ("select count(*) from computed a join computed b using (COLUMN)", 7),
            ] {
                let query = query.replace("COLUMN", column);
                assert_eq!(raw.number(&query).await, expected, "temporary: {temporary}: {query}");
            }
        }
    }
}

/// A zero with a sign is as any other in each comparison, and a NaN with a sign finds all.
#[tokio::test]
async fn bound_doubles_are_compared_without_their_signs() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table d (i bigint, x double)").await.unwrap();
    raw.rows("insert into d values (1, 0.0), (2, '-0.0'::double), (3, 1.5), (4, 'NaN'::double)").await.unwrap();
    let zero: ArrayRef = Arc::new(Float64Array::from(vec![-0.0]));
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![-f64::NAN]));
    for (condition, value, expected) in [
        ("x = ?", &zero, 2),
        ("x is not distinct from ?", &zero, 2),
        ("x is distinct from ?", &zero, 2),
        ("nullif(x, ?) is null", &zero, 2),
        ("case x when ? then true else false end", &zero, 2),
        ("x = ?", &nan, 1),
        ("x < ?", &nan, 3),
        ("x is not distinct from ?", &nan, 1),
    ] {
        let prepared = raw.prepare(&format!("select count(*) from d where {condition}")).await.unwrap();
        let query = |handle| CommandPreparedStatementQuery { prepared_statement_handle: handle };
        let answers = raw.put(&query(prepared.handle), &[row(vec![Arc::clone(value)])]).await.unwrap();
        let bound = DoPutPreparedStatementResult::decode(answers[0].app_metadata.clone()).unwrap();
        let bound = query(bound.prepared_statement_handle.expect("a handle with the values"));
        let info = raw.info(&bound).await.unwrap();
        let (_, batches) = decode(raw.fetch(ticket_of(&info)).await.unwrap()).await;
        let counted = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        assert_eq!(counted.sum::<i64>(), expected, "{condition}");
    }
}

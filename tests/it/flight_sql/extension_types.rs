//! Columns of Arrow's extension types, and of encodings, where rows are added to a table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, FixedSizeBinaryArray, Int8Array, Int64Array, ListViewArray, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::sql::{CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption};
use querent_tests::{TestServer, TestSettings};

use super::Raw;

fn extension(name: &str, extension: &str, data_type: DataType) -> Field {
    let metadata = HashMap::from([("ARROW:extension:name".to_owned(), extension.to_owned())]);
    Field::new(name, data_type, true).with_metadata(metadata)
}

/// As INSERT does it with the values that a new table would have: a boolean is 0 or 1, whatever byte it was sent as.
#[tokio::test]
async fn values_are_added_as_what_they_mean() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table added (n bigint, flag double, yes boolean, id varchar, ids varchar[], i bigint[])")
        .await
        .unwrap();
    let flags: ArrayRef = Arc::new(Int8Array::from(vec![Some(-128), Some(0), None]));
    let id: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[0x11_u8; 16]; 3].iter()).unwrap());
    let item = extension("item", "arrow.uuid", DataType::FixedSizeBinary(16));
    let ids = ListViewArray::new(Arc::new(item), vec![2, 1, 0].into(), vec![1, 1, 2].into(), Arc::clone(&id), None);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let lists = ListViewArray::new(item, vec![1, 0, 0].into(), vec![1, 1, 0].into(), numbers, None);
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        extension("flag", "arrow.bool8", DataType::Int8),
        extension("yes", "arrow.bool8", DataType::Int8),
        extension("id", "arrow.uuid", DataType::FixedSizeBinary(16)),
        Field::new("ids", ids.data_type().clone(), true),
        Field::new("i", lists.data_type().clone(), true),
    ]);
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let columns = vec![n, Arc::clone(&flags), flags, id, Arc::new(ids), Arc::new(lists)];
    let sent = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    for (temporary, existing) in [(false, TableExistsOption::Append), (true, TableExistsOption::Fail)] {
        let options =
            TableDefinitionOptions { if_not_exist: TableNotExistOption::Create as i32, if_exists: existing as i32 };
        let command = CommandStatementIngest {
            table: "added".to_owned(),
            table_definition_options: Some(options),
            temporary,
            ..CommandStatementIngest::default()
        };
        assert_eq!(raw.updated(&command, std::slice::from_ref(&sent)).await.unwrap(), 3);
        for (condition, expected) in [
            ("n = 1 and flag = true and yes and i = [8]", 1),
            ("n = 2 and flag = false and not yes and i = [7]", 1),
            ("n = 3 and flag is null and yes is null and len(i) = 0 and len(ids) = 2", 1),
            ("id = '11111111-1111-1111-1111-111111111111' and ids[1] = id", 3),
        ] {
            let condition = match temporary {
                true => condition.to_owned(),
                false => condition.replace("flag = true", "flag = 1").replace("flag = false", "flag = 0"),
            };
            let counted = raw.number(&format!("select count(*) from added where {condition}")).await;
            assert_eq!(counted, expected, "temporary: {temporary}: {condition}");
        }
        if !temporary {
            assert_eq!(raw.number("select cast(sum(flag) as bigint) from added").await, 1);
        }
    }
}

/// Data frames have columns of nulls alone that are texts.
#[tokio::test]
async fn texts_that_are_null_are_added_as_structures() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table shapes (s struct(a int), m map(varchar, int))").await.unwrap();
    let options = TableDefinitionOptions {
        if_not_exist: TableNotExistOption::Fail as i32,
        if_exists: TableExistsOption::Append as i32,
    };
    let command = CommandStatementIngest {
        table: "shapes".to_owned(),
        table_definition_options: Some(options),
        ..CommandStatementIngest::default()
    };
    let sent = |s: Option<&str>, m: Option<&str>| {
        let [s, m] = [s, m].map(|text| Arc::new(StringArray::from(vec![None, text])) as ArrayRef);
        RecordBatch::try_from_iter_with_nullable([("s", s, true), ("m", m, true)]).unwrap()
    };
    assert_eq!(raw.updated(&command, &[sent(None, None)]).await.unwrap(), 2);
    assert_eq!(raw.number("select count(*) from shapes where s is null and m is null").await, 2);
    for (s, m, name) in [(Some("x"), None, "STRUCT(a INTEGER)"), (None, Some("x"), "MAP(VARCHAR, INTEGER)")] {
        let refusal = raw.updated(&command, &[sent(s, m)]).await.unwrap_err();
        assert!(refusal.message().contains(&format!("a text is not written as {name}; send")), "{refusal}");
    }
}

//! Keys in the catalog: recorded, listed in pages, gone with their tables, and gained by a folder that is older.

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{
    ForeignKey, IfExists, KeyFilter, KeyKind, PageRequest, Principal, Role, TableKind, TableName, UniqueKey,
};

use crate::lake::{admin, create_numbers, new, open, sqlite};

/// A folder that is older than keys gains them; its foreign keys, which have no names, are listed under made ones.
#[tokio::test]
async fn a_store_without_keys_gains_them() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "buyers", &[]).await;
    create_numbers(&catalog, "sales", &[]).await;
    catalog.close().await.unwrap();
    let store = sqlite(folder.path());
    store
        .execute_batch(
            r#"DROP TABLE querent_key;
               DROP TABLE querent_foreign_key;
               DELETE FROM querent_migrations WHERE version = 8;
               INSERT INTO querent_relationship
                   (from_database, from_table, from_columns, to_database, to_table, to_columns, origin, subject, created_at)
               VALUES ('default', 'sales', '["a"]', 'default', 'buyers', '["a"]', 'foreign_key', '', 0);"#,
        )
        .unwrap();
    drop(store);
    let catalog = open(folder.path()).await;
    let keys = catalog.keys().list(&admin(), &KeyFilter::default(), PageRequest::first(10)).await.unwrap().items;
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!((keys[0].name.as_str(), keys[0].kind), ("sales_a_fkey", KeyKind::Foreign));
    let stranger = Principal::new("stranger", Role::Read).with_databases(["elsewhere"]);
    let hidden = catalog.keys().list(&stranger, &KeyFilter::default(), PageRequest::first(10)).await.unwrap();
    assert!(hidden.items.is_empty());
}

#[tokio::test]
async fn keys_are_listed_in_pages_and_go_with_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let column = Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Int64, true)]);
    let created = |number: usize| {
        let (catalog, column) = (&catalog, &column);
        async move {
            let name = TableName::new("default", format!("t{number}"));
            let mut draft = catalog.tables().draft(&name, column, None).await.unwrap();
            draft.keys = vec![UniqueKey { name: None, is_primary: true, columns: vec!["A".into()] }];
            if number > 0 {
                let table = TableName::new("default", "t0");
                draft.foreign_keys =
                    vec![ForeignKey { name: None, columns: vec!["b".into()], table, referred: vec!["a".into()] }];
            }
            new(catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap());
        }
    };
    for number in 0..5 {
        created(number).await;
    }
    let mut names = Vec::new();
    let mut request = PageRequest::first(2);
    loop {
        let page = catalog.keys().list(&admin(), &KeyFilter::default(), request).await.unwrap();
        assert!(page.items.len() <= 2);
        names.extend(page.items.into_iter().map(|key| key.name));
        let Some(after) = page.next else { break };
        request = PageRequest { limit: 2, after: Some(after) };
    }
    let primary = (0..5).map(|number| format!("t{number}_pkey"));
    let foreign = (1..5).map(|number| format!("t{number}_b_fkey"));
    assert_eq!(names, primary.chain(foreign).collect::<Vec<_>>());

    let t0 = TableName::new("default", "t0");
    catalog.tables().drop(&t0, &[TableKind::Managed], false).await.unwrap();
    let left = catalog.keys().list(&admin(), &KeyFilter::default(), PageRequest::first(100)).await.unwrap().items;
    assert_eq!(left.len(), 4, "what referred to the table is not shown: {left:?}");
    created(0).await;
    let back = catalog.keys().list(&admin(), &KeyFilter::default(), PageRequest::first(100)).await.unwrap().items;
    assert_eq!(back.len(), 9, "and is again when it is back: {back:?}");

    let mut draft = catalog.tables().draft(&TableName::new("default", "n"), &column, None).await.unwrap();
    draft.keys = vec![UniqueKey { name: None, is_primary: true, columns: vec!["b".into()] }];
    let refused = catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_object", "{refused}");
}

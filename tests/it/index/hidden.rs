//! What is hidden from a caller has no say in what it finds: not in the order, nor in the scores, nor in the spellings that are named.

use querent_catalog::{Catalog, IfExists, Principal, Role, SearchRequest, TableName};

use super::{Home, create};

/// Tables with words that are common among hidden ones, and with columns that hidden ones share or crowd out.
async fn with_tables(catalog: &Catalog, has_hidden: bool) {
    for database in ["pub", "hdb"] {
        catalog.databases().create(database, IfExists::Error).await.unwrap();
    }
    if has_hidden {
        for index in 0..60 {
            let column = format!("customer_{index}");
            create(catalog, "hdb", &format!("hidden_{index}"), &["amount", &column, "pub"]).await;
        }
        create(catalog, "hdb", "spelled", &["LastSeen"]).await;
        let told = TableName::new("hdb", "hidden_0");
        catalog.tables().set_comment(&told, Some("amount"), Some("what a zebra eats")).await.unwrap();
    }
    create(catalog, "pub", "second", &["customer"]).await;
    create(catalog, "pub", "first", &["amount"]).await;
    create(catalog, "pub", "third", &["last_seen"]).await;
}

/// What a caller of one database is told.
async fn told(catalog: &Catalog) -> Vec<String> {
    let caller = Principal::new("zoe", Role::Read).with_databases(["pub"]);
    let mut told = Vec::new();
    for question in
        ["pub", "customer amount", "customer", "amount", "zebra", "last seen", "what the customers saw last"]
    {
        let request = SearchRequest { query: question.into(), database: None, limit: 10 };
        let hits = catalog.search().tables(&caller, &request).await.unwrap();
        let hits = hits.iter().map(|hit| format!("{} {} {:?} {:?}", hit.table.name, hit.score, hit.found_by, hit.why));
        told.push(format!("{question}: {:?}", hits.collect::<Vec<_>>()));
    }
    for column in ["last_seen", "customer", "pub"] {
        told.push(format!("{:?}", catalog.search().columns(&caller, None, column, 10).await.unwrap()));
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_told_what_a_catalog_without_the_hidden_tables_tells() {
    let (home, home_without) = (Home::new(), Home::new());
    for is_stored in [false, true] {
        let (catalog, without) = (home.open(None).await, home_without.open(None).await);
        if !is_stored {
            with_tables(&catalog, true).await;
            with_tables(&without, false).await;
        }
        let (found, expected) = (told(&catalog).await, told(&without).await);
        assert!(expected[0].contains("pub.first"), "{expected:?}");
        assert_eq!(found, expected, "stored: {is_stored}");
        for catalog in [catalog, without] {
            catalog.search().index_idle().await.unwrap();
            catalog.close().await.unwrap();
        }
    }
}

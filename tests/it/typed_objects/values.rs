//! Value search: literals find the columns that hold them, as the data is now, and only where they may be seen.

use std::time::Duration;

use querent_catalog::{LeasedWork, Principal};
use serde_json::json;

use super::{hit, position, search, server, values_known};

#[tokio::test(flavor = "multi_thread")]
async fn a_literal_finds_the_column_that_holds_it() {
    let server = server().await;
    server.execute("CREATE TABLE shop.t1 AS SELECT * FROM (VALUES ('UA'), ('AA')) AS t(c7)").await;
    server.execute("CREATE TABLE shop.t2 AS SELECT 'checkout-svc' AS c1, 'New York' AS c2").await;
    server.execute("CREATE TABLE hr.t3 AS SELECT 'UA' AS c9").await;
    server.execute("CREATE TABLE shop.t4 AS SELECT 'N' || value AS tail FROM generate_series(1, 5000)").await;
    values_known(&server).await;

    for (question, table, why) in [
        ("how often did UA fly", "t1", "value 'UA' in t1.c7"),
        ("what failed in checkout-svc", "t2", "value 'checkout-svc' in t2.c1"),
        ("who lives in New York", "t2", "value 'New York' in t2.c2"),
        ("rows of 'ua'", "t1", "value 'UA' in t1.c7"),
    ] {
        let hits = search(&server, question, "scoped-tok").await;
        assert_eq!(position(&hits, table), Some(0), "{question}: {hits:?}");
        assert!(hit(&hits, table)["why"].to_string().contains(why), "{question}: {hits:?}");
        assert!(hit(&hits, table)["found_by"].as_array().unwrap().contains(&json!("value")), "{hits:?}");
        assert!(position(&hits, "t3").is_none(), "{hits:?}");
    }
    let hits = search(&server, "how often did UA fly", "admin-tok").await;
    assert!(position(&hits, "t3").is_some(), "{hits:?}");
    // Too many values to keep, but they are codes of few shapes.
    let hits = search(&server, "what is 'N4998' of", "admin-tok").await;
    let why = hit(&hits, "t4")["why"].to_string();
    assert!(why.contains("values like 'N4998' in t4.tail"), "{why}");
    assert!(search(&server, "N499812", "admin-tok").await.is_empty(), "of no shape that is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_follow_writes_and_drops() {
    let server = server().await;
    server.execute("CREATE TABLE shop.boxes AS SELECT 'QXA' AS c").await;
    values_known(&server).await;
    assert_eq!(search(&server, "what is QXA", "admin-tok").await.len(), 1);
    server.execute("INSERT INTO shop.boxes VALUES ('QXB')").await;
    values_known(&server).await;
    assert_eq!(search(&server, "what is QXB", "admin-tok").await.len(), 1);
    server.execute("INSERT OVERWRITE shop.boxes VALUES ('QXC')").await;
    values_known(&server).await;
    assert!(search(&server, "what is QXA", "admin-tok").await.is_empty());
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("codes.csv");
    std::fs::write(&path, "code,n\nQXD,1\nQXE,2\n").unwrap();
    server
        .execute(&format!(
            "CREATE EXTERNAL TABLE shop.e STORED AS CSV LOCATION '{}' OPTIONS ('has_header' 'true')",
            path.display()
        ))
        .await;
    values_known(&server).await;
    assert_eq!(search(&server, "what is QXE", "admin-tok").await[0]["table"], "e");
    server.execute("DROP TABLE shop.boxes").await;
    assert!(search(&server, "what is QXC", "admin-tok").await.is_empty());
}

/// What was written before values were kept, or by DuckDB, is collected once it is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_collected_when_a_table_is_looked_at() {
    let server = server().await;
    server.execute("CREATE TABLE shop.parcels AS SELECT 'QX9' AS c").await;
    values_known(&server).await;
    let catalog = server.engine().catalog();
    let name = querent_catalog::TableName::new("shop", "parcels");
    let table = catalog.tables().resolve(&Principal::local_admin(), &[name]).await.unwrap().remove(0).unwrap();
    let forgotten =
        querent_catalog::TableProfile { table_id: table.info.id, state: "older".into(), columns: Vec::new() };
    let lease = catalog.leases().take(LeasedWork::ColumnValues, Duration::ZERO).await.unwrap().had().unwrap();
    catalog.values().store_profile(forgotten, &lease).await.unwrap();
    assert!(search(&server, "QX9", "admin-tok").await.is_empty());
    // A minute must pass before the same table is checked again, so another one stands for it.
    assert_eq!(catalog.values().unprofiled(&[table.info.id]).await.unwrap().len(), 1);
}

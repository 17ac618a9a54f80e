//! The schema index that servers have in common: one writes it, the others take it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use querent_catalog::index::embed::Embedder;
use querent_catalog::{Catalog, CatalogOptions, Principal, SearchRequest};
use querent_tests::{PostgresProcess, S3Server, ServerProcess};
use serde_json::json;
use tempfile::TempDir;

use super::create;
use crate::index::Bag;
use crate::object_store_lake::{done, started};

const TABLES: usize = 20;

async fn open(folder: &TempDir, url: &str, embedder: Arc<Bag>) -> Arc<Catalog> {
    let embedder: Arc<dyn Embedder> = embedder;
    let options =
        CatalogOptions { url: Some(url.to_owned()), embedder: Some(embedder), ..CatalogOptions::new(folder.path()) };
    Catalog::open(options).await.unwrap()
}

/// Waits longer than other tests: a lease is asked for each ten seconds, and versions are ten seconds apart.
async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain: {description}");
        // Other servers tell nothing of it.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn finds(catalog: &Catalog, name: &str) -> bool {
    let request = SearchRequest { query: name.into(), database: None, limit: 3 };
    let hits = catalog.search().tables(&Principal::local_admin(), &request).await.unwrap();
    hits.iter().any(|hit| hit.table.name.table == name)
}

fn server_id(folder: &TempDir) -> String {
    let file = std::fs::read_to_string(folder.path().join("server.id")).unwrap();
    file.lines().next().unwrap_or_default().to_owned()
}

fn took(folder: &Path) -> bool {
    folder.join("index/shared/table.json").is_file() && folder.join("index/shared/column.json").is_file()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_writes_the_index_and_the_others_take_it() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let models = [(); 3].map(|()| Bag::new(16));
    let texts = |server: usize| models[server].texts.load(Ordering::Relaxed);
    let lake = |sql: &str| postgres.psql("lake", sql).unwrap().trim().to_owned();
    let holder = "SELECT DISTINCT holder FROM querent_lease WHERE name LIKE 'index of %' AND holder IS NOT NULL";

    let one = open(&folders[0], &url, Arc::clone(&models[0])).await;
    // A table that comes while the first index is made may be embedded twice.
    one.search().index_idle().await.unwrap();
    for number in 0..TABLES {
        create(&one, &format!("table_{number}")).await.unwrap();
    }
    one.search().index_idle().await.unwrap();
    assert_eq!(texts(0), TABLES);

    // A new server has the vectors that the other computed, and its rows are searched.
    let two = open(&folders[1], &url, Arc::clone(&models[1])).await;
    two.search().index_idle().await.unwrap();
    assert!(took(folders[1].path()));
    assert_eq!(texts(1), 0);
    assert!(finds(&two, "table_7").await);
    assert_eq!(lake(holder), server_id(&folders[0]));

    // What is made later is found at once where it is made, and a moment later elsewhere, whoever writes the index.
    create(&two, "made_by_two").await.unwrap();
    create(&one, "made_by_one").await.unwrap();
    assert!(finds(&two, "made_by_two").await);
    wait_until("each finds what the other made", async || {
        finds(&one, "made_by_two").await && finds(&two, "made_by_one").await
    })
    .await;

    // The writer goes, and with it its folder: another takes over, and what is made then reaches a third.
    one.close().await.unwrap();
    wait_until("another server writes the index", async || lake(holder) == server_id(&folders[1])).await;
    create(&two, "made_later").await.unwrap();
    let three = open(&folders[2], &url, Arc::clone(&models[2])).await;
    three.search().index_idle().await.unwrap();
    for name in ["table_0", "made_by_one", "made_by_two", "made_later"] {
        assert!(finds(&three, name).await, "{name}");
    }
    assert!(texts(2) < TABLES, "it embeds no more than what is not published yet: {}", texts(2));
    two.close().await.unwrap();
    three.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_the_writer_loses_nothing_when_another_is() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let lake = |sql: &str| postgres.psql("lake", sql).unwrap().trim().to_owned();
    let open = async |folder| open(folder, &url, Bag::new(16)).await;
    let (one, two) = (open(&folders[0]).await, open(&folders[1]).await);
    create(&one, "first_table").await.unwrap();
    for catalog in [&one, &two] {
        catalog.search().index_idle().await.unwrap();
    }
    // The leases pass on as from a server that stands still.
    lake("UPDATE querent_lease SET expires_at = 0, holder = 'another', fence = fence + 1 WHERE name LIKE 'index of %'");
    create(&one, "second_table").await.unwrap();
    create(&two, "third_table").await.unwrap();
    lake("DELETE FROM querent_lease WHERE holder = 'another'");
    wait_until("both find all", async || {
        let mut finds_all = true;
        for name in ["first_table", "second_table", "third_table"] {
            finds_all &= finds(&one, name).await && finds(&two, name).await;
        }
        finds_all
    })
    .await;
    one.close().await.unwrap();
    two.close().await.unwrap();
    // Started again, from what each has and what was published.
    for folder in &folders {
        let catalog = open(folder).await;
        catalog.search().index_idle().await.unwrap();
        for name in ["first_table", "second_table", "third_table"] {
            assert!(finds(&catalog, name).await, "{name}");
        }
        catalog.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_comes_from_the_object_store_and_is_laid_down_again_where_it_was_removed() {
    let (store, postgres) = (S3Server::start().await, PostgresProcess::start());
    let url = postgres.new_database("lake");
    let settings = [("QUERENT_CATALOG_URL", url.as_str())];
    let shelved =
        async || store.keys().await.into_iter().filter(|key| key.contains("querent-index/")).collect::<Vec<_>>();
    let states = "SELECT DISTINCT state FROM system.index";
    let is_ready = async |server: &ServerProcess| done(server, states).await == json!([["ready"]]);

    let one = started(&store, &settings);
    done(&one, "CREATE TABLE wagons AS SELECT 1 AS axles").await;
    wait_until("the index is in the store", async || {
        let keys = shelved().await;
        keys.iter().any(|key| key.contains("/table/")) && keys.iter().any(|key| key.contains("/column/"))
    })
    .await;
    let two = started(&store, &settings);
    wait_until("the second server has it", async || is_ready(&two).await).await;
    assert!(took(two.data.path()));

    // Somebody cleaned the bucket up.
    for key in shelved().await {
        store.delete(&key).await;
    }
    let three = started(&store, &settings);
    wait_until("the third server has it", async || is_ready(&three).await && took(three.data.path())).await;
    assert!(!shelved().await.is_empty());
    // They are no files of tables.
    let check = done(&three, "SELECT count(*) FROM wagons").await;
    assert_eq!(check, json!([[1]]));
}

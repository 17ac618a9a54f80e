//! Checks and backups of a data folder, and what a killed write leaves.

use std::path::{Path, PathBuf};
use std::time::Duration;

use querent_catalog::{CatalogOptions, restore};
use querent_engine::Engine;
use querent_tests::{TestServer, TestSettings, wait_until};
use serde_json::json;

use crate::sql::{admin, engine, rows};

pub(crate) fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(parquet_files(&path)),
            false if path.extension().is_some_and(|extension| extension == "parquet") => found.push(path),
            false => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_what_is_damaged() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    for table in ["a", "b", "c"] {
        rows(&root, &format!("CREATE TABLE {table} AS SELECT value AS v FROM generate_series(1, 1000) AS s(value)"))
            .await
            .unwrap();
    }
    let catalog = engine.catalog();
    let whole = catalog.check(None).await.unwrap();
    assert_eq!((whole.faults.len(), whole.files, whole.orphans.len()), (0, 3, 0), "{whole:?}");

    let files = parquet_files(&folder.path().join("data"));
    std::fs::remove_file(&files[0]).unwrap();
    let length = std::fs::metadata(&files[1]).unwrap().len();
    let cut = std::fs::read(&files[1]).unwrap();
    std::fs::write(&files[1], &cut[..cut.len() - 10]).unwrap();
    let mut bytes = std::fs::read(&files[2]).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(b"XXXX");
    std::fs::write(&files[2], &bytes).unwrap();
    let damaged = catalog.check(None).await.unwrap();
    let told = |file: &PathBuf, what: &str| {
        let name = file.file_name().unwrap().to_string_lossy();
        damaged.faults.iter().any(|fault| fault.contains(&*name) && fault.contains(what))
    };
    assert_eq!(damaged.faults.len(), 3, "{damaged:?}");
    assert!(told(&files[0], "cannot be read") && told(&files[2], "no whole Parquet file"), "{damaged:?}");
    assert!(told(&files[1], &format!("instead of {length}")), "{damaged:?}");
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_bit_in_a_page_is_found() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let series = "SELECT value AS v, 'row ' || value AS s FROM generate_series(1, 200000) AS t(value)";
    rows(&root, &format!("CREATE TABLE a AS {series}")).await.unwrap();
    rows(&root, "CREATE TABLE b AS SELECT 1 AS \"querent-crc32:\"").await.unwrap();
    rows(&root, "DELETE FROM a WHERE v % 1000 = 7").await.unwrap();
    let whole = engine.check_contents(None).await.unwrap();
    assert_eq!((whole.faults.len(), whole.files_read), (0, Some(3)), "{whole:?}");
    for file in parquet_files(&folder.path().join("data")) {
        let bytes = std::fs::read(&file).unwrap();
        let footer: [u8; 4] = bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap();
        let footer_at = bytes.len() - 8 - u32::from_le_bytes(footer) as usize;
        let footer = String::from_utf8_lossy(&bytes[footer_at..]).into_owned();
        let said = footer.rsplit("querent-crc32:").next().unwrap();
        let covered = usize::from_str_radix(&said[..16], 16).unwrap();
        assert!(covered > 4 && covered <= footer_at, "{covered} of {footer_at}");
        for place in [4, covered / 2, covered - 1] {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            std::fs::write(&file, &damaged).unwrap();
            assert_eq!(engine.check(None).await.unwrap().faults, Vec::<String>::new(), "the length is the same");
            let found = engine.check_contents(None).await.unwrap();
            let name = file.file_name().unwrap().to_string_lossy();
            assert_eq!(found.files_read, Some(2), "{found:?}");
            assert!(found.faults.len() == 1 && found.faults[0].contains(&*name), "byte {place}: {found:?}");
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(rows(&root, "SELECT count(*) FROM a").await.unwrap(), [["199800"]]);
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_is_named_without_its_place() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE a AS SELECT value AS v FROM generate_series(1, 1000) AS s(value)").await.unwrap();
    let file = parquet_files(&folder.path().join("data")).remove(0);
    std::fs::remove_file(&file).unwrap();
    let error = rows(&root, "UPDATE a SET v = v + 1").await.unwrap_err();
    assert_eq!(error.code(), "query_execution_error", "{error}");
    let (told, name) = (error.to_string(), file.file_name().unwrap().to_string_lossy());
    assert!(told.contains(&*name) && told.contains("querent check"), "{told}");
    assert!(!told.contains(&*folder.path().to_string_lossy()), "{told}");
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_footer_lies_is_told_as_damaged() {
    let (folder, engine) = engine().await;
    rows(&admin(&engine), "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 1000) AS s(value)")
        .await
        .unwrap();
    engine.close().await.unwrap();
    let file = parquet_files(folder.path()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let length_at = bytes.len() - 8;
    bytes[length_at..length_at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let again = Engine::open(folder.path().join("data")).await.unwrap();
    let refused = rows(&admin(&again), "DELETE FROM t WHERE v % 7 = 3").await.unwrap_err();
    assert_eq!(refused.code(), "query_execution_error", "{refused}");
    assert!(refused.to_string().contains("of a managed table is damaged"), "{refused}");
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_no_table_has_are_found_and_removed_after_a_grace() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE kept AS SELECT 1 AS a").await.unwrap();
    rows(&root, "CREATE TABLE dropped AS SELECT 1 AS a").await.unwrap();
    rows(&root, "DROP TABLE dropped").await.unwrap();
    let kept = parquet_files(&folder.path().join("data"));
    let orphan = kept[0].with_file_name("ducklake-0190aaaa-0000-7000-8000-000000000000.parquet");
    let foreign = kept[0].with_file_name("mine.parquet");
    std::fs::copy(&kept[0], &orphan).unwrap();
    std::fs::copy(&kept[0], &foreign).unwrap();
    let catalog = engine.catalog();
    let found = catalog.check(Some(Duration::from_secs(3_600))).await.unwrap();
    assert_eq!((found.orphans.len(), found.removed), (1, 0), "it is too young: {found:?}");
    assert!(orphan.exists());
    let found = catalog.check(Some(Duration::ZERO)).await.unwrap();
    assert_eq!((found.orphans[0].path.clone(), found.removed), (orphan.clone(), 1));
    assert!(!orphan.exists() && foreign.exists() && kept.iter().all(|file| file.exists()));
    assert_eq!(rows(&root, "SELECT a FROM kept").await.unwrap(), [["1"]]);
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_writes_that_run_are_not_taken_for_those_that_no_table_has() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 100) AS s(value)").await.unwrap();
    let writer = {
        let session = admin(&engine);
        tokio::spawn(async move {
            for number in 1..=20 {
                rows(&session, "INSERT INTO t SELECT value FROM generate_series(1, 100) AS s(value)").await.unwrap();
                rows(&session, &format!("DELETE FROM t WHERE v = {number}")).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let found = engine.catalog().check(Some(Duration::ZERO)).await.unwrap();
        assert_eq!((found.orphans.len(), found.removed), (0, 0), "{found:?}");
    }
    writer.await.unwrap();
    let count = rows(&root, "SELECT count(*), count(*) FILTER (WHERE v > 20) FROM t").await.unwrap();
    // The number that is deleted after the n-th insert comes 20 - n times again.
    assert_eq!(count, [["1870", "1680"]]);
    assert_eq!(engine.catalog().check(None).await.unwrap().faults, Vec::<String>::new());
    // What is left by no write of this process is taken as before.
    let orphan = parquet_files(&folder.path().join("data"))[0]
        .with_file_name("ducklake-0190aaaa-0000-7000-8000-000000000000.parquet");
    std::fs::write(&orphan, "left").unwrap();
    assert_eq!(engine.catalog().check(Some(Duration::ZERO)).await.unwrap().removed, 1);
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_lost_commits_is_not_taken_for_whole() {
    let (folder, engine) = engine().await;
    rows(&admin(&engine), "CREATE TABLE kept AS SELECT 1 AS a").await.unwrap();
    engine.close().await.unwrap();
    let data = folder.path().join("data");
    let (catalog, older) = (data.join("catalog.sqlite"), folder.path().join("older.sqlite"));
    std::fs::copy(&catalog, &older).unwrap();
    let engine = Engine::open(&data).await.unwrap();
    rows(&admin(&engine), "CREATE TABLE later AS SELECT 1 AS a").await.unwrap();
    engine.close().await.unwrap();

    std::fs::copy(&older, &catalog).unwrap();
    let error = Engine::open(&data).await.err().unwrap();
    assert_eq!(error.code(), "catalog_corrupt");
    let mark = data.join("querent.snapshot");
    assert!(error.to_string().contains(&format!("remove {}", mark.display())), "{error}");
    assert_eq!(parquet_files(&data).len(), 2, "no file is removed");
    std::fs::remove_file(&mark).unwrap();
    let engine = Engine::open(&data).await.unwrap();
    assert_eq!(rows(&admin(&engine), "SELECT a FROM kept").await.unwrap(), [["1"]]);
    engine.close().await.unwrap();

    // A folder that was made anew has another catalog, of which the mark says nothing.
    for name in ["catalog.sqlite", "data", "index"] {
        let place = data.join(name);
        if place.is_dir() { std::fs::remove_dir_all(place).unwrap() } else { std::fs::remove_file(place).unwrap_or(()) }
    }
    Engine::open(&data).await.unwrap().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_while_tables_are_written_is_whole() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 100) AS s(value)").await.unwrap();
    rows(&root, "GRANT SELECT ON t TO ROLE r").await.unwrap();
    let writer = {
        let session = admin(&engine);
        tokio::spawn(async move {
            for _ in 0..20 {
                rows(&session, "INSERT INTO t SELECT value FROM generate_series(1, 100) AS s(value)").await.unwrap();
            }
        })
    };
    let mut counts = Vec::new();
    for index in 0..3 {
        let target = folder.path().join(format!("backup-{index}"));
        let made = engine.catalog().back_up(&target).await.unwrap();
        assert!(made.files > 0);
        let restored = folder.path().join(format!("restored-{index}"));
        assert_eq!(restore(&target, &restored).await.unwrap(), made);
        let again = Engine::open(&restored).await.unwrap();
        assert_eq!(again.catalog().check(None).await.unwrap().faults, Vec::<String>::new());
        assert_eq!(again.catalog().policies().current().version, 1);
        let count: u64 = rows(&admin(&again), "SELECT count(*) FROM t").await.unwrap()[0][0].parse().unwrap();
        assert_eq!(count % 100, 0, "a part of an insert");
        counts.push(count);
        again.close().await.unwrap();
    }
    writer.await.unwrap();
    assert!(counts.is_sorted() && counts[0] >= 100, "{counts:?}");
    // What is no whole backup is not restored, and nothing is written over.
    let target = folder.path().join("backup-0");
    let refused = engine.catalog().back_up(&target).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_object");
    assert_eq!(
        engine.catalog().back_up(&engine.catalog().data_dir().join("x")).await.unwrap_err().code(),
        "invalid_object"
    );
    // No folder can be where a file is, or below one.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below"), folder.path().join("x".repeat(300))] {
        let refused = engine.catalog().back_up(&place).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_object", "{refused}");
        assert!(refused.to_string().contains("choose another one"), "{refused}");
    }
    std::fs::remove_file(target.join("backup.json")).unwrap();
    assert_eq!(restore(&target, &folder.path().join("new")).await.unwrap_err().code(), "invalid_object");
    assert!(querent_catalog::Catalog::open(CatalogOptions::new(folder.path().join("restored-1"))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_neither_backed_up_nor_restored_without_a_word() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 1000) AS s(value)").await.unwrap();
    let cut = |file: &Path| std::fs::File::options().write(true).open(file).unwrap().set_len(100).unwrap();
    let backup = folder.path().join("backup");
    engine.catalog().back_up(&backup).await.unwrap();
    cut(&parquet_files(&backup)[0]);
    let restored = folder.path().join("restored");
    let refused = restore(&backup, &restored).await.unwrap_err();
    assert!(refused.to_string().contains("1 files of 100 bytes instead of 1 files of"), "{refused}");
    assert!(!restored.exists());
    std::fs::remove_file(&parquet_files(&backup)[0]).unwrap();
    assert!(restore(&backup, &restored).await.unwrap_err().to_string().contains("it has 0 files"));

    let file = parquet_files(engine.catalog().data_dir()).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let mut changed = bytes.clone();
    changed[4] ^= 0x10;
    std::fs::write(&file, &changed).unwrap();
    let refused = engine.catalog().back_up(&folder.path().join("changed")).await.unwrap_err();
    assert!(refused.to_string().contains("is not as it was written"), "{refused}");
    std::fs::write(&file, &bytes).unwrap();
    cut(&file);
    let again = folder.path().join("again");
    let refused = engine.catalog().back_up(&again).await.unwrap_err();
    assert!(refused.to_string().contains("has 100 bytes instead of"), "{refused}");
    assert!(!again.join("backup.json").exists());
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_does_not_lie_in_the_data_folder_whatever_it_is_called() {
    let (folder, engine) = engine().await;
    rows(&admin(&engine), "CREATE TABLE t AS SELECT 1 AS v").await.unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(engine.catalog().data_dir(), &link).unwrap();
    std::fs::create_dir(folder.path().join("beside")).unwrap();
    for inside in ["data/backup", "link/backup", "link/data/backup", "beside/../data/other"] {
        let refused = engine.catalog().back_up(&folder.path().join(inside)).await.unwrap_err();
        assert!(refused.to_string().contains("in the data folder itself"), "{inside}: {refused}");
    }
    engine.catalog().back_up(&folder.path().join("beside")).await.unwrap();
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_query_is_listed_and_ended_over_http() {
    let server =
        TestServer::start(TestSettings::default().tokens("ann-tok:read:ann,ben-tok:read:ben,boss-tok:admin:boss"))
            .await;
    let long = "SELECT count(*) FROM generate_series(1, 100000000) AS a(x), generate_series(1, 100000) AS b(y)";
    let http = server.http.clone();
    let request = http.post(server.url("/v1/query")).json(&json!({ "sql": long })).bearer_auth("ann-tok");
    let running = tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    let mut id = 0;
    wait_until("the query is listed", async || {
        let listed = server.get("/v1/queries", Some("ann-tok")).await.json();
        let queries = listed["queries"].as_array().unwrap();
        let own = queries.iter().find(|query| query["statement"].as_str().unwrap().starts_with("SELECT count(*)"));
        id = own.and_then(|query| query["id"].as_u64()).unwrap_or_default();
        id > 0
    })
    .await;
    let others = server.get("/v1/queries", Some("ben-tok")).await.text;
    assert!(!others.contains("generate_series"), "{others}");
    // Nor does a token of the same person that reads less.
    let narrow = json!({ "name": "narrow", "subject": "ann", "role": "read", "databases": ["default"] });
    let narrow =
        server.post("/v1/tokens", &narrow, Some("boss-tok")).await.json()["token"].as_str().unwrap().to_owned();
    let listed = server.get("/v1/queries", Some(&narrow)).await.text;
    assert!(!listed.contains("generate_series"), "{listed}");
    let cancel = format!("/v1/queries/{id}/cancel");
    assert_eq!(server.post(&cancel, &json!({}), Some("ben-tok")).await.status, 404);
    assert!(server.get("/v1/queries", Some("boss-tok")).await.text.contains("generate_series"));
    assert_eq!(server.post(&cancel, &json!({}), Some("ann-tok")).await.status, 200);
    let ended = running.await.unwrap();
    assert!(ended.contains("cancelled"), "{ended}");
    let path = format!("/v1/queries/{id}");
    wait_until("the query is gone", async || {
        server.send(server.http.delete(server.url(&path)), Some("boss-tok")).await.status == 404
    })
    .await;
}

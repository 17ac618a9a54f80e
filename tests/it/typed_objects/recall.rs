//! Spider dev's questions (even half) over its 166 schemas as one catalog, for comparing changes of the search on a
//! debug build: `cargo test --workspace -- --ignored spider_recall --nocapture`. The published figures come from the
//! bench cell `recall`. The catalog is kept in `QUERENT_CACHE`, since embedding it takes most of the time.

use std::collections::BTreeSet;
use std::path::PathBuf;

use querent_catalog::index::embed::{EmbedSettings, from_settings};
use querent_catalog::{Principal, SearchRequest};
use querent_engine::{Engine, EngineOptions, Limits, Session};
use querent_tests::models_dir;
use serde_json::Value;
use sha1::{Digest, Sha1};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; compares changes of the search"]
async fn spider_recall() {
    let cache = PathBuf::from(std::env::var_os("QUERENT_CACHE").unwrap());
    let lake = cache.join("spider-lake-debug");
    let is_new = !lake.exists();
    let mut options = EngineOptions::new(&lake);
    let settings = EmbedSettings {
        model_path: Some(models_dir().join("all-minilm-l6-v2")),
        ort_dylib_path: Some(models_dir().join("ort/libonnxruntime.so")),
        ..EmbedSettings::default()
    };
    options.embedder = from_settings(&settings).unwrap();
    let engine = Engine::open_with(options).await.unwrap();
    let read = |name: &str| -> Vec<Value> {
        serde_json::from_slice(&std::fs::read(cache.join("spider").join(name)).unwrap()).unwrap()
    };
    if is_new {
        let session = engine.session(Principal::local_admin(), Limits::default());
        for schema in read("tables.json") {
            create(&session, &schema).await;
        }
    }
    engine.catalog().index_idle().await.unwrap();

    let (mut questions, mut served) = (0, [0; 4]);
    for question in read("dev.json") {
        let text = question["question"].as_str().unwrap();
        if Sha1::digest(text.as_bytes())[0] % 2 == 1 {
            continue;
        }
        let gold = gold(&question);
        let request = SearchRequest { query: text.to_owned(), database: None, limit: 20 };
        let hits = engine.catalog().search(&Principal::local_admin(), &request).await.unwrap();
        let found: Vec<(String, String)> =
            hits.iter().map(|hit| (hit.table.name.database.clone(), hit.table.name.table.to_lowercase())).collect();
        questions += 1;
        for (index, k) in [3, 5, 10, 20].into_iter().enumerate() {
            let first: BTreeSet<_> = found.iter().take(k).cloned().collect();
            served[index] += i32::from(gold.is_subset(&first));
        }
        if !gold.is_subset(&found.iter().take(10).cloned().collect()) {
            let ranks: Vec<_> = gold.iter().map(|one| (&one.1, found.iter().position(|hit| hit == one))).collect();
            println!("{text} {} {ranks:?}", question["db_id"]);
        }
    }
    let percent = served.map(|count| f64::from(count) * 100.0 / f64::from(questions));
    println!("{questions} questions, all tables in the first 3, 5, 10, 20: {percent:.1?} %");
    engine.close().await.unwrap();
}

async fn create(session: &Session, schema: &Value) {
    let quoted = |name: &Value| format!("\"{}\"", name.as_str().unwrap().replace('"', "\"\""));
    let database = quoted(&schema["db_id"]);
    execute(session, &format!("CREATE SCHEMA {database}")).await;
    for (index, table) in schema["table_names_original"].as_array().unwrap().iter().enumerate() {
        let columns =
            schema["column_names_original"].as_array().unwrap().iter().zip(schema["column_types"].as_array().unwrap());
        let columns = columns.filter(|(column, _)| column[0] == index).map(|(column, kind)| {
            let data_type = match kind.as_str().unwrap() {
                "number" => "double",
                "time" => "timestamp",
                "boolean" => "boolean",
                _ => "varchar",
            };
            format!("{} {data_type}", quoted(&column[1]))
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        execute(session, &format!("CREATE TABLE {database}.{} ({columns})", quoted(table))).await;
    }
}

async fn execute(session: &Session, sql: &str) {
    session.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).collect().await.unwrap();
}

/// The words after FROM and JOIN: all that Spider's queries need.
fn gold(question: &Value) -> BTreeSet<(String, String)> {
    let query = question["query"].as_str().unwrap().to_lowercase();
    let words: Vec<&str> =
        query.split(|c: char| c.is_whitespace() || "(),;".contains(c)).filter(|w| !w.is_empty()).collect();
    let named = words.windows(2).filter(|pair| matches!(pair[0], "from" | "join") && pair[1] != "select");
    named.map(|pair| (question["db_id"].as_str().unwrap().to_owned(), pair[1].to_owned())).collect()
}

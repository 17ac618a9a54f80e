//! Vectors in SQL: texts embedded by the configured model, written and found again by meaning.

use datafusion::scalar::ScalarValue;
use querent_catalog::Principal;
use querent_catalog::index::embed::{EmbedProvider, EmbedSettings, from_settings};
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::models_dir;

use crate::sql::rows;

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_found_by_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let settings = EmbedSettings {
        provider: EmbedProvider::Model2vec,
        model: "wordllama-256".into(),
        model_path: Some(models_dir().join("wordllama-256")),
        ..EmbedSettings::default()
    };
    let options =
        EngineOptions { embedder: from_settings(&settings).unwrap(), ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = engine.session(Principal::local_admin(), Limits::default());
    let run = async |sql: &str| rows(&session, sql).await;
    run("CREATE TABLE notes (body VARCHAR, meaning FLOAT[256])").await.unwrap();
    for body in ["physicians and nurses", "locomotives", "a harvest of wheat"] {
        run(&format!("INSERT INTO notes VALUES ('{body}', embed('{body}'))")).await.unwrap();
    }
    let nearest = "SELECT body FROM notes ORDER BY cosine_distance(meaning, embed('doctors in a hospital')) LIMIT 1";
    assert_eq!(run(nearest).await.unwrap(), [["physicians and nurses"]]);

    let prepared = "SELECT body FROM notes ORDER BY inner_product(meaning, embed($1)) DESC LIMIT 1";
    let railway = vec![ScalarValue::Utf8(Some("a railway engine".to_owned()))];
    let (batches, _) = session.sql_with_params(prepared, railway).await.unwrap().collect().await.unwrap();
    let shown = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
    assert!(shown.contains("locomotives"), "{shown}");
    let described = session.describe_sql(prepared).await.unwrap();
    assert_eq!(described.schema.fields().len(), 1);

    let hybrid = "SELECT body FROM hybrid_search(notes, 'body', 'meaning', 'wheat for doctors', 2) ORDER BY score DESC";
    assert_eq!(run(hybrid).await.unwrap(), [["a harvest of wheat"], ["physicians and nurses"]]);
    // Of a prepared statement the question comes later.
    let prepared = "SELECT body FROM hybrid_search(notes, 'body', 'meaning', $1, $2) ORDER BY score DESC";
    let values = vec![ScalarValue::Utf8(Some("railway engine".to_owned())), ScalarValue::Int64(Some(1))];
    let (batches, _) = session.sql_with_params(prepared, values).await.unwrap().collect().await.unwrap();
    let shown = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
    assert!(shown.contains("locomotives"), "{shown}");
    let described = session.describe_sql(prepared).await.unwrap();
    assert_eq!((described.schema.fields().len(), described.parameters.fields().len()), (1, 2));

    // The column keeps the name of what was written.
    let named = session.sql("SELECT embed('x') IS NOT NULL, embed('x') AS v").await.unwrap().schema();
    assert_eq!(named.field(1).name(), "v");

    let refused = run("SELECT embed(body) FROM notes").await.unwrap_err();
    assert_eq!(refused.code(), "unsupported");
    let wrong = run("SELECT cosine_distance(meaning, [1.0, 2.0]) FROM notes").await.unwrap_err();
    assert_eq!(wrong.code(), "invalid_value");
    engine.close().await.unwrap();
}

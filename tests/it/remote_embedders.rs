//! Embedders behind HTTP, against servers that speak their providers' protocols: an index that searches by meaning,
//! batches, retries, refusals.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::datatypes::{DataType, Field, Schema};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use querent_catalog::index::embed::{EmbedProvider, EmbedSettings, Embedder, from_settings};
use querent_catalog::outbound::ApiKey;
use querent_catalog::{Catalog, CatalogError, CatalogOptions, FoundBy, IfExists, Principal, SearchRequest, TableName};
use serde_json::{Value, json};

const PROVIDERS: [EmbedProvider; 3] = [EmbedProvider::Ollama, EmbedProvider::OpenAi, EmbedProvider::Gemini];

#[tokio::test(flavor = "multi_thread")]
async fn an_index_searches_by_meaning_with_each_provider() {
    for provider in PROVIDERS {
        let server = FakeEmbedder::start().await;
        let home = tempfile::tempdir().unwrap();
        let embedder = server.embedder(provider).await.unwrap();
        assert_eq!(embedder.model().dimension, 8, "from the first answer");
        let catalog = Catalog::open(CatalogOptions { embedder: Some(embedder), ..CatalogOptions::new(home.path()) });
        let catalog = catalog.await.unwrap();
        for (table, column) in [("employees", "monthly_salary"), ("rainfall", "millimetres"), ("aircraft", "seats")] {
            let name = TableName::new("default", table);
            let schema = Schema::new(vec![Field::new(column, DataType::Utf8, true)]);
            let draft = catalog.tables().draft(&name, &schema, None).await.unwrap();
            catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap();
        }
        catalog.search().index_idle().await.unwrap();

        let request = SearchRequest { query: "wet".into(), database: None, limit: 1 };
        let hits = catalog.search().tables(&Principal::local_admin(), &request).await.unwrap();
        assert_eq!(hits[0].table.name.table, "rainfall", "{provider:?}");
        let found_by = &hits[0].found_by;
        assert!(found_by.contains(&FoundBy::Dense) && !found_by.contains(&FoundBy::Bm25), "{provider:?}: {found_by:?}");
        catalog.close().await.unwrap();

        let asked = server.requests();
        let (path, header) = match provider {
            EmbedProvider::OpenAi => ("/v1/embeddings", "Bearer sk-s3cret"),
            EmbedProvider::Gemini => ("/v1/models/m:batchEmbedContents", "sk-s3cret"),
            _ => ("/v1/api/embed", "Bearer sk-s3cret"),
        };
        assert!(asked.iter().all(|(asked, key)| asked == path && key == header), "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_texts_go_in_batches_and_come_back_in_order() {
    for provider in PROVIDERS {
        let server = FakeEmbedder::start().await;
        let embedder = server.embedder(provider).await.unwrap();
        let texts: Vec<String> = (0..150).map(|n| if n % 2 == 0 { "rain" } else { "" }.to_owned()).collect();
        let vectors = embed(&embedder, texts).await.unwrap();
        assert_eq!(vectors.len(), 150);
        assert!(vectors.iter().step_by(2).all(|vector| vector == &vectors[0]), "{provider:?}");
        assert_ne!(vectors[0], vectors[1]);
        assert!((vectors[0].iter().map(|number| number * number).sum::<f32>() - 1.0).abs() < 1e-5, "unit length");
        assert!(server.requests().len() > 2, "{provider:?}: the first for the dimension, then batches");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_asked_again_and_other_refusals_are_errors() {
    let server = FakeEmbedder::start().await;
    server.refusals.store(2, Ordering::Relaxed);
    server.embedder(EmbedProvider::OpenAi).await.unwrap();
    assert_eq!(server.requests().len(), 3);

    let embedder = server.embedder(EmbedProvider::OpenAi).await.unwrap();
    server.refusals.store(usize::MAX, Ordering::Relaxed);
    let error = embed(&embedder, vec!["a".to_owned()]).await.unwrap_err();
    assert_eq!(error.code(), "embedder_error");
    assert!(error.to_string().contains("slow down sk-***") || error.to_string().contains("slow down ***"), "{error}");

    let unreachable = settings(EmbedProvider::Ollama, "http://127.0.0.1:9");
    let error = made(unreachable).await.err().unwrap();
    assert!(error.to_string().contains("http://127.0.0.1:9/"), "{error}");
    let keyless = EmbedSettings { base_url: None, api_key: None, ..settings(EmbedProvider::OpenAi, "") };
    let error = made(keyless).await.err().unwrap();
    assert!(error.to_string().contains("set SOME_KEY"), "{error}");
    let nowhere = settings(EmbedProvider::Gemini, "ftp://host");
    assert!(made(nowhere).await.err().unwrap().to_string().contains("https://host/v1"));
}

#[tokio::test]
async fn an_embedder_can_be_made_and_dropped_on_an_async_thread() {
    let server = FakeEmbedder::start_apart();
    let embedder = from_settings(&settings(EmbedProvider::Ollama, &server)).unwrap().unwrap();
    assert_eq!(embedder.model().dimension, 8);
    drop(embedder);
}

fn settings(provider: EmbedProvider, base_url: &str) -> EmbedSettings {
    EmbedSettings {
        provider,
        model: "m".to_owned(),
        base_url: Some(base_url.to_owned()),
        api_key: ApiKey::new("sk-s3cret"),
        api_key_variable: Some("SOME_KEY".to_owned()),
        ..EmbedSettings::default()
    }
}

async fn made(settings: EmbedSettings) -> Result<Arc<dyn Embedder>, CatalogError> {
    tokio::task::spawn_blocking(move || from_settings(&settings)).await.unwrap().map(Option::unwrap)
}

async fn embed(embedder: &Arc<dyn Embedder>, texts: Vec<String>) -> Result<Vec<Vec<f32>>, CatalogError> {
    let embedder = Arc::clone(embedder);
    tokio::task::spawn_blocking(move || embedder.embed(&texts)).await.unwrap()
}

/// A server that speaks all three protocols; its vectors encode what a string is about.
struct FakeEmbedder {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<(String, String)>>>,
    /// The number of requests that are refused first.
    refusals: Arc<AtomicUsize>,
    serving: tokio::task::JoinHandle<()>,
}

type EmbedderState = (Arc<Mutex<Vec<(String, String)>>>, Arc<AtomicUsize>);

impl FakeEmbedder {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, refusals): EmbedderState = Default::default();
        let router = Router::new().fallback(answer).with_state((Arc::clone(&asked), Arc::clone(&refusals)));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, refusals, serving }
    }

    /// Starts a server on a thread of its own, for a test that blocks its thread, and returns its address.
    fn start_apart() -> String {
        let (told, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Self::start().await;
                told.send(server.base_url()).unwrap();
                std::future::pending::<()>().await;
            });
        });
        address.recv().unwrap()
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    async fn embedder(&self, provider: EmbedProvider) -> Result<Arc<dyn Embedder>, CatalogError> {
        made(settings(provider, &self.base_url())).await
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.asked.lock().clone()
    }
}

impl Drop for FakeEmbedder {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State((asked, refusals)): State<EmbedderState>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let key = header("authorization").or_else(|| header("x-goog-api-key")).unwrap_or_default();
    asked.lock().push((uri.path().to_owned(), key));
    let left = refusals.load(Ordering::Relaxed);
    if left > 0 {
        refusals.store(left - 1, Ordering::Relaxed);
        let said = json!({"error": {"message": "slow down sk-s3cret"}});
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")], said.to_string()).into_response();
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let texts: Vec<String> = match body.get("requests") {
        Some(requests) => {
            let parts = requests.as_array().unwrap().iter().map(|one| &one["content"]["parts"][0]["text"]);
            parts.map(|text| text.as_str().unwrap().to_owned()).collect()
        }
        None => serde_json::from_value(body["input"].clone()).unwrap(),
    };
    assert!(texts.iter().all(|text| !text.is_empty()), "no provider takes an empty text");
    let vectors: Vec<Vec<f32>> = texts.iter().map(|text| about(text)).collect();
    let answer = if uri.path().ends_with("embeddings") {
        let item = |(index, vector): (usize, &Vec<f32>)| json!({"index": index, "embedding": vector});
        json!({"data": vectors.iter().enumerate().map(item).rev().collect::<Vec<_>>()})
    } else if uri.path().ends_with("api/embed") {
        json!({ "embeddings": vectors })
    } else {
        json!({"embeddings": vectors.iter().map(|vector| json!({ "values": vector })).collect::<Vec<_>>()})
    };
    axum::Json(answer).into_response()
}

fn about(text: &str) -> Vec<f32> {
    let topics = [["salary", "earn"], ["rain", "wet"], ["aircraft", "plane"]];
    let mut vector = vec![0.1; 8];
    for (slot, words) in topics.iter().enumerate() {
        if words.iter().any(|word| text.to_lowercase().contains(word)) {
            vector[slot] = 3.0;
        }
    }
    vector
}

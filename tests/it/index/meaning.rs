//! Search by meaning where its model is slow to come, or is computed without a library.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use querent_catalog::index::embed::{EmbedSettings, Embedder, EmbeddingModel, from_settings};
use querent_catalog::{CatalogError, FoundBy};
use querent_tests::{Python, models_dir, wait_for};

use super::embedders::{Bag, minilm};
use super::{Home, create, names, search};

#[test]
fn a_model_in_rust_makes_the_vectors_of_onnx_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let onnx = models_dir().join("all-minilm-l6-v2");
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(onnx.join(file), folder.path().join(file)).unwrap();
    }
    let written = Python::client("minilm_safetensors.py")
        .arg(onnx.join("model.onnx"))
        .arg(folder.path().join("model.safetensors"))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let in_rust = embedder_of(folder.path()).expect("a folder without an ONNX file needs no library");
    let texts = ["late aeroplanes", "", "Größe 顧客"].map(str::to_owned);
    let (expected, found) = (minilm().embed(&texts).unwrap(), in_rust.embed(&texts).unwrap());
    for ((expected, found), text) in expected.iter().zip(&found).zip(&texts) {
        let likeness: f32 = expected.iter().zip(found).map(|(one, other)| one * other).sum();
        assert!(likeness > 0.9999, "{text}: {likeness}");
    }
    std::fs::write(folder.path().join("model.safetensors"), b"no tensors").unwrap();
    let broken = embedder_of(folder.path()).unwrap().embed(&texts).unwrap_err();
    assert!(broken.to_string().contains("model.safetensors"), "{broken}");
}

fn embedder_of(folder: &Path) -> Option<Arc<dyn Embedder>> {
    from_settings(&EmbedSettings { model_path: Some(folder.to_owned()), ..EmbedSettings::default() }).unwrap()
}

/// Answers once it is let.
struct SlowEmbedder {
    model: EmbeddingModel,
    is_loaded: Mutex<bool>,
    loaded: Condvar,
}

impl SlowEmbedder {
    fn finish(&self) {
        *self.is_loaded.lock() = true;
        self.loaded.notify_all();
    }
}

impl Embedder for SlowEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, CatalogError> {
        let mut is_loaded = self.is_loaded.lock();
        while !*is_loaded {
            self.loaded.wait(&mut is_loaded);
        }
        Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_does_not_wait_for_a_model_that_is_loading() {
    let home = Home::new();
    let model = EmbeddingModel { id: "slow to come".into(), dimension: 2 };
    let loading = Arc::new(SlowEmbedder { model, is_loaded: Mutex::new(false), loaded: Condvar::new() });
    let catalog = home.open(Some(Arc::clone(&loading) as Arc<dyn Embedder>)).await;
    create(&catalog, "default", "part", &["weight", "supplier"]).await;
    catalog.search().text_idle().await;
    let began = Instant::now();
    assert_eq!(names(&search(&catalog, "supplier").await), ["default.part"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let missing = catalog.search().missing_meaning().expect("meaning is missing");
    assert!(missing.reason.contains("slow to come is being loaded") && !missing.is_chosen, "{missing:?}");
    loading.finish();
    catalog.search().index_idle().await.unwrap();
    assert!(search(&catalog, "supplier").await[0].found_by.contains(&FoundBy::Dense));
    assert_eq!(catalog.search().missing_meaning(), None);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_closes_while_its_model_is_loading() {
    let home = Home::new();
    let model = EmbeddingModel { id: "never comes".into(), dimension: 2 };
    let loading = Arc::new(SlowEmbedder { model, is_loaded: Mutex::new(false), loaded: Condvar::new() });
    let catalog = home.open(Some(Arc::clone(&loading) as Arc<dyn Embedder>)).await;
    for index in 0..300 {
        create(&catalog, "default", &format!("part_{index}"), &["supplier"]).await;
    }
    catalog.search().text_idle().await;
    catalog.close().await.unwrap();
    loading.finish();
}

/// Rows that a failing embedder left in the dataset are waited for by nobody, and get their vectors when it is mended.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failing_embedder_left_is_reported_again_and_made_up_for() {
    let home = Home::new();
    let bag = Bag::new(32);
    bag.is_broken.store(true, Ordering::Relaxed);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    create(&catalog, "default", "part", &["weight", "supplier"]).await;
    assert_eq!(catalog.search().index_idle().await.unwrap_err().code(), "embedder_error");
    catalog.close().await.unwrap();

    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    assert_eq!(catalog.search().index_idle().await.unwrap_err().code(), "embedder_error");
    assert_eq!(names(&search(&catalog, "supplier").await), ["default.part"]);
    let missing = catalog.search().missing_meaning().expect("meaning is missing");
    assert!(missing.reason.contains("out of order") && missing.hint.contains("mend it"), "{missing:?}");
    bag.is_broken.store(false, Ordering::Relaxed);
    // Nobody searches meanwhile: it is the upkeep that tries again.
    wait_for("the vectors", async || catalog.search().missing_meaning().is_none().then_some(())).await;
    catalog.close().await.unwrap();
}

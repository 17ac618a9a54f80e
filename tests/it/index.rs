//! The schema index from outside: what is found, when, by whom, and what survives.

mod embedders;
mod hidden;
mod meaning;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::datatypes::{DataType, Field, Schema};
pub(crate) use embedders::Bag;
use embedders::{Taste, minilm};
use querent_catalog::index::embed::{EmbedSettings, Embedder, from_settings};
use querent_catalog::{
    Catalog, CatalogError, CatalogOptions, Created, FoundBy, IfExists, NoProgress, Principal, Progress, Role,
    SearchHit, SearchRequest, SearchStages, TableKind, TableName,
};
use querent_tests::{models_dir, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn found_by_name_and_text_when_the_creation_returns() {
    let home = Home::new();
    let catalog = home.open(None).await;
    create(&catalog, "default", "flight_delays", &["carrier", "departure_delay", "origin_airport"]).await;

    let hits = search(&catalog, "flight_delays").await;
    assert_eq!(names(&hits), ["default.flight_delays"]);
    assert_eq!(hits[0].found_by, [FoundBy::Name, FoundBy::Bm25, FoundBy::Column]);

    let hits = search(&catalog, "which airports do carriers depart from").await;
    assert_eq!(names(&hits), ["default.flight_delays"], "columns are searched, by word stems");
    assert_eq!(hits[0].found_by, [FoundBy::Bm25, FoundBy::Column]);

    assert_eq!(names(&search(&catalog, "flight_").await), ["default.flight_delays"], "a name's beginning");
    assert!(search(&catalog, "  ").await.is_empty());
    assert!(search(&catalog, "the of and").await.is_empty(), "nothing but stop words");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_see_how_far_the_index_is() {
    let (_folder, engine) = crate::sql::engine().await;
    engine.catalog().search().index_idle().await.unwrap();
    let listed = "SELECT objects, state, model, without_vector FROM system.index ORDER BY objects";
    let shown = crate::sql::rows(&crate::sql::admin(&engine), listed).await.unwrap();
    assert_eq!(shown, [["columns", "ready", "NULL", "0"], ["tables", "ready", "NULL", "0"]]);
    let reader = engine.session(Principal::new("anna", Role::Read), querent_engine::Limits::default());
    assert_eq!(crate::sql::rows(&reader, listed).await.unwrap_err().code(), "table_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn found_by_meaning_with_the_real_model() {
    let home = Home::new();
    let catalog = home.open(Some(minilm())).await;
    create(&catalog, "default", "employees", &["full_name", "monthly_salary", "hired_on"]).await;
    create(&catalog, "default", "aircraft", &["tail_number", "manufacturer", "seats"]).await;
    create(&catalog, "default", "rainfall", &["station", "millimetres", "measured_at"]).await;
    catalog.search().index_idle().await.unwrap();

    let expected = [
        ("how much do our workers earn", "default.employees"),
        ("which planes can carry most people", "default.aircraft"),
        ("wet weather", "default.rainfall"),
    ];
    for (question, table) in expected {
        let hits = search(&catalog, question).await;
        assert_eq!(hits[0].table.name.to_string(), table, "{question}");
        assert!(hits[0].found_by.contains(&FoundBy::Dense), "{question}: {:?}", hits[0].found_by);
    }
    catalog.close().await.unwrap();

    let catalog = home.open(Some(minilm())).await;
    catalog.search().index_idle().await.unwrap();
    assert_eq!(search(&catalog, "wet weather").await[0].table.name.table, "rainfall", "after a restart");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_drops_and_replacements_are_seen_at_once() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    create(&catalog, "default", "t1", &["a"]).await;
    create(&catalog, "default", "t2", &["a"]).await;
    // Half of the changes meet rows that Lance holds, half meet the tail.
    catalog.close().await.unwrap();
    let catalog = home.open(Some(Bag::new(64))).await;
    catalog.search().index_idle().await.unwrap();
    create(&catalog, "default", "t3", &["a"]).await;

    for table in ["t1", "t3"] {
        let name = TableName::new("default", table);
        catalog.tables().set_comment(&name, None, Some("quarterly turnover")).await.unwrap();
        catalog.tables().set_comment(&name, Some("a"), Some("in zloty")).await.unwrap();
    }
    assert_eq!(sorted_names(&search(&catalog, "turnover").await), ["default.t1", "default.t3"]);
    assert_eq!(sorted_names(&search(&catalog, "zloty").await), ["default.t1", "default.t3"]);

    catalog.tables().set_comment(&TableName::new("default", "t1"), None, None).await.unwrap();
    assert_eq!(by_text(&search(&catalog, "turnover").await), ["default.t3"], "the old text is gone");

    for table in ["t1", "t2", "t3"] {
        let name = TableName::new("default", table);
        assert!(catalog.tables().drop(&name, &[TableKind::Managed], false).await.unwrap());
    }
    catalog.search().index_idle().await.unwrap();
    assert!(search(&catalog, "t1 t2 t3 zloty turnover").await.is_empty());
    catalog.close().await.unwrap();

    let catalog = home.open(Some(Bag::new(64))).await;
    catalog.search().index_idle().await.unwrap();
    assert!(search(&catalog, "t1 t2 t3 zloty turnover").await.is_empty(), "nor after a restart");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scoped_caller_gets_the_full_top_k_of_what_it_may_see() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    for database in ["sales", "hr"] {
        catalog.databases().create(database, IfExists::Error).await.unwrap();
    }
    // More and better matches in the database that may not be seen, than any ranking is deep.
    for index in 0..300 {
        create(&catalog, "hr", &format!("invoice_{index}"), &["invoice_number", "invoice_total"]).await;
    }
    for index in 0..12 {
        create(&catalog, "sales", &format!("customer_{index}"), &["name", "street", "city", "last_invoice"]).await;
    }
    for reopened in [false, true] {
        let seller = Principal::new("seller", Role::Read).with_databases(["Sales"]);
        let request = SearchRequest { query: "invoice".into(), database: None, limit: 10 };
        let hits = catalog.search().tables(&seller, &request).await.unwrap();
        assert_eq!(hits.len(), 10, "reopened: {reopened}");
        assert!(hits.iter().all(|hit| hit.table.name.database == "sales"), "{:?}", names(&hits));

        let nobody = Principal::new("nobody", Role::Read).with_databases::<[&str; 0], &str>([]);
        assert!(catalog.search().tables(&nobody, &request).await.unwrap().is_empty());

        let in_hr = SearchRequest { database: Some("hr".into()), ..request.clone() };
        let error = catalog.search().tables(&seller, &in_hr).await.unwrap_err();
        assert_eq!(error.code(), "database_not_found");
        let hits = catalog.search().tables(&Principal::local_admin(), &in_hr).await.unwrap();
        assert!(hits.len() == 10 && hits.iter().all(|hit| hit.table.name.database == "hr"));
        catalog.search().index_idle().await.unwrap();
    }
    catalog.close().await.unwrap();
    // The same from Lance as from the tail.
    let catalog = home.open(Some(Bag::new(64))).await;
    catalog.search().index_idle().await.unwrap();
    let seller = Principal::new("seller", Role::Read).with_databases(["sales"]);
    let request = SearchRequest { query: "invoice".into(), database: None, limit: 10 };
    let hits = catalog.search().tables(&seller, &request).await.unwrap();
    assert!(hits.len() == 10 && hits.iter().all(|hit| hit.table.name.database == "sales"), "{:?}", names(&hits));
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_is_rebuilt() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    for index in 0..40 {
        create(&catalog, "default", &format!("part_{index}"), &["weight", "supplier"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    catalog.close().await.unwrap();
    std::fs::remove_dir_all(home.index()).unwrap();

    let told = Arc::new(ProgressReports::default());
    let catalog = home.open_with(Some(Bag::new(64)), Arc::clone(&told) as Arc<dyn Progress>).await;
    assert_eq!(names(&search(&catalog, "part_7").await)[0], "default.part_7", "names work meanwhile");
    catalog.search().index_idle().await.unwrap();
    let hits = search(&catalog, "supplier weight").await;
    assert_eq!(hits.len(), 10);
    assert!(hits.iter().all(|hit| hit.found_by == [FoundBy::Bm25, FoundBy::Dense]), "{hits:?}");
    assert!(told.reports.load(Ordering::Relaxed) >= 2, "progress is told of texts and of vectors");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_index_is_set_aside_and_rebuilt() {
    for damage in [Damage::Everything, Damage::DataFiles, Damage::FullTextIndex] {
        let home = Home::new();
        let catalog = home.open(Some(Bag::new(64))).await;
        for index in 0..20 {
            create(&catalog, "default", &format!("part_{index}"), &["weight", "supplier"]).await;
        }
        catalog.search().index_idle().await.unwrap();
        catalog.close().await.unwrap();
        assert!(overwrite(&home.index(), damage) > 0, "{damage:?}: there is something to damage");

        let catalog = home.open(Some(Bag::new(64))).await;
        // What opening does not notice, the first search does.
        let _ = search(&catalog, "supplier").await;
        catalog.search().index_idle().await.unwrap();
        let hits = search(&catalog, "supplier weight").await;
        assert_eq!(hits.len(), 10, "{damage:?}");
        assert!(hits.iter().all(|hit| hit.found_by == [FoundBy::Bm25, FoundBy::Dense]), "{damage:?}: {hits:?}");
        let kept = std::fs::read_dir(home.index()).unwrap();
        let kept = kept.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".damaged"));
        assert_eq!(kept.count(), 2, "{damage:?}: the damaged ones, of tables and of columns, are kept aside");
        catalog.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_embedder_re_embeds() {
    let home = Home::new();
    let catalog = home.open(None).await;
    for index in 0..20 {
        create(&catalog, "default", &format!("part_{index}"), &["weight", "supplier"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    assert!(search(&catalog, "supplier").await.iter().all(|hit| hit.found_by == [FoundBy::Bm25]));
    catalog.close().await.unwrap();

    for dimension in [32, 64] {
        let bag = Bag::new(dimension);
        let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
        catalog.search().index_idle().await.unwrap();
        let hits = search(&catalog, "supplier").await;
        assert_eq!(hits.len(), 10);
        assert!(hits.iter().all(|hit| hit.found_by == [FoundBy::Bm25, FoundBy::Dense]), "{dimension}: {hits:?}");
        assert!(bag.texts.load(Ordering::Relaxed) >= 20);
        catalog.close().await.unwrap();
    }

    let bag = Bag::new(64);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    catalog.search().index_idle().await.unwrap();
    assert_eq!(bag.texts.load(Ordering::Relaxed), 0, "the same embedder embeds nothing again");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedder_that_fails_half_way_takes_nothing_away() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(32))).await;
    for index in 0..20 {
        create(&catalog, "default", &format!("part_{index}"), &["weight", "supplier"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    catalog.close().await.unwrap();

    let bag = Bag::new(64);
    bag.breaks_after.store(10, Ordering::Relaxed);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    assert_eq!(catalog.search().index_idle().await.unwrap_err().code(), "embedder_error");
    assert_eq!(sorted_names(&search(&catalog, "supplier").await).len(), 10, "full text goes on");
    catalog.close().await.unwrap();

    let catalog = home.open(Some(Bag::new(64))).await;
    catalog.search().index_idle().await.unwrap();
    let hits = search(&catalog, "supplier").await;
    assert!(hits.iter().all(|hit| hit.found_by == [FoundBy::Bm25, FoundBy::Dense]), "{hits:?}");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_are_found() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    let long = "x".repeat(255);
    let odd = ["order \"items\"", "dotted.name", "two words", "größe'maß", "顧客", "🦀", long.as_str()];
    for name in odd {
        create(&catalog, "default", name, &["a \"b\" c", "d.e", "ä"]).await;
    }
    for _ in 0..2 {
        for name in odd {
            assert_eq!(search(&catalog, name).await[0].table.name.table, name);
        }
        catalog.search().index_idle().await.unwrap();
    }
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_vectors_serves_without_an_embedder() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    create(&catalog, "default", "part", &["weight", "supplier"]).await;
    catalog.search().index_idle().await.unwrap();
    catalog.close().await.unwrap();

    let catalog = home.open(None).await;
    for index in 0..300 {
        create(&catalog, "default", &format!("crate_{index}"), &["supplier"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    assert_eq!(search(&catalog, "part").await[0].found_by, [FoundBy::Name, FoundBy::Bm25]);
    catalog.close().await.unwrap();

    let bag = Bag::new(64);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    catalog.search().index_idle().await.unwrap();
    assert_eq!(bag.texts.load(Ordering::Relaxed), 300, "only what came meanwhile is embedded");
    let found_by = &search(&catalog, "part").await[0].found_by;
    assert_eq!(found_by[..3], [FoundBy::Name, FoundBy::Bm25, FoundBy::Dense]);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_many_objects_have_tells_none_of_them_apart() {
    let home = Home::new();
    let catalog = home.open(None).await;
    let make_view = async |name: &str| {
        let (name, schema) =
            (TableName::new("default", name), Schema::new(vec![Field::new("harbour", DataType::Utf8, true)]));
        catalog
            .tables()
            .create_view(&name, "SELECT 'x' AS harbour", "default", &schema, IfExists::Replace)
            .await
            .unwrap();
    };
    let found_by_column = async || {
        let hits = search(&catalog, "which harbour").await;
        hits.iter().filter(|hit| hit.found_by.contains(&FoundBy::Column)).count()
    };
    for _ in 0..15 {
        make_view("nightly").await;
    }
    assert_eq!(found_by_column().await, 1, "what was replaced does not count");
    for number in 1..12 {
        make_view(&format!("view_{number}")).await;
    }
    assert_eq!(found_by_column().await, 10, "a dozen have it, and ten are asked for");
    make_view("thirteenth").await;
    assert_eq!(found_by_column().await, 0);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_embedder_leaves_names_and_text() {
    let home = Home::new();
    let bag = Bag::new(64);
    bag.is_broken.store(true, Ordering::Relaxed);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    create(&catalog, "default", "part", &["weight", "supplier"]).await;
    let hits = search(&catalog, "supplier").await;
    assert_eq!(names(&hits), ["default.part"]);
    assert_eq!(hits[0].found_by, [FoundBy::Bm25, FoundBy::Column]);
    let error = catalog.search().index_idle().await.unwrap_err();
    assert_eq!(error.code(), "embedder_error");
    catalog.close().await.unwrap();

    let catalog = home.open(Some(Bag::new(64))).await;
    catalog.search().index_idle().await.unwrap();
    let found_by = &search(&catalog, "supplier").await[0].found_by;
    assert_eq!(found_by[..], [FoundBy::Bm25, FoundBy::Dense, FoundBy::Column], "made up for later");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reranker_orders_what_a_cheaper_model_found() {
    let home = Home::new();
    let reranker = Arc::new(Taste::default());
    let open = async |reranker: Option<Arc<dyn Embedder>>| {
        let embedder: Option<Arc<dyn Embedder>> = Some(Bag::new(64));
        Catalog::open(CatalogOptions { embedder, reranker, ..CatalogOptions::new(home.0.path()) }).await.unwrap()
    };
    let catalog = open(None).await;
    for name in ["crate", "drum", "flask"] {
        create(&catalog, "default", name, &["weight", "supplier"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    let as_found = by_meaning(&catalog, "supplier").await;
    assert_ne!(as_found[0], "default.flask");
    catalog.close().await.unwrap();

    let catalog = open(Some(Arc::clone(&reranker) as Arc<dyn Embedder>)).await;
    catalog.search().index_idle().await.unwrap();
    assert_eq!(by_meaning(&catalog, "supplier").await[0], "default.flask");
    reranker.is_broken.store(true, Ordering::Relaxed);
    assert_eq!(by_meaning(&catalog, "supplier").await, as_found);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_runtime_or_model_is_an_error_that_helps() {
    let settings = EmbedSettings { model_path: Some(models_dir().join("ort")), ..EmbedSettings::default() };
    let error = from_settings(&settings).err().unwrap();
    assert_eq!(error.code(), "embedder_error");
    assert!(error.to_string().contains("model.onnx"), "{error}");

    let unknown = EmbedSettings { model: "no-such-model".into(), ..EmbedSettings::default() };
    assert_eq!(from_settings(&unknown).err().unwrap().code(), "embedder_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pending_at_a_crash_is_found_after_it() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(64))).await;
    create(&catalog, "default", "part", &["weight", "supplier"]).await;
    drop(catalog);

    let catalog = home.open_once_released().await;
    assert_eq!(names(&search(&catalog, "supplier").await), ["default.part"]);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_creates_leave_few_files() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(16))).await;
    for index in 0..1_500 {
        create(&catalog, "default", &format!("part_{index}"), &["weight"]).await;
    }
    catalog.search().index_idle().await.unwrap();
    catalog.close().await.unwrap();
    let catalog = home.open(Some(Bag::new(16))).await;
    catalog.search().index_idle().await.unwrap();
    let files = count_files(&home.index());
    assert!(files > 0, "rows reached Lance");
    assert!(files < 60, "{files} files");
    assert_eq!(search(&catalog, "part_1499").await[0].table.name.table, "part_1499");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_comes_back_is_not_embedded_again() {
    let home = Home::new();
    let catalog = home.open(Some(Bag::new(16))).await;
    create(&catalog, "default", "orders", &["amount"]).await;
    catalog.search().index_idle().await.unwrap();
    catalog.close().await.unwrap();

    let bag = Bag::new(16);
    let catalog = home.open(Some(Arc::clone(&bag) as Arc<dyn Embedder>)).await;
    catalog.search().index_idle().await.unwrap();
    let orders = TableName::new("default", "orders");
    catalog.tables().set_comment(&orders, None, Some("what was bought")).await.unwrap();
    catalog.search().index_idle().await.unwrap();
    assert_eq!(bag.texts.load(Ordering::Relaxed), 1, "the new text");
    catalog.tables().set_comment(&orders, None, None).await.unwrap();
    catalog.search().index_idle().await.unwrap();
    assert_eq!(bag.texts.load(Ordering::Relaxed), 1, "the old text has the vector that the dataset holds");
    catalog.close().await.unwrap();
}

async fn create(catalog: &Catalog, database: &str, table: &str, columns: &[&str]) {
    let fields: Vec<Field> = columns.iter().map(|column| Field::new(*column, DataType::Utf8, true)).collect();
    let name = TableName::new(database, table);
    let draft = catalog.tables().draft(&name, &Schema::new(fields), None).await.unwrap();
    let created = catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap();
    assert!(matches!(created, Created::New(_)));
}

async fn search(catalog: &Catalog, query: &str) -> Vec<SearchHit> {
    let request = SearchRequest { query: query.into(), database: None, limit: 10 };
    catalog.search().tables(&Principal::local_admin(), &request).await.unwrap()
}

/// Names of what is found by vectors alone.
async fn by_meaning(catalog: &Catalog, query: &str) -> Vec<String> {
    let request = SearchRequest { query: query.into(), database: None, limit: 10 };
    let stages = SearchStages { names: false, bm25: false, dense: true, columns: false, expansion: false };
    let hits = catalog.measurements().search_by_stages(&Principal::local_admin(), &request, stages).await.unwrap();
    hits.into_iter().map(|(hit, _)| hit.table.name.to_string()).collect()
}

fn names(hits: &[SearchHit]) -> Vec<String> {
    hits.iter().map(|hit| hit.table.name.to_string()).collect()
}

fn sorted_names(hits: &[SearchHit]) -> Vec<String> {
    let mut found = by_text(hits);
    found.sort();
    found
}

/// Names of what full text found: vectors find everything, near or far.
fn by_text(hits: &[SearchHit]) -> Vec<String> {
    let found = hits.iter().filter(|hit| hit.found_by.contains(&FoundBy::Bm25));
    found.map(|hit| hit.table.name.to_string()).collect()
}

/// A data folder.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn index(&self) -> PathBuf {
        self.0.path().join("index")
    }

    async fn open(&self, embedder: Option<Arc<dyn Embedder>>) -> Arc<Catalog> {
        self.open_with(embedder, Arc::new(NoProgress)).await
    }

    /// A catalog that was dropped, not closed, lets go of its folder when its tasks notice.
    async fn open_once_released(&self) -> Arc<Catalog> {
        let attempt = async || match Catalog::open(CatalogOptions::new(self.0.path())).await {
            Err(CatalogError::InUse { .. }) => None,
            outcome => Some(outcome.unwrap()),
        };
        wait_for("the dropped catalog lets go of its folder", attempt).await
    }

    async fn open_with(&self, embedder: Option<Arc<dyn Embedder>>, progress: Arc<dyn Progress>) -> Arc<Catalog> {
        let options = CatalogOptions { embedder, progress, ..CatalogOptions::new(self.0.path()) };
        Catalog::open(options).await.unwrap()
    }
}

#[derive(Default)]
struct ProgressReports {
    reports: AtomicUsize,
}

impl Progress for ProgressReports {
    fn report(&self, _task: &str, done: u64, total: u64) {
        assert!(done <= total);
        self.reports.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Everything,
    DataFiles,
    FullTextIndex,
}

/// Overwrites files with noise of the same length and returns how many there were.
fn overwrite(folder: &Path, damage: Damage) -> usize {
    let mut count = 0;
    for path in files(folder) {
        let is_in = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
        let is_hit = match damage {
            Damage::Everything => true,
            Damage::DataFiles => is_in("data"),
            Damage::FullTextIndex => is_in("_indices"),
        };
        if is_hit {
            let length = std::fs::metadata(&path).unwrap().len() as usize;
            std::fs::write(&path, vec![0xA5; length]).unwrap();
            count += 1;
        }
    }
    count
}

fn count_files(folder: &Path) -> usize {
    files(folder).len()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

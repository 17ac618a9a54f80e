//! Many tables at once: registered in one snapshot, resolved and listed when the call returns, indexed behind it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::index::embed::{EmbedProvider, EmbedSettings, Embedder, from_settings};
use querent_catalog::{
    Catalog, CatalogOptions, FoundBy, IfExists, NewTable, NoProgress, PageRequest, Principal, Progress, Role,
    SearchRequest, TableFilter, TableKind, TableName,
};
use querent_tests::models_dir;

/// More than the index keeps in memory.
const MANY: usize = 6_000;

#[tokio::test(flavor = "multi_thread")]
async fn many_tables_are_registered_in_one_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), None).await;
    let before = catalog.snapshot().await.unwrap();
    let told = Arc::new(RegistrationProgress::default());
    let progress: Arc<dyn Progress> = Arc::clone(&told) as Arc<dyn Progress>;
    let registered = catalog.tables().register((0..MANY).map(table), IfExists::Error, progress).await.unwrap();
    assert_eq!((registered.created, registered.existing, registered.databases), (MANY as u64, 0, 60));
    assert_eq!(catalog.snapshot().await.unwrap(), before + 1);
    assert_eq!(told.done.load(Ordering::Relaxed), MANY as u64);

    let admin = Principal::local_admin();
    let names = [table(17).name, table(MANY - 1).name];
    let resolved = catalog.tables().resolve(&admin, &names).await.unwrap();
    let info = &resolved[1].as_ref().unwrap().info;
    assert_eq!(info.comment.as_deref(), Some("number 5999"));
    assert_eq!(info.columns[1].comment.as_deref(), Some("how heavy"));
    assert!(resolved[0].is_some());

    catalog.search().index_idle().await.unwrap();
    let hits = search(&catalog, "which shipments weigh most, number 4321").await;
    assert_eq!(hits[0].0, table(4321).name.to_string(), "found by its comment: {hits:?}");
    catalog.close().await.unwrap();
    let catalog = open(folder.path(), None).await;
    catalog.search().index_idle().await.unwrap();
    assert_eq!(search(&catalog, "number 4321").await[0].0, table(4321).name.to_string());
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tables_are_registered_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), None).await;
    let register = async |from: usize, to: usize, if_exists| {
        catalog.tables().register((from..to).map(table), if_exists, Arc::new(NoProgress)).await
    };
    register(5, 6, IfExists::Error).await.unwrap();
    assert_eq!(register(0, 10, IfExists::Error).await.unwrap_err().code(), "already_exists");
    let resolved = catalog.tables().resolve(&Principal::local_admin(), &[table(0).name]).await.unwrap();
    assert_eq!(resolved, [None], "nothing of a call that failed");
    let registered = register(0, 10, IfExists::Ignore).await.unwrap();
    assert_eq!((registered.created, registered.existing), (9, 1));
    let odd = NewTable { column_comments: BTreeMap::from([("wight".into(), "x".into())]), ..table(10) };
    let error = catalog.tables().register([odd], IfExists::Error, Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(error.code(), "column_not_found");
    catalog.close().await.unwrap();
}

/// Patterns with few and with many matches, with and without a wildcard after their beginning, and kinds that all
/// tables or no table has.
#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_listed_in_order_across_databases() {
    const TABLES: usize = 700;
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), None).await;
    catalog.tables().register((0..TABLES).map(table), IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    let limited = Principal::new("limited", Role::Read).with_databases(["yard_1", "yard_3"]);
    // With what matching names begin, and end.
    let patterns = [
        ("shipment\\_1%", "shipment_1", ""),
        ("SHIPMENT%", "shipment", ""),
        ("shipment%9", "shipment", "9"),
        ("%7", "", "7"),
        // As clients send it that do not escape.
        ("shipment_42%", "shipment_42", ""),
        ("ship_ent_69", "shipment_69", ""),
        ("shipment\\_42", "shipment_42", "shipment_42"),
    ];
    let kinds = [vec![], vec![TableKind::View, TableKind::Managed], vec![TableKind::View]];
    for who in [Principal::local_admin(), limited] {
        for ((pattern, beginning, end), kinds) in
            patterns.iter().flat_map(|pattern| kinds.iter().map(move |it| (pattern, it)))
        {
            for database_like in [None, Some("%_3".to_owned())] {
                let in_database = |name: &TableName| database_like.is_none() || name.database.ends_with("_3");
                let filter = TableFilter {
                    name_like: Some((*pattern).into()),
                    kinds: kinds.clone(),
                    database_like: database_like.clone(),
                    ..TableFilter::default()
                };
                let mut expected: Vec<TableName> = (0..TABLES)
                    .map(|number| table(number).name)
                    .filter(|name| name.table.starts_with(beginning) && name.table.ends_with(end))
                    .filter(|name| who.may_see(&name.database) && in_database(name))
                    .filter(|_| kinds.len() != 1)
                    .collect();
                expected.sort();
                assert_eq!(names_by_page(&catalog, &who, &filter, 41).await, expected, "{filter:?}");
            }
        }
    }
    catalog.close().await.unwrap();
}

async fn names_by_page(catalog: &Catalog, who: &Principal, filter: &TableFilter, limit: usize) -> Vec<TableName> {
    let mut names = Vec::new();
    let mut page = PageRequest::first(limit);
    loop {
        let listed = catalog.tables().list(who, filter, page).await.unwrap();
        names.extend(listed.items.into_iter().map(|item| item.name));
        match listed.next {
            Some(next) => page = PageRequest { limit, after: Some(next) },
            None => return names,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_found_by_name_in_every_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), None).await;
    let spelled = |name: &str, column: &str| NewTable {
        schema: Arc::new(Schema::new(vec![Field::new(column, DataType::Int64, true)])),
        column_comments: BTreeMap::new(),
        ..NewTable { name: TableName::new("default", name), ..table(0) }
    };
    let tables = [spelled("a", "cust_id"), spelled("b", "CustId"), spelled("c", "CUST_ID"), spelled("d", "custody")];
    catalog.tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    let admin = Principal::local_admin();
    let found = catalog.search().columns(&admin, None, "cust_id", 10).await.unwrap();
    let names: Vec<&str> = found.hits.iter().map(|hit| hit.table.table.as_str()).collect();
    assert_eq!((names.as_slice(), found.is_truncated), (["a", "c", "b"].as_slice(), false));
    let few = catalog.search().columns(&admin, None, "cust_id", 2).await.unwrap();
    assert_eq!((few.hits.len(), few.is_truncated), (2, true));
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_static_model_finds_by_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let settings = EmbedSettings {
        provider: EmbedProvider::Model2vec,
        model: "wordllama-256".into(),
        model_path: Some(models_dir().join("wordllama-256")),
        ..EmbedSettings::default()
    };
    let catalog = open(folder.path(), from_settings(&settings).unwrap()).await;
    let named = |name: &str, comment: &str| NewTable {
        comment: Some(comment.into()),
        ..NewTable { name: TableName::new("default", name), ..table(0) }
    };
    let tables = [named("t1", "physicians and nurses"), named("t2", "locomotives"), named("t3", "harvest of wheat")];
    catalog.tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    catalog.search().index_idle().await.unwrap();
    let hits = search(&catalog, "doctors in a hospital").await;
    assert_eq!(hits[0].0, "default.t1", "{hits:?}");
    assert!(hits[0].1.contains(&FoundBy::Dense) && !hits[0].1.contains(&FoundBy::Bm25), "{hits:?}");
    catalog.close().await.unwrap();

    let broken = EmbedSettings { model_path: Some(folder.path().to_path_buf()), ..settings };
    assert_eq!(from_settings(&broken).err().unwrap().code(), "embedder_error");
}

/// Returns table `number`: a hundred are in each database.
fn table(number: usize) -> NewTable {
    NewTable {
        name: TableName::new(format!("yard_{}", number / 100), format!("shipment_{}", number % 100)),
        schema: Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("weight", DataType::Float64, true),
        ])),
        comment: Some(format!("number {number}")),
        column_comments: BTreeMap::from([("weight".to_string(), "how heavy".to_string())]),
        external: None,
    }
}

async fn open(folder: &Path, embedder: Option<Arc<dyn Embedder>>) -> Arc<Catalog> {
    let options = CatalogOptions { embedder, ..CatalogOptions::new(folder) };
    Catalog::open(options).await.unwrap()
}

async fn search(catalog: &Catalog, query: &str) -> Vec<(String, Vec<FoundBy>)> {
    let request = SearchRequest { query: query.into(), database: None, limit: 5 };
    let hits = catalog.search().tables(&Principal::local_admin(), &request).await.unwrap();
    hits.into_iter().map(|hit| (hit.table.name.to_string(), hit.found_by)).collect()
}

#[derive(Default)]
struct RegistrationProgress {
    done: AtomicU64,
}

impl Progress for RegistrationProgress {
    fn report(&self, task: &str, done: u64, total: u64) {
        assert_eq!(task, "registering tables");
        assert!(done <= total && total == MANY as u64, "{done} of {total}");
        self.done.store(done, Ordering::Relaxed);
    }
}

//! How long after a table's creation it can be found: by full text, and by meaning.
//!
//! `cargo run --release -p querent-catalog --example index_latency -- DATA_DIR MODEL_DIR ONNXRUNTIME_LIB [TABLES]`
//! creates tables one at a time in a new data folder and prints percentiles in milliseconds.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow_schema::{DataType, Field, Schema};
use querent_catalog::index::embed::{EmbedSettings, from_settings};
use querent_catalog::{Catalog, CatalogError, CatalogOptions, FoundBy, IfExists, Principal, SearchRequest, TableName};

const COLUMNS: [&str; 20] = [
    "id",
    "created_at",
    "updated_at",
    "customer_id",
    "order_total",
    "currency",
    "status",
    "shipped_on",
    "warehouse",
    "carrier",
    "tracking_number",
    "discount",
    "tax_rate",
    "sales_region",
    "channel",
    "return_reason",
    "priority",
    "weight_kg",
    "notes",
    "approved_by",
];
const SUBJECTS: [&str; 8] =
    ["orders", "shipments", "refunds", "invoices", "complaints", "warranties", "deliveries", "subscriptions"];

#[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut path = |name: &str| arguments.next().map(PathBuf::from).ok_or_else(|| format!("missing {name}"));
    let data_dir = path("DATA_DIR")?;
    let settings = EmbedSettings {
        model_path: Some(path("MODEL_DIR")?),
        ort_dylib_path: Some(path("ONNXRUNTIME_LIB")?),
        ..EmbedSettings::default()
    };
    let tables = arguments.next().map_or(Ok(200), |count| count.parse::<usize>())?;

    let options = CatalogOptions { embedder: from_settings(&settings)?, ..CatalogOptions::new(data_dir) };
    let catalog = Catalog::open(options).await?;
    // The first embedding loads the model.
    create(&catalog, "warm_up").await?;
    catalog.search().index_idle().await?;

    let mut acknowledged = Vec::new();
    let mut by_meaning = Vec::new();
    let mut searches = Vec::new();
    for index in 0..tables {
        let name = format!("{}_{index}", SUBJECTS[index % SUBJECTS.len()]);
        let began = Instant::now();
        create(&catalog, &name).await?;
        acknowledged.push(began.elapsed());

        let began = Instant::now();
        catalog.search().index_idle().await?;
        by_meaning.push(began.elapsed());

        let began = Instant::now();
        let request = SearchRequest { query: name.clone(), database: None, limit: 10 };
        let hits = catalog.search().tables(&Principal::local_admin(), &request).await?;
        searches.push(began.elapsed());
        let hit = hits.iter().find(|hit| hit.table.name.table == name).ok_or("the new table was not found")?;
        if hit.found_by != [FoundBy::Name, FoundBy::Bm25, FoundBy::Dense] {
            return Err(format!("`{name}` was found by {:?} only", hit.found_by).into());
        }
    }
    print("create, acknowledged and found by name and text", &mut acknowledged);
    print("from the acknowledgement to found by meaning", &mut by_meaning);
    print("one search", &mut searches);
    catalog.close().await?;
    Ok(())
}

async fn create(catalog: &Catalog, table: &str) -> Result<(), CatalogError> {
    let fields: Vec<Field> = COLUMNS.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let draft = catalog.tables().draft(&TableName::new("default", table), &Schema::new(fields), None).await?;
    catalog.tables().create(draft, Vec::new(), IfExists::Error).await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "its output is what the example is for")]
fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
    println!("{what:52} p50 {:8.2} ms   p95 {:8.2} ms   p99 {:8.2} ms", at(0.5), at(0.95), at(0.99));
}

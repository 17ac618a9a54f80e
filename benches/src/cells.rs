//! The cells: what is measured against what, one file each.

mod agent;
mod catalog;
mod engine;
mod recall;

use std::path::Path;

use crate::Failure;
use crate::harness::Figure;

/// All cells, in the order `all` runs them.
pub(crate) const NAMES: &[&str] = &["engine", "agent", "catalog", "recall"];

/// Measures a cell.
pub(crate) async fn run(cell: &str) -> Result<Vec<Figure>, Failure> {
    match cell {
        "engine" => engine::run().await,
        "agent" => agent::run().await,
        "catalog" => catalog::run().await,
        "recall" => recall::run().await,
        other => Err(format!("unknown cell `{other}`; cells are {}", NAMES.join(", ")).into()),
    }
}

/// Takes one measurement in this process.
pub(crate) async fn measure(name: &str, folder: &Path) -> Result<serde_json::Value, Failure> {
    match name {
        "tpch-querent" => engine::measure_querent(folder).await,
        "tpch-datafusion" => engine::measure_datafusion(folder).await,
        "ask" => agent::measure(folder).await,
        "catalog" => catalog::measure(folder).await,
        "recall" => recall::measure(folder).await,
        other => Err(format!("unknown measurement `{other}`").into()),
    }
}

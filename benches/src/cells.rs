//! The cells: what is measured against what, one file each.

mod agent;
mod answers;
mod catalog;
mod cluster;
mod embedders;
mod engine;
mod flight;
mod graph;
mod import;
mod index;
mod kql;
mod recall;
mod sse;
mod suites;
mod vectors;

use std::path::Path;

use querent_agent::models::{ModelCapabilities, ToolStyle};

use self::embedders::EmbedderModels;
use crate::harness::Figure;
use crate::{Failure, chart};

/// All cells, in the order `all` runs them.
pub(crate) const NAMES: &[&str] = &[
    "engine",
    "tpch",
    "clickbench",
    "joins",
    "agent",
    "catalog",
    "index",
    "recall",
    "vectors",
    "kql",
    "graph",
    "sse",
    "flight",
    "import",
    "cluster",
];

/// Measures a cell; `answers` needs a model, and is none of [`NAMES`].
pub(crate) async fn run(cell: &str) -> Result<Vec<Figure>, Failure> {
    match cell {
        "engine" => engine::run().await,
        "tpch" => suites::run(&suites::TPCH).await,
        "clickbench" => suites::run(&suites::CLICKBENCH).await,
        "joins" => suites::run(&suites::JOINS).await,
        "agent" => agent::run().await,
        "answers" => answers::run().await,
        "catalog" => catalog::run().await,
        "index" => index::run().await,
        "recall" => recall::run().await,
        "vectors" => vectors::run().await,
        "kql" => kql::run().await,
        "graph" => graph::run().await,
        "sse" => sse::run().await,
        "flight" => flight::run().await,
        "import" => import::run().await,
        "cluster" => cluster::run().await,
        other => Err(format!("unknown cell `{other}`; cells are {}", NAMES.join(", ")).into()),
    }
}

/// Fits the confidence of answers to measured ones.
pub(crate) use answers::fit::fit as fit_confidence;

/// Takes one measurement in this process and prints it.
pub(crate) async fn measure(name: &str, folder: &Path) -> Result<serde_json::Value, Failure> {
    if let Some(measured) = suites::measure(name, folder).await? {
        return Ok(measured);
    }
    match name {
        "tpch-querent" => engine::measure_querent(folder).await,
        "tpch-datafusion" => engine::measure_datafusion(folder).await,
        "ask" => agent::measure(folder).await,
        "catalog" => catalog::measure(folder).await,
        "index" => index::measure(folder).await,
        "recall" => recall::measure(folder).await,
        "vectors" => vectors::measure(folder).await,
        "sse" => sse::measure(folder).await,
        "flight" => flight::measure(folder).await,
        "import" => import::measure(folder).await,
        "cluster-server" => cluster::serve(folder).await,
        "graph" => graph::measure(folder).await,
        "kql" => kql::measure(folder, "kql").await,
        "kql-as-sql" => kql::measure(folder, "sql").await,
        other => Err(format!("unknown measurement `{other}`").into()),
    }
}

/// Draws the charts of a cell that has them, into `docs/`.
pub(crate) async fn draw(cell: &str, figures: &[Figure]) -> Result<(), Failure> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let of_unit = |unit: &str, part: &str| -> Vec<&Figure> {
        figures.iter().filter(|figure| figure.unit == unit && figure.name.contains(part)).collect()
    };
    match cell {
        "catalog" => {
            // The chart is of a data folder's catalog.
            let mut shown = of_unit("ms", "p50");
            shown.retain(|figure| !figure.name.contains("PostgreSQL"));
            let title = "The same work on catalogs of growing size";
            chart::write(&docs.join("catalog.svg"), title, "milliseconds, p50", &shown).await
        }
        // The chart is of the default model.
        "recall" if EmbedderModels::from_environment_or(EmbedderModels::MiniLm)? == EmbedderModels::MiniLm => {
            let shown = of_unit("%", "all tables in the first 10,");
            let title = "Questions of Spider dev (even half) whose tables are all among the first 10";
            chart::write(&docs.join("recall.svg"), title, "percent; the mark is the bar", &shown).await
        }
        _ => Ok(()),
    }
}

/// What the scripted models of the cells can do: nothing but call tools.
fn native_calls() -> ModelCapabilities {
    ModelCapabilities {
        tool_style: ToolStyle::Native,
        thinking: false,
        small: false,
        context_tokens: None,
        images: false,
    }
}

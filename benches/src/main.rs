//! `querent-benches`: one harness, a process of its own for each measurement, peers interleaved in the same run.
//!
//! `run CELL` measures one cell and writes `benches/results/CELL.json`; `all` measures every cell. A cell starts this
//! same binary again with `measure`, which prints one JSON object; nothing else is shared between measurements.
#![expect(clippy::print_stdout, reason = "a command-line program")]

mod cells;
mod chart;
mod generator;
mod harness;
#[expect(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "the tests', which fail by panicking")]
#[path = "../../tests/src/postgres.rs"]
mod postgres;

use clap::{Parser, Subcommand};

// What is measured has the allocator of the released binary, unless a feature takes another one to compare.
#[cfg(all(not(debug_assertions), not(any(feature = "jemalloc", feature = "snmalloc"))))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(not(debug_assertions), feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(all(not(debug_assertions), feature = "snmalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

#[derive(Parser)]
#[command(about = "Benchmarks of Querent against its peers")]
struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measure every cell.
    All,
    /// Measure one cell; one that is not there lists them.
    Run {
        /// The cell's name.
        cell: String,
    },
    /// Fit the confidence of answers to what `make eval` measured of a model; prints a part of querent.toml.
    FitConfidence {
        /// The model's name.
        model: String,
        /// The results; where `make eval` keeps them, unless said otherwise.
        file: Option<std::path::PathBuf>,
    },
    /// One measurement, in this process; prints JSON. Started by the harness.
    #[command(hide = true)]
    Measure {
        /// The measurement's name.
        name: String,
        /// A folder it may use.
        folder: std::path::PathBuf,
    },
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
#[tokio::main]
async fn main() -> Result<(), Failure> {
    match BenchArguments::parse().command {
        BenchCommand::All => {
            for cell in cells::NAMES {
                run(cell).await?;
            }
        }
        BenchCommand::Run { cell } => run(&cell).await?,
        BenchCommand::FitConfidence { model, file } => print!("{}", cells::fit_confidence(&model, file).await?),
        BenchCommand::Measure { name, folder } => {
            let measured = cells::measure(&name, &folder).await?;
            println!("{measured}");
        }
    }
    Ok(())
}

async fn run(cell: &str) -> Result<(), Failure> {
    let figures = cells::run(cell).await?;
    harness::publish(cell, &figures).await?;
    cells::draw(cell, &figures).await?;
    Ok(())
}

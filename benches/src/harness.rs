//! What every cell shares: starting a measurement in its own process, medians, the machine's description, and
//! publishing figures as JSON and as a table.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// One published figure.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) name: String,
    /// The median.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// What it is compared with, and that one's median in the same unit.
    pub(crate) peer: Option<Peer>,
    /// `value / peer.value`.
    pub(crate) ratio: Option<f64>,
    /// The bar, on the ratio where there is a peer, else on the value.
    pub(crate) bar: Option<f64>,
    /// Whether the bar holds.
    pub(crate) holds: Option<bool>,
}

/// A peer's figure.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Peer {
    /// Its name.
    pub(crate) name: String,
    /// Its median.
    pub(crate) value: f64,
}

impl Figure {
    /// Returns a figure with a bar on its value.
    pub(crate) fn alone(name: impl Into<String>, value: f64, unit: &'static str, bar: Option<f64>) -> Self {
        let holds = bar.map(|bar| value <= bar);
        Self { name: name.into(), value, unit, peer: None, ratio: None, bar, holds }
    }

    /// Returns a figure that should reach its bar.
    pub(crate) fn at_least(name: impl Into<String>, value: f64, unit: &'static str, bar: Option<f64>) -> Self {
        let holds = bar.map(|bar| value >= bar);
        Self { holds, ..Self::alone(name, value, unit, bar) }
    }

    /// Returns a figure with a bar on its ratio to a peer's.
    pub(crate) fn against(
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        peer: Peer,
        bar: Option<f64>,
    ) -> Self {
        let ratio = value / peer.value;
        let holds = bar.map(|bar| ratio <= bar);
        Self { name: name.into(), value, unit, peer: Some(peer), ratio: Some(ratio), bar, holds }
    }
}

/// Runs `measure NAME FOLDER` of this binary in a new process and reads the JSON it prints.
pub(crate) async fn measure_in_process<T: DeserializeOwned>(name: &str, folder: &Path) -> Result<T, Failure> {
    let program = std::env::current_exe()?;
    let output = tokio::process::Command::new(program)
        // As `querent` itself sets it.
        .env("LANCE_CPU_THREADS", (2 * cores()).to_string())
        .arg("measure")
        .arg(name)
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .await?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("measurement `{name}` failed: {}: {}", output.status, said.trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns the median (the mean of the two middle values of an even number); 0 for none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => (sorted[length / 2 - 1] + sorted[length / 2]) / 2.0,
    }
}

/// Returns the value that `percent` of the values do not exceed; 0 for none.
pub(crate) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Returns the folder of downloads and generated data: `QUERENT_CACHE`, as `make` sets it.
pub(crate) fn cache_folder() -> Result<PathBuf, Failure> {
    std::env::var_os("QUERENT_CACHE")
        .map(PathBuf::from)
        .ok_or_else(|| "QUERENT_CACHE is not set; run this by `make bench`".into())
}

/// Writes `benches/results/CELL.json` and prints the table.
#[expect(clippy::print_stdout, reason = "a command-line program")]
pub(crate) async fn publish(cell: &str, figures: &[Figure]) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    tokio::fs::create_dir_all(&folder).await?;
    let report = serde_json::json!({ "machine": machine().await, "figures": figures });
    tokio::fs::write(folder.join(format!("{cell}.json")), serde_json::to_vec_pretty(&report)?).await?;

    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["figure", "value", "peer", "ratio", "bar", "holds"]);
    for figure in figures {
        table.add_row([
            figure.name.clone(),
            format!("{:.3} {}", figure.value, figure.unit),
            figure
                .peer
                .as_ref()
                .map(|peer| format!("{}: {:.3} {}", peer.name, peer.value, figure.unit))
                .unwrap_or_default(),
            figure.ratio.map(|ratio| format!("{ratio:.3}x")).unwrap_or_default(),
            figure.bar.map(|bar| bar.to_string()).unwrap_or_default(),
            figure.holds.map(|holds| if holds { "yes" } else { "NO" }.to_owned()).unwrap_or_default(),
        ]);
    }
    println!("\n{cell}, on {}\n{table}", machine().await);
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

async fn machine() -> String {
    let cores = cores();
    let processor =
        first_value("/proc/cpuinfo", "model name").await.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let memory = first_value("/proc/meminfo", "MemTotal").await.unwrap_or_else(|| "unknown memory".to_owned());
    format!("{processor}, {cores} cores, {memory}, {}", std::env::consts::OS)
}

async fn first_value(file: &str, key: &str) -> Option<String> {
    let text = tokio::fs::read_to_string(file).await.ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

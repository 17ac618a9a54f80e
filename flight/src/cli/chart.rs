//! The chart of a run's last result that has one: drawn in the terminal, and by `querent ask --chart` as SVG.
//!
//! It draws the subset of Vega-Lite that the agent writes: bars, lines, areas and points over one or two discrete,
//! temporal or numeric axes, with series told apart by colour. The style follows Cube's.

mod axis;
mod draw;
mod rows;
mod svg;
mod text;

use std::path::{Path, PathBuf};

use querent_agent::chart::Spec;
use serde_json::Value;

use super::error::CliError;
use super::output::terminal::Terminal;
use crate::error::ErrorCode;

/// A chart of a run and its rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    /// A Vega-Lite specification.
    pub(super) spec: Value,
    /// One object a row.
    pub(super) rows: Vec<Value>,
}

/// Parses the file to draw to, whose name must end in a supported format.
pub(super) fn svg_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") => Ok(path),
        Some("png") => {
            Err("PNG is not drawn; give a name that ends in .svg, which browsers and most editors open".to_owned())
        }
        _ => Err("give a name that ends in .svg".to_owned()),
    }
}

/// Returns the chart as text for a terminal; `None` where this version cannot draw it, or nothing is to be drawn.
pub(super) fn draw_text(chart: &Chart, terminal: &Terminal) -> Option<String> {
    let spec: Spec = serde_json::from_value(chart.spec.clone()).ok()?;
    let data = rows::data(&spec, &chart.rows);
    (!data.is_empty()).then(|| text::text(&spec, &data, terminal))
}

/// Draws the chart to the file. Fails if there is nothing to plot.
pub(super) async fn draw_to(path: &Path, chart: Option<&Chart>) -> Result<(), CliError> {
    let Some(chart) = chart else {
        return Err(CliError::Failed {
            code: Some(ErrorCode::NothingToPlot.to_string()),
            message: format!(
                "{} is not written: no query of the run gave rows worth a chart, which takes at least two rows, a \
                 number, and a time, a category or another number",
                path.display()
            ),
        });
    };
    let spec: Spec = serde_json::from_value(chart.spec.clone()).map_err(|error| CliError::Failed {
        code: Some(ErrorCode::ChartNotDrawn.to_string()),
        message: format!("this version cannot draw the server's chart: {error}"),
    })?;
    let image = draw::svg(&spec, &rows::data(&spec, &chart.rows));
    tokio::fs::write(path, image).await.map_err(|error| CliError::failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests;

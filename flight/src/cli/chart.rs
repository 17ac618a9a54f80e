//! `querent ask --chart`: the chart of a run's last result that has one, drawn as SVG.
//!
//! What is drawn is the subset of Vega-Lite that the agent writes: bars, lines, areas and points over one or two
//! discrete, temporal or numeric axes, told apart by colour. The look is the one that Cube's page describes.

mod axis;
mod draw;
mod rows;
mod svg;

use std::path::{Path, PathBuf};

use querent_agent::chart::Spec;
use serde_json::Value;

use super::error::CliError;
use crate::error::ErrorCode;

/// A chart of a run and the rows that it is of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    /// A Vega-Lite specification.
    pub(super) spec: Value,
    /// An object each.
    pub(super) rows: Vec<Value>,
}

/// Where to draw: a file whose name says a form that is drawn.
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

/// Draws the chart to the file; nothing to plot is a failure.
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

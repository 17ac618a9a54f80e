//! Horizontal bars as SVG: what a cell publishes beside its table.

use std::fmt::Write;
use std::path::Path;

use crate::Failure;
use crate::harness::Figure;

const WIDTH: f64 = 860.0;
const LABEL: f64 = 430.0;
const ROW: f64 = 22.0;
const TOP: f64 = 56.0;

/// Writes the figures of one unit as bars from zero, in order; a figure's bar, where it has one, as a mark.
pub(crate) async fn write(path: &Path, title: &str, unit: &str, figures: &[&Figure]) -> Result<(), Failure> {
    if figures.is_empty() {
        return Ok(());
    }
    let height = TOP + ROW * figures.len() as f64 + 16.0;
    let largest = figures.iter().map(|figure| figure.value).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL - 90.0) / largest;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\
         <text x=\"12\" y=\"24\" font-size=\"15\">{}</text><text x=\"12\" y=\"42\" fill=\"#666\">{}</text>\n",
        escaped(title),
        escaped(unit)
    );
    for (index, figure) in figures.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let length = (figure.value * scale).max(1.0);
        let colour = if figure.holds == Some(false) { "#c0392b" } else { "#2f6f9f" };
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LABEL}\" y=\"{y}\" width=\"{length:.1}\" \
             height=\"{}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LABEL - 8.0,
            y + 13.0,
            escaped(&figure.name),
            ROW - 5.0,
            LABEL + length + 5.0,
            y + 13.0,
            rounded(figure.value)
        )?;
        if let Some(bar) = figure.bar.filter(|_| figure.peer.is_none()) {
            let x = LABEL + bar * scale;
            if x < WIDTH {
                writeln!(svg, "<path d=\"M{x:.1} {}v{}\" stroke=\"#e67e22\" stroke-width=\"2\"/>", y - 1.0, ROW - 3.0)?;
            }
        }
    }
    svg.push_str("</svg>\n");
    tokio::fs::write(path, svg).await?;
    Ok(())
}

fn rounded(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

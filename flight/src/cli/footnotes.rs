//! What the parts of an answer are proven by, as footnotes for people.

use serde_json::Value;

/// The most footnotes below an answer.
const MAX_FOOTNOTES: usize = 20;

/// Returns a line for each part of an answer that `proof` links, and says how many more there are.
pub(super) fn footnotes(proof: &Value) -> Vec<String> {
    let links: Vec<&Value> = proof.as_array().into_iter().flatten().collect();
    let mut lines: Vec<String> = Vec::new();
    for link in &links {
        let line = format!("{}: {}", text(link, "text"), origin_text(link));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let hidden = lines.len().saturating_sub(MAX_FOOTNOTES);
    lines.truncate(MAX_FOOTNOTES);
    if hidden > 0 {
        lines.push(format!("and {hidden} more"));
    }
    lines
}

/// Says how far an answer is to be trusted, and why.
pub(super) fn confidence_line(confidence: &Value) -> Option<String> {
    let level = confidence["level"].as_str()?;
    let figure = confidence["probability"].as_f64().map(|probability| format!(" ({:.0} %)", probability * 100.0));
    let reasons: Vec<&str> = confidence["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Some(format!("  confidence: {level}{}: {}", figure.unwrap_or_default(), reasons.join("; ")))
}

/// Says what a link of `proof` is proven by.
pub(super) fn origin_text(link: &Value) -> String {
    match text(link, "origin") {
        "cell" => {
            let corrected = match link["corrected_from"].as_str() {
                Some(written) => format!(", corrected from {written}"),
                None => String::new(),
            };
            format!("{}{corrected}", cell_text(&link["cell"]))
        }
        "expression" => {
            let cells: Vec<String> = link["cells"].as_array().into_iter().flatten().take(4).map(cell_text).collect();
            format!("{} = {} ({})", text(link, "expression"), link["value"], cells.join("; "))
        }
        "row_count" => format!("the rows of query {}", number(&link["call_index"])),
        "question" => "as asked".to_owned(),
        "query" => format!("as query {} says", number(&link["call_index"])),
        "conversation" => "as said or returned earlier".to_owned(),
        _ => "NOT PROVEN: no row says it".to_owned(),
    }
}

fn cell_text(cell: &Value) -> String {
    let row = cell["row"].as_u64().unwrap_or_default() + 1;
    let of_run = cell["run_id"].as_str().map(|run_id| format!(" of run {run_id}")).unwrap_or_default();
    format!("query {}{of_run}, row {row}, {}", number(&cell["call_index"]), text(cell, "column"))
}

/// Returns the number of a call as people count.
fn number(call_index: &Value) -> u64 {
    call_index.as_u64().unwrap_or_default() + 1
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

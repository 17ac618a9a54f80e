//! What the tests of proofs share: an answer about rows, and what of it is doubted.

use serde_json::{Value, json};

use super::{ProofOrigin, Prover};

/// Returns what is doubted of a text that answers with the rows of one result; each row is a list of values, in the order of
/// the columns.
pub(super) fn doubted(columns: &[&str], rows: Value, text: &str) -> Vec<String> {
    let (mut prover, _guard) = Prover::new("What do the figures look like?");
    let named: Vec<Value> = columns.iter().map(|name| json!({ "name": name })).collect();
    let of_row = |row: &Value| {
        let cells = columns.iter().zip(row.as_array().into_iter().flatten());
        Value::Object(cells.map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    };
    let rows: Vec<Value> = rows.as_array().into_iter().flatten().map(of_row).collect();
    prover.add_result(0, None, &json!({ "columns": named, "row_count": rows.len(), "rows": rows }));
    let links = prover.links(text, &[]).into_iter();
    links.filter(|link| link.origin == ProofOrigin::Unproven).map(|link| link.text).collect()
}

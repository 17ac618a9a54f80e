//! Numbers that are arithmetic over cells: totals, averages, differences, ratios and shares. A text has to say that it
//! means one: with enough cells any number is the difference of two.

use super::tokens::WrittenNumber;
use super::{CellReference, ProofRows, number_of};

/// Cells of which pairs are tried.
const MAX_PAIRED: usize = 24;

/// What words announce.
struct AnnouncedOperation {
    total: bool,
    average: bool,
    difference: bool,
    ratio: bool,
    share: bool,
}

impl AnnouncedOperation {
    fn in_text(text: &str) -> Self {
        let text = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Self {
            total: has(&["total", "sum", "together", "combined", "altogether", "in all", "overall"]),
            average: has(&["average", "mean", "on avg"]),
            difference: has(&[
                "more",
                "less",
                "fewer",
                "difference",
                "gap",
                "increase",
                "decrease",
                "ahead",
                "behind",
                "higher",
                "lower",
                "grew",
                "fell",
                "rose",
                "between",
                "range",
            ]),
            ratio: has(&["times", "ratio", "twice", "per ", "factor"]),
            share: has(&["%", "percent", "share", "proportion", "fraction"]),
        }
    }
}

/// A number with the cell that it is of.
struct NumberCell {
    value: f64,
    text: String,
    reference: CellReference,
}

/// Returns the expression over cells of a result that a number is, its value, and the cells.
pub(super) fn expression_of(
    number: &WrittenNumber,
    result: &ProofRows,
    clause: &str,
    sentence: &str,
) -> Option<(String, f64, Vec<CellReference>)> {
    let announced = AnnouncedOperation::in_text(&format!("{clause} {sentence}"));
    for column in 0..result.columns.len() {
        let cells: Vec<NumberCell> = result
            .rows
            .iter()
            .enumerate()
            .filter_map(|(row, values)| {
                let value = values.get(column)?;
                Some(NumberCell { value: number_of(value)?, text: text_of(value), reference: result.cell(row, column) })
            })
            .collect();
        if cells.is_empty() {
            continue;
        }
        let whole = |sql: String, value: f64| {
            number.stands_for(value).then(|| (sql, value, cells.iter().map(|cell| cell.reference.clone()).collect()))
        };
        let sum: f64 = cells.iter().map(|cell| cell.value).sum();
        let added = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
        if cells.len() > 1 {
            if announced.total
                && let Some(found) = whole(added.clone(), sum)
            {
                return Some(found);
            }
            let count = cells.len();
            if announced.average
                && let Some(found) = whole(format!("CAST({added} AS DOUBLE) / {count}"), sum / count as f64)
            {
                return Some(found);
            }
        }
        if announced.share && sum != 0.0 {
            for cell in &cells {
                let value = 100.0 * cell.value / sum;
                if number.stands_for(value)
                    && let Some(found) = whole(format!("100.0e0 * {} / CAST({added} AS DOUBLE)", cell.text), value)
                {
                    return Some(found);
                }
            }
        }
        if let Some(found) = paired(number, &cells, &announced) {
            return Some(found);
        }
    }
    // Of the columns of one row.
    result.rows.iter().enumerate().take(MAX_PAIRED).find_map(|(row, values)| {
        let cells: Vec<NumberCell> = values
            .iter()
            .enumerate()
            .filter_map(|(column, value)| {
                Some(NumberCell { value: number_of(value)?, text: text_of(value), reference: result.cell(row, column) })
            })
            .collect();
        paired(number, &cells, &announced)
    })
}

fn paired(
    number: &WrittenNumber,
    cells: &[NumberCell],
    announced: &AnnouncedOperation,
) -> Option<(String, f64, Vec<CellReference>)> {
    let cells = &cells[..cells.len().min(MAX_PAIRED)];
    for (index, left) in cells.iter().enumerate() {
        for (other, right) in cells.iter().enumerate() {
            if index == other {
                continue;
            }
            let found = |sql: String, value: f64| {
                let cells = vec![left.reference.clone(), right.reference.clone()];
                number.stands_for(value).then_some((sql, value, cells))
            };
            let (l, r) = (&left.text, &right.text);
            let tried = [
                announced.difference.then(|| found(format!("{l} - {r}"), left.value - right.value)),
                announced.total.then(|| found(format!("{l} + {r}"), left.value + right.value)),
                (announced.ratio && right.value != 0.0)
                    .then(|| found(format!("{l} / CAST({r} AS DOUBLE)"), left.value / right.value)),
                (announced.share && right.value != 0.0)
                    .then(|| found(format!("100.0e0 * {l} / CAST({r} AS DOUBLE)"), 100.0 * left.value / right.value)),
                (announced.share && announced.difference && right.value != 0.0).then(|| {
                    let value = 100.0 * (left.value - right.value) / right.value;
                    found(format!("100.0e0 * ({l} - {r}) / CAST({r} AS DOUBLE)"), value)
                }),
            ];
            if let Some(found) = tried.into_iter().flatten().flatten().next() {
                return Some(found);
            }
        }
    }
    None
}

fn text_of(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}

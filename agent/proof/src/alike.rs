//! Counts of rows that are alike in a column that is no text: `three pumps are running`, `two orders have no invoice`, `two players
//! scored 7 goals`.

use serde_json::Value;

use super::claims::is_exact;
use super::comparisons::spoken_name;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, WrittenNumber, find_word, says, tokens_in};
use super::{ProofOrigin, number_of};

/// The longest clause that is looked at, in bytes: each of its numbers looks at what is behind it.
const LONGEST: usize = 1_000;

/// Returns what proves that as many rows are alike, by a column that is named behind the number.
pub(super) fn count_of_alike(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    if !is_exact(number)
        || result.rows.len() < 2
        || place.clause.len() > LONGEST
        || !result.labelled(place.clause).is_empty()
    {
        return None;
    }
    let behind = place.clause.get(token.end..)?;
    let is_denied = says(behind, &["not", "no", "none", "never", "without"]) || behind.contains("n't");
    let is_number = |one: &TextToken| matches!(one.kind, TextTokenKind::Number(_));
    let said: Vec<TextToken> = tokens_in(behind).into_iter().filter(is_number).collect();
    let labels = result.label_columns();
    (0..result.columns.len()).filter(|column| !labels.contains(column)).find_map(|column| {
        let name = spoken_name(result.columns.get(column)?);
        // `Four bins hold 1,300 each`.
        let is_each = said.len() == 1 && says(behind, &["each", "apiece"]);
        if !is_each {
            find_word(behind, name.trim_end_matches(" at"))?;
        }
        let is_alike = |row: &usize| match result.rows.get(*row).and_then(|row| row.get(column)) {
            Some(Value::Bool(value)) => *value != is_denied,
            Some(Value::Null) => is_denied,
            Some(value) => match said.as_slice() {
                [] => is_denied && number_of(value) == Some(0.0),
                [only] => !is_denied && only.is_exactly(value),
                _ => false,
            },
            None => false,
        };
        let rows: Vec<usize> = (0..result.rows.len()).filter(is_alike).collect();
        (!rows.is_empty() && rows.len() as f64 == number.value).then(|| result.origin_of_count(&rows, column))
    })
}

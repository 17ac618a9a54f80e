//! How many rows a text lists: `three endpoints: /cart, /export and /upload`, and `all three` where they are named before it.

use super::ProofOrigin;
use super::claims::is_exact;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, last_words};
use super::units::unit_beside;

/// Returns what proves a number of rows that the sentence lists behind it, or of those that are named before it.
pub(super) fn listed_count_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    if !is_exact(number) || number.value < 2.0 {
        return None;
    }
    let is_so = |rows: &Vec<usize>| rows.len() as f64 == number.value;
    // `In three months: April, July and December` lists them, whatever else is measured in months.
    let is_measured = unit_beside(token, place.clause).is_some();
    let named = || rows_named_about(result, token, place).into_iter().find(is_so).filter(|_| !is_measured);
    let rows = rows_behind(result, token, place).filter(is_so).or_else(named)?;
    let column = result.label_columns().first().copied().unwrap_or_default();
    Some(result.origin_of_count(&rows, column))
}

/// Returns the rows that are listed behind the colon, where the number before it is the last one and no row is named there.
fn rows_behind(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<Vec<usize>> {
    let (before, list) = place.sentence.split_once(": ")?;
    let end = place.offset + token.end;
    let is_last = before.get(end..).is_some_and(|rest| !rest.contains(|c: char| c.is_ascii_digit()));
    (is_last && result.labelled(before).is_empty()).then(|| result.labelled(list))
}

/// Returns the rows that are named before `all three` and `these three`: in the sentence, in the one before it, and in the clause.
fn rows_named_about(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Vec<Vec<usize>> {
    const OF_NAMED: [&str; 4] = ["all", "these", "those", "the"];
    let is_of_named = OF_NAMED.contains(&last_words(&place.clause[..token.start], 1).as_str());
    let of_sentence = place.sentence.get(..place.offset + token.start).unwrap_or_default();
    match is_of_named {
        // `The two Saturdays` says its rows behind it.
        true => [of_sentence, place.before, place.clause].into_iter().map(|text| result.labelled(text)).collect(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn rows_that_are_listed_are_counted() {
        let endpoints =
            json!([["login", 38], ["cart", 42], ["checkout", 120], ["export", 840], ["upload", 310], ["users", 29],]);
        let of_endpoints = |text: &str| doubted(&["endpoint", "p50_ms"], endpoints.clone(), text);
        let text = "Three endpoints are slow: checkout, export and upload. All three need work.";
        assert_eq!(of_endpoints(text), Vec::<String>::new());
        let wrong = "Four endpoints are slow: checkout, export and upload. All four need work.";
        assert_eq!(of_endpoints(wrong), ["Four", "four"]);
    }

    #[test]
    fn a_column_that_numbers_the_rows_says_nothing_against_a_count() {
        let runners = json!([
            [1, "Marit", "Fjord"],
            [2, "Aiko", "Fjord"],
            [3, "Paulo", "Porto"],
            [4, "Lena", "Isar"],
            [5, "Elin", "Fjord"],
        ]);
        let is_doubted = |text: &str| !doubted(&["place", "runner", "club"], runners.clone(), text).is_empty();
        assert!(!is_doubted("Fjord had 3 runners."));
        assert!(is_doubted("Fjord had 4 runners."));
    }
}

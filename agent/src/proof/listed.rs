//! How many rows a text lists: `three endpoints: /cart, /export and /upload`, and `all three` where they are named before it.

use super::claims::is_exact;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, last_words};
use super::units::unit_beside;
use super::{CellReference, ProofOrigin};

/// Returns what proves a number of rows that the sentence lists behind it, or of those that are named before it.
pub(super) fn listed_count_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    if !is_exact(number) || number.value < 2.0 || unit_beside(token, place.clause).is_some() {
        return None;
    }
    let is_so = |rows: &Vec<usize>| rows.len() as f64 == number.value;
    let rows = rows_behind(result, token, place)
        .filter(is_so)
        .or_else(|| rows_named_about(result, token, place).into_iter().find(is_so))?;
    let column = result.label_columns().first().copied().unwrap_or_default();
    let cells: Vec<CellReference> = rows.iter().map(|row| result.cell(*row, column)).collect();
    Some(ProofOrigin::Expression { expression: vec!["1"; rows.len()].join(" + "), value: number.value, cells })
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
    use serde_json::{Value, json};

    use crate::proof::{ProofOrigin, Prover};

    fn doubted(text: &str) -> Vec<String> {
        let (mut prover, _guard) = Prover::new("Which endpoints are slow?");
        let columns = json!([{ "name": "endpoint" }, { "name": "p50_ms" }]);
        let endpoints =
            [("login", 38), ("cart", 42), ("checkout", 120), ("export", 840), ("upload", 310), ("users", 29)];
        let row = |(endpoint, ms): (&str, u32)| json!({ "endpoint": endpoint, "p50_ms": ms });
        let rows: Vec<Value> = endpoints.into_iter().map(row).collect();
        prover.add_result(0, None, &json!({ "columns": columns, "row_count": rows.len(), "rows": rows }));
        let links = prover.links(text, &[]).into_iter();
        links.filter(|link| link.origin == ProofOrigin::Unproven).map(|link| link.text).collect()
    }

    #[test]
    fn rows_that_are_listed_are_counted() {
        let text = "Three endpoints are slow: checkout, export and upload. All three need work.";
        assert_eq!(doubted(text), Vec::<String>::new());
        let wrong = "Four endpoints are slow: checkout, export and upload. All four need work.";
        assert_eq!(doubted(wrong), ["Four", "four"]);
    }

    #[test]
    fn a_column_that_numbers_the_rows_says_nothing_against_a_count() {
        let (mut prover, _guard) = Prover::new("How did the clubs do?");
        let columns = json!([{ "name": "place" }, { "name": "runner" }, { "name": "club" }]);
        let runners = [("Marit", "Fjord"), ("Aiko", "Fjord"), ("Paulo", "Porto"), ("Lena", "Isar"), ("Elin", "Fjord")];
        let row = |(index, (runner, club)): (usize, (&str, &str))| -> Value {
            json!({ "place": index + 1, "runner": runner, "club": club })
        };
        let rows: Vec<Value> = runners.into_iter().enumerate().map(row).collect();
        prover.add_result(0, None, &json!({ "columns": columns, "row_count": rows.len(), "rows": rows }));
        let is_doubted = |text: &str| prover.links(text, &[]).iter().any(|link| link.origin == ProofOrigin::Unproven);
        assert!(!is_doubted("Fjord had 3 runners."));
        assert!(is_doubted("Fjord had 4 runners."));
    }
}

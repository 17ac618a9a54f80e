//! Lengths of time that are written in several parts, `2:28:32` and `20 minutes and 28 seconds`, of columns that count seconds:
//! they are proven as the number of seconds that they are, by a cell or by arithmetic over cells.

use super::derived::units_in_row;
use super::rows::TokenPlace;
use super::tokens::{TextToken, TextTokenKind, WrittenNumber};
use super::units::{unit_at, unit_beside};
use super::{ProofOrigin, Prover};

impl Prover {
    /// Returns what proves a length of time that is written in several parts.
    pub(super) fn time_length_origin(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let is_of_seconds = |name: &str| {
            self.results.iter().any(|result| {
                let column = result.columns.iter().position(|column| column == name);
                column.and_then(|column| unit_at(result, column)).is_some_and(|unit| unit.is_second())
            })
        };
        let seconds = match &token.kind {
            TextTokenKind::Code(code) => seconds_of(code),
            TextTokenKind::Number(_) => seconds_of_parts(token, place),
            _ => None,
        }?;
        let kind = TextTokenKind::Number(WrittenNumber { value: seconds, ..WrittenNumber::whole(0) });
        let origin = self.own_origin_as_written(&TextToken { kind, ..token.clone() }, place);
        let is_so = match &origin {
            ProofOrigin::Cell { cell, .. } => is_of_seconds(&cell.column),
            ProofOrigin::Expression { cells, .. } => cells.iter().all(|cell| is_of_seconds(&cell.column)),
            _ => false,
        };
        is_so.then_some(origin)
    }
}

/// Returns the seconds that a stop watch shows: 8,912 of `2:28:32`, 125 of `2:05`.
fn seconds_of(code: &str) -> Option<f64> {
    let parts: Vec<&str> = code.split(':').collect();
    let [first, sixtieths @ ..] = parts.as_slice() else { return None };
    let is_part = |part: &&str| part.len() == 2 && part.parse::<u32>().is_ok_and(|number| number < 60);
    if !(1..=2).contains(&sixtieths.len()) || !sixtieths.iter().all(is_part) {
        return None;
    }
    let whole: f64 = first.parse::<u32>().ok()?.into();
    Some(sixtieths.iter().filter_map(|part| part.parse::<f64>().ok()).fold(whole, |all, part| all * 60.0 + part))
}

/// Returns the seconds of a length of time of which a number is one of several parts, down to the second.
fn seconds_of_parts(token: &TextToken, place: TokenPlace<'_>) -> Option<f64> {
    let unit = unit_beside(token, place.clause)?;
    let (whole, least) = units_in_row(token, place, unit)?;
    (least == 1.0 && unit.is_of_time()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_race(text: &str) -> Vec<String> {
        doubted(
            &["runner", "finish_seconds"],
            json!([["Marit", 8912], ["Jonas", 8945], ["Paulo", 9003], ["Lena", 10140]]),
            text,
        )
    }

    #[test]
    fn what_a_stop_watch_shows_is_a_number_of_seconds() {
        for text in ["Marit won in 2:28:32.", "The median time was 2:29:34."] {
            assert_eq!(of_race(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(of_race("Marit won in 2:28:23."), ["2:28:23"]);
        assert_eq!(of_race("Marit won in 2:29:05."), ["2:29:05"]);
    }

    #[test]
    fn parts_of_a_length_of_time_are_proven_together() {
        let text = "Marit and Lena were separated by 20 minutes and 28 seconds.";
        assert_eq!(of_race(text), Vec::<String>::new());
        let wrong = of_race("Marit and Lena were separated by 20 minutes and 38 seconds.");
        assert!(wrong.contains(&"38".to_owned()), "{wrong:?}");
    }
}

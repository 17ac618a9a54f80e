//! Which numbers may be a slip for what a cell holds, so that the cell's may be put in their place. Others are doubted only: what
//! is right, and of something else, must not be made wrong.

use serde_json::Value;

use super::tokens::{ShareScale, TextToken, TextTokenKind};
use super::{CellReference, Prover, number_of};

/// Digits that a slip changes at most.
const MOST_CHANGED: usize = 2;

impl Prover {
    /// Whether a number may be a slip for a cell: that of another row in its column, or of about as many digits, of which two
    /// are others at most.
    pub(super) fn is_slip(&self, token: &TextToken, cell: &CellReference, value: &Value) -> bool {
        let TextTokenKind::Number(number) = &token.kind else { return true };
        let is_of_other_row = || {
            let result = self.results.iter().find(|result| result.call_index == cell.call_index);
            result.is_some_and(|result| {
                let column = result.columns.iter().position(|column| *column == cell.column);
                let mut cells = column.map(|column| result.numbers(column)).unwrap_or_default().into_iter();
                cells.any(|(row, other)| row != cell.row && number.stands_for(other, ShareScale::Unknown))
            })
        };
        let Some(found) = number_of(value) else { return true };
        let (written, held) = (digits_of(&token.text), digits_of(&plain(found)));
        is_of_other_row() || are_alike(&written, &held)
    }
}

/// Returns a number as it is written without zeros behind its point.
fn plain(number: f64) -> String {
    format!("{number}")
}

fn digits_of(text: &str) -> Vec<char> {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_digit).collect();
    // `7.50` of 7.5.
    let end = match text.contains(['.', ',']) {
        true => digits.iter().rposition(|digit| *digit != '0').map_or(0, |at| at + 1),
        false => digits.len(),
    };
    digits.into_iter().take(end).collect()
}

/// Whether two numbers differ in at most so many digits, of about as many.
fn are_alike(one: &[char], other: &[char]) -> bool {
    let (shorter, longer) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if longer.len() - shorter.len() > 1 {
        return false;
    }
    let differing =
        |shorter: &[char], longer: &[char]| shorter.iter().zip(longer).filter(|(one, other)| one != other).count();
    match longer.len() - shorter.len() {
        0 => differing(shorter, longer) <= MOST_CHANGED,
        // A digit more: what stands before it and behind it is the same. 45 is no slip for 5.
        _ => {
            longer.len() > MOST_CHANGED
                && (0..longer.len()).any(|at| {
                    let rest: Vec<char> =
                        longer.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, c)| *c).collect();
                    differing(shorter, &rest) == 0
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Prover;

    #[test]
    fn what_is_no_slip_is_not_replaced() {
        let (mut prover, _guard) = Prover::new("How long did each take?");
        let columns = json!([{ "name": "ticket" }, { "name": "minutes" }]);
        let rows = json!([{ "ticket": "P-1", "minutes": 5 }, { "ticket": "P-2", "minutes": 124 }, { "ticket": "P-3", "minutes": 96 }]);
        prover.add_result(0, None, &json!({ "columns": columns, "row_count": 3, "rows": rows }));
        let corrected = |text: &str| prover.correct(text, 0).0;
        assert_eq!(corrected("P-2 took 142 minutes."), "P-2 took 124 minutes.");
        assert_eq!(corrected("P-2 took 96 minutes."), "P-2 took 124 minutes.");
        assert_eq!(corrected("P-1 took 45 minutes."), "P-1 took 45 minutes.");
    }
}

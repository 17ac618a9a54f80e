//! Changes that stand behind an arrow between two numbers: `Jan 412.5 → Apr 250 (−39.4 %)`.

use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, tokens_in};
use super::{CellReference, ProofOrigin, number_of};

/// What may stand for an arrow.
const ARROWS: [&str; 3] = ["→", "->", "=>"];
/// Bytes between the two numbers, and before the change.
const MOST_BETWEEN: usize = 40;

/// Returns what proves a change, in percent or as a difference, that stands behind the two numbers of an arrow.
pub(super) fn arrow_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let start = place.offset + token.start;
    let head = place.sentence.get(..start)?;
    if !ARROWS.iter().any(|arrow| head.contains(arrow)) {
        return None;
    }
    let numbers = tokens_in(head);
    let mut before = numbers.iter().rev().filter(|one| matches!(one.kind, TextTokenKind::Number(_)));
    let (new, old) = (before.next()?, before.next()?);
    let between = head.get(old.end..new.start)?;
    let behind = head.get(new.end..)?;
    let is_arrow = between.len() <= MOST_BETWEEN && ARROWS.iter().any(|arrow| between.contains(arrow));
    if !is_arrow || behind.len() > MOST_BETWEEN || ARROWS.iter().any(|arrow| behind.contains(arrow)) {
        return None;
    }
    (0..result.columns.len()).find_map(|column| {
        let cell_of = |token: &TextToken| -> Option<(f64, CellReference)> {
            let (row, values) = result.rows.iter().enumerate().find(|(_, values)| {
                values.get(column).is_some_and(|value| token.equals(value, result.share_scale(column)))
            })?;
            Some((number_of(values.get(column)?)?, result.cell(row, column)))
        };
        let ((from, of_old), (to, of_new)) = (cell_of(old)?, cell_of(new)?);
        let (value, scale, expression) = match number.is_percent {
            true if from == 0.0 => return None,
            true => {
                let text = format!("100.0e0 * ({to:?} - {from:?}) / {from:?}");
                (100.0 * (to - from) / from, ShareScale::Percent, text)
            }
            false => (to - from, ShareScale::Unknown, format!("{to:?} - {from:?}")),
        };
        let is_so = of_old.row != of_new.row && number.stands_for(value, scale);
        is_so.then(|| ProofOrigin::Expression { expression, value, cells: vec![of_new, of_old] })
    })
}

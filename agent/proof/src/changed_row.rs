//! Changes of one row without another number beside them: `Glass and Salt lost 8 % and 10 %` between the columns of two years, and
//! `by December it had regained 4.5 m` since a row of the sentence before.

use super::candidates::most_candidates;
use super::counted_rows::changing_column;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, WrittenNumber, last_words, says};
use super::units::{is_in_other_unit, is_of_other_dimension};
use super::{ProofOrigin, number_of};

/// Words of a change that is said without its sign.
const LOST: [&str; 5] = ["lost", "loses", "losing", "lose", "shed"];
const GAINED: [&str; 4] = ["gained", "gains", "gaining", "gain"];
/// Words right before a number that is a rise since the least of what was said before.
const REGAINED: [&str; 5] = ["regained", "recovered", "recouped", "clawed back", "gained back"];

/// Returns what proves a change of the row that a sentence is about.
pub(super) fn changed_row_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    change_between_years(result, token, number, place).or_else(|| regained(result, token, number, place))
}

/// Finds `Glass lost 8 %` of a row with one number in each of two years.
fn change_between_years(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let before = place.sentence.get(..place.offset + token.start)?;
    let sign = sign_in(&place.clause[..token.start]).or_else(|| sign_in(before))?;
    let row = match result.respective_row(token, place) {
        Some(row) => row,
        None => match result.named_rows(place).as_slice() {
            [row] => *row,
            _ => return None,
        },
    };
    let (column, Some(base)) = changing_column(result)? else { return None };
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    let (new, old) = (value(column)?, value(base)?);
    let (change, expression, scale) = match number.is_percent {
        true if old == 0.0 => return None,
        true => {
            let text = format!("{sign:?} * 100.0e0 * ({new:?} - {old:?}) / {old:?}");
            (sign * 100.0 * (new - old) / old, text, ShareScale::Percent)
        }
        false => (sign * (new - old), format!("{sign:?} * ({new:?} - {old:?})"), ShareScale::Amount),
    };
    (change > 0.0 && number.stands_for(change, scale)).then(|| ProofOrigin::Expression {
        expression,
        value: change,
        cells: vec![result.cell(row, column), result.cell(row, base)],
    })
}

/// Returns the sign of the change that a text says, where it says one.
fn sign_in(text: &str) -> Option<f64> {
    match (says(text, &LOST), says(text, &GAINED)) {
        (true, false) => Some(-1.0),
        (false, true) => Some(1.0),
        _ => None,
    }
}

/// Finds `by December it had regained 4.5 m`: what the row has more than the least of those of the sentence before.
fn regained(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let before = place.clause[..token.start].trim_end_matches(|c: char| " $€£".contains(c));
    let is_said = REGAINED.iter().any(|words| last_words(before, words.split(' ').count()) == *words);
    let base = if is_said { result.labelled(place.before) } else { Vec::new() };
    if base.is_empty() || number.is_percent {
        return None;
    }
    let [row] = *result.labelled(place.sentence).as_slice() else { return None };
    let is_of_unit = |column: &usize| {
        !is_in_other_unit(result, *column, token, place.clause)
            && !is_of_other_dimension(result, *column, token, place.clause)
    };
    let columns: Vec<usize> = measured_columns(result, "").into_iter().filter(is_of_unit).collect();
    if columns.len() as f64 > most_candidates(number) {
        return None;
    }
    columns.into_iter().find_map(|column| {
        let value = |row: usize| number_of(result.rows.get(row)?.get(column)?);
        let of_base = base.iter().filter_map(|row| Some((*row, value(*row)?)));
        let (least_row, least) = of_base.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let now = value(row)?;
        let rise = now - least;
        (rise > 0.0 && number.stands_for(rise, ShareScale::Amount)).then(|| ProofOrigin::Expression {
            expression: format!("1.0e0 * (({now:?}) - ({least:?}))"),
            value: rise,
            cells: vec![result.cell(row, column), result.cell(least_row, column)],
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_museums(text: &str) -> Vec<String> {
        let rows = json!([
            ["Maritime", 184_200, 197_100, 12.0],
            ["Glass", 96_500, 88_780, 9.5],
            ["Textile", 41_300, 45_430, 8.0],
            ["Salt", 33_600, 30_240, 7.0],
        ]);
        doubted(&["museum", "visitors_2024", "visitors_2025", "ticket_eur"], rows, text)
    }

    #[test]
    fn what_a_row_lost_is_between_its_two_years() {
        for text in [
            "Glass lost 8.0 % of its visitors.",
            "Glass and Salt lost 8.0 % and 10.0 % of their visitors respectively.",
            "Glass lost 7,720 visitors.",
        ] {
            assert_eq!(of_museums(text), Vec::<String>::new(), "{text}");
        }
        for (text, wrong) in [
            ("Glass lost 8.5 % of its visitors.", "8.5"),
            ("Glass and Salt lost 8.0 % and 11.0 % of their visitors respectively.", "11.0"),
            ("Glass and Salt lost 10.0 % and 8.0 % of their visitors respectively.", "10.0"),
            ("Textile lost 10.0 % of its visitors.", "10.0"),
        ] {
            assert!(of_museums(text).contains(&wrong.to_owned()), "{text}: {:?}", of_museums(text));
        }
    }

    #[test]
    fn what_is_regained_is_since_the_least_that_was_said_before() {
        let months = json!([["2025-04", 151.3], ["2025-09", 142.5], ["2025-11", 144.6], ["2025-12", 147.0]]);
        let is_doubted = |text: &str| !doubted(&["month", "level_m"], months.clone(), text).is_empty();
        let before = "It bottomed out in September at 142.5 m, after a peak of 151.3 m in April.";
        assert!(!is_doubted(&format!("{before} By December it had regained 4.5 m.")));
        assert!(is_doubted(&format!("{before} By December it had regained 5.4 m.")));
        assert!(is_doubted(&format!("{before} By November it had regained 4.5 m.")));
    }

    #[test]
    fn shares_are_of_the_rows_that_are_named_in_their_order() {
        let shops = json!([["Leeds", 4_210, 137], ["York", 2_874, 205], ["Hull", 1_993, 61]]);
        let of_shops = |text: &str| doubted(&["shop", "orders", "returned"], shops.clone(), text);
        let right = "Leeds and York took 3.25 % and 7.13 % of their orders back respectively.";
        assert_eq!(of_shops(right), Vec::<String>::new());
        assert_eq!(of_shops(&right.replace("3.25", "3.52")), ["3.52"]);
    }
}

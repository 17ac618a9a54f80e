//! Numbers that one cell gives: what a share leaves (`the other 76 %`), one in so many, a ratio as an increase, and a measure
//! in another unit.

use super::announced::says_loss;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, says, tokens_in};
use super::units::{MeasureUnit, unit_at, unit_beside};
use super::{CellReference, ProofOrigin, number_of};

/// Cells that are looked at.
const MAX_CELLS: usize = 60;
/// Words by which a number is what is left.
const OF_REST: [&str; 51] = [
    "empty",
    "vacant",
    "free",
    "frei",
    "leer",
    "libres",
    "closed",
    "resolved",
    "offline",
    "unavailable",
    "idle",
    "unused",
    "refused",
    "rejected",
    "denied",
    "failed",
    "missed",
    "unsold",
    "unpaid",
    "übrigen",
    "restlichen",
    "nicht",
    "ohne",
    "autres",
    "restants",
    "sans",
    "demás",
    "sin",
    "restantes",
    "reprovaram",
    "suspendieron",
    "não",
    "sem",
    "overige",
    "niet",
    "zonder",
    "remaining",
    "remainder",
    "rest",
    "not",
    "outside",
    "other",
    "others",
    "stayed",
    "remained",
    "kept",
    "without",
    "except",
    "retained",
    "left",
    "no",
];
/// See the module; of the rows that are named, or of all.
pub(super) fn derived_origin(
    result: &ProofRows,
    rows: &[usize],
    token: &TextToken,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let lower = place.sentence.to_lowercase();
    // `Down 6.5 % of the time`; what is down by so much is less than before.
    let is_idle = find_word(&lower, "down").is_some() && lower.contains("of the time");
    let is_rest = is_idle || says(&lower, &OF_REST) || lower.contains("n't ");
    let is_one_in = lower.contains("one in ") || lower.contains("1 in ");
    let unit = unit_beside(token, place.clause);
    let is_of_rows = |row: &usize| rows.is_empty() || rows.contains(row);
    for (row, column, cell) in result.cells().filter(|(row, _, _)| is_of_rows(row)).take(MAX_CELLS) {
        let Some(value) = number_of(cell) else { continue };
        let origin = |expression: String, value: f64| {
            Some(ProofOrigin::Expression { expression, value, cells: vec![result.cell(row, column)] })
        };
        let is_share = |found: f64| number.stands_for(found, ShareScale::Percent);
        // What the cell is in percent, where it can be a share.
        let percent = match result.share_scale(column) {
            ShareScale::Fraction => Some(("100.0e0 * ", 100.0)),
            ShareScale::Percent => Some(("1.0e0 * ", 1.0)),
            ShareScale::Unknown if (0.0..=1.0).contains(&value) => Some(("100.0e0 * ", 100.0)),
            ShareScale::Unknown if (1.0..=100.0).contains(&value) => Some(("1.0e0 * ", 1.0)),
            ShareScale::Unknown | ShareScale::Amount => None,
        };
        if let Some((factor_text, factor)) = percent {
            let share = factor * value;
            if is_rest && number.is_percent && is_share(100.0 - share) {
                return origin(format!("100.0e0 - {factor_text}{value:?}"), 100.0 - share);
            }
            if is_one_in
                && is_rest
                && share < 100.0
                && !number.is_percent
                && number.rounded().stands_for(100.0 / (100.0 - share), ShareScale::Unknown)
            {
                let expression = format!("100.0e0 / (100.0e0 - {factor_text}{value:?})");
                return origin(expression, 100.0 / (100.0 - share));
            }
            if is_one_in
                && share != 0.0
                && !number.is_percent
                && number.rounded().stands_for(100.0 / share, ShareScale::Unknown)
            {
                return origin(format!("100.0e0 / ({factor_text}{value:?})"), 100.0 / share);
            }
        }
        let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
        let is_ratio = ["ratio", "factor", "multiple", "index"].iter().any(|word| name.contains(word));
        if is_ratio && number.is_percent && is_share(100.0 * (value - 1.0)) {
            return origin(format!("100.0e0 * ({value:?} - 1)"), 100.0 * (value - 1.0));
        }
        let of_column = unit_at(result, column);
        if let Some((unit, of_column)) = unit.zip(of_column).filter(|(unit, of_column)| unit.is_of_kind(*of_column)) {
            let converted = of_column.convert(value, unit);
            // `1 h 30 min` of 5400 seconds, `5 hours and 10 minutes` of 310 minutes.
            if let Some((whole, least)) = units_in_row(token, place, unit)
                && (of_column.least(value) - whole).abs() < 0.5 * least
            {
                return origin(of_column.conversion(value, unit), converted);
            }
            if unit != of_column && number.stands_for(converted, ShareScale::Unknown) {
                return origin(of_column.conversion(value, unit), converted);
            }
            // `Lost 1.56 metres` of -1560 mm.
            let is_loss = value < 0.0 && unit.shares_zero(of_column) && says_loss(&lower);
            if is_loss && unit != of_column && number.stands_for(-converted, ShareScale::Unknown) {
                return origin(of_column.conversion(-value, unit), -converted);
            }
            // `37 minutes and 27 seconds`.
            let factor = of_column.factor_to(unit);
            let part = (value - value.floor()) * factor;
            let says_whole = tokens_in(place.sentence).iter().any(|one| is_whole_of(one, value));
            if says_whole && factor > 1.0 && (part - number.value).abs() < 1.0 {
                return origin(format!("(1.0e0 * {value:?} - floor(1.0e0 * {value:?})) * {factor:?}"), part);
            }
        }
    }
    // `A and B have 800. The other four share 719`.
    let are_before = rows.is_empty() && says(&lower, &["other", "others", "remaining", "rest"]);
    let named = if are_before { result.labelled(place.before) } else { rows.to_vec() };
    if is_rest { rest_of_sum(result, &named, number).or_else(|| rest_of_row(result, rows, number)) } else { None }
}

/// Returns what one column of a row leaves of another: the 5,136 that stayed, of 5,350 customers of whom 214 left.
fn rest_of_row(result: &ProofRows, rows: &[usize], number: &WrittenNumber) -> Option<ProofOrigin> {
    let row = match (rows, result.rows.len()) {
        ([row], _) => *row,
        ([], 1) => 0,
        _ => return None,
    };
    if number.tolerance > 0.5 {
        return None;
    }
    let is_label = |column: &usize| result.rows.len() > 1 && result.label_columns().contains(column);
    let columns = (0..result.columns.len()).filter(|column| !is_label(column));
    let cells: Vec<(usize, f64)> =
        columns.filter_map(|column| Some((column, number_of(result.rows.get(row)?.get(column)?)?))).collect();
    cells.iter().find_map(|(whole_column, whole)| {
        let mut parts = cells.iter().filter(|(column, part)| column != whole_column && *part > 0.0 && part < whole);
        let rest = |part: f64| if number.is_percent { 100.0 * (whole - part) / whole } else { whole - part };
        let scale = if number.is_percent { ShareScale::Percent } else { ShareScale::Amount };
        // Tickets without a mark are nothing.
        let are_alike = |part: f64| whole.fract() != 0.0 || part.fract() == 0.0;
        let (column, part) = parts.find(|(_, part)| are_alike(*part) && number.stands_for(rest(*part), scale))?;
        Some(ProofOrigin::Expression {
            expression: match number.is_percent {
                true => format!("100.0e0 * ({whole:?} - {part:?}) / {whole:?}"),
                false => format!("{whole:?} - {part:?}"),
            },
            value: rest(*part),
            cells: vec![result.cell(row, *whole_column), result.cell(row, *column)],
        })
    })
}

/// Returns what is left of a column's sum without a row that is named, or without all of them.
fn rest_of_sum(result: &ProofRows, rows: &[usize], number: &WrittenNumber) -> Option<ProofOrigin> {
    if result.rows.len() < 2 || result.rows.len() < result.row_count || result.rows.len() > MAX_CELLS {
        return None;
    }
    (0..result.columns.len()).filter(|column| !result.label_columns().contains(column)).find_map(|column| {
        let cells = result.numbers(column);
        let sum: f64 = cells.iter().map(|(_, value)| value).sum();
        let added = cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + ");
        let references = || -> Vec<CellReference> { cells.iter().map(|(row, _)| result.cell(*row, column)).collect() };
        let named: Vec<f64> = cells.iter().filter(|(row, _)| rows.contains(row)).map(|(_, value)| *value).collect();
        let are_several = named.len() > 1 && named.len() < cells.len();
        let together = are_several.then(|| named.iter().sum::<f64>());
        named.into_iter().chain(together).find_map(|value| {
            let (rest, share) = (sum - value, 100.0 * (sum - value) / sum);
            if !number.is_percent && number.stands_for(rest, ShareScale::Unknown) {
                let expression = format!("{added} - ({value:?})");
                return Some(ProofOrigin::Expression { expression, value: rest, cells: references() });
            }
            (number.is_percent && sum != 0.0 && number.stands_for(share, ShareScale::Percent)).then(|| {
                let expression = format!("100.0e0 * ({added} - ({value:?})) / ({added})");
                ProofOrigin::Expression { expression, value: share, cells: references() }
            })
        })
    })
}

/// Whether a token is the whole part of a value.
fn is_whole_of(token: &TextToken, value: f64) -> bool {
    matches!(&token.kind, TextTokenKind::Number(number) if number.value == value.floor())
}

/// Returns what numbers in a row with units of one kind make together, in the least unit of it, where a number is one of
/// several, and the smallest of their units: 11812 and a second of `3 h 16 min 52 s`.
pub(super) fn units_in_row(token: &TextToken, place: TokenPlace<'_>, kind: MeasureUnit) -> Option<(f64, f64)> {
    let start = place.offset + token.start;
    let mut rows: Vec<Vec<(TextToken, f64, MeasureUnit)>> = Vec::new();
    for one in tokens_in(place.sentence) {
        let TextTokenKind::Number(number) = one.kind else { continue };
        let Some(unit) = unit_beside(&one, place.sentence).filter(|unit| unit.is_of_kind(kind)) else { continue };
        let last = rows.last().and_then(|row| row.last());
        let goes_on = last.is_some_and(|(before, _, larger)| {
            larger.is_above(unit) && place.sentence[before.end..one.start].split_whitespace().count() <= 2
        });
        match rows.last_mut().filter(|_| goes_on) {
            Some(row) => row.push((one, number.value, unit)),
            None => rows.push(vec![(one, number.value, unit)]),
        }
    }
    let row = rows.into_iter().find(|row| row.len() > 1 && row.iter().any(|(one, _, _)| one.start == start))?;
    let least = row.last().map(|(_, _, unit)| unit.least(1.0))?;
    Some((row.iter().map(|(_, value, unit)| unit.least(*value)).sum(), least))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn rows_that_are_named_before_are_left_out_of_the_rest() {
        let routes = json!([["Oban", 512_300], ["Mallaig", 201_450], ["Ullapool", 187_900], ["Brodick", 604_750]]);
        let is_doubted = |text: &str| !doubted(&["route", "passengers"], routes.clone(), text).is_empty();
        assert!(!is_doubted("Brodick and Oban carried 1,117,050 together. The remaining two routes shared 389,350."));
        assert!(is_doubted("Brodick and Oban carried 1,117,050 together. The remaining two routes shared 398,350."));
    }
}

//! Places in an order (`ranks second`) and factors (`twice as many`) of the rows that a sentence names, counted and
//! divided again over the cells of a column.

use super::bounds::NumberBound;
use super::tokens::find_word;
use super::units::is_unit_of_column;
use super::{CellReference, ProofOrigin, ProofRows, number_of};

/// Rows of which a place is counted.
const MAX_RANKED: usize = 50;
/// By how much, of itself, a factor in words may differ.
const FACTOR_TOLERANCE: f64 = 0.05;
/// The same of one that is called about so much, and nearly so much.
const ABOUT_FACTOR: f64 = 0.1;
const NEARLY_FACTOR: f64 = 0.2;
/// Words by which the greatest comes first.
const FROM_GREATEST: [&str; 9] =
    ["highest", "largest", "greatest", "biggest", "most", "longest", "busiest", "richest", "tallest"];
/// Words in the names of columns by whose values somebody may be the first in either direction.
const OF_TIME: [&str; 8] = ["year", "date", "day", "time", "age", "rank", "position", "place"];
/// The same of columns that say the place itself.
const OF_PLACES: [&str; 3] = ["rank", "position", "place"];
/// Words by which the least comes first.
const FROM_LEAST: [&str; 6] = ["lowest", "smallest", "fewest", "least", "shortest", "cheapest"];

/// Whether a number is a place in an order by the words before it: `is number 3`, `ranked 3`.
pub(super) fn is_said_as_rank(clause: &str, start: usize) -> bool {
    let before = clause[..start].trim_end().to_lowercase();
    let before = before.trim_end_matches(['#', '.']).trim_end();
    ["number", "no", "rank", "ranks", "ranked", "place", "position"]
        .iter()
        .any(|word| before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric)))
}

/// Returns what proves that a row has a place in the order of its rows: by the column that the sentence names, else by
/// any of numbers. `None` where there is no such column.
pub(super) fn rank_origin(result: &ProofRows, row: usize, rank: usize, sentence: &str) -> Option<ProofOrigin> {
    if result.rows.len() > MAX_RANKED || result.rows.len() < 2 {
        return None;
    }
    let lower = sentence.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| find_word(&lower, word).is_some());
    let is_told = says(&FROM_LEAST) || says(&FROM_GREATEST);
    let mut found = None;
    for column in measured_columns(result, sentence) {
        let value = number_of(result.rows.get(row)?.get(column)?)?;
        let numbers: Vec<f64> = result.rows.iter().filter_map(|row| number_of(row.get(column)?)).collect();
        let equals = numbers.iter().filter(|other| **other == value).count();
        // Without a word for it the greatest comes first; of times, who is the earliest or the latest.
        let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
        let is_time = !is_told && name.split(|c: char| !c.is_alphanumeric()).any(|word| OF_TIME.contains(&word));
        let directions: &[bool] = match (is_time, says(&FROM_LEAST)) {
            (true, _) => &[true, false],
            (false, is_ascending) => {
                if is_ascending {
                    &[true]
                } else {
                    &[false]
                }
            }
        };
        for is_ascending in directions {
            let is_before = |other: &&f64| if *is_ascending { **other < value } else { **other > value };
            let before = numbers.iter().filter(is_before).count();
            // Rows that are equal share their places.
            if (before + 1..=before + equals).contains(&rank) {
                let sign = if *is_ascending { '<' } else { '>' };
                let terms: Vec<String> =
                    numbers.iter().map(|other| format!("CASE WHEN {other} {sign} {value} THEN 1 ELSE 0 END")).collect();
                let shared = rank - before;
                return Some(ProofOrigin::Expression {
                    expression: format!("{shared} + {}", terms.join(" + ")),
                    value: rank as f64,
                    cells: (0..result.rows.len()).map(|row| result.cell(row, column)).collect(),
                });
            }
        }
        // A column of places says itself who is where.
        if !is_time || name.split(|c: char| !c.is_alphanumeric()).any(|word| OF_PLACES.contains(&word)) {
            found = Some(ProofOrigin::Unproven);
        }
    }
    found
}

/// So many times as much, and how that is bounded: `nearly twice`, `more than four times`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordedFactor {
    pub(super) times: f64,
    pub(super) bound: Option<NumberBound>,
}

impl WordedFactor {
    fn holds(self, ratio: f64) -> bool {
        let Self { times, bound } = self;
        match bound {
            None => (ratio - times).abs() <= times * FACTOR_TOLERANCE,
            Some(NumberBound::About) => (ratio - times).abs() <= times * ABOUT_FACTOR,
            // What has nearly halved is a little more than the half.
            Some(NumberBound::Nearly) if times < 1.0 => ratio > times && ratio <= times * (1.0 + NEARLY_FACTOR),
            Some(NumberBound::Nearly) => ratio < times && ratio >= times * (1.0 - NEARLY_FACTOR),
            // Nobody calls 9 more than twice.
            Some(NumberBound::Above | NumberBound::AtLeast) => ratio >= times && ratio < times + 1.0,
            Some(NumberBound::Below | NumberBound::AtMost) => ratio <= times && ratio > times - 1.0,
        }
    }
}

/// Returns what proves that of the two rows that a sentence names one has `factor` times what the other has. `None`
/// where it names another number of rows, or there is nothing to divide.
pub(super) fn factor_origin(
    result: &ProofRows,
    named: &[(usize, usize)],
    factor: WordedFactor,
    sentence: &str,
) -> Option<ProofOrigin> {
    let [(first, _), (second, _)] = *named else { return None };
    let lower = sentence.to_lowercase();
    // `X has half as many as Y`; `sales doubled from X to Y`.
    let is_of_second = !lower.contains(" as ");
    let is_over_time = lower.contains("from ") || lower.contains("between ");
    let goes_both_ways = lower.contains("compared") || lower.contains("unlike") || is_of_second && !is_over_time;
    let mut found = None;
    for column in measured_columns(result, sentence) {
        let number = |row: usize| number_of(result.rows.get(row)?.get(column)?);
        let (Some(of_first), Some(of_second)) = (number(first), number(second)) else { continue };
        let order = if is_of_second { [(second, first), (first, second)] } else { [(first, second), (second, first)] };
        for (left, right) in order.into_iter().take(if goes_both_ways { 2 } else { 1 }) {
            let (l, r) = if left == first { (of_first, of_second) } else { (of_second, of_first) };
            if r != 0.0 && factor.holds(l / r) {
                let cells: Vec<CellReference> = vec![result.cell(left, column), result.cell(right, column)];
                let expression = format!("{l:?} / CAST({r:?} AS DOUBLE)");
                return Some(ProofOrigin::Expression { expression, value: l / r, cells });
            }
        }
        found = Some(ProofOrigin::Unproven);
    }
    found
}

/// Returns a lowercase name of a column without the unit that it ends with.
fn without_unit(name: &str) -> &str {
    name.rsplit_once('_')
        .filter(|(stem, unit)| !stem.is_empty() && is_unit_of_column(unit))
        .map_or(name, |(stem, _)| stem)
}

/// Returns the columns of numbers that a sentence names, else all but the labels.
pub(super) fn measured_columns(result: &ProofRows, sentence: &str) -> Vec<usize> {
    let labels = result.label_columns();
    let is_measured = |column: &usize| {
        !labels.contains(column)
            && result.rows.iter().any(|row| row.get(*column).is_some_and(|value| number_of(value).is_some()))
    };
    let measured: Vec<usize> = (0..result.columns.len()).filter(is_measured).collect();
    // `No-shows` of `no_shows`, and `churned MRR` of `churned_mrr_usd`.
    let sentence = sentence.replace('-', " ");
    let said_as = |column: usize| {
        let name = result.columns.get(column)?.to_lowercase();
        let words = without_unit(&name).replace('_', " ");
        [name.replace('_', " "), words].into_iter().find(|words| find_word(&sentence, words).is_some())
    };
    let named: Vec<(usize, String)> = measured.iter().filter_map(|column| Some((*column, said_as(*column)?))).collect();
    // `Churned MRR` is none of `mrr_usd`.
    let is_part = |words: &String| {
        named.iter().any(|(_, other)| other.len() > words.len() && find_word(other, words).is_some())
            && sentence.to_lowercase().matches(words.as_str()).count() == 1
    };
    let own: Vec<usize> = named.iter().filter(|(_, words)| !is_part(words)).map(|(column, _)| *column).collect();
    if own.is_empty() { measured } else { own }
}

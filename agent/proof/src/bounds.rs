//! Numbers that say no value but a bound of one: `more than 48,000`, `nearly 50,000`, and how many rows are beyond one,
//! as in `four of the five have more than a million`. They are counted again over the cells of a column.

use super::bound_phrases::PHRASES;
use super::majorities::row_majority;
use super::ranks::measured_columns;
use super::tokens::{ShareScale, TextTokenKind, WrittenNumber, find_word, last_words, says, tokens_in};
use super::units::{MeasureUnit, unit_at, unit_beside};
use super::{ProofOrigin, ProofRows, number_of};

/// Rows that are counted.
const MAX_COUNTED: usize = 100;
/// A bound is of a column with a value of its order of magnitude: at most so many times as much or as little.
const MAGNITUDE: f64 = 10.0;
/// The largest part of a round number by which a value may differ that it stands for.
const LARGEST_ROUNDING: f64 = 0.1;
/// Words that a bound may have before its number.
const LONGEST_PHRASE: usize = 4;

/// How a number bounds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberBound {
    Above,
    AtLeast,
    Below,
    AtMost,
    /// Rounded up: `nearly`.
    Nearly,
    /// Rounded: `about`.
    About,
}

/// Verbs before `up to` that make it a sum.
const SUMS: [&str; 7] = ["add", "adds", "added", "adding", "sum", "sums", "summed"];

impl NumberBound {
    /// Whether the number itself is not what is said.
    pub(super) fn is_strict(self) -> bool {
        !matches!(self, Self::Nearly | Self::About)
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Above => value > bound,
            Self::AtLeast => value >= bound,
            Self::Below => value < bound,
            Self::AtMost => value <= bound,
            Self::Nearly => value < bound && bound - value <= rounding_of(bound),
            Self::About => (value - bound).abs() <= rounding_of(bound),
        }
    }

    /// Returns the operator of SQL that says the same, if there is one.
    fn sign(self) -> Option<&'static str> {
        match self {
            Self::Above => Some(">"),
            Self::AtLeast => Some(">="),
            Self::Below => Some("<"),
            Self::AtMost => Some("<="),
            Self::Nearly | Self::About => None,
        }
    }
}

/// Returns the power of ten that a round number is a multiple of; 0 of one that is not round.
fn unit_of(number: f64) -> f64 {
    let mut unit = 1.0;
    while number != 0.0 && number.fract() == 0.0 && number % (unit * 10.0) == 0.0 {
        unit *= 10.0;
    }
    if unit < 10.0 { 0.0 } else { unit }
}

/// Returns by how much a value may differ that a round number stands for: nobody calls 1,480 about 1,000.
fn rounding_of(number: f64) -> f64 {
    (unit_of(number) / 2.0).min(number.abs() * LARGEST_ROUNDING)
}

/// Returns a number as far as it rounds behind `about` and `nearly`.
pub(super) fn widened(number: WrittenNumber, text: &str, start: usize) -> WrittenNumber {
    match bound_before(text, start) {
        Some(NumberBound::About | NumberBound::Nearly) => {
            WrittenNumber { tolerance: number.tolerance.max(rounding_of(number.value)), ..number }
        }
        _ => number,
    }
}

/// Whether a sentence says that no row is beyond its bound. `No more than` is a bound itself.
pub(super) fn denies(sentence: &str) -> bool {
    let bounds = ["no more than", "no less than", "no fewer than"];
    let plain = bounds.iter().fold(sentence.to_lowercase(), |plain, phrase| plain.replace(phrase, ""));
    says(&plain, &["none", "no", "never", "neither", "nobody"])
}

/// Words for the time over which something is: `over five years` bounds nothing.
pub(super) const PERIODS: [&str; 10] =
    ["years", "months", "weeks", "days", "quarters", "hours", "minutes", "seasons", "decades", "periods"];

/// Returns how `between 40 and 50` bounds the number that begins at a place of a sentence.
pub(super) fn bound_between(sentence: &str, start: usize) -> Option<NumberBound> {
    let before = sentence[..start].trim_end_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
    let words = last_words(before, LONGEST_PHRASE);
    if words == "between" || words.ends_with(" between") {
        return Some(NumberBound::AtLeast);
    }
    let (_, first) = words.rsplit_once("between ")?;
    let is_second = first.ends_with(" and") && tokens_in(first).len() == 1;
    is_second.then_some(NumberBound::AtMost)
}

/// Returns how the words before a number bound it.
pub(super) fn bound_before(clause: &str, start: usize) -> Option<NumberBound> {
    let unit = clause[start..].split_whitespace().nth(1).unwrap_or_default();
    let unit = unit.trim_matches(|c: char| !c.is_alphanumeric());
    let is_over = last_words(&clause[..start], 1) == "over";
    let is_period = is_over && PERIODS.contains(&unit) && !is_length_of_time(&clause[..start], unit);
    bound_of_words(clause, start).filter(|bound| !(is_period && *bound == NumberBound::Above))
}

/// Whether `over` at the end of a text bounds how long something takes, and says no time over which it is: `take over 40
/// minutes`, `the wait is over an hour`.
fn is_length_of_time(before: &str, unit: &str) -> bool {
    const VERBS: [&str; 13] = [
        "take", "takes", "took", "taking", "taken", "last", "lasts", "lasted", "lasting", "wait", "waits", "waited",
        "average",
    ];
    const STATES: [&str; 7] = ["is", "are", "was", "were", "averages", "averaged", "reaches"];
    let words = last_words(before, 2);
    let verb = words.strip_suffix(" over").unwrap_or_default();
    VERBS.contains(&verb) || (STATES.contains(&verb) && ["hours", "minutes"].contains(&unit))
}

fn bound_of_words(clause: &str, start: usize) -> Option<NumberBound> {
    let before = clause[..start].trim_end_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
    let words = last_words(before, LONGEST_PHRASE + 1);
    // `More than a third`, `exceed a 10 % rate`; `over a 5-day period` bounds nothing.
    let behind_digits = clause[start..].trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
    let is_percent = ["%", "percent"].iter().any(|mark| behind_digits.trim_start().starts_with(mark));
    let is_in_words = is_percent || !clause[start..].starts_with(|c: char| c.is_ascii_digit());
    let plain = [" a", " an", " one"].iter().find_map(|article| words.strip_suffix(*article)).filter(|_| is_in_words);
    let words = plain.unwrap_or(&words);
    // What adds up to a number is that number.
    if words.strip_suffix(" up to").is_some_and(|rest| SUMS.iter().any(|verb| rest.ends_with(verb))) {
        return None;
    }
    let ends_with =
        |phrase: &str| words.strip_suffix(phrase).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '));
    // `Passed 75,000`, and no `passed 12 exams`.
    let digits = clause[start..].strip_suffix(behind_digits).unwrap_or_default();
    let is_milestone = digits.trim_end_matches(['.', ',']).ends_with("000");
    if is_milestone && ["passed", "crossed", "broke"].into_iter().any(ends_with) {
        return Some(NumberBound::Above);
    }
    PHRASES.iter().find(|(_, phrases)| phrases.iter().any(|phrase| ends_with(phrase))).map(|(bound, _)| *bound)
}

/// Words by which something is below or above zero.
const NEGATIVE: &[&str] =
    &["negative", "negativ", "négatif", "negativo", "negativa", "negatief", "below freezing", "below zero"];
const POSITIVE: &[&str] =
    &["positive", "positiv", "positif", "positivo", "positiva", "positief", "above freezing", "above zero"];

/// A bound with its number.
struct BoundedNumber {
    bound: NumberBound,
    number: WrittenNumber,
    unit: Option<MeasureUnit>,
}

/// Returns the bounds of a sentence, also `more than a million`.
fn bounds_in(sentence: &str) -> Vec<BoundedNumber> {
    let mut found: Vec<BoundedNumber> = tokens_in(sentence)
        .iter()
        .filter_map(|token| match token.kind {
            TextTokenKind::Number(number) => Some((number, token)),
            _ => None,
        })
        .filter_map(|(number, token)| {
            let bound = bound_before(sentence, token.start)?;
            Some(BoundedNumber { bound, number, unit: unit_beside(token, sentence) })
        })
        .collect();
    // `In four of the five years the balance was negative`.
    let zero = WrittenNumber { tolerance: 0.0, ..WrittenNumber::whole(0) };
    for (bound, words) in [(NumberBound::Below, NEGATIVE), (NumberBound::Above, POSITIVE)] {
        if says(sentence, words) {
            found.push(BoundedNumber { bound, number: zero, unit: None });
        }
    }
    found
}

/// Whether a sentence says something of the rows that it names alone: `only Wanderers have more than three`.
fn are_alone(result: &ProofRows, named: &[usize], sentence: &str) -> bool {
    const ONLY: [&str; 9] = ["only", "nur", "seul", "seule", "solo", "sólo", "apenas", "soltanto", "alleen"];
    let places = named.iter().filter_map(|row| result.label_place(*row, sentence));
    let first = places.map(|(start, _)| start).min();
    let before = first.and_then(|start| sentence.get(..start));
    // A name may stand in marks.
    let word = before.map(|before| last_words(before.trim_end_matches(|c: char| !c.is_alphanumeric()), 1));
    word.is_some_and(|word| ONLY.contains(&word.as_str()))
}

/// Returns what proves a bound of the rows that a sentence names, or of any row where it names none, in the unit that stands
/// beside the number.
pub(super) fn bound_origin(
    result: &ProofRows,
    bound: NumberBound,
    number: &WrittenNumber,
    unit: Option<MeasureUnit>,
    named: &[usize],
    sentence: &str,
) -> Option<ProofOrigin> {
    let denies = denies(sentence);
    let is_of_every_row =
        says(sentence, &["every", "each"]) || (is_of_all(sentence) && aggregate_in(sentence).is_none());
    let rows: Vec<usize> = match named.is_empty() {
        true => (0..result.rows.len().min(MAX_COUNTED)).collect(),
        false => named.to_vec(),
    };
    let majority = if named.is_empty() { row_majority(result, sentence) } else { None };
    // What is said of all rows, or of most of them, is proven by all of them.
    if named.is_empty() && (denies || is_of_every_row || majority.is_some()) && rows.len() < result.row_count {
        return None;
    }
    let are_alone = !named.is_empty() && are_alone(result, named, sentence);
    if are_alone && result.rows.len() < result.row_count {
        return None;
    }
    let is_of_rows = !named.is_empty() || denies || is_of_every_row || result.rows.len() < 2;
    let aggregate = (!is_of_rows).then(|| aggregate_in(sentence)).flatten();
    // `More than 70 % of the patients` is of no column of patients.
    let columns = columns_of(result, if number.is_percent { "" } else { sentence });
    let of_share = || match (number.is_percent, named) {
        (true, [row]) => {
            let mut columns = columns_of(result, sentence).into_iter();
            columns.find_map(|column| share_origin(result, column, *row, bound, number))
        }
        _ => None,
    };
    let of_cells = columns.iter().copied().find_map(|column| {
        if let Some(aggregate) = aggregate {
            return aggregate_origin(result, column, aggregate, bound, number);
        }
        if are_alone {
            return bound_of_rows_alone(result, column, &rows, bound, number, unit);
        }
        let (count, origin) = counted(result, column, &rows, bound, number, unit)?;
        let holds = match (denies, named.is_empty()) {
            (true, _) => count == 0,
            (false, true) if !is_of_every_row => majority.map_or(count > 0, |part| part.holds(count, rows.len())),
            (false, _) => count == rows.len(),
        };
        holds.then_some(origin)
    });
    of_cells.or_else(of_share)
}

/// Returns what proves a bound of some rows and of no other: `only /health stays under 200 ms` of 11 where the next has 210.
fn bound_of_rows_alone(
    result: &ProofRows,
    column: usize,
    rows: &[usize],
    bound: NumberBound,
    number: &WrittenNumber,
    unit: Option<MeasureUnit>,
) -> Option<ProofOrigin> {
    let count = |of: &[usize]| counted(result, column, of, bound, number, unit);
    let all: Vec<usize> = (0..result.rows.len()).collect();
    let others: Vec<usize> = all.iter().copied().filter(|row| !rows.contains(row)).collect();
    // Of rows far from the bound nothing is told here, but by how many of all there are.
    let own_hold = count(rows).is_none_or(|(held, _)| held == rows.len());
    let others_hold = count(&others).is_some_and(|(held, _)| held > 0);
    let (of_all, origin) = count(&all)?;
    (own_hold && !others_hold && of_all == rows.len()).then_some(origin)
}

/// Returns what proves a bound of the share that a row has in the total of a column: `a little more than 1 % of all loans`.
fn share_origin(
    result: &ProofRows,
    column: usize,
    row: usize,
    bound: NumberBound,
    number: &WrittenNumber,
) -> Option<ProofOrigin> {
    /// How far a share may be from its bound, of itself.
    const NEAR: f64 = 0.25;
    let cells = result.numbers(column);
    let value = number_of(result.rows.get(row)?.get(column)?)?;
    let sum: f64 = cells.iter().map(|(_, value)| *value).sum();
    let share = 100.0 * value / sum;
    let is_part = cells.len() > 1 && cells.len() <= MAX_COUNTED && cells.iter().all(|(_, value)| *value >= 0.0);
    let is_near_bound = (share - number.value).abs() <= NEAR * number.value.max(1.0);
    if !is_part || result.rows.len() < result.row_count || !is_near_bound || !bound.holds(share, number.value) {
        return None;
    }
    let added: Vec<String> = cells.iter().map(|(_, value)| format!("({value:?})")).collect();
    Some(ProofOrigin::Expression {
        expression: format!("100.0e0 * {value:?} / ({})", added.join(" + ")),
        value: share,
        cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
    })
}

/// Whether a sentence says something of all: `all three vaccinate more than 70 %`. `Most of all` and `in all` do not.
fn is_of_all(sentence: &str) -> bool {
    let Some(at) = find_word(sentence, "all") else { return false };
    !["in", "of", "at", "above"].contains(&last_words(&sentence[..at], 1).as_str())
}

/// What of all rows a bound is of.
#[derive(Clone, Copy)]
enum BoundedAggregate {
    Total,
    Mean,
}

/// Returns what of all rows a sentence says a bound of: `the total is more than 8 million`.
fn aggregate_in(sentence: &str) -> Option<BoundedAggregate> {
    let says = |words: &[&str]| says(sentence, words);
    if says(&["average", "mean", "durchschnitt", "moyenne", "promedio", "gemiddelde"]) {
        return Some(BoundedAggregate::Mean);
    }
    says(&["total", "together", "combined", "altogether", "sum", "insgesamt", "zusammen", "totaal"])
        .then_some(BoundedAggregate::Total)
}

/// Returns what proves a bound of the total or the mean of a column.
fn aggregate_origin(
    result: &ProofRows,
    column: usize,
    aggregate: BoundedAggregate,
    bound: NumberBound,
    number: &WrittenNumber,
) -> Option<ProofOrigin> {
    let cells = result.numbers(column);
    if number.is_percent || cells.is_empty() || cells.len() > MAX_COUNTED || result.rows.len() < result.row_count {
        return None;
    }
    let added: Vec<String> = cells.iter().map(|(_, value)| format!("({value:?})")).collect();
    let sum: f64 = cells.iter().map(|(_, value)| *value).sum();
    let (text, value) = match aggregate {
        BoundedAggregate::Total => (format!("({})", added.join(" + ")), sum),
        BoundedAggregate::Mean => {
            let count = cells.len() as f64;
            (format!("({}) / {count:?}", added.join(" + ")), sum / count)
        }
    };
    let condition = match bound.sign() {
        Some(sign) => format!("{text} {sign} {:?}", number.value),
        None => format!("abs({text} - {:?}) <= {:?}", number.value, rounding_of(number.value)),
    };
    let holds = is_near(value, number.value) && bound.holds(value, number.value);
    holds.then(|| ProofOrigin::Expression {
        expression: format!("CASE WHEN {condition} THEN 1 ELSE 0 END"),
        value: 1.0,
        cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
    })
}

/// Returns what proves how many rows are beyond a bound that the sentence names.
pub(super) fn count_origin(result: &ProofRows, number: &WrittenNumber, sentence: &str) -> Option<ProofOrigin> {
    let rows: Vec<usize> = (0..result.rows.len()).collect();
    let is_count = number.tolerance <= 0.5 && !number.is_percent && number.value <= rows.len() as f64;
    if !is_count || rows.len() < 2 || rows.len() > MAX_COUNTED {
        return None;
    }
    bounds_in(sentence).iter().filter(|one| one.bound.is_strict()).find_map(|one| {
        columns_of(result, sentence).into_iter().find_map(|column| {
            let (count, origin) = counted(result, column, &rows, one.bound, &one.number, one.unit)?;
            (count as f64 == number.value).then_some(origin)
        })
    })
}

/// Returns a row that a sentence lists beyond a bound, and that is not: of `two stores are above 5: A and B` one with 4.25.
pub(super) fn wrongly_listed(result: &ProofRows, sentence: &str) -> Option<usize> {
    let (before, list) = sentence.split_once(": ")?;
    let bounds: Vec<BoundedNumber> = bounds_in(before).into_iter().filter(|one| one.bound.is_strict()).collect();
    let [one] = bounds.as_slice() else { return None };
    let named = result.labelled(list);
    let are_few = (2..=MAX_COUNTED).contains(&result.rows.len()) && result.rows.len() == result.row_count;
    if !are_few || named.is_empty() || denies(sentence) || !result.labelled(before).is_empty() {
        return None;
    }
    let all: Vec<usize> = (0..result.rows.len()).collect();
    let count = |column: usize, rows: &[usize]| counted(result, column, rows, one.bound, &one.number, one.unit);
    let columns = columns_of(result, before).into_iter().filter(|column| count(*column, &all).is_some());
    let wrong =
        |column: usize| named.iter().copied().find(|row| count(column, &[*row]).is_some_and(|(held, _)| held == 0));
    // Of the columns those that as many are beyond as are listed.
    let columns: Vec<usize> = columns.collect();
    let are_so_many = |column: &usize| count(*column, &all).is_some_and(|(held, _)| held == named.len());
    let meant: Vec<usize> = columns.iter().copied().filter(are_so_many).collect();
    let meant = if meant.is_empty() { columns } else { meant };
    let found: Vec<Option<usize>> = meant.into_iter().map(wrong).collect();
    if found.iter().any(Option::is_none) { None } else { found.first().copied().flatten() }
}

/// Counts the rows of which a bound holds in a column. Returns `None` where the column has values of another order, or of
/// another kind than the unit beside the number.
fn counted(
    result: &ProofRows,
    column: usize,
    rows: &[usize],
    bound: NumberBound,
    number: &WrittenNumber,
    unit: Option<MeasureUnit>,
) -> Option<(usize, ProofOrigin)> {
    // `Revenue_pounds` and `revenue_m` are no masses and lengths.
    let units = unit.zip(unit_at(result, column)).filter(|(unit, of)| unit.is_of_kind(*of) || !unit.is_money());
    if units.is_some_and(|(unit, of_column)| !unit.is_of_kind(of_column)) {
        return None;
    }
    let in_unit = |value: f64| units.map_or(value, |(unit, of_column)| of_column.convert(value, unit));
    let factor = match (number.is_percent, result.share_scale(column)) {
        (true, ShareScale::Fraction) => 100.0,
        (true, ShareScale::Amount) => return None,
        _ => 1.0,
    };
    let cells: Vec<(usize, f64)> = rows
        .iter()
        .filter_map(|row| Some((*row, in_unit(number_of(result.rows.get(*row)?.get(column)?)?) * factor)))
        .collect();
    if !cells.iter().any(|(_, value)| is_near(*value, number.value)) {
        return None;
    }
    let count = cells.iter().filter(|(_, value)| bound.holds(*value, number.value)).count();
    let condition = |value: f64| match bound.sign() {
        Some(sign) => format!("{value:?} {sign} {:?}", number.value),
        None if bound.holds(value, number.value) => {
            format!("abs({value:?} - {:?}) <= {:?}", number.value, rounding_of(number.value))
        }
        None => "false".to_owned(),
    };
    let terms: Vec<String> =
        cells.iter().map(|(_, value)| format!("CASE WHEN {} THEN 1 ELSE 0 END", condition(*value))).collect();
    let origin = ProofOrigin::Expression {
        expression: terms.join(" + "),
        value: count as f64,
        cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
    };
    Some((count, origin))
}

/// Whether a value is of the order of magnitude of a bound; any is of zero.
fn is_near(value: f64, bound: f64) -> bool {
    let (value, bound) = (value.abs(), bound.abs());
    bound == 0.0 || value == bound || (value <= bound * MAGNITUDE && bound <= value * MAGNITUDE)
}

/// Returns the columns of numbers that a sentence may be about.
fn columns_of(result: &ProofRows, sentence: &str) -> Vec<usize> {
    match result.rows.len() {
        1 => (0..result.columns.len()).collect(),
        _ => measured_columns(result, sentence),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn what_only_one_row_is_below_may_be_far_from_it() {
        let endpoints = json!([["/cart", 380], ["/users", 210], ["/export", 9600], ["/health", 11]]);
        let is_doubted = |text: &str| !doubted(&["endpoint", "p99_ms"], endpoints.clone(), text).is_empty();
        assert!(!is_doubted("Only `/health` stays under 200 ms."));
        assert!(is_doubted("Only `/health` stays under 250 ms."));
    }

    #[test]
    fn what_takes_over_so_many_minutes_is_bounded() {
        let routes = json!([["Oban", 46], ["Mallaig", 30], ["Ullapool", 160], ["Brodick", 55], ["Tarbert", 100]]);
        let is_doubted = |text: &str| !doubted(&["route", "crossing_minutes"], routes.clone(), text).is_empty();
        assert!(!is_doubted("Four of the five routes take over 40 minutes."));
        assert!(is_doubted("Three of the five routes take over 40 minutes."));
        assert!(is_doubted("Four of the five routes take over 50 minutes."));
    }
}

//! Rows that a text says to be the most or the least, and are not.

use chrono::NaiveDate;
use serde_json::Value;

use super::bounds::{NumberBound, bound_before};
use super::foreign_extremes::foreign_extreme;
use super::names::words_of;
use super::number_of;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, day_of, find_word, last_words, says, tokens_in};

/// Rows of which the most and the least are known.
const MAX_RANKED: usize = 500;

/// What a word says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Greatest,
    Least,
    /// Either: nobody knows whether the oldest has the greatest value or the least.
    Either,
}

pub(super) const GREATEST: [&str; 17] = [
    "highest",
    "largest",
    "greatest",
    "biggest",
    "longest",
    "busiest",
    "richest",
    "tallest",
    "leads",
    "lead",
    "leading",
    "peak",
    "peaks",
    "peaked",
    "strongest",
    "heaviest",
    "maximum",
];
pub(super) const LEAST: [&str; 10] =
    ["lowest", "smallest", "fewest", "shortest", "cheapest", "quietest", "weakest", "lightest", "minimum", "least"];
const EITHER: [&str; 22] = [
    "finished last",
    "finishes last",
    "came last",
    "comes last",
    "ranks last",
    "in last place",
    "finished first",
    "came first",
    "best",
    "worst",
    "warmest",
    "hottest",
    "coldest",
    "oldest",
    "youngest",
    "fastest",
    "slowest",
    "earliest",
    "latest",
    "newest",
    "closest",
    "farthest",
];
/// Words behind `most` that mean how often something is.
const OFTEN: [&str; 8] = ["common", "frequent", "popular", "visited", "used", "sold", "ordered", "expensive"];
/// Words by which a sentence says something else than that a row is the first.
const OTHERWISE: [&str; 27] = [
    "second", "third", "fourth", "fifth", "2nd", "3rd", "4th", "5th", "next", "among", "not", "than", "except",
    "after", "behind", "unlike", "before", "but", "nor", "neither", "never", "besides", "other", "almost", "nearly",
    "if", "who",
];
/// Returns a clause with the name right behind it, where it has none of its own: `the shortest, Blue Harbour, has 288`.
pub(super) fn with_apposition<'t>(result: &ProofRows, place: TokenPlace<'t>) -> &'t str {
    let clause_end = place.offset + place.clause.len();
    let behind = place.sentence.get(clause_end..).unwrap_or_default();
    let length = behind.find([',', ';']).unwrap_or(behind.len());
    let is_open = place.clause.trim_end().ends_with(',') && result.labelled(place.clause).is_empty();
    let name = behind.get(..length).unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric());
    let is_row_name = |column: &usize| {
        let mut names = result.rows.iter().filter_map(|row| row.get(*column)?.as_str());
        names.any(|own| own.eq_ignore_ascii_case(name))
    };
    match is_open && result.label_columns().iter().any(is_row_name) {
        true => place.sentence.get(place.offset..clause_end + length).unwrap_or(place.clause),
        false => place.clause,
    }
}

/// Returns the row that a clause says is the most or the least, and that is neither in any column it can be about.
pub(super) fn wrong_extreme(result: &ProofRows, place: TokenPlace<'_>) -> Option<usize> {
    let (clause, sentence) = (with_apposition(result, place), place.sentence);
    if result.rows.len() < 2 || result.rows.len() > MAX_RANKED || result.rows.len() < result.row_count {
        return None;
    }
    let [row] = *result.labelled(clause).as_slice() else { return None };
    // A clause ends with the word that begins the next.
    let clause = clause.trim_end();
    let clause = clause.strip_suffix(" but").unwrap_or(clause);
    let says = |word: &str| find_word(clause, word).is_some();
    if OTHERWISE.iter().any(|word| says(word)) || clause.contains("n't") || is_of_what_no_column_has(result, clause) {
        return None;
    }
    // `Peak load exceeded 110 kW on Jan 16` says no most.
    let is_bound = |token: &TextToken| bound_before(clause, token.start).is_some_and(NumberBound::is_strict);
    if says("exceeded") && tokens_in(clause).iter().any(is_bound) {
        return None;
    }
    // `The longest wait` of `avg_wait_min`, whatever else the sentence names.
    let measured = measured_columns(result, "");
    let is_said = |column: &usize| words_of(clause).any(|word| is_of_column(result, *column, &word.to_lowercase()));
    let said: Vec<usize> = measured.iter().copied().filter(is_said).collect();
    let mut columns = if said.is_empty() { measured_columns(result, sentence) } else { said };
    if ["expensive", "cheapest", "priciest", "dearest"].iter().any(|word| says(word)) {
        let is_price = |column: &usize| {
            let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
            ["price", "cost", "fee", "fare"].iter().any(|word| name.contains(word))
        };
        let prices: Vec<usize> = measured.iter().copied().filter(is_price).collect();
        columns = if prices.is_empty() { columns } else { prices };
    }
    let beside = columns_of_number_beside(result, row, clause, &measured);
    columns = if beside.is_empty() { columns } else { beside };
    let extreme = extreme_in(clause, result, &mut columns)?;
    // `The most reliable: only 5 % were late` is of that column.
    if extreme == Extreme::Either {
        let numbers = tokens_in(clause);
        let is_said = |column: &usize| has_number_of(result, row, *column, &numbers);
        let said: Vec<usize> = measured.iter().copied().filter(is_said).collect();
        columns = if said.is_empty() { columns } else { said };
    }
    let group = rows_of_group(result, row, clause);
    let mut is_compared = false;
    for column in columns {
        let numbers: Vec<(usize, f64)> =
            result.numbers(column).into_iter().filter(|(of, _)| group.contains(of)).collect();
        let Some((_, own)) = numbers.iter().find(|(of, _)| *of == row) else { continue };
        let is_greatest = numbers.iter().all(|(_, other)| other <= own);
        let is_least = numbers.iter().all(|(_, other)| other >= own);
        is_compared |= numbers.len() > 1;
        let is_so = match end_of(extreme, result.columns.get(column), clause) {
            Extreme::Greatest => is_greatest,
            Extreme::Least => is_least,
            Extreme::Either => is_greatest || is_least,
        };
        if is_so {
            return None;
        }
    }
    let is_otherwise = is_extreme_by_rate(result, row, clause, extreme, &group)
        || (speaks_of_age(clause) && is_first_or_last_day(result, row, &group));
    (is_compared && !is_otherwise).then_some(row)
}

/// Whether a row is the most or the least by one column for each of another, as a number of the clause says: `the most reliable
/// at 4.2 %` of 62 cancelled of 1,460.
fn is_extreme_by_rate(result: &ProofRows, row: usize, clause: &str, extreme: Extreme, group: &[usize]) -> bool {
    let numbers = tokens_in(clause);
    let is_said = |rate: f64| {
        numbers.iter().any(|token| match &token.kind {
            TextTokenKind::Number(number) => {
                (number.is_percent || number.tolerance < 0.5) && number.stands_for(rate, ShareScale::Fraction)
            }
            _ => false,
        })
    };
    let value = |of: usize, column: usize| number_of(result.rows.get(of)?.get(column)?);
    let rate = |of: usize, part: usize, whole: usize| Some(value(of, part)? / value(of, whole)?);
    let is_extreme = |part: usize, whole: usize| {
        let Some(own) = rate(row, part, whole).filter(|own| is_said(*own)) else { return false };
        let rates: Vec<f64> = group.iter().filter_map(|of| rate(*of, part, whole)).collect();
        let is_greatest = rates.iter().all(|other| *other <= own);
        let is_least = rates.iter().all(|other| *other >= own);
        match extreme {
            Extreme::Greatest => is_greatest,
            Extreme::Least => is_least,
            Extreme::Either => is_greatest || is_least,
        }
    };
    let columns = measured_columns(result, "");
    columns.iter().any(|part| columns.iter().any(|whole| part != whole && is_extreme(*part, *whole)))
}

/// Whether a clause speaks of what is computed of columns: `the biggest relative jump`, `the lowest return rate` of orders and
/// returns, and who was the fastest of two columns of days.
pub(super) fn is_of_what_no_column_has(result: &ProofRows, clause: &str) -> bool {
    const COMPUTED: [&str; 33] = [
        "rate",
        "ratio",
        "share",
        "percentage",
        "proportion",
        "margin",
        "density",
        "relative",
        "jump",
        "increase",
        "decrease",
        "rise",
        "drop",
        "decline",
        "improvement",
        "change",
        "gap",
        "swing",
        "growth",
        "grew",
        "grown",
        "gain",
        "spread",
        "room",
        "turnover",
        "conversion",
        "utilisation",
        "utilization",
        "occupancy",
        "efficiency",
        "spare",
        "reduction",
        "difference",
    ];
    const QUICK: [&str; 6] = ["fastest", "slowest", "quickest", "longest", "shortest", "soonest"];
    let is_called = |word: &str| {
        let has = |name: &String| {
            name.to_lowercase()
                .split('_')
                .any(|part| part.starts_with(word) || word.starts_with(part) && part.len() > 3)
        };
        result.columns.iter().any(has)
    };
    let days = (0..result.columns.len())
        .filter(|column| result.rows.iter().filter_map(|row| row.get(*column)).any(|value| day_of(value).is_some()));
    COMPUTED.iter().any(|word| find_word(clause, word).is_some() && !is_called(word))
        || (says(clause, &QUICK) && days.count() > 1)
}

/// Whether a clause may speak of how long ago something was: `the one that has waited longest`.
fn speaks_of_age(clause: &str) -> bool {
    says(clause, &["longest", "shortest", "oldest", "youngest", "newest", "earliest", "latest"])
}

/// Whether a row has the first or the last day of a column that is no name of its rows.
fn is_first_or_last_day(result: &ProofRows, row: usize, group: &[usize]) -> bool {
    let day_at = |of: usize, column: usize| day_of(result.rows.get(of)?.get(column)?);
    let labels = result.label_columns();
    (1..result.columns.len()).filter(|column| !labels.contains(column)).any(|column| {
        let Some(own) = day_at(row, column) else { return false };
        let days: Vec<NaiveDate> = group.iter().filter_map(|of| day_at(*of, column)).collect();
        days.len() > 1 && (days.iter().all(|day| *day <= own) || days.iter().all(|day| *day >= own))
    })
}

/// Returns the columns in which a row has the number that stands in parentheses behind its name: `highest in April
/// (250)` is of that column.
fn columns_of_number_beside(result: &ProofRows, row: usize, clause: &str, measured: &[usize]) -> Vec<usize> {
    const LINKS: [&str; 4] = ["in", "on", "at", "for"];
    if !clause.contains('(') {
        return Vec::new();
    }
    let Some((start, end)) = result.label_place(row, clause) else { return Vec::new() };
    let before = last_words(&clause[..start], 2);
    let is_linked = before
        .split_once(' ')
        .is_some_and(|(word, link)| LINKS.contains(&link) && (GREATEST.contains(&word) || LEAST.contains(&word)));
    let inside = clause[end..].trim_start().strip_prefix('(').and_then(|rest| rest.split(')').next());
    let Some(inside) = inside.filter(|_| is_linked) else { return Vec::new() };
    let numbers = tokens_in(inside);
    measured.iter().copied().filter(|column| has_number_of(result, row, *column, &numbers)).collect()
}

/// Whether a row has one of the numbers of a text in a column.
fn has_number_of(result: &ProofRows, row: usize, column: usize, tokens: &[TextToken]) -> bool {
    let Some(value) = result.rows.get(row).and_then(|row| row.get(column)) else { return false };
    let scale = result.share_scale(column);
    tokens.iter().any(|token| matches!(token.kind, TextTokenKind::Number(_)) && token.equals(value, scale))
}

/// Returns the rows among which a clause calls one the most: of `the largest in France` those of France; else all.
fn rows_of_group(result: &ProofRows, row: usize, clause: &str) -> Vec<usize> {
    let value = |of: usize, column: usize| result.rows.get(of).and_then(|row| row.get(column));
    let rows = || 0..result.rows.len();
    let is_said = |column: &usize| match value(row, *column) {
        Some(Value::String(group)) if group.len() > 1 => find_word(clause, group)
            .is_some_and(|at| ["in", "of", "among", "within"].contains(&last_words(&clause[..at], 1).as_str())),
        Some(Value::Bool(true)) => {
            let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
            find_word(clause, &name.trim_start_matches("is_").replace('_', " ")).is_some()
        }
        _ => false,
    };
    let is_shared = |column: &usize| rows().filter(|of| value(*of, *column) == value(row, *column)).count() > 1;
    let said: Vec<usize> = (0..result.columns.len()).filter(is_said).filter(is_shared).collect();
    rows().filter(|of| said.iter().all(|column| value(*of, *column) == value(row, *column))).collect()
}

/// Returns which end is meant by a word that may mean either, where a column's name tells.
fn end_of(extreme: Extreme, column: Option<&String>, clause: &str) -> Extreme {
    /// Parts of a column's name, words for its greatest values, and for its least.
    type EndWords = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);
    const ENDS: [EndWords; 6] = [
        (&["temp", "temperature", "tmax", "tmin", "tavg"], &["warmest", "hottest"], &["coldest"]),
        (&["age"], &["oldest"], &["youngest"]),
        (&["born", "birth", "founded", "built", "opened"], &["youngest", "newest", "latest"], &["oldest", "earliest"]),
        (&["speed", "kmh", "kph", "mph"], &["fastest"], &["slowest"]),
        (&["seconds", "secs", "sec", "duration"], &["slowest"], &["fastest"]),
        (&["distance"], &["farthest"], &["closest"]),
    ];
    if extreme != Extreme::Either {
        return extreme;
    }
    let name = column.map(|name| name.to_lowercase()).unwrap_or_default();
    let is_called = |parts: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|part| parts.contains(&part));
    let told = ENDS.iter().filter(|(parts, _, _)| is_called(parts)).find_map(|(_, greatest, least)| {
        match (says(clause, greatest), says(clause, least)) {
            (true, false) => Some(Extreme::Greatest),
            (false, true) => Some(Extreme::Least),
            _ => None,
        }
    });
    told.unwrap_or(extreme)
}

/// Returns which extreme a clause speaks of; of `the most orders` only the column of orders is left.
fn extreme_in(clause: &str, result: &ProofRows, columns: &mut Vec<usize>) -> Option<Extreme> {
    let says = |words: &[&str]| says(clause, words);
    if let Some(at) = find_word(clause, "most").filter(|at| last_words(&clause[..*at], 1) != "at") {
        let behind = clause[at + "most".len()..].split_whitespace().next().unwrap_or_default();
        let next = behind.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let named: Vec<usize> = columns.iter().copied().filter(|column| is_of_column(result, *column, &next)).collect();
        if !named.is_empty() {
            *columns = named;
            return Some(Extreme::Greatest);
        }
        return match next.as_str() {
            "of" | "" => None,
            often if OFTEN.contains(&often) => Some(Extreme::Greatest),
            _ => Some(Extreme::Either),
        };
    }
    match (says(&GREATEST), says(&LEAST), says(&EITHER)) {
        (true, false, false) => Some(Extreme::Greatest),
        (false, true, false) if !clause.to_lowercase().contains("at least") => Some(Extreme::Least),
        (false, false, true) => Some(Extreme::Either),
        (false, false, false) => foreign_extreme(clause),
        _ => None,
    }
}

fn is_of_column(result: &ProofRows, column: usize, word: &str) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    word.len() > 2 && name.split('_').any(|part| part.trim_end_matches('s') == word.trim_end_matches('s'))
}

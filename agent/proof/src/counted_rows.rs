//! How many rows have changed from one year's column to the next, `three museums grew`, and how many are of a time, `four of the
//! plants have been built since 2018`.

use chrono::Datelike;
use serde_json::Value;

use super::bounds::{NumberBound, bound_before};
use super::claims::is_exact;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, WrittenNumber, day_of, last_words, says, tokens_in};
use super::units::unit_beside;
use super::{ProofOrigin, number_of};

/// Words of a change upwards, of one downwards, and of none.
const UP: [&str; 9] = ["grew", "grown", "rose", "risen", "increased", "gained", "improved", "climbed", "up"];
const DOWN: [&str; 10] =
    ["fell", "fallen", "declined", "dropped", "decreased", "lost", "shrank", "shrunk", "worsened", "down"];
const SAME: [&str; 4] = ["flat", "unchanged", "stable", "same"];
/// Parts of the names of columns that hold a change.
const CHANGES: [&str; 5] = ["change", "growth", "delta", "diff", "difference"];

/// Returns what proves a number of rows that have changed, or that are of a time.
pub(super) fn counted_rows_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    if !is_exact(number) || result.rows.len() < 2 {
        return None;
    }
    let rows = |(column, rows): (usize, Vec<usize>)| {
        (rows.len() as f64 == number.value && !rows.is_empty()).then(|| result.origin_of_count(&rows, column))
    };
    changed_rows(result, token, place).and_then(rows).or_else(|| {
        let is_after = year_condition(place.sentence)?;
        (0..result.columns.len()).find_map(|column| rows((column, rows_of_years(result, column, &is_after)?)))
    })
}

/// Returns what proves how many rows a clause names by what they share, `eight builds ran on September 16`, `four failed` of a
/// column of outcomes, and of how many things there are rows, `the five lines`.
pub(super) fn group_count_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    const MOST_ROWS: usize = 100;
    let rows = 2..=MOST_ROWS;
    if !is_exact(number) || !rows.contains(&result.rows.len()) || result.rows.len() < result.row_count {
        return None;
    }
    let behind = place.clause.get(token.end..)?.trim_start();
    let is_so =
        |rows: &Vec<usize>| !rows.is_empty() && rows.len() < result.rows.len() && rows.len() as f64 == number.value;
    // `The main branch was built 5 times, with 4 successes`.
    let named = result.labelled(place.sentence);
    let of_named = |(column, rows): (usize, Vec<usize>)| {
        let rows: Vec<usize> = rows.into_iter().filter(|row| named.contains(row)).collect();
        is_so(&rows).then_some((column, rows))
    };
    let of_outcome = rows_of_outcome(result, behind);
    let of_outcome = of_outcome.clone().filter(|(_, rows)| is_so(rows)).or_else(|| of_outcome.and_then(of_named));
    let of_day = || {
        // `Eight builds ran on September 16 and five on September 17`.
        let next = tokens_in(behind).into_iter().find(|one| matches!(one.kind, TextTokenKind::Number(_)));
        let rows = result.labelled(behind.get(..next.map_or(behind.len(), |one| one.start)).unwrap_or(behind));
        let is_of_group = is_so(&rows) && rows.len() > 1 && unit_beside(token, place.clause).is_none();
        is_of_group.then(|| (result.column_of_times().unwrap_or_default(), rows))
    };
    let of_things = || {
        let word = behind.split(|c: char| !c.is_alphanumeric()).next()?.to_lowercase();
        let times = result.column_of_times();
        let column = result.label_columns().iter().copied().chain(times).find(|column| {
            let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
            let one = word.trim_end_matches('s');
            let is_of_noun = |part: &str| part.trim_end_matches('s') == one || format!("{part}es") == word;
            word.len() > 3 && name.split('_').any(is_of_noun)
        })?;
        let mut seen: Vec<&Value> = Vec::new();
        let first = (0..result.rows.len()).filter(|row| {
            let value = result.rows.get(*row).and_then(|row| row.get(column));
            let is_new = value.is_some_and(|value| !value.is_null() && !seen.contains(&value));
            seen.extend(value.filter(|_| is_new));
            is_new
        });
        let rows: Vec<usize> = first.collect();
        // As many as there are rows are those.
        let is_so = rows.len() as f64 == number.value && rows.len() < result.rows.len();
        is_so.then_some((column, rows))
    };
    let (column, rows) = of_outcome.or_else(of_day).or_else(of_things)?;
    Some(result.origin_of_count(&rows, column))
}

/// Returns the rows whose outcome is the first that a text says, in whichever form: those of `success` of `succeeded`.
fn rows_of_outcome(result: &ProofRows, text: &str) -> Option<(usize, Vec<usize>)> {
    const OUTCOMES: [&str; 8] = ["status", "state", "outcome", "result", "stage", "verdict", "decision", "type"];
    const STEM: usize = 4;
    const NEAR: usize = 6;
    let stem = |word: &str| word.get(..STEM).map(str::to_lowercase);
    let column =
        result.columns.iter().position(|name| name.to_lowercase().split('_').any(|part| OUTCOMES.contains(&part)))?;
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(NEAR);
    words.find_map(|word| {
        let wanted = stem(word)?;
        let is_of = |row: &usize| {
            let outcome = result.rows.get(*row).and_then(|row| row.get(column)?.as_str());
            outcome.and_then(stem).is_some_and(|own| own == wanted)
        };
        let rows: Vec<usize> = (0..result.rows.len()).filter(is_of).collect();
        (!rows.is_empty()).then_some((column, rows))
    })
}

/// Whether a number counts the rows of which the words behind it say a bound: `four wards have an average stay above 6 days`.
pub(super) fn counts_what_is_bounded(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> bool {
    const BEFORE: [&str; 5] = ["", "only", "and", "but", "just"];
    let Some(behind) = place.clause.get(token.end..) else { return false };
    let noun = behind.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let begins = BEFORE.contains(&last_words(&place.clause[..token.start], 1).as_str());
    let is_bounded = tokens_in(behind).iter().any(|one| {
        matches!(one.kind, TextTokenKind::Number(_))
            && bound_before(behind, one.start).is_some_and(NumberBound::is_strict)
    });
    is_exact(number)
        && number.value <= result.rows.len() as f64
        && noun.len() > 2
        && noun.ends_with('s')
        && begins
        && is_bounded
        && unit_beside(token, place.clause).is_none()
        && result.column_behind(token, place.clause).is_none()
}

/// Returns the rows that have changed as the words behind a number say, and the column that says so.
fn changed_rows(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<(usize, Vec<usize>)> {
    let behind = place.clause.get(token.end..)?;
    // `Three grew by more than 5 %` are some of those that grew.
    let is_amount = |one: &TextToken| matches!(one.kind, TextTokenKind::Number(_)) && one.text.len() != "2018".len();
    if tokens_in(behind).iter().any(is_amount) {
        return None;
    }
    let is_so: fn(f64) -> bool = match (says(behind, &UP), says(behind, &DOWN), says(behind, &SAME)) {
        (true, false, false) => |change| change > 0.0,
        (false, true, false) => |change| change < 0.0,
        (false, false, true) => |change| change == 0.0,
        _ => return None,
    };
    let value = |row: usize, column: usize| number_of(result.rows.get(row)?.get(column)?);
    let (column, base) = changing_column(result)?;
    let change = |row: usize| Some(value(row, column)? - base.map_or(Some(0.0), |base| value(row, base))?);
    Some((column, (0..result.rows.len()).filter(|row| change(*row).is_some_and(is_so)).collect()))
}

/// Returns the only column of changes, or of a later year, and in that case the one of the year before it.
pub(super) fn changing_column(result: &ProofRows) -> Option<(usize, Option<usize>)> {
    let names: Vec<String> = result.columns.iter().map(|name| name.to_lowercase()).collect();
    let mut changes = (0..names.len()).filter(|column| names[*column].split('_').any(|part| CHANGES.contains(&part)));
    if let Some(column) = changes.next() {
        return changes.next().is_none().then_some((column, None));
    }
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let year: u32 = name.get(stem.len()..)?.parse().ok()?;
        (!stem.is_empty()).then(|| (stem.to_owned(), year))
    };
    let years: Vec<(usize, (String, u32))> =
        names.iter().enumerate().filter_map(|(column, name)| Some((column, split(name)?))).collect();
    let [(first, (stem, year)), (second, (other_stem, other_year))] = years.as_slice() else { return None };
    let are_two = stem == other_stem && year != other_year;
    are_two.then_some(if year < other_year { (*second, Some(*first)) } else { (*first, Some(*second)) })
}

/// Returns what a sentence says of years: `since 2018`.
fn year_condition(sentence: &str) -> Option<impl Fn(i32) -> bool> {
    tokens_in(sentence).iter().find_map(|token| {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let is_year = token.text.len() == 4 && number.value.fract() == 0.0;
        let year = number.value as i32;
        let (from, to) = match last_words(&sentence[..token.start], 1).as_str() {
            "since" => (year, i32::MAX),
            "after" => (year.saturating_add(1), i32::MAX),
            "before" => (i32::MIN, year.saturating_sub(1)),
            _ => return None,
        };
        is_year.then_some(move |of_row: i32| (from..=to).contains(&of_row))
    })
}

/// Returns the rows whose year in a column is as it is said; `None` where the column has other values than years and days.
fn rows_of_years(result: &ProofRows, column: usize, is_said: &impl Fn(i32) -> bool) -> Option<Vec<usize>> {
    let year_of = |value: &Value| match day_of(value) {
        Some(day) => Some(day.year()),
        None => number_of(value).filter(|year| (1700.0..2200.0).contains(year)).map(|year| year as i32),
    };
    let years: Vec<i32> = result.rows.iter().map(|row| year_of(row.get(column)?)).collect::<Option<_>>()?;
    Some((0..years.len()).filter(|row| is_said(years[*row])).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn rows_that_have_grown_are_counted() {
        let museums = json!([
            ["Maritime", 184_200, 197_100],
            ["Glass", 96_500, 88_780],
            ["Textile", 41_300, 45_430],
            ["Puppet", 18_900, 24_570],
            ["Salt", 33_600, 30_240],
        ]);
        let columns = ["museum", "visitors_2024", "visitors_2025"];
        let is_doubted = |text: &str| !doubted(&columns, museums.clone(), text).is_empty();
        assert!(!is_doubted("Three museums grew."));
        assert!(is_doubted("Four museums grew."));
    }

    #[test]
    fn rows_since_a_year_are_counted() {
        let plants = json!([
            ["Ravenhill", 840, 2009],
            ["Sker Point", 310, 2018],
            ["Tolland", 1200, 1988],
            ["Highmoor", 150, 2021],
            ["Coldbeck", 60, 2022],
        ]);
        let columns = ["plant", "capacity_mw", "commissioned"];
        let is_doubted = |text: &str| !doubted(&columns, plants.clone(), text).is_empty();
        assert!(!is_doubted("Three plants were commissioned since 2018."));
        assert!(is_doubted("Four plants were commissioned since 2018."));
    }
}

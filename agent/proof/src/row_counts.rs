//! How many rows have a value where others have none, `five lines` with a number of incidents; how many have something at all, `it
//! rained on three days`, or nothing, `four dry days`; how many are below another of their columns, `four products are below their
//! reorder point`; how many each of several has, `Tom and Ivan had three each`; and years before or after which rows are.

use chrono::Datelike;
use serde_json::Value;

use super::claims::is_exact;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, day_of, find_word, last_words, says};
use super::{ProofOrigin, number_of};

/// Rows that are counted.
const MAX_ROWS: usize = 100;
/// Letters of a part of a column's name that says it.
const SHORTEST: usize = 4;

/// See the module.
pub(super) fn row_count_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole || !is_exact(number) {
        return None;
    }
    if let Some(rows) = rows_of_year_bound(result, token, place) {
        return Some(rows);
    }
    let is_count = |rows: &Vec<usize>| !rows.is_empty() && rows.len() as f64 == number.value;
    let counted = |(column, rows): (usize, Vec<usize>)| is_count(&rows).then(|| result.origin_of_count(&rows, column));
    let behind = place.clause.get(token.end..).unwrap_or_default();
    let is_of_noun = behind.trim_start().starts_with(char::is_alphabetic);
    // `Jobs had 2 errors` is of its row, not of the rows that have some.
    let named = result.labelled(place.clause).len();
    let is_of_rows = named == 0 || named as f64 == number.value;
    if number.value < 2.0 || !is_of_noun || !is_of_rows {
        return None;
    }
    rows_with_value(result)
        .into_iter()
        .chain(rows_with_some(result, place.sentence))
        .chain(rows_beside_column(result, place.sentence))
        .find_map(counted)
        .or_else(|| each_of_several(result, behind, place).find_map(counted))
}

/// Returns, of each column that lacks some values, the rows that have one.
fn rows_with_value(result: &ProofRows) -> Vec<(usize, Vec<usize>)> {
    let with_value = |column: usize| -> Vec<usize> {
        let cells = result.rows.iter().enumerate();
        cells.filter(|(_, row)| row.get(column).is_some_and(|value| !value.is_null())).map(|(row, _)| row).collect()
    };
    let found = (0..result.columns.len()).map(|column| (column, with_value(column)));
    found.filter(|(_, rows)| rows.len() < result.rows.len()).collect()
}

/// Returns the parts of a column's name that are long enough to be words.
fn parts_of_name(result: &ProofRows, column: usize) -> Vec<String> {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    name.split('_').filter(|part| part.len() >= SHORTEST).map(str::to_owned).collect()
}

/// Returns the rows above zero of a column that a sentence speaks of, and those at zero where it speaks of nothing.
fn rows_with_some(result: &ProofRows, sentence: &str) -> Vec<(usize, Vec<usize>)> {
    const NOTHING: [&str; 9] = ["no", "without", "zero", "dry", "none", "never", "empty", "not", "out of stock"];
    let lower = sentence.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let is_of_nothing = says(sentence, &NOTHING);
    let mut found = Vec::new();
    for column in measured_columns(result, "") {
        let cells = result.numbers(column);
        let rows = |is_zero: bool| -> Vec<usize> {
            cells.iter().filter(|(_, value)| (*value == 0.0) == is_zero).map(|(row, _)| *row).collect()
        };
        let (zeros, others) = (rows(true), rows(false));
        if zeros.is_empty() || others.is_empty() || cells.iter().any(|(_, value)| *value < 0.0) {
            continue;
        }
        let is_said = parts_of_name(result, column).iter().any(|part| words.iter().any(|word| word.starts_with(part)));
        if is_said && !is_of_nothing {
            found.push((column, others));
        } else if is_of_nothing {
            found.push((column, zeros));
        }
    }
    found
}

/// Returns the rows that are below, or above, a column which a sentence says: `below their reorder point`.
fn rows_beside_column(result: &ProofRows, sentence: &str) -> Vec<(usize, Vec<usize>)> {
    const BELOW: [&str; 4] = ["below", "under", "short of", "fewer than"];
    const ABOVE: [&str; 5] = ["above", "over", "exceed", "exceeds", "exceeded"];
    const OWN: [&str; 3] = ["their", "its", "the"];
    let find = |words: &[&str]| words.iter().find_map(|word| find_word(sentence, word).map(|at| at + word.len()));
    let (at, is_below) = match (find(&BELOW), find(&ABOVE)) {
        (Some(at), None) => (at, true),
        (None, Some(at)) => (at, false),
        _ => return Vec::new(),
    };
    let Some(behind) = sentence.get(at..).map(str::trim_start) else { return Vec::new() };
    let Some(of_own) = OWN.iter().find_map(|word| behind.strip_prefix(word)?.strip_prefix(' ')) else {
        return Vec::new();
    };
    let word = of_own.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let columns = measured_columns(result, "");
    let is_said = |column: &usize| word.len() >= SHORTEST && parts_of_name(result, *column).contains(&word);
    let Some(bound) = columns.iter().copied().find(is_said) else { return Vec::new() };
    let value = |row: usize, column: usize| number_of(result.rows.get(row)?.get(column)?);
    let is_beyond = |row: usize, column: usize| {
        let pair = value(row, column).zip(value(row, bound));
        pair.is_some_and(|(own, bound)| if is_below { own < bound } else { own > bound })
    };
    let rows = |column: usize| (0..result.rows.len()).filter(|row| is_beyond(*row, column)).collect();
    columns.into_iter().filter(|column| *column != bound).map(|column| (column, rows(column))).collect()
}

/// Returns the rows of one of the names that a statement says, where each of them has as many: `Tom and Ivan handled three each`.
fn each_of_several<'r>(
    result: &'r ProofRows,
    behind: &str,
    place: TokenPlace<'_>,
) -> impl Iterator<Item = (usize, Vec<usize>)> + 'r {
    const NEAR: usize = 3;
    let near = behind.split_whitespace().take(NEAR).collect::<Vec<_>>().join(" ");
    let is_each = says(&near, &["each", "apiece"]);
    let statement = place.statement().to_owned();
    let columns = result.label_columns().iter().copied().filter(move |_| is_each);
    columns.filter_map(move |column| {
        let name = |row: usize| result.rows.get(row)?.get(column)?.as_str();
        let is_said = |row: &usize| name(*row).is_some_and(|name| find_word(&statement, name).is_some());
        let said: Vec<usize> = (0..result.rows.len()).filter(is_said).collect();
        let rows_of = |of: usize| -> Vec<usize> { said.iter().copied().filter(|row| name(*row) == name(of)).collect() };
        let first = rows_of(*said.first()?);
        said.iter().all(|row| rows_of(*row).len() == first.len()).then_some((column, first))
    })
}

/// Returns what proves the year of `hired before 2019` where rows have days: those that are so.
fn rows_of_year_bound(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let year: i32 = token.text.parse().ok().filter(|_| token.text.len() == "2019".len())?;
    let word = last_words(place.clause.get(..token.start)?, 1);
    let is_so: fn(i32, i32) -> bool = match word.as_str() {
        "before" => |own, year| own < year,
        "after" => |own, year| own > year,
        "since" => |own, year| own >= year,
        _ => return None,
    };
    let year_at = |row: &Vec<Value>, column: usize| Some(day_of(row.get(column)?)?.year());
    (0..result.columns.len()).find_map(|column| {
        let years: Vec<(usize, i32)> =
            result.rows.iter().enumerate().filter_map(|(row, values)| Some((row, year_at(values, column)?))).collect();
        let rows: Vec<usize> = years.iter().filter(|(_, own)| is_so(*own, year)).map(|(row, _)| *row).collect();
        (!rows.is_empty() && rows.len() < years.len()).then(|| result.origin_of_count(&rows, column))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn rows_with_something_and_with_nothing_are_counted() {
        let days = json!([
            ["2024-07-01", 21.4, 0.0],
            ["2024-07-02", 23.9, 0.0],
            ["2024-07-03", 26.1, 1.2],
            ["2024-07-04", 19.8, 14.6],
            ["2024-07-05", 18.2, 8.3],
            ["2024-07-06", 20.7, 0.0],
            ["2024-07-07", 24.6, 0.0],
        ]);
        let of_days = |text: &str| doubted(&["day", "mean_temp", "rain_mm"], days.clone(), text);
        for text in ["It rained on three of the seven days.", "There were four dry days."] {
            assert_eq!(of_days(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(of_days("It rained on five of the seven days."), ["five"]);
        assert_eq!(of_days("There were five dry days."), ["five"]);
    }

    #[test]
    fn rows_below_another_column_are_counted() {
        let stock = json!([["Kettle", 214, 80], ["Toaster", 62, 75], ["Blender", 18, 40], ["Mixer", 0, 30]]);
        let of_stock = |text: &str| doubted(&["product", "on_hand", "reorder_point"], stock.clone(), text);
        assert_eq!(of_stock("Three products are below their reorder point."), Vec::<String>::new());
        assert_eq!(of_stock("Two products are below their reorder point."), ["Two"]);
    }

    #[test]
    fn years_bound_days() {
        let staff =
            json!([["Ada", "2016-03-14"], ["Ben", "2019-11-04"], ["Carla", "2021-06-21"], ["Deniz", "2018-01-08"]]);
        let of_staff = |text: &str| doubted(&["name", "hired"], staff.clone(), text);
        assert_eq!(of_staff("Two people were hired before 2019: Ada and Deniz."), Vec::<String>::new());
        assert_eq!(of_staff("Three people were hired before 2019."), ["Three"]);
    }
}

//! What a sentence takes from the right row and the wrong place: two numbers of each other's columns, a month that is not the row's.

use chrono::{Datelike, NaiveDate};

use super::claims::has_word;
use super::clauses;
use super::contradictions::{is_day_or_year, number};
use super::names::NamePlace;
use super::rows::ProofRows;
use super::tokens::{TextToken, day_of, says, tokens_in};

/// The longest sentence that is looked at, in bytes: each of its numbers looks at what is behind it.
const LONGEST: usize = 1_000;

/// Finds `298 adults and 312 children` of a row with 312 and 298: each number is the other's.
pub(super) fn swapped_columns(result: &ProofRows, sentence: &str, tokens: &[TextToken]) -> Vec<NamePlace> {
    if sentence.len() > LONGEST {
        return Vec::new();
    }
    let column_of = |token: &TextToken| {
        let behind = sentence.get(token.end..)?.trim_start().to_lowercase();
        let is_called = |column: &usize| {
            let name =
                result.columns.get(*column).map(|name| name.to_lowercase().replace('_', " ")).unwrap_or_default();
            let rest = behind.strip_prefix(name.as_str()).filter(|_| !name.is_empty());
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        (0..result.columns.len()).find(is_called)
    };
    let numbers = tokens.iter().filter(|token| number(token).is_some());
    let said: Vec<(&TextToken, usize)> = numbers.filter_map(|token| Some((token, column_of(token)?))).collect();
    let named = result.labelled(sentence);
    let rows: Vec<usize> = if named.is_empty() { (0..result.rows.len()).collect() } else { named };
    let holds = |token: &TextToken, row: usize, column: usize| {
        let value = result.rows.get(row).and_then(|row| row.get(column));
        value.is_some_and(|value| token.equals(value, result.share_scale(column)))
    };
    let mut wrong = Vec::new();
    for pair in said.windows(2) {
        let [(one, of_one), (other, of_other)] = *pair else { continue };
        let is_right = |row: &usize| holds(one, *row, of_one) && holds(other, *row, of_other);
        let is_swapped = |row: &usize| holds(one, *row, of_other) && holds(other, *row, of_one);
        if of_one != of_other && rows.iter().any(is_swapped) && !rows.iter().any(is_right) {
            wrong.extend([(one.start, one.end), (other.start, other.end)]);
        }
    }
    wrong
}

/// Finds `Leeds opened in June`, where the only day of that row is of another month.
pub(super) fn wrong_month(result: &ProofRows, sentence: &str) -> Vec<NamePlace> {
    const OTHERWISE: [&str; 8] = ["not", "than", "before", "after", "until", "from", "to", "between"];
    let is_of_days = |column: &usize| {
        let values = result.rows.iter().filter_map(|row| row.get(*column));
        let mut values = values.filter(|value| !value.is_null()).peekable();
        values.peek().is_some() && values.all(|value| day_of(value).is_some())
    };
    let days: Vec<usize> = (0..result.columns.len()).filter(is_of_days).collect();
    let [column] = *days.as_slice() else { return Vec::new() };
    let mut wrong = Vec::new();
    for (clause, offset) in clauses(sentence) {
        let row = match (result.rows.len(), result.labelled(clause).as_slice()) {
            (1, _) => 0,
            (_, [row]) => *row,
            _ => continue,
        };
        let day = result.rows.get(row).and_then(|row| row.get(column)).and_then(day_of);
        let is_otherwise =
            says(clause, &OTHERWISE) || clause.contains("n't") || tokens_in(clause).iter().any(is_day_or_year);
        let Some(day) = day.filter(|_| !is_otherwise) else { continue };
        for first in (1..=12).filter_map(|month| NaiveDate::from_ymd_opt(2000, month, 1)) {
            let name = first.format("%B").to_string();
            let place = clause.find(&format!("in {name}")).map(|at| at + "in ".len());
            let Some(at) = place.filter(|_| has_word(clause, &name)) else { continue };
            // The month that the query asks by.
            let is_asked = result.query_text.contains(&first.format("-%m").to_string());
            if first.month() != day.month() && !is_asked {
                wrong.push((offset + at, offset + at + name.len()));
            }
        }
    }
    wrong
}

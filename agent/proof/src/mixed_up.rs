//! What a sentence takes from the right row and the wrong place: two numbers of each other's columns, a month that is
//! not the row's; and the number of another month.

use chrono::{Datelike, NaiveDate};

use super::claims::has_word;
use super::clauses;
use super::contradictions::{is_day_or_year, number};
use super::dates::month_of;
use super::names::NamePlace;
use super::rows::ProofRows;
use super::tokens::{TextToken, day_of, last_words, says, tokens_in};

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
pub(super) fn wrong_month(result: &ProofRows, column: usize, sentence: &str) -> Vec<NamePlace> {
    const OTHERWISE: [&str; 8] = ["not", "than", "before", "after", "until", "from", "to", "between"];
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

/// Finds `from 250 in January to 412.5 in April`, and `250 (Jan)`: numbers right before a month of which there is one
/// row, that another row has and this one has not.
pub(super) fn numbers_of_other_months(
    result: &ProofRows,
    days: usize,
    sentence: &str,
    tokens: &[TextToken],
) -> Vec<NamePlace> {
    if sentence.len() > LONGEST {
        return Vec::new();
    }
    let day_of_row = |row: usize| result.rows.get(row).and_then(|values| values.get(days)).and_then(day_of);
    let mut wrong = Vec::new();
    for token in tokens.iter().filter(|token| number(token).is_some() && !token.is_percent()) {
        let Some((month, year)) = month_behind(&sentence[token.end..]) else { continue };
        if is_of_change(&sentence[..token.start]) {
            continue;
        }
        let is_of_month = |row: &usize| {
            day_of_row(*row).is_some_and(|day| day.month() == month && year.is_none_or(|year| day.year() == year))
        };
        let mut rows = (0..result.rows.len()).filter(is_of_month);
        let (Some(own), None) = (rows.next(), rows.next()) else { continue };
        let equal: Vec<usize> = result
            .cells()
            .filter(|(_, column, value)| *column != days && token.equals(value, result.share_scale(*column)))
            .map(|(row, _, _)| row)
            .collect();
        if !equal.is_empty() && !equal.contains(&own) {
            wrong.push((token.start, token.end));
        }
    }
    wrong
}

/// Returns the month, and its year where it has one, that stands right behind a number, or behind its unit: ` in
/// January`, ` MWh in April 2025`, ` (Jan)`. `None` of `in January and February`.
fn month_behind(behind: &str) -> Option<(u32, Option<i32>)> {
    const LINKS: [&str; 4] = ["in", "im", "en", "em"];
    let words: Vec<&str> = behind.split_whitespace().take(6).collect();
    let first = words.first()?;
    if let Some(name) = first.strip_prefix('(') {
        let inside = name.split_once(')').map(|(inside, _)| inside)?;
        return Some((month_of(inside)?, None));
    }
    // A mark ends what the number is of.
    let is_word = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "/²³€$£°".contains(c));
    let link = words.iter().take(2).take_while(|word| is_word(word)).position(|word| LINKS.contains(word))?;
    let name = words.get(link + 1)?;
    let month = month_of(name)?;
    let year = words.get(link + 2).map(|word| word.trim_end_matches(|c: char| !c.is_ascii_digit()));
    let year = year.filter(|word| word.len() == 4).and_then(|word| word.parse().ok());
    let others = words.get(link + 2..).unwrap_or_default();
    let is_alone = !others.iter().take(2).any(|word| month_of(word).is_some());
    is_alone.then_some((month, year))
}

/// Whether the words before a number make it a change, or of several rows: `rose by 12`, `a total of`.
fn is_of_change(before: &str) -> bool {
    const CHANGES: [&str; 16] = [
        "by", "um", "up", "down", "another", "rose", "fell", "grew", "dropped", "added", "gained", "lost", "plus",
        "minus", "average", "total",
    ];
    before.ends_with(['+', '-', '−', '±']) || CHANGES.contains(&last_words(before, 1).as_str())
}

/// Returns the only column of days of a result.
pub(super) fn only_column_of_days(result: &ProofRows) -> Option<usize> {
    let is_of_days = |column: &usize| {
        let values = result.rows.iter().filter_map(|row| row.get(*column));
        let mut values = values.filter(|value| !value.is_null()).peekable();
        values.peek().is_some() && values.all(|value| day_of(value).is_some())
    };
    let mut days = (0..result.columns.len()).filter(is_of_days);
    days.next().filter(|_| days.next().is_none())
}

//! Sentences that contradict themselves or the rows although each of their numbers and dates is a cell's: `rose from 5 to 3`,
//! `more receipts (298 against 386)`, `the highest revenue, $578,400` where another row has more, `the last was on 3 October`
//! where another is later. Only what the words beside the number say is judged.

use chrono::Datelike;
use serde_json::Value;

use super::bounds::{NumberBound, bound_before};
use super::column_comparisons::wrongly_compared_columns;
use super::extremes::{GREATEST, LEAST, is_of_what_no_column_has};
use super::mixed_up::{numbers_of_other_months, only_column_of_days, swapped_columns, wrong_month};
use super::names::NamePlace;
use super::number_of;
use super::rows::ProofRows;
use super::tokens::{TextToken, TextTokenKind, day_of, find_word, last_words, says, tokens_in};
use super::units::is_unit_called;

/// Rows that are compared.
const MAX_ROWS: usize = 500;
/// Marks between a number and what is said of it.
const MARKS: [char; 10] = ['$', '€', '£', '¥', '₹', '(', ':', ',', '*', ' '];

/// Returns the numbers and dates of a sentence that contradict what it says of them, by the rows that it is about; `others` are those
/// of all queries, which may hold a day together with its number.
pub(super) fn contradicted(result: &ProofRows, others: &[ProofRows], sentence: &str) -> Vec<NamePlace> {
    let tokens = tokens_in(sentence);
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    let mut found: Vec<NamePlace> = wrong_change(sentence, &tokens).into_iter().collect();
    found.extend(wrong_versus(sentence, &tokens));
    if result.rows.len() == result.row_count && result.rows.len() <= MAX_ROWS {
        found.extend(swapped_columns(result, sentence, &tokens));
        found.extend(wrongly_compared_columns(result, sentence));
        if let Some(days) = only_column_of_days(result) {
            found.extend(wrong_month(result, days, sentence));
            found.extend(numbers_of_other_months(result, days, sentence, &tokens));
        }
    }
    if is_whole {
        found.extend(wrong_superlative(result, sentence, &tokens));
        found.extend(wrong_first_or_last(result, sentence, &tokens));
        found.extend(wrong_day(result, others, sentence, &tokens));
    }
    found
}

/// Returns a token's number, where it has no sign and is no year.
pub(super) fn number(token: &TextToken) -> Option<f64> {
    match &token.kind {
        TextTokenKind::Number(number) if number.value >= 0.0 && !is_day_or_year(token) => Some(number.value),
        _ => None,
    }
}

/// Returns the unit behind a number.
fn unit(sentence: &str, token: &TextToken) -> Option<String> {
    let behind = sentence[token.end..].trim_start().split(|c: char| !c.is_alphanumeric()).next()?;
    Some(behind.to_lowercase()).filter(|word| is_unit_called(word))
}

/// Returns the text before a token, without the marks right before it.
fn text_before<'t>(sentence: &'t str, token: &TextToken) -> &'t str {
    sentence[..token.start].trim_end_matches(MARKS)
}

/// Finds `rose from 5 to 3`, and `fell from 3 to 5`.
fn wrong_change(sentence: &str, tokens: &[TextToken]) -> Option<NamePlace> {
    const UP: [&str; 12] = [
        "rose",
        "risen",
        "rise",
        "rises",
        "grew",
        "grown",
        "increased",
        "increases",
        "climbed",
        "went up",
        "jumped",
        "gained",
    ];
    const DOWN: [&str; 11] = [
        "fell",
        "fallen",
        "falls",
        "dropped",
        "declined",
        "decreased",
        "decreases",
        "shrank",
        "sank",
        "went down",
        "reduced",
    ];
    // Who rises to the third place has a smaller number.
    if says(sentence, &["rank", "ranks", "ranked", "place", "places", "position", "not", "never"]) {
        return None;
    }
    let is_behind = |token: &&TextToken, word: &str| last_words(text_before(sentence, token), 1) == word;
    let from = tokens.iter().find(|token| number(token).is_some() && is_behind(token, "from"))?;
    let to = tokens.iter().find(|token| token.start > from.end && number(token).is_some() && is_behind(token, "to"))?;
    let before = &sentence[..from.start];
    let is_up = match (says(before, &UP), says(before, &DOWN)) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    let (first, last) = (number(from)?, number(to)?);
    let is_of_one_kind = from.is_percent() == to.is_percent()
        && unit(sentence, from).is_none_or(|one| unit(sentence, to).is_none_or(|other| one == other));
    let is_reversed = if is_up { last < first } else { last > first };
    (is_of_one_kind && is_reversed).then_some((to.start, to.end))
}

/// Finds `Hull had more receipts (298 against 386)`.
fn wrong_versus(sentence: &str, tokens: &[TextToken]) -> Option<NamePlace> {
    const AGAINST: [&str; 5] = ["against", "versus", "vs", "compared to", "compared with"];
    const MORE: [&str; 4] = ["more", "higher", "larger", "greater"];
    const LESS: [&str; 4] = ["less", "fewer", "lower", "smaller"];
    /// Words before the first number in which one compares.
    const NEAR: usize = 5;
    tokens.windows(2).find_map(|pair| {
        let [one, other] = pair else { return None };
        let between = sentence.get(one.end..other.start)?.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let before = last_words(text_before(sentence, one), NEAR);
        let is_more = match (says(&before, &MORE), says(&before, &LESS)) {
            (true, false) => true,
            (false, true) => false,
            _ => return None,
        };
        if !AGAINST.contains(&between.as_str()) || before.ends_with("than") || says(&before, &["not", "no", "never"]) {
            return None;
        }
        let (first, second) = (number(one)?, number(other)?);
        let is_reversed = if is_more { first < second } else { first > second };
        (one.is_percent() == other.is_percent() && is_reversed).then_some((one.start, one.end))
    })
}

/// Finds `the highest revenue, $578,400` where the number is a cell of a column in which another row has more.
fn wrong_superlative(result: &ProofRows, sentence: &str, tokens: &[TextToken]) -> Vec<NamePlace> {
    /// Words between `the highest` and its number.
    const NEAR: usize = 3;
    const LINKS: [&str; 5] = ["of", "at", "is", "was", "are"];
    const OTHERWISE: [&str; 8] = ["and", "but", "than", "after", "among", "except", "one", "by"];
    let mut wrong = Vec::new();
    // `In 2023 the highest revenue was 50` is of some rows.
    if tokens.iter().any(is_day_or_year) {
        return wrong;
    }
    for token in tokens.iter().filter(|token| number(token).is_some()) {
        let before = text_before(sentence, token);
        let superlative = |words: &'static [&'static str]| {
            let ends = words.iter().filter(|word| word.ends_with("est"));
            ends.filter_map(|word| Some((before.to_ascii_lowercase().rfind(&format!("the {word} "))?, *word))).max()
        };
        let (at, word, is_greatest) = match (superlative(&GREATEST), superlative(&LEAST)) {
            (Some((at, word)), None) => (at, word, true),
            (None, Some((at, word))) => (at, word, false),
            _ => continue,
        };
        let Some(gap) = sentence.get(at + "the ".len() + word.len()..token.start) else { continue };
        let words = last_words(gap, NEAR + 1);
        let said = gap.trim_end_matches(['$', '€', '£', '*', ' ']);
        // `The smallest of 4 branches` says how many there are.
        let is_word = LINKS.contains(&last_words(said, 1).as_str()) && words != "of";
        let is_linked = is_word || said.ends_with([',', '(', ':']);
        if words.split(' ').count() > NEAR || !is_linked || says(&words, &OTHERWISE) || gap.contains(';') {
            continue;
        }
        let cells = |column: usize| match result.label_columns().contains(&column) {
            true => Vec::new(),
            false => result.numbers(column),
        };
        // `The highest turnover: 21 of 96 people left`.
        if is_of_what_no_column_has(result, gap) {
            continue;
        }
        let is_wrong = || is_no_extreme(result, token, cells, is_greatest, &result.labelled(sentence));
        if !is_of_group(result, sentence) && is_wrong() {
            wrong.push((token.start, token.end));
        }
    }
    wrong
}

/// Finds `the last was North Field, on 3 October` where another row is of a later day, and `the oldest is from 1965`.
fn wrong_first_or_last(result: &ProofRows, sentence: &str, tokens: &[TextToken]) -> Vec<NamePlace> {
    const FIRST: [&str; 3] = ["the first", "the earliest", "the oldest"];
    const LAST: [&str; 5] = ["the last", "the latest", "the newest", "the most recent", "the youngest"];
    /// Words behind `the first` by which it is a part of a time, or none of the rows.
    const OF_TIMES: [&str; 14] = [
        "quarter", "half", "week", "month", "day", "year", "days", "weeks", "months", "years", "time", "place", "of",
        "two",
    ];
    /// Words between `the last` and its day.
    const NEAR: usize = 8;
    let mut wrong = Vec::new();
    let mut from = 0;
    for segment in sentence.split_inclusive("; ") {
        let (begin, end) = (from, from + segment.len());
        from = end;
        let place = |words: &[&str]| words.iter().find_map(|word| Some((find_word(segment, word)?, word.len())));
        let (at, length, is_first) = match (place(&FIRST), place(&LAST)) {
            (Some((at, length)), None) => (at, length, true),
            (None, Some((at, length))) => (at, length, false),
            _ => continue,
        };
        let said: Vec<&TextToken> = tokens
            .iter()
            .filter(|token| token.start >= begin + at && token.end <= end && is_day_or_year(token))
            .collect();
        let [token] = said.as_slice() else { continue };
        let Some(gap) = sentence.get(begin + at + length..token.start) else { continue };
        let next = gap.split_whitespace().next().unwrap_or_default();
        // `The first game of 2019` is one of them.
        let is_told = says(gap, &["is", "was", "were"]) && !OF_TIMES.contains(&next) && !is_of_group(result, segment);
        if !is_told || gap.split_whitespace().count() > NEAR || says(segment, &["not", "than", "but"]) {
            continue;
        }
        let cells = |column: usize| days_of_column(result, column).unwrap_or_default();
        if is_no_extreme(result, token, cells, !is_first, &result.labelled(segment)) {
            wrong.push((token.start, token.end));
        }
    }
    wrong
}

/// Finds the day of `the biggest crowd, 31,250, came on 23 August`, where the rows that have the number are of other days.
fn wrong_day(result: &ProofRows, others: &[ProofRows], sentence: &str, tokens: &[TextToken]) -> Vec<NamePlace> {
    /// Words by which a day and a number may be of two rows.
    const OTHERWISE: [&str; 21] = [
        "than", "before", "after", "since", "until", "till", "from", "to", "between", "not", "but", "and", "by",
        "same", "versus", "against", "while", "like", "average", "total", "both",
    ];
    /// A smaller number is met by chance.
    const LEAST: f64 = 10.0;
    let rows_with = |of: &ProofRows, token: &TextToken| -> Vec<usize> {
        let cells = of.cells().filter(|(_, column, value)| token.equals(value, of.share_scale(*column)));
        cells.map(|(row, _, _)| row).collect()
    };
    let are_together = |of: &ProofRows, day: &TextToken, said: &TextToken| {
        let of_number = rows_with(of, said);
        !of_number.is_empty() && rows_with(of, day).iter().any(|row| of_number.contains(row))
    };
    let mut wrong = Vec::new();
    let mut from = 0;
    for segment in sentence.split_inclusive("; ") {
        let (begin, end) = (from, from + segment.len());
        from = end;
        let of_segment = || tokens.iter().filter(move |token| token.start >= begin && token.end <= end);
        let days: Vec<&TextToken> = of_segment()
            .filter(|token| matches!(token.kind, TextTokenKind::Date(_) | TextTokenKind::YearDay { .. }))
            .collect();
        // `Exceeded 110 kW on Jan 16` is no 110 of that day.
        let is_bound = |token: &TextToken| bound_before(sentence, token.start).is_some_and(NumberBound::is_strict);
        let numbers: Vec<&TextToken> =
            of_segment().filter(|token| number(token).is_some() && !is_bound(token)).collect();
        let ([day], [said]) = (days.as_slice(), numbers.as_slice()) else { continue };
        let (day, said) = (*day, *said);
        if number(said).is_none_or(|value| value < LEAST) || says(segment, &OTHERWISE) || segment.contains("n't") {
            continue;
        }
        let is_known = |token| !rows_with(result, token).is_empty();
        if is_known(day) && is_known(said) && ![result].into_iter().chain(others).any(|of| are_together(of, day, said))
        {
            wrong.push((day.start, day.end));
        }
    }
    wrong
}

/// Whether a text speaks of the one row that it names as of a group: `in History the last was`.
fn is_of_group(result: &ProofRows, text: &str) -> bool {
    let [row] = *result.labelled(text).as_slice() else { return false };
    let before = result.label_place(row, text).map(|(start, _)| last_words(&text[..start], 1));
    before.is_some_and(|word| ["in", "of", "for", "at", "from", "within", "among"].contains(&word.as_str()))
}

/// Whether columns hold what a token says, and it is the greatest, or the least, of none of them: neither of all rows nor of
/// the several that are named.
fn is_no_extreme(
    result: &ProofRows,
    token: &TextToken,
    cells_of: impl Fn(usize) -> Vec<(usize, f64)>,
    is_greatest: bool,
    named: &[usize],
) -> bool {
    let mut is_said_of_any = false;
    for column in 0..result.columns.len() {
        let cells = cells_of(column);
        let is_said = |(row, _): &&(usize, f64)| {
            let value = result.rows.get(*row).and_then(|row| row.get(column));
            value.is_some_and(|value| token.equals(value, result.share_scale(column)))
        };
        let is_extreme = |of_named: bool| {
            let among = cells.iter().filter(|(row, _)| !of_named || named.contains(row));
            let order = |one: &&(usize, f64), other: &&(usize, f64)| one.1.total_cmp(&other.1);
            let found = if is_greatest { among.max_by(order) } else { among.min_by(order) };
            found.is_some_and(|cell| is_said(&cell))
        };
        if cells.iter().any(|cell| is_said(&cell)) {
            is_said_of_any = true;
            if is_extreme(false) || (named.len() > 1 && is_extreme(true)) {
                return false;
            }
        }
    }
    is_said_of_any
}

/// Whether a token is a day, a month or a year.
pub(super) fn is_day_or_year(token: &TextToken) -> bool {
    match &token.kind {
        TextTokenKind::Date(_) | TextTokenKind::YearDay { .. } => true,
        TextTokenKind::Number(number) => is_year(number.value) && token.text.len() == "2024".len(),
        _ => false,
    }
}

fn is_year(number: f64) -> bool {
    (1000.0..2200.0).contains(&number) && number.fract() == 0.0
}

/// Returns the days of a column, or its years, each with its row; `None` of a column of something else, and of one that is
/// itself called the first or the last.
fn days_of_column(result: &ProofRows, column: usize) -> Option<Vec<(usize, f64)>> {
    const OF_SOME: [&str; 8] = ["first", "last", "min", "max", "earliest", "latest", "newest", "oldest"];
    let name = result.columns.get(column)?.to_lowercase();
    if name.split(|c: char| !c.is_alphanumeric()).any(|part| OF_SOME.contains(&part)) {
        return None;
    }
    let day = |value: &Value| match day_of(value) {
        Some(day) => Some(f64::from(day.num_days_from_ce())),
        None => number_of(value).filter(|number| is_year(*number)),
    };
    let cells = result.rows.iter().enumerate().filter_map(|(row, values)| Some((row, values.get(column)?)));
    let cells = cells.filter(|(_, value)| !value.is_null());
    let found: Option<Vec<(usize, f64)>> = cells.map(|(row, value)| Some((row, day(value)?))).collect();
    found.filter(|found| !found.is_empty())
}

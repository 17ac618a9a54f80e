//! The dates of a text, in the forms in which people write them.

use chrono::NaiveDate;

use super::tokens::{TextToken, TextTokenKind};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// What is a year behind the name of a month: `in March 1500 orders` has none.
const YEARS: std::ops::Range<u32> = 1700..2200;

/// Returns the dates of a text: `2014-03-09`, `March 9, 2014`, `9 March 2014`.
pub(super) fn dates_in(text: &str) -> Vec<TextToken> {
    let mut found = Vec::new();
    let mut push = |start: usize, end: usize, days: Vec<NaiveDate>| {
        if !days.is_empty() {
            found.push(TextToken { text: text[start..end].to_owned(), start, end, kind: TextTokenKind::Date(days) });
        }
    };
    let of_day = |year: u32, month: u32, day: u32| -> Vec<NaiveDate> {
        NaiveDate::from_ymd_opt(i32::try_from(year).unwrap_or(0), month, day).into_iter().collect()
    };
    let words: Vec<(usize, &str)> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '\''))
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    for (index, (start, word)) in words.iter().enumerate() {
        if let Some(day) = word.get(..10)
            && word.get(10..).is_none_or(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            push(*start, start + 10, NaiveDate::parse_from_str(day, "%Y-%m-%d").into_iter().collect());
        }
        let written = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        push(*start, start + written.len(), days_of_numbers(written));
        let month = MONTHS.iter().position(|month| {
            let word = word.trim_end_matches('.').to_lowercase();
            *month == word || (word.len() >= 3 && word.len() < 5 && month.starts_with(&word))
        });
        let Some(month) = month.and_then(|month| u32::try_from(month + 1).ok()) else { continue };
        let number = |index: Option<usize>| -> Option<(usize, usize, u32)> {
            let (start, word) = words.get(index?)?;
            let digits = word.trim_end_matches([',', '.', ';', ':', '!', '?']);
            let digits =
                ["th", "st", "nd", "rd"].iter().find_map(|ending| digits.strip_suffix(ending)).unwrap_or(digits);
            Some((*start, start + digits.len(), digits.parse().ok()?))
        };
        let (next, after) = (number(Some(index + 1)), number(Some(index + 2)));
        if let (Some((_, _, day)), Some((_, end, year))) = (next, after) {
            push(*start, end, of_day(year, month, day));
        }
        match (number(index.checked_sub(1)), next) {
            (Some((begin, _, day)), Some((_, end, year))) if day <= 31 && year > 31 => {
                push(begin, end, of_day(year, month, day));
            }
            // `April 1937` is any day of it.
            (_, Some((_, end, year))) if YEARS.contains(&year) => {
                push(*start, end, (1..=31).flat_map(|day| of_day(year, month, day)).collect());
            }
            _ => {}
        }
    }
    found
}

/// Returns the days that `03/30/2024`, `30/03/2024` or `30.03.2024` can be.
fn days_of_numbers(word: &str) -> Vec<NaiveDate> {
    let forms: &[&str] = match (word.matches('/').count(), word.matches('.').count()) {
        (2, 0) => &["%m/%d/%Y", "%d/%m/%Y"],
        (0, 2) => &["%d.%m.%Y"],
        _ => return Vec::new(),
    };
    // A year of two digits is a part of something else.
    let has_year = word.rsplit(['/', '.']).next().is_some_and(|year| year.len() == 4);
    let mut days: Vec<NaiveDate> =
        forms.iter().filter(|_| has_year).filter_map(|form| NaiveDate::parse_from_str(word, form).ok()).collect();
    days.dedup();
    days
}

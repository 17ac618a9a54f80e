//! The dates of a text, in the forms in which people write them.

use chrono::{Datelike, NaiveDate};

use super::numbers::ORDINALS;
use super::tokens::{TextToken, TextTokenKind};

/// The names of months in several languages; of the English ones the first letters do as well.
const MONTHS: [&[&str]; 12] = [
    &["january", "januar", "janvier", "enero", "gennaio", "januari", "janeiro"],
    &["february", "februar", "février", "fevrier", "febrero", "febbraio", "februari", "fevereiro"],
    &["march", "märz", "maerz", "mars", "marzo", "maart", "março"],
    &["april", "avril", "abril", "aprile"],
    &["may", "mai", "mayo", "maggio", "mei", "maio"],
    &["june", "juni", "juin", "junio", "giugno", "junho"],
    &["july", "juli", "juillet", "julio", "luglio", "julho"],
    &["august", "août", "aout", "agosto", "augustus"],
    &["september", "septembre", "septiembre", "settembre", "setembro"],
    &["october", "oktober", "octobre", "octubre", "ottobre", "outubro"],
    &["november", "novembre", "noviembre", "novembro"],
    &["december", "dezember", "décembre", "decembre", "diciembre", "dicembre", "dezembro"],
];
/// Words between the parts of a date: `29 de febrero de 2024`, `the fifth of November`.
const LINKS: [&str; 5] = ["of", "de", "del", "di", "den"];
/// Words between two days of one month, and those that may stand behind them: `vom 2. bis zum 5. Juni`.
const RANGES: [&str; 15] =
    ["to", "and", "until", "till", "through", "bis", "und", "au", "et", "al", "y", "ao", "e", "tot", "en"];
const ARTICLES: [&str; 6] = ["the", "zum", "den", "le", "el", "o"];
/// Days of a month in words, from the eleventh on.
const LATER_ORDINALS: [&str; 21] = [
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
    "twenty-ninth",
    "thirtieth",
    "thirty-first",
];
/// What is a year behind the name of a month: `in March 1500 orders` has none.
pub(super) const YEARS: std::ops::Range<u32> = 1700..2200;

/// A number in a date: where it begins and ends, and its value.
type DatePart = (usize, usize, u32);

/// Returns the dates of a text: `2014-03-09`, `March 9, 2014`, `9. März 2014`, `the ninth of March 2014`, `March 9`.
pub(super) fn dates_in(text: &str) -> Vec<TextToken> {
    let mut found = Vec::new();
    let mut push = |start: usize, end: usize, kind: TextTokenKind| {
        found.push(TextToken { text: text[start..end].to_owned(), start, end, kind });
    };
    let of_day = |year: u32, month: u32, day: u32| {
        NaiveDate::from_ymd_opt(i32::try_from(year).unwrap_or(0), month, day).map(|day| TextTokenKind::Date(vec![day]))
    };
    let words: Vec<(usize, &str)> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '\'' | '*'))
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    for (index, (start, word)) in words.iter().enumerate() {
        if let Some(day) = word.get(..10)
            && word.get(10..).is_none_or(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
            && let Ok(day) = NaiveDate::parse_from_str(day, "%Y-%m-%d")
        {
            push(*start, start + 10, TextTokenKind::Date(vec![day]));
        }
        let written = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        if let Some((year, month)) = month_of_numbers(written) {
            push(*start, start + written.len(), TextTokenKind::Date(days_of_month(year, month)));
        }
        let days = days_of_numbers(written);
        if !days.is_empty() {
            push(*start, start + written.len(), TextTokenKind::Date(days));
        }
        let Some(month) = month_of(word) else { continue };
        let word_end = start + word.trim_end_matches([',', '.', ';', ':', '!', '?']).len();
        let number = |index: Option<usize>| words.get(index?).and_then(|(start, word)| date_part(*start, word));
        let is_link =
            |index: usize| words.get(index).is_some_and(|(_, word)| LINKS.contains(&word.to_lowercase().as_str()));
        // What stands before the month may end no sentence: `in 2013. March 2014`, but `5. November`.
        let previous = match index.checked_sub(1) {
            Some(previous) if is_link(previous) => previous.checked_sub(1),
            previous => previous,
        };
        // `2–5 June`, and `2 to 5 June`.
        let hyphened = previous.and_then(|at| words.get(at)).and_then(|(start, word)| hyphened_days(*start, word));
        // Of `Jul 26, Aug 1` the 26 is of July.
        let is_listed = previous.and_then(|at| words.get(at)).is_some_and(|(_, word)| word.ends_with(','));
        let before = hyphened.map(|(_, last)| last).or_else(|| number(previous).filter(|_| !is_listed));
        let before = before.filter(|(_, _, day)| (1..=31).contains(day));
        let first = hyphened.map(|(first, _)| first).or_else(|| first_of_range(&words, previous?, before?.2));
        let after = if is_link(index + 1) { index + 2 } else { index + 1 };
        let (next, later) = (number(Some(after)), number(Some(after + 1)));
        // `June 2–5`, and `June 2 to 5`.
        if let Some((first, last)) = words.get(after).and_then(|(start, word)| hyphened_days(*start, word)) {
            let year = later.filter(|(_, _, year)| YEARS.contains(year)).map(|(_, _, year)| year);
            for (begin, (_, end, day)) in [(*start, first), (last.0, last)] {
                let of_year = year.and_then(|year| of_day(year, month, day));
                push(begin, end, of_year.unwrap_or(TextTokenKind::YearDay { month, day }));
            }
            continue;
        }
        if let Some((begin, end, last)) = last_of_range(&words, after) {
            push(begin, end, TextTokenKind::YearDay { month, day: last });
        }
        // `March 9, 2014`.
        if let (Some((_, _, day)), Some((_, end, year))) = (next, later)
            && YEARS.contains(&year)
            && let Some(kind) = of_day(year, month, day)
        {
            push(*start, end, kind);
            continue;
        }
        match (before, next) {
            (Some((begin, _, day)), Some((_, end, year))) if year > 31 && of_day(year, month, day).is_some() => {
                if let Some(kind) = of_day(year, month, day) {
                    push(begin, end, kind);
                }
                if let Some((begin, end, day)) = first
                    && let Some(kind) = of_day(year, month, day)
                {
                    push(begin, end, kind);
                }
            }
            // `April 1937` is any day of it.
            (_, Some((_, end, year))) if YEARS.contains(&year) => {
                push(*start, end, TextTokenKind::Date(days_of_month(year, month)));
            }
            // `9 March`, and `March 9`: of any year. Of `on 19 March, 8 days later` the 19th.
            (Some((begin, _, day)), _) => {
                push(begin, word_end, TextTokenKind::YearDay { month, day });
                if let Some((begin, end, day)) = first {
                    push(begin, end, TextTokenKind::YearDay { month, day });
                }
            }
            (_, Some((_, end, day))) if (1..=31).contains(&day) && !is_link(index + 1) && !word.ends_with(',') => {
                push(*start, end, TextTokenKind::YearDay { month, day });
            }
            _ => {}
        }
    }
    found
}

/// Returns the two days that a word is: `2–5`.
fn hyphened_days(start: usize, word: &str) -> Option<(DatePart, DatePart)> {
    let (first, last) = word.split_once(['-', '–'])?;
    let (first, last) = (date_part(start, first)?, date_part(start + (word.len() - last.len()), last)?);
    (first.2 >= 1 && first.2 < last.2 && last.2 <= 31).then_some((first, last))
}

/// Returns the first day of `from 2 to 5 June`, whose last one is the word at a place.
fn first_of_range(words: &[(usize, &str)], at: usize, last: u32) -> Option<DatePart> {
    let lower = |at: usize| words.get(at).map(|(_, word)| word.to_lowercase()).unwrap_or_default();
    let mut link = at.checked_sub(1)?;
    if ARTICLES.contains(&lower(link).as_str()) {
        link = link.checked_sub(1)?;
    }
    let (start, word) = words.get(link.checked_sub(1)?).filter(|_| RANGES.contains(&lower(link).as_str()))?;
    date_part(*start, word).filter(|(_, _, first)| (1..last).contains(first))
}

/// Returns the last day of `June 2 to 5`, whose first one is the word at a place. A noun behind it is what is counted.
fn last_of_range(words: &[(usize, &str)], at: usize) -> Option<DatePart> {
    let (_, _, first) = words.get(at).and_then(|(start, word)| date_part(*start, word))?;
    let (_, link) = words.get(at + 1)?;
    let (start, word) = words.get(at + 2).filter(|_| RANGES.contains(&link.to_lowercase().as_str()))?;
    let ends = word.ends_with([',', '.', ';', ':', '!', '?']) || words.get(at + 3).is_none();
    date_part(*start, word).filter(|(_, _, last)| ends && *last > first && *last <= 31)
}

/// Whether a lowercase word is the name of a month, or may become one as more of it arrives.
pub(super) fn begins_month(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.']);
    MONTHS.iter().flat_map(|names| names.iter()).any(|name| name.starts_with(word))
}

/// Returns the names of a month, from 1, in other languages than English.
pub(super) fn foreign_names_of_month(month: u32) -> &'static [&'static str] {
    let names = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?).copied());
    names.and_then(|names| names.get(1..)).unwrap_or_default()
}

/// Returns the number of the month that a word is the name of.
pub(super) fn month_of(word: &str) -> Option<u32> {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']).to_lowercase();
    let is_called = |names: &&[&str]| {
        let is_short = word.len() >= 3 && word.len() < 5;
        names.contains(&word.as_str()) || (is_short && names.first().is_some_and(|name| name.starts_with(&word)))
    };
    MONTHS.iter().position(is_called).and_then(|month| u32::try_from(month + 1).ok())
}

/// Returns the number that a word of a date is: `9`, `9th`, `9.`, `ninth`.
fn date_part(start: usize, word: &str) -> Option<DatePart> {
    let plain = word.trim_end_matches([',', '.', ';', ':', '!', '?']);
    let lower = plain.to_lowercase();
    let ordinal = ORDINALS.iter().chain(&LATER_ORDINALS).position(|known| *known == lower);
    if let Some(index) = ordinal {
        return Some((start, start + plain.len(), u32::try_from(index + 1).ok()?));
    }
    let digits = ["th", "st", "nd", "rd", "er"].iter().find_map(|ending| plain.strip_suffix(ending)).unwrap_or(plain);
    Some((start, start + digits.len(), digits.parse().ok()?))
}

/// Returns the days of a month.
fn days_of_month(year: u32, month: u32) -> Vec<NaiveDate> {
    let first = NaiveDate::from_ymd_opt(i32::try_from(year).unwrap_or(0), month, 1);
    first.into_iter().flat_map(|first| first.iter_days().take(31)).filter(|day| day.month() == month).collect()
}

/// Returns the year and the month that `2024-03` is; `None` of a season such as `2011-12`.
fn month_of_numbers(word: &str) -> Option<(u32, u32)> {
    let (year, month) = word.split_once('-')?;
    let is_form = year.len() == 4 && month.len() == 2;
    let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
    let is_season = (year + 1) % 100 == month;
    (is_form && !is_season && YEARS.contains(&year) && (1..=12).contains(&month)).then_some((year, month))
}

/// Returns the days that `03/30/2024`, `30/03/24`, `2024/03/30`, `30.03.2024` or `30-03-2024` can be.
fn days_of_numbers(word: &str) -> Vec<NaiveDate> {
    let parts: Vec<usize> = word.split(['/', '.', '-']).map(str::len).collect();
    let has_dashes = parts.len() == 3 && word.matches('-').count() == 2;
    let forms: &[&str] = match (word.matches('/').count(), word.matches('.').count(), parts.as_slice()) {
        (0, 0, [1..=2, 1..=2, 4]) if has_dashes => &["%d-%m-%Y", "%m-%d-%Y"],
        (2, 0, [_, _, 4]) => &["%m/%d/%Y", "%d/%m/%Y"],
        (2, 0, [4, _, _]) => &["%Y/%m/%d"],
        (2, 0, [_, 2, 2]) => &["%m/%d/%y", "%d/%m/%y"],
        (0, 2, [_, _, 4]) => &["%d.%m.%Y"],
        (0, 2, [2, 2, 2]) => &["%d.%m.%y"],
        _ => return Vec::new(),
    };
    let mut days: Vec<NaiveDate> = forms.iter().filter_map(|form| NaiveDate::parse_from_str(word, form).ok()).collect();
    days.dedup();
    days
}

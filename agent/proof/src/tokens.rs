//! The numbers, dates and codes of a text, and its sentences and clauses.

use chrono::{Datelike, NaiveDate, Weekday};
use serde_json::Value;

use super::announced::says_loss;
use super::claims::month_of;
use super::dates::dates_in;
use super::extremes::GREATEST;
use super::foreign_numbers::foreign_part;
use super::labels::year_of;
use super::number_of;
use super::numbers::{ORDINALS, digits_at, number_at, number_in_words};
use super::parts::{PARTS, half_of_unit, part_of_whole};

/// A number, a date or a code in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextToken {
    pub(super) text: String,
    /// Bytes of the text.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: TextTokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextTokenKind {
    Number(WrittenNumber),
    /// The days that a date can be: `04/11/2024` is one of two.
    Date(Vec<NaiveDate>),
    /// A day of no year: `March 9`. `March 9 orders` is a number.
    YearDay {
        month: u32,
        day: u32,
    },
    /// `Sunday`.
    Weekday(Weekday),
    /// An hour of 24: `2 PM`.
    Hour(u32),
    /// A place in an order: `second` of `ranks second`.
    Rank(usize),
    /// How many times as much: 2 of `twice` and `doubled`.
    Factor(f64),
    /// Letters and digits, such as `N14228` or `12:30`.
    Code(String),
}

/// By how much what a word counts may differ from a whole number, where it was computed in fractions.
const COUNT_TOLERANCE: f64 = 1e-6;

/// How a column writes shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShareScale {
    /// 0.25 is a quarter.
    Fraction,
    /// 25 is a quarter.
    Percent,
    /// There are none: some value is beyond 100.
    Amount,
    /// Nobody knows, or there are none.
    Unknown,
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WrittenNumber {
    pub(super) value: f64,
    /// By how much another number may differ that is written so.
    pub(super) tolerance: f64,
    pub(super) is_percent: bool,
    /// Whether a word or a letter behind it is a part of it: `1.2 million`.
    pub(super) is_scaled: bool,
    /// Whether it is a word for how many, which says the very number: `two` offices are no 1.97 of anything. What is
    /// measured, `thirty-seven minutes`, and what is said to be about so many is rounded.
    pub(super) is_counted: bool,
    /// What it is read as too, with how far it rounds: `48.213` of 48213, and `42 per million` of 0.000042.
    pub(super) other: Option<(f64, f64)>,
}

impl WrittenNumber {
    pub(super) fn whole(number: usize) -> Self {
        Self {
            value: number as f64,
            tolerance: 0.5,
            is_percent: false,
            is_scaled: false,
            is_counted: false,
            other: None,
        }
    }

    /// Returns the number as one that is rounded, although it is a word: `three times as many` are 3.1 times.
    pub(super) fn rounded(self) -> Self {
        Self { is_counted: false, ..self }
    }

    /// Whether `value` is written so when it is rounded to as many digits.
    pub(super) fn stands_for(&self, value: f64, scale: ShareScale) -> bool {
        let reads = |value: f64, written: f64, tolerance: f64| {
            let allowed = if self.is_counted { COUNT_TOLERANCE } else { tolerance * 1.000_001 };
            (value - written).abs() <= allowed && !is_other_whole(value, written, tolerance)
        };
        let close = |value: f64| {
            reads(value, self.value, self.tolerance)
                || self.other.is_some_and(|(written, tolerance)| reads(value, written, tolerance))
        };
        let as_it_is = !(self.is_percent && matches!(scale, ShareScale::Fraction | ShareScale::Amount));
        let as_percent = self.is_percent && !matches!(scale, ShareScale::Percent | ShareScale::Amount);
        (as_it_is && close(value)) || (as_percent && close(value * 100.0))
    }
}

/// Whether both are whole numbers, and not the same.
fn is_other_whole(value: f64, written: f64, tolerance: f64) -> bool {
    tolerance <= 0.5 && value.fract() == 0.0 && written.fract() == 0.0 && value != written
}

impl TextToken {
    /// Whether a cell holds what is written.
    pub(super) fn equals(&self, value: &Value, scale: ShareScale) -> bool {
        match &self.kind {
            TextTokenKind::Number(number) => match number_of(value) {
                Some(value) => number.stands_for(value, scale),
                None => self.is_year_of(value),
            },
            TextTokenKind::Date(days) => value.as_str().is_some_and(|text| match self.month() {
                Some(month) => text.starts_with(&month.format("%Y-%m").to_string()) || month_of(value) == Some(month),
                None => days.iter().any(|day| text.starts_with(&day.format("%Y-%m-%d").to_string())),
            }),
            TextTokenKind::YearDay { month, day } => {
                day_of(value).is_some_and(|found| (found.month(), found.day()) == (*month, *day))
            }
            TextTokenKind::Weekday(weekday) => day_of(value).is_some_and(|day| day.weekday() == *weekday),
            TextTokenKind::Hour(hour) => hour_in(value) == Some(*hour),
            TextTokenKind::Rank(_) | TextTokenKind::Factor(_) => false,
            TextTokenKind::Code(code) => value.as_str().is_some_and(|text| {
                let text = text.to_lowercase();
                // A time of day that is counted to 12 there as well.
                let is_of_half_day = text.ends_with("am") || text.ends_with("pm");
                text.contains(&code.to_lowercase())
                    || (is_of_half_day && text.contains(&self.text.to_lowercase()))
                    || padded_time(code).is_some_and(|time| text.contains(&time))
                    || (self.is_quarter() && day_of(value).is_some_and(|day| code.ends_with(quarter_of(day))))
            }),
        }
    }
}

impl TextToken {
    /// Whether it is a whole number, and no percentage.
    pub(super) fn is_whole(&self, count: usize) -> bool {
        matches!(&self.kind, TextTokenKind::Number(number)
            if number.value == count as f64 && !number.is_percent && !number.is_scaled && number.tolerance <= 0.5)
    }

    /// Whether a cell holds a day of the year that is written.
    fn is_year_of(&self, value: &Value) -> bool {
        let year = day_of(value).map(|day| day.format("%Y").to_string()).or_else(|| year_of(value));
        year.is_some_and(|year| year == self.text)
    }

    /// Whether a cell holds the very number, not one that is rounded to it.
    pub(super) fn is_exactly(&self, value: &Value) -> bool {
        let TextTokenKind::Number(number) = &self.kind else { return self.equals(value, ShareScale::Unknown) };
        let is_same = |value: f64| (value - number.value).abs() <= number.value.abs() * 1e-9;
        number_of(value).is_some_and(|value| is_same(value) || (number.is_percent && is_same(value * 100.0)))
    }

    /// Returns the first day of the month that is written without a day.
    pub(super) fn month(&self) -> Option<NaiveDate> {
        match &self.kind {
            TextTokenKind::Date(days) if days.len() > 2 => days.first().copied(),
            _ => None,
        }
    }

    /// Whether it has letters and stands in a lowercase text as it is written.
    pub(super) fn stands_in(&self, lower: &str) -> bool {
        self.text.chars().any(char::is_alphabetic) && lower.contains(&self.text.to_lowercase())
    }

    /// Whether a text says the same: the same number or code, or a day that both can be.
    pub(super) fn is_said_by(&self, known: &Self) -> bool {
        match (&self.kind, &known.kind) {
            (TextTokenKind::Date(days), TextTokenKind::Date(others)) => days.iter().any(|day| others.contains(day)),
            (TextTokenKind::YearDay { month, day }, TextTokenKind::Date(others)) => {
                others.iter().any(|other| (other.month(), other.day()) == (*month, *day)) && others.len() <= 2
            }
            (TextTokenKind::Number(number), TextTokenKind::Number(other)) => {
                number.value == other.value && number.is_percent == other.is_percent
            }
            // The year of a month that is written in numbers.
            (TextTokenKind::Number(number), TextTokenKind::Date(_)) => {
                known.month().is_some_and(|month| number.value == f64::from(month.year()) && self.text.len() == 4)
            }
            (kind, other) => kind == other,
        }
    }

    /// Whether a cell holds the loss that is written: `lost 45,210` of a profit of -45210.
    pub(super) fn is_loss_of(&self, value: &Value, clause: &str) -> bool {
        let TextTokenKind::Number(number) = &self.kind else { return false };
        let is_less =
            number_of(value).is_some_and(|value| value < 0.0 && number.stands_for(-value, ShareScale::Unknown));
        is_less && number.value > 0.0 && says_loss(clause)
    }

    pub(super) fn is_percent(&self) -> bool {
        matches!(&self.kind, TextTokenKind::Number(number) if number.is_percent)
    }

    /// Whether it is a number of percentage points, or of points, which may be such.
    pub(super) fn is_of_points(&self, clause: &str) -> bool {
        const POINTS: [&str; 9] = [
            "percentage point",
            "percentage-point",
            "percent point",
            "points",
            "pp ",
            "prozentpunkt",
            "procentpunt",
            "punto",
            "ponto",
        ];
        let behind = clause[self.end..].trim_start().trim_start_matches('%').trim_start().to_lowercase();
        let is_points = |word: &&str| behind.starts_with(*word);
        matches!(self.kind, TextTokenKind::Number(_)) && POINTS.iter().any(is_points)
    }

    /// Whether it is `Q1`.
    pub(super) fn is_quarter(&self) -> bool {
        matches!(&self.kind, TextTokenKind::Code(code)
            if code.len() == 2 && code.starts_with(['Q', 'q']) && code.ends_with(['1', '2', '3', '4']))
    }

    /// Whether it is a half of a year: `H1`.
    pub(super) fn is_half_year(&self) -> bool {
        matches!(&self.kind, TextTokenKind::Code(code) if ["H1", "H2", "h1", "h2"].contains(&code.as_str()))
    }

    /// Whether it speaks of two that are named: `the gap between the two`.
    fn is_pronoun(&self, clause: &str) -> bool {
        self.is_whole(2)
            && self.text.eq_ignore_ascii_case("two")
            && last_words(&clause[..self.start], 1) == "the"
            && !clause[self.end..].trim_start().starts_with(char::is_alphanumeric)
    }

    /// Whether it only stands beside another number: the 1 of `1.62 to 1`, the 100 of `22 out of every 100`, and of
    /// `9 l/100 km`.
    pub(super) fn is_beside(&self, clause: &str) -> bool {
        let TextTokenKind::Number(number) = &self.kind else { return false };
        let before = last_words(&clause[..self.start], 3);
        let divided = clause[..self.start].strip_suffix('/');
        // `4.3 out of 5` and `4,3/5` are marks.
        let mark = before.strip_suffix(" out of").or(divided).map(|mark| last_words(mark, 1)).unwrap_or_default();
        let is_mark = mark.ends_with(|c: char| c.is_ascii_digit()) && mark.contains(['.', ',']);
        let is_of_unit = divided.is_some_and(|unit| unit.ends_with(char::is_alphabetic));
        self.is_pronoun(clause)
            || (is_mark && [5.0, 6.0, 10.0, 20.0, 100.0].contains(&number.value))
            || (is_of_unit && [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0].contains(&number.value))
            || (number.value == 1.0 && before.ends_with(" to") && before.contains(|c: char| c.is_ascii_digit()))
            || (number.value == 100.0 && (before.ends_with("out of every") || before.ends_with("out of")))
    }

    /// Returns the word that makes a number no claim about rows: `step 2`, `version 2.1`, `top 3`, `1 table`.
    pub(super) fn aside_word(&self, clause: &str) -> Option<&'static str> {
        const BEFORE: [&str; 16] = [
            "step", "version", "table", "chapter", "section", "figure", "option", "appendix", "page", "note",
            "example", "top", "bottom", "reading", "question", "phase",
        ];
        const AFTER: [&str; 9] =
            ["table", "tables", "query", "queries", "column", "columns", "database", "databases", "steps"];
        let before = last_words(&clause[..self.start], 1);
        let after = clause[self.end..].split_whitespace().next().unwrap_or_default();
        let after = after.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_number = matches!(self.kind, TextTokenKind::Number(_));
        // `The two busiest wards took in 720`: the top two make that.
        let says_more = clause[self.end..].contains(|c: char| c.is_ascii_digit());
        if is_number && says_more && before == "the" && GREATEST.contains(&after.as_str()) {
            return Some("top");
        }
        let found = BEFORE.into_iter().find(|word| before == *word);
        found.or_else(|| AFTER.into_iter().find(|word| after == *word)).filter(|_| is_number)
    }
}

fn quarter_of(day: NaiveDate) -> char {
    char::from_digit(day.month0() / 3 + 1, 10).unwrap_or('0')
}

/// Returns the hour of the time that a cell holds.
fn hour_in(value: &Value) -> Option<u32> {
    let text = value.as_str()?;
    let (before, _) = text.split_once(':')?;
    let digits = before.get(before.len().checked_sub(2)?..).unwrap_or(before);
    digits.trim().parse().ok()
}

/// Returns `06:45` of `6:45`, as a cell has it.
fn padded_time(code: &str) -> Option<String> {
    (code.find(':') == Some(1)).then(|| format!("0{code}"))
}

/// Returns the day that a cell holds.
pub(super) fn day_of(value: &Value) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(value.as_str()?.get(..10)?, "%Y-%m-%d").ok()
}

/// Returns the last words of a text, in lower case with one space between them.
pub(super) fn last_words(text: &str, most: usize) -> String {
    let words = last_words_as_written(text, most).to_lowercase();
    words.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// Returns the last words of a text with one space between them.
pub(super) fn last_words_as_written(text: &str, most: usize) -> String {
    let mut words: Vec<&str> = text.split_whitespace().rev().take(most).collect();
    words.reverse();
    words.join(" ")
}

/// Units of areas and volumes, and a gas.
const UNITS_WITH_DIGITS: [&str; 8] = ["km2", "m2", "m3", "cm2", "cm3", "ft2", "mi2", "co2"];
/// Words behind an ordinal that make it a place in an order, and words before it.
const RANK_AFTER: &str = " place position rank largest biggest highest most best top longest greatest busiest oldest ";
const RANK_BEFORE: &str = " rank ranks ranked ranking placed places comes came finishes finished is was ";
const PLACED: &str = " comes came ranks ranked placed places finished finishes ";
const FACTORS: [(&str, f64); 12] = [
    ("triple", 3.0),
    ("treble", 3.0),
    ("thrice", 3.0),
    ("trebled", 3.0),
    ("quadruple", 4.0),
    ("twice", 2.0),
    ("double", 2.0),
    ("doubled", 2.0),
    ("tripled", 3.0),
    ("quadrupled", 4.0),
    ("halved", 0.5),
    ("half", 0.5),
];

/// Returns the numbers, dates and codes of a text, in order. Numbers of a list are none.
pub(super) fn tokens_in(text: &str) -> Vec<TextToken> {
    let mut found = dates_in(text);
    let taken = |start: usize, found: &[TextToken]| found.iter().any(|known| known.start <= start && start < known.end);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let is_part = at > 0 && text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_of_name = first.is_ascii_digit() && is_hyphened(&text[..at]);
        if is_of_name {
            at += digits_at(text, at);
            continue;
        }
        if taken(at, &found) || is_part || !(first.is_alphanumeric()) {
            at += first.len_utf8();
            continue;
        }
        let word_end = at + text[at..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - at);
        let word = &text[at..word_end];
        if first.is_ascii_digit() {
            let (token, end) = number_at(text, at);
            found.extend(token);
            at = end.max(word_end.min(end.max(at + 1)));
        } else {
            let mut end = word_end;
            if word.chars().any(|c| c.is_ascii_digit()) {
                if !UNITS_WITH_DIGITS.iter().any(|unit| word.eq_ignore_ascii_case(unit)) {
                    let kind = TextTokenKind::Code(word.to_owned());
                    found.push(TextToken { text: word.to_owned(), start: at, end, kind });
                }
            } else if let Some((kind, phrase_end)) = foreign_part(text, at) {
                end = phrase_end;
                found.push(TextToken { text: text[at..end].to_owned(), start: at, end, kind });
            } else if let Some((kind, start)) = part_of_whole(text, at, end, &found) {
                found.retain(|known| known.start < start || known.end > end);
                found.push(TextToken { text: text[start..end].to_owned(), start, end, kind });
            } else if let Some(kind) = rank_or_factor(text, at, end) {
                found.push(TextToken { text: word.to_owned(), start: at, end, kind });
            } else if let Some(weekday) = weekday_of(word) {
                found.push(TextToken { text: word.to_owned(), start: at, end, kind: TextTokenKind::Weekday(weekday) });
            } else if let Some((number, number_end)) =
                half_of_unit(text, at, end).or_else(|| number_in_words(text, at, end))
            {
                end = number_end;
                let kind = TextTokenKind::Number(number);
                found.push(TextToken { text: text[at..end].to_owned(), start: at, end, kind });
            }
            at = end;
        }
    }
    found.sort_by_key(|token| token.start);
    found
}

/// Whether what follows belongs to a word before it: the 19 of `COVID-19`.
fn is_hyphened(before: &str) -> bool {
    let word = before.strip_suffix('-').unwrap_or_default();
    word.ends_with(char::is_alphabetic)
}

/// Returns the day of a week that a word is, with a capital where its language writes one.
fn weekday_of(word: &str) -> Option<Weekday> {
    const WEEKDAYS: [(&str, Weekday); 7] = [
        ("Monday Montag lundi lunes lunedì maandag", Weekday::Mon),
        ("Tuesday Dienstag mardi martes martedì dinsdag", Weekday::Tue),
        ("Wednesday Mittwoch mercredi miércoles mercoledì woensdag", Weekday::Wed),
        ("Thursday Donnerstag jeudi jueves giovedì donderdag", Weekday::Thu),
        ("Friday Freitag vendredi viernes venerdì vrijdag", Weekday::Fri),
        ("Saturday Samstag samedi sábado sabato zaterdag", Weekday::Sat),
        ("Sunday Sonntag dimanche domingo domenica zondag", Weekday::Sun),
    ];
    WEEKDAYS.iter().find(|(names, _)| names.split(' ').any(|name| name == word)).map(|(_, weekday)| *weekday)
}

/// Returns the place in an order, or the factor, that a word is; `None` of `the second flight` and `half of May`.
fn rank_or_factor(text: &str, start: usize, end: usize) -> Option<TextTokenKind> {
    let word = text[start..end].to_ascii_lowercase();
    let next = text[end..].split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if let Some((name, factor)) = FACTORS.iter().find(|(known, _)| *known == word) {
        let needs_as = ["half", "double", "twice", "triple", "treble", "thrice", "quadruple"].contains(name);
        let before = last_words(&text[..start], 1);
        let is_part = *name == "half" && ["first", "second", "other", "latter"].contains(&before.as_str());
        let compares =
            ["as", "the", "what", "that"].contains(&next.as_str()) || (*name == "half" && next == "of" && !is_part);
        return (!needs_as || compares).then_some(TextTokenKind::Factor(*factor));
    }
    // `A third as many`.
    if let Some((_, parts)) = PARTS.iter().find(|(name, _)| *name == word)
        && next == "as"
        && ["a", "one"].contains(&last_words(&text[..start], 1).as_str())
    {
        return Some(TextTokenKind::Factor(1.0 / parts));
    }
    let ordinal = ORDINALS.iter().position(|known| *known == word).map(|index| index + 1)?;
    // `The second quarter of 2024`.
    let behind = text[end..].trim_start().to_ascii_lowercase();
    let is_quarter = behind.strip_prefix("quarter of ").is_some_and(|rest| rest.starts_with(['1', '2']));
    if is_quarter && ordinal <= 4 {
        return Some(TextTokenKind::Code(format!("Q{ordinal}")));
    }
    is_rank(text, start, end).then_some(TextTokenKind::Rank(ordinal))
}

/// Whether an ordinal is a place in an order, by the words beside it.
pub(super) fn is_rank(text: &str, start: usize, end: usize) -> bool {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let is_in = |list: &str, word: &str| !word.is_empty() && list.contains(&format!(" {} ", plain(word)));
    let mut before = text[..start].split_whitespace().rev();
    let previous = before.next().unwrap_or_default();
    let previous =
        if ["in", "the"].contains(&plain(previous).as_str()) { before.next().unwrap_or_default() } else { previous };
    let next = text[end..].split_whitespace().next().unwrap_or_default();
    let is_placed = is_in(PLACED, previous) && is_in(" with at in among overall for on ", next);
    let is_said_of = is_in(RANK_BEFORE, previous)
        && (next.is_empty() || plain(next) == "by" || !next.starts_with(char::is_alphanumeric) || is_placed);
    is_in(RANK_AFTER, next) || is_said_of || plain(previous).starts_with("rank")
}

/// Whether a text is a name, and no number, date or time.
pub(super) fn is_name(text: &str) -> bool {
    let is_day = text.get(..10).is_some_and(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok());
    text.chars().any(char::is_alphabetic) && text.parse::<f64>().is_err() && !is_day
}

/// Whether a text says one of some words: [`find_word`].
pub(super) fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| find_word(text, word).is_some())
}

/// Returns where a name stands in a text as words of its own, whatever the case.
pub(super) fn find_word(text: &str, name: &str) -> Option<usize> {
    let first = name.as_bytes().first()?;
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    memchr::memchr2_iter(lower, upper, text.as_bytes()).find(|at| {
        let end = at + name.len();
        text.get(*at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
            && !is_letter(text[..*at].chars().next_back())
            && !is_letter(text[end..].chars().next())
    })
}

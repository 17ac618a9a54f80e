//! The numbers, dates and codes of a text, and its sentences and clauses.

use chrono::NaiveDate;
use serde_json::Value;

use super::number_of;

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
    /// A place in an order: `second` of `ranks second`.
    Rank(usize),
    /// How many times as much: 2 of `twice` and `doubled`.
    Factor(f64),
    /// Letters and digits, such as `N14228` or `12:30`.
    Code(String),
}

/// How a column writes shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShareScale {
    /// 0.25 is a quarter.
    Fraction,
    /// 25 is a quarter.
    Percent,
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
}

impl WrittenNumber {
    pub(super) fn whole(number: usize) -> Self {
        Self { value: number as f64, tolerance: 0.5, is_percent: false }
    }

    /// Whether `value` is written so when it is rounded to as many digits.
    pub(super) fn stands_for(&self, value: f64, scale: ShareScale) -> bool {
        let close =
            |value: f64| (value - self.value).abs() <= self.tolerance * 1.000_001 && !self.is_other_whole(value);
        let as_it_is = !(self.is_percent && scale == ShareScale::Fraction);
        let as_percent = self.is_percent && scale != ShareScale::Percent;
        (as_it_is && close(value)) || (as_percent && close(value * 100.0))
    }

    /// Whether both are whole numbers, and not the same.
    fn is_other_whole(&self, value: f64) -> bool {
        self.tolerance <= 0.5 && value.fract() == 0.0 && self.value.fract() == 0.0 && value != self.value
    }
}

impl TextToken {
    /// Whether a cell holds what is written.
    pub(super) fn equals(&self, value: &Value, scale: ShareScale) -> bool {
        match &self.kind {
            TextTokenKind::Number(number) => number_of(value).is_some_and(|value| number.stands_for(value, scale)),
            TextTokenKind::Date(days) => value
                .as_str()
                .is_some_and(|text| days.iter().any(|day| text.starts_with(&day.format("%Y-%m-%d").to_string()))),
            TextTokenKind::Rank(_) | TextTokenKind::Factor(_) => false,
            TextTokenKind::Code(code) => {
                value.as_str().is_some_and(|text| text.to_lowercase().contains(&code.to_lowercase()))
            }
        }
    }
}

const SCALES: [(&str, f64); 8] = [
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("k", 1e3),
    ("mn", 1e6),
    ("bn", 1e9),
    ("m", 1e6),
];
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
const WORDS: [&str; 11] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// Other words that are a number, behind `a` or alone.
const OTHER_WORDS: [(&str, usize); 3] = [("dozen", 12), ("fifteen", 15), ("twenty", 20)];
const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
/// Words behind an ordinal that make it a place in an order, and words before it.
const RANK_AFTER: &str = " place position rank largest biggest highest most best top longest greatest busiest oldest ";
const RANK_BEFORE: &str = " rank ranks ranked ranking placed places comes came is was ";
const FACTORS: [(&str, f64); 7] = [
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
            if word.chars().any(|c| c.is_ascii_digit()) {
                let kind = TextTokenKind::Code(word.to_owned());
                found.push(TextToken { text: word.to_owned(), start: at, end: word_end, kind });
            } else if let Some(kind) = rank_or_factor(text, at, word_end) {
                found.push(TextToken { text: word.to_owned(), start: at, end: word_end, kind });
            } else if let Some((_, number)) = OTHER_WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)) {
                let kind = TextTokenKind::Number(WrittenNumber::whole(*number));
                found.push(TextToken { text: word.to_owned(), start: at, end: word_end, kind });
            } else if let Some(number) = WORDS.iter().position(|known| word.eq_ignore_ascii_case(known)) {
                let kind = TextTokenKind::Number(WrittenNumber::whole(number + 2));
                found.push(TextToken { text: word.to_owned(), start: at, end: word_end, kind });
            }
            at = word_end;
        }
    }
    found.sort_by_key(|token| token.start);
    found
}

/// Returns the place in an order, or the factor, that a word is; `None` of `the second flight` and `half of May`.
fn rank_or_factor(text: &str, start: usize, end: usize) -> Option<TextTokenKind> {
    let word = text[start..end].to_ascii_lowercase();
    let next = text[end..].split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if let Some((name, factor)) = FACTORS.iter().find(|(known, _)| *known == word) {
        let needs_as = ["half", "double", "twice"].contains(name);
        return (!needs_as || next == "as").then_some(TextTokenKind::Factor(*factor));
    }
    let ordinal = ORDINALS.iter().position(|known| *known == word).map(|index| index + 1)?;
    is_rank(text, start, end).then_some(TextTokenKind::Rank(ordinal))
}

/// Whether an ordinal is a place in an order, by the words beside it.
fn is_rank(text: &str, start: usize, end: usize) -> bool {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let is_in = |list: &str, word: &str| !word.is_empty() && list.contains(&format!(" {} ", plain(word)));
    let mut before = text[..start].split_whitespace().rev();
    let previous = before.next().unwrap_or_default();
    let previous =
        if ["in", "the"].contains(&plain(previous).as_str()) { before.next().unwrap_or_default() } else { previous };
    let next = text[end..].split_whitespace().next().unwrap_or_default();
    let is_said_of = is_in(RANK_BEFORE, previous)
        && (next.is_empty() || plain(next) == "by" || !next.starts_with(char::is_alphanumeric));
    is_in(RANK_AFTER, next) || is_said_of || plain(previous).starts_with("rank")
}

/// Reads what begins with a digit. Returns it, unless it is the number of a list or a rank, and where it ends.
fn number_at(text: &str, start: usize) -> (Option<TextToken>, usize) {
    let rest = &text[start..];
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    // Groups of three.
    while matches!(bytes.get(end), Some(b',' | b'_')) && digits(end + 1) == 3 {
        end += 4;
    }
    let mut decimals = 0;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        decimals = digits(end + 1);
        end += 1 + decimals;
    }
    // A time of day, a code, a rank.
    if bytes.get(end) == Some(&b':') && digits(end + 1) > 0 {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
        let code = &rest[..length];
        let kind = TextTokenKind::Code(code.to_owned());
        return (Some(TextToken { text: code.to_owned(), start, end: start + length, kind }), start + length);
    }
    let letters: String = rest[end..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let is_scale = SCALES.iter().any(|(name, _)| letters.eq_ignore_ascii_case(name));
    if !letters.is_empty() && !is_scale && !is_unit(&letters) {
        let length = end + letters.len();
        if ["st", "nd", "rd", "th"].contains(&letters.to_lowercase().as_str()) {
            let rank = rest[..end].parse().ok().filter(|_| is_rank(text, start, start + length));
            let text = rest[..length].to_owned();
            let token =
                rank.map(|rank| TextToken { text, start, end: start + length, kind: TextTokenKind::Rank(rank) });
            return (token, start + length);
        }
        let code = &rest[..length];
        let kind = TextTokenKind::Code(code.to_owned());
        return (Some(TextToken { text: code.to_owned(), start, end: start + length, kind }), start + length);
    }
    let line = text[..start].rsplit('\n').next().unwrap_or_default().trim();
    let ends_item = rest[end..].starts_with(". ") || rest[end..].starts_with(") ");
    if line.trim_matches(['-', '*', '(', ' ', '#']).is_empty() && decimals == 0 && ends_item {
        return (None, start + end);
    }
    let plain: String = rest[..end].chars().filter(|c| !matches!(c, ',' | '_')).collect();
    let Ok(mut value) = plain.parse::<f64>() else { return (None, start + end) };
    let mut tolerance = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    let after = rest[end..].trim_start();
    let word: String = after.chars().take_while(|c| c.is_alphabetic()).collect();
    let scale = if letters.is_empty() { &word } else { &letters };
    // A letter behind a space is a unit, not a scale.
    let scale =
        SCALES.iter().find(|(name, _)| scale.eq_ignore_ascii_case(name) && (!letters.is_empty() || name.len() > 2));
    if let Some((_, factor)) = scale {
        value *= factor;
        tolerance *= factor;
    }
    let is_percent = after.starts_with('%') || word.eq_ignore_ascii_case("percent");
    let before = text[..start].chars().next_back();
    let is_negative =
        matches!(before, Some('-' | '−')) && text[..start].chars().rev().nth(1).is_none_or(|c| !c.is_alphanumeric());
    if is_negative {
        value = -value;
    }
    let sign = if is_negative { before.map_or(0, char::len_utf8) } else { 0 };
    let token = TextToken {
        text: text[start - sign..start + end].to_owned(),
        start: start - sign,
        end: start + end,
        kind: TextTokenKind::Number(WrittenNumber { value, tolerance, is_percent }),
    };
    (Some(token), start + end + letters.len())
}

/// Whether letters right behind a number are a unit.
fn is_unit(letters: &str) -> bool {
    ["ms", "s", "h", "min", "km", "kg", "g", "cm", "mm", "gb", "mb", "kb", "tb", "x", "usd", "eur", "hp", "mpg"]
        .contains(&letters.to_lowercase().as_str())
}

/// Returns the dates of a text: `2014-03-09`, `March 9, 2014`, `9 March 2014`.
fn dates_in(text: &str) -> Vec<TextToken> {
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
            let digits = digits.strip_suffix("th").or(digits.strip_suffix("st")).unwrap_or(digits);
            Some((*start, start + digits.len(), digits.parse().ok()?))
        };
        let (next, after) = (number(Some(index + 1)), number(Some(index + 2)));
        if let (Some((_, _, day)), Some((_, end, year))) = (next, after) {
            push(*start, end, of_day(year, month, day));
        }
        if let (Some((begin, _, day)), Some((_, end, year))) = (number(index.checked_sub(1)), next)
            && day <= 31
            && year > 31
        {
            push(begin, end, of_day(year, month, day));
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

/// Returns the sentences of a text, each with where it begins. Lines end sentences.
pub(super) fn sentences(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = sentence_end(&text[start..]).map_or(text.len(), |end| start + end);
        found.push((&text[start..end], start));
        start = end;
    }
    found
}

/// Returns where the first sentence of a text ends, behind the space that ends it.
pub(crate) fn sentence_end(text: &str) -> Option<usize> {
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        if c == '\n' || (c.is_whitespace() && matches!(previous, '.' | '!' | '?')) {
            // The number of a list ends no sentence.
            let before = text[..index].trim().trim_start_matches(['-', '*', '#', ' ']);
            let is_item = before.strip_suffix('.').is_some_and(|item| item.chars().all(|c| c.is_ascii_digit()));
            if c == '\n' || !is_item {
                return Some(index + c.len_utf8());
            }
        }
        previous = c;
    }
    None
}

/// Returns the clauses of a sentence, each with where it begins.
pub(super) fn clauses(sentence: &str) -> Vec<(&str, usize)> {
    const MARKS: [&str; 9] = [", ", "; ", " and ", " while ", " but ", " whereas ", " vs ", " versus ", " | "];
    // All at once: a sentence may be as long as an answer.
    let mut marks: Vec<(usize, usize)> =
        MARKS.iter().flat_map(|mark| sentence.match_indices(mark).map(|(at, _)| (at, mark.len()))).collect();
    marks.sort_unstable();
    let dates = dates_in(sentence);
    let mut found = Vec::new();
    let mut start = 0;
    let mut within = 0;
    for (at, length) in marks {
        if at < start.max(within) {
            continue;
        }
        // `March 9, 2014` is one.
        if let Some(date) = dates.iter().find(|date| date.start < at && at < date.end) {
            within = date.end;
            continue;
        }
        let end = at + length;
        found.push((&sentence[start..end], start));
        start = end;
    }
    if start < sentence.len() || found.is_empty() {
        found.push((&sentence[start..], start));
    }
    found
}

/// Whether a text is a name, and no number, date or time.
pub(super) fn is_name(text: &str) -> bool {
    let is_day = text.get(..10).is_some_and(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok());
    text.chars().any(char::is_alphabetic) && text.parse::<f64>().is_err() && !is_day
}

/// Returns where a name stands in a text as words of its own, whatever the case.
pub(super) fn find_word(text: &str, name: &str) -> Option<usize> {
    let (lower, wanted) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut from = 0;
    while let Some(at) = lower.get(from..)?.find(&wanted).map(|at| from + at) {
        let end = at + wanted.len();
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !is_letter(text[..at].chars().next_back()) && !is_letter(text[end..].chars().next()) {
            return Some(at);
        }
        from = at + wanted.chars().next().map_or(1, char::len_utf8);
    }
    None
}

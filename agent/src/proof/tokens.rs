//! The numbers, dates and codes of a text, and its sentences and clauses.

use chrono::NaiveDate;
use serde_json::Value;

use super::dates::dates_in;
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
}

impl WrittenNumber {
    pub(super) fn whole(number: usize) -> Self {
        Self { value: number as f64, tolerance: 0.5, is_percent: false }
    }

    /// Whether `value` is written so when it is rounded to as many digits.
    pub(super) fn stands_for(&self, value: f64, scale: ShareScale) -> bool {
        let close =
            |value: f64| (value - self.value).abs() <= self.tolerance * 1.000_001 && !self.is_other_whole(value);
        let as_it_is = !(self.is_percent && matches!(scale, ShareScale::Fraction | ShareScale::Amount));
        let as_percent = self.is_percent && !matches!(scale, ShareScale::Percent | ShareScale::Amount);
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
            TextTokenKind::Number(number) => match number_of(value) {
                Some(value) => number.stands_for(value, scale),
                None => self.is_year_of(value),
            },
            TextTokenKind::Date(days) => value.as_str().is_some_and(|text| match self.month() {
                Some(month) => text.starts_with(&month.format("%Y-%m").to_string()),
                None => days.iter().any(|day| text.starts_with(&day.format("%Y-%m-%d").to_string())),
            }),
            TextTokenKind::Rank(_) | TextTokenKind::Factor(_) => false,
            TextTokenKind::Code(code) => value.as_str().is_some_and(|text| {
                let text = text.to_lowercase();
                // A time of day that is counted to 12 there as well.
                let is_of_half_day = text.ends_with("am") || text.ends_with("pm");
                text.contains(&code.to_lowercase()) || (is_of_half_day && text.contains(&self.text.to_lowercase()))
            }),
        }
    }
}

impl TextToken {
    /// Whether a cell holds a day of the year that is written.
    fn is_year_of(&self, value: &Value) -> bool {
        let year = day_of(value).map(|day| day.format("%Y").to_string());
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

    /// Whether a text says the same: the same number or code, or a day that both can be.
    pub(super) fn is_said_by(&self, known: &Self) -> bool {
        match (&self.kind, &known.kind) {
            (TextTokenKind::Date(days), TextTokenKind::Date(others)) => days.iter().any(|day| others.contains(day)),
            (kind, other) => kind == other,
        }
    }

    /// Whether a cell holds the loss that is written: `lost 45,210` of a profit of -45210.
    pub(super) fn is_loss_of(&self, value: &Value, clause: &str) -> bool {
        const LOSSES: [&str; 14] = [
            "lost",
            "loss",
            "losses",
            "deficit",
            "negative",
            "shortfall",
            "fell",
            "dropped",
            "declined",
            "decreased",
            "shrank",
            "early",
            "down",
            "below",
        ];
        let TextTokenKind::Number(number) = &self.kind else { return false };
        let is_less =
            number_of(value).is_some_and(|value| value < 0.0 && number.stands_for(-value, ShareScale::Unknown));
        is_less && number.value > 0.0 && LOSSES.iter().any(|word| find_word(clause, word).is_some())
    }

    /// Returns the word that makes a number no claim about rows: `step 2`, `version 2.1`, `top 3`, `1 table`.
    pub(super) fn aside_word(&self, clause: &str) -> Option<&'static str> {
        const BEFORE: [&str; 15] = [
            "step", "version", "table", "chapter", "section", "figure", "option", "appendix", "page", "note",
            "example", "top", "reading", "question", "phase",
        ];
        const AFTER: [&str; 9] =
            ["table", "tables", "query", "queries", "column", "columns", "database", "databases", "steps"];
        let before = last_words(&clause[..self.start], 1);
        let after = clause[self.end..].split_whitespace().next().unwrap_or_default();
        let after = after.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_number = matches!(self.kind, TextTokenKind::Number(_));
        let found = BEFORE.into_iter().find(|word| before == *word);
        found.or_else(|| AFTER.into_iter().find(|word| after == *word)).filter(|_| is_number)
    }
}

/// Returns the day that a cell holds.
pub(super) fn day_of(value: &Value) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(value.as_str()?.get(..10)?, "%Y-%m-%d").ok()
}

/// Returns the last words of a text, in lower case with one space between them.
pub(super) fn last_words(text: &str, most: usize) -> String {
    let mut words: Vec<String> = text.split_whitespace().rev().take(most).map(str::to_lowercase).collect();
    words.reverse();
    words.join(" ").trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// Returns what `million` and its like stand for.
pub(super) fn scale_of(word: &str) -> Option<f64> {
    let known = SCALES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name) && name.len() > 2);
    known.map(|(_, factor)| *factor)
}

/// Returns how far a scale rounds: `2 million` may be 2.1, and `two hundred` are no 240.
fn tolerance_scale(factor: f64) -> f64 {
    if factor > HUNDRED { factor } else { 1.0 }
}

const HUNDRED: f64 = 1e2;
const SCALES: [(&str, f64); 9] = [
    ("hundred", HUNDRED),
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("k", 1e3),
    ("mn", 1e6),
    ("bn", 1e9),
    ("m", 1e6),
];
const WORDS: [&str; 18] = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
/// Units of areas and volumes, and a gas.
const UNITS_WITH_DIGITS: [&str; 8] = ["km2", "m2", "m3", "cm2", "cm3", "ft2", "mi2", "co2"];
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
            let mut end = word_end;
            if word.chars().any(|c| c.is_ascii_digit()) {
                if !UNITS_WITH_DIGITS.iter().any(|unit| word.eq_ignore_ascii_case(unit)) {
                    let kind = TextTokenKind::Code(word.to_owned());
                    found.push(TextToken { text: word.to_owned(), start: at, end, kind });
                }
            } else if let Some(kind) = rank_or_factor(text, at, end) {
                found.push(TextToken { text: word.to_owned(), start: at, end, kind });
            } else if let Some((number, number_end)) = number_in_words(text, at, end) {
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

/// Returns the number that words are, `seven`, `a dozen` or `thirty-four`, and where it ends.
fn number_in_words(text: &str, start: usize, end: usize) -> Option<(WrittenNumber, usize)> {
    let position = |words: &[&str], word: &str| words.iter().position(|known| word.eq_ignore_ascii_case(known));
    let word_at = |at: usize| {
        let length = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - at);
        &text[at..at + length]
    };
    let word = &text[start..end];
    let (value, mut number_end) = match (position(&WORDS, word), position(&TENS, word)) {
        (Some(index), _) => (index + 2, end),
        (None, Some(index)) => {
            let tens = (index + 2) * 10;
            let unit = text[end..].strip_prefix(['-', ' ']).map(|_| word_at(end + 1)).unwrap_or_default();
            // `The twenty-first` is a day or a century.
            if text[end..].starts_with('-') && position(&ORDINALS, unit).is_some() {
                return None;
            }
            match (unit.eq_ignore_ascii_case("one"), position(&WORDS[..8], unit)) {
                (true, _) => (tens + 1, end + 1 + unit.len()),
                (false, Some(index)) => (tens + index + 2, end + 1 + unit.len()),
                _ => (tens, end),
            }
        }
        _ if word.eq_ignore_ascii_case("dozen") => (12, end),
        _ => return None,
    };
    let mut number = WrittenNumber::whole(value);
    let scale = text[number_end..].strip_prefix(' ').map(|_| word_at(number_end + 1)).unwrap_or_default();
    if let Some(factor) = scale_of(scale) {
        number.value *= factor;
        number.tolerance *= tolerance_scale(factor);
        number_end += 1 + scale.len();
    }
    let behind = text[number_end..].trim_start();
    let next: String = behind.chars().take("percent".len()).collect();
    number.is_percent = behind.starts_with('%') || next.eq_ignore_ascii_case("percent");
    Some((number, number_end))
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
    // Groups of three, with the same mark between them; a dot stands between three groups at least.
    let is_group = |at: usize, mark: &str| rest[at..].starts_with(mark) && digits(at + mark.len()) == 3;
    let mark = GROUP_MARKS.into_iter().find(|mark| {
        let second = end + mark.len() + 3;
        end <= 3 && is_group(end, mark) && (*mark != "." || is_group(second, mark))
    });
    if let Some(mark) = mark {
        while is_group(end, mark) {
            end += mark.len() + 3;
        }
    }
    let whole_end = end;
    let mut decimals = 0;
    let has_decimals = match bytes.get(end) {
        Some(b'.') => digits(end + 1) > 0,
        // `37,46`, as many languages write.
        Some(b',') => mark != Some(",") && (1..=2).contains(&digits(end + 1)) && whole_end <= 3,
        _ => false,
    };
    if has_decimals {
        decimals = digits(end + 1);
        end += 1 + decimals;
    }
    // A time of day, a code, a rank.
    if bytes.get(end) == Some(&b':') && digits(end + 1) > 0 {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
        let code = &rest[..length];
        let kind = TextTokenKind::Code(hour_of_day(code, &rest[length..]));
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
    // The places of a table's rows: `| 1 | Berlin |`.
    let begins_row = line.starts_with('|') && line.trim_matches(['|', ' ']).is_empty();
    if begins_row && decimals == 0 && whole_end <= 2 && rest[end..].trim_start().starts_with('|') {
        return (None, start + end);
    }
    let whole = rest[..whole_end].chars().filter(char::is_ascii_digit);
    let plain: String = match decimals {
        0 => whole.collect(),
        _ => whole.chain(['.']).chain(rest[whole_end + 1..end].chars()).collect(),
    };
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
        tolerance *= tolerance_scale(*factor);
    }
    let is_percent = after.starts_with('%') || ["percent", "percentage"].contains(&word.to_ascii_lowercase().as_str());
    let before = text[..start].chars().next_back();
    let is_negative =
        matches!(before, Some('-' | '−')) && text[..start].chars().rev().nth(1).is_none_or(|c| !c.is_alphanumeric());
    let is_said_negative = last_words(&text[..start], 1) == "minus";
    if is_negative || is_said_negative {
        value = -value;
    }
    let sign = match (is_negative, is_said_negative) {
        (true, _) => before.map_or(0, char::len_utf8),
        (false, true) => text[..start].len() - text[..start].trim_end().len() + "minus".len(),
        _ => 0,
    };
    let token = TextToken {
        text: text[start - sign..start + end].to_owned(),
        start: start - sign,
        end: start + end,
        kind: TextTokenKind::Number(WrittenNumber { value, tolerance, is_percent }),
    };
    (Some(token), start + end + letters.len())
}

/// Marks between the groups of three digits of a number.
const GROUP_MARKS: [&str; 9] = [",", "_", " ", "\u{a0}", "\u{202f}", "\u{2009}", "'", "\u{2019}", "."];

/// Returns a time of day as it is counted to 24 hours: `17:30` of `5:30 PM`.
fn hour_of_day(time: &str, behind: &str) -> String {
    let behind: String = behind.trim_start().chars().filter(|c| *c != '.').take(2).collect();
    let is_afternoon = behind.eq_ignore_ascii_case("pm");
    match time.split_once(':').and_then(|(hour, rest)| Some((hour.parse::<u32>().ok()?, rest))) {
        Some((hour, rest)) if is_afternoon && hour < 12 => format!("{}:{rest}", hour + 12),
        Some((12, rest)) if behind.eq_ignore_ascii_case("am") => format!("00:{rest}"),
        _ => time.to_owned(),
    }
}

/// Whether letters right behind a number are a unit.
fn is_unit(letters: &str) -> bool {
    ["ms", "s", "h", "min", "km", "kg", "g", "cm", "mm", "gb", "mb", "kb", "tb", "x", "usd", "eur", "hp", "mpg"]
        .contains(&letters.to_lowercase().as_str())
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

//! The sentences and clauses of a text.

use super::common_words::is_common_word;
use super::dates::{begins_month, dates_in};
use super::foreign_numbers::added_part;
use super::numbers::number_in_words;
use super::tokens::last_words;

/// Returns the fenced blocks of a text that hold a query or a program, by bytes.
pub(super) fn code_fences(text: &str) -> Vec<std::ops::Range<usize>> {
    let fences: Vec<usize> = text.match_indices("```").map(|(at, _)| at).collect();
    let is_code = |block: &str| {
        let first = block.split_whitespace().next().unwrap_or_default().to_lowercase();
        ["sql", "kql", "kusto", "python", "select", "with", "postgresql"].contains(&first.as_str())
    };
    fences
        .chunks(2)
        .filter_map(|pair| {
            let (open, close) = (*pair.first()?, pair.get(1).copied().unwrap_or(text.len()));
            is_code(text.get(open + 3..close)?).then_some(open..close)
        })
        .collect()
}

/// Bytes of a sentence without an end.
const MAX_SENTENCE: usize = 600;

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

/// Returns where the first sentence of a text ends, behind the space that ends it. One without an end ends with the word
/// behind its first `MAX_SENTENCE` bytes: each number of a sentence is looked at beside all of it.
pub fn sentence_end(text: &str) -> Option<usize> {
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        // Chinese and Japanese write no spaces.
        let ends_by_itself = matches!(c, '。' | '！' | '？');
        if ends_by_itself || (index >= MAX_SENTENCE && (c.is_whitespace() || matches!(c, '、' | '，'))) {
            return Some(index + c.len_utf8());
        }
        if c == '\n' || (c.is_whitespace() && matches!(previous, '.' | '!' | '?')) {
            // The number of a list ends no sentence.
            let before = text[..index].trim().trim_start_matches(['-', '*', '#', ' ']);
            let is_item = before.strip_suffix('.').is_some_and(|item| item.chars().all(|c| c.is_ascii_digit()));
            // `Am 5. November 2023`.
            let is_day = previous == '.' && is_day_of_month(&text[..index], &text[index..]);
            let is_short = previous == '.' && is_abbreviation(&text[..index], &text[index..]);
            if c == '\n' || !(is_item || is_day || is_short) {
                return Some(index + c.len_utf8());
            }
        }
        previous = c;
    }
    None
}

/// Whether a text ends with a word in short, or an initial, behind which its sentence goes on: `Dr. Hale`, `R. Whitfield`.
fn is_abbreviation(before: &str, behind: &str) -> bool {
    const SHORT: [&str; 14] =
        ["dr", "mr", "mrs", "ms", "prof", "st", "approx", "ca", "vs", "bzw", "ggf", "env", "aprox", "incl"];
    let word = before.trim_end_matches('.').rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_initial = word.len() == 1 && word.starts_with(char::is_uppercase) && word != "I";
    // `Vitamin B. There were`.
    let next = behind.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    let is_before_name =
        next.is_empty() || (next.starts_with(char::is_uppercase) && !is_common_word(&next.to_lowercase()));
    // `CA` is a state.
    let is_short = word.ends_with(char::is_lowercase) && SHORT.contains(&word.to_lowercase().as_str());
    // `I.e. 0.21 %`, and no `until 5 p.m. There were`.
    let mut last = before.chars().rev();
    let is_dotted = last.next() == Some('.')
        && last.next().is_some_and(char::is_alphabetic)
        && last.next() == Some('.')
        && !behind.trim_start().starts_with(char::is_uppercase);
    is_short || is_dotted || (is_initial && is_before_name)
}

/// Whether a text ends with the day of a month, as some languages write it, and the month follows, as far as one sees.
fn is_day_of_month(before: &str, behind: &str) -> bool {
    let day = last_words(before, 1);
    let day = day.trim_end_matches('.');
    let is_day = (1..=2).contains(&day.len()) && day.chars().all(|c| c.is_ascii_digit());
    let month = behind.split_whitespace().next().unwrap_or_default().to_lowercase();
    // `Vom 2. bis 5. Juni`.
    is_day && (begins_month(&month) || "bis".starts_with(&month))
}

/// Returns the clauses of a sentence, each with where it begins.
pub(super) fn clauses(sentence: &str) -> Vec<(&str, usize)> {
    const MARKS: [&str; 9] = [", ", "; ", " and ", " while ", " but ", " whereas ", " vs ", " versus ", " | "];
    /// Words of other languages that end a clause where a number in digits follows: `em A e 90 % em B`.
    const BEFORE_NUMBERS: [&str; 4] = [" und ", " et ", " e ", " y "];
    // All at once: a sentence may be as long as an answer.
    let find = |mark: &'static str| sentence.match_indices(mark).map(move |(at, _)| (at, mark.len()));
    let is_before_number =
        |(at, length): &(usize, usize)| sentence[at + length..].starts_with(|c: char| c.is_ascii_digit());
    let mut marks: Vec<(usize, usize)> = MARKS.into_iter().flat_map(find).collect();
    marks.extend(BEFORE_NUMBERS.into_iter().flat_map(find).filter(is_before_number));
    marks.sort_unstable();
    let dates = dates_in(sentence);
    let mut found = Vec::new();
    let mut start = 0;
    let mut within = 0;
    for (at, length) in marks {
        // `Two and a half hours` is one number.
        if at < start.max(within) || added_part(&sentence[at..]).is_some() || goes_on_in_words(sentence, at) {
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

/// Whether a number in words goes on behind the `and` at a place: `six hundred and fifty`.
fn goes_on_in_words(sentence: &str, at: usize) -> bool {
    let Some(behind) = sentence[at..].strip_prefix(" and ") else { return false };
    let next = behind.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let start = sentence.len() - behind.len();
    let is_scale = ["hundred", "thousand"].contains(&last_words(&sentence[..at], 1).as_str());
    let number = if is_scale && !next.is_empty() { number_in_words(sentence, start, start + next.len()) } else { None };
    number.is_some_and(|(number, _)| number.value < 100.0)
}

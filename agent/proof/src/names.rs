//! Names that an answer gets wrong: those that no row, question or query has, where the rows say whose a number is or who is asked for.
//!
//! Only what can be nothing else is doubted: rows must have names, not codes, and a name in another language than English is
//! left alone.

use std::collections::HashSet;

use serde_json::Value;

use super::common_words::is_common_word;
use super::rows::ProofRows;
use super::tokens::{find_word, is_name, last_words};
use super::{CellReference, ProofLink, ProofOrigin};

/// Rows of a result whose names an answer is expected to say.
const FEW_ROWS: usize = 3;
/// The shortest name, and of how many words it may be.
const SHORTEST_NAME: usize = 3;
const MOST_WORDS: usize = 4;
/// Letters of a code at most.
const LONGEST_CODE: usize = 4;
/// Characters of an answer that is nothing but a name.
const NAME_ALONE: usize = 60;

/// Words that make a sentence English.
const ENGLISH: [&str; 7] = [" the ", " has ", " had ", " with ", " were ", " are ", " sold "];
/// Words behind a name that begins a sentence.
const SAID_OF: [&str; 18] = [
    "had", "has", "have", "is", "was", "were", "leads", "led", "recorded", "sold", "made", "comes", "came", "ranks",
    "ranked", "operated", "received", "earned",
];

/// What may be named in an answer.
pub(super) struct NamedRows<'a> {
    result: &'a ProofRows,
    words: HashSet<String>,
    /// The letters of each, where rows have codes in the place of names: `UA` and `DL`.
    code_length: Option<usize>,
}

/// A name in a text, by bytes.
pub(super) type NamePlace = (usize, usize);

impl<'a> NamedRows<'a> {
    /// Takes in the words of rows, of the question and of queries; `None` where the rows have no names.
    pub(super) fn new(result: &'a ProofRows, others: &[ProofRows], said: &str) -> Option<Self> {
        let labels = result.label_columns();
        let names: Vec<&str> = result
            .rows
            .iter()
            .flat_map(|row| labels.iter().filter_map(move |column| row.get(*column)?.as_str()))
            .filter(|name| is_name(name))
            .collect();
        let is_written_out =
            |name: &&str| name.chars().count() >= SHORTEST_NAME && name.chars().any(char::is_lowercase);
        let is_code = |name: &&str| name.len() <= LONGEST_CODE && name.chars().all(is_code_letter);
        let code_length = names
            .first()
            .map(|name| name.len())
            .filter(|length| names.len() > 1 && names.iter().all(|name| is_code(name) && name.len() == *length));
        // Codes stand for names that people write out.
        if code_length.is_none() && !names.iter().any(is_written_out) {
            return None;
        }
        let mut words = HashSet::new();
        let mut add = |text: &str| words.extend(words_of(text).map(str::to_lowercase));
        for one in others.iter().chain([result]) {
            one.columns.iter().for_each(|column| add(&column.replace('_', " ")));
            add(&one.query_text);
            for (_, _, value) in one.cells() {
                if let Value::String(text) = value {
                    add(text);
                }
            }
        }
        add(said);
        Some(Self { result, words, code_length })
    }

    fn is_unknown(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        let singular = lower.trim_end_matches('s');
        word.chars().count() >= SHORTEST_NAME
            && word.starts_with(char::is_uppercase)
            && word.chars().skip(1).any(char::is_lowercase)
            && word.chars().all(char::is_alphabetic)
            && !is_common_word(&lower)
            && !self.words.contains(&lower)
            && !self.words.iter().any(|known| known.trim_end_matches('s') == singular)
    }

    /// Whether a text is a code like those of the rows, and none of them.
    fn is_unknown_code(&self, text: &str) -> bool {
        self.code_length == Some(text.len())
            && text.chars().all(is_code_letter)
            && text.chars().any(char::is_alphabetic)
            && !self.words.contains(&text.to_lowercase())
    }

    /// Whether a text is one name that nobody knows.
    fn is_unknown_name(&self, text: &str) -> bool {
        if self.code_length.is_some() {
            return self.is_unknown_code(text);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        (1..=MOST_WORDS).contains(&words.len()) && words.iter().all(|word| self.is_unknown(word))
    }

    /// Returns the unknown names of a sentence: words with a capital, several together or one within the sentence; one
    /// that begins it where something is said of it.
    fn names_in(&self, sentence: &str) -> Vec<NamePlace> {
        let words: Vec<(usize, &str)> = sentence
            .split_whitespace()
            .map(|word| (word.as_ptr() as usize - sentence.as_ptr() as usize, word))
            .collect();
        let plain = |word: &str| -> String { word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned() };
        let bare = |word: &str| plain(word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word));
        let mut found: Vec<NamePlace> = Vec::new();
        if self.code_length.is_some() {
            return found;
        }
        let mut index = 0;
        while index < words.len() {
            let count = words[index..].iter().take_while(|(_, word)| self.is_unknown(&bare(word))).count();
            if count == 0 {
                index += 1;
                continue;
            }
            let begins = index == 0 || words[..index].iter().all(|(_, word)| plain(word).is_empty());
            let next = words.get(index + count).map(|(_, word)| plain(word).to_lowercase()).unwrap_or_default();
            let is_said_of = SAID_OF.contains(&next.as_str());
            if count <= MOST_WORDS && (!begins || count > 1 || is_said_of) {
                let (start, first) = words[index];
                let (last_start, last) = words[index + count - 1];
                let first_letter = first.find(char::is_alphanumeric).unwrap_or_default();
                let end = last_start + last.find(&bare(last)).unwrap_or_default() + bare(last).len();
                found.push((start + first_letter, end));
            }
            index += count;
        }
        found
    }

    /// Returns the names that are wrong in a sentence, whose other parts have the origins of `links`.
    pub(super) fn wrong_names(&self, sentence: &str, links: &[ProofLink]) -> Vec<NamePlace> {
        let listed = self.wrong_in_list(sentence);
        if !listed.is_empty() || !is_english(sentence) || self.names_a_row(sentence) {
            return listed;
        }
        let rests_on_cell = links.iter().any(|link| {
            let is_number = link.text.chars().any(|c| c.is_ascii_digit());
            let cell = link.origin.first_cell();
            let is_of_result =
                |cell: &CellReference| cell.run_id == self.result.run_id && cell.call_index == self.result.call_index;
            is_number && matches!(link.origin, ProofOrigin::Cell { .. }) && cell.is_some_and(is_of_result)
        });
        if rests_on_cell { self.names_in(sentence) } else { Vec::new() }
    }

    /// Returns the unknown names among those of a list of which others are rows': `Ada, Grace and Edsger`.
    fn wrong_in_list(&self, sentence: &str) -> Vec<NamePlace> {
        let mut wrong = Vec::new();
        let mut known = 0;
        let mut start = 0;
        let mut part = |from: usize, to: usize| {
            let text = &sentence[from..to];
            let text = text.rsplit(':').next().unwrap_or(text);
            let trimmed = text.trim_matches(|c: char| !c.is_alphanumeric());
            let offset = trimmed.as_ptr() as usize - sentence.as_ptr() as usize;
            if self.is_row_name(trimmed) || last_is_row_name(self, trimmed) {
                known += 1;
            } else if self.is_unknown_name(trimmed) {
                wrong.push((offset, offset + trimmed.len()));
            }
        };
        let separators = [", and ", ", or ", ", ", " and ", " or "];
        while let Some((at, length)) = separators
            .iter()
            .filter_map(|separator| Some((start + sentence[start..].find(separator)?, separator.len())))
            .min_by_key(|(at, length)| (*at, usize::MAX - *length))
        {
            part(start, at);
            start = at + length;
        }
        part(start, sentence.len());
        if known > 1 { wrong } else { Vec::new() }
    }

    /// Returns the lines of an answer that are nothing but an unknown name, where two or more are nothing but a row's.
    pub(super) fn wrong_lines(&self, text: &str) -> Vec<NamePlace> {
        let lines = text.split('\n').map(|line| {
            let trimmed = line.trim_matches(|c: char| !c.is_alphabetic());
            (trimmed.as_ptr() as usize - text.as_ptr() as usize, trimmed)
        });
        let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
        let known = lines.iter().filter(|(_, line)| self.is_row_name(line)).count();
        let wrong = lines.iter().filter(|(_, line)| self.is_unknown_name(line));
        if known > 1 { wrong.map(|(start, line)| (*start, start + line.len())).collect() } else { Vec::new() }
    }

    /// Returns the names of an answer that names none of the few rows that there are, and somebody else.
    pub(super) fn wrong_answer(&self, text: &str) -> Vec<NamePlace> {
        if self.result.rows.is_empty() || self.result.rows.len() > FEW_ROWS || self.names_a_row(text) {
            return Vec::new();
        }
        let alone = text.trim().trim_matches(|c: char| !c.is_alphanumeric());
        if alone.len() <= NAME_ALONE && alone.split_whitespace().count() > 1 && self.is_unknown_name(alone) {
            let start = alone.as_ptr() as usize - text.as_ptr() as usize;
            return vec![(start, start + alone.len())];
        }
        let found = self
            .names_in(text)
            .into_iter()
            .filter(|(start, _)| ["is", "was", "by", "are", "were"].contains(&last_words(&text[..*start], 1).as_str()));
        if is_english(text) { found.collect() } else { Vec::new() }
    }

    /// Whether a text says a row's name, or a word of one.
    fn names_a_row(&self, text: &str) -> bool {
        let labels = self.result.label_columns();
        let names = self.result.rows.iter().flat_map(|row| labels.iter().filter_map(move |column| row.get(*column)));
        let mut names = names.filter_map(Value::as_str);
        names.any(|name| {
            find_word(text, name).is_some()
                || words_of(name).any(|word| word.chars().count() >= SHORTEST_NAME && find_word(text, word).is_some())
        })
    }

    fn is_row_name(&self, text: &str) -> bool {
        let labels = self.result.label_columns();
        let mut names =
            self.result.rows.iter().flat_map(|row| labels.iter().filter_map(move |column| row.get(*column)));
        names.any(|name| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(text)))
    }
}

/// Whether a text ends with a row's name: `The names are Ada`.
fn last_is_row_name(known: &NamedRows<'_>, text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    (1..=MOST_WORDS.min(words.len())).any(|count| known.is_row_name(&words[words.len() - count..].join(" ")))
}

fn is_code_letter(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_english(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    ENGLISH.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_routes(text: &str) -> Vec<String> {
        let routes = json!([
            ["Oban", 1460, 62, "2026-08-21"],
            ["Mallaig", 980, 118, "2026-05-09"],
            ["Brodick", 1825, 203, "2026-09-04"],
            ["Uig", 610, 29, "2026-10-25"],
            ["Kintyre", 800, 40, "2026-07-14"],
        ]);
        doubted(&["route", "sailings", "cancelled", "checked_on"], routes, text)
    }

    #[test]
    fn a_row_may_be_the_first_by_a_rate_that_is_said() {
        assert_eq!(of_routes("Oban is the most reliable at 4.2 %."), Vec::<String>::new());
        assert_eq!(of_routes("Kintyre is the most reliable at 5.0 %."), ["Kintyre"]);
    }

    #[test]
    fn a_row_may_be_the_first_by_its_day() {
        assert_eq!(of_routes("Mallaig has waited longest for its check."), Vec::<String>::new());
        assert_eq!(of_routes("Kintyre has waited longest for its check."), ["Kintyre"]);
    }
}

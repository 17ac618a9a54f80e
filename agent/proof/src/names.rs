//! Names that an answer gets wrong: a row that is said to be the most or the least and is not, and names that no row, question
//! or query has, where the rows say whose a number is or who is asked for.
//!
//! Only what can be nothing else is doubted: rows must have names, not codes, and a name in another language than English is
//! left alone.

use std::collections::HashSet;

use chrono::NaiveDate;
use serde_json::Value;

use super::common_words::is_common_word;
use super::foreign_extremes::foreign_extreme;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, day_of, find_word, is_name, last_words, says, tokens_in};
use super::{CellReference, ProofLink, ProofOrigin, number_of};

/// Rows of which the most and the least are known.
const MAX_RANKED: usize = 500;
/// Rows of a result whose names an answer is expected to say.
const FEW_ROWS: usize = 3;
/// The shortest name, and of how many words it may be.
const SHORTEST_NAME: usize = 3;
const MOST_WORDS: usize = 4;
/// Letters of a code at most.
const LONGEST_CODE: usize = 4;
/// Characters of an answer that is nothing but a name.
const NAME_ALONE: usize = 60;

/// What a word says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Greatest,
    Least,
    /// Either: nobody knows whether the oldest has the greatest value or the least.
    Either,
}

pub(super) const GREATEST: [&str; 17] = [
    "highest",
    "largest",
    "greatest",
    "biggest",
    "longest",
    "busiest",
    "richest",
    "tallest",
    "leads",
    "lead",
    "leading",
    "peak",
    "peaks",
    "peaked",
    "strongest",
    "heaviest",
    "maximum",
];
pub(super) const LEAST: [&str; 10] =
    ["lowest", "smallest", "fewest", "shortest", "cheapest", "quietest", "weakest", "lightest", "minimum", "least"];
const EITHER: [&str; 22] = [
    "finished last",
    "finishes last",
    "came last",
    "comes last",
    "ranks last",
    "in last place",
    "finished first",
    "came first",
    "best",
    "worst",
    "warmest",
    "hottest",
    "coldest",
    "oldest",
    "youngest",
    "fastest",
    "slowest",
    "earliest",
    "latest",
    "newest",
    "closest",
    "farthest",
];
/// Words behind `most` that mean how often something is.
const OFTEN: [&str; 8] = ["common", "frequent", "popular", "visited", "used", "sold", "ordered", "expensive"];
/// Words by which a sentence says something else than that a row is the first.
const OTHERWISE: [&str; 27] = [
    "second", "third", "fourth", "fifth", "2nd", "3rd", "4th", "5th", "next", "among", "not", "than", "except",
    "after", "behind", "unlike", "before", "but", "nor", "neither", "never", "besides", "other", "almost", "nearly",
    "if", "who",
];
/// Words that make a sentence English.
const ENGLISH: [&str; 7] = [" the ", " has ", " had ", " with ", " were ", " are ", " sold "];
/// Words behind a name that begins a sentence.
const SAID_OF: [&str; 18] = [
    "had", "has", "have", "is", "was", "were", "leads", "led", "recorded", "sold", "made", "comes", "came", "ranks",
    "ranked", "operated", "received", "earned",
];

/// Returns a clause with the name right behind it, where it has none of its own: `the shortest, Blue Harbour, has 288`.
pub(super) fn with_apposition<'t>(result: &ProofRows, place: TokenPlace<'t>) -> &'t str {
    let clause_end = place.offset + place.clause.len();
    let behind = place.sentence.get(clause_end..).unwrap_or_default();
    let length = behind.find([',', ';']).unwrap_or(behind.len());
    let is_open = place.clause.trim_end().ends_with(',') && result.labelled(place.clause).is_empty();
    let name = behind.get(..length).unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric());
    let is_row_name = |column: &usize| {
        let mut names = result.rows.iter().filter_map(|row| row.get(*column)?.as_str());
        names.any(|own| own.eq_ignore_ascii_case(name))
    };
    match is_open && result.label_columns().iter().any(is_row_name) {
        true => place.sentence.get(place.offset..clause_end + length).unwrap_or(place.clause),
        false => place.clause,
    }
}

/// Returns the row that a clause says is the most or the least, and that is neither in any column it can be about.
pub(super) fn wrong_extreme(result: &ProofRows, place: TokenPlace<'_>) -> Option<usize> {
    let (clause, sentence) = (with_apposition(result, place), place.sentence);
    if result.rows.len() < 2 || result.rows.len() > MAX_RANKED || result.rows.len() < result.row_count {
        return None;
    }
    let [row] = *result.labelled(clause).as_slice() else { return None };
    // A clause ends with the word that begins the next.
    let clause = clause.trim_end();
    let clause = clause.strip_suffix(" but").unwrap_or(clause);
    let says = |word: &str| find_word(clause, word).is_some();
    if OTHERWISE.iter().any(|word| says(word)) || clause.contains("n't") {
        return None;
    }
    // `The longest wait` of `avg_wait_min`, whatever else the sentence names.
    let measured = measured_columns(result, "");
    let is_said = |column: &usize| words_of(clause).any(|word| is_of_column(result, *column, &word.to_lowercase()));
    let said: Vec<usize> = measured.iter().copied().filter(is_said).collect();
    let mut columns = if said.is_empty() { measured_columns(result, sentence) } else { said };
    if ["expensive", "cheapest", "priciest", "dearest"].iter().any(|word| says(word)) {
        let is_price = |column: &usize| {
            let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
            ["price", "cost", "fee", "fare"].iter().any(|word| name.contains(word))
        };
        let prices: Vec<usize> = columns.iter().copied().filter(is_price).collect();
        columns = if prices.is_empty() { columns } else { prices };
    }
    let beside = columns_of_number_beside(result, row, clause, &measured);
    columns = if beside.is_empty() { columns } else { beside };
    let extreme = extreme_in(clause, result, &mut columns)?;
    // `The most reliable: only 5 % were late` is of that column.
    if extreme == Extreme::Either {
        let numbers = tokens_in(clause);
        let is_said = |column: &usize| has_number_of(result, row, *column, &numbers);
        let said: Vec<usize> = measured.iter().copied().filter(is_said).collect();
        columns = if said.is_empty() { columns } else { said };
    }
    let group = rows_of_group(result, row, clause);
    let mut is_compared = false;
    for column in columns {
        let numbers: Vec<(usize, f64)> =
            result.numbers(column).into_iter().filter(|(of, _)| group.contains(of)).collect();
        let Some((_, own)) = numbers.iter().find(|(of, _)| *of == row) else { continue };
        let is_greatest = numbers.iter().all(|(_, other)| other <= own);
        let is_least = numbers.iter().all(|(_, other)| other >= own);
        is_compared |= numbers.len() > 1;
        let is_so = match end_of(extreme, result.columns.get(column), clause) {
            Extreme::Greatest => is_greatest,
            Extreme::Least => is_least,
            Extreme::Either => is_greatest || is_least,
        };
        if is_so {
            return None;
        }
    }
    let is_otherwise = is_extreme_by_rate(result, row, clause, extreme, &group)
        || (speaks_of_age(clause) && is_first_or_last_day(result, row, &group));
    (is_compared && !is_otherwise).then_some(row)
}

/// Whether a row is the most or the least by one column for each of another, as a number of the clause says: `the most reliable
/// at 4.2 %` of 62 cancelled of 1,460.
fn is_extreme_by_rate(result: &ProofRows, row: usize, clause: &str, extreme: Extreme, group: &[usize]) -> bool {
    let numbers = tokens_in(clause);
    let is_said = |rate: f64| {
        numbers.iter().any(|token| match &token.kind {
            TextTokenKind::Number(number) => {
                (number.is_percent || number.tolerance < 0.5) && number.stands_for(rate, ShareScale::Fraction)
            }
            _ => false,
        })
    };
    let value = |of: usize, column: usize| number_of(result.rows.get(of)?.get(column)?);
    let rate = |of: usize, part: usize, whole: usize| Some(value(of, part)? / value(of, whole)?);
    let is_extreme = |part: usize, whole: usize| {
        let Some(own) = rate(row, part, whole).filter(|own| is_said(*own)) else { return false };
        let rates: Vec<f64> = group.iter().filter_map(|of| rate(*of, part, whole)).collect();
        let is_greatest = rates.iter().all(|other| *other <= own);
        let is_least = rates.iter().all(|other| *other >= own);
        match extreme {
            Extreme::Greatest => is_greatest,
            Extreme::Least => is_least,
            Extreme::Either => is_greatest || is_least,
        }
    };
    let columns = measured_columns(result, "");
    columns.iter().any(|part| columns.iter().any(|whole| part != whole && is_extreme(*part, *whole)))
}

/// Whether a clause may speak of how long ago something was: `the one that has waited longest`.
fn speaks_of_age(clause: &str) -> bool {
    says(clause, &["longest", "shortest", "oldest", "youngest", "newest", "earliest", "latest"])
}

/// Whether a row has the first or the last day of a column that is no name of its rows.
fn is_first_or_last_day(result: &ProofRows, row: usize, group: &[usize]) -> bool {
    let day_at = |of: usize, column: usize| day_of(result.rows.get(of)?.get(column)?);
    let labels = result.label_columns();
    (1..result.columns.len()).filter(|column| !labels.contains(column)).any(|column| {
        let Some(own) = day_at(row, column) else { return false };
        let days: Vec<NaiveDate> = group.iter().filter_map(|of| day_at(*of, column)).collect();
        days.len() > 1 && (days.iter().all(|day| *day <= own) || days.iter().all(|day| *day >= own))
    })
}

/// Returns the columns in which a row has the number that stands in parentheses behind its name: `highest in April
/// (250)` is of that column.
fn columns_of_number_beside(result: &ProofRows, row: usize, clause: &str, measured: &[usize]) -> Vec<usize> {
    const LINKS: [&str; 4] = ["in", "on", "at", "for"];
    if !clause.contains('(') {
        return Vec::new();
    }
    let Some((start, end)) = result.label_place(row, clause) else { return Vec::new() };
    let before = last_words(&clause[..start], 2);
    let is_linked = before
        .split_once(' ')
        .is_some_and(|(word, link)| LINKS.contains(&link) && (GREATEST.contains(&word) || LEAST.contains(&word)));
    let inside = clause[end..].trim_start().strip_prefix('(').and_then(|rest| rest.split(')').next());
    let Some(inside) = inside.filter(|_| is_linked) else { return Vec::new() };
    let numbers = tokens_in(inside);
    measured.iter().copied().filter(|column| has_number_of(result, row, *column, &numbers)).collect()
}

/// Whether a row has one of the numbers of a text in a column.
fn has_number_of(result: &ProofRows, row: usize, column: usize, tokens: &[TextToken]) -> bool {
    let Some(value) = result.rows.get(row).and_then(|row| row.get(column)) else { return false };
    let scale = result.share_scale(column);
    tokens.iter().any(|token| matches!(token.kind, TextTokenKind::Number(_)) && token.equals(value, scale))
}

/// Returns the rows among which a clause calls one the most: of `the largest in France` those of France; else all.
fn rows_of_group(result: &ProofRows, row: usize, clause: &str) -> Vec<usize> {
    let value = |of: usize, column: usize| result.rows.get(of).and_then(|row| row.get(column));
    let rows = || 0..result.rows.len();
    let is_said = |column: &usize| match value(row, *column) {
        Some(Value::String(group)) if group.len() > 1 => find_word(clause, group)
            .is_some_and(|at| ["in", "of", "among", "within"].contains(&last_words(&clause[..at], 1).as_str())),
        Some(Value::Bool(true)) => {
            let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
            find_word(clause, &name.trim_start_matches("is_").replace('_', " ")).is_some()
        }
        _ => false,
    };
    let is_shared = |column: &usize| rows().filter(|of| value(*of, *column) == value(row, *column)).count() > 1;
    let said: Vec<usize> = (0..result.columns.len()).filter(is_said).filter(is_shared).collect();
    rows().filter(|of| said.iter().all(|column| value(*of, *column) == value(row, *column))).collect()
}

/// Returns which end is meant by a word that may mean either, where a column's name tells.
fn end_of(extreme: Extreme, column: Option<&String>, clause: &str) -> Extreme {
    /// Parts of a column's name, words for its greatest values, and for its least.
    type EndWords = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);
    const ENDS: [EndWords; 6] = [
        (&["temp", "temperature", "tmax", "tmin", "tavg"], &["warmest", "hottest"], &["coldest"]),
        (&["age"], &["oldest"], &["youngest"]),
        (&["born", "birth", "founded", "built", "opened"], &["youngest", "newest", "latest"], &["oldest", "earliest"]),
        (&["speed", "kmh", "kph", "mph"], &["fastest"], &["slowest"]),
        (&["seconds", "secs", "sec", "duration"], &["slowest"], &["fastest"]),
        (&["distance"], &["farthest"], &["closest"]),
    ];
    if extreme != Extreme::Either {
        return extreme;
    }
    let name = column.map(|name| name.to_lowercase()).unwrap_or_default();
    let is_called = |parts: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|part| parts.contains(&part));
    let told = ENDS.iter().filter(|(parts, _, _)| is_called(parts)).find_map(|(_, greatest, least)| {
        match (says(clause, greatest), says(clause, least)) {
            (true, false) => Some(Extreme::Greatest),
            (false, true) => Some(Extreme::Least),
            _ => None,
        }
    });
    told.unwrap_or(extreme)
}

/// Returns which extreme a clause speaks of; of `the most orders` only the column of orders is left.
fn extreme_in(clause: &str, result: &ProofRows, columns: &mut Vec<usize>) -> Option<Extreme> {
    let says = |words: &[&str]| says(clause, words);
    if let Some(at) = find_word(clause, "most").filter(|at| last_words(&clause[..*at], 1) != "at") {
        let behind = clause[at + "most".len()..].split_whitespace().next().unwrap_or_default();
        let next = behind.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let named: Vec<usize> = columns.iter().copied().filter(|column| is_of_column(result, *column, &next)).collect();
        if !named.is_empty() {
            *columns = named;
            return Some(Extreme::Greatest);
        }
        return match next.as_str() {
            "of" | "" => None,
            often if OFTEN.contains(&often) => Some(Extreme::Greatest),
            _ => Some(Extreme::Either),
        };
    }
    match (says(&GREATEST), says(&LEAST), says(&EITHER)) {
        (true, false, false) => Some(Extreme::Greatest),
        (false, true, false) if !clause.to_lowercase().contains("at least") => Some(Extreme::Least),
        (false, false, true) => Some(Extreme::Either),
        (false, false, false) => foreign_extreme(clause),
        _ => None,
    }
}

fn is_of_column(result: &ProofRows, column: usize, word: &str) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    word.len() > 2 && name.split('_').any(|part| part.trim_end_matches('s') == word.trim_end_matches('s'))
}

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

fn words_of(text: &str) -> impl Iterator<Item = &str> {
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

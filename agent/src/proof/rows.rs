//! The rows of one call, and which of them a text is about: those whose labels stand in a clause, right before a number,
//! or in a list of names beside as many numbers.

use serde_json::Value;
use uuid::Uuid;

use super::tokens::{self, ShareScale, TextToken, TextTokenKind, tokens_in};
use super::{CellReference, SHORTEST_LABEL, number_of};

/// A longer sentence is no list of names and of as many numbers.
const LONGEST_LISTED: usize = 400;

/// The rows of one call.
#[derive(Debug, Clone)]
pub(super) struct ProofRows {
    /// The earlier run that it is of.
    pub(super) run_id: Option<Uuid>,
    pub(super) call_index: u32,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
    /// How each column writes shares.
    pub(super) scales: Vec<ShareScale>,
    pub(super) row_count: usize,
    /// Numbers and texts of the query.
    pub(super) query: Vec<TextToken>,
}

/// Where a token stands.
#[derive(Clone, Copy)]
pub(super) struct TokenPlace<'t> {
    pub(super) clause: &'t str,
    pub(super) sentence: &'t str,
    /// Where the clause begins in the sentence.
    pub(super) offset: usize,
}

impl ProofRows {
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, usize, &Value)> {
        self.rows
            .iter()
            .enumerate()
            .flat_map(|(row, values)| values.iter().enumerate().map(move |(column, value)| (row, column, value)))
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> CellReference {
        let column = self.columns.get(column).cloned().unwrap_or_default();
        CellReference { run_id: self.run_id, call_index: self.call_index, row, column }
    }

    pub(super) fn share_scale(&self, column: usize) -> ShareScale {
        self.scales.get(column).copied().unwrap_or(ShareScale::Unknown)
    }

    /// Returns the row whose label stands right before a number: of `Munich (1,472,000)`.
    pub(super) fn row_beside(&self, token: &TextToken, clause: &str) -> Option<usize> {
        let before = clause[..token.start].trim_end_matches(|c: char| " (:=*|$€£".contains(c));
        if self.rows.len() < 2 || !clause[before.len()..token.start].contains(['(', ':', '=', '|']) {
            return None;
        }
        let labels = self.label_columns();
        let is_called = |value: &Value| match value {
            Value::String(label) => ends_with_word(before, label),
            other => ends_with_word(before, &other.to_string()),
        };
        let stands_before = |row: &Vec<Value>| labels.iter().filter_map(|column| row.get(*column)).any(is_called);
        let mut found = self.rows.iter().enumerate().filter(|(_, row)| stands_before(row)).map(|(row, _)| row);
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the row that has changed, and the one that it is compared with, of the two that a sentence names.
    pub(super) fn change_in(&self, sentence: &str) -> Option<(usize, usize)> {
        let named = self.labels_in_order(sentence);
        let [(first, first_end), (second, second_end)] = *named.as_slice() else { return None };
        let lower = sentence.to_lowercase();
        let find = |words: &[&str]| words.iter().find_map(|word| tokens::find_word(&lower, word));
        let compared = find(&["than", "compared with", "compared to", "relative to", "versus", "over"]);
        if compared.is_some_and(|at| (first_end..second_end).contains(&at)) {
            return Some((first, second));
        }
        find(&["from", "between"]).filter(|at| *at < first_end).map(|_| (second, first))
    }

    /// Returns the rows whose labels stand in a clause, else in its sentence.
    pub(super) fn named_rows(&self, place: TokenPlace<'_>) -> Vec<usize> {
        // `Between 2021 and 2022` is two clauses.
        let is_cut = place.clause.trim_end().ends_with("and") && tokens::find_word(place.clause, "between").is_some();
        match self.labelled(place.clause) {
            rows if rows.is_empty() || is_cut => self.labelled(place.sentence),
            rows => rows,
        }
    }

    /// Returns the rows whose labels stand in a sentence, in the order in which they do, with where they end.
    pub(super) fn labels_in_order(&self, sentence: &str) -> Vec<(usize, usize)> {
        if sentence.len() > LONGEST_LISTED {
            return Vec::new();
        }
        let labels = self.label_columns();
        let end_of = |row: usize| {
            labels.iter().filter_map(|column| self.rows.get(row)?.get(*column)).find_map(|value| {
                let label = match value {
                    Value::String(label) => label.clone(),
                    other => other.to_string(),
                };
                tokens::find_word(sentence, &label).map(|at| at + label.len())
            })
        };
        let mut found: Vec<(usize, usize)> =
            self.labelled(sentence).into_iter().filter_map(|row| Some((row, end_of(row)?))).collect();
        found.sort_by_key(|(_, end)| *end);
        found
    }

    /// Returns the row that a number is of where a sentence lists names and then as many numbers: of `A and B had 3 and
    /// 5` the first is of A.
    pub(super) fn respective_row(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<usize> {
        let named = self.labels_in_order(place.sentence);
        let (_, last_end) = *named.last().filter(|_| named.len() > 1)?;
        let mut numbers: Vec<TextToken> = tokens_in(place.sentence)
            .into_iter()
            .filter(|one| matches!(one.kind, TextTokenKind::Number(_)))
            .filter(|one| !named.iter().any(|(_, end)| *end == one.end))
            .collect();
        if numbers.len() != named.len() {
            numbers.retain(|one| !self.is_year_of_query(one));
        }
        let numbers: Vec<usize> = numbers.into_iter().map(|one| one.start).collect();
        let are_behind = numbers.first().is_some_and(|first| *first >= last_end);
        if !are_behind || numbers.len() != named.len() {
            return None;
        }
        let index = numbers.iter().position(|start| *start == place.offset + token.start)?;
        named.get(index).map(|(row, _)| *row)
    }

    /// Whether a number may be a year that the query asks by, which is no measure of its rows.
    fn is_year_of_query(&self, token: &TextToken) -> bool {
        let is_year = matches!(token.kind, TextTokenKind::Number(_)) && token.text.len() == 4;
        is_year && token.text.starts_with(['1', '2']) && self.query.iter().any(|known| known.kind == token.kind)
    }

    /// Returns the columns that tell rows apart by name: those of texts, else the first of several.
    pub(super) fn label_columns(&self) -> Vec<usize> {
        let is_text = |column: &usize| {
            self.rows.iter().any(|row| row.get(*column).and_then(Value::as_str).is_some_and(tokens::is_name))
        };
        let texts: Vec<usize> = (0..self.columns.len()).filter(is_text).collect();
        match (texts.is_empty(), self.columns.len()) {
            (false, _) => texts,
            (true, 2..) => vec![0],
            (true, _) => Vec::new(),
        }
    }

    /// Returns the rows whose labels stand in a text; none of a result of one row.
    pub(super) fn labelled(&self, text: &str) -> Vec<usize> {
        if self.rows.len() < 2 {
            return Vec::new();
        }
        let labels = self.label_columns();
        let stands = |value: &Value| match value {
            Value::String(label) => label.chars().count() >= SHORTEST_LABEL && tokens::find_word(text, label).is_some(),
            // A small number is a label by chance.
            Value::Number(label) => {
                label.as_f64().is_some_and(|label| label >= 100.0)
                    && tokens::find_word(text, &label.to_string()).is_some()
            }
            _ => false,
        };
        let has_label = |row: &Vec<Value>| labels.iter().filter_map(|column| row.get(*column)).any(stands);
        let found: Vec<usize> =
            self.rows.iter().enumerate().filter(|(_, row)| has_label(row)).map(|(row, _)| row).collect();
        // Labels that every row has tell nothing.
        if found.len() == self.rows.len() { Vec::new() } else { found }
    }
}

/// Whether a text ends with a name, as words of their own.
fn ends_with_word(text: &str, name: &str) -> bool {
    let tail = text.len().checked_sub(name.len()).and_then(|at| Some((text.get(..at)?, text.get(at..)?)));
    tail.is_some_and(|(before, last)| last.eq_ignore_ascii_case(name) && !before.ends_with(char::is_alphanumeric))
}

/// Returns how a column writes shares, by its name and its values.
pub(super) fn share_scale(name: &str, rows: &[Vec<Value>], column: usize) -> ShareScale {
    let name = name.to_lowercase();
    let has = |words: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
    let mut numbers = rows.iter().filter_map(|row| row.get(column).and_then(number_of));
    let are_small = numbers.all(|number| number.abs() <= 1.0);
    // A column that is called a percentage may hold fractions all the same.
    if has(&["percent", "percentage", "pct"]) {
        return if are_small { ShareScale::Unknown } else { ShareScale::Percent };
    }
    let is_share = has(&["rate", "ratio", "share", "fraction", "proportion", "probability"]);
    let is_change = has(&["growth", "change", "increase", "decrease", "diff", "difference", "delta", "margin"]);
    let mut amounts = rows.iter().filter_map(|row| row.get(column).and_then(number_of));
    match (is_share, amounts.any(|number| number.abs() > 100.0)) {
        (true, _) if are_small => ShareScale::Fraction,
        (false, true) if !is_change => ShareScale::Amount,
        _ => ShareScale::Unknown,
    }
}

//! The rows of one call, and which of them a text is about: those whose labels stand in a clause, right before a number,
//! or in a list of names beside as many numbers.

use std::borrow::Cow;
use std::sync::OnceLock;

use chrono::{Datelike, NaiveDate};
use serde_json::Value;
use uuid::Uuid;

use super::claims::month_of;
use super::dates::foreign_names_of_month;
use super::labels::{ends_with_word, find_label, other_forms, quarter_of};
use super::memo::TextMemo;
use super::tokens::{self, ShareScale, TextToken, TextTokenKind, WrittenNumber};
use super::{CellReference, ProofOrigin, number_of};

/// A longer sentence is no list of names and of as many numbers.
pub(super) const LONGEST_LISTED: usize = 400;

/// The rows of one call.
#[derive(Debug, Clone)]
pub(super) struct ProofRows {
    /// The earlier run that it is of.
    pub(super) run_id: Option<Uuid>,
    pub(super) call_index: u32,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
    /// See [`ProofRows::label_columns`].
    pub(super) labels: Vec<usize>,
    /// How each column writes shares.
    pub(super) scales: Vec<ShareScale>,
    pub(super) row_count: usize,
    /// Numbers and texts of the query.
    pub(super) query: Vec<TextToken>,
    /// The query.
    pub(super) query_text: String,
    /// What is looked for again and again in the same texts and rows.
    pub(super) memo: RowMemo,
}

/// What of rows is kept once it was found.
#[derive(Debug, Clone, Default)]
pub(super) struct RowMemo {
    /// See [`ProofRows::labelled`].
    pub(super) labelled: TextMemo<Vec<usize>>,
    /// See [`ProofRows::named_by_each_key`].
    pub(super) by_key: TextMemo<Vec<Vec<usize>>>,
    /// See [`ProofRows::column_of_times`].
    pub(super) times: OnceLock<Option<(usize, Vec<Option<NaiveDate>>)>>,
}

/// Where a token stands.
#[derive(Clone, Copy)]
pub(super) struct TokenPlace<'t> {
    pub(super) clause: &'t str,
    pub(super) sentence: &'t str,
    /// Where the clause begins in the sentence.
    pub(super) offset: usize,
    /// The sentence before it, of which `its` and `they` speak.
    pub(super) before: &'t str,
}

impl<'t> TokenPlace<'t> {
    /// Returns the statement of the sentence that the clause is of: `all are below 1,000; two are above 500` has two.
    pub(super) fn statement(&self) -> &'t str {
        const END: &str = "; ";
        let (before, from) = self.sentence.split_at(self.offset.min(self.sentence.len()));
        let start = before.rfind(END).map_or(0, |at| at + END.len());
        let end = from.find(END).map_or(self.sentence.len(), |at| before.len() + at);
        &self.sentence[start..end]
    }

    /// Returns the text that says what its numbers are: `108 more were opened. A had 58 of those` goes on from the sentence before.
    pub(super) fn announcing_text(&self) -> Cow<'t, str> {
        const OF_BEFORE: [&str; 3] = ["of those", "of these", "of that"];
        match tokens::says(self.sentence, &OF_BEFORE) {
            true => Cow::Owned(format!("{} {}", self.before, self.sentence)),
            false => Cow::Borrowed(self.sentence),
        }
    }
}

/// Words that speak of what the sentence before names.
pub(super) const PRONOUNS: [&str; 9] = ["its", "their", "his", "her", "it", "they", "he", "she", "there"];

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

    /// Returns what a part of a text is proven by that says what a cell holds.
    pub(super) fn cell_origin(&self, row: usize, column: usize, value: &Value) -> ProofOrigin {
        ProofOrigin::Cell { cell: self.cell(row, column), value: value.clone(), corrected_from: None }
    }

    pub(super) fn share_scale(&self, column: usize) -> ShareScale {
        self.scales.get(column).copied().unwrap_or(ShareScale::Unknown)
    }

    /// Returns the row whose label stands right before a number: of `Munich (1,472,000)`, not of `as much as Munich: 1,472,000
    /// against 650,000`.
    pub(super) fn row_beside(&self, token: &TextToken, clause: &str) -> Option<usize> {
        let before = clause[..token.start].trim_end_matches(|c: char| " (:=*|$€£`\"»".contains(c));
        if self.rows.len() < 2 || !clause[before.len()..token.start].contains(['(', ':', '=', '|']) {
            return None;
        }
        // `A had 3,600 more than B (21,500 against 17,900)`.
        let is_of_pair =
            [" vs", " versus", " against", " compared"].iter().any(|word| clause[token.end..].starts_with(word));
        let is_compared = (is_of_pair || clause[before.len()..token.start].contains(':'))
            && tokens::says(before, &["as", "than"])
            && self.labelled(before).len() > 1;
        if is_compared {
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
        // `Two came out in 2018; the oldest is Emma`: what follows is another statement.
        let clause_end = place.offset + place.clause.trim_end().len();
        let behind = place.sentence.get(clause_end.saturating_sub(1)..).and_then(|rest| rest.find("; "));
        let end = behind.map_or(place.sentence.len(), |at| clause_end.saturating_sub(1) + at);
        let mut rows = match self.labelled(place.clause) {
            rows if rows.is_empty() || is_cut => self.labelled(place.sentence.get(..end).unwrap_or(place.sentence)),
            rows => rows,
        };
        if !rows.is_empty() && tokens::says(place.clause, &PRONOUNS) {
            rows.extend(self.labelled(place.before));
            rows.sort_unstable();
            rows.dedup();
        }
        rows
    }

    /// Returns the rows that a sentence does not name, where the clause speaks of them: `all others since July`.
    pub(super) fn other_rows(&self, place: TokenPlace<'_>) -> Option<Vec<usize>> {
        let says = |word: &&str| tokens::find_word(place.clause, word).is_some();
        if !["other", "others", "the rest"].iter().any(says) || !self.labelled(place.clause).is_empty() {
            return None;
        }
        let named = self.labelled(place.sentence);
        (!named.is_empty()).then(|| self.rows_without(&named))
    }

    /// Returns the rows that a sentence does not except, where it speaks of all but some: `all fields but Hollow`.
    pub(super) fn rows_but_named(&self, place: TokenPlace<'_>) -> Option<Vec<usize>> {
        const ALL: [&str; 4] = ["all", "every", "each", "everyone"];
        const EXCEPT: [&str; 5] = ["but", "except", "except for", "apart from", "other than"];
        if !tokens::says(place.sentence, &ALL) || !tokens::says(place.sentence, &EXCEPT) {
            return None;
        }
        let named = self.labelled(place.sentence);
        let places = named.iter().filter_map(|row| self.label_place(*row, place.sentence));
        let before = &place.sentence[..places.map(|(start, _)| start).min()?];
        let words = tokens::last_words(before, 2);
        let excepts = EXCEPT.iter().any(|word| words == *word || words.ends_with(&format!(" {word}")));
        (tokens::says(before, &ALL) && excepts).then(|| self.rows_without(&named))
    }

    fn rows_without(&self, named: &[usize]) -> Vec<usize> {
        (0..self.rows.len()).filter(|row| !named.contains(row)).collect()
    }

    /// Returns the column of numbers that is called as the words behind a number say, `12 no-shows` of `no_shows`, where no
    /// other column has the word in its name.
    pub(super) fn column_behind(&self, token: &TextToken, clause: &str) -> Option<usize> {
        const LINKS: [&str; 4] = ["of which were ", "of which are ", "of them were ", "of them are "];
        let folded = |text: &str| -> String {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(|word| format!("{} ", word.to_lowercase().trim_end_matches('s'))).collect()
        };
        let behind = clause[token.end..].trim_start();
        let behind = folded(LINKS.iter().find_map(|link| behind.strip_prefix(link)).unwrap_or(behind));
        let names: Vec<String> = self.columns.iter().map(|name| folded(name)).collect();
        let is_called = |column: &usize| !self.labels.contains(column) && behind.starts_with(&names[*column]);
        let column = (0..names.len()).find(|column| !names[*column].trim().is_empty() && is_called(column))?;
        let is_in_others = names.iter().filter(|name| name.contains(&names[column])).count() > 1;
        let is_number = self.rows.iter().any(|row| row.get(column).is_some_and(|value| number_of(value).is_some()));
        (is_number && !is_in_others && self.rows.len() > 1).then_some(column)
    }

    /// Whether a token is an hour, and the cell one of a column of hours: `17:00` and `5 PM` of 17.
    pub(super) fn is_hour(&self, token: &TextToken, column: usize, value: &Value) -> bool {
        let is_of_hours = self.columns.get(column).is_some_and(|name| {
            let name = name.to_lowercase();
            name.contains("hour") || name.split('_').any(|part| part == "hr")
        });
        let hour = match &token.kind {
            TextTokenKind::Hour(hour) => Some(*hour),
            TextTokenKind::Code(code) => code.strip_suffix(":00").and_then(|hour| hour.parse().ok()),
            _ => None,
        };
        is_of_hours && hour.is_some_and(|hour| number_of(value) == Some(f64::from(hour)))
    }

    /// Whether a clause speaks of the most, the least or the mean, and a column of the only row is called as another of
    /// them: `the most expensive` is not of `avg_price`.
    pub(super) fn is_other_extreme(&self, column: usize, clause: &str) -> bool {
        const KINDS: [(&[&str], &[&str]); 5] = [
            (&["median", "p50"], &["median"]),
            (&["stddev", "std", "sd"], &["deviation"]),
            (
                &["max", "maximum", "highest", "most", "largest"],
                &["most", "highest", "largest", "maximum", "greatest", "max", "oldest"],
            ),
            (
                &["min", "minimum", "lowest", "least", "smallest"],
                &["cheapest", "lowest", "smallest", "minimum", "least", "min", "youngest"],
            ),
            (&["avg", "average", "mean"], &["average", "mean", "avg"]),
        ];
        let kind_of = |column: &String| {
            let name = column.to_lowercase();
            let first = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            KINDS.iter().position(|(names, _)| names.contains(&first))
        };
        let says = |kind: usize| KINDS[kind].1.iter().any(|word| tokens::find_word(clause, word).is_some());
        let is_bound = tokens::says(clause, &["at least", "at most"]);
        let Some(own) = self.columns.get(column).and_then(kind_of).filter(|_| self.rows.len() == 1 && !is_bound) else {
            return false;
        };
        let has_other = |kind: usize| self.columns.iter().any(|other| kind_of(other) == Some(kind));
        !says(own) && (0..KINDS.len()).any(|kind| kind != own && says(kind) && has_other(kind))
    }

    /// Whether a text names every row.
    pub(super) fn names_every_row(&self, text: &str) -> bool {
        let count = self.rows.len();
        count > 1 && (self.called(text).len() == count || self.called_otherwise(text).len() == count)
    }

    /// Returns what proves a number of values of a column, where some are missing: `the two scores`.
    pub(super) fn count_of_values(&self, number: &WrittenNumber) -> Option<ProofOrigin> {
        let count_in = |column: usize| -> Vec<usize> {
            let has_value = |row: &usize| self.rows[*row].get(column).is_some_and(|value| number_of(value).is_some());
            (0..self.rows.len()).filter(has_value).collect()
        };
        let is_whole = number.tolerance <= 0.5 && !number.is_percent && self.rows.len() == self.row_count;
        let labels = self.label_columns();
        let columns = (0..self.columns.len()).filter(|column| is_whole && !labels.contains(column));
        let mut counted = columns.map(|column| (column, count_in(column)));
        let (column, rows) = counted.find(|(_, rows)| rows.len() as f64 == number.value)?;
        Some(self.origin_of_count(&rows, column))
    }

    /// Returns what proves a number of rows, each of which counts by its cell of a column.
    pub(super) fn origin_of_count(&self, rows: &[usize], column: usize) -> ProofOrigin {
        ProofOrigin::Expression {
            expression: vec!["1"; rows.len().max(1)].join(" + "),
            value: rows.len() as f64,
            cells: rows.iter().map(|row| self.cell(*row, column)).collect(),
        }
    }

    /// Returns where a row's label stands in a text, from its first byte to the one behind its last.
    pub(super) fn label_place(&self, row: usize, text: &str) -> Option<(usize, usize)> {
        self.label_columns().iter().filter_map(|column| self.rows.get(row)?.get(*column)).find_map(|value| {
            let label = match value {
                Value::String(label) => label.clone(),
                other => other.to_string(),
            };
            let quarter = quarter_of(value).map(|quarter| format!("Q{quarter}"));
            let other = value.as_str().into_iter().flat_map(other_forms);
            let other = other.chain(quarter);
            let months = month_of(value).into_iter().flat_map(|day| {
                let foreign = foreign_names_of_month(day.month()).iter().map(|name| (*name).to_owned());
                std::iter::once(day.format("%B").to_string()).chain(foreign)
            });
            std::iter::once(label)
                .chain(other)
                .chain(months)
                .find_map(|name| find_label(text, &name).map(|at| (at, at + name.len())))
        })
    }

    /// Returns the columns that tell rows apart by name: those of texts, else the first of several.
    pub(super) fn label_columns(&self) -> &[usize] {
        &self.labels
    }

    /// Whether a cell is a name of a row.
    pub(super) fn is_label_of(&self, row: usize, cell: &CellReference) -> bool {
        self.labels.iter().any(|column| *cell == self.cell(row, *column))
    }

    /// Returns the numbers of a column, each with its row.
    pub(super) fn numbers(&self, column: usize) -> Vec<(usize, f64)> {
        let number = |(row, values): (usize, &Vec<Value>)| Some((row, number_of(values.get(column)?)?));
        self.rows.iter().enumerate().filter_map(number).collect()
    }

    /// Whether a column only numbers the rows from one on, so that it has every small number.
    pub(super) fn numbers_its_rows(&self, column: usize) -> bool {
        let numbers = self.numbers(column);
        numbers.len() > 2 && numbers.iter().all(|(row, value)| *value == (row + 1) as f64)
    }
}

/// See [`ProofRows::label_columns`].
pub(super) fn label_columns(columns: &[String], rows: &[Vec<Value>]) -> Vec<usize> {
    let is_text =
        |column: &usize| rows.iter().any(|row| row.get(*column).and_then(Value::as_str).is_some_and(tokens::is_name));
    let mut texts: Vec<usize> = (0..columns.len()).filter(is_text).collect();
    if !texts.is_empty() {
        let is_key_column = |(column, name): &(usize, &String)| !is_text(column) && is_key(name, rows, *column);
        texts.extend(columns.iter().enumerate().filter(is_key_column).map(|(column, _)| column));
    }
    match (texts.is_empty(), columns.len()) {
        (false, _) => texts,
        (true, 2..) => vec![0],
        (true, _) => Vec::new(),
    }
}

/// Whether a column of numbers tells rows apart: `order_id`.
fn is_key(name: &str, rows: &[Vec<Value>], column: usize) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if !["id", "no", "number", "nr", "key"].contains(&last) {
        return false;
    }
    let mut numbers: Vec<String> = rows.iter().filter_map(|row| row.get(column)).map(ToString::to_string).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() == count && count > 1
}

/// Returns how a column writes shares, by its name and its values.
pub(super) fn share_scale(name: &str, rows: &[Vec<Value>], column: usize) -> ShareScale {
    let name = name.to_lowercase();
    let has = |words: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
    let mut numbers = rows.iter().filter_map(|row| row.get(column).and_then(number_of));
    let are_small = numbers.all(|number| number.abs() <= 1.0);
    // A column that is called a percentage may hold fractions all the same.
    if has(&["percent", "percentage", "pct", "prozent", "procent", "pourcentage", "porcentaje", "percentual"]) {
        return if are_small { ShareScale::Unknown } else { ShareScale::Percent };
    }
    let is_share = has(&["rate", "ratio", "share", "fraction", "proportion", "probability"])
        || has(&["anteil", "quote", "taux", "tasa", "taxa", "aandeel", "proporcion", "proporción", "quota"]);
    let is_change = has(&["growth", "change", "increase", "decrease", "diff", "difference", "delta", "margin"]);
    let mut amounts = rows.iter().filter_map(|row| row.get(column).and_then(number_of));
    match (is_share, amounts.any(|number| number.abs() > 100.0)) {
        (true, _) if are_small => ShareScale::Fraction,
        (false, true) if !is_change => ShareScale::Amount,
        _ => ShareScale::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn a_pair_in_parentheses_is_of_the_rows_that_are_compared() {
        let buyers = json!([["Pakistan", 198_400], ["Russia", 21_500], ["Sudan", 17_900], ["Poland", 4_600]]);
        let is_doubted = |text: &str| !doubted(&["country", "tonnes"], buyers.clone(), text).is_empty();
        assert!(!is_doubted("Russia bought 3,600 tonnes more than Sudan (21,500 vs. 17,900)."));
        assert!(is_doubted("Russia bought 3,600 tonnes more than Sudan (21,500 vs. 19,700)."));
    }
}

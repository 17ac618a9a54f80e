//! Proven answers: every number and date of an answer's text, and every name that rows have, is linked to a cell of a
//! result, to arithmetic over cells, to the question or to the query. What cannot be linked is marked as unproven; a
//! number that contradicts the one cell that it can only be of is corrected. No model is asked.
//!
//! A number belongs to the row whose label stands in its clause: "AA had 3" is no proof by the row of UA. Of "AA and UA
//! had 3 and 5" the first is of the first.

mod arithmetic;
mod ranks;
mod tokens;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use arithmetic::WantedNumber;
pub(crate) use tokens::sentence_end;
use tokens::{ShareScale, TextToken, TextTokenKind, clauses, tokens_in};

/// Rows of one result that are looked at.
const MAX_ROWS: usize = 500;
/// A longer sentence is no list of names and of as many numbers.
const LONGEST_LISTED: usize = 400;
/// Labels shorter than this are found by chance.
const SHORTEST_LABEL: usize = 2;

/// A part of an answer's text, and what it is proven by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofLink {
    /// As it stands in the answer.
    pub text: String,
    /// Where it stands in the text of the answer, without what was said before calls: its first character, and the one
    /// after its last.
    pub start: usize,
    /// See `start`.
    pub end: usize,
    /// What it is proven by.
    #[serde(flatten)]
    pub origin: ProofOrigin,
}

/// A cell of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellReference {
    /// The call whose result it is of.
    pub call_index: u32,
    /// Its row, from 0.
    pub row: usize,
    /// Its column.
    pub column: String,
}

/// What a part of an answer is proven by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
pub enum ProofOrigin {
    /// A cell.
    Cell {
        /// Which.
        cell: CellReference,
        /// Its value.
        value: Value,
        /// What the model had written, where that was corrected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        corrected_from: Option<String>,
    },
    /// Arithmetic over cells.
    Expression {
        /// With the values of the cells, as SQL.
        expression: String,
        /// What it gives.
        value: f64,
        /// The cells.
        cells: Vec<CellReference>,
    },
    /// The number of rows of a result.
    RowCount {
        /// The call whose result it is.
        call_index: u32,
    },
    /// The question says it.
    Question,
    /// The query that ran says it.
    Query {
        /// The call that ran it.
        call_index: u32,
    },
    /// Nothing.
    Unproven,
}

/// The rows of one call.
#[derive(Debug, Clone)]
struct ProofRows {
    call_index: u32,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// How each column writes shares.
    scales: Vec<ShareScale>,
    row_count: usize,
    /// Numbers and texts of the query.
    query: Vec<TextToken>,
}

/// What the answers of one run are proven by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prover {
    question: Vec<TextToken>,
    question_text: String,
    results: Vec<ProofRows>,
}

/// Where a token stands.
#[derive(Clone, Copy)]
struct TokenPlace<'t> {
    clause: &'t str,
    sentence: &'t str,
    /// Where the clause begins in the sentence.
    offset: usize,
}

/// A number in a text that is replaced.
#[derive(Debug, Clone, PartialEq)]
struct NumberCorrection {
    start: usize,
    end: usize,
    text: String,
}

impl Prover {
    pub(crate) fn new(question: &str) -> Self {
        Self { question: tokens_in(question), question_text: question.to_lowercase(), results: Vec::new() }
    }

    /// Adds the result of a call, as its event has it.
    pub(crate) fn add_result(&mut self, call_index: u32, query: Option<&str>, result: &Value) {
        let Some(rows) = result.get("rows").and_then(Value::as_array) else { return };
        let columns: Vec<String> = match result.get("columns").and_then(Value::as_array) {
            Some(columns) => columns.iter().filter_map(|column| column["name"].as_str().map(str::to_owned)).collect(),
            None => {
                rows.first().and_then(Value::as_object).map(|row| row.keys().cloned().collect()).unwrap_or_default()
            }
        };
        let cells = |row: &Value| columns.iter().map(|column| row.get(column).cloned().unwrap_or_default()).collect();
        let count = ["total_rows", "row_count"].iter().find_map(|name| result.get(*name)?.as_u64());
        let rows_kept: Vec<Vec<Value>> = rows.iter().take(MAX_ROWS).map(cells).collect();
        let scales = columns.iter().enumerate().map(|(column, name)| share_scale(name, &rows_kept, column)).collect();
        self.results.push(ProofRows {
            call_index,
            rows: rows_kept,
            scales,
            row_count: count.and_then(|count| usize::try_from(count).ok()).unwrap_or(rows.len()),
            columns,
            query: query.map(tokens_in).unwrap_or_default(),
        });
    }

    /// Whether there is anything to prove by.
    pub(crate) fn has_rows(&self) -> bool {
        !self.results.is_empty()
    }

    /// Corrects the numbers of a sentence that contradict the one cell they can be of. Only what stands from the byte
    /// `from` on is changed. Returns the corrected rest, and the corrections as written and as they stand.
    pub(crate) fn correct(&self, sentence: &str, from: usize) -> (String, Vec<(String, String)>) {
        let mut text = sentence[from..].to_owned();
        let mut made = Vec::new();
        let mut corrections = self.corrections(sentence);
        corrections.retain(|one| one.start >= from);
        for NumberCorrection { start, end, text: value, .. } in corrections.iter().rev() {
            made.push((sentence[*start..*end].to_owned(), value.clone()));
            text.replace_range(start - from..end - from, value);
        }
        made.reverse();
        (text, made)
    }

    fn corrections(&self, sentence: &str) -> Vec<NumberCorrection> {
        let mut corrections = Vec::new();
        for (clause, offset) in clauses(sentence) {
            let place = TokenPlace { clause, sentence, offset };
            let tokens = tokens_in(clause);
            let numbers: Vec<&TextToken> =
                tokens.iter().filter(|token| matches!(token.kind, TextTokenKind::Number(_))).collect();
            let wrong: Vec<&&TextToken> =
                numbers.iter().filter(|token| self.origin(token, place) == ProofOrigin::Unproven).collect();
            // Of several that are wrong nobody can say which is meant.
            if let ([only], Some((cell, value))) = (wrong.as_slice(), self.only_cell(clause))
                && !numbers.iter().any(|token| self.proves(token, &cell, place))
                && !is_share_of_one(&clause[only.end..], &value)
            {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                corrections.push(NumberCorrection { start: offset + only.start, end: offset + only.end, text });
            }
        }
        corrections
    }

    fn proves(&self, token: &TextToken, cell: &CellReference, place: TokenPlace<'_>) -> bool {
        matches!(self.origin(token, place), ProofOrigin::Cell { cell: found, .. } if found == *cell)
    }

    /// Returns the one number that a clause can be about: the only one of the last result, or of the row that the
    /// clause names.
    fn only_cell(&self, clause: &str) -> Option<(CellReference, Value)> {
        let result = self.results.last()?;
        let labelled = result.labelled(clause);
        let row = match (labelled.as_slice(), result.rows.len()) {
            ([only], _) => *only,
            ([], 1) => 0,
            _ => return None,
        };
        let labels = result.label_columns();
        let values = result.rows.get(row)?;
        let mut numbers = values.iter().enumerate().filter(|(column, value)| {
            number_of(value).is_some() && (result.rows.len() == 1 || !labels.contains(column))
        });
        match (numbers.next(), numbers.next()) {
            (Some((column, value)), None) => Some((result.cell(row, column), value.clone())),
            _ => None,
        }
    }

    /// Links the parts of a text.
    pub(crate) fn links(&self, text: &str, corrections: &[(String, String)]) -> Vec<ProofLink> {
        let mut links = Vec::new();
        let mut left = corrections.to_vec();
        for (sentence, sentence_start) in tokens::sentences(text) {
            for (clause, clause_start) in clauses(sentence) {
                let place = TokenPlace { clause, sentence, offset: clause_start };
                for token in tokens_in(clause) {
                    let found = match token.kind {
                        TextTokenKind::Rank(rank) => self.rank(rank, place),
                        TextTokenKind::Factor(factor) => self.factor(factor, place),
                        _ => Some(self.origin(&token, place)),
                    };
                    let Some(mut origin) = found else { continue };
                    if let ProofOrigin::Cell { corrected_from, .. } = &mut origin
                        && let Some(index) = left.iter().position(|(_, now)| *now == token.text)
                    {
                        *corrected_from = Some(left.remove(index).0);
                    }
                    let start = sentence_start + clause_start + token.start;
                    let end = sentence_start + clause_start + token.end;
                    links.push(link(text, start, end, origin));
                }
                for (start, end, origin) in self.names_in(clause) {
                    let offset = sentence_start + clause_start;
                    links.push(link(text, offset + start, offset + end, origin));
                }
            }
        }
        links.sort_by_key(|link| (link.start, link.end));
        links.dedup_by(|later, earlier| later.start < earlier.end);
        links
    }

    /// Returns what proves a place in an order; `None` where nobody can say of what it is.
    fn rank(&self, rank: usize, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let result = self.results.last()?;
        match result.named_rows(place).as_slice() {
            [row] => ranks::rank_origin(result, *row, rank, place.sentence),
            _ => None,
        }
    }

    /// Returns what proves that one row has so many times as much as another.
    fn factor(&self, factor: f64, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let result = self.results.last()?;
        ranks::factor_origin(result, &result.labels_in_order(place.sentence), factor, place.sentence)
    }

    /// Returns what proves a number or a date in its clause.
    fn origin(&self, token: &TextToken, place: TokenPlace<'_>) -> ProofOrigin {
        let TokenPlace { clause, sentence, .. } = place;
        for result in self.results.iter().rev() {
            let labelled = match result.respective_row(token, place) {
                Some(row) => vec![row],
                None => result.named_rows(place),
            };
            let candidates = result.cells().filter(|(row, _, _)| labelled.is_empty() || labelled.contains(row));
            let mut equal = candidates.filter(|(_, column, value)| token.equals(value, result.share_scale(*column)));
            if let Some((row, column, value)) = equal.next() {
                return ProofOrigin::Cell {
                    cell: result.cell(row, column),
                    value: value.clone(),
                    corrected_from: None,
                };
            }
            // `South is number 3 by orders`.
            if let (TextTokenKind::Number(number), [row]) = (&token.kind, labelled.as_slice())
                && ranks::is_said_as_rank(clause, token.start)
                && let Some(origin) = ranks::rank_origin(result, *row, number.value as usize, sentence)
            {
                return origin;
            }
            // A difference of the rows that are named may be what another row has, by chance.
            if let (TextTokenKind::Number(number), [_, _, ..]) = (&token.kind, labelled.as_slice()) {
                let wanted = WantedNumber { number, rows: &labelled };
                if let Some((expression, value, cells)) = arithmetic::expression_of(&wanted, result, clause, sentence) {
                    return ProofOrigin::Expression { expression, value, cells };
                }
            }
        }
        // What the asker said comes before counts and sums, which are equal by chance more often.
        if self.question.iter().any(|known| known.kind == token.kind) || self.question_has(token) {
            return ProofOrigin::Question;
        }
        // A cell of another row is no proof, whatever else the number could be.
        let equals = |result: &ProofRows| {
            result.cells().any(|(_, column, value)| token.equals(value, result.share_scale(column)))
        };
        if self.results.iter().any(equals) {
            return ProofOrigin::Unproven;
        }
        for result in self.results.iter().rev() {
            if result.rows.len() > 1
                && result.labelled(clause).is_empty()
                && token.kind == TextTokenKind::Number(tokens::WrittenNumber::whole(result.row_count))
            {
                return ProofOrigin::RowCount { call_index: result.call_index };
            }
        }
        if let TextTokenKind::Number(number) = &token.kind {
            for result in self.results.iter().rev() {
                let rows = result.named_rows(place);
                let wanted = WantedNumber { number, rows: &rows };
                if let Some((expression, value, cells)) = arithmetic::expression_of(&wanted, result, clause, sentence) {
                    return ProofOrigin::Expression { expression, value, cells };
                }
            }
        }
        for result in self.results.iter().rev() {
            if result.query.iter().any(|known| known.kind == token.kind) {
                return ProofOrigin::Query { call_index: result.call_index };
            }
        }
        ProofOrigin::Unproven
    }

    fn question_has(&self, token: &TextToken) -> bool {
        token.text.chars().any(char::is_alphabetic) && self.question_text.contains(&token.text.to_lowercase())
    }

    /// Returns the names of rows that stand in a clause.
    fn names_in(&self, clause: &str) -> Vec<(usize, usize, ProofOrigin)> {
        let mut found: Vec<(usize, usize, ProofOrigin)> = Vec::new();
        for result in self.results.iter().rev() {
            for (row, column, value) in result.cells() {
                let Value::String(name) = value else { continue };
                if name.chars().count() < SHORTEST_LABEL || !name.chars().any(char::is_alphabetic) {
                    continue;
                }
                if let Some(start) = tokens::find_word(clause, name)
                    && !found.iter().any(|(known, end, _)| start < *end && *known < start + name.len())
                {
                    let origin = ProofOrigin::Cell {
                        cell: result.cell(row, column),
                        value: value.clone(),
                        corrected_from: None,
                    };
                    found.push((start, start + name.len(), origin));
                }
            }
        }
        found
    }
}

impl ProofRows {
    fn cells(&self) -> impl Iterator<Item = (usize, usize, &Value)> {
        self.rows
            .iter()
            .enumerate()
            .flat_map(|(row, values)| values.iter().enumerate().map(move |(column, value)| (row, column, value)))
    }

    fn cell(&self, row: usize, column: usize) -> CellReference {
        let column = self.columns.get(column).cloned().unwrap_or_default();
        CellReference { call_index: self.call_index, row, column }
    }

    fn share_scale(&self, column: usize) -> ShareScale {
        self.scales.get(column).copied().unwrap_or(ShareScale::Unknown)
    }

    /// Returns the rows whose labels stand in a clause, else in its sentence.
    fn named_rows(&self, place: TokenPlace<'_>) -> Vec<usize> {
        match self.labelled(place.clause) {
            rows if rows.is_empty() => self.labelled(place.sentence),
            rows => rows,
        }
    }

    /// Returns the rows whose labels stand in a sentence, in the order in which they do, with where they end.
    fn labels_in_order(&self, sentence: &str) -> Vec<(usize, usize)> {
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
    fn respective_row(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<usize> {
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
    fn label_columns(&self) -> Vec<usize> {
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
    fn labelled(&self, text: &str) -> Vec<usize> {
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

/// Whether a percentage is about a value that may be a fraction: which of the two it should be is not known.
fn is_share_of_one(behind: &str, value: &Value) -> bool {
    let behind = behind.trim_start();
    let is_percentage = behind.starts_with('%') || behind.starts_with("percent");
    is_percentage && number_of(value).is_some_and(|number| number.abs() <= 1.0)
}

/// Returns how a column writes shares, by its name and its values.
fn share_scale(name: &str, rows: &[Vec<Value>], column: usize) -> ShareScale {
    let name = name.to_lowercase();
    let has = |words: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
    let mut numbers = rows.iter().filter_map(|row| row.get(column).and_then(number_of));
    let are_small = numbers.all(|number| number.abs() <= 1.0);
    // A column that is called a percentage may hold fractions all the same.
    if has(&["percent", "percentage", "pct"]) {
        return if are_small { ShareScale::Unknown } else { ShareScale::Percent };
    }
    let is_share = has(&["rate", "ratio", "share", "fraction", "proportion", "probability"]);
    match is_share && are_small {
        true => ShareScale::Fraction,
        false => ShareScale::Unknown,
    }
}

/// Returns the number that a cell is.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn link(text: &str, start: usize, end: usize, origin: ProofOrigin) -> ProofLink {
    let first = text[..start].chars().count();
    let length = text[start..end].chars().count();
    ProofLink { text: text[start..end].to_owned(), start: first, end: first + length, origin }
}

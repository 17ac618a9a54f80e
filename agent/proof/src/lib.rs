//! Proven answers: every number and date of an answer's text, and every name that rows have, is linked to a cell of a
//! result, to arithmetic over cells, to the question or to the query. What cannot be linked is marked as unproven; a
//! number that contradicts the one cell that it can only be of is corrected. No model is asked.
//!
//! A number belongs to the row whose label stands in its clause: "AA had 3" is no proof by the row of UA. Of "AA and UA
//! had 3 and 5" the first is of the first.

mod alike;
mod announced;
#[cfg(test)]
mod answers;
mod arithmetic;
mod arrows;
mod bound_phrases;
mod bounds;
mod candidates;
mod changed_row;
mod claims;
mod clock;
mod column_comparisons;
mod column_names;
pub mod common_words;
mod comparisons;
mod contradictions;
mod counted_rows;
mod dates;
mod derived;
mod derived_columns;
mod earlier;
mod extremes;
mod foreign_extremes;
mod foreign_numbers;
mod groups;
mod label_digits;
mod labels;
mod listed;
mod majorities;
mod memo;
mod mixed_up;
mod names;
mod numbers;
mod others;
mod own;
mod parts;
mod period_changes;
mod periods;
mod ranks;
mod rates;
mod respective;
mod row_counts;
mod row_names;
mod rows;
mod scales;
mod sentences;
mod slips;
mod spans;
mod specific;
mod stated;
#[cfg(test)]
mod testing;
mod time_lengths;
mod tokens;
mod unchecked;
mod units;
mod weekdays;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use bounds::bound_before;
use earlier::{EarlierConversation, refers_back};
use extremes::{with_apposition, wrong_extreme};
use names::NamedRows;
use ranks::WordedFactor;
use rows::{ProofRows, RowMemo, TokenPlace, label_columns, share_scale};
pub use sentences::sentence_end;
use sentences::{clauses, code_fences};
use tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, tokens_in};
use unchecked::unchecked_links;

/// Rows of one result that are looked at.
const MAX_ROWS: usize = 500;
/// Bytes of an answer that are looked at: each of its numbers is compared with all cells. Those that follow are unproven.
pub const MAX_CHECKED: usize = 8 << 10;

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
    /// The earlier run of the conversation whose call it is; absent of a call of the answer's own run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
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
    /// It was said earlier in the conversation, or returned by the application's own tool.
    Conversation,
    /// Nothing.
    Unproven,
}

impl ProofOrigin {
    /// Returns the first cell that it rests on.
    pub fn first_cell(&self) -> Option<&CellReference> {
        match self {
            ProofOrigin::Cell { cell, .. } => Some(cell),
            ProofOrigin::Expression { cells, .. } => cells.first(),
            ProofOrigin::RowCount { .. }
            | ProofOrigin::Question
            | ProofOrigin::Query { .. }
            | ProofOrigin::Conversation
            | ProofOrigin::Unproven => None,
        }
    }
}

/// What the answers of one run are proven by.
#[derive(Debug, Clone, Default)]
pub struct Prover {
    question: Vec<TextToken>,
    question_text: String,
    results: Vec<ProofRows>,
    earlier: EarlierConversation,
    /// Cancelled where nobody waits any more for what is found.
    stop: CancellationToken,
}

/// A number in a text that is replaced.
#[derive(Debug, Clone, PartialEq)]
struct NumberCorrection {
    start: usize,
    end: usize,
    text: String,
}

impl Prover {
    /// Nothing more is looked for once the guard is dropped.
    pub fn new(question: &str) -> (Self, DropGuard) {
        let prover = Self { question: tokens_in(question), question_text: question.to_lowercase(), ..Self::default() };
        let guard = prover.stop.clone().drop_guard();
        (prover, guard)
    }

    /// Adds the result of a call of an earlier run of the conversation.
    pub fn add_earlier_result(&mut self, run_id: Uuid, call_index: u32, result: &Value) {
        self.earlier.add_result(run_id, call_index, result);
    }

    /// Adds what was said in the conversation, or returned by the application's own tool.
    pub fn add_said(&mut self, text: &str) {
        self.earlier.add_said(text);
    }

    /// Adds the result of a call, as its event has it.
    pub fn add_result(&mut self, call_index: u32, query: Option<&str>, result: &Value) {
        self.add_rows(None, call_index, query, result);
    }

    fn add_rows(&mut self, run_id: Option<Uuid>, call_index: u32, query: Option<&str>, result: &Value) {
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
            run_id,
            call_index,
            labels: label_columns(&columns, &rows_kept),
            rows: rows_kept,
            scales,
            row_count: count.and_then(|count| usize::try_from(count).ok()).unwrap_or(rows.len()),
            columns,
            query: query.map(tokens_in).unwrap_or_default(),
            query_text: query.unwrap_or_default().to_owned(),
            memo: RowMemo::default(),
        });
    }

    /// Whether there is anything to prove by.
    pub fn has_rows(&self) -> bool {
        !self.results.is_empty()
    }

    /// Corrects the numbers of a sentence that contradict the one cell they can be of. Only what stands from the byte
    /// `from` on is changed. Returns the corrected rest, and the corrections as written and as they stand.
    pub fn correct(&self, sentence: &str, from: usize) -> (String, Vec<(String, String)>) {
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
        // `Web and app brought 930`: of several names nobody knows whose the number should be.
        let numbers = tokens_in(sentence).iter().filter(|token| matches!(token.kind, TextTokenKind::Number(_))).count();
        if self.results.last().is_some_and(|result| result.labelled(sentence).len() > numbers) {
            return corrections;
        }
        for (clause, offset) in clauses(sentence) {
            let place = TokenPlace { clause, sentence, offset, before: "" };
            let tokens = tokens_in(clause);
            // The 54 of `Studio 54` is a part of a name.
            let names = self.names_in(clause);
            let is_in_name =
                |token: &TextToken| names.iter().any(|(start, end, _)| (*start..*end).contains(&token.start));
            let numbers: Vec<&TextToken> = tokens
                .iter()
                .filter(|token| matches!(token.kind, TextTokenKind::Number(_)) && !is_in_name(token))
                .collect();
            let wrong: Vec<&&TextToken> = numbers
                .iter()
                .filter(|_| !self.stop.is_cancelled())
                .filter(|token| self.origin(token, place) == ProofOrigin::Unproven && !self.is_aside(token, clause))
                .collect();
            // Of several that are wrong nobody can say which is meant.
            if let ([only], Some((cell, value))) = (wrong.as_slice(), self.only_cell(clause))
                && bound_before(clause, only.start).is_none()
                // Digits alone would be replaced, and not what stands behind them.
                && !matches!(&only.kind, TextTokenKind::Number(number) if number.is_scaled)
                && self.is_slip(only, &cell, &value)
                && !announced::announces_more(sentence)
                && !only.equals(&value, ShareScale::Unknown)
                && !self.is_said_of(&cell, sentence)
                && !self.is_other_kind(only, &cell, &value, clause)
            {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                corrections.push(NumberCorrection { start: offset + only.start, end: offset + only.end, text });
            }
        }
        corrections
    }

    /// Whether a sentence says what a cell holds.
    fn is_said_of(&self, cell: &CellReference, sentence: &str) -> bool {
        clauses(sentence).into_iter().any(|(clause, offset)| {
            let place = TokenPlace { clause, sentence, offset, before: "" };
            let mut tokens = tokens_in(clause).into_iter();
            tokens.any(
                |token| matches!(self.origin(&token, place), ProofOrigin::Cell { cell: found, .. } if found == *cell),
            )
        })
    }

    /// Whether a number cannot be what a cell holds: one in another unit, a loss that is said without its sign, a
    /// percentage of amounts, or of a value that may be a fraction, where nobody knows which of the two it should be.
    fn is_other_kind(&self, token: &TextToken, cell: &CellReference, value: &Value, clause: &str) -> bool {
        let TextTokenKind::Number(WrittenNumber { is_percent, value: written, .. }) = token.kind else { return false };
        let result = self.results.iter().find(|result| result.call_index == cell.call_index);
        let column = result.and_then(|result| result.columns.iter().position(|column| *column == cell.column));
        let is_of = |(result, column): (&ProofRows, usize)| units::is_in_other_unit(result, column, token, clause);
        let held = number_of(value);
        if result.zip(column).is_some_and(is_of) || (written > 0.0 && held.is_some_and(|held| held < 0.0)) {
            return true;
        }
        let scale = result.zip(column).map(|(result, column)| result.share_scale(column));
        is_percent && (scale == Some(ShareScale::Amount) || held.is_some_and(|held| held.abs() <= 1.0))
    }

    /// Whether a number is no claim, such as that of a step or a version; not where the question is about such.
    fn is_aside(&self, token: &TextToken, clause: &str) -> bool {
        let is_said = token
            .aside_word(clause)
            .is_some_and(|word| ["top", "bottom"].contains(&word) || !self.question_text.contains(word));
        // `23 drivers, not 20`.
        let is_denied = tokens::last_words(&clause[..token.start], 2) == "not";
        is_said
            || is_denied
            || token.is_beside(clause)
            || (token.is_quarter() && !self.has_days())
            || token.is_half_year()
            || self.is_of_column_name(token, clause)
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
    pub fn links(&self, text: &str, corrections: &[(String, String)]) -> Vec<ProofLink> {
        let mut links = Vec::new();
        let mut left = corrections.to_vec();
        let fences = code_fences(text);
        let said = format!("{} {}", self.question_text, self.earlier.said_text());
        let names = self.results.last().and_then(|result| NamedRows::new(result, &self.results, &said));
        let mut before = "";
        for (sentence, sentence_start) in sentences::sentences(text) {
            if self.stop.is_cancelled() {
                return Vec::new();
            }
            // A query that the answer shows is no claim.
            if fences.iter().any(|fence| fence.contains(&sentence_start)) {
                continue;
            }
            if sentence_start >= MAX_CHECKED {
                links.extend(unchecked_links(&text[sentence_start..], text[..sentence_start].chars().count()));
                break;
            }
            let mut of_sentence = Vec::new();
            for (clause, clause_start) in clauses(sentence) {
                let place = TokenPlace { clause, sentence, offset: clause_start, before };
                let offset = sentence_start + clause_start;
                of_sentence.extend(self.links_of_clause(text, place, offset, &mut left));
            }
            stated::prove_by_stated(
                self.latest_rows(),
                sentence,
                text[..sentence_start].chars().count(),
                &mut of_sentence,
            );
            if let Some(result) = self.latest_rows() {
                for row in comparisons::wrong_rows(result, sentence) {
                    doubt_row(result, row, (sentence, sentence_start), text, &mut of_sentence);
                }
                let texts = comparisons::wrong_texts(result, sentence).into_iter();
                for (start, end) in texts.chain(contradictions::contradicted(result, &self.results, sentence)) {
                    of_sentence.retain(|known| known.text != sentence[start..end]);
                    let (start, end) = (sentence_start + start, sentence_start + end);
                    of_sentence.push(link(text, start, end, ProofOrigin::Unproven));
                }
            }
            let wrong = names.as_ref().map(|names| names.wrong_names(sentence, &of_sentence)).unwrap_or_default();
            let at = sentence_start;
            of_sentence
                .extend(wrong.iter().map(|(start, end)| link(text, at + start, at + end, ProofOrigin::Unproven)));
            links.extend(of_sentence);
            before = if sentence.trim().is_empty() { before } else { sentence };
        }
        if let Some(names) = names.as_ref().filter(|_| text.len() <= MAX_CHECKED) {
            let wrong = names.wrong_lines(text).into_iter().chain(names.wrong_answer(text));
            let of_text = wrong.filter(|(start, _)| !fences.iter().any(|fence| fence.contains(start)));
            links.extend(of_text.map(|(start, end)| link(text, start, end, ProofOrigin::Unproven)));
        }
        // `12 Elm St` is a name, of which the number is a part.
        links.sort_by_key(|link| (link.start, std::cmp::Reverse(link.end)));
        links.dedup_by(|later, earlier| later.start < earlier.end);
        links
    }

    /// Links the parts of a clause that begins at the byte `offset` of the text.
    fn links_of_clause(
        &self,
        text: &str,
        place: TokenPlace<'_>,
        offset: usize,
        corrections: &mut Vec<(String, String)>,
    ) -> Vec<ProofLink> {
        let mut links = Vec::new();
        let clause = place.clause;
        for token in tokens_in(clause) {
            if self.stop.is_cancelled() {
                return links;
            }
            let found = match token.kind {
                TextTokenKind::Rank(rank) => self.rank(rank, place),
                TextTokenKind::Factor(times) => {
                    let bound = bound_before(clause, token.start);
                    self.factor(WordedFactor { times, bound }, place)
                }
                TextTokenKind::Weekday(weekday) => self.weekday(weekday, &token, place),
                _ => Some(self.origin(&token, place)),
            };
            let Some(mut origin) = found else { continue };
            if origin == ProofOrigin::Unproven && self.is_aside(&token, clause) {
                continue;
            }
            if let ProofOrigin::Cell { corrected_from, .. } = &mut origin
                && let Some(index) = corrections.iter().position(|(_, now)| *now == token.text)
            {
                *corrected_from = Some(corrections.remove(index).0);
            }
            links.push(link(text, offset + token.start, offset + token.end, origin));
        }
        let names = self.names_in(clause);
        links.extend(names.into_iter().map(|(start, end, origin)| link(text, offset + start, offset + end, origin)));
        // A row that is said to be the most, and is not.
        if let Some(result) = self.latest_rows()
            && let Some(row) = wrong_extreme(result, place)
        {
            // `The cheapest month was November` of a column of days.
            doubt_row(result, row, (with_apposition(result, place), offset), text, &mut links);
        }
        links
    }

    /// Returns the latest rows: of the run, else of an earlier one.
    fn latest_rows(&self) -> Option<&ProofRows> {
        self.results.last().or_else(|| self.earlier.rows()?.results.last())
    }

    /// Returns what proves a place in an order; `None` where nobody can say of what it is.
    fn rank(&self, rank: usize, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let result = self.latest_rows()?;
        match result.named_rows(place).as_slice() {
            [row] => ranks::rank_origin(result, *row, rank, place.sentence),
            _ => None,
        }
    }

    /// Returns what proves that one row has so many times as much as another.
    fn factor(&self, factor: WordedFactor, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let result = self.latest_rows()?;
        ranks::factor_origin(result, &result.labels_in_order(place.sentence), factor, place.sentence)
    }

    /// Returns what proves a number or a date in its clause.
    fn origin(&self, token: &TextToken, place: TokenPlace<'_>) -> ProofOrigin {
        let own = self.own_origin(token, place);
        if own != ProofOrigin::Unproven {
            return own;
        }
        let may_be_earlier = self.results.is_empty() || refers_back(place.sentence);
        let earlier = may_be_earlier.then(|| self.earlier.origin(token, place)).flatten();
        earlier.or_else(|| self.origin_across(token, place)).unwrap_or(own)
    }

    /// Returns the arithmetic over cells of several results that a number is: `100 more than in 2012`, where each year
    /// was asked for by a query of its own.
    fn origin_across(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let earlier = self.earlier.rows().map(|rows| rows.results.as_slice()).unwrap_or_default();
        let results = earlier.iter().chain(&self.results);
        let (expression, value, cells) = arithmetic::expression_across(number, results, place.clause, place.sentence)?;
        Some(ProofOrigin::Expression { expression, value, cells })
    }

    /// Returns the names of rows that stand in a clause.
    fn names_in(&self, clause: &str) -> Vec<(usize, usize, ProofOrigin)> {
        let mut found: Vec<(usize, usize, ProofOrigin)> = Vec::new();
        let earlier = self.earlier.rows().map(|rows| rows.results.as_slice()).unwrap_or_default();
        for result in self.results.iter().rev().chain(earlier.iter().rev()) {
            for (row, column, value) in result.cells() {
                let Value::String(name) = value else { continue };
                if name.chars().count() < labels::SHORTEST_LABEL || !name.chars().any(char::is_alphabetic) {
                    continue;
                }
                if let Some(start) = tokens::find_word(clause, name)
                    && !found.iter().any(|(known, end, _)| start < *end && *known < start + name.len())
                {
                    found.push((start, start + name.len(), result.cell_origin(row, column, value)));
                }
            }
        }
        found
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

/// Doubts the name of a row in a part of a text, which begins at a byte of it, also one that is no part of a cell: the
/// month of a day.
fn doubt_row(result: &ProofRows, row: usize, (part, at): (&str, usize), text: &str, links: &mut Vec<ProofLink>) {
    let is_label = |link: &&mut ProofLink| match &link.origin {
        ProofOrigin::Cell { cell, .. } => result.is_label_of(row, cell),
        _ => false,
    };
    let mut labels = links.iter_mut().filter(is_label).peekable();
    let is_linked = labels.peek().is_some();
    labels.for_each(|link| link.origin = ProofOrigin::Unproven);
    if let Some((start, end)) = result.label_place(row, part).filter(|_| !is_linked) {
        links.push(link(text, at + start, at + end, ProofOrigin::Unproven));
    }
}

fn link(text: &str, start: usize, end: usize, origin: ProofOrigin) -> ProofLink {
    let first = text[..start].chars().count();
    let length = text[start..end].chars().count();
    ProofLink { text: text[start..end].to_owned(), start: first, end: first + length, origin }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_looked_for_where_nobody_waits() {
        let (mut prover, guard) = Prover::new("How many?");
        prover.add_result(0, None, &json!({"columns": [{"name": "n"}], "rows": [{"n": 2}], "row_count": 1}));
        assert_eq!(prover.links("There are 2 votes.", &[]).len(), 1);
        assert_eq!(prover.correct("There are 3 votes.", 0).0, "There are 2 votes.");
        drop(guard);
        assert!(prover.links("There are 2 votes.", &[]).is_empty());
        assert_eq!(prover.correct("There are 3 votes.", 0).0, "There are 3 votes.");
    }
}

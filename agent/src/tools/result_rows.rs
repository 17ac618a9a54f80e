//! The rows of a query as a tool returns them: bounded rows of JSON, and the text table that a model reads.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use querent_engine::{EngineError, QueryStream};
use serde_json::{Map, Value, json};

use super::json_value::{ByteRoom, json_value, plain_text, shortened};
use super::{ToolContext, ToolOutput};
use crate::chart::{ColumnKind, chart_of};
use crate::event::{ResultTicket, Truncation};
use crate::results::ResultRecorder;
use crate::tokens::{estimate_tokens, take_tokens};

/// Bytes of the JSON rows of one result.
const MAX_JSON_BYTES: usize = 256 * 1024;
/// Characters of a column's name and of its type: an alias can be any text.
const MAX_NAME_CHARS: usize = 255;
const MAX_TYPE_CHARS: usize = 1_000;
/// Characters of one value in the text table.
const MAX_FIELD_CHARS: usize = 120;
/// Cells that are encoded before other tasks get a chance.
const CELLS_BETWEEN_YIELDS: usize = 2_048;
/// Limits of counting the rows beyond those that are kept: rows, and time.
const MAX_COUNTED_ROWS: usize = 10_000_000;
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);
/// Tokens reserved for the lines that say what was left out.
const NOTE_TOKENS: usize = 60;

/// ToolRows of a result, and whether there were more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolRows {
    /// Unique within the result.
    names: Vec<String>,
    /// Arrow types.
    types: Vec<String>,
    /// The kinds of the types, for charts.
    kinds: Vec<ColumnKind>,
    rows: Vec<Vec<Value>>,
    /// Why rows are missing, if any are.
    cut: Option<Cut>,
    /// How many rows there are, where some are missing and they were counted.
    total: Option<Total>,
    /// Of the rows as the query gave them, where they are kept.
    ticket: Option<ResultTicket>,
}

/// A count of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Total {
    rows: usize,
    /// Whether there may be more, since counting was given up.
    is_lower_bound: bool,
}

/// What ended a result early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Rows,
    Bytes,
}

/// Returns the chart of rows and the rows as its specification reads them; `None` where they are not worth one. Rows
/// beyond a tool's bounds are left out.
pub fn chart_of_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Option<(Value, Vec<Value>)> {
    let mut result = ToolRows::empty(schema);
    let mut bytes = 0;
    'rows: for batch in batches {
        for row in 0..batch.num_rows() {
            let values = row_values(batch, row);
            bytes += values.iter().map(json_bytes).sum::<usize>();
            if bytes > MAX_JSON_BYTES {
                break 'rows;
            }
            result.rows.push(values);
        }
    }
    let spec = chart_of(&result.names, &result.kinds, &result.rows, None)?;
    let object = |row: &Vec<Value>| {
        let fields = result.names.iter().cloned().zip(row.iter().cloned());
        Value::Object(fields.collect::<Map<String, Value>>())
    };
    Some((json!(spec), result.rows.iter().map(object).collect()))
}

impl ToolRows {
    /// Reads at most `max_rows` rows and drops the query once it has them.
    pub(super) async fn read(mut stream: QueryStream, max_rows: usize) -> Result<Self, EngineError> {
        Ok(Self::first(&mut stream, max_rows, &mut None).await?.0)
    }

    /// Reads like [`ToolRows::read`], and keeps what it has read.
    pub(super) async fn read_and_keep(
        mut stream: QueryStream,
        max_rows: usize,
        context: &ToolContext,
    ) -> Result<Self, EngineError> {
        let mut recorder = recorder(&stream, context);
        let (mut result, _) = Self::first(&mut stream, max_rows, &mut recorder).await?;
        let is_whole = result.cut.is_none();
        result.ticket = recorder.map(|recorder| ticket_of_rows(recorder, context, is_whole));
        Ok(result)
    }

    /// Reads and keeps like [`ToolRows::read_and_keep`]; counts and keeps the remaining rows within limits.
    pub(super) async fn read_and_count(
        mut stream: QueryStream,
        max_rows: usize,
        context: &ToolContext,
    ) -> Result<Self, EngineError> {
        let mut recorder = recorder(&stream, context);
        let (mut result, left_of_batch) = Self::first(&mut stream, max_rows, &mut recorder).await?;
        if let Some(left_of_batch) = left_of_batch {
            result.total = Some(count_rest(&mut stream, result.rows.len() + left_of_batch, &mut recorder).await);
        } else if result.cut.is_some() {
            // The engine's own bound cut it.
            result.total = Some(Total { rows: result.rows.len(), is_lower_bound: true });
        }
        let is_whole = result.total.is_none_or(|total| !total.is_lower_bound);
        result.ticket = recorder.map(|recorder| ticket_of_rows(recorder, context, is_whole));
        Ok(result)
    }

    /// Reads the first rows. Returns them, and how many rows of the last batch were left out, if any.
    async fn first(
        stream: &mut QueryStream,
        max_rows: usize,
        recorder: &mut Option<ResultRecorder>,
    ) -> Result<(Self, Option<usize>), EngineError> {
        let mut result = Self::empty(&stream.schema());
        let (mut bytes, mut cells) = (0, 0);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if let Some(recorder) = recorder {
                recorder.push(&batch);
            }
            for row in 0..batch.num_rows() {
                if result.rows.len() == max_rows {
                    result.cut = Some(Cut::Rows);
                    return Ok((result, Some(batch.num_rows() - row)));
                }
                let values = row_values(&batch, row);
                bytes += values.iter().map(json_bytes).sum::<usize>();
                // A first row is kept whatever its size: its values are bounded one by one.
                if bytes > MAX_JSON_BYTES && !result.rows.is_empty() {
                    result.cut = Some(Cut::Bytes);
                    return Ok((result, Some(batch.num_rows() - row)));
                }
                result.rows.push(values);
                cells += batch.num_columns();
                if cells >= CELLS_BETWEEN_YIELDS {
                    cells = 0;
                    tokio::task::yield_now().await;
                }
            }
        }
        if stream.stats().truncated {
            result.cut = Some(Cut::Rows);
        }
        Ok((result, None))
    }

    fn empty(schema: &SchemaRef) -> Self {
        let fields = schema.fields().iter();
        let names: Vec<String> = fields.clone().map(|field| shortened(field.name(), MAX_NAME_CHARS)).collect();
        Self {
            names: unique_names(names.iter().map(String::as_str)),
            types: fields.clone().map(|field| shortened(&field.data_type().to_string(), MAX_TYPE_CHARS)).collect(),
            kinds: fields.map(|field| ColumnKind::of_type(field.data_type())).collect(),
            rows: Vec::new(),
            cut: None,
            total: None,
            ticket: None,
        }
    }

    /// Returns both views, with this text for the model; `offered` is the chart that the model asks for.
    pub(super) fn output(&self, text: impl Into<String>, offered: Option<&Value>) -> ToolOutput {
        let chart = chart_of(&self.names, &self.kinds, &self.rows, offered).map(|chart| json!(chart));
        ToolOutput { chart, ticket: self.ticket.clone(), ..ToolOutput::new(self.to_json(), text) }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether there are no rows, or only one without a value: counts of nothing and sums of nothing.
    pub(super) fn found_nothing(&self) -> bool {
        let is_nothing = |value: &Value| value.is_null() || value.as_f64() == Some(0.0);
        match self.rows.as_slice() {
            [] => true,
            [only] => only.iter().all(is_nothing),
            _ => false,
        }
    }

    /// Returns `{columns: [{name, type}], rows: [objects], row_count, truncated}`; of a result that was counted because
    /// it is longer also `total_rows`, and `total_rows_is_lower_bound` where the count was given up.
    pub(super) fn to_json(&self) -> Value {
        let columns: Vec<Value> = self
            .names
            .iter()
            .zip(&self.types)
            .map(|(name, data_type)| json!({"name": name, "type": data_type}))
            .collect();
        let mut json = json!({
            "columns": columns,
            "rows": self.json_rows(),
            "row_count": self.rows.len(),
            "truncated": self.cut.is_some(),
        });
        if let Some(total) = self.total {
            json["total_rows"] = json!(total.rows);
            if total.is_lower_bound {
                json["total_rows_is_lower_bound"] = json!(true);
            }
        }
        json
    }

    /// Returns the rows as objects.
    pub(super) fn json_rows(&self) -> Vec<Value> {
        let object =
            |row: &Vec<Value>| -> Map<String, Value> { self.names.iter().cloned().zip(row.iter().cloned()).collect() };
        self.rows.iter().map(|row| Value::Object(object(row))).collect()
    }

    /// Returns a header, a line for each row, and what was left out, in at most `tokens` tokens.
    pub(super) fn to_text(&self, tokens: usize) -> String {
        let for_rows = tokens.saturating_sub(NOTE_TOKENS);
        let shown_columns = self.columns_within(for_rows / 2);
        let mut lines = vec![self.names[..shown_columns].join(" | ")];
        let mut used = estimate_tokens(&lines[0]) + 1;
        let mut shown_rows = 0;
        for row in &self.rows {
            let fields: Vec<String> = row[..shown_columns].iter().map(field_text).collect();
            let line = fields.join(" | ");
            // The line's end is a token of its own.
            used += estimate_tokens(&line) + 1;
            if used > for_rows {
                break;
            }
            lines.push(line);
            shown_rows += 1;
        }
        lines.push(self.note(shown_rows, shown_columns));
        take_tokens(&lines.join("\n"), tokens).to_owned()
    }

    /// Returns where a text of at most `tokens` tokens is cut, if it is.
    pub(super) fn truncation(&self, tokens: usize) -> Option<Truncation> {
        let (shown, whole) = (self.to_text(tokens), self.to_text(usize::MAX));
        (shown != whole)
            .then(|| Truncation { end_index: shown.chars().count(), original_tokens: estimate_tokens(&whole) })
    }

    /// Returns both views, the text in at most `tokens` tokens.
    pub(super) fn to_output(&self, tokens: usize) -> ToolOutput {
        ToolOutput {
            truncation: self.truncation(tokens),
            ticket: self.ticket.clone(),
            ..ToolOutput::new(self.to_json(), self.to_text(tokens))
        }
    }

    /// Returns how many columns a header may have.
    fn columns_within(&self, tokens: usize) -> usize {
        let mut used = 0;
        let fitting = self.names.iter().take_while(|name| {
            used += estimate_tokens(name) + 2;
            used <= tokens
        });
        fitting.count().max(1).min(self.names.len())
    }

    /// Returns the last line: the number of rows, and what is missing.
    fn note(&self, shown_rows: usize, shown_columns: usize) -> String {
        let columns = match self.names.len() - shown_columns {
            0 => String::new(),
            hidden => format!("; {hidden} more columns not shown, select only those you need"),
        };
        let count = self.rows.len();
        let rows = match self.cut {
            None if count == 0 => "0 rows".to_owned(),
            None if shown_rows == count => format!("{count} row{}", if count == 1 { "" } else { "s" }),
            None => format!("truncated: {shown_rows} of {count} rows shown; aggregate, filter or use LIMIT"),
            Some(Cut::Rows | Cut::Bytes) => {
                format!("truncated: first {shown_rows} rows shown, the result has more; aggregate, filter or use LIMIT")
            }
        };
        format!("({rows}{columns})")
    }
}

/// Begins to keep the rows of a query, where they can be kept.
fn recorder(stream: &QueryStream, context: &ToolContext) -> Option<ResultRecorder> {
    context.results.as_ref()?.recorder(stream.schema())
}

/// Keeps the rows, with what their reader could read.
fn ticket_of_rows(recorder: ResultRecorder, context: &ToolContext, is_whole: bool) -> ResultTicket {
    let who = context.session.principal();
    let reach = context.session.engine().catalog().policies().reach(who);
    recorder.finish(who, reach, is_whole)
}

/// Counts the rows beyond the first `rows`, and keeps them, within limits.
async fn count_rest(stream: &mut QueryStream, rows: usize, recorder: &mut Option<ResultRecorder>) -> Total {
    let mut total = Total { rows, is_lower_bound: true };
    let until = Instant::now() + COUNT_TIMEOUT;
    while total.rows < MAX_COUNTED_ROWS {
        let left = until.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, stream.next()).await {
            // A failure after the requested rows does not fail the call.
            Err(_) | Ok(Some(Err(_))) => break,
            Ok(Some(Ok(batch))) => {
                total.rows += batch.num_rows();
                if let Some(recorder) = recorder {
                    recorder.push(&batch);
                }
            }
            Ok(None) => {
                total.is_lower_bound = stream.stats().truncated;
                break;
            }
        }
    }
    total
}

fn row_values(batch: &RecordBatch, row: usize) -> Vec<Value> {
    let mut room = ByteRoom::new(MAX_JSON_BYTES);
    batch.columns().iter().map(|column| json_value(column, row, &mut room)).collect()
}

/// Returns a value on one line.
fn field_text(value: &Value) -> String {
    let text = plain_text(value);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shortened(&line, MAX_FIELD_CHARS)
}

/// Estimates the length of a value's JSON text.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 12,
        Value::String(text) => text.len() + 4,
        Value::Array(elements) => 2 + elements.iter().map(json_bytes).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + 4 + json_bytes(value)).sum::<usize>()
        }
    }
}

/// Returns the names with a suffix where one repeats, so that a row can be an object.
fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let given: HashSet<&str> = names.iter().copied().collect();
    let mut used: HashSet<String> = HashSet::new();
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        let mut candidate = name.to_owned();
        let mut number = 2;
        while used.contains(&candidate) || (candidate != name && given.contains(candidate.as_str())) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        used.insert(candidate.clone());
        unique.push(candidate);
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: usize, count: usize) -> ToolRows {
        ToolRows {
            names: (0..columns).map(|column| format!("measure_{column}")).collect(),
            types: vec!["Int64".to_owned(); columns],
            kinds: vec![ColumnKind::Number; columns],
            rows: (0..count).map(|row| (0..columns).map(|column| json!(row * column)).collect()).collect(),
            cut: None,
            total: None,
            ticket: None,
        }
    }

    #[test]
    fn repeated_names_get_a_suffix_that_is_free() {
        assert_eq!(unique_names(["a", "a", "a_2", "a"].into_iter()), ["a", "a_3", "a_2", "a_4"]);
    }

    #[test]
    fn a_small_result_is_shown_whole() {
        assert_eq!(rows(2, 2).truncation(600), None);
        assert_eq!(rows(2, 2).to_text(600), "measure_0 | measure_1\n0 | 0\n0 | 1\n(2 rows)");
    }

    #[test]
    fn text_keeps_its_budget_and_says_what_is_missing() {
        for (columns, count) in [(1, 5_000), (400, 3), (400, 5_000), (12, 200)] {
            let text = rows(columns, count).to_text(600);
            assert!(estimate_tokens(&text) <= 600, "{columns} columns, {count} rows");
            assert!(text.contains("truncated") || text.contains("more columns"), "{text}");
            let truncation = rows(columns, count).truncation(600).unwrap();
            assert_eq!(truncation.end_index, text.chars().count());
            assert!(truncation.original_tokens > 600);
        }
    }

    #[test]
    fn an_empty_result_keeps_its_columns() {
        assert_eq!(rows(1, 0).to_text(600), "measure_0\n(0 rows)");
    }
}

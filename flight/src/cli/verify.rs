//! `querent verify`: checks a stored answer again, against the rows that its run has read and against the data as they
//! are.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use futures::StreamExt;
use querent_agent::protocols::ask::run_json;
use querent_catalog::Principal;
use reqwest::Method;
use serde_json::Value;
use uuid::Uuid;

use super::client::{Client, StreamedRows};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::footnotes::origin_text;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};

/// Rows of a query that is run again.
const MAX_ROWS: usize = 1_000;

/// Check the answer of a run again
///
/// Every number, date and name of the answer that is linked to a cell is compared with the rows that the run has read,
/// and with those that its queries return now: the row of the same name must have the same value. Exits with 1 where one
/// is not proven, or has changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent verify 0197c1c0-8f6e-7d5c-9a3b-2f1e0d9c8b7a
  querent verify --server http://127.0.0.1:9000 0197c1c0-8f6e-7d5c-9a3b-2f1e0d9c8b7a")]
pub(super) struct VerifyArgs {
    /// The run, as `querent ask` names it
    #[arg(value_name = "RUN_ID")]
    run_id: Uuid,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: VerifyArgs) -> Result<(), CliError> {
    let found = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let mut answer = StoredAnswer::new(&stored_run(&client, args.run_id).await?)?;
            for earlier in answer.earlier_runs() {
                // What cannot be read any more is not proven.
                if let Ok(run) = stored_run(&client, earlier).await {
                    answer.add_calls(Some(earlier), &run);
                }
            }
            let mut now = BTreeMap::new();
            for (key, query) in answer.queries() {
                let database = query.database.as_deref();
                let rows = match query.is_kql {
                    true => client.kql(query.text.clone(), database).await,
                    false => client.sql(&query.text, database).await,
                };
                now.insert(key, read(rows).await);
            }
            answer.check(&now)
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let checked = check_here(&embedded, args.run_id).await;
            embedded.close().await?;
            checked?
        }
    };
    for line in &found.lines {
        output::print_line(line)?;
    }
    output::print_line(&format!("{} proven, {} not proven, {} changed", found.proven, found.unproven, found.changed))?;
    match found.unproven + found.changed {
        0 => Ok(()),
        _ => Err(CliError::failed("the answer does not hold; ask again, or look at the lines above")),
    }
}

async fn stored_run(client: &Client, run_id: Uuid) -> Result<Value, CliError> {
    let request = client.request(Method::GET, &format!("/v1/agent/runs/{run_id}"))?;
    client.answer(request).await
}

async fn check_here(embedded: &EmbeddedEngine, run_id: Uuid) -> Result<Verdict, CliError> {
    let mut answer = StoredAnswer::new(&run_here(embedded, run_id).await?)?;
    for earlier in answer.earlier_runs() {
        if let Ok(run) = run_here(embedded, earlier).await {
            answer.add_calls(Some(earlier), &run);
        }
    }
    let mut now = BTreeMap::new();
    for (key, query) in answer.queries() {
        let rows = async {
            let session = embedded.session(query.database.as_deref()).await?;
            let rows = match query.is_kql {
                true => session.kql(&query.text).await?,
                false => session.sql(&query.text).await?,
            };
            Ok::<_, CliError>(StreamedRows::from(rows))
        };
        now.insert(key, read(rows.await).await);
    }
    Ok(answer.check(&now))
}

async fn run_here(embedded: &EmbeddedEngine, run_id: Uuid) -> Result<Value, CliError> {
    let run = embedded.engine.catalog().runs().get(&Principal::local_admin(), run_id).await?;
    let trace_json = querent_agent::protocols::ask::decode_trace(run.trace_json.clone());
    Ok(run_json(&querent_catalog::RunRecord { trace_json, ..run }))
}

/// A row as texts, by column; nulls are none.
pub(super) type RowNow = BTreeMap<String, Option<String>>;

/// Rows; `Err` says why there are none.
pub(super) type RowsNow = Result<Vec<RowNow>, String>;

/// Reads the rows of a query, as far as they are compared.
pub(super) async fn read(rows: Result<StreamedRows, CliError>) -> RowsNow {
    let mut rows = rows.map_err(|error| error.to_string())?;
    let names: Vec<String> = rows.schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut read = Vec::new();
    while let Some(batch) = rows.batches.next().await {
        let batch = batch.map_err(|error| error.to_string())?;
        let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
        for row in 0..batch.num_rows() {
            if read.len() == MAX_ROWS {
                return Ok(read);
            }
            let cells = names.iter().zip(batch.columns()).zip(&nulls).map(|((name, column), nulls)| {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                (name.clone(), (!is_null).then(|| array_value_to_string(column, row).unwrap_or_default()))
            });
            read.push(cells.collect());
        }
    }
    Ok(read)
}

/// A call: the earlier run that it is of, and its number.
type CallKey = (Option<Uuid>, u64);

/// An answer with its proof, and what its run, and earlier ones of the conversation, have read.
struct StoredAnswer {
    links: Vec<Value>,
    calls: BTreeMap<CallKey, StoredCall>,
}

/// What a call has read.
struct StoredCall {
    columns: Vec<String>,
    rows: Vec<Value>,
    /// How many there were; `None` where not all were read.
    row_count: Option<usize>,
    /// `None` of a tool that is no query.
    query: Option<StoredQuery>,
}

/// A query as it ran.
struct StoredQuery {
    text: String,
    is_kql: bool,
    database: Option<String>,
}

/// What was found.
#[derive(Debug, Default)]
struct Verdict {
    lines: Vec<String>,
    proven: usize,
    unproven: usize,
    changed: usize,
}

impl StoredAnswer {
    fn new(run: &Value) -> Result<Self, CliError> {
        let Some(answer) = frames(run, "answer_final").next() else {
            return Err(CliError::failed("the run has no answer to verify"));
        };
        let links = answer["proof"].as_array().cloned().unwrap_or_default();
        let mut stored = Self { links, calls: BTreeMap::new() };
        stored.add_calls(None, run);
        Ok(stored)
    }

    /// Returns the earlier runs that the proof names.
    fn earlier_runs(&self) -> Vec<Uuid> {
        let mut runs: Vec<Uuid> =
            self.links.iter().flat_map(cells_of).filter_map(|cell| cell["run_id"].as_str()?.parse().ok()).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// Adds what the calls of a run have read.
    fn add_calls(&mut self, run_id: Option<Uuid>, run: &Value) {
        // Where bare names of a query resolve whose call says no database.
        let of_run = frames(run, "answer_final").next().and_then(|answer| answer["sql_database"].as_str());
        let sent: BTreeMap<u64, &Value> =
            frames(run, "tool_call").filter_map(|call| Some((call["call_index"].as_u64()?, call))).collect();
        for data in frames(run, "tool_result") {
            let result = &data["result"];
            let (Some(index), Some(rows)) = (data["call_index"].as_u64(), result["rows"].as_array()) else { continue };
            let args = sent.get(&index).map(|call| &call["args"]);
            let tool = data["tool"].as_str().unwrap_or_default();
            let written = args.and_then(|args| {
                ["sql", "kql", "query"].iter().find_map(|name| args[*name].as_str()).map(str::to_owned)
            });
            // The query of a vote that was chosen, or that the model wrote when it was asked again, ran in its place.
            let chosen = result["vote"]["chosen"].as_u64().and_then(|chosen| usize::try_from(chosen).ok());
            let elected = chosen.and_then(|chosen| result["vote"]["candidates"][chosen]["sql"].as_str());
            let again = result["asked_again"]["sql"].as_str();
            let ran = again.or(elected).or(result["repaired"]["ran"].as_str()).map(str::to_owned);
            let named = [&result["asked_again"]["database"], args.map_or(&Value::Null, |args| &args["database"])];
            let database = named.iter().find_map(|name| name.as_str()).or(of_run).map(str::to_owned);
            let query = ["run_sql", "run_kql"].contains(&tool).then(|| ran.or(written)).flatten();
            let query = query.map(|text| StoredQuery { text, is_kql: tool == "run_kql", database });
            let count = ["total_rows", "row_count"].iter().find_map(|name| result[*name].as_u64());
            let row_count = count.filter(|_| result["truncated"] != true).and_then(|count| usize::try_from(count).ok());
            let names = result["columns"].as_array().into_iter().flatten();
            let columns = names.filter_map(|column| column["name"].as_str().map(str::to_owned)).collect();
            self.calls.insert((run_id, index), StoredCall { columns, rows: rows.clone(), row_count, query });
        }
    }

    /// Returns the queries, which can be run again.
    fn queries(&self) -> impl Iterator<Item = (CallKey, &StoredQuery)> {
        self.calls.iter().filter_map(|(key, call)| Some((*key, call.query.as_ref()?)))
    }

    fn check(&self, now: &BTreeMap<CallKey, RowsNow>) -> Verdict {
        let mut verdict = Verdict::default();
        for link in &self.links {
            let text = link["text"].as_str().unwrap_or_default();
            let state = match link["origin"].as_str().unwrap_or_default() {
                "cell" => self.cell_state(&link["cell"], now),
                "expression" => {
                    let states = cells_of(link).into_iter().map(|cell| self.cell_state(cell, now));
                    let of_cells = states.max().unwrap_or(CellState::Unproven);
                    of_cells.max(self.whole_state(link, now))
                }
                "row_count" => self.count_state((None, link["call_index"].as_u64().unwrap_or_default()), now),
                "question" | "query" | "conversation" => CellState::Same,
                _ => CellState::Unproven,
            };
            let word = match state {
                CellState::Same => {
                    verdict.proven += 1;
                    "proven"
                }
                CellState::Changed => {
                    verdict.changed += 1;
                    "changed"
                }
                CellState::Unproven => {
                    verdict.unproven += 1;
                    "not proven"
                }
            };
            let value = self.value_now(&link["cell"], now).filter(|_| state == CellState::Changed);
            let is_now = value.map(|value| format!("; it is {value} now")).unwrap_or_default();
            verdict.lines.push(format!("{word}: {text} ({}){is_now}", origin_text(link)));
        }
        for ((_, call_index), rows) in now {
            if let Err(why) = rows {
                verdict.lines.push(format!("query {} does not run any more: {why}", call_index + 1));
            }
        }
        verdict
    }

    /// Returns how a cell stands: the row of the same labels has the same value now.
    fn cell_state(&self, cell: &Value, now: &BTreeMap<CallKey, RowsNow>) -> CellState {
        let key = key_of(cell);
        let column = cell["column"].as_str().unwrap_or_default();
        let row = cell["row"].as_u64().and_then(|row| usize::try_from(row).ok());
        let stored = self.calls.get(&key).zip(row).and_then(|(call, row)| call.rows.get(row));
        let Some(stored) = stored.filter(|stored| stored.get(column).is_some()) else { return CellState::Unproven };
        // Other tools than queries are not called again.
        let Some(rows) = now.get(&key) else { return CellState::Same };
        let labels = self.calls.get(&key).map(|call| call.labels(column)).unwrap_or_default();
        let has = |row: &RowNow, name: &str| has_value(row, name, &stored[name]);
        let is_there = rows
            .as_ref()
            .is_ok_and(|rows| rows.iter().any(|row| has(row, column) && labels.iter().all(|label| has(row, label))));
        if is_there { CellState::Same } else { CellState::Changed }
    }

    /// Returns the value that the row of the same labels has now, where it is the only one.
    fn value_now(&self, cell: &Value, now: &BTreeMap<CallKey, RowsNow>) -> Option<String> {
        let key = key_of(cell);
        let column = cell["column"].as_str()?;
        let row = usize::try_from(cell["row"].as_u64()?).ok()?;
        let call = self.calls.get(&key)?;
        let stored = call.rows.get(row)?;
        let labels = call.labels(column);
        let has = |row: &RowNow, name: &str| has_value(row, name, &stored[name]);
        let is_it = |row: &&RowNow| labels.iter().all(|label| has(row, label));
        let mut found = now.get(&key)?.as_ref().ok()?.iter().filter(is_it);
        let only = found.next().filter(|_| found.next().is_none())?;
        only.get(column).map(|value| value.clone().unwrap_or_else(|| "null".to_owned()))
    }

    /// Returns how an expression over all rows of a result stands, which another row changes.
    fn whole_state(&self, link: &Value, now: &BTreeMap<CallKey, RowsNow>) -> CellState {
        let cells = cells_of(link);
        let Some(key) = cells.first().map(|cell| key_of(cell)) else { return CellState::Unproven };
        let rows = self.calls.get(&key).map_or(0, |call| call.rows.len());
        let is_of_all = rows > 2 || rows == 2 && link["expression"].as_str().is_some_and(|text| text.contains(" + "));
        match is_of_all && cells.len() >= rows {
            true => self.count_state(key, now),
            false => CellState::Same,
        }
    }

    /// Returns how the number of rows of a call stands.
    fn count_state(&self, key: CallKey, now: &BTreeMap<CallKey, RowsNow>) -> CellState {
        let Some(call) = self.calls.get(&key) else { return CellState::Unproven };
        match (call.row_count, now.get(&key)) {
            (Some(count), Some(rows)) => match rows {
                Ok(rows) if rows.len() == count.min(MAX_ROWS) => CellState::Same,
                Ok(_) | Err(_) => CellState::Changed,
            },
            _ => CellState::Same,
        }
    }
}

/// Returns the data of a run's frames of one name.
fn frames<'r>(run: &'r Value, name: &'static str) -> impl Iterator<Item = &'r Value> {
    run["trace"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(move |frame| frame["event"] == name)
        .map(|frame| &frame["data"])
}

/// Returns the cells that a link rests on.
fn cells_of(link: &Value) -> Vec<&Value> {
    match link["origin"].as_str() {
        Some("cell") => vec![&link["cell"]],
        _ => link["cells"].as_array().into_iter().flatten().collect(),
    }
}

fn key_of(cell: &Value) -> CallKey {
    let run_id = cell["run_id"].as_str().and_then(|run_id| run_id.parse().ok());
    (run_id, cell["call_index"].as_u64().unwrap_or_default())
}

impl StoredCall {
    /// Returns the columns by which the rows are told apart, without `column` itself: those of names, else the first of
    /// several. One row needs none.
    fn labels(&self, column: &str) -> Vec<&str> {
        if self.rows.len() < 2 {
            return Vec::new();
        }
        let is_name = |name: &&str| {
            let mut texts = self.rows.iter().filter_map(|row| row[*name].as_str());
            texts.any(|text| !text.is_empty() && text.parse::<f64>().is_err())
        };
        let mut labels: Vec<&str> = self.columns.iter().map(String::as_str).filter(is_name).collect();
        if labels.is_empty() {
            labels.extend(self.columns.first().map(String::as_str));
        }
        labels.retain(|name| *name != column);
        labels
    }
}

/// How a cell stands, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CellState {
    Same,
    Changed,
    Unproven,
}

/// Whether a row that was read now has a stored value in a column.
pub(super) fn has_value(row: &RowNow, column: &str, stored: &Value) -> bool {
    row.get(column).is_some_and(|now| same_value(stored, now.as_deref()))
}

/// Whether a stored value and one read now are the same; a null is no empty text.
fn same_value(stored: &Value, now: Option<&str>) -> bool {
    let Some(now) = now else { return stored.is_null() };
    let text = match stored {
        Value::String(text) => text.clone(),
        Value::Null => return false,
        other => other.to_string(),
    };
    if text == now {
        return true;
    }
    // Whole numbers are exact: ids and instants differ in their last digits alone.
    if let (Ok(left), Ok(right)) = (text.parse::<i128>(), now.parse::<i128>()) {
        return left == right;
    }
    match (text.parse::<f64>(), now.parse::<f64>()) {
        (Ok(left), Ok(right)) => (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-6),
        // Instants are written in more than one way.
        _ => text.replace('T', " ").trim_end_matches('Z') == now.replace('T', " ").trim_end_matches('Z'),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_the_same_but_for_the_last_digits_of_computed_numbers() {
        for (stored, now) in [
            (json!(0.3), "0.30000000000000004"),
            (json!(3), "3.0"),
            (json!("0.5"), "0.5000000000000001"),
            (json!(0), "0.00000000000000001"),
            (json!(9_007_199_254_740_993_i64), "9007199254740993"),
            (json!("2024-01-01T10:00:00Z"), "2024-01-01 10:00:00"),
            (json!(""), ""),
        ] {
            assert!(same_value(&stored, Some(now)), "{stored} {now}");
        }
        assert!(same_value(&Value::Null, None) && !same_value(&json!(""), None));
        for (stored, now) in [
            (json!(10_000_000_001_i64), "10000000002"),
            (json!("1700000000000"), "1700000000500"),
            (json!(9_007_199_254_740_993_i64), "9007199254740992"),
            (json!(0.000_000_000_4), "0.0000000001"),
            (json!(0.5), "0.5001"),
            (Value::Null, ""),
        ] {
            assert!(!same_value(&stored, Some(now)), "{stored} {now}");
        }
    }
}

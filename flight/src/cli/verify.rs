//! `querent verify`: checks a stored answer again, against the rows that its run has read and against the data as they
//! are.

use std::collections::BTreeMap;
use std::sync::Arc;

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
/// and with those that its queries return now. Exits with 1 where one is not proven, or has changed.
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
            let request = client.request(Method::GET, &format!("/v1/agent/runs/{}", args.run_id))?;
            let run: Value = client.answer(request).await?;
            let answer = StoredAnswer::new(&run)?;
            let mut now = BTreeMap::new();
            for (call, query) in &answer.queries {
                now.insert(*call, read(client.sql(query, None).await).await);
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

async fn check_here(embedded: &EmbeddedEngine, run_id: Uuid) -> Result<Verdict, CliError> {
    let run = embedded.engine.catalog().runs().get(&Principal::local_admin(), run_id).await?;
    let decoded = querent_catalog::RunRecord {
        trace_json: querent_agent::protocols::ask::decode_trace(run.trace_json.clone()),
        ..run
    };
    let answer = StoredAnswer::new(&run_json(&decoded))?;
    let session = embedded.session(None).await?;
    let mut now = BTreeMap::new();
    for (call, query) in &answer.queries {
        let rows = session.sql(query).await.map(StreamedRows::from).map_err(CliError::from);
        now.insert(*call, read(rows).await);
    }
    Ok(answer.check(&now))
}

/// Rows as texts, by column; `Err` says why there are none.
pub(super) type RowsNow = Result<Vec<BTreeMap<String, String>>, String>;

/// Reads the rows of a query, as far as they are compared.
pub(super) async fn read(rows: Result<StreamedRows, CliError>) -> RowsNow {
    let mut rows = rows.map_err(|error| error.to_string())?;
    let names: Vec<String> = rows.schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut read = Vec::new();
    while let Some(batch) = rows.batches.next().await {
        let batch = batch.map_err(|error| error.to_string())?;
        for row in 0..batch.num_rows() {
            if read.len() == MAX_ROWS {
                return Ok(read);
            }
            let cells = names.iter().zip(batch.columns());
            let cells =
                cells.map(|(name, column)| (name.clone(), array_value_to_string(column, row).unwrap_or_default()));
            read.push(cells.collect());
        }
    }
    Ok(read)
}

/// An answer with its proof, and what its run has read.
struct StoredAnswer {
    links: Vec<Value>,
    /// The rows of each call.
    rows: BTreeMap<u64, Vec<Value>>,
    /// The SQL of each call.
    queries: BTreeMap<u64, String>,
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
        let frames: Vec<&Value> = run["trace"].as_array().into_iter().flatten().collect();
        let data =
            |name: &'static str| frames.iter().filter(move |frame| frame["event"] == name).map(|frame| &frame["data"]);
        let Some(answer) = data("answer_final").next() else {
            return Err(CliError::failed("the run has no answer to verify"));
        };
        let sent: BTreeMap<u64, &Value> =
            data("tool_call").filter_map(|call| Some((call["call_index"].as_u64()?, call))).collect();
        let (mut rows, mut queries) = (BTreeMap::new(), BTreeMap::new());
        for result in data("tool_result") {
            let Some(index) = result["call_index"].as_u64() else { continue };
            let Some(found) = result["result"]["rows"].as_array() else { continue };
            rows.insert(index, found.clone());
            let ran = result["result"]["repaired"]["ran"].as_str();
            let args = sent.get(&index).map(|call| &call["args"]);
            let written = args.and_then(|args| args["sql"].as_str().or(args["query"].as_str()));
            if result["tool"] == "run_sql"
                && let Some(query) = ran.or(written)
            {
                queries.insert(index, query.to_owned());
            }
        }
        Ok(Self { links: answer["proof"].as_array().cloned().unwrap_or_default(), rows, queries })
    }

    fn check(&self, now: &BTreeMap<u64, RowsNow>) -> Verdict {
        let mut verdict = Verdict::default();
        for link in &self.links {
            let text = link["text"].as_str().unwrap_or_default();
            let state = match link["origin"].as_str().unwrap_or_default() {
                "cell" => self.cell_state(&link["cell"], now),
                "expression" => {
                    let states = link["cells"].as_array().into_iter().flatten().map(|cell| self.cell_state(cell, now));
                    states.max().unwrap_or(CellState::Unproven)
                }
                "question" | "query" | "row_count" => CellState::Same,
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
            verdict.lines.push(format!("{word}: {text} ({})", origin_text(link)));
        }
        verdict
    }

    fn cell_state(&self, cell: &Value, now: &BTreeMap<u64, RowsNow>) -> CellState {
        let stored = || -> Option<&Value> {
            let row = usize::try_from(cell["row"].as_u64()?).ok()?;
            let value = self.rows.get(&cell["call_index"].as_u64()?)?.get(row)?.get(cell["column"].as_str()?)?;
            Some(value)
        };
        let Some(value) = stored() else { return CellState::Unproven };
        let index = cell["call_index"].as_u64().unwrap_or_default();
        // Other tools than SQL are not called again.
        let Some(rows) = now.get(&index) else { return CellState::Same };
        let column = cell["column"].as_str().unwrap_or_default();
        let is_there = rows
            .as_ref()
            .is_ok_and(|rows| rows.iter().any(|row| row.get(column).is_some_and(|found| same_value(value, found))));
        if is_there { CellState::Same } else { CellState::Changed }
    }
}

/// How a cell stands, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CellState {
    Same,
    Changed,
    Unproven,
}

/// Whether a stored value and one read now are the same.
pub(super) fn same_value(stored: &Value, now: &str) -> bool {
    let text = match stored {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    if text == now {
        return true;
    }
    match (text.parse::<f64>(), now.parse::<f64>()) {
        (Ok(left), Ok(right)) => (left - right).abs() <= 1e-9 * left.abs().max(1.0),
        // Instants are written in more than one way.
        _ => text.replace('T', " ").trim_end_matches('Z') == now.replace('T', " ").trim_end_matches('Z'),
    }
}

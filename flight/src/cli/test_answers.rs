//! `querent test-answers`: runs the queries of answers that were found right, and says which return other rows now.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::{Client, StreamedRows};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::query_text::is_query;
use super::target::{CliTarget, TargetArgs};
use super::verify::{RowNow, RowsNow, has_value, read};

/// Check that answers found right still hold
///
/// Each line of the file is a JSON object: the `question`, the `sql` that answers it, the `rows` it returned (objects
/// by column, in any order) and, where bare names need one, the `database`. Only queries are run. Exits with 1 where one
/// fails or returns other rows: a renamed column fails the answers that depend on it, and no others.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent test-answers answers.ndjson
  querent test-answers --server http://127.0.0.1:9000 answers.ndjson
  querent test-answers --update answers.ndjson        # writes the rows of today into the file")]
pub(super) struct TestAnswersArgs {
    /// The file, one JSON object a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the rows that the queries return now into the file
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// One line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownAnswer {
    question: String,
    sql: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Map<String, Value>>>,
}

pub(super) async fn run(args: TestAnswersArgs) -> Result<(), CliError> {
    let path = args.file.display();
    let text = tokio::fs::read_to_string(&args.file)
        .await
        .map_err(|error| CliError::Usage(format!("cannot read {path}: {error}")))?;
    let mut answers = Vec::new();
    // Editors of Windows begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let answer: KnownAnswer = serde_json::from_str(line)
            .map_err(|error| CliError::Usage(format!("{path}, line {}: {error}", index + 1)))?;
        if !is_query(&answer.sql) {
            let message = format!("{path}, line {}: `sql` is not one query; nothing else is run", index + 1);
            return Err(CliError::Usage(message));
        }
        if answer.rows.is_none() && !args.update {
            let message = format!("{path}, line {}: no `rows` to compare with; --update writes them", index + 1);
            return Err(CliError::Usage(message));
        }
        answers.push(answer);
    }
    let found = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let mut found = Vec::new();
            for answer in &answers {
                found.push(read(client.sql(&answer.sql, answer.database.as_deref()).await).await);
            }
            found
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let mut found = Vec::new();
            for answer in &answers {
                found.push(read_here(&embedded, answer).await);
            }
            embedded.close().await?;
            found
        }
    };
    if args.update {
        return update(&args.file, answers, found).await;
    }
    let mut failed = 0;
    for (answer, now) in answers.iter().zip(&found) {
        let line = match verdict(answer, now) {
            Ok(()) => format!("ok: {}", answer.question),
            Err(why) => {
                failed += 1;
                format!("FAILED: {}: {why}", answer.question)
            }
        };
        output::print_line(&line)?;
    }
    output::print_line(&format!("{} answers hold, {failed} do not", answers.len() - failed))?;
    match failed {
        0 => Ok(()),
        _ => Err(CliError::failed("some answers do not hold; where the data is meant to be so, run with --update")),
    }
}

async fn read_here(embedded: &EmbeddedEngine, answer: &KnownAnswer) -> RowsNow {
    let rows = async {
        let session = embedded.session(answer.database.as_deref()).await?.read_only();
        Ok::<_, CliError>(StreamedRows::from(session.sql(&answer.sql).await?))
    };
    read(rows.await).await
}

/// Compares rows in any order; equal rows count as often as they are there. Errors: why an answer does not hold.
fn verdict(answer: &KnownAnswer, now: &RowsNow) -> Result<(), String> {
    let now = now.as_ref().map_err(Clone::clone)?;
    let expected = answer.rows.as_deref().unwrap_or_default();
    let same = |row: &Map<String, Value>, found: &RowNow| {
        row.len() == found.len() && row.iter().all(|(name, value)| has_value(found, name, value))
    };
    if expected.len() != now.len() {
        return Err(format!("{} rows, expected {}", now.len(), expected.len()));
    }
    let mut left: Vec<&RowNow> = now.iter().collect();
    for row in expected {
        match left.iter().position(|found| same(row, found)) {
            Some(index) => left.swap_remove(index),
            None => return Err(format!("no row is {}", Value::Object(row.clone()))),
        };
    }
    Ok(())
}

/// Writes the rows of today into the file. Errors: a query fails; the file is left as it was.
async fn update(file: &Path, answers: Vec<KnownAnswer>, found: Vec<RowsNow>) -> Result<(), CliError> {
    let mut text = String::new();
    for (answer, now) in answers.into_iter().zip(found) {
        let now = now.map_err(|error| CliError::failed(format!("{}: {error}", answer.question)))?;
        let as_json = |value: Option<String>| value.map_or(Value::Null, Value::String);
        let rows = now.into_iter().map(|row| row.into_iter().map(|(name, value)| (name, as_json(value))).collect());
        let line = serde_json::to_string(&KnownAnswer { rows: Some(rows.collect()), ..answer })
            .map_err(|error| CliError::failed(error.to_string()))?;
        text.push_str(&line);
        text.push('\n');
    }
    tokio::fs::write(file, text).await?;
    output::print_line("updated")
}

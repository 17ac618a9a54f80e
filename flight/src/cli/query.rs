//! What `querent sql` and `querent kql` share: where the text comes from, where it runs, and how its rows are printed.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::client::{Client, StreamedRows};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};

/// The language of a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Language {
    Sql,
    Kql,
}

/// Flags beside the text.
#[derive(Debug, clap::Args)]
pub(super) struct QueryArgs {
    /// Read the text from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Where bare table names resolve
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Print one JSON object a row instead of a table
    #[arg(long)]
    json: bool,
    /// Rows that the table shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: usize,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs the text of the argument, of a file or of standard input, and prints its rows.
pub(super) async fn run(argument: Option<String>, args: QueryArgs, language: Language) -> Result<(), CliError> {
    let text = text_of(argument, args.file).await?;
    let database = args.database.as_deref();
    let printed_as = OutputFormat { json: args.json, max_rows: (args.rows > 0).then_some(args.rows) };
    match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let rows = match language {
                Language::Sql => client.sql(&text, database).await?,
                Language::Kql => client.kql(text, database).await?,
            };
            printed_as.print(rows).await
        }
        CliTarget::Embedded(config) => {
            let bars = Arc::new(Bars::new(false));
            let embedded = EmbeddedEngine::open(*config, &bars).await?;
            bars.clear();
            let session = embedded.session(database).await?;
            let started = match language {
                Language::Sql => session.sql(&text).await,
                Language::Kql => session.kql(&text).await,
            };
            let printed = match started {
                Ok(rows) => printed_as.print(StreamedRows::from(rows)).await,
                Err(error) => Err(error.into()),
            };
            drop(session);
            embedded.close().await?;
            printed
        }
    }
}

/// How rows are printed.
struct OutputFormat {
    json: bool,
    max_rows: Option<usize>,
}

impl OutputFormat {
    async fn print(&self, rows: StreamedRows) -> Result<(), CliError> {
        match self.json {
            true => output::print_ndjson(rows).await,
            false => output::print_table(rows, self.max_rows).await,
        }
    }
}

/// Returns the text of an argument, a file or standard input.
async fn text_of(argument: Option<String>, file: Option<PathBuf>) -> Result<String, CliError> {
    if let Some(text) = argument {
        return Ok(text);
    }
    if let Some(file) = file {
        let text = tokio::fs::read_to_string(&file).await;
        return text.map_err(|error| CliError::Usage(format!("cannot read {}: {error}", file.display())));
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CliError::Usage("no statement; give it as an argument, with -f FILE or on standard input".into()));
    }
    // Nothing else runs yet, so the read may block.
    let mut text = String::new();
    stdin.lock().read_to_string(&mut text)?;
    Ok(text)
}

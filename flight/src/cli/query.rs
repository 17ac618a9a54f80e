//! What `querent sql` and `querent kql` share: where the text comes from, where it runs, and how its rows are printed.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::client::{Client, StreamedRows};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output::rows::{OutputFormat, RowsPrinter, RowsTarget, TableHints};
use super::output::terminal::Terminal;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::error::ErrorCode;

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
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Flags of how rows are printed.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// How rows are printed
    #[arg(long, alias = "format", value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    /// Print one JSON object a row: --output ndjson
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Rows that a table shows; 0 shows all [default: what the terminal has lines for, at most 40; else 100]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
}

impl OutputArgs {
    /// Returns the printer of these flags. What only programs can read is refused on a terminal.
    pub(super) fn printer(&self) -> Result<RowsPrinter, CliError> {
        let format = if self.json { OutputFormat::Ndjson } else { self.output };
        let terminal = Terminal::stdout();
        if terminal.width.is_some() && format.is_whole_file() {
            let hint = "add `> FILE`, or choose another --output";
            return Err(CliError::Usage(format!("this output is for programs, not for a terminal: {hint}")));
        }
        Ok(RowsPrinter { format, max_rows: self.rows, terminal, hints: TableHints::Flags })
    }
}

/// Runs the text of the argument, of a file or of standard input, and prints its rows.
pub(super) async fn run(argument: Option<String>, args: QueryArgs, language: Language) -> Result<(), CliError> {
    let text = text_of(argument, args.file).await?;
    let database = args.database.as_deref();
    let printer = args.output.printer()?;
    match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let rows = match language {
                Language::Sql => client.sql(&text, database).await.map_err(|error| failed_in(error, &text))?,
                Language::Kql => client.kql(text, database).await?,
            };
            printer.print(rows, RowsTarget::Stdout).await.map(drop)
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
                Ok(rows) => printer.print(StreamedRows::from(rows), RowsTarget::Stdout).await.map(drop),
                Err(error) => Err(failed_in(CliError::from(error), &text)),
            };
            drop(session);
            embedded.close().await?;
            printed
        }
    }
}

/// Returns an error with the place in the text that it names, and with what runs several statements where there are several.
fn failed_in(error: CliError, text: &str) -> CliError {
    match error {
        CliError::Failed { code: Some(code), message } if code == ErrorCode::MultipleStatements.as_str() => {
            let message = format!("{message}, or run them by `querent -c` or `querent < FILE`");
            CliError::Failed { code: Some(code), message }
        }
        other => other.pointing_into(text),
    }
}

/// Returns the text of an argument, a file or standard input.
async fn text_of(argument: Option<String>, file: Option<PathBuf>) -> Result<String, CliError> {
    // `-` is standard input, as of other programs.
    if let Some(text) = argument.filter(|text| text.trim() != "-") {
        return Ok(text);
    }
    if let Some(file) = file.filter(|file| file.as_os_str() != "-") {
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

//! `querent fetch`: the rows on which an answer rests, as the run's query gave them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::ArrowError;
use futures::TryStreamExt;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::client::{Client, StreamedRows};
use super::error::CliError;
use super::output;
use super::output::rows::{OutputFormat, RowsPrinter, RowsTarget, TableHints};
use super::output::terminal::Terminal;
use super::target::ServerArgs;
use crate::formats::{ResultFormat, ResultWriter};
use crate::sql::TRUNCATED_KEY;

/// Fetch the rows on which an answer rests
///
/// A server keeps the rows that its agent queried for a while: `querent ask` prints the ticket, and events have it as
/// `ticket`. The query does not run again, and only the caller who asked is given them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent fetch --server http://127.0.0.1:8080 TICKET
  querent fetch --server http://127.0.0.1:8080 TICKET -o rows.arrows")]
pub(super) struct FetchArgs {
    /// The ticket
    #[arg(value_name = "TICKET")]
    ticket: String,
    /// Write all rows to this file: an Arrow stream (.arrows), one JSON object a row (.ndjson), CSV (.csv, .tsv) or
    /// Parquet (.parquet)
    #[arg(short, long, value_name = "FILE", value_parser = rows_file, conflicts_with = "json")]
    output: Option<RowsFile>,
    /// Print one JSON object a row instead of a table
    #[arg(long)]
    json: bool,
    /// Rows that the table shows; 0 shows all [default: what the terminal has lines for, at most 40; else 100]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    #[command(flatten)]
    server: ServerArgs,
}

/// A file for rows, in the format that its name says.
#[derive(Debug, Clone)]
struct RowsFile {
    path: PathBuf,
    format: ResultFormat,
}

pub(super) async fn run(args: FetchArgs) -> Result<(), CliError> {
    let server = args.server.address()?.ok_or_else(|| {
        CliError::Usage("name the server that was asked, with --server or QUERENT_SERVER: it keeps the rows".to_owned())
    })?;
    let rows = Client::new(server)?.fetch(args.ticket.trim()).await?;
    let is_truncated = rows.schema.metadata().get(TRUNCATED_KEY).is_some_and(|mark| mark == "true");
    match args.output {
        Some(file) => {
            let count = write_rows(rows, &file).await?;
            let noun = if count == 1 { "row" } else { "rows" };
            output::print_line(&format!("{}: {count} {noun}", file.path.display()))?;
        }
        None => {
            let format = if args.json { OutputFormat::Ndjson } else { OutputFormat::Table };
            let (terminal, hints) = (Terminal::stdout(), TableHints::Flags);
            let printer = RowsPrinter { format, max_rows: args.rows, terminal, hints };
            printer.print(rows, RowsTarget::Stdout).await?;
        }
    }
    if is_truncated {
        output::warn("the query has more rows than the server kept: run its statement to get all");
    }
    Ok(())
}

/// Reads the name of a file for rows.
fn rows_file(path: &str) -> Result<RowsFile, String> {
    let format = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("arrows") => ResultFormat::Arrow,
        Some("ndjson" | "jsonl") => ResultFormat::Ndjson,
        Some("csv") => ResultFormat::Csv,
        Some("tsv") => ResultFormat::Tsv,
        Some("parquet") => ResultFormat::Parquet,
        _ => return Err("the file's name must end with .arrows, .ndjson, .jsonl, .csv, .tsv or .parquet".to_owned()),
    };
    Ok(RowsFile { path: PathBuf::from(path), format })
}

/// Writes the rows as they arrive. Returns how many.
async fn write_rows(mut rows: StreamedRows, to: &RowsFile) -> Result<usize, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot write {}: {error}", to.path.display()));
    let unencoded = |error: ArrowError| CliError::failed(error.to_string());
    let mut file = File::create(&to.path).await.map_err(failed)?;
    let mut writer = ResultWriter::new(to.format, Arc::clone(&rows.schema)).map_err(unencoded)?;
    let mut count = 0;
    while let Some(batch) = rows.batches.try_next().await? {
        count += batch.num_rows();
        file.write_all(&writer.write(&batch).map_err(unencoded)?).await.map_err(failed)?;
    }
    file.write_all(&writer.finish(count as u64, false).map_err(unencoded)?).await.map_err(failed)?;
    file.flush().await.map_err(failed)?;
    Ok(count)
}

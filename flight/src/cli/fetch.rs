//! `querent fetch`: the rows on which an answer rests, as the run's query gave them.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_json::WriterBuilder;
use arrow_json::writer::{LineDelimited, Writer};
use arrow_schema::ArrowError;
use futures::TryStreamExt;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::client::{Client, StreamedRows};
use super::error::CliError;
use super::output;
use super::target::ServerArgs;
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
    /// Write all rows to this file: an Arrow stream (.arrows) or one JSON object a row (.ndjson)
    #[arg(short, long, value_name = "FILE", value_parser = rows_file, conflicts_with = "json")]
    output: Option<RowsFile>,
    /// Print one JSON object a row instead of a table
    #[arg(long)]
    json: bool,
    /// Rows that the table shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: usize,
    #[command(flatten)]
    server: ServerArgs,
}

/// A file for rows, in the format that its name says.
#[derive(Debug, Clone)]
struct RowsFile {
    path: PathBuf,
    format: RowsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsFormat {
    ArrowStream,
    Ndjson,
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
        None if args.json => output::print_ndjson(rows).await?,
        None => output::print_table(rows, (args.rows > 0).then_some(args.rows)).await?,
    }
    if is_truncated {
        output::warn("the query has more rows than the server kept: run its statement to get all");
    }
    Ok(())
}

/// Reads the name of a file for rows.
fn rows_file(path: &str) -> Result<RowsFile, String> {
    let format = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("arrows") => RowsFormat::ArrowStream,
        Some("ndjson" | "jsonl") => RowsFormat::Ndjson,
        _ => return Err("the file's name must end with .arrows, .ndjson or .jsonl".to_owned()),
    };
    Ok(RowsFile { path: PathBuf::from(path), format })
}

/// Writes the rows as they arrive. Returns how many.
async fn write_rows(mut rows: StreamedRows, to: &RowsFile) -> Result<usize, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot write {}: {error}", to.path.display()));
    let unencoded = |error: ArrowError| CliError::failed(error.to_string());
    let mut file = File::create(&to.path).await.map_err(failed)?;
    let mut stream = StreamWriter::try_new(Vec::new(), &rows.schema).map_err(unencoded)?;
    let mut count = 0;
    while let Some(batch) = rows.batches.try_next().await? {
        count += batch.num_rows();
        let bytes = match to.format {
            RowsFormat::ArrowStream => {
                stream.write(&batch).map_err(unencoded)?;
                std::mem::take(stream.get_mut())
            }
            RowsFormat::Ndjson => ndjson(&batch).map_err(unencoded)?,
        };
        file.write_all(&bytes).await.map_err(failed)?;
    }
    if to.format == RowsFormat::ArrowStream {
        file.write_all(&stream.into_inner().map_err(unencoded)?).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(count)
}

fn ndjson(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer: Writer<_, LineDelimited> = WriterBuilder::new().with_explicit_nulls(true).build(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

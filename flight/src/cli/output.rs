//! Prints rows for people and for programs: as tables, or as one JSON object a line.
//!
//! Invariant: anything that is cut is marked, a cell by `…` and a result by its last line.

use std::io::{self, IsTerminal, Write};

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_json::writer::LineDelimited;
use arrow_json::{WriterBuilder, writer::Writer};
use arrow_schema::{ArrowError, DataType, Schema};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use futures::StreamExt;

use super::client::StreamedRows;
use super::error::CliError;

/// The most characters of a table's cell.
const CELL_CHARS: usize = 120;

/// Prints a result as a table of at most `max_rows` rows (all when `None`); the rest is not fetched.
pub(super) async fn print_table(mut rows: StreamedRows, max_rows: Option<usize>) -> Result<(), CliError> {
    let mut shown: Vec<RecordBatch> = Vec::new();
    let mut count = 0;
    let mut more = false;
    while let Some(batch) = rows.batches.next().await {
        let batch = batch?;
        let left = max_rows.map_or(usize::MAX, |max| max - count);
        if batch.num_rows() > left {
            shown.push(batch.slice(0, left));
            count += left;
            more = true;
            break;
        }
        count += batch.num_rows();
        shown.push(batch);
    }
    if rows.schema.fields().is_empty() {
        return print_line("done");
    }
    let table = table(&rows.schema, &shown).map_err(|error| CliError::failed(error.to_string()))?;
    let ending = match (more, count) {
        (true, _) => format!("(first {count} rows; more follow: --rows 0 shows all, --json streams them)"),
        (false, 1) => "(1 row)".to_owned(),
        (false, _) => format!("({count} rows)"),
    };
    print_line(&format!("{table}\n{ending}"))
}

/// Prints a result as NDJSON as it arrives, nulls included.
pub(super) async fn print_ndjson(mut rows: StreamedRows) -> Result<(), CliError> {
    while let Some(batch) = rows.batches.next().await {
        let stdout = io::BufWriter::new(io::stdout().lock());
        let mut writer: Writer<_, LineDelimited> = WriterBuilder::new().with_explicit_nulls(true).build(stdout);
        let written = writer.write(&batch?).and_then(|()| writer.finish());
        written.map_err(output_error)?;
        writer.into_inner().flush()?;
    }
    Ok(())
}

/// Prints a line to standard output.
pub(super) fn print_line(line: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// Prints a warning to standard error.
pub(super) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {line}");
}

/// Prints an error to standard error.
pub(super) fn print_error(error: &CliError) {
    let code = error.code().map(|code| format!(" [{code}]")).unwrap_or_default();
    // If standard error is closed, the exit code still tells.
    let _ = writeln!(io::stderr(), "error{code}: {error}");
}

/// Makes a table without rows, as wide as the terminal allows.
pub(super) fn empty_table<I>(header: I) -> Table
where
    I: IntoIterator,
    I::Item: Into<Cell>,
{
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(header.into_iter().map(Into::into).collect::<Vec<_>>());
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// Makes a table of the rows of `batches`.
pub(super) fn table(schema: &Schema, batches: &[RecordBatch]) -> Result<Table, ArrowError> {
    let mut table = empty_table(schema.fields().iter().map(|field| field.name().as_str()));
    let options = FormatOptions::default().with_null("NULL").with_display_error(true);
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(schema.fields()).map(|(column, field)| {
                let cell = Cell::new(cut(&column.value(row).to_string(), CELL_CHARS));
                if is_number(field.data_type()) { cell.set_alignment(CellAlignment::Right) } else { cell }
            });
            table.add_row(cells.collect::<Vec<_>>());
        }
    }
    Ok(table)
}

/// Cuts `text` to at most `chars` characters and marks the cut.
pub(super) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

fn output_error(error: ArrowError) -> CliError {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => CliError::failed(error.to_string()),
    }
}

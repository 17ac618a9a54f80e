//! Prints a result in the format that the user chose: boxes for people, and the formats of [`crate::formats`] for programs.
//!
//! Invariant: what a table leaves out is counted in its last line; the other formats leave nothing out.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Schema};
use futures::StreamExt;
use indicatif::HumanCount;
use querent_agent::sql_type;

use super::grid::{Grid, GridCell, GridColumn, GridFit, visible, visible_lines};
use super::output_error;
use super::terminal::{Terminal, TextTone};
use crate::cli::client::StreamedRows;
use crate::cli::error::CliError;
use crate::error::ErrorCode;
use crate::formats::{ResultFormat, ResultWriter, time_beyond_calendar};

/// Rows that a table shows: on a terminal, and elsewhere.
const TERMINAL_ROWS: usize = 40;
const ROWS: usize = 100;
/// How far a table reads on, past the rows that it shows, to show the last ones and the number of all.
const READ_ON_ROWS: usize = 1_000_000;
const READ_ON_TIME: Duration = Duration::from_secs(3);

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// A box that fits the terminal; what does not is hidden and counted
    Table,
    /// A box with all rows and columns, whole
    Box,
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// One JSON array of objects
    Json,
    /// One JSON object a line
    Ndjson,
    /// A table in Markdown
    Markdown,
    /// One line a value, for wide rows
    Vertical,
    /// An Arrow IPC stream
    Arrow,
    /// A Parquet file
    Parquet,
}

impl OutputFormat {
    /// Whether a file of the format holds one result and ends with it.
    pub(crate) fn is_whole_file(self) -> bool {
        matches!(self, OutputFormat::Arrow | OutputFormat::Parquet)
    }
}

/// How rows are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsPrinter {
    pub(crate) format: OutputFormat,
    /// Rows that a table shows; `None` for as many as suit the terminal, 0 for all.
    pub(crate) max_rows: Option<usize>,
    /// Where boxes are shown.
    pub(crate) terminal: Terminal,
    /// What a table says of how to see what it leaves out.
    pub(crate) hints: TableHints,
}

/// By what those who read a table can see more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableHints {
    /// Flags of the command line.
    Flags,
    /// Commands of the shell.
    ShellCommands,
}

/// Where rows go.
pub(crate) enum RowsTarget<'a> {
    /// Standard output, through the pager where the text is long.
    Stdout,
    /// A file, or whatever else.
    Writer(&'a mut (dyn Write + Send)),
}

impl RowsTarget<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        match self {
            RowsTarget::Stdout => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(bytes)?;
                Ok(stdout.flush()?)
            }
            RowsTarget::Writer(writer) => Ok(writer.write_all(bytes)?),
        }
    }

    fn write_page(&mut self, text: &str, terminal: &Terminal) -> Result<(), CliError> {
        match self {
            RowsTarget::Stdout => Ok(terminal.page(text)?),
            RowsTarget::Writer(_) => self.write(text.as_bytes()),
        }
    }
}

impl RowsPrinter {
    /// Returns how the same rows are written to a file, which has neither colours nor a width.
    pub(crate) fn for_file(self) -> Self {
        Self { terminal: Terminal { width: None, has_colors: false, ..self.terminal }, ..self }
    }

    /// Prints a result as it arrives; a box when its rows are known. Returns the number of rows.
    pub(crate) async fn print(&self, rows: StreamedRows, target: RowsTarget<'_>) -> Result<usize, CliError> {
        match self.format {
            OutputFormat::Table | OutputFormat::Box if is_plan(&rows.schema) => self.print_plan(rows, target).await,
            OutputFormat::Table | OutputFormat::Box => self.print_box(rows, target).await,
            // A statement that answers with nothing, such as SET, has neither a table nor rows to count.
            OutputFormat::Markdown | OutputFormat::Vertical if rows.schema.fields().is_empty() => {
                self.print_box(rows, target).await
            }
            OutputFormat::Markdown => print_markdown(rows, target).await,
            OutputFormat::Vertical => self.print_vertical(rows, target).await,
            OutputFormat::Csv => encode(ResultFormat::Csv, rows, target).await,
            OutputFormat::Tsv => encode(ResultFormat::Tsv, rows, target).await,
            OutputFormat::Json => encode(ResultFormat::Objects, rows, target).await,
            OutputFormat::Ndjson => encode(ResultFormat::Ndjson, rows, target).await,
            OutputFormat::Arrow => encode(ResultFormat::Arrow, rows, target).await,
            OutputFormat::Parquet => encode(ResultFormat::Parquet, rows, target).await,
        }
    }

    async fn print_box(&self, rows: StreamedRows, mut target: RowsTarget<'_>) -> Result<usize, CliError> {
        if rows.schema.fields().is_empty() {
            target.write(b"done\n")?;
            return Ok(0);
        }
        let is_whole = self.format == OutputFormat::Box;
        let most = match self.max_rows {
            Some(0) => usize::MAX,
            Some(most) => most,
            None if is_whole => usize::MAX,
            None if self.terminal.width.is_some() => TERMINAL_ROWS.min(self.terminal.height.saturating_sub(8).max(10)),
            None => ROWS,
        };
        let schema = Arc::clone(&rows.schema);
        let shown = ShownRows::read(rows, most).await?;
        let mut grid = grid(&schema);
        push_batches(&mut grid, &schema, &shown.head)?;
        if !shown.tail.is_empty() {
            grid.push_gap();
            push_batches(&mut grid, &schema, &shown.tail)?;
        }
        let fit = if is_whole { GridFit::Whole } else { GridFit::Terminal };
        let rendered = grid.render(&self.terminal, fit);
        let ending = shown.ending(schema.fields().len(), rendered.columns, self.hints);
        target.write_page(
            &format!("{}{}\n", rendered.text, self.terminal.tone(TextTone::Dim, &ending)),
            &self.terminal,
        )?;
        Ok(shown.total)
    }

    /// Prints the plans of EXPLAIN as they are.
    async fn print_plan(&self, mut rows: StreamedRows, mut target: RowsTarget<'_>) -> Result<usize, CliError> {
        let mut text = String::new();
        let mut count = 0;
        while let Some(batch) = rows.batches.next().await.transpose()? {
            let (kinds, plans) = (cells(batch.column(0))?, cells(batch.column(1))?);
            for (kind, plan) in kinds.iter().zip(&plans) {
                let kind = kind.as_deref().unwrap_or_default();
                let plan = plan.as_deref().unwrap_or_default();
                let lines: Vec<_> = plan.trim_end().lines().map(visible).collect();
                text.push_str(&format!("{}\n{}\n", self.terminal.tone(TextTone::Bold, kind), lines.join("\n")));
                count += 1;
            }
        }
        target.write_page(&text, &self.terminal)?;
        Ok(count)
    }

    async fn print_vertical(&self, mut rows: StreamedRows, mut target: RowsTarget<'_>) -> Result<usize, CliError> {
        use unicode_width::UnicodeWidthStr;

        let schema = Arc::clone(&rows.schema);
        let names: Vec<_> = schema.fields().iter().map(|field| visible(field.name())).collect();
        let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let mut count = 0;
        while let Some(batch) = rows.batches.next().await.transpose()? {
            let columns = batch.columns().iter().map(|column| cells(column)).collect::<Result<Vec<_>, _>>()?;
            let mut text = String::new();
            for row in 0..batch.num_rows() {
                count += 1;
                text.push_str(&self.terminal.tone(TextTone::Dim, &format!("─[ row {count} ]─")));
                text.push('\n');
                for (name, values) in names.iter().zip(&columns) {
                    let value = match values.get(row).and_then(Option::as_deref) {
                        Some(value) => visible(value).into_owned(),
                        None => self.terminal.tone(TextTone::Dim, "NULL"),
                    };
                    text.push_str(&format!("{name}{} │ {value}\n", " ".repeat(widest - name.width())));
                }
            }
            target.write(text.as_bytes())?;
        }
        let noun = if count == 1 { "row" } else { "rows" };
        target.write(self.terminal.tone(TextTone::Dim, &format!("({count} {noun})\n")).as_bytes())?;
        Ok(count)
    }
}

/// The rows that a table shows.
struct ShownRows {
    head: Vec<RecordBatch>,
    /// Empty where all rows are in `head`, or where the end was not reached.
    tail: Vec<RecordBatch>,
    /// Rows that were read.
    total: usize,
    /// Whether all rows were read.
    is_complete: bool,
}

impl ShownRows {
    /// Reads at most `most` rows to show, and on to the end where that is near.
    async fn read(mut rows: StreamedRows, most: usize) -> Result<Self, CliError> {
        let mut head: Vec<RecordBatch> = Vec::new();
        let mut last: VecDeque<RecordBatch> = VecDeque::new();
        let (mut total, mut last_rows) = (0, 0);
        let tail_rows = most / 2;
        let mut full_since: Option<Instant> = None;
        let mut is_complete = true;
        while let Some(batch) = rows.batches.next().await.transpose()? {
            let left = most.saturating_sub(total);
            total += batch.num_rows();
            if left > 0 {
                head.push(batch.slice(0, left.min(batch.num_rows())));
            }
            if batch.num_rows() > left {
                let since = full_since.get_or_insert_with(Instant::now);
                let rest = batch.slice(left, batch.num_rows() - left);
                last_rows += rest.num_rows();
                last.push_back(rest);
                while let Some(first) = last.front().map(RecordBatch::num_rows)
                    && last_rows - first >= tail_rows
                {
                    last.pop_front();
                    last_rows -= first;
                }
                if total - most > READ_ON_ROWS || since.elapsed() > READ_ON_TIME {
                    is_complete = false;
                    break;
                }
            }
        }
        let mut tail = Vec::new();
        if is_complete && total > most && tail_rows > 0 {
            let kept = most - tail_rows;
            // The rows of the middle, as far as the head holds them, then the last ones.
            let after: Vec<RecordBatch> = rows_from(&head, kept).into_iter().chain(last).collect();
            let after_rows: usize = after.iter().map(RecordBatch::num_rows).sum();
            tail = rows_from(&after, after_rows.saturating_sub(tail_rows));
            head = first_rows(&head, kept);
        }
        Ok(Self { head, tail, total, is_complete })
    }

    /// The line under the table: how many rows and columns there are, and how many of them are shown.
    fn ending(&self, columns: usize, shown_columns: usize, hints: TableHints) -> String {
        let shown: usize = self.head.iter().chain(&self.tail).map(RecordBatch::num_rows).sum();
        let count = |count: usize| HumanCount(count as u64);
        let noun = if self.total == 1 { "row" } else { "rows" };
        let mut parts = Vec::new();
        match (self.is_complete, shown == self.total) {
            (true, true) => parts.push(format!("{} {noun}", count(self.total))),
            (true, false) => parts.push(format!("{} rows, {} shown", count(self.total), count(shown))),
            (false, _) => {
                parts.push(format!("first {} rows; more than {} follow", count(shown), count(self.total - shown)))
            }
        }
        if shown_columns < columns {
            parts.push(format!("{columns} columns, {shown_columns} shown"));
        }
        let hint = match (shown == self.total, shown_columns == columns, hints) {
            (true, true, _) => "",
            (false, _, TableHints::Flags) => ": --rows 0 shows all, --output csv streams them",
            (false, _, TableHints::ShellCommands) => ": .rows 0 shows all, .mode csv streams them",
            (true, false, TableHints::Flags) => ": --output box or vertical shows all",
            (true, false, TableHints::ShellCommands) => ": .mode box or .mode vertical shows all",
        };
        format!("({}{hint})", parts.join("; "))
    }
}

fn first_rows(batches: &[RecordBatch], mut count: usize) -> Vec<RecordBatch> {
    let mut first = Vec::new();
    for batch in batches {
        let taken = count.min(batch.num_rows());
        count -= taken;
        if taken > 0 {
            first.push(batch.slice(0, taken));
        }
    }
    first
}

fn rows_from(batches: &[RecordBatch], mut skipped: usize) -> Vec<RecordBatch> {
    let mut rest = Vec::new();
    for batch in batches {
        let left = skipped.min(batch.num_rows());
        skipped -= left;
        if left < batch.num_rows() {
            rest.push(batch.slice(left, batch.num_rows() - left));
        }
    }
    rest
}

/// A box of a result's columns, without rows.
fn grid(schema: &Schema) -> Grid {
    let columns = schema.fields().iter().map(|field| GridColumn {
        name: field.name().clone(),
        type_name: Some(sql_type(field.data_type()).to_lowercase()),
        is_number: field.data_type().is_numeric(),
    });
    Grid::new(columns.collect())
}

fn push_batches(grid: &mut Grid, schema: &Schema, batches: &[RecordBatch]) -> Result<(), CliError> {
    for batch in batches {
        let columns = batch.columns().iter().map(|column| cells(column)).collect::<Result<Vec<_>, _>>()?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..batch.num_rows() {
            let row = columns.iter_mut().map(|column| column.next().flatten().map_or(GridCell::Null, GridCell::Text));
            grid.push(row.take(schema.fields().len()).collect());
        }
    }
    Ok(())
}

/// Returns a box of the rows of `batches`, for the demo.
pub(crate) fn table(schema: &Schema, batches: &[RecordBatch], terminal: &Terminal) -> Result<String, CliError> {
    let mut grid = grid(schema);
    push_batches(&mut grid, schema, batches)?;
    Ok(grid.render(terminal, GridFit::Terminal).text)
}

/// The values of a column as text; `None` for null.
fn cells(column: &dyn Array) -> Result<Vec<Option<String>>, CliError> {
    let failed = |error: ArrowError| CliError::failed(error.to_string());
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Ok(texts.iter().map(|text| text.map(str::to_owned)).collect());
    }
    let options = FormatOptions::default().with_null("NULL").with_display_error(true);
    let formatter = ArrayFormatter::try_new(column, &options).map_err(failed)?;
    let text = |row: usize| match formatter.value(row).try_to_string() {
        Ok(text) => text,
        Err(_) => time_beyond_calendar(column, row).unwrap_or_else(|| formatter.value(row).to_string()),
    };
    Ok((0..column.len()).map(|row| (!column.is_null(row)).then(|| text(row))).collect())
}

/// Whether the result is that of EXPLAIN.
fn is_plan(schema: &Schema) -> bool {
    let mut names = schema.fields().iter().map(|field| field.name().as_str());
    names.by_ref().eq(["plan_type", "plan"])
}

async fn encode(format: ResultFormat, mut rows: StreamedRows, mut target: RowsTarget<'_>) -> Result<usize, CliError> {
    if rows.schema.fields().is_empty() && matches!(format, ResultFormat::Arrow | ResultFormat::Parquet) {
        // A statement that answers with nothing, such as SET, is no file.
        while rows.batches.next().await.transpose()?.is_some() {}
        return Ok(0);
    }
    if let Some(message) = format.refusal(&rows.schema) {
        return Err(CliError::Failed { code: Some(ErrorCode::Unsupported.as_str().to_owned()), message });
    }
    let mut writer = ResultWriter::new(format, Arc::clone(&rows.schema)).map_err(output_error)?;
    let mut count = 0;
    while let Some(batch) = rows.batches.next().await.transpose()? {
        count += batch.num_rows();
        target.write(&writer.write(&batch).map_err(output_error)?)?;
    }
    target.write(&writer.finish(count as u64, false).map_err(output_error)?)?;
    Ok(count)
}

async fn print_markdown(mut rows: StreamedRows, mut target: RowsTarget<'_>) -> Result<usize, CliError> {
    let escaped = |text: &str| {
        let bare = text.replace('\\', "\\\\").replace('|', "\\|");
        visible_lines(&bare.replace("\r\n", "<br>").replace(['\n', '\r'], "<br>"))
    };
    let fields = rows.schema.fields();
    let names: Vec<String> = fields.iter().map(|field| escaped(field.name())).collect();
    let rules = fields.iter().map(|field| if field.data_type().is_numeric() { "---:" } else { "---" });
    let rules: Vec<&str> = rules.collect();
    target.write(format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | ")).as_bytes())?;
    let mut count = 0;
    while let Some(batch) = rows.batches.next().await.transpose()? {
        count += batch.num_rows();
        let columns = batch.columns().iter().map(|column| cells(column)).collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.get(row).and_then(Option::as_deref));
            // As in a box: null and an empty text are two things.
            let values: Vec<String> = values.map(|value| value.map_or_else(|| "NULL".to_owned(), escaped)).collect();
            text.push_str(&format!("| {} |\n", values.join(" | ")));
        }
        target.write(text.as_bytes())?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use arrow::array::Date32Array;

    use super::*;

    #[test]
    fn an_infinite_date_is_shown_as_one() {
        let shown = cells(&Date32Array::from(vec![Some(i32::MAX), Some(-i32::MAX), None, Some(0)])).unwrap();
        let shown: Vec<_> = shown.iter().map(Option::as_deref).collect();
        assert_eq!(shown, [Some("infinity"), Some("-infinity"), None, Some("1970-01-01")]);
    }

    #[test]
    fn a_file_gets_no_colours() {
        let terminal = Terminal { width: Some(80), height: 24, has_colors: true };
        let printer =
            RowsPrinter { format: OutputFormat::Table, max_rows: None, terminal, hints: TableHints::ShellCommands };
        let written = printer.for_file().terminal;
        assert_eq!(written, Terminal { width: None, height: 24, has_colors: false });
        assert_eq!(written.tone(TextTone::Bold, "x"), "x");
    }
}

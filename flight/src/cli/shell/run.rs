//! Runs the shell's inputs: statements, questions and commands.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use querent_agent::chart_of_batches;
use uuid::Uuid;

use super::backend::ShellBackend;
use super::commands::{ShellCommand, help_text, parse_command};
use super::schema;
use super::statements::{NextInput, ShellInput, ShellLanguage, chooses_database, next_input};
use crate::cli::ask::UserQuestion;
use crate::cli::chart::{Chart, draw_text};
use crate::cli::client::StreamedRows;
use crate::cli::error::CliError;
use crate::cli::events::EventDisplay;
use crate::cli::output;
use crate::cli::output::rows::{OutputFormat, RowsPrinter, RowsTarget, TableHints};
use crate::cli::progress::Waiting;

/// Rows of a chart at most.
const CHART_ROWS: usize = 1_000;
/// Files that read files at most.
const MAX_DEPTH: usize = 16;

/// What the shell remembers.
pub(super) struct ShellState {
    pub(super) language: ShellLanguage,
    pub(super) printer: RowsPrinter,
    /// Where bare names resolve.
    pub(super) database: Option<String>,
    is_interactive: bool,
    has_timer: bool,
    /// Where rows go instead of standard output.
    output: Option<File>,
    /// Whether a file of a format that holds one result was written there.
    is_output_complete: bool,
    /// The format before `\x`.
    unexpanded: Option<OutputFormat>,
    /// The conversation with the agent.
    conversation: String,
    /// How deep files read files.
    depth: usize,
    /// The first rows of the last statement, for its chart.
    last: Option<LastRows>,
}

/// The first rows of a result.
#[derive(Clone)]
struct LastRows {
    schema: SchemaRef,
    batches: Arc<Mutex<Vec<RecordBatch>>>,
}

/// Whether the shell goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellFlow {
    Go,
    Leave,
}

impl ShellState {
    pub(super) fn new(printer: RowsPrinter, database: Option<String>, is_interactive: bool) -> Self {
        // Nobody types flags into a shell.
        let hints = if is_interactive { TableHints::ShellCommands } else { printer.hints };
        Self {
            language: ShellLanguage::Sql,
            printer: RowsPrinter { hints, ..printer },
            database,
            is_interactive,
            has_timer: false,
            output: None,
            is_output_complete: false,
            unexpanded: None,
            conversation: Uuid::now_v7().to_string(),
            depth: 0,
            last: None,
        }
    }

    /// Refuses another result behind a Parquet or Arrow file, or such a file behind other rows: no reader would see it.
    fn check_output(&self) -> Result<(), CliError> {
        let has_rows = |file: &File| file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let is_behind_rows = self.printer.format.is_whole_file() && self.output.as_ref().is_some_and(has_rows);
        let hint = match (self.is_output_complete || is_behind_rows, &self.output) {
            (false, _) => return Ok(()),
            (true, Some(_)) => "name another file with .output FILE, or none",
            (true, None) => "run each statement by itself, or choose another --output",
        };
        let message = format!("a file of this format holds the rows of one statement, and rows are there: {hint}");
        Err(CliError::Usage(message))
    }

    /// The name of the prompt.
    pub(super) fn prompt(&self) -> String {
        let name = match self.language {
            ShellLanguage::Sql => "querent",
            ShellLanguage::Kql => "querent kql",
        };
        match &self.database {
            Some(database) => format!("{name}:{database}"),
            None => name.to_owned(),
        }
    }
}

/// Runs the inputs of a text, in order, up to the first that fails.
pub(super) async fn run_text(
    backend: &ShellBackend,
    state: &mut ShellState,
    text: &str,
) -> Result<ShellFlow, CliError> {
    let mut rest = text;
    loop {
        let (input, after) = match next_input(rest, state.language) {
            NextInput::Whole(input, after) => (input, after),
            NextInput::Unfinished(input) => (input, ""),
            NextInput::Nothing => return Ok(ShellFlow::Go),
        };
        rest = after;
        let flow = match input {
            ShellInput::Statement(language, text) => {
                statement(backend, state, language, &text).await?;
                ShellFlow::Go
            }
            ShellInput::Question(text) => {
                question(backend, state, text).await?;
                ShellFlow::Go
            }
            ShellInput::Command(line) => Box::pin(command(backend, state, parse_command(&line)?)).await?,
        };
        if flow == ShellFlow::Leave {
            return Ok(flow);
        }
    }
}

async fn statement(
    backend: &ShellBackend,
    state: &mut ShellState,
    language: ShellLanguage,
    text: &str,
) -> Result<(), CliError> {
    state.check_output()?;
    let began = Instant::now();
    let is_box = matches!(state.printer.format, OutputFormat::Table | OutputFormat::Box);
    let waiting = Waiting::new("running", state.is_interactive && (is_box || state.output.is_some()));
    let chooses = language == ShellLanguage::Sql && chooses_database(text);
    // The database of the prompt goes with each statement, so that it outlives a connection; one that chooses it is to.
    let database = state.database.clone().filter(|_| !chooses);
    let rows = backend.run(language, text, database.as_deref()).await;
    let rows = rows.map_err(|error| error.pointing_into(text))?;
    let last = LastRows { schema: Arc::clone(&rows.schema), batches: Arc::default() };
    state.last = Some(last.clone());
    print(state, last.keeping(waiting.counting(rows))).await?;
    if chooses {
        let found = schema::texts(backend, "SHOW schema", None).await?;
        state.database = found.into_iter().flatten().next();
    }
    if state.has_timer {
        output::print_line(&format!("Time: {:.3} s", began.elapsed().as_secs_f64()))?;
    }
    Ok(())
}

async fn print(state: &mut ShellState, rows: StreamedRows) -> Result<(), CliError> {
    let completes = state.printer.format.is_whole_file() && !rows.schema.fields().is_empty();
    let (printer, target) = match &mut state.output {
        Some(file) => (state.printer.for_file(), RowsTarget::Writer(file)),
        None => (state.printer, RowsTarget::Stdout),
    };
    // Said before, since a statement that fails or is cancelled leaves a part of the file behind.
    state.is_output_complete = completes;
    printer.print(rows, target).await?;
    Ok(())
}

async fn question(backend: &ShellBackend, state: &mut ShellState, text: String) -> Result<(), CliError> {
    if text.is_empty() {
        return Err(CliError::Usage("write ? and a question, for example ? how many flights are there".to_owned()));
    }
    let question = UserQuestion {
        text,
        database: state.database.clone(),
        session: Some(state.conversation.clone()),
        thinking: false,
    };
    backend.ask(&question, EventDisplay::All).await?;
    Ok(())
}

async fn command(backend: &ShellBackend, state: &mut ShellState, command: ShellCommand) -> Result<ShellFlow, CliError> {
    let database = state.database.clone();
    let database = database.as_deref();
    match command {
        ShellCommand::Describe(None) => {
            print_sql(backend, state, &schema::relations(backend, database).await?).await?;
        }
        ShellCommand::Tables => print_sql(backend, state, &schema::tables(backend, database).await?).await?,
        ShellCommand::Views => print_sql(backend, state, &schema::views(database)).await?,
        ShellCommand::Describe(Some(table)) => print_sql(backend, state, &schema::describe(&table)).await?,
        ShellCommand::Databases => print_sql(backend, state, "SHOW DATABASES").await?,
        ShellCommand::Functions(part) => {
            let mut shown = String::new();
            for name in schema::functions(backend, database).await? {
                if part.as_ref().is_none_or(|part| name.contains(part)) {
                    shown.push_str(&name);
                    shown.push('\n');
                }
            }
            state.printer.terminal.page(&shown)?;
        }
        ShellCommand::UseDatabase(name) => {
            // A name that is not there is refused here, not by the next statement.
            backend.run(ShellLanguage::Sql, "SELECT 1", Some(&name)).await?;
            state.database = Some(name);
        }
        ShellCommand::Schema(table) => {
            for text in schema::statements(backend, database, table.as_deref()).await? {
                output::print_line(&text)?;
            }
        }
        ShellCommand::Format(format) => {
            let is_terminal = state.output.is_none() && state.printer.terminal.width.is_some();
            if is_terminal && format.is_whole_file() {
                let message = "this mode is for programs: name a file first, with .output FILE";
                return Err(CliError::Usage(message.to_owned()));
            }
            state.printer.format = format;
            state.unexpanded = None;
        }
        ShellCommand::Language(language) => state.language = language,
        ShellCommand::Expanded => {
            let format = match state.unexpanded.take() {
                Some(format) => format,
                None => {
                    state.unexpanded = Some(state.printer.format);
                    OutputFormat::Vertical
                }
            };
            state.printer.format = format;
        }
        ShellCommand::Rows(rows) => state.printer.max_rows = Some(rows),
        ShellCommand::Timer(on) => state.has_timer = on.unwrap_or(!state.has_timer),
        ShellCommand::Output(None) => {
            state.output = None;
            state.is_output_complete = false;
            if state.printer.format.is_whole_file() {
                state.printer.format = OutputFormat::Table;
            }
        }
        ShellCommand::Output(Some(path)) => {
            state.output = Some(output_file(&path)?);
            state.is_output_complete = false;
        }
        ShellCommand::Read(path) => return read(backend, state, &path).await,
        ShellCommand::Chart => output::print_line(&chart(state)?)?,
        ShellCommand::NewConversation => state.conversation = Uuid::now_v7().to_string(),
        ShellCommand::Help => state.printer.terminal.page(&help_text(state.printer.terminal.width))?,
        ShellCommand::Quit => return Ok(ShellFlow::Leave),
    }
    Ok(ShellFlow::Go)
}

async fn print_sql(backend: &ShellBackend, state: &mut ShellState, sql: &str) -> Result<(), CliError> {
    state.check_output()?;
    let rows = backend.run(ShellLanguage::Sql, sql, state.database.as_deref()).await?;
    print(state, rows).await
}

/// Returns the chart of the last rows.
fn chart(state: &ShellState) -> Result<String, CliError> {
    let last =
        state.last.as_ref().ok_or_else(|| CliError::Usage("there are no rows yet: run a query first".to_owned()))?;
    let drawn = chart_of_batches(&last.schema, &last.batches.lock())
        .and_then(|(spec, rows)| draw_text(&Chart { spec, rows }, &state.printer.terminal));
    drawn.ok_or_else(|| {
        CliError::failed(
            "the last rows are not worth a chart, which takes at least two rows, a number, and a time, a \
                          category or another number",
        )
    })
}

impl LastRows {
    /// Keeps the first rows as they pass.
    fn keeping(self, rows: StreamedRows) -> StreamedRows {
        let mut kept = 0;
        let batches = rows.batches.inspect_ok(move |batch| {
            let left = CHART_ROWS.saturating_sub(kept).min(batch.num_rows());
            if left > 0 {
                kept += left;
                self.batches.lock().push(batch.slice(0, left));
            }
        });
        StreamedRows { schema: rows.schema, batches: batches.boxed() }
    }
}

/// Runs the inputs of a file.
async fn read(backend: &ShellBackend, state: &mut ShellState, path: &Path) -> Result<ShellFlow, CliError> {
    if state.depth == MAX_DEPTH {
        return Err(CliError::failed(format!("{}: files read files more than {MAX_DEPTH} deep", path.display())));
    }
    let text = tokio::fs::read_to_string(path).await;
    let text = text.map_err(|error| CliError::Usage(format!("cannot read {}: {error}", path.display())))?;
    state.depth += 1;
    let done = run_text(backend, state, &text).await;
    state.depth -= 1;
    done
}

fn output_file(path: &Path) -> Result<File, CliError> {
    #[expect(clippy::disallowed_methods, reason = "one file, when the user names it")]
    let file = File::create(path);
    file.map_err(|error| CliError::Usage(format!("cannot write {}: {error}", path.display())))
}

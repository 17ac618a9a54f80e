//! `querent` without a command: a shell on the data folder, on files, or on a server.
//!
//! On a terminal it reads lines with history and completion, and an error ends nothing. Statements that are piped in, or
//! given with `-c`, run without prompts, and the first error ends the process with its exit code.

mod backend;
mod commands;
mod editor;
mod names;
mod run;
mod schema;
mod statements;

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use super::error::CliError;
use super::import::is_pattern;
use super::import::reader_args::ReaderArgs;
use super::output;
use super::output::terminal::Terminal;
use super::query::OutputArgs;
use super::target::{CliTarget, TargetArgs};
use crate::cli::client::Client;
use backend::ShellBackend;
use editor::{ShellEditor, ShellLine};
use querent_engine::KnownNames;
use run::{ShellFlow, ShellState};
use statements::{NextInput, ShellInput, ShellLanguage, next_input};

/// What statements begin with, where somebody leaves their quotes away.
const STATEMENT_WORDS: [&str; 8] = ["select", "from", "with", "show", "describe", "insert", "create", "update"];

/// Flags of the shell.
#[derive(Debug, clap::Args)]
pub(super) struct ShellArgs {
    /// Files, folders or quoted globs to query without a data folder: each is a table named after it
    #[arg(value_name = "FILE", conflicts_with_all = ["data", "server"])]
    files: Vec<PathBuf>,
    /// Run these statements and leave; may be repeated
    #[arg(short, long, value_name = "TEXT")]
    command: Vec<String>,
    /// Where bare table names resolve
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    reader: Box<ReaderArgs>,
}

impl ShellArgs {
    /// Refuses files of statements, and files that are not there, which may be commands spelled wrong; `commands` are those
    /// that there are.
    pub(super) fn check_files(&self, commands: &[String]) -> Result<(), CliError> {
        for file in &self.files {
            let name = file.to_string_lossy();
            if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql")) {
                return Err(CliError::Usage(format!(
                    "{name} holds statements and no rows; run them with `querent < {name}`, or `.read {name}` in the shell"
                )));
            }
            if matches!(&*name, "-" | "/dev/stdin" | "/dev/fd/0") {
                return Err(CliError::Usage(
                    "standard input holds statements here, and files are read more than once; write the rows to a file"
                        .to_owned(),
                ));
            }
            if file.exists() || name.contains("://") || matches_files(&name) {
                continue;
            }
            let near = commands.iter().map(|command| (strsim::jaro_winkler(command, &name), command));
            let near = near.filter(|(likeness, _)| *likeness > 0.8).max_by(|one, other| one.0.total_cmp(&other.0));
            let is_statement = name.trim().contains(char::is_whitespace)
                || STATEMENT_WORDS.iter().any(|word| word.eq_ignore_ascii_case(&name));
            let hint = match near {
                _ if is_statement => "statements are run by `querent -c \"SELECT ...\"`; ".to_owned(),
                Some((_, command)) => format!("did you mean `{command}`? "),
                None => String::new(),
            };
            return Err(CliError::Usage(format!(
                "no such file or command: {name}; {hint}`querent --help` lists commands"
            )));
        }
        Ok(())
    }
}

pub(super) async fn run(args: ShellArgs) -> Result<(), CliError> {
    let printer = args.output.printer()?;
    let is_interactive = args.command.is_empty() && io::stdin().is_terminal();
    let reader = args.reader.options();
    if args.files.is_empty() && !reader.is_empty() {
        let message = "flags that say how files are read need a file: querent --delimiter ';' FILE";
        return Err(CliError::Usage(message.to_owned()));
    }
    let (backend, place) = match args.files.is_empty() {
        false => {
            let (backend, tables) = ShellBackend::files(&args.files, &reader).await?;
            let place = format!("tables: {}", tables.join(", "));
            // A shell begins with them.
            if !is_interactive && !tables.iter().all(|table| is_named_after_one(table, &args.files)) {
                output::note(&place);
            }
            (backend, place)
        }
        true => match args.target.resolve()? {
            CliTarget::Server(server) => {
                let place = format!("server: {}", server.url.as_str().trim_end_matches('/'));
                (ShellBackend::Server(Box::new(Client::new(server)?)), place)
            }
            CliTarget::Embedded(config) => {
                let place = format!("data folder: {}", config.settings.data.display());
                (ShellBackend::folder(*config).await?, place)
            }
        },
    };
    let mut state = ShellState::new(printer, args.database, is_interactive);
    let done = match is_interactive {
        true => interactive(&backend, &mut state, &place).await,
        false => piped(&backend, &mut state, args.command).await,
    };
    backend.close().await?;
    done
}

/// Whether a name is a glob that a file fits; a statement may hold `*` too, and no file fits it.
fn matches_files(name: &str) -> bool {
    is_pattern(name) && glob::glob(name).is_ok_and(|found| found.flatten().next().is_some())
}

/// Whether a table is called as one of the files is, so that nobody need be told its name.
fn is_named_after_one(table: &str, files: &[PathBuf]) -> bool {
    let names = files.iter().filter_map(|file| file.file_stem()?.to_str());
    names.map(str::to_lowercase).any(|name| name == table || name.starts_with(&format!("{table}.")))
}

/// Runs what is piped in, or given with `-c`, up to the first error.
async fn piped(backend: &ShellBackend, state: &mut ShellState, commands: Vec<String>) -> Result<(), CliError> {
    let texts = match commands.is_empty() {
        false => commands,
        true => {
            // Nothing else runs yet, so the read may block.
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text)?;
            vec![text]
        }
    };
    for text in texts {
        // Once a pager has run, the signal ends nothing by itself any more.
        let flow = tokio::select! {
            biased;
            flow = run::run_text(backend, state, &text) => flow?,
            signal = tokio::signal::ctrl_c() => {
                return signal.map_err(CliError::from).and(Err(CliError::failed("cancelled")));
            }
        };
        if let ShellFlow::Leave = flow {
            return Ok(());
        }
    }
    Ok(())
}

async fn interactive(backend: &ShellBackend, state: &mut ShellState, place: &str) -> Result<(), CliError> {
    output::print_line(&format!("querent {}, {place}; .help lists commands", env!("CARGO_PKG_VERSION")))?;
    let names = Arc::new(RwLock::new(KnownNames::default()));
    let is_kql = Arc::new(AtomicBool::new(false));
    let mut editor = ShellEditor::new(Arc::clone(&names), Arc::clone(&is_kql), state.printer.terminal.has_colors)?;
    let mut is_stale = true;
    loop {
        if is_stale {
            // Completion is a convenience: a catalog that cannot be read offers fewer words.
            if let Ok(found) = schema::names(backend, state.database.as_deref()).await {
                *names.write() = found;
            }
        }
        is_kql.store(state.language == ShellLanguage::Kql, Ordering::Relaxed);
        let prompt = format!("{}> ", state.prompt());
        let text = match tokio::task::block_in_place(|| editor.read(&prompt))? {
            ShellLine::Text(text) => text,
            ShellLine::GivenUp => continue,
            ShellLine::End => return Ok(()),
        };
        is_stale = changes_names(&text, state.language);
        // Its window may have another size by now.
        state.printer.terminal = Terminal::stdout();
        let done = tokio::select! {
            biased;
            done = run::run_text(backend, state, &text) => done,
            signal = tokio::signal::ctrl_c() => signal.map_err(CliError::from).and(Err(CliError::failed("cancelled"))),
        };
        match done {
            Ok(ShellFlow::Leave) => return Ok(()),
            Ok(ShellFlow::Go) => {}
            // The terminal is gone.
            Err(CliError::OutputClosed) => return Ok(()),
            Err(error) => output::print_error(&error),
        }
    }
}

/// Whether the inputs may change what there is to complete.
fn changes_names(text: &str, language: ShellLanguage) -> bool {
    let mut rest = text;
    while let NextInput::Whole(input, after) = next_input(rest, language) {
        rest = after;
        let changes = match input {
            ShellInput::Statement(ShellLanguage::Sql, sql) => {
                let first = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
                matches!(first.as_str(), "CREATE" | "DROP" | "ALTER" | "INSERT" | "ATTACH" | "USE" | "SET" | "RESET")
            }
            ShellInput::Command(command) => {
                let name = command.split_whitespace().next().unwrap_or_default();
                matches!(name, "\\c" | ".database" | "\\i" | ".read")
            }
            ShellInput::Statement(ShellLanguage::Kql, _) | ShellInput::Question(_) => false,
        };
        if changes {
            return true;
        }
    }
    false
}

//! The line of the shell: its history, its completion, and when an input is complete.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};

use super::names::completions;
use super::statements::{NextInput, ShellLanguage, next_input};
use crate::cli::conversations::state_folder;
use crate::cli::error::CliError;
use querent_engine::KnownNames;

const HISTORY_LINES: usize = 5_000;
/// Completions that are shown without asking.
const SHOWN_COMPLETIONS: usize = 200;

/// Whether statements are in KQL; the validator of the line looks at it.
pub(super) type IsKql = Arc<AtomicBool>;

/// Reads inputs from a terminal.
pub(super) struct ShellEditor {
    editor: Editor<ShellHelper, FileHistory>,
    history: Option<PathBuf>,
}

/// What a line was ended by.
pub(super) enum ShellLine {
    Text(String),
    /// Ctrl-c: the line is given up.
    GivenUp,
    /// Ctrl-d on an empty line.
    End,
}

impl ShellEditor {
    pub(super) fn new(names: Arc<RwLock<KnownNames>>, is_kql: IsKql, has_colors: bool) -> Result<Self, CliError> {
        let color_mode = if has_colors { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(unreadable)?
            .completion_type(CompletionType::List)
            .completion_prompt_limit(SHOWN_COMPLETIONS)
            .color_mode(color_mode)
            .build();
        let mut editor = Editor::with_config(config).map_err(unreadable)?;
        editor.set_helper(Some(ShellHelper { names, is_kql, hinter: HistoryHinter::new() }));
        let history = history_file();
        if let Some(file) = &history {
            // A shell without a history is still a shell.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }

    /// Reads one input, of one line or more. Blocks.
    pub(super) fn read(&mut self, prompt: &str) -> Result<ShellLine, CliError> {
        match self.editor.readline(prompt) {
            Ok(text) => {
                self.remember(&text);
                Ok(ShellLine::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(ShellLine::GivenUp),
            Err(ReadlineError::Eof) => Ok(ShellLine::End),
            Err(error) => Err(unreadable(error)),
        }
    }

    fn remember(&mut self, text: &str) {
        let added = !text.trim().is_empty() && self.editor.add_history_entry(text.trim_end()).unwrap_or(false);
        if let (true, Some(file)) = (added, &self.history) {
            if let Some(folder) = file.parent() {
                #[expect(clippy::disallowed_methods, reason = "the line has been read; nothing else runs")]
                let _ = std::fs::create_dir_all(folder);
            }
            // At once, so that nothing is lost with the terminal.
            let _ = self.editor.append_history(file);
        }
    }
}

fn unreadable(error: ReadlineError) -> CliError {
    CliError::failed(format!("the terminal cannot be read: {error}"))
}

/// The file of the history, in the user's folder of state.
fn history_file() -> Option<PathBuf> {
    Some(state_folder()?.join("history"))
}

/// What the editor asks about the line.
struct ShellHelper {
    names: Arc<RwLock<KnownNames>>,
    is_kql: IsKql,
    hinter: HistoryHinter,
}

impl Helper for ShellHelper {}

impl Completer for ShellHelper {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let is_kql = self.is_kql.load(Ordering::Relaxed);
        Ok(completions(line.get(..pos).unwrap_or_default(), &self.names.read(), is_kql))
    }
}

impl Hinter for ShellHelper {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<String> {
        // The rest of an input of several lines would be drawn over what follows.
        self.hinter.hint(line, pos, context).filter(|hint| !hint.contains('\n'))
    }
}

impl Highlighter for ShellHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Owned(format!("\x1b[1;36m{prompt}\x1b[0m"))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

/// An input is complete at its `;`, a command or a question at the end of its line.
impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let language = if self.is_kql.load(Ordering::Relaxed) { ShellLanguage::Kql } else { ShellLanguage::Sql };
        let mut rest = context.input();
        loop {
            match next_input(rest, language) {
                NextInput::Whole(_, after) => rest = after,
                NextInput::Unfinished(_) => return Ok(ValidationResult::Incomplete),
                NextInput::Nothing => return Ok(ValidationResult::Valid(None)),
            }
        }
    }
}

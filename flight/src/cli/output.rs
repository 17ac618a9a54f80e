//! What commands print: lines, warnings and errors here, rows in [`rows`], boxes in [`grid`].
//!
//! Invariants: anything that is cut is marked, a cell by `…` and a result by its last line; what data, files or a model say
//! is shown to a terminal, which does not act on it.

pub(super) mod grid;
pub(super) mod rows;
pub(super) mod terminal;

use std::io::{self, Write};

use arrow_schema::ArrowError;
use serde_json::Value;

use super::error::CliError;
use crate::error::ErrorCode;
use grid::visible_lines;

/// Prints a line to standard output.
pub(super) fn print_line(line: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// Prints the entries of a listing, one JSON object a line. Where there are none, a note says `none`, and standard output
/// stays empty.
pub(super) fn print_listing(entries: &[Value], none: &str) -> Result<(), CliError> {
    if entries.is_empty() {
        note(none);
    }
    entries.iter().try_for_each(|entry| print_line(&entry.to_string()))
}

/// Prints a warning to standard error.
pub(super) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", visible_lines(line));
}

/// Prints a note to standard error.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "note: {}", visible_lines(line));
}

/// Prints an error to standard error.
pub(super) fn print_error(error: &CliError) {
    let code = error.code().map(|code| format!(" [{code}]")).unwrap_or_default();
    // If standard error is closed, the exit code still tells.
    let _ = writeln!(io::stderr(), "error{code}: {}", visible_lines(&error.to_string()));
    // The server's hint is for programs.
    if error.code() == Some(ErrorCode::Unauthenticated.as_str()) {
        note("the command line sends the token of --token or QUERENT_TOKEN");
    }
}

/// Cuts `text` to at most `chars` characters and marks the cut.
pub(super) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn output_error(error: ArrowError) -> CliError {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => CliError::failed(error.to_string()),
    }
}

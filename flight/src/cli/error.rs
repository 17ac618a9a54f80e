//! Errors of the command line and their exit codes.

use std::io;

use querent_catalog::CatalogError;
use querent_engine::EngineError;
use tonic::Status;
use unicode_width::UnicodeWidthStr;

use super::output::grid::visible;
use crate::config::ConfigError;
use crate::server::ServerError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The command line is wrong in a way that clap cannot know.
    #[error("{0}")]
    Usage(String),
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// The data folder does not open, or the server does not start.
    #[error("{message}")]
    NotOpened {
        /// The stable code.
        code: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// The query, run, import or check failed.
    #[error("{message}")]
    Failed {
        /// The stable code, where there is one.
        code: Option<String>,
        /// What is wrong and what to do.
        message: String,
    },
    /// Standard output is closed.
    #[error("standard output is closed")]
    OutputClosed,
}

impl CliError {
    /// Makes a failure without a code.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        CliError::Failed { code: None, message: message.into() }
    }

    /// Returns the error with the line of the statement that it names, and a mark below the place.
    pub(super) fn pointing_into(self, statement: &str) -> Self {
        match self {
            CliError::Failed { code, message } => {
                let place = place_in(&message).or_else(|| place_of_unknown(&message, statement));
                let shown = place.and_then(|(line, column)| pointer(statement, line, column));
                let message = match shown {
                    Some(shown) if !message.contains('\n') => format!("{message}\n{shown}"),
                    _ => message,
                };
                CliError::Failed { code, message }
            }
            other => other,
        }
    }

    /// Returns the process's exit code.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            CliError::OutputClosed => 0,
            CliError::Failed { .. } => 1,
            CliError::Usage(_) | CliError::Config(_) => 2,
            CliError::Unavailable(_) | CliError::NotOpened { .. } => 3,
        }
    }

    /// Returns the stable code, where there is one.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            CliError::Failed { code, .. } => code.as_deref(),
            CliError::Config(error) => Some(error.code().as_str()),
            CliError::NotOpened { code, .. } => Some(*code),
            CliError::Usage(_) | CliError::Unavailable(_) | CliError::OutputClosed => None,
        }
    }
}

/// Returns a message and what to do: behind it, or below one that shows a place of a statement.
pub(super) fn with_hint(message: &str, hint: Option<&str>) -> String {
    match hint {
        None => message.to_owned(),
        Some(hint) if message.contains('\n') => format!("{message}\n{hint}"),
        Some(hint) => format!("{message}; {hint}"),
    }
}

/// Returns the line and the column, from 1, of `... at line 2, column 7`, as the parser of SQL says them.
fn place_in(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.rsplit_once(" at line ")?;
    let (line, rest) = place.split_once(", column ")?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    Some((line.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// Returns the line and the column, from 1, of the name that the message says is unknown, where the statement has it once.
fn place_of_unknown(message: &str, statement: &str) -> Option<(usize, usize)> {
    let (what, rest) = message.strip_prefix("unknown ")?.split_once('`')?;
    if !matches!(what, "column " | "table " | "function " | "database ") {
        return None;
    }
    let (name, _) = rest.split_once('`')?;
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    let text = without_literals(statement);
    let at = only_place(&text, name).or_else(|| only_place(&text, last))?;
    let before = text.get(..at)?;
    let line_start = before.iter().rposition(|char| *char == '\n').map_or(0, |end| end + 1);
    Some((before.iter().filter(|char| **char == '\n').count() + 1, at - line_start + 1))
}

/// Returns the index of the only place where `name` is a whole name, in any case.
fn only_place(text: &[char], name: &str) -> Option<usize> {
    let is_name = |char: &char| char.is_alphanumeric() || matches!(char, '_' | '$');
    let name: Vec<char> = name.chars().collect();
    if name.is_empty() {
        return None;
    }
    let mut places = text.windows(name.len()).enumerate().filter(|(at, found)| {
        let is_same = found.iter().zip(&name).all(|(one, other)| one.to_lowercase().eq(other.to_lowercase()));
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        is_same && !before.is_some_and(is_name) && !text.get(at + name.len()).is_some_and(is_name)
    });
    let (at, _) = places.next()?;
    places.next().is_none().then_some(at)
}

/// Returns the statement's characters with spaces in the place of its texts and comments.
fn without_literals(statement: &str) -> Vec<char> {
    let mut rest = statement;
    let mut kept = Vec::with_capacity(statement.len());
    while let Some(first) = rest.chars().next() {
        let ends = match first {
            '\'' => Some("'"),
            _ if rest.starts_with("--") => Some("\n"),
            _ if rest.starts_with("/*") => Some("*/"),
            _ => None,
        };
        let Some(end) = ends else {
            kept.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        };
        // A quote that is doubled in a text ends it and begins another.
        let inside = rest.get(1..).unwrap_or_default();
        let length = inside.find(end).map_or(rest.len(), |at| 1 + at + end.len());
        let literal = rest.get(..length).unwrap_or_default();
        kept.extend(literal.chars().map(|char| if char == '\n' { '\n' } else { ' ' }));
        rest = rest.get(length..).unwrap_or_default();
    }
    kept
}

/// Returns a line of a statement with a mark below one of its characters, both numbered from 1.
fn pointer(statement: &str, line: usize, column: usize) -> Option<String> {
    const BEFORE: usize = 60;
    const SHOWN: usize = 100;
    let text = statement.lines().nth(line.checked_sub(1)?)?;
    let at = column.checked_sub(1)?;
    if at > text.chars().count() {
        return None;
    }
    // Of a long line the part around the place.
    let first = if at > SHOWN - 20 { at - BEFORE } else { 0 };
    let shown: String =
        text.chars().skip(first).take(SHOWN).map(|char| if char == '\t' { ' ' } else { char }).collect();
    let before: String = shown.chars().take(at - first).collect();
    Some(format!("  {}\n  {}^", visible(&shown), " ".repeat(visible(&before).width())))
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let message = with_hint(&error.to_string(), error.hint().as_deref());
        CliError::Failed { code: Some(error.code().to_owned()), message }
    }
}

impl From<CatalogError> for CliError {
    fn from(error: CatalogError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        let code = status.metadata().get("x-querent-code").and_then(|code| code.to_str().ok()).map(str::to_owned);
        CliError::Failed { code, message: status.message().to_owned() }
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        CliError::NotOpened { code: error.code().as_str(), message: error.to_string() }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_pointed_at_where_it_stands_once() {
        for (message, statement, place) in [
            ("unknown column `nope`; the columns are a, b", "SELECT nope FROM t", Some((1, 8))),
            ("unknown column `t.nope`; did you mean `note`?", "SELECT a,\n  T.Nope\nFROM t", Some((2, 3))),
            ("unknown column `t.nope`", "SELECT 'nope', nope -- nope\nFROM t", Some((1, 16))),
            ("unknown table `flihgts` in database `default`", "SELECT * FROM flihgts", Some((1, 15))),
            ("unknown function `conut`; did you mean `count`?", "/* conut */ SELECT 'é', conut(*)", Some((1, 25))),
            // Twice, as a part of another name, in texts only: nothing is pointed at.
            ("unknown column `nope`", "SELECT nope FROM t ORDER BY nope", None),
            ("unknown column `nope`", "SELECT nope_2 FROM t", None),
            ("unknown column `nope`", "SELECT 'it''s nope'", None),
            ("unknown metric `7`", "SELECT 7", None),
        ] {
            assert_eq!(place_of_unknown(message, statement), place, "{message} {statement}");
        }
        let error = CliError::failed("unknown column `nope`").pointing_into("SELECT a,\n  nope FROM t");
        assert_eq!(error.to_string(), "unknown column `nope`\n    nope FROM t\n    ^");
    }
}

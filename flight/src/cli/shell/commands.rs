//! The shell's commands, as psql, SQLite and DuckDB have them.

use std::path::PathBuf;

use clap::ValueEnum;
use querent_engine::policy::in_home_folder;

use super::statements::{ShellLanguage, is_kql_command};
use crate::cli::error::CliError;
use crate::cli::output::rows::OutputFormat;

/// A command as help shows it.
pub(super) struct CommandHelp {
    pub(super) names: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    /// Words that may follow it.
    pub(super) words: &'static [&'static str],
}

const FORMATS: &[&str] =
    &["table", "box", "csv", "tsv", "json", "ndjson", "markdown", "vertical", "arrow", "parquet", "sql", "kql"];

/// What help takes with a command and what it does side by side.
const HELP_WIDTH: usize = 88;

/// All commands.
pub(super) const COMMANDS: &[CommandHelp] = &[
    help(&["\\d", ".tables"], "[TABLE]", "tables and views; the columns of one", &[]),
    help(&["\\dt"], "", "tables", &[]),
    help(&["\\dv"], "", "views", &[]),
    help(&["\\df", ".functions"], "[TEXT]", "functions whose names contain a text", &[]),
    help(&["\\l", ".databases"], "", "databases", &[]),
    help(&["\\c", ".database"], "NAME", "resolve bare names in this database", &[]),
    help(&[".schema"], "[TABLE]", "statements that make the tables", &[]),
    help(&[".mode"], "FORMAT|sql|kql", "how rows are printed; the language of statements", FORMATS),
    help(&["\\x"], "", "rows as one line a value, and back", &[]),
    help(&[".rows"], "N", "rows that a table shows; 0 shows all", &[]),
    help(&["\\timing", ".timer"], "[on|off]", "how long statements take", &["on", "off"]),
    help(&["\\o", ".output"], "[FILE]", "print rows to a file, and back", &[]),
    help(&["\\i", ".read"], "FILE", "run the statements of a file", &[]),
    help(&[".chart"], "", "draw the last rows, where they are worth a chart", &[]),
    help(&[".new"], "", "begin another conversation with the agent", &[]),
    help(&["\\?", "\\h", ".help"], "", "this list", &[]),
    help(&["\\q", ".quit", ".exit"], "", "leave, as ctrl-d does", &[]),
];

const fn help(
    names: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    words: &'static [&'static str],
) -> CommandHelp {
    CommandHelp { names, arguments, about, words }
}

/// A command that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellCommand {
    Describe(Option<String>),
    Tables,
    Views,
    Functions(Option<String>),
    Databases,
    UseDatabase(String),
    Schema(Option<String>),
    Format(OutputFormat),
    Language(ShellLanguage),
    Expanded,
    Rows(usize),
    Timer(Option<bool>),
    Output(Option<PathBuf>),
    Read(PathBuf),
    Chart,
    NewConversation,
    Help,
    Quit,
}

/// Reads a command's line.
pub(super) fn parse_command(line: &str) -> Result<ShellCommand, CliError> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = Some(unquoted(rest.trim().trim_end_matches(';').trim())).filter(|rest| !rest.is_empty());
    let Some(known) = COMMANDS.iter().find(|known| known.names.contains(&name)) else {
        return Err(unknown_command(name));
    };
    let usage = || CliError::Usage(format!("write {name} {}: {}", known.arguments, known.about));
    let required = || argument.clone().ok_or_else(usage);
    if known.arguments.is_empty() && argument.is_some() {
        return Err(CliError::Usage(format!("{name} takes nothing after it: {}", known.about)));
    }
    Ok(match name {
        "\\d" | ".tables" => ShellCommand::Describe(argument),
        "\\dt" => ShellCommand::Tables,
        "\\dv" => ShellCommand::Views,
        "\\df" | ".functions" => ShellCommand::Functions(argument),
        "\\l" | ".databases" => ShellCommand::Databases,
        "\\c" | ".database" => ShellCommand::UseDatabase(required()?),
        ".schema" => ShellCommand::Schema(argument),
        ".mode" => {
            match required()?.to_lowercase().as_str() {
                "sql" => ShellCommand::Language(ShellLanguage::Sql),
                "kql" => ShellCommand::Language(ShellLanguage::Kql),
                format => ShellCommand::Format(OutputFormat::from_str(format, true).map_err(|_| {
                    CliError::Usage(format!("unknown mode `{format}`; modes are {}", FORMATS.join(", ")))
                })?),
            }
        }
        "\\x" => ShellCommand::Expanded,
        ".rows" => ShellCommand::Rows(required()?.parse().map_err(|_| usage())?),
        "\\timing" | ".timer" => ShellCommand::Timer(match argument.as_deref() {
            None => None,
            Some("on") => Some(true),
            Some("off") => Some(false),
            Some(_) => return Err(usage()),
        }),
        "\\o" | ".output" => ShellCommand::Output(argument.filter(|file| file != "stdout").map(|file| path_of(&file))),
        "\\i" | ".read" => ShellCommand::Read(path_of(&required()?)),
        ".chart" => ShellCommand::Chart,
        ".new" => ShellCommand::NewConversation,
        "\\q" | ".quit" | ".exit" => ShellCommand::Quit,
        _ => ShellCommand::Help,
    })
}

/// A path that was typed; below `~/` it is in the user's folder.
pub(super) fn path_of(typed: &str) -> PathBuf {
    in_home_folder(typed).unwrap_or_else(|| PathBuf::from(typed))
}

/// What `.help` prints.
pub(super) fn help_text(width: Option<usize>) -> String {
    let mut text = String::from(
        "SQL ends with `;`. `kql QUERY;` is one query in KQL, `? QUESTION` asks the agent.\n\
         Tab completes, ctrl-r searches the history, ctrl-c ends a query, ctrl-d leaves.\n\n",
    );
    let is_narrow = width.is_some_and(|width| width < HELP_WIDTH);
    for command in COMMANDS {
        let written = format!("{} {}", command.names.join(", "), command.arguments);
        match is_narrow {
            true => text.push_str(&format!("  {}\n    {}\n", written.trim_end(), command.about)),
            false => text.push_str(&format!("  {written:34} {}\n", command.about)),
        }
    }
    text
}

fn unknown_command(name: &str) -> CliError {
    if is_kql_command(name) {
        let message = format!("`{name}` begins a command of KQL: write `kql {name} ...;`, or .mode kql before it");
        return CliError::Usage(message);
    }
    let names = COMMANDS.iter().flat_map(|command| command.names);
    let near = names.map(|known| (strsim::jaro_winkler(known, name), *known)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match near {
        Some((likeness, known)) if likeness > 0.8 => format!("did you mean `{known}`? "),
        _ => String::new(),
    };
    CliError::Usage(format!("unknown command `{name}`; {hint}.help lists all"))
}

/// A name or path without the quotes around it.
fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_what_follows_them() {
        for (line, expected) in [
            ("\\d", ShellCommand::Describe(None)),
            ("\\d \"Air Lines\";", ShellCommand::Describe(Some("Air Lines".into()))),
            (".mode CSV", ShellCommand::Format(OutputFormat::Csv)),
            (".mode kql", ShellCommand::Language(ShellLanguage::Kql)),
            (".output stdout", ShellCommand::Output(None)),
            (".output 'a b.csv'", ShellCommand::Output(Some("a b.csv".into()))),
            (".timer on", ShellCommand::Timer(Some(true))),
            (".exit", ShellCommand::Quit),
        ] {
            assert_eq!(parse_command(line).unwrap(), expected, "{line}");
        }
        for (line, expected) in [
            (".modee csv", "did you mean `.mode`?"),
            (".mode", ".mode FORMAT"),
            (".mode cvs", "modes are"),
            (".rows many", ".rows N"),
            ("\\l x", "takes nothing"),
            (".show graph_models", "`kql .show ...;`"),
        ] {
            let error = parse_command(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn help_fits_a_narrow_terminal() {
        assert!(help_text(Some(100)).contains("\n  .rows N                            rows that a table shows"));
        assert!(help_text(Some(40)).contains("\n  .rows N\n    rows that a table shows; 0 shows all\n"));
        let widest = help_text(Some(40)).lines().skip(2).map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 56), "{widest:?}");
    }
}

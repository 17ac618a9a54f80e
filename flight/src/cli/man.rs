//! `querent man`: manual pages, made of what the command line says of itself, so that the two cannot differ.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};

use super::error::CliError;
use super::{Cli, output};

/// Print a manual page, or write all of them into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent man | man -l -
  querent man token create | man -l -
  querent man --folder ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// The command, such as `token create`; the program itself unless one is named
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of the program and of all its commands into this folder: querent.1, querent-sql.1 and so on
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    folder: Option<PathBuf>,
}

pub(super) async fn run(args: ManArgs) -> Result<(), CliError> {
    let mut program = Cli::command();
    program.build();
    let Some(folder) = args.folder else {
        let named = find(&mut program, &args.command)?;
        return output::print_line(page(named, &args.command).trim_end());
    };
    let failed = |error: std::io::Error| CliError::failed(format!("{}: {error}", folder.display()));
    tokio::fs::create_dir_all(&folder).await.map_err(failed)?;
    let mut pages = Vec::new();
    collect(&mut program, &mut Vec::new(), &mut pages);
    for (name, text) in &pages {
        tokio::fs::write(folder.join(format!("{name}.1")), text).await.map_err(failed)?;
    }
    output::print_line(&format!("{} pages in {}", pages.len(), folder.display()))
}

/// Returns the command of that path. Errors: one that is not there.
fn find<'a>(program: &'a mut Command, path: &[String]) -> Result<&'a mut Command, CliError> {
    let mut command = program;
    for name in path {
        let known: Vec<String> = listed(command).map(|known| known.get_name().to_owned()).collect();
        if !known.contains(name) {
            let commands = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(CliError::Usage(format!(
                "there is no command `{name}` of `{}`; there are: {commands}",
                command.get_name()
            )));
        }
        command = command.find_subcommand_mut(name).ok_or_else(|| CliError::Usage(format!("no command `{name}`")))?;
    }
    Ok(command)
}

/// Adds the pages of a command and of those below it, by their names.
fn collect(command: &mut Command, path: &mut Vec<String>, pages: &mut Vec<(String, String)>) {
    pages.push((page_name(path), page(command, path)));
    let below: Vec<String> = listed(command).map(|known| known.get_name().to_owned()).collect();
    for name in below {
        if let Some(found) = command.find_subcommand_mut(&name) {
            path.push(name);
            collect(found, path, pages);
            path.pop();
        }
    }
}

/// Returns the commands that are shown; `help` says what the pages say.
fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|known| !known.is_hide_set() && known.get_name() != "help")
}

fn page_name(path: &[String]) -> String {
    std::iter::once("querent").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join("-")
}

/// Writes the page of a command in the language of man. It has no date, so that the same program gives the same page.
fn page(command: &mut Command, path: &[String]) -> String {
    let name = page_name(path);
    let usage = command.render_usage().to_string();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        ".TH {} 1 \"\" \"querent {}\" \"Querent\"\n.SH NAME\n{} \\- {}\n",
        escaped(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escaped(&name),
        escaped(&about)
    );
    text.push_str(".SH SYNOPSIS\n");
    preformatted(&mut text, usage.trim_start_matches("Usage:").trim());
    if let Some(long) = command.get_long_about() {
        text.push_str(".SH DESCRIPTION\n");
        paragraphs(&mut text, &long.to_string());
    }
    let shown: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let (positional, flags): (Vec<&Arg>, Vec<&Arg>) = shown.into_iter().partition(|argument| argument.is_positional());
    for (title, arguments) in [("ARGUMENTS", positional), ("OPTIONS", flags)] {
        if !arguments.is_empty() {
            let _ = writeln!(text, ".SH {title}");
            arguments.into_iter().for_each(|argument| describe(&mut text, argument));
        }
    }
    let mut below = listed(command).peekable();
    if below.peek().is_some() {
        text.push_str(".SH COMMANDS\n");
    }
    for known in below {
        let about = known.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, ".TP\n.B {}\n{}\n", escaped(known.get_name()), escaped(&about));
    }
    if let Some(more) = command.get_after_long_help().or(command.get_after_help()) {
        text.push_str(".SH NOTES\n");
        preformatted(&mut text, &more.to_string());
    }
    if let Some((_, above)) = path.split_last() {
        let _ = write!(text, ".SH SEE ALSO\n.BR {} (1)\n", escaped(&page_name(above)));
    }
    text
}

/// Adds an argument: how it is written, what it does, its default and its values.
fn describe(text: &mut String, argument: &Arg) {
    let value = match argument.get_value_names() {
        Some(names) if argument.get_action().takes_values() => {
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let written = match (flags.is_empty(), value.is_empty()) {
        (true, _) => value,
        (false, true) => flags.join(", "),
        (false, false) => format!("{} {value}", flags.join(", ")),
    };
    let _ = write!(text, ".TP\n.B {}\n", escaped(&written));
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    paragraphs(text, &help);
    if !argument.get_action().takes_values() {
        return;
    }
    let values = argument.get_possible_values();
    let values: Vec<&str> = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
    if !values.is_empty() && !argument.is_hide_possible_values_set() {
        let _ = writeln!(text, "One of: {}.", escaped(&values.join(", ")));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = writeln!(text, "Default: {}.", escaped(&defaults.join(", ")));
    }
}

/// Adds a text whose empty lines part paragraphs. Those of an argument stay below its name.
fn paragraphs(text: &mut String, words: &str) {
    for (at, paragraph) in words.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()).enumerate() {
        if at > 0 {
            text.push_str(".sp\n");
        }
        for line in paragraph.lines() {
            let _ = writeln!(text, "{}", escaped(line.trim()));
        }
    }
}

/// Adds a text whose lines stay as they are.
fn preformatted(text: &mut String, words: &str) {
    text.push_str(".nf\n");
    for line in words.lines() {
        let _ = writeln!(text, "{}", escaped(line));
    }
    text.push_str(".fi\n");
}

/// Returns a line that man takes for its words alone: hyphens that can be copied, and no command at its beginning.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_commands_of_man() {
        assert_eq!(escaped(".5 of --all\\n"), "\\&.5 of \\-\\-all\\en");
        let mut text = String::new();
        paragraphs(&mut text, "one\ntwo\n\nthree");
        assert_eq!(text, "one\ntwo\n.sp\nthree\n");
    }

    #[test]
    fn every_command_has_a_page() {
        let mut program = Cli::command();
        program.build();
        let mut pages = Vec::new();
        collect(&mut program, &mut Vec::new(), &mut pages);
        let named = |name: &str| &pages.iter().find(|(known, _)| known == name).unwrap().1;
        assert!(named("querent").contains(".SH COMMANDS\n") && named("querent").contains(".B serve\n"));
        let sql = named("querent-sql");
        assert!(sql.starts_with(".TH QUERENT\\-SQL 1 \"\" \"querent "), "{sql}");
        assert!(sql.contains(".SH OPTIONS\n.TP\n") && sql.contains(".SH SEE ALSO\n.BR querent (1)\n"), "{sql}");
        assert!(named("querent-token-create").contains(".BR querent\\-token (1)\n"));
        for (name, text) in &pages {
            assert!(text.lines().all(|line| !line.starts_with('\'')), "{name}: {text}");
            assert!(!text.contains("\u{1b}"), "{name}: colours of a terminal");
        }
    }
}

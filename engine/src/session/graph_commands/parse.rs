//! Reads the commands.

use querent_kql::behind_comments;

use super::refused;
use crate::error::{EngineError, KqlErrorCode, Result};

/// What encloses a definition.
const FENCE: &str = "```";

/// A command for graph models.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GraphCommand {
    Save {
        name: String,
        definition: String,
    },
    Drop {
        name: String,
        if_missing_ok: bool,
    },
    Show {
        /// `None`: all.
        name: Option<String>,
        is_detailed: bool,
        /// What follows, from its first `|`.
        operators: String,
    },
    Make {
        model: String,
        snapshot: String,
    },
    DropSnapshot {
        model: String,
        snapshot: String,
    },
    ShowSnapshots {
        /// `None`: those of all models.
        model: Option<String>,
        operators: String,
    },
}

impl GraphCommand {
    /// Returns the command that a text is; `None` for other texts. Errors: `kql_invalid`, `kql_not_supported`.
    pub(super) fn parse(text: &str) -> Result<Option<Self>> {
        let text = behind_comments(text).trim_end().trim_end_matches(';');
        if !text.starts_with('.') {
            return Ok(None);
        }
        let (verb, rest) = word(text);
        let (what, rest) = word(rest);
        let command = match (verb.to_ascii_lowercase().as_str(), what) {
            (".create-or-alter", "graph_model") => {
                let (name, definition) = name(rest)?;
                let definition = definition.trim();
                let fenced = definition.strip_prefix(FENCE).and_then(|text| text.strip_suffix(FENCE));
                let definition = fenced.unwrap_or(definition).trim().to_owned();
                Self::Save { name, definition }
            }
            (".drop", "graph_model") => {
                let (name, options) = name(rest)?;
                let if_missing_ok = is_option(options, "ifexists")?;
                Self::Drop { name, if_missing_ok }
            }
            (".show", "graph_models" | "graph_model") => {
                let (shown, operators) = with_operators(rest);
                let (name, options) = match what {
                    "graph_models" => (None, shown),
                    _ => {
                        let (name, options) = name(shown)?;
                        (Some(name), options)
                    }
                };
                Self::Show { name, is_detailed: is_option(options, "details")?, operators }
            }
            (".make", "graph_snapshot") => {
                let (snapshot, rest) = name(rest)?;
                let (from, rest) = word(rest);
                if from != "from" {
                    return Err(refused("expected `from` and the name of a graph model".to_owned()));
                }
                let (model, rest) = name(rest)?;
                ended(rest)?;
                Self::Make { model, snapshot }
            }
            (".drop", "graph_snapshot") => {
                let (model, rest) = name(rest)?;
                let Some(rest) = rest.trim_start().strip_prefix('.') else {
                    return Err(refused("expected the names of a graph model and of a snapshot: M.S".to_owned()));
                };
                let (snapshot, rest) = name(rest)?;
                ended(rest)?;
                Self::DropSnapshot { model, snapshot }
            }
            (".show", "graph_snapshots") => {
                let (shown, operators) = with_operators(rest);
                let (model, rest) = match shown.trim() {
                    "" | "*" => (None, ""),
                    _ => {
                        let (model, rest) = name(shown)?;
                        (Some(model), rest)
                    }
                };
                ended(rest)?;
                Self::ShowSnapshots { model, operators }
            }
            (_, graph)
                if graph.starts_with("graph_") || (graph == "async" && rest.trim_start().starts_with("graph_")) =>
            {
                return Err(EngineError::Kql {
                    code: KqlErrorCode::Bind(querent_kql::BindErrorCode::NotSupported),
                    message: "this command for graphs is not supported here".to_owned(),
                    hint: Some(
                        "there are .create-or-alter, .show and .drop of a graph_model, and .make, .show and .drop of a \
                         graph_snapshot"
                            .to_owned(),
                    ),
                });
            }
            _ => return Ok(None),
        };
        Ok(Some(command))
    }
}

fn with_operators(text: &str) -> (&str, String) {
    let (shown, operators) = text.split_at(text.find('|').unwrap_or(text.len()));
    (shown, operators.to_owned())
}

/// Whether the rest of a command is this word. Errors: it is another one.
fn is_option(rest: &str, option: &str) -> Result<bool> {
    match rest.trim() {
        "" => Ok(false),
        word if word == option => Ok(true),
        other => Err(refused(format!("expected `{option}` or the end of the command, found `{other}`"))),
    }
}

fn ended(rest: &str) -> Result<()> {
    match rest.trim() {
        "" => Ok(()),
        other => Err(refused(format!("expected the end of the command, found `{other}`"))),
    }
}

/// Returns the first word and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Returns the name that a text begins with, bare or in quotes, and the rest.
fn name(text: &str) -> Result<(String, &str)> {
    let text = text.trim_start();
    let (opened, is_bracketed) = match text.strip_prefix('[') {
        Some(inner) => (inner.trim_start(), true),
        None => (text, false),
    };
    let missing = || refused("expected the name of a graph model or of a snapshot".to_owned());
    let (name, rest) = match opened.chars().next() {
        Some(quote @ ('\'' | '"')) => opened[1..].split_once(quote).ok_or_else(missing)?,
        _ if is_bracketed => return Err(missing()),
        _ => {
            let end = opened.find(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).unwrap_or(opened.len());
            opened.split_at(end)
        }
    };
    let rest = match is_bracketed {
        true => rest.trim_start().strip_prefix(']').ok_or_else(missing)?,
        false => rest,
    };
    if name.is_empty() { Err(missing()) } else { Ok((name.to_owned(), rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_kusto_writes_them() {
        let parsed = |text: &str| GraphCommand::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let save = |name: &str, definition: &str| {
            Some(GraphCommand::Save { name: name.to_owned(), definition: definition.to_owned() })
        };
        let show = |name: Option<&str>, is_detailed, operators: &str| {
            let operators = operators.to_owned();
            Some(GraphCommand::Show { name: name.map(str::to_owned), is_detailed, operators })
        };
        assert_eq!(parsed(".create-or-alter graph_model G ```\n{\"a\": 1 | 2}\n```"), save("G", "{\"a\": 1 | 2}"));
        assert_eq!(parsed(" .Create-Or-Alter graph_model ['my g'] {};"), save("my g", "{}"));
        assert_eq!(parsed("// all\n  // of them\n.show graph_models"), show(None, false, ""));
        assert_eq!(parsed("// .show graph_models"), None);
        assert_eq!(parsed(".show graph_models"), show(None, false, ""));
        assert_eq!(parsed("// those there are\n.show graph_models"), show(None, false, ""));
        assert_eq!(parsed(".show graph_models details | project Name"), show(None, true, "| project Name"));
        assert_eq!(parsed(".show graph_model \"G\" | count"), show(Some("G"), false, "| count"));
        let dropped = GraphCommand::Drop { name: "G".to_owned(), if_missing_ok: true };
        assert_eq!(parsed(".drop graph_model G ifexists"), Some(dropped));
        let (model, snapshot) = ("my g".to_owned(), "S-1".to_owned());
        let made = GraphCommand::Make { model: model.clone(), snapshot: snapshot.clone() };
        assert_eq!(parsed(".make graph_snapshot S-1 from ['my g']"), Some(made));
        assert_eq!(parsed(".drop graph_snapshot ['my g'].S-1"), Some(GraphCommand::DropSnapshot { model, snapshot }));
        for (text, model) in [("*", None), ("", None), ("G", Some("G".to_owned()))] {
            let shown = GraphCommand::ShowSnapshots { model, operators: "| count".to_owned() };
            assert_eq!(parsed(&format!(".show graph_snapshots {text} | count")), Some(shown));
        }
        for other in ["T | take 1", ".show tables", ".drop table G", "print '.show graph_models'"] {
            assert_eq!(parsed(other), None, "{other}");
        }
        for (wrong, code) in [
            (".drop graph_model", "kql_invalid"),
            (".drop graph_model G now", "kql_invalid"),
            (".show graph_model ['G", "kql_invalid"),
            (".make graph_snapshot S of G", "kql_invalid"),
            (".drop graph_snapshot S", "kql_invalid"),
            (".make async graph_snapshot S from G", "kql_not_supported"),
            (".show graph_operations", "kql_not_supported"),
        ] {
            assert_eq!(GraphCommand::parse(wrong).unwrap_err().code(), code, "{wrong}");
        }
    }
}

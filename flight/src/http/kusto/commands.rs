//! The `.show` commands that clients send to explore a server. Their results are tables: operators may follow after `|`.

use querent_catalog::Principal;
use querent_engine::kql::KqlType;
use serde_json::{Value, json};

use super::schema::{self, DatabaseColumns};
use super::table::{CommandTable, TEXT};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// A management command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShowCommand {
    what: ShowTarget,
    /// What follows the command, from its first `|`.
    pub(super) operators: Option<String>,
}

/// What a command shows.
#[derive(Debug, PartialEq, Eq)]
enum ShowTarget {
    Version,
    Databases,
    /// Tables of the current database: all, or these.
    Tables(Vec<String>),
    Table {
        table: String,
        /// As JSON, or as the columns of a `datatable`.
        as_json: bool,
    },
    /// Of one database; `None` for the current one.
    DatabaseSchema {
        database: Option<String>,
        as_json: bool,
    },
    ClusterSchema {
        as_json: bool,
    },
    Functions,
    /// What the engine answers: the plan of a query, and graph models.
    Engine,
}

impl ShowCommand {
    /// Errors: `kql_not_supported`.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let (words, operators) = split(text);
        let lower: Vec<String> = words.iter().map(|word| word.lower()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let name = |index: usize| words.get(index).map(|word| word.text.clone()).unwrap_or_default();
        let what = match lower.as_slice() {
            [".show", "version"] => ShowTarget::Version,
            [".show", "databases"] => ShowTarget::Databases,
            [".show", "tables"] => ShowTarget::Tables(Vec::new()),
            [".show", "tables", "(", names @ .., ")"] => {
                let named = words.iter().skip(3).take(names.len()).filter(|word| word.text != ",");
                ShowTarget::Tables(named.map(|word| word.text.clone()).collect())
            }
            [".show", "functions"] => ShowTarget::Functions,
            [".show", "queryplan", "<"] if operators.is_some() => ShowTarget::Engine,
            [".make", "async", "graph_snapshot", ..] => ShowTarget::Engine,
            [".show" | ".create-or-alter" | ".drop" | ".make", what, ..] if what.starts_with("graph_") => {
                ShowTarget::Engine
            }
            [".show", "table", _, "cslschema"] => ShowTarget::Table { table: name(2), as_json: false },
            [".show", "table", _, "schema", "as", "json"] => ShowTarget::Table { table: name(2), as_json: true },
            [".show", "schema"] | [".show", "databases", "schema"] => ShowTarget::ClusterSchema { as_json: false },
            [".show", "schema" | "cluster", "as" | "schema", ..] | [".show", "databases", "schema", "as", "json"]
                if lower.ends_with(&["as", "json"]) =>
            {
                ShowTarget::ClusterSchema { as_json: true }
            }
            [".show", "database", "schema"] => ShowTarget::DatabaseSchema { database: None, as_json: false },
            [".show", "database", "schema", "as", "json"] => {
                ShowTarget::DatabaseSchema { database: None, as_json: true }
            }
            [".show", "database", _, "schema"] => {
                ShowTarget::DatabaseSchema { database: Some(name(2)), as_json: false }
            }
            [".show", "database", _, "schema", "as", "json"] => {
                ShowTarget::DatabaseSchema { database: Some(name(2)), as_json: true }
            }
            _ => {
                let message = format!("the command `{}` is not supported here", text.trim());
                return Err(ApiError::new(ErrorCode::KqlNotSupported, message).with_hint(
                    ".show databases, tables, functions, version, queryplan, graph_models, schema [as json], database D \
                     schema [as json], table T schema as json and table T cslschema, .create-or-alter graph_model and .drop \
                     graph_model are",
                ));
            }
        };
        Ok(Self { what, operators })
    }

    /// Whether the engine answers the text as it is.
    pub(super) fn is_of_engine(&self) -> bool {
        self.what == ShowTarget::Engine
    }

    /// Errors: `database_not_found`, `table_not_found`, `kql_too_large`.
    pub(super) async fn run(
        &self,
        state: &AppState,
        who: &Principal,
        database: Option<&str>,
    ) -> Result<CommandTable, ApiError> {
        let catalog = state.engine.catalog();
        let in_use = state.session(who.clone(), state.settings.limits());
        let in_use = in_use.in_database(database).await?;
        let in_use = in_use.database();
        match &self.what {
            ShowTarget::Version => Ok(version()),
            ShowTarget::Databases => schema::databases(catalog, who, in_use).await,
            ShowTarget::Tables(names) => schema::tables(catalog, who, in_use, names).await,
            ShowTarget::Table { table, as_json } => schema::table(catalog, who, in_use, table, *as_json).await,
            ShowTarget::DatabaseSchema { database, as_json } => {
                let columns = DatabaseColumns::read(catalog, who, Some(database.as_deref().unwrap_or(in_use))).await?;
                Ok(if *as_json { columns.document("DatabaseSchema") } else { columns.listing() })
            }
            ShowTarget::ClusterSchema { as_json } => {
                let columns = DatabaseColumns::read(catalog, who, None).await?;
                Ok(if *as_json { columns.document("ClusterSchema") } else { columns.listing() })
            }
            ShowTarget::Engine => Err(ApiError::internal("what the engine answers is not a command's to show")),
            ShowTarget::Functions => Ok(CommandTable {
                columns: ["Name", "Parameters", "Body", "Folder", "DocString"].map(|name| (name, TEXT)).into(),
                rows: Vec::new(),
            }),
        }
    }
}

fn version() -> CommandTable {
    let version = env!("CARGO_PKG_VERSION");
    CommandTable {
        columns: vec![
            ("BuildVersion", TEXT),
            ("BuildTime", KqlType::DateTime),
            ("ServiceType", TEXT),
            ("ProductVersion", TEXT),
        ],
        rows: vec![vec![json!(version), Value::Null, json!("Engine"), json!(format!("Querent {version}"))]],
    }
}

/// A word of a command, or a quoted name.
struct Word {
    text: String,
    is_quoted: bool,
}

impl Word {
    /// Returns the word for comparison with keywords, which a quoted name never equals.
    fn lower(&self) -> String {
        if self.is_quoted { "\0name".to_owned() } else { self.text.to_ascii_lowercase() }
    }
}

/// Splits a text into the words up to the first `|` and what begins with it.
fn split(text: &str) -> (Vec<Word>, Option<String>) {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut rest = text.trim().trim_end_matches(';');
    let end = |word: &mut String, words: &mut Vec<Word>| {
        if !word.is_empty() {
            words.push(Word { text: std::mem::take(word), is_quoted: false });
        }
    };
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        match char {
            '|' => {
                end(&mut word, &mut words);
                return (words, Some(rest.to_owned()));
            }
            '\'' | '"' => {
                end(&mut word, &mut words);
                let (name, after) = after.split_once(char).unwrap_or((after, ""));
                words.push(Word { text: name.to_owned(), is_quoted: true });
                rest = after;
                continue;
            }
            // Brackets only enclose a quoted name.
            '[' | ']' => end(&mut word, &mut words),
            '(' | ')' | ',' => {
                end(&mut word, &mut words);
                words.push(Word { text: char.to_string(), is_quoted: false });
            }
            char if char.is_whitespace() => end(&mut word, &mut words),
            char => word.push(char),
        }
        rest = after;
    }
    end(&mut word, &mut words);
    (words, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(ShowTarget, Option<String>)> {
        ShowCommand::parse(text).ok().map(|command| (command.what, command.operators))
    }

    #[test]
    fn commands_are_read_as_clients_write_them() {
        let schema = |database: Option<&str>, as_json| ShowTarget::DatabaseSchema {
            database: database.map(str::to_owned),
            as_json,
        };
        for (text, show) in [
            (".show version", ShowTarget::Version),
            (".show databases;", ShowTarget::Databases),
            (" .SHOW  Tables ", ShowTarget::Tables(Vec::new())),
            (".show tables (a, ['b c'])", ShowTarget::Tables(vec!["a".into(), "b c".into()])),
            (".show table ['schema'] schema as json", ShowTarget::Table { table: "schema".into(), as_json: true }),
            (".show table T cslschema", ShowTarget::Table { table: "T".into(), as_json: false }),
            (".show database schema as json", schema(None, true)),
            (".show database [\"my db\"] schema as json", schema(Some("my db"), true)),
            (".show database D schema", schema(Some("D"), false)),
            (".show schema as json", ShowTarget::ClusterSchema { as_json: true }),
            (".show cluster schema as json", ShowTarget::ClusterSchema { as_json: true }),
            (".show databases schema as json", ShowTarget::ClusterSchema { as_json: true }),
        ] {
            assert_eq!(parsed(text), Some((show, None)), "{text}");
        }
        assert_eq!(
            parsed(".show tables | project TableName"),
            Some((ShowTarget::Tables(Vec::new()), Some("| project TableName".into())))
        );
        assert_eq!(parsed(".show queryplan <| T | take 1").map(|(show, _)| show), Some(ShowTarget::Engine));
        for text in [".show graph_models", ".create-or-alter graph_model G ```{}```", ".drop graph_model G"] {
            assert_eq!(parsed(text).map(|(show, _)| show), Some(ShowTarget::Engine), "{text}");
        }
        assert_eq!(parsed(".drop table T"), None);
        assert_eq!(parsed(".show schema as xml"), None);
    }
}

//! Spider's schemas as databases, and rows for those that questions are about. Rows are made of a seed: keys refer to
//! rows that there are, and columns hold the texts and numbers that gold queries compare them with, so that those find
//! something.

use std::collections::BTreeMap;
use std::path::Path;

use datafusion::sql::sqlparser::dialect::MySqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use querent_catalog::{NewRelationship, Principal, TableName};
use querent_engine::{Engine, Limits, Session};
use sha1::{Digest, Sha1};

use crate::Failure;
use crate::cells::agent::open;
use crate::cells::recall::{SpiderDatabase, SpiderQuestion, quoted};

/// Rows of a table.
const ROWS: usize = 24;
/// What a lake is made by; a change makes it again.
const VERSION: &str = "1";
const WORDS: [&str; 16] = [
    "Alpha", "Bravo", "Coral", "Delta", "Ember", "Fjord", "Grove", "Haven", "Indigo", "Juniper", "Karst", "Lagoon",
    "Mesa", "Nectar", "Onyx", "Prairie",
];

/// Opens a lake, and says whether its mark shows that it is filled; one that was only begun is made anew.
pub(super) async fn open_marked(path: &Path, mark: &Path) -> Result<(Engine, bool), Failure> {
    if tokio::fs::try_exists(mark).await? {
        let engine = open(path).await?;
        engine.catalog().search().index_idle().await?;
        return Ok((engine, true));
    }
    if tokio::fs::try_exists(path).await? {
        tokio::fs::remove_dir_all(path).await?;
    }
    Ok((open(path).await?, false))
}

/// Opens the lake of a filling; it is made where it is not there yet. Only the first has databases without questions.
pub(super) async fn lake(
    folder: &Path,
    filling: usize,
    schemas: &[SpiderDatabase],
    questions: &[SpiderQuestion],
) -> Result<Engine, Failure> {
    let path = folder.join(format!("lake-{VERSION}-{filling}"));
    let mark = folder.join(format!("lake-{VERSION}-{filling}.done"));
    let (engine, is_filled) = open_marked(&path, &mark).await?;
    if is_filled {
        return Ok(engine);
    }
    let session = engine.session(Principal::local_admin(), Limits::default());
    let bar = indicatif::ProgressBar::new(schemas.len() as u64).with_message(format!("filling {}", filling + 1));
    for schema in schemas {
        let own: Vec<&SpiderQuestion> = questions.iter().filter(|one| one.db_id == schema.db_id).collect();
        if filling == 0 || !own.is_empty() {
            create(&engine, &session, schema).await?;
        }
        if !own.is_empty() {
            fill(&session, schema, &own, filling).await?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    engine.catalog().search().index_idle().await?;
    tokio::fs::write(&mark, VERSION).await?;
    Ok(engine)
}

/// A number that depends on a text alone.
pub(super) fn hash(text: &str) -> u64 {
    let digest = Sha1::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns the name and the definition of each table, its names prefixed.
pub(super) fn definitions(schema: &SpiderDatabase, prefix: &str) -> Vec<(String, String)> {
    let tables = schema.table_names_original.iter().enumerate();
    let defined = tables.map(|(index, table)| {
        let columns: Vec<String> =
            columns_of(schema, index).map(|(_, name, kind)| format!("{} {}", quoted(name), type_of(kind))).collect();
        (table.clone(), format!("CREATE TABLE {prefix}{} ({})", quoted(table), columns.join(", ")))
    });
    defined.collect()
}

fn type_of(kind: &str) -> &'static str {
    match kind {
        "number" => "double",
        "time" => "timestamp",
        "boolean" => "boolean",
        _ => "varchar",
    }
}

/// Returns the columns of a table: their index in the schema, name and kind.
fn columns_of(schema: &SpiderDatabase, table: usize) -> impl Iterator<Item = (usize, &str, &str)> {
    let columns = schema.column_names_original.iter().zip(&schema.column_types).enumerate();
    columns.filter_map(move |(index, ((owner, name), kind))| {
        (usize::try_from(*owner) == Ok(table)).then_some((index, name.as_str(), kind.as_str()))
    })
}

async fn create(engine: &Engine, session: &Session, schema: &SpiderDatabase) -> Result<(), Failure> {
    execute(session, &format!("CREATE SCHEMA {}", quoted(&schema.db_id))).await?;
    for (_, definition) in definitions(schema, &format!("{}.", quoted(&schema.db_id))) {
        execute(session, &definition).await?;
    }
    for [from, to] in &schema.foreign_keys {
        let (Some(from), Some(to)) = (column_at(schema, *from), column_at(schema, *to)) else { continue };
        let table = |name: &str| TableName { database: schema.db_id.clone(), table: name.to_owned() };
        let new = NewRelationship {
            from: table(from.0),
            from_columns: vec![from.1.to_owned()],
            to: table(to.0),
            to_columns: vec![to.1.to_owned()],
        };
        engine.catalog().relationships().declare(&Principal::local_admin(), &new).await?;
    }
    Ok(())
}

fn column_at(schema: &SpiderDatabase, index: usize) -> Option<(&str, &str)> {
    let (owner, name) = schema.column_names_original.get(index)?;
    let table = schema.table_names_original.get(usize::try_from(*owner).ok()?)?;
    Some((table, name))
}

async fn fill(
    session: &Session,
    schema: &SpiderDatabase,
    questions: &[&SpiderQuestion],
    filling: usize,
) -> Result<(), Failure> {
    let compared = compared_values(questions);
    let refers: BTreeMap<usize, usize> = schema.foreign_keys.iter().map(|[from, to]| (*from, *to)).collect();
    let referred: Vec<usize> = schema.foreign_keys.iter().map(|[_, to]| *to).collect();
    for (table, name) in schema.table_names_original.iter().enumerate() {
        let mut rows = Vec::new();
        for row in 0..ROWS {
            let values: Vec<String> = columns_of(schema, table)
                .map(|(column, column_name, kind)| {
                    let mut random = hash(&format!("{filling} {} {column} {row}", schema.db_id));
                    random ^= random >> 29;
                    // A key's own values are its row numbers; a column that refers holds some of those.
                    let root = std::iter::successors(Some(column), |at| refers.get(at).copied()).take(6).last();
                    let is_key = schema.primary_keys.contains(&column) || referred.contains(&column);
                    let refers_to = root.filter(|root| *root != column);
                    match (refers_to, is_key) {
                        (Some(root), _) => {
                            let kind = schema.column_types.get(root).map_or(kind, String::as_str);
                            key_value(root, kind, (random % ROWS as u64) as usize, schema, &compared)
                        }
                        (None, true) => key_value(column, kind, row, schema, &compared),
                        (None, false) => plain_value(column_name, kind, random, &compared),
                    }
                })
                .collect();
            rows.push(format!("({})", values.join(", ")));
        }
        let target = format!("{}.{}", quoted(&schema.db_id), quoted(name));
        execute(session, &format!("INSERT INTO {target} VALUES {}", rows.join(", "))).await?;
    }
    Ok(())
}

/// Returns the value of a key in its row: the values that queries compare it with come first.
fn key_value(
    column: usize,
    kind: &str,
    row: usize,
    schema: &SpiderDatabase,
    compared: &BTreeMap<String, Vec<String>>,
) -> String {
    let name = schema.column_names_original.get(column).map(|(_, name)| name.to_lowercase()).unwrap_or_default();
    let wanted = compared.get(&name).and_then(|values| values.get(row)).cloned();
    match kind {
        "number" => match wanted.and_then(|value| value.parse::<f64>().ok()) {
            Some(number) => number.to_string(),
            None => (row + 1).to_string(),
        },
        "time" => format!("TIMESTAMP '20{:02}-01-01 00:00:00'", row % 30),
        "boolean" => row.is_multiple_of(2).to_string(),
        _ => text_literal(&wanted.unwrap_or_else(|| format!("{}{}", WORDS[row % WORDS.len()], row))),
    }
}

fn plain_value(name: &str, kind: &str, random: u64, compared: &BTreeMap<String, Vec<String>>) -> String {
    let wanted = compared.get(&name.to_lowercase()).filter(|values| !values.is_empty() && !random.is_multiple_of(3));
    let wanted = wanted.map(|values| values[(random / 3) as usize % values.len()].clone());
    match kind {
        "number" => match wanted.and_then(|value| value.parse::<f64>().ok()) {
            // Around what it is compared with.
            Some(number) => (number + ((random >> 8) % 5) as f64 - 2.0).to_string(),
            None => ((random >> 8) % 500).to_string(),
        },
        "time" => {
            let day =
                wanted.as_deref().and_then(|value| value.get(..10)).filter(|day| day.as_bytes().get(4) == Some(&b'-'));
            match day {
                Some(day) => format!("TIMESTAMP '{day} 00:00:00'"),
                None => {
                    format!("TIMESTAMP '20{:02}-{:02}-{:02} 10:00:00'", random % 20, 1 + random % 12, 1 + random % 28)
                }
            }
        }
        "boolean" => random.is_multiple_of(2).to_string(),
        _ => text_literal(&wanted.unwrap_or_else(|| WORDS[random as usize % WORDS.len()].to_owned())),
    }
}

fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the constants that queries compare columns with, by the column's lowercase name.
fn compared_values(questions: &[&SpiderQuestion]) -> BTreeMap<String, Vec<String>> {
    let mut compared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for question in questions {
        let Ok(tokens) = Tokenizer::new(&MySqlDialect {}, &question.query).tokenize() else { continue };
        let mut column: Option<String> = None;
        for token in tokens {
            match token {
                Token::Word(word) => match word.value.to_uppercase().as_str() {
                    "LIKE" | "IN" | "BETWEEN" | "AND" | "NOT" => {}
                    _ => column = Some(word.value.to_lowercase()),
                },
                Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                    push(&mut compared, column.as_ref(), text.replace('%', ""));
                }
                Token::Number(number, _) => push(&mut compared, column.as_ref(), number),
                _ => {}
            }
        }
    }
    compared
}

fn push(compared: &mut BTreeMap<String, Vec<String>>, column: Option<&String>, value: String) {
    if let Some(column) = column {
        let values = compared.entry(column.clone()).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
}

async fn execute(session: &Session, sql: &str) -> Result<(), Failure> {
    session.sql(sql).await.map_err(|error| format!("{sql}: {error}"))?.collect().await?;
    Ok(())
}

//! What there is, as the shell lists it and as completion offers it. Everything is asked in SQL, so that a server answers
//! as the folder does.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow_schema::DataType;
use futures::TryStreamExt;
use querent_agent::sql_type;
use querent_catalog::DEFAULT_DATABASE;
use querent_engine::{KnownNames, is_reserved_word, quote_identifier};

use super::backend::ShellBackend;
use super::statements::ShellLanguage;
use crate::cli::error::CliError;

/// Columns that completion knows at most.
const MAX_COLUMNS: usize = 50_000;
/// Tables whose statements `.schema` prints at most.
const MAX_TABLES: usize = 1_000;
/// What SHOW TABLES says of the session's own tables.
const TEMPORARY: &str = "LOCAL TEMPORARY";

/// Returns the statement that lists tables and views of a database, and the session's own tables.
pub(super) async fn relations(backend: &ShellBackend, database: Option<&str>) -> Result<String, CliError> {
    with_temporary(backend, database, stored_relations(database, None)).await
}

/// Returns the statement that lists tables of a database, and the session's own.
pub(super) async fn tables(backend: &ShellBackend, database: Option<&str>) -> Result<String, CliError> {
    with_temporary(backend, database, stored_relations(database, Some("BASE TABLE"))).await
}

/// The statement that lists views of a database.
pub(super) fn views(database: Option<&str>) -> String {
    format!("{} ORDER BY name", stored_relations(database, Some("VIEW")))
}

fn stored_relations(database: Option<&str>, kind: Option<&str>) -> String {
    let kind = kind.map(|kind| format!(" AND table_type = '{kind}'")).unwrap_or_default();
    format!(
        "SELECT table_schema AS database, table_name AS name, table_type AS kind FROM information_schema.tables \
         WHERE table_schema = {}{kind}",
        text(database.unwrap_or(DEFAULT_DATABASE))
    )
}

async fn with_temporary(backend: &ShellBackend, database: Option<&str>, stored: String) -> Result<String, CliError> {
    let own = temporary_tables(backend, database).await?;
    if own.is_empty() {
        return Ok(format!("{stored} ORDER BY name"));
    }
    let own = own.iter().map(|name| format!("(CAST(NULL AS VARCHAR), {}, '{TEMPORARY}')", text(name)));
    let own = own.collect::<Vec<_>>().join(", ");
    Ok(format!("SELECT * FROM ({stored} UNION ALL SELECT * FROM (VALUES {own}) AS o(a, b, c)) AS l ORDER BY name"))
}

/// The names of the session's own tables.
async fn temporary_tables(backend: &ShellBackend, database: Option<&str>) -> Result<Vec<String>, CliError> {
    let rows = texts(backend, "SHOW TABLES", database).await?.into_iter();
    let own = rows.filter(|row| row.get(2).is_some_and(|kind| kind == TEMPORARY));
    Ok(own.filter_map(|row| row.into_iter().nth(1)).collect())
}

/// The statement that lists the columns of a table.
pub(super) fn describe(table: &str) -> String {
    format!("DESCRIBE {}", identifier(table))
}

/// The functions of SQL, by name.
pub(super) async fn functions(backend: &ShellBackend, database: Option<&str>) -> Result<Vec<String>, CliError> {
    let rows = texts(backend, "SHOW FUNCTIONS", database).await?;
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next()).collect())
}

/// The statements that would make the tables and views, with those of the session's own tables.
pub(super) async fn statements(
    backend: &ShellBackend,
    database: Option<&str>,
    table: Option<&str>,
) -> Result<Vec<String>, CliError> {
    let current = database.unwrap_or(DEFAULT_DATABASE);
    let own = temporary_tables(backend, database).await?;
    let is_own = |name: &str| own.iter().any(|own| own.eq_ignore_ascii_case(name));
    let mut made = Vec::new();
    if let Some(table) = table.filter(|table| is_own(table)) {
        made.push(columns_as_table(backend, database, &identifier(table), "TEMPORARY TABLE").await?);
        return Ok(made);
    }
    // What was typed may say a database, and what is listed is a name, whatever it holds.
    let tables: Vec<(String, String, String)> = match table {
        Some(table) => {
            let (owner, bare) = table.rsplit_once('.').unwrap_or((current, table));
            vec![(owner.to_owned(), bare.to_owned(), identifier(table))]
        }
        None => {
            let sql =
                format!("SELECT name FROM ({}) ORDER BY name LIMIT {MAX_TABLES}", stored_relations(database, None));
            let names = texts(backend, &sql, database).await?.into_iter().filter_map(|row| row.into_iter().next());
            names.map(|name| (current.to_owned(), name.clone(), quoted_name(&name))).collect()
        }
    };
    for (owner, bare, name) in tables {
        let sql = format!(
            "SELECT definition FROM information_schema.views \
             WHERE lower(table_schema) = lower({}) AND lower(table_name) = lower({})",
            text(&owner),
            text(&bare)
        );
        let view = texts(backend, &sql, database).await?.into_iter().flatten().next();
        if let Some(definition) = view {
            made.push(format!("CREATE VIEW {name} AS {definition};"));
            continue;
        }
        let sql = format!("SHOW CREATE TABLE {}.{}", quote_identifier(&owner), quote_identifier(&bare));
        made.push(match texts(backend, &sql, database).await.ok().and_then(|rows| rows.into_iter().flatten().nth(1)) {
            Some(statement) => in_lines(&statement, &name).unwrap_or_else(|| format!("{statement};")),
            // Those of the system are made by nobody.
            None => columns_as_table(backend, database, &name, "TABLE").await?,
        });
    }
    if table.is_none() {
        for name in &own {
            made.push(columns_as_table(backend, database, &quoted_name(name), "TEMPORARY TABLE").await?);
        }
    }
    Ok(made)
}

/// Returns the statement that makes a table of the columns that a relation has.
async fn columns_as_table(
    backend: &ShellBackend,
    database: Option<&str>,
    name: &str,
    kind: &str,
) -> Result<String, CliError> {
    let rows = backend.run(ShellLanguage::Sql, &format!("SELECT * FROM {name} LIMIT 0"), database).await?;
    let columns = rows.schema.fields().iter().map(|field| {
        let required = if field.is_nullable() { "" } else { " NOT NULL" };
        format!("  {} {}{required}", quoted_name(field.name()), sql_type(field.data_type()))
    });
    Ok(format!("CREATE {kind} {name} (\n{}\n);", columns.collect::<Vec<_>>().join(",\n")))
}

/// Returns the statement of a managed table with a line a column and key, and names in quotes where they must be; `None` for
/// that of an external table, which names no columns.
fn in_lines(statement: &str, name: &str) -> Option<String> {
    let (mut quote, mut depth, mut angles, mut began) = (None, 0, 0, 0);
    let mut parts: Vec<String> = Vec::new();
    let mut behind = "";
    if !statement.starts_with("CREATE TABLE ") {
        return None;
    }
    for (at, char) in statement.char_indices() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '<') => angles += 1,
            (None, '>') if angles > 0 => angles -= 1,
            (None, ',') if depth == 1 && angles == 0 => {
                parts.push(with_plain_name(statement.get(began..at)?.trim()));
                began = at + 1;
            }
            (None, '(') => {
                depth += 1;
                began = if depth == 1 { at + 1 } else { began };
            }
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    parts.push(with_plain_name(statement.get(began..at)?.trim()));
                    behind = statement.get(at + 1..)?;
                    break;
                }
            }
            (None, _) => {}
        }
    }
    Some(format!("CREATE TABLE {name} (\n  {}\n){behind};", parts.join(",\n  ")))
}

/// A column of CREATE TABLE without the quotes that its name does not need.
fn with_plain_name(column: &str) -> String {
    let name = column.strip_prefix('"').and_then(|rest| rest.split_once("\" ")).filter(|(name, _)| !name.contains('"'));
    match name {
        Some((name, rest)) => format!("{} {rest}", quoted_name(name)),
        None => column.to_owned(),
    }
}

/// The names that completion offers.
pub(super) async fn names(backend: &ShellBackend, database: Option<&str>) -> Result<KnownNames, CliError> {
    let sql = format!(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = {} LIMIT {MAX_COLUMNS}",
        text(database.unwrap_or(DEFAULT_DATABASE))
    );
    let mut tables: BTreeMap<String, Vec<(String, Option<String>)>> = BTreeMap::new();
    for row in texts(backend, &sql, database).await? {
        if let [table, column] = &row[..] {
            tables.entry(table.clone()).or_default().push((column.clone(), None));
        }
    }
    for own in temporary_tables(backend, database).await? {
        tables.entry(own).or_default();
    }
    let sql = format!("SELECT schema_name FROM information_schema.schemata LIMIT {MAX_TABLES}");
    let databases = texts(backend, &sql, database).await?.into_iter().flatten().collect();
    Ok(KnownNames { databases, tables, functions: functions(backend, database).await? })
}

/// Runs a statement and returns its rows as texts.
pub(super) async fn texts(
    backend: &ShellBackend,
    sql: &str,
    database: Option<&str>,
) -> Result<Vec<Vec<String>>, CliError> {
    let rows = backend.run(ShellLanguage::Sql, sql, database).await?;
    let batches: Vec<RecordBatch> = rows.batches.try_collect().await?;
    let mut found = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| CliError::failed(error.to_string()))?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.as_string::<i32>());
            found.push(
                values
                    .map(|column| if column.is_null(row) { String::new() } else { column.value(row).to_owned() })
                    .collect(),
            );
        }
    }
    Ok(found)
}

/// A name that is there, as SQL writes it: in quotes unless it means the same without them.
fn quoted_name(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    let starts_well = name.starts_with(|char: char| char.is_ascii_lowercase() || char == '_');
    match starts_well && name.chars().all(is_plain) && !is_reserved_word(name) {
        true => name.to_owned(),
        false => quote_identifier(name),
    }
}

/// A name that was typed, as SQL writes it: as it is where it may have dots, in quotes where it must.
fn identifier(name: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
    let starts_well = name.starts_with(|char: char| char.is_alphabetic() || char == '_');
    if !starts_well || !name.chars().all(is_plain) {
        return quote_identifier(name);
    }
    let parts =
        name.split('.').map(|part| if is_reserved_word(part) { quote_identifier(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join(".")
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_a_line_a_column() {
        let statement = "CREATE TABLE \"default\".\"a(b\" (\"id\" BIGINT NOT NULL, \"Kind, of\" VARCHAR DEFAULT 'a, (b', \
                         \"at\" STRUCT(x BIGINT, y DECIMAL(5,2)), PRIMARY KEY (\"id\", \"at\")) SORTED BY (\"id\")";
        let expected = "CREATE TABLE \"a(b\" (\n  id BIGINT NOT NULL,\n  \"Kind, of\" VARCHAR DEFAULT 'a, (b',\n  \
                        at STRUCT(x BIGINT, y DECIMAL(5,2)),\n  PRIMARY KEY (\"id\", \"at\")\n) SORTED BY (\"id\");";
        assert_eq!(in_lines(statement, "\"a(b\"").as_deref(), Some(expected));
        assert_eq!(in_lines("CREATE EXTERNAL TABLE \"d\".\"t\" STORED AS CSV LOCATION '/a'", "t"), None);
    }
}

//! Where a text stands that no row of its column has: in a column of the table that the column refers to
//! (`country_code = 'France'`), or in another column of its own table (`city = 'France'`).

use std::sync::atomic::AtomicBool;

use querent_catalog::{TableInfo, TableName};
use querent_engine::Session;
use sqlparser::ast::Expr;

use super::{ColumnKey, read_in_time, text};
use crate::repair::joins::{expression, same, sure};
use crate::repair::{KnownTables, TablesAtHand};
use crate::sql_text::{quote_identifier, quoted_table};

/// Columns of a table in which a text is looked for.
const MAX_COLUMNS: usize = 10;
/// What a column is called that says what a row is.
const NAME: &str = "name";
/// The shortest text that is looked for in another column of its table: shorter ones are codes and flags.
const SHORTEST_MOVED: usize = 3;

/// The column that has a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPlace {
    /// The table that the compared column refers to, and its column there; absent where the text is in its own table.
    referred: Option<(TableName, String)>,
    column: String,
    /// As it is spelled there.
    value: String,
}

impl TextPlace {
    /// Returns what stands for the comparison of a column with the text.
    pub(super) fn comparison(&self, compared: &Expr) -> Option<Expr> {
        let (column, value) = (quote_identifier(&self.column), text(&self.value));
        let written = match &self.referred {
            Some((table, key)) => {
                let (key, table) = (quote_identifier(key), quoted_table(table));
                format!("{compared} IN (SELECT {key} FROM {table} WHERE {column} = {value})")
            }
            None => match compared {
                Expr::CompoundIdentifier(parts) => {
                    let qualifier = parts.get(..parts.len().checked_sub(1)?)?;
                    let qualifier: Vec<String> = qualifier.iter().map(ToString::to_string).collect();
                    format!("{}.{column} = {value}", qualifier.join("."))
                }
                _ => format!("{column} = {value}"),
            },
        };
        expression(&written)
    }

    /// Returns what stands for the comparison of a column with a list of texts, where one column of one other table has
    /// them all.
    pub(super) fn list_comparison(places: &[&TextPlace], compared: &Expr, is_negated: bool) -> Option<Expr> {
        let first = places.first()?;
        let (table, key) = first.referred.as_ref()?;
        let is_same = |place: &&TextPlace| place.referred == first.referred && place.column == first.column;
        if !places.iter().all(is_same) {
            return None;
        }
        let (key, table, column) = (quote_identifier(key), quoted_table(table), quote_identifier(&first.column));
        let values: Vec<String> = places.iter().map(|place| text(&place.value).to_string()).collect();
        let not = if is_negated { "NOT " } else { "" };
        let values = values.join(", ");
        expression(&format!("{compared} {not}IN (SELECT {key} FROM {table} WHERE {column} IN ({values}))"))
    }

    /// Says why, of the column that was compared.
    pub(super) fn why(&self, (table, compared): &ColumnKey) -> String {
        match &self.referred {
            Some((referred, _)) => {
                format!(
                    "no row of `{table}.{compared}` has it; `{}` of `{referred}`, which it refers to, has it",
                    self.column
                )
            }
            None => format!("no row of `{table}.{compared}` has it; `{}` has it", self.column),
        }
    }
}

/// Looks for a text that no row of its column has. `None` where it is in no other column, or in several. `is_cut` says where
/// a column took too long to be looked at.
pub(super) async fn place_of(
    session: &Session,
    at_hand: &TablesAtHand,
    known: &KnownTables,
    compared: &ColumnKey,
    literal: &str,
    is_cut: &AtomicBool,
) -> Option<TextPlace> {
    let mut only = None;
    // What a column refers to comes before what refers to it.
    for related in references(at_hand, compared) {
        for (table, key) in related {
            if let Some(info) = known.get(&table)
                && let Some((column, value)) = only_column(session, info, &key, literal, is_cut).await
            {
                if only.is_some() {
                    return None;
                }
                only = Some(TextPlace { referred: Some((table, key)), column, value });
            }
        }
        if only.is_some() {
            break;
        }
    }
    if only.is_some() || literal.chars().count() < SHORTEST_MOVED {
        return only;
    }
    let info = known.get(&compared.0)?;
    let (column, value) = only_column(session, info, &compared.1, literal, is_cut).await?;
    let is_apart = !share_values(session, info, &compared.1, &column, is_cut).await?;
    is_apart.then_some(TextPlace { referred: None, column, value })
}

/// Whether two columns of a table have a value in common: flags, or the two ends of a route. Which of them is asked about
/// is then not for a text to tell. `None` where it takes too long to know.
async fn share_values(
    session: &Session,
    info: &TableInfo,
    left: &str,
    right: &str,
    is_cut: &AtomicBool,
) -> Option<bool> {
    let (left, right, table) = (quote_identifier(left), quote_identifier(right), quoted_table(&info.name));
    let sql = format!("SELECT {left} FROM {table} WHERE {left} IN (SELECT {right} FROM {table}) LIMIT 1");
    Some(!read_in_time(session, &sql, is_cut).await?.is_empty())
}

/// Returns the tables that a column alone refers to, and those that refer to it, with their columns.
fn references(at_hand: &TablesAtHand, (table, column): &ColumnKey) -> [Vec<(TableName, String)>; 2] {
    let is_column = |names: &[String]| matches!(names, [only] if only.eq_ignore_ascii_case(column));
    let (mut referred, mut referring) = (Vec::new(), Vec::new());
    for one in at_hand.relationships.iter().filter(sure) {
        if same(&one.from, table) && is_column(&one.from_columns) {
            referred.extend(one.to_columns.first().map(|key| (one.to.clone(), key.clone())));
        } else if same(&one.to, table) && is_column(&one.to_columns) {
            referring.extend(one.from_columns.first().map(|key| (one.from.clone(), key.clone())));
        }
    }
    [referred, referring]
}

/// Returns the one column of texts, but for one, that has a text, whatever its case, and the text as it is there; of several the
/// one that is called `name`.
async fn only_column(
    session: &Session,
    info: &TableInfo,
    but: &str,
    literal: &str,
    is_cut: &AtomicBool,
) -> Option<(String, String)> {
    let is_other = |name: &str| !name.eq_ignore_ascii_case(but);
    let others: Vec<_> =
        info.columns.iter().filter(|column| column.data_type.is_string() && is_other(&column.name)).collect();
    if others.len() > MAX_COLUMNS {
        return None;
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for column in others {
        let quoted = quote_identifier(&column.name);
        let sql = format!(
            "SELECT DISTINCT {quoted} FROM {} WHERE lower({quoted}) = lower({}) LIMIT 2",
            quoted_table(&info.name),
            text(literal)
        );
        let read = read_in_time(session, &sql, is_cut).await?;
        match read.as_slice() {
            [] => {}
            [value] => found.push((column.name.clone(), value.clone())),
            _ => return None,
        }
    }
    match found.len() {
        0 | 1 => found.pop(),
        _ => found.into_iter().find(|(column, _)| column.eq_ignore_ascii_case(NAME)),
    }
}

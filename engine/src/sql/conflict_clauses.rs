//! `INSERT ... ON CONFLICT`, `INSERT OR REPLACE` and their kin are refused, since keys are recorded and not enforced: no row
//! conflicts with another. The error has the MERGE that does the same with the statement's table.

use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    ConflictTarget, DoUpdate, Insert, ObjectNamePart, OnConflictAction, OnInsert, SqliteOnConflict,
    Statement as SqlStatement, TableObject,
};

use super::foreign_keys::primary_key;
use super::marks;
use super::statement::StatementPlanner;
use crate::error::{EngineError, Result};
use crate::identifiers::{quote_identifier, same_name};

/// The longest text of rows that is shown.
const MAX_ROWS_BYTES: usize = 200;

impl StatementPlanner<'_> {
    /// Errors: `unsupported` for an INSERT with such a clause.
    pub(super) async fn refuse_conflict_clause(&self, statement: &Statement) -> Result<()> {
        let Statement::Statement(statement) = statement else { return Ok(()) };
        let SqlStatement::Insert(insert) = statement.as_ref() else { return Ok(()) };
        let is_plain = insert.or.is_none() && !insert.ignore && insert.on.is_none() && !insert.replace_into;
        let TableObject::TableName(name) = &insert.table else { return Ok(()) };
        if is_plain {
            return Ok(());
        }
        // A table that there is not is another error, when the statement is planned.
        let Some(columns) = self.insert_columns(name).await? else { return Ok(()) };
        let columns: Vec<String> = columns.into_iter().map(|column| column.name).collect();
        let keys = match conflict_columns(insert) {
            Some(keys) => keys,
            None => {
                let reference = object_name_to_table_reference(name.clone(), false)?;
                let primary = match self.temporary_columns(&reference) {
                    Some(_) => None,
                    None => primary_key(self.catalog, self.who, &self.full_name(&reference)?).await?,
                };
                primary.unwrap_or_else(|| columns.iter().take(1).cloned().collect())
            }
        };
        Err(EngineError::Unsupported {
            what: "INSERT with a conflict clause".into(),
            hint: format!(
                "keys are recorded and not enforced, so that no row conflicts; say by which columns rows match: {}",
                merge_of(insert, &name.to_string(), &columns, &keys)
            ),
        })
    }
}

/// Returns the columns that a clause names.
fn conflict_columns(insert: &Insert) -> Option<Vec<String>> {
    match &insert.on {
        Some(OnInsert::OnConflict(conflict)) => match &conflict.conflict_target {
            Some(ConflictTarget::Columns(columns)) => Some(columns.iter().map(|column| column.value.clone()).collect()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the MERGE that does what an INSERT with a conflict clause would do.
fn merge_of(insert: &Insert, table: &str, columns: &[String], keys: &[String]) -> String {
    let named = insert.columns.iter().filter_map(|name| name.0.last().and_then(ObjectNamePart::as_ident));
    let named: Vec<String> = named.map(|ident| ident.value.clone()).filter(|name| name != marks::BY_NAME).collect();
    let inserted = if named.is_empty() { columns } else { named.as_slice() };
    let list = |of: &dyn Fn(&String) -> String| inserted.iter().map(of).collect::<Vec<_>>().join(", ");
    let rows = match &insert.source {
        Some(source) if source.to_string().len() <= MAX_ROWS_BYTES => source.to_string(),
        _ => "VALUES ...".to_owned(),
    };
    let names = list(&|name| written(name));
    let own_name = table.rsplit('.').next().unwrap_or(table);
    let matches = keys.iter().map(|key| {
        let key = written(key);
        format!("{own_name}.{key} = excluded.{key}")
    });
    let matches = matches.collect::<Vec<_>>().join(" AND ");
    let update = match update_of(insert, inserted, keys) {
        Some(update) => format!(" WHEN MATCHED {update}"),
        None => String::new(),
    };
    format!(
        "MERGE INTO {table} USING ({rows}) AS excluded({names}) ON {matches}{update} WHEN NOT MATCHED THEN INSERT \
         ({names}) \
         VALUES ({})",
        list(&|name| format!("excluded.{}", written(name))),
    )
}

/// Returns what happens to a row that is there; `None` where it stays.
fn update_of(insert: &Insert, inserted: &[String], keys: &[String]) -> Option<String> {
    match (&insert.on, &insert.or) {
        (Some(OnInsert::OnConflict(conflict)), _) => match &conflict.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                let condition = selection.as_ref().map(|condition| format!("AND {condition} ")).unwrap_or_default();
                let assignments = assignments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Some(format!("{condition}THEN UPDATE SET {assignments}"))
            }
        },
        (None, Some(SqliteOnConflict::Ignore)) => None,
        _ if insert.ignore => None,
        _ => {
            let others = inserted.iter().filter(|name| !keys.iter().any(|key| same_name(key, name)));
            let sets = others.map(|name| format!("{0} = excluded.{0}", written(name))).collect::<Vec<_>>();
            (!sets.is_empty()).then(|| format!("THEN UPDATE SET {}", sets.join(", ")))
        }
    }
}

/// Returns a column's name as it is written: in quotes where it would be read as another.
fn written(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_plain { name.to_owned() } else { quote_identifier(name) }
}

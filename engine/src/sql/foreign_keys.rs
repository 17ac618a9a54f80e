//! `FOREIGN KEY ... REFERENCES` and a column's `REFERENCES` in `CREATE TABLE`: removed from the statement, checked
//! against the tables they name, and recorded with the table as relationships. They are not enforced, so what only
//! enforcement could honour (`ON DELETE`, `DEFERRABLE`, `MATCH`) is refused rather than ignored.

use arrow::datatypes::Schema;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ColumnOption, CreateTable, ForeignKeyConstraint, Ident, TableConstraint};
use querent_catalog::{Catalog, CatalogError, ForeignKey, Principal, TableName};

use super::resolved_names::full_name;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// Removes the foreign keys from a statement and returns them. Errors: `unsupported` for what only enforcement could honour.
pub(super) fn take_foreign_keys(table: &mut CreateTable) -> Result<Vec<ForeignKeyConstraint>> {
    let mut taken = Vec::new();
    for column in &mut table.columns {
        let name = column.name.clone();
        let (keys, others): (Vec<_>, Vec<_>) = std::mem::take(&mut column.options)
            .into_iter()
            .partition(|option| matches!(option.option, ColumnOption::ForeignKey(_)));
        column.options = others;
        for key in keys {
            if let ColumnOption::ForeignKey(mut key) = key.option {
                key.columns = vec![name.clone()];
                taken.push(key);
            }
        }
    }
    let (keys, others): (Vec<_>, Vec<_>) = std::mem::take(&mut table.constraints)
        .into_iter()
        .partition(|constraint| matches!(constraint, TableConstraint::ForeignKey(_)));
    table.constraints = others;
    taken.extend(keys.into_iter().filter_map(|constraint| match constraint {
        TableConstraint::ForeignKey(key) => Some(key),
        _ => None,
    }));
    for key in &taken {
        let asks_more = key.on_delete.is_some()
            || key.on_update.is_some()
            || key.match_kind.is_some()
            || key.characteristics.is_some();
        if asks_more {
            return Err(EngineError::Unsupported {
                what: format!("`{key}`"),
                hint: "write REFERENCES table (columns) alone; it is recorded and not enforced".into(),
            });
        }
    }
    Ok(taken)
}

/// Returns the keys with their tables and columns as the catalog spells them. Tables are looked up as `who` in `database`.
pub(super) async fn resolve_foreign_keys(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    own: &TableName,
    schema: &Schema,
    written: Vec<ForeignKeyConstraint>,
) -> Result<Vec<ForeignKey>> {
    let mut keys = Vec::with_capacity(written.len());
    for key in written {
        let reference = object_name_to_table_reference(key.foreign_table.clone(), false)?;
        let name = full_name(&reference, database)?;
        let own_columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let is_own = same_name(&name.database, &own.database) && same_name(&name.table, &own.table);
        let (table, referred_columns): (TableName, Vec<String>) = if is_own {
            (own.clone(), own_columns.iter().map(|column| (*column).to_owned()).collect())
        } else {
            match catalog.tables().resolve(who, std::slice::from_ref(&name)).await?.pop().flatten() {
                Some(found) => (found.info.name, found.info.columns.into_iter().map(|column| column.name).collect()),
                None => return Err(catalog.tables().not_found(who, &name).await.into()),
            }
        };
        let columns = spelled(&key.columns, &own_columns, &own.table)?;
        let referred_columns: Vec<&str> = referred_columns.iter().map(String::as_str).collect();
        let referred = match key.referred_columns.is_empty() {
            true => implied(&columns, &referred_columns, &table)?,
            false => spelled(&key.referred_columns, &referred_columns, &table.table)?,
        };
        if columns.len() != referred.len() {
            return Err(EngineError::Plan {
                message: format!("`{key}` names {} columns for {}", referred.len(), columns.len()),
            });
        }
        keys.push(ForeignKey { columns, table, referred });
    }
    Ok(keys)
}

/// Returns the columns as their table spells them.
fn spelled(written: &[Ident], columns: &[&str], table: &str) -> Result<Vec<String>> {
    let mut found = Vec::with_capacity(written.len());
    for name in written {
        match columns.iter().find(|column| same_name(column, &name.value)) {
            Some(column) => found.push((*column).to_owned()),
            None => {
                let nearest = querent_kql::nearest_name(&name.value, columns.iter().copied()).map(str::to_owned);
                let (table, column) = (table.to_owned(), name.value.clone());
                return Err(CatalogError::ColumnNotFound { table, column, nearest }.into());
            }
        }
    }
    Ok(found)
}

/// Returns the columns that are meant where none is named; tables have no primary key that would say it.
fn implied(columns: &[String], referred: &[&str], table: &TableName) -> Result<Vec<String>> {
    let same =
        |column: &String| referred.iter().find(|other| same_name(other, column)).map(|other| (*other).to_owned());
    if let Some(all) = columns.iter().map(same).collect::<Option<Vec<_>>>() {
        return Ok(all);
    }
    match (columns, referred.iter().find(|other| same_name(other, "id"))) {
        ([_], Some(id)) => Ok(vec![(*id).to_owned()]),
        _ => Err(EngineError::Plan { message: format!("say which columns: REFERENCES {} (columns)", table.table) }),
    }
}

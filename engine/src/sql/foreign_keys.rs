//! `FOREIGN KEY ... REFERENCES` and a column's `REFERENCES` in `CREATE TABLE`: removed from the statement, checked
//! against the tables they name, and recorded with the table as relationships. They are not enforced, so what only
//! enforcement could honour (`ON DELETE CASCADE`, `DEFERRABLE`, `MATCH FULL`) is refused rather than ignored.

use arrow::datatypes::Schema;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    ColumnOption, ConstraintReferenceMatchKind, CreateTable, ForeignKeyConstraint, ReferentialAction, TableConstraint,
};
use querent_catalog::{
    Catalog, ForeignKey, KeyFilter, KeyKind, PageRequest, Principal, TableFilter, TableName, UniqueKey,
};

use super::resolved_names::full_name;
use super::syntax::{folded_name, spelled_columns};
use super::unique_keys::check_characteristics;
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
            if let ColumnOption::ForeignKey(written) = key.option {
                let constraint = key.name.or(written.name);
                taken.push(ForeignKeyConstraint { name: constraint, columns: vec![name.clone()], ..written });
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
    taken.iter().try_for_each(check_foreign_key)?;
    Ok(taken)
}

/// Errors: `unsupported` for what only enforcement could honour.
pub(super) fn check_foreign_key(key: &ForeignKeyConstraint) -> Result<()> {
    let acts = |action: &Option<ReferentialAction>| !matches!(action, None | Some(ReferentialAction::NoAction));
    let asks_more = acts(&key.on_delete)
        || acts(&key.on_update)
        || !matches!(key.match_kind, None | Some(ConstraintReferenceMatchKind::Simple))
        || key.index_name.is_some();
    if asks_more {
        return Err(EngineError::Unsupported {
            what: format!("`{key}`"),
            hint: "write REFERENCES table (columns) alone; it is recorded and not enforced".into(),
        });
    }
    check_characteristics(key, key.characteristics.as_ref())
}

/// The table that a statement creates, or adds a key to.
pub(super) struct NewTableKeys<'a> {
    pub(super) name: &'a TableName,
    pub(super) schema: &'a Schema,
    /// Its primary key and unique constraints; `None`: those that the catalog has.
    pub(super) keys: Option<&'a [UniqueKey]>,
}

/// Returns the keys with their tables and columns as the catalog spells them. Tables are looked up as `who` in `database`.
pub(super) async fn resolve_foreign_keys(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    own: NewTableKeys<'_>,
    written: Vec<ForeignKeyConstraint>,
) -> Result<Vec<ForeignKey>> {
    let mut keys = Vec::with_capacity(written.len());
    for key in written {
        keys.push(resolve_foreign_key(catalog, who, database, &own, key).await?);
    }
    Ok(keys)
}

/// The same of one key.
pub(super) async fn resolve_foreign_key(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    own: &NewTableKeys<'_>,
    key: ForeignKeyConstraint,
) -> Result<ForeignKey> {
    let reference = object_name_to_table_reference(key.foreign_table.clone(), false)?;
    let name = full_name(&reference, database)?;
    let own_columns: Vec<&str> = own.schema.fields().iter().map(|field| field.name().as_str()).collect();
    let is_own = same_name(&name.database, &own.name.database) && same_name(&name.table, &own.name.table);
    let (table, referred_columns): (TableName, Vec<String>) = if is_own {
        (own.name.clone(), own_columns.iter().map(|column| (*column).to_owned()).collect())
    } else {
        match catalog.tables().resolve(who, std::slice::from_ref(&name)).await?.pop().flatten() {
            Some(found) => (found.info.name, found.info.columns.into_iter().map(|column| column.name).collect()),
            None => return Err(catalog.tables().not_found(who, &name).await.into()),
        }
    };
    let columns = spelled_columns(&key.columns, &own_columns, &own.name.table)?;
    let referred_columns: Vec<&str> = referred_columns.iter().map(String::as_str).collect();
    let referred = match key.referred_columns.is_empty() {
        true => {
            let primary = match own.keys.filter(|_| is_own) {
                Some(keys) => keys.iter().find(|key| key.is_primary).map(|key| key.columns.clone()),
                None => primary_key(catalog, who, &table).await?,
            };
            match primary {
                Some(primary) => primary,
                None => implied(&columns, &referred_columns, &table)?,
            }
        }
        false => spelled_columns(&key.referred_columns, &referred_columns, &table.table)?,
    };
    if columns.len() != referred.len() {
        return Err(EngineError::Plan {
            message: format!("`{key}` names {} columns for {}", referred.len(), columns.len()),
        });
    }
    let name = key.name.as_ref().map(folded_name);
    Ok(ForeignKey { name, columns, table, referred })
}

/// Returns the columns of a table's primary key.
pub(super) async fn primary_key(catalog: &Catalog, who: &Principal, table: &TableName) -> Result<Option<Vec<String>>> {
    let only = TableFilter {
        database: Some(table.database.clone()),
        name: Some(table.table.clone()),
        ..TableFilter::default()
    };
    let filter = KeyFilter { table: only, kinds: vec![KeyKind::Primary], ..KeyFilter::default() };
    let page = catalog.keys().list(who, &filter, PageRequest::first(1)).await?;
    Ok(page.items.into_iter().next().map(|key| key.columns))
}

/// Returns the columns that are meant where none is named and the table has no primary key that says it.
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

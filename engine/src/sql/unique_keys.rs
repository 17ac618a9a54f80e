//! `PRIMARY KEY` and `UNIQUE` in `CREATE TABLE`: removed from the statement and recorded with the table. They are not
//! enforced, so what only enforcement or an index could honour (`ENFORCED`, `DEFERRABLE`, `USING`) is refused rather than
//! ignored; `NOT ENFORCED` says what is so.

use std::fmt;

use arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{
    ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateTable, DeferrableInitial, Expr, Ident, IndexColumn,
    KeyOrIndexDisplay, NullsDistinctOption, PrimaryKeyConstraint, TableConstraint, UniqueConstraint,
};
use querent_catalog::UniqueKey;

use super::syntax::{folded_name, spelled_columns};
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// A primary key or unique constraint as written.
pub(super) struct WrittenKey {
    name: Option<Ident>,
    is_primary: bool,
    columns: Vec<Ident>,
}

/// Removes primary keys and unique constraints from a statement and returns them. Errors: `unsupported` for what only
/// enforcement or an index could honour, `sql_plan_error` for a second primary key and for one that may hold nulls.
pub(super) fn take_unique_keys(table: &mut CreateTable) -> Result<Vec<WrittenKey>> {
    let mut taken = Vec::new();
    for column in &mut table.columns {
        for ColumnOptionDef { name, option } in std::mem::take(&mut column.options) {
            match option {
                ColumnOption::PrimaryKey(key) => {
                    let written = primary(PrimaryKeyConstraint { columns: vec![column.name.clone().into()], ..key })?;
                    taken.push(WrittenKey { name: name.or(written.name), ..written });
                }
                ColumnOption::Unique(key) => {
                    let written = unique(UniqueConstraint { columns: vec![column.name.clone().into()], ..key })?;
                    taken.push(WrittenKey { name: name.or(written.name), ..written });
                }
                option => column.options.push(ColumnOptionDef { name, option }),
            }
        }
    }
    for constraint in std::mem::take(&mut table.constraints) {
        match written_key(&constraint)? {
            Some(key) => taken.push(key),
            None => table.constraints.push(constraint),
        }
    }
    if taken.iter().filter(|key| key.is_primary).count() > 1 {
        return Err(EngineError::Plan { message: "the table has two primary keys; a table has one".into() });
    }
    for column in taken.iter().filter(|key| key.is_primary).flat_map(|key| &key.columns) {
        let is_nullable = |written: &&datafusion::sql::sqlparser::ast::ColumnDef| {
            same_name(&written.name.value, &column.value)
                && written.options.iter().any(|option| matches!(option.option, ColumnOption::Null))
        };
        if let Some(written) = table.columns.iter().find(is_nullable) {
            let message = format!("column `{}` is NULL, and a primary key holds no nulls", written.name.value);
            return Err(EngineError::Plan { message });
        }
    }
    Ok(taken)
}

/// Returns a constraint of a table as one of these keys; `None` where it is another. Errors: `unsupported`.
pub(super) fn written_key(constraint: &TableConstraint) -> Result<Option<WrittenKey>> {
    match constraint {
        TableConstraint::PrimaryKey(key) => primary(key.clone()).map(Some),
        TableConstraint::Unique(key) => unique(key.clone()).map(Some),
        _ => Ok(None),
    }
}

fn primary(key: PrimaryKeyConstraint) -> Result<WrittenKey> {
    if key.index_name.is_some() || key.index_type.is_some() || !key.index_options.is_empty() {
        return Err(no_index(&key));
    }
    check_characteristics(&key, key.characteristics.as_ref())?;
    let columns = plain_columns(&key.columns)?;
    Ok(WrittenKey { name: key.name, is_primary: true, columns })
}

fn unique(key: UniqueConstraint) -> Result<WrittenKey> {
    let has_index = key.index_name.is_some() || key.index_type.is_some() || !key.index_options.is_empty();
    if has_index || key.index_type_display == KeyOrIndexDisplay::Index {
        return Err(no_index(&key));
    }
    if key.nulls_distinct == NullsDistinctOption::NotDistinct {
        return Err(EngineError::Unsupported {
            what: format!("`{key}`"),
            hint: "leave out NULLS NOT DISTINCT; the constraint is recorded and not enforced".into(),
        });
    }
    check_characteristics(&key, key.characteristics.as_ref())?;
    let columns = plain_columns(&key.columns)?;
    Ok(WrittenKey { name: key.name, is_primary: false, columns })
}

fn no_index(key: &impl fmt::Display) -> EngineError {
    EngineError::Unsupported {
        what: format!("an index in `{key}`"),
        hint: "write PRIMARY KEY (columns) or UNIQUE (columns); tables have no indexes".into(),
    }
}

/// Refuses what only an enforced constraint could be. Errors: `unsupported`.
pub(super) fn check_characteristics(
    constraint: &impl fmt::Display,
    characteristics: Option<&ConstraintCharacteristics>,
) -> Result<()> {
    let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = characteristics else { return Ok(()) };
    let what = if *enforced == Some(true) {
        "ENFORCED"
    } else if *deferrable == Some(true) || *initially == Some(DeferrableInitial::Deferred) {
        "DEFERRABLE"
    } else {
        return Ok(());
    };
    Err(EngineError::Unsupported {
        what: format!("{what} in `{constraint}`"),
        hint: "leave it out or write NOT ENFORCED; keys are recorded and not enforced".into(),
    })
}

fn plain_columns(columns: &[IndexColumn]) -> Result<Vec<Ident>> {
    let plain = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(ident)
            if column.operator_class.is_none()
                && column.column.with_fill.is_none()
                && column.column.options.asc.is_none()
                && column.column.options.nulls_first.is_none() =>
        {
            Ok(ident.clone())
        }
        _ => Err(EngineError::Unsupported {
            what: format!("`{column}` in a key"),
            hint: "a key is a list of columns, without expressions and directions".into(),
        }),
    };
    columns.iter().map(plain).collect()
}

/// Returns the keys with their columns as the table spells them. Errors: `column_not_found`, `sql_plan_error`.
pub(super) fn resolve_unique_keys(written: Vec<WrittenKey>, table: &str, schema: &Schema) -> Result<Vec<UniqueKey>> {
    written.into_iter().map(|key| resolve_unique_key(key, table, schema)).collect()
}

/// The same of one key.
pub(super) fn resolve_unique_key(key: WrittenKey, table: &str, schema: &Schema) -> Result<UniqueKey> {
    let own: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns = spelled_columns(&key.columns, &own, table)?;
    if let Some(twice) = columns.iter().enumerate().find(|(index, column)| columns[..*index].contains(column)) {
        return Err(EngineError::Plan { message: format!("column `{}` stands twice in a key", twice.1) });
    }
    let name = key.name.as_ref().map(folded_name);
    Ok(UniqueKey { name, is_primary: key.is_primary, columns })
}

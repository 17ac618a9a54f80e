//! ALTER TABLE of managed tables: one change a statement.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, ColumnDef, Ident, ObjectName, RenameTableNameKind,
};
use querent_catalog::TableAlteration;

use super::row_statements::require_whole_managed;
use super::statement::StatementPlanner;
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};

const OPERATIONS: &str =
    "there are ADD COLUMN name type, DROP COLUMN name, RENAME COLUMN name TO name and RENAME TO name";

impl StatementPlanner<'_> {
    /// Plans ALTER TABLE.
    pub(super) async fn alter_table(&self, alter: AlterTable) -> Result<LogicalPlan> {
        let AlterTable { name, if_exists, only: _, operations, location, on_cluster, table_type, end_token: _ } = alter;
        let Ok([operation]) = <[AlterTableOperation; 1]>::try_from(operations) else {
            return Err(unsupported("ALTER TABLE with several changes", "make them one by one"));
        };
        if location.is_some() || on_cluster.is_some() || table_type.is_some() {
            return Err(unsupported("this form of ALTER TABLE", OPERATIONS));
        }
        let reference = object_name_to_table_reference(name, false)?;
        if self.temporary_name(&reference).is_some() {
            return Err(unsupported(
                "ALTER TABLE of a temporary table",
                "write CREATE OR REPLACE TEMPORARY TABLE t AS SELECT ... FROM t",
            ));
        }
        let alteration = self.alteration(operation).await?;
        let full = self.full_name(&reference)?;
        let tables = self.catalog.tables();
        let found = tables.resolve(self.who, std::slice::from_ref(&full)).await?.pop().flatten();
        match found {
            Some(found) => {
                require_whole_managed("ALTER TABLE", &found)?;
                Ok(WriteStatement::AlterTable { name: found.info.name, alteration }.into_plan())
            }
            None if if_exists => Ok(nothing()),
            None => Err(tables.not_found(self.who, &full).await.into()),
        }
    }

    async fn alteration(&self, operation: AlterTableOperation) -> Result<TableAlteration> {
        Ok(match operation {
            AlterTableOperation::AddColumn { column_keyword: _, if_not_exists, column_def, column_position } => {
                if column_position.is_some() {
                    return Err(unsupported("FIRST and AFTER of a new column", "a new column is the last one"));
                }
                let field = self.new_column(&column_def).await?;
                TableAlteration::AddColumn { field, if_missing: if_not_exists }
            }
            AlterTableOperation::DropColumn { has_column_keyword: _, column_names, if_exists, drop_behavior: _ } => {
                let Ok([column]) = <[Ident; 1]>::try_from(column_names) else {
                    return Err(unsupported("dropping several columns at once", "drop them one by one"));
                };
                TableAlteration::DropColumn { column: column.value, if_exists }
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                TableAlteration::RenameColumn { column: old_column_name.value, to: new_column_name.value }
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => TableAlteration::RenameTable { to: bare_name(&name)? },
            other => return Err(unsupported(&format!("ALTER TABLE ... {other}"), OPERATIONS)),
        })
    }

    /// Returns a column as CREATE TABLE would make it.
    async fn new_column(&self, column: &ColumnDef) -> Result<Field> {
        let plan = self.query(&format!("CREATE TABLE altered ({column})")).await?;
        match WriteStatement::from_plan(&plan) {
            Some(WriteStatement::CreateTable { not_null, keys, foreign_keys, input, .. })
                if not_null.is_empty() && keys.is_empty() && foreign_keys.is_empty() =>
            {
                Ok(Field::clone(input.schema().field(0)).with_nullable(true))
            }
            _ => Err(unsupported(
                "NOT NULL and keys of a new column",
                "rows that are there are null in it; leave it out",
            )),
        }
    }
}

/// The plan of a statement that has nothing to do.
fn nothing() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

fn bare_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(|ident| ident.value.clone()).ok_or_else(|| other_database(name)),
        _ => Err(other_database(name)),
    }
}

fn other_database(name: &ObjectName) -> EngineError {
    unsupported(&format!("RENAME TO `{name}`"), "a table stays in its database; write its new name alone")
}

fn unsupported(what: &str, hint: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() }
}

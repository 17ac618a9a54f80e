//! ALTER TABLE of managed tables, and new names of views. Several changes in a statement are one change of the catalog; they are
//! planned with the names and types from before the statement.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DataType, Ident, ObjectName, RenameTableNameKind,
    TableConstraint,
};
use querent_catalog::{
    ColumnDefault, ColumnInfo, ResolvedTable, TableAlteration, TableInfo, TableKind, TableName, TableSource,
    is_wider_type,
};

use super::column_defaults::{check_value, spelled_default, stored_default, uuid_default};
use super::foreign_keys::{NewTableKeys, check_foreign_key, resolve_foreign_key};
use super::json_columns::is_json_type;
use super::row_statements::require_managed;
use super::sort_orders::{order_text, sort_keys};
use super::sql_types::{is_uuid_type, refused_constraint};
use super::statement::StatementPlanner;
use super::syntax::spelled_columns;
use super::unique_keys::{resolve_unique_key, written_key};
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::type_names::sql_name;

const OPERATIONS: &str = "there are ADD COLUMN name type [DEFAULT value], DROP COLUMN name, RENAME COLUMN name TO name, \
    RENAME TO name, SET SORTED BY (columns), RESET SORTED BY, ADD [CONSTRAINT name] PRIMARY KEY / UNIQUE / FOREIGN KEY, and ALTER COLUMN name with TYPE type, SET DEFAULT, DROP DEFAULT, SET NOT NULL and DROP NOT NULL";

impl StatementPlanner<'_> {
    /// Plans ALTER TABLE.
    pub(super) async fn alter_table(&self, alter: AlterTable) -> Result<LogicalPlan> {
        let AlterTable { name, if_exists, only: _, operations, location, on_cluster, table_type, end_token: _ } = alter;
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
        let full = self.full_name(&reference)?;
        let tables = self.catalog.tables();
        let found = tables.resolve(self.who, std::slice::from_ref(&full)).await?.pop().flatten();
        match found {
            Some(found) => {
                let is_rename = matches!(operations.as_slice(), [AlterTableOperation::RenameTable { .. }]);
                if found.info.kind != TableKind::View || !is_rename {
                    require_managed("ALTER TABLE", &found)?;
                }
                if operations.len() > 1
                    && let Some(rename) = operations.iter().find(|operation| renames(operation))
                {
                    return Err(unsupported(
                        &format!("ALTER TABLE with other changes beside {rename}"),
                        "a new name is given by a statement of its own",
                    ));
                }
                let mut alterations: Vec<TableAlteration> = Vec::with_capacity(operations.len());
                for operation in operations {
                    let next = self.alterations(operation, &found, &alterations).await?;
                    alterations.extend(next);
                }
                let filled: Vec<&str> = alterations.iter().filter_map(TableAlteration::filled_column).collect();
                let nulls = match filled.is_empty() {
                    false => Some(self.nulls(&found.info.name, &filled).await?),
                    true => None,
                };
                Ok(WriteStatement::AlterTable { name: found.info.name, alterations, nulls }.into_plan())
            }
            None if if_exists => Ok(nothing()),
            None => Err(tables.not_found(self.who, &full).await.into()),
        }
    }

    /// Returns the rows of a table in which one of some columns is null.
    async fn nulls(&self, table: &TableName, columns: &[&str]) -> Result<Arc<LogicalPlan>> {
        let (database, name) = (quote_identifier(&table.database), quote_identifier(&table.table));
        let is_null = columns.iter().map(|column| format!("{} IS NULL", quote_identifier(column)));
        let is_null = is_null.collect::<Vec<_>>().join(" OR ");
        let sql = format!("SELECT 1 FROM {database}.{name} WHERE {is_null} LIMIT 1");
        Ok(Arc::new(Box::pin(self.query(&sql)).await?))
    }

    /// Returns what an operation changes behind `earlier` ones of its statement.
    async fn alterations(
        &self,
        operation: AlterTableOperation,
        table: &ResolvedTable,
        earlier: &[TableAlteration],
    ) -> Result<Vec<TableAlteration>> {
        let alteration = match operation {
            AlterTableOperation::AddColumn { column_keyword: _, if_not_exists, column_def, column_position } => {
                if column_position.is_some() {
                    return Err(unsupported("FIRST and AFTER of a new column", "a new column is the last one"));
                }
                let (is_json, is_uuid) = (is_json_type(&column_def.data_type), is_uuid_type(&column_def.data_type));
                let (field, default) = self.new_column(&column_def).await?;
                let default = match default {
                    Some(text) if is_uuid => Some(uuid_default(&text, field.name())?),
                    default => default,
                };
                TableAlteration::AddColumn { field, is_json, is_uuid, default, if_missing: if_not_exists }
            }
            AlterTableOperation::DropColumn { has_column_keyword: _, column_names, if_exists, drop_behavior: _ } => {
                let names = column_names.into_iter();
                return Ok(names.map(|name| TableAlteration::DropColumn { column: name.value, if_exists }).collect());
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                TableAlteration::RenameColumn { column: old_column_name.value, to: new_column_name.value }
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let known: Vec<&str> = table.info.columns.iter().map(|column| column.name.as_str()).collect();
                let spelled = spelled_columns(std::slice::from_ref(&column_name), &known, &table.info.name.table)?;
                let found = table.info.columns.iter().find(|column| spelled.contains(&column.name));
                let Some(column) = found else { return Err(unsupported("this form of ALTER COLUMN", OPERATIONS)) };
                self.altered_column(column, op, table).await?
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                self.added_key(constraint, &table.info, earlier).await?
            }
            AlterTableOperation::SetTblProperties { table_properties } if order_text(&table_properties).is_some() => {
                let columns = table.info.columns.iter().map(|column| (column.name.as_str(), &column.data_type));
                let text = order_text(&table_properties).unwrap_or_default();
                let keys = sort_keys(text, &columns.collect::<Vec<_>>(), &table.info.name.table)?;
                TableAlteration::SetSortOrder { keys }
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => TableAlteration::RenameTable { to: bare_name(&name)? },
            other => return Err(unsupported(&format!("ALTER TABLE ... {other}"), OPERATIONS)),
        };
        Ok(vec![alteration])
    }

    /// Returns a key that is recorded with a table, as one of CREATE TABLE is.
    async fn added_key(
        &self,
        constraint: TableConstraint,
        table: &TableInfo,
        earlier: &[TableAlteration],
    ) -> Result<TableAlteration> {
        let schema = table.arrow_schema();
        if let TableConstraint::ForeignKey(key) = constraint {
            check_foreign_key(&key)?;
            let own = NewTableKeys { name: &table.name, schema: &schema, keys: None };
            let key = resolve_foreign_key(self.catalog, self.who, self.database, &own, key).await?;
            return Ok(TableAlteration::AddForeignKey { key });
        }
        let Some(written) = written_key(&constraint)? else { return Err(refused_constraint(&constraint)) };
        let key = resolve_unique_key(written, &table.name.table, &schema)?;
        let is_filled =
            |column: &ColumnInfo| earlier.iter().any(|one| one.filled_column() == Some(column.name.as_str()));
        let is_nullable =
            |column: &&ColumnInfo| column.nullable && key.columns.contains(&column.name) && !is_filled(column);
        if let Some(column) = table.columns.iter().find(is_nullable).filter(|_| key.is_primary) {
            return Err(unsupported(
                &format!("a primary key with column `{}`, which may hold nulls,", column.name),
                &format!("write ALTER TABLE t ALTER COLUMN {} SET NOT NULL first", quote_identifier(&column.name)),
            ));
        }
        Ok(TableAlteration::AddKey { key })
    }

    async fn altered_column(
        &self,
        known: &ColumnInfo,
        op: AlterColumnOperation,
        table: &ResolvedTable,
    ) -> Result<TableAlteration> {
        let column = known.name.clone();
        Ok(match op {
            AlterColumnOperation::DropNotNull => TableAlteration::DropNotNull { column },
            AlterColumnOperation::SetNotNull => match &table.source {
                TableSource::Managed(seen) => TableAlteration::SetNotNull { column, seen: seen.clone() },
                TableSource::External(_) | TableSource::View { .. } => {
                    return Err(unsupported("SET NOT NULL of anything but a managed table", OPERATIONS));
                }
            },
            AlterColumnOperation::DropDefault => TableAlteration::SetDefault { column, default: None },
            AlterColumnOperation::SetDefault { value } => {
                let default = stored_default(&value)?;
                if let Some(ColumnDefault::Literal(text)) = &default {
                    check_value(text, &Field::new(&column, known.data_type.clone(), true))?;
                    if known.is_uuid {
                        uuid_default(text, &column)?;
                    }
                }
                TableAlteration::SetDefault { column, default }
            }
            AlterColumnOperation::SetDataType { data_type, using: None, had_set: _ } => {
                let (is_json, is_uuid) = (is_json_type(&data_type), is_uuid_type(&data_type));
                let (field, _) = self.new_column(&column_of(data_type)).await?;
                if is_uuid != known.is_uuid {
                    let (name, to) = (quote_identifier(&column), if is_uuid { "UUID" } else { "VARCHAR" });
                    return Err(unsupported(
                        &format!("changing column `{column}` to or from UUID"),
                        &format!(
                            "write CREATE OR REPLACE TABLE t AS SELECT * REPLACE (CAST({name} AS {to}) AS {name}) FROM t"
                        ),
                    ));
                }
                if is_json != known.is_json && is_text(field.data_type()) && is_text(&known.data_type) {
                    return Ok(TableAlteration::SetJson { column, is_json });
                }
                if field.data_type() != &known.data_type && !is_wider_type(&known.data_type, field.data_type()) {
                    let (from, to) = (sql_name(&known.data_type), sql_name(field.data_type()));
                    let name = quote_identifier(&column);
                    return Err(unsupported(
                        &format!("changing column `{column}` from {from} to {to}"),
                        &format!(
                            "an integer becomes a wider one, and a decimal one of more digits; otherwise write CREATE OR \
                             REPLACE TABLE t AS SELECT * REPLACE (CAST({name} AS {to}) AS {name}) FROM t"
                        ),
                    ));
                }
                TableAlteration::WidenColumn { column, data_type: field.data_type().clone() }
            }
            other => return Err(unsupported(&format!("ALTER COLUMN ... {other}"), OPERATIONS)),
        })
    }

    /// Returns a column as CREATE TABLE would make it, and its value in the rows that are there.
    async fn new_column(&self, column: &ColumnDef) -> Result<(Field, Option<String>)> {
        let plan = Box::pin(self.query(&format!("CREATE TABLE altered ({column})"))).await?;
        let Some(WriteStatement::CreateTable { not_null, keys, foreign_keys, defaults, input, .. }) =
            WriteStatement::from_plan(&plan)
        else {
            return Err(unsupported("this form of ADD COLUMN", OPERATIONS));
        };
        if !not_null.is_empty() || !keys.is_empty() || !foreign_keys.is_empty() {
            return Err(unsupported(
                "NOT NULL and keys of a new column",
                "add the column, give it values, and write ALTER COLUMN ... SET NOT NULL",
            ));
        }
        let default = match defaults.first() {
            None => None,
            Some((_, ColumnDefault::Literal(text))) => Some(spelled_default(text, input.schema().field(0))?),
            Some((_, ColumnDefault::Expression(_))) => {
                return Err(unsupported(
                    "a new column whose default is computed",
                    "add the column, and write ALTER COLUMN ... SET DEFAULT for the rows that come",
                ));
            }
        };
        Ok((Field::clone(input.schema().field(0)).with_nullable(true), default))
    }
}

fn renames(operation: &AlterTableOperation) -> bool {
    matches!(operation, AlterTableOperation::RenameColumn { .. } | AlterTableOperation::RenameTable { .. })
}

fn is_text(data_type: &arrow::datatypes::DataType) -> bool {
    use arrow::datatypes::DataType;

    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A column of a type, of which only the type counts.
fn column_of(data_type: DataType) -> ColumnDef {
    ColumnDef { name: Ident::new("altered"), data_type, options: Vec::new() }
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

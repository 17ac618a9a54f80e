//! `CREATE TABLE new (LIKE old)` with the columns of the other table, and `TRUNCATE` as a DELETE of all rows.

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, ColumnDef, CreateTable, CreateTableLikeKind, DataType, Delete, FromTable, ObjectName, Truncate,
    TruncateTableTarget,
};

use super::column_defaults::column_clause;
use super::parse::{Nesting, parse_statement};
use super::shorthand::{plain, table_factor};
use super::statement::StatementPlanner;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

impl StatementPlanner<'_> {
    /// Writes out the columns of `CREATE TABLE ... LIKE`: those of the other table, with NOT NULL and defaults, without keys.
    pub(super) async fn write_out_like(&self, statement: &mut Statement) -> Result<()> {
        let Statement::Statement(inner) = statement else { return Ok(()) };
        let ast::Statement::CreateTable(table) = inner.as_mut() else { return Ok(()) };
        let Some(source) = take_like(table) else { return Ok(()) };
        let reference = object_name_to_table_reference(source, false)?;
        let columns: Vec<String> = match self.temporary_columns(&reference) {
            Some(columns) => columns.iter().map(column_clause).collect(),
            None => {
                let full = self.full_name(&reference)?;
                let tables = self.catalog.tables();
                let found = tables.resolve(self.who, std::slice::from_ref(&full)).await?.pop().flatten();
                let Some(found) = found else { return Err(tables.not_found(self.who, &full).await.into()) };
                found.info.columns.iter().map(column_clause).collect()
            }
        };
        let parsed = parse_statement(&format!("CREATE TABLE copied ({})", columns.join(", ")))?;
        if let Statement::Statement(copied) = parsed.statement
            && let ast::Statement::CreateTable(copied) = *copied
        {
            table.columns = copied.columns;
        }
        Ok(())
    }

    /// Plans a TRUNCATE.
    pub(super) async fn truncate(&self, truncate: Truncate, nesting: Nesting) -> Result<LogicalPlan> {
        let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } = truncate;
        if partitions.is_some() || if_exists || identity.is_some() || cascade.is_some() || on_cluster.is_some() {
            return Err(unsupported("an option of TRUNCATE"));
        }
        let Ok([TruncateTableTarget { name, only: _, has_asterisk: _ }]) =
            <[TruncateTableTarget; 1]>::try_from(table_names)
        else {
            return Err(unsupported("TRUNCATE of several tables"));
        };
        let delete = Delete {
            delete_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            tables: Vec::new(),
            from: FromTable::WithFromKeyword(vec![plain(table_factor(name, None))]),
            using: None,
            selection: None,
            returning: None,
            output: None,
            order_by: Vec::new(),
            limit: None,
        };
        self.delete(delete, None, nesting).await
    }
}

fn unsupported(what: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: "write TRUNCATE t, or DELETE FROM t".into() }
}

/// Returns the table whose columns a new one has, and leaves no column. `(LIKE t)` is parsed as a column of that name.
fn take_like(table: &mut CreateTable) -> Option<ObjectName> {
    if let Some(CreateTableLikeKind::Plain(like) | CreateTableLikeKind::Parenthesized(like)) = &table.like
        && like.defaults.is_none()
    {
        let name = like.name.clone();
        table.like = None;
        return Some(name);
    }
    match table.columns.as_slice() {
        [ColumnDef { name, data_type: DataType::Custom(source, modifiers), options }]
            if name.quote_style.is_none()
                && same_name(&name.value, "like")
                && modifiers.is_empty()
                && options.is_empty()
                && table.query.is_none() =>
        {
            let source = source.clone();
            table.columns.clear();
            Some(source)
        }
        _ => None,
    }
}

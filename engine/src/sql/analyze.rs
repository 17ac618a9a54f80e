//! `ANALYZE [TABLE] t [(columns)]`, as PostgreSQL and DuckDB have it, and Spark's `ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b`:
//! counts the distinct values of a table's columns, for the order of joins.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::Analyze;

use super::row_statements::require_managed;
use super::statement::StatementPlanner;
use super::syntax::spelled_columns;
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::type_names::has_order;

/// The most columns that are counted at once: each takes 16 KiB a thread.
const MAX_COLUMNS: usize = 200;
const USAGE: &str = "write ANALYZE table, or ANALYZE table (columns)";

impl StatementPlanner<'_> {
    /// Plans the counting of distinct values. Errors: `table_not_found`, `column_not_found`, `not_allowed` of what is no managed
    /// table, `unsupported`.
    pub(super) async fn analyze(&self, statement: Analyze) -> Result<LogicalPlan> {
        let Analyze {
            table_name,
            partitions,
            for_columns: _,
            columns: named,
            cache_metadata,
            noscan,
            compute_statistics: _,
            has_table_keyword: _,
        } = statement;
        let refused =
            |what: &str, hint: &str| Err(EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() });
        let Some(table_name) = table_name else { return refused("ANALYZE of all tables", USAGE) };
        if partitions.is_some() || cache_metadata || noscan {
            return refused("this option of ANALYZE", USAGE);
        }
        let reference = object_name_to_table_reference(table_name, false)?;
        if self.temporary_name(&reference).is_some() {
            return refused("ANALYZE of a table of the session", "leave it out: its rows are in memory");
        }
        let name = self.full_name(&reference)?;
        let found = self.catalog.tables().resolve(self.who, std::slice::from_ref(&name)).await?.pop().flatten();
        let Some(target) = found else { return Err(self.catalog.tables().not_found(self.who, &name).await.into()) };
        require_managed("ANALYZE", &target)?;
        let known: Vec<&str> = target.info.columns.iter().map(|column| column.name.as_str()).collect();
        let spelled = spelled_columns(&named, &known, &target.info.name.table)?;
        let is_counted = |name: &String| spelled.is_empty() || spelled.contains(name);
        let counted = target.info.columns.iter().filter(|column| is_counted(&column.name));
        // Nested values and bytes are no keys of joins.
        let counted: Vec<_> = counted.filter(|column| has_order(&column.data_type)).collect();
        if counted.len() > MAX_COLUMNS {
            let hint = format!("name up to {MAX_COLUMNS} that are joined or filtered by: ANALYZE table (columns)");
            return refused(&format!("ANALYZE of {} columns at once", counted.len()), &hint);
        }
        let values = counted.iter().map(|column| {
            let column = quote_identifier(&column.name);
            format!(", approx_distinct(CAST({column} AS VARCHAR))")
        });
        let (database, table) =
            (quote_identifier(&target.info.name.database), quote_identifier(&target.info.name.table));
        let query = format!("SELECT count(*){} FROM {database}.{table}", values.collect::<String>());
        let columns = counted.iter().map(|column| column.id).collect();
        let input = Arc::new(self.query(&query).await?);
        Ok(WriteStatement::Analyze { target: Box::new(target), columns, input }.into_plan())
    }
}

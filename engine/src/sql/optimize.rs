//! `OPTIMIZE [TABLE] t`, as ClickHouse and Databricks have it: the small files of a managed table, and those of which many rows are
//! deleted, written anew as few.

use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast;
use querent_catalog::TableSource;

use super::catalog_table::CatalogTable;
use super::row_statements::require_managed;
use super::statement::StatementPlanner;
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::tables::managed::SmallFiles;

const USAGE: &str =
    "write OPTIMIZE table; its rows are written in the order of ALTER TABLE table SET SORTED BY (columns)";

impl StatementPlanner<'_> {
    /// Plans the merging of a table's files. Errors: `table_not_found`, `not_allowed` of what is no managed table or seen in part,
    /// `unsupported` options.
    pub(super) async fn optimize(&self, statement: ast::Statement) -> Result<LogicalPlan> {
        let refused =
            |what: &str, hint: &str| Err(EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() });
        let ast::Statement::OptimizeTable {
            name,
            has_table_keyword: _,
            on_cluster: None,
            partition: None,
            include_final: false,
            deduplicate: None,
            predicate: None,
            zorder: None,
        } = statement
        else {
            return refused("this option of OPTIMIZE", USAGE);
        };
        let reference = object_name_to_table_reference(name, false)?;
        if self.temporary_name(&reference).is_some() {
            return refused("OPTIMIZE of a table of the session", "leave it out: its rows are in memory");
        }
        let name = self.full_name(&reference)?;
        let tables = self.catalog.tables();
        let found = tables.resolve(self.who, std::slice::from_ref(&name)).await?.pop().flatten();
        let Some(target) = found else { return Err(tables.not_found(self.who, &name).await.into()) };
        require_managed("OPTIMIZE", &target)?;
        let TableSource::Managed(table) = &target.source else {
            return Err(EngineError::Internal(format!("OPTIMIZE of `{}`", target.info.name)));
        };
        let small = SmallFiles::find(self.catalog, self.state, &target, table).await?;
        let files = small.ids();
        let source = provider_as_source(Arc::new(CatalogTable::new(Some(target.clone()), Arc::new(small))));
        let input = Arc::new(LogicalPlanBuilder::scan(target.info.name.table.as_str(), source, None)?.build()?);
        Ok(WriteStatement::Optimize { target: Box::new(target), files, input }.into_plan())
    }
}

//! RETURNING: a query over the rows that a statement writes, or takes away.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SetExpr, TableAlias, TableFactor,
};

use super::catalog_table::CatalogTable;
use super::parse::Nesting;
use super::resolved_names::FileSources;
use super::shorthand::{plain, query_of, select_star, table_factor};
use super::statement::StatementPlanner;
use super::write_statement::{MERGE_ACTION, RowStatement, WriteStatement};
use crate::error::{EngineError, Result};

/// What the rows of a statement are called in the query behind RETURNING.
const RETURNED_ROWS: &str = "__querent_returned";

impl StatementPlanner<'_> {
    /// Returns the plan of a statement that answers with what is behind RETURNING.
    pub(super) async fn returning(
        &self,
        plan: LogicalPlan,
        returning: Option<Vec<SelectItem>>,
        alias: Option<Ident>,
        nesting: Nesting,
    ) -> Result<LogicalPlan> {
        let (Some(items), Some(alias)) = (returning, alias) else { return Ok(plan) };
        let Some(statement) = WriteStatement::from_plan(&plan) else { return Ok(plan) };
        let schema = match statement {
            WriteStatement::Insert { target, .. } | WriteStatement::ChangeRows { target, .. } => {
                target.info.arrow_schema()
            }
            WriteStatement::InsertTemporary { name, .. } | WriteStatement::ChangeTemporary { name, .. } => {
                let provider = self.temporary.and_then(|tables| tables.provider(name));
                provider.map_or_else(|| Arc::new(Schema::empty()), |provider| provider.schema())
            }
            other => {
                return Err(EngineError::Unsupported {
                    what: format!("RETURNING of {}", other.label()),
                    hint: "query the table afterwards".into(),
                });
            }
        };
        let is_merge = matches!(
            statement,
            WriteStatement::ChangeRows { statement: RowStatement::Merge, .. }
                | WriteStatement::ChangeTemporary { statement: RowStatement::Merge, .. }
        );
        let action = is_merge.then(|| Field::new(MERGE_ACTION, DataType::Utf8, true));
        let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true)).chain(action);
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let rows = Arc::new(EmptyTable::new(Arc::clone(&schema)));
        let rows = provider_as_source(Arc::new(CatalogTable::at_allowed_location(rows)));
        let files = FileSources::from([(RETURNED_ROWS.to_owned(), rows)]);
        let planner = StatementPlanner { files: &files, numbered: None, ..*self };
        let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', RETURNED_ROWS))]);
        let mut factor = table_factor(name, None);
        if let TableFactor::Table { alias: shown, .. } = &mut factor {
            *shown = Some(TableAlias { explicit: true, name: alias, columns: Vec::new(), at: None });
        }
        let select = Select { projection: items, ..select_star(vec![plain(factor)]) };
        let query = ast::Statement::Query(Box::new(query_of(SetExpr::Select(Box::new(select)))));
        let query = Statement::Statement(Box::new(query));
        let returning = Arc::new(Box::pin(planner.plan_datafusion(query, nesting)).await?);
        Ok(WriteStatement::Returning { statement: Box::new(statement.clone()), schema, returning }.into_plan())
    }
}

/// Returns the query behind RETURNING with the rows that it is over.
pub(crate) fn over_returned(returning: &LogicalPlan, rows: MemTable) -> Result<LogicalPlan> {
    let source = provider_as_source(Arc::new(CatalogTable::at_allowed_location(Arc::new(rows))));
    let plan = returning.clone().transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(mut scan) if scan.table_name.table() == RETURNED_ROWS => {
            scan.source = Arc::clone(&source);
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

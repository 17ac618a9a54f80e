//! Which columns hold JSON. To SQL they are text; KQL reads them as dynamic values. A column holds JSON where CREATE
//! TABLE says so, where a call that makes JSON made it, and where a query takes it as it is from a column that does.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, TableScan, TableSource};
use datafusion::sql::sqlparser::ast;

use super::catalog_table::CatalogTable;
use super::function_forms::makes_json;
use super::syntax::folded_name;

/// Returns the columns whose type is JSON; `None` where the statement's query says what the columns are.
pub(super) fn declared_json(table: &ast::CreateTable) -> Option<Vec<String>> {
    let is_json = |column: &&ast::ColumnDef| is_json_type(&column.data_type);
    let declared = table.columns.iter().filter(is_json).map(|column| folded_name(&column.name));
    (!table.columns.is_empty()).then(|| declared.collect())
}

/// Whether a type is JSON.
pub(super) fn is_json_type(data_type: &ast::DataType) -> bool {
    matches!(data_type, ast::DataType::JSON | ast::DataType::JSONB)
}

/// Returns the columns of a plan that hold JSON.
pub(crate) fn json_columns(plan: &LogicalPlan) -> Vec<String> {
    let fields = plan.schema().fields().iter().enumerate();
    fields.filter(|(index, _)| is_json(plan, *index)).map(|(_, field)| field.name().clone()).collect()
}

/// Returns the columns of a table or of a view that hold JSON.
pub(crate) fn json_columns_behind(source: &Arc<dyn TableSource>) -> Vec<String> {
    match (source.get_logical_plan(), CatalogTable::resolved_behind(source)) {
        (_, Some(table)) if table.info.columns.iter().any(|column| column.is_json) => {
            let columns = table.info.columns.iter().filter(|column| column.is_json);
            columns.map(|column| column.name.clone()).collect()
        }
        (Some(plan), _) => json_columns(&plan),
        (None, _) => Vec::new(),
    }
}

fn is_json(plan: &LogicalPlan, mut index: usize) -> bool {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection) => {
                match projection.expr.get(index).and_then(|expr| source_of(expr, &projection.input)) {
                    Some(JsonSource::Column(below)) => {
                        index = below;
                        projection.input.as_ref()
                    }
                    Some(JsonSource::Call) => return true,
                    None => return false,
                }
            }
            LogicalPlan::Aggregate(aggregate) => {
                match aggregate.group_expr.get(index).and_then(|expr| source_of(expr, &aggregate.input)) {
                    Some(JsonSource::Column(below)) => {
                        index = below;
                        aggregate.input.as_ref()
                    }
                    Some(JsonSource::Call) => return true,
                    None => return false,
                }
            }
            LogicalPlan::Filter(filter) => filter.input.as_ref(),
            LogicalPlan::Sort(sort) => sort.input.as_ref(),
            LogicalPlan::Limit(limit) => limit.input.as_ref(),
            LogicalPlan::Distinct(Distinct::All(input)) => input.as_ref(),
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::Window(window) if index < window.input.schema().fields().len() => window.input.as_ref(),
            LogicalPlan::Join(join) => {
                let left = join.left.schema().fields().len();
                match join.join_type {
                    JoinType::LeftSemi | JoinType::LeftAnti => join.left.as_ref(),
                    JoinType::RightSemi | JoinType::RightAnti => join.right.as_ref(),
                    _ if index < left => join.left.as_ref(),
                    JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                        index -= left;
                        join.right.as_ref()
                    }
                    JoinType::LeftMark | JoinType::RightMark => return false,
                }
            }
            LogicalPlan::Union(union) => return union.inputs.iter().all(|input| is_json(input, index)),
            LogicalPlan::TableScan(scan) => return is_scanned_json(scan, index),
            _ => return false,
        };
    }
}

enum JsonSource {
    /// The column at this index of the plan below.
    Column(usize),
    /// A call that makes JSON.
    Call,
}

fn source_of(expr: &Expr, input: &LogicalPlan) -> Option<JsonSource> {
    match expr {
        Expr::Alias(alias) => source_of(&alias.expr, input),
        Expr::Column(column) => index_of(column, input).map(JsonSource::Column),
        Expr::ScalarFunction(call) => makes_json(call.func.name()).then_some(JsonSource::Call),
        _ => None,
    }
}

fn index_of(column: &Column, input: &LogicalPlan) -> Option<usize> {
    input.schema().maybe_index_of_column(column)
}

fn is_scanned_json(scan: &TableScan, index: usize) -> bool {
    let stored = scan.projection.as_ref().map_or(Some(index), |projection| projection.get(index).copied());
    let Some(stored) = stored else { return false };
    match CatalogTable::resolved_behind(&scan.source) {
        Some(table) => table.info.columns.get(stored).is_some_and(|column| column.is_json),
        None => scan.source.get_logical_plan().is_some_and(|plan| is_json(&plan, stored)),
    }
}

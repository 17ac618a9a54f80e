//! What is compared with UUIDs is read as one, as PostgreSQL and DuckDB do: `A0EE...` and `a0ee...` are two texts, and one UUID.
//! UUIDs are columns that are declared so, and casts to UUID.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, lit};

use super::catalog_table::CatalogTable;
use super::elapsed_times::compares;
use super::field_access::own_call;
use super::json_columns::{TextKind, is_of_kind};
use super::plan_nodes::any_node;
use super::subquery_values::may_be_subquery;
use crate::error::EngineError;
use crate::functions::{TO_UUID, TRY_TO_UUID, no_uuid, uuid_text};

/// Returns the plan with what is compared with UUIDs as UUIDs. Errors: `invalid_value` of a literal that is none.
pub(super) fn with_compared_uuids(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_uuids(&plan)? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let below: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
        let inputs: Vec<&LogicalPlan> = below.iter().collect();
        let schema = merge_schema(&inputs);
        // What is above refers to an expression by its name.
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let with_uuids = expr.transform_up(|expr| compared(expr, &inputs, &schema))?;
            Ok(with_uuids.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

fn has_uuids(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        if let LogicalPlan::TableScan(scan) = node {
            let has_columns = match (CatalogTable::resolved_behind(&scan.source), scan.source.get_logical_plan()) {
                (Some(table), _) => table.info.columns.iter().any(|column| column.is_uuid),
                (None, Some(plan)) => has_uuids(&plan)?,
                (None, None) => false,
            };
            if has_columns {
                return Ok(true);
            }
        }
        let mut is_found = false;
        node.apply_expressions(|expr| {
            is_found = expr.exists(|expr| Ok(is_cast(expr)))?;
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(is_found)
    })
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if matches!(call.func.name(), TO_UUID | TRY_TO_UUID))
}

fn compared(expr: Expr, inputs: &[&LogicalPlan], schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_uuid = |expr: &Expr| is_of_kind(expr, inputs, TextKind::Uuid);
    let read = |expr: Box<Expr>| -> Result<Box<Expr>> { Ok(Box::new(read_uuid(*expr, inputs, schema)?)) };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) && is_uuid(&left) != is_uuid(&right) => {
            let (left, right) = if is_uuid(&left) { (left, read(right)?) } else { (read(left)?, right) };
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_uuid(&expr) => {
            Transformed::yes(Expr::Between(Between::new(expr, negated, read(low)?, read(high)?)))
        }
        Expr::InList(InList { expr, list, negated }) if is_uuid(&expr) => {
            let list = list.into_iter().map(|item| read_uuid(item, inputs, schema)).collect::<Result<_>>()?;
            Transformed::yes(Expr::InList(InList::new(expr, list, negated)))
        }
        other => Transformed::no(other),
    })
}

/// Returns a text that is compared with a UUID as one; what it is not known of, as it is.
fn read_uuid(expr: Expr, inputs: &[&LogicalPlan], schema: &DFSchema) -> Result<Expr> {
    if let Some(text) = expr.as_literal().and_then(|value| value.try_as_str().flatten()) {
        return match uuid_text(text) {
            Some(id) => Ok(lit(id)),
            None => Err(EngineError::InvalidValue { message: no_uuid(text) }.into()),
        };
    }
    if matches!(expr, Expr::Placeholder(_)) {
        return own_call(TO_UUID, vec![Expr::Cast(Cast::new(Box::new(expr), DataType::Utf8))]);
    }
    // A condition between two queries is one that the optimizer takes apart.
    let stays = is_of_kind(&expr, inputs, TextKind::Uuid) || expr.exists(|part| Ok(is_of_other_query(part)))?;
    let is_text = expr.get_type(schema).is_ok_and(|data_type| data_type.is_string());
    match is_text && !stays {
        true => own_call(TO_UUID, vec![expr]),
        false => Ok(expr),
    }
}

fn is_of_other_query(expr: &Expr) -> bool {
    matches!(expr, Expr::OuterReferenceColumn(..)) || may_be_subquery(expr)
}

//! `IN` of a query where a null counts. DataFusion makes a join of it that says true or false, which is right where null and false
//! come to the same: among the conditions of a filter and their alternatives. Elsewhere, as in `(x IN (...)) IS NULL`, below NOT and
//! in `x NOT IN (...) OR y`, and where NOT IN names the outer row or looks for a constant, it is written out with its nulls.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InSubquery};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};

use super::lifted_subqueries::with_lifted_values;
use super::set_comparisons::membership;
use super::subquery_values::may_be_subquery;

/// What the columns are called that hold what is looked for, where that is a subquery too.
const SOUGHT: &str = "__sought";
/// What the column of a query is called whose values are computed.
const FOUND: &str = "__found";

/// Where in a filter an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterPlace {
    /// It is one of the conditions that all hold.
    Condition,
    /// It is an alternative within one.
    Alternative,
    /// What is around it tells null from false.
    Value,
}

/// Returns a filter with such subqueries written out.
pub(super) fn with_null_membership(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
    // Most filters have none, and long lists of values are not copied for it.
    if !filter.predicate.exists(|part| Ok(matches!(part, Expr::InSubquery(_))))? {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let mut sought: Vec<Expr> = Vec::new();
    let predicate = filter.predicate.clone().transform_down(|part| match part {
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if expr.exists(|part| Ok(may_be_subquery(part)))? =>
        {
            let column = format!("{SOUGHT}{}", sought.len());
            sought.push((*expr).alias(column.clone()));
            let expr = Box::new(Expr::Column(Column::new_unqualified(column)));
            Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    if sought.is_empty() {
        return with_written_membership(filter);
    }
    let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let below = columns.iter().cloned().chain(sought).collect::<Vec<_>>();
    let below = LogicalPlanBuilder::from(filter.input).project(below)?.build()?;
    let below = Arc::new(with_lifted_values(below)?.data);
    let filter = with_written_membership(Filter::try_new(predicate.data, below)?)?.data;
    Ok(Transformed::yes(LogicalPlanBuilder::from(filter).project(columns)?.build()?))
}

fn with_written_membership(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let written = written(filter.predicate.clone(), &schema, FilterPlace::Condition)?;
    if !written.transformed {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(written.data, filter.input)?)))
}

fn written(expr: Expr, schema: &DFSchema, place: FilterPlace) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = match (place, op) {
                (FilterPlace::Condition, Operator::Or) => FilterPlace::Alternative,
                _ => place,
            };
            let (left, right) = (written(*left, schema, place)?, written(*right, schema, place)?);
            let transformed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(both), transformed))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                written_in(InSubquery { expr, subquery, negated: !negated }, schema, place)
            }
            other => {
                let inner = written(other, schema, FilterPlace::Value)?;
                Ok(inner.update_data(|inner| Expr::Not(Box::new(inner))))
            }
        },
        Expr::InSubquery(found) => written_in(found, schema, place),
        other => other.map_children(|part| written(part, schema, FilterPlace::Value)),
    }
}

fn written_in(found: InSubquery, schema: &DFSchema, place: FilterPlace) -> Result<Transformed<Expr>> {
    let is_of_row = !found.subquery.outer_ref_columns.is_empty();
    let is_known = match (found.negated, place) {
        (_, FilterPlace::Value) | (true, FilterPlace::Alternative) => false,
        (false, _) => true,
        // The join that heeds nulls has a column on either side.
        (true, FilterPlace::Condition) => !is_of_row && found.expr.any_column_refs(),
    };
    if is_known {
        return with_common_type(found, schema);
    }
    Ok(match membership(&found.expr, &found.subquery, schema)? {
        Some(written) if found.negated => Transformed::yes(Expr::Not(Box::new(written))),
        Some(written) => Transformed::yes(written),
        None => Transformed::no(Expr::InSubquery(found)),
    })
}

/// Brings the values of a query that names the outer row to the type in which they are compared, under a name of their own. The
/// analyzer's cast around a column keeps the column's name, and the column itself, where the outer row is compared with it, would be
/// a second one of that name.
fn with_common_type(found: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery { expr, subquery, negated } = found;
    let values = subquery.subquery.schema();
    let common = match (expr.get_type(schema), values.fields().first()) {
        (Ok(sought), Some(field)) if !subquery.outer_ref_columns.is_empty() => {
            comparison_coercion(&sought, field.data_type()).filter(|common| common != field.data_type())
        }
        _ => None,
    };
    let Some(common) = common else {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })));
    };
    let subquery = with_values_as(subquery, common)?;
    Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated })))
}

/// Returns a query of one column with its values as those of a type.
pub(super) fn with_values_as(subquery: Subquery, wanted: DataType) -> Result<Subquery> {
    with_values(subquery, |value| Ok(Expr::Cast(Cast::new(Box::new(value), wanted))))
}

/// Returns a query of one column with what is computed of its values in their place.
pub(super) fn with_values(subquery: Subquery, computed: impl FnOnce(Expr) -> Result<Expr>) -> Result<Subquery> {
    let column = Column::from(subquery.subquery.schema().qualified_field(0));
    let value = computed(Expr::Column(column))?.alias(FOUND);
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([value])?.build()?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

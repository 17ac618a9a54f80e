//! `value >= ALL (query)` and its like where they are conditions. DataFusion compares by `EXISTS` of the comparison, which its
//! rules then take apart wrongly where the values are converted or filtered. `= ANY` is `IN`; the others are comparisons with
//! the least or the greatest of the query's values, as in [`super::predicate_subqueries`].

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{Case, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlanBuilder, Operator, Subquery, lit};

use super::subquery_values::may_be_subquery;

/// What a query's values are called where they are compared with those of the row.
const IN_VALUE: &str = "__in_value";

/// Returns a comparison with the values of a query as what DataFusion answers; `None` where its own way is the one.
pub(super) fn compared(comparison: &SetComparison) -> Result<Option<Expr>> {
    let SetComparison { expr, subquery, op, quantifier } = comparison;
    match (quantifier, op) {
        (SetQuantifier::Any, Operator::Eq) => return Ok(Some(is_in(expr, subquery, false))),
        (SetQuantifier::All, Operator::NotEq) => return Ok(Some(is_in(expr, subquery, true))),
        _ => {}
    }
    let value = first_column(subquery);
    let of_values = |aggregate: Expr| aggregated(subquery, aggregate);
    let with = |bound: Expr| Expr::BinaryExpr(BinaryExpr::new(expr.clone(), *op, Box::new(bound)));
    let (least, greatest) = (|| of_values(min(value.clone())), || of_values(max(value.clone())));
    let holds =
        match (quantifier, op) {
            (SetQuantifier::Any, Operator::Gt | Operator::GtEq)
            | (SetQuantifier::All, Operator::Lt | Operator::LtEq) => with(least()?),
            (SetQuantifier::Any, Operator::Lt | Operator::LtEq)
            | (SetQuantifier::All, Operator::Gt | Operator::GtEq) => with(greatest()?),
            (SetQuantifier::Any, Operator::NotEq) => with(least()?).or(with(greatest()?)),
            (SetQuantifier::All, Operator::Eq) => with(least()?).and(with(greatest()?)),
            _ => return Ok(None),
        };
    let is_any = *quantifier == SetQuantifier::Any;
    let decided = if is_any { holds } else { Expr::Not(Box::new(holds)) };
    three_valued(expr, subquery, decided, is_any).map(Some)
}

/// Returns `value IN (query)` with its nulls, as a value; `None` where the value is of a query further out. `schema` is that of
/// the rows that it is asked of.
pub(super) fn membership(value: &Expr, subquery: &Subquery, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut outer = subquery.outer_ref_columns.clone();
    let mut is_of_row = true;
    let outside = value.clone().transform_down(|part| {
        let Expr::Column(column) = part else {
            is_of_row &= !may_be_subquery(&part) && !matches!(part, Expr::OuterReferenceColumn(..));
            return Ok(Transformed::no(part));
        };
        let (_, field) = schema.qualified_field_from_column(&column)?;
        let reference = Expr::OuterReferenceColumn(Arc::clone(field), column);
        if !outer.contains(&reference) {
            outer.push(reference.clone());
        }
        Ok(Transformed::yes(reference))
    })?;
    if !is_of_row {
        return Ok(None);
    }
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    // Both queries may have a column of that name and table.
    let plan = plan.project(vec![first_column(subquery).alias(IN_VALUE)])?;
    let equal = plan.filter(Expr::Column(Column::new_unqualified(IN_VALUE)).eq(outside.data))?.build()?;
    let equal = Subquery { subquery: Arc::new(equal), outer_ref_columns: outer, ..subquery.clone() };
    let is_found = aggregated(&equal, count(lit(1_i64)))?.gt(lit(0_i64));
    three_valued(value, subquery, is_found, true).map(Some)
}

fn first_column(subquery: &Subquery) -> Expr {
    Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)))
}

/// An aggregate of all rows of a query.
pub(super) fn aggregated(subquery: &Subquery, aggregate: Expr) -> Result<Expr> {
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    let plan = plan.aggregate(Vec::<Expr>::new(), vec![aggregate])?.build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() }))
}

/// The answer where `decided` tells it, where the query has no rows, and where a null on either side leaves it open.
fn three_valued(value: &Expr, subquery: &Subquery, decided: Expr, is_any: bool) -> Result<Expr> {
    let rows = aggregated(subquery, count(lit(1_i64)))?;
    let known = aggregated(subquery, count(first_column(subquery)))?;
    let is_open = value.clone().is_null().or(known.not_eq(rows.clone()));
    let when = |condition: Expr, result: Expr| (Box::new(condition), Box::new(result));
    Ok(Expr::Case(Case {
        expr: None,
        when_then_expr: vec![
            when(rows.eq(lit(0_i64)), lit(!is_any)),
            when(decided, lit(is_any)),
            when(is_open, lit(ScalarValue::Boolean(None))),
        ],
        else_expr: Some(Box::new(lit(!is_any))),
    }))
}

fn is_in(value: &Expr, subquery: &Subquery, negated: bool) -> Expr {
    Expr::InSubquery(InSubquery { expr: Box::new(value.clone()), subquery: subquery.clone(), negated })
}

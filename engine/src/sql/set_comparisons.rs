//! `value >= ALL (query)` and its like where they are conditions. DataFusion compares by `EXISTS` of the comparison, which its
//! rules then take apart wrongly where the values are converted or filtered. `= ANY` is `IN`; the others are comparisons with
//! the least or the greatest of the query's values, as in [`super::predicate_subqueries`].

use std::sync::Arc;

use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{Case, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlanBuilder, Operator, Subquery, lit};

/// Returns a comparison with the values of a query as what DataFusion answers; `None` where its own way is the one.
pub(super) fn compared(comparison: &SetComparison) -> Result<Option<Expr>> {
    let SetComparison { expr, subquery, op, quantifier } = comparison;
    match (quantifier, op) {
        (SetQuantifier::Any, Operator::Eq) => return Ok(Some(is_in(expr, subquery, false))),
        (SetQuantifier::All, Operator::NotEq) => return Ok(Some(is_in(expr, subquery, true))),
        _ => {}
    }
    let value = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let of_values = |aggregate: Expr| -> Result<Expr> {
        let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
        let plan = plan.aggregate(Vec::<Expr>::new(), vec![aggregate])?.build()?;
        Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() }))
    };
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
    let rows = of_values(count(lit(1_i64)))?;
    let known = of_values(count(value))?;
    let is_open = expr.as_ref().clone().is_null().or(known.not_eq(rows.clone()));
    let when = |condition: Expr, result: Expr| (Box::new(condition), Box::new(result));
    Ok(Some(Expr::Case(Case {
        expr: None,
        when_then_expr: vec![
            when(rows.eq(lit(0_i64)), lit(!is_any)),
            when(decided, lit(is_any)),
            when(is_open, lit(ScalarValue::Boolean(None))),
        ],
        else_expr: Some(Box::new(lit(!is_any))),
    })))
}

fn is_in(value: &Expr, subquery: &Subquery, negated: bool) -> Expr {
    Expr::InSubquery(InSubquery { expr: Box::new(value.clone()), subquery: subquery.clone(), negated })
}

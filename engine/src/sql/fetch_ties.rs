//! `FETCH FIRST n ROWS WITH TIES`: the rows up to the n-th and those that the order puts beside it, which are those whose rank
//! is n at most.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Value, ValueWithSpan, WindowSpec, WindowType,
};

use super::shorthand::{call, number};
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// Writes out a FETCH WITH TIES as a condition on the rank; other queries stay as they are. Errors: `sql_plan_error`,
/// `unsupported`.
pub(super) fn write_out_ties(query: &mut Query) -> Result<()> {
    let Some(Fetch { with_ties: true, quantity, .. }) = &query.fetch else { return Ok(()) };
    let Some(OrderBy { kind: OrderByKind::Expressions(sorts), .. }) = &query.order_by else {
        let message = "FETCH ... WITH TIES needs an ORDER BY, which says what ties are";
        return Err(EngineError::Plan { message: message.into() });
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(refused()) };
    if select.distinct.is_some() || select.qualify.is_some() {
        return Err(refused());
    }
    let written: &Select = select;
    let order_by = sorts.iter().map(|sort| key_of(written, sort)).collect::<Result<Vec<_>>>()?;
    let mut most = quantity.clone().unwrap_or_else(|| number("1"));
    if let Some(LimitClause::LimitOffset { offset: Some(offset), .. }) = &query.limit_clause {
        most = binary(most, BinaryOperator::Plus, offset.value.clone());
    }
    let mut rank = call("rank", Vec::new());
    if let Expr::Function(function) = &mut rank {
        let window = WindowSpec { window_name: None, partition_by: Vec::new(), order_by, window_frame: None };
        function.over = Some(WindowType::WindowSpec(window));
    }
    select.qualify = Some(binary(rank, BinaryOperator::LtEq, most));
    query.fetch = None;
    Ok(())
}

/// Returns a key of the order as a window reads it, which knows neither places nor names of the select list.
fn key_of(select: &Select, sort: &OrderByExpr) -> Result<OrderByExpr> {
    let expr = match &sort.expr {
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            let item = place.parse().ok().and_then(|place: usize| select.projection.get(place.checked_sub(1)?));
            match item {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => expr.clone(),
                _ => return Err(refused()),
            }
        }
        Expr::Identifier(name) => aliased(select, name).unwrap_or(&sort.expr).clone(),
        other => other.clone(),
    };
    Ok(OrderByExpr { expr, ..sort.clone() })
}

fn aliased<'s>(select: &'s Select, name: &Ident) -> Option<&'s Expr> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if same_name(&alias.value, &name.value) => Some(expr),
        _ => None,
    })
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn refused() -> EngineError {
    EngineError::Unsupported {
        what: "FETCH ... WITH TIES of this query".into(),
        hint: "number the rows with rank() OVER (ORDER BY ...) in a query around it, and keep those up to the limit \
               with QUALIFY"
            .into(),
    }
}

//! `SELECT DISTINCT ON (a) ... ORDER BY b`, the first row of each `a` in an order that does not begin with `a`, as DuckDB has it:
//! the planner knows orders that begin with the columns of DISTINCT ON only. It is a window's first row.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan,
    WindowSpec, WindowType,
};

use super::shorthand::{call, number};
use crate::identifiers::same_name;

/// Writes out such a query; others stay as they are.
pub(super) fn write_out_first_rows(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else { return };
    let Some(Distinct::On(firsts)) = &select.distinct else { return };
    let begins_so = firsts.len() <= sorts.len()
        && firsts.iter().zip(sorts).all(|(first, sort)| first.to_string().eq_ignore_ascii_case(&sort.expr.to_string()));
    // Places are counted in the columns, of which a star has several.
    let is_place = |expr: &Expr| matches!(expr, Expr::Value(_));
    let has_place = firsts.iter().any(is_place) || sorts.iter().any(|sort| is_place(&sort.expr));
    let is_star = |item: &SelectItem| !matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if begins_so || sorts.is_empty() || (has_place && select.projection.iter().any(is_star)) {
        return;
    }
    let partition_by = firsts.iter().map(|first| value_of(first, select)).collect();
    let order_by: Vec<OrderByExpr> =
        sorts.iter().map(|sort| OrderByExpr { expr: value_of(&sort.expr, select), ..sort.clone() }).collect();
    let spec = WindowSpec { window_name: None, partition_by, order_by, window_frame: None };
    let mut place = call("row_number", Vec::new());
    if let Expr::Function(function) = &mut place {
        function.over = Some(WindowType::WindowSpec(spec));
    }
    let is_first = Expr::BinaryOp { left: Box::new(place), op: BinaryOperator::Eq, right: Box::new(number("1")) };
    select.distinct = None;
    select.qualify = Some(match select.qualify.take() {
        None => is_first,
        Some(own) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(own))),
            op: BinaryOperator::And,
            right: Box::new(is_first),
        },
    });
}

/// Returns what an expression of ORDER BY stands for in the select list: the item of this place or of this alias.
fn value_of(expr: &Expr, select: &Select) -> Expr {
    let item = match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            place.parse::<usize>().ok().and_then(|place| select.projection.get(place.checked_sub(1)?))
        }
        Expr::Identifier(name) => select.projection.iter().find(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => same_name(&alias.value, &name.value),
            _ => false,
        }),
        _ => None,
    };
    match item {
        Some(SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) => value.clone(),
        _ => expr.clone(),
    }
}

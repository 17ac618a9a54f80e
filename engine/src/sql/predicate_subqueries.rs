//! `EXISTS`, `IN`, `ANY` and `ALL` of a query in a select list. The planner knows them as conditions only; as values they are
//! scalar subqueries that count.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Distinct, Expr, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value,
};

use super::shorthand::{call, number, plain, query_of, select_star, taken};
use super::syntax::{any_expr, change_own_exprs};

/// The query that a value is compared with, of one column.
pub(super) const QUERIED: &str = "__queried";
pub(super) const VALUE: &str = "__queried_value";

/// Writes out the predicates over queries that stand in an expression, outside of its subqueries.
pub(super) fn write_out_predicates(expr: &mut Expr) {
    change_own_exprs(expr, |part| {
        if let Some(written) = written_out(part) {
            *part = Expr::Nested(Box::new(written));
        }
    });
}

fn written_out(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::Exists { subquery, negated } => Some(exists(subquery.as_ref().clone(), *negated)),
        Expr::InSubquery { expr: value, subquery, negated } => {
            let found = equals_any(&taken(value), subquery);
            Some(if *negated { not(found) } else { found })
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            let Expr::Subquery(query) = right.as_ref() else { return None };
            match compare_op {
                BinaryOperator::Eq => Some(equals_any(left, query)),
                BinaryOperator::Gt | BinaryOperator::GtEq => {
                    Some(beyond(left, compare_op, query, "min", Quantifier::Any))
                }
                BinaryOperator::Lt | BinaryOperator::LtEq => {
                    Some(beyond(left, compare_op, query, "max", Quantifier::Any))
                }
                _ => None,
            }
        }
        Expr::AllOp { left, compare_op, right } => {
            let Expr::Subquery(query) = right.as_ref() else { return None };
            match compare_op {
                BinaryOperator::NotEq => Some(not(equals_any(left, query))),
                BinaryOperator::Gt | BinaryOperator::GtEq => {
                    Some(beyond(left, compare_op, query, "max", Quantifier::All))
                }
                BinaryOperator::Lt | BinaryOperator::LtEq => {
                    Some(beyond(left, compare_op, query, "min", Quantifier::All))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
}

/// `(SELECT count(*) > 0 FROM ...)`.
fn exists(mut query: Query, negated: bool) -> Expr {
    let op = if negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
    let counted = SelectItem::UnnamedExpr(binary(count(), op, number("0")));
    query.order_by = None;
    match query.body.as_mut() {
        SetExpr::Select(select) if is_row_by_row(select) && query.limit_clause.is_none() && query.fetch.is_none() => {
            select.projection = vec![counted];
            Expr::Subquery(Box::new(query))
        }
        _ => Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(Select {
            projection: vec![counted],
            ..select_star(vec![plain(derived(query, Vec::new()))])
        }))))),
    }
}

/// Returns whether a select list may be replaced without changing how many rows there are.
fn is_row_by_row(select: &Select) -> bool {
    let is_ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_)));
    // A call may be of an aggregate.
    let calls = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            any_expr(expr, |part| matches!(part, Expr::Function(_)))
        }
        _ => false,
    });
    is_ungrouped
        && !is_distinct
        && select.having.is_none()
        && select.qualify.is_none()
        && !select.from.is_empty()
        && !calls
}

/// `value = ANY (query)`: true, false, or null where a null on either side leaves it open.
fn equals_any(value: &Expr, query: &Query) -> Expr {
    let is_equal = binary(Expr::Identifier(Ident::new(VALUE)), BinaryOperator::Eq, nested(value.clone()));
    let found = binary(scalar(query, count(), Some(is_equal)), BinaryOperator::Gt, number("0"));
    three_valued(value, query, found, Quantifier::Any)
}

/// `value > ANY (query)` is a comparison with the least or the greatest of its values.
fn beyond(value: &Expr, op: &BinaryOperator, query: &Query, bound: &str, quantifier: Quantifier) -> Expr {
    let bound = scalar(query, call(bound, vec![Expr::Identifier(Ident::new(VALUE))]), None);
    three_valued(value, query, binary(nested(value.clone()), op.clone(), bound), quantifier)
}

/// The answer where the query has rows and no null decides; `holds` is the comparison.
fn three_valued(value: &Expr, query: &Query, holds: Expr, quantifier: Quantifier) -> Expr {
    let is_any = quantifier == Quantifier::Any;
    let rows = scalar(query, count(), None);
    let nulls = binary(count(), BinaryOperator::Minus, call("count", vec![Expr::Identifier(Ident::new(VALUE))]));
    let has_null = binary(scalar(query, nulls, None), BinaryOperator::Gt, number("0"));
    let is_open = binary(Expr::IsNull(Box::new(nested(value.clone()))), BinaryOperator::Or, has_null);
    let decided = if is_any { holds } else { not(holds) };
    let when = |condition: Expr, result: Expr| CaseWhen { condition, result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(binary(rows, BinaryOperator::Eq, number("0")), boolean(!is_any)),
            when(decided, boolean(is_any)),
            when(is_open, Expr::Value(Value::Null.into())),
        ],
        else_result: Some(Box::new(boolean(!is_any))),
    }
}

/// `(SELECT item FROM (query) AS queried(value) WHERE condition)`.
fn scalar(query: &Query, item: Expr, condition: Option<Expr>) -> Expr {
    let column = TableAliasColumnDef { name: Ident::new(VALUE), data_type: None };
    Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(Select {
        projection: vec![SelectItem::UnnamedExpr(item)],
        selection: condition,
        ..select_star(vec![plain(derived(query.clone(), vec![column]))])
    })))))
}

/// Whether a FROM clause is a query whose one column is [`VALUE`].
pub(super) fn is_of_values(from: &[TableWithJoins]) -> bool {
    match from {
        [TableWithJoins { relation: TableFactor::Derived { alias: Some(alias), .. }, joins }] if joins.is_empty() => {
            alias.name.value == QUERIED && !alias.columns.is_empty()
        }
        _ => false,
    }
}

fn derived(query: Query, columns: Vec<TableAliasColumnDef>) -> TableFactor {
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(TableAlias { explicit: true, name: Ident::new(QUERIED), columns, at: None }),
        sample: None,
    }
}

fn count() -> Expr {
    call("count", vec![number("1")])
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn boolean(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).into())
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

//! `unnest` of outer columns in FROM: `LATERAL unnest(list)` is `unnest(list)`, and `LEFT JOIN unnest(list) ON true` one of a list that
//! has an element at least, so that no outer row is lost; as is `LEFT JOIN LATERAL` of a subquery that only takes lists apart.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value, VisitorMut,
};

use super::shorthand::{call, number, plain, query_of, select_star, taken};
use super::syntax::visit_statement;
use super::table_calls::{names_column, table_call};

/// Writes out such calls in a FROM clause.
pub(super) fn write_out_unnest(from: &mut [TableWithJoins]) {
    for tables in from {
        without_lateral(&mut tables.relation);
        for join in &mut tables.joins {
            without_lateral(&mut join.relation);
            let (JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint)) = &join.join_operator else {
                continue;
            };
            let keeps_all = is_always(constraint);
            let TableFactor::UNNEST { array_exprs, with_offset: false, with_ordinality: false, .. } =
                &mut join.relation
            else {
                continue;
            };
            if let [list] = array_exprs.as_mut_slice()
                && keeps_all
                && names_column(list)
            {
                *list = with_an_element(taken(list));
                join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
            }
        }
    }
}

fn without_lateral(relation: &mut TableFactor) {
    let TableFactor::Function { lateral: true, with_ordinality, .. } = relation else { return };
    let with_ordinality = *with_ordinality;
    let Some(called) = table_call(relation).filter(|called| called.name.value.eq_ignore_ascii_case("unnest")) else {
        return;
    };
    let Some(array_exprs) = called.values() else { return };
    let alias = called.alias.take();
    *relation =
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_offset_alias: None, with_ordinality };
}

/// Has the outer rows of a `LEFT JOIN LATERAL (...) ON true` stay whose lists have no elements, where the subquery is one of the
/// elements of lists: written so, or what a function in FROM has become.
pub(super) fn keep_outer_rows(statement: &mut Statement) {
    let _: ControlFlow<()> = visit_statement(statement, &mut OuterRowKeeper);
}

struct OuterRowKeeper;

impl VisitorMut for OuterRowKeeper {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for join in select.from.iter_mut().flat_map(|tables| &mut tables.joins) {
            let (JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint)) = &join.join_operator else {
                continue;
            };
            if is_always(constraint)
                && let TableFactor::Derived { lateral: true, subquery, .. } = &mut join.relation
                && let Some(lists) = lists_of(subquery)
            {
                lists.into_iter().for_each(|list| *list = with_an_element(taken(list)));
                join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the lists of a query that is nothing but their elements, or values that are null of elements that are.
fn lists_of(query: &mut Query) -> Option<Vec<&mut Expr>> {
    if parts_of(query).is_some() {
        return lists_of(parts_of(query)?);
    }
    let select = plain_select(query).filter(|select| select.from.is_empty())?;
    select.projection.iter_mut().map(list_of).collect()
}

/// Returns the subquery of `SELECT a['x'], f(a['y']) FROM (...) AS parts`.
fn parts_of(query: &mut Query) -> Option<&mut Query> {
    let select = plain_select(query)?;
    let is_null_of_null = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_null_of_null(expr),
        _ => false,
    };
    if !select.projection.iter().all(is_null_of_null) {
        return None;
    }
    match select.from.as_mut_slice() {
        [TableWithJoins { relation: TableFactor::Derived { lateral: false, subquery, .. }, joins }]
            if joins.is_empty() =>
        {
            Some(subquery)
        }
        _ => None,
    }
}

/// Returns a query's SELECT, where it has nothing but a list of expressions, and at most a relation.
fn plain_select(query: &mut Query) -> Option<&mut Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }, ..] = select.projection.as_slice() else {
        return None;
    };
    let from = select.from.iter().map(|tables| plain(tables.relation.clone())).collect();
    let nothing_more = Select { projection: select.projection.clone(), ..select_star(from) };
    if *query != query_of(SetExpr::Select(Box::new(nothing_more))) {
        return None;
    }
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// Returns the list of `unnest(list)`.
fn list_of(item: &mut SelectItem) -> Option<&mut Expr> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return None };
    let Expr::Function(function) = expr else { return None };
    let is_unnest = is_called(function.name.0.as_slice(), "unnest");
    match &mut function.args {
        FunctionArguments::List(list) if is_unnest && function.over.is_none() => match list.args.as_mut_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => Some(list),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression over one column is null where the column is.
fn is_null_of_null(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) => true,
        Expr::CompoundFieldAccess { root, .. } => is_null_of_null(root),
        Expr::Function(function) if is_called(&function.name.0, "json_extract_string") => match &function.args {
            FunctionArguments::List(list) => match list.args.first() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) => is_null_of_null(value),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

fn is_called(name: &[ObjectNamePart], function: &str) -> bool {
    matches!(name, [ObjectNamePart::Identifier(Ident { value, .. })] if value.eq_ignore_ascii_case(function))
}

fn is_always(constraint: &JoinConstraint) -> bool {
    matches!(constraint, JoinConstraint::On(condition) if is_true(condition))
}

fn is_true(condition: &Expr) -> bool {
    match condition {
        Expr::Nested(inner) => is_true(inner),
        Expr::Value(value) => value.value == Value::Boolean(true),
        _ => false,
    }
}

/// The list, or one of a null where it has no elements.
fn with_an_element(list: Expr) -> Expr {
    let has_elements = Expr::BinaryOp {
        left: Box::new(call("len", vec![list.clone()])),
        op: BinaryOperator::Gt,
        right: Box::new(number("0")),
    };
    let nothing = call("make_array", vec![Expr::Value(Value::Null.into())]);
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: has_elements, result: list }],
        else_result: Some(Box::new(nothing)),
    }
}

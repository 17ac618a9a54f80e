//! `unnest` in FROM: `LATERAL unnest(list)` is `unnest(list)`, and `LEFT JOIN unnest(list) ON true` one of a list that has an element at
//! least, so that no outer row is lost. Its column is called what the relation is, as in PostgreSQL: `FROM unnest(list) AS item`.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, JoinConstraint, JoinOperator, TableAliasColumnDef, TableFactor, TableWithJoins,
    Value,
};

use super::shorthand::{call, number, taken};
use super::syntax::relations_of;
use super::table_calls::{alias_of, names_column, table_call};

/// Writes out such calls in a FROM clause.
pub(super) fn write_out_unnest(from: &mut [TableWithJoins]) {
    for tables in &mut *from {
        without_lateral(&mut tables.relation);
        for join in &mut tables.joins {
            without_lateral(&mut join.relation);
            let (JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint)) = &join.join_operator else {
                continue;
            };
            let keeps_all = matches!(constraint, JoinConstraint::On(condition) if is_true(condition));
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
    let is_unnamed = |relation: &&TableFactor| matches!(relation, TableFactor::UNNEST { alias: None, .. });
    let is_only = relations_of(from).filter(is_unnamed).count() == 1;
    for tables in from {
        name_column(&mut tables.relation, is_only);
        tables.joins.iter_mut().for_each(|join| name_column(&mut join.relation, is_only));
    }
}

/// Calls the column of a list's elements what the relation is called, and the relation `unnest` where it is the only one without a name.
fn name_column(relation: &mut TableFactor, is_only: bool) {
    let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } = relation else {
        return;
    };
    if array_exprs.len() != 1 {
        return;
    }
    if alias.is_none() && is_only {
        *alias = Some(alias_of(UNNEST));
    }
    if let Some(alias) = alias.as_mut().filter(|alias| alias.columns.is_empty()) {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// As the function, and a relation of it without an alias, is called.
const UNNEST: &str = "unnest";

fn without_lateral(relation: &mut TableFactor) {
    let TableFactor::Function { lateral: true, with_ordinality, .. } = relation else { return };
    let with_ordinality = *with_ordinality;
    let Some(called) = table_call(relation).filter(|called| called.name.value.eq_ignore_ascii_case(UNNEST)) else {
        return;
    };
    let Some(array_exprs) = called.values() else { return };
    let alias = called.alias.take();
    *relation =
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_offset_alias: None, with_ordinality };
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

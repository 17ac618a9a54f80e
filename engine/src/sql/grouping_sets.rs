//! Grouping sets inside of others, as in `GROUPING SETS (ROLLUP (a, b), CUBE (c))`, and sets of several columns at once, as in
//! `ROLLUP ((a, b), c)`. The planner knows lists of columns there: here they are written out.

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr};

/// The most columns of a CUBE that is written out: each doubles its sets.
const MAX_CUBE: usize = 8;

/// Writes out the sets of a GROUP BY.
pub(super) fn write_out_sets(groups: &mut GroupByExpr) {
    let GroupByExpr::Expressions(exprs, _) = groups else { return };
    for expr in exprs {
        match expr {
            Expr::GroupingSets(sets) => {
                *sets = std::mem::take(sets).into_iter().flat_map(sets_within).collect();
            }
            Expr::Rollup(columns) if has_several(columns) => {
                *expr = Expr::GroupingSets(rolled_up(columns));
            }
            Expr::Cube(columns) if has_several(columns) && columns.len() <= MAX_CUBE => {
                *expr = Expr::GroupingSets(cubed(columns));
            }
            _ => {}
        }
    }
}

/// Whether the planner would refuse a set of columns among single ones.
fn has_several(columns: &[Vec<Expr>]) -> bool {
    columns.iter().any(|set| set.len() != 1)
}

/// Returns the sets that a member of GROUPING SETS stands for.
fn sets_within(set: Vec<Expr>) -> Vec<Vec<Expr>> {
    let [Expr::Function(function)] = set.as_slice() else { return vec![set] };
    let FunctionArguments::List(list) = &function.args else { return vec![set] };
    let name = function.name.to_string();
    let columns: Option<Vec<Vec<Expr>>> = list.args.iter().map(columns_of).collect();
    match columns {
        Some(columns) if name.eq_ignore_ascii_case("rollup") => rolled_up(&columns),
        Some(columns) if name.eq_ignore_ascii_case("cube") && columns.len() <= MAX_CUBE => cubed(&columns),
        _ => vec![set],
    }
}

fn columns_of(argument: &FunctionArg) -> Option<Vec<Expr>> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else { return None };
    match value {
        Expr::Tuple(columns) => Some(columns.clone()),
        Expr::Nested(column) => Some(vec![column.as_ref().clone()]),
        column => Some(vec![column.clone()]),
    }
}

/// All of them, then each time one less, to none.
fn rolled_up(columns: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    (0..=columns.len()).rev().map(|count| columns[..count].concat()).collect()
}

/// Every choice of them.
fn cubed(columns: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let choices = (0..1_usize << columns.len()).rev();
    choices
        .map(|choice| {
            let chosen = columns.iter().enumerate().filter(|(place, _)| choice & (1 << place) != 0);
            chosen.flat_map(|(_, set)| set.iter().cloned()).collect()
        })
        .collect()
}

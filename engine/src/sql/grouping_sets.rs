//! Grouping sets inside of others, as in `GROUPING SETS (ROLLUP (a, b), CUBE (c))`, and sets of several columns at once, as in
//! `ROLLUP ((a, b), c)`. The planner knows lists of columns there: here they are written out.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem, Value, ValueWithSpan,
};

/// The most columns of a CUBE that is written out: each doubles its sets.
const MAX_CUBE: usize = 8;

/// Writes out the sets of a GROUP BY, and the columns that they name by their places.
pub(super) fn write_out_sets(select: &mut Select) {
    let GroupByExpr::Expressions(exprs, _) = &mut select.group_by else { return };
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
        if let Expr::GroupingSets(sets) | Expr::Rollup(sets) | Expr::Cube(sets) = expr {
            sets.iter_mut().flatten().for_each(|column| write_out_place(column, &select.projection));
        }
    }
}

/// Puts a column in the place of its number, which the planner knows outside of sets.
fn write_out_place(column: &mut Expr, projection: &[SelectItem]) {
    let Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) = column else { return };
    let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
    let mut chosen = None;
    for item in place.and_then(|place| projection.get(..=place)).unwrap_or_default() {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => chosen = Some(expr),
            // It stands for an unknown number of columns.
            _ => return,
        }
    }
    if let Some(chosen) = chosen {
        *column = chosen.clone();
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

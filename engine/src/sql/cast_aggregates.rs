//! Aggregates and windows of one SELECT that differ in a cast only: `min(a), min(CAST(a AS DOUBLE))`. The planner calls both what it
//! calls a column without the cast, so the arguments of the later ones get a name of their own.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Select, VisitMut, VisitorMut,
};

use super::function_forms::is_aggregate;
use super::shorthand::{call, taken};
use super::syntax::change_own_exprs;

/// The aggregates of a SELECT before one: without their casts, as they are written, and how often their argument is renamed.
type SeenAggregates = Vec<(String, String, usize)>;

/// Tells such aggregates of a SELECT apart.
pub(super) fn tell_casts_apart(select: &mut Select) {
    let mut seen = SeenAggregates::new();
    for item in &mut select.projection {
        change_own_exprs(item, |part| tell_apart(part, &mut seen));
    }
    if let Some(having) = &mut select.having {
        change_own_exprs(having, |part| tell_apart(part, &mut seen));
    }
}

fn tell_apart(expr: &mut Expr, seen: &mut SeenAggregates) {
    let Expr::Function(function) = expr else { return };
    if function.over.is_none() && !is_aggregate(&function.name.to_string().to_lowercase()) {
        return;
    }
    let text = function.to_string().to_lowercase();
    let mut bare = function.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut bare, &mut CastRemover);
    let bare = bare.to_string().to_lowercase();
    let known = seen.iter().find(|(_, other, _)| *other == text).map(|(_, _, times)| *times);
    // As many as there are others that differ from it in a cast; the same again has the same name.
    let times = known.unwrap_or_else(|| seen.iter().filter(|(own, _, _)| *own == bare).count());
    if known.is_none() {
        seen.push((bare, text, times));
    }
    if times > 0 {
        rename_argument(function, times);
    }
}

/// A choice among one value is the value, under another name.
fn rename_argument(function: &mut Function, times: usize) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) = list.args.first_mut() {
        for _ in 0..times {
            *argument = call("coalesce", vec![taken(argument)]);
        }
    }
}

struct CastRemover;

impl VisitorMut for CastRemover {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = taken(inner);
        }
        ControlFlow::Continue(())
    }
}

//! Aggregates of one SELECT that differ in a cast only: `min(a), min(CAST(a AS DOUBLE))`. The planner calls both what it calls a
//! column without the cast, so the arguments of the later ones get a name of their own.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, VisitMut, VisitorMut,
};

use super::function_forms::is_aggregate;
use super::shorthand::{call, taken};

/// Tells such aggregates of a SELECT apart.
pub(super) fn tell_casts_apart(select: &mut Select) {
    let mut writer = CastWriter { depth: 0, seen: Vec::new() };
    for item in &mut select.projection {
        let _: ControlFlow<()> = VisitMut::visit(item, &mut writer);
    }
    if let Some(having) = &mut select.having {
        let _: ControlFlow<()> = VisitMut::visit(having, &mut writer);
    }
}

struct CastWriter {
    /// How many subqueries are around.
    depth: usize,
    /// The aggregates before: without their casts, and as they are written.
    seen: Vec<(String, String)>,
}

impl VisitorMut for CastWriter {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 || function.over.is_some() || !is_aggregate(&function.name.to_string().to_lowercase()) {
            return ControlFlow::Continue(());
        }
        let text = function.to_string().to_lowercase();
        let mut bare = function.clone();
        let _: ControlFlow<()> = VisitMut::visit(&mut bare, &mut CastRemover);
        let bare = bare.to_string().to_lowercase();
        let mut others: Vec<&String> =
            self.seen.iter().filter(|(own, other)| *own == bare && *other != text).map(|(_, other)| other).collect();
        others.sort_unstable();
        others.dedup();
        let others = others.len();
        if self.seen.iter().any(|(_, other)| *other == text) || others == 0 {
            self.seen.push((bare, text));
            return ControlFlow::Continue(());
        }
        self.seen.push((bare, text));
        rename_argument(function, others);
        ControlFlow::Continue(())
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

//! Calls within calls, of which DataFusion's planner does twice the work at each level: it asks twice for the type of what a call by
//! another of a function's names is, which it gives that name as an alias, and the text of the one has that of the other twice; it
//! asks for the type of a lambda's body twice, and plans the arguments of a map twice. Of a CASE it asks for the type and for whether it
//! may be null, one after the other, and each asks a call within the CASE for both.

use std::ops::ControlFlow;

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Function, Ident, ObjectNamePart, VisitorMut};

use super::syntax::try_visit_statement;
use crate::error::{EngineError, Result};

/// The most calls by other names within each other; those around them are by the function's own.
const MAX_ALIASED_CALLS: usize = 3;
/// The most lambdas and maps within each other.
const MAX_NESTED_LAMBDAS: usize = 10;
/// The most CASEs within each other that have calls between them. Those without, such as one that is the ELSE of another, do not count.
const MAX_CALLS_IN_CASES: usize = 12;

/// Calls functions by their own names around calls by others. A call becomes the same wherever it is written, since only what is
/// within it counts: GROUP BY finds it in a select list. Errors: `sql_plan_error` where lambdas nest too deeply.
pub(super) fn bound_nested_calls<S: ContextProvider>(scope: &S, statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut NestedCalls { scope, aliased: Vec::new(), lambdas: 0, around: Vec::new() })
}

struct NestedCalls<'a, S> {
    scope: &'a S,
    /// How many calls by other names are within each other, in each of the calls that are around.
    aliased: Vec<usize>,
    /// How many lambdas and maps are around.
    lambdas: usize,
    /// What is said of each of the calls and CASEs that are around.
    around: Vec<CasesAround>,
}

/// The CASEs around a place.
#[derive(Clone, Copy, Default)]
struct CasesAround {
    /// How many of them have a call within.
    with_calls: usize,
    /// Whether the innermost of all calls and CASEs is a CASE.
    is_in_case: bool,
}

/// Whether an expression is a CASE, or becomes a call of a function.
fn is_call_or_case(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Function(_)
            | Expr::Case { .. }
            | Expr::Ceil { .. }
            | Expr::Extract { .. }
            | Expr::Floor { .. }
            | Expr::Overlay { .. }
            | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
    )
}

impl<S: ContextProvider> VisitorMut for NestedCalls<'_, S> {
    type Break = EngineError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Expr::Function(_) = expr {
            self.aliased.push(0);
        }
        if is_call_or_case(expr) {
            let mut around = self.around.last().copied().unwrap_or_default();
            let is_case = matches!(expr, Expr::Case { .. });
            around.with_calls += usize::from(around.is_in_case && !is_case);
            around.is_in_case = is_case;
            if around.with_calls > MAX_CALLS_IN_CASES {
                return ControlFlow::Break(EngineError::too_deep());
            }
            self.around.push(around);
        }
        if is_lambda_or_map(expr) {
            self.lambdas += 1;
            if self.lambdas > MAX_NESTED_LAMBDAS {
                return ControlFlow::Break(EngineError::too_deep());
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if is_lambda_or_map(expr) {
            self.lambdas -= 1;
        }
        if is_call_or_case(expr) {
            self.around.pop();
        }
        if let Expr::Function(function) = expr {
            let mut aliased = self.aliased.pop().unwrap_or_default();
            if let Some((called, own)) = self.own_name(function) {
                match aliased < MAX_ALIASED_CALLS {
                    true => aliased += 1,
                    false => called.value = own,
                }
            }
            if let Some(around) = self.aliased.last_mut() {
                *around = aliased.max(*around);
            }
        }
        ControlFlow::Continue(())
    }
}

impl<S: ContextProvider> NestedCalls<'_, S> {
    /// Returns what a function is called by and its own name, where that is another one by which it is found as well.
    fn own_name<'f>(&self, function: &'f mut Function) -> Option<(&'f mut Ident, String)> {
        let [ObjectNamePart::Identifier(ident)] = function.name.0.as_mut_slice() else { return None };
        let called = called_name(ident);
        // Its arguments are not those of `map`.
        if called == "make_map" {
            return None;
        }
        let own = match self.scope.get_function_meta(&called) {
            Some(found) => {
                let own = found.name().to_owned();
                self.scope.get_function_meta(&own).filter(|named| *named == found).map(|_| own)
            }
            None => {
                let found = self.scope.get_higher_order_meta(&called)?;
                let own = found.name().to_owned();
                self.scope.get_higher_order_meta(&own).filter(|named| *named == found).map(|_| own)
            }
        };
        own.filter(|own| !own.eq_ignore_ascii_case(&called)).map(|own| (ident, own))
    }
}

/// Returns the name under which the planner looks for a function.
fn called_name(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

fn is_lambda_or_map(expr: &Expr) -> bool {
    match expr {
        Expr::Lambda(_) => true,
        Expr::Function(function) => {
            matches!(function.name.0.as_slice(), [ObjectNamePart::Identifier(ident)] if called_name(ident) == "map")
        }
        _ => false,
    }
}

//! `COLUMNS(c -> c LIKE 'x%')`: the condition is computed for each column's name.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Array, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, LambdaFunction, OneOrManyWithParens, Query,
    SelectItem, VisitMut, VisitorMut,
};

use super::columns::is_columns;
use crate::error::EngineError;
use crate::identifiers::same_name;
use crate::sql::column_folding::plan_folded;
use crate::sql::shorthand::{query_of_items, text};

/// Puts the names that lambdas choose in their places, in all calls of `COLUMNS` outside of subqueries.
pub(super) fn choose_by_lambda<S: ContextProvider>(
    scope: &S,
    part: &mut impl VisitMut,
    names: &[String],
) -> Result<()> {
    match part.visit(&mut Chooser { scope, names, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Chooser<'a, S> {
    scope: &'a S,
    names: &'a [String],
    depth: usize,
}

impl<S: ContextProvider> VisitorMut for Chooser<'_, S> {
    type Break = datafusion::error::DataFusionError;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if self.depth == 0
            && let Expr::Function(function) = expr
            && is_columns(function)
            && let FunctionArguments::List(list) = &mut function.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_mut_slice()
            && let Expr::Lambda(lambda) = argument
        {
            match self.chosen(lambda) {
                Ok(elem) => *argument = Expr::Array(Array { elem, named: false }),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

impl<S: ContextProvider> Chooser<'_, S> {
    fn chosen(&self, lambda: &LambdaFunction) -> Result<Vec<Expr>> {
        let parameter = match &lambda.params {
            OneOrManyWithParens::One(one) => one,
            OneOrManyWithParens::Many(many) => match many.as_slice() {
                [one] => one,
                _ => return Err(refused("the lambda of COLUMNS has one parameter, the column's name".into())),
            },
        };
        let mut chosen = Vec::new();
        for name in self.names {
            let mut condition = lambda.body.as_ref().clone();
            let _: ControlFlow<()> =
                condition.visit(&mut NameWriter { parameter: &parameter.name.value, name: text(name) });
            if self.holds(condition)? {
                chosen.push(text(name));
            }
        }
        match chosen.is_empty() {
            true => {
                let all = self.names.join(", ");
                Err(refused(format!("`COLUMNS({lambda})` chooses none of the columns {all}")))
            }
            false => Ok(chosen),
        }
    }

    fn holds(&self, condition: Expr) -> Result<bool> {
        let query = query_of_items(vec![SelectItem::UnnamedExpr(condition)]);
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let plan = plan_folded(self.scope, statement, &[])?;
        let LogicalPlan::Projection(projection) = &plan else { return Err(no_condition()) };
        let [planned] = projection.expr.as_slice() else { return Err(no_condition()) };
        let context = SimplifyContext::builder().with_config_options(Arc::new(self.scope.options().clone())).build();
        let simplifier = ExprSimplifier::new(context);
        let planned = planned.clone().unalias_nested().data;
        match simplifier.simplify(simplifier.coerce(planned, projection.input.schema())?)?.unalias() {
            PlannedExpr::Literal(ScalarValue::Boolean(value), _) => Ok(value == Some(true)),
            PlannedExpr::Literal(ScalarValue::Null, _) => Ok(false),
            _ => Err(no_condition()),
        }
    }
}

fn no_condition() -> datafusion::error::DataFusionError {
    refused("the lambda of COLUMNS is a condition on the column's name: COLUMNS(c -> c LIKE 'x%')".into())
}

fn refused(message: String) -> datafusion::error::DataFusionError {
    EngineError::Plan { message }.into()
}

/// Puts a column's name in the place of a lambda's parameter.
struct NameWriter<'a> {
    parameter: &'a str,
    name: Expr,
}

impl VisitorMut for NameWriter<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Identifier(ident) if same_name(&ident.value, self.parameter)) {
            *expr = self.name.clone();
        }
        ControlFlow::Continue(())
    }
}

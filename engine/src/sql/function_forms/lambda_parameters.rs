//! Lambdas that pass over a parameter, such as `list_reduce(l, (a, x) -> x)`: their body is written so that it names all of them.

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::functions::LAMBDA_RESULT;
use crate::sql::shorthand::call;
use crate::sql::syntax::any_expr;

/// Has the lambdas of a call name all of their parameters, where the place of one counts: for another behind it, or for the
/// parameters of a lambda within. See [`LAMBDA_RESULT`].
pub(super) fn name_all(function: &str, arguments: &mut FunctionArguments) {
    // It chooses columns by its lambda, and does not compute it.
    if function == "columns" {
        return;
    }
    let FunctionArguments::List(list) = arguments else { return };
    for argument in &mut list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(lambda))) = argument else { continue };
        // Functions of an element and its index have one parameter in the end, see `indexed_lambda`.
        let has_others = lambda.params.len() > 1 && function.ends_with("reduce");
        if has_others || any_expr(&lambda.body, |part| matches!(part, Expr::Lambda(_))) {
            let parameters = lambda.params.iter().map(|param| Expr::Identifier(param.name.clone()));
            let values = std::iter::once(lambda.body.as_ref().clone()).chain(parameters).collect();
            *lambda.body = call(LAMBDA_RESULT, values);
        }
    }
}

//! The default of `lag` and `lead`: cast to the type of the value as SQL casts, so that a number beside a date is refused.
//! DataFusion's is Arrow's cast, which takes 5 for the fifth day of 1970.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::text_casts::with_text_form;
use super::value_casts::with_conversion;

const SHIFTING: [&str; 2] = ["lag", "lead"];

/// Returns whether an expression is a call of `lag` or `lead` with a default.
pub(super) fn may_have_default(expr: &Expr) -> bool {
    match expr {
        Expr::WindowFunction(call) => SHIFTING.contains(&call.fun.name()) && call.params.args.len() == 3,
        _ => false,
    }
}

/// Returns a call whose default has the type of its value. Errors: a default that is not cast to it.
pub(super) fn with_shift_default(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !may_have_default(&expr) {
        return Ok(Transformed::no(expr));
    }
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    if let [value, _, default] = call.params.args.as_mut_slice()
        && let (Ok(wanted), Ok(found)) = (value.get_type(schema), default.get_type(schema))
        && wanted != found
        && !wanted.is_null()
        && !found.is_null()
    {
        let cast = Expr::Cast(Cast::new(Box::new(std::mem::take(default)), wanted));
        *default = with_text_form(with_conversion(cast, schema)?.data, schema)?.data;
        changed = true;
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
}

//! Functions of numbers that they are not defined for are errors: `sqrt(-1)`, `ln(0)`, `acos(2)`. See
//! [`crate::functions::ROOT_DOMAIN`] and its neighbours.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::field_access::own_call;
use crate::functions::{
    ANGLE_DOMAIN, COTANGENT_DOMAIN, GAMMA_DOMAIN, LOGARITHM_BASE, LOGARITHM_DOMAIN, ROOT_DOMAIN, UNIT_DOMAIN,
};

/// Returns whether an expression may be a call of such a function.
pub(super) fn may_leave_domain(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => !domains_of(call.name(), call.args.len()).is_empty(),
        _ => false,
    }
}

/// Returns a call with its numbers checked.
pub(super) fn with_domain_checks(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let domains = domains_of(call.func.name(), call.args.len());
    let mut changed = false;
    for (arg, domain) in call.args.iter_mut().zip(domains) {
        let is_checked = matches!(&*arg, Expr::ScalarFunction(inner) if inner.name() == *domain);
        let is_number = arg.get_type(schema).is_ok_and(|found| found.is_numeric());
        if is_number && !is_checked {
            *arg = own_call(domain, vec![std::mem::take(arg)])?;
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
}

/// Returns the domains of a function's arguments.
fn domains_of(function: &str, arguments: usize) -> &'static [&'static str] {
    match (function, arguments) {
        ("sqrt", 1) => &[ROOT_DOMAIN],
        ("ln" | "log2" | "log10" | "log", 1) => &[LOGARITHM_DOMAIN],
        ("log", 2) => &[LOGARITHM_BASE, LOGARITHM_DOMAIN],
        ("asin" | "acos" | "atanh", 1) => &[UNIT_DOMAIN],
        ("sin" | "cos" | "tan", 1) => &[ANGLE_DOMAIN],
        ("cot", 1) => &[COTANGENT_DOMAIN],
        ("gamma" | "lgamma", 1) => &[GAMMA_DOMAIN],
        _ => &[],
    }
}

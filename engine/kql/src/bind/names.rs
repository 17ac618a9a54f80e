//! The names of result columns that the query does not name: `count_`, `avg_v`, `Column1`, `k1`.

use crate::ast::{Expr, ExprKind, FunctionCall, Literal};

/// Functions whose result is named after their first argument.
const NAMED_BY_FIRST_ARGUMENT: &[&str] = &[
    "bin",
    "bin_at",
    "floor",
    "ceiling",
    "round",
    "tobool",
    "toboolean",
    "todatetime",
    "todecimal",
    "todouble",
    "todynamic",
    "toguid",
    "toint",
    "tolong",
    "toreal",
    "tostring",
    "totimespan",
    "parse_json",
    "parsejson",
    "startofday",
    "startofweek",
    "startofmonth",
    "startofyear",
    "endofday",
    "endofweek",
    "endofmonth",
    "endofyear",
    "toobject",
];

/// Returns the name that an expression gives its column; `None` where it gives none.
pub(crate) fn argument_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.text.clone()),
        ExprKind::Member { base, name } => {
            if let ExprKind::Name(side) = &base.kind
                && matches!(side.text.as_str(), "$left" | "$right")
            {
                return Some(name.text.clone());
            }
            Some(format!("{}_{}", argument_name(base)?, name.text))
        }
        ExprKind::Element { base, index } => {
            let base = argument_name(base)?;
            match &index.kind {
                ExprKind::Literal(Literal::String(text)) => Some(format!("{base}_{text}")),
                ExprKind::Literal(Literal::Long(index)) => Some(format!("{base}_{index}")),
                _ => Some(base),
            }
        }
        ExprKind::Call(call) => called_as_argument(call),
        _ => None,
    }
}

fn called_as_argument(call: &FunctionCall) -> Option<String> {
    let function = call.function.text.as_str();
    if matches!(function, "dcount_hll" | "percentile_tdigest") {
        return Some(format!("{function}_{}", argument_name(&call.arguments.first()?.expr)?));
    }
    if !NAMED_BY_FIRST_ARGUMENT.contains(&function) {
        return None;
    }
    argument_name(&call.arguments.first()?.expr)
}

/// Returns `name`, or `name1`, `name2`, ... if it is taken.
pub(crate) fn unique_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let mut number = 1_usize;
    loop {
        let numbered = format!("{name}{number}");
        if !is_taken(&numbered) {
            return numbered;
        }
        number += 1;
    }
}

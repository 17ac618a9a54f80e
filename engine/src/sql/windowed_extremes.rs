//! `arg_max(x, y) OVER (PARTITION BY g)` and its kin over whole partitions: the first value by another order, which the planner
//! knows for windows and not for aggregates over them. And `any_value(x) OVER w`, `first(x IGNORE NULLS) OVER w`: the first
//! value of a window that is not null. And aggregates of a window that have an order of their own, as in
//! `string_agg(x, ',' ORDER BY y) OVER (PARTITION BY g)`: it is the window's where that has none.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, NullTreatment,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::function_forms::parsed_form;
use crate::error::Result;

/// The aggregates to which the order of their rows makes no difference.
const WITHOUT_ORDER: [&str; 24] = [
    "sum",
    "count",
    "min",
    "max",
    "avg",
    "mean",
    "median",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "count_if",
    "countif",
    "corr",
    "covar_pop",
    "covar_samp",
];

/// The aggregates that take the rows of a window in its order.
const IN_ORDER: [&str; 10] = [
    "list",
    "array_agg",
    "string_agg",
    "listagg",
    "first",
    "first_value",
    "last",
    "last_value",
    "any_value",
    "arbitrary",
];

/// Returns a call over a window without the order among its arguments: where it makes no difference, and where it becomes the order
/// of a window that has none. `None` for any other call, which the planner refuses.
pub(super) fn with_order_of_window(function: &Function) -> Option<Function> {
    let mut written = function.clone();
    let FunctionArguments::List(list) = &mut written.args else { return None };
    let Some(WindowType::WindowSpec(window)) = &mut written.over else { return None };
    if list.duplicate_treatment.is_some() {
        return None;
    }
    let at = list.clauses.iter().position(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))?;
    let FunctionArgumentClause::OrderBy(order) = list.clauses.remove(at) else { return None };
    let name = function.name.to_string().to_lowercase();
    if WITHOUT_ORDER.contains(&name.as_str()) {
        return Some(written);
    }
    let is_whole = window.window_name.is_none() && window.order_by.is_empty() && window.window_frame.is_none();
    if !is_whole || !IN_ORDER.contains(&name.as_str()) {
        return None;
    }
    window.order_by = order;
    window.window_frame = Some(WindowFrame {
        units: WindowFrameUnits::Rows,
        start_bound: WindowFrameBound::Preceding(None),
        end_bound: Some(WindowFrameBound::Following(None)),
    });
    Some(written)
}

/// Returns such a call as the first value of its window; `None` for any other, and where the window has an order or a frame of
/// its own. Errors: `internal`.
pub(super) fn first_of_partition(function: &Function) -> Result<Option<Expr>> {
    let order = match function.name.to_string().to_lowercase().as_str() {
        "arg_max" | "argmax" | "max_by" => "DESC",
        "arg_min" | "argmin" | "min_by" => "ASC",
        _ => return Ok(None),
    };
    let Some(WindowType::WindowSpec(window)) = &function.over else { return Ok(None) };
    let WindowSpec { window_name: None, partition_by, order_by, window_frame: None } = window else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), FunctionArg::Unnamed(FunctionArgExpr::Expr(key))] =
        list.args.as_slice()
    else {
        return Ok(None);
    };
    let is_plain = list.clauses.is_empty() && list.duplicate_treatment.is_none() && function.null_treatment.is_none();
    if !is_plain || !order_by.is_empty() || !function.within_group.is_empty() {
        return Ok(None);
    }
    let mut arguments = vec![Expr::Nested(Box::new(value.clone())), Expr::Nested(Box::new(key.clone()))];
    let condition = match &function.filter {
        Some(filter) => {
            arguments.push(Expr::Nested(filter.clone()));
            "$2 IS NOT NULL AND $3"
        }
        None => "$2 IS NOT NULL",
    };
    // Rows whose value or key is null are none of those.
    let meaning = format!(
        "first_value(CASE WHEN {condition} THEN $1 END) IGNORE NULLS OVER (ORDER BY $2 {order} NULLS LAST \
         ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    );
    let mut first = parsed_form(&meaning, &arguments)?;
    if let Expr::Function(Function { over: Some(WindowType::WindowSpec(written)), .. }) = &mut first {
        written.partition_by.clone_from(partition_by);
    }
    Ok(Some(first))
}

/// Returns such a call as the first or last value of its window that is not null; `None` for any other. Errors: `internal`.
pub(super) fn value_of_window(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice() else { return Ok(None) };
    let treatment = match list.clauses.as_slice() {
        [] => function.null_treatment,
        [FunctionArgumentClause::IgnoreOrRespectNulls(treatment)] => Some(*treatment),
        _ => return Ok(None),
    };
    let called = match (function.name.to_string().to_lowercase().as_str(), treatment) {
        ("any_value" | "arbitrary", None | Some(NullTreatment::IgnoreNulls)) => "first_value",
        ("first", Some(NullTreatment::IgnoreNulls)) => "first_value",
        ("last", Some(NullTreatment::IgnoreNulls)) => "last_value",
        _ => return Ok(None),
    };
    if function.over.is_none() || list.duplicate_treatment.is_some() || !function.within_group.is_empty() {
        return Ok(None);
    }
    let mut arguments = vec![Expr::Nested(Box::new(value.clone()))];
    let value = match &function.filter {
        Some(filter) => {
            arguments.push(Expr::Nested(filter.clone()));
            "CASE WHEN $2 THEN $1 END"
        }
        None => "$1",
    };
    let mut written = parsed_form(&format!("{called}({value}) IGNORE NULLS"), &arguments)?;
    if let Expr::Function(Function { over, .. }) = &mut written {
        over.clone_from(&function.over);
    }
    Ok(Some(written))
}

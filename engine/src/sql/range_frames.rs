//! Frames of windows by distances, `RANGE BETWEEN 1 PRECEDING AND CURRENT ROW`: what offsets mean beside dates, and what is refused
//! because it would be answered wrong. A RANGE without distances, which a window with ORDER BY has by default, is over values of any type.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::error::EngineError;
use crate::type_names::sql_name;

/// A number beside the dates of a RANGE frame counts days; beside instants it says nothing, and other values have no distances.
/// Errors: `sql_plan_error`, `unsupported`.
pub(super) fn with_days(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let frame = &mut call.params.window_frame;
    let order = call.params.order_by.first().and_then(|sort| sort.expr.get_type(schema).ok());
    let (WindowFrameUnits::Range, Some(order)) = (frame.units, order) else {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    };
    let has_distance = |bound: &WindowFrameBound| !bound.is_unbounded() && *bound != WindowFrameBound::CurrentRow;
    if !has_distance(&frame.start_bound) && !has_distance(&frame.end_bound) && is_refused_by_coercion(&order) {
        *frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, frame.start_bound.clone(), frame.end_bound.clone());
        return Ok(Transformed::yes(Expr::WindowFunction(call)));
    }
    if matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_)) && is_beside_row(frame) {
        let error = EngineError::Unsupported {
            what: "an aggregate over a RANGE that begins and ends on one side of the row".to_owned(),
            hint: "write a subquery: (SELECT sum(o.x) FROM t o WHERE o.key BETWEEN t.key - 10 AND t.key - 5)"
                .to_owned(),
        };
        return Err(error.into());
    }
    let mut changed = false;
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        let (WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value)) = bound else { continue };
        // A null is UNBOUNDED.
        if value.is_null() {
            continue;
        }
        if let Some(instead) = without_distances(&order) {
            let found = sql_name(&order);
            let message =
                format!("a RANGE with an offset is over numbers, dates or timestamps, not {found}; write {instead}");
            return Err(EngineError::Plan { message }.into());
        }
        let Some(days) = whole_number(value) else { continue };
        match order {
            DataType::Date32 | DataType::Date64 => {
                *value = ScalarValue::new_interval_mdn(0, days, 0);
                changed = true;
            }
            DataType::Timestamp(_, _) => {
                let message = "a RANGE over timestamps is an interval, such as INTERVAL '1 hour' PRECEDING".to_owned();
                return Err(EngineError::Plan { message }.into());
            }
            _ => {}
        }
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
}

/// Returns whether a frame may have no rows behind one that has some: DataFusion 54's accumulators keep the rows from before it.
fn is_beside_row(frame: &WindowFrame) -> bool {
    let is_zero =
        |value: &ScalarValue| whole_number(value) == Some(0) || *value == ScalarValue::new_interval_mdn(0, 0, 0);
    let (far, near) = match (&frame.start_bound, &frame.end_bound) {
        (WindowFrameBound::Preceding(far), WindowFrameBound::Preceding(near))
        | (WindowFrameBound::Following(near), WindowFrameBound::Following(far)) => (far, near),
        _ => return false,
    };
    // A null is UNBOUNDED.
    !far.is_null() && !near.is_null() && !is_zero(near)
}

/// Returns whether DataFusion's type coercion fails at a RANGE over values of a type, even where no bound has a distance. Such a
/// frame has the same rows as one of GROUPS.
fn is_refused_by_coercion(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_refused_by_coercion(value),
        DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_)
        | DataType::Duration(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Struct(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => true,
        _ => false,
    }
}

/// Returns what to write in the place of a frame with distances between values of a type that has none here.
fn without_distances(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Time32(_) | DataType::Time64(_) | DataType::Interval(_) | DataType::Duration(_) => {
            Some("ORDER BY epoch(value) and a number of seconds")
        }
        found if found.is_numeric() || found.is_temporal() || found.is_null() => None,
        _ => Some("ROWS or GROUPS, or cast the value in ORDER BY"),
    }
}

fn whole_number(value: &ScalarValue) -> Option<i32> {
    match value {
        ScalarValue::Utf8(Some(text)) => text.trim().parse().ok(),
        ScalarValue::Int64(Some(number)) => i32::try_from(*number).ok(),
        ScalarValue::UInt64(Some(number)) => i32::try_from(*number).ok(),
        _ => None,
    }
}

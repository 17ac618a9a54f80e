//! A number that is cast to an integer is rounded, as in the standard's implementations PostgreSQL and DuckDB. Arrow's cast
//! cuts its fraction off.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::functions::expr_fn::round;
use datafusion::logical_expr::{Expr, ExprSchemable};

/// Returns whether a cast may be one of those.
pub(super) fn is_to_integer(data_type: &DataType) -> bool {
    data_type.is_integer()
}

/// Returns what is cast, rounded where that makes a difference; `None` where it stays as it is.
pub(super) fn rounded(cast: &Expr, to: &DataType, schema: &DFSchema) -> Option<Expr> {
    let is_whole = match cast {
        Expr::ScalarFunction(call) => ["round", "trunc", "floor", "ceil"].contains(&call.name()),
        _ => false,
    };
    if is_whole || !is_to_integer(to) {
        return None;
    }
    match cast.get_type(schema).ok()? {
        real if real.is_floating() => Some(round(vec![cast.clone()])),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale)
            if scale > 0 =>
        {
            Some(round(vec![cast.clone()]))
        }
        _ => None,
    }
}

//! `(a, b) OVERLAPS (c, d)`: whether two periods have a time in common. Each is from its earlier end up to its later one, which is
//! no part of it, or one time where both are the same; the second may be an interval.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};

use super::function_forms::parsed_form;
use crate::error::Result;

/// Writes out such a comparison; other expressions stay as they are. Errors: `internal`.
pub(super) fn write_out_overlaps(expr: &mut Expr) -> Result<()> {
    let Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } = &*expr else { return Ok(()) };
    let (Some([a, b]), Some([c, d])) = (period(left), period(right)) else { return Ok(()) };
    let meaning =
        "(least($1, $2) < greatest($3, $4) AND least($3, $4) < greatest($1, $2)) OR least($1, $2) = least($3, $4)";
    *expr = Expr::Nested(Box::new(parsed_form(meaning, &[a, b, c, d])?));
    Ok(())
}

/// Returns the ends of a period that is written as a row of two values.
pub(super) fn period(row: &Expr) -> Option<[Expr; 2]> {
    let Expr::Tuple(ends) = row else { return None };
    let [start, end] = ends.as_slice() else { return None };
    let nested = |expr: &Expr| Expr::Nested(Box::new(expr.clone()));
    let end = match end {
        Expr::Interval(_) => Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(nested(start)),
            op: BinaryOperator::Plus,
            right: Box::new(end.clone()),
        })),
        other => nested(other),
    };
    Some([nested(start), end])
}

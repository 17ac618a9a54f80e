//! Comparisons as DataFusion's own operators, which its optimizer pushes into scans, where they mean the same as KQL's.

use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::{Expr as PlanExpr, lit};
use datafusion::scalar::ScalarValue;

use super::Typed;
use crate::ast::BinaryOperator;
use crate::types::KqlType;

/// Returns a comparison as DataFusion's operator, where both sides are of one type that KQL and DataFusion order alike.
pub(super) fn native_comparison(operator: BinaryOperator, left: &Typed, right: &Typed) -> Option<PlanExpr> {
    let is_equality = operator == BinaryOperator::Equal;
    if !is_equality && matches!(left.kql_type, KqlType::String | KqlType::Guid) {
        return None;
    }
    let (left, right) = alike(left, right)?;
    Some(match operator {
        BinaryOperator::Equal => left.eq(right),
        BinaryOperator::Less => left.lt(right),
        BinaryOperator::LessOrEqual => left.lt_eq(right),
        BinaryOperator::Greater => left.gt(right),
        BinaryOperator::GreaterOrEqual => left.gt_eq(right),
        _ => return None,
    })
}

/// Returns both sides in one type, where only a literal needs a conversion.
fn alike(left: &Typed, right: &Typed) -> Option<(PlanExpr, PlanExpr)> {
    let is_plain = |kql_type: KqlType| {
        matches!(
            kql_type,
            KqlType::Int | KqlType::Long | KqlType::String | KqlType::DateTime | KqlType::TimeSpan | KqlType::Guid
        )
    };
    if left.kql_type == right.kql_type && is_plain(left.kql_type) {
        return Some((left.expr.clone(), right.expr.clone()));
    }
    match (left.kql_type, right.kql_type) {
        (KqlType::Int, KqlType::Long) => Some((left.expr.clone(), as_int(&right.expr)?)),
        (KqlType::Long, KqlType::Int) => Some((as_int(&left.expr)?, right.expr.clone())),
        _ => None,
    }
}

fn as_int(expr: &PlanExpr) -> Option<PlanExpr> {
    match expr {
        PlanExpr::Literal(ScalarValue::Int64(Some(value)), _) => Some(lit(i32::try_from(*value).ok()?)),
        _ => None,
    }
}

/// Returns an `in` whose list has only literals of the value's type as DataFusion's operator.
pub(super) fn native_in(value: &Typed, items: &[Typed], negated: bool) -> Option<Typed> {
    let is_hashable = matches!(
        value.kql_type,
        KqlType::Int | KqlType::Long | KqlType::String | KqlType::DateTime | KqlType::TimeSpan | KqlType::Guid
    );
    let all_literals = items.iter().all(|item| {
        item.kql_type == value.kql_type && matches!(&item.expr, PlanExpr::Literal(literal, _) if !literal.is_null())
    });
    if !is_hashable || !all_literals || items.is_empty() {
        return None;
    }
    let list = items.iter().map(|item| item.expr.clone()).collect();
    let found = PlanExpr::InList(InList::new(Box::new(value.expr.clone()), list, negated));
    // Null is in no list. No function says so: constants are worked out without the optimizer, which some need.
    let found = if value.kql_type == KqlType::String {
        found
    } else {
        let in_list = (Box::new(value.expr.clone().is_not_null()), Box::new(found));
        PlanExpr::Case(Case::new(None, vec![in_list], Some(Box::new(lit(negated)))))
    };
    Some(Typed::new(found, KqlType::Bool))
}

//! What SQL says of timestamps and DataFusion's planner does not: a text that is compared with a timestamp is one of
//! microseconds; and a literal that is no value of the timestamps that it is compared with, since they have fewer digits or a
//! shorter range, lies before, between or after them. What else SQL says of types is settled on the same walk: casts
//! ([`super::value_casts`], [`super::list_casts`], [`super::text_casts`]), numbers ([`super::number_types`],
//! [`super::exact_averages`], [`super::integer_overflow`], [`super::float_order`], [`super::domain_checks`]), intervals
//! ([`super::elapsed_times`], [`super::interval_keys`]), texts ([`super::text_replacements`]), the defaults of `lag` and `lead`
//! ([`super::shift_defaults`]), subqueries ([`super::subquery_values`], [`super::subquery_places`]) and UUIDs
//! ([`super::uuid_comparisons`]).
//!
//! The plan is as the planner made it, before types are coerced.

use std::cmp::Ordering;

use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};

use super::computed_groups::with_computed_groups_below;
use super::domain_checks::{may_leave_domain, with_domain_checks};
use super::elapsed_times::{may_have_elapsed, with_elapsed_times, with_sorted_length};
use super::exact_averages::with_exact_averages;
use super::exact_times::{is_one_zone, with_exact_keys, with_exact_times};
use super::field_access::own_call;
use super::filter_conditions::{may_be_filtered, with_checked_filter};
use super::float_order::{
    groups_doubles, has_compared_results, may_compare_zero, may_compute_double, with_plain_operands, with_plain_result,
    with_plain_rows,
};
use super::in_subqueries::with_null_membership;
use super::inserted_bytes::with_inserted_bytes;
use super::integer_overflow::{may_overflow, with_checked_integers};
use super::interval_keys::with_interval_keys;
use super::lateral_joins::join_laterals;
use super::lifted_subqueries::with_lifted_values;
use super::list_casts::{may_compare_lists, with_lists, with_unknown_lists};
use super::nested_order::{may_order_nested, with_nested_keys, with_nested_order};
use super::number_types::{may_mix_numbers, with_column_types, with_number_types, with_written_decimals};
use super::outer_rows::with_outer_rows;
use super::own_names::with_own_names;
use super::recursive_types::with_first_types;
use super::shift_defaults::{may_have_default, with_shift_default};
use super::sql_types::has_nanoseconds;
use super::subquery_places::{with_plain_tables, with_subqueries_below, with_values_beside_outer};
use super::subquery_values::{may_be_subquery, with_subqueries_in_rows, with_subquery_values};
use super::text_casts::{may_be_text_cast, with_text_form};
use super::text_replacements::{may_replace_texts, with_text_arguments};
use super::unordered_subqueries::without_order;
use super::uuid_comparisons::with_compared_uuids;
use super::value_casts::{ARROW_CASTS, may_convert, with_bytes, with_conversion, with_normal_form};
use super::volatile_filters::with_chosen_rows;
use crate::functions::{WITHOUT_OFFSET, converted, without_offset};
use crate::limits::{QueryUsage, check_nested_calls};

/// The functions that give one of their arguments.
const CHOOSING: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

/// Returns the plan with its casts to timestamps and its comparisons of them as SQL has them.
pub(crate) fn settle_times(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = with_own_names(with_compared_uuids(plan)?)?;
    let plan = with_interval_keys(with_exact_averages(join_laterals(with_outer_rows(plan)?)?)?)?;
    let plan = with_inserted_bytes(with_written_decimals(with_computed_groups_below(with_nested_keys(plan)?)?)?)?;
    if !may_have_times(&plan)? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let (is_compared, is_grouped) = (has_compared_results(&node), groups_doubles(&node));
        let is_sort = matches!(node, LogicalPlan::Sort(_));
        // What is above refers to an expression by its name.
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let settle = |expr: Expr, is_compared: bool| -> Result<Transformed<Expr>> {
                let name = names.save(&expr);
                let settled = expr.transform_up(|expr| {
                    // Types are asked for at each step, which takes long where expressions are.
                    QueryUsage::check_current()?;
                    let settled = settled(expr, &schema)?.transform_data(|expr| with_lists(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_unknown_lists(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_text_arguments(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_conversion(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_text_form(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_shift_default(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_exact_times(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_number_types(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_elapsed_times(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_checked_integers(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_domain_checks(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_checked_filter(expr, &schema))?;
                    let settled = settled.transform_data(without_order)?.transform_data(with_plain_tables)?;
                    let settled = settled.transform_data(|expr| with_subquery_values(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_nested_order(expr, &schema))?;
                    let settled = settled.transform_data(|expr| with_plain_operands(expr, &schema))?;
                    check_nested_calls(&settled.data)?;
                    Ok(settled)
                })?;
                let settled = match is_compared {
                    true => settled.transform_data(|expr| with_plain_result(expr, is_grouped, &schema))?,
                    false => settled,
                };
                let settled = match is_sort {
                    true => settled.transform_data(|expr| with_sorted_length(expr, &schema))?,
                    false => settled,
                };
                Ok(settled.update_data(|expr| name.restore(expr)))
            };
            match expr {
                // Each column of a grouping set has a name.
                Expr::GroupingSet(_) => expr.map_children(|expr| settle(expr, false)),
                _ => settle(expr, is_compared),
            }
        })?;
        let node = node.transform_data(with_first_types)?.transform_data(with_subqueries_in_rows)?;
        let node = node
            .transform_data(with_exact_keys)?
            .transform_data(with_column_types)?
            .transform_data(with_values_beside_outer)?;
        let node = node.transform_data(with_null_membership)?.transform_data(with_lifted_values)?;
        let node = node.transform_data(with_subqueries_below)?.transform_data(with_plain_rows)?;
        let node = node.transform_data(with_chosen_rows)?;
        node.map_data(LogicalPlan::recompute_schema)
    })
    .data()
}

fn may_have_times(plan: &LogicalPlan) -> Result<bool> {
    let is_candidate = |expr: &Expr| match expr {
        expr if may_be_text_cast(expr) || may_mix_numbers(expr) || may_compare_lists(expr) => true,
        expr if may_overflow(expr) || may_replace_texts(expr) || may_be_filtered(expr) => true,
        expr if may_compare_zero(expr) || may_order_nested(expr) || may_leave_domain(expr) => true,
        expr if may_have_default(expr) => true,
        expr if may_have_elapsed(expr) || may_compute_double(expr) || may_be_subquery(expr) => true,
        Expr::Cast(cast) => may_convert(cast.field.data_type()),
        Expr::TryCast(cast) => may_convert(cast.field.data_type()),
        Expr::ScalarFunction(call) => CHOOSING.contains(&call.name()) || ARROW_CASTS.contains(&call.name()),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            is_comparison(*op) && may_be_texts_and_times(&[left.as_ref(), right.as_ref()])
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            may_be_texts_and_times(&[expr.as_ref(), low.as_ref(), high.as_ref()])
        }
        Expr::InList(InList { list, .. }) => list.iter().any(|item| text(item).is_some()),
        _ => false,
    };
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let has_columns = match node {
            LogicalPlan::Join(join) => !join.on.is_empty(),
            node => matches!(node, LogicalPlan::Union(_) | LogicalPlan::Values(_)),
        };
        found |= has_columns || groups_doubles(node);
        node.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(is_candidate(expr)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

fn is_comparison(op: Operator) -> bool {
    op.swap().is_some()
        && matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// Whether one of the values is a text that is written out, or may be one of a column, and another a timestamp.
fn may_be_texts_and_times(values: &[&Expr]) -> bool {
    let is_neither = |value: &&Expr| match value {
        Expr::Literal(value, _) => !value.data_type().is_string() && !value.data_type().is_temporal(),
        _ => false,
    };
    values.iter().any(|value| text(value).is_some()) || !values.iter().any(is_neither)
}

/// Returns the text of a literal.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

fn settled(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (left_type, right_type) = (left.get_type(schema).ok(), right.get_type(schema).ok());
            let left = as_time(*left, right_type.as_ref(), schema)?;
            let right = as_time(*right, left_type.as_ref(), schema)?;
            let transformed = left.transformed || right.transformed;
            let (left, right) = (left.data, right.data);
            if let Some(place) = placement(&right, left_type.as_ref()) {
                return Ok(Transformed::yes(compared_with_place(left, op, place)));
            }
            if let (Some(place), Some(swapped)) = (placement(&left, right_type.as_ref()), op.swap()) {
                return Ok(Transformed::yes(compared_with_place(right, swapped, place)));
            }
            let comparison = BinaryExpr::new(Box::new(left), op, Box::new(right));
            Transformed::new_transformed(Expr::BinaryExpr(comparison), transformed)
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let compared = expr.get_type(schema).ok();
            let low = as_time(*low, compared.as_ref(), schema)?;
            let high = as_time(*high, compared.as_ref(), schema)?;
            let transformed = low.transformed || high.transformed;
            let (low, high) = (low.data, high.data);
            if placement(&low, compared.as_ref()).is_some() || placement(&high, compared.as_ref()).is_some() {
                let bound = |expr: Expr, op, bound: Expr| match placement(&bound, compared.as_ref()) {
                    Some(place) => compared_with_place(expr, op, place),
                    None => Expr::BinaryExpr(BinaryExpr::new(Box::new(expr), op, Box::new(bound))),
                };
                let between = bound((*expr).clone(), Operator::GtEq, low).and(bound(*expr, Operator::LtEq, high));
                return Ok(Transformed::yes(if negated { Expr::Not(Box::new(between)) } else { between }));
            }
            let between = Between::new(expr, negated, Box::new(low), Box::new(high));
            Transformed::new_transformed(Expr::Between(between), transformed)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let compared = expr.get_type(schema).ok();
            let list = list.into_iter().map(|item| as_time(item, compared.as_ref(), schema));
            let list: Vec<Transformed<Expr>> = list.collect::<Result<_>>()?;
            let transformed = list.iter().any(|item| item.transformed);
            let (never, list): (Vec<Expr>, Vec<Expr>) =
                list.into_iter().map(|item| item.data).partition(|item| placement(item, compared.as_ref()).is_some());
            if list.is_empty() && !never.is_empty() {
                return Ok(Transformed::yes(known(*expr, negated)));
            }
            Transformed::new_transformed(
                Expr::InList(InList::new(expr, list, negated)),
                transformed || !never.is_empty(),
            )
        }
        Expr::ScalarFunction(mut call) if CHOOSING.contains(&call.name()) => {
            let mut types = call.args.iter().filter_map(|arg| arg.get_type(schema).ok());
            let Some(time) = types.find(|found| matches!(found, DataType::Timestamp(_, _))) else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let mut changed = false;
            for arg in call.args.iter_mut().filter(|arg| text(arg).is_some()) {
                *arg = as_time(std::mem::take(arg), Some(&time), schema)?.data;
                changed = true;
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), changed)
        }
        // DataFusion makes timestamps of nanoseconds of the two, which `9999-12-31` is none of.
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then).chain(case.else_expr.iter());
            let mut types = results.filter_map(|result| result.get_type(schema).ok());
            let Some(time) = types.find(|found| matches!(found, DataType::Timestamp(_, _))) else {
                return Ok(Transformed::no(Expr::Case(case)));
            };
            let mut changed = false;
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then).chain(case.else_expr.iter_mut());
            for result in results.filter(|result| text(result).is_some()) {
                **result = as_time(std::mem::take(result.as_mut()), Some(&time), schema)?.data;
                changed = true;
            }
            Transformed::new_transformed(Expr::Case(case), changed)
        }
        other => Transformed::no(other),
    })
}

/// Returns a text that is compared with a timestamp as one, with the unit that keeps its digits; one that is compared with
/// bytes as these; and one that is compared with a boolean as a boolean, of which DataFusion finds no common type.
fn as_time(expr: Expr, compared_with: Option<&DataType>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(data_type) = compared_with
        && let Some(bytes) = with_bytes(&expr, data_type)?
    {
        return Ok(Transformed::yes(bytes));
    }
    match (text(&expr).map(has_nanoseconds), compared_with) {
        (Some(_), Some(DataType::Boolean)) => {
            Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), DataType::Boolean))))
        }
        (Some(has_nanoseconds), Some(DataType::Timestamp(_, zone))) => {
            let unit = if has_nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            let time = DataType::Timestamp(unit, zone.clone());
            let expr = match (zone, text(&expr)) {
                (None, Some(text)) => lit(without_offset(text)),
                _ => expr,
            };
            let literal = with_normal_form(&expr, &time).unwrap_or(expr);
            Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(literal), time))))
        }
        (None, Some(DataType::Timestamp(unit, None))) => read_as_time(expr, *unit, schema),
        _ => Ok(Transformed::no(expr)),
    }
}

/// Returns texts that are compared with timestamps without a zone as CAST reads them, which leaves out their offsets.
fn read_as_time(expr: Expr, unit: TimeUnit, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_text = expr.get_type(schema).is_ok_and(|found| found.is_string());
    if !is_text || matches!(expr, Expr::Literal(..)) {
        return Ok(Transformed::no(expr));
    }
    let unit = if unit == TimeUnit::Nanosecond { unit } else { TimeUnit::Microsecond };
    let texts = own_call(WITHOUT_OFFSET, vec![expr])?;
    let from = texts.get_type(schema)?;
    Ok(Transformed::yes(converted(texts, &from, &DataType::Timestamp(unit, None), false)))
}

/// Where a literal is that is no value of the timestamps that it is compared with.
enum LiteralPlacement {
    /// Before or after all of them: it is beyond the range of nanoseconds.
    Beyond(Ordering),
    /// After this one and before the next: it has digits that they have not.
    Above(Expr),
}

/// Returns where a literal is among values of the type that it is compared with; `None` where it is one of them. DataFusion
/// would convert it to one, and so compare with NULL where that overflows, and without the digits that are too many.
fn placement(literal: &Expr, compared_with: Option<&DataType>) -> Option<LiteralPlacement> {
    let Some(DataType::Timestamp(unit, zone)) = compared_with else { return None };
    let (literal_unit, literal_zone, nanoseconds) = match literal {
        Expr::Cast(cast) => {
            let (literal_unit, literal_zone) = match cast.field.data_type() {
                DataType::Timestamp(unit, zone) => (*unit, zone),
                // A day is a value of all timestamps but those of nanoseconds.
                DataType::Date32 if *unit == TimeUnit::Nanosecond => (*unit, zone),
                _ => return None,
            };
            let time_zone: Tz = zone.as_deref().unwrap_or("UTC").parse().ok()?;
            let time = string_to_datetime(&time_zone, text(&cast.expr)?).ok()?.to_utc();
            let nanoseconds = i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos());
            (literal_unit, literal_zone, nanoseconds)
        }
        Expr::Literal(value, _) => {
            let (literal_unit, literal_zone, ticks) = match value {
                ScalarValue::TimestampSecond(Some(ticks), zone) => (TimeUnit::Second, zone, *ticks),
                ScalarValue::TimestampMillisecond(Some(ticks), zone) => (TimeUnit::Millisecond, zone, *ticks),
                ScalarValue::TimestampMicrosecond(Some(ticks), zone) => (TimeUnit::Microsecond, zone, *ticks),
                ScalarValue::TimestampNanosecond(Some(ticks), zone) => (TimeUnit::Nanosecond, zone, *ticks),
                _ => return None,
            };
            (literal_unit, literal_zone, i128::from(ticks) * nanoseconds_of(literal_unit))
        }
        _ => return None,
    };
    if *unit == TimeUnit::Nanosecond {
        let is_beyond = i64::try_from(nanoseconds).is_err();
        return is_beyond.then(|| LiteralPlacement::Beyond(nanoseconds.cmp(&0)));
    }
    let length = nanoseconds_of(*unit);
    let is_of_zone = is_one_zone(zone.as_deref(), literal_zone.as_deref());
    if !is_of_zone || nanoseconds_of(literal_unit) >= length {
        return None;
    }
    if nanoseconds % length == 0 {
        return None;
    }
    let below = Some(i64::try_from(nanoseconds.div_euclid(length)).ok()?);
    let below = match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(below, zone.clone()),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(below, zone.clone()),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(below, zone.clone()),
        TimeUnit::Nanosecond => return None,
    };
    Some(LiteralPlacement::Above(lit(below)))
}

fn nanoseconds_of(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns what a comparison with a literal in that place is.
fn compared_with_place(expr: Expr, op: Operator, place: LiteralPlacement) -> Expr {
    let compare = |op, with| Expr::BinaryExpr(BinaryExpr::new(Box::new(expr.clone()), op, Box::new(with)));
    match (op, place) {
        (Operator::Lt | Operator::LtEq, LiteralPlacement::Above(below)) => compare(Operator::LtEq, below),
        (Operator::Gt | Operator::GtEq, LiteralPlacement::Above(below)) => compare(Operator::Gt, below),
        (Operator::Lt | Operator::LtEq, LiteralPlacement::Beyond(side)) => known(expr, side == Ordering::Greater),
        (Operator::Gt | Operator::GtEq, LiteralPlacement::Beyond(side)) => known(expr, side == Ordering::Less),
        (op, LiteralPlacement::Beyond(_) | LiteralPlacement::Above(_)) => known(expr, op == Operator::NotEq),
    }
}

/// Returns `holds` where the expression is not null, and NULL where it is.
fn known(expr: Expr, holds: bool) -> Expr {
    let null = lit(ScalarValue::Boolean(None));
    match holds {
        true => expr.is_not_null().or(null),
        false => expr.is_null().and(null),
    }
}

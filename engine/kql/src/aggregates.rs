//! Aggregate functions: their names, the names of their results, and their expressions in DataFusion. Where Kusto's
//! rules for nulls and empty groups differ from SQL's, an expression around the aggregate makes the difference.

mod arg_extreme;
mod argument_types;
mod build_schema;
mod collection;
pub(crate) mod percentiles;
mod series_bins;
mod sketch;
mod written;

use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::functions::math::isnan;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::bool_or_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::covariance::{covar_pop_udaf, covar_samp_udaf};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::functions_nested::extract::array_element;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr as PlanExpr, SortExpr, cast, lit, when};
use datafusion::prelude::coalesce;
use datafusion::scalar::ScalarValue;

use crate::ast::{BinaryOperator, Expr, ExprKind, FunctionCall, NamedExpr};
use crate::bind::{
    BindErrorCode, Binder, ExpressionScope, Result, Typed, argument_name, call_name, constant_of, fail, given_name,
    invalid, not_supported, null_of,
};
use crate::functions::{ScalarOperator, part_of};
use crate::nearest_name;
use crate::plan::{Column, field_column, field_of, plain_key};
use crate::span::Span;
use crate::types::KqlType;
use argument_types::orderable;
use collection::Collection;
pub(super) use series_bins::{SeriesBins, series_udaf};
pub(super) use written::WrittenAggregate;

const KNOWN: &str = include_str!("bind/known_aggregates.txt");

/// The result of an aggregate, and its name if the query gives none.
pub(super) struct AggregateOutput {
    pub(super) name: String,
    pub(super) typed: Typed,
}

/// Whether Kusto or this crate has an aggregate of that name.
pub(super) fn is_aggregate(name: &str) -> bool {
    KNOWN.lines().any(|known| known == name)
}

/// Returns the aggregate that is the most similar to an unknown name, or the function that is more so.
pub(super) fn nearest_with(function: Option<&str>, name: &str) -> Option<String> {
    nearest_name(name, KNOWN.lines().chain(function)).map(str::to_owned)
}

/// Returns the limit that the old names of the aggregates that collect values have where none is given.
fn old_limit(name: &str) -> Option<Typed> {
    const OLD_LIMIT: i64 = 128;
    matches!(name, "makelist" | "makeset" | "make_dictionary").then(|| Typed::new(lit(OLD_LIMIT), KqlType::Long))
}

/// The most values that an aggregate of one value takes, beside its condition.
fn most_arguments(name: &str, is_conditional: bool) -> usize {
    match name {
        "count" | "cnt" if is_conditional => 0,
        "make_list"
        | "makelist"
        | "make_list_with_nulls"
        | "make_set"
        | "makeset"
        | "make_bag"
        | "make_dictionary"
        | "dcount"
        | "hll"
        | "tdigest"
        | "covariance"
        | "covariancep" => 2,
        _ => 1,
    }
}

/// Whether this module made an aggregate.
pub(crate) fn is_made_here(function: &AggregateUDF) -> bool {
    let function = function.inner().as_ref() as &dyn std::any::Any;
    function.is::<collection::CollectFunction>()
        || function.is::<series_bins::SeriesFunction>()
        || function.is::<arg_extreme::ArgExtremeFunction>()
        || function.is::<percentiles::PercentilesFunction>()
        || function.is::<build_schema::BuildSchemaFunction>()
        || function.is::<sketch::SketchFunction>()
}

/// What binding an aggregate needs to know of its operator.
struct AggregateContext<'s> {
    collected: &'s RefCell<Vec<PlanExpr>>,
    order: &'s [SortExpr],
    span: Span,
}

impl<'a> Binder<'a> {
    /// Binds a call of an aggregate. Most return one value, `arg_max` and `percentiles` several.
    pub(super) fn aggregate(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
        collected: &RefCell<Vec<PlanExpr>>,
    ) -> Result<Vec<AggregateOutput>> {
        let inside = scope.inside_aggregate();
        let order = scope.order;
        let context = AggregateContext { collected, order, span };
        let full_name = call.function.text.as_str();
        let (name, is_conditional) = match full_name {
            "make_list_if" | "make_set_if" | "make_bag_if" | "hll_if" | "take_anyif" | "anyif" => {
                (full_name.trim_end_matches("_if").trim_end_matches("if"), true)
            }
            _ => match full_name.strip_suffix("if") {
                Some(name) => (name, true),
                None => (full_name, false),
            },
        };
        let arguments: Vec<&'a NamedExpr> = call.arguments.iter().collect();
        if matches!(name, "arg_max" | "arg_min" | "argmax" | "argmin") {
            return self.arg_extreme(name, &arguments, &inside, &context);
        }
        if matches!(name, "take_any" | "any") && !is_conditional {
            return self.take_any(full_name, &arguments, &inside, &context);
        }
        // The condition is the last argument, unless a limit or an accuracy follows it.
        let is_followed = matches!(name, "make_list" | "make_set" | "make_bag" | "hll" | "dcount");
        let (values, condition) = match (is_conditional, is_followed) {
            (false, _) => (arguments, None),
            (true, true) => {
                let mut values = arguments;
                let condition = if values.len() > 1 { Some(values.remove(1)) } else { None };
                (values, condition)
            }
            (true, false) => {
                let mut values = arguments;
                let condition = values.pop();
                (values, condition)
            }
        };
        let named_by = match values.as_slice() {
            [left, right] if matches!(name, "covariance" | "covariancep") => {
                argument_name(&left.expr).zip(argument_name(&right.expr)).map(|(left, right)| format!("{left}_{right}"))
            }
            [value, ..] => argument_name(&value.expr),
            [] => None,
        };
        let named_by = named_by.unwrap_or_default();
        let filter = match (is_conditional, condition) {
            (true, Some(condition)) => Some(self.condition(&condition.expr, &inside)?),
            (true, None) => return invalid(span, format!("`{full_name}` needs a condition")),
            (false, _) => None,
        };
        let mut typed = Vec::with_capacity(values.len());
        for value in &values {
            typed.push(self.scalar(&value.expr, &inside)?);
        }
        if matches!(
            name,
            "percentile" | "percentiles" | "percentiles_array" | "percentilew" | "percentilesw" | "percentilesw_array"
        ) {
            let least = if name.starts_with("percentilew") || name.starts_with("percentilesw") { 3 } else { 2 };
            if typed.len() < least {
                return invalid(span, format!("`{full_name}` takes at least {least} arguments"));
            }
            return self.percentiles(name, &named_by, typed, &context);
        }
        let output = self.single_value_aggregate(name, typed, filter, &context)?;
        let name = match name {
            "covariance" | "covariancep" => format!("{full_name}_{named_by}"),
            "tdigest_merge" | "merge_tdigest" => format!("merge_tdigests_{named_by}"),
            "hll_merge" => format!("hll_merge_{named_by}"),
            _ => call_name(call).unwrap_or_else(|| "Column1".to_owned()),
        };
        Ok(vec![AggregateOutput { name, typed: output }])
    }

    /// Binds an aggregate that returns one value.
    fn single_value_aggregate(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        filter: Option<PlanExpr>,
        context: &AggregateContext<'_>,
    ) -> Result<Typed> {
        let span = context.span;
        let most = most_arguments(name, filter.is_some());
        if arguments.len() > most {
            return invalid(span, format!("`{name}` takes at most {most} arguments"));
        }
        if matches!(name, "count" | "cnt") {
            let counted = self.call_aggregate(count_udaf(), vec![lit(1_i64)], filter, context);
            return Ok(Typed::new(counted, KqlType::Long));
        }
        let mut arguments = arguments.into_iter();
        let Some(value) = arguments.next() else {
            return invalid(span, format!("`{name}` needs an argument"));
        };
        let kql_type = value.kql_type;
        match name {
            "sum" => {
                let value = self.summable(value, span)?;
                let kql_type = value.kql_type;
                let sum = self.call_aggregate(sum_udaf(), vec![value.expr], filter, context);
                let zero = ScalarValue::new_zero(&kql_type.arrow_type())?;
                Ok(Typed::new(coalesce(vec![cast(sum, kql_type.arrow_type()), lit(zero)]), kql_type))
            }
            "avg" => {
                let value = self.summable(value, span)?;
                let kql_type = value.kql_type;
                if kql_type == KqlType::Decimal {
                    return self.average_of_decimals(value, filter, span, context);
                }
                let average =
                    self.call_aggregate(avg_udaf(), vec![cast(value.expr, DataType::Float64)], filter, context);
                match kql_type {
                    KqlType::TimeSpan | KqlType::DateTime => Ok(Typed::new(cast(average, DataType::Int64), kql_type)),
                    _ => Ok(Typed::new(coalesce(vec![average, lit(f64::NAN)]), KqlType::Real)),
                }
            }
            "min" | "max" => {
                orderable(name, kql_type, span)?;
                let function = if name == "min" { min_udaf() } else { max_udaf() };
                let extreme = self.call_aggregate(function, vec![value.expr.clone()], filter.clone(), context);
                if kql_type == KqlType::Real {
                    // NaN is both the least and the greatest value.
                    let has_nan =
                        self.call_aggregate(bool_or_udaf(), vec![isnan().call(vec![value.expr])], filter, context);
                    let extreme = when(has_nan, lit(f64::NAN)).otherwise(extreme)?;
                    return Ok(Typed::new(extreme, kql_type));
                }
                Ok(Typed::new(never_null(extreme, kql_type), kql_type))
            }
            "count_distinct" if kql_type == KqlType::Dynamic => {
                let message = format!("`{name}` does not take dynamic values; count those of tostring()");
                fail(BindErrorCode::TypeMismatch, span, message)
            }
            "dcount" | "count_distinct" => {
                let count = PlanExpr::AggregateFunction(AggregateFunction::new_udf(
                    count_udaf(),
                    vec![plain_key(value)?.expr],
                    true,
                    filter.map(Box::new),
                    Vec::new(),
                    None,
                ));
                Ok(Typed::new(self.add_aggregate(count, context), KqlType::Long))
            }
            "stdev" | "stdevp" | "variance" | "variancep" => {
                let value = self.summable(value, span)?;
                let value = self.convert(value, KqlType::Real, span)?;
                let function = match name {
                    "stdev" => stddev_udaf(),
                    "stdevp" => stddev_pop_udaf(),
                    "variance" => var_samp_udaf(),
                    _ => var_pop_udaf(),
                };
                let spread = self.call_aggregate(function, vec![value.expr], filter, context);
                Ok(Typed::new(coalesce(vec![spread, lit(0.0_f64)]), KqlType::Real))
            }
            "covariance" | "covariancep" => {
                let Some(other) = arguments.next() else {
                    return invalid(span, format!("`{name}` needs two arguments"));
                };
                let both = [self.summable(value, span)?, self.summable(other, span)?];
                let [value, other] = both;
                let both = [self.convert(value, KqlType::Real, span)?, self.convert(other, KqlType::Real, span)?];
                let function = if name == "covariance" { covar_samp_udaf() } else { covar_pop_udaf() };
                let spread = self.call_aggregate(function, both.map(|value| value.expr).to_vec(), filter, context);
                Ok(Typed::new(coalesce(vec![spread, lit(0.0_f64)]), KqlType::Real))
            }
            "binary_all_and" | "binary_all_or" | "binary_all_xor" => {
                let value = self.summable(value, span)?;
                let value = self.convert(value, KqlType::Long, span)?;
                let function = match name {
                    "binary_all_and" => bit_and_udaf(),
                    "binary_all_or" => bit_or_udaf(),
                    _ => bit_xor_udaf(),
                };
                let bits = self.call_aggregate(function, vec![value.expr], filter, context);
                let bits = Typed::new(bits, KqlType::Long);
                if matches!(kql_type, KqlType::Int) { self.convert(bits, kql_type, span) } else { Ok(bits) }
            }
            "make_list" | "makelist" => {
                let limit = arguments.next().or_else(|| old_limit(name));
                self.collection_aggregate(Collection::List, value, limit, filter, context)
            }
            "make_list_with_nulls" => {
                self.collection_aggregate(Collection::ListWithNulls, value, arguments.next(), filter, context)
            }
            "make_set" | "makeset" => {
                let limit = arguments.next().or_else(|| old_limit(name));
                self.collection_aggregate(Collection::Set, plain_key(value)?, limit, filter, context)
            }
            "make_bag" | "make_dictionary" => {
                let limit = arguments.next().or_else(|| old_limit(name));
                self.collection_aggregate(Collection::Bag, value, limit, filter, context)
            }
            "take_any" | "any" => {
                let picked = self.pick_values(arg_extreme::take_any_udaf(), vec![value], filter, context);
                match picked.into_iter().next() {
                    Some(first) => Ok(first),
                    None => invalid(span, "`take_any` needs an argument"),
                }
            }
            "buildschema" => {
                if kql_type != KqlType::Dynamic {
                    return fail(BindErrorCode::TypeMismatch, span, "`buildschema` takes dynamic values");
                }
                Ok(Typed::new(
                    self.call_aggregate(build_schema::build_schema_udaf(), vec![value.expr], filter, context),
                    KqlType::Dynamic,
                ))
            }
            "hll" | "hll_merge" | "tdigest" | "tdigest_merge" | "merge_tdigest" => {
                self.sketch_aggregate(name, value, arguments.next(), filter, context)
            }
            _ => not_supported(span, format_args!("the aggregate `{name}`")),
        }
    }

    /// Returns the average with a decimal's digits; null where there is no value.
    fn average_of_decimals(
        &mut self,
        value: Typed,
        filter: Option<PlanExpr>,
        span: Span,
        context: &AggregateContext<'_>,
    ) -> Result<Typed> {
        let physical = KqlType::Decimal.arrow_type();
        let sum = self.call_aggregate(sum_udaf(), vec![value.expr.clone()], filter.clone(), context);
        let count = self.call_aggregate(count_udaf(), vec![value.expr], filter, context);
        let both = vec![Typed::new(cast(sum, physical), KqlType::Decimal), Typed::new(count, KqlType::Long)];
        self.apply_operator(ScalarOperator::Binary(BinaryOperator::Divide), both, span)
    }

    fn collection_aggregate(
        &mut self,
        kind: Collection,
        value: Typed,
        limit: Option<Typed>,
        filter: Option<PlanExpr>,
        context: &AggregateContext<'_>,
    ) -> Result<Typed> {
        let limit = match limit {
            Some(limit) => {
                let limit = self.convert(limit, KqlType::Long, context.span)?;
                match constant_of(&limit.expr)? {
                    Some(ScalarValue::Int64(Some(limit))) => usize::try_from(limit).ok(),
                    _ => return invalid(context.span, "the limit must be a constant"),
                }
            }
            None => None,
        };
        let is_bag = kind == Collection::Bag;
        if is_bag && value.kql_type != KqlType::Dynamic {
            return fail(BindErrorCode::TypeMismatch, context.span, "`make_bag` takes dynamic bags");
        }
        // As an array of one element: only `pack_array` writes values of all types as JSON.
        let element = if is_bag { value } else { self.apply("pack_array", vec![value], context.span)? };
        let function = collection::collect_udaf(kind, limit);
        let order = context.order.to_vec();
        let call = AggregateFunction::new_udf(function, vec![element.expr], false, filter.map(Box::new), order, None);
        let gathered = self.add_aggregate(PlanExpr::AggregateFunction(call), context);
        let empty = if is_bag { "{}" } else { "[]" };
        Ok(Typed::new(coalesce(vec![gathered, lit(empty)]), KqlType::Dynamic))
    }

    fn arg_extreme(
        &mut self,
        name: &str,
        arguments: &[&'a NamedExpr],
        inside: &ExpressionScope<'_, 'a>,
        context: &AggregateContext<'_>,
    ) -> Result<Vec<AggregateOutput>> {
        let Some((key, rest)) = arguments.split_first() else {
            return invalid(context.span, format!("`{name}` needs an argument"));
        };
        let key_value = self.scalar(&key.expr, inside)?;
        orderable(name, key_value.kql_type, context.span)?;
        let prefix = if name.ends_with("max") { "max" } else { "min" };
        let named_by = argument_name(&key.expr);
        // The old names prefix the columns with what they are by.
        let is_prefixed = matches!(name, "argmin" | "argmax") && given_name(&key.names).is_none();
        let unnamed = match is_prefixed {
            true => "arg".to_owned(),
            false => format!("{prefix}_{}_arg", named_by.as_deref().unwrap_or_default()),
        };
        let key_name = named_by.unwrap_or_else(|| format!("{prefix}_"));
        let mut outputs = vec![(given_name(&key.names).map_or(key_name, str::to_owned), key_value)];
        self.add_picked_columns(rest, inside, &unnamed, &mut outputs)?;
        let mut names: Vec<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
        if is_prefixed {
            let first = format!("{prefix}_{}", argument_name(&key.expr).unwrap_or_default());
            names.iter_mut().skip(1).for_each(|name| *name = format!("{first}_{name}"));
            if let Some(name) = names.first_mut() {
                *name = first;
            }
        }
        let values = outputs.into_iter().map(|(_, value)| value).collect();
        let function = arg_extreme::arg_extreme_udaf(prefix == "max");
        let picked = self.pick_values(function, values, None, context);
        Ok(names.into_iter().zip(picked).map(|(name, typed)| AggregateOutput { name, typed }).collect())
    }

    fn take_any(
        &mut self,
        name: &str,
        arguments: &[&'a NamedExpr],
        inside: &ExpressionScope<'_, 'a>,
        context: &AggregateContext<'_>,
    ) -> Result<Vec<AggregateOutput>> {
        if arguments.is_empty() {
            return invalid(context.span, format!("`{name}` needs an argument"));
        }
        let mut outputs = Vec::new();
        if let ("any", [only]) = (name, arguments)
            && only.expr.kind != ExprKind::Star
        {
            let value = self.scalar(&only.expr, inside)?;
            outputs.push((argument_name(&only.expr).unwrap_or_default(), value));
        } else {
            let unnamed = if name == "any" { "arg" } else { "any_arg" };
            self.add_picked_columns(arguments, inside, unnamed, &mut outputs)?;
        }
        let prefix = if name == "any" { "any_" } else { "" };
        let names: Vec<String> = outputs.iter().map(|(name, _)| format!("{prefix}{name}")).collect();
        let values = outputs.into_iter().map(|(_, value)| value).collect();
        let picked = self.pick_values(arg_extreme::take_any_udaf(), values, None, context);
        Ok(names.into_iter().zip(picked).map(|(name, typed)| AggregateOutput { name, typed }).collect())
    }

    /// Adds the columns that are picked from one row. `*` stands for all that are not added yet and are not group keys.
    fn add_picked_columns(
        &mut self,
        exprs: &[&'a NamedExpr],
        inside: &ExpressionScope<'_, 'a>,
        unnamed: &str,
        outputs: &mut Vec<(String, Typed)>,
    ) -> Result<()> {
        for named in exprs {
            if named.expr.kind == ExprKind::Star {
                let is_other = |column: &&Column| {
                    let is_there = |(_, value): &(String, Typed)| field_of(&value.expr) == Some(column.field.as_str());
                    !outputs.iter().any(is_there) && !inside.keys.contains(&column.name)
                };
                let others: Vec<(String, Typed)> = inside.columns.iter().filter(is_other).map(Column::output).collect();
                outputs.extend(others);
                continue;
            }
            let value = self.scalar(&named.expr, inside)?;
            let name = given_name(&named.names).map(str::to_owned).or_else(|| argument_name(&named.expr));
            outputs.push((name.unwrap_or_else(|| format!("{unnamed}{}", outputs.len())), value));
        }
        Ok(())
    }

    /// Returns the values of the row that a function picks.
    fn pick_values(
        &mut self,
        function: Arc<AggregateUDF>,
        values: Vec<Typed>,
        filter: Option<PlanExpr>,
        context: &AggregateContext<'_>,
    ) -> Vec<Typed> {
        let exprs = values.iter().map(|value| value.expr.clone()).collect();
        let picked = self.call_aggregate(function, exprs, filter, context);
        let field = |(index, value): (usize, &Typed)| {
            let part = part_of(picked.clone(), index, value.kql_type);
            Typed::new(never_null(part, value.kql_type), value.kql_type)
        };
        values.iter().enumerate().map(field).collect()
    }

    fn percentiles(
        &mut self,
        name: &str,
        named_by: &str,
        arguments: Vec<Typed>,
        context: &AggregateContext<'_>,
    ) -> Result<Vec<AggregateOutput>> {
        let mut arguments = arguments.into_iter();
        let Some(value) = arguments.next() else {
            return invalid(context.span, format!("`{name}` needs an argument"));
        };
        let value = match value.kql_type {
            KqlType::Dynamic | KqlType::Decimal => self.convert(value, KqlType::Real, context.span)?,
            KqlType::Int => self.convert(value, KqlType::Long, context.span)?,
            _ => value,
        };
        let kql_type = value.kql_type;
        let mut counted = vec![value.expr];
        if matches!(name, "percentilew" | "percentilesw" | "percentilesw_array") {
            let Some(weight) = arguments.next() else {
                return invalid(context.span, format!("`{name}` needs weights"));
            };
            counted.push(self.convert(weight, KqlType::Long, context.span)?.expr);
        }
        let mut ranks: Vec<(String, f64)> = Vec::new();
        for rank in arguments {
            let is_list = rank.kql_type == KqlType::Dynamic;
            let strings: Vec<String> = match constant_of(&rank.expr)? {
                Some(ScalarValue::Utf8(Some(json))) if is_list => match serde_json::from_str(&json) {
                    Ok(serde_json::Value::Array(ranks)) => ranks.iter().map(ToString::to_string).collect(),
                    _ => return invalid(context.span, "expected an array of percentiles"),
                },
                Some(value) if !value.is_null() => vec![value.to_string()],
                _ => return invalid(context.span, "a percentile must be a constant"),
            };
            for text in strings {
                match text.parse::<f64>() {
                    Ok(rank) if (0.0..=100.0).contains(&rank) => ranks.push((text, rank)),
                    _ => return invalid(context.span, "a percentile is between 0 and 100"),
                }
            }
        }
        let function = percentiles::percentiles_udaf(ranks.iter().map(|(_, rank)| *rank).collect());
        let picked = self.call_aggregate(function, counted, None, context);
        let element = |index: usize| {
            let part = array_element(picked.clone(), lit(i64::try_from(index + 1).unwrap_or(i64::MAX)));
            Typed::new(never_null(part, kql_type), kql_type)
        };
        if let "percentiles_array" | "percentilesw_array" = name {
            let all: Vec<Typed> = (0..ranks.len()).map(element).collect();
            let array = self.apply("pack_array", all, context.span)?;
            return Ok(vec![AggregateOutput { name: format!("percentiles_{named_by}"), typed: array }]);
        }
        let outputs = ranks.iter().enumerate().map(|(index, (text, _))| AggregateOutput {
            name: format!("percentile_{named_by}_{}", text.replace('.', "_")),
            typed: element(index),
        });
        Ok(outputs.collect())
    }

    fn call_aggregate(
        &mut self,
        function: Arc<AggregateUDF>,
        arguments: Vec<PlanExpr>,
        filter: Option<PlanExpr>,
        context: &AggregateContext<'_>,
    ) -> PlanExpr {
        let call = AggregateFunction::new_udf(function, arguments, false, filter.map(Box::new), Vec::new(), None);
        self.add_aggregate(PlanExpr::AggregateFunction(call), context)
    }

    /// Adds an aggregate to the operator around it, and returns its column there.
    fn add_aggregate(&mut self, aggregate: PlanExpr, context: &AggregateContext<'_>) -> PlanExpr {
        let field = self.field("aggregate");
        context.collected.borrow_mut().push(aggregate.alias(field.clone()));
        field_column(&field)
    }

    /// Returns the aggregates that keep the carried fields of a group.
    pub(super) fn carried_aggregates(&mut self, input: &crate::plan::Relation) -> Vec<PlanExpr> {
        let Some(groups) = &input.groups else { return Vec::new() };
        let keep = |field: &String| {
            let picked = AggregateFunction::new_udf(
                datafusion::functions_aggregate::first_last::first_value_udaf(),
                vec![field_column(field)],
                false,
                None,
                Vec::new(),
                None,
            );
            PlanExpr::AggregateFunction(picked).alias(field.clone())
        };
        groups.carried.iter().map(keep).collect()
    }
}

/// Replaces an absent string by the empty one.
fn never_null(expr: PlanExpr, kql_type: KqlType) -> PlanExpr {
    if kql_type == KqlType::String { coalesce(vec![expr, lit(null_of(kql_type))]) } else { expr }
}

/// Returns the call of an aggregate, if the expression is one.
pub(super) fn aggregate_call(expr: &Expr) -> Option<&FunctionCall> {
    match &expr.kind {
        ExprKind::Call(call) if call.target.is_none() && is_aggregate(&call.function.text) => Some(call),
        _ => None,
    }
}

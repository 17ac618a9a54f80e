//! `basket`, `autocluster` and `diffpatterns`: combinations of values that many rows have. Binding reads the rows.
//!
//! Kusto documents what these find and not how: `basket` gives every closed combination above its threshold; which ones
//! `autocluster` and `diffpatterns` choose of them is this engine's own choice.

mod mining;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringViewArray, new_null_array};
use arrow::compute::{cast, filter, interleave};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::scalar::ScalarValue;

use crate::ast::{ExprKind, FunctionCall, NamedExpr};
use crate::bind::{BindErrorCode, Binder, Environment, ExpressionScope, Result, constant_of, fail, invalid, text_of};
use crate::plan::all_rows::arrow_error;
use crate::plan::key_numbers::KeyNumbers;
use crate::plan::{Column, Relation};
use crate::types::KqlType;
use mining::{CodedRows, Segment, covering, most_different};

/// The most rows that are read.
const MAX_ROWS: usize = 1_000_000;
const DEFAULT_THRESHOLD: f64 = 0.05;
const DEFAULT_SIZE_WEIGHT: f64 = 0.5;
const DEFAULT_DIMENSIONS: usize = 5;
/// The least share of rows of which `autocluster` makes a cluster.
const LEAST_CLUSTER: f64 = 0.02;
/// Stands for an argument's default.
const DEFAULT_ARGUMENT: &str = "~";

pub(super) fn is_one(name: &str) -> bool {
    matches!(name, "autocluster" | "basket" | "diffpatterns")
}

/// What an optional argument is.
#[derive(Clone, Copy)]
enum Place {
    /// A share of the rows, or how much the size of a cluster counts.
    Number,
    /// The weights' column.
    Weight,
    /// The most columns that a combination fixes.
    Dimensions,
    /// How many seeds Kusto's search takes; this one takes none.
    Seeds,
}

/// What a plugin is called with.
struct SegmentArguments {
    number: Option<f64>,
    weight: Option<Column>,
    dimensions: Option<usize>,
    /// What stands for any value, by type.
    wildcards: Vec<(KqlType, ScalarValue)>,
}

/// Rows and their numbers.
struct ReadRows {
    columns: Vec<(Column, ArrayRef)>,
    coded: CodedRows,
}

impl<'a> Binder<'a> {
    pub(super) fn segments(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        match call.function.text.as_str() {
            "diffpatterns" => self.diff_patterns(input, call, environment),
            name => self.frequent_segments(input, call, name == "basket", environment),
        }
    }

    fn frequent_segments(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        is_basket: bool,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let last = if is_basket { Place::Dimensions } else { Place::Seeds };
        let order = [Place::Number, Place::Weight, last];
        let arguments = self.segment_arguments(&input, &call.arguments, order, environment)?;
        let rows = self.coded_rows(input, arguments.weight.as_ref(), call, |_, weight| [weight, 0.0])?;
        let total: f64 = rows.coded.weights.iter().map(|[weight, _]| weight).sum();
        let least = if is_basket { arguments.number.unwrap_or(DEFAULT_THRESHOLD) } else { LEAST_CLUSTER };
        let all = rows.columns.len();
        let most = if is_basket { arguments.dimensions.unwrap_or(DEFAULT_DIMENSIONS) } else { all };
        let found = rows.coded.closed_segments(most, |[weight, _]| total > 0.0 && weight / total >= least);
        self.check_time(call)?;
        let Ok(mut found) = found else { return too_many(call) };
        if is_basket {
            found.sort_by(|a, b| b.weights[0].total_cmp(&a.weights[0]));
        } else {
            found = covering(found, &rows.coded, arguments.number.unwrap_or(DEFAULT_SIZE_WEIGHT));
            self.check_time(call)?;
        }
        let counts = found.iter().map(|segment| segment.weights[0]);
        let percents = found.iter().map(|segment| segment.weights[0] / total * 100.0);
        let measures = vec![("Count", count_array(counts)), ("Percent", real_array(percents))];
        self.segment_rows(&rows, &found, measures, &arguments.wildcards)
    }

    fn diff_patterns(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let [split, left, right, rest @ ..] = call.arguments.as_slice() else {
            return invalid(call.function.span, "`diffpatterns` takes a column and two of its values");
        };
        let split = self.column_of(&input, split)?;
        let [left, right] = [left, right].map(|value| self.constant_as_text(value, environment));
        let values = [left?, right?];
        let order = [Place::Weight, Place::Number, Place::Dimensions];
        let arguments = self.segment_arguments(&input, rest, order, environment)?;
        let rows = {
            let text = self.convert(split.typed(), KqlType::String, call.function.span)?;
            let mut outputs: Vec<_> =
                input.columns.iter().filter(|column| column.name != split.name).map(Column::output).collect();
            outputs.push((SPLIT.to_owned(), text));
            let input = self.projected(input, outputs)?;
            let weight = match &arguments.weight {
                Some(weight) => input.column(&weight.name).cloned(),
                None => None,
            };
            self.coded_rows(input, weight.as_ref(), call, |split, weight| match split {
                Some(text) if text == values[0] => [weight, 0.0],
                Some(text) if text == values[1] => [0.0, weight],
                _ => [0.0; 2],
            })?
        };
        let totals = rows.coded.weights.iter().fold([0.0; 2], |[a, b], [left, right]| [a + left, b + right]);
        let percent = |segment: &Segment| {
            [0, 1].map(|at| if totals[at] > 0.0 { segment.weights[at] / totals[at] * 100.0 } else { 0.0 })
        };
        let threshold = arguments.number.unwrap_or(DEFAULT_THRESHOLD);
        let share = |weights: [f64; 2], at: usize| if totals[at] > 0.0 { weights[at] / totals[at] } else { 0.0 };
        let frequent = |weights: [f64; 2]| share(weights, 0).max(share(weights, 1)) >= threshold;
        let most = arguments.dimensions.unwrap_or(rows.columns.len());
        let found = rows.coded.closed_segments(most, frequent);
        self.check_time(call)?;
        let Ok(found) = found else { return too_many(call) };
        let differs = |segment: &Segment| (percent(segment)[0] - percent(segment)[1]).abs() >= threshold * 100.0;
        let found = most_different(found.into_iter().filter(differs).collect(), percent);
        self.check_time(call)?;
        let measures = vec![
            ("CountA", count_array(found.iter().map(|segment| segment.weights[0]))),
            ("CountB", count_array(found.iter().map(|segment| segment.weights[1]))),
            ("PercentA", real_array(found.iter().map(|segment| percent(segment)[0]))),
            ("PercentB", real_array(found.iter().map(|segment| percent(segment)[1]))),
            (
                "PercentDiffAB",
                real_array(found.iter().map(|segment| (percent(segment)[0] - percent(segment)[1]).abs())),
            ),
        ];
        self.segment_rows(&rows, &found, measures, &arguments.wildcards)
    }

    /// Errors: the query is over, and the search for segments broke off.
    fn check_time(&mut self, call: &FunctionCall) -> Result<()> {
        self.spend(0, call.function.span)
    }

    /// Reads the optional arguments: those of `order`, then what stands for any value.
    fn segment_arguments(
        &mut self,
        input: &Relation,
        arguments: &'a [NamedExpr],
        order: [Place; 3],
        environment: &Environment<'a>,
    ) -> Result<SegmentArguments> {
        let mut read = SegmentArguments { number: None, weight: None, dimensions: None, wildcards: Vec::new() };
        for (place, argument) in arguments.iter().enumerate() {
            if let (Some(Place::Weight), ExprKind::Name(_)) = (order.get(place), &argument.expr.kind) {
                read.weight = Some(self.column_of(input, argument)?);
                continue;
            }
            let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
            let Some(value) = constant_of(&typed.expr)? else {
                return invalid(argument.span, "expected a constant");
            };
            if text_of(Some(&value)) == Some(DEFAULT_ARGUMENT) {
                continue;
            }
            let Some(meant) = order.get(place) else {
                read.wildcards.push((typed.kql_type, value));
                continue;
            };
            let real = self.convert(typed, KqlType::Real, argument.span)?;
            match (meant, constant_of(&real.expr)?) {
                (Place::Number, Some(ScalarValue::Float64(Some(share @ 0.0..=1.0)))) => read.number = Some(share),
                (Place::Dimensions, Some(ScalarValue::Float64(Some(most @ 1.0..=64.0)))) => {
                    read.dimensions = Some(most as usize);
                }
                (Place::Seeds, Some(ScalarValue::Float64(Some(_)))) => {}
                (Place::Number, _) => return invalid(argument.span, "expected a number from 0 to 1, or '~'"),
                (Place::Weight, _) => return invalid(argument.span, "expected a column of weights, or '~'"),
                (Place::Dimensions | Place::Seeds, _) => {
                    return invalid(argument.span, "expected a number from 1 to 64, or '~'");
                }
            }
        }
        Ok(read)
    }

    fn constant_as_text(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<String> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let text = self.convert(typed, KqlType::String, argument.span)?;
        match constant_of(&text.expr)? {
            Some(value) => Ok(text_of(Some(&value)).unwrap_or_default().to_owned()),
            None => invalid(argument.span, "expected a constant"),
        }
    }

    /// Reads the rows and numbers their values. `weigh` says how much a row counts, by the value that splits the rows.
    fn coded_rows(
        &mut self,
        input: Relation,
        weight: Option<&Column>,
        call: &'a FunctionCall,
        weigh: impl Fn(Option<&str>, f64) -> [f64; 2],
    ) -> Result<ReadRows> {
        let (mut columns, count) = self.all_rows(input, MAX_ROWS, call.function.span, "rows for a plugin")?;
        let weights: Option<Float64Array> = match weight {
            Some(weight) => {
                let Some(at) = columns.iter().position(|(column, _)| column.field == weight.field) else {
                    return invalid(call.function.span, "the weights' column is not among the rows' columns");
                };
                let (column, array) = columns.remove(at);
                if !column.kql_type.is_numeric() {
                    return invalid(call.function.span, "weights are numbers");
                }
                let reals = cast(&array, &DataType::Float64).map_err(arrow_error)?;
                Some(reals.as_primitive::<Float64Type>().clone())
            }
            None => None,
        };
        let split = columns.iter().position(|(column, _)| column.name == SPLIT).map(|at| columns.remove(at).1);
        let split: Option<StringViewArray> = split.map(|array| array.as_string_view().clone());
        let weight_of = |row: usize| match &weights {
            Some(weights) if weights.is_null(row) => 0.0,
            Some(weights) => weights.value(row),
            None => 1.0,
        };
        let split_of = |row: usize| split.as_ref().filter(|split| !split.is_null(row)).map(|split| split.value(row));
        let weights: Vec<[f64; 2]> = (0..count).map(|row| weigh(split_of(row), weight_of(row))).collect();
        // What is no single value says nothing of what rows have in common, nor does a row that counts nothing.
        columns.retain(|(column, _)| column.kql_type != KqlType::Dynamic);
        let counts: Vec<bool> = weights.iter().map(|[left, right]| left + right > 0.0).collect();
        let mask = BooleanArray::from(counts);
        let mut coded = Vec::with_capacity(columns.len());
        for (_, array) in &mut columns {
            *array = filter(array, &mask).map_err(arrow_error)?;
            coded.push(KeyNumbers::default().numbers(std::slice::from_ref(array))?);
        }
        let weights = weights.into_iter().filter(|[left, right]| left + right > 0.0).collect();
        Ok(ReadRows { coded: CodedRows { columns: coded, weights }, columns })
    }

    fn segment_rows(
        &mut self,
        rows: &ReadRows,
        segments: &[Segment],
        measures: Vec<(&str, ArrayRef)>,
        wildcards: &[(KqlType, ScalarValue)],
    ) -> Result<Relation> {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..segments.len() as i64));
        let mut columns = Vec::new();
        for (name, array) in [("SegmentId", ids)].into_iter().chain(measures) {
            let kql_type = if array.data_type() == &DataType::Float64 { KqlType::Real } else { KqlType::Long };
            columns.push((Column { name: name.to_owned(), field: self.field(name), kql_type }, array));
        }
        for (place, (column, array)) in rows.columns.iter().enumerate() {
            let any = any_value(column.kql_type, wildcards)?;
            let places: Vec<(usize, usize)> = segments
                .iter()
                .map(|segment| match segment.rows.first() {
                    Some(row) if segment.columns.contains(&place) => (0, *row as usize),
                    _ => (1, 0),
                })
                .collect();
            let values = match places.is_empty() {
                true => array.slice(0, 0),
                false => interleave(&[array.as_ref(), any.as_ref()], &places).map_err(arrow_error)?,
            };
            columns.push((column.clone(), values));
        }
        self.made_table(columns, segments.len())
    }
}

/// The column with the value that splits the rows.
const SPLIT: &str = "$split";

/// Returns what stands for any value of a type: what the query says, else an empty string, or null.
fn any_value(kql_type: KqlType, wildcards: &[(KqlType, ScalarValue)]) -> Result<ArrayRef> {
    let to = kql_type.arrow_type();
    match wildcards.iter().find(|(of, _)| *of == kql_type) {
        Some((_, value)) => Ok(cast(&value.to_array()?, &to).map_err(arrow_error)?),
        None if kql_type == KqlType::String => Ok(Arc::new(StringViewArray::from(vec![""]))),
        None => Ok(new_null_array(&to, 1)),
    }
}

fn count_array(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|value| value.round() as i64)))
}

fn real_array(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn too_many<T>(call: &FunctionCall) -> Result<T> {
    let message = "the rows have too many combinations of values; project away columns, or raise the threshold";
    fail(BindErrorCode::TooLarge, call.function.span, message)
}

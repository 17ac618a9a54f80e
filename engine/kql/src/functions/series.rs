//! Functions of numeric arrays. This file has those that work element by element and the sums; the files below have
//! those that need the series as a whole. An element that is not a number counts as null.

mod decomposition;
mod fft;
mod fir;
mod fourier;
mod line_fit;
mod outliers;
mod period_detection;
mod polynomial_fit;
mod statistics;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Value, json};

use super::arguments::{DynamicColumn, FunctionArguments};
use super::comparison::same;
use super::multi_column::MultiColumnFunction;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::check_interrupt;
use crate::types::KqlType;

const REAL: Returns = Returns::Is(KqlType::Real);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const PAIRED: Returns = Returns::By(paired_type);

/// The most multiplications of one filter.
const MAX_STEPS: usize = 100_000_000;
/// The most multiplications of a batch of rows.
const MAX_BATCH_STEPS: usize = 2_000_000_000;

/// The families of the files below.
pub(super) const FAMILIES: &[&[FunctionEntry]] =
    &[decomposition::FUNCTIONS, fir::FUNCTIONS, line_fit::FUNCTIONS, outliers::FUNCTIONS, statistics::FUNCTIONS];

/// The multi-column functions of the files below.
pub(super) const MULTI_COLUMN_FUNCTIONS: &[&[MultiColumnFunction]] = &[
    decomposition::MULTI_COLUMN_FUNCTIONS,
    line_fit::MULTI_COLUMN_FUNCTIONS,
    period_detection::MULTI_COLUMN_FUNCTIONS,
    polynomial_fit::MULTI_COLUMN_FUNCTIONS,
    fourier::MULTI_COLUMN_FUNCTIONS,
    statistics::MULTI_COLUMN_FUNCTIONS,
];

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("series_add", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| number(left + right))),
    entry("series_subtract", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| number(left - right))),
    entry("series_multiply", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| number(left * right))),
    entry("series_divide", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| number(left / right))),
    entry("series_pow", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| number(left.powf(right)))),
    entry("series_equals", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left == right).into())),
    entry("series_not_equals", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left != right).into())),
    entry("series_less", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left < right).into())),
    entry("series_less_equals", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left <= right).into())),
    entry("series_greater", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left > right).into())),
    entry("series_greater_equals", "nn", PAIRED, |arguments| pairwise(arguments, |left, right| (left >= right).into())),
    entry("series_abs", "j", DYNAMIC, |arguments| map_elements(arguments, f64::abs)),
    entry("series_sign", "j", DYNAMIC, |arguments| {
        map_elements(arguments, |real| if real == 0.0 { 0.0 } else { real.signum() })
    }),
    entry("series_ceiling", "j", DYNAMIC, |arguments| map_elements(arguments, f64::ceil)),
    entry("series_floor", "j", DYNAMIC, |arguments| map_elements(arguments, f64::floor)),
    entry("series_exp", "j", DYNAMIC, |arguments| map_elements(arguments, f64::exp)),
    entry("series_log", "j", DYNAMIC, |arguments| map_elements(arguments, f64::ln)),
    entry("series_sin", "j", DYNAMIC, |arguments| map_elements(arguments, f64::sin)),
    entry("series_cos", "j", DYNAMIC, |arguments| map_elements(arguments, f64::cos)),
    entry("series_tan", "j", DYNAMIC, |arguments| map_elements(arguments, f64::tan)),
    entry("series_asin", "j", DYNAMIC, |arguments| map_elements(arguments, f64::asin)),
    entry("series_acos", "j", DYNAMIC, |arguments| map_elements(arguments, f64::acos)),
    entry("series_atan", "j", DYNAMIC, |arguments| map_elements(arguments, f64::atan)),
    entry("series_sum", "j", REAL, |arguments| folded(arguments, |numbers| total(numbers.iter().copied()))),
    entry("series_product", "j", REAL, |arguments| folded(arguments, |numbers| numbers.iter().product())),
    entry("series_magnitude", "j", REAL, |arguments| folded(arguments, magnitude)),
    entry("series_dot_product", "nn", Returns::By(product_type), dot_product),
    entry("series_fill_const", "jx?x", DYNAMIC, fill_const),
    entry("series_fill_forward", "j?x", DYNAMIC, |arguments| fill_from(arguments, false)),
    entry("series_fill_backward", "j?x", DYNAMIC, |arguments| fill_from(arguments, true)),
    entry("series_iir", "jjj", DYNAMIC, iir),
    entry("series_fill_linear", "j?xbn", DYNAMIC, fill_linear),
];

/// Returns a number as JSON, or as a string if JSON has no such number.
fn number(real: f64) -> Value {
    crate::values::real_cell(real)
}

fn reals(elements: &[Value]) -> Vec<Option<f64>> {
    elements.iter().map(Value::as_f64).collect()
}

/// Returns the elements of a row's series; `None` if it is not an array.
fn numbers_at(values: &DynamicColumn, row: usize) -> Option<Vec<Option<f64>>> {
    match values.get(row).as_ref() {
        Value::Array(elements) => Some(reals(elements)),
        _ => None,
    }
}

/// Returns numbers as a dynamic array.
fn array_of(numbers: &[f64]) -> Value {
    numbers.iter().map(|real| number(*real)).collect::<Vec<_>>().into()
}

/// Reads an optional truth value.
fn row_of_bools(arguments: &FunctionArguments, index: usize, default: bool) -> Result<impl Fn(usize) -> bool> {
    let given = if arguments.len() > index { Some(arguments.bools(index)?) } else { None };
    Ok(move |row| given.as_ref().and_then(|given| given.get(row)).unwrap_or(default))
}

/// Returns the elements of a series. A number stands for a series of it.
fn operand(values: &DynamicColumn, row: usize, length: usize) -> Option<Vec<Option<f64>>> {
    match values.get(row).as_ref() {
        Value::Array(elements) => Some(reals(elements)),
        Value::Number(single) => Some(vec![single.as_f64(); length]),
        _ => None,
    }
}

/// One of two series at least is an array; the other one may be a number.
fn paired_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    let is_plain = |kql_type: &KqlType| *kql_type != KqlType::Dynamic;
    if types.iter().all(is_plain) || types.contains(&KqlType::Bool) {
        return Err("a series is dynamic; the other argument is a series or a number".to_owned());
    }
    Ok(KqlType::Dynamic)
}

fn product_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    paired_type(types).map(|_| KqlType::Real)
}

fn pairwise(arguments: &FunctionArguments, compute: impl Fn(f64, f64) -> Value) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_dynamics(|row| {
        let length =
            [&left, &right].iter().filter_map(|values| values.get(row).as_array().map(Vec::len)).max().unwrap_or(1);
        let (Some(left), Some(right)) = (operand(&left, row, length), operand(&right, row, length)) else {
            return Ok(Value::Null);
        };
        let at = |values: &[Option<f64>], index: usize| values.get(index).copied().flatten();
        let pair = |index: usize| match (at(&left, index), at(&right, index)) {
            (Some(left), Some(right)) => compute(left, right),
            _ => Value::Null,
        };
        Ok((0..length).map(pair).collect::<Vec<_>>().into())
    })
}

fn map_elements(arguments: &FunctionArguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let Some(elements) = series.elements(row) else { return Ok(Value::Null) };
        let computed = |element: &Value| element.as_f64().map_or(Value::Null, |real| number(compute(real)));
        Ok(elements.iter().map(computed).collect::<Vec<_>>().into())
    })
}

fn folded(arguments: &FunctionArguments, fold: impl Fn(&[f64]) -> f64) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    arguments.make_reals(|row| {
        let numbers: Vec<f64> = series.elements(row)?.iter().filter_map(Value::as_f64).collect();
        Some(fold(&numbers))
    })
}

fn magnitude(numbers: &[f64]) -> f64 {
    total(numbers.iter().map(|number| number * number)).sqrt()
}

/// Adds up; the sum of none is 0, where that of the standard library is -0.
fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.sum::<f64>() + 0.0
}

fn dot_product(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_reals(|row| {
        let length =
            [&left, &right].iter().filter_map(|values| values.get(row).as_array().map(Vec::len)).min().unwrap_or(1);
        if length == 0 {
            return None;
        }
        let (left, right) = (operand(&left, row, length)?, operand(&right, row, length)?);
        Some(total(left.iter().zip(&right).filter_map(|(left, right)| Some((*left)? * (*right)?))))
    })
}

fn fill_const(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (series, fill) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    let missing = if arguments.len() > 2 { Some(arguments.dynamics(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let Some(mut elements) = series.elements(row) else { return Ok(Value::Null) };
        let missing = missing.as_ref().map_or(Value::Null, |missing| missing.get(row).into_owned());
        for element in elements.iter_mut().filter(|element| same(element, &missing)) {
            *element = fill.get(row).into_owned();
        }
        Ok(elements.into())
    })
}

/// Replaces missing elements by the one before, or after, them.
fn fill_from(arguments: &FunctionArguments, backward: bool) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    let missing = if arguments.len() > 1 { Some(arguments.dynamics(1)?) } else { None };
    arguments.make_dynamics(|row| {
        let Some(mut elements) = series.elements(row) else { return Ok(Value::Null) };
        let missing = missing.as_ref().map_or(Value::Null, |missing| missing.get(row).into_owned());
        if backward {
            elements.reverse();
        }
        let mut last = None;
        for element in &mut elements {
            if same(element, &missing) {
                *element = last.clone().unwrap_or_else(|| element.clone());
            } else {
                last = Some(element.clone());
            }
        }
        if backward {
            elements.reverse();
        }
        Ok(elements.into())
    })
}

/// The multiplications of a batch so far.
#[derive(Default)]
struct Steps(usize);

impl Steps {
    /// Counts the multiplications of a filter over a series; returns an error past the limits.
    fn spend(&mut self, arguments: &FunctionArguments, series: usize, filter: usize) -> Result<()> {
        let steps = series.saturating_mul(filter);
        self.0 = self.0.saturating_add(steps);
        if steps > MAX_STEPS || self.0 > MAX_BATCH_STEPS {
            return Err(arguments.error("the series and its filter are too long"));
        }
        check_interrupt()
    }
}

/// A recursive filter: each result is the sum of the values so far weighted by `forward`, less the results so far
/// weighted by `backward`.
fn iir(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (series, forward, backward) = (arguments.dynamics(0)?, arguments.dynamics(1)?, arguments.dynamics(2)?);
    let mut steps = Steps::default();
    let numbers = |values: Option<Vec<Value>>| -> Option<Vec<f64>> { values?.iter().map(Value::as_f64).collect() };
    arguments.make_dynamics(|row| {
        let parts = numbers(series.elements(row))
            .zip(numbers(forward.elements(row)))
            .zip(numbers(backward.elements(row)).filter(|weights| weights.first().is_some_and(|first| *first != 0.0)));
        let Some(((inputs, forward), backward)) = parts else { return Ok(Value::Null) };
        steps.spend(arguments, inputs.len(), forward.len() + backward.len())?;
        let mut outputs: Vec<f64> = Vec::with_capacity(inputs.len());
        for index in 0..inputs.len() {
            let weighted = |weights: &[f64], values: &[f64], skipped: usize| -> f64 {
                let back = weights.iter().enumerate().skip(skipped).take_while(|(back, _)| *back <= index);
                back.filter_map(|(back, weight)| Some(weight * values.get(index - back)?)).sum()
            };
            let sum = weighted(&forward, &inputs, 0) - weighted(&backward, &outputs, 1);
            outputs.push(sum / backward.first().copied().unwrap_or(1.0));
        }
        Ok(outputs.into_iter().map(number).collect::<Vec<_>>().into())
    })
}

/// Interpolates missing elements linearly between their neighbours. At the edges they become the nearest value if the
/// third argument is true.
fn fill_linear(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    let missing = if arguments.len() > 1 { Some(arguments.dynamics(1)?) } else { None };
    let edges = if arguments.len() > 2 { Some(arguments.bools(2)?) } else { None };
    let constant = if arguments.len() > 3 { Some(arguments.reals(3)?) } else { None };
    arguments.make_dynamics(|row| {
        let Some(elements) = series.elements(row) else { return Ok(Value::Null) };
        let missing = missing.as_ref().map_or(Value::Null, |missing| missing.get(row).into_owned());
        let fills_edges = edges.as_ref().and_then(|edges| edges.get(row)).unwrap_or(true);
        // A null that is given leaves a series of nothing else as it is.
        let constant = match &constant {
            Some(given) => given.get(row),
            None => Some(0.0),
        };
        let is_known = |element: &Value| !same(element, &missing) && element.is_number();
        let are_whole = elements.iter().filter(|element| is_known(element)).all(Value::is_i64);
        let known: Vec<(usize, f64)> = elements
            .iter()
            .enumerate()
            .filter(|(_, element)| is_known(element))
            .filter_map(|(index, element)| Some((index, element.as_f64()?)))
            .collect();
        let filled = |(index, element): (usize, &Value)| {
            if is_known(element) {
                return element.clone();
            }
            let after = known.partition_point(|(known, _)| *known < index);
            let neighbours = (after.checked_sub(1).and_then(|before| known.get(before)), known.get(after));
            let value = match neighbours {
                (Some((from, low)), Some((to, high))) => {
                    low + (high - low) * (index - from) as f64 / (to - from) as f64
                }
                (Some((_, edge)), None) | (None, Some((_, edge))) if fills_edges => *edge,
                (None, None) => return constant.map_or_else(|| element.clone(), number),
                _ => return element.clone(),
            };
            if are_whole { json!(value.trunc() as i64) } else { number(value) }
        };
        Ok(elements.iter().enumerate().map(filled).collect::<Vec<_>>().into())
    })
}

//! Lists with DuckDB's names: an aggregate of each list, and lists sorted as DuckDB sorts them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, PrimitiveBuilder,
    UInt32Array, make_comparator, new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, concat, sort_to_indices, take};
use arrow::datatypes::{
    ArrowNativeTypeOp, DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, Float64Type, Int64Type,
};
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::checked_integers::out_of_range;
use super::definition::{Definition, invalid, unfit};
use super::maps::refuse_long_decimals;
use crate::type_names::sql_name;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let number = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: |types| list_of_numbers(types, DataType::Float64),
        returns: |_| Ok(DataType::Float64),
        compute,
    };
    let element = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: any_list,
        returns: |types| Ok(element_type(types)),
        compute,
    };
    let count = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: any_list,
        returns: |_| Ok(DataType::Int64),
        compute,
    };
    let truth = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: |types| list_of(types, DataType::Boolean),
        returns: |_| Ok(DataType::Boolean),
        compute,
    };
    let bits = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |types| match element_type(&any_list(types)?) {
            element if element.is_integer() || element.is_null() => list_of(types, DataType::Int64),
            other => Err(unfit(format!("a list of integers is needed, not of {}", sql_name(&other)))),
        },
        returns: |_| Ok(DataType::Int64),
        compute,
    };
    let definitions = [
        Definition {
            name: "list_sum",
            aliases: &["array_sum"],
            arguments: 1..=1,
            takes: |types| {
                let summed = match element_type(&any_list(types)?) {
                    DataType::Boolean => DataType::Int64,
                    integer if integer.is_integer() => DataType::Int64,
                    DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
                        DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)
                    }
                    _ => DataType::Float64,
                };
                list_of_numbers(types, summed)
            },
            returns: |types| Ok(element_type(types)),
            compute: |arrays, rows| match element_type(&[arrays[0].data_type().clone()]) {
                DataType::Float64 => numbers(arrays, rows, |values| Some(values.iter().sum())),
                DataType::Decimal128(_, _) => exact_sums::<Decimal128Type>(&arrays[0]),
                _ => exact_sums::<Int64Type>(&arrays[0]),
            },
        },
        number("list_avg", &["array_avg", "list_mean"], |arrays, rows| numbers(arrays, rows, |values| mean(values))),
        number("list_product", &["array_product"], |arrays, rows| {
            numbers(arrays, rows, |values| Some(values.iter().product()))
        }),
        number("list_median", &["array_median"], |arrays, rows| numbers(arrays, rows, |values| median(values))),
        number("list_stddev_samp", &["list_stddev", "list_std"], |arrays, rows| {
            numbers(arrays, rows, |values| variance(values, 1).map(f64::sqrt))
        }),
        number("list_stddev_pop", &[], |arrays, rows| {
            numbers(arrays, rows, |values| variance(values, 0).map(f64::sqrt))
        }),
        number("list_var_samp", &["list_variance"], |arrays, rows| numbers(arrays, rows, |values| variance(values, 1))),
        number("list_var_pop", &[], |arrays, rows| numbers(arrays, rows, |values| variance(values, 0))),
        number("list_mad", &["array_mad"], |arrays, rows| {
            numbers(arrays, rows, |values| {
                let middle = median(values)?;
                median(&mut values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>())
            })
        }),
        number("list_skewness", &["array_skewness"], |arrays, rows| {
            numbers(arrays, rows, |values| {
                let (count, spread) = (values.len() as f64, variance(values, 0)?);
                let skew = moment_of(values, 3)? / spread.powf(1.5);
                (values.len() > 2 && spread > 0.0).then(|| (count * (count - 1.0)).sqrt() / (count - 2.0) * skew)
            })
        }),
        number("list_kurtosis", &["array_kurtosis"], |arrays, rows| {
            numbers(arrays, rows, |values| {
                let (count, spread) = (values.len() as f64, variance(values, 0)?);
                let excess = moment_of(values, 4)? / spread.powi(2) - 3.0;
                let factor = (count - 1.0) / ((count - 2.0) * (count - 3.0));
                (values.len() > 3 && spread > 0.0).then_some(factor * ((count + 1.0) * excess + 6.0))
            })
        }),
        number("list_kurtosis_pop", &["array_kurtosis_pop"], |arrays, rows| {
            numbers(arrays, rows, |values| {
                let spread = variance(values, 0)?;
                let excess = moment_of(values, 4)? / spread.powi(2) - 3.0;
                (values.len() > 1 && spread > 0.0).then_some(excess)
            })
        }),
        bits("list_bit_and", |arrays, _| folded(arrays, |left, right| left & right)),
        bits("list_bit_or", |arrays, _| folded(arrays, |left, right| left | right)),
        bits("list_bit_xor", |arrays, _| folded(arrays, |left, right| left ^ right)),
        Definition {
            name: "list_entropy",
            aliases: &["array_entropy"],
            arguments: 1..=1,
            takes: any_list,
            returns: |_| Ok(DataType::Float64),
            compute: |arrays, _| {
                let entropy = |list: ArrayRef| -> Result<f64> {
                    let mut counts: Vec<usize> = occurrences(&list)?.into_iter().map(|(_, count)| count).collect();
                    // In one order, so that the sum is the same each time.
                    counts.sort_unstable();
                    let all = counts.iter().sum::<usize>() as f64;
                    let part = |count: &usize| *count as f64 / all;
                    Ok(counts.iter().map(|count| -part(count) * part(count).log2()).sum::<f64>().max(0.0))
                };
                let found = lists(&arrays[0]).map(|list| list.map(entropy).transpose());
                Ok(Arc::new(Float64Array::from(found.collect::<Result<Vec<_>>>()?)))
            },
        },
        count("list_count", &["array_count"], |arrays, rows| {
            counts(arrays, rows, |list| Ok((list.len() - list.logical_null_count()) as i64))
        }),
        count("list_unique", &["array_unique"], |arrays, rows| {
            counts(arrays, rows, |list| Ok(occurrences(list)?.len() as i64))
        }),
        element("list_any_value", &["array_any_value"], |arrays, rows| {
            chosen(arrays, rows, |list| Ok((0..list.len()).find(|index| list.is_valid(*index))))
        }),
        element("list_mode", &["array_mode"], |arrays, rows| {
            chosen(arrays, rows, |list| {
                // The first of the most frequent ones.
                let best =
                    occurrences(list)?.into_iter().max_by_key(|(first, count)| (*count, std::cmp::Reverse(*first)));
                Ok(best.map(|(first, _)| first))
            })
        }),
        truth("list_bool_and", &["array_bool_and"], |arrays, rows| {
            truths(arrays, rows, |mut values| values.all(|value| value))
        }),
        truth("list_bool_or", &["array_bool_or"], |arrays, rows| {
            truths(arrays, rows, |mut values| values.any(|value| value))
        }),
        Definition {
            name: "list_sort",
            aliases: &["array_sort"],
            arguments: 1..=3,
            takes: |types| {
                let mut taken = any_list(types.get(..1).unwrap_or_default())?;
                taken.extend(vec![DataType::Utf8; types.len().saturating_sub(1)]);
                Ok(taken)
            },
            returns: |types| types.first().cloned().ok_or_else(|| unfit("list_sort takes a list".into())),
            compute: sorted,
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn any_list(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)] => {
            Ok(vec![DataType::List(Arc::clone(field))])
        }
        [DataType::Null] => Ok(vec![DataType::new_list(DataType::Null, true)]),
        [other] => Err(unfit(format!("a list is needed, not {}", sql_name(other)))),
        _ => Err(unfit("a list is needed".into())),
    }
}

fn list_of(types: &[DataType], element: DataType) -> Result<Vec<DataType>> {
    any_list(types)?;
    Ok(vec![DataType::List(Arc::new(Field::new_list_field(element, true)))])
}

/// As [`list_of`], of what is no list of times, which Arrow would read as numbers of a unit that nobody sees.
fn list_of_numbers(types: &[DataType], element: DataType) -> Result<Vec<DataType>> {
    match element_type(&any_list(types)?) {
        time if time.is_temporal() => Err(unfit(format!(
            "a list of numbers is needed, not of {}; of times write their seconds: list_transform(list, x -> epoch(x))",
            sql_name(&time)
        ))),
        _ => list_of(types, element),
    }
}

fn element_type(types: &[DataType]) -> DataType {
    match types {
        [DataType::List(field), ..] => field.data_type().clone(),
        _ => DataType::Null,
    }
}

/// Returns the lists of an array, without copying their values.
fn lists(array: &ArrayRef) -> impl Iterator<Item = Option<ArrayRef>> + '_ {
    array.as_list::<i32>().iter()
}

/// Returns the sum of the values of each list that are not null; null where there is none. Errors: a sum that its type has no
/// place for.
fn exact_sums<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<ArrayRef> {
    let data_type = array.as_list::<i32>().value_type();
    let mut sums = PrimitiveBuilder::<T>::with_capacity(array.len()).with_data_type(data_type.clone());
    for list in lists(array) {
        let Some(list) = list.filter(|list| list.null_count() < list.len()) else {
            sums.append_null();
            continue;
        };
        let mut sum = T::Native::default();
        for value in list.as_primitive::<T>().iter().flatten() {
            sum = ArrowNativeTypeOp::add_checked(sum, value)
                .map_err(|_| out_of_range(&data_type, "the sum of a list"))?;
        }
        sums.append_value(sum);
    }
    let sums: ArrayRef = Arc::new(sums.finish());
    refuse_long_decimals(&sums)?;
    Ok(sums)
}

/// Computes a number of the values of each list that are not null; null where there is none.
fn numbers(arrays: &[ArrayRef], rows: usize, of: fn(&mut Vec<f64>) -> Option<f64>) -> Result<ArrayRef> {
    let mut results = Vec::with_capacity(rows);
    for list in lists(&arrays[0]) {
        let mut values: Vec<f64> = list
            .iter()
            .flat_map(|list| list.as_primitive::<Float64Type>().iter().flatten().collect::<Vec<_>>())
            .collect();
        results.push(if values.is_empty() { None } else { of(&mut values) });
    }
    Ok(Arc::new(Float64Array::from(results)))
}

/// Joins the integers of each list that are not null; null where there is none.
fn folded(arrays: &[ArrayRef], join: fn(i64, i64) -> i64) -> Result<ArrayRef> {
    let of_list =
        |list: Option<ArrayRef>| list.and_then(|list| list.as_primitive::<Int64Type>().iter().flatten().reduce(join));
    Ok(Arc::new(lists(&arrays[0]).map(of_list).collect::<Int64Array>()))
}

fn mean(values: &[f64]) -> Option<f64> {
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => Some((values.get(middle - 1)? + values.get(middle)?) / 2.0),
        _ => values.get(middle).copied(),
    }
}

fn variance(values: &[f64], lost: usize) -> Option<f64> {
    let mean = mean(values)?;
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > lost).then(|| sum / (values.len() - lost) as f64)
}

fn moment_of(values: &[f64], power: i32) -> Option<f64> {
    let mean = mean(values)?;
    Some(values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / values.len() as f64)
}

fn counts(arrays: &[ArrayRef], _rows: usize, of: fn(&ArrayRef) -> Result<i64>) -> Result<ArrayRef> {
    let counts = lists(&arrays[0]).map(|list| list.as_ref().map(of).transpose()).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Int64Array::from(counts)))
}

/// Returns where each distinct value is first, and how often it is there. Nulls do not count.
fn occurrences(list: &ArrayRef) -> Result<Vec<(usize, usize)>> {
    let converter = RowConverter::new(vec![SortField::new(list.data_type().clone())])?;
    let rows = converter.convert_columns(&[Arc::clone(list)])?;
    // A list of the type NULL says of none of its values that it is null.
    let nulls = list.logical_nulls();
    let is_known = |index: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index));
    // Equal ones stand together, the first of them first: a table of all values would take many times what they do.
    let mut places: Vec<usize> = (0..list.len()).filter(|index| is_known(*index)).collect();
    places.sort_unstable_by(|one, other| rows.row(*one).cmp(&rows.row(*other)).then(one.cmp(other)));
    let same = places.chunk_by(|one, other| rows.row(*one) == rows.row(*other));
    Ok(same.filter_map(|same| Some((*same.first()?, same.len()))).collect())
}

/// Returns one value of each list.
fn chosen(arrays: &[ArrayRef], rows: usize, of: fn(&ArrayRef) -> Result<Option<usize>>) -> Result<ArrayRef> {
    let list_array = arrays[0].as_list::<i32>();
    let mut indices = Vec::with_capacity(rows);
    for (row, list) in lists(&arrays[0]).enumerate() {
        let at = list.as_ref().map(of).transpose()?.flatten();
        let offset = list_array.value_offsets().get(row).copied().unwrap_or_default();
        indices.push(at.map(|at| offset as u32 + at as u32));
    }
    Ok(take(list_array.values(), &UInt32Array::from(indices), None)?)
}

fn truths(arrays: &[ArrayRef], _rows: usize, of: fn(Box<dyn Iterator<Item = bool> + '_>) -> bool) -> Result<ArrayRef> {
    let of_list = |list: Option<ArrayRef>| {
        let list = list.filter(|list| list.null_count() < list.len())?;
        let result = of(Box::new(list.as_boolean().iter().flatten()));
        Some(result)
    };
    Ok(Arc::new(lists(&arrays[0]).map(of_list).collect::<BooleanArray>()))
}

/// Returns how the list of a row is sorted, by the words behind it: by default upwards with nulls last.
pub(super) fn sort_options(arrays: &[ArrayRef], row: usize) -> Result<SortOptions> {
    let word = |index: usize| {
        let words = arrays.get(index).map(|array| array.as_string::<i32>());
        words.filter(|words| words.is_valid(row)).map(|words| words.value(row).trim().to_uppercase())
    };
    let descending = match word(1).as_deref() {
        None | Some("ASC" | "ASCENDING") => false,
        Some("DESC" | "DESCENDING") => true,
        Some(other) => return Err(invalid(format!("lists are sorted ASC or DESC, not {other}"))),
    };
    let nulls_first = match word(2).as_deref() {
        None | Some("NULLS LAST") => false,
        Some("NULLS FIRST") => true,
        Some(other) => return Err(invalid(format!("nulls stand NULLS FIRST or NULLS LAST, not {other}"))),
    };
    Ok(SortOptions { descending, nulls_first })
}

/// Returns the places of a list's items in their order. A null within an item is a value after all others, wherever nulls that
/// stand alone go; Arrow's sort puts both there.
pub(super) fn places_in_order(list: &ArrayRef, options: SortOptions) -> Result<UInt32Array> {
    let nulls_last = SortOptions { descending: false, nulls_first: false };
    let order = match list.data_type().is_nested() {
        true => make_comparator(list, list, nulls_last).ok(),
        false => None,
    };
    let Some(order) = order else { return Ok(sort_to_indices(list, Some(options), None)?) };
    let places = 0..u32::try_from(list.len()).unwrap_or(u32::MAX);
    let (mut values, nulls): (Vec<u32>, Vec<u32>) = places.partition(|place| list.is_valid(*place as usize));
    values.sort_by(|left, right| {
        let (left, right) = (*left as usize, *right as usize);
        if options.descending { order(right, left) } else { order(left, right) }
    });
    let (first, last) = if options.nulls_first { (nulls, values) } else { (values, nulls) };
    Ok(first.into_iter().chain(last).collect::<Vec<_>>().into())
}

/// Sorts each list.
fn sorted(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let list_array = arrays[0].as_list::<i32>();
    let DataType::List(field) = list_array.data_type() else { return Err(unfit("list_sort takes a list".into())) };
    let mut parts = Vec::with_capacity(rows);
    let mut lengths = Vec::with_capacity(rows);
    for (row, list) in lists(&arrays[0]).enumerate() {
        let Some(list) = list else {
            lengths.push(0);
            continue;
        };
        let indices = places_in_order(&list, sort_options(arrays, row)?)?;
        let part = take(&list, &indices, None)?;
        lengths.push(part.len());
        parts.push(part);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() { new_empty_array(field.data_type()) } else { concat(&parts)? };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(Arc::clone(field), offsets, values, list_array.nulls().cloned())))
}

//! Lists with DuckDB's names: chosen by positions or by truth values, and the order of their items.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{Definition, invalid, unfit};
use super::lists::{places_in_order, sort_options};
use crate::limits::{QueryUsage, array_bytes, has_fixed_width, largest_value};
use crate::type_names::sql_name;

/// `list[from:to:step]`. DataFusion 54 has nothing where a step backwards begins behind the list or ends before it.
pub(crate) const STEPPED_SLICE: &str = "stepped_slice";
/// The most bytes of items that a call chooses.
const MAX_BYTES: usize = 256 << 20;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definitions = [
        Definition {
            name: "list_select",
            aliases: &["array_select"],
            arguments: 2..=2,
            takes: |types| list_and(types, DataType::Int64),
            returns: |types| types.first().cloned().ok_or_else(|| unfit("list_select takes a list".into())),
            compute: |arrays, _| {
                let picks = arrays[1].as_list::<i32>();
                let of = |row: usize, length: usize| {
                    let picked = picks.value(row);
                    let at = |position: Option<i64>| {
                        let index = usize::try_from(position?.checked_sub(1)?).ok()?;
                        (index < length).then_some(index)
                    };
                    Ok(picked.as_primitive::<Int64Type>().iter().map(at).collect())
                };
                chosen(arrays, of, check_copies)
            },
        },
        Definition {
            name: "list_where",
            aliases: &["array_where"],
            arguments: 2..=2,
            takes: |types| list_and(types, DataType::Boolean),
            returns: |types| types.first().cloned().ok_or_else(|| unfit("list_where takes a list".into())),
            compute: |arrays, _| {
                let picks = arrays[1].as_list::<i32>();
                let of = |row: usize, length: usize| {
                    let picked = picks.value(row);
                    let picked = picked.as_boolean();
                    if picked.null_count() > 0 {
                        return Err(invalid("list_where takes truth values, and none of them null".into()));
                    }
                    let is_chosen = |(index, wanted): (usize, Option<bool>)| {
                        (wanted == Some(true)).then_some(Some(index).filter(|index| *index < length))
                    };
                    Ok(picked.iter().enumerate().filter_map(is_chosen).collect())
                };
                chosen(arrays, of, check_copies)
            },
        },
        Definition {
            name: "list_grade_up",
            aliases: &["array_grade_up", "grade_up"],
            arguments: 1..=3,
            takes: |types| {
                let mut taken = vec![plain_list(types)?];
                taken.extend(vec![DataType::Utf8; types.len().saturating_sub(1)]);
                Ok(taken)
            },
            returns: |_| Ok(DataType::new_list(DataType::Int64, true)),
            compute: grades,
        },
        Definition {
            name: STEPPED_SLICE,
            aliases: &[],
            arguments: 4..=4,
            takes: |types| Ok(vec![plain_list(types)?, DataType::Int64, DataType::Int64, DataType::Int64]),
            returns: |types| types.first().cloned().ok_or_else(|| unfit("a part is taken of a list".into())),
            compute: stepped,
        },
        Definition {
            name: "trim_array",
            aliases: &[],
            arguments: 2..=2,
            takes: |types| Ok(vec![plain_list(types)?, DataType::Int64]),
            returns: |types| types.first().cloned().ok_or_else(|| unfit("trim_array takes a list".into())),
            compute: trimmed,
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn plain_list(types: &[DataType]) -> Result<DataType> {
    match types.first() {
        Some(DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)) => {
            Ok(DataType::List(Arc::clone(field)))
        }
        Some(other) => Err(unfit(format!("a list is needed, not {}", sql_name(other)))),
        None => Err(unfit("a list is needed".into())),
    }
}

fn list_and(types: &[DataType], item: DataType) -> Result<Vec<DataType>> {
    Ok(vec![plain_list(types)?, DataType::List(Arc::new(Field::new_list_field(item, true)))])
}

/// Returns lists of the items that are chosen of each, by its row and its length; a place that there is not is null, and so is the
/// list where an argument is. `check` may refuse what would be made.
fn chosen(
    arrays: &[ArrayRef],
    of: impl Fn(usize, usize) -> Result<Vec<Option<usize>>>,
    check: impl Fn(&ArrayRef, &[Option<u32>]) -> Result<()>,
) -> Result<ArrayRef> {
    let lists = arrays[0].as_list::<i32>();
    let DataType::List(field) = lists.data_type() else { return Err(unfit("a list is needed".into())) };
    let (mut indices, mut lengths, mut is_valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..lists.len() {
        let is_known = arrays.iter().all(|array| array.is_valid(row));
        let found = if is_known { of(row, lists.value(row).len())? } else { Vec::new() };
        let starts = lists.value_offsets()[row] as usize;
        lengths.push(found.len());
        indices.extend(found.iter().map(|index| index.and_then(|index| u32::try_from(starts + index).ok())));
        is_valid.push(is_known);
    }
    let values = match indices.is_empty() {
        true => new_empty_array(field.data_type()),
        false => {
            check(lists.values(), &indices)?;
            take(lists.values(), &UInt32Array::from(indices), None)?
        }
    };
    let item = Arc::new(Field::new_list_field(field.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::new(item, offsets, values, Some(is_valid.into()));
    Ok(arrow::compute::cast(&list, lists.data_type())?)
}

/// Returns an error where the items that are chosen take more than a call may make: one long item can be chosen a million times.
fn check_copies(values: &ArrayRef, indices: &[Option<u32>]) -> Result<()> {
    if has_fixed_width(values.data_type()) || largest_value(values.as_ref()).saturating_mul(indices.len()) <= MAX_BYTES
    {
        return Ok(());
    }
    let mut bytes = 0;
    for index in indices.iter().flatten() {
        bytes += array_bytes(values.slice(*index as usize, 1).as_ref());
        if bytes > MAX_BYTES {
            return Err(invalid(format!("list_select makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20)));
        }
    }
    Ok(QueryUsage::admit_current(bytes)?)
}

/// Returns the items of each list from one place to another, each so many places from the one before. Errors: a step of none.
fn stepped(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let [from, to, steps] = [1, 2, 3].map(|place| arrays[place].as_primitive::<Int64Type>());
    chosen(arrays, |row, length| places_of_step(length, from.value(row), to.value(row), steps.value(row)), once_each)
}

/// Returns the places, from 0, of a list's items between two of its bounds, as DuckDB has them: they are counted from 1, or from
/// the end where they are negative. What is before the first of them, or behind the last, is cut off.
fn places_of_step(length: usize, from: i64, to: i64, step: i64) -> Result<Vec<Option<usize>>> {
    let length = length as i64;
    let place = |bound: i64| if bound < 0 { bound.saturating_add(length + 1) } else { bound };
    let (mut at, end) = match step {
        0 => return Err(invalid("the step of a slice is not 0; write list[1:9:2]".into())),
        1.. => (place(from).max(1), place(to).min(length)),
        // It begins in the list or behind it, and ends in the list or before it.
        _ if place(from) < 1 || place(to) > length => return Ok(Vec::new()),
        _ => (place(from).min(length), place(to).max(1)),
    };
    let is_within = |at: i64| if step > 0 { at <= end } else { at >= end };
    let mut places = Vec::new();
    while is_within(at) {
        places.extend(usize::try_from(at - 1).ok().map(Some));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(places)
}

/// Returns lists without so many of their last items. Errors: a number of items that a list does not have.
fn trimmed(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let counts = arrays[1].as_primitive::<Int64Type>();
    let kept = |row: usize, length: usize| {
        let count = counts.value(row);
        let kept = usize::try_from(count).ok().and_then(|count| length.checked_sub(count));
        let places = kept.map(|kept| (0..kept).map(Some).collect());
        places.ok_or_else(|| {
            invalid(format!(
                "trim_array takes 0 to {length} items off this list, not {count}; write list_slice(list, 1, n) for the first n"
            ))
        })
    };
    chosen(arrays, kept, once_each)
}

/// Refuses nothing: of items that are chosen once at most no more is made than there is.
fn once_each(_values: &ArrayRef, _indices: &[Option<u32>]) -> Result<()> {
    Ok(())
}

/// Returns the positions of the items in their order.
fn grades(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let lists = arrays[0].as_list::<i32>();
    let (mut positions, mut lengths) = (Vec::new(), Vec::new());
    for row in 0..lists.len() {
        let order = match lists.is_valid(row) {
            true => places_in_order(&lists.value(row), sort_options(arrays, row)?)?,
            false => UInt32Array::from(Vec::<u32>::new()),
        };
        lengths.push(order.len());
        positions.extend(order.values().iter().map(|index| i64::from(*index) + 1));
    }
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let values: ArrayRef = Arc::new(Int64Array::from(positions));
    Ok(Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, lists.nulls().cloned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_within_the_list() {
        for (from, to, step, expected) in [
            (1, 5, 2, vec![0, 2, 4]),
            (-9, -1, 3, vec![0, 3]),
            (0, 7, 1, vec![0, 1, 2, 3, 4]),
            (7, 9, 1, vec![]),
            (7, 1, -2, vec![4, 2, 0]),
            (4, 0, -1, vec![3, 2, 1, 0]),
            (-1, -9, -1, vec![4, 3, 2, 1, 0]),
            (3, 5, -1, vec![]),
            (5, 7, -1, vec![]),
            (0, 1, -1, vec![]),
            (7, 5, i64::MIN, vec![4]),
        ] {
            let places: Vec<usize> = places_of_step(5, from, to, step).unwrap().into_iter().flatten().collect();
            assert_eq!(places, expected, "{from}:{to}:{step}");
        }
        assert!(places_of_step(5, 1, 5, 0).is_err());
        assert!(places_of_step(0, 1, -1, -1).unwrap().is_empty());
    }
}

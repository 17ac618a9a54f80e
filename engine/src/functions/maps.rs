//! Maps with DuckDB's names: made of lists or of pairs, and joined.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, MapArray, PrimitiveArray, StructArray, UInt32Array, new_empty_array,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{interleave, take};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Field, FieldRef, Fields,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit,
};
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{ANY_NUMBER, Definition, invalid, unfit};
use crate::type_names::sql_name;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definitions = [
        Definition {
            name: MAP,
            aliases: &[],
            arguments: 2..=2,
            takes: |types| types.iter().map(list_or_null).collect(),
            returns: |types| match types {
                [keys, values] => Ok(map_type(items(keys)?.data_type().clone(), items(values)?.data_type().clone())),
                _ => Err(unfit("map takes a list of keys and a list of values".into())),
            },
            compute: of_lists,
        },
        Definition {
            name: "map_from_entries",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [list @ (DataType::List(_) | DataType::Null)] => Ok(vec![DataType::List(items(list)?)]),
                [other] => Err(unfit(format!("map_from_entries takes a list of pairs, not {}", sql_name(other)))),
                _ => Err(unfit("map_from_entries takes a list of pairs".into())),
            },
            returns: |types| match types {
                [DataType::List(field)] => match field.data_type() {
                    DataType::Struct(pair) if pair.len() == 2 => {
                        Ok(map_type(pair[0].data_type().clone(), pair[1].data_type().clone()))
                    }
                    DataType::Null => Ok(map_type(DataType::Null, DataType::Null)),
                    other => Err(unfit(format!("map_from_entries takes a list of pairs, not of {}", sql_name(other)))),
                },
                _ => Err(unfit("map_from_entries takes a list of pairs".into())),
            },
            compute: from_entries,
        },
        Definition {
            name: "map_concat",
            aliases: &[],
            arguments: 1..=ANY_NUMBER,
            takes: |types| match (types.first(), types.iter().find(|other| !is_map_or_null(other))) {
                (Some(_), None) => Ok(vec![joined_type(types)?; types.len()]),
                (_, Some(other)) => Err(unfit(format!("map_concat takes maps, not {}", sql_name(other)))),
                (None, None) => Err(unfit("map_concat takes maps".into())),
            },
            returns: joined_type,
            compute: joined,
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// The name of the function that makes a map of two lists, in the place of DataFusion 54's: that one reads a list that is
/// the same in all rows as if it were of the first row only.
pub(crate) const MAP: &str = "map";

/// Returns the field of a list's items; of a null, that of none. Errors: what is no list.
fn items(list: &DataType) -> Result<FieldRef> {
    match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => Ok(Arc::clone(field)),
        DataType::Null => Ok(Arc::new(Field::new_list_field(DataType::Null, true))),
        other => Err(unfit(format!("a map is made of lists, not of {}", sql_name(other)))),
    }
}

/// Returns the type in which a map's list is taken: a null without a type stays one, since a cast would make it an item.
fn list_or_null(list: &DataType) -> Result<DataType> {
    if list.is_null() { Ok(DataType::Null) } else { items(list).map(DataType::List) }
}

fn is_map_or_null(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Map(_, _) | DataType::Null)
}

/// Returns the type of maps that are joined: that of the first one which is not empty by its type.
fn joined_type(types: &[DataType]) -> Result<DataType> {
    let has_keys = |data_type: &&DataType| match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.first().is_some_and(|key| !key.data_type().is_null()),
            _ => false,
        },
        _ => false,
    };
    let first = types.iter().find(has_keys).or_else(|| types.iter().find(|other| !other.is_null()));
    Ok(first.cloned().unwrap_or_else(|| map_type(DataType::Null, DataType::Null)))
}

/// Returns the type of maps with these keys and values.
pub(crate) fn map_type(key: DataType, value: DataType) -> DataType {
    let fields = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

/// Makes a map of a list of keys and a list of values, a null where one of them is.
fn of_lists(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if arrays.iter().any(|list| list.data_type().is_null()) {
        let [keys, values] = [&arrays[0], &arrays[1]].map(|list| items(list.data_type()));
        return Ok(new_null_array(&map_type(keys?.data_type().clone(), values?.data_type().clone()), rows));
    }
    let (keys, values) = (arrays[0].as_list::<i32>(), arrays[1].as_list::<i32>());
    let nulls = NullBuffer::union(keys.nulls(), values.nulls());
    let (mut key_places, mut value_places) = (Vec::new(), Vec::new());
    let mut chosen = Vec::with_capacity(rows);
    for row in 0..rows {
        let start = key_places.len();
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            if keys.value_length(row) != values.value_length(row) {
                let (keys, values) = (keys.value_length(row), values.value_length(row));
                return Err(invalid(format!("a map has a value for each key, and not {values} for {keys}")));
            }
            let places = |offsets: &[i32]| offsets[row] as u32..offsets[row + 1] as u32;
            key_places.extend(places(keys.value_offsets()));
            value_places.extend(places(values.value_offsets()));
        }
        chosen.push((start..key_places.len()).map(|place| (0, place)).collect());
    }
    let keys = take(keys.values(), &UInt32Array::from(key_places), None)?;
    let values = take(values.values(), &UInt32Array::from(value_places), None)?;
    maps(&[&keys], &[&values], chosen, nulls, Repeated::Refused)
}

fn from_entries(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let lists = arrays[0].as_list::<i32>();
    if lists.value_type().is_null() {
        if (0..rows).any(|row| lists.is_valid(row) && lists.value_length(row) > 0) {
            return Err(invalid("a pair of a map may not be null".into()));
        }
        let none = new_empty_array(&DataType::Null);
        return maps(&[&none], &[&none], vec![Vec::new(); rows], lists.nulls().cloned(), Repeated::Refused);
    }
    let pairs = lists.values().as_struct();
    let mut chosen = Vec::with_capacity(rows);
    for row in 0..rows {
        let offsets = lists.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        chosen.push(if lists.is_null(row) { Vec::new() } else { (start..end).map(|index| (0, index)).collect() });
    }
    let [keys, values] = pairs.columns() else { return Err(unfit("map_from_entries takes a list of pairs".into())) };
    maps(&[keys], &[values], chosen, lists.nulls().cloned(), Repeated::Refused)
}

fn joined(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all: Vec<&MapArray> = arrays.iter().map(|array| array.as_map()).collect();
    let mut chosen = Vec::with_capacity(rows);
    let mut is_valid = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut entries = Vec::new();
        for (index, map) in all.iter().enumerate().filter(|(_, map)| map.is_valid(row)) {
            let offsets = map.value_offsets();
            entries.extend((offsets[row] as usize..offsets[row + 1] as usize).map(|entry| (index, entry)));
        }
        chosen.push(entries);
        is_valid.push(all.iter().any(|map| map.is_valid(row)));
    }
    let keys: Vec<&ArrayRef> = all.iter().map(|map| map.keys()).collect();
    let values: Vec<&ArrayRef> = all.iter().map(|map| map.values()).collect();
    maps(&keys, &values, chosen, Some(NullBuffer::from(is_valid)), Repeated::LastWins)
}

/// What two entries of one key are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Repeated {
    Refused,
    LastWins,
}

/// Returns maps of the entries that are chosen for each row, by which array they are in and where.
fn maps(
    keys: &[&ArrayRef],
    values: &[&ArrayRef],
    chosen: Vec<Vec<(usize, usize)>>,
    nulls: Option<NullBuffer>,
    repeated: Repeated,
) -> Result<ArrayRef> {
    let (Some(first_keys), Some(first_values)) = (keys.first(), values.first()) else {
        return Err(unfit("a map is needed".into()));
    };
    let converter = RowConverter::new(vec![SortField::new(first_keys.data_type().clone())])?;
    let rows = keys.iter().map(|keys| converter.convert_columns(&[Arc::clone(keys)])).collect::<Result<Vec<_>, _>>()?;
    let (mut kept, mut lengths) = (Vec::new(), Vec::with_capacity(chosen.len()));
    for entries in chosen {
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(entries.len());
        let starts = kept.len();
        for (array, index) in entries {
            // An array of the type NULL says of none of its values that it is null.
            if keys[array].is_null(index) || keys[array].data_type().is_null() {
                return Err(invalid("a key of a map may not be null".into()));
            }
            match places.get(rows[array].row(index).data()) {
                Some(_) if repeated == Repeated::Refused => {
                    return Err(invalid("the keys of a map have to be different".into()));
                }
                // The place is that of the first one.
                Some(place) => kept[*place] = (array, index),
                None => {
                    places.insert(rows[array].row(index).data(), kept.len());
                    kept.push((array, index));
                }
            }
        }
        lengths.push(kept.len() - starts);
    }
    let taken = |arrays: &[&ArrayRef], first: &ArrayRef| -> Result<ArrayRef> {
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        Ok(if kept.is_empty() { new_empty_array(first.data_type()) } else { interleave(&arrays, &kept)? })
    };
    let (keys, values) = (taken(keys, first_keys)?, taken(values, first_values)?);
    let DataType::Map(entries, _) = map_type(keys.data_type().clone(), values.data_type().clone()) else {
        return Err(unfit("a map is needed".into()));
    };
    let fields: &[FieldRef] = match entries.data_type() {
        DataType::Struct(fields) => fields,
        _ => &[],
    };
    let pairs = StructArray::try_new(fields.to_vec().into(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(&entries), OffsetBuffer::from_lengths(lengths), pairs, nulls, false)?))
}

/// Refuses what SQL makes none of, by itself or within other values: maps in which a key is twice, of which DuckDB reads no
/// table, times of day that are not within a day, which nobody could read again, and decimals of more digits than their type
/// has, of which a file would keep other digits.
pub(crate) fn refuse_impossible_values(values: &ArrayRef) -> Result<()> {
    match values.data_type() {
        DataType::Map(_, _) => {
            let map = values.as_map();
            if (0..map.len()).any(|row| map.value_length(row) > 1) {
                let converter = RowConverter::new(vec![SortField::new(map.key_type().clone())])?;
                let keys = converter.convert_columns(&[Arc::clone(map.keys())])?;
                let mut seen: HashSet<&[u8]> = HashSet::new();
                for row in (0..map.len()).filter(|row| map.is_valid(*row)) {
                    seen.clear();
                    let from = map.value_offsets()[row] as usize;
                    if !(from..from + map.value_length(row) as usize).all(|at| seen.insert(keys.row(at).data())) {
                        return Err(invalid("the keys of a map have to be different".into()));
                    }
                }
            }
            refuse_impossible_values(map.values())
        }
        DataType::Struct(_) => values.as_struct().columns().iter().try_for_each(refuse_impossible_values),
        DataType::List(_) => refuse_impossible_values(values.as_list::<i32>().values()),
        DataType::LargeList(_) => refuse_impossible_values(values.as_list::<i64>().values()),
        DataType::FixedSizeList(_, _) => refuse_impossible_values(values.as_fixed_size_list().values()),
        DataType::ListView(_) => refuse_impossible_values(values.as_list_view::<i32>().values()),
        DataType::LargeListView(_) => refuse_impossible_values(values.as_list_view::<i64>().values()),
        DataType::Dictionary(_, _) => refuse_impossible_values(values.as_any_dictionary().values()),
        DataType::RunEndEncoded(ends, _) => refuse_impossible_values(match ends.data_type() {
            DataType::Int16 => values.as_run::<Int16Type>().values(),
            DataType::Int32 => values.as_run::<Int32Type>().values(),
            _ => values.as_run::<Int64Type>().values(),
        }),
        DataType::Decimal32(precision, scale) => within_digits::<Decimal32Type>(values, *precision, *scale),
        DataType::Decimal64(precision, scale) => within_digits::<Decimal64Type>(values, *precision, *scale),
        DataType::Decimal128(precision, scale) => within_digits::<Decimal128Type>(values, *precision, *scale),
        DataType::Decimal256(precision, scale) => within_digits::<Decimal256Type>(values, *precision, *scale),
        DataType::Time32(TimeUnit::Second) => within_a_day(values.as_primitive::<Time32SecondType>(), 1),
        DataType::Time32(TimeUnit::Millisecond) => within_a_day(values.as_primitive::<Time32MillisecondType>(), 1_000),
        DataType::Time64(TimeUnit::Microsecond) => {
            within_a_day(values.as_primitive::<Time64MicrosecondType>(), 1_000_000)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            within_a_day(values.as_primitive::<Time64NanosecondType>(), 1_000_000_000)
        }
        _ => Ok(()),
    }
}

/// Refuses decimals of more digits than their type has, by themselves or within other values: a Parquet file would keep other
/// digits of them.
pub(crate) fn refuse_long_decimals(values: &ArrayRef) -> Result<()> {
    match values.data_type() {
        DataType::Map(_, _) => values.as_map().entries().columns().iter().try_for_each(refuse_long_decimals),
        DataType::Struct(_) => values.as_struct().columns().iter().try_for_each(refuse_long_decimals),
        DataType::List(_) => refuse_long_decimals(values.as_list::<i32>().values()),
        DataType::FixedSizeList(_, _) => refuse_long_decimals(values.as_fixed_size_list().values()),
        decimal if decimal.is_decimal() => refuse_impossible_values(values),
        _ => Ok(()),
    }
}

fn within_digits<T: DecimalType>(values: &ArrayRef, precision: u8, scale: i8) -> Result<()> {
    let decimals = values.as_primitive::<T>();
    match decimals.iter().flatten().find(|decimal| !T::is_valid_decimal_precision(*decimal, precision)) {
        None => Ok(()),
        // Written with all of its digits, of which its type has fewer.
        Some(decimal) => Err(invalid(format!(
            "{} has more digits than {}",
            T::format_decimal(decimal, T::MAX_PRECISION, scale),
            sql_name(values.data_type())
        ))),
    }
}

fn within_a_day<T>(times: &PrimitiveArray<T>, units_of_a_second: i64) -> Result<()>
where
    T: ArrowPrimitiveType<Native: Into<i64>>,
{
    const SECONDS_OF_A_DAY: i64 = 86_400;
    let day = 0..SECONDS_OF_A_DAY * units_of_a_second;
    if times.iter().flatten().map(Into::into).all(|time: i64| day.contains(&time)) {
        return Ok(());
    }
    Err(invalid("a time of day is at least 00:00:00 and before 24:00:00".into()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int32Array, ListArray, ListViewArray, RunArray, StringArray};

    use super::*;

    fn counts(keys: Vec<&str>, lengths: [usize; 2]) -> ArrayRef {
        let numbers: ArrayRef = Arc::new(arrow::array::Int64Array::from_iter_values(0..keys.len() as i64));
        let keys: ArrayRef = Arc::new(StringArray::from(keys));
        let DataType::Map(entries, _) = map_type(DataType::Utf8, DataType::Int64) else { panic!("no map") };
        let DataType::Struct(fields) = entries.data_type() else { panic!("no entries") };
        let pairs = StructArray::try_new(fields.clone(), vec![keys, numbers], None).unwrap();
        Arc::new(MapArray::try_new(entries, OffsetBuffer::from_lengths(lengths), pairs, None, false).unwrap())
    }

    #[test]
    fn a_map_is_made_of_the_lists_of_each_row() {
        let lists = |rows: Vec<Option<Vec<i64>>>| -> ArrayRef {
            let rows = rows.into_iter().map(|row| row.map(|row| row.into_iter().map(Some)));
            Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(rows))
        };
        let keys = lists(vec![Some(vec![7]), Some(vec![1, 2]), None, Some(vec![]), Some(vec![5])]).slice(1, 4);
        let values = lists(vec![Some(vec![3, 4]), Some(vec![1]), Some(vec![]), None]);
        let made = of_lists(&[keys, values], 4).unwrap();
        let made = made.as_map();
        assert_eq!(made.value_offsets(), [0, 2, 2, 2, 2]);
        assert_eq!([0, 1, 2, 3].map(|row| made.is_null(row)), [false, true, false, true]);
        assert_eq!(made.values().as_primitive::<arrow::datatypes::Int64Type>().values().to_vec(), [3, 4]);
        for (keys, values) in [(vec![1, 1], vec![1, 2]), (vec![1], vec![1, 2])] {
            assert!(of_lists(&[lists(vec![Some(keys)]), lists(vec![Some(values)])], 1).is_err());
        }
    }

    #[test]
    fn a_key_is_once_in_a_map() {
        assert!(refuse_impossible_values(&counts(vec!["a", "b", "a"], [2, 1])).is_ok());
        let repeated = counts(vec!["a", "b", "b"], [1, 2]);
        assert!(refuse_impossible_values(&repeated).is_err());
        assert!(refuse_impossible_values(&repeated.slice(0, 1)).is_ok());
        let item = Arc::new(Field::new("item", repeated.data_type().clone(), true));
        let list = ListArray::new(item, OffsetBuffer::from_lengths([2]), repeated, None);
        assert!(refuse_impossible_values(&(Arc::new(list) as ArrayRef)).is_err());
    }

    #[test]
    fn a_decimal_has_the_digits_of_its_type() {
        let decimals = |values: Vec<Option<i128>>, precision, scale| -> ArrayRef {
            let decimals = PrimitiveArray::<Decimal128Type>::from(values);
            Arc::new(decimals.with_data_type(DataType::Decimal128(precision, scale)))
        };
        assert!(refuse_impossible_values(&decimals(vec![Some(99_999), None, Some(-99_999)], 5, 2)).is_ok());
        assert!(refuse_impossible_values(&decimals(vec![Some(99)], 2, -2)).is_ok());
        for beyond in [100_000, -100_000, i128::MAX] {
            let refusal = refuse_impossible_values(&decimals(vec![None, Some(beyond)], 5, 2)).unwrap_err().to_string();
            assert!(refusal.contains("more digits than"), "{refusal}");
        }
    }

    #[test]
    fn encoded_values_are_seen_through() {
        let late: ArrayRef = Arc::new(PrimitiveArray::<Time64MicrosecondType>::from(vec![86_400_000_000]));
        let words = DictionaryArray::new(Int32Array::from(vec![0, 0]), Arc::clone(&late));
        assert!(refuse_impossible_values(&(Arc::new(words) as ArrayRef)).is_err());
        let runs = RunArray::try_new(&Int32Array::from(vec![2]), &late).unwrap();
        assert!(refuse_impossible_values(&(Arc::new(runs) as ArrayRef)).is_err());
        let item = Arc::new(Field::new("item", late.data_type().clone(), true));
        let views = ListViewArray::new(item, vec![0].into(), vec![1].into(), late, None);
        assert!(refuse_impossible_values(&(Arc::new(views) as ArrayRef)).is_err());
    }
}

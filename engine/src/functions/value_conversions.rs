//! Values that become those of another type, where SQL and Arrow's cast differ: a fraction that becomes an integer is
//! rounded, half away from zero for decimals and texts and to even for doubles; a number that becomes a timestamp counts
//! seconds, and none becomes a time; a timestamp of seconds or milliseconds is rounded; a double too large for a REAL is refused; 16 bytes that become text are a UUID; and
//! texts may have spaces around numbers, decimals exponents, and times no seconds; and what is text inside of lists, structs and maps
//! has the form of SQL. Casts and writes come here, for values by themselves
//! and inside of lists, structs and maps.

mod written_values;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, GenericListArray, Int64Array, MapArray,
    OffsetSizeTrait, StringArray, StructArray, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options, take};
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
    Date32Type, Date64Type, Field, FieldRef, Fields, Float32Type, Float64Type, Int64Type, TimeUnit,
};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use uuid::Uuid;

use super::definition::invalid;
use super::value_text::{has_form_of_its_own, texts};
use crate::identifiers::same_name;
use crate::type_names::sql_name;

pub(crate) use written_values::normal_form;
use written_values::{plain_number, without_offsets};

/// The name of the function that a cast becomes. It is planned for a type, so no statement calls it by its name.
pub(crate) const CONVERT_VALUE: &str = "convert_value";

/// Returns whether SQL converts values of a type to another one otherwise than Arrow's cast.
pub(crate) fn converts_otherwise(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (from, to) if from == to => false,
        (DataType::Dictionary(_, value), to) => converts_otherwise(value, to),
        (DataType::RunEndEncoded(_, value), to) => converts_otherwise(value.data_type(), to),
        // Where Arrow's does the same, too: the optimizer takes a cast off what is compared, and would compare what is not rounded yet.
        (from, to) if to.is_decimal() => {
            from.is_string() || scale(from).zip(scale(to)).is_some_and(|(from, to)| from > to)
        }
        (from, to) if to.is_integer() => from.is_string() || from.is_floating() || has_fraction(from),
        // Files and clients have no other values of so many bytes that become text.
        (DataType::FixedSizeBinary(16), to) => to.is_string(),
        (from, DataType::Float64) => from.is_string(),
        (from, DataType::Float32) => from.is_string() || *from == DataType::Float64 || has_fraction(from),
        // Also where Arrow's does the same: the optimizer takes a cast off what is compared, and cuts the digits of the other side.
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => from != to,
        (from, DataType::Timestamp(_, _)) => from.is_string() || from.is_numeric(),
        (from, DataType::Time32(_) | DataType::Time64(_)) => from.is_integer() || from.is_string(),
        // Arrow's cast takes what is before 1970 and no whole day for the day after.
        (DataType::Date64, DataType::Date32) => true,
        (from, DataType::Date32 | DataType::Interval(_)) => from.is_string(),
        (DataType::Struct(from), DataType::Struct(to)) => {
            let pairs = from.iter().enumerate().map(|(at, field)| (field, counterpart(from, at, to)));
            pairs.into_iter().any(|(from, to)| to.is_some_and(|to| fields_differ(from, to) || is_renamed(from, to)))
                || !lacking_fields(from, to).is_empty()
        }
        // Arrow's cast does not forget that keys are sorted.
        (DataType::Map(from, was_sorted), DataType::Map(to, is_sorted)) => {
            (*was_sorted && !is_sorted) || fields_differ(from, to)
        }
        // Arrow's cast takes the values of other rows where the array is a part of one, and behind a null.
        (
            DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_) | DataType::LargeListView(_),
            DataType::FixedSizeList(_, _),
        ) => true,
        (from, to) => match (list_item(from), list_item(to)) {
            (Some(from), Some(to)) => fields_differ(from, to),
            _ => false,
        },
    }
}

/// Returns an expression of the type `from` as one of the type `to`. `is_try`: null where a value does not fit.
pub(crate) fn converted(value: Expr, from: &DataType, to: &DataType, is_try: bool) -> Expr {
    if converts_otherwise(from, to) {
        return value_conversion(to, is_try).call(vec![value]);
    }
    match is_try {
        true => Expr::TryCast(TryCast::new(Box::new(value), to.clone())),
        false => Expr::Cast(Cast::new(Box::new(value), to.clone())),
    }
}

/// Returns the function that makes values of a type of its argument. `is_try`: null where a value does not fit.
pub(crate) fn value_conversion(to: &DataType, is_try: bool) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(ConvertValue { target: to.clone(), is_try, signature })
}

/// Returns what [`value_conversion`] made a function of; `None` of others.
pub(crate) fn conversion_of(function: &ScalarUDF) -> Option<(&DataType, bool)> {
    let conversion = function.inner().downcast_ref::<ConvertValue>()?;
    Some((&conversion.target, conversion.is_try))
}

/// Returns values so that Arrow's cast to the type `to` makes of them what SQL does; they may be of that type already.
/// `is_try`: null where a value does not fit. Errors: such a value.
pub(crate) fn prepared(array: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef, ArrowError> {
    if !converts_otherwise(array.data_type(), to) {
        return Ok(Arc::clone(array));
    }
    let options = options(is_try);
    match (array.data_type(), to) {
        (DataType::Dictionary(_, value), _) => prepared(&cast(array, value)?, to, is_try),
        (DataType::RunEndEncoded(_, value), _) => prepared(&cast(array, value.data_type())?, to, is_try),
        (DataType::ListView(item), _) => prepared(&cast(array, &DataType::List(Arc::clone(item)))?, to, is_try),
        (DataType::LargeListView(item), _) => {
            prepared(&cast(array, &DataType::LargeList(Arc::clone(item)))?, to, is_try)
        }
        (DataType::FixedSizeBinary(16), _) => {
            let ids = array.as_fixed_size_binary().iter();
            let text = |id: &[u8]| Uuid::from_slice(id).map(|id| id.to_string()).unwrap_or_default();
            Ok(Arc::new(ids.map(|id| id.map(text)).collect::<StringArray>()))
        }
        (from, _) if from.is_string() => read_texts(array, to, &options),
        (from, to) if to.is_integer() => rounded(array, from, &options),
        (_, DataType::Float32) => single_precision(array, is_try),
        (DataType::Date64, DataType::Date32) => whole_days(array, is_try),
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => rounded_times(array, *from, *to),
        (from, DataType::Timestamp(_, zone)) if from.is_integer() => {
            let numbers = cast_with_options(array, &DataType::Int64, &options)?;
            cast_with_options(&numbers, &DataType::Timestamp(TimeUnit::Second, zone.clone()), &options)
        }
        (_, DataType::Timestamp(unit, _)) => cast(&counted(array, *unit, is_try)?, to),
        (from, DataType::Time32(_) | DataType::Time64(_)) => Err(no_time(from)),
        (DataType::Struct(from), DataType::Struct(to)) => prepared_struct(array.as_struct(), from, to, is_try),
        (DataType::Map(entries, was_sorted), DataType::Map(to, is_sorted)) => {
            let map = array.as_map();
            let rows: ArrayRef = Arc::new(map.entries().clone());
            let rows = prepared(&rows, to.data_type(), is_try)?;
            let entries = Arc::new(entries.as_ref().clone().with_data_type(rows.data_type().clone()));
            let rows = rows.as_struct().clone();
            let is_sorted = *was_sorted && *is_sorted;
            Ok(Arc::new(MapArray::try_new(entries, map.offsets().clone(), rows, map.nulls().cloned(), is_sorted)?))
        }
        (DataType::List(_), DataType::FixedSizeList(item, length)) => vectors::<i32>(array, item, *length, is_try),
        (DataType::LargeList(_), DataType::FixedSizeList(item, length)) => vectors::<i64>(array, item, *length, is_try),
        (DataType::List(item), _) => prepared_list::<i32>(array, item, to, is_try),
        (DataType::LargeList(item), _) => prepared_list::<i64>(array, item, to, is_try),
        (DataType::FixedSizeList(item, size), _) => {
            let Some(to) = list_item(to) else { return Ok(Arc::clone(array)) };
            let list = array.as_fixed_size_list();
            let values = prepared_part(list.values(), to.data_type(), is_try)?;
            let item = as_nullable(item, values.data_type());
            Ok(Arc::new(FixedSizeListArray::try_new(item, *size, values, list.nulls().cloned())?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Returns parts of values as [`prepared`] does those by themselves.
pub(super) fn prepared_part(array: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let from = array.data_type();
    if is_shown(from, to) {
        let texts = texts(array, false).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        return Ok(Arc::new(texts));
    }
    match to {
        DataType::Struct(_) | DataType::Map(_, _) if from.is_string() => nulls_of_texts(array, to, is_try),
        DataType::Timestamp(unit, _) if has_days(from, to) => cast(&ticks_of_days(array, *unit, is_try)?, to),
        _ => prepared(array, to, is_try),
    }
}

/// Returns texts as structures or maps, of which they can be nulls alone: clients send a null that they know no type of as
/// a text.
fn nulls_of_texts(texts: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef, ArrowError> {
    if is_try || texts.null_count() == texts.len() {
        return Ok(new_null_array(to, texts.len()));
    }
    let instead = match to {
        DataType::Map(_, _) => "send a map, or write MAP {'a': 1}",
        _ => "send a structure, or write json_transform(text, '{\"a\": \"INTEGER\"}')",
    };
    Err(ArrowError::CastError(format!("a text is not written as {}; {instead}", sql_name(to))))
}

/// Returns the ticks of a unit at which dates begin.
fn ticks_of_days(array: &ArrayRef, unit: TimeUnit, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let in_day = match unit {
        TimeUnit::Second => 86_400,
        TimeUnit::Millisecond => 86_400_000,
        TimeUnit::Microsecond => 86_400_000_000,
        TimeUnit::Nanosecond => 86_400_000_000_000_i64,
    };
    let days = cast(&prepared(array, &DataType::Date32, is_try)?, &DataType::Date32)?;
    let ticks = days.as_primitive::<Date32Type>().iter().map(|day| match day {
        None => Ok(None),
        Some(day) => match i64::from(day).checked_mul(in_day) {
            None if !is_try => {
                Err(ArrowError::CastError("a DATE is out of range of the digits of a TIMESTAMP".to_owned()))
            }
            ticks => Ok(ticks),
        },
    });
    Ok(Arc::new(ticks.collect::<Result<Int64Array, ArrowError>>()?))
}

/// Returns the days in which dates are that count milliseconds.
fn whole_days(array: &ArrayRef, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let dates = array.as_primitive::<Date64Type>();
    let day = |millis: i64| i32::try_from(millis.div_euclid(86_400_000)).ok();
    if is_try {
        return Ok(Arc::new(dates.unary_opt::<_, Date32Type>(day)));
    }
    let out_of_range = || ArrowError::CastError("a date is out of the range of DATE".to_owned());
    Ok(Arc::new(dates.try_unary::<_, Date32Type, _>(|millis| day(millis).ok_or_else(out_of_range))?))
}

/// Returns texts as values of a type, whatever spaces are around them. Errors: a text that is none, where `options` have
/// it so.
pub(crate) fn read_texts(array: &ArrayRef, to: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let plain = without_offsets(array, to)?;
    let array = plain.as_ref().unwrap_or(array);
    if let DataType::Timestamp(unit @ (TimeUnit::Second | TimeUnit::Millisecond), zone) = to {
        let times = read_texts(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()), options)?;
        return cast(&rounded_times(&times, TimeUnit::Microsecond, *unit)?, to);
    }
    if to.is_decimal() {
        return read_decimals(array, to, options);
    }
    if matches!(to, DataType::Interval(_)) {
        let utf8 = cast(array, &DataType::Utf8)?;
        let normal = |text: &str| normal_form(text, to).unwrap_or_else(|| text.to_owned());
        let texts: StringArray = utf8.as_string::<i32>().iter().map(|text| text.map(normal)).collect();
        return cast_with_options(&texts, to, options);
    }
    let read = cast_with_options(array, to, &CastOptions::default())?;
    if *to == DataType::Float32 {
        return single_precision(&read_texts(array, &DataType::Float64, options)?, options.safe);
    }
    let is_read = read.null_count() == array.null_count();
    let is_time = matches!(to, DataType::Time32(_) | DataType::Time64(_));
    if is_read && !is_time {
        return Ok(read);
    }
    let utf8 = cast(array, &DataType::Utf8)?;
    let texts = utf8.as_string::<i32>();
    // Arrow takes a time without colons for a number of microseconds or another unit.
    let is_number = |text: &str| is_time && !has_colons(text);
    if is_read && !texts.iter().flatten().any(is_number) {
        return Ok(read);
    }
    let normal = texts.iter().enumerate().map(|(row, text)| match text {
        Some(text) if read.is_null(row) || is_number(text) => {
            let normal = normal_form(text, to).unwrap_or_else(|| text.to_owned());
            match is_number(&normal) {
                false => Ok(Some(normal)),
                true if options.safe => Ok(None),
                true => Err(ArrowError::CastError(format!("Cannot cast string '{text}' to value of {to} type"))),
            }
        }
        text => Ok(text.map(str::to_owned)),
    });
    cast_with_options(&normal.collect::<Result<StringArray, ArrowError>>()?, to, options)
}

fn read_decimals(array: &ArrayRef, to: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let utf8 = cast(array, &DataType::Utf8)?;
    let numbers = utf8.as_string::<i32>().iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        match plain_number(text) {
            None if !options.safe => {
                let start: String = text.chars().take(64).collect();
                Err(ArrowError::CastError(format!("Cannot cast string '{start}' to value of {to} type")))
            }
            number => Ok(number),
        }
    });
    cast_with_options(&numbers.collect::<Result<StringArray, ArrowError>>()?, to, options)
}

/// Returns whether a text is a number that Arrow reads as a decimal.
pub(crate) fn is_decimal_text(text: &str) -> bool {
    plain_number(text).is_some()
}

/// Returns whether a text may be a time of day as Arrow reads it.
pub(crate) fn has_colons(text: &str) -> bool {
    text.contains(':')
}

fn options(is_try: bool) -> CastOptions<'static> {
    CastOptions { safe: is_try, ..CastOptions::default() }
}

/// Returns whether a type is one of decimals with digits behind the point.
fn has_fraction(data_type: &DataType) -> bool {
    scale(data_type).is_some_and(|scale| scale > 0)
}

/// Returns how many digits of a fraction decimals of a type have.
pub(super) fn scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

fn list_item(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn fields_differ(from: &Field, to: &Field) -> bool {
    let (from, to) = (from.data_type(), to.data_type());
    converts_otherwise(from, to) || is_shown(from, to) || has_days(from, to)
}

/// Returns whether a part of a value becomes a text of another form than Arrow's. By themselves such values go through
/// `value_text`.
fn is_shown(from: &DataType, to: &DataType) -> bool {
    to.is_string() && has_form_of_its_own(from)
}

/// Returns whether a part of a value is a date that becomes a time: Arrow's cast does not look whether that has room for it.
/// DataFusion does so for dates by themselves.
fn has_days(from: &DataType, to: &DataType) -> bool {
    matches!((from, to), (DataType::Date32 | DataType::Date64, DataType::Timestamp(_, _)))
}

/// Returns the types of which the parts of a value are and become, where it has any.
pub(crate) fn types_of_parts<'a>(from: &'a DataType, to: &'a DataType) -> Vec<(&'a DataType, &'a DataType)> {
    match (from, to) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            let pairs = from.iter().enumerate();
            pairs.filter_map(|(at, field)| Some((field.data_type(), counterpart(from, at, to)?.data_type()))).collect()
        }
        (DataType::Map(from, _), DataType::Map(to, _)) => vec![(from.data_type(), to.data_type())],
        (from, to) => match (list_item(from), list_item(to)) {
            (Some(from), Some(to)) => vec![(from.data_type(), to.data_type())],
            _ => Vec::new(),
        },
    }
}

/// Whether two fields have one name, spelled otherwise.
fn is_renamed(from: &Field, to: &Field) -> bool {
    from.name() != to.name() && same_name(from.name(), to.name())
}

/// Returns the field that one of a struct becomes: by its name, or by its place where the two structs share no name. Case
/// matters only where several would do.
fn counterpart<'a>(from: &Fields, at: usize, to: &'a Fields) -> Option<&'a FieldRef> {
    let has_exactly = |name: &str| from.iter().any(|field| field.name() == name);
    let named = |name: &str| {
        let exact = to.iter().find(|field| field.name() == name);
        exact.or_else(|| to.iter().find(|field| same_name(field.name(), name) && !has_exactly(field.name())))
    };
    if shares_names(from, to) { named(from[at].name()) } else { to.get(at) }
}

/// Returns whether a field of one struct has the name of one of the other.
pub(super) fn shares_names(from: &Fields, to: &Fields) -> bool {
    from.iter().any(|field| to.iter().any(|other| same_name(field.name(), other.name())))
}

/// Returns the fields that no field of another struct becomes, where they are found by their names.
fn lacking_fields<'a>(from: &Fields, to: &'a Fields) -> Vec<&'a FieldRef> {
    if !shares_names(from, to) {
        return Vec::new();
    }
    let found: Vec<&FieldRef> = (0..from.len()).filter_map(|at| counterpart(from, at, to)).collect();
    to.iter().filter(|field| !found.contains(field)).collect()
}

fn as_nullable(field: &Field, data_type: &DataType) -> FieldRef {
    Arc::new(Field::new(field.name(), data_type.clone(), true))
}

fn prepared_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &Field,
    to: &DataType,
    is_try: bool,
) -> Result<ArrayRef, ArrowError> {
    let Some(to) = list_item(to) else { return Ok(Arc::clone(array)) };
    let list = array.as_list::<O>();
    let values = prepared_part(list.values(), to.data_type(), is_try)?;
    let item = as_nullable(item, values.data_type());
    Ok(Arc::new(GenericListArray::<O>::try_new(item, list.offsets().clone(), values, list.nulls().cloned())?))
}

/// Returns lists as those of one length. `is_try`: null in the place of one of another length. Errors: such a list.
fn vectors<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &Field,
    length: i32,
    is_try: bool,
) -> Result<ArrayRef, ArrowError> {
    let lists = array.as_list::<O>();
    let wanted = usize::try_from(length).unwrap_or_default();
    let as_vectors = |values: &ArrayRef, nulls: Option<NullBuffer>| -> Result<ArrayRef, ArrowError> {
        let values = prepared_part(values, item.data_type(), is_try)?;
        let item = as_nullable(item, values.data_type());
        Ok(Arc::new(FixedSizeListArray::try_new(item, length, values, nulls)?))
    };
    let has_length = |ends: &[O]| ends[1].as_usize() - ends[0].as_usize() == wanted;
    if lists.null_count() == 0 && wanted > 0 && lists.offsets().windows(2).all(has_length) {
        let first = lists.offsets().first().map_or(0, |first| first.as_usize());
        return as_vectors(&lists.values().slice(first, lists.len() * wanted), None);
    }
    let mut places: Vec<Option<u64>> = Vec::with_capacity(lists.len() * wanted);
    let mut fit = Vec::with_capacity(lists.len());
    for (row, ends) in lists.offsets().windows(2).enumerate() {
        let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
        let fits = lists.is_valid(row) && end - start == wanted;
        if !fits && !is_try && lists.is_valid(row) {
            return Err(ArrowError::CastError(format!(
                "Cannot cast to FixedSizeList({length}): value at index {row} has length {}",
                end - start
            )));
        }
        match fits {
            true => places.extend((start..end).map(|place| Some(place as u64))),
            false => places.extend(std::iter::repeat_n(None, wanted)),
        }
        fit.push(fits);
    }
    let values = take(lists.values(), &UInt64Array::from(places), None)?;
    as_vectors(&values, Some(NullBuffer::from(fit)))
}

fn prepared_struct(array: &StructArray, from: &Fields, to: &Fields, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let mut fields = Vec::with_capacity(from.len());
    let mut columns = Vec::with_capacity(from.len());
    for (at, (field, column)) in from.iter().zip(array.columns()).enumerate() {
        let counterpart = counterpart(from, at, to);
        let column = match counterpart {
            Some(to) => prepared_part(column, to.data_type(), is_try)?,
            None => Arc::clone(column),
        };
        let is_nullable = field.is_nullable() || column.null_count() > 0;
        let name = counterpart.filter(|to| is_renamed(field, to)).map_or(field.name(), |to| to.name());
        fields.push(Field::new(name, column.data_type().clone(), is_nullable));
        columns.push(column);
    }
    // Arrow's cast goes by the places of the fields where one is not there.
    for lacking in lacking_fields(from, to) {
        fields.push(Field::new(lacking.name(), lacking.data_type().clone(), true));
        columns.push(new_null_array(lacking.data_type(), array.len()));
    }
    let nulls = array.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(fields.into(), columns, nulls, array.len())?))
}

/// Returns numbers without their fractions.
fn rounded(array: &ArrayRef, from: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let whole = match from {
        DataType::Float16 => return rounded(&cast(array, &DataType::Float32)?, &DataType::Float32, options),
        DataType::Float32 => {
            return Ok(Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even)));
        }
        DataType::Float64 => {
            return Ok(Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even)));
        }
        // Digits that are lost are rounded half away from zero.
        DataType::Decimal32(_, _) => DataType::Decimal32(DECIMAL32_MAX_PRECISION, 0),
        DataType::Decimal64(_, _) => DataType::Decimal64(DECIMAL64_MAX_PRECISION, 0),
        DataType::Decimal128(_, _) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        DataType::Decimal256(_, _) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0),
        _ => return Ok(Arc::clone(array)),
    };
    cast_with_options(array, &whole, options)
}

/// Returns numbers as those of single precision. Errors: one that would be infinite.
fn single_precision(array: &ArrayRef, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let double = cast(array, &DataType::Float64)?;
    let double = double.as_primitive::<Float64Type>();
    let single = cast(double, &DataType::Float32)?;
    let values = single.as_primitive::<Float32Type>();
    let is_beyond = |row: usize| values.value(row).is_infinite() && double.value(row).is_finite();
    let beyond: Vec<usize> = (0..values.len()).filter(|row| values.is_valid(*row) && is_beyond(*row)).collect();
    match beyond.first() {
        None => Ok(single),
        Some(_) if is_try => {
            let kept =
                (0..values.len()).map(|row| (values.is_valid(row) && !is_beyond(row)).then(|| values.value(row)));
            Ok(Arc::new(kept.collect::<Float32Array>()))
        }
        Some(row) => {
            let message = format!("{:e} is out of range of a REAL; DOUBLE holds it", double.value(*row));
            Err(ArrowError::CastError(message))
        }
    }
}

/// Returns how many ticks of a timestamp are one of a coarser one, to which it is rounded as in DuckDB. Nanoseconds that become
/// microseconds are cut there.
fn rounded_ticks(from: TimeUnit, to: TimeUnit) -> Option<i64> {
    match (from, to) {
        (TimeUnit::Nanosecond, TimeUnit::Second) => Some(1_000_000_000),
        (TimeUnit::Nanosecond, TimeUnit::Millisecond) | (TimeUnit::Microsecond, TimeUnit::Second) => Some(1_000_000),
        (TimeUnit::Microsecond, TimeUnit::Millisecond) | (TimeUnit::Millisecond, TimeUnit::Second) => Some(1_000),
        _ => None,
    }
}

/// Returns timestamps without the digits that those of the other unit have no place for, rounded half away from zero.
fn rounded_times(array: &ArrayRef, from: TimeUnit, to: TimeUnit) -> Result<ArrayRef, ArrowError> {
    let Some(step) = rounded_ticks(from, to) else { return Ok(Arc::clone(array)) };
    let ticks = cast(array, &DataType::Int64)?;
    let round = |tick: i64| {
        let (whole, rest) = (tick / step * step, tick % step);
        let carried = if rest.abs() >= step / 2 { whole.checked_add(step * rest.signum()) } else { Some(whole) };
        carried.unwrap_or(whole)
    };
    let ticks: Int64Array = ticks.as_primitive::<Int64Type>().unary(round);
    cast(&ticks, array.data_type())
}

/// Returns numbers of seconds, with fractions, as numbers of a unit.
fn counted(array: &ArrayRef, unit: TimeUnit, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let in_second = match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    };
    let seconds = cast_with_options(array, &DataType::Float64, &options(is_try))?;
    let count = seconds.as_primitive::<Float64Type>().iter().map(|seconds| {
        let Some(seconds) = seconds else { return Ok(None) };
        let count = (seconds * in_second).round();
        // Every double below 2^63 is one of an i64.
        if count.abs() < 9_223_372_036_854_775_807.0 {
            return Ok(Some(count as i64));
        }
        if is_try {
            Ok(None)
        } else {
            Err(ArrowError::CastError(format!("{seconds} seconds are out of range of a timestamp")))
        }
    });
    Ok(Arc::new(count.collect::<Result<Int64Array, ArrowError>>()?))
}

fn no_time(from: &DataType) -> ArrowError {
    let from = sql_name(from);
    ArrowError::CastError(format!("{from} is not cast to TIME; write CAST(to_timestamp(seconds) AS TIME)"))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ConvertValue {
    target: DataType,
    is_try: bool,
    signature: Signature,
}

impl ScalarUDFImpl for ConvertValue {
    fn name(&self) -> &str {
        CONVERT_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.target.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [array] = arrays.as_slice() else { return Err(invalid("one value is converted".into())) };
        let prepared = prepared_part(array, &self.target, self.is_try)?;
        ColumnarValue::Array(prepared).cast_to(&self.target, Some(&options(self.is_try)))
    }
}

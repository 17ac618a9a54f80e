//! Values that are written to a column of another type: by UPDATE, by the values of an INSERT's parameters, by an ingest. They become
//! what a cast of SQL makes of them, or are refused as it is: Arrow's own makes a number of a date, a list of one number, and a
//! text of a form that no cast has.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

use super::definition::unfit;
use super::refused_casts::{is_bytes, refused_cast, refused_cast_of_parts, refused_date_cast};
use super::text_lists::{lists_of_texts, text_to_list};
use super::text_parts::stored_bytes;
use super::value_conversions::{converted, prepared_part, shares_names, types_of_parts, value_conversion};
use super::value_text::has_form_of_its_own;
use crate::type_names::sql_name;

/// Returns values as a column of the type `to` has them. Errors: types of which none becomes the other, and a value that does
/// not fit.
pub(crate) fn assigned(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Ok(Arc::clone(values));
    }
    if plain_type(from) != from {
        return assigned(&cast(values, plain_type(from))?, to);
    }
    if let Some(between) = type_between(from, to) {
        return assigned(&cast(values, &between)?, to);
    }
    refuse(from, to)?;
    if from.is_string() && is_list(to) {
        return lists_of_texts(values, to, false);
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&prepared_part(values, to, false)?, to, &strict)?)
}

/// Returns a text that the lake keeps for a column, such as its default, as a value of the column's type. Errors: as [`assigned`].
pub(crate) fn stored_value(text: &str, to: &DataType) -> Result<ScalarValue> {
    let values: ArrayRef = match is_bytes(to) {
        true => Arc::new(BinaryArray::from_iter_values([stored_bytes(text)?])),
        false => Arc::new(StringArray::from_iter_values([text])),
    };
    ScalarValue::try_from_array(&assigned(&values, to)?, 0)
}

/// Returns an expression of the type `from` as a column of the type `to` has its values. Errors: as [`assigned`], by the types.
pub(crate) fn assigned_value(value: Expr, from: &DataType, to: &DataType) -> Result<Expr> {
    if from == to {
        return Ok(value);
    }
    let plain = plain_type(from);
    if plain != from {
        return assigned_value(converted(value, from, plain, false), plain, to);
    }
    if let Some(between) = type_between(from, to) {
        return assigned_value(converted(value, from, &between, false), &between, to);
    }
    refuse(from, to)?;
    if from.is_string() && is_list(to) {
        return text_to_list(value, to, false);
    }
    // Whether the texts are nulls is seen when they are there.
    let is_structure_of_texts = from.is_string() && matches!(to, DataType::Struct(_) | DataType::Map(_, _));
    match is_structure_of_texts || (to.is_string() && has_form_of_its_own(from)) {
        true => Ok(value_conversion(to, false).call(vec![value])),
        false => Ok(converted(value, from, to, false)),
    }
}

/// Returns the type by which booleans and decimals become each other: Arrow has no cast between the two.
fn type_between(from: &DataType, to: &DataType) -> Option<DataType> {
    match (from, to) {
        (DataType::Boolean, to) if to.is_decimal() => Some(DataType::Int32),
        (from, DataType::Boolean) if from.is_decimal() => Some(DataType::Float64),
        _ => None,
    }
}

/// Returns the type of what is encoded.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => other,
    }
}

fn refuse(from: &DataType, to: &DataType) -> Result<()> {
    let refused =
        refused_date_cast(from, to).or_else(|| refused_cast(from, to)).or_else(|| refused_cast_of_parts(from, to));
    let refused = refused.or_else(|| ticks_as_number(from, to)).or_else(|| structure_as_text(from, to));
    match refused.or_else(|| other_fields(from, to)) {
        Some(message) => Err(unfit(message)),
        None => Ok(()),
    }
}

/// Arrow's is in the unit of the duration, of which there are four.
fn ticks_as_number(from: &DataType, to: &DataType) -> Option<String> {
    let is_refused = matches!(from, DataType::Duration(_)) && to.is_numeric();
    is_refused.then(|| format!("{} is not cast to {}; give its number of seconds", sql_name(from), sql_name(to)))
}

/// A column of JSON is one of text, and what a structure is as text is no JSON. So it is not taken for either.
fn structure_as_text(from: &DataType, to: &DataType) -> Option<String> {
    (matches!(from, DataType::Struct(_) | DataType::Map(_, _)) && to.is_string()).then(|| {
        let (from, to) = (sql_name(from), sql_name(to));
        format!("{from} is not written as {to}; give CAST(value AS VARCHAR), or to_json(value)")
    })
}

/// A structure of none of the names would be taken by its places. A row has no names of its own.
fn other_fields(from: &DataType, to: &DataType) -> Option<String> {
    let parts = match (from, to) {
        (DataType::Struct(fields), DataType::Struct(wanted)) if !is_row(fields) && !shares_names(fields, wanted) => {
            let (from, to) = (sql_name(from), sql_name(to));
            return Some(format!("{from} is not written as {to}, which has no field of these names"));
        }
        // What keys and values are called says nothing.
        (DataType::Map(entries, _), DataType::Map(wanted, _)) => {
            types_of_parts(entries.data_type(), wanted.data_type())
        }
        _ => types_of_parts(from, to),
    };
    parts.into_iter().find_map(|(from, to)| other_fields(from, to))
}

fn is_row(fields: &Fields) -> bool {
    fields.iter().enumerate().all(|(index, field)| *field.name() == format!("c{index}"))
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Array, Date32Array, Date64Array, DictionaryArray, DurationSecondArray, Float64Array, Int8Array, Int64Array,
        ListArray, StringArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Int32Type, TimeUnit};
    use datafusion::logical_expr::col;

    use super::*;

    fn array(values: impl Array + 'static) -> ArrayRef {
        Arc::new(values)
    }

    #[test]
    fn texts_that_are_kept_are_values_of_their_columns() {
        let instant = ScalarValue::TimestampMicrosecond(Some(1_577_930_645_000_000), Some("UTC".into()));
        for (text, to, expected) in [
            ("\\xFF\\x00a", DataType::BinaryView, ScalarValue::BinaryView(Some(b"\xFF\0a".to_vec()))),
            ("1.5", DataType::Int32, ScalarValue::Int32(Some(2))),
            ("1.25", DataType::Decimal128(4, 1), ScalarValue::Decimal128(Some(13), 4, 1)),
            ("1:02:03", DataType::Time64(TimeUnit::Microsecond), ScalarValue::Time64Microsecond(Some(3_723_000_000))),
            ("2020-01-02 03:04:05+01", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), instant),
        ] {
            assert_eq!(stored_value(text, &to).unwrap(), expected, "{text}");
        }
        assert!(stored_value("many", &DataType::Int32).is_err());
    }

    #[test]
    fn values_become_what_casts_make_of_them() {
        let texts = |text: &str| array(StringArray::from(vec![text]));
        let instants = || TimestampMicrosecondArray::from(vec![1_577_934_245_000_000]);
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2)])]);
        let of_integers = list.data_type().clone();
        let encoded = DictionaryArray::new(Int8Array::from(vec![0]), array(instants()));
        for (values, to, expected) in [
            (array(instants()), DataType::Utf8, texts("2020-01-02 03:04:05")),
            (array(encoded), DataType::Utf8, texts("2020-01-02 03:04:05")),
            (array(Float64Array::from(vec![1e20])), DataType::Utf8, texts("1e+20")),
            (array(Float64Array::from(vec![2.5])), DataType::Int64, array(Int64Array::from(vec![2]))),
            (texts("[1, 2]"), of_integers, array(list)),
            (array(Int64Array::from(vec![5])), DataType::Utf8, texts("5")),
            (array(Date64Array::from(vec![-1])), DataType::Date32, array(Date32Array::from(vec![-1]))),
            (array(Date64Array::from(vec![86_400_001])), DataType::Date32, array(Date32Array::from(vec![1]))),
        ] {
            let found = assigned(&values, &to).unwrap();
            assert_eq!(found.as_ref(), expected.as_ref(), "{} as {to}", values.data_type());
        }
    }

    #[test]
    fn texts_are_structures_and_maps_where_they_are_null() {
        let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, name != "key"));
        let parts = [field("key", DataType::Utf8), field("value", DataType::Int32)];
        let structure = DataType::Struct([field("a", DataType::Int64)].into());
        let entries = Arc::new(Field::new("entries", DataType::Struct(parts.into()), false));
        for (to, name) in [(structure, "STRUCT(a BIGINT)"), (DataType::Map(entries, false), "MAP(VARCHAR, INTEGER)")] {
            let nulls = assigned(&array(StringArray::from(vec![None::<&str>; 2])), &to).unwrap();
            assert_eq!((nulls.data_type(), nulls.null_count()), (&to, 2));
            let refusal = assigned(&array(StringArray::from(vec![None, Some("x")])), &to).unwrap_err().to_string();
            assert!(refusal.contains(&format!("a text is not written as {name}; send")), "{refusal}");
            assert!(assigned_value(col("a"), &DataType::Utf8, &to).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_no_cast_makes_is_refused() {
        assert!(assigned(&array(Date64Array::from(vec![i64::MAX])), &DataType::Date32).is_err());
        let number = || array(Int64Array::from(vec![5]));
        let date = || array(Date32Array::from(vec![18_262]));
        let item = |data_type: DataType| DataType::new_list(data_type, true);
        let instants = array(TimestampMicrosecondArray::from(vec![0]));
        let encoded = array(DictionaryArray::new(Int8Array::from(vec![0]), date()));
        for (values, to) in [
            (date(), DataType::Int64),
            (encoded, DataType::Int64),
            (instants, DataType::Float64),
            (array(DurationSecondArray::from(vec![5])), DataType::Int64),
            (number(), DataType::Date32),
            (number(), item(DataType::Int64)),
            (number(), DataType::Binary),
            (number(), DataType::Time64(TimeUnit::Microsecond)),
        ] {
            let from = values.data_type();
            assert!(assigned(&values, &to).is_err(), "{from} as {to}");
            let is_told_by_values = matches!(to, DataType::Time64(_));
            assert_eq!(assigned_value(col("a"), from, &to).is_err(), !is_told_by_values, "{from} as {to}");
        }
    }
}

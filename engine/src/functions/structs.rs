//! Structures with DuckDB's names: joined, changed, taken apart. What is joined to a null, or set in one, is a structure
//! whose other fields are null, as in DuckDB.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray, StructArray, make_array, make_comparator,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::definition::{ANY_NUMBER, Definition, invalid, unfit};
use super::one_nan::with_plain_doubles;
use crate::type_names::sql_name;

/// The function that returns the value of a structure with a value and a number of rows, which is one at most.
pub(crate) const SINGLE_VALUE: &str = "single_value";

/// The function that makes a structure of values, and a null where one of them is null.
pub(crate) const COMPLETE_ROW: &str = "complete_row";

/// The function that compares two structures or lists: -1, 0 or 1, where a null in them is after all others.
pub(crate) const NESTED_ORDER: &str = "nested_order";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let joined = |name, aliases, returns, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 2..=ANY_NUMBER,
        takes: only_structs,
        returns,
        compute,
    };
    let definitions = [
        Definition {
            name: SINGLE_VALUE,
            aliases: &[],
            arguments: 1..=1,
            takes: only_structs,
            returns: |types| match types {
                [DataType::Struct(fields)] if fields.len() == 2 => Ok(fields[0].data_type().clone()),
                _ => Err(unfit(format!("{SINGLE_VALUE} takes a value and the number of rows that had one"))),
            },
            compute: |arrays, _| {
                let gathered = arrays[0].as_struct();
                let rows = cast(gathered.column(1), &DataType::Int64)?;
                let rows = rows.as_primitive::<Int64Type>();
                if (0..gathered.len()).any(|row| gathered.is_valid(row) && rows.is_valid(row) && rows.value(row) > 1) {
                    return Err(invalid(
                        "a subquery in the place of a value has more than one row; aggregate it, or add LIMIT 1".into(),
                    ));
                }
                Ok(Arc::clone(gathered.column(0)))
            },
        },
        Definition {
            name: COMPLETE_ROW,
            aliases: &[],
            arguments: 1..=ANY_NUMBER,
            takes: |types| Ok(types.to_vec()),
            returns: |types| Ok(DataType::Struct(numbered(types))),
            compute: |arrays, rows| {
                let types: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
                let nulls = arrays.iter().fold(None, |nulls: Option<NullBuffer>, array| {
                    NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref())
                });
                let fields = numbered(&types);
                Ok(Arc::new(StructArray::try_new_with_length(fields, arrays.to_vec(), nulls, rows)?))
            },
        },
        Definition {
            name: NESTED_ORDER,
            aliases: &[],
            arguments: 2..=2,
            takes: |types| match types {
                [left, right] if left == right => Ok(types.to_vec()),
                [left, right] => match comparison_coercion(left, right) {
                    Some(both) => Ok(vec![both.clone(), both]),
                    None => Err(unfit(format!("{} and {} are not compared", sql_name(left), sql_name(right)))),
                },
                _ => Err(unfit(format!("{NESTED_ORDER} takes two values"))),
            },
            returns: |_| Ok(DataType::Int64),
            compute: |arrays, rows| {
                let (left, right) = (with_plain_doubles(&arrays[0])?, with_plain_doubles(&arrays[1])?);
                let nulls_last = SortOptions { descending: false, nulls_first: false };
                let order = make_comparator(&left, &right, nulls_last)?;
                let orders = (0..rows).map(|row| match left.is_null(row) || right.is_null(row) {
                    true => None,
                    false => Some(order(row, row) as i64),
                });
                Ok(Arc::new(orders.collect::<Int64Array>()))
            },
        },
        joined(
            "struct_concat",
            &[],
            |types| Ok(DataType::Struct(all_fields(types)?)),
            |arrays, rows| {
                let types: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
                let mut columns = Vec::new();
                for structs in arrays.iter().map(|array| array.as_struct()) {
                    for column in 0..structs.num_columns() {
                        columns.push(field_values(structs, column)?);
                    }
                }
                Ok(Arc::new(StructArray::try_new_with_length(all_fields(&types)?, columns, None, rows)?))
            },
        ),
        joined(
            "struct_merge",
            &[],
            |types| Ok(DataType::Struct(merged(types).into_iter().map(|(field, _, _)| field).collect())),
            |arrays, rows| {
                let types: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
                let (mut fields, mut columns) = (Vec::new(), Vec::new());
                for (field, array, column) in merged(&types) {
                    fields.push(field);
                    columns.push(field_values(arrays[array].as_struct(), column)?);
                }
                Ok(Arc::new(StructArray::try_new_with_length(fields.into(), columns, None, rows)?))
            },
        ),
        Definition {
            name: "struct_keys",
            aliases: &[],
            arguments: 1..=1,
            takes: only_structs,
            returns: |_| Ok(DataType::new_list(DataType::Utf8, true)),
            compute: |arrays, rows| {
                let structs = arrays[0].as_struct();
                let names: Vec<&str> = structs.fields().iter().map(|field| field.name().as_str()).collect();
                let width = names.len();
                let all: Vec<&str> = (0..rows).flat_map(|_| names.iter().copied()).collect();
                let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
                let offsets = OffsetBuffer::from_lengths(vec![width; rows]);
                Ok(Arc::new(ListArray::new(item, offsets, Arc::new(StringArray::from(all)), structs.nulls().cloned())))
            },
        },
        Definition {
            name: "struct_values",
            aliases: &[],
            arguments: 1..=1,
            takes: only_structs,
            returns: |types| Ok(DataType::Struct(unnamed(types))),
            compute: |arrays, _| {
                let structs = arrays[0].as_struct();
                let fields = unnamed(&[structs.data_type().clone()]);
                Ok(Arc::new(StructArray::try_new(fields, structs.columns().to_vec(), structs.nulls().cloned())?))
            },
        },
    ];
    let extract = ScalarUDF::new_from_impl(StructExtractAt { signature: Signature::any(2, Volatility::Immutable) });
    definitions.into_iter().map(Definition::into_udf).chain([Arc::new(extract)]).collect()
}

fn only_structs(types: &[DataType]) -> Result<Vec<DataType>> {
    match types.iter().find(|data_type| !matches!(data_type, DataType::Struct(_))) {
        Some(other) => Err(unfit(format!("a structure is needed, not {}", sql_name(other)))),
        None => Ok(types.to_vec()),
    }
}

fn fields_of(data_type: &DataType) -> &[FieldRef] {
    match data_type {
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

/// Returns the values of a field, which are null where the structure is.
fn field_values(structs: &StructArray, column: usize) -> Result<ArrayRef> {
    let values = structs.column(column);
    if structs.null_count() == 0 || values.data_type().is_null() {
        return Ok(Arc::clone(values));
    }
    let nulls = NullBuffer::union(structs.nulls(), values.nulls());
    Ok(make_array(values.to_data().into_builder().nulls(nulls).build()?))
}

/// Returns a field that is null where its structure is.
fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(true))
}

fn all_fields(types: &[DataType]) -> Result<Fields> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in types.iter().flat_map(fields_of) {
        if fields.iter().any(|other| other.name().eq_ignore_ascii_case(field.name())) {
            return Err(unfit(format!("two fields are called `{}`", field.name())));
        }
        fields.push(nullable(field));
    }
    Ok(fields.into())
}

/// Returns the fields of structures of which later ones replace those of their name, with where each is from.
fn merged(types: &[DataType]) -> Vec<(FieldRef, usize, usize)> {
    let mut found: Vec<(FieldRef, usize, usize)> = Vec::new();
    for (array, data_type) in types.iter().enumerate() {
        for (column, field) in fields_of(data_type).iter().enumerate() {
            match found.iter_mut().find(|(other, _, _)| other.name().eq_ignore_ascii_case(field.name())) {
                Some(place) => *place = (nullable(field), array, column),
                None => found.push((nullable(field), array, column)),
            }
        }
    }
    found
}

fn unnamed(types: &[DataType]) -> Fields {
    let fields = types.first().map(fields_of).unwrap_or_default();
    numbered(&fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>())
}

/// The fields of a structure without names.
fn numbered(types: &[DataType]) -> Fields {
    let field = |(index, data_type): (usize, &DataType)| Field::new(format!("c{index}"), data_type.clone(), true);
    types.iter().enumerate().map(field).collect()
}

/// `struct_extract_at(structure, 2)`: a field by its position from 1, whose type the position says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct StructExtractAt {
    signature: Signature,
}

impl StructExtractAt {
    fn position(data_type: &DataType, value: Option<&ScalarValue>) -> Result<usize> {
        let DataType::Struct(fields) = data_type else {
            return Err(unfit(format!("struct_extract_at takes a structure, not {}", sql_name(data_type))));
        };
        let position = value.and_then(|value| value.cast_to(&DataType::Int64).ok()).and_then(|value| match value {
            ScalarValue::Int64(Some(position)) => Some(position),
            _ => None,
        });
        let index = position.and_then(|position| usize::try_from(position.checked_sub(1)?).ok());
        let count = fields.len();
        index
            .filter(|index| *index < count)
            .ok_or_else(|| unfit(format!("the position of a field is a number from 1 to {count}")))
    }
}

impl ScalarUDFImpl for StructExtractAt {
    fn name(&self) -> &str {
        "struct_extract_at"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Err(invalid("the type of struct_extract_at is that of the field".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let data_type = args.arg_fields.first().map_or(&DataType::Null, |field| field.data_type());
        let index = Self::position(data_type, args.scalar_arguments.get(1).copied().flatten())?;
        let field_type = fields_of(data_type).get(index).map_or(DataType::Null, |field| field.data_type().clone());
        Ok(Arc::new(Field::new(self.name(), field_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [structs, position] = args.args.as_slice() else { return Err(unfit("a structure is needed".into())) };
        let ColumnarValue::Scalar(position) = position else {
            return Err(unfit("the position of a field is a number as written".into()));
        };
        let index = Self::position(&structs.data_type(), Some(position))?;
        let array = structs.to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(field_values(array.as_struct(), index)?))
    }
}

//! The types that stand right within another: those of lists, structures, maps, unions and encoded values.

use arrow::datatypes::DataType;

/// Whether `holds` is true of a type right within another.
pub(crate) fn any_part(data_type: &DataType, holds: &dyn Fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| holds(field.data_type())),
        DataType::Dictionary(_, values) => holds(values),
        DataType::RunEndEncoded(_, values) => holds(values.data_type()),
        _ => false,
    }
}

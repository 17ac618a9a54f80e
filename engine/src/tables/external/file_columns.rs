//! The columns of Arrow and Parquet files as those of tables: each with a name of its own, as columns of CSV have, and of a
//! type that tables have. A UUID is text, a boolean of eight bits a boolean, decimals have 128 bits, and bytes any number.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

use super::csv::unique_names;
use crate::functions::prepared_for_cast;

/// The names of the extension types that become others.
const UUID: &str = "arrow.uuid";
const BOOL8: &str = "arrow.bool8";
/// The name of the extension type of text that holds JSON.
const JSON: &str = "arrow.json";

/// Returns the columns of a file as a table has them; any may be null.
pub(super) fn table_columns(file: &Schema) -> Schema {
    let fields = file.fields().iter().zip(table_names(file));
    Schema::new(fields.map(|(field, name)| Field::new(name, table_type(field), true)).collect::<Vec<_>>())
}

/// Returns the names of a file's columns in a table: each is there once, whatever its case, and none is empty.
pub(super) fn table_names(file: &Schema) -> Vec<String> {
    unique_names(&file.fields().iter().map(|field| Some(field.name().clone())).collect::<Vec<_>>())
}

/// Returns the names of a file's columns as a table writes them, of which some may be in another case.
pub(super) fn names_in_table(file: &[String], table: &Schema) -> Vec<String> {
    let exact: BTreeSet<&str> = file.iter().map(String::as_str).collect();
    let others = table.fields().iter().filter(|field| !exact.contains(field.name().as_str()));
    let mut by_case: HashMap<String, &String> =
        others.map(|field| (field.name().to_lowercase(), field.name())).collect();
    let known: BTreeSet<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
    let name = |own: &String| match known.contains(own.as_str()) {
        true => own.clone(),
        // One column of a file at most is the table's.
        false => by_case.remove(&own.to_lowercase()).unwrap_or(own).clone(),
    };
    file.iter().map(name).collect()
}

/// Returns the columns that do not keep their names, with those in the file.
pub(super) fn renamed_columns(file: &Schema) -> BTreeMap<String, String> {
    let names = table_names(file).into_iter().zip(file.fields());
    names.filter(|(name, field)| name != field.name()).map(|(name, field)| (name, field.name().clone())).collect()
}

/// Whether a column is text that is said to hold JSON.
pub(crate) fn is_json_text(field: &Field) -> bool {
    field.data_type().is_string() && field.extension_type_name() == Some(JSON)
}

/// Whether a column is of UUIDs.
pub(crate) fn is_uuid(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(16) && field.extension_type_name() == Some(UUID)
}

/// Returns the type that a file's column has in a table.
pub(crate) fn table_type(field: &Field) -> DataType {
    match (field.extension_type_name(), field.data_type()) {
        _ if is_uuid(field) => DataType::Utf8,
        (Some(BOOL8), DataType::Int8) => DataType::Boolean,
        (_, nested) if nested.is_nested() => with_text_parts(nested, &mut is_uuid),
        (_, data_type) => held_type(plain_type(data_type)),
    }
}

/// Returns a type with text in the place of parts inside of it, such as UUIDs. `is_text` is asked of each field that has no parts,
/// in order.
pub(crate) fn with_text_parts(data_type: &DataType, is_text: &mut dyn FnMut(&Field) -> bool) -> DataType {
    let mut part = |field: &FieldRef| -> FieldRef {
        if field.data_type().is_nested() {
            let data_type = with_text_parts(field.data_type(), &mut *is_text);
            return Arc::new(field.as_ref().clone().with_data_type(data_type));
        }
        match is_text(field) {
            // What is no UUID any more is not called one.
            true => Arc::new(Field::new(field.name(), DataType::Utf8, field.is_nullable())),
            false => Arc::clone(field),
        }
    };
    match data_type {
        DataType::List(item) | DataType::ListView(item) => DataType::List(part(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(part(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(part(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(part).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(part(entries), *is_sorted),
        other => other.clone(),
    }
}

/// Returns the type in which tables hold what a client sends as a field, wherever in others it is. What only nulls are known of is
/// of the type `nulls`. Values that are encoded stay so where they are held as they are.
pub(crate) fn held_type_of(field: &Field, nulls: &DataType) -> DataType {
    let item = |field: &FieldRef| {
        let data_type = held_type_of(field, nulls);
        // What is no UUID any more is not called one.
        let metadata = if data_type == *field.data_type() { field.metadata().clone() } else { HashMap::new() };
        Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
    };
    let of_values = |values: &Field| {
        let held = held_type_of(values, nulls);
        if held == *values.data_type() { field.data_type().clone() } else { held }
    };
    match field.data_type() {
        DataType::Null => nulls.clone(),
        DataType::Dictionary(_, values) => of_values(&Field::new("", values.as_ref().clone(), true)),
        DataType::RunEndEncoded(_, values) => of_values(values.as_ref()),
        DataType::List(part) | DataType::ListView(part) => DataType::List(item(part)),
        DataType::LargeList(part) | DataType::LargeListView(part) => DataType::LargeList(item(part)),
        DataType::FixedSizeList(part, size) => DataType::FixedSizeList(item(part), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(item(entries), *is_sorted),
        _ => table_type(field),
    }
}

/// Returns the type in which tables hold values of a type: wide decimals and times of day, and bytes of any number in the place of
/// a fixed one, which few functions of bytes take. Sixteen bytes stay what they are, as UUIDs.
pub(crate) fn held_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::FixedSizeBinary(16) => data_type.clone(),
        DataType::FixedSizeBinary(_) => DataType::Binary,
        // Every TIME has microseconds: those of other units are not compared with it.
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        other => wide_decimal(other),
    }
}

/// Returns a type with decimals of 128 bits in the place of narrower ones, of which a few have a sum that wraps around.
pub(crate) fn wide_decimal(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        other => other.clone(),
    }
}

/// Returns the type of a column's values, however they are encoded.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        other => other,
    }
}

/// Where a table's columns are in one file.
pub(super) struct ColumnPlaces {
    wanted: SchemaRef,
    /// For each column that is wanted, its place in the file, if it is there.
    places: Vec<Option<usize>>,
    /// The places that are read, in order.
    pub(super) read: Vec<usize>,
}

impl ColumnPlaces {
    /// Finds columns by their names in a table, and in another case where the file does not have a name as it is.
    pub(super) fn find(file: &Schema, wanted: &Schema) -> Self {
        let names = names_in_table(&table_names(file), wanted);
        let known: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let place = |field: &Arc<Field>| known.get(field.name().as_str()).copied();
        let places: Vec<Option<usize>> = wanted.fields().iter().map(place).collect();
        let mut read: BTreeSet<usize> = places.iter().copied().flatten().collect();
        if read.is_empty() && !names.is_empty() {
            // Rows are counted by a column.
            read.insert(0);
        }
        Self { wanted: Arc::new(wanted.clone()), places, read: read.into_iter().collect() }
    }

    /// Returns the wanted columns of a batch of those that are read; one that the file lacks is null.
    pub(super) fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let columns = self.places.iter().zip(self.wanted.fields()).map(|(place, field)| {
            let index = place.and_then(|place| self.read.binary_search(&place).ok());
            match index.and_then(|index| batch.columns().get(index)) {
                None => Ok(new_null_array(field.data_type(), rows)),
                Some(column) => as_type(column, field.data_type()),
            }
        });
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.wanted), columns, &options)
    }
}

/// Returns a file's column in the type that a table has. Errors: a value that is none of it.
fn as_type(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&prepared_for_cast(column, data_type, false)?, data_type, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_and_types_of_tables() {
        let extension = |name: &str| [("ARROW:extension:name".to_owned(), name.to_owned())].into_iter().collect();
        let file = Schema::new(vec![
            Field::new("a", DataType::Int64, false),
            Field::new("A", DataType::Int64, true),
            Field::new("", DataType::FixedSizeBinary(16), true).with_metadata(extension(UUID)),
            Field::new("b", DataType::Int8, true).with_metadata(extension(BOOL8)),
            Field::new("d", DataType::Decimal32(9, 2), true),
            Field::new("f", DataType::FixedSizeBinary(4), true),
        ]);
        let columns = table_columns(&file);
        let shown: Vec<_> =
            columns.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        assert_eq!(shown, ["a Int64", "A_1 Int64", "column_3 Utf8", "b Boolean", "d Decimal128(9, 2)", "f Binary"]);
        let json = |data_type| Field::new("j", data_type, true).with_metadata(extension(JSON));
        assert_eq!([DataType::Utf8, DataType::Binary].map(|stored| is_json_text(&json(stored))), [true, false]);
        assert_eq!(renamed_columns(&file).keys().collect::<Vec<_>>(), ["A_1", "column_3"]);
    }

    #[test]
    fn columns_are_found_in_another_case_where_no_other_has_the_name() {
        let table = Schema::new(["id", "Name", "v"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
        let named =
            |file: &[&str]| names_in_table(&file.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), &table);
        assert_eq!(named(&["ID", "name", "x"]), ["id", "Name", "x"]);
        assert_eq!(named(&["Id", "ID", "v"]), ["id", "ID", "v"]);
        assert_eq!(named(&["ID", "id", "V"]), ["ID", "id", "v"]);
    }

    #[test]
    fn what_is_sent_is_held_in_types_of_tables_wherever_it_is() {
        let extension = |name: &str| [("ARROW:extension:name".to_owned(), name.to_owned())].into_iter().collect();
        let id = Field::new("item", DataType::FixedSizeBinary(16), true).with_metadata(extension(UUID));
        let flag = Field::new("item", DataType::Int8, true).with_metadata(extension(BOOL8));
        let of = |data_type: DataType| held_type_of(&Field::new("c", data_type, true), &DataType::Utf8).to_string();
        assert_eq!(of(DataType::ListView(Arc::new(id))), "List(Utf8)");
        assert_eq!(of(DataType::LargeListView(Arc::new(flag))), "LargeList(Boolean)");
        assert_eq!(of(DataType::ListView(Arc::new(Field::new("item", DataType::Null, true)))), "List(Utf8)");
        assert_eq!(of(DataType::Time32(TimeUnit::Second)), "Time64(µs)");
        let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        assert_eq!(of(words.clone()), words.to_string());
    }
}

//! The types of a result's columns. Few clients read string views, dictionaries, run-end encoding and large lists, which are
//! details of execution, so a result has the plain types that they stand for, at any depth, unless its reader asks for them.
//!
//! Every door sends what [`ResultTypes::result_schema`] promises: Flight SQL, whose clients refuse a stream that differs from
//! its `FlightInfo`, and `/v1/query`.
//!
//! A cast keeps its column's metadata, and with it the name of an extension type whose values are not stored so. Clients
//! that know the extension refuse the whole schema then, so what is no such value any more is not called one.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};

use crate::error::{EngineError, Result};

/// Which types beyond the plain ones a reader takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultTypes {
    /// `Utf8View` and `BinaryView`; else `Utf8` and `Binary`.
    pub views: bool,
    /// Dictionaries; else their values.
    pub dictionaries: bool,
}

impl FromStr for ResultTypes {
    type Err = EngineError;

    /// Reads a list of `views` and `dictionaries`, separated by commas; an empty one is the plain types.
    /// Errors: `sql_plan_error` for other names.
    fn from_str(names: &str) -> Result<Self> {
        let mut types = Self::default();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "views" => types.views = true,
                "dictionaries" => types.dictionaries = true,
                other => {
                    let message = format!("`{other}` are no types of results; there are `views` and `dictionaries`");
                    return Err(EngineError::Plan { message });
                }
            }
        }
        Ok(types)
    }
}

impl Display for ResultTypes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.views, self.dictionaries) {
            (true, true) => "views,dictionaries",
            (true, false) => "views",
            (false, true) => "dictionaries",
            (false, false) => "",
        })
    }
}

impl ResultTypes {
    /// Returns the schema of a result that was planned with the schema `planned`.
    pub fn result_schema(self, planned: &Schema) -> SchemaRef {
        let fields: Vec<FieldRef> = planned.fields().iter().map(|field| self.result_field(field)).collect();
        Arc::new(Schema::new_with_metadata(fields, planned.metadata().clone()))
    }

    fn result_field(self, field: &FieldRef) -> FieldRef {
        let data_type = self.result_type(field.data_type());
        let is_stored = field.extension_type_name().is_none_or(|extension| is_stored_as(extension, &data_type));
        if is_stored && &data_type == field.data_type() {
            return Arc::clone(field);
        }
        let mut metadata = field.metadata().clone();
        if !is_stored {
            metadata.retain(|key, _| !matches!(key.as_str(), EXTENSION_TYPE_NAME_KEY | EXTENSION_TYPE_METADATA_KEY));
        }
        Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
    }

    fn result_type(self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Utf8View if !self.views => DataType::Utf8,
            DataType::BinaryView if !self.views => DataType::Binary,
            DataType::Dictionary(key, value) => match self.dictionaries {
                true => DataType::Dictionary(key.clone(), Box::new(self.result_type(value))),
                false => self.result_type(value),
            },
            DataType::RunEndEncoded(_, value) => self.result_type(value.data_type()),
            // arrow-ipc 58 declares a large list as a list in the schema message (arrow-rs 10298).
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => DataType::List(self.result_field(item)),
            DataType::FixedSizeList(item, size) => DataType::FixedSizeList(self.result_field(item), *size),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| self.result_field(field)).collect()),
            DataType::Map(entries, sorted) => DataType::Map(self.result_field(entries), *sorted),
            other => other.clone(),
        }
    }
}

/// Whether values of one of Arrow's own extension types may be stored in this type; those of others may be in any.
fn is_stored_as(extension: &str, data_type: &DataType) -> bool {
    match extension {
        "arrow.uuid" => *data_type == DataType::FixedSizeBinary(16),
        "arrow.bool8" => *data_type == DataType::Int8,
        "arrow.json" => data_type.is_string(),
        "arrow.fixed_shape_tensor" => matches!(data_type, DataType::FixedSizeList(_, _)),
        "arrow.variable_shape_tensor" | "arrow.timestamp_with_offset" | "arrow.parquet.variant" => {
            matches!(data_type, DataType::Struct(_))
        }
        _ => true,
    }
}

/// The schema that a result was promised with.
#[derive(Debug, Clone)]
pub(super) struct ResultSchema(pub(super) SchemaRef);

impl ResultSchema {
    /// Returns the batch with the promised types and nullability. Physical plans differ from their logical schema in
    /// nullability (a MIN answered from statistics) and in representation; the values are the same.
    /// Errors: `query_execution_error`.
    pub(super) fn conform(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let Self(schema) = self;
        if Arc::ptr_eq(schema, batch.schema_ref()) {
            return Ok(batch);
        }
        let cast = CastOptions { safe: false, ..CastOptions::default() };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
        for (column, field) in batch.columns().iter().zip(schema.fields()) {
            columns.push(match column.data_type() == field.data_type() {
                true => Arc::clone(column),
                false => cast_with_options(column, field.data_type(), &cast)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, LargeListArray, StringViewArray};
    use arrow::datatypes::{Int8Type, Int32Type};

    use super::*;

    #[test]
    fn what_old_clients_cannot_read_becomes_plain() {
        let view: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a string longer than twelve bytes"), None]));
        let dictionary: ArrayRef = Arc::new(vec!["x", "y"].into_iter().collect::<DictionaryArray<Int8Type>>());
        let large: ArrayRef =
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]));
        let planned = Schema::new(vec![
            Field::new("v", view.data_type().clone(), true),
            Field::new("d", dictionary.data_type().clone(), false),
            Field::new("l", large.data_type().clone(), true),
        ]);
        let batch = RecordBatch::try_new(Arc::new(planned.clone()), vec![view, dictionary, large]).unwrap();

        let plain = ResultTypes::default().result_schema(&planned);
        let sent = ResultSchema(plain).conform(batch.clone()).unwrap();
        assert_eq!(sent.schema().field(0).data_type(), &DataType::Utf8);
        assert_eq!(sent.schema().field(1), &Field::new("d", DataType::Utf8, false));
        assert!(matches!(sent.schema().field(2).data_type(), DataType::List(_)));
        assert_eq!(sent.num_rows(), 2);

        let asked = ResultTypes { views: true, dictionaries: true }.result_schema(&planned);
        assert_eq!(asked.fields()[..2], planned.fields()[..2]);
        assert_eq!(ResultSchema(asked).conform(batch.clone()).unwrap().columns()[..2], batch.columns()[..2]);
    }

    #[test]
    fn the_types_that_a_reader_takes_have_names() {
        let all: ResultTypes = " dictionaries, views".parse().unwrap();
        assert_eq!(all, ResultTypes { views: true, dictionaries: true });
        assert_eq!(all.to_string().parse::<ResultTypes>().unwrap(), all);
        assert_eq!("".parse::<ResultTypes>().unwrap(), ResultTypes::default());
        assert_eq!("view".parse::<ResultTypes>().unwrap_err().code(), "sql_plan_error");
    }

    #[test]
    fn what_is_no_value_of_an_extension_any_more_is_not_called_one() {
        let named = |name: &str, data_type: DataType| {
            let metadata = [(EXTENSION_TYPE_NAME_KEY, name), (EXTENSION_TYPE_METADATA_KEY, ""), ("note", "kept")];
            let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            Field::new("v", data_type, true).with_metadata(metadata)
        };
        for (name, stored, cast) in [
            ("arrow.bool8", DataType::Int8, DataType::Boolean),
            ("arrow.uuid", DataType::FixedSizeBinary(16), DataType::Utf8),
            ("arrow.json", DataType::Utf8, DataType::Int64),
        ] {
            let list = DataType::List(Arc::new(named(name, cast.clone())));
            let planned = Schema::new(vec![named(name, stored), named(name, cast), Field::new("l", list, true)]);
            let promised = ResultTypes::default().result_schema(&planned);
            assert_eq!(promised.field(0), planned.field(0), "{name}");
            let DataType::List(item) = promised.field(2).data_type() else { panic!("{name}: a list stays one") };
            for field in [promised.field(1), item.as_ref()] {
                assert_eq!(field.extension_type_name(), None, "{name}");
                assert_eq!(field.metadata().get("note").map(String::as_str), Some("kept"), "{name}");
            }
        }
        let geometry = named("geoarrow.wkb", DataType::Binary);
        let promised = ResultTypes::default().result_schema(&Schema::new(vec![geometry.clone()]));
        assert_eq!(promised.field(0), &geometry);
    }

    #[test]
    fn views_are_plain_at_every_level() {
        let inner = Field::new("item", DataType::Utf8View, true);
        let planned = Schema::new(vec![
            Field::new("a", DataType::List(Arc::new(inner)), false),
            Field::new("b", DataType::Int64, true),
        ]);
        let promised = ResultTypes::default().result_schema(&planned);
        let plain = Field::new("item", DataType::Utf8, true);
        assert_eq!(promised.field(0).data_type(), &DataType::List(Arc::new(plain)));
        assert!(!promised.field(0).is_nullable());
        assert_eq!(promised.field(1), planned.field(1));
    }
}

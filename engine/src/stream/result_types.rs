//! The types of a result's columns. Few clients read string views, dictionaries, run-end encoding and large lists, which are
//! details of execution, so a result has the plain types that they stand for, at any depth, unless its reader asks for them.
//!
//! Every door sends what [`ResultTypes::result_schema`] promises: Flight SQL, whose clients refuse a stream that differs from
//! its `FlightInfo`, and `/v1/query`.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

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
        match &data_type == field.data_type() {
            true => Arc::clone(field),
            false => Arc::new(
                Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone()),
            ),
        }
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

//! A statement as tickets and handles carry it, with the values of its parameters.
//!
//! Those of one row of common types are carried by themselves: as an Arrow IPC stream they would take some hundred bytes
//! more, in each of the three calls of a point query, and a message of less than 256 bytes is written at once with its head
//! and its end. Invariant: [`StatementText::parameter_rows`] returns what [`StatementText::with_parameters`] was given.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, NullArray, RecordBatch, StringArray,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use prost::Message;
use querent_engine::Session;

use crate::error::ApiError;
use crate::query_limits::QueryLanguage;

/// A statement that can be executed without its client sending it again.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatementText {
    /// Its text.
    #[prost(string, tag = "1")]
    pub(super) text: String,
    /// Where its bare names resolve.
    #[prost(string, tag = "2")]
    pub(super) database: String,
    /// Whether it is KQL.
    #[prost(bool, tag = "3")]
    pub(super) is_kql: bool,
    /// The values of its parameters, as an Arrow IPC stream; empty where there are none, or they are in `values`.
    #[prost(bytes = "bytes", tag = "4")]
    rows: Bytes,
    /// Whether its database was looked up for its caller, so that it need not be for every use.
    #[prost(bool, tag = "5")]
    pub(super) is_database_known: bool,
    /// The values of its parameters, where they are one row of common types.
    #[prost(message, repeated, tag = "6")]
    values: Vec<CarriedValue>,
}

/// The value of one parameter.
#[derive(Clone, PartialEq, Message)]
struct CarriedValue {
    /// The name of its column.
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "CommonValue", tags = "2, 3, 4, 5, 6")]
    value: Option<CommonValue>,
}

/// A value of a type that clients bind.
#[derive(Clone, PartialEq, prost::Oneof)]
enum CommonValue {
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(sint32, tag = "3")]
    Int32(i32),
    #[prost(sint64, tag = "4")]
    Int64(i64),
    #[prost(double, tag = "5")]
    Float64(f64),
    #[prost(string, tag = "6")]
    Text(String),
}

impl StatementText {
    pub(super) fn new(text: String, database: &str, language: QueryLanguage) -> Self {
        let is_kql = language == QueryLanguage::Kql;
        Self { text, database: database.to_owned(), is_kql, ..Self::default() }
    }

    /// Returns the statement of a caller whose session is in the database.
    pub(super) fn in_session(text: String, session: &Session, language: QueryLanguage) -> Self {
        Self { is_database_known: true, ..Self::new(text, session.database(), language) }
    }

    /// Returns the statement with values of its parameters.
    pub(super) fn with_parameters(&self, rows: &RecordBatch) -> Result<Self, ApiError> {
        let statement = self.without_parameters();
        if let Some(values) = CarriedValue::of_row(rows) {
            return Ok(Self { values, ..statement });
        }
        let mut writer = StreamWriter::try_new(Vec::new(), rows.schema_ref()).map_err(ApiError::internal)?;
        writer.write(rows).map_err(ApiError::internal)?;
        let rows = writer.into_inner().map_err(ApiError::internal)?.into();
        Ok(Self { rows, ..statement })
    }

    /// Returns the statement with its parameters open.
    pub(super) fn without_parameters(&self) -> Self {
        Self {
            text: self.text.clone(),
            database: self.database.clone(),
            is_kql: self.is_kql,
            is_database_known: self.is_database_known,
            ..Self::default()
        }
    }

    /// Whether its parameters have values.
    pub(super) fn has_parameters(&self) -> bool {
        !self.rows.is_empty() || !self.values.is_empty()
    }

    /// Returns the values of its parameters, one column each.
    pub(super) fn parameter_rows(&self) -> Result<Option<RecordBatch>, ApiError> {
        if !self.values.is_empty() {
            return CarriedValue::to_row(&self.values).map(Some).map_err(ApiError::internal);
        }
        if self.rows.is_empty() {
            return Ok(None);
        }
        let mut reader = StreamReader::try_new(self.rows.as_ref(), None).map_err(ApiError::internal)?;
        reader.next().transpose().map_err(ApiError::internal)
    }

    /// Returns about how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.rows.len() + self.values.iter().map(Message::encoded_len).sum::<usize>()
    }
}

impl CarriedValue {
    /// Returns the values of one row; `None` for other rows, and for values that are carried as Arrow.
    fn of_row(rows: &RecordBatch) -> Option<Vec<Self>> {
        if rows.num_rows() != 1 || !rows.schema_ref().metadata().is_empty() {
            return None;
        }
        let fields = rows.schema_ref().fields().iter();
        fields.zip(rows.columns()).map(|(field, column)| Self::of_column(field, column)).collect()
    }

    fn of_column(field: &Field, column: &ArrayRef) -> Option<Self> {
        // Metadata may name an extension type.
        if !field.metadata().is_empty() || column.is_null(0) {
            return None;
        }
        let value = match column.data_type() {
            DataType::Boolean => CommonValue::Boolean(column.as_boolean().value(0)),
            DataType::Int32 => CommonValue::Int32(column.as_primitive::<Int32Type>().value(0)),
            DataType::Int64 => CommonValue::Int64(column.as_primitive::<Int64Type>().value(0)),
            DataType::Float64 => CommonValue::Float64(column.as_primitive::<Float64Type>().value(0)),
            DataType::Utf8 => CommonValue::Text(column.as_string::<i32>().value(0).to_owned()),
            _ => return None,
        };
        Some(Self { name: field.name().clone(), value: Some(value) })
    }

    fn to_row(values: &[Self]) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = values.iter().map(Self::to_column).collect();
        let named = values.iter().zip(&columns);
        let fields: Vec<Field> =
            named.map(|(value, column)| Field::new(&value.name, column.data_type().clone(), true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }

    fn to_column(&self) -> ArrayRef {
        match &self.value {
            Some(CommonValue::Boolean(value)) => Arc::new(BooleanArray::from(vec![*value])),
            Some(CommonValue::Int32(value)) => Arc::new(Int32Array::from(vec![*value])),
            Some(CommonValue::Int64(value)) => Arc::new(Int64Array::from(vec![*value])),
            Some(CommonValue::Float64(value)) => Arc::new(Float64Array::from(vec![*value])),
            Some(CommonValue::Text(value)) => Arc::new(StringArray::from(vec![value.as_str()])),
            None => Arc::new(NullArray::new(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::Int16Array;

    use super::*;

    fn column(values: impl Array + 'static) -> ArrayRef {
        Arc::new(values)
    }

    fn statement() -> StatementText {
        StatementText::new("SELECT ?".to_owned(), "default", QueryLanguage::Sql)
    }

    fn after_travelling(statement: &StatementText) -> RecordBatch {
        let carried = StatementText::decode(statement.encode_to_vec().as_slice()).unwrap();
        assert!(carried.has_parameters());
        carried.parameter_rows().unwrap().unwrap()
    }

    fn row(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .unwrap()
    }

    #[test]
    fn one_row_of_common_values_is_carried_in_few_bytes() {
        let rows = row(vec![
            ("0", column(Int64Array::from(vec![i64::MIN]))),
            ("1", column(Int32Array::from(vec![-7]))),
            ("2", column(Float64Array::from(vec![-0.0]))),
            ("", column(BooleanArray::from(vec![false]))),
            ("$name", column(StringArray::from(vec!["né"]))),
            ("5", column(StringArray::from(vec![""]))),
        ]);
        let bound = statement().with_parameters(&rows).unwrap();
        assert!(bound.rows.is_empty());
        assert!(bound.encoded_len() < 120, "{}", bound.encoded_len());
        assert_eq!(after_travelling(&bound), rows);
        let again = bound.with_parameters(&row(vec![("0", column(Int64Array::from(vec![7])))])).unwrap();
        assert_eq!(again.parameter_rows().unwrap().unwrap().num_columns(), 1);
        assert!(!again.without_parameters().has_parameters());
        assert_eq!(again.without_parameters(), statement());
    }

    #[test]
    fn other_values_are_carried_as_they_are() {
        let text = || column(StringArray::from(vec!["a"]));
        let named = Field::new("0", DataType::Utf8, true);
        let named = named.with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())]));
        for rows in [
            row(vec![("0", column(Int64Array::from(vec![1, 2])))]),
            row(vec![("0", text()), ("1", column(Int64Array::from(vec![None::<i64>])))]),
            row(vec![("0", text()), ("1", column(Int16Array::from(vec![1])))]),
            RecordBatch::try_new(Arc::new(Schema::new(vec![named])), vec![text()]).unwrap(),
        ] {
            let bound = statement().with_parameters(&rows).unwrap();
            assert!(bound.values.is_empty());
            assert_eq!(after_travelling(&bound), rows);
        }
    }
}

//! Rows of a query as a Parquet file, for COPY and for clients. Times of seconds are written in milliseconds, as Parquet has none
//! of seconds: others would read them as numbers.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;

use crate::type_parts::any_part;

/// The most rows and bytes of a row group, all of which its writer holds: DuckDB's rows, and fewer wide ones.
const ROW_GROUP_ROWS: usize = 122_880;
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Returns the name of a column of a type that Parquet files do not hold, an INTERVAL, if there is one.
pub fn parquet_lacks(schema: &Schema) -> Option<&str> {
    fn is_unfit(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Interval(_)) || any_part(data_type, &is_unfit)
    }
    let unfit = schema.fields().iter().find(|field| is_unfit(field.data_type()))?;
    Some(unfit.name())
}

/// A Parquet file that rows of a query are written to.
#[derive(Debug)]
pub struct ParquetRows<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    /// Whether the rows have it already.
    is_same: bool,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Begins a file of rows of a schema. Errors: a type that Parquet does not have.
    pub fn try_new(file: W, schema: &Schema, compression: Compression) -> Result<Self> {
        let fields: Fields = schema.fields().iter().map(written_field).collect();
        let is_same = fields == *schema.fields();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .build();
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?;
        Ok(Self { writer, schema, is_same })
    }

    /// Writes rows. Errors: a time of seconds that milliseconds have no place for.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.is_same {
            return self.writer.write(batch);
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| {
            match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => cast_with_options(column, field.data_type(), &options),
            }
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Returns where the file is written to, with what was written.
    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    /// Ends the file, and returns where it was written to.
    pub fn into_inner(self) -> Result<W> {
        self.writer.into_inner()
    }
}

fn written_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(written_type(field.data_type())))
}

/// Returns the type as which values of a type are written.
fn written_type(data_type: &DataType) -> DataType {
    let fields = |fields: &Fields| fields.iter().map(written_field).collect::<Fields>();
    match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::List(item) => DataType::List(written_field(item)),
        DataType::LargeList(item) => DataType::LargeList(written_field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(written_field(item), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(written_field(entries), *is_sorted),
        DataType::Struct(parts) => DataType::Struct(fields(parts)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, Time32SecondArray, TimestampSecondArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn times_of_seconds_are_times_for_those_who_read_them() {
        let columns: [(&str, ArrayRef); 2] = [
            ("at", Arc::new(TimestampSecondArray::from(vec![Some(-1), None]))),
            ("daily", Arc::new(Time32SecondArray::from(vec![Some(5), None]))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        let mut file = ParquetRows::try_new(Vec::new(), &batch.schema(), Compression::UNCOMPRESSED).unwrap();
        file.write(&batch).unwrap();
        let written = bytes::Bytes::from(file.into_inner().unwrap());
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(written).unwrap().build().unwrap();
        let read = reader.next().unwrap().unwrap();
        assert_eq!(*read.column(0).data_type(), DataType::Timestamp(TimeUnit::Millisecond, None));
        assert_eq!(*read.column(1).data_type(), DataType::Time32(TimeUnit::Millisecond));
        assert_eq!((read.num_rows(), read.column(0).null_count()), (2, 1));
    }
}

//! Writes a Parquet file's row groups: several are encoded side by side, each on a thread of its own, and appended in order.
//!
//! Invariant: rows come out in the order in which they went in, and at most [`MAX_ENCODING`] groups of at most
//! [`ROW_GROUP_BYTES`] are held beside the one that is being filled.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::writer::SerializedFileWriter;
use querent_catalog::{ChecksumWriter, PageChecksum};

use crate::limits::batch_bytes;

/// DuckDB's row group size: small enough to prune and to spread one file over threads.
pub(super) const ROW_GROUP_ROWS: usize = 122_880;
/// Rows of wide text close a row group sooner, which bounds the memory of a write.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// Groups that are encoded at once, on as many cores.
const MAX_ENCODING: usize = 4;

/// A Parquet file that is being written.
pub(super) struct RowGroupWriter {
    file: SerializedFileWriter<ChecksumWriter<File>>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The rows of the next group.
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Groups that were begun.
    groups: usize,
    /// Those of them that are not in the file yet, in order.
    encoding: VecDeque<JoinHandle<Result<Vec<ArrowColumnChunk>>>>,
    max_encoding: usize,
}

impl RowGroupWriter {
    pub(super) fn try_new(file: File, schema: SchemaRef, options: ArrowWriterOptions) -> Result<Self> {
        let writer = ArrowWriter::try_new_with_options(ChecksumWriter::new(file), Arc::clone(&schema), options)?;
        let (file, factory) = writer.into_serialized_writer()?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            file,
            factory,
            schema,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            groups: 0,
            encoding: VecDeque::new(),
            max_encoding: cores.min(MAX_ENCODING),
        })
    }

    /// Adds the rows of a batch. Errors: those of groups that were encoded meanwhile.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let row_bytes = batch_bytes(batch).div_ceil(batch.num_rows().max(1)).max(1);
        let mut start = 0;
        while start < batch.num_rows() {
            let room = (ROW_GROUP_BYTES.saturating_sub(self.bytes) / row_bytes).max(1);
            let rows = (batch.num_rows() - start).min(ROW_GROUP_ROWS - self.rows).min(room);
            self.batches.push(batch.slice(start, rows));
            self.rows += rows;
            self.bytes += rows * row_bytes;
            start += rows;
            if self.rows >= ROW_GROUP_ROWS || self.bytes >= ROW_GROUP_BYTES {
                self.begin_group()?;
            }
        }
        Ok(())
    }

    /// Returns the bytes in the file so far.
    pub(super) fn bytes_written(&self) -> usize {
        self.file.bytes_written()
    }

    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        self.file.inner().inner()
    }

    /// Writes what is left, and the footer, which has a checksum over what comes before it and the indexes. The file is still to be
    /// synced.
    pub(super) fn finish(mut self) -> Result<(ParquetMetaData, SerializedFileWriter<ChecksumWriter<File>>)> {
        if self.encoding.is_empty() && !self.batches.is_empty() {
            // The only group, or the last: nothing could be done beside it.
            let (batches, writers) = self.take_group()?;
            append(&mut self.file, encode(&self.schema, &batches, writers)?)?;
        } else if !self.batches.is_empty() {
            self.begin_group()?;
        }
        while !self.encoding.is_empty() {
            self.append_oldest()?;
        }
        self.file.flush()?;
        let checksum = self.file.inner().checksum().to_string();
        self.file.append_key_value_metadata(KeyValue::new(PageChecksum::KEY.to_owned(), checksum));
        let metadata = self.file.finish()?;
        Ok((metadata, self.file))
    }

    fn begin_group(&mut self) -> Result<()> {
        if self.encoding.len() >= self.max_encoding {
            self.append_oldest()?;
        }
        let (batches, writers) = self.take_group()?;
        let schema = Arc::clone(&self.schema);
        let thread = thread::Builder::new().name("querent-parquet".to_owned());
        self.encoding.push_back(thread.spawn(move || encode(&schema, &batches, writers))?);
        Ok(())
    }

    fn take_group(&mut self) -> Result<(Vec<RecordBatch>, Vec<ArrowColumnWriter>)> {
        let writers = self.factory.create_column_writers(self.groups)?;
        self.groups += 1;
        (self.rows, self.bytes) = (0, 0);
        Ok((std::mem::take(&mut self.batches), writers))
    }

    fn append_oldest(&mut self) -> Result<()> {
        let Some(oldest) = self.encoding.pop_front() else { return Ok(()) };
        let chunks = oldest.join().map_err(|_| ParquetError::General("encoding a row group failed".to_owned()))?;
        append(&mut self.file, chunks?)
    }
}

/// Encodes the rows of one group, a chunk for each leaf column.
fn encode(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    mut writers: Vec<ArrowColumnWriter>,
) -> Result<Vec<ArrowColumnChunk>> {
    for batch in batches {
        let mut leaf = writers.iter_mut();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            for levels in compute_leaves(field, column)? {
                let writer = leaf.next().ok_or_else(|| ParquetError::General("a column has no writer".to_owned()))?;
                writer.write(&levels)?;
            }
        }
    }
    writers.into_iter().map(ArrowColumnWriter::close).collect()
}

fn append(file: &mut SerializedFileWriter<ChecksumWriter<File>>, chunks: Vec<ArrowColumnChunk>) -> Result<()> {
    let mut group = file.next_row_group()?;
    for chunk in chunks {
        chunk.append_to_row_group(&mut group)?;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests may block")]
mod tests {
    use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn rows_stay_in_order_over_many_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let batch = |from: i64, rows: i64| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
            let lists = (from..from + rows).map(|n| (n % 3 != 0).then(|| vec![Some(n), None]));
            let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
            RecordBatch::try_from_iter([("n", numbers), ("l", lists)]).unwrap()
        };
        let first = batch(0, 1);
        let mut writer = RowGroupWriter::try_new(File::create(&path).unwrap(), first.schema(), options()).unwrap();
        let mut next = 0;
        for rows in [1, 99_999, 200_000, 1, 300_000, 7] {
            writer.write(&batch(next, rows)).unwrap();
            next += rows;
        }
        let (metadata, _) = writer.finish().unwrap();
        assert_eq!(metadata.num_row_groups(), (next as usize).div_ceil(ROW_GROUP_ROWS));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
        let mut expected = 0;
        for batch in reader {
            let batch = batch.unwrap();
            let lists = batch.column(1).as_list::<i32>();
            for (row, n) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
                assert_eq!(*n, expected);
                assert_eq!(lists.is_valid(row), n % 3 != 0);
                expected += 1;
            }
        }
        assert_eq!(expected, next);
    }

    #[test]
    fn wide_rows_close_a_group_sooner() {
        let folder = tempfile::tempdir().unwrap();
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..300).map(|_| "x".repeat(1 << 20))));
        let batch = RecordBatch::try_from_iter([("s", texts)]).unwrap();
        let file = File::create(folder.path().join("t.parquet")).unwrap();
        let mut writer = RowGroupWriter::try_new(file, batch.schema(), options()).unwrap();
        writer.write(&batch).unwrap();
        let (metadata, _) = writer.finish().unwrap();
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert!(rows.len() >= 4 && rows.iter().all(|rows| *rows <= 64), "{rows:?}");
        assert_eq!(rows.iter().sum::<i64>(), 300);
    }

    fn options() -> ArrowWriterOptions {
        ArrowWriterOptions::new()
    }
}

//! Writes a stream of batches as Parquet files of a managed table, with the statistics DuckLake keeps.
//!
//! File I/O runs on one blocking thread that a short queue feeds, encoding on threads that it starts ([`row_groups`]), so
//! the runtime never waits for either.
//! Files are synced before they are reported, and on an error, or when the caller goes away, none of them is left.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use querent_catalog::{CatalogError, NewDataFile, announce_uncommitted, forget_uncommitted, holds_uuids};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::encodings::{ColumnEncoding, SAMPLED_ROWS, has_bloom_filter};
use super::file_statistics;
use super::leaf_statistics::{FloatStats, Leaf, column_stats, leaves, note_nan};
use super::row_groups::{ROW_GROUP_ROWS, RowGroupWriter};
use crate::error::{EngineError, Result, full_disk_in};
use crate::functions::{assigned, read_uuids, refuse_long_decimals};
use crate::limits::batch_bytes;

/// Past this size a file is closed and the next one begun.
const TARGET_FILE_BYTES: usize = 256 << 20;
/// What was written goes to the disk in pieces of at least so many bytes while the rest is encoded, so that closing a file waits
/// for little.
const EARLY_SYNC_BYTES: usize = 32 << 20;
/// The most rows of a page.
const PAGE_ROWS: usize = 20_000;
/// Columns of a file that get a Bloom filter, and the part of the values that are not there which pass it all the same. A filter
/// of a whole row group has 128 KiB, a byte for each value; one of fewer values is made smaller.
const MOST_BLOOM_FILTERS: usize = 16;
const BLOOM_FILTER_FPP: f64 = 0.05;
/// The bytes of rows that are gathered before a file is begun, unless one batch has more; and [`SAMPLED_ROWS`] at most.
const FIRST_BYTES: usize = 16 << 20;
/// Batches waiting for the writing thread.
const QUEUE: usize = 4;

/// Where files are written, and when one is closed.
pub(super) struct WriteTarget {
    folder: PathBuf,
    /// Past this size a file is closed and the next one begun.
    file_bytes: usize,
    /// Takes each file when it is closed; `None`: the files stay in their folder.
    closed: Option<mpsc::Sender<NewDataFile>>,
}

impl WriteTarget {
    /// A folder in which the files stay, synced.
    pub(super) fn kept(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), file_bytes: TARGET_FILE_BYTES, closed: None }
    }

    /// A folder from which each file is taken when it is closed.
    pub(super) fn taken(folder: &Path, file_bytes: usize, closed: mpsc::Sender<NewDataFile>) -> Self {
        Self { folder: folder.to_path_buf(), file_bytes, closed: Some(closed) }
    }
}

/// Writes a stream as Parquet files named `ducklake-<uuidv7>.parquet` in the target's folder (created where it is missing), each
/// with statistics. `write_schema` has field ids; input batches are cast to it by position. Returns the files that stay. On an
/// error, and when the future is dropped, these are removed. A stream without rows makes no file.
pub(super) async fn write_stream(
    target: WriteTarget,
    write_schema: SchemaRef,
    mut input: SendableRecordBatchStream,
) -> Result<Vec<NewDataFile>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let writing = tokio::task::spawn_blocking(move || write_all(&target, write_schema, receiver));
    let mut failure = None;
    while let Some(batch) = input.next().await {
        match batch {
            Ok(batch) => {
                // The writer drops the receiver when it fails; its own error is the one to report.
                if sender.send(WriterMessage::Batch(batch)).await.is_err() {
                    break;
                }
            }
            Err(error) => {
                failure = Some(EngineError::from(error));
                break;
            }
        }
    }
    if failure.is_none() {
        // A refused message means that the writer has failed already.
        let _ = sender.send(WriterMessage::End).await;
    }
    drop(sender);
    let written = writing.await.map_err(|error| EngineError::Internal(format!("writing thread: {error}")))?;
    match failure {
        Some(error) => Err(error),
        None => written.map(WrittenFiles::keep),
    }
}

enum WriterMessage {
    Batch(RecordBatch),
    /// Without it a closed queue means that the caller went away.
    End,
}

/// The files of one write; removed again unless kept.
#[derive(Default)]
struct WrittenFiles {
    files: Vec<NewDataFile>,
}

impl WrittenFiles {
    fn add(&mut self, file: NewDataFile, target: &WriteTarget) -> Result<()> {
        match &target.closed {
            None => self.files.push(file),
            // Whoever takes the files and then does not has an error of their own, which is the one to report.
            Some(closed) => {
                // It goes on under another name.
                forget_uncommitted(&file.path);
                closed.blocking_send(file).map_err(|_| abandoned())?;
            }
        }
        Ok(())
    }

    fn keep(mut self) -> Vec<NewDataFile> {
        std::mem::take(&mut self.files)
    }
}

impl Drop for WrittenFiles {
    fn drop(&mut self) {
        for file in &self.files {
            remove(&file.path);
        }
    }
}

fn write_all(
    target: &WriteTarget,
    schema: SchemaRef,
    mut batches: mpsc::Receiver<WriterMessage>,
) -> Result<WrittenFiles> {
    let mut files = DataFiles::new(target, leaves(&schema));
    while let Some(message) = batches.blocking_recv() {
        let WriterMessage::Batch(batch) = message else {
            let written = files.finish()?;
            if !written.files.is_empty() {
                sync_folder(&target.folder)?;
            }
            return Ok(written);
        };
        if batch.num_rows() > 0 {
            files.add(cast_batch(&batch, &schema)?)?;
        }
    }
    Err(abandoned())
}

/// The files of one write: those that are closed, the one that is open, and the first rows of the next.
struct DataFiles<'t> {
    target: &'t WriteTarget,
    leaves: Vec<Leaf>,
    written: WrittenFiles,
    open: Option<OpenDataFile>,
    /// None while a file is open.
    first: FirstRows,
}

impl<'t> DataFiles<'t> {
    fn new(target: &'t WriteTarget, leaves: Vec<Leaf>) -> Self {
        Self { target, leaves, written: WrittenFiles::default(), open: None, first: FirstRows::default() }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let nan = nan_leaves(&batch, self.leaves.len());
        let has_nan = self.open.as_ref().map_or(&self.first.has_nan, |file| &file.has_nan);
        if !has_nan.is_empty() && !may_hold(has_nan, &nan) {
            self.close()?;
        }
        if let Some(file) = &mut self.open {
            file.write(&batch, &self.leaves)?;
        } else if self.first.add(batch, nan) {
            self.begin()?;
        }
        if self.open.as_ref().is_some_and(|file| file.bytes() >= self.target.file_bytes) {
            self.close()?;
        }
        Ok(())
    }

    /// Begins a file with the first rows, if there are any.
    fn begin(&mut self) -> Result<()> {
        let FirstRows { batches, bytes, has_nan, rows: _ } = std::mem::take(&mut self.first);
        let Some(last) = batches.last() else { return Ok(()) };
        // A large batch is looked at by itself: it is not copied.
        let sample = match batches.len() {
            1 => last.clone(),
            _ if bytes > 2 * FIRST_BYTES => last.clone(),
            _ => concat_batches(&last.schema(), &batches).map_err(|error| EngineError::Internal(error.to_string()))?,
        };
        let mut file = OpenDataFile::create(&self.target.folder, &self.leaves, has_nan, &sample)?;
        drop(sample);
        for batch in &batches {
            file.write(batch, &self.leaves)?;
        }
        self.open = Some(file);
        Ok(())
    }

    /// Ends the file that is open, or the one whose first rows are there.
    fn close(&mut self) -> Result<()> {
        self.begin()?;
        match self.open.take() {
            Some(file) => self.written.add(file.close(&self.leaves)?, self.target),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<WrittenFiles> {
        self.close()?;
        Ok(self.written)
    }
}

/// The first rows of a file, gathered until they tell how its columns are best written: what is computed may come a few rows at a
/// time.
#[derive(Default)]
struct FirstRows {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// The leaves with NaN; empty while there are no rows.
    has_nan: Vec<bool>,
}

impl FirstRows {
    /// Adds a batch and returns whether there are enough rows. The first batch says where NaN may be.
    fn add(&mut self, batch: RecordBatch, nan: Vec<bool>) -> bool {
        if self.batches.is_empty() {
            self.has_nan = nan;
        }
        self.rows += batch.num_rows();
        self.bytes = self.bytes.saturating_add(batch_bytes(&batch));
        self.batches.push(batch);
        self.rows >= SAMPLED_ROWS || self.bytes >= FIRST_BYTES
    }
}

/// Returns whether values with NaN in the leaves that `nan` names may be added where `has_nan` names those that had some at first.
fn may_hold(has_nan: &[bool], nan: &[bool]) -> bool {
    nan.iter().zip(has_nan).all(|(comes, known)| *known || !*comes)
}

fn abandoned() -> EngineError {
    EngineError::Execution { message: "the write was abandoned".into() }
}

/// A Parquet file being written; removed unless closed.
struct OpenDataFile {
    path: PathBuf,
    writer: Option<RowGroupWriter>,
    early_sync: EarlySync,
    has_nan: Vec<bool>,
    /// One for each leaf; only for those with NaN that are columns of their own.
    floats: Vec<Option<FloatStats>>,
}

impl OpenDataFile {
    /// Begins a file by a look at its first rows, which are not written yet. The leaves that `has_nan` names get no statistics: Parquet's leave NaN
    /// out, and readers would prune by them.
    fn create(location: &Path, leaves: &[Leaf], has_nan: Vec<bool>, first: &RecordBatch) -> Result<Self> {
        let schema = first.schema();
        #[expect(clippy::disallowed_methods, reason = "runs on the blocking thread of write_files")]
        std::fs::create_dir_all(location).map_err(|source| io_error(location, source))?;
        let path = location.join(format!("ducklake-{}.parquet", Uuid::now_v7()));
        let parquet = ArrowSchemaConverter::new().convert(&schema).map_err(|error| parquet_error(&path, &error))?;
        announce_uncommitted(&path);
        #[expect(clippy::disallowed_methods, reason = "runs on the blocking thread of write_files")]
        let file = File::create(&path).map_err(|source| {
            forget_uncommitted(&path);
            io_error(&path, source)
        })?;
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("querent ", env!("CARGO_PKG_VERSION")).to_string())
            .set_compression(Compression::SNAPPY)
            .set_statistics_truncate_length(Some(file_statistics::TEXT_BOUND_BYTES))
            // What a reader has to read at least: it leaves out pages by the statistics of each, which the page index has.
            .set_data_page_row_count_limit(PAGE_ROWS);
        let mut bloom_filters = 0;
        for (index, (leaf, has_nan)) in leaves.iter().zip(&has_nan).enumerate() {
            let name = || parquet.column(index).path().clone();
            if *has_nan {
                properties = properties.set_column_statistics_enabled(name(), EnabledStatistics::None);
            }
            let Some(values) = leaf.column().map(|column| first.column(column)) else { continue };
            if bloom_filters < MOST_BLOOM_FILTERS && has_bloom_filter(values) {
                bloom_filters += 1;
                properties = properties
                    .set_column_bloom_filter_fpp(name(), BLOOM_FILTER_FPP)
                    .set_column_bloom_filter_ndv(name(), ROW_GROUP_ROWS as u64);
            }
            properties = match ColumnEncoding::for_column(values) {
                ColumnEncoding::Dictionary => properties,
                ColumnEncoding::Plain => properties.set_column_dictionary_enabled(name(), false),
                // Packed bits are not compressed any further.
                ColumnEncoding::Steps => properties
                    .set_column_dictionary_enabled(name(), false)
                    .set_column_encoding(name(), Encoding::DELTA_BINARY_PACKED)
                    .set_column_compression(name(), Compression::UNCOMPRESSED),
            };
        }
        let properties = properties.build();
        // Types come from the Parquet schema alone, as in files that DuckDB writes.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let floats = leaves
            .iter()
            .zip(&has_nan)
            .map(|(leaf, has_nan)| (*has_nan && leaf.column().is_some()).then(FloatStats::default))
            .collect();
        let mut opened = Self { path, writer: None, early_sync: EarlySync::default(), has_nan, floats };
        let writer =
            RowGroupWriter::try_new(file, schema, options).map_err(|error| parquet_error(&opened.path, &error))?;
        opened.writer = Some(writer);
        Ok(opened)
    }

    fn write(&mut self, batch: &RecordBatch, leaves: &[Leaf]) -> Result<()> {
        for (leaf, floats) in leaves.iter().zip(&mut self.floats) {
            if let (Some(column), Some(floats)) = (leaf.column(), floats) {
                floats.add(batch.column(column));
            }
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write(batch).map_err(|error| parquet_error(&self.path, &error))?;
        self.early_sync.go_on(writer.file(), writer.bytes_written()).map_err(|source| io_error(&self.path, source))
    }

    fn bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, RowGroupWriter::bytes_written)
    }

    fn close(mut self, leaves: &[Leaf]) -> Result<NewDataFile> {
        let Some(writer) = self.writer.take() else {
            return Err(EngineError::Internal("data file closed twice".into()));
        };
        let finished = (|| {
            let (metadata, writer) = writer.finish().map_err(|error| parquet_error(&self.path, &error))?;
            let file = writer.inner().inner();
            self.early_sync.end().and_then(|()| file.sync_all()).map_err(|source| io_error(&self.path, source))?;
            let file_size_bytes = file.metadata().map_err(|source| io_error(&self.path, source))?.len();
            let footer_size = footer_size(&self.path)?;
            Ok(NewDataFile {
                path: self.path.clone(),
                row_count: u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default(),
                file_size_bytes,
                footer_size,
                column_stats: column_stats(&metadata, leaves, &self.has_nan, &self.floats),
            })
        })();
        match finished {
            Ok(file) => {
                // From here on the list of written files removes it.
                self.path = PathBuf::new();
                Ok(file)
            }
            Err(error) => Err(error),
        }
    }
}

/// Sends the first parts of a file to the disk while it is being written.
#[derive(Default)]
struct EarlySync {
    /// Bytes of the file when the last part was sent.
    begun_at: usize,
    /// The system tells of a failed write once, and this is who may be told.
    running: Option<JoinHandle<io::Result<()>>>,
}

impl EarlySync {
    /// Begins the next part, if there is enough of it and the one before is done. Errors: those of the one before.
    fn go_on(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        if bytes < self.begun_at + EARLY_SYNC_BYTES
            || self.running.as_ref().is_some_and(|running| !running.is_finished())
        {
            return Ok(());
        }
        self.end()?;
        self.begun_at = bytes;
        let file = file.try_clone()?;
        let syncing = thread::Builder::new().name("querent-sync".to_owned()).spawn(move || file.sync_data())?;
        self.running = Some(syncing);
        Ok(())
    }

    /// Waits for the part that is on its way. Errors: its own.
    fn end(&mut self) -> io::Result<()> {
        match self.running.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(synced)) => synced,
            Some(Err(_)) => Err(io::Error::other("syncing a file failed")),
        }
    }
}

fn nan_leaves(batch: &RecordBatch, leaves: usize) -> Vec<bool> {
    let (mut has_nan, mut leaf) = (vec![false; leaves], 0);
    for column in batch.columns() {
        note_nan(column, &mut has_nan, &mut leaf);
    }
    has_nan
}

impl Drop for OpenDataFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            drop(self.writer.take());
            remove(&self.path);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "undoes a write on the thread that made it")]
pub(super) fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "data file left behind");
    }
    forget_uncommitted(path);
}

/// A new file is durable only when its folder's entry is, and so on up to the folder of all databases.
#[expect(clippy::disallowed_methods, reason = "runs on the blocking thread of write_files")]
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    for folder in folder.ancestors().take(3) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| io_error(folder, source))?;
    }
    Ok(())
}

/// Returns the bytes of the file's metadata, as its last eight bytes say.
#[expect(clippy::disallowed_methods, reason = "runs on the blocking thread of write_files")]
pub(super) fn footer_size(path: &Path) -> Result<u64> {
    use std::io::{Read, Seek, SeekFrom};

    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-8))?;
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        Ok(u64::from(u32::from_le_bytes(length)))
    };
    read().map_err(|source| io_error(path, source))
}

/// Returns the batch in the types of `schema`, column by column, converted as SQL's casts do. Errors: a value that does not
/// fit, a null where none may be.
pub(crate) fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(EngineError::Plan {
            message: format!("{} values for {} columns", batch.num_columns(), schema.fields().len()),
        });
    }
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| cast_column(column, field))
        .collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| EngineError::Internal(error.to_string()))
}

fn cast_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if !field.is_nullable() && column.null_count() > 0 {
        return Err(EngineError::InvalidValue { message: format!("column `{}` may not be null", field.name()) });
    }
    // Clients bind a null that they know no type of as a text.
    if column.data_type().is_string() && column.null_count() == column.len() {
        return Ok(new_null_array(field.data_type(), column.len()));
    }
    let invalid = |error: String| EngineError::InvalidValue { message: format!("column `{}`: {error}", field.name()) };
    let column = assigned(column, field.data_type()).map_err(|error| invalid(EngineError::from(error).to_string()))?;
    refuse_long_decimals(&column)?;
    match holds_uuids(field) {
        true => read_uuids(&column, false).map_err(|error| invalid(EngineError::from(error).to_string())),
        false => Ok(column),
    }
}

pub(super) fn io_error(path: &Path, source: std::io::Error) -> EngineError {
    EngineError::Catalog(CatalogError::of_file(path, source))
}

pub(super) fn parquet_error(path: &Path, error: &parquet::errors::ParquetError) -> EngineError {
    full_disk_in(error).unwrap_or_else(|| EngineError::Execution { message: format!("{}: {error}", path.display()) })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests may block")]
mod tests {
    use arrow::array::{Float64Array, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Schema};
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

    use super::*;

    /// Writes batches and returns the footers of the files.
    fn footers(batches: impl IntoIterator<Item = RecordBatch>) -> Vec<ParquetMetaData> {
        let folder = tempfile::tempdir().unwrap();
        let target = WriteTarget::kept(folder.path());
        let mut batches = batches.into_iter().peekable();
        let mut files = DataFiles::new(&target, leaves(&batches.peek().unwrap().schema()));
        batches.for_each(|batch| files.add(batch).unwrap());
        let written = files.finish().unwrap().keep();
        let footer = |file: &NewDataFile| {
            ParquetMetaDataReader::new().parse_and_finish(&File::open(&file.path).unwrap()).unwrap()
        };
        written.iter().map(footer).collect()
    }

    #[test]
    fn texts_that_are_all_null_are_nulls_of_any_type() {
        let structure = DataType::Struct(vec![Field::new("a", DataType::Int64, true)].into());
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("s", structure, true)]));
        let texts = |texts: Vec<Option<&str>>| -> RecordBatch {
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            RecordBatch::try_from_iter_with_nullable([("s", texts, true)]).unwrap()
        };
        let nulls = cast_batch(&texts(vec![None, None]), &schema).unwrap();
        assert_eq!((nulls.schema(), nulls.column(0).null_count()), (Arc::clone(&schema), 2));
        cast_batch(&texts(vec![None, Some("x")]), &schema).unwrap_err();
    }

    #[test]
    fn columns_are_judged_by_rows_that_come_a_few_at_a_time() {
        let batch = |from: i64| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((from..from + 10).map(|n| n * 7_919)));
            let codes = (from..from + 10).map(|n| format!("{:x}", n.wrapping_mul(-7_046_029_254_386_353_131)));
            let codes: ArrayRef = Arc::new(StringArray::from_iter_values(codes));
            RecordBatch::try_from_iter([("n", numbers), ("code", codes)]).unwrap()
        };
        let footers = footers((0..2_000).map(|n| batch(n * 10)));
        let [footer] = footers.as_slice() else { panic!("{} files", footers.len()) };
        assert_eq!(footer.file_metadata().num_rows(), 20_000);
        let [numbers, codes] = footer.row_group(0).columns() else { panic!("two columns") };
        assert_eq!(numbers.compression(), Compression::UNCOMPRESSED, "the steps between numbers");
        assert!(numbers.bloom_filter_offset().is_none() && codes.bloom_filter_offset().is_some());
        assert!(codes.dictionary_page_offset().is_none());
    }

    #[test]
    fn rows_with_nan_begin_a_file_after_rows_without() {
        let batch = |value: f64| {
            let values: ArrayRef = Arc::new(Float64Array::from_iter_values([value]));
            RecordBatch::try_from_iter([("x", values)]).unwrap()
        };
        let rows = |values: &[f64]| -> Vec<i64> {
            let footers = footers(values.iter().map(|value| batch(*value)));
            footers.iter().map(|footer| footer.file_metadata().num_rows()).collect()
        };
        assert_eq!(rows(&[1.0, 2.0]), [2]);
        assert_eq!(rows(&[1.0, 2.0, f64::NAN, 3.0]), [2, 2]);
        assert_eq!(rows(&[f64::NAN, 1.0]), [2]);
    }
}

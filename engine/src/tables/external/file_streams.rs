//! Scans of files that are read by readers of ours on blocking threads: each file from its beginning to its end, some files
//! at the same time.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

use super::LocatedFile;
use crate::error::{EngineError, Result};
use crate::functions::with_one_nan;

/// Batches between the reading thread and the query.
const BATCHES_AHEAD: usize = 2;

/// Takes a batch; false ends the reading.
pub(super) type EachBatch<'e> = &'e mut dyn FnMut(RecordBatch) -> Result<bool>;

/// A reader of one format's files.
pub(super) trait ScanReader: Debug + Send + Sync {
    /// Reads a file's rows as these columns, which are some of the table's in the file. Blocks.
    fn read_file(&self, file: &LocatedFile, wanted: &Schema, each: EachBatch<'_>) -> Result<()>;
}

/// A file, and the values of its folders.
#[derive(Debug, Clone)]
pub(super) struct FileInFolders {
    pub file: LocatedFile,
    pub folders: Vec<ScalarValue>,
}

/// A scan of `files`, split into at most `partitions` streams. Columns of `schema` after the first `in_files` are the
/// folders' values.
pub(super) fn plan(
    reader: Arc<dyn ScanReader>,
    files: Vec<FileInFolders>,
    schema: &SchemaRef,
    in_files: usize,
    projection: Option<&Vec<usize>>,
    limit: Option<usize>,
    partitions: usize,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let indices: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
    let projected = Arc::new(schema.project(&indices)?);
    let (in_file, _): (Vec<usize>, Vec<usize>) = indices.iter().partition(|index| **index < in_files);
    let read = Arc::new(schema.project(&in_file)?);
    let per_stream = files.len().div_ceil(partitions.max(1)).max(1);
    let streams = files
        .chunks(per_stream)
        .map(|files| {
            Arc::new(FileStream {
                reader: Arc::clone(&reader),
                files: files.to_vec(),
                schema: Arc::clone(&projected),
                read: Arc::clone(&read),
                indices: indices.clone(),
                in_files,
            }) as Arc<dyn PartitionStream>
        })
        .collect();
    Ok(Arc::new(StreamingTableExec::try_new(projected, streams, None, [], false, limit)?))
}

/// Some of a scan's files.
#[derive(Debug, Clone)]
struct FileStream {
    reader: Arc<dyn ScanReader>,
    files: Vec<FileInFolders>,
    schema: SchemaRef,
    /// The columns that are taken from the files.
    read: SchemaRef,
    /// Which columns of the table are wanted.
    indices: Vec<usize>,
    in_files: usize,
}

impl FileStream {
    fn arrange(&self, batch: &RecordBatch, folders: &[ScalarValue]) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut from_file = batch.columns().iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.indices.len());
        for (index, field) in self.indices.iter().zip(self.schema.fields()) {
            let missing = || EngineError::Internal(format!("no source for column {index}"));
            let array = match index.checked_sub(self.in_files) {
                None => Arc::clone(from_file.next().ok_or_else(missing)?),
                Some(folder) => folders.get(folder).ok_or_else(missing)?.to_array_of_size(rows)?,
            };
            let array = with_one_nan(&array).unwrap_or(array);
            columns.push(match array.data_type() == field.data_type() {
                true => array,
                false => arrow::compute::cast(&array, field.data_type())?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl PartitionStream for FileStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut reading = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), BATCHES_AHEAD);
        let (output, stream) = (reading.tx(), self.clone());
        reading.spawn_blocking(move || {
            for file in &stream.files {
                let mut is_wanted = true;
                let mut each = |batch: RecordBatch| {
                    is_wanted = output.blocking_send(Ok(stream.arrange(&batch, &file.folders)?)).is_ok();
                    Ok(is_wanted)
                };
                stream.reader.read_file(&file.file, &stream.read, &mut each).map_err(DataFusionError::from)?;
                if !is_wanted {
                    break;
                }
            }
            Ok(())
        });
        reading.build()
    }
}

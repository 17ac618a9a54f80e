//! ResultRows in and out by Arrow's C data interface, in the capsules that Python libraries pass to each other: no copy, and
//! nothing of pyarrow is needed.

use std::ffi::CStr;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, StructArray,
};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::PythonFailure;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Batches that are read one after the other.
pub(crate) type BatchReader = Box<dyn RecordBatchReader + Send>;

/// Returns a schema as a capsule.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = FFI_ArrowSchema::try_from(schema).map_err(refused)?;
    PyCapsule::new_with_value(py, exported, SCHEMA)
}

/// Returns batches as a capsule, which reads them as it is read.
pub(crate) fn stream_capsule(py: Python<'_>, batches: BatchReader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// Returns the rows of an object of another library: a table, a data frame, a relation, a batch or a reader.
pub(crate) fn rows_of(object: &Bound<'_, PyAny>) -> PyResult<BatchReader> {
    let kind = object.get_type().name()?.to_string();
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        return Ok(Box::new(CapsuleStream::new(capsule.cast::<PyCapsule>()?, &kind)?));
    }
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        return imported_batch(capsules.cast::<PyTuple>()?, &kind);
    }
    Err(PyTypeError::new_err(format!(
        "no rows: a {kind} has neither __arrow_c_stream__ nor __arrow_c_array__; give a pyarrow table, a pandas (2.2 or \
         later) or polars data frame, or a DuckDB relation"
    )))
}

/// The batches of another library's stream, as they are read.
struct CapsuleStream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl CapsuleStream {
    fn new(capsule: &Bound<'_, PyCapsule>, kind: &str) -> PyResult<Self> {
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        #[expect(
            unsafe_code,
            reason = "a capsule of this name holds a stream, which is moved out and marked as released"
        )]
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let get_schema = stream.get_schema.ok_or_else(|| refused(released()))?;
        let mut exported = FFI_ArrowSchema::empty();
        #[expect(unsafe_code, reason = "the stream's own function, with a place for the schema")]
        let status = unsafe { get_schema(&raw mut stream, &raw mut exported) };
        if status != 0 {
            return Err(refused(last_error(&mut stream)));
        }
        Ok(Self { schema: schema_of(&exported, kind)?, stream })
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let get_next = self.stream.get_next.ok_or_else(released)?;
        let mut array = FFI_ArrowArray::empty();
        #[expect(unsafe_code, reason = "the stream's own function, with a place for the array")]
        let status = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if status != 0 {
            return Err(last_error(&mut self.stream));
        }
        if array.is_released() { Ok(None) } else { batch_of(array, &self.schema).map(Some) }
    }
}

impl Iterator for CapsuleStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl RecordBatchReader for CapsuleStream {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

fn released() -> ArrowError {
    ArrowError::CDataInterface("the stream has been read already".to_owned())
}

/// Returns what a stream says of its failure.
fn last_error(stream: &mut FFI_ArrowArrayStream) -> ArrowError {
    let unknown = || ArrowError::CDataInterface("the stream failed and does not say why".to_owned());
    let Some(get_last_error) = stream.get_last_error else { return unknown() };
    #[expect(unsafe_code, reason = "the stream's own function; its text lives until the stream is used again")]
    let text = unsafe {
        let text = get_last_error(std::ptr::from_mut(stream));
        if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
    };
    text.map_or_else(unknown, ArrowError::CDataInterface)
}

fn imported_batch(capsules: &Bound<'_, PyTuple>, kind: &str) -> PyResult<BatchReader> {
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    #[expect(unsafe_code, reason = "capsules of these names hold an array, which is moved out, and its schema")]
    let (array, exported) = unsafe { (FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let schema = schema_of(exported, kind)?;
    let batch = batch_of(array, &schema).map_err(refused)?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// Returns the columns that an object has. One that is a single column, as a series or an array, has no names for them.
fn schema_of(exported: &FFI_ArrowSchema, kind: &str) -> PyResult<SchemaRef> {
    if exported.format() != "+s" {
        return Err(PyTypeError::new_err(format!(
            "no rows: a {kind} is one column without a table; give a table of it, such as \
             pyarrow.table({{\"name\": values}}) or series.to_frame()"
        )));
    }
    let unlike = |field: &FFI_ArrowSchema, error: ArrowError| {
        let name = field.name().unwrap_or_default();
        let message = format!("column `{name}` is of a type that is not read; cast it in the object: {error}");
        PyErr::from(PythonFailure::new("unsupported_type", message))
    };
    let fields = exported.children().map(|field| Field::try_from(field).map_err(|error| unlike(field, error)));
    let fields = fields.collect::<PyResult<Vec<Field>>>()?;
    let metadata = exported.metadata().map_err(refused)?;
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Returns the rows of an array of structs. Where a row is null as a whole its columns are null, as pyarrow has it.
fn batch_of(mut array: FFI_ArrowArray, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let data_type = DataType::Struct(schema.fields().clone());
    drop_buffers_of_nulls(&mut array, &data_type);
    #[expect(unsafe_code, reason = "the object says that the array is of this type")]
    let data = unsafe { from_ffi_and_data_type(array, data_type) }?;
    let rows = data.len();
    let (_, mut columns, nulls) = StructArray::from(data).into_parts();
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        let is_null = BooleanArray::new(!nulls.inner(), None);
        let masked = columns.iter().map(|column| nullif(column.as_ref(), &is_null));
        columns = masked.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)
}

/// Drops the buffers of columns of the type null, within others too: Arrow has none there, and polars writes an empty one.
fn drop_buffers_of_nulls(array: &mut FFI_ArrowArray, data_type: &DataType) {
    let children: Vec<&FieldRef> = match data_type {
        DataType::Null => {
            array.n_buffers = 0;
            return;
        }
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item],
        _ => return,
    };
    if array.num_children() != children.len() {
        return;
    }
    for (at, field) in children.into_iter().enumerate() {
        #[expect(unsafe_code, reason = "an array has so many children, which are its own")]
        let child = unsafe { (*array.children.add(at)).as_mut() };
        if let Some(child) = child {
            drop_buffers_of_nulls(child, field.data_type());
        }
    }
}

fn refused(error: ArrowError) -> PyErr {
    PythonFailure::new("unsupported_type", format!("the rows cannot be passed on: {error}")).into()
}

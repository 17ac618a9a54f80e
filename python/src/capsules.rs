//! ResultRows in and out by Arrow's C data interface, in the capsules that Python libraries pass to each other: no copy, and
//! nothing of pyarrow is needed.

use std::ffi::CStr;

use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

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
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        return Ok(Box::new(imported_stream(capsule.cast::<PyCapsule>()?)?));
    }
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        return imported_batch(capsules.cast::<PyTuple>()?);
    }
    Err(PyTypeError::new_err(format!(
        "no rows: a {} has neither __arrow_c_stream__ nor __arrow_c_array__; give a pyarrow table, a pandas (2.2 or \
         later) or polars data frame, or a DuckDB relation",
        object.get_type().name()?
    )))
}

fn imported_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArrayStreamReader> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    #[expect(unsafe_code, reason = "a capsule of this name holds a stream, which is moved out and marked as released")]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    ArrowArrayStreamReader::try_new(stream).map_err(refused)
}

fn imported_batch(capsules: &Bound<'_, PyTuple>) -> PyResult<BatchReader> {
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    #[expect(unsafe_code, reason = "capsules of these names hold an array, which is moved out, and its schema")]
    let (array, fields) = unsafe {
        let schema = schema.as_ref();
        let array = from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema).map_err(refused)?;
        (array, Schema::try_from(schema).map_err(refused)?)
    };
    let schema = SchemaRef::new(fields);
    let rows = StructArray::from(array);
    let batch = RecordBatch::try_new(SchemaRef::clone(&schema), rows.columns().to_vec()).map_err(refused)?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

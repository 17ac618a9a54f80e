//! `Rows`: what a statement answered with. They are read as they arrive, or collected and then read as often as one likes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use futures::StreamExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use querent_engine::QueryStream;

use crate::capsules::{schema_capsule, stream_capsule};
use crate::error::PythonFailure;
use crate::open_folder::OpenFolder;
use crate::values::{python_value, shown_text};
use crate::waiting::wait;

/// Rows that are shown.
const SHOWN: usize = 40;
/// How soon a thread notices that another one has read the rows.
const TURN: Duration = Duration::from_millis(5);

/// The rows of one statement.
#[pyclass(frozen, name = "Rows", module = "querent._querent")]
pub(crate) struct ResultRows {
    schema: SchemaRef,
    state: Mutex<RowsState>,
    /// Open as long as there may be rows to read.
    folder: Arc<OpenFolder>,
}

enum RowsState {
    /// To be read.
    Running(Box<QueryStream>),
    /// A thread collects them.
    Reading,
    /// Kept.
    Collected { batches: Vec<RecordBatch>, is_truncated: bool },
    /// Given to a reader that keeps them.
    Streamed,
    /// Reading them failed, or was interrupted.
    Failed(PythonFailure),
}

impl ResultRows {
    pub(crate) fn new(stream: QueryStream, folder: Arc<OpenFolder>) -> Self {
        Self { schema: stream.schema(), state: Mutex::new(RowsState::Running(Box::new(stream))), folder }
    }

    pub(crate) fn collected(
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        is_truncated: bool,
        folder: Arc<OpenFolder>,
    ) -> Self {
        Self { schema, state: Mutex::new(RowsState::Collected { batches, is_truncated }), folder }
    }

    /// Returns the state. A panic while it was held left it whole: it is only ever replaced.
    fn state(&self) -> MutexGuard<'_, RowsState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads what is still to be read and returns all rows. Where another thread reads them, waits for it.
    fn batches(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let stream = loop {
            match &mut *self.state() {
                RowsState::Collected { batches, .. } => return Ok(batches.clone()),
                RowsState::Failed(failure) => return Err(failure.clone().into()),
                RowsState::Streamed => return Err(already_read().into()),
                RowsState::Reading => {}
                state @ RowsState::Running(_) => {
                    if let RowsState::Running(stream) = std::mem::replace(state, RowsState::Reading) {
                        break stream;
                    }
                }
            }
            wait(py, async {
                tokio::time::sleep(TURN).await;
                Ok::<_, PythonFailure>(())
            })?;
        };
        let read = wait(py, async {
            Ok::<_, PythonFailure>(QueryStream::collect(*stream).await.map_err(PythonFailure::from))
        });
        let (state, answer) = match read {
            Ok(Ok((batches, stats))) => {
                (RowsState::Collected { batches: batches.clone(), is_truncated: stats.truncated }, Ok(batches))
            }
            Ok(Err(failure)) => (RowsState::Failed(failure.clone()), Err(failure.into())),
            Err(interrupt) => (RowsState::Failed(interrupted()), Err(interrupt)),
        };
        *self.state() = state;
        answer
    }
}

#[pymethods]
impl ResultRows {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, as Arrow names them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// Reads all rows into memory, and returns this object.
    fn collect(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().batches(slf.py())?;
        Ok(slf)
    }

    /// Whether rows were left out because of a limit; known once they are collected.
    #[getter]
    fn truncated(&self, py: Python<'_>) -> PyResult<bool> {
        self.batches(py)?;
        Ok(matches!(&*self.state(), RowsState::Collected { is_truncated: true, .. }))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.batches(py)?.iter().map(RecordBatch::num_rows).sum())
    }

    /// Returns all rows, or the first of them, as tuples of Python's values.
    #[pyo3(signature = (limit=None))]
    fn fetchall<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        let mut left = limit.unwrap_or(usize::MAX);
        for batch in self.batches(py)? {
            let taken = batch.num_rows().min(left);
            left -= taken;
            for row in 0..taken {
                let values = batch.columns().iter().map(|column| python_value(py, column.as_ref() as &dyn Array, row));
                rows.append(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?)?;
            }
        }
        Ok(rows)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Gives the rows to a reader. Those that are not collected are read as they arrive, once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to answer with other types than the ones that were asked for.
        drop(requested_schema);
        let mut state = self.state();
        if matches!(&*state, RowsState::Reading) {
            drop(state);
            self.batches(py)?;
            state = self.state();
        }
        let schema = Arc::clone(&self.schema);
        if let RowsState::Collected { batches, .. } = &*state {
            let batches: Vec<Result<RecordBatch, ArrowError>> = batches.iter().cloned().map(Ok).collect();
            return stream_capsule(py, Box::new(RecordBatchIterator::new(batches, schema)));
        }
        if let RowsState::Failed(failure) = &*state {
            return Err(failure.clone().into());
        }
        match std::mem::replace(&mut *state, RowsState::Streamed) {
            RowsState::Running(stream) => {
                stream_capsule(py, Box::new(ArrivingBatches { stream, schema, _folder: Arc::clone(&self.folder) }))
            }
            RowsState::Reading | RowsState::Collected { .. } | RowsState::Streamed | RowsState::Failed(_) => {
                Err(already_read().into())
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        if matches!(&*self.state(), RowsState::Streamed) {
            return Ok(format!("<querent.Rows of {}: read>", self.columns().join(", ")));
        }
        let batches = self.batches(py)?;
        if self.schema.fields().is_empty() {
            // A statement that answers with nothing has no table, as in the shell.
            return Ok("done".to_owned());
        }
        let total: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let fields = self.schema.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
        let texts: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut left = SHOWN;
        let mut shown = vec![RecordBatch::new_empty(Arc::clone(&texts))];
        for batch in batches {
            let rows = batch.num_rows().min(left);
            left -= rows;
            let columns = batch.columns().iter().map(|column| shown_column(column, rows));
            let columns = columns.collect::<PyResult<Vec<_>>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&texts), columns)
                .map_err(|error| PythonFailure::new("internal", error.to_string()))?;
            shown.push(batch);
        }
        let options = FormatOptions::default().with_null("NULL").with_display_error(true);
        let table = pretty_format_batches_with_options(&shown, &options)
            .map_err(|error| PythonFailure::new("internal", error.to_string()))?;
        let count = match total {
            1 => "1 row".to_owned(),
            total if total > SHOWN => format!("{total} rows, {SHOWN} shown"),
            total => format!("{total} rows"),
        };
        Ok(format!("{table}\n({count})"))
    }
}

/// Returns the first values of a column as texts.
fn shown_column(column: &ArrayRef, rows: usize) -> PyResult<ArrayRef> {
    // Those of a column without a type, too.
    let nulls = column.logical_nulls();
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let text = |row: usize| (!is_null(row)).then(|| shown_text(column.as_ref(), row)).transpose();
    Ok(Arc::new((0..rows).map(text).collect::<PyResult<StringArray>>()?))
}

fn already_read() -> PythonFailure {
    PythonFailure::new(
        "rows_already_read",
        "the rows were given to a reader; call collect() first to read them several times",
    )
}

fn interrupted() -> PythonFailure {
    PythonFailure::new("cancelled", "reading the rows was interrupted; run the statement again")
}

/// The rows of a running statement, for a reader that may be any thread of the interpreter.
struct ArrivingBatches {
    stream: Box<QueryStream>,
    schema: SchemaRef,
    _folder: Arc<OpenFolder>,
}

impl Iterator for ArrivingBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let stream = &mut self.stream;
        let next =
            Python::attach(|py| wait(py, async { stream.next().await.transpose().map_err(PythonFailure::from) }));
        next.map_err(|error| ArrowError::ExternalError(error.into())).transpose()
    }
}

impl RecordBatchReader for ArrivingBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

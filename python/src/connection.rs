//! `Connection`: an open data folder, and what can be done with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::error::ArrowError;
use futures::{Stream, StreamExt};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::ask::{AskRenderer, parse_request};
use querent_catalog::{DEFAULT_DATABASE, FileFormat, IfExists, NoProgress, Principal, SearchRequest, TableName};
use querent_engine::{EngineError, ImportRequest, IngestMode};
use querent_flight::cli::table_name;
use querent_flight::found_json;
use serde_json::json;
use tokio::sync::mpsc;

use crate::capsules::{BatchReader, rows_of};
use crate::error::PythonFailure;
use crate::open_folder::OpenFolder;
use crate::rows::ResultRows;
use crate::values::parameter;
use crate::waiting::wait;

/// Batches of another library's object that wait to be written.
const QUEUE: usize = 4;

/// A data folder, open in this process.
#[pyclass(frozen, module = "querent._querent")]
pub(crate) struct Connection {
    folder: Mutex<Option<Arc<OpenFolder>>>,
}

impl Connection {
    fn folder(&self) -> Result<Arc<OpenFolder>, PythonFailure> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        folder.clone().ok_or_else(PythonFailure::closed)
    }
}

#[pymethods]
impl Connection {
    /// Opens a folder, or a temporary one without a path; `settings` are named as in `querent.toml`.
    #[new]
    #[pyo3(signature = (path, settings))]
    fn new(py: Python<'_>, path: Option<PathBuf>, settings: BTreeMap<String, String>) -> PyResult<Self> {
        let folder = wait(py, OpenFolder::open(path, settings))?;
        Ok(Self { folder: Mutex::new(Some(Arc::new(folder))) })
    }

    /// Runs one SQL statement. One that writes has written when this returns.
    #[pyo3(signature = (text, parameters=Vec::new(), database=None))]
    fn sql(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: Vec<Bound<'_, PyAny>>,
        database: Option<&str>,
    ) -> PyResult<ResultRows> {
        let folder = self.folder()?;
        let parameters = parameters.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
        let stream = wait(py, async {
            let session = folder.session(database).await?;
            Ok::<_, PythonFailure>(session.sql_with_params(text, parameters).await?)
        })?;
        Ok(ResultRows::new(stream, folder))
    }

    /// Runs one KQL query.
    #[pyo3(signature = (text, database=None))]
    fn kql(&self, py: Python<'_>, text: &str, database: Option<&str>) -> PyResult<ResultRows> {
        let folder = self.folder()?;
        let stream = wait(py, async { Ok::<_, PythonFailure>(folder.session(database).await?.kql(text).await?) })?;
        Ok(ResultRows::new(stream, folder))
    }

    /// Asks the agent. `request` is the body of `POST /v1/agent/ask`; each event is given to `on_event` as its name and
    /// its JSON.
    fn ask(&self, py: Python<'_>, request: &str, on_event: Py<PyAny>) -> PyResult<()> {
        let folder = self.folder()?;
        wait(py, async {
            let mut request = parse_request(request.as_bytes()).map_err(PythonFailure::from)?;
            request.database = request.database.or_else(|| folder.chosen_database());
            let agent = folder.agent().await?;
            let mut run = agent.ask(&Principal::local_admin(), request).await.map_err(PythonFailure::from)?;
            let mut renderer = AskRenderer::default();
            while let Some(event) = run.events.next().await {
                for frame in renderer.frame(&event) {
                    let name = frame.event.unwrap_or_default().to_owned();
                    Python::attach(|py| on_event.call1(py, (name, frame.data)))?;
                }
            }
            Ok::<_, PyErr>(())
        })
    }

    /// Returns the rows that a ticket of an answer names.
    fn rows_of_ticket(&self, py: Python<'_>, ticket: &str) -> PyResult<ResultRows> {
        let folder = self.folder()?;
        let stored = wait(py, async {
            let agent = folder.agent().await?;
            let who = Principal::local_admin();
            let reach = agent.catalog().policies().reach(&who);
            let stored = agent.results().fetch(ticket.as_bytes(), &who, &reach);
            stored.map_err(|refusal| PythonFailure::new("ticket_not_found", format!("{refusal}; ask again")))
        })?;
        let (schema, batches) = (Arc::clone(stored.schema()), stored.batches().to_vec());
        Ok(ResultRows::collected(schema, batches, stored.is_truncated(), folder))
    }

    /// Finds tables by name, text and meaning; the answer of `GET /v1/catalog/search`, as JSON.
    #[pyo3(signature = (query, limit=10, database=None))]
    fn search(&self, py: Python<'_>, query: &str, limit: usize, database: Option<String>) -> PyResult<String> {
        let folder = self.folder()?;
        let request = SearchRequest { query: query.to_owned(), database, limit };
        wait(py, async {
            folder.wait_until_searchable().await?;
            let search = folder.engine().catalog().search();
            let hits = search.tables(&Principal::local_admin(), &request).await?;
            Ok::<_, PythonFailure>(found_json(&hits, search.missing_meaning().as_ref()).to_string())
        })
    }

    /// Imports files as a table; returns what was done, as JSON.
    #[pyo3(signature = (source, table, database, if_exists, external, format, options))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn import_files(
        &self,
        py: Python<'_>,
        source: &str,
        table: Option<String>,
        database: Option<&str>,
        if_exists: &str,
        external: bool,
        format: Option<&str>,
        options: BTreeMap<String, String>,
    ) -> PyResult<String> {
        let folder = self.folder()?;
        let table = table.or_else(|| table_name(source)).ok_or_else(|| {
            PyValueError::new_err(format!("no table name can be made of {source}; give one with table="))
        })?;
        let database = database.map(str::to_owned).or_else(|| folder.chosen_database());
        let table = TableName::new(database.as_deref().unwrap_or(DEFAULT_DATABASE), table);
        let request = ImportRequest {
            source: absolute_source(source)?,
            format: format.map(file_format).transpose()?,
            options,
            table: table.clone(),
            external,
            if_exists: match if_exists {
                "error" => Some(IfExists::Error),
                "replace" => Some(IfExists::Replace),
                "append" => None,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "if_exists={other:?} is unknown; it may be \"error\", \"append\" or \"replace\""
                    )));
                }
            },
        };
        let outcome = wait(py, async {
            let outcome = folder.engine().import(&Principal::local_admin(), request, Arc::new(NoProgress)).await;
            outcome.map_err(PythonFailure::from)
        })?;
        let mut done = json!({
            "database": table.database, "table": table.table, "rows": outcome.rows, "files": outcome.files,
        });
        if let Some(reading) = &outcome.reading {
            done["reading"] =
                serde_json::to_value(reading).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        if let Some((lines, rejects)) = &outcome.rejects {
            done["rejects"] = json!({ "lines": lines, "table": rejects.to_string() });
        }
        Ok(done.to_string())
    }

    /// Writes the rows of another library's object to a table: of the folder, or of this connection alone.
    #[pyo3(signature = (table, object, mode, temporary, database=None))]
    fn ingest(
        &self,
        py: Python<'_>,
        table: &str,
        object: &Bound<'_, PyAny>,
        mode: &str,
        temporary: bool,
        database: Option<&str>,
    ) -> PyResult<u64> {
        let folder = self.folder()?;
        let mode = match mode {
            "create" => IngestMode::Create,
            "append" => IngestMode::Append,
            "replace" => IngestMode::Replace,
            "create_append" => IngestMode::CreateOrAppend,
            other => {
                return Err(PyValueError::new_err(format!(
                    "mode={other:?} is unknown; it may be \"create\", \"append\", \"replace\" or \"create_append\""
                )));
            }
        };
        let rows = rows_of(object)?;
        let schema = rows.schema();
        wait(py, async {
            let session = folder.session(database).await?;
            let table = TableName::new(session.database(), table);
            Ok::<_, PythonFailure>(session.ingest(&table, temporary, mode, schema, arriving(rows)?).await?)
        })
    }

    /// Forgets a table of this connection; says whether there was one.
    fn unregister(&self, py: Python<'_>, table: &str) -> PyResult<bool> {
        let folder = self.folder()?;
        wait(py, async {
            let session = folder.session(None).await?;
            Ok::<_, PythonFailure>(session.temporary_tables().is_some_and(|tables| tables.drop_table(table)))
        })
    }

    /// Stops what runs and closes the folder. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take();
        match folder {
            Some(folder) => wait(py, async { folder.close().await }),
            None => Ok(()),
        }
    }
}

/// Returns batches as a stream. A thread of its own reads them: the object may need the interpreter to make them.
fn arriving(
    rows: BatchReader,
) -> Result<impl Stream<Item = Result<RecordBatch, EngineError>> + Send + 'static, PythonFailure> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let read = move || {
        for batch in rows {
            if sender.blocking_send(batch.map_err(bad_rows)).is_err() {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("querent-rows".to_owned()).spawn(read);
    thread.map_err(|error| PythonFailure::new("internal", format!("a thread cannot be started: {error}")))?;
    Ok(futures::stream::unfold(receiver, |mut receiver| async move {
        let batch = receiver.recv().await?;
        Some((batch, receiver))
    }))
}

fn bad_rows(error: ArrowError) -> EngineError {
    EngineError::BadData { location: "the rows of the object".to_owned(), detail: error.to_string() }
}

fn file_format(name: &str) -> PyResult<FileFormat> {
    match name {
        "csv" => Ok(FileFormat::Csv),
        "json" | "ndjson" => Ok(FileFormat::Ndjson),
        "parquet" => Ok(FileFormat::Parquet),
        "arrow" => Ok(FileFormat::Arrow),
        "lance" => Ok(FileFormat::Lance),
        "xlsx" | "excel" => Ok(FileFormat::Xlsx),
        other => Err(PyValueError::new_err(format!(
            "format={other:?} is unknown; it may be \"csv\", \"json\", \"parquet\", \"arrow\", \"xlsx\" or \"lance\""
        ))),
    }
}

/// Returns a URL unchanged, and a path made absolute.
fn absolute_source(source: &str) -> PyResult<String> {
    match source.contains("://") {
        true => Ok(source.to_owned()),
        false => Ok(std::path::absolute(source)?.display().to_string()),
    }
}

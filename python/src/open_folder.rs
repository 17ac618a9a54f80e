//! `OpenFolder`: an engine on a data folder, what its statements set for those that follow, and the agent once something
//! is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use querent_agent::Agent;
use querent_agent::protocols::ask::decode_trace;
use querent_catalog::{CatalogError, DEFAULT_DATABASE, NoProgress, Principal, folder_server};
use querent_engine::{Engine, EngineError, Session, SessionVariables, TemporaryTables};
use querent_flight::config::{Config, SettingSources};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::error::PythonFailure;
use crate::waiting::finish;

/// Bytes of the objects that are registered as tables.
const SESSION_TABLES_BYTES: usize = 4 << 30;
/// How long a search waits for values of columns, and for vectors, that are still to come.
const VALUES_TIME: Duration = Duration::from_secs(2);
const VECTORS_TIME: Duration = Duration::from_secs(10);

/// An open folder; it closes when the last of its connections and rows goes.
pub(crate) struct OpenFolder {
    engine: Engine,
    config: Config,
    tables: Arc<TemporaryTables>,
    variables: Arc<SessionVariables>,
    /// Made for the first question: its model may not be there.
    agent: OnceCell<Agent>,
    /// A folder that goes with the process.
    _temporary: Option<TempDir>,
}

impl OpenFolder {
    /// Opens or creates the folder at `path`, or a temporary one, with the settings of the environment, of `querent.toml`
    /// and, before these, of `flags`.
    pub(crate) async fn open(path: Option<PathBuf>, flags: BTreeMap<String, String>) -> Result<Self, PythonFailure> {
        querent_flight::install_crypto_provider();
        let temporary = match path {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("querent-").tempdir().map_err(|error| {
                PythonFailure::new("storage_error", format!("no temporary folder can be made: {error}"))
            })?),
        };
        let mut sources = SettingSources::process();
        for (name, value) in flags {
            sources = sources.with_flag(name, value);
        }
        match (&path, &temporary) {
            (Some(path), _) => sources = sources.with_flag("data", path.to_string_lossy()),
            (None, Some(folder)) => {
                sources = sources.with_flag("data", folder.path().join("data").to_string_lossy());
            }
            (None, None) => {}
        }
        let mut config = Config::load(&sources)?;
        if temporary.is_some() {
            config = config.with_own_catalog();
        }
        let options = config.settings.engine_options(Arc::new(NoProgress))?;
        let engine = Engine::open_with(options).await.map_err(|error| cannot_open(error, &config))?;
        engine.decode_run_traces_with(decode_trace);
        let tables = engine.temporary_tables(SESSION_TABLES_BYTES);
        let variables = Arc::default();
        Ok(Self { engine, config, tables, variables, agent: OnceCell::new(), _temporary: temporary })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the database that `USE` chose for the statements that follow it.
    pub(crate) fn chosen_database(&self) -> Option<String> {
        self.variables.database()
    }

    /// Returns the connection's session, of the local administrator, in `database` where one is named, else where `USE` said.
    pub(crate) async fn session(&self, database: Option<&str>) -> Result<Session, PythonFailure> {
        let session = self.engine.session(Principal::local_admin(), self.config.settings.limits());
        let session = session.with_temporary_tables(Arc::clone(&self.tables));
        let session = session.with_variables(Arc::clone(&self.variables));
        match database {
            Some(named) => Ok(session.with_database(named).await?),
            // One that is gone since has no tables, and another can be chosen.
            None => Ok(session.in_known_database(self.chosen_database().as_deref().unwrap_or(DEFAULT_DATABASE))),
        }
    }

    /// Returns the agent, with the model of the settings.
    pub(crate) async fn agent(&self) -> Result<&Agent, PythonFailure> {
        let made = self.agent.get_or_try_init(|| async {
            let models = self.config.settings.models().await?;
            let agent =
                Agent::with_models(self.engine.clone(), models, self.config.settings.agent_config(), Arc::new(()));
            agent.end_interrupted_runs().await?;
            Ok::<_, PythonFailure>(agent)
        });
        made.await
    }

    /// Waits until every table is found by name and by text, and a moment for the vectors that are still to come.
    pub(crate) async fn wait_until_searchable(&self) -> Result<(), PythonFailure> {
        self.engine.wait_for_profiles(VALUES_TIME).await;
        let search = self.engine.catalog().search();
        search.text_idle().await;
        match tokio::time::timeout(VECTORS_TIME, search.index_idle()).await {
            // What is missing by meaning is said with what is found.
            Ok(Ok(())) | Ok(Err(CatalogError::Embedder { .. })) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
        }
    }

    /// Ends what runs and closes the folder. Closing again does nothing.
    pub(crate) async fn close(&self) -> Result<(), PythonFailure> {
        if let Some(agent) = self.agent.get() {
            // Stores a run that was stopped before the folder is closed.
            agent.shutdown().await;
        }
        Ok(self.engine.close().await?)
    }
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        // There is nobody to tell: what is committed is safe.
        let _ = finish(self.close());
    }
}

fn cannot_open(error: EngineError, config: &Config) -> PythonFailure {
    let code = error.code();
    let failure = match (&error, folder_server(&config.settings.data)) {
        (EngineError::Catalog(CatalogError::InUse { .. }), Some(server)) => format!(
            "{error}; a server has it open at {}: reach it over Flight SQL (adbc_driver_flightsql), or end it",
            server.url
        ),
        _ => return error.into(),
    };
    PythonFailure::new(code, failure)
}

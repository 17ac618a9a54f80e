//! The engine in this process, for commands that work without a server.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use futures::stream::StreamExt;
use querent_agent::protocols::ask::decode_trace;
use querent_agent::{Agent, AgentConfig};
use querent_catalog::{CatalogError, Principal};
use querent_engine::{Engine, EngineError, QueryStream, Session, SessionVariables, TemporaryTables};

use super::client::StreamedRows;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use crate::config::Config;

/// How long to wait until the values of columns are collected; the rest is collected when it is looked at.
const VALUES_TIME: Duration = Duration::from_secs(30);
/// The same before a search, which is to answer at once.
const SEARCH_VALUES_TIME: Duration = Duration::from_secs(2);
/// How long an import waits for the vectors of its tables, the model's download included.
const VECTORS_TIME: Duration = Duration::from_secs(300);
/// How long a search waits for them.
const SEARCH_VECTORS_TIME: Duration = Duration::from_secs(10);
/// The bytes that the temporary tables of a session may hold.
const TEMPORARY_BYTES: usize = 1 << 30;

/// Waits until every table is in the schema index. A failing embedder costs the search by meaning, not the command.
pub(super) async fn wait_until_indexed(engine: &Engine) -> Result<(), CliError> {
    engine.wait_for_profiles(VALUES_TIME).await;
    engine.catalog().search().text_idle().await;
    if let Some(why) = vectors_missing(engine, VECTORS_TIME).await? {
        output::warn(&format!("tables are found by name and by text only: {why}"));
    }
    Ok(())
}

/// Waits until every table is found by name and by text, and a moment for the vectors that are still to come.
pub(super) async fn wait_until_searchable(engine: &Engine) -> Result<(), CliError> {
    engine.wait_for_profiles(SEARCH_VALUES_TIME).await;
    engine.catalog().search().text_idle().await;
    vectors_missing(engine, SEARCH_VECTORS_TIME).await?;
    Ok(())
}

/// Waits until all tables have their vectors, at most `time`, and says why if they have not.
async fn vectors_missing(engine: &Engine, time: Duration) -> Result<Option<String>, CliError> {
    let search = engine.catalog().search();
    match tokio::time::timeout(time, search.index_idle()).await {
        Ok(Ok(())) => Ok(None),
        Ok(Err(error @ CatalogError::Embedder { .. })) => Ok(Some(error.to_string())),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Ok(search.missing_meaning().map(|missing| format!("{}; {}", missing.reason, missing.hint))),
    }
}

/// What a session keeps between its statements.
pub(super) struct OwnSession {
    variables: Arc<SessionVariables>,
    tables: Arc<TemporaryTables>,
}

/// An engine on the settings' data folder, and the settings.
pub(super) struct EmbeddedEngine {
    /// The engine.
    pub(super) engine: Engine,
    config: Config,
}

impl EmbeddedEngine {
    /// Opens the data folder. `bars` shows a rebuild of its schema index.
    pub(super) async fn open(config: Config, bars: &Arc<Bars>) -> Result<Self, CliError> {
        let progress = Arc::clone(bars);
        let options = config.settings.engine_options(progress).map_err(|error| cannot_open(error.into()))?;
        let engine = Engine::open_with(options).await.map_err(cannot_open)?;
        engine.decode_run_traces_with(decode_trace);
        Ok(Self { engine, config })
    }

    /// Opens a session of the local administrator, in `database` where one is named.
    pub(super) async fn session(&self, database: Option<&str>) -> Result<Session, CliError> {
        let session = self.engine.session(Principal::local_admin(), self.config.settings.limits());
        Ok(session.in_database(database).await?)
    }

    /// As [`EmbeddedEngine::session`], where statements follow one another: tables and settings of the session stay.
    pub(super) async fn lasting_session(&self, own: &OwnSession) -> Result<Session, CliError> {
        let session = self.session(None).await?;
        let session = session.with_variables(Arc::clone(&own.variables));
        Ok(session.with_temporary_tables(Arc::clone(&own.tables)))
    }

    /// Begins what a session of several statements keeps.
    pub(super) fn own_session(&self) -> OwnSession {
        OwnSession { variables: Arc::default(), tables: self.engine.temporary_tables(TEMPORARY_BYTES) }
    }

    /// Makes an agent on this engine, with the model of the settings.
    pub(super) async fn agent(&self) -> Result<Agent, CliError> {
        let models = self.config.settings.models().await?;
        // Nobody could fetch the rows: they end with this process.
        let settings = AgentConfig { result_bytes: 0, ..self.config.settings.agent_config() };
        let agent = Agent::new(self.engine.clone(), Arc::clone(&models.default_entry().provider), settings);
        agent.end_interrupted_runs().await?;
        Ok(agent)
    }

    /// Stops background work and closes the folder.
    pub(super) async fn close(self) -> Result<(), CliError> {
        Ok(self.engine.close().await?)
    }
}

impl From<QueryStream> for StreamedRows {
    fn from(stream: QueryStream) -> Self {
        StreamedRows { schema: stream.schema(), batches: stream.map_err(CliError::from).boxed() }
    }
}

fn cannot_open(error: EngineError) -> CliError {
    let hint = match &error {
        EngineError::Catalog(CatalogError::InUse { .. }) => {
            "\nto work through the server that holds it, add --server http://127.0.0.1:8080 (or its other address)"
        }
        _ => "",
    };
    CliError::NotOpened { code: error.code(), message: format!("{error}{hint}") }
}

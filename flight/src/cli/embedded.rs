//! The engine in this process, for commands that work without a server.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use futures::stream::StreamExt;
use querent_agent::protocols::ask::decode_trace;
use querent_catalog::{CatalogError, Principal};
use querent_engine::{Engine, EngineError, QueryStream, Session};

use super::client::StreamedRows;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use crate::config::Config;

/// How long to wait until the values of columns are collected; the rest is collected when it is looked at.
const VALUES_TIME: Duration = Duration::from_secs(30);

/// Waits until every table is in the schema index. A failing embedder costs the search by meaning, not the command.
pub(super) async fn wait_until_indexed(engine: &Engine) -> Result<(), CliError> {
    engine.wait_for_profiles(VALUES_TIME).await;
    match engine.catalog().search().index_idle().await {
        Err(error @ CatalogError::Embedder { .. }) => {
            output::warn(&format!("tables are found by name and by text only: {error}"));
            Ok(())
        }
        outcome => Ok(outcome?),
    }
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
    CliError::Unavailable(format!("{error}{hint}"))
}

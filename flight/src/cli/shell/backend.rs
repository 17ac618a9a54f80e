//! What the shell works on: a data folder in this process, files alone, or a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use querent_agent::Agent;
use querent_catalog::{CatalogError, DEFAULT_DATABASE, IfExists, Principal, Progress, TableName};
use querent_engine::{EngineError, ImportRequest};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::statements::{ShellLanguage, is_kql_command};
use crate::cli::ask::{self, UserQuestion};
use crate::cli::client::{Client, StreamedRows};
use crate::cli::embedded::{EmbeddedEngine, OwnSession};
use crate::cli::error::CliError;
use crate::cli::events::{Answered, EventDisplay};
use crate::cli::import::sheets::tables_of;
use crate::cli::import::table_name;
use crate::cli::progress::Bars;
use crate::config::{Config, SettingSources};

/// What statements and questions run on.
pub(super) enum ShellBackend {
    Server(Box<Client>),
    Here(Box<EmbeddedShell>),
}

/// A data folder in this process.
pub(super) struct EmbeddedShell {
    embedded: EmbeddedEngine,
    /// What its statements keep: temporary tables, settings, prepared statements.
    own: OwnSession,
    /// Made for the first question: its model may not be there.
    agent: OnceCell<Agent>,
    /// The folder of a shell on files, which goes when the shell does.
    _temporary: Option<TempDir>,
}

impl ShellBackend {
    /// Opens a data folder.
    pub(super) async fn folder(config: Config) -> Result<Self, CliError> {
        Self::open(config, None).await
    }

    /// Makes a folder for as long as the shell runs, with a table for each file, which are read with these options. Returns their
    /// names.
    pub(super) async fn files(
        files: &[PathBuf],
        reader: &BTreeMap<String, String>,
    ) -> Result<(Self, Vec<String>), CliError> {
        let folder = tempfile::Builder::new().prefix("querent-").tempdir()?;
        let data = folder.path().join("data");
        // What is found by name needs no model.
        let sources =
            SettingSources::process().with_flag("data", data.to_string_lossy()).with_flag("embed.provider", "none");
        let shell = Self::open(Config::load(&sources)?.with_own_catalog(), Some(folder)).await?;
        let mut tables = Vec::new();
        if let ShellBackend::Here(here) = &shell {
            let bars = Arc::new(Bars::new(false));
            for file in files {
                match here.import(file, reader, &bars).await {
                    Ok(made) => tables.extend(made),
                    Err(error) => {
                        bars.clear();
                        shell.close().await?;
                        return Err(error);
                    }
                }
            }
            bars.clear();
        }
        Ok((shell, tables))
    }

    async fn open(config: Config, temporary: Option<TempDir>) -> Result<Self, CliError> {
        let bars = Arc::new(Bars::new(false));
        let embedded = EmbeddedEngine::open(config, &bars).await?;
        bars.clear();
        let own = embedded.own_session();
        Ok(Self::Here(Box::new(EmbeddedShell { embedded, own, agent: OnceCell::new(), _temporary: temporary })))
    }

    /// Runs one statement.
    pub(super) async fn run(
        &self,
        language: ShellLanguage,
        text: &str,
        database: Option<&str>,
    ) -> Result<StreamedRows, CliError> {
        match (self, language) {
            (ShellBackend::Server(client), ShellLanguage::Sql) => client.sql_in_session(text, database).await,
            (ShellBackend::Server(client), ShellLanguage::Kql) if is_kql_command(text) => {
                // A command may change something, which Flight SQL takes as no query.
                client.kql(text.to_owned(), database).await
            }
            (ShellBackend::Server(client), ShellLanguage::Kql) => client.kql_in_session(text, database).await,
            (ShellBackend::Here(here), ShellLanguage::Sql) => {
                let session = here.embedded.lasting_session(&here.own).await?.in_database(database).await?;
                Ok(StreamedRows::from(session.sql(text).await?))
            }
            (ShellBackend::Here(here), ShellLanguage::Kql) => {
                let session = here.embedded.lasting_session(&here.own).await?.in_database(database).await?;
                Ok(StreamedRows::from(session.kql(text).await?))
            }
        }
    }

    /// Asks the agent, and shows the run's events as they arrive.
    pub(super) async fn ask(&self, question: &UserQuestion, shown: EventDisplay) -> Result<Answered, CliError> {
        match self {
            ShellBackend::Server(client) => ask::ask(client, question, shown).await,
            ShellBackend::Here(here) => {
                let agent = here.agent.get_or_try_init(|| here.embedded.agent()).await?;
                ask::ask_agent(agent, question, shown).await
            }
        }
    }

    /// Ends what runs, and closes the folder.
    pub(super) async fn close(self) -> Result<(), CliError> {
        let ShellBackend::Here(here) = self else { return Ok(()) };
        let EmbeddedShell { embedded, own, agent, _temporary } = *here;
        drop(own);
        if let Some(agent) = agent.into_inner() {
            // Stores a run that was stopped before the folder is closed.
            agent.shutdown().await;
        }
        embedded.close().await
    }
}

impl EmbeddedShell {
    /// Makes a table of a file, a folder or the files of a glob, named after it, or one of each sheet of a workbook.
    async fn import(
        &self,
        file: &PathBuf,
        reader: &BTreeMap<String, String>,
        bars: &Arc<Bars>,
    ) -> Result<Vec<String>, CliError> {
        let source = file
            .to_str()
            .ok_or_else(|| CliError::Usage(format!("the name {} is not UTF-8; rename the file", file.display())))?;
        let is_url = source.contains("://");
        let path = if is_url { source.to_owned() } else { std::path::absolute(file)?.display().to_string() };
        // `*.csv` and `.` are called as the folder that they stand for.
        let table = table_name(source)
            .or_else(|| if source.contains("..") { None } else { table_name(&path) })
            .ok_or_else(|| CliError::Usage(format!("no table name can be made of {source}; rename the file")))?;
        let tables = match reader.contains_key("sheet") {
            true => vec![(table, None)],
            false => tables_of(source, &table, None).await?,
        };
        // What can be queried where it lies is not copied.
        let external = ["parquet", "parq", "pq", "arrow", "arrows", "ipc", "feather", "lance"]
            .iter()
            .any(|ending| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending)));
        let mut made = Vec::with_capacity(tables.len());
        for (table, sheet) in tables {
            let sheet = sheet.map(|sheet| ("sheet".to_owned(), sheet));
            let request = ImportRequest {
                source: path.clone(),
                format: None,
                options: reader.clone().into_iter().chain(sheet).collect(),
                table: TableName::new(DEFAULT_DATABASE, &table),
                external,
                if_exists: Some(IfExists::Error),
            };
            let progress: Arc<dyn Progress> = Arc::<Bars>::clone(bars);
            let imported = self.embedded.engine.import(&Principal::local_admin(), request, progress).await;
            let outcome = imported.map_err(|error| match error {
                EngineError::Catalog(CatalogError::AlreadyExists { .. }) => CliError::Usage(format!(
                    "{path} would be table {table}, as a file before it is; rename one of them, or name them one by one"
                )),
                other => other.into(),
            })?;
            made.push(table);
            made.extend(outcome.rejects.map(|(_, rejects)| rejects.table));
        }
        Ok(made)
    }
}

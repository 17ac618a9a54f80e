//! `querent verified-queries` and `querent metrics`: imports verified queries and metrics from a file of JSON objects,
//! lists and drops them. Each query and each metric is run before it is stored.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use querent_catalog::{Metric, NewMetric, PageRequest, PageToken, Principal, VerifiedQuery};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::feedback;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, DropArgs, ListArgs, TargetArgs};

const PAGE: usize = 1_000;

/// Questions with SQL that answers them, which the agent is shown and the search follows
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent verified-queries import queries.ndjson
  querent verified-queries list --server http://127.0.0.1:8080

The file holds one JSON object a line, or one array of them:
  {\"question\": \"flights by carrier\", \"sql\": \"SELECT carrier, count(*) FROM flights GROUP BY 1\", \"database\": \"default\"}")]
pub(super) enum QueriesCommand {
    /// Run and store the queries of a file
    Import(KnowledgeImportArgs),
    /// Print those there are, one JSON object a line
    List(ListArgs),
    /// Forget one by its id
    Drop(DropArgs),
    /// Print what feedback on answers proposes, one JSON object a line
    Proposals(ListArgs),
    /// Make a proposal a verified query
    Accept(DropArgs),
    /// Set a proposal aside
    Reject(DropArgs),
}

/// Names for numbers: an expression over a table, which the agent is shown and the search follows
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent metrics import metrics.json
  querent metrics drop 3

The file holds one JSON object a line, or one array of them:
  {\"name\": \"revenue\", \"table\": {\"database\": \"shop\", \"table\": \"orders\"}, \"expression\": \"sum(total)\", \"filter\": \"status = 'paid'\"}")]
pub(super) enum MetricsCommand {
    /// Check and store the metrics of a file
    Import(KnowledgeImportArgs),
    /// Print those there are, one JSON object a line
    List(ListArgs),
    /// Forget one by its id
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct KnowledgeImportArgs {
    /// A file of JSON objects, one a line or in one array
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnowledgeKind {
    Query,
    Metric,
}

impl KnowledgeKind {
    fn path(self) -> &'static str {
        match self {
            KnowledgeKind::Query => "/v1/catalog/verified-queries",
            KnowledgeKind::Metric => "/v1/catalog/metrics",
        }
    }

    fn listing(self) -> &'static str {
        match self {
            KnowledgeKind::Query => "verified_queries",
            KnowledgeKind::Metric => "metrics",
        }
    }

    /// What is said of a listing without entries.
    fn none(self) -> &'static str {
        match self {
            KnowledgeKind::Query => "no verified queries yet; `querent verified-queries import FILE` stores some",
            KnowledgeKind::Metric => "no metrics yet; `querent metrics import FILE` stores some",
        }
    }
}

/// A verified query in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryInFile {
    question: String,
    sql: String,
    database: Option<String>,
}

pub(super) async fn queries(command: QueriesCommand) -> Result<(), CliError> {
    match command {
        QueriesCommand::Import(args) => import(KnowledgeKind::Query, args).await,
        QueriesCommand::List(args) => list(KnowledgeKind::Query, args).await,
        QueriesCommand::Drop(args) => forget(KnowledgeKind::Query, args).await,
        QueriesCommand::Proposals(args) => feedback::proposals(args).await,
        QueriesCommand::Accept(args) => feedback::accept(args).await,
        QueriesCommand::Reject(args) => feedback::reject(args).await,
    }
}

pub(super) async fn metrics(command: MetricsCommand) -> Result<(), CliError> {
    match command {
        MetricsCommand::Import(args) => import(KnowledgeKind::Metric, args).await,
        MetricsCommand::List(args) => list(KnowledgeKind::Metric, args).await,
        MetricsCommand::Drop(args) => forget(KnowledgeKind::Metric, args).await,
    }
}

/// Imports the objects of a file. The first one that fails ends the import and is named by its position.
async fn import(kind: KnowledgeKind, args: KnowledgeImportArgs) -> Result<(), CliError> {
    let text = tokio::fs::read_to_string(&args.file)
        .await
        .map_err(|error| CliError::failed(format!("{}: {error}", args.file.display())))?;
    let objects = objects_in(&text).map_err(|error| CliError::failed(format!("{}: {error}", args.file.display())))?;
    let store = KnowledgeStore::open(args.target).await?;
    let count = objects.len();
    let mut imported = Ok(());
    for (index, object) in objects.into_iter().enumerate() {
        if let Err(error) = store.store(kind, object).await {
            let code = error.code().map(str::to_owned);
            let message = format!("object {} of {count}: {error}; {index} stored before it", index + 1);
            imported = Err(CliError::Failed { code, message });
            break;
        }
    }
    store.close().await?;
    imported?;
    output::print_line(&format!("{count} stored"))
}

async fn list(kind: KnowledgeKind, args: ListArgs) -> Result<(), CliError> {
    let store = KnowledgeStore::open(args.target).await?;
    let listed = store.list(kind).await;
    store.close().await?;
    output::print_listing(&listed?, kind.none())
}

async fn forget(kind: KnowledgeKind, args: DropArgs) -> Result<(), CliError> {
    let store = KnowledgeStore::open(args.target).await?;
    let dropped = store.drop(kind, args.id).await;
    store.close().await?;
    dropped?;
    output::print_line("dropped")
}

/// Where knowledge is stored: a server, or the engine in this process.
enum KnowledgeStore {
    Server(Box<Client>),
    Embedded(Box<EmbeddedEngine>),
}

impl KnowledgeStore {
    async fn open(target: TargetArgs) -> Result<Self, CliError> {
        Ok(match target.resolve()? {
            CliTarget::Server(server) => KnowledgeStore::Server(Box::new(Client::new(server)?)),
            CliTarget::Embedded(config) => {
                KnowledgeStore::Embedded(Box::new(EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?))
            }
        })
    }

    async fn store(&self, kind: KnowledgeKind, object: Value) -> Result<(), CliError> {
        let embedded = match self {
            KnowledgeStore::Server(client) => {
                client.send(client.request(Method::POST, kind.path())?.json(&object)).await?;
                return Ok(());
            }
            KnowledgeStore::Embedded(embedded) => embedded,
        };
        let unreadable = |error: serde_json::Error| CliError::failed(error.to_string());
        match kind {
            KnowledgeKind::Query => {
                let query: QueryInFile = serde_json::from_value(object).map_err(unreadable)?;
                let session = embedded.session(query.database.as_deref()).await?;
                session.verify_query(&query.question, &query.sql).await?;
            }
            KnowledgeKind::Metric => {
                let metric: NewMetric = serde_json::from_value(object).map_err(unreadable)?;
                embedded.session(None).await?.define_metric(metric).await?;
            }
        }
        Ok(())
    }

    async fn list(&self, kind: KnowledgeKind) -> Result<Vec<Value>, CliError> {
        let mut objects = Vec::new();
        let mut after: Option<PageToken> = None;
        loop {
            let (items, next) = self.page(kind, after).await?;
            objects.extend(items);
            after = match next {
                Some(next) => Some(next),
                None => return Ok(objects),
            };
        }
    }

    async fn page(
        &self,
        kind: KnowledgeKind,
        after: Option<PageToken>,
    ) -> Result<(Vec<Value>, Option<PageToken>), CliError> {
        match self {
            KnowledgeStore::Server(client) => {
                let mut parameters = vec![("limit", PAGE.to_string())];
                parameters.extend(after.map(|token| ("page_token", token.0)));
                let request = client.request(Method::GET, kind.path())?.query(&parameters);
                client.page(request, kind.listing()).await
            }
            KnowledgeStore::Embedded(embedded) => {
                let (catalog, who) = (embedded.engine.catalog(), Principal::local_admin());
                let request = PageRequest { limit: PAGE, after };
                Ok(match kind {
                    KnowledgeKind::Query => {
                        let page = catalog.knowledge().list_verified_queries(&who, None, request).await?;
                        (page.items.iter().map(|item: &VerifiedQuery| json!(item)).collect(), page.next)
                    }
                    KnowledgeKind::Metric => {
                        let page = catalog.knowledge().list_metrics(&who, None, request).await?;
                        (page.items.iter().map(|item: &Metric| json!(item)).collect(), page.next)
                    }
                })
            }
        }
    }

    async fn drop(&self, kind: KnowledgeKind, id: i64) -> Result<(), CliError> {
        match self {
            KnowledgeStore::Server(client) => {
                client.send(client.request(Method::DELETE, &format!("{}/{id}", kind.path()))?).await?;
            }
            KnowledgeStore::Embedded(embedded) => {
                let (catalog, who) = (embedded.engine.catalog(), Principal::local_admin());
                match kind {
                    KnowledgeKind::Query => catalog.knowledge().drop_verified_query(&who, id).await?,
                    KnowledgeKind::Metric => catalog.knowledge().drop_metric(&who, id).await?,
                }
            }
        }
        Ok(())
    }

    async fn close(self) -> Result<(), CliError> {
        match self {
            KnowledgeStore::Server(_) => Ok(()),
            KnowledgeStore::Embedded(embedded) => embedded.close().await,
        }
    }
}

/// Parses the objects of a JSON array, or of lines.
fn objects_in(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1)))
        .collect()
}

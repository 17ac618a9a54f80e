//! `querent import --recursive`: registers a tree of folders as external tables. Each folder is reported when its outcome
//! is known, and a summary at the end.

use std::io::{self, Write};
use std::sync::Arc;

use futures::TryStreamExt;
use parking_lot::Mutex;
use querent_catalog::{Principal, Progress};
use querent_engine::{TreeEvent, TreeRequest, TreeStep, TreeSummary};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio_util::io::StreamReader;

use crate::cli::client::{Client, server_refusal};
use crate::cli::embedded::{EmbeddedEngine, wait_until_indexed};
use crate::cli::error::CliError;
use crate::cli::progress::Bars;
use crate::config::Config;
use crate::folder_import::TreeLine;

/// The most tables whose indexing a command waits for; the next process continues with the rest.
const MAX_AWAITED: u64 = 1_000;

/// Registers or refreshes the tree of each source.
pub(super) async fn run(
    config: Config,
    requests: Vec<TreeRequest>,
    bars: &Arc<Bars>,
    as_json: bool,
) -> Result<(), CliError> {
    let embedded = EmbeddedEngine::open(config, bars).await?;
    let mut outcome = Ok(());
    for request in requests {
        outcome = import_one(&embedded, request, bars, as_json).await;
        if outcome.is_err() {
            break;
        }
    }
    bars.clear();
    embedded.close().await?;
    outcome
}

async fn import_one(
    embedded: &EmbeddedEngine,
    request: TreeRequest,
    bars: &Arc<Bars>,
    as_json: bool,
) -> Result<(), CliError> {
    let dry_run = request.dry_run;
    let written = Mutex::new(Ok(()));
    let report = |event: TreeEvent| {
        let mut written = written.lock();
        if written.is_ok() {
            *written = print_step(event.into(), dry_run, as_json);
        }
    };
    let progress: Arc<dyn Progress> = Arc::<Bars>::clone(bars);
    let summary = embedded.engine.import_tree(&Principal::local_admin(), request, progress, &report).await?;
    written.into_inner()?;
    if !dry_run && summary.registered + summary.refreshed <= MAX_AWAITED {
        wait_until_indexed(&embedded.engine).await?;
    }
    bars.clear();
    print_step(TreeLine::Summary(summary), dry_run, as_json)
}

/// Asks a server to register or refresh the tree of each source, which the server reads itself.
pub(super) async fn run_on(client: &Client, requests: Vec<TreeRequest>, as_json: bool) -> Result<(), CliError> {
    for TreeRequest { source, database, dry_run } in requests {
        let body = json!({ "source": source, "database": database, "dry_run": dry_run });
        let response = client.send(client.request(Method::POST, "/v1/import/tree")?.json(&body)).await?;
        let mut lines = StreamReader::new(response.bytes_stream().map_err(io::Error::other)).lines();
        let mut is_whole = false;
        while let Some(line) = lines.next_line().await? {
            let line = serde_json::from_str(&line)
                .map_err(|error| CliError::failed(format!("the server's answer is not understood: {error}")))?;
            is_whole = matches!(line, TreeLine::Summary(_));
            print_step(line, dry_run, as_json)?;
        }
        if !is_whole {
            return Err(CliError::failed("the server's answer broke off; run the import again"));
        }
    }
    Ok(())
}

/// Prints a line; a line that reports an error becomes this command's error.
fn print_step(line: TreeLine, dry_run: bool, as_json: bool) -> Result<(), CliError> {
    let text = match line {
        TreeLine::Error { error } => {
            return Err(server_refusal(&error, || "the import failed on the server".to_owned()));
        }
        line if as_json => line.to_text().map_err(io::Error::from)?,
        TreeLine::Folder(folder) => match event_text(&folder.into(), dry_run) {
            Some(text) => text + "\n",
            None => return Ok(()),
        },
        TreeLine::Summary(summary) => summary_text(&summary, dry_run) + "\n",
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn event_text(event: &TreeEvent, dry_run: bool) -> Option<String> {
    let folder = &event.folder;
    let table = event.table.as_ref().map(ToString::to_string).unwrap_or_default();
    let would = if dry_run { "would be " } else { "" };
    match &event.step {
        TreeStep::Registered => Some(format!("{table}: {would}registered, {folder}")),
        TreeStep::Refreshed => Some(format!("{table}: {would}refreshed, {folder}")),
        TreeStep::Dropped => Some(format!("{table}: {would}dropped, {folder} is gone")),
        TreeStep::Skipped { reason } => Some(format!("skipped {folder}: {reason}")),
        TreeStep::Unchanged => None,
    }
}

fn summary_text(summary: &TreeSummary, dry_run: bool) -> String {
    let TreeSummary { registered, refreshed, unchanged, dropped, skipped } = summary;
    let dry = if dry_run { "; nothing was changed" } else { "" };
    format!(
        "{registered} registered, {refreshed} refreshed, {unchanged} unchanged, {dropped} dropped, {skipped} skipped{dry}"
    )
}

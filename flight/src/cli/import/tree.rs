//! `querent import --recursive`: a tree of folders as external tables. Each folder is reported as it is decided, the
//! numbers at the end.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use querent_catalog::{Principal, Progress};
use querent_engine::{TreeEvent, TreeRequest, TreeStep, TreeSummary};
use serde_json::json;

use super::super::embedded::{Embedded, indexed};
use super::super::error::CliError;
use super::super::output;
use super::super::progress::Bars;
use crate::config::Config;

/// The most tables whose indexing a command waits for; the next process goes on with the rest.
const MAX_AWAITED: u64 = 1_000;

/// Registers or refreshes one tree a source.
pub(super) async fn run(
    config: Config,
    requests: Vec<TreeRequest>,
    bars: &Arc<Bars>,
    as_json: bool,
) -> Result<(), CliError> {
    let embedded = Embedded::open(config, bars).await?;
    let mut outcome = Ok(());
    for request in requests {
        outcome = one(&embedded, request, bars, as_json).await;
        if outcome.is_err() {
            break;
        }
    }
    bars.clear();
    embedded.close().await?;
    outcome
}

async fn one(embedded: &Embedded, request: TreeRequest, bars: &Arc<Bars>, as_json: bool) -> Result<(), CliError> {
    let dry_run = request.dry_run;
    let written = Mutex::new(Ok(()));
    let report = |event: TreeEvent| {
        let line = if as_json { Some(event_json(&event)) } else { event_text(&event, dry_run) };
        let mut written = written.lock();
        if let (Some(line), Ok(())) = (line, &*written) {
            *written = writeln!(io::stdout().lock(), "{line}");
        }
    };
    let progress: Arc<dyn Progress> = Arc::<Bars>::clone(bars);
    let summary = embedded.engine.import_tree(&Principal::local_admin(), request, progress, &report).await?;
    written.into_inner()?;
    if !dry_run && summary.registered + summary.refreshed <= MAX_AWAITED {
        indexed(&embedded.engine).await?;
    }
    bars.clear();
    output::say(&if as_json { summary_json(&summary) } else { summary_text(&summary, dry_run) })
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

fn event_json(event: &TreeEvent) -> String {
    let (step, reason) = match &event.step {
        TreeStep::Registered => ("registered", None),
        TreeStep::Refreshed => ("refreshed", None),
        TreeStep::Unchanged => ("unchanged", None),
        TreeStep::Dropped => ("dropped", None),
        TreeStep::Skipped { reason } => ("skipped", Some(reason)),
    };
    let database = event.table.as_ref().map(|table| &table.database);
    let table = event.table.as_ref().map(|table| &table.table);
    json!({ "folder": event.folder, "database": database, "table": table, "step": step, "reason": reason }).to_string()
}

fn summary_text(summary: &TreeSummary, dry_run: bool) -> String {
    let TreeSummary { registered, refreshed, unchanged, dropped, skipped } = summary;
    let dry = if dry_run { "; nothing was changed" } else { "" };
    format!(
        "{registered} registered, {refreshed} refreshed, {unchanged} unchanged, {dropped} dropped, {skipped} skipped{dry}"
    )
}

fn summary_json(summary: &TreeSummary) -> String {
    let TreeSummary { registered, refreshed, unchanged, dropped, skipped } = summary;
    json!({
        "registered": registered,
        "refreshed": refreshed,
        "unchanged": unchanged,
        "dropped": dropped,
        "skipped": skipped,
    })
    .to_string()
}

//! `querent check`, `backup`, `restore` and `expire-snapshots`: whether a data folder is whole, copies of it, and the end of its old
//! states, by its server or in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use querent_catalog::{ORPHAN_GRACE, restore as restore_folder, time_before};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::config::DurationSetting;

/// Check a data folder: the store, the files of tables, and files that no table has
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent check --data ./querent-data
  querent check --remove-orphans
  querent check --contents

Exits with 1 where something is wrong.")]
pub(super) struct CheckArgs {
    /// Remove files that no table has, which a write left that never committed
    #[arg(long)]
    remove_orphans: bool,
    /// How long such a file must not have changed
    #[arg(long, value_name = "TIME", default_value_t = DurationSetting(ORPHAN_GRACE))]
    grace: DurationSetting,
    /// Read the files of tables, to see whether they are as they were written
    #[arg(long)]
    contents: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Copy a data folder, also while a server has it open
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent backup /backups/monday
  querent backup /backups/monday --server http://127.0.0.1:8080 --token s3cret

A server writes the backup on its own machine.")]
pub(super) struct BackupArgs {
    /// A folder that is empty or not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

/// Make a data folder of a backup
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  querent restore /backups/monday --to ./querent-data")]
pub(super) struct RestoreArgs {
    /// A folder that `querent backup` made
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The data folder, which must be empty or not there
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Forget old states of tables, and remove the files that only they have
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent expire-snapshots --older-than 7d
  querent expire-snapshots --older-than 1h --server http://127.0.0.1:8080 --token s3cret

A server does it by itself with the setting catalog.snapshot_retention.")]
pub(super) struct ExpireArgs {
    /// How long ago a newer state must have taken its place
    #[arg(long, value_name = "TIME")]
    older_than: DurationSetting,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn check(args: CheckArgs) -> Result<(), CliError> {
    let grace = args.grace.0.as_secs();
    let found = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let parameters = [
                ("remove_orphans", args.remove_orphans.to_string()),
                ("grace_seconds", grace.to_string()),
                ("contents", args.contents.to_string()),
            ];
            let request = client.request(Method::POST, "/v1/check")?.query(&parameters);
            client.answer(request).await?
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let remove_orphans = args.remove_orphans.then_some(args.grace.0);
            let checked = match args.contents {
                true => embedded.engine.check_contents(remove_orphans).await,
                false => embedded.engine.check(remove_orphans).await,
            };
            embedded.close().await?;
            json!(checked?)
        }
    };
    report(&found)
}

fn report(found: &Value) -> Result<(), CliError> {
    let number = |key: &str| found[key].as_u64().unwrap_or_default();
    output::print_line(&format!("{} files, {} bytes", number("files"), number("bytes")))?;
    if let Some(read) = found["files_read"].as_u64() {
        output::print_line(&format!("{read} files are as they were written"))?;
    }
    if number("pending_objects") > 0 {
        output::note(&format!(
            "{} objects are not in the schema index yet; it follows by itself",
            number("pending_objects")
        ));
    }
    let orphans = found["orphans"].as_array().map_or(0, Vec::len) as u64;
    if orphans > 0 {
        let bytes: u64 =
            found["orphans"].as_array().into_iter().flatten().filter_map(|one| one["bytes"].as_u64()).sum();
        let removed = number("removed");
        output::print_line(&format!("{orphans} files that no table has, {bytes} bytes; {removed} removed"))?;
        if removed < orphans {
            output::note("--remove-orphans removes those that are older than --grace");
        }
    }
    let faults = found["faults"].as_array().cloned().unwrap_or_default();
    for fault in faults.iter().filter_map(Value::as_str) {
        output::print_line(&format!("fault: {fault}"))?;
    }
    match faults.len() {
        0 => output::print_line("no faults"),
        count => Err(CliError::failed(format!("{count} faults; restore what is missing from a backup"))),
    }
}

pub(super) async fn backup(args: BackupArgs) -> Result<(), CliError> {
    let made = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let folder = absolute(&args.folder)?;
            let request = client.request(Method::POST, "/v1/backup")?.json(&json!({ "folder": folder }));
            client.answer(request).await?
        }
        CliTarget::Embedded(config) => {
            let folder = absolute(&args.folder)?;
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let made = embedded.engine.catalog().back_up(&folder).await;
            embedded.close().await?;
            json!(made?)
        }
    };
    let made_at = made["made_at"].as_str().unwrap_or_default();
    output::print_line(&format!("{} files, {} bytes, as of {}", made["files"], made["bytes"], made_at))?;
    if let Some(place) = made["data_path"].as_str() {
        output::note(&format!("the files of tables stay at {place}; keep them there as long as the backup"));
    }
    Ok(())
}

pub(super) async fn restore(args: RestoreArgs) -> Result<(), CliError> {
    let restored = restore_folder(&args.backup, &args.to).await?;
    output::print_line(&format!("{} files, {} bytes, as of {}", restored.files, restored.bytes, restored.made_at))?;
    output::note(&format!("`querent check --data {}` checks it", args.to.display()));
    Ok(())
}

pub(super) async fn expire_snapshots(args: ExpireArgs) -> Result<(), CliError> {
    let age = args.older_than.0;
    let expired = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let body = json!({ "older_than_seconds": age.as_secs() });
            client.answer(client.request(Method::POST, "/v1/snapshots/expire")?.json(&body)).await?
        }
        CliTarget::Embedded(config) => {
            if time_before(Utc::now(), age).is_none() {
                return Err(CliError::Usage("--older-than is before all time".to_owned()));
            }
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let expired = embedded.engine.expire_snapshots_of_age(age, Duration::ZERO).await;
            embedded.close().await?;
            match expired? {
                Some(expired) => json!(expired),
                None => return Err(CliError::failed("another server that shares the catalog is at it".to_owned())),
            }
        }
    };
    output::print_line(&format!(
        "{} snapshots, {} dropped tables, {} files, {} bytes",
        expired["snapshots"], expired["tables"], expired["files"], expired["bytes"]
    ))
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
}

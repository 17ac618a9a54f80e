//! `querent audit`: verifies and exports the audit log of a data folder, by its server or in this process.

use std::sync::Arc;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, ListArgs, TargetArgs};

/// Records that are asked for at once.
const PAGE: usize = 1_000;

/// The log of who asked what, where audit.enabled keeps one
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent audit verify
  querent audit export > audit.ndjson
  querent audit export --after 1200")]
pub(super) enum AuditCommand {
    /// Check that each record is what was written, and stands on the one before it
    Verify(ListArgs),
    /// Print records, oldest first, one JSON object a line
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// Only records after the one of this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: AuditCommand) -> Result<(), CliError> {
    match command {
        AuditCommand::Verify(args) => verify(args.target).await,
        AuditCommand::Export(args) => export(args).await,
    }
}

async fn verify(target: TargetArgs) -> Result<(), CliError> {
    let check: Value = match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let request = client.request(Method::GET, "/v1/audit/verify")?;
            client.answer(request).await?
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let check = embedded.engine.catalog().audit().verify().await;
            embedded.close().await?;
            json!(check?)
        }
    };
    if let Some(fault) = check["fault"].as_str() {
        return Err(CliError::failed(format!("the audit log was changed: {fault}")));
    }
    output::print_line(&format!("{} records stand on one another", check["records"]))?;
    match &check["head"] {
        Value::Array(head) => output::print_line(&format!("the last one: {} {}", head[0], head[1])),
        _ => Ok(()),
    }
}

async fn export(args: ExportArgs) -> Result<(), CliError> {
    let mut after = args.after;
    match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            loop {
                let parameters = [("after", after.to_string()), ("limit", PAGE.to_string())];
                let request = client.request(Method::GET, "/v1/audit")?.query(&parameters);
                let body: Value = client.answer(request).await?;
                let records = body["records"].as_array().cloned().unwrap_or_default();
                records.iter().try_for_each(|record| output::print_line(&record.to_string()))?;
                let Some(last) = records.last().and_then(|record| record["seq"].as_i64()) else { break };
                after = last;
            }
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let exported = async {
                loop {
                    let records = embedded.engine.catalog().audit().list(after, PAGE).await?;
                    records.iter().try_for_each(|record| output::print_line(&json!(record).to_string()))?;
                    let Some(last) = records.last() else { return Ok::<(), CliError>(()) };
                    after = last.seq;
                }
            };
            let exported = exported.await;
            embedded.close().await?;
            exported?;
        }
    }
    if after == args.after {
        output::note(match after {
            0 => "no records; audit.enabled = true keeps a log",
            _ => "no records after that one",
        });
    }
    Ok(())
}

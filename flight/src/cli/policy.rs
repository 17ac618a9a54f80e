//! `querent policy`: shows, applies, tests and explains the policy of a data folder, by its server or in this process.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use querent_catalog::{DEFAULT_DATABASE, TableName};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, ListArgs, TargetArgs};
use super::token::attribute;
use crate::policy_cases::{CallerDescription, PolicyCase, policy_json, replaced_json, run_cases};

const PATH: &str = "/v1/policy";

/// Grants, row policies and masks, as code
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent policy show
  querent policy apply policy.sql --dry-run
  querent policy apply policy.sql
  querent policy test cases.json
  querent policy explain sales.orders --subject anna --policy-role analyst --attribute region=EU")]
pub(super) enum PolicyCommand {
    /// Print the policy that holds and its versions, as JSON
    Show(ListArgs),
    /// Put the policy that a file of statements makes in place of the one that holds, all of it or nothing
    Apply(ApplyArgs),
    /// Run statements as callers and compare their answers
    Test(TestArgs),
    /// Say what a caller may do with a table, and why
    Explain(ExplainArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ApplyArgs {
    /// GRANT, REVOKE, CREATE ROW POLICY and CREATE MASK statements, each ended by `;`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check the statements and say what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TestArgs {
    /// A JSON list of cases: {"as": {"subject": ..., "roles": [...]}, "sql": ..., "rows" | "row_count" | "error": ...}
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// [database.]table
    #[arg(value_name = "TABLE")]
    table: String,
    /// The caller's name
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// The caller's role: read, write or admin [default: read]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// A role that policies name; several times for several
    #[arg(long = "policy-role", value_name = "NAME")]
    roles: Vec<String>,
    /// A group; several times for several
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// A value that policies compare with; several times for several
    #[arg(long = "attribute", value_name = "NAME=VALUE")]
    attributes: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: PolicyCommand) -> Result<(), CliError> {
    match command {
        PolicyCommand::Show(args) => show(args.target).await,
        PolicyCommand::Apply(args) => apply(args).await,
        PolicyCommand::Test(args) => test(args).await,
        PolicyCommand::Explain(args) => explain(args).await,
    }
}

async fn show(target: TargetArgs) -> Result<(), CliError> {
    let shown = match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.answer(client.request(Method::GET, PATH)?).await?
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let policies = embedded.engine.catalog().policies();
            let versions = policies.versions(100).await;
            let shown = versions.map(|versions| policy_json(&policies.current(), &versions));
            embedded.close().await?;
            shown?
        }
    };
    output::print_line(&pretty(&shown))
}

async fn apply(args: ApplyArgs) -> Result<(), CliError> {
    let text = read(&args.file).await?;
    let changed = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let request = client.request(Method::POST, PATH)?.query(&[("dry_run", args.dry_run.to_string())]);
            client.answer(request.header("content-type", "text/plain").body(text)).await?
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let replaced = embedded.session(None).await?.replace_policy(&text, args.dry_run).await;
            let version = embedded.engine.catalog().policies().current().version;
            embedded.close().await?;
            let (before, document) = replaced?;
            replaced_json(&before, &document, version, args.dry_run)
        }
    };
    for (sign, key) in [("+", "added"), ("-", "removed")] {
        for line in changed[key].as_array().into_iter().flatten().filter_map(Value::as_str) {
            output::print_line(&format!("{sign} {line}"))?;
        }
    }
    match args.dry_run {
        true => output::print_line("nothing was changed (--dry-run)"),
        false => output::print_line(&format!("version {} holds", changed["version"])),
    }
}

async fn test(args: TestArgs) -> Result<(), CliError> {
    let text = read(&args.file).await?;
    let cases: Vec<PolicyCase> = serde_json::from_str(&text)
        .map_err(|error| CliError::Usage(format!("{}: {error}; write a list of cases", args.file.display())))?;
    let outcomes = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let request = client.request(Method::POST, &format!("{PATH}/test"))?.json(&json!({ "cases": cases }));
            client.answer::<Value>(request).await?["cases"].take()
        }
        CliTarget::Embedded(config) => {
            let limits = config.settings.limits();
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let outcomes = run_cases(&embedded.engine, limits, &cases).await;
            embedded.close().await?;
            json!(outcomes.map_err(CliError::Usage)?)
        }
    };
    let outcomes = outcomes.as_array().cloned().unwrap_or_default();
    let failed = outcomes.iter().filter(|outcome| outcome["passed"] != true).count();
    for outcome in &outcomes {
        let name = outcome["name"].as_str().unwrap_or_default();
        match outcome["passed"] == true {
            true => output::print_line(&format!("ok      {name}"))?,
            false => output::print_line(&format!("failed  {name}: found {}", outcome["found"]))?,
        }
    }
    match failed {
        0 if outcomes.len() == 1 => output::print_line("1 case passed"),
        0 => output::print_line(&format!("{} cases passed", outcomes.len())),
        failed => Err(CliError::failed(format!("{failed} of {} cases failed", outcomes.len()))),
    }
}

async fn explain(args: ExplainArgs) -> Result<(), CliError> {
    let table = match args.table.split_once('.') {
        Some((database, table)) => TableName::new(database, table),
        None => TableName::new(DEFAULT_DATABASE, &args.table),
    };
    let attributes = args.attributes.iter().map(|text| attribute(text));
    let caller = CallerDescription {
        subject: args.subject,
        role: args.role,
        databases: None,
        roles: args.roles.into_iter().collect(),
        groups: args.groups.into_iter().collect(),
        attributes: attributes.collect::<Result<_, CliError>>()?,
    };
    let explained = match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let body = json!({ "table": table, "as": caller });
            client.answer(client.request(Method::POST, &format!("{PATH}/explain"))?.json(&body)).await?
        }
        CliTarget::Embedded(config) => {
            let principal = caller.principal().map_err(CliError::Usage)?;
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let explained = embedded.session(None).await?.explain_policy(&principal, &table).await;
            embedded.close().await?;
            json!(explained?)
        }
    };
    output::print_line(&pretty(&explained))
}

async fn read(file: &std::path::Path) -> Result<String, CliError> {
    tokio::fs::read_to_string(file).await.map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

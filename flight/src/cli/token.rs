//! `querent token`: creates, lists and revokes tokens of a data folder, by its server or in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Subcommand;
use querent_catalog::{NewToken, PageRequest, Principal};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Client, PAGE};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, DropArgs, ListArgs, TargetArgs};
use crate::config::DurationSetting;

const PATH: &str = "/v1/tokens";

/// Tokens by which callers of a server are known, beside those of its settings
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent token create boss --role admin
  querent token create grafana --database sales --expires-in 90d
  querent token create anna --policy-role analyst --group emea --attribute region=EU
  querent token list
  querent token revoke 3

From the first one on, which must have role admin, a server of the folder lets nobody in without a token.")]
pub(super) enum TokenCommand {
    /// Create a token and print it; it is not shown again
    Create(CreateArgs),
    /// Print all but the tokens themselves, one JSON object a line
    List(ListArgs),
    /// End a token, at once
    Revoke(DropArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// What people call it, such as `grafana`
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may do: read, write or admin
    #[arg(long, value_name = "ROLE", default_value = "read")]
    role: String,
    /// Whom it stands for [default: its name]; tokens of one subject share runs
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// A database that it may see; several times for several [default: all]
    #[arg(long = "database", value_name = "NAME")]
    databases: Vec<String>,
    /// A role that policies name; several times for several
    #[arg(long = "policy-role", value_name = "NAME")]
    roles: Vec<String>,
    /// A group that policies name; several times for several
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// A value that policies compare with; several times for several
    #[arg(long = "attribute", value_name = "NAME=VALUE")]
    attributes: Vec<String>,
    /// After which time it ends, such as 12h or 90d [default: never]
    #[arg(long, value_name = "TIME", conflicts_with = "expires_at")]
    expires_in: Option<DurationSetting>,
    /// When it ends, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires_at: Option<DateTime<Utc>>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::Create(args) => create(args).await,
        TokenCommand::List(args) => {
            let none = "no tokens beside those of the settings; `querent token create NAME --role admin` makes one";
            output::print_listing(&list(args.target).await?, none)
        }
        TokenCommand::Revoke(args) => {
            revoke(args.target, args.id).await?;
            output::print_line("revoked")
        }
    }
}

async fn create(args: CreateArgs) -> Result<(), CliError> {
    let CreateArgs { name, role, subject, databases, roles, groups, attributes, expires_in, expires_at, target } = args;
    let new = NewToken {
        name,
        subject,
        role,
        databases: (!databases.is_empty()).then_some(databases),
        roles: BTreeSet::from_iter(roles),
        groups: BTreeSet::from_iter(groups),
        attributes: attributes.iter().map(|text| attribute(text)).collect::<Result<BTreeMap<_, _>, _>>()?,
        expires_at: expires_in.map(expiry).transpose()?.or(expires_at),
    };
    let created = match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.answer::<Value>(client.request(Method::POST, PATH)?.json(&json!(new))).await?
        }
        CliTarget::Embedded(config) => {
            let auth = &config.settings.auth;
            let has_tokens = !auth.tokens.is_empty() || auth.oidc.is_on();
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let tokens = embedded.engine.catalog().tokens();
            let created = match has_tokens || tokens.any() || new.role == "admin" {
                true => tokens.create(&Principal::local_admin(), new, Utc::now()).await.map_err(CliError::from),
                false => Err(CliError::Usage(
                    "the first token of a folder must have role admin: from it on its server lets nobody in without one; \
                     add --role admin"
                        .to_owned(),
                )),
            };
            embedded.close().await?;
            let (info, token) = created?;
            let mut created = json!(info);
            created["token"] = json!(token);
            created
        }
    };
    let token = created["token"].as_str().ok_or_else(|| CliError::failed("the server's answer has no token in it"))?;
    output::note(&format!("token {} of {}; it is not shown again:", created["id"], created["subject"]));
    output::print_line(token)
}

async fn list(target: TargetArgs) -> Result<Vec<Value>, CliError> {
    match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.listing(PATH, "tokens").await
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let listed = all(&embedded).await;
            embedded.close().await?;
            listed
        }
    }
}

async fn all(embedded: &EmbeddedEngine) -> Result<Vec<Value>, CliError> {
    let (tokens, who) = (embedded.engine.catalog().tokens(), Principal::local_admin());
    let mut listed = Vec::new();
    let mut page = PageRequest::first(PAGE);
    loop {
        let found = tokens.list(&who, page, Utc::now()).await?;
        listed.extend(found.items.iter().map(|token| json!(token)));
        match found.next {
            Some(next) => page = PageRequest { limit: PAGE, after: Some(next) },
            None => return Ok(listed),
        }
    }
}

async fn revoke(target: TargetArgs, id: i64) -> Result<(), CliError> {
    match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.send(client.request(Method::DELETE, &format!("{PATH}/{id}"))?).await?;
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let revoked = embedded.engine.catalog().tokens().revoke(&Principal::local_admin(), id, Utc::now()).await;
            embedded.close().await?;
            revoked?;
        }
    }
    Ok(())
}

/// Reads `NAME=VALUE`.
pub(super) fn attribute(text: &str) -> Result<(String, String), CliError> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| CliError::Usage(format!("--attribute {text}: write NAME=VALUE")))?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn expiry(after: DurationSetting) -> Result<DateTime<Utc>, CliError> {
    let end = TimeDelta::from_std(after.0).ok().and_then(|after| Utc::now().checked_add_signed(after));
    end.ok_or_else(|| CliError::Usage(format!("--expires-in {after}: that is too far away")))
}

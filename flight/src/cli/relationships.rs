//! `querent relationships`: declares, lists and drops relationships between tables.

use std::sync::Arc;

use clap::Subcommand;
use querent_catalog::{DEFAULT_DATABASE, NewRelationship, PageRequest, Principal, TableName};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Client, PAGE};
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, DropArgs, ListArgs, TargetArgs};

const PATH: &str = "/v1/catalog/relationships";

/// How tables join, as people declare it; the search and the agent follow it
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  querent relationships add shop.orders.customer_id crm.customers.id
  querent relationships list
  querent relationships drop 3")]
pub(super) enum RelationshipsCommand {
    /// Declare that a column refers to another
    Add(AddArgs),
    /// Print those declared, one JSON object a line
    List(ListArgs),
    /// Forget one by its id
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The referring column: [database.]table.column
    #[arg(value_name = "FROM")]
    from: String,
    /// The column referred to
    #[arg(value_name = "TO")]
    to: String,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: RelationshipsCommand) -> Result<(), CliError> {
    match command {
        RelationshipsCommand::Add(args) => {
            let (from, from_column) = column(&args.from)?;
            let (to, to_column) = column(&args.to)?;
            let new = NewRelationship { from, from_columns: vec![from_column], to, to_columns: vec![to_column] };
            output::print_line(&add(args.target, &new).await?.to_string())
        }
        RelationshipsCommand::List(args) => {
            let none = "no relationships are declared; `querent relationships add FROM TO` declares one";
            output::print_listing(&list(args.target).await?, none)
        }
        RelationshipsCommand::Drop(args) => {
            forget(args.target, args.id).await?;
            output::print_line("dropped")
        }
    }
}

async fn add(target: TargetArgs, new: &NewRelationship) -> Result<Value, CliError> {
    match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let body = json!({
                "from": new.from, "from_columns": new.from_columns, "to": new.to, "to_columns": new.to_columns,
            });
            client.answer(client.request(Method::POST, PATH)?.json(&body)).await
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let declared = embedded.engine.catalog().relationships().declare(&Principal::local_admin(), new).await;
            embedded.close().await?;
            Ok(json!(declared?))
        }
    }
}

async fn list(target: TargetArgs) -> Result<Vec<Value>, CliError> {
    match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.listing(PATH, "relationships").await
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
    let (relationships, who) = (embedded.engine.catalog().relationships(), Principal::local_admin());
    let mut listed = Vec::new();
    let mut page = PageRequest::first(PAGE);
    loop {
        let found = relationships.list(&who, None, page).await?;
        listed.extend(found.items.iter().map(|one| json!(one)));
        match found.next {
            Some(next) => page = PageRequest { limit: PAGE, after: Some(next) },
            None => return Ok(listed),
        }
    }
}

async fn forget(target: TargetArgs, id: i64) -> Result<(), CliError> {
    match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            client.send(client.request(Method::DELETE, &format!("{PATH}/{id}"))?).await?;
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let dropped = embedded.engine.catalog().relationships().drop(&Principal::local_admin(), id).await;
            embedded.close().await?;
            dropped?;
        }
    }
    Ok(())
}

/// Parses `[database.]table.column`.
fn column(text: &str) -> Result<(TableName, String), CliError> {
    let parts: Vec<&str> = text.split('.').collect();
    match parts.as_slice() {
        [table, column] => Ok((TableName::new(DEFAULT_DATABASE, *table), (*column).to_owned())),
        [database, table, column] => Ok((TableName::new(*database, *table), (*column).to_owned())),
        _ => Err(CliError::Usage(format!("`{text}` is not [database.]table.column"))),
    }
}

//! `querent feedback`: says that a run's answer is right, wrong, or what it should be. `querent verified-queries
//! proposals`, `accept` and `reject` decide what that proposes.

use std::sync::Arc;

use clap::ValueEnum;
use querent_agent::{FeedbackOutcome, FeedbackRequest, give_feedback};
use querent_catalog::{PageRequest, PageToken, Principal, ProposalState, QueryProposal, RunVerdict};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::{CliTarget, DropArgs, ListArgs, TargetArgs};

const PAGE: usize = 1_000;
const PROPOSALS: &str = "/v1/catalog/query-proposals";

/// Say whether the answer of a run is right
///
/// An answer that is right is proposed as a verified query, and so is the SQL of a correction. Whoever may write accepts
/// it with `querent verified-queries accept`; from then on the question is answered by it, also with other values.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent feedback 0197c1c0-8f6e-7d5c-9a3b-2f1e0d9c8b7a right
  querent feedback 0197c1c0-8f6e-7d5c-9a3b-2f1e0d9c8b7a corrected --sql \"SELECT count(*) FROM flights WHERE dest = 'LAX'\"
  querent verified-queries proposals")]
pub(super) struct FeedbackArgs {
    /// The run, as `querent ask` names it
    #[arg(value_name = "RUN_ID")]
    run_id: Uuid,
    /// What its answer is
    #[arg(value_enum)]
    verdict: VerdictWord,
    /// With `corrected`: the SQL that answers the question
    #[arg(long, value_name = "SQL")]
    sql: Option<String>,
    /// With `corrected`: the answer as it should be
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// In words
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// The question, where that of the run continues a conversation
    #[arg(long, value_name = "TEXT")]
    question: Option<String>,
    /// Where bare names of the SQL are found
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerdictWord {
    Right,
    Wrong,
    Corrected,
}

impl From<VerdictWord> for RunVerdict {
    fn from(word: VerdictWord) -> Self {
        match word {
            VerdictWord::Right => RunVerdict::Right,
            VerdictWord::Wrong => RunVerdict::Wrong,
            VerdictWord::Corrected => RunVerdict::Corrected,
        }
    }
}

pub(super) async fn run(args: FeedbackArgs) -> Result<(), CliError> {
    let FeedbackArgs { run_id, verdict, sql, text, comment, question, database, target } = args;
    let request = FeedbackRequest { verdict: verdict.into(), comment, sql, text, question, database };
    let outcome = match target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let path = format!("/v1/agent/runs/{run_id}/feedback");
            client.answer(client.request(Method::POST, &path)?.json(&request)).await?
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let given = given_here(&embedded, run_id, request).await;
            embedded.close().await?;
            json!(given?)
        }
    };
    output::print_line(&said(&outcome))
}

async fn given_here(
    embedded: &EmbeddedEngine,
    run_id: Uuid,
    request: FeedbackRequest,
) -> Result<FeedbackOutcome, CliError> {
    give_feedback(&embedded.session(None).await?, run_id, request)
        .await
        .map_err(|error| CliError::Failed { code: Some(error.code().to_owned()), message: error.to_string() })
}

/// Says what was stored, and what to do next.
fn said(outcome: &Value) -> String {
    let proposal = &outcome["proposal"];
    let verdict = outcome["verdict"].as_str().unwrap_or_default();
    match (proposal["id"].as_i64(), proposal["state"].as_str()) {
        (Some(id), Some("waiting")) => {
            format!("{verdict}: stored; proposed, accept it with `querent verified-queries accept {id}`")
        }
        (Some(id), Some(state)) => format!("{verdict}: stored; proposal {id} was {state} before"),
        _ => match outcome["not_proposed"].as_str() {
            Some(why) => format!("{verdict}: stored; nothing is proposed: {why}"),
            None => format!("{verdict}: stored"),
        },
    }
}

/// Prints the proposals that wait, one JSON object a line.
pub(super) async fn proposals(args: ListArgs) -> Result<(), CliError> {
    let mut listed = Vec::new();
    match args.target.resolve()? {
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            let mut after: Option<PageToken> = None;
            loop {
                let mut parameters = vec![("limit", PAGE.to_string()), ("state", "waiting".to_owned())];
                parameters.extend(after.map(|token| ("page_token", token.0)));
                let request = client.request(Method::GET, PROPOSALS)?.query(&parameters);
                let (proposals, next) = client.page(request, "query_proposals").await?;
                listed.extend(proposals);
                after = next;
                if after.is_none() {
                    break;
                }
            }
        }
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let found = waiting_here(&embedded).await;
            embedded.close().await?;
            listed.extend(found?.into_iter().map(|proposal| json!(proposal)));
        }
    }
    output::print_listing(&listed, "no proposals wait; `querent feedback RUN_ID right` makes one of an answer")
}

async fn waiting_here(embedded: &EmbeddedEngine) -> Result<Vec<QueryProposal>, CliError> {
    let (mut found, mut after): (Vec<QueryProposal>, Option<PageToken>) = (Vec::new(), None);
    loop {
        let page = PageRequest { limit: PAGE, after };
        let state = Some(ProposalState::Waiting);
        let page = embedded.engine.catalog().feedback().proposals(&Principal::local_admin(), state, page).await?;
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// Accepts a proposal: it runs, and becomes a verified query.
pub(super) async fn accept(args: DropArgs) -> Result<(), CliError> {
    let id = args.id;
    match args.target.resolve()? {
        CliTarget::Server(server) => post(Client::new(server)?, &format!("{PROPOSALS}/{id}/accept")).await?,
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let accepted = async { Ok::<_, CliError>(embedded.session(None).await?.accept_proposal(id).await?) }.await;
            embedded.close().await?;
            accepted?;
        }
    }
    output::print_line("accepted")
}

/// Sets a proposal aside.
pub(super) async fn reject(args: DropArgs) -> Result<(), CliError> {
    let id = args.id;
    match args.target.resolve()? {
        CliTarget::Server(server) => post(Client::new(server)?, &format!("{PROPOSALS}/{id}/reject")).await?,
        CliTarget::Embedded(config) => {
            let embedded = EmbeddedEngine::open(*config, &Arc::new(Bars::new(false))).await?;
            let rejected = async { Ok::<_, CliError>(embedded.session(None).await?.reject_proposal(id).await?) }.await;
            embedded.close().await?;
            rejected?;
        }
    }
    output::print_line("rejected")
}

async fn post(client: Client, path: &str) -> Result<(), CliError> {
    client.send(client.request(Method::POST, path)?).await?;
    Ok(())
}

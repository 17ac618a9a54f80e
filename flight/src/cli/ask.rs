//! `querent ask`: asks a server, or this process's own agent, and shows the run's events as they arrive.

use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use querent_agent::protocols::Renderer;
use querent_agent::protocols::ask::{AskRenderer, parse_request};
use querent_agent::{Agent, AgentError};
use querent_catalog::Principal;
use reqwest::{Method, header};
use serde_json::{Value, json};
use uuid::Uuid;

use super::chart::{draw_to, svg_path};
use super::client::Client;
use super::conversations;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::events::{Answered, EventDisplay, EventPrinter};
use super::output;
use super::progress::Bars;
use super::sse;
use super::target::{CliTarget, TargetArgs};
use crate::config::Config;
use crate::shutdown::stop_signal;

/// Ask a question in plain language
///
/// The model writes and runs the queries; each step is shown as it happens. Ctrl-c stops the run. With --data, or with
/// neither, it runs in this process on the data folder, with the model that the settings name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent ask 'Which carrier operated the most flights in 2013, and how many?'
  querent ask --data ./querent-data 'How many planes are there?'
  querent ask --follow-up 'And how many of them have four engines?'
  querent ask --database sales --quiet 'What did we sell most of last week?'
  querent ask --chart carriers.svg 'How many flights did each carrier operate?'
  querent ask --server http://127.0.0.1:9000 --json 'How many planes are there?' | jq .event")]
pub(super) struct AskArgs {
    /// The question
    #[arg(value_name = "QUESTION", required = true, num_args = 1..)]
    question: Vec<String>,
    /// Which database the question is about
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Go on with this session, or begin it
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Go on with the last question that was asked of the same server or folder
    #[arg(long, conflicts_with = "session")]
    follow_up: bool,
    /// Show what the model thinks, where it can
    #[arg(long)]
    thinking: bool,
    /// Draw the chart of the last rows worth one to this file (.svg)
    #[arg(long, value_name = "FILE", value_parser = svg_path)]
    chart: Option<PathBuf>,
    /// Print the answer only
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object an event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: AskArgs) -> Result<(), CliError> {
    let target = args.target.resolve()?;
    let place = place_of(&target);
    let session = match (args.session, args.follow_up) {
        (Some(session), _) => session,
        (None, false) => Uuid::now_v7().to_string(),
        (None, true) => conversations::last(&place).await.ok_or_else(|| {
            CliError::Usage(format!("there is no earlier question to follow up: none was asked of {place}"))
        })?,
    };
    let shown = match (args.json, args.quiet) {
        (true, _) => EventDisplay::Json,
        (false, true) => EventDisplay::Answer,
        (false, false) => EventDisplay::All,
    };
    let question = UserQuestion {
        text: args.question.join(" "),
        database: args.database,
        session: Some(session.clone()),
        thinking: args.thinking,
    };
    // Before the run: one that is stopped can be followed up, too.
    conversations::remember(&place, &session).await;
    let answered = match target {
        CliTarget::Server(server) => {
            let url = server.url.clone();
            let answered = ask(&Client::new(server)?, &question, shown).await?;
            if let (Some(ticket), EventDisplay::All) = (&answered.ticket, shown) {
                let url = url.as_str().trim_end_matches('/');
                output::print_line(&format!("rows: querent fetch --server {url} {ticket}"))?;
            }
            answered
        }
        CliTarget::Embedded(config) => ask_here(*config, &question, shown).await?,
    };
    let Some(path) = args.chart else { return Ok(()) };
    draw_to(&path, answered.chart.as_ref()).await?;
    if shown == EventDisplay::All {
        output::print_line(&format!("chart: {}", path.display()))?;
    }
    Ok(())
}

/// Returns the name of a target, under which its last conversation is remembered.
fn place_of(target: &CliTarget) -> String {
    match target {
        CliTarget::Server(server) => server.url.as_str().trim_end_matches('/').to_owned(),
        CliTarget::Embedded(config) => {
            let data = &config.settings.data;
            std::path::absolute(data).unwrap_or_else(|_| data.clone()).display().to_string()
        }
    }
}

/// A question and its context.
pub(super) struct UserQuestion {
    pub(super) text: String,
    pub(super) database: Option<String>,
    pub(super) session: Option<String>,
    pub(super) thinking: bool,
}

impl UserQuestion {
    /// Returns the body of a request.
    fn body(&self) -> Value {
        let mut body = json!({ "question": self.text, "include_thinking": self.thinking });
        if let Some(session) = &self.session {
            body["session_id"] = json!(session);
        }
        if let Some(database) = &self.database {
            body["database"] = json!(database);
        }
        body
    }
}

/// Asks an agent of this process, on the settings' data folder.
async fn ask_here(config: Config, question: &UserQuestion, shown: EventDisplay) -> Result<Answered, CliError> {
    let bars = Arc::new(Bars::new(false));
    let embedded = EmbeddedEngine::open(config, &bars).await?;
    bars.clear();
    let agent = match embedded.agent().await {
        Ok(agent) => agent,
        Err(error) => {
            embedded.close().await?;
            return Err(error);
        }
    };
    let answered = tokio::select! {
        answered = ask_agent(&agent, question, shown) => answered,
        signal = stop_signal() => signal.map_err(CliError::from).and(Err(CliError::failed("stopped"))),
    };
    // Stores a run that was stopped before the folder is closed.
    agent.shutdown().await;
    drop(agent);
    embedded.close().await?;
    answered
}

/// Asks an agent of this process, shows the events as they arrive, and returns the answer.
pub(super) async fn ask_agent(
    agent: &Agent,
    question: &UserQuestion,
    shown: EventDisplay,
) -> Result<Answered, CliError> {
    let request = parse_request(question.body().to_string().as_bytes())?;
    let mut run = agent.ask(&Principal::local_admin(), request).await?;
    let mut printer = EventPrinter::new(shown);
    let mut renderer = AskRenderer::default();
    while let Some(event) = run.events.next().await {
        for frame in renderer.frame(&event) {
            printer.event(frame.event.unwrap_or_default(), &frame.data)?;
        }
    }
    printer.outcome()
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        CliError::Failed { code: Some(error.code().to_owned()), message: error.to_string() }
    }
}

/// Asks, shows the events as they arrive, and returns the answer.
pub(super) async fn ask(client: &Client, question: &UserQuestion, shown: EventDisplay) -> Result<Answered, CliError> {
    let request = client
        .request(Method::POST, "/v1/agent/ask")?
        .header(header::ACCEPT, "text/event-stream")
        .json(&question.body());
    let mut events = sse::events(client, client.send(request).await?);
    let mut printer = EventPrinter::new(shown);
    while let Some(event) = events.try_next().await? {
        printer.event(&event.event, &event.data)?;
    }
    printer.outcome()
}

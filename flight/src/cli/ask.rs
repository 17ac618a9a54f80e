//! `querent ask`: a question to a server, and the run's events as they arrive.

use futures::TryStreamExt;
use reqwest::{Method, header};
use serde_json::json;

use super::client::Client;
use super::error::CliError;
use super::events::{EventPrinter, Shown};
use super::place::ServerArgs;
use super::sse::SseParser;

/// Ask a question in plain language
///
/// The server's model writes and runs the queries; each step is shown as it happens. Ctrl-c stops the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent ask 'Which carrier operated the most flights in 2013, and how many?'
  querent ask --database sales --quiet 'What did we sell most of last week?'
  querent ask --server http://127.0.0.1:9000 --json 'How many planes are there?' | jq .event")]
pub(super) struct Args {
    /// The question
    #[arg(value_name = "QUESTION", required = true, num_args = 1..)]
    question: Vec<String>,
    /// Which database the question is about
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Show what the model thinks, where it can
    #[arg(long)]
    thinking: bool,
    /// Print the answer only
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print one JSON object an event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(args: Args) -> Result<(), CliError> {
    let client = Client::new(args.server.server()?)?;
    let shown = match (args.json, args.quiet) {
        (true, _) => Shown::Json,
        (false, true) => Shown::Answer,
        (false, false) => Shown::All,
    };
    let question = Question { text: args.question.join(" "), database: args.database, thinking: args.thinking };
    ask(&client, &question, shown).await.map(|_answer| ())
}

/// What to ask.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) database: Option<String>,
    pub(super) thinking: bool,
}

/// Asks, shows the events as they arrive, and returns the answer.
pub(super) async fn ask(client: &Client, question: &Question, shown: Shown) -> Result<String, CliError> {
    let mut body = json!({ "question": question.text, "include_thinking": question.thinking });
    if let Some(database) = &question.database {
        body["database"] = json!(database);
    }
    let request =
        client.request(Method::POST, "/v1/agent/ask")?.header(header::ACCEPT, "text/event-stream").json(&body);
    let mut chunks = client.send(request).await?.bytes_stream();
    let mut parser = SseParser::default();
    let mut printer = EventPrinter::new(shown);
    while let Some(chunk) = chunks.try_next().await.map_err(|error| client.http_error(error))? {
        for event in parser.push(&chunk) {
            printer.event(&event)?;
        }
    }
    printer.outcome()
}

//! The agent as a tool: a question in, its answer out, for clients whose model leaves the querying to ours.

use std::sync::LazyLock;

use futures::StreamExt;
use querent_agent::models::ToolSpec;
use querent_agent::toolbox::ToolReply;
use querent_agent::{ASSESSMENT, Agent, AnswerFinal, AskRequest, EventKind};
use querent_catalog::Principal;
use serde_json::{Map, Value, json};

use super::progress::ProgressReport;
use super::refused_reply;
use crate::error::{ApiError, ErrorCode};

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: super::prompts::ASK.to_owned(),
    description:
        "Answers a question about the data in plain language: finds the tables, queries them, and says what came of \
        it with the query that it used. Slower than run_sql; for questions rather than queries."
            .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "description": "The question, in any language." },
            "database": { "type": "string", "description": "Where bare table names are found." },
        },
        "required": ["question"],
        "additionalProperties": false,
    }),
});

/// Returns the tool.
pub(super) fn spec() -> &'static ToolSpec {
    &SPEC
}

/// Asks the question, in a conversation where one is named, and returns the answer. Dropping it cancels the run.
pub(super) async fn call(
    agent: &Agent,
    who: &Principal,
    database: Option<String>,
    arguments: &Map<String, Value>,
    conversation: Option<String>,
    progress: &ProgressReport,
) -> ToolReply {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).map(str::to_owned);
    let question = text("question").unwrap_or_default();
    if let Some(name) = arguments.keys().find(|name| !["question", "database"].contains(&name.as_str())) {
        let message = format!("ask has no argument `{name}`; it has question and database");
        return refused_reply(&SPEC.name, &ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let database = text("database").filter(|name| !name.is_empty()).or(database);
    let request =
        AskRequest { question, database, include_thinking: false, session_id: conversation, approvals: false };
    let mut run = match agent.ask(who, request).await {
        Ok(run) => run,
        Err(error) => return refused_reply(&SPEC.name, &ApiError::from(error)),
    };
    let (mut answer, mut said) = (json!({ "run_id": run.run_id }), String::new());
    while let Some(event) = run.events.next().await {
        match &event.kind {
            EventKind::ToolCallStarted(call) => progress.say(&call.description).await,
            EventKind::TextDone { text, .. } => said.clone_from(text),
            EventKind::AnswerFinal(last) => {
                let AnswerFinal { sql_used, kql_used, ticket, assessment, .. } = last.as_ref();
                answer["answer"] = json!(said);
                answer["sql"] = json!(sql_used);
                answer["kql"] = json!(kql_used);
                if let Some(ticket) = ticket {
                    answer["ticket"] = json!(ticket.text);
                }
                if let Some(assessment) = assessment.to_json() {
                    answer[ASSESSMENT] = assessment;
                }
            }
            EventKind::RunError { code, message, detail_code } => {
                let code = if detail_code.is_empty() { code.as_str() } else { detail_code.as_str() };
                let json = json!({ "error": { "code": code, "message": message }, "run_id": answer["run_id"] });
                return ToolReply { json, text: format!("ask failed: {message}"), is_error: true };
            }
            _ => {}
        }
    }
    let query = answer["sql"].as_str().or(answer["kql"].as_str());
    let text = query.map_or_else(|| said.clone(), |query| format!("{said}\n\nThe query: {query}"));
    ToolReply { json: answer, text, is_error: false }
}

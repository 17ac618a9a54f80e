//! `UpsertResponseFeedback`, `GetResponseFeedback` and `DeleteResponseFeedback`: the thumbs of KsADK's web interface. A
//! thumb up says that the answer is right, a thumb down that it is wrong.

use axum::response::Response;
use querent_agent::protocols::responses::{response_id, run_of_response};
use querent_agent::{FeedbackRequest, give_feedback};
use querent_catalog::{CatalogError, RunFeedback, RunRecord, RunVerdict};
use querent_engine::Limits;
use serde_json::{Value, json};

use super::call::{ActionCall, envelope};
use super::scope::scoped_session;
use crate::error::ErrorCode;
use crate::http::openai::error::OpenAiError;

/// Stores what the caller says of a response.
pub(in crate::http) async fn upsert(call: ActionCall) -> Result<Response, OpenAiError> {
    let rating = call.action.required("Rating")?;
    let verdict = match rating.trim().to_lowercase().as_str() {
        "up" => RunVerdict::Right,
        "down" => RunVerdict::Wrong,
        _ => {
            let message = format!("`Rating` is `up` or `down`, not `{rating}`");
            return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "Rating", message));
        }
    };
    let request = FeedbackRequest {
        verdict,
        comment: call.action.text("Comment")?,
        sql: None,
        text: None,
        question: None,
        database: None,
    };
    let run = run_of(&call).await?;
    let session = call.state.session(call.principal.clone(), Limits::default());
    let given = give_feedback(&session, run.run_id, request).await?;
    let data = json!({ "Feedback": feedback_json(&call, &given.feedback)? });
    Ok(envelope(&call.request_id, "UpsertResponseFeedback", &data))
}

/// Returns what the caller said of a response.
pub(in crate::http) async fn get(call: ActionCall) -> Result<Response, OpenAiError> {
    let run = run_of(&call).await?;
    let said = call.state.engine.catalog().feedback().on_run(&call.principal, run.run_id).await?;
    let own = said.into_iter().find(|feedback| feedback.subject == call.principal.subject());
    let feedback = own.map(|feedback| feedback_json(&call, &feedback)).transpose()?;
    Ok(envelope(&call.request_id, "GetResponseFeedback", &json!({ "Feedback": feedback })))
}

/// Takes back what the caller said of a response.
pub(in crate::http) async fn remove(call: ActionCall) -> Result<Response, OpenAiError> {
    let run = run_of(&call).await?;
    let deleted = call.state.engine.catalog().feedback().remove(&call.principal, run.run_id).await?;
    Ok(envelope(&call.request_id, "DeleteResponseFeedback", &json!({ "Deleted": deleted })))
}

/// Returns the run of the response, which must be one of the session's. Errors: `conversation_not_found`, `run_not_found`.
async fn run_of(call: &ActionCall) -> Result<RunRecord, OpenAiError> {
    let (session_id, response) = (call.action.required("SessionId")?, call.action.required("ResponseId")?);
    let (agent, user) = (call.action.name("AgentId")?, call.action.name("UserId")?);
    let session = scoped_session(&call.state, &call.principal, &session_id, agent.as_deref(), user.as_deref()).await?;
    let unknown = || CatalogError::RunNotFound { run_id: response.clone() };
    let run_id = run_of_response(&response).ok_or_else(unknown)?;
    let run = call.state.engine.catalog().runs().get(&call.principal, run_id).await?;
    match run.conversation.as_ref() == Some(&session.key) {
        true => Ok(run),
        false => Err(unknown().into()),
    }
}

fn feedback_json(call: &ActionCall, feedback: &RunFeedback) -> Result<Value, OpenAiError> {
    let rating = match feedback.verdict {
        RunVerdict::Right => "up",
        RunVerdict::Wrong | RunVerdict::Corrected => "down",
    };
    let seconds = |time: chrono::DateTime<chrono::Utc>| format!("{:.3}", time.timestamp_millis() as f64 / 1_000.0);
    Ok(json!({
        "AgentId": call.action.name("AgentId")?.unwrap_or_default(),
        "SessionId": call.action.required("SessionId")?,
        "ResponseId": response_id(feedback.run_id),
        "EventId": call.action.name("EventId")?.unwrap_or_default(),
        "Rating": rating,
        "Comment": feedback.comment.clone().unwrap_or_default(),
        "TraceId": call.action.name("TraceId")?.unwrap_or_default(),
        "RootSpanId": call.action.name("RootSpanId")?.unwrap_or_default(),
        "CreatedAt": seconds(feedback.created_at),
        "UpdatedAt": seconds(feedback.updated_at),
    }))
}

//! The ask protocol: `POST /v1/agent/ask` as server-sent events, and the JSON documents of stored runs.
//! The stored trace consists of its frames, so it replays exactly what a client saw.

mod decisions;
mod trace;

use std::borrow::Cow;

use chrono::{DateTime, SecondsFormat, Utc};
use querent_catalog::{Page, RunRecord};
use querent_proof::ProofLink;
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::check_names;
use super::json::parse_json;
use super::{Frame, Paragraphs, Renderer, add_chart, add_ticket, kind_of, push_data_lines};
use crate::assessment::AnswerAssessment;
use crate::error::{AgentError, Result};
use crate::event::{AnswerFinal, ApprovalResolved, EventKind, RunEvent, RunFinished, RunOutcome, Trigger};
use crate::request::{AskRequest, MAX_QUESTION_BYTES};

pub use decisions::{RunDecisions, approval_json};
pub use trace::decode_trace;
pub(crate) use trace::encode_trace;

/// A session's id is a name, not a document.
const MAX_SESSION_ID_BYTES: usize = 256;

/// The fields of a request. `source`, which says where a question comes from, has no effect.
const FIELDS: [&str; 6] = ["question", "database", "include_thinking", "session_id", "approvals", "source"];

/// Reads the body of a request: `{question, database?, include_thinking?, session_id?, approvals?}`.
///
/// Errors: `empty_question`, `invalid_request`; the protocol answers both with 400 and `{"error": message}`.
pub fn parse_request(body: &[u8]) -> Result<AskRequest> {
    let body = parse_json(body).map_err(|error| invalid(format!("the body is not JSON: {error}")))?;
    let Value::Object(mut fields) = body else {
        return Err(invalid(format!("the body must be a JSON object, not {}", kind_of(&body))));
    };
    check_names(&fields, "", FIELDS)?;
    let question = match fields.remove("question") {
        None | Some(Value::Null) => return Err(AgentError::EmptyQuestion),
        Some(Value::String(question)) => question.trim().to_owned(),
        Some(other) => return Err(invalid(format!("`question` must be a string, not {}", kind_of(&other)))),
    };
    if question.is_empty() {
        return Err(AgentError::EmptyQuestion);
    }
    if question.len() > MAX_QUESTION_BYTES {
        return Err(invalid(format!(
            "`question` has {} bytes; at most {MAX_QUESTION_BYTES} are read, shorten it",
            question.len()
        )));
    }
    let database = match fields.remove("database") {
        None | Some(Value::Null) => None,
        Some(Value::String(database)) => Some(database.trim().to_owned()).filter(|name| !name.is_empty()),
        Some(other) => return Err(invalid(format!("`database` must be a string, not {}", kind_of(&other)))),
    };
    let mut flag = |name: &str| match fields.remove(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(other) => Err(invalid(format!("`{name}` must be true or false, not {}", kind_of(&other)))),
    };
    let include_thinking = flag("include_thinking")?;
    let approvals = flag("approvals")?;
    let session_id = match fields.remove("session_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if id.len() > MAX_SESSION_ID_BYTES => {
            return Err(invalid(format!(
                "`session_id` has {} bytes; at most {MAX_SESSION_ID_BYTES} are taken",
                id.len()
            )));
        }
        Some(Value::String(id)) => Some(id.trim().to_owned()).filter(|id| !id.is_empty()),
        Some(other) => return Err(invalid(format!("`session_id` must be a string, not {}", kind_of(&other)))),
    };
    Ok(AskRequest { question, database, include_thinking, session_id, approvals })
}

/// Turns events into frames: one frame for each event that the protocol knows.
#[derive(Debug, Default)]
pub struct AskRenderer {
    answer: Paragraphs,
}

impl Renderer for AskRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.render(event).into_iter().map(|(name, data)| Frame::named(name, &data)).collect()
    }

    fn push_piece(&mut self, event: &RunEvent, to: &mut Vec<u8>) -> bool {
        let is_piece = matches!(event.kind, EventKind::ThinkingDelta { .. } | EventKind::TextDelta { .. });
        let Some((name, data)) = is_piece.then(|| self.render(event)).flatten() else { return false };
        push_data_lines(Some(name), &data, to);
        true
    }
}

impl AskRenderer {
    fn render<'a>(&mut self, event: &'a RunEvent) -> Option<(&'static str, AskData<'a>)> {
        // Nearly all events are these: they are written without building a document first.
        match &event.kind {
            EventKind::ThinkingDelta { text, .. } => {
                return Some(("thinking_delta", AskData::Piece { text: text.into() }));
            }
            EventKind::TextDelta { text, .. } => {
                return Some(("answer_delta", AskData::Piece { text: self.answer.push(text) }));
            }
            // So are proofs: an answer may have thousands.
            EventKind::AnswerFinal(answer) => {
                let AnswerFinal { kql_used, sql_used, ticket, proof, assessment, .. } = answer.as_ref();
                let mut said = json!({ "text": self.answer.text(), "kql_used": kql_used, "sql_used": sql_used });
                add_ticket(&mut said, ticket.as_ref());
                let proof = Some(proof.as_slice()).filter(|proof| !proof.is_empty());
                return Some(("answer_final", AskData::Answer { said, proof, assessment }));
            }
            _ => {}
        }
        self.document(event).map(|(name, document)| (name, AskData::Document(document)))
    }

    fn document(&mut self, event: &RunEvent) -> Option<(&'static str, Value)> {
        Some(match &event.kind {
            EventKind::RunStarted(started) => {
                let mut data =
                    json!({ "run_id": started.run_id, "model": started.model, "question": started.question });
                if let Some(session_id) = &started.conversation {
                    data["session_id"] = json!(session_id);
                }
                if let (Trigger::Resume, Some(paused)) = (started.trigger, started.previous_run_id) {
                    data["continues"] = json!(paused);
                }
                ("run_started", data)
            }
            EventKind::TextStarted { .. } => {
                self.answer.begin();
                return None;
            }
            EventKind::ToolCallStarted(call) => {
                let mut data = json!({ "tool": call.tool, "args": call.args, "call_index": call.call_index });
                if let Some(approved) = &call.approval_request_id {
                    data["approval_id"] = json!(approved);
                }
                ("tool_call", data)
            }
            EventKind::ToolResult(result) => {
                let mut data = json!({ "tool": result.tool, "call_index": result.call_index, "result": result.result });
                add_chart(&mut data, result);
                add_ticket(&mut data, result.ticket.as_ref());
                ("tool_result", data)
            }
            EventKind::RunError { code, message, detail_code } => {
                ("run_error", json!({ "code": code.as_str(), "message": message, "detail_code": detail_code }))
            }
            EventKind::ApprovalRequested(call) => (
                "approval_requested",
                json!({
                    "approval_id": call.item_id,
                    "tool": call.name,
                    "args": stored_json(&call.args_raw, || json!(call.args_raw)),
                    "description": call.description,
                }),
            ),
            EventKind::ApprovalResolved(resolved) => {
                let ApprovalResolved { request_id, name, approved, reason, .. } = resolved.as_ref();
                let mut data = json!({ "approval_id": request_id, "tool": name, "approved": approved });
                if let Some(reason) = reason {
                    data["reason"] = json!(reason);
                }
                ("approval_resolved", data)
            }
            EventKind::RunFinished(finished) => {
                let RunFinished { run_id, outcome, usage, .. } = finished.as_ref();
                let mut data = json!({
                    "run_id": run_id,
                    "usage": { "input_tokens": usage.tokens.input_tokens, "output_tokens": usage.tokens.output_tokens },
                    "elapsed_ms": usage.elapsed_ms,
                    "tool_calls": usage.tool_calls,
                });
                if *outcome == RunOutcome::Paused {
                    data["outcome"] = json!("paused");
                }
                ("run_finished", data)
            }
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ThinkingStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDone { .. }
            | EventKind::TextDone { .. }
            | EventKind::AnswerFinal { .. }
            | EventKind::ClientToolRequested(_)
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => return None,
        })
    }
}

/// The data of a frame.
#[derive(Serialize)]
#[serde(untagged)]
enum AskData<'a> {
    Piece {
        text: Cow<'a, str>,
    },
    Answer {
        #[serde(flatten)]
        said: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        proof: Option<&'a [ProofLink]>,
        #[serde(flatten)]
        assessment: &'a AnswerAssessment,
    },
    Document(Value),
}

/// Returns the document of `GET /v1/agent/runs/{id}`; the run's trace is decoded.
pub fn run_json(run: &RunRecord) -> Value {
    let mut document = summary_json(run);
    document["trace"] = stored_json(&run.trace_json, || json!([]));
    document
}

/// Returns the document of `GET /v1/agent/runs`: `{runs, next_page_token}`, newest first, without traces. The token is
/// the next request's page token; it is null on the last page.
pub fn run_list_json(page: &Page<RunRecord>) -> Value {
    let runs: Vec<Value> = page.items.iter().map(summary_json).collect();
    json!({ "runs": runs, "next_page_token": page.next.as_ref().map(|token| token.0.as_str()) })
}

fn summary_json(run: &RunRecord) -> Value {
    json!({
        "run_id": run.run_id,
        "question": run.question,
        "model_id": run.model_id,
        "protocol": run.protocol,
        "status": run.status.as_str(),
        "started_at": rfc3339(run.started_at),
        "finished_at": run.finished_at.map(rfc3339),
        "usage": stored_json(&run.usage_json, || json!({})),
    })
}

/// Parses JSON text from the store; it may be empty where a previous process ended early.
fn stored_json(text: &str, absent: impl Fn() -> Value) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| absent())
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn invalid(message: String) -> AgentError {
    AgentError::InvalidRequest { message }
}

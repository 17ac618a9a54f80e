//! The list of tasks, which the version 1.0 has.

use chrono::{DateTime, Utc};
use querent_catalog::{RunRecord, RunStatus};
use serde_json::{Map, Value, json};

use super::render::A2aRenderer;
use super::{A2aVersion, BadRequest};
use crate::event::RunEvent;
use crate::protocols::Renderer;
use crate::protocols::fields::{FieldValues, check_members};

const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: i64 = 100;

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
const LIST: &[(&str, FieldValues)] = &[
    ("tenant", FieldValues::Text),
    ("contextId", FieldValues::Text),
    ("status", FieldValues::OneOf(STATES)),
    ("pageSize", FieldValues::Integer(1, MAX_PAGE)),
    ("pageToken", FieldValues::Text),
    ("historyLength", FieldValues::Integer(0, i64::MAX)),
    ("statusTimestampAfter", FieldValues::Text),
    ("includeArtifacts", FieldValues::Flag),
];

/// Which tasks a list has, and what of them.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    /// The tasks of one context.
    pub context_id: Option<String>,
    /// The most tasks of a page.
    pub page_size: usize,
    /// The last task of the page before.
    pub page_token: Option<String>,
    state: Option<String>,
    since: Option<DateTime<Utc>>,
    history_length: Option<usize>,
    has_artifacts: bool,
}

impl TaskFilter {
    /// Parses the parameters of a request.
    pub(super) fn parse(params: &Map<String, Value>) -> Result<Self, BadRequest> {
        check_members(params, "params", LIST)?;
        let text = |name: &str| params.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let since = match text("statusTimestampAfter") {
            None => None,
            Some(time) => Some(DateTime::parse_from_rfc3339(time).map_err(|_| {
                let at = "params.statusTimestampAfter";
                BadRequest::invalid(at, format!("`{at}` must be a time, as 2026-01-31T12:00:00Z"))
            })?),
        };
        let number = |name: &str| {
            params.get(name).and_then(Value::as_u64).map(|size| usize::try_from(size).unwrap_or(usize::MAX))
        };
        Ok(Self {
            context_id: text("contextId").map(str::to_owned),
            page_size: number("pageSize").unwrap_or(DEFAULT_PAGE),
            page_token: text("pageToken").map(str::to_owned),
            state: text("status").filter(|state| *state != "TASK_STATE_UNSPECIFIED").map(str::to_owned),
            since: since.map(|since| since.to_utc()),
            history_length: number("historyLength"),
            has_artifacts: params.get("includeArtifacts") == Some(&json!(true)),
        })
    }

    /// Whether a run of this protocol can be a task of the list: it is the first of its task, and what is known of it
    /// without its log fits.
    pub fn accepts(&self, run: &RunRecord) -> bool {
        let states: &[&str] = match run.status {
            RunStatus::Running => &["TASK_STATE_WORKING"],
            // Its log says whether it has asked back, and how the reply went.
            RunStatus::Success | RunStatus::Paused => STATES,
            RunStatus::Error | RunStatus::BudgetExceeded => &["TASK_STATE_FAILED"],
            RunStatus::Cancelled => &["TASK_STATE_CANCELED"],
        };
        let context = run.conversation.as_ref().map(|key| key.id.as_str());
        run.invocation_id.is_none()
            && self.context_id.as_deref().is_none_or(|id| context == Some(id))
            && self.state.as_deref().is_none_or(|wanted| states.contains(&wanted))
            // Of those that go on, and may be replied to, their log says when.
            && (matches!(run.status, RunStatus::Running | RunStatus::Success | RunStatus::Paused)
                || self.since.is_none_or(|since| run.finished_at.unwrap_or(run.started_at) >= since))
    }

    /// Whether a run's log has to be read to know whether its task is one of the list.
    pub fn needs_logs(&self) -> bool {
        self.state.is_some() || self.since.is_some()
    }

    /// Whether a task is in the state that the list is of, and was not before its time.
    pub fn is_listed(&self, task: &Value) -> bool {
        let at = task["status"]["timestamp"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        let is_late = self.since.is_none_or(|since| at.is_some_and(|at| at >= since));
        is_late && self.state.as_deref().is_none_or(|wanted| task["status"]["state"] == wanted)
    }

    /// Returns a task from its log, as the list shows it.
    pub fn task(&self, log: &[RunEvent]) -> Value {
        let mut renderer = A2aRenderer::new(A2aVersion::V1_0, Value::Null).with_history(self.history_length);
        for event in log {
            renderer.frame(event);
        }
        let mut task = renderer.task();
        if let Value::Object(fields) = &mut task {
            if self.history_length == Some(0) {
                fields.shift_remove("history");
            }
            if !self.has_artifacts {
                fields.shift_remove("artifacts");
            }
        }
        task
    }
}

/// Returns the answer to a request for a list: a page of at most `page_size` of `total` tasks, and the token of the next one.
pub fn task_list(id: &Value, tasks: &[Value], page_size: usize, total: usize, next: Option<&str>) -> Value {
    let list = json!({
        "tasks": tasks,
        "nextPageToken": next.unwrap_or_default(),
        "pageSize": page_size,
        "totalSize": total,
    });
    json!({ "jsonrpc": "2.0", "id": id, "result": list })
}

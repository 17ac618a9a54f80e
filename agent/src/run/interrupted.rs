//! Runs that a process left in progress: what is stored of a run when it begins, and how the next process, or another server
//! that shares the catalog, ends it, so that it reads back whole in every protocol.

use chrono::{SubsecRound, Utc};
use querent_catalog::{Catalog, CatalogError, RunRecord, RunStatus};
use serde_json::json;
use uuid::Uuid;

use super::restart::restarted_request;
use crate::event::{EventKind, RESTARTED_CODE, RunErrorCode, RunEvent, RunFinished, RunOutcome, RunStarted, Usage};
use crate::models::TokenUsage;
use crate::protocols::ask::encode_trace;
use crate::request::RunRequest;
use crate::stored_log::{decode_log, encode_log};

/// Runs that are ended at a time.
const RUNS_AT_ONCE: usize = 100;

/// Runs that an earlier process left in progress, once they are ended.
#[derive(Debug, Clone, Default)]
pub struct InterruptedRuns {
    /// How many there were.
    pub ended: u64,
    /// Those among them that may begin again.
    pub may_begin_again: Vec<InterruptedRun>,
}

/// A run in the background that was left in progress.
#[derive(Debug, Clone)]
pub struct InterruptedRun {
    /// The run.
    pub run_id: Uuid,
    /// Whose it is.
    pub subject: String,
}

/// Returns the record of a run as it is stored before it begins: with its first event, and with the messages that a run
/// after it continues.
pub(crate) fn begun_record(record: RunRecord, started: &RunStarted, request: &RunRequest) -> RunRecord {
    let kind = EventKind::RunStarted(Box::new(started.clone()));
    let events = [RunEvent { seq: 0, at: Utc::now().trunc_subsecs(3), kind }];
    let messages = request.stored_messages(request.history.iter().chain(&request.input));
    RunRecord {
        usage_json: json!(Usage::default()).to_string(),
        trace_json: encode_trace(&events),
        events_json: json!(events).to_string(),
        messages_json: json!(messages).to_string(),
        ..record
    }
}

/// Ends the runs that an earlier process left in progress.
pub(crate) async fn end_interrupted_runs(catalog: &Catalog) -> Result<InterruptedRuns, CatalogError> {
    let mut interrupted = InterruptedRuns::default();
    loop {
        let runs = catalog.runs().running(RUNS_AT_ONCE).await?;
        if runs.is_empty() {
            return Ok(interrupted);
        }
        for run in runs {
            let again =
                restarted_request(&run).map(|_| InterruptedRun { run_id: run.run_id, subject: run.subject.clone() });
            match catalog.runs().update(&ended_record(run, "the server was restarted")).await {
                Ok(()) => {
                    interrupted.ended += 1;
                    interrupted.may_begin_again.extend(again);
                }
                // Deleted in between.
                Err(CatalogError::RunNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Ends the runs of servers that share the catalog and are lost. Returns how many this server ended.
pub(crate) async fn end_runs_of_lost_servers(catalog: &Catalog) -> Result<u64, CatalogError> {
    let mut ended = 0;
    for member in catalog.members().lost() {
        loop {
            let runs = catalog.runs().running_on(&member, RUNS_AT_ONCE).await?;
            if runs.is_empty() {
                break;
            }
            for run in runs {
                ended += u64::from(catalog.runs().end_on(&member, &ended_record(run, "its server was lost")).await?);
            }
        }
    }
    Ok(ended)
}

/// Returns the run as failed, its log ended as that of any run that failed.
fn ended_record(run: RunRecord, what: &str) -> RunRecord {
    let mut events = decode_log(&run.events_json).unwrap_or_default();
    let usage: Usage = serde_json::from_str(&run.usage_json).unwrap_or_default();
    let finished_at = Utc::now().max(run.started_at);
    let at = finished_at.trunc_subsecs(3);
    if events.is_empty() {
        events.push(RunEvent { seq: 0, at, kind: EventKind::RunStarted(Box::new(started_of(&run))) });
    }
    let mut llm_calls = 0;
    let mut last_usage = TokenUsage::default();
    for event in &events {
        if let EventKind::LlmCallFinished(reply) = &event.kind {
            llm_calls += 1;
            last_usage = reply.usage;
        }
    }
    let message = format!("{what} while the run was in progress ({RESTARTED_CODE}); ask again");
    let kinds = [
        EventKind::RunError { code: RunErrorCode::Internal, message, detail_code: RESTARTED_CODE.to_owned() },
        EventKind::RunFinished(Box::new(RunFinished {
            run_id: run.run_id,
            outcome: RunOutcome::Error,
            usage,
            last_usage,
            llm_calls,
            cost: None,
        })),
    ];
    for kind in kinds {
        events.push(RunEvent { seq: events.len() as u64, at, kind });
    }
    let trace_json = encode_trace(&events);
    let (events_json, messages_json) = match run.keeps_log() {
        true => (encode_log(&events), run.messages_json.clone()),
        false => ("[]".to_owned(), "[]".to_owned()),
    };
    RunRecord {
        status: RunStatus::Error,
        finished_at: Some(finished_at),
        trace_json,
        events_json,
        messages_json,
        ..run
    }
}

/// Returns the first event of a run of which nothing else is stored.
fn started_of(run: &RunRecord) -> RunStarted {
    RunStarted {
        run_id: run.run_id,
        model: run.model_id.clone(),
        question: run.question.clone(),
        protocol: run.protocol.clone(),
        conversation: run.conversation.as_ref().map(|key| key.id.clone()),
        previous_run_id: run.previous_run_id,
        invocation_id: run.invocation_id.clone(),
        trigger: crate::event::Trigger::New,
        history_len: 0,
        request: serde_json::Value::Null,
        input: serde_json::Value::Null,
    }
}

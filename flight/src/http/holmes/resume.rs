//! Turns a request into a run, and decides the calls that the client's history waits for. A call is executed only if its
//! token is valid and the server's own record of it waits for a decision with the same tool and arguments; the arguments
//! of the record are executed. Anything else counts as a refusal of the call.

use chrono::Utc;
use querent_agent::models::{ChatMessage, ChatRole};
use querent_agent::protocols::holmes::{FrontendMode, HistoryCall, HolmesRequest};
use querent_agent::{CallDecision, OnDisconnect, PromptSections, Protocol, ResumedCall, RunRequest};
use querent_catalog::{PendingCall, PendingKind, PendingState, Principal, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use super::approvals::ApprovalKey;
use super::error::HolmesError;
use super::surface::LINGER;
use crate::error::ErrorCode;
use crate::state::AppState;

/// What to do about a request.
pub(super) enum ChatPlan {
    /// Start a run.
    Start(Box<RunRequest>),
    /// Replay the run that the same decision started before.
    Replay(Uuid),
}

/// A call without a result, and the server's record of it.
struct OpenHistoryCall {
    call: HistoryCall,
    stored: Option<PendingCall>,
    kind: PendingKind,
}

/// Plans the run that a request asks for. `digest` is that of its body.
pub(super) async fn plan(
    state: &AppState,
    key: &ApprovalKey,
    principal: &Principal,
    request: HolmesRequest,
    digest: &str,
) -> Result<ChatPlan, HolmesError> {
    let open = open_calls(state, principal, &request).await?;
    warn_of_unknown(&request, &open)?;
    if let Some(run_id) = decided_before(state, principal, &request, &open).await? {
        return Ok(ChatPlan::Replay(run_id));
    }
    let previous_run_id = open.iter().find_map(|open| open.stored.as_ref().map(|stored| stored.run_id));
    // Decisions come before the results of the client's tools.
    let (approvals, frontend): (Vec<OpenHistoryCall>, Vec<OpenHistoryCall>) =
        open.into_iter().partition(|open| open.kind == PendingKind::Approval);
    let mut resume: Vec<ResumedCall> = Vec::new();
    for open in approvals {
        resume.push(approval(key, principal, &request, open));
    }
    resume.extend(frontend.into_iter().map(|open| frontend_result(principal, &request, open)));

    let settings = &state.settings.holmes;
    let controls = request.behavior_controls.iter().map(|(name, on)| (name.as_str(), *on));
    let sections = PromptSections::chosen(settings.enabled_prompts.as_deref(), controls, settings.cluster_name.clone());
    let additions = [settings.system_prompt_additions.clone(), request.additional_system_prompt.clone()];
    let additions: Vec<String> = additions.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect();
    let added = sections.has("system_prompt_additions") && !additions.is_empty();
    let canned_results = request
        .frontend_tools
        .iter()
        .filter_map(|tool| match &tool.mode {
            FrontendMode::Noop(response) => Some((tool.spec.name.clone(), response.clone())),
            FrontendMode::Pause => None,
        })
        .collect();
    let run = RunRequest {
        include_thinking: true,
        instructions: added.then(|| additions.join("\n\n")),
        prompt: Some(sections),
        resume,
        client_tools: request.frontend_tools.iter().map(|tool| tool.spec.clone()).collect(),
        canned_results,
        can_approve: request.enable_tool_approval,
        previous_run_id,
        retained: true,
        returns_messages: true,
        on_disconnect: OnDisconnect::CancelAfter(LINGER),
        echo: json!({ "first": request.is_first(), "body": digest }),
        model: request.model.clone(),
        answer_schema: request.answer_schema.clone(),
        ..RunRequest::new(Protocol::Holmes, new_messages(&request))
    };
    Ok(ChatPlan::Start(Box::new(RunRequest { history: request.history, ..run })))
}

/// Returns the user's new messages. A client that resumes may repeat the question that the history ends with.
fn new_messages(request: &HolmesRequest) -> Vec<ChatMessage> {
    let asked = request.history.iter().rev().find(|message| message.role == ChatRole::User);
    let is_repeated = request.resumes() && asked.is_some_and(|asked| is_question(&request.ask, &asked.content));
    if request.ask.is_empty() || is_repeated {
        return Vec::new();
    }
    let mut content = request.ask.clone();
    for url in &request.image_urls {
        content.push_str(&format!("\n\n[Image at {url}; it was not fetched]"));
    }
    vec![ChatMessage { images: request.images.clone(), ..ChatMessage::text(ChatRole::User, content) }]
}

/// Whether `content` is the question `ask`, alone or with what was appended to it for the model.
fn is_question(ask: &str, content: &str) -> bool {
    content.strip_prefix(ask).is_some_and(|rest| rest.is_empty() || rest.starts_with("\n\n"))
}

async fn open_calls(
    state: &AppState,
    principal: &Principal,
    request: &HolmesRequest,
) -> Result<Vec<OpenHistoryCall>, HolmesError> {
    let mut open = Vec::new();
    for call in &request.open_calls {
        let stored = match state.agent.catalog().pending_calls().get(principal, &call.id).await {
            Ok(stored) => Some(stored).filter(|stored| stored.subject == principal.subject()),
            Err(error) if ErrorCode::from(&error) == ErrorCode::PendingCallNotFound => None,
            Err(error) => return Err(error.into()),
        };
        let kind = match &stored {
            Some(stored) => stored.kind,
            None if call.is_approval => PendingKind::Approval,
            None => PendingKind::ClientTool,
        };
        open.push(OpenHistoryCall { call: call.clone(), stored, kind });
    }
    Ok(open)
}

fn warn_of_unknown(request: &HolmesRequest, open: &[OpenHistoryCall]) -> Result<(), HolmesError> {
    let waits = |id: &str, kind: PendingKind| open.iter().any(|open| open.call.id == id && open.kind == kind);
    let decisions = request.tool_decisions.as_deref().unwrap_or_default();
    let nothing_waits = !open.iter().any(|open| open.kind == PendingKind::Approval);
    if !decisions.is_empty() && nothing_waits {
        let detail = "`tool_decisions` came, but no call in `conversation_history` waits for approval; send back the \
            history of the `approval_required` event";
        return Err(HolmesError::new(http::StatusCode::BAD_REQUEST, detail));
    }
    for decision in decisions.iter().filter(|decision| !waits(&decision.tool_call_id, PendingKind::Approval)) {
        tracing::warn!(tool_call_id = decision.tool_call_id, "a decision on a call that does not wait was ignored");
    }
    let results = request.frontend_tool_results.as_deref().unwrap_or_default();
    for result in results.iter().filter(|result| !waits(&result.tool_call_id, PendingKind::ClientTool)) {
        tracing::warn!(tool_call_id = result.tool_call_id, "a result for a call that does not wait was ignored");
    }
    Ok(())
}

/// Returns the run that the same decisions started, if all of them were made before and it did not fail. After one that
/// failed, a run begins that knows what became of the calls.
async fn decided_before(
    state: &AppState,
    principal: &Principal,
    request: &HolmesRequest,
    open: &[OpenHistoryCall],
) -> Result<Option<Uuid>, HolmesError> {
    let decisions = request.tool_decisions.as_deref().unwrap_or_default();
    let mut run_id = None;
    for decision in decisions {
        let Some(open) = open.iter().find(|open| open.call.id == decision.tool_call_id) else { continue };
        let same = match open.stored.as_ref() {
            Some(stored) if stored.state == PendingState::Approved && decision.approved => run_after(stored),
            Some(stored) if stored.state == PendingState::Denied && !decision.approved => run_after(stored),
            _ => None,
        };
        let Some(same) = same else { return Ok(None) };
        run_id.get_or_insert(same);
    }
    let Some(run_id) = run_id else { return Ok(None) };
    let run = match state.agent.get_run(principal, run_id).await {
        Ok(run) => run,
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match run.status {
        RunStatus::Running | RunStatus::Success | RunStatus::Paused => {}
        RunStatus::Error | RunStatus::BudgetExceeded | RunStatus::Cancelled => return Ok(None),
    }
    Ok((request.ask.is_empty() || is_question(&request.ask, &run.question)).then_some(run_id))
}

/// Returns the run that a decision started.
fn run_after(call: &PendingCall) -> Option<Uuid> {
    let decision: Value = serde_json::from_str(call.decision_json.as_deref()?).ok()?;
    Uuid::try_parse(decision["run_id"].as_str()?).ok()
}

fn approval(key: &ApprovalKey, principal: &Principal, request: &HolmesRequest, open: OpenHistoryCall) -> ResumedCall {
    const NOT_VALID: &str = "the approval did not come with the token of this very call, so it does not count";
    const BEFORE: &str = "this call was decided before and is not executed again";
    const EXECUTED: &str =
        "this call was approved and executed before, and it is not executed again: look at what it changed";
    const UNKNOWN: &str = "this call was approved before; whether it was executed is not known, and it is not executed \
        again: look at what is there";
    let decisions = request.tool_decisions.as_deref().unwrap_or_default();
    let decision = decisions.iter().find(|decision| decision.tool_call_id == open.call.id);
    let is_good = key.is_valid(&open.call, principal.subject(), Utc::now())
        && open
            .stored
            .as_ref()
            .is_some_and(|stored| stored.tool == open.call.name && stored.arguments_json == open.call.arguments);
    let waiting = open.stored.as_ref().filter(|stored| stored.state == PendingState::Waiting);
    let approved = open.stored.as_ref().filter(|stored| stored.state == PendingState::Approved);
    let before = approved.map(|stored| if stored.receipt_json.is_some() { EXECUTED } else { UNKNOWN });
    let refused = |reason: &str| CallDecision::Denied { reason: Some(reason.to_owned()) };
    let (decision, counts) = match (decision, before) {
        (Some(decision), _) if decision.approved && !is_good => (refused(NOT_VALID), false),
        // Nothing that is said, or left out, now undoes it.
        (_, Some(before)) => (refused(before), false),
        (None, None) if !request.resumes() => (CallDecision::Abandoned, true),
        (None, None) => (CallDecision::Denied { reason: None }, true),
        (Some(decision), None) if !decision.approved => {
            (CallDecision::Denied { reason: decision.feedback.clone() }, true)
        }
        (Some(_), None) if waiting.is_none() => (refused(BEFORE), false),
        (Some(decision), None) => (CallDecision::Approved { reason: decision.feedback.clone() }, true),
    };
    match waiting.filter(|_| counts) {
        Some(waiting) => ResumedCall { call: waiting.clone(), decision, stored: true },
        None => ResumedCall { call: pending_call_of_history(principal, &open), decision, stored: false },
    }
}

fn frontend_result(principal: &Principal, request: &HolmesRequest, open: OpenHistoryCall) -> ResumedCall {
    let results = request.frontend_tool_results.as_deref().unwrap_or_default();
    let result = results.iter().find(|result| result.tool_call_id == open.call.id);
    let decision = result.map_or(CallDecision::Abandoned, |result| CallDecision::Output(result.result.clone()));
    match open.stored.as_ref().filter(|stored| stored.state == PendingState::Waiting) {
        Some(waiting) => ResumedCall { call: waiting.clone(), decision, stored: true },
        None => ResumedCall { call: pending_call_of_history(principal, &open), decision, stored: false },
    }
}

/// Returns the record of a call that only the client's history knows.
fn pending_call_of_history(principal: &Principal, open: &OpenHistoryCall) -> PendingCall {
    PendingCall {
        call_id: open.call.id.clone(),
        kind: open.kind,
        subject: principal.subject().to_owned(),
        run_id: Uuid::nil(),
        conversation: None,
        tool: open.call.name.clone(),
        arguments_json: open.call.arguments.clone(),
        state: PendingState::Waiting,
        decided_at: None,
        decision_json: None,
        receipt_json: None,
    }
}

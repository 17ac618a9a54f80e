//! What an answer may rest on beside its own run: the rows that earlier runs of the conversation have read, and what was
//! said in it. Answers after an application's own tool, and those that go on from `previous_response_id`, often run no query.

use querent_proof::{ProofLink, ProofOrigin, Prover};
use uuid::Uuid;

use crate::confidence::ResultEvidence;
use crate::conversation::events_of;
use crate::event::EventKind;
use crate::models::ChatRole;
use crate::request::CallDecision;
use crate::run::RunTask;
use crate::tools;

/// Earlier runs that are looked at, and results of them, the latest first.
const MAX_RUNS: usize = 6;
const MAX_RESULTS: usize = 12;
/// Bytes of the conversation of which the numbers are known.
const MAX_SAID_BYTES: usize = 64 * 1024;

/// A result of an earlier run.
#[derive(Debug)]
pub(super) struct EarlierResult {
    run_id: Uuid,
    call_index: u32,
    evidence: ResultEvidence,
}

/// Adds to a prover what was read and said before the run. Returns the results, the oldest first.
pub(super) async fn add_earlier(task: &RunTask, prover: &mut Prover) -> Vec<EarlierResult> {
    add_said(task, prover);
    let mut found = Vec::new();
    let mut next = task.request.previous_run_id;
    for _ in 0..MAX_RUNS {
        let Some(run_id) = next else { break };
        let Ok(run) = task.catalog.runs().get(task.session.principal(), run_id).await else { break };
        for event in events_of(&run).unwrap_or_default().into_iter().rev() {
            if let EventKind::ToolResult(result) = event.kind
                && tools::answers(&result.tool)
                && found.len() < MAX_RESULTS
            {
                found.push((run_id, result));
            }
        }
        if found.len() == MAX_RESULTS {
            break;
        }
        next = run.previous_run_id;
    }
    found.reverse();
    found
        .into_iter()
        .map(|(run_id, result)| {
            prover.add_earlier_result(run_id, result.call_index, &result.result);
            let evidence = ResultEvidence::of_earlier(&result.result);
            EarlierResult { run_id, call_index: result.call_index, evidence }
        })
        .collect()
}

/// Adds what was said: by the asker, by the application and its tools, and by the model where only the client keeps its
/// answers, whose rows nobody knows then.
fn add_said(task: &RunTask, prover: &mut Prover) {
    let request = &task.request;
    let is_kept_by_client = request.previous_run_id.is_none();
    let is_known = |role: ChatRole| match role {
        ChatRole::User | ChatRole::Tool => true,
        ChatRole::Assistant => is_kept_by_client,
        ChatRole::System => false,
    };
    let messages = request.history.iter().chain(&request.input).filter(|message| is_known(message.role));
    let outputs = request.resume.iter().filter_map(|resumed| match &resumed.decision {
        CallDecision::Output(output) => Some(output.as_str()),
        CallDecision::Approved { .. } | CallDecision::Denied { .. } | CallDecision::Abandoned => None,
    });
    let said = messages.map(|message| message.content.as_str());
    let mut bytes = 0;
    for text in outputs.chain(request.all_instructions()).chain(said) {
        bytes += text.len();
        if bytes > MAX_SAID_BYTES {
            break;
        }
        prover.add_said(text);
    }
}

/// Returns what is known about the earlier result on which the parts of an answer rest, the latest of them.
pub(super) fn evidence_of(earlier: &[EarlierResult], links: &[ProofLink]) -> Option<ResultEvidence> {
    let cells: Vec<_> = links.iter().filter_map(|link| link.origin.first_cell()).collect();
    let is_used = |one: &&EarlierResult| {
        cells.iter().any(|cell| cell.run_id == Some(one.run_id) && cell.call_index == one.call_index)
    };
    earlier.iter().rev().find(is_used).map(|one| one.evidence.clone())
}

/// Whether a part of an answer rests on what was said.
pub(super) fn rests_on_conversation(links: &[ProofLink]) -> bool {
    links.iter().any(|link| link.origin == ProofOrigin::Conversation)
}

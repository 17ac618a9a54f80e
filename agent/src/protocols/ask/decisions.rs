//! What a person decides on the calls of a paused run: the body of `POST /v1/agent/runs/{run_id}/approvals`, and the
//! calls as documents.
//!
//! All calls of a run are decided together, since one run continues it: with a decision for all of them, or one each.

use querent_catalog::{PendingCall, PendingState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{rfc3339, stored_json};
use crate::protocols::responses::{BadRequest, InputItem};

/// Decisions on the calls of a run: `{approve, reason?}` for all of them, or `{decisions: [{approval_id, approve, reason?}]}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunDecisions {
    approve: Option<bool>,
    reason: Option<String>,
    decisions: Option<Vec<CallVerdict>>,
}

/// The decision on one call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallVerdict {
    approval_id: String,
    approve: bool,
    reason: Option<String>,
}

impl RunDecisions {
    /// Returns decisions on `calls`, which are all of a run's that a person is asked about, as items of a conversation.
    ///
    /// Errors: `unknown_call` where there is no such call; `invalid_request` where a call has no decision, or two.
    pub(crate) fn into_items(self, calls: &[PendingCall]) -> Result<Vec<InputItem>, BadRequest> {
        if calls.is_empty() {
            let message = "this run has no call that a person decides on";
            return Err(BadRequest::new("unknown_call", "decisions", message));
        }
        let verdicts = match (self.approve, self.decisions) {
            (Some(approve), None) => {
                let all = calls.iter().map(|call| CallVerdict {
                    approval_id: call.call_id.clone(),
                    approve,
                    reason: self.reason.clone(),
                });
                all.collect()
            }
            (None, Some(decisions)) if !decisions.is_empty() && self.reason.is_none() => decisions,
            _ => {
                let message = "send `approve` (and `reason`) for all calls, or `decisions` with one for each";
                return Err(BadRequest::invalid("approve", message));
            }
        };
        for (at, verdict) in verdicts.iter().enumerate() {
            let id = &verdict.approval_id;
            if !calls.iter().any(|call| call.call_id == *id) {
                let message = format!("no call of this run waits for a decision on `{id}`");
                return Err(BadRequest::new("unknown_call", "decisions", message));
            }
            if verdicts.iter().take(at).any(|earlier| earlier.approval_id == *id) {
                return Err(BadRequest::invalid("decisions", format!("`{id}` is decided twice")));
            }
        }
        let is_decided = |call: &PendingCall| verdicts.iter().any(|verdict| verdict.approval_id == call.call_id);
        let open: Vec<String> =
            calls.iter().filter(|call| !is_decided(call)).map(|call| format!("`{}`", call.call_id)).collect();
        if !open.is_empty() {
            let message = format!("all calls of a run are decided together; {} is missing", open.join(", "));
            return Err(BadRequest::invalid("decisions", message));
        }
        let items = verdicts.into_iter().map(|verdict| InputItem::ApprovalResponse {
            request_id: verdict.approval_id,
            approve: verdict.approve,
            reason: verdict.reason.filter(|reason| !reason.trim().is_empty()),
        });
        Ok(items.collect())
    }
}

/// Returns a call as `GET /v1/agent/runs/{run_id}/approvals` lists it.
pub fn approval_json(call: &PendingCall) -> Value {
    let mut document = json!({
        "approval_id": call.call_id,
        "tool": call.tool,
        "args": stored_json(&call.arguments_json, || json!(call.arguments_json)),
        "state": call.state.as_str(),
    });
    if let Some(at) = call.decided_at.filter(|_| call.state != PendingState::Waiting) {
        document["decided_at"] = json!(rfc3339(at));
    }
    document
}

#[cfg(test)]
mod tests {
    use querent_catalog::PendingKind;
    use uuid::Uuid;

    use super::*;

    fn calls(ids: &[&str]) -> Vec<PendingCall> {
        let call = |id: &&str| PendingCall {
            call_id: (*id).to_owned(),
            kind: PendingKind::Approval,
            subject: "ann".to_owned(),
            run_id: Uuid::nil(),
            conversation: None,
            tool: "insert_rows".to_owned(),
            arguments_json: "{}".to_owned(),
            state: PendingState::Waiting,
            decided_at: None,
            decision_json: None,
            receipt_json: None,
        };
        ids.iter().map(call).collect()
    }

    fn read(body: &str) -> RunDecisions {
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn one_decision_is_for_all_calls() {
        let items = read(r#"{"approve": false, "reason": "too large"}"#).into_items(&calls(&["a", "b"])).unwrap();
        let denied = |id: &str| InputItem::ApprovalResponse {
            request_id: id.to_owned(),
            approve: false,
            reason: Some("too large".to_owned()),
        };
        assert_eq!(items, [denied("a"), denied("b")]);
    }

    #[test]
    fn each_call_is_decided_once() {
        let each = r#"{"decisions": [{"approval_id": "b", "approve": true}, {"approval_id": "a", "approve": false}]}"#;
        assert_eq!(read(each).into_items(&calls(&["a", "b"])).unwrap().len(), 2);
        for (body, code) in [
            ("{}", "invalid_request"),
            (r#"{"decisions": []}"#, "invalid_request"),
            (r#"{"approve": true, "decisions": []}"#, "invalid_request"),
            (r#"{"reason": "why"}"#, "invalid_request"),
            (r#"{"approve": true, "decisions": [{"approval_id": "a", "approve": true}]}"#, "invalid_request"),
            (r#"{"decisions": [{"approval_id": "a", "approve": true}]}"#, "invalid_request"),
            (r#"{"decisions": [{"approval_id": "c", "approve": true}]}"#, "unknown_call"),
        ] {
            assert_eq!(read(body).into_items(&calls(&["a", "b"])).unwrap_err().code, code, "{body}");
        }
        let twice = r#"{"decisions": [{"approval_id": "a", "approve": true}, {"approval_id": "a", "approve": false}]}"#;
        assert_eq!(read(twice).into_items(&calls(&["a"])).unwrap_err().code, "invalid_request");
        assert_eq!(read(r#"{"approve": true}"#).into_items(&[]).unwrap_err().code, "unknown_call");
    }
}

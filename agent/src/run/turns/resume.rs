//! The beginning of a run that continues a paused one: approved calls are executed, once; for the others the model gets
//! a result that says that they were denied or abandoned.

use querent_catalog::{CatalogError, PendingKind};
use serde_json::json;

use super::{Turns, raw_arguments};
use crate::event::{ApprovalResolved, ClientToolResolved, EventKind, ToolStatus};
use crate::models::ModelToolCall;
use crate::request::{CallDecision, NO_RESULT, ResumedCall};
use crate::run::FailureCause;
use crate::tools::ToolError;

impl Turns<'_> {
    pub(super) async fn resume(&mut self) -> Result<(), FailureCause> {
        let task = self.task;
        for resumed in &task.request.resume {
            let ResumedCall { call, decision, stored } = resumed;
            let model_call = resumed.model_call();
            let (approved, reason) = match decision {
                CallDecision::Output(result) => {
                    self.client_answered(&call.call_id, &model_call, Some(result));
                    continue;
                }
                CallDecision::Abandoned if call.kind == PendingKind::ClientTool => {
                    self.client_answered(&call.call_id, &model_call, None);
                    continue;
                }
                CallDecision::Approved { reason } => (*stored, reason.clone()),
                CallDecision::Denied { reason } => (false, reason.clone()),
                CallDecision::Abandoned => (false, None),
            };
            let model_id = model_call.id.clone().unwrap_or_default();
            let request_id = call.call_id.clone();
            let call_id = if task.request.returns_messages { request_id.clone() } else { self.ids.next("call") };
            let (call_index, allowed) = self.budget.begin_call();
            let started = self.started(&model_call, call_id, call_index, Some(request_id.clone()));
            self.emit(EventKind::ApprovalResolved(Box::new(ApprovalResolved {
                request_id,
                call_id: started.call_id.clone(),
                name: started.tool.clone(),
                args_raw: started.args_raw.clone(),
                description: started.description.clone(),
                approved,
                reason: reason.clone(),
            })));
            if approved {
                self.emit(EventKind::ToolCallStarted(Box::new(started.clone())));
                allowed.map_err(|exhausted| self.tool_loop(exhausted))?;
                // A run that another server has ended meanwhile, since this one stood still, changes nothing any more, and what
                // is not stored is not executed: nobody would know afterwards that it was.
                let unstored = self.try_store().await?;
                let is_stored = unstored.is_none();
                let outcome = match unstored {
                    None => self.execute(&started).await,
                    Some(error) => (Err(not_stored(&started.tool, &error)), 0),
                };
                let failed = self.record_outcome(&started, &model_id, outcome, None);
                let recorded = self.budget.record(&started.tool, &started.args, failed);
                recorded.map_err(|exhausted| self.tool_loop(exhausted))?;
                if is_stored {
                    let receipt = json!({ "run_id": task.started_event.run_id, "failed": failed }).to_string();
                    if let Err(error) = task.catalog.pending_calls().put_receipt(&call.call_id, &receipt).await {
                        tracing::warn!(code = error.code(), %error, "a call's receipt could not be stored");
                    }
                }
            } else {
                let (status, refusal) = refusal(decision, &started.tool, reason.as_deref());
                self.record_outcome(&started, &model_id, (Err(refusal), 0), Some(status));
            }
        }
        Ok(())
    }

    /// Adds the result of a client's tool; `None`: the asker continued without it.
    fn client_answered(&mut self, call_id: &str, call: &ModelToolCall, result: Option<&String>) {
        let model_id = call.id.clone().unwrap_or_default();
        let missing = result.is_none();
        let result = result.map_or(NO_RESULT, String::as_str);
        self.conversation.push_tool_result(&call.name, &model_id, result.to_owned());
        self.emit(EventKind::ClientToolResolved(Box::new(ClientToolResolved {
            call_id: call_id.to_owned(),
            name: call.name.clone(),
            args_raw: raw_arguments(&call.arguments),
            result: result.to_owned(),
            missing,
        })));
    }
}

fn not_stored(tool: &str, error: &CatalogError) -> ToolError {
    let message = format!("{tool} was not executed, since the run could not be stored before it: {error}");
    ToolError::refusal(error.code(), message).with_hint("tell the user so; a new call asks for a new approval")
}

fn refusal(decision: &CallDecision, tool: &str, reason: Option<&str>) -> (ToolStatus, ToolError) {
    if *decision == CallDecision::Abandoned {
        let error =
            ToolError::refusal("cancelled", format!("{tool} was not executed: the user asked something else instead"));
        return (ToolStatus::Cancelled, error);
    }
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let error = ToolError::refusal("denied", format!("the user denied this call of {tool}{why}"))
        .with_hint("do not call it again with the same arguments; go on without it");
    (ToolStatus::Denied, error)
}

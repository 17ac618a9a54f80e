//! From items to a run: combines the items that a client sends, what the catalog stores of the conversation, and the
//! calls that wait for a decision into one request.
//!
//! A decision is looked up by its own id, since clients resume in three ways: in a conversation, after a response, or
//! with the whole history sent again. A decision is executed once: a request that repeats it is answered with the run
//! that the first one started.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use querent_catalog::{
    Catalog, CatalogError, ConversationKey, ItemRole, ItemScope, PendingCall, PendingState, Principal, RunRecord,
    RunStatus,
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    BadRequest, InputContent, InputItem, input_items, output_items, parse_items, run_of_item, run_of_response,
};
use crate::attachments;
use crate::conversation::{continue_conversation, events_of, messages_of};
use crate::error::{AgentError, Result};
use crate::models::{ChatImage, ChatMessage, ChatRole, ModelToolCall};
use crate::request::{CallDecision, ResumedCall, RunRequest};

/// Items of a conversation that are read at most: those that the client itself added.
const MAX_ADDED_ITEMS: usize = 1_000;

/// The run that a request leads to.
pub enum Continued {
    /// A new one.
    Start(Box<RunRequest>),
    /// The one that the same decision started before.
    Replay(Uuid),
}

/// Why a request leads to no run.
#[derive(Debug)]
pub enum ContinueError {
    /// The request is at fault.
    Request(BadRequest),
    /// Any other failure.
    Agent(AgentError),
}

impl From<BadRequest> for ContinueError {
    fn from(error: BadRequest) -> Self {
        Self::Request(error)
    }
}

impl<E: Into<AgentError>> From<E> for ContinueError {
    fn from(error: E) -> Self {
        Self::Agent(error.into())
    }
}

/// A decision in the input, and the call it decides.
struct DecidedCall {
    /// The item's index.
    at: usize,
    call: PendingCall,
    decision: CallDecision,
}

/// Completes `request`, which has everything but its messages, with `items` and with what they continue.
pub(crate) async fn continue_run(
    catalog: &Catalog,
    who: &Principal,
    request: RunRequest,
    items: Vec<InputItem>,
    conversation: Option<ConversationKey>,
    previous_response_id: Option<&str>,
) -> std::result::Result<Continued, ContinueError> {
    Continuation { catalog, who }.complete(request, items, conversation, previous_response_id).await
}

/// Lets `request` continue a conversation, with the items that its clients have added since its last run.
pub(crate) async fn join_conversation(
    catalog: &Catalog,
    who: &Principal,
    request: &mut RunRequest,
    key: ConversationKey,
) -> Result<()> {
    Continuation { catalog, who }.join(request, key).await.map_err(|error| match error {
        ContinueError::Agent(error) => error,
        ContinueError::Request(error) => AgentError::InvalidRequest { message: error.message },
    })
}

/// Reads the store as the caller.
struct Continuation<'a> {
    catalog: &'a Catalog,
    who: &'a Principal,
}

impl Continuation<'_> {
    async fn complete(
        &self,
        mut request: RunRequest,
        items: Vec<InputItem>,
        conversation: Option<ConversationKey>,
        previous_response_id: Option<&str>,
    ) -> std::result::Result<Continued, ContinueError> {
        let who = self.who;
        let items = self.resolve_references(items).await?;
        let decided = self.decided_calls(&items).await?;
        let (live, past): (Vec<DecidedCall>, Vec<DecidedCall>) =
            decided.into_iter().partition(|decided| decided.call.state == PendingState::Waiting);
        let names_base = conversation.is_some() || previous_response_id.is_some();
        if live.is_empty()
            && let Some(last) = past.iter().max_by_key(|decided| decided.at)
            && !items.iter().skip(last.at).any(is_new)
            && let Some(run_id) = run_started_by(&last.call)
        {
            return Ok(Continued::Replay(run_id));
        }
        let last_live = live.iter().map(|decided| decided.at).max();
        let (question_items, earlier) = match last_live {
            // The history before a decision comes from the store; its instructions come from the client.
            Some(last) if !names_base => {
                let (earlier, new) = items.split_at((last + 1).min(items.len()));
                let instructions = earlier.iter().filter(|item| is_instruction(item));
                (instructions.chain(new).cloned().collect(), without_decisions(earlier, &live))
            }
            _ => (items, Vec::new()),
        };
        let base = match (live.first(), previous_response_id) {
            (Some(first), _) => {
                let run_id = first.call.run_id;
                if live.iter().any(|decided| decided.call.run_id != run_id) {
                    let message = "these decisions are on calls of different responses; send them apart";
                    return Err(BadRequest::invalid("input", message).into());
                }
                Some(self.catalog.runs().get(who, run_id).await?)
            }
            (None, Some(response_id)) => Some(self.run_of_previous(response_id).await?),
            (None, None) => None,
        };
        match (&base, conversation) {
            (_, Some(key)) => {
                self.join(&mut request, key).await?;
            }
            (Some(base), None) => {
                request.history = messages_of(base);
                if request.history.is_empty() {
                    // A run that was not to be stored: the client has its history.
                    request.history = messages(&earlier, &self.stored_files(&earlier).await?)?.said;
                }
                request.previous_run_id = Some(base.run_id);
                request.conversation = base.conversation.clone();
            }
            (None, None) => {}
        }
        request.resume = self.resumed_calls(request.previous_run_id, live).await?;
        add_missing_calls(&mut request.history, &request.resume);
        let said_before =
            question_items.iter().take(last_live.unwrap_or_default()).filter(|item| is_question(item)).count();
        let files = self.stored_files(&question_items).await?;
        let Messages { said, instructions } = messages(&question_items, &files)?;
        if !instructions.is_empty() {
            let given = request.instructions.take().into_iter().chain(instructions);
            request.instructions = Some(given.collect::<Vec<_>>().join("\n\n"));
        }
        // New is what follows the last message that is not the asker's.
        let new_from = said.iter().rposition(|message| message.role != ChatRole::User).map_or(0, |last| last + 1);
        let mut said = said;
        request.input = said.split_off(new_from);
        if names_base && said_before > 0 && repeats_question(&request) {
            request.input.remove(0);
        }
        request.history.extend(said);
        Ok(Continued::Start(Box::new(request)))
    }

    /// Lets the run continue a conversation, with what the client itself has added to it.
    async fn join(&self, request: &mut RunRequest, key: ConversationKey) -> std::result::Result<(), ContinueError> {
        continue_conversation(self.catalog, self.who, request, key.clone()).await?;
        let added = self.added_items(&key, request.previous_run_id).await?;
        request.history.extend(messages(&added, &self.stored_files(&added).await?)?.said);
        Ok(())
    }

    /// Returns the run of the response to continue.
    ///
    /// Errors: `previous_response_not_found`; `response_in_progress` for a response that has not ended.
    async fn run_of_previous(&self, response_id: &str) -> std::result::Result<RunRecord, ContinueError> {
        let unknown = || {
            BadRequest::new(
                "previous_response_not_found",
                "previous_response_id",
                format!("previous response with id `{response_id}` not found"),
            )
        };
        let run_id = run_of_response(response_id).ok_or_else(unknown)?;
        let run = match self.catalog.runs().get(self.who, run_id).await {
            Ok(run) if run.retained => run,
            Ok(_) => return Err(unknown().into()),
            Err(CatalogError::RunNotFound { .. }) => return Err(unknown().into()),
            Err(error) => return Err(error.into()),
        };
        if run.status == RunStatus::Running {
            let message = format!("response `{response_id}` is still in progress; wait for its end");
            return Err(BadRequest::new("response_in_progress", "previous_response_id", message)
                .with_status(409)
                .into());
        }
        Ok(run)
    }

    /// Replaces references to stored items by the items, and calls without their results by the stored ones.
    async fn resolve_references(&self, items: Vec<InputItem>) -> std::result::Result<Vec<InputItem>, ContinueError> {
        let mut logs: HashMap<Uuid, Vec<Value>> = HashMap::new();
        let mut resolved = Vec::with_capacity(items.len());
        for item in items {
            let (id, is_partial) = match &item {
                InputItem::Reference { id } => (id.clone(), false),
                // A client may show a call without its result; the store has it.
                InputItem::McpCall { id, output: None, .. } => (id.clone(), true),
                _ => {
                    resolved.push(item);
                    continue;
                }
            };
            let unknown = || {
                BadRequest::new("item_not_found", "input", format!("item with id `{id}` not found")).with_status(404)
            };
            let stored = match run_of_item(&id) {
                Some(run_id) => {
                    if let Entry::Vacant(entry) = logs.entry(run_id) {
                        let run = self.catalog.runs().get(self.who, run_id).await;
                        let log = run.ok().filter(|run| run.retained).map(|run| events_of(&run)).transpose()?;
                        let log = log.unwrap_or_default();
                        entry.insert(input_items(&log).into_iter().chain(output_items(&log)).collect());
                    }
                    logs.get(&run_id).and_then(|items| items.iter().find(|item| item["id"] == id.as_str()).cloned())
                }
                None => {
                    let found = self.catalog.items().get(self.who, std::slice::from_ref(&id)).await?;
                    let item = found.into_iter().flatten().next();
                    item.and_then(|item| serde_json::from_str(&item.item_json).ok())
                }
            };
            match stored {
                Some(stored) => resolved.extend(parse_items(&Value::Array(vec![stored]))?),
                None if is_partial => resolved.push(item),
                None => return Err(unknown().into()),
            }
        }
        Ok(resolved)
    }

    /// Finds the decisions among the items, and the calls they decide. Errors: `unknown_call`.
    async fn decided_calls(&self, items: &[InputItem]) -> std::result::Result<Vec<DecidedCall>, ContinueError> {
        let mut decided = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let (id, decision) = match item {
                InputItem::ApprovalResponse { request_id, approve: true, reason } => {
                    (request_id, CallDecision::Approved { reason: reason.clone() })
                }
                InputItem::ApprovalResponse { request_id, approve: false, reason } => {
                    (request_id, CallDecision::Denied { reason: reason.clone() })
                }
                InputItem::FunctionCallOutput { call_id, output } => {
                    let sent_along = items.iter().any(
                        |item| matches!(item, InputItem::FunctionCall { call_id: called, .. } if called == call_id),
                    );
                    if sent_along {
                        continue;
                    }
                    (call_id, CallDecision::Output(output.clone()))
                }
                _ => continue,
            };
            let call = self.catalog.pending_calls().get(self.who, id).await.map_err(|error| match error {
                CatalogError::PendingCallNotFound { .. } => ContinueError::from(BadRequest::new(
                    "unknown_call",
                    "input",
                    format!("no call waits for a decision on `{id}`"),
                )),
                other => other.into(),
            })?;
            decided.push(DecidedCall { at, call, decision });
        }
        Ok(decided)
    }

    /// Returns the decided calls, and as abandoned the other calls that the continued run waits for.
    async fn resumed_calls(&self, base: Option<Uuid>, live: Vec<DecidedCall>) -> Result<Vec<ResumedCall>> {
        let mut resumed: Vec<ResumedCall> = live
            .into_iter()
            .map(|DecidedCall { call, decision, .. }| ResumedCall { call, decision, stored: true })
            .collect();
        let Some(run_id) = base else { return Ok(resumed) };
        for call in self.catalog.pending_calls().of_run(self.who, run_id).await? {
            let is_decided = resumed.iter().any(|resumed| resumed.call.call_id == call.call_id);
            if call.state == PendingState::Waiting && !is_decided {
                resumed.push(ResumedCall { call, decision: CallDecision::Abandoned, stored: true });
            }
        }
        Ok(resumed)
    }

    /// Returns the items that the client itself added to a conversation since its last run.
    async fn added_items(&self, key: &ConversationKey, last_run: Option<Uuid>) -> Result<Vec<InputItem>> {
        let scope = ItemScope::Conversation(key.clone());
        let items = self.catalog.items().list(self.who, &scope, None, MAX_ADDED_ITEMS, true).await?;
        let since = match last_run {
            Some(run_id) => Some(self.catalog.runs().get(self.who, run_id).await?.started_at),
            None => None,
        };
        let added = items
            .items
            .into_iter()
            .filter(|item| item.role == ItemRole::Added && since.is_none_or(|since| item.created_at > since));
        let values = added.filter_map(|item| serde_json::from_str::<Value>(&item.item_json).ok());
        // One of a type that is not read is no reason to read none.
        Ok(values.filter_map(|value| parse_items(&Value::Array(vec![value])).ok()).flatten().collect())
    }

    /// Reads the stored files that the items name. Errors: `file_not_found`.
    async fn stored_files(
        &self,
        items: &[InputItem],
    ) -> std::result::Result<HashMap<String, StoredFile>, ContinueError> {
        let mut files = HashMap::new();
        for item in items {
            let InputItem::Message { content, .. } = item else { continue };
            for part in content {
                let InputContent::FileId(file_id) = part else { continue };
                let unknown = || {
                    BadRequest::new("file_not_found", "input", format!("file with id `{file_id}` not found"))
                        .with_status(404)
                };
                let file = self.catalog.files().get(self.who, file_id).await.map_err(|_| unknown())?;
                let data = self.catalog.files().content(self.who, file_id).await.map_err(|_| unknown())?;
                let stored = StoredFile { filename: file.filename, media_type: file.media_type, data: Arc::from(data) };
                files.insert(file_id.clone(), stored);
            }
        }
        Ok(files)
    }
}

/// A file that the catalog stores.
struct StoredFile {
    filename: String,
    media_type: String,
    data: Arc<[u8]>,
}

/// The items as messages for the model.
struct Messages {
    said: Vec<ChatMessage>,
    instructions: Vec<String>,
}

fn messages(items: &[InputItem], files: &HashMap<String, StoredFile>) -> std::result::Result<Messages, ContinueError> {
    let mut messages = Messages { said: Vec::new(), instructions: Vec::new() };
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut approvals: HashMap<&str, (&str, &str)> = HashMap::new();
    let executed: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            InputItem::McpCall { approval_request_id, .. } => approval_request_id.as_deref(),
            _ => None,
        })
        .collect();
    for item in items {
        match item {
            InputItem::Message { role: ChatRole::System, content } => {
                messages.instructions.push(message(ChatRole::System, content, files)?.content);
            }
            InputItem::Message { role, content } => messages.said.push(message(*role, content, files)?),
            InputItem::FunctionCall { call_id, name, arguments } => {
                names.insert(call_id, name);
                messages.call(call_id, name, arguments);
            }
            InputItem::FunctionCallOutput { call_id, output } => {
                if let Some(name) = names.get(call_id.as_str()) {
                    messages.said.push(ChatMessage::tool_result(name, Some(call_id.clone()), output.as_str()));
                }
            }
            InputItem::McpCall { id, name, arguments, output, .. } => {
                messages.call(id, name, arguments);
                let output = output.as_deref().unwrap_or("The result of this call is not known any more.");
                messages.said.push(ChatMessage::tool_result(name, Some(id.clone()), output));
            }
            InputItem::ApprovalRequest { id, name, arguments } => {
                approvals.insert(id, (name, arguments));
            }
            InputItem::ApprovalResponse { request_id, approve, .. } => {
                // A call that was executed comes with its result.
                if let Some((name, arguments)) = approvals.get(request_id.as_str())
                    && !executed.contains(&request_id.as_str())
                {
                    messages.call(request_id, name, arguments);
                    let outcome = if *approve { "approved; its result is not known" } else { "denied by the user" };
                    messages.said.push(ChatMessage::tool_result(name, Some(request_id.clone()), outcome));
                }
            }
            InputItem::Reference { .. } | InputItem::Ignored => {}
        }
    }
    Ok(messages)
}

impl Messages {
    /// Adds a call. Consecutive calls belong to one message: their results come after all of them.
    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let call = ModelToolCall {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            arguments: serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned())),
        };
        match self.said.last_mut() {
            Some(last) if last.role == ChatRole::Assistant => last.tool_calls.push(call),
            _ => self.said.push(ChatMessage::assistant("", vec![call])),
        }
    }
}

fn message(
    role: ChatRole,
    content: &[InputContent],
    files: &HashMap<String, StoredFile>,
) -> std::result::Result<ChatMessage, ContinueError> {
    let mut paragraphs = Vec::new();
    let mut images = Vec::new();
    for part in content {
        match part {
            InputContent::Text(text) => paragraphs.push(text.clone()),
            InputContent::Image(image) => images.push(image.clone()),
            InputContent::ImageUrl(url) => paragraphs.push(format!("[Image at {url}; it was not fetched]")),
            InputContent::FileUrl(url) => paragraphs.push(format!("[File at {url}; it was not fetched]")),
            InputContent::File { filename, media_type, data } => {
                paragraphs.push(attachments::as_text(filename, media_type.as_deref(), data)?);
            }
            InputContent::FileId(file_id) => {
                let Some(file) = files.get(file_id) else { continue };
                if file.media_type.starts_with("image/") {
                    images.push(ChatImage::from_bytes(&file.media_type, &file.data));
                } else {
                    paragraphs.push(attachments::as_text(&file.filename, Some(&file.media_type), &file.data)?);
                }
            }
        }
    }
    Ok(ChatMessage { images, ..ChatMessage::text(role, paragraphs.join("\n\n")) })
}

/// Returns the items without these decisions and the requests that they answer.
fn without_decisions(items: &[InputItem], decided: &[DecidedCall]) -> Vec<InputItem> {
    let is_decided = |id: &str| decided.iter().any(|decided| decided.call.call_id == id);
    let rest = items.iter().filter(|item| match item {
        InputItem::ApprovalRequest { id, .. } => !is_decided(id),
        InputItem::ApprovalResponse { request_id, .. } => !is_decided(request_id),
        _ => true,
    });
    rest.cloned().collect()
}

/// Makes the history end with the calls that are decided now, also where their run was not stored.
fn add_missing_calls(history: &mut Vec<ChatMessage>, resume: &[ResumedCall]) {
    let is_known =
        |call: &ModelToolCall| history.iter().flat_map(|message| &message.tool_calls).any(|known| known.id == call.id);
    let missing: Vec<ModelToolCall> =
        resume.iter().map(ResumedCall::model_call).filter(|call| !is_known(call)).collect();
    if !missing.is_empty() {
        history.push(ChatMessage::assistant("", missing));
    }
}

/// Whether the input begins with the last question. Some clients send the question again beside the decision on a call
/// that it led to; it is not asked twice.
fn repeats_question(request: &RunRequest) -> bool {
    let asked = request.history.iter().rfind(|message| message.role == ChatRole::User);
    let first = request.input.first();
    asked.zip(first).is_some_and(|(asked, first)| asked.content.trim() == first.content.trim())
}

fn is_question(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::User, .. })
}

fn is_instruction(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::System, .. })
}

/// Whether an item says something new after a decision.
fn is_new(item: &InputItem) -> bool {
    is_question(item) || matches!(item, InputItem::McpCall { .. })
}

/// Returns the run that a decision started.
fn run_started_by(call: &PendingCall) -> Option<Uuid> {
    let decision: Value = serde_json::from_str(call.decision_json.as_deref()?).ok()?;
    Uuid::try_parse(decision["run_id"].as_str()?).ok()
}

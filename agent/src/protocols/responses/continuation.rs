//! From items to a run: what a client sends as its input, what is stored of the conversation, and what waited for a
//! decision, put together into one request.
//!
//! A decision is looked up by its own id, since clients resume in three ways: in a conversation, after a response, or
//! with the whole history sent again. What was decided before is not done again: such a request is answered with the
//! run that the first decision began.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use querent_catalog::{
    ConversationKey, ItemRole, ItemScope, PendingCall, PendingState, Principal, RunRecord, RunStatus,
};
use serde_json::Value;
use uuid::Uuid;

use crate::models::{ChatMessage, ChatRole, ModelToolCall};
use crate::protocols::responses::{
    BadRequest, Content, InputItem, input_items, output_items, parse_items, run_of_item, run_of_response,
};
use crate::request::{Decision, ResumedCall, RunRequest};
use crate::{Agent, AgentError, Result, attachments, events_of, messages_of};

/// Items of a conversation that nobody but the client wrote.
const MAX_ADDED_ITEMS: usize = 1_000;

/// What a request leads to.
pub enum Continued {
    /// A run.
    Start(Box<RunRequest>),
    /// A run that the same decision began before.
    Replay(Uuid),
}

/// Why it leads to nothing.
#[derive(Debug)]
pub enum ContinueError {
    /// The request is at fault.
    Request(BadRequest),
    /// Something else is.
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

/// A decision in the input, and the call that it is on.
struct Decided {
    at: usize,
    call: PendingCall,
    decision: Decision,
}

impl Agent {
    /// Completes `request`, all of it but its messages, with `items` and with what they continue.
    pub async fn continue_with(
        &self,
        who: &Principal,
        mut request: RunRequest,
        items: Vec<InputItem>,
        conversation: Option<ConversationKey>,
        previous_response_id: Option<&str>,
    ) -> std::result::Result<Continued, ContinueError> {
        let items = self.resolved(who, items).await?;
        let decided = self.decided(who, &items).await?;
        let (live, past): (Vec<Decided>, Vec<Decided>) =
            decided.into_iter().partition(|decided| decided.call.state == PendingState::Waiting);
        let names_base = conversation.is_some() || previous_response_id.is_some();
        if live.is_empty()
            && let Some(last) = past.iter().max_by_key(|decided| decided.at)
            && !items.iter().skip(last.at).any(is_new)
            && let Some(run_id) = run_after(&last.call)
        {
            return Ok(Continued::Replay(run_id));
        }
        let last_live = live.iter().map(|decided| decided.at).max();
        let (question_items, earlier) = match last_live {
            // The history before a decision is the server's own; its instructions are the client's.
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
                Some(self.catalog().runs().get(who, run_id).await?)
            }
            (None, Some(response_id)) => Some(self.response(who, response_id).await?),
            (None, None) => None,
        };
        match (&base, conversation) {
            (_, Some(key)) => {
                self.continue_conversation(who, &mut request, key.clone()).await?;
                let added = self.added_items(who, &key, request.previous_run_id).await?;
                request.history.extend(messages(&added, &self.files_of(who, &added).await?)?.said);
            }
            (Some(base), None) => {
                request.history = messages_of(base);
                if request.history.is_empty() {
                    // What was not to be stored, the client has.
                    request.history = messages(&earlier, &self.files_of(who, &earlier).await?)?.said;
                }
                request.previous_run_id = Some(base.run_id);
                request.conversation = base.conversation.clone();
            }
            (None, None) => {}
        }
        request.resume = self.resumed(who, request.previous_run_id, live).await?;
        tell_calls(&mut request.history, &request.resume);
        let said_before =
            question_items.iter().take(last_live.unwrap_or_default()).filter(|item| is_asked(item)).count();
        let files = self.files_of(who, &question_items).await?;
        let Messages { said, instructions } = messages(&question_items, &files)?;
        if !instructions.is_empty() {
            let given = request.instructions.take().into_iter().chain(instructions);
            request.instructions = Some(given.collect::<Vec<_>>().join("\n\n"));
        }
        // What follows the last thing that the asker did not say is new.
        let new_from = said.iter().rposition(|message| message.role != ChatRole::User).map_or(0, |last| last + 1);
        let mut said = said;
        request.input = said.split_off(new_from);
        if names_base && said_before > 0 && repeats_question(&request) {
            request.input.remove(0);
        }
        request.history.extend(said);
        Ok(Continued::Start(Box::new(request)))
    }

    /// The run of a response. Errors: `previous_response_not_found`; a response that is in progress cannot be continued.
    async fn response(&self, who: &Principal, response_id: &str) -> std::result::Result<RunRecord, ContinueError> {
        let unknown = || {
            BadRequest::new(
                "previous_response_not_found",
                "previous_response_id",
                format!("previous response with id `{response_id}` not found"),
            )
        };
        let run_id = run_of_response(response_id).ok_or_else(unknown)?;
        let run = match self.catalog().runs().get(who, run_id).await {
            Ok(run) if run.retained => run,
            Ok(_) => return Err(unknown().into()),
            Err(error) if error.code() == "run_not_found" => return Err(unknown().into()),
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

    /// The items, with those that are only named in the place of their names.
    async fn resolved(
        &self,
        who: &Principal,
        items: Vec<InputItem>,
    ) -> std::result::Result<Vec<InputItem>, ContinueError> {
        let mut logs: HashMap<Uuid, Vec<Value>> = HashMap::new();
        let mut resolved = Vec::with_capacity(items.len());
        for item in items {
            let InputItem::Reference { id } = item else {
                resolved.push(item);
                continue;
            };
            let unknown = || {
                BadRequest::new("item_not_found", "input", format!("item with id `{id}` not found")).with_status(404)
            };
            let stored = match run_of_item(&id) {
                Some(run_id) => {
                    if let Entry::Vacant(unread) = logs.entry(run_id) {
                        let run = self.catalog().runs().get(who, run_id).await;
                        let log = run.ok().filter(|run| run.retained).map(|run| events_of(&run)).transpose()?;
                        let log = log.unwrap_or_default();
                        unread.insert(input_items(&log).into_iter().chain(output_items(&log)).collect());
                    }
                    logs.get(&run_id).and_then(|items| items.iter().find(|item| item["id"] == id.as_str()).cloned())
                }
                None => {
                    let found = self.catalog().items().get(who, std::slice::from_ref(&id)).await?;
                    let item = found.into_iter().flatten().next();
                    item.and_then(|item| serde_json::from_str(&item.item_json).ok())
                }
            };
            resolved.extend(parse_items(&Value::Array(vec![stored.ok_or_else(unknown)?]))?);
        }
        Ok(resolved)
    }

    /// The decisions among the items.
    async fn decided(&self, who: &Principal, items: &[InputItem]) -> std::result::Result<Vec<Decided>, ContinueError> {
        let mut decided = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let (id, decision) = match item {
                InputItem::ApprovalResponse { request_id, approve: true, reason } => {
                    (request_id, Decision::Approved { reason: reason.clone() })
                }
                InputItem::ApprovalResponse { request_id, approve: false, reason } => {
                    (request_id, Decision::Denied { reason: reason.clone() })
                }
                InputItem::FunctionCallOutput { call_id, output } => {
                    let sent_along = items.iter().any(
                        |item| matches!(item, InputItem::FunctionCall { call_id: called, .. } if called == call_id),
                    );
                    if sent_along {
                        continue;
                    }
                    (call_id, Decision::Output(output.clone()))
                }
                _ => continue,
            };
            let call = self.catalog().pending_calls().get(who, id).await.map_err(|error| match error.code() {
                "pending_call_not_found" => ContinueError::from(BadRequest::new(
                    "unknown_call",
                    "input",
                    format!("no call waits for a decision on `{id}`"),
                )),
                _ => error.into(),
            })?;
            decided.push(Decided { at, call, decision });
        }
        Ok(decided)
    }

    /// The decisions, and those that were not made on the other calls of the run that is continued.
    async fn resumed(&self, who: &Principal, base: Option<Uuid>, live: Vec<Decided>) -> Result<Vec<ResumedCall>> {
        let mut resumed: Vec<ResumedCall> = live
            .into_iter()
            .map(|Decided { call, decision, .. }| ResumedCall { call, decision, stored: true })
            .collect();
        let Some(run_id) = base else { return Ok(resumed) };
        for call in self.catalog().pending_calls().of_run(who, run_id).await? {
            let is_decided = resumed.iter().any(|resumed| resumed.call.call_id == call.call_id);
            if call.state == PendingState::Waiting && !is_decided {
                resumed.push(ResumedCall { call, decision: Decision::Abandoned, stored: true });
            }
        }
        Ok(resumed)
    }

    /// What the client added to a conversation by itself since its last run.
    async fn added_items(
        &self,
        who: &Principal,
        key: &ConversationKey,
        last_run: Option<Uuid>,
    ) -> Result<Vec<InputItem>> {
        let scope = ItemScope::Conversation(key.clone());
        let items = self.catalog().items().list(who, &scope, None, MAX_ADDED_ITEMS, true).await?;
        let since = match last_run {
            Some(run_id) => Some(self.catalog().runs().get(who, run_id).await?.started_at),
            None => None,
        };
        let added = items
            .items
            .into_iter()
            .filter(|item| item.role == ItemRole::Added && since.is_none_or(|since| item.created_at > since));
        let values: Vec<Value> = added.filter_map(|item| serde_json::from_str(&item.item_json).ok()).collect();
        parse_items(&Value::Array(values)).map_err(|error| AgentError::Internal(error.message))
    }

    /// The stored files that the items name.
    async fn files_of(
        &self,
        who: &Principal,
        items: &[InputItem],
    ) -> std::result::Result<HashMap<String, StoredFile>, ContinueError> {
        let mut files = HashMap::new();
        for item in items {
            let InputItem::Message { content, .. } = item else { continue };
            for part in content {
                let Content::FileId(file_id) = part else { continue };
                let unknown = || {
                    BadRequest::new("file_not_found", "input", format!("file with id `{file_id}` not found"))
                        .with_status(404)
                };
                let file = self.catalog().files().get(who, file_id).await.map_err(|_| unknown())?;
                let data = self.catalog().files().content(who, file_id).await.map_err(|_| unknown())?;
                let stored = StoredFile { filename: file.filename, media_type: file.media_type, data: Arc::from(data) };
                files.insert(file_id.clone(), stored);
            }
        }
        Ok(files)
    }
}

/// A file of the store.
struct StoredFile {
    filename: String,
    media_type: String,
    data: Arc<[u8]>,
}

/// Items as the model is told of them.
struct Messages {
    said: Vec<ChatMessage>,
    instructions: Vec<String>,
}

fn messages(items: &[InputItem], files: &HashMap<String, StoredFile>) -> std::result::Result<Messages, ContinueError> {
    let mut told = Messages { said: Vec::new(), instructions: Vec::new() };
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
                told.instructions.push(message(ChatRole::System, content, files)?.content);
            }
            InputItem::Message { role, content } => told.said.push(message(*role, content, files)?),
            InputItem::FunctionCall { call_id, name, arguments } => {
                names.insert(call_id, name);
                told.call(call_id, name, arguments);
            }
            InputItem::FunctionCallOutput { call_id, output } => {
                if let Some(name) = names.get(call_id.as_str()) {
                    told.said.push(ChatMessage::tool_result(name, Some(call_id.clone()), output.as_str()));
                }
            }
            InputItem::McpCall { id, name, arguments, output, .. } => {
                told.call(id, name, arguments);
                told.said.push(ChatMessage::tool_result(name, Some(id.clone()), output.as_str()));
            }
            InputItem::ApprovalRequest { id, name, arguments } => {
                approvals.insert(id, (name, arguments));
            }
            InputItem::ApprovalResponse { request_id, approve, .. } => {
                // What was executed is told with its result.
                if let Some((name, arguments)) = approvals.get(request_id.as_str())
                    && !executed.contains(&request_id.as_str())
                {
                    told.call(request_id, name, arguments);
                    let outcome = if *approve { "approved; its result is not known" } else { "denied by the user" };
                    told.said.push(ChatMessage::tool_result(name, Some(request_id.clone()), outcome));
                }
            }
            InputItem::Reference { .. } | InputItem::Ignored => {}
        }
    }
    Ok(told)
}

impl Messages {
    /// Calls that follow each other are one message's: their results come after all of them.
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
    content: &[Content],
    files: &HashMap<String, StoredFile>,
) -> std::result::Result<ChatMessage, ContinueError> {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for part in content {
        match part {
            Content::Text(text) => texts.push(text.clone()),
            Content::Image(image) => images.push(image.clone()),
            Content::ImageUrl(url) => texts.push(format!("[Image at {url}; it was not fetched]")),
            Content::FileUrl(url) => texts.push(format!("[File at {url}; it was not fetched]")),
            Content::File { filename, media_type, data } => {
                texts.push(attachments::as_text(filename, media_type.as_deref(), data)?);
            }
            Content::FileId(file_id) => {
                let Some(file) = files.get(file_id) else { continue };
                if file.media_type.starts_with("image/") {
                    images.push(crate::models::ChatImage::of(&file.media_type, &file.data));
                } else {
                    texts.push(attachments::as_text(&file.filename, Some(&file.media_type), &file.data)?);
                }
            }
        }
    }
    Ok(ChatMessage { images, ..ChatMessage::text(role, texts.join("\n\n")) })
}

/// The items without these decisions and the requests that they answer.
fn without_decisions(items: &[InputItem], decided: &[Decided]) -> Vec<InputItem> {
    let is_decided = |id: &str| decided.iter().any(|decided| decided.call.call_id == id);
    let rest = items.iter().filter(|item| match item {
        InputItem::ApprovalRequest { id, .. } => !is_decided(id),
        InputItem::ApprovalResponse { request_id, .. } => !is_decided(request_id),
        _ => true,
    });
    rest.cloned().collect()
}

/// The history ends with the calls that are decided now, also where their run was not stored.
fn tell_calls(history: &mut Vec<ChatMessage>, resume: &[ResumedCall]) {
    let is_told =
        |call: &ModelToolCall| history.iter().flat_map(|message| &message.tool_calls).any(|told| told.id == call.id);
    let untold: Vec<ModelToolCall> = resume.iter().map(ResumedCall::model_call).filter(|call| !is_told(call)).collect();
    if !untold.is_empty() {
        history.push(ChatMessage::assistant("", untold));
    }
}

/// Some clients send the question again beside the decision on a call that it led to. It is not asked twice.
fn repeats_question(request: &RunRequest) -> bool {
    let asked = request.history.iter().rfind(|message| message.role == ChatRole::User);
    let first = request.input.first();
    asked.zip(first).is_some_and(|(asked, first)| asked.content.trim() == first.content.trim())
}

fn is_asked(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::User, .. })
}

fn is_instruction(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::System, .. })
}

/// Whether an item says something new after a decision.
fn is_new(item: &InputItem) -> bool {
    is_asked(item) || matches!(item, InputItem::McpCall { .. })
}

/// The run that a decision began.
fn run_after(call: &PendingCall) -> Option<Uuid> {
    let decision: Value = serde_json::from_str(call.decision_json.as_deref()?).ok()?;
    Uuid::try_parse(decision["run_id"].as_str()?).ok()
}

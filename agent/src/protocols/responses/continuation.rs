//! From items to a run: combines the items that a client sends, what the catalog stores of the conversation, and the
//! calls that wait for a decision into one request.
//!
//! A decision is looked up by its own id, since clients resume in three ways: in a conversation, after a response, or
//! with the whole history sent again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use querent_catalog::{
    Catalog, CatalogError, ConversationKey, ItemRecord, ItemRole, ItemScope, PendingState, Principal, RunRecord,
    RunStatus,
};
use serde_json::Value;
use uuid::Uuid;

use super::call_outputs::{check_client_outputs, check_outputs};
use super::decisions::{Decided, DecidedCall, called_ids, decided_id};
use super::item_messages::{Messages, StoredFile, messages, named_files};
use super::removal::{take_out, take_out_result};
use super::{
    BadRequest, InputContent, InputItem, input_items, output_items, parse_items, run_of_item, run_of_response,
};
use crate::conversation::{continue_conversation, delete_created, events_of, messages_of};
use crate::error::{AgentError, Result};
use crate::models::{ChatMessage, ChatRole, ModelToolCall};
use crate::request::{Protocol, ResumedCall, RunRequest};

/// Items of a conversation that are read at most, the newest: those that the client itself added or took out.
const MAX_ADDED_ITEMS: usize = 10_000;

/// The run that a request leads to.
pub enum Continued {
    /// A new one.
    Start(Box<RunRequest>),
    /// The one that the same decision began before.
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

/// Completes `request`, which has everything but its messages, with `items` and with what they continue.
pub(crate) async fn continue_run(
    catalog: &Catalog,
    who: &Principal,
    mut request: RunRequest,
    items: Vec<InputItem>,
    conversation: Option<ConversationKey>,
    previous_response_id: Option<&str>,
) -> std::result::Result<Continued, ContinueError> {
    let continuation = Continuation { catalog, who };
    match continuation.complete(&mut request, items, conversation.clone(), previous_response_id).await {
        Ok(None) => Ok(Continued::Start(Box::new(request))),
        Ok(Some(run_id)) => Ok(Continued::Replay(run_id)),
        Err(error) => {
            if let Some(key) = conversation.filter(|_| request.creates_conversation) {
                delete_created(catalog, who, &key).await;
            }
            Err(error)
        }
    }
}

/// Lets `request`, which asks something, continue a conversation, with the items that its clients have added since its last
/// run. Calls that still wait are not executed any more.
pub(crate) async fn join_conversation(
    catalog: &Catalog,
    who: &Principal,
    request: &mut RunRequest,
    key: ConversationKey,
) -> Result<()> {
    let joined = Continuation { catalog, who }.ask_in(request, key.clone()).await;
    let Err(error) = joined else { return Ok(()) };
    if request.creates_conversation {
        delete_created(catalog, who, &key).await;
    }
    Err(match error {
        ContinueError::Agent(error) => error,
        ContinueError::Request(error) => AgentError::InvalidRequest { message: error.message },
    })
}

/// Reads the store as the caller.
pub(super) struct Continuation<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) who: &'a Principal,
}

impl Continuation<'_> {
    /// Returns the run that the same decision began before, if one did; otherwise `request` is complete.
    async fn complete(
        &self,
        request: &mut RunRequest,
        items: Vec<InputItem>,
        conversation: Option<ConversationKey>,
        previous_response_id: Option<&str>,
    ) -> std::result::Result<Option<Uuid>, ContinueError> {
        let mut items = self.resolve_references(items).await?;
        match request.protocol {
            Protocol::Responses | Protocol::Chat | Protocol::Messages => check_outputs(&items)?,
            // The history has the server's own calls too; a run that broke off leaves some without a result.
            Protocol::AgUi => check_client_outputs(&items, &request.client_tools)?,
            // Elsewhere the store knows the calls.
            _ => {}
        }
        if let Some(key) = &conversation {
            let decisions = self.added_decisions(key, &items).await?;
            items.splice(..0, decisions);
        }
        let says_nothing = request.protocol == Protocol::Responses && items.is_empty();
        let previous = match previous_response_id {
            Some(response_id) => Some(self.run_of_previous(response_id).await?),
            None => None,
        };
        if let (Some(previous), Some(key), Some(response_id)) = (&previous, &conversation, previous_response_id)
            && previous.conversation.as_ref() != Some(key)
        {
            let message = format!("response `{response_id}` is not of the session `{}`; name its own, or none", key.id);
            return Err(BadRequest::invalid("previous_response_id", message).into());
        }
        let decided = self.decided_calls(request.protocol, &items, conversation.as_ref()).await?;
        let resumed = match self.sort(decided, &items, previous.as_ref(), conversation.as_ref()).await? {
            Decided::Replay(run_id) => return Ok(Some(run_id)),
            Decided::Resume(resumed) => self.with_outputs_sent_along(resumed, &items).await?,
        };
        if let (Some(previous), Some(first)) = (&previous, resumed.first()) {
            let made_by = first.call.run_id;
            // After a decision whose run failed, that run may be named.
            if previous.run_id != made_by && previous.previous_run_id != Some(made_by) {
                let message = format!(
                    "the call of `{}` was made by another response than `previous_response_id`; name that one, or none",
                    first.call.call_id
                );
                return Err(BadRequest::new("unknown_call", "input", message).into());
            }
        }
        let names_conversation = conversation.is_some();
        let names_base = names_conversation || previous.is_some();
        let last_decided = resumed.iter().map(|decided| decided.at).max();
        let (question_items, earlier) = match last_decided {
            // The history before a decision comes from the store; its instructions come from the client.
            Some(last) if !names_base => {
                let (earlier, new) = items.split_at((last + 1).min(items.len()));
                let instructions = earlier.iter().filter(|item| is_instruction(item));
                (instructions.chain(new).cloned().collect(), without_decisions(earlier, &resumed))
            }
            _ => (items, Vec::new()),
        };
        let base = match resumed.first() {
            Some(first) => {
                let run_id = first.call.run_id;
                if resumed.iter().any(|decided| decided.call.run_id != run_id) {
                    let message = "these decisions are on calls of different responses; send them apart";
                    return Err(BadRequest::invalid("input", message).into());
                }
                Some(self.catalog.runs().get(self.who, run_id).await?)
            }
            None => previous,
        };
        let mut joined = JoinedConversation::default();
        match (&base, conversation) {
            (base, Some(key)) => {
                joined = self.join(request, key, base.as_ref(), asked_text(&question_items)).await?;
            }
            (Some(base), None) => {
                request.go_on_from(messages_of(base)?);
                if request.history.is_empty() {
                    // A run that was not to be stored: the client has its history.
                    request.history = messages(&earlier, &self.stored_files(&earlier).await?).await?.said;
                }
                request.previous_run_id = Some(base.run_id);
                request.conversation = base.conversation.clone();
            }
            (None, None) => {}
        }
        let JoinedConversation { mut added, deleted_calls } = joined;
        request.resume = self.resumed_calls(request.previous_run_id, resumed, &deleted_calls).await?;
        add_missing_calls(&mut request.history, &request.resume);
        if request.resume.is_empty() && !says_nothing {
            request.history.append(&mut added);
        }
        let said_before =
            question_items.iter().take(last_decided.unwrap_or_default()).filter(|item| is_question(item)).count();
        let files = self.stored_files(&question_items).await?;
        let Messages { said, instructions } = messages(&question_items, &files).await?;
        if request.protocol == Protocol::Responses {
            // Clients of the others send their instructions each time.
            instructions.into_iter().for_each(|text| request.add_standing_instructions(text));
        } else if !instructions.is_empty() {
            let given = request.instructions.take().into_iter().chain(instructions);
            request.instructions = Some(given.collect::<Vec<_>>().join("\n\n"));
        }
        let mut said = said;
        if says_nothing {
            if added.iter().all(|message| message.role != ChatRole::User) {
                let message = "`input` is missing, and nothing was asked in the conversation since its last response";
                return Err(BadRequest::new("missing_required_parameter", "input", message).into());
            }
            said = std::mem::take(&mut added);
        }
        if request.protocol == Protocol::Chat && names_conversation {
            leave_out_repeated(&request.history, &mut said);
        }
        // New is what follows the last message that is not the asker's.
        let new_from = said.iter().rposition(|message| message.role != ChatRole::User).map_or(0, |last| last + 1);
        request.input = said.split_off(new_from);
        if names_base && said_before > 0 && repeats_question(request) {
            request.input.remove(0);
        }
        // What was added behind calls follows their results.
        request.input.splice(..0, added);
        request.history.extend(said);
        Ok(None)
    }

    async fn ask_in(&self, request: &mut RunRequest, key: ConversationKey) -> std::result::Result<(), ContinueError> {
        let question = request.question();
        let JoinedConversation { added, deleted_calls } = self.join(request, key, None, &question).await?;
        request.resume = self.resumed_calls(request.previous_run_id, Vec::new(), &deleted_calls).await?;
        add_missing_calls(&mut request.history, &request.resume);
        match request.resume.is_empty() {
            true => request.history.extend(added),
            // What was added behind calls follows their results.
            false => drop(request.input.splice(..0, added)),
        }
        Ok(())
    }

    /// Lets the run continue a conversation, from `base`, where that is a run of the conversation, else from its last one.
    /// Returns what the client itself has changed in it since.
    async fn join(
        &self,
        request: &mut RunRequest,
        key: ConversationKey,
        base: Option<&RunRecord>,
        question: &str,
    ) -> std::result::Result<JoinedConversation, ContinueError> {
        continue_conversation(self.catalog, self.who, request, key.clone(), question).await?;
        if let Some(base) = base.filter(|base| base.conversation.as_ref() == Some(&key)) {
            request.go_on_from(messages_of(base)?);
            request.previous_run_id = Some(base.run_id);
        }
        let since = match request.previous_run_id {
            Some(run_id) => Some(self.catalog.runs().get(self.who, run_id).await?.started_at),
            None => None,
        };
        let ChangedItems { added, removed } = self.changed_items(&key, since).await?;
        let removed_calls = called_ids(&removed);
        for removed_item in &removed {
            if let InputItem::FunctionCallOutput { call_id, output } = removed_item {
                // With its call it is gone already.
                if !removed_calls.contains(call_id.as_str()) {
                    take_out_result(&mut request.history, call_id, output);
                }
                continue;
            }
            if let InputItem::ApprovalRequest { id, name, arguments } = removed_item {
                if !self.was_approved(id).await? {
                    let arguments = serde_json::from_str(arguments).unwrap_or_default();
                    let call = ModelToolCall { id: Some(id.clone()), name: name.clone(), arguments };
                    take_out(&mut request.history, &[ChatMessage::assistant("", vec![call])]);
                }
                continue;
            }
            let item = std::slice::from_ref(removed_item);
            let gone = match messages(item, &self.remaining_files(item).await?).await {
                Ok(gone) => gone,
                // Its file cannot be read, which may be why it was taken out.
                Err(ContinueError::Request(_) | ContinueError::Agent(AgentError::InvalidRequest { .. })) => continue,
                Err(error) => return Err(error),
            };
            take_out(&mut request.history, &gone.said);
            request.standing_instructions.retain(|known| !gone.instructions.contains(known));
        }
        let added = messages(&added, &self.remaining_files(&added).await?).await?;
        added.instructions.into_iter().for_each(|text| request.add_standing_instructions(text));
        let deleted_calls = removed.iter().filter_map(asking_id).map(str::to_owned).collect();
        Ok(JoinedConversation { added: added.said, deleted_calls })
    }

    /// Whether a call was approved, or nobody knows of it any more: then it stands in the history as it was made.
    async fn was_approved(&self, call_id: &str) -> Result<bool> {
        match self.catalog.pending_calls().get(self.who, call_id).await {
            Ok(call) => Ok(call.state == PendingState::Approved),
            Err(CatalogError::PendingCallNotFound { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the decisions that the client has added to a conversation on calls of its last run that still wait, but for
    /// those that the request itself decides.
    async fn added_decisions(
        &self,
        key: &ConversationKey,
        sent: &[InputItem],
    ) -> std::result::Result<Vec<InputItem>, ContinueError> {
        let last = self.catalog.runs().last_of_conversation(self.who, key).await?;
        // One that failed, or was interrupted, behind its calls has calls that wait, too.
        let may_wait = |last: &RunRecord| !matches!(last.status, RunStatus::Running | RunStatus::Success);
        let Some(last) = last.filter(may_wait) else { return Ok(Vec::new()) };
        let calls = self.catalog.pending_calls().of_run(self.who, last.run_id).await?;
        let is_waiting = |id: &str| calls.iter().any(|call| call.call_id == id && call.state == PendingState::Waiting);
        let sent_ids: HashSet<&str> = sent.iter().filter_map(decided_id).collect();
        let mut added = self.changed_items(key, Some(last.started_at)).await?.added;
        added.retain(|item| decided_id(item).is_some_and(|id| is_waiting(id) && !sent_ids.contains(id)));
        Ok(added)
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
            // Administrators may look on.
            Ok(run) if run.retained && run.subject == self.who.subject() => run,
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
        let mut logs: HashMap<Uuid, HashMap<String, Value>> = HashMap::new();
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
                        // Of a response that was deleted, its conversation still has the items.
                        let log = run.ok().filter(RunRecord::keeps_log).map(|run| events_of(&run)).transpose()?;
                        let log = log.unwrap_or_default();
                        let of_run = input_items(&log).into_iter().chain(output_items(&log));
                        let named = of_run.filter_map(|item| Some((item["id"].as_str()?.to_owned(), item)));
                        entry.insert(named.collect());
                    }
                    logs.get(&run_id).and_then(|items| items.get(&id).cloned())
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

    /// Returns the items that the client itself added to a conversation, and took out of it, since its last run.
    async fn changed_items(&self, key: &ConversationKey, since: Option<DateTime<Utc>>) -> Result<ChangedItems> {
        let scope = ItemScope::Conversation(key.clone());
        let newest_first = self.catalog.items().list(self.who, &scope, None, MAX_ADDED_ITEMS, false).await?;
        let mut changed = ChangedItems::default();
        let is_later = |item: &ItemRecord| since.is_none_or(|since| item.created_at > since);
        for item in newest_first.items.into_iter().rev().filter(is_later) {
            let of_role = match item.role {
                ItemRole::Added => &mut changed.added,
                ItemRole::Removed => &mut changed.removed,
                ItemRole::Input | ItemRole::Output => continue,
            };
            let value: Value = serde_json::from_str(&item.item_json).unwrap_or_default();
            // One of a type that is not read is no reason to read none.
            of_role.extend(parse_items(&Value::Array(vec![value])).into_iter().flatten());
        }
        Ok(changed)
    }

    /// Reads the stored files that the items name. Errors: `file_not_found`.
    async fn stored_files(
        &self,
        items: &[InputItem],
    ) -> std::result::Result<HashMap<String, StoredFile>, ContinueError> {
        let mut files = HashMap::new();
        for file_id in named_files(items) {
            let unknown = || {
                BadRequest::new("file_not_found", "input", format!("file with id `{file_id}` not found"))
                    .with_status(404)
            };
            files.insert(file_id.to_owned(), self.stored_file(file_id).await?.ok_or_else(unknown)?);
        }
        Ok(files)
    }

    /// Reads those of the stored files that the items name which are still there.
    async fn remaining_files(&self, items: &[InputItem]) -> Result<HashMap<String, StoredFile>> {
        let mut files = HashMap::new();
        for file_id in named_files(items) {
            if let Some(file) = self.stored_file(file_id).await? {
                files.insert(file_id.to_owned(), file);
            }
        }
        Ok(files)
    }

    async fn stored_file(&self, file_id: &str) -> Result<Option<StoredFile>> {
        let file = match self.catalog.files().get(self.who, file_id).await {
            Ok(file) => file,
            Err(CatalogError::FileNotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let data = match self.catalog.files().content(self.who, file_id).await {
            Ok(data) => data,
            Err(CatalogError::FileNotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(StoredFile { filename: file.filename, media_type: file.media_type, data: Arc::from(data) }))
    }
}

/// What a client itself changed in a conversation that a run continues.
#[derive(Default)]
struct JoinedConversation {
    /// What it added, as messages.
    added: Vec<ChatMessage>,
    /// The ids of calls and of requests for approval that it deleted.
    deleted_calls: Vec<String>,
}

/// What a client itself changed in a conversation.
#[derive(Default)]
struct ChangedItems {
    added: Vec<InputItem>,
    removed: Vec<InputItem>,
}

/// Returns the items without these decisions and the requests that they answer.
fn without_decisions(items: &[InputItem], decided: &[DecidedCall]) -> Vec<InputItem> {
    let is_decided = |id: &str| decided.iter().any(|decided| decided.call.call_id == id);
    let rest = items.iter().filter(|item| match item {
        InputItem::FunctionCall { call_id, .. } => !is_decided(call_id),
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

/// Leaves out what a client says again that sends the whole conversation each time: all up to the last message that is
/// not the asker's, if the asker's messages in it are the latest of the history.
fn leave_out_repeated(history: &[ChatMessage], said: &mut Vec<ChatMessage>) {
    let asked = |messages: &[ChatMessage]| -> Vec<String> {
        let asked = messages.iter().filter(|message| message.role == ChatRole::User);
        asked.map(|message| message.content.trim().to_owned()).collect()
    };
    let new_from = said.iter().rposition(|message| message.role != ChatRole::User).map_or(0, |last| last + 1);
    let repeated = asked(said.get(..new_from).unwrap_or_default());
    if !repeated.is_empty() && asked(history).ends_with(&repeated) {
        said.drain(..new_from);
    }
}

/// Whether the input begins with the last question. Some clients send the question again beside the decision on a call
/// that it led to; it is not asked twice.
fn repeats_question(request: &RunRequest) -> bool {
    let asked = request.history.iter().rfind(|message| message.role == ChatRole::User);
    let first = request.input.first();
    asked.zip(first).is_some_and(|(asked, first)| asked.content.trim() == first.content.trim())
}

/// Returns the first words of the newest message of the asker.
fn asked_text(items: &[InputItem]) -> &str {
    let asked = items.iter().rev().find_map(|item| match item {
        InputItem::Message { role: ChatRole::User, content } => Some(content),
        _ => None,
    });
    let text = asked.into_iter().flatten().find_map(|part| match part {
        InputContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    text.unwrap_or_default()
}

/// Returns the id of the call whose outcome an item asks for.
fn asking_id(item: &InputItem) -> Option<&str> {
    match item {
        InputItem::FunctionCall { call_id, .. } => Some(call_id.as_str()),
        InputItem::ApprovalRequest { id, .. } => Some(id.as_str()),
        _ => None,
    }
}

fn is_question(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::User, .. })
}

fn is_instruction(item: &InputItem) -> bool {
    matches!(item, InputItem::Message { role: ChatRole::System, .. })
}

/// Whether an item says something new after a decision.
pub(super) fn is_new(item: &InputItem) -> bool {
    is_question(item) || matches!(item, InputItem::McpCall { .. })
}

//! What a run is asked to do, whichever protocol asks; each protocol's parser creates a [`RunRequest`].

use std::collections::HashMap;
use std::time::Duration;

use querent_catalog::{ConversationKey, PendingCall};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::history::calls_cost;
use crate::models::{ChatMessage, ChatRole, ModelToolCall, Sampling, ToolChoice, ToolSpec};
use crate::prompt::PromptSections;
use crate::tokens::{estimate_tokens, take_tokens};

/// One question of the ask protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    /// Trimmed, not empty.
    pub question: String,
    /// Where bare names resolve, and whose tables the prompt describes; `None`: all tables, and `default` for bare
    /// names.
    pub database: Option<String>,
    /// Whether to emit thinking.
    pub include_thinking: bool,
    /// The session it continues or begins.
    pub session_id: Option<String>,
    /// Whether the client can ask a person to approve a call: then the run pauses, and `Agent::decide` continues it.
    pub approvals: bool,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Ask.
    Ask,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
    /// KsADK's RunAgent.
    KsAdk,
    /// ADK's `/run_sse` and `/run`.
    Adk,
    /// Cube's chat.
    Cube,
    /// HolmesGPT's chat.
    Holmes,
    /// Anthropic's Messages.
    Messages,
    /// AG-UI.
    AgUi,
    /// A2A.
    A2a,
}

impl Protocol {
    /// Returns the name that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Ask => "ask",
            Protocol::Responses => "responses",
            Protocol::Chat => "chat",
            Protocol::KsAdk => "ksadk",
            Protocol::Adk => "adk",
            Protocol::Cube => "cube",
            Protocol::Holmes => "holmes",
            Protocol::Messages => "messages",
            Protocol::AgUi => "ag_ui",
            Protocol::A2a => "a2a",
        }
    }
}

impl Protocol {
    /// Returns the field of its requests that a question is in.
    pub fn question_field(self) -> &'static str {
        match self {
            Protocol::Ask => "question",
            Protocol::Responses | Protocol::Cube | Protocol::KsAdk => "input",
            Protocol::Chat | Protocol::Messages | Protocol::AgUi => "messages",
            Protocol::Adk => "newMessage",
            Protocol::Holmes => "ask",
            Protocol::A2a => "params.message.parts",
        }
    }

    /// Whether it has a field that says that an answer was cut; in others a note in the answer does.
    pub(crate) fn has_cut_mark(self) -> bool {
        match self {
            Protocol::Responses | Protocol::Chat | Protocol::Messages | Protocol::AgUi | Protocol::A2a => true,
            Protocol::Ask | Protocol::KsAdk | Protocol::Adk | Protocol::Cube | Protocol::Holmes => false,
        }
    }
}

/// A question longer than this is a document. Every protocol has this limit.
pub const MAX_QUESTION_BYTES: usize = 256 * 1024;

/// Earlier questions by which the tables of a follow-up are looked up: until they have so many words, and at most so many,
/// each of so many tokens.
const EARLIER_WORDS: usize = 12;
const EARLIER_QUESTIONS: usize = 6;
const EARLIER_TOKENS: usize = 200;

/// Bytes of the instructions of a conversation, of which the oldest are left out.
const MAX_STANDING_BYTES: usize = 64 * 1024;

/// Tokens that a picture of usual size takes.
const PICTURE_TOKENS: usize = 765;

/// What happens to a run whose client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is cancelled, with its model call and query.
    Cancel,
    /// It is cancelled unless a client follows it again within this time, as `Agent::follow` does.
    CancelAfter(Duration),
    /// It continues to its end, within its budget.
    KeepRunning,
}

/// An answer that must be JSON of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// The caller's name for it.
    pub name: String,
    /// JSON schema; `{}` is any JSON.
    pub schema: Value,
}

/// What the model is told of a call of the client's that the user gave up.
pub(crate) const NO_RESULT: &str = "The user went on without the result of this call.";

/// A decision on a call that a run waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum CallDecision {
    /// A person approved it.
    Approved {
        /// Why.
        reason: Option<String>,
    },
    /// A person denied it.
    Denied {
        /// Why.
        reason: Option<String>,
    },
    /// The client executed it.
    Output(String),
    /// None: the asker continued with something else.
    Abandoned,
}

/// A call that is decided now.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumedCall {
    /// The call.
    pub call: PendingCall,
    /// The decision.
    pub decision: CallDecision,
    /// Whether the catalog stores the call, so that it is decided once. A call that only the client's history contains
    /// can be answered or refused, never approved.
    pub stored: bool,
}

impl ResumedCall {
    /// Returns the call as the model made it, with the id of the model's own message.
    pub(crate) fn model_call(&self) -> ModelToolCall {
        let stored: Value =
            serde_json::from_str(self.call.decision_json.as_deref().unwrap_or_default()).unwrap_or_default();
        let id = stored["tool_call_id"].as_str().unwrap_or(&self.call.call_id);
        ModelToolCall {
            id: Some(id.to_owned()),
            name: self.call.tool.clone(),
            arguments: serde_json::from_str(&self.call.arguments_json).unwrap_or(Value::Null),
        }
    }
}

/// Everything that a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Who asks.
    pub protocol: Protocol,
    /// Where bare names resolve.
    pub database: Option<String>,
    /// Whether to emit thinking.
    pub include_thinking: bool,
    /// The name of a configured model; any other name means the default model.
    pub model: Option<String>,
    /// Instructions of the application for this run, added to the server's.
    pub instructions: Option<String>,
    /// Instructions of the application that are part of the conversation: they hold for the runs that continue it too.
    pub standing_instructions: Vec<String>,
    /// The sections of the prompt, where the client chooses them; `None`: the usual prompt.
    pub prompt: Option<PromptSections>,
    /// The conversation so far, without instructions.
    pub history: Vec<ChatMessage>,
    /// Calls that the last message of the history waits for, with their decisions.
    pub resume: Vec<ResumedCall>,
    /// Whether it names a branch of the data that does not exist: then every tool call fails.
    pub bad_branch: bool,
    /// The new messages; the last one of the asker is the question.
    pub input: Vec<ChatMessage>,
    /// Tools that the client executes.
    pub client_tools: Vec<ToolSpec>,
    /// Tools among them whose result the client never reports, by name, each with the result that the model reads
    /// instead: the run does not wait for them.
    pub canned_results: HashMap<String, String>,
    /// Whether a tool must be called first.
    pub tool_choice: ToolChoice,
    /// The answer's form.
    pub answer_schema: Option<AnswerSchema>,
    /// Whether the client can ask a person to approve a call.
    pub can_approve: bool,
    /// Tokens of one turn, if fewer than the server's limit.
    pub max_output_tokens: Option<u32>,
    /// How the model chooses tokens, where the client says so.
    pub sampling: Sampling,
    /// Calls of the server's tools, if fewer than the server's limit.
    pub max_tool_calls: Option<u32>,
    /// Whether only the first call of a reply is made.
    pub one_call_a_turn: bool,
    /// Tokens of messages from which on earlier ones are summed up, if fewer than the model's context.
    pub compact_at: Option<usize>,
    /// The server's tools that the model may use, if not all.
    pub server_tools: Option<Vec<String>>,
    /// The conversation it belongs to, which has one run at a time.
    pub conversation: Option<ConversationKey>,
    /// Whether the conversation was created for it, and is deleted where the run does not begin.
    pub creates_conversation: bool,
    /// The run it continues.
    pub previous_run_id: Option<Uuid>,
    /// The caller's own id for the run.
    pub invocation_id: Option<String>,
    /// Whether it may be retrieved and continued.
    pub retained: bool,
    /// Whether the client keeps the conversation: it gets all messages at the end, in which calls have the ids of the
    /// events.
    pub returns_messages: bool,
    /// What happens when its client goes away.
    pub on_disconnect: OnDisconnect,
    /// The run that it begins again, under its id: one that was interrupted, and is stored as failed.
    pub restarts: Option<Uuid>,
    /// What the protocol repeats from its request.
    pub echo: Value,
    /// The items of the request, where the protocol has items.
    pub input_items: Value,
}

impl RunRequest {
    /// Whether the model may use a tool of the server.
    pub(crate) fn may_use(&self, tool: &str) -> bool {
        self.server_tools.as_ref().is_none_or(|names| names.iter().any(|name| name == tool))
    }

    /// Whether the client forced a call of its own tools, which alone may end the run.
    pub(crate) fn forces_client_call(&self) -> bool {
        match &self.tool_choice {
            ToolChoice::Named(name) => self.client_tools.iter().any(|tool| tool.name == *name),
            ToolChoice::Required => !self.client_tools.is_empty(),
            ToolChoice::Auto | ToolChoice::None => false,
        }
    }

    /// Creates a request with `input` and defaults for the rest.
    pub fn new(protocol: Protocol, input: Vec<ChatMessage>) -> Self {
        Self {
            protocol,
            database: None,
            include_thinking: false,
            model: None,
            instructions: None,
            standing_instructions: Vec::new(),
            prompt: None,
            history: Vec::new(),
            resume: Vec::new(),
            bad_branch: false,
            input,
            client_tools: Vec::new(),
            canned_results: HashMap::new(),
            tool_choice: ToolChoice::Auto,
            answer_schema: None,
            can_approve: false,
            max_output_tokens: None,
            sampling: Sampling::default(),
            max_tool_calls: None,
            one_call_a_turn: false,
            compact_at: None,
            server_tools: None,
            conversation: None,
            creates_conversation: false,
            previous_run_id: None,
            invocation_id: None,
            retained: false,
            returns_messages: false,
            on_disconnect: OnDisconnect::Cancel,
            restarts: None,
            echo: Value::Null,
            input_items: Value::Null,
        }
    }

    /// Returns the estimated tokens of what the request says and continues, without the server's own prompt.
    pub fn tokens(&self) -> usize {
        let messages = self.history.iter().chain(&self.input);
        let pictures = messages.clone().map(|message| message.images.len()).sum::<usize>();
        let words = messages.map(|message| estimate_tokens(&message.content) + calls_cost(message)).sum::<usize>();
        let instructions = self.all_instructions().map(estimate_tokens).sum::<usize>();
        let tools = self.client_tools.iter().map(|tool| estimate_tokens(&json!(tool).to_string())).sum::<usize>();
        let outputs = self.resume.iter().map(|resumed| match &resumed.decision {
            CallDecision::Output(output) => estimate_tokens(output),
            CallDecision::Approved { .. } | CallDecision::Denied { .. } | CallDecision::Abandoned => 0,
        });
        words + instructions + tools + outputs.sum::<usize>() + pictures * PICTURE_TOKENS
    }

    /// Returns the application's instructions: those for this run, then those of the conversation.
    pub(crate) fn all_instructions(&self) -> impl Iterator<Item = &str> {
        self.instructions.as_deref().into_iter().chain(self.standing_instructions.iter().map(String::as_str))
    }

    /// Adds instructions to the conversation's. The same ones count as given last.
    pub(crate) fn add_standing_instructions(&mut self, instructions: String) {
        self.standing_instructions.retain(|known| *known != instructions);
        self.standing_instructions.push(instructions);
        while self.standing_instructions.len() > 1
            && self.standing_instructions.iter().map(String::len).sum::<usize>() > MAX_STANDING_BYTES
        {
            self.standing_instructions.remove(0);
        }
    }

    /// Returns the messages that are stored of the run, for one that continues it: the conversation's instructions, then
    /// what was said.
    pub(crate) fn stored_messages<'a>(&self, said: impl IntoIterator<Item = &'a ChatMessage>) -> Vec<ChatMessage> {
        let standing = self.standing_instructions.iter().map(|text| ChatMessage::text(ChatRole::System, text.as_str()));
        standing.chain(said.into_iter().cloned()).collect()
    }

    /// Returns the conversation that was created for it, if one was.
    pub(crate) fn created_conversation(&self) -> Option<&ConversationKey> {
        self.conversation.as_ref().filter(|_| self.creates_conversation)
    }

    /// Goes on from the messages that are stored of a run.
    pub(crate) fn go_on_from(&mut self, stored: Vec<ChatMessage>) {
        let (standing, said): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|message| message.role == ChatRole::System);
        self.standing_instructions = standing.into_iter().map(|message| message.content).collect();
        self.history = said;
    }

    /// Whether the question stands alone and its tables may be in any database.
    pub(crate) fn is_open(&self) -> bool {
        self.database.is_none() && self.history.is_empty() && self.client_tools.is_empty()
    }

    /// Returns the question: the last message of the asker in the input, or in the history where the input has none.
    pub(crate) fn question(&self) -> String {
        let said = |messages: &[ChatMessage]| {
            messages
                .iter()
                .rev()
                .find(|message| message.role == ChatRole::User)
                .map(|message| message.content.trim().to_owned())
        };
        said(&self.input).or_else(|| said(&self.history)).unwrap_or_default()
    }

    /// Returns what the asker said before the question, as far back as it takes to say what the question is about, the
    /// oldest first; `None` where nothing was said. `And in 2024?` names no table.
    pub(crate) fn earlier_question(&self) -> Option<String> {
        let messages = self.input.iter().rev().chain(self.history.iter().rev());
        let asked = messages.filter(|message| message.role == ChatRole::User).map(|message| message.content.trim());
        let mut earlier: Vec<&str> = Vec::new();
        let mut words = 0;
        for text in asked.skip(1).take(EARLIER_QUESTIONS) {
            words += text.split_whitespace().count();
            earlier.push(take_tokens(text, EARLIER_TOKENS));
            if words >= EARLIER_WORDS {
                break;
            }
        }
        earlier.reverse();
        (words > 0).then(|| earlier.join("\n"))
    }
}

impl From<AskRequest> for RunRequest {
    fn from(ask: AskRequest) -> Self {
        let AskRequest { question, database, include_thinking, session_id: _, approvals } = ask;
        let input = vec![ChatMessage::text(ChatRole::User, question.trim())];
        // What a run that continues a paused one has to know of it.
        let echo = match approvals {
            true => json!({ "database": database, "include_thinking": include_thinking }),
            false => Value::Null,
        };
        // Its events are kept: a client whose stream broke off comes back for the rest.
        Self {
            database,
            include_thinking,
            can_approve: approvals,
            retained: true,
            echo,
            ..Self::new(Protocol::Ask, input)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follow_up_goes_on_from_what_was_asked_before() {
        let said = |role: ChatRole, text: &str| ChatMessage::text(role, text);
        let mut request = RunRequest::new(Protocol::Chat, vec![said(ChatRole::User, "and in 2024?")]);
        assert_eq!(request.earlier_question(), None);
        request.history = vec![
            said(ChatRole::User, "Hello, who are you and what can you do for me here, please, in a few words?"),
            said(ChatRole::Assistant, "I answer questions."),
            said(ChatRole::User, "How many flights did each carrier have in January of 2013?"),
            said(ChatRole::Assistant, "16."),
            said(ChatRole::User, "by month"),
        ];
        let earlier = "How many flights did each carrier have in January of 2013?\nby month";
        assert_eq!(request.earlier_question().as_deref(), Some(earlier));
    }
}

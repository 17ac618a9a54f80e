//! What a run is asked to do, whichever protocol asks.

use std::collections::HashMap;
use std::time::Duration;

use querent_catalog::{ConversationKey, PendingCall};
use serde_json::Value;
use uuid::Uuid;

use crate::models::{ChatMessage, ChatRole, ModelToolCall, ToolChoice, ToolSpec};
use crate::prompt::PromptSections;

/// One question of the ask protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    /// Trimmed, not empty.
    pub question: String,
    /// Where bare names resolve and what the prompt's schema part is taken from; `None`: all, with `default` for bare names.
    pub database: Option<String>,
    /// Whether thinking is emitted.
    pub include_thinking: bool,
    /// The session that it continues or begins.
    pub session_id: Option<String>,
}

/// Which protocol asks.
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
}

impl Protocol {
    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Ask => "ask",
            Protocol::Responses => "responses",
            Protocol::Chat => "chat",
            Protocol::KsAdk => "ksadk",
            Protocol::Adk => "adk",
            Protocol::Cube => "cube",
            Protocol::Holmes => "holmes",
        }
    }
}

/// What becomes of a run whose client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is cancelled, with its model call and query.
    Cancel,
    /// It is cancelled unless a client follows it again within this time: see [`crate::Agent::follow`].
    CancelAfter(Duration),
    /// It goes on to its end, within its budget.
    GoOn,
}

/// An answer that must be JSON of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// The caller's name for it.
    pub name: String,
    /// JSON schema; `{}` is any JSON.
    pub schema: Value,
}

/// What was decided of a call that a run waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// A person said yes.
    Approved {
        /// Why.
        reason: Option<String>,
    },
    /// A person said no.
    Denied {
        /// Why.
        reason: Option<String>,
    },
    /// The client executed it.
    Output(String),
    /// Nothing: the asker went on with something else.
    Abandoned,
}

/// A call that is decided now.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumedCall {
    /// The call.
    pub call: PendingCall,
    /// What of it.
    pub decision: Decision,
    /// Whether the server knows of the call, so that it is decided once. One that only the client's history has can be
    /// answered or refused, never approved.
    pub stored: bool,
}

impl ResumedCall {
    /// The call as the model made it: its id is the one in the model's own message.
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

/// All that a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Who asks.
    pub protocol: Protocol,
    /// Where bare names resolve.
    pub database: Option<String>,
    /// Whether thinking is emitted.
    pub include_thinking: bool,
    /// A configured model's name; any other means the default model.
    pub model: Option<String>,
    /// The application's instructions, added to ours.
    pub instructions: Option<String>,
    /// The parts that the prompt has, where the client chooses them; `None`: as it always is.
    pub prompt: Option<PromptSections>,
    /// The conversation so far, without instructions.
    pub history: Vec<ChatMessage>,
    /// Calls that the history's last message waits for, with what was decided.
    pub resume: Vec<ResumedCall>,
    /// Whether it asks about a branch of the data that there is not: then every call of a tool fails.
    pub bad_branch: bool,
    /// The new messages; the last one of the asker's is the question.
    pub input: Vec<ChatMessage>,
    /// Tools that the client executes.
    pub client_tools: Vec<ToolSpec>,
    /// Those among them that the client executes without telling how it went, by name, each with what the model is told:
    /// the run does not wait for them.
    pub canned_results: HashMap<String, String>,
    /// Whether a tool must be called first.
    pub tool_choice: ToolChoice,
    /// The answer's form.
    pub answer_schema: Option<AnswerSchema>,
    /// Whether the client can ask a person to approve a call.
    pub can_approve: bool,
    /// Tokens of one turn, if fewer than ours.
    pub max_output_tokens: Option<u32>,
    /// The conversation that it belongs to. One run at a time.
    pub conversation: Option<ConversationKey>,
    /// The run that it continues.
    pub previous_run_id: Option<Uuid>,
    /// The caller's own id for the run.
    pub invocation_id: Option<String>,
    /// Whether it may be retrieved and continued.
    pub retained: bool,
    /// Whether the client keeps the conversation: it gets all messages at the end, in which a call has the id that the
    /// events name.
    pub returns_messages: bool,
    /// What becomes of it without its client.
    pub on_disconnect: OnDisconnect,
    /// What the protocol repeats from its request.
    pub echo: Value,
    /// The items that it was asked with, where the protocol has items.
    pub input_items: Value,
}

impl RunRequest {
    /// A question and nothing else.
    pub fn new(protocol: Protocol, input: Vec<ChatMessage>) -> Self {
        Self {
            protocol,
            database: None,
            include_thinking: false,
            model: None,
            instructions: None,
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
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            retained: false,
            returns_messages: false,
            on_disconnect: OnDisconnect::Cancel,
            echo: Value::Null,
            input_items: Value::Null,
        }
    }

    /// What is asked: the last that the asker said; what the history was about where nothing new is said.
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
}

impl From<AskRequest> for RunRequest {
    fn from(ask: AskRequest) -> Self {
        let AskRequest { question, database, include_thinking, session_id: _ } = ask;
        let input = vec![ChatMessage::text(ChatRole::User, question.trim())];
        Self { database, include_thinking, ..Self::new(Protocol::Ask, input) }
    }
}

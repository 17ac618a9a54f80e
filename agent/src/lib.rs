//! Answers a question: a run of a language model over the engine's tools, as a stream of events.
//!
//! The agent is read-only whoever asks, and a run never has more rights than its caller. [`RunEvent`] is the only thing
//! that a run emits; each protocol is a pure fold from events to frames. See `ARCHITECTURE.md` at the root of the
//! repository.
//!
//! The rooms, bottom up; each imports only from the floors below its own:
//!
//! | floor | room | what is in it |
//! |---|---|---|
//! | 1 | `error` | the errors, each with a stable code |
//! | 1 | `confidence` | how far an answer is to be trusted, in words and, where it was fitted, as a figure |
//! | 1 | `prompt_form` | what of the first prompt can be left out, to measure what it is worth |
//! | 1 | `config` | settings and their defaults |
//! | 1 | [`telemetry`] | the spans of runs, turns and tools' calls |
//! | 1 | `tokens` | how many tokens a text costs, estimated |
//! | 1 | `sql_text` | names and types as SQL text |
//! | 1 | `half_characters` | characters that JSON says one half of |
//! | 1 | `chart` | a Vega-Lite specification for a result that is worth plotting |
//! | 1 | `budget` | how many tools a run may call, and when it repeats itself |
//! | 2 | `models` | language models behind one trait, and how each of them calls tools |
//! | 2 | `attachments` | files that come with a message, as text |
//! | 3 | `history` | the messages of a run, kept within the model's context |
//! | 3 | `prompt` | the first turn's messages: rules, tables, examples, taught queries |
//! | 3 | `template` | verified queries with the values of another question |
//! | 4 | `assessment` | what an answer rests on, and how far it is to be trusted |
//! | 4 | `event` | what a run emits |
//! | 4 | `repair` | queries that fail, put right on their syntax tree without a model |
//! | 4 | `request` | what a run is asked to do, whichever protocol asks |
//! | 5 | `coverage` | which words of a question nothing in the data speaks of |
//! | 5 | `counter_checks` | what can make a query's rows other than what was asked |
//! | 5 | `event_log` | a run's events and their readers |
//! | 5 | `stored_log` | a run's events as they are stored |
//! | 5 | `results` | rows of queries, kept for those who hold their tickets |
//! | 5 | `run_watcher` | who counts runs |
//! | 5 | `answer` | answers held to a JSON schema |
//! | 5 | `conversation` | conversations and runs as the catalog stores them |
//! | 5 | `tools` | the functions that a model can call, one file each |
//! | 6 | `protocols` | a request parser and a renderer for each protocol |
//! | 7 | `toolbox` | the tools for callers that bring a model of their own |
//! | 7 | `feedback` | what people say of runs, and what that proposes |
//! | 7 | `run` | one run, from its first event to its last |
//! | 8 | `agent` | starts, follows and stops runs |

mod agent;
mod answer;
mod assessment;
mod attachments;
mod budget;
pub mod chart;
mod confidence;
mod config;
mod conversation;
mod counter_checks;
mod coverage;
mod error;
mod event;
mod event_log;
mod feedback;
mod half_characters;
mod history;
pub mod models;
mod prompt;
mod prompt_form;
pub mod protocols;
mod repair;
mod request;
mod results;
mod run;
mod run_watcher;
mod sql_text;
mod stored_log;
pub mod telemetry;
mod template;
mod tokens;
pub mod toolbox;
mod tools;

pub use agent::{Agent, AgentRun};
pub use assessment::{ASSESSMENT, AnswerAssessment, AnswerReading, VerifiedBasis};
pub use confidence::{AnswerThreshold, Confidence, ConfidenceFit, ConfidenceLevel};
pub use config::{AgentConfig, CheckTimes, MAX_TOOL_ROWS, Voting};
pub use conversation::{conversation_title, events_of, messages_of};
pub use error::{AgentError, Result};
pub use event::{
    AnswerFinal, ApprovalResolved, ClientToolResolved, CompactionFinished, ContextTokens, EventKind, LlmCallFinished,
    ResultTicket, RunErrorCode, RunEvent, RunFinished, RunOutcome, RunStarted, SERVER_LABEL, TextPhase,
    ToolCallStarted, ToolResult, ToolStatus, Trigger, Truncation, Usage, WaitingCall, WantedCall,
};
pub use event_log::{EventBatch, LoggedEvent, RunEvents};
pub use feedback::{FeedbackOutcome, FeedbackRequest, give_feedback};
pub use prompt::{PromptSections, SECTION_KEYS};
pub use prompt_form::{JoinForm, PromptForm};
pub use protocols::responses::{ContinueError, Continued};
pub use querent_proof::{CellReference, ProofLink, ProofOrigin};
pub use request::{AnswerSchema, AskRequest, CallDecision, OnDisconnect, Protocol, ResumedCall, RunRequest};
pub use results::{ResultStore, StoredResult, TicketRefusal};
pub use run::{InterruptedRun, InterruptedRuns};
pub use run_watcher::RunWatcher;
pub use sql_text::sql_type;
pub use template::FilledValue;
pub use tokens::estimate_tokens;
pub use tools::{chart_of_batches, known_tool, tool_names};

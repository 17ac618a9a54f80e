//! The agent's errors. Each has a stable snake_case `code()`; those of the engine and the catalog keep theirs. The enum
//! is exhaustive, so that a protocol's mapping to its statuses names every variant.

use querent_catalog::CatalogError;
use querent_engine::EngineError;
use uuid::Uuid;

/// Why a run could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// From the catalog, code kept.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// From the engine, code kept.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The question is empty.
    #[error("question must be non-empty")]
    EmptyQuestion,
    /// The question is longer than any question.
    #[error("`{field}`: the question has {bytes} bytes; at most {limit} are read: send it as a file")]
    QuestionTooLong {
        /// The field of the protocol that it is in.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The protocol does not allow the request.
    #[error("{message}")]
    InvalidRequest {
        /// What is wrong with it.
        message: String,
    },
    /// The server is shutting down.
    #[error("the server is shutting down; ask again when it is back")]
    ShuttingDown,
    /// A run is in progress in the conversation.
    #[error("a run is in progress in conversation `{conversation}`; wait for its end or cancel it")]
    ConversationLocked {
        /// Its id.
        conversation: String,
    },
    /// Another server that shares the catalog has the run in progress.
    #[error(
        "run `{run_id}` is in progress on server `{server}` of this catalog, which was not reached from here; ask again"
    )]
    RunElsewhere {
        /// The run.
        run_id: Uuid,
        /// The server's id.
        server: String,
    },
    /// The call was decided before.
    #[error("`{call_id}` was decided before; what came of it is not done again")]
    AlreadyResumed {
        /// The approval request's or the call's id.
        call_id: String,
    },
    /// The model is not configured, and only configured ones are accepted.
    #[error("there is no model `{model}` here; GET /v1/models lists them")]
    UnknownModel {
        /// The requested name.
        model: String,
    },
    /// The request has a picture, and the model takes none.
    #[error("model `{model}` takes no pictures; send text only, or choose another model")]
    ImagesNotSupported {
        /// The model.
        model: String,
    },
    /// All permits for runs are taken.
    #[error(
        "as many runs are in progress as may, {limit} of all callers or fewer of one, and others wait; try again later"
    )]
    TooManyRuns {
        /// The limit.
        limit: usize,
    },
    /// The caller has as many runs in progress as it may, on all servers that share the catalog.
    #[error("{limit} runs of this caller are in progress on all servers together, as many as may; try again later")]
    TooManyRunsOfCaller {
        /// The limit.
        limit: usize,
    },
    /// The model's server does not answer.
    #[error(
        "cannot reach the model server at {host}: {detail}; start it with `ollama serve` or set QUERENT_AGENT_OLLAMA_HOST"
    )]
    ModelUnreachable {
        /// Its address.
        host: String,
        /// Why.
        detail: String,
    },
    /// The model's server does not have the model.
    #[error(
        "model `{model}` is not on the model server at {host}; get it with `ollama pull {model}` or set QUERENT_AGENT_MODEL"
    )]
    ModelNotFound {
        /// The model.
        model: String,
        /// The server's address.
        host: String,
    },
    /// A provider's server does not answer.
    #[error("cannot reach the model server at {host}: {detail}; check the model's `base_url` and the network")]
    ProviderUnreachable {
        /// Its address.
        host: String,
        /// Why.
        detail: String,
    },
    /// A provider does not have the model.
    #[error("model `{model}` is not at {host} ({detail}); check `model` and `base_url` in [[agent.models]]")]
    ProviderModelNotFound {
        /// The model.
        model: String,
        /// The server's address.
        host: String,
        /// Its answer.
        detail: String,
    },
    /// A provider refuses the key, or there is none.
    #[error("the model server at {host} wants a valid key: {detail}")]
    ModelAuth {
        /// Its address.
        host: String,
        /// Its answer, and where the key comes from.
        detail: String,
    },
    /// A provider limits its callers or is overloaded, also after retries.
    #[error("the model server at {host} is busy or limits its callers: {detail}; try again later")]
    ModelRateLimited {
        /// Its address.
        host: String,
        /// Its answer.
        detail: String,
    },
    /// The model's server failed or sent what it should not.
    #[error("model server: {detail}")]
    ModelFailed {
        /// What failed.
        detail: String,
    },
    /// A bug.
    #[error("internal: {0}")]
    Internal(String),
}

impl AgentError {
    /// The code of [`AgentError::ModelRateLimited`], for readers of stored events.
    pub(crate) const MODEL_RATE_LIMITED: &str = "model_rate_limited";

    /// Returns the stable code, documented in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::Catalog(error) => error.code(),
            AgentError::Engine(error) => error.code(),
            AgentError::EmptyQuestion => "empty_question",
            AgentError::InvalidRequest { .. } | AgentError::QuestionTooLong { .. } => "invalid_request",
            AgentError::ShuttingDown => "shutting_down",
            AgentError::ConversationLocked { .. } => "conversation_locked",
            AgentError::RunElsewhere { .. } => "run_elsewhere",
            AgentError::AlreadyResumed { .. } => "already_resumed",
            AgentError::UnknownModel { .. } => "model_not_found",
            AgentError::ImagesNotSupported { .. } => "images_not_supported",
            AgentError::TooManyRuns { .. } | AgentError::TooManyRunsOfCaller { .. } => "too_many_runs",
            AgentError::ModelUnreachable { .. } | AgentError::ProviderUnreachable { .. } => "model_unreachable",
            AgentError::ModelNotFound { .. } | AgentError::ProviderModelNotFound { .. } => "model_not_found",
            AgentError::ModelAuth { .. } => "model_auth",
            AgentError::ModelRateLimited { .. } => Self::MODEL_RATE_LIMITED,
            AgentError::ModelFailed { .. } => "model_failed",
            AgentError::Internal(_) => "internal",
        }
    }

    /// Returns what is said of it to callers who do not run the server: not where the model's server is, nor what that says of
    /// the server's account.
    pub(crate) fn without_model_server(&self) -> String {
        match self {
            AgentError::ModelUnreachable { .. } | AgentError::ProviderUnreachable { .. } => {
                "the model's server cannot be reached; try again later, or tell whoever runs this server".to_owned()
            }
            AgentError::ModelNotFound { model, .. } | AgentError::ProviderModelNotFound { model, .. } => {
                format!("model `{model}` is not on its server; choose another model, or tell whoever runs this server")
            }
            AgentError::ModelAuth { .. } => {
                "the model's server refuses the key of this one; choose another model, or tell whoever runs this server"
                    .to_owned()
            }
            AgentError::ModelRateLimited { .. } => {
                "the model's server is busy or limits its callers; try again later".to_owned()
            }
            AgentError::Catalog(_)
            | AgentError::Engine(_)
            | AgentError::EmptyQuestion
            | AgentError::QuestionTooLong { .. }
            | AgentError::InvalidRequest { .. }
            | AgentError::ShuttingDown
            | AgentError::ConversationLocked { .. }
            | AgentError::RunElsewhere { .. }
            | AgentError::AlreadyResumed { .. }
            | AgentError::UnknownModel { .. }
            | AgentError::ImagesNotSupported { .. }
            | AgentError::TooManyRuns { .. }
            | AgentError::TooManyRunsOfCaller { .. }
            | AgentError::ModelFailed { .. }
            | AgentError::Internal(_) => self.to_string(),
        }
    }
}

/// The agent's result.
pub type Result<T, E = AgentError> = std::result::Result<T, E>;

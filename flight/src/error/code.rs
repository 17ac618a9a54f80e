//! The stable codes of errors, and what each is in HTTP and gRPC.
//!
//! A code is a variant here and a line of `docs/errors.md`; a test compares the two. The matches have no wildcard arm, so
//! that a new code does not compile before its status, its gRPC code and its retry are decided.

mod retry;

use http::StatusCode;
use tonic::Code;

/// Declares the enum, its list and its names from one table.
macro_rules! error_codes {
    ($($variant:ident $name:literal,)*) => {
        /// What went wrong, by the name that clients know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $name, "`, as `docs/errors.md` explains it.")] $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The name that clients know, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }
        }
    };
}

error_codes! {
    // Of the catalog.
    TableNotFound "table_not_found",
    DatabaseNotFound "database_not_found",
    ColumnNotFound "column_not_found",
    AlreadyExists "already_exists",
    InvalidName "invalid_name",
    UnsupportedType "unsupported_type",
    UnsupportedLake "unsupported_lake",
    Conflict "conflict",
    DatabaseNotEmpty "database_not_empty",
    DataFolderInUse "data_folder_in_use",
    NewerFormat "newer_format",
    CatalogCorrupt "catalog_corrupt",
    CatalogBusy "catalog_busy",
    CatalogUnavailable "catalog_unavailable",
    CommitInDoubt "commit_in_doubt",
    CatalogError "catalog_error",
    StorageFull "storage_full",
    IoError "io_error",
    IndexError "index_error",
    EmbedderError "embedder_error",
    RunNotFound "run_not_found",
    RunWithheld "run_withheld",
    ConversationNotFound "conversation_not_found",
    ItemNotFound "item_not_found",
    ItemExists "item_exists",
    PendingCallNotFound "pending_call_not_found",
    FileNotFound "file_not_found",
    ObjectNotFound "object_not_found",
    InvalidObject "invalid_object",
    // Of queries.
    SqlParseError "sql_parse_error",
    SqlPlanError "sql_plan_error",
    MultipleStatements "multiple_statements",
    EmptyQuery "empty_query",
    FunctionNotFound "function_not_found",
    NotAllowed "not_allowed",
    Unsupported "unsupported",
    WallClockExceeded "wall_clock_exceeded",
    ReaderIdle "reader_idle",
    ScanTooLarge "scan_too_large",
    ValueTooLarge "value_too_large",
    MemoryExceeded "memory_exceeded",
    BadData "bad_data",
    NoFiles "no_files",
    InvalidOption "invalid_option",
    LocationNotAllowed "location_not_allowed",
    MissingCredentials "missing_credentials",
    StoreAccessDenied "store_access_denied",
    NoSuchBucket "no_such_bucket",
    StoreUnavailable "store_unavailable",
    StoreError "store_error",
    WorkerLost "worker_lost",
    InvalidValue "invalid_value",
    QueryExecutionError "query_execution_error",
    // Of KQL's syntax.
    KqlUnexpected "kql_unexpected",
    KqlUnknownOperator "kql_unknown_operator",
    KqlReservedName "kql_reserved_name",
    KqlUnexpectedCharacter "kql_unexpected_character",
    KqlUnterminated "kql_unterminated",
    KqlBadEscape "kql_bad_escape",
    KqlNumberOutOfRange "kql_number_out_of_range",
    KqlUnknownType "kql_unknown_type",
    KqlTooDeep "kql_too_deep",
    // Of KQL's meaning.
    KqlUnknownColumn "kql_unknown_column",
    KqlUnknownTable "kql_unknown_table",
    KqlUnknownFunction "kql_unknown_function",
    KqlTypeMismatch "kql_type_mismatch",
    KqlNotSupported "kql_not_supported",
    KqlInvalid "kql_invalid",
    KqlTooLarge "kql_too_large",
    // Of questions and models.
    EmptyQuestion "empty_question",
    InvalidRequest "invalid_request",
    ConversationLocked "conversation_locked",
    RunElsewhere "run_elsewhere",
    AlreadyResumed "already_resumed",
    ImagesNotSupported "images_not_supported",
    TooManyRuns "too_many_runs",
    ModelUnreachable "model_unreachable",
    ModelNotFound "model_not_found",
    ModelAuth "model_auth",
    ModelRateLimited "model_rate_limited",
    ModelFailed "model_failed",
    // Of a run, in its last event.
    RunTimeout "run_timeout",
    Timeout "timeout",
    TooManyToolCalls "too_many_tool_calls",
    RepeatedToolFailure "repeated_tool_failure",
    EmptyAnswer "empty_answer",
    InvalidStructuredOutput "invalid_structured_output",
    Cancelled "cancelled",
    ClientGone "client_gone",
    ServerRestarted "server_restarted",
    // Of a tool, in its result.
    InvalidArguments "invalid_arguments",
    UnknownTool "unknown_tool",
    ApprovalUnavailable "approval_unavailable",
    Denied "denied",
    // Of the protocols that applications speak.
    MissingRequiredParameter "missing_required_parameter",
    MutuallyExclusiveParameters "mutually_exclusive_parameters",
    InvalidJson "invalid_json",
    UnknownCall "unknown_call",
    ThreadUnsupported "thread_unsupported_request",
    ResponseNotFound "response_not_found",
    PreviousResponseNotFound "previous_response_not_found",
    ResponseInProgress "response_in_progress",
    SessionConflict "session_conflict",
    InvocationConflict "invocation_conflict",
    IdempotencyConflict "idempotency_conflict",
    ActionNotSupported "action_not_supported",
    StateTooLarge "state_too_large",
    TooManyExternalUsers "too_many_external_users",
    TooManyFiles "too_many_files",
    TooManyConversations "too_many_conversations",
    NotImplemented "not_implemented",
    ResultTruncated "result_truncated",
    // Of any request.
    Unauthenticated "unauthenticated",
    IdentityProviderUnavailable "identity_provider_unavailable",
    Forbidden "forbidden",
    TooManyRequests "too_many_requests",
    ShuttingDown "shutting_down",
    NotFound "not_found",
    SessionNotFound "session_not_found",
    MethodNotAllowed "method_not_allowed",
    NotAcceptable "not_acceptable",
    UnsupportedMediaType "unsupported_media_type",
    BodyTooLarge "body_too_large",
    BodyTimeout "body_timeout",
    BadRequest "bad_request",
    BadEncoding "bad_encoding",
    BadHeader "bad_header",
    BadParameter "bad_parameter",
    BadRequestBody "bad_request_body",
    InvalidTicket "invalid_ticket",
    TicketExpired "ticket_expired",
    TicketUsed "ticket_used",
    SerializationError "serialization_error",
    Internal "internal",
    // Of a start and of the command line, which no response carries.
    ConfigError "config_error",
    ListenError "listen_error",
    NothingToPlot "nothing_to_plot",
    ChartNotDrawn "chart_not_drawn",
}

impl ErrorCode {
    /// The code of that name: what a stored run or the agent's stream says of its failure.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// The HTTP status. Protocols with statuses of their own decide from the code themselves.
    pub fn http_status(self) -> StatusCode {
        match self {
            ErrorCode::TableNotFound
            | ErrorCode::ColumnNotFound
            | ErrorCode::InvalidName
            | ErrorCode::UnsupportedType
            | ErrorCode::UnsupportedLake
            | ErrorCode::InvalidObject
            | ErrorCode::SqlParseError
            | ErrorCode::SqlPlanError
            | ErrorCode::MultipleStatements
            | ErrorCode::EmptyQuery
            | ErrorCode::FunctionNotFound
            | ErrorCode::Unsupported
            | ErrorCode::ScanTooLarge
            | ErrorCode::ValueTooLarge
            | ErrorCode::BadData
            | ErrorCode::InvalidValue
            | ErrorCode::NoFiles
            | ErrorCode::InvalidOption
            | ErrorCode::MissingCredentials
            | ErrorCode::NoSuchBucket
            | ErrorCode::KqlUnexpected
            | ErrorCode::KqlUnknownOperator
            | ErrorCode::KqlReservedName
            | ErrorCode::KqlUnexpectedCharacter
            | ErrorCode::KqlUnterminated
            | ErrorCode::KqlBadEscape
            | ErrorCode::KqlNumberOutOfRange
            | ErrorCode::KqlUnknownType
            | ErrorCode::KqlTooDeep
            | ErrorCode::KqlUnknownColumn
            | ErrorCode::KqlUnknownTable
            | ErrorCode::KqlUnknownFunction
            | ErrorCode::KqlTypeMismatch
            | ErrorCode::KqlNotSupported
            | ErrorCode::KqlInvalid
            | ErrorCode::KqlTooLarge
            | ErrorCode::EmptyQuestion
            | ErrorCode::InvalidRequest
            | ErrorCode::ImagesNotSupported
            | ErrorCode::InvalidArguments
            | ErrorCode::UnknownTool
            | ErrorCode::MissingRequiredParameter
            | ErrorCode::MutuallyExclusiveParameters
            | ErrorCode::InvalidJson
            | ErrorCode::UnknownCall
            | ErrorCode::ThreadUnsupported
            | ErrorCode::PreviousResponseNotFound
            | ErrorCode::StateTooLarge
            | ErrorCode::TooManyExternalUsers
            | ErrorCode::TooManyFiles
            | ErrorCode::TooManyConversations
            | ErrorCode::ResultTruncated
            | ErrorCode::BadRequest
            | ErrorCode::BadEncoding
            | ErrorCode::BadHeader
            | ErrorCode::BadParameter
            | ErrorCode::BadRequestBody
            | ErrorCode::InvalidTicket => StatusCode::BAD_REQUEST,
            ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
            ErrorCode::NotAllowed
            | ErrorCode::LocationNotAllowed
            | ErrorCode::StoreAccessDenied
            | ErrorCode::ApprovalUnavailable
            | ErrorCode::Denied
            | ErrorCode::RunWithheld
            | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
            ErrorCode::DatabaseNotFound
            | ErrorCode::RunNotFound
            | ErrorCode::ConversationNotFound
            | ErrorCode::ItemNotFound
            | ErrorCode::PendingCallNotFound
            | ErrorCode::FileNotFound
            | ErrorCode::ObjectNotFound
            | ErrorCode::ResponseNotFound
            | ErrorCode::NotFound
            | ErrorCode::SessionNotFound
            | ErrorCode::TicketExpired => StatusCode::NOT_FOUND,
            ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            ErrorCode::AlreadyExists
            | ErrorCode::Conflict
            | ErrorCode::DatabaseNotEmpty
            | ErrorCode::ItemExists
            | ErrorCode::ConversationLocked
            | ErrorCode::AlreadyResumed
            | ErrorCode::ResponseInProgress
            | ErrorCode::SessionConflict
            | ErrorCode::InvocationConflict
            | ErrorCode::IdempotencyConflict
            | ErrorCode::Cancelled
            | ErrorCode::TicketUsed => StatusCode::CONFLICT,
            ErrorCode::ReaderIdle | ErrorCode::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            ErrorCode::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::WallClockExceeded
            | ErrorCode::MemoryExceeded
            | ErrorCode::TooManyRuns
            | ErrorCode::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::DataFolderInUse
            | ErrorCode::NewerFormat
            | ErrorCode::CatalogCorrupt
            | ErrorCode::CommitInDoubt
            | ErrorCode::CatalogError
            | ErrorCode::IoError
            | ErrorCode::IndexError
            | ErrorCode::QueryExecutionError
            | ErrorCode::TooManyToolCalls
            | ErrorCode::RepeatedToolFailure
            | ErrorCode::ClientGone
            | ErrorCode::SerializationError
            | ErrorCode::Internal
            | ErrorCode::ConfigError
            | ErrorCode::ListenError
            | ErrorCode::NothingToPlot
            | ErrorCode::ChartNotDrawn => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::ActionNotSupported | ErrorCode::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            ErrorCode::StoreError
            | ErrorCode::ModelNotFound
            | ErrorCode::ModelAuth
            | ErrorCode::ModelFailed
            | ErrorCode::EmptyAnswer
            | ErrorCode::InvalidStructuredOutput => StatusCode::BAD_GATEWAY,
            ErrorCode::CatalogBusy
            | ErrorCode::CatalogUnavailable
            | ErrorCode::EmbedderError
            | ErrorCode::StoreUnavailable
            | ErrorCode::WorkerLost
            | ErrorCode::ModelUnreachable
            | ErrorCode::ModelRateLimited
            | ErrorCode::RunElsewhere
            | ErrorCode::ServerRestarted
            | ErrorCode::IdentityProviderUnavailable
            | ErrorCode::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::RunTimeout | ErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    /// The gRPC code. ADBC tells its user apart by `NOT_FOUND`, `ALREADY_EXISTS` and `INVALID_ARGUMENT`.
    pub fn grpc_code(self) -> Code {
        match self {
            ErrorCode::Conflict | ErrorCode::ConversationLocked | ErrorCode::ResponseInProgress => Code::Aborted,
            ErrorCode::AlreadyExists
            | ErrorCode::ItemExists
            | ErrorCode::SessionConflict
            | ErrorCode::IdempotencyConflict
            | ErrorCode::InvocationConflict => Code::AlreadyExists,
            ErrorCode::Cancelled | ErrorCode::ClientGone => Code::Cancelled,
            ErrorCode::WallClockExceeded
            | ErrorCode::ReaderIdle
            | ErrorCode::RunTimeout
            | ErrorCode::Timeout
            | ErrorCode::BodyTimeout => Code::DeadlineExceeded,
            ErrorCode::ValueTooLarge => Code::OutOfRange,
            ErrorCode::CommitInDoubt => Code::Unknown,
            ErrorCode::UnsupportedLake
            | ErrorCode::DatabaseNotEmpty
            | ErrorCode::MissingCredentials
            | ErrorCode::AlreadyResumed
            | ErrorCode::TicketUsed => Code::FailedPrecondition,
            ErrorCode::DataFolderInUse
            | ErrorCode::NewerFormat
            | ErrorCode::CatalogCorrupt
            | ErrorCode::CatalogError
            | ErrorCode::IoError
            | ErrorCode::IndexError
            | ErrorCode::StoreError
            | ErrorCode::QueryExecutionError
            | ErrorCode::ModelNotFound
            | ErrorCode::ModelAuth
            | ErrorCode::ModelFailed
            | ErrorCode::TooManyToolCalls
            | ErrorCode::RepeatedToolFailure
            | ErrorCode::EmptyAnswer
            | ErrorCode::InvalidStructuredOutput
            | ErrorCode::SerializationError
            | ErrorCode::Internal
            | ErrorCode::ConfigError
            | ErrorCode::ListenError
            | ErrorCode::NothingToPlot
            | ErrorCode::ChartNotDrawn => Code::Internal,
            ErrorCode::ColumnNotFound
            | ErrorCode::InvalidName
            | ErrorCode::UnsupportedType
            | ErrorCode::InvalidObject
            | ErrorCode::SqlParseError
            | ErrorCode::SqlPlanError
            | ErrorCode::MultipleStatements
            | ErrorCode::EmptyQuery
            | ErrorCode::FunctionNotFound
            | ErrorCode::BadData
            | ErrorCode::InvalidValue
            | ErrorCode::NoFiles
            | ErrorCode::InvalidOption
            | ErrorCode::KqlUnexpected
            | ErrorCode::KqlUnknownOperator
            | ErrorCode::KqlReservedName
            | ErrorCode::KqlUnexpectedCharacter
            | ErrorCode::KqlUnterminated
            | ErrorCode::KqlBadEscape
            | ErrorCode::KqlNumberOutOfRange
            | ErrorCode::KqlUnknownType
            | ErrorCode::KqlTooDeep
            | ErrorCode::KqlUnknownColumn
            | ErrorCode::KqlUnknownTable
            | ErrorCode::KqlUnknownFunction
            | ErrorCode::KqlTypeMismatch
            | ErrorCode::KqlNotSupported
            | ErrorCode::KqlInvalid
            | ErrorCode::KqlTooLarge
            | ErrorCode::EmptyQuestion
            | ErrorCode::InvalidRequest
            | ErrorCode::ImagesNotSupported
            | ErrorCode::InvalidArguments
            | ErrorCode::UnknownTool
            | ErrorCode::MissingRequiredParameter
            | ErrorCode::MutuallyExclusiveParameters
            | ErrorCode::InvalidJson
            | ErrorCode::UnknownCall
            | ErrorCode::ThreadUnsupported
            | ErrorCode::StateTooLarge
            | ErrorCode::TooManyExternalUsers
            | ErrorCode::TooManyFiles
            | ErrorCode::TooManyConversations
            | ErrorCode::NotAcceptable
            | ErrorCode::UnsupportedMediaType
            | ErrorCode::BadRequest
            | ErrorCode::BadEncoding
            | ErrorCode::BadHeader
            | ErrorCode::BadParameter
            | ErrorCode::BadRequestBody
            | ErrorCode::InvalidTicket => Code::InvalidArgument,
            ErrorCode::TableNotFound
            | ErrorCode::DatabaseNotFound
            | ErrorCode::RunNotFound
            | ErrorCode::ConversationNotFound
            | ErrorCode::ItemNotFound
            | ErrorCode::PendingCallNotFound
            | ErrorCode::FileNotFound
            | ErrorCode::ObjectNotFound
            | ErrorCode::NoSuchBucket
            | ErrorCode::ResponseNotFound
            | ErrorCode::PreviousResponseNotFound
            | ErrorCode::NotFound
            | ErrorCode::SessionNotFound
            | ErrorCode::TicketExpired => Code::NotFound,
            ErrorCode::NotAllowed
            | ErrorCode::LocationNotAllowed
            | ErrorCode::StoreAccessDenied
            | ErrorCode::ApprovalUnavailable
            | ErrorCode::Denied
            | ErrorCode::RunWithheld
            | ErrorCode::Forbidden => Code::PermissionDenied,
            ErrorCode::MemoryExceeded
            | ErrorCode::StorageFull
            | ErrorCode::ScanTooLarge
            | ErrorCode::TooManyRuns
            | ErrorCode::ResultTruncated
            | ErrorCode::TooManyRequests
            | ErrorCode::BodyTooLarge => Code::ResourceExhausted,
            ErrorCode::Unauthenticated => Code::Unauthenticated,
            ErrorCode::CatalogBusy
            | ErrorCode::CatalogUnavailable
            | ErrorCode::EmbedderError
            | ErrorCode::StoreUnavailable
            | ErrorCode::WorkerLost
            | ErrorCode::ModelUnreachable
            | ErrorCode::ModelRateLimited
            | ErrorCode::RunElsewhere
            | ErrorCode::ServerRestarted
            | ErrorCode::IdentityProviderUnavailable
            | ErrorCode::ShuttingDown => Code::Unavailable,
            ErrorCode::Unsupported
            | ErrorCode::ActionNotSupported
            | ErrorCode::NotImplemented
            | ErrorCode::MethodNotAllowed => Code::Unimplemented,
        }
    }
}

#[cfg(test)]
mod tests;

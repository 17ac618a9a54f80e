//! When a request that failed may be sent again, code by code.

use std::time::Duration;

use super::ErrorCode;

impl ErrorCode {
    /// When to send the request again, where that alone may help.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            ErrorCode::CatalogBusy
            | ErrorCode::CatalogUnavailable
            | ErrorCode::WallClockExceeded
            | ErrorCode::MemoryExceeded
            | ErrorCode::StoreUnavailable
            | ErrorCode::EmbedderError
            | ErrorCode::WorkerLost
            | ErrorCode::TooManyRuns
            | ErrorCode::ModelUnreachable
            | ErrorCode::ModelRateLimited
            | ErrorCode::TooManyRequests
            | ErrorCode::RunElsewhere
            | ErrorCode::ServerRestarted
            | ErrorCode::IdentityProviderUnavailable
            | ErrorCode::ShuttingDown => Some(Duration::from_secs(1)),
            ErrorCode::TableNotFound
            | ErrorCode::DatabaseNotFound
            | ErrorCode::ColumnNotFound
            | ErrorCode::AlreadyExists
            | ErrorCode::InvalidName
            | ErrorCode::UnsupportedType
            | ErrorCode::UnsupportedLake
            | ErrorCode::Conflict
            | ErrorCode::DatabaseNotEmpty
            | ErrorCode::DataFolderInUse
            | ErrorCode::NewerFormat
            | ErrorCode::CatalogCorrupt
            | ErrorCode::CommitInDoubt
            | ErrorCode::CatalogError
            | ErrorCode::StorageFull
            | ErrorCode::IoError
            | ErrorCode::IndexError
            | ErrorCode::RunNotFound
            | ErrorCode::RunWithheld
            | ErrorCode::ConversationNotFound
            | ErrorCode::ItemNotFound
            | ErrorCode::ItemExists
            | ErrorCode::PendingCallNotFound
            | ErrorCode::FileNotFound
            | ErrorCode::ObjectNotFound
            | ErrorCode::InvalidObject
            | ErrorCode::SqlParseError
            | ErrorCode::SqlPlanError
            | ErrorCode::MultipleStatements
            | ErrorCode::ScanTooLarge
            | ErrorCode::EmptyQuery
            | ErrorCode::FunctionNotFound
            | ErrorCode::NotAllowed
            | ErrorCode::Unsupported
            | ErrorCode::ReaderIdle
            | ErrorCode::ValueTooLarge
            | ErrorCode::BadData
            | ErrorCode::InvalidValue
            | ErrorCode::NoFiles
            | ErrorCode::InvalidOption
            | ErrorCode::LocationNotAllowed
            | ErrorCode::MissingCredentials
            | ErrorCode::StoreAccessDenied
            | ErrorCode::NoSuchBucket
            | ErrorCode::StoreError
            | ErrorCode::QueryExecutionError
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
            | ErrorCode::ConversationLocked
            | ErrorCode::AlreadyResumed
            | ErrorCode::ImagesNotSupported
            | ErrorCode::ModelNotFound
            | ErrorCode::ModelAuth
            | ErrorCode::ModelFailed
            | ErrorCode::RunTimeout
            | ErrorCode::Timeout
            | ErrorCode::TooManyToolCalls
            | ErrorCode::RepeatedToolFailure
            | ErrorCode::EmptyAnswer
            | ErrorCode::InvalidStructuredOutput
            | ErrorCode::Cancelled
            | ErrorCode::ClientGone
            | ErrorCode::InvalidArguments
            | ErrorCode::UnknownTool
            | ErrorCode::ApprovalUnavailable
            | ErrorCode::Denied
            | ErrorCode::MissingRequiredParameter
            | ErrorCode::MutuallyExclusiveParameters
            | ErrorCode::InvalidJson
            | ErrorCode::UnknownCall
            | ErrorCode::ThreadUnsupported
            | ErrorCode::ResponseNotFound
            | ErrorCode::PreviousResponseNotFound
            | ErrorCode::ResponseInProgress
            | ErrorCode::SessionConflict
            | ErrorCode::InvocationConflict
            | ErrorCode::IdempotencyConflict
            | ErrorCode::ActionNotSupported
            | ErrorCode::StateTooLarge
            | ErrorCode::TooManyExternalUsers
            | ErrorCode::TooManyFiles
            | ErrorCode::TooManyConversations
            | ErrorCode::NotImplemented
            | ErrorCode::ResultTruncated
            | ErrorCode::Unauthenticated
            | ErrorCode::Forbidden
            | ErrorCode::NotFound
            | ErrorCode::SessionNotFound
            | ErrorCode::MethodNotAllowed
            | ErrorCode::NotAcceptable
            | ErrorCode::UnsupportedMediaType
            | ErrorCode::BodyTooLarge
            | ErrorCode::BodyTimeout
            | ErrorCode::BadRequest
            | ErrorCode::BadEncoding
            | ErrorCode::BadHeader
            | ErrorCode::BadParameter
            | ErrorCode::BadRequestBody
            | ErrorCode::InvalidTicket
            | ErrorCode::TicketExpired
            | ErrorCode::TicketUsed
            | ErrorCode::SerializationError
            | ErrorCode::Internal
            | ErrorCode::ConfigError
            | ErrorCode::ListenError
            | ErrorCode::NothingToPlot
            | ErrorCode::ChartNotDrawn => None,
        }
    }
}

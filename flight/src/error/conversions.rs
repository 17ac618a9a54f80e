//! The codes of the lower crates' errors, variant by variant: a new variant does not compile before it has a code. And the text
//! of a code.

use std::fmt;

use querent_agent::AgentError;
use querent_catalog::CatalogError;
use querent_engine::kql::{BindErrorCode, SyntaxErrorCode};
use querent_engine::{EngineError, KqlErrorCode, StoreError};
use serde::{Serialize, Serializer};

use super::code::ErrorCode;

impl From<&CatalogError> for ErrorCode {
    fn from(error: &CatalogError) -> Self {
        match error {
            CatalogError::TableNotFound { .. } => ErrorCode::TableNotFound,
            CatalogError::DatabaseNotFound { .. } => ErrorCode::DatabaseNotFound,
            CatalogError::ColumnNotFound { .. } => ErrorCode::ColumnNotFound,
            CatalogError::AlreadyExists { .. } | CatalogError::OtherKind { .. } => ErrorCode::AlreadyExists,
            CatalogError::InvalidName { .. } => ErrorCode::InvalidName,
            CatalogError::UnsupportedType { .. } => ErrorCode::UnsupportedType,
            CatalogError::UnsupportedLake { .. } => ErrorCode::UnsupportedLake,
            CatalogError::Conflict { .. } => ErrorCode::Conflict,
            CatalogError::DatabaseNotEmpty { .. } => ErrorCode::DatabaseNotEmpty,
            CatalogError::InUse { .. } => ErrorCode::DataFolderInUse,
            CatalogError::NewerFormat { .. } => ErrorCode::NewerFormat,
            CatalogError::Corrupt { .. } => ErrorCode::CatalogCorrupt,
            CatalogError::Busy { .. } => ErrorCode::CatalogBusy,
            CatalogError::Unreachable { .. } | CatalogError::Unavailable { .. } => ErrorCode::CatalogUnavailable,
            CatalogError::CommitInDoubt { .. } => ErrorCode::CommitInDoubt,
            CatalogError::RunNotFound { .. } => ErrorCode::RunNotFound,
            CatalogError::RunWithheld { .. } => ErrorCode::RunWithheld,
            CatalogError::ConversationNotFound { .. } => ErrorCode::ConversationNotFound,
            CatalogError::ItemNotFound { .. } => ErrorCode::ItemNotFound,
            CatalogError::ItemExists { .. } => ErrorCode::ItemExists,
            CatalogError::PendingCallNotFound { .. } => ErrorCode::PendingCallNotFound,
            CatalogError::FileNotFound { .. } => ErrorCode::FileNotFound,
            CatalogError::ObjectNotFound { .. } => ErrorCode::ObjectNotFound,
            CatalogError::InvalidObject { .. } => ErrorCode::InvalidObject,
            CatalogError::Embedder { .. } => ErrorCode::EmbedderError,
            CatalogError::Index(_) => ErrorCode::IndexError,
            CatalogError::Store(_) => ErrorCode::CatalogError,
            CatalogError::StorageFull { .. } => ErrorCode::StorageFull,
            CatalogError::Io { .. } => ErrorCode::IoError,
            CatalogError::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl From<&EngineError> for ErrorCode {
    fn from(error: &EngineError) -> Self {
        match error {
            EngineError::Catalog(error) => error.into(),
            EngineError::Parse { .. } => ErrorCode::SqlParseError,
            EngineError::Kql { code: KqlErrorCode::Syntax(code), .. } => (*code).into(),
            EngineError::Kql { code: KqlErrorCode::Bind(code), .. } => (*code).into(),
            EngineError::MultipleStatements { .. } => ErrorCode::MultipleStatements,
            EngineError::EmptyQuery => ErrorCode::EmptyQuery,
            EngineError::ColumnNotFound { .. } => ErrorCode::ColumnNotFound,
            EngineError::FunctionNotFound { .. } => ErrorCode::FunctionNotFound,
            EngineError::Plan { .. } => ErrorCode::SqlPlanError,
            EngineError::NotAllowed { .. } => ErrorCode::NotAllowed,
            EngineError::Unsupported { .. } => ErrorCode::Unsupported,
            EngineError::WallClockExceeded { .. } => ErrorCode::WallClockExceeded,
            EngineError::ScanTooLarge { .. } => ErrorCode::ScanTooLarge,
            EngineError::ReaderIdle { .. } => ErrorCode::ReaderIdle,
            EngineError::Cancelled { .. } => ErrorCode::Cancelled,
            EngineError::ValueTooLarge { .. } => ErrorCode::ValueTooLarge,
            EngineError::MemoryExceeded { .. } | EngineError::ServerMemory { .. } => ErrorCode::MemoryExceeded,
            EngineError::ServerThreads { .. } => ErrorCode::TooManyRequests,
            EngineError::BadData { .. } => ErrorCode::BadData,
            EngineError::NoFiles { .. } => ErrorCode::NoFiles,
            EngineError::InvalidOption { .. } => ErrorCode::InvalidOption,
            EngineError::LocationNotAllowed { .. } => ErrorCode::LocationNotAllowed,
            EngineError::Store(error) => error.into(),
            EngineError::WorkerLost { .. } => ErrorCode::WorkerLost,
            EngineError::InvalidValue { .. } => ErrorCode::InvalidValue,
            EngineError::Execution { .. } => ErrorCode::QueryExecutionError,
            EngineError::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl From<SyntaxErrorCode> for ErrorCode {
    fn from(code: SyntaxErrorCode) -> Self {
        match code {
            SyntaxErrorCode::Unexpected => ErrorCode::KqlUnexpected,
            SyntaxErrorCode::UnknownOperator => ErrorCode::KqlUnknownOperator,
            SyntaxErrorCode::ReservedName => ErrorCode::KqlReservedName,
            SyntaxErrorCode::UnexpectedCharacter => ErrorCode::KqlUnexpectedCharacter,
            SyntaxErrorCode::Unterminated => ErrorCode::KqlUnterminated,
            SyntaxErrorCode::BadEscape => ErrorCode::KqlBadEscape,
            SyntaxErrorCode::NumberOutOfRange => ErrorCode::KqlNumberOutOfRange,
            SyntaxErrorCode::UnknownType => ErrorCode::KqlUnknownType,
            SyntaxErrorCode::TooDeep => ErrorCode::KqlTooDeep,
        }
    }
}

impl From<BindErrorCode> for ErrorCode {
    fn from(code: BindErrorCode) -> Self {
        match code {
            BindErrorCode::UnknownColumn => ErrorCode::KqlUnknownColumn,
            BindErrorCode::UnknownTable => ErrorCode::KqlUnknownTable,
            BindErrorCode::UnknownFunction => ErrorCode::KqlUnknownFunction,
            BindErrorCode::TypeMismatch => ErrorCode::KqlTypeMismatch,
            BindErrorCode::NotSupported => ErrorCode::KqlNotSupported,
            BindErrorCode::Invalid => ErrorCode::KqlInvalid,
            BindErrorCode::TooLarge => ErrorCode::KqlTooLarge,
        }
    }
}

impl From<&StoreError> for ErrorCode {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::MissingCredentials { .. } => ErrorCode::MissingCredentials,
            StoreError::AccessDenied { .. } => ErrorCode::StoreAccessDenied,
            StoreError::NoSuchBucket { .. } => ErrorCode::NoSuchBucket,
            StoreError::Unavailable { .. } => ErrorCode::StoreUnavailable,
            StoreError::Unusable { .. } => ErrorCode::StoreError,
            StoreError::Occupied { .. } => ErrorCode::Conflict,
            StoreError::Gone { .. } => ErrorCode::NoFiles,
            StoreError::Replaced { .. } => ErrorCode::BadData,
            StoreError::Refused { .. } => ErrorCode::LocationNotAllowed,
        }
    }
}

impl From<&AgentError> for ErrorCode {
    fn from(error: &AgentError) -> Self {
        match error {
            AgentError::Catalog(error) => error.into(),
            AgentError::Engine(error) => error.into(),
            AgentError::EmptyQuestion => ErrorCode::EmptyQuestion,
            AgentError::QuestionTooLong { .. } => ErrorCode::InvalidRequest,
            AgentError::InvalidRequest { .. } => ErrorCode::InvalidRequest,
            AgentError::ShuttingDown => ErrorCode::ShuttingDown,
            AgentError::ConversationLocked { .. } => ErrorCode::ConversationLocked,
            AgentError::RunElsewhere { .. } => ErrorCode::RunElsewhere,
            AgentError::AlreadyResumed { .. } => ErrorCode::AlreadyResumed,
            AgentError::UnknownModel { .. }
            | AgentError::ModelNotFound { .. }
            | AgentError::ProviderModelNotFound { .. } => ErrorCode::ModelNotFound,
            AgentError::ImagesNotSupported { .. } => ErrorCode::ImagesNotSupported,
            AgentError::TooManyRuns { .. } | AgentError::TooManyRunsOfCaller { .. } => ErrorCode::TooManyRuns,
            AgentError::ModelUnreachable { .. } | AgentError::ProviderUnreachable { .. } => ErrorCode::ModelUnreachable,
            AgentError::ModelAuth { .. } => ErrorCode::ModelAuth,
            AgentError::ModelRateLimited { .. } => ErrorCode::ModelRateLimited,
            AgentError::ModelFailed { .. } => ErrorCode::ModelFailed,
            AgentError::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

//! Errors as Kusto writes them: "OneApiErrors", with the statuses that its clients take for what they are. To them 404
//! says that there is no such route, and 429 that they are throttled.

use http::StatusCode;
use serde_json::{Value, json};

use super::RequestIds;
use super::body::timestamp;
use crate::error::{ApiError, ErrorCode, RenderedError};

/// An error with Kusto's status and body.
pub(super) fn rendered(error: &ApiError, ids: &RequestIds) -> RenderedError {
    RenderedError { status: KustoErrorKind::of(error).status, body: one_api_error(error, ids) }
}

/// What Kusto makes of an error.
struct KustoErrorKind {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
    exception: &'static str,
    /// What stands before the error's own message.
    prefix: &'static str,
    is_permanent: bool,
}

impl KustoErrorKind {
    fn of(error: &ApiError) -> Self {
        const BAD_REQUEST: KustoErrorKind = KustoErrorKind {
            status: StatusCode::BAD_REQUEST,
            code: "General_BadRequest",
            message: "Request is invalid and cannot be executed.",
            exception: "Kusto.Data.Exceptions.KustoBadRequestException",
            prefix: "",
            is_permanent: true,
        };
        match error.code() {
            ErrorCode::KqlUnexpected
            | ErrorCode::KqlUnknownOperator
            | ErrorCode::KqlReservedName
            | ErrorCode::KqlUnexpectedCharacter
            | ErrorCode::KqlUnterminated
            | ErrorCode::KqlBadEscape
            | ErrorCode::KqlNumberOutOfRange
            | ErrorCode::KqlUnknownType
            | ErrorCode::KqlTooDeep => KustoErrorKind { prefix: "Syntax error: ", ..BAD_REQUEST },
            ErrorCode::KqlUnknownColumn
            | ErrorCode::KqlUnknownTable
            | ErrorCode::KqlUnknownFunction
            | ErrorCode::KqlTypeMismatch
            | ErrorCode::KqlNotSupported
            | ErrorCode::KqlInvalid
            | ErrorCode::KqlTooLarge => KustoErrorKind { prefix: "Semantic error: ", ..BAD_REQUEST },
            ErrorCode::MemoryExceeded | ErrorCode::ResultTruncated => KustoErrorKind {
                code: "LimitsExceeded",
                exception: "Kusto.Data.Exceptions.KustoServicePartialQueryFailureLimitsExceededException",
                prefix: "Query execution has exceeded the allowed limits: ",
                ..BAD_REQUEST
            },
            ErrorCode::WallClockExceeded => KustoErrorKind {
                status: StatusCode::GATEWAY_TIMEOUT,
                code: "Timeout",
                message: "Request has timed out.",
                exception: "Kusto.Data.Exceptions.KustoServiceTimeoutException",
                prefix: "",
                is_permanent: false,
            },
            ErrorCode::TooManyRequests => KustoErrorKind {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "TooManyRequests",
                message: "Request is denied due to throttling.",
                exception: "Kusto.Data.Exceptions.KustoRequestThrottledException",
                prefix: "",
                is_permanent: false,
            },
            _ => match error.http_status() {
                StatusCode::NOT_FOUND => BAD_REQUEST,
                status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => KustoErrorKind {
                    status,
                    code: if status == StatusCode::FORBIDDEN { "Forbidden" } else { "Unauthorized" },
                    message: "Caller is not authorized to perform this action.",
                    exception: "Kusto.Data.Exceptions.KustoRequestDeniedException",
                    ..BAD_REQUEST
                },
                status if status.is_client_error() => KustoErrorKind { status, ..BAD_REQUEST },
                status => KustoErrorKind {
                    status,
                    code: "General_InternalServerError",
                    message: "The service failed to process the request.",
                    exception: "Kusto.Data.Exceptions.KustoServiceException",
                    prefix: "",
                    is_permanent: status == StatusCode::INTERNAL_SERVER_ERROR,
                },
            },
        }
    }
}

/// `{"error": {...}}`.
pub(super) fn one_api_error(error: &ApiError, ids: &RequestIds) -> Value {
    let kind = KustoErrorKind::of(error);
    json!({
        "error": {
            "code": kind.code,
            "message": kind.message,
            "@type": kind.exception,
            "@message": description(error),
            "@context": {
                "timestamp": timestamp(),
                "serviceAlias": "QUERENT",
                "clientRequestId": ids.client,
                "activityId": ids.activity,
                "querentCode": error.code(),
            },
            "@permanent": kind.is_permanent,
        }
    })
}

/// The error's message as people read it, and what to do about it.
pub(super) fn description(error: &ApiError) -> String {
    let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("{}{}{hint}", KustoErrorKind::of(error).prefix, error.message())
}

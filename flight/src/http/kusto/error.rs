//! Errors as Kusto writes them: "OneApiErrors", with statuses that its clients understand. To them 404 means that the
//! route does not exist, and 429 that they are throttled.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{SecondsFormat, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode, RenderedError};

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const ACTIVITY_ID: HeaderName = HeaderName::from_static("x-ms-activity-id");
/// The length to which ids of clients are cut.
const MAX_CLIENT_REQUEST_ID: usize = 256;

/// The two ids of a request that Kusto's answers name.
#[derive(Debug, Clone)]
pub(in crate::http) struct RequestIds {
    /// The client's id, or one made for it.
    pub(super) client: String,
    /// The server's id.
    pub(super) activity: Uuid,
}

impl RequestIds {
    fn of(headers: &HeaderMap) -> Self {
        let sent = headers.get(CLIENT_REQUEST_ID).and_then(|value| value.to_str().ok());
        let client = match sent {
            Some(sent) => sent.chars().take(MAX_CLIENT_REQUEST_ID).collect(),
            None => format!("unspecified;{}", Uuid::new_v4()),
        };
        Self { client, activity: Uuid::now_v7() }
    }
}

/// Gives a request its ids, and writes its errors in Kusto's shape.
pub(super) async fn render_errors(mut request: Request, next: Next) -> Response {
    let ids = RequestIds::of(request.headers());
    request.extensions_mut().insert(ids.clone());
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions().get::<ApiError>() {
        let rendered = render(error, &ids);
        response.extensions_mut().insert(rendered);
    }
    with_ids(response, ids)
}

/// Writes an error that no handler made: of a path without a route, or a method that a path does not take. It keeps its
/// status, by which clients know that there is no such route.
pub(in crate::http) fn error_response(error: ApiError, headers: &HeaderMap) -> Response {
    let ids = RequestIds::of(headers);
    let rendered = RenderedError { status: error.http_status(), body: one_api_error(&error, &ids) };
    let mut response = error.into_response();
    response.extensions_mut().insert(rendered);
    with_ids(response, ids)
}

/// Names the request in the headers that clients read.
fn with_ids(mut response: Response, ids: RequestIds) -> Response {
    for (name, value) in [(CLIENT_REQUEST_ID, ids.client), (ACTIVITY_ID, ids.activity.to_string())] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Returns an error with Kusto's status and body.
fn render(error: &ApiError, ids: &RequestIds) -> RenderedError {
    RenderedError { status: KustoErrorKind::for_error(error).status, body: one_api_error(error, ids) }
}

/// The kind of an error in Kusto's terms.
struct KustoErrorKind {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
    exception: &'static str,
    /// A prefix of the error's own message.
    prefix: &'static str,
    is_permanent: bool,
}

impl KustoErrorKind {
    fn for_error(error: &ApiError) -> Self {
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
    let kind = KustoErrorKind::for_error(error);
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

/// Returns the error's message for people, with its hint.
pub(super) fn description(error: &ApiError) -> String {
    let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("{}{}{hint}", KustoErrorKind::for_error(error).prefix, error.message())
}

/// Returns the current time in Kusto's format.
pub(super) fn timestamp() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

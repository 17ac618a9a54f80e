//! Calls of gRPC: what their headers must say, and what each method's body may be.
//!
//! tonic itself looks at the path only: it would serve a web page's simple request over HTTP/1.1, of any content type, and
//! reserves as much memory as a message declares before it knows who sends it. Invariant: a call that reaches a method of
//! the Flight service has passed [`admit`], and its caller is in its extensions, Handshake aside.

use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use tonic::Status;
use tonic::server::NamedService;

use super::body::{BodyBounds, BoundedBody};
use super::{caller, same_site};
use crate::auth::BASE64;
use crate::config::Settings;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;
use crate::telemetry::record_caller;

const SERVICE_NAME: &str = <FlightServiceServer<()> as NamedService>::NAME;
const CONTENT_TYPE: &str = "application/grpc";
/// Where clients that shake hands by messages send the token that they were given.
const HANDSHAKE_TOKEN: &str = "auth-token-bin";
/// A user name and a token are far shorter.
const HANDSHAKE_BYTES: usize = 64 << 10;
/// How long a client may take to send its credentials.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Whether a request goes to the Flight service, or claims to be a call of any gRPC service.
pub(super) fn is_call(parts: &Parts) -> bool {
    service_and_method(parts).0 == SERVICE_NAME || has_grpc_content(parts)
}

/// Returns a call whose headers are in order, with its caller in the extensions and a bounded body; otherwise the refusal,
/// made before anything of the body is read.
pub(super) async fn admit(state: &AppState, mut parts: Parts, body: Body) -> Result<Request, Box<Response>> {
    match check_headers(state, &mut parts).await {
        Ok(bounds) => Ok(Request::from_parts(parts, Body::new(BoundedBody::new(body, bounds)))),
        Err(error) => Err(Box::new(refusal(error, has_grpc_content(&parts)))),
    }
}

async fn check_headers(state: &AppState, parts: &mut Parts) -> Result<BodyBounds, ApiError> {
    same_site::check_host(&parts.headers)?;
    take_handshake_token(&mut parts.headers);
    let (service, method) = service_and_method(parts);
    let (bounds, known) = match (service == SERVICE_NAME).then(|| bounds_of(method, &state.settings)).flatten() {
        Some(bounds) => (bounds, Ok(())),
        None => (BodyBounds::default(), Err(not_served(parts.uri.path()))),
    };
    if known.is_ok() && method == "Handshake" && !parts.headers.contains_key(header::AUTHORIZATION) {
        // The credentials are in the body.
        if state.auth.is_open() {
            same_site::check(parts, &state.settings)?;
        }
    } else {
        let principal = caller(state, parts).await?;
        record_caller(principal.subject());
        parts.extensions.insert(principal);
    }
    known?;
    if !has_grpc_content(parts) {
        let message = format!("the content type of a call to {SERVICE_NAME} is {CONTENT_TYPE}");
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message)
            .with_hint("use a client of Arrow Flight; HTTP clients send statements to POST /v1/query"));
    }
    if parts.method != Method::POST {
        return Err(ApiError::new(ErrorCode::MethodNotAllowed, format!("a gRPC call is a POST, not {}", parts.method)));
    }
    if parts.version != Version::HTTP_2 {
        return Err(ApiError::new(ErrorCode::Unsupported, "gRPC needs HTTP/2; this is HTTP/1")
            .with_hint("a proxy before this server must pass HTTP/2 on"));
    }
    Ok(bounds)
}

/// Writes the token of a handshake by messages where other clients send it.
fn take_handshake_token(headers: &mut HeaderMap) {
    if headers.contains_key(header::AUTHORIZATION) {
        return;
    }
    let token = headers.get(HANDSHAKE_TOKEN).and_then(|value| BASE64.decode(value.as_bytes()).ok());
    let Some(token) = token.filter(|token| !token.is_empty()) else { return };
    if let Ok(mut bearer) = HeaderValue::from_bytes(&[b"Bearer ".as_slice(), token.as_slice()].concat()) {
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
    }
}

/// Returns what a method's body may be; `None` for a method that the Flight service does not have.
fn bounds_of(method: &str, settings: &Settings) -> Option<BodyBounds> {
    let bounds = match method {
        "Handshake" => BodyBounds {
            message_bytes: HANDSHAKE_BYTES,
            hint: "it holds a user name and a token",
            idle: HANDSHAKE_TIME,
            whole: Some(HANDSHAKE_TIME),
            is_one_message: false,
        },
        "DoPut" | "DoExchange" => BodyBounds {
            message_bytes: settings.flight.max_message_bytes.to_usize(),
            hint: "send smaller batches, or raise flight.max_message_bytes on the server",
            idle: settings.flight.upload_idle_timeout.0,
            whole: None,
            is_one_message: false,
        },
        "GetFlightInfo" | "PollFlightInfo" | "GetSchema" | "DoGet" | "DoAction" | "ListActions" | "ListFlights" => {
            BodyBounds {
                message_bytes: settings.statement_message_bytes(),
                hint: "load rows with DoPut, or raise http.max_query_bytes on the server",
                idle: settings.http.body_timeout.0,
                whole: None,
                is_one_message: true,
            }
        }
        _ => return None,
    };
    Some(bounds)
}

fn not_served(path: &str) -> ApiError {
    ApiError::new(ErrorCode::Unsupported, format!("there is no gRPC method {path}"))
        .with_hint(format!("the service served is {SERVICE_NAME}"))
}

fn service_and_method(parts: &Parts) -> (&str, &str) {
    let path = parts.uri.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_once('/').unwrap_or((path, ""))
}

/// Whether the content type is gRPC's, in any encoding of its messages. `application/grpc-web` is another protocol.
fn has_grpc_content(parts: &Parts) -> bool {
    let value = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let begins = value.get(..CONTENT_TYPE.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(CONTENT_TYPE));
    begins && matches!(value.as_bytes().get(CONTENT_TYPE.len()), None | Some(b'+' | b';' | b' '))
}

/// Writes a refusal as gRPC does, in headers that are trailers too. A client that does not speak gRPC gets an HTTP status
/// that says the same.
fn refusal(error: ApiError, speaks_grpc: bool) -> Response {
    let status = error.http_status();
    let mut response = Status::from(error).into_http::<Body>();
    if !speaks_grpc {
        *response.status_mut() = status;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str, content_type: &str) -> Parts {
        let request = http::Request::builder().uri(path).header(header::CONTENT_TYPE, content_type);
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_call_is_known_by_its_path_or_its_content_type() {
        let flight = format!("/{SERVICE_NAME}/DoGet");
        for (path, content_type, expected) in [
            (flight.as_str(), "application/grpc", true),
            (&flight, "text/plain", true),
            (&format!("/{SERVICE_NAME}"), "text/plain", true),
            ("/grpc.health.v1.Health/Check", "application/grpc+proto", true),
            ("/v1/query", "application/grpc;x=y", true),
            ("/v1/query", "Application/GRPC", true),
            ("/v1/query", "application/grpc-web", false),
            ("/v1/query", "application/json", false),
            (&format!("/v1/{SERVICE_NAME}/DoGet"), "text/plain", false),
        ] {
            assert_eq!(is_call(&parts(path, content_type)), expected, "{path} {content_type}");
        }
    }

    #[test]
    fn only_uploads_take_large_messages() {
        let settings = Settings::default();
        let bytes = |method: &str| bounds_of(method, &settings).map(|bounds| bounds.message_bytes);
        assert_eq!(bytes("DoPut"), Some(64 << 20));
        assert_eq!(bytes("GetFlightInfo"), Some(17 << 20));
        assert_eq!(bytes("Handshake"), Some(HANDSHAKE_BYTES));
        assert_eq!(bytes("Nope"), None);
    }
}

//! `POST /mcp` and `DELETE /mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Each request is served on its own, as its caller, and ends when its client goes away. A session is only a name under
//! which a client of an older revision can cancel its requests and answers those of the server; newer revisions have no sessions,
//! and requests may come without one. The server asks only within a call, and never sends unasked, so there is no `GET`.

mod batch;
mod sessions;

use std::future::ready;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use futures::stream::{self, Stream, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use querent_agent::protocols::json::parse_exact_json;
use querent_catalog::Principal;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::arriving::read_body;
use super::request::header_text;
use crate::error::{ApiError, ErrorCode, RenderedError};
use crate::guard::check_origin;
use crate::mcp::{ClientChannel, McpCaller, McpServer, RpcMessage, refusal};
use crate::state::AppState;
use sessions::McpSessions;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// What the routes share.
pub(super) struct McpSurface {
    service: StreamableHttpService<McpServer, NeverSessionManager>,
    sessions: Arc<McpSessions>,
}

impl McpSurface {
    pub(super) fn new(state: &AppState) -> Arc<Self> {
        let settings = &state.settings;
        let agent = state.agent.clone();
        let server = McpServer::for_requests(state.engine.clone(), state.admission.clone(), settings.limits(), agent);
        // Callers, origins and sizes have been checked before a request reaches this service.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX);
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
        let sessions = Arc::new(McpSessions::new(settings.mcp.max_sessions, settings.mcp.session_idle.0));
        Arc::new(Self { service, sessions })
    }
}

/// Gives the routes what they share, and their errors JSON-RPC's shape.
pub(super) fn add_layers(router: Router<AppState>, state: &AppState) -> Router<AppState> {
    router.route_layer(Extension(McpSurface::new(state))).route_layer(from_fn_with_state(state.clone(), guard))
}

/// The id of the JSON-RPC message, in the extensions of an error response.
#[derive(Debug, Clone)]
struct MessageId(Value);

/// Gives errors JSON-RPC's shape, and refuses what a browser sends for a page of a site that is not allowed.
async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match check_origin(&parts, &state.settings) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => error.into_response(),
    };
    if let Some(error) = response.extensions().get::<ApiError>() {
        let id = response.extensions().get::<MessageId>().map_or(Value::Null, |id| id.0.clone());
        let rendered = rendered(error, &id);
        response.extensions_mut().insert(rendered);
    }
    response
}

/// Writes an error of a message whose id is not known.
pub(super) fn error_response(error: ApiError) -> Response {
    let rendered = rendered(&error, &Value::Null);
    let mut response = error.into_response();
    response.extensions_mut().insert(rendered);
    response
}

/// Returns an error of the server in its own status, as JSON-RPC writes it.
fn rendered(error: &ApiError, id: &Value) -> RenderedError {
    RenderedError { status: error.http_status(), body: refusal(error, id) }
}

/// `DELETE /mcp`: ends a session, and its requests with it.
pub(super) async fn delete(
    Extension(surface): Extension<Arc<McpSurface>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = header_text(&headers, &[SESSION_ID.as_str()])?.ok_or_else(|| {
        ApiError::new(ErrorCode::InvalidRequest, "the header Mcp-Session-Id names the session to end")
    })?;
    surface.sessions.close(&id, principal.subject())?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /mcp`: one message of a client, or a batch of them.
pub(super) async fn post(
    State(state): State<AppState>,
    Extension(surface): Extension<Arc<McpSurface>>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    check_types(&mut parts)?;
    let database = header_text(&parts.headers, &["x-database"])?;
    let bytes = read_body(body, state.settings.http.max_query_bytes.0, &state.settings.http).await?;
    let sent = parse_exact_json(&bytes)
        .map_err(|error| ApiError::new(ErrorCode::BadRequestBody, format!("the body is not JSON: {error}")))?;
    let session = header_text(&parts.headers, &[SESSION_ID.as_str()])?;
    if let Value::Array(messages) = sent {
        batch::check(&parts.headers, &messages)?;
        // Each message has a length of its own.
        parts.headers.remove(header::CONTENT_LENGTH);
        return Ok(batch::answer(McpPost { surface, principal, database, session, parts }, messages).await);
    }
    let message = RpcMessage::of(&sent)?;
    Ok(McpPost { surface, principal, database, session, parts }.answer(message, bytes).await)
}

/// What the messages of one POST share: who sends them, in which session, with which headers.
struct McpPost {
    surface: Arc<McpSurface>,
    principal: Principal,
    database: Option<String>,
    session: Option<String>,
    parts: Parts,
}

impl McpPost {
    /// Answers one message, whose bytes are `body`.
    async fn answer(&self, message: RpcMessage, body: Bytes) -> Response {
        let (surface, session) = (&*self.surface, self.session.as_deref());
        let (principal, subject) = (self.principal.clone(), self.principal.subject());
        let id = message.id.clone();
        let gone = CancellationToken::new();
        let log_level = session.and_then(|session| surface.sessions.log_level(session, subject));
        let shows_apps = session.is_some_and(|session| surface.sessions.shows_apps(session, subject));
        let (events, asked) = unbounded_channel();
        let open = session.and_then(|session| surface.sessions.open_requests(session, subject));
        let client = open.map(|open| ClientChannel { open, events });
        let (database, called_off) = (self.database.clone(), gone.clone());
        let mut parts = self.parts.clone();
        parts.extensions.insert(McpCaller { principal, database, gone: called_off, log_level, shows_apps, client });
        let request = Request::from_parts(parts, Body::from(body));
        let answered = answer(surface, subject, session, message, request, gone, asked).await;
        answered.unwrap_or_else(|error| {
            let mut response = error.into_response();
            response.extensions_mut().insert(MessageId(id.unwrap_or(Value::Null)));
            response
        })
    }
}

/// Serves a message. `gone` is cancelled when nobody waits any more: the body has ended or was dropped, or this future
/// was. `asked` are events with what the server asks the client.
async fn answer(
    surface: &McpSurface,
    subject: &str,
    session: Option<&str>,
    message: RpcMessage,
    request: Request,
    gone: CancellationToken,
    asked: UnboundedReceiver<Bytes>,
) -> Result<Response, ApiError> {
    let waits = gone.clone().drop_guard();
    message.check_cursor()?;
    if let Some(session) = session {
        surface.sessions.touch(session, subject)?;
        if let Some(cancelled) = &message.cancels {
            surface.sessions.cancel(session, cancelled);
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        if let Some((asked_id, said)) = &message.answers
            && surface.sessions.answer(session, asked_id, said)
        {
            return Ok(StatusCode::ACCEPTED.into_response());
        }
    }
    let call = match (session, &message.id) {
        (Some(session), Some(id)) => Some(surface.sessions.begin(session, id, gone.clone())?),
        _ => None,
    };
    let response = tokio::select! {
        response = surface.service.handle(request) => response,
        () = gone.cancelled() => return Ok(StatusCode::ACCEPTED.into_response()),
    };
    let mut response = readable(response.map(Body::new)).await?;
    if message.is_initialize && session.is_none() && response.status().is_success() {
        let opened = surface.sessions.open(subject, message.client)?;
        let value = HeaderValue::from_str(&opened).map_err(ApiError::internal)?;
        response.headers_mut().insert(SESSION_ID, value);
    }
    Ok(response.map(|body| {
        let frames = body.into_data_stream().take_until(gone.cancelled_owned()).map(move |frame| {
            let _ = (&call, &waits);
            frame
        });
        Body::from_stream(with_requests(frames, asked))
    }))
}

/// Returns the frames of an answer with those of the server's requests between them, to the end of the answer.
fn with_requests(
    frames: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
    mut asked: UnboundedReceiver<Bytes>,
) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static {
    let frames = frames.map(Some).chain(stream::once(ready(None)));
    let asked = stream::poll_fn(move |context| asked.poll_recv(context)).map(|event| Some(Ok(event)));
    stream::select(frames, asked).take_while(|frame| ready(frame.is_some())).filter_map(ready)
}

/// Turns the plain-text refusals of the protocol library into errors of ours.
async fn readable(response: Response) -> Result<Response, ApiError> {
    let status = response.status();
    let is_json =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes() == b"application/json");
    if status.is_success() {
        return Ok(response);
    }
    if is_json {
        return with_id(response).await;
    }
    let text = response.into_body().collect().await.map_err(ApiError::internal)?.to_bytes();
    let text = String::from_utf8_lossy(&text).into_owned();
    Err(match status {
        status if status.is_server_error() => ApiError::internal(text),
        // The content type is JSON; the body is not a message that the library knows.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::new(ErrorCode::InvalidRequest, "the body is no message of MCP"),
        _ => ApiError::new(ErrorCode::InvalidRequest, text),
    })
}

/// Gives an error of the protocol library the id that JSON-RPC wants, null where no request is known.
async fn with_id(response: Response) -> Result<Response, ApiError> {
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(ApiError::internal)?.to_bytes();
    let bytes = match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut message) if message["error"].is_object() && message.get("id").is_none() => {
            parts.headers.remove(header::CONTENT_LENGTH);
            message["id"] = Value::Null;
            message.to_string().into()
        }
        _ => bytes,
    };
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Checks that a client sends JSON and accepts JSON and event streams. A missing `Accept` means both.
fn check_types(parts: &mut Parts) -> Result<(), ApiError> {
    let sent = header_text(&parts.headers, &["content-type"])?.unwrap_or_default();
    if !essence(&sent).eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, "the body must be application/json"));
    }
    let accepted: Vec<&str> =
        parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let takes = |kind: &str, any: &str| {
        let mut sent = accepted.iter().flat_map(|value| value.split(',')).map(essence);
        accepted.is_empty() || sent.any(|one| [kind, any, "*/*"].iter().any(|known| one.eq_ignore_ascii_case(known)))
    };
    if !(takes("application/json", "application/*") && takes("text/event-stream", "text/*")) {
        return Err(ApiError::new(ErrorCode::NotAcceptable, "answers are application/json or text/event-stream")
            .with_hint("send `Accept: application/json, text/event-stream`"));
    }
    parts.headers.insert(header::ACCEPT, BOTH_TYPES);
    Ok(())
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

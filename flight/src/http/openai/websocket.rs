//! Responses over a WebSocket: `GET /v1/responses` with an upgrade. Each `response.create` is a request as the body of
//! `POST /v1/responses` is one, and its events come back as messages. The requests of one lane (`stream_id`) are
//! answered one after the other, lanes beside each other. Reference:
//! <https://developers.openai.com/api/docs/guides/websocket-mode>.
//!
//! Invariant: who calls is asked again for each request, since a connection may outlive its token.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures::SinkExt;
use http::HeaderMap;
use http::request::Parts;
use querent_agent::Protocol;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::responses::{ResponsesRenderer, parse_event};
use querent_catalog::Role;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::{Instrument, Span};

use super::error::OpenAiError;
use super::fields::any_fields;
use super::responses::{check_tool_servers, dialect_of, start};
use super::run::wait_for_start;
use crate::auth::require_role;
use crate::connection::ConnectionPlace;
use crate::error::{ApiError, ErrorCode};
use crate::guard::check_origin;
use crate::http::request::{ApiCall, too_large};
use crate::state::AppState;

/// Lanes of a connection beside the one without a name.
const MAX_NAMED_LANES: usize = 32;
/// Requests of one lane that wait for those before them.
const MAX_WAITING_REQUESTS: usize = 16;
/// The requests of a connection that wait or are answered have together so many times the bytes that one may have.
const MAX_BYTES_TIMES: usize = 2;
const KIB: usize = 1 << 10;
const MAX_LANE_BYTES: usize = 256;
/// Messages that wait for a slow client, and that are sent before the client is read from again.
const MAX_WAITING_MESSAGES: usize = 256;
/// How often a silent client is asked whether it is there. It has until the next time to answer.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a client may take to read a message, with those that waited behind it.
const SEND_WITHIN: Duration = Duration::from_secs(60);
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// `GET /v1/responses` with an upgrade.
pub(in crate::http) async fn connect(
    ApiCall { state, .. }: ApiCall,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    parts: Parts,
) -> Result<Response, OpenAiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let why = rejection.body_text();
        OpenAiError::upgrade_required(format!("{why}; `POST /v1/responses` takes a request without a WebSocket"))
    })?;
    // Browsers let any page open a WebSocket, with the credentials that they keep for this host.
    check_origin(&parts, &state.settings)?;
    let place = parts.extensions.get::<ConnectionPlace>().cloned();
    let caller = SocketCaller { state: state.clone(), headers: Arc::new(parts.headers) };
    // What is over the limit is refused by a message; what is far over it ends the connection.
    let bytes = caller.max_bytes().saturating_mul(2);
    let upgrade = upgrade.max_message_size(bytes).max_frame_size(bytes);
    let span = Span::current();
    Ok(upgrade.on_upgrade(move |socket| async move {
        let served = async move {
            serve(socket, caller).await;
            drop(place);
        };
        // As a task that a shutdown waits for.
        let _ = state.shutdown.spawn(served.instrument(span)).await;
    }))
}

/// Who opened a connection.
#[derive(Clone)]
struct SocketCaller {
    state: AppState,
    /// Of the request for the upgrade.
    headers: Arc<HeaderMap>,
}

/// What a client says.
enum SocketEvent {
    /// `response.create`: its lane, and the fields of the request.
    Create(Option<String>, Map<String, Value>),
    /// `response.steer`.
    Steer(Map<String, Value>),
}

/// Passes messages between a connection and its lanes until one of both ends.
async fn serve(mut socket: WebSocket, caller: SocketCaller) {
    let shutdown = caller.state.shutdown.clone();
    let (sender, mut messages) = mpsc::channel(MAX_WAITING_MESSAGES);
    let room = RequestRoom::new(caller.max_bytes());
    let mut lanes = SocketLanes { caller, open: HashMap::new(), tasks: JoinSet::new(), room, messages: Some(sender) };
    let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_heard, mut is_draining) = (true, false);
    let code = loop {
        let is_sent = tokio::select! {
            // What the client said while a message was sent is read before its silence is judged.
            biased;
            () = shutdown.draining(), if !is_draining => {
                is_draining = true;
                lanes.finish();
                true
            }
            read = socket.recv() => {
                is_heard = true;
                let answer = match read {
                    Some(Ok(Message::Text(text))) => lanes.take(text.as_bytes()),
                    Some(Ok(Message::Binary(bytes))) => lanes.take(&bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                    Some(Ok(Message::Close(_))) | None => break None,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a WebSocket ended");
                        break Some(close_code::PROTOCOL);
                    }
                };
                match answer {
                    Some(answer) => send(&mut socket, Message::Text(answer.into())).await,
                    None => true,
                }
            }
            message = messages.recv() => match message {
                Some(first) => send_ready(&mut socket, first, &mut messages).await,
                // The server stops, and every lane has ended.
                None => break Some(close_code::AWAY),
            },
            _ = ping.tick() => {
                if !std::mem::take(&mut is_heard) {
                    break Some(close_code::POLICY);
                }
                send(&mut socket, Message::Ping(Bytes::new())).await
            }
        };
        if !is_sent {
            break None;
        }
    };
    // The runs lose their client.
    drop(lanes);
    let _ = timeout(CLOSE_WITHIN, close(socket, code)).await;
}

/// What the requests of a connection may have in all.
struct RequestRoom(Arc<Semaphore>);

impl RequestRoom {
    fn new(max_bytes: usize) -> Self {
        let kibibytes = max_bytes.div_ceil(KIB).saturating_mul(MAX_BYTES_TIMES);
        Self(Arc::new(Semaphore::new(kibibytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Takes the place of a request, until what is returned is dropped; `None` where it is taken by others.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kibibytes = u32::try_from(bytes.div_ceil(KIB)).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(kibibytes).ok()
    }
}

/// A request in its lane.
struct LaneRequest {
    fields: Map<String, Value>,
    /// Its place among the bytes of the connection's requests.
    _place: OwnedSemaphorePermit,
}

/// The lanes of a connection, each a task that answers one request after the other.
struct SocketLanes {
    caller: SocketCaller,
    open: HashMap<Option<String>, mpsc::Sender<LaneRequest>>,
    tasks: JoinSet<()>,
    room: RequestRoom,
    /// To the client; `None` once the server stops.
    messages: Option<mpsc::Sender<String>>,
}

impl SocketLanes {
    /// Gives a message to its lane. Returns what is to be answered at once.
    fn take(&mut self, message: &[u8]) -> Option<String> {
        match read_event(message, self.caller.max_bytes()) {
            Ok(SocketEvent::Steer(fields)) => Some(not_steered(&fields)),
            Ok(SocketEvent::Create(lane, fields)) => {
                let refusal = self.ask(lane.clone(), fields, message.len()).err()?;
                Some(in_lane(refusal.event().to_string(), lane.as_deref()))
            }
            Err(error) => Some(error.event().to_string()),
        }
    }

    /// Puts a request of so many bytes into its lane, which is opened by its first one.
    fn ask(&mut self, lane: Option<String>, fields: Map<String, Value>, bytes: usize) -> Result<(), OpenAiError> {
        let Some(messages) = &self.messages else {
            return Err(OpenAiError::from(ApiError::new(
                ErrorCode::ShuttingDown,
                "the server stops; connect again and send the request there",
            )));
        };
        let Some(place) = self.room.take(bytes) else {
            return Err(OpenAiError::from(ApiError::new(
                ErrorCode::TooManyRequests,
                format!(
                    "the requests of a connection that wait or are answered have together at most {MAX_BYTES_TIMES} \
                     times the bytes of one; send the next one when a response has ended"
                ),
            )));
        };
        let requests = match self.open.get(&lane) {
            Some(requests) => requests,
            None => {
                let named = self.open.keys().flatten().count();
                if lane.is_some() && named >= MAX_NAMED_LANES {
                    let message = format!("a connection has at most {MAX_NAMED_LANES} values of `stream_id`");
                    return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "stream_id", message));
                }
                let (sender, requests) = mpsc::channel(MAX_WAITING_REQUESTS);
                let task = self.caller.clone().answer(lane.clone(), requests, messages.clone());
                self.tasks.spawn(task.in_current_span());
                &*self.open.entry(lane).or_insert(sender)
            }
        };
        requests.try_send(LaneRequest { fields, _place: place }).map_err(|error| match error {
            TrySendError::Full(_) => OpenAiError::from(ApiError::new(
                ErrorCode::TooManyRequests,
                format!(
                    "{MAX_WAITING_REQUESTS} requests of this lane wait; send the next one when a response has ended"
                ),
            )),
            TrySendError::Closed(_) => OpenAiError::from(ApiError::internal("a lane has ended")),
        })
    }

    /// Takes no more requests. The channel of messages ends when all that were taken are answered.
    fn finish(&mut self) {
        self.messages = None;
        self.open.clear();
    }
}

impl SocketCaller {
    fn max_bytes(&self) -> usize {
        self.state.settings.http.max_query_bytes.to_usize()
    }

    /// Answers the requests of a lane.
    async fn answer(
        self,
        lane: Option<String>,
        mut requests: mpsc::Receiver<LaneRequest>,
        messages: mpsc::Sender<String>,
    ) {
        while let Some(LaneRequest { fields, _place }) = requests.recv().await {
            if let Err(error) = self.respond(fields, lane.as_deref(), &messages).await {
                let event = in_lane(error.event().to_string(), lane.as_deref());
                if messages.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Sends the events of a response. Errors: there is none.
    async fn respond(
        &self,
        mut fields: Map<String, Value>,
        lane: Option<&str>,
        messages: &mpsc::Sender<String>,
    ) -> Result<(), OpenAiError> {
        let principal = self.state.auth.authenticate(&self.headers).await?;
        require_role(&principal, Role::Read)?;
        check_fields(&mut fields)?;
        // As large bodies of other requests are.
        let request = tokio::task::spawn_blocking(move || parse_event(fields)).await.map_err(ApiError::internal)??;
        check_tool_servers(&request, &self.headers)?;
        let dialect = dialect_of(&request, &self.headers)?;
        let (_, events) = start(&self.state, &principal, request, Protocol::Responses).await?;
        let mut events = wait_for_start(events).await?;
        let mut renderer = ResponsesRenderer::new(dialect);
        while let Some(batch) = events.next_batch().await {
            for event in batch.iter() {
                for frame in renderer.frame(event) {
                    if messages.send(in_lane(frame.data, lane)).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads a message. Errors: what is no event of a client, and what names no lane.
fn read_event(message: &[u8], max_bytes: usize) -> Result<SocketEvent, OpenAiError> {
    if message.len() > max_bytes {
        return Err(OpenAiError::from(too_large(u64::try_from(max_bytes).unwrap_or(u64::MAX))));
    }
    let mut fields = any_fields(message)?;
    let refused = |param: &str, message: &str| Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, param, message));
    match fields.remove("type") {
        Some(Value::String(kind)) if kind == "response.create" => {}
        Some(Value::String(kind)) if kind == "response.steer" => return Ok(SocketEvent::Steer(fields)),
        _ => return refused("type", "`type` is `response.create`, or `response.steer`, which is not done here"),
    }
    let lane = match fields.remove("stream_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(lane)) if is_lane(&lane) => Some(lane),
        Some(_) => return refused("stream_id", "`stream_id` has 1 to 256 letters, digits, `_`, `-` and `.`"),
    };
    Ok(SocketEvent::Create(lane, fields))
}

/// Takes out what only such a request has, and refuses what has no meaning here.
fn check_fields(fields: &mut Map<String, Value>) -> Result<(), OpenAiError> {
    let refused = |param: &str, message: &str| Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, param, message));
    if !matches!(fields.remove("generate"), None | Some(Value::Null | Value::Bool(true))) {
        return refused(
            "generate",
            "`generate` is only `true`: send the input with the request that is to be answered",
        );
    }
    if fields.get("stream") == Some(&Value::Bool(false)) {
        return refused("stream", "a WebSocket has events only; leave `stream` out, or use `POST /v1/responses`");
    }
    if fields.get("background") == Some(&Value::Bool(true)) {
        return refused("background", "`background` is for `POST /v1/responses`; here the events are sent");
    }
    Ok(())
}

fn is_lane(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_LANE_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns the answer to `response.steer`, with what was said, so that the client can say it in a request.
fn not_steered(fields: &Map<String, Value>) -> String {
    let message = "a response here is not steered; cancel it, or send `response.create` with `previous_response_id` \
                   when it has ended";
    json!({
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": { "type": "invalid_request_error", "code": "steering_not_supported", "message": message },
        "steer": { "input": fields.get("input"), "previous_response_id": fields.get("previous_response_id") },
    })
    .to_string()
}

/// Adds the lane to an event, which is a JSON object with members.
fn in_lane(event: String, lane: Option<&str>) -> String {
    let Some(lane) = lane else { return event };
    let members = event.strip_prefix('{').unwrap_or(&event);
    format!("{{\"stream_id\":\"{lane}\",{members}")
}

/// Sends a message. Returns whether the client took it in time.
async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(timeout(SEND_WITHIN, socket.send(message)).await, Ok(Ok(())))
}

/// Sends a message, with those that wait behind it by now: lanes that go on and on do not keep the client from being
/// read. Returns whether it took them in time.
async fn send_ready(socket: &mut WebSocket, first: String, messages: &mut mpsc::Receiver<String>) -> bool {
    let waiting = messages.len();
    let sent = async {
        socket.feed(Message::Text(first.into())).await?;
        for _ in 0..waiting {
            let Ok(message) = messages.try_recv() else { break };
            socket.feed(Message::Text(message.into())).await?;
        }
        socket.flush().await
    };
    matches!(timeout(SEND_WITHIN, sent).await, Ok(Ok(())))
}

/// Ends a connection: says so with `code`, or answers a client that did.
async fn close(mut socket: WebSocket, code: Option<u16>) {
    if let Some(code) = code {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static("") };
        if socket.send(Message::Close(Some(frame))).await.is_err() {
            return;
        }
    }
    // Reading sends the answer to a client's close, and finds that to ours.
    while let Some(Ok(_)) = socket.recv().await {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &Value) -> Result<(Option<String>, Map<String, Value>), Value> {
        let param = |error: OpenAiError| error.event()["error"]["param"].clone();
        match read_event(message.to_string().as_bytes(), 1_000).map_err(param)? {
            SocketEvent::Create(lane, mut fields) => {
                check_fields(&mut fields).map_err(param)?;
                Ok((lane, fields))
            }
            SocketEvent::Steer(_) => Err(json!("steer")),
        }
    }

    #[test]
    fn a_message_is_a_request_or_refused_by_its_field() {
        let create = |more: Value| {
            let mut message = json!({ "type": "response.create", "input": "thanks" });
            message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            message
        };
        let (lane, fields) =
            read(&create(json!({ "stream_id": "a.b-c_1", "generate": true, "stream": true }))).unwrap();
        assert_eq!(lane.as_deref(), Some("a.b-c_1"));
        assert_eq!(Value::Object(fields), json!({ "input": "thanks", "stream": true }));
        assert!(read(&create(json!({ "stream_id": null, "background": false }))).is_ok());
        for (message, param) in [
            (json!({ "input": "thanks" }), "type"),
            (json!({ "type": "session.update" }), "type"),
            (create(json!({ "stream_id": "" })), "stream_id"),
            (create(json!({ "stream_id": "a b" })), "stream_id"),
            (create(json!({ "stream_id": 7 })), "stream_id"),
            (create(json!({ "stream_id": "a".repeat(257) })), "stream_id"),
            (create(json!({ "generate": false })), "generate"),
            (create(json!({ "stream": false })), "stream"),
            (create(json!({ "background": true })), "background"),
            (json!([]), "body"),
        ] {
            assert_eq!(read(&message), Err(json!(param)), "{message}");
        }
        assert_eq!(read(&json!({ "type": "response.steer", "input": "x" })), Err(json!("steer")));
        let long = json!({ "type": "response.create", "input": "x".repeat(1_000) });
        let Err(error) = read_event(long.to_string().as_bytes(), 1_000) else { panic!("not refused") };
        assert_eq!(error.event()["status"], 413);
    }

    #[test]
    fn what_requests_have_together_is_bounded() {
        let room = RequestRoom::new(16 * KIB);
        let first = room.take(16 * KIB);
        assert!(first.is_some());
        let second = room.take(15 * KIB + 1);
        assert!(second.is_some());
        assert!(room.take(1).is_none());
        drop(first);
        assert!(room.take(16 * KIB).is_some());
        assert!(room.take(16 * KIB + 1).is_none());
    }

    #[test]
    fn a_lane_is_a_member_of_its_events() {
        let event = || r#"{"type":"error"}"#.to_owned();
        assert_eq!(in_lane(event(), None), event());
        assert_eq!(in_lane(event(), Some("a")), r#"{"stream_id":"a","type":"error"}"#);
    }
}

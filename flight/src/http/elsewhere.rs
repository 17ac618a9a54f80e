//! Requests about a run that another server of a shared catalog has in progress: the one place that sends them there.
//!
//! A handler need not know. What it asks the agent for, a run's events or its end, fails with `run_elsewhere`, which names the
//! server in a header ([`RUN_SERVER`]); one that can answer from what is stored says the same of its answer ([`as_stored`]).
//! [`forward`], right around each handler, finds the header, sends the request to that server as it came, and passes the
//! server's answer on as it is made. Where that server is not reached, the handler's own answer holds.
//!
//! Invariant: a handler whose answer has the header has done nothing that counts when it is done again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use querent_agent::AgentError;
use querent_catalog::RunRecord;

use crate::auth::CLIENT_CERTIFICATE;
use crate::error::RUN_SERVER;
use crate::http::request::RequestId;
use crate::state::AppState;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Marks an answer that was made of what is stored of a run, so that it is asked for where the run is in progress.
pub(in crate::http) async fn as_stored(
    state: &AppState,
    run: Option<&RunRecord>,
    mut answer: Response,
) -> Result<Response, AgentError> {
    let server = match run {
        Some(run) => state.agent.server_of_run(run).await?,
        None => None,
    };
    if let Some(server) = server.and_then(|server| HeaderValue::from_str(&server).ok()) {
        answer.headers_mut().insert(RUN_SERVER, server);
    }
    Ok(answer)
}

/// Sends a request to the server that has its run in progress, where this one does not.
pub(in crate::http) async fn forward(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if !state.forwarding.is_shared() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let was_forwarded = match state.forwarding.forwarded(&parts.method, &parts.uri, &parts.headers) {
        Ok(forwarded) => forwarded.is_some(),
        Err(error) => return error.into_response(),
    };
    if was_forwarded {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let copy = Arc::<Mutex<BodyCopy>>::default();
    let sent = SentRequest {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        headers: parts.headers.clone(),
        request_id: parts.extensions.get::<RequestId>().cloned(),
        body: Arc::clone(&copy),
    };
    let room = state.settings.http.max_query_bytes.to_usize();
    let body = Body::new(CopiedBody { inner: body, copy, room });
    let answer = next.run(Request::from_parts(parts, body)).await;
    let server = answer.headers().get(RUN_SERVER).and_then(|server| server.to_str().ok()).map(str::to_owned);
    let Some(server) = server else { return answer };
    match sent.forwarded_to(&state, &server).await {
        Ok(theirs) => theirs,
        Err(reason) => {
            tracing::warn!(server, reason, "a request about a run was not forwarded to the server that has the run");
            answer
        }
    }
}

/// A request as it came.
struct SentRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    request_id: Option<RequestId>,
    body: Arc<Mutex<BodyCopy>>,
}

impl SentRequest {
    /// Sends it to another server. Errors: why there is no answer.
    async fn forwarded_to(self, state: &AppState, server: &str) -> Result<Response, String> {
        let address = state.engine.catalog().members().address_of(server).await.map_err(|error| error.to_string())?;
        let address = address.ok_or("it has not said where it is reached: set cluster.address there")?;
        let certificate = self.headers.get(CLIENT_CERTIFICATE);
        if let Some(reason) = state.forwarding.unknown_there(&self.headers, certificate) {
            return Err(reason.to_owned());
        }
        let body = self.body.lock().taken().ok_or("its body is longer than http.max_query_bytes")?;
        let mut request = http::Request::new(body);
        *request.headers_mut() = state.forwarding.headers(&self.method, &self.uri, &self.headers, certificate);
        // Both logs then have it.
        if let Some(id) = self.request_id.and_then(|RequestId(id)| HeaderValue::from_str(&id).ok()) {
            request.headers_mut().insert(REQUEST_ID, id);
        }
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|error| format!("its path cannot be sent: {error}"))?;
        *request.method_mut() = self.method;
        let answer = state.forwarding.send(&address, request).await?;
        tracing::debug!(server, address, status = answer.status().as_u16(), "a request about a run was forwarded");
        Ok(answer.map(Body::new))
    }
}

/// What a handler has read of a request's body.
#[derive(Default)]
struct BodyCopy {
    pieces: Vec<Bytes>,
    /// There was more than is copied.
    is_cut: bool,
}

impl BodyCopy {
    fn taken(&mut self) -> Option<Bytes> {
        let mut pieces = std::mem::take(&mut self.pieces);
        match pieces.len() {
            _ if self.is_cut => None,
            0 => Some(Bytes::new()),
            1 => pieces.pop(),
            _ => Some(pieces.concat().into()),
        }
    }
}

/// A body that is copied as it is read, up to some size. The copy shares its memory.
struct CopiedBody {
    inner: Body,
    copy: Arc<Mutex<BodyCopy>>,
    /// The bytes that are still copied.
    room: usize,
}

impl http_body::Body for CopiedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let mut copy = this.copy.lock();
            match this.room.checked_sub(data.len()) {
                Some(room) if !copy.is_cut => {
                    this.room = room;
                    copy.pieces.push(data.clone());
                }
                _ => *copy = BodyCopy { pieces: Vec::new(), is_cut: true },
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn copied(pieces: &[&'static str], room: usize) -> Option<Bytes> {
        let copy = Arc::<Mutex<BodyCopy>>::default();
        let pieces: Vec<Result<&'static str, std::io::Error>> = pieces.iter().map(|piece| Ok(*piece)).collect();
        let inner = Body::from_stream(futures::stream::iter(pieces));
        let body = CopiedBody { inner, copy: Arc::clone(&copy), room };
        body.collect().await.unwrap();
        copy.lock().taken()
    }

    #[tokio::test]
    async fn a_body_is_copied_as_far_as_there_is_room() {
        assert_eq!(copied(&[], 5).await, Some(Bytes::new()));
        assert_eq!(copied(&["ab"], 5).await, Some(Bytes::from("ab")));
        assert_eq!(copied(&["ab", "cde"], 5).await, Some(Bytes::from("abcde")));
        assert_eq!(copied(&["ab", "cdef", "g"], 5).await, None);
    }
}

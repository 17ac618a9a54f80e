//! What a connection and the answer to its request know of each other over HTTP/1: whether the request has been received
//! whole, and whether its answer has begun and ended. The connection needs it when its client stops sending
//! (`server/half_close.rs`). Invariant: a connection has one exchange at a time, as HTTP/1 answers in order.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use http::{HeaderMap, Method, Request, Response, Version, header};
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

/// The exchange that a connection is in, shared by the connection and the bodies of the request and the answer.
#[derive(Clone, Default)]
pub(crate) struct Exchange {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// All of the request's body has been read.
    is_request_whole: bool,
    /// The client has stopped sending.
    is_input_closed: bool,
    /// The body was read after the client had stopped sending, and there was nothing.
    is_request_cut: bool,
    /// Who waits to read from the connection after its client has stopped sending.
    connection: Option<Waker>,
    /// Who waits for more of the request's body.
    request: Option<Waker>,
}

/// How far the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// There is no request.
    #[default]
    Idle,
    /// The request is being answered, and nothing has been sent.
    Asked,
    /// The answer's body is being sent. `is_chunked`: in chunks, each after its length.
    Answering { is_chunked: bool },
}

/// What a connection does about a client that has stopped sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedInput {
    /// It is the end of the connection: there is no request, or not the whole of one.
    End,
    /// Whether the request is whole is not known yet.
    Wait,
    /// A whole request waits for its answer.
    Answer(Stage),
}

impl Exchange {
    /// Begins with a request. Its answer must be passed through [`Exchange::answer`].
    pub(crate) fn begin(&self, request: &Request<Incoming>) {
        let mut state = self.state.lock();
        state.stage = Stage::Asked;
        state.is_request_whole = request.body().is_end_stream();
        state.is_request_cut = false;
        state.request = None;
    }

    /// Returns the answer to a request with `method` over `version`; the exchange ends when its body is dropped.
    pub(crate) fn answer(&self, response: Response<Body>, method: &Method, version: Version) -> Response<AnswerBody> {
        if version == Version::HTTP_2 {
            return response.map(|body| AnswerBody { body, exchange: None });
        }
        let is_chunked = version == Version::HTTP_11
            && *method != Method::HEAD
            && response.body().size_hint().exact().is_none()
            && !has_length(response.headers());
        self.state.lock().stage = Stage::Answering { is_chunked };
        response.map(|body| AnswerBody { body, exchange: Some(self.clone()) })
    }

    /// Says what to do about the end of the client's bytes; `context` is woken when that may have changed.
    pub(crate) fn input_closed(&self, context: &Context<'_>) -> ClosedInput {
        let mut state = self.state.lock();
        state.is_input_closed = true;
        let request = state.request.take();
        let closed = match state.stage {
            Stage::Idle => ClosedInput::End,
            stage if state.is_request_whole => ClosedInput::Answer(stage),
            _ if state.is_request_cut => ClosedInput::End,
            _ => ClosedInput::Wait,
        };
        state.connection = (closed != ClosedInput::End).then(|| context.waker().clone());
        drop(state);
        wake(request);
        closed
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Idle;
        let connection = state.connection.take();
        drop(state);
        wake(connection);
    }
}

/// Wakes who waits, which may run what they hold: not under a lock.
fn wake(waiting: Option<Waker>) {
    if let Some(waiting) = waiting {
        waiting.wake();
    }
}

fn has_length(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_LENGTH)
}

/// The body of a request, which tells its exchange when it has been read.
pub(crate) struct TrackedBody {
    body: Incoming,
    exchange: Exchange,
}

impl TrackedBody {
    pub(crate) fn new(body: Incoming, exchange: Exchange) -> Self {
        Self { body, exchange }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Asked first: what the connection has read by then can be polled.
        let was_closed = self.exchange.state.lock().is_input_closed;
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let mut state = self.exchange.state.lock();
        let mut waiting = None;
        if polled.is_pending() {
            state.request = Some(context.waker().clone());
            if was_closed {
                state.is_request_cut = true;
                waiting = state.connection.take();
            } else if state.is_input_closed {
                // The end came while it was polled.
                waiting = state.request.take();
            }
        } else if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            state.is_request_whole = true;
            waiting = state.connection.take();
        }
        drop(state);
        wake(waiting);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. Its exchange ends when hyper drops it: after its last frame, or with the connection.
pub(crate) struct AnswerBody {
    body: Body,
    /// None: over HTTP/2.
    exchange: Option<Exchange>,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.end();
        }
    }
}

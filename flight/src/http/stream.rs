//! Streams a run's events as server-sent events: each chunk holds whole frames, as many as are ready, and a heartbeat is
//! sent while a model is silent.
//!
//! The heartbeat is a comment that ends with one line feed. With a second one, `@microsoft/fetch-event-source` would pass
//! an empty message to its user, whose parser fails, and would send the request again.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::{FutureExt, Stream};
use http::{HeaderName, HeaderValue, header};
use querent_agent::protocols::Renderer;
use querent_agent::{RunEvent, RunEvents};

/// Proxies cut connections that are silent for long; a model may be.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
/// The size at which a chunk is sent, which bounds what waits for one reader.
const CHUNK_BYTES: usize = 16 << 10;
/// The size of most events, one word and its envelope: of the briefest protocols, and of the longest.
const LEAST_EVENT_BYTES: usize = 128;
const MOST_EVENT_BYTES: usize = 512;
const HEARTBEAT: Bytes = Bytes::from_static(b": ping\n");
/// nginx buffers responses unless told not to.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Streams what `renderer` makes of `events`.
pub(super) fn event_stream(events: RunEvents, renderer: impl Renderer + 'static) -> Response {
    streamed(frames(events, renderer, |renderer, event, chunk| renderer.push_sse(event, chunk), || ()))
}

/// Streams what `renderer` makes of `events`. `push` adds the frames of an event to its chunk. `at_end` is called when everything
/// has been sent, and dropped with the body otherwise.
pub(super) fn event_stream_with<R: Renderer + 'static>(
    events: RunEvents,
    renderer: R,
    push: impl FnMut(&mut R, &RunEvent, &mut Vec<u8>) + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> Response {
    streamed(frames(events, renderer, push, at_end))
}

fn streamed(frames: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

fn frames<R: Renderer + 'static>(
    mut events: RunEvents,
    mut renderer: R,
    mut push: impl FnMut(&mut R, &RunEvent, &mut Vec<u8>) + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    async_stream::stream! {
        let mut chunk = Vec::new();
        let mut event_bytes = LEAST_EVENT_BYTES;
        loop {
            let ready = events.next_batch().now_or_never();
            // A timer is made only when nothing is ready and the chunk is empty.
            let next = match ready {
                Some(next) => Ok(next),
                None if !chunk.is_empty() => {
                    yield Ok(Bytes::from(std::mem::take(&mut chunk)));
                    continue;
                }
                None => tokio::time::timeout(HEARTBEAT_EVERY, events.next_batch()).await,
            };
            match next {
                Err(_) => yield Ok(HEARTBEAT),
                Ok(None) => break,
                Ok(Some(batch)) => {
                    if chunk.is_empty() {
                        chunk.reserve(CHUNK_BYTES.min(batch.len() * event_bytes));
                    }
                    for event in batch.iter() {
                        push(&mut renderer, event, &mut chunk);
                        if chunk.len() >= CHUNK_BYTES {
                            yield Ok(Bytes::from(std::mem::take(&mut chunk)));
                        }
                    }
                    event_bytes = event_bytes.max(chunk.len() / batch.len().max(1)).min(MOST_EVENT_BYTES);
                }
            }
        }
        if !chunk.is_empty() {
            yield Ok(Bytes::from(chunk));
        }
        at_end();
    }
}

//! The body of a thread's stream: one line a chunk, and empty lines as heartbeats. Cube's own client splits each read at
//! line ends and drops the rest, so a line must never be split over two chunks.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::{FutureExt, StreamExt};
use http::{HeaderName, HeaderValue, header};
use querent_agent::RunEvents;
use querent_agent::protocols::cube::{CubeOutput, CubeRenderer};

/// Proxies cut connections that are silent for long; a model may be.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
const HEARTBEAT: Bytes = Bytes::from_static(b"\n");
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The lines that a reader gets.
pub(super) struct ThreadLines {
    /// Lines that are there already.
    pub(super) first: Vec<CubeOutput>,
    /// The run in progress, whose events become lines.
    pub(super) live: Option<(RunEvents, CubeRenderer)>,
    /// Whether thinking is shown.
    pub(super) shows_thinking: bool,
}

impl ThreadLines {
    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from_stream(self.chunks()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
        response
    }

    fn chunks(self) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send {
        let Self { first, live, shows_thinking } = self;
        let text = move |output: CubeOutput| {
            let output = if shows_thinking { Some(output) } else { output.without_thinking() };
            output.map(|output| Bytes::from(output.to_text()))
        };
        async_stream::stream! {
            for output in first {
                if let Some(line) = text(output) {
                    yield Ok(line);
                    // Yield, so that the line is written before the next one could be joined to it.
                    tokio::task::yield_now().await;
                }
            }
            let Some((mut events, mut renderer)) = live else { return };
            loop {
                let next = match events.next().now_or_never() {
                    Some(next) => Ok(next),
                    None => tokio::time::timeout(HEARTBEAT_EVERY, events.next()).await,
                };
                match next {
                    Err(_) => yield Ok(HEARTBEAT),
                    Ok(None) => break,
                    Ok(Some(event)) => {
                        for output in renderer.lines(&event) {
                            if let Some(line) = text(output) {
                                yield Ok(line);
                                tokio::task::yield_now().await;
                            }
                        }
                    }
                }
            }
        }
    }
}

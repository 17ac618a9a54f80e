//! Drains the body of a refused HTTP/1 request. A connection that is closed before the request has been read is reset,
//! and its client, which is still sending, may never see why it was refused. So the rest of an unread body is read and
//! discarded for a short time after the response.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Version};
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

use crate::exchange::{Exchange, TrackedBody};
use crate::shutdown::Shutdown;

/// How long a client may take to send the rest of its body.
const LINGER: Duration = Duration::from_secs(2);
/// The most bytes that are discarded.
const MAX_BYTES: usize = 16 << 20;

/// Begins `exchange` with a request, and wraps its body so that what is left of it when it is dropped is drained.
pub(crate) fn with_drained_body(request: Request<Incoming>, exchange: &Exchange, shutdown: &Shutdown) -> Request<Body> {
    // HTTP/2 can tell the client to stop, and has many exchanges.
    if request.version() == Version::HTTP_2 {
        return request.map(Body::new);
    }
    exchange.begin(&request);
    if request.body().is_end_stream() {
        return request.map(Body::new);
    }
    request.map(|body| {
        let body = Some(TrackedBody::new(body, exchange.clone()));
        Body::new(DrainedBody { body, shutdown: shutdown.clone() })
    })
}

struct DrainedBody {
    /// `None` once its end or a failure was seen.
    body: Option<TrackedBody>,
    shutdown: Shutdown,
}

impl hyper::body::Body for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        if Handle::try_current().is_ok() {
            self.shutdown.spawn(tokio::time::timeout(LINGER, drain(body)));
        }
    }
}

async fn drain(mut body: TrackedBody) {
    let mut bytes = 0;
    while bytes < MAX_BYTES {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(Ok(frame)) = frame else { return };
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}

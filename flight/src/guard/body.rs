//! The body of a gRPC call within bounds: a message that declares more bytes than its method takes is refused by its
//! five-byte header, before memory is reserved for it, and a client that sends nothing for too long is told so.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tonic::Status;

use crate::error::{ApiError, ErrorCode};

/// The bytes before each message: whether it is compressed, and its length.
const HEADER_BYTES: usize = 5;

/// What a call's body may be. The default is nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BodyBounds {
    /// The most bytes of one message.
    pub(super) message_bytes: usize,
    /// What to do about a message that is larger.
    pub(super) hint: &'static str,
    /// How long the next bytes may take.
    pub(super) idle: Duration,
    /// How long the body may take as a whole, where that is bounded.
    pub(super) whole: Option<Duration>,
    /// Whether the call has one message. It is complete with that, though its client goes away right behind it.
    pub(super) is_one_message: bool,
}

/// A body that keeps to its bounds, or fails with the status that says which one it broke.
pub(super) struct BoundedBody {
    body: Body,
    bounds: BodyBounds,
    messages: MessageHeaders,
    /// When the whole must have arrived.
    deadline: Option<Instant>,
    /// The timer of the wait for the next bytes; made when a body is first waited for.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    has_failed: bool,
}

impl BoundedBody {
    pub(super) fn new(body: Body, bounds: BodyBounds) -> Self {
        Self {
            body,
            bounds,
            messages: MessageHeaders::default(),
            deadline: bounds.whole.map(|whole| Instant::now() + whole),
            timer: None,
            is_waiting: false,
            has_failed: false,
        }
    }

    fn check(&mut self, data: &[u8]) -> Result<(), ApiError> {
        // An empty frame is not progress.
        self.is_waiting &= data.is_empty();
        let BodyBounds { message_bytes, hint, .. } = self.bounds;
        match self.messages.larger_than(message_bytes, data) {
            None => Ok(()),
            Some(bytes) => {
                let message =
                    format!("a message of {bytes} bytes is larger than the {message_bytes} that this call takes");
                Err(ApiError::new(ErrorCode::BodyTooLarge, message).with_hint(hint))
            }
        }
    }

    /// Whether all has come that the call has to say.
    fn is_complete(&self) -> bool {
        self.bounds.is_one_message && self.messages.is_after_message()
    }

    /// Completes when the client has taken too long.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<ApiError> {
        if !self.is_waiting {
            self.is_waiting = true;
            let due = Instant::now() + self.bounds.idle;
            let due = self.deadline.map_or(due, |deadline| deadline.min(due));
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(due),
                None => self.timer = Some(Box::pin(tokio::time::sleep_until(due))),
            }
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        timer.as_mut().poll(context).map(|()| {
            let waited = self.bounds.whole.unwrap_or(self.bounds.idle);
            ApiError::new(ErrorCode::BodyTimeout, format!("the call's next message did not come within {waited:?}"))
        })
    }

    fn fail(&mut self, error: ApiError) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.has_failed = true;
        // What has arrived and is not read need not be kept until the call has ended.
        self.body = Body::empty();
        Poll::Ready(Some(Err(error.into())))
    }
}

impl hyper::body::Body for BoundedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.has_failed {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => match frame.data_ref().map_or(Ok(()), |data| self.check(data)) {
                Ok(()) => Poll::Ready(Some(Ok(frame))),
                Err(error) => self.fail(error),
            },
            Poll::Ready(Some(Err(_)) | None) if self.is_complete() => Poll::Ready(None),
            // tonic takes an error of code CANCELLED for the end of a client's messages, and hyper a reset without a
            // reason, so a call that breaks off would look like one that is complete.
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "a call broke off");
                self.fail(broken_off())
            }
            Poll::Ready(None) if !self.body.is_end_stream() => self.fail(broken_off()),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.poll_timer(context) {
                Poll::Ready(error) => self.fail(error),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_failed || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn broken_off() -> ApiError {
    ApiError::new(ErrorCode::BadRequestBody, "the call broke off before its last message had come")
}

/// Follows the messages of a body, which frames of HTTP cut anywhere.
#[derive(Debug, Default)]
struct MessageHeaders {
    header: [u8; HEADER_BYTES],
    /// How much of the next message's header has arrived.
    header_bytes: usize,
    /// How much of the current message is still to come.
    message_bytes: usize,
    /// A message has begun.
    has_begun: bool,
}

impl MessageHeaders {
    /// Whether a message is whole, and no other has begun.
    fn is_after_message(&self) -> bool {
        self.has_begun && self.header_bytes == 0 && self.message_bytes == 0
    }

    /// Takes the next bytes of a body. Returns the length of the first message among them that declares more than `limit`.
    fn larger_than(&mut self, limit: usize, mut data: &[u8]) -> Option<usize> {
        loop {
            let skipped = self.message_bytes.min(data.len());
            self.message_bytes -= skipped;
            data = data.get(skipped..).unwrap_or_default();
            if data.is_empty() {
                return None;
            }
            let taken = (HEADER_BYTES - self.header_bytes).min(data.len());
            let (begin, rest) = data.split_at(taken);
            for (place, byte) in self.header.iter_mut().skip(self.header_bytes).zip(begin) {
                *place = *byte;
            }
            self.header_bytes += taken;
            data = rest;
            if self.header_bytes < HEADER_BYTES {
                return None;
            }
            self.header_bytes = 0;
            self.has_begun = true;
            let [_, a, b, c, d] = self.header;
            self.message_bytes = u32::from_be_bytes([a, b, c, d]) as usize;
            if self.message_bytes > limit {
                return Some(self.message_bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: u32, sent: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend(bytes.to_be_bytes());
        message.resize(HEADER_BYTES + sent, 7);
        message
    }

    #[test]
    fn messages_are_followed_wherever_they_are_cut() {
        let body = [message(3, 3), message(0, 0), message(300, 300), message(11, 0)].concat();
        for size in 1..body.len() {
            let mut headers = MessageHeaders::default();
            let found: Vec<usize> = body.chunks(size).filter_map(|data| headers.larger_than(300, data)).collect();
            assert_eq!(found, [0; 0], "{size}");
            let mut headers = MessageHeaders::default();
            let found = body.chunks(size).find_map(|data| headers.larger_than(299, data));
            assert_eq!(found, Some(300), "{size}");
        }
    }

    #[test]
    fn a_message_is_whole_with_its_last_byte() {
        let body = [message(3, 3), message(0, 0)].concat();
        let whole: Vec<usize> = (0..=body.len())
            .filter(|sent| {
                let mut headers = MessageHeaders::default();
                headers.larger_than(300, body.get(..*sent).unwrap_or_default());
                headers.is_after_message()
            })
            .collect();
        assert_eq!(whole, [8, 13]);
    }

    #[test]
    fn the_header_alone_tells_that_a_message_is_too_large() {
        assert_eq!(MessageHeaders::default().larger_than(64 << 10, &message(64 << 20, 0)), Some(64 << 20));
        assert_eq!(MessageHeaders::default().larger_than(10, &message(u32::MAX, 0)), Some(u32::MAX as usize));
    }
}

//! The body of an answer over gRPC in as few frames of HTTP/2 as it has bytes for: what is there already goes to the
//! connection at once, in the pieces that it consists of.
//!
//! A message of Flight has a piece for each buffer of a column. Sent one by one, each piece is a frame, a call of the
//! system, and a turn of the task that sends and of the one that makes the next piece; gathered, a message is two of
//! each. Nothing is copied for it, and nothing waits: what is not there yet comes with the next frame. A small answer that
//! is whole goes out in one call. Invariant: the bytes, their order and what comes after them are those of the body inside.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{Response, Version, header};
use hyper::body::{Body, Frame, SizeHint};

use crate::exchange::AnswerBody;

/// How the content types of gRPC begin.
const GRPC: &[u8] = b"application/grpc";

/// A frame of so many bytes is not added to, half a message of Flight: a client that does not read has one waiting here.
const FULL_BYTES: usize = 1 << 20;
/// Nor is one of so many pieces, whose list is bounded, too. A call of the system takes 16 of them, which is `Take`'s number
/// in the crate bytes.
const FULL_PIECES: usize = 64;
/// A whole answer of so few bytes is written at once, its head and its end included. h2 writes a larger frame apart from
/// what comes after it, and its client is woken for each; so such an answer is cut into frames that h2 copies.
const SMALL_BYTES: usize = 4 << 10;
/// The bytes of such a frame: h2 copies those below 256.
const COPIED_BYTES: usize = 255;

/// Bytes that follow each other, in pieces.
#[derive(Debug, Default)]
pub(super) struct GatheredBytes {
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

impl GatheredBytes {
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.remaining += piece.len();
            self.pieces.push_back(piece);
        }
    }

    fn is_full(&self) -> bool {
        self.remaining >= FULL_BYTES || self.pieces.len() >= FULL_PIECES
    }
}

impl From<Bytes> for GatheredBytes {
    fn from(piece: Bytes) -> Self {
        let mut gathered = Self::default();
        gathered.push(piece);
        gathered
    }
}

impl Buf for GatheredBytes {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map(Bytes::as_ref).unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        slices.len().min(self.pieces.len())
    }

    fn advance(&mut self, count: usize) {
        let mut left = count.min(self.remaining);
        self.remaining -= left;
        while let Some(first) = self.pieces.front_mut() {
            if left < first.len() {
                first.advance(left);
                return;
            }
            left -= first.len();
            self.pieces.pop_front();
        }
    }
}

/// The body of an answer.
pub(super) struct GatheredBody {
    body: AnswerBody,
    /// Whether frames that are there together become one.
    is_gathered: bool,
    /// What is left of a small answer that is cut.
    rest: Bytes,
    /// What follows the bytes before it: trailers, or a failure.
    next: Option<Result<Frame<GatheredBytes>, axum::Error>>,
    has_ended: bool,
}

/// Returns an answer over `version`, whose frames are gathered if it is one of gRPC. Others stream text, which is made
/// while what came before it is sent.
pub(super) fn gathered(answer: Response<AnswerBody>, version: Version) -> Response<GatheredBody> {
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    let is_grpc = content_type.is_some_and(|value| value.as_bytes().starts_with(GRPC));
    let is_gathered = is_grpc && version == Version::HTTP_2;
    answer.map(|body| GatheredBody { body, is_gathered, rest: Bytes::new(), next: None, has_ended: false })
}

impl GatheredBody {
    /// Returns the next frame of a small answer; `None` where nothing is left of it.
    fn next_of_rest(&mut self) -> Option<Frame<GatheredBytes>> {
        if self.rest.is_empty() {
            return None;
        }
        let piece = self.rest.split_to(self.rest.len().min(COPIED_BYTES));
        Some(Frame::data(piece.into()))
    }
}

impl Body for GatheredBody {
    type Data = GatheredBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<GatheredBytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some(frame) = this.next_of_rest() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(next) = this.next.take() {
            return Poll::Ready(Some(next));
        }
        if this.has_ended {
            return Poll::Ready(None);
        }
        let mut gathered = GatheredBytes::default();
        let next = loop {
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending if gathered.has_remaining() => break None,
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) if !this.is_gathered => return Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                    Ok(piece) => {
                        gathered.push(piece);
                        if gathered.is_full() {
                            break None;
                        }
                    }
                    Err(other) => break Some(Ok(other.map_data(GatheredBytes::from))),
                },
                Poll::Ready(Some(Err(error))) => break Some(Err(error)),
                Poll::Ready(None) => {
                    this.has_ended = true;
                    break None;
                }
            }
        };
        if !gathered.has_remaining() {
            return Poll::Ready(next);
        }
        if next.is_some() && gathered.remaining() <= SMALL_BYTES {
            this.rest = gathered.copy_to_bytes(gathered.remaining());
        }
        this.next = next;
        let frame = this.next_of_rest().unwrap_or_else(|| Frame::data(gathered));
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.next.is_none() && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use futures::stream;
    use http::{HeaderMap, HeaderValue, Method};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;
    use crate::exchange::Exchange;

    /// What a body does next: a frame, or nothing yet.
    type AnswerStep = Option<Result<Frame<Bytes>, std::io::Error>>;

    fn body(steps: Vec<AnswerStep>, is_gathered: bool) -> GatheredBody {
        let mut steps = VecDeque::from(steps);
        let frames = stream::poll_fn(move |context| match steps.pop_front() {
            Some(Some(frame)) => Poll::Ready(Some(frame)),
            Some(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        });
        let mut response = Response::new(axum::body::Body::new(StreamBody::new(frames)));
        let content_type = if is_gathered { "application/grpc" } else { "text/event-stream" };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let answer = Exchange::default().answer(response, &Method::POST, Version::HTTP_2);
        gathered(answer, Version::HTTP_2).into_body()
    }

    fn data(bytes: &'static [u8]) -> AnswerStep {
        Some(Ok(Frame::data(Bytes::from_static(bytes))))
    }

    /// Returns the frames: of bytes, these with the number of their pieces, of trailers and failures, a word.
    async fn frames(mut body: GatheredBody) -> Vec<(Vec<u8>, usize)> {
        let mut frames = Vec::new();
        while let Some(frame) = body.frame().await {
            frames.push(match frame.map(Frame::into_data) {
                Ok(Ok(mut data)) => {
                    let count = data.pieces.len();
                    (data.copy_to_bytes(data.remaining()).to_vec(), count)
                }
                Ok(Err(_)) => (b"trailers".to_vec(), 0),
                Err(_) => (b"failed".to_vec(), 0),
            });
        }
        assert!(body.is_end_stream());
        frames
    }

    #[tokio::test]
    async fn what_is_there_together_is_one_frame() {
        let trailers = || Some(Ok(Frame::trailers(HeaderMap::new())));
        let steps = || vec![data(b"ab"), data(b""), data(b"c"), None, data(b"d"), trailers()];
        let together = [(b"abc".to_vec(), 2), (b"d".to_vec(), 1), (b"trailers".to_vec(), 0)];
        assert_eq!(frames(body(steps(), true)).await, together);
        let one_by_one =
            [(b"ab".to_vec(), 1), (Vec::new(), 0), (b"c".to_vec(), 1), (b"d".to_vec(), 1), (b"trailers".to_vec(), 0)];
        assert_eq!(frames(body(steps(), false)).await, one_by_one);
    }

    #[tokio::test]
    async fn a_small_answer_with_its_end_is_cut_where_h2_copies() {
        let trailers = || Some(Ok(Frame::trailers(HeaderMap::new())));
        let sizes = |found: Vec<(Vec<u8>, usize)>| found.iter().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>();
        let end = b"trailers".len();
        let whole = frames(body(vec![data(&[7; 300]), data(&[7; 300]), trailers()], true)).await;
        assert_eq!(sizes(whole), [255, 255, 90, end]);
        // What is not whole may be followed by much, and what is large is not copied.
        let begun = frames(body(vec![data(&[7; 300]), None, data(&[7; 10]), trailers()], true)).await;
        assert_eq!(sizes(begun), [300, 10, end]);
        let large = frames(body(vec![data(&[7; SMALL_BYTES + 1]), trailers()], true)).await;
        assert_eq!(sizes(large), [SMALL_BYTES + 1, end]);
    }

    #[tokio::test]
    async fn a_failure_comes_after_the_bytes_before_it() {
        let failure = Some(Err(std::io::Error::other("broken")));
        let found = frames(body(vec![data(b"a"), data(b"b"), failure], true)).await;
        assert_eq!(found, [(b"ab".to_vec(), 1), (b"failed".to_vec(), 0)]);
    }

    #[tokio::test]
    async fn the_last_bytes_are_known_to_be_the_last() {
        let mut answer = body(vec![data(b"a"), data(b"b")], true);
        assert!(!answer.is_end_stream());
        assert!(answer.frame().await.is_some_and(|frame| frame.is_ok()));
        assert!(answer.is_end_stream());
        assert!(answer.frame().await.is_none());
    }

    #[tokio::test]
    async fn frames_are_bounded() {
        let piece = Bytes::from(vec![7; FULL_BYTES / 4]);
        let large = (0..6).map(|_| Some(Ok(Frame::data(piece.clone())))).collect();
        let counts: Vec<usize> = frames(body(large, true)).await.into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [4, 2]);
        let small = (0..FULL_PIECES + 1).map(|_| data(b"x")).collect();
        let counts: Vec<usize> = frames(body(small, true)).await.into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [FULL_PIECES, 1]);
    }

    #[test]
    fn bytes_are_taken_wherever_pieces_end() {
        for taken in 0..=8 {
            let mut left = GatheredBytes::default();
            [&b"abc"[..], b"d", b"", b"efgh"].into_iter().for_each(|piece| left.push(Bytes::from_static(piece)));
            left.advance(taken);
            assert_eq!(left.remaining(), 8 - taken);
            let mut slices = [IoSlice::new(&[]); 2];
            let count = left.chunks_vectored(&mut slices);
            let first: Vec<u8> = slices.iter().take(count).flat_map(|slice| slice.to_vec()).collect();
            assert!(b"abcdefgh".get(taken..).is_some_and(|rest| rest.starts_with(&first)), "{taken}");
            assert_eq!(first.is_empty(), taken == 8);
            assert_eq!(left.copy_to_bytes(left.remaining()), b"abcdefgh".get(taken..).unwrap_or_default());
        }
    }
}

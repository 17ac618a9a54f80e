//! DoGet's response body: gRPC frames made of a message's pieces, without tonic's codec, which copies every message into a
//! buffer of its own.
//!
//! `DoGet` answers as any method does, with a [`FlightStream`], and leaves the same messages in its response's extensions.
//! [`FlightFrames`], the layer around the service, finds them there and sends them as they are; without the layer the stream
//! works as well, at the price of two copies. Invariant: both ways send the same bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_flight::FlightData;
use bytes::{BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryFutureExt};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use parking_lot::Mutex;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::{Code, Response, Status};
use tower::Service;

use super::message::EncodedMessage;
use crate::error::{ApiError, ErrorCode};
use crate::query_limits::{RESULT_CACHE_HEADER, RESULT_CACHE_HIT};

/// The fields of `FlightData` that a result's messages have.
const DATA_HEADER: u32 = 2;
const DATA_BODY: u32 = 1_000;
/// Whether the message is compressed, and its length.
const GRPC_PREFIX_BYTES: usize = 5;
/// How an error of protobuf's decoder begins.
const UNREADABLE: &str = "failed to decode Protobuf message";
/// A body of so few bytes is sent in one frame with what comes before it.
const SMALL_BODY_BYTES: usize = 4 << 10;

type MessageStream = BoxStream<'static, Result<EncodedMessage, Status>>;

/// The messages of a result, for whoever comes first.
#[derive(Clone)]
struct SharedMessages(Arc<Mutex<Option<MessageStream>>>);

/// The messages of a result, as DoGet streams them.
pub(in crate::sql) struct FlightStream {
    shared: SharedMessages,
    /// What this stream took of `shared`.
    taken: Option<MessageStream>,
    /// Whether the rows were kept from a query before.
    is_kept: bool,
}

impl FlightStream {
    pub(super) fn new(messages: impl Stream<Item = Result<EncodedMessage, Status>> + Send + 'static) -> Self {
        Self { shared: SharedMessages(Arc::new(Mutex::new(Some(messages.boxed())))), taken: None, is_kept: false }
    }

    /// Returns the stream, whose response says whether its rows were kept from a query before.
    pub(in crate::sql) fn kept(self, is_kept: bool) -> Self {
        Self { is_kept, ..self }
    }

    /// Returns DoGet's response, whose messages need not be copied.
    pub(in crate::sql) fn into_response(self) -> Response<Self> {
        let (shared, is_kept) = (self.shared.clone(), self.is_kept);
        let mut response = Response::new(self);
        if is_kept {
            let hit = MetadataValue::from_static(RESULT_CACHE_HIT);
            response.metadata_mut().insert(RESULT_CACHE_HEADER, hit);
        }
        response.extensions_mut().insert(shared);
        response
    }
}

impl Stream for FlightStream {
    type Item = Result<FlightData, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.taken.is_none() {
            this.taken = this.shared.0.lock().take();
        }
        match &mut this.taken {
            Some(messages) => messages.poll_next_unpin(cx).map_ok(FlightData::from),
            None => Poll::Ready(None),
        }
    }
}

/// The layer around the Flight service that sends the messages of a [`FlightStream`] as they are, and says of a request that
/// could not be read that it is its sender's fault: tonic calls it an internal error.
#[derive(Debug, Clone)]
pub(in crate::sql) struct FlightFrames<S>(pub(in crate::sql) S);

impl<S: NamedService> NamedService for FlightFrames<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, R> Service<http::Request<R>> for FlightFrames<S>
where
    S: Service<http::Request<R>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<R>) -> Self::Future {
        Box::pin(self.0.call(request).map_ok(|mut response| {
            let messages = response.extensions_mut().remove::<SharedMessages>();
            match messages.and_then(|shared| shared.0.lock().take()) {
                Some(messages) => response.map(|_| Body::new(GrpcBody::new(messages))),
                None => match unreadable(response.headers()) {
                    Some(error) => Status::from(error).into_http(),
                    None => response,
                },
            }
        }))
    }
}

/// Returns the error of a request whose message is no protobuf; `None` for any other response.
fn unreadable(headers: &HeaderMap) -> Option<ApiError> {
    let status = Status::from_header_map(headers)?;
    let is_unreadable = status.code() == Code::Internal && status.message().starts_with(UNREADABLE);
    is_unreadable.then(|| ApiError::new(ErrorCode::BadRequest, status.message()))
}

/// A gRPC response body.
struct GrpcBody {
    /// `None` once the trailers are sent.
    messages: Option<MessageStream>,
    /// What is left of the message that is being sent.
    pieces: VecDeque<Bytes>,
}

impl GrpcBody {
    fn new(messages: MessageStream) -> Self {
        Self { messages: Some(messages), pieces: VecDeque::new() }
    }
}

impl http_body::Body for GrpcBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(messages) = &mut this.messages else { return Poll::Ready(None) };
            let status = match ready!(messages.poll_next_unpin(cx)) {
                Some(Ok(message)) => match frame_prefix(&message) {
                    Ok(mut begin) if message.body_bytes <= SMALL_BODY_BYTES => {
                        message.body.iter().for_each(|piece| begin.put_slice(piece));
                        this.pieces.push_back(begin.freeze());
                        continue;
                    }
                    Ok(begin) => {
                        this.pieces.push_back(begin.freeze());
                        this.pieces.extend(message.body);
                        continue;
                    }
                    Err(status) => Some(status),
                },
                Some(Err(status)) => Some(status),
                None => None,
            };
            // Dropped now, and with it the query, rather than when the client closes the connection.
            this.messages = None;
            return Poll::Ready(Some(trailers(status).map(Frame::trailers)));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.messages.is_none() && self.pieces.is_empty()
    }
}

fn trailers(status: Option<Status>) -> Result<HeaderMap, Status> {
    let mut trailers = HeaderMap::new();
    match status {
        Some(status) => status.add_header(&mut trailers)?,
        None => {
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
    }
    Ok(trailers)
}

/// Returns all of a message's frame that comes before its body: gRPC's prefix, then the fields of `FlightData`; with room for
/// a small body. Errors: a message beyond gRPC's 4 GiB.
fn frame_prefix(message: &EncodedMessage) -> Result<BytesMut, Status> {
    let header_length = message.header.len();
    let body_field = match message.body_bytes {
        0 => 0,
        length => key_len(DATA_BODY) + encoded_len_varint(length as u64),
    };
    let header_field = match header_length {
        0 => 0,
        length => key_len(DATA_HEADER) + encoded_len_varint(length as u64) + length,
    };
    let length = header_field + body_field + message.body_bytes;
    let frame_length = u32::try_from(length)
        .map_err(|_| Status::out_of_range(format!("a message of {length} bytes is more than gRPC can send")))?;
    let room = if message.body_bytes <= SMALL_BODY_BYTES { message.body_bytes } else { 0 };
    let mut prefix = BytesMut::with_capacity(GRPC_PREFIX_BYTES + header_field + body_field + room);
    prefix.put_u8(0);
    prefix.put_u32(frame_length);
    if header_length > 0 {
        encode_key(DATA_HEADER, WireType::LengthDelimited, &mut prefix);
        encode_varint(header_length as u64, &mut prefix);
        prefix.put_slice(&message.header);
    }
    if message.body_bytes > 0 {
        encode_key(DATA_BODY, WireType::LengthDelimited, &mut prefix);
        encode_varint(message.body_bytes as u64, &mut prefix);
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_frame_is_what_tonic_sends() {
        let pieces = vec![Bytes::from(vec![7; 300]), Bytes::from(vec![8; 20_000])];
        let messages = [
            EncodedMessage { header: vec![1; 200].into(), body: pieces, body_bytes: 20_300 },
            EncodedMessage { header: vec![1; 3].into(), body: Vec::new(), body_bytes: 0 },
            EncodedMessage::default(),
        ];
        for message in messages {
            let mut sent = frame_prefix(&message).unwrap();
            message.body.iter().for_each(|piece| sent.extend_from_slice(piece));
            let encoded = FlightData::from(message).encode_to_vec();
            let mut expected = BytesMut::new();
            expected.put_u8(0);
            expected.put_u32(encoded.len() as u32);
            expected.extend_from_slice(&encoded);
            assert_eq!(sent, expected);
        }
    }
}

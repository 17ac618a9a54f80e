//! Clients that are not served: those that do not speak TLS to a port that does, and those whose address has as many connections
//! as it may have. Each is told so in its own protocol, as far as that is not TLS, and the connection is closed.
//!
//! HTTP/2 is answered call by call: a client of gRPC whose connection is refused sends its call again at once, until its
//! deadline.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Status;

use crate::error::{ApiError, ErrorCode};
use crate::tls::PORT_SPEAKS_TLS;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;
/// As many bytes as tell HTTP/2 from HTTP/1.
const PREFACE: &[u8] = b"PRI ";
/// How the content types of gRPC begin.
const GRPC: &[u8] = b"application/grpc";
/// How much of a request is read before the connection is closed, so that the client sees its answer and no reset.
const DISCARDED_BYTES: usize = 64 << 10;
/// How long a client has to take its answer.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// What a client is told that is not served.
#[derive(Clone, Copy)]
pub(super) struct ConnectionRefusal {
    code: ErrorCode,
    message: &'static str,
    hint: &'static str,
}

impl ConnectionRefusal {
    /// The port speaks TLS, and the client does not.
    pub(super) const WITHOUT_TLS: Self =
        Self { code: ErrorCode::BadRequest, message: PORT_SPEAKS_TLS, hint: "use https:// or grpc+tls://" };
    /// The client's address has as many connections as it may have.
    pub(super) const TOO_MANY_CONNECTIONS: Self = Self {
        code: ErrorCode::TooManyRequests,
        message: "this address has as many connections to the server as it may have",
        hint: "close some, or send several requests over one; http.max_connections_per_address is the bound",
    };

    fn json_text(self) -> String {
        json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } }).to_string()
    }

    /// Returns the answer of HTTP/1.
    fn http_1(self) -> Vec<u8> {
        let (error, status) = (self.json_text(), self.code.http_status());
        let (length, reason) = (error.len(), status.canonical_reason().unwrap_or_default());
        let pause = self.code.retry_after().map(|pause| format!("retry-after: {}\r\n", pause.as_secs()));
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{}\
             connection: close\r\n\r\n{error}",
            status.as_u16(),
            pause.unwrap_or_default()
        )
        .into_bytes()
    }
}

/// What a connection begins with.
pub(super) enum OpeningProtocol {
    /// TLS, of which nothing has been read.
    Tls(TcpStream),
    /// HTTP/2 without TLS, of which nothing has been read: its calls are to be answered by [`refuse`].
    Http2(TcpStream),
    /// Anything else, which has been answered.
    Answered,
}

/// Returns what a connection begins with. Over HTTP/1 its client is told `refusal`.
pub(super) async fn opening_protocol(
    mut stream: TcpStream,
    refusal: ConnectionRefusal,
) -> std::io::Result<OpeningProtocol> {
    let mut first = [0; PREFACE.len()];
    let read = stream.peek(&mut first).await?;
    let begin = first.get(..read).unwrap_or_default();
    match begin.first() {
        None => return Ok(OpeningProtocol::Answered),
        Some(&TLS_HANDSHAKE) => return Ok(OpeningProtocol::Tls(stream)),
        // Neither of HTTP's versions: nothing would be understood.
        Some(byte) if !byte.is_ascii_uppercase() => return Ok(OpeningProtocol::Answered),
        Some(_) if begin == PREFACE => return Ok(OpeningProtocol::Http2(stream)),
        Some(_) => {}
    }
    stream.write_all(&refusal.http_1()).await?;
    stream.shutdown().await?;
    let _ = tokio::time::timeout(LINGER, discard(&mut stream)).await;
    Ok(OpeningProtocol::Answered)
}

/// Answers a request over HTTP/2.
pub(super) async fn refuse(
    request: Request<Incoming>,
    refusal: ConnectionRefusal,
) -> Result<Response<Body>, Infallible> {
    let error = ApiError::new(refusal.code, refusal.message).with_hint(refusal.hint);
    let content_type = request.headers().get(header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(GRPC)) {
        return Ok(Status::from(error).into_http());
    }
    let mut answer = Response::new(Body::from(refusal.json_text()));
    *answer.status_mut() = error.http_status();
    *answer.headers_mut() = error.headers();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

async fn discard(stream: &mut TcpStream) {
    let mut buffer = [0; 4 << 10];
    let mut discarded = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        discarded += read;
        if discarded > DISCARDED_BYTES {
            return;
        }
    }
}

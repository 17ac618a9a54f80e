//! Clients that do not speak TLS to a port that does: each is told so in its own protocol, and the connection is closed.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ErrorCode;

const MESSAGE: &str = "this port speaks TLS";
const HINT: &str = "use https:// or grpc+tls://";
/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;
/// As many bytes as tell HTTP/2 from HTTP/1.
const PREFACE: &[u8] = b"PRI ";
/// The frame of HTTP/2 with which a server begins, without settings.
const EMPTY_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const GOAWAY: u8 = 7;
const INADEQUATE_SECURITY: u32 = 0xc;
/// How much of a request is read before the connection is closed, so that the client sees its answer and no reset.
const DISCARDED_BYTES: usize = 64 << 10;
const LINGER: Duration = Duration::from_secs(2);

/// Returns the connection if it begins as TLS does; others are answered. Nothing of it has been read then.
pub(super) async fn tls_only(mut stream: TcpStream) -> std::io::Result<Option<TcpStream>> {
    let mut first = [0; PREFACE.len()];
    let read = stream.peek(&mut first).await?;
    let begin = first.get(..read).unwrap_or_default();
    match begin.first() {
        None => return Ok(None),
        Some(&TLS_HANDSHAKE) => return Ok(Some(stream)),
        // Neither of HTTP's versions: nothing would be understood.
        Some(byte) if !byte.is_ascii_uppercase() => return Ok(None),
        Some(_) => {}
    }
    stream.write_all(&if begin == PREFACE { http_2() } else { http_1() }).await?;
    stream.shutdown().await?;
    let _ = tokio::time::timeout(LINGER, discard(&mut stream)).await;
    Ok(None)
}

fn http_1() -> Vec<u8> {
    let error = json!({ "error": { "code": ErrorCode::BadRequest, "message": MESSAGE, "hint": HINT } }).to_string();
    let length = error.len();
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{error}"
    )
    .into_bytes()
}

fn http_2() -> Vec<u8> {
    let text = format!("{MESSAGE}; {HINT}");
    // The last stream, the error, and text for whoever debugs it.
    let payload = [&0_u32.to_be_bytes(), &INADEQUATE_SECURITY.to_be_bytes(), text.as_bytes()].concat();
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    [&EMPTY_SETTINGS, &length[..], &[GOAWAY, 0, 0, 0, 0, 0], &payload].concat()
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

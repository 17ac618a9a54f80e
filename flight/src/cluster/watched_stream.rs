//! A connection to a worker, watched for what HTTP does not say of its end: that the port speaks TLS and was sent plain
//! text, or that TLS wants a certificate. Whoever waits for an answer learns only that it was given up.
//!
//! Invariant: the bytes are passed on as they are; only the first few are looked at.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::worker_tls::tls_fault;

/// How many bytes from a worker's first are looked at: the settings with which HTTP/2 begins, and what may end it at once.
const FIRST_BYTES: usize = 96;
/// The types of TLS's records that a server sends before it has agreed to anything.
const TLS_ALERT: u8 = 21;
const TLS_HANDSHAKE: u8 = 22;
const TLS_MAJOR_VERSION: u8 = 3;
/// The parts of HTTP/2's frames: length, type, flags, stream.
const FRAME_HEADER: usize = 9;
const FRAME_SETTINGS: u8 = 4;
const FRAME_GOAWAY: u8 = 7;
/// What a GOAWAY says of a connection that should be encrypted, behind the last stream.
const INADEQUATE_SECURITY: [u8; 4] = [0, 0, 0, 0xc];

/// What is wrong where a worker's port speaks TLS and was sent plain text.
pub(super) const SPEAKS_TLS: &str =
    "its port speaks TLS; a worker that speaks TLS is named with https:// or dns+https://";

/// Why a worker's connection failed, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionFault(Arc<Mutex<Option<String>>>);

impl ConnectionFault {
    pub(super) fn set(&self, fault: Option<String>) {
        *self.0.lock() = fault;
    }

    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// A connection whose fault is noted.
pub(super) struct WatchedStream<S> {
    inner: S,
    fault: ConnectionFault,
    /// The first bytes that came in plain text; `None` once they have been looked at, and where they are encrypted.
    first: Option<Vec<u8>>,
}

impl<S> WatchedStream<S> {
    /// Watches a connection in plain text.
    pub(super) fn plain(inner: S, fault: ConnectionFault) -> Self {
        Self { inner, fault, first: Some(Vec::new()) }
    }

    /// Watches an encrypted connection.
    pub(super) fn encrypted(inner: S, fault: ConnectionFault) -> Self {
        Self { inner, fault, first: None }
    }

    fn look_at(&mut self, bytes: &[u8]) {
        let Some(first) = &mut self.first else { return };
        let room = FIRST_BYTES.saturating_sub(first.len());
        first.extend(bytes.iter().take(room));
        if speaks_tls(first) {
            self.fault.set(Some(SPEAKS_TLS.to_owned()));
        } else if first.len() < FIRST_BYTES {
            return;
        }
        self.first = None;
    }
}

/// Whether a server that was sent HTTP/2 in plain text says by its first bytes that it speaks TLS.
fn speaks_tls(mut first: &[u8]) -> bool {
    if let [TLS_ALERT | TLS_HANDSHAKE, TLS_MAJOR_VERSION, ..] = first {
        return true;
    }
    // Servers that know HTTP/2 may say so in its frames; ours answer the call.
    while let Some((header, rest)) = first.split_at_checked(FRAME_HEADER) {
        let [a, b, c, kind, ..] = *header else { return false };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            FRAME_GOAWAY => return rest.get(4..8) == Some(&INADEQUATE_SECURITY),
            FRAME_SETTINGS => first = rest.get(length..).unwrap_or_default(),
            _ => return false,
        }
    }
    false
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut this.inner).poll_read(cx, buffer));
        match &read {
            Ok(()) => this.look_at(buffer.filled().get(before..).unwrap_or_default()),
            Err(error) => {
                if let Some(fault) = tls_fault(error) {
                    this.fault.set(Some(fault));
                }
            }
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Settings: none, then the limit of streams.
    const NO_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const ONE_SETTING: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 1, 0];

    /// A GOAWAY with an error and a word for people (RFC 9113, 6.8).
    fn goaway(error: u8) -> Vec<u8> {
        [&[0, 0, 12, 7, 0, 0, 0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, error], b"bye!"].concat()
    }

    #[test]
    fn a_port_of_tls_is_known_by_its_first_bytes() {
        for (first, expected) in [
            // A fatal alert: unexpected_message, of TLS 1.2 and of TLS 1.0.
            (vec![21, 3, 3, 0, 2, 2, 10], true),
            (vec![21, 3, 1, 0, 2, 2, 10], true),
            ([&NO_SETTINGS[..], &goaway(0xc)].concat(), true),
            ([&ONE_SETTING[..], &goaway(0xc)].concat(), true),
            (goaway(0xc), true),
            // Another error; a server that goes on.
            ([&NO_SETTINGS[..], &goaway(0)].concat(), false),
            (ONE_SETTING.to_vec(), false),
            (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), false),
            (Vec::new(), false),
        ] {
            assert_eq!(speaks_tls(&first), expected, "{first:?}");
        }
    }

    #[tokio::test]
    async fn what_comes_in_pieces_is_looked_at_as_a_whole_and_passed_on() {
        let said = [&ONE_SETTING[..], &goaway(0xc)].concat();
        let mut pieces = in_pieces(&said);
        let fault = ConnectionFault::default();
        let mut read = Vec::new();
        let mut watched = WatchedStream::plain(&mut pieces, fault.clone());
        watched.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, said);
        assert!(fault.get().unwrap().contains("https://"), "{fault:?}");

        let fault = ConnectionFault::default();
        let mut watched = WatchedStream::encrypted(said.as_slice(), fault.clone());
        watched.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(fault.get(), None);
    }

    /// Returns the bytes, three at a time.
    fn in_pieces(bytes: &[u8]) -> impl AsyncRead + Unpin {
        let pieces: Vec<io::Result<bytes::Bytes>> =
            bytes.chunks(3).map(|piece| Ok(bytes::Bytes::copy_from_slice(piece))).collect();
        tokio_util::io::StreamReader::new(futures::stream::iter(pieces))
    }
}

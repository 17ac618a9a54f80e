//! A connection over the socket in the file system, of clients that name the socket's path where HTTP/2 has a host.
//!
//! gRPC's C core, which is under pyarrow, escapes the path: `:authority: run%2Fquerent.sock`. A host may not hold a percent
//! sign, and the HTTP/2 of this server would refuse the call before anybody could look at it. So the sign is read as `!`,
//! which a host may hold: nothing else of the bytes changes, not even their number, which HPACK's tables count.

use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// How HTTP/2 begins; other connections pass as they are.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// The name as C core writes it: its length and its letters.
const NAME: &[u8] = b"\x0a:authority";

/// The connection.
pub(super) struct SocketStream {
    inner: UnixStream,
    frames: ClientFrames,
}

impl SocketStream {
    pub(super) fn new(inner: UnixStream) -> Self {
        Self { inner, frames: ClientFrames::Preface { seen: 0 } }
    }
}

impl AsFd for SocketStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Where in the client's frames the next byte stands.
#[derive(Debug)]
enum ClientFrames {
    /// Not HTTP/2.
    Passed,
    Preface {
        seen: usize,
    },
    Header {
        header: [u8; FRAME_HEADER],
        seen: usize,
        scan: HostScan,
    },
    Payload {
        left: usize,
        has_headers: bool,
        scan: HostScan,
    },
}

/// Where in the host's header the next byte of a block of headers stands.
#[derive(Debug, Clone, Copy)]
enum HostScan {
    Name {
        matched: usize,
    },
    Length,
    /// A length of 127 and more goes on in groups of seven bits.
    LongLength {
        value: usize,
        shift: u32,
    },
    Value {
        left: usize,
    },
}

impl ClientFrames {
    fn rewrite(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first().copied() {
            let taken = match self {
                ClientFrames::Passed => return,
                ClientFrames::Preface { seen } if PREFACE.get(*seen) != Some(&first) => {
                    *self = ClientFrames::Passed;
                    return;
                }
                ClientFrames::Preface { seen } => {
                    *seen += 1;
                    if *seen == PREFACE.len() {
                        *self = ClientFrames::begin(HostScan::BEGIN);
                    }
                    1
                }
                ClientFrames::Header { header, seen, scan } => {
                    if let Some(place) = header.get_mut(*seen) {
                        *place = first;
                    }
                    *seen += 1;
                    if *seen == FRAME_HEADER {
                        let [a, b, c, kind, ..] = *header;
                        let left = u32::from_be_bytes([0, a, b, c]) as usize;
                        let has_headers = matches!(kind, HEADERS | CONTINUATION);
                        *self = match left {
                            0 => ClientFrames::begin(*scan),
                            _ => ClientFrames::Payload { left, has_headers, scan: *scan },
                        };
                    }
                    1
                }
                ClientFrames::Payload { left, has_headers, scan } => {
                    let taken = bytes.len().min(*left);
                    if *has_headers {
                        bytes.iter_mut().take(taken).for_each(|byte| scan.rewrite(byte));
                    }
                    *left -= taken;
                    if *left == 0 {
                        *self = ClientFrames::begin(*scan);
                    }
                    taken
                }
            };
            bytes = bytes.get_mut(taken..).unwrap_or_default();
        }
    }

    /// A frame begins.
    fn begin(scan: HostScan) -> Self {
        ClientFrames::Header { header: [0; FRAME_HEADER], seen: 0, scan }
    }
}

impl HostScan {
    const BEGIN: Self = HostScan::Name { matched: 0 };

    fn rewrite(&mut self, byte: &mut u8) {
        *self = match *self {
            HostScan::Name { matched } if NAME.get(matched) == Some(byte) => match matched + 1 {
                all if all == NAME.len() => HostScan::Length,
                matched => HostScan::Name { matched },
            },
            HostScan::Name { .. } => HostScan::Name { matched: usize::from(NAME.first() == Some(byte)) },
            HostScan::Length => match *byte {
                0 | 128.. => HostScan::BEGIN,
                127 => HostScan::LongLength { value: 127, shift: 0 },
                length => HostScan::Value { left: usize::from(length) },
            },
            HostScan::LongLength { shift: 21.., .. } => HostScan::BEGIN,
            HostScan::LongLength { value, shift } => {
                let value = value + (usize::from(*byte & 0x7f) << shift);
                match *byte {
                    128.. => HostScan::LongLength { value, shift: shift + 7 },
                    _ => HostScan::Value { left: value },
                }
            }
            HostScan::Value { left } => {
                if *byte == b'%' {
                    *byte = b'!';
                }
                match left {
                    0 | 1 => HostScan::BEGIN,
                    _ => HostScan::Value { left: left - 1 },
                }
            }
        };
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.frames.rewrite(buffer.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[..], &[kind, 0, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn the_host_alone_changes_wherever_the_bytes_are_cut() {
        let long = format!("{}%2F", "a".repeat(200));
        let block = |sign: &str| {
            let host = format!("tmp{sign}2Fq.sock");
            let long = long.replace('%', sign);
            [
                b"@\x05:path\x02/%@\x0a:authority",
                &[u8::try_from(host.len()).unwrap()][..],
                host.as_bytes(),
                b"@\x0a:authority\x7f\x4c",
                long.as_bytes(),
                b"@\x01x\x02%%",
            ]
            .concat()
        };
        let stream = |sign: &str| {
            let data = frame(0, b"\x0a:authority\x03%%%");
            [PREFACE, &frame(4, b""), &frame(HEADERS, &block(sign)), &data, &frame(HEADERS, &block(sign))].concat()
        };
        let (sent, expected) = (stream("%"), stream("!"));
        for size in 1..sent.len() {
            let mut frames = ClientFrames::Preface { seen: 0 };
            let mut bytes = sent.clone();
            bytes.chunks_mut(size).for_each(|chunk| frames.rewrite(chunk));
            assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected), "{size}");
        }
        let mut other = b"POST /%2F HTTP/1.1\r\nhost: %2F\r\n".to_vec();
        ClientFrames::Preface { seen: 0 }.rewrite(&mut other);
        assert_eq!(other, b"POST /%2F HTTP/1.1\r\nhost: %2F\r\n");
    }
}

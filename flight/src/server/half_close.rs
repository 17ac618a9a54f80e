//! Clients that stop sending after their request: some wait for the answer, as `nc -N` and programs that shut down their
//! side do, and some are gone. The end of their bytes is the same, and only what is sent to them tells: a client that is
//! gone answers with a reset.
//!
//! So the end is kept from hyper, which would take it for a cancellation, while a whole request waits for its answer, and
//! the beginning of that answer is sent ahead: the first letter of its status line, or a zero before the length of the next
//! chunk, which numbers may begin with. Invariant: a client reads the bytes that it would have read anyway, but for such
//! zeros; one that has not stopped sending sees no difference.

use std::io::{Error, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

use super::socket_stream::SocketStream;
use crate::exchange::{ClosedInput, Exchange, Stage};

/// How every answer begins, whatever its version.
const STATUS_LINE: &[u8] = b"HTTP/1.";
/// How many zeros a length may get: parsers bound its digits.
const MAX_ZEROS: usize = 6;
/// The time between the first bytes that are sent ahead and the second ones; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A connection with a socket below it.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket.
    fn socket(&self) -> BorrowedFd<'_>;
}

impl ClientStream for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl ClientStream for TlsStream<TcpStream> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.get_ref().0.as_fd()
    }
}

impl ClientStream for SocketStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// A connection whose client may stop sending before it has its answer.
pub(super) struct HalfCloseStream<C> {
    inner: C,
    exchange: Exchange,
    /// All that was to be written has been.
    is_flushed: bool,
    closed: Option<ClosedClient>,
}

/// A client that has stopped sending.
struct ClosedClient {
    /// Ends when the client is gone.
    gone: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// How many bytes of the status line were sent ahead of it.
    letters: usize,
    /// How many zeros were sent ahead of the next length.
    zeros: usize,
    /// When more is sent ahead.
    next: Pin<Box<Sleep>>,
    pause: Duration,
}

impl<C: ClientStream> HalfCloseStream<C> {
    pub(super) fn new(inner: C, exchange: Exchange) -> Self {
        Self { inner, exchange, is_flushed: true, closed: None }
    }

    /// Waits until the end of the client's bytes may be told: `Err` if the client is gone.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let stage = match self.exchange.input_closed(context) {
            ClosedInput::End => return Poll::Ready(Ok(())),
            ClosedInput::Wait => None,
            ClosedInput::Answer(stage) => Some(stage),
        };
        let closed = match &mut self.closed {
            Some(closed) => closed,
            none => match ClosedClient::new(self.inner.socket()) {
                Ok(closed) => none.insert(closed),
                // Nothing would tell when it is gone.
                Err(error) => {
                    tracing::debug!(%error, "a client that stopped sending is not watched");
                    return Poll::Ready(Ok(()));
                }
            },
        };
        if closed.gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Error::new(ErrorKind::ConnectionReset, "the client is gone")));
        }
        let Some(stage) = stage else { return Poll::Pending };
        // What is being written tells as well.
        while self.is_flushed && closed.next.as_mut().poll(context).is_ready() {
            let Some(ahead) = closed.sent_ahead(stage) else { break };
            match Pin::new(&mut self.inner).poll_write(context, ahead) {
                Poll::Ready(Ok(0)) | Poll::Pending => break,
                Poll::Ready(Ok(_)) => closed.count(stage),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
            // A byte that still waits here is sent with the next ones.
            if let Poll::Ready(Err(error)) = Pin::new(&mut self.inner).poll_flush(context) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Pending
    }

    /// Returns how many of the first of `bytes` were sent ahead.
    fn letters_of(&self, bytes: &[u8]) -> usize {
        self.closed.as_ref().map_or(0, |closed| closed.letters.min(bytes.len()))
    }

    fn written(&mut self, letters: usize) {
        if let Some(closed) = &mut self.closed {
            closed.letters -= letters;
            closed.zeros = 0;
        }
    }
}

impl ClosedClient {
    fn new(socket: BorrowedFd<'_>) -> std::io::Result<Self> {
        // Only whether it is ready is asked, which is the same of every socket.
        let socket = TcpStream::from_std(std::net::TcpStream::from(socket.try_clone_to_owned()?))?;
        let gone = async move {
            while let Ok(ready) = socket.ready(Interest::WRITABLE).await {
                // The other end is gone when nothing can be written any more.
                if ready.is_write_closed() {
                    return;
                }
                // Makes the next call wait for a change.
                let _ = socket.try_io(Interest::WRITABLE, || Err::<(), _>(ErrorKind::WouldBlock.into()));
            }
        };
        let next = Box::pin(tokio::time::sleep(Duration::ZERO));
        Ok(Self { gone: Box::pin(gone), letters: 0, zeros: 0, next, pause: FIRST_PAUSE })
    }

    /// Returns the byte that can be sent ahead now.
    fn sent_ahead(&self, stage: Stage) -> Option<&'static [u8]> {
        match stage {
            Stage::Asked => STATUS_LINE.get(self.letters..=self.letters),
            Stage::Answering { is_chunked: true } if self.zeros < MAX_ZEROS => Some(b"0"),
            Stage::Answering { .. } | Stage::Idle => None,
        }
    }

    /// Counts a byte that was sent, and sets the time of the next one.
    fn count(&mut self, stage: Stage) {
        match stage {
            Stage::Asked => self.letters += 1,
            Stage::Answering { .. } | Stage::Idle => self.zeros += 1,
        }
        let next = tokio::time::Instant::now() + self.pause;
        self.next.as_mut().reset(next);
        self.pause *= 2;
    }
}

impl<C: ClientStream> AsyncRead for HalfCloseStream<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.closed.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
            if buffer.filled().len() > before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_closed(context)
    }
}

impl<C: ClientStream> AsyncWrite for HalfCloseStream<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.is_flushed = false;
        let letters = self.letters_of(bytes);
        let rest = bytes.get(letters..).unwrap_or_default();
        let written = match rest {
            [] if letters > 0 => 0,
            rest => ready!(Pin::new(&mut self.inner).poll_write(context, rest))?,
        };
        self.written(letters);
        Poll::Ready(Ok(letters + written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        if self.closed.as_ref().is_some_and(|closed| closed.letters > 0) {
            let first = slices.iter().find(|slice| !slice.is_empty()).map(|slice| &**slice);
            return self.poll_write(context, first.unwrap_or_default());
        }
        self.is_flushed = false;
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(context, slices))?;
        self.written(0);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

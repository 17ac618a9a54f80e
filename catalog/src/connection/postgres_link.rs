//! How a client of PostgreSQL and its server talk: on a runtime of the client's own, which runs while it is called and not
//! longer. No task and no other thread stands between a statement and its answer.
//!
//! Invariant: nobody waits for ever. A server that stands still, or whose machine has vanished, keeps its connections open and
//! says nothing; what is not answered in time ends the connection, and for a moment nobody else waits for that server.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Fuse, poll_fn};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Error};

use super::error::{DatabaseError, DatabaseResult};

/// How long a server that did not answer is not asked again.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a connection may take to end.
const GOODBYE: Duration = Duration::from_secs(1);

/// What moves the messages of a connection, until it is closed.
pub(super) type MessagePump = BoxFuture<'static, Result<(), Error>>;

/// Whether a server left somebody waiting a moment ago; the same for all connections to it.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerSilence(Arc<Mutex<Option<Instant>>>);

impl ServerSilence {
    /// Returns an error where the server did not answer a moment ago.
    pub(super) fn check(&self, server: &str) -> DatabaseResult<()> {
        match *self.0.lock() {
            Some(at) if at.elapsed() < TRIED_AGAIN_AFTER => Err(DatabaseError::Unreachable {
                server: server.to_owned(),
                reason: "it did not answer a moment ago".to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes that the server did not answer for so long, and returns the error of that.
    pub(super) fn note(&self, server: &str, patience: Duration) -> DatabaseError {
        *self.0.lock() = Some(Instant::now());
        let reason = format!("it did not answer for {} s", patience.as_secs());
        DatabaseError::Unreachable { server: server.to_owned(), reason }
    }

    /// Notes that it answers.
    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }
}

/// A client, and what carries its messages.
pub(super) struct PostgresLink {
    client: Client,
    messages: Fuse<MessagePump>,
    runtime: Runtime,
}

impl PostgresLink {
    /// Makes a connection. `None`: it was not there in time.
    pub(super) fn open(
        patience: Duration,
        connect: impl Future<Output = Result<(Client, MessagePump), Error>>,
    ) -> Option<Result<Self, LinkError>> {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(LinkError::Runtime(error))),
        };
        match block_on(&runtime, async { tokio::time::timeout(patience, connect).await }) {
            Ok(Ok((client, messages))) => Some(Ok(Self { client, messages: messages.fuse(), runtime })),
            Ok(Err(error)) => Some(Err(LinkError::Refused(error))),
            Err(_) => None,
        }
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Calls the server. `None`: there was no answer in time, and the connection is of no use any more.
    pub(super) fn call<T>(
        &mut self,
        patience: Duration,
        call: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let Self { client, messages, runtime } = self;
        let client: &Client = client;
        let answered = async {
            let mut answer = std::pin::pin!(call(client));
            let answered = poll_fn(|cx| {
                // Why the connection ended says more than that it has.
                if let Poll::Ready(Err(error)) = messages.poll_unpin(cx) {
                    return Poll::Ready(Err(error));
                }
                answer.as_mut().poll(cx)
            });
            tokio::time::timeout(patience, answered).await
        };
        block_on(runtime, answered).ok()
    }

    /// Ends the connection, on a thread of its own: to end a runtime takes one that belongs to no other.
    pub(super) fn close(self) {
        let Self { client, messages, runtime } = self;
        std::thread::spawn(move || {
            drop(client);
            // The server may be gone.
            let _ = block_on(&runtime, async { tokio::time::timeout(GOODBYE, messages).await });
        });
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum LinkError {
    /// This process has no more threads or files.
    Runtime(std::io::Error),
    /// The server does not have it.
    Refused(Error),
}

#[expect(clippy::disallowed_methods, reason = "connections are used on blocking threads only")]
fn block_on<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_not_asked_again_at_once() {
        let silence = ServerSilence::default();
        assert!(silence.check("pg").is_ok());
        let error = silence.note("pg", Duration::from_secs(5));
        assert_eq!(error.to_string(), "pg cannot be reached: it did not answer for 5 s");
        assert!(silence.clone().check("pg").unwrap_err().to_string().contains("a moment ago"));
        silence.end();
        assert!(silence.check("pg").is_ok());
    }
}

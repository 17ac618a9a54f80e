//! Connections: accepted from the port and from the socket in the file system within one bound, timed, and served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use http::HeaderValue;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::gathered::gathered;
use super::half_close::{ClientStream, HalfCloseStream};
use super::plaintext::{ConnectionRefusal, LINGER, OpeningProtocol, opening_protocol, refuse};
use super::socket_stream::SocketStream;
use super::unix::UnixSocketFile;
use crate::auth::{Authenticator, CLIENT_CERTIFICATE};
use crate::config::Settings;
use crate::connection::{AddressPlaces, ConnectionPlace, ConnectionScope};
use crate::drain::with_drained_body;
use crate::exchange::Exchange;
use crate::guard::ClientAddress;
use crate::http::take_azure_address;
use crate::metrics;
use crate::shutdown::Shutdown;
use crate::tls::ServerTls;

/// Flow-control windows: how much a client may send ahead of our reads. Enough for one Flight upload to fill a fast line
/// with a long delay; the connection's bounds what all its streams hold.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 32 << 20;
const MAX_FRAME: u32 = 1 << 20;
/// An answer's next frame, of about 1 MiB, is made once less than this waits to be sent before it.
const SEND_BUFFER: usize = 512 << 10;
pub(super) const CONCURRENT_STREAMS: u32 = 256;
/// How often HTTP/2 pings look for peers that vanished.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long a ping is waited for: a busy machine answers, and reads answers, late.
const KEEP_ALIVE_WITHIN: Duration = Duration::from_secs(60);
/// The pause after a failed accept, without which a process out of file descriptors would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many clients are told at once that they are not served; more are closed without a word.
const REFUSED_AT_ONCE: usize = 64;
/// How often the log says that connections cannot be accepted, or are refused, while it goes on.
const FAILURES_LOGGED_EVERY: Duration = Duration::from_secs(10);

/// Where connections come from.
pub(super) struct Listeners {
    pub(super) tcp: TcpListener,
    pub(super) unix: Option<UnixSocketFile>,
}

enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Listeners {
    async fn accept(&self) -> std::io::Result<Accepted> {
        let Some(unix) = &self.unix else { return self.accept_tcp().await };
        tokio::select! {
            accepted = self.accept_tcp() => accepted,
            accepted = unix.accept() => accepted.map(Accepted::Unix),
        }
    }

    async fn accept_tcp(&self) -> std::io::Result<Accepted> {
        self.tcp.accept().await.map(|(stream, peer)| Accepted::Tcp(stream, peer))
    }
}

/// What connections have to know of their server.
pub(super) struct ConnectionParts {
    pub(super) settings: Arc<Settings>,
    pub(super) shutdown: Shutdown,
    pub(super) auth: Arc<Authenticator>,
    /// Calls of one connection that may be open at once.
    pub(super) concurrent_streams: u32,
}

/// What all connections share.
pub(super) struct Connections {
    builder: auto::Builder<Tracked>,
    routes: Router,
    /// Of the port; none: its connections are not encrypted.
    tls: Option<Arc<ServerTls>>,
    addresses: AddressPlaces,
    refused: Arc<Semaphore>,
    state: ConnectionParts,
}

impl Connections {
    pub(super) fn new(routes: Router, tls: Option<Arc<ServerTls>>, state: ConnectionParts) -> Self {
        let addresses = AddressPlaces::new(state.settings.http.connections_of_address());
        let refused = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
        Self { builder: connection_builder(&state), routes, tls, addresses, refused, state }
    }

    /// Accepts connections until the server stops.
    pub(super) async fn accept(self, listeners: Listeners) {
        let places = Arc::new(Semaphore::new(self.state.settings.http.max_connections));
        let shared = Arc::new(self);
        let draining = shared.state.shutdown.draining();
        tokio::pin!(draining);
        let (mut failures, mut refusals) = (AcceptFailures::default(), AcceptFailures::default());
        loop {
            // The permit comes before the connection: beyond the bound, clients wait in the listener's queue.
            let place = tokio::select! {
                () = &mut draining => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            // The semaphore is never closed.
            let Ok(place) = place else { break };
            let accepted = tokio::select! {
                () = &mut draining => break,
                accepted = listeners.accept() => accepted,
            };
            let accepted = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    failures.log(&error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let peer = match &accepted {
                Accepted::Tcp(_, peer) => Some(*peer),
                Accepted::Unix(_) => None,
            };
            let of_address = peer.and_then(|peer| shared.addresses.take(peer.ip()));
            if let (Some(peer), None) = (peer, &of_address) {
                refusals.log_refused(peer);
                shared.refuse(accepted);
                continue;
            }
            let connections = Arc::clone(&shared);
            shared.state.shutdown.spawn(async move {
                let place = ConnectionPlace::new(place, of_address, metrics::connection_opened());
                match accepted {
                    Accepted::Tcp(stream, peer) => connections.serve_tcp(stream, peer, place).await,
                    Accepted::Unix(stream) => {
                        let stream = SocketStream::new(stream);
                        connections.serve_connection(stream, ClientAddress::Unix, None, place).await;
                    }
                }
            });
        }
    }

    /// Tells a client why it is not served, unless many are being told.
    fn refuse(self: &Arc<Self>, accepted: Accepted) {
        let (Accepted::Tcp(stream, _), Ok(turn)) = (accepted, Arc::clone(&self.refused).try_acquire_owned()) else {
            return;
        };
        let connections = Arc::clone(self);
        self.state.shutdown.spawn(async move {
            let told = connections.tls_or_refused(stream, ConnectionRefusal::TOO_MANY_CONNECTIONS);
            let _ = tokio::time::timeout(LINGER, told).await;
            drop(turn);
        });
    }

    async fn serve_tcp(&self, stream: TcpStream, peer: SocketAddr, place: ConnectionPlace) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return self.serve_connection(stream, ClientAddress::Tcp(peer), None, place).await;
        };
        let within = self.state.settings.http.header_timeout.0;
        let encrypted = tokio::select! {
            () = self.state.shutdown.draining() => return,
            encrypted = tokio::time::timeout(within, self.encrypt(tls, stream)) => encrypted,
        };
        match encrypted {
            Ok(Ok(Some(stream))) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = shown.and_then(|shown| self.state.auth.known_certificate(shown));
                self.serve_connection(stream, ClientAddress::Tcp(peer), certificate, place).await;
            }
            Ok(Ok(None)) => tracing::debug!(%peer, "a client did not speak TLS"),
            Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS with a client"),
            Err(_) => tracing::debug!(%peer, "no TLS within the header timeout"),
        }
    }

    /// Returns the encrypted stream; `None` if the client speaks something else, which it has been told.
    async fn encrypt(&self, tls: &ServerTls, stream: TcpStream) -> std::io::Result<Option<TlsStream<TcpStream>>> {
        match self.tls_or_refused(stream, ConnectionRefusal::WITHOUT_TLS).await? {
            Some(stream) => tls.acceptor().accept(stream).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the connection of a client that speaks TLS; another one is told `refusal`.
    async fn tls_or_refused(
        &self,
        stream: TcpStream,
        refusal: ConnectionRefusal,
    ) -> std::io::Result<Option<TcpStream>> {
        match opening_protocol(stream, refusal).await? {
            OpeningProtocol::Tls(stream) => Ok(Some(stream)),
            OpeningProtocol::Http2(stream) => {
                let refusing = hyper::service::service_fn(move |request| refuse(request, refusal));
                let connection = self.builder.serve_connection(TokioIo::new(stream), refusing);
                let _ = tokio::time::timeout(LINGER, connection).await;
                Ok(None)
            }
            OpeningProtocol::Answered => Ok(None),
        }
    }

    /// Serves any byte stream until it ends, its client is too slow, or the server stops.
    /// `certificate` is the known name of the one that the client showed.
    async fn serve_connection(
        &self,
        io: impl ClientStream,
        peer: ClientAddress,
        certificate: Option<HeaderValue>,
        place: ConnectionPlace,
    ) {
        let exchange = Exchange::default();
        let io = HalfCloseStream::new(io, exchange.clone());
        let scope = ConnectionScope::default();
        let requested = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&requested);
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            seen.store(true, Ordering::Relaxed);
            request.headers_mut().remove(CLIENT_CERTIFICATE);
            if let Some(name) = &certificate {
                request.headers_mut().insert(CLIENT_CERTIFICATE, name.clone());
            }
            take_azure_address(&mut request);
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(scope.clone());
            request.extensions_mut().insert(place.clone());
            let (method, version, exchange) = (request.method().clone(), request.version(), exchange.clone());
            let answer = self.routes.clone().oneshot(with_drained_body(request, &exchange, &self.state.shutdown));
            async move { answer.await.map(|response| gathered(exchange.answer(response, &method, version), version)) }
        });
        let shutdown = &self.state.shutdown;
        let connection = self.builder.serve_connection_with_upgrades(TokioIo::new(io), service);
        // hyper bounds the time of the headers once it knows the protocol; a client that never says it is cut here.
        let first_request = tokio::time::sleep(self.state.settings.http.header_timeout.0);
        tokio::pin!(connection, first_request);
        let (mut timed, mut draining) = (true, false);
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, %peer, "connection ended");
                    }
                    break;
                }
                () = &mut first_request, if timed => {
                    timed = false;
                    if !requested.load(Ordering::Relaxed) {
                        tracing::debug!(%peer, "no request within the header timeout");
                        break;
                    }
                }
                () = shutdown.draining(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

fn connection_builder(state: &ConnectionParts) -> auto::Builder<Tracked> {
    let mut builder = auto::Builder::new(Tracked(state.shutdown.clone()));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(state.settings.http.header_timeout.0);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(state.concurrent_streams)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_WITHIN);
    builder
}

/// Connections that are not served: they cannot be accepted, which comes many times a second where the process is out of file
/// descriptors, or are refused.
#[derive(Default)]
struct AcceptFailures {
    logged_at: Option<Instant>,
    since: u64,
}

impl AcceptFailures {
    fn log(&mut self, error: &std::io::Error) {
        if let Some(failures) = self.count() {
            tracing::warn!(%error, failures, "cannot accept a connection");
        }
    }

    fn log_refused(&mut self, peer: SocketAddr) {
        if let Some(connections) = self.count() {
            tracing::warn!(
                %peer,
                connections,
                "an address has as many connections as it may have (http.max_connections_per_address): more are refused"
            );
        }
    }

    /// Counts one. Returns how many there are since the last line of the log, if it is time for another.
    fn count(&mut self) -> Option<u64> {
        self.since += 1;
        if self.logged_at.is_some_and(|at| at.elapsed() < FAILURES_LOGGED_EVERY) {
            return None;
        }
        self.logged_at = Some(Instant::now());
        Some(std::mem::take(&mut self.since))
    }
}

/// Spawns hyper's per-stream tasks as tasks of the server, so that a shutdown waits for them.
#[derive(Clone)]
struct Tracked(Shutdown);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_go_on_are_logged_now_and_then() {
        let mut failures = AcceptFailures::default();
        let error = std::io::Error::other("too many open files");
        failures.log(&error);
        let first = failures.logged_at;
        failures.log(&error);
        failures.log(&error);
        assert_eq!((failures.logged_at, failures.since), (first, 2));
        failures.logged_at = Instant::now().checked_sub(FAILURES_LOGGED_EVERY);
        failures.log(&error);
        assert_eq!(failures.since, 0);
    }
}

//! The listener: gRPC, HTTP/1.1 and HTTP/2 on one port, and the server's life from open to close.
//!
//! Connections are accepted, bounded and timed here, below any framework: a client that sends nothing, or its headers
//! a byte at a time, is disconnected. TLS belongs between `accept` and `serve_connection`, which takes any byte stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use querent_agent::models::{ModelProvider, Models};
use querent_agent::{Agent, AgentError};
use querent_catalog::{CatalogError, Progress, Purged};
use querent_engine::{Engine, EngineError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tonic::transport::server::TcpConnectInfo;
use tower::ServiceExt;

use crate::admission::Admission;
use crate::auth::Authenticator;
use crate::config::Config;
use crate::drain::with_drained_body;
use crate::error::ErrorCode;
use crate::metrics::RunMetrics;
use crate::shutdown::Shutdown;
use crate::state::AppState;
use crate::{http, metrics, sql};

/// Flow-control windows: how much a client may send ahead of our reads. Enough for one Flight upload to fill a fast line
/// with a long delay.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 32 << 20;
const MAX_FRAME: u32 = 1 << 20;
const SEND_BUFFER: usize = 1 << 20;
const CONCURRENT_STREAMS: u32 = 256;
/// How often HTTP/2 pings look for peers that vanished.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// The pause after a failed accept, without which a process out of file descriptors would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often runs past their retention are deleted.
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often the metrics recorder folds old histogram samples.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Starts servers.
pub struct Server;

/// A server that accepts connections. Dropping it cuts every connection at once; [`RunningServer::shutdown`] stops it in
/// order.
pub struct RunningServer {
    /// The address that it listens on, with the actual port if the settings asked for port 0.
    pub addr: SocketAddr,
    state: AppState,
}

/// Why a server did not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}; choose another with --listen or QUERENT_LISTEN")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The engine's error, code kept.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The catalog's error, code kept.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The agent's error, code kept.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The metrics recorder cannot be made.
    #[error("cannot start metrics: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}

impl ServerError {
    /// The stable code, documented in `docs/errors.md`.
    pub fn code(&self) -> ErrorCode {
        match self {
            ServerError::Listen { .. } => ErrorCode::ListenError,
            ServerError::Engine(error) => error.into(),
            ServerError::Catalog(error) => error.into(),
            ServerError::Agent(error) => error.into(),
            ServerError::Metrics(_) => ErrorCode::Internal,
        }
    }
}

impl Server {
    /// Opens the data folder and listens, with the models of the settings.
    pub async fn start(config: Config, progress: Arc<dyn Progress>) -> Result<RunningServer, ServerError> {
        // The clients of model servers need it.
        install_crypto_provider();
        let models = config.settings.models().await?;
        Self::start_with_models(config, models, progress).await
    }

    /// Starts a server with the given model instead of the settings' ones.
    pub async fn start_with(
        config: Config,
        model: Arc<dyn ModelProvider>,
        progress: Arc<dyn Progress>,
    ) -> Result<RunningServer, ServerError> {
        Self::start_with_models(config, Models::single(model), progress).await
    }

    /// Starts a server with the given models instead of the settings' ones.
    pub async fn start_with_models(
        config: Config,
        models: Models,
        progress: Arc<dyn Progress>,
    ) -> Result<RunningServer, ServerError> {
        install_crypto_provider();
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let settings = Arc::new(config.settings);
        let metrics = metrics::install()?;
        let listen_error = |source| ServerError::Listen { addr: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen_error)?;
        let addr = listener.local_addr().map_err(listen_error)?;

        let engine = Engine::open_with(settings.engine_options(progress)?).await?;
        http::sweep_spool(&settings.data).await;
        let abandoned = engine.catalog().runs().abandon_running().await?;
        if abandoned > 0 {
            tracing::warn!(runs = abandoned, "runs of an earlier process did not end; they are stored as errors");
        }
        let agent = Agent::with_models(engine.clone(), models, settings.agent_config(), Arc::new(RunMetrics));
        let state = AppState {
            engine,
            agent,
            auth: Arc::new(Authenticator::new(&settings.auth.tokens)),
            admission: Admission::new(settings.query.max_concurrent),
            shutdown: Shutdown::default(),
            settings,
            started_at: chrono::Utc::now(),
            metrics,
        };
        let upkeep = state.clone();
        state.shutdown.spawn(async move {
            while !upkeep.shutdown.is_unready() {
                upkeep.metrics.run_upkeep();
                let _ = tokio::time::timeout(METRICS_UPKEEP, upkeep.shutdown.draining()).await;
            }
        });
        state.shutdown.spawn(forget_old_runs(state.clone()));
        state.shutdown.spawn(accept(listener, state.clone()));
        tracing::info!(%addr, data = %state.settings.data.display(), anonymous = state.auth.is_open(), "listening");
        Ok(RunningServer { addr, state })
    }
}

/// Deletes runs and users past their retention, at the start and then every hour.
async fn forget_old_runs(state: AppState) {
    let retention = state.settings.agent.retention.0;
    while !state.shutdown.is_unready() {
        match state.engine.catalog().external_users().purge(chrono::Utc::now()).await {
            Ok(0) => {}
            Ok(users) => tracing::info!(users, "users whose time was over were deleted"),
            Err(error) => tracing::warn!(code = error.code(), %error, "old users could not be deleted"),
        }
        let age = chrono::TimeDelta::from_std(retention).ok().filter(|age| !age.is_zero());
        if let Some(before) = age.and_then(|age| chrono::Utc::now().checked_sub_signed(age)) {
            match state.engine.catalog().purge_before(before).await {
                Ok(purged) if purged == Purged::default() => {}
                Ok(purged) => tracing::info!(?purged, "old runs were deleted"),
                Err(error) => tracing::warn!(code = error.code(), %error, "old runs could not be deleted"),
            }
        }
        let _ = tokio::time::timeout(PURGE_EVERY, state.shutdown.draining()).await;
    }
}

impl RunningServer {
    /// Returns the server's parts, for callers in the same process.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops: `/ready` says 503, no new connections, runs end with `run_finished`, open requests finish or are cut at
    /// the deadline, the data folder is closed.
    pub async fn shutdown(self) -> Result<(), ServerError> {
        let shutdown = &self.state.shutdown;
        let deadline = self.state.settings.shutdown_timeout.0;
        shutdown.begin();
        tokio::time::sleep(self.state.settings.shutdown_delay.0).await;
        shutdown.drain();
        if tokio::time::timeout(deadline, self.state.agent.shutdown()).await.is_err() {
            tracing::warn!("runs did not end within the shutdown's deadline");
        }
        let cut = shutdown.finish(deadline).await;
        if cut > 0 {
            tracing::warn!(requests = cut, "open requests were cut at the shutdown's deadline");
        }
        self.state.engine.close().await?;
        tracing::info!("stopped");
        Ok(())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.state.shutdown.cut();
    }
}

/// Makes ring the process's TLS provider. `main` calls it first; later calls change nothing.
pub fn install_crypto_provider() {
    // Fails if there is a provider already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the HTTP routes with the Flight service beside them. The HTTP router comes first: otherwise the gRPC router's
/// fallback would answer unknown HTTP paths.
fn routes(state: &AppState) -> Router {
    let http = http::router(state);
    let routes = sql::add_service(tonic::service::Routes::from(http), state);
    http::wrap_routes(routes.into_axum_router(), state)
}

async fn accept(listener: TcpListener, state: AppState) {
    let places = Arc::new(Semaphore::new(state.settings.http.max_connections));
    let shared = Arc::new(Connections { builder: connection_builder(&state), routes: routes(&state), state });
    let draining = shared.state.shutdown.draining();
    tokio::pin!(draining);
    loop {
        // The permit comes before the connection: beyond the bound, clients wait in the listener's queue.
        let place = tokio::select! {
            () = &mut draining => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = &mut draining => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connections = Arc::clone(&shared);
        shared.state.shutdown.spawn(async move {
            let _place = place;
            let _open = metrics::connection_opened();
            connections.serve_tcp(stream, peer).await;
        });
    }
}

/// What all connections share.
struct Connections {
    builder: auto::Builder<Tracked>,
    routes: Router,
    state: AppState,
}

impl Connections {
    async fn serve_tcp(&self, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let info = TcpConnectInfo { local_addr: stream.local_addr().ok(), remote_addr: Some(peer) };
        self.serve_connection(stream, peer, info).await;
    }

    /// Serves any byte stream until it ends, its client is too slow, or the server stops.
    async fn serve_connection<IO>(&self, io: IO, peer: SocketAddr, info: TcpConnectInfo)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let requested = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&requested);
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            seen.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(info.clone());
            self.routes.clone().oneshot(with_drained_body(request, &self.state.shutdown))
        });
        let shutdown = &self.state.shutdown;
        let connection = self.builder.serve_connection(TokioIo::new(io), service);
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

fn connection_builder(state: &AppState) -> auto::Builder<Tracked> {
    let mut builder = auto::Builder::new(Tracked(state.shutdown.clone()));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(state.settings.http.header_timeout.0);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(CONCURRENT_STREAMS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
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

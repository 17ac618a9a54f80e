//! The listener: gRPC, HTTP/1.1 and HTTP/2 on one port, and the server's life from open to close.
//!
//! Connections are accepted, bounded and timed in [`connections`], below any framework: a client that sends nothing, or its
//! headers a byte at a time, is disconnected. A port speaks TLS or plain text, never both.

mod connections;
mod gathered;
mod half_close;
mod plaintext;
mod socket_stream;
mod unix;
mod upkeep;
mod worker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use querent_agent::models::{ModelProvider, Models};
use querent_agent::{Agent, AgentError, InterruptedRun};
use querent_catalog::{CatalogError, FolderServer, Progress};
use querent_engine::{Engine, EngineError};
use tokio::net::TcpListener;

use crate::admission::Admission;
use crate::auth::{Authenticator, OidcVerifier};
use crate::cluster::Forwarding;
use crate::config::Config;
use crate::conversation_room::ConversationRoom;
use crate::error::ErrorCode;
use crate::idempotent_answers::IdempotentAnswers;
use crate::metrics::RunMetrics;
use crate::shutdown::Shutdown;
use crate::state::AppState;
use crate::table_profiles::KeptTableProfiles;
use crate::tls::{ServerTls, TlsError};
use crate::{cluster, http, metrics, sql};
use connections::{CONCURRENT_STREAMS, ConnectionParts, Connections, Listeners};
use unix::UnixSocketFile;
pub use worker::RunningWorker;

/// How often runs of servers that are lost are looked for.
const LOST_SERVERS_EVERY: Duration = Duration::from_secs(5);
/// How often the metrics recorder folds old histogram samples.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Starts servers.
pub struct Server;

/// A server that accepts connections. Dropping it cuts every connection at once; [`RunningServer::shutdown`] stops it in
/// order.
pub struct RunningServer {
    /// The address that it listens on, with the actual port if the settings asked for port 0.
    pub addr: SocketAddr,
    tls: Option<Arc<ServerTls>>,
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
    /// Others would reach a server without tokens.
    #[error("invalid setting listen: {detail}")]
    OpenToOthers {
        /// What to do.
        detail: String,
    },
    /// The identity provider's address is none, or no client can be made for it.
    #[error("invalid setting auth.oidc: {reason}")]
    IdentityProvider {
        /// What is wrong.
        reason: String,
    },
    /// Ids have the time since 1970 in them, which a clock that was never set does not have.
    #[error("the clock of this machine is before 1970; set it, then start again")]
    ClockNotSet,
    /// The key of the data folder that signs tickets cannot be read or made.
    #[error("cannot read or make the key that signs tickets: {source}")]
    Key {
        /// Why.
        source: std::io::Error,
    },
    /// The socket in the file system cannot be listened on.
    #[error("cannot listen on {}: {source}; choose another path with listen_unix", .path.display())]
    ListenUnix {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no TLS with the files of the settings.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
            ServerError::Listen { .. } | ServerError::ListenUnix { .. } => ErrorCode::ListenError,
            ServerError::OpenToOthers { .. } | ServerError::IdentityProvider { .. } | ServerError::ClockNotSet => {
                ErrorCode::ConfigError
            }
            ServerError::Key { .. } => ErrorCode::IoError,
            ServerError::Tls(error) => error.code(),
            ServerError::Engine(error) => error.into(),
            ServerError::Catalog(error) => error.into(),
            ServerError::Agent(error) => error.into(),
            ServerError::Metrics(_) => ErrorCode::Internal,
        }
    }
}

fn require_set_clock(now: SystemTime) -> Result<(), ServerError> {
    if now < UNIX_EPOCH { Err(ServerError::ClockNotSet) } else { Ok(()) }
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
        require_set_clock(SystemTime::now())?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let effective_settings = Arc::from(config.effective());
        let settings = Arc::new(config.settings);
        let metrics = metrics::install()?;
        let listen_error = |source| ServerError::Listen { addr: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen_error)?;
        let addr = listener.local_addr().map_err(listen_error)?;
        let unix = match &settings.listen_unix {
            Some(path) => {
                let bound = UnixSocketFile::bind(path).await;
                Some(bound.map_err(|source| ServerError::ListenUnix { path: path.clone(), source })?)
            }
            None => None,
        };

        let mut options = settings.engine_options(progress)?;
        options.cluster = cluster::engine_options(&settings.cluster).await?;
        let embedder = options.embedder.clone();
        let engine = Engine::open_with(options).await?;
        // Once the data folder is ours: a development certificate is made in it.
        let tls = ServerTls::open(&settings.tls, &settings.data).await?.map(Arc::new);
        let forwarding = Forwarding::open(&settings.cluster, engine.catalog().members().own()).await?;
        http::sweep_spool(&settings.data).await;
        let ticket_key = sql::signing_key(&settings.data).await.map_err(|source| ServerError::Key { source })?;
        let agent = Agent::with_models(engine.clone(), models, settings.agent_config(), Arc::new(RunMetrics));
        let interrupted = agent.end_interrupted_runs().await?;
        if interrupted.ended > 0 {
            tracing::warn!(
                runs = interrupted.ended,
                "runs of an earlier process did not end; they are stored as failed"
            );
        }
        let shutdown = Shutdown::default();
        let oidc = OidcVerifier::new(&settings.auth.oidc, shutdown.clone());
        let oidc = oidc.map_err(|reason| ServerError::IdentityProvider { reason })?;
        let auth = Authenticator::new(&settings.auth.tokens)
            .with_catalog(Arc::clone(engine.catalog()))
            .with_oidc(oidc)
            .with_certificates(&settings.tls.clients);
        if let Some(detail) = settings.open_to_others().filter(|_| auth.is_open()) {
            return Err(ServerError::OpenToOthers { detail });
        }
        if settings.audit.enabled {
            engine.catalog().audit().keep().await?;
        }
        let slot_limits = settings.query.slot_limits(engine.query_capacity());
        let admission = Admission::new(slot_limits, settings.query.queue_timeout.0);
        let state = AppState {
            engine,
            agent,
            auth: Arc::new(auth),
            admission,
            shutdown,
            settings,
            started_at: chrono::Utc::now(),
            embedder,
            conversation_room: ConversationRoom::default(),
            idempotent_answers: IdempotentAnswers::default(),
            effective_settings,
            table_profiles: KeptTableProfiles::default(),
            metrics,
            forwarding,
            ticket_key: ticket_key.into(),
        };
        let shown = state.metrics.clone();
        state.engine.show_metrics_with(move |sees_all| metrics::shown(shown.render(), sees_all));
        // Before anybody is told that they have failed.
        begin_again(&state, interrupted.may_begin_again).await;
        let upkeep = state.clone();
        state.shutdown.spawn(async move {
            while !upkeep.shutdown.is_unready() {
                upkeep.metrics.run_upkeep();
                metrics::engine_state(&upkeep.engine);
                let _ = tokio::time::timeout(METRICS_UPKEEP, upkeep.shutdown.draining()).await;
            }
        });
        state.shutdown.spawn(upkeep::forget_old_records(state.clone()));
        state.shutdown.spawn(upkeep::forget_old_runs(state.clone()));
        state.shutdown.spawn(upkeep::remove_orphans(state.clone()));
        state.shutdown.spawn(upkeep::forget_old_snapshots(state.clone()));
        state.shutdown.spawn(upkeep::merge_small_files(state.clone()));
        if state.forwarding.is_shared() {
            state.shutdown.spawn(end_runs_of_lost_servers(state.clone()));
        }
        if let Some(tls) = &tls {
            state.shutdown.spawn(Arc::clone(tls).follow(state.shutdown.clone()));
        }
        let parts = ConnectionParts {
            settings: Arc::clone(&state.settings),
            shutdown: state.shutdown.clone(),
            auth: Arc::clone(&state.auth),
            concurrent_streams: CONCURRENT_STREAMS,
        };
        let connections = Connections::new(routes(&state), tls.clone(), parts);
        state.shutdown.spawn(connections.accept(Listeners { tcp: listener, unix }));
        let server = RunningServer { addr, tls, state };
        tell_other_servers(&server.state, addr).await;
        let found_at = FolderServer {
            url: reachable_url(&server.url(), addr),
            certificate: server.development_certificate().map(Path::to_owned),
        };
        if let Err(error) = server.state.engine.catalog().announce(&found_at) {
            tracing::warn!(%error, "the command line will not find this server by its data folder");
        }
        let (settings, anonymous) = (&server.state.settings, server.state.auth.is_open());
        tracing::info!(url = server.url(), data = %settings.data.display(), anonymous, "listening");
        if anonymous && settings.http.cors_allowed_origins.iter().any(|origin| origin == "*") {
            tracing::warn!("http.cors_allowed_origins has *, which lets no page in while there are no tokens");
        }
        if let Some(path) = &settings.listen_unix {
            tracing::info!(path = %path.display(), "listening on a socket in the file system");
        }
        if let Some(certificate) = server.development_certificate() {
            tracing::info!(certificate = %certificate.display(), "clients of this server must trust this certificate");
        }
        Ok(server)
    }
}

/// Returns the URL by which a process on this machine reaches a server that listens on all addresses.
fn reachable_url(url: &str, addr: SocketAddr) -> String {
    match addr.ip().is_unspecified() {
        true => url.replacen(&addr.to_string(), &format!("localhost:{}", addr.port()), 1),
        false => url.to_owned(),
    }
}

/// Tells the servers that share the catalog where they reach this one, which listens at `addr`.
async fn tell_other_servers(state: &AppState, addr: SocketAddr) {
    if !state.forwarding.is_shared() {
        return;
    }
    let address = state.settings.address_for_others(addr);
    match &address {
        Some(address) => tracing::info!(address, "the other servers of the catalog reach this one here"),
        None => tracing::warn!(
            "the other servers of the catalog do not reach this one, so what they are asked about its runs waits for their \
             end: set cluster.address"
        ),
    }
    if let Err(error) = state.engine.catalog().members().announce(address).await {
        tracing::warn!(code = error.code(), %error, "the other servers of the catalog will reach this one a little later");
    }
}

/// Begins runs in the background again that an earlier process left in progress, with the rights that their callers have now.
async fn begin_again(state: &AppState, interrupted: Vec<InterruptedRun>) {
    for InterruptedRun { run_id, subject } in interrupted {
        let Some(caller) = state.auth.only_principal_of(&subject) else {
            tracing::warn!(%run_id, "a run in the background does not begin again: its caller has no one token now");
            continue;
        };
        match state.agent.begin_again(&caller, run_id).await {
            Ok(()) => tracing::info!(%run_id, "a run in the background begins again"),
            Err(error) => {
                tracing::warn!(%run_id, code = error.code(), %error, "a run in the background does not begin again")
            }
        }
    }
}

/// Ends the runs of servers that share the catalog and are lost.
async fn end_runs_of_lost_servers(state: AppState) {
    while tokio::time::timeout(LOST_SERVERS_EVERY, state.shutdown.draining()).await.is_err() {
        match state.agent.end_runs_of_lost_servers().await {
            Ok(0) => {}
            Ok(runs) => tracing::warn!(runs, "runs of a server that gives no sign of life are stored as failed"),
            Err(error) => tracing::warn!(code = error.code(), %error, "runs of lost servers could not be ended"),
        }
    }
}

impl RunningServer {
    /// Returns the server's parts, for callers in the same process.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Returns the address as a URL: `https://` where connections are encrypted.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.addr)
    }

    /// Returns the certificate that clients must be told to trust, where the server has made its own.
    pub fn development_certificate(&self) -> Option<&Path> {
        self.tls.as_ref().and_then(|tls| tls.development_certificate())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_refused() {
        require_set_clock(SystemTime::now()).unwrap();
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(require_set_clock(before).unwrap_err().code(), ErrorCode::ConfigError);
    }
}

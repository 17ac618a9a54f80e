//! A server of role `worker`: parts of a coordinator's queries, health and metrics on its port, and nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;
use querent_catalog::Progress;
use querent_engine::ClusterWorker;
use serde_json::json;
use tokio::net::TcpListener;
use tonic::Status;

use super::connections::{ConnectionParts, Connections, Listeners};
use super::{METRICS_UPKEEP, Server, ServerError, install_crypto_provider, require_set_clock};
use crate::auth::Authenticator;
use crate::cluster::{ClusterChannels, ClusterKey, ClusterTls, WorkerGate, gate};
use crate::config::{Config, Settings};
use crate::metrics;
use crate::shutdown::Shutdown;
use crate::tls::ServerTls;

/// Calls of one server that may be open at once: a query holds several for as long as it runs, and none may wait for another.
const CONCURRENT_STREAMS: u32 = 1 << 16;

/// A worker that accepts tasks. Dropping it cuts every connection at once.
pub struct RunningWorker {
    /// The address that it listens on.
    pub addr: SocketAddr,
    /// `https` where it speaks TLS, else `http`.
    pub scheme: &'static str,
    settings: Arc<Settings>,
    shutdown: Shutdown,
}

/// What the routes of a worker answer with.
#[derive(Clone)]
struct WorkerState {
    worker: ClusterWorker,
    shutdown: Shutdown,
    metrics: PrometheusHandle,
}

impl Server {
    /// Listens for tasks of coordinators, with a data folder for what is spilled and nothing else.
    pub async fn start_worker(config: Config, progress: Arc<dyn Progress>) -> Result<RunningWorker, ServerError> {
        install_crypto_provider();
        require_set_clock(SystemTime::now())?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let settings = Arc::new(config.settings);
        let metrics = metrics::install()?;
        let listen_error = |source| ServerError::Listen { addr: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen_error)?;
        let addr = listener.local_addr().map_err(listen_error)?;
        let key = ClusterKey::new(settings.cluster.key.as_deref().unwrap_or_default());
        let options = settings.worker_options(progress);
        let channels = ClusterChannels::new(key.clone(), ClusterTls::open(&settings.cluster).await?);
        let worker = ClusterWorker::open(&options, Arc::new(channels)).await?;
        let tls = ServerTls::open(&settings.tls, &settings.data).await?.map(Arc::new);
        let shutdown = Shutdown::default();
        if let Some(tls) = &tls {
            shutdown.spawn(Arc::clone(tls).follow(shutdown.clone()));
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = WorkerState { worker: worker.clone(), shutdown: shutdown.clone(), metrics };
        let upkeep = state.clone();
        shutdown.spawn(async move {
            while !upkeep.shutdown.is_unready() {
                upkeep.metrics.run_upkeep();
                let _ = tokio::time::timeout(METRICS_UPKEEP, upkeep.shutdown.draining()).await;
            }
        });
        let parts = ConnectionParts {
            settings: Arc::clone(&settings),
            shutdown: shutdown.clone(),
            auth: Arc::new(Authenticator::new(&[])),
            concurrent_streams: CONCURRENT_STREAMS,
        };
        let connections = Connections::new(routes(state, WorkerGate { key, worker }), tls, parts);
        shutdown.spawn(connections.accept(Listeners { tcp: listener, unix: None }));
        tracing::info!(url = format!("{scheme}://{addr}"), "listening for tasks");
        Ok(RunningWorker { addr, scheme, settings, shutdown })
    }
}

impl RunningWorker {
    /// Stops: no new tasks, those that run end or are cut at the deadline.
    pub async fn shutdown(self) {
        self.shutdown.begin();
        tokio::time::sleep(self.settings.shutdown_delay.0).await;
        self.shutdown.drain();
        let cut = self.shutdown.finish(self.settings.shutdown_timeout.0).await;
        if cut > 0 {
            tracing::warn!(requests = cut, "tasks were cut at the shutdown's deadline");
        }
        tracing::info!("stopped");
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.shutdown.cut();
    }
}

fn routes(state: WorkerState, before: WorkerGate) -> Router {
    let service = state.worker.service().into_worker_server();
    let http = Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics_text))
        .fallback(nothing_else)
        .with_state(state);
    let routes = tonic::service::Routes::from(http).add_service(service);
    routes.into_axum_router().layer(from_fn_with_state(before, gate))
}

async fn health() -> Response {
    let health = json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION"), "role": "worker" });
    (StatusCode::OK, Json(health)).into_response()
}

async fn ready(State(state): State<WorkerState>) -> Response {
    match state.shutdown.is_unready() {
        true => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "stopping" }))).into_response(),
        false => {
            let ready = json!({ "status": "ready", "tasks": state.worker.running_tasks() });
            (StatusCode::OK, Json(ready)).into_response()
        }
    }
}

async fn metrics_text(State(state): State<WorkerState>) -> Response {
    metrics::column_cache(state.worker.column_cache());
    metrics::file_cache(state.worker.file_cache());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}

async fn nothing_else(headers: HeaderMap) -> Response {
    let message = "this server is a worker: it has /health, /ready, /metrics and a coordinator's tasks";
    let hint = "send statements to the coordinator";
    let content = headers.get(header::CONTENT_TYPE).and_then(|content| content.to_str().ok()).unwrap_or_default();
    if content.starts_with("application/grpc") {
        return Status::unimplemented(format!("{message}; {hint}")).into_http();
    }
    let error = json!({ "error": { "code": "not_found", "message": message, "hint": hint } });
    (StatusCode::NOT_FOUND, Json(error)).into_response()
}

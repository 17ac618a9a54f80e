//! Channels to workers: one connection each, with signed requests, that is known to be dead within seconds, and encrypted
//! where the URL says so. What a worker's loss looks like to HTTP becomes one error, with the worker's address.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, Request, Response, Uri};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use querent_engine::{EngineError, error_on_worker};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::client::TlsStream;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::Service;
use url::Url;

use super::discovery::certificate_name;
use super::signature::{ClusterKey, FirstMessageError, first_message, resumed};
use super::watched_stream::{ConnectionFault, SPEAKS_TLS, WatchedStream};
use super::worker_tls::{ClusterTls, connect_fault};
use crate::tls::PORT_SPEAKS_TLS;

const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How often a connection is asked whether it is alive, and how long it may take to say so: a worker that vanished without
/// a word is noticed within the sum.
const ASKED_EVERY: Duration = Duration::from_secs(2);
const ANSWER_TIME: Duration = Duration::from_secs(4);
const WINDOW: u32 = 16 << 20;
/// Streams share it, and one that nobody reads keeps what it holds of it: as large as HTTP/2 has it, so that none waits for another.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// How long a channel is kept that nobody asks for: its worker may have gone for good.
const KEPT_UNUSED: Duration = Duration::from_secs(600);

/// Opens and keeps the channels to workers.
pub(crate) struct ClusterChannels {
    key: ClusterKey,
    tls: ClusterTls,
    /// Drives the connections: the runtime of the query that opens one may end with it.
    runtime: Handle,
    open: Mutex<HashMap<Url, OpenChannel>>,
}

type PlainStream = TokioIo<WatchedStream<TcpStream>>;
type EncryptedStream = TokioIo<WatchedStream<TlsStream<TcpStream>>>;

/// A channel, and what is known of its connection.
#[derive(Clone)]
struct OpenChannel {
    channel: BoxCloneSyncChannel,
    /// Why there is no connection, which HTTP does not say.
    fault: ConnectionFault,
    last_used: Instant,
}

impl ClusterChannels {
    /// Returns channels whose connections the runtime of the caller drives.
    pub(crate) fn new(key: ClusterKey, tls: ClusterTls) -> Self {
        Self { key, tls, runtime: Handle::current(), open: Mutex::default() }
    }

    fn channel(&self, url: &Url) -> Result<OpenChannel> {
        let mut open = self.open.lock();
        if let Some(known) = open.get_mut(url) {
            known.last_used = Instant::now();
            return Ok(known.clone());
        }
        open.retain(|_, known| known.last_used.elapsed() < KEPT_UNUSED);
        let _entered = self.runtime.enter();
        let fault = ConnectionFault::default();
        let inner = lazy_channel(url, &self.tls, &fault).map_err(|error| lost(url, error.to_string()))?;
        let channel = BoxCloneSyncChannel::new(SignedChannel { inner, key: self.key.clone() });
        let opened = OpenChannel { channel, fault, last_used: Instant::now() };
        open.insert(url.clone(), opened.clone());
        Ok(opened)
    }
}

/// Returns a channel to a server, which connects when it is first used and again when it has been lost, and notes in `fault`
/// why it cannot.
pub(super) fn lazy_channel(
    url: &Url,
    tls: &ClusterTls,
    fault: &ConnectionFault,
) -> Result<Channel, tonic::transport::Error> {
    let mut origin = url.clone();
    origin.set_fragment(None);
    let endpoint = Endpoint::from_shared(origin.to_string())?
        .connect_timeout(CONNECT_TIME)
        .http2_keep_alive_interval(ASKED_EVERY)
        .keep_alive_timeout(ANSWER_TIME)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    Ok(match url.scheme() {
        "https" => endpoint.connect_with_connector_lazy(encrypted(url, tls, fault)),
        _ => endpoint.connect_with_connector_lazy(plain(fault)),
    })
}

/// Returns what connects to a worker that speaks TLS, and notes why it cannot.
fn encrypted(
    url: &Url,
    tls: &ClusterTls,
    fault: &ConnectionFault,
) -> impl Service<
    Uri,
    Response = EncryptedStream,
    Error = std::io::Error,
    Future = BoxFuture<'static, std::io::Result<EncryptedStream>>,
>
+ Send
+ 'static
+ use<> {
    let (url, tls, fault) = (url.clone(), tls.clone(), fault.clone());
    tower::service_fn(move |_: Uri| {
        let (url, tls, fault) = (url.clone(), tls.clone(), fault.clone());
        async move {
            let connected = tls.connect(&url, certificate_name(&url)).await;
            fault.set(connected.as_ref().err().map(connect_fault));
            connected.map(|stream| TokioIo::new(WatchedStream::encrypted(stream, fault)))
        }
        .boxed()
    })
}

/// Returns what connects to a worker in plain text, and notes why it cannot.
fn plain(
    fault: &ConnectionFault,
) -> impl Service<
    Uri,
    Response = PlainStream,
    Error = std::io::Error,
    Future = BoxFuture<'static, std::io::Result<PlainStream>>,
>
+ Send
+ 'static
+ use<> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIME));
    let fault = fault.clone();
    tower::service_fn(move |uri: Uri| {
        let (mut connector, fault) = (connector.clone(), fault.clone());
        async move {
            let connected = connector.call(uri).await;
            fault.set(connected.as_ref().err().map(with_causes));
            let stream = connected.map_err(std::io::Error::other)?;
            Ok(TokioIo::new(WatchedStream::plain(stream.into_inner(), fault)))
        }
        .boxed()
    })
}

/// Returns what an error says, and what each of its causes says.
pub(super) fn with_causes(error: &(impl std::error::Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

#[async_trait]
impl ChannelResolver for ClusterChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let OpenChannel { channel, fault, .. } = self.channel(url)?;
        let watch = WorkerWatch { url: url.clone(), fault };
        Ok(Box::new(WatchedWorker { client: create_worker_client(channel), watch: Arc::new(watch) }))
    }
}

/// Signs requests on their way to a worker.
#[derive(Clone)]
struct SignedChannel {
    inner: Channel,
    key: ClusterKey,
}

impl Service<Request<Body>> for SignedChannel {
    type Response = Response<Body>;
    type Error = tonic::transport::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, tonic::transport::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The one that is ready is used, a copy of it stays.
        let copy = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, copy);
        let key = self.key.clone();
        async move {
            let (mut parts, mut body) = request.into_parts();
            let body = match first_message(&mut body, usize::MAX).await {
                Ok(Some(first)) => {
                    key.sign(parts.uri.path(), &mut parts.headers, &first.message);
                    Body::new(StreamBody::new(resumed(first, body)))
                }
                Ok(None) | Err(FirstMessageError::TooLarge(_)) => Body::default(),
                Err(FirstMessageError::Body(error)) => {
                    Body::new(StreamBody::new(futures::stream::once(async move { Err::<Frame<Bytes>, _>(error) })))
                }
            };
            inner.call(Request::from_parts(parts, body)).await
        }
        .boxed()
    }
}

/// A worker whose loss has a name.
struct WatchedWorker {
    client: Box<dyn WorkerChannel>,
    watch: Arc<WorkerWatch>,
}

/// What a worker's errors are named with.
struct WorkerWatch {
    url: Url,
    fault: ConnectionFault,
}

#[async_trait]
impl WorkerChannel for WatchedWorker {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let answers = self.client.coordinator_channel(headers, messages).await;
        Ok(watched(answers.map_err(|error| self.watch.named(error))?, Arc::clone(&self.watch)))
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let rows = self.client.execute_task(headers, request, metrics, context).await;
        let rows = rows.map_err(|error| self.watch.named(error))?;
        Ok(rows.into_iter().map(|rows| watched(rows, Arc::clone(&self.watch))).collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.client.get_worker_info(request).await.map_err(|error| self.watch.named(error))
    }
}

fn watched<T: 'static>(
    stream: BoxStream<'static, Result<T>>,
    watch: Arc<WorkerWatch>,
) -> BoxStream<'static, Result<T>> {
    stream.map(move |item| item.map_err(|error| watch.named(error))).boxed()
}

impl WorkerWatch {
    /// What a worker says of its task is passed on; that it says nothing more, or nothing at all, is its loss.
    fn named(&self, error: DataFusionError) -> DataFusionError {
        let status = match &error {
            DataFusionError::External(inner) => inner.downcast_ref::<Status>(),
            _ => None,
        };
        let Some(status) = status else { return error_on_worker(error, self.url.as_str()) };
        // What it says by gRPC comes over a connection without a fault, unless it can only say that it wants another one.
        let told = || match status.message() {
            message if message.starts_with(PORT_SPEAKS_TLS) => SPEAKS_TLS.to_owned(),
            message => message.to_owned(),
        };
        lost(&self.url, self.fault.get().unwrap_or_else(told))
    }
}

fn lost(url: &Url, detail: String) -> DataFusionError {
    let detail = if detail.is_empty() { "it does not answer".to_owned() } else { detail };
    EngineError::WorkerLost { worker: url.to_string(), detail }.into()
}

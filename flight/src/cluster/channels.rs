//! Channels to workers: one connection each, with signed requests, that is known to be dead within seconds. What a worker's
//! loss looks like to HTTP becomes one error, with the worker's address.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

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
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use querent_engine::EngineError;
use tokio::runtime::Handle;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::Service;
use url::Url;

use super::signature::{ClusterKey, FirstMessageError, first_message, resumed};

const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How often a connection is asked whether it is alive, and how long it may take to say so: a worker that vanished without
/// a word is noticed within the sum.
const ASKED_EVERY: Duration = Duration::from_secs(2);
const ANSWER_TIME: Duration = Duration::from_secs(4);
const WINDOW: u32 = 16 << 20;

/// Opens and keeps the channels to workers.
pub(crate) struct ClusterChannels {
    key: ClusterKey,
    /// Drives the connections: the runtime of the query that opens one may end with it.
    runtime: Handle,
    open: Mutex<HashMap<Url, BoxCloneSyncChannel>>,
}

impl ClusterChannels {
    /// Returns channels whose connections the runtime of the caller drives.
    pub(crate) fn new(key: ClusterKey) -> Self {
        Self { key, runtime: Handle::current(), open: Mutex::default() }
    }

    fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let mut open = self.open.lock();
        if let Some(channel) = open.get(url) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(url.to_string())
            .map_err(|error| lost(url, error.to_string()))?
            .connect_timeout(CONNECT_TIME)
            .http2_keep_alive_interval(ASKED_EVERY)
            .keep_alive_timeout(ANSWER_TIME)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .tcp_nodelay(true);
        let _entered = self.runtime.enter();
        // It connects when it is first used, and again when it has been lost.
        let signed = SignedChannel { inner: endpoint.connect_lazy(), key: self.key.clone() };
        let channel = BoxCloneSyncChannel::new(signed);
        open.insert(url.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for ClusterChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let client = create_worker_client(self.channel(url)?);
        Ok(Box::new(WatchedWorker { client, url: Arc::new(url.clone()) }))
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
    url: Arc<Url>,
}

#[async_trait]
impl WorkerChannel for WatchedWorker {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let answers = self.client.coordinator_channel(headers, messages).await;
        Ok(watched(answers.map_err(|error| named(&self.url, error))?, Arc::clone(&self.url)))
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let rows = self.client.execute_task(headers, request, metrics, context).await;
        let rows = rows.map_err(|error| named(&self.url, error))?;
        Ok(rows.into_iter().map(|rows| watched(rows, Arc::clone(&self.url))).collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.client.get_worker_info(request).await.map_err(|error| named(&self.url, error))
    }
}

fn watched<T: 'static>(stream: BoxStream<'static, Result<T>>, url: Arc<Url>) -> BoxStream<'static, Result<T>> {
    stream.map(move |item| item.map_err(|error| named(&url, error))).boxed()
}

/// What a worker says of its task is passed on; that it says nothing more, or nothing at all, is its loss.
fn named(url: &Url, error: DataFusionError) -> DataFusionError {
    let DataFusionError::External(inner) = &error else { return error };
    match inner.downcast_ref::<Status>() {
        Some(status) => lost(url, status.message().to_owned()),
        None => error,
    }
}

fn lost(url: &Url, detail: String) -> DataFusionError {
    let detail = if detail.is_empty() { "it does not answer".to_owned() } else { detail };
    EngineError::WorkerLost { worker: url.to_string(), detail }.into()
}

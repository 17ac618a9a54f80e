//! The workers of a coordinator: which of them can be reached, and the configuration that queries are planned and executed
//! with on them.
//!
//! A worker is asked for its version before it is given work, and again after a while; one that is of another version, refuses
//! or does not answer is left out, and the log says so. One that was lost by a query is left out for a while without asking.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    ChannelResolver, DistributedConfig, DistributedExt, GetWorkerInfoRequest, WorkerResolver,
};
use futures::future::join_all;
use parking_lot::Mutex;
use url::Url;

use super::codec::PlanCodec;
use super::task_headers::TaskHeaders;
use crate::error::EngineError;
use crate::options::ClusterOptions;

/// How long the answer of a worker is taken for true.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// How long a worker may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// The workers that queries may use.
pub(crate) struct Cluster {
    options: ClusterOptions,
    /// By worker, what it said last.
    known: Mutex<HashMap<Url, Knowledge>>,
}

#[derive(Debug, Clone)]
struct Knowledge {
    since: Instant,
    /// `Err`: why it is left out.
    state: Result<(), String>,
}

/// The workers that can be given work, and why the others cannot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UsableWorkers {
    pub(super) urls: Vec<Url>,
    pub(super) left_out: Vec<String>,
}

/// The workers of one query.
struct QueryWorkers(Vec<Url>);

impl WorkerResolver for QueryWorkers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

impl Cluster {
    pub(crate) fn new(options: ClusterOptions) -> Self {
        Self { options, known: Mutex::default() }
    }

    /// Returns how much a query has to read before it is given to workers.
    pub(crate) fn min_scan_bytes(&self) -> u64 {
        self.options.min_scan_bytes
    }

    /// Returns the workers that can be given work. Errors: why none can.
    pub(super) async fn available(&self) -> Result<UsableWorkers, String> {
        let (workers, mut left_out) = self.options.workers.current().await;
        self.known.lock().retain(|worker, _| workers.contains(worker));
        let asked = workers.into_iter().map(|worker| async move {
            let state = self.state_of(&worker).await;
            (worker, state)
        });
        let mut urls = Vec::new();
        for (worker, state) in join_all(asked).await {
            match state {
                Ok(()) => urls.push(worker),
                Err(fault) => left_out.push(format!("{worker}: {fault}")),
            }
        }
        if urls.is_empty() { Err(left_out.join("; ")) } else { Ok(UsableWorkers { urls, left_out }) }
    }

    /// Returns the workers that are known, whether or not they can be given work.
    pub(crate) fn known_workers(&self) -> Vec<Url> {
        self.known.lock().keys().cloned().collect()
    }

    async fn state_of(&self, worker: &Url) -> Result<(), String> {
        if let Some(known) = self.known.lock().get(worker)
            && known.since.elapsed() < KNOWN_FOR
        {
            return known.state.clone();
        }
        let state = match tokio::time::timeout(ANSWER_TIME, version_of(&self.options.channels, worker)).await {
            Ok(Ok(version)) if version == env!("CARGO_PKG_VERSION") => Ok(()),
            Ok(Ok(version)) => Err(format!("it is of version {version}, this server of {}", env!("CARGO_PKG_VERSION"))),
            Ok(Err(error)) => Err(EngineError::from(error).to_string()),
            Err(_) => Err(format!("it did not answer within {} s", ANSWER_TIME.as_secs())),
        };
        if let Err(fault) = &state {
            tracing::warn!(%worker, fault, "a worker is left out");
        }
        self.known.lock().insert(worker.clone(), Knowledge { since: Instant::now(), state: state.clone() });
        state
    }

    /// Leaves a worker out for a while that a query has lost.
    pub(crate) fn note_lost(&self, worker: &str) {
        let Ok(worker) = worker.parse::<Url>() else { return };
        tracing::warn!(%worker, "a worker was lost and is left out for a while");
        let state = Err("a query has just lost it".to_owned());
        self.known.lock().insert(worker, Knowledge { since: Instant::now(), state });
    }

    /// Returns the configuration that a query is planned and executed with on `workers`.
    pub(super) fn config(&self, base: SessionConfig, workers: Vec<Url>, collects_metrics: bool) -> SessionConfig {
        let mut distributed = DistributedConfig::default();
        distributed.collect_metrics = collects_metrics;
        // A union runs all of its inputs in each task, each of them a part.
        distributed.children_isolator_unions = false;
        distributed.max_tasks_per_stage = workers.len();
        let channels: Arc<dyn ChannelResolver + Send + Sync> = Arc::clone(&self.options.channels);
        base.with_distributed_option_extension(distributed)
            .with_distributed_worker_resolver(QueryWorkers(workers))
            .with_distributed_channel_resolver(channels)
            .with_distributed_user_codec(PlanCodec::trusting())
    }
}

async fn version_of(channels: &Arc<dyn ChannelResolver + Send + Sync>, worker: &Url) -> Result<String> {
    let mut client = channels.get_worker_client_for_url(worker).await?;
    Ok(client.get_worker_info(GetWorkerInfoRequest {}).await?.version)
}

/// Returns the configuration of one execution of a plan that was distributed, whose tasks are told of `headers`.
pub(super) fn execution_config(planned: &SessionConfig, headers: TaskHeaders) -> Result<SessionConfig> {
    planned.clone().with_distributed_passthrough_headers(headers.write())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use arrow::array::RecordBatch;
    use async_trait::async_trait;
    use datafusion::common::{exec_err, not_impl_err};
    use datafusion::execution::TaskContext;
    use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
    use datafusion_distributed::{
        CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoResponse, WorkerChannel, WorkerToCoordinatorMsg,
    };
    use futures::stream::BoxStream;
    use http::HeaderMap;

    use super::*;
    use crate::options::WorkerAddresses;

    const OWN: &str = env!("CARGO_PKG_VERSION");

    /// Workers that say a version each, by their ports; others do not answer.
    struct Workers(HashMap<u16, &'static str>);

    /// One of them.
    struct VersionAnswer(&'static str);

    #[async_trait]
    impl ChannelResolver for Workers {
        async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
            match url.port().and_then(|port| self.0.get(&port)) {
                Some(version) => Ok(Box::new(VersionAnswer(version))),
                None => exec_err!("nobody listens"),
            }
        }
    }

    #[async_trait]
    impl WorkerChannel for VersionAnswer {
        async fn coordinator_channel(
            &mut self,
            _: HeaderMap,
            _: BoxStream<'static, CoordinatorToWorkerMsg>,
        ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
            not_impl_err!("it takes no plans")
        }

        async fn execute_task(
            &mut self,
            _: HeaderMap,
            _: ExecuteTaskRequest,
            _: ExecutionPlanMetricsSet,
            _: &Arc<TaskContext>,
        ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
            not_impl_err!("it has no rows")
        }

        async fn get_worker_info(&mut self, _: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
            Ok(GetWorkerInfoResponse { version: self.0.to_owned() })
        }
    }

    /// Addresses that a test changes.
    struct Addresses(Mutex<Vec<u16>>);

    fn url(port: u16) -> Url {
        Url::parse(&format!("http://127.0.0.1:{port}")).unwrap()
    }

    #[async_trait]
    impl WorkerAddresses for Addresses {
        async fn current(&self) -> (Vec<Url>, Vec<String>) {
            (self.0.lock().iter().map(|port| url(*port)).collect(), Vec::new())
        }
    }

    fn cluster(ports: &[u16]) -> (Cluster, Arc<Addresses>) {
        let addresses = Arc::new(Addresses(Mutex::new(ports.to_vec())));
        let versions = HashMap::from([(1, OWN), (2, OWN), (7, "0.0.7")]);
        let options = ClusterOptions {
            workers: Arc::clone(&addresses) as _,
            channels: Arc::new(Workers(versions)),
            min_scan_bytes: 1,
        };
        (Cluster::new(options), addresses)
    }

    #[tokio::test]
    async fn a_worker_of_another_version_is_left_out() {
        let (both, _) = cluster(&[1, 7, 9]);
        let UsableWorkers { urls, left_out } = both.available().await.unwrap();
        assert_eq!((urls, left_out.len()), (vec![url(1)], 2), "{left_out:?}");
        assert!(left_out.concat().contains("it is of version 0.0.7"), "{left_out:?}");
        let (other, _) = cluster(&[7, 9]);
        let faults = other.available().await.unwrap_err();
        assert!(faults.contains(&format!("it is of version 0.0.7, this server of {OWN}")), "{faults}");
        assert!(faults.contains("nobody listens"), "{faults}");
    }

    #[tokio::test]
    async fn a_lost_worker_and_one_whose_address_is_gone_are_left_out() {
        let (cluster, addresses) = cluster(&[1, 2]);
        assert_eq!(cluster.available().await.unwrap().urls, [url(1), url(2)]);
        cluster.note_lost(url(1).as_str());
        assert_eq!(cluster.available().await.unwrap().urls, [url(2)]);
        *addresses.0.lock() = vec![1];
        let faults = cluster.available().await.unwrap_err();
        assert!(faults.contains("a query has just lost it"), "{faults}");
        // Nothing is known of an address that comes back.
        addresses.0.lock().clear();
        assert!(cluster.available().await.is_err());
        *addresses.0.lock() = vec![1];
        assert_eq!(cluster.available().await.unwrap().urls, [url(1)]);
    }
}

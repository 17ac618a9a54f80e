//! How an engine is opened, with the defaults that settings and help texts format.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion_distributed::ChannelResolver;
use querent_catalog::index::embed::Embedder;
use querent_catalog::{NoProgress, Progress};
use url::Url;

use crate::limits::ScanLimits;
use crate::stores::{LakeUrl, UrlRoot};

/// Knows where workers are.
#[async_trait]
pub trait WorkerAddresses: Send + Sync {
    /// Returns the URLs of the workers that there are now, and why there are no more.
    async fn current(&self) -> (Vec<Url>, Vec<String>);
}

/// The servers that queries may be shared out to.
#[derive(Clone)]
pub struct ClusterOptions {
    /// Where they are.
    pub workers: Arc<dyn WorkerAddresses>,
    /// How they are reached, with requests that they accept.
    pub channels: Arc<dyn ChannelResolver + Send + Sync>,
    /// How many bytes of files a query has to read before it is shared out.
    pub min_scan_bytes: u64,
}

impl ClusterOptions {
    /// How many bytes a query has to read where nothing else is said.
    pub const DEFAULT_MIN_SCAN_BYTES: u64 = 256 << 20;
}

/// How to open an engine.
#[derive(Clone)]
pub struct EngineOptions {
    /// The data folder: catalog, data, index, spill.
    pub data_dir: PathBuf,
    /// The PostgreSQL database that holds the catalog. `None`: a file of the data folder.
    pub catalog_url: Option<String>,
    /// The URL below which the files of managed tables are to lie. `None`: where they do, in the data folder where it is new.
    pub data_path: Option<LakeUrl>,
    /// The most that parts of files in an object store take on the disk of the data folder, in bytes. 0 keeps none.
    pub file_cache_bytes: u64,
    /// Memory shared by all queries, in bytes. `None`: [`EngineOptions::DEFAULT_MEMORY_PERCENT`] of the machine's, or of
    /// the control group's where that is smaller.
    pub memory_bytes: Option<usize>,
    /// The most that decoded columns of Parquet files take of `memory_bytes`, which queries take back as they need it. 0 keeps
    /// none. `None`: [`EngineOptions::DEFAULT_CACHE_PERCENT`] of it.
    pub column_cache_bytes: Option<usize>,
    /// The memory for plans of statements that were planned before, in bytes. 0 keeps none.
    pub plan_cache_bytes: usize,
    /// The most that rows of answered queries take of `memory_bytes`, which queries take back as they need it. 0 keeps none, as does
    /// `plan_cache_bytes` of 0.
    pub result_cache_bytes: usize,
    /// The most that the process may take from the machine, in bytes: beyond, the query that holds most is ended. `None`:
    /// [`EngineOptions::DEFAULT_RESIDENT_PERCENT`] of the machine's.
    pub resident_bytes: Option<usize>,
    /// The most that spill files of all queries may take together, in bytes.
    pub spill_bytes: u64,
    /// Partitions that a query is executed in; `None`: the number of the machine's cores.
    pub target_partitions: Option<usize>,
    /// Local folders below which role `write` may create external tables; an administrator may anywhere.
    pub external_roots: Vec<PathBuf>,
    /// URLs of object stores and web servers below which external tables may lie, whoever creates them. Where there are
    /// none, external tables are local files.
    pub external_urls: Vec<UrlRoot>,
    /// How much a statement may read from tables, by the role of its caller.
    pub scan_limits: ScanLimits,
    /// Embeds the texts of the schema index; `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Ranks the best hundred tables of a search again, where `embedder` is fast and less good. `None`: nothing does.
    pub reranker: Option<Arc<dyn Embedder>>,
    /// Statements that take longer are logged with what they read; `None`: none is.
    pub slow_query: Option<Duration>,
    /// Settings of DataFusion, such as `datafusion.execution.batch_size`, and their values in place of this engine's: to measure
    /// what one of them does.
    pub datafusion_settings: Vec<(String, String)>,
    /// The workers of this server; `None`: it does all by itself.
    pub cluster: Option<ClusterOptions>,
    /// Receives the progress of work that takes long.
    pub progress: Arc<dyn Progress>,
}

impl EngineOptions {
    /// The share of the machine's memory that queries get where `memory_bytes` is `None`, in percent.
    pub const DEFAULT_MEMORY_PERCENT: u64 = 60;
    /// The share of the machine's memory that the process gets where `resident_bytes` is `None`, in percent.
    pub const DEFAULT_RESIDENT_PERCENT: u64 = 85;
    /// The share of the queries' memory that decoded columns may take where `column_cache_bytes` is `None`, in percent.
    pub const DEFAULT_CACHE_PERCENT: usize = 40;
    /// What plans of statements take where nothing else is said, in bytes.
    pub const DEFAULT_PLAN_CACHE_BYTES: usize = 32 << 20;
    /// What spill files may take where nothing else is said, in bytes.
    pub const DEFAULT_SPILL_BYTES: u64 = 100 << 30;
    /// What parts of files in an object store may take on the disk where nothing else is said, in bytes.
    pub const DEFAULT_FILE_CACHE_BYTES: u64 = 10 << 30;

    /// Returns the defaults for a data folder: a share of the machine's memory, every core, no folders for external
    /// tables of role `write`, no object stores, no embedder, no reranker.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            catalog_url: None,
            data_path: None,
            file_cache_bytes: Self::DEFAULT_FILE_CACHE_BYTES,
            memory_bytes: None,
            column_cache_bytes: None,
            plan_cache_bytes: Self::DEFAULT_PLAN_CACHE_BYTES,
            result_cache_bytes: 0,
            resident_bytes: None,
            spill_bytes: Self::DEFAULT_SPILL_BYTES,
            target_partitions: None,
            external_roots: Vec::new(),
            external_urls: Vec::new(),
            scan_limits: ScanLimits::default(),
            embedder: None,
            reranker: None,
            slow_query: None,
            datafusion_settings: Vec::new(),
            cluster: None,
            progress: Arc::new(NoProgress),
        }
    }
}

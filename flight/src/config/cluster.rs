//! `[cluster]`: several servers that work on one query.

use querent_engine::ClusterOptions;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{ByteSize, Settings};

/// The shortest key: a shorter one can be guessed.
const LEAST_KEY_BYTES: usize = 16;

/// What a server is in a cluster, and who else is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterSettings {
    /// What the server is.
    pub role: ClusterRole,
    /// The workers that queries are shared out to, as `http://host:port`; none: the server does all by itself.
    pub workers: Vec<String>,
    /// The secret that the servers of a cluster share.
    pub key: Option<String>,
    /// How many bytes of files a query has to read before it is shared out.
    pub min_scan_bytes: ByteSize,
}

/// What a server is in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterRole {
    /// Takes statements, plans them, and shares them out to its workers where it has any.
    Coordinator,
    /// Does parts of a coordinator's queries, and nothing else.
    Worker,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            role: ClusterRole::Coordinator,
            workers: Vec::new(),
            key: None,
            min_scan_bytes: ByteSize(ClusterOptions::DEFAULT_MIN_SCAN_BYTES),
        }
    }
}

impl std::fmt::Debug for ClusterSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSettings")
            .field("role", &self.role)
            .field("workers", &self.workers)
            .field("key", &self.key.as_ref().map(|_| "***"))
            .field("min_scan_bytes", &self.min_scan_bytes)
            .finish()
    }
}

impl ClusterSettings {
    /// Returns where the workers are. Errors: what is wrong with an address.
    pub(crate) fn worker_urls(&self) -> Result<Vec<Url>, String> {
        let url = |text: &String| {
            let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
            let is_plain = url.scheme() == "http" && url.has_host() && url.path() == "/" && url.query().is_none();
            let has_nobody = url.username().is_empty() && url.password().is_none();
            if is_plain && has_nobody { Ok(url) } else { Err(format!("`{text}` is not of the form http://host:port")) }
        };
        self.workers.iter().map(url).collect()
    }
}

impl Settings {
    /// Returns what is wrong with the settings of the cluster, and the setting.
    pub(super) fn cluster_fault(&self) -> Option<(&'static str, String)> {
        let cluster = &self.cluster;
        if let Err(fault) = cluster.worker_urls() {
            return Some(("cluster.workers", fault));
        }
        if cluster.min_scan_bytes.0 == 0 {
            return Some(("cluster.min_scan_bytes", "must be at least 1".to_owned()));
        }
        let is_worker = cluster.role == ClusterRole::Worker;
        if is_worker && !cluster.workers.is_empty() {
            return Some(("cluster.workers", "a worker has no workers of its own".to_owned()));
        }
        let is_clustered = is_worker || !cluster.workers.is_empty();
        let key = cluster.key.as_deref().unwrap_or_default();
        if is_clustered && key.len() < LEAST_KEY_BYTES {
            let fault = format!("must be a secret of at least {LEAST_KEY_BYTES} characters that all servers have");
            return Some(("cluster.key", fault));
        }
        if is_worker && self.tls.is_on() {
            let fault = "a worker speaks no TLS yet; let it listen on a network that nobody else can read";
            return Some(("tls.certificate", fault.to_owned()));
        }
        if is_worker && querent_catalog::holds_catalog(&self.data) {
            return Some(("data", "a worker needs a folder of its own, and this one holds a catalog".to_owned()));
        }
        None
    }
}

//! `[cluster]`: several servers that work on one query, or share a catalog.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

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
    /// The workers that queries are shared out to, as `http://host:port` or `https://host:port`, or as
    /// `dns://name:port` or `dns+https://name:port`, all addresses of a name; none: the server does all by itself.
    pub workers: Vec<String>,
    /// The URL by which the servers of a shared catalog reach this one, `http://host:port` or `https://host:port`; unset:
    /// where it listens, if others can reach that.
    pub address: Option<String>,
    /// The secret that the servers of a cluster share.
    pub key: Option<String>,
    /// A PEM file: the authorities that sign the certificates of `https` workers; unset: those of the system.
    pub ca: Option<PathBuf>,
    /// A PEM file: the certificate that this server shows to workers.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file: the private key of that certificate.
    pub client_key: Option<PathBuf>,
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
            address: None,
            key: None,
            ca: None,
            client_certificate: None,
            client_key: None,
            min_scan_bytes: ByteSize(ClusterOptions::DEFAULT_MIN_SCAN_BYTES),
        }
    }
}

impl std::fmt::Debug for ClusterSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSettings")
            .field("role", &self.role)
            .field("workers", &self.workers)
            .field("address", &self.address)
            .field("key", &self.key.as_ref().map(|_| "***"))
            .field("ca", &self.ca)
            .field("client_certificate", &self.client_certificate)
            .field("client_key", &self.client_key)
            .field("min_scan_bytes", &self.min_scan_bytes)
            .finish()
    }
}

/// Where workers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerAddress {
    /// One worker.
    Url(Url),
    /// A worker at each address of a name.
    Name {
        /// `http` or `https`.
        scheme: &'static str,
        /// The name, which certificates are for.
        host: String,
        /// The port, the same everywhere.
        port: u16,
    },
}

impl ClusterSettings {
    /// Returns where the workers are. Errors: what is wrong with an address.
    pub(crate) fn worker_addresses(&self) -> Result<Vec<WorkerAddress>, String> {
        self.workers.iter().map(|text| worker_address(text)).collect()
    }
}

fn worker_address(text: &str) -> Result<WorkerAddress, String> {
    let unknown = || {
        let forms = "http://host:port, https://host:port, dns://name:port or dns+https://name:port";
        Err(format!("`{text}` is not of the form {forms}"))
    };
    let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let Some(host) = host_alone(&url) else { return unknown() };
    if let Some(fault) = unreachable_part(&url) {
        return Err(format!("`{text}` {fault}"));
    }
    let scheme = match url.scheme() {
        "http" | "https" => return Ok(WorkerAddress::Url(url)),
        "dns" => "http",
        "dns+https" => "https",
        _ => return unknown(),
    };
    match url.port() {
        Some(port) => Ok(WorkerAddress::Name { scheme, host: host.to_owned(), port }),
        None => Err(format!("`{text}` needs the port of the workers")),
    }
}

/// Returns the host of a URL that has nothing beside it but a scheme and a port.
fn host_alone(url: &Url) -> Option<&str> {
    let has_path = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
    let has_caller = !url.username().is_empty() || url.password().is_some();
    url.host_str().filter(|host| !host.is_empty() && !has_path && !has_caller)
}

/// Returns why nobody is reached at a URL.
fn unreachable_part(url: &Url) -> Option<&'static str> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if url.port() == Some(0) {
        return Some("has port 0, which nobody listens on");
    }
    let is_any = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    is_any.then_some("has an address to listen on; write one that the others reach")
}

fn server_address(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    if let Some(fault) = unreachable_part(&url) {
        return Err(format!("`{text}` {fault}"));
    }
    match host_alone(&url) {
        Some(_) if matches!(url.scheme(), "http" | "https") => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(format!("`{text}` is not of the form http://host:port or https://host:port")),
    }
}

impl Settings {
    /// Returns the URL by which the other servers of a shared catalog reach this one, which listens at `addr`; `None` where
    /// the catalog is not shared, or they cannot be expected to reach it. An address of this machine alone is one for servers
    /// that are all on it, as those of a catalog are that is reached on it.
    pub(crate) fn address_for_others(&self, addr: SocketAddr) -> Option<String> {
        self.catalog.url.as_ref()?;
        if let Some(address) = &self.cluster.address {
            return server_address(address).ok();
        }
        let is_reached = match addr.ip() {
            ip if ip.is_unspecified() => false,
            ip if ip.is_loopback() => self.catalog.is_on_this_machine(),
            _ => true,
        };
        let scheme = if self.tls.is_on() { "https" } else { "http" };
        is_reached.then(|| format!("{scheme}://{addr}"))
    }

    /// Returns what is wrong with the settings of the cluster, and the setting.
    pub(super) fn cluster_fault(&self) -> Option<(&'static str, String)> {
        let cluster = &self.cluster;
        if let Err(fault) = cluster.worker_addresses() {
            return Some(("cluster.workers", fault));
        }
        if let Some(address) = &cluster.address {
            if let Err(fault) = server_address(address) {
                return Some(("cluster.address", fault));
            }
            if self.catalog.url.is_none() {
                let fault = "is for servers that share a catalog: it needs catalog.url";
                return Some(("cluster.address", fault.to_owned()));
            }
        }
        match (&cluster.client_certificate, &cluster.client_key) {
            (Some(_), None) => {
                return Some(("cluster.client_certificate", "needs its private key, cluster.client_key".to_owned()));
            }
            (None, Some(_)) => {
                let fault = "needs its certificate, cluster.client_certificate";
                return Some(("cluster.client_key", fault.to_owned()));
            }
            _ => {}
        }
        if cluster.min_scan_bytes.0 == 0 {
            return Some(("cluster.min_scan_bytes", "must be at least 1".to_owned()));
        }
        let is_worker = cluster.role == ClusterRole::Worker;
        if is_worker && !cluster.workers.is_empty() {
            return Some(("cluster.workers", "a worker has no workers of its own".to_owned()));
        }
        let is_sharing = self.catalog.url.is_some() && cluster.key.is_some();
        let is_clustered = is_worker || !cluster.workers.is_empty() || is_sharing;
        let key = cluster.key.as_deref().unwrap_or_default();
        if is_clustered && key.len() < LEAST_KEY_BYTES {
            let fault = format!("must be a secret of at least {LEAST_KEY_BYTES} characters that all servers have");
            return Some(("cluster.key", fault));
        }
        if is_worker && querent_catalog::holds_catalog(&self.data) {
            return Some(("data", "a worker needs a folder of its own, and this one holds a catalog".to_owned()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_reach_a_server_where_it_says_or_listens() {
        let shared = |url: &str, address: Option<&str>| {
            let mut settings = Settings::default();
            settings.catalog.url = Some(url.to_owned());
            settings.cluster.address = address.map(str::to_owned);
            settings
        };
        let listening: SocketAddr = "10.0.0.2:8080".parse().unwrap();
        let (local, all): (SocketAddr, SocketAddr) = ("127.0.0.1:80".parse().unwrap(), "0.0.0.0:80".parse().unwrap());
        assert_eq!(Settings::default().address_for_others(listening), None);
        let far = shared("postgres://querent@db.example/lake", None);
        assert_eq!(far.address_for_others(listening).as_deref(), Some("http://10.0.0.2:8080"));
        assert_eq!(far.address_for_others(local), None);
        assert_eq!(far.address_for_others(all), None);
        for near in ["postgres://u@localhost/lake", "postgres://u@127.0.0.1:5433/lake", "postgres://u@%2Ftmp%2Fx/lake"]
        {
            let near = shared(near, None);
            assert_eq!(near.address_for_others(local).as_deref(), Some("http://127.0.0.1:80"));
            assert_eq!(near.address_for_others(all), None);
        }
        let named = shared("postgres://querent@db.example/lake", Some("https://one.example:443/"));
        assert_eq!(named.address_for_others(all).as_deref(), Some("https://one.example:443"));
        assert_eq!(named.cluster_fault(), None);
        for fault in [
            "one.example:443",
            "https://one.example/path",
            "dns://one.example:443",
            "http://0.0.0.0:80",
            "http://[::]:80",
            "http://one.example:0",
        ] {
            let faulty = shared("postgres://querent@db.example/lake", Some(fault));
            assert_eq!(faulty.cluster_fault().map(|(key, _)| key), Some("cluster.address"), "{fault}");
        }
    }

    #[test]
    fn addresses_are_urls_or_names() {
        let name = |scheme, port| WorkerAddress::Name { scheme, host: "workers.default.svc".to_owned(), port };
        assert_eq!(worker_address("dns://workers.default.svc:8815"), Ok(name("http", 8815)));
        assert_eq!(worker_address("dns+https://workers.default.svc:443"), Ok(name("https", 443)));
        let url = "https://10.0.0.2:8080";
        assert_eq!(worker_address(url), Ok(WorkerAddress::Url(Url::parse(url).unwrap())));
        for refused in [
            "workers:8080",
            "dns://workers.default.svc",
            "grpc://host:1",
            "http://user@host:1",
            "http://host:1/path",
            "https://host:1/#name",
            "dns://host:1?x=1",
            "http://host:0",
            "dns://host:0",
            "https://0.0.0.0:1",
        ] {
            assert!(worker_address(refused).is_err(), "{refused}");
        }
    }
}

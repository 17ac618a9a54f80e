//! Where workers are now: the URLs of the settings, and all addresses of the names there, which are looked up again after a
//! while. An address that its name no longer has is no longer used.
//!
//! A worker at an address of a name has a URL with the address; where it speaks TLS, the name that its certificate has to be
//! for is the URL's fragment, which travels with the URL to other workers ([`certificate_name`]).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use querent_engine::WorkerAddresses;
use url::Url;

use crate::config::WorkerAddress;

/// How long the addresses of a name are taken for true.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// How long a name may take to be looked up.
const LOOKUP_TIME: Duration = Duration::from_secs(3);

/// Looks up names.
#[async_trait]
pub(crate) trait AddressLookup: Send + Sync {
    /// Returns the addresses of a name.
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The system's resolver.
pub(crate) struct SystemLookup;

#[async_trait]
impl AddressLookup for SystemLookup {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// The workers of the settings.
pub(crate) struct WorkerDiscovery<L> {
    named: Vec<WorkerAddress>,
    lookup: L,
    known_for: Duration,
    /// By name and port, what was found last.
    found: Mutex<HashMap<(String, u16), FoundAddresses>>,
}

/// The addresses of a name.
#[derive(Clone)]
struct FoundAddresses {
    /// When they were looked for.
    since: Instant,
    addresses: Vec<SocketAddr>,
}

impl WorkerDiscovery<SystemLookup> {
    pub(crate) fn new(named: Vec<WorkerAddress>) -> Self {
        Self { named, lookup: SystemLookup, known_for: KNOWN_FOR, found: Mutex::default() }
    }
}

impl<L: AddressLookup> WorkerDiscovery<L> {
    async fn urls_of(&self, named: &WorkerAddress) -> Result<Vec<Url>, String> {
        let (scheme, host, port) = match named {
            WorkerAddress::Url(url) => return Ok(vec![url.clone()]),
            WorkerAddress::Name { scheme, host, port } => (*scheme, host, *port),
        };
        let mut addresses = self.addresses_of(host, port).await?;
        addresses.sort_unstable();
        addresses.dedup();
        let url = |address: SocketAddr| {
            let fragment = if scheme == "https" { format!("#{host}") } else { String::new() };
            Url::parse(&format!("{scheme}://{address}/{fragment}")).map_err(|error| format!("{address}: {error}"))
        };
        addresses.into_iter().map(url).collect()
    }

    async fn addresses_of(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let key = (host.to_owned(), port);
        let last = self.found.lock().get(&key).cloned();
        if let Some(last) = &last
            && last.since.elapsed() < self.known_for
        {
            return Ok(last.addresses.clone());
        }
        let looked_up = tokio::time::timeout(LOOKUP_TIME, self.lookup.addresses(host, port)).await;
        let fault = match looked_up {
            Ok(Ok(addresses)) if !addresses.is_empty() => {
                self.note(key, &addresses);
                return Ok(addresses);
            }
            Ok(Ok(_)) => format!("{host} has no address"),
            Ok(Err(error)) => format!("{host} cannot be looked up: {error}"),
            Err(_) => format!("{host} was not looked up within {} s", LOOKUP_TIME.as_secs()),
        };
        // Those of before are asked whether they are there, as all workers are.
        match last {
            Some(FoundAddresses { addresses, .. }) => {
                tracing::warn!(fault, "the workers' name is looked up again later; its last addresses are used");
                self.note(key, &addresses);
                Ok(addresses)
            }
            None => Err(fault),
        }
    }

    fn note(&self, name: (String, u16), addresses: &[SocketAddr]) {
        let found = FoundAddresses { since: Instant::now(), addresses: addresses.to_vec() };
        self.found.lock().insert(name, found);
    }
}

#[async_trait]
impl<L: AddressLookup> WorkerAddresses for WorkerDiscovery<L> {
    async fn current(&self) -> (Vec<Url>, Vec<String>) {
        let mut urls: Vec<Url> = Vec::new();
        let mut faults = Vec::new();
        for found in join_all(self.named.iter().map(|named| self.urls_of(named))).await {
            match found {
                Ok(found) => found.into_iter().for_each(|url| {
                    if !urls.contains(&url) {
                        urls.push(url);
                    }
                }),
                Err(fault) => faults.push(fault),
            }
        }
        (urls, faults)
    }
}

/// Returns the name that the certificate of a worker has to be for.
pub(super) fn certificate_name(url: &Url) -> &str {
    url.fragment().filter(|name| !name.is_empty()).or_else(|| url.host_str()).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Answers from a list, then not at all.
    struct ScriptedLookup(Mutex<VecDeque<Vec<&'static str>>>);

    #[async_trait]
    impl AddressLookup for ScriptedLookup {
        async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            assert_eq!((host, port), ("workers.test", 8815));
            let answer = self.0.lock().pop_front().ok_or_else(|| io::Error::other("no server answers"))?;
            Ok(answer.into_iter().map(|address| address.parse().unwrap()).collect())
        }
    }

    fn discovery(scheme: &'static str, answers: &[&[&'static str]]) -> WorkerDiscovery<ScriptedLookup> {
        let name = WorkerAddress::Name { scheme, host: "workers.test".to_owned(), port: 8815 };
        let url = WorkerAddress::Url(Url::parse("http://10.9.9.9:1").unwrap());
        let script = answers.iter().map(|answer| answer.to_vec()).collect();
        WorkerDiscovery {
            named: vec![name, url],
            lookup: ScriptedLookup(Mutex::new(script)),
            known_for: Duration::ZERO,
            found: Mutex::default(),
        }
    }

    async fn shown(discovery: &WorkerDiscovery<ScriptedLookup>) -> Vec<String> {
        let (urls, faults) = discovery.current().await;
        urls.into_iter().map(String::from).chain(faults).collect()
    }

    #[tokio::test]
    async fn addresses_that_go_away_are_no_longer_used() {
        let two: &[&str] = &["10.0.0.2:8815", "10.0.0.1:8815", "10.0.0.2:8815"];
        let discovery = discovery("http", &[two, &["10.0.0.2:8815", "[fd00::1]:8815"]]);
        let fixed = "http://10.9.9.9:1/";
        assert_eq!(shown(&discovery).await, ["http://10.0.0.1:8815/", "http://10.0.0.2:8815/", fixed]);
        let later = ["http://10.0.0.2:8815/", "http://[fd00::1]:8815/", fixed];
        assert_eq!(shown(&discovery).await, later);
        // A resolver that fails takes no worker away.
        assert_eq!(shown(&discovery).await, later);
    }

    #[tokio::test]
    async fn a_name_that_is_unknown_is_a_fault_and_the_others_are_used() {
        let discovery = discovery("http", &[]);
        let shown = shown(&discovery).await;
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert_eq!(shown[0], "http://10.9.9.9:1/");
        assert!(shown[1].contains("workers.test cannot be looked up: no server answers"), "{shown:?}");
    }

    #[tokio::test]
    async fn certificates_are_for_the_name() {
        let discovery = discovery("https", &[&["10.0.0.1:8815"]]);
        let (urls, _) = discovery.current().await;
        assert_eq!(urls[0].host_str(), Some("10.0.0.1"));
        // It is there still when the URL has been to another server.
        let travelled = Url::parse(urls[0].as_str()).unwrap();
        assert_eq!(certificate_name(&travelled), "workers.test");
        assert_eq!(certificate_name(&urls[1]), "10.9.9.9");
    }
}

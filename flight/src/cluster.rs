//! Several servers that work on one query, or share a catalog: how a request to a worker is signed, how one is checked, how
//! workers are reached, and how a request goes to the server that has what it is about (`forwarding.rs`).
//!
//! `signature.rs` is the same on both sides; `discovery.rs` knows where workers are; `channels.rs` signs what this server asks
//! of them, over `worker_tls.rs` where they speak TLS; `watched_stream.rs` finds out why a connection ended; `gate.rs` stands
//! before a worker's service. Invariant: a worker reads no plan that is not signed with the cluster's key.

mod channels;
mod discovery;
mod forwarding;
mod gate;
mod signature;
mod watched_stream;
mod worker_tls;

use std::sync::Arc;

use querent_engine::ClusterOptions;

use crate::config::ClusterSettings;
use crate::tls::TlsError;
pub(crate) use channels::ClusterChannels;
use discovery::WorkerDiscovery;
pub(crate) use forwarding::{Forwarding, InUse};
pub(crate) use gate::{WorkerGate, gate};
pub(crate) use signature::ClusterKey;
pub(crate) use worker_tls::ClusterTls;

/// Returns what the engine has to know of a server's workers; `None` where it has none.
pub(crate) async fn engine_options(settings: &ClusterSettings) -> Result<Option<ClusterOptions>, TlsError> {
    let Some(named) = settings.worker_addresses().ok().filter(|workers| !workers.is_empty()) else { return Ok(None) };
    let key = ClusterKey::new(settings.key.as_deref().unwrap_or_default());
    let tls = ClusterTls::open(settings).await?;
    Ok(Some(ClusterOptions {
        workers: Arc::new(WorkerDiscovery::new(named)),
        channels: Arc::new(ClusterChannels::new(key, tls)),
        min_scan_bytes: settings.min_scan_bytes.0,
    }))
}

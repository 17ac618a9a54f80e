//! Several servers that work on one query: how a request to a worker is signed, how one is checked, and how workers are
//! reached.
//!
//! `signature.rs` is the same on both sides; `channels.rs` signs what this server asks of workers; `gate.rs` stands before a
//! worker's service. Invariant: a worker reads no plan that is not signed with the cluster's key.

mod channels;
mod gate;
mod signature;

use std::sync::Arc;

use querent_engine::ClusterOptions;

use crate::config::ClusterSettings;
pub(crate) use channels::ClusterChannels;
pub(crate) use gate::{WorkerGate, gate};
pub(crate) use signature::ClusterKey;

/// Returns what the engine has to know of a server's workers; `None` where it has none.
pub(crate) fn engine_options(settings: &ClusterSettings) -> Option<ClusterOptions> {
    let workers = settings.worker_urls().ok().filter(|workers| !workers.is_empty())?;
    let key = ClusterKey::new(settings.key.as_deref().unwrap_or_default());
    Some(ClusterOptions {
        workers,
        channels: Arc::new(ClusterChannels::new(key)),
        min_scan_bytes: settings.min_scan_bytes.0,
    })
}

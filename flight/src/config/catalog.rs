//! `[catalog]`: where the catalog's rows are, how long its history is kept, and how its files are.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use url::Url;

use super::DurationSetting;

/// Where the catalog is.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSettings {
    /// The PostgreSQL database that holds it, `postgres://user:password@host/database`; unset: a file of the data folder.
    pub url: Option<String>,
    /// How long a snapshot is kept after a newer one took its place, with the files that only it has; 0: for ever.
    pub snapshot_retention: DurationSetting,
    /// How often the small files of managed tables are merged, as `OPTIMIZE` does; 0: never.
    pub merge_small_files: DurationSetting,
}

impl CatalogSettings {
    /// Whether the database is reached on this machine: through a socket, or at an address that no other has.
    pub(super) fn is_on_this_machine(&self) -> bool {
        let Some(url) = self.url.as_deref().and_then(|url| Url::parse(url).ok()) else { return false };
        let named = url.query_pairs().find(|(name, _)| name == "host").map(|(_, host)| host.into_owned());
        let host = named.or_else(|| url.host_str().map(str::to_owned)).unwrap_or_default();
        let is_socket = host.is_empty() || host.starts_with('/') || host.to_ascii_uppercase().starts_with("%2F");
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        is_socket || host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl std::fmt::Debug for CatalogSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may have a password.
        f.debug_struct("CatalogSettings")
            .field("url", &self.url.as_ref().map(|_| "***"))
            .field("snapshot_retention", &self.snapshot_retention)
            .field("merge_small_files", &self.merge_small_files)
            .finish()
    }
}

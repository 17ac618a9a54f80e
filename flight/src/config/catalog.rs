//! `[catalog]`: where the catalog's rows are.

use serde::{Deserialize, Serialize};

/// Where the catalog is.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSettings {
    /// The PostgreSQL database that holds it, `postgres://user:password@host/database`; unset: a file of the data folder.
    pub url: Option<String>,
}

impl std::fmt::Debug for CatalogSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may have a password.
        f.debug_struct("CatalogSettings").field("url", &self.url.as_ref().map(|_| "***")).finish()
    }
}

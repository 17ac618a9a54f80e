//! How long writes wait while another process has the catalog locked. Those of one connection come one after the other: none that
//! waited behind one that did so in vain waits anew.

use std::time::Instant;

use parking_lot::Mutex;

use super::CatalogPlace;
use super::reader_pool::begun;
use crate::connection::{Access, DatabaseFault, StoreConnection, StoreTransaction};
use crate::error::{CatalogError, Result};

/// When a write of a connection waited for the lock in vain.
#[derive(Debug, Default)]
pub(super) struct LockWaits(Mutex<Option<Instant>>);

impl LockWaits {
    /// Begins the transaction of a write that has waited since `since` for its turn. Errors: also `catalog_busy`, where one before it
    /// waited for the lock in vain meanwhile.
    pub(super) fn begun<'c>(
        &self,
        since: Instant,
        place: &CatalogPlace,
        connection: &'c mut StoreConnection,
        access: Access,
    ) -> Result<StoreTransaction<'c>> {
        if self.0.lock().is_some_and(|in_vain| in_vain > since) {
            return Err(CatalogError::Busy { path: place.shown() });
        }
        let transaction = begun(place, connection, access);
        if let Err(CatalogError::Store(error)) = &transaction
            && error.fault() == DatabaseFault::Locked
        {
            *self.0.lock() = Some(Instant::now());
        }
        transaction
    }
}

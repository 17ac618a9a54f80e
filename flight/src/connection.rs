//! What belongs to one connection and ends with it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::metrics::GaugeGuard;

/// The most callers that one connection keeps something for: a gateway may carry several.
const MAX_OWNERS: usize = 64;

/// The place of a connection among those that may be open at once. It is in the extensions of each of the connection's
/// requests, for who takes the connection over and keeps it longer.
#[derive(Clone)]
pub(crate) struct ConnectionPlace {
    _kept: Arc<(OwnedSemaphorePermit, GaugeGuard)>,
}

impl ConnectionPlace {
    pub(crate) fn new(permit: OwnedSemaphorePermit, open: GaugeGuard) -> Self {
        Self { _kept: Arc::new((permit, open)) }
    }
}

/// What the doors keep for the callers of one connection. It is in the extensions of each of the connection's requests, and
/// dropped when the connection has ended.
#[derive(Clone, Default)]
pub(crate) struct ConnectionScope {
    kept: Arc<Mutex<KeptByOwner>>,
}

type KeptByOwner = HashMap<Vec<u8>, Arc<dyn Any + Send + Sync>>;

impl ConnectionScope {
    /// Returns what is kept for `owner`, made by `make` the first time; `None` beyond the bound of owners.
    pub(crate) fn get_or_insert<T: Any + Send + Sync>(
        &self,
        owner: &[u8],
        make: impl FnOnce() -> Arc<T>,
    ) -> Option<Arc<T>> {
        let mut kept = self.kept.lock();
        if let Some(found) = kept.get(owner) {
            return Arc::clone(found).downcast().ok();
        }
        if kept.len() >= MAX_OWNERS {
            return None;
        }
        let made = make();
        kept.insert(owner.to_vec(), Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        Some(made)
    }

    /// Forgets what is kept for `owner`, if that is `kept`.
    pub(crate) fn forget<T: Any + Send + Sync>(&self, owner: &[u8], kept: &Arc<T>) {
        let mut all = self.kept.lock();
        let found = all.get(owner).map(|found| Arc::clone(found).downcast::<T>());
        if found.is_some_and(|found| found.is_ok_and(|found| Arc::ptr_eq(&found, kept))) {
            all.remove(owner);
        }
    }
}

//! Connections that read. They are opened when first needed and used on blocking threads, by one read each at a time.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::CatalogPlace;
use crate::connection::{Access, StoreConnection, StoreTransaction};
use crate::error::{CatalogError, Result};

/// Connections, and so reads at one time.
const READERS: usize = 8;

/// Reader connections, opened when first needed.
pub(super) struct ReaderPool {
    /// Where they lead.
    pub(super) place: CatalogPlace,
    idle: Mutex<Vec<StoreConnection>>,
    /// One for each read that may run; closed with the store.
    pub(super) permits: Arc<Semaphore>,
}

impl ReaderPool {
    /// None open yet.
    pub(super) fn new(place: CatalogPlace) -> Self {
        Self { place, idle: Mutex::new(Vec::new()), permits: Arc::new(Semaphore::new(READERS)) }
    }

    /// Runs `f` in a read transaction.
    pub(super) fn with<T>(&self, f: impl FnOnce(&StoreConnection) -> Result<T>) -> Result<T> {
        let pooled = self.idle.lock().pop();
        let mut connection = match pooled {
            Some(connection) => connection,
            None => self.place.reader()?,
        };
        let named = |error| self.place.named(error);
        let transaction = begun(&self.place, &mut connection, Access::Read).map_err(named)?;
        let result = f(&transaction).map_err(named);
        transaction.end().map_err(|error| named(error.into()))?;
        self.idle.lock().push(connection);
        result
    }

    /// Runs `f`, statements that need no transaction around them; again where the server had closed the connection.
    pub(super) fn ask<T>(&self, f: impl Fn(&StoreConnection) -> Result<T>) -> Result<T> {
        let pooled = self.idle.lock().pop();
        let ask = |connection: &StoreConnection| {
            connection.quickly(|| f(connection)).map_err(|error| self.place.named(error))
        };
        let mut connection = match pooled {
            Some(connection) => connection,
            None => self.place.reader()?,
        };
        let mut answer = ask(&connection);
        if matches!(answer, Err(CatalogError::Unavailable { .. })) {
            connection = self.place.reader()?;
            answer = ask(&connection);
        }
        self.idle.lock().push(connection);
        answer
    }

    /// Closes the connections that nobody uses.
    pub(super) fn close_idle(&self) {
        self.idle.lock().clear();
    }
}

/// Begins a transaction, on a connection of a new one where the server has closed that which is there.
pub(super) fn begun<'c>(
    place: &CatalogPlace,
    connection: &'c mut StoreConnection,
    access: Access,
) -> Result<StoreTransaction<'c>> {
    connection.begin_again(access, || if access == Access::Read { place.reader() } else { place.writer() })
}

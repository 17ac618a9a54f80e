//! The version of the catalog where nothing has changed since it was read last, which is asked before a known plan is used.
//!
//! SQLite says by a number of its connection (`PRAGMA data_version`) whether anybody else has committed to the file, DuckDB
//! included. That is in memory which processes share, so to ask costs no other thread. Invariant: the version is that of the
//! transaction in which the number was read, and is taken for true only while the number is the same.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{CatalogPlace, change, objects, policies_in_force};
use crate::connection::{Access, DatabaseResult, StoreConnection};
use crate::error::Result;
use crate::model::CatalogVersion;
use crate::policy::PolicySet;

/// A connection of its own, and what it has seen.
#[derive(Default)]
pub(super) struct VersionWatch(Mutex<Option<Watched>>);

struct Watched {
    connection: StoreConnection,
    data_version: i64,
    /// `None`: there was something to absorb first.
    version: Option<CatalogVersion>,
}

impl VersionWatch {
    /// Returns the version that was read last, if nobody has committed since. It waits for nobody: whatever is in the way is a
    /// reason to read.
    pub(super) fn unchanged(&self) -> Option<CatalogVersion> {
        let watched = self.0.try_lock()?;
        let watched = watched.as_ref()?;
        let version = watched.version?;
        (data_version(&watched.connection).ok()? == watched.data_version).then_some(version)
    }

    /// Reads the version of a catalog in a file, on a blocking thread. `None` where there is something to absorb first, and where
    /// the catalog is on a server, which has no such number.
    pub(super) fn read(
        &self,
        place: &CatalogPlace,
        policies: &RwLock<Arc<PolicySet>>,
    ) -> Result<Option<CatalogVersion>> {
        if place.is_shared() {
            return Ok(None);
        }
        let mut watched = self.0.lock();
        let connection = match watched.take() {
            Some(Watched { connection, .. }) => connection,
            None => place.impatient_reader()?,
        };
        let transaction = connection.begin(Access::Read)?;
        let snapshot = objects::absorbed_snapshot(&transaction)?;
        let version = match change::newest_snapshot(&transaction)?.id == snapshot {
            true => Some(CatalogVersion { snapshot, policies: policies_in_force(&transaction, policies)?.version }),
            false => None,
        };
        let data_version = data_version(&transaction)?;
        transaction.end()?;
        *watched = Some(Watched { connection, data_version, version });
        Ok(version)
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.0.lock().take();
    }
}

fn data_version(connection: &StoreConnection) -> DatabaseResult<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use crate::store::{CATALOG_FILE, Store};

    #[tokio::test]
    async fn a_version_is_known_until_anybody_commits() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        let store = Store::open(&folder, None, None).await.unwrap();
        // What is new in the lake is absorbed by then.
        let first = store.view(|view| Ok(view.version())).await.unwrap();
        assert_eq!(store.watch.unchanged(), None, "nobody has asked yet");
        assert_eq!(store.version().await.unwrap(), first);
        assert_eq!(store.watch.unchanged(), Some(first));

        // By another connection, as DuckDB's is.
        let other = rusqlite::Connection::open(folder.join(CATALOG_FILE)).unwrap();
        other.execute_batch("CREATE TABLE noted (a INTEGER)").unwrap();
        assert_eq!(store.watch.unchanged(), None);
        assert_eq!(store.version().await.unwrap(), first, "no snapshot of the lake");
        assert_eq!(store.watch.unchanged(), Some(first));

        // By the store's own.
        store.write_rows(|rows| Ok(rows.execute_batch("INSERT INTO noted VALUES (1)")?)).await.unwrap();
        assert_eq!(store.watch.unchanged(), None);
        store.close().await.unwrap();
        assert!(store.version().await.is_err());
        tokio::fs::remove_dir_all(folder).await.unwrap();
    }
}

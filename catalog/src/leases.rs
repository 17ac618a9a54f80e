//! Leases: work that one server does for all that share a catalog. Whoever wants to do it takes its lease
//! ([`CatalogLeases::take`]), works while the lease is renewed ([`WorkLease::run`]) and gives it back.
//!
//! Where nobody shares the catalog, which is so with one in a data folder, whose lock lets one process in, every lease
//! is had at once: nothing is read, written or renewed. The rules are in `store/leases.rs`.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::store::Store;
use crate::store::leases::{self, LeaseAnswer, LeaseFence, LeaseRequest, LeaseTiming, TIMING, Tenure, TenureStep};

/// Work that is done once for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeasedWork {
    /// Deleting old runs, conversations, files and users.
    Retention,
    /// Removing files of writes that never committed from the object store of the lake.
    OrphanedFiles,
    /// Forgetting snapshots that were superseded long ago.
    Snapshots,
    /// Merging the small files of tables.
    SmallFiles,
    /// Sampling the values of tables' columns.
    ColumnValues,
    /// Writing the schema index of tables, and publishing it for the other servers.
    TableIndex,
    /// The same of columns.
    ColumnIndex,
}

impl LeasedWork {
    /// The name of its row in `querent_lease`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LeasedWork::Retention => "retention",
            LeasedWork::OrphanedFiles => "orphaned files",
            LeasedWork::Snapshots => "snapshots",
            LeasedWork::SmallFiles => "small files",
            LeasedWork::ColumnValues => "column values",
            LeasedWork::TableIndex => "index of tables",
            LeasedWork::ColumnIndex => "index of columns",
        }
    }
}

/// What came of asking for a lease.
#[derive(Debug)]
pub enum LeaseTurn {
    /// This server has it.
    Had(WorkLease),
    /// Another server has it, or the work was done a short while ago: ask again after this time.
    Later(Duration),
}

impl LeaseTurn {
    /// The lease, where this server has it.
    pub fn had(self) -> Option<WorkLease> {
        match self {
            LeaseTurn::Had(lease) => Some(lease),
            LeaseTurn::Later(_) => None,
        }
    }
}

/// The leases of this server. Made by [`Catalog::leases`](crate::Catalog::leases).
#[derive(Clone, Copy)]
pub struct CatalogLeases<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) held: &'a Arc<HeldLeases>,
}

/// The work that this process does now, or asks to do.
#[derive(Debug)]
pub(crate) struct HeldLeases {
    works: Mutex<HashSet<LeasedWork>>,
    /// Begin of the clock by which tenures are measured.
    began: Instant,
}

/// The right of this server to do some work now. It passes to others some time after it was dropped, at once when it is
/// given back ([`WorkLease::finish`], [`WorkLease::give_back`]).
pub struct WorkLease {
    /// `None` where no other server is there to do the work.
    row: Option<Box<HeldRow>>,
}

struct HeldRow {
    /// Weak, so that dropping the catalog releases the data folder while a task has a lease.
    store: Weak<Store>,
    claim: LeaseClaim,
    fence: LeaseFence,
    timing: LeaseTiming,
    tenure: Mutex<Tenure>,
}

/// Keeps two tasks of this process from the same work.
struct LeaseClaim {
    work: LeasedWork,
    held: Arc<HeldLeases>,
}

impl Default for HeldLeases {
    fn default() -> Self {
        Self { works: Mutex::default(), began: Instant::now() }
    }
}

impl HeldLeases {
    fn claim(self: &Arc<Self>, work: LeasedWork) -> Option<LeaseClaim> {
        self.works.lock().insert(work).then(|| LeaseClaim { work, held: Arc::clone(self) })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for LeaseClaim {
    fn drop(&mut self) {
        self.held.works.lock().remove(&self.work);
    }
}

impl CatalogLeases<'_> {
    /// Takes the lease of some work that is to be done `every` so often at most, over all servers.
    pub async fn take(self, work: LeasedWork, every: Duration) -> Result<LeaseTurn> {
        let Some(member) = self.store.member().map(str::to_owned) else {
            return Ok(LeaseTurn::Had(WorkLease { row: None }));
        };
        let Some(claim) = self.held.claim(work) else { return Ok(LeaseTurn::Later(TIMING.renewed_after)) };
        let sent_at = self.held.now();
        let answer = self
            .store
            .write_rows(move |connection| {
                let request = LeaseRequest { name: work.name(), member: &member, every };
                leases::take(connection, request, TIMING)
            })
            .await?;
        Ok(match answer {
            LeaseAnswer::Refused { again_in } => LeaseTurn::Later(again_in),
            LeaseAnswer::Granted(fence) => {
                let tenure = Mutex::new(Tenure::granted(sent_at, TIMING));
                let row = HeldRow { store: Arc::downgrade(self.store), claim, fence, timing: TIMING, tenure };
                LeaseTurn::Had(WorkLease { row: Some(Box::new(row)) })
            }
        })
    }

    /// Gives back what this server has when it stops, so that the others need not wait.
    pub(crate) async fn close(self) {
        let Some(member) = self.store.member().map(str::to_owned) else { return };
        let given = self.store.write_rows(move |connection| leases::give_back_all(connection, &member)).await;
        if let Err(error) = given {
            tracing::warn!(%error, "leases are not given back; they end by themselves");
        }
    }
}

impl WorkLease {
    /// Whether other servers may have the lease after this one.
    pub fn is_shared(&self) -> bool {
        self.row.is_some()
    }

    /// Ends the lease as its work went: it is done, or anybody's again where it failed. `None` where the lease was lost.
    /// `outcome` is that of [`WorkLease::run`].
    pub async fn conclude<T, E: From<CatalogError>>(self, outcome: Option<Result<T, E>>) -> Result<Option<T>, E> {
        match outcome {
            Some(Ok(done)) => {
                self.finish().await?;
                Ok(Some(done))
            }
            Some(Err(error)) => {
                self.give_back().await?;
                Err(error)
            }
            None => Ok(None),
        }
    }

    /// Runs `write` in a transaction that has seen that the lease is held. Errors: `conflict` where another server has it by
    /// now.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        store: &Store,
        write: impl FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let fence = self.fence();
        let held = move |connection: &StoreConnection| {
            require_held(connection, fence.as_ref())?;
            write(connection)
        };
        store.write_rows(held).await
    }

    /// Does some work while the lease is renewed. `None` where it was not renewed in time: the work is dropped then,
    /// before another server may begin with it.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let Some(row) = &self.row else { return Some(work.await) };
        tokio::select! {
            biased;
            () = row.until_lost() => None,
            done = work => Some(done),
        }
    }

    /// Gives the lease back and notes that its work is done.
    pub async fn finish(self) -> Result<()> {
        self.end(true).await
    }

    /// Gives the lease back; its work is still to be done.
    pub async fn give_back(self) -> Result<()> {
        self.end(false).await
    }

    /// What the row has to say in a transaction that the lease protects.
    fn fence(&self) -> Option<LeaseFence> {
        self.row.as_ref().map(|row| row.fence.clone())
    }

    async fn end(self, is_done: bool) -> Result<()> {
        let Some(row) = self.row else { return Ok(()) };
        let HeldRow { store, claim, fence, .. } = *row;
        // What a server has that is gone ends by itself.
        let Some(store) = store.upgrade() else { return Ok(()) };
        store.write_rows(move |connection| leases::give_back(connection, &fence, is_done)).await?;
        drop(claim);
        Ok(())
    }
}

impl std::fmt::Debug for WorkLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkLease").field("fence", &self.fence()).finish()
    }
}

impl HeldRow {
    /// Renews the lease until that does not succeed in time, or another server has it.
    async fn until_lost(&self) {
        loop {
            let now = self.claim.held.now();
            let step = self.tenure.lock().step(now);
            match step {
                TenureStep::Work(until) => tokio::time::sleep(until.saturating_sub(now)).await,
                TenureStep::Stop => {
                    tracing::warn!(lease = self.fence.name, "a lease was not renewed in time; its work is left");
                    return;
                }
                TenureStep::Renew => {
                    let left = self.tenure.lock().stops_at().saturating_sub(now);
                    // What is sent arrives, also where nobody waits for the answer any more.
                    match tokio::time::timeout(left, self.renew(now)).await {
                        Ok(Ok(true)) | Err(_) => {}
                        Ok(Ok(false)) => {
                            tracing::warn!(lease = self.fence.name, "another server has taken a lease over");
                            return;
                        }
                        Ok(Err(error)) => {
                            tracing::debug!(%error, lease = self.fence.name, "a lease is not renewed yet")
                        }
                    }
                }
            }
        }
    }

    async fn renew(&self, sent_at: Duration) -> Result<bool> {
        self.tenure.lock().renewal_sent(sent_at);
        let closed = || CatalogError::Internal("the catalog is closed".into());
        let store = self.store.upgrade().ok_or_else(closed)?;
        let (fence, timing) = (self.fence.clone(), self.timing);
        let is_held = store.write_rows(move |connection| leases::renew(connection, &fence, timing)).await?;
        if is_held {
            self.tenure.lock().renewed(sent_at);
        }
        Ok(is_held)
    }
}

/// Makes sure that a lease is held, in the transaction that writes what it protects; `None` is that of a server that is
/// alone.
fn require_held(connection: &StoreConnection, fence: Option<&LeaseFence>) -> Result<()> {
    fence.map_or(Ok(()), |fence| leases::require_held(connection, fence))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    const SHORT: LeaseTiming = LeaseTiming {
        term: Duration::from_secs(2),
        margin: Duration::from_millis(500),
        renewed_after: Duration::from_millis(200),
        retried_after: Duration::from_millis(100),
    };

    /// As `CatalogLeases::take`, on a file, with times that a test can wait for.
    async fn taken(store: &Arc<Store>, held: &Arc<HeldLeases>, member: &'static str) -> WorkLease {
        let request = LeaseRequest { name: "retention", member, every: Duration::ZERO };
        let sent_at = held.now();
        let answer = store.write_rows(move |connection| leases::take(connection, request, SHORT)).await.unwrap();
        let LeaseAnswer::Granted(fence) = answer else { panic!("{answer:?}") };
        let claim = held.claim(LeasedWork::Retention).unwrap();
        let tenure = Mutex::new(Tenure::granted(sent_at, SHORT));
        let row = HeldRow { store: Arc::downgrade(store), claim, fence, timing: SHORT, tenure };
        WorkLease { row: Some(Box::new(row)) }
    }

    #[tokio::test]
    async fn work_goes_on_while_its_lease_is_renewed_and_is_dropped_when_it_is_not() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        let store = Arc::new(Store::open(&folder, None, None).await.unwrap());
        let (one, two): (Arc<HeldLeases>, Arc<HeldLeases>) = (Arc::default(), Arc::default());
        let lease = taken(&store, &one, "one").await;
        assert!(one.claim(LeasedWork::Retention).is_none(), "another task of the server");
        // Longer than the lease was given for.
        let work = async {
            tokio::time::sleep(SHORT.term + SHORT.margin).await;
            7
        };
        assert_eq!(lease.run(work).await, Some(7));

        // Its time is over, and another server has it.
        store.write_rows(|rows| Ok(rows.execute_batch("UPDATE querent_lease SET expires_at = 0")?)).await.unwrap();
        let other = taken(&store, &two, "two").await;
        assert_eq!(lease.run(std::future::pending::<()>()).await, None);
        let fence = lease.fence();
        let refused = store.write_rows(move |rows| require_held(rows, fence.as_ref())).await;
        assert_eq!(refused.unwrap_err().code(), "conflict");
        lease.finish().await.unwrap();
        assert!(one.claim(LeasedWork::Retention).is_some());

        // The catalog cannot be asked any more.
        store.close().await.unwrap();
        assert_eq!(other.run(std::future::pending::<()>()).await, None);
        tokio::fs::remove_dir_all(folder).await.unwrap();
    }

    #[tokio::test]
    async fn a_server_that_is_alone_has_every_lease_and_writes_nothing() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        let store = Arc::new(Store::open(&folder, None, None).await.unwrap());
        let held = Arc::default();
        let leases = CatalogLeases { store: &store, held: &held };
        let hour = Duration::from_secs(3_600);
        for _ in 0..2 {
            let lease = leases.take(LeasedWork::Retention, hour).await.unwrap().had().unwrap();
            assert!(!lease.is_shared());
            assert_eq!(lease.run(async { 7 }).await, Some(7));
            lease.finish().await.unwrap();
        }
        leases.close().await;
        let rows: i64 = store
            .read(|rows| Ok(rows.query_row("SELECT count(*) FROM querent_lease", [], |row| row.get(0))?))
            .await
            .unwrap();
        assert_eq!(rows, 0);
        store.close().await.unwrap();
        tokio::fs::remove_dir_all(folder).await.unwrap();
    }
}

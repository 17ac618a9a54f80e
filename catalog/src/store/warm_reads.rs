//! What was read of a shared catalog at its newest version. To resolve a name takes some fifteen statements, each a journey to
//! the server; a name that is known at the version that holds takes one, which asks for the version.
//!
//! Invariant: everything kept is of one version, so a commit by anybody makes all of it useless. What changes without a
//! version, the sketches of `ANALYZE`, is believed for [`KEPT_FOR`], and on the server that changes it not at all.
//!
//! Where the catalog's server has gone away, what is kept is given out for [`BELIEVED_FOR`] more, with a warning in the log:
//! statements over names that were used go on, all others and all writes fail.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{SnapshotView, Store, closed, files, on_blocking_thread, resolve};
use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::model::{CatalogVersion, ManagedTable, ResolvedTable, TableContents, TableName};
use crate::principal::Principal;

/// How long what was read is kept while the version stays the same.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How long it is given out once the server cannot be asked any more.
const BELIEVED_FOR: Duration = Duration::from_secs(600);
/// How long a server that could not be reached is not tried again for a read that can do without.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a read waits for a server that could not be reached before, where it can do without.
const PATIENCE_WITH_LOST: Duration = Duration::from_millis(500);
/// Names kept; at more, all are forgotten.
const MAX_NAMES: usize = 10_000;
/// Callers kept for each name.
const MAX_CALLERS: usize = 32;
/// Data files kept, of all tables together.
const MAX_FILES: usize = 100_000;

/// What each caller found under a name: `None` where nothing is there for it.
type Findings = Vec<(Principal, Option<ResolvedTable>)>;

/// What is known. Only stores that others share have it.
#[derive(Default)]
pub(super) struct WarmReads(Mutex<Warm>);

#[derive(Default)]
struct Warm {
    version: Option<CatalogVersion>,
    /// When the first of what is kept was read.
    since: Option<Instant>,
    /// When the server last said that the version holds.
    confirmed_at: Option<Instant>,
    /// When the server could not be reached, as long as it was not heard of again.
    lost_at: Option<Instant>,
    names: HashMap<TableName, Findings>,
    contents: HashMap<(i64, Vec<i64>), TableContents>,
    files: usize,
}

/// Reads the version that holds in one statement. `None` where there is something to absorb first.
pub(super) fn version(connection: &StoreConnection) -> Result<Option<CatalogVersion>> {
    let mut statement = connection.prepare_cached(
        "SELECT (SELECT max(snapshot_id) FROM ducklake_snapshot),
                (SELECT value FROM querent_meta WHERE key = 'absorbed_snapshot'),
                (SELECT coalesce(max(version), 0) FROM querent_policy)",
    )?;
    let (newest, absorbed, policies): (Option<i64>, Option<String>, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let absorbed = absorbed.and_then(|text| text.parse().ok());
    Ok(newest.filter(|newest| Some(*newest) == absorbed).map(|snapshot| CatalogVersion { snapshot, policies }))
}

impl Store {
    /// The version of a shared catalog; the one that held last where its server cannot be reached for the moment.
    pub(super) async fn shared_version(&self, warm: &WarmReads) -> Result<CatalogVersion> {
        if let Some(version) = warm.without_asking() {
            return Ok(version);
        }
        let readers = Arc::clone(&self.readers);
        let asking = async {
            let permit = Arc::clone(&readers.permits).acquire_owned().await.map_err(|_| closed())?;
            on_blocking_thread(move || {
                let _permit = permit;
                readers.ask(version)
            })
            .await
        };
        let asked = match warm.patience() {
            // What is asked goes on to its own end; it is the next read that hears of it.
            Some(patience) => tokio::time::timeout(patience, asking).await.unwrap_or_else(|_| {
                Err(CatalogError::Unavailable { detail: "its server has not answered yet".to_owned() })
            }),
            None => asking.await,
        };
        let found = match asked {
            Ok(Some(version)) => Ok(version),
            Ok(None) => self.view(|view| Ok(view.version())).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(version) => {
                warm.confirm(version);
                Ok(version)
            }
            Err(error @ CatalogError::Unavailable { .. }) => warm.lose(&error).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// What `who` finds under names at the newest version, and which that is.
    pub(crate) async fn resolve(
        &self,
        who: &Principal,
        names: &[TableName],
    ) -> Result<(CatalogVersion, Vec<Option<ResolvedTable>>)> {
        // Names that are not known are read in a transaction, which says the version as well.
        if let Some(warm) = &self.warm
            && warm.knows(who, names)
            && let Ok(version) = self.shared_version(warm).await
            && let Some(found) = warm.tables(version, who, names)
        {
            return Ok((version, found));
        }
        let (caller, wanted) = (who.clone(), names.to_vec());
        let read = move |view: &SnapshotView<'_>| Ok((view.version(), resolve::resolve(view, &caller, &wanted)?));
        let (version, found) = self.view(read).await?;
        if let Some(warm) = &self.warm {
            warm.confirm(version);
            warm.keep_tables(version, who, names, &found);
        }
        Ok((version, found))
    }

    /// What a managed table holds, with the statistics of these columns.
    pub(crate) async fn contents(&self, table: &ManagedTable, columns: &[i64]) -> Result<TableContents> {
        if let Some(known) = self.warm.as_ref().and_then(|warm| warm.contents(table, columns)) {
            return Ok(known);
        }
        let (wanted, described) = (table.clone(), columns.to_vec());
        let contents = self.read(move |connection| files::contents(connection, &wanted, &described)).await?;
        if let Some(warm) = &self.warm {
            warm.keep_contents(table, columns, &contents);
        }
        Ok(contents)
    }

    /// Forgets what is known of a shared catalog: something was written that makes no version.
    pub(crate) fn forget_known(&self) {
        if let Some(warm) = &self.warm {
            warm.forget();
        }
    }
}

impl WarmReads {
    /// Notes what the server said.
    pub(super) fn confirm(&self, version: CatalogVersion) {
        let mut warm = self.0.lock();
        warm.turn_to(version);
        warm.confirmed_at = Some(Instant::now());
        if warm.lost_at.take().is_some() {
            tracing::info!("the catalog's server is there again");
        }
    }

    /// Notes that the server could not be asked, and returns the version that held last, where that may still be believed.
    pub(super) fn lose(&self, error: &CatalogError) -> Option<CatalogVersion> {
        let mut warm = self.0.lock();
        if warm.lost_at.replace(Instant::now()).is_none() {
            tracing::warn!(
                %error,
                "tables that were used lately are read as they were for {} s, and nothing is written",
                BELIEVED_FOR.as_secs()
            );
        }
        warm.believed()
    }

    /// The version that held last, where the server could not be reached a moment ago.
    pub(super) fn without_asking(&self) -> Option<CatalogVersion> {
        let warm = self.0.lock();
        let lost_now = warm.lost_at.is_some_and(|at| at.elapsed() < TRIED_AGAIN_AFTER);
        if lost_now { warm.believed() } else { None }
    }

    /// How long a read waits for the server to say the version: `None` where it can only wait.
    fn patience(&self) -> Option<Duration> {
        let warm = self.0.lock();
        warm.lost_at.and_then(|_| warm.believed()).map(|_| PATIENCE_WITH_LOST)
    }

    /// Whether it was read what `who` finds under all of these names, at whatever version.
    pub(super) fn knows(&self, who: &Principal, names: &[TableName]) -> bool {
        let warm = self.0.lock();
        let is_known = |findings: &Findings| findings.iter().any(|(caller, _)| caller == who);
        names.iter().all(|name| warm.names.get(name).is_some_and(is_known))
    }

    /// What `who` finds under all of these names at a version, if that is known.
    pub(super) fn tables(
        &self,
        version: CatalogVersion,
        who: &Principal,
        names: &[TableName],
    ) -> Option<Vec<Option<ResolvedTable>>> {
        let mut warm = self.0.lock();
        if warm.version != Some(version) || warm.is_old() {
            return None;
        }
        let known = |name| {
            let findings: &Findings = warm.names.get(name)?;
            findings.iter().find(|(caller, _)| caller == who).map(|(_, found)| found.clone())
        };
        names.iter().map(known).collect()
    }

    /// Keeps what `who` found at a version.
    pub(super) fn keep_tables(
        &self,
        version: CatalogVersion,
        who: &Principal,
        names: &[TableName],
        found: &[Option<ResolvedTable>],
    ) {
        let mut warm = self.0.lock();
        warm.turn_to(version);
        if warm.names.len() + names.len() > MAX_NAMES {
            warm.names.clear();
        }
        for (name, found) in names.iter().zip(found) {
            let findings = warm.names.entry(name.clone()).or_default();
            findings.retain(|(caller, _)| caller != who);
            if findings.len() >= MAX_CALLERS {
                findings.clear();
            }
            findings.push((who.clone(), found.clone()));
        }
    }

    /// What a table holds, with the statistics of these columns, if that is known.
    pub(super) fn contents(&self, table: &ManagedTable, columns: &[i64]) -> Option<TableContents> {
        let mut warm = self.0.lock();
        if !warm.is_of(table) || warm.is_old() {
            return None;
        }
        warm.contents.get(&(table.id, columns.to_vec())).cloned()
    }

    /// Keeps what a table holds.
    pub(super) fn keep_contents(&self, table: &ManagedTable, columns: &[i64], contents: &TableContents) {
        let mut warm = self.0.lock();
        if !warm.is_of(table) || contents.files.len() > MAX_FILES {
            return;
        }
        if warm.files + contents.files.len() > MAX_FILES {
            warm.contents.clear();
            warm.files = 0;
        }
        if warm.contents.insert((table.id, columns.to_vec()), contents.clone()).is_none() {
            warm.files += contents.files.len().max(1);
        }
    }

    /// Forgets everything: something was written.
    pub(super) fn forget(&self) {
        let mut warm = self.0.lock();
        *warm = Warm { lost_at: warm.lost_at, ..Warm::default() };
    }
}

impl Warm {
    fn turn_to(&mut self, version: CatalogVersion) {
        if self.version != Some(version) {
            *self = Self { version: Some(version), lost_at: self.lost_at, ..Self::default() };
        }
        self.since.get_or_insert_with(Instant::now);
    }

    /// Forgets what has become old, unless there is nobody to ask.
    fn is_old(&mut self) -> bool {
        let is_old = self.lost_at.is_none() && self.since.is_none_or(|since| since.elapsed() > KEPT_FOR);
        if is_old {
            *self = Self { version: self.version, confirmed_at: self.confirmed_at, ..Self::default() };
        }
        is_old
    }

    fn is_of(&self, table: &ManagedTable) -> bool {
        self.version.is_some_and(|version| version.snapshot == table.snapshot)
    }

    fn believed(&self) -> Option<CatalogVersion> {
        let is_near = self.confirmed_at.is_some_and(|at| at.elapsed() < BELIEVED_FOR);
        self.version.filter(|_| is_near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(snapshot: i64) -> ManagedTable {
        ManagedTable { id: 7, snapshot, location: "/nowhere".into() }
    }

    #[test]
    fn what_is_kept_is_of_one_version_and_of_its_caller() {
        let warm = WarmReads::default();
        let (first, second) =
            (CatalogVersion { snapshot: 1, policies: 0 }, CatalogVersion { snapshot: 2, policies: 0 });
        let (ada, bob) = (Principal::new("ada", crate::Role::Read), Principal::new("bob", crate::Role::Read));
        let names = [TableName::new("default", "orders")];
        warm.keep_tables(first, &ada, &names, &[None]);
        assert_eq!(warm.tables(first, &ada, &names), Some(vec![None]));
        assert_eq!(warm.tables(first, &bob, &names), None);
        assert!(warm.knows(&ada, &names) && !warm.knows(&bob, &names));
        assert_eq!(warm.tables(second, &ada, &names), None);
        let contents = TableContents { files: Vec::new(), inlined: None, distinct_values: Default::default() };
        warm.keep_contents(&table(1), &[], &contents);
        assert_eq!(warm.contents(&table(1), &[]), Some(contents));
        assert_eq!(warm.contents(&table(1), &[3]), None);

        // Policies are part of the version.
        warm.confirm(CatalogVersion { snapshot: 1, policies: 1 });
        assert_eq!(warm.tables(first, &ada, &names), None);
        assert_eq!(warm.contents(&table(1), &[]), None);
    }

    #[test]
    fn a_version_is_believed_only_after_the_server_confirmed_it() {
        let warm = WarmReads::default();
        let version = CatalogVersion { snapshot: 1, policies: 0 };
        let gone = CatalogError::Unavailable { detail: "gone".into() };
        assert_eq!(warm.lose(&gone), None);
        warm.confirm(version);
        assert_eq!(warm.without_asking(), None, "it was there a moment ago");
        assert_eq!(warm.patience(), None);
        assert_eq!(warm.lose(&gone), Some(version));
        assert_eq!(warm.without_asking(), Some(version));
        assert_eq!(warm.patience(), Some(PATIENCE_WITH_LOST));
        warm.forget();
        assert_eq!(warm.without_asking(), None);
    }
}

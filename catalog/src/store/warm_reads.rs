//! What was read of a shared catalog at its newest version. To resolve a name takes some fifteen statements, each a journey to
//! the server; a name that is known at the version that holds takes one, which asks for the version.
//!
//! Invariant: everything kept is of one version. A commit makes useless what was known of the tables that it changed, by its own
//! words ([`ChangedTables`]), of all names that stood for nothing, and of views; what is known of other tables is so at its version,
//! too. Where it does not say which tables they are, all is forgotten. What changes without a version, the sketches of `ANALYZE`,
//! is believed for [`KEPT_FOR`], and on the server that changes it not at all.
//!
//! Where the catalog's server has gone away, what is kept is given out for [`BELIEVED_FOR`] more, with a warning in the log:
//! statements over names that were used go on, all others and all writes fail. What this server wrote is never read as it was before.

mod known_databases;
mod seen_version;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use known_databases::KnownDatabases;
use parking_lot::Mutex;
use seen_version::{SeenVersion, version};

use super::change::ChangedTables;
use super::{SnapshotView, Store, closed, files, on_blocking_thread, resolve};
use crate::connection::DatabaseError;
use crate::error::{CatalogError, Result};
use crate::model::{CatalogVersion, ManagedTable, ResolvedTable, SnapshotId, TableContents, TableName, TableSource};
use crate::outbound::with_causes;
use crate::principal::Principal;

/// How long what was read is kept while the version stays the same.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How long it is given out once the server cannot be asked any more.
const BELIEVED_FOR: Duration = Duration::from_secs(600);
/// How long a server that could not be reached is not tried again for a read that can do without.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a read waits for a server that could not be reached before, where it can do without.
const PATIENCE_WITH_LOST: Duration = Duration::from_millis(500);
/// How often names and files are read again where the connection was lost in the middle.
const ATTEMPTS: usize = 1;
/// Names kept; at more, all are forgotten.
const MAX_NAMES: usize = 10_000;
/// Callers kept for each name.
const MAX_CALLERS: usize = 32;
/// Data files kept, of all tables together.
const MAX_FILES: usize = 100_000;

/// What a caller found under a name: `None` where nothing is there for it.
struct WarmName {
    who: Principal,
    found: Option<ResolvedTable>,
    read_at: Instant,
}

/// What a table holds.
struct WarmContents {
    contents: TableContents,
    read_at: Instant,
}

/// What is known. Only stores that others share have it.
#[derive(Default)]
pub(super) struct WarmReads(Mutex<Warm>);

#[derive(Default)]
struct Warm {
    version: Option<CatalogVersion>,
    /// The newest snapshot that this server made.
    written: Option<SnapshotId>,
    /// When the server last said that the version holds.
    confirmed_at: Option<Instant>,
    /// When the server could not be reached, as long as it was not heard of again.
    lost_at: Option<Instant>,
    names: HashMap<TableName, Vec<WarmName>>,
    contents: HashMap<(i64, Vec<i64>), WarmContents>,
    /// Those that are dropped or come to other callers make all forgotten.
    databases: KnownDatabases,
    files: usize,
}

impl Store {
    /// The version of a shared catalog; the one that held last where its server cannot be reached for the moment.
    pub(super) async fn shared_version(&self, warm: &WarmReads) -> Result<CatalogVersion> {
        if let Some(version) = warm.without_asking() {
            return Ok(version);
        }
        let readers = Arc::clone(&self.readers);
        let since = warm.snapshot();
        let asking = async {
            let permit = Arc::clone(&readers.permits).acquire_owned().await.map_err(|_| closed())?;
            on_blocking_thread(move || {
                let _permit = permit;
                readers.ask(|connection| version(connection, since))
            })
            .await
        };
        let asked = match warm.patience() {
            // What is asked goes on to its own end; it is the next read that hears of it.
            Some(patience) => tokio::time::timeout(patience, asking).await.unwrap_or_else(|_| {
                let server = self.place.shown().display().to_string();
                let reason = "it has not answered yet".to_owned();
                Err(CatalogError::Unavailable { source: Arc::new(DatabaseError::Unreachable { server, reason }) })
            }),
            None => asking.await,
        };
        let found = match asked {
            Ok(Some(version)) => Ok(version),
            Ok(None) => self.view(move |view| SeenVersion::read(view.connection, view.version(), since)).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(seen) => {
                let version = seen.version;
                warm.confirm(seen);
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
        let mut attempts = 0..ATTEMPTS;
        let (version, seen, found) = loop {
            let (caller, wanted) = (who.clone(), names.to_vec());
            let since = self.warm.as_ref().map(|warm| warm.snapshot());
            let read = move |view: &SnapshotView<'_>| {
                let seen = since.map(|since| SeenVersion::read(view.connection, view.version(), since)).transpose()?;
                Ok((view.version(), seen, resolve::resolve(view, &caller, &wanted)?))
            };
            match self.view(read).await {
                Err(CatalogError::Unavailable { .. }) if attempts.next().is_some() => {}
                read => break read?,
            }
        };
        if let (Some(warm), Some(seen)) = (&self.warm, seen) {
            warm.confirm(seen);
            warm.keep_tables(version, who, names, &found);
        }
        Ok((version, found))
    }

    /// What a managed table holds, with the statistics of these columns.
    pub(crate) async fn contents(&self, table: &ManagedTable, columns: &[i64]) -> Result<TableContents> {
        if let Some(known) = self.warm.as_ref().and_then(|warm| warm.contents(table, columns)) {
            return Ok(known);
        }
        let mut attempts = 0..ATTEMPTS;
        let contents = loop {
            let (wanted, described) = (table.clone(), columns.to_vec());
            match self.read(move |connection| files::contents(connection, &wanted, &described)).await {
                Err(CatalogError::Unavailable { .. }) if attempts.next().is_some() => {}
                read => break read?,
            }
        };
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
    /// The snapshot of what is known.
    fn snapshot(&self) -> Option<SnapshotId> {
        self.0.lock().version.map(|version| version.snapshot)
    }

    /// Notes what the server said.
    fn confirm(&self, seen: SeenVersion) {
        let mut warm = self.0.lock();
        warm.turn_to(seen);
        warm.confirmed_at = Some(Instant::now());
        if warm.lost_at.take().is_some() {
            tracing::info!("the catalog's server is there again");
        }
    }

    /// Notes a commit of this server.
    pub(super) fn note_written(&self, snapshot: SnapshotId, changes: &str) {
        let mut warm = self.0.lock();
        warm.written = warm.written.max(Some(snapshot));
        if let Some(held) = warm.version.filter(|held| held.snapshot + 1 == snapshot) {
            let version = CatalogVersion { snapshot, ..held };
            warm.turn_to(SeenVersion { version, since: Some(held.snapshot), touched: ChangedTables::parse(changes) });
        }
    }

    /// Notes that the server could not be asked, and returns the version that held last, where that may still be believed.
    pub(super) fn lose(&self, error: &CatalogError) -> Option<CatalogVersion> {
        let mut warm = self.0.lock();
        if warm.lost_at.replace(Instant::now()).is_none() {
            tracing::warn!(
                error = with_causes(error),
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
        let is_known = |known: &Vec<WarmName>| known.iter().any(|known| &known.who == who);
        names.iter().all(|name| warm.names.get(name).is_some_and(is_known))
    }

    /// What `who` finds under all of these names at a version, if that is known.
    pub(super) fn tables(
        &self,
        version: CatalogVersion,
        who: &Principal,
        names: &[TableName],
    ) -> Option<Vec<Option<ResolvedTable>>> {
        let warm = self.0.lock();
        if warm.version != Some(version) {
            return None;
        }
        let known = |name: &TableName| {
            let known = warm.names.get(name)?.iter().find(|known| &known.who == who)?;
            warm.is_fresh(known.read_at).then(|| known.found.clone())
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
        if *warm.version.get_or_insert(version) != version {
            return;
        }
        if warm.names.len() + names.len() > MAX_NAMES {
            warm.names.clear();
        }
        for (name, found) in names.iter().zip(found) {
            let known = warm.names.entry(name.clone()).or_default();
            known.retain(|known| &known.who != who);
            if known.len() >= MAX_CALLERS {
                known.clear();
            }
            known.push(WarmName { who: who.clone(), found: found.clone(), read_at: Instant::now() });
        }
    }

    /// What a table holds, with the statistics of these columns, if that is known.
    pub(super) fn contents(&self, table: &ManagedTable, columns: &[i64]) -> Option<TableContents> {
        let warm = self.0.lock();
        if !warm.is_of(table) {
            return None;
        }
        let known = match warm.contents.get(&(table.id, columns.to_vec())) {
            Some(known) => known,
            // The files are the same; without statistics more of them are read.
            None => warm.lost_at.and_then(|_| warm.any_contents(table.id))?,
        };
        warm.is_fresh(known.read_at).then(|| known.contents.clone())
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
        let known = WarmContents { contents: contents.clone(), read_at: Instant::now() };
        let before = warm.contents.insert((table.id, columns.to_vec()), known);
        warm.files += contents.files.len().max(1);
        warm.files -= before.map_or(0, |before| before.files());
    }

    /// Forgets everything: something was written.
    pub(super) fn forget(&self) {
        let mut warm = self.0.lock();
        *warm = Warm { lost_at: warm.lost_at, written: warm.written, ..Warm::default() };
    }
}

impl WarmContents {
    /// What it counts as, of [`MAX_FILES`].
    fn files(&self) -> usize {
        self.contents.files.len().max(1)
    }
}

impl WarmName {
    /// Makes of what was found what is found at a later snapshot, after changes of these tables. Returns whether that is known.
    fn carry(&mut self, snapshot: SnapshotId, touched: &BTreeSet<i64>) -> bool {
        let Some(found) = &mut self.found else { return false };
        let is_same = !touched.contains(&found.info.id);
        match &mut found.source {
            TableSource::Managed(table) => table.snapshot = snapshot,
            TableSource::External(_) => {}
            // Who may know it depends on what it reads.
            TableSource::View { .. } => return false,
        }
        is_same
    }
}

impl Warm {
    /// Keeps what is known at a version, too.
    fn turn_to(&mut self, seen: SeenVersion) {
        let SeenVersion { version, since, touched } = seen;
        let Some(held) = self.version else {
            self.begin(version);
            return;
        };
        if held == version {
            return;
        }
        // It was asked for before what is known by now.
        if since.is_some_and(|since| since <= version.snapshot) && version.snapshot < held.snapshot {
            return;
        }
        let is_told = since.is_some_and(|since| since <= held.snapshot) && held.snapshot <= version.snapshot;
        match touched {
            ChangedTables::Only(touched) if is_told && held.policies == version.policies => {
                self.carry(version, &touched);
            }
            ChangedTables::Only(_) | ChangedTables::Any => self.begin(version),
        }
    }

    fn begin(&mut self, version: CatalogVersion) {
        *self = Self { version: Some(version), lost_at: self.lost_at, written: self.written, ..Self::default() };
    }

    fn carry(&mut self, version: CatalogVersion, touched: &BTreeSet<i64>) {
        self.version = Some(version);
        self.names.retain(|_, known| {
            known.retain_mut(|known| known.carry(version.snapshot, touched));
            !known.is_empty()
        });
        self.contents.retain(|(table, _), _| !touched.contains(table));
        self.files = self.contents.values().map(WarmContents::files).sum();
    }

    /// Whether what was read at a time may be given out: for a while, and for as long as there is nobody to ask.
    fn is_fresh(&self, read_at: Instant) -> bool {
        self.lost_at.is_some() || read_at.elapsed() <= KEPT_FOR
    }

    /// What a table holds, with the statistics of whichever columns.
    fn any_contents(&self, table_id: i64) -> Option<&WarmContents> {
        self.contents.iter().find(|((table, _), _)| *table == table_id).map(|(_, known)| known)
    }

    fn is_of(&self, table: &ManagedTable) -> bool {
        self.version.is_some_and(|version| version.snapshot == table.snapshot)
    }

    fn believed(&self) -> Option<CatalogVersion> {
        let is_near = self.confirmed_at.is_some_and(|at| at.elapsed() < BELIEVED_FOR);
        self.version.filter(|version| is_near && self.written.is_none_or(|written| written <= version.snapshot))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::{TableInfo, TableKind};

    fn table(snapshot: i64) -> ManagedTable {
        ManagedTable { id: 7, snapshot, location: "/nowhere".into() }
    }

    /// What is found under the name of a table.
    fn found(source: TableSource) -> ResolvedTable {
        let info = TableInfo {
            id: 7,
            uuid: Uuid::nil(),
            name: TableName::new("default", "orders"),
            kind: TableKind::Managed,
            comment: None,
            columns: Vec::new(),
            row_count: None,
        };
        ResolvedTable { info, source, restriction: None }
    }

    fn nothing() -> TableContents {
        TableContents { files: Vec::new(), inlined: None, distinct_values: Default::default() }
    }

    fn version_at(snapshot: i64) -> CatalogVersion {
        CatalogVersion { snapshot, policies: 0 }
    }

    fn seen(version: CatalogVersion, since: Option<i64>, changes: &str) -> SeenVersion {
        SeenVersion { version, since, touched: ChangedTables::parse(changes) }
    }

    #[test]
    fn what_is_kept_is_of_one_version_and_of_its_caller() {
        let warm = WarmReads::default();
        let (ada, bob) = (Principal::new("ada", crate::Role::Read), Principal::new("bob", crate::Role::Read));
        let names = [TableName::new("default", "orders")];
        warm.keep_tables(version_at(1), &ada, &names, &[None]);
        assert_eq!(warm.tables(version_at(1), &ada, &names), Some(vec![None]));
        assert_eq!(warm.tables(version_at(1), &bob, &names), None);
        assert!(warm.knows(&ada, &names) && !warm.knows(&bob, &names));
        assert_eq!(warm.tables(version_at(2), &ada, &names), None);
        warm.keep_contents(&table(1), &[], &nothing());
        assert_eq!(warm.contents(&table(1), &[]), Some(nothing()));
        assert_eq!(warm.contents(&table(1), &[3]), None);

        // Policies are part of the version.
        warm.confirm(seen(CatalogVersion { snapshot: 1, policies: 1 }, Some(1), "inserted_into_table:8"));
        assert_eq!(warm.tables(version_at(1), &ada, &names), None);
        assert_eq!(warm.contents(&table(1), &[]), None);
    }

    #[test]
    fn what_a_commit_did_not_change_is_known_at_its_version_too() {
        let who = Principal::local_admin();
        let names = [TableName::new("default", "orders")];
        let view = TableSource::View { sql: "SELECT 1".into(), default_database: "default".into() };
        let sources = [Some(TableSource::Managed(table(1))), Some(view), None];
        for (changes, known) in [
            ("inserted_into_table:8,created_table:\"default\".\"new\"", [true, false, false]),
            ("altered_table:7", [false, false, false]),
            ("inserted_into_table:8,deleted_from_table:7", [false, false, false]),
            ("dropped_schema:3", [false, false, false]),
        ] {
            for (source, is_known) in sources.iter().zip(known) {
                let warm = WarmReads::default();
                warm.keep_tables(version_at(1), &who, &names, &[source.clone().map(found)]);
                warm.keep_contents(&table(1), &[], &nothing());
                warm.confirm(seen(version_at(3), Some(1), changes));
                let carried = source.as_ref().map(|_| found(TableSource::Managed(table(3))));
                assert_eq!(warm.tables(version_at(3), &who, &names), is_known.then(|| vec![carried]), "{changes}");
                assert_eq!(warm.contents(&table(3), &[]).is_some(), known[0], "{changes}");
                assert_eq!(warm.contents(&table(1), &[]), None);
            }
        }
    }

    #[test]
    fn an_answer_that_comes_late_takes_nothing_away() {
        let warm = WarmReads::default();
        let (who, names) = (Principal::local_admin(), [TableName::new("default", "orders")]);
        let keep = |snapshot| {
            warm.keep_tables(version_at(snapshot), &who, &names, &[Some(found(TableSource::Managed(table(snapshot))))])
        };
        let is_known_at = |snapshot| warm.tables(version_at(snapshot), &who, &names).is_some();
        keep(5);
        // Asked before it was heard of the fifth.
        warm.confirm(seen(version_at(4), Some(3), "altered_table:7"));
        assert!(is_known_at(5));
        keep(4);
        assert!(is_known_at(5) && !is_known_at(4));
        // What it says of more than is asked does no harm.
        warm.confirm(seen(version_at(6), Some(3), "inserted_into_table:8"));
        assert!(is_known_at(6));
        // Nothing is known of the seventh, and the catalog went back to where it was.
        warm.confirm(seen(version_at(8), Some(7), "inserted_into_table:8"));
        assert!(!is_known_at(8));
        keep(8);
        warm.confirm(seen(version_at(2), Some(8), "inserted_into_table:8"));
        assert!(!is_known_at(2));
    }

    fn gone() -> CatalogError {
        CatalogError::Unavailable {
            source: Arc::new(DatabaseError::Unreachable { server: "pg".to_owned(), reason: "gone".to_owned() }),
        }
    }

    #[test]
    fn a_version_is_believed_only_after_the_server_confirmed_it() {
        let warm = WarmReads::default();
        let gone = gone();
        assert_eq!(warm.lose(&gone), None);
        warm.confirm(seen(version_at(1), None, ""));
        assert_eq!(warm.without_asking(), None, "it was there a moment ago");
        assert_eq!(warm.patience(), None);
        assert_eq!(warm.lose(&gone), Some(version_at(1)));
        assert_eq!(warm.without_asking(), Some(version_at(1)));
        assert_eq!(warm.patience(), Some(PATIENCE_WITH_LOST));
        warm.forget();
        assert_eq!(warm.without_asking(), None);
    }

    #[test]
    fn without_the_server_what_a_table_holds_is_known_for_any_columns() {
        let warm = WarmReads::default();
        warm.confirm(seen(version_at(1), None, ""));
        warm.keep_contents(&table(1), &[2], &nothing());
        assert_eq!(warm.contents(&table(1), &[3]), None);
        warm.lose(&gone());
        assert_eq!(warm.contents(&table(1), &[3]), Some(nothing()));
        assert_eq!(warm.contents(&table(2), &[3]), None);
        warm.confirm(seen(version_at(1), Some(1), ""));
        assert_eq!(warm.contents(&table(1), &[3]), None);
    }

    #[test]
    fn what_this_server_wrote_is_not_read_as_it_was_before() {
        let warm = WarmReads::default();
        let (who, names) = (Principal::local_admin(), [TableName::new("default", "orders")]);
        let gone = gone();
        warm.confirm(seen(version_at(1), None, ""));
        warm.keep_tables(version_at(1), &who, &names, &[Some(found(TableSource::Managed(table(1))))]);
        // The next snapshot is its own, and of another table.
        warm.note_written(2, "inserted_into_table:8");
        assert_eq!(warm.lose(&gone), Some(version_at(2)));
        assert!(warm.tables(version_at(2), &who, &names).is_some());
        // Another server's lies between.
        warm.note_written(4, "inserted_into_table:8");
        assert_eq!(warm.lose(&gone), None);
        warm.confirm(seen(version_at(4), Some(2), "inserted_into_table:8,inserted_into_table:9"));
        assert_eq!(warm.lose(&gone), Some(version_at(4)));
        warm.note_written(5, "inserted_into_table:7");
        assert_eq!(warm.lose(&gone), Some(version_at(5)));
        assert!(warm.tables(version_at(5), &who, &names).is_none());
    }
}

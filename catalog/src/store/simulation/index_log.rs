//! Servers that take the changes of a catalog into an index each, and take the one that another published. Promise: when
//! nothing fails any more, each index holds what the catalog does, whatever was forgotten, cut off, lost in a power cut or half
//! done before.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;

use super::{SimulatedChance, SimulatedStory};
use crate::error::Result as CatalogResult;
use crate::index::{held_up_to, may_take};
use crate::store::change_log::protocol::{ForgottenRows, LocalLog, LogMember, SharedLog, join, report};
use crate::store::pending::{IndexState, ObjectKind, PendingObject};

/// Steps in which faults happen.
const STORMY: usize = 400;
/// Rounds after that in which every server gets its turn.
const CALM: usize = 60;
/// Rows that are copied, or objects that are read, at once.
const PAGE: usize = 3;
/// Tables that there may be.
const OBJECTS: i64 = 8;
const MINUTE: i64 = 60_000_000;
/// Transactions that a power cut may take back.
const UNSYNCED: usize = 6;

/// The rules that hold, of which tests leave one out.
#[derive(Clone, Copy)]
pub(super) struct LogRules {
    /// An index is recorded for the epoch in which it was made.
    pub(super) has_epochs: bool,
    /// Rows stay until every member has them.
    pub(super) waits_for_all: bool,
    /// An index that was published is taken only where it holds what the server's own does.
    pub(super) takes_only_more: bool,
}

impl Default for LogRules {
    fn default() -> Self {
        Self { has_epochs: true, waits_for_all: true, takes_only_more: true }
    }
}

/// The catalog: its tables with the number of their last change, and the log.
#[derive(Clone, Default)]
struct SimulatedSharedRows {
    now: i64,
    tables: BTreeMap<i64, i64>,
    rows: BTreeMap<i64, PendingObject>,
    newest: i64,
    members: BTreeMap<String, LogMember>,
}

/// The catalog inside a transaction.
struct SimulatedCatalog {
    rows: RefCell<SimulatedSharedRows>,
    waits_for_all: bool,
}

impl SharedLog for SimulatedCatalog {
    fn log_time(&self) -> CatalogResult<i64> {
        Ok(self.rows.borrow().now)
    }

    fn newest(&self, kind: ObjectKind) -> CatalogResult<i64> {
        Ok(if kind == ObjectKind::Table { self.rows.borrow().newest } else { 0 })
    }

    fn rows_after(&self, _: ObjectKind, after: i64, limit: usize) -> CatalogResult<Vec<PendingObject>> {
        Ok(self.rows.borrow().rows.range(after + 1..).take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn members(&self) -> CatalogResult<Vec<LogMember>> {
        Ok(self.rows.borrow().members.values().cloned().collect())
    }

    fn keep_member(&self, member: &LogMember) -> CatalogResult<()> {
        self.rows.borrow_mut().members.insert(member.id.clone(), member.clone());
        Ok(())
    }

    fn forget(&self, forgotten: &ForgottenRows) -> CatalogResult<()> {
        let mut rows = self.rows.borrow_mut();
        for member in &forgotten.members {
            rows.members.remove(member);
        }
        let up_to = if self.waits_for_all { forgotten.up_to } else { Some(rows.newest) };
        rows.rows.retain(|sequence, _| up_to.is_none_or(|up_to| *sequence > up_to));
        Ok(())
    }
}

impl SimulatedSharedRows {
    /// Writes a row for a table that changed, in place of an older one, as `pending::record` does.
    fn record(&mut self, object_id: i64) {
        self.newest += 1;
        self.rows.retain(|_, row| row.object_id != object_id);
        let row = match self.tables.get(&object_id) {
            Some(change) => PendingObject::table(object_id, 0, change.to_string()),
            None => PendingObject::dropped_table(object_id, 0),
        };
        self.rows.insert(self.newest, PendingObject { sequence: self.newest, ..row });
    }
}

/// What a server's file holds.
#[derive(Clone, Default)]
struct LocalRows {
    position: Option<i64>,
    epoch: i64,
    pending: BTreeMap<i64, PendingObject>,
    index: Option<IndexState>,
    /// The newest row that the index holds.
    reach: i64,
}

/// A server's data folder.
#[derive(Default)]
struct SimulatedFolder {
    rows: RefCell<LocalRows>,
    /// What it held before, newest last.
    unsynced: RefCell<Vec<LocalRows>>,
    /// The versions of datasets, by their folders. They are not synced.
    datasets: BTreeMap<String, Vec<BTreeMap<i64, String>>>,
}

impl LocalLog for SimulatedFolder {
    fn position(&self, _: ObjectKind) -> CatalogResult<Option<i64>> {
        Ok(self.rows.borrow().position)
    }

    fn epoch(&self) -> CatalogResult<i64> {
        Ok(self.rows.borrow().epoch)
    }

    fn keep_rows(&self, _: ObjectKind, copied: &[PendingObject], last: i64) -> CatalogResult<()> {
        self.commit(|rows| {
            rows.pending.extend(copied.iter().map(|row| (row.object_id, row.clone())));
            rows.position = Some(last);
        });
        Ok(())
    }

    fn begin_anew(&self, objects: i64, _: i64) -> CatalogResult<()> {
        self.commit(|rows| {
            let epoch = rows.epoch + 1;
            *rows = LocalRows { position: Some(objects), reach: objects, epoch, ..LocalRows::default() };
        });
        Ok(())
    }
}

impl SimulatedFolder {
    fn commit(&self, change: impl FnOnce(&mut LocalRows)) {
        let mut unsynced = self.unsynced.borrow_mut();
        if unsynced.len() == UNSYNCED {
            unsynced.remove(0);
        }
        unsynced.push(self.rows.borrow().clone());
        change(&mut self.rows.borrow_mut());
    }

    /// Takes back the last transactions, and versions of datasets, of which some were not on the disk yet.
    fn cut_power(&mut self, chance: &mut SimulatedChance) {
        let unsynced = mem::take(self.unsynced.get_mut());
        if let Some(kept) = unsynced.into_iter().nth(chance.index(UNSYNCED + 1)) {
            *self.rows.get_mut() = kept;
        }
        for versions in self.datasets.values_mut() {
            versions.truncate(versions.len() - chance.index(versions.len() + 1).min(2));
        }
    }

    /// Up to which row its index holds all.
    fn held(&self) -> i64 {
        let rows = self.rows.borrow();
        held_up_to(rows.position.unwrap_or(0), rows.pending.values().map(|row| row.sequence).min())
    }

    /// Records a dataset that holds all rows up to one.
    fn take(&self, folder: String, held: i64) {
        let version = self.versions(&folder);
        self.commit(|rows| {
            rows.index = Some(IndexState { folder, version, text_version: 1, model: None, is_embedded: false });
            rows.pending.retain(|_, row| row.sequence > held);
            rows.reach = rows.reach.max(held);
        });
    }

    fn versions(&self, folder: &str) -> u64 {
        self.datasets.get(folder).map_or(0, |versions| versions.len() as u64)
    }
}

/// What the task is at that owns a server's index.
enum IndexTask {
    /// Nothing is open.
    Closed,
    /// It reads the catalog, page by page.
    Rebuilding { epoch: i64, after: i64, read: BTreeMap<i64, String> },
    /// It waits for rows.
    Open { epoch: i64, folder: String },
    /// It has read rows that are pending.
    Holding { epoch: i64, folder: String, rows: Vec<PendingObject> },
    /// It has written them to the dataset.
    Written { epoch: i64, folder: String, rows: Vec<PendingObject> },
}

struct SimulatedIndexer {
    id: String,
    is_up: bool,
    folder: SimulatedFolder,
    task: IndexTask,
    made_folders: u64,
}

/// The index that a server published.
struct PublishedObjects {
    held: i64,
    objects: BTreeMap<i64, String>,
}

struct SimulatedIndexes<'s> {
    chance: SimulatedChance,
    rules: LogRules,
    story: &'s mut SimulatedStory,
    shared: SimulatedSharedRows,
    changes: i64,
    servers: Vec<SimulatedIndexer>,
    published: Option<PublishedObjects>,
}

/// Runs servers for some hundred steps. Errors: the promise that was broken.
pub(super) fn simulate(mut chance: SimulatedChance, rules: LogRules, story: &mut SimulatedStory) -> Result<(), String> {
    let server = |number: usize| SimulatedIndexer {
        id: format!("server {number}"),
        is_up: false,
        folder: SimulatedFolder::default(),
        task: IndexTask::Closed,
        made_folders: 0,
    };
    let servers = (0..2 + chance.index(2)).map(server).collect();
    let shared = SimulatedSharedRows { now: 1_000_000 * MINUTE, ..SimulatedSharedRows::default() };
    let mut world = SimulatedIndexes { chance, rules, story, shared, changes: 0, servers, published: None };
    for _ in 0..STORMY {
        world.take_step().map_err(|error| format!("a step failed: {error}"))?;
    }
    for _ in 0..CALM {
        for server in 0..world.servers.len() {
            world.take_calm_step(server).map_err(|error| format!("a step failed: {error}"))?;
        }
    }
    world.compare()
}

impl SimulatedIndexes<'_> {
    fn take_step(&mut self) -> CatalogResult<()> {
        self.shared.now += match self.chance.one_in(60) {
            // Long enough for a server that is away to be forgotten.
            true => 8 * 24 * 60 * MINUTE,
            false => MINUTE,
        };
        let server = self.chance.index(self.servers.len());
        if !self.servers[server].is_up {
            return match self.chance.one_in(6) {
                true => self.start(server),
                false => Ok(()),
            };
        }
        match self.chance.index(15) {
            0..=2 => self.change_table(),
            3..=5 => self.copy(server)?,
            6 => self.report(server)?,
            7 if self.chance.one_in(6) => self.crash(server),
            8 => self.publish(server),
            9 => self.take(server),
            _ => self.work_on_index(server),
        }
        Ok(())
    }

    fn take_calm_step(&mut self, server: usize) -> CatalogResult<()> {
        if !self.servers[server].is_up {
            let outcome = self.transact(|shared, servers| join(shared, &servers[server].folder, &servers[server].id));
            self.servers[server].is_up = true;
            return outcome;
        }
        self.copy(server)?;
        self.transact(|shared, servers| report(shared, &servers[server].folder, &servers[server].id))?;
        self.work_on_index(server);
        Ok(())
    }

    /// Runs a transaction of the catalog and commits it.
    fn transact<T>(
        &mut self,
        run: impl FnOnce(&SimulatedCatalog, &[SimulatedIndexer]) -> CatalogResult<T>,
    ) -> CatalogResult<T> {
        let catalog =
            SimulatedCatalog { rows: RefCell::new(self.shared.clone()), waits_for_all: self.rules.waits_for_all };
        let outcome = run(&catalog, &self.servers)?;
        self.shared = catalog.rows.into_inner();
        Ok(outcome)
    }

    /// The same, where it may not be committed, or nobody hears that it was. Returns nothing where the server does not
    /// know that it was.
    fn transact_badly<T>(
        &mut self,
        run: impl FnOnce(&SimulatedCatalog, &[SimulatedIndexer]) -> CatalogResult<T>,
    ) -> CatalogResult<Option<T>> {
        let before = self.chance.one_in(8).then(|| self.shared.clone());
        let outcome = self.transact(run)?;
        if let Some(before) = before {
            self.story.tell(|| "  which is not committed".to_owned());
            self.shared = before;
            return Ok(None);
        }
        Ok((!self.chance.one_in(8)).then_some(outcome))
    }

    /// A table is made, changed or dropped, by whichever server.
    fn change_table(&mut self) {
        let object_id = self.chance.between(1, OBJECTS + 1);
        self.changes += 1;
        match self.chance.one_in(4) {
            true => self.shared.tables.remove(&object_id),
            false => self.shared.tables.insert(object_id, self.changes),
        };
        self.shared.record(object_id);
        let (change, sequence) = (self.shared.tables.get(&object_id).copied(), self.shared.newest);
        self.story.tell(|| format!("table {object_id} becomes {change:?} in row {sequence}"));
    }

    fn start(&mut self, server: usize) -> CatalogResult<()> {
        self.story.tell(|| format!("server {server} starts"));
        let joined =
            self.transact_badly(|shared, servers| join(shared, &servers[server].folder, &servers[server].id))?;
        self.servers[server].is_up = joined.is_some();
        Ok(())
    }

    fn copy(&mut self, server: usize) -> CatalogResult<()> {
        let folder = &self.servers[server].folder;
        let after = folder.position(ObjectKind::Table)?.unwrap_or(0);
        let shared = SimulatedCatalog { rows: RefCell::new(self.shared.clone()), waits_for_all: true };
        let rows = shared.rows_after(ObjectKind::Table, after, PAGE)?;
        if let Some(last) = rows.last() {
            folder.keep_rows(ObjectKind::Table, &rows, last.sequence)?;
            self.story.tell(|| format!("server {server} copies rows after {after} up to {}", last.sequence));
        }
        Ok(())
    }

    fn report(&mut self, server: usize) -> CatalogResult<()> {
        self.story.tell(|| format!("server {server} reports"));
        // One that knows nothing tries again with its next report.
        self.transact_badly(|shared, servers| report(shared, &servers[server].folder, &servers[server].id))?;
        Ok(())
    }

    /// A server publishes its index; which one has the lease does not matter.
    fn publish(&mut self, server: usize) {
        let indexer = &self.servers[server];
        let IndexTask::Open { epoch, folder } = &indexer.task else { return };
        // One that was forgotten may have copied past rows that are gone.
        let is_member = self.shared.members.get(&indexer.id).is_some_and(|member| member.epoch == *epoch);
        if !is_member || *epoch != indexer.folder.rows.borrow().epoch {
            return;
        }
        let objects = indexer.folder.datasets.get(folder).and_then(|versions| versions.last()).cloned();
        let held = indexer.folder.held();
        self.story.tell(|| format!("server {server} publishes {objects:?}, up to row {held}"));
        self.published = objects.map(|objects| PublishedObjects { held, objects }).or(self.published.take());
    }

    /// A server takes what was published in place of its own index.
    fn take(&mut self, server: usize) {
        let Some(published) = &self.published else { return };
        let indexer = &mut self.servers[server];
        let reach = indexer.folder.rows.borrow().reach;
        if self.rules.takes_only_more && !may_take(published.held, reach) {
            return;
        }
        self.story.tell(|| format!("server {server} takes what was published up to row {}", published.held));
        indexer.made_folders += 1;
        let folder = format!("objects-{}", indexer.made_folders);
        indexer.folder.datasets.insert(folder.clone(), vec![published.objects.clone()]);
        let epoch = indexer.folder.rows.borrow().epoch;
        indexer.folder.take(folder.clone(), published.held);
        indexer.task = IndexTask::Open { epoch, folder };
    }

    fn crash(&mut self, server: usize) {
        let crashed = &mut self.servers[server];
        crashed.is_up = false;
        crashed.task = IndexTask::Closed;
        let is_power_cut = self.chance.one_in(2);
        if is_power_cut {
            crashed.folder.cut_power(&mut self.chance);
        }
        self.story.tell(|| format!("server {server} crashes{}", if is_power_cut { " in a power cut" } else { "" }));
    }

    /// One step of the task that owns the index.
    fn work_on_index(&mut self, server: usize) {
        let indexer = &mut self.servers[server];
        let task = mem::replace(&mut indexer.task, IndexTask::Closed);
        indexer.task = match task {
            IndexTask::Closed => indexer.opened(),
            IndexTask::Rebuilding { epoch, after, mut read } => {
                let page: Vec<(i64, i64)> =
                    self.shared.tables.range(after + 1..).take(PAGE).map(|(id, change)| (*id, *change)).collect();
                match page.last() {
                    Some((last, _)) => {
                        let after = *last;
                        read.extend(page.iter().map(|(id, change)| (*id, change.to_string())));
                        IndexTask::Rebuilding { epoch, after, read }
                    }
                    None => indexer.rebuilt(epoch, read, self.rules),
                }
            }
            IndexTask::Open { epoch, folder } => indexer.with_rows(epoch, folder, self.rules),
            IndexTask::Holding { epoch, folder, rows } => indexer.written(epoch, folder, rows),
            IndexTask::Written { epoch, folder, rows } => indexer.recorded(epoch, folder, &rows, self.rules),
        };
    }

    fn compare(&self) -> Result<(), String> {
        let expected: BTreeMap<i64, String> =
            self.shared.tables.iter().map(|(id, change)| (*id, change.to_string())).collect();
        for server in &self.servers {
            let IndexTask::Open { folder, .. } = &server.task else {
                return Err(format!("{} has no index although nothing fails any more", server.id));
            };
            let found = server.folder.datasets.get(folder).and_then(|versions| versions.last());
            if found != Some(&expected) {
                return Err(format!("{} has {found:?} in its index, and the catalog {expected:?}", server.id));
            }
        }
        Ok(())
    }
}

impl SimulatedIndexer {
    /// Opens the dataset, or begins to build one.
    fn opened(&self) -> IndexTask {
        let rows = self.folder.rows.borrow();
        let epoch = rows.epoch;
        match &rows.index {
            Some(state)
                if self.folder.versions(&state.folder) > 0 && state.is_held_by(self.folder.versions(&state.folder)) =>
            {
                IndexTask::Open { epoch, folder: state.folder.clone() }
            }
            _ => IndexTask::Rebuilding { epoch, after: 0, read: BTreeMap::new() },
        }
    }

    fn rebuilt(&mut self, epoch: i64, read: BTreeMap<i64, String>, rules: LogRules) -> IndexTask {
        self.made_folders += 1;
        let folder = format!("objects-{}", self.made_folders);
        self.folder.datasets.insert(folder.clone(), vec![read]);
        self.recorded(epoch, folder, &[], rules)
    }

    fn with_rows(&self, epoch: i64, folder: String, rules: LogRules) -> IndexTask {
        let local = self.folder.rows.borrow();
        if local.pending.is_empty() {
            // That rows were missed is noticed when nothing is pending, too.
            return match rules.has_epochs && local.epoch != epoch {
                true => IndexTask::Closed,
                false => IndexTask::Open { epoch, folder },
            };
        }
        IndexTask::Holding { epoch, folder, rows: local.pending.values().take(PAGE).cloned().collect() }
    }

    fn written(&mut self, epoch: i64, folder: String, rows: Vec<PendingObject>) -> IndexTask {
        let Some(versions) = self.folder.datasets.get_mut(&folder) else { return IndexTask::Closed };
        let mut next = versions.last().cloned().unwrap_or_default();
        for row in &rows {
            match &row.text {
                Some(text) => next.insert(row.object_id, text.clone()),
                None => next.remove(&row.object_id),
            };
        }
        versions.push(next);
        IndexTask::Written { epoch, folder, rows }
    }

    /// Records the dataset and removes rows from what is pending, in one transaction.
    fn recorded(&self, epoch: i64, folder: String, rows: &[PendingObject], rules: LogRules) -> IndexTask {
        if rules.has_epochs && self.folder.rows.borrow().epoch != epoch {
            return IndexTask::Closed;
        }
        let state = IndexState {
            folder: folder.clone(),
            version: self.folder.versions(&folder),
            text_version: 1,
            model: None,
            is_embedded: false,
        };
        self.folder.commit(|local| {
            local.index = Some(state);
            for row in rows {
                local.reach = local.reach.max(row.sequence);
                if local.pending.get(&row.object_id).is_some_and(|pending| pending.sequence == row.sequence) {
                    local.pending.remove(&row.object_id);
                }
            }
        });
        IndexTask::Open { epoch, folder }
    }
}

/// A server that is forgotten may copy past rows that are gone before it hears of that. A power cut that takes back
/// what it did then must not leave it there.
#[test]
fn a_gap_that_was_copied_before_a_power_cut_is_noticed() -> CatalogResult<()> {
    let catalog = SimulatedCatalog { rows: RefCell::default(), waits_for_all: true };
    let mut folder = SimulatedFolder::default();
    join(&catalog, &folder, "one")?;
    catalog.rows.borrow_mut().record(1);
    catalog.rows.borrow_mut().record(2);
    catalog.forget(&ForgottenRows { members: vec!["one".to_owned()], up_to: Some(1) })?;
    let rows = catalog.rows_after(ObjectKind::Table, 0, PAGE)?;
    folder.keep_rows(ObjectKind::Table, &rows, 2)?;
    let copied = folder.rows.borrow().clone();
    assert!(report(&catalog, &folder, "one")?);

    *folder.rows.get_mut() = copied;
    join(&catalog, &folder, "one")?;
    assert!(folder.rows.borrow().pending.is_empty(), "its index is built anew");
    assert_eq!(catalog.members()?[0].epoch, folder.epoch()?);
    Ok(())
}

//! The one index of a catalog that several servers share. The holder of a lease writes it as a server alone does, on its own
//! disk, and publishes versions of it ([`Publisher`]); the others take each version from the [`IndexShelf`] to their disk and
//! search it there, with what came since in their tails, which are searched exactly. So a text is embedded for the index once, and
//! a server that is new has the index as soon as it has copied it.
//!
//! Nothing depends on a server: one that stands still loses its lease, another goes on from the version that it took last, or
//! that is its own. A server that does not reach the shelf keeps an index of its own, as one that is alone does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::lance::{Check, IndexWriter};
use super::published::{self, PublishedFile, PublishedFiles, PublishedRow};
use super::publisher::Publisher;
use super::shelf::{IndexShelf, create_parent, link_or_copy};
use super::{IndexPart, maintain, off_runtime, rebuild, tail};
use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::leases::{CatalogLeases, HeldLeases, LeaseTurn, LeasedWork, WorkLease};
use crate::store::pending;
use crate::store::{ObjectKind, index_position, index_reach};

/// How often a server looks for a new version, and the writer for what others want.
pub(super) const LOOKS_APART: Duration = Duration::from_secs(2);
/// The longest time until a server asks again for the lease, which may be given back at any time.
const ASKS_APART: Duration = Duration::from_secs(10);
/// A server that has no index, and for this time fails to take the one that was published, makes one of its own.
const OWN_AFTER: Duration = Duration::from_secs(60);
/// The same where none is published in this time; and how long it keeps to its own before it looks again.
pub(super) const OWN_FOR: Duration = Duration::from_secs(600);
/// What this server knows of the version that is in its folder.
pub(super) const TAKEN_FOLDER: &str = "shared";

/// What the index of a shared catalog needs of the others.
#[derive(Debug)]
pub(crate) struct SharedIndex {
    pub(crate) shelf: Arc<dyn IndexShelf>,
    pub(crate) leases: Arc<HeldLeases>,
}

/// A version, and where it is on this server's disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TakenVersion {
    /// The key of its list.
    pub(super) list: String,
    pub(super) folder: String,
    pub(super) files: BTreeMap<String, PublishedFile>,
}

/// What a server that does not write the index knows.
#[derive(Default)]
struct Follower {
    /// The epoch that the tail and the view are of.
    epoch: Option<i64>,
    /// The list that the view was taken from.
    list: Option<String>,
    /// A list that was not taken, since this server's own index is better.
    passed_over: Option<String>,
    /// When the lease may be there to be had.
    asks_at: Option<Instant>,
    /// Whether this server was the writer until now.
    has_written: bool,
}

fn work(kind: ObjectKind) -> LeasedWork {
    match kind {
        ObjectKind::Table => LeasedWork::TableIndex,
        ObjectKind::Column => LeasedWork::ColumnIndex,
    }
}

/// Keeps this server's index the one that is shared, until stopped: takes it, or writes it while it has the lease.
pub(super) async fn follow(part: Arc<IndexPart>, shared: Arc<SharedIndex>, stop: CancellationToken) {
    let mut follower = Follower::default();
    let mut retry = LOOKS_APART;
    let mut lacks_since = Instant::now();
    let mut fails_since: Option<Instant> = None;
    while !stop.is_cancelled() {
        // Boxed, as what it calls is: one future of all of them nests deeper than the compiler looks into.
        let outcome = Box::pin(take_turn(&part, &shared, &mut follower, &stop)).await;
        let is_whole = {
            let state = part.state.read();
            state.is_current && !state.tail.is_overflowing
        };
        if is_whole || std::mem::take(&mut follower.has_written) {
            lacks_since = Instant::now();
        }
        let pause = match outcome {
            Ok(()) => {
                (retry, fails_since) = (LOOKS_APART, None);
                LOOKS_APART
            }
            Err(error) => {
                warn!(%error, retry_in = ?retry, "the shared schema index cannot be followed; nothing is lost");
                fails_since.get_or_insert_with(Instant::now);
                retry = (retry * 2).min(OWN_AFTER);
                retry
            }
        };
        let lacks = lacks_since.elapsed();
        let is_failing = fails_since.is_some_and(|since| since.elapsed() >= OWN_AFTER);
        if !stop.is_cancelled() && (lacks >= OWN_FOR || (lacks >= OWN_AFTER && is_failing)) {
            Box::pin(keep_own(&part, &stop)).await;
            (follower, lacks_since, fails_since) = (Follower::default(), Instant::now(), None);
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Looks for a new version, and asks for the lease where its time may be over.
async fn take_turn(
    part: &Arc<IndexPart>,
    shared: &Arc<SharedIndex>,
    follower: &mut Follower,
    stop: &CancellationToken,
) -> Result<()> {
    let epoch = part.store()?.index_epoch().await?;
    let is_damaged = part.state.read().is_damaged;
    if is_damaged || follower.epoch != Some(epoch) {
        begin(part, follower, epoch).await?;
    }
    part.state.write().is_following = true;
    let has_room = {
        let state = part.state.read();
        state.tail.is_overflowing && state.tail.len() < tail::MAX_ENTRIES
    };
    if has_room {
        part.load_pending().await?;
    }
    let kind = part.kind;
    let row = part.store()?.read(move |connection| published::row(connection, kind)).await?;
    let taken = tokio::select! {
        taken = take_newest(part, shared, follower, epoch, &row) => taken,
        () = stop.cancelled() => return Ok(()),
    };
    if follower.asks_at.is_none_or(|at| Instant::now() >= at) {
        let store = part.store()?;
        let leases = CatalogLeases { store: &store, held: &shared.leases };
        match leases.take(work(kind), Duration::ZERO).await? {
            LeaseTurn::Later(wait) => follower.asks_at = Some(Instant::now() + wait.min(ASKS_APART)),
            LeaseTurn::Had(lease) => {
                drop(store);
                // What cannot be taken is built anew by whoever writes.
                if let Err(error) = taken {
                    warn!(%error, "the shared schema index cannot be read; this server goes on with its own");
                }
                *follower = Follower { has_written: true, ..Follower::default() };
                part.state.write().is_following = false;
                let written = lease.run(Box::pin(write(part, shared, &lease, stop))).await;
                lease.conclude(written).await?;
                return Ok(());
            }
        }
    }
    taken
}

/// Begins with what is on this server's disk.
async fn begin(part: &Arc<IndexPart>, follower: &mut Follower, epoch: i64) -> Result<()> {
    part.begin_epoch(epoch).await;
    // Work that was left with the lease may have taken rows out of the tail, or said that it moves them.
    part.state.write().is_catching_up = false;
    part.load_pending().await?;
    let opened = rebuild::open_recorded(part, epoch).await?.map(|writer| writer.recorded_state(true).folder);
    let taken = read_taken(part).await.filter(|taken| opened.as_ref() == Some(&taken.folder));
    *follower = Follower { epoch: Some(epoch), list: taken.map(|taken| taken.list), ..Follower::default() };
    Ok(())
}

/// Takes the published version where it is new and holds what this server's index does; asks for one that does otherwise.
async fn take_newest(
    part: &Arc<IndexPart>,
    shared: &SharedIndex,
    follower: &mut Follower,
    epoch: i64,
    row: &PublishedRow,
) -> Result<()> {
    let kind = part.kind;
    let own = part.store()?.pending(move |local| index_reach(local, kind)).await?;
    let has_view = part.state.read().view.is_some();
    let is_new = row.list != follower.list && row.list != follower.passed_over;
    let may_take = published::may_take(row.held, own);
    if let Some(list) = row.list.as_ref().filter(|_| is_new && (may_take || !has_view)) {
        match take(part, shared, epoch, list, may_take).await {
            Ok(true) => follower.list = Some(list.clone()),
            Ok(false) => follower.passed_over = Some(list.clone()),
            Err(error) => {
                // Whoever writes lays everything down anew for it: not for what is wrong on this server.
                if is_incomplete(part, shared, list).await {
                    let complained = list.clone();
                    let store = part.store()?;
                    store.write_rows(move |connection| published::complain(connection, kind, &complained)).await?;
                }
                return Err(error);
            }
        }
    }
    let is_behind = {
        let state = part.state.read();
        state.tail.is_overflowing || !state.is_current
    };
    let wanted = if !is_behind {
        None
    } else if !may_take {
        Some(own)
    } else if row.list == follower.list {
        // Rows that the tail has no room for are searched when they are published.
        newest_row(part).await?.filter(|newest| *newest > row.held)
    } else {
        None
    };
    match wanted.filter(|wanted| *wanted > row.wanted) {
        Some(wanted) => part.store()?.write_rows(move |connection| published::ask(connection, kind, wanted)).await,
        None => Ok(()),
    }
}

async fn newest_row(part: &IndexPart) -> Result<Option<i64>> {
    let kind = part.kind;
    part.store()?.pending(move |local| index_position(local, kind)).await
}

/// Whether the shelf answers, and lacks a file of a list.
async fn is_incomplete(part: &IndexPart, shared: &SharedIndex, list: &str) -> bool {
    let Ok(keys) = shared.shelf.list().await else { return false };
    let keys: BTreeSet<String> = keys.into_iter().collect();
    if !keys.contains(list) {
        return true;
    }
    let version = read_list(shared, &part.folder.join(TAKEN_FOLDER), list).await;
    version.is_ok_and(|version| version.files.values().any(|file| !keys.contains(&file.key)))
}

/// Copies a version to this server's disk and searches it. Returns whether its rows count as indexed: one without `holds_all`, or of
/// another model, only serves where there is nothing else. Errors: `index_error` where it cannot be read.
async fn take(part: &Arc<IndexPart>, shared: &SharedIndex, epoch: i64, list: &str, holds_all: bool) -> Result<bool> {
    let name = rebuild::new_folder_name(part.kind);
    let taken = take_into(part, shared, epoch, list, holds_all, &name).await;
    if taken.is_err() {
        let kind = part.kind;
        let recorded = part.store()?.pending(move |local| pending::index_state(local, kind)).await?;
        if recorded.is_none_or(|state| state.folder != name) {
            // What is left of it goes with the next version that is taken.
            let _ = tokio::fs::remove_dir_all(part.folder.join(&name)).await;
        }
    }
    taken
}

async fn take_into(
    part: &Arc<IndexPart>,
    shared: &SharedIndex,
    epoch: i64,
    list: &str,
    holds_all: bool,
    name: &str,
) -> Result<bool> {
    let began = Instant::now();
    let scratch = part.folder.join(TAKEN_FOLDER);
    tokio::fs::create_dir_all(&scratch).await.map_err(|source| CatalogError::of_file(&scratch, source))?;
    let known = read_taken(part).await;
    let files = read_list(shared, &scratch, list).await?;
    let folder = part.folder.join(name);
    let state = files.state(name.to_owned());
    let is_current = holds_all && rebuild::is_current(part, &state);
    if !is_current && part.state.read().view.is_some() {
        debug!(list, holds_all, "a version of the shared schema index is passed over");
        return Ok(false);
    }
    copy_files(part, shared, &files, known.as_ref(), &folder).await?;

    let (session, traffic) = (Arc::clone(&part.session), Arc::clone(&part.traffic));
    let mut writer = IndexWriter::open(&folder, epoch, session, state.model.clone(), traffic, Check::Ids).await?;
    if writer.version() != files.version {
        let detail = format!("version {} was published and {} is there", files.version, writer.version());
        return Err(CatalogError::Index(detail));
    }
    let to_backfill = rebuild::to_backfill(part, &writer, files.is_embedded).await?;
    let view = writer.view().await?;
    let (kind, held) = (part.kind, files.held);
    let mut before = None;
    if is_current {
        let record = move |local: &StoreConnection| {
            let before = pending::index_state(local, kind)?;
            pending::set_index_state(local, kind, &state)?;
            published::remove_held(local, kind, held)?;
            Ok(before)
        };
        before = part.store()?.write_index(epoch, record).await?;
    }
    write_taken(part, &TakenVersion { list: list.to_owned(), folder: name.to_owned(), files: files.files }).await?;
    let forgotten = {
        let mut state = part.state.write();
        let forgotten = if is_current {
            let held = state.tail.up_to(held);
            state.tail.remove(&held)
        } else {
            Vec::new()
        };
        state.serve(view, is_current, to_backfill);
        forgotten
    };
    off_runtime(move || drop(forgotten)).await;
    if is_current {
        part.load_pending().await?;
    }
    // Searches that began before still read the one before.
    let kept = [Some(name), before.as_ref().map(|before| before.folder.as_str())];
    if let Err(error) = rebuild::remove_folders_but(part, &kept).await {
        debug!(%error, "folders of earlier versions of the schema index are left for later");
    }
    part.note_change();
    let rows = writer.rows();
    debug!(list, rows, held, is_current, took = ?began.elapsed(), "took a version of the shared schema index");
    Ok(is_current)
}

/// Brings the files of a version into a folder: by another name of those that the version before had, from the shelf otherwise.
async fn copy_files(
    part: &IndexPart,
    shared: &SharedIndex,
    version: &PublishedFiles,
    known: Option<&TakenVersion>,
    folder: &Path,
) -> Result<()> {
    for (path, file) in &version.files {
        if !is_plain(path) {
            return Err(CatalogError::Index(format!("the published list names {path:?}")));
        }
        let target = folder.join(path);
        create_parent(&target).await?;
        let here = known.filter(|known| known.files.get(path) == Some(file));
        if let Some(known) = here
            && link_or_copy(&part.folder.join(&known.folder).join(path), &target).await.is_ok()
        {
            continue;
        }
        shared.shelf.get(&file.key, &target).await?;
        let found = tokio::fs::metadata(&target).await.map_err(|source| CatalogError::of_file(&target, source))?;
        if found.len() != file.bytes {
            let detail = format!("{} has {} bytes instead of {}", file.key, found.len(), file.bytes);
            return Err(CatalogError::Index(detail));
        }
    }
    Ok(())
}

/// Whether a path of a list stays below its folder.
fn is_plain(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

pub(super) async fn read_list(shared: &SharedIndex, scratch: &Path, key: &str) -> Result<PublishedFiles> {
    let file = scratch.join(format!("list-{}.json", Uuid::now_v7().simple()));
    let got = shared.shelf.get(key, &file).await;
    let text = tokio::fs::read(&file).await;
    // It has another name where it came from, or came from a store; a part of one is of no use.
    let _ = tokio::fs::remove_file(&file).await;
    got?;
    let text = text.map_err(|source| CatalogError::of_file(&file, source))?;
    serde_json::from_slice(&text).map_err(|error| CatalogError::Index(format!("the published list {key}: {error}")))
}

fn taken_file(part: &IndexPart) -> PathBuf {
    part.folder.join(TAKEN_FOLDER).join(format!("{}.json", part.kind.as_str()))
}

/// What is known of the version that was taken or published last; `None` where nothing is, and files are copied anew.
pub(super) async fn read_taken(part: &IndexPart) -> Option<TakenVersion> {
    let text = tokio::fs::read(taken_file(part)).await.ok()?;
    serde_json::from_slice(&text).ok()
}

pub(super) async fn write_taken(part: &IndexPart, taken: &TakenVersion) -> Result<()> {
    let file = taken_file(part);
    create_parent(&file).await?;
    let text = serde_json::to_vec(taken).map_err(|error| CatalogError::Internal(error.to_string()))?;
    tokio::fs::write(&file, text).await.map_err(|source| CatalogError::of_file(&file, source))
}

/// Writes the index while this server has the lease.
async fn write(part: &Arc<IndexPart>, shared: &SharedIndex, lease: &WorkLease, stop: &CancellationToken) -> Result<()> {
    let mut publisher = Publisher::new(part, shared, lease).await?;
    while !stop.is_cancelled() {
        let Some(writer) = rebuild::open_or_rebuild(part, stop).await? else { return Ok(()) };
        maintain::drain_until_stopped(part, writer, stop, Some(&mut publisher)).await?;
    }
    Ok(())
}

/// Keeps an index of this server's own for a while.
async fn keep_own(part: &Arc<IndexPart>, stop: &CancellationToken) {
    info!(index = part.kind.as_str(), "the shared schema index cannot be taken; this server makes one of its own");
    part.state.write().is_following = false;
    let until = stop.child_token();
    let written = async {
        let Some(writer) = rebuild::open_or_rebuild(part, &until).await? else { return Ok(()) };
        maintain::drain_until_stopped(part, writer, &until, None).await
    };
    let end = async {
        tokio::select! {
            () = until.cancelled() => {}
            () = tokio::time::sleep(OWN_FOR) => until.cancel(),
        }
    };
    let ended = async {
        let outcome = written.await;
        until.cancel();
        outcome
    };
    if let (Err(error), ()) = tokio::join!(ended, end) {
        warn!(%error, "the schema index could not be written; nothing is lost");
    }
}

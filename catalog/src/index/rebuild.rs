//! Opens the dataset, or builds a new one when there is none, when it is damaged, or when the embedder or the text
//! version changed. A rebuild reads the catalog in pages while the old dataset keeps serving, and replaces it when
//! every text is indexed; vectors follow as backfill.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::lance::{Check, IndexRow, IndexWriter};
use super::view::IndexView;
use super::{IndexPart, IndexPartState, UpkeepTask, backfill};
use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::store::pending::{self, IndexState, ObjectKind};
use crate::store::search_text::TEXT_VERSION;
use crate::store::{ObjectText, SnapshotView, object_count, object_texts};

/// Objects read from the catalog and written to Lance at once.
const PAGE: usize = 4096;
const SET_ASIDE_SUFFIX: &str = ".damaged";

/// Opens or rebuilds the dataset and installs it for searches; it matches the catalog except for pending objects.
/// `None` when stopped.
pub(super) async fn open_or_rebuild(part: &IndexPart, stop: &CancellationToken) -> Result<Option<IndexWriter>> {
    // Before anything is read: what is written for another epoch later is refused.
    let epoch = part.store()?.index_epoch().await?;
    part.begin_epoch(epoch).await;
    if let Some(writer) = open_recorded(part, epoch).await? {
        return Ok(Some(writer));
    }
    match rebuild(part, epoch, stop).await? {
        Some((writer, is_embedded)) => {
            let writer = install(part, writer, true, is_embedded).await?;
            remove_folders_but(part, &[Some(&writer.recorded_state(is_embedded).folder)]).await?;
            Ok(Some(writer))
        }
        None => Ok(None),
    }
}

/// Opens the dataset whose state was recorded and installs it for searches. `None` where there is none that can be gone on with;
/// one of another model or text version is installed until there is a better one.
pub(super) async fn open_recorded(part: &IndexPart, epoch: i64) -> Result<Option<IndexWriter>> {
    let kind = part.kind;
    let recorded = part.store()?.pending(move |connection| pending::index_state(connection, kind)).await?;
    let Some(state) = &recorded else {
        part.state.write().is_current = false;
        return Ok(None);
    };
    match open(part, state, epoch).await {
        Ok(writer) if is_current(part, state) => Ok(Some(install(part, writer, true, state.is_embedded).await?)),
        Ok(writer) => {
            info!("the schema index is of another embedding model or text version");
            install(part, writer, false, false).await?;
            Ok(None)
        }
        Err(error) => {
            set_aside(part, state, &error).await?;
            Ok(None)
        }
    }
}

async fn open(part: &IndexPart, state: &IndexState, epoch: i64) -> Result<IndexWriter> {
    let check = if part.state.read().is_damaged { Check::Everything } else { Check::Ids };
    let folder = part.folder.join(&state.folder);
    let (session, traffic) = (Arc::clone(&part.session), Arc::clone(&part.traffic));
    let writer = IndexWriter::open(&folder, epoch, session, state.model.clone(), traffic, check).await?;
    if check == Check::Everything {
        part.state.write().checked_at = Some(Instant::now());
    }
    if !state.is_held_by(writer.version()) {
        let detail = format!("version {} was written and only {} is there", state.version, writer.version());
        return Err(CatalogError::Index(detail));
    }
    Ok(writer)
}

/// Without an embedder, the vectors of an earlier one do no harm, and are valid again when it is back.
pub(super) fn is_current(part: &IndexPart, state: &IndexState) -> bool {
    let model = part.vectorizer.model();
    state.text_version == TEXT_VERSION && (model.is_none() || model == state.model.as_ref())
}

async fn install(
    part: &IndexPart,
    mut writer: IndexWriter,
    is_current: bool,
    is_embedded: bool,
) -> Result<IndexWriter> {
    let to_backfill = to_backfill(part, &writer, is_embedded).await?;
    let view = writer.view().await?;
    part.state.write().serve(view, is_current, to_backfill);
    part.note_change();
    Ok(writer)
}

/// How many rows of a dataset get their vectors later.
pub(super) async fn to_backfill(part: &IndexPart, writer: &IndexWriter, is_embedded: bool) -> Result<usize> {
    match part.vectorizer.model() {
        Some(_) if !is_embedded => writer.count_without_vector().await,
        _ => Ok(0),
    }
}

impl IndexPartState {
    /// Makes searches use a dataset that was just opened.
    pub(super) fn serve(&mut self, view: Arc<IndexView>, is_current: bool, to_backfill: usize) {
        self.set_view(Some(view));
        self.is_current = is_current;
        self.is_damaged = false;
        self.checked_at = Some(Instant::now());
        self.lacks_vectors = to_backfill > 0;
        self.to_backfill = to_backfill as u64;
        self.backfilled = 0;
    }
}

/// Builds a new dataset with every object of the catalog, without vectors unless the embedder is fast, and returns
/// whether all have their vector. Changes made meanwhile stay pending and are applied over it.
async fn rebuild(part: &IndexPart, epoch: i64, stop: &CancellationToken) -> Result<Option<(IndexWriter, bool)>> {
    let kind = part.kind;
    let (sequence, total) = part.store()?.view(move |view| counts(view, kind)).await?;
    let folder = part.folder.join(new_folder_name(kind));
    tokio::fs::create_dir_all(&part.folder).await.map_err(io_error(&part.folder))?;
    let model = part.vectorizer.model().cloned();
    let (session, traffic) = (Arc::clone(&part.session), Arc::clone(&part.traffic));
    let mut writer = IndexWriter::create(&folder, epoch, session, model, traffic).await?;

    let mut done = 0;
    let mut after = 0;
    let mut is_embedded = true;
    loop {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let mut rows = part.store()?.view(move |view| rows_after(view, kind, after, sequence)).await?;
        let Some(last) = rows.last() else { break };
        after = last.object_id;
        backfill::embed_at_once(part, &mut rows, stop).await;
        is_embedded &= rows.iter().all(|row| row.vector.is_some());
        done += rows.len() as u64;
        writer.replace(&rows, &[]).await?;
        part.progress.report(part.task(UpkeepTask::Rebuild), done, total.max(done));
    }
    writer.optimize(is_embedded).await?;
    let recorded = writer.recorded_state(is_embedded);
    let record = move |transaction: &StoreConnection| pending::set_index_state(transaction, kind, &recorded);
    part.store()?.write_index(epoch, record).await?;
    if done > 0 {
        info!(objects = done, "schema index rebuilt; vectors follow in the background");
    }
    Ok(Some((writer, is_embedded)))
}

/// The sequence number that a dataset built now is consistent with, and how many objects it will hold.
fn counts(view: &SnapshotView<'_>, kind: ObjectKind) -> Result<(i64, u64)> {
    match kind {
        ObjectKind::Table => Ok((pending::newest_sequence(view.connection)?, object_count(view)?)),
        ObjectKind::Column => Ok((0, pending::column_text_count(view.connection)?)),
    }
}

/// The next page of the rows to build from, by id.
fn rows_after(view: &SnapshotView<'_>, kind: ObjectKind, after: i64, sequence: i64) -> Result<Vec<IndexRow>> {
    match kind {
        ObjectKind::Table => {
            let objects = object_texts(view, after, PAGE)?;
            Ok(objects.into_iter().map(|object| to_row(object, sequence)).collect())
        }
        ObjectKind::Column => {
            let texts = pending::column_page(view.connection, after, PAGE, false)?;
            Ok(texts.into_iter().filter_map(|text| IndexRow::from_pending(text).ok()).collect())
        }
    }
}

fn to_row(object: ObjectText, sequence: i64) -> IndexRow {
    IndexRow {
        sequence,
        kind: ObjectKind::Table,
        object_id: object.object_id,
        database_id: object.database_id,
        text: object.text,
        vector: None,
    }
}

/// A name for a new dataset.
pub(super) fn new_folder_name(kind: ObjectKind) -> String {
    format!("{}{}", prefix(kind), Uuid::now_v7().simple())
}

/// The prefix of the folder names of a kind's datasets.
fn prefix(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "objects-",
        ObjectKind::Column => "columns-",
    }
}

/// Renames a damaged dataset, which is kept for inspection, to make way for the next one.
async fn set_aside(part: &IndexPart, state: &IndexState, error: &CatalogError) -> Result<()> {
    {
        let mut state = part.state.write();
        state.set_view(None);
        state.is_current = false;
    }
    let folder = part.folder.join(&state.folder);
    if !tokio::fs::try_exists(&folder).await.unwrap_or(false) {
        info!("there is no schema index; it is rebuilt from the catalog");
        return Ok(());
    }
    let kept = part.folder.join(format!("{}{SET_ASIDE_SUFFIX}", state.folder));
    warn!(%error, kept = %kept.display(), "the schema index is damaged; it is set aside and rebuilt from the catalog");
    tokio::fs::rename(&folder, &kept).await.map_err(io_error(&folder))
}

/// Removes left-over folders: replaced datasets, interrupted rebuilds, and all but the newest damaged dataset.
pub(super) async fn remove_folders_but(part: &IndexPart, kept: &[Option<&str>]) -> Result<()> {
    let mut set_aside: Vec<PathBuf> = Vec::new();
    let mut entries = tokio::fs::read_dir(&part.folder).await.map_err(io_error(&part.folder))?;
    while let Some(entry) = entries.next_entry().await.map_err(io_error(&part.folder))? {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(prefix(part.kind)) || kept.contains(&Some(name.as_str())) {
            continue;
        }
        if name.ends_with(SET_ASIDE_SUFFIX) {
            set_aside.push(entry.path());
        } else {
            tokio::fs::remove_dir_all(entry.path()).await.map_err(io_error(&entry.path()))?;
        }
    }
    // Names are ordered by time.
    set_aside.sort();
    set_aside.pop();
    for folder in set_aside {
        tokio::fs::remove_dir_all(&folder).await.map_err(io_error(&folder))?;
    }
    Ok(())
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> CatalogError {
    let path = path.to_path_buf();
    move |source| CatalogError::of_file(&path, source)
}

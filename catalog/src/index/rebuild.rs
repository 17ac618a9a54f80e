//! Opening the dataset, and making a new one when there is none, when it is damaged, or when the embedder or the
//! text version changed. A rebuild reads the catalog in pages beside the old dataset, which goes on serving, and
//! replaces it when every text is in; vectors follow as backfill.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::Shared;
use super::lance::{Check, IndexRow, IndexWriter};
use super::pending::{self, IndexState, ObjectKind};
use super::text::TEXT_VERSION;
use crate::store::{ObjectText, object_count, object_texts};
use crate::{CatalogError, Result};

/// Objects read from the catalog and written to Lance at once.
const PAGE: usize = 1024;
const FOLDER_PREFIX: &str = "objects-";
const SET_ASIDE_SUFFIX: &str = ".damaged";

/// A dataset that matches the catalog but for what is pending, installed for searches. `None` when stopped.
pub(super) async fn open_or_rebuild(shared: &Shared, stop: &CancellationToken) -> Result<Option<IndexWriter>> {
    let recorded = shared.store()?.read(pending::index_state).await?;
    if let Some(state) = &recorded {
        match open(shared, state).await {
            Ok(writer) if is_current(shared, state) => return Ok(Some(install(shared, writer, true).await?)),
            Ok(writer) => {
                info!("the embedding model or the text version changed; the schema index is rebuilt");
                install(shared, writer, false).await?;
            }
            Err(error) => set_aside(shared, state, &error).await?,
        }
    }
    match rebuild(shared, stop).await? {
        Some(writer) => {
            let writer = install(shared, writer, true).await?;
            remove_other_folders(shared, &writer.recorded_state().folder).await?;
            Ok(Some(writer))
        }
        None => Ok(None),
    }
}

async fn open(shared: &Shared, state: &IndexState) -> Result<IndexWriter> {
    let check = if shared.state.read().is_damaged { Check::Everything } else { Check::Ids };
    let folder = shared.folder.join(&state.folder);
    let writer = IndexWriter::open(&folder, Arc::clone(&shared.session), state.model.clone(), check).await?;
    if check == Check::Everything {
        shared.state.write().checked_at = Some(Instant::now());
    }
    if writer.version() < state.version {
        let detail = format!("version {} was written and only {} is there", state.version, writer.version());
        return Err(CatalogError::Index(detail));
    }
    Ok(writer)
}

/// Without an embedder the vectors of an earlier one do no harm, and are right again when it is back.
fn is_current(shared: &Shared, state: &IndexState) -> bool {
    let model = shared.vectorizer.model();
    state.text_version == TEXT_VERSION && (model.is_none() || model == state.model.as_ref())
}

async fn install(shared: &Shared, mut writer: IndexWriter, is_current: bool) -> Result<IndexWriter> {
    let to_backfill = if shared.vectorizer.model().is_some() { writer.count_without_vector().await? } else { 0 };
    let view = writer.view();
    {
        let mut state = shared.state.write();
        state.view = Some(view);
        state.is_current = is_current;
        state.is_damaged = false;
        state.checked_at = Some(Instant::now());
        state.lacks_vectors = to_backfill > 0;
        state.to_backfill = to_backfill as u64;
        state.backfilled = 0;
    }
    shared.note_change();
    Ok(writer)
}

/// A new dataset with every object of the catalog, without vectors. Changes made meanwhile stay pending and are
/// applied over it.
async fn rebuild(shared: &Shared, stop: &CancellationToken) -> Result<Option<IndexWriter>> {
    let (sequence, total) =
        shared.store()?.view(|view| Ok((pending::newest_sequence(view.connection)?, object_count(view)?))).await?;
    let folder = shared.folder.join(format!("{FOLDER_PREFIX}{}", Uuid::now_v7().simple()));
    tokio::fs::create_dir_all(&shared.folder).await.map_err(io_error(&shared.folder))?;
    let model = shared.vectorizer.model().cloned();
    let mut writer = IndexWriter::create(&folder, Arc::clone(&shared.session), model).await?;

    let mut done = 0;
    let mut after = 0;
    loop {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let objects = shared.store()?.view(move |view| object_texts(view, after, PAGE)).await?;
        let Some(last) = objects.last() else { break };
        after = last.object_id;
        done += objects.len() as u64;
        let rows: Vec<IndexRow> = objects.into_iter().map(|object| to_row(object, sequence)).collect();
        writer.replace(&rows, &[]).await?;
        shared.progress.report("rebuilding the schema index", done, total.max(done));
    }
    writer.optimize().await?;
    let recorded = writer.recorded_state();
    shared.store()?.write_rows(move |transaction| pending::set_index_state(transaction, &recorded)).await?;
    if done > 0 {
        info!(objects = done, "schema index rebuilt; vectors follow in the background");
    }
    Ok(Some(writer))
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

/// Keeps a damaged dataset for whoever wants to know why, out of the way of the next one.
async fn set_aside(shared: &Shared, state: &IndexState, error: &CatalogError) -> Result<()> {
    {
        let mut state = shared.state.write();
        state.view = None;
        state.is_current = false;
    }
    let folder = shared.folder.join(&state.folder);
    if !tokio::fs::try_exists(&folder).await.unwrap_or(false) {
        info!("there is no schema index; it is rebuilt from the catalog");
        return Ok(());
    }
    let kept = shared.folder.join(format!("{}{SET_ASIDE_SUFFIX}", state.folder));
    warn!(%error, kept = %kept.display(), "the schema index is damaged; it is set aside and rebuilt from the catalog");
    tokio::fs::rename(&folder, &kept).await.map_err(io_error(&folder))
}

/// Removes left-overs: replaced datasets, rebuilds that were cut short, and all but the newest one set aside.
async fn remove_other_folders(shared: &Shared, current: &str) -> Result<()> {
    let mut set_aside: Vec<PathBuf> = Vec::new();
    let mut entries = tokio::fs::read_dir(&shared.folder).await.map_err(io_error(&shared.folder))?;
    while let Some(entry) = entries.next_entry().await.map_err(io_error(&shared.folder))? {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(FOLDER_PREFIX) || name == current {
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
    move |source| CatalogError::Io { path, source }
}

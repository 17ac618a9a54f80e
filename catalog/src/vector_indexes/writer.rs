//! Writes a vector index: vectors of data files go to its dataset, and once all are there and found by Lance's index, one
//! transaction says so. What is written and never committed is of no file, and so in no search.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ::lance::Dataset;
use ::lance::dataset::{WriteMode, WriteParams};
use ::lance::index::DatasetIndexExt;
use ::lance::index::vector::VectorIndexParams;
use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, RecordBatch, RecordBatchIterator};
use arrow::compute::concat;
use arrow::datatypes::Float32Type;
use arrow_schema::SchemaRef;
use lance_index::IndexType;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::sq::builder::SQBuildParams;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::dataset::{COLUMN, INDEX, load, schema};
use super::rows::{self, BuiltDataset, CoveredFile, VectorRun};
use super::{TableVectorIndex, VectorIndexRegistry, VectorIndexSpec, VectorMetric, remove_folder};
use crate::error::{CatalogError, Result};
use crate::index::{dataset_uri, guarded, merge_of_newest};

/// With fewer vectors there is no index: to read them all is as fast.
const MIN_INDEXED_ROWS: u64 = 256;
/// The most partitions: with more, Lance trains their centres level by level, and the nearest partitions hold fewer of the
/// nearest rows.
const MAX_PARTITIONS: usize = 256;
/// The fewest rows of a partition, on average.
const ROWS_A_PARTITION: usize = 256;
/// Of how many rows for each partition the centres are trained.
const SAMPLE_RATE: usize = 64;
/// The vectors that are gathered before they are written, in bytes.
const WRITTEN_AT_ONCE: usize = 32 << 20;
/// For how long the files of replaced versions stay: searches may be reading them.
const REPLACED_MINUTES: i64 = 10;

/// Writes one vector index. Dropped without [`VectorIndexWriter::commit`], it leaves the index as it was.
pub struct VectorIndexWriter {
    registry: Arc<VectorIndexRegistry>,
    spec: VectorIndexSpec,
    target: WriterTarget,
    /// The dataset's folder below that of all.
    folder: String,
    /// `None` before anything is written.
    dataset: Option<Dataset>,
    /// Whether the dataset is new, so that it goes again unless it is committed.
    is_new: bool,
    trained_rows: u64,
    /// What [`VectorIndexWriter::build`] made.
    built: Option<BuiltDataset>,
    files: BTreeMap<i64, CoveredFile>,
    gathered: Vec<ArrayRef>,
    gathered_rows: usize,
    /// What was gathered, in order: file, first position, rows.
    pieces: Vec<(i64, u64, u32)>,
}

enum WriterTarget {
    /// An index that is yet to be created, for a subject.
    New(String),
    /// One that is there, and the right to write it.
    Existing(Arc<TableVectorIndex>, #[expect(dead_code, reason = "held while it is written")] OwnedMutexGuard<()>),
}

impl VectorIndexWriter {
    pub(super) fn create(registry: &Arc<VectorIndexRegistry>, spec: VectorIndexSpec, subject: &str) -> Result<Self> {
        Ok(Self::over(registry, spec, WriterTarget::New(subject.to_owned())))
    }

    pub(super) async fn extend(
        registry: &Arc<VectorIndexRegistry>,
        index: &Arc<TableVectorIndex>,
        from_nothing: bool,
    ) -> Result<Self> {
        let turn = Arc::clone(&index.turn).lock_owned().await;
        let target = WriterTarget::Existing(Arc::clone(index), turn);
        let mut writer = Self::over(registry, index.spec.clone(), target);
        let id = index.id;
        let stored = registry.store()?.read(move |connection| rows::built(connection, id)).await?;
        if let (Some((built, files)), false) = (stored, from_nothing) {
            let folder = registry.folder.join(&built.folder);
            let dataset = load(&folder, Arc::clone(&registry.session), built.version).await?;
            // A write that was cut off left rows behind, which nobody can tell from those that come now.
            if guarded(dataset.latest_version_id()).await? != built.version {
                return Ok(writer);
            }
            writer.dataset = Some(dataset);
            writer.is_new = false;
            writer.folder = built.folder;
            writer.trained_rows = built.trained_rows;
            writer.files = files.into_iter().map(|file| (file.id, file)).collect();
        }
        Ok(writer)
    }

    fn over(registry: &Arc<VectorIndexRegistry>, spec: VectorIndexSpec, target: WriterTarget) -> Self {
        Self {
            registry: Arc::clone(registry),
            spec,
            target,
            folder: format!("{}.lance", Uuid::now_v7()),
            dataset: None,
            is_new: true,
            trained_rows: 0,
            built: None,
            files: BTreeMap::new(),
            gathered: Vec::new(),
            gathered_rows: 0,
            pieces: Vec::new(),
        }
    }

    /// Whether it covers a file.
    pub fn covers(&self, file_id: i64) -> bool {
        self.files.contains_key(&file_id)
    }

    /// Begins a file, whose rows follow in order.
    pub fn begin_file(&mut self, file_id: i64) {
        let file = CoveredFile { id: file_id, rows: 0, null_rows: 0, has_odd_numbers: false, runs: Vec::new() };
        self.files.insert(file_id, file);
    }

    /// Adds the next vectors of a file that was begun. Errors: `index_error`.
    pub async fn add(&mut self, file_id: i64, vectors: &FixedSizeListArray) -> Result<()> {
        let Some(file) = self.files.get_mut(&file_id) else {
            return Err(CatalogError::Internal("vectors of a file that was not begun".into()));
        };
        if usize::try_from(vectors.value_length()) != Ok(self.spec.dimension) {
            return Err(CatalogError::Internal("vectors of another dimension than the index has".into()));
        }
        if vectors.is_empty() {
            return Ok(());
        }
        let position = file.rows;
        for row in 0..vectors.len() {
            match kind_of(vectors, row, self.spec.metric) {
                VectorKind::Plain => {}
                VectorKind::WithoutDistance => file.null_rows += 1,
                VectorKind::Odd => file.has_odd_numbers = true,
            }
        }
        file.rows += vectors.len() as u64;
        let count = u32::try_from(vectors.len())
            .map_err(|_| CatalogError::Internal("a batch of more than four thousand million vectors".into()))?;
        self.pieces.push((file_id, position, count));
        self.gathered.push(Arc::new(vectors.clone()));
        self.gathered_rows += vectors.len();
        if self.gathered_rows * self.spec.dimension * size_of::<f32>() >= WRITTEN_AT_ONCE {
            self.flush().await?;
        }
        Ok(())
    }

    /// Reports how much is done, as other long work does.
    pub fn report(&self, done_rows: u64, total_rows: u64) {
        self.registry.progress.report("indexing vectors", done_rows, total_rows);
    }

    /// Has Lance find what was added: trains partitions, or adds to those that are there. Errors: `index_error`.
    pub async fn build(&mut self) -> Result<()> {
        self.flush().await?;
        let indexed = self.indexed_rows();
        let Some(dataset) = self.dataset.as_mut().filter(|_| indexed >= MIN_INDEXED_ROWS) else {
            self.built = None;
            return Ok(());
        };
        if guarded(dataset.load_indices_by_name(INDEX)).await?.is_empty() {
            train(dataset, self.spec.metric, indexed).await?;
            self.trained_rows = indexed;
        } else if let Some(options) = merge_of_newest(dataset, INDEX).await? {
            guarded(dataset.optimize_indices(&options)).await?;
        }
        let version = dataset.version().version;
        self.built = Some(BuiltDataset { folder: self.folder.clone(), version, trained_rows: self.trained_rows });
        Ok(())
    }

    /// The rows that Lance's index finds.
    fn indexed_rows(&self) -> u64 {
        let plain = self.files.values().filter(|file| !file.has_odd_numbers);
        plain.map(|file| file.rows.saturating_sub(file.null_rows)).sum()
    }

    /// Makes searches use what [`VectorIndexWriter::build`] made. Returns how many rows are covered now, which is none where
    /// there are too few. Not to be cut off in the middle. Errors: `already_exists` where another index took the name,
    /// `conflict` where the index or its table was dropped.
    pub async fn commit(mut self) -> Result<u64> {
        let built = self.built.take();
        let covered = if built.is_some() { self.files.values().map(|file| file.rows).sum() } else { 0 };
        let files: Vec<CoveredFile> = self.files.values().cloned().collect();
        let store = self.registry.store()?;
        let (spec, stored) = (self.spec.clone(), built.clone());
        match &self.target {
            WriterTarget::New(subject) => {
                let subject = subject.clone();
                store
                    .write_ours(move |view| {
                        let id = rows::insert(view.connection, &spec, &subject)?;
                        rows::set_built(view.connection, id, stored.as_ref(), &files)
                    })
                    .await?;
                self.is_new &= built.is_none();
                self.registry.reload().await?;
            }
            WriterTarget::Existing(index, _) => {
                let (index, id) = (Arc::clone(index), index.id);
                let is_there = store
                    .write_rows(move |connection| rows::set_built(connection, id, stored.as_ref(), &files))
                    .await?;
                if !is_there {
                    return Err(CatalogError::Conflict { object: self.spec.name.clone() });
                }
                let replaced = index.dataset.lock().clone();
                index.reopen(built.as_ref().map(|built| built.folder.clone())).await;
                self.is_new &= built.is_none();
                if let Some(replaced) = replaced.filter(|old| built.as_ref().is_none_or(|built| built.folder != *old)) {
                    remove_folder(&self.registry.folder.join(replaced)).await;
                }
                self.remove_replaced_versions().await;
            }
        }
        Ok(covered)
    }

    /// Writes what is gathered, and notes where in the dataset it is.
    async fn flush(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let batch = batch_of(&std::mem::take(&mut self.gathered), schema(self.spec.dimension))?;
        let (written, schema) = (std::mem::take(&mut self.gathered_rows), batch.schema());
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        let before: HashSet<usize> = match &mut self.dataset {
            Some(dataset) => {
                let before = dataset.get_fragments().iter().map(|fragment| fragment.id()).collect();
                guarded(dataset.append(reader, None)).await?;
                before
            }
            None => {
                let path = self.registry.folder.join(&self.folder);
                let session = Some(Arc::clone(&self.registry.session));
                let params = WriteParams { mode: WriteMode::Create, session, ..Default::default() };
                self.dataset = Some(guarded(Dataset::write(reader, &*dataset_uri(&path)?, Some(params))).await?);
                HashSet::new()
            }
        };
        let Some(dataset) = &self.dataset else { return Ok(()) };
        let mut room: Vec<(u32, u32)> = Vec::new();
        for fragment in dataset.get_fragments().iter().filter(|fragment| !before.contains(&fragment.id())) {
            let rows = guarded(fragment.physical_rows()).await?;
            room.push((fragment.id() as u32, rows as u32));
        }
        room.sort_unstable();
        if room.iter().map(|(_, rows)| *rows as usize).sum::<usize>() != written {
            return Err(CatalogError::Index("the dataset of a vector index was written by another process".into()));
        }
        for (file_id, run) in runs(std::mem::take(&mut self.pieces), &room)? {
            if let Some(file) = self.files.get_mut(&file_id) {
                add_run(&mut file.runs, run);
            }
        }
        Ok(())
    }

    async fn remove_replaced_versions(&self) {
        let Some(dataset) = self.dataset.as_ref().filter(|_| !self.is_new) else { return };
        let age = chrono::Duration::minutes(REPLACED_MINUTES);
        if let Err(error) = guarded(dataset.cleanup_old_versions(age, Some(false), Some(false))).await {
            tracing::debug!(index = %self.spec.name, %error, "replaced versions of a vector index stay");
        }
    }
}

impl Drop for VectorIndexWriter {
    #[expect(clippy::disallowed_methods, reason = "few files, of a write that was given up")]
    fn drop(&mut self) {
        if self.is_new && self.dataset.is_some() {
            let path: PathBuf = self.registry.folder.join(&self.folder);
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "the dataset of a vector index is left behind");
            }
        }
    }
}

/// Trains the partitions and builds Lance's index.
async fn train(dataset: &mut Dataset, metric: VectorMetric, rows: u64) -> Result<()> {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut ivf = IvfBuildParams::new(rows.isqrt().min(rows / ROWS_A_PARTITION).clamp(1, MAX_PARTITIONS));
    ivf.sample_rate = SAMPLE_RATE;
    let params = VectorIndexParams::with_ivf_sq_params(metric.distance_type(), ivf, SQBuildParams::default());
    let name = Some(INDEX.to_string());
    guarded(dataset.create_index(&[COLUMN], IndexType::Vector, name, &params, true)).await?;
    Ok(())
}

/// What an index can do with a vector.
enum VectorKind {
    Plain,
    /// Nothing has a distance to it.
    WithoutDistance,
    /// Numbers of it are not finite.
    Odd,
}

fn kind_of(vectors: &FixedSizeListArray, row: usize, metric: VectorMetric) -> VectorKind {
    if vectors.is_null(row) {
        return VectorKind::WithoutDistance;
    }
    let values = vectors.value(row);
    let values = values.as_primitive::<Float32Type>();
    if values.null_count() > 0 {
        return VectorKind::Odd;
    }
    let mut squares = 0.0;
    for value in values.values() {
        if !value.is_finite() {
            return VectorKind::Odd;
        }
        squares += value * value;
    }
    match metric {
        // Of numbers as large or small as these no distance is told apart.
        _ if !squares.is_finite() => VectorKind::Odd,
        VectorMetric::Cosine if squares == 0.0 => VectorKind::WithoutDistance,
        VectorMetric::Cosine | VectorMetric::L2 | VectorMetric::Dot => VectorKind::Plain,
    }
}

/// Returns the gathered vectors as one batch of the dataset's schema.
fn batch_of(gathered: &[ArrayRef], schema: SchemaRef) -> Result<RecordBatch> {
    let failed = |error: arrow::error::ArrowError| CatalogError::Index(error.to_string());
    let parts: Vec<&dyn Array> = gathered.iter().map(AsRef::as_ref).collect();
    let all = concat(&parts).map_err(failed)?;
    let all = all.as_fixed_size_list();
    let arrow_schema::DataType::FixedSizeList(item, dimension) = schema.field(0).data_type() else {
        return Err(CatalogError::Internal("the column of a vector index is no vector".into()));
    };
    let list =
        FixedSizeListArray::try_new(Arc::clone(item), *dimension, Arc::clone(all.values()), all.nulls().cloned());
    RecordBatch::try_new(schema, vec![Arc::new(list.map_err(failed)?)]).map_err(failed)
}

/// Returns where pieces of files are that were written one after the other into fragments of that many rows.
fn runs(pieces: Vec<(i64, u64, u32)>, fragments: &[(u32, u32)]) -> Result<Vec<(i64, VectorRun)>> {
    let mut placed = Vec::new();
    let mut fragments = fragments.iter();
    let (mut fragment, mut size, mut offset) = (0, 0, 0);
    for (file_id, mut position, mut left) in pieces {
        while left > 0 {
            if offset == size {
                let Some(next) = fragments.next() else {
                    return Err(CatalogError::Index("fewer vectors were written than given".into()));
                };
                (fragment, size, offset) = (next.0, next.1, 0);
                continue;
            }
            let rows = left.min(size - offset);
            placed.push((file_id, VectorRun { fragment, offset, position, rows }));
            offset += rows;
            position += u64::from(rows);
            left -= rows;
        }
    }
    Ok(placed)
}

/// Adds a run, as a part of the one before where it continues it.
fn add_run(runs: &mut Vec<VectorRun>, run: VectorRun) {
    if let Some(last) = runs.last_mut()
        && last.fragment == run.fragment
        && last.offset + last.rows == run.offset
        && last.position + u64::from(last.rows) == run.position
    {
        last.rows += run.rows;
        return;
    }
    runs.push(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_placed_over_fragments() {
        let placed = runs(vec![(7, 0, 3), (8, 0, 2), (8, 2, 4)], &[(1, 4), (2, 5)]).unwrap();
        let mut of_eight = Vec::new();
        for (file_id, run) in placed {
            if file_id == 8 {
                add_run(&mut of_eight, run);
            } else {
                assert_eq!(run, VectorRun { fragment: 1, offset: 0, position: 0, rows: 3 });
            }
        }
        let expected = [
            VectorRun { fragment: 1, offset: 3, position: 0, rows: 1 },
            VectorRun { fragment: 2, offset: 0, position: 1, rows: 5 },
        ];
        assert_eq!(of_eight, expected);
        assert!(runs(vec![(7, 0, 3)], &[(1, 2)]).is_err());
    }
}

//! The Lance dataset behind the schema index: one row per object, a full-text index on `text`, and for many rows a
//! vector index. [`IndexWriter`] is the only writer; searches run on an immutable [`IndexView`] of one version.
//!
//! Invariant: a file that a live view may read is never removed, and every row of a view is covered by its
//! full-text index, so nothing is ever searched twice or missed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use arrow::array::{
    ArrayRef, AsArray, FixedSizeBinaryBuilder, FixedSizeListBuilder, Float32Builder, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, UInt32Array,
};
use arrow::datatypes::Int64Type;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{FutureExt, TryStreamExt};
use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{WriteMode, WriteParams};
use lance::index::DatasetIndexExt;
use lance::index::vector::VectorIndexParams;
use lance::session::Session;
use lance_index::IndexType;
use lance_index::optimize::OptimizeOptions;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::sq::builder::SQBuildParams;
use lance_linalg::distance::DistanceType;

use super::analyze::text_index_params;
use super::embed::EmbeddingModel;
use super::traffic::Traffic;
use super::view::{FragmentRows, IndexView};
use crate::error::{CatalogError, Result, is_full};
use crate::store::pending::{IndexState, ObjectKind, PendingObject, TEXT_HASH_BYTES, text_hash};
use crate::store::search_text::TEXT_VERSION;

/// Cache sizes; Lance's own defaults are 6 GiB and 1 GiB.
const INDEX_CACHE_BYTES: usize = 64 << 20;
const METADATA_CACHE_BYTES: usize = 32 << 20;

pub(super) const TEXT_INDEX: &str = "text_bm25";
/// The most partitions of the vector index. With more, Lance trains their centres level by level, and the nearest
/// partitions hold fewer of the nearest rows: of 100,000 vectors of MiniLM, a search of a fifth of the rows finds 98.5
/// % of the ten nearest in 256 partitions and 95 % in 316.
const MAX_PARTITIONS: usize = 256;
pub(super) const VECTOR_INDEX: &str = "vector_ivf";
/// Up to this many vectors are kept in memory and scanned, which is exact; more get an index.
const MAX_SCANNED_VECTORS: usize = 25_000;
/// The vector index is retrained when the number of rows has grown by this factor.
const RETRAIN_GROWTH: usize = 4;
/// How many times larger a segment of an index may be than all newer rows and still be merged with them.
const SEGMENT_GROWTH: usize = 3;
/// Fragments beyond which small ones are merged.
const MAX_FRAGMENTS: usize = 8;
/// The most object ids in one predicate.
const OBJECTS_A_PREDICATE: usize = 1024;

/// The session all datasets of one catalog share.
pub(super) fn new_session() -> Arc<Session> {
    Arc::new(Session::new(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, Arc::default()))
}

/// One object as stored.
#[derive(Debug, Clone)]
pub(super) struct IndexRow {
    pub(super) sequence: i64,
    pub(super) kind: ObjectKind,
    pub(super) object_id: i64,
    pub(super) database_id: i64,
    pub(super) text: String,
    pub(super) vector: Option<Arc<[f32]>>,
}

impl IndexRow {
    /// The row of a pending object; `Err` holds the id of one that was dropped.
    pub(super) fn from_pending(object: PendingObject) -> std::result::Result<Self, i64> {
        let text = object.text.ok_or(object.object_id)?;
        Ok(Self {
            sequence: object.sequence,
            kind: object.kind,
            object_id: object.object_id,
            database_id: object.database_id,
            text,
            vector: None,
        })
    }
}

/// How much of a dataset is read to check that it is intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Every object's id, and the full-text index's vocabulary.
    Ids,
    /// Every column.
    Everything,
}

/// The dataset, for writing. One task owns it. Long operations give way to searches.
pub(super) struct IndexWriter {
    folder: PathBuf,
    /// In which its state may be recorded ([`crate::store::Store::write_index`]).
    epoch: i64,
    dataset: Dataset,
    model: Option<EmbeddingModel>,
    traffic: Arc<Traffic>,
    max_object_id: i64,
    rows: usize,
    /// Rows when the vector index was trained, or when the dataset was opened with one.
    trained_rows: usize,
    /// The fragments of the newest view; the next one shares all but a few of them.
    fragments: Vec<Arc<FragmentRows>>,
    retired_views: Vec<Weak<IndexView>>,
}

impl IndexWriter {
    /// Creates an empty dataset; no folder of that name may exist.
    pub(super) async fn create(
        folder: &Path,
        epoch: i64,
        session: Arc<Session>,
        model: Option<EmbeddingModel>,
        traffic: Arc<Traffic>,
    ) -> Result<Self> {
        let schema = row_schema(model.as_ref());
        let params = WriteParams { mode: WriteMode::Create, session: Some(session), ..Default::default() };
        let empty = RecordBatchIterator::new(std::iter::empty(), schema);
        let dataset = guarded(Dataset::write(empty, &*dataset_uri(folder)?, Some(params))).await?;
        Ok(Self::new(folder, epoch, dataset, model, traffic))
    }

    fn new(folder: &Path, epoch: i64, dataset: Dataset, model: Option<EmbeddingModel>, traffic: Arc<Traffic>) -> Self {
        let folder = folder.into();
        Self {
            folder,
            epoch,
            dataset,
            model,
            traffic,
            max_object_id: 0,
            rows: 0,
            trained_rows: 0,
            fragments: Vec::new(),
            retired_views: Vec::new(),
        }
    }

    /// Opens a dataset and reads enough of it to check that it is intact.
    pub(super) async fn open(
        folder: &Path,
        epoch: i64,
        session: Arc<Session>,
        model: Option<EmbeddingModel>,
        traffic: Arc<Traffic>,
        check: Check,
    ) -> Result<Self> {
        let dataset = guarded(DatasetBuilder::from_uri(dataset_uri(folder)?).with_session(session).load()).await?;
        if !Schema::from(dataset.schema()).fields().eq(row_schema(model.as_ref()).fields()) {
            return Err(CatalogError::Index("the dataset has other columns than expected".into()));
        }
        let mut writer = Self::new(folder, epoch, dataset, model, traffic);
        if check == Check::Everything {
            guarded(writer.read_everything()).await?;
        }
        writer.rows = guarded(writer.dataset.count_rows(None)).await?;
        writer.trained_rows = writer.rows;
        writer.view().await?;
        Ok(writer)
    }

    async fn read_everything(&self) -> lance::Result<()> {
        let mut batches = self.dataset.scan().try_into_stream().await?;
        while batches.try_next().await?.is_some() {}
        Ok(())
    }

    /// The state to record once the rows count as written; `is_embedded` says that all of them have vectors.
    pub(super) fn recorded_state(&self, is_embedded: bool) -> IndexState {
        let folder = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        IndexState {
            folder: folder.unwrap_or_default(),
            version: self.version(),
            text_version: TEXT_VERSION,
            model: self.model.clone(),
            is_embedded,
        }
    }

    /// The epoch in which it was opened or made.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The model of the vector column.
    pub(super) fn model(&self) -> Option<&EmbeddingModel> {
        self.model.as_ref()
    }

    /// Rows in the dataset.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Lance's version number.
    pub(super) fn version(&self) -> u64 {
        self.dataset.version().version
    }

    /// The current version, opened for searches.
    pub(super) async fn view(&mut self) -> Result<Arc<IndexView>> {
        let traffic = Arc::clone(&self.traffic);
        traffic.give_way(self.open_view()).await
    }

    async fn open_view(&mut self) -> Result<Arc<IndexView>> {
        let dimension = self.model.as_ref().map(|model| model.dimension);
        let scanned = dimension.filter(|_| self.rows <= MAX_SCANNED_VECTORS);
        self.fragments = guarded(FragmentRows::load_all(&self.dataset, &self.fragments, scanned)).await?;
        let newest = self.fragments.iter().map(|fragment| fragment.max_object_id()).max().unwrap_or(0);
        self.max_object_id = self.max_object_id.max(newest);
        let view = IndexView::open(self.dataset.clone(), self.model.clone(), self.fragments.clone()).await?;
        let view = Arc::new(view);
        self.retired_views.push(Arc::downgrade(&view));
        Ok(view)
    }

    /// Replaces the rows of the given objects: `removed` lose theirs, `rows` get a new one. Not yet full-text indexed.
    pub(super) async fn replace(&mut self, rows: &[IndexRow], removed: &[i64]) -> Result<()> {
        let known = |id: &i64| *id <= self.max_object_id;
        let stale: Vec<i64> =
            rows.iter().map(|row| row.object_id).chain(removed.iter().copied()).filter(known).collect();
        for ids in stale.chunks(OBJECTS_A_PREDICATE) {
            let predicate = format!("object_id IN ({})", join_ids(ids));
            if guarded(self.dataset.count_rows(Some(predicate.clone()))).await? > 0 {
                self.traffic.give_way(guarded(self.dataset.delete(&predicate))).await?;
            }
        }
        if !rows.is_empty() {
            let append = async {
                let batch = to_batch(rows, self.model.as_ref())?;
                let schema = batch.schema();
                guarded(self.dataset.append(RecordBatchIterator::new([Ok(batch)], schema), None)).await
            };
            self.traffic.give_way(append).await?;
        }
        let newest = rows.iter().map(|row| row.object_id).max().unwrap_or(0);
        self.max_object_id = self.max_object_id.max(newest);
        self.rows = guarded(self.dataset.count_rows(None)).await?;
        Ok(())
    }

    /// Updates the indexes for new rows, and merges segments and fragments once there are many. `is_embedded` says that
    /// no row waits for its vector.
    pub(super) async fn optimize(&mut self, is_embedded: bool) -> Result<()> {
        self.optimize_texts().await?;
        if is_embedded { self.index_vectors().await } else { Ok(()) }
    }

    async fn optimize_texts(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        if guarded(self.dataset.load_indices_by_name(TEXT_INDEX)).await?.is_empty() {
            let name = Some(TEXT_INDEX.to_string());
            let params = text_index_params();
            let create = self.dataset.create_index(&["text"], IndexType::Inverted, name, &params, true);
            self.traffic.give_way(guarded(create)).await?;
            return Ok(());
        }
        for index in [TEXT_INDEX, VECTOR_INDEX] {
            self.bring_up(index).await?;
        }
        if self.dataset.count_fragments() > MAX_FRAGMENTS {
            let compact = compact_files(&mut self.dataset, CompactionOptions::default(), None);
            self.traffic.give_way(guarded(compact)).await?;
        }
        Ok(())
    }

    async fn bring_up(&mut self, index: &str) -> Result<()> {
        match merge_of_newest(&self.dataset, index).await? {
            Some(options) => self.traffic.give_way(guarded(self.dataset.optimize_indices(&options))).await,
            None => Ok(()),
        }
    }

    /// Builds the vector index once there are enough rows for an exact scan to be slow. Rows written later join it as
    /// they are optimised.
    async fn index_vectors(&mut self) -> Result<()> {
        if self.rows <= MAX_SCANNED_VECTORS || self.model.is_none() {
            return Ok(());
        }
        let indexed = guarded(self.dataset.load_indices_by_name(VECTOR_INDEX)).await?;
        if !indexed.is_empty() && self.rows < self.trained_rows.saturating_mul(RETRAIN_GROWTH) {
            return Ok(());
        }
        let mut ivf = IvfBuildParams::new(self.rows.isqrt().min(MAX_PARTITIONS));
        ivf.sample_rate = 64;
        let params = VectorIndexParams::with_ivf_sq_params(DistanceType::L2, ivf, SQBuildParams::default());
        let name = Some(VECTOR_INDEX.to_string());
        let create = self.dataset.create_index(&["vector"], IndexType::Vector, name, &params, true);
        self.traffic.give_way(guarded(create)).await?;
        self.trained_rows = self.rows;
        Ok(())
    }

    /// Removes the files of versions that no search can be reading. Returns whether nothing was left to remove.
    pub(super) async fn remove_old_versions(&mut self) -> Result<bool> {
        self.retired_views.retain(|view| view.strong_count() > 0);
        // Only the current view may still be in use.
        if self.retired_views.len() > 1 {
            return Ok(false);
        }
        // There is no other writer, so files that no version names are left over from a crash.
        guarded(self.dataset.cleanup_old_versions(chrono::Duration::zero(), Some(true), Some(false))).await?;
        Ok(true)
    }

    /// At most `limit` rows that have no vector yet.
    pub(super) async fn rows_without_vector(&self, limit: usize) -> Result<Vec<IndexRow>> {
        if self.model.is_none() {
            return Ok(Vec::new());
        }
        let batch = guarded(async {
            self.dataset
                .scan()
                .project(&["object_id", "kind", "database_id", "text", "sequence"])?
                .filter("vector IS NULL")?
                .limit(Some(limit as i64), None)?
                .try_into_batch()
                .await
        })
        .await?;
        from_batch(&batch)
    }

    /// How many rows have no vector yet.
    pub(super) async fn count_without_vector(&self) -> Result<usize> {
        if self.model.is_none() {
            return Ok(0);
        }
        guarded(self.dataset.count_rows(Some("vector IS NULL".to_string()))).await
    }
}

/// How to merge the rows that an index lacks into a new segment, together with the newest segments as long as each is at
/// most [`SEGMENT_GROWTH`] times everything newer; `None` where it lacks none. So there are few segments, and a row is merged
/// again only when the index has grown by a fraction.
pub(crate) async fn merge_of_newest(dataset: &Dataset, index: &str) -> Result<Option<OptimizeOptions>> {
    let segments = guarded(dataset.load_indices_by_name(index)).await?;
    let fragments: HashMap<u32, usize> = dataset
        .get_fragments()
        .iter()
        .map(|fragment| (fragment.id() as u32, fragment.metadata().physical_rows.unwrap_or(0)))
        .collect();
    let sizes: Vec<usize> = segments
        .iter()
        .map(|segment| segment.fragment_bitmap.iter().flatten().filter_map(|id| fragments.get(&id)).sum())
        .collect();
    let mut newer = fragments.values().sum::<usize>().saturating_sub(sizes.iter().sum());
    if segments.is_empty() || newer == 0 {
        return Ok(None);
    }
    let mut merged = 0;
    for size in sizes.iter().rev() {
        if *size > SEGMENT_GROWTH * newer {
            break;
        }
        newer += size;
        merged += 1;
    }
    Ok(Some(OptimizeOptions::merge(merged).index_names(vec![index.to_string()])))
}

fn row_schema(model: Option<&EmbeddingModel>) -> SchemaRef {
    let mut fields = vec![
        Field::new("object_id", DataType::Int64, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("database_id", DataType::Int64, false),
        Field::new("sequence", DataType::Int64, false),
        Field::new("text", DataType::Utf8, false),
        Field::new("text_hash", DataType::FixedSizeBinary(TEXT_HASH_BYTES as i32), false),
        Field::new("text_version", DataType::UInt32, false),
    ];
    if let Some(model) = model {
        fields.push(Field::new("model_id", DataType::Utf8, true));
        fields.push(Field::new("dimension", DataType::UInt32, true));
        fields.push(Field::new("vector", vector_type(model.dimension), true));
    }
    Arc::new(Schema::new(fields))
}

fn vector_type(dimension: usize) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), dimension as i32)
}

fn to_batch(rows: &[IndexRow], model: Option<&EmbeddingModel>) -> Result<RecordBatch> {
    let mut hashes = FixedSizeBinaryBuilder::new(TEXT_HASH_BYTES as i32);
    for row in rows {
        hashes.append_value(text_hash(&row.text)).map_err(index_error)?;
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.object_id))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.kind.as_str()))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.database_id))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.sequence))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.text))),
        Arc::new(hashes.finish()),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|_| TEXT_VERSION))),
    ];
    if let Some(model) = model {
        let of_vector = |row: &IndexRow| row.vector.is_some();
        columns.push(Arc::new(StringArray::from_iter(rows.iter().map(|row| of_vector(row).then_some(&model.id)))));
        let dimension = model.dimension as u32;
        columns.push(Arc::new(UInt32Array::from_iter(rows.iter().map(|row| of_vector(row).then_some(dimension)))));
        let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), model.dimension as i32);
        for row in rows {
            match &row.vector {
                Some(vector) => vectors.values().append_slice(vector),
                None => vectors.values().append_slice(&vec![0.0; model.dimension]),
            }
            vectors.append(row.vector.is_some());
        }
        columns.push(Arc::new(vectors.finish()));
    }
    RecordBatch::try_new(row_schema(model), columns).map_err(index_error)
}

fn from_batch(batch: &RecordBatch) -> Result<Vec<IndexRow>> {
    let column = |name: &str| {
        batch.column_by_name(name).ok_or_else(|| CatalogError::Index(format!("the dataset has no column {name}")))
    };
    let object_ids = column("object_id")?.as_primitive::<Int64Type>();
    let database_ids = column("database_id")?.as_primitive::<Int64Type>();
    let sequences = column("sequence")?.as_primitive::<Int64Type>();
    let texts = column("text")?.as_string::<i32>();
    let rows = (0..batch.num_rows()).map(|row| IndexRow {
        sequence: sequences.value(row),
        kind: ObjectKind::Table,
        object_id: object_ids.value(row),
        database_id: database_ids.value(row),
        text: texts.value(row).to_string(),
        vector: None,
    });
    Ok(rows.collect())
}

fn join_ids(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// A folder as Lance names it.
pub(crate) fn dataset_uri(folder: &Path) -> Result<String> {
    folder
        .to_str()
        .map(str::to_string)
        .ok_or_else(|| CatalogError::Index(format!("path {} is not UTF-8", folder.display())))
}

/// Runs a Lance operation; a panic in a decoder, which damaged files can cause, becomes an error.
pub(crate) async fn guarded<T>(operation: impl Future<Output = lance::Result<T>>) -> Result<T> {
    match std::panic::AssertUnwindSafe(operation).catch_unwind().await {
        Ok(outcome) => outcome.map_err(index_error),
        Err(_) => Err(CatalogError::Index("reading the dataset panicked; its files are damaged".into())),
    }
}

/// Names an error of Lance: a full disk is one wherever it is met.
fn index_error(error: impl std::error::Error + 'static) -> CatalogError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        if let Some(full) = found.downcast_ref::<std::io::Error>().filter(|found| is_full(found)) {
            return CatalogError::StorageFull { detail: full.to_string() };
        }
        cause = found.source();
    }
    CatalogError::Index(without_code_places(&error.to_string()))
}

/// Lance's messages name lines of its code, below the folder in which this program was built.
fn without_code_places(message: &str) -> String {
    let is_place = |part: &str| {
        let mut ends = part.rsplitn(3, ':');
        let is_number = |end: Option<&str>| end.is_some_and(|end| end.parse::<u32>().is_ok());
        is_number(ends.next()) && is_number(ends.next()) && ends.next().is_some_and(|file| file.ends_with(".rs"))
    };
    message.split(", ").filter(|part| !is_place(part)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_lance_are_told_without_lines_of_its_code() {
        let message =
            "Not found: a.idx, length=121, /home/x/lance-io-14.0.2/src/local.rs:273:40, location: src/index.rs:1:2";
        assert_eq!(without_code_places(message), "Not found: a.idx, length=121");
        let full = lance::Error::from(std::io::Error::from(std::io::ErrorKind::StorageFull));
        assert_eq!(index_error(full).code(), "storage_full");
        let error = index_error(lance::Error::io("it broke"));
        assert_eq!(error.code(), "index_error");
        assert!(!error.to_string().contains(".rs:"), "{error}");
    }
}

//! One version of the Lance dataset, opened for searches. What every search needs is read when the version is
//! opened, outside of any search: row addresses by object, the full-text index's vocabulary, and the vectors where
//! they are few. Searches then call the indexes directly: building and running a query plan for the same answer takes
//! many times as long.
//!
//! Invariant: rows that are deleted, out of date or invisible to the caller are left out before a top-k is taken.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, RecordBatch};
use arrow::datatypes::{Float32Type, Int64Type, UInt64Type};
use async_trait::async_trait;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::ProjectionRequest;
use lance::dataset::fragment::FileFragment;
use lance::dataset::scanner::{RowAddrMask, RowAddrTreeMap};
use lance::index::{DatasetIndexExt, DatasetIndexInternalExt};
use lance_core::{ROW_ADDR, ROW_ID};
use lance_index::metrics::NoOpMetricsCollector;
use lance_index::prefilter::PreFilter;
use lance_index::scalar::ScalarIndex;
use lance_index::scalar::inverted::InvertedIndex;
use lance_index::scalar::inverted::document_tokenizer::DocType;
use lance_index::scalar::inverted::query::{FtsSearchParams, Operator, Tokens};
use lance_index::vector::{ApproxMode, DEFAULT_QUERY_PARALLELISM, DIST_COL, Query, VectorIndex};
use lance_linalg::distance::{DistanceType, dot_f32};

use super::analyze::CorpusStats;
use super::embed::EmbeddingModel;
use super::lance::{TEXT_INDEX, VECTOR_INDEX, guarded};
use super::{Scored, SearchFilter, keep_best};
use crate::error::{CatalogError, Result};
use crate::store::pending::text_hash;

/// The share of the vector index's partitions that a search reads, in percent, and the fewest partitions.
const PROBED_PERCENT: usize = 20;
const MIN_PROBES: usize = 48;
/// How many of the best rows by the vector index, which compares quantised vectors, are compared exactly.
const REFINED: usize = 48;
/// The most rows with a word that are counted for a caller from whom some are hidden: a word of more tells little.
const MAX_COUNTED: usize = 10_000;

/// Rows of a view by address that searches leave out.
pub(super) type HiddenRows = RowAddrTreeMap;

/// One version of the dataset, for reading.
pub(super) struct IndexView {
    dataset: Arc<Dataset>,
    /// The model of the vector column.
    pub(super) model: Option<EmbeddingModel>,
    /// By number.
    fragments: Vec<Arc<FragmentRows>>,
    texts: Vec<Arc<dyn ScalarIndex>>,
    vectors: Vec<Arc<dyn VectorIndex>>,
    /// Deleted rows that an index may still return, whether deleted one by one or with their fragment.
    deleted: HiddenRows,
}

/// The rows of one fragment by their offset. A fragment changes only by deletions, so this serves all versions that
/// include it.
pub(super) struct FragmentRows {
    number: u32,
    /// 0 where the row was deleted when this was read.
    object_ids: Vec<i64>,
    database_ids: Vec<i64>,
    /// Offsets, ascending by object.
    by_object: Vec<u32>,
    /// The vectors of the rows that have one, when vectors are scanned.
    vectors: Option<FragmentVectors>,
}

struct FragmentVectors {
    dimension: usize,
    offsets: Vec<u32>,
    values: Vec<f32>,
}

impl FragmentRows {
    /// Reads the fragments of a dataset, except those that are `known`; with a dimension, also their vectors.
    pub(super) async fn load_all(
        dataset: &Dataset,
        known: &[Arc<Self>],
        dimension: Option<usize>,
    ) -> lance::Result<Vec<Arc<Self>>> {
        let mut all = Vec::new();
        for fragment in dataset.get_fragments() {
            let number = fragment.id() as u32;
            let same = known.iter().find(|known| known.number == number);
            all.push(match same.filter(|same| same.vectors.is_some() == dimension.is_some()) {
                Some(same) => Arc::clone(same),
                None => Arc::new(Self::load(&fragment, dimension).await?),
            });
        }
        all.sort_by_key(|fragment| fragment.number);
        Ok(all)
    }

    async fn load(fragment: &FileFragment, dimension: Option<usize>) -> lance::Result<Self> {
        let size = fragment.physical_rows().await?;
        let vectors = dimension.map(|dimension| FragmentVectors { dimension, offsets: Vec::new(), values: Vec::new() });
        let mut rows = Self {
            number: fragment.id() as u32,
            object_ids: vec![0; size],
            database_ids: vec![0; size],
            by_object: Vec::new(),
            vectors,
        };
        let mut scan = fragment.scan();
        match dimension {
            Some(_) => scan.project(&["object_id", "database_id", "vector"])?,
            None => scan.project(&["object_id", "database_id"])?,
        };
        let batches: Vec<RecordBatch> = scan.with_row_address().try_into_stream().await?.try_collect().await?;
        // A million rows would block one of the runtime's threads for long.
        let taken_in = tokio::task::spawn_blocking(move || {
            batches.iter().for_each(|batch| rows.add(batch));
            rows.by_object = (0..size as u32).filter(|offset| rows.object_ids[*offset as usize] != 0).collect();
            rows.by_object.sort_unstable_by_key(|offset| rows.object_ids[*offset as usize]);
            rows
        });
        taken_in.await.map_err(|error| lance::Error::io(format!("the rows of a fragment could not be read: {error}")))
    }

    fn add(&mut self, batch: &RecordBatch) {
        let addresses = batch[ROW_ADDR].as_primitive::<UInt64Type>().values();
        let object_ids = batch["object_id"].as_primitive::<Int64Type>();
        let database_ids = batch["database_id"].as_primitive::<Int64Type>();
        for (row, address) in addresses.iter().enumerate() {
            let offset = *address as u32 as usize;
            self.object_ids[offset] = object_ids.value(row);
            self.database_ids[offset] = database_ids.value(row);
        }
        if let Some(vectors) = &mut self.vectors {
            let lists = batch["vector"].as_fixed_size_list();
            for (row, address) in addresses.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
                vectors.offsets.push(*address as u32);
                vectors.values.extend_from_slice(lists.value(row).as_primitive::<Float32Type>().values());
            }
        }
    }

    /// The largest id of an object here; 0 for none.
    pub(super) fn max_object_id(&self) -> i64 {
        self.by_object.last().map_or(0, |offset| self.object_ids[*offset as usize])
    }

    fn address(&self, offset: u32) -> u64 {
        u64::from(self.number) << 32 | u64::from(offset)
    }

    /// The row of an object, deleted or not; the newest of several is in a later fragment.
    fn find(&self, object_id: i64) -> Option<u64> {
        if object_id > self.max_object_id() {
            return None;
        }
        let found = self.by_object.binary_search_by_key(&object_id, |offset| self.object_ids[*offset as usize]).ok()?;
        Some(self.address(self.by_object[found]))
    }
}

impl IndexView {
    /// Opens the indexes of a version; `fragments` are all it has.
    pub(super) async fn open(
        dataset: Dataset,
        model: Option<EmbeddingModel>,
        fragments: Vec<Arc<FragmentRows>>,
    ) -> Result<Self> {
        guarded(async {
            let mut deleted = RowAddrTreeMap::new();
            for fragment in dataset.get_fragments() {
                if let Some(offsets) = fragment.get_deletion_vector().await? {
                    deleted.insert_bitmap(fragment.id() as u32, offsets.iter().collect());
                }
            }
            let of_texts = dataset.load_indices_by_name(TEXT_INDEX).await?;
            let of_vectors = dataset.load_indices_by_name(VECTOR_INDEX).await?;
            let covered = of_texts.iter().chain(&of_vectors).filter_map(|segment| segment.fragment_bitmap.as_ref());
            let is_there = |number: &u32| fragments.binary_search_by_key(number, |fragment| fragment.number).is_ok();
            covered.flatten().filter(|number| !is_there(number)).for_each(|number| deleted.insert_fragment(number));
            let (mut texts, mut vectors) = (Vec::new(), Vec::new());
            for segment in &of_texts {
                texts.push(dataset.open_scalar_index("text", &segment.uuid, &NoOpMetricsCollector).await?);
            }
            for segment in &of_vectors {
                vectors.push(dataset.open_vector_index("vector", &segment.uuid, &NoOpMetricsCollector).await?);
            }
            Ok(Self { dataset: Arc::new(dataset), model, fragments, texts, vectors, deleted })
        })
        .await
    }

    /// The best `limit` rows by BM25, best first; `stats` are those of the whole corpus.
    pub(super) async fn bm25(
        &self,
        tokens: &[String],
        stats: CorpusStats,
        limit: usize,
        admitted: &Arc<RowAddrMask>,
    ) -> Result<Vec<Scored>> {
        let tokens = Arc::new(Tokens::new(tokens.to_vec(), DocType::Text));
        let scorer = stats.into_scorer();
        let params = Arc::new(FtsSearchParams::new().with_limit(Some(limit)));
        let admitted: Arc<dyn PreFilter> = Arc::new(Admitted(Arc::clone(admitted)));
        let mut found = Vec::new();
        for index in &self.texts {
            let Some(index) = index.as_any().downcast_ref::<InvertedIndex>() else { continue };
            let search = index.bm25_search(
                Arc::clone(&tokens),
                Arc::clone(&params),
                Operator::Or,
                Arc::clone(&admitted),
                Arc::new(NoOpMetricsCollector),
                Some(scorer.scorer()),
            );
            let (addresses, scores) = guarded(search).await?;
            found.extend(addresses.into_iter().zip(scores).filter_map(|(address, score)| self.scored(address, score)));
        }
        Ok(found)
    }

    /// The `limit` rows nearest to a unit vector, nearest first; scores are cosines.
    pub(super) async fn nearest(
        self: &Arc<Self>,
        vector: &[f32],
        limit: usize,
        filter: &SearchFilter,
        hidden: &Arc<HiddenRows>,
    ) -> Result<Vec<Scored>> {
        if self.model.as_ref().is_none_or(|model| model.dimension != vector.len()) {
            return Ok(Vec::new());
        }
        if self.fragments.iter().all(|fragment| fragment.vectors.is_some()) {
            let (view, vector, filter) = (Arc::clone(self), vector.to_vec(), filter.clone());
            let hidden = Arc::clone(hidden);
            let scan = tokio::task::spawn_blocking(move || view.scan_memory(&vector, limit, &filter, &hidden));
            return scan.await.map_err(|_| CatalogError::Internal("the scan of vectors panicked".into()));
        }
        if self.vectors.is_empty() || filter.exact {
            return guarded(self.scan_dataset(vector, limit, filter, hidden)).await;
        }
        let admitted: Arc<dyn PreFilter> = Arc::new(Admitted(Arc::new(self.mask(filter, hidden))));
        // The rows that a filter admits may lie in any partition.
        let percent = if !filter.visible.is_all() { 100 } else { PROBED_PERCENT };
        let mut found: Vec<(u64, f32)> = Vec::new();
        for index in &self.vectors {
            let partitions = (index.total_partitions() * percent / 100).max(MIN_PROBES).min(index.total_partitions());
            let probe = VectorProbe { metric: DistanceType::L2, limit: limit.max(REFINED), partitions };
            found.extend(probe.nearest(index, vector, &admitted).await?);
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        let rest = found.split_off(REFINED.min(found.len()));
        let refined = guarded(self.compare(&found, vector)).await?;
        // The squared distance of unit vectors is two minus twice their cosine.
        let rest = rest.into_iter().filter_map(|(address, distance)| self.scored(address, 1.0 - distance / 2.0));
        Ok(refined.into_iter().chain(rest).collect())
    }

    async fn compare(&self, rows: &[(u64, f32)], vector: &[f32]) -> lance::Result<Vec<Scored>> {
        let addresses: Vec<u64> = rows.iter().map(|(address, _)| *address).collect();
        let projection = ProjectionRequest::from_columns(["vector"], self.dataset.schema());
        let batch = self.dataset.take_builder(&addresses, projection)?.execute().await?;
        let vectors = batch["vector"].as_fixed_size_list();
        let values = vectors.values().as_primitive::<Float32Type>().values();
        let rows = addresses.into_iter().zip(values.chunks_exact(vector.len()));
        Ok(rows.filter_map(|(address, row)| self.scored(address, dot_f32(row, vector))).collect())
    }

    fn scan_memory(&self, vector: &[f32], limit: usize, filter: &SearchFilter, hidden: &HiddenRows) -> Vec<Scored> {
        let mask = self.mask(filter, hidden);
        let is_open = mask.is_select_all();
        let mut found: Vec<Scored> = Vec::new();
        for fragment in &self.fragments {
            let Some(vectors) = &fragment.vectors else { continue };
            let rows = vectors.offsets.iter().zip(vectors.values.chunks_exact(vectors.dimension));
            found.extend(rows.filter(|(offset, _)| is_open || mask.selected(fragment.address(**offset))).map(
                |(offset, row)| Scored {
                    object_id: fragment.object_ids[*offset as usize],
                    score: dot_f32(row, vector),
                },
            ));
        }
        keep_best(&mut found, limit);
        found
    }

    /// An exact scan of all vectors: used where they have no index yet, and to measure the index by.
    async fn scan_dataset(
        &self,
        vector: &[f32],
        limit: usize,
        filter: &SearchFilter,
        hidden: &HiddenRows,
    ) -> lance::Result<Vec<Scored>> {
        let mut scan = self.dataset.scan();
        scan.nearest("vector", &Float32Array::from(vector.to_vec()), limit)?
            .distance_metric(DistanceType::Dot)
            .use_index(false)
            .with_row_id_prefilter(self.mask(filter, hidden))
            .prefilter(true)
            .project::<&str>(&[])?
            .with_row_id();
        let found = neighbours(&scan.try_into_batch().await?);
        Ok(found.into_iter().filter_map(|(address, distance)| self.scored(address, 1.0 - distance)).collect())
    }

    fn scored(&self, address: u64, score: f32) -> Option<Scored> {
        let fragment = (address >> 32) as u32;
        let found = self.fragments.binary_search_by_key(&fragment, |fragment| fragment.number).ok()?;
        let object_id = *self.fragments[found].object_ids.get(address as u32 as usize)?;
        (object_id != 0).then_some(Scored { object_id, score })
    }

    /// The rows that no search may return: deleted rows, and rows of objects that the tail overrides.
    pub(super) fn hidden(&self, overridden: impl Iterator<Item = i64>) -> HiddenRows {
        let mut hidden = self.deleted.clone();
        overridden.flat_map(|object_id| self.rows_of(object_id)).for_each(|address| {
            hidden.insert(address);
        });
        hidden
    }

    /// The rows of an object, deleted or not, by address.
    pub(super) fn rows_of(&self, object_id: i64) -> impl Iterator<Item = u64> {
        self.fragments.iter().filter_map(move |fragment| fragment.find(object_id))
    }

    /// The rows that a search may return.
    pub(super) fn mask(&self, filter: &SearchFilter, hidden: &HiddenRows) -> RowAddrMask {
        let hidden = hidden.clone();
        let visible = &filter.visible;
        if visible.is_all() {
            return RowAddrMask::from_block(hidden);
        }
        let is_whole = |database: &i64| {
            visible.only.as_ref().is_none_or(|only| only.contains(database)) && !visible.except.contains(database)
        };
        let mut allowed = RowAddrTreeMap::new();
        for fragment in &self.fragments {
            for (offset, database) in fragment.database_ids.iter().enumerate() {
                if is_whole(database) {
                    allowed.insert(fragment.address(offset as u32));
                }
            }
        }
        for address in visible.objects.iter().flat_map(|object| self.rows_of(*object)) {
            allowed.insert(address);
        }
        RowAddrMask::from_allowed(allowed).also_block(hidden)
    }

    /// The vectors of the objects whose given text equals the text in the dataset, by object.
    pub(super) async fn vectors_of(&self, texts: &[(i64, &str)]) -> Result<HashMap<i64, Arc<[f32]>>> {
        let found: Vec<(i64, &str, u64)> =
            texts.iter().flat_map(|(id, text)| self.rows_of(*id).map(|address| (*id, *text, address))).collect();
        if found.is_empty() {
            return Ok(HashMap::new());
        }
        let mask = self.mask(&SearchFilter::default(), &self.deleted);
        let addresses: Vec<u64> =
            found.iter().map(|(_, _, address)| *address).filter(|address| mask.selected(*address)).collect();
        let hashes: HashMap<i64, _> = found.iter().map(|(id, text, _)| (*id, text_hash(text))).collect();
        let batch = guarded(async {
            let projection =
                ProjectionRequest::from_columns(["object_id", "text_hash", "vector"], self.dataset.schema());
            self.dataset.take_builder(&addresses, projection)?.execute().await
        })
        .await?;
        let object_ids = batch["object_id"].as_primitive::<Int64Type>();
        let stored = batch["text_hash"].as_fixed_size_binary();
        let vectors = batch["vector"].as_fixed_size_list();
        let is_same = |row: &usize| {
            let hash = hashes.get(&object_ids.value(*row));
            vectors.is_valid(*row) && hash.is_some_and(|hash| hash == stored.value(*row))
        };
        let same = (0..batch.num_rows()).filter(is_same).map(|row| {
            let vector = vectors.value(row);
            (object_ids.value(row), Arc::from(&vector.as_primitive::<Float32Type>().values()[..]))
        });
        Ok(same.collect())
    }

    /// The corpus statistics of a question's tokens; of the admitted rows, which are given where the caller may not know of the
    /// others.
    pub(super) async fn corpus_stats(
        &self,
        tokens: &[String],
        admitted: Option<&Arc<RowAddrMask>>,
    ) -> Result<CorpusStats> {
        let mut stats = CorpusStats::default();
        let mut of_all = (0_u64, 0_usize);
        for index in &self.texts {
            let Some(index) = index.as_any().downcast_ref::<InvertedIndex>() else { continue };
            let (total_tokens, documents, counts) = guarded(index.bm25_stats_for_terms(tokens, None)).await?;
            of_all = (of_all.0 + total_tokens, of_all.1 + documents);
            match admitted {
                None => stats.add_segment(total_tokens, documents, tokens, &counts),
                Some(mask) => {
                    for (token, most) in tokens.iter().zip(counts) {
                        let count = match most {
                            0 => 0,
                            most => guarded(admitted_with_token(index, token, mask, most.min(MAX_COUNTED))).await?,
                        };
                        stats.add_segment(0, 0, std::slice::from_ref(token), &[count]);
                    }
                }
            }
        }
        if let Some(mask) = admitted {
            let addresses = self.fragments.iter().flat_map(|fragment| {
                let rows = (0_u32..).zip(&fragment.object_ids).filter(|(_, object)| **object != 0);
                rows.map(move |(offset, _)| fragment.address(offset))
            });
            let admitted = addresses.filter(|address| mask.selected(*address)).count();
            // Lengths are not kept by row; the average of all says nothing of one.
            let average = of_all.0 / (of_all.1.max(1) as u64);
            stats.add_segment(average * admitted as u64, admitted, &[], &[]);
        }
        Ok(stats)
    }
}

/// Returns how many admitted rows have a token, counted up to `most`.
async fn admitted_with_token(
    index: &InvertedIndex,
    token: &str,
    mask: &Arc<RowAddrMask>,
    most: usize,
) -> lance::Result<usize> {
    let tokens = Arc::new(Tokens::new(vec![token.to_owned()], DocType::Text));
    let params = Arc::new(FtsSearchParams::new().with_limit(Some(most)));
    let admitted: Arc<dyn PreFilter> = Arc::new(Admitted(Arc::clone(mask)));
    let metrics = Arc::new(NoOpMetricsCollector);
    let (addresses, _) = index.bm25_search(tokens, params, Operator::Or, admitted, metrics, None).await?;
    Ok(addresses.len())
}

/// A search of one vector index.
pub(crate) struct VectorProbe {
    pub(crate) metric: DistanceType,
    /// The most rows that it returns.
    pub(crate) limit: usize,
    /// How many partitions are read, the nearest first.
    pub(crate) partitions: usize,
}

impl VectorProbe {
    /// The nearest rows by address and the distance of their quantised vectors: of L2 its square.
    pub(crate) async fn nearest(
        &self,
        index: &Arc<dyn VectorIndex>,
        vector: &[f32],
        admitted: &Arc<dyn PreFilter>,
    ) -> Result<Vec<(u64, f32)>> {
        guarded(self.probe(index, vector, admitted)).await
    }

    async fn probe(
        &self,
        index: &Arc<dyn VectorIndex>,
        vector: &[f32],
        admitted: &Arc<dyn PreFilter>,
    ) -> lance::Result<Vec<(u64, f32)>> {
        let key: ArrayRef = Arc::new(Float32Array::from(vector.to_vec()));
        let query = Query {
            column: "vector".to_string(),
            key,
            k: self.limit,
            lower_bound: None,
            upper_bound: None,
            minimum_nprobes: self.partitions,
            maximum_nprobes: Some(self.partitions),
            search_effort: 0.5,
            ef: None,
            refine_factor: None,
            metric_type: Some(self.metric),
            use_index: true,
            query_parallelism: DEFAULT_QUERY_PARALLELISM,
            dist_q_c: 0.0,
            approx_mode: ApproxMode::Normal,
        };
        let (partitions, distances) = index.find_partitions(&query)?;
        let found = partitions.len();
        let batches = Arc::clone(index)
            .search_partitions(
                query,
                Arc::new(partitions),
                Arc::new(distances),
                0,
                found,
                Arc::clone(admitted),
                None,
                Arc::new(NoOpMetricsCollector),
            )
            .await?;
        let batches: Vec<RecordBatch> = batches.try_collect().await?;
        Ok(batches.iter().flat_map(neighbours).collect())
    }
}

/// Row addresses and distances, as Lance returns them.
fn neighbours(batch: &RecordBatch) -> Vec<(u64, f32)> {
    let distances = batch[DIST_COL].as_primitive::<Float32Type>().values();
    let addresses = batch[ROW_ID].as_primitive::<UInt64Type>().values();
    addresses.iter().copied().zip(distances.iter().copied()).collect()
}

/// The rows that a search may return, as Lance's indexes ask for them.
pub(crate) struct Admitted(pub(crate) Arc<RowAddrMask>);

#[async_trait]
impl PreFilter for Admitted {
    async fn wait_for_ready(&self) -> lance::Result<()> {
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_select_all()
    }

    fn mask(&self) -> Arc<RowAddrMask> {
        Arc::clone(&self.0)
    }

    fn filter_row_ids<'a>(&self, row_ids: Box<dyn Iterator<Item = &'a u64> + 'a>) -> Vec<u64> {
        self.0.selected_indices(row_ids)
    }
}

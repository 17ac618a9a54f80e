//! A vector index opened for searches: one version of its dataset, and which rows of it are which rows of data files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use ::lance::Dataset;
use ::lance::dataset::ProjectionRequest;
use ::lance::dataset::builder::DatasetBuilder;
use ::lance::dataset::scanner::{RowAddrMask, RowAddrTreeMap};
use ::lance::index::{DatasetIndexExt, DatasetIndexInternalExt};
use ::lance::session::Session;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lance_index::metrics::NoOpMetricsCollector;
use lance_index::prefilter::PreFilter;
use lance_index::vector::VectorIndex;
use lance_linalg::distance::DistanceType;

use super::rows::{BuiltDataset, CoveredFile, VectorRun};
use super::{VectorIndexSpec, VectorMetric};
use crate::error::{CatalogError, Result};
use crate::index::{Admitted, VectorProbe, dataset_uri, guarded};

/// The only column of a dataset.
pub(super) const COLUMN: &str = "vector";
/// The name of Lance's index in a dataset.
pub(super) const INDEX: &str = "vector_ivf";
/// The share of the partitions that a search reads, in percent, and the fewest: of 100,000 vectors of sentences, it finds
/// 98.5 % of the ten nearest.
const PROBED_PERCENT: usize = 20;
const MIN_PROBES: usize = 48;
/// The fewest rows, of those that quantised vectors say are nearest, that are compared exactly.
const MIN_COMPARED: usize = 48;
/// How many times as many are compared as are asked for.
const COMPARED_FACTOR: usize = 2;
/// Sums that run side by side, so that the compiler may use wide registers.
const LANES: usize = 16;

/// A vector index as searches read it.
pub struct OpenVectors {
    dataset: Arc<Dataset>,
    segments: Vec<Arc<dyn VectorIndex>>,
    metric: VectorMetric,
    dimension: usize,
    probes: Option<usize>,
    trained_rows: u64,
    files: HashMap<i64, CoveredFile>,
    /// The files of each fragment, by offset.
    fragments: HashMap<u32, Vec<(VectorRun, i64)>>,
    /// Rows of the dataset that are of no file.
    strays: RowAddrTreeMap,
}

/// A row of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourRow {
    /// The file's id in the lake.
    pub file_id: i64,
    /// The row's position in the file.
    pub position: u64,
}

/// The rows whose vectors are nearest to another one, nearest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorNeighbours {
    /// The rows.
    pub rows: Vec<NeighbourRow>,
    /// The numbers of their vectors, one after the other, as the table has them.
    pub numbers: Vec<f32>,
}

impl OpenVectors {
    /// Opens a version of a dataset.
    pub(super) async fn open(
        folder: &Path,
        session: Arc<Session>,
        built: &BuiltDataset,
        files: Vec<CoveredFile>,
        spec: &VectorIndexSpec,
    ) -> Result<Self> {
        let dataset = load(folder, session, built.version).await?;
        if !Schema::from(dataset.schema()).fields().eq(schema(spec.dimension).fields()) {
            return Err(CatalogError::Index("the dataset of a vector index has other columns than expected".into()));
        }
        let mut segments = Vec::new();
        for segment in guarded(dataset.load_indices_by_name(INDEX)).await? {
            segments.push(guarded(dataset.open_vector_index(COLUMN, &segment.uuid, &NoOpMetricsCollector)).await?);
        }
        if segments.is_empty() {
            return Err(CatalogError::Index("the dataset of a vector index has none".into()));
        }
        let mut fragments: HashMap<u32, Vec<(VectorRun, i64)>> = HashMap::new();
        for file in files.iter().filter(|file| !file.has_odd_numbers) {
            for run in &file.runs {
                fragments.entry(run.fragment).or_default().push((*run, file.id));
            }
        }
        let mut strays = RowAddrTreeMap::new();
        for fragment in dataset.get_fragments() {
            let (number, mut next) = (fragment.id() as u32, 0);
            let rows = guarded(fragment.physical_rows()).await? as u64;
            let runs = fragments.entry(number).or_default();
            runs.sort_unstable_by_key(|(run, _)| run.offset);
            for (run, _) in runs.iter() {
                block(&mut strays, number, next, u64::from(run.offset));
                next = u64::from(run.offset) + u64::from(run.rows);
            }
            if next > rows {
                return Err(CatalogError::Index("the dataset of a vector index has fewer rows than expected".into()));
            }
            block(&mut strays, number, next, rows);
        }
        Ok(Self {
            dataset: Arc::new(dataset),
            segments,
            metric: spec.metric,
            dimension: spec.dimension,
            probes: spec.probes,
            trained_rows: built.trained_rows,
            files: files.into_iter().map(|file| (file.id, file)).collect(),
            fragments,
            strays,
        })
    }

    /// What it covers of a file; `None` where it does not.
    pub fn file(&self, id: i64) -> Option<&CoveredFile> {
        self.files.get(&id)
    }

    /// The files that it covers.
    pub fn files(&self) -> impl Iterator<Item = &CoveredFile> {
        self.files.values()
    }

    /// Rows when its partitions were trained.
    pub fn trained_rows(&self) -> u64 {
        self.trained_rows
    }

    /// At most `limit` rows of `files` that are nearest to `vector`, approximately: all that are returned are there, and in
    /// the order of their distances; some that are as near may be missing. `deleted` are positions by file, which are left
    /// out. Errors: `index_error` where the dataset cannot be read.
    pub async fn nearest(
        &self,
        vector: &[f32],
        limit: usize,
        files: &HashSet<i64>,
        deleted: &HashMap<i64, BTreeSet<u64>>,
    ) -> Result<VectorNeighbours> {
        if vector.len() != self.dimension || limit == 0 {
            return Ok(VectorNeighbours::default());
        }
        let admitted: Arc<dyn PreFilter> = Arc::new(Admitted(Arc::new(self.mask(files, deleted))));
        let compared = (limit * COMPARED_FACTOR).max(MIN_COMPARED);
        let mut found: Vec<(u64, f32)> = Vec::new();
        for segment in &self.segments {
            let partitions = segment.total_partitions();
            let usual = (partitions * PROBED_PERCENT / 100).max(MIN_PROBES);
            let probe = VectorProbe {
                metric: self.metric.distance_type(),
                limit: compared,
                partitions: self.probes.unwrap_or(usual).clamp(1, partitions.max(1)),
            };
            // Lance's indexes take unit vectors where the metric is the angle.
            let near = match self.metric {
                VectorMetric::Cosine => probe.nearest(segment, &of_unit_length(vector), &admitted).await?,
                VectorMetric::L2 | VectorMetric::Dot => probe.nearest(segment, vector, &admitted).await?,
            };
            found.extend(near);
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.truncate(compared);
        let addresses: Vec<u64> = found.iter().map(|(address, _)| *address).collect();
        self.compare(vector, &addresses, limit).await
    }

    /// The rows at `addresses` in the order of their exact distances, at most `limit`.
    async fn compare(&self, vector: &[f32], addresses: &[u64], limit: usize) -> Result<VectorNeighbours> {
        if addresses.is_empty() {
            return Ok(VectorNeighbours::default());
        }
        let batch = guarded(async {
            let projection = ProjectionRequest::from_columns([COLUMN], self.dataset.schema());
            self.dataset.take_builder(addresses, projection)?.execute().await
        })
        .await?;
        let lists = batch[COLUMN].as_fixed_size_list();
        if lists.len() != addresses.len() {
            return Err(CatalogError::Index("a vector index names rows that its dataset does not have".into()));
        }
        let mut near: Vec<(f32, NeighbourRow, usize)> = Vec::with_capacity(addresses.len());
        for (row, address) in addresses.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
            let values = lists.value(row);
            // Nothing has a distance to these; Lance drops such nulls where it makes vectors of unit length.
            if values.null_count() > 0 {
                continue;
            }
            let distance = self.metric.distance(vector, values.as_primitive::<Float32Type>().values());
            if let (true, Some(found)) = (distance.is_finite(), self.row_at(*address)) {
                near.push((distance, found, row));
            }
        }
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(limit);
        let mut found = VectorNeighbours::default();
        for (_, row, at) in near {
            found.rows.push(row);
            found.numbers.extend_from_slice(lists.value(at).as_primitive::<Float32Type>().values());
        }
        Ok(found)
    }

    fn row_at(&self, address: u64) -> Option<NeighbourRow> {
        let runs = self.fragments.get(&((address >> 32) as u32))?;
        let offset = address as u32;
        let after = runs.partition_point(|(run, _)| run.offset <= offset);
        let (run, file_id) = runs.get(after.checked_sub(1)?)?;
        let within = offset - run.offset;
        (within < run.rows).then(|| NeighbourRow { file_id: *file_id, position: run.position + u64::from(within) })
    }

    /// The rows that a search may return.
    fn mask(&self, files: &HashSet<i64>, deleted: &HashMap<i64, BTreeSet<u64>>) -> RowAddrMask {
        let mut hidden = self.strays.clone();
        for file in self.files.values().filter(|file| !file.has_odd_numbers) {
            if !files.contains(&file.id) {
                for run in &file.runs {
                    let from = u64::from(run.offset);
                    block(&mut hidden, run.fragment, from, from + u64::from(run.rows));
                }
                continue;
            }
            for position in deleted.get(&file.id).into_iter().flatten() {
                let within = |run: &&VectorRun| (run.position..run.position + u64::from(run.rows)).contains(position);
                if let Some(run) = file.runs.iter().find(within) {
                    hidden.insert(address(run.fragment, u64::from(run.offset) + position - run.position));
                }
            }
        }
        RowAddrMask::from_block(hidden)
    }
}

impl VectorMetric {
    pub(super) fn distance_type(self) -> DistanceType {
        match self {
            VectorMetric::Cosine => DistanceType::Cosine,
            VectorMetric::L2 => DistanceType::L2,
            VectorMetric::Dot => DistanceType::Dot,
        }
    }

    /// What orders vectors, nearest first; not finite where there is no distance.
    fn distance(self, left: &[f32], right: &[f32]) -> f32 {
        let product = |left: &[f32], right: &[f32]| sum_of(left, right, |left, right| left * right);
        match self {
            VectorMetric::Cosine => -product(left, right) / (product(left, left).sqrt() * product(right, right).sqrt()),
            VectorMetric::L2 => sum_of(left, right, |left, right| (left - right) * (left - right)),
            VectorMetric::Dot => -product(left, right),
        }
    }
}

/// The columns of a dataset.
pub(super) fn schema(dimension: usize) -> SchemaRef {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::FixedSizeList(item, dimension as i32), true)]))
}

/// Opens a version of a dataset.
pub(super) async fn load(folder: &Path, session: Arc<Session>, version: u64) -> Result<Dataset> {
    guarded(DatasetBuilder::from_uri(dataset_uri(folder)?).with_session(session).with_version(version).load()).await
}

fn address(fragment: u32, offset: u64) -> u64 {
    (u64::from(fragment) << 32) | offset
}

fn block(rows: &mut RowAddrTreeMap, fragment: u32, from: u64, to: u64) {
    if from < to {
        rows.insert_range(address(fragment, from)..address(fragment, to));
    }
}

fn of_unit_length(vector: &[f32]) -> Vec<f32> {
    let length = sum_of(vector, vector, |left, right| left * right).sqrt();
    vector.iter().map(|number| number / length).collect()
}

/// Returns the sum of `term` over the numbers of two vectors of one length.
fn sum_of(left: &[f32], right: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest: f32 = lefts.remainder().iter().zip(rights.remainder()).map(|(left, right)| term(*left, *right)).sum();
    for (left, right) in lefts.zip(rights) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += term(*left, *right);
        }
    }
    sums.into_iter().sum::<f32>() + rest
}

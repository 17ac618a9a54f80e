//! A scan of Parquet files that can be sent to a worker, and shared out among tasks.
//!
//! `datafusion-proto` writes a scan without the rows that were deleted from its files, without the way in which columns are
//! found, and without the versions of objects; all of them are written here beside it. Invariant: a scan with anything else
//! that would be left behind is not portable.
//!
//! The files of each task are its own, by groups, so that no two tasks or partitions read the same part of a file:
//! DataFusion's partitions otherwise take files from a queue that they share.

use std::fmt;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::datasource::physical_plan::{
    FileGroup, FileGroupPartitioner, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use serde::{Deserialize, Serialize};

use super::codec::PlanCodec;
use crate::column_cache::ColumnCache;
use crate::tables::decoded_parquet::{through_cache, without_cache};
use crate::tables::file_scan::ColumnMatching;

/// A scan of Parquet files; a leaf of plans, which executes the scan inside.
#[derive(Debug)]
pub(crate) struct PortableScanExec {
    scan: Arc<dyn ExecutionPlan>,
}

/// What is written beside a scan.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ScanDetails {
    matching: ColumnMatching,
    /// In the order of groups and of the files in them.
    files: Vec<FileDetails>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileDetails {
    e_tag: Option<String>,
    version: Option<String>,
    /// The rows to read, by row group; `None`: all.
    rows: Option<Vec<GroupRows>>,
}

/// The rows to read of one row group.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum GroupRows {
    All,
    None,
    /// How many to read or to skip, in turns.
    Some(Vec<(usize, bool)>),
}

impl PortableScanExec {
    /// Returns a scan as one that can travel. Errors: why it cannot.
    pub(crate) fn of_scan(plan: &Arc<dyn ExecutionPlan>) -> Result<Self, String> {
        let config = scan_config(plan).ok_or("it reads something else than Parquet files")?;
        let Some((plain, _)) = without_cache(config) else {
            return Err("it reads something else than Parquet files of tables".to_owned());
        };
        if !plain.file_source().is::<ParquetSource>() {
            return Err("it reads something else than Parquet files".to_owned());
        }
        if config.limit.is_some_and(|limit| u32::try_from(limit).is_err()) {
            return Err("its limit is too large to be written down".to_owned());
        }
        for file in files(config) {
            let known = usize::from(file.extensions.contains::<ParquetAccessPlan>());
            if file.extensions.len() != known {
                return Err("a file is read in a way of its own".to_owned());
            }
        }
        Ok(Self { scan: Arc::clone(plan) })
    }

    /// Returns the bytes of the files, or of their parts, that it reads.
    pub(crate) fn scanned_bytes(&self) -> u64 {
        scan_config(&self.scan).map_or(0, |config| files(config).map(PartitionedFile::effective_size).sum())
    }

    /// Returns whether its rows may come in parts: they are in several partitions by now, and nobody counts on their order.
    pub(crate) fn can_be_shared(&self) -> bool {
        let is_ordered = |config: &FileScanConfig| config.preserve_order || !config.output_ordering.is_empty();
        self.scan.output_partitioning().partition_count() > 1
            && scan_config(&self.scan).is_some_and(|config| !is_ordered(config))
    }

    /// Returns a scan for each of `tasks`, which together read what this one reads, each once.
    pub(crate) fn shared_out(&self, tasks: usize) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let Some(config) = scan_config(&self.scan) else { return internal_err!("a portable scan is one of files") };
        let partitions = config.file_groups.len().max(1);
        let groups = match tasks {
            1 => config.file_groups.clone(),
            tasks => split(&config.file_groups, partitions * tasks),
        };
        let mut shares: Vec<Vec<FileGroup>> = vec![Vec::new(); tasks];
        for (index, group) in groups.into_iter().enumerate() {
            shares[index % tasks].push(group);
        }
        let widest = shares.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let share = |mut groups: Vec<FileGroup>| -> Arc<dyn ExecutionPlan> {
            groups.resize_with(widest, || FileGroup::new(Vec::new()));
            let config = FileScanConfigBuilder::from(config.clone())
                .with_file_groups(groups)
                .with_statistics(inexact(&config.statistics()))
                .with_partitioned_by_file_group(true)
                .build();
            Arc::new(Self { scan: DataSourceExec::from_data_source(config) })
        };
        Ok(shares.into_iter().map(share).collect())
    }

    /// Writes the scan.
    pub(super) fn write(&self, buf: &mut Vec<u8>) -> Result<()> {
        let Some((plain, matching)) = scan_config(&self.scan).and_then(without_cache) else {
            return internal_err!("a portable scan is one of Parquet files");
        };
        let details =
            ScanDetails { matching: matching.clone(), files: files(&plain).map(FileDetails::of_file).collect() };
        let details = serde_json::to_vec(&details).map_err(|error| DataFusionError::Internal(error.to_string()))?;
        let length = u32::try_from(details.len()).map_err(|error| DataFusionError::Internal(error.to_string()))?;
        buf.extend(length.to_be_bytes());
        buf.extend(details);
        let plan = DataSourceExec::from_data_source(plain);
        PhysicalPlanNode::try_from_physical_plan(plan, &PlanCodec::trusting())?.try_encode(buf)
    }

    /// Reads what [`PortableScanExec::write`] has written.
    pub(super) fn read(buf: &[u8], context: &TaskContext) -> Result<Self> {
        let broken = || DataFusionError::Execution("a scan that was cut off".to_owned());
        let (length, rest) = buf.split_first_chunk::<4>().ok_or_else(broken)?;
        let (details, plan) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(broken)?;
        let details: ScanDetails =
            serde_json::from_slice(details).map_err(|error| DataFusionError::Execution(error.to_string()))?;
        let plan = PhysicalPlanNode::try_decode(plan)?.try_into_physical_plan(context, &PlanCodec::trusting())?;
        let config = scan_config(&plan).ok_or_else(broken)?;
        let mut files = details.files.into_iter();
        let mut groups = Vec::with_capacity(config.file_groups.len());
        for group in &config.file_groups {
            let mut restored = Vec::with_capacity(group.len());
            for file in group.iter() {
                restored.push(files.next().ok_or_else(broken)?.restore(file.clone()));
            }
            groups.push(FileGroup::new(restored));
        }
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups)
            .with_expr_adapter(details.matching.adapter())
            .with_partitioned_by_file_group(true)
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        let Some(cache) = context.session_config().get_extension::<ColumnCache>() else {
            return internal_err!("a task without a column cache");
        };
        let runtime = context.runtime_env();
        Ok(Self { scan: through_cache(scan, cache, details.matching, &runtime, false) })
    }

    /// Returns whether another scan has the same files, rows and columns.
    pub(super) fn reads_the_same(&self, other: &Self) -> bool {
        let of = |scan: &Self| {
            let config = scan_config(&scan.scan)?;
            let (plain, matching) = without_cache(config)?;
            let files = files(&plain)
                .map(|file| {
                    let range = file.range.as_ref().map(|range| (range.start, range.end));
                    let folders: Vec<_> = file.partition_values.iter().map(|value| format!("{value:?}")).collect();
                    (file.object_meta.location.to_string(), range, folders, FileDetails::of_file(file))
                })
                .collect::<Vec<_>>();
            Some((files, matching.clone(), config.limit, config.object_store_url.clone()))
        };
        let (left, right) = (of(self), of(other));
        left.is_some() && left == right
    }
}

/// Returns the groups as `wanted` ones: files are cut where there are fewer, and dealt out where they cannot be.
fn split(groups: &[FileGroup], wanted: usize) -> Vec<FileGroup> {
    let partitioner = FileGroupPartitioner::new().with_target_partitions(wanted).with_repartition_file_min_size(0);
    partitioner.repartition_file_groups(groups).unwrap_or_else(|| {
        let mut dealt: Vec<Vec<PartitionedFile>> = vec![Vec::new(); wanted];
        for (index, file) in groups.iter().flat_map(FileGroup::iter).enumerate() {
            dealt[index % wanted].push(file.clone());
        }
        dealt.into_iter().map(FileGroup::new).collect()
    })
}

/// The statistics of the whole are bounds of a part.
fn inexact(statistics: &Statistics) -> Statistics {
    let mut statistics = statistics.clone().to_inexact();
    if matches!(statistics.num_rows, Precision::Exact(_)) {
        statistics.num_rows = Precision::Absent;
    }
    statistics
}

fn scan_config(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

fn files(config: &FileScanConfig) -> impl Iterator<Item = &PartitionedFile> {
    config.file_groups.iter().flat_map(FileGroup::iter)
}

impl FileDetails {
    fn of_file(file: &PartitionedFile) -> Self {
        let rows = file.extensions.get::<ParquetAccessPlan>().map(|access| {
            access.inner().iter().map(|group| match group {
                RowGroupAccess::Scan => GroupRows::All,
                RowGroupAccess::Skip => GroupRows::None,
                RowGroupAccess::Selection(rows) => {
                    GroupRows::Some(rows.iter().map(|part| (part.row_count, part.skip)).collect())
                }
            })
        });
        Self {
            e_tag: file.object_meta.e_tag.clone(),
            version: file.object_meta.version.clone(),
            rows: rows.map(Iterator::collect),
        }
    }

    fn restore(self, mut file: PartitionedFile) -> PartitionedFile {
        file.object_meta.e_tag = self.e_tag;
        file.object_meta.version = self.version;
        let Some(rows) = self.rows else { return file };
        let access = rows.into_iter().map(|group| match group {
            GroupRows::All => RowGroupAccess::Scan,
            GroupRows::None => RowGroupAccess::Skip,
            GroupRows::Some(parts) => {
                let selectors = parts.into_iter().map(|(row_count, skip)| RowSelector { row_count, skip });
                RowGroupAccess::Selection(RowSelection::from(selectors.collect::<Vec<_>>()))
            }
        });
        file.with_extension(ParquetAccessPlan::new(access.collect()))
    }
}

impl DisplayAs for PortableScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scan.downcast_ref::<DataSourceExec>() {
            Some(scan) => scan.fmt_as(format, f),
            None => f.write_str("PortableScanExec"),
        }
    }
}

impl ExecutionPlan for PortableScanExec {
    fn name(&self) -> &'static str {
        "PortableScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.scan.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.scan.metrics()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.scan.partition_statistics(partition)
    }
}

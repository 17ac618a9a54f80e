//! Leaves out row groups whose Bloom filters say that none of the values which a query asks for is there.
//!
//! Only the filters of groups of which a column would have to be decoded are read: where all columns are kept, a look at the rows is
//! cheaper. A filter that cannot be read leaves its group in.

use std::collections::{HashMap, HashSet, VecDeque};

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result as DfResult, ScalarValue};
use datafusion::physical_optimizer::pruning::PruningPredicate;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, parquet_column};
use parquet::bloom_filter::Sbbf;

use super::row_groups::{GroupsOfFile, RowGroup};

/// A column with Bloom filters that a query compares with values.
pub(super) struct LookedUpColumn {
    name: String,
    /// Its number among the leaf columns of the file.
    leaf: usize,
}

/// Returns the columns with Bloom filters that a predicate compares with values; `None` where one of them is of a type that is not
/// looked up here.
pub(super) fn looked_up_columns(
    pruning: &PruningPredicate,
    metadata: &ArrowReaderMetadata,
) -> Option<Vec<LookedUpColumn>> {
    let mut columns = Vec::new();
    for name in pruning.literal_columns() {
        let Some((leaf, field)) = parquet_column(metadata.parquet_schema(), metadata.schema(), &name) else { continue };
        let mut chunks = metadata.metadata().row_groups().iter().map(|group| group.column(leaf));
        if !chunks.any(|chunk| chunk.bloom_filter_offset().is_some()) {
            continue;
        }
        if !is_looked_up(field.data_type()) {
            return None;
        }
        columns.push(LookedUpColumn { name, leaf });
    }
    Some(columns)
}

/// Takes out the row groups that have none of the values. Returns how many.
pub(super) async fn prune_by_bloom_filters(
    read: &mut GroupsOfFile,
    pruning: &PruningPredicate,
    columns: &[LookedUpColumn],
) -> DfResult<usize> {
    if columns.is_empty() {
        return Ok(0);
    }
    let reader = read.scan.reader(&read.file)?;
    let mut file = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, read.metadata.clone());
    let before = read.groups.len();
    let mut left = VecDeque::with_capacity(before);
    for group in std::mem::take(&mut read.groups) {
        if is_kept(read, &group) {
            left.push_back(group);
            continue;
        }
        let mut filters = HashMap::new();
        for column in columns {
            if let Ok(Some(filter)) = file.get_row_group_column_bloom_filter(group.number, column.leaf).await {
                filters.insert(column.name.as_str(), filter);
            }
        }
        if pruning.prune(&GroupFilters { filters })?.first() != Some(&false) {
            left.push_back(group);
        }
    }
    read.groups = left;
    Ok(before - read.groups.len())
}

/// Returns whether all columns that are read of a group are in the cache.
fn is_kept(read: &GroupsOfFile, group: &RowGroup) -> bool {
    read.columns.iter().all(|column| read.scan.cache.holds(&read.key(group, *column)))
}

fn is_looked_up(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt32
            | DataType::UInt64
    )
}

/// The Bloom filters of one row group, by column.
struct GroupFilters<'a> {
    filters: HashMap<&'a str, Sbbf>,
}

impl PruningStatistics for GroupFilters<'_> {
    fn min_values(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn max_values(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    /// Says no where none of the values is there, and otherwise that it is not known: a filter lets values pass that are not there.
    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let filter = self.filters.get(column.name.as_str())?;
        let is_possible = values.iter().any(|value| may_hold(filter, value));
        Some(BooleanArray::from(vec![(!is_possible).then_some(false)]))
    }
}

/// Returns whether a value may be among those that a filter was made of. Values are hashed as Parquet stores them.
fn may_hold(filter: &Sbbf, value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            filter.check(&text.as_str())
        }
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::FixedSizeBinary(_, Some(bytes)) => filter.check(bytes),
        ScalarValue::Int32(Some(number)) => filter.check(number),
        ScalarValue::Int64(Some(number)) => filter.check(number),
        ScalarValue::UInt32(Some(number)) => filter.check(number),
        ScalarValue::UInt64(Some(number)) => filter.check(number),
        ScalarValue::Dictionary(_, value) => may_hold(filter, value),
        _ => true,
    }
}

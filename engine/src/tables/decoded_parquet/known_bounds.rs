//! What footers of Parquet files say of their values, as far as it may be relied on.
//!
//! Parquet's bounds leave NaN out, and most writers do not say where there is one. In SQL NaN is the greatest number:
//! the greatest value of such a column is unknown, for the file, its row groups and its pages alike. Querent and DuckDB
//! write no bounds where NaN is; of the files of others the least values of floats count, and no Bloom filter does, which
//! is of bits: zero and NaN have several. Where nulls are not counted, a column may have some.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result as DfResult, ScalarValue, Statistics as TableStatistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, ParquetFileReaderFactory, apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::data_type::FixedLenByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::planned_file::{FileOwner, PlannedFile, check};
use crate::stores::VersionedObject;
use crate::tables::external::admit_pages;

/// What the names of writers begin with that write no bounds where NaN is.
const TELLING_WRITERS: [&str; 2] = ["querent", "DuckDB"];

/// Returns a source of Parquet files that sees of their footers what may be relied on, and none of the rows of files that are
/// changed while they are read, where they may be.
pub(super) fn with_known_bounds(source: &Arc<dyn FileSource>, owner: FileOwner) -> Arc<dyn FileSource> {
    let parquet = source.downcast_ref::<ParquetSource>();
    let Some((parquet, readers)) = parquet.and_then(|one| Some((one, one.parquet_file_reader_factory()?))) else {
        return Arc::clone(source);
    };
    let readers = Arc::new(KnownBoundsReaders { readers: Arc::clone(readers), owner });
    Arc::new(parquet.clone().with_parquet_file_reader_factory(readers))
}

/// Takes out of the statistics of a file what its footer does not say. DataFusion sums up the row groups that have bounds and
/// counts, as if there were no others, and takes a file whose column has another type than the table's for one of nulls.
pub(crate) fn keep_known(statistics: &mut TableStatistics, schema: &Schema, metadata: &ParquetMetaData) {
    let columns = metadata.file_metadata().schema_descr().columns();
    let leaves: HashMap<&str, usize> = columns
        .iter()
        .enumerate()
        .filter_map(|(leaf, column)| match column.path().parts() {
            [name] => Some((name.as_str(), leaf)),
            _ => None,
        })
        .collect();
    let roots = metadata.file_metadata().schema_descr().root_schema().get_fields();
    // Most files have all columns, by their own names.
    let names = LazyCell::new(|| roots.iter().map(|root| root.name()).collect::<HashSet<&str>>());
    let names_by_case = LazyCell::new(|| roots.iter().map(|root| root.name().to_lowercase()).collect::<HashSet<_>>());
    let tells = tells_of_nan(metadata);
    let stored = stored_schema(schema, metadata);
    let stored_types: HashMap<&str, &DataType> = stored
        .iter()
        .flat_map(|stored| stored.fields())
        .map(|field| (field.name().as_str(), field.data_type()))
        .collect();
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        let Some(leaf) = leaves.get(field.name().as_str()).copied() else {
            // What the file has in another case is read, and is not null.
            if !names.contains(field.name().as_str()) && names_by_case.contains(&field.name().to_lowercase()) {
                *column = ColumnStatistics::new_unknown();
            }
            continue;
        };
        if stored_types.get(field.name().as_str()).copied() != Some(field.data_type()) {
            column.min_value = Precision::Absent;
            column.max_value = Precision::Absent;
        }
        let groups =
            || metadata.row_groups().iter().map(move |group| (group.num_rows(), group.column(leaf).statistics()));
        let count = |chunk: Option<&Statistics>| chunk.and_then(Statistics::null_count_opt);
        let is_bounded = |(rows, chunk): (i64, Option<&Statistics>)| {
            let is_empty = count(chunk).is_some_and(|nulls| i64::try_from(nulls) == Ok(rows));
            is_empty || chunk.is_some_and(|one| one.min_bytes_opt().is_some() && one.max_bytes_opt().is_some())
        };
        if !groups().all(|(_, chunk)| count(chunk).is_some()) {
            column.null_count = Precision::Absent;
        }
        let is_float = columns.get(leaf).is_some_and(|column| is_float(column));
        let is_signed = metadata.row_groups().iter().any(|group| has_signed_bounds(group.column(leaf)));
        let is_least_known = groups().all(is_bounded) && !is_signed;
        if !is_least_known || column.min_value.get_value().is_some_and(is_nan) {
            column.min_value = Precision::Absent;
        }
        if !is_least_known || (is_float && !tells) {
            column.max_value = Precision::Absent;
        }
        // Writers make the least zero -0.0 and the greatest 0.0, whatever zeros there are.
        for bound in [&mut column.min_value, &mut column.max_value] {
            if bound.get_value().is_some_and(is_zero) {
                *bound = std::mem::take(bound).to_inexact();
            }
        }
    }
}

/// Returns the columns of a file in the types that they are decoded in.
fn stored_schema(schema: &Schema, metadata: &ParquetMetaData) -> Option<Schema> {
    let file = metadata.file_metadata();
    let stored = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).ok()?;
    Some(apply_file_schema_type_coercions(schema, &stored).unwrap_or(stored))
}

fn is_zero(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => *value == 0.0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        ScalarValue::Float16(Some(value)) => value.to_f32() == 0.0,
        _ => false,
    }
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        ScalarValue::Float16(Some(value)) => value.is_nan(),
        _ => false,
    }
}

fn is_float(column: &ColumnDescriptor) -> bool {
    match column.physical_type() {
        PhysicalType::FLOAT | PhysicalType::DOUBLE => true,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => matches!(column.logical_type_ref(), Some(LogicalType::Float16)),
        _ => false,
    }
}

/// Whether columns of floats have no bounds where they hold NaN.
fn tells_of_nan(metadata: &ParquetMetaData) -> bool {
    let writer = metadata.file_metadata().created_by().unwrap_or_default();
    TELLING_WRITERS.iter().any(|telling| writer.starts_with(telling))
}

/// Returns a footer without what is not known: of floats where NaN is, of any column whether it has nulls where their count is
/// not written, which DataFusion takes for none.
fn known(metadata: Arc<ParquetMetaData>) -> ParquetResult<Arc<ParquetMetaData>> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let floats: Vec<bool> = columns.iter().map(|column| is_float(column)).collect();
    let tells = tells_of_nan(&metadata);
    let is_known = |(chunk, is_float): (&ColumnChunkMetaData, &bool)| {
        let has_bounds = chunk.statistics().is_some() || chunk.column_index_offset().is_some();
        !has_unknown_nulls(chunk)
            && !has_signed_bounds(chunk)
            && (!is_float || (chunk.bloom_filter_offset().is_none() && (tells || !has_bounds)))
    };
    if metadata.row_groups().iter().all(|group| group.columns().iter().zip(&floats).all(is_known)) {
        return Ok(metadata);
    }
    let mut footer = Arc::unwrap_or_clone(metadata).into_builder();
    let mut groups = Vec::new();
    for group in footer.take_row_groups() {
        let mut group = group.into_builder();
        let chunks = group.take_columns().into_iter().zip(&floats);
        let chunks = chunks.map(|(chunk, is_float)| known_chunk(chunk, *is_float, tells));
        let chunks = chunks.collect::<ParquetResult<Vec<_>>>()?;
        groups.push(group.set_column_metadata(chunks).build()?);
    }
    let mut pages = footer.take_column_index();
    if !tells {
        for (page, is_float) in pages.iter_mut().flatten().flat_map(|group| group.iter_mut().zip(&floats)) {
            if *is_float {
                *page = ColumnIndexMetaData::NONE;
            }
        }
    }
    Ok(Arc::new(footer.set_row_groups(groups).set_column_index(pages).build()))
}

fn has_unknown_nulls(chunk: &ColumnChunkMetaData) -> bool {
    let is_unknown = chunk.statistics().is_some_and(|one| one.null_count_opt().is_none());
    is_unknown && chunk.column_descr().max_def_level() > 0
}

/// Whether a chunk's bounds are of the old form, which compares bytes and numbers as if they had a sign, and its values have none.
fn has_signed_bounds(chunk: &ColumnChunkMetaData) -> bool {
    let is_old =
        chunk.statistics().is_some_and(|one| one.is_min_max_deprecated() && one.min_bytes_opt() != one.max_bytes_opt());
    let column = chunk.column_descr();
    is_old
        && (matches!(column.physical_type(), PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY)
            || matches!(
                column.converted_type(),
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
            ))
}

fn known_chunk(chunk: ColumnChunkMetaData, is_float: bool, tells: bool) -> ParquetResult<ColumnChunkMetaData> {
    let has_unknown_nulls = has_unknown_nulls(&chunk) || has_signed_bounds(&chunk);
    let least = chunk.statistics().filter(|_| is_float && !tells).map(without_greatest);
    let mut chunk = chunk.into_builder();
    if is_float {
        chunk = chunk.set_bloom_filter_offset(None).set_bloom_filter_length(None);
        if !tells {
            chunk = chunk.set_column_index_offset(None).set_column_index_length(None);
        }
    }
    if has_unknown_nulls {
        chunk = chunk.clear_statistics();
    } else if let Some(least) = least {
        chunk = chunk.set_statistics(least);
    }
    chunk.build()
}

fn without_greatest(statistics: &Statistics) -> Statistics {
    let distinct = statistics.distinct_count_opt();
    let nulls = statistics.null_count_opt();
    let is_deprecated = statistics.is_min_max_deprecated();
    match statistics {
        Statistics::Float(values) => {
            let least = values.min_opt().copied().filter(|least| !least.is_nan());
            Statistics::new(least, None, distinct, nulls, is_deprecated)
        }
        Statistics::Double(values) => {
            let least = values.min_opt().copied().filter(|least| !least.is_nan());
            Statistics::new(least, None, distinct, nulls, is_deprecated)
        }
        // Floats of 16 bits.
        _ => Statistics::new::<FixedLenByteArray>(None, None, distinct, nulls, is_deprecated),
    }
}

/// Makes readers of files.
#[derive(Debug)]
struct KnownBoundsReaders {
    readers: Arc<dyn ParquetFileReaderFactory>,
    owner: FileOwner,
}

impl ParquetFileReaderFactory for KnownBoundsReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        partitioned_file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DfResult<Box<dyn AsyncFileReader + Send>> {
        let (versioned, planned) = match &self.owner {
            FileOwner::Engine => (None, None),
            FileOwner::OtherLocal => (None, PlannedFile::of(&partitioned_file)),
            FileOwner::OtherStored { store, footers } => {
                let found = VersionedObject::new(Arc::clone(store), partitioned_file.object_meta.clone());
                (Some(CachedParquetFileReaderFactory::new(Arc::new(found), Arc::clone(footers))), None)
            }
        };
        let readers: &dyn ParquetFileReaderFactory = match &versioned {
            Some(versioned) => versioned,
            None => self.readers.as_ref(),
        };
        let file_bytes = partitioned_file.object_meta.size;
        let reader = readers.create_reader(partition_index, partitioned_file, metadata_size_hint, metrics)?;
        Ok(Box::new(KnownBoundsReader { reader, file_bytes, planned }))
    }
}

/// Reads a file as it was when the scan was planned, and of its footer what may be relied on.
struct KnownBoundsReader {
    reader: Box<dyn AsyncFileReader + Send>,
    file_bytes: u64,
    planned: Option<PlannedFile>,
}

impl KnownBoundsReader {
    /// Refuses what a footer says of other bytes than the file's: memory for all of them is taken before they are read.
    fn check_range(&self, range: &Range<u64>) -> ParquetResult<()> {
        if range.start <= range.end && range.end <= self.file_bytes {
            return Ok(());
        }
        let (start, end, length) = (range.start, range.end, self.file_bytes);
        Err(ParquetError::EOF(format!("bytes {start} to {end} do not lie in the file, which has {length}")))
    }
}

impl AsyncFileReader for KnownBoundsReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            self.check_range(&range)?;
            let bytes = self.reader.get_bytes(range).await?;
            check(self.planned.as_ref()).await?;
            admit_pages(&bytes).map_err(|error| ParquetError::External(Box::new(error)))?;
            Ok(bytes)
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            ranges.iter().try_for_each(|range| self.check_range(range))?;
            let bytes = self.reader.get_byte_ranges(ranges).await?;
            check(self.planned.as_ref()).await?;
            let admitted = bytes.iter().try_for_each(|pages| admit_pages(pages));
            admitted.map_err(|error| ParquetError::External(Box::new(error)))?;
            Ok(bytes)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let metadata = self.reader.get_metadata(options).await?;
            check(self.planned.as_ref()).await?;
            known(metadata)
        }
        .boxed()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    use arrow::datatypes::Field;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::properties::WriterProperties;

    use super::*;

    fn footer(writer: &str) -> Arc<ParquetMetaData> {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![4, 5, 6]));
        let batch = RecordBatch::try_from_iter([("x", floats), ("n", numbers)]).unwrap();
        let properties =
            WriterProperties::builder().set_created_by(writer.to_owned()).set_bloom_filter_enabled(true).build();
        let mut written = Vec::new();
        let mut file = ArrowWriter::try_new(&mut written, batch.schema(), Some(properties)).unwrap();
        file.write(&batch).unwrap();
        file.close().unwrap();
        Arc::new(ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(written)).unwrap())
    }

    /// A file of zeros, however many are asked for.
    struct Zeros;

    impl AsyncFileReader for Zeros {
        fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
            async move { Ok(Bytes::from(vec![0; usize::try_from(range.end - range.start).unwrap()])) }.boxed()
        }

        fn get_metadata<'a>(
            &'a mut self,
            _: Option<&'a ArrowReaderOptions>,
        ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
            async { Err(ParquetError::General("there is none".to_owned())) }.boxed()
        }
    }

    #[tokio::test]
    async fn bytes_that_do_not_lie_in_the_file_are_not_asked_for() {
        let mut reader = KnownBoundsReader { reader: Box::new(Zeros), file_bytes: 100, planned: None };
        assert_eq!(reader.get_bytes(90..100).await.unwrap().len(), 10);
        assert_eq!(reader.get_byte_ranges(vec![0..100, 7..7]).await.unwrap().len(), 2);
        for range in [90..101, 1 << 40..1 << 47, 0..u64::MAX] {
            let error = reader.get_bytes(range.clone()).await.unwrap_err().to_string();
            assert!(error.contains("do not lie in the file, which has 100"), "{error}");
            assert!(reader.get_byte_ranges(vec![0..1, range]).await.is_err());
        }
    }

    /// Whether bounds of the first column, and Bloom filters of the columns, are there.
    fn said(metadata: &ParquetMetaData) -> (bool, bool, bool, bool) {
        let group = metadata.row_group(0);
        let bounds = group.column(0).statistics().unwrap();
        let has_filter = |column: usize| group.column(column).bloom_filter_offset().is_some();
        (bounds.min_bytes_opt().is_some(), bounds.max_bytes_opt().is_some(), has_filter(0), has_filter(1))
    }

    #[test]
    fn the_greatest_float_is_unknown_unless_the_writer_tells_of_nan() {
        let others = known(footer("parquet-cpp-arrow version 26.0.1")).unwrap();
        assert_eq!(said(&others), (true, false, false, true));
        assert_eq!(others.row_group(0).column(0).column_index_offset(), None);
        assert!(others.row_group(0).column(1).column_index_offset().is_some());
        // A file that a telling writer made: but for the filter it is as it was.
        assert_eq!(said(&known(footer("DuckDB version v1.5.5")).unwrap()), (true, true, false, true));
    }

    /// The statistics of a column of some values without a count of its nulls.
    fn counted_nulls_are_needed(values: ArrayRef, is_nullable: bool) -> bool {
        let schema = Arc::new(Schema::new(vec![Field::new("n", values.data_type().clone(), is_nullable)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values]).unwrap();
        let mut written = Vec::new();
        let mut file = ArrowWriter::try_new(&mut written, schema, None).unwrap();
        file.write(&batch).unwrap();
        file.close().unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(written)).unwrap();
        let group = footer.row_group(0).clone();
        let uncounted = Statistics::int64(Some(4), Some(6), None, None, false);
        let chunk = group.column(0).clone().into_builder().set_statistics(uncounted).build().unwrap();
        let group = group.into_builder().set_column_metadata(vec![chunk]).build().unwrap();
        let footer = footer.into_builder().set_row_groups(vec![group]).build();
        known(Arc::new(footer)).unwrap().row_group(0).column(0).statistics().is_none()
    }

    #[test]
    fn a_column_that_may_have_nulls_is_not_known_without_their_count() {
        assert!(counted_nulls_are_needed(Arc::new(Int64Array::from(vec![Some(4), None, Some(6)])), true));
        assert!(!counted_nulls_are_needed(Arc::new(Int64Array::from(vec![4, 5, 6])), false));
    }
}

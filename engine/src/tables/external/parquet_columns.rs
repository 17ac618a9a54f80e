//! Parquet files: which columns they have, and how those are read that DataFusion's reader does not: UUIDs, which are text
//! in tables, columns that do not have a name of their own, which a reader of ours finds by their places, and intervals, of which
//! that reader reads the months by themselves.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalDayTimeArray, IntervalMonthDayNanoArray, IntervalYearMonthArray, RecordBatch,
};
use arrow::datatypes::{DataType, Field, IntervalDayTime, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result as DfResult, exec_err};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::TypePtr;

use super::column_merge::{UnlikeTypes, merged_columns};
use super::file_columns::{
    ColumnPlaces, held_type, is_json_text, is_uuid, names_in_table, renamed_columns, table_columns, table_names,
    table_type, with_text_parts,
};
use super::file_streams::{EachBatch, ScanReader};
use super::ipc::{WIDE_INTEGERS, has_wide_integers};
use super::parquet_depth::is_too_deep;
use super::parquet_pages::admit_pages;
use super::reader_options::COLUMN_KEYS;
use super::{INFERENCE_FOOTERS, LocatedFile, OpenSourceFile, bad_files, bad_line, object_meta, open, store_of};
use crate::error::{EngineError, Result, store_error_in};
use crate::functions::{converts_otherwise, types_of_parts, value_conversion};

/// The rows that are read at a time.
const BATCH_ROWS: usize = 8192;
/// The type in which a table has intervals.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// The end of a file: the length of its footer, and a mark.
const FOOTER_TAIL_BYTES: u64 = 8;
/// The columns of a shorter footer are not nested too deeply: each level takes five bytes at least.
const SHALLOW_FOOTER_BYTES: u64 = 1_300;

/// Returns the merged columns of Parquet files as a table has them, and the options of a table that has to know that some do
/// not keep their names. Errors: `bad_data`, those of stores.
pub(crate) async fn infer_parquet(
    state: &dyn Session,
    files: &[LocatedFile],
    unlike: UnlikeTypes,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    let store = state.runtime_env().object_store(store_of(files.first()))?;
    let metas = files.iter().take(INFERENCE_FOOTERS).map(object_meta).collect::<Result<Vec<_>>>()?;
    let schemas: Vec<Schema> = futures::stream::iter(files.iter().zip(&metas))
        .map(|(file, meta)| {
            let schema = file_schema(state, store.as_ref(), file, meta);
            schema.map_err(move |error| bad_files(std::slice::from_ref(file), EngineError::from(error)))
        })
        .boxed()
        .buffered(state.config_options().execution.meta_fetch_concurrency.max(1))
        .try_collect()
        .await?;
    check_other_footers(state, store.as_ref(), files.get(INFERENCE_FOOTERS..).unwrap_or_default()).await?;
    let mut renamed = BTreeMap::new();
    for schema in &schemas {
        renamed.extend(renamed_columns(schema));
    }
    let columns = schemas.iter().map(|schema| if renamed.is_empty() { schema.clone() } else { table_columns(schema) });
    let merged = merged_columns(files, &columns.collect::<Vec<_>>(), unlike)?;
    let keeps_columns = renamed.is_empty() && !schemas.iter().any(has_intervals);
    let options = match keeps_columns {
        true => BTreeMap::new(),
        false => BTreeMap::from([(COLUMN_KEYS.to_owned(), serde_json::to_string(&renamed).unwrap_or_default())]),
    };
    Ok((Arc::new(merged), options))
}

/// Whether a table has columns that are read twice.
fn has_intervals(columns: &Schema) -> bool {
    columns.fields().iter().any(|field| *field.data_type() == INTERVAL)
}

/// Whether a column is an interval of Parquet's: months, days and milliseconds.
fn is_interval(written: &TypePtr) -> bool {
    written.get_basic_info().converted_type() == ConvertedType::INTERVAL
}

/// Returns the columns of text, by their names in a table, that one of the files says hold JSON: by Parquet's type, as
/// DuckDB does, or by Arrow's.
pub(crate) async fn parquet_json_columns(state: &dyn Session, files: &[LocatedFile]) -> Result<Vec<String>> {
    let store = state.runtime_env().object_store(store_of(files.first()))?;
    let mut json = Vec::new();
    for file in files.iter().take(INFERENCE_FOOTERS) {
        let (schema, written) = footer_columns(state, store.as_ref(), file, &object_meta(file)?).await?;
        let columns = table_names(&schema).into_iter().zip(schema.fields().iter().zip(written));
        let marked = columns.filter(|(_, (field, written))| {
            let written = written.get_basic_info();
            let is_json = matches!(written.logical_type_ref(), Some(LogicalType::Json))
                || written.converted_type() == ConvertedType::JSON;
            is_json_text(field) || (is_json && field.data_type().is_string())
        });
        json.extend(marked.map(|(name, _)| name));
    }
    Ok(json)
}

/// Returns a file's columns in the types of tables, without what Arrow wrote of them.
async fn file_schema(
    state: &dyn Session,
    store: &dyn ObjectStore,
    file: &LocatedFile,
    meta: &ObjectMeta,
) -> DfResult<Schema> {
    let (schema, written) = footer_columns(state, store, file, meta).await?;
    let fields = schema.fields().iter().zip(written).map(|(field, written)| {
        let is_said = matches!(written.get_basic_info().logical_type_ref(), Some(LogicalType::Uuid));
        let data_type = match field.data_type() {
            DataType::FixedSizeBinary(16) if is_said => DataType::Utf8,
            nested if nested.is_nested() => nested_with_text(nested, &written),
            DataType::Interval(_) if is_interval(&written) => INTERVAL,
            _ if field.extension_type_name().is_some() => table_type(field),
            plain => held_type(plain),
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the type of a nested column with text in the place of UUIDs.
fn nested_with_text(data_type: &DataType, written: &TypePtr) -> DataType {
    let mut leaves = Vec::new();
    add_uuid_leaves(written, &mut leaves);
    let mut leaves = leaves.into_iter();
    let text = with_text_parts(data_type, &mut |field| {
        let is_said = leaves.next() == Some(true) && *field.data_type() == DataType::FixedSizeBinary(16);
        is_said || is_uuid(field)
    });
    // Of a type whose parts are others than the file's nothing is known.
    if leaves.next().is_none() { text } else { data_type.clone() }
}

/// Adds which of the leaves of a column are UUIDs.
fn add_uuid_leaves(written: &TypePtr, leaves: &mut Vec<bool>) {
    match written.is_primitive() {
        true => leaves.push(matches!(written.get_basic_info().logical_type_ref(), Some(LogicalType::Uuid))),
        false => written.get_fields().iter().for_each(|part| add_uuid_leaves(part, leaves)),
    }
}

/// Returns a file's columns as Arrow's reader and as Parquet has them.
async fn footer_columns(
    state: &dyn Session,
    store: &dyn ObjectStore,
    file: &LocatedFile,
    meta: &ObjectMeta,
) -> DfResult<(Schema, Vec<TypePtr>)> {
    // Stores on other machines refuse such a range themselves.
    if file.object.is_none() {
        check_footer_length(store, meta).await?;
    }
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(store, meta).with_file_metadata_cache(Some(cache));
    let metadata = footer.fetch_metadata().await?;
    // Arrow's reader of the schema that Arrow wrote panics where that is damaged (arrow-ipc 58, `convert.rs`).
    let schema = AssertUnwindSafe(footer.fetch_schema()).catch_unwind().await;
    let schema = schema.unwrap_or_else(|panic| match has_wide_integers(panic.as_ref()) {
        true => exec_err!("{WIDE_INTEGERS}"),
        false => exec_err!("the Arrow schema in its footer is damaged"),
    })?;
    let written = metadata.file_metadata().schema_descr().root_schema().get_fields().to_vec();
    Ok((schema, written))
}

/// Refuses local files among those whose columns are not looked at, as [`check_footer_length`] does: they are read all
/// the same.
async fn check_other_footers(state: &dyn Session, store: &dyn ObjectStore, files: &[LocatedFile]) -> Result<()> {
    let local = files.iter().filter(|file| file.object.is_none());
    let metas = local.map(|file| Ok((file, object_meta(file)?))).collect::<Result<Vec<_>>>()?;
    futures::stream::iter(&metas)
        .map(|(file, meta)| async move {
            let checked = check_footer_length(store, meta).await;
            checked.map_err(|error| bad_files(std::slice::from_ref(*file), EngineError::from(error)))
        })
        .boxed()
        .buffered(state.config_options().execution.meta_fetch_concurrency.max(1))
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// Refuses a local file whose footer would be longer than the file: DataFusion's reader asks for so many bytes before the
/// beginning, and memory for them (parquet 58, `push_decoder.rs`). Refuses one whose columns are nested too deeply, too.
pub(super) async fn check_footer_length(store: &dyn ObjectStore, meta: &ObjectMeta) -> DfResult<()> {
    let Some(start) = meta.size.checked_sub(FOOTER_TAIL_BYTES) else { return Ok(()) };
    let tail = store.get_range(&meta.location, start..meta.size).await?;
    let length = tail.first_chunk::<4>().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    if length > start {
        return exec_err!("the file is damaged: its footer would be longer than the file");
    }
    if length > SHALLOW_FOOTER_BYTES {
        let footer = store.get_range(&meta.location, start - length..start).await?;
        if is_too_deep(&footer) {
            return exec_err!("its columns are nested too deeply to be read");
        }
    }
    Ok(())
}

/// Reads a file's rows as columns of `wanted`, by the names that they have in a table. Ends early when `each` says so by
/// returning false. Blocks.
pub(crate) fn read_renamed_parquet(
    file: &LocatedFile,
    wanted: &Schema,
    mut each: impl FnMut(RecordBatch) -> Result<bool>,
) -> Result<()> {
    let refusal = RefusedPage::default();
    let unfit = |error: ParquetError| {
        let refused = refusal.lock().take().or_else(|| store_error_in(&error));
        refused.unwrap_or_else(|| bad_line(&file.path, None, None, error.to_string()))
    };
    let damaged = |error: ArrowError| {
        let refused = refusal.lock().take();
        match refused.unwrap_or_else(|| EngineError::from(error)) {
            EngineError::Execution { message } | EngineError::InvalidValue { message } => {
                bad_line(&file.path, None, None, message)
            }
            other => other,
        }
    };
    let chunks = ParquetChunks(file.clone(), Arc::clone(&refusal));
    let reader = ParquetRecordBatchReaderBuilder::try_new(chunks).map_err(unfit)?;
    let places = ColumnPlaces::find(reader.schema(), wanted);
    let written = reader.parquet_schema().root_schema().get_fields();
    let is_read_as_days = |place: &usize| {
        written.get(*place).is_some_and(is_interval)
            && *reader.schema().field(*place).data_type() == DataType::Interval(IntervalUnit::DayTime)
    };
    let intervals: Vec<usize> = places.read.iter().copied().filter(is_read_as_days).collect();
    let mut months = match intervals.is_empty() {
        true => None,
        false => Some(months_of(file, reader.schema(), &intervals, &refusal).map_err(unfit)?),
    };
    let mask = ProjectionMask::roots(reader.parquet_schema(), places.read.iter().copied());
    let reader = reader.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(unfit)?;
    for batch in reader {
        let mut batch = batch.map_err(damaged)?;
        if let Some(months) = &mut months {
            let missing = || Err(ArrowError::ParquetError("an interval has no months".to_owned()));
            let months = months.next().unwrap_or_else(missing).map_err(damaged)?;
            batch =
                with_months(&batch, &months, |at| intervals.binary_search(&places.read[at]).ok()).map_err(damaged)?;
        }
        if !each(places.arrange(&batch).map_err(damaged)?)? {
            break;
        }
    }
    Ok(())
}

/// Reads the months of intervals. Arrow's reader has no type for a whole one: it leaves out either months, or all else.
fn months_of(
    file: &LocatedFile,
    columns: &SchemaRef,
    intervals: &[usize],
    refusal: &RefusedPage,
) -> Result<ParquetRecordBatchReader, ParquetError> {
    let months = |(place, field): (usize, &Arc<Field>)| match intervals.contains(&place) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Interval(IntervalUnit::YearMonth))),
        false => Arc::clone(field),
    };
    let columns = Schema::new(columns.fields().iter().enumerate().map(months).collect::<Vec<_>>());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(columns));
    let chunks = ParquetChunks(file.clone(), Arc::clone(refusal));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(chunks, options)?;
    let mask = ProjectionMask::roots(reader.parquet_schema(), intervals.iter().copied());
    reader.with_projection(mask).with_batch_size(BATCH_ROWS).build()
}

/// Returns a batch with whole intervals. `months_at` says where the months of one of its columns are.
fn with_months(
    batch: &RecordBatch,
    months: &RecordBatch,
    months_at: impl Fn(usize) -> Option<usize>,
) -> Result<RecordBatch, ArrowError> {
    if batch.num_rows() != months.num_rows() {
        return Err(ArrowError::ParquetError("intervals and their months are of different lengths".to_owned()));
    }
    let columns = batch.columns().iter().enumerate().map(|(at, column)| match months_at(at) {
        Some(place) => whole_intervals(column.as_primitive(), months.column(place).as_primitive()),
        None => Arc::clone(column),
    });
    let columns: Vec<ArrayRef> = columns.collect();
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)
}

fn whole_intervals(days: &IntervalDayTimeArray, months: &IntervalYearMonthArray) -> ArrayRef {
    let whole = days.iter().zip(months.values()).map(|(days, months)| {
        // Milliseconds have no sign in Parquet.
        let of = |time: IntervalDayTime| i64::from(time.milliseconds as u32) * 1_000_000;
        days.map(|time| IntervalMonthDayNano::new(*months, time.days, of(time)))
    });
    Arc::new(whole.collect::<IntervalMonthDayNanoArray>())
}

/// The reader of Parquet files whose columns do not keep their names.
#[derive(Debug)]
pub(super) struct RenamedParquetReader;

impl ScanReader for RenamedParquetReader {
    fn read_file(&self, file: &LocatedFile, wanted: &Schema, each: EachBatch<'_>) -> Result<()> {
        read_renamed_parquet(file, wanted, each)
    }
}

/// The refusal of a page: Parquet's reader hands errors on as texts.
type RefusedPage = Arc<Mutex<Option<EngineError>>>;

/// A file as the reader of Parquet takes it, wherever it lies. Blocks.
struct ParquetChunks(LocatedFile, RefusedPage);

impl ParquetChunks {
    fn read_from(&self, start: u64) -> Result<OpenSourceFile, ParquetError> {
        let mut file = open(&self.0).map_err(|error| ParquetError::External(Box::new(error)))?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for ParquetChunks {
    fn len(&self) -> u64 {
        self.0.size
    }
}

impl ChunkReader for ParquetChunks {
    type T = BufReader<OpenSourceFile>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut reader = BufReader::new(self.read_from(start)?);
        // Headers of pages are read so.
        if let Err(error) = admit_pages(reader.fill_buf()?) {
            let said = ParquetError::General(error.to_string());
            *self.1.lock() = Some(error);
            return Err(said);
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let beyond = || ParquetError::EOF(format!("{length} bytes at {start} are beyond the end"));
        // Memory is taken for what lies in the file, whatever its footer says.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.size) {
            return Err(beyond());
        }
        let mut bytes = Vec::with_capacity(length);
        self.read_from(start)?.take(length as u64).read_to_end(&mut bytes)?;
        match bytes.len() == length {
            true => Ok(bytes.into()),
            false => Err(beyond()),
        }
    }
}

/// Reads columns of 16 bytes as UUIDs where the table has text, numbers as CAST does where the table has others, and columns
/// that a file has in another case.
#[derive(Debug)]
pub(crate) struct UuidAdapterFactory;

impl PhysicalExprAdapterFactory for UuidAdapterFactory {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> DfResult<Arc<dyn PhysicalExprAdapter>> {
        let wanted = logical_file_schema.fields().iter().map(|field| (field.name().as_str(), field));
        let wanted: HashMap<&str, &Arc<Field>> = wanted.collect();
        let own: Vec<String> = physical_file_schema.fields().iter().map(|field| field.name().clone()).collect();
        let names = names_in_table(&own, &logical_file_schema);
        let as_read = physical_file_schema.fields().iter().zip(names).map(|(field, name)| {
            match wanted.get(name.as_str()).copied() {
                Some(wanted) if is_converted(field.data_type(), wanted.data_type()) => Arc::clone(wanted),
                Some(_) if name != *field.name() => Arc::new(field.as_ref().clone().with_name(name)),
                _ => Arc::clone(field),
            }
        });
        let as_read = Arc::new(Schema::new(as_read.collect::<Vec<_>>()));
        let inner = DefaultPhysicalExprAdapterFactory.create(Arc::clone(&logical_file_schema), Arc::clone(&as_read))?;
        Ok(Arc::new(UuidAdapter { inner, as_read, physical_file_schema }))
    }
}

#[derive(Debug)]
struct UuidAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    /// The file's columns, with UUIDs and numbers that are rounded in the table's types.
    as_read: SchemaRef,
    physical_file_schema: SchemaRef,
}

impl PhysicalExprAdapter for UuidAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DfResult<Arc<dyn PhysicalExpr>> {
        let expr = with_names_of_file(self.inner.rewrite(expr)?, &self.physical_file_schema)?;
        uuids_as_text(expr, &self.physical_file_schema, &self.as_read)
    }
}

/// Returns an expression over a file with the names that its columns have there: readers and statistics go by them.
fn with_names_of_file(expr: Arc<dyn PhysicalExpr>, file: &Schema) -> DfResult<Arc<dyn PhysicalExpr>> {
    expr.transform(|node| {
        let own = node.downcast_ref::<Column>().and_then(|column| Some((column, file.fields().get(column.index())?)));
        let Some((column, field)) = own.filter(|(column, field)| column.name() != field.name()) else {
            return Ok(Transformed::no(node));
        };
        Ok(Transformed::yes(Arc::new(Column::new(field.name(), column.index())) as Arc<dyn PhysicalExpr>))
    })
    .data()
}

/// Returns an expression over a file with its UUIDs as text, and its numbers rounded, where that is how they are read.
pub(crate) fn uuids_as_text(
    expr: Arc<dyn PhysicalExpr>,
    file: &Schema,
    as_read: &Schema,
) -> DfResult<Arc<dyn PhysicalExpr>> {
    expr.transform(|node| {
        let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
        let place = column.index();
        let (Some(stored), Some(wanted)) = (file.fields().get(place), as_read.fields().get(place)) else {
            return Ok(Transformed::no(node));
        };
        let (stored, wanted) = (stored.data_type(), wanted.data_type());
        if !is_converted(stored, wanted) {
            return Ok(Transformed::no(node));
        }
        let conversion = Arc::new(value_conversion(wanted, false));
        let converted = ScalarFunctionExpr::try_new(conversion, vec![node], file, Arc::new(ConfigOptions::default()))?;
        Ok(Transformed::yes(Arc::new(converted) as Arc<dyn PhysicalExpr>))
    })
    .data()
}

/// Whether a file's values become a table's by a conversion of ours.
fn is_converted(stored: &DataType, wanted: &DataType) -> bool {
    is_uuid_as_text(stored, wanted) || is_rounded(stored, wanted)
}

/// Whether a file has numbers of which those of a table are rounded: Arrow's cast cuts a fraction off.
fn is_rounded(stored: &DataType, wanted: &DataType) -> bool {
    stored.is_numeric() && wanted.is_numeric() && converts_otherwise(stored, wanted)
}

/// Returns whether a file has UUIDs of 16 bytes, also inside of lists, structures and maps, where a table has text.
pub(crate) fn is_uuid_as_text(stored: &DataType, wanted: &DataType) -> bool {
    match (stored, wanted) {
        (DataType::FixedSizeBinary(16), wanted) => wanted.is_string(),
        (stored, wanted) => {
            types_of_parts(stored, wanted).into_iter().any(|(stored, wanted)| is_uuid_as_text(stored, wanted))
        }
    }
}

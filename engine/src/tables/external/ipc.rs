//! Arrow IPC files, of the file format and of the stream format side by side, their columns by name.
//!
//! DataFusion's own reader takes every file of a scan for what the first one is, and columns by position: a folder
//! whose files differ in either would be read wrong.

use std::any::Any;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;

use super::column_merge::{UnlikeTypes, merged_columns};
use super::file_columns::{ColumnPlaces, is_json_text, plain_type, table_columns, table_names};
use super::file_streams::{EachBatch, ScanReader};
use super::ipc_blocks::IpcBlocks;
use super::ipc_messages::CheckedStream;
use super::row_bytes::BoundedBatches;
use super::{LocatedFile, OpenSourceFile, open};
use crate::error::{EngineError, Result, find_cause, store_error_in};
use crate::functions::rows_with_aligned_intervals;

/// What a file of the file format begins with.
const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// Files whose schemas are read while a statement is planned whose reader takes dictionaries.
const DICTIONARY_FILES: usize = 64;

type IpcBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The merged schema of files. Errors: `bad_data`. Blocks.
pub(crate) fn infer_ipc(files: &[LocatedFile], unlike: UnlikeTypes) -> Result<SchemaRef> {
    // Of a table that declares its columns only that its files are Arrow is to be known.
    let looked_at = if unlike == UnlikeTypes::Declared { files.get(..1).unwrap_or(files) } else { files };
    let schemas = looked_at.iter().map(|file| Ok(table_columns(&open_ipc(file, None)?.0)));
    let schemas = schemas.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(merged_columns(looked_at, &schemas, unlike)?))
}

/// Returns the columns, by their names in a table, that one of the files says hold JSON. Blocks.
pub(crate) fn ipc_json_columns(files: &[LocatedFile]) -> Result<Vec<String>> {
    let mut json = Vec::new();
    for file in files {
        let (schema, _) = open_ipc(file, None)?;
        let columns = table_names(&schema).into_iter().zip(schema.fields());
        json.extend(columns.filter(|(_, field)| is_json_text(field)).map(|(name, _)| name));
    }
    Ok(json)
}

/// The schema without encodings, which differ from file to file and say nothing about the values; any column may be null.
pub(super) fn plain_types(schema: &Schema) -> Schema {
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| Field::new(field.name(), plain_type(field.data_type()).clone(), true))
        .collect();
    Schema::new(fields)
}

/// Returns `plain` with the dictionaries that a column has in every one of the files; in plain types where there are too
/// many files to look at. Blocks.
pub(super) fn with_dictionaries(plain: &SchemaRef, files: &[LocatedFile]) -> Result<SchemaRef> {
    if files.len() > DICTIONARY_FILES {
        return Ok(Arc::clone(plain));
    }
    let schemas = files.iter().map(|file| Ok(open_ipc(file, None)?.0)).collect::<Result<Vec<_>>>()?;
    let stored_type = |schema: &SchemaRef, name: &str| {
        let place = table_names(schema).iter().position(|own| own == name)?;
        schema.fields().get(place).map(|field| field.data_type().clone())
    };
    let fields = plain.fields().iter().map(|field| {
        let mut stored = schemas.iter().map(|schema| stored_type(schema, field.name()));
        match stored.next().flatten() {
            Some(dictionary @ DataType::Dictionary(_, _))
                if plain_type(&dictionary) == field.data_type()
                    && stored.all(|other| other.as_ref() == Some(&dictionary)) =>
            {
                Arc::new(field.as_ref().clone().with_data_type(dictionary))
            }
            _ => Arc::clone(field),
        }
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Reads a file's rows as columns of `wanted`, by name; one that the file lacks is null. Ends early when `each` says
/// so by returning false. Blocks.
pub(crate) fn read_ipc(
    file: &LocatedFile,
    wanted: &Schema,
    mut each: impl FnMut(RecordBatch) -> Result<bool>,
) -> Result<()> {
    let (schema, _) = open_ipc(file, None)?;
    let places = ColumnPlaces::find(&schema, wanted);
    let (_, mut batches) = open_ipc(file, Some(places.read.clone()))?;
    while let Some(batch) = decoded(&file.path, || batches.next().transpose())? {
        for rows in BoundedBatches::new(batch) {
            let rows = rows.map_err(ArrowError::ParseError);
            let rows = rows.and_then(|rows| places.arrange(&rows)).and_then(rows_with_aligned_intervals);
            if !each(rows.map_err(|error| unfit(&file.path, &error))?)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The reader of Arrow IPC files.
#[derive(Debug)]
pub(super) struct IpcReader;

impl ScanReader for IpcReader {
    fn read_file(&self, file: &LocatedFile, wanted: &Schema, each: EachBatch<'_>) -> Result<()> {
        read_ipc(file, wanted, each)
    }
}

fn open_ipc(located: &LocatedFile, projection: Option<Vec<usize>>) -> Result<(SchemaRef, IpcBatches)> {
    let path = located.path.as_path();
    let mut file = open(located)?;
    if is_file_format(&mut file).map_err(|error| unfit(path, &ArrowError::from(error)))? {
        let reader = decoded(path, || IpcBlocks::try_new(file, projection))?;
        return Ok((reader.schema(), Box::new(reader)));
    }
    let file_bytes = file.seek(SeekFrom::End(0)).and_then(|bytes| file.rewind().map(|()| bytes));
    let file_bytes = file_bytes.map_err(|error| unfit(path, &ArrowError::from(error)))?;
    let stream = CheckedStream::new(BufReader::new(file), file_bytes);
    let reader = decoded(path, || StreamReader::try_new(stream, projection))?;
    Ok((reader.schema(), Box::new(reader)))
}

/// Returns what a decoder makes of a file. Arrow's panics at some of what a damaged file holds, such as numbers of no bits.
fn decoded<T>(path: &Path, decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| unfit(path, &error)),
        Err(panic) => Err(match EngineError::from_panic(panic.as_ref()) {
            EngineError::Internal(said) => {
                let detail = match says_wide_integers(&said) {
                    true => WIDE_INTEGERS,
                    false => "not Arrow IPC as expected: its data cannot be decoded",
                };
                EngineError::BadData { location: path.display().to_string(), detail: detail.to_owned() }
            }
            known => known,
        }),
    }
}

/// What is wrong with a file of which [`has_wide_integers`] holds.
pub(super) const WIDE_INTEGERS: &str = "holds integers of 128 bits, which Arrow has no type for; in Polars cast them to \
                                        Decimal or to whole numbers of 64 bits";

/// Returns whether reading a schema panicked at integers of 128 bits (arrow-ipc 58, `convert.rs`).
pub(super) fn has_wide_integers(panic: &(dyn Any + Send)) -> bool {
    matches!(EngineError::from_panic(panic), EngineError::Internal(said) if says_wide_integers(&said))
}

fn says_wide_integers(panic: &str) -> bool {
    panic.contains("bit width of 128")
}

fn is_file_format(file: &mut OpenSourceFile) -> std::io::Result<bool> {
    let mut magic = Vec::with_capacity(FILE_MAGIC.len());
    file.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(magic == FILE_MAGIC)
}

fn unfit(path: &Path, error: &ArrowError) -> EngineError {
    if let Some(said) = store_error_in(error) {
        return said;
    }
    if let Some(EngineError::ServerMemory { detail }) = find_cause::<EngineError>(error) {
        return EngineError::ServerMemory { detail: detail.clone() };
    }
    EngineError::BadData { location: path.display().to_string(), detail: format!("not Arrow IPC as expected: {error}") }
}

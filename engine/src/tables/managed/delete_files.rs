//! Writes DuckLake's delete files: the path of a data file and the positions of its deleted rows, sorted, as DuckDB does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use querent_catalog::{
    ChecksumWriter, DataFile, DeletedRows, NewDeleteFile, PageChecksum, announce_uncommitted, forget_uncommitted,
};
use uuid::Uuid;

use super::deletes::file_positions;
use super::write::{footer_size, io_error, parquet_error, remove, sync_folder};
use crate::error::{EngineError, Result};
use crate::stores::TableFiles;
use crate::tables::external::blocking;

/// The reserved field ids of Iceberg, by which a delete file's columns are known.
const COLUMNS: [(&str, DataType, &str); 2] =
    [("file_path", DataType::Utf8, "2147483546"), ("pos", DataType::Int64, "2147483545")];
/// The rows of a batch that is written.
const BATCH_ROWS: usize = 1 << 16;

/// Positions of rows that a statement deletes, by the id of their file.
pub(crate) type DeletedPositions = BTreeMap<i64, BTreeSet<u64>>;

/// Delete files that are written; removed again unless kept.
pub(crate) struct WrittenDeletes {
    place: Arc<TableFiles>,
    deleted: Vec<DeletedRows>,
}

impl WrittenDeletes {
    /// Returns what the transaction has to record.
    pub(crate) fn deleted(&self) -> Vec<DeletedRows> {
        self.deleted.clone()
    }

    /// Keeps the files: they are committed, or may be.
    pub(crate) fn keep(mut self) {
        let kept = self.deleted.drain(..).filter_map(|deleted| deleted.delete_file);
        kept.for_each(|file| forget_uncommitted(&file.path));
    }
}

impl Drop for WrittenDeletes {
    fn drop(&mut self) {
        let written = self.deleted.drain(..).filter_map(|deleted| deleted.delete_file).map(|file| file.path);
        match self.place.as_ref() {
            TableFiles::Local(_) => written.for_each(|path| remove(&path)),
            TableFiles::Remote(lake) => {
                let left: Vec<PathBuf> = written.collect();
                left.iter().for_each(|file| forget_uncommitted(file));
                if !left.is_empty() {
                    lake.remove_later(left);
                }
            }
        }
    }
}

/// Writes a delete file for each data file of `files` that `positions` names; one of which no row is left needs none. The files
/// lie in `location`, the table's folder in `place`. Errors: where the data files are not those that the positions are of.
pub(crate) async fn write_delete_files(
    place: Arc<TableFiles>,
    location: &Path,
    files: Vec<DataFile>,
    mut positions: DeletedPositions,
) -> Result<WrittenDeletes> {
    let mut written = WrittenDeletes { place, deleted: Vec::new() };
    for file in files {
        let Some(new) = positions.remove(&file.id) else { continue };
        let named = file.path.display().to_string();
        let mut all = file_positions(file.deletes.file, file.deletes.file_rows, &named, &written.place).await?;
        all.extend(new);
        // Positions that DuckDB keeps in the catalog stay there: it reads them with those of the file, each once.
        let kept: BTreeSet<u64> =
            file.deletes.positions.into_iter().filter(|position| !all.contains(position)).collect();
        let delete_file = match (all.len() + kept.len()) as u64 == file.row_count {
            true => None,
            false => Some(write_delete_file(&written.place, location, named, all).await?),
        };
        written.deleted.push(DeletedRows { file_id: file.id, delete_file });
    }
    match positions.first_key_value() {
        None => Ok(written),
        Some((id, _)) => Err(EngineError::Internal(format!("rows of file {id} are deleted, which the table has not"))),
    }
}

/// Writes one delete file where the lake keeps its files; into an object store it goes from the local disk, as data files do.
async fn write_delete_file(
    place: &TableFiles,
    location: &Path,
    data_file: String,
    positions: BTreeSet<u64>,
) -> Result<NewDeleteFile> {
    let write = |folder: PathBuf| blocking(move || write_positions(&folder, &data_file, &positions));
    match place {
        TableFiles::Local(_) => write(location.to_path_buf()).await,
        TableFiles::Remote(lake) => {
            let spool = lake.new_spool().await?;
            let mut file = write(spool.path().to_path_buf()).await?;
            let content = tokio::fs::read(&file.path).await.map_err(|source| io_error(&file.path, source))?;
            forget_uncommitted(&file.path);
            file.path = location.join(file.path.file_name().unwrap_or_default());
            announce_uncommitted(&file.path);
            match lake.put_new(&file.path, Bytes::from(content)).await {
                Ok(()) => Ok(file),
                Err(error) => {
                    forget_uncommitted(&file.path);
                    Err(error)
                }
            }
        }
    }
}

/// Writes one delete file into a local folder. Blocks.
fn write_positions(location: &Path, data_file: &str, positions: &BTreeSet<u64>) -> Result<NewDeleteFile> {
    let path = location.join(format!("ducklake-{}-delete.parquet", Uuid::now_v7()));
    announce_uncommitted(&path);
    let written = (|| {
        #[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
        let file = File::create(&path).map_err(|source| io_error(&path, source))?;
        let schema = delete_schema();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(ChecksumWriter::new(file), Arc::clone(&schema), Some(properties))
            .map_err(|error| parquet_error(&path, &error))?;
        let all: Vec<i64> = positions.iter().filter_map(|position| i64::try_from(*position).ok()).collect();
        for part in all.chunks(BATCH_ROWS) {
            let paths = StringArray::from_iter_values(std::iter::repeat_n(data_file, part.len()));
            let batch = RecordBatch::try_new(
                Arc::clone(&schema),
                vec![Arc::new(paths), Arc::new(Int64Array::from(part.to_vec()))],
            );
            let batch = batch.map_err(|error| EngineError::Internal(error.to_string()))?;
            writer.write(&batch).map_err(|error| parquet_error(&path, &error))?;
        }
        writer.flush().map_err(|error| parquet_error(&path, &error))?;
        writer.sync().map_err(|source| io_error(&path, source))?;
        let checksum = writer.inner().checksum().to_string();
        writer.append_key_value_metadata(KeyValue::new(PageChecksum::KEY.to_owned(), checksum));
        // `into_inner` would leave out why the last bytes cannot be written.
        writer.finish().map_err(|error| parquet_error(&path, &error))?;
        let file = writer.inner().inner();
        file.sync_all().map_err(|source| io_error(&path, source))?;
        sync_folder(location)?;
        Ok(NewDeleteFile {
            path: path.clone(),
            row_count: all.len() as u64,
            file_size_bytes: file.metadata().map_err(|source| io_error(&path, source))?.len(),
            footer_size: footer_size(&path)?,
        })
    })();
    if written.is_err() {
        remove(&path);
    }
    written
}

fn delete_schema() -> SchemaRef {
    let fields = COLUMNS.map(|(name, data_type, id)| {
        let ids = [(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_owned())];
        Field::new(name, data_type, false).with_metadata(ids.into())
    });
    Arc::new(Schema::new(fields.to_vec()))
}

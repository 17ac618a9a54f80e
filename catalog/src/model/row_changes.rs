//! What a DELETE, an UPDATE or a MERGE changes of a managed table's rows: some go, others come, in one snapshot.

use std::path::PathBuf;

use super::NewDataFile;

/// The rows that go, and the files with those that come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowChanges {
    /// The files of which rows go, each once.
    pub deleted: Vec<DeletedRows>,
    /// Rows that DuckDB keeps in the catalog itself, by their places among [`super::TableContents::inlined`].
    pub inlined: Vec<u64>,
    /// Files with rows that come.
    pub added: Vec<NewDataFile>,
}

/// What becomes of one data file.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletedRows {
    /// [`super::DataFile::id`].
    pub file_id: i64,
    /// The file that names every deleted row from now on, those of the delete file before it too; `None`: no row is left.
    pub delete_file: Option<NewDeleteFile>,
}

/// A Parquet file with the positions of deleted rows, written and not committed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDeleteFile {
    /// Absolute path, inside the table's folder.
    pub path: PathBuf,
    /// Positions in the file.
    pub row_count: u64,
    /// Bytes of the file.
    pub file_size_bytes: u64,
    /// Bytes of the Parquet footer.
    pub footer_size: u64,
}

//! What is imported into which table, and what that did.

use std::collections::BTreeMap;

use querent_catalog::{FileFormat, IfExists, TableName};

use crate::tables::external::SourceReading;

/// Files to import as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRequest {
    /// A file, folder or glob: a local path, which is made absolute, or a URL of an object store or web server.
    pub source: String,
    /// `None`: the format that the file names' endings say.
    pub format: Option<FileFormat>,
    /// Reader options, as in [`querent_catalog::ExternalTable::options`].
    pub options: BTreeMap<String, String>,
    /// The table to create or to append to.
    pub table: TableName,
    /// Whether the table is external and refers to the files; otherwise their rows are copied.
    pub external: bool,
    /// What to do where the table exists; `None`: append.
    pub if_exists: Option<IfExists>,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Rows now in the table through this import (managed), or `None` (external, not counted).
    pub rows: Option<u64>,
    /// Files read.
    pub files: usize,
    /// Whether a table was created.
    pub created: bool,
    /// What was decided about how text is read.
    pub reading: Option<SourceReading>,
    /// The lines that were set aside, and the table that they are in.
    pub rejects: Option<(u64, TableName)>,
}

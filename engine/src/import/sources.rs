//! What a local source holds, for who sends it elsewhere or makes several tables of it: its files, the sheets of a workbook.
//! It is asked of the same code that imports, so that both see the same.

use std::path::{Path, PathBuf};

use querent_catalog::FileFormat;

use crate::error::Result;
use crate::tables::external::{self, blocking};

/// Returns the names of the sheets of a local workbook that hold something, in their order. Errors: `bad_data`.
pub async fn workbook_sheets(path: &Path) -> Result<Vec<String>> {
    let path = path.to_owned();
    blocking(move || external::sheets_with_cells(&path, Box::new(external::open_local(&path)?))).await
}

/// Returns the format and the files, in their order, that an import of a local file, folder or glob reads; its path is absolute.
/// Errors: `no_files`, `bad_data`, `location_not_allowed`.
pub async fn source_files(source: &str, format: Option<FileFormat>) -> Result<(FileFormat, Vec<PathBuf>)> {
    let source = source.to_owned();
    blocking(move || external::format_and_files(&source, format)).await
}

//! Names in SQL: how they compare and how they are quoted.

/// The column of a row's file, by its id in the catalog.
pub(crate) const FILE_COLUMN: &str = "__querent_file";
/// The column of a row's position in its file.
pub(crate) const POSITION_COLUMN: &str = "__querent_position";

/// Returns whether two names are the same without regard to case.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}

/// Returns the name in double quotes, as SQL has it.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! Names in SQL: how they compare and how they are quoted.

/// Returns whether two names are the same without regard to case.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}

/// Returns the name in double quotes, as SQL has it.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

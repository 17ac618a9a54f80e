//! The columns that conditions and masks name, and their table. Their texts are SQL, which whoever opens the catalog knows how
//! to read.

use std::cell::Cell;
use std::sync::OnceLock;

/// What a name in an expression is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// A column of the table.
    Column,
    /// The table, before one of its columns.
    Table,
}

/// Returns an expression with the names in it put in order: what the function returns of one takes its place. `None` where the
/// text cannot be told apart.
pub type ColumnRewriter = fn(expression: &str, renamed: &dyn Fn(PolicyName, &str) -> Option<String>) -> Option<String>;

static REWRITER: OnceLock<ColumnRewriter> = OnceLock::new();

/// Says how expressions of policies are read. Where nobody has, they do not follow columns that are renamed.
pub fn read_policies_with(rewriter: ColumnRewriter) {
    // Whoever says it again says the same.
    let _ = REWRITER.set(rewriter);
}

/// Puts the new names of columns and of their table (old, new) into an expression, which stays as it is where it cannot be read.
pub(super) fn with_renamed(expression: &str, columns: &[(String, String)], (known, table): (&str, &str)) -> String {
    let renamed = |of: PolicyName, name: &str| match of {
        PolicyName::Column => {
            let found = columns.iter().find(|(old, _)| old.to_lowercase() == name.to_lowercase());
            found.map(|(_, new)| new.clone())
        }
        PolicyName::Table => (name.to_lowercase() == known.to_lowercase() && known != table).then(|| table.to_owned()),
    };
    let rewritten = REWRITER.get().and_then(|rewriter| rewriter(expression, &renamed));
    rewritten.unwrap_or_else(|| expression.to_owned())
}

/// Returns whether an expression names a column, or cannot be read and may.
pub(super) fn may_name(expression: &str, column: &str) -> bool {
    let (column, found) = (column.to_lowercase(), Cell::new(false));
    let look = |of: PolicyName, name: &str| {
        found.set(found.get() || (of == PolicyName::Column && name.to_lowercase() == column));
        None
    };
    let read = REWRITER.get().and_then(|rewriter| rewriter(expression, &look));
    found.get() || (read.is_none() && expression.to_lowercase().contains(&column))
}

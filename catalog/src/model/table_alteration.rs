//! What ALTER TABLE changes of a managed table.

use arrow_schema::Field;

/// One change of a table's columns or name.
#[derive(Debug, Clone, PartialEq)]
pub enum TableAlteration {
    /// A column behind the others, null in the rows that are there.
    AddColumn {
        /// Its name and type.
        field: Field,
        /// Whether it may be there already.
        if_missing: bool,
    },
    /// A column goes, with what it held.
    DropColumn {
        /// Its name.
        column: String,
        /// Whether it may be gone already.
        if_exists: bool,
    },
    /// A column gets another name.
    RenameColumn {
        /// Its name until now.
        column: String,
        /// Its new name.
        to: String,
    },
    /// The table gets another name, in its database.
    RenameTable {
        /// Its new name.
        to: String,
    },
}

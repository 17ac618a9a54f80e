//! Keys of tables: primary keys and unique constraints, as their definitions say, and foreign keys. None is enforced.

use super::{TableFilter, TableName};

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// `PRIMARY KEY`.
    Primary,
    /// `UNIQUE`.
    Unique,
    /// `REFERENCES`, or a declared relationship.
    Foreign,
}

impl KeyKind {
    /// The kind as `information_schema` spells it.
    pub fn constraint_type(self) -> &'static str {
        match self {
            KeyKind::Primary => "PRIMARY KEY",
            KeyKind::Unique => "UNIQUE",
            KeyKind::Foreign => "FOREIGN KEY",
        }
    }
}

/// A primary key or unique constraint of a new table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// Its name; `None` for one made of the names of the table and the columns.
    pub name: Option<String>,
    /// Whether it is the primary key, whose columns hold no nulls.
    pub is_primary: bool,
    /// Its columns, in order.
    pub columns: Vec<String>,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyConstraint {
    /// The table that has it.
    pub table: TableName,
    /// Its name, unique within the table.
    pub name: String,
    /// Its kind.
    pub kind: KeyKind,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// For a foreign key, the columns that it refers to.
    pub referred: Option<ReferredKey>,
}

/// The columns that a foreign key refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferredKey {
    /// Their table.
    pub table: TableName,
    /// One for each column of the foreign key.
    pub columns: Vec<String>,
    /// The primary key or unique constraint that these columns are, if there is one.
    pub key: Option<String>,
    /// The columns of `key`, in its own order; empty without one.
    pub key_columns: Vec<String>,
}

/// Which keys to list. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// Only keys of these tables.
    pub table: TableFilter,
    /// Only foreign keys that refer to these tables; `None` for all keys.
    pub referred: Option<TableFilter>,
    /// Only these kinds; empty means all.
    pub kinds: Vec<KeyKind>,
}

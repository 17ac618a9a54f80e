//! What ALTER TABLE changes of a managed table.

use arrow_schema::{DataType, Field};

use super::{ColumnDefault, ForeignKey, ManagedTable, SortedByKey, UniqueKey};

/// One change of a table's columns or name.
#[derive(Debug, Clone, PartialEq)]
pub enum TableAlteration {
    /// A column behind the others.
    AddColumn {
        /// Its name and type.
        field: Field,
        /// Whether it is text that holds JSON.
        is_json: bool,
        /// Whether it is text of which each value is a UUID.
        is_uuid: bool,
        /// What it is in the rows that are there, and in those that come: a value, not an expression. `None`: null.
        default: Option<String>,
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
    /// A column may hold nulls.
    DropNotNull {
        /// Its name.
        column: String,
    },
    /// A column holds no nulls.
    SetNotNull {
        /// Its name.
        column: String,
        /// The table as it was when none of its rows was null there.
        seen: ManagedTable,
    },
    /// A column is of a wider type, which holds all values of its own.
    WidenColumn {
        /// Its name.
        column: String,
        /// The new type.
        data_type: DataType,
    },
    /// A column of text holds JSON, or is text only.
    SetJson {
        /// Its name.
        column: String,
        /// Whether it holds JSON.
        is_json: bool,
    },
    /// What a column is in rows that come.
    SetDefault {
        /// Its name.
        column: String,
        /// `None`: null.
        default: Option<ColumnDefault>,
    },
    /// The order in which rows that come are written; none: as they come.
    SetSortOrder {
        /// Its keys, the most significant first.
        keys: Vec<SortedByKey>,
    },
    /// A primary key or a unique constraint, recorded and not enforced.
    AddKey {
        /// With columns of the table; those of a primary key hold no nulls.
        key: UniqueKey,
    },
    /// A foreign key, recorded and not enforced.
    AddForeignKey {
        /// With columns of the table.
        key: ForeignKey,
    },
    /// The table gets another name, in its database.
    RenameTable {
        /// Its new name.
        to: String,
    },
}

impl TableAlteration {
    /// Returns the column that holds no nulls from then on.
    pub fn filled_column(&self) -> Option<&str> {
        match self {
            Self::SetNotNull { column, .. } => Some(column),
            _ => None,
        }
    }
}

/// Whether every value of a type is one of the other, written the same in files and statistics.
pub fn is_wider_type(from: &DataType, to: &DataType) -> bool {
    let integer = |data_type: &DataType| {
        let width = data_type.primitive_width()?;
        data_type.is_integer().then(|| (data_type.is_signed_integer(), width))
    };
    match (from, to) {
        (DataType::Decimal128(from, from_scale), DataType::Decimal128(to, to_scale)) => {
            from_scale == to_scale && from < to
        }
        _ => match (integer(from), integer(to)) {
            (Some((from_signed, from)), Some((to_signed, to))) => {
                from < to && (from_signed == to_signed || (to_signed && !from_signed))
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_type_holds_all_values() {
        for (from, to) in [
            (DataType::Int8, DataType::Int16),
            (DataType::Int32, DataType::Int64),
            (DataType::UInt8, DataType::UInt32),
            (DataType::UInt32, DataType::Int64),
            (DataType::Decimal128(10, 2), DataType::Decimal128(12, 2)),
        ] {
            assert!(is_wider_type(&from, &to), "{from} to {to}");
            assert!(!is_wider_type(&to, &from), "{to} to {from}");
        }
        for (from, to) in [
            (DataType::Int32, DataType::UInt64),
            (DataType::UInt64, DataType::Int64),
            (DataType::Decimal128(10, 2), DataType::Decimal128(12, 3)),
            (DataType::Int32, DataType::Utf8),
        ] {
            assert!(!is_wider_type(&from, &to), "{from} to {to}");
        }
    }
}

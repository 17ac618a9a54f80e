//! Numbers for the values of columns, such as those that name nodes.

use std::collections::HashMap;

use arrow::array::ArrayRef;
use arrow::row::{RowConverter, SortField};

use super::all_rows::arrow_error;
use crate::bind::Result;

/// The numbers of keys, by the keys' bytes, from 0 in the order of their first appearance.
#[derive(Default)]
pub(super) struct KeyNumbers {
    known: HashMap<Box<[u8]>, u32>,
}

impl KeyNumbers {
    /// Returns how many keys there are.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of each row's key, which is its values in these columns, at least one; new keys get numbers. Null
    /// is a value like any other.
    pub(super) fn numbers(&mut self, columns: &[ArrayRef]) -> Result<Vec<u32>> {
        let fields = columns.iter().map(|array| SortField::new(array.data_type().clone())).collect();
        let rows = RowConverter::new(fields).and_then(|converter| converter.convert_columns(columns));
        Ok(rows.map_err(arrow_error)?.iter().map(|row| self.number(row.as_ref())).collect())
    }

    fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(number) = self.known.get(key) {
            return *number;
        }
        let number = self.known.len() as u32;
        self.known.insert(key.into(), number);
        number
    }
}

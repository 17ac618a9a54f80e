//! Builds the profile of a table from batches of its rows: the values of string columns as long as they are few and short,
//! and the smallest hashes of every column that may join. Its memory is bounded whatever the rows hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use querent_catalog::values::{
    MAX_SHAPES, MAX_VALUE_BYTES, MAX_VALUE_COLUMNS, MAX_VALUES, SKETCH_HASHES, value_hash, value_shape,
};
use querent_catalog::{ColumnInfo, ColumnProfile, TableInfo, TableProfile, looks_like_key};

/// The profile of a table, as far as its rows were read.
pub(super) struct TableProfiler {
    columns: Vec<ColumnProfiler>,
    /// Whether all rows of the table are added.
    pub(super) is_complete: bool,
}

struct ColumnProfiler {
    name: String,
    /// Rows by value. `None` once there are too many values or one that is too long, and where the column has no strings.
    values: Option<HashMap<String, u64>>,
    /// A value of each shape. `None` once there is a value without a shape, or too many shapes.
    shapes: Option<BTreeMap<String, String>>,
    sketch: BTreeSet<u64>,
}

impl TableProfiler {
    pub(super) fn new(table: &TableInfo) -> Self {
        let is_first = |column: &ColumnInfo| table.columns.first().is_some_and(|first| first.name == column.name);
        let wanted = table.columns.iter().filter(|column| {
            let may_join = looks_like_key(column) || is_first(column);
            column.data_type.is_string() || (column.data_type.is_integer() && may_join)
        });
        let columns = wanted.take(MAX_VALUE_COLUMNS).map(|column| ColumnProfiler {
            name: column.name.clone(),
            values: column.data_type.is_string().then(HashMap::new),
            shapes: column.data_type.is_string().then(BTreeMap::new),
            sketch: BTreeSet::new(),
        });
        Self { columns: columns.collect(), is_complete: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Adds rows, whose columns are found by name.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        for column in &mut self.columns {
            let Some(array) = batch.column_by_name(&column.name) else { continue };
            let Ok(text) = cast(array, &DataType::Utf8) else { continue };
            for value in text.as_string::<i32>().iter().flatten() {
                column.add(value);
            }
        }
    }

    pub(super) fn into_profile(self, table_id: i64, state: String) -> TableProfile {
        let is_complete = self.is_complete;
        let columns = self.columns.into_iter().map(|column| {
            let shapes = match column.values {
                Some(_) => Vec::new(),
                None => column.shapes.unwrap_or_default().into_iter().collect(),
            };
            let mut values: Vec<(String, u64)> = column.values.unwrap_or_default().into_iter().collect();
            values.sort_by(|(left, left_rows), (right, right_rows)| right_rows.cmp(left_rows).then(left.cmp(right)));
            ColumnProfile {
                name: column.name,
                values,
                shapes,
                is_complete,
                sketch: column.sketch.into_iter().collect(),
            }
        });
        TableProfile { table_id, state, columns: columns.collect() }
    }
}

impl ColumnProfiler {
    fn add(&mut self, value: &str) {
        let hash = value_hash(value);
        let is_small = self.sketch.len() < SKETCH_HASHES || self.sketch.last().is_some_and(|last| hash < *last);
        if is_small && self.sketch.insert(hash) && self.sketch.len() > SKETCH_HASHES {
            self.sketch.pop_last();
        }
        if value.trim().is_empty() {
            return;
        }
        self.add_shape(value);
        let Some(values) = &mut self.values else { return };
        if let Some(rows) = values.get_mut(value) {
            *rows += 1;
        } else if value.len() > MAX_VALUE_BYTES || values.len() == MAX_VALUES {
            self.values = None;
        } else {
            values.insert(value.to_owned(), 1);
        }
    }

    fn add_shape(&mut self, value: &str) {
        let Some(shapes) = &mut self.shapes else { return };
        match value_shape(value) {
            Some(shape) if shapes.contains_key(&shape) => {}
            Some(shape) if shapes.len() < MAX_SHAPES => {
                shapes.insert(shape, value.to_owned());
            }
            Some(_) | None => self.shapes = None,
        }
    }
}

//! Records that were set aside because they cannot be read: where they are, and what is wrong with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parking_lot::Mutex;

use crate::error::{EngineError, Result};

/// The most records that are set aside. A file with more is not what its options say.
const MOST_REJECTS: usize = 100_000;
/// The bytes of a value that are kept.
const LONGEST_VALUE: usize = 1 << 10;

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject {
    pub file: String,
    /// From 1, as an editor counts.
    pub line: u64,
    pub column: Option<String>,
    /// The value, or the whole line where its fields cannot be told apart.
    pub value: String,
    pub error: String,
}

/// The records that were set aside so far; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejects {
    all: Arc<Mutex<Vec<Reject>>>,
    /// What files are called that were sent, by their paths.
    names: Arc<BTreeMap<String, String>>,
}

impl Rejects {
    /// Returns none so far, of files that their sender calls by these names.
    pub(crate) fn of_files(names: BTreeMap<String, String>) -> Self {
        Self { all: Arc::default(), names: Arc::new(names) }
    }

    /// Adds a record. Errors: there are too many.
    pub(crate) fn add(&self, mut reject: Reject) -> Result<()> {
        if let Some(name) = self.names.get(&reject.file) {
            reject.file.clone_from(name);
        }
        let mut all = self.all.lock();
        if all.len() == MOST_REJECTS {
            return Err(EngineError::BadData {
                location: format!("{}, line {}", reject.file, reject.line),
                detail: format!("more than {MOST_REJECTS} lines cannot be read; the last: {}", reject.error),
            });
        }
        let mut value = reject.value;
        if value.len() > LONGEST_VALUE {
            value.truncate(value.floor_char_boundary(LONGEST_VALUE));
            value.push_str("...");
        }
        all.push(Reject { value, ..reject });
        Ok(())
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Returns the columns of [`Self::batch`].
    pub(crate) fn schema() -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let line = Field::new("line", DataType::Int64, true);
        Arc::new(Schema::new(vec![text("file"), line, text("column"), text("value"), text("error")]))
    }

    /// Returns all as rows, in the order of files and lines.
    pub(crate) fn batch(&self) -> Result<RecordBatch> {
        let mut all = self.all.lock().clone();
        all.sort_by(|left, right| (&left.file, left.line).cmp(&(&right.file, right.line)));
        let text = |of: fn(&Reject) -> Option<&str>| -> ArrayRef {
            Arc::new(all.iter().map(|reject| of(reject).map(str::to_owned)).collect::<StringArray>())
        };
        let lines = all.iter().map(|reject| i64::try_from(reject.line).unwrap_or(i64::MAX));
        let columns = vec![
            text(|reject| Some(&reject.file)),
            Arc::new(lines.map(Some).collect::<Int64Array>()) as ArrayRef,
            text(|reject| reject.column.as_deref()),
            text(|reject| Some(&reject.value)),
            text(|reject| Some(&reject.error)),
        ];
        Ok(RecordBatch::try_new(Self::schema(), columns)?)
    }
}

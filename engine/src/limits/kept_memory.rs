//! What an engine keeps for queries to come, and gives back to those that run.

use std::sync::Arc;

use crate::column_cache::ColumnCache;
use crate::plan_cache::ResultCache;

/// See the module.
#[derive(Debug)]
pub(crate) struct KeptMemory {
    columns: Arc<ColumnCache>,
    results: Arc<ResultCache>,
}

impl KeptMemory {
    pub(crate) fn new(columns: Arc<ColumnCache>, results: Arc<ResultCache>) -> Arc<Self> {
        Arc::new(Self { columns, results })
    }

    /// Returns the bytes that are kept.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.columns.reserved_bytes() + self.results.reserved_bytes()
    }

    /// Gives back at least `wanted` bytes, or all that there are, columns first; returns how many.
    pub(super) fn give_way(&self, wanted: usize) -> usize {
        let freed = self.columns.give_way(wanted);
        match wanted.saturating_sub(freed) {
            0 => freed,
            more => freed + self.results.give_way(more),
        }
    }
}

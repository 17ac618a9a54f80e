//! The tasks of upkeep by their names, for progress reports.

use super::IndexPart;
use crate::store::ObjectKind;

/// A task of upkeep, for progress reports.
#[derive(Clone, Copy)]
pub(super) enum UpkeepTask {
    Rebuild,
    Text,
    Vectors,
}

impl IndexPart {
    /// What a task is called.
    pub(super) fn task(&self, work: UpkeepTask) -> &'static str {
        match (self.kind, work) {
            (ObjectKind::Table, UpkeepTask::Rebuild) => "rebuilding the schema index",
            (ObjectKind::Column, UpkeepTask::Rebuild) => "rebuilding the schema index of columns",
            (ObjectKind::Table, UpkeepTask::Text) => "indexing tables for search",
            (ObjectKind::Column, UpkeepTask::Text) => "indexing columns for search",
            (ObjectKind::Table, UpkeepTask::Vectors) => "embedding tables for search",
            (ObjectKind::Column, UpkeepTask::Vectors) => "embedding columns for search",
        }
    }
}

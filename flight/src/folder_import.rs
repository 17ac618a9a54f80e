//! The report of a folder import as lines of JSON: one a folder, and a summary at the end. The server sends these lines,
//! and the command line reads and prints them.

use querent_catalog::TableName;
use querent_engine::{TreeEvent, TreeStep, TreeSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of the report.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TreeLine {
    /// What was done about a folder.
    Folder(FolderLine),
    /// How many folders had which outcome: the last line of an import that finished.
    Summary(TreeSummary),
    /// Why the import ended early: the last line of an import that failed.
    Error {
        /// The error object of any other response.
        error: Value,
    },
}

/// What was done about a folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FolderLine {
    folder: String,
    database: Option<String>,
    table: Option<String>,
    step: FolderStep,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FolderStep {
    Registered,
    Refreshed,
    Unchanged,
    Dropped,
    Skipped,
}

impl TreeLine {
    /// Returns the line with its line feed.
    pub(crate) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|line| line + "\n")
    }
}

impl From<TreeEvent> for TreeLine {
    fn from(event: TreeEvent) -> Self {
        let (step, reason) = match event.step {
            TreeStep::Registered => (FolderStep::Registered, None),
            TreeStep::Refreshed => (FolderStep::Refreshed, None),
            TreeStep::Unchanged => (FolderStep::Unchanged, None),
            TreeStep::Dropped => (FolderStep::Dropped, None),
            TreeStep::Skipped { reason } => (FolderStep::Skipped, Some(reason)),
        };
        let (database, table) = event.table.map(|name| (name.database, name.table)).unzip();
        Self::Folder(FolderLine { folder: event.folder, database, table, step, reason })
    }
}

impl From<FolderLine> for TreeEvent {
    fn from(line: FolderLine) -> Self {
        let FolderLine { folder, database, table, step, reason } = line;
        let step = match step {
            FolderStep::Registered => TreeStep::Registered,
            FolderStep::Refreshed => TreeStep::Refreshed,
            FolderStep::Unchanged => TreeStep::Unchanged,
            FolderStep::Dropped => TreeStep::Dropped,
            FolderStep::Skipped => TreeStep::Skipped { reason: reason.unwrap_or_default() },
        };
        let table = database.zip(table).map(|(database, table)| TableName::new(database, table));
        Self { folder, table, step }
    }
}

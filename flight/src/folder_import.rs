//! The import of a tree as lines of JSON: one a folder as it is decided, the numbers last. The server answers with them,
//! and the command line prints them.

use querent_catalog::TableName;
use querent_engine::{TreeEvent, TreeStep, TreeSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TreeLine {
    /// What was done about a folder.
    Folder(FolderLine),
    /// How many folders were what: the last line.
    Summary(TreeSummary),
    /// Why the import ended early: the last line.
    Error {
        /// As of any response.
        error: Value,
    },
}

/// What was done about a folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FolderLine {
    folder: String,
    database: Option<String>,
    table: Option<String>,
    step: Step,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Registered,
    Refreshed,
    Unchanged,
    Dropped,
    Skipped,
}

impl TreeLine {
    /// The line, with its end.
    pub(crate) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|line| line + "\n")
    }
}

impl From<TreeEvent> for TreeLine {
    fn from(event: TreeEvent) -> Self {
        let (step, reason) = match event.step {
            TreeStep::Registered => (Step::Registered, None),
            TreeStep::Refreshed => (Step::Refreshed, None),
            TreeStep::Unchanged => (Step::Unchanged, None),
            TreeStep::Dropped => (Step::Dropped, None),
            TreeStep::Skipped { reason } => (Step::Skipped, Some(reason)),
        };
        let (database, table) = event.table.map(|name| (name.database, name.table)).unzip();
        Self::Folder(FolderLine { folder: event.folder, database, table, step, reason })
    }
}

impl From<FolderLine> for TreeEvent {
    fn from(line: FolderLine) -> Self {
        let FolderLine { folder, database, table, step, reason } = line;
        let step = match step {
            Step::Registered => TreeStep::Registered,
            Step::Refreshed => TreeStep::Refreshed,
            Step::Unchanged => TreeStep::Unchanged,
            Step::Dropped => TreeStep::Dropped,
            Step::Skipped => TreeStep::Skipped { reason: reason.unwrap_or_default() },
        };
        let table = database.zip(table).map(|(database, table)| TableName::new(database, table));
        Self { folder, table, step }
    }
}

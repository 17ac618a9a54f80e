//! `OPTIMIZE` as it is carried out: the rows of some files into new ones, and one commit in which these take their places.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use querent_catalog::{DeletedRows, ManagedTable, ResolvedTable, RowChanges, TableSource, first_damaged_file};

use super::Session;
use super::apply_write::not_null;
use super::sorted_rows::sorted_rows;
use crate::error::{EngineError, Result};
use crate::limits::Interrupt;
use crate::tables::managed;

impl Session {
    /// Writes the rows of `input`, which are those of `files` (their ids), in the table's order, and has them take the files' places.
    /// Earlier snapshots keep the files. Returns how many rows were written. Errors: `conflict` where somebody else changed rows of
    /// one of the files.
    pub(super) async fn merge_files(
        &self,
        target: &ResolvedTable,
        files: &[i64],
        input: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<u64> {
        let TableSource::Managed(table) = &target.source else {
            return Err(EngineError::Internal(format!("OPTIMIZE of `{}`", target.info.name)));
        };
        if files.is_empty() {
            return Ok(0);
        }
        self.require_as_written(table, files).await?;
        let catalog = Arc::clone(self.engine().catalog());
        let write_schema = catalog.tables().write_schema(table).await?;
        let order = catalog.tables().sort_order(table).await?;
        let input = sorted_rows(input, &order, &target.info.columns, 0);
        let rows = not_null(self.execute_query(&input, interrupt).await?, &write_schema);
        let added = managed::write_files(self.engine().table_files(), &table.location, write_schema, rows).await?;
        let deleted = files.iter().map(|id| DeletedRows { file_id: *id, delete_file: None }).collect();
        let changes = RowChanges { deleted, inlined: Vec::new(), added: added.clone() };
        let table = table.clone();
        let written = self
            .engine()
            .commit_files(added, async move {
                catalog.tables().change_rows(&table, changes).await?;
                Ok(true)
            })
            .await?;
        // The vectors are in other files now, which no index of them covers.
        self.engine().queue_changed_table(target.info.name.clone());
        Ok(written.unwrap_or_default())
    }

    /// Returns an error where one of these files of a table is not as it was written: what is wrong with it would be in a new file,
    /// whose checksum says that it is right. Files in an object store have the store's own checksums.
    async fn require_as_written(&self, table: &ManagedTable, files: &[i64]) -> Result<()> {
        if self.engine().table_files().remote().is_some() {
            return Ok(());
        }
        let merged: BTreeSet<i64> = files.iter().copied().collect();
        let contents = self.engine().catalog().tables().contents(table, &[]).await?;
        let read = contents.files.into_iter().filter(|file| merged.contains(&file.id));
        let paths = read.flat_map(|file| [Some(file.path), file.deletes.file]).flatten().collect();
        let Some(damaged) = first_damaged_file(paths).await? else { return Ok(()) };
        let name = damaged.file_name().unwrap_or_default().to_string_lossy();
        Err(EngineError::Execution {
            message: format!(
                "the file {name} is not as it was written, and is not merged with others; `querent check --contents` says which \
                 are damaged, and a backup has them"
            ),
        })
    }
}

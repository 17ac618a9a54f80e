//! The table of the lines that a reader set aside: a managed one, beside the table that was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use querent_catalog::policy::{Privilege, Rights};
use querent_catalog::{CatalogError, Created, IfExists, Principal, TableName, TableSource};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::policy::require_privilege;
use crate::tables::external::{Rejects, known_options};
use crate::tables::managed;

/// Where set-aside lines go, decided before anything is committed.
pub(crate) struct RejectsTable<'r> {
    name: TableName,
    rejects: &'r Rejects,
    /// Whether the lines are added to those of the imports before.
    appends: bool,
}

impl<'r> RejectsTable<'r> {
    /// Returns the table of the option `rejects`, or `NAME_rejects`. One of an earlier import is replaced, or grows with
    /// `appends`. Errors: another table has the name, or `who` may not write it.
    pub(crate) async fn find(
        engine: &Engine,
        who: &Principal,
        table: &TableName,
        options: &BTreeMap<String, String>,
        rejects: &'r Rejects,
        appends: bool,
    ) -> Result<Self> {
        let options = known_options(querent_catalog::FileFormat::Csv, options).unwrap_or_default();
        let own = || format!("{}_rejects", table.table);
        let name = TableName::new(&table.database, options.get("rejects").cloned().unwrap_or_else(own));
        let mut found = Self { name, rejects, appends: false };
        if rejects.len() == 0 {
            return Ok(found);
        }
        if same_name(&found.name.table, &table.table) {
            return Err(CatalogError::AlreadyExists { name: found.name.to_string(), existing: None }.into());
        }
        let admin = Principal::local_admin();
        let resolved = engine.catalog().tables().resolve(&admin, std::slice::from_ref(&found.name)).await?;
        let existing = resolved.into_iter().flatten().next();
        let privilege = if appends && existing.is_some() { Privilege::Insert } else { Privilege::Modify };
        let policies = engine.catalog().policies().current();
        let rights = Rights::new(who, &policies);
        require_privilege("the table of rejects", privilege, &found.name, None, rights)?;
        if let Some(existing) = existing {
            let is_of_rejects = matches!(existing.source, TableSource::Managed(_))
                && existing.info.arrow_schema().fields().len() == Rejects::schema().fields().len()
                && Rejects::schema()
                    .fields()
                    .iter()
                    .all(|field| existing.info.arrow_schema().index_of(field.name()).is_ok());
            if !is_of_rejects {
                return Err(CatalogError::AlreadyExists { name: found.name.to_string(), existing: None }.into());
            }
            found.appends = appends;
        }
        Ok(found)
    }

    /// Writes the lines, and returns how many they are and where.
    pub(crate) async fn write(self, engine: &Engine) -> Result<Option<(u64, TableName)>> {
        if self.rejects.len() == 0 {
            return Ok(None);
        }
        let catalog = Arc::clone(engine.catalog());
        let batch = self.rejects.batch()?;
        let schema = batch.schema();
        let rows: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::iter([Ok(batch)])));
        let name = self.name.clone();
        if self.appends {
            let who = Principal::local_admin();
            let resolved = catalog.tables().resolve(&who, std::slice::from_ref(&name)).await?;
            let Some(TableSource::Managed(table)) = resolved.into_iter().flatten().next().map(|found| found.source)
            else {
                return Err(EngineError::Execution { message: format!("`{name}` changed meanwhile") });
            };
            let schema = catalog.tables().write_schema(&table).await?;
            let files = managed::write_files(engine.table_files(), &table.location, schema, rows).await?;
            let committed = files.clone();
            let appended = async move { Ok(catalog.tables().append(&table, committed).await.map(|_| true)?) };
            engine.commit_files(files, appended).await?;
        } else {
            let draft = catalog.tables().draft(&name, &schema, None).await?;
            let schema = Arc::clone(&draft.write_schema);
            let files = managed::write_files(engine.table_files(), &draft.location, schema, rows).await?;
            let committed = files.clone();
            let created = async move {
                Ok(matches!(catalog.tables().create(draft, committed, IfExists::Replace).await?, Created::New(_)))
            };
            engine.commit_files(files, created).await?;
        }
        engine.queue_changed_table(name.clone());
        Ok(Some((self.rejects.len() as u64, name)))
    }
}

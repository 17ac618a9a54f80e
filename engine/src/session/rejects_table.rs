//! The table of the lines that a reader set aside: a managed one, beside the table that was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use querent_catalog::policy::{Privilege, Rights};
use querent_catalog::{CatalogError, Created, IfExists, Principal, ResolvedTable, TableName, TableSource};

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
    who: &'r Principal,
    /// The id of the table of an earlier import.
    earlier: Option<i64>,
    /// Whether the lines are added to those of the imports before.
    appends: bool,
}

impl<'r> RejectsTable<'r> {
    /// Returns the table of the option `rejects`, or `NAME_rejects`. One of an earlier import is replaced, or grows with
    /// `appends`. Errors: another table has the name, or `who` may not write it.
    pub(crate) async fn find(
        engine: &Engine,
        who: &'r Principal,
        table: &TableName,
        options: &BTreeMap<String, String>,
        rejects: &'r Rejects,
        appends: bool,
    ) -> Result<Self> {
        let options = known_options(querent_catalog::FileFormat::Csv, options).unwrap_or_default();
        let own = || format!("{}_rejects", table.table);
        let name = TableName::new(&table.database, options.get("rejects").cloned().unwrap_or_else(own));
        let mut found = Self { name, rejects, who, earlier: None, appends };
        if rejects.len() == 0 {
            return Ok(found);
        }
        if same_name(&found.name.table, &table.table) {
            return Err(found.taken());
        }
        let existing = found.existing(engine).await?;
        found.require(engine, if appends && existing.is_some() { Privilege::Insert } else { Privilege::Modify })?;
        if let Some(existing) = existing {
            if !is_of_rejects(&existing) {
                return Err(found.taken());
            }
            found.earlier = Some(existing.info.id);
        }
        Ok(found)
    }

    /// Writes the lines, and returns how many they are and where. Those that an import at the same time has set aside stay.
    pub(crate) async fn write(self, engine: &Engine) -> Result<Option<(u64, TableName)>> {
        if self.rejects.len() == 0 {
            return Ok(None);
        }
        let batch = self.rejects.batch()?;
        let existing = self.existing(engine).await?;
        let is_of_another = existing.as_ref().map(|table| table.info.id) != self.earlier;
        match existing {
            Some(table) if self.appends || is_of_another => self.append(engine, &table, batch).await?,
            other => {
                let if_exists = if other.is_some() { IfExists::Replace } else { IfExists::Error };
                match self.create(engine, batch.clone(), if_exists).await {
                    Err(EngineError::Catalog(CatalogError::AlreadyExists { .. })) => {
                        let table = self.existing(engine).await?.ok_or_else(|| self.taken())?;
                        self.append(engine, &table, batch).await?;
                    }
                    created => created?,
                }
            }
        }
        engine.queue_changed_table(self.name.clone());
        Ok(Some((self.rejects.len() as u64, self.name)))
    }

    async fn create(&self, engine: &Engine, batch: RecordBatch, if_exists: IfExists) -> Result<()> {
        let catalog = Arc::clone(engine.catalog());
        let draft = catalog.tables().draft(&self.name, &batch.schema(), None).await?;
        let schema = Arc::clone(&draft.write_schema);
        let files = managed::write_files(engine.table_files(), &draft.location, schema, stream_of(batch)).await?;
        let committed = files.clone();
        let created =
            async move { Ok(matches!(catalog.tables().create(draft, committed, if_exists).await?, Created::New(_))) };
        engine.commit_files(files, created).await?;
        Ok(())
    }

    async fn append(&self, engine: &Engine, existing: &ResolvedTable, batch: RecordBatch) -> Result<()> {
        let TableSource::Managed(table) = &existing.source else { return Err(self.taken()) };
        if !is_of_rejects(existing) {
            return Err(self.taken());
        }
        self.require(engine, Privilege::Insert)?;
        let (catalog, table) = (Arc::clone(engine.catalog()), table.clone());
        let schema = catalog.tables().write_schema(&table).await?;
        let files = managed::write_files(engine.table_files(), &table.location, schema, stream_of(batch)).await?;
        let committed = files.clone();
        let appended = async move { Ok(catalog.tables().append(&table, committed).await.map(|_| true)?) };
        engine.commit_files(files, appended).await?;
        Ok(())
    }

    /// Returns what has the name, whoever may see it.
    async fn existing(&self, engine: &Engine) -> Result<Option<ResolvedTable>> {
        let admin = Principal::local_admin();
        let resolved = engine.catalog().tables().resolve(&admin, std::slice::from_ref(&self.name)).await?;
        Ok(resolved.into_iter().flatten().next())
    }

    fn require(&self, engine: &Engine, privilege: Privilege) -> Result<()> {
        let policies = engine.catalog().policies().current();
        let rights = Rights::new(self.who, &policies);
        require_privilege("the table of rejects", privilege, &self.name, None, rights)
    }

    fn taken(&self) -> EngineError {
        CatalogError::AlreadyExists { name: self.name.to_string(), existing: None }.into()
    }
}

/// Whether a table is one that an import has made for such lines.
fn is_of_rejects(table: &ResolvedTable) -> bool {
    let (schema, expected) = (table.info.arrow_schema(), Rejects::schema());
    matches!(table.source, TableSource::Managed(_))
        && schema.fields().len() == expected.fields().len()
        && expected.fields().iter().all(|field| schema.index_of(field.name()).is_ok())
}

fn stream_of(batch: RecordBatch) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(batch.schema(), stream::iter([Ok(batch)])))
}

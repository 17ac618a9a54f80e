//! `Engine::import_tree`: registers a tree of folders as external tables, one for each folder of like files. A second run
//! registers what is new, refreshes what changed and drops what is gone.
//!
//! The tree is walked while tables are registered, a bounded number of folders ahead, and a few files of each folder are
//! read. A folder that cannot be a table is reported with the reason, and the import continues.

mod object_store;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use futures::{FutureExt, StreamExt, stream};
use querent_catalog::policy::{Privilege, Rights};
use querent_catalog::{
    Catalog, CatalogError, DEFAULT_DATABASE, ExternalTable, FileFormat, IfExists, NewTable, NoProgress, PageRequest,
    Principal, Progress, ResolvedTable, TableFilter, TableKind, TableName, TableSource,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::policy::allowed_location;
use crate::stores::StoreUrl;
use crate::tables::external::{self, Effort, FoundFiles, ObjectListing, TREE_OPTION};
use crate::tables::system::is_system_database;
use object_store::walk_objects;
use walk::{VisitedFolder, walk};

/// The most folders that are found and not yet registered.
const AHEAD: usize = 64;
/// The number of folders whose files are read at the same time.
const TOGETHER: usize = 8;
/// The number of tables that are registered in one snapshot, and listed at once.
const PAGE: usize = 500;

/// A tree of folders to register as external tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRequest {
    /// A folder: a local path, which is made absolute, or a URL of an object store.
    pub source: String,
    /// The database of all tables. `None`: the first folder below the source names it, and a table right in that folder is in
    /// `default`.
    pub database: Option<String>,
    /// Whether to report only what would be done.
    pub dry_run: bool,
}

/// What was found about one folder of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEvent {
    /// The folder.
    pub folder: String,
    /// The table that it is or would be.
    pub table: Option<TableName>,
    /// What was done about it.
    pub step: TreeStep,
}

/// What was done about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeStep {
    /// A new table.
    Registered,
    /// A table whose columns, format or location changed.
    Refreshed,
    /// A table that did not change; its files are found when it is read.
    Unchanged,
    /// A table whose files are gone.
    Dropped,
    /// No table.
    Skipped {
        /// Why not.
        reason: String,
    },
}

/// How many folders of a tree had which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TreeSummary {
    /// New tables.
    pub registered: u64,
    /// Tables that changed.
    pub refreshed: u64,
    /// Tables that did not.
    pub unchanged: u64,
    /// Tables whose files are gone.
    pub dropped: u64,
    /// Folders that are no table.
    pub skipped: u64,
}

impl Engine {
    /// Registers a tree of folders as external tables: each folder of like files is one, and partition folders
    /// (`key=value`) are recognised. A later run of the same tree registers what is new, refreshes what changed and drops
    /// what is gone. `report` is called for every folder. Errors: `not_allowed`, `location_not_allowed`, `no_files`.
    pub async fn import_tree(
        &self,
        principal: &Principal,
        request: TreeRequest,
        progress: Arc<dyn Progress>,
        report: &(dyn Fn(TreeEvent) + Send + Sync),
    ) -> Result<TreeSummary> {
        import_tree(self, principal, request, progress, report).boxed().await
    }
}

/// Registers the tables of a tree for `who`, who needs role `write` and has to be allowed to read the source.
async fn import_tree(
    engine: &Engine,
    who: &Principal,
    request: TreeRequest,
    progress: Arc<dyn Progress>,
    report: &(dyn Fn(TreeEvent) + Send + Sync),
) -> Result<TreeSummary> {
    super::require_import_role(who)?;
    let source = allowed_location(&request.source, who, engine).await?;
    let state = &*engine.planning_state();
    let nothing = || EngineError::NoFiles { location: source.clone(), format: "folder with".into() };
    let (root, objects) = match StoreUrl::parse(&source)? {
        Some(url) => {
            let objects = external::list_objects(state, &url).await?;
            if objects.files.is_empty() && objects.datasets.is_empty() {
                return Err(nothing());
            }
            (PathBuf::from(source.trim_end_matches('/')), Some(objects))
        }
        None => {
            if !tokio::fs::metadata(&source).await.is_ok_and(|metadata| metadata.is_dir()) {
                return Err(nothing());
            }
            (PathBuf::from(&source), None)
        }
    };
    let mark = root.display().to_string();
    let mut tree = TreeImport {
        catalog: engine.catalog(),
        who,
        request: &request,
        root,
        mark,
        report,
        summary: TreeSummary::default(),
    };
    tree.register(state, objects, &progress).await?;
    tree.drop_vanished(state).await?;
    Ok(tree.summary)
}

struct TreeImport<'a> {
    catalog: &'a Arc<Catalog>,
    who: &'a Principal,
    request: &'a TreeRequest,
    root: PathBuf,
    /// The value of [`TREE_OPTION`] in its tables.
    mark: String,
    report: &'a (dyn Fn(TreeEvent) + Send + Sync),
    summary: TreeSummary,
}

/// A folder that can be a table.
struct CandidateTable {
    folder: PathBuf,
    name: TableName,
    table: ExternalTable,
    schema: SchemaRef,
}

/// What to do about a candidate.
enum Registration {
    Create(CandidateTable),
    Replace(CandidateTable, Box<ResolvedTable>),
}

impl TreeImport<'_> {
    /// `objects` are those of a tree in an object store.
    async fn register(
        &mut self,
        state: &dyn Session,
        objects: Option<ObjectListing>,
        progress: &Arc<dyn Progress>,
    ) -> Result<()> {
        let (output, input) = mpsc::channel(AHEAD);
        let root = self.root.clone();
        let mut walking = JoinSet::new();
        match objects {
            Some(objects) => walking.spawn(async move { walk_objects(&root, objects, &output).await }),
            None => walking.spawn_blocking(move || walk(&root, &output)),
        };
        let visited = stream::unfold(input, |mut input| async move { input.recv().await.map(|next| (next, input)) });
        let (root, database, mark) = (self.root.clone(), self.request.database.clone(), self.mark.clone());
        let mut candidates = visited
            .map(|visited| candidate_table(state, &root, database.as_deref(), &mark, visited))
            .buffered(TOGETHER)
            .ready_chunks(PAGE)
            .boxed();
        let mut done = 0;
        while let Some(chunk) = candidates.next().await {
            done += chunk.len() as u64;
            progress.report("registering tables", done, 0);
            let mut registrations = Vec::new();
            for found in chunk {
                match found {
                    Ok(candidate) => registrations.extend(self.decide(state, candidate).await?),
                    Err((folder, reason)) => self.report_step(&folder, None, TreeStep::Skipped { reason }),
                }
            }
            self.apply_registrations(registrations).await?;
        }
        match walking.join_next().await {
            Some(Err(error)) => Err(EngineError::Internal(format!("file thread: {error}"))),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Compares a candidate with the catalog and returns what to do about it, if anything.
    async fn decide(&mut self, state: &dyn Session, candidate: CandidateTable) -> Result<Option<Registration>> {
        let skip = |reason: String| TreeStep::Skipped { reason };
        let database = &candidate.name.database;
        let policies = self.catalog.policies().current();
        let is_granted = Rights::new(self.who, &policies).may(Privilege::Modify, database, None);
        if is_system_database(database) || !is_granted {
            let reason = format!("database `{database}` is not this caller's to write");
            self.report_step(&candidate.folder, Some(&candidate.name), skip(reason));
            return Ok(None);
        }
        let resolved =
            self.catalog.tables().resolve(self.who, std::slice::from_ref(&candidate.name)).await?.pop().flatten();
        let Some(existing) = resolved else { return Ok(Some(Registration::Create(candidate))) };
        let own = match &existing.source {
            TableSource::External(own) if own.options.get(TREE_OPTION) == Some(&self.mark) => own.clone(),
            _ => {
                let reason = format!("`{}` is there already and is not of this tree", existing.info.name);
                self.report_step(&candidate.folder, Some(&candidate.name), skip(reason));
                return Ok(None);
            }
        };
        if own == candidate.table && existing.info.arrow_schema() == candidate.schema {
            self.report_step(&candidate.folder, Some(&candidate.name), TreeStep::Unchanged);
            return Ok(None);
        }
        let before = folder_of_table(&own);
        if before != candidate.folder && has_files(state, &own).await {
            let reason = format!("its name `{}` is already that of {}", candidate.name, before.display());
            self.report_step(&candidate.folder, Some(&candidate.name), skip(reason));
            return Ok(None);
        }
        Ok(Some(Registration::Replace(candidate, Box::new(existing))))
    }

    async fn apply_registrations(&mut self, registrations: Vec<Registration>) -> Result<()> {
        let (new, mut registrations): (Vec<Registration>, Vec<Registration>) =
            registrations.into_iter().partition(|registration| matches!(registration, Registration::Create(_)));
        if self.request.dry_run || !self.create_together(&new).await {
            // One at a time, to find out which of them cannot be registered.
            registrations.extend(new);
        }
        for registration in registrations {
            let (candidate, existing) = match registration {
                Registration::Create(candidate) => (candidate, None),
                Registration::Replace(candidate, existing) => (candidate, Some(existing)),
            };
            let step = if existing.is_some() { TreeStep::Refreshed } else { TreeStep::Registered };
            let (folder, name) = (candidate.folder.clone(), candidate.name.clone());
            if self.request.dry_run {
                self.report_step(&folder, Some(&name), step);
                continue;
            }
            match register_table(self.catalog, candidate, existing.as_deref()).await {
                Ok(()) => self.report_step(&folder, Some(&name), step),
                // The name is invalid, or was taken meanwhile.
                Err(EngineError::Catalog(
                    error @ (CatalogError::InvalidName { .. }
                    | CatalogError::AlreadyExists { .. }
                    | CatalogError::OtherKind { .. }),
                )) => {
                    self.report_step(&folder, Some(&name), TreeStep::Skipped { reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Registers new tables in one snapshot, all of them or none, and returns whether that was possible.
    async fn create_together(&mut self, new: &[Registration]) -> bool {
        let tables: Vec<NewTable> = new
            .iter()
            .map(|registration| {
                let (Registration::Create(candidate) | Registration::Replace(candidate, _)) = registration;
                NewTable {
                    name: candidate.name.clone(),
                    schema: Arc::clone(&candidate.schema),
                    comment: None,
                    column_comments: BTreeMap::new(),
                    external: Some(candidate.table.clone()),
                }
            })
            .collect();
        if self.catalog.tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await.is_err() {
            return false;
        }
        for registration in new {
            let (Registration::Create(candidate) | Registration::Replace(candidate, _)) = registration;
            self.report_step(&candidate.folder, Some(&candidate.name), TreeStep::Registered);
        }
        true
    }

    /// Drops the tree's tables whose files are gone.
    async fn drop_vanished(&mut self, state: &dyn Session) -> Result<()> {
        let filter = TableFilter {
            database: self.request.database.clone(),
            kinds: vec![TableKind::External],
            ..TableFilter::default()
        };
        let mut page = PageRequest::first(PAGE);
        loop {
            let listed = self.catalog.tables().list(self.who, &filter, page).await?;
            let names: Vec<TableName> = listed.items.into_iter().map(|summary| summary.name).collect();
            for resolved in self.catalog.tables().resolve(self.who, &names).await?.into_iter().flatten() {
                let TableSource::External(own) = resolved.source else { continue };
                let folder = folder_of_table(&own);
                if own.options.get(TREE_OPTION) != Some(&self.mark) || has_files(state, &own).await {
                    continue;
                }
                if !self.request.dry_run {
                    self.catalog.tables().drop(&resolved.info.name, &[TableKind::External], true).await?;
                }
                self.report_step(&folder, Some(&resolved.info.name), TreeStep::Dropped);
            }
            match listed.next {
                Some(next) => page = PageRequest { limit: PAGE, after: Some(next) },
                None => return Ok(()),
            }
        }
    }

    fn report_step(&mut self, folder: &Path, table: Option<&TableName>, step: TreeStep) {
        let count = match &step {
            TreeStep::Registered => &mut self.summary.registered,
            TreeStep::Refreshed => &mut self.summary.refreshed,
            TreeStep::Unchanged => &mut self.summary.unchanged,
            TreeStep::Dropped => &mut self.summary.dropped,
            TreeStep::Skipped { .. } => &mut self.summary.skipped,
        };
        *count += 1;
        (self.report)(TreeEvent { folder: folder.display().to_string(), table: table.cloned(), step });
    }
}

/// Infers a folder's schema from a few of its files. The error is the folder and why it is no table.
async fn candidate_table(
    state: &dyn Session,
    root: &Path,
    database: Option<&str>,
    mark: &str,
    visited: VisitedFolder,
) -> Result<CandidateTable, (PathBuf, String)> {
    let (folder, location, format, files) = match visited {
        VisitedFolder::Table { folder, location, format, files } => (folder, location, format, files),
        VisitedFolder::Other { folder, reason } => return Err((folder, reason)),
    };
    let name = table_name(root, &folder, database).map_err(|reason| (folder.clone(), reason))?;
    let found = FoundFiles { location, format, files };
    match external::infer_found(state, found, &Default::default(), None, &[], Effort::Quick).await {
        Ok((_, schema)) if schema.fields().is_empty() => Err((folder, "its files have no columns".into())),
        Ok((mut table, schema)) => {
            table.options.insert(TREE_OPTION.to_owned(), mark.to_owned());
            Ok(CandidateTable { folder, name, table, schema })
        }
        Err(error) => Err((folder, error.to_string())),
    }
}

/// Registers one table, and keeps the comments of the one that it replaces.
async fn register_table(catalog: &Catalog, candidate: CandidateTable, existing: Option<&ResolvedTable>) -> Result<()> {
    let CandidateTable { name, table, schema, .. } = candidate;
    catalog.databases().create(&name.database, IfExists::Ignore).await?;
    let if_exists = if existing.is_some() { IfExists::Replace } else { IfExists::Error };
    catalog.tables().create_external(&name, table, &schema, if_exists).await?;
    // Comments on the replaced table hold for the new one too.
    let Some(before) = existing else { return Ok(()) };
    if let Some(comment) = &before.info.comment {
        catalog.tables().set_comment(&name, None, Some(comment)).await?;
    }
    for column in before.info.columns.iter().filter(|column| schema.index_of(&column.name).is_ok()) {
        if let Some(comment) = &column.comment {
            catalog.tables().set_comment(&name, Some(&column.name), Some(comment)).await?;
        }
    }
    Ok(())
}

/// Returns the folder of a table of a tree: its location, or the folder of its glob.
fn folder_of_table(table: &ExternalTable) -> PathBuf {
    let location = Path::new(&table.location);
    match location.file_name().and_then(|name| name.to_str()) {
        Some(name) if name.starts_with('*') => {
            let folder = location.parent().unwrap_or(location).to_string_lossy();
            PathBuf::from(walk::unescaped(&folder))
        }
        _ => location.to_owned(),
    }
}

/// Returns whether a table's files are still there. A location that cannot be read may still hold them.
async fn has_files(state: &dyn Session, table: &ExternalTable) -> bool {
    match external::locate(state, &table.location, table.format).await {
        Ok(_) => true,
        Err(error) => !external::is_absence(&error),
    }
}

/// `ROOT/a` is table `a`; `ROOT/a/b/c` is table `b_c` of database `a`. With a database named, all are its tables, and
/// their names the whole path below the root.
fn table_name(root: &Path, folder: &Path, database: Option<&str>) -> Result<TableName, String> {
    let below = folder.strip_prefix(root).unwrap_or(Path::new(""));
    let mut parts = Vec::new();
    for part in below.components() {
        let part = part.as_os_str().to_str().ok_or("its name is not UTF-8")?;
        parts.push(part.strip_suffix(".lance").unwrap_or(part));
    }
    if parts.is_empty() {
        let own = root.file_name().and_then(|name| name.to_str()).ok_or("its name is not UTF-8")?;
        parts.push(own.strip_suffix(".lance").unwrap_or(own));
    }
    let (database, table) = match (database, parts.as_slice()) {
        (Some(database), parts) => (database.to_owned(), parts.join("_")),
        (None, [first, rest @ ..]) if !rest.is_empty() => (identifier(first, "d_"), rest.join("_")),
        (None, parts) => (DEFAULT_DATABASE.to_owned(), parts.join("_")),
    };
    Ok(TableName::new(database, identifier(&table, "t_")))
}

/// Returns a name that SQL needs no quotes for.
fn identifier(text: &str, prefix: &str) -> String {
    let name: String =
        text.to_lowercase().chars().map(|char| if char.is_alphanumeric() { char } else { '_' }).collect();
    match name.chars().next() {
        Some(first) if !first.is_numeric() => name,
        _ => format!("{prefix}{name}"),
    }
}

/// Returns formats as messages spell them.
pub(super) fn spelled(formats: impl IntoIterator<Item = FileFormat>) -> String {
    formats.into_iter().map(external::format_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_databases_and_tables() {
        let root = Path::new("/lake");
        let named = |folder: &str, database| table_name(root, Path::new(folder), database).unwrap().to_string();
        for (folder, name) in [
            ("/lake", "default.lake"),
            ("/lake/Trips", "default.trips"),
            ("/lake/sales/orders", "sales.orders"),
            ("/lake/Sales 2024/eu/orders", "sales_2024.eu_orders"),
            ("/lake/2024/1", "d_2024.t_1"),
            ("/lake/vectors.lance", "default.vectors"),
        ] {
            assert_eq!(named(folder, None), name, "{folder}");
        }
        assert_eq!(named("/lake/sales/orders", Some("raw")), "raw.sales_orders");
    }
}

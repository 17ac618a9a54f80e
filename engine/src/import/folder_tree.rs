//! `Engine::import_tree`: a tree of folders as external tables, one table a folder of like files, and what a second run
//! finds new, changed and gone.
//!
//! The tree is walked while tables are registered, a bounded number of folders ahead; of each folder a few files are
//! looked at. What cannot be a table is reported with the reason and stops nothing.

mod objects;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use futures::{StreamExt, stream};
use querent_catalog::{
    Catalog, DEFAULT_DATABASE, ExternalTable, FileFormat, IfExists, NewTable, NoProgress, PageRequest, Principal,
    Progress, ResolvedTable, Role, TableFilter, TableKind, TableName, TableSource,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::policy::allowed_location;
use crate::sql::is_system;
use crate::stores::StoreUrl;
use crate::tables::external::{self, Effort, Found, Listing, TREE_OPTION};
use crate::{Engine, EngineError, Result, TreeEvent, TreeRequest, TreeStep, TreeSummary};
use objects::walk_objects;
use walk::{Walked, walk};

/// Folders found and not yet registered.
const AHEAD: usize = 64;
/// Folders whose files are looked at together.
const TOGETHER: usize = 8;
/// Tables registered together, and listed together.
const PAGE: usize = 500;

/// Registers the tables of a tree for `who`, who may write, and read the source.
pub(crate) async fn import_tree(
    engine: &Engine,
    who: &Principal,
    request: TreeRequest,
    progress: Arc<dyn Progress>,
    report: &(dyn Fn(TreeEvent) + Send + Sync),
) -> Result<TreeSummary> {
    if who.role() < Role::Write {
        return Err(EngineError::NotAllowed {
            what: "import".into(),
            why: format!(" for role {} (needs write)", who.role().as_str()),
        });
    }
    let source = allowed_location(&request.source, who, engine).await?;
    let state = &engine.planning_state();
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
    let mut tree =
        Tree { catalog: engine.catalog(), who, request: &request, root, mark, report, summary: TreeSummary::default() };
    tree.register(state, objects, &progress).await?;
    tree.drop_vanished(state).await?;
    Ok(tree.summary)
}

struct Tree<'a> {
    catalog: &'a Arc<Catalog>,
    who: &'a Principal,
    request: &'a TreeRequest,
    root: PathBuf,
    /// What its tables carry as [`TREE_OPTION`].
    mark: String,
    report: &'a (dyn Fn(TreeEvent) + Send + Sync),
    summary: TreeSummary,
}

/// A folder that can be a table.
struct Candidate {
    folder: PathBuf,
    name: TableName,
    table: ExternalTable,
    schema: SchemaRef,
}

/// What is to be done about a candidate.
enum Todo {
    Create(Candidate),
    Replace(Candidate, Box<ResolvedTable>),
}

impl Tree<'_> {
    /// `objects` are those of a tree in an object store.
    async fn register(
        &mut self,
        state: &dyn Session,
        objects: Option<Listing>,
        progress: &Arc<dyn Progress>,
    ) -> Result<()> {
        let (output, input) = mpsc::channel(AHEAD);
        let root = self.root.clone();
        let mut walking = JoinSet::new();
        match objects {
            Some(objects) => walking.spawn(async move { walk_objects(&root, objects, &output).await }),
            None => walking.spawn_blocking(move || walk(&root, &output)),
        };
        let walked = stream::unfold(input, |mut input| async move { input.recv().await.map(|next| (next, input)) });
        let (root, database, mark) = (self.root.clone(), self.request.database.clone(), self.mark.clone());
        let mut looked_at = walked
            .map(|walked| candidate(state, &root, database.as_deref(), &mark, walked))
            .buffered(TOGETHER)
            .ready_chunks(PAGE)
            .boxed();
        let mut done = 0;
        while let Some(chunk) = looked_at.next().await {
            done += chunk.len() as u64;
            progress.report("registering tables", done, 0);
            let mut todo = Vec::new();
            for looked_at in chunk {
                match looked_at {
                    Ok(candidate) => todo.extend(self.decide(state, candidate).await?),
                    Err((folder, reason)) => self.tell(&folder, None, TreeStep::Skipped { reason }),
                }
            }
            self.carry_out(todo).await?;
        }
        match walking.join_next().await {
            Some(Err(error)) => Err(EngineError::Internal(format!("file thread: {error}"))),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// What a candidate is to the catalog as it is.
    async fn decide(&mut self, state: &dyn Session, candidate: Candidate) -> Result<Option<Todo>> {
        let skip = |reason: String| TreeStep::Skipped { reason };
        let database = &candidate.name.database;
        if is_system(database) || !self.who.may_see(database) {
            let reason = format!("database `{database}` is not this caller's to write");
            self.tell(&candidate.folder, Some(&candidate.name), skip(reason));
            return Ok(None);
        }
        let resolved =
            self.catalog.tables().resolve(self.who, std::slice::from_ref(&candidate.name)).await?.pop().flatten();
        let Some(existing) = resolved else { return Ok(Some(Todo::Create(candidate))) };
        let own = match &existing.source {
            TableSource::External(own) if own.options.get(TREE_OPTION) == Some(&self.mark) => own.clone(),
            _ => {
                let reason = format!("`{}` is there already and is not of this tree", existing.info.name);
                self.tell(&candidate.folder, Some(&candidate.name), skip(reason));
                return Ok(None);
            }
        };
        if own == candidate.table && existing.info.arrow_schema() == candidate.schema {
            self.tell(&candidate.folder, Some(&candidate.name), TreeStep::Unchanged);
            return Ok(None);
        }
        let before = own_folder(&own);
        if before != candidate.folder && still_there(state, &own).await {
            let reason = format!("its name `{}` is already that of {}", candidate.name, before.display());
            self.tell(&candidate.folder, Some(&candidate.name), skip(reason));
            return Ok(None);
        }
        Ok(Some(Todo::Replace(candidate, Box::new(existing))))
    }

    async fn carry_out(&mut self, todo: Vec<Todo>) -> Result<()> {
        let (new, mut todo): (Vec<Todo>, Vec<Todo>) =
            todo.into_iter().partition(|todo| matches!(todo, Todo::Create(_)));
        if self.request.dry_run || !self.create_together(&new).await {
            // One at a time tells which of them cannot be.
            todo.extend(new);
        }
        for todo in todo {
            let (candidate, existing) = match todo {
                Todo::Create(candidate) => (candidate, None),
                Todo::Replace(candidate, existing) => (candidate, Some(existing)),
            };
            let step = if existing.is_some() { TreeStep::Refreshed } else { TreeStep::Registered };
            let (folder, name) = (candidate.folder.clone(), candidate.name.clone());
            if self.request.dry_run {
                self.tell(&folder, Some(&name), step);
                continue;
            }
            match put(self.catalog, candidate, existing.as_deref()).await {
                Ok(()) => self.tell(&folder, Some(&name), step),
                // A name that cannot be one, or that was taken meanwhile.
                Err(EngineError::Catalog(error)) if matches!(error.code(), "invalid_name" | "already_exists") => {
                    self.tell(&folder, Some(&name), TreeStep::Skipped { reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Registers new tables in one snapshot. Returns whether that could be done: all of them, or none.
    async fn create_together(&mut self, new: &[Todo]) -> bool {
        let tables: Vec<NewTable> = new
            .iter()
            .map(|todo| {
                let (Todo::Create(candidate) | Todo::Replace(candidate, _)) = todo;
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
        for todo in new {
            let (Todo::Create(candidate) | Todo::Replace(candidate, _)) = todo;
            self.tell(&candidate.folder, Some(&candidate.name), TreeStep::Registered);
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
                let folder = own_folder(&own);
                if own.options.get(TREE_OPTION) != Some(&self.mark) || still_there(state, &own).await {
                    continue;
                }
                if !self.request.dry_run {
                    self.catalog.tables().drop(&resolved.info.name, &[TableKind::External], true).await?;
                }
                self.tell(&folder, Some(&resolved.info.name), TreeStep::Dropped);
            }
            match listed.next {
                Some(next) => page = PageRequest { limit: PAGE, after: Some(next) },
                None => return Ok(()),
            }
        }
    }

    fn tell(&mut self, folder: &Path, table: Option<&TableName>, step: TreeStep) {
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

/// Looks at a folder's files. The error is the folder and why it is no table.
async fn candidate(
    state: &dyn Session,
    root: &Path,
    database: Option<&str>,
    mark: &str,
    walked: Walked,
) -> Result<Candidate, (PathBuf, String)> {
    let (folder, location, format, files) = match walked {
        Walked::Table { folder, location, format, files } => (folder, location, format, files),
        Walked::Other { folder, reason } => return Err((folder, reason)),
    };
    let name = table_name(root, &folder, database).map_err(|reason| (folder.clone(), reason))?;
    let found = Found { location, format, files };
    match external::infer_found(state, found, &Default::default(), None, &[], Effort::Quick).await {
        Ok((_, schema)) if schema.fields().is_empty() => Err((folder, "its files have no columns".into())),
        Ok((mut table, schema)) => {
            table.options.insert(TREE_OPTION.to_owned(), mark.to_owned());
            Ok(Candidate { folder, name, table, schema })
        }
        Err(error) => Err((folder, error.to_string())),
    }
}

/// Registers one table. The catalog's own bulk registration belongs here once there is one.
async fn put(catalog: &Catalog, candidate: Candidate, existing: Option<&ResolvedTable>) -> Result<()> {
    let Candidate { name, table, schema, .. } = candidate;
    catalog.databases().create(&name.database, IfExists::Ignore).await?;
    let if_exists = if existing.is_some() { IfExists::Replace } else { IfExists::Error };
    catalog.tables().create_external(&name, table, &schema, if_exists).await?;
    // What people said about it is about the new one too.
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

/// Where a table of a tree has its files: the folder, or that of the glob.
fn own_folder(table: &ExternalTable) -> PathBuf {
    let location = Path::new(&table.location);
    match location.file_name().and_then(|name| name.to_str()) {
        Some(name) if name.starts_with('*') => {
            let folder = location.parent().unwrap_or(location).to_string_lossy();
            PathBuf::from(walk::unescaped(&folder))
        }
        _ => location.to_owned(),
    }
}

/// A place that cannot be looked at may still hold everything.
async fn still_there(state: &dyn Session, table: &ExternalTable) -> bool {
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

/// A name that SQL needs no quotes for.
fn identifier(text: &str, prefix: &str) -> String {
    let name: String =
        text.to_lowercase().chars().map(|char| if char.is_alphanumeric() { char } else { '_' }).collect();
    match name.chars().next() {
        Some(first) if !first.is_numeric() => name,
        _ => format!("{prefix}{name}"),
    }
}

/// A folder's format as its table's, for messages.
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

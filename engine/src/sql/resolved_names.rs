//! The names of one statement, resolved before it is planned: one catalog lookup for the statement's own names and
//! one for each level of views below them. Planning itself sees these tables and no others, and does no I/O.
//!
//! This is the first gate of policy: what the principal may not see does not resolve.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::view::ViewTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::file_options::file_type::FileType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion::sql::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::resolve::resolve_table_references;
use parking_lot::Mutex;
use querent_catalog::{CATALOG_NAME, Catalog, Principal, SYSTEM_DATABASE, TableName, TableSource as Source};
use querent_kql::nearest_name;

use super::catalog_table::CatalogTable;
use super::column_folding::plan_folded;
use super::date_arithmetic::expr_planners;
use super::parse::{Nesting, ParsedStatement, parse_statement};
use super::plan_notes::NamesOrigin;
use super::relation_folding::fold_relations;
use super::relations::relation_planners;
use super::restrictions::restricted_table;
use super::series;
use super::sql_types::SqlTypes;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::tables;
use crate::tables::managed::NumberedTable;
use crate::tables::system::is_system_database;
use crate::temporary::{TemporaryTables, no_session};

/// What a statement that changes rows calls the table in its query.
pub(super) const NUMBERED_TABLE: &str = "__querent_rows";
/// The one system table that needs no qualifier.
const AGENT_RUNS: &str = "agent_runs";
/// The most views that may be defined on one another.
const MAX_VIEW_DEPTH: usize = 16;
/// The stack for planning a view; the current stack is used where half of this is left on it.
const VIEW_STACK_BYTES: usize = 2 << 20;
/// The most plan nodes that one view expands to, views below it included.
const MAX_VIEW_NODES: usize = 20_000;

/// The tables of a statement, by name without regard to case.
pub(crate) struct ResolvedNames {
    entries: HashMap<NameKey, NameEntry>,
    /// The session's own tables, by names in lower case. Bare names of the statement find them first; those of views do not.
    temporary: HashMap<String, Arc<dyn TableSource>>,
    origin: NamesOrigin,
}

/// Files that a statement reads, by the names that its tree has in their places.
pub(crate) type FileSources = HashMap<String, Arc<dyn TableSource>>;

/// Tables that are no table of the catalog.
#[derive(Clone, Copy)]
pub(crate) struct OwnTables<'a> {
    /// Those of the session.
    pub(crate) temporary: Option<&'a Arc<TemporaryTables>>,
    /// Files of the statement.
    pub(crate) files: &'a FileSources,
    /// The table whose rows are read with their numbers, as [`NUMBERED_TABLE`].
    pub(crate) numbered: Option<NumberedRows<'a>>,
}

/// A table whose rows a statement changes.
#[derive(Clone, Copy)]
pub(crate) enum NumberedRows<'a> {
    Catalog(&'a TableName),
    /// One of the session.
    Temporary(&'a str),
}

/// A full name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NameKey {
    database: String,
    table: String,
}

impl NameKey {
    fn from_name(name: &TableName) -> Self {
        Self { database: name.database.to_lowercase(), table: name.table.to_lowercase() }
    }
}

enum NameEntry {
    Table(Arc<dyn TableSource>),
    View(Box<ResolvedView>),
}

struct ResolvedView {
    name: TableName,
    statement: Statement,
    nesting: Nesting,
    default_database: String,
    /// Planned when it is first scanned, since a statement may name a view without reading it.
    planned: Mutex<ViewPlan>,
}

enum ViewPlan {
    NotYet,
    InProgress,
    Done(Arc<dyn TableSource>),
}

/// A name that did not resolve, as an error within DataFusion's planner.
#[derive(Debug, thiserror::Error)]
#[error("unknown table `{0}`")]
struct UnknownTable(TableName);

/// Returns the full name that a reference stands for. Errors: a catalog other than ours.
pub(crate) fn full_name(reference: &TableReference, default_database: &str) -> Result<TableName> {
    if let Some(catalog) = reference.catalog()
        && !same_name(catalog, CATALOG_NAME)
    {
        return Err(EngineError::Plan {
            message: format!(
                "unknown catalog `{catalog}`; the catalog is `{CATALOG_NAME}`, and a table is `table`, \
                 `database.table` or `{CATALOG_NAME}.database.table`"
            ),
        });
    }
    Ok(TableName::new(reference.schema().unwrap_or(default_database), reference.table()))
}

impl ResolvedNames {
    /// Resolves what `statement` refers to, as `who` in `database`.
    pub(crate) async fn resolve(
        catalog: &Arc<Catalog>,
        state: &SessionState,
        who: &Principal,
        statement: &Statement,
        nesting: Nesting,
        database: &str,
        own: OwnTables<'_>,
    ) -> Result<Self> {
        let OwnTables { temporary: tables, files, numbered } = own;
        let mut temporary = HashMap::new();
        let mut wanted = BTreeSet::new();
        for reference in nesting.with_room(|| table_references(statement))? {
            if let (TableReference::Bare { table }, Some(source)) = (&reference, files.get(reference.table())) {
                temporary.insert(table.to_lowercase(), Arc::clone(source));
                continue;
            }
            if let (TableReference::Bare { table }, Some(numbered)) = (&reference, numbered)
                && table.as_ref() == NUMBERED_TABLE
            {
                if let NumberedRows::Catalog(name) = numbered {
                    wanted.insert(name.clone());
                }
                continue;
            }
            match (&reference, tables.and_then(|tables| tables.provider(reference.table()))) {
                (TableReference::Bare { table }, Some(provider)) => {
                    let source = provider_as_source(Arc::new(CatalogTable::temporary(table, provider)));
                    temporary.insert(table.to_lowercase(), source);
                }
                _ => {
                    wanted.insert(full_name(&reference, database)?);
                }
            }
        }
        let names = Self::resolve_all(catalog, state, who, wanted.into_iter().collect()).await?;
        match numbered {
            None => {}
            Some(NumberedRows::Catalog(name)) => {
                let Some(entry) = names.entries.get(&NameKey::from_name(name)) else {
                    return Err(catalog.tables().not_found(who, name).await.into());
                };
                temporary.insert(NUMBERED_TABLE.to_owned(), numbered_source(catalog, state, entry, name)?);
            }
            Some(NumberedRows::Temporary(name)) => {
                let rows = tables.ok_or_else(no_session)?.numbered(name)?;
                let source = provider_as_source(Arc::new(CatalogTable::temporary(name, rows)));
                temporary.insert(NUMBERED_TABLE.to_owned(), source);
            }
        }
        Ok(Self { temporary, ..names })
    }

    /// Resolves tables by their full names.
    pub(crate) async fn resolve_all(
        catalog: &Arc<Catalog>,
        state: &SessionState,
        who: &Principal,
        wanted: Vec<TableName>,
    ) -> Result<Self> {
        let mut entries = HashMap::new();
        let mut origin = NamesOrigin::Nowhere;
        let mut wanted = wanted;
        for _ in 0..=MAX_VIEW_DEPTH {
            if wanted.is_empty() {
                return Ok(Self { entries, temporary: HashMap::new(), origin });
            }
            let level = resolve_level(catalog, state, who, wanted, &mut entries).await?;
            origin = origin.and(level.origin);
            wanted = level.below;
            wanted.retain(|name| !entries.contains_key(&NameKey::from_name(name)));
        }
        Err(EngineError::Plan { message: format!("views stand on one another more than {MAX_VIEW_DEPTH} deep") })
    }

    /// One table, and no other.
    pub(super) fn with_single(name: &TableName, source: Arc<dyn TableSource>) -> Self {
        let entries = HashMap::from([(NameKey::from_name(name), NameEntry::Table(source))]);
        Self { entries, temporary: HashMap::new(), origin: NamesOrigin::Various }
    }

    /// Returns by what the names were resolved.
    pub(super) fn origin(&self) -> NamesOrigin {
        self.origin
    }

    /// Returns the name that did not resolve, if that is what `error` is about.
    pub(crate) fn missing_in(error: &DataFusionError) -> Option<&TableName> {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Self::missing_in(inner),
            DataFusionError::Shared(inner) => Self::missing_in(inner),
            // Of both sides of a set operation.
            DataFusionError::Collection(errors) => errors.first().and_then(Self::missing_in),
            DataFusionError::External(inner) => inner.downcast_ref::<UnknownTable>().map(|missing| &missing.0),
            _ => None,
        }
    }
}

/// Returns the source of a table's rows with their numbers: none of a table of which the caller sees a part, since grants refuse
/// the statement once its role is known to be enough. Errors: it is no managed table.
fn numbered_source(
    catalog: &Arc<Catalog>,
    state: &SessionState,
    entry: &NameEntry,
    name: &TableName,
) -> Result<Arc<dyn TableSource>> {
    let resolved = match entry {
        NameEntry::Table(source) => CatalogTable::resolved_behind(source).cloned(),
        NameEntry::View(_) => None,
    };
    match resolved {
        Some(resolved) => match &resolved.source {
            Source::Managed(managed) => {
                let rows = Arc::new(NumberedTable::try_new(catalog, state, &resolved, managed)?);
                let rows: Arc<dyn TableProvider> = match &resolved.restriction {
                    None => rows,
                    Some(_) => Arc::new(EmptyTable::new(rows.schema())),
                };
                Ok(provider_as_source(Arc::new(CatalogTable::new(Some(resolved), rows))))
            }
            Source::External(_) | Source::View { .. } => Err(no_rows(name)),
        },
        None => Err(no_rows(name)),
    }
}

fn no_rows(name: &TableName) -> EngineError {
    let why = ": it is not a managed table".to_owned();
    EngineError::NotAllowed { what: format!("changing rows of `{name}`"), why }
}

/// Returns what a statement reads or inserts into, without common table expressions.
fn table_references(statement: &Statement) -> Result<Vec<TableReference>> {
    Ok(resolve_table_references(statement, false)?.0)
}

/// Returns the full names of the tables that a statement reads or inserts into.
fn references(statement: &Statement, database: &str) -> Result<Vec<TableName>> {
    let mut names = BTreeSet::new();
    for reference in table_references(statement)? {
        names.insert(full_name(&reference, database)?);
    }
    Ok(names.into_iter().collect())
}

/// Returns the tables that the text of a statement names, without common table expressions.
pub(crate) fn tables_named_in(sql: &str, database: &str) -> Result<Vec<TableName>> {
    let ParsedStatement { mut statement, nesting, .. } = parse_statement(sql)?;
    nesting.with_room(|| {
        fold_relations(&mut statement, database)?;
        references(&statement, database)
    })
}

/// What resolving names found beside their entries.
struct ResolvedLevel {
    /// The names that views refer to.
    below: Vec<TableName>,
    origin: NamesOrigin,
}

/// Adds entries for `wanted`.
async fn resolve_level(
    catalog: &Arc<Catalog>,
    state: &SessionState,
    who: &Principal,
    wanted: Vec<TableName>,
    entries: &mut HashMap<NameKey, NameEntry>,
) -> Result<ResolvedLevel> {
    let (system, stored): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|name| is_system_database(&name.database));
    let mut origin = if system.is_empty() { NamesOrigin::Nowhere } else { NamesOrigin::Various };
    for name in system {
        let key = NameKey::from_name(&name);
        if let Some(provider) = tables::system::provider(catalog, who, &key.database, &key.table) {
            entries.insert(key, NameEntry::Table(provider_as_source(Arc::new(CatalogTable::new(None, provider)))));
        }
    }

    let mut below = Vec::new();
    if stored.is_empty() {
        return Ok(ResolvedLevel { below, origin });
    }
    let (version, resolved) = catalog.tables().resolve_at(who, &stored).await?;
    origin = origin.and(NamesOrigin::Catalog(version));
    for (name, resolved) in stored.into_iter().zip(resolved) {
        let key = NameKey::from_name(&name);
        let Some(table) = resolved else {
            if key.table == AGENT_RUNS
                && let Some(provider) = tables::system::provider(catalog, who, SYSTEM_DATABASE, AGENT_RUNS)
            {
                entries.insert(key, NameEntry::Table(provider_as_source(Arc::new(CatalogTable::new(None, provider)))));
                origin = NamesOrigin::Various;
            }
            continue;
        };
        let entry = match &table.source {
            Source::View { sql, default_database } => {
                let ParsedStatement { mut statement, nesting, .. } = parse_statement(sql)?;
                below.extend(nesting.with_room(|| {
                    fold_relations(&mut statement, default_database)?;
                    references(&statement, default_database)
                })?);
                NameEntry::View(Box::new(ResolvedView {
                    name: table.info.name.clone(),
                    statement,
                    nesting,
                    default_database: default_database.clone(),
                    planned: Mutex::new(ViewPlan::NotYet),
                }))
            }
            Source::Managed(_) | Source::External(_) => {
                let provider = tables::provider(catalog, state, &table.whole(), table.restriction.is_some()).await?;
                let provider = match &table.restriction {
                    Some(restriction) => restricted_table(state, who, &table.info, restriction, provider)?,
                    None => provider,
                };
                NameEntry::Table(provider_as_source(Arc::new(CatalogTable::new(Some(table), provider))))
            }
        };
        entries.insert(key, entry);
    }
    Ok(ResolvedLevel { below, origin })
}

/// What DataFusion's SQL planner sees: resolved names, and the functions of the engine.
pub(crate) struct PlanningScope<'a> {
    pub(crate) names: &'a ResolvedNames,
    pub(crate) state: &'a SessionState,
    pub(crate) database: &'a str,
    /// Whether bare names find tables of the session.
    pub(crate) sees_temporary: bool,
}

impl PlanningScope<'_> {
    fn view(&self, view: &ResolvedView) -> DataFusionResult<Arc<dyn TableSource>> {
        {
            let mut planned = view.planned.lock();
            match &*planned {
                ViewPlan::Done(source) => return Ok(Arc::clone(source)),
                ViewPlan::InProgress => {
                    let message = format!("view `{}` refers to itself", view.name);
                    return Err(EngineError::Plan { message }.into());
                }
                ViewPlan::NotYet => *planned = ViewPlan::InProgress,
            }
        }
        let scope = PlanningScope {
            names: self.names,
            state: self.state,
            database: &view.default_database,
            sees_temporary: false,
        };
        // A view is planned in the middle of planning another statement, whose stack may be nearly used up.
        let plan = || view.nesting.with_room(|| plan_folded(&scope, view.statement.clone(), &[]));
        let planned = stacker::maybe_grow(VIEW_STACK_BYTES / 2, VIEW_STACK_BYTES, plan);
        let result = planned.and_then(|plan| {
            check_size(&plan, &view.name)?;
            Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
        });
        *view.planned.lock() = match &result {
            Ok(source) => ViewPlan::Done(Arc::clone(source)),
            Err(_) => ViewPlan::NotYet,
        };
        result.map_err(|error| match ResolvedNames::missing_in(&error) {
            Some(_) => error,
            None => {
                let message = format!("view `{}`: {}", view.name, EngineError::from(error));
                EngineError::Plan { message }.into()
            }
        })
    }
}

/// Refuses a view that expands to too many operators: each view that joins the one below it with itself doubles the plan.
fn check_size(plan: &LogicalPlan, name: &TableName) -> DataFusionResult<()> {
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > MAX_VIEW_NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if nodes > MAX_VIEW_NODES {
        let message = format!("view `{name}` expands to more than {MAX_VIEW_NODES} operators");
        return Err(EngineError::Plan { message }.into());
    }
    Ok(())
}

impl ContextProvider for PlanningScope<'_> {
    fn get_table_source(&self, reference: TableReference) -> DataFusionResult<Arc<dyn TableSource>> {
        if self.sees_temporary
            && let TableReference::Bare { table } = &reference
            && let Some(source) = self.names.temporary.get(&table.to_lowercase())
        {
            return Ok(Arc::clone(source));
        }
        let name = full_name(&reference, self.database)?;
        match self.names.entries.get(&NameKey::from_name(&name)) {
            Some(NameEntry::Table(source)) => Ok(Arc::clone(source)),
            Some(NameEntry::View(view)) => self.view(view),
            None => Err(DataFusionError::External(Box::new(UnknownTable(name)))),
        }
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> DataFusionResult<Arc<dyn TableSource>> {
        let functions = self.state.table_functions();
        if !functions.contains_key(&name.to_lowercase()) {
            let near = nearest_name(name, functions.keys().map(String::as_str));
            return Err(EngineError::function_not_found(name, near).into());
        }
        series::table_function_source(self.state, &name.to_lowercase(), args)
    }

    /// COPY names a format. It is planned so that policy can refuse it as what it is.
    fn get_file_type(&self, extension: &str) -> DataFusionResult<Arc<dyn FileType>> {
        match self.state.get_file_format_factory(extension) {
            Some(factory) => Ok(format_as_file_type(factory)),
            None => Err(EngineError::Plan { message: format!("unknown file format `{extension}`") }.into()),
        }
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> DataFusionResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(SqlTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

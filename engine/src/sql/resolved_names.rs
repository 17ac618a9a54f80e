//! The names of one statement, resolved before it is planned: one catalog lookup for the statement's own names and
//! one for each level of views below them. Planning itself sees these tables and no others, and does no I/O.
//!
//! This is the first gate of policy: what the principal may not see does not resolve.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::view::ViewTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::file_options::file_type::FileType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion::sql::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::resolve::resolve_table_references;
use parking_lot::Mutex;
use querent_catalog::{CATALOG_NAME, Catalog, Principal, SYSTEM_DATABASE, TableName, TableSource as Source};
use querent_kql::nearest_name;

use super::catalog_table::CatalogTable;
use super::parse::{Nesting, Parsed};
use super::{fold, parse, series};
use crate::{EngineError, Result, tables};

/// The standard's name for the catalog's own tables.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// The one system table that needs no qualifier.
const AGENT_RUNS: &str = "agent_runs";
/// How many views may stand on one another.
const MAX_VIEW_DEPTH: usize = 16;
/// Stack to plan a view in; half of it is left when the current one is used instead.
const VIEW_STACK_BYTES: usize = 2 << 20;
/// The most plan nodes that one view expands to, views below it included.
const MAX_VIEW_NODES: usize = 20_000;

/// A resolved statement's tables, by name without regard to case.
pub(crate) struct Names {
    entries: HashMap<Key, Entry>,
}

/// A full name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    database: String,
    table: String,
}

impl Key {
    fn of(name: &TableName) -> Self {
        Self { database: name.database.to_lowercase(), table: name.table.to_lowercase() }
    }
}

enum Entry {
    Table(Arc<dyn TableSource>),
    View(Box<View>),
}

struct View {
    name: TableName,
    statement: Statement,
    nesting: Nesting,
    default_database: String,
    /// Planned when first scanned: a statement may name a view without reading it.
    planned: Mutex<Planned>,
}

enum Planned {
    NotYet,
    InProgress,
    Done(Arc<dyn TableSource>),
}

/// A name that did not resolve, on its way through the planner.
#[derive(Debug, thiserror::Error)]
#[error("unknown table `{0}`")]
struct Missing(TableName);

/// The full name that a reference stands for. Errors: a catalog other than ours.
pub(crate) fn full_name(reference: &TableReference, default_database: &str) -> Result<TableName> {
    if let Some(catalog) = reference.catalog()
        && !fold::same_name(catalog, CATALOG_NAME)
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

impl Names {
    /// Resolves what `statement` refers to, as `who` in `database`.
    pub(crate) async fn resolve(
        catalog: &Arc<Catalog>,
        state: &SessionState,
        who: &Principal,
        statement: &Statement,
        nesting: Nesting,
        database: &str,
    ) -> Result<Self> {
        let wanted = nesting.with_room(|| references(statement, database))?;
        Self::resolve_all(catalog, state, who, wanted).await
    }

    /// Resolves tables by their full names.
    pub(crate) async fn resolve_all(
        catalog: &Arc<Catalog>,
        state: &SessionState,
        who: &Principal,
        wanted: Vec<TableName>,
    ) -> Result<Self> {
        let mut entries = HashMap::new();
        let mut wanted = wanted;
        for _ in 0..=MAX_VIEW_DEPTH {
            if wanted.is_empty() {
                return Ok(Self { entries });
            }
            wanted = resolve_level(catalog, state, who, wanted, &mut entries).await?;
            wanted.retain(|name| !entries.contains_key(&Key::of(name)));
        }
        Err(EngineError::Plan { message: format!("views stand on one another more than {MAX_VIEW_DEPTH} deep") })
    }

    /// What planning an unresolved name failed with, when `error` is about one.
    pub(crate) fn missing_in(error: &DataFusionError) -> Option<&TableName> {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Self::missing_in(inner),
            DataFusionError::Shared(inner) => Self::missing_in(inner),
            DataFusionError::External(inner) => inner.downcast_ref::<Missing>().map(|missing| &missing.0),
            _ => None,
        }
    }
}

/// The tables that a statement reads or inserts into, common table expressions left out.
fn references(statement: &Statement, database: &str) -> Result<Vec<TableName>> {
    let (references, _) = resolve_table_references(statement, false)?;
    let mut names = BTreeSet::new();
    for reference in references {
        names.insert(full_name(&reference, database)?);
    }
    Ok(names.into_iter().collect())
}

/// The tables that a statement's text names, common table expressions left out.
pub(crate) fn tables_named_in(sql: &str, database: &str) -> Result<Vec<TableName>> {
    let Parsed { mut statement, nesting } = parse::parse(sql)?;
    nesting.with_room(|| {
        fold::fold_relations(&mut statement)?;
        references(&statement, database)
    })
}

/// Adds entries for `wanted` and returns the names that their views refer to.
async fn resolve_level(
    catalog: &Arc<Catalog>,
    state: &SessionState,
    who: &Principal,
    wanted: Vec<TableName>,
    entries: &mut HashMap<Key, Entry>,
) -> Result<Vec<TableName>> {
    let (system, stored): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|name| is_system(&name.database));
    for name in system {
        let key = Key::of(&name);
        if let Some(provider) = tables::system::provider(catalog, who, &key.database, &key.table) {
            entries.insert(key, Entry::Table(provider_as_source(Arc::new(CatalogTable::new(None, provider)))));
        }
    }

    let mut below = Vec::new();
    if stored.is_empty() {
        return Ok(below);
    }
    let resolved = catalog.tables().resolve(who, &stored).await?;
    for (name, resolved) in stored.into_iter().zip(resolved) {
        let key = Key::of(&name);
        let Some(table) = resolved else {
            if key.table == AGENT_RUNS
                && let Some(provider) = tables::system::provider(catalog, who, SYSTEM_DATABASE, AGENT_RUNS)
            {
                entries.insert(key, Entry::Table(provider_as_source(Arc::new(CatalogTable::new(None, provider)))));
            }
            continue;
        };
        let entry = match &table.source {
            Source::View { sql, default_database } => {
                let Parsed { mut statement, nesting } = parse::parse(sql)?;
                below.extend(nesting.with_room(|| {
                    fold::fold_relations(&mut statement)?;
                    references(&statement, default_database)
                })?);
                Entry::View(Box::new(View {
                    name: table.info.name.clone(),
                    statement,
                    nesting,
                    default_database: default_database.clone(),
                    planned: Mutex::new(Planned::NotYet),
                }))
            }
            Source::Managed(_) | Source::External(_) => {
                let provider = tables::provider(catalog, state, &table).await?;
                Entry::Table(provider_as_source(Arc::new(CatalogTable::new(Some(table), provider))))
            }
        };
        entries.insert(key, entry);
    }
    Ok(below)
}

/// Whether a database is ours to serve and nobody's to write.
pub(crate) fn is_system(database: &str) -> bool {
    fold::same_name(database, SYSTEM_DATABASE) || fold::same_name(database, INFORMATION_SCHEMA)
}

/// What DataFusion's SQL planner sees: resolved names, and the functions of the engine.
pub(crate) struct Scope<'a> {
    pub(crate) names: &'a Names,
    pub(crate) state: &'a SessionState,
    pub(crate) database: &'a str,
}

impl Scope<'_> {
    fn view(&self, view: &View) -> DataFusionResult<Arc<dyn TableSource>> {
        {
            let mut planned = view.planned.lock();
            match &*planned {
                Planned::Done(source) => return Ok(Arc::clone(source)),
                Planned::InProgress => {
                    let message = format!("view `{}` refers to itself", view.name);
                    return Err(EngineError::Plan { message }.into());
                }
                Planned::NotYet => *planned = Planned::InProgress,
            }
        }
        let scope = Scope { names: self.names, state: self.state, database: &view.default_database };
        // A view is planned in the middle of planning another statement, whose stack may be nearly used up.
        let plan = || view.nesting.with_room(|| fold::plan_folded(&scope, view.statement.clone()));
        let planned = stacker::maybe_grow(VIEW_STACK_BYTES / 2, VIEW_STACK_BYTES, plan);
        let result = planned.and_then(|plan| {
            check_size(&plan, &view.name)?;
            Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
        });
        *view.planned.lock() = match &result {
            Ok(source) => Planned::Done(Arc::clone(source)),
            Err(_) => Planned::NotYet,
        };
        result.map_err(|error| match Names::missing_in(&error) {
            Some(_) => error,
            None => {
                let message = format!("view `{}`: {}", view.name, EngineError::from(error));
                EngineError::Plan { message }.into()
            }
        })
    }
}

/// Views multiply: each that joins the one below it with itself doubles the plan.
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

impl ContextProvider for Scope<'_> {
    fn get_table_source(&self, reference: TableReference) -> DataFusionResult<Arc<dyn TableSource>> {
        let name = full_name(&reference, self.database)?;
        match self.names.entries.get(&Key::of(&name)) {
            Some(Entry::Table(source)) => Ok(Arc::clone(source)),
            Some(Entry::View(view)) => self.view(view),
            None => Err(DataFusionError::External(Box::new(Missing(name)))),
        }
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> DataFusionResult<Arc<dyn TableSource>> {
        let functions = self.state.table_functions();
        if !functions.contains_key(&name.to_lowercase()) {
            let near = nearest_name(name, functions.keys().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(EngineError::FunctionNotFound { function: name.to_owned(), hint }.into());
        }
        series::source(self.state, &name.to_lowercase(), args)
    }

    /// COPY names a format. It is planned so that policy can judge it, and refuse it for what it is.
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
        self.state.expr_planners()
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

//! A session as the host of KQL's planner: tables resolve for the session's principal, and the queries whose rows decide
//! how the rest is planned are authorised and run as any query is, within the session's limits.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{LogicalPlan, TableSource};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::TableReference;
use datafusion::sql::planner::ContextProvider;
use querent_catalog::policy::{PolicyDocument, PolicySet};
use querent_catalog::{PageRequest, Role, TableFilter, TableName};
use querent_kql::{
    AskedLimits, BindErrorCode, ExternalLocation, GraphKey, GraphVersion, KqlError, KqlErrorCode, KqlHost, TableKey,
    TableLookup,
};

use super::Session;
use crate::error::{EngineError, FilePlace, Result};
use crate::identifiers::same_name;
use crate::limits::{Interrupt, PlanningMemory, QueryUsage, check_plan_size};
use crate::policy::{AuthorizedPlan, Mode, allowed_location};
use crate::sql::catalog_table::CatalogTable;
use crate::sql::json_columns::TextColumns;
use crate::sql::{PlanningScope, ResolvedNames};
use crate::tables::external::{Bounds, ad_hoc_table};

/// The most tables that a wildcard stands for.
const MAX_LISTED_TABLES: usize = 1_000;
/// The most databases that a wildcard stands for.
const MAX_LISTED_DATABASES: usize = 100;

/// The host of one query of a session.
pub(crate) struct SessionHost<'s> {
    session: &'s Session,
    state: &'s SessionState,
    interrupt: &'s Interrupt,
    memory: PlanningMemory,
    /// The rows and bytes beyond which the query's result fails.
    failing_beyond: AskedLimits,
    /// Whether a stored graph is looked at before its definition is planned: not beneath one that is being looked at.
    looks_at_graphs: bool,
    /// Whether bare names find tables of the session: not in what is stored for others.
    sees_temporary: bool,
    /// The policy that would not hold for a copy of the rows.
    copied_under: Option<Arc<PolicySet>>,
}

impl<'s> SessionHost<'s> {
    pub(crate) fn new(session: &'s Session, state: &'s SessionState, interrupt: &'s Interrupt) -> Self {
        let pool = session.engine().runtime().query_memory(session.limits());
        let memory = PlanningMemory::in_pool(pool);
        Self {
            session,
            state,
            interrupt,
            memory,
            failing_beyond: AskedLimits::default(),
            looks_at_graphs: true,
            sees_temporary: true,
            copied_under: None,
        }
    }

    /// Returns the host of a query that fails where its result has more rows or bytes, as whoever executes it sees to.
    pub(crate) fn failing_beyond(self, asked: AskedLimits) -> Self {
        Self { failing_beyond: asked, ..self }
    }

    /// Returns the host of a stored graph's own queries.
    pub(super) fn beneath_a_graph(self) -> Self {
        Self { looks_at_graphs: false, ..self.over_stored_tables() }
    }

    /// Returns the host of a query that does not find the session's own tables.
    pub(super) fn over_stored_tables(self) -> Self {
        Self { sees_temporary: false, ..self }
    }

    /// Returns the host of a query whose rows are kept: it reads no table that has row policies or masks.
    pub(super) fn for_a_copy(self, policies: Arc<PolicySet>) -> Self {
        Self { copied_under: Some(policies), ..self.over_stored_tables() }
    }

    /// Returns the memory that the plan keeps of rows that were read for it, to be held until it has run.
    pub(crate) fn into_memory(self) -> PlanningMemory {
        self.memory
    }

    /// Analyses and authorises a plan. Every part of a query that is executed passes through here.
    pub(crate) fn authorized(&self, plan: LogicalPlan) -> Result<AuthorizedPlan> {
        check_plan_size(&plan)?;
        let analysed = self.state.analyzer().execute_and_check(plan, self.state.config_options(), |_, _| {})?;
        if let Some(policies) = &self.copied_under {
            refuse_restricted_tables(&analysed, &policies.document)?;
        }
        self.session.authorize(analysed)
    }
}

fn refuse_restricted_tables(plan: &LogicalPlan, policies: &PolicyDocument) -> Result<()> {
    let mut is_restricted = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = CatalogTable::resolved_behind(&scan.source)
        {
            is_restricted |= policies.restricts(&table.info.name);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match is_restricted {
        true => Err(EngineError::NotAllowed {
            what: "a snapshot of a graph".to_owned(),
            why: " of tables with row policies or masks, which do not hold for a copy".to_owned(),
        }),
        false => Ok(()),
    }
}

impl SessionHost<'_> {
    /// Returns the table of the session that a bare name finds.
    fn temporary_table(&self, key: &TableKey) -> Option<Arc<dyn TableSource>> {
        if !self.sees_temporary || key.database.is_some() {
            return None;
        }
        let provider = self.session.temporary_tables()?.provider(&key.table)?;
        Some(provider_as_source(Arc::new(CatalogTable::temporary(&key.table, provider))))
    }

    /// Returns the definition of a graph, unless the caller may not see what it is made of.
    async fn if_seen(&self, definition: Option<String>) -> Result<Option<String>> {
        match definition {
            Some(definition) if self.looks_at_graphs => {
                let is_seen = Box::pin(self.session.sees_graph(&definition, self.interrupt)).await?;
                Ok(is_seen.then_some(definition))
            }
            known => Ok(known),
        }
    }
}

fn found_table(source: Arc<dyn TableSource>) -> TableLookup {
    let TextColumns { json, uuids } = TextColumns::behind(&source);
    TableLookup::Found { source, json_columns: json, uuid_columns: uuids }
}

#[async_trait]
impl KqlHost for SessionHost<'_> {
    type Error = EngineError;

    fn database(&self) -> &str {
        self.session.database()
    }

    fn principal(&self) -> &str {
        self.session.principal().subject()
    }

    async fn table(&self, key: &TableKey) -> Result<TableLookup> {
        if let Some(source) = self.temporary_table(key) {
            return Ok(found_table(source));
        }
        let catalog = self.session.engine().catalog();
        let database = key.database.as_deref().unwrap_or(self.session.database());
        let name = TableName::new(database, &key.table);
        let names =
            ResolvedNames::resolve_all(catalog, self.state, self.session.principal(), vec![name.clone()]).await?;
        let scope = PlanningScope { names: &names, state: self.state, database, sees_temporary: false };
        match scope.get_table_source(TableReference::partial(database, key.table.as_str())) {
            Ok(source) => Ok(found_table(source)),
            Err(error) if ResolvedNames::missing_in(&error).is_some_and(|missing| *missing == name) => {
                let missing = catalog.tables().not_found(self.session.principal(), &name).await;
                Ok(TableLookup::Missing(missing.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn table_names(&self, database: Option<&str>) -> Result<Vec<String>> {
        let own = self.session.temporary_tables().filter(|_| self.sees_temporary && database.is_none());
        let own: Vec<String> = own.map_or_else(Vec::new, |own| own.list().into_iter().map(|(name, _)| name).collect());
        let database = database.unwrap_or(self.session.database()).to_owned();
        let filter = TableFilter { database: Some(database), ..TableFilter::default() };
        let page = PageRequest { limit: MAX_LISTED_TABLES + 1, after: None };
        let listed = self.session.engine().catalog().tables().list(self.session.principal(), &filter, page).await?;
        if listed.items.len() > MAX_LISTED_TABLES {
            return Err(EngineError::Plan {
                message: format!("a wildcard looks at no more than {MAX_LISTED_TABLES} tables; name them"),
            });
        }
        let stored = listed.items.into_iter().map(|table| table.name.table);
        let stored = stored.filter(|stored| !own.iter().any(|own| same_name(own, stored)));
        Ok(own.iter().cloned().chain(stored).collect())
    }

    async fn database_names(&self) -> Result<Vec<String>> {
        let page = PageRequest { limit: MAX_LISTED_DATABASES + 1, after: None };
        let listed = self.session.engine().catalog().databases().list(self.session.principal(), None, page).await?;
        if listed.items.len() > MAX_LISTED_DATABASES {
            return Err(EngineError::Plan {
                message: format!("a wildcard looks at no more than {MAX_LISTED_DATABASES} databases; name them"),
            });
        }
        Ok(listed.items.into_iter().map(|database| database.name).collect())
    }

    async fn stored_graph(&self, graph: &GraphKey) -> Result<Option<String>> {
        let models = self.session.engine().catalog().graph_models();
        let found = models.get(self.session.principal(), self.session.database(), &graph.model).await?;
        let Some(model) = found else { return Ok(None) };
        let mut snapshots = match graph.version {
            GraphVersion::Transient => return self.if_seen(Some(model.definition)).await,
            GraphVersion::Latest | GraphVersion::Snapshot(_) => models.snapshots(&model).await?,
        };
        let definition = match &graph.version {
            GraphVersion::Snapshot(name) => {
                let named = snapshots.into_iter().find(|snapshot| same_name(&snapshot.name, name));
                named.map(|snapshot| snapshot.definition)
            }
            _ => Some(snapshots.pop().map_or(model.definition, |latest| latest.definition)),
        };
        self.if_seen(definition).await
    }

    /// Returns the files of an `externaldata`. Only administrators may read any file, and not in read-only mode; the rules
    /// for external tables say which files there may be.
    async fn external_data(&self, files: &ExternalLocation) -> Result<Arc<dyn TableSource>> {
        let why = match (self.session.mode(), self.session.principal().role()) {
            (Mode::ReadOnly, _) => " in read-only mode",
            (Mode::ReadWrite, Role::Read | Role::Write) => " for this role (it needs role admin)",
            (Mode::ReadWrite, Role::Admin) => "",
        };
        if !why.is_empty() {
            return Err(EngineError::NotAllowed { what: "externaldata".to_owned(), why: why.to_owned() });
        }
        let location = allowed_location(&files.location, self.session.principal(), self.session.engine()).await?;
        QueryUsage::note_place(FilePlace::of_statement(&location, &files.location));
        let bounds = Bounds { pool: Arc::clone(self.memory.pool()), interrupt: self.interrupt.clone() };
        let (table, bytes) = ad_hoc_table(self.state, &location, files.layout, files.skips_first, bounds).await?;
        self.memory.keep(bytes)?;
        Ok(provider_as_source(Arc::new(CatalogTable::at_allowed_location(table))))
    }

    async fn rows(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream> {
        let plan = self.authorized(plan)?;
        self.session.execute_query_within(plan.plan(), self.memory.pool(), self.interrupt).await
    }

    async fn physical_plan(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.authorized(plan)?;
        self.session.create_inner_plan(plan.plan(), self.interrupt).await
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        Ok(self.memory.keep(bytes)?)
    }

    /// The limits that the session has are kept; they are those of the query where [`Session::within_asked`] or
    /// [`Session::within_time`] took them.
    fn keep_limits(&self, asked: &AskedLimits) -> Result<()> {
        let limits = self.session.limits();
        let keeps_time = asked.time.is_none_or(|time| limits.wall_clock <= time);
        let keeps = |asked: Option<u64>, own: Option<u64>, failing: Option<u64>| {
            let most = own.into_iter().chain(failing).min();
            asked.is_none_or(|asked| most.is_some_and(|most| most <= asked))
        };
        let option = if !keeps_time {
            "servertimeout"
        } else if !keeps(asked.rows, limits.max_rows, self.failing_beyond.rows) {
            "truncationmaxrecords"
        } else if !keeps(asked.bytes, limits.max_bytes, self.failing_beyond.bytes) {
            "truncationmaxsize"
        } else {
            return Ok(());
        };
        Err(KqlError {
            code: KqlErrorCode::Bind(BindErrorCode::NotSupported),
            message: format!("`set {option}` is not kept by a query that stands in another statement"),
            hint: Some("leave it out; `take` and `set query_take_max_records` bound the rows".to_owned()),
        }
        .into())
    }

    fn check_interrupt(&self) -> Result<()> {
        Ok(self.interrupt.check()?)
    }
}

impl From<KqlError> for EngineError {
    fn from(error: KqlError) -> Self {
        EngineError::Kql { code: error.code, message: error.message, hint: error.hint }
    }
}

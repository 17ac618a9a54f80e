//! The `system` database (`agent_runs`, `queries`, `databases`, `tables`, `columns`, `index`, `metrics`, `vector_indexes`) and `information_schema`: filters are pushed
//! down into catalog queries, pages are streamed, and only what the principal may see is shown.

mod audit;
mod constraints;
mod filters;
mod metrics;
mod policies;
mod rows;
mod schema_index;
mod vector_indexes;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use querent_catalog::{
    Catalog, DatabaseScope, KeyFilter, KeyKind, PageRequest, PageToken, Principal, Role, RunRecord, SYSTEM_DATABASE,
    TableFilter, TableKind,
};

use filters::Lookup;
pub(crate) use metrics::MetricsText;

use crate::error::Result;
use crate::identifiers::same_name;
use crate::limits::running_queries;

/// Turns a stored run's trace into the JSON that `system.agent_runs.trace_json` shows. The format belongs to whoever
/// writes the runs; as long as nobody has said how to decode it, traces are shown as stored.
#[derive(Debug, Default)]
pub(crate) struct RunTraceDecoder(OnceLock<fn(String) -> String>);

impl RunTraceDecoder {
    /// Decodes with `decode` from now on. The first call counts.
    pub(crate) fn set(&self, decode: fn(String) -> String) {
        self.0.get_or_init(|| decode);
    }

    fn decode(&self, stored: String) -> String {
        match self.0.get() {
            Some(decode) => decode(stored),
            None => stored,
        }
    }
}

/// The number of objects that are listed at once.
const PAGE: usize = 1_000;
/// The number of runs that are listed at once: their traces may be large.
const RUNS_PAGE: usize = 50;

/// The standard's name for the catalog's own tables.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Returns whether Querent itself serves the tables of a database, which then nobody may write.
pub(crate) fn is_system_database(name: &str) -> bool {
    same_name(name, SYSTEM_DATABASE) || same_name(name, INFORMATION_SCHEMA)
}

/// Returns the databases whose tables Querent itself serves.
pub(crate) fn system_databases() -> [&'static str; 2] {
    [SYSTEM_DATABASE, INFORMATION_SCHEMA]
}

/// Returns the system table `schema.name`, where `schema` is `system` or `information_schema`.
pub(crate) fn provider(
    catalog: &Arc<Catalog>,
    who: &Principal,
    schema: &str,
    name: &str,
) -> Option<Arc<dyn TableProvider>> {
    let table = SystemTable::named(schema, name)?;
    if !table.is_open_to(who) {
        return None;
    }
    Some(Arc::new(SystemTableProvider {
        catalog: Arc::clone(catalog),
        who: who.clone(),
        table,
        schema: table.schema(),
    }))
}

/// Returns the names of the system tables of a database that a caller may read.
pub(crate) fn table_names(who: &Principal, schema: &str) -> Vec<&'static str> {
    let of_schema = NAMES.iter().filter(|(own, _, table)| same_name(own, schema) && table.is_open_to(who));
    of_schema.map(|(_, name, _)| *name).collect()
}

/// The tables in which SQL sees the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SystemTable {
    AgentRuns,
    Queries,
    Policies,
    Audit,
    Runs,
    SchemaIndex,
    Metrics,
    VectorIndexes,
    Databases,
    Tables,
    Columns,
    Schemata,
    StandardTables,
    StandardColumns,
    Views,
    TableConstraints,
    KeyColumnUsage,
    ReferentialConstraints,
    ConstraintColumnUsage,
}

/// The system tables, with their databases and names.
const NAMES: [(&str, &str, SystemTable); 19] = [
    (SYSTEM_DATABASE, "agent_runs", SystemTable::AgentRuns),
    (SYSTEM_DATABASE, "queries", SystemTable::Queries),
    (SYSTEM_DATABASE, "policies", SystemTable::Policies),
    (SYSTEM_DATABASE, "audit", SystemTable::Audit),
    (SYSTEM_DATABASE, "runs", SystemTable::Runs),
    (SYSTEM_DATABASE, "index", SystemTable::SchemaIndex),
    (SYSTEM_DATABASE, "metrics", SystemTable::Metrics),
    (SYSTEM_DATABASE, "vector_indexes", SystemTable::VectorIndexes),
    (SYSTEM_DATABASE, "databases", SystemTable::Databases),
    (SYSTEM_DATABASE, "tables", SystemTable::Tables),
    (SYSTEM_DATABASE, "columns", SystemTable::Columns),
    (INFORMATION_SCHEMA, "schemata", SystemTable::Schemata),
    (INFORMATION_SCHEMA, "tables", SystemTable::StandardTables),
    (INFORMATION_SCHEMA, "columns", SystemTable::StandardColumns),
    (INFORMATION_SCHEMA, "views", SystemTable::Views),
    (INFORMATION_SCHEMA, "table_constraints", SystemTable::TableConstraints),
    (INFORMATION_SCHEMA, "key_column_usage", SystemTable::KeyColumnUsage),
    (INFORMATION_SCHEMA, "referential_constraints", SystemTable::ReferentialConstraints),
    (INFORMATION_SCHEMA, "constraint_column_usage", SystemTable::ConstraintColumnUsage),
];

impl SystemTable {
    fn is_open_to(self, who: &Principal) -> bool {
        !self.is_for_administrators() || (who.role() == Role::Admin && *who.scope() == DatabaseScope::All)
    }

    /// The system table `schema.name`.
    fn named(schema: &str, name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(own_schema, own, _)| same_name(own_schema, schema) && same_name(own, name));
        found.map(|(_, _, table)| *table)
    }

    fn schema(self) -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let maybe = |name: &str| Field::new(name, DataType::Utf8, true);
        let count = |name: &str, nullable| Field::new(name, DataType::UInt64, nullable);
        let time = |name: &str, nullable| {
            Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), nullable)
        };
        let fields = match self {
            Self::AgentRuns => vec![
                text("run_id"),
                text("question"),
                text("model_id"),
                text("status"),
                time("started_at", false),
                time("finished_at", true),
                text("usage_json"),
                text("trace_json"),
                text("protocol"),
                maybe("conversation_id"),
            ],
            Self::Queries => vec![
                count("id", false),
                text("subject"),
                text("default_database"),
                text("statement"),
                time("started_at", false),
                count("memory_bytes", false),
            ],
            Self::Policies => vec![
                text("kind"),
                maybe("name"),
                maybe("privilege"),
                text("target"),
                maybe("columns"),
                maybe("expression"),
                text("grantee"),
                maybe("excluded"),
            ],
            Self::Audit => audit::fields(),
            Self::SchemaIndex => schema_index::fields(),
            Self::Metrics => metrics::fields(),
            Self::VectorIndexes => vector_indexes::fields(),
            Self::Runs => vec![
                text("run_id"),
                text("subject"),
                text("question"),
                text("model_id"),
                text("status"),
                time("started_at", false),
                time("finished_at", true),
                text("protocol"),
            ],
            Self::Databases => vec![text("name"), maybe("comment")],
            Self::Tables => {
                vec![text("database"), text("name"), text("kind"), maybe("comment"), count("row_count", true)]
            }
            Self::Columns => vec![
                text("database"),
                text("table"),
                text("name"),
                count("position", false),
                text("data_type"),
                Field::new("nullable", DataType::Boolean, false),
                maybe("comment"),
            ],
            Self::Schemata => vec![
                text("catalog_name"),
                text("schema_name"),
                maybe("schema_owner"),
                maybe("default_character_set_catalog"),
                maybe("default_character_set_schema"),
                maybe("default_character_set_name"),
                maybe("sql_path"),
            ],
            Self::StandardTables => {
                vec![text("table_catalog"), text("table_schema"), text("table_name"), text("table_type")]
            }
            Self::StandardColumns => vec![
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                text("column_name"),
                count("ordinal_position", false),
                maybe("column_default"),
                text("is_nullable"),
                text("data_type"),
                count("character_maximum_length", true),
                count("character_octet_length", true),
                count("numeric_precision", true),
                count("numeric_precision_radix", true),
                count("numeric_scale", true),
                count("datetime_precision", true),
                maybe("interval_type"),
            ],
            // `definition` is what DataFusion calls it.
            Self::Views => vec![
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                maybe("definition"),
                maybe("view_definition"),
                text("check_option"),
                text("is_updatable"),
            ],
            Self::TableConstraints => vec![
                text("constraint_catalog"),
                text("constraint_schema"),
                text("constraint_name"),
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                text("constraint_type"),
                text("is_deferrable"),
                text("initially_deferred"),
                text("enforced"),
                maybe("nulls_distinct"),
            ],
            Self::KeyColumnUsage => vec![
                text("constraint_catalog"),
                text("constraint_schema"),
                text("constraint_name"),
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                text("column_name"),
                count("ordinal_position", false),
                count("position_in_unique_constraint", true),
            ],
            Self::ReferentialConstraints => vec![
                text("constraint_catalog"),
                text("constraint_schema"),
                text("constraint_name"),
                maybe("unique_constraint_catalog"),
                maybe("unique_constraint_schema"),
                maybe("unique_constraint_name"),
                text("match_option"),
                text("update_rule"),
                text("delete_rule"),
            ],
            Self::ConstraintColumnUsage => vec![
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                text("column_name"),
                text("constraint_catalog"),
                text("constraint_schema"),
                text("constraint_name"),
            ],
        };
        Arc::new(Schema::new(fields))
    }

    /// Returns whether it is there for administrators of all databases only.
    fn is_for_administrators(self) -> bool {
        matches!(self, Self::Policies | Self::Audit | Self::SchemaIndex)
    }

    /// Returns the columns that say which objects to list: database, name, kind.
    fn key_columns(self) -> [Option<&'static str>; 3] {
        match self {
            Self::AgentRuns
            | Self::Queries
            | Self::Policies
            | Self::Audit
            | Self::Runs
            | Self::SchemaIndex
            | Self::Metrics
            | Self::VectorIndexes => [None, None, None],
            Self::Databases => [Some("name"), None, None],
            Self::Tables => [Some("database"), Some("name"), Some("kind")],
            Self::Columns => [Some("database"), Some("table"), None],
            Self::Schemata => [Some("schema_name"), None, None],
            Self::StandardTables => [Some("table_schema"), Some("table_name"), Some("table_type")],
            Self::StandardColumns
            | Self::Views
            | Self::TableConstraints
            | Self::KeyColumnUsage
            | Self::ConstraintColumnUsage => [Some("table_schema"), Some("table_name"), None],
            Self::ReferentialConstraints => [Some("constraint_schema"), None, None],
        }
    }
}

impl SystemTable {
    /// Returns the listings that together have every object that can pass the filters.
    fn lookups(self, filters: &[Expr]) -> Vec<Lookup> {
        let lookups = filters::lookups(filters, self.key_columns());
        match self {
            // The columns of a table are used by its own keys and by the foreign keys that refer to it.
            Self::ConstraintColumnUsage => {
                let referring = lookups.iter().map(|lookup| Lookup { referring: true, ..lookup.clone() });
                lookups.iter().cloned().chain(referring).collect()
            }
            _ => lookups,
        }
    }
}

struct SystemTableProvider {
    catalog: Arc<Catalog>,
    who: Principal,
    table: SystemTable,
    schema: SchemaRef,
}

impl fmt::Debug for SystemTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemTableProvider").field("table", &self.table).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for SystemTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        // The catalog compares without regard to case, so the filter itself stays above.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let trace = self.schema.index_of("trace_json").ok();
        let limit = limit.filter(|_| filters.is_empty());
        let listing = SystemTableScan {
            catalog: Arc::clone(&self.catalog),
            who: self.who.clone(),
            table: self.table,
            schema: Arc::clone(&self.schema),
            lookups: self.table.lookups(filters),
            with_traces: trace.is_some_and(|trace| projection.is_none_or(|wanted| wanted.contains(&trace))),
            traces: None,
            metrics: None,
            // Each object is a row at least, but for views that its caller may not know and tables without columns.
            page_size: limit.map_or(PAGE, |limit| limit.clamp(1, PAGE)),
        };
        let ordering = self.ordering(projection);
        let plan = StreamingTableExec::try_new(
            Arc::clone(&self.schema),
            vec![Arc::new(listing)],
            projection,
            ordering,
            false,
            limit,
        )?;
        Ok(Arc::new(plan))
    }
}

impl SystemTableProvider {
    /// Runs come newest first, so `ORDER BY started_at DESC LIMIT 10` reads ten of them.
    fn ordering(&self, projection: Option<&Vec<usize>>) -> Option<LexOrdering> {
        if self.table != SystemTable::AgentRuns {
            return None;
        }
        let started_at = self.schema.index_of("started_at").ok()?;
        let index = match projection {
            Some(wanted) => wanted.iter().position(|column| *column == started_at)?,
            None => started_at,
        };
        let newest_first = SortOptions { descending: true, nulls_first: true };
        LexOrdering::new([PhysicalSortExpr::new(Arc::new(Column::new("started_at", index)), newest_first)])
    }
}

/// One listing of the catalog, page by page, as a stream.
#[derive(Clone)]
struct SystemTableScan {
    catalog: Arc<Catalog>,
    who: Principal,
    table: SystemTable,
    schema: SchemaRef,
    lookups: Vec<Lookup>,
    with_traces: bool,
    /// Known once the listing is executed.
    traces: Option<Arc<RunTraceDecoder>>,
    metrics: Option<Arc<MetricsText>>,
    /// The number of objects that are listed at once.
    page_size: usize,
}

impl fmt::Debug for SystemTableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemTableScan")
            .field("table", &self.table)
            .field("lookups", &self.lookups)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for SystemTableScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let traces = context.session_config().get_extension::<RunTraceDecoder>();
        let metrics = context.session_config().get_extension::<MetricsText>();
        let start = (Self { traces, metrics, ..self.clone() }, 0usize, None);
        let pages = futures::stream::try_unfold(start, |(listing, lookup, after)| async move {
            let Some(wanted) = listing.lookups.get(lookup) else { return Ok(None) };
            let (batch, next) = listing.page(wanted, after).await?;
            let lookup = if next.is_some() { lookup } else { lookup + 1 };
            Ok(Some((batch, (listing, lookup, next))))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), pages))
    }
}

impl SystemTableScan {
    async fn page(&self, lookup: &Lookup, after: Option<PageToken>) -> Result<(RecordBatch, Option<PageToken>)> {
        let request = PageRequest { limit: self.page_size, after };
        let filter = &lookup.filter;
        match self.table {
            SystemTable::AgentRuns => self.runs(request).await,
            SystemTable::Queries => {
                let running = running_queries(self.catalog.data_dir(), &self.who);
                Ok((rows::queries(&self.schema, &running)?, None))
            }
            SystemTable::Audit => {
                let after = request.after.as_ref().and_then(|token| token.0.parse().ok()).unwrap_or(0);
                let records = self.catalog.audit().list(after, PAGE).await?;
                let next = records.last().filter(|_| records.len() == PAGE).map(|last| PageToken(last.seq.to_string()));
                Ok((audit::rows(&self.schema, &records)?, next))
            }
            SystemTable::Runs => {
                let page = self.catalog.runs().list(&self.who, PageRequest { limit: RUNS_PAGE, ..request }).await?;
                Ok((rows::started_runs(&self.schema, &page.items)?, page.next))
            }
            SystemTable::SchemaIndex => {
                let search = self.catalog.search();
                let missing = search.missing_meaning().map(|missing| missing.reason);
                Ok((schema_index::rows(&self.schema, &search.index_status(), missing.as_deref())?, None))
            }
            SystemTable::Metrics => {
                let written = MetricsText::read(self.metrics.as_deref(), &self.catalog, &self.who);
                Ok((metrics::rows(&self.schema, &written)?, None))
            }
            SystemTable::VectorIndexes => {
                let indexes = self.catalog.vector_indexes().list(&self.who).await?;
                Ok((vector_indexes::rows(&self.schema, &indexes)?, None))
            }
            SystemTable::Policies => {
                let policies = self.catalog.policies().in_force().await?;
                Ok((policies::rows(&self.schema, &policies.document)?, None))
            }
            SystemTable::Databases | SystemTable::Schemata => {
                let page = self.catalog.databases().list(&self.who, lookup.database_like().as_deref(), request).await?;
                let batch = match self.table {
                    SystemTable::Databases => rows::databases(&self.schema, &page.items)?,
                    _ => rows::schemata(&self.schema, &page.items)?,
                };
                Ok((batch, page.next))
            }
            SystemTable::Tables | SystemTable::StandardTables => {
                let page = self.catalog.tables().list(&self.who, filter, request).await?;
                let batch = match self.table {
                    SystemTable::Tables => rows::tables(&self.schema, &page.items)?,
                    _ => rows::standard_tables(&self.schema, &page.items)?,
                };
                Ok((batch, page.next))
            }
            SystemTable::Columns | SystemTable::StandardColumns => {
                let page = self.catalog.tables().list_with_columns(&self.who, filter, request).await?;
                let batch = match self.table {
                    SystemTable::Columns => rows::columns(&self.schema, &page.items)?,
                    _ => rows::standard_columns(&self.schema, &page.items)?,
                };
                Ok((batch, page.next))
            }
            SystemTable::Views => {
                let filter = TableFilter { kinds: vec![TableKind::View], ..filter.clone() };
                let page = self.catalog.tables().list(&self.who, &filter, request).await?;
                let names: Vec<_> = page.items.iter().map(|view| view.name.clone()).collect();
                let resolved = self.catalog.tables().resolve(&self.who, &names).await?;
                Ok((rows::views(&self.schema, &names, &resolved)?, page.next))
            }
            SystemTable::TableConstraints
            | SystemTable::KeyColumnUsage
            | SystemTable::ReferentialConstraints
            | SystemTable::ConstraintColumnUsage => {
                let page = self.catalog.keys().list(&self.who, &self.key_filter(lookup), request).await?;
                let rows = match self.table {
                    SystemTable::TableConstraints => constraints::table_constraints,
                    SystemTable::KeyColumnUsage => constraints::key_column_usage,
                    SystemTable::ReferentialConstraints => constraints::referential_constraints,
                    _ => constraints::constraint_column_usage,
                };
                Ok((rows(&self.schema, &page.items)?, page.next))
            }
        }
    }

    /// Returns which keys a listing of constraints has.
    fn key_filter(&self, lookup: &Lookup) -> KeyFilter {
        let table = lookup.filter.clone();
        match (self.table, lookup.referring) {
            (SystemTable::ReferentialConstraints, _) => {
                KeyFilter { table, kinds: vec![KeyKind::Foreign], ..KeyFilter::default() }
            }
            (SystemTable::ConstraintColumnUsage, true) => {
                KeyFilter { referred: Some(table), kinds: vec![KeyKind::Foreign], ..KeyFilter::default() }
            }
            (SystemTable::ConstraintColumnUsage, false) => {
                KeyFilter { table, kinds: vec![KeyKind::Primary, KeyKind::Unique], ..KeyFilter::default() }
            }
            _ => KeyFilter { table, ..KeyFilter::default() },
        }
    }

    async fn runs(&self, request: PageRequest) -> Result<(RecordBatch, Option<PageToken>)> {
        let mut page = self.catalog.runs().list(&self.who, PageRequest { limit: RUNS_PAGE, ..request }).await?;
        if self.with_traces {
            let mut with_traces = Vec::with_capacity(page.items.len());
            for run in page.items {
                // None: deleted since it was listed, or withheld from this caller.
                let stored = self.catalog.runs().trace(&self.who, run.run_id).await?;
                let trace_json = match (stored, &self.traces) {
                    (Some(stored), Some(traces)) => traces.decode(stored),
                    (Some(stored), None) => stored,
                    (None, _) => "[]".to_owned(),
                };
                with_traces.push(RunRecord { trace_json, ..run });
            }
            page.items = with_traces;
        }
        Ok((rows::runs(&self.schema, &page.items)?, page.next))
    }
}

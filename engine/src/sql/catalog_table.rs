//! A table that was resolved for a principal. Only [`super::resolved_names`] makes one, and the host of KQL's planner one of
//! files whose location the policy allows, so the principal may read what a scan of one reads; `policy` refuses the scan of
//! any other stored table.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::{Constraints, Statistics};
use datafusion::datasource::{DefaultTableSource, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use querent_catalog::{FileFormat, ResolvedTable, TableSource as Source};

use crate::tables::restricted::RestrictedTable;

/// What a plan's source is to whoever keeps the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptSource {
    /// A managed table, of which nothing was read yet: its rows are those of a snapshot.
    Managed,
    /// Another table of the catalog, of which nothing was read yet: files that may change, or a part that policies leave, whose
    /// conditions may ask for the time.
    Varying,
    /// A table of the session, with its rows.
    Temporary,
    /// Anything else.
    Other,
}

use crate::tables::managed::{NearestRequest, NearestTable};

/// A resolved table in front of the provider that reads it.
#[derive(Debug)]
pub(crate) struct CatalogTable {
    /// `None`: a system table, or one of the session.
    resolved: Option<ResolvedTable>,
    /// The name of a table of the session.
    temporary: Option<String>,
    provider: Arc<dyn TableProvider>,
}

impl CatalogTable {
    pub(super) fn new(resolved: Option<ResolvedTable>, provider: Arc<dyn TableProvider>) -> Self {
        Self { resolved, temporary: None, provider }
    }

    /// Wraps a table of the caller's session.
    pub(crate) fn temporary(name: &str, provider: Arc<dyn TableProvider>) -> Self {
        Self { resolved: None, temporary: Some(name.to_owned()), provider }
    }

    /// Wraps rows that the principal may read: files that a query names by their location, which `policy` allows, and
    /// rows that the caller sent.
    pub(crate) fn at_allowed_location(provider: Arc<dyn TableProvider>) -> Self {
        Self { resolved: None, temporary: None, provider }
    }

    /// Returns the table as a search for the rows nearest to a vector reads it; `None` where no vector index serves the
    /// search, and where the caller sees a part of the table only.
    pub(super) fn near(&self, column: &str, request: NearestRequest) -> Option<Self> {
        let resolved = self.resolved.as_ref().filter(|table| table.restriction.is_none())?;
        let near = NearestTable::over(&self.provider, column, request)?;
        Some(Self { resolved: Some(resolved.clone()), temporary: None, provider: Arc::new(near) })
    }

    /// Returns whether a plan's source is a table that was resolved for its principal.
    pub(crate) fn is_behind(source: &Arc<dyn TableSource>) -> bool {
        source_as_provider(source).is_ok_and(|provider| provider.is::<Self>())
    }

    /// Returns what the catalog knows about a plan's source; `None` for anything but a table of the catalog.
    pub(crate) fn resolved_behind(source: &Arc<dyn TableSource>) -> Option<&ResolvedTable> {
        let source = source.as_ref().downcast_ref::<DefaultTableSource>()?;
        source.table_provider.downcast_ref::<Self>()?.resolved.as_ref()
    }

    /// Returns what a plan's source is to whoever keeps the plan.
    pub(super) fn kept_source(source: &Arc<dyn TableSource>, takes_dictionaries: bool) -> KeptSource {
        let Ok(provider) = source_as_provider(source) else { return KeptSource::Other };
        let Some(table) = provider.downcast_ref::<Self>() else { return KeptSource::Other };
        if table.temporary.is_some() {
            return KeptSource::Temporary;
        }
        // What a policy leaves is a plan of its own.
        let is_plain = table.provider.downcast_ref::<RestrictedTable>().is_none_or(RestrictedTable::scans_tables_only);
        match table.resolved.as_ref().map(|resolved| &resolved.source).filter(|_| is_plain) {
            Some(Source::Managed(_)) if table.provider.downcast_ref::<RestrictedTable>().is_none() => {
                KeptSource::Managed
            }
            Some(Source::Managed(_)) => KeptSource::Varying,
            // The dictionaries of Arrow files are looked up while a statement is planned.
            Some(Source::External(external)) if external.format == FileFormat::Arrow && takes_dictionaries => {
                KeptSource::Other
            }
            Some(Source::External(_)) => KeptSource::Varying,
            Some(Source::View { .. }) | None => KeptSource::Other,
        }
    }

    /// Returns the name of the table of the session that a plan's source is.
    pub(crate) fn temporary_behind(source: &Arc<dyn TableSource>) -> Option<String> {
        let provider = source_as_provider(source).ok()?;
        provider.downcast_ref::<Self>()?.temporary.clone()
    }
}

#[async_trait]
impl TableProvider for CatalogTable {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.provider.constraints()
    }

    fn table_type(&self) -> TableType {
        self.provider.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.provider.get_table_definition()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.provider.get_logical_plan()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.provider.get_column_default(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, projection, filters, limit).await
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        self.provider.scan_with_args(state, args).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.provider.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.provider.statistics()
    }
}

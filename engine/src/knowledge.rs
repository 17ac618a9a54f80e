//! Stores verified queries and metrics: a verified query only after its SQL ran for the caller who vouches for it, a metric
//! only after its expression did. Both run as read-only queries like any other and pass the same policy.

use std::collections::BTreeMap;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use querent_catalog::{
    CatalogError, Metric, NewMetric, NewVerifiedQuery, ProposalState, QueryProposal, TableName, VerifiedQuery,
};

use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::limits::Limits;
use crate::policy::require_write;
use crate::session::Session;
use crate::sql::catalog_table::CatalogTable;
use crate::sql::tables_named_in;
use crate::tables::system::is_system_database;

/// The most rows that are read of a query that is to be stored.
const CHECKED_ROWS: u64 = 100;
/// The longest time that such a query may take.
const CHECK_TIME: std::time::Duration = std::time::Duration::from_secs(60);

impl Session {
    /// Runs a query and stores it as the answer to a question, in this session's database; bare names in it resolve
    /// there. Replaces a query with the same question. Errors: `not_allowed` for role `read`, `invalid_object`, and those of
    /// the query.
    pub async fn verify_query(&self, question: &str, sql: &str) -> Result<VerifiedQuery> {
        require_write("storing a verified query", self.principal(), self.mode())?;
        let new = self.query_to_propose(question, sql).await?;
        Ok(self.engine().catalog().knowledge().store_verified_query(self.principal(), new).await?)
    }

    /// Runs a query that is to be proposed as the answer to a question; nothing is stored. Errors: those of the query.
    pub async fn query_to_propose(&self, question: &str, sql: &str) -> Result<NewVerifiedQuery> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let tables = self.run_for_tables(sql).await?;
        Ok(NewVerifiedQuery {
            database: self.database().to_owned(),
            question: question.trim().to_owned(),
            sql: sql.to_owned(),
            tables,
        })
    }

    /// Stores a proposed query as a verified one, after it ran for the caller. Errors: `not_allowed` for role `read`,
    /// `object_not_found`, `invalid_object`, and those of the query.
    pub async fn accept_proposal(&self, id: i64) -> Result<(QueryProposal, VerifiedQuery)> {
        require_write("accepting a proposed query", self.principal(), self.mode())?;
        let feedback = self.engine().catalog().feedback();
        let proposal = feedback.proposal(self.principal(), id).await?;
        if proposal.state != ProposalState::Waiting {
            let reason = format!("proposal {id} was {} before", proposal.state.as_str());
            return Err(CatalogError::InvalidObject { what: "proposed query", reason }.into());
        }
        let session = self.clone().in_database(Some(&proposal.database)).await?;
        let new = session.query_to_propose(&proposal.question, &proposal.sql).await?;
        Ok(self.engine().catalog().knowledge().accept_proposal(self.principal(), &proposal, new).await?)
    }

    /// Records that a proposed query is not to become a verified one. Errors: `not_allowed` for role `read`,
    /// `object_not_found`, `invalid_object`.
    pub async fn reject_proposal(&self, id: i64) -> Result<QueryProposal> {
        require_write("rejecting a proposed query", self.principal(), self.mode())?;
        let feedback = self.engine().catalog().feedback();
        Ok(feedback.reject(self.principal(), id).await?)
    }

    /// Runs a metric's expression and stores the metric. Replaces one of the same name in the same database. Errors: as
    /// [`Session::verify_query`].
    pub async fn define_metric(&self, new: NewMetric) -> Result<Metric> {
        require_write("storing a metric", self.principal(), self.mode())?;
        let catalog = self.engine().catalog();
        let found = catalog.tables().resolve(self.principal(), std::slice::from_ref(&new.table)).await?.pop().flatten();
        let Some(found) = found else {
            return Err(catalog.tables().not_found(self.principal(), &new.table).await.into());
        };
        let table = found.info.name;
        let tables = self.run_for_tables(&metric_sql(&new, &table)).await?;
        if tables.iter().any(|read| read.database != table.database) {
            return Err(EngineError::Plan { message: format!("a metric of `{table}` reads its own database only") });
        }
        Ok(catalog.knowledge().store_metric(self.principal(), NewMetric { table, ..new }).await?)
    }

    /// Runs a query for a few rows and returns the tables that it reads, those behind views included.
    async fn run_for_tables(&self, sql: &str) -> Result<Vec<TableName>> {
        let mut tables: BTreeMap<String, TableName> = BTreeMap::new();
        let named: Vec<TableName> = tables_named_in(sql, self.database())?
            .into_iter()
            .filter(|name| !is_system_database(&name.database))
            .collect();
        for table in self.engine().catalog().tables().resolve(self.principal(), &named).await?.into_iter().flatten() {
            tables.insert(table.info.name.to_string(), table.info.name);
        }
        let limits = Limits {
            max_rows: Some(CHECKED_ROWS),
            wall_clock: self.limits().wall_clock.min(CHECK_TIME),
            ..self.limits().clone()
        };
        let session = self.engine().session(self.principal().clone(), limits).through(self.door()).read_only();
        let session = session.with_database(self.database()).await?;
        let plan = session.authorize(session.plan_sql(sql).await?)?.of_text(sql);
        for name in scanned_tables(plan.plan())? {
            tables.insert(name.to_string(), name);
        }
        session.execute(plan).await?.collect().await?;
        Ok(tables.into_values().collect())
    }
}

fn metric_sql(metric: &NewMetric, table: &TableName) -> String {
    let rows = metric.filter.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    format!(
        "SELECT {} FROM {}.{}{rows}",
        metric.expression,
        quote_identifier(&table.database),
        quote_identifier(&table.table)
    )
}

/// Returns the tables of the catalog that a plan scans.
fn scanned_tables(plan: &LogicalPlan) -> Result<Vec<TableName>> {
    let mut names = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = CatalogTable::resolved_behind(&scan.source)
        {
            names.push(table.info.name.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

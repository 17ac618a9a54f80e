//! Storing what people teach: a verified query is stored only after its SQL ran for whoever vouches for it, a metric
//! only after its expression did. Both are read-only queries like any other and pass the same policy.

use std::collections::BTreeMap;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use querent_catalog::{Metric, NewMetric, NewVerifiedQuery, Role, TableName, VerifiedQuery};

use crate::policy::Mode;
use crate::sql::catalog_table::CatalogTable;
use crate::sql::{is_system, tables_named_in};
use crate::{EngineError, Limits, Result, Session};

/// Rows that a query to be verified is run for.
const CHECKED_ROWS: u64 = 100;
/// How long it may take.
const CHECK_TIME: std::time::Duration = std::time::Duration::from_secs(60);

impl Session {
    /// Runs a query and stores it as the answer to a question, in this session's database; bare names in it resolve
    /// there. In place of one with the same question. Errors: `not_allowed` for role `read`, `invalid_object`, and
    /// whatever the query fails with.
    pub async fn verify_query(&self, question: &str, sql: &str) -> Result<VerifiedQuery> {
        self.may_teach("storing a verified query")?;
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let tables = self.checked(sql).await?;
        let new = NewVerifiedQuery {
            database: self.database().to_owned(),
            question: question.trim().to_owned(),
            sql: sql.to_owned(),
            tables,
        };
        Ok(self.engine().catalog().knowledge().store_verified_query(self.principal(), new).await?)
    }

    /// Runs a metric's expression and stores it, in place of one of the same name in the same database. Errors: as
    /// [`Session::verify_query`].
    pub async fn define_metric(&self, new: NewMetric) -> Result<Metric> {
        self.may_teach("storing a metric")?;
        let catalog = self.engine().catalog();
        let found = catalog.tables().resolve(self.principal(), std::slice::from_ref(&new.table)).await?.pop().flatten();
        let Some(found) = found else {
            return Err(catalog.tables().not_found(self.principal(), &new.table).await.into());
        };
        let table = found.info.name;
        let tables = self.checked(&metric_sql(&new, &table)).await?;
        if tables.iter().any(|read| read.database != table.database) {
            return Err(EngineError::Plan { message: format!("a metric of `{table}` reads its own database only") });
        }
        Ok(catalog.knowledge().store_metric(self.principal(), NewMetric { table, ..new }).await?)
    }

    fn may_teach(&self, what: &str) -> Result<()> {
        let why = match (self.mode(), self.principal().role()) {
            (Mode::ReadOnly, _) => " in read-only mode",
            (Mode::ReadWrite, Role::Read) => " for role read (it needs role write)",
            (Mode::ReadWrite, Role::Write | Role::Admin) => return Ok(()),
        };
        Err(EngineError::NotAllowed { what: what.to_owned(), why: why.to_owned() })
    }

    /// Runs a query for a few rows and returns the tables it reads, those behind views included.
    async fn checked(&self, sql: &str) -> Result<Vec<TableName>> {
        let mut tables: BTreeMap<String, TableName> = BTreeMap::new();
        let named: Vec<TableName> =
            tables_named_in(sql, self.database())?.into_iter().filter(|name| !is_system(&name.database)).collect();
        for table in self.engine().catalog().tables().resolve(self.principal(), &named).await?.into_iter().flatten() {
            tables.insert(table.info.name.to_string(), table.info.name);
        }
        let limits = Limits {
            max_rows: Some(CHECKED_ROWS),
            wall_clock: self.limits().wall_clock.min(CHECK_TIME),
            ..self.limits().clone()
        };
        let session = self.engine().session(self.principal().clone(), limits).read_only();
        let session = session.with_database(self.database()).await?;
        let plan = session.authorize(session.plan_sql(sql).await?)?;
        for name in scanned(plan.plan())? {
            tables.insert(name.to_string(), name);
        }
        session.execute(plan).await?.collect().await?;
        Ok(tables.into_values().collect())
    }
}

fn metric_sql(metric: &NewMetric, table: &TableName) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let rows = metric.filter.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    format!("SELECT {} FROM {}.{}{rows}", metric.expression, quoted(&table.database), quoted(&table.table))
}

/// The catalog's tables that a plan scans.
fn scanned(plan: &LogicalPlan) -> Result<Vec<TableName>> {
    let mut names = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = CatalogTable::resolved_behind(&scan.source)
        {
            names.push(table.info.name);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

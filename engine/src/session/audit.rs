//! What the statements of a session leave when they have ended: each a record in the audit log, and those that took long a
//! line in the server's log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use querent_catalog::audit::{AuditOutcome, AuditRecord};
use querent_catalog::{Catalog, ResolvedTable, RowRestriction};

use super::Session;
use crate::error::EngineError;
use crate::limits::{QueryLabel, QueryUsage, TouchedTables};
use crate::sql::catalog_table::CatalogTable;
use crate::stream::QueryStats;

/// Words after which a text may be a secret. The last three sign URLs.
const SECRETIVE: [&str; 9] =
    ["secret", "password", "passwd", "token", "credential", "access_key", "signature=", "sig=", "x-amz-"];
/// What the tokens of the catalog begin with.
const TOKEN_PREFIX: &str = "qrt_";

/// A statement that runs, and what will be recorded of it.
pub(super) struct AuditedStatement {
    catalog: Arc<Catalog>,
    touched: Option<Arc<Mutex<TouchedTables>>>,
    record: AuditRecord,
    began: Instant,
    slow_after: Option<Duration>,
}

impl Session {
    /// Returns the session of which the audit log says that its statements come through `door`.
    pub fn through(self, door: &'static str) -> Self {
        Self { door, ..self }
    }

    /// Returns what records a statement that begins now; `None` where no log is kept, of slow ones neither.
    pub(super) fn audited(&self, label: &QueryLabel, usage: Option<&Arc<QueryUsage>>) -> Option<AuditedStatement> {
        let catalog = self.engine.catalog();
        let slow_after = self.engine.slow_query();
        if !catalog.audit().is_kept() && slow_after.is_none() {
            return None;
        }
        let record = AuditRecord {
            at: chrono::Utc::now(),
            subject: label.subject.clone(),
            role: self.principal.role().as_str().to_owned(),
            door: self.door.to_owned(),
            statement: without_secrets(&label.text),
            tables: Vec::new(),
            columns: Vec::new(),
            written: None,
            policies: Vec::new(),
            outcome: AuditOutcome::Done,
            error: None,
            rows: 0,
            bytes: 0,
            elapsed_ms: 0,
        };
        let touched = usage.map(|usage| usage.touched());
        Some(AuditedStatement { catalog: Arc::clone(catalog), touched, record, began: Instant::now(), slow_after })
    }

    /// Returns what the audit log says that its statements came through.
    pub(crate) fn door(&self) -> &'static str {
        self.door
    }

    /// Begins to record what is done by other means than a statement, such as an import; `text` says what it is.
    pub fn audited_act(&self, text: &str, written: Option<String>) -> AuditedAct {
        let touched = TouchedTables { written, ..TouchedTables::default() };
        let audited = self.audited(&self.label(text), None);
        AuditedAct(audited.map(|audited| AuditedStatement { touched: Some(Arc::new(Mutex::new(touched))), ..audited }))
    }

    /// Records a statement that failed or was refused while it was planned, by a door at which that is a step of its own.
    pub fn record_failure(&self, text: &str, error: &EngineError) {
        if let Some(audited) = self.audited(&self.label(text), None) {
            audited.ended(QueryStats::default(), Some(error.code()));
        }
    }
}

/// What is done by other means than a statement, while it is.
pub struct AuditedAct(Option<AuditedStatement>);

impl AuditedAct {
    /// Records how it ended: the rows that it wrote, or the code of its error.
    pub fn ended(self, outcome: Result<u64, &'static str>) {
        if let Some(audited) = self.0 {
            let stats = QueryStats { rows: outcome.unwrap_or_default(), ..QueryStats::default() };
            audited.ended(stats, outcome.err());
        }
    }
}

impl AuditedStatement {
    /// Records how the statement ended.
    pub(super) fn ended(self, stats: QueryStats, error: Option<&'static str>) {
        let Self { catalog, touched, mut record, began, slow_after } = self;
        if let Some(touched) = touched {
            let TouchedTables { tables, columns, written, policies } = std::mem::take(&mut *touched.lock());
            record.tables = tables.into_iter().collect();
            record.columns = columns.into_iter().collect();
            record.policies = policies.into_iter().collect();
            record.written = written;
        }
        record.outcome = match error {
            None => AuditOutcome::Done,
            Some("not_allowed" | "location_not_allowed" | "forbidden") => AuditOutcome::Refused,
            Some(_) => AuditOutcome::Failed,
        };
        record.error = error.map(str::to_owned);
        (record.rows, record.bytes) = (stats.rows, stats.bytes);
        let elapsed = began.elapsed();
        record.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        if slow_after.is_some_and(|slow_after| elapsed >= slow_after) {
            tracing::warn!(
                subject = record.subject,
                door = record.door,
                elapsed_ms = record.elapsed_ms,
                rows = record.rows,
                bytes = record.bytes,
                error = record.error,
                tables = record.tables.join(" "),
                statement = record.statement,
                "slow query"
            );
        }
        catalog.audit().record(record);
    }
}

/// Remembers what an optimised plan reads, for the query that this thread works for.
pub(super) fn note_touched(plan: &LogicalPlan) {
    let Some(usage) = QueryUsage::current() else { return };
    let mut touched = TouchedTables::default();
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            match CatalogTable::resolved_behind(&scan.source) {
                Some(table) => {
                    let name = table.info.name.to_string();
                    let columns = scan.projected_schema.fields().iter().map(|field| format!("{name}.{}", field.name()));
                    touched.columns.extend(columns);
                    let filtered = scan.filters.iter().flat_map(|filter| filter.column_refs());
                    touched.columns.extend(filtered.map(|column| format!("{name}.{}", column.name())));
                    touched.policies.extend(policies_of(table));
                    touched.tables.insert(name);
                }
                None => drop(touched.tables.insert(scan.table_name.to_string())),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if visited.is_ok() {
        usage.touch(touched);
    }
}

fn policies_of(table: &ResolvedTable) -> Vec<String> {
    let Some(restriction) = &table.restriction else { return Vec::new() };
    let rows = match &restriction.rows {
        RowRestriction::All => Vec::new(),
        RowRestriction::None => vec!["no row policy holds".to_owned()],
        RowRestriction::Any(conditions) => conditions.iter().map(|(name, _)| format!("row policy {name}")).collect(),
    };
    let masks = restriction.masks.iter().map(|(_, name, _)| format!("mask {name}"));
    rows.into_iter().chain(masks).map(|policy| format!("{policy} on {}", table.info.name)).collect()
}

/// Returns a statement's text with stars in the place of what may be a secret.
pub(super) fn without_secrets(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let text = match SECRETIVE.iter().any(|word| lower.contains(word)) {
        true => without_texts(text),
        false => text.to_owned(),
    };
    let text = without_user_info(text);
    if !text.contains(TOKEN_PREFIX) {
        return text;
    }
    let mut parts = text.split(TOKEN_PREFIX);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("***");
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    kept
}

/// Puts stars in the place of what URLs say before an `@`: a name and a password, or keys.
fn without_user_info(text: String) -> String {
    if !text.contains("://") || !text.contains('@') {
        return text;
    }
    let mut parts = text.split("://");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '\'' | '"');
        let (authority, rest) = part.split_at(part.find(ends).unwrap_or(part.len()));
        let host = authority.rsplit_once('@').map(|(_, host)| format!("***@{host}"));
        kept.push_str("://");
        kept.push_str(host.as_deref().unwrap_or(authority));
        kept.push_str(rest);
    }
    kept
}

/// Puts stars in the place of each text between single quotes.
fn without_texts(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for (index, part) in text.split('\'').enumerate() {
        match index % 2 {
            0 => kept.push_str(part),
            _ => kept.push_str("'***'"),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        assert_eq!(without_secrets("SELECT 'a' FROM t"), "SELECT 'a' FROM t");
        assert_eq!(
            without_secrets("CREATE EXTERNAL TABLE t OPTIONS ('aws_Secret_access_key' 'abc', 'x' 'it''s')"),
            "CREATE EXTERNAL TABLE t OPTIONS ('***' '***', '***' '***''***')"
        );
        assert_eq!(without_secrets("SELECT 'qrt_0123abz' x"), "SELECT '***z' x");
        assert_eq!(
            without_secrets("SELECT a@b FROM 's3://key:pa@ss@bucket/x@y.csv', 'https://h/a@b', 'az://c@d'"),
            "SELECT a@b FROM 's3://***@bucket/x@y.csv', 'https://h/a@b', 'az://***@d'"
        );
        assert_eq!(without_secrets("SELECT * FROM 'https://h/x.csv?sv=1&sig=abc'"), "SELECT * FROM '***'");
    }
}

//! A few values of text columns, for the prompt: `manufacturer VARCHAR ('BOEING', 'EMBRAER')` shows a model how values
//! are spelled, which no name or type does. They come from a bounded read as the caller, within a deadline, and are
//! cached for the next run; a table that cannot be read in time is shown without them.
//!
//! Invariant: what is kept is used for a caller of the same rights, at the same version of the catalog, and for a while.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use futures::StreamExt;
use parking_lot::Mutex;
use querent_catalog::{TableInfo, TableKind};
use querent_engine::Session;
use uuid::Uuid;

use crate::sql_text::{quote_identifier, quoted_table};

/// Values by column.
pub(crate) type Examples = BTreeMap<String, Vec<String>>;

/// Rows read of each table.
const ROWS: usize = 100;
const VALUES: usize = 2;
const MAX_VALUE_CHARS: usize = 24;
/// Tables read, best first: those that a prompt shows whole.
const TABLES: usize = 6;
const COLUMNS: usize = 16;
/// Beyond this the cache is emptied; it fills again as it is used.
const CACHED_TABLES: usize = 1_024;
/// How long values are used again: which rows a policy leaves may depend on the time, and external files change unseen.
const CACHED_FOR: Duration = Duration::from_secs(60);

/// Values read before, by caller and version: another caller may see other rows, and later there are others.
#[derive(Debug, Default)]
pub(crate) struct ExampleCache {
    tables: Mutex<HashMap<(String, Uuid), CachedExamples>>,
}

#[derive(Debug)]
struct CachedExamples {
    examples: Examples,
    read_at: Instant,
}

impl ExampleCache {
    /// Returns the tables with values of the best ones that are read in time; empty for the others.
    pub(crate) async fn examples_of_tables(
        &self,
        session: &Session,
        tables: Vec<TableInfo>,
        timeout: Duration,
    ) -> Vec<(TableInfo, Examples)> {
        let deadline = tokio::time::Instant::now() + timeout;
        let version = tokio::time::timeout_at(deadline, session.engine().catalog().tables().version()).await;
        let Ok(Ok(version)) = version else {
            return tables.into_iter().map(|table| (table, Examples::new())).collect();
        };
        // Another token of the caller, another policy, and what was committed since show other rows.
        let reader = format!("{:?} at {version:?}", session.principal());
        let reads = tables.iter().take(TABLES).map(|table| self.examples_of_table(session, &reader, table));
        let reads = reads.map(|read| async { tokio::time::timeout_at(deadline, read).await.unwrap_or_default() });
        let mut found = futures::future::join_all(reads).await.into_iter();
        tables.into_iter().map(|table| (table, found.next().unwrap_or_default())).collect()
    }

    async fn examples_of_table(&self, session: &Session, reader: &str, table: &TableInfo) -> Examples {
        let key = (reader.to_owned(), table.uuid);
        if let Some(cached) = self.tables.lock().get(&key).filter(|cached| cached.read_at.elapsed() < CACHED_FOR) {
            return cached.examples.clone();
        }
        let examples = match read(session, table).await {
            Ok(examples) => examples,
            Err(error) => {
                tracing::debug!(table = %table.name, code = error.code(), "no example values");
                return Examples::new();
            }
        };
        let mut tables = self.tables.lock();
        if tables.len() >= CACHED_TABLES {
            tables.clear();
        }
        tables.insert(key, CachedExamples { examples: examples.clone(), read_at: Instant::now() });
        examples
    }
}

async fn read(session: &Session, table: &TableInfo) -> querent_engine::Result<Examples> {
    let columns: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| column.data_type.is_string())
        .map(|column| column.name.as_str())
        .take(COLUMNS)
        .collect();
    // A view may compute anything: its first rows can cost as much as all of them.
    if columns.is_empty() || table.kind == TableKind::View {
        return Ok(Examples::new());
    }
    let selected: Vec<String> = columns.iter().map(|column| quote_identifier(column)).collect();
    let sql = format!("SELECT {} FROM {} LIMIT {ROWS}", selected.join(", "), quoted_table(&table.name));
    let mut stream = session.sql(&sql).await?;
    let mut values: Vec<Vec<String>> = vec![Vec::new(); columns.len()];
    while let Some(batch) = stream.next().await {
        gather(&batch?, &mut values);
    }
    let examples = columns.into_iter().zip(values).map(|(column, values)| (column.to_owned(), most_frequent(values)));
    Ok(examples.filter(|(_, values)| !values.is_empty()).collect())
}

fn gather(batch: &RecordBatch, values: &mut [Vec<String>]) {
    for (column, values) in batch.columns().iter().zip(values) {
        // The reader may choose any string type.
        let Ok(text) = cast(column, &DataType::Utf8) else { continue };
        let text = text.as_string::<i32>();
        values.extend(text.iter().flatten().map(str::to_owned));
    }
}

/// Returns the most frequent short values; ties in alphabetical order, so that a prompt is the same every time.
fn most_frequent(values: Vec<String>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counted: Vec<(String, usize)> = counts
        .into_iter()
        .filter(|(value, _)| {
            !value.trim().is_empty() && value.chars().count() <= MAX_VALUE_CHARS && !value.chars().any(char::is_control)
        })
        .collect();
    counted.sort_by(|(_, left), (_, right)| right.cmp(left));
    counted.into_iter().take(VALUES).map(|(value, _)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_short_values_are_taken() {
        let values = ["b", "a", "b", "", "a value that is far too long to show"].map(str::to_owned).to_vec();
        assert_eq!(most_frequent(values), ["b", "a"]);
    }
}

//! A few values of text columns, for the prompt: `manufacturer VARCHAR ('BOEING', 'EMBRAER')` shows a model how values
//! are spelled, which no name or type does. They come from a bounded read as the caller, within a deadline, and are
//! cached for the next run; a table that cannot be read in time is shown without them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

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

/// How long a run may wait for the values.
const DEADLINE: Duration = Duration::from_millis(250);
/// Rows read of each table.
const ROWS: usize = 100;
const VALUES: usize = 2;
const MAX_VALUE_CHARS: usize = 24;
/// Tables read, best first: those that a prompt shows whole.
const TABLES: usize = 6;
const COLUMNS: usize = 16;
/// Beyond this the cache is emptied; it fills again as it is used.
const CACHED_TABLES: usize = 1_024;

/// Values read before, by caller: another caller may see other rows.
#[derive(Debug, Default)]
pub(crate) struct ExampleCache {
    tables: Mutex<HashMap<(String, Uuid), Examples>>,
}

impl ExampleCache {
    /// Returns the tables with values of the best ones; empty for the others.
    pub(crate) async fn examples_of_tables(
        &self,
        session: &Session,
        tables: Vec<TableInfo>,
    ) -> Vec<(TableInfo, Examples)> {
        // Another token of the caller, and another policy, show other rows.
        let policy = session.engine().catalog().policies().current().version;
        let caller = format!("{:?} under policy {policy}", session.principal());
        let reads = tables.iter().take(TABLES).map(|table| self.examples_of_table(session, &caller, table));
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let reads = reads.map(|read| async { tokio::time::timeout_at(deadline, read).await.unwrap_or_default() });
        let mut found = futures::future::join_all(reads).await.into_iter();
        tables.into_iter().map(|table| (table, found.next().unwrap_or_default())).collect()
    }

    async fn examples_of_table(&self, session: &Session, caller: &str, table: &TableInfo) -> Examples {
        let key = (caller.to_owned(), table.uuid);
        if let Some(examples) = self.tables.lock().get(&key) {
            return examples.clone();
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
        tables.insert(key, examples.clone());
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

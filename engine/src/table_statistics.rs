//! What a table's columns hold, as one caller sees them: nulls, distinct values, extremes, the most frequent values and a
//! histogram. Every number is counted by a query of the caller's session, so that row policies, masks and limits hold.
//!
//! The work is bounded by the session's wall clock: a table that cannot be read whole in it is described by its first
//! rows, and columns whose turn does not come have no values and no histogram. Both are said.

mod buckets;

use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use querent_catalog::{ColumnInfo, TableInfo};
use serde::Serialize;

use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::session::Session;
use crate::type_names::{has_order, sql_name};
use buckets::{BucketScale, Buckets};

/// The columns that are described, from the first; of wider tables the number of the others is said.
const MAX_COLUMNS: usize = 100;
/// The rows that stand for a table that takes too long.
const FIRST_ROWS: usize = 100_000;
const MAX_TOP_VALUES: usize = 10;
/// Values of a column with more distinct ones are not counted one by one.
const MAX_COUNTED_VALUES: u64 = 10_000;
/// Longer values are cut, with an ellipsis.
const MAX_VALUE_CHARS: usize = 200;

/// What a table's columns hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableStatistics {
    /// Rows that were counted.
    pub rows: u64,
    /// Whether that is the whole table, and every column was described in full; otherwise the time was too short.
    pub is_complete: bool,
    /// Columns beyond those that are described.
    pub left_out_columns: usize,
    /// In the table's order.
    pub columns: Vec<ColumnStatistics>,
}

/// What a column holds. Values are texts, as `CAST(... AS VARCHAR)` writes them, of 200 characters at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnStatistics {
    /// Its name.
    pub name: String,
    /// Its type in SQL.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Rows without a value.
    pub nulls: u64,
    /// Distinct values, estimated; `None` for nested and binary types.
    pub distinct: Option<u64>,
    /// The least value.
    pub min: Option<String>,
    /// The greatest value.
    pub max: Option<String>,
    /// The mean of numbers, infinite ones and NaN left aside.
    pub mean: Option<f64>,
    /// The most frequent values, if values repeat.
    pub top_values: Option<Vec<ValueFrequency>>,
    /// Rows by ranges of numbers, dates and instants.
    pub histogram: Option<Vec<HistogramBucket>>,
}

/// How often a value is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueFrequency {
    /// The value.
    pub value: String,
    /// Its rows.
    pub rows: u64,
}

/// The rows of a range. The next range begins at `to`; the last one includes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistogramBucket {
    /// The least value of the range.
    pub from: String,
    /// Its end.
    pub to: String,
    /// Rows with a value in it.
    pub rows: u64,
}

impl Session {
    /// Describes the columns of a table, which was resolved for this caller. Errors: those of a query over it.
    pub async fn table_statistics(&self, table: &TableInfo) -> Result<TableStatistics> {
        let (database, name) = (quote_identifier(&table.name.database), quote_identifier(&table.name.table));
        let whole = format!("{database}.{name}");
        let columns: Vec<&ColumnInfo> = table.columns.iter().take(MAX_COLUMNS).collect();
        let left_out_columns = table.columns.len() - columns.len();
        let begun = Instant::now();
        let counted = match self.count_columns(&whole, &columns).await {
            Err(error) if is_limit(&error) => None,
            counted => Some(counted?),
        };
        let is_whole = counted.is_some();
        let (relation, counted) = match counted {
            Some(counted) => (whole, counted),
            None => {
                let first = format!("(SELECT * FROM {whole} LIMIT {FIRST_ROWS}) AS first_rows");
                let counted = self.count_columns(&first, &columns).await?;
                (first, counted)
            }
        };
        let mut statistics = TableStatistics {
            rows: counted.rows,
            is_complete: is_whole,
            left_out_columns,
            columns: Vec::with_capacity(columns.len()),
        };
        for (column, mut counts) in columns.into_iter().zip(counted.columns) {
            let detailed = match begun.elapsed() < self.limits().wall_clock {
                true => self.describe_column(&relation, column, &mut counts).await,
                false => Ok(false),
            };
            match detailed {
                Ok(is_complete) => statistics.is_complete &= is_complete,
                Err(error) if is_limit(&error) => statistics.is_complete = false,
                Err(error) => return Err(error),
            }
            statistics.columns.push(counts.statistics);
        }
        Ok(statistics)
    }

    /// Counts the rows, and what one pass over them says of each column.
    async fn count_columns(&self, relation: &str, columns: &[&ColumnInfo]) -> Result<TableCounts> {
        let mut expressions = vec!["count(*)".to_owned()];
        for column in columns {
            expressions.extend(count_expressions(column));
        }
        let named: Vec<String> = expressions.iter().enumerate().map(|(at, text)| format!("{text} AS e{at}")).collect();
        let row = self.read_rows(&format!("SELECT {} FROM {relation}", named.join(", "))).await?;
        let row = row.first().ok_or_else(|| EngineError::Internal("an aggregation without a row".to_owned()))?;
        let rows = number_at(row, 0, 0)?.unwrap_or_default();
        let each =
            columns.iter().enumerate().map(|(at, column)| ColumnCounts::read(row, 1 + at * EXPRESSIONS, rows, column));
        Ok(TableCounts { rows, columns: each.collect::<Result<Vec<_>>>()? })
    }

    /// Adds the most frequent values and the histogram. Returns whether all that applies to the column is there.
    async fn describe_column(&self, relation: &str, column: &ColumnInfo, counts: &mut ColumnCounts) -> Result<bool> {
        let name = quote_identifier(&column.name);
        if let Some(buckets) = counts.buckets(column) {
            let number = number_of(&column.data_type, &name).unwrap_or_default();
            let bucket = buckets.expression(&number);
            let sql = format!(
                "SELECT {bucket} AS bucket, count(*) AS n FROM {relation} WHERE {number} IS NOT NULL GROUP BY 1 ORDER BY 1"
            );
            let mut rows = vec![0; buckets.len()];
            for batch in self.read_rows(&sql).await? {
                for row in 0..batch.num_rows() {
                    let place = number_at(&batch, 0, row)?.and_then(|place| usize::try_from(place).ok());
                    if let Some(of_bucket) = place.and_then(|place| rows.get_mut(place)) {
                        *of_bucket += number_at(&batch, 1, row)?.unwrap_or_default();
                    }
                }
            }
            counts.statistics.histogram = Some(buckets.with_rows(rows));
        }
        if counts.repeats() {
            let sql = format!(
                "SELECT CAST({name} AS VARCHAR) AS v, count(*) AS n FROM {relation} WHERE {name} IS NOT NULL \
                 GROUP BY 1 ORDER BY n DESC, v LIMIT {MAX_TOP_VALUES}"
            );
            let mut values = Vec::new();
            for batch in self.read_rows(&sql).await? {
                for row in 0..batch.num_rows() {
                    let Some(value) = text_at(&batch, 0, row)? else { continue };
                    values.push(ValueFrequency { value, rows: number_at(&batch, 1, row)?.unwrap_or_default() });
                }
            }
            counts.statistics.top_values = Some(values);
        }
        Ok(true)
    }

    async fn read_rows(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let (batches, _) = self.sql(sql).await?.collect().await?;
        Ok(batches.into_iter().filter(|batch| batch.num_rows() > 0).collect())
    }
}

/// What one pass over the rows says.
struct TableCounts {
    rows: u64,
    columns: Vec<ColumnCounts>,
}

struct ColumnCounts {
    statistics: ColumnStatistics,
    values: u64,
    /// The least and the greatest finite number, of instants in seconds.
    range: Option<(f64, f64)>,
}

/// The aggregates of each column, in this order.
const EXPRESSIONS: usize = 7;

fn count_expressions(column: &ColumnInfo) -> [String; EXPRESSIONS] {
    let name = quote_identifier(&column.name);
    let kind = &column.data_type;
    let (none_text, none_number) = ("CAST(NULL AS VARCHAR)".to_owned(), "CAST(NULL AS DOUBLE)".to_owned());
    let when = |applies: bool, text: String, otherwise: &String| if applies { text } else { otherwise.clone() };
    let is_ordered = has_order(kind);
    let number = number_of(kind, &name);
    let of_number =
        |function: &str| number.as_ref().map_or(none_number.clone(), |number| format!("{function}({number})"));
    [
        format!("count({name})"),
        when(is_ordered, format!("approx_distinct(CAST({name} AS VARCHAR))"), &"CAST(NULL AS BIGINT)".to_owned()),
        when(is_ordered, format!("CAST(min({name}) AS VARCHAR)"), &none_text),
        when(is_ordered, format!("CAST(max({name}) AS VARCHAR)"), &none_text),
        of_number("min"),
        of_number("max"),
        when(kind.is_numeric(), of_number("avg"), &none_number),
    ]
}

/// Returns the number by which values of a column are put into ranges; `None` where there is none.
fn number_of(kind: &DataType, name: &str) -> Option<String> {
    match kind {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            Some(format!("CASE WHEN CAST({name} AS DOUBLE) BETWEEN -1e300 AND 1e300 THEN CAST({name} AS DOUBLE) END"))
        }
        // With a sum, since DataFusion names `min(a)` and `min(CAST(a AS DOUBLE))` alike and refuses both in one list.
        kind if kind.is_numeric() => Some(format!("(CAST({name} AS DOUBLE) + 0e0)")),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => {
            Some(format!("CAST(date_part('epoch', {name}) AS DOUBLE)"))
        }
        _ => None,
    }
}

impl ColumnCounts {
    /// Reads a column's aggregates, from the one at `at` on.
    fn read(row: &RecordBatch, at: usize, rows: u64, column: &ColumnInfo) -> Result<Self> {
        let values = number_at(row, at, 0)?.unwrap_or_default();
        let range = float_at(row, at + 4)?.zip(float_at(row, at + 5)?);
        let statistics = ColumnStatistics {
            name: column.name.clone(),
            data_type: sql_name(&column.data_type),
            nulls: rows.saturating_sub(values),
            // An estimate may exceed what there is.
            distinct: number_at(row, at + 1, 0)?.map(|distinct| distinct.min(values)),
            min: text_at(row, at + 2, 0)?,
            max: text_at(row, at + 3, 0)?,
            mean: float_at(row, at + 6)?,
            top_values: None,
            histogram: None,
        };
        Ok(Self { statistics, values, range })
    }

    /// Whether the values are few enough, beside the rows, for some to be frequent.
    fn repeats(&self) -> bool {
        let distinct = self.statistics.distinct.unwrap_or(u64::MAX);
        self.values > 0 && distinct <= MAX_COUNTED_VALUES && (distinct <= 50 || distinct <= self.values / 2)
    }

    fn buckets(&self, column: &ColumnInfo) -> Option<Buckets> {
        let scale = match &column.data_type {
            kind if kind.is_integer() => BucketScale::Whole,
            kind if kind.is_numeric() => BucketScale::Number,
            DataType::Date32 | DataType::Date64 => BucketScale::Day,
            _ => BucketScale::Instant,
        };
        self.range.map(|(least, most)| Buckets::new(scale, least, most))
    }
}

/// Whether the query was too much for its session, and a smaller one may not be.
fn is_limit(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::WallClockExceeded { .. } | EngineError::MemoryExceeded { .. } | EngineError::ScanTooLarge { .. }
    )
}

fn cell(batch: &RecordBatch, column: usize, kind: &DataType) -> Result<ArrayRef> {
    Ok(cast(batch.column(column), kind)?)
}

fn number_at(batch: &RecordBatch, column: usize, row: usize) -> Result<Option<u64>> {
    let array = cell(batch, column, &DataType::UInt64)?;
    let array = array.as_primitive::<UInt64Type>();
    Ok(array.is_valid(row).then(|| array.value(row)))
}

fn float_at(batch: &RecordBatch, column: usize) -> Result<Option<f64>> {
    let array = cell(batch, column, &DataType::Float64)?;
    let array = array.as_primitive::<Float64Type>();
    Ok(array.is_valid(0).then(|| array.value(0)).filter(|number| number.is_finite()))
}

fn text_at(batch: &RecordBatch, column: usize, row: usize) -> Result<Option<String>> {
    let array = cell(batch, column, &DataType::Utf8)?;
    let array = array.as_string::<i32>();
    Ok(array.is_valid(row).then(|| shortened(array.value(row))))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

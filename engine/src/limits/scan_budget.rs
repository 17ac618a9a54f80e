//! How much a statement may read from tables, judged before it runs by what is known of their files: rows and bytes of those
//! that its filters leave. What is not known is let through.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::datasource::listing::PartitionedFile;
use parking_lot::Mutex;
use querent_catalog::Role;

use crate::error::{EngineError, Result};

/// How much a statement may read from tables, by the role of its caller. Administrators may read everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanLimits {
    /// Of role `read`.
    pub read: ScanLimit,
    /// Of role `write`.
    pub write: ScanLimit,
}

/// How much a statement may read from tables; `None` is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanLimit {
    /// Rows of all its scans.
    pub max_rows: Option<u64>,
    /// Bytes of the files of all its scans.
    pub max_bytes: Option<u64>,
}

/// What the scans of a statement are about to read. The providers of tables find it in the state that they plan with.
#[derive(Debug, Default)]
pub(crate) struct ScanBudget {
    scans: Mutex<Vec<ScanEstimate>>,
}

/// What one scan is about to read, as far as it is known.
#[derive(Debug, Clone)]
struct ScanEstimate {
    table: String,
    rows: Option<u64>,
    bytes: Option<u64>,
    /// Whether its numbers are of rows that the caller does not see.
    is_hidden: bool,
}

/// What of a scan is compared with a limit.
type ScanMeasure = fn(&ScanEstimate) -> Option<u64>;

impl ScanLimits {
    /// Returns the limit of a role; `None` where it has no bound.
    pub(crate) fn of(&self, role: Role) -> Option<ScanLimit> {
        let limit = match role {
            Role::Read => self.read,
            Role::Write => self.write,
            Role::Admin => return None,
        };
        (limit != ScanLimit::default()).then_some(limit)
    }
}

impl ScanBudget {
    /// Returns the budget of the statement that is planned with `state`; `None` where it has no bound.
    pub(crate) fn of(state: &dyn Session) -> Option<Arc<Self>> {
        state.config().get_extension::<Self>()
    }

    /// Counts a scan of files, or of the first `limit` rows of them, of which it reads the columns of `projection`.
    pub(crate) fn count(
        &self,
        table: &str,
        files: &[PartitionedFile],
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) {
        let rows = files.iter().map(|file| {
            let rows = file.statistics.as_ref()?.num_rows.get_value().copied()?;
            u64::try_from(rows).ok()
        });
        let rows: Option<u64> = rows.sum();
        let bytes: u64 = files.iter().map(|file| bytes_of(file, projection)).sum();
        let (rows, bytes) = match (rows, limit.and_then(|limit| u64::try_from(limit).ok())) {
            (Some(rows), Some(limit)) if limit < rows => {
                let share = u128::from(bytes) * u128::from(limit) / u128::from(rows);
                (Some(limit), u64::try_from(share).ok())
            }
            // How many bytes the first rows have is not known.
            (None, Some(_)) => (None, None),
            (rows, _) => (rows, Some(bytes)),
        };
        self.scans.lock().push(ScanEstimate { table: table.to_owned(), rows, bytes, is_hidden: false });
    }

    /// Counts scans of which the caller sees a part only, roughly: with scans of its own beside them it would find out, by what is
    /// refused, how many rows there are.
    pub(crate) fn count_hidden(&self, scans: &Self) {
        let hidden = scans.scans.lock().clone();
        self.scans.lock().extend(hidden.into_iter().map(|scan| ScanEstimate {
            rows: scan.rows.map(roughly),
            bytes: scan.bytes.map(roughly),
            is_hidden: true,
            ..scan
        }));
    }

    /// Fails with `scan_too_large` where the scans read more than `limit`.
    pub(crate) fn check(&self, role: Role, limit: ScanLimit) -> Result<()> {
        let scans = self.scans.lock();
        let rows: ScanMeasure = |scan| scan.rows;
        let bytes: ScanMeasure = |scan| scan.bytes;
        for (unit, measure, most) in [("rows", rows, limit.max_rows), ("bytes", bytes, limit.max_bytes)] {
            let Some(most) = most else { continue };
            let total = scans.iter().filter_map(measure).fold(0, u64::saturating_add);
            let Some(largest) = scans.iter().max_by_key(|scan| measure(scan)).filter(|_| total > most) else {
                continue;
            };
            let estimate = match scans.iter().any(|scan| scan.is_hidden) {
                true => format!("too many {unit}"),
                false => {
                    let of_it = measure(largest).unwrap_or_default();
                    format!("about {total} {unit}, {of_it} of them from `{}`", largest.table)
                }
            };
            let limit = format!("{most} {unit} are the most for role {}", role.as_str());
            return Err(EngineError::ScanTooLarge { estimate, limit });
        }
        Ok(())
    }
}

/// Returns a number of which two bits are told, less than a third below; none of a small one.
fn roughly(number: u64) -> u64 {
    const SMALL_BITS: u32 = 10;
    match u64::BITS - number.leading_zeros() {
        bits if bits <= SMALL_BITS => 0,
        bits => number >> (bits - 2) << (bits - 2),
    }
}

/// Returns the bytes of a file, or of those of its columns that are read, where that is known and less.
fn bytes_of(file: &PartitionedFile, projection: Option<&Vec<usize>>) -> u64 {
    let of_columns = || {
        let columns = &file.statistics.as_ref()?.column_statistics;
        let sizes = projection?.iter().map(|column| columns.get(*column)?.byte_size.get_value().copied());
        u64::try_from(sizes.sum::<Option<usize>>()?).ok()
    };
    of_columns().map_or(file.object_meta.size, |bytes| bytes.min(file.object_meta.size))
}

#[cfg(test)]
mod tests {
    use datafusion::common::stats::Precision;
    use datafusion::common::{ColumnStatistics, Statistics};

    use super::*;

    /// A file of 1,000 bytes, of which the first column has 100.
    fn file(rows: Option<usize>) -> PartitionedFile {
        let statistics = Statistics {
            num_rows: rows.map_or(Precision::Absent, Precision::Exact),
            total_byte_size: Precision::Absent,
            column_statistics: vec![
                ColumnStatistics::new_unknown().with_byte_size(Precision::Inexact(100)),
                ColumnStatistics::new_unknown(),
            ],
        };
        PartitionedFile::new("f", 1_000).with_statistics(Arc::new(statistics))
    }

    fn refusal(budget: &ScanBudget, max_rows: Option<u64>, max_bytes: Option<u64>) -> Option<String> {
        budget.check(Role::Read, ScanLimit { max_rows, max_bytes }).err().map(|error| error.to_string())
    }

    #[test]
    fn all_scans_count_together_and_the_largest_is_named() {
        let budget = ScanBudget::default();
        budget.count("a", &[file(Some(10))], None, None);
        budget.count("b", &[file(Some(20)), file(Some(20))], None, None);
        assert_eq!(refusal(&budget, Some(50), Some(3_000)), None);
        let said = refusal(&budget, Some(49), None).unwrap();
        assert!(said.contains("50 rows, 40 of them from `b`; 49 rows"), "{said}");
        let said = refusal(&budget, None, Some(2_999)).unwrap();
        assert!(said.contains("3000 bytes, 2000 of them from `b`"), "{said}");
    }

    #[test]
    fn less_is_read_of_some_columns_and_of_the_first_rows() {
        let columns = ScanBudget::default();
        columns.count("a", &[file(Some(10))], Some(&vec![0]), None);
        assert_eq!(refusal(&columns, None, Some(100)), None);
        let unknown = ScanBudget::default();
        unknown.count("a", &[file(Some(10))], Some(&vec![0, 1]), None);
        assert!(refusal(&unknown, None, Some(999)).is_some(), "the file, where a column's size is not known");
        let first = ScanBudget::default();
        first.count("a", &[file(Some(10))], None, Some(2));
        assert_eq!(refusal(&first, Some(2), Some(200)), None);
        assert!(refusal(&first, Some(1), None).is_some());
    }

    #[test]
    fn what_is_not_known_is_let_through_and_what_is_hidden_not_told() {
        let unknown = ScanBudget::default();
        unknown.count("a", &[file(None), file(Some(10))], None, None);
        assert_eq!(refusal(&unknown, Some(1), None), None);
        unknown.count("a", &[file(None)], None, Some(1));
        assert_eq!(refusal(&unknown, None, Some(2_000)), None);
        let hidden = ScanBudget::default();
        let part = ScanBudget::default();
        part.count("secret", &[file(Some(3_000))], None, None);
        hidden.count_hidden(&part);
        let said = refusal(&hidden, Some(9), None).unwrap();
        assert!(!said.contains("000") && !said.contains("secret"), "{said}");
        assert_eq!(refusal(&hidden, Some(2_048), None), None, "how many rows there are is told by no limit");
        assert_eq!(
            [1, 1_023, 1_024, 2_000, 3_071, 3_072, u64::MAX].map(roughly),
            [0, 0, 1_024, 1_536, 2_048, 3_072, 3 << 62]
        );
    }
}

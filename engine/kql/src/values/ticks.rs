//! Ticks of 100 ns. A datetime is the number of ticks since the beginning of year 1, in UTC.

use chrono::{Datelike, NaiveDate};

pub(crate) const TICKS_PER_MICROSECOND: i64 = 10;
pub(crate) const TICKS_PER_MILLISECOND: i64 = 10_000;
pub(crate) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(crate) const TICKS_PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;
pub(crate) const TICKS_PER_HOUR: i64 = 60 * TICKS_PER_MINUTE;
pub(crate) const TICKS_PER_DAY: i64 = 24 * TICKS_PER_HOUR;

/// 1970-01-01.
pub(crate) const UNIX_EPOCH_TICKS: i64 = 719_162 * TICKS_PER_DAY;
/// 9999-12-31T23:59:59.9999999.
pub(crate) const MAX_DATETIME_TICKS: i64 = 3_652_059 * TICKS_PER_DAY - 1;

/// Returns the date of a datetime; `None` outside years 1 to 9999.
pub(crate) fn date_of(ticks: i64) -> Option<NaiveDate> {
    if !(0..=MAX_DATETIME_TICKS).contains(&ticks) {
        return None;
    }
    NaiveDate::from_num_days_from_ce_opt(i32::try_from(ticks / TICKS_PER_DAY).ok()? + 1)
}

/// Returns the beginning of a date; `None` outside years 1 to 9999.
pub(crate) fn date_ticks(date: NaiveDate) -> Option<i64> {
    let ticks = i64::from(date.num_days_from_ce() - 1).checked_mul(TICKS_PER_DAY)?;
    (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
}

//! Ticks and the calendar: a datetime is ticks of 100 ns since the beginning of year 1, in UTC.

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

/// The day of a datetime; `None` outside years 1 to 9999.
pub(crate) fn date_of(ticks: i64) -> Option<NaiveDate> {
    if !(0..=MAX_DATETIME_TICKS).contains(&ticks) {
        return None;
    }
    NaiveDate::from_num_days_from_ce_opt(i32::try_from(ticks / TICKS_PER_DAY).ok()? + 1)
}

/// The beginning of a day; `None` outside years 1 to 9999.
pub(crate) fn date_ticks(date: NaiveDate) -> Option<i64> {
    let ticks = i64::from(date.num_days_from_ce() - 1) * TICKS_PER_DAY;
    (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
}

/// Ticks as nanoseconds since 1970; `None` outside 1677 to 2262.
pub(crate) fn to_unix_nanoseconds(ticks: i64) -> Option<i64> {
    (ticks - UNIX_EPOCH_TICKS).checked_mul(100)
}

/// Ticks as microseconds since 1970, the last digit cut off.
pub(crate) fn to_unix_microseconds(ticks: i64) -> i64 {
    (ticks - UNIX_EPOCH_TICKS).div_euclid(TICKS_PER_MICROSECOND)
}

/// The ticks of nanoseconds since 1970, the last two digits cut off.
pub(crate) fn from_unix_nanoseconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(100) + UNIX_EPOCH_TICKS
}

/// The ticks of microseconds since 1970; `None` outside years 1 to 9999.
pub(crate) fn from_unix_microseconds(microseconds: i64) -> Option<i64> {
    let ticks = microseconds.checked_mul(TICKS_PER_MICROSECOND)?.checked_add(UNIX_EPOCH_TICKS)?;
    (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
}

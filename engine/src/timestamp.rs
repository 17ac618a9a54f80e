//! Timestamps as strings, the same in every protocol, and how fine they are.

use arrow::array::timezone::Tz;
use arrow::datatypes::TimeUnit;
use chrono::{DateTime, Offset, SecondsFormat, TimeZone, Utc};

/// Formats an instant as RFC 3339 in `zone`, or in UTC where there is none or where local time would leave the calendar.
pub fn rfc3339(instant: DateTime<Utc>, zone: Option<Tz>) -> String {
    let local = zone.filter(|zone| {
        let offset = zone.offset_from_utc_datetime(&instant.naive_utc()).fix();
        instant.naive_utc().checked_add_offset(offset).is_some()
    });
    match local {
        Some(zone) => instant.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => instant.to_rfc3339_opts(SecondsFormat::AutoSi, true),
    }
}

/// Returns how many digits of a second's fraction values of a unit have.
pub fn fraction_digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_s_end_is_told_in_utc() {
        let zone: Tz = "+14:00".parse().unwrap();
        let ordinary = DateTime::from_timestamp(1_357_034_400, 0).unwrap();
        assert_eq!(rfc3339(ordinary, Some(zone)), "2013-01-02T00:00:00+14:00");
        assert!(rfc3339(DateTime::<Utc>::MAX_UTC, Some(zone)).ends_with('Z'));
    }
}

//! Conversions between UTC and local time, by the IANA time zone database. An unknown zone gives null. A local time that
//! is skipped is taken as the clock shows after the gap; of one that occurs twice, standard time is meant.

use arrow::array::ArrayRef;
use chrono::{NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_SECOND, date_of};

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const DATETIME: Returns = Returns::Is(KqlType::DateTime);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("datetime_list_timezones", "", DYNAMIC, |arguments| {
        let mut names: Vec<&str> = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()).collect();
        names.sort_unstable();
        let names = serde_json::Value::from(names);
        arguments.make_dynamics(|_| Ok(names.clone()))
    }),
    entry("datetime_utc_to_local", "tw", DATETIME, |arguments| {
        converted(arguments, |zone, time| Some(i64::from(zone.offset_from_utc_datetime(&time).fix().local_minus_utc())))
    }),
    entry("datetime_local_to_utc", "tw", DATETIME, |arguments| {
        converted(arguments, |zone, time| {
            if let Some(offset) = zone.offset_from_local_datetime(&time).latest() {
                return Some(-i64::from(offset.fix().local_minus_utc()));
            }
            let mut after = time;
            while zone.offset_from_local_datetime(&after).latest().is_none() {
                after = after.checked_add_signed(TimeDelta::minutes(1))?;
            }
            let offset = zone.offset_from_local_datetime(&after).earliest()?;
            Some(-i64::from(offset.fix().local_minus_utc()))
        })
    }),
];

/// Moves each datetime by the seconds that its zone says.
fn converted(arguments: &FunctionArguments, seconds: fn(Tz, NaiveDateTime) -> Option<i64>) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    let zones = arguments.strings(1)?;
    let mut known: Option<(String, Option<Tz>)> = None;
    arguments.make_longs(|row| {
        let ticks = times.get(row)?;
        let name = zones.get(row);
        let zone = match &known {
            Some((last, zone)) if last == name => *zone,
            _ => {
                let zone = name.parse::<Tz>().ok();
                known = Some((name.to_owned(), zone));
                zone
            }
        };
        let time = date_of(ticks)?.and_hms_opt(0, 0, 0)?
            + TimeDelta::seconds(ticks.rem_euclid(TICKS_PER_DAY) / TICKS_PER_SECOND);
        let moved = ticks.checked_add(seconds(zone?, time)?.checked_mul(TICKS_PER_SECOND)?)?;
        (0..=MAX_DATETIME_TICKS).contains(&moved).then_some(moved)
    })
}

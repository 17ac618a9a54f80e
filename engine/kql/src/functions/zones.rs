//! Times of day somewhere, by the IANA time zone database. A zone that is not known, and a time that a clock there never
//! shows, is null; of a time that it shows twice, standard time is meant.

use arrow::array::ArrayRef;
use chrono::{NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use datafusion::error::Result;

use super::super::types::KqlType;
use super::super::values::{MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_SECOND, date_of};
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const DATETIME: Returns = Returns::Is(KqlType::DateTime);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("datetime_list_timezones", "", DYNAMIC, |arguments| {
        let mut names: Vec<&str> = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()).collect();
        names.sort_unstable();
        let names = serde_json::Value::from(names);
        arguments.make_dynamics(|_| Ok(names.clone()))
    }),
    entry("datetime_utc_to_local", "ts", DATETIME, |arguments| {
        converted(arguments, |zone, time| Some(i64::from(zone.offset_from_utc_datetime(&time).fix().local_minus_utc())))
    }),
    entry("datetime_local_to_utc", "ts", DATETIME, |arguments| {
        converted(arguments, |zone, time| {
            let offset = zone.offset_from_local_datetime(&time).latest()?;
            Some(-i64::from(offset.fix().local_minus_utc()))
        })
    }),
];

/// Each time moved by as many seconds as its zone says.
fn converted(arguments: &Arguments, seconds: fn(Tz, NaiveDateTime) -> Option<i64>) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    let zones = arguments.texts(1)?;
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

//! Texts as times, by patterns of C: `strptime('5.3.2024', '%d.%m.%Y')`. What a pattern does not name is the first there is, in 1900;
//! the name of a weekday beside a date says nothing, as in DuckDB.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use chrono::format::{Fixed, Item, Parsed, StrftimeItems, parse, parse_and_remainder};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Weekday};
use datafusion::error::Result;

use super::dates::{instant_of, zone_named};
use super::definition::invalid;
use super::time_text::items;

/// The year of a text that names none.
const DEFAULT_YEAR: i32 = 1900;

/// Returns the times of texts, by the first pattern that fits each. Errors: a text that none fits, unless `null_where_wrong`.
pub(super) fn times(arrays: &[ArrayRef], rows: usize, null_where_wrong: bool) -> Result<ArrayRef> {
    let texts = arrays[0].as_string::<i32>();
    let mut known: Vec<(String, Vec<Item<'static>>)> = Vec::new();
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let patterns: Vec<String> = match arrays[1].data_type() {
            DataType::List(_) => {
                let list = arrays[1].as_list::<i32>();
                match list.is_null(row) {
                    true => Vec::new(),
                    false => list.value(row).as_string::<i32>().iter().flatten().map(str::to_owned).collect(),
                }
            }
            _ if arrays[1].is_null(row) => Vec::new(),
            _ => vec![arrays[1].as_string::<i32>().value(row).to_owned()],
        };
        if texts.is_null(row) || patterns.is_empty() {
            values.push(None);
            continue;
        }
        let mut found = None;
        for pattern in &patterns {
            if !known.iter().any(|(text, _)| text == pattern) {
                known.clear();
                known.push((pattern.clone(), read_items(pattern)?));
            }
            let read = known.iter().find(|(text, _)| text == pattern);
            found = found.or_else(|| read.and_then(|(_, items)| time_of(texts.value(row), items)));
        }
        if found.is_none() && !null_where_wrong {
            let zones = match patterns.iter().any(|pattern| pattern.contains("%Z")) {
                true => "; %Z is the name of a time zone, such as Europe/Berlin",
                false => "",
            };
            let patterns = patterns.join("` or `");
            return Err(invalid(format!("`{}` is not a time of the pattern `{patterns}`{zones}", texts.value(row))));
        }
        values.push(found.map(|time| time.and_utc().timestamp_micros()));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(values)))
}

/// Returns the parts of a pattern that texts are read by: an offset may lack its minutes, as `strftime` writes it.
fn read_items(pattern: &str) -> Result<Vec<Item<'static>>> {
    let mut all = items(pattern)?;
    for item in &mut all {
        if *item == Item::Fixed(Fixed::TimezoneOffset)
            && let Some(permissive) = StrftimeItems::new("%#z").next()
        {
            *item = permissive;
        }
    }
    Ok(all)
}

/// Returns the time in a text, in UTC where it has an offset or a time zone.
fn time_of(text: &str, items: &[Item<'static>]) -> Option<NaiveDateTime> {
    let mut parsed = Parsed::new();
    let zone = read(&mut parsed, text, items).or_else(|| {
        parsed = Parsed::new();
        read(&mut parsed, &with_whole_fraction(text, items)?, items)
    })?;
    if let Some(seconds) = parsed.timestamp() {
        return chrono::DateTime::from_timestamp(seconds, parsed.nanosecond().unwrap_or(0))
            .map(|time| time.naive_utc());
    }
    let date = date_of(&parsed)?;
    let time = date.and_time(time_of_day(&mut parsed)?);
    match (parsed.offset(), zone) {
        (None, Some(zone)) => Some(instant_of(zone, &time)),
        (offset, _) => time.checked_sub_signed(chrono::TimeDelta::seconds(i64::from(offset.unwrap_or(0)))),
    }
}

/// Returns the time of day of what was read: the parts that it does not have are 0. An hour of twelve without its half of the day
/// is the hour that it says, as in DuckDB: 12 is noon.
fn time_of_day(parsed: &mut Parsed) -> Option<NaiveTime> {
    let (half, hour) = (parsed.hour_div_12(), parsed.hour_mod_12());
    let parts = [half, hour, parsed.minute(), parsed.second(), parsed.nanosecond()];
    if parts.iter().all(Option::is_none) {
        return Some(NaiveTime::MIN);
    }
    if hour.is_none() {
        parsed.set_hour12(12).ok()?;
    }
    if half.is_none() {
        parsed.set_ampm(hour == Some(0)).ok()?;
    }
    if parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    if parsed.second().is_none() {
        parsed.set_second(0).ok()?;
    }
    parsed.to_naive_time().ok()
}

/// Reads a text, and returns the time zone that it names for `%Z`; `None` where the text does not fit, or there is no such zone.
fn read(parsed: &mut Parsed, text: &str, items: &[Item<'static>]) -> Option<Option<Tz>> {
    let Some(at) = items.iter().position(|item| *item == Item::Fixed(Fixed::TimezoneName)) else {
        parse(parsed, text, items.iter()).ok()?;
        return Some(None);
    };
    let (before, behind) = (items.get(..at)?, items.get(at + 1..)?);
    let rest = parse_and_remainder(parsed, text, before.iter()).ok()?;
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_' | '+' | '-' | ':');
    let (name, rest) = rest.split_at(rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len()));
    let zone = zone_named(name)?;
    parse(parsed, rest, behind.iter()).ok()?;
    Some(Some(zone))
}

/// Returns a text with all digits that the pattern has for its fraction of a second, where it has fewer: as in DuckDB and Python
/// `%f` reads `.5` as half a second.
fn with_whole_fraction(text: &str, items: &[Item<'static>]) -> Option<String> {
    let (at, digits) = items.iter().enumerate().find_map(|(at, item)| Some((at, fraction_digits(item)?)))?;
    let rest = parse_and_remainder(&mut Parsed::new(), text, items.get(..at)?.iter()).ok()?;
    let written = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (before, behind) = text.split_at_checked(text.len() - rest.len() + written)?;
    (1..digits).contains(&written).then(|| format!("{before}{}{behind}", "0".repeat(digits - written)))
}

/// Returns how many digits a part of a pattern has that is a fraction of a second.
fn fraction_digits(item: &Item<'static>) -> Option<usize> {
    static FRACTIONS: LazyLock<Vec<(Item<'static>, usize)>> = LazyLock::new(|| {
        let fractions = [("%6f", 6), ("%3f", 3), ("%9f", 9)];
        fractions.into_iter().filter_map(|(part, digits)| Some((StrftimeItems::new(part).next()?, digits))).collect()
    });
    FRACTIONS.iter().find(|(part, _)| part == item).map(|(_, digits)| *digits)
}

/// Returns the date of what was read. A month or a day comes before the number of a day or of a week in the year.
fn date_of(parsed: &Parsed) -> Option<NaiveDate> {
    let mut fields = Parsed::new();
    if let Some(year) = parsed.year() {
        fields.set_year(i64::from(year)).ok()?;
    }
    if let Some(century) = parsed.year_div_100() {
        fields.set_year_div_100(i64::from(century)).ok()?;
    }
    if let Some(year) = parsed.year_mod_100() {
        fields.set_year_mod_100(i64::from(year)).ok()?;
        // As in C and DuckDB 69 is in the century before.
        if year == 69 && parsed.year().is_none() && parsed.year_div_100().is_none() {
            fields.set_year_div_100(19).ok()?;
        }
    }
    if fields == Parsed::new() {
        let iso_year = parsed.isoyear().filter(|_| parsed.isoweek().is_some());
        fields.set_year(i64::from(iso_year.unwrap_or(DEFAULT_YEAR))).ok()?;
    }
    let is_by_month = parsed.month().is_some() || parsed.day().is_some();
    match (parsed.ordinal(), parsed.isoweek(), parsed.week_from_sun(), parsed.week_from_mon()) {
        (Some(day), ..) if !is_by_month => fields.set_ordinal(i64::from(day)).ok()?,
        (_, Some(week), ..) if !is_by_month => {
            // Of the year that the other fields name.
            let mut first = fields.clone();
            first.set_ordinal(1).ok()?;
            let year = chrono::Datelike::year(&first.to_naive_date().ok()?);
            return NaiveDate::from_isoywd_opt(year, week, parsed.weekday().unwrap_or(Weekday::Mon));
        }
        (_, _, Some(week), _) if !is_by_month => {
            fields.set_week_from_sun(i64::from(week)).ok()?;
            fields.set_weekday(parsed.weekday().unwrap_or(Weekday::Sun)).ok()?;
        }
        (_, _, _, Some(week)) if !is_by_month => {
            fields.set_week_from_mon(i64::from(week)).ok()?;
            fields.set_weekday(parsed.weekday().unwrap_or(Weekday::Mon)).ok()?;
        }
        _ => {
            fields.set_month(i64::from(parsed.month().unwrap_or(1))).ok()?;
            fields.set_day(i64::from(parsed.day().unwrap_or(1))).ok()?;
        }
    }
    fields.to_naive_date().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_times_as_in_duckdb() {
        for (text, pattern, expected) in [
            ("2020-12-31 21:25:58.745232+02", "%Y-%m-%d %H:%M:%S.%f%z", Some("2020-12-31 19:25:58.745232")),
            ("2020-12-31 21:25:58+0230", "%Y-%m-%d %H:%M:%S%z", Some("2020-12-31 18:55:58")),
            ("2022-03-05 17:59:17 America/New_York", "%Y-%m-%d %H:%M:%S %Z", Some("2022-03-05 22:59:17")),
            ("2022-03-05 XYZ", "%Y-%m-%d %Z", None),
            ("Mon Oct 17 2022 22:00:00 GMT+0000 (GMT)", "%a %b %d %Y %X GMT%z (%Z)", Some("2022-10-17 22:00:00")),
            ("Mon Oct 17 2022 22:00:00 GMT+0000 (GMT)", "%a %b %d %Y %X GMT%z (%Z", None),
            ("Mon 30, December 2003, 7:3:5 PM", "%a %d, %B %Y, %I:%M:%S %p", Some("2003-12-30 19:03:05")),
            ("tuesday", "%A", Some("1900-01-01 00:00:00")),
            ("1", "%U", Some("1900-01-07 00:00:00")),
            ("30", "%W", Some("1900-07-23 00:00:00")),
            ("2-4", "%V-%u", Some("1900-01-11 00:00:00")),
            ("2021-19-4", "%Y-%W-%w", Some("2021-05-13 00:00:00")),
            ("2021-05-12 19-4", "%Y-%m-%d %U-%w", Some("2021-05-12 00:00:00")),
            ("2024 200", "%Y %j", Some("2024-07-18 00:00:00")),
            ("2024-10-5", "%G-%V-%u", Some("2024-03-08 00:00:00")),
            ("24-3-5", "%y-%m-%d", Some("2024-03-05 00:00:00")),
            ("2024-03-05 10:00:00.05Z", "%Y-%m-%d %H:%M:%S.%fZ", Some("2024-03-05 10:00:00.050")),
            ("1.5", "%S.%g", Some("1900-01-01 00:00:01.500")),
            ("30", "%M", Some("1900-01-01 00:30:00")),
            ("7 PM", "%M %p", Some("1900-01-01 12:07:00")),
            ("5", "%f", Some("1900-01-01 00:00:00.500")),
            ("5 1", "%f %S", Some("1900-01-01 00:00:01.500")),
            ("1.1234567", "%S.%f", None),
            ("1.", "%S.%f", None),
        ] {
            let time = time_of(text, &read_items(pattern).unwrap());
            assert_eq!(time.map(|time| time.to_string()).as_deref(), expected, "{text} {pattern}");
        }
    }
}

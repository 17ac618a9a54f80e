//! Times as text and text as times: `strftime`, `strptime` and `to_char`. A pattern with `%` is one of C, as DuckDB takes it;
//! another one is PostgreSQL's. What a pattern means nothing by is refused, never copied into the answer.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Float64Type, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use chrono::format::{Fixed, Item, Numeric, StrftimeItems};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::{day_from_sunday, micros, moment, zone_named};
use super::definition::{Definition, invalid, texts};
use super::number_text::{ShownNumber, number_text};
use super::parsed_times::times;

/// The longest pattern, and the longest text that is made of one.
const MAX_PATTERN: usize = 1_000;

/// The function that returns the text of a time without its offset.
pub(crate) const WITHOUT_OFFSET: &str = "without_offset";

/// Returns the text of a time without its offset, which says nothing where there is no time zone.
pub(crate) fn without_offset(text: &str) -> &str {
    let Some(split) = text.trim_start().find(['T', 't', ' ']) else { return text };
    let start = text.len() - text.trim_start().len() + split;
    let (date, time) = text.split_at(start);
    // `Z` by itself is none of these.
    let is_zone = |word: &str| word.len() > 1 && word.starts_with(char::is_alphabetic) && zone_named(word).is_some();
    let named = time.rsplit_once(' ').filter(|(_, word)| is_zone(word)).map(|(before, _)| before.len());
    let end = named.or_else(|| time.find(['+', '-', 'Z', 'z'])).or_else(|| time.to_ascii_uppercase().find("UTC"));
    match end {
        Some(end) if time.as_bytes().iter().take(end).any(u8::is_ascii_digit) => {
            text.get(..date.len() + end).map_or(text, str::trim_end)
        }
        _ => text,
    }
}

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definitions = [
        Definition {
            name: WITHOUT_OFFSET,
            aliases: &[],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Utf8]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| texts(arrays, |text| without_offset(text).to_owned()),
        },
        Definition {
            name: "strftime",
            aliases: &[],
            arguments: 2..=2,
            // DuckDB takes its arguments in either order.
            takes: |types| match types {
                [DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8, second] if second.is_temporal() => {
                    Ok(vec![DataType::Utf8, time_type(second)])
                }
                [time, _] => Ok(vec![time_type(time), DataType::Utf8]),
                _ => Ok(vec![micros(), DataType::Utf8]),
            },
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| match arrays[0].data_type() {
                DataType::Utf8 => shown(&arrays[1], &arrays[0], rows, c_pattern),
                _ => shown(&arrays[0], &arrays[1], rows, c_pattern),
            },
        },
        Definition {
            name: "to_char",
            aliases: &["date_format"],
            arguments: 2..=2,
            takes: |types| match types {
                [number, _] if number.is_numeric() => Ok(vec![shown_type(number), DataType::Utf8]),
                [time, _] => Ok(vec![time_type(time), DataType::Utf8]),
                _ => Ok(vec![micros(), DataType::Utf8]),
            },
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| match arrays[0].data_type() {
                DataType::Float64 | DataType::Decimal128(_, _) => numbers(arrays, rows),
                _ => shown(&arrays[0], &arrays[1], rows, either_pattern),
            },
        },
        Definition {
            name: "strptime",
            aliases: &[],
            arguments: 2..=2,
            takes: text_and_patterns,
            returns: |_| Ok(micros()),
            compute: |arrays, rows| times(arrays, rows, false),
        },
        Definition {
            name: "try_strptime",
            aliases: &[],
            arguments: 2..=2,
            takes: text_and_patterns,
            returns: |_| Ok(micros()),
            compute: |arrays, rows| times(arrays, rows, true),
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn text_and_patterns(types: &[DataType]) -> Result<Vec<DataType>> {
    let patterns = match types.get(1) {
        Some(DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _)) => {
            DataType::new_list(DataType::Utf8, true)
        }
        _ => DataType::Utf8,
    };
    Ok(vec![DataType::Utf8, patterns])
}

/// Returns the type as which a time is shown. One of nanoseconds stays so: fewer digits would be those of a later time before 1970.
fn time_type(found: &DataType) -> DataType {
    match found {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        _ => micros(),
    }
}

type Formatter = Box<dyn Fn(&NaiveDateTime) -> Result<String>>;

fn shown(times: &ArrayRef, patterns: &ArrayRef, rows: usize, read: fn(&str) -> Result<Formatter>) -> Result<ArrayRef> {
    let nanoseconds = times.as_primitive_opt::<TimestampNanosecondType>();
    let time = |row: usize| match nanoseconds {
        Some(times) => Ok(DateTime::from_timestamp_nanos(times.value(row)).naive_utc()),
        None => moment(times.as_primitive::<TimestampMicrosecondType>().value(row)),
    };
    let patterns = patterns.as_string::<i32>();
    let mut last: Option<(String, Formatter)> = None;
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if times.is_null(row) || patterns.is_null(row) {
            values.push(None);
            continue;
        }
        let pattern = patterns.value(row);
        if last.as_ref().is_none_or(|(known, _)| known != pattern) {
            if pattern.len() > MAX_PATTERN {
                return Err(invalid(format!("a pattern of a time has at most {MAX_PATTERN} bytes")));
            }
            last = Some((pattern.to_owned(), read(pattern)?));
        }
        let Some((_, formatter)) = &last else { continue };
        values.push(Some(formatter(&time(row)?)?));
    }
    Ok(Arc::new(StringArray::from(values)))
}

fn either_pattern(pattern: &str) -> Result<Formatter> {
    if pattern.contains('%') { c_pattern(pattern) } else { postgres_pattern(pattern) }
}

/// Reads a pattern of C. Some directives are DuckDB's: `%f` has microseconds, `%g` milliseconds and `%n` nanoseconds, `%x` and
/// `%c` are a date and a time as in ISO 8601, and `%z` is an offset of hours.
fn c_pattern(pattern: &str) -> Result<Formatter> {
    let mut items = items(pattern)?;
    for item in &mut items {
        if *item == Item::Fixed(Fixed::TimezoneOffset) {
            *item = Item::Fixed(Fixed::TimezoneOffsetTripleColon);
        }
    }
    Ok(Box::new(move |time| {
        let mut text = String::new();
        let written = write_items(&mut text, time, &items);
        written.map(|()| text).map_err(|_| invalid("the time does not fit its pattern".into()))
    }))
}

fn write_items(text: &mut String, time: &NaiveDateTime, items: &[Item<'static>]) -> std::fmt::Result {
    let has_four_digits = |year: i32| (0..10_000).contains(&year);
    let (year, iso_year) = (time.year(), time.iso_week().year());
    if has_four_digits(year) && has_four_digits(iso_year) {
        return write!(text, "{}", time.and_utc().format_with_items(items.iter()));
    }
    // chrono writes a plus before a year of five digits, and fills one before the year 0.
    for item in items {
        match item {
            Item::Numeric(Numeric::Year, _) if !has_four_digits(year) => write!(text, "{year}")?,
            Item::Numeric(Numeric::IsoYear, _) if !has_four_digits(iso_year) => write!(text, "{iso_year}")?,
            other => write!(text, "{}", time.and_utc().format_with_items(std::iter::once(other)))?,
        }
    }
    Ok(())
}

pub(super) fn items(pattern: &str) -> Result<Vec<Item<'static>>> {
    let mut translated = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        translated.push(letter);
        if letter != '%' {
            continue;
        }
        match letters.next() {
            Some('f') => translated.push_str("6f"),
            Some('g') => translated.push_str("3f"),
            Some('n') => translated.push_str("9f"),
            Some('x') => translated.push_str("Y-%m-%d"),
            Some('c') => translated.push_str("Y-%m-%d %H:%M:%S"),
            Some(other) => translated.push(other),
            None => return Err(invalid(format!("the pattern `{pattern}` ends in `%`"))),
        }
    }
    let mut all = Vec::new();
    for item in StrftimeItems::new(&translated) {
        if matches!(item, Item::Error) {
            return Err(invalid(format!("`{pattern}` is no pattern of a time; write `%Y-%m-%d %H:%M:%S`")));
        }
        all.push(item.to_owned());
    }
    Ok(all)
}

/// A piece of PostgreSQL's pattern.
#[derive(Debug, Clone)]
enum PatternPiece {
    Literal(String),
    /// An ordinal number has its ending in capitals or not.
    Field {
        name: &'static str,
        fills: bool,
        ordinal: Option<bool>,
    },
}

/// The fields of PostgreSQL's patterns, the longer before those that they begin with.
const FIELDS: [&str; 71] = [
    "HH24", "HH12", "IYYY", "YYYY", "Y,YYY", "MONTH", "Month", "month", "IDDD", "SSSSS", "SSSS", "A.M.", "P.M.",
    "a.m.", "p.m.", "B.C.", "A.D.", "b.c.", "a.d.", "IYY", "YYY", "DDD", "DAY", "Day", "day", "MON", "Mon", "mon",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "TZH", "TZM", "IY", "YY", "MM", "DD", "DY", "Dy", "dy", "ID", "WW", "IW",
    "CC", "HH", "MI", "SS", "MS", "US", "AM", "PM", "am", "pm", "BC", "AD", "bc", "ad", "TZ", "tz", "OF", "RM", "rm",
    "Y", "D", "Q", "J", "W", "I",
];

fn postgres_pattern(pattern: &str) -> Result<Formatter> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    let mut has_field = false;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (literal, after) = quoted_literal(quoted)
                .ok_or_else(|| invalid(format!("a quote in the pattern `{pattern}` does not end")))?;
            pieces.push(PatternPiece::Literal(literal));
            rest = after;
            continue;
        }
        // By a backslash a quote stands for itself.
        if let Some(after) = rest.strip_prefix("\\\"") {
            pieces.push(PatternPiece::Literal("\"".to_owned()));
            rest = after;
            continue;
        }
        let (fills, after_prefix) = without_prefixes(rest);
        // Fields of numbers are known in any case; names of days and months say their own.
        let found = FIELDS.iter().find(|field| after_prefix.starts_with(**field)).or_else(|| {
            FIELDS
                .iter()
                .find(|field| after_prefix.get(..field.len()).is_some_and(|start| start.eq_ignore_ascii_case(field)))
        });
        let Some(name) = found.copied() else {
            let letter = rest.chars().next().unwrap_or_default();
            if letter.is_alphabetic() && letter != 'T' {
                return Err(invalid(format!(
                    "`{pattern}` is no pattern of a time at `{rest}`; write YYYY-MM-DD HH24:MI:SS, or %Y-%m-%d, and other \
                     text in \"quotes\""
                )));
            }
            pieces.push(PatternPiece::Literal(letter.to_string()));
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        has_field = true;
        rest = &after_prefix[name.len()..];
        let (ordinal, after_suffix) = match (rest.strip_prefix("th"), rest.strip_prefix("TH")) {
            (Some(after), _) => (Some(false), after),
            (_, Some(after)) => (Some(true), after),
            (None, None) => (None, rest),
        };
        pieces.push(PatternPiece::Field { name, fills, ordinal });
        rest = after_suffix;
    }
    if !has_field && !pattern.is_empty() {
        return Err(invalid(format!("`{pattern}` names no part of a time; write YYYY-MM-DD or %Y-%m-%d")));
    }
    Ok(Box::new(move |time| {
        let mut text = String::new();
        for piece in &pieces {
            match piece {
                PatternPiece::Literal(literal) => text.push_str(literal),
                PatternPiece::Field { name, fills, ordinal } => {
                    let value = field(name, *fills, time)?;
                    text.push_str(&value);
                    if let Some(is_upper) = ordinal {
                        let suffix = ordinal_suffix(&value);
                        text.push_str(&if *is_upper { suffix.to_uppercase() } else { suffix.to_owned() });
                    }
                }
            }
        }
        Ok(text)
    }))
}

/// Returns the text in quotes, whose first is taken off, and what is behind it; `None` where it does not end. A backslash in it
/// has the next character stand for itself.
fn quoted_literal(quoted: &str) -> Option<(String, &str)> {
    let mut literal = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((literal, quoted.get(at + 1..)?)),
            '\\' => literal.push(letters.next()?.1),
            other => literal.push(other),
        }
    }
    None
}

/// Returns whether a field is filled up to its width, and the pattern behind what says that it is not (`FM`, and `TM` for names) and
/// behind `FX`, which says nothing of texts that are made.
fn without_prefixes(pattern: &str) -> (bool, &str) {
    let (mut fills, mut rest) = (true, pattern);
    while let Some((prefix, after)) = rest.split_at_checked(2) {
        match prefix {
            "FM" | "fm" | "TM" | "tm" => fills = false,
            "FX" | "fx" => {}
            _ => break,
        }
        rest = after;
    }
    (fills, rest)
}

fn ordinal_suffix(digits: &str) -> &'static str {
    match digits {
        _ if digits.ends_with("11") || digits.ends_with("12") || digits.ends_with("13") => "th",
        _ if digits.ends_with('1') => "st",
        _ if digits.ends_with('2') => "nd",
        _ if digits.ends_with('3') => "rd",
        _ => "th",
    }
}

fn field(name: &str, fills: bool, time: &NaiveDateTime) -> Result<String> {
    let number = |value: i64, width: usize| if fills { format!("{value:0width$}") } else { value.to_string() };
    let padded = |text: String| if fills { format!("{text:<9}") } else { text };
    // Before the year 1 is the year 1 BC.
    let shown_year = |year: i64| if year > 0 { year } else { 1 - year };
    let (iso, astronomical) = (time.iso_week(), i64::from(time.year()));
    let (year, iso_year) = (shown_year(astronomical), shown_year(i64::from(iso.year())));
    let era = |after: &str, before: &str| if astronomical > 0 { after.to_owned() } else { before.to_owned() };
    let hour = i64::from(time.hour());
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let nanosecond = i64::from(time.nanosecond());
    let named = |pattern: &str| time.format(pattern).to_string();
    let noon = |am: &str, pm: &str| if hour < 12 { am.to_owned() } else { pm.to_owned() };
    Ok(match name {
        "YYYY" => number(year, 4),
        "Y,YYY" => format!("{},{:03}", year / 1_000, year % 1_000),
        "YYY" => number(year % 1_000, 3),
        "YY" => number(year % 100, 2),
        "Y" => (year % 10).to_string(),
        "IYYY" => number(iso_year, 4),
        "IYY" => number(iso_year % 1_000, 3),
        "IY" => number(iso_year % 100, 2),
        "I" => (iso_year % 10).to_string(),
        "BC" | "AD" => era("AD", "BC"),
        "bc" | "ad" => era("ad", "bc"),
        "B.C." | "A.D." => era("A.D.", "B.C."),
        "b.c." | "a.d." => era("a.d.", "b.c."),
        "Q" => (time.month0() / 3 + 1).to_string(),
        "MM" => number(i64::from(time.month()), 2),
        "MONTH" => padded(named("%B").to_uppercase()),
        "Month" => padded(named("%B")),
        "month" => padded(named("%B").to_lowercase()),
        "MON" => named("%b").to_uppercase(),
        "Mon" => named("%b"),
        "mon" => named("%b").to_lowercase(),
        "RM" | "rm" => {
            const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
            let text = ROMAN.get(time.month0() as usize).copied().unwrap_or_default();
            let text = if name == "rm" { text.to_lowercase() } else { text.to_owned() };
            if fills { format!("{text:<4}") } else { text }
        }
        "WW" => number(i64::from(time.ordinal0() / 7 + 1), 2),
        "W" => ((time.day() - 1) / 7 + 1).to_string(),
        "IW" => number(i64::from(iso.week()), 2),
        "DDD" => number(i64::from(time.ordinal()), 3),
        "DD" => number(i64::from(time.day()), 2),
        "D" => day_from_sunday(time.weekday()).to_string(),
        "ID" => time.weekday().number_from_monday().to_string(),
        "IDDD" => number(i64::from((iso.week() - 1) * 7 + time.weekday().number_from_monday()), 3),
        "DAY" => padded(named("%A").to_uppercase()),
        "Day" => padded(named("%A")),
        "day" => padded(named("%A").to_lowercase()),
        "DY" => named("%a").to_uppercase(),
        "Dy" => named("%a"),
        "dy" => named("%a").to_lowercase(),
        "J" => (time.date().num_days_from_ce() + 1_721_425).to_string(),
        "CC" if astronomical > 0 => number((year - 1) / 100 + 1, 2),
        // As PostgreSQL counts them.
        "CC" => format!("-{}", number(1 - astronomical / 100, 2)),
        "HH24" => number(hour, 2),
        "HH12" | "HH" => number(twelve, 2),
        "MI" => number(i64::from(time.minute()), 2),
        "SSSS" | "SSSSS" => time.num_seconds_from_midnight().to_string(),
        "SS" => number(i64::from(time.second()), 2),
        "FF1" => (nanosecond / 100_000_000).to_string(),
        "FF2" => format!("{:02}", nanosecond / 10_000_000),
        "MS" | "FF3" => format!("{:03}", nanosecond / 1_000_000),
        "FF4" => format!("{:04}", nanosecond / 100_000),
        "FF5" => format!("{:05}", nanosecond / 10_000),
        "US" | "FF6" => format!("{:06}", nanosecond / 1_000),
        "AM" | "PM" => noon("AM", "PM"),
        "am" | "pm" => noon("am", "pm"),
        "A.M." | "P.M." => noon("A.M.", "P.M."),
        "a.m." | "p.m." => noon("a.m.", "p.m."),
        "TZ" => "UTC".into(),
        "tz" => "utc".into(),
        "OF" | "TZH" => "+00".into(),
        "TZM" => "00".into(),
        _ => return Err(invalid(format!("`{name}` in a pattern of a time is not supported; write %Y-%m-%d"))),
    })
}

/// Returns the type in which a number is shown, which loses none of its digits.
fn shown_type(number: &DataType) -> DataType {
    match number {
        integer if integer.is_integer() => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale)
        }
        _ => DataType::Float64,
    }
}

fn numbers(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let patterns = arrays[1].as_string::<i32>();
    let number = |row: usize| match arrays[0].data_type() {
        DataType::Decimal128(_, scale) => {
            ShownNumber::Decimal(arrays[0].as_primitive::<Decimal128Type>().value(row), *scale)
        }
        _ => ShownNumber::Double(arrays[0].as_primitive::<Float64Type>().value(row)),
    };
    let mut texts = Vec::with_capacity(rows);
    for row in 0..rows {
        let is_null = arrays.iter().any(|array| array.is_null(row));
        texts.push(if is_null { None } else { Some(number_text(number(row), patterns.value(row))?) });
    }
    Ok(Arc::new(StringArray::from(texts)))
}

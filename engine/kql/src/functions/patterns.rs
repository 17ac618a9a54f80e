//! Regular expressions: finding, taking apart, replacing, trimming. A literal pattern is compiled once a batch, and how
//! large a compiled pattern may be is bounded.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use regex::Captures;
use serde_json::Value;

use super::super::types::KqlType;
use super::arguments::{Arguments, Patterns};
use super::signature::{Entry, Returns, entry};

const LONG: Returns = Returns::Is(KqlType::Long);
const TEXT: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("extract", "sis", TEXT, extract),
    entry("extract_all", "sx?s", DYNAMIC, extract_all),
    entry("extractall", "sx?s", DYNAMIC, extract_all),
    entry("replace_regex", "sss", TEXT, replace_regex),
    entry("replace", "sss", TEXT, replace),
    entry("countof", "ss?s", LONG, countof),
    entry("indexof_regex", "ss?iii", LONG, indexof_regex),
    entry("trim", "ss", TEXT, trim),
    entry("trim_start", "ss", TEXT, trim_start),
    entry("trim_end", "ss", TEXT, trim_end),
    entry("regex_quote", "s", TEXT, regex_quote),
];

/// `text matches regex pattern`.
pub(super) fn is_match(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, patterns) = (arguments.texts(0)?, arguments.texts(1)?);
    let mut compiled = Patterns::new();
    if patterns.constant {
        let regex = compiled.get(arguments, patterns.get(0))?;
        return arguments.make_total(|row| regex.is_match(texts.get(row)));
    }
    let mut matches = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        matches.push(compiled.get(arguments, patterns.get(row))?.is_match(texts.get(row)));
    }
    arguments.make_total(|row| matches[row])
}

fn extract(arguments: &Arguments) -> Result<ArrayRef> {
    let (patterns, groups, texts) = (arguments.texts(0)?, arguments.longs(1)?, arguments.texts(2)?);
    let mut compiled = Patterns::new();
    arguments.make_texts(|row, text| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let group = groups.get(row).and_then(|group| usize::try_from(group).ok());
        let found = group.and_then(|group| regex.captures(texts.get(row))?.get(group));
        text.push_str(found.map_or("", |found| found.as_str()));
        Ok(())
    })
}

/// All matches: of one group its texts, of several an array each. The second of three arguments says which groups.
fn extract_all(arguments: &Arguments) -> Result<ArrayRef> {
    let patterns = arguments.texts(0)?;
    let texts = arguments.texts(arguments.len() - 1)?;
    let groups = if arguments.len() > 2 { Some(arguments.dynamics(1)?) } else { None };
    let mut compiled = Patterns::new();
    arguments.make_dynamics(|row| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let wanted = groups.as_ref().and_then(|groups| groups.elements(row));
        let group_of = |value: &Value| match value {
            Value::String(name) => regex.capture_names().position(|group| group == Some(name)),
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        let groups: Vec<usize> = match wanted {
            Some(wanted) => wanted.iter().filter_map(group_of).collect(),
            None if regex.captures_len() == 1 => vec![0],
            None => (1..regex.captures_len()).collect(),
        };
        let taken: Vec<Value> = regex.captures_iter(texts.get(row)).map(|captures| take(&captures, &groups)).collect();
        Ok(if taken.is_empty() { Value::Null } else { Value::Array(taken) })
    })
}

fn take(captures: &Captures, groups: &[usize]) -> Value {
    let text = |group: &usize| captures.get(*group).map_or("", |found| found.as_str());
    match groups {
        [only] => text(only).into(),
        several => several.iter().map(text).collect::<Vec<_>>().into(),
    }
}

fn replace_regex(arguments: &Arguments) -> Result<ArrayRef> {
    replace_matches(arguments, 0, 1, 2)
}

/// The old form: pattern, replacement, text.
fn replace(arguments: &Arguments) -> Result<ArrayRef> {
    replace_matches(arguments, 2, 0, 1)
}

fn replace_matches(arguments: &Arguments, text: usize, pattern: usize, replacement: usize) -> Result<ArrayRef> {
    let (texts, patterns, replacements) =
        (arguments.texts(text)?, arguments.texts(pattern)?, arguments.texts(replacement)?);
    let mut compiled = Patterns::new();
    arguments.make_texts(|row, text| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let whole = texts.get(row);
        let mut last = 0;
        for captures in regex.captures_iter(whole) {
            let Some(found) = captures.get(0) else { continue };
            text.push_str(&whole[last..found.start()]);
            expand(replacements.get(row), &captures, text);
            last = found.end();
            arguments.bounded(text.len())?;
        }
        text.push_str(&whole[last..]);
        Ok(())
    })
}

/// A replacement with `\1` for what the group has found.
fn expand(replacement: &str, captures: &Captures, text: &mut String) {
    let mut chars = replacement.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            text.push(char);
            continue;
        }
        match chars.next() {
            Some(digit @ '0'..='9') => {
                let group = digit as usize - '0' as usize;
                text.push_str(captures.get(group).map_or("", |found| found.as_str()));
            }
            Some(other) => text.push(other),
            None => text.push('\\'),
        }
    }
}

/// Occurrences of a text, which may overlap, or of a pattern, which may not.
fn countof(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, wanted) = (arguments.texts(0)?, arguments.texts(1)?);
    let kinds = if arguments.len() > 2 { Some(arguments.texts(2)?) } else { None };
    let mut compiled = Patterns::new();
    let mut counts = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        let is_pattern = kinds.as_ref().is_some_and(|kinds| kinds.get(row).eq_ignore_ascii_case("regex"));
        let count = if is_pattern {
            compiled.get(arguments, wanted.get(row))?.find_iter(texts.get(row)).count()
        } else {
            occurrences(texts.get(row), wanted.get(row))
        };
        counts.push(count as i64);
    }
    arguments.make_longs(|row| counts.get(row).copied())
}

fn occurrences(text: &str, wanted: &str) -> usize {
    if wanted.is_empty() {
        return 0;
    }
    let (mut count, mut rest) = (0, text);
    while let Some(at) = rest.find(wanted) {
        count += 1;
        let first = rest[at..].chars().next().map_or(1, char::len_utf8);
        rest = &rest[at + first..];
    }
    count
}

fn indexof_regex(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, patterns) = (arguments.texts(0)?, arguments.texts(1)?);
    let option = |index: usize| if arguments.len() > index { arguments.longs(index).map(Some) } else { Ok(None) };
    let (starts, occurrences) = (option(2)?, option(4)?);
    let mut compiled = Patterns::new();
    let mut found = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let start = starts.as_ref().and_then(|starts| starts.get(row)).unwrap_or(0).max(0) as usize;
        let nth = occurrences.as_ref().and_then(|occurrences| occurrences.get(row)).unwrap_or(1).max(1) as usize;
        let text = texts.get(row);
        let from = text.char_indices().nth(start).map(|(at, _)| at);
        let place = from.and_then(|from| regex.find_iter(&text[from..]).nth(nth - 1).map(|place| from + place.start()));
        found.push(place.map_or(-1, |at| text[..at].chars().count() as i64));
    }
    arguments.make_longs(|row| found.get(row).copied())
}

fn trim(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, true, true)
}

fn trim_start(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, true, false)
}

fn trim_end(arguments: &Arguments) -> Result<ArrayRef> {
    trimmed(arguments, false, true)
}

/// One match at the beginning, one at the end.
fn trimmed(arguments: &Arguments, at_start: bool, at_end: bool) -> Result<ArrayRef> {
    let (patterns, texts) = (arguments.texts(0)?, arguments.texts(1)?);
    let mut compiled = Patterns::new();
    arguments.make_texts(|row, text| {
        let pattern = patterns.get(row);
        let mut rest = texts.get(row);
        if at_start {
            let regex = compiled.get(arguments, &format!("^(?:{pattern})"))?;
            rest = regex.find(rest).map_or(rest, |found| &rest[found.end()..]);
        }
        if at_end {
            let regex = compiled.get(arguments, &format!("(?:{pattern})$"))?;
            rest = regex.find(rest).map_or(rest, |found| &rest[..found.start()]);
        }
        text.push_str(rest);
        Ok(())
    })
}

fn regex_quote(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        text.push_str(&regex::escape(texts.get(row)));
        Ok(())
    })
}

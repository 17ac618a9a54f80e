//! Functions of regular expressions. A literal pattern is compiled once a batch, and every pattern of a query within the
//! bounds of `compile_pattern`.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use regex::{Captures, Match, Regex, RegexBuilder};
use serde_json::Value;

use super::arguments::{FunctionArguments, RegexCache};
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;

/// The most bytes of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// The longest text that is parsed as a pattern: parsing makes some hundred bytes of every character.
const MAX_PATTERN_TEXT: usize = 256 << 10;

const LONG: Returns = Returns::Is(KqlType::Long);
const STRING: Returns = Returns::Is(KqlType::String);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("extract", "wiw", STRING, extract),
    entry("extract_all", "wx?w", Returns::By(groups_type), extract_all),
    entry("extractall", "wx?w", Returns::By(groups_type), extract_all),
    entry("replace_regex", "www", STRING, replace_regex),
    entry("replace", "www", STRING, replace),
    entry("countof", "ww?w", LONG, countof),
    entry("indexof_regex", "ss?iii", LONG, indexof_regex),
    entry("trim", "ww", STRING, trim),
    entry("trim_start", "ww", STRING, trim_start),
    entry("trim_end", "ww", STRING, trim_end),
    entry("regex_quote", "s", STRING, regex_quote),
];

/// Compiles a pattern of a query; returns what is wrong with one that is none, or is too large.
pub(crate) fn compile_pattern(pattern: &str) -> std::result::Result<Regex, String> {
    if pattern.len() > MAX_PATTERN_TEXT {
        return Err(format!("a text of more than {MAX_PATTERN_TEXT} bytes is no pattern"));
    }
    let compiled = |pattern: &str| RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
    let error = match compiled(pattern) {
        Ok(regex) => return Ok(regex),
        Err(error) => error,
    };
    // To Kusto a brace that repeats nothing is a character, as in `{"name":"(.*?)"`.
    let literal = with_literal_braces(pattern).filter(|literal| literal != pattern);
    match literal.and_then(|literal| compiled(&literal).ok()) {
        Some(regex) => Ok(regex),
        None => Err(format!("not a regular expression: {error}")),
    }
}

/// Returns a pattern in which `{` stands for itself wherever it begins no repetition; `None` where a class does not end.
fn with_literal_braces(pattern: &str) -> Option<String> {
    let mut literal = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\\' => escape_length(rest),
            '[' => class_length(rest)?,
            '{' => match repetition_length(rest) {
                Some(length) => length,
                None => {
                    literal.push('\\');
                    1
                }
            },
            other => other.len_utf8(),
        };
        let (taken, after) = rest.split_at(length);
        literal.push_str(taken);
        rest = after;
    }
    Some(literal)
}

/// The bytes of an escape, with what stands in braces behind it: `\d`, `\p{L}`, `\x{41}`.
fn escape_length(text: &str) -> usize {
    let mut chars = text.chars();
    chars.next();
    let Some(letter) = chars.next() else { return text.len() };
    let length = 1 + letter.len_utf8();
    match chars.as_str().strip_prefix('{').and_then(|inside| inside.find('}')) {
        Some(end) if matches!(letter, 'p' | 'P' | 'x' | 'u' | 'U' | 'b') => length + end + 2,
        _ => length,
    }
}

/// The bytes of a class: `[^]a-z]`, `[[:alpha:]\]]`.
fn class_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(first) = text.get(at..)?.chars().next() {
        match first {
            '\\' => {
                at += escape_length(text.get(at..)?);
                continue;
            }
            '[' => {
                depth += 1;
                at += 1;
                at += usize::from(text.get(at..)?.starts_with('^'));
                // As the first one, `]` is a member.
                at += usize::from(text.get(at..)?.starts_with(']'));
                continue;
            }
            ']' => depth -= 1,
            _ => {}
        }
        at += first.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The bytes of `{2}`, `{2,}` or `{2,5}`.
fn repetition_length(text: &str) -> Option<usize> {
    let (bounds, _) = text.strip_prefix('{')?.split_once('}')?;
    let (least, most) = bounds.split_once(',').unwrap_or((bounds, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(bounds.len() + 2)
}

/// `text matches regex pattern`.
pub(super) fn is_match(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, patterns) = (arguments.strings(0)?, arguments.strings(1)?);
    let mut compiled = RegexCache::new();
    if patterns.constant {
        let regex = compiled.get(arguments, patterns.get(0))?;
        return arguments.make_total(|row| regex.is_match(strings.get(row)));
    }
    let mut matches = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        matches.push(compiled.get(arguments, patterns.get(row))?.is_match(strings.get(row)));
    }
    arguments.make_total(|row| matches[row])
}

fn extract(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (patterns, groups, strings) = (arguments.strings(0)?, arguments.longs(1)?, arguments.strings(2)?);
    let mut compiled = RegexCache::new();
    arguments.make_strings(|row, text| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let group = groups.get(row).and_then(|group| usize::try_from(group).ok());
        let found = group.and_then(|group| regex.captures(strings.get(row))?.get(group));
        text.push_str(found.map_or("", |found| found.as_str()));
        Ok(())
    })
}

/// Checks which groups are asked for: an array of their numbers or names, before the text.
fn groups_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    match types {
        [_, KqlType::String | KqlType::Dynamic] | [_, KqlType::Dynamic, _] => Ok(KqlType::Dynamic),
        [_, other] => Err(format!("argument 2 of extract_all() must be a string, not {}", other.name())),
        _ => Err("argument 2 of extract_all() must be an array of groups".to_owned()),
    }
}

/// Returns all matches: the strings of one group, or an array for each match with several groups. The second of three
/// arguments says which groups.
fn extract_all(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let patterns = arguments.strings(0)?;
    let strings = arguments.strings(arguments.len() - 1)?;
    let groups = if arguments.len() > 2 { Some(arguments.dynamics(1)?) } else { None };
    let mut compiled = RegexCache::new();
    arguments.make_dynamics(|row| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let wanted = groups.as_ref().and_then(|groups| groups.elements(row));
        let group_of = |value: &Value| match value {
            Value::String(name) => regex.capture_names().position(|group| group == Some(name)),
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        // What is no group is left out; where nothing is left, all groups are meant.
        let exists = |group: &usize| *group < regex.captures_len();
        let wanted = wanted.map(|wanted| wanted.iter().filter_map(group_of).filter(exists).collect::<Vec<_>>());
        let groups: Vec<usize> = match wanted.filter(|wanted| !wanted.is_empty()) {
            Some(wanted) => wanted,
            None if regex.captures_len() == 1 => vec![0],
            None => (1..regex.captures_len()).collect(),
        };
        let (mut taken, mut bytes, mut turns) = (Vec::new(), 0_usize, LoopTurns::default());
        let text = strings.get(row);
        for captures in regex.captures_iter(text) {
            turns.count_of(bytes_behind(text, captures.get(0)))?;
            // Groups may be many, and within each other.
            let sizes = groups.iter().map(|group| captures.get(*group).map_or(0, |found| found.len()));
            bytes = sizes.fold(bytes, |bytes, size| bytes.saturating_add(size + size_of::<Value>()));
            arguments.bounded(bytes)?;
            taken.push(take(&captures, &groups));
        }
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

fn replace_regex(arguments: &FunctionArguments) -> Result<ArrayRef> {
    replace_matches(arguments, 0, 1, 2)
}

/// The older form, with the pattern first and the text last.
fn replace(arguments: &FunctionArguments) -> Result<ArrayRef> {
    replace_matches(arguments, 2, 0, 1)
}

fn replace_matches(arguments: &FunctionArguments, text: usize, pattern: usize, replacement: usize) -> Result<ArrayRef> {
    let (strings, patterns, replacements) =
        (arguments.strings(text)?, arguments.strings(pattern)?, arguments.strings(replacement)?);
    let mut compiled = RegexCache::new();
    arguments.make_strings(|row, text| {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let whole = strings.get(row);
        let (mut last, mut turns) = (0, LoopTurns::default());
        for captures in regex.captures_iter(whole) {
            turns.count_of(bytes_behind(whole, captures.get(0)))?;
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

/// Appends a replacement in which `\1` stands for the match of a group.
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

/// Counts occurrences of a string, which may overlap, or of a pattern, which may not.
fn countof(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, wanted) = (arguments.strings(0)?, arguments.strings(1)?);
    let kinds = if arguments.len() > 2 { Some(arguments.strings(2)?) } else { None };
    let mut compiled = RegexCache::new();
    let mut counts = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        let is_pattern = kinds.as_ref().is_some_and(|kinds| kinds.get(row).eq_ignore_ascii_case("regex"));
        let count = if is_pattern {
            let pattern = compiled.get(arguments, wanted.get(row))?;
            count_matches(&pattern, strings.get(row))?
        } else {
            occurrences(strings.get(row), wanted.get(row))?
        };
        counts.push(count as i64);
    }
    arguments.make_longs(|row| counts.get(row).copied())
}

/// Returns how many bytes the search for the next match may look at, up to the end of the text. All matches may take the square
/// of its length.
fn bytes_behind(text: &str, found: Option<Match<'_>>) -> usize {
    text.len() - found.map_or(0, |found| found.end())
}

/// Errors: that of a query that is to end.
fn count_matches(regex: &Regex, text: &str) -> Result<usize> {
    let (mut count, mut turns) = (0, LoopTurns::default());
    for found in regex.find_iter(text) {
        turns.count_of(bytes_behind(text, Some(found)))?;
        count += 1;
    }
    Ok(count)
}

/// Returns where the n-th match begins. Errors: that of a query that is to end.
fn nth_match(regex: &Regex, text: &str, nth: usize) -> Result<Option<usize>> {
    let mut turns = LoopTurns::default();
    for (index, found) in regex.find_iter(text).enumerate() {
        if index + 1 == nth {
            return Ok(Some(found.start()));
        }
        turns.count_of(bytes_behind(text, Some(found)))?;
    }
    Ok(None)
}

/// Errors: that of a query that is to end.
fn occurrences(text: &str, wanted: &str) -> Result<usize> {
    if wanted.is_empty() {
        return Ok(0);
    }
    let (mut count, mut rest, mut turns) = (0, text, LoopTurns::default());
    while let Some(at) = rest.find(wanted) {
        turns.count_of(wanted.len())?;
        count += 1;
        let first = rest[at..].chars().next().map_or(1, char::len_utf8);
        rest = &rest[at + first..];
    }
    Ok(count)
}

/// Matches lie within `length` characters from `start` on, and do not overlap; a negative start gives null.
fn indexof_regex(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, patterns) = (arguments.strings(0)?, arguments.strings(1)?);
    let option = |index: usize| if arguments.len() > index { arguments.longs(index).map(Some) } else { Ok(None) };
    let (starts, lengths, occurrences) = (option(2)?, option(3)?, option(4)?);
    let mut compiled = RegexCache::new();
    let mut found = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        let regex = compiled.get(arguments, patterns.get(row))?;
        let start = starts.as_ref().and_then(|starts| starts.get(row)).unwrap_or(0);
        let Ok(start) = usize::try_from(start) else {
            found.push(None);
            continue;
        };
        let length = lengths.as_ref().and_then(|lengths| lengths.get(row)).unwrap_or(-1);
        let nth = occurrences.as_ref().and_then(|occurrences| occurrences.get(row)).unwrap_or(1);
        if length < -1 || nth < 0 {
            found.push(None);
            continue;
        }
        let nth = nth.max(1) as usize;
        let text = strings.get(row);
        let byte_of = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
        let from = byte_of(text, start);
        let window = &text[from..];
        let window = usize::try_from(length).map_or(window, |length| &window[..byte_of(window, length)]);
        let place = nth_match(&regex, window, nth)?.map(|at| from + at);
        found.push(Some(place.map_or(-1, |at| text[..at].chars().count() as i64)));
    }
    arguments.make_longs(|row| found.get(row).copied().flatten())
}

fn trim(arguments: &FunctionArguments) -> Result<ArrayRef> {
    trimmed(arguments, true, true)
}

fn trim_start(arguments: &FunctionArguments) -> Result<ArrayRef> {
    trimmed(arguments, true, false)
}

fn trim_end(arguments: &FunctionArguments) -> Result<ArrayRef> {
    trimmed(arguments, false, true)
}

/// Removes one match at the start, one at the end, or both.
fn trimmed(arguments: &FunctionArguments, at_start: bool, at_end: bool) -> Result<ArrayRef> {
    let (patterns, strings) = (arguments.strings(0)?, arguments.strings(1)?);
    let mut compiled = RegexCache::new();
    arguments.make_strings(|row, text| {
        let pattern = patterns.get(row);
        let mut rest = strings.get(row);
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

fn regex_quote(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        text.push_str(&regex::escape(strings.get(row)));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::compile_pattern;

    #[test]
    fn a_brace_that_repeats_nothing_is_a_character() {
        let matches = |pattern: &str, text: &str| compile_pattern(pattern).unwrap().is_match(text);
        assert!(matches(r#"^\{"a":"([^"]+)"}$"#, r#"{"a":"x"}"#));
        assert!(matches(r#"^{"a":"([^"{]+)"}$"#, r#"{"a":"x"}"#));
        assert!(matches("^a{b}{2}$", "a{b}}") && matches("^[]{]{2}{$", "]{{") && matches(r"^\p{L}{2}{$", "éa{"));
        assert!(compile_pattern("({").is_err() && compile_pattern("[{").is_err());
    }

    #[test]
    fn patterns_are_bounded() {
        assert!(compile_pattern(r"(\d{4})-(\d{2})").is_ok());
        assert!(compile_pattern("(").is_err());
        assert!(compile_pattern("(((a{1,100}){1,100}){1,100})").is_err(), "what it is compiled to is too large");
        assert!(compile_pattern(&"a".repeat(300 << 10)).is_err(), "its text is too long");
    }
}

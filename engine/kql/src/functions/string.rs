//! Functions of strings. Positions and lengths count characters.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;
use crate::values;

const LONG: Returns = Returns::Is(KqlType::Long);
const STRING: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("strlen", "w", LONG, strlen),
    entry("string_size", "w", LONG, string_size),
    entry("strcat", "x*", STRING, strcat),
    entry("strcat_delim", "sxx*", STRING, strcat_delim),
    entry("strcat_array", "js", STRING, strcat_array),
    entry("array_strcat", "js", STRING, strcat_array),
    entry("strrep", "xi?s", STRING, strrep),
    entry("strcmp", "ss", LONG, strcmp),
    entry("substring", "si?i", STRING, substring),
    entry("indexof", "xx?iii", LONG, indexof),
    entry("split", "sw?i", DYNAMIC, split),
    entry("replace_string", "www", STRING, replace_string),
    entry("replace_strings", "wjj", STRING, replace_strings),
    entry("tolower", "s", STRING, tolower),
    entry("toupper", "s", STRING, toupper),
    entry("reverse", "x", STRING, reverse),
    entry("translate", "www", STRING, translate),
    entry("isascii", "s", BOOL, isascii),
    entry("isutf8", "s", BOOL, isutf8),
    entry("unicode_codepoints_from_string", "s", DYNAMIC, codepoints),
    entry("to_utf8", "s", DYNAMIC, codepoints),
    entry("unicode_codepoints_to_string", "x*", Returns::By(codepoints_type), from_codepoints),
    entry("make_string", "x*", Returns::By(codepoints_type), from_codepoints),
];

fn strlen(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_longs(|row| Some(strings.get(row).chars().count() as i64))
}

fn string_size(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_longs(|row| Some(strings.get(row).len() as i64))
}

fn strcat(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let parts = arguments.all_strings(0)?;
    arguments.make_strings(|row, text| {
        parts.iter().for_each(|part| text.push_str(part.get(row)));
        Ok(())
    })
}

fn strcat_delim(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let delimiter = arguments.strings(0)?;
    let parts = arguments.all_strings(1)?;
    arguments.make_strings(|row, text| {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                text.push_str(delimiter.get(row));
            }
            text.push_str(part.get(row));
        }
        Ok(())
    })
}

fn strcat_array(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (arrays, delimiter) = (arguments.dynamics(0)?, arguments.strings(1)?);
    arguments.make_strings(|row, text| {
        // What is no array is one element.
        let elements = arrays.elements(row).unwrap_or_else(|| vec![arrays.get(row).into_owned()]);
        arguments.bounded(elements.len().saturating_mul(delimiter.get(row).len()))?;
        let parts: Vec<String> = elements.iter().map(values::value_to_string).collect();
        text.push_str(&parts.join(delimiter.get(row)));
        Ok(())
    })
}

fn strrep(arguments: &FunctionArguments) -> Result<ArrayRef> {
    /// The most repetitions, as in Kusto.
    const MOST_TIMES: usize = 1_024;
    let (strings, times) = (arguments.strings(0)?, arguments.longs(1)?);
    let delimiter = if arguments.len() > 2 { Some(arguments.strings(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let times = usize::try_from(times.get(row).unwrap_or(0)).unwrap_or(0).min(MOST_TIMES);
        let delimiter = delimiter.as_ref().map_or("", |delimiter| delimiter.get(row));
        arguments.bounded((strings.get(row).len() + delimiter.len()).saturating_mul(times))?;
        for time in 0..times {
            if time > 0 {
                text.push_str(delimiter);
            }
            text.push_str(strings.get(row));
        }
        Ok(())
    })
}

fn strcmp(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
    arguments.make_longs(|row| Some(left.get(row).cmp(right.get(row)) as i64))
}

/// A negative start counts from the end; one before the first character, as a negative length, gives nothing.
fn substring(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, starts) = (arguments.strings(0)?, arguments.longs(1)?);
    let lengths = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let Some(start) = starts.get(row) else { return Ok(()) };
        let length = match &lengths {
            Some(lengths) => lengths.get(row).map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(0)),
            None => usize::MAX,
        };
        let whole = strings.get(row);
        if let Some(start) = from_either_end(whole, start) {
            text.push_str(slice(whole, start, length));
        }
        Ok(())
    })
}

/// Returns the position that `start` is, which counts from the end where it is negative; `None` before the first
/// character.
fn from_either_end(text: &str, start: i64) -> Option<usize> {
    match usize::try_from(start) {
        Ok(start) => Some(start),
        Err(_) => text.chars().count().checked_sub(usize::try_from(start.unsigned_abs()).ok()?),
    }
}

/// Returns `length` characters from the character at `start` on.
fn slice(text: &str, start: usize, length: usize) -> &str {
    if text.is_ascii() {
        let start = start.min(text.len());
        return &text[start..start.saturating_add(length).min(text.len())];
    }
    let byte_of = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let rest = &text[byte_of(text, start)..];
    &rest[..byte_of(rest, length)]
}

/// Returns the position of the n-th occurrence that begins within `length` characters from `start` on; -1 if there is
/// none, null for a negative n and a length below -1, which stands for all. Occurrences may overlap.
fn indexof(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, wanted) = (arguments.strings(0)?, arguments.strings(1)?);
    let option = |index: usize| if arguments.len() > index { arguments.longs(index).map(Some) } else { Ok(None) };
    let (starts, lengths, occurrences) = (option(2)?, option(3)?, option(4)?);
    arguments.make_longs(|row| {
        let (text, wanted) = (strings.get(row), wanted.get(row));
        let start = starts.as_ref().and_then(|starts| starts.get(row)).unwrap_or(0);
        let start = from_either_end(text, start).unwrap_or(0);
        let length = lengths.as_ref().and_then(|lengths| lengths.get(row)).unwrap_or(-1);
        let occurrence = occurrences.as_ref().and_then(|occurrences| occurrences.get(row)).unwrap_or(1);
        if length < -1 || occurrence < 0 {
            return None;
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let occurrence = occurrence.max(1);
        if start > text.chars().count() {
            return Some(-1);
        }
        let found = nth_occurrence(slice(text, start, usize::MAX), wanted, occurrence, length);
        Some(found.map_or(-1, |chars| (start + chars) as i64))
    })
}

/// Returns how many characters are before the n-th occurrence; `None` if there are fewer occurrences within `length`
/// characters, or the query is to end.
fn nth_occurrence(text: &str, wanted: &str, nth: i64, length: usize) -> Option<usize> {
    let (mut rest, mut chars, mut turns) = (text, 0, LoopTurns::default());
    for turn in 1..=nth {
        let at = rest.find(wanted)?;
        chars += rest[..at].chars().count();
        if chars >= length {
            return None;
        }
        if turn == nth {
            return Some(chars);
        }
        turns.count_of(wanted.len()).ok()?;
        // The empty text occurs at the end, too, and after it nothing does.
        rest = &rest[at + rest[at..].chars().next()?.len_utf8()..];
        chars += 1;
    }
    None
}

fn split(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, delimiter) = (arguments.strings(0)?, arguments.strings(1)?);
    let index = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let (text, delimiter) = (strings.get(row), delimiter.get(row));
        // A short text has few parts.
        if !delimiter.is_empty() && arguments.bounded_elements(text.len()).is_err() {
            arguments.bounded_elements(text.matches(delimiter).count())?;
        }
        let parts: Vec<&str> = if delimiter.is_empty() { vec![text] } else { text.split(delimiter).collect() };
        let Some(index) = &index else { return Ok(parts.into()) };
        let part = index.get(row).and_then(|index| usize::try_from(index).ok()).and_then(|index| parts.get(index));
        Ok(part.map_or(Value::Array(Vec::new()), |part| vec![*part].into()))
    })
}

/// Returns one part of a split string as JSON; null if there are fewer.
pub(super) fn split_element(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, delimiter, index) = (arguments.string_views(0)?, arguments.strings(1)?, arguments.longs(2)?);
    arguments.make_optional_strings(|row, json| {
        let Some(part) = part(strings.get(row), delimiter.get(row), index.get(row)) else { return Ok(false) };
        let is_plain = part.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        if is_plain {
            json.extend(["\"", part, "\""]);
        } else {
            json.push_str(&Value::from(part).to_string());
        }
        Ok(true)
    })
}

/// Returns one part of a split string.
pub(super) fn split_text(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, delimiter, index) = (arguments.string_views(0)?, arguments.strings(1)?, arguments.longs(2)?);
    let mut parts = StringViewBuilder::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        parts.append_value(part(strings.get(row), delimiter.get(row), index.get(row)).unwrap_or_default());
    }
    Ok(Arc::new(parts.finish()))
}

fn part<'a>(text: &'a str, delimiter: &str, index: Option<i64>) -> Option<&'a str> {
    let index = usize::try_from(index?).ok()?;
    let mut chars = delimiter.chars();
    match (chars.next(), chars.next()) {
        (None, _) => (index == 0).then_some(text),
        (Some(only), None) => text.split(only).nth(index),
        _ => text.split(delimiter).nth(index),
    }
}

fn replace_string(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, from, to) = (arguments.strings(0)?, arguments.strings(1)?, arguments.strings(2)?);
    arguments.make_strings(|row, text| replace(arguments, strings.get(row), from.get(row), to.get(row), text))
}

fn replace(arguments: &FunctionArguments, whole: &str, from: &str, to: &str, text: &mut String) -> Result<()> {
    if from.is_empty() {
        text.push_str(whole);
        return Ok(());
    }
    let mut rest = whole;
    while let Some(at) = rest.find(from) {
        text.push_str(&rest[..at]);
        text.push_str(to);
        rest = &rest[at + from.len()..];
        arguments.bounded(text.len())?;
    }
    text.push_str(rest);
    Ok(())
}

/// Applies the replacements one after the other. A replaced piece is not replaced again, and what has no replacement
/// stays as it is.
fn replace_strings(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, from, to) = (arguments.strings(0)?, arguments.dynamics(1)?, arguments.dynamics(2)?);
    arguments.make_strings(|row, text| {
        let to = to.get(row);
        let mut pieces = vec![Piece::Open(strings.get(row).to_owned())];
        for (index, wanted) in from.elements(row).unwrap_or_default().iter().enumerate() {
            let Some(wanted) = wanted.as_str().filter(|wanted| !wanted.is_empty()) else { continue };
            let replacement = match to.as_ref() {
                Value::Array(replacements) => replacements.get(index).and_then(Value::as_str),
                single => single.as_str(),
            };
            let replacement = replacement.unwrap_or(wanted);
            let mut next = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let open = match piece {
                    Piece::Open(open) => open,
                    done => {
                        next.push(done);
                        continue;
                    }
                };
                for (number, part) in open.split(wanted).enumerate() {
                    if number > 0 {
                        next.push(Piece::Replaced(replacement.to_owned()));
                    }
                    next.push(Piece::Open(part.to_owned()));
                }
            }
            pieces = next;
            arguments.bounded(pieces.iter().map(Piece::bytes).sum())?;
        }
        pieces.iter().for_each(|piece| text.push_str(piece.text()));
        Ok(())
    })
}

/// A piece of a string in which something is replaced.
enum Piece {
    Open(String),
    Replaced(String),
}

impl Piece {
    fn text(&self) -> &str {
        match self {
            Piece::Open(text) | Piece::Replaced(text) => text,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text().len()
    }
}

fn tolower(arguments: &FunctionArguments) -> Result<ArrayRef> {
    map_chars(arguments, |char, text| text.extend(char.to_lowercase()), str::make_ascii_lowercase)
}

fn toupper(arguments: &FunctionArguments) -> Result<ArrayRef> {
    // As in .NET, a character stays one character: `ß` has no capital.
    let upper = |char: char, text: &mut String| {
        let mut several = char.to_uppercase();
        match (several.next(), several.next()) {
            (Some(one), None) => text.push(one),
            _ => text.push(char),
        }
    };
    map_chars(arguments, upper, str::make_ascii_uppercase)
}

fn map_chars(
    arguments: &FunctionArguments,
    any: impl Fn(char, &mut String),
    ascii: impl Fn(&mut str),
) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        let whole = strings.get(row);
        if whole.is_ascii() {
            text.push_str(whole);
            ascii(text);
        } else {
            whole.chars().for_each(|char| any(char, text));
        }
        Ok(())
    })
}

fn reverse(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        text.extend(strings.get(row).chars().rev());
        Ok(())
    })
}

/// Replaces each character of the first list by the one at its position in the second. The last character of the second
/// list stands for all that are missing.
fn translate(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (from, to, strings) = (arguments.strings(0)?, arguments.strings(1)?, arguments.strings(2)?);
    let literal = (from.constant && to.constant).then(|| replacements(from.get(0), to.get(0)));
    arguments.make_strings(|row, text| {
        let of_row = if literal.is_none() { replacements(from.get(row), to.get(row)) } else { Vec::new() };
        let replacements = literal.as_ref().unwrap_or(&of_row);
        let replacement = |char: char| match replacements.binary_search_by_key(&char, |(from, _)| *from) {
            Ok(at) => replacements[at].1,
            Err(_) => Some(char),
        };
        text.extend(strings.get(row).chars().filter_map(replacement));
        Ok(())
    })
}

/// Returns the characters of a list with what stands for each, in order; where one is listed again, the first place counts.
fn replacements(from: &str, to: &str) -> Vec<(char, Option<char>)> {
    let to: Vec<char> = to.chars().collect();
    let mut places: Vec<(char, usize)> = from.chars().zip(0..).collect();
    places.sort_unstable();
    places.dedup_by_key(|(char, _)| *char);
    places.into_iter().map(|(char, place)| (char, to.get(place).or(to.last()).copied())).collect()
}

fn isascii(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_total(|row| strings.get(row).is_ascii())
}

fn isutf8(arguments: &FunctionArguments) -> Result<ArrayRef> {
    arguments.make_total(|_| true)
}

fn codepoints(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| {
        let text = strings.get(row);
        arguments.bounded_elements(text.chars().count())?;
        Ok(text.chars().map(u32::from).collect::<Vec<_>>().into())
    })
}

fn codepoints_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    let is_wrong = |kql_type: &&KqlType| !matches!(kql_type, KqlType::Int | KqlType::Long | KqlType::Dynamic);
    match types.iter().find(is_wrong) {
        Some(wrong) => Err(format!("codepoints are whole numbers and arrays of them, not {}", wrong.name())),
        None => Ok(KqlType::String),
    }
}

/// Returns the string of all codepoints; the empty one where one of them is none.
fn from_codepoints(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let parts = arguments.all_dynamics(0)?;
    let char_of = |value: &Value| char::from_u32(u32::try_from(value.as_i64()?).ok()?);
    arguments.make_strings(|row, text| {
        for part in &parts {
            let part = part.get(row);
            let codepoints = match part.as_ref() {
                Value::Array(elements) => elements.as_slice(),
                single => std::slice::from_ref(single),
            };
            for codepoint in codepoints {
                let Some(char) = char_of(codepoint) else {
                    text.clear();
                    return Ok(());
                };
                text.push(char);
            }
        }
        Ok(())
    })
}

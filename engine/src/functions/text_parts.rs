//! Parts of texts and patterns: subscripts, GLOB, SIMILAR TO, LIKE with an escape, bytes as they are written, paths, bars.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, ListBuilder, StringArray, StringBuilder};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::{Regex, RegexBuilder};

use super::definition::{Definition, invalid, texts, unfit};
use super::hex::{byte_of_hex, bytes_of_hex};
use crate::type_names::sql_name;

/// The most bytes of a compiled pattern.
const MAX_REGEX_BYTES: usize = 4 << 20;
/// The widest bar.
const WIDEST_BAR: f64 = 1_000.0;

/// The function that returns a replacement as Rust's patterns read it: `\1` is a group, and `$` a character.
pub(crate) const REGEXP_REPLACEMENT: &str = "regexp_replacement";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let matches = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 2..=2,
        takes: |_| Ok(vec![DataType::Utf8; 2]),
        returns: |_| Ok(DataType::Boolean),
        compute,
    };
    let like = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 3..=3,
        takes: |_| Ok(vec![DataType::Utf8; 3]),
        returns: |_| Ok(DataType::Boolean),
        compute,
    };
    let bytes = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |types| match types {
            [binary @ (DataType::Binary | DataType::LargeBinary | DataType::BinaryView)] => Ok(vec![binary.clone()]),
            [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null] => Ok(vec![DataType::Utf8]),
            [number] if number.is_numeric() => Err(unfit(number_as_bytes(number))),
            [other] if can_cast_types(other, &DataType::Binary) => Ok(vec![other.clone()]),
            [other] => Err(unfit(format!("bytes are made of a text, not of {}", sql_name(other)))),
            _ => Err(unfit("bytes are made of one text".into())),
        },
        returns: |_| Ok(DataType::Binary),
        compute,
    };
    let path = |name, returns, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=2,
        takes: |types| Ok(vec![DataType::Utf8; types.len()]),
        returns,
        compute,
    };
    let definitions = [
        Definition {
            name: REGEXP_REPLACEMENT,
            aliases: &[],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Utf8]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| texts(arrays, regexp_replacement),
        },
        Definition {
            name: "text_element",
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Utf8, DataType::Int64]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| slices(&arrays[0], &arrays[1], &arrays[1], rows, true),
        },
        Definition {
            name: "text_slice",
            aliases: &[],
            arguments: 3..=3,
            takes: |_| Ok(vec![DataType::Utf8, DataType::Int64, DataType::Int64]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| slices(&arrays[0], &arrays[1], &arrays[2], rows, false),
        },
        matches("glob_matches", |arrays, rows| matched(arrays, rows, glob_regex)),
        matches("similar_to", |arrays, rows| matched(arrays, rows, similar_regex)),
        like("like_escape", |arrays, rows| escaped_like(arrays, rows, false, false)),
        like("not_like_escape", |arrays, rows| escaped_like(arrays, rows, false, true)),
        like("ilike_escape", |arrays, rows| escaped_like(arrays, rows, true, false)),
        like("not_ilike_escape", |arrays, rows| escaped_like(arrays, rows, true, true)),
        bytes("blob", |arrays, _| to_bytes(&arrays[0], blob_bytes)),
        bytes("bytea", |arrays, _| to_bytes(&arrays[0], bytea_bytes)),
        bytes("unbin", |arrays, _| to_bytes(&arrays[0], binary_bytes)),
        path("parse_path", |_| Ok(DataType::new_list(DataType::Utf8, true)), parsed_paths),
        path(
            "parse_dirname",
            |_| Ok(DataType::Utf8),
            |arrays, _| {
                let first = |path: &str| match path.find(['/', '\\']) {
                    // The root.
                    Some(0) => path[..1].to_owned(),
                    Some(end) => path[..end].to_owned(),
                    None => String::new(),
                };
                Ok(Arc::new(arrays[0].as_string::<i32>().iter().map(|path| path.map(first)).collect::<StringArray>()))
            },
        ),
        Definition {
            name: "bar",
            aliases: &[],
            arguments: 3..=4,
            takes: |types| Ok(vec![DataType::Float64; types.len()]),
            returns: |_| Ok(DataType::Utf8),
            compute: bars,
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// Returns characters of texts from one position to another, counted from 1, or from the end where negative.
fn slices(texts: &ArrayRef, starts: &ArrayRef, ends: &ArrayRef, rows: usize, is_element: bool) -> Result<ArrayRef> {
    let (texts, starts, ends) =
        (texts.as_string::<i32>(), starts.as_primitive::<Int64Type>(), ends.as_primitive::<Int64Type>());
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || starts.is_null(row) || ends.is_null(row) {
            found.push(None);
            continue;
        }
        let text = texts.value(row);
        let length = text.chars().count() as i64;
        let position = |at: i64| if at < 0 { at + length + 1 } else { at };
        let (first, last) = (position(starts.value(row)), position(ends.value(row)));
        let skipped = usize::try_from(first.max(1) - 1).unwrap_or(usize::MAX);
        let count = usize::try_from(last.saturating_sub(first.max(1)).saturating_add(1)).unwrap_or(0);
        let is_outside = is_element && first < 1;
        found.push(Some(if is_outside { String::new() } else { text.chars().skip(skipped).take(count).collect() }));
    }
    Ok(Arc::new(StringArray::from(found)))
}

fn compiled(pattern: &str, ignores_case: bool) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_REGEX_BYTES).case_insensitive(ignores_case).dot_matches_new_line(true);
    builder.build().map_err(|error| invalid(format!("`{pattern}` is no pattern: {error}")))
}

fn matched(arrays: &[ArrayRef], rows: usize, regex_of: fn(&str) -> Result<String>) -> Result<ArrayRef> {
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut last: Option<(String, Regex)> = None;
    let mut found = Vec::with_capacity(rows);
    for (text, pattern) in texts.iter().zip(patterns) {
        let (Some(text), Some(pattern)) = (text, pattern) else {
            found.push(None);
            continue;
        };
        if last.as_ref().is_none_or(|(known, _)| known != pattern) {
            last = Some((pattern.to_owned(), compiled(&regex_of(pattern)?, false)?));
        }
        found.push(last.as_ref().map(|(_, regex)| regex.is_match(text)));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// `*` is anything, `?` a character, `[a-z]` one of several, `[!a-z]` one of the others.
fn glob_regex(pattern: &str) -> Result<String> {
    let mut regex = String::from("^");
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => {
                let mut inside = String::new();
                if chars.next_if(|char| matches!(char, '!' | '^')).is_some() {
                    inside.push('^');
                }
                let mut is_closed = false;
                for char in chars.by_ref() {
                    match char {
                        ']' if inside.trim_start_matches('^').is_empty() => inside.push_str("\\]"),
                        ']' => {
                            is_closed = true;
                            break;
                        }
                        '-' => inside.push('-'),
                        other => inside.push_str(&regex::escape(&other.to_string())),
                    }
                }
                if !is_closed {
                    return Ok("[^\\s\\S]".to_owned());
                }
                regex.push('[');
                regex.push_str(&inside);
                regex.push(']');
            }
            '\\' => regex.push_str(&regex::escape(&chars.next().unwrap_or('\\').to_string())),
            other => regex.push_str(&regex::escape(&other.to_string())),
        }
    }
    regex.push('$');
    Ok(regex)
}

/// A pattern of SIMILAR TO holds for the whole text. With `%` or `_` it is the standard's, otherwise a regular expression, as
/// in DuckDB. Errors: one that both could mean.
fn similar_regex(pattern: &str) -> Result<String> {
    if !pattern.contains(['%', '_']) {
        return Ok(format!("^(?:{})$", with_word_ends(pattern)));
    }
    if pattern.contains(".*") || pattern.contains(".+") || pattern.contains("\\d") || pattern.contains("\\w") {
        return Err(invalid(format!(
            "`{pattern}` mixes the wildcards of SQL with those of regular expressions; write regexp_full_match(text, pattern)"
        )));
    }
    let mut regex = String::from("^(?:");
    let (mut chars, mut in_class) = (pattern.chars(), false);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next().unwrap_or('\\') {
                'm' => regex.push_str("\\b{start}"),
                'M' => regex.push_str("\\b{end}"),
                'y' => regex.push_str("\\b"),
                other => regex.push_str(&regex::escape(&other.to_string())),
            },
            _ if in_class => {
                in_class = char != ']';
                regex.push(char);
            }
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '.' | '^' | '$' => {
                regex.push('\\');
                regex.push(char);
            }
            '[' => {
                in_class = true;
                regex.push('[');
            }
            other => regex.push(other),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// PostgreSQL's ends of words, which the expressions here have other names for.
fn with_word_ends(pattern: &str) -> String {
    pattern.replace("\\m", "\\b{start}").replace("\\M", "\\b{end}").replace("\\y", "\\b")
}

fn escaped_like(arrays: &[ArrayRef], rows: usize, ignores_case: bool, is_negated: bool) -> Result<ArrayRef> {
    let [texts, patterns, escapes] = arrays else { return Err(unfit("a text, a pattern and an escape".into())) };
    let (texts, patterns, escapes) =
        (texts.as_string::<i32>(), patterns.as_string::<i32>(), escapes.as_string::<i32>());
    let mut last: Option<(String, Regex)> = None;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || patterns.is_null(row) || escapes.is_null(row) {
            found.push(None);
            continue;
        }
        let (pattern, mut escape) = (patterns.value(row), escapes.value(row).chars());
        let (escape, more) = (escape.next(), escape.next());
        if more.is_some() {
            return Err(invalid("an escape of LIKE is one character".into()));
        }
        let key = format!("{}{pattern}", escape.unwrap_or('\0'));
        if last.as_ref().is_none_or(|(known, _)| *known != key) {
            let mut regex = String::from("^");
            let mut chars = pattern.chars();
            while let Some(char) = chars.next() {
                match char {
                    char if Some(char) == escape => {
                        let next = chars.next();
                        let next =
                            next.ok_or_else(|| invalid("a pattern of LIKE may not end with its escape".into()))?;
                        regex.push_str(&regex::escape(&next.to_string()));
                    }
                    '%' => regex.push_str(".*"),
                    '_' => regex.push('.'),
                    other => regex.push_str(&regex::escape(&other.to_string())),
                }
            }
            regex.push('$');
            last = Some((key, compiled(&regex, ignores_case)?));
        }
        found.push(last.as_ref().map(|(_, regex)| regex.is_match(texts.value(row)) != is_negated));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// Says why a number is not cast to bytes: Arrow's are those that it has in memory.
pub(super) fn number_as_bytes(number: &DataType) -> String {
    format!("{} is not cast to BLOB; write CAST(CAST(number AS VARCHAR) AS BLOB) for its digits", sql_name(number))
}

fn to_bytes(array: &ArrayRef, of: fn(&str) -> Result<Vec<u8>>) -> Result<ArrayRef> {
    if *array.data_type() != DataType::Utf8 {
        return Ok(cast(array, &DataType::Binary)?);
    }
    let bytes = array.as_string::<i32>().iter().map(|text| text.map(of).transpose());
    let bytes = bytes.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

/// Returns the bytes of a text that is written out where bytes are expected, as DuckDB and PostgreSQL read it. Errors: it is no
/// bytes, or others for each of them.
pub(crate) fn written_bytes(text: &str) -> Result<Vec<u8>> {
    match (blob_bytes(text), bytea_bytes(text)) {
        (Ok(blob), Ok(bytea)) if blob != bytea => Err(invalid(format!(
            "`{text}` is {} bytes as a BYTEA and {} as a BLOB; write '{text}'::BYTEA or '{text}'::BLOB",
            bytea.len(),
            blob.len()
        ))),
        (Ok(bytes), _) | (Err(_), Ok(bytes)) => Ok(bytes),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Returns the bytes of a text that the lake keeps for a column of bytes, which is DuckDB's form of them. Errors: it is no bytes.
pub(super) fn stored_bytes(text: &str) -> Result<Vec<u8>> {
    blob_bytes(text).or_else(|_| bytea_bytes(text))
}

/// DuckDB's: `\xAA` is a byte, all else is its text.
fn blob_bytes(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        if *first != b'\\' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.strip_prefix(b"x").and_then(|after| after.get(..2));
        let byte = digits
            .and_then(byte_of_hex)
            .ok_or_else(|| invalid("a backslash in a BLOB begins a byte: \\xAA; one itself is \\x5C".into()))?;
        bytes.push(byte);
        rest = after.get(3..).unwrap_or_default();
    }
    Ok(bytes)
}

/// PostgreSQL's: `\xAABB` is all bytes in hexadecimal digits; otherwise `\000` is a byte and `\\` a backslash.
fn bytea_bytes(text: &str) -> Result<Vec<u8>> {
    let wrong = || invalid(format!("`{text}` is no BYTEA; write \\x and pairs of hexadecimal digits"));
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return bytes_of_hex(&digits).ok_or_else(wrong);
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..]) => {
                ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), after)
            }
            (b'\\', _) => return Err(wrong()),
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Ok(bytes)
}

/// `0110` as bytes; a first byte of fewer digits is filled up.
fn binary_bytes(text: &str) -> Result<Vec<u8>> {
    let wrong = || invalid(format!("`{text}` is no binary number"));
    if !text.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(wrong());
    }
    let padded = format!("{}{text}", "0".repeat((8 - text.len() % 8) % 8));
    let bytes = padded.as_bytes().chunks(8).map(|bits| {
        let bits = std::str::from_utf8(bits).map_err(|_| wrong())?;
        u8::from_str_radix(bits, 2).map_err(|_| wrong())
    });
    bytes.collect()
}

fn parsed_paths(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for path in arrays[0].as_string::<i32>() {
        if let Some(root) = path.filter(|path| path.starts_with(['/', '\\'])) {
            lists.values().append_value(&root[..1]);
        }
        for part in path.into_iter().flat_map(|path| path.split(['/', '\\'])).filter(|part| !part.is_empty()) {
            lists.values().append_value(part);
        }
        lists.append(path.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

/// A bar as wide as a value is between two others.
fn bars(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    const PARTS: [&str; 8] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let number = |index: usize, row: usize| {
        let array = arrays.get(index)?.as_primitive::<Float64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let width = if arrays.len() > 3 { number(3, row) } else { Some(80.0) };
        let (Some(value), Some(least), Some(most), Some(width)) =
            (number(0, row), number(1, row), number(2, row), width)
        else {
            found.push(None);
            continue;
        };
        if !(1.0..=WIDEST_BAR).contains(&width) || !least.is_finite() || !most.is_finite() || least == most {
            return Err(invalid(format!("a bar is 1 to {WIDEST_BAR} wide, and reaches from a number to another")));
        }
        let share = ((value - least) / (most - least)).clamp(0.0, 1.0);
        let eighths = (share * width * 8.0) as usize;
        let mut bar = "█".repeat(eighths / 8);
        if !eighths.is_multiple_of(8) {
            bar.push_str(PARTS[eighths % 8]);
        }
        let shown = bar.chars().count();
        bar.push_str(&" ".repeat((width as usize).saturating_sub(shown)));
        found.push(Some(bar));
    }
    Ok(Arc::new(StringArray::from(found)))
}

/// A backslash and a digit is a group, a backslash and `&` the whole match, and two are one, as in PostgreSQL.
fn regexp_replacement(text: &str) -> String {
    let mut replacement = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('$', _) => replacement.push_str("$$"),
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                replacement.push_str(&format!("${{{digit}}}"));
                characters.next();
            }
            ('\\', Some('&')) => {
                replacement.push_str("${0}");
                characters.next();
            }
            ('\\', Some('\\')) => {
                replacement.push('\\');
                characters.next();
            }
            (other, _) => replacement.push(other),
        }
    }
    replacement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_hold_for_the_whole_text() {
        let is = |regex: Result<String>, text: &str| compiled(&regex.unwrap(), false).unwrap().is_match(text);
        for (pattern, text, expected) in [
            ("*.txt", "best.txt", true),
            ("?.txt", "best.txt", false),
            ("[a-z]est.txt", "Best.txt", false),
            ("[!abc]est.txt", "test.txt", true),
            ("a\\*", "a*", true),
            ("[ab", "a", false),
        ] {
            assert_eq!(is(glob_regex(pattern), text), expected, "{pattern} {text}");
        }
        for (pattern, text, expected) in [
            ("l+", "hello", false),
            (".*l+.*", "hello", true),
            ("%(b|d)%", "abc", true),
            ("(b|c)%", "abc", false),
            ("a_c", "a.c", true),
            ("%a.c", "abc", false),
        ] {
            assert_eq!(is(similar_regex(pattern), text), expected, "{pattern} {text}");
        }
        assert!(similar_regex("a_.*").is_err());
    }

    #[test]
    fn bytes_are_read_as_each_dialect_writes_them() {
        assert_eq!(blob_bytes("a\\xAAb").unwrap(), b"a\xAAb");
        assert_eq!(blob_bytes("\\xAABB").unwrap(), b"\xAABB");
        assert!(blob_bytes("\\n").is_err());
        assert_eq!(bytea_bytes("\\xDEADbeef").unwrap(), b"\xDE\xAD\xBE\xEF");
        assert_eq!(bytea_bytes("a\\000\\\\b").unwrap(), b"a\0\\b");
        assert_eq!(binary_bytes("0110").unwrap(), [6]);
        assert_eq!(bytea_bytes("\\377\\").map_err(|_| ()), Err(()));
        assert_eq!(bytea_bytes("\\377é").unwrap(), b"\xFF\xC3\xA9");
        assert_eq!(binary_bytes("100000001").unwrap(), [1, 1]);
        // A sign is no digit, and a byte ends at 377.
        for text in ["\\+12", "\\400", "\\x+f"] {
            assert!(bytea_bytes(text).is_err(), "{text}");
        }
        assert!(blob_bytes("\\x+A").is_err());
        // What both read alike, and what one of them reads.
        assert_eq!(written_bytes("plain").unwrap(), b"plain");
        assert_eq!(written_bytes("\\xAA").unwrap(), b"\xAA");
        assert_eq!(written_bytes("\\xAA\\xBB").unwrap(), b"\xAA\xBB");
        assert_eq!(written_bytes("\\001").unwrap(), b"\x01");
        assert!(written_bytes("\\xDEAD").is_err());
        assert_eq!(stored_bytes("\\xDEAD").unwrap(), b"\xDEAD");
        assert!(binary_bytes("+0000001").is_err());
    }

    #[test]
    fn a_long_text_of_escapes_is_read_once() {
        let text = "\\\\".repeat(500_000);
        assert_eq!(bytea_bytes(&text).unwrap().len(), 500_000);
    }
}

//! Functions of texts. Positions and lengths count characters.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use serde_json::Value;

use super::super::types::KqlType;
use super::super::values;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

const LONG: Returns = Returns::Is(KqlType::Long);
const TEXT: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("strlen", "s", LONG, strlen),
    entry("string_size", "s", LONG, string_size),
    entry("strcat", "x*", TEXT, strcat),
    entry("strcat_delim", "sx*", TEXT, strcat_delim),
    entry("strcat_array", "js", TEXT, strcat_array),
    entry("array_strcat", "js", TEXT, strcat_array),
    entry("strrep", "xi?s", TEXT, strrep),
    entry("strcmp", "ss", LONG, strcmp),
    entry("substring", "si?i", TEXT, substring),
    entry("indexof", "xx?iii", LONG, indexof),
    entry("split", "ss?i", DYNAMIC, split),
    entry("replace_string", "sss", TEXT, replace_string),
    entry("replace_strings", "sjj", TEXT, replace_strings),
    entry("tolower", "s", TEXT, tolower),
    entry("toupper", "s", TEXT, toupper),
    entry("reverse", "x", TEXT, reverse),
    entry("translate", "sss", TEXT, translate),
    entry("isascii", "s", BOOL, isascii),
    entry("isutf8", "s", BOOL, isutf8),
    entry("unicode_codepoints_from_string", "s", DYNAMIC, codepoints),
    entry("to_utf8", "s", DYNAMIC, codepoints),
    entry("unicode_codepoints_to_string", "x*", TEXT, from_codepoints),
    entry("make_string", "x*", TEXT, from_codepoints),
];

fn strlen(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_longs(|row| Some(texts.get(row).chars().count() as i64))
}

fn string_size(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_longs(|row| Some(texts.get(row).len() as i64))
}

fn strcat(arguments: &Arguments) -> Result<ArrayRef> {
    let parts = arguments.all_texts(0)?;
    arguments.make_texts(|row, text| {
        parts.iter().for_each(|part| text.push_str(part.get(row)));
        Ok(())
    })
}

fn strcat_delim(arguments: &Arguments) -> Result<ArrayRef> {
    let delimiter = arguments.texts(0)?;
    let parts = arguments.all_texts(1)?;
    arguments.make_texts(|row, text| {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                text.push_str(delimiter.get(row));
            }
            text.push_str(part.get(row));
        }
        Ok(())
    })
}

fn strcat_array(arguments: &Arguments) -> Result<ArrayRef> {
    let (arrays, delimiter) = (arguments.dynamics(0)?, arguments.texts(1)?);
    arguments.make_texts(|row, text| {
        let elements = arrays.elements(row).unwrap_or_default();
        arguments.bounded(elements.len().saturating_mul(delimiter.get(row).len()))?;
        let parts: Vec<String> = elements.iter().map(values::to_text).collect();
        text.push_str(&parts.join(delimiter.get(row)));
        Ok(())
    })
}

fn strrep(arguments: &Arguments) -> Result<ArrayRef> {
    /// As in Kusto.
    const MOST_TIMES: usize = 1_024;
    let (texts, times) = (arguments.texts(0)?, arguments.longs(1)?);
    let delimiter = if arguments.len() > 2 { Some(arguments.texts(2)?) } else { None };
    arguments.make_texts(|row, text| {
        let times = usize::try_from(times.get(row).unwrap_or(0)).unwrap_or(0).min(MOST_TIMES);
        let delimiter = delimiter.as_ref().map_or("", |delimiter| delimiter.get(row));
        arguments.bounded((texts.get(row).len() + delimiter.len()).saturating_mul(times))?;
        for time in 0..times {
            if time > 0 {
                text.push_str(delimiter);
            }
            text.push_str(texts.get(row));
        }
        Ok(())
    })
}

fn strcmp(arguments: &Arguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.texts(0)?, arguments.texts(1)?);
    arguments.make_longs(|row| Some(left.get(row).cmp(right.get(row)) as i64))
}

/// A negative start counts from the end; a negative length is all the rest.
fn substring(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, starts) = (arguments.texts(0)?, arguments.longs(1)?);
    let lengths = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_texts(|row, text| {
        let Some(start) = starts.get(row) else { return Ok(()) };
        let length = match &lengths {
            Some(lengths) => lengths.get(row).map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(0)),
            None => usize::MAX,
        };
        let whole = texts.get(row);
        text.push_str(slice(whole, from_either_end(whole, start), length));
        Ok(())
    })
}

fn from_either_end(text: &str, start: i64) -> usize {
    match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => {
            let back = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
            text.chars().count().saturating_sub(back)
        }
    }
}

/// So many characters from the character at `start` on.
fn slice(text: &str, start: usize, length: usize) -> &str {
    if text.is_ascii() {
        let start = start.min(text.len());
        return &text[start..start.saturating_add(length).min(text.len())];
    }
    let byte_of = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let rest = &text[byte_of(text, start)..];
    &rest[..byte_of(rest, length)]
}

/// The position of the n-th occurrence that begins within `length` characters from `start` on; -1 where there is none.
fn indexof(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, wanted) = (arguments.texts(0)?, arguments.texts(1)?);
    let option = |index: usize| if arguments.len() > index { arguments.longs(index).map(Some) } else { Ok(None) };
    let (starts, lengths, occurrences) = (option(2)?, option(3)?, option(4)?);
    arguments.make_longs(|row| {
        let (text, wanted) = (texts.get(row), wanted.get(row));
        let start = from_either_end(text, starts.as_ref().and_then(|starts| starts.get(row)).unwrap_or(0));
        let length = lengths.as_ref().and_then(|lengths| lengths.get(row)).unwrap_or(-1);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let occurrence = occurrences.as_ref().and_then(|occurrences| occurrences.get(row)).unwrap_or(1).max(1);
        if start > text.chars().count() {
            return Some(-1);
        }
        let rest = slice(text, start, usize::MAX);
        let found = occurrence_of(rest, wanted, occurrence as usize).map(|at| rest[..at].chars().count());
        Some(found.filter(|at| *at < length).map_or(-1, |at| (start + at) as i64))
    })
}

/// Occurrences may overlap.
fn occurrence_of(text: &str, wanted: &str, occurrence: usize) -> Option<usize> {
    let mut from = 0;
    for nth in 1.. {
        let at = from + text.get(from..)?.find(wanted)?;
        if nth == occurrence {
            return Some(at);
        }
        from = at + text[at..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

fn split(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, delimiter) = (arguments.texts(0)?, arguments.texts(1)?);
    let index = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let parts: Vec<&str> = match delimiter.get(row) {
            "" => vec![texts.get(row)],
            delimiter => texts.get(row).split(delimiter).collect(),
        };
        let Some(index) = &index else { return Ok(parts.into()) };
        let part = index.get(row).and_then(|index| usize::try_from(index).ok()).and_then(|index| parts.get(index));
        Ok(part.map_or(Value::Array(Vec::new()), |part| vec![*part].into()))
    })
}

/// One part of a text that is split, as JSON; null where there are fewer.
pub(super) fn split_element(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, delimiter, index) = (arguments.text_views(0)?, arguments.texts(1)?, arguments.longs(2)?);
    arguments.make_some_texts(|row, json| {
        let Some(part) = part(texts.get(row), delimiter.get(row), index.get(row)) else { return Ok(false) };
        let is_plain = part.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        if is_plain {
            json.extend(["\"", part, "\""]);
        } else {
            json.push_str(&Value::from(part).to_string());
        }
        Ok(true)
    })
}

/// The same as a text.
pub(super) fn split_text(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, delimiter, index) = (arguments.text_views(0)?, arguments.texts(1)?, arguments.longs(2)?);
    let mut parts = StringViewBuilder::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        parts.append_value(part(texts.get(row), delimiter.get(row), index.get(row)).unwrap_or_default());
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

fn replace_string(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, from, to) = (arguments.texts(0)?, arguments.texts(1)?, arguments.texts(2)?);
    arguments.make_texts(|row, text| replace(arguments, texts.get(row), from.get(row), to.get(row), text))
}

fn replace(arguments: &Arguments, whole: &str, from: &str, to: &str, text: &mut String) -> Result<()> {
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

/// One after the other; what was replaced once stays as it is then. Without a text for it what is found only stays.
fn replace_strings(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, from, to) = (arguments.texts(0)?, arguments.dynamics(1)?, arguments.dynamics(2)?);
    arguments.make_texts(|row, text| {
        let to = to.get(row);
        let mut pieces = vec![Piece::Open(texts.get(row).to_owned())];
        for (index, wanted) in from.elements(row).unwrap_or_default().iter().enumerate() {
            let wanted = values::to_text(wanted);
            let replacement = match to.as_ref() {
                Value::Array(replacements) => replacements.get(index).and_then(Value::as_str),
                single => single.as_str(),
            };
            let replacement = replacement.unwrap_or(&wanted);
            if wanted.is_empty() {
                continue;
            }
            let mut next = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let open = match piece {
                    Piece::Open(open) => open,
                    done => {
                        next.push(done);
                        continue;
                    }
                };
                for (number, part) in open.split(wanted.as_str()).enumerate() {
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

/// A part of a text in which something is replaced.
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

fn tolower(arguments: &Arguments) -> Result<ArrayRef> {
    map_chars(arguments, |char, text| text.extend(char.to_lowercase()), str::make_ascii_lowercase)
}

fn toupper(arguments: &Arguments) -> Result<ArrayRef> {
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

fn map_chars(arguments: &Arguments, any: impl Fn(char, &mut String), ascii: impl Fn(&mut str)) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        let whole = texts.get(row);
        if whole.is_ascii() {
            text.push_str(whole);
            ascii(text);
        } else {
            whole.chars().for_each(|char| any(char, text));
        }
        Ok(())
    })
}

fn reverse(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        text.extend(texts.get(row).chars().rev());
        Ok(())
    })
}

/// Each character of the first list becomes the one at its place in the second, whose last one stands for all that
/// have none.
fn translate(arguments: &Arguments) -> Result<ArrayRef> {
    let (from, to, texts) = (arguments.texts(0)?, arguments.texts(1)?, arguments.texts(2)?);
    arguments.make_texts(|row, text| {
        let to: Vec<char> = to.get(row).chars().collect();
        let replacement = |char: char| match from.get(row).chars().position(|wanted| wanted == char) {
            Some(position) => to.get(position).or(to.last()).copied(),
            None => Some(char),
        };
        text.extend(texts.get(row).chars().filter_map(replacement));
        Ok(())
    })
}

fn isascii(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_total(|row| texts.get(row).is_ascii())
}

fn isutf8(arguments: &Arguments) -> Result<ArrayRef> {
    arguments.make_total(|_| true)
}

fn codepoints(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_dynamics(|row| Ok(texts.get(row).chars().map(u32::from).collect::<Vec<_>>().into()))
}

fn from_codepoints(arguments: &Arguments) -> Result<ArrayRef> {
    let parts = arguments.all_dynamics(0)?;
    let char_of = |value: &Value| char::from_u32(u32::try_from(value.as_i64()?).ok()?);
    arguments.make_texts(|row, text| {
        for part in &parts {
            match part.get(row).as_ref() {
                Value::Array(elements) => text.extend(elements.iter().filter_map(char_of)),
                single => text.extend(char_of(single)),
            }
        }
        Ok(())
    })
}

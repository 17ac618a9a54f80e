//! `regexp_replace`, `regexp_count` and `regexp_instr` of all matches in a long text. The next match may be looked for up to the end
//! of the text, and what is found be one character: all of them take the square of its length, in one call. So it is looked between
//! two of them whether the query is over.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use regex::Regex;

use super::wrapped_functions::{FunctionOverride, WrappedFunction};
use crate::limits::{InterruptWatch, QueryUsage, largest_value};

/// DataFusion's function replaces in texts up to this length.
const LONG_TEXT_BYTES: usize = 64 << 10;
/// In longer ones it is looked at each match: each may take as long.
const VERY_LONG_TEXT_BYTES: usize = 4 << 20;

/// Returns the function, which ends with its query where it is that one.
pub(super) fn interruptible(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "regexp_replace" => WrappedFunction::new_udf(function, LongReplacements),
        "regexp_count" => WrappedFunction::new_udf(function, LongMatches::Count),
        "regexp_instr" => WrappedFunction::new_udf(function, LongMatches::Place),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LongReplacements;

impl FunctionOverride for LongReplacements {
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let replaces_all = match args.args.get(3) {
            Some(ColumnarValue::Scalar(flags)) => flags.try_as_str().flatten().is_some_and(|flags| flags.contains('g')),
            Some(ColumnarValue::Array(_)) => true,
            None => false,
        };
        if !has_long_text(&args) || !replaces_all {
            return inner.invoke_with_args(args);
        }
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let arrays = arrays.iter().map(|array| Ok(cast(array, &DataType::LargeUtf8)?)).collect::<Result<Vec<_>>>()?;
        let replaced = cast(&replaced_rows(&arrays)?, args.return_field.data_type())?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&replaced, 0)?),
            false => ColumnarValue::Array(replaced),
        })
    }
}

fn has_long_text(args: &ScalarFunctionArgs) -> bool {
    let is_long = |bytes: usize| bytes > LONG_TEXT_BYTES;
    match args.args.first() {
        Some(ColumnarValue::Scalar(text)) => text.try_as_str().flatten().is_some_and(|text| is_long(text.len())),
        Some(ColumnarValue::Array(texts)) => is_long(largest_value(texts.as_ref())),
        None => false,
    }
}

/// What is asked of the matches in a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LongMatches {
    /// How many there are.
    Count,
    /// At which character one of them begins.
    Place,
}

impl FunctionOverride for LongMatches {
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Of the groups of a match the first match is meant, for which the text is read once.
        let asks_for_group = matches!(self, LongMatches::Place) && args.args.len() > 5;
        if !has_long_text(&args) || asks_for_group {
            return inner.invoke_with_args(args);
        }
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let found = self.of_rows(&arrays)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(Arc::new(found)),
        })
    }
}

impl LongMatches {
    /// Answers as DataFusion's functions do: a text and a pattern, the character to begin at, of a place the number of the match,
    /// and the flags.
    fn of_rows(&self, arrays: &[ArrayRef]) -> Result<Int64Array> {
        let column = |index: usize, data_type: DataType| match arrays.get(index) {
            Some(array) => Ok::<_, ArrowError>(Some(cast(array, &data_type)?)),
            None => Ok(None),
        };
        let (numbers, flags) = match self {
            LongMatches::Count => ([column(2, DataType::Int64)?, None], column(3, DataType::LargeUtf8)?),
            LongMatches::Place => {
                ([column(2, DataType::Int64)?, column(3, DataType::Int64)?], column(4, DataType::LargeUtf8)?)
            }
        };
        let texts = [column(0, DataType::LargeUtf8)?, column(1, DataType::LargeUtf8)?, flags];
        let text_of = |index: usize, row: usize| {
            let array = texts[index].as_ref()?.as_string::<i64>();
            array.is_valid(row).then(|| array.value(row))
        };
        let number_of = |index: usize, row: usize| {
            let array = numbers[index].as_ref()?.as_primitive::<Int64Type>();
            array.is_valid(row).then(|| array.value(row))
        };
        let mut last: Option<(String, Regex)> = None;
        let rows = arrays.first().map_or(0, |texts| texts.len());
        let mut found = Vec::with_capacity(rows);
        for row in 0..rows {
            if matches!(self, LongMatches::Place) && text_of(1, row) == Some("") {
                found.push(Some(0));
                continue;
            }
            let (Some(text), Some(pattern)) = (text_of(0, row), text_of(1, row)) else {
                // `null_patterns.rs` is around this.
                found.push(None);
                continue;
            };
            let flags = text_of(2, row).unwrap_or_default();
            if flags.contains('g') {
                let message = "regexp_count()/regexp_instr() does not support the global flag";
                return Err(ArrowError::ComputeError(message.to_owned()).into());
            }
            let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
            let regex = match last.take() {
                Some((known, regex)) if known == pattern => regex,
                _ => Regex::new(&pattern)
                    .map_err(|_| ArrowError::ComputeError(format!("Regular expression did not compile: {pattern}")))?,
            };
            let (start, nth) = (number_of(0, row).unwrap_or(1), number_of(1, row).unwrap_or(1));
            found.push(Some(self.of_text(&regex, text, start, nth)?));
            last = Some((pattern, regex));
        }
        Ok(Int64Array::from(found))
    }

    fn of_text(&self, regex: &Regex, text: &str, start: i64, nth: i64) -> Result<i64> {
        let before = usize::try_from(start).ok().and_then(|start| start.checked_sub(1));
        let Some(before) = before.filter(|_| nth > 0) else {
            let message = "regexp_count() and regexp_instr() count characters and matches from 1";
            return Err(ArrowError::ComputeError(message.to_owned()).into());
        };
        let from = match text.char_indices().nth(before) {
            Some((from, _)) => from,
            // An empty match is counted behind the last character, too.
            None if matches!(self, LongMatches::Count) && before == text.chars().count() => text.len(),
            None => return Ok(0),
        };
        let searched = &text[from..];
        let mut watch = MatchWatch::of_text(searched);
        let mut count = 0;
        for whole in regex.find_iter(searched) {
            watch.look()?;
            count += 1;
            if matches!(self, LongMatches::Place) && count == nth {
                return Ok((before + searched[..whole.start()].chars().count()) as i64 + 1);
            }
        }
        Ok(match self {
            LongMatches::Count => count,
            LongMatches::Place => 0,
        })
    }
}

/// Looks between two matches in a text whether the query is over.
struct MatchWatch {
    watch: InterruptWatch,
    is_very_long: bool,
}

impl MatchWatch {
    fn of_text(text: &str) -> Self {
        Self { watch: InterruptWatch::of_current_query(), is_very_long: text.len() > VERY_LONG_TEXT_BYTES }
    }

    fn look(&mut self) -> Result<()> {
        if self.is_very_long { QueryUsage::check_current() } else { self.watch.check() }
    }
}

/// Replaces in the first of four arrays what matches the second by the third; the last are the flags.
fn replaced_rows(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let rows = arrays.first().map_or(0, |texts| texts.len());
    let mut last: Option<(String, Regex)> = None;
    let mut replaced: Vec<Option<String>> = Vec::with_capacity(rows);
    for row in 0..rows {
        if arrays.iter().any(|array| array.is_null(row)) {
            replaced.push(None);
            continue;
        }
        let text = |index: usize| arrays.get(index).map_or("", |array| array.as_string::<i64>().value(row));
        let pattern = with_flags(text(1), text(3));
        let regex = match last.take() {
            Some((known, regex)) if known == pattern => regex,
            _ => Regex::new(&pattern).map_err(|error| DataFusionError::External(Box::new(error)))?,
        };
        let replacement = with_rust_groups(text(2));
        replaced.push(Some(match text(3).contains('g') {
            true => replaced_all(&regex, text(0), &replacement)?,
            false => regex.replace(text(0), replacement.as_str()).into_owned(),
        }));
        last = Some((pattern, regex));
    }
    Ok(Arc::new(LargeStringArray::from(replaced)))
}

/// Returns a pattern with its flags in it, as DataFusion's function reads them.
fn with_flags(pattern: &str, flags: &str) -> String {
    match flags {
        "g" => pattern.to_owned(),
        flags => format!("(?{}){pattern}", flags.replace('g', "")),
    }
}

/// Returns a replacement whose groups, `\1`, are written `${1}`.
fn with_rust_groups(replacement: &str) -> String {
    let mut written = String::with_capacity(replacement.len());
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        let (before, behind) = rest.split_at(at);
        written.push_str(before);
        let backslashes = behind.len() - behind.trim_start_matches('\\').len();
        let after = &behind[backslashes..];
        let digits = after.len() - after.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        // Two of them are the one of a group, too.
        let kept = if digits > 0 { backslashes.saturating_sub(2) } else { backslashes };
        written.push_str(&behind[..kept]);
        if digits > 0 {
            written.push_str(&format!("${{{}}}", &after[..digits]));
        }
        rest = &after[digits..];
    }
    written.push_str(rest);
    written
}

fn replaced_all(regex: &Regex, text: &str, replacement: &str) -> Result<String> {
    let mut watch = MatchWatch::of_text(text);
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    if replacement.contains('$') {
        for captures in regex.captures_iter(text) {
            watch.look()?;
            let Some(whole) = captures.get(0) else { continue };
            replaced.push_str(&text[end..whole.start()]);
            captures.expand(replacement, &mut replaced);
            end = whole.end();
        }
    } else {
        for whole in regex.find_iter(text) {
            watch.look()?;
            replaced.push_str(&text[end..whole.start()]);
            replaced.push_str(replacement);
            end = whole.end();
        }
    }
    replaced.push_str(&text[end..]);
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_counted_and_found() {
        let texts = |values: &[&str]| Arc::new(LargeStringArray::from(values.to_vec())) as ArrayRef;
        let numbers = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let of = |asked: LongMatches, arrays: &[ArrayRef]| asked.of_rows(arrays).map(|found| found.value(0));
        let whole = texts(&["äbcabc"]);
        let (b, big_b, i) = (texts(&["b"]), texts(&["B"]), texts(&["i"]));
        assert_eq!(of(LongMatches::Count, &[Arc::clone(&whole), Arc::clone(&b)]).unwrap(), 2);
        assert_eq!(of(LongMatches::Count, &[Arc::clone(&whole), Arc::clone(&b), numbers(3)]).unwrap(), 1);
        assert_eq!(
            of(LongMatches::Count, &[Arc::clone(&whole), Arc::clone(&big_b), numbers(1), Arc::clone(&i)]).unwrap(),
            2
        );
        assert!(of(LongMatches::Count, &[Arc::clone(&whole), Arc::clone(&b), numbers(0)]).is_err());
        assert_eq!(of(LongMatches::Place, &[Arc::clone(&whole), Arc::clone(&b)]).unwrap(), 2);
        assert_eq!(of(LongMatches::Place, &[Arc::clone(&whole), Arc::clone(&b), numbers(3)]).unwrap(), 5);
        assert_eq!(of(LongMatches::Place, &[Arc::clone(&whole), Arc::clone(&b), numbers(1), numbers(2)]).unwrap(), 5);
        assert_eq!(of(LongMatches::Place, &[Arc::clone(&whole), Arc::clone(&b), numbers(1), numbers(3)]).unwrap(), 0);
    }

    #[test]
    fn long_texts_are_as_short_ones() {
        let replaced = |text: &str, pattern: &str, replacement: &str, flags: &str| {
            let arrays = [text, pattern, replacement, flags]
                .map(|value| Arc::new(LargeStringArray::from(vec![value])) as ArrayRef);
            replaced_rows(&arrays).unwrap().as_string::<i64>().value(0).to_owned()
        };
        assert_eq!(replaced("foobarbaz", "b(..)", r"X\1Y", "g"), "fooXarYXazY");
        assert_eq!(replaced("foobarbaz", "b(..)", r"X\\1Y", "g"), "fooXarYXazY");
        assert_eq!(replaced("foobarBaz", "b(..)", "X", "gi"), "fooXX");
        assert_eq!(replaced("foobarBaz", "B(..)", "X", "i"), "fooXBaz");
        assert_eq!(replaced("abc", "x*", "-", "g"), "-a-b-c-");
        assert_eq!(replaced("a.b", "[.]", "$$", "g"), "a$b");
        assert_eq!(with_rust_groups(r"a\b\\\12\"), r"a\b\${12}\");
    }
}

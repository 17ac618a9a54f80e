//! `regexp_replace` of all matches in a long text. The next match may be looked for up to the end of the text, and what is found
//! be one character: all of them take the square of its length, in one call. So it is looked between two of them whether the query
//! is over.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
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
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LongReplacements;

impl FunctionOverride for LongReplacements {
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let has_long_text = match args.args.first() {
            Some(ColumnarValue::Scalar(text)) => text.try_as_str().flatten().is_some_and(|text| is_long(text.len())),
            Some(ColumnarValue::Array(texts)) => is_long(largest_value(texts.as_ref())),
            None => false,
        };
        let replaces_all = match args.args.get(3) {
            Some(ColumnarValue::Scalar(flags)) => flags.try_as_str().flatten().is_some_and(|flags| flags.contains('g')),
            Some(ColumnarValue::Array(_)) => true,
            None => false,
        };
        if !has_long_text || !replaces_all {
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

fn is_long(bytes: usize) -> bool {
    bytes > LONG_TEXT_BYTES
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
    let mut watch = InterruptWatch::of_current_query();
    let mut look = || if text.len() > VERY_LONG_TEXT_BYTES { QueryUsage::check_current() } else { watch.check() };
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    if replacement.contains('$') {
        for captures in regex.captures_iter(text) {
            look()?;
            let Some(whole) = captures.get(0) else { continue };
            replaced.push_str(&text[end..whole.start()]);
            captures.expand(replacement, &mut replaced);
            end = whole.end();
        }
    } else {
        for whole in regex.find_iter(text) {
            look()?;
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

//! What regular expressions take once they are compiled, by their texts alone. Kernels compile every pattern of a batch that
//! differs from the others, and keep them until the batch is done.

use std::collections::HashSet;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;

/// What a pattern takes at most: compilers refuse larger ones.
const MAX_BYTES: usize = 10 << 20;
/// What a character takes.
const CHARACTER_BYTES: usize = 64;
/// What a set of characters takes, such as `.` or `[a-z]`.
const SET_BYTES: usize = 1 << 10;
/// What one of Unicode's takes, such as `\d`.
const CLASS_BYTES: usize = 8 << 10;

/// Returns the bytes that the patterns of a column take together, each counted once.
pub(super) fn compiled_bytes(patterns: &dyn Array) -> usize {
    match patterns.data_type() {
        DataType::Utf8 => distinct_bytes(patterns.as_string::<i32>().iter()),
        DataType::LargeUtf8 => distinct_bytes(patterns.as_string::<i64>().iter()),
        DataType::Utf8View => distinct_bytes(patterns.as_string_view().iter()),
        DataType::Dictionary(_, _) => compiled_bytes(patterns.as_any_dictionary().values().as_ref()),
        _ => 0,
    }
}

fn distinct_bytes<'a>(patterns: impl Iterator<Item = Option<&'a str>>) -> usize {
    let mut known = HashSet::new();
    let mut last = None;
    let mut bytes: usize = 0;
    for pattern in patterns.flatten() {
        if last != Some(pattern) && known.insert(pattern) {
            bytes = bytes.saturating_add(pattern_bytes(pattern));
        }
        last = Some(pattern);
    }
    bytes
}

/// Returns what one takes: the more, the more often its parts are repeated by `{...}`, which are written out.
fn pattern_bytes(pattern: &str) -> usize {
    let mut bytes: usize = 0;
    let mut repetitions: usize = 1;
    // The numbers in the braces that are open: the least, and the one that is read.
    let mut least: usize = 0;
    let mut count: Option<usize> = None;
    for char in pattern.chars() {
        bytes = bytes.saturating_add(match char {
            '\\' => CLASS_BYTES,
            '.' | '[' => SET_BYTES,
            _ => CHARACTER_BYTES,
        });
        count = match (char, count) {
            ('{', _) => {
                least = 0;
                Some(0)
            }
            (',', Some(known)) => {
                least = known;
                Some(0)
            }
            (digit, Some(known)) if digit.is_ascii_digit() => {
                let digit = digit.to_digit(10).map_or(0, |digit| digit as usize);
                Some(known.saturating_mul(10).saturating_add(digit))
            }
            ('}', Some(known)) => {
                repetitions = repetitions.saturating_mul(known.max(least).max(1));
                None
            }
            _ => None,
        };
    }
    bytes.saturating_mul(repetitions).min(MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn patterns_are_measured_by_what_they_repeat() {
        assert!(pattern_bytes(r"^[a-z]+ \d{4}-\d{2}$") < 256 << 10);
        assert!(pattern_bytes("plain words") < 1 << 10);
        assert_eq!(pattern_bytes("(a{1,100}){1,100}b"), MAX_BYTES);
        assert_eq!(pattern_bytes("((a{1000,}){1000,}b)"), MAX_BYTES);
        assert_eq!(pattern_bytes("(((x{99999999}){99999999}){99999999})"), MAX_BYTES);
        let same = StringArray::from(vec!["(a{1,100}){1,100}"; 1_000]);
        assert!(compiled_bytes(&same) <= MAX_BYTES, "one that repeats is kept once");
        let all: StringArray = (0..100).map(|row| Some(format!("(a{{1,100}}){{1,100}}{row}"))).collect();
        assert!(compiled_bytes(&all) >= 100 * (MAX_BYTES / 2));
    }
}

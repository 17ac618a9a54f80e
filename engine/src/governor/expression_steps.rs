//! How long a search for a regular expression may take, by the expression and the text alone. A matcher whose tables are full takes
//! a step of each byte for each state of the expression, and what `{...}` repeats is written out in states: `.{500}` has thousands.
//! One search of a long text is minutes then, or hours, in which nobody looks whether the query has been ended.

use std::str::Chars;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::logical_expr::ColumnarValue;

use crate::limits::argument_bytes;

/// Expressions of fewer states are searched for with tables.
const MANY_STATES: usize = 1_000;
/// The states of a set of characters, such as `.` or `[a-z]`.
const SET_STATES: usize = 10;
/// Those of one of Unicode's, such as `\d`.
const CLASS_STATES: usize = 20;
/// Those of a large one, such as `\w`.
const LARGE_CLASS_STATES: usize = 60;
/// How many steps count as a comparison: few expressions and texts are such that all of them are taken.
const STEPS_OF_PAIR: u128 = 4;
/// Parts of the names of functions that search for their second argument in the first.
const SEARCHING: [&str; 2] = ["regexp", "similar_to"];
/// How the names of KQL's functions begin.
const KQL: &str = "kql_";

/// Returns how much a call takes that searches for a regular expression of many states, in comparisons; 0 of other calls.
pub(super) fn compared_with_expression(name: &str, arguments: &[ColumnarValue], rows: usize) -> u128 {
    let Some((text, pattern)) = text_and_expression(name, arguments) else { return 0 };
    let states = match pattern {
        ColumnarValue::Scalar(value) => value.try_as_str().flatten().map_or(0, states_of),
        ColumnarValue::Array(patterns) => most_states(patterns.as_ref()),
    };
    if states < MANY_STATES { 0 } else { argument_bytes(text, rows) as u128 * states as u128 / STEPS_OF_PAIR }
}

/// Returns what a call searches, and what for; `None` where that is no regular expression.
fn text_and_expression<'a>(
    name: &str,
    arguments: &'a [ColumnarValue],
) -> Option<(&'a ColumnarValue, &'a ColumnarValue)> {
    match (name.strip_prefix(KQL), arguments) {
        (Some("matches regex" | "replace_regex" | "indexof_regex"), [text, pattern, ..]) => Some((text, pattern)),
        (
            Some("extract" | "extract_all" | "extractall" | "replace" | "trim" | "trim_start" | "trim_end"),
            [pattern, .., text],
        ) => Some((text, pattern)),
        (None, [text, pattern, ..]) if SEARCHING.iter().any(|part| name.contains(part)) => Some((text, pattern)),
        _ => None,
    }
}

/// Whether an expression has so many states that a search for it may take long.
pub(super) fn has_many_states(expression: &str) -> bool {
    states_of(expression) >= MANY_STATES
}

fn most_states(patterns: &dyn Array) -> usize {
    match patterns.data_type() {
        DataType::Utf8 => patterns.as_string::<i32>().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::LargeUtf8 => patterns.as_string::<i64>().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::Utf8View => patterns.as_string_view().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::Dictionary(_, _) => most_states(patterns.as_any_dictionary().values().as_ref()),
        _ => 0,
    }
}

/// Returns about how many states an expression has: a part that `{...}` repeats has them as often as it is repeated at most. 0 where
/// that makes little of them: of many words a matcher has tables.
fn states_of(expression: &str) -> usize {
    // The states before each group that is open.
    let mut open: Vec<usize> = Vec::new();
    let (mut before, mut last) = (0_usize, 0_usize);
    // Those of every part once.
    let mut written = 0_usize;
    let mut rest = expression.chars();
    while let Some(char) = rest.next() {
        match char {
            '*' | '+' | '?' | '|' | '^' | '$' => {}
            '{' => last = last.saturating_mul(repetitions(&mut rest)),
            '(' => {
                open.push(before.saturating_add(last));
                (before, last) = (0, 0);
            }
            ')' => {
                last = last.saturating_add(before);
                before = open.pop().unwrap_or(0);
            }
            other => {
                before = before.saturating_add(last);
                last = match other {
                    '\\' => escaped_states(&mut rest),
                    '[' => set_states(&mut rest),
                    '.' => SET_STATES,
                    _ => 1,
                };
                written += last;
            }
        }
    }
    let all = open.into_iter().fold(before.saturating_add(last), usize::saturating_add);
    if all / 2 < written { 0 } else { all }
}

/// Reads the numbers behind a brace as far as its end, and returns the largest.
fn repetitions(rest: &mut Chars<'_>) -> usize {
    let (mut most, mut count) = (1_usize, 0_usize);
    for char in rest {
        match char {
            '}' => break,
            ',' => {
                most = most.max(count);
                count = 0;
            }
            digit => {
                let digit = digit.to_digit(10).map_or(0, |digit| digit as usize);
                count = count.saturating_mul(10).saturating_add(digit);
            }
        }
    }
    most.max(count)
}

/// Reads what a backslash escapes, with the name of a class or the number of a character behind it.
fn escaped_states(rest: &mut Chars<'_>) -> usize {
    let escaped = rest.next();
    if matches!(escaped, Some('p' | 'P' | 'b' | 'x' | 'u' | 'U')) && rest.as_str().starts_with('{') {
        while rest.next().is_some_and(|char| char != '}') {}
    }
    match escaped {
        Some('w' | 'W' | 'p' | 'P') => LARGE_CLASS_STATES,
        Some('d' | 'D' | 's' | 'S') => CLASS_STATES,
        _ => 1,
    }
}

/// Reads a set of characters as far as its end.
fn set_states(rest: &mut Chars<'_>) -> usize {
    let (mut depth, mut states) = (1_usize, SET_STATES);
    let mut is_first = true;
    while let Some(char) = rest.next() {
        match char {
            // What follows may be a bracket that is meant itself.
            '^' if is_first => continue,
            '\\' => states = states.max(escaped_states(rest)),
            '[' => depth += 1,
            ']' if !is_first => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
        is_first = false;
    }
    states
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn states_follow_what_is_repeated() {
        assert_eq!(states_of(&"abc|d".repeat(1_000)), 0);
        assert_eq!(states_of("a{3}b"), 4);
        assert_eq!(states_of("(ab{2,5}){1,10}c"), 61);
        assert_eq!(states_of("((a{10}){10}){10}"), 1_000);
        assert_eq!(states_of("(.{500}x|b)"), 5_002);
        assert_eq!(states_of(r"\w{1,100} "), 6_001);
        assert_eq!(states_of(r"\p{Greek}{2}[^]x]{3}[[:alpha:]-]"), 120 + 30 + 10);
        assert_eq!(states_of("(((x{99999999999}){99999999999}){99999999999})"), usize::MAX);
        assert_eq!(states_of("(a(b{9}"), 10);
        assert_eq!(states_of(r"\x{1F600}\d{3}"), 61);
    }

    #[test]
    fn usual_expressions_have_few_states() {
        for usual in [
            r"^[a-z]+ \d{4}-\d{2}$",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3,9}",
            r"(\d{1,3}\.){3}\d{1,3}",
            r"[\w.+-]+@[\w-]+\.[\w.]{2,10}",
        ] {
            assert!(!has_many_states(usual), "{usual}: {}", states_of(usual));
        }
    }

    #[test]
    fn searches_are_measured_by_text_and_expression() {
        let text = || ColumnarValue::Scalar(ScalarValue::from("a".repeat(4_000)));
        let pattern = |text: &str| ColumnarValue::Scalar(ScalarValue::from(text));
        assert_eq!(compared_with_expression("regexp_count", &[text(), pattern(".{500}")], 1), 5_000_000);
        assert_eq!(compared_with_expression("regexp_count", &[text(), pattern("a.*b")], 1), 0);
        assert_eq!(compared_with_expression("strpos", &[text(), pattern(".{500}")], 1), 0);
        let group = ColumnarValue::Scalar(ScalarValue::from(0_i64));
        assert_eq!(compared_with_expression("kql_extract", &[pattern(".{500}"), group, text()], 1), 5_000_000);
        assert_eq!(compared_with_expression("kql_matches regex", &[text(), pattern(".{500}")], 1), 5_000_000);
    }
}

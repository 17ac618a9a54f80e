//! Arguments of functions that are constants: formats of times, names of their parts, and words of which there is a
//! list. What such a constant must be is checked before any row is read.

use datafusion::logical_expr::lit;
use datafusion::scalar::ScalarValue;

use super::{Binder, Result, Typed, constant_of, invalid, text_of};
use crate::functions::compile_pattern;
use crate::span::Span;
use crate::types::KqlType;

/// The most groups of a pattern of `extract_all`.
const MAX_GROUPS: usize = 16;
/// The longest pattern whose groups are counted before any row is read.
const MAX_CHECKED_PATTERN: usize = 16 << 10;
/// The delimiters between the parts of a time format.
const FORMAT_DELIMITERS: &str = " /-:,._[]";
/// The parts of a datetime that `datetime_part` reads, and those that are added and counted.
const DATETIME_PARTS: &[&str] = &[
    "year",
    "quarter",
    "month",
    "week_of_year",
    "day",
    "dayofyear",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
];
const DATETIME_UNITS: &[&str] = &[
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
];

impl Binder<'_> {
    /// `assert(condition, message)`: a constant condition that must hold for the query to run.
    pub(super) fn asserted(&mut self, condition: &Typed, message: &Typed, span: Span) -> Result<Typed> {
        match (constant_of(&condition.expr)?, constant_of(&message.expr)?) {
            (Some(ScalarValue::Boolean(Some(true))), _) => Ok(Typed::new(lit(true), KqlType::Bool)),
            (Some(ScalarValue::Boolean(_)), message) if text_of(message.as_ref()).is_some() => {
                invalid(span, format!("assert: {}", text_of(message.as_ref()).unwrap_or_default()))
            }
            _ => invalid(span, "`assert` takes a constant condition and a constant text"),
        }
    }

    /// Checks that a constant format has only parts and delimiters that Kusto has.
    pub(super) fn check_format(&mut self, function: &str, format: &Typed, span: Span) -> Result<()> {
        let parts = if function == "format_datetime" { "dfFhHmMsty" } else { "dfFhHms" };
        let format = constant_of(&format.expr)?;
        let Some(format) = text_of(format.as_ref()) else { return Ok(()) };
        match format.chars().find(|char| !parts.contains(*char) && !FORMAT_DELIMITERS.contains(*char)) {
            Some(other) => invalid(span, format!("`{other}` is no part of a format")),
            None => Ok(()),
        }
    }

    /// Checks that a constant part of a datetime is one.
    pub(super) fn check_part(&mut self, function: &str, part: &Typed, span: Span) -> Result<()> {
        let is_read = matches!(function, "datetime_part" | "datepart");
        self.check_word(part, if is_read { DATETIME_PARTS } else { DATETIME_UNITS }, span)
    }

    /// Checks that a constant text is one of these words, in any case.
    pub(super) fn check_word(&mut self, word: &Typed, words: &[&str], span: Span) -> Result<()> {
        let word = constant_of(&word.expr)?;
        let Some(word) = text_of(word.as_ref()) else { return Ok(()) };
        if words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            return Ok(());
        }
        invalid(span, format!("`{word}` is none of: {}", words.join(", ")))
    }

    /// Checks that a constant pattern has as many groups as `extract_all` takes.
    pub(super) fn check_groups(&mut self, function: &str, pattern: &Typed, span: Span) -> Result<()> {
        let pattern = constant_of(&pattern.expr)?;
        let text = text_of(pattern.as_ref()).filter(|text| text.len() <= MAX_CHECKED_PATTERN);
        let Some(Ok(regex)) = text.map(compile_pattern) else { return Ok(()) };
        // The first one is the whole match.
        if (2..=MAX_GROUPS + 1).contains(&regex.captures_len()) {
            return Ok(());
        }
        let message =
            format!("the pattern of `{function}` has 1 to {MAX_GROUPS} groups; put `(...)` around what is wanted");
        invalid(span, message)
    }
}

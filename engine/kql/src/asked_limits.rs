//! The limits that a query asks for with `set`, which are for its host to keep.

use std::time::Duration;

use crate::ast::{Literal, ParameterValue, Query, StatementKind};
use crate::values::timespan;

/// Nanoseconds of a tick.
const TICK_NANOSECONDS: u64 = 100;

/// What a query's `set` statements say of its own limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedLimits {
    /// `truncationmaxrecords`: a result of more rows is a failure, unless there is `notruncation`.
    pub rows: Option<u64>,
    /// `truncationmaxsize`: a result of more bytes is a failure, in the same way.
    pub bytes: Option<u64>,
    /// `servertimeout`.
    pub time: Option<Duration>,
    /// `notruncation`, which takes back the limits of rows and bytes, also those that stand beside the query.
    pub no_truncation: Option<bool>,
}

/// Returns the limits that a query asks for. Of several statements the first counts; one that is no limit is the
/// planner's to refuse.
pub fn asked_limits(text: &str) -> AskedLimits {
    if text.contains("set") { limits_of(&crate::parse(text).query) } else { AskedLimits::default() }
}

/// Returns the limits that a query asks for, from its tree.
pub(crate) fn limits_of(query: &Query) -> AskedLimits {
    let mut asked = AskedLimits::default();
    for statement in &query.statements {
        let StatementKind::Set { name, value } = &statement.kind else { continue };
        match (name.text.as_str(), value) {
            ("notruncation", None) => asked.no_truncation = asked.no_truncation.or(Some(true)),
            ("notruncation", Some(ParameterValue::Literal(Literal::Bool(value)))) => {
                asked.no_truncation = asked.no_truncation.or(Some(*value));
            }
            ("truncationmaxrecords", Some(ParameterValue::Literal(Literal::Long(rows)))) => {
                asked.rows = asked.rows.or(u64::try_from(*rows).ok());
            }
            ("truncationmaxsize", Some(ParameterValue::Literal(Literal::Long(bytes)))) => {
                asked.bytes = asked.bytes.or(u64::try_from(*bytes).ok());
            }
            ("servertimeout", Some(ParameterValue::Literal(value))) => {
                asked.time = asked.time.or_else(|| duration(value));
            }
            _ => {}
        }
    }
    if asked.no_truncation == Some(true) { AskedLimits { rows: None, bytes: None, ..asked } } else { asked }
}

fn duration(value: &Literal) -> Option<Duration> {
    match value {
        Literal::Timespan(ticks) => {
            Some(Duration::from_nanos(u64::try_from(*ticks).ok()?.checked_mul(TICK_NANOSECONDS)?))
        }
        Literal::String(text) | Literal::Typed { text, .. } => timespan(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_set_statements() {
        let text = "set servertimeout = 1.5s; set truncationmaxrecords = 2; set truncationmaxrecords=3; print 1";
        let time = Some(Duration::from_millis(1500));
        assert_eq!(asked_limits(text), AskedLimits { rows: Some(2), time, ..AskedLimits::default() });
        assert_eq!(asked_limits("set servertimeout = time(00:01:00); T").time, Some(Duration::from_secs(60)));
        assert_eq!(asked_limits("T | where a =="), AskedLimits::default());
        assert_eq!(asked_limits("set truncationmaxsize = 1048576; T").bytes, Some(1 << 20));
        let taken_back = "set truncationmaxrecords = 2; set truncationmaxsize = 8; set notruncation; T";
        assert_eq!(asked_limits(taken_back), AskedLimits { no_truncation: Some(true), ..AskedLimits::default() });
        let kept = AskedLimits { rows: Some(2), no_truncation: Some(false), ..AskedLimits::default() };
        assert_eq!(asked_limits("set notruncation = false; set truncationmaxrecords = 2; T"), kept);
    }
}

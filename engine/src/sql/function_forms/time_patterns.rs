//! `to_date(text, pattern)` and `to_timestamp(text, pattern)` with PostgreSQL's patterns (`DD Mon YYYY`), and with C's (`%d %b %Y`),
//! as `strptime`: DataFusion knows C's, and drops an hour that has no minutes.

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};

use super::{call, filled, parse, text};
use crate::error::{EngineError, Result};

/// PostgreSQL's parts of patterns, longer ones before those that they begin with, and what they are in C's.
const PARTS: [(&str, &str); 26] = [
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("YY", "%y"),
    ("yy", "%y"),
    ("MONTH", "%B"),
    ("Month", "%B"),
    ("month", "%B"),
    ("MON", "%b"),
    ("Mon", "%b"),
    ("mon", "%b"),
    ("MM", "%m"),
    ("mm", "%m"),
    ("MI", "%M"),
    ("mi", "%M"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("dd", "%d"),
    ("HH24", "%H"),
    ("hh24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("SS", "%S"),
    ("ss", "%S"),
    ("US", "%f"),
    ("AM", "%p"),
    ("PM", "%p"),
];

/// Returns a call with a pattern that is written out; `None` for another. Errors: `unsupported` for a pattern that has other parts.
pub(super) fn parsed_time(name: &str, value: &Expr, pattern: &Expr) -> Result<Option<Expr>> {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(pattern), .. }) = pattern else { return Ok(None) };
    let written = match pattern.contains('%') {
        true => pattern.clone(),
        false => c_pattern(pattern).ok_or_else(|| EngineError::Unsupported {
            what: format!("the pattern `{pattern}` of {name}"),
            hint: "write YYYY, MM, Mon, DD, HH24, MI, SS, or strptime(text, '%d %b %Y')".into(),
        })?,
    };
    let parsed = call("strptime", vec![value.clone(), text(&written)]);
    Ok(Some(match name {
        "to_date" => filled(parse("CAST($1 AS DATE)")?, &[parsed]),
        _ => parsed,
    }))
}

/// Returns PostgreSQL's pattern as C's; `None` where it has a part that is none of those.
fn c_pattern(pattern: &str) -> Option<String> {
    let mut written = String::new();
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        if let Some((part, meaning)) = PARTS.iter().find(|(part, _)| rest.starts_with(part)) {
            written.push_str(meaning);
            rest = rest.strip_prefix(part)?;
            continue;
        }
        // What is quoted stands for itself.
        if let Some(quoted) = rest.strip_prefix('"') {
            let (own, behind) = quoted.split_once('"')?;
            written.push_str(own);
            rest = behind;
            continue;
        }
        if next.is_alphanumeric() {
            return None;
        }
        written.push(next);
        rest = rest.strip_prefix(next)?;
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_postgresql_are_those_of_c() {
        for (pattern, expected) in [
            ("DD Mon YYYY", Some("%d %b %Y")),
            ("YYYY-MM-DD HH24:MI:SS.US", Some("%Y-%m-%d %H:%M:%S.%f")),
            ("YYYYMMDD", Some("%Y%m%d")),
            ("YYYY-DDD", Some("%Y-%j")),
            ("HH12:MI AM, \"day\" DD", Some("%I:%M %p, day %d")),
            ("Q YYYY", None),
            ("YYYY\"x", None),
        ] {
            assert_eq!(c_pattern(pattern).as_deref(), expected, "{pattern}");
        }
    }
}

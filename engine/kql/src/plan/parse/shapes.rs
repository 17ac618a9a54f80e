//! What a column of a type takes of a text in `parse`, as a regular expression. Between texts a column takes all there
//! is; only before a `*`, and between regular expressions, does its type say where it ends.

use crate::types::KqlType;

const INTEGER: &str = r"\s*[-+]?\d+";
/// An exponent is no part of it.
const REAL: &str = r"\s*[-+]?(?:\d+\.?\d*|\.\d+)";
/// Between regular expressions a point stands between digits.
const REAL_OF_REGEX: &str = r"\s*[-+]?\d+(?:\.\d+)?";
const BOOL: &str = r"\s*(?:(?i:true|false)|[-+]?\d+)";
const BOOL_OF_REGEX: &str = r"\s*(?i:true|false)";
/// Dashes say that the year comes first, slashes that it comes last.
const DATETIME: &str = concat!(
    r"\s*(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{1,4})",
    r"(?:[Tt\x20]\s*\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?",
    r"(?:[Zz]|[-+]\d{1,2}(?::\d{1,2})?)?"
);
/// After days there are seconds.
const TIMESPAN: &str = r"\s*-?(?:\d+\.\d{1,2}:\d{1,2}:\d{1,2}|\d{1,2}:\d{1,2}(?::\d{1,2})?)(?:\.\d*)?";
const GUID: &str = r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}";

/// Returns the shape of a type's values; `None` of a type that takes any text.
pub(super) fn shape_of(kql_type: KqlType, is_between_regexes: bool) -> Option<String> {
    let shape = match (kql_type, is_between_regexes) {
        (KqlType::Int | KqlType::Long, _) => INTEGER,
        (KqlType::Real | KqlType::Decimal, false) => REAL,
        (KqlType::Real | KqlType::Decimal, true) => REAL_OF_REGEX,
        (KqlType::Bool, false) => BOOL,
        (KqlType::Bool, true) => BOOL_OF_REGEX,
        (KqlType::DateTime, _) => DATETIME,
        (KqlType::TimeSpan, _) => TIMESPAN,
        // The braces are an alternative, so that a flag for the shortest match leaves none of them.
        (KqlType::Guid, _) => return Some(format!(r"\s*(?:\{{{GUID}\}}|{GUID})")),
        (KqlType::String | KqlType::Dynamic, _) => return None,
    };
    Some(shape.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kql_type: KqlType, is_between_regexes: bool, text: &str) -> Option<String> {
        let shape = shape_of(kql_type, is_between_regexes).unwrap();
        let found = regex::Regex::new(&format!("^v=({shape})")).unwrap();
        found.captures(text).map(|groups| groups[1].to_owned())
    }

    #[test]
    fn a_value_ends_where_its_type_does() {
        for (kql_type, text, plain, regex) in [
            (KqlType::Long, "v=  12abc", Some("  12"), Some("  12")),
            (KqlType::Long, "v=+ 12", None, None),
            (KqlType::Real, "v=1e3abc", Some("1"), Some("1")),
            (KqlType::Real, "v=1.", Some("1."), Some("1")),
            (KqlType::Real, "v=.5", Some(".5"), None),
            (KqlType::Bool, "v=TRUEx", Some("TRUE"), Some("TRUE")),
            (KqlType::Bool, "v=2x", Some("2"), None),
            (KqlType::Bool, "v=yes", None, None),
            (
                KqlType::DateTime,
                "v=2020-01-01T10:00:00Z rest",
                Some("2020-01-01T10:00:00Z"),
                Some("2020-01-01T10:00:00Z"),
            ),
            (KqlType::DateTime, "v=1/2/34 rest", Some("1/2/34"), Some("1/2/34")),
            (KqlType::DateTime, "v=20-01-01", None, None),
            (KqlType::TimeSpan, "v=00:01 rest", Some("00:01"), Some("00:01")),
            (KqlType::TimeSpan, "v=1d", None, None),
            (
                KqlType::Guid,
                "v={74be27de-1e4e-49d9-b579-fe0b331d3642} x",
                Some("{74be27de-1e4e-49d9-b579-fe0b331d3642}"),
                Some("{74be27de-1e4e-49d9-b579-fe0b331d3642}"),
            ),
        ] {
            assert_eq!(taken(kql_type, false, text).as_deref(), plain, "{text}");
            assert_eq!(taken(kql_type, true, text).as_deref(), regex, "{text} between regular expressions");
        }
    }
}

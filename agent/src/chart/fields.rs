//! Names of columns in Vega-Lite: as field paths, as strings of expressions, as titles.
//!
//! A field path takes `.` and `[ ]` for access and `\` for an escape. Vega-Lite 5 follows that in most places, but
//! not for quotes and backslashes, nor for brackets in a chart over time: such a column is first given another name.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How a column's values are read. Rows may come as JSON values or all as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// As they are.
    Plain,
    /// Numbers, also where they are written as text.
    Number,
    /// Instants.
    Date,
}

impl ReadAs {
    const ALL: [ReadAs; 3] = [ReadAs::Number, ReadAs::Date, ReadAs::Plain];

    /// Returns the text before and after `datum["..."]`.
    fn prefix_and_suffix(self) -> (&'static str, &'static str) {
        match self {
            ReadAs::Plain => ("", ""),
            ReadAs::Number => ("toNumber(", ")"),
            ReadAs::Date => ("toDate(", ")"),
        }
    }
}

/// A Vega expression of the subset: `toNumber(datum["name"])`, `toDate(datum["name"])` or `datum["name"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The column's name.
    pub column: String,
    /// How its values are read.
    pub read_as: ReadAs,
}

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.read_as.prefix_and_suffix();
        // A JSON string is one of Vega's, but for the two line ends that JSON lets stand.
        let name = serde_json::Value::from(self.column.as_str()).to_string();
        let name = name.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        write!(out, "{before}datum[{name}]{after}")
    }
}

impl Expression {
    /// Reads what [`fmt::Display`] writes.
    fn parse(text: &str) -> Option<Self> {
        ReadAs::ALL.into_iter().find_map(|read_as| {
            let (before, after) = read_as.prefix_and_suffix();
            let name = text.strip_prefix(before)?.strip_suffix(after)?.strip_prefix("datum[")?.strip_suffix(']')?;
            Some(Self { column: serde_json::from_str(name).ok()?, read_as })
        })
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("an expression beyond the subset: {text}")))
    }
}

/// Escapes a name as a field path.
pub fn field_path(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '\\' | '.' | '[' | ']' | '\'' | '"') {
            path.push('\\');
        }
        path.push(c);
    }
    path
}

/// Restores the name from a path of [`field_path`].
pub fn field_name(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    let mut escaped = false;
    for c in path.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            name.push(c);
            escaped = false;
        }
    }
    name
}

/// Returns the name itself where Vega-Lite can express it, else one that it can.
pub(super) fn expressible(name: &str, over_time: bool) -> String {
    let expressible: String = name.chars().map(|c| if is_unexpressible(c, over_time) { '_' } else { c }).collect();
    if expressible.trim().is_empty() { "column".to_owned() } else { expressible }
}

fn is_unexpressible(c: char, over_time: bool) -> bool {
    is_line_end(c) || matches!(c, '\\' | '\'' | '"') || (over_time && matches!(c, '[' | ']'))
}

/// Returns a text as a title. Vega-Lite writes titles into expressions and escapes neither backslashes nor line ends.
pub(super) fn title(text: &str) -> String {
    const MAX_TITLE_CHARS: usize = 200;
    let shown = text.chars().take(MAX_TITLE_CHARS).map(|c| match c {
        '\\' => '⧵',
        c if is_line_end(c) => ' ',
        c => c,
    });
    shown.collect()
}

fn is_line_end(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether every JavaScript object has a property of that name: neither rows nor tooltips can hold such a column.
pub(super) fn is_object_property(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    ];
    NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: [&str; 9] =
        ["plain", "a.b", "a[0]", "it's", "say \"hi\"", "back\\slash", "a\\.b", "", "a.b[c].d\\e\"f'g\u{2028}"];

    #[test]
    fn a_path_is_a_name_again() {
        assert_eq!(field_path("orders.amount[0]"), "orders\\.amount\\[0\\]");
        for name in HOSTILE {
            assert_eq!(field_name(&field_path(name)), name);
        }
    }

    #[test]
    fn an_expression_is_read_back() {
        for column in HOSTILE {
            for read_as in ReadAs::ALL {
                let expression = Expression { column: column.to_owned(), read_as };
                let written = serde_json::to_string(&expression).unwrap();
                assert_eq!(serde_json::from_str::<Expression>(&written).unwrap(), expression, "{written}");
            }
        }
        assert_eq!(
            Expression { column: "n".to_owned(), read_as: ReadAs::Number }.to_string(),
            "toNumber(datum[\"n\"])"
        );
        assert!(serde_json::from_str::<Expression>("\"alert(1)\"").is_err());
    }

    #[test]
    fn names_that_vega_lite_cannot_say_are_replaced() {
        assert_eq!(expressible("a.b[0]", false), "a.b[0]");
        assert_eq!(expressible("a.b[0]", true), "a.b_0_");
        assert_eq!(expressible("say \"hi\"\n", false), "say _hi__");
        assert_eq!(expressible("", false), "column");
        assert_eq!(title("a\\\"b\nc"), "a⧵\"b c");
    }
}

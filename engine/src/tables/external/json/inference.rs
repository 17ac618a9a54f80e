//! Infers the types of JSON values, over all records: what unifies to what.
//!
//! Integers widen to doubles where every one of them is one; numbers, words and truth values together are text; a list or an
//! object together with anything else is text that holds JSON. A member that some objects lack is null there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use serde_json::{Number, Value};

use super::values::special_number;

/// The members beyond which an inner object is one of entries, and not of columns.
const MOST_MEMBERS: usize = 200;
/// The largest integer up to which every one is a double.
const EXACT_DOUBLES: u64 = 1 << 53;

/// The type of some values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonType {
    Null,
    Boolean,
    /// Whether each is also a double.
    Integer {
        exact: bool,
    },
    Double,
    Text,
    List(Box<JsonType>),
    Object(Members),
    /// What has no one type: text that holds JSON.
    Mixed,
}

/// The members of objects, in the order in which they were seen first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Members {
    types: Vec<(String, JsonType)>,
    positions: HashMap<String, usize>,
}

impl Members {
    /// Adds the members of one more object.
    pub(super) fn add(&mut self, object: &serde_json::Map<String, Value>) {
        for (name, value) in object {
            self.merge_member(name, JsonType::of_value(value));
        }
    }

    fn merge_member(&mut self, name: &str, added: JsonType) {
        match self.positions.get(name).and_then(|at| self.types.get_mut(*at)) {
            Some((_, found)) => {
                let before = std::mem::replace(found, JsonType::Null);
                *found = before.merged(added);
            }
            None => {
                self.positions.insert(name.to_owned(), self.types.len());
                self.types.push((name.to_owned(), added));
            }
        }
    }

    /// Whether an inner object is text that holds JSON, as it is no struct: those have some members, not very many, and no
    /// two whose names differ by case only.
    fn are_of_text(&self) -> bool {
        let mut names = HashSet::new();
        let is_known = |(name, _): &(String, JsonType)| !names.insert(name.to_lowercase());
        self.types.is_empty() || self.types.len() > MOST_MEMBERS || self.types.iter().any(is_known)
    }

    /// Returns the members and their types.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &JsonType)> {
        self.types.iter().map(|(name, found)| (name.as_str(), found))
    }
}

impl JsonType {
    /// Returns the type of one value.
    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(number) => Self::of_number(number),
            Value::String(_) => JsonType::Text,
            Value::Array(items) => {
                let merged = items.iter().map(Self::of_value).fold(JsonType::Null, Self::merged);
                JsonType::List(Box::new(merged))
            }
            value if special_number(value).is_some() => JsonType::Double,
            Value::Object(object) => {
                let mut members = Members::default();
                members.add(object);
                JsonType::Object(members)
            }
        }
    }

    fn of_number(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => JsonType::Integer { exact: integer.unsigned_abs() <= EXACT_DOUBLES },
            // An integer beyond a bigint, which a double would change; those beyond 64 bits are texts already.
            None if number.is_u64() => JsonType::Text,
            None => JsonType::Double,
        }
    }

    /// Returns the type of values of both types.
    pub(super) fn merged(self, other: Self) -> Self {
        use JsonType::{Boolean, Double, Integer, List, Mixed, Null, Object, Text};
        match (self, other) {
            (Null, other) | (other, Null) => other,
            (Integer { exact: left }, Integer { exact: right }) => Integer { exact: left && right },
            (Integer { exact: true } | Double, Integer { exact: true } | Double) => Double,
            (Boolean, Boolean) => Boolean,
            (List(left), List(right)) => List(Box::new(left.merged(*right))),
            (Object(mut left), Object(right)) => {
                for (name, found) in right.types {
                    left.merge_member(&name, found);
                }
                Object(left)
            }
            (Mixed | List(_) | Object(_), _) | (_, Mixed | List(_) | Object(_)) => Mixed,
            (Boolean | Integer { .. } | Double | Text, Boolean | Integer { .. } | Double | Text) => Text,
        }
    }

    /// Whether a column of this type is text that holds lists or objects, as JSON.
    pub(super) fn is_json_text(&self) -> bool {
        matches!(self, JsonType::Mixed | JsonType::Object(_)) && self.data_type() == DataType::Utf8
    }

    /// Returns the type as a column has it.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            JsonType::Boolean => DataType::Boolean,
            JsonType::Integer { .. } => DataType::Int64,
            JsonType::Double => DataType::Float64,
            JsonType::Null | JsonType::Text | JsonType::Mixed => DataType::Utf8,
            JsonType::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(), true))),
            JsonType::Object(members) if members.are_of_text() => DataType::Utf8,
            JsonType::Object(members) => {
                let field = |(name, found): (&str, &JsonType)| Field::new(name, found.data_type(), true);
                DataType::Struct(members.iter().map(field).collect::<Fields>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> String {
        let parsed = values.iter().map(|value| crate::tables::external::json::values::value_of(value).unwrap());
        let merged = parsed.map(|value| JsonType::of_value(&value)).fold(JsonType::Null, JsonType::merged);
        crate::tables::external::reader_options::sql_type_name(&merged.data_type())
    }

    #[test]
    fn what_unifies_to_what() {
        let cases: [(&[&str], &str); 21] = [
            (&["1", "null", "-2"], "BIGINT"),
            (&["1", "2.5"], "DOUBLE"),
            (&["9007199254740993", "2.5"], "VARCHAR"),
            (&["99999999999999999999"], "VARCHAR"),
            (&["18446744073709551615"], "VARCHAR"),
            (&["-9223372036854775809", "0.5"], "VARCHAR"),
            (&["1e300"], "DOUBLE"),
            (&["1.5e22", "-2"], "DOUBLE"),
            (&["true", "false"], "BOOLEAN"),
            (&["true", "1"], "VARCHAR"),
            (&["\"x\"", "1"], "VARCHAR"),
            (&["null"], "VARCHAR"),
            (&["[1, 2.5]", "[]", "null"], "DOUBLE[]"),
            (&["[]"], "VARCHAR[]"),
            (&["[1]", "1"], "VARCHAR"),
            (&["{\"a\": 1}", "{\"b\": [true]}"], "STRUCT(a BIGINT, b BOOLEAN[])"),
            (&["{\"a\": 1}", "{\"a\": \"x\"}"], "STRUCT(a VARCHAR)"),
            (&["{\"a\": 1}", "\"x\""], "VARCHAR"),
            (&["{}"], "VARCHAR"),
            (&["{\"a\": 1}", "{\"A\": 2}"], "VARCHAR"),
            (&["[{\"a\": 1, \"A\": 2}]"], "VARCHAR[]"),
        ];
        for (values, expected) in cases {
            assert_eq!(inferred(values), expected, "{values:?}");
        }
    }
}

//! The text of a record as a value. An object that has a key twice is refused, since one of the two values would be lost;
//! `NaN`, `Infinity` and numbers beyond the range of doubles, which writers of JSON produce and its grammar lacks, are
//! doubles.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// The key of the object that stands for a double that JSON has no number for.
const SPECIAL: &str = "\u{1}double";

/// Reads a text. Errors: serde's, with the line within the text.
pub(super) fn value_of(text: &str) -> Result<Value, serde_json::Error> {
    // An integer beyond 64 bits would become the nearest double: its digits are kept as a text.
    let exact = if has_long_digits(text) { with_special_numbers(text) } else { None };
    let text = exact.as_deref().unwrap_or(text);
    match serde_json::from_str::<UniqueValue>(text) {
        Ok(value) => Ok(value.0),
        Err(error) => match with_special_numbers(text) {
            Some(text) => serde_json::from_str::<UniqueValue>(&text).map(|value| value.0),
            None => Err(error),
        },
    }
}

/// Returns the double that a value stands for, where JSON has no number for it: `NaN`, `Infinity` or `-Infinity`.
pub(super) fn special_number(value: &Value) -> Option<&str> {
    match value {
        Value::Object(members) if members.len() == 1 => members.get(SPECIAL).and_then(Value::as_str),
        _ => None,
    }
}

/// Returns a value with the names of such doubles in their places.
pub(super) fn without_special_numbers(value: Value) -> Value {
    match value {
        value if special_number(&value).is_some() => Value::from(special_number(&value)),
        Value::Array(items) => Value::Array(items.into_iter().map(without_special_numbers).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| (key, without_special_numbers(value))).collect())
        }
        other => other,
    }
}

/// The digits from which on an integer may be one beyond 64 bits.
const LONG_DIGITS: usize = 19;

fn has_long_digits(text: &str) -> bool {
    let mut run = 0;
    text.bytes().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run >= LONG_DIGITS
    })
}

/// Returns whether a number is an integer that neither a signed nor an unsigned one of 64 bits holds.
fn is_long_integer(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    digits.len() >= LONG_DIGITS
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && token.parse::<u64>().is_err()
        && token.parse::<i64>().is_err()
}

/// Returns a text with such doubles as objects, and with integers beyond 64 bits as strings; `None` where there are none.
fn with_special_numbers(text: &str) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    let mut found = false;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            letter if letter.is_ascii_alphanumeric() || letter == '-' => {
                let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '+' | '.');
                rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())
            }
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match special_name(token) {
            Some(name) => {
                found = true;
                written.push_str(&Value::Object(Map::from_iter([(SPECIAL.to_owned(), name.into())])).to_string());
            }
            None if is_long_integer(token) => {
                found = true;
                written.push_str(&Value::from(token).to_string());
            }
            None => written.push_str(token),
        }
        rest = after;
    }
    found.then_some(written)
}

fn special_name(token: &str) -> Option<&'static str> {
    match token {
        "NaN" => Some("NaN"),
        "Infinity" => Some("Infinity"),
        "-Infinity" => Some("-Infinity"),
        _ if !token.trim_start_matches('-').starts_with(|letter: char| letter.is_ascii_digit()) => None,
        number => match number.parse::<f64>() {
            Ok(f64::INFINITY) => Some("Infinity"),
            Ok(f64::NEG_INFINITY) => Some("-Infinity"),
            _ => None,
        },
    }
}

/// Returns the bytes of the string that a text begins with.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A value of whose objects none has a key twice.
struct UniqueValue(Value);

impl<'de> Deserialize<'de> for UniqueValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(UniqueValue)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(UniqueValue(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((key, UniqueValue(value))) = access.next_entry::<String, UniqueValue>()? {
            match members.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(taken) => {
                    let message = format_args!("the key `{}` stands twice in an object", taken.key());
                    return Err(de::Error::custom(message));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_doubles() {
        let value = value_of(r#"{"a": NaN, "b": [-Infinity, 1E400], "NaN": "Infinity \" NaN"}"#).unwrap();
        let plain = without_special_numbers(value);
        assert_eq!(plain.to_string(), r#"{"a":"NaN","b":["-Infinity","Infinity"],"NaN":"Infinity \" NaN"}"#);
        assert!(value_of("{\"a\": nan}").is_err() && value_of("{\"a\": NaN1}").is_err());
    }

    #[test]
    fn a_key_stands_once_in_an_object() {
        let error = value_of(r#"[{"a": {"b": 1, "b": 2}}]"#).unwrap_err().to_string();
        assert!(error.contains("the key `b` stands twice"), "{error}");
        assert_eq!(
            value_of(r#"[{"a": 1}, {"a": 2.5, "b": -3}]"#).unwrap().to_string(),
            r#"[{"a":1},{"a":2.5,"b":-3}]"#
        );
    }
}

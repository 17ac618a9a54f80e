//! Bodies of requests as JSON. A name that stands twice in an object is refused: one of its two values would be dropped in
//! silence. Half a character, where a client cut a text (`\ud83d` without its `\ude00`), is read as a lost one: a conversation
//! that has it in its history could not go on otherwise.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::half_characters::replaced;

/// The longest name that a message repeats, in characters.
const MAX_REPEATED: usize = 100;

/// Parses a body. Errors: what is not JSON, or has a name twice in one object.
pub fn parse_json(body: &[u8]) -> serde_json::Result<Value> {
    parse_exact_json(body).or_else(|error| match replaced(body) {
        Some(without_halves) => parse_exact_json(&without_halves),
        None => Err(error),
    })
}

/// Parses a body in which nothing may be lost, as it is where statements are sent. Errors: as [`parse_json`], and half a character.
pub fn parse_exact_json(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body).map(|UniqueNames(value)| value)
}

/// A value in whose objects each name stands once.
struct UniqueNames(Value);

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueNamesVisitor).map(Self)
    }
}

struct UniqueNamesVisitor;

impl<'de> Visitor<'de> for UniqueNamesVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::from(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueNames(entry)) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if fields.contains_key(&name) {
                let name: String = name.chars().take(MAX_REPEATED).collect();
                return Err(A::Error::custom(format!("the name `{name}` stands twice in one object")));
            }
            let UniqueNames(value) = entries.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_serde_json_reads_it() {
        for text in [
            r#"{"b": 1, "a": [-1, 2.5, 1e300, true, null, "é\u0000"], "c": {"b": {}}}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "10000000000000000000000000000000",
            "[]",
            r#""text""#,
            " null ",
            "",
            "{",
            "[1] 2",
            r#"{"a": 1,}"#,
            "nul",
        ] {
            let expected: serde_json::Result<Value> = serde_json::from_str(text);
            match (parse_json(text.as_bytes()), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read.to_string(), expected.to_string(), "{text}"),
                (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected.to_string(), "{text}"),
                (read, expected) => panic!("{text}: {read:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn half_a_character_is_a_lost_one() {
        for (text, read) in [(r#"["\ud83d"]"#, "\u{fffd}"), (r#"["\ude00 \ud83d\ude00"]"#, "\u{fffd} 😀")] {
            assert_eq!(parse_json(text.as_bytes()).unwrap()[0], read, "{text}");
        }
        assert!(parse_json(br#"{"\ud83d": 1, "\ud83e": 2}"#).is_err(), "a name that stands twice, as it is read");
        assert!(parse_json(br#"["\ud83d""#).is_err());
        assert!(parse_exact_json(br#"["\ud83d"]"#).is_err());
    }

    #[test]
    fn a_name_stands_once_in_an_object() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"b": [{"a": 1, "\u0061": 2}]}"#] {
            let error = parse_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("the name `a` stands twice in one object at line 1"), "{error}");
        }
        assert!(parse_json(br#"{"a": {"a": 1}, "b": {"a": 1}}"#).is_ok());
    }
}

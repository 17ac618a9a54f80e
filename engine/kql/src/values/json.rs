//! Dynamic values as compact JSON text. Members and elements are found by walking the text without building a tree,
//! which is sound because all dynamic text inside a plan was written by this module.

use std::borrow::Cow;

use serde_json::Value;

use super::real::with_greatest_digits;

/// Returns any text as a dynamic value: JSON as itself, anything else as a string, an empty text as null.
pub(crate) fn normalize_json(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(value) => value_to_json(&value),
        Err(_) => value_to_json(&Value::String(text.to_owned())),
    }
}

/// Returns the value of a dynamic text.
pub(crate) fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Returns the dynamic text of a value; `None` for null.
pub(crate) fn value_to_json(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// Returns the string form of a dynamic text: a string without quotes, anything else as it is.
pub(crate) fn json_to_string(json: &str) -> Cow<'_, str> {
    match json.as_bytes() {
        [b'"', .., b'"'] if !json.contains('\\') => Cow::Borrowed(&json[1..json.len() - 1]),
        [b'"', ..] => Cow::Owned(serde_json::from_str(json).unwrap_or_default()),
        _ => Cow::Borrowed(json),
    }
}

/// Returns dynamic text with its reals as Kusto's engine writes them in texts.
pub(crate) fn with_greatest_reals(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut written = String::with_capacity(json.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = skip_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_over = |byte: &u8| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = bytes[at..].iter().position(is_over).map_or(bytes.len(), |length| at + length);
                let number = &json[at..end];
                if number.contains(['.', 'e', 'E']) {
                    written.push_str(&json[copied..at]);
                    written.push_str(&with_greatest_digits(number.to_owned()));
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    written.push_str(&json[copied..]);
    written
}

/// Returns the string form of a value.
pub(crate) fn value_to_string(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns about how many bytes a value takes with all that is nested in it.
pub(crate) fn tree_bytes(value: &Value) -> usize {
    let nested: usize = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(tree_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| size_of::<String>() + name.len() + tree_bytes(member)).sum()
        }
    };
    size_of::<Value>() + nested
}

/// Whether a dynamic text is JSON's null, which only nested values are.
fn is_null(json: &str) -> bool {
    json == "null"
}

/// Returns what `gettype` says.
pub(crate) fn json_type_name(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "dictionary",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'-' | b'0'..=b'9') if json.contains(['.', 'e', 'E']) => "double",
        Some(b'-' | b'0'..=b'9') => "long",
        _ => "null",
    }
}

/// Returns the member of that name of an object.
pub(crate) fn json_member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let mut found = None;
    let bytes = json.as_bytes();
    let mut at = 1;
    if bytes.first() != Some(&b'{') {
        return None;
    }
    while bytes.get(at) == Some(&b'"') {
        let key_end = skip(bytes, at);
        let value_end = skip(bytes, key_end + 1);
        if json_to_string(json.get(at..key_end)?) == name {
            // The last of several members counts, as it does when a bag is built.
            found = json.get(key_end + 1..value_end);
        }
        at = value_end + 1;
    }
    found.filter(|value| !is_null(value))
}

/// Returns the element at that index of an array, counted from the end if it is negative.
pub(crate) fn json_element(json: &str, index: i64) -> Option<&str> {
    let bytes = json.as_bytes();
    if bytes.first() != Some(&b'[') || json == "[]" {
        return None;
    }
    let index = if index < 0 { index + elements(bytes).count() as i64 } else { index };
    let (start, end) = elements(bytes).nth(usize::try_from(index).ok()?)?;
    json.get(start..end).filter(|value| !is_null(value))
}

/// Returns the byte ranges of the elements of an array that is not empty.
fn elements(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at + 1 >= bytes.len() || bytes.get(at) == Some(&b']') {
            return None;
        }
        let start = at + 1;
        let end = skip(bytes, start);
        at = end;
        Some((start, end))
    })
}

/// Returns the end of the value that starts at `at`. Always advances, whatever the text is.
fn skip(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut end = at;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => end = skip_string(bytes, end),
            b'{' | b'[' => {
                depth += 1;
                end += 1;
            }
            b'}' | b']' | b',' | b':' if depth == 0 => break,
            b'}' | b']' => {
                depth -= 1;
                end += 1;
            }
            _ => end += 1,
        }
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            break;
        }
    }
    end.max(at + 1)
}

fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_found_in_the_text() {
        let json = r#"{"a":1,"b":{"a":"x,}\"]","c":[1,[2,3],"é"]},"n":null,"t\t":true}"#;
        assert_eq!(json_member(json, "a"), Some("1"));
        assert_eq!(json_member(json, "n"), None);
        assert_eq!(json_member(json, "t\t"), Some("true"));
        assert_eq!(json_member(json, "z"), None);
        let b = json_member(json, "b").unwrap();
        assert_eq!(json_to_string(json_member(b, "a").unwrap()), "x,}\"]");
        let c = json_member(b, "c").unwrap();
        assert_eq!(
            [0, 1, 2, 3, -1, -3, -4].map(|at| json_element(c, at)),
            [Some("1"), Some("[2,3]"), Some("\"é\""), None, Some("\"é\""), Some("1"), None]
        );
        assert_eq!(json_element("[]", 0), None);
        assert_eq!(json_member("[1]", "a"), None);
        assert_eq!(json_member("{\"a", "a"), None);
    }

    #[test]
    fn any_text_is_a_dynamic_value() {
        assert_eq!(normalize_json(r#" {"a" : [1, 2.0]} "#).as_deref(), Some(r#"{"a":[1,2.0]}"#));
        assert_eq!(normalize_json("not json").as_deref(), Some("\"not json\""));
        assert_eq!(normalize_json("null"), None);
        assert_eq!(normalize_json(""), None);
    }
}

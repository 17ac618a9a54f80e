//! Whether a message has the shape of its example: every field, of the same type, at every depth. Strings that hold
//! JSON
//! are looked into. A message may have more fields, and its lists other entries, of which one must fit each example's.

use serde_json::Value;

/// Fails unless `real` differs from `example` at the places of `deliberate` and nowhere else, each with why, in their order.
#[track_caller]
pub(super) fn assert_shape(example: &Value, real: &Value, deliberate: &[(&str, &str)]) {
    let mut found = Vec::new();
    compare(example, real, "", &mut found);
    found.sort();
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    let expected: Vec<&str> = deliberate.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, expected, "{found:#?}\nexample: {example:#}\nreal: {real:#}");
}

fn compare(example: &Value, real: &Value, place: &str, found: &mut Vec<(String, String)>) {
    let mut differs = |why: &str| found.push((place.to_owned(), why.to_owned()));
    match (example, real) {
        // An example's null says nothing of the type.
        (Value::Null, _) | (Value::Bool(_), Value::Bool(_)) => {}
        (Value::Number(example), Value::Number(real)) => {
            let is_whole = |number: &serde_json::Number| number.is_u64() || number.is_i64();
            if is_whole(example) && !is_whole(real) {
                differs("a whole number");
            }
        }
        (Value::String(example), Value::String(real)) => {
            if let Some(inner) = document(example) {
                match document(real) {
                    Some(real) => compare(&inner, &real, place, found),
                    None => differs("a text of JSON"),
                }
            }
        }
        (Value::Object(fields), Value::Object(real)) => {
            for (name, field) in fields {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                match real.get(name) {
                    Some(value) => compare(field, value, &place, found),
                    None => found.push((place, "missing".to_owned())),
                }
            }
        }
        (Value::Array(entries), Value::Array(real)) => {
            let place = format!("{place}[]");
            let mut closest: Option<Vec<(String, String)>> = None;
            for entry in entries {
                let differences = real.iter().map(|value| {
                    let mut differences = Vec::new();
                    compare(entry, value, &place, &mut differences);
                    differences
                });
                let fewest = differences.min_by_key(Vec::len);
                let fewest = fewest.unwrap_or_else(|| vec![(place.clone(), "no entry".to_owned())]);
                if closest.as_ref().is_none_or(|closest| closest.len() < fewest.len()) {
                    closest = Some(fewest);
                }
            }
            // Of the entry that fits worst: the others mostly differ in the same way.
            found.extend(closest.into_iter().flatten());
        }
        (example, _) => differs(match example {
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            _ => "an object",
        }),
    }
}

/// Parses a string that is a JSON object or list.
fn document(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

#[test]
fn differences_are_found_at_any_depth() {
    use serde_json::json;
    let example = json!({ "a": [{ "b": 1, "c": "{\"d\": true}" }], "e": null, "f": 0.5 });
    assert_shape(&example, &json!({ "a": [{}, { "b": 2, "c": "{\"d\": false}" }], "e": 1, "f": 2, "g": 1 }), &[]);
    let real = json!({ "a": [{ "b": 1.5, "c": "{}" }], "f": null });
    let places = [("a[].b", "not whole"), ("a[].c.d", "missing"), ("e", "missing"), ("f", "null")];
    assert_shape(&example, &real, &places);
    assert_shape(&json!({ "a": [1] }), &json!({ "a": [] }), &[("a[]", "no entry")]);
}

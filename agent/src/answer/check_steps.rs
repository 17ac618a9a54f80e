//! How many steps the check of a document takes. A schema whose parts refer to others several times is small, and has as
//! many ways through it as these multiply to; the library that checks a document takes each of them.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// What stands for the name of a member, which has no parts either.
static NAME: Value = Value::Null;

/// Returns how many steps a check of `document` against `schema` takes at most. `None` where these are more than `most`,
/// and where a reference is not found.
pub(super) fn check_steps(schema: &Value, document: &Value, most: usize) -> Option<usize> {
    let parts = NamedParts::of(schema);
    let mut walk = CheckWalk { open: vec![(schema, document)], steps: 0, most };
    while let Some((part, value)) = walk.open.pop() {
        let Value::Object(keywords) = part else { continue };
        for (keyword, operand) in keywords {
            walk.take_step()?;
            walk.apply(keyword, operand, value, &parts)?;
        }
    }
    Some(walk.steps)
}

/// Pairs of a part of a schema and the part of a document that it is applied to.
struct CheckWalk<'a> {
    open: Vec<(&'a Value, &'a Value)>,
    steps: usize,
    most: usize,
}

impl<'a> CheckWalk<'a> {
    fn take_step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= self.most).then_some(())
    }

    fn push(&mut self, schema: &'a Value, value: &'a Value) -> Option<()> {
        self.take_step()?;
        self.open.push((schema, value));
        Some(())
    }

    /// Adds what a keyword applies to a value and to its parts.
    fn apply(&mut self, keyword: &str, operand: &'a Value, value: &'a Value, parts: &NamedParts<'a>) -> Option<()> {
        match (keyword, operand, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => match parts.find(reference) {
                Some(part) => self.push(part, value),
                // The schemas of schemas, which the library has: their steps grow with the document alone.
                None if reference.contains("//json-schema.org/") => Some(()),
                None => None,
            },
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                schemas.iter().try_for_each(|schema| self.push(schema, value))
            }
            ("not" | "if" | "then" | "else", schema, _) => self.push(schema, value),
            ("dependentSchemas" | "dependencies", Value::Object(schemas), _) => {
                schemas.values().try_for_each(|schema| self.push(schema, value))
            }
            ("properties", Value::Object(schemas), Value::Object(members)) => {
                let mut named = schemas.iter().filter_map(|(name, schema)| Some((schema, members.get(name)?)));
                named.try_for_each(|(schema, member)| self.push(schema, member))
            }
            ("patternProperties", Value::Object(schemas), Value::Object(members)) => schemas
                .values()
                .try_for_each(|schema| members.values().try_for_each(|member| self.push(schema, member))),
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(members)) => {
                members.values().try_for_each(|member| self.push(schema, member))
            }
            ("propertyNames", schema, Value::Object(members)) => {
                members.keys().try_for_each(|_| self.push(schema, &NAME))
            }
            ("prefixItems" | "items", Value::Array(schemas), Value::Array(entries)) => {
                schemas.iter().zip(entries).try_for_each(|(schema, entry)| self.push(schema, entry))
            }
            ("items" | "additionalItems" | "contains" | "unevaluatedItems", schema, Value::Array(entries)) => {
                entries.iter().try_for_each(|entry| self.push(schema, entry))
            }
            _ => Some(()),
        }
    }
}

/// The parts of a schema that references name.
struct NamedParts<'a> {
    root: &'a Value,
    /// By `$id` and by anchor.
    named: HashMap<&'a str, &'a Value>,
    /// The parts with an `$id`, from which references in them are read.
    resources: Vec<&'a Value>,
}

impl<'a> NamedParts<'a> {
    fn of(root: &'a Value) -> Self {
        let mut parts = Self { root, named: HashMap::new(), resources: Vec::new() };
        let mut open = vec![root];
        while let Some(part) = open.pop() {
            match part {
                Value::Object(fields) => {
                    for name in ["$id", "$anchor", "$dynamicAnchor"] {
                        if let Some(Value::String(text)) = fields.get(name) {
                            // Older drafts have anchors as `#name`, and addresses that end with `#`.
                            parts.named.insert(text.trim_matches('#'), part);
                        }
                    }
                    if fields.contains_key("$id") {
                        parts.resources.push(part);
                    }
                    open.extend(fields.values());
                }
                Value::Array(entries) => open.extend(entries),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        parts
    }

    fn find(&self, reference: &str) -> Option<&'a Value> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let from = if resource.is_empty() { self.root } else { self.resource(resource)? };
        // Names of generated types are encoded, as in `#/definitions/Partial%3CItem%3E`.
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        match fragment.as_ref() {
            "" => Some(from),
            path if path.starts_with('/') => {
                from.pointer(path).or_else(|| self.resources.iter().find_map(|part| part.pointer(path)))
            }
            anchor => self.named.get(anchor).copied(),
        }
    }

    /// Returns the part of that address, which may be relative to that of the whole.
    fn resource(&self, address: &str) -> Option<&'a Value> {
        let relative = || self.named.iter().find(|(id, _)| id.ends_with(address)).map(|(_, part)| part);
        self.named.get(address).or_else(relative).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_those_of_all_ways() {
        let tree = json!({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let mut document = json!(1);
        let mut steps = Vec::new();
        for _ in 0..4 {
            document = json!({"a": document});
            steps.push(check_steps(&tree, &document, 1_000).unwrap());
        }
        assert_eq!(steps, [14, 38, 86, 182]);
        assert_eq!(check_steps(&tree, &document, steps[3] - 1), None);
        let entries = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(check_steps(&entries, &json!([1, 2, 3]), 100), Some(8));
    }

    #[test]
    fn references_are_found_by_path_name_and_address() {
        let schema = json!({
            "$id": "https://a.example/whole.json#",
            "$defs": {"a/b": {"$anchor": "here"}, "A<B>": {"$id": "#there"}, "c": {"$id": "https://a.example/c", "$defs": {"d": {"type": "null"}}}},
        });
        let parts = NamedParts::of(&schema);
        for reference in [
            "#",
            "#/$defs/a~1b",
            "#/$defs/A%3CB%3E",
            "#here",
            "#there",
            "whole.json#/$defs/c",
            "https://a.example/c",
            "https://a.example/c#/$defs/d",
            "#/$defs/d",
        ] {
            assert!(parts.find(reference).is_some(), "{reference}");
        }
        assert!(parts.find("#nowhere").is_none() && parts.find("https://a.example/e").is_none());
        assert_eq!(check_steps(&json!({"$ref": "#"}), &json!(1), 100), None, "it has no end");
        let of_schemas = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
        assert_eq!(check_steps(&of_schemas, &json!({}), 100), Some(1));
    }
}

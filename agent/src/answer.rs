//! Answers that must be JSON of a given schema: checks them, and takes them out of the fence that a model adds.

mod check_steps;

use jsonschema::{PatternOptions, Validator};
use regex::RegexBuilder;
use serde_json::Value;

use self::check_steps::check_steps;
use crate::error::{AgentError, Result};
use crate::request::AnswerSchema;

/// Problems reported to the model and to the client.
const MAX_PROBLEMS: usize = 5;
/// Characters of one problem, which may quote the whole document.
const PROBLEM_CHARS: usize = 300;
/// Bytes of a compiled pattern: to compile more takes seconds.
const PATTERN_BYTES: usize = 1 << 20;
/// Members of a schema and of its parts: to compile many takes seconds.
const MAX_MEMBERS: usize = 20_000;
/// References of a schema to its parts: the time to compile them grows with their square.
const MAX_REFERENCES: usize = 1_000;
/// Steps of a check: tens of nanoseconds each.
const MAX_STEPS: usize = 2_000_000;
/// Steps of a check that says what is wrong: each may find a problem, which takes tens of microseconds.
const MAX_TOLD_STEPS: usize = 100_000;
/// How often a pattern may step back in a text.
const PATTERN_STEPS: usize = 100_000;

/// The schema of an answer, compiled.
pub(crate) struct StructuredAnswer {
    schema: Value,
    validator: Validator,
}

impl StructuredAnswer {
    /// Compiles the schema. Errors: `invalid_request` for anything but a JSON schema, or one that refers elsewhere.
    pub(crate) fn new(answer: &AnswerSchema) -> Result<Self> {
        let (members, references) = parts_of(&answer.schema);
        for (count, most, what) in [(members, MAX_MEMBERS, "members"), (references, MAX_REFERENCES, "references")] {
            if count > most {
                let message = format!("the schema `{}` has {count} {what}; at most {most} are read", answer.name);
                return Err(AgentError::InvalidRequest { message });
            }
        }
        if let Some(pattern) = large_pattern(&answer.schema) {
            let shown: String = pattern.chars().take(PROBLEM_CHARS).collect();
            let message =
                format!("the pattern `{shown}` of the schema `{}` is too large; repeat less in it", answer.name);
            return Err(AgentError::InvalidRequest { message });
        }
        let patterns = PatternOptions::fancy_regex().size_limit(PATTERN_BYTES).backtrack_limit(PATTERN_STEPS);
        let compiled = jsonschema::options().with_pattern_options(patterns).build(&answer.schema);
        let validator = compiled.map_err(|error| AgentError::InvalidRequest {
            message: format!("the schema `{}` is not a JSON schema: {error}", answer.name),
        })?;
        Ok(Self { schema: answer.schema.clone(), validator })
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns the document without what a model puts around it, or what is wrong with it.
    pub(crate) fn check(&self, text: &str) -> std::result::Result<String, String> {
        let document = without_fence(text);
        let value: Value = serde_json::from_str(document).map_err(|error| format!("it is not JSON: {error}"))?;
        match self.misfit(&value) {
            Some(problems) => Err(problems),
            None => Ok(document.to_owned()),
        }
    }

    /// Returns what of a value does not fit the schema. A check that would take too long is not done: of a schema whose
    /// parts refer to others, and they to others, all ways through them are tried.
    pub(crate) fn misfit(&self, value: &Value) -> Option<String> {
        let Some(steps) = check_steps(&self.schema, value, MAX_STEPS) else {
            return Some("it cannot be checked: its schema refers to its own parts in too many ways".to_owned());
        };
        if self.validator.is_valid(value) {
            return None;
        }
        if steps > MAX_TOLD_STEPS {
            return Some("it does not fit the schema".to_owned());
        }
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MAX_PROBLEMS)
            .map(|error| {
                let problem: String = error.to_string().chars().take(PROBLEM_CHARS).collect();
                format!("at `{}`: {problem}", error.instance_path())
            })
            .collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }
}

/// Returns how many members a schema and its parts have, and how many of them refer to another part.
fn parts_of(schema: &Value) -> (usize, usize) {
    let (mut members, mut references) = (0, 0);
    let mut open = vec![schema];
    while let Some(part) = open.pop() {
        match part {
            Value::Object(fields) => {
                members += fields.len();
                let is_reference = |name: &&String| matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
                references += fields.keys().filter(is_reference).count();
                open.extend(fields.values());
            }
            Value::Array(entries) => open.extend(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    (members, references)
}

/// Returns a pattern of a schema that would be larger than [`PATTERN_BYTES`]: the check of the schema itself compiles it without a
/// bound.
fn large_pattern(schema: &Value) -> Option<&str> {
    let is_large = |pattern: &str| {
        // What looks around is no larger than a group, which this engine can measure.
        let looks = ["(?=", "(?!", "(?<=", "(?<!", "(?>"];
        let plain = looks.iter().fold(pattern.to_owned(), |plain, look| plain.replace(look, "(?:"));
        let compiled = RegexBuilder::new(&plain).size_limit(PATTERN_BYTES).build();
        matches!(compiled, Err(regex::Error::CompiledTooBig(_)))
    };
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, member)| match (name.as_str(), member) {
            ("pattern", Value::String(pattern)) if is_large(pattern) => Some(pattern.as_str()),
            ("patternProperties", Value::Object(patterns)) => {
                let large = patterns.keys().map(String::as_str).find(|pattern| is_large(pattern));
                large.or_else(|| large_pattern(member))
            }
            _ => large_pattern(member),
        }),
        Value::Array(items) => items.iter().find_map(large_pattern),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(fenced) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else { return text };
    fenced.split_once('\n').map_or(fenced, |(_, document)| document).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_taken_out_of_its_fence_and_checked() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let answer = StructuredAnswer::new(&AnswerSchema { name: "count".to_owned(), schema }).unwrap();
        assert_eq!(answer.check("```json\n{\"n\": 3}\n```").unwrap(), "{\"n\": 3}");
        assert!(answer.check("{\"n\": \"three\"}").unwrap_err().contains("/n"));
        assert!(answer.check("three").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn patterns_are_bounded() {
        let refused = |schema| StructuredAnswer::new(&AnswerSchema { name: "x".to_owned(), schema }).err();
        let large = "((a{1,100}){1,100}){1,100}";
        for schema in [
            json!({"type": "string", "pattern": large}),
            json!({"properties": {"a": {"items": [{"pattern": large}]}}}),
            json!({"patternProperties": {large: {}}}),
            json!({"type": "string", "pattern": format!("(?=a){large}")}),
        ] {
            let error = refused(schema).unwrap();
            assert_eq!(error.code(), "invalid_request");
            assert!(error.to_string().contains("is too large"), "{error}");
        }
        assert!(refused(json!({"type": "string", "pattern": "^(?=a)[a-z]{2,40}$"})).is_none());
        // A property may have the name.
        assert!(refused(json!({"properties": {"pattern": {"type": "string"}}})).is_none());
    }

    /// A schema of `depth` parts, each of which refers twice to the next one.
    fn doubled(depth: usize) -> AnswerSchema {
        let reference = |part: usize| json!({"$ref": format!("#/$defs/p{part}")});
        let part = |at: usize| (format!("p{at}"), json!({"anyOf": [reference(at + 1), reference(at + 1)]}));
        let mut parts: serde_json::Map<String, Value> = (0..depth).map(part).collect();
        parts.insert(format!("p{depth}"), json!({"type": "object"}));
        AnswerSchema { name: "x".to_owned(), schema: json!({"$ref": "#/$defs/p0", "$defs": parts}) }
    }

    #[test]
    fn checks_are_bounded() {
        let answer = |depth: usize| StructuredAnswer::new(&doubled(depth)).unwrap();
        assert!(answer(3).check("7").unwrap_err().contains("at ``"));
        assert_eq!(answer(3).check("{}").unwrap(), "{}");
        assert_eq!(answer(15).check("7").unwrap_err(), "it does not fit the schema");
        assert!(answer(60).check("7").unwrap_err().contains("too many ways"));
        let many = json!({"allOf": vec![json!({"$ref": "#"}); MAX_REFERENCES + 1]});
        let members: serde_json::Map<String, Value> = (0..=MAX_MEMBERS).map(|n| (format!("m{n}"), json!({}))).collect();
        for schema in [many, json!({"properties": members})] {
            let refused = StructuredAnswer::new(&AnswerSchema { name: "x".to_owned(), schema }).err().unwrap();
            assert!(refused.to_string().contains("at most"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let schema = json!({"type": "nothing"});
        assert_eq!(
            StructuredAnswer::new(&AnswerSchema { name: "x".to_owned(), schema }).err().unwrap().code(),
            "invalid_request"
        );
    }
}

//! Answers that must be JSON of a given schema: checks them, and takes them out of the fence that a model adds.

use jsonschema::Validator;
use serde_json::Value;

use crate::error::{AgentError, Result};
use crate::request::AnswerSchema;

/// Problems reported to the model and to the client.
const MAX_PROBLEMS: usize = 5;
/// Characters of one problem, which may quote the whole document.
const PROBLEM_CHARS: usize = 300;

/// The schema of an answer, compiled.
pub(crate) struct StructuredAnswer {
    schema: Value,
    validator: Validator,
}

impl StructuredAnswer {
    /// Compiles the schema. Errors: `invalid_request` for anything but a JSON schema, or one that refers elsewhere.
    pub(crate) fn new(answer: &AnswerSchema) -> Result<Self> {
        let validator = jsonschema::validator_for(&answer.schema).map_err(|error| AgentError::InvalidRequest {
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
        let problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_PROBLEMS)
            .map(|error| {
                let problem: String = error.to_string().chars().take(PROBLEM_CHARS).collect();
                format!("at `{}`: {problem}", error.instance_path())
            })
            .collect();
        if problems.is_empty() { Ok(document.to_owned()) } else { Err(problems.join("; ")) }
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
    fn what_is_no_schema_is_refused() {
        let schema = json!({"type": "nothing"});
        assert_eq!(
            StructuredAnswer::new(&AnswerSchema { name: "x".to_owned(), schema }).err().unwrap().code(),
            "invalid_request"
        );
    }
}

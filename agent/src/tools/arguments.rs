//! Reads the arguments of a call: lenient in form (numbers as text, an alias, a JSON object in a string), exact in its
//! errors. All problems are reported at once, with what the tool takes.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ToolError;

/// Returns the arguments as an object, however the model wrote them.
pub(crate) fn arguments_object(arguments: &Value) -> Result<Map<String, Value>, ToolError> {
    match arguments {
        Value::Object(object) => Ok(object.clone()),
        Value::Null => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(ToolError::new("invalid_arguments", "the arguments must be a JSON object, not a string")),
        },
        _ => Err(ToolError::new("invalid_arguments", "the arguments must be a JSON object")),
    }
}

/// Reads arguments and collects what is wrong with them.
pub(super) struct ToolArguments<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<String>,
    taken: Vec<String>,
}

impl<'a> ToolArguments<'a> {
    pub(super) fn new(object: &'a Map<String, Value>) -> Self {
        Self { object, problems: Vec::new(), taken: Vec::new() }
    }

    /// Reads a required, non-empty string; `""` after a problem.
    pub(super) fn required(&mut self, name: &str, aliases: &[&str]) -> String {
        self.taken.push(format!("{name} (string, required)"));
        match self.get(name, aliases) {
            Some(Value::String(text)) if !text.trim().is_empty() => text.trim().to_owned(),
            Some(Value::String(_)) => self.problem(format!("`{name}` is empty")),
            Some(other) => self.problem(format!("`{name}` must be a string, not {other}")),
            None => self.problem(format!("`{name}` is missing")),
        }
    }

    /// Reads an optional string; an empty one counts as absent.
    pub(super) fn optional(&mut self, name: &str) -> Option<String> {
        self.taken.push(format!("{name} (string)"));
        match self.get(name, &[]) {
            None => None,
            Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Some(other) => {
                self.problem(format!("`{name}` must be a string, not {other}"));
                None
            }
        }
    }

    /// Reads one of these words; the first where it is absent.
    pub(super) fn one_of(&mut self, name: &str, words: &[&'static str]) -> &'static str {
        let first = words.first().copied().unwrap_or_default();
        self.taken.push(format!("{name} ({}; default {first})", words.join(", ")));
        let given = match self.get(name, &[]) {
            None => return first,
            Some(Value::String(text)) => text.trim().to_ascii_lowercase(),
            Some(other) => other.to_string(),
        };
        words.iter().find(|word| **word == given).copied().unwrap_or_else(|| {
            self.problem(format!("`{name}` must be one of {}, not {given}", words.join(", ")));
            first
        })
    }

    /// Reads a required list of objects, also as JSON text.
    pub(super) fn objects(&mut self, name: &str) -> Vec<Value> {
        self.taken.push(format!("{name} (array of objects, required)"));
        let read = match self.get(name, &[]) {
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(value) => Some(value.clone()),
            None => None,
        };
        match read {
            Some(Value::Array(objects)) if objects.iter().all(Value::is_object) => objects,
            _ => {
                self.problem(format!("`{name}` must be an array of objects"));
                Vec::new()
            }
        }
    }

    /// Reads strings and numbers: one, or an array of them.
    pub(super) fn values(&mut self, name: &str, is_required: bool) -> Vec<Value> {
        let needed = if is_required { ", required" } else { "" };
        self.taken.push(format!("{name} (string, number or array{needed})"));
        let values = match self.get(name, &[]) {
            None => Vec::new(),
            Some(Value::Array(values)) => values.clone(),
            Some(value) => vec![value.clone()],
        };
        if let Some(other) = values.iter().find(|value| !(value.is_string() || value.is_number())) {
            self.problem(format!("`{name}` must be a string, a number or an array of them, not {other}"));
        } else if is_required && values.is_empty() {
            self.problem(format!("`{name}` is missing"));
        }
        values
    }

    /// Reads a whole number, clamped to `range`.
    pub(super) fn count(&mut self, name: &str, default: usize, range: RangeInclusive<usize>) -> usize {
        self.taken.push(format!("{name} (integer {} to {}, default {default})", range.start(), range.end()));
        let number = match self.get(name, &[]) {
            None => return default,
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
            Some(_) => None,
        };
        match number.filter(|number| number.is_finite() && number.fract() == 0.0) {
            // A float's cast saturates, so any size is brought into the range.
            Some(number) => (number.max(0.0) as usize).clamp(*range.start(), *range.end()),
            None => {
                self.problem(format!("`{name}` must be a whole number"));
                default
            }
        }
    }

    /// Ends reading. Errors: all problems, with what `tool` takes.
    pub(super) fn finish(self, tool: &str) -> Result<(), ToolError> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(ToolError::new("invalid_arguments", self.problems.join("; "))
            .with_hint(format!("{tool} takes {}", self.taken.join(", "))))
    }

    /// Returns the value under a name or one of its aliases. Two that differ are a problem: one of them would be dropped.
    fn get(&mut self, name: &str, aliases: &[&str]) -> Option<&'a Value> {
        let object = self.object;
        let mut given = std::iter::once(&name)
            .chain(aliases)
            .filter_map(|name| Some((*name, object.get(*name)?)))
            .filter(|(_, value)| !value.is_null());
        let (first, value) = given.next()?;
        let other = given.find(|(_, other)| *other != value).map(|(other, _)| other);
        if let Some(other) = other {
            self.problem(format!("`{first}` and `{other}` are the same argument and differ; give one of them"));
        }
        Some(value)
    }

    /// Notes a problem; returns `""`, in the place of a string.
    fn problem(&mut self, problem: String) -> String {
        self.problems.push(problem);
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_in_any_form() {
        let object = arguments_object(&json!("{\"query\": \" SELECT 1 \", \"max_rows\": \"20\"}")).unwrap();
        let mut arguments = ToolArguments::new(&object);
        assert_eq!(arguments.required("sql", &["query"]), "SELECT 1");
        assert_eq!(arguments.count("max_rows", 200, 1..=1000), 20);
        assert_eq!(arguments.optional("database"), None);
        assert_eq!(arguments.finish("run_sql"), Ok(()));
    }

    #[test]
    fn no_alias_is_dropped_in_silence() {
        let read = |object: Value| {
            let object = arguments_object(&object).unwrap();
            let mut arguments = ToolArguments::new(&object);
            arguments.required("sql", &["query"]);
            arguments.finish("run_sql").map_err(|error| error.message)
        };
        let both = "`sql` and `query` are the same argument and differ; give one of them";
        assert_eq!(read(json!({"sql": "SELECT 1", "query": "SELECT 2"})), Err(both.to_owned()));
        assert_eq!(read(json!({"sql": "SELECT 1", "query": "SELECT 1"})), Ok(()));
        assert_eq!(read(json!({"sql": null, "query": "SELECT 2"})), Ok(()));
    }

    #[test]
    fn counts_are_brought_into_range() {
        for (given, expected) in [(json!(0), 1), (json!(-3), 1), (json!(5000), 1000), (json!(7.0), 7), (json!(null), 5)]
        {
            let object = arguments_object(&json!({ "n": given })).unwrap();
            assert_eq!(ToolArguments::new(&object).count("n", 5, 1..=1000), expected);
        }
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let object = arguments_object(&json!({"sql": 3, "max_rows": "many"})).unwrap();
        let mut arguments = ToolArguments::new(&object);
        arguments.required("sql", &["query"]);
        arguments.count("max_rows", 200, 1..=1000);
        let error = arguments.finish("run_sql").unwrap_err();
        assert_eq!(error.message, "`sql` must be a string, not 3; `max_rows` must be a whole number");
        assert_eq!(
            error.hint.as_deref(),
            Some("run_sql takes sql (string, required), max_rows (integer 1 to 1000, default 200)")
        );
    }
}

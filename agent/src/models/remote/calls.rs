//! Assembles tool calls from their pieces. Providers differ: OpenAI sends the new part of the arguments, Anthropic all
//! of them so far (as genai passes it on), Gemini the whole call. Calls are complete only when the turn has ended.

use std::collections::HashSet;

use genai::chat::ToolCall;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::RemoteKind;
use super::thoughts::Thoughts;
use crate::models::ModelToolCall;

/// More calls in one turn than any model makes on purpose.
const MAX_CALLS: usize = 128;

/// The calls of one turn.
pub(super) struct CallCollector {
    kind: RemoteKind,
    calls: Vec<PartialCall>,
}

struct PartialCall {
    id: String,
    name: String,
    arguments: Value,
    signatures: Option<Vec<String>>,
}

/// A call, and what its provider expects back with it.
pub(super) struct CollectedCall {
    pub(super) call: ModelToolCall,
    pub(super) thoughts: Thoughts,
    /// Whether its arguments are an object.
    pub(super) is_whole: bool,
}

impl CallCollector {
    pub(super) fn new(kind: RemoteKind) -> Self {
        Self { kind, calls: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a piece. Errors: the model makes too many calls.
    pub(super) fn push(&mut self, piece: ToolCall) -> Result<(), String> {
        let ToolCall { call_id, fn_name, fn_arguments, thought_signatures } = piece;
        let known = match self.kind {
            RemoteKind::Gemini => None,
            RemoteKind::Anthropic => self.calls.iter().rposition(|call| call.id == call_id),
            RemoteKind::OpenAi => self.continued(&call_id, &fn_name, &fn_arguments),
        };
        let Some(call) = known.and_then(|index| self.calls.get_mut(index)) else {
            if self.calls.len() >= MAX_CALLS {
                return Err(format!("it made more than {MAX_CALLS} calls in one turn"));
            }
            let call =
                PartialCall { id: call_id, name: fn_name, arguments: fn_arguments, signatures: thought_signatures };
            self.calls.push(call);
            return Ok(());
        };
        match (&mut call.arguments, fn_arguments) {
            (Value::String(so_far), Value::String(more)) if self.kind == RemoteKind::OpenAi => so_far.push_str(&more),
            (so_far, all) => *so_far = all,
        }
        Ok(())
    }

    /// Returns which call a piece of OpenAI's form continues. Only the first piece has the id and the name; genai names
    /// the others by their index.
    fn continued(&self, id: &str, name: &str, arguments: &Value) -> Option<usize> {
        if let Some((index, call)) = self.calls.iter().enumerate().rfind(|(_, call)| call.id == id) {
            // Servers that give all calls the same id, or an empty one, send whole calls.
            let is_another = !name.is_empty() && is_whole_text(arguments) && is_whole_text(&call.arguments);
            return (!is_another).then_some(index);
        }
        if !name.is_empty() {
            return None;
        }
        let index = id.strip_prefix("call_").and_then(|index| index.parse::<usize>().ok());
        index.filter(|index| *index < self.calls.len()).or_else(|| self.calls.len().checked_sub(1))
    }

    /// Returns the calls, each with a unique id.
    pub(super) fn finish(self) -> Vec<CollectedCall> {
        let mut ids = HashSet::new();
        let calls = self.calls.into_iter();
        calls
            .map(|PartialCall { id, name, arguments, signatures }| {
                // genai invents `call_0` and `call#name#0` where the provider has no ids: the same in every turn.
                let is_made_up = id.is_empty() || id.contains('#') || (id.len() <= 8 && id.starts_with("call_"));
                let id = match is_made_up || !ids.insert(id.clone()) {
                    true => format!("call_{}", Uuid::new_v4().simple()),
                    false => id,
                };
                let arguments = read_arguments(arguments);
                let is_whole = arguments.is_object();
                CollectedCall {
                    call: ModelToolCall { id: Some(id), name, arguments },
                    thoughts: Thoughts { leading: Vec::new(), signatures },
                    is_whole,
                }
            })
            .collect()
    }
}

/// Whether arguments that come as text are all there.
fn is_whole_text(arguments: &Value) -> bool {
    arguments.as_str().is_some_and(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok())
}

/// Returns arguments as an object, or the text where it is none: then the tool reports the error to the model.
fn read_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(text),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(id: &str, name: &str, arguments: Value) -> ToolCall {
        ToolCall { call_id: id.to_owned(), fn_name: name.to_owned(), fn_arguments: arguments, thought_signatures: None }
    }

    fn collected(kind: RemoteKind, pieces: &[(&str, &str, Value)]) -> Vec<CollectedCall> {
        let mut calls = CallCollector::new(kind);
        for (id, name, arguments) in pieces {
            calls.push(piece(id, name, arguments.clone())).unwrap();
        }
        calls.finish()
    }

    #[test]
    fn pieces_of_parallel_calls_find_theirs() {
        let calls = collected(
            RemoteKind::OpenAi,
            &[
                ("call_abcdefgh", "run_sql", json!("")),
                ("call_ijklmnop", "run_kql", json!("")),
                ("call_0", "", json!("{\"sql\":")),
                ("call_1", "", json!("{\"kql\":\"t\"}")),
                ("call_0", "", json!("\"SELECT 1\"}")),
            ],
        );
        let told: Vec<_> = calls.iter().map(|one| (one.call.id.as_deref(), &one.call.arguments)).collect();
        assert_eq!(
            told,
            [(Some("call_abcdefgh"), &json!({"sql": "SELECT 1"})), (Some("call_ijklmnop"), &json!({"kql": "t"}))]
        );
    }

    #[test]
    fn arguments_so_far_replace_those_before() {
        let calls = collected(
            RemoteKind::Anthropic,
            &[("toolu_1", "t", json!("")), ("toolu_1", "t", json!("{\"a\"")), ("toolu_1", "t", json!("{\"a\":1}"))],
        );
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].call.arguments, json!({"a": 1}));
    }

    #[test]
    fn ids_that_were_made_up_become_unique() {
        let calls =
            collected(RemoteKind::Gemini, &[("call#t#0", "t", json!({"a": 1})), ("call#t#0", "t", Value::Null)]);
        assert_eq!((&calls[0].call.arguments, &calls[1].call.arguments), (&json!({"a": 1}), &json!({})));
        assert_ne!(calls[0].call.id, calls[1].call.id);
    }

    #[test]
    fn whole_calls_of_one_id_stay_apart() {
        for id in ["", "call_abcdefgh"] {
            let pieces = [(id, "t", json!("{\"a\":1}")), (id, "t", json!("{\"a\":2}")), (id, "t", json!(""))];
            let calls = collected(RemoteKind::OpenAi, &pieces);
            let told: Vec<_> = calls.iter().map(|one| &one.call.arguments).collect();
            assert_eq!(told, [&json!({"a": 1}), &json!({"a": 2})]);
            assert_ne!(calls[0].call.id, calls[1].call.id);
        }
        let pieces = [("", "t", json!("{\"a\":")), ("", "t", json!("{}}"))];
        assert_eq!(collected(RemoteKind::OpenAi, &pieces)[0].call.arguments, json!({"a": {}}));
    }

    #[test]
    fn half_a_call_is_not_whole() {
        let calls = collected(RemoteKind::OpenAi, &[("call_abcdefgh", "t", json!("{\"a\": 1, \"b"))]);
        assert!(!calls[0].is_whole);
        assert_eq!(calls[0].call.arguments, json!("{\"a\": 1, \"b"));
    }

    #[test]
    fn calls_without_end_are_refused() {
        let mut calls = CallCollector::new(RemoteKind::Gemini);
        let refused = (0..=MAX_CALLS).find_map(|_| calls.push(piece("", "t", Value::Null)).err());
        assert!(refused.is_some());
    }
}

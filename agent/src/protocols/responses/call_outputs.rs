//! Calls and their outputs in a history that the client sends: each call that was answered has one output, and the
//! calls of one reply are answered together. Providers of models refuse a history where that is not so.

use std::collections::{BTreeSet, HashSet};

use super::{BadRequest, InputItem};
use crate::models::{ChatRole, ToolSpec};

/// Refuses a call that has two outputs, calls of one reply of which only some have one, and calls at the end without
/// any. Calls that are followed by another question were given up: they pass.
pub(super) fn check_outputs(items: &[InputItem]) -> Result<(), BadRequest> {
    check(items.iter())
}

/// Refuses the same of the calls of the client's `tools`, in a history that has the server's own calls too.
pub(super) fn check_client_outputs(items: &[InputItem], tools: &[ToolSpec]) -> Result<(), BadRequest> {
    let clients: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let others: HashSet<&str> = items
        .iter()
        .filter_map(|item| match item {
            InputItem::FunctionCall { call_id, name, .. } if !clients.contains(name.as_str()) => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    check(items.iter().filter(|item| match item {
        InputItem::FunctionCall { call_id, .. } | InputItem::FunctionCallOutput { call_id, .. } => {
            !others.contains(call_id.as_str())
        }
        _ => true,
    }))
}

fn check<'a>(items: impl Iterator<Item = &'a InputItem>) -> Result<(), BadRequest> {
    let mut reply = CallsOfReply::default();
    let mut answered: HashSet<&str> = HashSet::new();
    let mut is_last = false;
    for item in items {
        is_last = matches!(item, InputItem::FunctionCall { .. });
        match item {
            InputItem::FunctionCall { call_id, .. } => {
                if reply.is_answered {
                    reply.end()?;
                }
                reply.open.insert(call_id);
            }
            InputItem::FunctionCallOutput { call_id, .. } => {
                let is_first = answered.insert(call_id);
                if reply.open.remove(call_id.as_str()) {
                    reply.is_answered = true;
                } else if !is_first {
                    // One that was given up, or that the store knows, may be answered later: once.
                    let message = format!("the function call {call_id} has two outputs; send one");
                    return Err(BadRequest::invalid("input", message));
                }
            }
            // What a reply says between its calls.
            InputItem::Message { role: ChatRole::Assistant, .. } if !reply.is_answered => {}
            InputItem::Reference { .. } | InputItem::Ignored => {}
            _ => reply.end()?,
        }
    }
    // With nothing behind them, they wait.
    reply.is_answered |= is_last;
    reply.end()
}

/// The calls of one reply, up to what follows their outputs.
#[derive(Default)]
struct CallsOfReply<'a> {
    /// Those without an output so far.
    open: BTreeSet<&'a str>,
    is_answered: bool,
}

impl CallsOfReply<'_> {
    fn end(&mut self) -> Result<(), BadRequest> {
        match self.open.first() {
            Some(call_id) if self.is_answered => {
                let message = format!(
                    "No tool output found for function call {call_id}; send the outputs of all calls of a response \
                     together"
                );
                Err(BadRequest::invalid("input", message))
            }
            _ => {
                *self = Self::default();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls are `c` and a number, outputs `o`, and messages `user` and `assistant`.
    fn items(words: &str) -> Vec<InputItem> {
        let item = |word: &str| match word.split_at(1) {
            ("c", id) => {
                InputItem::FunctionCall { call_id: id.to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() }
            }
            ("o", id) => InputItem::FunctionCallOutput { call_id: id.to_owned(), output: "x".to_owned() },
            ("r", _) => InputItem::Ignored,
            ("a", _) => InputItem::Message { role: ChatRole::Assistant, content: Vec::new() },
            _ => InputItem::Message { role: ChatRole::User, content: Vec::new() },
        };
        words.split_whitespace().map(item).collect()
    }

    #[test]
    fn a_call_of_the_servers_may_have_no_output_beside_the_clients() {
        let tools = |name: &str| {
            [ToolSpec { name: name.to_owned(), description: String::new(), parameters: serde_json::json!({}) }]
        };
        let (clients, none) = (tools("f"), tools("g"));
        for (words, is_fine) in [("user c1 o1", true), ("user c1 c2 o1", false), ("user c1", false)] {
            assert_eq!(check_client_outputs(&items(words), &clients).is_ok(), is_fine, "{words}");
            assert_eq!(check_client_outputs(&items(words), &none), Ok(()), "{words}");
        }
    }

    #[test]
    fn calls_of_a_reply_are_answered_together() {
        for words in [
            "",
            "user",
            "user c1 o1",
            "user c1 c2 o2 o1",
            "user c1 o1 c2 o2",
            "user c1 assistant c2 o1 o2 assistant user",
            "user reasoning c1 reasoning c2 o1 o2",
            "o1",
            "user c1 user",
            "user c1 user c2 o2",
            "user c1 user o1",
            // Some providers begin again with their ids at each reply.
            "user c1 o1 user c1 o1",
        ] {
            assert_eq!(check_outputs(&items(words)), Ok(()), "{words}");
        }
        for (words, id) in [
            ("user c1 c2 o1", "call 2"),
            ("user c1 c2 o1 user", "call 2"),
            ("user c1 c2 o2 assistant", "call 1"),
            ("user c1 c2 o1 c3 o3", "call 2"),
            ("user c1", "call 1"),
            ("user c1 o1 c2", "call 2"),
            ("user c1 o1 o1", "call 1"),
            ("o1 o1", "call 1"),
        ] {
            let error = check_outputs(&items(words)).unwrap_err();
            assert!(error.message.contains(id) && error.param.as_deref() == Some("input"), "{words}: {error:?}");
        }
    }
}

//! Recognises a tool call that a model wrote as text, where its server passed it on as content.
//!
//! Strict on purpose: the content must be nothing but calls, each `{"name": a tool of this run, "arguments": {...}}`
//! (or `parameters`), bare, in one fenced block, or in `<tool_call>` tags. Everything else is text and stays unchanged.
//! Content that may still become a call is held back; text is passed on from its first word.

use serde_json::Value;

use super::ContentReader;
use crate::error::Result;
use crate::models::{DoneReason, ModelEvent, ModelToolCall, ToolSpec};

const TAG_OPEN: &str = "<tool_call>";
const TAG_CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";
/// What a call in a fence may be labelled as.
const FENCE_LABELS: [&str; 3] = ["json", "tool_call", ""];

/// Reads content that may be tool calls.
pub(super) struct TextFormParser {
    tools: Vec<ToolSpec>,
    held: String,
    is_text: bool,
}

impl TextFormParser {
    /// Recognises calls of `tools`; with none, everything is text.
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self { tools: tools.to_vec(), held: String::new(), is_text: tools.is_empty() }
    }
}

impl ContentReader for TextFormParser {
    fn push(&mut self, piece: String) -> Option<String> {
        if self.is_text {
            return Some(piece).filter(|piece| !piece.is_empty());
        }
        self.held.push_str(&piece);
        if may_become_calls(&self.held) {
            return None;
        }
        self.is_text = true;
        Some(std::mem::take(&mut self.held))
    }

    fn finish(&mut self, reason: DoneReason) -> Result<Vec<ModelEvent>> {
        let held = std::mem::take(&mut self.held);
        match read_calls(&held, &self.tools) {
            Some(calls) => Ok(calls.into_iter().map(ModelEvent::ToolCall).collect()),
            // Held content that was cut is neither a call nor an answer.
            None if reason != DoneReason::Stop => Ok(Vec::new()),
            None if held.is_empty() => Ok(Vec::new()),
            None => Ok(vec![ModelEvent::Text(held)]),
        }
    }
}

/// Whether content that begins like this may still be nothing but calls.
fn may_become_calls(content: &str) -> bool {
    let content = content.trim_start();
    if begins_alike(content, TAG_OPEN) {
        return true;
    }
    if let Some(fenced) = content.strip_prefix(FENCE) {
        return match fenced.split_once('\n') {
            Some((label, body)) => FENCE_LABELS.contains(&label.trim()) && may_become_call_object(body.trim_start()),
            None => FENCE_LABELS.iter().any(|label| begins_alike(fenced.trim(), label)),
        };
    }
    FENCE.starts_with(content) || may_become_call_object(content)
}

/// Whether an object that begins like this may be a call, judged by its first key.
fn may_become_call_object(content: &str) -> bool {
    let Some(fields) = content.strip_prefix('{') else { return content.is_empty() };
    let fields = fields.trim_start();
    let Some(key) = fields.strip_prefix('"') else { return fields.is_empty() };
    ["name\"", "arguments\"", "parameters\""].iter().any(|known| begins_alike(key, known))
}

/// Whether one text is the beginning of the other.
fn begins_alike(text: &str, expected: &str) -> bool {
    text.starts_with(expected) || expected.starts_with(text)
}

/// Parses `content` as calls; `None` when it is anything else.
fn read_calls(content: &str, tools: &[ToolSpec]) -> Option<Vec<ModelToolCall>> {
    let content = content.trim();
    if content.starts_with(TAG_OPEN) {
        return read_tagged_calls(content, tools);
    }
    let object = match content.strip_prefix(FENCE) {
        Some(fenced) => {
            let (label, body) = fenced.split_once('\n')?;
            FENCE_LABELS.contains(&label.trim()).then_some(())?;
            body.strip_suffix(FENCE)?
        }
        None => content,
    };
    Some(vec![read_call(object, tools)?])
}

fn read_tagged_calls(content: &str, tools: &[ToolSpec]) -> Option<Vec<ModelToolCall>> {
    let mut calls = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let tagged = rest.strip_prefix(TAG_OPEN)?;
        let (object, after) = tagged.split_once(TAG_CLOSE)?;
        calls.push(read_call(object, tools)?);
        rest = after.trim_start();
    }
    Some(calls)
}

fn read_call(object: &str, tools: &[ToolSpec]) -> Option<ModelToolCall> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(object) else { return None };
    let Some(Value::String(name)) = fields.shift_remove("name") else { return None };
    let arguments = fields.shift_remove("arguments").or_else(|| fields.shift_remove("parameters"))?;
    let tool = tools.iter().find(|tool| tool.name == name)?;
    (fields.is_empty() && arguments_fit(&arguments, tool)).then_some(ModelToolCall { id: None, name, arguments })
}

/// Whether each argument that the tool declares has the declared type. A missing or unknown one is left to the tool,
/// whose error says what to correct.
fn arguments_fit(arguments: &Value, tool: &ToolSpec) -> bool {
    let Value::Object(arguments) = arguments else { return false };
    arguments.iter().all(|(name, value)| match tool.parameters["properties"][name]["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CALL: &str = r#"{"name": "run_sql", "arguments": {"sql": "SELECT '```' AS fence"}}"#;

    fn tools() -> Vec<ToolSpec> {
        let parameters = json!({"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]});
        vec![ToolSpec { name: "run_sql".to_owned(), description: String::new(), parameters }]
    }

    fn read(pieces: &[&str]) -> Vec<ModelEvent> {
        let mut parser = TextFormParser::new(&tools());
        let mut events: Vec<ModelEvent> =
            pieces.iter().filter_map(|piece| parser.push((*piece).to_owned())).map(ModelEvent::Text).collect();
        events.extend(parser.finish(DoneReason::Stop).unwrap());
        events
    }

    fn text_of(events: &[ModelEvent]) -> Option<String> {
        events
            .iter()
            .map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_call_in_each_form_is_a_call_wherever_it_is_cut() {
        let call =
            ModelToolCall { id: None, name: "run_sql".to_owned(), arguments: json!({"sql": "SELECT '```' AS fence"}) };
        let forms = [
            CALL.to_owned(),
            format!("\n```json\n{CALL}\n```\n"),
            format!("```\n{CALL}\n```"),
            format!("<tool_call>\n{CALL}\n</tool_call>"),
            CALL.replace("arguments", "parameters"),
        ];
        for form in &forms {
            for (cut, _) in form.char_indices() {
                let events = read(&[&form[..cut], &form[cut..]]);
                assert_eq!(events, vec![ModelEvent::ToolCall(call.clone())], "{form} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_call_that_was_cut_is_left_out() {
        let mut parser = TextFormParser::new(&tools());
        assert_eq!(parser.push("<tool_call>{\"name\": \"run_sql\", \"argum".to_owned()), None);
        assert_eq!(parser.finish(DoneReason::Length).unwrap(), vec![]);
    }

    #[test]
    fn several_tagged_calls_are_several_calls() {
        let content = format!("<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>");
        assert_eq!(read(&[&content]).len(), 2);
    }

    #[test]
    fn an_answer_with_json_in_it_stays_text() {
        let answers = [
            format!("Run this:\n```json\n{CALL}\n```"),
            format!("```json\n{CALL}\n```\nThat was the call."),
            r#"{"name": "Boeing", "arguments": {}}"#.to_owned(),
            r#"{"name": "run_sql", "rows": 3}"#.to_owned(),
            r#"{"name": "run_sql", "arguments": {"sql": 3}}"#.to_owned(),
            r#"{"name": "run_sql", "arguments": {"sql": ""}, "count": 1}"#.to_owned(),
            r#"{"carrier": "UA", "flights": 58665}"#.to_owned(),
            "```sql\nSELECT 1\n```".to_owned(),
            "<tool_call> is a tag".to_owned(),
            "{ braces".to_owned(),
            "`x` is a column".to_owned(),
            "Ünited 😀".to_owned(),
        ];
        for answer in &answers {
            for (cut, _) in answer.char_indices() {
                let events = read(&[&answer[..cut], &answer[cut..]]);
                assert_eq!(text_of(&events).as_deref(), Some(answer.as_str()), "cut at {cut}");
            }
        }
    }

    #[test]
    fn text_flows_from_its_first_word() {
        let mut parser = TextFormParser::new(&tools());
        assert_eq!(parser.push("There".to_owned()).as_deref(), Some("There"));
        assert_eq!(parser.push(" {\"name".to_owned()).as_deref(), Some(" {\"name"));
        let mut other_object = TextFormParser::new(&tools());
        assert_eq!(other_object.push("{\"na".to_owned()), None);
        assert_eq!(other_object.push("tion\": 1}".to_owned()).as_deref(), Some("{\"nation\": 1}"));
    }

    #[test]
    fn without_tools_everything_is_text() {
        let mut parser = TextFormParser::new(&[]);
        assert_eq!(parser.push(CALL.to_owned()).as_deref(), Some(CALL));
    }
}

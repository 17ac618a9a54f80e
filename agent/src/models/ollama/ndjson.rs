//! Decodes the NDJSON body of Ollama's `/api/chat`. Works on bytes and cuts only at line ends, so network reads may
//! split a character, a number or a line anywhere.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{AgentError, Result};
use crate::half_characters::{marked, replaced};
use crate::models::cut_text::CutText;
use crate::models::{DoneReason, ModelEvent, ModelToolCall, TokenUsage};

/// A line longer than this is not a chat line.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Turns a body's bytes into events.
#[derive(Debug, Default)]
pub(super) struct NdjsonDecoder {
    /// The beginning of a line whose end has not arrived.
    partial_line: Vec<u8>,
    cut: CutText,
    done: bool,
}

impl NdjsonDecoder {
    /// Reads the next bytes. Nothing is returned past [`ModelEvent::Done`].
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<ModelEvent>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(line_end) = rest.iter().position(|byte| *byte == b'\n') {
            self.partial_line.extend_from_slice(&rest[..line_end]);
            rest = &rest[line_end + 1..];
            let line = std::mem::take(&mut self.partial_line);
            self.read_line(&line, &mut events)?;
        }
        self.partial_line.extend_from_slice(rest);
        if self.partial_line.len() > MAX_LINE_BYTES {
            return Err(failed(format!("it sent a line of more than {MAX_LINE_BYTES} bytes")));
        }
        Ok(events)
    }

    /// Ends the body. Errors: the turn is not finished.
    pub(super) fn finish(&mut self) -> Result<Vec<ModelEvent>> {
        let mut events = Vec::new();
        let line = std::mem::take(&mut self.partial_line);
        self.read_line(&line, &mut events)?;
        if self.done {
            return Ok(events);
        }
        Err(failed("its reply broke off before the end; see the model server's log".to_owned()))
    }

    fn read_line(&mut self, line: &[u8], events: &mut Vec<ModelEvent>) -> Result<()> {
        let line = line.trim_ascii();
        if line.is_empty() || self.done {
            return Ok(());
        }
        let (line, is_marked) = read_chat_line(line).map_err(|error| {
            failed(format!("it sent a line that is no chat reply ({error}): {}", beginning_of(line)))
        })?;
        if let Some(error) = line.error {
            return Err(failed(error));
        }
        if let Some(message) = line.message {
            message.add_events(&mut self.cut, is_marked, events)?;
        }
        if line.done {
            self.done = true;
            events.extend(self.cut.finish().into_iter().flatten());
            let reason = match line.done_reason.as_deref() {
                Some("length") => DoneReason::Length,
                _ => DoneReason::Stop,
            };
            events.push(ModelEvent::Done {
                usage: TokenUsage {
                    input_tokens: line.prompt_eval_count,
                    output_tokens: line.eval_count,
                    ..TokenUsage::default()
                },
                reason,
            });
        }
        Ok(())
    }
}

/// One line of the body.
#[derive(Debug, Deserialize)]
struct ChatLine {
    #[serde(default)]
    message: Option<LineMessage>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    /// Absent when the whole prompt was cached.
    #[serde(default)]
    prompt_eval_count: u64,
    #[serde(default)]
    eval_count: u64,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LineMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<LineToolCall>>,
}

#[derive(Debug, Deserialize)]
struct LineToolCall {
    #[serde(default)]
    id: Option<String>,
    function: LineFunction,
}

#[derive(Debug, Deserialize)]
struct LineFunction {
    name: String,
    #[serde(default, alias = "parameters")]
    arguments: Value,
}

impl LineMessage {
    fn add_events(self, cut: &mut CutText, is_marked: bool, events: &mut Vec<ModelEvent>) -> Result<()> {
        events.extend(self.thinking.and_then(|thinking| cut.think(thinking, is_marked)));
        events.extend(self.content.into_iter().flat_map(|text| cut.say(text, is_marked)).flatten());
        for call in self.tool_calls.unwrap_or_default() {
            let LineFunction { name, arguments } = call.function;
            let arguments = as_object(&name, arguments)?;
            events.push(ModelEvent::ToolCall(ModelToolCall { id: call.id, name, arguments }));
        }
        Ok(())
    }
}

/// Reads a line. Returns whether halves of characters are marked in its texts.
fn read_chat_line(line: &[u8]) -> serde_json::Result<(ChatLine, bool)> {
    let error = match serde_json::from_slice(line) {
        Ok(read) => return Ok((read, false)),
        Err(error) => error,
    };
    // Bytes that are no characters are shown as lost ones.
    let text = String::from_utf8_lossy(line);
    let Some(with_marks) = marked(text.as_bytes()) else {
        return serde_json::from_str(&text).map(|read| (read, false)).map_err(|_| error);
    };
    let read: ChatLine = serde_json::from_slice(&with_marks)?;
    // Only texts go on in the next line.
    let has_more = read.error.is_some() || read.message.as_ref().is_some_and(|message| message.tool_calls.is_some());
    match replaced(text.as_bytes()).filter(|_| has_more) {
        Some(without) => Ok((serde_json::from_slice(&without)?, false)),
        None => Ok((read, true)),
    }
}

/// Returns arguments as an object. Ollama sends one; servers that speak its protocol also send none, or a string of
/// one.
fn as_object(tool: &str, arguments: Value) -> Result<Value> {
    let arguments = match arguments {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    if arguments.is_object() {
        return Ok(arguments);
    }
    Err(failed(format!("it sent a call of {tool} whose arguments are no JSON object: {arguments}")))
}

fn beginning_of(line: &[u8]) -> String {
    const SHOWN_BYTES: usize = 200;
    String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned()
}

fn failed(detail: String) -> AgentError {
    AgentError::ModelFailed { detail }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BODY: &str = concat!(
        r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"naïve 🤔"},"done":false}"#,
        "\n",
        r#"{"model":"m","message":{"role":"assistant","content":"Zürich → 東京 😀"},"done":false}"#,
        "\r\n\n",
        r#"{"message":{"content":"","tool_calls":[{"id":"call_1","function":{"name":"run_sql","arguments":{"sql":"SELECT 'é'"}}}]},"done":false}"#,
        "\n",
        r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":12,"eval_count":3}"#,
        "\n",
    );

    fn expected() -> Vec<ModelEvent> {
        let call = ModelToolCall {
            id: Some("call_1".to_owned()),
            name: "run_sql".to_owned(),
            arguments: json!({"sql": "SELECT 'é'"}),
        };
        vec![
            ModelEvent::Thinking("naïve 🤔".to_owned()),
            ModelEvent::Text("Zürich → 東京 😀".to_owned()),
            ModelEvent::ToolCall(call),
            ModelEvent::Done {
                usage: TokenUsage { input_tokens: 12, output_tokens: 3, ..TokenUsage::default() },
                reason: DoneReason::Length,
            },
        ]
    }

    fn decode(pieces: &[&[u8]]) -> Result<Vec<ModelEvent>> {
        let mut decoder = NdjsonDecoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.push(piece)?);
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    #[test]
    fn the_events_are_the_same_wherever_the_bytes_are_cut() {
        let body = BODY.as_bytes();
        for cut in 0..=body.len() {
            assert_eq!(decode(&[&body[..cut], &body[cut..]]).unwrap(), expected(), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(&bytes).unwrap(), expected());
    }

    #[test]
    fn the_last_line_needs_no_line_end() {
        assert_eq!(decode(&[BODY.trim_end().as_bytes()]).unwrap(), expected());
    }

    #[test]
    fn characters_cut_in_half_between_lines_are_whole() {
        let lines = [
            r#"{"message":{"thinking":"a \ud83d"}}"#,
            r#"{"message":{"content":"so \ud83d"}}"#,
            r#"{"message":{"content":"\ude00\ud83d"}}"#,
            r#"{"message":{"content":"\ude01 \ude02"}}"#,
            r#"{"message":{"tool_calls":[{"function":{"name":"t","arguments":{"a":"\ud83d"}}}]}}"#,
            r#"{"message":{"content":"end\ud83d"}}"#,
            r#"{"done":true}"#,
        ];
        let events = decode(&[lines.join("\n").as_bytes(), b"\n"]).unwrap();
        let said = |text: &str| ModelEvent::Text(text.to_owned());
        let call = ModelToolCall { id: None, name: "t".to_owned(), arguments: json!({"a": "\u{fffd}"}) };
        let expected = [
            ModelEvent::Thinking("a ".to_owned()),
            ModelEvent::Thinking("\u{fffd}".to_owned()),
            said("so "),
            said("😀"),
            said("😁 \u{fffd}"),
            ModelEvent::ToolCall(call),
            said("end"),
            said("\u{fffd}"),
        ];
        assert_eq!(events[..expected.len()], expected);
        assert!(matches!(&events[expected.len()..], [ModelEvent::Done { .. }]), "{events:?}");
    }

    #[test]
    fn bytes_that_are_no_characters_end_no_reply() {
        let events = decode(&[b"{\"message\":{\"content\":\"a\xf0\x9f b\"},\"done\":true}\n"]).unwrap();
        assert_eq!(events[0], ModelEvent::Text("a\u{fffd} b".to_owned()));
    }

    #[test]
    fn an_error_in_the_body_is_an_error() {
        let error = decode(&[b"{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"error\":\"out of memory\"}\n"]);
        assert_eq!(error.unwrap_err().to_string(), "model server: out of memory");
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        let error = decode(&[b"{\"message\":{\"content\":\"a\"},\"done\":false}\n"]).unwrap_err();
        assert_eq!(error.code(), "model_failed");
        assert!(error.to_string().contains("broke off"), "{error}");
        assert!(decode(&[]).is_err());
    }

    #[test]
    fn what_is_not_ndjson_is_an_error_that_shows_it() {
        let error = decode(&[b"<html>bad gateway</html>\n"]).unwrap_err();
        assert!(error.to_string().contains("<html>bad gateway"), "{error}");
    }

    #[test]
    fn nothing_follows_done() {
        let mut decoder = NdjsonDecoder::default();
        let events = decoder.push(b"{\"done\":true}\n{\"message\":{\"content\":\"late\"},\"done\":true}\n").unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(decoder.finish().unwrap(), vec![]);
    }

    #[test]
    fn arguments_come_as_an_object_as_its_text_or_not_at_all() {
        for (arguments, expected) in
            [(r#""{\"a\":1}""#, json!({"a": 1})), (r#"{"a":1}"#, json!({"a": 1})), ("null", json!({}))]
        {
            let line = format!(
                r#"{{"message":{{"tool_calls":[{{"function":{{"name":"t","arguments":{arguments}}}}}]}},"done":true}}"#
            );
            let events = decode(&[line.as_bytes()]).unwrap();
            let ModelEvent::ToolCall(call) = &events[0] else { panic!("{events:?}") };
            assert_eq!(call.arguments, expected);
        }
        let line = r#"{"message":{"tool_calls":[{"function":{"name":"t","arguments":[1]}}]},"done":true}"#;
        assert!(decode(&[line.as_bytes()]).is_err());
    }
}

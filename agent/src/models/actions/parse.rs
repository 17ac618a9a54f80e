//! Reads one action while it is generated: the answer's text is passed on piece by piece, unescaped; a tool call is
//! complete only at the end. Where the pieces are cut never changes the result.

use serde_json::Value;

use super::schema::{ACTION_FIELD, ANSWER_ACTION, ANSWER_FIELD};
use super::{ContentReader, not_an_action, object_in};
use crate::error::Result;
use crate::models::{DoneReason, ModelEvent, ModelToolCall};

/// Reads one action.
pub(super) struct ActionParser {
    /// Everything received.
    content: String,
    state: ParserState,
    /// Objects and arrays open inside the value of a field.
    depth: usize,
    /// The field being read.
    field: String,
    /// The action's name, once its string is closed.
    action: Option<String>,
    answer_streamed: bool,
}

enum ParserState {
    /// Before the opening brace.
    Start,
    /// Between fields: a key, a comma or the closing brace comes next.
    Between,
    /// In a key.
    Key(JsonString),
    /// After a key: the colon, then the value's first character.
    AfterKey,
    /// In a string that is a field's value.
    StringValue(JsonString),
    /// In any other value.
    OtherValue,
    /// In a string inside such a value.
    Nested(JsonString),
    /// After the closing brace.
    End,
}

impl ActionParser {
    pub(super) fn new() -> Self {
        Self {
            content: String::new(),
            state: ParserState::Start,
            depth: 0,
            field: String::new(),
            action: None,
            answer_streamed: false,
        }
    }

    fn is_answer(&self) -> bool {
        self.action.as_deref() == Some(ANSWER_ACTION)
    }

    /// Reads one character; returns what it adds to the answer.
    fn step(&mut self, character: char) -> Option<char> {
        match &mut self.state {
            ParserState::Start if character == '{' => self.state = ParserState::Between,
            ParserState::Between if character == '"' => self.state = ParserState::Key(JsonString::default()),
            ParserState::Between if character == '}' => self.state = ParserState::End,
            ParserState::Start | ParserState::Between | ParserState::End => {}
            ParserState::Key(key) => {
                key.read(character);
                if key.closed {
                    self.field = std::mem::take(&mut key.text);
                    self.state = ParserState::AfterKey;
                }
            }
            ParserState::AfterKey => match character {
                ':' => {}
                '"' => self.state = ParserState::StringValue(JsonString::default()),
                '{' | '[' => {
                    self.depth = 1;
                    self.state = ParserState::OtherValue;
                }
                other if other.is_whitespace() => {}
                _ => {
                    self.depth = 0;
                    self.state = ParserState::OtherValue;
                }
            },
            ParserState::StringValue(value) => {
                let added = value.read(character);
                if value.closed {
                    let text = std::mem::take(&mut value.text);
                    self.state = ParserState::Between;
                    if self.field == ACTION_FIELD {
                        self.action = Some(text);
                    }
                } else if self.field == ANSWER_FIELD && self.is_answer() {
                    return added;
                }
            }
            ParserState::OtherValue => match character {
                '"' => self.state = ParserState::Nested(JsonString::default()),
                '{' | '[' => self.depth += 1,
                '}' if self.depth == 0 => self.state = ParserState::End,
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.state = ParserState::Between;
                    }
                }
                ',' if self.depth == 0 => self.state = ParserState::Between,
                _ => {}
            },
            ParserState::Nested(value) => {
                value.read(character);
                if value.closed {
                    self.state = ParserState::OtherValue;
                }
            }
        }
        None
    }
}

impl ContentReader for ActionParser {
    fn push(&mut self, piece: String) -> Option<String> {
        self.content.push_str(&piece);
        let answer: String = piece.chars().filter_map(|character| self.step(character)).collect();
        if answer.is_empty() {
            return None;
        }
        self.answer_streamed = true;
        Some(answer)
    }

    fn finish(&mut self, reason: DoneReason) -> Result<Vec<ModelEvent>> {
        let complete = matches!(self.state, ParserState::End);
        if !complete {
            // Cut at a limit: the answer so far has been passed on, and half a call is no call.
            return match reason {
                DoneReason::Length | DoneReason::Filtered => Ok(Vec::new()),
                DoneReason::Stop => Err(not_an_action(&self.content)),
            };
        }
        if self.answer_streamed {
            return Ok(Vec::new());
        }
        let Ok(Value::Object(mut arguments)) = serde_json::from_str(object_in(&self.content)) else {
            return Err(not_an_action(&self.content));
        };
        let Some(Value::String(action)) = arguments.shift_remove(ACTION_FIELD) else {
            return Err(not_an_action(&self.content));
        };
        if action == ANSWER_ACTION {
            let text = arguments.get(ANSWER_FIELD).and_then(Value::as_str).unwrap_or_default();
            return Ok(vec![ModelEvent::Text(text.to_owned())]);
        }
        let arguments = Value::Object(arguments);
        Ok(vec![ModelEvent::ToolCall(ModelToolCall { id: None, name: action, arguments })])
    }
}

/// Reads a JSON string after its opening quote, a character at a time.
#[derive(Default)]
struct JsonString {
    text: String,
    closed: bool,
    escape: Escape,
    /// The first half of a surrogate pair, waiting for its second.
    high_surrogate: Option<u16>,
}

#[derive(Default)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Begun,
    /// After `\u`: the digits so far.
    Unicode { digits: u32, value: u16 },
}

impl JsonString {
    /// Reads one character; returns the one it completes, if any.
    fn read(&mut self, character: char) -> Option<char> {
        let completed = match self.escape {
            Escape::None => match character {
                '"' => {
                    self.closed = true;
                    None
                }
                '\\' => {
                    self.escape = Escape::Begun;
                    None
                }
                other => Some(other),
            },
            Escape::Begun => {
                self.escape = Escape::None;
                match character {
                    'n' => Some('\n'),
                    't' => Some('\t'),
                    'r' => Some('\r'),
                    'b' => Some('\u{8}'),
                    'f' => Some('\u{c}'),
                    'u' => {
                        self.escape = Escape::Unicode { digits: 0, value: 0 };
                        None
                    }
                    other => Some(other),
                }
            }
            Escape::Unicode { digits, value } => {
                // Four hexadecimal digits fit a u16, so nothing is shifted out.
                let digit = character.to_digit(16).unwrap_or_default() as u16;
                let value = (value << 4) | digit;
                if digits < 3 {
                    self.escape = Escape::Unicode { digits: digits + 1, value };
                    None
                } else {
                    self.escape = Escape::None;
                    self.complete_code_unit(value)
                }
            }
        };
        self.text.extend(completed);
        completed
    }

    fn complete_code_unit(&mut self, unit: u16) -> Option<char> {
        if (0xD800..0xDC00).contains(&unit) {
            self.high_surrogate = Some(unit);
            return None;
        }
        let units = self.high_surrogate.take().into_iter().chain([unit]);
        let decoded: Vec<char> =
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        decoded.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pieces: &[&str], reason: DoneReason) -> Result<Vec<ModelEvent>> {
        let mut parser = ActionParser::new();
        let mut events: Vec<ModelEvent> =
            pieces.iter().filter_map(|piece| parser.push((*piece).to_owned())).map(ModelEvent::Text).collect();
        events.extend(parser.finish(reason)?);
        Ok(events)
    }

    fn answer_of(events: &[ModelEvent]) -> String {
        events
            .iter()
            .map(|event| match event {
                ModelEvent::Text(text) => text.as_str(),
                other => panic!("not text: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn an_answer_is_the_same_wherever_it_is_cut() {
        let content =
            "{\n  \"action\": \"answer\",\n  \"text\": \"caf\\u00e9 \\ud83d\\ude00 \\\"é😀\\\" a\\\\b\\n\\/\"\n}\n";
        let expected = "café 😀 \"é😀\" a\\b\n/";
        for (cut, _) in content.char_indices() {
            let events = read(&[&content[..cut], &content[cut..]], DoneReason::Stop).unwrap();
            assert_eq!(answer_of(&events), expected, "cut at {cut}");
        }
        let characters: Vec<String> = content.chars().map(String::from).collect();
        let pieces: Vec<&str> = characters.iter().map(String::as_str).collect();
        assert_eq!(answer_of(&read(&pieces, DoneReason::Stop).unwrap()), expected);
    }

    #[test]
    fn an_answer_is_passed_on_while_it_comes() {
        let mut parser = ActionParser::new();
        assert_eq!(parser.push(r#"{"action":"answer","te"#.to_owned()), None);
        assert_eq!(parser.push(r#"xt":"Ther"#.to_owned()).as_deref(), Some("Ther"));
        assert_eq!(parser.push("e are 3.".to_owned()).as_deref(), Some("e are 3."));
        assert_eq!(parser.push("\"}".to_owned()), None);
        assert_eq!(parser.finish(DoneReason::Stop).unwrap(), vec![]);
    }

    #[test]
    fn a_call_comes_whole_with_arguments_of_any_kind() {
        let content = r#"{"action":"sample_rows","table":"a \"}b","n":5,"of":{"x":["}",1]},"all":true}"#;
        for (cut, _) in content.char_indices() {
            let events = read(&[&content[..cut], &content[cut..]], DoneReason::Stop).unwrap();
            let arguments = json!({"table": "a \"}b", "n": 5, "of": {"x": ["}", 1]}, "all": true});
            let call = ModelToolCall { id: None, name: "sample_rows".to_owned(), arguments };
            assert_eq!(events, vec![ModelEvent::ToolCall(call)], "cut at {cut}");
        }
    }

    #[test]
    fn an_answer_whose_text_comes_first_is_read_at_the_end() {
        let events = read(&[r#"{"text":"3","action":"answer"}"#], DoneReason::Stop).unwrap();
        assert_eq!(answer_of(&events), "3");
    }

    #[test]
    fn a_reply_cut_at_the_limit_keeps_its_text_and_loses_its_call() {
        let cut_answer = read(&[r#"{"action":"answer","text":"There are"#], DoneReason::Length).unwrap();
        assert_eq!(answer_of(&cut_answer), "There are");
        let cut_call = read(&[r#"{"action":"run_sql","sql":"SELECT"#], DoneReason::Length).unwrap();
        assert_eq!(cut_call, vec![]);
    }

    #[test]
    fn what_is_no_action_is_an_error() {
        for content in ["There are 3.", "", r#"{"action":"run_sql","sql":"#, r#"{"text":"3"}"#, "{} {}"] {
            let error = read(&[content], DoneReason::Stop).unwrap_err();
            assert_eq!(error.code(), "model_failed", "{content}");
        }
    }

    #[test]
    fn a_fence_around_an_action_is_no_part_of_it() {
        let answer = read(&["```json\n{\"action\":\"answer\",\"text\":\"3\"}\n```"], DoneReason::Stop).unwrap();
        assert_eq!(answer_of(&answer), "3");
        let call = read(&["```json\n{\"action\":\"list_databases\"}\n```"], DoneReason::Stop).unwrap();
        assert!(matches!(&call[..], [ModelEvent::ToolCall(call)] if call.name == "list_databases"), "{call:?}");
    }

    #[test]
    fn a_lone_surrogate_is_replaced() {
        let events = read(&[r#"{"action":"answer","text":"a\udc00b"}"#], DoneReason::Stop).unwrap();
        assert_eq!(answer_of(&events), "a\u{fffd}b");
    }
}

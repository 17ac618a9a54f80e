//! A run's trace as it is stored, encoded and decoded: the protocol's frames, `[{event, data}, ...]`, in a shorter
//! form.
//!
//! Consecutive frames that are pieces of one text become one entry, `{event, data: {text}, pieces: [bytes, ...]}`, and
//! the text of `answer_final`, which repeats all of its pieces, is null. An answer is thousands of pieces of a word
//! each, so this takes a quarter of the space and of the time to store. The catalog stores it as it is.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AskData, AskRenderer};
use crate::event::RunEvent;
use crate::protocols::{Paragraphs, json_text};
use crate::stored_log::split_pieces;

/// A frame of the stored trace, or several consecutive ones that are pieces of one text.
#[derive(Serialize)]
struct EncodedFrame<'a> {
    event: &'static str,
    data: AskData<'a>,
    /// The bytes of each piece, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<usize>,
}

/// Encodes a run's events as its stored trace; [`decode_trace`] restores the frames.
pub(crate) fn encode_trace<'a>(log: impl IntoIterator<Item = &'a RunEvent>) -> String {
    let mut renderer = AskRenderer { answer: Paragraphs::unkept() };
    let mut trace: Vec<EncodedFrame<'a>> = Vec::new();
    for (event, data) in log.into_iter().filter_map(|event| renderer.render(event)) {
        match (trace.last_mut(), data) {
            (
                Some(EncodedFrame { event: before, data: AskData::Piece { text: whole }, pieces }),
                AskData::Piece { text },
            ) if *before == event => {
                if pieces.is_empty() {
                    pieces.push(whole.len());
                }
                pieces.push(text.len());
                whole.to_mut().push_str(&text);
            }
            (_, data) => trace.push(EncodedFrame { event, data, pieces: Vec::new() }),
        }
    }
    json_text(&trace)
}

#[derive(Deserialize)]
struct StoredFrame {
    event: String,
    data: Value,
    #[serde(default)]
    pieces: Vec<usize>,
}

#[derive(Serialize)]
struct DecodedFrame<'a> {
    event: &'a str,
    data: Value,
}

/// Decodes a stored trace to one entry for each frame, `[{event, data}, ...]`. A text that is not such a trace is
/// returned unchanged.
pub fn decode_trace(stored: String) -> String {
    if !stored.contains("\"pieces\":[") && !stored.contains("\"text\":null") {
        return stored;
    }
    let Ok(entries) = serde_json::from_str::<Vec<StoredFrame>>(&stored) else { return stored };
    let mut answer = String::new();
    let mut frames: Vec<DecodedFrame<'_>> = Vec::new();
    for StoredFrame { event, data, pieces } in &entries {
        let frame = |data| DecodedFrame { event, data };
        let text = data["text"].as_str().unwrap_or_default();
        if event == "answer_delta" {
            answer.push_str(text);
        }
        match split_pieces(text, pieces) {
            Some(parts) => frames.extend(parts.into_iter().map(|part| frame(json!({ "text": part })))),
            None => {
                let mut data = data.clone();
                if event == "answer_final" && data.get("text").is_some_and(Value::is_null) {
                    data["text"] = json!(answer);
                }
                frames.push(frame(data));
            }
        }
    }
    serde_json::to_string(&frames).unwrap_or(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_frames_again() {
        let stored = r#"[{"event":"run_started","data":{"pieces":[1]}},{"event":"answer_delta","data":{"text":"Zoë \"is\""},"pieces":[2,3,4]},{"event":"answer_delta","data":{"text":"here"}},{"event":"answer_final","data":{"text":null,"sql_used":null}}]"#;
        let whole = r#"[{"event":"run_started","data":{"pieces":[1]}},{"event":"answer_delta","data":{"text":"Zo"}},{"event":"answer_delta","data":{"text":"ë "}},{"event":"answer_delta","data":{"text":"\"is\""}},{"event":"answer_delta","data":{"text":"here"}},{"event":"answer_final","data":{"text":"Zoë \"is\"here","sql_used":null}}]"#;
        assert_eq!(decode_trace(stored.into()), whole);
    }

    #[test]
    fn what_has_no_such_pieces_stays_as_it_is() {
        for text in [
            "",
            "[]",
            r#"[{"event":"answer_delta","data":{"text":"a"}}]"#,
            r#"[{"event":"tool_result","data":{"text":null,"result":{"pieces":[1,2]}}}]"#,
            r#"half of "pieces":[1"#,
        ] {
            assert_eq!(decode_trace(text.into()), text);
        }
        // Lengths that are not the text's: the text is kept.
        let damaged = r#"[{"event":"answer_delta","data":{"text":"ë"},"pieces":[1,1]}]"#;
        assert_eq!(decode_trace(damaged.into()), r#"[{"event":"answer_delta","data":{"text":"ë"}}]"#);
    }
}

//! A run's trace as it is stored: frames that follow each other and are pieces of one text are one entry, `{event,
//! data: {text}, pieces: [bytes, ...]}`, and the text of `answer_final`, which is all of its pieces, is null. An answer
//! is thousands of pieces of a word each; so it takes a quarter of the room and of the time to store.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Stored {
    event: String,
    data: Value,
    #[serde(default)]
    pieces: Vec<usize>,
}

#[derive(Serialize)]
struct Frame<'a> {
    event: &'a str,
    data: Value,
}

/// A stored trace with an entry a frame: `[{event, data}, ...]`.
pub fn whole_trace(stored: String) -> String {
    if !stored.contains("\"pieces\":[") && !stored.contains("\"text\":null") {
        return stored;
    }
    let Ok(entries) = serde_json::from_str::<Vec<Stored>>(&stored) else { return stored };
    let mut said = String::new();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for Stored { event, data, pieces } in &entries {
        let frame = |data| Frame { event, data };
        let text = data["text"].as_str().unwrap_or_default();
        if event == "answer_delta" {
            said.push_str(text);
        }
        match parts(text, pieces) {
            Some(parts) => frames.extend(parts.into_iter().map(|part| frame(json!({ "text": part })))),
            None => {
                let mut data = data.clone();
                if event == "answer_final" && data.get("text").is_some_and(Value::is_null) {
                    data["text"] = json!(said);
                }
                frames.push(frame(data));
            }
        }
    }
    serde_json::to_string(&frames).unwrap_or(stored)
}

/// The text in parts of so many bytes; `None` where it has no such parts.
fn parts<'a>(mut text: &'a str, lengths: &[usize]) -> Option<Vec<&'a str>> {
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (part, rest) = text.split_at_checked(*length)?;
        parts.push(part);
        text = rest;
    }
    (text.is_empty() && !parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_frames_again() {
        let stored = r#"[{"event":"run_started","data":{"pieces":[1]}},{"event":"answer_delta","data":{"text":"Zoë \"is\""},"pieces":[2,3,4]},{"event":"answer_delta","data":{"text":"here"}},{"event":"answer_final","data":{"text":null,"sql_used":null}}]"#;
        let whole = r#"[{"event":"run_started","data":{"pieces":[1]}},{"event":"answer_delta","data":{"text":"Zo"}},{"event":"answer_delta","data":{"text":"ë "}},{"event":"answer_delta","data":{"text":"\"is\""}},{"event":"answer_delta","data":{"text":"here"}},{"event":"answer_final","data":{"text":"Zoë \"is\"here","sql_used":null}}]"#;
        assert_eq!(whole_trace(stored.into()), whole);
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
            assert_eq!(whole_trace(text.into()), text);
        }
        // Lengths that are not the text's: the text is kept.
        let damaged = r#"[{"event":"answer_delta","data":{"text":"ë"},"pieces":[1,1]}]"#;
        assert_eq!(whole_trace(damaged.into()), r#"[{"event":"answer_delta","data":{"text":"ë"}}]"#);
    }
}

//! OpenAI's older Completions, which some libraries still send a question with: a prompt in, a text out. The request becomes one
//! of [`super::chat`]; the answer has its own chunks. Reference: <https://platform.openai.com/docs/api-reference/completions>.

use serde_json::{Value, json};

use super::chat::{self, ChatCompletionRequest, error_json, usage_json};
use super::fields::{FieldValues, check_names, check_value};
use super::json::parse_json;
use super::responses::BadRequest;
use super::run_end::{RunEnd, model_named};
use super::{Frame, Paragraphs, Renderer, add_assessment, kind_of};
use crate::event::{EventKind, RunErrorCode, RunEvent};

/// The fields that Chat Completions have too, with the same meaning, and the prompt.
const FIELDS: [&str; 12] = [
    "prompt",
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "user",
];
/// Those that are refused, unless their value asks for nothing.
const REFUSED: &[(&str, FieldValues)] = &[
    ("n", FieldValues::Only("1")),
    ("best_of", FieldValues::Only("1")),
    ("echo", FieldValues::Only("false")),
    ("logprobs", FieldValues::Only("null")),
    ("suffix", FieldValues::Only("\"\"")),
    ("logit_bias", FieldValues::Only("{}")),
];

/// Parses a body.
pub fn parse_request(body: &[u8]) -> Result<ChatCompletionRequest, BadRequest> {
    let body = parse_json(body)
        .map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))?;
    let Value::Object(mut fields) = body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(&body))));
    };
    check_names(&fields, "", FIELDS.into_iter().chain(REFUSED.iter().map(|(name, _)| *name)))?;
    for (name, neutral) in REFUSED {
        if let Some(value) = fields.remove(*name).filter(|value| !value.is_null()) {
            check_value(name, *neutral, "a prompt has one answer, which is a text", &value)?;
        }
    }
    let one_prompt = || BadRequest::invalid("prompt", "`prompt` must be a text, or a list of one text");
    let prompt = match fields.remove("prompt") {
        None | Some(Value::Null) => {
            return Err(BadRequest::new("missing_required_parameter", "prompt", "`prompt` is missing"));
        }
        Some(Value::String(text)) => text,
        Some(Value::Array(prompts)) => match prompts.as_slice() {
            [Value::String(text)] => text.clone(),
            _ => return Err(one_prompt()),
        },
        Some(_) => return Err(one_prompt()),
    };
    if prompt.trim().is_empty() {
        return Err(BadRequest::invalid("prompt", "`prompt` is empty; say something"));
    }
    let has_options = fields.get("stream_options").is_some_and(|options| !options.is_null());
    fields.insert("messages".to_owned(), json!([{ "role": "user", "content": prompt }]));
    let request = chat::parse_value(&Value::Object(fields))?;
    if has_options && !request.stream {
        return Err(BadRequest::invalid("stream_options", "`stream_options` goes with `stream`; leave it out"));
    }
    Ok(request)
}

/// Turns events into chunks, or into one completion.
#[derive(Debug)]
pub struct TextCompletionRenderer {
    include_usage: bool,
    head: Value,
    answer: Paragraphs,
    end: RunEnd,
}

impl TextCompletionRenderer {
    /// Creates a renderer; `include_usage` as in the request's `stream_options`.
    pub fn new(include_usage: bool) -> Self {
        Self { include_usage, head: Value::Null, answer: Paragraphs::default(), end: RunEnd::default() }
    }

    /// Returns why the run failed, if it did: its code, and what to do.
    pub fn failure(&self) -> Option<(RunErrorCode, &str)> {
        self.end.failure()
    }

    /// Returns the completion, once the run has ended.
    pub fn completion(&self) -> Value {
        let mut completion = self.piece(self.answer.text().unwrap_or_default(), Some(self.finish_reason()));
        completion["usage"] = usage_json(&self.end.usage);
        completion
    }

    fn piece(&self, text: &str, finish_reason: Option<&str>) -> Value {
        let mut piece = self.head.clone();
        piece["choices"] = json!([{ "text": text, "index": 0, "logprobs": null, "finish_reason": finish_reason }]);
        if finish_reason.is_some() {
            add_assessment(&mut piece, self.end.assessment.as_ref());
        }
        piece
    }

    fn chunk(&self, text: &str, finish_reason: Option<&str>) -> Frame {
        let mut chunk = self.piece(text, finish_reason);
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        Frame::unnamed(&chunk)
    }

    fn finish_reason(&self) -> &'static str {
        match (self.end.cut, self.end.filtered) {
            (true, _) => "length",
            (false, true) => "content_filter",
            (false, false) => "stop",
        }
    }

    fn finished(&self) -> Vec<Frame> {
        if let Some((_, message)) = self.end.failure() {
            return vec![Frame::unnamed(&error_json(message, self.end.failure_code()))];
        }
        let mut frames = vec![self.chunk("", Some(self.finish_reason()))];
        if self.include_usage {
            let mut usage = self.head.clone();
            usage["choices"] = json!([]);
            usage["usage"] = usage_json(&self.end.usage);
            frames.push(Frame::unnamed(&usage));
        }
        frames.push(Frame { event: None, data: "[DONE]".to_owned() });
        frames
    }
}

impl Renderer for TextCompletionRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.end.note(&event.kind);
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.head = json!({
                    "id": format!("cmpl-{}", started.run_id.simple()),
                    "object": "text_completion",
                    "created": event.at.timestamp(),
                    "model": model_named(started),
                    "system_fingerprint": null,
                });
                Vec::new()
            }
            EventKind::TextStarted { .. } => {
                self.answer.begin();
                Vec::new()
            }
            EventKind::TextDelta { text, .. } => {
                let text = self.answer.push(text);
                vec![self.chunk(&text, None)]
            }
            EventKind::RunFinished { .. } => self.finished(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_a_question() {
        for prompt in [json!("how many?"), json!(["how many?"])] {
            let body = json!({ "prompt": prompt, "max_tokens": 9, "n": 1, "echo": false, "suffix": null });
            let request = parse_request(body.to_string().as_bytes()).unwrap();
            assert_eq!((request.items.len(), request.max_output_tokens), (1, Some(9)));
        }
    }

    #[test]
    fn what_a_prompt_cannot_ask_for_is_refused_by_its_name() {
        for (name, value) in [
            ("prompt", json!(["a", "b"])),
            ("prompt", json!([1, 2])),
            ("n", json!(2)),
            ("best_of", json!(2)),
            ("echo", json!(true)),
            ("logprobs", json!(0)),
            ("suffix", json!("x")),
            ("logit_bias", json!({ "50256": -100 })),
            ("messages", json!([])),
            ("temperature", json!("hot")),
            ("stream_options", json!({ "include_usage": true })),
        ] {
            let mut body = json!({ "prompt": "how many?" });
            body[name] = value;
            let refused = parse_request(body.to_string().as_bytes()).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some(name), "{body}");
        }
    }
}

//! What is read of a provider's frames themselves, since genai does not pass it on: tokens of Anthropic's thinking, and pieces of
//! text in frames that genai cannot read because a character was cut in half between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use genai::chat::ChatOptions;
use parking_lot::Mutex;
use serde_json::Value;

use super::RemoteKind;
use crate::half_characters::marked;

/// Looks at the frames of one turn.
#[derive(Debug, Clone, Default)]
pub(super) struct FrameWatch {
    thinking_tokens: Arc<AtomicU64>,
    /// The last frame with half a character, its halves marked.
    cut: Arc<Mutex<Option<Vec<u8>>>>,
}

/// The texts of a frame, in which halves of characters are marked.
pub(super) struct MarkedPiece {
    pub(super) thinking: String,
    pub(super) text: String,
    /// Why the turn ends, where the frame says it.
    pub(super) stop: Option<String>,
}

impl FrameWatch {
    /// Returns options with which it sees the frames.
    pub(super) fn watching(&self, options: ChatOptions, kind: RemoteKind) -> ChatOptions {
        let (counted, cut) = (Arc::clone(&self.thinking_tokens), Arc::clone(&self.cut));
        options.with_raw_frame_fn(move |_, frame| {
            if frame.data.contains("\\ud") || frame.data.contains("\\uD") {
                *cut.lock() = marked(frame.data.as_bytes());
            }
            if kind != RemoteKind::Anthropic || frame.event != Some("message_delta") {
                return;
            }
            let data = frame.json().unwrap_or_default();
            let tokens = data.pointer("/usage/output_tokens_details/thinking_tokens");
            if let Some(tokens) = tokens.and_then(Value::as_u64) {
                counted.store(tokens, Ordering::Relaxed);
            }
        })
    }

    /// Returns the tokens of Anthropic's thinking so far.
    pub(super) fn thinking_tokens(&self) -> u64 {
        self.thinking_tokens.load(Ordering::Relaxed)
    }

    /// Returns the piece of the frame that genai could not read; `None` where half a character is not why, or the frame has more
    /// than a piece of text.
    pub(super) fn mended(&self, error: &genai::Error, kind: RemoteKind) -> Option<MarkedPiece> {
        let genai::Error::StreamParse { .. } = error else { return None };
        let frame: Value = serde_json::from_slice(&self.cut.lock().take()?).ok()?;
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        match kind {
            RemoteKind::OpenAi => {
                let choice = frame.pointer("/choices/0")?;
                let delta = choice.get("delta").filter(|delta| delta["tool_calls"].is_null())?;
                // A server that sends both sends the same.
                let thinking = Some(text(delta, "reasoning_content")).filter(|thinking| !thinking.is_empty());
                let thinking = thinking.unwrap_or_else(|| text(delta, "reasoning"));
                let stop = choice["finish_reason"].as_str().map(str::to_owned);
                Some(MarkedPiece { thinking, text: text(delta, "content"), stop })
            }
            RemoteKind::Anthropic => {
                let delta = &frame["delta"];
                matches!(delta["type"].as_str(), Some("text_delta" | "thinking_delta")).then(|| MarkedPiece {
                    thinking: text(delta, "thinking"),
                    text: text(delta, "text"),
                    stop: None,
                })
            }
            // Google's own servers cut no characters, and an end may stand beside a text.
            RemoteKind::Gemini => None,
        }
    }
}

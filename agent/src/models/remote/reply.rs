//! Reads a provider's stream as our events: pieces as they arrive, calls complete at the end, then the token counts.
//!
//! A stream that ends without the provider's final event is an error, and so is a reply that is too long.

use std::sync::Arc;

use async_stream::try_stream;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use genai::chat::{ChatStream, ChatStreamEvent, ContentPart, StopReason, StreamEnd, Usage};

use super::RemoteKind;
use super::calls::CallCollector;
use super::errors::{ErrorTranslator, ProviderRefusal};
use super::frames::{FrameWatch, MarkedPiece};
use super::thoughts::{ThoughtMemory, Thoughts};
use crate::error::{AgentError, Result};
use crate::models::cut_text::CutText;
use crate::models::{DoneReason, ModelEvent, TokenUsage};

/// Bytes of all pieces of one turn; ten times a model's longest output.
const MAX_TURN_BYTES: usize = 16 << 20;

/// Reads one turn.
pub(super) struct ReplyReader {
    pub(super) stream: ChatStream,
    pub(super) kind: RemoteKind,
    pub(super) translator: ErrorTranslator,
    pub(super) thoughts: Arc<ThoughtMemory>,
    pub(super) frames: FrameWatch,
}

impl ReplyReader {
    /// Returns the turn's events. A failure before the first piece is returned at once, since it may be retried.
    pub(super) async fn events(self) -> Result<BoxStream<'static, Result<ModelEvent>>, ProviderRefusal> {
        let mut events = Box::pin(self.read());
        match events.next().await {
            Some(Ok(first)) => {
                let rest = events.map(|event| event.map_err(|refusal| refusal.error));
                Ok(futures::stream::once(std::future::ready(Ok(first))).chain(rest).boxed())
            }
            Some(Err(refusal)) => Err(refusal),
            None => Err(ProviderRefusal::final_one(AgentError::Internal("a turn without an end".to_owned()))),
        }
    }

    fn read(self) -> impl Stream<Item = Result<ModelEvent, ProviderRefusal>> + Send + 'static {
        try_stream! {
            let ReplyReader { mut stream, kind, translator, thoughts, frames } = self;
            let mut calls = CallCollector::new(kind);
            let mut cut = CutText::default();
            let mut bytes = 0_usize;
            let mut has_said = false;
            let mut cut_stop = None;
            let end = loop {
                let event = match stream.next().await {
                    Some(Ok(event)) => event,
                    Some(Err(error)) => {
                        let mended = frames.mended(&error, kind).ok_or_else(|| translator.refusal(error));
                        let MarkedPiece { thinking, text, stop } = mended?;
                        bytes = bytes.saturating_add(thinking.len() + text.len());
                        if bytes > MAX_TURN_BYTES {
                            Err(too_long(&translator))?;
                        }
                        cut_stop = stop.map(StopReason::from).or(cut_stop);
                        has_said |= !text.is_empty();
                        for event in [cut.think(thinking, true)].into_iter().chain(cut.say(text, true)).flatten() {
                            yield event;
                        }
                        continue;
                    }
                    None => Err(broke_off(&translator))?,
                };
                bytes = bytes.saturating_add(size_of_piece(&event));
                if bytes > MAX_TURN_BYTES {
                    Err(too_long(&translator))?;
                }
                match event {
                    ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                        has_said = true;
                        for event in cut.say(chunk.content, false).into_iter().flatten() {
                            yield event;
                        }
                    }
                    ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                        if let Some(event) = cut.think(chunk.content, false) {
                            yield event;
                        }
                    }
                    ChatStreamEvent::ToolCallChunk(chunk) => {
                        calls.push(chunk.tool_call).map_err(|detail| translator.failed(detail))?;
                    }
                    ChatStreamEvent::End(end) => break end,
                    _ => {}
                }
            };
            for event in cut.finish().into_iter().flatten() {
                yield event;
            }
            let StreamEnd { captured_usage, captured_stop_reason, captured_content, .. } = end;
            let reason = match captured_stop_reason.or(cut_stop) {
                Some(StopReason::MaxTokens(_)) => DoneReason::Length,
                Some(StopReason::ContentFilter(_)) => DoneReason::Filtered,
                Some(StopReason::Other(why)) if !has_said && calls.is_empty() => {
                    Err(translator.failed(format!("it ended without an answer ({why})")))?
                }
                // Gemini says why in its last piece; genai makes up an end where that did not come.
                None if kind == RemoteKind::Gemini => Err(broke_off(&translator))?,
                _ => DoneReason::Stop,
            };
            let mut leading: Vec<ContentPart> = match kind {
                RemoteKind::Anthropic => captured_content.map(leading_thoughts).unwrap_or_default(),
                RemoteKind::OpenAi | RemoteKind::Gemini => Vec::new(),
            };
            for collected in calls.finish() {
                // Cut at the output limit, or by a filter: half a call is no call.
                if reason != DoneReason::Stop && !collected.is_whole {
                    continue;
                }
                if let Some(id) = &collected.call.id {
                    let leading = std::mem::take(&mut leading);
                    thoughts.keep(id, Thoughts { leading, ..collected.thoughts });
                }
                yield ModelEvent::ToolCall(collected.call);
            }
            let usage = tokens(captured_usage.unwrap_or_default(), frames.thinking_tokens());
            yield ModelEvent::Done { usage, reason };
        }
    }
}

fn too_long(translator: &ErrorTranslator) -> ProviderRefusal {
    translator.failed(format!("its reply is longer than {} MiB", MAX_TURN_BYTES >> 20))
}

fn broke_off(translator: &ErrorTranslator) -> ProviderRefusal {
    translator.failed("its reply broke off before the end; ask again".to_owned())
}

fn size_of_piece(event: &ChatStreamEvent) -> usize {
    match event {
        ChatStreamEvent::Chunk(chunk)
        | ChatStreamEvent::ReasoningChunk(chunk)
        | ChatStreamEvent::ThoughtSignatureChunk(chunk) => chunk.content.len(),
        ChatStreamEvent::ToolCallChunk(chunk) => chunk.tool_call.fn_arguments.as_str().map_or(0, str::len),
        ChatStreamEvent::Start | ChatStreamEvent::Heartbeat | ChatStreamEvent::End(_) => 0,
    }
}

/// Returns the thinking that precedes a turn's calls.
fn leading_thoughts(content: genai::chat::MessageContent) -> Vec<ContentPart> {
    let is_thought = |part: &ContentPart| {
        matches!(part, ContentPart::ThoughtSignature(_) | ContentPart::ReasoningContent(_) | ContentPart::Custom(_))
    };
    content.into_parts().into_iter().filter(is_thought).collect()
}

fn tokens(usage: Usage, thinking_tokens: u64) -> TokenUsage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or_default();
    let prompt = usage.prompt_tokens_details.unwrap_or_default();
    let reasoning = count(usage.completion_tokens_details.unwrap_or_default().reasoning_tokens).max(thinking_tokens);
    TokenUsage {
        input_tokens: count(usage.prompt_tokens),
        // Gemini counts a turn that only thought by its thinking alone.
        output_tokens: count(usage.completion_tokens).max(reasoning),
        cached_tokens: count(prompt.cached_tokens),
        cache_write_tokens: count(prompt.cache_creation_tokens),
        reasoning_tokens: reasoning,
    }
}

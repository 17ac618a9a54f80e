//! One renderer and one request parser a protocol. A renderer is a pure fold: no clock, no ids, no I/O.

pub mod adk;
pub mod ask;
pub mod chat;
pub mod holmes;
pub mod ksadk;
pub mod responses;

use crate::RunEvent;

/// One frame of a protocol's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The SSE `event:` name, where the protocol has one.
    pub event: Option<&'static str>,
    /// The SSE `data:` line or the NDJSON line, without its newline.
    pub data: String,
}

/// Turns a run's events into a protocol's frames.
pub trait Renderer: Send {
    /// The frames of one event; may be none.
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame>;
}

impl Frame {
    /// A frame with an `event:` line.
    pub fn named(event: &'static str, data: &serde_json::Value) -> Self {
        Self { event: Some(event), data: data.to_string() }
    }

    /// A frame of data only.
    pub fn unnamed(data: &serde_json::Value) -> Self {
        Self { event: None, data: data.to_string() }
    }

    /// The bytes of a server-sent event: one line of JSON, so nothing in it needs to be split.
    pub fn to_sse(&self) -> String {
        format!("{}\n", self.to_sse_lines())
    }

    /// Its lines without the empty one that ends it.
    pub fn to_sse_lines(&self) -> String {
        match self.event {
            Some(event) => format!("event: {event}\ndata: {}\n", self.data),
            None => format!("data: {}\n", self.data),
        }
    }
}

/// All that the model says in a run as one text: each message begins a paragraph.
#[derive(Debug, Default)]
pub(crate) struct Paragraphs {
    text: String,
    begins: bool,
}

impl Paragraphs {
    /// A message begins.
    pub(crate) fn begin(&mut self) {
        self.begins = !self.text.is_empty();
    }

    /// A piece of it; what is to be passed on.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let piece = if std::mem::take(&mut self.begins) { format!("\n\n{piece}") } else { piece.to_owned() };
        self.text.push_str(&piece);
        piece
    }

    /// All pieces so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

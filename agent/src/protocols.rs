//! A request parser and a renderer for each protocol. A renderer is a pure fold: no clock, no ids, no I/O.

pub mod a2a;
pub mod adk;
pub mod ag_ui;
pub mod ask;
pub mod chat;
pub mod cube;
pub mod fields;
pub mod holmes;
pub mod json;
pub mod ksadk;
mod message_fields;
pub mod messages;
pub mod openai_fields;
pub mod responses;
pub(crate) mod run_end;
pub mod text_completion;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::assessment::ASSESSMENT;
use crate::event::{ResultTicket, RunEvent, ToolResult};

/// The extension field of a result's chart, a Vega-Lite specification without its rows.
pub const VEGA_SPEC: &str = "vegaSpec";

/// The extension field of a result's ticket, with which its rows can be fetched over Flight.
pub const TICKET: &str = "ticket";
/// The field beside it, true where the rows that can be fetched are not all.
pub const TICKET_TRUNCATED: &str = "ticket_truncated";

/// One frame of a protocol's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The SSE `event:` name, where the protocol has one.
    pub event: Option<&'static str>,
    /// The SSE `data:` line or the NDJSON line, without its newline.
    pub data: String,
}

/// Turns the events of a run into a protocol's frames.
pub trait Renderer: Send {
    /// Returns the frames of one event; there may be none.
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame>;

    /// Appends the frames of one event as server-sent events. The bytes are those of [`Renderer::frame`]: a renderer has this of
    /// its own to write the pieces of an answer, which nearly all events are, without making frames of them.
    fn push_sse(&mut self, event: &RunEvent, to: &mut Vec<u8>) {
        push_frames(self, event, to);
    }

    /// Appends the lines of the only frame of a piece of an answer, without the empty line that ends it, and returns true; or
    /// appends nothing and returns false, and [`Renderer::frame`] is asked. For streams whose frames have ids.
    fn push_piece(&mut self, _event: &RunEvent, _to: &mut Vec<u8>) -> bool {
        false
    }
}

/// Appends the frames of one event as server-sent events.
pub(crate) fn push_frames<R: Renderer + ?Sized>(renderer: &mut R, event: &RunEvent, to: &mut Vec<u8>) {
    for frame in renderer.frame(event) {
        frame.push_sse(to);
    }
}

/// Appends a server-sent event, as a frame of this data is written.
pub(crate) fn push_data(event: Option<&'static str>, data: &(impl Serialize + ?Sized), to: &mut Vec<u8>) {
    push_data_lines(event, data, to);
    to.push(b'\n');
}

/// Appends the lines of a server-sent event without the empty one that ends it.
pub(crate) fn push_data_lines(event: Option<&'static str>, data: &(impl Serialize + ?Sized), to: &mut Vec<u8>) {
    push_name(event, to);
    to.extend_from_slice(b"data: ");
    push_json(data, to);
    to.push(b'\n');
}

fn push_name(event: Option<&'static str>, to: &mut Vec<u8>) {
    if let Some(event) = event {
        to.extend_from_slice(b"event: ");
        to.extend_from_slice(event.as_bytes());
        to.push(b'\n');
    }
}

/// Appends `data` as [`json_text`] returns it.
pub(crate) fn push_json(data: &(impl Serialize + ?Sized), to: &mut Vec<u8>) {
    let begun = to.len();
    if serde_json::to_writer(&mut *to, data).is_err() {
        to.truncate(begun);
        to.extend_from_slice(b"null");
    }
}

impl Frame {
    /// Creates a frame with an `event:` line.
    pub fn named(event: &'static str, data: &impl Serialize) -> Self {
        Self { event: Some(event), data: json_text(data) }
    }

    /// Creates a frame of data only.
    pub fn unnamed(data: &impl Serialize) -> Self {
        Self { event: None, data: json_text(data) }
    }

    /// Appends the bytes of a server-sent event. The data is one line of JSON, so nothing in it needs to be split.
    pub fn push_sse(&self, to: &mut Vec<u8>) {
        self.push_lines(to);
        to.push(b'\n');
    }

    /// Appends the lines of a server-sent event without the empty one that ends it.
    pub fn push_lines(&self, to: &mut Vec<u8>) {
        push_name(self.event, to);
        to.extend_from_slice(b"data: ");
        to.extend_from_slice(self.data.as_bytes());
        to.push(b'\n');
    }
}

/// Adds the chart of a result that has one.
pub(crate) fn add_chart(to: &mut Value, result: &ToolResult) {
    if let Some(chart) = &result.chart {
        to[VEGA_SPEC] = chart.clone();
    }
}

/// Adds the ticket of a result whose rows are kept.
pub(crate) fn add_ticket(to: &mut Value, ticket: Option<&ResultTicket>) {
    let Some(ticket) = ticket else { return };
    to[TICKET] = Value::from(ticket.text.as_str());
    if ticket.truncated {
        to[TICKET_TRUNCATED] = Value::from(true);
    }
}

/// Adds what an answer rests on and how far it is to be trusted, where that is known.
pub(crate) fn add_assessment(to: &mut Value, assessment: Option<&Value>) {
    if let Some(assessment) = assessment {
        to[ASSESSMENT] = assessment.clone();
    }
}

/// Returns `data` as JSON. Whatever JSON cannot express, which nothing here contains, becomes `null`.
pub(crate) fn json_text(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned())
}

/// Names the kind of a JSON value for a message: `a string`, `an array`.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Everything the model says in a run as one text; each message begins a paragraph.
#[derive(Debug, Default)]
pub(crate) struct Paragraphs {
    text: String,
    is_unkept: bool,
    has_begun: bool,
    begins: bool,
}

impl Paragraphs {
    /// Creates paragraphs whose whole text is not needed.
    pub(crate) fn unkept() -> Self {
        Self { is_unkept: true, ..Self::default() }
    }

    /// Begins a message.
    pub(crate) fn begin(&mut self) {
        self.begins = self.has_begun;
    }

    /// Adds a piece of the message. Returns what to pass on.
    pub(crate) fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        let begins = std::mem::take(&mut self.begins);
        let piece: Cow<'a, str> = if begins { format!("\n\n{piece}").into() } else { piece.into() };
        self.has_begun |= !piece.is_empty();
        if !self.is_unkept {
            self.text.push_str(&piece);
        }
        piece
    }

    /// Returns all pieces so far; `None` where they are not kept.
    pub(crate) fn text(&self) -> Option<&str> {
        (!self.is_unkept).then_some(self.text.as_str())
    }
}

//! One renderer and one request parser a protocol. A renderer is a pure fold: no clock, no ids, no I/O.

pub mod ask;

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

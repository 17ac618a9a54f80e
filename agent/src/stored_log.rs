//! A run's event log as it is stored, encoded and decoded: its events, `[{seq, at, event, data}, ...]`, in a shorter form.
//!
//! Consecutive events that are pieces of one text become one, with the text of all and the bytes of each:
//! `{..., pieces: [bytes, ...], after: [milliseconds, ...]}`. `after` says how long after the one before it each further piece
//! came, unless all came at once. An answer is thousands of pieces of a word each: this takes a tenth of the space, and of the time
//! to store a run again and again while it says something.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::event::{EventKind, RunEvent};

/// A stored event, or several consecutive ones that are pieces of one text.
#[derive(Serialize)]
struct EncodedEvent<'a> {
    seq: u64,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
    #[serde(flatten)]
    kind: Cow<'a, EventKind>,
    /// The bytes of each piece, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<usize>,
    #[serde(skip_serializing_if = "came_at_once")]
    after: Vec<i64>,
    /// When the last of them came.
    #[serde(skip)]
    last_at: DateTime<Utc>,
}

fn came_at_once(after: &[i64]) -> bool {
    after.iter().all(|milliseconds| *milliseconds == 0)
}

impl<'a> EncodedEvent<'a> {
    fn new(event: &'a RunEvent) -> Self {
        let (kind, at) = (Cow::Borrowed(&event.kind), event.at);
        Self { seq: event.seq, at, kind, pieces: Vec::new(), after: Vec::new(), last_at: at }
    }

    /// Takes in the next event, if both are pieces of the same text.
    fn takes(&mut self, next: &RunEvent) -> bool {
        let (Some(before), Some(piece)) = (SaidPiece::of(&self.kind), SaidPiece::of(&next.kind)) else { return false };
        let is_next = next.seq == self.seq + self.pieces.len().max(1) as u64;
        if !is_next || (before.is_thinking, before.item_id) != (piece.is_thinking, piece.item_id) {
            return false;
        }
        if self.pieces.is_empty() {
            self.pieces.push(before.text.len());
        }
        self.pieces.push(piece.text.len());
        self.after.push(next.at.timestamp_millis() - self.last_at.timestamp_millis());
        self.last_at = next.at;
        if let EventKind::TextDelta { text, .. } | EventKind::ThinkingDelta { text, .. } = self.kind.to_mut() {
            text.push_str(piece.text);
        }
        true
    }
}

/// A piece of a text.
struct SaidPiece<'a> {
    is_thinking: bool,
    item_id: &'a Arc<str>,
    text: &'a str,
}

impl<'a> SaidPiece<'a> {
    fn of(kind: &'a EventKind) -> Option<Self> {
        match kind {
            EventKind::TextDelta { item_id, text } => Some(Self { is_thinking: false, item_id, text }),
            EventKind::ThinkingDelta { item_id, text } => Some(Self { is_thinking: true, item_id, text }),
            _ => None,
        }
    }

    /// Returns the event of a part of it.
    fn part(&self, text: &str) -> EventKind {
        let (item_id, text) = (Arc::clone(self.item_id), text.to_owned());
        match self.is_thinking {
            true => EventKind::ThinkingDelta { item_id, text },
            false => EventKind::TextDelta { item_id, text },
        }
    }
}

/// Encodes a run's events as its stored log; [`decode_log`] restores them.
pub(crate) fn encode_log<'a>(log: impl IntoIterator<Item = &'a RunEvent>) -> String {
    let mut encoded: Vec<EncodedEvent<'a>> = Vec::new();
    for event in log {
        if !encoded.last_mut().is_some_and(|before| before.takes(event)) {
            encoded.push(EncodedEvent::new(event));
        }
    }
    // Events hold nothing that JSON cannot express.
    serde_json::to_string(&encoded).unwrap_or_else(|_| "[]".to_owned())
}

#[derive(Deserialize)]
struct StoredEvent {
    seq: u64,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
    #[serde(flatten)]
    kind: EventKind,
    #[serde(default)]
    pieces: Vec<usize>,
    #[serde(default)]
    after: Vec<i64>,
}

/// Decodes a stored log, also one that was stored without this form. Errors: it is no log.
pub(crate) fn decode_log(stored: &str) -> serde_json::Result<Vec<RunEvent>> {
    let stored: Vec<StoredEvent> = serde_json::from_str(stored)?;
    let mut log = Vec::with_capacity(stored.len());
    for StoredEvent { seq, at, kind, pieces, after } in stored {
        let parts: Option<Vec<EventKind>> = SaidPiece::of(&kind).and_then(|piece| {
            let parts = split_pieces(piece.text, &pieces)?;
            Some(parts.into_iter().map(|part| piece.part(part)).collect())
        });
        let Some(parts) = parts else {
            log.push(RunEvent { seq, at, kind });
            continue;
        };
        let (mut at, mut after) = (at, std::iter::once(0).chain(after));
        for (seq, kind) in (seq..).zip(parts) {
            let passed = TimeDelta::try_milliseconds(after.next().unwrap_or_default());
            at = passed.and_then(|passed| at.checked_add_signed(passed)).unwrap_or(at);
            log.push(RunEvent { seq, at, kind });
        }
    }
    Ok(log)
}

/// Splits the text into pieces of these lengths in bytes; `None` where they do not make up the text.
pub(crate) fn split_pieces<'a>(mut text: &'a str, lengths: &[usize]) -> Option<Vec<&'a str>> {
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
    use crate::event::TextPhase;

    fn log() -> Vec<RunEvent> {
        let text = |item: &str, text: &str| EventKind::TextDelta { item_id: item.into(), text: text.to_owned() };
        let thought = |text: &str| EventKind::ThinkingDelta { item_id: "rs_1".into(), text: text.to_owned() };
        let done = |text: &str| EventKind::TextDone {
            item_id: "msg_1".to_owned(),
            text: text.to_owned(),
            phase: TextPhase::FinalAnswer,
        };
        let kinds = [
            (0, EventKind::LlmCallStarted { iteration: 0 }),
            (5, thought("let ")),
            (5, thought("me")),
            (7, text("msg_1", "Zo")),
            (7, text("msg_1", "ë \"")),
            (7, text("msg_1", "")),
            (900, text("msg_1", "is\"")),
            (890, text("msg_1", " here")),
            (890, text("msg_2", "x")),
            (891, done("Zoë \"is\" here")),
            (891, text("msg_2", "y")),
        ];
        let at = |milliseconds| DateTime::<Utc>::default() + TimeDelta::milliseconds(milliseconds);
        (0..).zip(kinds).map(|(seq, (milliseconds, kind))| RunEvent { seq, at: at(milliseconds), kind }).collect()
    }

    #[test]
    fn pieces_are_events_again() {
        let log = log();
        let encoded = encode_log(&log);
        assert_eq!(decode_log(&encoded).unwrap(), log);
        assert_eq!(encoded.matches("\"seq\"").count(), 6, "{encoded}");
        assert!(encoded.contains(r#""pieces":[4,2]}"#) && encoded.contains(r#""after":[0,0,893,-10]"#), "{encoded}");
        for from in 0..log.len() {
            let rest = &log[from..];
            assert_eq!(decode_log(&encode_log(rest)).unwrap(), rest);
        }
    }

    #[test]
    fn a_log_that_was_stored_event_by_event_is_read() {
        let log = log();
        assert_eq!(decode_log(&serde_json::to_string(&log).unwrap()).unwrap(), log);
        assert!(decode_log("[]").unwrap().is_empty());
        assert!(decode_log("[{").is_err());
    }

    #[test]
    fn lengths_that_are_not_the_texts_leave_it_whole() {
        let stored = r#"[{"seq":3,"at":0,"event":"text_delta","data":{"item_id":"a","text":"ë"},"pieces":[1,1]}]"#;
        let kind = EventKind::TextDelta { item_id: "a".into(), text: "ë".to_owned() };
        assert_eq!(decode_log(stored).unwrap(), [RunEvent { seq: 3, at: DateTime::default(), kind }]);
    }

    #[test]
    fn a_gap_is_kept() {
        let mut log = log();
        log.remove(4);
        assert_eq!(decode_log(&encode_log(&log)).unwrap(), log);
    }
}

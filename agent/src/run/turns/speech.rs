//! The text and the thinking of one turn, as events. Text is passed on as it arrives, without leading white space; an
//! answer that must fit a schema is held back until it has been checked.

use std::sync::Arc;

use uuid::Uuid;

use crate::event::{EventKind, TextPhase};

/// The number of the first item of a run that begins again: higher than those of the items that a run has.
const FIRST_AGAIN: u32 = 0x800;

/// Creates the ids of a run's items, the same for every reader and every replay.
pub(super) struct ItemIds {
    run: String,
    next: u32,
}

impl ItemIds {
    /// Returns the ids of a run. One that begins again has others than before: who approves a call has seen that very call.
    pub(super) fn of_run(run_id: Uuid, begins_again: bool) -> Self {
        Self { run: run_id.simple().to_string(), next: if begins_again { FIRST_AGAIN } else { 0 } }
    }

    /// Returns the next id, such as `msg_<run><number>`. That of a call has 40 characters, the most that OpenAI takes: clients
    /// send their conversation on to other servers.
    pub(super) fn next(&mut self, prefix: &str) -> String {
        let id = format!("{prefix}_{}{:03x}", self.run, self.next);
        self.next += 1;
        id
    }
}

/// An item that is not complete.
struct OpenItem {
    item_id: Arc<str>,
    text: String,
}

/// One turn's text and thinking.
pub(super) struct Speech {
    held: bool,
    held_text: String,
    thinking: Option<OpenItem>,
    text: Option<OpenItem>,
}

impl Speech {
    pub(super) fn new(held: bool) -> Self {
        Self { held, held_text: String::new(), thinking: None, text: None }
    }

    pub(super) fn think(&mut self, piece: String, ids: &mut ItemIds, mut emit: impl FnMut(EventKind)) {
        if self.text.is_some() {
            // Thinking ends where text begins, in every protocol.
            return;
        }
        let item = self.thinking.get_or_insert_with(|| {
            let item_id = ids.next("rs");
            emit(EventKind::ThinkingStarted { item_id: item_id.clone() });
            OpenItem { item_id: item_id.into(), text: String::new() }
        });
        item.text.push_str(&piece);
        emit(EventKind::ThinkingDelta { item_id: Arc::clone(&item.item_id), text: piece });
    }

    pub(super) fn say(&mut self, mut piece: String, ids: &mut ItemIds, emit: impl FnMut(EventKind)) {
        if self.text.is_none() && self.held_text.is_empty() {
            piece.drain(..piece.len() - piece.trim_start().len());
        }
        if piece.is_empty() {
            return;
        }
        if self.held {
            self.held_text.push_str(&piece);
        } else {
            self.say_more(piece, ids, emit);
        }
    }

    /// Adds a piece of text as it is.
    pub(super) fn say_more(&mut self, piece: String, ids: &mut ItemIds, mut emit: impl FnMut(EventKind)) {
        // Thinking ends where text begins.
        self.end_thinking(&mut emit);
        let item = self.text.get_or_insert_with(|| {
            let item_id = ids.next("msg");
            emit(EventKind::TextStarted { item_id: item_id.clone() });
            OpenItem { item_id: item_id.into(), text: String::new() }
        });
        item.text.push_str(&piece);
        emit(EventKind::TextDelta { item_id: Arc::clone(&item.item_id), text: piece });
    }

    pub(super) fn has_spoken(&self) -> bool {
        self.text.is_some()
    }

    /// Returns the text so far; empty where it is held back.
    pub(super) fn said(&self) -> &str {
        self.text.as_ref().map_or("", |item| item.text.as_str())
    }

    /// Ends open items. Returns the text's item, if it was emitted, and the text, emitted or held back.
    pub(super) fn finish(mut self, phase: TextPhase, mut emit: impl FnMut(EventKind)) -> (Option<String>, String) {
        self.end_thinking(&mut emit);
        match self.text {
            Some(OpenItem { item_id, text }) => {
                let item_id = item_id.to_string();
                emit(EventKind::TextDone { item_id: item_id.clone(), text: text.clone(), phase });
                (Some(item_id), text)
            }
            None => (None, self.held_text),
        }
    }

    fn end_thinking(&mut self, emit: &mut impl FnMut(EventKind)) {
        if let Some(OpenItem { item_id, text }) = self.thinking.take() {
            emit(EventKind::ThinkingDone { item_id: item_id.to_string(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_call_is_no_longer_than_openai_takes() {
        let run_id = Uuid::now_v7();
        let mut ids = ItemIds::of_run(run_id, false);
        let first: Vec<String> = (0..3).map(|_| ids.next("call")).collect();
        assert!(first.iter().all(|id| id.len() == 40), "{first:?}");
        assert!(first[0] < first[1] && first[1] < first[2], "{first:?}");
        let again = ItemIds::of_run(run_id, true).next("call");
        assert!(again.len() == 40 && !first.contains(&again), "{again}");
    }
}

//! What a model says, where its server cuts characters in half between two pieces.

use super::ModelEvent;
use crate::half_characters::PieceJoiner;

/// The thinking and the text of one turn, as their pieces arrive.
#[derive(Debug, Default)]
pub(super) struct CutText {
    thinking: PieceJoiner,
    text: PieceJoiner,
}

impl CutText {
    /// Takes in a piece of thinking; `is_marked` says whether halves of characters are marked in it.
    pub(super) fn think(&mut self, piece: String, is_marked: bool) -> Option<ModelEvent> {
        Some(self.thinking.push(piece, is_marked)).filter(|piece| !piece.is_empty()).map(ModelEvent::Thinking)
    }

    /// Takes in a piece of text, with which thinking ends.
    pub(super) fn say(&mut self, piece: String, is_marked: bool) -> [Option<ModelEvent>; 2] {
        if piece.is_empty() {
            return [None, None];
        }
        let said = Some(self.text.push(piece, is_marked)).filter(|piece| !piece.is_empty());
        [self.thinking.finish().map(ModelEvent::Thinking), said.map(ModelEvent::Text)]
    }

    /// Returns what remains once no piece follows.
    pub(super) fn finish(&mut self) -> [Option<ModelEvent>; 2] {
        [self.thinking.finish().map(ModelEvent::Thinking), self.text.finish().map(ModelEvent::Text)]
    }
}

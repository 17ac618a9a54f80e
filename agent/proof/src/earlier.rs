//! What an answer may rest on beside the rows of its own run: rows that earlier runs of the conversation have read, and what
//! was said in it, also by an application's own tools. Where the run has rows of its own, a sentence must compare them with
//! something, or speak of what was before.

use uuid::Uuid;

use super::tokens::{ShareScale, TextToken, TextTokenKind, find_word, tokens_in};
use super::{ProofOrigin, Prover, TokenPlace};

/// Numbers of a conversation that are kept.
const MAX_SAID: usize = 2_000;
/// Words by which a sentence speaks of more than the rows of its own run.
const REFERS: [&str; 24] = [
    "than",
    "compared",
    "comparison",
    "before",
    "earlier",
    "previous",
    "previously",
    "last",
    "from",
    "versus",
    "vs",
    "instead",
    "while",
    "whereas",
    "again",
    "still",
    "said",
    "mentioned",
    "asked",
    "above",
    "below",
    "target",
    "goal",
    "against",
];

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct EarlierConversation {
    /// Of the rows of earlier runs.
    rows: Option<Box<Prover>>,
    said: Vec<TextToken>,
    said_text: String,
}

impl EarlierConversation {
    /// Adds the rows of a call of an earlier run.
    pub(super) fn add_result(&mut self, run_id: Uuid, call_index: u32, result: &serde_json::Value) {
        self.rows.get_or_insert_default().add_rows(Some(run_id), call_index, None, result);
    }

    /// Adds what was said.
    pub(super) fn add_said(&mut self, text: &str) {
        self.said.extend(tokens_in(text));
        self.said.truncate(MAX_SAID);
        self.said_text.push_str(&text.to_lowercase());
        self.said_text.push('\n');
    }

    /// Returns the prover of the rows of earlier runs.
    pub(super) fn rows(&self) -> Option<&Prover> {
        self.rows.as_deref().filter(|rows| rows.has_rows())
    }

    /// Returns what was said, in lower case.
    pub(super) fn said_text(&self) -> &str {
        &self.said_text
    }

    /// Returns what proves a number or a date by what was before this run.
    pub(super) fn origin(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let by_rows = self.rows().map(|rows| match rows.origin(token, place) {
            // Only cells say of which run they are.
            ProofOrigin::RowCount { .. } | ProofOrigin::Query { .. } => ProofOrigin::Conversation,
            other => other,
        });
        by_rows.filter(|origin| *origin != ProofOrigin::Unproven).or_else(|| {
            let is_said = self.said.iter().any(|known| says(known, token)) || token.stands_in(&self.said_text);
            is_said.then_some(ProofOrigin::Conversation)
        })
    }
}

/// Whether what was said is what an answer says, which may be rounded.
fn says(known: &TextToken, token: &TextToken) -> bool {
    match (&known.kind, &token.kind) {
        (TextTokenKind::Number(known), TextTokenKind::Number(number)) if known.is_percent == number.is_percent => {
            number.stands_for(known.value, ShareScale::Percent)
        }
        (TextTokenKind::Number(known), TextTokenKind::Number(number)) => {
            number.stands_for(known.value, ShareScale::Unknown)
        }
        _ => token.is_said_by(known),
    }
}

/// Whether a sentence speaks of more than the rows of its own run.
pub(super) fn refers_back(sentence: &str) -> bool {
    REFERS.iter().any(|word| find_word(sentence, word).is_some())
}

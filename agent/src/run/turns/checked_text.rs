//! The text of a turn on its way to its readers: a sentence with a number waits until it is complete, and is corrected
//! where it contradicts the rows that the run has read. Other text passes as it arrives.

use std::sync::Arc;

use querent_proof::{MAX_CHECKED, ProofLink, ProofOrigin, Prover, sentence_end};

use super::Turns;

/// Expressions of one answer that are computed again.
const MAX_EXPRESSIONS: usize = 32;
/// How much what the engine computes may differ from what was found, relative to it.
const TOLERANCE: f64 = 1e-9;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CheckedText {
    /// The sentence so far.
    sentence: String,
    /// Bytes of it that were passed on.
    said: usize,
    /// What was written, and what stands there now.
    corrections: Vec<(String, String)>,
    /// Whether a fence is open: what stands in it is shown as it is.
    is_fenced: bool,
    /// Bytes of the sentences that have ended.
    ended: usize,
}

impl CheckedText {
    /// Takes in a piece. Returns what can be passed on.
    pub(super) async fn push(&mut self, piece: String, prover: &Arc<Prover>) -> String {
        if !prover.has_rows() || self.ended >= MAX_CHECKED {
            let waited = self.sentence.split_off(self.said);
            (self.sentence, self.said) = (String::new(), 0);
            return if waited.is_empty() { piece } else { waited + &piece };
        }
        self.sentence.push_str(&piece);
        let mut ready = String::new();
        while self.ended < MAX_CHECKED
            && let Some(end) = sentence_end(&self.sentence)
        {
            let rest = self.sentence.split_off(end);
            self.ended += end;
            self.pass_on(prover, &mut ready).await;
            self.sentence = rest;
            self.said = 0;
        }
        let waits = self.ended < MAX_CHECKED && self.sentence[self.said..].contains(|c: char| c.is_ascii_digit());
        if !waits {
            ready.push_str(&self.sentence[self.said..]);
            self.said = self.sentence.len();
        }
        ready
    }

    /// Returns what waits, where nothing follows.
    pub(super) async fn finish(&mut self, prover: &Arc<Prover>) -> String {
        let mut ready = String::new();
        self.pass_on(prover, &mut ready).await;
        self.sentence.clear();
        self.said = 0;
        ready
    }

    async fn pass_on(&mut self, prover: &Arc<Prover>, ready: &mut String) {
        let fences = self.sentence.matches("```").count();
        let is_shown = self.is_fenced || fences > 0;
        self.is_fenced ^= !fences.is_multiple_of(2);
        if self.said >= self.sentence.len() {
            return;
        }
        if is_shown {
            ready.push_str(&self.sentence[self.said..]);
            return;
        }
        let (prover, sentence, said) = (Arc::clone(prover), self.sentence.clone(), self.said);
        let (text, corrections) = on_own_thread(move || prover.correct(&sentence, said)).await;
        ready.push_str(&text);
        self.corrections.extend(corrections);
    }

    /// Takes what was corrected.
    pub(super) fn take_corrections(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.corrections)
    }
}

impl Turns<'_> {
    /// Links the parts of the answer to what proves them; arithmetic is computed again by the engine.
    pub(super) async fn proof_of(&self, text: &str, corrections: &[(String, String)]) -> Vec<ProofLink> {
        let mut links = self.links_of(text, corrections).await;
        for link in
            links.iter_mut().filter(|link| matches!(link.origin, ProofOrigin::Expression { .. })).take(MAX_EXPRESSIONS)
        {
            let ProofOrigin::Expression { expression, value, .. } = &link.origin else { continue };
            let computed = self.context.compute(expression).await;
            if !computed.is_some_and(|computed| (computed - value).abs() <= TOLERANCE * value.abs().max(1.0)) {
                link.origin = ProofOrigin::Unproven;
            }
        }
        links
    }

    /// Links the parts of a text.
    pub(super) async fn links_of(&self, text: &str, corrections: &[(String, String)]) -> Vec<ProofLink> {
        let (prover, text, corrections) = (Arc::clone(&self.prover), text.to_owned(), corrections.to_vec());
        on_own_thread(move || prover.links(&text, &corrections)).await
    }
}

/// Runs what may keep a processor busy for long on a thread that serves no other run. A panic there is one here; where the
/// runtime ends before its turn comes, the run that waits ends with it.
async fn on_own_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_where_its_language_ends_it() {
        for (text, first) in [
            ("There were 3. Then none", "There were 3. "),
            ("共有3个。其中", "共有3个。"),
            ("3件です！次", "3件です！"),
            ("いくつ？", "いくつ？"),
        ] {
            assert_eq!(sentence_end(text).map(|end| &text[..end]), Some(first));
        }
        assert_eq!(sentence_end("共有3个"), None);
        let listed = "东京、".repeat(400);
        assert!(sentence_end(&listed).is_some_and(|end| end < 700), "one without an end is cut");
    }
}

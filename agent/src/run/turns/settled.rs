//! The end of an answer: how far it is to be trusted, and what is said in its place where that is less than the settings
//! ask for. No model is asked about itself.

use querent_proof::{ProofLink, ProofOrigin};

use super::Turns;
use super::earlier::{evidence_of, rests_on_conversation};
use super::readings::choices;
use crate::confidence::{AnswerEvidence, Confidence, ConfidenceFit};
use crate::coverage::declines;
use crate::sql_text::one_line;

/// Characters of a query that a held-back answer shows.
const SHOWN_CHARS: usize = 200;
/// Tables that it names.
const NAMED_TABLES: usize = 5;

impl Turns<'_> {
    /// Whether the text of an answer waits until its confidence is known.
    pub(super) fn holds_answers(&self) -> bool {
        self.structured.is_none() && self.task.config.answer_threshold.is_set()
    }

    /// Says an answer that was held, or in its place why it is held back.
    pub(super) async fn settle(&mut self, text: &str) {
        let proof = self.links_of(text, &[]).await;
        self.note_proof(&proof);
        let confidence = self.evidence.confidence(self.fit());
        let looked = self.has_looked_at_data();
        let says_so = !self.evidence.missing.is_empty() && declines(text);
        if looked && !says_so && self.task.config.answer_threshold.holds_back(&confidence) {
            self.assessment.held_back = true;
            let instead = self.doubtful_text(&confidence);
            self.say_held(instead);
        } else {
            let note = self.note_of(text).unwrap_or_default();
            self.say_held(format!("{text}{note}"));
        }
        self.assessment.confidence = looked.then_some(confidence);
    }

    /// Adds the confidence and the readings to what is said beside the answer.
    pub(super) fn assess(&mut self, proof: &[ProofLink]) {
        self.assessment.readings = self.readings();
        let AnswerEvidence { missing, unknown_names, .. } = &self.evidence;
        self.assessment.missing = missing.iter().chain(unknown_names).cloned().collect();
        if !self.holds_answers() || self.has_said_rows {
            self.note_proof(proof);
            let confidence = self.evidence.confidence(self.fit());
            self.assessment.confidence = self.has_looked_at_data().then_some(confidence);
        }
        self.assessment.features = self.evidence.features();
    }

    /// Takes in what the answer is proven by: how much of it is not, and what it rests on where no query of its own ran.
    fn note_proof(&mut self, proof: &[ProofLink]) {
        self.evidence.is_of_conversation = rests_on_conversation(proof);
        if self.evidence.result.is_none() {
            self.evidence.result = evidence_of(&self.earlier, proof);
        }
        let unproven = proof.iter().filter(|link| link.origin == ProofOrigin::Unproven).count();
        self.evidence.unproven = u32::try_from(unproven).unwrap_or(u32::MAX);
    }

    /// Whether the answer is about data: a greeting has no confidence.
    fn has_looked_at_data(&self) -> bool {
        let AnswerEvidence { result, failed_queries, unproven, is_of_conversation, .. } = &self.evidence;
        result.is_some() || *failed_queries > 0 || *unproven > 0 || *is_of_conversation
    }

    /// Returns the coefficients, where they were fitted to this model.
    fn fit(&self) -> Option<&ConfidenceFit> {
        let fit = self.task.config.confidence.as_ref()?;
        (fit.model == self.task.model.provider.model_id()).then_some(fit)
    }

    /// Returns the answer without what was said below it.
    pub(super) fn without_note<'t>(&self, text: &'t str) -> &'t str {
        text.strip_suffix(self.note_said.as_str()).unwrap_or(text)
    }

    /// Says that there is no answer that can be trusted, and what is known instead: what of the question is missing, the
    /// readings as choices, else what speaks against the answer that there is.
    fn doubtful_text(&mut self, confidence: &Confidence) -> String {
        let query = self.sql_used.as_ref().or(self.kql_used.as_ref());
        let query = query.map(|query| format!(" The query was: {}", one_line(query, SHOWN_CHARS))).unwrap_or_default();
        if let Some(note) = self.gaps.take_note() {
            return format!("{note}{query}");
        }
        let readings = self.readings();
        if readings.len() > 1 {
            self.assessment.asks_back = true;
            return format!("I am not sure what is meant: these readings differ. {}", choices(&readings));
        }
        if self.evidence.result.is_none() {
            let names: Vec<String> = self
                .context
                .at_hand
                .tables
                .iter()
                .take(NAMED_TABLES)
                .map(|table| format!("`{}`", table.name))
                .collect();
            return match names.is_empty() {
                true => "This cannot be answered from the data here: no table is about it.".to_owned(),
                false => format!(
                    "This cannot be answered from the data here, as far as I can tell: no query over {} did.",
                    names.join(", ")
                ),
            };
        }
        format!("I am not sure of an answer: {}.{query}", confidence.reasons.join("; "))
    }
}

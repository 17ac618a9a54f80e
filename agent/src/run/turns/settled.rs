//! The end of an answer: how far it is to be trusted, and what is said in its place where that is less than the settings
//! ask for. No model is asked about itself.

use super::Turns;
use crate::assessment::AnswerReading;
use crate::confidence::{Confidence, ConfidenceFit};
use crate::proof::{ProofLink, ProofOrigin};
use crate::sql_text::one_line;

/// Characters of a query, and of a row, that a held-back answer shows.
const SHOWN_CHARS: usize = 200;
/// Tables that it names.
const NAMED_TABLES: usize = 5;

impl Turns<'_> {
    /// Whether the text of an answer waits until its confidence is known.
    pub(super) fn holds_answers(&self) -> bool {
        self.structured.is_none() && self.task.config.answer_threshold.is_set()
    }

    /// Says an answer that was held, or in its place why it is held back.
    pub(super) fn settle(&mut self, text: &str) {
        self.note_unproven(&self.prover.links(text, &[]));
        let confidence = self.evidence.confidence(self.fit());
        let looked = self.has_looked_at_data();
        if looked && self.task.config.answer_threshold.holds_back(&confidence) {
            self.assessment.held_back = true;
            let instead = self.doubtful_text(&confidence);
            self.say_held(instead);
        } else {
            self.say_held(text.to_owned());
        }
        self.assessment.confidence = looked.then_some(confidence);
    }

    /// Adds the confidence and the readings to what is said beside the answer.
    pub(super) fn assess(&mut self, proof: &[ProofLink]) {
        self.assessment.readings = self.readings();
        if !self.holds_answers() || self.assessment.verified_query.is_some() {
            self.note_unproven(proof);
            let confidence = self.evidence.confidence(self.fit());
            self.assessment.confidence = self.has_looked_at_data().then_some(confidence);
        }
        self.assessment.features = self.evidence.features();
    }

    fn note_unproven(&mut self, proof: &[ProofLink]) {
        let unproven = proof.iter().filter(|link| link.origin == ProofOrigin::Unproven).count();
        self.evidence.unproven = u32::try_from(unproven).unwrap_or(u32::MAX);
    }

    /// Whether the answer is about data: a greeting has no confidence.
    fn has_looked_at_data(&self) -> bool {
        self.evidence.result.is_some() || self.evidence.failed_queries > 0 || self.evidence.unproven > 0
    }

    /// Returns the coefficients, where they were fitted to this model.
    fn fit(&self) -> Option<&ConfidenceFit> {
        let fit = self.task.config.confidence.as_ref()?;
        (fit.model == self.task.model.provider.model_id()).then_some(fit)
    }

    /// Returns what the question can mean, where the queries of a vote return different rows; most votes first.
    fn readings(&self) -> Vec<AnswerReading> {
        let groups = self.evidence.result.as_ref().map(|result| result.groups()).unwrap_or_default();
        if groups.len() < 2 {
            return Vec::new();
        }
        let reading = |(candidate, votes): (&serde_json::Value, u64)| AnswerReading {
            sql: candidate["sql"].as_str().unwrap_or_default().to_owned(),
            first_row: candidate["first_row"].clone(),
            row_count: candidate["row_count"].as_u64().unwrap_or_default(),
            votes,
        };
        groups.into_iter().map(reading).collect()
    }

    /// Says that there is no answer that can be trusted, and what is known instead: the readings as choices, else what
    /// speaks against the one that there is.
    fn doubtful_text(&self, confidence: &Confidence) -> String {
        let readings = self.readings();
        if readings.len() > 1 {
            let line = |(index, reading): (usize, &AnswerReading)| {
                let row = one_line(&reading.first_row.to_string(), SHOWN_CHARS);
                let more = if reading.row_count > 1 {
                    format!(" and {} more rows", reading.row_count - 1)
                } else {
                    String::new()
                };
                format!("{}. {row}{more}, by {}", index + 1, one_line(&reading.sql, SHOWN_CHARS))
            };
            let lines: Vec<String> = readings.iter().enumerate().map(line).collect();
            return format!("I am not sure what is meant: these readings differ. Which one?\n{}", lines.join("\n"));
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
        let query = self.sql_used.as_ref().or(self.kql_used.as_ref());
        let query = query.map(|query| format!(" The query was: {}", one_line(query, SHOWN_CHARS))).unwrap_or_default();
        format!("I am not sure of an answer: {}.{query}", confidence.reasons.join("; "))
    }
}

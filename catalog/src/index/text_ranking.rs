//! Ranking a few texts among themselves by the words of a question, as if there were no others: for a caller who may not know of
//! the others, whose words would weigh those of the texts that it knows.

use std::sync::Arc;

use super::IndexPart;
use super::analyze::{Analyzer, CorpusStats, Document};

/// Ranks texts by a question.
pub(crate) struct TextRanking {
    analyzer: Arc<Analyzer>,
    /// The question's.
    tokens: Vec<String>,
}

impl IndexPart {
    /// What ranks texts by a question as [`Self::bm25`] would, were they all that there are.
    pub(crate) fn ranking_by(&self, question: &str) -> TextRanking {
        TextRanking { analyzer: Arc::clone(&self.analyzer), tokens: self.analyzer.query(question) }
    }
}

impl TextRanking {
    /// Returns the ids of texts, the best first.
    pub(crate) fn ranked(&self, texts: &[(i64, String)]) -> Vec<i64> {
        let documents: Vec<Document> = texts.iter().map(|(_, text)| self.analyzer.document(text)).collect();
        let mut stats = CorpusStats::default();
        for document in &documents {
            let has = |token: &String| usize::from(document.frequencies.contains_key(token));
            let counts: Vec<usize> = self.tokens.iter().map(has).collect();
            stats.add_segment(u64::from(document.length), 1, &self.tokens, &counts);
        }
        let bm25 = stats.into_scorer();
        let score = |document: &Document| -> f32 {
            let weight = |token: &String| {
                let frequency = document.frequencies.get(token)?;
                Some(bm25.token_weight(token) * bm25.document_weight(*frequency, document.length))
            };
            self.tokens.iter().filter_map(weight).sum()
        };
        let mut scored: Vec<(f32, &(i64, String))> = documents.iter().map(score).zip(texts).collect();
        // Ids tell which text was there first, for whomever.
        scored.sort_by(|(a, (_, of_a)), (b, (_, of_b))| b.total_cmp(a).then_with(|| of_a.cmp(of_b)));
        scored.into_iter().map(|(_, (id, _))| *id).collect()
    }
}

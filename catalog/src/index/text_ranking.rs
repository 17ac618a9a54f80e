//! Ranking a few texts among themselves by the words of a question, as if there were no others: for a caller who may not know of
//! the others, whose words would weigh those of the texts that it knows.

use std::sync::Arc;

use super::analyze::{Analyzer, CorpusStats};
use super::tail::Postings;
use super::{IndexPart, SearchFilter, best};

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
        let mut by_text: Vec<&(i64, String)> = texts.iter().collect();
        by_text.sort_by(|(_, a), (_, b)| a.cmp(b));
        let mut documents = Postings::default();
        for (place, (_, text)) in (0..).zip(&by_text) {
            // Their places break ties: ids tell which text was there first, for whomever. The filter admits all databases.
            documents.insert(place, 0, self.analyzer.document(text));
        }
        let matching = documents.matching(&self.tokens, &SearchFilter::default());
        let scored = best(matching.scored(&self.tokens, CorpusStats::default()), texts.len());
        scored
            .into_iter()
            .filter_map(|scored| by_text.get(usize::try_from(scored.object_id).ok()?))
            .map(|(id, _)| *id)
            .collect()
    }
}

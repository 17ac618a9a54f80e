//! Full-text analysis: the tokenizer of the Lance index, used unchanged for rows that Lance does not hold yet, so
//! that both are ranked by the same tokens and the same BM25.

use std::collections::HashMap;

use lance_index::scalar::InvertedIndexParams;
use lance_index::scalar::inverted::document_tokenizer::LanceTokenizer;
use lance_index::scalar::inverted::query::collect_query_tokens;
use lance_index::scalar::inverted::{MemBM25Scorer, Scorer};

use crate::{CatalogError, Result};

/// How texts become tokens: lowercase words without punctuation, English stems, stop words and accents removed.
/// Positions are not kept: nothing searches for phrases, and they more than double the index.
pub(super) fn text_index_params() -> InvertedIndexParams {
    InvertedIndexParams::default().with_position(false).num_workers(1)
}

/// The analyzer of the text column.
pub(super) struct Analyzer {
    tokenizer: Box<dyn LanceTokenizer>,
}

impl Analyzer {
    pub(super) fn new() -> Result<Self> {
        let tokenizer = text_index_params().build().map_err(|error| CatalogError::Index(error.to_string()))?;
        Ok(Self { tokenizer })
    }

    fn tokens(&self, text: &str) -> Vec<String> {
        let mut tokenizer = self.tokenizer.clone();
        collect_query_tokens(text, &mut tokenizer).into_iter().collect()
    }

    /// A document's tokens.
    pub(super) fn document(&self, text: &str) -> Document {
        let mut document = Document::default();
        for token in self.tokens(text) {
            document.length += 1;
            *document.frequencies.entry(token).or_default() += 1;
        }
        document
    }

    /// A question's distinct tokens, in order.
    pub(super) fn query(&self, text: &str) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for token in self.tokens(text) {
            if !distinct.contains(&token) {
                distinct.push(token);
            }
        }
        distinct
    }
}

/// A text as BM25 sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    frequencies: HashMap<String, u32>,
    length: u32,
}

/// What BM25 needs to know of the whole corpus, for one question's tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct CorpusStats {
    total_tokens: u64,
    documents: usize,
    documents_with_token: HashMap<String, usize>,
}

impl CorpusStats {
    /// Adds an index segment's numbers; `counts` is parallel to `tokens`.
    pub(super) fn add_segment(&mut self, total_tokens: u64, documents: usize, tokens: &[String], counts: &[usize]) {
        self.total_tokens += total_tokens;
        self.documents += documents;
        for (token, count) in tokens.iter().zip(counts) {
            *self.documents_with_token.entry(token.clone()).or_default() += count;
        }
    }

    /// Adds one document. Returns whether it has any of the tokens.
    pub(super) fn add_document(&mut self, document: &Document, tokens: &[String]) -> bool {
        self.total_tokens += u64::from(document.length);
        self.documents += 1;
        let mut has_any = false;
        for token in tokens.iter().filter(|token| document.frequencies.contains_key(*token)) {
            *self.documents_with_token.entry(token.clone()).or_default() += 1;
            has_any = true;
        }
        has_any
    }

    /// BM25 over this corpus.
    pub(super) fn into_scorer(self) -> Bm25 {
        Bm25(MemBM25Scorer::new(self.total_tokens, self.documents, self.documents_with_token))
    }
}

/// Lance's BM25, for single documents.
pub(super) struct Bm25(MemBM25Scorer);

impl Bm25 {
    /// The same for an index.
    pub(super) fn scorer(&self) -> &MemBM25Scorer {
        &self.0
    }

    /// The score, 0 when no token matches.
    pub(super) fn score(&self, document: &Document, tokens: &[String]) -> f32 {
        tokens
            .iter()
            .filter_map(|token| {
                let frequency = *document.frequencies.get(token)?;
                Some(self.0.query_weight(token) * self.0.doc_weight(frequency, document.length))
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_meet_their_stems() {
        let analyzer = Analyzer::new().unwrap();
        let tokens = analyzer.query("Which flights were delayed, and which Flights departed?");
        assert!(tokens.contains(&"flight".to_string()), "{tokens:?}");
        assert_eq!(tokens.iter().filter(|token| *token == "flight").count(), 1, "{tokens:?}");
        assert!(!tokens.contains(&"and".to_string()), "stop words are removed: {tokens:?}");
    }

    #[test]
    fn rarer_tokens_weigh_more() {
        let analyzer = Analyzer::new().unwrap();
        let documents = [
            analyzer.document("table orders columns id"),
            analyzer.document("table orders archive columns id"),
            analyzer.document("table customers columns id"),
        ];
        let tokens = analyzer.query("orders archive");
        let mut stats = CorpusStats::default();
        for document in &documents {
            stats.add_document(document, &tokens);
        }
        let scorer = stats.into_scorer();
        let scores: Vec<f32> = documents.iter().map(|document| scorer.score(document, &tokens)).collect();
        assert!(scores[1] > scores[0] && scores[0] > scores[2] && scores[2] == 0.0, "{scores:?}");
    }
}

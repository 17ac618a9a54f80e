//! Full-text analysis: the tokenizer of the Lance index, used unchanged for rows that Lance does not hold yet, so
//! that both are ranked by the same tokens and the same BM25.

use std::collections::HashMap;

use lance_index::scalar::InvertedIndexParams;
use lance_index::scalar::inverted::document_tokenizer::LanceTokenizer;
use lance_index::scalar::inverted::query::collect_query_tokens;
use lance_index::scalar::inverted::{MemBM25Scorer, Scorer};

use crate::error::{CatalogError, Result};

/// How strings are tokenized: lowercase words without punctuation, English stems, stop words and accents removed.
/// Positions are not stored: nothing searches for phrases, and they would more than double the index.
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

/// A document as BM25 sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    pub(super) frequencies: HashMap<String, u32>,
    pub(super) length: u32,
}

/// The corpus statistics that BM25 needs for the tokens of one question.
#[derive(Debug, Clone, Default)]
pub(super) struct CorpusStats {
    total_tokens: u64,
    documents: usize,
    documents_with_token: HashMap<String, usize>,
}

impl CorpusStats {
    /// Adds the statistics of a part of the corpus; `counts` is parallel to `tokens`.
    pub(super) fn add_segment(&mut self, total_tokens: u64, documents: usize, tokens: &[String], counts: &[usize]) {
        self.total_tokens += total_tokens;
        self.documents += documents;
        for (token, count) in tokens.iter().zip(counts) {
            *self.documents_with_token.entry(token.clone()).or_default() += count;
        }
    }

    /// BM25 over this corpus.
    pub(super) fn into_scorer(self) -> Bm25 {
        Bm25(MemBM25Scorer::new(self.total_tokens, self.documents, self.documents_with_token))
    }
}

/// Lance's BM25. The score of a document is the sum over its tokens of the token's weight times its weight in the
/// document.
pub(super) struct Bm25(MemBM25Scorer);

impl Bm25 {
    /// The same for an index.
    pub(super) fn scorer(&self) -> &MemBM25Scorer {
        &self.0
    }

    /// The weight of a token: the rarer the larger, and 0 when no document has it.
    pub(super) fn token_weight(&self, token: &str) -> f32 {
        self.0.query_weight(token)
    }

    /// The weight of a token in a document that has it this many times.
    pub(super) fn document_weight(&self, frequency: u32, length: u32) -> f32 {
        self.0.doc_weight(frequency, length)
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
}

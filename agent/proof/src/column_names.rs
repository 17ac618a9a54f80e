//! Numbers and codes that are a part of a column's name, and no claim about rows: `p99` of `p99_ms`, `within 30 minutes` of
//! `seen_within_30`.

use super::Prover;
use super::tokens::{TextToken, TextTokenKind, find_word, last_words};

impl Prover {
    /// Whether a token is a part of a column's name: a number only behind the word that it has there.
    pub(super) fn is_of_column_name(&self, token: &TextToken, clause: &str) -> bool {
        let mut columns = self.results.iter().flat_map(|result| &result.columns);
        match &token.kind {
            TextTokenKind::Code(code) => {
                columns.any(|column| find_word(&column.replace('_', " "), &code.to_lowercase()).is_some())
            }
            TextTokenKind::Number(_) => {
                let before = last_words(&clause[..token.start], 1);
                columns.any(|column| has_parts(&column.to_lowercase(), &before, &token.text))
            }
            _ => false,
        }
    }
}

/// Whether a name has a word and digits right behind it: `within` and `30` of `seen_within_30`.
fn has_parts(name: &str, word: &str, digits: &str) -> bool {
    let parts: Vec<&str> = name.split('_').collect();
    let is_digits = digits.chars().all(|c| c.is_ascii_digit());
    is_digits && !word.is_empty() && parts.windows(2).any(|pair| pair == [word, digits])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn a_number_of_a_columns_name_is_no_claim() {
        let is_doubted = |text: &str| !doubted(&["patients", "seen_within_30"], json!([[1284, 947]]), text).is_empty();
        assert!(!is_doubted("Of 1,284 patients, 947 were seen within 30 minutes."));
        assert!(is_doubted("Of 1,284 patients, 947 were seen within 45 minutes."));
    }
}

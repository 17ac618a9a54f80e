//! How many of the rows a sentence means that speaks of most of them, of half or of less: `most carriers flew more than 10,000
//! flights`. Only where what it counts is what the rows are called by: most flights are none of the rows.

use super::rows::ProofRows;
use super::tokens::{TextTokenKind, find_word, last_words, tokens_in};

/// So many of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowMajority {
    /// More than half of them.
    Most,
    Half,
    /// Fewer than half of them, and some.
    Minority,
}

/// The words for it; the longer ones come before those that they end with.
const PHRASES: [(RowMajority, &[&str]); 3] = [
    (RowMajority::Minority, &["less than half", "fewer than half", "under half", "a minority"]),
    (RowMajority::Most, &["more than half", "over half", "the majority", "a majority", "most"]),
    (RowMajority::Half, &["half"]),
];
/// Words before such by which it is none: `the most flights`, `about half`, `the first half`.
const OTHERWISE: [&str; 25] = [
    "the", "at", "his", "her", "its", "our", "their", "by", "than", "over", "under", "about", "nearly", "almost",
    "around", "roughly", "first", "second", "other", "latter", "last", "not", "a", "overall", "no",
];
/// Words between such and what is counted.
const FILLS: [&str; 6] = ["of", "the", "our", "these", "those", "all"];

impl RowMajority {
    /// Whether so many rows are, of all.
    pub(super) fn holds(self, count: usize, all: usize) -> bool {
        match self {
            Self::Most => 2 * count > all,
            Self::Half => 2 * count == all,
            Self::Minority => count > 0 && 2 * count < all,
        }
    }
}

/// Returns how many of the rows a text speaks of; `None` where it says no such thing of rows.
pub(super) fn row_majority(result: &ProofRows, text: &str) -> Option<RowMajority> {
    let is_said = |phrase: &&str| {
        let Some(at) = find_word(text, phrase) else { return false };
        let is_plain = !OTHERWISE.contains(&last_words(&text[..at], 1).as_str());
        is_plain && calls_rows(result, &text[at + phrase.len()..])
    };
    PHRASES.iter().find(|(_, phrases)| phrases.iter().any(is_said)).map(|(majority, _)| *majority)
}

/// Whether a text begins with what the rows are called by, `of the six carriers` of a column `carrier` that tells them apart, or
/// with `of them`.
fn calls_rows(result: &ProofRows, text: &str) -> bool {
    let is_number = |word: &str| tokens_in(word).iter().any(|token| matches!(token.kind, TextTokenKind::Number(_)));
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let mut said = words.skip_while(|word| FILLS.contains(&word.as_str()) || is_number(word));
    let Some(noun) = said.next() else { return false };
    let is_called = |column: &usize| {
        let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
        let mut parts = name.split(|c: char| !c.is_alphanumeric());
        result.tells_apart(*column) && parts.any(|part| part.len() > 2 && singular(part) == singular(&noun))
    };
    noun == "them" || result.label_columns().iter().any(is_called)
}

/// Returns a lowercase word without the ending by which it is of several.
fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.trim_end_matches('s').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_carriers(text: &str) -> Vec<String> {
        let rows = json!([
            ["Aurora", 48_200],
            ["Borealis", 31_500],
            ["Cirrus", 27_400],
            ["Dorado", 15_600],
            ["Ember", 9_800],
            ["Fjord", 4_200],
        ]);
        doubted(&["carrier", "flights"], rows, text)
    }

    #[test]
    fn most_rows_are_more_than_half_of_them() {
        for text in [
            "Most of the carriers flew more than 10,000 flights.",
            "More than half of the carriers flew more than 10,000 flights.",
            "Half of the carriers flew more than 20,000 flights.",
            "Fewer than half of the six carriers flew more than 30,000 flights.",
        ] {
            assert_eq!(of_carriers(text), Vec::<String>::new(), "{text}");
        }
        for (text, wrong) in [
            ("Most of the carriers flew more than 20,000 flights.", "20,000"),
            ("More than half of the carriers flew more than 20,000 flights.", "20,000"),
            ("Half of the carriers flew more than 30,000 flights.", "30,000"),
            ("Fewer than half of the six carriers flew more than 20,000 flights.", "20,000"),
        ] {
            assert_eq!(of_carriers(text), [wrong], "{text}");
        }
    }

    #[test]
    fn the_most_of_something_is_no_majority() {
        assert_eq!(of_carriers("The most flights, more than 40,000, were flown by one carrier."), Vec::<String>::new());
    }
}

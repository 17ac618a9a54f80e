//! The rows of which a sentence speaks as of all the others: `A and B are slow. The other five are below 100 ms`, `every other shop
//! had more than 30`.

use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextTokenKind, find_word, last_words, tokens_in};

/// Words that are all rows but those that are named.
const OTHERS: [&str; 8] =
    ["the other", "the others", "all other", "all others", "every other", "the remaining", "all remaining", "the rest"];
/// Words behind such by which they are no rows: `on the other hand`.
const OTHERWISE: [&str; 6] = ["hand", "day", "way", "side", "half", "end"];
/// Words before such by which they are some of them only, or what is compared with them: `two of the others`.
const OF_SOME: [&str; 9] = ["of", "than", "unlike", "like", "among", "from", "against", "to", "with"];
/// Of those that end with `of` the ones that are all of them.
const OF_ALL: [&str; 3] = ["all of", "each of", "none of"];

impl ProofRows {
    /// Returns the rows that neither a sentence nor the one before it names, where a clause without a name speaks of all of
    /// these, and of so many where it says how many they are.
    pub(super) fn rows_of_others(&self, place: TokenPlace<'_>) -> Option<Vec<usize>> {
        let (at, length) = OTHERS.iter().find_map(|words| Some((find_word(place.clause, words)?, words.len())))?;
        let behind = place.clause.get(at + length..)?;
        let next = behind.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
        let before = last_words(&place.clause[..at], 2);
        let last = before.rsplit(' ').next().unwrap_or_default();
        let are_some = OF_SOME.contains(&last) && !OF_ALL.contains(&before.as_str());
        let is_whole = self.rows.len() == self.row_count && self.rows.len() > 1;
        if !is_whole || are_some || OTHERWISE.contains(&next) || !self.labelled(place.clause).is_empty() {
            return None;
        }
        let of_sentence = self.labelled(place.sentence.get(..place.offset)?);
        let of_before = self.labelled(place.before);
        let mut of_both: Vec<usize> = of_sentence.iter().chain(&of_before).copied().collect();
        of_both.sort_unstable();
        of_both.dedup();
        let count = count_behind(behind);
        let others = |named: &Vec<usize>| self.rows.len() - named.len().min(self.rows.len());
        let is_so = |named: &Vec<usize>| !named.is_empty() && count.is_none_or(|count| count == others(named));
        let named = [of_sentence, of_before, of_both].into_iter().find(is_so)?;
        let rows: Vec<usize> = (0..self.rows.len()).filter(|row| !named.contains(row)).collect();
        (!rows.is_empty()).then_some(rows)
    }
}

/// Returns the number with which a text begins: of ` five are below 100` five.
fn count_behind(text: &str) -> Option<usize> {
    let first = tokens_in(text).into_iter().next()?;
    let TextTokenKind::Number(number) = first.kind else { return None };
    let is_count = text[..first.start].trim().is_empty() && !number.is_percent && number.value >= 1.0;
    is_count.then_some(number.value as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_endpoints(text: &str) -> Vec<String> {
        let rows = json!([
            ["/login", 38],
            ["/search", 95],
            ["/cart", 42],
            ["/checkout", 120],
            ["/export", 840],
            ["/upload", 310],
        ]);
        doubted(&["endpoint", "p50_ms"], rows, text)
    }

    #[test]
    fn a_bound_of_the_others_is_of_the_rows_that_are_not_named() {
        for text in [
            "/checkout (120 ms), /upload (310 ms) and /export (840 ms) are slow. The other three are all below 100 ms.",
            "/checkout, /upload and /export are slow; the other three are all below 100 ms.",
            "/login is the fastest. None of the others is below 40 ms.",
        ] {
            assert_eq!(of_endpoints(text), Vec::<String>::new(), "{text}");
        }
        for (text, wrong) in [
            ("/checkout, /upload and /export are slow. The other three are all below 90 ms.", "90"),
            ("/checkout, /upload and /export are slow; the other three are all below 90 ms.", "90"),
            ("Only /login stays below 40 ms. Every other endpoint takes more than 50 ms.", "50"),
        ] {
            assert!(of_endpoints(text).contains(&wrong.to_owned()), "{text}: {:?}", of_endpoints(text));
        }
    }

    #[test]
    fn some_of_the_others_are_not_all_of_them() {
        let text = "/export and /upload are slow. Two of the others are below 40 ms.";
        assert!(of_endpoints(text).contains(&"Two".to_owned()), "{:?}", of_endpoints(text));
    }
}

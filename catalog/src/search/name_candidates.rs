//! Finds tables whose name is in the question. Names are looked up in the store, so they are found even while the index
//! fails.

use crate::error::Result;
use crate::principal::Principal;
use crate::store::listing::by_name;
use crate::store::{NameMatch, SnapshotView, name_key};

/// Words of a question that are read.
const MAX_WORDS: usize = 24;
/// The most consecutive words that may spell one name (`order line items` is `order_line_items`).
const MAX_WORDS_A_NAME: usize = 3;
/// The most tables found by name, however many databases share it.
const MAX_NAMED: usize = 50;
/// Shorter words are looked up only as part of a longer name.
const MIN_WORD_CHARS: usize = 3;

/// A name to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameCandidate {
    database: Option<String>,
    name: String,
    how: NameMatch,
    /// Whether the candidate is the whole question, not a part of it.
    is_whole: bool,
}

/// Tables found by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedTables {
    /// Tables that the whole question names.
    pub(super) exact: Vec<i64>,
    /// Tables that a part of the question names, or whose name starts with the question.
    pub(super) partial: Vec<i64>,
}

/// The names that a question may contain, most significant first.
pub(super) fn candidates(question: &str, is_stop_word: impl Fn(&str) -> bool) -> Vec<NameCandidate> {
    let candidate = |name: String, how, is_whole| NameCandidate { database: None, name, how, is_whole };
    let mut candidates = Vec::new();
    let whole = question.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '`' | '\'' | '?' | ';'));
    candidates.push(candidate(whole.to_string(), NameMatch::Exact, true));
    if let Some((database, table)) = whole.split_once('.').filter(|_| !whole.contains(char::is_whitespace)) {
        let table = table.to_string();
        candidates.push(NameCandidate {
            database: Some(database.to_string()),
            name: table,
            how: NameMatch::Exact,
            is_whole: true,
        });
    }

    let words: Vec<&str> =
        question.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).take(MAX_WORDS).collect();
    for size in (1..=MAX_WORDS_A_NAME).rev() {
        for run in words.windows(size) {
            let is_whole = size == words.len();
            if size == 1 {
                let word = run[0];
                if is_whole || (word.chars().count() >= MIN_WORD_CHARS && !is_stop_word(word)) {
                    candidates.push(candidate(word.to_string(), NameMatch::Exact, is_whole));
                }
            } else {
                candidates.push(candidate(run.join("_"), NameMatch::Exact, is_whole));
                candidates.push(candidate(run.concat(), NameMatch::Exact, is_whole));
            }
        }
    }
    if words.len() == 1 && whole.chars().count() >= MIN_WORD_CHARS {
        candidates.push(candidate(whole.to_string(), NameMatch::Prefix, false));
    }
    let mut distinct: Vec<NameCandidate> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if !distinct.contains(&candidate) {
            distinct.push(candidate);
        }
    }
    distinct
}

/// Looks the candidates up among the tables that the caller may see.
pub(super) fn find(
    view: &SnapshotView<'_>,
    who: &Principal,
    database: Option<&str>,
    candidates: &[NameCandidate],
) -> Result<NamedTables> {
    let mut named = NamedTables::default();
    for candidate in candidates {
        let room = MAX_NAMED.saturating_sub(named.exact.len() + named.partial.len());
        if room == 0 {
            break;
        }
        let within = match (database, candidate.database.as_deref()) {
            (Some(asked), Some(named)) if name_key(asked) != name_key(named) => continue,
            (asked, named) => asked.or(named),
        };
        for (id, _) in by_name(view, who, within, &candidate.name, candidate.how, room)? {
            if named.exact.contains(&id) || named.partial.contains(&id) {
                continue;
            }
            if candidate.is_whole {
                named.exact.push(id);
            } else {
                named.partial.push(id);
            }
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(question: &str) -> Vec<(String, bool)> {
        let found = candidates(question, |word| matches!(word, "the" | "which"));
        found.into_iter().map(|candidate| (candidate.name, candidate.is_whole)).collect()
    }

    #[test]
    fn a_question_that_is_a_name() {
        let found = names("`Customer Orders`?");
        assert!(found.contains(&("Customer Orders".into(), true)), "{found:?}");
        assert!(found.contains(&("Customer_Orders".into(), true)), "{found:?}");
        assert!(found.contains(&("Orders".into(), false)), "{found:?}");
        let qualified = candidates("sales.orders", |_| false);
        assert!(
            qualified.iter().any(|c| c.database.as_deref() == Some("sales") && c.name == "orders" && c.is_whole),
            "{qualified:?}"
        );
    }

    #[test]
    fn stop_words_and_short_words_are_no_names() {
        let found = names("which of the flights is late");
        assert!(found.contains(&("flights".into(), false)), "{found:?}");
        assert!(!found.iter().any(|(name, _)| name == "the" || name == "of" || name == "is"), "{found:?}");
    }

    #[test]
    fn long_questions_are_bounded() {
        let question = "many words ".repeat(5_000);
        assert!(candidates(&question, |_| false).len() < 6 * MAX_WORDS);
    }
}

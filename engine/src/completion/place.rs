//! The place in a statement where something is completed: the word that is written there, and what may begin with it.

use super::made_names::{Clause, clause_before};
use super::words::{OpenWord, StatementWord, words_of};
use super::{Completion, CompletionLanguage, Suggestion, SuggestionKind};
use crate::identifiers::{is_reserved_word, quote_identifier};

/// What stands before the name of a table.
const BEFORE_TABLES: &str = "FROM JOIN INTO TABLE DESCRIBE UPDATE";
const BEFORE_TABLES_IN_KQL: &str = "join lookup union from toscalar materialize";

/// The word that a beginning of a statement ends with.
pub(super) struct PlaceOfWord<'a> {
    /// Where it begins, with its quote.
    pub(super) start: usize,
    /// What stands before its last dot.
    pub(super) owner: Option<String>,
    /// What is written of it.
    pub(super) part: &'a str,
    /// The quote that it begins with.
    pub(super) quote: Option<&'static str>,
}

impl<'a> PlaceOfWord<'a> {
    /// `None` in a text or a comment.
    pub(super) fn at_end(before: &'a str, language: CompletionLanguage) -> Option<Self> {
        let found = words_of(before, language);
        let owner_at = |dot: usize| dot.checked_sub(1).and_then(|at| found.words.get(at));
        let owner = |dot: usize| owner_at(dot).filter(|owner| owner.is_name()).map(|owner| owner.text.clone());
        match found.open {
            Some(OpenWord::Text) => None,
            Some(OpenWord::Name { start, quote }) => {
                let dot = found
                    .words
                    .len()
                    .checked_sub(1)
                    .filter(|at| found.words.get(*at).is_some_and(|word| word.is_sign(".")));
                let part = before.get(start + quote.len()..).unwrap_or_default();
                Some(Self { start, owner: dot.and_then(owner), part, quote: Some(quote) })
            }
            None => {
                let (start, word) = last_word(before);
                let Some((written, part)) = word.rsplit_once('.') else {
                    return Some(Self { start, owner: None, part: word, quote: None });
                };
                let start = start + written.len() + 1;
                // A name in quotes is no part of the word.
                let in_quotes = || found.words.iter().rposition(|word| word.is_sign(".")).and_then(owner);
                let bare = written.rsplit('.').next().filter(|bare| !bare.is_empty()).map(str::to_owned);
                Some(Self { start, owner: Some(bare.or_else(in_quotes).unwrap_or_default()), part, quote: None })
            }
        }
    }

    /// The suggestions that begin with what is written, in any case, each once, in quotes where they must be.
    pub(super) fn matching(
        &self,
        suggestions: Vec<Suggestion>,
        after: &str,
        language: CompletionLanguage,
        limit: usize,
    ) -> Completion {
        let lower = self.part.to_lowercase();
        let mut found: Vec<Suggestion> = Vec::new();
        let mut truncated = false;
        for suggestion in suggestions {
            let fits = suggestion.text.to_lowercase().starts_with(&lower);
            if !fits || found.iter().any(|known| known.text == suggestion.text) {
                continue;
            }
            if found.len() >= limit {
                truncated = true;
                break;
            }
            found.push(suggestion);
        }
        for suggestion in &mut found {
            match suggestion.kind {
                SuggestionKind::Database | SuggestionKind::Table | SuggestionKind::Column => {
                    suggestion.text = match self.quote {
                        Some(quote) => quoted(&suggestion.text, quote, after),
                        None => written(&suggestion.text, language),
                    };
                }
                SuggestionKind::Function | SuggestionKind::Keyword => {}
            }
        }
        Completion { start: self.start, suggestions: found, truncated }
    }
}

/// Whether the name of a table stands after these words.
pub(super) fn is_table_expected(earlier: &[StatementWord], language: CompletionLanguage) -> bool {
    let Some(last) = earlier.last() else { return language == CompletionLanguage::Kql };
    let word_at = |back: usize| earlier.len().checked_sub(back).and_then(|at| earlier.get(at));
    if language != CompletionLanguage::Kql {
        let is_listed = last.is_sign(",") && clause_before(earlier) == Some(Clause::Tables);
        return is_listed || BEFORE_TABLES.split_whitespace().any(|word| last.is(word));
    }
    let is_before = |word: Option<&StatementWord>| {
        word.is_some_and(|word| BEFORE_TABLES_IN_KQL.split_whitespace().any(|before| word.is(before)))
    };
    // `join kind=inner T`, `let x = T`, and `(T` where it is no argument.
    let is_kind = word_at(2).is_some_and(|sign| sign.is_sign("=")) && word_at(3).is_some_and(|kind| kind.is("kind"));
    let is_let = last.is_sign("=") && word_at(3).is_some_and(|word| word.is("let"));
    let is_open = last.is_sign("(") && (!word_at(2).is_some_and(StatementWord::is_name) || is_before(word_at(2)));
    let is_joined = last.is_sign("(")
        && word_at(3).is_some_and(|sign| sign.is_sign("="))
        && word_at(4).is_some_and(|kind| kind.is("kind"));
    last.is_sign(";") || is_before(Some(last)) || is_open || is_joined || is_let || (is_kind && last.is_name())
}

/// Returns where the word begins that a text ends with, and the word.
fn last_word(before: &str) -> (usize, &str) {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-');
    let start = before
        .rfind(|char: char| !is_part(char))
        .map_or(0, |end| end + before.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    (start, before.get(start..).unwrap_or_default())
}

/// A name as a statement has it: in SQL's double quotes or KQL's brackets, where it is no plain word.
fn written(name: &str, language: CompletionLanguage) -> String {
    let is_word = name.chars().all(|char| char.is_alphanumeric() || char == '_')
        && name.chars().next().is_some_and(|first| !first.is_numeric());
    match language {
        CompletionLanguage::Kql if is_word && !querent_kql::needs_brackets(name) => name.to_owned(),
        // Double quotes would make a text of it.
        CompletionLanguage::Kql => quoted(name, "['", ""),
        CompletionLanguage::Sql | CompletionLanguage::Either => {
            if is_word && !is_reserved_word(name) {
                name.to_owned()
            } else {
                quote_identifier(name)
            }
        }
    }
}

/// A name in quotes, without those that stand after it already, as editors write them.
fn quoted(name: &str, quote: &str, after: &str) -> String {
    let (text, closing) = match quote {
        "['" => (format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'")), "']"),
        "[\"" => (format!("[\"{}\"]", name.replace('\\', "\\\\").replace('"', "\\\"")), "\"]"),
        _ => (quote_identifier(name), "\""),
    };
    if after.starts_with(closing) { text.strip_suffix(closing).unwrap_or(&text).to_owned() } else { text }
}

//! The function of `parse-kv`: the values of named keys in a text, as a struct of texts. Of several values of a key the
//! first one counts, and blanks around keys and values do not.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::text_parts::{CompiledPattern, TextPartReader, is_text_parts, reader_of, text_parts};
use crate::interrupt::LoopTurns;

/// How keys and values are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum Notation {
    Delimited {
        /// Between two pairs.
        pair: String,
        /// Between key and value.
        between: String,
        /// Whether a value has all up to the next key.
        is_greedy: bool,
    },
    /// Whatever is neither letter nor digit is a delimiter.
    Open,
    /// A pattern with a group for the key and one for the value.
    Pattern(String),
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct KeyValues {
    pub(super) keys: Vec<String>,
    pub(super) notation: Notation,
    pub(super) quotes: Vec<(char, char)>,
    pub(super) escapes: Vec<char>,
}

/// Returns the function.
pub(crate) fn key_values(wanted: KeyValues) -> Result<Arc<ScalarUDF>, String> {
    let pattern = match &wanted.notation {
        Notation::Pattern(pattern) => {
            let pattern = CompiledPattern::new(pattern)?;
            if pattern.0.captures_len() != 3 {
                return Err("the pattern must have a group for the key and one for the value".to_owned());
            }
            Some(pattern)
        }
        Notation::Delimited { .. } | Notation::Open => None,
    };
    Ok(text_parts(KeyValueReader { wanted, pattern }))
}

/// Returns what a function looks for, if it is this one.
pub(crate) fn wanted_key_values(function: &ScalarUDF) -> Option<&KeyValues> {
    reader_of::<KeyValueReader>(function).map(|reader| &reader.wanted)
}

/// Whether a function is this one.
pub(crate) fn is_key_values_function(function: &ScalarUDF) -> bool {
    is_text_parts::<KeyValueReader>(function)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyValueReader {
    wanted: KeyValues,
    pattern: Option<CompiledPattern>,
}

impl TextPartReader for KeyValueReader {
    const FUNCTION: &'static str = "kql_key_values";

    fn names(&self) -> Vec<String> {
        (0..self.wanted.keys.len()).map(|index| format!("v{index}")).collect()
    }

    fn read<'t>(&self, text: &'t str, parts: &mut [Option<Cow<'t, str>>]) -> bool {
        self.read_pairs(text, &mut |key, value| {
            let index = self.wanted.keys.iter().position(|known| known == key.trim());
            if let Some(slot @ None) = index.and_then(|index| parts.get_mut(index)) {
                *slot = Some(Cow::Owned(value.trim().to_owned()));
            }
        });
        for part in parts.iter_mut().filter(|part| part.is_none()) {
            *part = Some(Cow::Borrowed(""));
        }
        true
    }
}

impl KeyValueReader {
    fn read_pairs(&self, text: &str, add: &mut impl FnMut(&str, &str)) {
        match (&self.wanted.notation, &self.pattern) {
            (Notation::Pattern(_), Some(pattern)) => {
                let mut turns = LoopTurns::default();
                for captures in pattern.0.captures_iter(text) {
                    if turns.count_of(text.len()).is_err() {
                        return;
                    }
                    if let (Some(key), Some(value)) = (captures.get(1), captures.get(2)) {
                        add(key.as_str(), value.as_str());
                    }
                }
            }
            (Notation::Pattern(_), None) => {}
            (Notation::Open, _) => self.read_open(text, add),
            (Notation::Delimited { pair, between, is_greedy }, _) => {
                self.read_delimited(text, pair, between, *is_greedy, add);
            }
        }
    }

    /// Reads a quoted text at the start, and returns it without quotes and escapes, and what follows.
    fn quoted<'t>(&self, text: &'t str) -> Option<(String, &'t str)> {
        let first = text.chars().next()?;
        let (_, close) = self.wanted.quotes.iter().find(|(open, _)| *open == first)?;
        let mut inside = String::new();
        let mut chars = text[first.len_utf8()..].char_indices();
        while let Some((at, char)) = chars.next() {
            if self.wanted.escapes.contains(&char)
                && let Some((_, escaped)) = chars.next()
            {
                inside.push(escaped);
            } else if char == *close {
                return Some((inside, &text[first.len_utf8() + at + close.len_utf8()..]));
            } else {
                inside.push(char);
            }
        }
        None
    }

    fn read_delimited(&self, text: &str, pair: &str, between: &str, is_greedy: bool, add: &mut impl FnMut(&str, &str)) {
        let (mut rest, mut turns) = (text.trim_start(), LoopTurns::default());
        while !rest.is_empty() {
            // A quote that nothing closes is looked for up to the end, for each pair.
            if turns.count_of(rest.len()).is_err() {
                return;
            }
            let (key, after) = match self.quoted(rest) {
                Some((key, after)) => match after.trim_start().strip_prefix(between) {
                    Some(after) => (key, after),
                    None => match after.split_once(pair) {
                        Some((_, next)) => {
                            rest = next.trim_start();
                            continue;
                        }
                        None => return,
                    },
                },
                None => {
                    let Some(at) = rest.find(between) else { return };
                    // What has no value before the next pair is no key.
                    let start = if pair.trim().is_empty() && between.trim().is_empty() {
                        0
                    } else {
                        rest[..at].trim_end().rfind(pair).map_or(0, |before| before + pair.len())
                    };
                    (rest[start..at].to_owned(), &rest[at + between.len()..])
                }
            };
            let after = if between.trim().is_empty() { after } else { after.trim_start_matches(' ') };
            let (value, next) = match self.quoted(after) {
                Some((value, next)) => (value, next.split_once(pair).map_or("", |(_, next)| next)),
                None => {
                    let end = if is_greedy { last_pair_end(after, pair, between) } else { after.find(pair) };
                    let end = end.unwrap_or(after.len());
                    (after[..end].to_owned(), after.get(end + pair.len()..).unwrap_or(""))
                }
            };
            add(&key, &value);
            rest = next.trim_start();
        }
    }

    fn read_open(&self, text: &str, add: &mut impl FnMut(&str, &str)) {
        let is_word = |char: char| char.is_alphanumeric() || char == '_';
        let mut turns = LoopTurns::default();
        for key in &self.wanted.keys {
            let mut from = 0;
            while let Some(at) = text[from..].find(key.as_str()).map(|at| from + at) {
                if turns.count_of(text.len() - at).is_err() {
                    return;
                }
                let after = at + key.len();
                let is_whole = !text[..at].ends_with(is_word) && !text[after..].starts_with(is_word);
                from = after;
                if !is_whole {
                    continue;
                }
                let is_start = |char: char| is_word(char) || self.wanted.quotes.iter().any(|(open, _)| *open == char);
                let Some(start) = text[after..].find(is_start).filter(|start| *start > 0) else { continue };
                let value = &text[after + start..];
                match self.quoted(value) {
                    Some((inside, _)) => add(key, &inside),
                    None => add(key, &value[..value.find(|char| !is_word(char)).unwrap_or(value.len())]),
                }
                break;
            }
        }
    }
}

/// Returns the end of a greedy value: the last pair delimiter before the next key's delimiter.
fn last_pair_end(text: &str, pair: &str, between: &str) -> Option<usize> {
    let next_key = text.find(between)?;
    text[..next_key].trim_end().rfind(pair)
}

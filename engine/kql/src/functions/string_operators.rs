//! `has`, `contains`, `startswith` and their like. A term is a run of letters and digits of any script; everything else
//! separates terms, the underscore too. A search string may itself contain separators: it then has to begin and end at
//! the edges of terms. Every string contains the empty one.

use std::borrow::Cow;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::ast::{TextMatch, TextMatchKind};
use crate::interrupt::{LoopTurns, is_interrupted};
use crate::types::KqlType;
use crate::values;

/// The search strings that are looked for before it is looked whether the query is to end.
const NEEDLES_AT_ONCE: usize = 256;
/// The bytes of a search string from which on it may be much work to compare it.
const LONG_NEEDLE_BYTES: usize = 1_024;

pub(super) const FUNCTIONS: &[FunctionEntry] =
    &[entry("has_any_index", "wj", Returns::Is(KqlType::Long), has_any_index)];

/// Computes a batch of a string operator, not negated.
pub(super) fn matches(arguments: &FunctionArguments, text_match: TextMatch) -> Result<ArrayRef> {
    let (strings, wanted) = (arguments.string_views(0)?, arguments.string_views(1)?);
    if wanted.constant {
        let needle = Needle::new(wanted.get(0), text_match.kind, text_match.case_sensitive);
        return arguments.make_total(|row| needle.is_in(strings.get(row)));
    }
    arguments.make_total(|row| {
        Needle::new(wanted.get(row), text_match.kind, text_match.case_sensitive).is_in(strings.get(row))
    })
}

/// Whether the first string has any of the others as a term.
pub(super) fn has_any(arguments: &FunctionArguments) -> Result<ArrayRef> {
    has_of(arguments, |needles, text| place_of_any(needles, text).is_some())
}

/// Whether the first string has all of the others as terms.
pub(super) fn has_all(arguments: &FunctionArguments) -> Result<ArrayRef> {
    has_of(arguments, |needles, text| {
        let mut parts = needles.chunks(NEEDLES_AT_ONCE).enumerate();
        parts.all(|(turn, part)| !is_over(turn) && part.iter().all(|needle| needle.is_in(text)))
    })
}

/// Returns the place of the first needle that is in a text.
fn place_of_any(needles: &[Needle], text: &str) -> Option<usize> {
    let mut parts = needles.chunks(NEEDLES_AT_ONCE).enumerate();
    parts.find_map(|(turn, part)| {
        if is_over(turn) {
            return None;
        }
        part.iter().position(|needle| needle.is_in(text)).map(|place| turn * NEEDLES_AT_ONCE + place)
    })
}

/// Whether the query is to end before this turn of a loop that few rows have a second of.
fn is_over(turn: usize) -> bool {
    turn > 0 && is_interrupted()
}

fn has_of(arguments: &FunctionArguments, decide: impl Fn(&[Needle], &str) -> bool) -> Result<ArrayRef> {
    let strings = arguments.string_views(0)?;
    let lists = arguments.all_dynamics(1)?;
    let needles = |row| lists.iter().flat_map(|list| terms_of(&list.get(row))).collect::<Vec<_>>();
    if (1..arguments.len()).all(|index| arguments.is_constant(index)) {
        let needles = needles(0);
        return arguments.make_total(|row| decide(&needles, strings.get(row)));
    }
    arguments.make_total(|row| decide(&needles(row), strings.get(row)))
}

fn has_any_index(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, lists) = (arguments.strings(0)?, arguments.dynamics(1)?);
    arguments.make_longs(|row| {
        let needles = terms_of(&lists.get(row));
        Some(place_of_any(&needles, strings.get(row)).map_or(-1, |place| place as i64))
    })
}

fn terms_of(value: &Value) -> Vec<Needle> {
    let needle = |value: &Value| Needle::new(&values::value_to_string(value), TextMatchKind::Has, false);
    match value {
        Value::Array(elements) => elements.iter().map(needle).collect(),
        Value::Null => Vec::new(),
        other => vec![needle(other)],
    }
}

/// Whether two strings are equal when case is ignored.
pub(super) fn equal_ignore_case(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.string_views(0)?, arguments.string_views(1)?);
    arguments.make_total(|row| same_but_for_case(left.get(row), right.get(row)))
}

fn same_but_for_case(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
        || (!(left.is_ascii() && right.is_ascii()) && left.to_lowercase() == right.to_lowercase())
}

/// A prepared search string.
struct Needle {
    /// In lower case if case is ignored.
    text: String,
    kind: TextMatchKind,
    case_sensitive: bool,
    starts_with_term: bool,
    ends_with_term: bool,
}

impl Needle {
    fn new(text: &str, kind: TextMatchKind, case_sensitive: bool) -> Self {
        Self {
            starts_with_term: text.starts_with(char::is_alphanumeric),
            ends_with_term: text.ends_with(char::is_alphanumeric),
            text: if case_sensitive { text.to_owned() } else { text.to_lowercase() },
            kind,
            case_sensitive,
        }
    }

    fn is_in(&self, text: &str) -> bool {
        if self.text.is_empty() {
            return self.kind != TextMatchKind::Like || text.is_empty();
        }
        // Bytes of an ASCII string never occur inside another character, so case can be ignored byte by byte.
        let text = match (self.case_sensitive, self.text.is_ascii()) {
            (true, _) | (false, true) => Cow::Borrowed(text),
            (false, false) => Cow::Owned(text.to_lowercase()),
        };
        match self.kind {
            TextMatchKind::StartsWith => self.is_at(&text, 0),
            TextMatchKind::EndsWith => {
                text.len().checked_sub(self.text.len()).is_some_and(|start| self.is_at(&text, start))
            }
            TextMatchKind::Contains => self.positions(&text).next().is_some(),
            TextMatchKind::Has => self.positions(&text).any(|at| self.begins(&text, at) && self.ends(&text, at)),
            TextMatchKind::HasPrefix => self.positions(&text).any(|at| self.begins(&text, at)),
            TextMatchKind::HasSuffix => self.positions(&text).any(|at| self.ends(&text, at)),
            TextMatchKind::Like => self.is_like(&text),
        }
    }

    fn is_at(&self, text: &str, start: usize) -> bool {
        let (wanted, bytes) = (self.text.as_bytes(), text.as_bytes());
        bytes
            .get(start..start + wanted.len())
            .is_some_and(|found| if self.case_sensitive { found == wanted } else { found.eq_ignore_ascii_case(wanted) })
    }

    /// Returns the positions at which it occurs in a string. Each place is as much work as the needle is long.
    fn positions<'a>(&'a self, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        let first = self.text.as_bytes().first().copied().unwrap_or(0);
        let other = if self.case_sensitive { first } else { first.to_ascii_uppercase() };
        let is_long = self.text.len() >= LONG_NEEDLE_BYTES;
        memchr::memchr2_iter(first, other, text.as_bytes())
            .take_while(move |_| !(is_long && is_interrupted()))
            .filter(|at| self.is_at(text, *at))
    }

    fn begins(&self, text: &str, at: usize) -> bool {
        !self.starts_with_term || !text.get(..at).unwrap_or_default().ends_with(char::is_alphanumeric)
    }

    fn ends(&self, text: &str, at: usize) -> bool {
        let after = text.get(at + self.text.len()..).unwrap_or_default();
        !self.ends_with_term || !after.starts_with(char::is_alphanumeric)
    }

    /// Matches a pattern in which `*` and `%` stand for any characters, `?` and `_` for one.
    fn is_like(&self, text: &str) -> bool {
        let lower = if self.case_sensitive { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) };
        let (wanted, found): (Vec<char>, Vec<char>) = (self.text.chars().collect(), lower.chars().collect());
        let (mut at, mut pattern_at, mut retry) = (0, 0, None);
        let mut turns = LoopTurns::default();
        while at < found.len() {
            if turns.count().is_err() {
                return false;
            }
            match wanted.get(pattern_at) {
                Some('*' | '%') => {
                    retry = Some((pattern_at, at));
                    pattern_at += 1;
                }
                Some(wanted) if *wanted == found[at] || matches!(wanted, '?' | '_') => {
                    at += 1;
                    pattern_at += 1;
                }
                _ => {
                    let Some((star, from)) = retry else { return false };
                    retry = Some((star, from + 1));
                    (pattern_at, at) = (star + 1, from + 1);
                }
            }
        }
        wanted[pattern_at..].iter().all(|wanted| matches!(wanted, '*' | '%'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(kind: TextMatchKind, text: &str, wanted: &str) -> bool {
        Needle::new(wanted, kind, false).is_in(text)
    }

    #[test]
    fn a_term_is_a_run_of_letters_and_digits() {
        for (text, wanted, expected) in [
            ("a_b", "a", true),
            ("alphabeta", "alpha", false),
            ("alpha-beta", "ALPHA", true),
            ("1_2_3", "2.3", false),
            ("v1.2.3", "2.3", true),
            ("emoji😀here", "😀", true),
            ("CAFÉ au lait", "café", true),
            ("decafé", "café", false),
            ("a b", " ", true),
            ("привет мир", "МИР", true),
            ("scatter cat", "cat", true),
            ("x", "", true),
        ] {
            assert_eq!(is_match(TextMatchKind::Has, text, wanted), expected, "{text} has {wanted}");
        }
        assert!(is_match(TextMatchKind::HasPrefix, "the category", "cat"));
        assert!(!is_match(TextMatchKind::HasPrefix, "concat", "cat"));
        assert!(is_match(TextMatchKind::HasSuffix, "concat it", "cat"));
        assert!(is_match(TextMatchKind::Like, "hello", "h*l?"));
        assert!(is_match(TextMatchKind::EndsWith, "über", "BER"));
        assert!(!Needle::new("Quick", TextMatchKind::Has, true).is_in("quick"));
    }
}

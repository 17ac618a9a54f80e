//! Names: which are legal, how they compare, how a `LIKE` pattern becomes an index range, and the nearest existing
//! name.

use crate::error::{CatalogError, Result};
use crate::model::SYSTEM_DATABASE;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// Databases that Querent serves itself.
const RESERVED_DATABASES: [&str; 2] = [SYSTEM_DATABASE, "information_schema"];

/// The key by which names are compared: two names are the same when their keys are.
pub(crate) fn name_key(name: &str) -> String {
    name.to_lowercase()
}

/// Checks that a name is legal for a database or table. Errors: `invalid_name`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it is longer than 255 bytes"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(CatalogError::InvalidName { name: name.into(), reason: reason.into() })
}

/// Checks that a name is legal for a user's database. Errors: `invalid_name`.
pub(super) fn check_database_name(name: &str) -> Result<()> {
    check_name(name)?;
    if RESERVED_DATABASES.contains(&name_key(name).as_str()) {
        return Err(CatalogError::InvalidName { name: name.into(), reason: "the name is reserved".into() });
    }
    Ok(())
}

/// The folder name of a database or table, chosen as DuckDB does: the name where it is plain, else the UUID.
pub(super) fn folder_name(name: &str, uuid: uuid::Uuid) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_plain { format!("{name}/") } else { format!("{uuid}/") }
}

/// A `LIKE` pattern (`\` escapes) over name keys, with the range of keys that can match it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPattern {
    /// For `key LIKE ? ESCAPE '\'`.
    pub(super) like: String,
    /// Every matching key is at least this.
    pub(super) at_least: String,
    /// Every matching key is less than this; empty where there is no such bound.
    pub(super) below: String,
    /// Whether every key between the two matches.
    pub(super) is_range: bool,
    /// How every matching key begins; `None` stands for any character.
    beginning: Vec<Option<char>>,
    /// Whether the beginning is all of it.
    is_whole: bool,
}

/// How a key compares with the beginning of a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The key matches the beginning.
    Same,
    /// The key does not match, and neither does any later key before this one.
    NotBefore(String),
    /// The key does not match, and no later one does.
    Past,
}

impl KeyPattern {
    pub(super) fn new(pattern: &str) -> Self {
        let mut prefix = String::new();
        let mut like = String::new();
        let mut in_prefix = true;
        let mut beginning = Vec::new();
        let mut in_beginning = true;
        let lower = name_key(pattern);
        let mut chars = lower.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' | '_' => {
                    in_prefix = false;
                    in_beginning &= c == '_';
                    like.push(c);
                    beginning.extend(in_beginning.then_some(None));
                }
                '\\' => {
                    // As in LIKE of SQL, whose conditions are looked up by these: before an ordinary character it is that
                    // character, and at the end of a pattern it stands for itself.
                    let literal = chars.next().unwrap_or('\\');
                    push_literal(&mut like, literal);
                    beginning.extend(in_beginning.then_some(Some(literal)));
                    if in_prefix {
                        prefix.push(literal);
                    }
                }
                other => {
                    like.push(other);
                    beginning.extend(in_beginning.then_some(Some(other)));
                    if in_prefix {
                        prefix.push(other);
                    }
                }
            }
        }
        let below = key_range_end(&prefix);
        let is_range = {
            let mut literal = String::new();
            prefix.chars().for_each(|c| push_literal(&mut literal, c));
            like.strip_suffix('%') == Some(literal.as_str())
        };
        Self { like, at_least: prefix, below, is_range, beginning, is_whole: in_beginning }
    }

    /// The parts of the beginning between its any characters, one at least, and whether there is nothing after it.
    pub(super) fn beginning_parts(&self) -> (Vec<String>, bool) {
        let parts = self.beginning.split(Option::is_none).map(|part| part.iter().flatten().collect());
        (parts.collect(), self.is_whole)
    }

    /// Compares a key with the beginning. Many clients do not escape `_`, so keys that do not match may lie between
    /// keys that do.
    pub(super) fn beginning_of(&self, key: &str) -> Beginning {
        let mut rest = key.char_indices();
        let mut last_any: Option<(usize, char)> = None;
        for wanted in &self.beginning {
            match (rest.next(), wanted) {
                (Some((at, found)), None) => last_any = Some((at, found)),
                (Some((_, found)), Some(wanted)) if found == *wanted => {}
                (Some((_, found)), Some(wanted)) if found > *wanted => {
                    let later = last_any.and_then(|(at, any)| Some(format!("{}{}", &key[..at], next_char(any)?)));
                    return later.map_or(Beginning::Past, Beginning::NotBefore);
                }
                (Some((at, _)), Some(wanted)) => return Beginning::NotBefore(format!("{}{wanted}", &key[..at])),
                (None, wanted) => return Beginning::NotBefore(format!("{key}{}", wanted.unwrap_or('\0'))),
            }
        }
        Beginning::Same
    }
}

fn next_char(c: char) -> Option<char> {
    (c..=char::MAX).nth(1)
}

fn push_literal(like: &mut String, literal: char) {
    if matches!(literal, '%' | '_' | '\\') {
        like.push('\\');
    }
    like.push(literal);
}

/// The least key after a key. Names hold no control characters, and PostgreSQL's texts no zero.
pub(super) fn key_after(key: &str) -> String {
    format!("{key}\u{1}")
}

/// The exclusive end of the range of keys that start with `prefix`; empty for an empty prefix.
pub(super) fn key_range_end(prefix: &str) -> String {
    if prefix.is_empty() { String::new() } else { format!("{prefix}{}", char::MAX) }
}

/// The longest name that is compared with others, in bytes: comparing takes a time that grows with both lengths.
const LONGEST_COMPARED: usize = 256;

/// The candidate nearest to `wanted` by edit distance, if any is near enough.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > LONGEST_COMPARED {
        return None;
    }
    let wanted = name_key(wanted);
    let length = wanted.chars().count();
    let max_distance = (length / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let key = name_key(candidate);
            let extends = length >= 3 && (key.starts_with(&wanted) || (key.len() >= 3 && wanted.starts_with(&key)));
            let difference = key.chars().count().abs_diff(length);
            if difference > max_distance && !extends {
                return None;
            }
            let distance = strsim::osa_distance(&wanted, &key);
            (distance <= max_distance || extends).then_some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_keep_their_escapes_and_their_prefix() {
        let pattern = KeyPattern::new(r"Otel\_Lo%s\%");
        assert_eq!(pattern.like, r"otel\_lo%s\%");
        assert_eq!(pattern.at_least, "otel_lo");
        assert_eq!(KeyPattern::new("%x").below, "");
        assert_eq!(KeyPattern::new(r"a\b").like, "ab", "as in LIKE of SQL");
        assert_eq!(KeyPattern::new(r"a\\b\").like, r"a\\b\\");
    }

    #[test]
    fn underscores_part_the_beginning_of_a_pattern() {
        let parts = |pattern: &str| KeyPattern::new(pattern).beginning_parts();
        assert_eq!(parts("sales_2026_Q1"), (["sales", "2026", "q1"].map(str::to_owned).to_vec(), true));
        assert_eq!(parts(r"a\_b__c%d_e"), (["a_b", "", "c"].map(str::to_owned).to_vec(), false));
        assert_eq!(parts("a_"), (["a", ""].map(str::to_owned).to_vec(), true));
        assert_eq!(parts("%a_b"), (vec![String::new()], false));
    }

    #[test]
    fn keys_between_those_that_match_are_stepped_over() {
        let not_before = |later: &str| Beginning::NotBefore(later.to_owned());
        let pattern = KeyPattern::new(r"a_b\_c%x");
        for (key, expected) in [
            ("a_b_c", Beginning::Same),
            ("aéb_cz", Beginning::Same),
            ("a", not_before("a\0")),
            ("a_", not_before("a_b")),
            ("a_a", not_before("a_b")),
            ("a_bz", not_before("a`")),
            ("aéz", not_before("aê")),
            ("a\u{d7ff}z", not_before("a\u{e000}")),
            ("a\u{10ffff}z", Beginning::Past),
            ("b", Beginning::Past),
        ] {
            assert_eq!(pattern.beginning_of(key), expected, "{key:?}");
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("otel_log", ["metrics", "otel_logs", "hotel"]), Some("otel_logs"));
        assert_eq!(nearest("fligths", ["flights", "weather"]), Some("flights"));
        assert_eq!(nearest("zzz", ["flights", "weather"]), None);
    }
}

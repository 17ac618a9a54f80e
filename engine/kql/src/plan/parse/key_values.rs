//! The function of `parse-kv`: the values of named keys in a text, as a struct of texts. Of several values of a key the
//! first one counts, and blanks around keys and values do not.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use regex::{Regex, RegexBuilder};

/// The largest size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// How keys and values are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Notation {
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyValues {
    pub(super) keys: Vec<String>,
    pub(super) notation: Notation,
    pub(super) quotes: Vec<(char, char)>,
    pub(super) escapes: Vec<char>,
}

/// Returns the function.
pub(super) fn key_values(wanted: KeyValues) -> std::result::Result<Arc<ScalarUDF>, String> {
    let regex = match &wanted.notation {
        Notation::Pattern(pattern) => {
            let regex = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
            let regex = regex.map_err(|error| format!("not a regular expression: {error}"))?;
            if regex.captures_len() != 3 {
                return Err("the pattern must have a group for the key and one for the value".to_owned());
            }
            Some(regex)
        }
        Notation::Delimited { .. } | Notation::Open => None,
    };
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    Ok(Arc::new(ScalarUDF::new_from_impl(KeyValuesOf { wanted, regex, signature })))
}

/// Whether a function is this one.
pub(crate) fn is_key_values_function(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<KeyValuesOf>()
}

#[derive(Debug)]
struct KeyValuesOf {
    wanted: KeyValues,
    regex: Option<Regex>,
    signature: Signature,
}

impl PartialEq for KeyValuesOf {
    fn eq(&self, other: &Self) -> bool {
        self.wanted == other.wanted
    }
}

impl Eq for KeyValuesOf {}

impl Hash for KeyValuesOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.wanted.hash(state);
    }
}

impl ScalarUDFImpl for KeyValuesOf {
    fn name(&self) -> &str {
        "kql_key_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(texts) = arrays.first().and_then(|array| array.as_string_view_opt()) else {
            return Err(DataFusionError::Internal("kql_key_values takes a text".into()));
        };
        let mut builders: Vec<StringViewBuilder> = self.wanted.keys.iter().map(|_| StringViewBuilder::new()).collect();
        for row in 0..texts.len() {
            let text = if texts.is_valid(row) { texts.value(row) } else { "" };
            let mut found: Vec<Option<String>> = vec![None; self.wanted.keys.len()];
            self.read(text, &mut |key, value| {
                let index = self.wanted.keys.iter().position(|known| known == key.trim());
                if let Some(slot @ None) = index.and_then(|index| found.get_mut(index)) {
                    *slot = Some(value.trim().to_owned());
                }
            });
            for (builder, value) in builders.iter_mut().zip(found) {
                builder.append_value(value.unwrap_or_default());
            }
        }
        let columns: Vec<ArrayRef> =
            builders.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        let made = StructArray::try_new_with_length(self.fields(), columns, None, texts.len())?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}

impl KeyValuesOf {
    fn fields(&self) -> Fields {
        (0..self.wanted.keys.len()).map(|index| Field::new(format!("v{index}"), DataType::Utf8View, true)).collect()
    }

    fn read(&self, text: &str, add: &mut impl FnMut(&str, &str)) {
        match (&self.wanted.notation, &self.regex) {
            (Notation::Pattern(_), Some(regex)) => {
                for captures in regex.captures_iter(text) {
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
        let mut rest = text.trim_start();
        while !rest.is_empty() {
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
        for key in &self.wanted.keys {
            let mut from = 0;
            while let Some(at) = text[from..].find(key.as_str()).map(|at| from + at) {
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

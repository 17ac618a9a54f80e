//! The groups of a regular expression's first match in a text; none where nothing matches.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::text_parts::{CompiledPattern, TextPartReader, is_text_parts, reader_of, text_parts};

/// Returns the name of the group at `index`.
pub(super) fn group_name(index: usize) -> String {
    format!("c{index}")
}

/// Returns the function for a pattern with so many groups, `c0`, `c1`, ...
pub(crate) fn captures(pattern: &str, groups: usize) -> Result<Arc<ScalarUDF>, String> {
    let names = (0..groups).map(group_name).collect();
    Ok(text_parts(Captures { pattern: CompiledPattern::new(pattern)?, names }))
}

/// Returns the pattern and the number of its groups, if a function is this one.
pub(crate) fn pattern_of_captures(function: &ScalarUDF) -> Option<(&str, usize)> {
    let captures = reader_of::<Captures>(function)?;
    Some((captures.pattern.0.as_str(), captures.names.len()))
}

/// Whether a function is this one.
pub(crate) fn is_captures_function(function: &ScalarUDF) -> bool {
    is_text_parts::<Captures>(function)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Captures {
    pattern: CompiledPattern,
    names: Vec<String>,
}

impl TextPartReader for Captures {
    const FUNCTION: &'static str = "kql_captures";

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn read<'t>(&self, text: &'t str, parts: &mut [Option<Cow<'t, str>>]) -> bool {
        let Some(found) = self.pattern.0.captures(text) else { return false };
        for (part, name) in parts.iter_mut().zip(&self.names) {
            *part = found.name(name).map(|group| Cow::Borrowed(group.as_str()));
        }
        true
    }
}

//! KQL, the language of Kusto: text to a syntax tree with a place on every node.
//!
//! Parsing never fails: it returns a tree and the errors. Where there is an error the tree has an `Invalid` node and
//! goes on after the next `|` or `;`, so that one text can show several errors. It is linear in the text, and neither
//! its own stack nor the tree's depth grows with the text: past a fixed depth it is an error. How long a text may be
//! is the caller's to say.

mod aggregates;
pub mod ast;
mod bind;
mod error;
mod functions;
mod json_text;
mod keywords;
mod lexer;
mod parse;
mod plan;
mod planner;
mod sketches;
mod span;
mod types;
mod values;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod replay;

pub(crate) use aggregates::is_ours as is_our_aggregate;
pub use bind::{BindError, BindErrorCode};
pub use error::{Position, SyntaxError, SyntaxErrorCode};
pub use parse::Parsed;
pub use plan::Rendering;
pub(crate) use plan::StoredComparisons;
pub use planner::{KqlColumn, KqlParameters};
pub(crate) use planner::{KqlPlanner, PlannedKql};
pub use span::Span;
pub use types::KqlType;

use datafusion::logical_expr::{ScalarUDF, WindowUDF};

/// Whether a plan may call this function over rows in their order.
pub(crate) fn is_our_window(function: &WindowUDF) -> bool {
    plan::is_our_window(function)
}

/// Whether a plan may call this function: it was made here, from a query's text, and reads nothing.
pub(crate) fn is_our_function(function: &ScalarUDF) -> bool {
    functions::is_ours(function) || json_text::is_ours(function) || plan::is_ours(function)
}

/// Parses a query.
///
/// ```
/// # use querent_engine::kql;
/// let parsed = kql::parse("T | where a == | take 5");
/// assert_eq!(parsed.errors[0].message, "expected an expression, found `|`");
/// assert_eq!(kql::parse("T | take 5").errors, []);
/// ```
pub fn parse(text: &str) -> Parsed {
    parse::parse(text)
}

/// A length of time as KQL's `timespan` literals and .NET write it: `1.5h`, `hh:mm:ss`, `d.hh:mm:ss`. `None` where it is
/// neither, or less than nothing.
pub fn timespan(text: &str) -> Option<std::time::Duration> {
    const TICKS_PER_SECOND: u64 = 10_000_000;
    let ticks = u64::try_from(values::parse_timespan(text)?).ok()?;
    let nanoseconds = (ticks % TICKS_PER_SECOND) * 100;
    Some(std::time::Duration::new(ticks / TICKS_PER_SECOND, u32::try_from(nanoseconds).ok()?))
}

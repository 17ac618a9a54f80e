//! KQL, the language of Kusto, on Apache DataFusion: from a query's text to a syntax tree to a `LogicalPlan`, with
//! KQL's functions and aggregates.
//!
//! Nothing here knows a catalog, a policy or a server. What a query needs from outside (a table by its name, the names
//! that a wildcard stands for, rows that decide how the rest is planned, memory, the time that is left) it asks its
//! `KqlHost`. A DataFusion `SessionState` is one as it is:
//!
#![cfg_attr(feature = "plan", doc = "```")]
#![cfg_attr(not(feature = "plan"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! use datafusion::prelude::SessionContext;
//! use querent_kql::KqlParameters;
//!
//! let context = SessionContext::new();
//! let query = "range x from 1 to 5 step 1 | summarize total = sum(x)";
//! let planned = querent_kql::plan(&context.state(), query, &KqlParameters::new()).await?;
//! let batches = context.execute_logical_plan(planned.plan).await?.collect().await?;
//! assert_eq!(planned.columns[0].text(batches[0].column(0), 0), "15");
//! # Ok(())
//! # }
//! ```
//!
//! `examples/bare_datafusion.rs` asks questions of a CSV file.
//!
//! # Map
//!
//! | module | purpose |
//! |---|---|
//! | `lexer`, `keywords`, [`mod@span`] | characters to tokens, each with its place in the text |
//! | `parse`, [`ast`], `error` | tokens to a syntax tree and the errors |
//! | `bind`, `plan` | names to columns, expressions to typed ones, operators to plans |
//! | `functions`, `aggregates`, `sketches`, `values` | what the functions compute |
//! | `graph` | the walk behind `graph-traverse` |
//! | `interrupt` | whether a query is to end, for loops over many elements |
//! | `planner`, `host`, `materialized` | the questions that planning asks, and who answers them |
//! | `bind_error`, `query_error` | errors in the meaning of a query, and of a whole query |
//! | `asked_limits` | the limits that a query asks for |
//! | `literal_rows` | whether all rows of a plan are written in the query |
//! | `origin`, `nearest` | which functions of a plan are KQL's, names that were meant |
//! | `written` | functions of a plan as text, and back |
//!
//! Parsing never fails: it returns a tree and the errors. Where there is an error the tree has an `Invalid` node and
//! continues after the next `|` or `;`, so that one query can show several errors. It takes time linear in the length
//! of the query, and neither its own stack nor the depth of the tree grows with the query: past a fixed depth it is an
//! error. How long a query may be is for the caller to limit.
//!
//! Without the feature `plan` only tokens, tree, parser and errors are compiled, and no DataFusion.

#[cfg(feature = "plan")]
mod aggregates;
#[cfg(feature = "plan")]
mod asked_limits;
pub mod ast;
#[cfg(feature = "plan")]
mod bind;
#[cfg(feature = "plan")]
mod bind_error;
mod error;
#[cfg(feature = "plan")]
mod forms;
#[cfg(feature = "plan")]
mod functions;
#[cfg(feature = "plan")]
pub mod graph;
#[cfg(feature = "plan")]
mod host;
#[cfg(feature = "plan")]
mod interrupt;
mod keywords;
mod lexer;
#[cfg(feature = "plan")]
mod literal_rows;
#[cfg(feature = "plan")]
mod materialized;
mod nearest;
#[cfg(feature = "plan")]
mod origin;
mod parse;
#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod planner;
#[cfg(feature = "plan")]
mod query_error;
#[cfg(feature = "plan")]
mod sketches;
pub mod span;
#[cfg(feature = "plan")]
#[cfg(test)]
mod tests;
#[cfg(feature = "plan")]
mod types;
#[cfg(feature = "plan")]
mod values;
#[cfg(feature = "plan")]
mod written;

pub use error::{Position, SyntaxError, SyntaxErrorCode};
pub use keywords::needs_brackets;
pub use lexer::behind_comments;
pub use nearest::nearest_name;
pub use parse::ParsedQuery;
pub use span::Span;

#[cfg(feature = "plan")]
pub use {
    aggregates::percentiles::rounded_up,
    asked_limits::{AskedLimits, asked_limits},
    bind_error::{BindError, BindErrorCode},
    host::{ExternalLayout, ExternalLocation, GraphKey, GraphVersion, KqlHost, TableKey, TableLookup},
    interrupt::check_interrupts_with,
    literal_rows::is_over_literals,
    materialized::Materialized,
    origin::{is_kql_aggregate, is_kql_function, is_kql_window_function, is_stored_conversion},
    plan::{Rendering, StoredComparisons},
    planner::{KqlColumn, KqlParameters, PlannedKql, plan, plan_all},
    query_error::{ExecutionError, KqlError, KqlErrorCode},
    types::KqlType,
    values::{timespan, timespan_text},
    written::{
        read_aggregate, read_function, read_window_function, written_aggregate, written_function,
        written_window_function,
    },
};

/// Parses a query.
///
/// ```
/// let parsed = querent_kql::parse("T | where a == | take 5");
/// assert_eq!(parsed.errors[0].message, "expected an expression, found `|`");
/// assert_eq!(querent_kql::parse("T | take 5").errors, []);
/// ```
pub fn parse(text: &str) -> ParsedQuery {
    parse::parse(text)
}

/// Returns the names of KQL's functions of one row, in order.
#[cfg(feature = "plan")]
pub fn function_names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = functions::names().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the names of Kusto's plugins, in order, each with whether it is here.
#[cfg(feature = "plan")]
pub fn plugin_names() -> Vec<(&'static str, bool)> {
    let mut names: Vec<(&'static str, bool)> = plan::plugins().collect();
    names.sort_unstable();
    names
}

//! The names by which rewritten syntax reaches the steps that plan it: table functions that nobody else has, and an operator.

/// `summarize((query))`.
pub(super) const SUMMARIZE: &str = "summarize";
/// `pivot((query), (SELECT aggregates GROUP BY ...), column [, (SELECT values)])`.
pub(super) const PIVOT: &str = "pivot";
/// `unpivot((query), 'name', 'value', 'include' or 'exclude', (SELECT columns))`.
pub(super) const UNPIVOT: &str = "unpivot";
/// `sample((SELECT * FROM relations), amount, 'rows' or 'percent' [, seed])`.
pub(super) const SAMPLE: &str = "sample";
/// `asof((SELECT * FROM left), (SELECT * FROM right), condition or columns, 'inner' or 'left')`.
pub(super) const ASOF: &str = "asof";
/// `positional((SELECT * FROM left), (SELECT * FROM right))`.
pub(super) const POSITIONAL: &str = "positional";
/// `->` that takes a part of JSON; the parser would read it as a lambda's.
pub(super) const JSON_ARROW: &str = "->";

//! The names by which rewritten syntax reaches the steps that plan it: table functions that nobody else has, and an operator.

/// `summarize((query))`.
pub(super) const SUMMARIZE: &str = "summarize";
/// `__describe((query))`: a name that nothing else has.
pub(super) const DESCRIBE: &str = "__describe";
/// `pivot((query), (SELECT aggregates GROUP BY ...), __pivot_on(column) [, (SELECT values)], ...)`.
pub(super) const PIVOT: &str = "pivot";
/// `__pivot_on(column)` before the values of a column, in the call above and among the values of another column of a PIVOT.
pub(super) const PIVOT_ON: &str = "__pivot_on";
/// `__pivot_group(columns)` behind them.
pub(super) const PIVOT_GROUP: &str = "__pivot_group";
/// Before a name that the statement gives a value or an aggregate of a PIVOT; other names in these lists are made of their texts.
pub(super) const PIVOT_NAME: &str = "__pivot_name:";
/// `unpivot((query), 'name', 'include' or 'exclude', (SELECT columns), 'value', ...)`.
pub(super) const UNPIVOT: &str = "unpivot";
/// `sample((SELECT * FROM relations), amount, 'rows' or 'percent' [, seed])`.
pub(super) const SAMPLE: &str = "sample";
/// `asof((SELECT * FROM left), (SELECT * FROM right), condition or columns, 'inner' or 'left')`.
pub(super) const ASOF: &str = "asof";
/// `positional((SELECT * FROM left), (SELECT * FROM right))`.
pub(super) const POSITIONAL: &str = "positional";
/// `limit_percent((SELECT * FROM (query)), percent, offset)`; behind LIMIT it is of the percent alone.
pub(super) const LIMIT_PERCENT: &str = "limit_percent";
/// `limit_rows((SELECT * FROM (query)), limit, offset)`, where one of them is of a query.
pub(super) const LIMIT_ROWS: &str = "__limit_rows";
/// `__values((VALUES ...))` in the query of an INSERT.
pub(super) const VALUES: &str = "__values";
/// The option of a file that a COPY reads: its texts stay as they are in the table's columns of text.
pub(super) const COPIED: &str = "__copied";
/// In the place of the columns of an INSERT: those of its query.
pub(super) const BY_NAME: &str = "__querent_by_name";
/// `__merge_columns(a, b)` in the place of a MERGE's condition.
pub(super) const MERGE_COLUMNS: &str = "__merge_columns";
/// The column that `DO NOTHING` of a MERGE sets.
pub(super) const NOTHING: &str = "__querent_nothing";
/// The column that `UPDATE` and `INSERT` of a whole row of the source name in a MERGE.
pub(super) const MERGE_BY_NAME: &str = "__querent_whole_by_name";
pub(super) const MERGE_BY_POSITION: &str = "__querent_whole_by_position";
/// The property of a table that says by what its rows are sorted: the text between the parentheses.
pub(super) const SORTED_BY: &str = "__sorted_by";
/// Joined before the first end of a BETWEEN SYMMETRIC.
pub(super) const SYMMETRIC: &str = "__symmetric";
/// `->` that takes a part of JSON; the parser would read it as a lambda's.
pub(super) const JSON_ARROW: &str = "->";
/// `<->`, of which the parser makes a comparison with what begins with an arrow.
pub(super) const DISTANCE: &str = "<->";
/// `GLOB`, `IN [list]` and what negates them, as names of columns have them.
pub(super) const GLOB: &str = "GLOB";
pub(super) const NOT_GLOB: &str = "NOT GLOB";
pub(super) const IN_LIST: &str = "IN";
pub(super) const NOT_IN_LIST: &str = "NOT IN";

/// Returns whether an operator is one of these.
pub(super) fn is_operator(name: &str) -> bool {
    [JSON_ARROW, DISTANCE, GLOB, NOT_GLOB, IN_LIST, NOT_IN_LIST].contains(&name)
}

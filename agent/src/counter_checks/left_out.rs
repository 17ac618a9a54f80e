//! Rows that aggregates leave out: `sum(price - discount)` of rows without a discount, `count(phone)` of rows without a
//! phone. Also values that are weighed otherwise than they are asked for: an average of averages, the sum of
//! distinct values, and the sum of a UNION, which has equal rows once.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Visit, Visitor,
};

use super::fan_out::{query_of, selected_called};
use super::limits::parse_projection;
use super::nulls::far_sides;
use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, column_of, folded_words, is_key};
use crate::sql_text::{quote_identifier, quoted_table};

/// Aggregates that say what is typical of a group, whatever its size.
const AVERAGES: [&str; 5] = ["avg", "mean", "median", "approx_median", "percentile_cont"];

/// Looks for what the aggregates of a SELECT leave out, or weigh otherwise.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let counts_rows = counts_rows(select);
    let mut findings = Vec::new();
    for item in &select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.as_str())),
            _ => continue,
        };
        findings.extend(spread_over_all(checked, select, expr).await);
        for (aggregate, argument, is_distinct) in aggregates(expr) {
            let function = aggregate.name.to_string().to_lowercase();
            let found = match (function.as_str(), is_distinct) {
                ("sum" | "avg" | "mean", false) if matches!(argument, Expr::BinaryOp { .. }) => {
                    half_null(checked, select, &scope, aggregate, argument).await
                }
                ("sum" | "avg" | "mean", false) => match summed_key(checked, &scope, aggregate, argument) {
                    Some(finding) => Some(finding),
                    None => weighed_within(checked, select, &scope, aggregate, argument).await,
                },
                ("count", false) if !counts_rows => uncounted(checked, select, &scope, aggregate, argument, name).await,
                ("sum" | "avg" | "mean", true) => repeated_values(checked, &scope, aggregate, argument).await,
                _ => None,
            };
            findings.extend(found);
        }
    }
    findings
}

/// Looks for rows in which a part of what is summed is null, and another is not.
async fn half_null(
    checked: &Checked<'_>,
    select: &Select,
    scope: &Scope,
    aggregate: &Function,
    argument: &Expr,
) -> Option<Finding> {
    let columns = columns_in(argument);
    if columns.len() < 2 || columns.iter().any(|column| column_of(scope, column).is_none()) {
        return None;
    }
    let is_there: Vec<String> = columns.iter().map(|column| format!("{column} IS NOT NULL")).collect();
    let condition = format!("({argument}) IS NULL AND ({})", is_there.join(" OR "));
    let count = count_where(checked, select, &condition).await?;
    let message = format!(
        "`{argument}` is null in {count} rows, of which only a part of it has a value, and `{aggregate}` leaves them \
         out; write coalesce(..., 0) around what may be missing"
    );
    Some(Finding::new(CheckKind::Nulls, message))
}

/// Finds `sum(date_diff('minute', began, ended)) / count(*)`, where rows that have not ended count as none that lasted no time.
async fn spread_over_all(checked: &Checked<'_>, select: &Select, expr: &Expr) -> Option<Finding> {
    const BETWEEN_TIMES: [&str; 5] = ["date_diff", "datediff", "timestampdiff", "timediff", "age"];
    let Expr::BinaryOp { left, op: BinaryOperator::Divide, right } = expr else { return None };
    let summed = aggregates(left);
    let [(sum, Expr::Function(argument), false)] = summed.as_slice() else { return None };
    let is_between = BETWEEN_TIMES.contains(&argument.name.to_string().to_lowercase().as_str());
    let is_sum = sum.name.to_string().eq_ignore_ascii_case("sum");
    if !is_between || !is_sum || !right.to_string().eq_ignore_ascii_case("count(*)") {
        return None;
    }
    let count = count_where(checked, select, &format!("{argument} IS NULL")).await?;
    let message = format!(
        "`{argument}` is null in {count} rows, which `{sum}` leaves out and `count(*)` does not; write avg({argument})"
    );
    Some(Finding::new(CheckKind::Nulls, message))
}

/// Looks for rows that `count(x)` leaves out, where nothing says that those with a value are meant.
async fn uncounted(
    checked: &Checked<'_>,
    select: &Select,
    scope: &Scope,
    aggregate: &Function,
    argument: &Expr,
    name: Option<&str>,
) -> Option<Finding> {
    let (source, column, _) = column_of(scope, argument)?;
    source.table.as_ref()?;
    let is_far = far_sides(select).iter().any(|far| far.eq_ignore_ascii_case(&source.name));
    let words = folded_words(&column.replace('_', " "));
    let name = folded_words(&name.unwrap_or_default().replace('_', " "));
    // `count(phone) AS phones` says what it counts, and so does `count(referrer_id) AS referred`.
    if is_far || words.iter().any(|word| name.iter().any(|said| is_of_family(word, said))) {
        return None;
    }
    // Of `sum(CASE WHEN mark < 5 ...) / count(mark)` rows without a mark are no part.
    let divided = format!("/ {aggregate}");
    let is_share_of_it = |item: String| item.split_once(&divided).is_some_and(|(before, _)| before.contains(column));
    if select.projection.iter().map(ToString::to_string).any(is_share_of_it) {
        return None;
    }
    let count = count_where(checked, select, &format!("{argument} IS NULL")).await?;
    let message =
        format!("`{aggregate}` leaves out {count} rows that have no `{column}`; write count(*) to count all of them");
    Some(Finding::new(CheckKind::Nulls, message))
}

/// Whether two words are the same, or begin so that they are of one family: also `stud` and `student`, but not `ride` and `rider`.
pub(super) fn is_of_family(one: &str, other: &str) -> bool {
    const SHARED: usize = 5;
    const SHORTEST: usize = 4;
    const DOERS: [&str; 3] = ["r", "er", "or"];
    let is_short_for = |short: &str, long: &str| {
        short.chars().count() >= SHORTEST && long.strip_prefix(short).is_some_and(|rest| !DOERS.contains(&rest))
    };
    is_short_for(one, other)
        || is_short_for(other, one)
        || one == other
        || one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count() >= SHARED
}

/// Returns the number of a SELECT's rows under one more condition; `None` where there is none.
async fn count_where(checked: &Checked<'_>, select: &Select, condition: &str) -> Option<String> {
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    let filter = select.selection.as_ref().map(|filter| format!("({filter}) AND ")).unwrap_or_default();
    let with = checked.with_clause();
    let sql = format!("{with}SELECT count(*) FROM {} WHERE {filter}{condition} HAVING count(*) > 0", from.join(", "));
    checked.rows(&sql, 1).await?.first()?.first().cloned()
}

/// Finds `sum(id)`: numbers by which rows are told apart, and of which no sum means anything.
fn summed_key(checked: &Checked<'_>, scope: &Scope, aggregate: &Function, argument: &Expr) -> Option<Finding> {
    let (source, column, _) = column_of(scope, argument)?;
    let table = source.table.as_ref()?;
    let lower = column.to_lowercase();
    let is_id =
        lower == "id" || lower.ends_with("_id") || (lower.ends_with("id") && is_key(checked.at_hand, table, column));
    let message = format!("`{table}.{column}` tells rows apart, and `{aggregate}` computes with it");
    is_id.then(|| Finding::new(CheckKind::Average, message))
}

/// Looks into the query that a sum or an average reads from.
async fn weighed_within(
    checked: &Checked<'_>,
    select: &Select,
    scope: &Scope,
    outer: &Function,
    argument: &Expr,
) -> Option<Finding> {
    let (source, column, _) = column_of(scope, argument)?;
    let query = query_of(checked.query, select, &source.name)?;
    match query.body.as_ref() {
        SetExpr::Select(inner) => average_of_averages(checked, inner, column, outer).await,
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: SetQuantifier::None, left, right }
            if query.limit_clause.is_none() && query.with.is_none() =>
        {
            equal_rows_once(checked, [left.as_ref(), right.as_ref()], outer).await
        }
        _ => None,
    }
}

/// Looks for an average, or a sum, over the averages or medians of groups of different sizes.
async fn average_of_averages(checked: &Checked<'_>, inner: &Select, column: &str, outer: &Function) -> Option<Finding> {
    let averaged = selected_called(inner, column)?;
    let is_average = match averaged {
        Expr::Function(function) => AVERAGES.contains(&function.name.to_string().to_lowercase().as_str()),
        other => is_ratio(other),
    };
    let is_grouped = matches!(&inner.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty());
    if !is_grouped || !is_average {
        return None;
    }
    let mut sizes = inner.clone();
    // Keys that are positions or names of what was selected fail here, and nothing is said.
    sizes.projection = parse_projection(&["count(*) AS n".to_owned()]).ok()?;
    let with = checked.with_clause();
    let sql = format!("{with}SELECT 1 FROM ({sizes}) AS sizes HAVING count(DISTINCT n) > 1");
    let message = format!(
        "`{averaged}` is of groups of different sizes, and `{outer}` counts each group the same; compute it of the \
         rows themselves where every row is to count the same"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::Average, message))
}

/// Finds `sum(goals)` of `SELECT home_goals AS goals ... UNION SELECT away_goals ...`, where one of the two has equal
/// rows, of which UNION leaves one.
async fn equal_rows_once(checked: &Checked<'_>, sides: [&SetExpr; 2], outer: &Function) -> Option<Finding> {
    let with = checked.with_clause();
    for side in sides {
        let sql = format!(
            "{with}SELECT 1 AS found WHERE (SELECT count(*) FROM ({side}) AS every_row) > \
             (SELECT count(*) FROM (SELECT DISTINCT * FROM ({side}) AS side) AS distinct_row)"
        );
        if checked.has_rows(&sql).await {
            let message = format!("UNION leaves one of equal rows, before `{outer}` takes them; write UNION ALL");
            return Some(Finding::new(CheckKind::Average, message));
        }
    }
    None
}

/// Whether an expression divides one aggregate by another: a share of each group.
fn is_ratio(expr: &Expr) -> bool {
    let is_aggregate = |expr: &Expr| expr.to_string().to_lowercase().contains("count(") || !aggregates(expr).is_empty();
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Divide, right } => is_aggregate(left) && is_aggregate(right),
        Expr::BinaryOp { left, right, .. } => is_ratio(left) || is_ratio(right),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_ratio(inner),
        _ => false,
    }
}

/// Looks for values that several rows of a table have, and that a sum of distinct values counts once.
async fn repeated_values(
    checked: &Checked<'_>,
    scope: &Scope,
    aggregate: &Function,
    argument: &Expr,
) -> Option<Finding> {
    let (source, column, _) = column_of(scope, argument)?;
    let table = source.table.as_ref()?;
    let column = quote_identifier(column);
    let sql = format!(
        "SELECT 1 FROM {} WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1 LIMIT 1",
        quoted_table(table)
    );
    let message = format!("several rows of `{table}` have the same {column}, and `{aggregate}` takes it once");
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::Average, message))
}

/// Whether a SELECT counts its rows as well.
fn counts_rows(select: &Select) -> bool {
    select.projection.iter().any(|item| item.to_string().to_lowercase().contains("count(*)"))
}

/// Returns the aggregates within an expression that have one argument and are over no window, each with whether it takes
/// distinct values.
fn aggregates(expr: &Expr) -> Vec<(&Function, &Expr, bool)> {
    match expr {
        Expr::Function(function) => {
            let FunctionArguments::List(list) = &function.args else { return Vec::new() };
            let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            let arguments = list.args.iter().filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
                _ => None,
            });
            let arguments: Vec<&Expr> = arguments.collect();
            let name = function.name.to_string().to_lowercase();
            match arguments.as_slice() {
                [only] if ["sum", "avg", "mean", "count"].contains(&name.as_str()) => {
                    let is_plain = function.over.is_none() && function.filter.is_none();
                    if is_plain { vec![(function, *only, is_distinct)] } else { Vec::new() }
                }
                several => several.iter().flat_map(|argument| aggregates(argument)).collect(),
            }
        }
        Expr::BinaryOp { left, right, .. } => {
            let mut found = aggregates(left);
            found.extend(aggregates(right));
            found
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => aggregates(inner),
        _ => Vec::new(),
    }
}

/// Returns the columns that arithmetic is of; none where it holds anything but columns, values and arithmetic.
fn columns_in(expr: &Expr) -> Vec<Expr> {
    struct ArithmeticColumns {
        columns: Vec<Expr>,
        is_plain: bool,
    }
    impl Visitor for ArithmeticColumns {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.is_plain = false;
            ControlFlow::Break(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                    if !self.columns.contains(expr) {
                        self.columns.push(expr.clone());
                    }
                }
                Expr::BinaryOp { .. } | Expr::Nested(_) | Expr::Value(_) | Expr::Cast { .. } | Expr::UnaryOp { .. } => {
                }
                _ => self.is_plain = false,
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = ArithmeticColumns { columns: Vec::new(), is_plain: true };
    let _: ControlFlow<()> = expr.visit(&mut finder);
    if finder.is_plain { finder.columns } else { Vec::new() }
}

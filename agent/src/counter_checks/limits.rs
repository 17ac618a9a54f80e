//! Limits that leave rows out: of rows in no order, before they are counted or summed, or between equals.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    Value, Visit, Visitor, WindowSpec, WindowType,
};

use super::{CheckKind, Checked, Finding, rows_read};

/// The call that numbers rows.
const NUMBERED: &str = "row_number()";
/// The longest list whose last place is compared with the next.
const MAX_PLACES: usize = 100;

/// Looks for limits that are a truncation.
pub(super) async fn check(checked: &Checked<'_>, select: &Select, rows: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(finding) = nulls_first(checked, select).await {
        findings.push(finding);
    }
    findings.extend(numbered_ties(checked, select).await);
    findings.extend(neighbour_ties(checked, select).await);
    let Some(place) = limit_of(checked.query).filter(|place| rows == place.limit && rows > 0) else {
        return findings;
    };
    let limit = place.limit;
    match &checked.query.order_by {
        // `SELECT * FROM t LIMIT 1` only looks at a table.
        None if (select.selection.is_some() || is_grouped(select) || limit > 1)
            && has_more(checked, checked.query, place).await =>
        {
            let message =
                format!("LIMIT {limit} without ORDER BY: there are more rows, and any {limit} of them are shown");
            findings.push(Finding::new(CheckKind::Limit, message));
        }
        Some(order) if place.end() <= MAX_PLACES => {
            if let OrderByKind::Expressions(parts) = &order.kind
                && !parts.is_empty()
                && is_tied(checked, select, place).await
            {
                let message = match place.offset {
                    0 => format!("the next row after LIMIT {limit} is equal by ORDER BY: there is a tie"),
                    offset => format!(
                        "a row before or after those of LIMIT {limit} OFFSET {offset} is equal to them by ORDER BY: \
                         there is a tie"
                    ),
                };
                findings.push(Finding::new(CheckKind::Limit, message));
            }
        }
        _ => {}
    }
    findings
}

fn is_grouped(select: &Select) -> bool {
    !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
}

/// Looks for a limit of a query within another: any of its rows are what the other works with.
pub(super) async fn check_within(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let is_constant = matches!(select.projection.as_slice(), [SelectItem::UnnamedExpr(Expr::Value(_))]);
    let (Some(place), None, false) = (limit_of(checked.query), &checked.query.order_by, is_constant) else {
        return Vec::new();
    };
    if !has_more(checked, checked.query, place).await {
        return Vec::new();
    }
    let limit = place.limit;
    let message = format!("only {limit} rows of the subquery, in no order, are counted");
    vec![Finding::new(CheckKind::Limit, message)]
}

/// Looks for rows without a value that come first by `ORDER BY x DESC LIMIT 1`.
async fn nulls_first(checked: &Checked<'_>, select: &Select) -> Option<Finding> {
    limit_of(checked.query)?;
    let OrderByKind::Expressions(parts) = &checked.query.order_by.as_ref()?.kind else { return None };
    let first = parts.first().filter(|part| {
        part.options.asc == Some(false) && part.options.nulls_first.is_none() && select.distinct.is_none()
    })?;
    let key = selected_as(select, &first.expr);
    let mut inner = select.clone();
    inner.projection = parse_projection(&[format!("({key}) IS NULL")]).ok()?;
    let with = checked.with_clause();
    let body = SetExpr::Select(Box::new(inner));
    let found = checked.rows(&format!("{with}{body} ORDER BY {key} DESC LIMIT 1"), 1).await?;
    let is_null = found.first()?.first()? == "true";
    let message = format!("rows without a value of `{key}` come first with DESC; write `DESC NULLS LAST`");
    is_null.then(|| Finding::new(CheckKind::Nulls, message))
}

/// Which rows of all a query keeps.
#[derive(Debug, Clone, Copy)]
struct RowWindow {
    offset: usize,
    limit: usize,
}

impl RowWindow {
    /// Returns the place after the last of them.
    fn end(self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

/// Returns which rows a query keeps, where it says so by numbers.
fn limit_of(query: &Query) -> Option<RowWindow> {
    let number = |expr: &Expr| match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse::<usize>().ok(),
            _ => None,
        },
        _ => None,
    };
    let (limit, offset) = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(_) => return None,
        None => (None, None),
    };
    let fetched = match &query.fetch {
        Some(fetch) if fetch.with_ties || fetch.percent => return None,
        Some(fetch) => fetch.quantity.as_ref(),
        None => None,
    };
    let offset = match offset {
        Some(offset) => number(offset)?,
        None => 0,
    };
    Some(RowWindow { offset, limit: number(limit.or(fetched)?)? })
}

async fn has_more(checked: &Checked<'_>, query: &Query, place: RowWindow) -> bool {
    let mut whole = query.clone();
    whole.limit_clause = None;
    whole.fetch = None;
    let all = place.end().saturating_add(1);
    let sql = format!("SELECT 1 FROM ({whole}) AS counted LIMIT {all}");
    checked.rows(&sql, all).await.is_some_and(|rows| rows.len() == all)
}

/// Looks for ties that `row_number() ... WHERE r = 1` cuts, where `rank()` would keep them.
async fn numbered_ties(checked: &Checked<'_>, select: &Select) -> Option<Finding> {
    let filter = select.selection.as_ref()?;
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let is_numbered = format!("{with}{rows}").to_ascii_lowercase().matches(NUMBERED).count() == 1;
    if !is_numbered || !select.from.iter().all(|from| from.joins.is_empty()) || !keeps_first(filter) {
        return None;
    }
    let ranked = |text: &str| match text.to_ascii_lowercase().find(NUMBERED) {
        Some(at) => format!("{}rank(){}", &text[..at], &text[at + NUMBERED.len()..]),
        None => text.to_owned(),
    };
    let by_number = checked.rows(&format!("{with}SELECT count(*) {rows}"), 1).await?;
    let by_rank = checked.rows(&format!("{}SELECT count(*) {}", ranked(&with), ranked(&rows)), 1).await?;
    let message =
        "row_number() numbers equal rows in any order, and leaves some of a tie out; write rank() to keep them";
    (by_number != by_rank).then(|| Finding::new(CheckKind::Limit, message))
}

/// Looks for rows that are equal in what `lag(x) OVER (ORDER BY day)` is ordered by: the row before each is any of them.
async fn neighbour_ties(checked: &Checked<'_>, select: &Select) -> Option<Finding> {
    struct NeighbourFinder(Option<(String, WindowSpec)>);
    impl Visitor for NeighbourFinder {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let Some(WindowType::WindowSpec(window)) = &function.over
                && window.window_name.is_none()
                && !window.order_by.is_empty()
                && ["lag", "lead"].contains(&function.name.to_string().to_lowercase().as_str())
            {
                self.0 = Some((function.name.to_string(), window.clone()));
            }
            ControlFlow::Continue(())
        }
    }
    if is_grouped(select) {
        return None;
    }
    let mut finder = NeighbourFinder(None);
    let _: ControlFlow<()> = select.projection.visit(&mut finder);
    let (name, window) = finder.0?;
    let order = window.order_by.iter().map(|part| part.expr.to_string());
    let keys: Vec<String> = window.partition_by.iter().map(ToString::to_string).chain(order).collect();
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let sql = format!("{with}SELECT 1 {rows} GROUP BY {} HAVING count(*) > 1 LIMIT 1", keys.join(", "));
    let message = format!(
        "several rows are equal by the ORDER BY of `{name}`, and any of them comes next to another; add what tells them \
         apart to PARTITION BY or ORDER BY"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::Limit, message))
}

/// Whether a filter is that a column is one of the first numbers.
fn keeps_first(filter: &Expr) -> bool {
    use BinaryOperator::{Eq, Lt, LtEq};
    let Expr::BinaryOp { left, op: Eq | Lt | LtEq, right } = filter else { return false };
    let is_column = matches!(**left, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    is_column && matches!(&**right, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// Whether the last row of the limit and the one after it, or the first and the one before, are equal in what they are
/// ordered by.
async fn is_tied(checked: &Checked<'_>, select: &Select, place: RowWindow) -> bool {
    let Some(OrderByKind::Expressions(parts)) = checked.query.order_by.as_ref().map(|order| &order.kind) else {
        return false;
    };
    // Distinct rows are equal in what they hold, not in what they are ordered by.
    if select.distinct.is_some() {
        return false;
    }
    let parts: Vec<OrderByExpr> =
        parts.iter().map(|part| OrderByExpr { expr: selected_as(select, &part.expr), ..part.clone() }).collect();
    let keys: Vec<String> = parts.iter().map(|part| part.expr.to_string()).collect();
    let order: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let mut inner = select.clone();
    let Ok(projection) = parse_projection(&keys) else { return false };
    inner.projection = projection;
    let with = checked.with_clause();
    let body = SetExpr::Select(Box::new(inner));
    let (first, end) = (place.offset, place.end());
    let sql = format!("{with}{body} ORDER BY {} LIMIT {}", order.join(", "), end + 1);
    let Some(rows) = checked.rows(&sql, end + 1).await else { return false };
    let is_same = |at: usize| at > 0 && rows.get(at).is_some_and(|row| rows.get(at - 1) == Some(row));
    is_same(end) || is_same(first)
}

/// Returns what a part of ORDER BY or GROUP BY names by its position or its alias, else the part itself.
pub(super) fn selected_as(select: &Select, part: &Expr) -> Expr {
    crate::repair::selected_as(select, part).unwrap_or_else(|| part.clone())
}

pub(super) fn parse_projection(keys: &[String]) -> Result<Vec<SelectItem>, sqlparser::parser::ParserError> {
    let dialect = sqlparser::dialect::GenericDialect {};
    sqlparser::parser::Parser::new(&dialect).try_with_sql(&keys.join(", "))?.parse_projection()
}

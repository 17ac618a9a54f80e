//! Limits that leave rows out: of rows in no order, before they are counted or summed, or between equals.

use sqlparser::ast::{Expr, LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Value};

use super::{CheckKind, Checked, Finding};

/// The longest list whose last place is compared with the next.
const MAX_PLACES: usize = 100;

/// Looks for limits that are a truncation.
pub(super) async fn check(checked: &Checked<'_>, select: &Select, rows: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(finding) = nulls_first(checked, select).await {
        findings.push(finding);
    }
    let Some(limit) = limit_of(checked.query).filter(|limit| rows == *limit && *limit > 0) else { return findings };
    match &checked.query.order_by {
        None if (select.selection.is_some() || limit > 1) && has_more(checked, checked.query, limit).await => {
            let message =
                format!("LIMIT {limit} without ORDER BY: there are more rows, and any {limit} of them are shown");
            findings.push(Finding::new(CheckKind::Limit, message));
        }
        Some(order) if limit <= MAX_PLACES => {
            if let OrderByKind::Expressions(parts) = &order.kind
                && !parts.is_empty()
                && is_tied(checked, select, limit).await
            {
                let message = format!("the next row after LIMIT {limit} is equal by ORDER BY: there is a tie");
                findings.push(Finding::new(CheckKind::Limit, message));
            }
        }
        _ => {}
    }
    findings
}

/// Looks for a limit of a query within another: any of its rows are what the other works with.
pub(super) async fn check_within(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let is_constant = matches!(select.projection.as_slice(), [SelectItem::UnnamedExpr(Expr::Value(_))]);
    let (Some(limit), None, false) = (limit_of(checked.query), &checked.query.order_by, is_constant) else {
        return Vec::new();
    };
    if !has_more(checked, checked.query, limit).await {
        return Vec::new();
    }
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

/// Returns the limit of a query without an offset.
fn limit_of(query: &Query) -> Option<usize> {
    match query.limit_clause.as_ref()? {
        LimitClause::LimitOffset { limit: Some(Expr::Value(value)), offset: None, limit_by } if limit_by.is_empty() => {
            match &value.value {
                Value::Number(text, _) => text.parse().ok(),
                _ => None,
            }
        }
        _ => None,
    }
}

async fn has_more(checked: &Checked<'_>, query: &Query, limit: usize) -> bool {
    let mut whole = query.clone();
    whole.limit_clause = None;
    let sql = format!("SELECT 1 FROM ({whole}) AS counted LIMIT {}", limit + 1);
    checked.rows(&sql, limit + 1).await.is_some_and(|rows| rows.len() > limit)
}

/// Whether the last row of the limit and the one after it are equal in what they are ordered by.
async fn is_tied(checked: &Checked<'_>, select: &Select, limit: usize) -> bool {
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
    let sql = format!("{with}{body} ORDER BY {} LIMIT {}", order.join(", "), limit + 1);
    match checked.rows(&sql, limit + 1).await {
        Some(rows) if rows.len() == limit + 1 => rows[limit] == rows[limit - 1],
        _ => false,
    }
}

/// Returns what a part of ORDER BY or GROUP BY names by its position or its alias, else the part itself.
pub(super) fn selected_as(select: &Select, part: &Expr) -> Expr {
    crate::repair::selected_as(select, part).unwrap_or_else(|| part.clone())
}

pub(super) fn parse_projection(keys: &[String]) -> Result<Vec<SelectItem>, sqlparser::parser::ParserError> {
    let dialect = sqlparser::dialect::GenericDialect {};
    sqlparser::parser::Parser::new(&dialect).try_with_sql(&keys.join(", "))?.parse_projection()
}

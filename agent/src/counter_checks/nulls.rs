//! Nulls that leave rows out: `NOT IN` over values with a null keeps no row, `<>` and `NOT LIKE` drop the rows without
//! a value, `= NULL` and a comparison with a subquery of a null keep none, and a condition on the far side of an outer
//! join undoes the join. Also `count(*)`, which counts the rows that an outer join keeps without a match; what
//! aggregates leave out is in `left_out.rs`.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, JoinOperator, Query, Select,
    SelectItem, SetExpr, TableFactor, UnaryOperator, Value, Visit, Visitor,
};

use super::{CheckKind, Checked, Finding, rows_read};
use crate::repair::{Scope, column_of};
use crate::sql_text::{quote_identifier, quoted_table};

/// Looks for the conditions of WHERE that nulls change.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let mut findings = Vec::new();
    let scope = checked.scope();
    findings.extend(counted_without_match(checked, select, &scope).await);
    let Some(filter) = &select.selection else { return findings };
    for condition in conditions(filter) {
        match condition {
            NullCondition::WithNull(condition) => {
                let message = format!("`{condition}` is true of no row; write IS NULL or IS NOT NULL");
                findings.push(Finding::new(CheckKind::Nulls, message));
            }
            NullCondition::NotInQuery(expr, query) => {
                if let Some(nulls) = null_in(query)
                    && checked.has_rows(&nulls).await
                {
                    let message = format!(
                        "the subquery of `{expr} NOT IN (...)` returns a null, and then no row is kept; add \
                         `IS NOT NULL` to it, or use NOT EXISTS"
                    );
                    findings.push(Finding::new(CheckKind::Nulls, message));
                }
            }
            NullCondition::EqualsQuery(condition, query) => {
                if let Some(nulls) = null_in(query)
                    && checked.has_rows(&nulls).await
                {
                    let message = format!(
                        "the subquery of `{condition}` returns a null, and no row is equal to that or differs from it; \
                         write IS NOT DISTINCT FROM where rows without a value are meant"
                    );
                    findings.push(Finding::new(CheckKind::Nulls, message));
                }
            }
            NullCondition::Differs(expr) => {
                let Some((source, column, _)) = column_of(&scope, expr) else { continue };
                let Some(table) = &source.table else { continue };
                let (table_name, column_name) = (quoted_table(table), quote_identifier(column));
                let sql = format!("SELECT count(*) FROM {table_name} WHERE {column_name} IS NULL HAVING count(*) > 0");
                let count = checked.rows(&sql, 1).await.and_then(|rows| rows.first()?.first().cloned());
                if let Some(count) = count {
                    let message = format!(
                        "{count} rows of `{table}` have no `{column}`: they are neither equal nor different, so the \
                         condition leaves them out"
                    );
                    findings.push(Finding::new(CheckKind::Nulls, message));
                }
            }
            NullCondition::Compares(expr) => {
                let Some((source, column, _)) = column_of(&scope, expr) else { continue };
                if far_sides(select).iter().any(|far| far.eq_ignore_ascii_case(&source.name)) {
                    let message = format!(
                        "the condition on `{}.{column}` drops the rows that the outer join keeps without a match; it \
                         belongs into the join's ON",
                        source.name
                    );
                    findings.push(Finding::new(CheckKind::Nulls, message));
                }
            }
        }
    }
    findings.dedup();
    findings
}

/// Looks for `count(*)` of groups that an outer join keeps without a match: it is 1 of them.
async fn counted_without_match(checked: &Checked<'_>, select: &Select, scope: &Scope) -> Option<Finding> {
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, _) if !keys.is_empty() => keys,
        _ => return None,
    };
    let counts_rows = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => counts_each_row(expr, keys),
        _ => false,
    });
    let [far] = far_sides(select).try_into().ok().filter(|_: &[String; 1]| counts_rows)?;
    let source = scope.source(&far)?;
    // Groups of what has no match count those that have none.
    let is_of_far = |key: &Expr| column_of(scope, key).is_some_and(|(source, _, _)| source.name == far);
    if keys.iter().any(is_of_far) {
        return None;
    }
    let column = source.columns.as_ref()?.first()?.0.clone();
    let (table, column) = (quote_identifier(&far), quote_identifier(&column));
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let sql = format!(
        "SELECT 1 {} GROUP BY {} HAVING count(*) = 1 AND count({table}.{column}) = 0 LIMIT 1",
        rows_read(select),
        keys.join(", ")
    );
    let message = format!(
        "count(*) is 1, not 0, of what has no match in `{far}`; write count({far}.{column}) to count the matches"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::Nulls, message))
}

/// Whether an expression counts each row of a group: `count(*)`, `count(1)`, and `count(x)` of groups by `x`.
fn counts_each_row(expr: &Expr, keys: &[Expr]) -> bool {
    let Expr::Function(function) = expr else { return false };
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_count = function.name.to_string().eq_ignore_ascii_case("count")
        && list.duplicate_treatment.is_none()
        && function.over.is_none()
        && function.filter.is_none();
    let is_each = match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => true,
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => {
            (is_constant(argument) && !is_null(argument)) || keys.contains(argument)
        }
        _ => false,
    };
    is_count && is_each
}

enum NullCondition<'a> {
    /// `= NULL`, `<> NULL`.
    WithNull(&'a Expr),
    NotInQuery(&'a Expr, &'a Query),
    /// `= (SELECT ...)`.
    EqualsQuery(&'a Expr, &'a Query),
    /// `<>` and `NOT IN` of constants.
    Differs(&'a Expr),
    /// A comparison that a null never passes.
    Compares(&'a Expr),
}

/// Returns the parts of a filter that all must hold.
fn conditions(filter: &Expr) -> Vec<NullCondition<'_>> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match filter {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut found = conditions(left);
            found.extend(conditions(right));
            found
        }
        Expr::Nested(inner) => conditions(inner),
        Expr::InSubquery { expr, subquery, negated: true } => not_in(expr, subquery),
        Expr::InList { expr, negated: true, .. } if is_column(expr) => {
            vec![NullCondition::Differs(expr), NullCondition::Compares(expr)]
        }
        Expr::Like { expr, negated: true, .. } | Expr::ILike { expr, negated: true, .. } if is_column(expr) => {
            vec![NullCondition::Differs(expr), NullCondition::Compares(expr)]
        }
        Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::Between { expr, .. }
            if is_column(expr) =>
        {
            vec![NullCondition::Compares(expr)]
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => denied(expr),
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right }
            if is_null(left) || is_null(right) =>
        {
            vec![NullCondition::WithNull(filter)]
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right }
            if query_in(left).is_some() || query_in(right).is_some() =>
        {
            query_in(left)
                .or_else(|| query_in(right))
                .map(|query| NullCondition::EqualsQuery(filter, query))
                .into_iter()
                .collect()
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => match query_in(right) {
            Some(query) => not_in(left, query),
            None => Vec::new(),
        },
        Expr::BinaryOp { left, op, right } => {
            let column = match (is_column(left) && is_constant(right), is_column(right) && is_constant(left)) {
                (true, _) => left,
                (_, true) => right,
                _ => return Vec::new(),
            };
            use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
            match op {
                NotEq => vec![NullCondition::Differs(column), NullCondition::Compares(column)],
                Eq | Gt | GtEq | Lt | LtEq => vec![NullCondition::Compares(column)],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the query whose only value an expression is.
fn query_in(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Nested(inner) => query_in(inner),
        Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

fn not_in<'e>(expr: &'e Expr, subquery: &'e Query) -> Vec<NullCondition<'e>> {
    let own = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)).then(|| NullCondition::Differs(expr));
    std::iter::once(NullCondition::NotInQuery(expr, subquery)).chain(own).collect()
}

/// Whether an expression names no column: a value, a date, or one that is computed of such.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        Expr::BinaryOp { left, right, .. } => is_constant(left) && is_constant(right),
        _ => false,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// Returns what nulls change about a condition behind NOT.
fn denied(condition: &Expr) -> Vec<NullCondition<'_>> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match condition {
        Expr::Nested(inner) => denied(inner),
        // `NOT returned` of truth values.
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => vec![NullCondition::Differs(condition)],
        Expr::InSubquery { expr, subquery, negated: false } => not_in(expr, subquery),
        Expr::InList { expr, negated: false, .. }
        | Expr::Like { expr, negated: false, .. }
        | Expr::ILike { expr, negated: false, .. }
            if is_column(expr) =>
        {
            vec![NullCondition::Differs(expr)]
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
            if is_column(left) && matches!(**right, Expr::Value(_)) =>
        {
            vec![NullCondition::Differs(left)]
        }
        _ => Vec::new(),
    }
}

/// Returns the query that finds a null among what a subquery returns; `None` where it depends on the query around.
fn null_in(query: &Query) -> Option<String> {
    // Of a query that is more than a SELECT, around it.
    let around =
        || Some(format!("SELECT 1 FROM ({query}) AS listed (listed_value) WHERE listed_value IS NULL LIMIT 1"));
    let SetExpr::Select(select) = query.body.as_ref() else { return around() };
    let [SelectItem::UnnamedExpr(column) | SelectItem::ExprWithAlias { expr: column, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if query.with.is_some() || query.limit_clause.is_some() || is_grouped {
        return around();
    }
    let filter = select.selection.as_ref().map(|filter| format!("({filter}) AND ")).unwrap_or_default();
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    Some(format!("SELECT 1 FROM {} WHERE {filter}({column}) IS NULL LIMIT 1", from.join(", ")))
}

/// Returns the names of the tables that outer joins may leave without a row.
pub(super) fn far_sides(select: &Select) -> Vec<String> {
    struct FarNames(Vec<String>);
    impl Visitor for FarNames {
        type Break = ();
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if let TableFactor::Table { name, alias, .. } = factor {
                let own = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone());
                self.0.extend(alias.as_ref().map(|alias| alias.name.value.clone()).or(own));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = FarNames(Vec::new());
    for from in &select.from {
        for (index, join) in from.joins.iter().enumerate() {
            match join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {
                    let _: ControlFlow<()> = join.relation.visit(&mut names);
                }
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                    let before = from.joins.iter().take(index).map(|join| &join.relation);
                    for relation in std::iter::once(&from.relation).chain(before) {
                        let _: ControlFlow<()> = relation.visit(&mut names);
                    }
                }
                _ => {}
            }
        }
    }
    names.0
}

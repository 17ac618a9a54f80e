//! Joins by other columns than those by which the tables refer to each other, such as `loans.id = books.id`, also
//! `id IN (SELECT book_id ...)`, and tables that nothing joins, so that every row comes with every other.

use std::ops::ControlFlow;

use querent_catalog::TableName;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, GroupByExpr, Join, JoinConstraint, JoinOperator, Select, SelectItem,
    SetExpr, TableFactor, Visit, Visitor,
};

use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, column_of, constraint_of, folded_words, is_key, refer_alike, relationships_of};
use crate::sql_text::{quote_identifier, quoted_table};

/// The most tables of a FROM clause that are looked at.
const MAX_SOURCES: usize = 12;

/// A column of a table of the catalog.
type TableColumn<'s> = (&'s TableName, &'s str);

/// Looks for joins by the wrong columns, and for tables that nothing joins.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let conditions = conditions(select);
    let mut findings = by_other_columns(checked, &scope, &conditions);
    findings.extend(conditions.iter().filter_map(|condition| in_other_columns(checked, &scope, condition)));
    findings.extend(conditions.iter().filter_map(|condition| exists_of_any(checked, &scope, condition)));
    findings.extend(pairs_twice(&scope, select, &conditions));
    findings.extend(same_row_twice(checked, &scope, &conditions));
    findings.extend(unjoined(checked, select, &scope, &conditions).await);
    findings
}

/// Finds `EXISTS (SELECT ...)` of a query that says nothing of the row: it is true of all of them or of none.
fn exists_of_any(checked: &Checked<'_>, scope: &Scope, condition: &Expr) -> Option<Finding> {
    struct OuterFinder<'s> {
        scope: &'s Scope,
        inner: &'s Scope,
        names_outer: bool,
    }
    impl Visitor for OuterFinder<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.names_outer |= match expr {
                Expr::CompoundIdentifier(parts) => {
                    let qualifier = parts.len().checked_sub(2).and_then(|at| parts.get(at));
                    qualifier.is_none_or(|name| self.scope.source(&name.value).is_some())
                }
                // What the subquery does not have is of the query around, or of one within.
                Expr::Identifier(_) => column_of(self.inner, expr).is_none(),
                _ => false,
            };
            ControlFlow::Continue(())
        }
    }
    let subquery = match condition {
        Expr::Exists { subquery, .. } => subquery,
        Expr::UnaryOp { expr, .. } => match expr.as_ref() {
            Expr::Exists { subquery, .. } => subquery,
            _ => return None,
        },
        _ => return None,
    };
    let inner = checked.scope_within(subquery);
    if scope.sources.is_empty() || inner.sources.is_empty() || inner.sources.iter().any(|one| one.columns.is_none()) {
        return None;
    }
    let mut finder = OuterFinder { scope, inner: &inner, names_outer: false };
    let _: ControlFlow<()> = subquery.visit(&mut finder);
    let message = format!("`{condition}` says nothing of the row, and is true of all rows or of none");
    (!finder.names_outer).then(|| Finding::new(CheckKind::Condition, message))
}

/// Finds pairs of rows of one table that come twice, once in each order: `a.id <> b.id`.
fn pairs_twice(scope: &Scope, select: &Select, conditions: &[&Expr]) -> Option<Finding> {
    let same_column = |left: &Expr, right: &Expr| {
        let (one, other) = (table_column(scope, left)?, table_column(scope, right)?);
        (one.0 != other.0 && one.1 == other.1).then_some((one.0, other.0))
    };
    let differs = |condition: &&Expr| match *condition {
        Expr::BinaryOp { left, op: BinaryOperator::NotEq, right } => same_column(left, right),
        _ => None,
    };
    let (one, other) = conditions.iter().find_map(differs)?;
    let place = |name: &str| scope.sources.iter().position(|source| source.name == name);
    let pair = [place(one)?, place(other)?];
    let names_both = |expr: &Expr| {
        let found = sources_in(scope, expr);
        pair.iter().all(|at| found.contains(at))
    };
    // What else joins the two is the same both ways.
    let is_mutual = |condition: &Expr| match condition {
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
            same_column(left, right).is_some()
        }
        _ => false,
    };
    let are_mutual = conditions.iter().all(|condition| !names_both(condition) || is_mutual(condition));
    let selected: Vec<usize> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(sources_in(scope, expr)),
            _ => None,
        })
        .flatten()
        .collect();
    let lists_both = pair.iter().all(|at| selected.contains(at)) && !is_aggregated(select);
    let message = "each pair of rows comes twice, once in each order; write `<` in the place of `<>`";
    (are_mutual && lists_both).then(|| Finding::new(CheckKind::Join, message))
}

/// Finds a table that is joined twice by the same column, and so has the same row both times:
/// `home.club_id = m.home_id AND away.club_id = m.home_id`.
fn same_row_twice(checked: &Checked<'_>, scope: &Scope, conditions: &[&Expr]) -> Option<Finding> {
    let refers = |from: TableColumn<'_>, to: TableColumn<'_>| {
        relationships_of(checked.at_hand, from.0, to.0).iter().any(|one| {
            let are = |columns: &[String], column: &str| matches!(columns, [only] if only.eq_ignore_ascii_case(column));
            one.from == *from.0 && are(&one.from_columns, from.1) && one.to == *to.0 && are(&one.to_columns, to.1)
        })
    };
    // What refers, and the name of the table that it refers to.
    let mut referring: Vec<(&str, TableColumn<'_>, &str, TableColumn<'_>)> = Vec::new();
    for condition in conditions {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = *condition else { continue };
        let (Some((left_name, left)), Some((right_name, right))) =
            (table_column(scope, left), table_column(scope, right))
        else {
            continue;
        };
        for (from_name, from, to_name, to) in
            [(left_name, left, right_name, right), (right_name, right, left_name, left)]
        {
            if from_name == to_name || !refers(from, to) {
                continue;
            }
            let is_same = |known: &&(&str, TableColumn<'_>, &str, TableColumn<'_>)| {
                known.0 == from_name && known.1 == from && known.2 != to_name && known.3 == to
            };
            if let Some((_, _, other, _)) = referring.iter().find(is_same) {
                let message = format!(
                    "`{other}` and `{to_name}` are the same row of `{}`: both are joined by `{from_name}.{}`",
                    to.0, from.1
                );
                return Some(Finding::new(CheckKind::Join, message));
            }
            referring.push((from_name, from, to_name, to));
        }
    }
    None
}

/// Returns what must hold of each row: the parts of ON and of WHERE.
fn conditions(select: &Select) -> Vec<&Expr> {
    let mut found = Vec::new();
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let Some(JoinConstraint::On(condition)) = constraint_of(join) {
            collect(condition, &mut found);
        }
    }
    if let Some(filter) = &select.selection {
        collect(filter, &mut found);
    }
    found
}

fn collect<'e>(condition: &'e Expr, found: &mut Vec<&'e Expr>) {
    match condition {
        Expr::Nested(inner) => collect(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect(left, found);
            collect(right, found);
        }
        other => found.push(other),
    }
}

/// Returns the column of a table of the catalog that an expression is, with the name of its table in the query.
fn table_column<'s>(scope: &'s Scope, expr: &Expr) -> Option<(&'s str, TableColumn<'s>)> {
    let (source, column, _) = column_of(scope, expr)?;
    Some((source.name.as_str(), (source.table.as_ref()?, column)))
}

/// Finds `loans.id = books.id` where the loans refer to books by another column.
fn by_other_columns(checked: &Checked<'_>, scope: &Scope, conditions: &[&Expr]) -> Vec<Finding> {
    let equal = |condition: &&Expr| {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = *condition else { return None };
        let (left, right) = (table_column(scope, left)?, table_column(scope, right)?);
        (left.0 != right.0).then_some((left, right))
    };
    let equal: Vec<_> = conditions.iter().filter_map(equal).collect();
    let refers = |one: TableColumn<'_>, other: TableColumn<'_>| refer_alike(checked.at_hand, one, other);
    let mut findings = Vec::new();
    for ((left_name, left), (right_name, right)) in &equal {
        // Another condition may join the two as it should, and this one narrow that.
        let is_joined = equal.iter().any(|((one_name, one), (other_name, other))| {
            let is_same = (one_name == left_name && other_name == right_name)
                || (one_name == right_name && other_name == left_name);
            is_same && refers(*one, *other)
        });
        if !is_joined {
            findings.extend(mismatch(checked, *left, *right));
        }
    }
    findings
}

/// Finds `members.id IN (SELECT book_id FROM loans)` where the loans refer to members by another column.
fn in_other_columns(checked: &Checked<'_>, scope: &Scope, condition: &Expr) -> Option<Finding> {
    let Expr::InSubquery { expr, subquery, .. } = condition else { return None };
    let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
    let [SelectItem::UnnamedExpr(selected) | SelectItem::ExprWithAlias { expr: selected, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    let inner = checked.scope_within(subquery);
    let (_, one) = table_column(scope, expr)?;
    let (_, other) = table_column(&inner, selected)?;
    if refer_alike(checked.at_hand, one, other) { None } else { mismatch(checked, one, other) }
}

/// Says that two columns of tables that refer to each other are not those by which they do.
fn mismatch(checked: &Checked<'_>, one: TableColumn<'_>, other: TableColumn<'_>) -> Option<Finding> {
    // Columns of which nobody knows what they refer to may well be compared: people and shops of the same town, and the
    // second of two columns that refer to the same table.
    let is_known = |(table, column): TableColumn<'_>| {
        column.eq_ignore_ascii_case("id") || is_own_id(table, column) || is_key(checked.at_hand, table, column)
    };
    let known = relationships_of(checked.at_hand, one.0, other.0);
    // `visit.visit_id = owner.owner_id` of tables that refer to each other by a third one alone.
    let are_own_ids = is_own_id(one.0, one.1) && is_own_id(other.0, other.1) && !one.1.eq_ignore_ascii_case(other.1);
    if known.is_empty() && one.0 != other.0 && are_own_ids {
        let message = format!(
            "`{}.{}` tells apart the rows of its table, and `{}.{}` those of another: equal ones are so by chance",
            one.0, one.1, other.0, other.1
        );
        return Some(Finding::new(CheckKind::Join, message));
    }
    let known = known.first().filter(|_| one.0 != other.0 && is_known(one) && is_known(other))?;
    let message = format!(
        "`{}.{}` and `{}.{}` do not refer to each other; the known relationship is {}",
        one.0,
        one.1,
        other.0,
        other.1,
        known.condition()
    );
    Some(Finding::new(CheckKind::Join, message))
}

/// Whether a column is called as the id of its table: `treatment_id` of `treatments`.
fn is_own_id(table: &TableName, column: &str) -> bool {
    let of = folded_words(&column.replace('_', " "));
    let called = folded_words(&table.table.replace('_', " "));
    of.split_last().is_some_and(|(last, of)| last == "id" && of == called)
}

/// Looks for tables of which no condition compares anything with the others.
async fn unjoined(checked: &Checked<'_>, select: &Select, scope: &Scope, conditions: &[&Expr]) -> Option<Finding> {
    let count = scope.sources.len();
    let are_known = scope.sources.iter().all(|source| source.columns.is_some() && !source.name.is_empty());
    if !(2..=MAX_SOURCES).contains(&count) || !are_known || !is_plain(select) {
        return None;
    }
    let mut groups: Vec<usize> = (0..count).collect();
    let parts: Vec<(&Expr, Vec<usize>)> =
        conditions.iter().map(|condition| (*condition, sources_in(scope, condition))).collect();
    for (_, sources) in &parts {
        for pair in sources.windows(2) {
            let (from, to) = (groups[pair[0]], groups[pair[1]]);
            groups.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
    }
    let of_table = |at: &usize| scope.sources[*at].table.is_some();
    let first = (0..count).find(of_table)?;
    let other = (0..count).filter(of_table).find(|at| groups[*at] != groups[first])?;
    let tables = [first, other].map(|at| scope.sources[at].table.as_ref());
    let [Some(one), Some(two)] = tables else { return None };
    let known = relationships_of(checked.at_hand, one, two);
    // All combinations of two may be what is asked for, where they are listed.
    if known.is_empty() && is_written_so(select) && !is_aggregated(select) {
        return None;
    }
    for at in [first, other] {
        let is_alone = groups.iter().filter(|group| **group == groups[at]).count() == 1;
        if is_alone && !has_rows_of(checked, scope, at, &parts).await {
            return None;
        }
    }
    let mut message = format!("nothing joins `{one}` with `{two}`: each row of one comes with every row of the other");
    if let Some(known) = known.first() {
        message.push_str(&format!("; the known relationship is {}", known.condition()));
    }
    Some(Finding::new(CheckKind::Join, message))
}

/// Whether a FROM clause has nothing but tables and subqueries, with joins that say by what.
fn is_plain(select: &Select) -> bool {
    let is_plain_factor = |factor: &TableFactor| {
        matches!(factor, TableFactor::Table { .. } | TableFactor::Derived { lateral: false, .. })
    };
    let is_plain_join = |join: &Join| {
        is_plain_factor(&join.relation)
            && matches!(constraint_of(join), Some(JoinConstraint::On(_) | JoinConstraint::None))
    };
    select.from.iter().all(|from| is_plain_factor(&from.relation) && from.joins.iter().all(is_plain_join))
}

/// Whether a SELECT says CROSS JOIN.
fn is_written_so(select: &Select) -> bool {
    let mut joins = select.from.iter().flat_map(|from| &from.joins);
    joins.any(|join| matches!(join.join_operator, JoinOperator::CrossJoin(_)))
}

/// Whether a SELECT groups its rows, or computes one of them.
fn is_aggregated(select: &Select) -> bool {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let computes = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_aggregate(expr),
        _ => false,
    };
    is_grouped || select.projection.iter().any(computes)
}

fn is_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            let is_list = matches!(function.args, FunctionArguments::List(_));
            is_list && function.over.is_none() && ["count", "sum", "avg", "min", "max"].contains(&name.as_str())
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_aggregate(inner),
        Expr::BinaryOp { left, right, .. } => is_aggregate(left) || is_aggregate(right),
        _ => false,
    }
}

/// Whether a source has more than one row under the conditions on itself alone: one row may come with every other.
async fn has_rows_of(checked: &Checked<'_>, scope: &Scope, at: usize, parts: &[(&Expr, Vec<usize>)]) -> bool {
    let source = &scope.sources[at];
    let Some(table) = &source.table else { return false };
    let own: Vec<String> =
        parts.iter().filter(|(_, sources)| *sources == [at]).map(|(condition, _)| format!("({condition})")).collect();
    let filter = if own.is_empty() { String::new() } else { format!(" WHERE {}", own.join(" AND ")) };
    let (name, alias) = (quoted_table(table), quote_identifier(&source.name));
    let sql = format!("SELECT 1 FROM {name} AS {alias}{filter} LIMIT 2");
    checked.rows(&sql, 2).await.is_some_and(|rows| rows.len() == 2)
}

/// Returns the places of the sources whose columns an expression names, in their order.
fn sources_in(scope: &Scope, expr: &Expr) -> Vec<usize> {
    struct SourceFinder<'s> {
        scope: &'s Scope,
        found: Vec<usize>,
    }
    impl Visitor for SourceFinder<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Some((source, _, _)) = column_of(self.scope, expr) else { return ControlFlow::Continue(()) };
            let place = self.scope.sources.iter().position(|known| std::ptr::eq(known, source));
            self.found.extend(place.filter(|at| !self.found.contains(at)));
            ControlFlow::Continue(())
        }
    }
    let mut finder = SourceFinder { scope, found: Vec::new() };
    let _: ControlFlow<()> = expr.visit(&mut finder);
    finder.found.sort_unstable();
    finder.found
}

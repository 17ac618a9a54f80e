//! What `USING` and `NATURAL` make one column of, in joins that keep rows of their right side and in those of more than two
//! relations. The planner takes the left side's column, which is null in the rows that only the right side has; the standard's is
//! `coalesce(left, right)`. Where two joins name the same column, the planner finds it in three tables.
//!
//! Such a FROM clause gets conditions with ON, and what names the one column gets its expression. Of other joins by names only `*` is
//! written out: the planner keeps that one of two columns whose table's name sorts first, where the standard has the left one.

use datafusion::error::Result;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, ObjectNamePart, Select, SelectItem, TableFactor,
    TableWithJoins, Value,
};

use super::outer_merged::name_sides_in_subqueries;
use super::{Expander, Qualified, Source, write_out_aliases, write_out_merged};
use crate::identifiers::same_name;
use crate::sql::shorthand::call;
use crate::sql::syntax::{any_expr, join_constraint};

/// The columns of a FROM clause in which `USING` and `NATURAL` are written out.
pub(super) struct MergedFrom {
    /// What `*` stands for.
    pub(super) sources: Vec<Source>,
    /// The columns that joins made of two, and what each is.
    pub(super) merged: Vec<(String, Expr)>,
}

/// Writes out the joins of a FROM clause where one of them needs it; `None` where none does. A clause that names columns
/// which are not there stays as it is, for the planner to refuse.
pub(super) fn merge_columns<S: ContextProvider>(
    expander: &Expander<'_, S>,
    from: &mut Vec<TableWithJoins>,
) -> Result<Option<MergedFrom>> {
    if !from.iter().any(needs_merging) {
        return Ok(None);
    }
    let mut written = from.clone();
    let mut all = MergedFrom { sources: Vec::new(), merged: Vec::new() };
    for tables in &mut written {
        let Some(MergedFrom { sources, merged }) = merge_joins(expander, tables)? else { return Ok(None) };
        all.sources.extend(sources);
        all.merged.extend(merged);
    }
    *from = written;
    Ok(Some(all))
}

/// Returns what `*` stands for where joins are by names, in the standard's order; `None` where none is, or where the columns cannot
/// be told apart by their tables' names.
pub(super) fn columns_of_star<S: ContextProvider>(
    expander: &Expander<'_, S>,
    from: &[TableWithJoins],
) -> Option<Vec<Source>> {
    let mut written = from.to_vec();
    if !written.iter_mut().any(has_names) {
        return None;
    }
    let mut all = Vec::new();
    for tables in &mut written {
        // What cannot be planned by itself (a LATERAL relation) stays with the planner.
        let merged = merge_joins(expander, tables).ok().flatten()?;
        all.extend(merged.sources);
    }
    let is_again = |at: usize, source: &Source| all[..at].iter().any(|other: &Source| other.expr == source.expr);
    let is_clear = !all.iter().enumerate().any(|(at, source)| is_again(at, source));
    is_clear.then_some(all)
}

/// Writes the columns that joins by names made of two with their table in WHERE and in subqueries: there DataFusion 54 finds
/// both, and refuses them. A name that another relation has too stays for it to refuse.
pub(super) fn name_sides_in_where<S: ContextProvider>(expander: &Expander<'_, S>, select: &mut Select) -> Result<()> {
    let mut written = select.from.clone();
    let begins_subquery =
        |part: &Expr| matches!(part, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
    let has_subquery = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => any_expr(expr, begins_subquery),
        _ => false,
    };
    let has_names_in_where = select
        .selection
        .as_ref()
        .is_some_and(|condition| any_expr(condition, |part| matches!(part, Expr::Identifier(_))));
    let is_subquery = expander.subqueries > 0;
    let may_name = is_subquery || has_names_in_where || select.projection.iter().any(has_subquery);
    if !may_name || !written.iter_mut().any(has_names) {
        return Ok(());
    }
    let mut all = MergedFrom { sources: Vec::new(), merged: Vec::new() };
    for tables in &mut written {
        // What cannot be planned by itself (a LATERAL relation) stays with the planner.
        let Some(MergedFrom { sources, merged }) = merge_joins(expander, tables).ok().flatten() else { return Ok(()) };
        all.sources.extend(sources);
        all.merged.extend(merged);
    }
    let sources = all.sources;
    all.merged.retain(|(name, _)| sources.iter().filter(|source| same_name(&source.name, name)).count() == 1);
    name_sides_in_subqueries(expander, select, &all.merged);
    // The planner would rather take a column of the query around it.
    if is_subquery {
        return write_out_merged(select, &all.merged);
    }
    match &mut select.selection {
        Some(condition) => write_out_aliases(condition, &all.merged),
        None => Ok(()),
    }
}

/// Returns whether a join of a FROM clause is by names.
pub(super) fn joins_by_names(from: &[TableWithJoins]) -> bool {
    from.to_vec().iter_mut().any(has_names)
}

/// Whether a join is by names, without brackets around it or within them.
fn has_names(tables: &mut TableWithJoins) -> bool {
    let in_brackets = |relation: &mut TableFactor| match relation {
        TableFactor::NestedJoin { table_with_joins, alias: None } => has_names(table_with_joins),
        _ => false,
    };
    let is_first = in_brackets(&mut tables.relation);
    is_first
        || tables.joins.iter_mut().any(|join| {
            join_constraint(&mut join.join_operator).is_some_and(|constraint| is_by_name(constraint))
                || in_brackets(&mut join.relation)
        })
}

fn needs_merging(tables: &TableWithJoins) -> bool {
    let keeps_right = |operator: &JoinOperator| match operator {
        JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => is_by_name(constraint),
        _ => false,
    };
    let nested = |relation: &TableFactor| match relation {
        TableFactor::NestedJoin { table_with_joins, alias: None } => needs_merging(table_with_joins),
        _ => false,
    };
    // A column of two that a later condition names it finds in two.
    let merges = |before: &Join, name: &str| match join_constraint(&mut before.join_operator.clone()) {
        Some(JoinConstraint::Using(columns)) => {
            let mut last = columns.iter().filter_map(|column| column.0.last().and_then(ObjectNamePart::as_ident));
            last.any(|own| same_name(&own.value, name))
        }
        Some(JoinConstraint::Natural) => true,
        _ => false,
    };
    let names_merged = |(at, join): (usize, &Join)| {
        let is_merged = |part: &Expr| matches!(part, Expr::Identifier(own) if tables.joins[..at].iter().any(|before| merges(before, &own.value)));
        match join_constraint(&mut join.join_operator.clone()) {
            Some(JoinConstraint::On(condition)) => any_expr(condition, is_merged),
            _ => false,
        }
    };
    // A column of three relations DataFusion 54 finds in three tables.
    let by_name = tables.joins.iter().filter(|join| by_names(&join.join_operator)).count();
    by_name > 1
        || tables.joins.iter().enumerate().any(names_merged)
        || nested(&tables.relation)
        || tables.joins.iter().any(|join| keeps_right(&join.join_operator) || nested(&join.relation))
}

fn by_names(operator: &JoinOperator) -> bool {
    join_constraint(&mut operator.clone()).is_some_and(|constraint| is_by_name(constraint))
}

fn is_by_name(constraint: &JoinConstraint) -> bool {
    matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
}

/// What rows a join keeps decides which side's value its one column has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Left,
    Right,
    Both,
    /// A row of the left side at most once, and no column of the right one.
    LeftOnly,
}

fn merge_joins<S: ContextProvider>(
    expander: &Expander<'_, S>,
    tables: &mut TableWithJoins,
) -> Result<Option<MergedFrom>> {
    let Some(mut all) = columns_of(expander, &mut tables.relation)? else { return Ok(None) };
    for index in 0..tables.joins.len() {
        let by_name = join_constraint(&mut tables.joins[index].join_operator).cloned().filter(is_by_name);
        let Some(mut constraint) = by_name else {
            name_sides_in_on(expander, &mut tables.joins[index], &all.merged)?;
            if !add_columns(expander, tables, index, &mut all)? {
                return Ok(None);
            }
            continue;
        };
        let kept = match &tables.joins[index].join_operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Kept::Right,
            JoinOperator::FullOuter(_) => Kept::Both,
            JoinOperator::LeftSemi(_) | JoinOperator::LeftAnti(_) => Kept::LeftOnly,
            JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => return Ok(None),
            _ => Kept::Left,
        };
        let Some(MergedFrom { sources: mut right, merged }) = columns_of(expander, &mut tables.joins[index].relation)?
        else {
            return Ok(None);
        };
        all.merged.extend(merged);
        let Some(condition) = merge_sides(&constraint, kept, &mut all, &mut right) else { return Ok(None) };
        constraint = JoinConstraint::On(condition);
        if let Some(written) = join_constraint(&mut tables.joins[index].join_operator) {
            *written = constraint;
        }
        if kept != Kept::LeftOnly {
            all.sources.extend(right);
        }
    }
    Ok(Some(all))
}

/// Writes the columns that joins before this one made of two with their tables in its condition. A name that its own side has too
/// stays for the planner to refuse.
fn name_sides_in_on<S: ContextProvider>(
    expander: &Expander<'_, S>,
    join: &mut Join,
    merged: &[(String, Expr)],
) -> Result<()> {
    let Some(JoinConstraint::On(condition)) = join_constraint(&mut join.join_operator) else { return Ok(()) };
    let names_one = |part: &Expr| matches!(part, Expr::Identifier(own) if merged.iter().any(|(name, _)| same_name(name, &own.value)));
    if !any_expr(condition, names_one) {
        return Ok(());
    }
    let side = TableWithJoins { relation: join.relation.clone(), joins: Vec::new() };
    // One that cannot be planned by itself (LATERAL) has columns that are not known here.
    let Ok(own) = expander.listed(&[side], Qualified::Always) else { return Ok(()) };
    let is_free = |(name, _): &&(String, Expr)| !own.iter().any(|source| same_name(&source.name, name));
    let free: Vec<_> = merged.iter().filter(is_free).cloned().collect();
    write_out_aliases(condition, &free)
}

/// Returns the condition of a join by names, and makes one column of each two that it names.
fn merge_sides(constraint: &JoinConstraint, kept: Kept, all: &mut MergedFrom, right: &mut Vec<Source>) -> Option<Expr> {
    let names: Vec<String> = match constraint {
        JoinConstraint::Using(names) => {
            let last = |name: &ObjectNamePart| name.as_ident().map(|ident| ident.value.clone());
            names.iter().map(|name| name.0.last().and_then(last)).collect::<Option<_>>()?
        }
        _ => {
            let is_common = |source: &&Source| right.iter().any(|other| same_name(&other.name, &source.name));
            all.sources.iter().filter(is_common).map(|source| source.name.clone()).collect()
        }
    };
    let mut condition: Option<Expr> = None;
    for name in names {
        let of = |sources: &[Source]| sources.iter().position(|source| same_name(&source.name, &name));
        let at = of(&all.sources)?;
        let own = all.sources.get_mut(at)?;
        let at = of(right)?;
        let other = right.remove(at);
        let is_equal = Expr::BinaryOp {
            left: Box::new(own.expr.clone()),
            op: BinaryOperator::Eq,
            right: Box::new(other.expr.clone()),
        };
        condition = Some(match condition {
            None => is_equal,
            Some(others) => {
                Expr::BinaryOp { left: Box::new(others), op: BinaryOperator::And, right: Box::new(is_equal) }
            }
        });
        own.expr = match kept {
            Kept::Left | Kept::LeftOnly => own.expr.clone(),
            Kept::Right => other.expr,
            Kept::Both => call("coalesce", vec![own.expr.clone(), other.expr]),
        };
        all.merged.retain(|(known, _)| !same_name(known, &own.name));
        all.merged.push((own.name.clone(), own.expr.clone()));
    }
    Some(condition.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into())))
}

/// Returns the columns of one relation; of joins in brackets what they make of them.
fn columns_of<S: ContextProvider>(
    expander: &Expander<'_, S>,
    relation: &mut TableFactor,
) -> Result<Option<MergedFrom>> {
    if let TableFactor::NestedJoin { table_with_joins, alias: None } = relation {
        return merge_joins(expander, table_with_joins);
    }
    let tables = TableWithJoins { relation: relation.clone(), joins: Vec::new() };
    Ok(Some(MergedFrom { sources: expander.listed(&[tables], Qualified::Always)?, merged: Vec::new() }))
}

/// Adds the columns of a join whose condition is not by names; `false` where they cannot be told. Its relation may know those
/// before it (LATERAL), so it is planned with them. Joins in brackets are written out: as they are they would be asked for their
/// columns without end.
fn add_columns<S: ContextProvider>(
    expander: &Expander<'_, S>,
    tables: &mut TableWithJoins,
    index: usize,
    all: &mut MergedFrom,
) -> Result<bool> {
    let join = &mut tables.joins[index];
    if matches!(join.relation, TableFactor::NestedJoin { alias: None, .. }) {
        let Some(MergedFrom { sources, merged }) = columns_of(expander, &mut join.relation)? else { return Ok(false) };
        if let Some(JoinConstraint::On(condition)) = join_constraint(&mut join.join_operator) {
            let is_free = |(name, _): &&(String, Expr)| !all.sources.iter().any(|own| same_name(&own.name, name));
            let free: Vec<_> = merged.iter().filter(is_free).cloned().collect();
            write_out_aliases(condition, &free)?;
        }
        match join.join_operator {
            JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => return Ok(false),
            JoinOperator::LeftSemi(_) | JoinOperator::LeftAnti(_) => {}
            _ => {
                all.sources.extend(sources);
                // A name of both sides is the planner's to refuse.
                let has = |columns: &[(String, Expr)], name: &str| columns.iter().any(|(own, _)| same_name(own, name));
                let before = std::mem::take(&mut all.merged);
                let only_before = before.iter().filter(|(name, _)| !has(&merged, name)).cloned();
                let only_behind = merged.iter().filter(|(name, _)| !has(&before, name)).cloned();
                all.merged = only_before.chain(only_behind).collect();
            }
        }
        return Ok(true);
    }
    let before = TableWithJoins { relation: tables.relation.clone(), joins: tables.joins[..index].to_vec() };
    let known = expander.listed(&[before], Qualified::Always)?.len();
    let with = TableWithJoins { relation: tables.relation.clone(), joins: tables.joins[..=index].to_vec() };
    all.sources.extend(expander.listed(&[with], Qualified::Always)?.into_iter().skip(known));
    Ok(true)
}

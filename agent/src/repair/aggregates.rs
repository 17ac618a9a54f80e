//! Aggregates where they cannot stand: in WHERE, and of other aggregates; window functions in WHERE and HAVING. Also what a
//! subquery of `IN` selects, and the order of a union by a table's column.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, VisitMut, VisitorMut,
};

use super::dialects::{all_of, conjuncts};
use super::grouping::{aggregate, has_aggregate};
use super::joins::expression;
use super::parse::parse_query;
use super::scopes::{Scopes, first_select};
use super::tables::identifier;
use super::{KnownTables, Repair, RepairKind};
use crate::sql_text::visit_own_exprs;

/// Moves the aggregates of WHERE to HAVING or into subqueries, and makes a subquery of an aggregate's own aggregate.
pub(super) fn repair(statement: &mut Statement, known: &KnownTables, database: &str, repairs: &mut Vec<Repair>) {
    let mut mover = AggregateMover { scopes: Scopes::new(known, database), repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut mover);
}

struct AggregateMover<'a> {
    scopes: Scopes<'a>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for AggregateMover<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        if matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) {
            self.order_of_union(query);
        }
        self.filters(&mut query.body);
        if let Some((body, repair)) = aggregate_of_groups(query) {
            query.body = body;
            self.repairs.push(repair);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::InSubquery { expr: column, subquery, .. } = expr {
            self.column_of_in(column, subquery);
        }
        ControlFlow::Continue(())
    }
}

impl AggregateMover<'_> {
    fn filters(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) => {
                self.windows(select);
                self.filter(select);
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.filters(left);
                self.filters(right);
            }
            _ => {}
        }
    }

    /// `ORDER BY author.name` of a union, which has only the names of its columns.
    fn order_of_union(&mut self, query: &mut Query) {
        let Some(OrderByKind::Expressions(parts)) = query.order_by.as_mut().map(|order| &mut order.kind) else {
            return;
        };
        for part in parts {
            let Expr::CompoundIdentifier(names) = &part.expr else { continue };
            let Some(column) = names.last().cloned() else { continue };
            let why = "the rows of a union are of no table";
            self.repairs.push(Repair::new(RepairKind::Column, part.expr.to_string(), column.to_string(), why));
            part.expr = Expr::Identifier(column);
        }
    }

    /// `id IN (SELECT * FROM t)`: the column of that name.
    fn column_of_in(&mut self, column: &Expr, subquery: &mut Query) {
        let name = match column {
            Expr::Identifier(name) => name.value.clone(),
            Expr::CompoundIdentifier(names) => match names.last() {
                Some(name) => name.value.clone(),
                None => return,
            },
            _ => return,
        };
        let Some(select) = first_select(&subquery.body) else { return };
        let is_all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
        let scope = self.scopes.scope_of(select);
        if !is_all || !scope.sources.iter().any(|source| source.column(&name).is_some()) {
            return;
        }
        if let SetExpr::Select(select) = subquery.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(Expr::Identifier(identifier(&name)))];
            let why = "IN compares with one column; the one of that name is taken";
            self.repairs.push(Repair::new(RepairKind::Column, "*", name, why));
        }
    }

    /// Returns such expressions of a SELECT with what it calls them, where no column is called so.
    fn named(&self, select: &Select, is_such: fn(&Expr) -> bool) -> Vec<(String, Expr)> {
        let scope = self.scopes.scope_of(select);
        let is_column = |name: &str| scope.sources.iter().any(|source| source.may_have(name));
        let items = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if is_such(expr) && !is_column(&alias.value) => {
                Some((alias.value.clone(), expr.clone()))
            }
            _ => None,
        });
        items.collect()
    }

    /// Conditions on window functions, which belong into QUALIFY: `WHERE row_number() OVER (...) = 1`. A HAVING without a
    /// group and an aggregate is a WHERE.
    fn windows(&mut self, select: &mut Select) {
        let named = self.named(select, has_window);
        let mut qualified: Vec<Expr> = select.qualify.take().into_iter().collect();
        for filter in [&mut select.selection, &mut select.having] {
            let Some(whole) = filter.take() else { continue };
            let mut kept = Vec::new();
            for part in conjuncts(whole) {
                let mut filled = part.clone();
                let _: ControlFlow<()> = VisitMut::visit(&mut filled, &mut NameFiller { named: &named, depth: 0 });
                if !has_window(&filled) {
                    kept.push(part);
                    continue;
                }
                let why = "a condition on a window function belongs into QUALIFY";
                let repair = Repair::new(RepairKind::Grouping, part.to_string(), format!("QUALIFY {filled}"), why);
                self.repairs.push(repair);
                qualified.push(filled);
            }
            *filter = all_of(kept);
        }
        select.qualify = all_of(qualified);
        let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
        let selects_aggregate = select.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
            _ => false,
        });
        if let Some(having) =
            select.having.take_if(|having| !is_grouped && !selects_aggregate && !has_aggregate(having))
        {
            let why = "nothing is grouped; a condition on rows belongs into WHERE";
            let repair = Repair::new(RepairKind::Grouping, format!("HAVING {having}"), format!("WHERE {having}"), why);
            self.repairs.push(repair);
            select.selection = all_of(select.selection.take().into_iter().chain([having]).collect());
        }
    }

    /// Conditions of WHERE on aggregates, or on what the SELECT calls by a name.
    fn filter(&mut self, select: &mut Select) {
        let Some(filter) = select.selection.take() else { return };
        let named = self.named(select, has_aggregate);
        let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
        let (mut kept, mut moved) = (Vec::new(), Vec::new());
        for mut part in conjuncts(filter) {
            let before = part.to_string();
            let _: ControlFlow<()> = VisitMut::visit(&mut part, &mut NameFiller { named: &named, depth: 0 });
            if has_aggregate(&part) { moved.push((before, part)) } else { kept.push(part) }
        }
        select.selection = all_of(kept);
        for (before, part) in moved {
            let (to, why) = if is_grouped {
                let having = all_of(select.having.take().into_iter().chain([part.clone()]).collect());
                select.having = having;
                (format!("HAVING {part}"), "a condition on a group belongs into HAVING")
            } else {
                let of_all = compared_with_all(select, &part);
                let text = of_all.as_ref().map(ToString::to_string);
                let filter = select.selection.take().into_iter().chain([of_all.unwrap_or(part)]).collect();
                select.selection = all_of(filter);
                let Some(text) = text else { continue };
                (text, "an aggregate in WHERE is one of a subquery, over the rows that the other conditions keep")
            };
            self.repairs.push(Repair::new(RepairKind::Grouping, before, to, why));
        }
    }
}

/// Whether an expression holds a window function, outside of its subqueries.
fn has_window(expr: &Expr) -> bool {
    let mut is_found = false;
    visit_own_exprs(expr, |part| {
        is_found |= matches!(part, Expr::Function(function) if function.over.is_some());
    });
    is_found
}

/// Writes what a SELECT calls by a name where that name stands.
struct NameFiller<'a> {
    named: &'a [(String, Expr)],
    /// Subqueries around, whose names are their own.
    depth: usize,
}

impl VisitorMut for NameFiller<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    // After what is inside: an aggregate may be called as its own argument is.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && let Some((_, meant)) = self.named.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.value))
        {
            *expr = meant.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Returns a comparison of a column with an aggregate, such as `age = max(age)`, with the aggregate in a subquery over
/// the same rows; `None` where it is another condition.
fn compared_with_all(select: &Select, part: &Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op, right } = part else { return None };
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    let filter = select.selection.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    let of_all = |expr: &Expr| format!("(SELECT {expr} FROM {}{filter})", from.join(", "));
    let is_value = |expr: &Expr| matches!(expr, Expr::Value(_)) || has_aggregate(expr);
    let text = match (has_aggregate(left), has_aggregate(right)) {
        (false, true) if !is_value(left) => format!("{left} {op} {}", of_all(right)),
        (true, false) if !is_value(right) => format!("{} {op} {right}", of_all(left)),
        _ => return None,
    };
    expression(&text)
}

/// Returns the body of `SELECT avg(count(*)) FROM t GROUP BY x` with the groups in a subquery, and what is said of it.
fn aggregate_of_groups(query: &Query) -> Option<(Box<SetExpr>, Repair)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] = select.projection.as_slice()
    else {
        return None;
    };
    let outer = aggregate(item).filter(|outer| outer.filter.is_none())?;
    let inner = only_argument(outer).filter(|inner| aggregate(inner).is_some())?;
    if matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()) || query.order_by.is_some() {
        return None;
    }
    let mut groups = select.clone();
    groups.projection = vec![SelectItem::ExprWithAlias { expr: inner.clone(), alias: identifier("n") }];
    let alias = match select.projection.first() {
        Some(SelectItem::ExprWithAlias { alias, .. }) => format!(" AS {alias}"),
        _ => String::new(),
    };
    let text = format!("SELECT {}(n){alias} FROM ({groups}) AS grouped", outer.name);
    let Statement::Query(made) = parse_query(&text)?.statement else { return None };
    let why = "an aggregate of each group is aggregated over the groups, which a subquery makes";
    Some((made.body, Repair::new(RepairKind::Grouping, item.to_string(), text, why)))
}

fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] if list.duplicate_treatment.is_none() => Some(argument),
        _ => None,
    }
}

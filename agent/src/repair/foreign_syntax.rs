//! Clauses of other systems: `TOP 5 PERCENT`, `WITH ROLLUP`, `CROSS APPLY`, `LATERAL VIEW explode(...)`, Oracle's outer joins by
//! `(+)`, and elements of lists by `OFFSET`.

use sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, GroupByWithModifier, Join,
    JoinConstraint, JoinOperator, OrderByExpr, OrderByKind, Query, Select, SetExpr, Statement, Subscript, TableFactor,
    TopQuantity, Value,
};

use super::dialects::{all_of, conjuncts, number};
use super::grouping::selected_as;
use super::joins::expression;
use super::parse::parse_query;

/// What was written, what stands there now, and why.
pub(super) type ClauseChange = (String, String, &'static str);

/// Rewrites the clauses of a SELECT. Returns what was changed.
pub(super) fn clauses_here(select: &mut Select) -> Vec<ClauseChange> {
    let mut changes = Vec::new();
    changes.extend(rollup(select));
    changes.extend(applied(select));
    changes.extend(lateral_views(select));
    changes.extend(oracle_outer_joins(select));
    changes
}

/// T-SQL's `TOP 5 PERCENT` and `TOP 5 WITH TIES`, and `FETCH FIRST` with the same: rows are numbered, and kept up to
/// a number.
pub(super) fn numbered_limit(query: &mut Query) -> Option<ClauseChange> {
    let order = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(parts)) => parts.clone(),
        Some(OrderByKind::All(_)) => return None,
        None => Vec::new(),
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let (quantity, percent, ties) = match (&select.top, &query.fetch) {
        (Some(top), None) => {
            let quantity = match top.quantity.as_ref()? {
                TopQuantity::Constant(count) => count.to_string(),
                TopQuantity::Expr(expr) => expr.to_string(),
            };
            (quantity, top.percent, top.with_ties)
        }
        (None, Some(fetch)) => (fetch.quantity.as_ref()?.to_string(), fetch.percent, fetch.with_ties),
        _ => return None,
    };
    let is_plain = select.qualify.is_none() && select.distinct.is_none() && query.limit_clause.is_none();
    if !(percent || ties) || !is_plain || (ties && order.is_empty()) {
        return None;
    }
    let keys: Vec<String> = order
        .iter()
        .map(|part| {
            let expr = selected_as(select, &part.expr).unwrap_or_else(|| part.expr.clone());
            OrderByExpr { expr, ..part.clone() }.to_string()
        })
        .collect();
    let over = if keys.is_empty() { String::new() } else { format!("ORDER BY {}", keys.join(", ")) };
    let number = if ties { "rank" } else { "row_number" };
    let most = if percent { format!("ceil({quantity} * count(*) OVER () / 100.0)") } else { quantity.clone() };
    let condition = format!("{number}() OVER ({over}) <= {most}");
    select.qualify = Some(expression(&condition)?);
    select.top = None;
    query.fetch = None;
    let written = match (percent, ties) {
        (true, true) => format!("{quantity} PERCENT WITH TIES"),
        (true, false) => format!("{quantity} PERCENT"),
        _ => format!("{quantity} WITH TIES"),
    };
    Some((written, format!("QUALIFY {condition}"), "rows are numbered here, and kept up to a number"))
}

/// MySQL's `GROUP BY x WITH ROLLUP`.
fn rollup(select: &mut Select) -> Option<ClauseChange> {
    let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else { return None };
    let sets = |keys: &[Expr]| keys.iter().map(|key| vec![key.clone()]).collect();
    let (written, all) = match modifiers.as_slice() {
        [GroupByWithModifier::Rollup] => ("WITH ROLLUP", Expr::Rollup(sets(keys))),
        [GroupByWithModifier::Cube] => ("WITH CUBE", Expr::Cube(sets(keys))),
        _ => return None,
    };
    let shown = format!("GROUP BY {all}");
    *keys = vec![all];
    modifiers.clear();
    Some((written.to_owned(), shown, "the subtotals are a function of the keys here"))
}

/// T-SQL's `CROSS APPLY` and `OUTER APPLY` of subqueries.
fn applied(select: &mut Select) -> Option<ClauseChange> {
    let mut change = None;
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        let (written, operator) = match &join.join_operator {
            JoinOperator::CrossApply => ("CROSS APPLY", JoinOperator::CrossJoin(JoinConstraint::None)),
            JoinOperator::OuterApply => {
                ("OUTER APPLY", JoinOperator::LeftOuter(JoinConstraint::On(Expr::Value(Value::Boolean(true).into()))))
            }
            _ => continue,
        };
        let TableFactor::Derived { lateral, .. } = &mut join.relation else { continue };
        *lateral = true;
        join.join_operator = operator;
        change = Some((written.to_owned(), "JOIN LATERAL".to_owned(), "T-SQL's APPLY is a lateral join"));
    }
    change
}

/// `LATERAL VIEW explode(list) t AS x` of Hive and Spark.
fn lateral_views(select: &mut Select) -> Vec<ClauseChange> {
    let mut changes = Vec::new();
    let views = std::mem::take(&mut select.lateral_views);
    for view in views {
        match unnested(&view.lateral_view, &view.lateral_view_name.to_string(), &view.lateral_col_alias, view.outer)
            .zip(select.from.last_mut())
        {
            Some((join, from)) => {
                let why = "a list's elements are rows by unnest here";
                changes.push((view.to_string().trim().to_owned(), join.to_string().trim().to_owned(), why));
                from.joins.push(join);
            }
            None => select.lateral_views.push(view),
        }
    }
    changes
}

fn unnested(call: &Expr, name: &str, columns: &[sqlparser::ast::Ident], is_outer: bool) -> Option<Join> {
    let Expr::Function(function) = call else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = list.args.as_slice() else { return None };
    let [column] = columns else { return None };
    if is_outer || !["explode", "unnest"].contains(&function.name.to_string().to_lowercase().as_str()) {
        return None;
    }
    let text = format!("SELECT 1 FROM a CROSS JOIN LATERAL (SELECT unnest({list}) AS {column}) AS {name}");
    let Statement::Query(query) = parse_query(&text)?.statement else { return None };
    let SetExpr::Select(mut made) = *query.body else { return None };
    made.from.pop()?.joins.pop()
}

/// Oracle's `a.id = b.id (+)`: the tables of the marked columns are joined outer, the others as they stand.
fn oracle_outer_joins(select: &mut Select) -> Option<ClauseChange> {
    let filter = select.selection.as_ref()?;
    if !filter.to_string().contains("(+)") || select.from.iter().any(|from| !from.joins.is_empty()) {
        return None;
    }
    let name_of = |factor: &TableFactor| match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.value.clone()),
            None => name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone()),
        },
        TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.value.clone()),
        _ => None,
    };
    let mut kept = Vec::new();
    let mut joined: Vec<(String, Vec<Expr>)> = Vec::new();
    for part in conjuncts(filter.clone()) {
        let Some((table, plain)) = marked(&part) else {
            kept.push(part);
            continue;
        };
        match joined.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&table)) {
            Some((_, conditions)) => conditions.push(plain),
            None => joined.push((table, vec![plain])),
        }
    }
    let mut joins = Vec::new();
    for (table, conditions) in joined {
        let at = select
            .from
            .iter()
            .position(|from| name_of(&from.relation).is_some_and(|name| name.eq_ignore_ascii_case(&table)))?;
        joins.push((at, JoinOperator::LeftOuter(JoinConstraint::On(all_of(conditions)?))));
    }
    if joins.is_empty() || joins.len() >= select.from.len() {
        return None;
    }
    let mut relations: Vec<Option<sqlparser::ast::TableWithJoins>> =
        std::mem::take(&mut select.from).into_iter().map(Some).collect();
    let outer: Vec<(TableFactor, JoinOperator)> = joins
        .into_iter()
        .filter_map(|(at, operator)| Some((relations.get_mut(at)?.take()?.relation, operator)))
        .collect();
    let mut inner = relations.into_iter().flatten();
    let mut first = inner.next()?;
    let cross = |from: sqlparser::ast::TableWithJoins| (from.relation, JoinOperator::CrossJoin(JoinConstraint::None));
    let all = inner.map(cross).chain(outer);
    first.joins = all.map(|(relation, join_operator)| Join { relation, global: false, join_operator }).collect();
    let shown = first.to_string();
    select.from = vec![first];
    select.selection = all_of(kept);
    Some(("(+)".to_owned(), shown, "Oracle's (+) is an outer join"))
}

/// Returns the table of the columns that a condition marks with `(+)`, and the condition without the mark.
fn marked(part: &Expr) -> Option<(String, Expr)> {
    let Expr::BinaryOp { left, op, right } = part else { return None };
    let unmarked = |expr: &Expr| match expr {
        Expr::OuterJoin(column) => Some((**column).clone()),
        _ => None,
    };
    let (column, left, right) = match (unmarked(left), unmarked(right)) {
        (Some(column), None) => (column.clone(), column, (**right).clone()),
        (None, Some(column)) => (column.clone(), (**left).clone(), column),
        _ => return None,
    };
    let Expr::CompoundIdentifier(parts) = column else { return None };
    let table = parts.get(parts.len().checked_sub(2)?)?.value.clone();
    Some((table, Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }))
}

/// BigQuery's `list[OFFSET(0)]` and `list[ORDINAL(1)]`: elements are counted from 1 here.
pub(super) fn element_here(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let [AccessExpr::Subscript(Subscript::Index { index: Expr::Function(function) })] = access_chain.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(place))] = list.args.as_slice() else { return None };
    let index = match function.name.to_string().to_lowercase().as_str() {
        "offset" | "safe_offset" => match place.to_string().parse::<u32>() {
            Ok(place) => number(&place.checked_add(1)?.to_string()),
            Err(_) => expression(&format!("({place} + 1)"))?,
        },
        "ordinal" | "safe_ordinal" => place.clone(),
        _ => return None,
    };
    let access_chain = vec![AccessExpr::Subscript(Subscript::Index { index })];
    Some(Expr::CompoundFieldAccess { root: root.clone(), access_chain })
}

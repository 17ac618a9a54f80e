//! Aggregates and windows of one SELECT that differ in a cast only, and groups: `min(a), min(CAST(a AS DOUBLE))`, `GROUP BY
//! CAST(a AS DATE), a`. The planner calls both what it calls a column without the cast, so the arguments of the later ones, and the
//! groups with a cast, get a name of their own.

use std::fmt;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem, Value, VisitMut,
    VisitorMut,
};

use super::function_forms::is_aggregate;
use super::shorthand::{call, taken};
use super::syntax::{any_expr, change_own_exprs};

/// The aggregates of a SELECT before one: without their casts, as they are written, and how often their argument is renamed.
type SeenAggregates = Vec<(String, String, usize)>;

/// Tells such aggregates of a SELECT apart.
pub(super) fn tell_casts_apart(select: &mut Select) {
    let mut seen = SeenAggregates::new();
    for item in &mut select.projection {
        change_own_exprs(item, |part| tell_apart(part, &mut seen));
    }
    if let Some(having) = &mut select.having {
        change_own_exprs(having, |part| tell_apart(part, &mut seen));
    }
}

/// Tells groups of a SELECT apart that differ in a cast only.
pub(super) fn tell_groups_apart(select: &mut Select) {
    let groups: Vec<&Expr> = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => {
            groups.iter().flat_map(members).map(|group| meant_group(group, &select.projection)).collect()
        }
        GroupByExpr::All(_) => {
            select.projection.iter().filter_map(item_expr).filter(|item| !aggregates(item)).collect()
        }
    };
    if groups.len() < 2 {
        return;
    }
    let groups: Vec<(String, String)> = groups.into_iter().map(|group| (lower(group), without_casts(group))).collect();
    let mut renamed: Vec<(&str, usize)> = Vec::new();
    for (at, (text, bare)) in groups.iter().enumerate() {
        let is_another = |(other, own): &&(String, String)| own == bare && other != text;
        let is_alone = !groups.iter().any(|group| is_another(&group));
        if text == bare || is_alone || renamed.iter().any(|(known, _)| known == text) {
            continue;
        }
        // As many names as there are others before it; one without a cast keeps its own.
        let before = groups[..at].iter().filter(is_another).count();
        let is_bare_behind = groups[at..].iter().any(|(other, _)| other == bare);
        renamed.push((text.as_str(), before + usize::from(is_bare_behind)));
    }
    renamed.retain(|(_, times)| *times > 0);
    if renamed.is_empty() {
        return;
    }
    let rename = |expr: &mut Expr| {
        let text = lower(expr);
        if let Some((_, times)) = renamed.iter().find(|(known, _)| *known == text) {
            for _ in 0..*times {
                *expr = call("coalesce", vec![taken(expr)]);
            }
        }
    };
    change_own_exprs(&mut select.projection, rename);
    change_own_exprs(&mut select.group_by, rename);
    change_own_exprs(&mut select.having, rename);
    change_own_exprs(&mut select.qualify, rename);
}

/// Returns the groups of grouping sets, or the one that it is.
fn members(group: &Expr) -> Vec<&Expr> {
    match group {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => sets.iter().flatten().collect(),
        other => vec![other],
    }
}

/// Returns the expression that a group is: a place in the select list, an alias or the expression itself.
fn meant_group<'e>(group: &'e Expr, items: &'e [SelectItem]) -> &'e Expr {
    let item = match group {
        Expr::Value(value) => match &value.value {
            Value::Number(place, _) => place.parse::<usize>().ok().and_then(|place| items.get(place.checked_sub(1)?)),
            _ => None,
        },
        Expr::Identifier(name) => items.iter().find(
            |item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value.eq_ignore_ascii_case(&name.value)),
        ),
        _ => None,
    };
    item.and_then(item_expr).unwrap_or(group)
}

fn item_expr(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn aggregates(expr: &Expr) -> bool {
    any_expr(expr, |part| match part {
        Expr::Function(function) => is_aggregate(&function.name.to_string().to_lowercase()),
        _ => false,
    })
}

fn lower(node: &impl fmt::Display) -> String {
    node.to_string().to_lowercase()
}

fn without_casts(node: &(impl VisitMut + Clone + fmt::Display)) -> String {
    let mut bare = node.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut bare, &mut CastRemover);
    lower(&bare)
}

fn tell_apart(expr: &mut Expr, seen: &mut SeenAggregates) {
    let Expr::Function(function) = expr else { return };
    if function.over.is_none() && !is_aggregate(&function.name.to_string().to_lowercase()) {
        return;
    }
    let (text, bare) = (lower(function), without_casts(function));
    let known = seen.iter().find(|(_, other, _)| *other == text).map(|(_, _, times)| *times);
    // As many as there are others that differ from it in a cast; the same again has the same name.
    let times = known.unwrap_or_else(|| seen.iter().filter(|(own, _, _)| *own == bare).count());
    if known.is_none() {
        seen.push((bare, text, times));
    }
    if times > 0 {
        rename_argument(function, times);
    }
}

/// A choice among one value is the value, under another name.
fn rename_argument(function: &mut Function, times: usize) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) = list.args.first_mut() {
        for _ in 0..times {
            *argument = call("coalesce", vec![taken(argument)]);
        }
    }
}

struct CastRemover;

impl VisitorMut for CastRemover {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = taken(inner);
        }
        ControlFlow::Continue(())
    }
}

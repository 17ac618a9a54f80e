//! Columns that a grouped query selects without grouping by them, which SQLite and MySQL allow. Beside one `min` or
//! `max` such a column is of the row that has it, as SQLite says; otherwise it is that of any row of the group. A query
//! without GROUP BY is grouped by the columns that stand beside its aggregates.
//!
//! Also `SELECT DISTINCT` ordered by what it does not select.

use std::ops::ControlFlow;

use querent_engine::aggregates_rows;
use sqlparser::ast::{
    Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, Value, VisitMut, VisitorMut,
};

use super::joins::expression;
use super::scopes::{Scopes, column_of};
use super::tables::identifier;
use super::{KnownTables, Repair, RepairKind};
use crate::sql_text::visit_own_exprs;

/// Aggregates of other systems, which stand here until they are turned into ours.
const FOREIGN_AGGREGATES: [&str; 5] = ["total", "group_concat", "json_group_array", "wm_concat", "xmlagg"];

/// Makes aggregates of the columns that are neither grouped by nor aggregated.
pub(super) fn repair(statement: &mut Statement, known: &KnownTables, database: &str, repairs: &mut Vec<Repair>) {
    let mut fixer = GroupingFixer { scopes: Scopes::new(known, database), repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut fixer);
}

struct GroupingFixer<'a> {
    scopes: Scopes<'a>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for GroupingFixer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        match query.body.as_mut() {
            SetExpr::Select(select) => {
                let mut order: Vec<&mut Expr> = match query.order_by.as_mut().map(|order| &mut order.kind) {
                    Some(OrderByKind::Expressions(parts)) => parts.iter_mut().map(|part| &mut part.expr).collect(),
                    _ => Vec::new(),
                };
                group(select, &mut order, &self.scopes, self.repairs);
            }
            body => self.operands(body),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }
}

impl GroupingFixer<'_> {
    /// Groups the SELECTs of a union, an intersection or a difference.
    fn operands(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) => {
                self.scopes.enter_select(select);
                group(select, &mut [], &self.scopes, self.repairs);
                self.scopes.leave_select();
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.operands(left);
                self.operands(right);
            }
            _ => {}
        }
    }
}

fn group(select: &mut Select, order: &mut [&mut Expr], scopes: &Scopes<'_>, repairs: &mut Vec<Repair>) {
    let mut keys: Vec<Expr> = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
            keys.iter().flat_map(keys_within).collect()
        }
        _ => return,
    };
    let aggregates = aggregates_of(select, order);
    if keys.is_empty() && aggregates.is_empty() {
        distinct(select, order, scopes, repairs);
        return;
    }
    for key in &mut keys {
        if let Some(selected) = selected_as(select, key) {
            *key = selected;
        }
    }
    let keeper = keeper_of(&aggregates);
    if keys.is_empty() && keeper.is_none() {
        keys = plain_columns(select, scopes);
        if !keys.is_empty() {
            let listed: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let why = "columns stand beside an aggregate; there is a row for each of their values";
            let text = format!("GROUP BY {}", listed.join(", "));
            repairs.push(Repair::new(RepairKind::Grouping, "no GROUP BY", text, why));
            select.group_by = GroupByExpr::Expressions(keys.clone(), Vec::new());
        }
    }
    let aliases: Vec<String> = aliases(select);
    let mut wrapper =
        Wrapper { keys: &keys, keeper, aliases: &[], scopes, inside: Vec::new(), queries: 0, made: Vec::new() };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item {
            let before = expr.clone();
            let _: ControlFlow<()> = VisitMut::visit(expr, &mut wrapper);
            // The result keeps its name.
            if let (true, Some(name)) = (*expr != before, name_of(&before)) {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: identifier(&name) };
            }
        } else if let SelectItem::ExprWithAlias { expr, .. } = item {
            let _: ControlFlow<()> = VisitMut::visit(expr, &mut wrapper);
        }
    }
    wrapper.aliases = &aliases;
    for expr in select.having.iter_mut().chain(order.iter_mut().map(|expr| &mut **expr)) {
        let _: ControlFlow<()> = VisitMut::visit(expr, &mut wrapper);
    }
    for repair in wrapper.made {
        if !repairs.contains(&repair) {
            repairs.push(repair);
        }
    }
}

/// Returns the columns that a SELECT returns as they are.
fn plain_columns(select: &Select, scopes: &Scopes<'_>) -> Vec<Expr> {
    let is_column = |expr: &Expr| scopes.stack.last().is_some_and(|scope| column_of(scope, expr).is_some());
    let selected = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    selected.filter(|expr| is_column(expr)).cloned().collect()
}

/// Returns the keys of `ROLLUP (a, b)` and its like, else the key itself.
fn keys_within(key: &Expr) -> Vec<Expr> {
    match key {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => sets.concat(),
        other => vec![other.clone()],
    }
}

/// Groups a `SELECT DISTINCT` by what it selects, where it is ordered by something else.
fn distinct(select: &mut Select, order: &mut [&mut Expr], scopes: &Scopes<'_>, repairs: &mut Vec<Repair>) {
    if !matches!(select.distinct, Some(Distinct::Distinct)) || order.is_empty() {
        return;
    }
    let selected: Option<Vec<Expr>> = select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
            _ => None,
        })
        .collect();
    let Some(keys) = selected else { return };
    let aliases = aliases(select);
    let mut wrapper = Wrapper {
        keys: &keys,
        keeper: None,
        aliases: &aliases,
        scopes,
        inside: Vec::new(),
        queries: 0,
        made: Vec::new(),
    };
    for expr in order.iter_mut() {
        let _: ControlFlow<()> = VisitMut::visit(&mut **expr, &mut wrapper);
    }
    let Some(first) = wrapper.made.first() else { return };
    let why = "distinct rows are ordered by what they do not hold; a value of one row of each is taken";
    repairs.push(Repair::new(RepairKind::Grouping, first.from.clone(), first.to.clone(), why));
    select.distinct = None;
    select.group_by = GroupByExpr::Expressions(keys, Vec::new());
}

fn aliases(select: &Select) -> Vec<String> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    aliases.collect()
}

/// Returns what a key of GROUP BY or ORDER BY names by its position or its alias.
pub(crate) fn selected_as(select: &Select, key: &Expr) -> Option<Expr> {
    match key {
        Expr::Value(value) => {
            let Value::Number(number, _) = &value.value else { return None };
            match select.projection.get(number.parse::<usize>().ok()?.checked_sub(1)?)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        Expr::Identifier(name) => select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(&name.value) => {
                Some(expr.clone())
            }
            _ => None,
        }),
        _ => None,
    }
}

fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()),
        _ => None,
    }
}

/// Returns the aggregates of a SELECT, outside of its subqueries.
fn aggregates_of(select: &Select, order: &[&mut Expr]) -> Vec<Function> {
    let mut found = Vec::new();
    let mut collect = |expr: &Expr| found.extend(aggregate(expr).cloned());
    visit_own_exprs(&select.projection, &mut collect);
    visit_own_exprs(&select.having, &mut collect);
    order.iter().for_each(|expr| visit_own_exprs(&**expr, &mut collect));
    found
}

/// Whether an expression holds an aggregate, outside of its subqueries.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    let mut is_found = false;
    visit_own_exprs(expr, |part| is_found |= aggregate(part).is_some());
    is_found
}

/// Returns the aggregate that an expression is.
pub(super) fn aggregate(expr: &Expr) -> Option<&Function> {
    match expr {
        Expr::Function(function) if function.over.is_none() => {
            let name = function.name.to_string().to_lowercase();
            (aggregates_rows(&name) || FOREIGN_AGGREGATES.contains(&name.as_str())).then_some(function)
        }
        _ => None,
    }
}

/// Returns the function and the argument of the only aggregate, where it is `min` or `max`.
fn keeper_of(aggregates: &[Function]) -> Option<(&'static str, String)> {
    let [only] = aggregates else { return None };
    let by = match only.name.to_string().to_lowercase().as_str() {
        "max" => "arg_max_null",
        "min" => "arg_min_null",
        _ => return None,
    };
    match &only.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some((
                by,
                match &only.filter {
                    Some(filter) => format!("CASE WHEN {filter} THEN {argument} END"),
                    None => argument.to_string(),
                },
            )),
            _ => None,
        },
        _ => None,
    }
}

/// Wraps the columns of an expression that no aggregate and no key of the group holds.
struct Wrapper<'a> {
    keys: &'a [Expr],
    keeper: Option<(&'static str, String)>,
    /// Names of what is selected, which are no columns.
    aliases: &'a [String],
    scopes: &'a Scopes<'a>,
    /// Whether each expression around holds its columns together.
    inside: Vec<bool>,
    queries: usize,
    made: Vec<Repair>,
}

impl Wrapper<'_> {
    fn is_key(&self, expr: &Expr) -> bool {
        self.keys.iter().any(|key| same_expression(key, expr))
    }

    fn is_column(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Identifier(name) if self.aliases.contains(&name.value.to_lowercase()) => false,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                self.scopes.stack.last().is_some_and(|scope| column_of(scope, expr).is_some())
            }
            _ => false,
        }
    }
}

impl VisitorMut for Wrapper<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_window = matches!(expr, Expr::Function(function) if function.over.is_some());
        let holds = aggregate(expr).is_some() || is_window || self.is_key(expr);
        self.inside.push(holds || self.inside.last().copied().unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_held = self.inside.pop().unwrap_or_default();
        if is_held || self.queries > 0 || !self.is_column(expr) {
            return ControlFlow::Continue(());
        }
        let (text, why) = match &self.keeper {
            Some((by, argument)) => {
                (format!("{by}({expr}, {argument})"), "it is not grouped by; the row of the extreme value is taken")
            }
            None => (format!("any_value({expr})"), "it is not grouped by; a value of one row of each group is taken"),
        };
        if let Some(wrapped) = expression(&text) {
            let repair = Repair::new(RepairKind::Grouping, expr.to_string(), text, why);
            *expr = wrapped;
            if !self.made.contains(&repair) {
                self.made.push(repair);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether two expressions are the same, of columns whether or not both are qualified.
fn same_expression(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Identifier(left), Expr::Identifier(right)) => left.value.eq_ignore_ascii_case(&right.value),
        (Expr::Identifier(one), Expr::CompoundIdentifier(parts))
        | (Expr::CompoundIdentifier(parts), Expr::Identifier(one)) => {
            parts.last().is_some_and(|last| last.value.eq_ignore_ascii_case(&one.value))
        }
        _ => left.to_string().eq_ignore_ascii_case(&right.to_string()),
    }
}

//! Aliases in HAVING that are columns too: `SELECT max(k) AS k ... GROUP BY g HAVING k > 3`. A column that is grouped by comes
//! first, then the alias, and in the arguments of an aggregate only the column, as in DuckDB; the planner takes the column, which
//! is neither grouped nor aggregated.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::identifiers::same_name;
use crate::sql::function_forms::{is_aggregate, is_aggregate_form};
use crate::sql::syntax::any_expr;

/// Writes out the aliases of aggregates in a select's HAVING.
pub(super) fn name_aggregates_in_having(select: &mut Select) {
    let is_grouped = |name: &str| match &select.group_by {
        GroupByExpr::All(_) => false,
        GroupByExpr::Expressions(exprs, _) => exprs.iter().any(|expr| {
            is_column(expr, name) || selected(expr, &select.projection).is_some_and(|own| is_column(own, name))
        }),
    };
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if any_expr(expr, is_aggregate_call) && !is_grouped(&alias.value) => {
            Some((alias.value.clone(), expr.clone()))
        }
        _ => None,
    });
    let aliases: Vec<(String, Expr)> = aliases.collect();
    if let Some(having) = &mut select.having
        && !aliases.is_empty()
    {
        let _: ControlFlow<()> = VisitMut::visit(having, &mut HavingAliases { aliases: &aliases, depth: 0 });
    }
}

fn is_column(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Identifier(ident) => same_name(&ident.value, name),
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|last| same_name(&last.value, name)),
        _ => false,
    }
}

/// Returns the expression of a select list that GROUP BY names by its alias or its place.
fn selected<'a>(group: &Expr, projection: &'a [SelectItem]) -> Option<&'a Expr> {
    match group {
        Expr::Identifier(ident) => projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if same_name(&alias.value, &ident.value) => Some(expr),
            _ => None,
        }),
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            match projection.get(place.parse::<usize>().ok()?.checked_sub(1)?)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_aggregate_call(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) if function.over.is_none() => {
            let name = function.name.to_string().to_lowercase();
            is_aggregate(&name) || is_aggregate_form(&name)
        }
        _ => false,
    }
}

struct HavingAliases<'a> {
    aliases: &'a [(String, Expr)],
    /// How many aggregates and subqueries are around.
    depth: usize,
}

impl VisitorMut for HavingAliases<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(is_aggregate_call(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // What is written out here is not looked at again, so that an aggregate is counted once.
        self.depth -= usize::from(is_aggregate_call(expr));
        if let Expr::Identifier(ident) = expr
            && self.depth == 0
            && let Some((_, meaning)) = self.aliases.iter().find(|(name, _)| same_name(name, &ident.value))
        {
            *expr = Expr::Nested(Box::new(meaning.clone()));
        }
        ControlFlow::Continue(())
    }
}

//! `generate_series` and `range` in FROM. Over columns of the tables before, each becomes a subquery that takes its list apart, as
//! the planner's own take constants only. Its column is called as the table or the function where the statement says so.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, VisitorMut,
};

use super::ordinality::places_of;
use super::shorthand::{call, query_of, select_star};
use super::syntax::{try_visit_statement, visit_statement};
use super::table_calls::{alias_of, names_column, table_call};
use crate::error::{EngineError, Result};

const FUNCTIONS: [&str; 2] = ["generate_series", "range"];

/// Rewrites every such call in a statement. Errors: those of the statement's walk.
pub(super) fn rewrite_series_of_columns(statement: &mut Statement) -> Result<()> {
    let mut found = SeriesColumns::default();
    let _: ControlFlow<()> = visit_statement(statement, &mut found);
    if !found.has_calls {
        return Ok(());
    }
    try_visit_statement(statement, &mut SeriesRewriter { names: found.names })
}

/// What a statement has of such calls, and what its expressions may call their columns.
#[derive(Default)]
struct SeriesColumns {
    has_calls: bool,
    /// Names without qualifiers, in lower case.
    names: HashSet<String>,
}

impl VisitorMut for SeriesColumns {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.has_calls |= table_call(factor).is_some_and(|called| function_named(called.name).is_some());
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => {
                self.names.insert(name.value.to_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                self.names.extend(parts.last().map(|name| name.value.to_lowercase()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

struct SeriesRewriter {
    names: HashSet<String>,
}

impl VisitorMut for SeriesRewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let Some(mut called) = table_call(factor) else { return ControlFlow::Continue(()) };
        let Some(function) = function_named(called.name) else { return ControlFlow::Continue(()) };
        let Some(values) = called.values() else { return ControlFlow::Continue(()) };
        if !values.iter().any(names_column) {
            self.name_column(function, called.alias);
            return ControlFlow::Continue(());
        }
        let alias = called.take_alias(function);
        let list = call(function, values);
        let places = called.is_numbered.then(|| places_of(list.clone()));
        // A column of a function is called as the table is, where nothing else is said.
        let elements = SelectItem::ExprWithAlias { expr: call("unnest", vec![list]), alias: alias.name.clone() };
        let mut select = select_star(Vec::new());
        select.projection = [elements].into_iter().chain(places).collect();
        *factor = TableFactor::Derived {
            lateral: true,
            subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
            alias: Some(alias),
            sample: None,
        };
        ControlFlow::Continue(())
    }
}

impl SeriesRewriter {
    /// Names the column as the function or the table is called, where a name is used that is otherwise none.
    fn name_column(&self, function: &'static str, alias: &mut Option<TableAlias>) {
        let is_used = |name: &str| self.names.contains(&name.to_lowercase());
        if is_used("value") || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return;
        }
        let table = alias.as_ref().map_or(function, |alias| &alias.name.value);
        let Some(column) = [function, table].into_iter().find(|name| is_used(name)).map(str::to_owned) else { return };
        let named = alias.get_or_insert_with(|| alias_of(function));
        named.columns = vec![TableAliasColumnDef { name: Ident::new(column), data_type: None }];
    }
}

/// Returns whether a function is one of these.
pub(super) fn is_series(name: &Ident) -> bool {
    function_named(name).is_some()
}

fn function_named(name: &Ident) -> Option<&'static str> {
    FUNCTIONS.into_iter().find(|function| name.value.eq_ignore_ascii_case(function))
}

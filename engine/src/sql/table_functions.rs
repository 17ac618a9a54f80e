//! Table functions of ours in FROM that become subqueries over the tables that they name: walks over graphs, patterns of
//! graphs, hybrid search. They are rewritten before names are resolved, so a table that a call names is resolved, folded
//! and judged by policy as any other is.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor,
    TableFunctionArgs, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use querent_kql::graph::GraphAlgorithm;

use super::dialect::SqlDialect;
use super::exact_text::exact_text;
use super::syntax::try_visit_statement;
use super::{graph_functions, graph_match, hybrid_search};
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;

/// A table function that becomes a subquery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFunction {
    Graph(GraphAlgorithm),
    GraphMatch,
    HybridSearch,
}

impl TableFunction {
    const ALL: [Self; 5] = [
        Self::Graph(GraphAlgorithm::Traverse),
        Self::Graph(GraphAlgorithm::ShortestPath),
        Self::Graph(GraphAlgorithm::Components),
        Self::GraphMatch,
        Self::HybridSearch,
    ];

    fn of_call(name: &ObjectName) -> Option<Self> {
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
        Self::ALL.into_iter().find(|function| name.value.eq_ignore_ascii_case(function.name()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Graph(algorithm) => graph_functions::function_name(algorithm),
            Self::GraphMatch => graph_match::NAME,
            Self::HybridSearch => hybrid_search::NAME,
        }
    }

    /// How it is called.
    fn usage(self) -> &'static str {
        match self {
            Self::Graph(algorithm) => graph_functions::usage(algorithm),
            Self::GraphMatch => graph_match::USAGE,
            Self::HybridSearch => hybrid_search::USAGE,
        }
    }

    /// The names of its arguments, in order.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Graph(algorithm) => graph_functions::parameters(algorithm),
            Self::GraphMatch => graph_match::PARAMETERS,
            Self::HybridSearch => hybrid_search::PARAMETERS,
        }
    }

    /// Those of them that are tables.
    fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Graph(_) => &["edges"],
            Self::GraphMatch => &["edges", "nodes"],
            Self::HybridSearch => &["table"],
        }
    }

    /// Returns the text of the query that a call stands for; `None` where it is not called as [`TableFunction::usage`] says.
    fn query(self, call: &CallArguments<'_>) -> Result<Option<String>> {
        match self {
            Self::Graph(algorithm) => Ok(graph_functions::query(algorithm, call)),
            Self::GraphMatch => graph_match::query(call),
            Self::HybridSearch => hybrid_search::query(call),
        }
    }
}

/// Returns the names of all.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TableFunction::ALL.into_iter().map(TableFunction::name)
}

/// Returns the arguments of a call of one of these functions that name tables.
pub(super) fn tables_of<'a>(function: &ObjectName, args: &'a TableFunctionArgs) -> Vec<&'a Expr> {
    let Some(function) = TableFunction::of_call(function) else { return Vec::new() };
    let Ok(call) = CallArguments::read(function, args) else { return Vec::new() };
    function.tables().iter().filter_map(|table| call.get(table)).collect()
}

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_table_functions(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut TableFunctionRewriter)
}

struct TableFunctionRewriter;

impl VisitorMut for TableFunctionRewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let Some(function) = TableFunction::of_call(name) else { return ControlFlow::Continue(()) };
        match subquery(function, args) {
            Ok(subquery) => {
                let alias = alias.take().unwrap_or_else(|| TableAlias {
                    explicit: true,
                    name: Ident::new(function.name()),
                    columns: Vec::new(),
                    at: None,
                });
                *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn subquery(function: TableFunction, args: &TableFunctionArgs) -> Result<Box<Query>> {
    let text = function.query(&CallArguments::read(function, args)?)?;
    let parsed = text.and_then(|text| Parser::new(&SqlDialect).try_with_sql(&text).ok()?.parse_query().ok());
    parsed.ok_or_else(|| EngineError::Plan { message: function.usage().to_owned() })
}

/// The arguments of a call, in order or by name.
pub(super) struct CallArguments<'a> {
    parameters: &'static [&'static str],
    given: Vec<Option<&'a Expr>>,
}

impl<'a> CallArguments<'a> {
    fn read(function: TableFunction, args: &'a TableFunctionArgs) -> Result<Self> {
        let parameters = function.parameters();
        let mut given = vec![None; parameters.len()];
        let refused = |what: String| EngineError::Plan { message: format!("{what}; {}", function.usage()) };
        for (index, arg) in args.args.iter().enumerate() {
            let (place, value) = match arg {
                FunctionArg::Unnamed(value) => (Some(index), value),
                FunctionArg::Named { name, arg, .. } => {
                    let place = parameters.iter().position(|parameter| name.value.eq_ignore_ascii_case(parameter));
                    if place.is_none() {
                        return Err(refused(format!("{} has no argument {name}", function.name())));
                    }
                    (place, arg)
                }
                FunctionArg::ExprNamed { .. } => (None, &FunctionArgExpr::Wildcard),
            };
            let slot = place.and_then(|place| given.get_mut(place));
            match (slot, value) {
                (Some(Some(_)), _) => return Err(refused(format!("{arg} is given twice"))),
                (Some(slot @ None), FunctionArgExpr::Expr(value)) => *slot = Some(value),
                _ => return Err(EngineError::Plan { message: function.usage().to_owned() }),
            }
        }
        Ok(Self { parameters, given })
    }

    /// Returns an argument, where it is given.
    pub(super) fn get(&self, parameter: &str) -> Option<&'a Expr> {
        let place = self.parameters.iter().position(|known| *known == parameter)?;
        self.given.get(place).copied().flatten()
    }

    /// Returns an argument as it is written in the query that the call stands for.
    pub(super) fn written(&self, parameter: &str) -> Option<String> {
        self.get(parameter).map(exact_text)
    }

    /// Returns a text in quotes, or a name.
    pub(super) fn text(&self, parameter: &str) -> Option<&'a str> {
        text_of(self.get(parameter)?)
    }

    /// Returns the quoted name of a column.
    pub(super) fn column(&self, parameter: &str) -> Option<String> {
        self.text(parameter).map(quote_identifier)
    }

    /// Returns a table as it stands in FROM.
    pub(super) fn table(&self, parameter: &str) -> Option<String> {
        match self.get(parameter)? {
            table @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_)) => Some(exact_text(table)),
            other => Some(text_of(other)?.split('.').map(quote_identifier).collect::<Vec<_>>().join(".")),
        }
    }
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Identifier(ident) => Some(&ident.value),
        _ => None,
    }
}

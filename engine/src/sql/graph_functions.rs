//! `graph_traverse(...)` in FROM. It becomes a subquery over the edges before names are resolved, so the table that it
//! names is resolved, folded and judged by policy as any other is.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, Query, TableAlias, TableFactor, TableFunctionArgs,
    Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use querent_kql::graph::{DEPTH, Direction, NAME, NODE};

use crate::error::{EngineError, Result};

pub(super) const FUNCTION: &str = "graph_traverse";
const USAGE: &str = "write graph_traverse(edges, 'source column', 'target column', start [, max_hops [, direction [, \
                     'type column', types]]]); edges are a table or a (query), start and types a value or ARRAY[...]";
const MAX_HOPS: &str = "5";

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_table_functions(statement: &mut Statement) -> Result<()> {
    let Statement::Statement(statement) = statement else {
        if let Statement::Explain(explain) = statement {
            return rewrite_table_functions(&mut explain.statement);
        }
        return Ok(());
    };
    match statement.visit(&mut Rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(function)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        if !function.value.eq_ignore_ascii_case(FUNCTION) {
            return ControlFlow::Continue(());
        }
        match subquery(args) {
            Some(subquery) => {
                let alias = alias.take().unwrap_or_else(|| TableAlias {
                    explicit: true,
                    name: Ident::new(FUNCTION),
                    columns: Vec::new(),
                    at: None,
                });
                *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(EngineError::Plan { message: USAGE.to_owned() }),
        }
    }
}

fn subquery(args: &TableFunctionArgs) -> Option<Box<Query>> {
    let args: Vec<&Expr> = args.args.iter().map(positional).collect::<Option<_>>()?;
    let (edges, source, target, start, options) = match args.as_slice() {
        [edges, source, target, start, options @ ..] if options.len() <= 4 => (edges, source, target, start, options),
        _ => return None,
    };
    let edges = match edges {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => edges.to_string(),
        other => text_of(other)?.split('.').map(quoted).collect::<Vec<_>>().join("."),
    };
    let (source, target) = (quoted(text_of(source)?), text_of(target)?);
    let list = |expr: &Expr| if matches!(expr, Expr::Array(_)) { expr.to_string() } else { format!("ARRAY[{expr}]") };
    let (start, max_hops) = (list(start), options.first().map_or_else(|| MAX_HOPS.to_owned(), ToString::to_string));
    let direction = options.get(1).map_or_else(|| format!("'{}'", Direction::Forward.name()), ToString::to_string);
    let kinds = match options.get(2..).unwrap_or_default() {
        [] => String::new(),
        [column, kinds] => format!(" WHERE array_has({}, {})", list(kinds), quoted(text_of(column)?)),
        _ => return None,
    };
    let node = quoted(target);
    let text = format!(
        "SELECT reached['{NODE}'] AS {node}, reached['{DEPTH}'] AS {DEPTH} FROM (SELECT unnest({NAME}({source}, {node}, \
         {start}, CAST({max_hops} AS BIGINT), {direction})) AS reached FROM {edges} AS edges{kinds}) AS walked"
    );
    Parser::new(&GenericDialect {}).try_with_sql(&text).ok()?.parse_query().ok()
}

fn positional(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// A text in quotes.
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

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

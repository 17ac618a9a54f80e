//! `graph_traverse(...)`, `shortest_path(...)` and `components(...)` in FROM. Each becomes a subquery over the edges before
//! names are resolved, so the table that it names is resolved, folded and judged by policy as any other is.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, Query, TableAlias, TableFactor, TableFunctionArgs,
    Value, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use querent_kql::graph::{COMPONENT, DEPTH, Direction, GraphAlgorithm, NODE, STEP};

use super::syntax::try_visit_statement;
use crate::error::{EngineError, Result};

const TRAVERSE_USAGE: &str = "write graph_traverse(edges, 'source column', 'target column', start [, max_hops [, \
                              direction [, 'type column', types]]]); edges are a table or a (query), start and types \
                              a value or ARRAY[...]";
const PATH_USAGE: &str = "write shortest_path(edges, 'source column', 'target column', from, to [, max_hops [, \
                          direction]]); edges are a table or a (query)";
const COMPONENTS_USAGE: &str = "write components(edges, 'source column', 'target column' [, 'weak' or 'strong']); edges \
                                are a table or a (query)";
const TRAVERSE_HOPS: &str = "5";
/// A shortest path may be as long as it has to be.
const PATH_HOPS: &str = "1000000";

/// Returns the algorithm that a table function of this name runs.
pub(super) fn algorithm_of(function: &str) -> Option<GraphAlgorithm> {
    GraphAlgorithm::ALL.into_iter().find(|algorithm| function.eq_ignore_ascii_case(function_name(*algorithm)))
}

fn function_name(algorithm: GraphAlgorithm) -> &'static str {
    match algorithm {
        GraphAlgorithm::Traverse => "graph_traverse",
        GraphAlgorithm::ShortestPath => "shortest_path",
        GraphAlgorithm::Components => "components",
    }
}

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_table_functions(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut Rewriter)
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(function)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(algorithm) = algorithm_of(&function.value) else { return ControlFlow::Continue(()) };
        let (subquery, usage) = match algorithm {
            GraphAlgorithm::Traverse => (traverse(args), TRAVERSE_USAGE),
            GraphAlgorithm::ShortestPath => (shortest_path(args), PATH_USAGE),
            GraphAlgorithm::Components => (components(args), COMPONENTS_USAGE),
        };
        match subquery {
            Some(subquery) => {
                let alias = alias.take().unwrap_or_else(|| TableAlias {
                    explicit: true,
                    name: Ident::new(function_name(algorithm)),
                    columns: Vec::new(),
                    at: None,
                });
                *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(EngineError::Plan { message: usage.to_owned() }),
        }
    }
}

fn traverse(args: &TableFunctionArgs) -> Option<Box<Query>> {
    let args: Vec<&Expr> = args.args.iter().map(positional).collect::<Option<_>>()?;
    let [edges, source, target, start, options @ ..] = args.as_slice() else { return None };
    if options.len() > 4 {
        return None;
    }
    let node = quoted(text_of(target)?);
    let list = |expr: &Expr| if matches!(expr, Expr::Array(_)) { expr.to_string() } else { format!("ARRAY[{expr}]") };
    let start = list(start);
    let walk = walk_options(options, TRAVERSE_HOPS);
    let kinds = match options.get(2..).unwrap_or_default() {
        [] => String::new(),
        [column, kinds] => format!(" WHERE array_has({}, {})", list(kinds), quoted(text_of(column)?)),
        _ => return None,
    };
    let edges = format!("{} AS edges{kinds}", relation(edges)?);
    subquery(GraphAlgorithm::Traverse, &edges, [text_of(source)?, text_of(target)?], &[start, walk], [&node, DEPTH])
}

fn shortest_path(args: &TableFunctionArgs) -> Option<Box<Query>> {
    let args: Vec<&Expr> = args.args.iter().map(positional).collect::<Option<_>>()?;
    let [edges, source, target, from, to, options @ ..] = args.as_slice() else { return None };
    if options.len() > 2 {
        return None;
    }
    let constants = [from.to_string(), to.to_string(), walk_options(options, PATH_HOPS)];
    let edges = format!("{} AS edges", relation(edges)?);
    subquery(GraphAlgorithm::ShortestPath, &edges, [text_of(source)?, text_of(target)?], &constants, [NODE, STEP])
}

fn components(args: &TableFunctionArgs) -> Option<Box<Query>> {
    let args: Vec<&Expr> = args.args.iter().map(positional).collect::<Option<_>>()?;
    let (edges, source, target, kind) = match args.as_slice() {
        [edges, source, target] => (edges, source, target, "'weak'".to_owned()),
        [edges, source, target, kind] => (edges, source, target, kind.to_string()),
        _ => return None,
    };
    let edges = format!("{} AS edges", relation(edges)?);
    subquery(GraphAlgorithm::Components, &edges, [text_of(source)?, text_of(target)?], &[kind], [NODE, COMPONENT])
}

/// The number of hops and the direction, which follow each other.
fn walk_options(options: &[&Expr], hops: &str) -> String {
    let hops = options.first().map_or_else(|| hops.to_owned(), ToString::to_string);
    let direction = options.get(1).map_or_else(|| format!("'{}'", Direction::Forward.name()), ToString::to_string);
    format!("CAST({hops} AS BIGINT), {direction}")
}

/// Returns edges as they stand in FROM.
fn relation(edges: &Expr) -> Option<String> {
    match edges {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => Some(edges.to_string()),
        other => Some(text_of(other)?.split('.').map(quoted).collect::<Vec<_>>().join(".")),
    }
}

/// Returns the query over `edges` whose rows are the aggregate's, with these names.
fn subquery(
    algorithm: GraphAlgorithm,
    edges: &str,
    [source, target]: [&str; 2],
    constants: &[String],
    [node, number]: [&str; 2],
) -> Option<Box<Query>> {
    let (aggregate, field) = (algorithm.name(), algorithm.number_field());
    let (source, target, constants) = (quoted(source), quoted(target), constants.join(", "));
    let text = format!(
        "SELECT made['{NODE}'] AS {node}, made['{field}'] AS {number} FROM (SELECT unnest({aggregate}({source}, \
         {target}, {constants})) AS made FROM {edges}) AS walked"
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

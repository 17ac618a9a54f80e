//! `graph_traverse(...)`, `shortest_path(...)` and `components(...)` in FROM, as queries over aggregates of edges.

use datafusion::sql::sqlparser::ast::Expr;
use querent_kql::graph::{COMPONENT, DEPTH, Direction, GraphAlgorithm, NODE, STEP};

use super::exact_text::exact_text;
use super::table_functions::CallArguments;

const TRAVERSE_HOPS: &str = "5";
/// A shortest path may be as long as it has to be.
const PATH_HOPS: &str = "1000000";

/// Returns the name of the table function that runs an algorithm.
pub(super) fn function_name(algorithm: GraphAlgorithm) -> &'static str {
    match algorithm {
        GraphAlgorithm::Traverse => "graph_traverse",
        GraphAlgorithm::ShortestPath => "shortest_path",
        GraphAlgorithm::Components => "components",
    }
}

/// Returns the names of its arguments.
pub(super) fn parameters(algorithm: GraphAlgorithm) -> &'static [&'static str] {
    match algorithm {
        GraphAlgorithm::Traverse => {
            &["edges", "source", "target", "start", "max_hops", "direction", "type_column", "types"]
        }
        GraphAlgorithm::ShortestPath => &["edges", "source", "target", "from", "to", "max_hops", "direction"],
        GraphAlgorithm::Components => &["edges", "source", "target", "kind"],
    }
}

/// Says how it is called.
pub(super) fn usage(algorithm: GraphAlgorithm) -> &'static str {
    match algorithm {
        GraphAlgorithm::Traverse => {
            "write graph_traverse(edges, 'source column', 'target column', start [, max_hops [, direction [, 'type \
             column', types]]]); edges are a table or a (query), start and types a value or ARRAY[...]"
        }
        GraphAlgorithm::ShortestPath => {
            "write shortest_path(edges, 'source column', 'target column', from, to [, max_hops [, direction]]); edges \
             are a table or a (query)"
        }
        GraphAlgorithm::Components => {
            "write components(edges, 'source column', 'target column' [, 'weak' or 'strong']); edges are a table or a \
             (query)"
        }
    }
}

/// Returns the query that a call stands for; `None` where it is not called as [`usage`] says.
pub(super) fn query(algorithm: GraphAlgorithm, call: &CallArguments<'_>) -> Option<String> {
    let mut edges = format!("{} AS edges", call.table("edges")?);
    let list = |expr: &Expr| match expr {
        Expr::Array(_) => exact_text(expr),
        one => format!("ARRAY[{}]", exact_text(one)),
    };
    let (constants, node, number) = match algorithm {
        GraphAlgorithm::Traverse => {
            match (call.column("type_column"), call.get("types")) {
                (None, None) => {}
                (Some(column), Some(types)) => {
                    edges = format!("{edges} WHERE array_has({}, {column})", list(types));
                }
                _ => return None,
            }
            let constants = format!("{}, {}", list(call.get("start")?), walk_options(call, TRAVERSE_HOPS));
            (constants, call.column("target")?, DEPTH)
        }
        GraphAlgorithm::ShortestPath => {
            let walk = walk_options(call, PATH_HOPS);
            (format!("{}, {}, {walk}", call.written("from")?, call.written("to")?), NODE.to_owned(), STEP)
        }
        GraphAlgorithm::Components => {
            let kind = call.written("kind").unwrap_or_else(|| "'weak'".to_owned());
            (kind, NODE.to_owned(), COMPONENT)
        }
    };
    let (aggregate, field) = (algorithm.name(), algorithm.number_field());
    let (source, target) = (call.column("source")?, call.column("target")?);
    Some(format!(
        "SELECT made['{NODE}'] AS {node}, made['{field}'] AS {number} FROM (SELECT unnest({aggregate}({source}, \
         {target}, {constants})) AS made FROM {edges}) AS walked"
    ))
}

/// The number of hops and the direction, which follow each other.
fn walk_options(call: &CallArguments<'_>, hops: &str) -> String {
    let hops = call.written("max_hops").unwrap_or_else(|| hops.to_owned());
    let direction = call.written("direction").unwrap_or_else(|| format!("'{}'", Direction::Forward.name()));
    format!("CAST({hops} AS BIGINT), {direction}")
}

//! Patterns of `graph_match` whose edges are single ones with a direction, as joins of the table of edges with itself. The rows
//! of such a query are never all in memory, and the order of its joins is the optimizer's.
//!
//! A match that may have no edge twice needs to know one row from its equal. Where two edges of a pattern can only be the same
//! where that is a loop, loops are numbered, which are few. Other patterns are left to the search.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, TableFactor, Visit, Visitor};
use querent_kql::graph::{GraphVariable, PatternShape};

use crate::identifiers::quote_identifier;

/// The column that numbers loops; 0 for other edges.
const LOOP: &str = "\"$loop\"";

/// A pattern as joins.
pub(super) struct PatternJoins<'a> {
    shape: &'a PatternShape,
    /// The places of each edge's source and target, in an order in which each edge has a node of an earlier one.
    edges: Vec<JoinedEdge>,
    cycles: JoinCycles,
    /// Pairs of edges, by their order, that may be the same loop.
    alike: Vec<(usize, usize)>,
}

struct JoinedEdge {
    /// Its place in the pattern.
    place: usize,
    ends: [usize; 2],
}

/// What a match may have twice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinCycles {
    Anything,
    NoEdge,
    NoNode,
}

/// The tables that are joined, as they stand in FROM, and the quoted columns that join them.
pub(super) struct JoinedTables<'a> {
    pub(super) edges: &'a str,
    pub(super) source: &'a str,
    pub(super) target: &'a str,
    /// The table of nodes and its key.
    pub(super) nodes: Option<(&'a str, &'a str)>,
}

impl<'a> PatternJoins<'a> {
    /// Returns the joins of a pattern; `None` where it has to be searched.
    pub(super) fn of(shape: &'a PatternShape, cycles: &str) -> Option<Self> {
        let cycles = match cycles {
            "all" => JoinCycles::Anything,
            "unique_edges" => JoinCycles::NoEdge,
            "none" => JoinCycles::NoNode,
            _ => return None,
        };
        let ends = shape.single_edges()?;
        let edges = connected(&ends, shape.node_count())?;
        let mut alike = Vec::new();
        if cycles == JoinCycles::NoEdge {
            for (second, edge) in edges.iter().enumerate() {
                for (first, earlier) in edges.iter().take(second).enumerate() {
                    if !is_loop_where_same(earlier.ends, edge.ends) {
                        return None;
                    }
                    alike.push((first, second));
                }
            }
        }
        let has_loop = edges.iter().any(|edge| edge.ends[0] == edge.ends[1]);
        // With no node twice two edges between the same nodes are still two rows, and a loop has its node twice.
        let is_parallel =
            |edge: &JoinedEdge| edges.iter().any(|other| edge.place != other.place && edge.ends == other.ends);
        if cycles == JoinCycles::NoNode && (has_loop || edges.iter().any(is_parallel)) {
            return None;
        }
        Some(Self { shape, edges, cycles, alike })
    }

    /// Returns the key of a node of the pattern.
    pub(super) fn key(&self, node: usize, tables: &JoinedTables<'_>) -> String {
        let of_edge = |edge: &JoinedEdge| {
            let column = [tables.source, tables.target].into_iter().zip(edge.ends).find(|(_, end)| *end == node)?.0;
            Some(format!("{}.{column}", self.edge_alias(edge.place)))
        };
        self.edges.iter().find_map(of_edge).unwrap_or_default()
    }

    /// Returns the name of an edge's table.
    pub(super) fn edge_alias(&self, place: usize) -> String {
        self.alias(GraphVariable::Edge(place), &format!("$edge{place}"))
    }

    /// Returns the name of the table with a node's row.
    pub(super) fn node_alias(&self, place: usize) -> String {
        self.alias(GraphVariable::Node(place), &format!("$node{place}"))
    }

    /// What the pattern names is known by that name in errors, too.
    fn alias(&self, variable: GraphVariable, unnamed: &str) -> String {
        let named = self.shape.variables.iter().find(|(_, known)| *known == variable);
        quote_identifier(named.map_or(unnamed, |(name, _)| name))
    }

    /// Returns FROM and WHERE of all matches, with a row of the table of nodes for each of `described`. `columns` are the
    /// quoted columns of edges that are read.
    pub(super) fn tables_and_filters(
        &self,
        tables: &JoinedTables<'_>,
        described: &BTreeSet<usize>,
        columns: &[String],
    ) -> String {
        let JoinedTables { edges, source, target, nodes } = tables;
        let ordered = if columns.is_empty() { String::new() } else { format!(" ORDER BY {}", columns.join(", ")) };
        let table = match self.alike.is_empty() {
            true => (*edges).to_owned(),
            false => format!(
                "(SELECT *, 0 AS {LOOP} FROM {edges} AS edges WHERE {source} <> {target} UNION ALL SELECT *, \
                 CAST(row_number() OVER (PARTITION BY {source}{ordered}) AS BIGINT) FROM {edges} AS edges WHERE {source} = \
                 {target})"
            ),
        };
        let (mut from, mut filters) = (String::new(), Vec::new());
        let mut known = BTreeSet::new();
        for (order, edge) in self.edges.iter().enumerate() {
            let alias = self.edge_alias(edge.place);
            filters.extend([source, target].map(|column| format!("{alias}.{column} IS NOT NULL")));
            let mut conditions = Vec::new();
            for (column, end) in [source, target].into_iter().zip(edge.ends) {
                if !known.insert(end) {
                    conditions.push(format!("{alias}.{column} = {}", self.key(end, tables)));
                }
            }
            let others = self.alike.iter().filter(|(_, second)| *second == order);
            for (first, _) in others {
                let other = self.edge_alias(self.edges[*first].place);
                let same = [*source, *target, LOOP].map(|column| format!("{alias}.{column} = {other}.{column}"));
                conditions.push(format!("NOT ({})", same.join(" AND ")));
            }
            if from.is_empty() {
                from = format!("{table} AS {alias}");
                filters.append(&mut conditions);
            } else {
                from += &format!(" JOIN {table} AS {alias} ON {}", conditions.join(" AND "));
            }
        }
        if let Some((table, key)) = nodes {
            for node in described {
                let alias = self.node_alias(*node);
                from += &format!(
                    " LEFT JOIN (SELECT DISTINCT ON ({key}) * FROM {table} AS nodes) AS {alias} ON {alias}.{key} = {}",
                    self.key(*node, tables)
                );
            }
        }
        if self.cycles == JoinCycles::NoNode {
            for second in 0..self.shape.node_count() {
                for first in 0..second {
                    filters.push(format!("{} <> {}", self.key(first, tables), self.key(second, tables)));
                }
            }
        }
        format!("{from} WHERE {}", filters.join(" AND "))
    }
}

/// Returns the edges in an order in which each shares a node with one before it; `None` where there is none, or a node has no
/// edge.
fn connected(ends: &[[usize; 2]], nodes: usize) -> Option<Vec<JoinedEdge>> {
    let mut left: Vec<JoinedEdge> =
        ends.iter().enumerate().map(|(place, ends)| JoinedEdge { place, ends: *ends }).collect();
    let mut known = BTreeSet::new();
    let mut edges: Vec<JoinedEdge> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let next = left.iter().position(|edge| known.is_empty() || edge.ends.iter().any(|end| known.contains(end)))?;
        let edge = left.remove(next);
        known.extend(edge.ends);
        edges.push(edge);
    }
    (known.len() == nodes && nodes > 0).then_some(edges)
}

/// Returns whether two edges of a pattern are the same one only where that is a loop.
fn is_loop_where_same(one: [usize; 2], other: [usize; 2]) -> bool {
    // The nodes that are one, where both edges are one: their sources, and their targets.
    let [sources, targets] = [0, 1].map(|end| [one[end], other[end]]);
    sources.iter().any(|source| targets.contains(source))
}

/// Returns whether a table or a query gives the same rows each time that a statement reads it, as far as its text says.
pub(super) fn is_repeatable(table: &Expr) -> bool {
    match table {
        Expr::Subquery(query) => query.visit(&mut Repeatable).is_continue(),
        _ => true,
    }
}

/// Breaks at what may be another each time: a function, a sample, a limit.
struct Repeatable;

impl Visitor for Repeatable {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match query.limit_clause.is_some() || query.fetch.is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { args: None, sample: None, .. } | TableFactor::Derived { sample: None, .. } => {
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

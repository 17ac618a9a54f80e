//! Graph operators.

use super::{Expr, Name, NamedExpr, Pipeline};
use crate::span::Span;

/// `make-graph source --> target with T on id`.
#[derive(Debug, Clone, PartialEq)]
pub struct MakeGraph {
    /// The column of an edge's source.
    pub source: Name,
    /// `-->` or `--`.
    pub direction: EdgeDirection,
    /// The column of an edge's target.
    pub target: Name,
    /// Where nodes come from.
    pub nodes: GraphNodes,
    /// `partitioned-by a (...)`.
    pub partitioned_by: Option<(Expr, Pipeline)>,
}

/// Where a graph's nodes come from.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphNodes {
    /// The edges.
    Edges,
    /// The edges; the column is called so.
    NodeId(Name),
    /// `with T on id, U on key`.
    Tables(Vec<NodeTable>),
}

/// A table of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTable {
    /// The table.
    pub table: Expr,
    /// Its key.
    pub key: Name,
}

/// `graph-match (a)-[e]->(b) where a.x project b.y`, and the same of `graph-shortest-paths`.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphMatch {
    /// Sequences of nodes and edges.
    pub patterns: Vec<Vec<GraphPart>>,
    /// What must hold.
    pub predicate: Option<Expr>,
    /// What is returned.
    pub project: Vec<NamedExpr>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphPart {
    /// `(a)`.
    Node {
        /// Its name, if it has one.
        name: Option<Name>,
        /// Where.
        span: Span,
    },
    /// `-[e]->`, `--`.
    Edge {
        /// Its name, if it has one.
        name: Option<Name>,
        /// Which way.
        direction: EdgeDirection,
        /// `*1..3`: how many in a row.
        hops: Option<HopRange>,
        /// Where.
        span: Span,
    },
}

/// Which way an edge goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeDirection {
    /// `-->`.
    Forward,
    /// `<--`.
    Backward,
    /// `--`.
    Either,
}

/// How many edges in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct HopRange {
    /// At least.
    pub low: Expr,
    /// At most.
    pub high: Expr,
}

/// A table that `graph-to-table` returns.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphOutput {
    /// Of what.
    pub elements: GraphElements,
    /// `as name`.
    pub name: Option<Name>,
    /// `with_node_id=...`.
    pub parameters: Vec<super::OperatorParameter>,
}

/// What a graph is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraphElements {
    /// `nodes`.
    Nodes,
    /// `edges`.
    Edges,
}

/// `graph-traverse source 1 from a to b max-hops 3 direction both edge-type "x"`.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphTraverse {
    /// Where it starts: one or several ids.
    pub sources: Vec<Expr>,
    /// The column of an edge's source.
    pub from: Name,
    /// The column of an edge's target.
    pub to: Name,
    /// How far it goes.
    pub max_hops: Expr,
    /// Forward, where it is not said.
    pub direction: Option<TraverseDirection>,
    /// Any, where none is named.
    pub edge_types: Vec<Expr>,
}

/// Which way edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraverseDirection {
    /// `forward`: from source to target.
    Forward,
    /// `backward`.
    Backward,
    /// `both`.
    Both,
}

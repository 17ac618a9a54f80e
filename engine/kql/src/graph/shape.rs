//! What the text of a pattern says: its variables, and the edges between its nodes. KQL's operators and SQL's
//! `graph_match` read it alike.

use super::network::Way;
use super::pattern::PatternEdge;
use crate::ast::{EdgeDirection, Expr, ExprKind, GraphPart, Literal};
use crate::parse;
use crate::span::Span;

/// The most edges of a path.
pub(crate) const MAX_HOPS: i64 = 10_000;

/// The most nodes, and the most edges, of a pattern of `graph_match`: each is a bit of a number.
const MAX_PLACES: usize = 62;

/// What a name of a pattern stands for, by its place among the nodes or edges of the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphVariable {
    /// A node.
    Node(usize),
    /// One edge.
    Edge(usize),
    /// Several edges in a row.
    Path(usize),
}

/// The variables, nodes and edges of a pattern.
#[derive(Debug)]
pub struct PatternShape {
    /// What has a name, in the pattern's order.
    pub variables: Vec<(String, GraphVariable)>,
    /// How many nodes there are, named or not.
    pub(crate) nodes: usize,
    pub(crate) edges: Vec<PatternEdge>,
}

impl PatternShape {
    /// Reads a pattern as it is written after `graph-match`, with literal lengths of paths. Errors: the message that says
    /// what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let sequences = parse::parse_graph_pattern(text).map_err(|errors| {
            errors.first().map_or_else(|| "expected a pattern".to_owned(), |error| error.message.clone())
        })?;
        let length = |expr: &Expr| match &expr.kind {
            ExprKind::Literal(Literal::Long(hops @ 0..=MAX_HOPS)) => Ok(usize::try_from(*hops).unwrap_or_default()),
            _ => Err(format!("the length of a path is a number of edges, at most {MAX_HOPS}")),
        };
        let shape = Self::read(&sequences, length, |_, message| message)?;
        match shape.nodes.max(shape.edges.len()) {
            0..=MAX_PLACES => Ok(shape),
            _ => Err(format!("a pattern has at most {MAX_PLACES} nodes and edges")),
        }
    }

    /// Returns how many nodes the pattern has, named or not.
    pub fn node_count(&self) -> usize {
        self.nodes
    }

    /// Returns the places of each edge's source and target; `None` where one may go either way, or be several in a row.
    pub fn single_edges(&self) -> Option<Vec<[usize; 2]>> {
        let ends = |edge: &PatternEdge| match (edge.range, edge.way) {
            (None, Way::Out) => Some([edge.left, edge.right]),
            (None, Way::In) => Some([edge.right, edge.left]),
            (Some(_), _) | (None, Way::Both) => None,
        };
        self.edges.iter().map(ends).collect()
    }

    /// Reads sequences of nodes and edges; `hops` returns the lengths of paths, and `refused` makes an error.
    pub(crate) fn read<'a, E>(
        sequences: &'a [Vec<GraphPart>],
        mut hops: impl FnMut(&'a Expr) -> Result<usize, E>,
        refused: impl Fn(Span, String) -> E,
    ) -> Result<Self, E> {
        let mut variables: Vec<(String, GraphVariable)> = Vec::new();
        let mut edges: Vec<PatternEdge> = Vec::new();
        let mut nodes = 0;
        for sequence in sequences {
            let mut before: Option<usize> = None;
            let mut pending: Option<PatternEdge> = None;
            for part in sequence {
                match part {
                    GraphPart::Node { name, .. } => {
                        let known = name.as_ref().and_then(|name| {
                            variables.iter().find(|(known, _)| *known == name.text).map(|(_, variable)| *variable)
                        });
                        let node = match (known, name) {
                            (Some(GraphVariable::Node(node)), _) => node,
                            (Some(_), Some(name)) => {
                                return Err(refused(name.span, format!("`{}` is an edge already", name.text)));
                            }
                            (_, name) => {
                                if let Some(name) = name {
                                    variables.push((name.text.clone(), GraphVariable::Node(nodes)));
                                }
                                nodes += 1;
                                nodes - 1
                            }
                        };
                        if let (Some(edge), Some(left)) = (pending.take(), before) {
                            edges.push(PatternEdge { left, right: node, ..edge });
                        }
                        before = Some(node);
                    }
                    GraphPart::Edge { name, direction, hops: written, span } => {
                        let way = match direction {
                            EdgeDirection::Forward => Way::Out,
                            EdgeDirection::Backward => Way::In,
                            EdgeDirection::Either => Way::Both,
                        };
                        let range = match written {
                            Some(range) => {
                                let (low, high) = (hops(&range.low)?, hops(&range.high)?);
                                if low > high {
                                    let message = "the smallest length is above the largest".to_owned();
                                    return Err(refused(*span, message));
                                }
                                Some((low, high))
                            }
                            None => None,
                        };
                        if let Some(name) = name {
                            if variables.iter().any(|(known, _)| *known == name.text) {
                                return Err(refused(name.span, format!("`{}` is there twice", name.text)));
                            }
                            let edge = edges.len();
                            let variable =
                                if range.is_some() { GraphVariable::Path(edge) } else { GraphVariable::Edge(edge) };
                            variables.push((name.text.clone(), variable));
                        }
                        pending = Some(PatternEdge { left: 0, right: 0, way, range, edges: None, inner: None });
                    }
                }
            }
        }
        Ok(Self { variables, nodes, edges })
    }
}

//! A graph as compressed sparse rows: for each node its edges, and at their other ends the nodes.

/// The number of a node or of an edge.
pub(crate) type Id = u32;

/// A step from a node: the edge, and the node at its other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) edge: Id,
    pub(crate) node: Id,
}

/// Which edges of a node are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Both; an edge from a node to itself counts twice. Undirected edges are followed once.
    Both,
}

impl Way {
    /// The way back.
    pub(crate) fn reversed(self) -> Self {
        match self {
            Way::Out => Way::In,
            Way::In => Way::Out,
            Way::Both => Way::Both,
        }
    }
}

/// The edges of all nodes, each from both of its ends.
#[derive(Debug)]
pub(crate) struct Network {
    out: Rows,
    into: Rows,
    edges: usize,
    is_directed: bool,
}

#[derive(Debug)]
struct Rows {
    starts: Vec<usize>,
    hops: Vec<Hop>,
}

impl Rows {
    /// Sorts the hops by the node that they start from, by counting.
    fn new(nodes: usize, from: impl Iterator<Item = (Id, Hop)> + Clone) -> Self {
        let mut starts = vec![0_usize; nodes + 1];
        for (node, _) in from.clone() {
            starts[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut hops = vec![Hop { edge: 0, node: 0 }; starts[nodes]];
        for (node, hop) in from {
            hops[next[node as usize]] = hop;
            next[node as usize] += 1;
        }
        Self { starts, hops }
    }

    fn of_node(&self, node: Id) -> &[Hop] {
        &self.hops[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}

impl Network {
    /// Makes a graph of edges between nodes below `nodes`; each end of an undirected one is its source and its target.
    pub(crate) fn new(nodes: usize, ends: &[[Id; 2]], is_directed: bool) -> Self {
        let hops = |from: usize, to: usize| {
            ends.iter().enumerate().map(move |(edge, ends)| (ends[from], Hop { edge: edge as Id, node: ends[to] }))
        };
        let (out, into) = if is_directed {
            (Rows::new(nodes, hops(0, 1)), Rows::new(nodes, hops(1, 0)))
        } else {
            let both = hops(0, 1).chain(hops(1, 0));
            (Rows::new(nodes, both.clone()), Rows::new(nodes, both))
        };
        Self { out, into, edges: ends.len(), is_directed }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.out.starts.len() - 1
    }

    pub(crate) fn edges(&self) -> usize {
        self.edges
    }

    /// Returns the steps from a node.
    pub(crate) fn hops(&self, node: Id, way: Way) -> impl Iterator<Item = Hop> + '_ {
        let (first, second): (&[Hop], &[Hop]) = match way {
            Way::Out => (self.out.of_node(node), &[]),
            Way::In => (self.into.of_node(node), &[]),
            Way::Both if self.is_directed => (self.out.of_node(node), self.into.of_node(node)),
            Way::Both => (self.out.of_node(node), &[]),
        };
        first.iter().chain(second).copied()
    }

    /// Returns how many edges a node has in a direction.
    pub(crate) fn degree(&self, node: Id, way: Way) -> usize {
        self.hops(node, way).count()
    }
}

//! Breadth-first search over edges in compressed sparse rows: the neighbours of all nodes in one array, and in another
//! the index of each node's first one. A node is visited once, so the cost is linear in the edges, however many hops.

use super::edges::{EdgeList, NodeId};

/// The direction in which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From source to target.
    Forward,
    /// From target to source.
    Backward,
    /// Either way.
    Both,
}

impl Direction {
    /// Returns the direction of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Direction::Forward, Direction::Backward, Direction::Both]
            .into_iter()
            .find(|direction| direction.name() == name)
    }

    /// Returns `forward`, `backward` or `both`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
            Direction::Both => "both",
        }
    }

    /// Returns the steps that a walk may take along an edge, as from and to.
    fn steps([source, target]: [NodeId; 2], direction: Self) -> impl Iterator<Item = (NodeId, NodeId)> {
        let forward = (direction != Direction::Backward).then_some((source, target));
        let backward = (direction != Direction::Forward).then_some((target, source));
        forward.into_iter().chain(backward)
    }
}

/// Returns the memory that [`reach`] takes, in bytes.
pub(super) fn bytes(edges: &EdgeList, direction: Direction) -> usize {
    let steps = edges.ends().len() * if direction == Direction::Both { 2 } else { 1 };
    // Per node: where its neighbours begin, its depth, its place in the order.
    let per_node = 2 * size_of::<usize>() + size_of::<(NodeId, u32)>() + 1;
    steps * size_of::<NodeId>() + edges.node_count() as usize * per_node
}

/// Returns the nodes within `max_hops` of any of `from`, each with its smallest depth, by depth.
pub(super) fn reach(edges: &EdgeList, from: &[NodeId], max_hops: u32, direction: Direction) -> Vec<(NodeId, u32)> {
    let rows = SparseRows::new(edges, direction);
    let mut is_reached = vec![false; edges.node_count() as usize];
    let mut reached: Vec<(NodeId, u32)> = Vec::new();
    let mut reach = |node: NodeId, depth: u32, reached: &mut Vec<(NodeId, u32)>| {
        if !std::mem::replace(&mut is_reached[node as usize], true) {
            reached.push((node, depth));
        }
    };
    for node in from {
        reach(*node, 0, &mut reached);
    }
    let mut next = 0;
    while let Some((node, depth)) = reached.get(next).copied() {
        next += 1;
        if depth < max_hops {
            for neighbour in rows.neighbours(node) {
                reach(*neighbour, depth + 1, &mut reached);
            }
        }
    }
    reached
}

/// Returns the nodes of a path of at most `max_hops` edges between the ends, both included, that has the fewest; none where there
/// is no path.
pub(super) fn shortest_path(
    edges: &EdgeList,
    [from, to]: [NodeId; 2],
    max_hops: u32,
    direction: Direction,
) -> Vec<NodeId> {
    let rows = SparseRows::new(edges, direction);
    let mut before: Vec<Option<NodeId>> = vec![None; edges.node_count() as usize];
    before[from as usize] = Some(from);
    let mut layer = vec![from];
    for _ in 0..max_hops {
        if before[to as usize].is_some() || layer.is_empty() {
            break;
        }
        let mut next = Vec::new();
        for node in layer {
            for neighbour in rows.neighbours(node) {
                let known = &mut before[*neighbour as usize];
                if known.is_none() {
                    *known = Some(node);
                    next.push(*neighbour);
                }
            }
        }
        layer = next;
    }
    let mut path = Vec::new();
    let mut at = to;
    while let Some(previous) = before[at as usize] {
        path.push(at);
        if at == from {
            break;
        }
        at = previous;
    }
    path.reverse();
    path
}

/// The neighbours of every node.
struct SparseRows {
    /// By node, and one more: the index of its first neighbour.
    starts: Vec<usize>,
    neighbours: Vec<NodeId>,
}

impl SparseRows {
    fn new(edges: &EdgeList, direction: Direction) -> Self {
        let steps = || edges.ends().iter().flat_map(|ends| Direction::steps(*ends, direction));
        let mut starts = vec![0; edges.node_count() as usize + 1];
        for (from, _) in steps() {
            starts[from as usize + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut free = starts.clone();
        let mut neighbours = vec![0; starts.last().copied().unwrap_or_default()];
        for (from, to) in steps() {
            neighbours[free[from as usize]] = to;
            free[from as usize] += 1;
        }
        Self { starts, neighbours }
    }

    fn neighbours(&self, node: NodeId) -> &[NodeId] {
        &self.neighbours[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}

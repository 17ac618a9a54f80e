//! Matches a pattern of nodes and edges. Edges are matched one after the other, each from an end that is matched already,
//! so that a match costs what its neighbourhood costs; a search beyond its budget of steps is an error.

use std::fmt;

use super::network::{Id, Network, Way};
use crate::interrupt::is_interrupted;

/// The most matches of a pattern.
pub(crate) const MAX_MATCHES: usize = 1_000_000;
/// The most steps of a search, which a query waits for.
pub(crate) const MAX_STEPS: usize = 20_000_000;

/// Which edges and nodes a match may have more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cycles {
    /// Any.
    All,
    /// No node twice, but for a variable that is named twice.
    None,
    /// No edge twice.
    UniqueEdges,
}

impl Cycles {
    /// As a query names it.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "none" => Some(Self::None),
            "unique_edges" => Some(Self::UniqueEdges),
            _ => None,
        }
    }
}

/// An edge of a pattern, between two of its node variables.
#[derive(Debug, Clone)]
pub(crate) struct PatternEdge {
    /// The variables on its left and on its right.
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// From the left.
    pub(crate) way: Way,
    /// How many edges in a row, where it may be several.
    pub(crate) range: Option<(usize, usize)>,
    /// Which edges it may be; all where it is not said.
    pub(crate) edges: Option<Vec<bool>>,
    /// Which nodes may lie within several edges in a row.
    pub(crate) inner: Option<Vec<bool>>,
}

/// A pattern, which hangs together.
#[derive(Debug)]
pub(crate) struct GraphPattern {
    /// For each variable of a node, which nodes it may be.
    pub(crate) nodes: Vec<Option<Vec<bool>>>,
    pub(crate) edges: Vec<PatternEdge>,
    pub(crate) cycles: Cycles,
}

/// What a match has for each edge of the pattern: its edges from left to right, and the nodes between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EdgePath {
    pub(crate) edges: Vec<Id>,
    pub(crate) inner: Vec<Id>,
}

/// A match: a node for each variable, and a path for each edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundMatch {
    pub(crate) nodes: Vec<Id>,
    pub(crate) paths: Vec<EdgePath>,
}

/// Why a search ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchLimit {
    Matches,
    Steps,
    /// A sequence of the pattern shares no node with those before it.
    Unconnected,
    /// The query is over.
    Interrupted,
}

impl fmt::Display for SearchLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matches => write!(formatter, "the pattern has more than {MAX_MATCHES} matches"),
            Self::Steps => write!(formatter, "the pattern takes more than {MAX_STEPS} steps to match"),
            Self::Unconnected => {
                formatter.write_str("the sequences of a pattern are connected by nodes that they share")
            }
            Self::Interrupted => formatter.write_str("the query is over"),
        }
    }
}

/// The steps that a search may still take. Now and then it is looked whether the query is over.
#[derive(Debug)]
pub(crate) struct SearchBudget {
    steps_left: usize,
    work_until_look: usize,
}

impl SearchBudget {
    const WORK_UNTIL_LOOK: usize = 16_384;

    pub(crate) fn new(steps: usize) -> Self {
        Self { steps_left: steps, work_until_look: Self::WORK_UNTIL_LOOK }
    }

    /// Takes steps. Errors: none are left, or the query is over.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), SearchLimit> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(SearchLimit::Steps)?;
        self.work(steps)
    }

    /// Counts work that is bounded by the time of the query alone. Errors: it is over.
    pub(crate) fn work(&mut self, amount: usize) -> Result<(), SearchLimit> {
        self.work_until_look = self.work_until_look.saturating_sub(amount.max(1));
        if self.work_until_look > 0 {
            return Ok(());
        }
        self.work_until_look = Self::WORK_UNTIL_LOOK;
        if is_interrupted() { Err(SearchLimit::Interrupted) } else { Ok(()) }
    }
}

/// Returns all matches.
pub(crate) fn matches(
    network: &Network,
    pattern: &GraphPattern,
    max_matches: usize,
    max_steps: usize,
) -> Result<Vec<FoundMatch>, SearchLimit> {
    let count = |variable: &usize| {
        pattern.nodes[*variable]
            .as_ref()
            .map_or(network.nodes(), |mask| mask.iter().filter(|allowed| **allowed).count())
    };
    // The search starts at the variable with the fewest candidates.
    let Some(start) = (0..pattern.nodes.len()).min_by_key(count) else { return Ok(Vec::new()) };
    let order = order_of_edges(pattern, start)?;
    let mut search = PatternSearch {
        network,
        pattern,
        order,
        nodes: vec![None; pattern.nodes.len()],
        paths: vec![EdgePath::default(); pattern.edges.len()],
        used: vec![0; network.edges()],
        found: Vec::new(),
        max_matches,
        budget: SearchBudget::new(max_steps),
    };
    for node in 0..network.nodes() as Id {
        if search.is_allowed(start, node) {
            search.nodes[start] = Some(node);
            search.next_edge(0)?;
            search.nodes[start] = None;
        }
    }
    Ok(search.found)
}

/// Returns the edges in an order in which each has an end that is known by then, and whether that is the left one.
fn order_of_edges(pattern: &GraphPattern, start: usize) -> Result<Vec<(usize, bool)>, SearchLimit> {
    let mut known = vec![false; pattern.nodes.len()];
    known[start] = true;
    let mut left: Vec<usize> = (0..pattern.edges.len()).collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ends = |edge: &usize| (known[pattern.edges[*edge].left], known[pattern.edges[*edge].right]);
        let of_both = left.iter().position(|edge| ends(edge) == (true, true));
        let next = of_both.or_else(|| left.iter().position(|edge| ends(edge).0 || ends(edge).1));
        let Some(next) = next else { return Err(SearchLimit::Unconnected) };
        let edge = left.remove(next);
        let from_left = known[pattern.edges[edge].left];
        known[pattern.edges[edge].left] = true;
        known[pattern.edges[edge].right] = true;
        order.push((edge, from_left));
    }
    if known.iter().all(|known| *known) { Ok(order) } else { Err(SearchLimit::Unconnected) }
}

struct PatternSearch<'a> {
    network: &'a Network,
    pattern: &'a GraphPattern,
    order: Vec<(usize, bool)>,
    nodes: Vec<Option<Id>>,
    paths: Vec<EdgePath>,
    /// How often the match so far has each edge.
    used: Vec<u32>,
    found: Vec<FoundMatch>,
    max_matches: usize,
    budget: SearchBudget,
}

impl PatternSearch<'_> {
    fn is_allowed(&self, variable: usize, node: Id) -> bool {
        let fits = self.pattern.nodes[variable].as_ref().is_none_or(|mask| mask[node as usize]);
        fits && (self.pattern.cycles != Cycles::None || !self.is_in_match(node))
    }

    /// Whether the match has a node so far, as a variable or within a path.
    fn is_in_match(&self, node: Id) -> bool {
        self.nodes.contains(&Some(node)) || self.paths.iter().any(|path| path.inner.contains(&node))
    }

    fn next_edge(&mut self, place: usize) -> Result<(), SearchLimit> {
        let Some((edge, from_left)) = self.order.get(place).copied() else {
            if self.found.len() >= self.max_matches {
                return Err(SearchLimit::Matches);
            }
            self.budget.take(self.paths.iter().map(|path| path.edges.len()).sum())?;
            let nodes = self.nodes.iter().map(|node| node.unwrap_or_default()).collect();
            self.found.push(FoundMatch { nodes, paths: self.paths.clone() });
            return Ok(());
        };
        let pattern_edge = &self.pattern.edges[edge];
        let (from, to) =
            if from_left { (pattern_edge.left, pattern_edge.right) } else { (pattern_edge.right, pattern_edge.left) };
        let way = if from_left { pattern_edge.way } else { pattern_edge.way.reversed() };
        let range = pattern_edge.range.unwrap_or((1, 1));
        let Some(node) = self.nodes[from] else { return Ok(()) };
        self.walk(EdgeWalk { place, edge, from_left, to, way, range }, node, &mut EdgePath::default())
    }

    /// Tries all ways on from a node. The steps are `walked` so far, in the order of the walk. Each hop is a step of the budget, and
    /// each edge that is copied into a path or a match.
    fn walk(&mut self, walk: EdgeWalk, node: Id, walked: &mut EdgePath) -> Result<(), SearchLimit> {
        self.budget.take(1)?;
        let (low, high) = walk.range;
        if walked.edges.len() >= low {
            self.arrive(walk, node, walked)?;
        }
        if walked.edges.len() == high {
            return Ok(());
        }
        // The node is now within the path, unless the path starts there.
        let is_inner = !walked.edges.is_empty();
        if is_inner {
            let fits = self.pattern.edges[walk.edge].inner.as_ref().is_none_or(|mask| mask[node as usize]);
            // Many nodes are compared at once.
            self.budget.work(walked.inner.len() / 16)?;
            let is_new =
                self.pattern.cycles != Cycles::None || !(self.is_in_match(node) || walked.inner.contains(&node));
            if !fits || !is_new {
                return Ok(());
            }
            walked.inner.push(node);
        }
        let network = self.network;
        for hop in network.hops(node, walk.way) {
            let fits = self.pattern.edges[walk.edge].edges.as_ref().is_none_or(|mask| mask[hop.edge as usize]);
            let is_new = self.pattern.cycles == Cycles::All || self.used[hop.edge as usize] == 0;
            if !fits || !is_new {
                continue;
            }
            self.used[hop.edge as usize] += 1;
            walked.edges.push(hop.edge);
            let done = stacker::maybe_grow(64 << 10, 1 << 20, || self.walk(walk, hop.node, walked));
            walked.edges.pop();
            self.used[hop.edge as usize] -= 1;
            done?;
        }
        if is_inner {
            walked.inner.pop();
        }
        Ok(())
    }

    /// Ends the path here, if the node can be the one at its end.
    fn arrive(&mut self, walk: EdgeWalk, node: Id, walked: &EdgePath) -> Result<(), SearchLimit> {
        let is_known = match self.nodes[walk.to] {
            Some(known) if known != node => return Ok(()),
            Some(_) => true,
            None => false,
        };
        let edge = &self.pattern.edges[walk.edge];
        let is_closed = edge.left == edge.right && !walked.edges.is_empty();
        let is_within = self.pattern.cycles == Cycles::None && (is_closed || walked.inner.contains(&node));
        if is_within || (!is_known && !self.is_allowed(walk.to, node)) {
            return Ok(());
        }
        self.budget.take(walked.edges.len())?;
        let mut path = walked.clone();
        if !walk.from_left {
            path.edges.reverse();
            path.inner.reverse();
        }
        let before = std::mem::replace(&mut self.paths[walk.edge], path);
        self.nodes[walk.to] = Some(node);
        let done = stacker::maybe_grow(64 << 10, 1 << 20, || self.next_edge(walk.place + 1));
        self.paths[walk.edge] = before;
        if !is_known {
            self.nodes[walk.to] = None;
        }
        done
    }
}

/// An edge of the pattern while it is walked.
#[derive(Clone, Copy)]
struct EdgeWalk {
    place: usize,
    edge: usize,
    from_left: bool,
    to: usize,
    way: Way,
    range: (usize, usize),
}

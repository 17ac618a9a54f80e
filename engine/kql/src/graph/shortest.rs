//! Shortest paths between the nodes of two sets, by breadth-first search from each of the first.

use super::network::{Id, Network, Way};
use super::pattern::{EdgePath, FoundMatch, MAX_STEPS, PatternEdge, SearchBudget, SearchLimit};

/// Returns for each pair of a node in `from` and one in `to` a shortest path of 1 to `max_hops` edges, or all of them. Each edge that is
/// copied into a path is a step of the budget.
pub(crate) fn shortest_paths(
    network: &Network,
    edge: &PatternEdge,
    masks: [Option<&[bool]>; 2],
    max_hops: usize,
    returns_all: bool,
    max_matches: usize,
) -> Result<Vec<FoundMatch>, SearchLimit> {
    let [from, to] = masks;
    let fits = |mask: Option<&[bool]>, node: Id| mask.is_none_or(|mask| mask[node as usize]);
    let mut found = Vec::new();
    let mut budget = SearchBudget::new(MAX_STEPS);
    let mut depths = vec![usize::MAX; network.nodes()];
    let mut seen: Vec<Id> = Vec::new();
    for start in (0..network.nodes() as Id).filter(|node| fits(from, *node)) {
        for node in seen.drain(..) {
            depths[node as usize] = usize::MAX;
        }
        depths[start as usize] = 0;
        seen.push(start);
        let mut layer = vec![start];
        let mut reached: Vec<Id> = Vec::new();
        for depth in 1..=max_hops {
            let mut next = Vec::new();
            for node in layer {
                let is_inner = depth > 1;
                if is_inner && edge.inner.as_ref().is_some_and(|mask| !mask[node as usize]) {
                    continue;
                }
                for hop in network.hops(node, edge.way) {
                    budget.work(1)?;
                    let is_allowed = edge.edges.as_ref().is_none_or(|mask| mask[hop.edge as usize]);
                    if is_allowed && depths[hop.node as usize] == usize::MAX {
                        depths[hop.node as usize] = depth;
                        next.push(hop.node);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            reached.extend(next.iter().filter(|node| fits(to, **node)));
            seen.extend_from_slice(&next);
            layer = next;
        }
        for end in reached {
            let mut paths = Vec::new();
            let mut walked = EdgePath::default();
            back(network, edge, &depths, end, &mut walked, returns_all, max_matches, &mut paths, &mut budget)?;
            for path in paths {
                if found.len() >= max_matches {
                    return Err(SearchLimit::Matches);
                }
                found.push(FoundMatch { nodes: vec![start, end], paths: vec![path] });
            }
        }
    }
    Ok(found)
}

/// Walks back to the start along falling depths.
#[expect(clippy::too_many_arguments, reason = "the state of one walk")]
fn back(
    network: &Network,
    edge: &PatternEdge,
    depths: &[usize],
    node: Id,
    walked: &mut EdgePath,
    returns_all: bool,
    max_paths: usize,
    paths: &mut Vec<EdgePath>,
    budget: &mut SearchBudget,
) -> Result<(), SearchLimit> {
    let depth = depths[node as usize];
    if depth == 0 {
        if paths.len() >= max_paths {
            return Err(SearchLimit::Matches);
        }
        budget.take(walked.edges.len())?;
        let mut path = walked.clone();
        path.edges.reverse();
        path.inner.reverse();
        paths.push(path);
        return Ok(());
    }
    let reversed: Way = edge.way.reversed();
    for hop in network.hops(node, reversed) {
        if !returns_all && !paths.is_empty() {
            break;
        }
        budget.work(1)?;
        let is_allowed = edge.edges.as_ref().is_none_or(|mask| mask[hop.edge as usize]);
        let is_before = depths[hop.node as usize].checked_add(1) == Some(depth);
        let is_inner = depths[hop.node as usize] > 0;
        let is_blocked = is_inner && edge.inner.as_ref().is_some_and(|mask| !mask[hop.node as usize]);
        if !is_allowed || !is_before || is_blocked {
            continue;
        }
        walked.edges.push(hop.edge);
        if is_inner {
            walked.inner.push(hop.node);
        }
        let done = stacker::maybe_grow(64 << 10, 1 << 20, || {
            back(network, edge, depths, hop.node, walked, returns_all, max_paths, paths, budget)
        });
        walked.edges.pop();
        if is_inner {
            walked.inner.pop();
        }
        done?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_of_line(edges: Id, max_hops: usize) -> Result<Vec<FoundMatch>, SearchLimit> {
        let ends: Vec<[Id; 2]> = (0..edges).map(|node| [node, node + 1]).collect();
        let network = Network::new(edges as usize + 1, &ends, true);
        let edge =
            PatternEdge { left: 0, right: 1, way: Way::Out, range: Some((1, max_hops)), edges: None, inner: None };
        shortest_paths(&network, &edge, [None, None], max_hops, false, 1_000_000)
    }

    #[test]
    fn each_pair_of_a_line_has_a_path() {
        let found = paths_of_line(3, 10).unwrap();
        let nodes: Vec<&[Id]> = found.iter().map(|one| one.nodes.as_slice()).collect();
        assert_eq!(nodes, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(found[2].paths, [EdgePath { edges: vec![0, 1, 2], inner: vec![1, 2] }]);
        assert_eq!(paths_of_line(3, 1).unwrap().len(), 3);
    }

    /// A million of them, of hundreds of edges each, are gigabytes.
    #[test]
    fn long_paths_between_all_nodes_are_too_many_steps() {
        assert_eq!(paths_of_line(1_400, 10_000).unwrap_err(), SearchLimit::Steps);
    }
}

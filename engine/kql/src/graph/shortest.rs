//! Shortest paths between the nodes of two sets, by breadth-first search from each of the first.

use super::network::{Id, Network, Way};
use super::pattern::{EdgePath, FoundMatch, PatternEdge, SearchLimit};

/// Returns for each pair of a node in `from` and one in `to` a shortest path of 1 to `max_hops` edges, or all of them.
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
    let mut depths = vec![usize::MAX; network.nodes()];
    for start in (0..network.nodes() as Id).filter(|node| fits(from, *node)) {
        depths.fill(usize::MAX);
        depths[start as usize] = 0;
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
                    let is_allowed = edge.edges.as_ref().is_none_or(|mask| mask[hop.edge as usize]);
                    if is_allowed && depths[hop.node as usize] == usize::MAX {
                        depths[hop.node as usize] = depth;
                        next.push(hop.node);
                    }
                }
            }
            reached.extend(next.iter().filter(|node| fits(to, **node)));
            layer = next;
        }
        for end in reached {
            let mut paths = Vec::new();
            back(network, edge, &depths, end, &mut EdgePath::default(), returns_all, max_matches, &mut paths)?;
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
) -> Result<(), SearchLimit> {
    let depth = depths[node as usize];
    if depth == 0 {
        if paths.len() >= max_paths {
            return Err(SearchLimit::Matches);
        }
        let mut path = walked.clone();
        path.edges.reverse();
        path.inner.reverse();
        paths.push(path);
        return Ok(());
    }
    let reversed: Way = edge.way.reversed();
    for hop in network.hops(node, reversed) {
        let is_allowed = edge.edges.as_ref().is_none_or(|mask| mask[hop.edge as usize]);
        let is_before = depths[hop.node as usize].checked_add(1) == Some(depth);
        let is_inner = depths[hop.node as usize] > 0;
        let is_blocked = is_inner && edge.inner.as_ref().is_some_and(|mask| !mask[hop.node as usize]);
        if !is_allowed || !is_before || is_blocked || (!returns_all && !paths.is_empty()) {
            continue;
        }
        walked.edges.push(hop.edge);
        if is_inner {
            walked.inner.push(hop.node);
        }
        let done = stacker::maybe_grow(64 << 10, 1 << 20, || {
            back(network, edge, depths, hop.node, walked, returns_all, max_paths, paths)
        });
        walked.edges.pop();
        if is_inner {
            walked.inner.pop();
        }
        done?;
    }
    Ok(())
}

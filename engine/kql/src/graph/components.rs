//! Connected components: weak ones by joining sets, strong ones by Tarjan's algorithm with a stack of its own.

use super::network::{Id, Network, Way};

/// Returns for each node the number of its component, numbered from 0 by their first nodes, where directions of edges
/// do not count.
pub(crate) fn weak_components(network: &Network) -> Vec<Id> {
    let mut parents: Vec<Id> = (0..network.nodes() as Id).collect();
    for node in 0..network.nodes() as Id {
        for hop in network.hops(node, Way::Out) {
            let (left, right) = (root(&mut parents, node), root(&mut parents, hop.node));
            // The smaller number wins, so that a set is known by its first node.
            let (low, high) = (left.min(right), left.max(right));
            parents[high as usize] = low;
        }
    }
    let roots: Vec<Id> = (0..network.nodes() as Id).map(|node| root(&mut parents, node)).collect();
    numbered(&roots)
}

fn root(parents: &mut [Id], node: Id) -> Id {
    let mut at = node;
    while parents[at as usize] != at {
        // Halves the path for the next time.
        parents[at as usize] = parents[parents[at as usize] as usize];
        at = parents[at as usize];
    }
    at
}

/// Like [`weak_components`], where each node of a component is reached from each other one along edges' directions.
pub(crate) fn strong_components(network: &Network) -> Vec<Id> {
    const UNSEEN: Id = Id::MAX;
    let count = network.nodes();
    let (mut order, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let (mut component, mut on_stack) = (vec![UNSEEN; count], vec![false; count]);
    let (mut stack, mut next, mut components): (Vec<Id>, Id, Id) = (Vec::new(), 0, 0);
    for start in 0..count as Id {
        if order[start as usize] != UNSEEN {
            continue;
        }
        // Each frame is a node and how many of its edges were followed.
        let mut frames: Vec<(Id, usize)> = vec![(start, 0)];
        while let Some((node, followed)) = frames.pop() {
            let at = node as usize;
            if followed == 0 {
                order[at] = next;
                low[at] = next;
                next += 1;
                stack.push(node);
                on_stack[at] = true;
            }
            match network.hops(node, Way::Out).nth(followed) {
                Some(hop) => {
                    frames.push((node, followed + 1));
                    let to = hop.node as usize;
                    if order[to] == UNSEEN {
                        frames.push((hop.node, 0));
                    } else if on_stack[to] {
                        low[at] = low[at].min(order[to]);
                    }
                }
                None => {
                    if low[at] == order[at] {
                        while let Some(member) = stack.pop() {
                            on_stack[member as usize] = false;
                            component[member as usize] = components;
                            if member == node {
                                break;
                            }
                        }
                        components += 1;
                    }
                    if let Some((parent, _)) = frames.last() {
                        low[*parent as usize] = low[*parent as usize].min(low[at]);
                    }
                }
            }
        }
    }
    numbered(&component)
}

/// Numbers the components by their first nodes.
fn numbered(components: &[Id]) -> Vec<Id> {
    let mut numbers = vec![Id::MAX; components.len()];
    let mut next = 0;
    let number = |component: &Id| {
        let number = &mut numbers[*component as usize];
        if *number == Id::MAX {
            *number = next;
            next += 1;
        }
        *number
    };
    components.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_by_their_first_nodes() {
        // 0 -> 1 -> 2 -> 0, 2 -> 3, 4 alone, 5 <-> 6.
        let ends = [[0, 1], [1, 2], [2, 0], [2, 3], [5, 6], [6, 5]];
        let network = Network::new(7, &ends, true);
        assert_eq!(weak_components(&network), [0, 0, 0, 0, 1, 2, 2]);
        assert_eq!(strong_components(&network), [0, 0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let ends: Vec<[Id; 2]> = (0..100_000).map(|node| [node, node + 1]).collect();
        let network = Network::new(100_001, &ends, true);
        assert_eq!(strong_components(&network).last(), Some(&100_000));
        assert!(weak_components(&network).iter().all(|component| *component == 0));
    }
}

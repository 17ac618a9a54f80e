//! The S2 cells of one level that a shape touches: from the faces of the cube down, each cell with the edges near it.

use super::cells::S2Cell;
use super::sphere::{Vector, angle_to_edge, cross};

/// The most cells of a covering.
const MAX_CELLS: usize = 65_536;

/// How near, in radians, an edge is to a cell that it touches.
const TOUCHING: f64 = 1e-14;

/// Returns the cells that edges touch, or that lie within them where `contains` says so; all those within `radius`
/// radians, too. `None`: there would be too many.
pub(super) fn covering(
    edges: &[[Vector; 2]],
    contains: &dyn Fn(Vector) -> bool,
    level: u32,
    radius: f64,
) -> Option<Vec<S2Cell>> {
    let mut found = Vec::new();
    for face in S2Cell::faces() {
        cover(face, edges, contains, level, radius, &mut found)?;
    }
    Some(found)
}

fn cover(
    cell: S2Cell,
    edges: &[[Vector; 2]],
    contains: &dyn Fn(Vector) -> bool,
    level: u32,
    radius: f64,
    found: &mut Vec<S2Cell>,
) -> Option<()> {
    let near: Vec<[Vector; 2]> = edges.iter().filter(|edge| is_near(cell, **edge, radius)).copied().collect();
    if near.is_empty() {
        if contains(cell.center()) {
            let count = 1_usize.checked_shl(2 * (level - cell.level()))?;
            if found.len().checked_add(count)? > MAX_CELLS {
                return None;
            }
            found.extend(cell.at_depth(level));
        }
        return Some(());
    }
    if cell.level() == level {
        found.push(cell);
        return (found.len() <= MAX_CELLS).then_some(());
    }
    cell.children().into_iter().try_for_each(|child| cover(child, &near, contains, level, radius, found))
}

/// Whether an edge touches a cell or comes as near as the radius.
fn is_near(cell: S2Cell, edge: [Vector; 2], radius: f64) -> bool {
    if edge.iter().any(|end| cell.contains(*end)) {
        return true;
    }
    let [a, b, c, d] = cell.corners();
    let sides = [[a, b], [b, c], [c, d], [d, a]];
    if sides.iter().any(|side| cross(*side, edge)) {
        return true;
    }
    let radius = radius.max(TOUCHING);
    sides.iter().any(|side| edge.iter().any(|end| angle_to_edge(*end, *side) <= radius))
        || [a, b, c, d].iter().any(|corner| angle_to_edge(*corner, edge) <= radius)
}

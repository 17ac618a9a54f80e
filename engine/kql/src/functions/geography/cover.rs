//! The S2 cells of one level that a shape touches: from the faces of the cube down, each cell with the edges near it.

use super::cells::S2Cell;
use super::sphere::{Vector, angle_to_edge, cross};
use crate::interrupt::is_interrupted;

/// The most cells of a covering.
const MAX_CELLS: usize = 65_536;

/// How near, in radians, an edge is to a cell that it touches.
const TOUCHING: f64 = 1e-14;

/// A cell that is covered: as a whole, or as far as the edges near it say.
enum CoveredCell {
    Inside(S2Cell),
    Near(S2Cell, Vec<[Vector; 2]>),
}

/// Returns the cells that edges touch, or that lie within them where `contains` says so; all those within `radius`
/// radians, too. `None`: there would be too many, which is known as soon as a large cell is covered as a whole, or the query is to
/// end.
pub(super) fn covering(
    edges: &[[Vector; 2]],
    contains: &dyn Fn(Vector) -> bool,
    level: u32,
    radius: f64,
) -> Option<Vec<S2Cell>> {
    let covered = |cell: S2Cell, edges: &[[Vector; 2]]| {
        let near: Vec<[Vector; 2]> = edges.iter().filter(|edge| is_near(cell, **edge, radius)).copied().collect();
        match near.is_empty() {
            false => Some(CoveredCell::Near(cell, near)),
            true => contains(cell.center()).then_some(CoveredCell::Inside(cell)),
        }
    };
    let mut cells: Vec<CoveredCell> = S2Cell::faces().filter_map(|face| covered(face, edges)).collect();
    check_count(&cells, level)?;
    for _ in 0..level {
        let mut finer = Vec::with_capacity(cells.len());
        for cell in cells {
            if is_interrupted() {
                return None;
            }
            match cell {
                CoveredCell::Inside(cell) => finer.push(CoveredCell::Inside(cell)),
                CoveredCell::Near(cell, near) => {
                    finer.extend(cell.children().into_iter().filter_map(|child| covered(child, &near)));
                }
            }
        }
        check_count(&finer, level)?;
        cells = finer;
    }
    let mut found = Vec::new();
    for cell in cells {
        match cell {
            CoveredCell::Inside(cell) => found.extend(cell.at_depth(level)),
            CoveredCell::Near(cell, _) => found.push(cell),
        }
    }
    Some(found)
}

/// Each cell near an edge has a child near it.
fn check_count(cells: &[CoveredCell], level: u32) -> Option<()> {
    let count = |cell: &CoveredCell| match cell {
        CoveredCell::Inside(cell) => 1_usize.checked_shl(2 * (level - cell.level())),
        CoveredCell::Near(..) => Some(1),
    };
    let total = cells.iter().map(count).try_fold(0_usize, |total, count| total.checked_add(count?))?;
    (total <= MAX_CELLS).then_some(())
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

//! Points that are one when they are as near as [`TOUCHING`], found by where they are.

use std::collections::HashMap;

use super::crossings::TOUCHING;
use super::sphere::Vector;

/// The length of a cell's side: several times as long as what is looked for around a point.
const CELL: f64 = 8.0 * TOUCHING;

/// The cell that a point is in.
type CellKey = [i64; 3];

/// The points, each once, in the order in which they came.
#[derive(Default)]
pub(super) struct Nodes {
    points: Vec<Vector>,
    by_cell: HashMap<CellKey, Vec<usize>>,
}

impl Nodes {
    /// Returns the number of a point: that of the first one that it touches, or a new one.
    pub(super) fn number_of(&mut self, point: Vector) -> usize {
        let (low, high) = (cell_beside(point, -2.0 * TOUCHING), cell_beside(point, 2.0 * TOUCHING));
        let mut near: Option<usize> = None;
        for x in low[0]..=high[0] {
            for y in low[1]..=high[1] {
                for z in low[2]..=high[2] {
                    let there = self.by_cell.get(&[x, y, z]).into_iter().flatten().copied();
                    let touching = there.filter(|node| self.points[*node].angle(point) < TOUCHING);
                    near = near.into_iter().chain(touching).min();
                }
            }
        }
        near.unwrap_or_else(|| {
            self.points.push(point);
            let node = self.points.len() - 1;
            self.by_cell.entry(cell_beside(point, 0.0)).or_default().push(node);
            node
        })
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    pub(super) fn into_points(self) -> Vec<Vector> {
        self.points
    }
}

/// Returns the cell of a point that is moved along all three axes.
fn cell_beside(point: Vector, by: f64) -> CellKey {
    // Coordinates are within 1 of zero, so these are whole numbers of twelve digits.
    point.coordinates().map(|coordinate| ((coordinate + by) / CELL).floor() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_touch_are_one() {
        let mut nodes = Nodes::default();
        let point = |longitude: f64, latitude: f64| Vector::from_degrees(longitude, latitude).unwrap();
        // A hundred times less, and a hundred times more, than what touches.
        for (place, (longitude, latitude)) in [(0.0, 0.0), (179.0, 89.9), (-73.1, 41.7)].into_iter().enumerate() {
            let first = nodes.number_of(point(longitude, latitude));
            assert_eq!(first, 2 * place);
            assert_eq!(nodes.number_of(point(longitude + 5e-12, latitude - 5e-12)), first);
            assert_eq!(nodes.number_of(point(longitude, latitude - 5e-8)), first + 1);
        }
        assert_eq!(nodes.len(), 6);
    }
}

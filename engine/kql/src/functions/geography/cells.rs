//! S2 cells: each of a cube's six faces is divided into four cells, each of these into four, to level 30, in the order of
//! a Hilbert curve. A cell's number has its face in the top three bits, then two bits for each level, then a 1.

use super::sphere::Vector;

/// The deepest level.
pub(super) const MAX_LEVEL: u32 = 30;
const SIZE: i64 = 1 << MAX_LEVEL;

/// The corners of a square in the order of the curve, as two bits (i, j), for each of its four orientations.
const CORNERS: [[u64; 4]; 4] = [[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]];
/// How the orientation changes within each of the four.
const TURNS: [usize; 4] = [1, 0, 0, 3];

/// A cell. Cells of a level are in the order of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct S2Cell(u64);

impl S2Cell {
    /// The cells of level 0.
    pub(super) fn faces() -> impl Iterator<Item = Self> {
        (0..6_u64).map(|face| Self((face << 61) | (1 << 60)))
    }

    /// Returns the cell of a level around a point.
    pub(super) fn around(point: Vector, level: u32) -> Self {
        let (face, [u, v]) = on_face(point);
        Self::of_square(face, [u, v].map(|part| square_of(from_plane(part)))).at_level(level)
    }

    /// Returns a cell of the deepest level.
    fn of_square(face: usize, [i, j]: [i64; 2]) -> Self {
        let (mut bits, mut orientation) = (face as u64, face & 1);
        for step in (0..MAX_LEVEL).rev() {
            let corner = (((i >> step) & 1) << 1 | ((j >> step) & 1)) as u64;
            let place = CORNERS[orientation].iter().position(|known| *known == corner).unwrap_or_default();
            bits = bits << 2 | place as u64;
            orientation ^= TURNS[place];
        }
        Self(bits << 1 | 1)
    }

    /// Reads the hexadecimal digits, from which trailing zeros are left out.
    pub(super) fn parse(token: &str) -> Option<Self> {
        let is_token = (1..=16).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u64::from_str_radix(token, 16).ok().filter(|_| is_token)?;
        let bits = bits << (4 * (16 - token.len()));
        let is_cell = bits >> 61 < 6 && (bits & bits.wrapping_neg()) & 0x1555_5555_5555_5555 != 0;
        is_cell.then_some(Self(bits))
    }

    pub(super) fn token(self) -> String {
        format!("{:016x}", self.0).trim_end_matches('0').to_owned()
    }

    pub(super) fn level(self) -> u32 {
        MAX_LEVEL - self.0.trailing_zeros() / 2
    }

    fn face(self) -> usize {
        (self.0 >> 61) as usize
    }

    /// Returns the cell of that level which this one is in; a cell above that level stays.
    fn at_level(self, level: u32) -> Self {
        let last = 1_u64 << (2 * (MAX_LEVEL - level));
        Self((self.0 & last.wrapping_neg()) | last)
    }

    /// Returns the four cells of the next level.
    pub(super) fn children(self) -> [Self; 4] {
        let last = self.0 & self.0.wrapping_neg();
        let step = last >> 2;
        [0, 1, 2, 3].map(|place| Self(self.0 - last + step + 2 * place * step))
    }

    /// Returns all cells of a level in this one.
    pub(super) fn at_depth(self, level: u32) -> impl Iterator<Item = Self> {
        let last = self.0 & self.0.wrapping_neg();
        let step = 1_u64 << (2 * (MAX_LEVEL - level));
        let first = self.0 - last + step;
        (0..last / step).map(move |place| Self(first + 2 * place * step))
    }

    /// Returns the lowest corner in squares of the deepest level, and how many of them the side has.
    fn square(self) -> ([i64; 2], i64) {
        let (mut i, mut j, mut orientation) = (0_u64, 0_u64, self.face() & 1);
        let level = self.level();
        for step in 0..level {
            let place = (self.0 >> (59 - 2 * step) & 3) as usize;
            let corner = CORNERS[orientation][place];
            (i, j) = (i << 1 | corner >> 1, j << 1 | corner & 1);
            orientation ^= TURNS[place];
        }
        let size = 1_i64 << (MAX_LEVEL - level);
        ([i as i64 * size, j as i64 * size], size)
    }

    /// Returns the bounds of both coordinates on the face's plane.
    pub(super) fn bounds(self) -> [[f64; 2]; 2] {
        let (low, size) = self.square();
        low.map(|low| [low, low + size].map(|at| to_plane(at as f64 / SIZE as f64)))
    }

    pub(super) fn center(self) -> Vector {
        let (low, size) = self.square();
        let at = low.map(|low| to_plane((2 * low + size) as f64 / (2 * SIZE) as f64));
        from_face(self.face(), at)
    }

    /// Returns the corners counterclockwise.
    pub(super) fn corners(self) -> [Vector; 4] {
        let [[left, right], [bottom, top]] = self.bounds();
        [[left, bottom], [right, bottom], [right, top], [left, top]].map(|at| from_face(self.face(), at))
    }

    pub(super) fn contains(self, point: Vector) -> bool {
        let (face, at) = on_face(point);
        let within = |[low, high]: [f64; 2], part: f64| low <= part && part <= high;
        face == self.face() && self.bounds().iter().zip(at).all(|(bounds, part)| within(*bounds, part))
    }

    /// Returns the cells of the same level that share a side or a corner.
    pub(super) fn neighbors(self) -> Vec<Self> {
        let ([i, j], size) = self.square();
        // In the order of the S2 library.
        let around = [(-1, -1), (1, -1), (0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, 1)];
        let mut cells: Vec<Self> = Vec::with_capacity(around.len());
        for (right, up) in around {
            let beside = [i + right * size, j + up * size];
            let is_on_face = beside.iter().all(|part| (0..SIZE).contains(part));
            let cell = if is_on_face { Self::of_square(self.face(), beside) } else { self.beyond_face(beside) };
            let cell = cell.at_level(self.level());
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }

    /// Returns the cell of the deepest level just beyond an edge of the face.
    fn beyond_face(self, beside: [i64; 2]) -> Self {
        let size = self.square().1;
        let at = beside.map(|part| {
            // The square of the neighbour that is next to the edge, so that only one step leads over it.
            let part = if part < 0 { part + size - 1 } else { part };
            (2 * (part.clamp(-1, SIZE) - SIZE / 2) + 1) as f64 / SIZE as f64
        });
        let (face, plane) = on_face(from_face(self.face(), at));
        Self::of_square(face, plane.map(|part| square_of(0.5 * (part + 1.0))))
    }
}

/// Returns the square that a part of the side, from 0 to 1, lies in.
fn square_of(part: f64) -> i64 {
    ((part * SIZE as f64).floor() as i64).clamp(0, SIZE - 1)
}

/// Cells are made nearly equal in size by a quadratic function.
fn to_plane(part: f64) -> f64 {
    if part >= 0.5 { (4.0 * part * part - 1.0) / 3.0 } else { (1.0 - 4.0 * (1.0 - part) * (1.0 - part)) / 3.0 }
}

fn from_plane(part: f64) -> f64 {
    if part >= 0.0 { 0.5 * (1.0 + 3.0 * part).sqrt() } else { 1.0 - 0.5 * (1.0 - 3.0 * part).sqrt() }
}

/// Returns the face that a point is on, and where on its plane.
fn on_face(point: Vector) -> (usize, [f64; 2]) {
    let [x, y, z] = point.parts();
    let sizes = [x.abs(), y.abs(), z.abs()];
    let axis = if sizes[0] > sizes[1] {
        if sizes[0] > sizes[2] { 0 } else { 2 }
    } else if sizes[1] > sizes[2] {
        1
    } else {
        2
    };
    let face = if [x, y, z][axis] < 0.0 { axis + 3 } else { axis };
    let at = match face {
        0 => [y / x, z / x],
        1 => [-x / y, z / y],
        2 => [-x / z, -y / z],
        3 => [z / x, y / x],
        4 => [z / y, -x / y],
        _ => [-y / z, -x / z],
    };
    (face, at)
}

fn from_face(face: usize, [u, v]: [f64; 2]) -> Vector {
    Vector::towards(match face {
        0 => [1.0, u, v],
        1 => [-u, 1.0, v],
        2 => [-u, -v, 1.0],
        3 => [-1.0, -v, -u],
        4 => [v, -1.0, -u],
        _ => [v, u, -1.0],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip_at_all_levels() {
        for (longitude, latitude) in [(0.0, 0.0), (-74.0, 40.7), (179.9, -0.1), (12.5, 89.9), (-100.0, -60.0)] {
            let point = Vector::from_degrees(longitude, latitude).unwrap();
            for level in 0..=MAX_LEVEL {
                let cell = S2Cell::around(point, level);
                assert_eq!(cell.level(), level);
                assert_eq!(S2Cell::parse(&cell.token()), Some(cell));
                assert!(cell.contains(point) && cell.contains(cell.center()));
                assert_eq!(S2Cell::around(cell.center(), level), cell);
                assert!(!cell.neighbors().contains(&cell));
                for neighbor in cell.neighbors() {
                    assert!(neighbor.neighbors().contains(&cell), "{level} {}", cell.token());
                }
                if level < MAX_LEVEL {
                    let children = cell.children();
                    assert!(children.contains(&S2Cell::around(point, level + 1)));
                    assert_eq!(cell.at_depth(level + 1).collect::<Vec<_>>(), children);
                }
            }
        }
        for token in ["", "a", "x", "0", "ffffffffffffffff1", "3a"] {
            assert_eq!(S2Cell::parse(token), None, "{token}");
        }
    }
}

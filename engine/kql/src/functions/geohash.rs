//! Geohashes: longitude and latitude are halved in turn, five halvings a letter. What is not a geohash gives null.
//! Kusto's have up to 18 letters; the `geohash` crate reads and writes at most 12.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::geography::set_order::{BUCKETS_FOR_EIGHT, in_set_order};
use super::geography::{PointArguments, point, polygon};
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
const BITS_OF_LETTER: u32 = 5;
const MAX_LETTERS: usize = 18;
const DEFAULT_LETTERS: i64 = 5;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("geo_point_to_geohash", "nn?n", STRING, to_geohash),
    entry("geo_geohash_to_central_point", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let [west, south, east, north] = cell.degrees();
            point((west + east) / 2.0, (south + north) / 2.0)
        })
    }),
    entry("geo_geohash_to_polygon", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let [west, south, east, north] = cell.degrees();
            polygon([[west, south], [east, south], [east, north], [west, north]])
        })
    }),
    entry("geo_geohash_neighbors", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let neighbors = NEIGHBORS.iter().filter_map(|[east, north]| cell.beside(*east, *north));
            let names = neighbors.map(GeohashCell::encode);
            in_set_order(names, BUCKETS_FOR_EIGHT).into_iter().map(Value::String).collect()
        })
    }),
];

/// From the northwest on, clockwise.
const NEIGHBORS: [[i64; 2]; 8] = [[-1, 1], [0, 1], [1, 1], [1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0]];

/// A cell of the grid, by its column from the west and its row from the south.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GeohashCell {
    letters: usize,
    column: u64,
    row: u64,
}

/// Returns how many bits the column and the row of a cell have.
fn bits(letters: usize) -> (u32, u32) {
    let all = BITS_OF_LETTER * u32::try_from(letters).unwrap_or(0);
    (all.div_ceil(2), all / 2)
}

/// Returns which of the equal parts of a range a value is in.
fn part(value: f64, mut low: f64, mut high: f64, bits: u32) -> u64 {
    let mut number = 0;
    for _ in 0..bits {
        let middle = (low + high) / 2.0;
        let is_upper = value >= middle;
        number = number << 1 | u64::from(is_upper);
        if is_upper { low = middle } else { high = middle }
    }
    number
}

impl GeohashCell {
    fn containing(longitude: f64, latitude: f64, letters: usize) -> Self {
        let (columns, rows) = bits(letters);
        Self { letters, column: part(longitude, -180.0, 180.0, columns), row: part(latitude, -90.0, 90.0, rows) }
    }

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_LETTERS {
            return None;
        }
        let (mut column, mut row, mut is_column) = (0_u64, 0_u64, true);
        for letter in text.bytes() {
            let number = LETTERS.iter().position(|known| *known == letter.to_ascii_lowercase())?;
            for bit in (0..BITS_OF_LETTER).rev() {
                let bit = u64::from(number >> bit & 1 == 1);
                let side = if is_column { &mut column } else { &mut row };
                *side = *side << 1 | bit;
                is_column = !is_column;
            }
        }
        Some(Self { letters: text.len(), column, row })
    }

    fn encode(self) -> String {
        let (mut columns, mut rows) = bits(self.letters);
        let mut text = String::with_capacity(self.letters);
        let mut is_column = true;
        for _ in 0..self.letters {
            let mut number = 0;
            for _ in 0..BITS_OF_LETTER {
                let (side, left) = if is_column { (self.column, &mut columns) } else { (self.row, &mut rows) };
                *left = left.saturating_sub(1);
                number = number << 1 | usize::from(side >> *left & 1 == 1);
                is_column = !is_column;
            }
            text.extend(LETTERS.get(number).map(|letter| char::from(*letter)));
        }
        text
    }

    /// Returns the west, south, east and north edges.
    fn degrees(self) -> [f64; 4] {
        let (columns, rows) = bits(self.letters);
        // A float holds both counts exactly.
        let (width, height) = (360.0 / (1_u64 << columns) as f64, 180.0 / (1_u64 << rows) as f64);
        let at = |number: u64, size: f64, origin: f64| origin + number as f64 * size;
        [
            at(self.column, width, -180.0),
            at(self.row, height, -90.0),
            at(self.column + 1, width, -180.0),
            at(self.row + 1, height, -90.0),
        ]
    }

    /// Returns the cell at a distance to the east and to the north, around the Earth but not over its poles.
    fn beside(self, east: i64, north: i64) -> Option<Self> {
        let (columns, rows) = bits(self.letters);
        let column = self.column.wrapping_add_signed(east) & ((1 << columns) - 1);
        let row = self.row.checked_add_signed(north).filter(|row| *row < 1 << rows)?;
        Some(Self { column, row, ..self })
    }
}

fn to_geohash(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let points = PointArguments::read(arguments, 0)?;
    let letters = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let letters = letters.as_ref().map_or(Some(DEFAULT_LETTERS), |letters| letters.get(row));
        let letters = letters.and_then(|letters| usize::try_from(letters).ok());
        let letters = letters.filter(|letters| (1..=MAX_LETTERS).contains(letters));
        if let Some(((longitude, latitude), letters)) = points.degrees(row).zip(letters) {
            text.push_str(&GeohashCell::containing(longitude, latitude, letters).encode());
        }
        Ok(())
    })
}

fn map_cells(arguments: &FunctionArguments, value: fn(GeohashCell) -> Value) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| Ok(GeohashCell::parse(strings.get(row)).map_or(Value::Null, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_round_trip() {
        for (longitude, latitude, letters, text) in [
            (139.806115, 35.554128, 12, "xn76m27ty9g4"),
            (-80.195829, 25.802215, 8, "dhwfz15h"),
            (180.0, 90.0, 1, "z"),
            (-180.0, -90.0, 18, "000000000000000000"),
        ] {
            let cell = GeohashCell::containing(longitude, latitude, letters);
            assert_eq!(cell.encode(), text);
            assert_eq!(GeohashCell::parse(text), Some(cell));
        }
        assert_eq!(GeohashCell::parse("a"), None);
        assert_eq!(GeohashCell::parse(""), None);
        assert_eq!(GeohashCell::parse("0000000000000000000"), None);
    }

    #[test]
    fn neighbors_go_around_the_earth_and_end_at_the_poles() {
        let cell = GeohashCell::parse("z").unwrap();
        let names: Vec<_> = NEIGHBORS.iter().filter_map(|[east, north]| cell.beside(*east, *north)).collect();
        let names: Vec<_> = names.into_iter().map(GeohashCell::encode).collect();
        assert_eq!(names, ["b", "8", "x", "w", "y"]);
    }
}

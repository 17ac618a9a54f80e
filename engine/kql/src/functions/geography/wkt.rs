//! Shapes in well-known text, read as GeoJSON: `POINT (1 2)`, `POLYGON ((0 0, 2 0, 2 2, 0 0))`, collections of them.
//! Only two dimensions are read. Nesting is bounded; the `wkt` crate recurses on every `GEOMETRYCOLLECTION (`, so a
//! hundred thousand of them would overflow its stack.

use serde_json::{Value, json};

/// The deepest nesting of collections.
const MAX_DEPTH: usize = 16;

/// The names of shapes, and how many parentheses enclose their positions.
const SHAPES: &[(&str, &str, usize)] = &[
    ("POINT", "Point", 0),
    ("LINESTRING", "LineString", 1),
    ("POLYGON", "Polygon", 2),
    ("MULTIPOINT", "MultiPoint", 1),
    ("MULTILINESTRING", "MultiLineString", 2),
    ("MULTIPOLYGON", "MultiPolygon", 3),
];

/// Reads a shape; `None` if the text is not one.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = WktReader { rest: text.trim_start() };
    let shape = reader.shape(MAX_DEPTH)?;
    reader.rest.is_empty().then_some(shape)
}

/// The rest of a text, without leading blanks.
struct WktReader<'a> {
    rest: &'a str,
}

impl<'a> WktReader<'a> {
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn is_next(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, mark: char) -> Option<()> {
        self.is_next(mark).then_some(())
    }

    fn shape(&mut self, depth: usize) -> Option<Value> {
        let word = self.word();
        if word.eq_ignore_ascii_case("GEOMETRYCOLLECTION") {
            let depth = depth.checked_sub(1)?;
            let shapes = self.list(|reader| reader.shape(depth))?;
            return Some(json!({"type": "GeometryCollection", "geometries": shapes}));
        }
        let (_, name, parentheses) = SHAPES.iter().find(|(known, _, _)| word.eq_ignore_ascii_case(known))?;
        let coordinates = match *name {
            "Point" => {
                self.expect('(')?;
                let position = self.position()?;
                self.expect(')')?;
                position
            }
            "MultiPoint" => Value::Array(self.list(Self::point_of_several)?),
            _ => self.positions(*parentheses)?,
        };
        Some(json!({"type": name, "coordinates": coordinates}))
    }

    fn positions(&mut self, parentheses: usize) -> Option<Value> {
        match parentheses {
            0 => self.position(),
            _ => self.list(|reader| reader.positions(parentheses - 1)).map(Value::Array),
        }
    }

    /// Reads `1 2` or `(1 2)`.
    fn point_of_several(&mut self) -> Option<Value> {
        let is_enclosed = self.is_next('(');
        let position = self.position()?;
        if is_enclosed {
            self.expect(')')?;
        }
        Some(position)
    }

    /// Reads a list in parentheses, separated by commas.
    fn list(&mut self, item: impl Fn(&mut Self) -> Option<Value>) -> Option<Vec<Value>> {
        self.expect('(')?;
        let mut items = vec![item(self)?];
        while self.is_next(',') {
            items.push(item(self)?);
        }
        self.expect(')')?;
        Some(items)
    }

    fn position(&mut self) -> Option<Value> {
        Some(json!([self.number()?, self.number()?]))
    }

    fn number(&mut self) -> Option<f64> {
        let is_part = |char: char| char.is_ascii_digit() || matches!(char, '+' | '-' | '.' | 'e' | 'E');
        let end = self.rest.find(|char: char| !is_part(char)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        number.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_parsed() {
        for (text, expected) in [
            ("POINT (1 2)", json!({"type": "Point", "coordinates": [1.0, 2.0]})),
            (" linestring(1 2,-3.5 4e1) ", json!({"type": "LineString", "coordinates": [[1.0, 2.0], [-3.5, 40.0]]})),
            ("MULTIPOINT ((1 1), 2 2)", json!({"type": "MultiPoint", "coordinates": [[1.0, 1.0], [2.0, 2.0]]})),
            (
                "POLYGON ((0 0, 2 0, 2 2, 0 0))",
                json!({"type": "Polygon", "coordinates": [[[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 0.0]]]}),
            ),
            (
                "GEOMETRYCOLLECTION (POINT (1 1), GEOMETRYCOLLECTION (POINT (2 2)))",
                json!({"type": "GeometryCollection", "geometries": [
                    {"type": "Point", "coordinates": [1.0, 1.0]},
                    {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [2.0, 2.0]}]},
                ]}),
            ),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_shape_is_none() {
        let nested = "GEOMETRYCOLLECTION (".repeat(100_000);
        for text in
            ["", "LINESTRING", "POINT (1)", "POINT (1 2", "POINT (1 2) x", "POINT Z (1 2 3)", "CIRCLE (1 2)", &nested]
        {
            assert_eq!(read(text), None);
        }
    }
}

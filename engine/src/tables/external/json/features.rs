//! The features of GeoJSON as rows: a feature's properties, its members beside them, and its geometry as text.

use serde_json::{Map, Value};

use super::values::without_special_numbers;

/// The column of a feature's geometry.
pub(super) const GEOMETRY: &str = "geometry";
/// What stands before the key of a feature's member where a property has the same name.
const OF_FEATURE: &str = "feature/";

/// A feature without its type.
pub(super) struct Feature {
    /// Its id and other members, its geometry as text behind them.
    pub own: Map<String, Value>,
    pub properties: Map<String, Value>,
}

impl Feature {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        let mut feature = Self { own: Map::new(), properties: Map::new() };
        let mut geometry = Value::Null;
        for (key, value) in members {
            match (key.as_str(), value) {
                ("type", _) | ("properties", Value::Null) | (GEOMETRY, Value::Null) => {}
                ("properties", Value::Object(members)) => feature.properties = members,
                (GEOMETRY, value) => geometry = Value::String(without_special_numbers(value).to_string()),
                (_, value) => {
                    feature.own.insert(key, value);
                }
            }
        }
        feature.own.insert(GEOMETRY.to_owned(), geometry);
        feature
    }

    /// Returns the feature as one object. A member goes to the key of its own that `is_column` knows, if there is one.
    pub(super) fn into_row(self, is_column: impl Fn(&str) -> bool) -> Map<String, Value> {
        let own = self.own.into_iter().map(|(key, value)| {
            let apart = key_apart(&key);
            (if is_column(&apart) { apart } else { key }, value)
        });
        own.collect::<Map<_, _>>().into_iter().chain(self.properties).collect()
    }
}

/// Returns the key of a feature's member in rows where properties have its name.
pub(super) fn key_apart(key: &str) -> String {
    format!("{OF_FEATURE}{key}")
}

/// Returns the name of a column of such a member.
pub(super) fn name_apart(key: &str) -> String {
    format!("feature_{key}")
}

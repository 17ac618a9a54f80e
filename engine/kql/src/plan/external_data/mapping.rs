//! The `ingestionMapping` of `externaldata`: where in a record or a line each declared column is. A column that it does
//! not name is null.

use serde_json::Value;

use crate::ast::Property;
use crate::bind::{Result, invalid, not_supported};
use crate::functions::path_steps;
use crate::span::Span;

/// A step of a path into a record.
pub(super) enum PathStep {
    /// To the member of this name.
    Member(String),
    /// To the element at this index.
    Element(usize),
}

/// Where the values of a column come from.
pub(super) enum MappingSource {
    /// A path into each record; in Parquet its first step is a column.
    Path(Vec<PathStep>),
    /// The field of each line at this index.
    Ordinal(usize),
    /// The same text for every row.
    Constant(String),
}

/// The sources of columns by their names.
pub(super) struct IngestionMapping {
    columns: Vec<(String, MappingSource)>,
}

impl IngestionMapping {
    /// Reads a mapping as Kusto has it: a JSON array with an object for each column.
    pub(super) fn parse(text: &str, property: &Property) -> Result<Self> {
        let Ok(Value::Array(elements)) = serde_json::from_str::<Value>(text) else {
            let example = r#"[{"Column": "a", "Properties": {"Path": "$.a"}}]"#;
            return invalid(property.span, format!("expected a mapping, as in `{example}`"));
        };
        let mut columns = Vec::with_capacity(elements.len());
        for element in &elements {
            let name = member(element, "Column").or_else(|| member(element, "Name")).and_then(Value::as_str);
            let Some(name) = name else {
                return invalid(property.span, "each part of a mapping names its `Column`");
            };
            let properties = member(element, "Properties").unwrap_or(element);
            columns.push((name.to_owned(), source(properties, property.span)?));
        }
        Ok(Self { columns })
    }

    /// Returns the source of a column.
    pub(super) fn source_of(&self, column: &str) -> Option<&MappingSource> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, source)| source)
    }
}

/// Returns a member of an object that is not null, whatever the case of its name.
fn member<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    let mut members = object.as_object()?.iter();
    members.find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null()).map(|(_, value)| value)
}

fn source(properties: &Value, span: Span) -> Result<MappingSource> {
    if member(properties, "Transform").is_some() {
        return not_supported(span, "the `Transform` of a mapping");
    }
    if let Some(constant) = member(properties, "ConstValue").and_then(Value::as_str) {
        return Ok(MappingSource::Constant(constant.to_owned()));
    }
    if let Some(ordinal) = member(properties, "Ordinal") {
        let number = match ordinal {
            Value::String(digits) => digits.trim().parse().ok(),
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        return match number {
            Some(number) => Ok(MappingSource::Ordinal(number)),
            None => invalid(span, "an `Ordinal` is a number from 0 on"),
        };
    }
    if let Some(field) = member(properties, "Field").and_then(Value::as_str) {
        return Ok(MappingSource::Path(vec![PathStep::Member(field.to_owned())]));
    }
    match member(properties, "Path").and_then(Value::as_str) {
        Some(path) if path.starts_with('$') => path_of(path, span),
        Some(constant) => Ok(MappingSource::Constant(constant.to_owned())),
        None => invalid(span, "a mapping says of each column its `Path`, `Ordinal`, `Field` or `ConstValue`"),
    }
}

fn path_of(path: &str, span: Span) -> Result<MappingSource> {
    match path_steps(&path.replace(".[", "[")) {
        Some(steps) if !path.contains(['*', '?']) && steps.iter().all(|step| !step.is_empty()) => {
            let step = |step: String| step.parse().map_or(PathStep::Member(step), PathStep::Element);
            Ok(MappingSource::Path(steps.into_iter().map(step).collect()))
        }
        _ => not_supported(span, format_args!("the path `{path}` of a mapping")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(properties: &Value) -> String {
        match source(properties, Span::default()) {
            Ok(MappingSource::Path(steps)) => {
                let steps = steps.iter().map(|step| match step {
                    PathStep::Member(name) => format!(".{name}"),
                    PathStep::Element(index) => format!("[{index}]"),
                });
                steps.collect()
            }
            Ok(MappingSource::Ordinal(number)) => format!("#{number}"),
            Ok(MappingSource::Constant(text)) => format!("={text}"),
            Err(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn a_mapping_says_where_a_column_is() {
        for (properties, expected) in [
            (r#"{"Path": "$.data.tenant"}"#, ".data.tenant"),
            (r#"{"path": "$['a b'].c[0]"}"#, ".a b.c[0]"),
            (r#"{"Path": "$.['a b']"}"#, ".a b"),
            (r#"{"Path": "$.@timestamp"}"#, ".@timestamp"),
            (r#"{"Path": "$"}"#, ""),
            (r#"{"Path": "constant"}"#, "=constant"),
            (r#"{"ConstValue": "5", "Path": null}"#, "=5"),
            (r#"{"Ordinal": "3"}"#, "#3"),
            (r#"{"ordinal": 0}"#, "#0"),
            (r#"{"Field": "f"}"#, ".f"),
            (r#"{"Path": "$.a[*].b"}"#, "refused"),
            (r#"{"Path": "$.a[?(@.b == 1)]"}"#, "refused"),
            (r#"{"Path": "$..b"}"#, "refused"),
            (r#"{"Ordinal": -1}"#, "refused"),
            (r#"{"Path": "$.at", "Transform": "DateTimeFromUnixSeconds"}"#, "refused"),
            ("{}", "refused"),
        ] {
            assert_eq!(shown(&serde_json::from_str(properties).unwrap()), expected, "{properties}");
        }
    }
}

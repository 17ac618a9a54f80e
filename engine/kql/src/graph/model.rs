//! Definitions of graph models: the JSON of `.create-or-alter graph_model`, and the query that makes a graph of one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::parse;
use crate::types::KqlType;

/// The most steps of a definition.
const MAX_STEPS: usize = 100;

/// How a graph is made of tables.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GraphModelDefinition {
    #[serde(rename = "Schema", default)]
    schema: ModelSchema,
    #[serde(rename = "Definition")]
    definition: ModelSteps,
}

/// Types of properties, by name.
type PropertyTypes = BTreeMap<String, String>;

/// The properties that labels stand for.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase", default)]
struct ModelSchema {
    nodes: BTreeMap<String, PropertyTypes>,
    edges: BTreeMap<String, PropertyTypes>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct ModelSteps {
    steps: Vec<ModelStep>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, tag = "Kind")]
enum ModelStep {
    #[serde(rename_all = "PascalCase")]
    AddNodes {
        query: String,
        node_id_column: String,
        #[serde(default)]
        labels: Vec<String>,
        labels_column: Option<String>,
    },
    #[serde(rename_all = "PascalCase")]
    AddEdges {
        query: String,
        source_column: String,
        target_column: String,
        #[serde(default)]
        labels: Vec<String>,
        labels_column: Option<String>,
    },
}

impl GraphModelDefinition {
    /// Reads a definition. Errors: the message that says what is wrong.
    pub fn parse(json: &str) -> Result<Self, String> {
        let definition: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let steps = &self.definition.steps;
        if steps.len() > MAX_STEPS {
            return Err(format!("a definition has at most {MAX_STEPS} steps"));
        }
        if !steps.iter().any(|step| matches!(step, ModelStep::AddEdges { .. })) {
            return Err("it needs a step `AddEdges`".to_owned());
        }
        for types in self.schema.nodes.values().chain(self.schema.edges.values()).flat_map(BTreeMap::values) {
            conversion(types).ok_or_else(|| format!("`{types}` is no type of KQL"))?;
        }
        for step in steps {
            let (query, labels, schema, what) = match step {
                ModelStep::AddNodes { query, labels, .. } => (query, labels, &self.schema.nodes, "node"),
                ModelStep::AddEdges { query, labels, .. } => (query, labels, &self.schema.edges, "edge"),
            };
            if let Err(errors) = parse::parse(query).into_result() {
                let message = errors.first().map_or("it has no meaning", |error| error.message.as_str());
                return Err(format!("the query `{query}`: {message}"));
            }
            if let Some(unknown) = labels.iter().find(|label| !schema.contains_key(*label)) {
                return Err(format!("the schema has no {what} label `{unknown}`"));
            }
        }
        Ok(())
    }

    /// Returns the queries of its steps, in order.
    pub fn queries(&self) -> impl Iterator<Item = &str> {
        self.definition.steps.iter().map(|step| match step {
            ModelStep::AddNodes { query, .. } | ModelStep::AddEdges { query, .. } => query.as_str(),
        })
    }

    /// Returns the JSON of the definition with these queries in the place of its own.
    pub fn with_queries(mut self, queries: Vec<String>) -> String {
        for (step, replacement) in self.definition.steps.iter_mut().zip(queries) {
            match step {
                ModelStep::AddNodes { query, .. } | ModelStep::AddEdges { query, .. } => *query = replacement,
            }
        }
        serde_json::json!(self).to_string()
    }

    /// Returns the query whose result is the graph. A node that several steps add has the properties of
    /// all; of two values the last step's stands.
    pub fn query(&self) -> String {
        let mut lets = String::new();
        let (mut edges, mut nodes) = (Vec::new(), Vec::new());
        for (index, step) in self.definition.steps.iter().enumerate() {
            // A function's body may have `let` statements of its own, and its last line a comment.
            let (query, extended) = match step {
                ModelStep::AddNodes { query, node_id_column, labels, labels_column } => {
                    nodes.push(format!("__step{index} on {}", name(node_id_column)));
                    (query, self.labelled(&self.schema.nodes, labels, labels_column.as_deref()))
                }
                ModelStep::AddEdges { query, source_column, target_column, labels, labels_column } => {
                    edges.push(format!("__step{index}"));
                    let ends =
                        format!("['$source'] = {}, ['$target'] = {}, ", name(source_column), name(target_column));
                    (query, ends + &self.labelled(&self.schema.edges, labels, labels_column.as_deref()))
                }
            };
            let query = query.trim_end().trim_end_matches(';');
            lets.push_str(&format!(
                "let __query{index} = () {{ {query}\n}}; let __step{index} = __query{index}() | extend {extended}; "
            ));
        }
        nodes.reverse();
        let with = if nodes.is_empty() { String::new() } else { format!(" with {}", nodes.join(", ")) };
        format!("{lets}union {} | make-graph ['$source'] --> ['$target']{with}", edges.join(", "))
    }

    /// The properties of the labels, of their types, and the labels.
    fn labelled(&self, schema: &BTreeMap<String, PropertyTypes>, labels: &[String], column: Option<&str>) -> String {
        let mut properties = PropertyTypes::new();
        for label in labels {
            properties.extend(schema.get(label).into_iter().flatten().map(|(name, of)| (name.clone(), of.clone())));
        }
        let mut extended = String::new();
        for (property, of_type) in &properties {
            let convert = conversion(of_type).unwrap_or("tostring");
            let (name, text) = (name(property), text(property));
            extended.push_str(&format!("{name} = {convert}(column_ifexists({text}, dynamic(null))), "));
        }
        let fixed: Vec<String> = labels.iter().map(|label| text(label)).collect();
        let fixed = match fixed.as_slice() {
            [] => "dynamic([])".to_owned(),
            fixed => format!("pack_array({})", fixed.join(", ")),
        };
        let labels = match column.map(name) {
            None => fixed,
            Some(column) => format!(
                "set_union({fixed}, iff(gettype({column}) == 'array', todynamic({column}), \
                 iff(isempty(tostring({column})), dynamic([]), pack_array(tostring({column})))))"
            ),
        };
        format!("{extended}['$labels'] = {labels}")
    }
}

/// Returns a query of whose rows a table can be made: some types of KQL are texts there.
pub fn storable(query: &str, columns: &[(String, KqlType)]) -> String {
    let texts = columns.iter().filter(|(_, of_type)| is_stored_as_text(*of_type));
    let texts: Vec<String> = texts.map(|(column, _)| format!("{0} = tostring({0})", name(column))).collect();
    if texts.is_empty() {
        return query.to_owned();
    }
    let query = query.trim_end().trim_end_matches(';');
    format!("let __query = () {{ {query}\n}}; __query() | extend {}", texts.join(", "))
}

/// Returns the query of a table that was made of [`storable`] rows, whose columns have their types again.
pub fn restored(table: &str, columns: &[(String, KqlType)]) -> String {
    let texts = columns.iter().filter(|(_, of_type)| is_stored_as_text(*of_type));
    let conversions: Vec<String> = texts
        .map(|(column, of_type)| {
            format!("{0} = {1}({0})", name(column), conversion(of_type.name()).unwrap_or("tostring"))
        })
        .collect();
    match conversions.is_empty() {
        true => name(table),
        false => format!("{} | extend {}", name(table), conversions.join(", ")),
    }
}

fn is_stored_as_text(of_type: KqlType) -> bool {
    matches!(of_type, KqlType::Dynamic | KqlType::Guid | KqlType::TimeSpan)
}

/// Returns the function that converts to a type.
fn conversion(of_type: &str) -> Option<&'static str> {
    Some(match of_type {
        "bool" | "boolean" => "tobool",
        "int" => "toint",
        "long" => "tolong",
        "real" | "double" => "toreal",
        "decimal" => "todecimal",
        "datetime" | "date" => "todatetime",
        "timespan" | "time" => "totimespan",
        "guid" | "uuid" | "uniqueid" => "toguid",
        "string" => "tostring",
        "dynamic" => "todynamic",
        _ => return None,
    })
}

/// Returns a name in brackets.
fn name(name: &str) -> String {
    format!("[{}]", text(name))
}

/// Returns a string literal.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_says_what_is_wrong_with_it() {
        let step = |query: &str, labels: &str| {
            format!(
                r#"{{"Schema": {{"Edges": {{"CALLS": {{"since": "datetime"}}}}}}, "Definition": {{"Steps": [{{"Kind":
                "AddEdges", "Query": "{query}", "SourceColumn": "a", "TargetColumn": "b", "Labels": [{labels}]}}]}}}}"#
            )
        };
        for (json, expected) in [
            (step("T | project a, b, since", "\"CALLS\""), ""),
            (step("T | where", "\"CALLS\""), "the query `T | where`: expected an expression"),
            (step("T", "\"OTHER\""), "the schema has no edge label `OTHER`"),
            (r#"{"Definition": {"Steps": []}}"#.to_owned(), "it needs a step `AddEdges`"),
            (r#"{"Definition": {"Steps": [{"Kind": "AddRows"}]}}"#.to_owned(), "unknown variant `AddRows`"),
            ("{}".to_owned(), "missing field `Definition`"),
        ] {
            let message = GraphModelDefinition::parse(&json).err().unwrap_or_default();
            assert!(message.contains(expected), "{json}: {message}");
            assert_eq!(message.is_empty(), expected.is_empty(), "{json}: {message}");
        }
    }
}

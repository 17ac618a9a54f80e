//! The files of `deploy/`: what they name is there.

use std::collections::BTreeSet;

use serde_json::Value;

/// The root of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(querent_tests::package_folder().join("..").join(path)).unwrap()
}

/// Every text of a document.
fn texts<'a>(document: &'a Value, found: &mut Vec<&'a str>) {
    match document {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !(char.is_ascii_lowercase() || char == '_')).filter(|word| word.starts_with("querent_"))
}

#[test]
fn the_dashboard_shows_every_metric_by_its_name() {
    let source = read("flight/src/metrics.rs");
    let described: BTreeSet<&str> =
        source.lines().filter(|line| line.trim_start().starts_with("describe_")).flat_map(metrics_in).collect();
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/querent.json")).unwrap();
    let mut all = Vec::new();
    texts(&dashboard["panels"], &mut all);
    let shown: BTreeSet<&str> =
        all.into_iter().flat_map(metrics_in).map(|name| name.trim_end_matches("_bucket")).collect();
    assert_eq!(shown, described, "deploy/grafana/querent.json and flight/src/metrics.rs");
    let ids: BTreeSet<i64> = dashboard["panels"].as_array().unwrap().iter().filter_map(|p| p["id"].as_i64()).collect();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len(), "each panel has an id of its own");
}

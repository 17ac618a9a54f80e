//! The files of `deploy/`: what they name is there.

use std::collections::BTreeSet;
use std::process::Command;

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

/// Nothing here runs Homebrew; the text has each archive with its own sum, and its blocks end.
#[test]
fn the_formula_has_the_sums_of_the_archives() {
    let folder = tempfile::tempdir().unwrap();
    // Each archive holds its own name, whose sum is this.
    let targets = [
        ("aarch64-apple-darwin", "602526fe5d0720f8fb8f60272c924a754eb90c461381908e5d8a5f04f6e504c0"),
        ("aarch64-unknown-linux-gnu", "86bf552cb29f61118330fb817bc3819ddbade898c26ec8c0a3c825f4bc5e2e27"),
        ("x86_64-unknown-linux-gnu", "1bb87e07be9e52fc0dca53a1c0718fac23e8b4202b9c346e12f075762507a544"),
    ];
    let script = querent_tests::package_folder().join("../scripts/formula.sh");
    let run = || Command::new(&script).arg(folder.path()).arg("https://downloads.example/v1/").output().unwrap();
    assert!(!run().status.success(), "an archive is missing");
    for (target, _) in targets {
        std::fs::write(folder.path().join(format!("querent-{target}.tar.gz")), target).unwrap();
    }
    let done = run();
    let formula = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for (target, sum) in targets {
        let lines = format!("url \"https://downloads.example/v1/querent-{target}.tar.gz\"\n      sha256 \"{sum}\"\n");
        assert!(formula.contains(&lines), "{target}: {formula}");
    }
    let words: Vec<&str> = formula.split_whitespace().collect();
    let begun = words.iter().filter(|word| ["class", "def", "do"].contains(word)).count();
    assert_eq!(begun, words.iter().filter(|word| **word == "end").count(), "{formula}");
    assert!(formula.contains(&format!("version \"{}\"", env!("CARGO_PKG_VERSION"))), "{formula}");
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

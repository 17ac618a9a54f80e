//! What Kusto's own parser accepts is accepted, what it rejects is rejected, but for the exceptions listed here with
//! their reasons, and no text makes the parser panic or slow, whole or cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{folder, rows};
use crate::parse;

/// Texts that Kusto's parser accepts and ours does not. May only shrink.
const NOT_ACCEPTED: &[(&str, &str)] = &[(
    "fuzz/r3-parse-search/agent-parse-search-0017",
    "the engine fails it, too: 9223372036854775808 is no long, and the sign is an operator",
)];

/// Texts that Kusto's parser rejects and ours does not. May only shrink.
const NOT_REJECTED: &[(&str, &str)] = &[
    ("docs/data-explorer/kusto/query/cross-cluster-or-database-queries.md#9", COMMAND),
    ("docs/data-explorer/kusto/query/cross-cluster-or-database-queries.md#13", COMMAND),
    ("docs/data-explorer/kusto/query/cross-cluster-or-database-queries.md#15", COMMAND),
    ("docs/data-explorer/kusto/query/database-cursor.md#0", COMMAND),
];

const COMMAND: &str = "a management command with an error in it; they are not parsed here";

/// The least share of each that must come out right whatever is listed.
const LEAST_ACCEPTED: f64 = 0.99;
const LEAST_REJECTED: f64 = 0.90;

/// All files; in each, texts of rows that must succeed must parse.
const FILES: &[&str] = &[
    "parse_corpus",
    "emulator_docs",
    "emulator_fuzz",
    "kusto_loco_basic",
    "kusto_loco_endtoend",
    "duckdbkql_recorded",
];

#[test]
#[cfg_attr(not(kql_cases), ignore = "no folder of KQL cases; QUERENT_KQL_CASES names it")]
fn accepts_and_rejects_as_kusto_does() {
    let folder = folder();
    let mut wrong = Vec::new();
    let mut unneeded: Vec<&str> = NOT_ACCEPTED.iter().chain(NOT_REJECTED).map(|(id, _)| *id).collect();
    for file in FILES {
        let cases = cases(&folder, file);
        let mut right = BTreeMap::from([(true, 0), (false, 0)]);
        let mut all = right.clone();
        for case in &cases {
            let accepted = parse(&case.text).errors.is_empty();
            let listed = if case.is_clean { NOT_ACCEPTED } else { NOT_REJECTED };
            let is_listed = listed.iter().any(|(id, _)| *id == case.id);
            *all.entry(case.is_clean).or_default() += 1;
            if accepted == case.is_clean {
                *right.entry(case.is_clean).or_default() += 1;
            } else {
                unneeded.retain(|id| *id != case.id);
                if !is_listed {
                    wrong.push(describe(case));
                }
            }
        }
        println!("{file}: accepted {} of {}, rejected {} of {}", right[&true], all[&true], right[&false], all[&false]);
        assert!(f64::from(right[&true]) >= LEAST_ACCEPTED * f64::from(all[&true]), "{file}: {wrong:#?}");
        assert!(f64::from(right[&false]) >= LEAST_REJECTED * f64::from(all[&false]), "{file}: {wrong:#?}");
    }
    assert!(wrong.is_empty(), "{} not listed: {wrong:#?}", wrong.len());
    assert!(unneeded.is_empty(), "listed, but right by now: {unneeded:?}");
}

#[test]
#[cfg_attr(not(kql_cases), ignore = "no folder of KQL cases; QUERENT_KQL_CASES names it")]
fn survives_cut_texts() {
    let folder = folder();
    let started = Instant::now();
    let mut bytes = 0;
    for case in FILES.iter().flat_map(|file| cases(&folder, file)) {
        let boundaries: Vec<usize> = case.text.char_indices().map(|(at, _)| at).collect();
        for at in boundaries.iter().skip(case.id.len() % 7).step_by(1 + boundaries.len() / 2) {
            let (head, tail) = case.text.split_at(*at);
            let without = format!("{head}{}", tail.split_once(char::is_whitespace).map_or("", |(_, rest)| rest));
            for text in [head, tail, &without] {
                bytes += text.len();
                for error in parse(text).errors {
                    assert!(!error.render(text).is_empty());
                }
            }
        }
    }
    let elapsed = started.elapsed();
    println!("{bytes} bytes of cut texts in {elapsed:?}");
    // An unoptimised build does a few MB/s; only what is not linear is slower than this.
    let most = Duration::from_secs(20) + Duration::from_micros(bytes as u64 * 4);
    assert!(elapsed < most, "{bytes} bytes took {elapsed:?}");
}

struct ParseCase {
    id: String,
    text: String,
    /// Kusto's parser finds nothing wrong with it.
    is_clean: bool,
}

fn describe(case: &ParseCase) -> String {
    match parse(&case.text).errors.first() {
        Some(error) => format!("{}: {}", case.id, error.render(&case.text)),
        None => format!("{}: accepted", case.id),
    }
}

fn cases(folder: &Path, file: &str) -> Vec<ParseCase> {
    let verdicts: BTreeMap<String, bool> = rows(&folder.join(format!("{file}.ms.jsonl")))
        .iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["syntax_errors"].as_array().unwrap().is_empty()))
        .collect();
    let case = |row: Value| {
        let id = row["id"].as_str().unwrap().to_owned();
        let is_clean = verdicts.get(&id).copied().unwrap_or(true);
        ParseCase { text: row["kql"].as_str().unwrap().to_owned(), is_clean, id }
    };
    rows(&folder.join(format!("{file}.jsonl"))).into_iter().map(case).collect()
}

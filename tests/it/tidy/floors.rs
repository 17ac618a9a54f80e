//! The folders of a crate stand on floors, and a module names those below its own only: so no two know each other in a
//! circle, and each can be read without what is above it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::{CrateSources, ROOT, imports, modules_of_tests, top_modules};
use super::source::words;
use super::{read, root, rust_files_in};

/// A crate's top-level modules, bottom up. Modules of one floor do not know each other.
struct Floors {
    /// The folder of its sources.
    folder: &'static str,
    floors: &'static [&'static [&'static str]],
    exceptions: &'static [Exception],
}

/// An import that may go up, or to a module of the same floor.
struct Exception {
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

const BINDER: &str = "the binder's methods: expressions, aggregates and operators contain each other in KQL";

const FLOORS: &[Floors] = &[
    Floors {
        folder: "catalog/src",
        floors: &[
            &["connection"],
            &["error", "principal", "outbound", "progress"],
            &["audit", "model"],
            &["policy"],
            &["store"],
            &["leases"],
            &["index", "runs"],
            &[
                "databases",
                "graph_models",
                "keys",
                "policies",
                "tables",
                "values",
                "knowledge",
                "members",
                "conversations",
                "vector_indexes",
            ],
            &["relationships", "external_users", "feedback", "integrity", "retention", "tokens"],
            &["backup", "other_servers", "search"],
            &["measurements"],
            &["catalog"],
        ],
        exceptions: &[],
    },
    Floors {
        folder: "engine/kql/src",
        floors: &[
            &["interrupt", "keywords", "materialized", "nearest", "span"],
            &["ast", "error", "literal_rows"],
            &["bind_error", "lexer", "types"],
            &["parse", "query_error", "sketches", "values"],
            &["asked_limits"],
            &["functions", "graph", "host"],
            &["aggregates", "bind", "forms", "plan"],
            &["origin", "planner", "written"],
        ],
        exceptions: &[
            Exception { from: "aggregates", to: "bind", reason: BINDER },
            Exception { from: "aggregates", to: "plan", reason: BINDER },
            Exception { from: "bind", to: "aggregates", reason: BINDER },
            Exception { from: "bind", to: "plan", reason: BINDER },
            Exception { from: "plan", to: "aggregates", reason: BINDER },
            Exception { from: "plan", to: "bind", reason: BINDER },
        ],
    },
    Floors {
        folder: "engine/src",
        floors: &[
            &[
                "analyzed_plan",
                "column_cache",
                "error",
                "identifiers",
                "list_values",
                "optimizer",
                "plan_cache",
                "profile_queue",
                "thread_limit",
                "thread_priority",
                "timestamp",
                "turns",
                "type_names",
                "type_parts",
            ],
            &["limits"],
            &["functions", "slots", "stores", "temporary", "threads"],
            &["governor", "options", "stream", "telemetry"],
            &["tables"],
            &["distributed", "sql"],
            &["runtime"],
            &["cluster_worker", "engine"],
            &["policy", "vector_indexing"],
            &["session"],
            &["completion", "import", "knowledge", "profiler", "queries", "table_statistics"],
            &["open"],
        ],
        exceptions: &[],
    },
    Floors {
        folder: "agent/src",
        floors: &[
            &["error", "confidence", "coverage", "half_characters", "prompt_form", "tokens", "sql_text"],
            &["config", "telemetry"],
            &["chart"],
            &["models"],
            &["attachments", "budget", "history", "repair", "template"],
            &["assessment", "counter_checks"],
            &["event"],
            &["event_log", "results", "stored_log"],
            &["run_watcher"],
            &["prompt"],
            &["request"],
            &["answer", "conversation"],
            &["tools"],
            &["protocols"],
            &["feedback", "toolbox"],
            &["run"],
            &["agent"],
        ],
        exceptions: &[],
    },
    Floors {
        folder: "flight/src",
        floors: &[
            &["exchange", "folder_import", "formats", "metrics", "shutdown"],
            &["connection", "drain", "error", "telemetry"],
            &[
                "admission",
                "config",
                "conversation_room",
                "idempotent_answers",
                "policy_cases",
                "query_limits",
                "result_types",
                "table_profiles",
            ],
            &["tls"],
            &["auth", "cluster", "logs", "mcp"],
            &["state"],
            &["guard"],
            &["http", "sql"],
            &["server"],
            &["cli"],
        ],
        exceptions: &[],
    },
];

#[test]
fn modules_import_from_the_floors_below_them() {
    let found: Vec<String> = FLOORS.iter().flat_map(|floors| violations(floors, &sources(floors.folder))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

fn violations(crate_: &Floors, sources: &CrateSources) -> Vec<String> {
    let folder = crate_.folder;
    let mut found = Vec::new();
    let mut floor_of: BTreeMap<&str, usize> = BTreeMap::from([(ROOT, crate_.floors.len())]);
    for (floor, modules) in crate_.floors.iter().enumerate() {
        floor_of.extend(modules.iter().map(|module| (*module, floor)));
    }
    let tests = modules_of_tests(sources);
    let tops: Vec<&str> =
        top_modules(sources).into_iter().filter(|top| !tests.contains(&vec![(*top).to_owned()])).collect();
    found.extend(
        tops.iter().filter(|top| !floor_of.contains_key(**top)).map(|top| format!("{folder}: `{top}` has no floor")),
    );
    let gone = floor_of.keys().filter(|module| **module != ROOT && !tops.contains(module));
    found.extend(gone.map(|module| format!("{folder}: `{module}` has a floor and is not there")));
    let mut unused: BTreeSet<(&str, &str)> = crate_.exceptions.iter().map(|except| (except.from, except.to)).collect();
    for import in imports(sources) {
        let (Some(from), Some(to)) = (floor_of.get(import.from.as_str()), floor_of.get(import.to.as_str())) else {
            continue;
        };
        let excepted = crate_.exceptions.iter().any(|except| except.from == import.from && except.to == import.to);
        if to < from {
            continue;
        }
        unused.retain(|(from, to)| (*from, *to) != (import.from.as_str(), import.to.as_str()));
        if !excepted {
            found.push(format!(
                "{folder}: `{}` imports from `{}`, which is not below `{}`",
                import.module, import.to, import.from
            ));
        }
    }
    found.extend(
        unused.iter().map(|(from, to)| format!("{folder}: the exception of `{from}` for `{to}` is not needed")),
    );
    let unexplained = crate_.exceptions.iter().filter(|except| except.reason.is_empty());
    found.extend(unexplained.map(|except| format!("{folder}: the exception of `{}` has no reason", except.from)));
    found
}

/// Crates that `querent-kql` may not name: anyone can put KQL on DataFusion with it.
const HOSTS: [&str; 4] = ["querent_catalog", "querent_engine", "querent_agent", "querent_flight"];

#[test]
fn kql_does_not_know_its_host() {
    let folder = root().join("engine/kql");
    let files = rust_files_in(&folder).into_iter().chain([folder.join("Cargo.toml")]);
    let found: Vec<String> = files.flat_map(|file| names_of_hosts(&file.display().to_string(), &read(&file))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

fn names_of_hosts(file: &str, text: &str) -> Vec<String> {
    let text = match file.ends_with(".toml") {
        true => text.replace('-', "_"),
        false => text.to_owned(),
    };
    let words = words(&text);
    let named = HOSTS.iter().filter(|host| words.contains(*host));
    named.map(|host| format!("{file} names `{host}`")).collect()
}

#[test]
fn a_host_that_kql_names_is_found() {
    assert_eq!(
        names_of_hosts("lib.rs", "// querent_engine\nuse querent_catalog::Catalog;"),
        ["lib.rs names `querent_catalog`"]
    );
    let manifest = "[dev-dependencies]\nquerent-engine = { workspace = true }\n";
    assert_eq!(names_of_hosts("Cargo.toml", manifest), ["Cargo.toml names `querent_engine`"]);
}

/// Reads the sources of a crate; binaries aside, which are crates of their own.
fn sources(folder: &str) -> CrateSources {
    let folder = root().join(folder);
    let files = rust_files_in(&folder).into_iter().filter_map(|file| {
        let module = module_of(file.strip_prefix(&folder).ok()?)?;
        Some((module, read(&file)))
    });
    files.collect()
}

/// The module of a file below a crate's `src`; `None` for a binary's root.
fn module_of(file: &Path) -> Option<Vec<String>> {
    let module: Vec<String> = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    match module.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["lib"] => Some(Vec::new()),
        ["main"] | ["bin", ..] => None,
        _ => Some(module),
    }
}

#[test]
fn an_import_that_goes_up_is_found() {
    let files = [
        ("", "mod store; mod search; mod index; pub struct Catalog;"),
        ("store", "use crate::search::Hit;"),
        ("search", "use crate::{store::Row, index::Writer};"),
        ("index", "use crate::Catalog;"),
        ("attic", ""),
    ];
    let sources = super::imports::sources(&files);
    let floors: &[&[&str]] = &[&["store"], &["search", "index"], &["cellar"]];
    let found = violations(&Floors { folder: "planted", floors, exceptions: &[] }, &sources);
    let expected = [
        "planted: `attic` has no floor",
        "planted: `cellar` has a floor and is not there",
        "planted: `index` imports from `lib`, which is not below `index`",
        "planted: `search` imports from `index`, which is not below `search`",
        "planted: `store` imports from `search`, which is not below `store`",
    ];
    assert_eq!(found, expected);
    let exceptions: &[Exception] = &[
        Exception { from: "store", to: "search", reason: "planted" },
        Exception { from: "search", to: "store", reason: "planted" },
    ];
    let found = violations(&Floors { folder: "planted", floors, exceptions }, &sources).join("\n");
    assert!(!found.contains("`store` imports") && found.contains("of `search` for `store` is not needed"), "{found}");
}

//! The invariants of `ARCHITECTURE.md`: every test that the page names is there and runs, and those that are rules for
//! source code are checked here.

use std::path::Path;

use super::source::{without_tests, words};
use super::{read, root, rust_files_in};

/// Calls that a renderer does not make: it takes times and ids from the events.
const CLOCKS_AND_IDS: [&[&str]; 6] = [
    &["Utc", "::", "now"],
    &["Local", "::", "now"],
    &["Instant", "::", "now"],
    &["SystemTime", "::", "now"],
    &["Uuid", "::", "now_v7"],
    &["Uuid", "::", "new_v4"],
];

#[test]
fn invariants_name_tests_that_run() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let named = named_tests(&page);
    assert!(named.len() >= 10, "found {named:?}");
    let found: Vec<String> = named
        .into_iter()
        .filter(|(file, name)| !runs(&std::fs::read_to_string(root().join(file)).unwrap_or_default(), name))
        .map(|(file, name)| format!("`{file}` has no test `{name}` that runs"))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn renderers_read_no_clock_and_make_no_id() {
    let folder = root().join("agent/src/protocols");
    let found: Vec<String> = rust_files_in(&folder).iter().flat_map(|file| clocks_and_ids(file, &read(file))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The tests that a page names in code quotes: `file.rs::name`.
fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let quoted = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter_map(|quoted| quoted.split_once("::").filter(|(file, _)| file.ends_with(".rs"))).collect()
}

/// Whether a source has a test of that name which is not ignored.
fn runs(source: &str, name: &str) -> bool {
    let Some(at) = source.find(&format!("fn {name}()")) else { return false };
    let before = &source[..source[..at].rfind('\n').unwrap_or_default()];
    let attributes: Vec<&str> = before.lines().rev().take_while(|line| line.starts_with("#[")).collect();
    attributes.iter().any(|line| line.contains("test")) && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

fn clocks_and_ids(file: &Path, source: &str) -> Vec<String> {
    let words = words(source);
    let words = without_tests(&words);
    let made = CLOCKS_AND_IDS.iter().filter(|call| words.windows(call.len()).any(|window| window == **call));
    made.map(|call| format!("{} calls `{}`", file.display(), call.concat())).collect()
}

#[test]
fn a_test_that_is_not_there_or_ignored_is_found() {
    let page = "| x | `tests/it/a.rs::holds`, `tests/it/b.rs` and `Type::name` |\n`tests/it/a.rs::gone`";
    assert_eq!(named_tests(page), [("tests/it/a.rs", "holds"), ("tests/it/a.rs", "gone")]);
    let source =
        "#[tokio::test]\nasync fn holds() {}\n\n#[test]\n#[ignore = \"x\"]\nfn ignored() {}\n\nfn helper() {}\n";
    assert!(runs(source, "holds"));
    assert!(!["ignored", "helper", "gone"].iter().any(|name| runs(source, name)));
}

#[test]
fn a_renderer_that_reads_a_clock_is_found() {
    let source = "fn f() { Utc::now(); }\n#[cfg(test)]\nmod tests { fn g() { Uuid::new_v4(); } }";
    assert_eq!(clocks_and_ids(Path::new("a.rs"), source), ["a.rs calls `Utc::now`"]);
    assert!(clocks_and_ids(Path::new("a.rs"), "use chrono::Utc; fn f(at: DateTime<Utc>) {}").is_empty());
}

//! The architecture as a test: crate edges, one version of what must be one, file shape, and documents that
//! name every error code and every tool. In files of their own: the floors of a crate's folders, names, and paths that
//! documents name.

mod floors;
mod imports;
mod invariants;
mod names;
mod paths;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use querent_flight::error::ErrorCode;

const MAX_LINES: usize = 600;

/// Documents beside those of `docs/`.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Crates of which Cargo.lock may hold one version only: their types cross our public interfaces.
const SINGLE: &[&str] = &[
    "arrow",
    "arrow-array",
    "arrow-flight",
    "arrow-schema",
    "axum",
    "datafusion",
    "datafusion-expr",
    "hyper",
    "libsqlite3-sys",
    "ort",
    "parquet",
    "prost",
    "rusqlite",
    "rustls",
    "tonic",
];

/// Direct dependencies that stand twice in Cargo.lock, each with the reason.
const DOUBLE: &[(&str, &str)] = &[
    ("base64", "old versions under tokenizers and ureq"),
    ("md-5", "0.11 under DataFusion, which has it for its own functions"),
    ("ndarray", "0.16 under lance; ort is on 0.17, and so are we"),
    ("object_store", "DataFusion 54 is on 0.13, lance 14 on 0.14"),
    ("rand", "0.8 under old dependencies of tantivy and phf"),
    ("reqwest", "genai is on 0.13, the object stores and ollama-rs on 0.12; neither crosses our interfaces"),
    ("sha2", "0.11 under lance's object stores"),
    ("thiserror", "1.x under crates that have not moved"),
    ("toml", "an older one under figment"),
    ("uuid", "none expected; kept for figment"),
    ("unicode-width", "0.1 under sqllogictest"),
    ("strsim", "an older one under darling"),
];

#[test]
fn dependencies_between_crates_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("catalog", &[][..]),
        ("engine/kql", &[][..]),
        ("engine", &["catalog", "kql"][..]),
        ("agent/proof", &[][..]),
        ("agent", &["catalog", "engine", "proof"][..]),
        ("flight", &["agent", "catalog", "engine"][..]),
        ("python", &["agent", "catalog", "engine", "flight"][..]),
        ("benches", &["agent", "catalog", "engine", "flight"][..]),
        ("tests", &["agent", "catalog", "engine", "flight"][..]),
    ]);
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let members: Vec<_> =
        manifest["workspace"]["members"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
    assert_eq!(members.len(), allowed.len(), "a new crate needs a line in this test: {members:?}");
    for member in members {
        let manifest: toml::Table = read(&root().join(member).join("Cargo.toml")).parse().unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(|s| s.as_table()) else { continue };
            for name in dependencies.keys().filter_map(|name| name.strip_prefix("querent-")) {
                assert!(
                    allowed[member].contains(&name),
                    "`{member}` may not depend on `{name}` (DESIGN: catalog, engine/kql <- engine <- agent <- flight)"
                );
            }
        }
    }
}

#[test]
fn what_must_be_one_version_is_one() {
    let locked = locked_versions();
    for name in SINGLE {
        let versions = locked.get(*name).cloned().unwrap_or_default();
        assert_eq!(versions.len(), 1, "`{name}` must stand once in Cargo.lock, found {versions:?}");
    }
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    for name in manifest["workspace"]["dependencies"].as_table().unwrap().keys() {
        let versions = locked.get(name.as_str()).cloned().unwrap_or_default();
        let excused = DOUBLE.iter().any(|(double, _)| double == name);
        assert!(
            versions.len() <= 1 || excused,
            "`{name}` stands {versions:?} in Cargo.lock; say why in DOUBLE or make it one"
        );
    }
}

#[test]
fn files_open_with_a_purpose_and_stay_short() {
    for file in rust_files() {
        let text = read(&file);
        assert!(text.starts_with("//!"), "{} does not open with `//!`", file.display());
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines; split it along a seam that has a name", file.display());
        assert_ne!(file.file_name().unwrap(), "mod.rs", "{}: use `foo.rs` beside `foo/`", file.display());
    }
}

#[test]
fn every_error_code_is_documented() {
    let page = read(&root().join("docs/errors.md"));
    let explained: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let known: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let silent: Vec<_> = known.difference(&explained).collect();
    assert!(silent.is_empty(), "docs/errors.md does not explain {silent:?}");
    let unknown: Vec<_> = explained.difference(&known).collect();
    assert!(unknown.is_empty(), "docs/errors.md explains {unknown:?}, which no door answers with");
    for file in ["catalog/src/error.rs", "engine/src/error.rs", "agent/src/error.rs"] {
        for code in codes(&read(&root().join(file))) {
            assert!(known.contains(code.as_str()), "`{code}` of {file} is not an `ErrorCode`");
        }
    }
}

#[test]
fn every_metric_is_documented() {
    let code = read(&root().join("flight/src/metrics.rs"));
    let described: BTreeSet<&str> =
        code.split("    describe_").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
    let page = read(&root().join("docs/configuration.md"));
    let explained: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `querent_")?.split('`').next()).collect();
    assert!(described.len() > 30, "{described:?}");
    let described: BTreeSet<&str> = described.iter().filter_map(|name| name.strip_prefix("querent_")).collect();
    assert_eq!(described, explained, "docs/configuration.md and flight/src/metrics.rs");
}

/// The events of ask: the table of the page has all of them, and no other.
#[test]
fn every_event_is_documented() {
    let page = read(&root().join("docs/http.md"));
    let (_, table) = page.split_once("| event | data | when |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("| `"));
    let explained: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let source = read(&root().join("agent/src/protocols/ask.rs"));
    let missing: Vec<&&str> = explained.iter().filter(|name| !source.contains(&format!("\"{name}\""))).collect();
    assert!(missing.is_empty(), "docs/http.md explains {missing:?}, which ask does not send");
    let sent = source.split("(\"").skip(1).filter_map(|rest| rest.split_once("\", ")).map(|(name, _)| name);
    let sent: BTreeSet<&str> =
        sent.filter(|name| name.chars().all(|char| char.is_ascii_lowercase() || char == '_')).collect();
    assert!(sent.len() > 8, "{sent:?}");
    let silent: Vec<&&str> = sent.difference(&explained).collect();
    assert!(silent.is_empty(), "docs/http.md does not explain {silent:?}");
}

#[test]
fn every_tool_is_documented_and_has_a_case() {
    let page = read(&root().join("docs/agent.md"));
    let cases: String = [
        "tests/it/agent.rs",
        "tests/it/approvals.rs",
        "tests/it/ask.rs",
        "tests/it/models.rs",
        "tests/it/typed_objects/agent.rs",
    ]
    .iter()
    .map(|file| read(&root().join(file)))
    .collect();
    let mut seen = 0;
    for path in rust_files_in(&root().join("agent/src/tools")) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !read(&path).contains("impl Tool for") {
            continue;
        }
        seen += 1;
        assert!(page.contains(&format!("`{name}`")), "docs/agent.md does not describe the tool `{name}`");
        assert!(cases.contains(&format!("\"{name}\"")), "no agent case calls the tool `{name}`");
    }
    assert!(seen >= 4, "found {seen} tools");
}

#[test]
fn figures_in_documents_name_their_command() {
    for file in ["README.md", "docs/benchmarks.md"] {
        let text = read(&root().join(file));
        for section in text.split("\n## ").filter(|section| section.contains("| ") && has_measure(section)) {
            assert!(
                ["make bench", "make console-bars", "make store-scan"].iter().any(|command| section.contains(command)),
                "a table of figures in {file} does not name the command that makes it"
            );
        }
    }
}

#[test]
fn documents_link_to_files_that_exist() {
    for page in pages() {
        for target in read(&page).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            assert!(
                page.parent().unwrap().join(path).exists(),
                "{} links to {target}, which is not there",
                page.display()
            );
        }
    }
}

/// Returns a file's path from the root of the repository.
fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// Returns the documents of the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = PAGES.iter().map(|page| root().join(page)).collect();
    pages.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages
}

fn root() -> PathBuf {
    querent_tests::package_folder().parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files() -> Vec<PathBuf> {
    let folders = ["catalog", "engine", "agent", "flight", "python", "benches", "tests"];
    folders.iter().flat_map(|folder| rust_files_in(&root().join(folder))).collect()
}

fn rust_files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_in(folder);
    files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
    files
}

/// Returns the files below a folder, in order, without the packages that npm put there.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("node_modules") => {}
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

fn locked_versions() -> BTreeMap<String, BTreeSet<String>> {
    let lock: toml::Table = read(&root().join("Cargo.lock")).parse().unwrap();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap().to_owned();
        versions.entry(name).or_default().insert(package["version"].as_str().unwrap().to_owned());
    }
    versions
}

/// Returns the string literals of `fn code`.
fn codes(source: &str) -> BTreeSet<String> {
    let Some(start) = source.find("fn code(&self)") else { return BTreeSet::new() };
    let body = &source[start..];
    let body = &body[..body.find("\n    }\n").unwrap_or(body.len())];
    let literals = body.split('"').skip(1).step_by(2);
    literals.filter(|text| text.chars().all(|c| c.is_ascii_lowercase() || c == '_')).map(str::to_owned).collect()
}

/// Whether a section has a number with a unit.
fn has_measure(section: &str) -> bool {
    let units = [" ms", " MB/s", " MiB", "x |", " rows/s", " s |"];
    units.iter().any(|unit| {
        section.match_indices(unit).any(|(at, _)| section[..at].ends_with(|last: char| last.is_ascii_digit()))
    })
}

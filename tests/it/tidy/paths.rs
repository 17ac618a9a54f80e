//! Every path of the repository that a document or the map of a crate names is there.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files_in, pages, read, root, shown};

/// The top folders of the repository in which paths are looked for.
const FOLDERS: [&str; 11] =
    ["catalog", "engine", "agent", "flight", "python", "benches", "tests", "docs", "scripts", "deploy", "fuzz"];
/// Endings by which a word without a folder is a file.
const ENDINGS: [&str; 2] = [".rs", ".slt"];
/// Folders that are made by running something and are not in the repository.
const MADE: [&str; 1] = ["benches/results/"];
/// Crates whose `lib.rs` opens with a map.
const CRATES: [&str; 6] = ["catalog", "engine/kql", "engine", "agent/proof", "agent", "flight"];

#[test]
fn documents_name_files_that_exist() {
    let tree = RepositoryTree::read();
    let mut found: Vec<String> =
        pages().iter().flat_map(|page| missing(&shown(page), &read(page), "", &tree)).collect();
    for crate_ in CRATES {
        let page = format!("{crate_}/src/lib.rs");
        let text = read(&root().join(&page));
        let map: String =
            text.lines().take_while(|line| line.starts_with("//!")).map(|line| format!("{}\n", &line[3..])).collect();
        found.extend(missing(&page, &map, &format!("{crate_}/src/"), &tree));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The paths of the files and folders of the repository, folders with a `/` at their end.
struct RepositoryTree(BTreeSet<String>);

impl RepositoryTree {
    fn read() -> Self {
        let files = FOLDERS.iter().flat_map(|folder| files_in(&root().join(folder)));
        let files = files.filter_map(|file| Some(file.strip_prefix(root()).ok()?.to_string_lossy().into_owned()));
        let at_the_root = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name());
        Self::from_files(files.chain(at_the_root.map(|name| name.to_string_lossy().into_owned())))
    }

    fn from_files(files: impl Iterator<Item = String>) -> Self {
        let mut paths = BTreeSet::new();
        for file in files {
            paths.extend(file.match_indices('/').map(|(at, _)| file[..=at].to_owned()));
            paths.insert(file);
        }
        Self(paths)
    }

    /// Whether a path is there: below `base`, below the crate that `base` is the `src` of, or below the root; or for a mere
    /// name, whether a file of that name is anywhere.
    fn has(&self, path: &str, base: &str) -> bool {
        let is_name = !path.contains('/');
        let there = |path: &str| self.0.contains(path) || self.0.contains(&format!("{path}/"));
        let named = |file: &String| is_name && Path::new(file).file_name().is_some_and(|name| name == path);
        let bases = [base, base.strip_suffix("src/").unwrap_or_default(), ""];
        let (before, star) = path.split_at(path.find('*').unwrap_or(path.len()));
        let begins = |start: &str| self.0.iter().any(|file| file.starts_with(start));
        match star {
            "" => bases.iter().any(|base| there(&format!("{base}{path}"))) || self.0.iter().any(named),
            _ => bases.iter().any(|base| begins(&format!("{base}{before}"))),
        }
    }
}

/// The paths that a page names in code quotes and that are not there.
fn missing(page: &str, text: &str, base: &str, tree: &RepositoryTree) -> Vec<String> {
    let quoted = quoted(text);
    let paths = quoted.iter().filter_map(|quoted| path_of(quoted, base)).flat_map(|path| alternatives(&path));
    paths
        .filter(|path| !tree.has(path, base) && !MADE.iter().any(|made| path.starts_with(made)))
        .map(|path| format!("{page} names `{path}`, which is not there"))
        .collect()
}

/// What stands in code quotes of one line, and every word of a fenced block.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_a_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_a_fence = !in_a_fence;
        } else if !in_a_fence {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// The path that a quoted word is, without a line's number or an anchor; `None` where it is none.
fn path_of(quoted: &str, base: &str) -> Option<String> {
    let path = quoted.split(['#', ':']).next().unwrap_or_default();
    let path = path.split('…').next().unwrap_or_default();
    // A placeholder stands for any name.
    let path = path.replace("CELL", "*").replace("NAME", "*");
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./{},*".contains(c);
    if path.is_empty() || !path.chars().all(is_word) {
        return None;
    }
    let is_file = ENDINGS.iter().any(|ending| path.ends_with(ending));
    let is_below = path.split_once('/').is_some_and(|(first, _)| FOLDERS.contains(&first));
    let is_of_the_crate = !base.is_empty() && path.ends_with('/');
    (is_file || is_below || is_of_the_crate).then_some(path)
}

/// The paths that `a/{b,c}.rs` stands for.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inner, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    inner.split(',').flat_map(|each| alternatives(&format!("{before}{each}{after}"))).collect()
}

#[test]
fn a_path_that_is_not_there_is_found() {
    let files = ["agent/src/run.rs", "agent/src/tools/run_sql.rs", "tests/slt/a.slt", "Makefile"];
    let tree = RepositoryTree::from_files(files.into_iter().map(str::to_owned));
    let page = "`agent/src/run.rs:12`, `agent/src/tools/`, `run_sql.rs`, `tests/slt/*.slt`, `agent/src/{run,tools/run_sql}.rs` \
        and `text/plain`, `a / b`, `tests/it/…`\n`agent/src/walk.rs`, `agent/src/{run,walk}.rs`, `walk.rs`, `docs/x.md`, `tests/it/*.rs`\n\
        ```text\n`fenced.rs`\n```\n";
    let expected = ["agent/src/walk.rs", "agent/src/walk.rs", "walk.rs", "docs/x.md", "tests/it/*.rs"];
    let expected: Vec<String> = expected.map(|path| format!("p names `{path}`, which is not there")).into();
    assert_eq!(
        missing("p", page, "", &tree),
        [vec!["p names `tests/it/`, which is not there".to_owned()], expected].concat()
    );
    assert_eq!(
        missing("l", "`tools/`, `run.rs`, `walks/`", "agent/src/", &tree),
        ["l names `walks/`, which is not there"]
    );
}

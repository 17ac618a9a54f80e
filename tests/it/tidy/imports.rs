//! Which modules of its crate a file names: in `use`, in paths within code and by `super`.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{test_modules, without_tests, words};

/// What a crate's root is called in a table of floors.
pub(super) const ROOT: &str = "lib";

/// The words before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "type", "union", "fn", "const", "static"];

/// A crate's sources by the path of their module: `["store", "names"]`, and `[]` for `lib.rs`.
pub(super) type CrateSources = BTreeMap<Vec<String>, String>;

/// Of a top-level module to another one, by the module in which it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) module: String,
}

/// Returns the top-level modules of a crate.
pub(super) fn top_modules(sources: &CrateSources) -> BTreeSet<&str> {
    sources.keys().filter_map(|module| module.first()).map(String::as_str).collect()
}

/// Returns every import from one top-level module into another, tests aside. What the root defines itself is of
/// [`ROOT`]; what it only re-exports is of the module that it comes from.
pub(super) fn imports(sources: &CrateSources) -> BTreeSet<Import> {
    let tops = top_modules(sources);
    let root = sources.get(&Vec::new()).map(String::as_str).unwrap_or_default();
    let reexported = reexports(root, sources);
    let tests = modules_of_tests(sources);
    let mut found = BTreeSet::new();
    for (module, source) in sources {
        let Some(from) = module.first() else { continue };
        if tests.iter().any(|test| module.starts_with(test)) {
            continue;
        }
        let words = words(source);
        for path in paths(&without_tests(&words)) {
            let Some(name) = in_the_root(module, &path) else { continue };
            let to = match tops.get(name) {
                Some(top) => *top,
                None => reexported.get(name).map_or(ROOT, String::as_str),
            };
            if to != from {
                found.insert(Import { from: from.clone(), to: to.to_owned(), module: module.join("::") });
            }
        }
    }
    found
}

/// Returns the modules that are compiled for tests only.
pub(super) fn modules_of_tests(sources: &CrateSources) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (module, source) in sources {
        for name in test_modules(&words(source)) {
            let mut path = module.clone();
            path.push(name.to_owned());
            found.push(path);
        }
    }
    found
}

/// Which top-level module each name comes from that the root imports or re-exports.
fn reexports(root: &str, sources: &CrateSources) -> BTreeMap<String, String> {
    let tops = top_modules(sources);
    let words = words(root);
    let mut names = BTreeMap::new();
    for UseLeaf { path, name } in uses(&without_tests(&words)) {
        let path: Vec<&str> = path.into_iter().skip_while(|segment| matches!(*segment, "crate" | "self")).collect();
        let Some(top) = path.first().filter(|first| tops.contains(*first)) else { continue };
        let visible = match name {
            "*" => visible_names(&path[..path.len() - 1], sources),
            name => vec![name.to_owned()],
        };
        names.extend(visible.into_iter().map(|name| (name, (*top).to_owned())));
    }
    names
}

/// The names that a module offers to `use module::*`.
fn visible_names(module: &[&str], sources: &CrateSources) -> Vec<String> {
    let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
    let words = words(sources.get(&module).map(String::as_str).unwrap_or_default());
    let leaves = uses(&words).into_iter().map(|leaf| leaf.name);
    let items = words.windows(2).filter(|pair| ITEMS.contains(&pair[0])).map(|pair| pair[1]);
    leaves.chain(items).map(str::to_owned).collect()
}

/// The name that a path has directly below the root of the crate, if it leads there.
fn in_the_root<'a>(module: &[String], path: &[&'a str]) -> Option<&'a str> {
    let ups = path.iter().take_while(|segment| **segment == "super").count();
    let after = match path.first() {
        Some(&"crate") => 1,
        Some(&"super") if ups == module.len() => ups,
        _ => return None,
    };
    path.get(after).copied()
}

/// Every path of the words that begins with `crate` or `super`.
fn paths<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut found: Vec<Vec<&str>> = uses(words).into_iter().map(|leaf| leaf.path).collect();
    let mut at = 0;
    while at < words.len() {
        if is_use(words, at) {
            at += words[at..].iter().position(|word| *word == ";").unwrap_or(words.len() - at);
            continue;
        }
        let is_visibility = at > 0 && (words[at - 1] == "in" && words.get(at.wrapping_sub(2)) == Some(&"("));
        if matches!(words[at], "crate" | "super") && words.get(at + 1) == Some(&"::") {
            let mut path = vec![words[at]];
            while words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some_and(|word| is_name(word)) {
                path.push(words[at + 2]);
                at += 2;
            }
            if !is_visibility {
                found.push(path);
            }
        }
        at += 1;
    }
    found.retain(|path| matches!(path.first(), Some(&("crate" | "super"))));
    found
}

/// One leaf of a `use`: its path, and the name that it has here.
struct UseLeaf<'a> {
    path: Vec<&'a str>,
    name: &'a str,
}

/// The leaves of every `use` of the words.
fn uses<'a>(words: &[&'a str]) -> Vec<UseLeaf<'a>> {
    let mut leaves = Vec::new();
    for at in (0..words.len()).filter(|at| is_use(words, *at)) {
        tree(words, at + 1, &[], &mut leaves);
    }
    leaves
}

/// Whether a `use` begins there, not the `use<'a>` of a captured lifetime.
fn is_use(words: &[&str], at: usize) -> bool {
    words[at] == "use" && words.get(at + 1) != Some(&"<")
}

/// Reads a tree of a `use` and returns where it ends.
fn tree<'a>(words: &[&'a str], mut at: usize, prefix: &[&'a str], leaves: &mut Vec<UseLeaf<'a>>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(word) = words.get(at) {
        match *word {
            "::" => at += 1,
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|word| *word != "}") {
                    let end = tree(words, at, &path, leaves);
                    assert!(end > at, "a `use` that is not understood, at `{}`", words[at]);
                    at = end;
                    at += words[at..].iter().take_while(|word| **word == ",").count();
                }
                return at + 1;
            }
            "as" => {
                let name = words.get(at + 1).copied().unwrap_or_default();
                leaves.push(UseLeaf { path, name });
                return at + 2;
            }
            "self" if !path.is_empty() => at += 1,
            word if is_name(word) || word == "*" => {
                path.push(word);
                at += 1;
            }
            _ => break,
        }
    }
    let name = path.last().copied().unwrap_or_default();
    leaves.push(UseLeaf { path, name });
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[test]
fn imports_are_found_wherever_they_stand() {
    let found = found(&[
        (
            "",
            "mod high; mod low; mod mid; pub use low::{deep::Thing, Other as Renamed}; pub use glob::*; pub struct Own;",
        ),
        ("low", "//! crate::high::in_a_comment\nfn f() -> &'static str { \"crate::high\" }"),
        ("low::deep", "use super::super::mid::M; pub(in crate::high) fn g() {}"),
        ("glob", "pub struct Globbed;"),
        ("mid", "use crate::{low::{self, deep::{Thing}}, Renamed,\n    high as h};"),
        ("high", "fn f(x: &crate::mid::M) -> impl Sized + use<'_> { super::low::f(); crate::Own; crate::Globbed }"),
        ("high::tests_of_high", "use crate::low::f;"),
        ("all", "use super::*;"),
        ("top", "#[cfg(test)] mod cases; #[cfg(test)] mod tests { use crate::low::f; }"),
        ("top::cases", "use crate::low::f;"),
    ]);
    let expected = [
        "all in all -> lib",
        "high in high -> glob",
        "high in high -> lib",
        "high in high -> low",
        "high in high::tests_of_high -> low",
        "high in high -> mid",
        "low in low::deep -> mid",
        "mid in mid -> high",
        "mid in mid -> low",
    ];
    assert_eq!(found, expected);
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    imports(&sources(files))
        .iter()
        .map(|import| format!("{} in {} -> {}", import.from, import.module, import.to))
        .collect()
}

/// Makes a crate of modules and their sources.
pub(super) fn sources(files: &[(&str, &str)]) -> CrateSources {
    let path = |module: &str| module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    files.iter().map(|(module, source)| (path(module), (*source).to_owned())).collect()
}

//! Names by which a reader finds a thing in one search: a type's name has one meaning in the workspace, a function says
//! of what, a path says where, and a sleep says why.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::{without_tests, words};
use super::{read, rust_files, shown};

/// Type names that may stand more than once, each with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[("Result", "a crate's own `Result` with its own error")];

/// Functions that do not say of what unless a type stands before them: `Type::of(x)`.
const VAGUE_FUNCTIONS: &[&str] = &["around", "at", "by", "is", "is_ours", "of"];

#[test]
fn a_type_name_has_one_meaning() {
    let files: Vec<(String, String)> = rust_files().iter().map(|file| (shown(file), read(file))).collect();
    let found = repeated_types(files.iter().map(|(file, text)| (file.as_str(), text.as_str())), SHARED_NAMES);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn functions_say_of_what() {
    assert_no_violations(vague_functions);
}

#[test]
fn modules_further_up_are_named_from_the_root() {
    assert_no_violations(chains_of_super);
}

#[test]
fn a_sleep_in_a_test_says_why() {
    let files = rust_files().into_iter().filter(|file| shown(file).starts_with("tests/"));
    // It has the one loop that waits for a condition.
    let files = files.filter(|file| !file.ends_with("tests/src/waiting.rs"));
    let found: Vec<String> = files.flat_map(|file| of_file(&file, unexplained_sleeps)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The names of types that are defined more than once, public or private: a search finds both.
fn repeated_types<'a>(files: impl Iterator<Item = (&'a str, &'a str)>, shared: &[(&str, &str)]) -> Vec<String> {
    let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, text) in files {
        for name in defined_types(&without_tests(&words(text))) {
            homes.entry(name).or_default().push(file);
        }
    }
    let is_shared = |name: &str| shared.iter().any(|(shared, _)| *shared == name);
    let unused = shared.iter().filter(|(name, _)| homes.get(name).is_none_or(|homes| homes.len() < 2));
    let unused: Vec<String> = unused.map(|(name, _)| format!("`{name}` need not be shared")).collect();
    let repeated = homes.iter().filter(|(name, homes)| homes.len() > 1 && !is_shared(name));
    let repeated = repeated.map(|(name, homes)| format!("the type name `{name}` stands in {}", homes.join(", ")));
    repeated.chain(unused).collect()
}

/// The names of the types that are defined, associated types aside.
fn defined_types<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for_each_item(words, |is_of_a_type, at| {
        if let ["struct" | "enum" | "trait" | "union" | "type", name, ..] = words[at..]
            && !is_of_a_type
            && name.starts_with(char::is_uppercase)
        {
            names.push(name);
        }
    });
    names
}

/// Free functions whose name says nothing of their own.
fn vague_functions(text: &str) -> Vec<String> {
    let words = words(text);
    let mut found = Vec::new();
    for_each_item(&words, |is_of_a_type, at| {
        if let ["fn", name, ..] = words[at..]
            && !is_of_a_type
            && VAGUE_FUNCTIONS.contains(&name)
        {
            found.push(format!("`fn {name}` does not say of what"));
        }
    });
    found
}

/// Calls `look` with every word and whether it stands directly in the body of an `impl` or a trait.
fn for_each_item(words: &[&str], mut look: impl FnMut(bool, usize)) {
    // For every open bracket, whether the body of an `impl` or a trait begins with it.
    let mut bodies = Vec::new();
    let mut is_body = false;
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| words.get(before).copied());
        let begins_an_item = matches!(before, None | Some("{" | "}" | ";" | "]" | ")" | "pub" | "unsafe" | "default"));
        look(bodies.last() == Some(&true), at);
        match *word {
            "impl" | "trait" if begins_an_item && bodies.last() != Some(&true) => is_body = true,
            "{" => bodies.push(std::mem::take(&mut is_body)),
            "}" => {
                bodies.pop();
            }
            _ => {}
        }
    }
}

fn chains_of_super(text: &str) -> Vec<String> {
    let count = words(text).windows(3).filter(|three| *three == ["super", "::", "super"]).count();
    (count > 0).then(|| format!("`super::super` {count} times: name the module from `crate`")).into_iter().collect()
}

/// Sleeps without a comment in the line above.
fn unexplained_sleeps(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_sleep = |line: &str| {
        let words = words(line);
        words.windows(3).any(|three| *three == ["::", "sleep", "("])
    };
    let unexplained = lines.iter().enumerate().filter(|(at, line)| {
        let above = at.checked_sub(1).map(|above| lines[above]).unwrap_or_default();
        is_sleep(line) && !above.starts_with("//")
    });
    unexplained
        .map(|(at, _)| format!("line {}: a sleep without a reason; `wait_until` waits for a condition", at + 1))
        .collect()
}

fn assert_no_violations(rule: fn(&str) -> Vec<String>) {
    let found: Vec<String> = rust_files().iter().flat_map(|file| of_file(file, rule)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

fn of_file(file: &Path, rule: fn(&str) -> Vec<String>) -> Vec<String> {
    rule(&read(file)).into_iter().map(|violation| format!("{}: {violation}", shown(file))).collect()
}

#[test]
fn a_type_name_with_two_meanings_is_found() {
    let files = [
        ("a.rs", "struct Place<T>(T); type Result = (); #[cfg(test)] mod tests { struct Case; struct Place; }"),
        ("b.rs", "fn f() { enum Place {} } pub type Result = (); pub struct Case; impl T { type Output = (); }"),
        ("c.rs", "pub(in crate::x) trait Case { type Output; } // struct Place;"),
    ];
    let found = repeated_types(files.into_iter(), &[("Result", "planted"), ("Args", "planted")]);
    let expected = [
        "the type name `Case` stands in b.rs, c.rs",
        "the type name `Place` stands in a.rs, b.rs",
        "`Args` need not be shared",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_function_that_does_not_say_of_what_is_found() {
    let source = "
        pub fn of(f: impl Fn(u8) -> bool) -> impl Sized { fn is() {} }
        impl<T> Place<T> { pub fn of() {} fn at(&self) { if a { b } } const fn is() {} }
        trait Within { fn around(); }
        pub(crate) fn around() {}
        fn is_of() {}
    ";
    assert_eq!(vague_functions(source).len(), 3, "{:?}", vague_functions(source));
}

#[test]
fn a_chain_of_super_is_found() {
    assert_eq!(chains_of_super("use super::super::{a};\nfn f() { super::g() }").len(), 1);
    assert!(chains_of_super("// super::super\nuse super::a;").is_empty());
}

#[test]
fn a_sleep_without_a_reason_is_found() {
    let with_a_reason = "// A slow client.\n    tokio::time::sleep(x).await;";
    assert!(unexplained_sleeps(with_a_reason).is_empty());
    assert_eq!(unexplained_sleeps("let a = 1;\n    tokio::time::sleep(x).await;").len(), 1);
    assert_eq!(unexplained_sleeps("std::thread::sleep(x);").len(), 1);
}

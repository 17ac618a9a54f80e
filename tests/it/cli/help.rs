//! What `--help` says of every command: each flag is on a page, for those who look there first.

use std::collections::BTreeSet;
use std::fs;

use querent_tests::package_folder;

use super::WorkFolder;

/// Flags that need no page.
const KNOWN_BY_ALL: [&str; 2] = ["--help", "--version"];

/// Adds the help of a command and of the commands below it, each with its words.
fn add_help(work: &WorkFolder, command: &[&str], found: &mut Vec<(String, String)>) {
    let help = work.run(&[command, &["--help"][..]].concat()).succeeded();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What goes on with a description stands further in.
    let entries = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = entries.filter_map(|line| line.split_whitespace().next()).collect();
    for name in names.into_iter().filter(|name| *name != "help") {
        add_help(work, &[command, &[name][..]].concat(), found);
    }
    found.push((command.join(" "), help));
}

/// The long flags of a help text.
fn flags(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',', '=', '<', '[']));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

/// Whether the text has the flag, and not only a longer one that begins with it.
fn names(text: &str, flag: &str) -> bool {
    text.match_indices(flag).any(|(at, _)| {
        let after = text[at + flag.len()..].chars().next();
        !after.is_some_and(|char| char.is_ascii_alphanumeric() || char == '-')
    })
}

#[test]
fn every_flag_is_on_a_page() {
    let docs = package_folder().join("../docs");
    let mut pages = fs::read_to_string(package_folder().join("../README.md")).unwrap();
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            pages.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    let work = WorkFolder::new();
    let mut found = Vec::new();
    add_help(&work, &[], &mut found);
    assert!(found.len() > 25, "{:?}", found.iter().map(|(command, _)| command).collect::<Vec<_>>());
    let mut missing = Vec::new();
    for (command, help) in &found {
        let unknown = flags(help).into_iter().filter(|flag| !KNOWN_BY_ALL.contains(&flag.as_str()));
        missing.extend(unknown.filter(|flag| !names(&pages, flag)).map(|flag| format!("{command} {flag}")));
    }
    assert!(missing.is_empty(), "no page has {missing:?}: docs/command-line.md has those without a page of their own");
}

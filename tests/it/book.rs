//! `docs/` as a book: its table of contents names every page once, every link between pages leads somewhere, and mdBook
//! makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The places that links can name in a page, as GitHub and mdBook make them of headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let words = heading.to_lowercase();
            let kept = words.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
            kept.map(|char| if char == ' ' { '-' } else { char }).collect()
        })
        .collect()
}

/// The lines of a page that are not code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    // How many marks the fence has that is open: a longer one may have shorter ones inside.
    let mut open = 0;
    page.lines().filter(move |line| {
        let line = line.trim_start();
        let marks = line.len() - line.trim_start_matches('`').len();
        let is_fence = marks >= 3 && (open == 0 || open == marks);
        if is_fence {
            open = if open == 0 { marks } else { 0 };
        }
        open == 0 && !is_fence
    })
}

/// The targets of a page's links to other files and places of the repository.
fn links(page: &str) -> Vec<String> {
    let text = prose(page).collect::<Vec<_>>().join("\n");
    let after = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    after
        .map(|(link, _)| link.to_owned())
        .filter(|link| !link.contains("://") && !link.contains(char::is_whitespace))
        .collect()
}

fn docs() -> PathBuf {
    querent_tests::package_folder().join("../docs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page_names() -> BTreeSet<String> {
    let names = std::fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

#[test]
fn the_table_of_contents_names_every_page_once() {
    let summary = read(&docs().join("SUMMARY.md"));
    let named = links(&summary);
    let expected: BTreeSet<String> = page_names().into_iter().filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(named.len(), expected.len(), "a page is named twice");
    // A chapter is called as its page is.
    for line in summary.lines().filter(|line| line.contains("](")) {
        let (title, page) = line.trim_start_matches([' ', '-', '[']).split_once("](").unwrap();
        let text = read(&docs().join(page.trim_end_matches(')')));
        assert_eq!(text.lines().next(), Some(format!("# {title}").as_str()), "{page}");
    }
    let settings: toml::Table = read(&docs().join("book.toml")).parse().unwrap();
    assert_eq!(settings["book"]["src"].as_str(), Some("."));
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for name in page_names() {
        for link in links(&read(&docs().join(&name))) {
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { docs().join(&name) } else { docs().join(file) };
            followed += 1;
            let is_there = match place {
                "" => target.exists(),
                place => target.exists() && anchors(&read(&target)).contains(place),
            };
            if !is_there {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 200, "only {followed} links were found");
}

/// The texts in quotes after each `start` of a page.
fn quoted_after<'a>(page: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(start).skip(1).filter_map(|rest| rest.split('"').next())
}

/// Each page is one of the book, and what its pages link to and show is there.
#[test]
fn the_book_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let mut mdbook = querent_tests::check_program("mdbook");
    let built = mdbook.arg("build").arg("--dest-dir").arg(folder.path()).arg(docs()).output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
    let chapters = page_names().into_iter().filter(|name| name != "SUMMARY.md");
    let pages: BTreeMap<String, String> = chapters
        .map(|name| {
            let page = name.replace(".md", ".html");
            let text = read(&folder.path().join(&page));
            (page, text)
        })
        .collect();
    let mut broken = Vec::new();
    let mut followed = 0;
    for (name, text) in &pages {
        for link in quoted_after(text, "href=\"").chain(quoted_after(text, "src=\"")) {
            // Other files of the repository are no part of the book.
            if link.contains(':') || link.starts_with("../") {
                continue;
            }
            followed += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name.as_str() } else { file };
            let lacks_place = |page: &String| !place.is_empty() && !page.contains(&format!("id=\"{place}\""));
            if !folder.path().join(file).exists() || pages.get(file).is_some_and(lacks_place) {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 1_000, "only {followed} links were found");
}

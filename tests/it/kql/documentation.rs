//! Every KQL query in the documentation runs: code blocks of KQL, and what examples hand to `querent kql`, to `curl` and
//! to Kusto's client. Tutorials make their own data; `documented_commands` runs them as they stand.

use std::path::Path;

use querent_tests::package_folder;

use super::{answered, flights};
use crate::sql::{admin, rows};

#[tokio::test(flavor = "multi_thread")]
async fn every_example_runs() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let edges = "CREATE TABLE edges AS SELECT * FROM (VALUES ('api', 'db', 'http', 0.9), ('web', 'api', 'http', 0.7)) \
                 AS e(src, dst, type, weight)";
    rows(&session, edges).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let people = files.path().join("people.csv");
    std::fs::write(&people, "code,people\nDE,84000000\n").unwrap();
    let repository = package_folder().join("..");
    let mut pages = vec![repository.join("README.md")];
    pages.extend(std::fs::read_dir(repository.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut count = 0;
    let is_tutorial = |page: &Path| page.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tutorial"));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md") && !is_tutorial(page));
    for page in &pages {
        for query in queries(&std::fs::read_to_string(page).unwrap()) {
            let query = query.replace("/data/people.csv", people.to_str().unwrap());
            let outcome = answered(&session, &query).await;
            assert!(outcome.is_ok(), "{}: `{query}`: {:?}", page.display(), outcome.err());
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} examples were found");
}

fn queries(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<(bool, Vec<&str>)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut block) {
            (Some(language), None) => block = Some((language.trim() == "kql", Vec::new())),
            (Some(_), Some((is_kql, lines))) => {
                if *is_kql {
                    found.push(lines.join("\n"));
                }
                block = None;
            }
            (None, Some((true, lines))) => lines.push(line),
            (None, Some((false, _))) => found.extend(
                ["querent kql ", "application/x-kql' --data ", ".execute(\"default\", "]
                    .iter()
                    .filter_map(|before| quoted(line.split_once(before)?.1)),
            ),
            (None, None) => {}
        }
    }
    found
}

/// Returns the quoted string with which the rest of a line begins.
fn quoted(rest: &str) -> Option<String> {
    let quote = rest.chars().next().filter(|char| ['\'', '"'].contains(char))?;
    let (text, _) = rest[1..].split_once(quote)?;
    Some(text.to_owned())
}

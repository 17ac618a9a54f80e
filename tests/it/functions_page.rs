//! `docs/functions.md`: every function that SQL has, with an example of `tests/functions.txt` and its answer.
//!
//! The page is made of the session's registries. `UPDATE_DOCS=1` writes it; otherwise it is compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use querent_tests::package_folder;

use super::sql::{admin, engine, rows};

/// Functions of values that no statement makes (unions, which only clients send), and one that needs a model.
const WITHOUT_EXAMPLE: [&str; 3] = ["embed", "union_extract", "union_tag"];
/// What examples of aggregates and windows are over.
const TABLE: &str = "(VALUES (1, 'a', 1.5), (2, 'b', 2.5), (4, 'a', NULL)) t(x, k, y)";

const HEAD: &str = "# Functions of SQL

Every function that a statement may call, made from the session's own registries by a test that runs each example.
`SHOW FUNCTIONS LIKE 'list_%'` asks for the same. What is short for something else says for what; the dialect is in
[sql.md](sql.md). Examples of aggregates and windows are over `t`, whose rows `(x, k, y)` are `(1, 'a', 1.5)`, `(2, 'b', 2.5)`
and `(4, 'a', NULL)`. Names are written in any case.
";

#[tokio::test(flavor = "multi_thread")]
async fn every_function_has_an_example_that_runs() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let text = std::fs::read_to_string(package_folder().join("functions.txt")).unwrap();
    let examples: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(": ")).collect();
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    let mut failed = Vec::new();
    let mut names = Vec::new();
    for row in rows(&session, "SHOW FUNCTIONS").await.unwrap() {
        let [name, kind, short_for] = row.as_slice() else { panic!("{row:?}") };
        names.push(name.clone());
        if WITHOUT_EXAMPLE.contains(&name.as_str()) || name.contains(' ') {
            continue;
        }
        let Some(example) = examples.get(name.as_str()) else {
            missing.push(name.clone());
            continue;
        };
        match rows(&session, &statement(example)).await {
            Ok(found) => {
                let answer = found.iter().map(|cells| cells.join(" ")).collect::<Vec<_>>().join(", ");
                let meaning = if short_for == "NULL" { String::new() } else { code(short_for) };
                let shown = example.trim_start_matches(['!', '#']);
                let line = format!("| `{name}` | {} | {} | {meaning} |\n", code(shown), code(&answer));
                sections.entry(kind.clone()).or_default().push(line);
            }
            Err(error) => failed.push(format!("{name}: {example}: {error}")),
        }
    }
    assert!(missing.is_empty(), "no example in tests/functions.txt: {missing:?}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let unknown: Vec<&&str> = examples.keys().filter(|name| !names.iter().any(|own| own == **name)).collect();
    assert!(unknown.is_empty(), "examples of functions that there are not: {unknown:?}");
    let mut page = HEAD.to_owned();
    for (kind, lines) in sections {
        let title = match kind.as_str() {
            "scalar" => "Of one row",
            "lambda" => "With lambdas",
            "aggregate" => "Of many rows",
            "window" => "Windows",
            _ => "In FROM",
        };
        page.push_str(&format!(
            "\n## {title}\n\n| function | an example | its answer | is short for |\n|---|---|---|---|\n"
        ));
        lines.iter().for_each(|line| page.push_str(line));
    }
    let path: PathBuf = package_folder().join("../docs/functions.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap();
    for (line, (own, made)) in written.lines().zip(page.lines()).enumerate() {
        assert_eq!(own, made, "docs/functions.md, line {}; UPDATE_DOCS=1 writes it", line + 1);
    }
    assert_eq!(written.lines().count(), page.lines().count(), "UPDATE_DOCS=1 writes docs/functions.md");
}

fn statement(example: &str) -> String {
    match (example.strip_prefix('!'), example.strip_prefix('#')) {
        (Some(aggregate), _) => format!("SELECT {aggregate} FROM {TABLE}"),
        (_, Some(window)) => format!("SELECT {window} FROM {TABLE} ORDER BY x"),
        _ if example.starts_with("SELECT ") => example.to_owned(),
        _ => format!("SELECT {example}"),
    }
}

/// Text within backticks, in a cell of a table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', " ");
    match text.trim() {
        "" => String::new(),
        text if text.contains('`') => format!("`` {text} ``"),
        text => format!("`{text}`"),
    }
}

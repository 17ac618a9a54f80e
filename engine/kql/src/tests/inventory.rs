//! The page of Kusto's functions, aggregates and plugins: whether each is here, how it differs, and a query that runs. The
//! names are those that the binder knows Kusto has, and what is here has a query that runs: a recorded case, or one of
//! `examples.txt`. `make kql-diff` writes the page; the test fails where it is not what is written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;

use super::{folder, rows};
use crate::{KqlHost, StoredComparisons};

const PAGE: &str = "../../docs/kql-functions.md";
const HEADER: &str = "\
# Kusto's functions

Every function, aggregate and plugin that Kusto has, whether it is here, and a query that runs. Written by `make kql-diff`.
What is not here is refused by name (`kql_not_supported`). Operators and what differs in them: [KQL](kql.md).
";
/// A name, and how what it does differs.
const DIFFERENCES: &str = include_str!("differences.txt");
/// A name, and a query that calls it.
const EXAMPLES: &str = include_str!("examples.txt");
/// Queries are shown on one line up to so many characters.
const MAX_EXAMPLE: usize = 160;
const STACK_BYTES: usize = 64 << 20;

struct Kind {
    title: &'static str,
    names: &'static str,
    /// What stands before a name in a query.
    before: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind { title: "Functions", names: include_str!("../functions/known.txt"), before: "" },
    Kind { title: "Aggregates", names: include_str!("../bind/known_aggregates.txt"), before: "" },
    Kind { title: "Plugins", names: include_str!("../bind/known_plugins.txt"), before: "evaluate " },
];

#[expect(clippy::disallowed_methods, reason = "a test drives a runtime of its own, and may wait for the disk")]
#[cfg_attr(not(kql_cases), ignore = "no folder of KQL cases; QUERENT_KQL_CASES names it")]
#[test]
fn the_page_of_functions_is_as_the_binder_has_them() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build().unwrap();
    let page = runtime.block_on(async { tokio::spawn(page()).await.unwrap() });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("QUERENT_WRITE_KQL_DIFF").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{PAGE} is not what the binder has; run `make kql-diff`");
}

async fn page() -> String {
    let config = SessionConfig::new().with_default_catalog_and_schema("querent", "default");
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_optimizer_rule(Arc::new(StoredComparisons))
        .build();
    let differences = pairs(DIFFERENCES);
    let examples = pairs(EXAMPLES);
    let recorded = recorded_queries();
    let mut page = HEADER.to_owned();
    for kind in &KINDS {
        let mut names: Vec<&str> = kind.names.lines().filter(|name| !name.starts_with("__")).collect();
        names.sort_unstable();
        names.dedup();
        let mut table = String::new();
        let mut count = 0;
        for name in &names {
            let call = format!("{}{name}(", kind.before);
            let candidates = examples
                .get(name)
                .copied()
                .into_iter()
                .chain(recorded.iter().map(String::as_str).filter(|query| calls(query, &call)));
            let mut example = None;
            for query in candidates.take(20) {
                if runs(&state, query).await {
                    example = Some(query);
                    break;
                }
                assert!(examples.get(name) != Some(&query), "the example of `{name}` does not run: {query}");
            }
            let is_here = example.is_some() || differences.contains_key(name);
            count += usize::from(is_here);
            let status = match (is_here, differences.get(name)) {
                (false, _) => "not here".to_owned(),
                (true, None) => "here".to_owned(),
                (true, Some(how)) => format!("differs: {how}"),
            };
            let example = example.map(|query| format!("`{}`", query.replace('|', "\\|"))).unwrap_or_default();
            writeln!(table, "| `{name}` | {status} | {example} |").unwrap();
        }
        write!(page, "\n## {}\n\n{count} of {} are here.\n\n", kind.title, names.len()).unwrap();
        write!(page, "| name | | a query |\n|---|---|---|\n{table}").unwrap();
    }
    page
}

/// The recorded queries that fit on a line, shortest first.
fn recorded_queries() -> Vec<String> {
    let files = ["emulator_docs", "emulator_fuzz"].map(|file| folder().join(format!("{file}.jsonl")));
    let mut queries: Vec<String> = files
        .iter()
        .flat_map(|file| rows(file))
        .filter(|case| case["error"].is_null())
        .filter_map(|case| case["kql"].as_str().map(str::to_owned))
        .filter(|query| !query.contains("//") && !query.contains('`'))
        .map(|query| query.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|query| query.chars().count() <= MAX_EXAMPLE)
        .collect();
    queries.sort_by(|left, right| left.len().cmp(&right.len()).then_with(|| left.cmp(right)));
    queries.dedup();
    queries
}

fn pairs(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    text.lines().filter_map(|line| line.split_once('\t')).collect()
}

/// Whether a query holds a call, not one of a name that ends with the function's.
fn calls(query: &str, call: &str) -> bool {
    query.match_indices(call).any(|(at, _)| {
        let before = query.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

async fn runs(state: &SessionState, query: &str) -> bool {
    let Ok(planned) = crate::plan_all(state, query, &Default::default()).await else { return false };
    for result in planned {
        let Ok(stream) = state.rows(result.plan).await else { return false };
        if stream.try_collect::<Vec<_>>().await.is_err() {
            return false;
        }
    }
    true
}

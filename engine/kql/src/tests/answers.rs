//! Queries with their answers, one file a class of behaviour, as Kusto's documentation has them. A block is a query
//! (`> ` before its first line, two blanks before the others), then its columns and rows, in any order, with `null` for
//! null; or `! code` where it is refused.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use crate::{KqlError, KqlHost, KqlType};

const FILES: &[(&str, &str)] = &[
    ("names", include_str!("answers/names.txt")),
    ("values", include_str!("answers/values.txt")),
    ("comparisons", include_str!("answers/comparisons.txt")),
    ("operators", include_str!("answers/operators.txt")),
    ("parse", include_str!("answers/parse.txt")),
    ("plugins", include_str!("answers/plugins.txt")),
    ("graph", include_str!("answers/graph.txt")),
    ("geography", include_str!("answers/geography.txt")),
];

/// Plans are walked recursively.
const STACK_BYTES: usize = 64 << 20;

struct AnswerBlock {
    query: String,
    expected: Vec<String>,
}

fn blocks(text: &str) -> Vec<AnswerBlock> {
    let mut blocks: Vec<AnswerBlock> = Vec::new();
    let mut in_query = false;
    for line in text.lines() {
        if let Some(query) = line.strip_prefix("> ") {
            blocks.push(AnswerBlock { query: query.to_owned(), expected: Vec::new() });
            in_query = true;
            continue;
        }
        let Some(block) = blocks.last_mut() else { continue };
        match line.strip_prefix("  ") {
            Some(more) if in_query => block.query.extend(["\n", more]),
            _ if line.is_empty() || line.starts_with("# ") => in_query = false,
            _ => {
                in_query = false;
                block.expected.push(line.to_owned());
            }
        }
    }
    blocks
}

async fn answer(query: &str) -> Vec<String> {
    let state = SessionContext::new().state();
    let answered = async {
        let planned = crate::plan(&state, query, &Default::default()).await?;
        let batches: Vec<_> = state.rows(planned.plan).await?.try_collect().await?;
        Ok::<_, DataFusionError>((planned.columns, batches))
    };
    let (columns, batches) = match answered.await {
        Ok(answered) => answered,
        Err(error) => {
            let code = match &error {
                DataFusionError::External(inner) => inner.downcast_ref::<KqlError>().map(|error| error.code.as_str()),
                _ => None,
            };
            return vec![format!("! {}", code.unwrap_or(&error.to_string()))];
        }
    };
    let header = columns.iter().map(|column| format!("{}:{}", column.name, column.kql_type.name()));
    let mut lines = vec![header.collect::<Vec<_>>().join(", ")];
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(batch.columns()).map(|(column, array)| {
                let is_null = column.kql_type != KqlType::String && array.is_null(row);
                if is_null { "null".to_owned() } else { column.text(array.as_ref(), row) }
            });
            lines.push(cells.collect::<Vec<_>>().join(" | "));
        }
    }
    lines
}

#[expect(clippy::disallowed_methods, reason = "a test drives a runtime of its own")]
#[test]
fn answers_are_those_of_the_documentation() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(STACK_BYTES).build().unwrap();
    let wrong = runtime.block_on(async { tokio::spawn(replay()).await.unwrap() });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

async fn replay() -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in FILES {
        let blocks = blocks(text);
        assert!(!blocks.is_empty(), "{file}");
        for AnswerBlock { query, mut expected } in blocks {
            let mut ours = answer(&query).await;
            // The first line has the columns.
            ours.iter_mut().chain(&mut expected).for_each(|line| line.truncate(line.trim_end().len()));
            for lines in [&mut ours, &mut expected] {
                if let Some((_, rows)) = lines.split_first_mut() {
                    rows.sort();
                }
            }
            if ours != expected {
                wrong.push(format!("{file}: {query}\nours {ours:#?}\nexpected {expected:#?}"));
            }
        }
    }
    wrong
}

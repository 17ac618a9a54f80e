//! The plain prompt: the whole schema of the right database, the question, one shot. The query runs as the model
//! writes it.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use querent_agent::AgentError;
use querent_agent::models::{ChatMessage, ChatRequest, ChatRole, ModelEvent, ModelProvider, ToolChoice};
use querent_engine::Engine;

use super::judge::{RowSet, verdict};
use super::{Outcome, fill};
use crate::cells::recall::{SpiderDatabase, SpiderQuestion};

const MAX_OUTPUT_TOKENS: u32 = 512;

pub(super) async fn ask(
    engines: &[Engine],
    model: &Arc<dyn ModelProvider>,
    schema: &SpiderDatabase,
    question: &SpiderQuestion,
    gold: &[RowSet],
) -> Outcome {
    let started = Instant::now();
    let asked = ask_model(model, schema, question).await;
    let mut outcome = Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() };
    let (text, tokens) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            outcome.verdict = error.code().to_owned();
            return outcome;
        }
    };
    outcome.tokens = tokens;
    let sql = fenced(&text).trim().trim_end_matches(';').to_owned();
    if sql.is_empty() {
        outcome.verdict = "no query".to_owned();
        return outcome;
    }
    outcome.verdict = verdict(engines, Some(&question.db_id), &sql, gold).await;
    outcome.sql = Some(sql);
    outcome
}

/// Returns what the model writes, and the tokens that it took.
async fn ask_model(
    model: &Arc<dyn ModelProvider>,
    schema: &SpiderDatabase,
    question: &SpiderQuestion,
) -> Result<(String, u64), AgentError> {
    let tables: Vec<String> = fill::definitions(schema, "").into_iter().map(|(_, definition)| definition).collect();
    let prompt = format!(
        "Given this schema:\n{}\n\nWrite one PostgreSQL query that answers the question. Reply with the query in a ```sql \
         fence and nothing else.\nQuestion: {}",
        tables.join(";\n"),
        question.question
    );
    let request = ChatRequest {
        messages: vec![ChatMessage::text(ChatRole::User, prompt)],
        tools: Vec::new(),
        format: None,
        think: None,
        max_output_tokens: Some(MAX_OUTPUT_TOKENS),
        tool_choice: ToolChoice::Auto,
        sampling: Default::default(),
        variation: 0,
    };
    let (mut text, mut tokens) = (String::new(), 0);
    let mut pieces = model.chat(request).await?;
    while let Some(piece) = pieces.next().await {
        match piece? {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::Done { usage, .. } => tokens = usage.input_tokens + usage.output_tokens,
            ModelEvent::Thinking(_) | ModelEvent::ToolCall(_) => {}
        }
    }
    Ok((text, tokens))
}

/// Returns what stands in the first fence of a text, or the whole text.
fn fenced(text: &str) -> &str {
    let Some(open) = text.find("```") else { return text };
    let inner = &text[open + 3..];
    let inner = inner.strip_prefix("sql").unwrap_or(inner);
    inner.find("```").map_or(inner, |close| &inner[..close])
}

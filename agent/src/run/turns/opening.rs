//! What a run begins with: the messages of its first request, and the tables that they show.

use chrono::Utc;

use super::gaps::GapSearch;
use super::{context_window, max_output_tokens};
use crate::answer::StructuredAnswer;
use crate::history::ChatHistory;
use crate::models::actions::ToolCalling;
use crate::models::{ChatMessage, ChatRole, ModelCapabilities, ToolSpec};
use crate::prompt::{PromptParts, QuestionContext, find_context, first_turn};
use crate::repair::TablesAtHand;
use crate::request::RunRequest;
use crate::run::RunTask;
use crate::tokens::{estimate_tokens, take_tokens};

/// Tokens of the prompt that a small model can use.
const SMALL_PROMPT_TOKENS: usize = 900;
/// The application's instructions take at most one such part of the context.
const INSTRUCTIONS_SHARE: usize = 4;

/// What a run begins with.
pub(super) struct FirstMessages {
    pub(super) conversation: ChatHistory,
    /// The input, where calls are decided first.
    pub(super) later: Vec<ChatMessage>,
    /// The tables that the prompt shows.
    pub(super) at_hand: TablesAtHand,
    /// As in [`QuestionContext::margin`].
    pub(super) margin: Option<f64>,
    /// What of the question the tables leave unexplained.
    pub(super) gaps: GapSearch,
}

/// Returns the messages for the first request: the system message, the history and the input. Where calls are decided
/// first, the input is returned apart, since the calls' results precede it.
pub(super) async fn first_messages(
    task: &RunTask,
    model: &ToolCalling,
    capabilities: &ModelCapabilities,
    specs: &[ToolSpec],
    tool_tokens: usize,
    structured: Option<&StructuredAnswer>,
) -> FirstMessages {
    let RunRequest { database, history, input, .. } = &task.request;
    let small = capabilities.small;
    let question = task.request.question();
    let subject = match task.request.earlier_question() {
        Some(earlier) => format!("{earlier}\n{question}"),
        None => question.clone(),
    };
    let QuestionContext { mut tables, relationships, mut taught, margin } =
        find_context(&task.session, &question, &subject, database.as_deref(), small).await;
    let form = task.config.prompt_form;
    if !form.ranked {
        tables.sort_by(|left, right| left.name.cmp(&right.name));
    }
    taught.queries.truncate(form.examples.unwrap_or(usize::MAX));
    let mut tables = task.examples.examples_of_tables(&task.session, tables, task.config.examples_timeout).await;
    if !form.values {
        tables.iter_mut().for_each(|(_, examples)| examples.clear());
    }
    let gaps = GapSearch::begin(&task.request, &tables, &taught);
    let instructions = model.instructions(specs);
    let budget_tokens =
        if small { task.config.prompt_tokens.min(SMALL_PROMPT_TOKENS) } else { task.config.prompt_tokens };
    let [mut system, asked] = first_turn(&PromptParts {
        question: &question,
        subject: &subject,
        database: task.session.database(),
        instructions: instructions.as_deref(),
        tool_tokens,
        tables: &tables,
        relationships: &relationships,
        taught: &taught,
        today: Utc::now().date_naive(),
        small,
        budget_tokens,
        sections: task.request.prompt.as_ref(),
        form,
        pictures: input.iter().map(|message| message.images.len()).sum(),
    });
    let context_tokens = context_window(task, capabilities);
    let most_tokens = context_tokens / INSTRUCTIONS_SHARE;
    let application = application_instructions(&task.request, structured, most_tokens);
    if !application.is_empty() {
        system.content.push_str("\n\n");
        system.content.push_str(&bounded(&application, most_tokens));
    }
    let mut said = history.clone();
    said.extend(input.iter().cloned());
    // The question fits the prompt's budget, however long it is.
    if let Some(last) = said.iter_mut().skip(history.len()).rev().find(|message| message.role == ChatRole::User) {
        last.content = asked.content;
    }
    let for_reply = (max_output_tokens(small) as usize).min(context_tokens / 4);
    let later = if task.request.resume.is_empty() { Vec::new() } else { said.split_off(history.len()) };
    let mut conversation = ChatHistory::new(system, said, context_tokens.saturating_sub(for_reply + tool_tokens));
    if let Some(tokens) = task.request.compact_at {
        conversation.compact_from(tokens);
    }
    let tables = tables.into_iter().map(|(info, _)| info).collect();
    FirstMessages { conversation, later, at_hand: TablesAtHand { tables, relationships }, margin, gaps }
}

/// Returns the application's instructions. Of those of the conversation the newest are told that fit into so many tokens.
fn application_instructions(request: &RunRequest, structured: Option<&StructuredAnswer>, most_tokens: usize) -> String {
    let mut sections = Vec::new();
    let mut tokens = request.instructions.as_deref().map_or(0, estimate_tokens);
    let fits = |text: &&String| {
        tokens += estimate_tokens(text);
        tokens <= most_tokens
    };
    let fitting = request.standing_instructions.iter().rev().take_while(fits).count().max(1);
    let left_out = request.standing_instructions.len().saturating_sub(fitting);
    let standing = request.standing_instructions.iter().skip(left_out).map(String::as_str);
    let given = request.instructions.as_deref().into_iter().chain(standing);
    let given: Vec<&str> = given.map(str::trim).filter(|text| !text.is_empty()).collect();
    if !given.is_empty() {
        sections.push(format!("The application adds:\n{}", given.join("\n\n")));
    }
    if let Some(structured) = structured {
        sections.push(format!(
            "The final answer must be one JSON document of this schema, without a code fence and without other words:\n{}",
            structured.schema()
        ));
    }
    sections.join("\n\n")
}

fn bounded(text: &str, tokens: usize) -> String {
    let kept = take_tokens(text, tokens);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    format!("{kept}\n[the rest of these instructions was left out: they are too long for this model]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Protocol;

    #[test]
    fn the_newest_instructions_of_a_conversation_are_told() {
        let mut request = RunRequest::new(Protocol::Responses, Vec::new());
        request.instructions = Some("Be brief.".to_owned());
        request.standing_instructions = (0..50).map(|number| format!("It is day {number} of the year.")).collect();
        let told = application_instructions(&request, None, 100);
        assert!(
            told.contains("Be brief.") && told.contains("It is day 49") && !told.contains("It is day 0 "),
            "{told}"
        );
        assert!(!told.contains("It is day 20 "), "{told}");
        assert!(application_instructions(&request, None, 10_000).contains("It is day 0 "));
        request.standing_instructions = vec!["A long one. ".repeat(100)];
        assert!(application_instructions(&request, None, 100).contains("A long one."));
    }
}

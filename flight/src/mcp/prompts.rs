//! Prompts: a question to be answered with the tools, and the verified queries that the caller may see.

use querent_catalog::{Catalog, PageRequest, PageToken, Principal, VerifiedQuery};
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};

use crate::error::{ApiError, ErrorCode};

/// The prompt that asks a question.
pub(super) const ASK: &str = "ask";
/// Before the number of a verified query.
const VERIFIED: &str = "verified_query_";
/// The verified queries of one page.
const PAGE: usize = 100;

/// Lists a page of the prompts.
pub(super) async fn list(
    catalog: &Catalog,
    who: &Principal,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ApiError> {
    let mut prompts = Vec::new();
    if cursor.is_none() {
        let question = PromptArgument::new("question").with_description("What to find out").with_required(true);
        let about = "Answers a question from the data, with these tools";
        prompts.push(Prompt::new(ASK, Some(about), Some(vec![question])).with_title("Ask a question of the data"));
    }
    let page = PageRequest { limit: PAGE, after: cursor.map(|cursor| PageToken(cursor.to_owned())) };
    let listed = catalog.knowledge().list_verified_queries(who, None, page).await?;
    prompts.extend(listed.items.iter().map(verified_prompt));
    let mut result = ListPromptsResult::with_all_items(prompts);
    result.next_cursor = listed.next.map(|next| next.0);
    Ok(result)
}

fn verified_prompt(query: &VerifiedQuery) -> Prompt {
    let about = format!("A verified query of the database {}", query.database);
    Prompt::new(format!("{VERIFIED}{}", query.id), Some(about), None).with_title(query.question.clone())
}

/// Returns the messages of a prompt. Errors: `bad_parameter` for one that is not there, whose question is missing, or that has
/// no such argument.
pub(super) async fn get(
    catalog: &Catalog,
    who: &Principal,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ApiError> {
    let unknown = || {
        let message = format!("there is no prompt `{}`", request.name.chars().take(100).collect::<String>());
        ApiError::new(ErrorCode::BadParameter, message).with_hint("prompts/list lists them")
    };
    if request.name == ASK {
        check_arguments(request, &["question"])?;
        let question = request.arguments.as_ref().and_then(|arguments| arguments.get("question")?.as_str());
        let question = question.map(str::trim).filter(|question| !question.is_empty());
        let question =
            question.ok_or_else(|| ApiError::new(ErrorCode::BadParameter, "the argument `question` is missing"))?;
        let text = format!(
            "Answer this question from the data that Querent's tools can query: {question}\n\nFind the tables with \
            search_schema, look at them with describe_table, query them with run_sql, and answer with what the rows say. \
            If they do not answer it, say what is missing."
        );
        return Ok(said(text));
    }
    let id: i64 = request.name.strip_prefix(VERIFIED).and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
    check_arguments(request, &[])?;
    let mut after = None;
    loop {
        let page = PageRequest { limit: PAGE, after };
        let listed = catalog.knowledge().list_verified_queries(who, None, page).await?;
        if let Some(query) = listed.items.iter().find(|query| query.id == id) {
            let VerifiedQuery { question, sql, database, .. } = query;
            let text = format!(
                "{question}\n\nThis query, which a person has verified, answers it in the database {database}:\n\n\
                ```sql\n{sql}\n```\n\nRun it with run_sql and answer with its rows."
            );
            return Ok(said(text).with_description(question.clone()));
        }
        after = Some(listed.next.ok_or_else(unknown)?);
    }
}

/// Refuses arguments that a prompt does not have.
fn check_arguments(request: &GetPromptRequestParams, known: &[&str]) -> Result<(), ApiError> {
    let mut given = request.arguments.iter().flat_map(|arguments| arguments.keys());
    let Some(name) = given.find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let name: String = name.chars().take(100).collect();
    let message = format!("the prompt `{}` has no argument `{name}`", request.name);
    Err(ApiError::new(ErrorCode::BadParameter, message).with_hint("prompts/list says which it has"))
}

fn said(text: String) -> GetPromptResult {
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
}

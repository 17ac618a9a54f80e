//! Questions that a verified query answers: its SQL runs with the values of the question, and the answer is written from
//! its rows. No model is asked. Where the filled query fails or finds nothing, the model answers as usual.

use serde_json::{Value, json};

use super::calls::model_name;
use super::{End, ModelReply, Turns};
use crate::assessment::VerifiedBasis;
use crate::event::TextPhase;
use crate::models::{DoneReason, ModelToolCall, ToolChoice};
use crate::repair::folded_words;
use crate::run::turns::speech::Speech;
use crate::run::{FailureCause, elapsed_ms};
use crate::sql_text::one_line;
use crate::template::{FilledTemplate, fill};
use crate::tools::{self, ToolOutput};

/// Similar verified queries that are tried as templates.
const TRIED: usize = 8;
/// Rows of an answer; more are counted.
const SHOWN_ROWS: usize = 20;
const SHOWN_CHARS: usize = 80;
/// The field of a result that names the verified query.
const VERIFIED: &str = "verified_query";

impl Turns<'_> {
    /// Answers from a verified query, where the question differs from its question in values only.
    pub(super) async fn answer_from_verified(&mut self) -> Result<Option<End>, FailureCause> {
        if !self.task.config.reuse_verified || !self.leaves_open_how() {
            return Ok(None);
        }
        let (task, question) = (self.task, self.task.request.question());
        let knowledge = task.catalog.knowledge();
        let database = task.request.database.as_deref();
        let similar = knowledge.similar_queries(task.session.principal(), database, &question, TRIED).await;
        let similar = similar.unwrap_or_else(|error| {
            tracing::warn!(code = error.code(), %error, "verified queries could not be read; the model answers");
            Vec::new()
        });
        for verified in similar.into_iter().map(|similar| similar.object) {
            let Some(filled) = fill(&verified.question, &verified.sql, &question) else { continue };
            let arguments = json!({ "sql": filled.sql, "database": verified.database });
            let started = std::time::Instant::now();
            let Ok(output) = tools::call(&self.context, tools::RUN_SQL, &arguments).await else { continue };
            if !answers_with(&output, &filled) {
                continue;
            }
            let basis = VerifiedBasis { id: verified.id, question: verified.question, values: filled.values };
            return self.say_verified(arguments, output, basis, elapsed_ms(started)).await.map(Some);
        }
        Ok(None)
    }

    /// Whether the request leaves open how it is answered.
    pub(super) fn leaves_open_how(&self) -> bool {
        let request = &self.task.request;
        self.structured.is_none()
            && request.resume.is_empty()
            && request.client_tools.is_empty()
            && request.tool_choice == ToolChoice::Auto
            && !request.bad_branch
            && request.input.iter().all(|message| message.images.is_empty())
            && self.budget.allows_calls()
    }

    async fn say_verified(
        &mut self,
        arguments: Value,
        mut output: ToolOutput,
        basis: VerifiedBasis,
        took_ms: u64,
    ) -> Result<End, FailureCause> {
        if std::mem::take(&mut self.is_yet_to_start) {
            self.task.say_started();
        }
        output.json[VERIFIED] = json!(basis);
        let text = answer_text(&output.json, &basis);
        self.assessment.verified_query = Some(basis);
        self.evidence.is_verified = true;
        self.say_rows(arguments, output, text, took_ms).await
    }

    /// Answers by the result of a query that the model has not sent.
    pub(super) async fn say_rows(
        &mut self,
        arguments: Value,
        output: ToolOutput,
        text: String,
        took_ms: u64,
    ) -> Result<End, FailureCause> {
        let name = model_name(tools::RUN_SQL, &self.task.request.client_tools);
        let call = ModelToolCall { id: Some(self.ids.next("call")), name, arguments };
        self.conversation.push_assistant(String::new(), vec![call.clone()]);
        self.call_with_result(call, output, took_ms)?;
        let mut speech = Speech::new(false);
        let mut said = Vec::new();
        speech.say_more(text, &mut self.ids, |kind| said.push(kind));
        let (item_id, text) = speech.finish(TextPhase::FinalAnswer, |kind| said.push(kind));
        self.task.handle.emit_all(said);
        self.said = item_id.clone().map(|item_id| (item_id, text.clone()));
        self.has_said_rows = true;
        self.finish(ModelReply { text, item_id, calls: Vec::new(), reason: DoneReason::Stop }).await?;
        Ok(End::Answered)
    }
}

/// Whether the rows of a filled query answer the question: it found something, and where its values were spelled as their
/// columns do, they still say all that the question says.
fn answers_with(output: &ToolOutput, filled: &FilledTemplate) -> bool {
    let rows = output.json["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_nothing = |value: &Value| value.is_null() || value.as_f64() == Some(0.0);
    let found_nothing = match rows {
        [] => true,
        [only] => only.as_object().is_some_and(|row| row.values().all(is_nothing)),
        _ => false,
    };
    // The verified query as it is may well find nothing; one with other values has perhaps misread them.
    if filled.values.is_empty() {
        return !rows.is_empty();
    }
    let changes = output.json["repaired"]["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let says_all = |change: &Value| {
        let text = |field: &str| folded_words(change[field].as_str().unwrap_or_default());
        let (from, to) = (text("from"), text("to"));
        change["kind"] != "literal" || from.iter().all(|word| to.contains(word))
    };
    // `Outside Narnia` are all rows.
    let checks = output.json["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_unknown = checks.iter().any(|check| check["kind"] == "literal");
    !found_nothing && !has_unknown && changes.iter().all(says_all)
}

/// Writes the answer of a verified query.
fn answer_text(result: &Value, basis: &VerifiedBasis) -> String {
    let values: Vec<String> = basis.values.iter().map(|value| value.to.clone()).collect();
    let with = if values.is_empty() { String::new() } else { format!(", filled in with {}", values.join(", ")) };
    format!("{}\n\nAnswered by a verified query{with}.", rows_text(result))
}

/// Writes rows as an answer.
pub(super) fn rows_text(result: &Value) -> String {
    let columns: Vec<&str> =
        result["columns"].as_array().into_iter().flatten().filter_map(|column| column["name"].as_str()).collect();
    let rows: Vec<&Value> = result["rows"].as_array().into_iter().flatten().collect();
    let cell = |row: &Value, column: &str| match &row[column] {
        Value::Null => "none".to_owned(),
        Value::String(text) => one_line(text, SHOWN_CHARS),
        other => one_line(&other.to_string(), SHOWN_CHARS),
    };
    match rows.as_slice() {
        [only] => {
            let cells: Vec<String> = columns.iter().map(|column| format!("{column}: {}", cell(only, column))).collect();
            format!("{}.", cells.join(", "))
        }
        rows => {
            let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
            let mut lines = vec![
                line(columns.iter().map(|column| (*column).to_owned()).collect()),
                line(columns.iter().map(|_| "---".to_owned()).collect()),
            ];
            let shown = rows.iter().take(SHOWN_ROWS);
            lines.extend(
                shown.map(|row| line(columns.iter().map(|column| cell(row, column).replace('|', "\\|")).collect())),
            );
            let count =
                result["row_count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(rows.len());
            if count > SHOWN_ROWS || result["truncated"] == true {
                lines.push(String::new());
                lines.push(format!("These are the first {} rows; there are more.", rows.len().min(SHOWN_ROWS)));
            }
            lines.join("\n")
        }
    }
}

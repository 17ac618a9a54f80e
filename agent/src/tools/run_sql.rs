//! `run_sql`: one query, its rows, what was repaired for it to run, and hints that help to correct it when it fails.

mod attempt;
mod hints;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

pub(crate) use self::attempt::FailedQueries;
use self::attempt::{Attempt, is_of_the_text, run_with_repairs};
pub(crate) use self::hints::REPEATED_QUERY;
use self::hints::{repeated_failure, with_repair_hint};
use super::arguments::ToolArguments;
use super::result_rows::ToolRows;
use super::{CHART, Tool, ToolContext, ToolError, ToolOutput, max_rows_argument};
use crate::config::MAX_TOOL_ROWS;
use crate::counter_checks::{CheckedQuery, Finding, check};
use crate::models::ToolSpec;
use crate::repair::weekday_note;
use crate::tokens::{estimate_tokens, take_tokens};

pub(super) const NAME: &str = "run_sql";
/// The field of a result that says what was repaired.
const REPAIRED: &str = "repaired";
/// The field of a result that says what the counter-checks found.
const CHECKS: &str = "checks";
/// The field of a result that says what its numbers are, where other systems have others.
const NOTE: &str = "note";
/// The field of a result that is true where some of them took too long.
const CHECKS_CUT: &str = "checks_cut";
/// The field of a result that is true where a query found nothing and its texts could not all be looked for in time.
const REPAIRS_CUT: &str = "repairs_cut";
/// What the model is told then.
const NOT_LOOKED_FOR: &str =
    "Not every text of the query could be looked for in its column in time: it may be spelled otherwise.";
/// What is said of repairs, and of checks, takes at most one such part of a result's tokens.
const NOTE_SHARE: usize = 3;

pub(super) struct RunSql;

#[async_trait]
impl Tool for RunSql {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("max_rows", MAX_TOOL_ROWS)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["query", CHART]
    }

    fn spec(&self, default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Run one SQL query and see its rows.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "sql": {"type": "string", "description": "One SELECT statement."},
                    "max_rows": max_rows_argument(default_rows),
                    "database": {"type": "string", "description": "Where bare table names are found, unless in the current database."},
                },
                "required": ["sql"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let offered = arguments.get(CHART);
        let mut arguments = ToolArguments::new(arguments);
        let sql = arguments.required("sql", &["query"]);
        let max_rows = arguments.count("max_rows", context.default_rows, 1..=MAX_TOOL_ROWS);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let sql = without_fence(&sql, "sql");
        let session = context.session.clone().in_database(database.as_deref()).await?;
        if context.failed_queries.has_failed(session.database(), sql) {
            return Err(repeated_failure(context, &session, sql).await);
        }
        match run_with_repairs(context, &session, sql, max_rows).await {
            Ok(Attempt { rows, repaired, is_cut: are_repairs_cut }) => {
                let ran = repaired.as_ref().map_or(sql, |repaired| repaired.sql.as_str());
                let CheckedQuery { findings, is_cut } =
                    check(&session, &context.at_hand, context.check_times, ran, rows.len()).await;
                // After the rows: a small model repeats what comes first.
                let changed = repaired.as_ref().map(|repaired| repaired.to_text(context.text_tokens / NOTE_SHARE));
                let checks = checks_text(&findings, context.text_tokens / NOTE_SHARE);
                let weekdays = weekday_note(ran);
                let not_looked_for = are_repairs_cut.then_some(NOT_LOOKED_FOR);
                let notes = [changed.as_deref(), checks.as_deref(), not_looked_for, weekdays];
                let cost: usize = notes.iter().flatten().map(|note| estimate_tokens(note) + 1).sum();
                let tokens = context.text_tokens.saturating_sub(cost);
                let table = result_text(&rows, tokens);
                let text: Vec<&str> = std::iter::once(table.as_str()).chain(notes.into_iter().flatten()).collect();
                let mut output = rows.output(text.join("\n"), offered);
                if let Some(repaired) = &repaired {
                    output.json[REPAIRED] = repaired.to_json(sql);
                }
                if !findings.is_empty() {
                    output.json[CHECKS] = json!(findings);
                }
                if let Some(note) = weekdays {
                    output.json[NOTE] = json!(note);
                }
                if is_cut {
                    output.json[CHECKS_CUT] = json!(true);
                }
                if are_repairs_cut {
                    output.json[REPAIRS_CUT] = json!(true);
                }
                let ran = repaired.map(|repaired| repaired.sql);
                Ok(ToolOutput { truncation: rows.truncation(tokens), ran, ..output })
            }
            Err(failure) => {
                // What is not allowed, or too much, is said again as it is.
                if is_of_the_text(&failure.error) {
                    context.failed_queries.insert(session.database(), sql);
                }
                Err(with_repair_hint(context, &session, &failure, sql).await)
            }
        }
    }
}

/// Returns the SQL text of a `run_sql` call, where it has one.
pub(crate) fn sql_argument(arguments: &Map<String, Value>) -> Option<String> {
    query_argument(arguments, "sql")
}

/// Returns the text of a call's query, which is under its language's name or `query`.
pub(super) fn query_argument(arguments: &Map<String, Value>, language: &str) -> Option<String> {
    let text =
        [language, "query"].iter().filter_map(|name| arguments.get(*name)).find(|value| !value.is_null())?.as_str()?;
    Some(without_fence(text.trim(), language).to_owned())
}

/// Removes the Markdown fence in which a small model sometimes wraps its query.
pub(super) fn without_fence<'t>(text: &'t str, language: &str) -> &'t str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.strip_prefix(language).unwrap_or(inner).trim()
}

/// Returns what the counter-checks found, for the model.
fn checks_text(findings: &[Finding], tokens: usize) -> Option<String> {
    let lines: Vec<String> = findings.iter().map(|finding| format!("Check: {}", finding.message)).collect();
    (!lines.is_empty()).then(|| take_tokens(&lines.join("\n"), tokens).to_owned())
}

fn result_text(rows: &ToolRows, tokens: usize) -> String {
    let text = rows.to_text(tokens);
    if rows.is_empty() {
        let note = "nothing matches: check the spelling and case of the values with SELECT DISTINCT, and the joins";
        return take_tokens(&format!("{text}\n{note}"), tokens).to_owned();
    }
    text
}

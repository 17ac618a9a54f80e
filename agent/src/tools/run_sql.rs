//! `run_sql`: one query, its rows, and hints that help to correct it when it fails.

use async_trait::async_trait;
use querent_catalog::{CatalogError, SearchRequest};
use querent_engine::EngineError;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::result_rows::ToolRows;
use super::{CHART, Tool, ToolContext, ToolError, ToolOutput, max_rows_argument, table_name};
use crate::config::MAX_TOOL_ROWS;
use crate::models::ToolSpec;
use crate::sql_text::{quote_identifier, relations_named_in};
use crate::tokens::take_tokens;

pub(super) const NAME: &str = "run_sql";
/// Tables whose columns a hint lists.
const HINTED_TABLES: usize = 3;
/// Tables that a hint suggests for an unknown one.
const SUGGESTED_TABLES: usize = 5;
/// A hint takes at most one such part of a result's tokens.
const HINT_SHARE: usize = 2;

pub(super) struct RunSql;

#[async_trait]
impl Tool for RunSql {
    fn name(&self) -> &'static str {
        NAME
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
        let outcome = async { ToolRows::read_and_count(session.sql(sql).await?, max_rows, context).await }.await;
        match outcome {
            Ok(rows) => {
                let output = rows.output(result_text(&rows, context.text_tokens), offered);
                Ok(ToolOutput { truncation: rows.truncation(context.text_tokens), ..output })
            }
            Err(error) => Err(with_repair_hint(context, &error, sql).await),
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

fn result_text(rows: &ToolRows, tokens: usize) -> String {
    let text = rows.to_text(tokens);
    if rows.is_empty() {
        let note = "nothing matches: check the spelling and case of the values with SELECT DISTINCT, and the joins";
        return take_tokens(&format!("{text}\n{note}"), tokens).to_owned();
    }
    text
}

/// Adds to the error what is needed to correct the query: the columns of the tables it names, tables that may be meant,
/// or which statements are allowed.
async fn with_repair_hint(context: &ToolContext, error: &EngineError, sql: &str) -> ToolError {
    let mut tool_error = ToolError { hint: error.hint(), ..ToolError::new(error.code(), error.to_string()) };
    let extra = match error {
        EngineError::Catalog(CatalogError::ColumnNotFound { .. })
        | EngineError::ColumnNotFound { .. }
        | EngineError::Plan { .. }
        | EngineError::InvalidValue { .. }
        | EngineError::Execution { .. } => columns_of_named_tables(context, sql).await,
        EngineError::Catalog(CatalogError::TableNotFound { .. }) => similar_tables(context, sql).await,
        EngineError::Parse { .. } => Some(
            "write one SELECT statement; text in 'single quotes', names in \"double quotes\" only if they need it"
                .to_owned(),
        ),
        EngineError::NotAllowed { .. } | EngineError::MultipleStatements { .. } => {
            Some("only one SELECT statement at a time is allowed".to_owned())
        }
        _ => None,
    };
    let hints: Vec<String> = tool_error.hint.take().into_iter().chain(extra).collect();
    if !hints.is_empty() {
        let hint = hints.join("; ");
        tool_error.hint = Some(take_tokens(&hint, context.text_tokens / HINT_SHARE).to_owned());
    }
    tool_error
}

async fn columns_of_named_tables(context: &ToolContext, sql: &str) -> Option<String> {
    let session = &context.session;
    let names: Vec<_> = relations_named_in(sql)
        .iter()
        .take(HINTED_TABLES)
        .map(|relation| table_name(session, None, relation))
        .collect();
    let resolved = session.engine().catalog().tables().resolve(session.principal(), &names).await.ok()?;
    let tables: Vec<String> = resolved
        .into_iter()
        .flatten()
        .map(|table| {
            let columns: Vec<String> = table.info.columns.iter().map(|column| quote_identifier(&column.name)).collect();
            format!("`{}` has the columns {}", table.info.name.table, columns.join(", "))
        })
        .collect();
    (!tables.is_empty()).then(|| tables.join("; "))
}

async fn similar_tables(context: &ToolContext, sql: &str) -> Option<String> {
    let session = &context.session;
    let request = SearchRequest { query: relations_named_in(sql).join(" "), database: None, limit: SUGGESTED_TABLES };
    let hits = session.engine().catalog().search().tables(session.principal(), &request).await.ok()?;
    let names: Vec<String> = hits.iter().map(|hit| format!("`{}`", hit.table.name)).collect();
    (!names.is_empty()).then(|| format!("tables that may be meant: {}", names.join(", ")))
}

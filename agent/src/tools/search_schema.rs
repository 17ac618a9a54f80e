//! `search_schema`: the tables that fit a question or keywords, why each was found, and how they join.

use async_trait::async_trait;
use querent_catalog::{SearchHit, SearchRequest, TableInfo};
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::table_view::{TableView, relationship_json, tables_text};
use super::{Tool, ToolContext, ToolError, ToolOutput};
use crate::models::ToolSpec;
use crate::prompt::own_tables_for;
use crate::tokens::estimate_tokens;

const NAME: &str = "search_schema";
const DEFAULT_TABLES: usize = 8;
const MAX_TABLES: usize = 20;
/// The server's own tables take at most one such part of the text.
const OWN_TABLES_SHARE: usize = 4;

pub(super) struct SearchSchema;

#[async_trait]
impl Tool for SearchSchema {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("top_k", MAX_TABLES)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["question", "keywords", "q"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Find tables by keywords, a question or a value.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Keywords or a question."},
                    "database": {"type": "string", "description": "Only tables of this database."},
                    "top_k": {"type": "integer", "description": format!("How many tables; {DEFAULT_TABLES} unless given, at most {MAX_TABLES}.")},
                },
                "required": ["query"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let query = arguments.required("query", &["question", "keywords", "q"]);
        let database = arguments.optional("database");
        let limit = arguments.count("top_k", DEFAULT_TABLES, 1..=MAX_TABLES);
        arguments.finish(NAME)?;
        let session = &context.session;
        let catalog = session.engine().catalog();
        // One more than requested shows whether there are more.
        let request = SearchRequest { query: query.clone(), database, limit: limit + 1 };
        let mut found = catalog.search().tables_with_columns(session.principal(), &request).await?;
        // What the settings leave out is nothing to act on.
        let missing = catalog.search().missing_meaning().filter(|missing| !missing.is_chosen);
        let truncated = found.len() > limit;
        found.truncate(limit);
        let ids: Vec<i64> = found.iter().map(|(_, info)| info.id).collect();
        let relationships = catalog.relationships().among(session.principal(), &ids).await?;

        let (hits, tables): (Vec<SearchHit>, Vec<(TableInfo, Option<String>)>) =
            found.into_iter().map(|(hit, info)| (hit.clone(), (info, note(&hit)))).unzip();
        let shown = TableView::with_samples(context, tables).await?;
        let tables: Vec<Value> = hits
            .iter()
            .zip(&shown)
            .map(|(hit, shown)| {
                let mut table = shown.to_json();
                table.insert("found_by".into(), json!(hit.found_by));
                table.insert("why".into(), json!(hit.why));
                Value::Object(table)
            })
            .collect();
        let edges: Vec<Value> = relationships.iter().map(relationship_json).collect();
        let own_tables = own_tables_for(&query, context.text_tokens / OWN_TABLES_SHARE);
        let left = match own_tables {
            "" => context.text_tokens,
            lines => context.text_tokens.saturating_sub(estimate_tokens(lines) + 2),
        };
        let mut text = tables_text(context, &shown, &relationships, &query, left);
        if text.is_empty() {
            text = "no table fits; try other words, or list_databases".to_owned();
        }
        let mut result = json!({
            "query": query, "tables": tables, "table_count": tables.len(), "relationships": edges,
            "truncated": truncated,
        });
        if !own_tables.is_empty() {
            text.push('\n');
            text.push_str(own_tables);
        }
        if let Some(missing) = missing {
            text.push_str("\nnote: tables were found by name and by text only; if one is missing, try its own words");
            result["missing_meaning"] = json!({ "reason": missing.reason, "hint": missing.hint });
        }
        Ok(ToolOutput::new(result, text))
    }
}

/// Returns why a table was found, for the model: the literal, the join, or the earlier query.
fn note(hit: &SearchHit) -> Option<String> {
    const MAX_REASONS: usize = 2;
    (!hit.why.is_empty()).then(|| hit.why.iter().take(MAX_REASONS).cloned().collect::<Vec<_>>().join("; "))
}

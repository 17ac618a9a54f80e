//! How several tools show tables and relationships: bounded JSON for the event stream, one line each for the model.

use querent_catalog::{Relationship, TableInfo};
use serde_json::{Map, Value, json};

use super::json_value::shortened;
use super::{ToolContext, ToolError};
use crate::prompt::{Examples, SchemaTable, render_schema};
use crate::prompt_form::JoinForm;

/// Columns of one table in the event's view.
const MAX_COLUMNS: usize = 60;
const MAX_COMMENT_CHARS: usize = 160;
/// Values of one column.
pub(super) const SAMPLES_PER_COLUMN: usize = 3;

/// A table with some values of its columns, and a note.
pub(super) struct TableView {
    pub(super) info: TableInfo,
    pub(super) samples: Examples,
    pub(super) note: Option<String>,
}

impl TableView {
    /// Reads some values of the tables' columns.
    pub(super) async fn with_samples(
        context: &ToolContext,
        tables: Vec<(TableInfo, Option<String>)>,
    ) -> Result<Vec<Self>, ToolError> {
        let ids: Vec<i64> = tables.iter().map(|(info, _)| info.id).collect();
        let session = &context.session;
        session.engine().queue_profiles(tables.iter().map(|(info, _)| info.name.clone()));
        let mut samples =
            session.engine().catalog().values().sample(session.principal(), &ids, SAMPLES_PER_COLUMN).await?;
        let shown = tables.into_iter().map(|(info, note)| Self {
            samples: samples.remove(&info.id).unwrap_or_default().into_iter().collect(),
            info,
            note,
        });
        Ok(shown.collect())
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        let info = &self.info;
        let columns: Vec<Value> = info
            .columns
            .iter()
            .take(MAX_COLUMNS)
            .map(|column| {
                let mut json = json!({ "name": column.name, "type": column.data_type.to_string() });
                if let Some(comment) = &column.comment {
                    json["comment"] = json!(shortened(comment, MAX_COMMENT_CHARS));
                }
                json
            })
            .collect();
        let mut json = Map::new();
        json.insert("database".into(), json!(info.name.database));
        json.insert("table".into(), json!(info.name.table));
        if let Some(comment) = &info.comment {
            json.insert("comment".into(), json!(shortened(comment, MAX_COMMENT_CHARS)));
        }
        if let Some(row_count) = info.row_count {
            json.insert("row_count".into(), json!(row_count));
        }
        json.insert("columns".into(), Value::Array(columns));
        if info.columns.len() > MAX_COLUMNS {
            json.insert("more_columns".into(), json!(info.columns.len() - MAX_COLUMNS));
        }
        if !self.samples.is_empty() {
            json.insert("sample_values".into(), json!(self.samples));
        }
        json
    }
}

/// Renders the tables in at most `tokens` tokens, columns that `question` is about first.
pub(super) fn tables_text(
    context: &ToolContext,
    tables: &[TableView],
    relationships: &[Relationship],
    question: &str,
    tokens: usize,
) -> String {
    let tables: Vec<SchemaTable<'_>> = tables
        .iter()
        .map(|shown| SchemaTable {
            info: &shown.info,
            examples: &shown.samples,
            note: shown.note.as_deref(),
            shows_types: true,
        })
        .collect();
    render_schema(&tables, relationships, JoinForm::Lines, context.session.database(), question, tokens)
}

/// Returns `{from, to, on, origin, confidence, why}`.
pub(super) fn relationship_json(one: &Relationship) -> Value {
    json!({
        "from": one.from.to_string(),
        "to": one.to.to_string(),
        "on": one.condition(),
        "origin": one.origin,
        "confidence": (f64::from(one.confidence) * 100.0).round() / 100.0,
        "why": one.why,
    })
}

//! `describe_table`: a table's columns with types and comments, and a few of its rows.

use async_trait::async_trait;
use querent_catalog::{TableInfo, TableName};
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::json_value::shortened;
use super::result_rows::ToolRows;
use super::{Tool, ToolContext, ToolError, ToolOutput, table_name};
use crate::event::Truncation;
use crate::models::ToolSpec;
use crate::sql_text::{quote_identifier, quoted_table, sql_type};
use crate::tokens::{estimate_tokens, take_tokens};

const NAME: &str = "describe_table";
const SAMPLE_ROWS: usize = 3;
/// Columns in the event's view; the text is cut by its tokens.
const MAX_COLUMNS: usize = 1_000;
const MAX_COMMENT_CHARS: usize = 160;

pub(super) struct DescribeTable;

#[async_trait]
impl Tool for DescribeTable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["table_name"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Show all columns of a table, and some rows.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "table": {"type": "string", "description": "The table, or database.table."},
                    "database": {"type": "string", "description": "The table's database, unless it is the current one."},
                },
                "required": ["table"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let table = arguments.required("table", &["table_name"]);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let description = TableDescription::read(context, table_name(&context.session, database, &table)?).await?;
        let samples = samples(context, &description.name).await;
        let text = description.to_text(&samples, context.text_tokens);
        let whole = description.to_text(&samples, usize::MAX);
        let truncation = (text != whole)
            .then(|| Truncation { end_index: text.chars().count(), original_tokens: estimate_tokens(&whole) });
        Ok(ToolOutput { truncation, ..ToolOutput::new(description.to_json(&samples), text) })
    }
}

/// A table as known without reading its rows.
struct TableDescription {
    name: TableName,
    comment: Option<String>,
    row_count: Option<u64>,
    columns: Vec<DescribedColumn>,
}

struct DescribedColumn {
    name: String,
    arrow_type: String,
    sql_type: String,
    nullable: bool,
    comment: Option<String>,
}

impl TableDescription {
    async fn read(context: &ToolContext, name: TableName) -> Result<Self, ToolError> {
        let session = &context.session;
        let catalog = session.engine().catalog();
        let resolved = catalog.tables().resolve(session.principal(), std::slice::from_ref(&name)).await?;
        match resolved.into_iter().next().flatten() {
            Some(resolved) => Ok(resolved.info.into()),
            None => Self::from_plan(context, name).await,
        }
    }

    /// Describes what the catalog does not store, the system tables, by the schema of a query over it. For an unknown
    /// name planning also gives the error with the nearest name.
    async fn from_plan(context: &ToolContext, name: TableName) -> Result<Self, ToolError> {
        let plan = context.session.plan_sql(&format!("SELECT * FROM {}", quoted_table(&name))).await?;
        let columns = plan.schema().fields().iter().map(|field| DescribedColumn {
            name: field.name().clone(),
            arrow_type: field.data_type().to_string(),
            sql_type: sql_type(field.data_type()),
            nullable: field.is_nullable(),
            comment: None,
        });
        Ok(Self { name, comment: None, row_count: None, columns: columns.collect() })
    }

    fn to_json(&self, samples: &Result<ToolRows, ToolError>) -> Value {
        let columns: Vec<Value> = self.columns.iter().take(MAX_COLUMNS).map(DescribedColumn::to_json).collect();
        let mut description = json!({
            "database": self.name.database,
            "table": self.name.table,
            "columns": columns,
            "truncated": self.columns.len() > MAX_COLUMNS,
        });
        if let Some(comment) = &self.comment {
            description["comment"] = json!(comment);
        }
        if let Some(row_count) = self.row_count {
            description["row_count"] = json!(row_count);
        }
        match samples {
            Ok(rows) => description["sample_rows"] = Value::Array(rows.json_rows()),
            Err(error) => description["sample_error"] = error.to_json()["error"].take(),
        }
        description
    }

    /// Returns the text for the model; at most half of the tokens are for the columns.
    fn to_text(&self, samples: &Result<ToolRows, ToolError>, tokens: usize) -> String {
        let mut head = format!("table {}.{}", self.name.database, self.name.table);
        if let Some(row_count) = self.row_count {
            head.push_str(&format!(", {row_count} rows"));
        }
        if let Some(comment) = &self.comment {
            head.push_str(&format!(": {}", shortened(comment, MAX_COMMENT_CHARS)));
        }
        let mut lines = vec![head];
        let for_columns = tokens / 2;
        let mut used = estimate_tokens(&lines[0]);
        for (shown, column) in self.columns.iter().enumerate() {
            let line = column.to_line();
            used += estimate_tokens(&line) + 1;
            if used > for_columns {
                lines.push(format!("(truncated: {} more columns)", self.columns.len() - shown));
                break;
            }
            lines.push(line);
        }
        let mut text = lines.join("\n");
        match samples {
            Ok(rows) => {
                text.push_str("\nsample rows:\n");
                text.push_str(&rows.to_text(tokens.saturating_sub(estimate_tokens(&text) + 1)));
            }
            Err(error) => text.push_str(&format!("\nits rows cannot be read: {}", error.message)),
        }
        take_tokens(&text, tokens).to_owned()
    }
}

impl From<TableInfo> for TableDescription {
    fn from(info: TableInfo) -> Self {
        let columns = info.columns.into_iter().map(|column| DescribedColumn {
            arrow_type: column.data_type.to_string(),
            sql_type: sql_type(&column.data_type),
            name: column.name,
            nullable: column.nullable,
            comment: column.comment,
        });
        Self { columns: columns.collect(), name: info.name, comment: info.comment, row_count: info.row_count }
    }
}

impl DescribedColumn {
    fn to_json(&self) -> Value {
        let mut column = json!({ "name": self.name, "type": self.arrow_type, "nullable": self.nullable });
        if let Some(comment) = &self.comment {
            column["comment"] = json!(comment);
        }
        column
    }

    fn to_line(&self) -> String {
        let not_null = if self.nullable { "" } else { " NOT NULL" };
        let comment = self.comment.as_ref().map(|comment| format!(": {}", shortened(comment, MAX_COMMENT_CHARS)));
        format!("{} {}{not_null}{}", quote_identifier(&self.name), self.sql_type, comment.unwrap_or_default())
    }
}

/// Reads the first rows, not a random sample: a description is the same each time, so that a recorded run can be
/// replayed. A table whose files cannot be read can still be described.
async fn samples(context: &ToolContext, name: &TableName) -> Result<ToolRows, ToolError> {
    let sql = format!("SELECT * FROM {} LIMIT {SAMPLE_ROWS}", quoted_table(name));
    Ok(ToolRows::read(context.session.sql(&sql).await?, SAMPLE_ROWS).await?)
}

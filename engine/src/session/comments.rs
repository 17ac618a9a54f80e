//! Comments of a table and of its columns that are set at once.

use querent_catalog::TableName;

use super::Session;
use crate::error::Result;
use crate::identifiers::quote_identifier;
use crate::sql::write_statement::{CommentTarget, WriteStatement};

impl Session {
    /// Sets comments of a table and of its columns, all of them or none: of each the column, where it is one's, and the comment,
    /// without which it is taken away. Rights and the audit log are those of `COMMENT ON`.
    pub async fn set_comments(&self, table: &TableName, comments: Vec<(Option<String>, Option<String>)>) -> Result<()> {
        let written: Vec<String> =
            comments.iter().map(|(column, comment)| statement(table, column.as_deref(), comment.as_deref())).collect();
        let target = CommentTarget::Several(table.clone(), comments);
        let plan = WriteStatement::Comment { target, comment: None, if_missing_ok: false }.into_plan();
        let plan = self.authorize(plan)?.of_text(&written.join("; "));
        self.execute(plan).await?.collect().await?;
        Ok(())
    }
}

/// Returns the statement that sets one of them.
fn statement(table: &TableName, column: Option<&str>, comment: Option<&str>) -> String {
    let comment = comment.map_or_else(|| "NULL".to_owned(), |comment| format!("'{}'", comment.replace('\'', "''")));
    let table = format!("{}.{}", quote_identifier(&table.database), quote_identifier(&table.table));
    match column {
        None => format!("COMMENT ON TABLE {table} IS {comment}"),
        Some(column) => format!("COMMENT ON COLUMN {table}.{} IS {comment}", quote_identifier(column)),
    }
}

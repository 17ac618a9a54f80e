//! The plain form: after the second query that failed, the model is asked once outside the conversation, by nothing but the
//! definitions of one database's tables and the question. A small model sends one failing query again and again; asked in this
//! form, it writes another.

use std::fmt::Write as _;
use std::time::Instant;

use querent_catalog::{TableInfo, TableName};
use serde_json::{Map, Value, json};

use super::Turns;
use super::calls::CallOutcome;
use crate::event::ToolCallStarted;
use crate::models::actions::TurnRequest;
use crate::models::{ChatMessage, ChatRole, ToolChoice};
use crate::repair::{TablesAtHand, query_in_database};
use crate::run::elapsed_ms;
use crate::sql_text::{shown_identifier, sql_type};
use crate::tools;

/// How many replies as slow as the last one must fit into the time that is left.
const REPLIES_LEFT: u32 = 2;
/// The field of a result that says so.
const PLAIN_FORM: &str = "asked_again";

impl Turns<'_> {
    /// Whether the model is asked in the plain form on the result of a call.
    pub(super) fn asks_plainly(&self, call: &ToolCallStarted, (outcome, _): &CallOutcome) -> bool {
        let is_second = self.evidence.failed_queries > 0 && matches!(outcome, Err(error) if error.may_retry);
        is_second
            && self.capabilities.small
            && !self.has_asked_plainly
            && call.tool == tools::RUN_SQL
            && self.task.request.client_tools.is_empty()
            && !self.context.at_hand.tables.is_empty()
            && self.turn_took.saturating_mul(REPLIES_LEFT) <= self.time_left()
    }

    /// Asks for a query in the plain form and runs it. Returns its rows, and the database where its names resolve if they do not
    /// everywhere, or the outcome that there was.
    pub(super) async fn ask_plainly(&self, (failed, took_ms): CallOutcome) -> (CallOutcome, Option<String>) {
        let begun = Instant::now();
        let Some((database, definitions)) = definitions(&self.context.at_hand) else {
            return ((failed, took_ms), None);
        };
        let question = self.asked_question().map(|message| message.content).unwrap_or_default();
        let prompt = format!(
            "Given this schema:\n{definitions}\nWrite one PostgreSQL query that answers the question. Reply with the query in a \
             ```sql fence and nothing else.\nQuestion: {question}"
        );
        let request = TurnRequest {
            tools: Vec::new(),
            tool_choice: ToolChoice::None,
            may_answer: true,
            variation: 0,
            ..self.turn_request(vec![ChatMessage::text(ChatRole::User, prompt)])
        };
        let written = match self.written_query(request).await {
            Ok(Some(written)) => written,
            Ok(None) => return ((failed, took_ms), None),
            Err(error) => {
                tracing::warn!(code = error.code(), %error, "asking for a query in the plain form failed");
                return ((failed, took_ms), None);
            }
        };
        let sql = tools::sql_argument(&written).unwrap_or_default();
        // Names that are qualified resolve wherever the query is run again.
        let (sql, resolves_in) = match query_in_database(&sql, &database, &self.context.at_hand.tables) {
            Some(qualified) => (qualified, None),
            None => (sql, Some(database.clone())),
        };
        let mut arguments = Map::from_iter([("sql".to_owned(), json!(sql))]);
        arguments.extend(resolves_in.iter().map(|name| ("database".to_owned(), json!(name))));
        let outcome = tools::call(&self.context, tools::RUN_SQL, &Value::Object(arguments)).await;
        let took_ms = took_ms + elapsed_ms(begun);
        let Ok(mut output) = outcome else { return ((failed, took_ms), None) };
        let ran = output.ran.take().unwrap_or(sql);
        output.json[PLAIN_FORM] = json!({ "sql": ran, "database": database });
        output.text = format!("The model was asked again, and this query ran instead: {ran}\n{}", output.text);
        output.ran = Some(ran);
        ((Ok(output), took_ms), resolves_in)
    }
}

/// Returns the definitions of the shown tables of one database, the one of the best table, and its name.
fn definitions(at_hand: &TablesAtHand) -> Option<(String, String)> {
    let database = &at_hand.tables.first()?.name.database;
    let tables: Vec<&TableInfo> = at_hand.tables.iter().filter(|table| table.name.database == *database).collect();
    let is_shown = |name: &TableName| tables.iter().any(|table| table.name == *name);
    let mut definitions = String::new();
    for table in &tables {
        let mut parts: Vec<String> = table
            .columns
            .iter()
            .map(|column| format!("{} {}", shown_identifier(&column.name), sql_type(&column.data_type)))
            .collect();
        for key in at_hand.relationships.iter().filter(|key| key.from == table.name && is_shown(&key.to)) {
            let names =
                |columns: &[String]| columns.iter().map(|name| shown_identifier(name)).collect::<Vec<_>>().join(", ");
            parts.push(format!(
                "FOREIGN KEY ({}) REFERENCES {} ({})",
                names(&key.from_columns),
                shown_identifier(&key.to.table),
                names(&key.to_columns)
            ));
        }
        // Writing to a String does not fail.
        let _ = writeln!(definitions, "CREATE TABLE {} ({});", shown_identifier(&table.name.table), parts.join(", "));
    }
    Some((database.clone(), definitions))
}

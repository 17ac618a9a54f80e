//! `.show running queries` and `.show cluster`: what the server does now, in the columns of Kusto's commands.

use chrono::{SecondsFormat, Utc};
use querent_catalog::Principal;
use querent_engine::kql::{KqlType, timespan_text};
use serde_json::{Value, json};

use super::table::{CommandTable, TEXT};
use crate::state::AppState;

/// Whose queries a command lists, of those that its caller may see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WhoseQueries {
    Own,
    All,
    Of(String),
}

/// `.show running queries`. By `ClientActivityId`, its client's id of the request or its number, `.cancel query` ends a query.
pub(super) fn running_queries(state: &AppState, who: &Principal, whose: &WhoseQueries) -> CommandTable {
    let now = Utc::now();
    let is_wanted = |subject: &str| match whose {
        WhoseQueries::Own => subject == who.subject(),
        WhoseQueries::All => true,
        WhoseQueries::Of(user) => subject == user,
    };
    let queries = state.engine.queries(who).into_iter().filter(|query| is_wanted(&query.subject));
    let rows = queries.map(|query| {
        vec![
            json!(query.request_id.clone().unwrap_or_else(|| query.id.to_string())),
            json!(query.statement),
            json!(query.default_database),
            json!(query.started_at.to_rfc3339_opts(SecondsFormat::Micros, true)),
            json!(now.to_rfc3339_opts(SecondsFormat::Micros, true)),
            json!(timespan_text((now - query.started_at).to_std().unwrap_or_default())),
            json!("InProgress"),
            Value::Null,
            json!(query.subject),
            json!(""),
            Value::Null,
            Value::Null,
            json!(""),
            json!(query.memory_bytes),
            Value::Null,
            json!(query.subject),
            Value::Null,
            Value::Null,
            json!(""),
        ]
    });
    CommandTable {
        columns: vec![
            ("ClientActivityId", TEXT),
            ("Text", TEXT),
            ("Database", TEXT),
            ("StartedOn", KqlType::DateTime),
            ("LastUpdatedOn", KqlType::DateTime),
            ("Duration", KqlType::TimeSpan),
            ("State", TEXT),
            ("RootActivityId", KqlType::Guid),
            ("User", TEXT),
            ("FailureReason", TEXT),
            ("TotalCpu", KqlType::TimeSpan),
            ("CacheStatistics", KqlType::Dynamic),
            ("Application", TEXT),
            ("MemoryPeak", KqlType::Long),
            ("ScannedExtentsStatistics", KqlType::Dynamic),
            ("Principal", TEXT),
            ("ClientRequestProperties", KqlType::Dynamic),
            ("ResultSetStatistics", KqlType::Dynamic),
            ("WorkloadGroup", TEXT),
        ],
        rows: rows.collect(),
    }
}

/// `.show cluster`: one row, this server. Memory of its machine is not told.
pub(super) fn cluster(state: &AppState) -> CommandTable {
    let processors = std::thread::available_parallelism().map_or(Value::Null, |count| json!(count.get()));
    CommandTable {
        columns: vec![
            ("NodeId", TEXT),
            ("Address", TEXT),
            ("Name", TEXT),
            ("StartTime", KqlType::DateTime),
            ("IsAdmin", KqlType::Bool),
            ("MachineTotalMemory", KqlType::Long),
            ("MachineAvailableMemory", KqlType::Long),
            ("ProcessorCount", KqlType::Int),
            ("EnvironmentDescription", TEXT),
        ],
        rows: vec![vec![
            json!("Querent"),
            json!(""),
            json!("Querent"),
            json!(state.started_at.to_rfc3339_opts(SecondsFormat::Micros, true)),
            json!(true),
            Value::Null,
            Value::Null,
            processors,
            json!(""),
        ]],
    }
}

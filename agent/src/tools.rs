//! The agent's tools: functions over a [`Session`], one file each. A call is a plain async call; its result stays Arrow
//! until it is encoded once, into rows of JSON. There are two views of it: the bounded JSON of the events and a shorter
//! text for the model. A failure is data, never an error of the run.

mod arguments;
mod create_table_as;
mod describe_table;
mod explore_schema;
mod find_references_to;
mod graph_traverse;
mod insert_rows;
mod json_value;
mod list_databases;
mod result_rows;
mod run_kql;
mod run_sql;
mod sample_rows;
mod save_verified_query;
mod search_schema;
mod table_view;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use querent_catalog::{CatalogError, TableName};
use querent_engine::{EngineError, Session};
use serde_json::{Map, Value, json};

use crate::config::{CheckTimes, MAX_TOOL_ROWS};
use crate::event::{ResultTicket, Truncation};
use crate::models::ToolSpec;
use crate::repair::TablesAtHand;
use crate::results::ResultStore;
use crate::sql_text::{quoted_table, split_name};
use crate::tokens::{estimate_tokens, take_tokens};

use json_value::shortened;

pub(crate) use arguments::arguments_object;
pub use result_rows::chart_of_batches;
pub(crate) use run_kql::kql_argument;
pub(crate) use run_sql::{FailedQueries, REPEATED_QUERY, sql_argument};

/// The name of the tool whose text becomes `kql_used`.
pub(crate) const RUN_KQL: &str = run_kql::NAME;
/// The name of the tool whose text becomes `sql_used`.
pub(crate) const RUN_SQL: &str = run_sql::NAME;

/// The argument of the tools that run a query in which a model says how to plot the rows.
const CHART: &str = "chart";

/// One tool.
#[async_trait]
pub(crate) trait Tool: Send + Sync {
    /// Returns its name, as in its spec.
    fn name(&self) -> &'static str;
    /// Returns its arguments that are numbers, with the most of each; the least is 1.
    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[]
    }
    /// Returns the names that it takes beside those of its spec.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// Describes it to a model; `default_rows` as in [`ToolContext::default_rows`].
    fn spec(&self, default_rows: usize) -> ToolSpec;
    /// Executes a call.
    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError>;
}

/// What every call of a run works with.
pub(crate) struct ToolContext {
    /// Reads as the caller, in the request's database.
    pub(crate) session: Session,
    /// Writes as the caller may; absent where no tool may write.
    pub(crate) writer: Option<Session>,
    /// Tokens of a result's text.
    pub(crate) text_tokens: usize,
    /// Rows of a result when the model does not say.
    pub(crate) default_rows: usize,
    /// Whether the request names a branch of the data that does not exist.
    pub(crate) bad_branch: bool,
    /// Keeps the rows of queries; absent where the caller could not fetch them.
    pub(crate) results: Option<Arc<ResultStore>>,
    /// The tables that the prompt shows: what a query that fails is repaired by.
    pub(crate) at_hand: TablesAtHand,
    /// The question in lower case, where its tables may be in any database and it does not go on with an earlier one.
    pub(crate) open_question: Option<String>,
    /// How long the counter-checks of a query may take.
    pub(crate) check_times: CheckTimes,
    /// What the run has tried in vain.
    pub(crate) failed_queries: FailedQueries,
}

impl ToolContext {
    /// Computes an expression over numbers by the engine; `None` where it has no value.
    pub(crate) async fn compute(&self, expression: &str) -> Option<f64> {
        let sql = format!("SELECT CAST({expression} AS DOUBLE)");
        let (batches, _) = self.session.sql(&sql).await.ok()?.collect().await.ok()?;
        let column = batches.first()?.columns().first()?;
        column.as_any().downcast_ref::<arrow::array::Float64Array>()?.iter().next().flatten()
    }
}

/// What a full name of a table begins with.
const CATALOG: &str = "querent";

/// Characters of an error's message and of its hint: both may quote what was sent.
const MAX_MESSAGE_CHARS: usize = 1_500;

/// A result in its two views.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolOutput {
    /// For the event stream and the trace.
    pub(crate) json: Value,
    /// For the model; not above [`ToolContext::text_tokens`].
    pub(crate) text: String,
    /// Where `text` was cut, if it was.
    pub(crate) truncation: Option<Truncation>,
    /// A Vega-Lite specification of the result, without its data.
    pub(crate) chart: Option<Value>,
    /// Of the rows, where they are kept.
    pub(crate) ticket: Option<ResultTicket>,
    /// The query that ran, where it is not the one that was sent.
    pub(crate) ran: Option<String>,
}

impl ToolOutput {
    /// Creates an untruncated result without a chart.
    pub(crate) fn new(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), truncation: None, chart: None, ticket: None, ran: None }
    }

    /// Creates a result whose text is cut to `tokens` tokens.
    pub(crate) fn within(json: Value, text: &str, tokens: usize) -> Self {
        let kept = take_tokens(text, tokens);
        let truncation = (kept.len() < text.len())
            .then(|| Truncation { end_index: kept.chars().count(), original_tokens: estimate_tokens(text) });
        Self { truncation, ..Self::new(json, kept) }
    }
}

impl ToolOutput {
    /// Returns the result of a call, which says of arguments that the tool does not have that they did nothing.
    fn beside_ignored(mut self, tool: &dyn Tool, arguments: &Map<String, Value>, context: &ToolContext) -> Self {
        const MAX_NAMED: usize = 5;
        let spec = tool.spec(context.default_rows);
        let is_taken = |name: &str| spec.parameters["properties"].get(name).is_some() || tool.aliases().contains(&name);
        let ignored: Vec<String> = arguments
            .iter()
            .filter(|(name, value)| !value.is_null() && !is_taken(name))
            .take(MAX_NAMED)
            .map(|(name, _)| shortened(name, 100))
            .collect();
        if ignored.is_empty() {
            return self;
        }
        let note = format!("\nnote: {} has no argument {}, which did nothing", spec.name, ignored.join(", "));
        let room = context.text_tokens.saturating_sub(estimate_tokens(&note) + 1);
        self.text = format!("{}{note}", take_tokens(&self.text, room));
        if let Some(fields) = self.json.as_object_mut() {
            fields.insert("ignored_arguments".to_owned(), json!(ignored));
        }
        self
    }
}

/// A failure as the model and the event stream see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolError {
    /// Stable, snake_case.
    pub(crate) code: String,
    /// What was wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Whether the model is asked to correct the call: not where somebody decided against it.
    pub(crate) may_retry: bool,
}

impl ToolError {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: shortened(&message.into(), MAX_MESSAGE_CHARS),
            hint: None,
            may_retry: true,
        }
    }

    /// Creates the error of a call that somebody decided against, or that nobody can decide.
    pub(crate) fn refusal(code: &str, message: impl Into<String>) -> Self {
        Self { may_retry: false, ..Self::new(code, message) }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(shortened(&hint.into(), MAX_MESSAGE_CHARS)), ..self }
    }

    /// Returns `{"error": {"code", "message", "hint"?}}`.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        json!({ "error": error })
    }

    /// Returns what the model reads: what failed, what helps, what to do next.
    pub(crate) fn to_text(&self, tool: &str) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        let again = if self.may_retry { format!("\nCorrect this and call {tool} again.") } else { String::new() };
        format!("{tool} failed: {}{hint}{again}", self.message)
    }
}

impl From<EngineError> for ToolError {
    fn from(error: EngineError) -> Self {
        let hint = error.hint().map(|hint| shortened(&hint, MAX_MESSAGE_CHARS));
        Self { hint, ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<CatalogError> for ToolError {
    fn from(error: CatalogError) -> Self {
        EngineError::from(error).into()
    }
}

/// Every tool that reads, in the order in which they are described to a model: the most useful first.
pub(crate) const TOOLS: [&dyn Tool; 9] = [
    &run_sql::RunSql,
    &describe_table::DescribeTable,
    &sample_rows::SampleRows,
    &list_databases::ListDatabases,
    &search_schema::SearchSchema,
    &explore_schema::ExploreSchema,
    &find_references_to::FindReferencesTo,
    &run_kql::RunKql,
    &graph_traverse::GraphTraverseTool,
];
/// How many of them are described to a small model: its prompt has room for few, and of many it calls the wrong one.
const TOOLS_OF_SMALL: usize = 4;

/// Tools that write, where the server offers them. None is executed before a person has approved the call.
const WRITERS: [&dyn Tool; 3] =
    [&create_table_as::CreateTableAs, &insert_rows::InsertRows, &save_verified_query::SaveVerifiedQuery];

/// Describes the tools to a model. A small model may also call those that are not described to it.
pub(crate) fn specs(small: bool, with_writers: bool, default_rows: usize) -> Vec<ToolSpec> {
    let offered = if small { TOOLS_OF_SMALL } else { TOOLS.len() };
    let writers = WRITERS.iter().filter(|_| with_writers);
    let mut specs: Vec<ToolSpec> =
        TOOLS.iter().take(offered).chain(writers).map(|tool| tool.spec(default_rows)).collect();
    if !small {
        for spec in specs.iter_mut().filter(|spec| [RUN_SQL, RUN_KQL].contains(&spec.name.as_str())) {
            spec.parameters["properties"][CHART] = chart_argument();
        }
    }
    specs
}

/// Describes the tools that read to a client that holds calls to their schemas: with the bounds of numbers, and without
/// other arguments.
pub(crate) fn strict_specs(default_rows: usize) -> Vec<ToolSpec> {
    let mut specs = specs(false, false, default_rows);
    for (spec, tool) in specs.iter_mut().zip(TOOLS) {
        spec.parameters["additionalProperties"] = json!(false);
        for (name, most) in tool.counts() {
            spec.parameters["properties"][*name]["minimum"] = json!(1);
            spec.parameters["properties"][*name]["maximum"] = json!(most);
        }
    }
    specs
}

/// Describes [`CHART`] to a model; not to a small one, which would fill it in with nonsense.
fn chart_argument() -> Value {
    json!({
        "type": "object",
        "description": "How to plot the rows, where the usual chart does not suit. Name columns of the result.",
        "properties": {
            "mark": {"type": "string", "enum": ["bar", "line", "area", "point"]},
            "x": {"type": "string"},
            "y": {"type": "string"},
            "color": {"type": "string"},
            "title": {"type": "string"},
        },
    })
}

/// Describes the argument that bounds the rows of a query's result.
fn max_rows_argument(default_rows: usize) -> Value {
    let description = format!("Rows to return; {default_rows} unless given, at most {MAX_TOOL_ROWS}.");
    json!({ "type": "integer", "description": description })
}

/// Whether an answer rests on the rows of the tool `name`: those of a query, and not of a look at a table.
pub(crate) fn answers(name: &str) -> bool {
    [RUN_SQL, RUN_KQL, graph_traverse::NAME].contains(&name)
}

/// Whether the tool `name` writes.
pub(crate) fn writes(name: &str) -> bool {
    WRITERS.iter().any(|tool| tool.name() == name)
}

/// Returns the name of this server's tool `name`, if there is such a tool.
pub fn known_tool(name: &str) -> Option<&'static str> {
    TOOLS.iter().chain(&WRITERS).map(|tool| tool.name()).find(|known| *known == name)
}

/// Returns the names of the tools, with those that write or without.
pub fn tool_names(with_writers: bool) -> impl Iterator<Item = String> {
    let writers = WRITERS.iter().filter(move |_| with_writers);
    TOOLS.iter().chain(writers).map(|tool| tool.name().to_owned())
}

/// Calls the tool `name`.
pub(crate) async fn call(context: &ToolContext, name: &str, arguments: &Value) -> Result<ToolOutput, ToolError> {
    if context.bad_branch {
        return Err(ToolError::new("bad_request", "Bad branch").with_hint("the data has no branch but `main`"));
    }
    let writers = WRITERS.iter().filter(|_| context.writer.is_some());
    let Some(tool) = TOOLS.iter().chain(writers).find(|tool| tool.name() == name) else {
        let names: Vec<String> = TOOLS.iter().map(|tool| format!("`{}`", tool.name())).collect();
        return Err(ToolError::new("unknown_tool", format!("unknown tool `{}`", shortened(name, 100)))
            .with_hint(format!("the tools are {}", names.join(", "))));
    };
    let arguments = arguments_object(arguments)?;
    let called = AssertUnwindSafe(tool.call(context, &arguments)).catch_unwind().await;
    let called = called
        .unwrap_or_else(|_| Err(ToolError::new("internal", format!("{name} panicked; this is a bug in the server"))));
    called.map(|output| output.beside_ignored(*tool, &arguments, context))
}

/// Returns the table a call is about: `table`, `database.table` or `querent.database.table`, or with `database` apart.
/// Errors: `invalid_arguments` where two databases are named, or there are more parts.
fn table_name(session: &Session, database: Option<String>, table: &str) -> Result<TableName, ToolError> {
    let mut parts = split_name(table);
    let name = parts.pop().unwrap_or_default();
    let own = parts.pop();
    let is_known = parts.pop().is_none_or(|catalog| catalog.eq_ignore_ascii_case(CATALOG)) && parts.is_empty();
    if !is_known {
        let message =
            format!("`{table}` is no name of a table: write table, database.table or {CATALOG}.database.table");
        return Err(ToolError::new("invalid_arguments", message));
    }
    if let (Some(own), Some(other)) = (&own, &database)
        && !own.eq_ignore_ascii_case(other)
    {
        let message = format!("`{table}` is of the database `{own}`, and `database` is `{other}`; name one of them");
        return Err(ToolError::new("invalid_arguments", message));
    }
    let database = own.or(database).unwrap_or_else(|| session.database().to_owned());
    Ok(TableName { database, table: name })
}

/// Returns the session that writes. Errors: `not_allowed` where there is none.
fn writer(context: &ToolContext) -> Result<&Session, ToolError> {
    context.writer.as_ref().ok_or_else(|| ToolError::new("not_allowed", "nothing may be written here"))
}

/// Counts the rows of a table that was just written.
async fn rows_written(session: &Session, name: &TableName) -> Result<u64, ToolError> {
    let (batches, _) = session.sql(&format!("SELECT count(*) FROM {}", quoted_table(name))).await?.collect().await?;
    let count = batches.first().and_then(|batch| {
        let counts = batch.columns().first()?.as_any().downcast_ref::<arrow::array::Int64Array>()?;
        counts.iter().next().flatten()
    });
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
}

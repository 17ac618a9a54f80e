//! The agent's read-only tools for callers that bring a model of their own: their list, and calls as the caller.
//!
//! A call only reads, whatever else its session may do, ends within the session's wall clock, and stops its query when
//! it is dropped. A failure is a reply, so that the caller's model can correct its call.

use std::sync::{Arc, LazyLock};

use querent_engine::{EngineError, Session};
use serde_json::{Map, Value};
use tracing::Instrument;

use crate::config::{AgentConfig, CheckTimes};
use crate::models::ToolSpec;
use crate::protocols::{VEGA_SPEC, add_ticket};
use crate::repair::TablesAtHand;
use crate::results::ResultStore;
use crate::telemetry;
use crate::tools::{self, FailedQueries, ToolContext, ToolError, ToolOutput};

static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| tools::strict_specs(AgentConfig::DEFAULT.default_tool_rows));

/// What stands for the argument with a query, whatever its language.
const QUERY: &str = "query";

/// How long a reply may be, and what is checked of it. The tools' descriptions name the default rows of [`AgentConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBounds {
    /// Rows of a result when the caller does not say.
    pub default_rows: usize,
    /// Tokens of the text.
    pub text_tokens: usize,
    /// How long the counter-checks of a query may take.
    pub check_times: CheckTimes,
}

/// The result of a tool in its two views.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// An object within fixed bounds, with a `vegaSpec` where the rows are worth a chart and a `ticket` where they are
    /// kept; `{"error": {"code",
    /// "message", "hint"?}}` for a failure.
    pub json: Value,
    /// For a model; of a failure, what was wrong and what to do.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Returns every tool, the most useful first.
pub fn specs() -> &'static [ToolSpec] {
    &SPECS
}

/// Finds the tool of that name.
pub fn find(name: &str) -> Option<&'static ToolSpec> {
    SPECS.iter().find(|spec| spec.name == name)
}

/// Calls the tool `name`. `results` keeps the rows of queries, where the caller can fetch them.
pub async fn call(
    session: Session,
    bounds: ReplyBounds,
    results: Option<Arc<ResultStore>>,
    name: &str,
    arguments: Map<String, Value>,
) -> ToolReply {
    if let Some(error) = find(name).and_then(|spec| misfit(spec, &arguments)) {
        return failure(name, &error);
    }
    let limit = session.limits().wall_clock;
    let context = ToolContext {
        session: session.read_only(),
        writer: None,
        text_tokens: bounds.text_tokens,
        default_rows: bounds.default_rows,
        bad_branch: false,
        results,
        at_hand: TablesAtHand::default(),
        open_question: None,
        check_times: bounds.check_times,
        failed_queries: FailedQueries::default(),
    };
    let arguments = Value::Object(arguments);
    let span = telemetry::tool_span(tools::known_tool(name).unwrap_or("unknown"), None);
    let called = tools::call(&context, name, &arguments).instrument(span.clone());
    let called = tokio::time::timeout(limit, called).await;
    if let Ok(Err(error)) = &called {
        telemetry::record_failure(&span, &error.code);
    }
    match called.unwrap_or_else(|_| Err(EngineError::WallClockExceeded { limit }.into())) {
        Ok(ToolOutput { mut json, text, chart, ticket, .. }) => {
            if let (Some(chart), Some(fields)) = (chart, json.as_object_mut()) {
                fields.insert(VEGA_SPEC.to_owned(), chart);
            }
            add_ticket(&mut json, ticket.as_ref());
            ToolReply { json, text, is_error: false }
        }
        Err(error) => failure(name, &error),
    }
}

/// Returns what of the arguments the tool's schema does not have; null is as good as absent.
fn misfit(spec: &ToolSpec, arguments: &Map<String, Value>) -> Option<ToolError> {
    let properties = spec.parameters["properties"].as_object()?;
    let mut problems = Vec::new();
    for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
        let Some(schema) = properties.get(name) else {
            // The word for either language's query, which many models use.
            if name != QUERY || !["sql", "kql"].iter().any(|language| properties.contains_key(*language)) {
                problems.push(format!("there is no argument `{name}`"));
            }
            continue;
        };
        if schema["type"] == "object" && !value.is_object() {
            problems.push(format!("`{name}` must be an object"));
        }
        let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        if let (Some(least), Some(most), Some(number)) =
            (schema["minimum"].as_f64(), schema["maximum"].as_f64(), number)
            && !(least..=most).contains(&number)
        {
            problems.push(format!("`{name}` must be between {least} and {most}"));
        }
    }
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    let taken = if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") };
    let error = || ToolError::new("invalid_arguments", problems.join("; "));
    (!problems.is_empty()).then(|| error().with_hint(format!("{} takes {taken}", spec.name)))
}

/// Returns the reply to a call whose database does not exist or may not be seen, worded as the tool itself words it.
pub fn refusal(name: &str, error: EngineError) -> ToolReply {
    failure(name, &error.into())
}

fn failure(name: &str, error: &ToolError) -> ToolReply {
    ToolReply { json: error.to_json(), text: error.to_text(name), is_error: true }
}

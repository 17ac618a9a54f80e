//! The Model Context Protocol's server: the agent's read-only tools, and the schemas as resources.
//!
//! The server is independent of the transport. Every call runs as its caller: HTTP puts the caller into each request's
//! parts, and a process on its own data folder has a fixed one. A tool that fails returns a result that says so; only a
//! request that names something unknown is a protocol error.

mod app;
mod ask;
mod client_requests;
mod elicitation;
mod logging;
mod message;
mod progress;
mod prompts;
mod resources;
mod schemas;
mod uri;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use querent_agent::models::ToolSpec;
use querent_agent::toolbox::{self, ReplyBounds, ToolReply};
use querent_agent::{Agent, AgentConfig, CheckTimes, ResultStore};
use querent_catalog::Principal;
use querent_engine::{Engine, Limits};
#[expect(deprecated, reason = "clients of the revisions before 2026-07-28 send it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode as RpcErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, Tool, ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::admission::{Admission, Door};
use crate::error::{ApiError, ErrorCode};
use crate::metrics;
use crate::telemetry::RequestSpan;
pub(crate) use client_requests::{ClientChannel, OpenRequests};
use elicitation::ElicitingCall;
pub(crate) use logging::SessionLogLevel;
use logging::{CallLog, Severity};
pub(crate) use message::{ClientAbilities, RpcMessage, refusal};
use progress::ProgressReport;
pub(crate) use uri::percent_decoded;

/// Bounds of a tool's reply. A client's model has more room than the small models that the agent is tuned for.
const REPLY_BOUNDS: ReplyBounds = ReplyBounds {
    default_rows: AgentConfig::DEFAULT.default_tool_rows,
    text_tokens: 4_000,
    check_times: CheckTimes::DEFAULT,
};

/// Returns what a client's model reads of the server.
fn instructions() -> String {
    let default_rows = REPLY_BOUNDS.default_rows;
    format!(
        "\
Querent answers questions about tables with SQL and KQL. Nothing can be changed through these tools. \
Find tables with search_schema or explore_schema, look at one with describe_table, and then query with run_sql \
(DataFusion's dialect: PostgreSQL-like, names are lowercase unless quoted) or run_kql. \
Name a table as database.table; bare names are of the database `default`. \
Aggregate and filter in the query: results are cut at {default_rows} rows unless max_rows says otherwise. \
Schemas are resources too: querent://schema/{{database}} and querent://schema/{{database}}/{{table}}."
    )
}

/// Methods whose requests reach the fallback only if their parameters could not be read.
const KNOWN_METHODS: [&str; 10] = [
    "initialize",
    SET_LEVEL,
    "prompts/get",
    "prompts/list",
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
];

/// Methods among them that are none since the revision 2026-07-28.
const REMOVED_METHODS: [&str; 2] = ["initialize", SET_LEVEL];
const SET_LEVEL: &str = "logging/setLevel";
/// The most characters of a resource's address that an error repeats.
const MAX_REPEATED_URI: usize = 1_000;

/// Who calls, and where bare names resolve.
#[derive(Debug, Clone)]
pub(crate) struct McpCaller {
    /// The caller.
    pub(crate) principal: Principal,
    /// `None`: `default`.
    pub(crate) database: Option<String>,
    /// Cancelled when the caller stops waiting.
    pub(crate) gone: CancellationToken,
    /// Which messages of the log its session wants; `None` without a session.
    pub(crate) log_level: Option<SessionLogLevel>,
    /// Whether its session began with the announcement that the client shows apps.
    pub(crate) shows_apps: bool,
    /// The way to the client of its session, where that asks its user what the server wants to know.
    pub(crate) client: Option<ClientChannel>,
}

/// The protocol's handler. Cheap to clone.
#[derive(Clone)]
pub(crate) struct McpServer {
    inner: Arc<McpContext>,
}

struct McpContext {
    engine: Engine,
    admission: Admission,
    limits: Limits,
    /// Answers questions, and keeps the rows of queries where the callers can fetch them.
    agent: Option<Agent>,
    /// The caller of requests that do not bring one.
    caller: Option<McpCaller>,
}

impl McpServer {
    /// Makes a handler whose requests bring their [`McpCaller`] in the extensions of their HTTP parts.
    pub(crate) fn for_requests(engine: Engine, admission: Admission, limits: Limits, agent: Agent) -> Self {
        Self { inner: Arc::new(McpContext { engine, admission, limits, agent: Some(agent), caller: None }) }
    }

    /// Makes a handler for one caller.
    pub(crate) fn for_caller(engine: Engine, admission: Admission, limits: Limits, caller: McpCaller) -> Self {
        Self { inner: Arc::new(McpContext { engine, admission, limits, agent: None, caller: Some(caller) }) }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<McpCaller, ErrorData> {
        let sent =
            context.extensions.get::<http::request::Parts>().and_then(|parts| parts.extensions.get::<McpCaller>());
        let caller = sent.or(self.inner.caller.as_ref()).cloned();
        caller.ok_or_else(|| rpc_error(&ApiError::internal("an MCP request came without its caller")))
    }

    /// Returns the tools, of which the agent is one where there is one.
    fn specs(&self) -> impl Iterator<Item = &'static ToolSpec> {
        toolbox::specs().iter().chain(self.inner.agent.is_some().then(ask::spec))
    }

    async fn reply(
        &self,
        caller: McpCaller,
        spec: &'static ToolSpec,
        arguments: Map<String, Value>,
        conversation: Option<String>,
        progress: &ProgressReport,
    ) -> ToolReply {
        let McpContext { engine, admission, limits, agent, .. } = &*self.inner;
        if let Some(agent) = agent.as_ref().filter(|_| spec.name == prompts::ASK) {
            // Its queries are admitted one by one, as those of every run.
            return ask::call(agent, &caller.principal, caller.database, &arguments, conversation, progress).await;
        }
        let results: Option<Arc<ResultStore>> = agent.as_ref().map(|agent| Arc::clone(agent.results()));
        let mut permit = match admission.admit(&caller.principal, Door::Mcp).await {
            Ok(permit) => permit,
            Err(error) => return refused_reply(&spec.name, &error),
        };
        let session = engine.session(caller.principal, limits.clone()).through("mcp");
        let check_times = agent.as_ref().map_or(CheckTimes::DEFAULT, |agent| agent.config().check_times);
        let bounds = ReplyBounds { check_times, ..REPLY_BOUNDS };
        let reply = match session.in_database(caller.database.as_deref()).await {
            Ok(session) => toolbox::call(session, bounds, results, &spec.name, arguments).await,
            Err(error) => toolbox::refusal(&spec.name, error),
        };
        match reply.is_error {
            true => permit.failed(),
            false => permit.succeeded(reply.json["row_count"].as_u64().unwrap_or_default()),
        }
        reply
    }

    /// As [`McpServer::reply`], and where `ask` asks which reading is meant, and the client of the session asks its user, with the
    /// choice.
    async fn chosen_reply(
        &self,
        mut caller: McpCaller,
        spec: &'static ToolSpec,
        mut arguments: Map<String, Value>,
        conversation: Option<String>,
        progress: &ProgressReport,
    ) -> ToolReply {
        let client = caller.client.take().filter(|_| spec.name == prompts::ASK && conversation.is_none());
        let Some(client) = client else { return self.reply(caller, spec, arguments, conversation, progress).await };
        let conversation = Some(elicitation::new_conversation());
        let reply = self.reply(caller.clone(), spec, arguments.clone(), conversation.clone(), progress).await;
        let Some(choice) = elicitation::choice_of(&client, &reply).await else { return reply };
        arguments.insert("question".to_owned(), Value::String(choice));
        self.reply(caller, spec, arguments, conversation, progress).await
    }
}

impl ServerHandler for McpServer {
    #[expect(deprecated, reason = "clients of the revisions before 2026-07-28 ask for messages of the log")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .enable_extensions_with(app::extension())
            .build();
        let implementation = Implementation::new("querent", env!("CARGO_PKG_VERSION")).with_title("Querent");
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(instructions())
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(page)?;
        let shows_apps = self.caller(&context)?.shows_apps || app::is_announced(&context);
        let with_app = |spec: &'static ToolSpec| {
            let mut tool = tool(spec);
            tool.meta = app::meta_of_tool(&spec.name).filter(|_| shows_apps);
            tool
        };
        Ok(ListToolsResult::with_all_items(self.specs().map(with_app).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.specs().find(|spec| spec.name == name).map(tool)
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let cursor = page.and_then(|page| page.cursor);
        prompts::list(self.inner.engine.catalog(), &caller.principal, cursor.as_deref())
            .await
            .map_err(|error| rpc_error(&error))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let prompt = prompts::get(self.inner.engine.catalog(), &caller.principal, &request).await;
        Ok(prompt.map_err(|error| rpc_error(&error))?.into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut caller = self.caller(&context)?;
        let spec = self.specs().find(|spec| spec.name == request.name);
        let spec = spec.ok_or_else(|| unknown_tool(self.specs(), &request.name))?;
        let progress = ProgressReport::new(&context);
        let can_ask = spec.name == prompts::ASK && elicitation::is_possible(&context);
        let eliciting = match can_ask {
            true => ElicitingCall::from_request(&request, self.inner.engine.catalog(), &caller.principal)
                .await
                .map_err(|error| rpc_error(&error))?,
            false => None,
        };
        if can_ask {
            // Its user is asked by the result of the call.
            caller.client = None;
        }
        let mut arguments = request.arguments.unwrap_or_default();
        if let Some(choice) = eliciting.as_ref().and_then(|call| call.choice.clone()) {
            arguments.insert("question".to_owned(), Value::String(choice));
        }
        let conversation = eliciting.as_ref().map(|call| call.conversation.clone());
        let gone = caller.gone.clone();
        // Another task than the request's answers it.
        let parts = context.extensions.get::<http::request::Parts>();
        let span = parts.and_then(|parts| parts.extensions.get::<RequestSpan>());
        let span = span.map_or_else(Span::none, |RequestSpan(span)| span.clone());
        let log = CallLog::new(&context, caller.log_level.as_ref());
        log.say(Severity::Debug, json!({ "message": format!("{} began", spec.name), "tool": spec.name })).await;
        let mut call = ToolMetrics { tool: &spec.name, outcome: "cancelled", started: Instant::now() };
        let reply = tokio::select! {
            biased;
            () = context.ct.cancelled() => None,
            () = gone.cancelled() => None,
            reply = self.chosen_reply(caller, spec, arguments, conversation, &progress).instrument(span) => Some(reply),
            never = progress.tick() => match never {},
        };
        let Some(reply) = reply else { return Err(ErrorData::internal_error("the call was cancelled", None)) };
        call.outcome = if reply.is_error { "error" } else { "success" };
        let elapsed_ms = u64::try_from(call.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let said = match reply.is_error {
            true => (Severity::Error, format!("{} failed", spec.name)),
            false => (Severity::Info, format!("{} answered", spec.name)),
        };
        let (code, rows) = (&reply.json["error"]["code"], &reply.json["row_count"]);
        let data =
            json!({ "message": said.1, "tool": spec.name, "elapsed_ms": elapsed_ms, "code": code, "row_count": rows });
        log.say(said.0, data).await;
        if let Some(question) = eliciting.and_then(|call| call.question(&reply)) {
            return Ok(question.into());
        }
        let content = vec![ContentBlock::text(reply.text)];
        let mut result = match reply.is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        result.structured_content = Some(reply.json);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        let cursor = page.and_then(|page| page.cursor);
        resources::list(self.inner.engine.catalog(), &caller.principal, cursor.as_deref())
            .await
            .map_err(|error| rpc_error(&error))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(page)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        if let Some(app) = app::read(&request.uri) {
            return Ok(app.into());
        }
        let read = resources::read(&self.inner.engine, &caller.principal, &request.uri).await;
        Ok(read.map_err(|error| resource_error(&error, &request.uri))?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context)?;
        resources::complete(self.inner.engine.catalog(), &caller.principal, request)
            .await
            .map_err(|error| rpc_error(&error))
    }

    #[expect(deprecated, reason = "clients of the revisions before 2026-07-28 send it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_newest(&context) {
            return Err(no_method(SET_LEVEL));
        }
        match self.caller(&context)?.log_level {
            Some(session) => {
                session.set(request.level);
                Ok(())
            }
            None => Err(rpc_error(
                &ApiError::new(ErrorCode::InvalidRequest, "there is no session whose level could be set").with_hint(
                    "begin one with `initialize`, or say io.modelcontextprotocol/logLevel in the `_meta` of each request",
                ),
            )),
        }
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(not_done("resources/subscribe", "read the resource again when it matters"))
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(not_done("resources/unsubscribe", "there are no subscriptions"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let is_removed = is_newest(&context) && REMOVED_METHODS.contains(&method.as_str());
        if KNOWN_METHODS.contains(&method.as_str()) && !is_removed {
            let why = params_fault(&method, params).map(|why| format!(": {why}")).unwrap_or_default();
            let message = format!("the params are not what {method} takes{why}");
            return Err(ErrorData::invalid_params(message, Some(json!({ "code": ErrorCode::InvalidRequest }))));
        }
        Err(no_method(&method))
    }
}

/// Returns what is wrong with params that the protocol library could not read.
fn params_fault(method: &str, params: Option<Value>) -> Option<String> {
    fn fault_of<T: DeserializeOwned>(params: Value) -> Option<String> {
        serde_json::from_value::<T>(params).err().map(|error| cut(&error.to_string()))
    }
    let params = params.unwrap_or_else(|| json!({}));
    match method {
        "initialize" => fault_of::<InitializeRequestParams>(params),
        "tools/call" => fault_of::<CallToolRequestParams>(params),
        "prompts/get" => fault_of::<GetPromptRequestParams>(params),
        "resources/read" => fault_of::<ReadResourceRequestParams>(params),
        "completion/complete" => fault_of::<CompleteRequestParams>(params),
        SET_LEVEL => Some("the levels are debug, info, notice, warning, error, critical, alert, emergency".to_owned()),
        _ => None,
    }
}

/// Whether a request is of a revision since 2026-07-28, which has no sessions.
fn is_newest(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method {}", cut(method));
    ErrorData::new(RpcErrorCode::METHOD_NOT_FOUND, message, Some(json!({ "code": ErrorCode::NotFound })))
}

/// Returns the refusal of a method of the protocol that this server does not have.
fn not_done(method: &str, hint: &str) -> ErrorData {
    let data = json!({ "code": ErrorCode::NotFound, "hint": hint });
    ErrorData::new(RpcErrorCode::METHOD_NOT_FOUND, format!("{method} is not supported here: {hint}"), Some(data))
}

/// Refuses a cursor for a list that has one page.
fn only_page(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        None => Ok(()),
        Some(_) => Err(rpc_error(
            &ApiError::new(ErrorCode::BadParameter, "the cursor is not one of this list, which has one page")
                .with_hint("leave the cursor out"),
        )),
    }
}

/// Counts a call when it is dropped, however the call ended.
struct ToolMetrics {
    tool: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Drop for ToolMetrics {
    fn drop(&mut self) {
        metrics::tool_call(self.tool, self.outcome, self.started.elapsed());
    }
}

fn tool(spec: &'static ToolSpec) -> Tool {
    let schema = schemas::without_lists_of_types(&spec.parameters).as_object().cloned().unwrap_or_default();
    let title = title(&spec.name);
    let annotations =
        ToolAnnotations::with_title(&title).read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(Cow::Borrowed(spec.name.as_str()), Cow::Borrowed(spec.description.as_str()), schema)
        .with_title(title)
        .with_annotations(annotations)
        .with_raw_output_schema(schemas::output_of(&spec.name))
}

/// Returns a tool's name as a title: `run_sql` becomes `Run SQL`.
fn title(name: &str) -> String {
    let words = name.split('_').enumerate().map(|(place, word)| match (place, word) {
        (_, "sql" | "kql") => word.to_uppercase(),
        (0, _) => word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<String>>().join(" ")
}

fn unknown_tool(specs: impl Iterator<Item = &'static ToolSpec>, name: &str) -> ErrorData {
    let known: Vec<&str> = specs.map(|spec| spec.name.as_str()).collect();
    let hint = format!("the tools are {}", known.join(", "));
    let data = json!({ "code": ErrorCode::UnknownTool, "hint": hint });
    ErrorData::invalid_params(format!("unknown tool `{}`", cut(name)), Some(data))
}

/// Returns the server's refusal of a call as the tool's result.
pub(crate) fn refused_reply(tool: &str, error: &ApiError) -> ToolReply {
    metrics::error(error.code().as_str());
    let json = json!({ "error": { "code": error.code(), "message": error.message() } });
    ToolReply { json, text: format!("{tool} failed: {}", error.message()), is_error: true }
}

/// Returns an error in the protocol's shape, with our own code in `data`.
fn rpc_error(error: &ApiError) -> ErrorData {
    metrics::error(error.code().as_str());
    let mut data = json!({ "code": error.code() });
    if let Some(hint) = error.hint() {
        data["hint"] = json!(hint);
    }
    let code = match error.code() {
        ErrorCode::NotFound | ErrorCode::TableNotFound | ErrorCode::DatabaseNotFound | ErrorCode::ObjectNotFound => {
            RpcErrorCode::RESOURCE_NOT_FOUND
        }
        code if code.http_status().is_client_error() => RpcErrorCode::INVALID_PARAMS,
        _ => RpcErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.message().to_owned(), Some(data))
}

/// Returns the error of reading a resource, with its address beside the code, as the protocol wants it.
fn resource_error(error: &ApiError, uri: &str) -> ErrorData {
    let mut refusal = rpc_error(error);
    if let Some(data) = &mut refusal.data {
        data["uri"] = json!(uri.chars().take(MAX_REPEATED_URI).collect::<String>());
    }
    refusal
}

/// Cuts what a client sent to a length that can be repeated in a message.
fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_titles_for_people() {
        assert_eq!(title("run_sql"), "Run SQL");
        assert_eq!(title("find_references_to"), "Find references to");
    }
}

//! Tools that write: every call waits for a person in protocols that can ask one, and is refused in the others. A
//! decision is executed once.

use std::sync::Arc;

use futures::StreamExt;
use querent_agent::models::scripted::{ScriptedModel, from_value};
use querent_agent::protocols::responses::{ResponsesDialect, ResponsesRenderer, parse_items, response_id};
use querent_agent::protocols::{Frame, Renderer};
use querent_agent::{
    Agent, AgentConfig, AgentError, AskRequest, ContinueError, Continued, EventKind, Protocol, RunEvent, RunRequest,
    events_of,
};
use querent_catalog::{Principal, Role, RunStatus};
use querent_engine::{Engine, Limits};
use querent_tests::script::tool_call;
use serde_json::{Value, json};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_is_executed_once_and_the_answer_follows() {
    let fixture = ApprovalFixture::new(create_then_say("It is made.")).await;
    let (paused, response) = fixture.respond(&json!("Keep the busy carriers"), None).await;
    assert_eq!(response["status"], "completed");
    let request = item(&response, "mcp_approval_request");
    assert_eq!((&request["name"], &request["server_label"]), (&json!("create_table_as"), &json!("querent")));
    assert!(!fixture.exists("busy").await, "nothing before a person has said yes");

    // Without a conversation or a response: the request's id is enough.
    let approval = json!([{"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true}]);
    let (resumed, response) = fixture.respond(&approval, None).await;
    assert_ne!(resumed, paused);
    assert!(fixture.exists("busy").await);
    let call = item(&response, "mcp_call");
    assert_eq!((&call["status"], &call["approval_request_id"]), (&json!("completed"), &request["id"]));
    assert_eq!(response["output_text"], "It is made.");

    // Again: the stored outcome, and nothing is executed. The other way round it comes too late.
    fixture.execute("DROP TABLE busy").await;
    assert_eq!(fixture.respond(&approval, None).await, (resumed.clone(), response.clone()));
    let denial = json!([{"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": false}]);
    let (run, items) = (RunRequest::new(Protocol::Responses, Vec::new()), parse_items(&denial).unwrap());
    let refused = fixture.agent.continue_with(&fixture.who, run, items, None, None).await;
    assert!(matches!(refused, Err(ContinueError::Agent(AgentError::AlreadyResumed { .. }))));
    assert!(!fixture.exists("busy").await);

    // A client that sends the whole history continues from there.
    let history = json!([
        {"role": "user", "content": "Keep the busy carriers"},
        request,
        {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true},
        call,
        {"role": "assistant", "content": [{"type": "output_text", "text": "It is made."}]},
        {"role": "user", "content": "thanks"},
    ]);
    let (_, response) = fixture.respond(&history, None).await;
    assert_eq!(response["output_text"], "You are welcome.");
}

/// Nobody would know afterwards that it was executed.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_is_not_executed_where_its_run_cannot_be_stored_before() {
    let fixture = ApprovalFixture::new(create_then_say("It is not made.")).await;
    let (_, response) = fixture.respond(&json!("Keep the busy carriers"), None).await;
    let request = item(&response, "mcp_approval_request");
    let store = rusqlite::Connection::open(fixture.folder.path().join("data").join("catalog.sqlite")).unwrap();
    let full = "CREATE TRIGGER is_full BEFORE UPDATE ON querent_run WHEN NEW.status = 'running'
                BEGIN SELECT RAISE(ABORT, 'no room'); END";
    store.execute_batch(full).unwrap();

    let approval = json!([{"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true}]);
    let (resumed, response) = fixture.respond(&approval, None).await;
    assert!(!fixture.exists("busy").await, "{response}");
    let call = item(&response, "mcp_call");
    assert!(call["error"].to_string().contains("was not executed"), "{call}");
    assert_eq!(response["output_text"], "It is not made.");

    // It was decided all the same, and is not executed later.
    store.execute_batch("DROP TRIGGER is_full").unwrap();
    assert_eq!(fixture.respond(&approval, None).await, (resumed, response));
    assert!(!fixture.exists("busy").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_learns_of_a_denied_call() {
    let fixture = ApprovalFixture::new(create_then_say("Then not.")).await;
    let (paused, response) = fixture.respond(&json!("Keep the busy carriers"), None).await;
    let request = item(&response, "mcp_approval_request");
    let denial = json!([
        {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": false, "reason": "too large"},
    ]);
    let (_, response) = fixture.respond(&denial, Some(&paused)).await;
    assert_eq!(response["output_text"], "Then not.");
    assert!(response["output"].as_array().unwrap().iter().all(|item| item["type"] != "mcp_call"), "{response}");
    let told = fixture.model.requests().last().unwrap().messages.last().unwrap().content.clone();
    assert!(told.contains("denied") && told.contains("too large"), "{told}");
    assert!(!fixture.exists("busy").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_decided_is_left() {
    let fixture = ApprovalFixture::new(create_then_say("never said")).await;
    let (paused, _) = fixture.respond(&json!("Keep the busy carriers"), None).await;
    let (_, response) = fixture.respond(&json!("thanks"), Some(&paused)).await;
    assert_eq!(response["output_text"], "You are welcome.");
    let messages = fixture.model.requests().last().unwrap().messages.clone();
    assert!(messages.iter().any(|message| message.content.contains("not executed")), "{messages:?}");
    assert!(!fixture.exists("busy").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_their_owners_and_forged_ones_are_refused() {
    let fixture = ApprovalFixture::new(create_then_say("It is made.")).await;
    let (_, response) = fixture.respond(&json!("Keep the busy carriers"), None).await;
    let request = item(&response, "mcp_approval_request");
    let approve = |id: &Value| json!([{"type": "mcp_approval_response", "approval_request_id": id, "approve": true}]);
    let mallory = Principal::new("mallory", Role::Write);
    for (who, id) in [(&mallory, &request["id"]), (&fixture.who, &json!("mcpr_forged"))] {
        let items = parse_items(&approve(id)).unwrap();
        let request = RunRequest::new(Protocol::Responses, Vec::new());
        assert!(fixture.agent.continue_with(who, request, items, None, None).await.is_err());
    }
    assert!(!fixture.exists("busy").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_verified_queries_are_written_too() {
    let script = json!({"runs": [{"turns": [
        {"events": [
            tool_call("insert_rows", json!({"table": "flights", "rows": [{"carrier": "it's", "origin": null}, {"carrier": "BB", "dep_delay": 3}]})),
            tool_call("save_verified_query", json!({"question": "How many flights?", "sql": "SELECT count(*) FROM flights"})),
        ]},
        {"events": [{"text": "Done."}]},
    ]}]});
    let fixture = ApprovalFixture::new(script).await;
    let (paused, response) = fixture.respond(&json!("Do it"), None).await;
    let approvals: Vec<Value> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "mcp_approval_request")
        .map(|item| json!({"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": true}))
        .collect();
    assert_eq!(approvals.len(), 2);
    let (_, response) = fixture.respond(&json!(approvals), Some(&paused)).await;
    let failures: Vec<&Value> =
        response["output"].as_array().unwrap().iter().filter(|item| !item["error"].is_null()).collect();
    assert_eq!(response["output_text"], "Done.", "{failures:?}");
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(fixture.count("flights").await, 4);
    let queries =
        fixture.agent.catalog().knowledge().similar_queries(&fixture.who, None, "How many flights?", 1).await.unwrap();
    assert_eq!(queries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_the_call_is_refused() {
    let fixture = ApprovalFixture::new(create_then_say("I may not.")).await;
    let request = AskRequest {
        question: "Keep the busy carriers".to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };
    let events: Vec<_> = fixture.agent.ask(&fixture.who, request).await.unwrap().events.collect().await;
    let refused = events.iter().any(|event| match &event.kind {
        EventKind::ToolResult(result) => result.result["error"]["code"] == "approval_unavailable",
        _ => false,
    });
    assert!(refused, "{events:#?}");
    assert!(!fixture.exists("busy").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_no_tool_that_writes() {
    let fixture = ApprovalFixture::new(create_then_say("I may not.")).await;
    let request = RunRequest::new(
        Protocol::Responses,
        vec![querent_agent::models::ChatMessage::text(querent_agent::models::ChatRole::User, "Keep the busy carriers")],
    );
    let reader = Principal::new("reader", Role::Read);
    let run = fixture.agent.start(&reader, RunRequest { can_approve: true, ..request }).await.unwrap();
    let events: Vec<_> = run.events.collect().await;
    assert!(events.iter().all(|event| !matches!(event.kind, EventKind::ApprovalRequested(_))), "{events:#?}");
    assert!(fixture.model.requests()[0].tools.iter().all(|tool| tool.name != "create_table_as"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_log_renders_to_the_same_bytes() {
    let fixture = ApprovalFixture::new(create_then_say("It is made.")).await;
    let run = fixture.start(&json!("Keep the busy carriers"), None).await;
    let live = frames(run.events.map(|event| RunEvent::clone(&event)).collect::<Vec<_>>().await);
    let stored = fixture.agent.get_run(&fixture.who, run.run_id).await.unwrap();
    assert_eq!(stored.status, RunStatus::Paused);
    assert_eq!(live, frames(events_of(&stored).unwrap()));
    let replayed = fixture.agent.events(&fixture.who, run.run_id, 0).await.unwrap();
    assert_eq!(live, frames(replayed.map(|event| RunEvent::clone(&event)).collect::<Vec<_>>().await));
}

struct ApprovalFixture {
    folder: TempDir,
    engine: Engine,
    model: Arc<ScriptedModel>,
    agent: Agent,
    who: Principal,
}

impl ApprovalFixture {
    async fn new(script: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path().join("data")).await.unwrap();
        let model = Arc::new(from_value(script).unwrap());
        let config = AgentConfig { write_tools: true, ..AgentConfig::default() };
        let agent = Agent::new(engine.clone(), Arc::<ScriptedModel>::clone(&model), config);
        let fixture = Self { folder, engine, model, agent, who: Principal::new("ann", Role::Write) };
        let flights = "VALUES ('UA', 'EWR', 2), ('AA', 'JFK', -1)";
        fixture
            .execute(&format!("CREATE TABLE flights AS SELECT * FROM ({flights}) AS t(carrier, origin, dep_delay)"))
            .await;
        fixture
    }

    async fn execute(&self, sql: &str) {
        let session = self.engine.session(Principal::local_admin(), Limits::default());
        session.sql(sql).await.unwrap().collect().await.unwrap();
    }

    async fn exists(&self, table: &str) -> bool {
        let session = self.engine.session(Principal::local_admin(), Limits::default());
        session.sql(&format!("SELECT * FROM {table}")).await.is_ok()
    }

    async fn count(&self, table: &str) -> usize {
        let session = self.engine.session(Principal::local_admin(), Limits::default());
        let (batches, _) = session.sql(&format!("SELECT * FROM {table}")).await.unwrap().collect().await.unwrap();
        batches.iter().map(|batch| batch.num_rows()).sum()
    }

    async fn start(&self, input: &Value, previous: Option<&str>) -> querent_agent::AgentRun {
        let items = parse_items(input).unwrap();
        let request =
            RunRequest { can_approve: true, retained: true, ..RunRequest::new(Protocol::Responses, Vec::new()) };
        let continued = self.agent.continue_with(&self.who, request, items, None, previous).await;
        match continued.unwrap_or_else(|error| panic!("{error:?}")) {
            Continued::Start(request) => self.agent.start(&self.who, *request).await.unwrap(),
            Continued::Replay(run_id) => {
                querent_agent::AgentRun { run_id, events: self.agent.events(&self.who, run_id, 0).await.unwrap() }
            }
        }
    }

    /// The response's id and the response.
    async fn respond(&self, input: &Value, previous: Option<&str>) -> (String, Value) {
        let run = self.start(input, previous).await;
        let mut renderer = ResponsesRenderer::new(ResponsesDialect::OpenAi);
        for event in run.events.collect::<Vec<_>>().await {
            renderer.frame(&event);
        }
        (response_id(run.run_id), renderer.response())
    }
}

fn frames(events: Vec<RunEvent>) -> Vec<Frame> {
    let mut renderer = ResponsesRenderer::new(ResponsesDialect::OpenAi);
    events.iter().flat_map(|event| renderer.frame(event)).collect()
}

fn item(response: &Value, kind: &str) -> Value {
    let items = response["output"].as_array().unwrap();
    items.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {response:#}")).clone()
}

fn create_then_say(text: &str) -> Value {
    json!({"runs": [
        {"when": "thanks", "turns": [{"events": [{"text": "You are welcome."}]}]},
        {"turns": [
            {"events": [tool_call("create_table_as", json!({
                "table": "busy",
                "sql": "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier",
            }))]},
            {"events": [{"text": text}]},
        ]},
    ]})
}

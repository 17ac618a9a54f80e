//! The agent from outside: a scripted model over a real engine; whole event transcripts as snapshots.
//!
//! The transcripts are the ask protocol's frames, with the run's id and its time taken out.

mod slow_models;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use querent_agent::models::scripted::{ScriptedModel, from_value};
use querent_agent::models::{ChatMessage, ChatRole};
use querent_agent::protocols::ask::AskRenderer;
use querent_agent::protocols::{Frame, Renderer};
use querent_agent::{Agent, AgentConfig, AskRequest, CheckTimes, EventKind, LoggedEvent, Protocol, RunRequest};
use querent_catalog::{ConversationKey, PageRequest, Principal, Role, RunStatus};
use querent_engine::{Engine, Limits};
use querent_tests::script::{run_sql, tool_call};
use querent_tests::{wait_for, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_from_a_query() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([
            {"thinking": "count by carrier"},
            {"text": "I will count. "},
            run_sql("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 1"),
        ])),
        turn(json!([{"text": "UA had "}, {"text": "the most: 3."}])),
    ]}]}))
    .await;
    let transcript = fixture.transcript("  Which carrier had the most flights? ", false).await;
    insta::assert_snapshot!("answered", transcript.text);

    // The stored trace is what the client saw.
    let run = fixture.agent.get_run(&Principal::local_admin(), transcript.run_id).await.unwrap();
    assert_eq!(run.status, RunStatus::Success);
    let trace: Value = serde_json::from_str(&run.trace_json).unwrap();
    let stored: Vec<(String, Value)> = trace
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["event"].as_str().unwrap().to_owned(), entry["data"].clone()))
        .collect();
    assert_eq!(stored, transcript.frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_is_shown_when_asked_for() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([{"thinking": "easy "}, {"thinking": "one"}, {"text": "42"}])),
    ]}]}))
    .await;
    insta::assert_snapshot!("thinking", fixture.transcript("What is it?", true).await.text);
    assert_eq!(fixture.model.requests()[0].think, Some(true));
    let silent = fixture.transcript("What is it?", false).await;
    assert!(!silent.text.contains("thinking_delta"), "{}", silent.text);
    assert_eq!(fixture.model.requests()[1].think, Some(false));
}

/// One that has read the conversation, and does not run in it yet, counts as its user.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_that_is_refused_leaves_its_conversation_to_the_next() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [turn(json!([{"text": "42"}]))]}]})).await;
    let (who, key) = (Principal::local_admin(), ConversationKey::shared("c"));
    let asks = || RunRequest::new(Protocol::Ask, vec![ChatMessage::text(ChatRole::User, "What is it?")]);
    let (mut first, mut second) = (asks(), asks());
    fixture.agent.continue_conversation(&who, &mut first, key.clone()).await.unwrap();
    fixture.agent.continue_conversation(&who, &mut second, key.clone()).await.unwrap();
    fixture.agent.give_up(&who, &first).await;
    let run = fixture.agent.start(&who, second).await.unwrap();
    Transcript::of(&run.events.collect::<Vec<_>>().await);
    let conversation = fixture.engine.catalog().conversations().get(&who, &key).await.unwrap();
    assert_eq!(conversation.run_count, 1);

    // Without another one it goes with its request.
    let (mut alone, other) = (asks(), ConversationKey::shared("d"));
    fixture.agent.continue_conversation(&who, &mut alone, other.clone()).await.unwrap();
    fixture.agent.give_up(&who, &alone).await;
    assert!(fixture.engine.catalog().conversations().get(&who, &other).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_query_comes_back_as_data_and_is_mended() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([run_sql("SELECT airline_code FROM flights")])),
        turn(json!([run_sql("SELECT DISTINCT carrier FROM flights ORDER BY 1")])),
        turn(json!([{"text": "AA and UA."}])),
    ]}]}))
    .await;
    let transcript = fixture.transcript("Which carriers are there?", false).await;
    insta::assert_snapshot!("mended", transcript.text);
    // The hint by which the model can correct its call.
    let requests = fixture.model.requests();
    let told = requests[1].messages.last().unwrap();
    assert_eq!(told.role, ChatRole::Tool);
    insta::assert_snapshot!("mended_told", told.content);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_table_names_the_nearest_one() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([{"tool_call": {"name": "describe_table", "arguments": {"table": "flihgts"}}}])),
        turn(json!([run_sql("SELECT * FROM flihgts")])),
        turn(json!([{"text": "There is no such table."}])),
    ]}]}))
    .await;
    insta::assert_snapshot!("unknown_table", fixture.transcript("Show flihgts", false).await.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_gives_what_it_promises() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([
            {"tool_call": {"name": "list_databases", "arguments": {}}},
            {"tool_call": {"name": "describe_table", "arguments": {"table": "default.airlines"}}},
            {"tool_call": {"name": "sample_rows", "arguments": {"table": "airlines", "n": "1"}}},
            {"tool_call": {"name": "run_sql", "arguments": {"query": "SELECT 1 AS a, 2 AS b, 9007199254740993 AS big", "max_rows": 1}}},
            {"tool_call": {"name": "run_sql", "arguments": {"max_rows": "few"}}},
            {"tool_call": {"name": "drop_table", "arguments": {}}},
            {"tool_call": {"name": "run_sql", "arguments": {"sql": "DROP TABLE airlines"}}},
            {"tool_call": {"name": "run_sql", "arguments": {"sql": "SELECT carrier FROM flights", "max_rows": 2}}},
        ])),
        turn(json!([{"text": "Done."}])),
    ]}]}))
    .await;
    insta::assert_snapshot!("tools", fixture.transcript("Try everything", false).await.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn kql_and_walks_are_tools() {
    let walk = |more: Value| {
        let mut arguments =
            json!({"edges_table": "flights", "source": "UA", "from_column": "carrier", "to_column": "origin"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool_call("graph_traverse", arguments)
    };
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([
            {"tool_call": {"name": "run_kql", "arguments": {"kql": "flights | summarize n = count() by carrier | sort by carrier asc"}}},
            {"tool_call": {"name": "run_kql", "arguments": {"kql": "flights | wher carrier == 'UA'"}}},
            walk(json!({})),
            walk(json!({"direction": "up", "source": {"a": 1}})),
            walk(json!({"source": ["UA", "it's"], "max_hops": 99, "direction": "both"})),
        ])),
        turn(json!([{"text": "Done."}])),
    ]}]}))
    .await;
    insta::assert_snapshot!("kql_tools", fixture.transcript("Try KQL", false).await.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_time_ends_with_timeout() {
    let config = AgentConfig { run_timeout: Duration::from_millis(1_500), ..AgentConfig::default() };
    let fixture = AgentFixture::with_config(
        json!({"runs": [{"turns": [turn(json!([{"text": "Let me see"}, "hang"]))]}]}),
        config,
    )
    .await;
    let transcript = fixture.transcript("Which carrier?", false).await;
    insta::assert_snapshot!("timeout", transcript.text);
    fixture.assert_stored(transcript.run_id, RunStatus::BudgetExceeded).await;
    fixture.model.calls().wait_for(|calls| calls.dropped == 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_says_nothing_in_time_is_called_slow() {
    let config = AgentConfig { run_timeout: Duration::from_millis(300), ..AgentConfig::default() };
    let script = json!({"runs": [{"turns": [turn(json!(["hang"]))]}]});
    let fixture = AgentFixture::with_config(script, config).await;
    let transcript = fixture.transcript("Which carrier?", false).await;
    let (_, error) = transcript.frames.iter().find(|(name, _)| name == "run_error").unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("said nothing within 0.3 s") && message.contains("agent.run_timeout"), "{message}");
    assert_eq!(error["detail_code"], "run_timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_thirteenth_call_is_emitted_and_ends_the_run() {
    let turns: Vec<Value> = (0..14).map(|number| turn(json!([run_sql(&format!("SELECT {number} AS n"))]))).collect();
    let fixture = AgentFixture::new(json!({"runs": [{"turns": turns}]})).await;
    let transcript = fixture.transcript("Count", false).await;
    let names: Vec<&str> = transcript.frames.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "tool_call").count(), 13);
    assert_eq!(names.iter().filter(|name| **name == "tool_result").count(), 12);
    assert_eq!(names[names.len() - 3..], ["tool_call", "run_error", "run_finished"]);
    let (_, error) = &transcript.frames[names.len() - 2];
    assert_eq!(error["code"], "tool_loop");
    assert_eq!(error["detail_code"], "too_many_tool_calls");
    fixture.assert_stored(transcript.run_id, RunStatus::BudgetExceeded).await;
    // With no call left, the model was offered none.
    assert!(fixture.model.requests()[12].tools.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_failing_call_three_times_ends_the_run() {
    let fixture = AgentFixture::new(json!({"runs": [{
        "turns": [turn(json!([run_sql("SELECT nothing FROM flights")]))],
        "repeat_last": true,
    }]}))
    .await;
    let transcript = fixture.transcript("Count", false).await;
    insta::assert_snapshot!("identical_failures", transcript.text);
    fixture.assert_stored(transcript.run_id, RunStatus::BudgetExceeded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_midway_is_a_runner_error() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([{"text": "The answer "}, {"error": "out of memory"}])),
    ]}]}))
    .await;
    let transcript = fixture.transcript("Which?", false).await;
    insta::assert_snapshot!("model_failure", transcript.text);
    fixture.assert_stored(transcript.run_id, RunStatus::Error).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_says_nothing_is_a_runner_error() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [turn(json!([{"text": " \n"}]))]}]})).await;
    insta::assert_snapshot!("empty_answer", fixture.transcript("Which?", false).await.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_gives_two_frames() {
    for (unavailable, snapshot) in [("not_found", "init_not_found"), ("unreachable", "init_unreachable")] {
        let fixture =
            AgentFixture::new(json!({"model": "gemma4:latest", "unavailable": unavailable, "runs": []})).await;
        let transcript = fixture.transcript("Which?", false).await;
        insta::assert_snapshot!(snapshot, transcript.text);
        fixture.assert_stored(transcript.run_id, RunStatus::Error).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_still_ends_with_run_finished() {
    let fixture =
        AgentFixture::new(json!({"runs": [{"turns": [turn(json!([{"text": "Let me see"}, "hang"]))]}]})).await;
    let (owner, other) = (Principal::new("ann", Role::Read), Principal::new("bob", Role::Read));
    let mut run = fixture.agent.ask(&owner, question("Which?", false)).await.unwrap();
    // The run's start, the request to the model, a message's start, and its first words.
    let begun: Vec<_> = run.events.by_ref().take(4).collect().await;
    assert!(matches!(begun.last().unwrap().kind, EventKind::TextDelta { .. }), "{begun:?}");
    assert_eq!(fixture.agent.get_run(&owner, run.run_id).await.unwrap().status, RunStatus::Running);
    assert_eq!(fixture.agent.get_run(&other, run.run_id).await.unwrap_err().code(), "run_not_found");
    assert_eq!(fixture.agent.cancel_run(&other, run.run_id).await.unwrap_err().code(), "run_not_found");
    let cancelled = fixture.agent.cancel_run(&owner, run.run_id).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let events: Vec<_> = begun.into_iter().chain(run.events.collect::<Vec<_>>().await).collect();
    insta::assert_snapshot!("cancelled", Transcript::of(&events).text);
    fixture.model.calls().wait_for(|calls| calls.dropped == 1).await.unwrap();
    // Once more is no error and changes nothing.
    let again = fixture.agent.cancel_run(&owner, run.run_id).await.unwrap();
    assert_eq!(again, cancelled);
    let listed = fixture.agent.list_runs(&owner, PageRequest::first(10)).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert!(fixture.agent.list_runs(&other, PageRequest::first(10)).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_stops_the_model_call() {
    let fixture =
        AgentFixture::new(json!({"runs": [{"turns": [turn(json!([{"text": "Let me see"}, "hang"]))]}]})).await;
    let mut run = fixture.agent.ask(&Principal::local_admin(), question("Which?", false)).await.unwrap();
    fixture.model.calls().wait_for(|calls| calls.started == 1).await.unwrap();
    run.events.next().await.unwrap();
    let run_id = run.run_id;
    drop(run);
    fixture.model.calls().wait_for(|calls| calls.dropped == 1).await.unwrap();
    let stored = fixture.stored_once_finished(run_id).await;
    assert_eq!(stored.status, RunStatus::Cancelled);
    assert!(
        stored.trace_json.contains("run_started") && stored.trace_json.contains("client_gone"),
        "{}",
        stored.trace_json
    );
    fixture.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_stops_the_query() {
    let endless = "SELECT sum(value) FROM generate_series(1, 1000000000)";
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [turn(json!([run_sql(endless)]))]}]})).await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut run = fixture.agent.ask(&Principal::local_admin(), question("Count", false)).await.unwrap();
    while let Some(event) = run.events.next().await {
        if matches!(event.kind, EventKind::ToolCallStarted(_)) {
            break;
        }
    }
    let run_id = run.run_id;
    wait_until("the query runs", async || fixture.engine.memory_reserved_bytes() > 0).await;
    let during = alive();
    drop(run);
    assert_eq!(fixture.stored_once_finished(run_id).await.status, RunStatus::Cancelled);
    // The run's own task and those of its query are gone.
    wait_until("there are fewer tasks than with the client", async || alive() < during).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_every_stream() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [turn(json!(["hang"]))]}]})).await;
    let admin = Principal::local_admin();
    let run = fixture.agent.ask(&admin, question("Which?", false)).await.unwrap();
    fixture.model.calls().wait_for(|calls| calls.started == 1).await.unwrap();
    let (_, events) = tokio::join!(fixture.agent.shutdown(), run.events.collect::<Vec<_>>());
    insta::assert_snapshot!("shutdown", Transcript::of(&events).text);
    fixture.assert_stored(run.run_id, RunStatus::Cancelled).await;
    let refused = fixture.agent.ask(&admin, question("Which?", false)).await;
    assert_eq!(refused.err().unwrap().code(), "shutting_down");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_beyond_the_bound_are_refused_and_places_come_back() {
    let config = AgentConfig { max_concurrent_runs: 1, ..AgentConfig::default() };
    let script = json!({"runs": [
        {"when": "slow", "turns": [turn(json!(["hang"]))]},
        {"turns": [turn(json!([{"text": "42"}]))]},
    ]});
    let fixture = AgentFixture::with_config(script, config).await;
    let admin = Principal::local_admin();
    let slow = fixture.agent.ask(&admin, question("slow", false)).await.unwrap();
    let refused = fixture.agent.ask(&admin, question("quick", false)).await;
    assert_eq!(refused.err().unwrap().code(), "too_many_runs");
    drop(slow);
    // A refused question and an unknown database take no place either.
    fixture.until_idle().await;
    let unknown = AskRequest { database: Some("nowhere".to_owned()), ..question("quick", false) };
    assert_eq!(fixture.agent.ask(&admin, unknown).await.err().unwrap().code(), "database_not_found");
    // Whoever has seen `run_finished` may ask again at once.
    for _ in 0..3 {
        fixture.transcript("quick", false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_database_is_honoured() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([run_sql("SELECT carrier FROM flights")])),
        turn(json!([{"text": "XX"}])),
    ]}]}))
    .await;
    fixture.execute("CREATE SCHEMA other").await;
    fixture.execute("CREATE TABLE other.flights AS SELECT 'XX' AS carrier, 9 AS only_here").await;
    let request = AskRequest { database: Some("other".to_owned()), ..question("Which flights?", false) };
    let run = fixture.agent.ask(&Principal::local_admin(), request).await.unwrap();
    let transcript = Transcript::of(&run.events.collect::<Vec<_>>().await);
    assert!(transcript.text.contains(r#""rows":[{"carrier":"XX"}]"#), "{}", transcript.text);
    let prompt = fixture.prompt(0);
    assert!(prompt.contains("only_here") && !prompt.contains("dep_delay"), "{prompt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_models_prompt_says_what_it_needs() {
    let fixture = AgentFixture::new(small_script()).await;
    fixture.transcript("Which airline had the most flights?", false).await;
    insta::assert_snapshot!("small_prompt", fixture.prompt(0));
    // It may not answer before it has seen a result.
    let formats: Vec<bool> = fixture
        .model
        .requests()
        .iter()
        .map(|request| request.format.as_ref().unwrap().to_string().contains(r#""const":"answer""#))
        .collect();
    assert_eq!(formats, [false, true]);
}

/// The server's own tables, which no search of the catalog finds, and a query of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_can_be_asked_about_itself() {
    let fixture = AgentFixture::new(json!({"runs": [{"turns": [
        turn(json!([tool_call("search_schema", json!({"query": "running queries"}))])),
        turn(json!([run_sql("SELECT statement FROM system.queries")])),
        turn(json!([{"text": "The query that asks."}])),
    ]}]}))
    .await;
    let transcript = fixture.transcript("Which queries are running now?", false).await;
    let prompt = fixture.prompt(0);
    for (table, columns) in [
        ("queries", "id, subject, default_database, statement, started_at, memory_bytes"),
        ("runs", "run_id, subject, question, model_id, status, started_at, finished_at, protocol"),
        ("metrics", "name, labels, value"),
        ("index", "objects, state, in_memory, without_vector"),
        ("tables", "database, name, kind, comment, row_count"),
    ] {
        assert!(prompt.contains(&format!("\nsystem.{table}({columns})")), "{prompt}");
        // They are there as the prompt says.
        let sql = format!("SELECT {columns} FROM system.{table}");
        fixture.execute(&sql).await;
    }
    // Models of other programs look for them.
    let found = fixture.model.requests()[1].messages.last().unwrap().content.clone();
    assert!(found.contains("\nsystem.queries(id, "), "{found}");
    assert!(transcript.text.contains("SELECT statement FROM system.queries"), "{}", transcript.text);
    let other = fixture.model.requests().len();
    fixture.transcript("Which carrier had the most flights?", false).await;
    assert!(!fixture.prompt(other).contains("system."), "{}", fixture.prompt(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn example_values_are_of_rows_that_are_there() {
    let fixture = AgentFixture::new(small_script()).await;
    fixture.transcript("Which airline had the most flights?", false).await;
    assert!(fixture.prompt(0).contains("('United Air Lines Inc.')"), "{}", fixture.prompt(0));
    fixture.execute("UPDATE airlines SET name = 'Delta Air Lines Inc.'").await;
    let asked = fixture.model.requests().len();
    fixture.transcript("Which airline had the most flights?", false).await;
    let prompt = fixture.prompt(asked);
    assert!(prompt.contains("('Delta Air Lines Inc.')") && !prompt.contains("United Air Lines"), "{prompt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_does_not_grow_with_the_catalog() {
    let fixture = AgentFixture::new(small_script()).await;
    let columns: Vec<String> = (0..80).map(|number| format!("measured_value_{number} DOUBLE")).collect();
    for number in 0..1_000 {
        fixture
            .execute(&format!("CREATE TABLE flights_archive_{number} (carrier VARCHAR, {})", columns.join(", ")))
            .await;
    }
    fixture.transcript("Which airline had the most flights?", false).await;
    let prompt = fixture.prompt(0);
    // 900 tokens of about four characters, and no tokenizer makes fewer of identifiers.
    assert!(prompt.len() < 900 * 4, "{} bytes: {prompt}", prompt.len());
    assert!(prompt.contains("more columns") && prompt.contains("... "), "{prompt}");
}

/// An agent over a few rows, with a scripted model.
struct AgentFixture {
    _folder: TempDir,
    engine: Engine,
    model: Arc<ScriptedModel>,
    agent: Agent,
}

impl AgentFixture {
    async fn new(script: Value) -> Self {
        // What a prompt shows and what is checked do not depend on how busy the machine is.
        let patience = Duration::from_secs(30);
        let config = AgentConfig {
            check_times: CheckTimes { one: patience, all: patience },
            examples_timeout: patience,
            ..AgentConfig::default()
        };
        Self::with_config(script, config).await
    }

    async fn with_config(script: Value, config: AgentConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path().join("data")).await.unwrap();
        let model = Arc::new(from_value(script).unwrap());
        let agent = Agent::new(engine.clone(), Arc::<ScriptedModel>::clone(&model), config);
        let fixture = Self { _folder: folder, engine, model, agent };
        fixture
            .execute(
                "CREATE TABLE flights AS SELECT * FROM (VALUES \
                 ('UA', 'EWR', 2), ('UA', 'LGA', 4), ('AA', 'JFK', -1), ('UA', 'EWR', 7), ('AA', 'JFK', 0)) \
                 AS t(carrier, origin, dep_delay)",
            )
            .await;
        fixture
            .execute(
                "CREATE TABLE airlines AS SELECT * FROM (VALUES \
                 ('UA', 'United Air Lines Inc.')) AS t(carrier, name)",
            )
            .await;
        fixture
    }

    async fn execute(&self, sql: &str) {
        let session = self.engine.session(Principal::local_admin(), Limits::default());
        session.sql(sql).await.unwrap().collect().await.unwrap();
    }

    async fn transcript(&self, text: &str, include_thinking: bool) -> Transcript {
        let run = self.agent.ask(&Principal::local_admin(), question(text, include_thinking)).await.unwrap();
        Transcript::of(&run.events.collect::<Vec<_>>().await)
    }

    /// Returns the messages of request `index` as one string.
    fn prompt(&self, index: usize) -> String {
        let requests = self.model.requests();
        let messages: Vec<&str> = requests[index].messages.iter().map(|message| message.content.as_str()).collect();
        messages.join("\n\n")
    }

    async fn assert_stored(&self, run_id: Uuid, status: RunStatus) {
        let run = self.agent.get_run(&Principal::local_admin(), run_id).await.unwrap();
        assert_eq!(run.status, status);
        assert!(run.finished_at.is_some());
        assert!(run.trace_json.contains("run_finished"), "{}", run.trace_json);
    }

    /// Waits until no run is in progress.
    async fn until_idle(&self) {
        wait_until("all runs end", async || self.agent.running() == 0).await;
    }

    /// Waits until the run has ended and returns it as it is stored.
    async fn stored_once_finished(&self, run_id: Uuid) -> querent_catalog::RunRecord {
        let stored = async || {
            let run = self.agent.get_run(&Principal::local_admin(), run_id).await.unwrap();
            Some(run).filter(|run| run.status != RunStatus::Running)
        };
        wait_for("the run ends", stored).await
    }
}

/// The events that a client received.
struct Transcript {
    run_id: Uuid,
    frames: Vec<(String, Value)>,
    /// Returns the frames as a string, without what differs from run to run.
    text: String,
}

impl Transcript {
    fn of(events: &[LoggedEvent]) -> Self {
        let Some(EventKind::RunFinished(finished)) = events.last().map(|event| &event.kind) else {
            panic!("no run_finished: {events:?}")
        };
        let run_id = &finished.run_id;
        let mut renderer = AskRenderer::default();
        let frames: Vec<Frame> = events.iter().flat_map(|event| renderer.frame(event)).collect();
        let frames: Vec<(String, Value)> = frames
            .iter()
            .map(|frame| (frame.event.unwrap().to_owned(), serde_json::from_str(&frame.data).unwrap()))
            .collect();
        let lines: Vec<String> = frames
            .iter()
            .map(|(name, data)| {
                let mut data = data.clone();
                if data.get("elapsed_ms").is_some() {
                    data["elapsed_ms"] = json!(0);
                }
                // A ticket's id is random.
                if data.get("ticket").is_some() {
                    data["ticket"] = json!("[ticket]");
                }
                format!("{name} {}", data.to_string().replace(&run_id.to_string(), "[run_id]"))
            })
            .collect();
        Self { run_id: *run_id, frames, text: lines.join("\n") }
    }
}

fn question(text: &str, include_thinking: bool) -> AskRequest {
    AskRequest { question: text.to_owned(), database: None, include_thinking, session_id: None, approvals: false }
}

fn turn(events: Value) -> Value {
    json!({"events": events, "usage": {"input_tokens": 100, "output_tokens": 10}})
}

/// A small model that is driven by actions.
fn small_script() -> Value {
    json!({
        "capabilities": {"tool_style": "actions", "thinking": false, "small": true, "context_tokens": 8192},
        "runs": [{"turns": [
            turn(json!([{"text": r#"{"action":"run_sql","sql":"SELECT carrier, count(*) AS n FROM flights GROUP BY 1 ORDER BY 2 DESC LIMIT 1"}"#}])),
            turn(json!([{"text": r#"{"action":"answer","#}, {"text": r#""text":"United: "#}, {"text": r#"3 flights."}"#}])),
        ]}],
    })
}

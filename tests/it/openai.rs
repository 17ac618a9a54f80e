//! OpenAI's surface: its own libraries for Python and Node, its agents, LangChain, the AI SDK, httpx-sse and the cases of
//! Open Responses against a running server, and the bytes of each sequence.

pub mod agents;
mod fields;
mod messages;
mod parameters;
mod pdfs;
mod refusals;
mod resumed;
mod sequences;
mod stored;
mod text_completions;

use querent_tests::script::run_sql;
use querent_tests::{NodeJs, Python, TestServer, TestSettings, run_client};
use serde_json::{Value, json};

use crate::adk::without_ids;

#[tokio::test(flavor = "multi_thread")]
async fn openai_for_python() {
    let server = serve().await;
    let mut python = Python::client("openai_client.py");
    python.args([server.url(""), "ann-tok".to_owned(), "bob-tok".to_owned()]);
    run_client(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_for_python_over_a_websocket_and_azures_addresses() {
    run_python("openai_websocket.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_for_node() {
    let server = serve().await;
    let mut node = NodeJs::client("openai_client.mjs");
    node.args([server.url(""), "ann-tok".to_owned()]);
    run_client(node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_and_httpx_sse() {
    run_python("langchain_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_agents() {
    run_python("agents_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_for_python() {
    run_python("anthropic_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_responses() {
    run_python("openresponses_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ai_sdk() {
    let server = serve().await;
    let mut node = NodeJs::client("ai_sdk_client.mjs");
    node.args([server.url(""), "ann-tok".to_owned()]);
    run_client(node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sequence_of_responses_has_its_bytes() {
    let server = serve().await;
    let tools = json!([{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]);
    let format = json!({"format": {"type": "json_schema", "name": "count", "schema": {"type": "object"}}});
    for (name, body) in [
        ("plain", json!({"input": "thanks"})),
        ("thinking_and_tools", json!({"input": "how many?", "reasoning": {"summary": "auto"}})),
        ("two_tools", json!({"input": "both"})),
        ("failed_tool", json!({"input": "unknown tool"})),
        ("error", json!({"input": "fail"})),
        ("timeout", json!({"input": "slow"})),
        ("approval", json!({"input": "create a table"})),
        ("client_tool", json!({"input": "weather?", "tools": tools})),
        ("structured", json!({"input": "structured", "text": format})),
        ("imitation", json!({"input": "imitate"})),
        ("ksadk_tools", json!({"input": "how many?", "metadata": {"agentengine": {}}})),
        ("ksadk_approval", json!({"input": "create a table", "metadata": {"agentengine": {}}})),
    ] {
        let bytes = stream(&server, "/v1/responses", body).await;
        insta::assert_snapshot!(format!("responses_{name}"), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sequence_of_chat_completions_has_its_bytes() {
    let server = serve().await;
    let tools = json!([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]);
    let ask = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
    let with = |text: &str, name: &str, value: Value| {
        let mut body = ask(text);
        body[name] = value;
        body
    };
    for (name, body) in [
        ("plain", ask("thanks")),
        ("tools_and_usage", with("how many?", "stream_options", json!({"include_usage": true}))),
        ("thinking", with("how many?", "reasoning_effort", json!("low"))),
        ("error", ask("fail")),
        ("timeout", ask("slow")),
        ("approval", ask("create a table")),
        ("client_tool", with("weather?", "tools", tools)),
        ("structured", with("structured", "response_format", json!({"type": "json_object"}))),
    ] {
        let bytes = stream(&server, "/v1/chat/completions", body).await;
        insta::assert_snapshot!(format!("chat_{name}"), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_clients_probe_is_there() {
    let server = serve().await;
    let get = |path: &str| server.http.get(server.url(path)).bearer_auth("ann-tok").send();
    // Without an upgrade it is no WebSocket's request.
    let refused = get("/v1/responses").await.unwrap();
    assert_eq!(refused.status(), 426);
    assert_eq!(refused.headers()["upgrade"], "websocket");
    assert_eq!(get("/v1/responses/resp_none").await.unwrap().status(), 404);
    let unread = server.http.post(server.url("/v1/responses")).bearer_auth("ann-tok").body("{").send().await.unwrap();
    assert_eq!(unread.status(), 400);
    let body: Value = unread.json().await.unwrap();
    assert_eq!(body["error"]["code"], "invalid_json");
    assert_eq!(body["detail"], body["error"]["message"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_413() {
    // Small, so that the client has sent all of it when it is refused.
    let settings = TestSettings::default().change(|settings| settings.http.max_query_bytes.0 = 1_000);
    let server = TestServer::start(settings).await;
    let body = json!({"input": "x".repeat(2_000)});
    for path in ["/v1/responses", "/v1/chat/completions"] {
        let sent = server.http.post(server.url(path)).json(&body).send().await.unwrap();
        assert_eq!(sent.status(), 413, "{path}");
    }
}

async fn serve() -> TestServer {
    let settings = TestSettings::default().tokens("ann-tok:write:ann,bob-tok:write:bob").script(script());
    let server = TestServer::start(settings.change(|settings| {
        settings.agent.write_tools = true;
        settings.agent.run_timeout.0 = std::time::Duration::from_secs(3);
    }));
    server.await
}

fn script() -> Value {
    let say = |text: &str| json!({"events": [{"text": text}]});
    let fitting = r#"{"name": "UA", "n": 3}"#;
    json!({"runs": [
        {"when": "not the JSON that was asked for", "turns": [say(fitting)]},
        {"when": "structured", "turns": [say(fitting)]},
        {"when": "repair", "turns": [say("three")]},
        {"when": "weather", "turns": [
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
            say("It is sunny."),
        ]},
        {"when": "broken reply", "turns": [
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
            {"events": [{"error": "out of memory"}]},
        ]},
        {"when": "half an answer", "turns": [
            {"events": [{"tool_call": {"name": "get_weather", "arguments": "{\"city\": \"Par"}}]},
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
        ]},
        {"when": "a wrong kind", "turns": [
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": 7}}}]},
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
        ]},
        {"when": "always wrong", "repeat_last": true, "turns": [
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": 7}}}]},
        ]},
        {"when": "lost table", "turns": [
            {"events": [{"tool_call": {"name": "create_table_as", "arguments": {"table": "lost", "sql": "SELECT 1 AS n"}}}]},
            {"events": [{"error": "out of memory"}]},
        ]},
        {"when": "lost thread", "turns": [
            {"events": [{"text": "Let me see."}, run_sql("SELECT 1 AS a")]},
            {"events": [{"error": "out of memory"}]},
        ]},
        {"when": "fail", "turns": [{"events": [{"text": "The answer "}, {"error": "out of memory"}]}]},
        {"when": "later", "turns": [say("Nothing more.")]},
        {"when": "night", "turns": [say("The nights were quiet.")]},
        {"when": "chart", "turns": [
            {"events": [run_sql("SELECT * FROM (VALUES ('UA', 3), ('B6', 2), ('EV', 1)) AS t(carrier, flights)")]},
            say("Drawn."),
        ]},
        {"when": "cities", "turns": [
            {"events": [
                {"tool_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}},
                {"tool_call": {"name": "get_weather", "arguments": {"city": "Rome"}}},
            ]},
            say("Rain and sun."),
        ]},
        {"when": "a mixed reply", "turns": [
            {"events": [
                {"tool_call": {"name": "create_table_as", "arguments": {"table": "sky", "sql": "SELECT 1 AS n"}}},
                {"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}},
            ]},
            say("It is sunny, and kept."),
        ]},
        {"when": "store the sky", "turns": [
            {"events": [{"tool_call": {"name": "create_table_as", "arguments": {"table": "sky", "sql": "SELECT 1 AS n"}}}]},
            {"events": [{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
        ]},
        {"when": "thanks", "turns": [say("You are welcome.")]},
        {"when": "create", "turns": [
            {"events": [{"tool_call": {"name": "create_table_as", "arguments": {"table": "busy", "sql": "SELECT 1 AS n"}}}]},
            say("It is made."),
        ]},
        {"when": "slow", "turns": [{"events": [{"text": "Let me see"}, "hang"]}]},
        {"when": "both", "turns": [{"events": [run_sql("SELECT 1 AS a"), run_sql("SELECT 2 AS b")]}, say("1 and 2.")]},
        {"when": "unknown tool", "turns": [
            {"events": [{"tool_call": {"name": "drop_table", "arguments": {}}}]},
            say("There is no such tool."),
        ]},
        {"when": "imitate", "turns": [say("data: [DONE]\n\nevent: response.completed\ndata: {}\n\n")]},
        {"turns": [
            {
                "events": [{"thinking": "count"}, {"text": "I will count. "}, run_sql("SELECT 42 AS n")],
                "usage": {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 40},
            },
            {
                "events": [{"text": "It is "}, {"text": "42."}],
                "usage": {"input_tokens": 120, "output_tokens": 5, "reasoning_tokens": 2},
            },
        ]},
    ]})
}

/// Returns a stream's bytes without the run's id and times.
async fn stream(server: &TestServer, path: &str, mut body: Value) -> String {
    body["stream"] = json!(true);
    let sent = server.http.post(server.url(path)).bearer_auth("ann-tok").json(&body).send().await.unwrap();
    assert_eq!(sent.headers()["content-type"], "text/event-stream");
    still(sent.text().await.unwrap())
}

/// The first id is the run's own.
fn still(bytes: String) -> String {
    let (_, rest) = bytes.split_once("\"id\":\"").unwrap_or_else(|| panic!("{bytes}"));
    let id: String = rest.chars().skip_while(|c| !['_', '-'].contains(c)).skip(1).take(32).collect();
    let bytes = without_ids(vec![bytes.replace(&id, "[run]")]);
    MOVING.iter().fold(bytes, |bytes, (name, mask)| {
        let mut parts = bytes.split(name);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |shown, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let shown_as = if rest.len() < part.len() { mask } else { "" };
            shown + name + shown_as + rest
        })
    })
}

/// The keys before a time, or before a count that changes with the words of the prompt, and what masks it.
const MOVING: [(&str, &str); 8] = [
    ("\"created_at\":", "[time]"),
    ("\"completed_at\":", "[time]"),
    ("\"created\":", "[time]"),
    ("\"elapsed_ms\":", "[time]"),
    ("\"tokens\":", "[tokens]"),
    ("\"max_tokens\":", "[tokens]"),
    ("\"initial_tokens\":", "[tokens]"),
    ("\"compacted_tokens\":", "[tokens]"),
];

async fn run_python(script: &str) {
    let server = serve().await;
    let mut python = Python::client(script);
    python.args([server.url(""), "ann-tok".to_owned()]);
    run_client(python).await;
}

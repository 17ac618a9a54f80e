//! Models: the Ollama provider against a server that misbehaves in every known way, tool calls in every style,
//! recordings, and the agent's cases with a real small model.

mod cases;
pub mod fake_ollama;
mod local_model;
mod tool_choice;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use querent_agent::models::actions::{ToolCalling, TurnRequest};
use querent_agent::models::ollama::OllamaModel;
use querent_agent::models::recorded::{RecordingModel, ReplayingModel};
use querent_agent::models::{
    ChatMessage, ChatRequest, ChatRole, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall,
    Sampling, TokenUsage, ToolChoice, ToolSpec, ToolStyle, ToolStyleSetting, scripted,
};
use querent_agent::{AgentError, Result};
use serde_json::{Value, json};

use fake_ollama::{CannedReply, FakeOllama};

#[tokio::test]
async fn a_chat_streams_thinking_text_calls_and_counts() {
    let body = concat!(
        r#"{"message":{"role":"assistant","content":"","thinking":"naïve"},"done":false}"#,
        "\n",
        r#"{"message":{"role":"assistant","content":"Zürich 😀"},"done":false}"#,
        "\n",
        r#"{"message":{"content":"","tool_calls":[{"id":"c1","function":{"name":"run_sql","arguments":{"sql":"SELECT 1"}}}]},"done":false}"#,
        "\n",
        r#"{"message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":12,"eval_count":3}"#,
        "\n",
    );
    // Three bytes a network read: every character of more than one byte is split somewhere.
    let pieces = body.as_bytes().chunks(3).map(<[u8]>::to_vec).collect();
    let server = FakeOllama::start(CannedReply::Stream { pieces, then_hang: false }).await;
    let model = server.model("gemma4");

    let events = collect_turn(model.chat(question("hi")).await).await.unwrap();

    let call =
        ModelToolCall { id: Some("c1".to_owned()), name: "run_sql".to_owned(), arguments: json!({"sql": "SELECT 1"}) };
    assert_eq!(
        events,
        [
            ModelEvent::Thinking("naïve".to_owned()),
            ModelEvent::Text("Zürich 😀".to_owned()),
            ModelEvent::ToolCall(call),
            ModelEvent::Done {
                usage: TokenUsage { input_tokens: 12, output_tokens: 3, ..TokenUsage::default() },
                reason: DoneReason::Length,
            },
        ]
    );
}

#[tokio::test]
async fn a_chat_sends_its_options_tools_and_schema_as_ollama_takes_them() {
    let server = FakeOllama::start(CannedReply::text("ok")).await;
    let model = server.model("gemma4");
    let format = json!({"type": "object", "properties": {"z": {"const": "b"}, "a": {"type": "string"}}});
    let call = ModelToolCall { id: None, name: "run_sql".to_owned(), arguments: json!({"sql": "SELECT 1"}) };
    let request = ChatRequest {
        messages: vec![
            message(ChatRole::User, "how many?"),
            ChatMessage { tool_calls: vec![call], ..message(ChatRole::Assistant, "") },
            ChatMessage { tool_name: Some("run_sql".to_owned()), ..message(ChatRole::Tool, "1") },
        ],
        tools: vec![run_sql_spec()],
        format: Some(format.clone()),
        think: Some(true),
        max_output_tokens: Some(64),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        variation: 0,
    };

    collect_turn(model.chat(request).await).await.unwrap();

    let sent = server.chats().remove(0);
    assert_eq!(sent["model"], "gemma4");
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["options"], json!({"num_ctx": 16384, "temperature": 0.0, "seed": 42, "num_predict": 64}));
    assert_eq!(sent["think"], Value::Null, "a model that cannot think is not asked to");
    // The order of a schema's fields is the order in which the model must write them.
    assert_eq!(sent["format"].to_string(), format.to_string());
    let run_sql = run_sql_spec();
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "function": {
            "name": run_sql.name, "description": run_sql.description, "parameters": run_sql.parameters,
        }}])
    );
    assert_eq!(
        sent["messages"],
        json!([
            {"role": "user", "content": "how many?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "run_sql", "arguments": {"sql": "SELECT 1"}}}
            ]},
            {"role": "tool", "content": "1", "tool_name": "run_sql"},
        ])
    );
}

#[tokio::test]
async fn a_missing_model_is_named_with_the_command_that_gets_it() {
    let server = FakeOllama::start(CannedReply::text("ok")).await;
    for error in [
        server.model("nope").capabilities().await.unwrap_err(),
        collect_turn(server.model("nope").chat(question("hi")).await).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "model_not_found");
        assert!(error.to_string().contains("`ollama pull nope`"), "{error}");
        assert!(error.to_string().contains(&server.host()), "{error}");
    }
}

#[tokio::test]
async fn a_model_that_vanishes_between_two_turns_is_not_found() {
    let server = FakeOllama::start(CannedReply::Status(404, r#"{"error":"model 'gemma4' not found"}"#)).await;
    let error = collect_turn(server.model("gemma4").chat(question("hi")).await).await.unwrap_err();
    assert_eq!(error.code(), "model_not_found");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named_with_the_command_that_starts_it() {
    let model = OllamaModel::new("http://127.0.0.1:9", "gemma4", ToolStyleSetting::Auto).unwrap();
    let error = model.capabilities().await.unwrap_err();
    assert_eq!(error.code(), "model_unreachable");
    assert!(error.to_string().contains("http://127.0.0.1:9"), "{error}");
    assert!(error.to_string().contains("`ollama serve`"), "{error}");
}

#[tokio::test]
async fn failures_of_the_server_keep_its_message() {
    let cases = [
        (CannedReply::lines(&[r#"{"message":{"content":"a"}}"#, r#"{"error":"out of memory"}"#]), "out of memory"),
        (CannedReply::lines(&[r#"{"message":{"content":"a"}}"#]), "broke off"),
        (CannedReply::Status(500, r#"{"error":"llama runner has stopped"}"#), "llama runner has stopped"),
        (CannedReply::Status(400, r#"{"error":"gemma4 does not support tools"}"#), "QUERENT_AGENT_TOOL_STYLE=actions"),
    ];
    for (reply, expected) in cases {
        let server = FakeOllama::start(reply).await;
        let error = collect_turn(server.model("gemma4").chat(question("hi")).await).await.unwrap_err();
        assert_eq!(error.code(), "model_failed");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_request() {
    let piece = b"{\"message\":{\"content\":\"a\"},\"done\":false}\n".to_vec();
    let server = FakeOllama::start(CannedReply::Stream { pieces: vec![piece], then_hang: true }).await;
    let mut stream = server.model("gemma4").chat(question("hi")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::Text("a".to_owned()));
    assert!(!server.request_closed());

    drop(stream);

    tokio::time::timeout(Duration::from_secs(10), server.wait_until_closed()).await.expect("the request was closed");
}

#[tokio::test]
async fn the_style_of_tool_calls_follows_what_the_server_reports() {
    let server = FakeOllama::start(CannedReply::text("ok")).await;
    let cases = [
        // (model as the fake server knows it, setting, style, small, context)
        ("gemma4", ToolStyleSetting::Auto, ToolStyle::Native, false, 16_384),
        ("gemma4", ToolStyleSetting::Actions, ToolStyle::Actions, false, 16_384),
        ("no-tools", ToolStyleSetting::Auto, ToolStyle::Actions, false, 4_096),
        ("qwen2.5-coder:7b", ToolStyleSetting::Auto, ToolStyle::Actions, false, 16_384),
        ("qwen3:1.7b", ToolStyleSetting::Auto, ToolStyle::Actions, true, 8_192),
        ("qwen3:1.7b", ToolStyleSetting::Native, ToolStyle::Native, true, 8_192),
        ("unsized", ToolStyleSetting::Auto, ToolStyle::Actions, true, 8_192),
    ];
    for (name, setting, tool_style, small, context_tokens) in cases {
        let model = OllamaModel::new(&server.host(), name, setting).unwrap();
        let expected = ModelCapabilities {
            tool_style,
            thinking: false,
            small,
            context_tokens: Some(context_tokens),
            images: false,
        };
        assert_eq!(model.capabilities().await.unwrap(), expected, "{name}");
    }
}

#[tokio::test]
async fn an_action_model_is_sent_actions_and_looks_native() {
    let reply = r#"{"action":"run_sql","sql":"SELECT 1"}"#;
    let answer = [r#"{"action":"answer","te"#, r#"xt":"The "#, r#"answer \u00"#, r#"e9 1."}"#];
    let model = Arc::new(scripted_turns(
        json!({"tool_style": "actions", "thinking": false, "small": true,
        "context_tokens": 8192}),
        vec![texts(&[reply]), texts(&answer)],
    ));
    let adapter = ToolCalling::new(Arc::clone(&model) as _, model.capabilities().await.unwrap());
    assert!(adapter.instructions(&[run_sql_spec()]).unwrap().contains(r#"{"action":"run_sql","sql":"..."}"#));

    let asked = vec![message(ChatRole::User, "how many?")];
    let first = collect_turn(adapter.turn(turn(asked.clone())).await).await.unwrap();
    let call = ModelToolCall { id: None, name: "run_sql".to_owned(), arguments: json!({"sql": "SELECT 1"}) };
    assert_eq!(first[..1], [ModelEvent::ToolCall(call.clone())]);

    let told = [
        ChatMessage { tool_calls: vec![call], ..message(ChatRole::Assistant, "") },
        ChatMessage { tool_name: Some("run_sql".to_owned()), ..message(ChatRole::Tool, "| 1 |") },
    ];
    let second = collect_turn(adapter.turn(turn(asked.into_iter().chain(told).collect())).await).await.unwrap();
    assert_eq!(second[..3], ["The ", "answer ", "é 1."].map(|piece| ModelEvent::Text(piece.to_owned())));

    let sent = &model.requests()[1];
    assert!(sent.tools.is_empty() && sent.format.is_some());
    let roles_and_texts: Vec<(ChatRole, &str)> =
        sent.messages.iter().map(|message| (message.role, message.content.as_str())).collect();
    assert_eq!(
        roles_and_texts,
        [(ChatRole::User, "how many?"), (ChatRole::Assistant, reply), (ChatRole::User, "Result of run_sql:\n| 1 |"),]
    );
}

#[tokio::test]
async fn a_native_model_that_writes_its_call_as_text_is_understood() {
    let capabilities = json!({"tool_style": "native", "thinking": false, "small": false, "context_tokens": 8192});
    let fenced = ["```json\n{\"name\": \"run_", "sql\", \"arguments\": {\"sql\": \"SELECT 1\"}}\n```"];
    let model = Arc::new(scripted_turns(capabilities, vec![texts(&fenced), texts(&["Here: ", fenced[0], fenced[1]])]));
    let adapter = ToolCalling::new(Arc::clone(&model) as _, model.capabilities().await.unwrap());
    assert_eq!(adapter.instructions(&[run_sql_spec()]), None);

    let called = collect_turn(adapter.turn(turn(vec![message(ChatRole::User, "how many?")])).await).await.unwrap();
    assert!(matches!(&called[0], ModelEvent::ToolCall(call) if call.name == "run_sql"), "{called:?}");

    let asked = vec![message(ChatRole::User, "how many?"), message(ChatRole::Assistant, "1")];
    let said = collect_turn(adapter.turn(turn(asked)).await).await.unwrap();
    assert!(said.iter().all(|event| !matches!(event, ModelEvent::ToolCall(_))), "{said:?}");
    assert_eq!(said[0], ModelEvent::Text("Here: ".to_owned()));
}

#[tokio::test]
async fn a_recording_replays_each_turn_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let capabilities = json!({"tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192});
    let turns = vec![
        json!({"events": [{"thinking": "hm"}, {"text": "a"}, {"text": "b"}], "usage": {"input_tokens": 5, "output_tokens": 2}}),
        json!({"events": [{"text": "c"}, {"error": "out of memory"}]}),
    ];
    let scripted = Arc::new(scripted_turns(capabilities, turns));
    let recording = RecordingModel::create(Arc::clone(&scripted) as _, &path).await.unwrap();
    let first = question("hi");
    let mut second = question("hi");
    second.messages.push(message(ChatRole::Assistant, "ab"));

    let recorded_first = collect_turn(recording.chat(first.clone()).await).await.unwrap();
    let recorded_second = pieces(recording.chat(second.clone()).await.unwrap()).await;
    assert_eq!(recorded_second.last().unwrap(), "error: model server: out of memory");

    let replaying = ReplayingModel::open(&path).await.unwrap();
    assert_eq!(replaying.model_id(), "scripted");
    assert_eq!(replaying.capabilities().await.unwrap(), scripted.capabilities().await.unwrap());
    for _ in 0..2 {
        assert_eq!(collect_turn(replaying.chat(first.clone()).await).await.unwrap(), recorded_first);
        assert_eq!(pieces(replaying.chat(second.clone()).await.unwrap()).await, recorded_second);
    }

    let miss = collect_turn(replaying.chat(question("something else")).await).await.unwrap_err();
    assert_eq!(miss.code(), "model_failed");
    assert!(miss.to_string().contains("replay_miss") && miss.to_string().contains("make record"), "{miss}");
}

#[tokio::test]
async fn a_script_that_does_not_fit_is_an_error() {
    let unknown_field = scripted::from_value(json!({"runs": [], "turn": 1})).unwrap_err();
    assert!(unknown_field.to_string().contains("turn"), "{unknown_field}");

    let capabilities = json!({"tool_style": "native", "thinking": true, "small": false, "context_tokens": null});
    let model = scripted_turns(capabilities, vec![texts(&["a"])]);
    let mut again = question("hi");
    again.messages.push(message(ChatRole::Assistant, "a"));
    let past_the_end = collect_turn(model.chat(again).await).await.unwrap_err();
    assert!(past_the_end.to_string().contains("1 turns"), "{past_the_end}");
}

fn scripted_turns(capabilities: Value, turns: Vec<Value>) -> scripted::ScriptedModel {
    scripted::from_value(json!({"capabilities": capabilities, "runs": [{"turns": turns}]})).unwrap()
}

fn texts(pieces: &[&str]) -> Value {
    let events: Vec<Value> = pieces.iter().map(|piece| json!({"text": piece})).collect();
    json!({ "events": events })
}

pub(crate) fn run_sql_spec() -> ToolSpec {
    ToolSpec {
        name: "run_sql".to_owned(),
        description: "Runs a query.".to_owned(),
        parameters: json!({"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}),
    }
}

fn message(role: ChatRole, content: &str) -> ChatMessage {
    ChatMessage::text(role, content)
}

pub(crate) fn question(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![message(ChatRole::User, text)],
        tools: Vec::new(),
        format: None,
        think: None,
        max_output_tokens: None,
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        variation: 0,
    }
}

fn turn(messages: Vec<ChatMessage>) -> TurnRequest {
    let tools = vec![run_sql_spec()];
    TurnRequest {
        messages,
        known_tools: tools.clone(),
        client_tools: Vec::new(),
        tools,
        may_answer: true,
        think: None,
        max_output_tokens: None,
        answer_schema: None,
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        variation: 0,
    }
}

type ModelTurn = futures::stream::BoxStream<'static, Result<ModelEvent>>;

/// Reads a turn to its end.
pub(crate) async fn collect_turn(turn: Result<ModelTurn>) -> Result<Vec<ModelEvent>, AgentError> {
    turn?.collect::<Vec<_>>().await.into_iter().collect()
}

/// Returns every piece as a string, errors included.
async fn pieces(turn: ModelTurn) -> Vec<String> {
    turn.map(|piece| piece.map_or_else(|error| format!("error: {error}"), |event| format!("{event:?}"))).collect().await
}

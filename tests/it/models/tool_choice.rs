//! A call that the client forces, with models of Ollama, whose protocol has no such field: the reply is held to a schema.

use std::sync::Arc;

use querent_agent::models::actions::{ToolCalling, TurnRequest};
use querent_agent::models::{ChatRole, ModelEvent, ModelProvider, ToolChoice, ToolSpec};
use querent_tests::ServerProcess;
use serde_json::{Value, json};

use super::fake_ollama::{CannedReply, FakeOllama};
use super::{collect_turn, message, run_sql_spec, turn};

fn person() -> ToolSpec {
    let parameters = json!({ "type": "object", "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
        "required": ["name"] });
    ToolSpec { name: "Person".to_owned(), description: "A person.".to_owned(), parameters }
}

#[tokio::test]
async fn a_named_call_is_held_to_the_schema_of_its_arguments() {
    for model in ["gemma4", "no-tools"] {
        let server = FakeOllama::start(CannedReply::text(r#"{"name": "Ada", "age": 36}"#)).await;
        let provider = Arc::new(server.model(model));
        let capabilities = provider.capabilities().await.unwrap();
        let request = TurnRequest {
            tools: vec![person()],
            known_tools: vec![run_sql_spec(), person()],
            client_tools: vec!["Person".to_owned()],
            tool_choice: ToolChoice::Named("Person".to_owned()),
            ..turn(vec![message(ChatRole::User, "Ada is 36.")])
        };
        let events = collect_turn(ToolCalling::new(provider, capabilities).turn(request).await).await.unwrap();
        let ModelEvent::ToolCall(call) = &events[0] else { panic!("{events:?}") };
        assert_eq!((call.name.as_str(), &call.arguments), ("Person", &json!({ "name": "Ada", "age": 36 })));
        let sent = server.chats().remove(0);
        assert_eq!(sent["format"], person().parameters, "{sent}");
        assert!(sent.get("tools").is_none(), "{sent}");
        assert!(sent["messages"].to_string().contains("Call the tool Person now"), "{sent}");
    }
}

/// Also of a model without tool calls, whose other replies are actions.
#[tokio::test]
async fn a_document_is_held_to_its_schema_and_is_no_call() {
    for model in ["gemma4", "no-tools"] {
        let document = r#"{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}"#;
        let server = FakeOllama::start(CannedReply::text(document)).await;
        let provider = Arc::new(server.model(model));
        let capabilities = provider.capabilities().await.unwrap();
        let schema = json!({ "type": "object", "required": ["name", "arguments"] });
        let request = TurnRequest {
            tools: Vec::new(),
            known_tools: vec![run_sql_spec()],
            answer_schema: Some(schema.clone()),
            ..turn(vec![message(ChatRole::User, "which call would you make?")])
        };
        let events = collect_turn(ToolCalling::new(provider, capabilities).turn(request).await).await.unwrap();
        assert_eq!(events[0], ModelEvent::Text(document.to_owned()), "{model}: {events:?}");
        assert_eq!(server.chats().remove(0)["format"], schema, "{model}");
    }
}

#[tokio::test]
async fn any_call_is_held_to_the_union_of_calls() {
    let server = FakeOllama::start(CannedReply::text(r#"{"action": "run_sql", "sql": "SELECT 1"}"#)).await;
    let provider = Arc::new(server.model("gemma4"));
    let capabilities = provider.capabilities().await.unwrap();
    let request = TurnRequest {
        tools: vec![run_sql_spec(), person()],
        known_tools: vec![run_sql_spec(), person()],
        client_tools: vec!["Person".to_owned()],
        tool_choice: ToolChoice::Required,
        ..turn(vec![message(ChatRole::User, "how many?")])
    };
    let events = collect_turn(ToolCalling::new(provider, capabilities).turn(request).await).await.unwrap();
    let ModelEvent::ToolCall(call) = &events[0] else { panic!("{events:?}") };
    assert_eq!((call.name.as_str(), &call.arguments), ("run_sql", &json!({ "sql": "SELECT 1" })));
    let format = server.chats().remove(0)["format"].clone();
    let actions: Vec<&Value> =
        format["anyOf"].as_array().unwrap().iter().map(|one| &one["properties"]["action"]["const"]).collect();
    assert_eq!(actions, [&json!("run_sql"), &json!("Person")], "{format}");
}

/// From a client's request to its answer: the run ends with the call, whatever the model would rather say.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_a_tool_gets_its_call() {
    let ollama = FakeOllama::start(CannedReply::text(r#"{"action": "Person", "name": "Ada", "age": 36}"#)).await;
    let host = ollama.host();
    let server = ServerProcess::start(&[("QUERENT_AGENT_OLLAMA_HOST", &host), ("QUERENT_AGENT_MODEL", "gemma4")]);
    let url = format!("{}/v1/chat/completions", server.url.trim_end_matches('/'));
    let function = json!({ "name": "Person", "description": "A person.", "parameters": person().parameters });
    for choice in [json!("required"), json!({ "type": "function", "function": { "name": "Person" } })] {
        let body = json!({
            "messages": [{ "role": "user", "content": "Ada is 36." }],
            "tools": [{ "type": "function", "function": function }],
            "tool_choice": choice,
        });
        let reply = reqwest::Client::new().post(&url).json(&body).send().await.unwrap();
        let completion: Value = reply.json().await.unwrap();
        let choice = &completion["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{completion}");
        let called = &choice["message"]["tool_calls"][0]["function"];
        let arguments: Value = serde_json::from_str(called["arguments"].as_str().unwrap()).unwrap();
        assert_eq!((&called["name"], &arguments), (&json!("Person"), &json!({ "name": "Ada", "age": 36 })));
    }
}

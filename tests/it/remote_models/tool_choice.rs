//! A call that the client forces, where the model's server passes over `tool_choice`: the reply is asked for once more,
//! held to a schema.

use std::sync::Arc;

use querent_agent::models::actions::{ToolCalling, TurnRequest};
use querent_agent::models::remote::RemoteKind;
use querent_agent::models::{
    ChatMessage, ChatRole, ModelEvent, ModelProvider, ModelToolCall, Sampling, TokenUsage, ToolChoice, ToolSpec,
};
use querent_catalog::NoProgress;
use querent_flight::Server;
use querent_flight::config::{Config, EmbedProviderName};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::configured::file;
use super::provider::{CannedAnswer, Provider};
use super::said;
use crate::models::{collect_turn, run_sql_spec};

const ADA: &str = r#"{"name": "Ada", "age": 36}"#;

#[tokio::test]
async fn a_reply_without_the_forced_call_is_followed_by_one_that_is_held_to_its_schema() {
    for (choice, reply) in [
        (ToolChoice::Named("Person".to_owned()), ADA),
        (ToolChoice::Required, r#"{"action": "Person", "name": "Ada", "age": 36}"#),
    ] {
        let server = Provider::start(vec![counted("Ada is 36."), counted(reply)]).await;
        let events = forced(&server, choice.clone()).await.unwrap();
        let [ModelEvent::ToolCall(call), ModelEvent::Done { usage, .. }] = events.as_slice() else {
            panic!("{choice:?}: {events:?}")
        };
        assert_eq!((call.name.as_str(), &call.arguments), ("Person", &json!({ "name": "Ada", "age": 36 })));
        assert_eq!(*usage, TokenUsage { input_tokens: 20, output_tokens: 4, ..TokenUsage::default() });
        let [first, second] = <[_; 2]>::try_from(server.requests()).unwrap();
        assert!(first.body["tool_choice"].is_string() || first.body["tool_choice"].is_object(), "{}", first.body);
        assert!(second.body.get("tools").is_none() && second.body.get("tool_choice").is_none(), "{}", second.body);
        assert_eq!(second.body["response_format"]["type"], "json_schema", "{}", second.body);
        assert!(second.body["messages"].to_string().contains("now: reply with one JSON object"), "{}", second.body);
    }
}

/// A call of another tool is not the one that was named.
#[tokio::test]
async fn a_call_of_another_tool_is_not_the_named_one() {
    let server = Provider::start(vec![called("run_sql", r#"{"sql": "SELECT 1"}"#), said(ADA)]).await;
    let events = forced(&server, ToolChoice::Named("Person".to_owned())).await.unwrap();
    let calls: Vec<&str> = calls_of(&events).map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["Person"], "{events:?}");
}

#[tokio::test]
async fn a_server_that_heeds_the_choice_is_asked_once() {
    let server = Provider::start(vec![called("Person", ADA)]).await;
    let events = forced(&server, ToolChoice::Named("Person".to_owned())).await.unwrap();
    assert_eq!(calls_of(&events).count(), 1, "{events:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_cannot_be_forced_is_an_error() {
    for reply in ["Ada is 36.", ""] {
        let server = Provider::start(vec![said("Ada is 36."), said(reply)]).await;
        let error = forced(&server, ToolChoice::Required).await.unwrap_err();
        assert_eq!(error.code(), "model_failed");
        assert!(error.to_string().contains("the request forces a call of a tool"), "{error}");
        assert_eq!(server.requests().len(), 2);
    }
}

/// From a client's request to its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_a_tool_gets_its_call_or_an_error() {
    let replies = vec![said("Ada is 36."), said(r#"{"action": "Person", "name": "Ada", "age": 36}"#), said("No.")];
    let provider = Provider::start(replies).await;
    let data = TempDir::new().unwrap();
    let (_folder, sources) = file(&format!(
        "[[agent.models]]\nname = \"lax\"\nprovider = \"openai\"\nbase_url = \"{}\"\n",
        provider.base_url()
    ));
    let sources = sources.with_flag("listen", "127.0.0.1:0").with_flag("data", data.path().to_str().unwrap());
    let mut settings = Config::load(&sources).unwrap().settings;
    settings.embed.provider = EmbedProviderName::None;
    let server = Server::start(Config::from_settings(settings).unwrap(), Arc::new(NoProgress)).await.unwrap();
    let url = format!("http://{}/v1/chat/completions", server.addr);
    let function = json!({ "name": "Person", "description": "A person.", "parameters": person().parameters });
    let body = json!({
        "messages": [{ "role": "user", "content": "Ada is 36." }],
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": { "type": "function", "function": { "name": "Person" } },
    });
    let client = reqwest::Client::new();
    let completion: Value = client.post(&url).json(&body).send().await.unwrap().json().await.unwrap();
    let choice = &completion["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{completion}");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "Person", "{completion}");
    assert!(choice["message"]["content"].is_null(), "{completion}");
    let refused = client.post(&url).json(&body).send().await.unwrap();
    assert_eq!(refused.status(), 502);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "model_failed", "{refused}");
    server.shutdown().await.unwrap();
}

fn person() -> ToolSpec {
    let properties = json!({ "name": { "type": "string" }, "age": { "type": "integer" } });
    let parameters = json!({ "type": "object", "properties": properties, "required": ["name"] });
    ToolSpec { name: "Person".to_owned(), description: "A person.".to_owned(), parameters }
}

/// Takes a turn that must call a tool.
async fn forced(server: &Provider, tool_choice: ToolChoice) -> querent_agent::Result<Vec<ModelEvent>> {
    let provider = Arc::new(server.model(RemoteKind::OpenAi, "lax"));
    let capabilities = provider.capabilities().await?;
    let tools = match tool_choice {
        ToolChoice::Named(_) => vec![person()],
        _ => vec![run_sql_spec(), person()],
    };
    let request = TurnRequest {
        messages: vec![ChatMessage::text(ChatRole::User, "Ada is 36.")],
        tools,
        known_tools: vec![run_sql_spec(), person()],
        client_tools: vec!["Person".to_owned()],
        may_answer: true,
        think: None,
        max_output_tokens: None,
        answer_schema: None,
        tool_choice,
        sampling: Sampling::default(),
        variation: 0,
    };
    collect_turn(ToolCalling::new(provider, capabilities).turn(request).await).await
}

fn calls_of(events: &[ModelEvent]) -> impl Iterator<Item = &ModelToolCall> {
    events.iter().filter_map(|event| match event {
        ModelEvent::ToolCall(call) => Some(call),
        _ => None,
    })
}

/// A reply with what it cost.
fn counted(text: &str) -> CannedAnswer {
    CannedAnswer::chat(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}),
    ])
}

fn called(name: &str, arguments: &str) -> CannedAnswer {
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"index": 0, "id": "call_abcdefgh", "type": "function", "function": function});
    CannedAnswer::chat(&[
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

//! Anthropic's Messages: the bytes of each sequence, and how bad requests are refused.

use serde_json::{Value, json};

use super::{serve, stream};

const PATH: &str = "/v1/messages";

fn asked(text: &str) -> Value {
    json!({ "model": "querent", "max_tokens": 500, "messages": [{ "role": "user", "content": text }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sequence_of_messages_has_its_bytes() {
    let server = serve().await;
    let weather = json!([{ "name": "get_weather", "input_schema": { "type": "object" } }]);
    for (name, text, more) in [
        ("messages_plain", "thanks", json!({})),
        (
            "messages_thinking_and_tools",
            "how many?",
            json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } }),
        ),
        ("messages_client_tool", "weather?", json!({ "tools": weather })),
        ("messages_error", "fail", json!({})),
    ] {
        let mut body = asked(text);
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        insta::assert_snapshot!(name, stream(&server, PATH, body).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_refused_in_anthropics_words() {
    let server = serve().await;
    let with = |name: &str, value: Value| {
        let mut body = asked("hello");
        body[name] = value;
        body
    };
    for (body, said) in [
        (json!({}), "messages"),
        (json!({ "messages": [{ "role": "user", "content": "x" }], "model": "m" }), "max_tokens"),
        (with("messages", json!([])), "messages"),
        (with("messages", json!([{ "role": "nobody", "content": "x" }])), "role"),
        (with("messages", json!([{ "role": "user", "content": [{ "type": "hologram" }] }])), "hologram"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("temperature", json!(1.5)), "temperature"),
        (with("top_k", json!(5)), "top_k"),
        (with("colour", json!("red")), "colour"),
        (with("service_tier", json!("zzz")), "service_tier"),
        (with("output_config", json!({ "effort": "zzz" })), "output_config.effort"),
        (with("tools", json!([{ "name": "f", "input_schema": {}, "zzz": 1 }])), "tools[0].zzz"),
        (with("stop_sequences", json!("END")), "stop_sequences"),
        (with("tools", json!([{ "type": "web_search_20250305", "name": "web_search" }])), "web_search_20250305"),
        (with("tool_choice", json!({ "type": "tool", "name": "nothing" })), "nothing"),
        (with("thinking", json!({ "type": "deep" })), "thinking"),
        (with("mcp_servers", json!([{ "type": "url", "url": "https://else.example" }])), "mcp_servers"),
    ] {
        let reply = server.post(PATH, &body, Some("ann-tok")).await;
        let shown = format!("{body}: {} {}", reply.status, reply.text);
        let error = reply.json();
        assert_eq!((reply.status, &error["type"]), (400, &json!("error")), "{shown}");
        assert_eq!(error["error"]["type"], "invalid_request_error", "{shown}");
        assert!(error["error"]["message"].as_str().unwrap().contains(said), "{shown}");
        assert!(error["request_id"].is_string(), "{shown}");
    }
    let unknown = server.post(PATH, &asked("hello"), Some("no-such-token")).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["type"]), (401, &json!("authentication_error")));
    let failed = server.post(PATH, &asked("fail"), Some("ann-tok")).await;
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (502, &json!("api_error")), "{}", failed.text);
    assert_eq!(failed.header("x-should-retry"), "false");
}

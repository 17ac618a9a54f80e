//! The clients that people use with HolmesGPT, as processes of their own against a server here. The calls of its page
//! are in `pages.rs`.

use std::process::Command;

use querent_agent::models::{ModelEntry, ModelProvider, Models, scripted};
use querent_tests::{NodeJs, Python, run_client};
use serde_json::{Value, json};

use super::{serving, started, started_to_write};

#[tokio::test]
async fn fetch_event_source() {
    let server = started_to_write("").await;
    let mut node = NodeJs::client("holmes.mjs");
    node.arg(server.url(""));
    run_client(node).await;
    let slow = server.model.requests().iter().filter(|request| asks(request, "slowly")).count();
    assert_eq!(slow, 2, "one run of two turns, however often the request was sent");
}

#[tokio::test]
async fn httpx_sse() {
    let server = started_to_write("tok:write").await;
    let mut python = Python::client("holmes.py");
    python.args([server.url(""), "tok".to_owned()]);
    run_client(python).await;
}

/// Each field that a caller may add, sent with curl.
#[tokio::test]
async fn curl() {
    let server = started().await;
    let post = |body: Value| {
        let url = server.url("/api/chat");
        let body = body.to_string();
        async move {
            let answer = run_curl(&["-X", "POST", &url, "-H", "Content-Type: application/json", "-d", &body]).await;
            (body, answer)
        }
    };
    let schema = json!({
        "type": "json_schema",
        "json_schema": { "name": "Fleet", "strict": true, "schema": {
            "type": "object",
            "properties": {
                "is_healthy": { "type": "boolean", "description": "Whether every plane can fly" },
            },
            "required": ["is_healthy"],
            "additionalProperties": false,
        } },
    });
    let fewer = json!({
        "todowrite_instructions": false, "todowrite_reminder": false, "ai_safety": false, "style_guide": false,
        "general_instructions": false,
    });
    let system = json!([{ "role": "system", "content": "Answer in one sentence." }]);
    for body in [
        json!({ "ask": "which tables are there?", "model": "scripted" }),
        json!({ "ask": "why are flights late?",
            "behavior_controls": { "todowrite_instructions": false, "todowrite_reminder": false } }),
        json!({ "ask": "name all carriers", "behavior_controls": fewer }),
        json!({ "ask": "is the fleet healthy?", "response_format": schema }),
        json!({ "ask": "how was yesterday?", "conversation_history": system }),
        json!({ "ask": "what does this show?", "images": ["https://pictures.example/delays.png"] }),
        json!({ "ask": "read this plan", "images": ["data:image/png;base64,iVBORw0KGgo="] }),
        json!({ "ask": "which of the two is newer?", "images": [
            "https://pictures.example/a.png", { "url": "https://pictures.example/b.png", "detail": "high" },
        ] }),
    ] {
        let (body, answer) = post(body).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["analysis"].is_string() && answer["tool_calls"].is_array(), "{body}: {answer}");
        let history = answer["conversation_history"].as_array().unwrap();
        assert_eq!(history.len(), 3, "{body}: {answer}");
        assert_eq!(answer["follow_up_actions"].as_array().unwrap().len(), 3, "{body}");
    }
    // The provider's name of a model instead of the list's.
    let (_, refused) = post(json!({ "ask": "plain", "model": "provider/scripted" })).await;
    assert!(refused.contains("configured models"), "{refused}");
    let models = run_curl(&[&server.url("/api/model")]).await;
    assert_eq!(models, r#"{"model_name":["scripted"]}"#);
}

/// Each name of a list with settings for each model chooses its own model.
#[tokio::test]
async fn models_by_name() {
    let entry = |name: &str, says: &str| {
        let turns = json!([{ "events": [{ "text": says }], "usage": { "input_tokens": 1_000, "output_tokens": 100 } }]);
        let model = scripted::from_value(json!({ "model": name, "runs": [{ "turns": turns }] })).unwrap();
        let provider: std::sync::Arc<dyn ModelProvider> = std::sync::Arc::new(model);
        ModelEntry { name: name.to_owned(), ..ModelEntry::from_provider(provider) }
    };
    let price = querent_agent::models::Price { input: 2.0, output: 10.0, cached_input: None };
    let accurate = ModelEntry {
        price: Some(price),
        context_tokens: Some(32_000),
        max_output_tokens: Some(500),
        ..entry("accurate-model", "Slow and right.")
    };
    let models = Models::new(vec![entry("fast-model", "Quick."), accurate]).unwrap();
    let (server, _data) = serving(models).await;
    let url = format!("http://{}/api", server.addr);
    let names = run_curl(&[&format!("{url}/model")]).await;
    assert_eq!(names, r#"{"model_name":["fast-model","accurate-model"]}"#);
    for (model, says) in [("fast-model", "Quick."), ("accurate-model", "Slow and right.")] {
        let body = json!({ "ask": "plain", "model": model }).to_string();
        let answer = run_curl(&["-X", "POST", &format!("{url}/chat"), "-d", &body]).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["analysis"], says);
        let metadata = &answer["metadata"];
        let is_accurate = model == "accurate-model";
        assert_eq!(metadata["costs"]["total_cost"].as_f64().unwrap() > 0.0029, is_accurate, "{metadata}");
        assert_eq!(metadata["max_tokens"] == 32_000, is_accurate, "{metadata}");
        assert_eq!(metadata["max_output_tokens"] == 500, is_accurate, "{metadata}");
        assert_eq!(metadata["usage"]["total_tokens"], 1_100);
    }
    server.shutdown().await.unwrap();
}

fn asks(request: &querent_agent::models::ChatRequest, question: &str) -> bool {
    request.messages.iter().any(|message| message.content.contains(question))
}

async fn run_curl(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60"]).args(arguments);
    let [printed, _] = run_client(curl).await;
    printed
}

//! The clients that HolmesGPT's page names, and its own curl calls, as processes of their own against a server here.

use std::process::Command;

use querent_agent::models::{ModelEntry, ModelProvider, Models, scripted};
use querent_tests::{Node, Python, TestServer, TestSettings, package_folder};
use serde_json::{Value, json};

use super::{script, serving, started, started_to_write};

#[tokio::test]
async fn fetch_event_source() {
    let server = started_to_write("").await;
    let mut node = Node::command(&package_folder().join("clients/holmes.mjs"));
    node.arg(server.url(""));
    succeeds(node).await;
    let slow = server.model.requests().iter().filter(|request| asks(request, "slowly")).count();
    assert_eq!(slow, 2, "one run of two turns, however often the request was sent");
}

#[tokio::test]
async fn httpx_sse() {
    let server = started_to_write("tok:write").await;
    let mut python = Python::command([package_folder().join("clients/holmes.py")]);
    python.args([server.url(""), "tok".to_owned()]);
    succeeds(python).await;
}

/// The page's calls, host aside.
#[tokio::test]
async fn curl() {
    let server = started().await;
    let post = |body: Value| {
        let url = server.url("/api/chat");
        let body = body.to_string();
        async move {
            let answer = curl_of(&["-X", "POST", &url, "-H", "Content-Type: application/json", "-d", &body]).await;
            (body, answer)
        }
    };
    let schema = json!({
        "type": "json_schema",
        "json_schema": { "name": "ClusterHealthResult", "strict": true, "schema": {
            "type": "object",
            "properties": {
                "is_healthy": { "type": "boolean", "description": "Whether the cluster is healthy" },
            },
            "required": ["is_healthy"],
            "additionalProperties": false,
        } },
    });
    let fewer = json!({
        "todowrite_instructions": false, "todowrite_reminder": false, "ai_safety": false, "style_guide": false,
        "general_instructions": false,
    });
    let system = json!([{ "role": "system", "content": "You are a helpful assistant." }]);
    for body in [
        json!({ "ask": "list pods", "model": "scripted" }),
        json!({ "ask": "Why is my pod crashing?",
            "behavior_controls": { "todowrite_instructions": false, "todowrite_reminder": false } }),
        json!({ "ask": "List all pods in the default namespace", "behavior_controls": fewer }),
        json!({ "ask": "Is the cluster healthy?", "response_format": schema }),
        json!({ "ask": "What is the status of my cluster?", "conversation_history": system }),
        json!({ "ask": "What is in this image?", "images": ["https://example.com/screenshot.png"] }),
        json!({ "ask": "Analyze this diagram", "images": ["data:image/png;base64,iVBORw0KGgoAAAANS..."] }),
        json!({ "ask": "Compare these images", "images": [
            "https://example.com/before.png", { "url": "https://example.com/after.png", "detail": "high" },
        ] }),
    ] {
        let (body, answer) = post(body).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["analysis"].is_string() && answer["tool_calls"].is_array(), "{body}: {answer}");
        let history = answer["conversation_history"].as_array().unwrap();
        assert_eq!(history.len(), 3, "{body}: {answer}");
        assert_eq!(answer["follow_up_actions"].as_array().unwrap().len(), 3, "{body}");
    }
    // The page's example of what fails: the provider's name of a model instead of the list's.
    let (_, refused) = post(json!({ "ask": "list pods", "model": "anthropic/claude-sonnet-4-5-20250929" })).await;
    assert!(refused.contains("configured models"), "{refused}");
    let models = curl_of(&[&server.url("/api/model")]).await;
    assert_eq!(models, r#"{"model_name":["scripted"]}"#);
}

/// Names of a list with per-model settings: each chooses its own.
#[tokio::test]
async fn models_by_name() {
    let entry = |name: &str, says: &str| {
        let turns = json!([{ "events": [{ "text": says }], "usage": { "input_tokens": 1_000, "output_tokens": 100 } }]);
        let model = scripted::from_value(json!({ "model": name, "runs": [{ "turns": turns }] })).unwrap();
        let provider: std::sync::Arc<dyn ModelProvider> = std::sync::Arc::new(model);
        ModelEntry { name: name.to_owned(), ..ModelEntry::of(provider) }
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
    let names = curl_of(&[&format!("{url}/model")]).await;
    assert_eq!(names, r#"{"model_name":["fast-model","accurate-model"]}"#);
    for (model, says) in [("fast-model", "Quick."), ("accurate-model", "Slow and right.")] {
        let body = json!({ "ask": "list pods", "model": model }).to_string();
        let answer = curl_of(&["-X", "POST", &format!("{url}/chat"), "-d", &body]).await;
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

/// A stream of `curl -N`, and its resume, as the page has them.
#[tokio::test]
async fn curl_of_frontend_tools() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    let url = server.url("/api/chat");
    let tools = json!([
        {
            "name": "render_chart",
            "description": "Render a chart in the user interface. Returns chart metadata.",
            "mode": "pause",
            "parameters": { "type": "object", "properties": {
                "chart_type": { "type": "string", "description": "Type of chart (line, bar, pie)" },
                "data_source": { "type": "string", "description": "Metric or data source to chart" },
                "time_range": { "type": "string", "description": "Time range (e.g. 1h, 24h, 7d)" },
            } },
        },
        {
            "name": "navigate_to_page",
            "description": "Navigate the user to a page in the application.",
            "mode": "noop",
            "noop_response": "Navigation triggered successfully.",
            "parameters": { "type": "object", "properties": {
                "page": { "type": "string", "description": "Page path (e.g. /dashboards, /alerts)" },
            } },
        },
    ]);
    let body = json!({
        "ask": "Show me a CPU usage chart and navigate to the dashboards page", "stream": true, "frontend_tools": tools,
    });
    let stream =
        curl_of(&["-N", "-X", "POST", &url, "-H", "Content-Type: application/json", "-d", &body.to_string()]).await;
    let paused = querent_tests::collect_sse(&stream).pop().unwrap();
    assert_eq!(paused.event, "approval_required");
    let body = json!({
        "ask": "Show me a CPU usage chart for the last hour",
        "stream": true,
        "conversation_history": paused.data["conversation_history"],
        "frontend_tool_results": [{
            "tool_call_id": paused.data["pending_frontend_tool_calls"][0]["tool_call_id"],
            "tool_name": "render_chart",
            "result": "{\"rendered\": true, \"chart_url\": \"/charts/cpu-1h.png\"}",
        }],
    });
    let stream =
        curl_of(&["-N", "-X", "POST", &url, "-H", "Content-Type: application/json", "-d", &body.to_string()]).await;
    let frames = querent_tests::collect_sse(&stream);
    assert_eq!(frames[0].data["result"]["data"], "{\"rendered\": true, \"chart_url\": \"/charts/cpu-1h.png\"}");
}

fn asks(request: &querent_agent::models::ChatRequest, question: &str) -> bool {
    request.messages.iter().any(|message| message.content.contains(question))
}

async fn curl_of(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60"]).args(arguments);
    let output = tokio::task::spawn_blocking(move || curl.output().expect("curl starts")).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn succeeds(mut client: Command) {
    let output = tokio::task::spawn_blocking(move || client.output().expect("the client starts")).await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}

//! The agent's routes: the SSE stream as a client sees it, stored runs, who sees whose, the published examples.

use querent_tests::{HttpReply, Python, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

const QUESTION: &str = "which service errored most in the last hour?";
const SQL: &str = "SELECT service_name, count(*) AS n FROM otel_logs WHERE severity_text = 'ERROR' \
                   AND timestamp > now() - interval '1 hour' GROUP BY service_name ORDER BY n DESC LIMIT 5";

#[tokio::test]
async fn a_question_is_answered_over_sse() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    server.seed_otel_logs().await;
    let reply = server.post("/v1/agent/ask", &question(true), None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.header("content-type"), "text/event-stream");
    assert_eq!((reply.header("cache-control"), reply.header("x-accel-buffering")), ("no-cache", "no"));

    let frames = collect_sse(&reply.text);
    let events: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    let expected = [
        "run_started",
        "thinking_delta",
        "tool_call",
        "tool_result",
        "answer_delta",
        "answer_delta",
        "answer_final",
        "run_finished",
    ];
    assert_eq!(events, expected);
    assert_eq!(frames[0].data["question"], QUESTION);
    assert_eq!((&frames[2].data["tool"], &frames[2].data["call_index"]), (&json!("run_sql"), &json!(0)));
    assert_eq!(frames[3].data["result"]["rows"][0], json!({ "service_name": "payments", "n": 12 }));
    let ticket = &frames[3].data["ticket"];
    let answer = json!({ "text": "payments, with 12.", "kql_used": null, "sql_used": SQL, "ticket": ticket, "proof": [
        { "text": "payments", "start": 0, "end": 8, "origin": "cell", "value": "payments",
          "cell": { "call_index": 0, "row": 0, "column": "service_name" } },
        { "text": "12", "start": 15, "end": 17, "origin": "cell", "value": 12,
          "cell": { "call_index": 0, "row": 0, "column": "n" } },
    ], "confidence": { "level": "likely", "reasons": ["nothing was repaired and no check found anything"] } });
    assert!(ticket.is_string() && frames[6].data == answer, "{}", frames[6].data);
    assert_eq!(frames[7].data["usage"]["input_tokens"], 300, "{:?}", frames[7]);

    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let stored = server.get(&format!("/v1/agent/runs/{run_id}"), None).await.json();
    assert_eq!((&stored["status"], &stored["question"]), (&json!("success"), &json!(QUESTION)));
    let trace: Vec<Value> = frames.iter().map(|frame| json!({ "event": frame.event, "data": frame.data })).collect();
    assert_eq!(stored["trace"], json!(trace), "the stored trace is what was streamed");
    let published = "SELECT run_id, question, model_id, status, started_at, finished_at, usage_json, trace_json \
                     FROM agent_runs ORDER BY started_at DESC LIMIT 10";
    let rows = super::query_as(&server, published, None).await.lines();
    assert_eq!((&rows[0]["run_id"], &rows[0]["status"]), (&json!(run_id), &json!("success")));
}

#[tokio::test]
async fn thinking_is_kept_back_unless_asked_for() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    server.seed_otel_logs().await;
    let reply = server.post("/v1/agent/ask", &question(false), None).await;
    assert!(!reply.text.contains("thinking_delta"), "{}", reply.text);
}

#[tokio::test]
async fn bad_questions_get_a_flat_error_and_no_stream() {
    let server = TestServer::start(TestSettings::default()).await;
    for empty in [json!({ "question": "" }), json!({ "question": "  \n" }), json!({})] {
        let reply = server.post("/v1/agent/ask", &empty, None).await;
        assert_eq!((reply.status, reply.json()), (400, json!({ "error": "question must be non-empty" })));
    }
    for bad in [json!([]), json!({ "question": 3 })] {
        let reply = server.post("/v1/agent/ask", &bad, None).await;
        assert_eq!((reply.status, reply.json()["error"].is_string()), (400, true), "{}", reply.text);
    }
    let nowhere = json!({ "question": "what?", "database": "nowhere" });
    let reply = server.post("/v1/agent/ask", &nowhere, None).await;
    assert_eq!((reply.status, reply.header("x-querent-error-code")), (404, "database_not_found"), "{}", reply.text);
}

#[tokio::test]
async fn a_missing_model_is_an_error_inside_the_stream() {
    let script = json!({ "unavailable": "not_found", "runs": [] });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    let reply = server.post("/v1/agent/ask", &json!({ "question": "what?" }), None).await;
    assert_eq!(reply.status, 200);
    let frames = collect_sse(&reply.text);
    assert_eq!(frames.iter().map(|frame| frame.event.as_str()).collect::<Vec<_>>(), ["run_error", "run_finished"]);
    assert_eq!(frames[0].data["code"], "init_error");
    assert!(frames[0].data["message"].as_str().unwrap().contains("ollama pull"), "{:?}", frames[0]);
}

#[tokio::test]
async fn where_the_models_server_is_is_told_to_administrators_only() {
    for (unavailable, code) in [("not_found", "model_not_found"), ("unreachable", "model_unreachable")] {
        let script = json!({ "unavailable": unavailable, "runs": [] });
        let settings = TestSettings::default().tokens("ann-tok:write:ann,admin-tok:admin:boss").script(script);
        let server = TestServer::start(settings).await;
        for (token, is_told) in [("ann-tok", false), ("admin-tok", true)] {
            let reply = server.post("/v1/agent/ask", &json!({ "question": "what?" }), Some(token)).await;
            let failed = &collect_sse(&reply.text)[0].data;
            assert_eq!((failed["code"].as_str(), failed["detail_code"].as_str()), (Some("init_error"), Some(code)));
            let message = failed["message"].as_str().unwrap();
            assert_eq!(message.contains("at the script"), is_told, "{message}");
            assert_eq!(message.contains("tell whoever runs this server"), !is_told, "{message}");
        }
    }
}

#[tokio::test]
async fn runs_are_listed_and_seen_by_their_owner_and_administrators() {
    let tokens = "ann-tok:read:ann,bob-tok:read:bob,admin-tok:admin:boss";
    let server = TestServer::start(TestSettings::default().tokens(tokens)).await;
    let mut ids = Vec::new();
    for number in 0..3 {
        let body = json!({ "question": format!("question {number}?") });
        ids.push(run_id(&server.post("/v1/agent/ask", &body, Some("ann-tok")).await));
    }
    let listed = |reply: &Value| -> Vec<String> {
        let runs = reply["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/v1/agent/runs?limit=2", Some("ann-tok")).await.json();
    let token = first["next_page_token"].as_str().expect("a second page");
    let rest = server.http.get(server.url("/v1/agent/runs?limit=2")).query(&[("page_token", token)]);
    let rest = server.send(rest, Some("ann-tok")).await.json();
    let mut all = listed(&first);
    all.extend(listed(&rest));
    assert_eq!(all, ids.iter().rev().cloned().collect::<Vec<_>>(), "newest first");
    assert_eq!(first["runs"][0].get("trace"), None);

    let path = format!("/v1/agent/runs/{}", ids[0]);
    assert_eq!(server.get(&path, Some("ann-tok")).await.status, 200);
    assert_eq!(server.get(&path, Some("admin-tok")).await.status, 200);
    assert_eq!(listed(&server.get("/v1/agent/runs", Some("bob-tok")).await.json()), Vec::<String>::new());
    let hidden = server.get(&path, Some("bob-tok")).await;
    let unknown = server.get("/v1/agent/runs/01890000-0000-7000-8000-000000000000", Some("bob-tok")).await;
    assert_eq!((hidden.status, unknown.status), (404, 404));
    assert!(hidden.json()["error"].is_string(), "{}", hidden.text);
    let cancel = server.post(&format!("{path}/cancel"), &json!({}), Some("bob-tok")).await;
    assert_eq!(cancel.status, 404);
    let bad = server.get("/v1/agent/runs/42", Some("ann-tok")).await;
    assert_eq!((bad.status, bad.json()["error"].is_string()), (400, true), "{}", bad.text);
}

#[tokio::test]
async fn runs_beyond_the_bound_must_retry_and_cancel_frees_a_place() {
    let script = json!({ "runs": [{ "turns": [{ "events": ["hang"] }], "repeat_last": true }] });
    let settings = TestSettings::default().script(script);
    let server = TestServer::start(settings.change(|settings| settings.agent.max_concurrent_runs = 1)).await;
    let body = json!({ "question": "are you there?" });
    let held = server.http.post(server.url("/v1/agent/ask")).json(&body).send().await.unwrap();
    assert_eq!(held.status(), 200);

    let refused = server.post("/v1/agent/ask", &body, None).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"), "{}", refused.text);
    assert!(refused.json()["error"].is_string());

    let runs = server.get("/v1/agent/runs", None).await.json();
    assert_eq!(runs["runs"][0]["status"], "running");
    let id = runs["runs"][0]["run_id"].as_str().unwrap();
    let cancelled = server.post(&format!("/v1/agent/runs/{id}/cancel"), &json!({}), None).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let frames = collect_sse(&held.text().await.unwrap());
    assert_eq!(frames.last().unwrap().event, "run_finished");
    let stored = server.get(&format!("/v1/agent/runs/{id}"), None).await.json();
    assert_eq!(stored["status"], "cancelled");
    let again = server.http.post(server.url("/v1/agent/ask")).json(&body).send().await.unwrap();
    assert_eq!(again.status(), 200);
}

/// The two calls of the protocol's published page, by curl and by Python.
#[tokio::test(flavor = "multi_thread")]
async fn the_published_curl_and_python_examples_work() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read").script(script())).await;
    server.seed_otel_logs().await;
    let url = server.url("/v1/agent/ask");

    let body = r#"{
        "question": "which service errored most in the last hour?",
        "database": "default",
        "include_thinking": false
    }"#;
    let output = tokio::process::Command::new("curl")
        .args(["-sS", "-N", "-X", "POST", &url, "-H", "Authorization: Bearer reader-tok"])
        .args(["-H", "Content-Type: application/json", "-d", body])
        .output()
        .await
        .unwrap();
    let frames = collect_sse(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(frames.first().unwrap().event, "run_started");
    assert_eq!(frames.last().unwrap().event, "run_finished");
    assert!(frames.iter().any(|frame| frame.event == "answer_final" && frame.data["text"] == "payments, with 12."));

    let printed = tokio::task::spawn_blocking(move || Python::run(PYTHON_EXAMPLE, &[&url])).await.unwrap();
    let events: Vec<&str> = printed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(events.first(), Some(&"run_started"), "{printed}");
    assert!(events.contains(&"thinking_delta"), "{printed}");
    assert_eq!(events.last(), Some(&"run_finished"), "{printed}");
}

/// The smallest client there is: httpx and a loop over lines.
const PYTHON_EXAMPLE: &str = r#"
import json
import sys

import httpx

with httpx.stream(
    "POST",
    sys.argv[1],
    headers={"Authorization": "Bearer reader-tok", "Content-Type": "application/json"},
    json={"question": "top 5 errors in the last hour", "database": "default", "include_thinking": True},
    timeout=None,
) as resp:
    event = None
    for line in resp.iter_lines():
        if line.startswith("event:"):
            event = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            payload = json.loads(line.removeprefix("data:").strip())
            print(event, payload)
        elif line == "":
            event = None  # frame boundary
"#;

fn question(include_thinking: bool) -> Value {
    json!({ "question": QUESTION, "database": "default", "include_thinking": include_thinking })
}

fn run_id(reply: &HttpReply) -> String {
    let frames = collect_sse(&reply.text);
    frames[0].data["run_id"].as_str().unwrap_or_else(|| panic!("{}", reply.text)).to_owned()
}

fn script() -> Value {
    json!({
        "capabilities": { "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 },
        "runs": [{
            "turns": [
                {
                    "events": [
                        { "thinking": "count errors by service" },
                        { "tool_call": { "name": "run_sql", "arguments": { "database": "default", "sql": SQL } } },
                    ],
                    "usage": { "input_tokens": 100, "output_tokens": 20 },
                },
                {
                    "events": [{ "text": "payments, " }, { "text": "with 12." }],
                    "usage": { "input_tokens": 200, "output_tokens": 5 },
                },
            ],
        }],
    })
}

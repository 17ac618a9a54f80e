//! The ask protocol as a pure fold: requests in, frames and documents out, against what its pages fix.

use chrono::{DateTime, Utc};
use querent_agent::protocols::Renderer;
use querent_agent::protocols::ask::{AskRenderer, parse_request, run_json, run_list_json};
use querent_agent::{AskRequest, RunErrorCode, RunEvent, Usage};
use querent_catalog::{Page, PageToken, RunRecord, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn requests_are_read_leniently_and_refused_clearly() {
    let read = |body: &str| parse_request(body.as_bytes());
    assert_eq!(
        read(r#"{"question": "  which service errored most? ", "database": "default", "include_thinking": true, "session_id": 7}"#)
            .unwrap(),
        AskRequest {
            question: "which service errored most?".to_owned(),
            database: Some("default".to_owned()),
            include_thinking: true
        }
    );
    let plain = AskRequest { question: "q".to_owned(), database: None, include_thinking: false };
    for body in [
        r#"{"question": "q"}"#,
        r#"{"question": "q", "database": null, "include_thinking": null}"#,
        r#"{"question": "q", "database": ""}"#,
    ] {
        assert_eq!(read(body).unwrap(), plain, "{body}");
    }
    for body in ["{}", r#"{"question": ""}"#, r#"{"question": " \n\t"}"#, r#"{"question": null}"#] {
        let error = read(body).unwrap_err();
        assert_eq!(error.code(), "empty_question", "{body}");
        assert_eq!(error.to_string(), "question must be non-empty");
    }
    for (body, message) in [
        (r#"{"question": 7}"#, "`question` must be a string, not a number"),
        (r#"{"question": "q", "database": ["a"]}"#, "`database` must be a string, not an array"),
        (r#"{"question": "q", "include_thinking": "yes"}"#, "`include_thinking` must be true or false, not a string"),
        ("[]", "the body must be a JSON object, not an array"),
        ("", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
    ] {
        let error = read(body).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), ("invalid_request", message), "{body}");
    }
    let long = json!({ "question": "q".repeat(40_000) }).to_string();
    assert_eq!(read(&long).unwrap_err().code(), "invalid_request");
}

#[test]
fn every_event_has_its_frame() {
    let run_id = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);
    let events = [
        RunEvent::RunStarted { run_id, model: "gemma4:latest".to_owned(), question: "top 5 \"errors\"\n?".to_owned() },
        RunEvent::ThinkingDelta { text: "Looking at the schema.".to_owned() },
        RunEvent::AnswerDelta { text: "Over the last hour, ".to_owned() },
        RunEvent::ToolCall { tool: "run_sql".to_owned(), args: json!({"sql": "SELECT 1"}), call_index: 0 },
        RunEvent::ToolResult {
            tool: "run_sql".to_owned(),
            call_index: 0,
            result: json!({"columns": [{"name": "n", "type": "Int64"}], "rows": [{"n": 1}], "row_count": 1, "truncated": false}),
        },
        RunEvent::AnswerFinal {
            text: "Over the last hour, ü.".to_owned(),
            kql_used: None,
            sql_used: Some("SELECT 1".to_owned()),
        },
        RunEvent::RunError {
            code: RunErrorCode::Timeout,
            message: "the run took longer than 60 s".to_owned(),
            detail_code: "run_timeout",
        },
        RunEvent::RunFinished {
            run_id,
            usage: Usage { tool_calls: 2, elapsed_ms: 1840, input_tokens: 940, output_tokens: 320 },
        },
    ];
    let mut renderer = AskRenderer;
    let lines: Vec<String> = events
        .iter()
        .flat_map(|event| renderer.frame(event))
        .map(|frame| {
            assert!(!frame.data.contains('\n'), "one line of data a frame");
            format!("event: {}\ndata: {}\n", frame.event.unwrap(), frame.data)
        })
        .collect();
    insta::assert_snapshot!("frames", lines.join("\n"));
}

#[test]
fn stored_runs_have_their_documents() {
    let run = |status: RunStatus, finished_at: Option<&str>, trace_json: &str| RunRecord {
        status,
        finished_at: finished_at.map(at),
        usage_json: r#"{"tool_calls":2,"elapsed_ms":1840,"input_tokens":940,"output_tokens":320}"#.to_owned(),
        trace_json: trace_json.to_owned(),
        ..RunRecord::new(
            Uuid::from_u128(7),
            "ann",
            "top 5 errors in the last hour",
            "gemma4:latest",
            at("2026-05-02T10:14:22Z"),
        )
    };
    let trace = r#"[{"event":"run_started","data":{"model":"gemma4:latest"}}]"#;
    let finished = run(RunStatus::Success, Some("2026-05-02T10:14:24Z"), trace);
    insta::assert_snapshot!("run_document", pretty(&run_json(&finished)));
    let running = run(RunStatus::Running, None, "");
    assert_eq!(run_json(&running)["trace"], json!([]));
    assert_eq!(run_json(&running)["finished_at"], Value::Null);
    let page = Page { items: vec![finished], next: Some(PageToken("abc".to_owned())) };
    insta::assert_snapshot!("run_list", pretty(&run_list_json(&page)));
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap()
}

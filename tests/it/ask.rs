//! The ask protocol as a pure fold: requests in, frames and documents out, against what its pages fix.

mod sequences;

use chrono::{DateTime, Utc};
use querent_agent::models::TokenUsage;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::ask::{AskRenderer, parse_request, run_json, run_list_json};
use querent_agent::{
    AnswerFinal, AskRequest, EventKind, ResultTicket, RunErrorCode, RunEvent, RunFinished, RunOutcome, RunStarted,
    ToolCallStarted, ToolResult, ToolStatus, Trigger, Usage,
};
use querent_catalog::{Page, PageToken, RunRecord, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn requests_are_read_leniently_and_refused_clearly() {
    let read = |body: &str| parse_request(body.as_bytes());
    assert_eq!(
        read(r#"{"question": "  which service errored most? ", "database": "default", "include_thinking": true, "session_id": " s-1 ", "approvals": true, "source": 7}"#)
            .unwrap(),
        AskRequest {
            question: "which service errored most?".to_owned(),
            database: Some("default".to_owned()),
            include_thinking: true,
            session_id: Some("s-1".to_owned()),
            approvals: true,
        }
    );
    let plain = AskRequest {
        question: "q".to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };
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
        (r#"{"question": "q", "approvals": "yes"}"#, "`approvals` must be true or false, not a string"),
        (r#"{"question": "q", "session_id": 7}"#, "`session_id` must be a string, not a number"),
        (r#"{"question": "q", "tools": []}"#, "`tools` is not a field that has an effect here; leave it out"),
        (
            r#"{"question": "q", "databse": "a"}"#,
            "`databse` is not a field that has an effect here; did you mean `database`?",
        ),
        ("[]", "the body must be a JSON object, not an array"),
        ("", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
    ] {
        let error = read(body).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), ("invalid_request", message), "{body}");
    }
    let long = json!({ "question": "q".repeat(300_000) }).to_string();
    assert_eq!(read(&long).unwrap_err().code(), "invalid_request");
}

#[test]
fn every_event_has_its_frame() {
    let run_id = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);
    let tokens = TokenUsage { input_tokens: 940, output_tokens: 320, ..TokenUsage::default() };
    let (item_id, call_id) = ("msg_1".to_owned(), "call_1".to_owned());
    let kinds = [
        EventKind::RunStarted(Box::new(RunStarted {
            run_id,
            model: "gemma4:latest".to_owned(),
            question: "top 5 \"errors\"\n?".to_owned(),
            protocol: "ask".to_owned(),
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            trigger: Trigger::New,
            history_len: 0,
            request: Value::Null,
            input: Value::Null,
        })),
        EventKind::LlmCallStarted { iteration: 0 },
        EventKind::ThinkingDelta { item_id: "rs_1".into(), text: "Looking at the schema.".to_owned() },
        EventKind::TextStarted { item_id: item_id.clone() },
        EventKind::TextDelta { item_id: item_id.as_str().into(), text: "Over the last hour, ".to_owned() },
        EventKind::ToolCallStarted(Box::new(ToolCallStarted {
            call_id: call_id.clone(),
            item_id: "mcp_1".to_owned(),
            call_index: 0,
            tool: "run_sql".to_owned(),
            args: json!({"sql": "SELECT 1"}),
            args_raw: r#"{"sql":"SELECT 1"}"#.to_owned(),
            description: "run_sql: SELECT 1".to_owned(),
            approval_request_id: None,
        })),
        EventKind::ToolResult(Box::new(ToolResult {
            call_id,
            item_id: "mcp_1".to_owned(),
            call_index: 0,
            tool: "run_sql".to_owned(),
            status: ToolStatus::Success,
            result: json!({"columns": [{"name": "n", "type": "Int64"}], "rows": [{"n": 1}], "row_count": 1, "truncated": false}),
            text: "1".to_owned(),
            truncation: None,
            chart: None,
            ticket: Some(ResultTicket { text: "querentresultset01".to_owned(), truncated: true }),
            elapsed_ms: 3,
        })),
        EventKind::TextStarted { item_id: "msg_2".to_owned() },
        EventKind::TextDelta { item_id: "msg_2".into(), text: "ü.".to_owned() },
        EventKind::AnswerFinal(Box::new(AnswerFinal {
            item_id: "msg_2".to_owned(),
            text: "ü.".to_owned(),
            structured: false,
            cut: false,
            filtered: false,
            kql_used: None,
            sql_used: Some("SELECT 1".to_owned()),
            ticket: Some(ResultTicket { text: "querentresultset02".to_owned(), truncated: false }),
            proof: Vec::new(),
            assessment: Default::default(),
        })),
        EventKind::RunError {
            code: RunErrorCode::Timeout,
            message: "the run took longer than 60 s".to_owned(),
            detail_code: "run_timeout".to_owned(),
        },
        EventKind::RunFinished(Box::new(RunFinished {
            run_id,
            outcome: RunOutcome::BudgetExceeded,
            usage: Usage { tool_calls: 2, elapsed_ms: 1840, tokens },
            last_usage: tokens,
            llm_calls: 2,
            cost: None,
        })),
    ];
    let events = kinds.into_iter().zip(0..).map(|(kind, seq)| RunEvent { seq, at: time("2026-05-02T10:14:22Z"), kind });
    let events: Vec<RunEvent> = events.collect();
    let stored = serde_json::to_string(&events).unwrap();
    assert_eq!(serde_json::from_str::<Vec<RunEvent>>(&stored).unwrap(), events, "a log reads back as it was");
    let mut renderer = AskRenderer::default();
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
        finished_at: finished_at.map(time),
        usage_json: r#"{"tool_calls":2,"elapsed_ms":1840,"input_tokens":940,"output_tokens":320}"#.to_owned(),
        trace_json: trace_json.to_owned(),
        ..RunRecord::new(
            Uuid::from_u128(7),
            "ann",
            "top 5 errors in the last hour",
            "gemma4:latest",
            time("2026-05-02T10:14:22Z"),
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

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap()
}

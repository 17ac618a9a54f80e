//! Providers that refuse, are busy, or break off.

use futures::StreamExt;
use querent_agent::models::remote::{RemoteKind, RemoteModel, RemoteSettings, RetryPolicy};
use querent_agent::models::{ChatRequest, DoneReason, ModelEvent, ModelProvider};
use querent_catalog::outbound::ApiKey;
use serde_json::{Value, json};

use super::provider::{CannedAnswer, Provider};
use super::said;
use crate::models::{collect_turn, question, run_sql_spec};

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    for status in [429, 503, 529] {
        let busy = || {
            CannedAnswer::status(status, &json!({"error": {"message": "slow down"}})).with_header("retry-after", "0")
        };
        let server = Provider::start(vec![busy(), busy(), said("at last")]).await;
        let events = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await).await.unwrap();
        assert_eq!(events[0], ModelEvent::Text("at last".to_owned()), "{status}");
        assert_eq!(server.requests().len(), 3);
    }
    // The same when it says so within its stream.
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let turn = CannedAnswer::named(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]);
    let server = Provider::start(vec![CannedAnswer::named(&[overloaded]), turn]).await;
    let events =
        collect_turn(server.model(RemoteKind::Anthropic, "claude-x").chat(question("hi")).await).await.unwrap();
    assert_eq!(events[0], ModelEvent::Text("ok".to_owned()));
}

#[tokio::test]
async fn a_provider_that_stays_busy_is_given_up() {
    let busy = CannedAnswer::status(429, &json!({"error": {"message": "slow down"}}));
    let server = Provider::start(vec![busy.clone()]).await;
    let error = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await).await.unwrap_err();
    assert_eq!(error.code(), "model_rate_limited");
    assert!(error.to_string().contains("slow down"), "{error}");
    assert_eq!(server.requests().len(), 4);

    // It asks for more patience than a run has.
    let server = Provider::start(vec![busy.with_header("retry-after", "3600")]).await;
    let error = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await).await.unwrap_err();
    assert_eq!(error.code(), "model_rate_limited");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn nothing_is_said_twice() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "a"}}]});
    let error = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    let server = Provider::start(vec![CannedAnswer::data(&[piece, error]), said("again")]).await;
    let mut turn = server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await.unwrap();
    assert_eq!(turn.next().await.unwrap().unwrap(), ModelEvent::Text("a".to_owned()));
    assert_eq!(turn.next().await.unwrap().unwrap_err().code(), "model_rate_limited");
    assert!(turn.next().await.is_none());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn refusals_have_their_codes_and_show_no_key() {
    let wrong_key = json!({"error": {"message": "Incorrect API key provided: sk-s3cret"}});
    let cases = [
        (RemoteKind::OpenAi, 401, wrong_key.clone(), "model_auth", "SOME_KEY"),
        (RemoteKind::Anthropic, 403, wrong_key, "model_auth", "SOME_KEY"),
        (
            RemoteKind::Gemini,
            400,
            json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}),
            "model_auth",
            "SOME_KEY",
        ),
        (RemoteKind::OpenAi, 404, json!({"error": {"message": "no model m"}}), "model_not_found", "agent.models"),
        (RemoteKind::OpenAi, 400, json!({"error": {"message": "no tools here"}}), "model_failed", "no tools here"),
        (RemoteKind::OpenAi, 307, json!({}), "model_failed", "307"),
    ];
    for (kind, status, body, code, expected) in cases {
        let refused = CannedAnswer::status(status, &body).with_header("location", "http://127.0.0.1:9/");
        let server = Provider::describing(status, body, vec![refused]).await;
        let model = server.model(kind, "m");
        let error = collect_turn(model.chat(question("hi")).await).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains(&server.base_url()) || code == "model_failed", "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        if code == "model_auth" && status != 400 {
            assert_eq!(model.capabilities().await.unwrap_err().code(), code, "found before a run begins");
        }
    }
}

#[tokio::test]
async fn a_missing_key_is_named_and_a_server_of_ones_own_needs_none() {
    querent_flight::install_crypto_provider();
    let server = Provider::start(vec![said("ok")]).await;
    let settings = RemoteSettings { api_key: None, ..server.settings(RemoteKind::OpenAi, "m") };
    collect_turn(RemoteModel::new(settings.clone()).unwrap().chat(question("hi")).await).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), "");

    let missing = RemoteModel::new(RemoteSettings { base_url: None, ..settings }).unwrap();
    for error in
        [collect_turn(missing.chat(question("hi")).await).await.unwrap_err(), missing.capabilities().await.unwrap_err()]
    {
        assert_eq!(error.code(), "model_auth");
        assert!(error.to_string().contains("set SOME_KEY"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unreachable() {
    querent_flight::install_crypto_provider();
    for kind in [RemoteKind::OpenAi, RemoteKind::Anthropic, RemoteKind::Gemini] {
        let settings = RemoteSettings {
            kind,
            model: "m".to_owned(),
            base_url: Some("http://127.0.0.1:9/v1".to_owned()),
            api_key: ApiKey::new("sk-s3cret"),
            api_key_variable: "SOME_KEY".to_owned(),
            context_tokens: None,
            tool_style: Default::default(),
            retry: RetryPolicy::default(),
        };
        let model = RemoteModel::new(settings).unwrap();
        for error in
            [model.capabilities().await.unwrap_err(), collect_turn(model.chat(question("hi")).await).await.unwrap_err()]
        {
            assert_eq!(error.code(), "model_unreachable");
            assert!(error.to_string().contains("http://127.0.0.1:9/v1"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error() {
    let chat = json!({"choices": [{"index": 0, "delta": {"content": "a"}}]});
    let text = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
    let parts = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    let cases = [
        (RemoteKind::OpenAi, CannedAnswer::data(&[chat])),
        (RemoteKind::Anthropic, CannedAnswer::named(&[text])),
        (RemoteKind::Gemini, CannedAnswer::data(&[parts])),
    ];
    for (kind, answer) in cases {
        let server = Provider::start(vec![answer]).await;
        let mut turn = server.model(kind, "m").chat(question("hi")).await.unwrap();
        assert_eq!(turn.next().await.unwrap().unwrap(), ModelEvent::Text("a".to_owned()), "{kind:?}");
        let error = turn.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), "model_failed");
        assert!(error.to_string().contains("broke off"), "{kind:?}: {error}");
        assert!(turn.next().await.is_none());
    }
    let garbage = CannedAnswer::Events { frames: vec!["data: {\"choices\": [\n\n".to_owned()], then_hang: false };
    let server = Provider::start(vec![garbage]).await;
    let error = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await).await.unwrap_err();
    assert_eq!(error.code(), "model_failed");
    assert!(error.to_string().contains("not JSON"), "{error}");
}

#[tokio::test]
async fn a_character_cut_in_half_between_two_pieces_is_whole() {
    // As a server in JavaScript writes what it cuts.
    let chat =
        |half: &str| format!("data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"content\": \"{half}\"}}}}]}}\n\n");
    let delta = r#"event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": "#;
    let named =
        |half: &str| format!("{delta}{{\"type\": \"text_delta\", \"text\": \"{half}\"}}}}\n\n").replace("\\n", "\n");
    let pieces = ["so \\ud83d", "\\ude00 and \\ud83d", " end"];
    let finish =
        "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let stop = "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n";
    for (kind, frames, end) in
        [(RemoteKind::OpenAi, pieces.map(chat), finish), (RemoteKind::Anthropic, pieces.map(named), stop)]
    {
        let frames = frames.into_iter().chain([end.to_owned()]).collect();
        let server = Provider::start(vec![CannedAnswer::Events { frames, then_hang: false }]).await;
        let events = collect_turn(server.model(kind, "m").chat(question("hi")).await).await.unwrap();
        let said: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(said, "so 😀 and \u{fffd} end", "{kind:?}: {events:?}");
        assert!(
            matches!(events.last(), Some(ModelEvent::Done { reason: DoneReason::Stop, .. })),
            "{kind:?}: {events:?}"
        );
    }
}

#[tokio::test]
async fn half_a_call_is_no_call_and_wrong_arguments_reach_the_tool() {
    let call = |arguments: &str| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "call_abcdefgh", "type": "function", "function": {"name": "run_sql", "arguments": arguments}}
        ]}}]})
    };
    let end = |reason: &str| json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let ask = || ChatRequest { tools: vec![run_sql_spec()], ..question("hi") };

    let server = Provider::start(vec![CannedAnswer::chat(&[call("{\"sql\": \"SEL"), end("length")])]).await;
    let events = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(ask()).await).await.unwrap();
    assert!(matches!(&events[..], [ModelEvent::Done { reason: DoneReason::Length, .. }]), "{events:?}");

    let server = Provider::start(vec![CannedAnswer::chat(&[call("SELECT 1"), end("tool_calls")])]).await;
    let events = collect_turn(server.model(RemoteKind::OpenAi, "m").chat(ask()).await).await.unwrap();
    let ModelEvent::ToolCall(told) = &events[0] else { panic!("{events:?}") };
    assert_eq!(told.arguments, Value::from("SELECT 1"));
}

#[tokio::test]
async fn a_filtered_answer_says_so() {
    let blocked = json!({"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 3}});
    let said = json!({"choices": [{"index": 0, "delta": {"content": "I may "}}]});
    let filtered = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]});
    for (kind, answer) in [
        (RemoteKind::Gemini, CannedAnswer::data(&[blocked])),
        (RemoteKind::OpenAi, CannedAnswer::chat(&[said, filtered])),
    ] {
        let server = Provider::start(vec![answer]).await;
        let events = collect_turn(server.model(kind, "m").chat(question("hi")).await).await.unwrap();
        let end = events.last().unwrap();
        assert!(matches!(end, ModelEvent::Done { reason: DoneReason::Filtered, .. }), "{events:?}");
    }
}

#[tokio::test]
async fn penalties_go_to_servers_with_openais_protocol() {
    let end = json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let server = Provider::start(vec![CannedAnswer::chat(&[end])]).await;
    let mut request = question("hi");
    request.sampling.presence_penalty = Some(0.5);
    request.sampling.frequency_penalty = Some(-0.5);
    request.sampling.seed = Some(-1);
    collect_turn(server.model(RemoteKind::OpenAi, "m").chat(request).await).await.unwrap();
    let body = server.requests().remove(0).body;
    assert_eq!((&body["presence_penalty"], &body["frequency_penalty"]), (&json!(0.5), &json!(-0.5)), "{body}");
    assert_eq!(body["seed"], -1, "{body}");
}

#[tokio::test]
async fn a_seed_is_sent_as_it_is() {
    for seed in [-1, 7, i64::MIN] {
        let end = json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
        let server = Provider::start(vec![CannedAnswer::chat(&[end])]).await;
        let mut request = question("hi");
        request.sampling.seed = Some(seed);
        collect_turn(server.model(RemoteKind::OpenAi, "m").chat(request).await).await.unwrap();
        assert_eq!(server.requests().remove(0).body["seed"], seed);
    }
}

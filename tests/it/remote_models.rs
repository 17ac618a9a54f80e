//! Models of other providers against servers that speak their published streams: turns with thinking, text and calls,
//! what is sent, refusals, broken streams, retries, fallbacks, and the list of models in the settings.

mod configured;
mod provider;
mod refusals;
mod tool_choice;

use futures::StreamExt;
use querent_agent::models::remote::RemoteKind;
use querent_agent::models::{
    ChatImage, ChatMessage, ChatRequest, ChatRole, DoneReason, ModelEvent, ModelProvider, ModelToolCall, TokenUsage,
    ToolChoice, ToolStyle,
};
use serde_json::{Value, json};

use crate::models::{collect_turn, question, run_sql_spec};
use provider::{CannedAnswer, Provider};

#[tokio::test]
async fn openai_streams_thinking_text_parallel_calls_and_counts() {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |index: usize, id: Option<&str>, name: Option<&str>, arguments: &str| {
        let mut call = json!({"index": index, "function": {"arguments": arguments}});
        if let (Some(id), Some(name)) = (id, name) {
            call["id"] = json!(id);
            call["type"] = json!("function");
            call["function"]["name"] = json!(name);
        }
        delta(json!({"tool_calls": [call]}))
    };
    let server = Provider::start(vec![CannedAnswer::chat(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "naïve"})),
        delta(json!({"content": "Zürich "})),
        delta(json!({"content": "😀"})),
        call(0, Some("call_first_one"), Some("run_sql"), ""),
        call(0, None, None, "{\"sql\":\"SEL"),
        call(0, None, None, "ECT 1\"}"),
        call(1, Some("call_second_one"), Some("run_sql"), "{\"sql\":\"SELECT 2\"}"),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {
            "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 10},
        }}),
    ])])
    .await;
    let model = server.model(RemoteKind::OpenAi, "gpt-high");
    let image = ChatImage { media_type: "image/png".to_owned(), data: "iVBO".to_owned() };
    let request = ChatRequest {
        messages: vec![
            ChatMessage::text(ChatRole::System, "be brief"),
            ChatMessage { images: vec![image], ..ChatMessage::text(ChatRole::User, "what is this?") },
            ChatMessage::assistant("", vec![sql_call("call_a", "SELECT 0"), sql_call("call_b", "SELECT 9")]),
            ChatMessage::tool_result("run_sql", Some("call_b".to_owned()), "9"),
            ChatMessage::tool_result("run_sql", Some("call_a".to_owned()), "0"),
        ],
        tools: vec![run_sql_spec()],
        format: Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})),
        max_output_tokens: Some(64),
        tool_choice: ToolChoice::Required,
        ..question("")
    };

    let events = collect_turn(model.chat(request).await).await.unwrap();

    let usage = TokenUsage {
        input_tokens: 100,
        output_tokens: 30,
        cached_tokens: 64,
        reasoning_tokens: 10,
        ..TokenUsage::default()
    };
    assert_eq!(
        events,
        [
            ModelEvent::Thinking("naïve".to_owned()),
            ModelEvent::Text("Zürich ".to_owned()),
            ModelEvent::Text("😀".to_owned()),
            ModelEvent::ToolCall(sql_call("call_first_one", "SELECT 1")),
            ModelEvent::ToolCall(sql_call("call_second_one", "SELECT 2")),
            ModelEvent::Done { usage, reason: DoneReason::Stop },
        ]
    );
    let asked = server.requests().remove(0);
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.header("authorization"), "Bearer sk-s3cret");
    let body = asked.body;
    assert_eq!(body["model"], "gpt-high", "no effort is read out of the name");
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!((&body["stream"], &body["max_tokens"]), (&json!(true), &json!(64)));
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["tool_choice"], "required");
    assert_eq!(body["tools"][0]["function"]["name"], "run_sql");
    assert_eq!(body["response_format"]["json_schema"]["schema"]["properties"]["n"]["type"], "integer");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBO");
    assert_eq!(messages[2]["tool_calls"][1]["id"], "call_b");
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "call_b", "content": "9"}));
    assert_eq!(messages[4], json!({"role": "tool", "tool_call_id": "call_a", "content": "0"}));
}

#[tokio::test]
async fn anthropic_streams_thinking_text_and_calls_and_gets_its_thinking_back() {
    let delta = |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let block =
        |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    let turn = CannedAnswer::named(&[
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1,
        }}}),
        json!({"type": "ping"}),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I look."})),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "toolu_1", "name": "run_sql", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"sql\":\"SELE"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "CT 1\"}"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {
            "output_tokens": 40, "output_tokens_details": {"thinking_tokens": 15},
        }}),
        json!({"type": "message_stop"}),
    ]);
    let server = Provider::start(vec![turn]).await;
    let model = server.model(RemoteKind::Anthropic, "claude-sonnet-4-6");
    let asked = || ChatRequest { think: Some(true), tools: vec![run_sql_spec()], ..question("how many?") };

    let events = collect_turn(model.chat(asked()).await).await.unwrap();

    let call = sql_call("toolu_1", "SELECT 1");
    let usage = TokenUsage {
        input_tokens: 100,
        output_tokens: 40,
        cached_tokens: 70,
        cache_write_tokens: 20,
        reasoning_tokens: 15,
    };
    assert_eq!(
        events,
        [
            ModelEvent::Thinking("let me ".to_owned()),
            ModelEvent::Thinking("see".to_owned()),
            ModelEvent::Text("I look.".to_owned()),
            ModelEvent::ToolCall(call.clone()),
            ModelEvent::Done { usage, reason: DoneReason::Stop },
        ]
    );
    let mut again = asked();
    again.messages.insert(0, ChatMessage::text(ChatRole::System, "be brief"));
    again.messages.push(ChatMessage::assistant("I look.", vec![call]));
    again.messages.push(ChatMessage::tool_result("run_sql", Some("toolu_1".to_owned()), "1"));
    collect_turn(model.chat(again.clone()).await).await.unwrap();

    let [first, second] = <[_; 2]>::try_from(server.requests()).unwrap();
    assert_eq!(first.path, "/v1/messages");
    assert_eq!((first.header("x-api-key"), first.header("anthropic-version")), ("sk-s3cret", "2023-06-01"));
    assert_eq!(first.body["thinking"]["type"], "adaptive");
    assert_eq!(second.body["system"][0]["text"], "be brief");
    assert_eq!(second.body["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(
        second.body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "let me see", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "run_sql", "input": {"sql": "SELECT 1"}},
        ])
    );
    assert_eq!(
        second.body["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}])
    );

    // Another process knows nothing of the thinking: the conversation continues without it.
    collect_turn(server.model(RemoteKind::Anthropic, "claude-sonnet-4-6").chat(again).await).await.unwrap();
    assert_eq!(server.requests()[2].body.get("thinking"), None);
}

#[tokio::test]
async fn gemini_streams_thoughts_text_and_calls_and_gets_its_signature_back() {
    let parts = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
    let turn = CannedAnswer::data(&[
        parts(json!([{"text": "hm", "thought": true}])),
        parts(json!([{"text": "Looking."}])),
        parts(json!([{"functionCall": {"name": "run_sql", "args": {"sql": "SELECT 1"}}, "thoughtSignature": "c2ln"}])),
        json!({
            "candidates": [{
                "content": {"role": "model", "parts": [{"functionCall": {"name": "run_sql", "args": {"sql": "SELECT 2"}}}]},
                "finishReason": "STOP",
            }],
            "usageMetadata": {
                "promptTokenCount": 50, "candidatesTokenCount": 20, "thoughtsTokenCount": 7, "totalTokenCount": 77,
                "cachedContentTokenCount": 30,
            },
        }),
    ]);
    let server = Provider::start(vec![turn]).await;
    let model = server.model(RemoteKind::Gemini, "gemini-3-pro");
    let asked = || ChatRequest {
        think: Some(true),
        tools: vec![run_sql_spec()],
        tool_choice: ToolChoice::Named("run_sql".to_owned()),
        max_output_tokens: Some(64),
        ..question("how many?")
    };

    let events = collect_turn(model.chat(asked()).await).await.unwrap();

    let [thinking, text, ModelEvent::ToolCall(one), ModelEvent::ToolCall(two), done] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(thinking, &ModelEvent::Thinking("hm".to_owned()));
    assert_eq!(text, &ModelEvent::Text("Looking.".to_owned()));
    assert_eq!((&one.arguments, &two.arguments), (&json!({"sql": "SELECT 1"}), &json!({"sql": "SELECT 2"})));
    assert!(one.id.is_some() && one.id != two.id, "calls without ids get their own: {one:?} {two:?}");
    let usage = TokenUsage {
        input_tokens: 50,
        output_tokens: 27,
        cached_tokens: 30,
        reasoning_tokens: 7,
        ..TokenUsage::default()
    };
    assert_eq!(done, &ModelEvent::Done { usage, reason: DoneReason::Stop });

    let mut again = asked();
    again.messages.push(ChatMessage::assistant("", vec![one.clone(), two.clone()]));
    again.messages.push(ChatMessage::tool_result("run_sql", one.id.clone(), "1"));
    again.messages.push(ChatMessage::tool_result("run_sql", two.id.clone(), "2"));
    collect_turn(model.chat(again).await).await.unwrap();

    let [first, second] = <[_; 2]>::try_from(server.requests()).unwrap();
    assert_eq!(first.path, "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse");
    assert_eq!(first.header("x-goog-api-key"), "sk-s3cret");
    assert_eq!(first.body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"], json!(["run_sql"]));
    assert_eq!(first.body["generationConfig"]["maxOutputTokens"], 64);
    assert_eq!(first.body["generationConfig"]["thinkingConfig"]["includeThoughts"], true);
    let contents = second.body["contents"].as_array().unwrap();
    assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "c2ln");
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2, "one message answers both calls: {contents:?}");
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["name"], "run_sql");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_request() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "a"}}]});
    let server = Provider::start(vec![CannedAnswer::data(&[piece]).then_hang()]).await;
    let mut stream = server.model(RemoteKind::OpenAi, "m").chat(question("hi")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::Text("a".to_owned()));

    drop(stream);

    let closed = tokio::time::timeout(std::time::Duration::from_secs(10), server.wait_until_closed());
    closed.await.expect("the request was closed");
}

#[tokio::test]
async fn what_a_model_can_do_is_asked_or_known() {
    let listed = json!({"data": [{"id": "other"}, {"id": "local", "max_model_len": 32768}]});
    let server = Provider::describing(200, listed, vec![said("ok")]).await;
    let capabilities = server.model(RemoteKind::OpenAi, "local").capabilities().await.unwrap();
    assert_eq!(capabilities.context_tokens, Some(32_768));
    assert_eq!((capabilities.tool_style, capabilities.thinking), (ToolStyle::Native, false));

    let described = json!({"name": "models/gemini-2.5-pro", "inputTokenLimit": 1048576, "thinking": true});
    let server = Provider::describing(200, described, vec![said("ok")]).await;
    let capabilities = server.model(RemoteKind::Gemini, "gemini-2.5-pro").capabilities().await.unwrap();
    assert_eq!((capabilities.context_tokens, capabilities.thinking), (Some(1_048_576), true));

    // A server that knows no such question is not held to it.
    let server = Provider::describing(404, json!({"error": "no route"}), vec![said("ok")]).await;
    let capabilities = server.model(RemoteKind::Anthropic, "claude-opus-4-8").capabilities().await.unwrap();
    assert_eq!((capabilities.context_tokens, capabilities.thinking), (Some(200_000), true));
}

/// Returns a turn of OpenAI's form that says `text`.
pub fn said(text: &str) -> CannedAnswer {
    CannedAnswer::chat(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ])
}

fn sql_call(id: &str, sql: &str) -> ModelToolCall {
    ModelToolCall { id: Some(id.to_owned()), name: "run_sql".to_owned(), arguments: json!({ "sql": sql }) }
}

//! Requests that OpenAI's surface refuses, with status, code and parameter; calls that are decided twice and by the
//! wrong person; and models that write what they should not.

use querent_flight::config::ByteSize;
use querent_tests::script::tool_call;
use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::serve;

const ANN: Option<&str> = Some("ann-tok");
const BOB: Option<&str> = Some("bob-tok");

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_refused_in_openais_words() {
    let server = serve().await;
    let message = |content: Value| json!({"input": [{"role": "user", "content": content}]});
    let messages = vec![json!({"role": "user", "content": "x"}); 10_001];
    let tools: Vec<Value> = (0..1_001).map(|n| json!({"type": "function", "name": format!("f{n}")})).collect();
    let allowed = json!({"type": "allowed_tools", "tools": tools});
    let pairs: serde_json::Map<String, Value> = (0..17).map(|n| (format!("k{n}"), json!("v"))).collect();
    refused(&server, "/v1/responses", [
        (json!({}), 400, "missing_required_parameter", "input"),
        (json!([]), 400, "invalid_request", "body"),
        (json!({"input": 7}), 400, "invalid_request", "input"),
        (json!({"input": messages}), 400, "invalid_request", "input"),
        (json!({"input": "x", "tools": tools}), 400, "invalid_request", "tools"),
        (json!({"input": "x", "tools": vec![json!({"type": "mcp"}); 1_001]}), 400, "invalid_request", "tools"),
        (json!({"input": "x", "tool_choice": allowed}), 400, "invalid_request", "tool_choice"),
        (json!({"input": []}), 400, "invalid_request", "input"),
        (json!({"input": [7]}), 400, "invalid_request", "input[0]"),
        (json!({"input": [{}]}), 400, "invalid_request", "input[0].type"),
        (json!({"input": [{"role": "nobody", "content": "x"}]}), 400, "invalid_request", "input[0].role"),
        (message(json!(7)), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_image"}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_image", "image_url": "data:image/png;base64,?"}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_image", "image_url": "data:application/pdf;base64,aGk="}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_image", "image_url": "data:image/png;base64,"}])), 400, "invalid_request", "input[0].content"),
        (json!({"input": [{"role": "developer", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}]}), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_image", "image_url": ""}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_file", "file_url": " "}])), 400, "invalid_request", "input[0].content"),
        (
            message(json!([{"type": "input_file", "file_id": "file-1", "file_data": "aGk="}])),
            400,
            "invalid_request",
            "input[0].content",
        ),
        (
            message(json!([{"type": "input_image", "image_url": "https://example.com/a.png", "file_id": "file-1"}])),
            400,
            "invalid_request",
            "input[0].content",
        ),
        (message(json!([{"type": "input_file", "file_url": "data:text/csv;base64,?"}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_file", "filename": "a"}])), 400, "invalid_request", "input[0].content"),
        (message(json!([{"type": "input_file", "file_id": "file-none"}])), 404, "file_not_found", "input"),
        (json!({"input": "x", "model": 7}), 400, "invalid_request", "model"),
        (json!({"input": "x", "stream": "yes"}), 400, "invalid_request", "stream"),
        (json!({"input": "x", "conversation": 7}), 400, "invalid_request", "conversation"),
        (json!({"input": "x", "conversation": {}}), 400, "invalid_request", "conversation.id"),
        (json!({"input": "x", "conversation": ""}), 400, "invalid_request", "conversation"),
        (json!({"input": "x", "conversation": {"id": ""}}), 400, "invalid_request", "conversation.id"),
        (json!({"input": "x".repeat(300_000)}), 400, "invalid_request", "input"),
        (json!({"input": "x", "tools": [{"type": "function", "name": "f g"}]}), 400, "invalid_request", "tools[0].name"),
        (json!({"input": "x", "tools": [{"type": "function", "name": "f".repeat(65)}]}), 400, "invalid_request", "tools[0].name"),
        (json!({"input": "x", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]}), 400, "invalid_request", "tools"),
        (json!({"input": "x", "text": {"format": {"type": "json_schema", "schema": {}}}}), 400, "invalid_request", "text.format.name"),
        (json!({"input": "x", "conversation": "c".repeat(300)}), 400, "invalid_request", "conversation"),
        (json!({"input": "x", "session_id": "c".repeat(300)}), 400, "invalid_request", "session_id"),
        (json!({"input": "x", "conversation": "a", "session_id": "b"}), 400, "invalid_request", "session_id"),
        (json!({"input": "x", "conversation": "a", "previous_response_id": "resp_1"}), 400, "mutually_exclusive_parameters", "previous_response_id"),
        (json!({"input": "x", "previous_response_id": "resp_1"}), 400, "previous_response_not_found", "previous_response_id"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), 404, "item_not_found", "input"),
        (json!({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": 7}]}), 400, "invalid_request", "input[0].arguments"),
        (json!({"input": [{"role": "user", "content": [{"type": 7, "text": "x"}]}]}), 400, "invalid_request", "input[0].content"),
        (json!({"input": "x", "metadata": pairs}), 400, "invalid_request", "metadata"),
        (json!({"input": "x", "metadata": {"k".repeat(65): "v"}}), 400, "invalid_request", "metadata"),
        (json!({"input": "x", "metadata": {"k": "v".repeat(513)}}), 400, "invalid_request", "metadata"),
        (json!({"input": "x", "metadata": {"k": 7}}), 400, "invalid_request", "metadata"),
        (json!({"input": "x", "metadata": []}), 400, "invalid_request", "metadata"),
        (json!({"input": "x", "tools": 7}), 400, "invalid_request", "tools"),
        (json!({"input": "x", "tools": [{"type": "function"}]}), 400, "invalid_request", "tools[0].name"),
        (json!({"input": "x", "tool_choice": "sometimes"}), 400, "invalid_request", "tool_choice"),
        (json!({"input": "x", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [], "zzz": 1}}), 400, "invalid_request", "tool_choice.zzz"),
        (json!({"input": "x", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}}), 400, "invalid_request", "tool_choice"),
        (json!({"input": "x", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "run_sql"}]}}), 400, "invalid_request", "tool_choice.tools[0].type"),
        (json!({"input": "x", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": 7}]}}), 400, "invalid_request", "tool_choice.tools[0].server_label"),
        (json!({"input": "x", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "run_sql", "zzz": 1}]}}), 400, "invalid_request", "tool_choice.tools[0].zzz"),
        (json!({"input": "x", "text": {"format": {"type": "json_schema", "name": "a"}}}), 400, "invalid_request", "text.format.schema"),
        (json!({"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "zzz"}}}}), 400, "invalid_request", "text.format.schema"),
        (json!({"input": "x", "text": {"format": {"type": "xml"}}}), 400, "invalid_request", "text.format"),
        (json!({"input": "x", "max_output_tokens": 0}), 400, "invalid_request", "max_output_tokens"),
        (json!({"input": [{"type": "function_call_output", "call_id": "call_1", "output": "x"}]}), 400, "unknown_call", "input"),
        (json!({"input": [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true}]}), 400, "unknown_call", "input"),
        (json!({"input": [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": "yes"}]}), 400, "invalid_request", "input[0].approve"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_server_takes_the_models_that_it_lists() {
    let script = json!({"runs": [{"turns": [{"events": [{"text": "Hello."}]}]}]});
    let settings = TestSettings::default().tokens("ann-tok:write:ann").script(script);
    let server = TestServer::start(settings.change(|settings| settings.agent.strict_models = true)).await;
    let listed = server.get("/v1/models", ANN).await.json();
    for model in listed["data"].as_array().unwrap() {
        let body = json!({"model": model["id"], "input": "hello"});
        let reply = server.post("/v1/responses", &body, ANN).await;
        assert_eq!(reply.status, 200, "{body}: {}", reply.text);
    }
    let nowhere = json!({"model": "nothing", "input": "hello"});
    refused(&server, "/v1/responses", [(nowhere, 404, "model_not_found", "model")]).await;
}

/// Also in a conversation, where the model would be asked nothing, or the question before once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_words_is_refused_whatever_was_said_before() {
    let server = serve().await;
    let first = server.post("/v1/responses", &json!({"input": "thanks"}), ANN).await.json();
    for input in [json!(""), json!([{"role": "user", "content": "  "}]), json!([{"role": "user", "content": []}])] {
        let body = json!({"input": input, "previous_response_id": first["id"]});
        refused(&server, "/v1/responses", [(body, 400, "empty_question", "input")]).await;
    }
    let said = json!([
        {"role": "user", "content": "thanks"},
        {"role": "assistant", "content": "You are welcome."},
        {"role": "user", "content": " "},
    ]);
    refused(&server, "/v1/chat/completions", [(json!({"messages": said}), 400, "empty_question", "messages")]).await;
    let alone = json!({"input": [{"role": "system", "content": "Be brief."}], "previous_response_id": first["id"]});
    let reply = server.post("/v1/responses", &alone, ANN).await;
    assert_ne!(reply.status, 400, "instructions ask for another answer: {}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_completions_are_refused_in_openais_words() {
    let server = serve().await;
    let said = |message: Value| json!({"messages": [message]});
    let with = |name: &str, value: Value| json!({"messages": [{"role": "user", "content": "x"}], name: value});
    let calls: Vec<Value> = (0..10_001).map(|n| json!({"id": format!("c{n}"), "function": {"name": "f"}})).collect();
    refused(
        &server,
        "/v1/chat/completions",
        [
            (said(json!({"role": "assistant", "tool_calls": calls})), 400, "invalid_request", "messages"),
            (json!({}), 400, "missing_required_parameter", "messages"),
            (json!({"messages": []}), 400, "invalid_request", "messages"),
            (json!({"messages": "x"}), 400, "invalid_request", "messages"),
            (said(json!({"role": "user", "content": ""})), 400, "empty_question", "messages"),
            (said(json!({"role": "tool", "tool_call_id": "a", "content": "x"})), 400, "unknown_call", "messages"),
            (
                with("tool_choice", json!({"type": "function", "function": {"name": "run_sql", "zzz": 1}})),
                400,
                "invalid_request",
                "tool_choice.function.zzz",
            ),
            (said(json!({"role": "nobody", "content": "x"})), 400, "invalid_request", "messages[0].role"),
            (said(json!({"role": "user", "content": 7})), 400, "invalid_request", "messages[0].content"),
            (said(json!({"role": "tool", "content": "x"})), 400, "invalid_request", "messages[0].tool_call_id"),
            (said(json!({"role": "assistant", "tool_calls": [{}]})), 400, "invalid_request", "messages[0].tool_calls"),
            (with("n", json!(2)), 400, "invalid_request", "n"),
            (with("max_tokens", json!(0)), 400, "invalid_request", "max_tokens"),
            (with("stream", json!(7)), 400, "invalid_request", "stream"),
            (with("response_format", json!({"type": "xml"})), 400, "invalid_request", "response_format"),
            (with("tools", json!([{"type": "function"}])), 400, "invalid_request", "tools[0].name"),
            (
                with("tools", json!([{"type": "function", "function": {"name": "f g"}}])),
                400,
                "invalid_request",
                "tools[0].function.name",
            ),
            (
                with("response_format", json!({"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}})),
                400,
                "invalid_request",
                "response_format.json_schema.name",
            ),
            (
                with("response_format", json!({"type": "json_schema", "json_schema": {"schema": {}}})),
                400,
                "invalid_request",
                "response_format.json_schema.name",
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_not_there_are_404_and_wrong_parameters_400() {
    let server = serve().await;
    let conversation =
        server.post("/v1/conversations", &json!({"items": [{"role": "user", "content": "hi"}]}), ANN).await;
    let conversation = conversation.json()["id"].as_str().unwrap().to_owned();
    let response = server.post("/v1/responses", &json!({"input": "thanks"}), ANN).await.json();
    let (id, item) = (response["id"].as_str().unwrap(), response["output"][0]["id"].as_str().unwrap());
    let absent = [
        "/v1/responses/resp_none".to_owned(),
        "/v1/responses/resp_none/input_items".to_owned(),
        "/v1/conversations/conv_none".to_owned(),
        "/v1/conversations/conv_none/items".to_owned(),
        format!("/v1/conversations/{conversation}/items/msg_none"),
        "/v1/files/file-none".to_owned(),
        "/v1/files/file-none/content".to_owned(),
        "/v1/models/none".to_owned(),
        format!("/v1/responses/{id}/input_items?after=msg_none"),
    ];
    for path in &absent {
        let reply = server.get(path, ANN).await;
        assert_eq!((reply.status, kind(&reply)), (404, "invalid_request_error".to_owned()), "{path}: {}", reply.text);
    }
    let others = [
        format!("/v1/responses/{id}"),
        format!("/v1/responses/{id}?stream=true"),
        format!("/v1/responses/{id}/input_items"),
        format!("/v1/conversations/{conversation}"),
        format!("/v1/conversations/{conversation}/items"),
    ];
    for path in &others {
        assert_eq!(server.get(path, BOB).await.status, 404, "{path}");
        assert_eq!(server.get(path, ANN).await.status, 200, "{path}");
    }
    for path in [&others[0], &others[3]] {
        assert_eq!(server.send(server.http.delete(server.url(path)), BOB).await.status, 404, "{path}");
    }
    let cancel = server.post(&format!("/v1/responses/{id}/cancel"), &json!({}), BOB).await;
    assert_eq!(cancel.status, 404, "{}", cancel.text);
    let reference = json!({"input": [{"type": "item_reference", "id": item}, {"role": "user", "content": "thanks"}]});
    assert_eq!(server.post("/v1/responses", &reference, BOB).await.status, 404);
    assert_eq!(server.post("/v1/responses", &reference, ANN).await.status, 200);

    let order = server.get(&format!("/v1/responses/{id}/input_items?order=sideways"), ANN).await;
    assert_eq!(order.status, 400, "{}", order.text);
    let items = format!("/v1/responses/{id}/input_items");
    for (path, param) in [
        (format!("{items}?limit=x"), "limit"),
        (format!("{items}?limit=0"), "limit"),
        (format!("{items}?limit=101"), "limit"),
        (format!("{items}?after=msg_none"), "after"),
        (format!("{items}?include[]=zz"), "include"),
        (format!("/v1/responses/{id}?stream=maybe"), "stream"),
        (format!("/v1/responses/{id}?stream=true&starting_after=-1"), "starting_after"),
        ("/v1/chat/completions?limit=0".to_owned(), "limit"),
        ("/v1/files?order=zz".to_owned(), "order"),
        ("/v1/files?limit=0".to_owned(), "limit"),
    ] {
        let reply = server.get(&path, ANN).await;
        assert_eq!(reply.json()["error"]["param"], param, "{path}: {}", reply.text);
        assert!([400, 404].contains(&reply.status) && !reply.text.contains("deserialize"), "{path}: {}", reply.text);
    }
    let over = server.post(&format!("/v1/responses/{id}/cancel"), &json!({}), ANN).await;
    assert_eq!(over.status, 400, "{}", over.text);
    let many = json!({"items": vec![json!({"role": "user", "content": "x"}); 21]});
    for (path, body) in [
        (format!("/v1/conversations/{conversation}/items"), many),
        (format!("/v1/conversations/{conversation}/items"), json!({"items": 7})),
        (format!("/v1/conversations/{conversation}"), json!({"metadata": 7})),
        ("/v1/files".to_owned(), json!({"file": "x"})),
    ] {
        let reply = server.post(&path, &body, ANN).await;
        assert_eq!((reply.status, kind(&reply)), (400, "invalid_request_error".to_owned()), "{path}: {}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_taken_up_to_the_limit() {
    let server = serve().await;
    let upload = |bytes: usize| {
        let purpose = "--cut\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n";
        let head = "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n";
        let form = format!("{purpose}{head}{}\r\n--cut--\r\n", "x".repeat(bytes));
        server.http.post(server.url("/v1/files")).header("content-type", "multipart/form-data; boundary=cut").body(form)
    };
    let taken = server.send(upload(3 << 20), ANN).await;
    assert_eq!((taken.status, &taken.json()["bytes"]), (200, &json!(3 << 20)), "{}", taken.text);
    let refused = server.send(upload(17 << 20), ANN).await;
    assert_eq!((refused.status, refused.json()["error"]["code"].as_str()), (413, Some("body_too_large")));
    let empty = server.http.post(server.url("/v1/files")).header("content-type", "multipart/form-data; boundary=cut");
    let empty = server.send(empty.body("--cut--\r\n"), ANN).await;
    assert_eq!((empty.status, &empty.json()["error"]["param"]), (400, &json!("file")), "{}", empty.text);
    for purpose in ["", "name=\"purpose\"\r\n\r\nbogus\r\n--cut\r\nContent-Disposition: form-data; "] {
        let form = format!("--cut\r\nContent-Disposition: form-data; {purpose}name=\"file\"\r\n\r\nx\r\n--cut--\r\n");
        let form = server.http.post(server.url("/v1/files")).body(form);
        let refused = server.send(form.header("content-type", "multipart/form-data; boundary=cut"), ANN).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("purpose")), "{}", refused.text);
    }
    let file = "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nx\r\n";
    let twice = server.http.post(server.url("/v1/files")).body(format!("{file}{file}--cut--\r\n"));
    let twice = server.send(twice.header("content-type", "multipart/form-data; boundary=cut"), ANN).await;
    assert_eq!((twice.status, &twice.json()["error"]["param"]), (400, &json!("file")), "{}", twice.text);
    for (query, listed) in [("", 1), ("?purpose=user_data&order=asc", 1), ("?purpose=vision", 0)] {
        let files = server.get(&format!("/v1/files{query}"), ANN).await.json();
        assert_eq!(files["data"].as_array().unwrap().len(), listed, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_one_caller_take_what_the_settings_say() {
    let settings = TestSettings::default().tokens("ann-tok:read:ann,bob-tok:read:bob");
    let server =
        TestServer::start(settings.change(|settings| settings.agent.max_file_bytes_per_caller = ByteSize(10_000)))
            .await;
    let upload = async |token| {
        let form = format!(
            "--cut\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--cut\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n{}\r\n--cut--\r\n",
            "x".repeat(7_000)
        );
        let request = server.http.post(server.url("/v1/files"));
        server.send(request.header("content-type", "multipart/form-data; boundary=cut").body(form), token).await
    };
    let taken = upload(ANN).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let refused = upload(ANN).await;
    assert_eq!((refused.status, refused.json()["error"]["code"].as_str()), (400, Some("too_many_files")));
    assert!(refused.text.contains("agent.max_file_bytes_per_caller"), "{}", refused.text);
    assert_eq!(upload(BOB).await.status, 200);
    let id = taken.json()["id"].as_str().unwrap().to_owned();
    let deleted = server.send(server.http.delete(server.url(&format!("/v1/files/{id}"))), ANN).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
    assert_eq!(upload(ANN).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_of_one_caller_take_what_the_settings_say() {
    let settings = TestSettings::default().tokens("ann-tok:read:ann,bob-tok:read:bob");
    let most = ByteSize(20_000);
    let server =
        TestServer::start(settings.change(move |settings| settings.agent.max_conversation_bytes_per_caller = most))
            .await;
    let items = json!({ "items": [{ "type": "message", "role": "user", "content": "x".repeat(7_000) }] });
    let taken = server.post("/v1/conversations", &items, ANN).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let path = format!("/v1/conversations/{}/items", taken.json()["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &items, ANN).await.status, 200);
    for path in [path.as_str(), "/v1/conversations"] {
        let refused = server.post(path, &items, ANN).await;
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status, code.as_str()), (400, Some("too_many_conversations")), "{}", refused.text);
        assert!(refused.text.contains("agent.max_conversation_bytes_per_caller"), "{}", refused.text);
    }
    let state = json!({ "state": { "a": "x".repeat(7_000) } });
    assert_eq!(server.post("/apps/a/users/u/sessions", &state, ANN).await.status, 400);
    assert_eq!(server.post("/apps/a/users/u/sessions", &state, BOB).await.status, 200);
    assert_eq!(server.post("/v1/conversations", &items, BOB).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_repeated_says_so() {
    let server = serve().await;
    for (body, status, code) in
        [(json!({"input": "slow"}), 504, "timeout"), (json!({"input": "fail"}), 502, "model_failed")]
    {
        let reply = server.post("/v1/responses", &body, ANN).await;
        assert_eq!((reply.status, reply.json()["error"]["code"].as_str()), (status, Some(code)), "{}", reply.text);
        assert_eq!((reply.header("x-should-retry"), kind(&reply).as_str()), ("false", "server_error"));
        assert!(!reply.header("x-request-id").is_empty());
    }
    let slow = json!({"input": "slow", "conversation": "c-1", "background": true});
    let started = server.post("/v1/responses", &slow, ANN).await;
    assert_eq!(started.json()["status"], "in_progress", "{}", started.text);
    let id = started.json()["id"].clone();
    for (body, code) in [
        (json!({"input": "thanks", "conversation": "c-1"}), "conversation_locked"),
        (json!({"input": "thanks", "previous_response_id": id}), "response_in_progress"),
    ] {
        let reply = server.post("/v1/responses", &body, ANN).await;
        assert_eq!((reply.status, reply.json()["error"]["code"].as_str()), (409, Some(code)), "{}", reply.text);
        assert_eq!(reply.header("x-should-retry"), "false");
    }
    let nobody = server.post("/v1/responses", &json!({"input": "x"}), Some("wrong")).await;
    assert_eq!((nobody.status, kind(&nobody).as_str()), (401, "authentication_error"), "{}", nobody.text);
    assert!(nobody.json()["error"]["code"].is_string() && !nobody.header("www-authenticate").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_counts_once_and_only_its_owners() {
    let server = serve().await;
    let paused = server.post("/v1/responses", &json!({"input": "create a table", "conversation": "c-1"}), ANN).await;
    let paused = paused.json();
    let request = paused["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(request["type"], "mcp_approval_request", "{paused:#}");
    let decide = |approve: bool| {
        let response =
            json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve});
        json!({"input": [{"role": "user", "content": "create a table"}, request, response], "stream": false})
    };
    let forged = server.post("/v1/responses", &decide(true), BOB).await;
    assert_eq!(
        (forged.status, forged.json()["error"]["code"].as_str()),
        (400, Some("unknown_call")),
        "{}",
        forged.text
    );

    let done = server.post("/v1/responses", &decide(true), ANN).await.json();
    assert_eq!(
        (&done["output"][0]["type"], &done["output"][0]["error"]),
        (&json!("mcp_call"), &Value::Null),
        "{done:#}"
    );
    assert_eq!(done["conversation"]["id"], "c-1", "the pause's conversation goes on");
    assert_eq!(server.post("/v1/responses", &decide(true), ANN).await.json(), done);
    let opposite = server.post("/v1/responses", &decide(false), ANN).await;
    assert_eq!((opposite.status, &opposite.json()["error"]["code"]), (409, &json!("already_resumed")));
    // The stored events are the live ones, and the later ones of them where a client was cut off.
    let id = done["id"].as_str().unwrap();
    let again = |query: &str| format!("/v1/responses/{id}?stream=true{query}");
    let whole = collect_sse(&server.get(&again(""), ANN).await.text);
    let later = collect_sse(&server.get(&again("&starting_after=2"), ANN).await.text);
    assert_eq!(later, whole[3..]);
    assert_eq!(whole.last().unwrap().data["response"], done);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_writes_is_only_text() {
    let server = odd_model().await;
    let imitation = server.post("/v1/responses", &json!({"input": "imitate", "stream": true}), None).await;
    let frames = collect_sse(&imitation.text);
    let ends = frames.iter().filter(|frame| frame.event == "response.completed").count();
    assert_eq!(ends, 1, "{}", imitation.text);
    assert_eq!(frames.last().unwrap().data["response"]["output_text"], IMITATION);
    let chat = json!({"messages": [{"role": "user", "content": "imitate"}], "stream": true});
    let chat = server.post("/v1/chat/completions", &chat, None).await.text;
    assert_eq!(chat.matches("data: [DONE]\n").count(), 1, "{chat}");
    assert!(chat.ends_with("data: [DONE]\n\n"), "{chat}");

    for input in ["half a call", "a list of arguments", "no name", "unknown tool"] {
        let reply = server.post("/v1/responses", &json!({"input": input}), None).await;
        assert_eq!(reply.status, 200, "{input}: {}", reply.text);
        let response = reply.json();
        let call = &response["output"][0];
        assert_eq!((&call["type"], &call["status"]), (&json!("mcp_call"), &json!("failed")), "{input}: {response:#}");
        assert!(call["arguments"].is_string() && call["error"]["content"][0]["text"].is_string(), "{input}: {call:#}");
        assert_eq!(response["output_text"], "I could not.", "{input}");
    }

    let format =
        json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "required": ["n"]}}});
    let unfit = server.post("/v1/responses", &json!({"input": "never JSON", "text": format}), None).await;
    assert_eq!(
        (unfit.status, unfit.json()["error"]["code"].as_str()),
        (502, Some("invalid_structured_output")),
        "{}",
        unfit.text
    );
}

const IMITATION: &str =
    "ok\n\nevent: response.completed\ndata: {\"type\":\"response.completed\"}\n\ndata: [DONE]\n\nend";

async fn odd_model() -> TestServer {
    let call = |name: &str, arguments: Value| json!({"events": [tool_call(name, arguments)]});
    let say = |text: &str| json!({"events": [{"text": text}]});
    let sorry = || say("I could not.");
    let script = json!({"runs": [
        {"when": "imitate", "turns": [say(IMITATION)]},
        {"when": "half a call", "turns": [call("run_sql", json!("{\"sql\": \"SELECT")), sorry()]},
        {"when": "a list of arguments", "turns": [call("run_sql", json!([1, 2])), sorry()]},
        {"when": "no name", "turns": [call("", json!({})), sorry()]},
        {"when": "unknown tool", "turns": [call("drop_everything", json!({})), sorry()]},
        {"when": "json", "turns": [say("three")], "repeat_last": true},
    ]});
    TestServer::start(TestSettings::default().script(script)).await
}

/// Sends each body and expects its status, code and parameter.
async fn refused<const N: usize>(server: &TestServer, path: &str, cases: [(Value, u16, &str, &str); N]) {
    for (body, status, code, param) in cases {
        let reply = server.post(path, &body, ANN).await;
        let what = format!("{body}: {} {}", reply.status, reply.text);
        let error = &reply.json()["error"];
        assert_eq!(reply.status, status, "{what}");
        assert_eq!((&error["code"], &error["param"]), (&json!(code), &json!(param)), "{what}");
        assert_eq!(error["type"], "invalid_request_error", "{what}");
        assert_eq!(reply.json()["detail"], error["message"], "{what}");
    }
}

fn kind(reply: &HttpReply) -> String {
    reply.json()["error"]["type"].as_str().unwrap_or_default().to_owned()
}

/// As servers of open models take it, and clients such as instructor send it.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_the_older_format_may_have_a_schema() {
    let server = serve().await;
    for (required, status) in [("name", 200), ("absent", 502)] {
        let schema = json!({"type": "object", "required": [required]});
        let body = json!({
            "messages": [{"role": "user", "content": "structured"}],
            "response_format": {"type": "json_object", "schema": schema},
        });
        let reply = server.post("/v1/chat/completions", &body, Some("ann-tok")).await;
        assert_eq!(reply.status, status, "{required}: {}", reply.text);
    }
    let text = json!({"format": {"type": "json_object", "schema": {"type": "object"}}});
    let reply = server.post("/v1/responses", &json!({"input": "structured", "text": text}), Some("ann-tok")).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!(reply.json()["error"]["param"], "text.format.schema", "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_without_its_call_is_told_what_is_missing() {
    let server = serve().await;
    let output = json!({"type": "function_call_output", "call_id": "call_none", "output": "x"});
    let decision = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_none", "approve": true});
    for (item, words) in [(output, "send the call before its output"), (decision, "no call waits for a decision")] {
        let reply = server.post("/v1/responses", &json!({"input": [item]}), Some("ann-tok")).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("unknown_call")), "{}", reply.text);
        assert!(reply.text.contains(words), "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_for_vectors_that_cannot_be_loaded_is_named() {
    let folder = TempDir::new().unwrap();
    for (file, text) in
        [("config.json", r#"{"hidden_size": 384}"#), ("tokenizer.json", "{}"), ("model.safetensors", "")]
    {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let path = folder.path().to_owned();
    let settings = TestSettings::default().with_embedder().tokens("ann-tok:read:ann,boss-tok:admin:boss");
    let settings = settings.change(move |settings| {
        settings.embed.model_path = Some(path);
        settings.embed.runtime = None;
    });
    let server = TestServer::start(settings).await;
    for (token, says_why) in [("ann-tok", false), ("boss-tok", true)] {
        let reply = server.post("/v1/embeddings", &json!({"input": "x"}), Some(token)).await;
        assert_eq!((reply.status, reply.header("x-should-retry")), (503, "false"), "{}", reply.text);
        let body = reply.json();
        let error = &body["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("server_error"), &json!("embedder_error")));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("all-MiniLM-L6-v2"), "{message}");
        assert_eq!(message.contains("config.json"), says_why, "{message}");
    }
}

/// It would be listed, with nothing in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_leaves_no_conversation_that_it_would_have_begun() {
    let server = serve().await;
    let unknown = json!([{"role": "user", "content": [{"type": "input_file", "file_id": "file-none"}]}]);
    for (path, body, status) in [
        ("/v1/responses", json!({"input": unknown, "conversation": "c-new"}), 404),
        ("/v1/responses", json!({"input": " ", "conversation": "c-new"}), 400),
        ("/v1/agent/ask", json!({"question": "thanks", "database": "nowhere", "session_id": "c-new"}), 404),
    ] {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text);
        let listed = server.get("/v1/agent/sessions", ANN).await.json();
        assert_eq!(listed["sessions"], json!([]), "{path}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_of_a_client_is_a_lost_one() {
    let server = serve().await;
    for (path, body) in [
        ("/v1/responses", r#"{"input": "thanks \ud83d"}"#),
        ("/v1/chat/completions", r#"{"messages": [{"role": "user", "content": "\ude00 thanks"}]}"#),
        (
            "/v1/messages",
            r#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "thanks\ud83d"}]}"#,
        ),
        ("/v1/agent/ask", r#"{"question": "thanks \ud83d\ud83d\ude00"}"#),
    ] {
        let request = server.http.post(server.url(path)).header("content-type", "application/json").body(body);
        let reply = server.send(request, ANN).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    }
}

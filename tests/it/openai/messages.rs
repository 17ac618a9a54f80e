//! Anthropic's Messages: the bytes of each sequence, and how bad requests are refused.

use querent_agent::protocols::messages::messages_fields_table;
use querent_tests::package_folder;
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

/// `UPDATE_DOCS=1` writes the table into the page.
#[test]
fn the_table_of_the_documentation_is_that_of_the_parser() {
    const BEGIN: &str = "<!-- fields -->\n";
    const END: &str = "<!-- end of fields -->";
    let page = package_folder().join("../docs/messages.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(&page, format!("{before}{BEGIN}{}{END}{after}", messages_fields_table())).unwrap();
    }
    assert_eq!(table, messages_fields_table(), "UPDATE_DOCS=1 writes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_refused_in_anthropics_words() {
    let server = serve().await;
    let with = |name: &str, value: Value| {
        let mut body = asked("hello");
        body[name] = value;
        body
    };
    let said = |block: Value| json!([{ "role": "user", "content": [block] }]);
    let pdf = json!({ "type": "base64", "media_type": "application/pdf", "data": "dGV4dA==" });
    let call = json!({ "type": "tool_use", "id": "c", "name": "f", "input": 7 });
    let zzz = json!({ "type": "text", "text": "x", "zzz": 1 });
    let (text, cited) = (json!({ "type": "text", "data": "x" }), json!({ "enabled": true }));
    let calls = vec![json!({ "type": "tool_use", "id": "c", "name": "f" }); 10_001];
    for (body, said) in [
        (json!({}), "messages"),
        (json!({ "messages": [{ "role": "user", "content": "x" }], "model": "m" }), "max_tokens"),
        (with("messages", json!([])), "messages"),
        (with("messages", json!([{ "role": "assistant", "content": calls }])), "at most 10000"),
        (with("tools", json!(vec![json!({ "name": "f" }); 1_001])), "at most 1000"),
        (with("messages", json!([{ "role": "nobody", "content": "x" }])), "role"),
        (with("messages", json!([{ "role": "user", "content": [{ "type": "hologram" }] }])), "hologram"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("temperature", json!(1.5)), "temperature"),
        (with("top_k", json!(5)), "top_k"),
        (with("colour", json!("red")), "colour"),
        (with("service_tier", json!("zzz")), "service_tier"),
        (with("output_config", json!({ "effort": "zzz" })), "output_config.effort"),
        (with("output_format", json!({ "type": "json_schema" })), "output_format"),
        (with("output_format", json!("json")), "output_format"),
        (with("tools", json!([{ "name": "f", "input_schema": {}, "zzz": 1 }])), "tools[0].zzz"),
        (with("tools", json!([{ "name": "f g", "input_schema": {} }])), "tools[0].name"),
        (with("tools", json!([{ "name": "f" }])), "tools[0].input_schema"),
        (with("tools", json!([{ "name": "f", "input_schema": { "type": "string" } }])), "tools[0].input_schema"),
        (with("tools", json!([{ "name": "f", "input_schema": { "required": 5 } }])), "tools[0].input_schema"),
        (with("tools", json!([{ "name": "f", "input_schema": {}, "type": 5 }])), "tools[0].type"),
        (
            with("tools", json!([{ "name": "f", "input_schema": {}, "input_examples": ["x"] }])),
            "tools[0].input_examples[0]",
        ),
        (with("context_management", edits("clear_tool_uses_20250919")), "context_management.edits[0]"),
        (
            with("context_management", json!({ "edits": [{ "type": "clear_thinking_20251015", "keep": "some" }] })),
            "context_management.edits[0].keep",
        ),
        (with("diagnostics", json!({ "zzz": 1 })), "diagnostics.zzz"),
        (
            with(
                "messages",
                said(
                    json!({ "type": "document", "source": { "type": "text", "data": "x", "media_type": "text/html" } }),
                ),
            ),
            "media_type",
        ),
        (
            with("messages", json!([{ "role": "assistant", "content": [{ "type": "thinking", "thinking": 7 }] }])),
            "messages[0].content[0].thinking",
        ),
        (with("speed", json!("fast")), "speed"),
        (
            with("messages", said(json!({ "type": "tool_result", "tool_use_id": "c", "content": [zzz] }))),
            "messages[0].content[0].content[0].zzz",
        ),
        (with("tools", json!([{ "name": "f", "input_schema": {} }, { "name": "f", "input_schema": {} }])), "`f`"),
        (with("messages", said(json!({ "type": "document", "source": pdf }))), "PDF"),
        (with("messages", said(json!({ "type": "document", "source": text, "citations": cited }))), "citations"),
        (with("messages", said(json!({ "type": "search_result", "source": "s", "title": "t" }))), "search result"),
        (with("messages", json!([{ "role": "user", "content": "x", "zzz": 1 }])), "messages[0].zzz"),
        (with("messages", said(json!({ "type": "text", "text": "x", "zzz": 1 }))), "messages[0].content[0].zzz"),
        (with("messages", json!([{ "role": "assistant", "content": [call] }])), "`input`"),
        (with("system", json!([{ "type": "text", "text": "x", "zzz": 1 }])), "system[0].zzz"),
        (with("stop_sequences", json!([""])), "stop_sequences"),
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
        assert_eq!(error["request_id"], reply.header("request-id"), "{shown}");
    }
    let unknown = server.post(PATH, &asked("hello"), Some("no-such-token")).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["type"]), (401, &json!("authentication_error")));
    let failed = server.post(PATH, &asked("fail"), Some("ann-tok")).await;
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (502, &json!("api_error")), "{}", failed.text);
    assert_eq!(failed.header("x-should-retry"), "false");
}

fn edits(kind: &str) -> Value {
    json!({ "edits": [{ "type": kind }] })
}

/// What the model thought is not shown to it again, whatever is said of that.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_clears_thinking_is_taken() {
    let server = serve().await;
    for (name, value) in [
        ("context_management", edits("clear_thinking_20251015")),
        ("context_management", json!({ "edits": [] })),
        ("speed", json!("standard")),
    ] {
        let mut body = asked("thanks");
        body[name] = value;
        let told = server.post(PATH, &body, Some("ann-tok")).await;
        assert_eq!(told.status, 200, "{name}: {}", told.text);
    }
}

/// Clients that were written while it was a beta, as litellm's, have the answer's form in a field of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_an_answer_is_taken_from_its_older_field() {
    let server = serve().await;
    let form = json!({ "type": "json_schema", "schema": { "type": "object", "required": ["n"] } });
    let mut body = asked("structured");
    body["output_format"] = form.clone();
    let told = server.post(PATH, &body, Some("ann-tok")).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let answer: Value = serde_json::from_str(told.json()["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(answer["n"], 3, "{}", told.text);
    body["output_format"]["schema"]["required"] = json!(["m"]);
    assert_eq!(server.post(PATH, &body, Some("ann-tok")).await.status, 502, "an answer without it is none");
    body["output_format"] = form.clone();
    body["output_config"] = json!({ "format": form });
    let refused = server.post(PATH, &body, Some("ann-tok")).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("`output_format`"), "{}", refused.text);
}

/// The library goes on without a thread where the refusal names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_refused_as_the_library_reads_it() {
    let server = serve().await;
    let mut body = asked("thanks");
    body["thread"] = json!({ "type": "create" });
    let refused = server.post(PATH, &body, Some("ann-tok")).await;
    let details = json!({ "error_code": "thread_unsupported_request", "unsupported": ["thread"] });
    assert_eq!((refused.status, &refused.json()["error"]["details"]), (400, &details), "{}", refused.text);
    let nowhere = server.post("/v1/messages/batches", &json!({}), Some("ann-tok")).await;
    assert_eq!((nowhere.status, &nowhere.json()["type"]), (404, &json!("error")), "{}", nowhere.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_models_are_listed_as_the_library_reads_them() {
    let server = serve().await;
    let ask = |path: &str| server.http.get(server.url(path)).header("x-api-key", "ann-tok");
    let plain = ask("/v1/models").send().await.unwrap();
    assert_eq!(plain.status(), 200);
    assert_eq!(plain.json::<Value>().await.unwrap()["object"], "list");
    let listed: Value =
        ask("/v1/models").header("anthropic-version", "2023-06-01").send().await.unwrap().json().await.unwrap();
    assert_eq!((&listed["has_more"], &listed["first_id"]), (&json!(false), &json!("querent")), "{listed}");
    let one: Value =
        ask("/v1/models/querent").header("anthropic-version", "2023-06-01").send().await.unwrap().json().await.unwrap();
    assert_eq!(one, listed["data"][0]);
    assert_eq!((&one["type"], &one["display_name"]), (&json!("model"), &json!("querent")), "{one}");
    assert!(one["created_at"].as_str().unwrap().ends_with('Z') && one["lifecycle"] == "active", "{one}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_document_and_a_result_say_reaches_the_model() {
    let server = serve().await;
    let text = json!({ "type": "text", "media_type": "text/plain", "data": "Nordland" });
    let png = json!({ "type": "base64", "media_type": "image/png", "data": "aGk=" });
    let found = |title: &str| {
        let content = json!([{ "type": "text", "text": "of the west" }]);
        json!({ "type": "search_result", "source": "https://example.com", "title": title, "content": content })
    };
    let mut body = asked("thanks");
    body["messages"] = json!([
        { "role": "user", "content": [
            { "type": "document", "source": text, "title": "Regions", "context": "of 2013", "citations": { "enabled": false } },
        ] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "draw", "input": {} }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "content": [
                { "type": "image", "source": png },
                found("Tides"),
            ] },
            found("Winds"),
            { "type": "text", "text": "thanks" },
        ] },
    ]);
    let reply = server.post(PATH, &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let told = json!(server.model.requests().pop().unwrap().messages).to_string();
    for words in [
        "Document: Regions",
        "About this document: of 2013",
        "Nordland",
        "[an image, which is not shown]",
        "Search result: Tides (https://example.com)",
        "Search result: Winds (https://example.com)",
        "of the west",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_may_be_left_out_and_a_tools_examples_are_told() {
    let server = serve().await;
    let mut body = asked("how many?");
    let example = json!({ "city": "Oslo" });
    body["tools"] = json!([{ "name": "f", "input_schema": { "type": "object" }, "input_examples": [example] }]);
    for (display, shown) in [("summarized", "count"), ("omitted", "")] {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024, "display": display });
        let reply = server.post(PATH, &body, Some("ann-tok")).await.json();
        assert_eq!(reply["content"][0], json!({ "type": "thinking", "thinking": shown, "signature": "" }), "{display}");
        let streamed = stream(&server, PATH, body.clone()).await;
        assert_eq!(streamed.contains("thinking_delta"), !shown.is_empty(), "{display}: {streamed}");
    }
    let request = server.model.requests().pop().unwrap();
    let told = json!(request.tools).to_string() + &json!(request.messages).to_string();
    assert!(told.contains("Example of its input: {"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_is_told_in_the_words_of_who_asks() {
    let server = serve().await;
    let model = || server.http.get(server.url("/v1/models/zzz")).bearer_auth("ann-tok");
    let reply = server.send(model().header("anthropic-version", "2023-06-01"), None).await;
    assert_eq!(reply.status, 404, "{}", reply.text);
    assert_eq!(reply.json()["error"]["type"], "not_found_error");
    assert_eq!(reply.json()["request_id"], reply.header("request-id"));
    let reply = server.send(model(), None).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("model_not_found")));
}

/// Arguments that are no JSON go back to the model.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_broken_arguments_is_made_again() {
    let server = serve().await;
    for (path, tools) in [
        (PATH, json!([{ "name": "get_weather", "input_schema": { "type": "object" } }])),
        ("/v1/responses", json!([{ "type": "function", "name": "get_weather" }])),
    ] {
        let mut body = if path == PATH { asked("half an answer") } else { json!({ "input": "half an answer" }) };
        body["tools"] = tools;
        let reply = server.post(path, &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let called = &reply.json()[if path == PATH { "content" } else { "output" }];
        let called = called.as_array().unwrap().last().unwrap();
        let arguments = if path == PATH { &called["input"] } else { &called["arguments"] };
        assert!(arguments.to_string().contains("Paris"), "{called}");
    }
}

/// So do, once, those that do not fit their schema; what comes then is the client's to judge.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_fit_its_schema_is_sent_back_once() {
    let server = serve().await;
    let mut city = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let open = json!([{ "type": "function", "name": "get_weather", "parameters": city }]);
    city["additionalProperties"] = json!(false);
    let tools = json!([{ "type": "function", "name": "get_weather", "parameters": city }]);
    // A schema that is open is the client's to judge at once.
    let body = json!({ "input": "a wrong kind", "tools": open });
    let response = server.post("/v1/responses", &body, Some("ann-tok")).await.json();
    assert_eq!(response["output"][0]["arguments"], r#"{"city":7}"#, "{response}");
    for (question, arguments) in [("a wrong kind", r#"{"city":"Paris"}"#), ("always wrong", r#"{"city":7}"#)] {
        let body = json!({ "input": question, "tools": tools });
        let response = server.post("/v1/responses", &body, Some("ann-tok")).await.json();
        let output = response["output"].as_array().unwrap();
        assert_eq!(output.len(), 2, "{response}");
        assert!(output[0]["error"].to_string().contains("do not fit their schema"), "{response}");
        assert_eq!(output[1]["arguments"], arguments, "{response}");
    }
    // Of a name that is not there the model is told the client's tools too.
    let body = json!({ "input": "unknown tool", "tools": tools });
    let response = server.post("/v1/responses", &body, Some("ann-tok")).await.json();
    assert!(response["output"][0]["error"].to_string().contains("`get_weather`"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_input_has_no_arguments() {
    let server = serve().await;
    let mut body = asked("x");
    body["messages"] = json!([
        { "role": "user", "content": "draw" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "draw" }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "content": "drawn" },
            { "type": "text", "text": "thanks" },
        ] },
    ]);
    let reply = server.post(PATH, &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let calls: Vec<Value> = server
        .model
        .requests()
        .pop()
        .unwrap()
        .messages
        .into_iter()
        .flat_map(|message| message.tool_calls)
        .map(|call| call.arguments)
        .collect();
    assert_eq!(calls, [json!({})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_alone_is_a_question() {
    let server = serve().await;
    let url = "data:image/png;base64,aGk=";
    let picture = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] }]);
    let block = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    let mut anthropic = asked("x");
    anthropic["messages"] = json!([{ "role": "user", "content": [block] }]);
    for (path, body) in [
        ("/v1/responses", json!({ "input": picture })),
        ("/v1/chat/completions", json!({ "messages": picture })),
        (PATH, anthropic),
    ] {
        let reply = server.post(path, &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    }
}

/// Models take text as a tool's result: what else there is, is mentioned.
#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_a_tools_result_are_mentioned() {
    let server = serve().await;
    let url = json!({ "url": "data:image/png;base64,aGk=" });
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "draw", "arguments": "{}" } });
    let chat = json!({ "messages": [
        { "role": "user", "content": "draw" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "call_1", "content": [{ "type": "image_url", "image_url": url }] },
        { "role": "user", "content": "thanks" },
    ] });
    let source = json!({ "type": "data", "value": "aGk=", "mimeType": "image/png" });
    let ag_ui = json!({ "threadId": "t1", "runId": "r1", "messages": [
        { "id": "1", "role": "user", "content": "draw" },
        { "id": "2", "role": "assistant", "toolCalls": [call] },
        { "id": "3", "role": "tool", "toolCallId": "call_1", "content": [{ "type": "image", "source": source }] },
        { "id": "4", "role": "user", "content": "thanks" },
    ] });
    for (path, body) in [("/v1/chat/completions", chat), ("/ag-ui", ag_ui)] {
        let reply = server.post(path, &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let told = json!(server.model.requests().pop().unwrap().messages).to_string();
        assert!(told.contains("[an image, which is not shown]"), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_have_no_pictures() {
    let server = serve().await;
    let picture = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } });
    let chat = json!({ "messages": [
        { "role": "system", "content": [picture] }, { "role": "user", "content": "thanks" },
    ] });
    let mut system = asked("thanks");
    system["system"] = json!([picture]);
    let mut empty = asked("thanks");
    let source = json!({ "type": "base64", "media_type": "application/pdf" });
    empty["messages"][0]["content"] = json!([{ "type": "document", "source": source }]);
    for (path, body, said) in [
        ("/v1/chat/completions", chat, "have no pictures"),
        (PATH, system, "takes text only"),
        (PATH, empty, "has no data"),
    ] {
        let reply = server.post(path, &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text);
        assert!(reply.text.contains(said), "{path}: {}", reply.text);
    }
}

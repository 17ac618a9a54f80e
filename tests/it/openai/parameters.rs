//! What is beside the fields of a request: parameters of addresses, headers, and bodies that say a thing twice. What would
//! change nothing is refused, in the words of each protocol.

use querent_tests::HttpReply;
use serde_json::{Value, json};

use super::serve;

const ANN: Option<&str> = Some("ann-tok");

#[tokio::test]
async fn a_parameter_that_a_route_does_not_take_is_refused_by_its_name() {
    let server = serve().await;
    let response = server.post("/v1/responses", &json!({ "input": "thanks" }), ANN).await.json();
    let id = response["id"].as_str().unwrap();
    let said =
        json!({ "messages": [{ "role": "user", "content": "thanks" }], "store": true, "metadata": { "a": "b" } });
    let completion = server.post("/v1/chat/completions", &said, ANN).await.json();
    let completion = completion["id"].as_str().unwrap();
    let conversation = json!({ "items": [{ "role": "user", "content": "hi" }] });
    let conversation = server.post("/v1/conversations", &conversation, ANN).await.json();
    let conversation = conversation["id"].as_str().unwrap();
    for (path, name) in [
        (format!("/v1/responses/{id}?zzz=1"), "zzz"),
        (format!("/v1/responses/{id}?stream=false&stream=true"), "stream"),
        (format!("/v1/responses/{id}/input_items?before=x"), "before"),
        (format!("/v1/conversations/{conversation}?zzz"), "zzz"),
        (format!("/v1/conversations/{conversation}/items?Limit=1"), "Limit"),
        (format!("/v1/chat/completions/{completion}?limit=1"), "limit"),
        ("/v1/chat/completions?metadata=a".to_owned(), "metadata"),
        (format!("/v1/responses/{id}?include_obfuscation=maybe"), "include_obfuscation"),
        (format!("/v1/conversations/{conversation}/items/msg_1?include[]=zzz"), "include"),
        ("/v1/models?zzz=1".to_owned(), "zzz"),
        ("/v1/models?beta=1".to_owned(), "beta"),
        ("/v1/models?limit=1".to_owned(), "limit"),
        ("/v1/models/querent?zzz=1".to_owned(), "zzz"),
        ("/v1/files?limit[]=1".to_owned(), "limit[]"),
    ] {
        let reply = server.get(&path, ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(name)), "{path}: {}", reply.text);
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error", "{path}: {}", reply.text);
    }
    for (path, body) in [("/v1/responses?zzz=1", json!({ "input": "thanks" })), ("/v1/embeddings?zzz=1", json!({}))] {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!("zzz")), "{path}: {}", reply.text);
    }
    let unknown = server.get("/v1/models?zzz=1", Some("wrong")).await;
    assert_eq!(unknown.status, 401, "who calls is asked first: {}", unknown.text);
    for path in [
        format!("/v1/responses/{id}?include[]=reasoning.encrypted_content&include[]=web_search_call.results"),
        format!("/v1/responses/{id}?include=message.output_text.logprobs&include_obfuscation=false"),
        format!("/v1/responses/{id}/input_items?include[]=message.input_image.image_url&limit=1&order=asc"),
        format!("/v1/conversations/{conversation}/items?include[]=message.input_image.image_url"),
        "/v1/chat/completions?metadata[a]=b&limit=1&order=desc".to_owned(),
        "/v1/models?beta=true".to_owned(),
    ] {
        let reply = server.get(&path, ANN).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    }
}

/// Clients that write an empty object, or null, say nothing.
#[tokio::test]
async fn a_body_that_a_route_does_not_read_is_refused() {
    let server = serve().await;
    for (method, path, shape) in [
        ("POST", "/v1/responses/{id}/cancel", "/error/param"),
        ("DELETE", "/v1/responses/{id}", "/error/param"),
        ("POST", "/v1/queries/1/cancel", "/error/code"),
        ("DELETE", "/v1/agent/sessions/s1", "/error"),
    ] {
        let response = server.post("/v1/responses", &json!({ "input": "slow", "background": true }), ANN).await.json();
        let path = path.replace("{id}", response["id"].as_str().unwrap());
        let send = async |body: &str| {
            let request = server.http.request(method.parse().unwrap(), server.url(&path));
            let request = request.header("content-type", "application/json").body(body.to_owned());
            server.send(request, ANN).await
        };
        let refused = send(r#"{"reason": null, "zzz": 1}"#).await;
        assert!(refused.status == 400 && refused.text.contains("`zzz`"), "{path}: {} {}", refused.status, refused.text);
        assert!(refused.json().pointer(shape).is_some_and(Value::is_string), "{path}: {}", refused.text);
        assert_eq!(send("[1]").await.status, 400, "{path}");
        for nothing in ["", "{}", "null"] {
            let reply = send(nothing).await;
            assert!(!reply.text.contains("takes no body"), "{path} {nothing}: {}", reply.text);
        }
    }
}

/// Reference: <https://platform.claude.com/docs/en/api/models-list>.
#[tokio::test]
async fn models_are_paged_for_anthropics_clients() {
    let server = serve().await;
    let page = async |query: &str| {
        let request = server.http.get(server.url(&format!("/v1/models{query}")));
        server.send(request.header("anthropic-version", "2023-06-01"), ANN).await
    };
    let all = page("").await.json();
    let ids: Vec<&str> = all["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), &all["has_more"]), (2, &json!(false)), "{all}");
    for (query, listed, has_more) in [
        ("?limit=1".to_owned(), &ids[..1], true),
        (format!("?limit=1&after_id={}", ids[0]), &ids[1..], false),
        (format!("?after_id={}", ids[1]), &ids[2..], false),
        (format!("?before_id={}", ids[1]), &ids[..1], false),
        ("?limit=1000&beta=true".to_owned(), &ids[..], false),
        ("?lifecycle[]=active".to_owned(), &ids[..], false),
        ("?lifecycle%5B%5D=retired&lifecycle%5B%5D=active".to_owned(), &ids[..], false),
        ("?lifecycle[]=deprecated&lifecycle[]=retired".to_owned(), &ids[..0], false),
    ] {
        let found = page(&query).await.json();
        let names: Vec<&Value> = found["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
        assert_eq!(names, listed, "{query}: {found}");
        assert_eq!(found["has_more"], has_more, "{query}: {found}");
        assert_eq!(
            (found["first_id"].as_str(), found["last_id"].as_str()),
            (listed.first().copied(), listed.last().copied())
        );
    }
    for query in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?after_id=nothing",
        "?after_id=querent&before_id=querent",
        "?lifecycle[]=new",
        "?zzz=1",
    ] {
        let reply = page(query).await;
        refused_by_anthropic(&reply, query);
    }
    let elsewhere = server.get("/v1/models?lifecycle[]=active", ANN).await;
    assert_eq!(
        (elsewhere.status, &elsewhere.json()["error"]["param"]),
        (400, &json!("lifecycle")),
        "{}",
        elsewhere.text
    );
}

/// OpenAI's server refuses other types by this status, as those of the other protocols do.
#[tokio::test]
async fn bodies_that_say_to_be_no_json_are_refused() {
    let server = serve().await;
    let said = json!([{ "role": "user", "content": "thanks" }]);
    let message =
        json!({ "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "thanks" }] });
    for (path, body, place) in [
        ("/v1/responses", json!({ "input": "thanks" }), "/error/message"),
        ("/v1/chat/completions", json!({ "messages": said }), "/error/message"),
        ("/v1/messages", json!({ "model": "m", "max_tokens": 50, "messages": said }), "/error/message"),
        (
            "/ag-ui",
            json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "thanks" }] }),
            "/error/message",
        ),
        (
            "/a2a",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } }),
            "/error/message",
        ),
        (
            "/run",
            json!({ "appName": "a", "userId": "u", "newMessage": { "parts": [{ "text": "thanks" }] } }),
            "/detail",
        ),
        ("/agentengine/api/v1/RunAgent", json!({ "AgentId": "a", "Messages": said }), "/Message"),
    ] {
        let send = async |kind: &'static str| {
            let request = server.http.post(server.url(path)).header("content-type", kind);
            server.send(request.body(body.to_string()), ANN).await
        };
        for kind in ["text/plain", "application/xml"] {
            let reply = send(kind).await;
            assert_eq!(reply.status, 415, "{path} {kind}: {}", reply.text);
            let said = reply.json();
            let said = said.pointer(place).and_then(Value::as_str).unwrap_or_default();
            assert!(said.contains("application/json"), "{path}: {}", reply.text);
        }
        for kind in ["application/json; charset=utf-8", "application/x-www-form-urlencoded"] {
            assert_eq!(send(kind).await.status, 200, "{path} {kind}");
        }
        let silent = server.send(server.http.post(server.url(path)).body(body.to_string()), ANN).await;
        assert_eq!(silent.status, 200, "{path}: {}", silent.text);
    }
}

/// Reference: <https://platform.claude.com/docs/en/api/versioning> and `beta-headers`.
#[tokio::test]
async fn headers_of_anthropics_clients_are_versions_and_betas() {
    let server = serve().await;
    let body = json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": "thanks" }] });
    let asked = async |path: &str, headers: &[(&'static str, &str)]| {
        let request = server.http.post(server.url(path)).json(&body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        server.send(request, ANN).await
    };
    for headers in [
        [("anthropic-version", "2023-06-01"), ("anthropic-beta", "mcp-client-2025-04-04,context-1m-2025-08-07")],
        [("anthropic-version", "2023-01-01"), ("anthropic-beta", "claude-code-20250219, skills-2025-10-02")],
    ] {
        let reply = asked("/v1/messages?beta=true", &headers).await;
        assert_eq!(reply.status, 200, "{headers:?}: {}", reply.text);
    }
    for header in [("anthropic-version", "zzz"), ("anthropic-version", "20230601"), ("anthropic-beta", "zzz")] {
        let reply = asked("/v1/messages", &[header]).await;
        refused_by_anthropic(&reply, header.1);
        assert!(reply.text.contains(header.0) && reply.text.contains(header.1), "{}", reply.text);
    }
    refused_by_anthropic(&asked("/v1/messages?zzz=1", &[]).await, "a parameter");
}

#[tokio::test]
async fn the_header_of_ksadks_dialect_is_0_or_1() {
    let server = serve().await;
    for (value, status) in [("1", 200), ("0", 200), ("yes", 400)] {
        let request = server.http.post(server.url("/v1/responses")).json(&json!({ "input": "thanks" }));
        let reply = server.send(request.header("x-ksadk-events", value), ANN).await;
        assert_eq!(reply.status, status, "{value}: {}", reply.text);
    }
}

#[tokio::test]
async fn what_is_only_counted_has_no_fields_of_an_answer() {
    let server = serve().await;
    for (name, value) in
        [("stream", json!(true)), ("store", json!(false)), ("max_output_tokens", json!(9)), ("metadata", json!({}))]
    {
        let reply = server.post("/v1/responses/input_tokens", &json!({ "input": "thanks", name: value }), ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(name)), "{}", reply.text);
    }
    let whole = json!({ "input": "thanks", "model": "querent", "instructions": "be brief", "tool_choice": "auto",
        "truncation": "auto", "text": { "verbosity": "low" }, "reasoning": { "effort": "low" }, "tools": [] });
    let counted = server.post("/v1/responses/input_tokens", &whole, ANN).await;
    assert_eq!(counted.status, 200, "{}", counted.text);

    let messages = json!([{ "role": "user", "content": "thanks" }]);
    for (name, value) in [
        ("max_tokens", json!(9)),
        ("stream", json!(true)),
        ("temperature", json!(0.5)),
        ("stop_sequences", json!(["x"])),
        ("metadata", json!({ "user_id": "ann" })),
    ] {
        let body = json!({ "model": "m", "messages": messages, name: value });
        let reply = server.post("/v1/messages/count_tokens", &body, ANN).await;
        refused_by_anthropic(&reply, name);
        assert!(reply.text.contains(&format!("`{name}`")), "{}", reply.text);
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": 2048 });
    let body = json!({ "model": "m", "messages": messages, "system": "be brief", "thinking": thinking });
    let counted = server.post("/v1/messages/count_tokens", &body, ANN).await;
    assert_eq!(counted.status, 200, "{}", counted.text);
}

/// Of a name's two values, one would be dropped.
#[tokio::test]
async fn a_name_stands_once_in_an_object() {
    let server = serve().await;
    let message = r#"{"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "thanks", "text": "fail"}]}"#;
    for (path, body, status) in [
        ("/v1/responses", r#"{"input": "thanks", "input": "fail"}"#.to_owned(), 400),
        (
            "/v1/chat/completions",
            r#"{"messages": [{"role": "user", "content": "thanks", "content": "fail"}]}"#.to_owned(),
            400,
        ),
        (
            "/v1/messages",
            r#"{"model": "m", "max_tokens": 5, "max_tokens": 9, "messages": [{"role": "user", "content": "thanks"}]}"#
                .to_owned(),
            400,
        ),
        ("/v1/conversations", r#"{"metadata": {"a": "b", "a": "c"}}"#.to_owned(), 400),
        (
            "/ag-ui",
            r#"{"threadId": "t", "runId": "r", "runId": "s", "messages": [{"id": "m", "role": "user", "content": "x"}]}"#
                .to_owned(),
            400,
        ),
        (
            "/a2a",
            format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {{"message": {message}}}}}"#),
            200,
        ),
        ("/v1/agent/ask", r#"{"question": "thanks", "question": "fail"}"#.to_owned(), 400),
        ("/run", r#"{"appName": "a", "userId": "u", "userId": "v", "newMessage": {"parts": []}}"#.to_owned(), 400),
        ("/agentengine/api/v1/ListSessions", r#"{"AgentId": "a", "AgentId": "b"}"#.to_owned(), 400),
        ("/api/chat", r#"{"ask": "thanks", "ask": "fail"}"#.to_owned(), 422),
        ("/mcp", r#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}"#.to_owned(), 400),
    ] {
        let request = server.http.post(server.url(path)).header("content-type", "application/json").body(body);
        let reply = server.send(request, ANN).await;
        let is_said = reply.text.contains("stands twice in one object") && !reply.text.contains("welcome");
        assert!(reply.status == status && is_said, "{path}: {} {}", reply.status, reply.text);
    }
}

#[tokio::test]
async fn calls_and_results_of_messages_are_read_or_refused() {
    let server = serve().await;
    let call = |arguments: Value| json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": arguments } });
    let after = |calls: Value| {
        json!({ "messages": [
            { "role": "user", "content": "weather" },
            { "role": "assistant", "content": null, "tool_calls": calls },
            { "role": "tool", "tool_call_id": "c1", "content": "thanks" },
        ] })
    };
    for (calls, param) in [
        (json!("f"), "messages[1].tool_calls"),
        (json!({ "id": "c1" }), "messages[1].tool_calls"),
        (json!([call(json!({ "a": 1 }))]), "messages[1].tool_calls[0].function.arguments"),
    ] {
        let reply = server.post("/v1/chat/completions", &after(calls), ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)), "{}", reply.text);
    }
    let read = server.post("/v1/chat/completions", &after(json!([call(json!("{\"a\": 1}"))])), ANN).await;
    assert_eq!(read.status, 200, "{}", read.text);

    let messages = |list: Value| json!({ "model": "m", "max_tokens": 50, "messages": list });
    let of = |role: &str, block: Value| json!([{ "role": "user", "content": "thanks" }, { "role": role, "content": [block] }]);
    let used = json!({ "type": "tool_use", "id": "t1", "name": "f", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "t1", "content": "x" });
    for list in [
        of("user", used),
        of("user", json!({ "type": "thinking", "thinking": "x", "signature": "" })),
        of("assistant", result),
        json!([{ "role": "user" }]),
        json!([{ "role": "assistant", "content": "I am here." }]),
    ] {
        let reply = server.post("/v1/messages", &messages(list.clone()), ANN).await;
        refused_by_anthropic(&reply, &list.to_string());
    }
    for (path, body, param) in [
        (
            "/v1/chat/completions",
            json!({ "messages": [{ "role": "user" }, { "role": "user", "content": "thanks" }] }),
            "messages[0].content",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "role": "user", "content": null }, { "role": "user", "content": "thanks" }] }),
            "input[0].content",
        ),
        (
            "/v1/responses",
            json!({ "input": [{ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "zzz" }] }),
            "input[0].status",
        ),
        (
            "/v1/chat/completions",
            json!({ "messages": [{ "role": "user", "content": "thanks" }], "prediction": { "type": "content", "content": 7 } }),
            "prediction.content",
        ),
    ] {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)), "{body}: {}", reply.text);
    }
    let alone = json!({ "messages": [{ "role": "assistant", "content": "I am here." }] });
    let reply = server.post("/v1/chat/completions", &alone, ANN).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("empty_question")), "{}", reply.text);
    for (name, value, other) in [("max_tokens", json!(5), json!(6)), ("tool_call_id", json!("c1"), Value::Null)] {
        let mut body = json!({ "messages": [{ "role": "user", "content": "thanks" }] });
        match name {
            "max_tokens" => (body["max_tokens"], body["max_completion_tokens"]) = (value, other),
            _ => body["messages"][0][name] = value,
        }
        let reply = server.post("/v1/chat/completions", &body, ANN).await;
        assert!(reply.status == 400 && reply.text.contains(name), "{body}: {}", reply.text);
    }
}

/// Providers of models refuse such a history, after which the run would fail.
#[tokio::test]
async fn the_calls_of_a_history_have_one_result_each() {
    let server = serve().await;
    let user = |text: &str| json!({ "role": "user", "content": text });
    let called = |ids: &[&str]| {
        let function = json!({ "name": "f", "arguments": "{}" });
        let calls = ids.iter().map(|id| json!({ "id": id, "type": "function", "function": function }));
        json!({ "role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>() })
    };
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "x" });
    let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" });
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "x" });
    let used = |ids: &[&str]| {
        let blocks = ids.iter().map(|id| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} }));
        json!({ "role": "assistant", "content": blocks.collect::<Vec<_>>() })
    };
    let returned = |ids: &[&str]| {
        let blocks = ids.iter().map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" }));
        json!({ "role": "user", "content": blocks.collect::<Vec<_>>() })
    };
    for (path, list, missing) in [
        ("/v1/chat/completions", json!([user("weather"), called(&["c1", "c2"]), result("c1")]), "call c2"),
        ("/v1/chat/completions", json!([user("weather"), called(&["c1"]), result("c1"), result("c1")]), "two outputs"),
        ("/v1/chat/completions", json!([user("weather"), called(&["c1"])]), "call c1"),
        ("/v1/responses", json!([user("weather"), call("c1"), call("c2"), output("c2")]), "call c1"),
        ("/v1/responses", json!([user("weather"), call("c1"), output("c1"), output("c1")]), "two outputs"),
        ("/v1/messages", json!([user("weather"), used(&["c1", "c2"]), returned(&["c1"])]), "call c2"),
        ("/v1/messages", json!([user("weather"), used(&["c1"]), returned(&["c1", "c1"])]), "two outputs"),
    ] {
        let body = match path {
            "/v1/responses" => json!({ "input": list }),
            "/v1/messages" => json!({ "model": "m", "max_tokens": 50, "messages": list }),
            _ => json!({ "messages": list }),
        };
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        assert!(reply.text.contains(missing), "{body}: {}", reply.text);
        let param = &reply.json()["error"]["param"];
        assert!(matches!(param.as_str(), None | Some("input" | "messages")), "{}", reply.text);
    }
    // A call that the user gave up has a result that says so.
    for (path, body) in [
        ("/v1/chat/completions", json!({ "messages": [user("weather"), called(&["c1"]), user("thanks")] })),
        ("/v1/responses", json!({ "input": [user("weather"), call("c1"), user("thanks")], "store": false })),
    ] {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let requests = server.model.requests();
        let told = &requests.last().unwrap().messages;
        let at = told.iter().position(|message| !message.tool_calls.is_empty()).unwrap();
        assert_eq!(told[at + 1].tool_call_id.as_deref(), Some("c1"), "{path}: {told:?}");
        assert!(told[at + 1].content.contains("went on without"), "{path}: {told:?}");
    }
}

#[tokio::test]
async fn a_conversation_whose_items_are_refused_is_not_made() {
    let server = serve().await;
    for items in [json!("hi"), json!([{ "role": "user", "content": "x", "zzz": 1 }]), json!([{ "type": "zzz" }])] {
        let reply = server.post("/v1/conversations", &json!({ "items": items }), ANN).await;
        assert_eq!(reply.status, 400, "{items}: {}", reply.text);
    }
    let listed = server.get("/v1/agent/sessions", ANN).await.json();
    assert_eq!(listed["sessions"], json!([]), "{listed}");
}

fn refused_by_anthropic(reply: &HttpReply, what: &str) {
    let body = reply.json();
    let kinds = (body["type"].as_str(), body["error"]["type"].as_str());
    assert_eq!((reply.status, kinds), (400, (Some("error"), Some("invalid_request_error"))), "{what}: {}", reply.text);
}

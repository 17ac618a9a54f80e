//! The fields of OpenAI's requests: each is honoured, refused by name, or listed as one without effect; and the routes
//! that libraries call beside those of the agent.

use base64::Engine as _;
use querent_agent::protocols::openai_fields::{FieldUse, OpenAiRequest, REQUEST_FIELDS, fields_table};
use querent_tests::script::{run_sql, tool_call};
use querent_tests::{TestServer, TestSettings, collect_sse, package_folder};
use serde_json::{Value, json};

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";

async fn serve() -> TestServer {
    let say = |text: &str| json!({ "events": [{ "text": text }] });
    let cut = |text: &str| json!({ "events": [{ "text": text }], "done": "length" });
    let script = json!({ "runs": [
        { "when": "too long", "turns": [cut("It is a lo")] },
        { "when": "structured", "turns": [cut("{\"name\": \"U")] },
        { "when": "odd words", "turns": [{ "events": [{ "text": "I may not" }], "done": "filtered" }] },
        { "when": "cited", "turns": [{ "events": [run_sql("SELECT 1234 AS n")] }, say("It is 1234.")] },
        { "when": "silent", "turns": [json!({ "events": [], "done": "length" })] },
        { "when": "mine", "turns": [{ "events": [tool_call("run_sql", json!({ "city": "Oslo" }))] }] },
        { "when": "yours", "turns": [
            { "events": [tool_call("querent_run_sql", json!({ "sql": "SELECT 1 AS a" }))] },
            say("It is 1."),
        ] },
        { "when": "twice", "turns": [
            { "events": [run_sql("SELECT 1 AS a"), run_sql("SELECT 2 AS b")] },
            say("Once."),
        ] },
        { "turns": [say("Hello.")], "repeat_last": true },
    ] });
    TestServer::start(TestSettings::default().script(script)).await
}

fn asked(path: &str, text: &str) -> Value {
    match path {
        CHAT => json!({ "messages": [{ "role": "user", "content": text }] }),
        _ => json!({ "input": text }),
    }
}

/// `UPDATE_DOCS=1` writes the table into the page.
#[test]
fn the_table_of_the_documentation_is_that_of_the_parser() {
    const BEGIN: &str = "<!-- fields -->\n";
    const END: &str = "<!-- end of fields -->";
    let page = package_folder().join("../docs/openai.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(&page, format!("{before}{BEGIN}{}{END}{after}", fields_table())).unwrap();
    }
    assert_eq!(table, fields_table(), "UPDATE_DOCS=1 writes it");
}

/// Also those of a message and of its parts; what an assistant's message has, some server wrote.
#[tokio::test]
async fn what_a_message_does_not_have_is_refused_by_its_name() {
    let server = serve().await;
    let image = json!({ "url": "data:image/png;base64,aGk=", "detail": "zzz" });
    let file = json!({ "type": "input_file", "filename": "a.csv", "file_data": "YQ==", "zzz": 1 });
    let user = |more: Value| json!([{ "role": "user", "content": [{ "type": "input_text", "text": "x" }, more] }]);
    for (path, field, messages, param) in [
        (CHAT, "messages", json!([{ "role": "user", "content": "x", "zzz": 1 }]), "messages[0].zzz"),
        (
            CHAT,
            "messages",
            user(json!({ "type": "image_url", "image_url": image })),
            "messages[0].content[1].image_url.detail",
        ),
        (RESPONSES, "input", json!({ "role": "user", "content": "x", "zzz": 1 }), "input.zzz"),
        (RESPONSES, "input", user(file), "input[0].content[1].zzz"),
        (RESPONSES, "conversation", json!({ "id": "conv_1", "zzz": 1 }), "conversation.zzz"),
        ("/v1/responses/compact", "input", json!([{ "role": "user", "content": "x", "zzz": 1 }]), "input[0].zzz"),
        ("/v1/responses/compact", "prompt_cache_key", json!(5), "prompt_cache_key"),
        ("/v1/conversations", "items", json!([{ "role": "user", "content": "x", "zzz": 1 }]), "items[0].zzz"),
        ("/v1/conversations", "items", json!([{ "role": "user", "content": "x" }, { "type": "zzz" }]), "items[1].type"),
        (CHAT, "stream_options", json!({ "include_usage": true }), "stream_options"),
        (RESPONSES, "stream_options", json!({ "include_obfuscation": false }), "stream_options"),
        (
            CHAT,
            "messages",
            json!([{ "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{}" } }]),
            "messages[0].function_call",
        ),
        (RESPONSES, "tools", json!([{ "type": "function", "name": "f", "async": true }]), "tools[0].async"),
    ] {
        let mut body = if path == "/v1/conversations" { json!({}) } else { asked(path, "x") };
        body[field] = messages;
        let reply = server.post(path, &body, None).await;
        assert_eq!(reply.status, 400, "{param}: {}", reply.text);
        assert_eq!(reply.json()["error"]["param"], param, "{}", reply.text);
    }
    let said = json!([
        { "role": "assistant", "content": "hello", "reasoning_content": "zzz" },
        { "role": "user", "content": "x", "name": "ann" },
        { "role": "user", "content": [
            { "type": "text", "text": "x", "prompt_cache_breakpoint": { "mode": "explicit", "ttl": "12h" } },
        ] },
    ]);
    let reply = server.post(CHAT, &json!({ "messages": said }), None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

#[tokio::test]
async fn what_a_field_does_not_take_is_refused_by_its_name() {
    let server = serve().await;
    let both = [
        ("temperature", json!("hot")),
        ("temperature", json!(2.5)),
        ("top_p", json!(-0.1)),
        ("presence_penalty", json!(3)),
        ("parallel_tool_calls", json!("yes")),
        ("top_logprobs", json!(2)),
        ("store", json!("no")),
        ("user", json!(7)),
        ("service_tier", json!([])),
        ("tool_choice", json!("sometimes")),
        ("tool_choice", json!({ "type": "function", "name": "nothing" })),
        ("tool_choice", json!({ "type": "web_search" })),
        ("tool_choice", json!({ "type": "allowed_tools" })),
        ("prompt_cache_retention", json!("zzz")),
    ];
    let responses = [
        ("truncation", json!("zzz")),
        ("max_tool_calls", json!(-1)),
        ("include", json!("all")),
        ("prompt", json!({ "id": "pmpt_1" })),
        ("context_management", json!("compaction")),
        ("text", json!("json")),
        ("reasoning", json!(true)),
    ];
    let chat = [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("logit_bias", json!({ "50256": -100 })),
        ("modalities", json!(["text", "audio"])),
        ("audio", json!({ "voice": "alloy", "format": "wav" })),
        ("functions", json!([{ "name": "f" }])),
        ("function_call", json!({ "name": "f" })),
        ("prediction", json!("zzz")),
        ("web_search_options", json!({})),
        ("stop", json!(["a", "b", "c", "d", "e"])),
        ("stop", json!("")),
        ("stop", json!(["END", ""])),
        ("seed", json!("42")),
        ("verbosity", json!("loud")),
        ("reasoning_effort", json!(3)),
    ];
    let cases = both.iter().flat_map(|case| [(RESPONSES, case), (CHAT, case)]);
    let cases = cases.chain(responses.iter().map(|case| (RESPONSES, case))).chain(chat.iter().map(|case| (CHAT, case)));
    for (path, (name, value)) in cases {
        let mut body = asked(path, "hello");
        body[*name] = value.clone();
        let reply = server.post(path, &body, None).await;
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.text);
        assert_eq!(reply.json()["error"]["param"], *name, "{path} {body}: {}", reply.text);
    }
    let tools = |tool: Value| {
        let mut body = asked(RESPONSES, "hello");
        body["tools"] = json!([tool]);
        body
    };
    let part = |part: Value| json!({ "input": [{ "role": "user", "content": [part] }] });
    for (body, param) in [
        (tools(json!({ "type": "web_search" })), "tools[0].type"),
        (tools(json!({ "type": "function", "name": "f", "parameters": { "type": "array" } })), "tools[0].parameters"),
        (
            tools(json!({ "type": "function", "name": "f", "parameters": { "properties": { "a": "string" } } })),
            "tools[0].parameters",
        ),
        (json!({ "input": "x", "tool_choice": { "type": "zzz", "name": "run_sql" } }), "tool_choice.type"),
        (json!({ "input": "x", "prompt_cache_options": { "prewarm": true } }), "prompt_cache_options.prewarm"),
        (json!({ "input": "x", "tool_choice": { "type": "mcp", "server_label": "zzz" } }), "tool_choice"),
        (tools(json!({ "type": "file_search", "vector_store_ids": [] })), "tools[0].type"),
        (tools(json!({ "type": "custom", "name": "c" })), "tools[0].type"),
        (
            tools(json!({ "type": "mcp", "server_label": "a", "server_url": "https://else.example/mcp" })),
            "tools[0].server_url",
        ),
        (tools(json!({ "type": "mcp", "server_label": "a", "connector_id": "connector_gmail" })), "tools[0].type"),
        (part(json!({ "type": "input_audio", "input_audio": { "data": "", "format": "wav" } })), "input[0].content"),
        (part(json!({ "type": "hologram" })), "input[0].content"),
        (json!({ "input": "hello", "background": true, "store": false }), "background"),
    ] {
        let reply = server.post(RESPONSES, &body, None).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        assert_eq!(reply.json()["error"]["param"], param, "{body}: {}", reply.text);
    }
}

#[tokio::test]
async fn values_that_ask_for_nothing_are_taken_and_the_tier_is_the_one_that_there_is() {
    let server = serve().await;
    for (name, value) in [
        ("background_options", json!({ "completion_window": "soonest" })),
        ("image", json!({ "context_compression": "disabled" })),
        ("service_tier", json!("flex")),
    ] {
        let mut body = asked(RESPONSES, "hello");
        body[name] = value;
        let reply = server.post(RESPONSES, &body, None).await;
        assert_eq!((reply.status, &reply.json()["service_tier"]), (200, &json!("default")), "{name}: {}", reply.text);
    }
}

/// Each protocol names the field that its clients know.
#[tokio::test]
async fn a_question_that_is_too_long_is_refused_by_the_name_of_its_field() {
    let server = serve().await;
    let long = "a".repeat(256 * 1024 + 1);
    for (path, field) in [(RESPONSES, "input"), (CHAT, "messages")] {
        let reply = server.post(path, &asked(path, &long), None).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text);
        assert_eq!(reply.json()["error"]["param"], field, "{path}: {}", reply.text);
    }
    let user = json!([{ "role": "user", "content": long }]);
    for (path, body, field) in [
        ("/v1/messages", json!({ "model": "m", "max_tokens": 9, "messages": user }), "messages"),
        ("/api/chat", json!({ "ask": long }), "ask"),
        ("/v1/agent/ask", json!({ "question": long }), "question"),
    ] {
        let reply = server.post(path, &body, None).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text);
        assert!(reply.text.contains(&format!("`{field}`")), "{path}: {}", reply.text);
    }
}

/// Values that ask for nothing special are taken everywhere, and null is as good as absent.
#[tokio::test]
async fn values_that_ask_for_nothing_are_taken() {
    let server = serve().await;
    for (path, request) in [(RESPONSES, OpenAiRequest::Responses), (CHAT, OpenAiRequest::Chat)] {
        let mut body = asked(path, "hello");
        for field in REQUEST_FIELDS {
            if field.use_in(request).is_some() && body.get(field.name).is_none() {
                body[field.name] = Value::Null;
            }
        }
        let reply = server.post(path, &body, None).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let refused = REQUEST_FIELDS.iter().filter(|field| field.use_in(request) == Some(FieldUse::Refused)).count();
        assert!(refused > 0, "{path}");
    }
    let mut body = asked(CHAT, "hello");
    body["n"] = json!(1);
    body["logprobs"] = json!(false);
    body["modalities"] = json!(["text"]);
    body["functions"] = json!([]);
    body["function_call"] = json!("none");
    body["prediction"] = json!({ "type": "content", "content": "Hello." });
    body["prompt_cache_options"] = json!({ "mode": "explicit", "ttl": "30m" });
    body["prompt_cache_retention"] = json!("24h");
    let reply = server.post(CHAT, &body, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// A field that is in no table is refused by each protocol in its own shape, with its name.
#[tokio::test]
async fn a_field_that_is_in_no_table_is_refused_in_every_protocol() {
    let server = serve().await;
    let chat = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    let with = |mut body: Value, name: &str| {
        body[name] = json!(1);
        body
    };
    for (path, body, name) in [
        (CHAT, chat.clone(), "temprature"),
        (RESPONSES, asked(RESPONSES, "hello"), "top_k"),
        ("/v1/responses/input_tokens", asked(RESPONSES, "hello"), "zzz"),
        ("/v1/conversations", json!({}), "zzz"),
        ("/v1/embeddings", json!({ "input": "x" }), "zzz"),
    ] {
        let reply = server.post(path, &with(body, name), None).await;
        assert_eq!(
            (reply.status, reply.json()["error"]["param"].as_str()),
            (400, Some(name)),
            "{path}: {}",
            reply.text
        );
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(name), "{path}: {}", reply.text);
    }
    let nested = [
        (RESPONSES, json!({ "input": "x", "text": { "verbosity": "loud" } }), "text.verbosity"),
        (RESPONSES, json!({ "input": "x", "text": { "colour": "red" } }), "text.colour"),
        (RESPONSES, json!({ "input": "x", "reasoning": { "effort": "zzz" } }), "reasoning.effort"),
        (RESPONSES, json!({ "input": "x", "include": ["zzz"] }), "include[0]"),
        (RESPONSES, json!({ "input": "x", "stream_options": { "zzz": true } }), "stream_options.zzz"),
        (RESPONSES, json!({ "input": [{ "type": "web_search_call", "id": "ws_1" }] }), "input[0].type"),
        (
            RESPONSES,
            json!({ "input": [{ "role": "user", "content": [{ "type": "input_text" }] }] }),
            "input[0].content",
        ),
        (
            RESPONSES,
            json!({ "input": "x", "tools": [{ "type": "function", "name": "f", "parameters": 7 }] }),
            "tools[0].parameters",
        ),
        (RESPONSES, json!({ "input": "x", "tools": [{ "type": "function", "name": "f", "zzz": 7 }] }), "tools[0].zzz"),
        (CHAT, with(chat.clone(), "response_format"), "response_format"),
        (RESPONSES, json!({ "input": [{ "type": 7, "role": "user", "content": "x" }] }), "input[0].type"),
        (RESPONSES, json!({ "input": [{ "role": "user", "content": "x", "status": "zzz" }] }), "input[0].status"),
        (RESPONSES, json!({ "input": [{ "role": "user", "content": "x", "id": 7 }] }), "input[0].id"),
        (
            RESPONSES,
            json!({ "input": [{ "type": "function_call_output", "call_id": "c", "output": "x", "zzz": 1 }] }),
            "input[0].zzz",
        ),
        (RESPONSES, json!({ "input": [{ "type": "item_reference", "id": "x", "zzz": 1 }] }), "input[0].zzz"),
        (
            RESPONSES,
            json!({ "input": [{ "role": "user", "content": [
                { "text": "x", "inlineData": { "mimeType": "text/plain", "data": "aGk=" } },
            ] }] }),
            "input[0].content",
        ),
        (RESPONSES, own_tools(json!({ "allowed_tools": ["zzz"] })), "tools[0].allowed_tools"),
        (RESPONSES, own_tools(json!({ "allowed_tools": "run_sql" })), "tools[0].allowed_tools"),
        (
            RESPONSES,
            own_tools(json!({ "allowed_tools": { "tool_names": ["run_sql"], "zzz": 1 } })),
            "tools[0].allowed_tools.zzz",
        ),
        (RESPONSES, own_tools(json!({ "allowed_tools": { "read_only": false } })), "tools[0].allowed_tools.read_only"),
        (RESPONSES, own_tools(json!({ "require_approval": "zzz" })), "tools[0].require_approval"),
        (RESPONSES, own_tools(json!({ "require_approval": { "zzz": {} } })), "tools[0].require_approval.zzz"),
        (
            RESPONSES,
            json!({ "input": "x", "text": { "format": { "type": "text", "schema": {} } } }),
            "text.format.schema",
        ),
    ];
    for (path, body, param) in nested {
        let reply = server.post(path, &body, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)), "{body}: {}", reply.text);
    }
    let message = json!({ "role": "user", "parts": [{ "text": "hello" }] });
    for (path, body, status, shape) in [
        ("/v1/agent/ask", json!({ "question": "hello" }), 400, "/error"),
        ("/v1/messages", with(chat, "max_tokens"), 400, "/error/message"),
        ("/run_sse", json!({ "appName": "a", "userId": "u", "newMessage": message }), 422, "/error/message"),
        ("/agentengine/api/v1/RunAgent", json!({ "AgentId": "a", "ResponsesInput": "hello" }), 422, "/Message"),
        ("/api/chat", json!({ "ask": "hello" }), 422, "/detail/0/msg"),
    ] {
        let reply = server.post(path, &with(body, "zzz"), None).await;
        let said = reply.json().pointer(shape).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert!(reply.status == status && said.contains("`zzz`"), "{path}: {} {}", reply.status, reply.text);
    }
}

/// Returns a request that declares this server, with these fields.
fn own_tools(fields: Value) -> Value {
    let mut tool = json!({ "type": "mcp", "server_label": "q" });
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "input": "x", "tools": [tool] })
}

#[tokio::test]
async fn a_declared_server_may_allow_some_of_its_tools() {
    let server = serve().await;
    let settings = TestSettings::default().change(|settings| settings.agent.write_tools = true);
    let writing = TestServer::start(settings).await;
    let mut body = asked(RESPONSES, "yours");
    body["tools"] = json!([{ "type": "mcp", "server_label": "q", "allowed_tools": ["list_databases"] }]);
    let response = server.post(RESPONSES, &body, None).await.json();
    let offered = server.model.requests().pop().unwrap().tools;
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["list_databases"]);
    assert_eq!(response["output"][0]["status"], "failed", "{response:#}");
    for (allowed, has_writers) in [(json!({ "read_only": true }), false), (json!({}), true)] {
        let mut body = own_tools(json!({ "allowed_tools": allowed, "require_approval": "never" }));
        body["input"] = json!("hello");
        let reply = writing.post(RESPONSES, &body, None).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let offered = writing.model.requests().pop().unwrap().tools;
        let has = |name: &str| offered.iter().any(|tool| tool.name == name);
        assert_eq!((has("run_sql"), has("insert_rows")), (true, has_writers), "{allowed}");
    }
}

#[tokio::test]
async fn sampling_goes_to_the_model() {
    let server = serve().await;
    let mut body = asked(CHAT, "hello");
    for (name, value) in [
        ("temperature", json!(0.7)),
        ("top_p", json!(0.9)),
        ("seed", json!(7)),
        ("stop", json!("END")),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(-0.5)),
    ] {
        body[name] = value;
    }
    assert_eq!(server.post(CHAT, &body, None).await.status, 200);
    let sampling = server.model.requests().pop().unwrap().sampling;
    assert_eq!(
        json!(sampling),
        json!({ "temperature": 0.7, "top_p": 0.9, "seed": 7, "stop": ["END"], "presence_penalty": 0.5, "frequency_penalty": -0.5 })
    );
}

#[tokio::test]
async fn an_answer_that_is_cut_says_so_in_its_field_alone() {
    let server = serve().await;
    let response = server.post(RESPONSES, &asked(RESPONSES, "too long"), None).await.json();
    assert_eq!(response["status"], "incomplete", "{response}");
    assert_eq!(response["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    assert_eq!(
        (&response["output_text"], &response["output"][0]["status"]),
        (&json!("It is a lo"), &json!("incomplete"))
    );
    let stored = server.get(&format!("{RESPONSES}/{}", response["id"].as_str().unwrap()), None).await.json();
    assert_eq!(stored["status"], "incomplete");
    let mut streamed = asked(RESPONSES, "too long");
    streamed["stream"] = json!(true);
    let stream = server.post(RESPONSES, &streamed, None).await.text;
    assert!(stream.contains("event: response.incomplete\n"), "{stream}");
    ends_as_it_was_said(&stream);

    let completion = server.post(CHAT, &asked(CHAT, "too long"), None).await.json();
    let choice = &completion["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("length"), &json!("It is a lo")));
    let schema = json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": { "type": "object" } } });
    let mut structured = asked(CHAT, "structured");
    structured["response_format"] = schema;
    let completion = server.post(CHAT, &structured, None).await;
    assert_eq!(completion.status, 200, "{}", completion.text);
    assert_eq!(completion.json()["choices"][0]["finish_reason"], "length", "{}", completion.text);
    let silent = server.post(RESPONSES, &asked(RESPONSES, "silent"), None).await.json();
    assert_eq!((&silent["status"], &silent["output_text"]), (&json!("incomplete"), &json!("")), "{silent}");

    // Ask has no such field: the note stays.
    let told = server.post("/v1/agent/ask", &json!({ "question": "too long" }), None).await.text;
    assert!(told.contains("[The answer was cut here"), "{told}");
}

#[tokio::test]
async fn an_answer_that_a_filter_ends_says_so() {
    let server = serve().await;
    let response = server.post(RESPONSES, &asked(RESPONSES, "odd words"), None).await.json();
    assert_eq!((&response["status"], &response["output_text"]), (&json!("incomplete"), &json!("I may not")));
    assert_eq!(response["incomplete_details"], json!({ "reason": "content_filter" }));
    let completion = server.post(CHAT, &asked(CHAT, "odd words"), None).await.json();
    assert_eq!(completion["choices"][0]["finish_reason"], "content_filter", "{completion}");
    let mut body = asked(CHAT, "odd words");
    body["max_tokens"] = json!(100);
    body["model"] = json!("m");
    let message = server.post("/v1/messages", &body, None).await.json();
    assert_eq!(message["stop_reason"], "refusal", "{message}");
    let told = server.post("/v1/agent/ask", &json!({ "question": "odd words" }), None).await.text;
    assert!(told.contains("content filter stopped it"), "{told}");
}

#[tokio::test]
async fn citations_are_streamed_before_their_text_is_done() {
    let server = serve().await;
    let mut body = asked(RESPONSES, "cited");
    body["stream"] = json!(true);
    let stream = server.post(RESPONSES, &body, None).await.text;
    let frames = collect_sse(&stream);
    let names: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    let added = names.iter().position(|name| *name == "response.output_text.annotation.added").expect(&stream);
    assert!(names[added + 1..].contains(&"response.output_text.done"), "{names:?}");
    assert_eq!(frames[added].data["annotation"]["type"], "url_citation");
    ends_as_it_was_said(&stream);
}

/// Expects the items of the last event to be those that ended before.
fn ends_as_it_was_said(stream: &str) {
    let frames = collect_sse(stream);
    let done = frames.iter().filter(|frame| frame.event == "response.output_item.done");
    let done: Vec<&Value> = done.map(|frame| &frame.data["item"]).collect();
    assert_eq!(json!(done), frames.last().unwrap().data["response"]["output"]);
}

#[tokio::test]
async fn a_tool_of_the_client_may_be_named_like_ours() {
    let server = serve().await;
    let mut body = asked(RESPONSES, "mine");
    body["tools"] =
        json!([{ "type": "function", "name": "run_sql", "parameters": { "type": "object", "properties": {} } }]);
    let response = server.post(RESPONSES, &body, None).await.json();
    let call = &response["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("run_sql")), "{response}");
    let names: Vec<String> = server.model.requests().pop().unwrap().tools.into_iter().map(|tool| tool.name).collect();
    assert!(names.contains(&"querent_run_sql".to_owned()), "{names:?}");
    assert_eq!(names.iter().filter(|name| *name == "run_sql").count(), 1, "{names:?}");

    body["input"] = json!("yours");
    let response = server.post(RESPONSES, &body, None).await.json();
    let call = &response["output"][0];
    assert_eq!((&call["type"], &call["name"], &call["error"]), (&json!("mcp_call"), &json!("run_sql"), &Value::Null));
    assert_eq!(response["output_text"], "It is 1.", "{response}");
}

#[tokio::test]
async fn calls_are_as_many_as_the_request_allows() {
    let server = serve().await;
    let mut body = asked(RESPONSES, "twice");
    body["parallel_tool_calls"] = json!(false);
    let response = server.post(RESPONSES, &body, None).await.json();
    let calls = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp_call").count();
    assert_eq!((calls, &response["output_text"]), (1, &json!("Once.")), "{response}");
    body["parallel_tool_calls"] = json!(true);
    body["max_tool_calls"] = json!(1);
    let response = server.post(RESPONSES, &body, None).await.json();
    assert_eq!(response["output_text"], "Once.", "{response}");
    let mut body = asked(RESPONSES, "hello");
    body["max_tool_calls"] = json!(0);
    let response = server.post(RESPONSES, &body, None).await.json();
    assert_eq!(response["output_text"], "Hello.", "{response}");
    assert!(server.model.requests().pop().unwrap().tools.is_empty(), "no tool is offered");
}

#[tokio::test]
async fn routes_beside_the_agents() {
    let server = TestServer::start(TestSettings::default().with_embedder()).await;
    let embedded = server.post("/v1/embeddings", &json!({ "input": ["one", "two"], "model": "any" }), None).await;
    assert_eq!(embedded.status, 200, "{}", embedded.text);
    let embedded = embedded.json();
    let vector = |index: usize| embedded["data"][index]["embedding"].as_array().unwrap().clone();
    assert_eq!((vector(0).len(), vector(1).len()), (384, 384));
    assert_eq!((&embedded["object"], &embedded["data"][1]["index"]), (&json!("list"), &json!(1)));
    let packed =
        server.post("/v1/embeddings", &json!({ "input": "one", "encoding_format": "base64" }), None).await.json();
    let bytes = base64::engine::general_purpose::STANDARD.decode(packed["data"][0]["embedding"].as_str().unwrap());
    let first = f32::from_le_bytes(bytes.unwrap()[..4].try_into().unwrap());
    assert!((f64::from(first) - vector(0)[0].as_f64().unwrap()).abs() < 1e-5);
    // Clients that cut long texts themselves send tokens, those of OpenAI's models.
    let embed = async |input: Value| server.post("/v1/embeddings", &json!({ "input": input }), None).await.json();
    let said = embed(json!("hello world")).await;
    for input in [json!([15339, 1917]), json!([[15339, 1917]])] {
        let sent = embed(input).await;
        assert_eq!(sent["data"][0]["embedding"], said["data"][0]["embedding"], "{sent}");
    }
    for (body, param) in [
        (json!({}), "input"),
        (json!({ "input": "" }), "input"),
        (json!({ "input": [[1, "a"]] }), "input"),
        (json!({ "input": [[1], "a"] }), "input"),
        (json!({ "input": [4_000_000_000_u64] }), "input"),
        (json!({ "input": [-1] }), "input"),
        (json!({ "input": [[]] }), "input"),
        (json!({ "input": "a", "dimensions": 7 }), "dimensions"),
        (json!({ "input": "a", "encoding_format": "hex" }), "encoding_format"),
        (json!({ "input": "a", "colour": "red" }), "colour"),
        (json!({ "input": "a", "model": 7 }), "model"),
        (json!({ "input": "a", "user": ["ann"] }), "user"),
    ] {
        let reply = server.post("/v1/embeddings", &body, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)), "{}", reply.text);
    }

    let counted =
        server.post("/v1/responses/input_tokens", &json!({ "input": "how many flights?" }), None).await.json();
    assert_eq!(counted["object"], "response.input_tokens");
    let alone = counted["input_tokens"].as_u64().unwrap();
    assert!((3..20).contains(&alone), "{counted}");
    let first =
        server.post(RESPONSES, &json!({ "input": "hello, hello", "conversation": "counted" }), None).await.json();
    let picture =
        json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": "data:image/png;base64,aGk=" }] }]);
    for (body, at_least) in [
        (json!({ "input": "how many flights?", "previous_response_id": first["id"] }), alone + 3),
        (json!({ "input": "how many flights?", "conversation": "counted" }), alone + 3),
        (json!({ "input": picture }), 100),
    ] {
        let counted = server.post("/v1/responses/input_tokens", &body, None).await.json();
        assert!(counted["input_tokens"].as_u64() >= Some(at_least), "{body}: {counted}");
    }
    let unknown = json!({ "input": "x", "previous_response_id": "resp_none" });
    let unknown = server.post("/v1/responses/input_tokens", &unknown, None).await;
    assert_eq!(unknown.json()["error"]["code"], "previous_response_not_found", "{}", unknown.text);

    for (path, status) in [("/v1/images/generations", 404), ("/v1/assistants", 404), ("/v1/embeddings", 405)] {
        let reply = server.get(path, None).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text);
        assert!(
            reply.json()["error"]["message"].is_string() && reply.json()["error"]["type"].is_string(),
            "{}",
            reply.text
        );
    }
    assert!(server.get("/v1/catalog/nothing", None).await.json()["error"]["hint"].is_string(), "ours keep their shape");
}

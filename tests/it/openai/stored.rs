//! What is kept and asked for again: stored completions, summaries of conversations, calls without their results, and items
//! that were added to a conversation.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const ANN: Option<&str> = Some("ann-tok");
const BOB: Option<&str> = Some("bob-tok");

async fn serve() -> TestServer {
    let say = |text: &str| json!({ "events": [{ "text": text }] });
    let script = json!({ "runs": [
        { "when": "Sum up this conversation", "turns": [say("They counted flights.")] },
        { "turns": [
            { "events": [querent_tests::script::run_sql("SELECT 42 AS n")] },
            say("It is 42."),
        ] },
    ] });
    TestServer::start(TestSettings::default().tokens("ann-tok:write:ann,bob-tok:write:bob").script(script)).await
}

fn asked(text: &str, more: Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": text }] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_completions_are_listed_changed_and_deleted() {
    let server = serve().await;
    let create = async |text: &str, more: Value| server.post(CHAT, &asked(text, more), ANN).await.json();
    let first = create("one", json!({ "store": true, "metadata": { "topic": "a" }, "model": "m1" })).await;
    let second = create("two", json!({ "store": true, "metadata": { "topic": "b" } })).await;
    let unkept = create("three", json!({})).await;
    let ids = async |query: &str| -> Vec<String> {
        let listed = server.get(&format!("{CHAT}{query}"), ANN).await;
        assert_eq!(listed.status, 200, "{query}: {}", listed.text);
        let data = listed.json()["data"].as_array().unwrap().clone();
        data.iter().map(|completion| completion["id"].as_str().unwrap().to_owned()).collect()
    };
    let (one, two) = (first["id"].as_str().unwrap().to_owned(), second["id"].as_str().unwrap().to_owned());
    assert_eq!(ids("").await, [one.clone(), two.clone()]);
    assert_eq!(ids("?order=desc&limit=1").await, [two.as_str()]);
    assert_eq!(ids(&format!("?after={one}")).await, [two.as_str()]);
    assert_eq!(ids("?metadata[topic]=a").await, [one.as_str()]);
    assert_eq!(ids("?model=m1").await, [one.as_str()]);
    assert_eq!(server.get(&format!("{CHAT}?zzz=1"), ANN).await.status, 400);

    let path = format!("{CHAT}/{one}");
    let got = server.get(&path, ANN).await.json();
    assert_eq!((&got["choices"], &got["metadata"]), (&first["choices"], &json!({ "topic": "a" })), "{got}");
    let told = server.get(&format!("{path}/messages"), ANN).await.json();
    assert_eq!(told["data"][0]["content"], "one", "{told}");
    let parts = json!([{ "type": "text", "text": "four" }]);
    let fourth = json!({ "messages": [{ "role": "user", "content": parts }], "store": true });
    let fourth = server.post(CHAT, &fourth, ANN).await.json();
    let fourth = format!("{CHAT}/{}", fourth["id"].as_str().unwrap());
    let told = server.get(&format!("{fourth}/messages"), ANN).await.json();
    assert_eq!((&told["data"][0]["content"], &told["data"][0]["content_parts"]), (&json!("four"), &parts), "{told}");
    assert_eq!(server.send(server.http.delete(server.url(&fourth)), ANN).await.status, 200);
    let changed = server.post(&path, &json!({ "metadata": { "topic": "c" } }), ANN).await.json();
    assert_eq!(changed["metadata"], json!({ "topic": "c" }), "{changed}");
    assert_eq!(ids("?metadata[topic]=c").await, [one.as_str()]);
    for path in [format!("{CHAT}/{}", unkept["id"].as_str().unwrap()), format!("{CHAT}/chatcmpl-none")] {
        let reply = server.get(&path, ANN).await;
        assert_eq!((reply.status, reply.json()["error"]["type"].as_str()), (404, Some("invalid_request_error")));
    }
    assert_eq!(server.get(&path, BOB).await.status, 404);
    let deleted = server.send(server.http.delete(server.url(&path)), ANN).await.json();
    assert_eq!(deleted, json!({ "id": one, "object": "chat.completion.deleted", "deleted": true }));
    assert_eq!(ids("").await, [two]);
}

/// What was said of it would pass for a whole answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_failed_is_not_stored() {
    let server = super::serve().await;
    let body = json!({
        "messages": [{ "role": "user", "content": "fail" }], "store": true, "stream": true, "metadata": { "of": "failed" },
    });
    let stream = server.post(CHAT, &body, ANN).await;
    let (_, rest) = stream.text.split_once("\"id\":\"").unwrap_or_else(|| panic!("{}", stream.text));
    let id = &rest[..rest.find('"').unwrap()];
    assert!(stream.text.contains("The answer ") && stream.text.contains("out of memory"), "{}", stream.text);
    for path in [format!("{CHAT}/{id}"), format!("{CHAT}/{id}/messages")] {
        let reply = server.get(&path, ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("response_not_found")), "{path}");
    }
    let listed = server.get(&format!("{CHAT}?metadata[of]=failed"), ANN).await.json();
    assert_eq!(listed["data"], json!([]), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_summed_up_as_an_item_that_is_read_again() {
    let server = serve().await;
    let response = server.post(RESPONSES, &json!({ "input": "how many flights?" }), ANN).await.json();
    for body in [
        json!({ "model": "m", "previous_response_id": response["id"] }),
        json!({ "model": "m", "input": [
            { "role": "user", "content": "how many flights?" },
            { "role": "assistant", "content": "It is 42." },
        ] }),
    ] {
        let compacted = server.post("/v1/responses/compact", &body, ANN).await;
        assert_eq!(compacted.status, 200, "{}", compacted.text);
        let compacted = compacted.json();
        assert_eq!(compacted["object"], "response.compaction");
        let output = compacted["output"].as_array().unwrap();
        assert_eq!(output.last().unwrap()["type"], "compaction", "{compacted}");
        let asked = server.model.requests().pop().unwrap();
        assert!(json!(asked.messages).to_string().contains("how many flights?"), "{asked:?}");
        assert!(asked.tools.is_empty(), "{asked:?}");

        let mut input = output.clone();
        input.push(json!({ "role": "user", "content": "and yesterday?" }));
        assert_eq!(server.post(RESPONSES, &json!({ "input": input }), ANN).await.status, 200);
        let read = json!(server.model.requests().pop().unwrap().messages).to_string();
        assert!(read.contains("They counted flights."), "{read}");
    }
    let foreign = json!({ "input": [{ "type": "compaction", "id": "c", "encrypted_content": "gAAAA" }] });
    let refused = server.post(RESPONSES, &foreign, ANN).await;
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("input[0].encrypted_content")));
    assert_eq!(server.post("/v1/responses/compact", &json!({ "model": "m" }), ANN).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_of_the_client_sums_up_and_shows_the_item() {
    let server = serve().await;
    let mut input = Vec::new();
    for _ in 0..6 {
        input.push(json!({ "role": "user", "content": "a question of many words ".repeat(40) }));
        input.push(json!({ "role": "assistant", "content": "an answer of many words ".repeat(40) }));
    }
    input.push(json!({ "role": "user", "content": "and now?" }));
    let manage = |threshold: u64| json!([{ "type": "compaction", "compact_threshold": threshold }]);
    let ask = async |input: &[Value], management: Value| {
        let body = json!({ "input": input, "context_management": management });
        server.post(RESPONSES, &body, ANN).await.json()
    };
    let kinds = |response: &Value| -> Vec<String> {
        let output = response["output"].as_array().unwrap_or_else(|| panic!("{response}"));
        output.iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
    };
    let summed_up = ask(&input, manage(1_000)).await;
    assert!(kinds(&summed_up).contains(&"compaction".to_owned()), "{summed_up:#}");
    // A conversation that the model's window has no room for is summed up whatever its client says.
    let short = ask(&input[10..], manage(1_000_000)).await;
    assert!(!kinds(&short).contains(&"compaction".to_owned()), "{short:#}");
    for wrong in
        [json!("compaction"), json!([{ "type": "zzz" }]), json!([{ "type": "compaction", "compact_threshold": 1 }])]
    {
        let reply = server.post(RESPONSES, &json!({ "input": "x", "context_management": wrong }), ANN).await;
        assert_eq!(reply.status, 400, "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_comes_back_without_its_result_is_completed() {
    let server = serve().await;
    let response = server.post(RESPONSES, &json!({ "input": "how many?" }), ANN).await.json();
    let mut call = response["output"][0].clone();
    assert_eq!(call["type"], "mcp_call", "{response:#}");
    let fields = call.as_object_mut().unwrap();
    fields.remove("output");
    fields.remove("error");
    let input = json!([{ "role": "user", "content": "how many?" }, call, { "role": "user", "content": "again?" }]);
    for (token, is_known) in [(ANN, true), (BOB, false)] {
        assert_eq!(server.post(RESPONSES, &json!({ "input": input, "store": false }), token).await.status, 200);
        let requests = server.model.requests();
        let told = json!(requests[requests.len() - 2].messages).to_string();
        // The query itself came back with the call.
        assert_eq!(told.contains("row_count"), is_known, "{told}");
        assert_eq!(!told.contains("is not known any more"), is_known, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_were_added_are_known_in_every_protocol() {
    let server = serve().await;
    let items = json!([{ "role": "user", "content": "My region is Nordland." }]);
    let created = server.post("/v1/conversations", &json!({ "items": items }), ANN).await.json();
    let id = created["id"].as_str().unwrap();
    for (path, body) in [
        ("/v1/agent/ask", json!({ "question": "how many?", "session_id": id })),
        (CHAT, asked("how many?", json!({ "session_id": id }))),
    ] {
        assert_eq!(server.post(path, &body, ANN).await.status, 200, "{path}");
        let told = json!(server.model.requests().pop().unwrap().messages).to_string();
        assert!(told.contains("Nordland"), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_deleted_is_not_seen_any_more() {
    let server = serve().await;
    let items = json!([{ "role": "user", "content": "My region is Nordland." }]);
    let created = server.post("/v1/conversations", &json!({ "items": items }), ANN).await.json();
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/conversations/{id}/items");
    let ask = async |text: &str| {
        let reply = server.post(RESPONSES, &json!({ "input": text, "conversation": id }), ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        json!(server.model.requests().pop().unwrap().messages).to_string()
    };
    assert!(ask("how many pilots?").await.contains("Nordland"));
    let listed = async || server.get(&path, ANN).await.json()["data"].as_array().unwrap().clone();
    let all = listed().await;
    for (at, item) in all.iter().enumerate() {
        let one = format!("{path}/{}", item["id"].as_str().unwrap());
        let deleted = server.send(server.http.delete(server.url(&one)), ANN).await;
        assert_eq!((deleted.status, deleted.json()["id"].as_str()), (200, Some(id)), "{item}: {}", deleted.text);
        assert_eq!(server.get(&one, ANN).await.status, 404, "{item}");
        assert_eq!(listed().await.len(), all.len() - at - 1);
    }
    let told = ask("how many crews?").await;
    assert!(!told.contains("Nordland") && !told.contains("pilots"), "{told}");
}

/// The call stays, with what stands for its result.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_is_deleted_is_not_told() {
    let server = serve().await;
    let items = json!([
        { "role": "user", "content": "Where do I live?" },
        { "type": "function_call", "call_id": "c1", "name": "get_region", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "Nordland" },
    ]);
    let created = server.post("/v1/conversations", &json!({ "items": items }), ANN).await.json();
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/conversations/{id}/items");
    let ask = async |text: &str| {
        let reply = server.post(RESPONSES, &json!({ "input": text, "conversation": id }), ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        json!(server.model.requests().pop().unwrap().messages).to_string()
    };
    assert!(ask("how many pilots?").await.contains("Nordland"));
    let listed = server.get(&path, ANN).await.json();
    let mut listed = listed["data"].as_array().unwrap().iter();
    let output = listed.find(|item| item["type"] == "function_call_output").unwrap();
    let one = format!("{path}/{}", output["id"].as_str().unwrap());
    assert_eq!(server.send(server.http.delete(server.url(&one)), ANN).await.status, 200);
    let told = ask("how many crews?").await;
    assert!(!told.contains("Nordland") && told.contains("get_region"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_keeps_what_a_deleted_response_said() {
    let server = serve().await;
    let ask = async |text: &str| {
        let reply = server.post(RESPONSES, &json!({ "input": text, "conversation": "conv_1" }), ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    let items = async || server.get("/v1/conversations/conv_1/items", ANN).await.json()["data"].clone();
    let first = ask("how many pilots?").await;
    let said = items().await;
    let path = format!("{RESPONSES}/{}", first["id"].as_str().unwrap());
    for status in [200, 404] {
        assert_eq!(server.send(server.http.delete(server.url(&path)), ANN).await.status, status);
    }
    for path in [path.clone(), format!("{path}/input_items"), format!("{path}?stream=true")] {
        assert_eq!(server.get(&path, ANN).await.status, 404, "{path}");
    }
    let next = json!({ "input": "how many crews?", "previous_response_id": first["id"] });
    assert_eq!(server.post(RESPONSES, &next, ANN).await.status, 400);
    assert_eq!((items().await, said.as_array().unwrap().len()), (said.clone(), 3), "{said}");
    ask("how many crews?").await;
    assert!(json!(server.model.requests().pop().unwrap().messages).to_string().contains("pilots"));
    let named =
        json!([{ "type": "item_reference", "id": said[2]["id"] }, { "role": "user", "content": "and planes?" }]);
    assert_eq!(server.post(RESPONSES, &json!({ "input": named }), ANN).await.status, 200);
    assert!(json!(server.model.requests().pop().unwrap().messages).to_string().contains("pilots"));
}

/// "Items in the conversation will not be deleted", as OpenAI's reference says of it.
#[tokio::test(flavor = "multi_thread")]
async fn responses_stay_when_their_conversation_is_deleted() {
    let server = serve().await;
    let body = json!({ "input": "how many pilots?", "conversation": "conv_1" });
    let first = server.post(RESPONSES, &body, ANN).await.json();
    let deleted = server.send(server.http.delete(server.url("/v1/conversations/conv_1")), ANN).await;
    assert_eq!((deleted.status, deleted.json()["deleted"].as_bool()), (200, Some(true)), "{}", deleted.text);
    assert_eq!(server.get("/v1/conversations/conv_1", ANN).await.status, 404);

    let path = format!("{RESPONSES}/{}", first["id"].as_str().unwrap());
    assert_eq!(server.get(&path, ANN).await.json()["output"], first["output"]);
    assert_eq!(server.get(&format!("{path}/input_items"), ANN).await.json()["data"].as_array().unwrap().len(), 1);
    let next = json!({ "input": "how many crews?", "previous_response_id": first["id"] });
    assert_eq!(server.post(RESPONSES, &next, ANN).await.status, 200);
    assert!(json!(server.model.requests().pop().unwrap().messages).to_string().contains("pilots"));
    // The name begins a new one.
    assert_eq!(server.post(RESPONSES, &body, ANN).await.status, 200);
    assert!(!json!(server.model.requests().pop().unwrap().messages).to_string().contains("crews"));
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_listed_with_their_ids_and_what_typed_clients_require() {
    let server = serve().await;
    let items = json!([
        { "type": "function_call", "call_id": "c9", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c9", "output": "r" },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "zz" }] },
        { "type": "reasoning", "summary": [], "id": "rs_9" },
        { "role": "user", "content": "x", "id": "odd id" },
    ]);
    for kept in [true, false] {
        let created = server.post("/v1/conversations", &json!({ "items": items }), ANN).await.json();
        let path = format!("/v1/conversations/{}/items?order=asc", created["id"].as_str().unwrap());
        let listed = server.get(&path, ANN).await.json()["data"].clone();
        for (at, prefix) in ["fc_", "fco_", "msg_", "rs_", "msg_"].into_iter().enumerate() {
            let id = listed[at]["id"].as_str().unwrap();
            assert!(id.starts_with(prefix) && id != "odd id", "{listed}");
            assert_eq!(listed[at]["status"] == "completed", prefix != "rs_", "{listed}");
        }
        assert_eq!(listed[3]["id"] == "rs_9", kept, "an id that is taken is not given again");
        assert_eq!(listed[2]["content"][0]["annotations"], json!([]));
    }
}

/// Most clients of Chat Completions send the whole conversation each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_what_is_new_of_a_whole_conversation() {
    let server = serve().await;
    let mut messages = Vec::new();
    for question in ["how many pilots?", "how many crews?", "how many planes?"] {
        messages.push(json!({ "role": "user", "content": question }));
        let body = json!({ "messages": messages, "session_id": "s-1" });
        let reply = server.post(CHAT, &body, ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        messages.push(reply.json()["choices"][0]["message"].clone());
    }
    let told = json!(server.model.requests().pop().unwrap().messages).to_string();
    for question in ["how many pilots?", "how many crews?", "how many planes?"] {
        assert_eq!(told.matches(question).count(), 1, "{question}: {told}");
    }
    // Its questions are items of the conversation, as its answers are.
    let path = "/v1/conversations/s-1/items";
    let listed = server.get(&format!("{path}?order=asc"), ANN).await.json()["data"].clone();
    let roles: Vec<&Value> = listed.as_array().unwrap().iter().filter_map(|item| item.get("role")).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"], "{listed}");
    assert_eq!(listed[0]["content"], json!([{ "type": "input_text", "text": "how many pilots?" }]), "{listed}");
    let first = format!("{path}/{}", listed[0]["id"].as_str().unwrap());
    assert_eq!(server.get(&first, ANN).await.json(), listed[0]);
    assert_eq!(server.send(server.http.delete(server.url(&first)), ANN).await.status, 200);
    assert_eq!(server.get(&first, ANN).await.status, 404);
    let asked = json!({ "input": "how many pilots are there now?", "conversation": "s-1" });
    assert_eq!(server.post(RESPONSES, &asked, ANN).await.status, 200);
    let told = json!(server.model.requests().pop().unwrap().messages).to_string();
    assert!(!told.contains("how many pilots?") && told.contains("how many crews?"), "{told}");
}

/// As with OpenAI, where only the field `instructions` is of one response.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_among_the_items_hold_for_what_continues_them() {
    let server = serve().await;
    let ask = async |path: &str, body: Value| {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        (reply, server.model.requests().pop().unwrap().messages[0].content.clone())
    };
    let begun = json!({ "instructions": "Only now.", "input": [
        { "role": "developer", "content": "Answer in French." }, { "role": "user", "content": "how many?" },
    ] });
    let (first, told) = ask(RESPONSES, begun).await;
    assert!(told.contains("Answer in French.") && told.contains("Only now."), "{told}");
    let follow_up = json!({ "input": "and then?", "previous_response_id": first.json()["id"] });
    let (second, told) = ask(RESPONSES, follow_up).await;
    assert!(told.contains("Answer in French.") && !told.contains("Only now."), "{told}");
    let said_again = json!({ "previous_response_id": second.json()["id"], "input": [
        { "role": "system", "content": "Answer in French." }, { "role": "user", "content": "and now?" },
    ] });
    let (_, told) = ask(RESPONSES, said_again).await;
    assert_eq!(told.matches("Answer in French.").count(), 1, "{told}");

    let items = json!({ "items": [{ "type": "message", "role": "developer", "content": "Speak of carriers." }] });
    let conversation = server.post("/v1/conversations", &items, ANN).await.json()["id"].clone();
    for question in ["how many?", "and then?"] {
        let (_, told) = ask(RESPONSES, json!({ "input": question, "conversation": conversation })).await;
        assert!(told.contains("Speak of carriers."), "{told}");
    }
    let (_, told) = ask("/v1/agent/ask", json!({ "question": "and now?", "session_id": conversation })).await;
    assert!(told.contains("Speak of carriers."), "{told}");
    let path = format!("/v1/conversations/{}/items", conversation.as_str().unwrap());
    let listed = server.get(&format!("{path}?order=asc"), ANN).await.json();
    assert_eq!(listed["data"][0]["role"], "developer", "{listed}");
    let item = format!("{path}/{}", listed["data"][0]["id"].as_str().unwrap());
    assert_eq!(server.send(server.http.delete(server.url(&item)), ANN).await.status, 200);
    let (_, told) = ask(RESPONSES, json!({ "input": "how many?", "conversation": conversation })).await;
    assert!(!told.contains("Speak of carriers."), "{told}");
}

/// What a client added to a conversation itself, and deleted from it, is so in every protocol's listing of it.
#[tokio::test(flavor = "multi_thread")]
async fn added_and_deleted_items_are_so_in_every_listing() {
    let server = serve().await;
    let path = "/v1/conversations/conv_1/items";
    let post = async |path: &str, body: Value| -> Value {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        reply.json()
    };
    let action = async |name: &str, mut fields: Value| -> Value {
        fields["SessionId"] = json!("conv_1");
        post(&format!("/agentengine/api/v1/{name}"), fields).await["Data"].take()
    };
    let line = |role: &Value, text: &Value| format!("{}: {}", role.as_str().unwrap(), text.as_str().unwrap());
    let turns = async || -> Vec<String> {
        let turns = server.get("/v1/agent/sessions/conv_1/turns", ANN).await.json()["turns"].take();
        turns.as_array().unwrap().iter().map(|turn| line(&turn["role"], &turn["content"])).collect()
    };
    let messages = async || -> Vec<String> {
        let said = action("ListSessionMessages", json!({})).await["Messages"].take();
        said.as_array().unwrap().iter().map(|message| line(&message["Role"], &message["Content"])).collect()
    };

    post(RESPONSES, json!({ "input": "how many?", "conversation": "conv_1" })).await;
    let added = json!([
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "input_text", "text": "I am" }, { "type": "input_text", "text": "Ann." }] },
        { "role": "assistant", "content": "Hello Ann." },
        { "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Rome\"}" },
        { "type": "function_call_output", "call_id": "call_1", "output": "sunny" },
    ]);
    post(path, json!({ "items": added })).await;
    post(RESPONSES, json!({ "input": "and then?", "conversation": "conv_1" })).await;
    let all = [
        "user: how many?",
        "assistant: It is 42.",
        "user: I am\n\nAnn.",
        "assistant: Hello Ann.",
        "user: and then?",
        "assistant: It is 42.",
    ];
    assert_eq!(turns().await, all);
    assert_eq!(messages().await, all);

    let events = action("ListSessionEvents", json!({})).await["Events"].take();
    let events = events.as_array().unwrap();
    assert!(events.is_sorted_by(|later, earlier| later["SeqId"].as_u64() > earlier["SeqId"].as_u64()), "{events:#?}");
    let of_call: Vec<&Value> = events.iter().filter(|event| event["Metadata"]["call_id"] == "call_1").collect();
    let [returned, called] = of_call.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&called["EventType"], &called["Metadata"]["tool_name"]), (&json!("tool_call"), &json!("weather")));
    assert_eq!(called["Metadata"]["tool_args"], json!({ "city": "Rome" }));
    assert_eq!(returned["Metadata"]["tool_output"], json!({ "result": "sunny" }));

    let beside = json!({ "IncludeToolEvents": true, "IncludeReasoning": true });
    let answer = action("ListSessionMessages", beside).await["Messages"][1].take();
    let call = &answer["ToolEvents"][0];
    assert_eq!((&call["Name"], &call["Status"]), (&json!("run_sql"), &json!("completed")), "{answer:#}");
    assert_eq!((&call["Result"]["rows"], answer.get("Reasoning")), (&json!([{ "n": 42 }]), None), "{answer:#}");

    // A client that goes on from a place gets all that follows, however little a page has.
    let said = action("ListSessionMessages", json!({})).await["Messages"].take();
    let rest = action("ListSessionMessages", json!({ "AfterSeqId": said[1]["SeqId"], "Limit": 1 })).await;
    assert_eq!((rest["Messages"].as_array().unwrap().len(), &rest["HasMore"]), (4, &json!(false)), "{rest}");

    let listed = server.get(&format!("{path}?order=asc"), ANN).await.json();
    for text in ["how many?", "It is 42.", "Hello Ann."] {
        let item = listed["data"].as_array().unwrap().iter().find(|item| item["content"][0]["text"] == text).unwrap();
        let item = server.url(&format!("{path}/{}", item["id"].as_str().unwrap()));
        assert_eq!(server.send(server.http.delete(item), ANN).await.status, 200, "{text}");
    }
    let left = ["user: I am\n\nAnn.", "user: and then?", "assistant: It is 42."];
    assert_eq!(turns().await, left);
    assert_eq!(messages().await, left);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_added_items_the_newest_are_read() {
    let server = serve().await;
    let path = "/v1/conversations/conv_1/items";
    let ask = async |text: &str| {
        let reply = server.post(RESPONSES, &json!({ "input": text, "conversation": "conv_1" }), ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        json!(server.model.requests().pop().unwrap().messages).to_string()
    };
    ask("how many?").await;
    for first in (0..1_020).step_by(20) {
        let items: Vec<Value> =
            (first..first + 20).map(|number| json!({ "role": "user", "content": format!("note {number}") })).collect();
        assert_eq!(server.post(path, &json!({ "items": items }), ANN).await.status, 200);
    }
    let newest = server.get(&format!("{path}?limit=1"), ANN).await.json();
    assert_eq!(newest["data"][0]["content"][0]["text"], "note 1019", "{newest}");
    ask("and then?").await;
    let last = json!({ "items": [{ "role": "user", "content": "the last note" }] });
    assert_eq!(server.post(path, &last, ANN).await.status, 200);
    let told = ask("and now?").await;
    assert!(told.contains("the last note"), "{told}");
}

/// What was taken out, or names what is not there any more, does not stop what follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_after_its_items_and_files_are_deleted() {
    let server = serve().await;
    let path = "/v1/conversations/conv_1/items";
    let ask = async |text: &str| {
        let reply = server.post(RESPONSES, &json!({ "input": text, "conversation": "conv_1" }), ANN).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        json!(server.model.requests().pop().unwrap().messages).to_string()
    };
    let add = async |item: Value| -> String {
        let added = server.post(path, &json!({ "items": [item] }), ANN).await;
        assert_eq!(added.status, 200, "{}", added.text);
        added.json()["data"][0]["id"].as_str().unwrap().to_owned()
    };
    let delete = async |path: String| {
        assert_eq!(server.send(server.http.delete(server.url(&path)), ANN).await.status, 200, "{path}");
    };
    ask("how many?").await;
    let form = "--cut\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--cut\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nold words\r\n--cut--\r\n";
    let upload = server.http.post(server.url("/v1/files")).header("content-type", "multipart/form-data; boundary=cut");
    let file = server.send(upload.body(form), ANN).await.json()["id"].as_str().unwrap().to_owned();
    let with_file = json!({ "role": "user", "content": [{ "type": "input_file", "file_id": file }] });
    let read = add(with_file.clone()).await;
    assert!(ask("and then?").await.contains("old words"));
    add(with_file).await;
    delete(format!("/v1/files/{file}")).await;
    delete(format!("{path}/{read}")).await;
    assert!(ask("and now?").await.contains("[A file that is not there any more]"));

    // An equal message that was asked before stays.
    let unread = add(json!({ "role": "user", "content": "how many?" })).await;
    delete(format!("{path}/{unread}")).await;
    assert!(ask("and later?").await.contains("how many?"));
}

/// Over whichever protocol it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_called_by_its_first_question() {
    let server = serve().await;
    let made = server.post("/v1/conversations", &json!({}), ANN).await.json()["id"].clone();
    for (path, body) in [
        (RESPONSES, json!({ "input": "first of all", "conversation": made })),
        (RESPONSES, json!({ "input": "and then?", "conversation": made })),
        (RESPONSES, json!({ "input": [{ "role": "user", "content": "second of all" }], "conversation": "c-2" })),
        (CHAT, asked("third of all", json!({ "session_id": "c-3" }))),
    ] {
        let reply = server.post(path, &body, ANN).await;
        assert_eq!(reply.status, 200, "{body}: {}", reply.text);
    }
    let listed = server.get("/v1/agent/sessions", ANN).await.json();
    let titles: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|session| &session["title"]).collect();
    assert_eq!(titles, ["third of all", "second of all", "first of all"]);
}

/// Sessions of OpenAI's agents for Node leave the ids and results of a server's calls out.
#[tokio::test(flavor = "multi_thread")]
async fn a_servers_call_without_its_id_is_kept() {
    let server = super::serve().await;
    let conversation = server.post("/v1/conversations", &json!({}), ANN).await.json();
    let path = format!("/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    let call =
        json!({ "type": "mcp_call", "server_label": "querent", "name": "run_sql", "arguments": "{}", "error": null });
    let items = json!([{ "role": "user", "content": "how many?" }, call]);
    let added = server.post(&path, &json!({ "items": items }), ANN).await;
    assert_eq!(added.status, 200, "{}", added.text);
    let listed = server.get(&format!("{path}?order=asc"), ANN).await.json();
    assert!(listed["data"][1]["id"].as_str().unwrap().starts_with("mcp_"), "{listed}");
    let body = json!({ "input": "thanks", "conversation": conversation["id"] });
    assert_eq!(server.post(RESPONSES, &body, ANN).await.status, 200);
    let body = json!({ "input": [items[0], items[1], { "role": "user", "content": "thanks" }] });
    assert_eq!(server.post(RESPONSES, &body, ANN).await.status, 200);
    let told = json!(server.model.requests().pop().unwrap().messages).to_string();
    assert!(told.contains("The result of this call is not known any more."), "{told}");
}

//! KsADK's actions as its clients see them: runs in both formats, in the background and resumed, sessions and their
//! events, uploads, and how bad requests are refused.

mod sequences;

use std::time::Duration;

use base64::Engine as _;
use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

use crate::adk::{masked, script, started};

const TOKENS: &str = "ann-tok:write:ann,bob-tok:write:bob";
const RUN_AGENT: &str = "/agentengine/api/v1/RunAgent";

#[tokio::test]
async fn an_answer_in_an_envelope() {
    let server = started(false).await;
    let reply = server.post(RUN_AGENT, &asked("plain"), None).await;
    let envelope = reply.json();
    assert_eq!(keys(&envelope), ["Code", "Message", "RequestId", "Action", "Data"]);
    assert_eq!((&envelope["Code"], &envelope["Action"]), (&json!(0), &json!("RunAgent")));
    assert!(envelope["RequestId"].as_str().unwrap().starts_with("req-"));
    let response = &envelope["Data"];
    assert_eq!((&response["output_text"], &response["session_id"]), (&json!("Hello there."), &json!("s1")));

    let mut body = asked("plain");
    body["ApiFormat"] = json!("chat_completions");
    let completion = &server.post(RUN_AGENT, &body, None).await.json()["Data"];
    assert_eq!(completion["choices"][0]["message"]["content"], "Hello there.");
    // The session continues in either format.
    let told = server.model.requests().last().unwrap().messages.len();
    assert!(told >= 4, "{told} messages");
}

#[tokio::test]
async fn streams_of_both_formats() {
    let server = started(false).await;
    let mut body = asked("tools");
    body["Stream"] = json!(true);
    insta::assert_snapshot!("tools", transcript(&server.post(RUN_AGENT, &body, None).await));
    body["Messages"] = json!([{ "role": "user", "content": "think" }]);
    body["ModelOptions"] = json!({ "thinking": true });
    insta::assert_snapshot!("thinking", transcript(&server.post(RUN_AGENT, &body, None).await));
    body["Messages"] = json!([{ "role": "user", "content": "fail" }]);
    insta::assert_snapshot!("error", transcript(&server.post(RUN_AGENT, &body, None).await));
    body["ApiFormat"] = json!("chat_completions");
    body["Messages"] = json!([{ "role": "user", "content": "plain" }]);
    let chunks = server.post(RUN_AGENT, &body, None).await;
    assert!(
        chunks.text.contains("chat.completion.chunk") && chunks.text.ends_with("data: [DONE]\n\n"),
        "{}",
        chunks.text
    );
}

#[tokio::test]
async fn an_approval_ends_incomplete_and_is_resumed() {
    let server = started(true).await;
    let mut body = asked("write");
    body["Stream"] = json!(true);
    let paused = server.post(RUN_AGENT, &body, None).await;
    insta::assert_snapshot!("approval", transcript(&paused));
    let frames = collect_sse(&paused.text);
    let last = frames.last().unwrap();
    assert_eq!(last.event, "response.incomplete");
    let request = last.data["response"]["output"][0]["id"].clone();
    let resume = json!({
        "AgentId": "querent",
        "UserId": "u1",
        "SessionId": "s1",
        "Stream": true,
        "PreviousResponseId": last.data["response"]["id"],
        "ResponsesInput": [{ "type": "mcp_approval_response", "approval_request_id": request, "approve": true }],
    });
    let resumed = server.post(RUN_AGENT, &resume, None).await;
    insta::assert_snapshot!("approval_resumed", transcript(&resumed));
    server.execute("SELECT * FROM kept").await;
    assert_eq!(server.post(RUN_AGENT, &resume, None).await.text, resumed.text, "the stored outcome");
}

#[tokio::test]
async fn a_run_in_the_background_is_followed() {
    let server = started(false).await;
    let mut body = asked("tools");
    body["Background"] = json!(true);
    let data = server.post(RUN_AGENT, &body, None).await.json()["Data"].clone();
    assert_eq!((&data["Status"], &data["Background"]), (&json!("running"), &json!(true)));
    let followed = server.get(data["SubscribeUrl"].as_str().unwrap(), None).await;
    let events = followed_events(&followed);
    insta::assert_snapshot!("subscribed", masked(&json!(events)));
    let numbers: Vec<u64> = events.iter().map(|event| event["SeqId"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");

    // Again from the middle.
    let after = format!("{}&AfterSeqId={}", data["SubscribeUrl"].as_str().unwrap(), numbers[2]);
    assert_eq!(followed_events(&server.get(&after, None).await), events[3..]);

    let listed = data_of(&server, "ListSessionEvents", json!({ "SessionId": "s1" })).await;
    let mut newest_first = events.clone();
    newest_first.reverse();
    assert_eq!(listed["Events"], json!(newest_first));
    let kinds = json!({ "SessionId": "s1", "EventTypes": ["tool_call"], "Limit": 1 });
    assert_eq!(data_of(&server, "ListSessionEvents", kinds).await["Total"], 1);
    let asked_only = json!({ "SessionId": "s1", "EventTypes": "user_message" });
    assert_eq!(data_of(&server, "ListSessionMessages", asked_only).await["Messages"].as_array().unwrap().len(), 1);
    for (field, value, status) in
        [("EventTypes", json!(7), 422), ("EventTypes", json!([7]), 422), ("CheckpointIds", json!(["c1"]), 501)]
    {
        for name in ["ListSessionEvents", "ListSessionMessages"] {
            let refused = action(&server, name, &json!({ "SessionId": "s1", field: value })).await;
            assert_eq!(refused.status, status, "{name} {field}: {}", refused.text);
        }
    }
    // The bounds of KsADK's own server, and types of events that it has.
    for (action_name, field, value) in [
        ("ListSessionEvents", "EventTypes", json!(["tool_calls"])),
        ("ListSessionEvents", "Limit", json!(0)),
        ("ListSessionEvents", "Limit", json!(2_001)),
        ("ListSessionEvents", "Offset", json!(-1)),
        ("ListSessionEvents", "BeforeSeqId", json!(0)),
        ("ListSessionEvents", "AfterSeqId", json!("1")),
        ("ListSessionMessages", "EventTypes", json!("message")),
        ("ListSessionMessages", "Limit", json!(201)),
        ("ListSessionMessages", "IncludeReasoning", json!("yes")),
        ("ListSessionMessages", "CursorSource", json!(7)),
    ] {
        let refused = action(&server, action_name, &json!({ "SessionId": "s1", field: value })).await;
        assert_eq!(refused.status, 422, "{action_name} {field}: {}", refused.text);
        assert_eq!(refused.json()["error"]["param"], field, "{}", refused.text);
    }
    for (field, value) in [("Page", json!(0)), ("PageSize", json!(1_001)), ("PageSize", json!("many"))] {
        let refused = action(&server, "ListSessions", &json!({ "AgentId": "querent", field: value })).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (422, &json!(field)), "{}", refused.text);
    }
    let elsewhere = json!({ "SessionId": "s1", "EventTypes": ["run_checkpoint", "item.completed"] });
    assert_eq!(data_of(&server, "ListSessionEvents", elsewhere).await["Total"], 0);
    let said = data_of(&server, "ListSessionMessages", json!({ "SessionId": "s1" })).await;
    let texts: Vec<&Value> = said["Messages"].as_array().unwrap().iter().map(|message| &message["Content"]).collect();
    assert_eq!(texts, ["tools", "Let me look.", "It is 1."]);

    let subscribe = "/agentengine/api/v1/SubscribeRunEvents";
    for (query, status) in [
        ("", 400),
        ("?SessionId=s1", 400),
        ("?SessionId=s1&InvocationId=i1&AfterSeqId=x", 400),
        ("?SessionId=nowhere&InvocationId=i1", 404),
        ("?SessionId=s1&InvocationId=i1&UserId=u2", 404),
        ("?SessionId=s1&InvocationId=other", 409),
    ] {
        assert_eq!(server.get(&format!("{subscribe}{query}"), None).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_by_its_invocation() {
    let server = started(false).await;
    let mut body = asked("wait");
    body["Background"] = json!(true);
    let data = server.post(RUN_AGENT, &body, None).await.json()["Data"].clone();
    let locked = server.post(RUN_AGENT, &asked("plain"), None).await;
    assert_eq!((locked.status, locked.header("x-should-retry")), (409, "false"), "{}", locked.text);
    let cancel = json!({ "InvocationId": "i1", "SessionId": "s1", "AgentId": "querent", "UserId": "u1" });
    let cancelled = data_of(&server, "CancelRun", cancel.clone()).await;
    let expected = json!({ "Cancelled": true, "Found": true, "Status": "cancelled", "RunnerCancelStatus": "cancelled",
            "RuntimeCancelStatus": "cancelled" });
    assert_eq!(cancelled, expected);
    assert_eq!(data_of(&server, "CancelRun", cancel).await["Cancelled"], false);
    let events = followed_events(&server.get(data["SubscribeUrl"].as_str().unwrap(), None).await);
    assert_eq!(events.last().unwrap()["Content"]["status"], "cancelled");

    assert_eq!(data_of(&server, "CancelRun", json!({ "InvocationId": "none" })).await["Found"], false);
    for (body, status) in [
        (json!({}), 422),
        (json!({ "InvocationId": "i1", "UserId": "u1" }), 400),
        (json!({ "InvocationId": "i1", "SessionId": "nowhere" }), 404),
        (json!({ "InvocationId": "other", "SessionId": "s1" }), 409),
        (json!({ "InvocationId": "i1", "AgentId": "another" }), 409),
    ] {
        assert_eq!(action(&server, "CancelRun", &body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn a_run_goes_on_without_its_client() {
    let server = started(false).await;
    let mut body = asked("wait");
    body["Stream"] = json!(true);
    drop(server.http.post(server.url(RUN_AGENT)).json(&body).send().await.unwrap());
    // Time in which a run that ended with its client would have ended.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.get("/v1/agent/runs", None).await.json()["runs"][0]["status"], "running");
    data_of(&server, "CancelRun", json!({ "InvocationId": "i1" })).await;
}

#[tokio::test]
async fn sessions_are_an_agents_and_a_users() {
    let server = TestServer::start(TestSettings::default().script(script()).tokens(TOKENS)).await;
    let as_ann = Some("ann-tok");
    assert_eq!(server.post(RUN_AGENT, &asked("plain"), as_ann).await.status, 200);
    for (field, other) in [("UserId", "u2"), ("AgentId", "another")] {
        let mut body = asked("plain");
        body[field] = json!(other);
        let refused = server.post(RUN_AGENT, &body, as_ann).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("session_conflict")), "{field}");
        let named = json!({ "AgentId": body["AgentId"], "UserId": body["UserId"], "SessionId": "s1" });
        let get = server.post("/agentengine/api/v1/GetSession", &named, as_ann).await;
        assert_eq!(get.status, 404, "{field}");
    }
    assert_eq!(server.post(RUN_AGENT, &asked("plain"), Some("bob-tok")).await.status, 409);
    let get = json!({ "SessionId": "s1" });
    assert_eq!(server.post("/agentengine/api/v1/GetSession", &get, Some("bob-tok")).await.status, 404);
    let create = json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "s1" });
    assert_eq!(server.post("/agentengine/api/v1/CreateSession", &create, Some("bob-tok")).await.status, 409);
}

#[tokio::test]
async fn the_actions_of_the_web_interface() {
    let server = started(false).await;
    let bootstrap = data_of(&server, "GetAgentUiBootstrap", json!({ "SessionId": "s1" })).await;
    assert_eq!((&bootstrap["Agent"]["AgentId"], &bootstrap["SessionId"]), (&json!("querent"), &json!("s1")));
    assert_eq!(bootstrap["ApiFormats"], json!(["responses", "chat_completions"]));
    let models = data_of(&server, "ListAgentModels", json!({ "AgentId": "querent" })).await;
    assert_eq!((&models["Models"][0]["id"], &models["Current"]), (&json!("querent"), &json!("scripted")));

    let created = data_of(&server, "CreateSession", json!({ "AgentId": "querent", "UserId": "u1" })).await;
    let id = created["Session"]["SessionId"].as_str().unwrap().to_owned();
    let mut body = asked("plain");
    body["SessionId"] = json!(id);
    server.post(RUN_AGENT, &body, None).await;
    let session =
        data_of(&server, "GetSession", json!({ "SessionId": id, "AgentId": "querent" })).await["Session"].clone();
    let told = (&session["Title"], &session["LastPrompt"], &session["ActiveRunStatus"], &session["ActiveInvocationId"]);
    assert_eq!(told, (&json!("plain"), &json!("plain"), &json!("completed"), &json!("i1")));
    server.post(RUN_AGENT, &asked("plain"), None).await;
    let page = json!({ "AgentId": "querent", "Page": 2, "PageSize": 1 });
    let listed = data_of(&server, "ListSessions", page).await;
    assert_eq!((&listed["Total"], &listed["Sessions"][0]["SessionId"]), (&json!(2), &json!(id)));
    // As KsADK's own client names it.
    assert_eq!(data_of(&server, "GetSession", json!({ "Id": id })).await["Session"], session);
    assert_eq!(data_of(&server, "DeleteSession", json!({ "Id": id })).await["Deleted"], true);
    assert_eq!(action(&server, "GetSession", &json!({ "SessionId": id })).await.status, 404);
    assert_eq!(action(&server, "GetSession", &json!({})).await.status, 422);
    // The fields of 0.8.5's clients, and no others.
    let made = json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "s2", "ExpiresHours": 24 });
    assert_eq!(action(&server, "CreateSession", &made).await.status, 200);
    let read = json!({
        "AgentId": "querent",
        "SessionId": "s2",
        "Limit": 5,
        "IncludeReasoning": true,
        "IncludeToolEvents": true,
        "IncludeAttachments": true,
    });
    assert_eq!(action(&server, "ListSessionMessages", &read).await.status, 200);
    for (field, value) in
        [("PreviousResponseId", json!("resp_1")), ("ResponsesInput", json!("thanks")), ("model", json!("another"))]
    {
        let mut body = asked("plain");
        body["ApiFormat"] = json!("chat_completions");
        body["Model"] = json!("scripted");
        body[field] = value;
        let refused = action(&server, "RunAgent", &body).await;
        assert!(refused.status == 422 && refused.text.contains(field), "{field}: {}", refused.text);
    }
    for name in ["CreateSession", "ListSessions", "ListSessionEvents", "GetAgentUiBootstrap", "ListAgentModels"] {
        let refused = action(&server, name, &json!({ "AgentId": "querent", "SessionId": "s1", "zzz": 1 })).await;
        let message = refused.json()["Message"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 422 && message.contains('`'), "{name}: {}", refused.text);
    }
}

#[tokio::test]
async fn files_beside_a_message_reach_the_model() {
    let server = started(false).await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n\
                uploaded,1\r\n--b--\r\n";
    let upload = server.http.post(server.url("/agentengine/api/v1/UploadFile")).body(form);
    let upload = upload.header("content-type", "multipart/form-data; boundary=b");
    let file = server.send(upload, None).await.json()["Data"]["FileData"].clone();
    assert_eq!((&file["displayName"], &file["sizeBytes"]), (&json!("a.csv"), &json!(10)));

    let inline = base64::engine::general_purpose::STANDARD.encode("inline,2");
    let mut body = asked("plain");
    body["current_attachments"] = json!([
        { "fileData": { "fileUri": file["fileUri"] } },
        { "name": "b.csv", "mime_type": "text/csv", "data": inline },
        { "type": "input_file", "filename": "c.csv", "file_data": base64::engine::general_purpose::STANDARD.encode("block,3") },
        { "name": "d.txt", "text": "words,4" },
    ]);
    body["attachments"] = json!([{ "name": "old.txt", "text": "of an earlier message" }]);
    let reply = server.post(RUN_AGENT, &body, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let told = server.model.requests().last().unwrap().messages.last().unwrap().content.clone();
    for words in ["plain", "uploaded,1", "inline,2", "block,3", "words,4"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("of an earlier message"), "{told}");

    // On OpenAI's routes too; files that `has_current_files` says are old are left out.
    for (current, expected) in [(json!(true), true), (json!(false), false)] {
        let body = json!({ "input": "plain", "attachments": [{ "name": "e.txt", "text": "words,5" }], "has_current_files": current });
        assert_eq!(server.post("/v1/responses", &body, None).await.status, 200);
        let told = server.model.requests().last().unwrap().messages.last().unwrap().content.clone();
        assert_eq!(told.contains("words,5"), expected, "{told}");
    }
    for wrong in [json!("x"), json!([7]), json!([{ "name": "x" }]), json!([{ "name": "x", "data": "***" }])] {
        let mut body = asked("plain");
        body["attachments"] = wrong.clone();
        assert_eq!(server.post(RUN_AGENT, &body, None).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn bad_runs_are_refused() {
    let server = started(false).await;
    let with = |field: &str, value: Value| {
        let mut body = asked("plain");
        body[field] = value;
        body
    };
    for (body, status) in [
        (json!([]), 422),
        (json!({ "Messages": [{ "role": "user", "content": "plain" }] }), 422),
        (json!({ "AgentId": "querent" }), 422),
        (with("Messages", json!([])), 422),
        (with("Messages", json!([{ "role": "user", "content": "plain", "zzz": 1 }])), 422),
        (
            with(
                "ResponsesInput",
                json!([{ "role": "user", "content": [{ "type": "input_text", "text": "x", "zzz": 1 }] }]),
            ),
            422,
        ),
        (with("ApiFormat", json!("soap")), 422),
        (with("Stream", json!("yes")), 422),
        (with("SessionId", json!(7)), 422),
        (with("Metadata", json!({ "k": 7 })), 422),
        (with("AccountId", json!(7)), 422),
        (with("ModelOptions", json!(7)), 400),
        (with("ModelOptions", json!({ "thinking": "yes" })), 400),
        (with("PreviousResponseId", json!("resp_unknown")), 400),
        (
            with(
                "ResponsesInput",
                json!([{ "type": "mcp_approval_response", "approval_request_id": "forged", "approve": true }]),
            ),
            400,
        ),
    ] {
        let reply = server.post(RUN_AGENT, &body, None).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        assert!(reply.json()["error"]["message"].is_string() && reply.json()["detail"].is_string(), "{}", reply.text);
    }
    // In the names that the client has.
    for (field, value, param) in [
        ("Model", json!(7), "Model"),
        ("ModelOptions", json!({ "thinking": "yes" }), "ModelOptions.thinking"),
        ("Tools", json!("x"), "Tools"),
        ("Metadata", json!("x"), "Metadata"),
        ("Messages", json!([{ "role": "nobody", "content": "x" }]), "Messages[0].role"),
        ("current_attachments", json!(7), "current_attachments"),
    ] {
        let refused = server.post(RUN_AGENT, &with(field, value), None).await.json();
        assert_eq!(refused["error"]["param"], param, "{refused}");
        assert!(refused["Message"].as_str().unwrap().contains(&format!("`{param}")), "{refused}");
    }
    let garbage = server.http.post(server.url(RUN_AGENT)).body("{");
    assert_eq!(server.send(garbage, None).await.status, 400);
    assert_eq!(server.get("/v1/agent/runs", None).await.json()["runs"], json!([]), "nothing was run");
    assert_eq!(server.get("/v1/agent/sessions", None).await.json()["sessions"], json!([]), "nothing was begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_in_the_envelope_too() {
    let server = TestServer::start(TestSettings::default().tokens("ann-tok:read:ann")).await;
    for (name, token, status, code) in [
        ("RunAgent", "wrong", 401, "unauthenticated"),
        ("RunAgent", "ann-tok", 422, "missing_required_parameter"),
        ("GetSession", "ann-tok", 404, "conversation_not_found"),
        ("ListSessionCheckpoints", "ann-tok", 501, "action_not_supported"),
        ("ListWorkspaceFiles", "wrong", 401, "unauthenticated"),
        ("ListWorkspaceFiles", "ann-tok", 501, "action_not_supported"),
        ("SubmitInteraction", "ann-tok", 501, "action_not_supported"),
        ("MakeCoffee", "ann-tok", 404, "not_found"),
    ] {
        let path = format!("/agentengine/api/v1/{name}");
        let reply = server.post(&path, &json!({"SessionId": "none"}), Some(token)).await;
        assert_eq!(reply.status, status, "{name}: {}", reply.text);
        let body = reply.json();
        assert_eq!((&body["Code"], &body["Action"]), (&json!(status), &json!(name)));
        assert_eq!(body["RequestId"], format!("req-{}", reply.header("x-request-id")));
        assert_eq!((&body["Error"]["Code"], &body["error"]["code"]), (&json!(code), &json!(code)), "{name}");
        let message = body["Message"].as_str().unwrap();
        assert!(!message.is_empty() && body["detail"] == message && body["Error"]["Message"] == message, "{body}");
    }
    let reply = server.post("/run_sse", &json!({}), Some("wrong")).await;
    assert_eq!((reply.status, reply.json()["detail"].is_string()), (401, true), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_is_read_again() {
    let server = TestServer::start(TestSettings::default().tokens("ann-tok:read:ann,bob-tok:read:bob")).await;
    let form =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"notes.csv\"\r\n\r\na,b\n1,2\n\r\n--b--\r\n";
    let upload = server.http.post(server.url("/agentengine/api/v1/UploadFile")).body(form);
    let upload = upload.header("content-type", "multipart/form-data; boundary=b");
    let uploaded = server.send(upload, Some("ann-tok")).await.json();
    let id = uploaded["Data"]["FileData"]["fileUri"].as_str().unwrap();
    let path = format!("/agentengine/api/v1/AttachmentContent?FileUri={id}");
    let read = server.get(&path, Some("ann-tok")).await;
    assert_eq!((read.status, read.text.as_str()), (200, "a,b\n1,2\n"));
    assert_eq!(server.get(&path, Some("bob-tok")).await.status, 404);
}

fn asked(text: &str) -> Value {
    json!({
        "AgentId": "querent",
        "UserId": "u1",
        "SessionId": "s1",
        "InvocationId": "i1",
        "Messages": [{ "role": "user", "content": text }],
    })
}

async fn action(server: &TestServer, name: &str, body: &Value) -> HttpReply {
    server.post(&format!("/agentengine/api/v1/{name}"), body, None).await
}

async fn data_of(server: &TestServer, name: &str, body: Value) -> Value {
    let reply = action(server, name, &body).await;
    assert_eq!(reply.status, 200, "{name}: {}", reply.text);
    let envelope = reply.json();
    assert_eq!(envelope["Action"], name);
    envelope["Data"].clone()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns a subscription's events; it ends with `[DONE]`.
fn followed_events(reply: &HttpReply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text);
    let text = reply.text.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("no end: {}", reply.text));
    let frames = text.split("\n\n").filter(|frame| !frame.is_empty());
    frames.map(|frame| serde_json::from_str(frame.strip_prefix("data: ").expect(frame)).expect(frame)).collect()
}

fn transcript(reply: &HttpReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text);
    let frames: Vec<Value> = collect_sse(&reply.text).into_iter().map(|frame| frame.data).collect();
    masked(&json!(frames))
}

#[tokio::test(flavor = "multi_thread")]
async fn thumbs_are_kept_and_taken_back() {
    let server = started(false).await;
    let response = &server.post(RUN_AGENT, &asked("plain"), None).await.json()["Data"];
    let of = json!({"AgentId": "querent", "SessionId": "s1", "ResponseId": response["id"]});
    let with = |fields: Value| {
        let mut body = of.clone();
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let act = async |name: &str, body: Value| server.post(&format!("/agentengine/api/v1/{name}"), &body, None).await;
    assert_eq!(act("GetResponseFeedback", of.clone()).await.json()["Data"], json!({"Feedback": null}));
    let bad = act("UpsertResponseFeedback", with(json!({"Rating": "splendid"}))).await;
    assert_eq!(bad.status, 400, "{}", bad.text);
    let kept = act("UpsertResponseFeedback", with(json!({"Rating": "down", "Comment": "no"}))).await.json();
    let feedback = &kept["Data"]["Feedback"];
    assert_eq!((&feedback["Rating"], &feedback["Comment"]), (&json!("down"), &json!("no")), "{kept}");
    assert_eq!(feedback["ResponseId"], response["id"]);
    let read = act("GetResponseFeedback", of.clone()).await.json();
    assert_eq!(read["Data"]["Feedback"]["Rating"], "down", "{read}");
    assert_eq!(act("DeleteResponseFeedback", of.clone()).await.json()["Data"], json!({"Deleted": true}));
    assert_eq!(act("GetResponseFeedback", of.clone()).await.json()["Data"], json!({"Feedback": null}));
    let other = with(json!({"ResponseId": "resp_00000000000070008000000000000000"}));
    assert_eq!(act("UpsertResponseFeedback", with(json!({"Rating": "up"}))).await.status, 200);
    // A comment may be longer than a name.
    let wordy = "It counts each flight twice. ".repeat(20);
    let said = act("UpsertResponseFeedback", with(json!({"Rating": "down", "Comment": wordy}))).await.json();
    assert_eq!(said["Data"]["Feedback"]["Comment"], wordy.trim(), "{said}");
    assert_eq!(act("GetResponseFeedback", other).await.status, 404);
}

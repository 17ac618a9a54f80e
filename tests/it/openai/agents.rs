//! AG-UI and A2A: their client libraries, the bytes of each sequence, and how bad requests are refused.

use querent_tests::script::run_sql;
use querent_tests::{NodeJs, TestServer, TestSettings, run_client};
use serde_json::{Value, json};

use super::{run_python, script, serve};
use crate::adk::without_ids;

const AG_UI: &str = "/ag-ui";
const A2A: &str = "/a2a";
const ANN: Option<&str> = Some("ann-tok");

#[tokio::test(flavor = "multi_thread")]
async fn ag_ui_for_node() {
    let server = serve().await;
    let mut node = NodeJs::client("ag_ui_client.mjs");
    node.args([server.url(""), "ann-tok".to_owned()]);
    run_client(node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a2a_for_python() {
    run_python("a2a_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sequence_of_ag_ui_has_its_bytes() {
    let server = serve().await;
    let weather = json!([{ "name": "get_weather", "description": "", "parameters": { "type": "object" } }]);
    for (name, text, more) in [
        ("plain", "thanks", json!({})),
        ("thinking_and_tools", "how many?", json!({ "forwardedProps": { "thinking": true } })),
        ("chart", "chart", json!({})),
        ("client_tool", "weather?", json!({ "tools": weather, "protocolVersion": "1.0" })),
        ("approval", "create a table", json!({})),
        ("error", "fail", json!({})),
    ] {
        let mut body = asked(text);
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        insta::assert_snapshot!(format!("ag_ui_{name}"), bytes(&server, AG_UI, &body).await);
    }
}

/// A client before 1.0, as that of CopilotKit is, refuses an outcome with members that it does not know.
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_ag_ui_before_1_get_outcomes_that_they_know() {
    let server = serve().await;
    let mut body = asked("weather?");
    body["tools"] = json!([{ "name": "get_weather", "description": "", "parameters": { "type": "object" } }]);
    let told = events(&server.post(AG_UI, &body, ANN).await.text);
    assert!(told.iter().any(|event| event["toolCallName"] == "get_weather"), "{told:#?}");
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&json!("RUN_FINISHED"), &json!({ "type": "success" })), "{last}");
    body["protocolVersion"] = json!("1.0");
    let told = events(&server.post(AG_UI, &body, ANN).await.text);
    let pending = &told.last().unwrap()["outcome"]["pendingToolCallIds"];
    assert_eq!(pending.as_array().map(Vec::len), Some(1), "{told:#?}");
}

/// A client before 1.0 has no outcome for it, and would take the run for one that has its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_is_not_finished_for_any_client_of_ag_ui() {
    let server = TestServer::start(TestSettings::default().tokens("ann-tok:write:ann").script(script())).await;
    for (round, version) in [Value::Null, json!("1.0")].into_iter().enumerate() {
        let mut body = asked("slow");
        body["protocolVersion"] = version.clone();
        let cancelled = async {
            server.model.calls().wait_for(|calls| calls.started == round + 1).await.unwrap();
            let run = server.get("/v1/agent/runs", ANN).await.json()["runs"][0]["run_id"].clone();
            server.post(&format!("/v1/agent/runs/{}/cancel", run.as_str().unwrap()), &json!({}), ANN).await
        };
        let (reply, cancelled) = tokio::join!(server.post(AG_UI, &body, ANN), cancelled);
        assert_eq!(cancelled.status, 200, "{}", cancelled.text);
        let last = events(&reply.text).pop().unwrap();
        match version {
            Value::Null => assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("cancelled"))),
            _ => assert_eq!(last["outcome"], json!({ "type": "cancelled" }), "{last}"),
        }
    }
}

/// As in the other protocols; of the server's own calls a run that broke off leaves some without a result.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_an_ag_ui_client_are_answered_together() {
    let server = serve().await;
    let call =
        |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let result = |id: &str| json!({ "id": format!("m-{id}"), "role": "tool", "toolCallId": id, "content": "rain" });
    let (oslo, rome, own) = (call("c1", "get_weather"), call("c2", "get_weather"), call("c3", "run_sql"));
    for (calls, results, status) in [
        (json!([oslo, rome]), vec![result("c1")], 400),
        (json!([oslo, rome]), vec![], 400),
        (json!([oslo, rome]), vec![result("c2"), result("c1")], 200),
        (json!([oslo, own]), vec![result("c1")], 200),
    ] {
        let mut body = asked("cities");
        body["tools"] = json!([{ "name": "get_weather", "description": "", "parameters": { "type": "object" } }]);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({ "id": "m2", "role": "assistant", "toolCalls": calls }));
        messages.extend(results);
        let reply = server.post(AG_UI, &body, ANN).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        if status == 400 {
            assert!(reply.text.contains("No tool output found for function call c"), "{}", reply.text);
            assert_eq!(reply.json()["error"]["param"], "messages", "{}", reply.text);
        }
    }
}

/// What a person decides comes with the whole conversation, as its library sends it.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_of_ag_ui_is_answered() {
    let server = serve().await;
    for (status, payload, made) in [
        ("resolved", json!({ "approved": true }), true),
        ("resolved", json!(false), false),
        ("cancelled", Value::Null, false),
    ] {
        let paused = events(&server.post(AG_UI, &asked("create a table"), ANN).await.text);
        let outcome = &paused.last().unwrap()["outcome"];
        assert_eq!(outcome["type"], "interrupt", "{paused:#?}");
        let id = outcome["interrupts"][0]["id"].as_str().unwrap();
        let call = paused.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
        assert_eq!((&call["toolCallId"], &call["toolCallName"]), (&json!(id), &json!("create_table_as")));
        let function = json!({ "name": "create_table_as", "arguments": "{}" });
        let calls = json!([{ "id": id, "type": "function", "function": function }]);
        let mut body = asked("create a table");
        body["messages"].as_array_mut().unwrap().push(json!({ "id": "m2", "role": "assistant", "toolCalls": calls }));
        body["resume"] = json!([{ "interruptId": id, "status": status, "payload": payload }]);
        let done = events(&server.post(AG_UI, &body, ANN).await.text);
        let result =
            done.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap_or_else(|| panic!("{done:#?}"));
        assert_eq!(result["toolCallId"], id, "{done:#?}");
        assert_eq!(result["content"].as_str().unwrap().contains("\"error\""), !made, "{done:#?}");
        assert_eq!(done.last().unwrap()["outcome"]["type"], "success", "{done:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_ag_ui_are_refused_by_their_fields() {
    let server = serve().await;
    let with = |name: &str, value: Value| {
        let mut body = asked("hello");
        body[name] = value;
        body
    };
    let part = |part: Value| json!([{ "id": "m", "role": "user", "content": [part] }]);
    let resolved = |payload: Value| json!([{ "interruptId": "i", "status": "resolved", "payload": payload }]);
    for (body, param) in [
        (json!({}), "threadId"),
        (with("messages", json!([])), "messages"),
        (with("messages", json!([{ "id": "m", "role": "nobody" }])), "messages[0].role"),
        (
            with("messages", json!([{ "id": "m", "role": "user", "content": [{ "type": "audio" }] }])),
            "messages[0].content",
        ),
        (with("messages", part(json!({ "type": "binary", "mimeType": "text/csv" }))), "messages[0].content"),
        (with("messages", part(json!({ "type": "image", "source": { "type": "data" } }))), "messages[0].content"),
        (with("messages", part(json!({ "type": "document", "source": { "type": "url" } }))), "messages[0].content"),
        (
            with(
                "messages",
                part(json!({ "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": 7 } })),
            ),
            "messages[0].content[0].source.mimeType",
        ),
        (
            with("messages", part(json!({ "type": "binary", "mimeType": 7, "data": "aGk=" }))),
            "messages[0].content[0].mimeType",
        ),
        (
            with("messages", part(json!({ "type": "text", "text": "x", "metadata": { "filename": 7 } }))),
            "messages[0].content[0].metadata.filename",
        ),
        (with("messages", json!([{ "id": "m", "role": "tool", "content": "x" }])), "messages[0].toolCallId"),
        (with("tools", json!([{ "name": "f", "zzz": 1 }])), "tools[0].zzz"),
        (with("tools", json!([{ "name": "a b" }])), "tools[0].name"),
        (with("tools", json!([{ "name": "f" }, { "name": "f" }])), "tools"),
        (with("context", json!([{ "description": 7 }])), "context[0].description"),
        (with("resume", json!([{ "interruptId": "i", "status": "maybe" }])), "resume[0].status"),
        (with("resume", json!([{ "interruptId": "i", "status": "resolved" }])), "resume[0].payload"),
        (with("resume", resolved(json!({ "approved": true, "args": { "table": "other" } }))), "resume[0].payload.args"),
        (with("resume", resolved(json!({ "approved": true }))), "resume"),
        (with("resume", resolved(json!({ "approved": "yes" }))), "resume[0].payload.approved"),
        (with("resume", resolved(json!({ "approved": false, "reason": 7 }))), "resume[0].payload.reason"),
        (
            with("messages", json!([{ "id": "m", "role": "tool", "toolCallId": "c", "content": "x", "error": 7 }])),
            "messages[0].error",
        ),
        (with("messages", json!(vec![json!({ "id": "m", "role": "user", "content": "x" }); 10_001])), "messages"),
        (with("tools", json!(vec![json!({ "name": "f", "description": "x" }); 1_001])), "tools"),
        (with("threadId", json!("")), "threadId"),
        (with("runId", json!("")), "runId"),
        (with("forwardedProps", json!(7)), "forwardedProps"),
        (with("forwardedProps", json!({ "thinking": "x" })), "forwardedProps.thinking"),
        (with("messages", json!([{ "id": "m", "role": "assistant", "content": 7 }])), "messages[0].content"),
        (with("messages", json!([{ "id": "m", "role": "assistant", "toolCalls": "f" }])), "messages[0].toolCalls"),
        (with("messages", json!([{ "id": "m", "role": "user" }])), "messages[0].content"),
        (with("messages", json!([{ "id": 7, "role": "user", "content": "x" }])), "messages[0].id"),
        (
            with("messages", json!([{ "id": "m", "role": "user", "content": "x", "metadata": 7 }])),
            "messages[0].metadata",
        ),
        (
            with("messages", json!([{ "id": "m", "role": "assistant", "toolCalls": [{ "id": "c", "type": "zzz" }] }])),
            "messages[0].toolCalls[0].type",
        ),
        (with("zzz", json!(1)), "zzz"),
    ] {
        let reply = server.post(AG_UI, &body, ANN).await;
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)), "{body}: {}", reply.text);
    }
    assert_eq!(server.post(AG_UI, &asked("hello"), Some("no-such-token")).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sequence_of_a2a_has_its_bytes() {
    let server = serve().await;
    for (name, text) in [("plain", "thanks"), ("tools", "how many?"), ("error", "fail")] {
        for (version, method) in [("0_3", "message/stream"), ("1_0", "SendStreamingMessage")] {
            let shown = bytes(&server, A2A, &sent(method, text)).await;
            insta::assert_snapshot!(format!("a2a_{name}_{version}"), shown);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_their_owners_and_faults_have_codes() {
    let server = serve().await;
    let done = server.post(A2A, &sent("message/send", "thanks"), ANN).await.json();
    let task = done["result"]["id"].clone();
    assert_eq!((&done["result"]["kind"], &done["result"]["status"]["state"]), (&json!("task"), &json!("completed")));
    let call = |method: &str| json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": { "id": task } });
    for (body, token, code) in [
        (call("tasks/get"), Some("bob-tok"), -32_001),
        (call("tasks/cancel"), ANN, -32_002),
        (call("tasks/pushNotificationConfig/set"), ANN, -32_003),
        (with_webhook("message/send", "pushNotificationConfig"), ANN, -32_003),
        (with_webhook("SendStreamingMessage", "taskPushNotificationConfig"), ANN, -32_003),
        (call("SubscribeToTask"), ANN, -32_004),
        (call("ListTasks"), ANN, -32_602),
        (call("nothing"), ANN, -32_601),
        (json!({ "jsonrpc": "2.0", "id": "q", "method": "message/send", "params": {} }), ANN, -32_602),
        (json!({ "jsonrpc": "2.0", "id": "q", "method": "tasks/get", "params": ["x"] }), ANN, -32_602),
        (json!({ "jsonrpc": "2.0", "id": "q", "method": "tasks/get", "zzz": 1 }), ANN, -32_600),
        (in_context(&"c".repeat(257)), ANN, -32_602),
        (with_part(json!({ "kind": "text", "text": "hello", "zzz": 1 })), ANN, -32_602),
        (with_part(json!({ "kind": "file", "file": { "bytes": "YQ==", "zzz": 1 } })), ANN, -32_602),
        (with_part(json!({ "kind": "file", "file": { "bytes": "YQ==", "mimeType": "audio/wav" } })), ANN, -32_005),
        (with_part(json!({ "kind": "data", "text": "hello" })), ANN, -32_602),
        (with_part(json!({ "kind": "text", "text": "hello", "data": { "a": 1 } })), ANN, -32_602),
    ] {
        let reply = server.post(A2A, &body, token).await;
        let error = reply.json();
        assert_eq!((reply.status, &error["error"]["code"]), (200, &json!(code)), "{body}: {}", reply.text);
        assert_eq!(error["id"], "q", "{}", reply.text);
        let info = &error["error"]["data"][0];
        assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{}", reply.text);
        assert!(info["reason"].is_string() && info["domain"] == "a2a-protocol.org", "{}", reply.text);
    }
    assert_eq!(server.post(A2A, &call("tasks/get"), None).await.status, 401);
    for (method, length, shown) in [("tasks/get", 0, 0), ("GetTask", 1, 1), ("tasks/get", 9, 1)] {
        let mut asked = call(method);
        asked["params"]["historyLength"] = json!(length);
        let got = server.post(A2A, &asked, ANN).await.json();
        assert_eq!(got["result"]["history"].as_array().unwrap().len(), shown, "{method} {length}: {got}");
    }
    let mut brief = sent("SendMessage", "thanks");
    brief["params"]["configuration"] = json!({ "historyLength": 0 });
    let got = server.post(A2A, &brief, ANN).await.json();
    assert_eq!(got["result"]["task"]["history"], json!([]), "{got}");
    let card = server.get("/.well-known/agent-card.json", None).await;
    assert_eq!(card.header("cache-control"), "max-age=300");
    let card = card.json();
    assert!(card["url"].as_str().unwrap().ends_with("/a2a") && card["security"].is_array(), "{card}");
    let interface = json!([{ "url": card["url"], "transport": card["preferredTransport"] }]);
    assert_eq!(card["additionalInterfaces"], interface, "the address stands among all of them too");

    let mut at_once = sent("SendMessage", "slow");
    at_once["params"]["configuration"] = json!({ "returnImmediately": true });
    let begun = server.post(A2A, &at_once, ANN).await.json();
    assert_eq!(begun["result"]["task"]["status"]["state"], "TASK_STATE_WORKING", "{begun}");
    let id = begun["result"]["task"]["id"].clone();
    let cancel = json!({ "jsonrpc": "2.0", "id": 3, "method": "CancelTask", "params": { "id": id } });
    let cancelled = server.post(A2A, &cancel, ANN).await.json();
    let status = &cancelled["result"]["status"];
    assert_eq!(status["state"], "TASK_STATE_CANCELED", "{cancelled}");
    assert_eq!(status["message"]["parts"][1]["data"], json!({ "error": "cancelled" }), "{cancelled}");

    let version = server.http.post(server.url(A2A)).header("A2A-Version", "0.2").json(&call("tasks/get"));
    let refused = server.send(version, ANN).await.json();
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32_009), &json!("q")), "{refused}");
}

/// A task that has asked which reading is meant goes on with the reply, as the same task.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_asks_back_is_answered() {
    let server = two_singers().await;
    let asked = server.post(A2A, &sent("SendMessage", "How many singers are there?"), None).await.json();
    let task = &asked["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked:#}");
    let parts = &task["status"]["message"]["parts"];
    assert!(parts[0]["text"].as_str().unwrap().contains("Which one?"), "{asked:#}");
    assert_eq!(parts[1]["data"]["readings"].as_array().unwrap().len(), 2, "{asked:#}");
    let listed = |state: &str| json!({ "jsonrpc": "2.0", "id": 2, "method": "ListTasks", "params": { "status": state, "includeArtifacts": true } });
    let waiting = server.post(A2A, &listed("TASK_STATE_INPUT_REQUIRED"), None).await.json();
    assert_eq!(waiting["result"]["tasks"][0]["id"], task["id"], "{waiting:#}");

    let mut reply = sent("SendMessage", "the second one");
    reply["params"]["message"]["taskId"] = task["id"].clone();
    reply["params"]["message"]["contextId"] = json!("another");
    let refused = server.post(A2A, &reply, None).await.json();
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    reply["params"]["message"]["contextId"] = task["contextId"].clone();
    let answered = server.post(A2A, &reply, None).await.json();
    let same = &answered["result"]["task"];
    assert_eq!((&same["id"], &same["status"]["state"]), (&task["id"], &json!("TASK_STATE_COMPLETED")), "{answered:#}");
    let get = json!({ "jsonrpc": "2.0", "id": 3, "method": "GetTask", "params": { "id": task["id"] } });
    let whole = server.post(A2A, &get, None).await.json();
    let roles: Vec<&Value> = whole["result"]["history"].as_array().unwrap().iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"], "{whole:#}");
    let answers = whole["result"]["artifacts"].as_array().unwrap().iter();
    let answers: Vec<&Value> = answers.filter(|artifact| artifact["artifactId"] == "answer").collect();
    assert!(answers.len() == 1 && answers[0]["parts"][0]["text"].as_str().unwrap().contains('3'), "{whole:#}");

    // It waits for nothing now, and is listed once.
    let late = server.post(A2A, &reply, None).await.json();
    assert_eq!(late["error"]["code"], -32_004, "{late}");
    let done = server.post(A2A, &listed("TASK_STATE_COMPLETED"), None).await.json();
    assert_eq!(
        (done["result"]["totalSize"].clone(), &done["result"]["tasks"][0]["id"]),
        (json!(1), &task["id"]),
        "{done:#}"
    );
}

/// It has not ended: "a task already in a terminal state" is what cannot be cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_asks_back_is_cancelled() {
    let server = two_singers().await;
    let asked = server.post(A2A, &sent("SendMessage", "How many singers are there?"), None).await.json();
    let task = &asked["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked:#}");
    let named = |method: &str| json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": { "id": task["id"] } });
    let cancelled = server.post(A2A, &named("CancelTask"), None).await.json();
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled:#}");
    let got = server.post(A2A, &named("GetTask"), None).await.json();
    assert_eq!(got["result"], cancelled["result"]);
    let list =
        json!({ "jsonrpc": "2.0", "id": 4, "method": "ListTasks", "params": { "status": "TASK_STATE_CANCELED" } });
    let listed = server.post(A2A, &list, None).await.json();
    assert_eq!(listed["result"]["tasks"][0]["id"], task["id"], "{listed:#}");

    let again = server.post(A2A, &named("CancelTask"), None).await.json();
    assert_eq!(again["error"]["code"], -32_002, "{again}");
    let mut reply = sent("SendMessage", "the second one");
    reply["params"]["message"]["taskId"] = task["id"].clone();
    let late = server.post(A2A, &reply, None).await.json();
    assert_eq!(late["error"]["code"], -32_004, "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed() {
    let server = serve().await;
    for (context, text) in [("c1", "thanks"), ("c1", "fail"), ("c2", "thanks")] {
        let mut body = sent("SendMessage", text);
        body["params"]["message"]["contextId"] = json!(context);
        assert!(server.post(A2A, &body, ANN).await.json()["result"].is_object());
    }
    let list = async |params: Value, token: Option<&str>| -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params });
        server.post(A2A, &body, token).await.json()["result"].clone()
    };
    let all = list(json!({}), ANN).await;
    assert_eq!((&all["totalSize"], &all["pageSize"], &all["nextPageToken"]), (&json!(3), &json!(50), &json!("")));
    assert_eq!(all["tasks"][0]["contextId"], "c2", "the newest first: {all}");
    assert!(all["tasks"][0]["artifacts"].is_null() && all["tasks"][0]["history"].is_array(), "{all}");
    let some =
        list(json!({ "contextId": "c1", "status": "TASK_STATE_COMPLETED", "includeArtifacts": true }), ANN).await;
    assert_eq!((&some["totalSize"], &some["tasks"][0]["artifacts"][0]["name"]), (&json!(1), &json!("answer")));
    let failed = list(json!({ "status": "TASK_STATE_FAILED", "includeArtifacts": true }), ANN).await;
    assert_eq!(failed["tasks"][0]["artifacts"][0]["parts"][0]["text"], "The answer ", "{failed}");
    // "The page size used for this response", whichever number of tasks is left.
    let first = list(json!({ "pageSize": 2, "historyLength": 0 }), ANN).await;
    assert!(first["tasks"][0]["history"].is_null(), "{first}");
    let rest = list(json!({ "pageSize": 2, "pageToken": first["nextPageToken"] }), ANN).await;
    assert_eq!((&rest["pageSize"], &rest["tasks"][0]["id"]), (&json!(2), &all["tasks"][2]["id"]), "{rest}");
    assert_eq!(list(json!({}), Some("bob-tok")).await["totalSize"], 0);
}

/// What is said before a call is no answer, for who follows as for who asks for the task.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_after_a_call_has_no_answer() {
    let server = serve().await;
    let followed = events(&server.post(A2A, &sent("SendStreamingMessage", "lost thread"), ANN).await.text);
    let task = followed[0]["result"]["task"]["id"].clone();
    let mut answer = String::new();
    for update in followed.iter().map(|event| &event["result"]["artifactUpdate"]) {
        if update["artifact"]["artifactId"] != "answer" {
            continue;
        }
        if update["append"] == false {
            answer.clear();
        }
        answer += update["artifact"]["parts"][0]["text"].as_str().unwrap();
    }
    assert_eq!(answer, "", "{followed:#?}");
    let get = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": task } });
    let got = server.post(A2A, &get, ANN).await.json()["result"].clone();
    assert_eq!(got["status"]["state"], "TASK_STATE_FAILED", "{got}");
    let artifacts = got["artifacts"].as_array().unwrap();
    assert!(artifacts.iter().all(|artifact| artifact["artifactId"] != "answer"), "{got}");
    assert_eq!(artifacts.len(), 1, "the rows: {got}");
}

fn asked(text: &str) -> Value {
    json!({ "threadId": "t1", "runId": "r1", "messages": [{ "id": "m1", "role": "user", "content": text }] })
}

fn sent(method: &str, text: &str) -> Value {
    let (role, part) = match method.contains('/') {
        true => ("user", json!({ "kind": "text", "text": text })),
        false => ("ROLE_USER", json!({ "text": text })),
    };
    let mut message = json!({ "messageId": "m1", "role": role, "contextId": "c1", "parts": [part] });
    if method.contains('/') {
        message["kind"] = json!("message");
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } })
}

fn with_part(part: Value) -> Value {
    let mut request = sent("message/send", "hello");
    request["id"] = json!("q");
    request["params"]["message"]["parts"] = json!([part]);
    request
}

fn with_webhook(method: &str, field: &str) -> Value {
    let mut request = sent(method, "thanks");
    request["id"] = json!("q");
    request["params"]["configuration"][field] = json!({ "url": "http://127.0.0.1:1/hook" });
    request
}

fn in_context(id: &str) -> Value {
    let mut request = with_part(json!({ "kind": "text", "text": "hello" }));
    request["params"]["message"]["contextId"] = json!(id);
    request
}

fn events(stream: &str) -> Vec<Value> {
    stream.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// Returns a stream's bytes without ids and times.
async fn bytes(server: &TestServer, path: &str, body: &Value) -> String {
    let mut text = server.post(path, body, ANN).await.text;
    let runs = server.get("/v1/agent/runs", ANN).await.json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    text = text.replace(&run, "[task]").replace(&run.replace('-', ""), "[run]");
    let mut parts = text.split("\"timestamp\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let still = parts.fold(first, |shown, part| {
        let rest = part.split_once('"').map_or("", |(_, rest)| rest);
        format!("{shown}\"timestamp\":\"[time]\"{rest}")
    });
    without_ids(vec![still])
}

/// A server whose tables make two readings of a question about singers: two of them here, three there.
pub async fn two_singers() -> TestServer {
    let own = "SELECT count(*) AS n FROM concerts.singer";
    let turns = json!([{ "events": [run_sql(own)] }, { "events": [{ "text": "There are 2 singers." }] }]);
    let script = json!({ "runs": [{ "turns": turns, "repeat_last": true }] });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    for (schema, rows) in
        [("concerts", "(1, 'Ann'), (2, 'Bo')"), ("opera", "(1, 'Mirella'), (2, 'Luciano'), (3, 'Jessye')")]
    {
        server.execute(&format!("CREATE SCHEMA {schema}")).await;
        server.execute(&format!("CREATE TABLE {schema}.singer (singer_id BIGINT, name VARCHAR)")).await;
        server.execute(&format!("INSERT INTO {schema}.singer VALUES {rows}")).await;
    }
    server.engine().catalog().search().index_idle().await.unwrap();
    server
}

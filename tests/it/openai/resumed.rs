//! The model's request when a conversation continues from a call that waited: a result follows its call, in whichever
//! way the client sends it. Each case is what one of OpenAI's client libraries does.

use querent_agent::models::{ChatMessage, ChatRole};
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::{script, serve};

/// The system, the question, the call, its result.
const CALLED: [ChatRole; 4] = [ChatRole::System, ChatRole::User, ChatRole::Assistant, ChatRole::Tool];

/// The AI SDK sends the question again with each output of its tools, also within a conversation.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_question_is_not_asked_again() {
    let server = serve().await;
    let question = json!({"role": "user", "content": [{"type": "input_text", "text": "weather?"}]});
    let body = |input: Value| json!({"input": input, "conversation": "conv_weather", "tools": [weather()]});
    let paused = respond(&server, body(json!([question]))).await;
    let output = json!({"type": "function_call_output", "call_id": call_id(&paused), "output": "sunny"});
    let answer = respond(&server, body(json!([question, output]))).await;
    assert_eq!(answer["output_text"], "It is sunny.");
    assert_eq!(roles(&told(&server)), CALLED);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_beside_a_decision_follows_the_result() {
    let server = serve().await;
    let output = |call: &Value| json!({"type": "function_call_output", "call_id": call, "output": "sunny"});
    for before in [false, true] {
        let paused = respond(&server, json!({"input": "weather?", "tools": [weather()]})).await;
        let thanks = json!({"role": "user", "content": "thanks"});
        let mut input = vec![output(call_id(&paused)), thanks];
        if before {
            input.reverse();
        }
        let answer = respond(&server, json!({"input": input, "previous_response_id": paused["id"]})).await;
        assert_eq!(answer["output_text"], "You are welcome.");
        let told = told(&server);
        assert_eq!(roles(&told), [&CALLED[..], &[ChatRole::User]].concat(), "{told:?}");
        assert_eq!(told[3].content, "sunny");
    }
    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()]})).await;
    respond(&server, json!({"input": "thanks", "previous_response_id": paused["id"]})).await;
    let told = told(&server);
    assert_eq!(roles(&told), [&CALLED[..], &[ChatRole::User]].concat(), "{told:?}");
    assert!(told[3].content.contains("went on without"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_gets_the_text_of_a_result_in_blocks() {
    let server = serve().await;
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let text = json!({"type": "input_text", "text": "sunny"});
    for (output, told_as) in [
        (json!([text, image]), "sunny\n[an image, which is not shown]"),
        (json!([{"type": "day", "sky": "blue"}]), r#"[{"type":"day","sky":"blue"}]"#),
    ] {
        let paused = respond(&server, json!({"input": "weather?", "tools": [weather()]})).await;
        let output = json!({"type": "function_call_output", "call_id": call_id(&paused), "output": output});
        respond(&server, json!({"input": [output]})).await;
        assert_eq!(told(&server)[3].content, told_as);
    }
}

/// A failed call comes back as it was sent, or with an older client's string.
#[tokio::test(flavor = "multi_thread")]
async fn the_model_gets_the_error_of_a_failed_call_again() {
    let server = serve().await;
    let failed = respond(&server, json!({"input": "unknown tool"})).await["output"][0].clone();
    assert_eq!((&failed["type"], &failed["status"]), (&json!("mcp_call"), &json!("failed")));
    let mut older = failed.clone();
    older["error"] = failed["error"]["content"][0]["text"].clone();
    for call in [failed, older] {
        let input = json!([{"role": "user", "content": "unknown tool"}, call, {"role": "user", "content": "thanks"}]);
        respond(&server, json!({"input": input})).await;
        let told = told(&server);
        assert_eq!(roles(&told), [&CALLED[..], &[ChatRole::User]].concat());
        assert!(told[3].content.starts_with("unknown tool `drop_table`"), "{told:?}");
    }
}

/// The AI SDK leaves the request out of the history when nothing is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_is_not_stored_goes_on_from_the_clients_history() {
    let server = serve().await;
    let (pirate, question) =
        (json!({"role": "developer", "content": "Be a pirate."}), json!({"role": "user", "content": "create a table"}));
    for (approve, said) in [(false, "denied"), (true, "created")] {
        let paused = respond(&server, json!({"input": [pirate, question], "store": false})).await;
        let request = paused["output"].as_array().unwrap().last().unwrap();
        let id = &request["id"];
        let decision = json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve});
        let input = json!([pirate, question, decision]);
        let answer = respond(&server, json!({"input": input, "store": false})).await;
        assert_eq!(answer["output_text"], "It is made.");
        let told = told(&server);
        assert_eq!(roles(&told), CALLED, "{told:?}");
        assert!(told[0].content.contains("Be a pirate."), "{}", told[0].content);
        assert!(told[3].content.contains(said), "{told:?}");
        assert!(!told[3].content.contains("call create_table_as again"), "{told:?}");
    }
}

/// openai-agents answers a call of its own and a request for approval of one reply together, in the whole history.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_an_output_come_together_in_the_whole_history() {
    let server = serve().await;
    for store in [true, false] {
        let question = json!({"role": "user", "content": "a mixed reply"});
        let asked = json!({"input": [question], "tools": [weather()], "store": store});
        let paused = respond(&server, asked).await["output"].clone();
        let of_kind = |kind: &str| paused.as_array().unwrap().iter().find(|item| item["type"] == kind).unwrap();
        let request = &of_kind("mcp_approval_request")["id"];
        let output = json!({
            "type": "function_call_output",
            "call_id": of_kind("function_call")["call_id"],
            "output": "sunny",
        });
        let denial = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": false});
        let mut input = vec![question];
        input.extend(paused.as_array().unwrap().iter().cloned());
        for decided in [[output.clone(), denial.clone()], [denial, output]] {
            let input = [&input[..], &decided].concat();
            let body = json!({"input": input, "tools": [weather()], "store": store});
            assert_eq!(respond(&server, body).await["output_text"], "It is sunny, and kept.");
            let told = told(&server);
            assert_eq!(roles(&told), [&CALLED[..], &[ChatRole::Tool]].concat(), "{told:?}");
            assert!(told[3..].iter().any(|message| message.content == "sunny"), "{told:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_tools_that_the_choice_allows_are_offered() {
    let server = serve().await;
    let other = json!({"type": "function", "name": "get_time", "parameters": {"type": "object"}});
    let names = |entries: Value| json!({"type": "allowed_tools", "mode": "required", "tools": entries});
    let choice = names(json!([{"type": "function", "name": "get_weather"}]));
    let body = json!({"input": "weather?", "tools": [weather(), other], "tool_choice": choice});
    assert_eq!(respond(&server, body).await["output"][0]["name"], "get_weather");
    let offered = offered(&server);
    assert!(offered.contains(&"get_weather".to_owned()) && !offered.contains(&"get_time".to_owned()), "{offered:?}");
    let inner = json!({"mode": "required", "tools": [{"type": "function", "function": {"name": "get_time"}}]});
    let body = json!({
        "messages": [{"role": "user", "content": "thanks"}],
        "tools": [{"type": "function", "function": weather()}, {"type": "function", "function": other}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": inner},
    });
    let reply = server.post("/v1/chat/completions", &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Some models call what they were not offered.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_reaches_a_client_that_allows_none() {
    let server = serve().await;
    let body = json!({"input": "weather?", "tools": [weather()], "tool_choice": "none"});
    let response = respond(&server, body).await;
    let kinds: Vec<&Value> = response["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert!(!kinds.contains(&&json!("function_call")), "{response}");
    assert_eq!(response["output_text"], "It is sunny.", "{response}");
    let body = json!({
        "messages": [{"role": "user", "content": "weather?"}],
        "tools": [{"type": "function", "function": weather()}],
        "tool_choice": "none",
    });
    let completion = server.post("/v1/chat/completions", &body, Some("ann-tok")).await.json();
    let choice = &completion["choices"][0];
    assert_eq!(choice["finish_reason"], "stop", "{choice}");
    assert!(choice["message"]["tool_calls"].is_null(), "{choice}");
}

/// A call that waits for a person would end a run that only a call of the client's may end.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_before_a_forced_call() {
    let server = serve().await;
    let last = |response: &Value| response["output"].as_array().unwrap().last().unwrap()["type"].clone();
    for choice in [json!("required"), json!({"type": "function", "name": "get_weather"})] {
        let body = json!({"input": "store the sky", "tools": [weather()], "tool_choice": choice});
        let response = respond(&server, body).await;
        assert_eq!(last(&response), "function_call", "{response:#}");
        assert_eq!(response["output"][0]["status"], "failed", "{response:#}");
        let offered = offered(&server);
        assert!(offered.contains(&"run_sql".to_owned()), "{offered:?}");
        assert!(!offered.contains(&"create_table_as".to_owned()), "{offered:?}");
    }
    let paused = respond(&server, json!({"input": "store the sky", "tools": [weather()]})).await;
    assert_eq!(last(&paused), "mcp_approval_request", "{paused:#}");
}

/// Clients with types want every key of a tool, a format and an item.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_repeated_has_all_keys() {
    let server = serve().await;
    let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
    let text = json!({"format": format, "verbosity": "low"});
    let body = json!({
        "input": "structured", "tools": [{"type": "function", "name": "get_weather"}],
        "text": text, "reasoning": {"effort": "low"},
    });
    let response = respond(&server, body).await;
    let tool =
        json!({"type": "function", "name": "get_weather", "description": null, "parameters": null, "strict": null});
    assert_eq!(response["tools"][0], tool);
    assert_eq!(response["reasoning"], json!({"effort": "low", "summary": null}));
    let format = &response["text"]["format"];
    assert_eq!((&format["strict"], &format["description"]), (&json!(false), &Value::Null));
    let plain = respond(&server, json!({"input": "thanks", "text": {"verbosity": "low"}})).await;
    assert_eq!(plain["text"], json!({"verbosity": "low", "format": {"type": "text"}}));

    let items = json!({"items": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]});
    let made = server.post("/v1/conversations", &items, Some("ann-tok")).await.json();
    let path = format!("/v1/conversations/{}/items?order=asc", made["id"].as_str().unwrap());
    let listed = server.get(&path, Some("ann-tok")).await.json();
    assert_eq!(listed["data"][0]["content"], json!([{"type": "input_text", "text": "hi"}]));
    assert_eq!(listed["data"][1]["content"], json!([{"type": "output_text", "text": "hello", "annotations": []}]));
    assert!(listed["data"].as_array().unwrap().iter().all(|item| item["status"] == "completed"), "{listed}");
}

/// A run that failed is not the answer to what began it.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_is_taken_again_after_a_failure() {
    let server = serve().await;
    let thanks = json!({"role": "user", "content": "thanks"});
    for conversation in [None, Some("conv_broken")] {
        let question = json!({"input": "broken reply", "tools": [weather()], "conversation": conversation});
        let paused = respond(&server, question).await;
        let output = output_of(&paused, 0, "A");
        let body = |input: Value| match conversation {
            Some(_) => json!({"input": input, "conversation": conversation}),
            None => json!({"input": input, "previous_response_id": paused["id"]}),
        };
        for _ in 0..2 {
            let asked = server.model.requests().len();
            let failed = server.post("/v1/responses", &body(json!([output])), ANN).await;
            assert_eq!((failed.status, server.model.requests().len()), (502, asked + 1), "{}", failed.text);
            assert_eq!((roles(&told(&server)), told(&server)[3].content.as_str()), (CALLED.to_vec(), "A"));
        }
        let answer = respond(&server, body(json!([output, thanks]))).await;
        assert_eq!(answer["output_text"], "You are welcome.");
        let told = told(&server);
        assert_eq!(roles(&told), [&CALLED[..], &[ChatRole::User]].concat(), "{told:?}");
        assert_eq!(told[3].content, "A");
    }
    // What a failed run was told is not forgotten.
    let paused = respond(&server, json!({"input": "broken reply", "tools": [weather()], "conversation": "c-3"})).await;
    let body = json!({"input": [output_of(&paused, 0, "A")], "conversation": "c-3"});
    assert_eq!(server.post("/v1/responses", &body, ANN).await.status, 502);
    respond(&server, json!({"input": "thanks", "conversation": "c-3"})).await;
    assert_eq!(told(&server)[3].content, "A");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_output_begins_another_response() {
    let server = serve().await;
    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()]})).await;
    let body = |said: &str| json!({"input": [output_of(&paused, 0, said)], "previous_response_id": paused["id"]});
    let first = respond(&server, body("sunny")).await;
    let second = respond(&server, body("rain")).await;
    assert_ne!(first["id"], second["id"]);
    assert_eq!((roles(&told(&server)), told(&server)[3].content.as_str()), (CALLED.to_vec(), "rain"));
    let path = server.url(&format!("/v1/responses/{}", second["id"].as_str().unwrap()));
    let deleted = server.http.delete(path).bearer_auth("ann-tok").send().await.unwrap();
    assert_eq!(deleted.status(), 200);
    respond(&server, body("rain")).await;

    // A conversation has one line of runs.
    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()], "conversation": "c-4"})).await;
    let body = |said: &str| json!({"input": [output_of(&paused, 0, said)], "conversation": "c-4"});
    let first = respond(&server, body("sunny")).await;
    assert_eq!(respond(&server, body("sunny")).await, first);
    let other = server.post("/v1/responses", &body("rain"), ANN).await;
    assert_eq!((other.status, &other.json()["error"]["code"]), (409, &json!("already_resumed")), "{}", other.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outputs_of_all_calls_come_together() {
    let server = serve().await;
    let paused = respond(&server, json!({"input": "cities", "tools": [weather()]})).await;
    let one = json!({"input": [output_of(&paused, 0, "rain")], "previous_response_id": paused["id"]});
    let refused = server.post("/v1/responses", &one, ANN).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let error = &refused.json()["error"];
    assert!(error["message"].as_str().unwrap().starts_with("No tool output found for function call"), "{error}");
    let both = json!([output_of(&paused, 0, "rain"), output_of(&paused, 1, "sun")]);
    respond(&server, json!({"input": both, "previous_response_id": paused["id"]})).await;
    let number = json!({"type": "function_call_output", "call_id": paused["output"][0]["call_id"], "output": 7});
    let refused = server.post("/v1/responses", &json!({"input": [number]}), ANN).await;
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("input[0].output")));
}

/// The call is not executed again, and the model learns what came of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_answered_after_a_failure() {
    let server = serve().await;
    let paused = respond(&server, json!({"input": "lost table"})).await;
    let request = paused["output"].as_array().unwrap().last().unwrap();
    let decide = |approve: bool| {
        json!({"input": [
            {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve},
        ]})
    };
    for _ in 0..2 {
        let asked = server.model.requests().len();
        let failed = server.post("/v1/responses", &decide(true), ANN).await;
        assert_eq!((failed.status, server.model.requests().len()), (502, asked + 1), "{}", failed.text);
        let told = told(&server);
        assert_eq!(roles(&told), CALLED, "{told:?}");
        assert!(told[3].content.contains("created"), "{told:?}");
    }
    let denied = server.post("/v1/responses", &decide(false), ANN).await;
    assert_eq!((denied.status, &denied.json()["error"]["code"]), (409, &json!("already_resumed")), "{}", denied.text);
}

const ANN: Option<&str> = Some("ann-tok");

/// Elsewhere it would go on without the question that led to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_decided_where_it_was_made() {
    let server = serve().await;
    let asked = respond(&server, json!({"input": "create a table", "conversation": "c-7"})).await;
    let request = asked["output"].as_array().unwrap().last().unwrap().clone();
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()]})).await;
    let output = output_of(&paused, 0, "sunny");
    let other = respond(&server, json!({"input": "thanks"})).await;
    for body in [
        json!({"input": [approval], "conversation": "c-8"}),
        json!({"input": [approval], "previous_response_id": other["id"]}),
        json!({"input": [output], "previous_response_id": other["id"]}),
        json!({"input": [output], "conversation": "c-8"}),
    ] {
        let reply = server.post("/v1/responses", &body, Some("ann-tok")).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("unknown_call")), "{}", reply.text);
    }
    let made = respond(&server, json!({"input": [approval], "conversation": "c-7"})).await;
    assert_eq!(made["output_text"], "It is made.");
    let answer = respond(&server, json!({"input": [output], "previous_response_id": paused["id"]})).await;
    assert_eq!(answer["output_text"], "It is sunny.");
    // What was decided elsewhere may be told.
    let thanks = json!({"role": "user", "content": "thanks"});
    let told = respond(&server, json!({"input": [approval, thanks], "conversation": "c-8"})).await;
    assert_eq!(told["output_text"], "You are welcome.");
}

/// An administrator would execute the call with other rights than those of whom the model worked for.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_decides_no_call_of_others() {
    let settings = TestSettings::default().tokens("ann-tok:write:ann,root-tok:admin:root").script(script());
    let server = TestServer::start(settings.change(|settings| settings.agent.write_tools = true)).await;
    let paused = respond(&server, json!({"input": "create a table"})).await;
    let request = &paused["output"].as_array().unwrap().last().unwrap()["id"];
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    for (body, code) in [
        (json!({"input": [approval]}), "unknown_call"),
        (json!({"input": [approval], "previous_response_id": paused["id"]}), "previous_response_not_found"),
        (json!({"input": "thanks", "previous_response_id": paused["id"]}), "previous_response_not_found"),
    ] {
        let refused = server.post("/v1/responses", &body, Some("root-tok")).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{}", refused.text);
    }
    let path = format!("/v1/responses/{}", paused["id"].as_str().unwrap());
    assert_eq!(server.get(&path, Some("root-tok")).await.status, 200);
    assert_eq!(respond(&server, json!({"input": [approval]})).await["output_text"], "It is made.");
}

/// Its responses stay, and what they wait for; a conversation that is begun under the same name has none of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_outlives_its_conversation() {
    let server = serve().await;
    let paused = respond(&server, json!({"input": "create a table", "conversation": "c-9"})).await;
    let request = &paused["output"].as_array().unwrap().last().unwrap()["id"];
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    let deleted = server.send(server.http.delete(server.url("/v1/conversations/c-9")), ANN).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
    let body = json!({"input": [approval], "conversation": "c-9"});
    let refused = server.post("/v1/responses", &body, ANN).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("unknown_call")), "{}", refused.text);
    let body = json!({"input": [approval], "previous_response_id": paused["id"]});
    assert_eq!(respond(&server, body).await["output_text"], "It is made.");
    assert_eq!(roles(&told(&server)), CALLED);
}

/// A client whose connection broke does not know that its second attempt went well.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_whose_run_failed_once_is_answered_with_the_run_that_did_not() {
    let server = serve().await;
    let body = |input: Value| json!({"input": input, "conversation": "c-retried", "tools": [weather()]});
    let paused = respond(&server, body(json!("broken reply"))).await;
    let output = output_of(&paused, 0, "sunny");
    let failed = server.post("/v1/responses", &body(json!([output])), Some("ann-tok")).await;
    assert_eq!(failed.status, 502, "{}", failed.text);
    let thanks = json!({"role": "user", "content": "thanks"});
    let answer = respond(&server, body(json!([output, thanks]))).await;
    assert_eq!(answer["output_text"], "You are welcome.");
    let again = respond(&server, body(json!([output]))).await;
    assert_eq!(again["id"], answer["id"]);
    let other = output_of(&paused, 0, "rain");
    let refused = server.post("/v1/responses", &body(json!([other])), Some("ann-tok")).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}

/// Which of the two counts is not to be guessed, and neither was sent before.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_decided_twice_in_one_request_waits_on() {
    let server = serve().await;
    let paused = respond(&server, json!({"input": "create a table"})).await;
    let asked =
        paused["output"].as_array().unwrap().iter().find(|item| item["type"] == "mcp_approval_request").unwrap();
    let decide = |approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": approve});
    let body = |decisions: Value| json!({"input": decisions, "previous_response_id": paused["id"]});
    let twice = server.post("/v1/responses", &body(json!([decide(true), decide(false)])), Some("ann-tok")).await;
    assert_eq!(twice.status, 400, "{}", twice.text);
    assert!(twice.text.contains("decided twice"), "{}", twice.text);
    let made = respond(&server, body(json!([decide(true)]))).await;
    assert_eq!(made["output_text"], "It is made.");
}

/// A call that waits is not there any more once its item is deleted, nor is the question to a person.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_call_whose_item_is_deleted_is_not_told() {
    let server = serve().await;
    for (conversation, question, kind) in
        [("c-deleted", "weather?", "function_call"), ("c-unasked", "create a table", "mcp_approval_request")]
    {
        let body = |input: Value| json!({"input": input, "conversation": conversation, "tools": [weather()]});
        let paused = respond(&server, body(json!(question))).await;
        let asked = paused["output"].as_array().unwrap().iter().find(|item| item["type"] == kind).unwrap();
        let item = format!("/v1/conversations/{conversation}/items/{}", asked["id"].as_str().unwrap());
        let deleted = server.send(server.http.delete(server.url(&item)), Some("ann-tok")).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text);
        let answer = respond(&server, body(json!("thanks"))).await;
        assert_eq!(answer["output_text"], "You are welcome.");
        let told = told(&server);
        assert_eq!(told.iter().filter(|message| message.role == ChatRole::User).count(), 2, "{told:?}");
        let is_of_call = |message: &ChatMessage| !message.tool_calls.is_empty() || message.role == ChatRole::Tool;
        assert!(!told.iter().any(is_of_call), "{kind}: {told:?}");
        // It is given up, whatever comes later.
        let late = match kind {
            "function_call" => output_of(&json!({"output": [asked]}), 0, "sunny"),
            _ => json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true}),
        };
        let reply = server.post("/v1/responses", &body(json!([late])), Some("ann-tok")).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (409, &json!("already_resumed")), "{}", reply.text);
    }
}

fn output_of(response: &Value, at: usize, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": response["output"][at]["call_id"], "output": output})
}

fn weather() -> Value {
    json!({"type": "function", "name": "get_weather", "parameters": {"type": "object"}})
}

async fn respond(server: &TestServer, body: Value) -> Value {
    let reply = server.post("/v1/responses", &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.text);
    reply.json()
}

fn call_id(response: &Value) -> &Value {
    &response["output"][0]["call_id"]
}

fn told(server: &TestServer) -> Vec<ChatMessage> {
    server.model.requests().last().unwrap().messages.clone()
}

fn roles(messages: &[ChatMessage]) -> Vec<ChatRole> {
    messages.iter().map(|message| message.role).collect()
}

fn offered(server: &TestServer) -> Vec<String> {
    server.model.requests().last().unwrap().tools.iter().map(|tool| tool.name.clone()).collect()
}

/// A client that waited too long sends its decision again, while the first is being read.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_is_sent_twice_at_once_begins_one_response() {
    let server = serve().await;
    let path = "/v1/responses";
    let paused = server.post(path, &json!({"input": "create a table"}), Some("ann-tok")).await.json();
    let items = paused["output"].as_array().unwrap();
    let asked = items.iter().find(|item| item["type"] == "mcp_approval_request").unwrap();
    let decision = json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true});
    let body = json!({"previous_response_id": paused["id"], "input": [decision]});
    let told = futures::future::join_all((0..5).map(|_| server.post(path, &body, Some("ann-tok")))).await;
    for reply in &told {
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(reply.json()["id"], told[0].json()["id"], "{}", reply.text);
    }
}

/// As with OpenAI: what is added to a conversation is as good as what a request brings.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_that_are_added_to_a_conversation_count() {
    let server = serve().await;
    let add = async |conversation: &str, items: Value| {
        let path = format!("/v1/conversations/{conversation}/items");
        let added = server.post(&path, &json!({"items": items}), ANN).await;
        assert_eq!(added.status, 200, "{}", added.text);
    };
    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()], "conversation": "c-5"})).await;
    add("c-5", json!([output_of(&paused, 0, "sunny"), {"role": "user", "content": "be brief"}])).await;
    respond(&server, json!({"input": "thanks", "conversation": "c-5"})).await;
    let of_output = told(&server);
    assert_eq!(roles(&of_output), [&CALLED[..], &[ChatRole::User; 2]].concat(), "{of_output:?}");
    assert_eq!((of_output[3].content.as_str(), of_output[4].content.as_str()), ("sunny", "be brief"));

    let paused = respond(&server, json!({"input": "create a table", "conversation": "c-6"})).await;
    let request = &paused["output"].as_array().unwrap().last().unwrap()["id"];
    add("c-6", json!([{"type": "mcp_approval_response", "approval_request_id": request, "approve": true}])).await;
    respond(&server, json!({"input": "thanks", "conversation": "c-6"})).await;
    let of_approval = told(&server);
    assert_eq!(roles(&of_approval), [&CALLED[..], &[ChatRole::User]].concat(), "{of_approval:?}");
    assert!(of_approval[3].content.contains("created"), "{of_approval:?}");
}

/// Only the end of its run was not stored any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waited_when_its_server_was_killed_is_decided_afterwards() {
    let server = serve().await;
    let store = rusqlite::Connection::open(server.data().join("catalog.sqlite")).unwrap();
    store.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    for is_added in [false, true] {
        let conversation = format!("killed-{is_added}");
        let paused = respond(&server, json!({"input": "create a table", "conversation": conversation})).await;
        let request = &paused["output"].as_array().unwrap().last().unwrap()["id"];
        let reopen = "UPDATE querent_run SET status = 'running', finished_at = NULL WHERE status = 'paused'";
        assert_eq!(store.execute(reopen, []).unwrap(), 1);
        assert_eq!(server.agent().end_interrupted_runs().await.unwrap().ended, 1);
        let decision = json!([{"type": "mcp_approval_response", "approval_request_id": request, "approve": true}]);
        let input = if is_added {
            let path = format!("/v1/conversations/{conversation}/items");
            let added = server.post(&path, &json!({"items": decision}), ANN).await;
            assert_eq!(added.status, 200, "{}", added.text);
            json!("thanks")
        } else {
            decision
        };
        respond(&server, json!({"input": input, "conversation": conversation})).await;
        let told = told(&server);
        assert!(told[3].content.contains("created"), "{is_added}: {told:?}");
        server.execute("DROP TABLE busy").await;
    }
}

/// As with OpenAI, whose `input` may be missing where a conversation is named.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_added_to_a_conversation_is_asked_without_input() {
    let server = serve().await;
    let items = json!({"items": [{"role": "user", "content": "thanks"}]});
    let conversation = server.post("/v1/conversations", &items, ANN).await.json()["id"].clone();
    let answer = respond(&server, json!({"conversation": conversation})).await;
    assert_eq!(answer["output_text"], "You are welcome.");
    assert_eq!(roles(&told(&server)), [ChatRole::System, ChatRole::User]);
    // It is listed once.
    let id = conversation.as_str().unwrap();
    let turns = server.get(&format!("/v1/agent/sessions/{id}/turns"), ANN).await.json();
    let said: Vec<&Value> = turns["turns"].as_array().unwrap().iter().map(|turn| &turn["content"]).collect();
    assert_eq!(said, ["thanks", "You are welcome."]);
    for body in [json!({"conversation": conversation}), json!({"previous_response_id": answer["id"], "input": []})] {
        let refused = server.post("/v1/responses", &body, ANN).await;
        let code = &refused.json()["error"]["code"];
        assert_eq!((refused.status, code), (400, &json!("missing_required_parameter")), "{}", refused.text);
    }

    let paused = respond(&server, json!({"input": "weather?", "tools": [weather()], "conversation": "c-7"})).await;
    let output = json!({"items": [output_of(&paused, 0, "sunny")]});
    assert_eq!(server.post("/v1/conversations/c-7/items", &output, ANN).await.status, 200);
    assert_eq!(respond(&server, json!({"conversation": "c-7"})).await["output_text"], "It is sunny.");
    assert_eq!(roles(&told(&server)), CALLED);
}

/// It is a question like any other, in every protocol.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_instead_of_a_decision_is_listed() {
    let server = serve().await;
    respond(&server, json!({"input": "create a table", "conversation": "c-8"})).await;
    respond(&server, json!({"input": "thanks", "conversation": "c-8"})).await;
    let session = json!({"SessionId": "c-8"});
    let listed = server.post("/agentengine/api/v1/ListSessionMessages", &session, ANN).await.json();
    let messages = listed["Data"]["Messages"].as_array().unwrap();
    let asked: Vec<&Value> =
        messages.iter().filter(|message| message["Role"] == "user").map(|message| &message["Content"]).collect();
    assert_eq!(asked, ["create a table", "thanks"], "{listed:#}");
}

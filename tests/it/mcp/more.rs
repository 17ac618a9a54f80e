//! What MCP has beside tools that query: the agent as a tool with its progress, prompts, schemas of results; and bad lines on
//! standard input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use querent_tests::script::run_sql;
use querent_tests::{Python, TestServer, TestSettings, querent_binary, read_until, run_client};
use serde_json::{Value, json};

use super::{called, post, send};
use crate::openai::agents::two_singers;

async fn serve() -> TestServer {
    let script = json!({ "runs": [
        { "when": "broken", "turns": [{ "events": [{ "error": "out of memory" }] }] },
        { "when": "endless", "turns": [{ "events": ["hang"] }] },
        { "turns": [{ "events": [run_sql("SELECT 42 AS n")] }, { "events": [{ "text": "It is 42." }] }] },
    ] });
    TestServer::start(TestSettings::default().script(script)).await
}

#[tokio::test]
async fn the_agent_is_a_tool_that_tells_its_progress() {
    let server = serve().await;
    let params = json!({
        "name": "ask", "arguments": { "question": "how many?" }, "_meta": { "progressToken": "p1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let reply = send(&server, &body.to_string(), &[]).await;
    let messages: Vec<Value> =
        reply.text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()).collect();
    let (answer, progress) = messages.split_last().unwrap_or_else(|| panic!("{}", reply.text));
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{}", reply.text);
    let structured = &result["structuredContent"];
    assert_eq!((&structured["answer"], &structured["sql"]), (&json!("It is 42."), &json!("SELECT 42 AS n")));
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("It is 42."), "{result}");
    assert!(!progress.is_empty(), "{}", reply.text);
    for (index, report) in progress.iter().enumerate() {
        assert_eq!(report["method"], "notifications/progress", "{report}");
        assert_eq!(
            (&report["params"]["progressToken"], &report["params"]["progress"]),
            (&json!("p1"), &json!((index + 1) as f64))
        );
        assert!(report["params"]["message"].is_string(), "{report}");
    }
    let call =
        async |arguments: Value| called(&server, "tools/call", json!({ "name": "ask", "arguments": arguments })).await;
    for (arguments, said) in [
        (json!({ "question": "broken" }), "out of memory"),
        (json!({}), "question must be non-empty"),
        (json!({ "question": "x", "colour": "red" }), "colour"),
    ] {
        let result = call(arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(said), "{result}");
        assert!(result["structuredContent"]["error"]["code"].is_string(), "{result}");
    }
}

#[tokio::test]
async fn schemas_are_plain_and_results_have_them() {
    let server = serve().await;
    let listed = called(&server, "tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert!(!tool.to_string().contains("\"type\":["), "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
}

#[tokio::test]
async fn arguments_are_held_to_their_schemas() {
    let server = serve().await;
    let call = async |arguments: Value| {
        called(&server, "tools/call", json!({ "name": "run_sql", "arguments": arguments })).await
    };
    for (name, value) in [("max_rows", json!(0)), ("max_rows", json!(-1)), ("bogus", json!(1)), ("chart", json!(7))] {
        let refused = call(json!({ "sql": "SELECT 1 AS a", name: value })).await;
        assert_eq!(refused["structuredContent"]["error"]["code"], "invalid_arguments", "{name}: {refused}");
        assert!(refused.to_string().contains(&format!("`{name}`")), "{refused}");
    }
    assert_eq!(call(json!({ "query": "SELECT 1 AS a", "max_rows": 1 })).await["isError"], false);
    let both = call(json!({ "sql": "SELECT 1 AS a", "query": "SELECT 2 AS a" })).await;
    assert_eq!(both["structuredContent"]["error"]["code"], "invalid_arguments", "{both}");
    assert!(both.to_string().contains("`sql` and `query`"), "{both}");
    let two = json!({ "name": "describe_table", "arguments": { "table": "a.t", "database": "b" } });
    let two = called(&server, "tools/call", two).await;
    assert!(two["isError"] == true && two.to_string().contains("`b`"), "{two}");
}

#[tokio::test]
async fn what_is_not_there_says_so() {
    let server = serve().await;
    let error = async |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        send(&server, &body, &[]).await.text
    };
    let cursor = error("tools/list", json!({ "cursor": "x" })).await;
    assert!(cursor.contains("-32602"), "{cursor}");
    let subscribed = error("resources/subscribe", json!({ "uri": "querent://schema/default" })).await;
    assert!(subscribed.contains("is not supported here"), "{subscribed}");
    let argument = json!({ "name": "question", "value": "x" });
    let prompt = json!({ "ref": { "type": "ref/prompt", "name": "ask" }, "argument": argument });
    let completed = called(&server, "completion/complete", prompt).await;
    assert_eq!(completed["completion"]["values"], json!([]), "{completed}");
    let unnamed = send(&server, r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, &[]).await;
    assert_eq!((unnamed.status, &unnamed.json()["id"]), (400, &Value::Null), "{}", unnamed.text);
    assert!(unnamed.text.contains("\"id\":null"), "{}", unnamed.text);
    let unread = error("resources/read", json!({ "uri": "querent://schema/nowhere" })).await;
    assert!(unread.contains("\"uri\":\"querent://schema/nowhere\""), "{unread}");
}

#[tokio::test]
async fn a_name_that_tables_share_is_proposed_once() {
    let server = serve().await;
    server.execute("CREATE DATABASE sales").await;
    for table in ["orders", "sales.orders", "sales.offers"] {
        server.execute(&format!("CREATE TABLE {table} AS SELECT 1 AS id")).await;
    }
    let template = json!({ "type": "ref/resource", "uri": "querent://schema/{database}/{table}" });
    let params = json!({ "ref": template, "argument": { "name": "table", "value": "o" } });
    let proposed = called(&server, "completion/complete", params).await["completion"]["values"].clone();
    let mut proposed: Vec<&str> = proposed.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    proposed.sort_unstable();
    assert_eq!(proposed, ["offers", "orders"]);
}

/// What the revision 2026-07-28 has removed is no method of a client that speaks it.
#[tokio::test]
async fn methods_of_older_revisions_are_none_of_the_newest() {
    let server = serve().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (method, level) in [
        ("initialize", Value::Null),
        ("logging/setLevel", Value::Null),
        ("logging/setLevel", json!("info")),
        ("ping", Value::Null),
        ("resources/subscribe", Value::Null),
        ("nothing", Value::Null),
    ] {
        let params = json!({ "_meta": meta, "level": level });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        let reply = send(&server, &body, &headers).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!(-32_601)), "{method}: {}", reply.text);
    }
}

#[tokio::test]
async fn prompts_ask_and_show_verified_queries() {
    let server = serve().await;
    let verified = json!({ "question": "How many orders are there?", "sql": "SELECT 1 AS orders" });
    let kept = server.post("/v1/catalog/verified-queries", &verified, None).await;
    assert!(kept.status < 300, "{} {}", kept.status, kept.text);
    let listed = called(&server, "prompts/list", json!({})).await;
    let prompts = listed["prompts"].as_array().unwrap();
    assert_eq!((&prompts[0]["name"], prompts.len()), (&json!("ask"), 2), "{listed}");
    assert_eq!(prompts[1]["title"], "How many orders are there?", "{listed}");
    let get = async |params: Value| called(&server, "prompts/get", params).await.to_string();
    let ask = get(json!({ "name": "ask", "arguments": { "question": "who flies most?" } })).await;
    assert!(ask.contains("who flies most?") && ask.contains("run_sql"), "{ask}");
    let shown = get(json!({ "name": prompts[1]["name"] })).await;
    assert!(shown.contains("SELECT 1 AS orders"), "{shown}");
    for params in [
        json!({ "name": "ask" }),
        json!({ "name": "ask", "arguments": { "question": "who flies most?", "zzz": "1" } }),
        json!({ "name": prompts[1]["name"], "arguments": { "zzz": "1" } }),
        json!({ "name": "verified_query_999" }),
        json!({ "name": "nothing" }),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params }).to_string();
        let refused = send(&server, &body, &[]).await;
        assert!(refused.text.contains("-32602"), "{}", refused.text);
    }
}

/// A client that reads one page sees tables.
#[tokio::test]
async fn the_first_page_of_resources_has_tables() {
    let server = serve().await;
    server.seed_otel_logs().await;
    let page = called(&server, "resources/list", json!({})).await.to_string();
    assert!(page.contains("querent://schema/default/otel_logs"), "{page}");
}

/// Lines that are no messages are answered with errors, and those after them are passed on.
#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_on_standard_input_do_not_end_the_program() {
    let server = serve().await;
    let mut program = Command::new(querent_binary())
        .args(["mcp", "--server", &server.url("")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    let output = program.stdout.take().unwrap();
    let talk = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(output).lines();
        let mut tell = |line: &[u8]| -> Value {
            input.write_all(line).unwrap();
            input.write_all(b"\n").unwrap();
            input.flush().unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        assert_eq!(tell(b"{not json")["error"]["code"], -32_700);
        assert_eq!(tell(b"\xff\xfe")["error"]["code"], -32_700);
        assert_eq!(tell(&vec![b'x'; (16 << 20) + 1])["error"]["code"], -32_700);
        let list = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {} }).to_string();
        let listed = tell(list.as_bytes());
        assert_eq!(listed["id"], 5, "{listed}");
        assert!(listed["result"]["tools"].is_array(), "{listed}");
        drop(input);
        program.wait().unwrap()
    });
    assert!(talk.await.unwrap().success());
}

/// Messages that are piped in have their end behind them.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_answered_after_the_end_of_the_input_is_told() {
    let server = serve().await;
    let mut program = Command::new(querent_binary())
        .args(["mcp", "--server", &server.url("")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    let talk = tokio::task::spawn_blocking(move || {
        let params = json!({ "name": "ask", "arguments": { "question": "endless" } });
        let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
        // As a program of Windows begins its text.
        write!(input, "\u{feff}{call}\n{ping}\n").unwrap();
        drop(input);
        let output = program.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    });
    let mut answers: Vec<Value> = talk.await.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = answers.pop().unwrap();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("a"), &json!(-32_000)), "{last}");
    assert_eq!(answers, [json!({ "jsonrpc": "2.0", "id": 2, "result": {} })]);
}

/// The protocol library would pass over some of these, and begin the list anew for the cursor.
#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_are_refused_on_a_data_folder_too() {
    let data = serve().await.stop().await;
    let mut program = Command::new(querent_binary())
        .args(["mcp", "--data", data.path().to_str().unwrap()])
        .env("QUERENT_EMBED_PROVIDER", "none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    let output = program.stdout.take().unwrap();
    let talk = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(output).lines();
        let mut tell = |line: &[u8]| -> Value {
            input.write_all(line).unwrap();
            input.write_all(b"\n").unwrap();
            input.flush().unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        let client = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
        assert!(tell(begin.as_bytes())["result"].is_object());
        for (line, id, code) in [
            (&b"{not json"[..], json!(null), -32_700),
            (b"\xff\xfe", json!(null), -32_700),
            (br#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}"#, json!(null), -32_700),
            (br#"{"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": 1}}"#, json!(3), -32_602),
            (
                br#"{"jsonrpc": "2.0", "id": 4, "method": "resources/list", "params": {"cursor": {}}}"#,
                json!(4),
                -32_602,
            ),
            (b"[]", json!(null), -32_600),
        ] {
            let refused = tell(line);
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&id, &json!(code)), "{refused}");
        }
        assert_eq!(tell(&vec![b'x'; (16 << 20) + 1])["error"]["code"], -32_700);
        assert_eq!(tell(br#"{"jsonrpc": "2.0", "id": 5, "method": "ping"}"#)["id"], 5);
        drop(input);
        program.wait().unwrap()
    });
    assert!(talk.await.unwrap().success());
}

/// `logging/setLevel` holds for its session, the `_meta` of the newest revision for its request.
#[tokio::test]
async fn messages_of_the_log_come_to_those_who_ask() {
    let server = serve().await;
    let session = super::begin(&server, "any").await;
    let in_session = [("mcp-session-id", session.as_str())];
    let call = |sql: &str, meta: Value| {
        let params = json!({ "name": "run_sql", "arguments": { "sql": sql }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
    };
    let said = async |body: String, headers: &[(&'static str, &str)]| {
        let text = send(&server, &body, headers).await.text;
        let frames = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
        let frames: Vec<Value> = frames.collect();
        let messages = frames.into_iter().filter(|frame| frame["method"] == "notifications/message");
        messages.map(|message| message["params"].clone()).collect::<Vec<Value>>()
    };
    let set = |level: &str| {
        json!({ "jsonrpc": "2.0", "id": 8, "method": "logging/setLevel", "params": { "level": level } }).to_string()
    };
    assert_eq!(said(call("SELECT 1 AS a", json!({})), &in_session).await, [] as [Value; 0]);
    let answered = send(&server, &set("debug"), &in_session).await;
    assert!(answered.status == 200 && answered.text.contains("\"result\":{}"), "{}", answered.text);
    let messages = said(call("SELECT 1 AS a", json!({})), &in_session).await;
    let levels: Vec<&Value> = messages.iter().map(|message| &message["level"]).collect();
    assert_eq!(levels, ["debug", "info"], "{messages:?}");
    assert_eq!((&messages[1]["logger"], &messages[1]["data"]["row_count"]), (&json!("querent"), &json!(1)));
    send(&server, &set("error"), &in_session).await;
    assert!(said(call("SELECT 1 AS a", json!({})), &in_session).await.is_empty());
    let messages = said(call("SELECT nope", json!({})), &in_session).await;
    assert_eq!((&messages[0]["level"], &messages[0]["data"]["code"]), (&json!("error"), &json!("column_not_found")));

    let once = json!({ "io.modelcontextprotocol/logLevel": "info" });
    assert_eq!(said(call("SELECT 1 AS a", once), &[]).await.len(), 1);
    for (body, headers, why) in [
        (set("debug"), [("x-database", "default")], "begin one with `initialize`"),
        (set("loud"), in_session, "-32602"),
    ] {
        let refused = send(&server, &body, &headers).await;
        assert!(refused.text.contains(why), "{}", refused.text);
    }
}

/// A choice is of the question that asked for it, or an error; never an answer as if nobody had chosen.
#[tokio::test(flavor = "multi_thread")]
async fn a_choice_comes_with_the_state_of_its_question() {
    let server = two_singers().await;
    let ask = async |more: Value| -> Value {
        let mut params = json!({
            "name": "ask",
            "arguments": { "question": "How many singers are there?" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            },
        });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "ask")];
        let reply = send(&server, &body.to_string(), &headers).await;
        let messages: Vec<&str> = reply.text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        serde_json::from_str(messages.last().copied().unwrap_or(&reply.text)).unwrap()
    };
    let answered = |said: Value, state: &str| json!({ "inputResponses": { "reading": said }, "requestState": state });
    let chosen = json!({ "action": "accept", "content": { "reading": "2" } });
    let asked = ask(json!({})).await["result"].clone();
    let state = asked["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    for (more, why) in [
        (json!({ "inputResponses": { "reading": chosen } }), "requestState"),
        (answered(chosen.clone(), "mcp_0000"), "requestState"),
        (answered(chosen.clone(), "somebody's"), "requestState"),
        (answered(json!(12345), state), "inputResponses.reading"),
        (answered(json!({ "action": "perhaps" }), state), "inputResponses.reading"),
    ] {
        let refused = ask(more.clone()).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["code"]),
            (&json!(-32602), &json!("invalid_request"))
        );
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{more}: {refused}");
    }
    let again = ask(json!({ "inputResponses": { "colour": chosen } })).await;
    assert_eq!(again["result"]["resultType"], "input_required", "what it asked for did not come: {again}");
    let done = ask(answered(chosen, state)).await;
    assert!(done["result"]["structuredContent"]["sql"].as_str().unwrap().contains("opera"), "{done}");
}

/// The revisions before 2026-07-28 ask within the call, and what is answered is a message of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_a_session_is_asked_within_its_call() {
    let server = two_singers().await;
    let begin = async |capabilities: Value| -> String {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        send(&server, &body.to_string(), &[]).await.header("mcp-session-id").to_owned()
    };
    let params = json!({ "name": "ask", "arguments": { "question": "How many singers are there?" } });
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    for (said, table) in [
        (json!({ "result": { "action": "accept", "content": { "reading": "2" } } }), "opera.singer"),
        (json!({ "result": { "action": "decline" } }), "concerts.singer"),
        (json!({ "error": { "code": -32_601, "message": "there are no forms" } }), "concerts.singer"),
    ] {
        let session = begin(json!({ "elicitation": { "form": {} } })).await;
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        let mut call = post(&server.http, &server, &ask, &headers).send().await.unwrap();
        let read = read_until(&mut call, "elicitation/create").await;
        let asked =
            read.lines().find(|line| line.contains("elicitation/create")).and_then(|line| line.strip_prefix("data: "));
        let asked: Value = serde_json::from_str(asked.unwrap()).unwrap();
        assert!(asked["params"]["message"].as_str().unwrap().contains("Which one?"), "{asked}");
        assert_eq!(asked["params"]["requestedSchema"]["properties"]["reading"]["enum"], json!(["1", "2"]), "{asked}");

        let mut answer = said;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = asked["id"].clone();
        assert_eq!(send(&server, &answer.to_string(), &headers).await.status, 202);
        let rest = call.text().await.unwrap();
        let answered = rest.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
        let answered: Value = serde_json::from_str(answered).unwrap();
        let sql = answered["result"]["structuredContent"]["sql"].as_str().unwrap_or_else(|| panic!("{answered}"));
        assert!(sql.contains(table), "{sql}");
    }
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let session = begin(capabilities).await;
        let told = send(&server, &ask, &[("mcp-session-id", &session)]).await;
        assert!(told.text.contains("Which one?") && !told.text.contains("elicitation/create"), "{}", told.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_asks_its_user_which_reading_is_meant() {
    let server = two_singers().await;
    let mut client = Python::client("mcp_elicitation.py");
    client.arg(server.url(""));
    run_client(client).await;
}

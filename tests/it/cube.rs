//! Cube's chat API as its clients see it: lines, threads, users, and how bad requests are refused.

mod refusals;
mod threads;
mod users;

use std::time::Duration;

use querent_tests::script::{run_sql, says, tool_call};
use querent_tests::{HttpReply, NodeJs, Python, TestServer, TestSettings, run_client};
use serde_json::{Value, json};

const STREAM: &str = "/api/v1/public/acme/agents/1/chat/stream-chat-state";
const ABORT: &str = "/api/v1/public/acme/agents/1/chat/abort";

#[tokio::test]
async fn a_plain_answer() {
    let server = started().await;
    let reply = say(&server, json!({ "input": "plain", "messageId": "1717500000000-message" })).await;
    assert_eq!(reply.header("content-type"), "application/json");
    insta::assert_snapshot!("plain", transcript(&reply));
    let lines = reply.lines();
    let pieces: String = lines
        .iter()
        .filter(|line| line["isDelta"] == true)
        .map(|line| line["content"].as_str().expect("a piece has content"))
        .collect();
    assert_eq!(pieces, "Hello there.");
    let last = lines.iter().rfind(|line| line["graphPath"][0] == "final").unwrap();
    assert_eq!(last["content"], "Hello there.");
}

#[tokio::test]
async fn tools_have_cubes_names_and_texts_of_json() {
    let server = started().await;
    insta::assert_snapshot!("tools", transcript(&say(&server, json!({ "input": "tools" })).await));
    insta::assert_snapshot!("parallel_tools", transcript(&say(&server, json!({ "input": "parallel" })).await));
    insta::assert_snapshot!("tool_error", transcript(&say(&server, json!({ "input": "nowhere" })).await));
    let drawn = say(&server, json!({ "input": "chart" })).await;
    insta::assert_snapshot!("chart", transcript(&drawn));
    let result = result_of(&drawn, "cubeSqlApi");
    let spec: Value = serde_json::from_str(result["vegaSpec"].as_str().unwrap()).unwrap();
    assert_eq!(spec["data"].get("values"), None, "the rows stand beside it: {spec}");
}

/// The protocol cannot ask a person: a call that would wait is refused.
#[tokio::test]
async fn what_writes_is_refused() {
    let settings = TestSettings::default().script(script());
    let server = TestServer::start(settings.change(|settings| settings.agent.write_tools = true)).await;
    insta::assert_snapshot!("approval", transcript(&say(&server, json!({ "input": "keep" })).await));
    let tables = server.get("/v1/catalog/schema", None).await;
    assert!(!tables.text.contains("kept"), "{}", tables.text);
}

#[tokio::test]
async fn results_say_how_many_rows_there_are() {
    let server = started().await;
    let reply = say(&server, json!({ "input": "many" })).await;
    let result = result_of(&reply, "cubeSqlApi");
    assert_eq!(result["totalRows"], 5_000, "{result}");
    assert!(result.get("totalRowsIsLowerBound").is_none());
    assert_eq!(result["data"].as_array().unwrap().len(), 100);
    assert_eq!(result["data"][0], json!(["1"]));
    assert_eq!(result["schema"], json!([{ "name": "value", "column_type": "Int64", "columnType": "number" }]));
    assert_eq!(result["annotation"]["measures"]["value"], json!({ "title": "Value", "type": "number" }));
    let query = json!({ "sql": result["sqlQuery"] });
    let whole = server.post("/v1/query", &query, None).await;
    assert_eq!(whole.status, 200, "it runs as it is: {}", whole.text);
}

#[tokio::test]
async fn the_shown_query_runs_by_itself_wherever_the_model_ran_it() {
    let query = "WITH won AS (SELECT deals.id, amount FROM deals JOIN stages ON deals.stage = stages.id)\n\
                 SELECT count(won.id) AS n, sum(won.amount), (SELECT max(deals.id) FROM deals) AS last\n\
                 FROM won, generate_series(1, 2) AS twice(v) -- both\n";
    let elsewhere = json!({ "sql": query, "database": "crm" });
    let turns = json!([
        { "events": [tool_call("run_sql", elsewhere), run_sql("SELECT  1")] },
        { "events": [{ "text": "Two." }] },
    ]);
    let server = TestServer::start(TestSettings::default().script(json!({ "runs": [{ "turns": turns }] }))).await;
    server.execute("CREATE DATABASE crm").await;
    server.execute("CREATE TABLE crm.deals AS SELECT 7 AS id, 2.5 AS amount, 1 AS stage").await;
    server.execute("CREATE TABLE crm.stages AS SELECT 1 AS id").await;
    let reply = say(&server, json!({ "input": "how many?" })).await;
    let result = result_of(&reply, "cubeSqlApi");
    let shown = result["sqlQuery"].as_str().unwrap();
    assert_eq!(result["data"], json!([["2", "5.0", "7"]]), "{result}");
    let whole = server.post("/v1/query", &json!({ "sql": shown }), None).await;
    assert_eq!(whole.status, 200, "{shown}: {}", whole.text);
    let row = &whole.lines()[0];
    for (column, value) in result["schema"].as_array().unwrap().iter().zip(["2", "5.0", "7"]) {
        let name = column["name"].as_str().unwrap();
        assert_eq!(row[name].to_string().trim_matches('"'), value, "{name} in {row}");
    }
    // What needs no database is shown as the model wrote it.
    let inputs: Vec<Value> = reply
        .lines()
        .iter()
        .filter(|line| line["toolCall"]["result"].is_string())
        .map(|line| serde_json::from_str(line["toolCall"]["input"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(inputs[1]["sqlQuery"], "SELECT  1");
    assert_eq!(inputs[0]["query"], inputs[0]["sqlQuery"]);
}

#[tokio::test]
async fn tables_are_cubes() {
    let server = started().await;
    server.execute("CREATE TABLE deals AS SELECT 1 AS deal_id, 2.5 AS amount, 'Won' AS stage").await;
    let result = result_of(&say(&server, json!({ "input": "describe" })).await, "cubeMeta");
    assert_eq!(result["searchQuery"], "deals");
    let cube = &result["cubes"][0];
    assert_eq!((&cube["name"], &cube["title"]), (&json!("deals"), &json!("Deals")), "{cube}");
    assert_eq!(cube["measures"], json!(["deals.amount"]), "{cube}");
    let types: Vec<&Value> = cube["members"].as_array().unwrap().iter().map(|member| &member["type"]).collect();
    assert_eq!(types, ["number", "number", "string"], "{cube}");
}

#[tokio::test]
async fn thoughts_are_shown_to_developers() {
    let server = started().await;
    let quiet = say(&server, json!({ "input": "think" })).await;
    assert!(!quiet.text.contains("hm"), "{}", quiet.text);
    let chat = json!({ "input": "think", "chatId": "c", "messageId": "1717500000000-message", "isDevMode": true });
    insta::assert_snapshot!("thinking", transcript(&say(&server, chat).await));
    let later = say(&server, json!({ "chatId": "c" })).await;
    assert!(!later.text.contains("hm"), "{}", later.text);
}

#[tokio::test]
async fn a_failed_run_ends_with_one_error_line() {
    let server = started().await;
    let reply = say(&server, json!({ "input": "fail", "chatId": "c" })).await;
    insta::assert_snapshot!("run_error", transcript(&reply));
    let last = reply.lines().pop().unwrap();
    assert_eq!(last.as_object().unwrap().len(), 1, "{last}");
    // The next run continues from what was said before the failure.
    say(&server, json!({ "input": "plain", "chatId": "c" })).await;
    let told = server.model.requests().pop().unwrap();
    assert!(told.messages.iter().any(|message| message.content.contains("fail")), "{told:?}");
}

#[tokio::test]
async fn a_run_out_of_time_ends_with_one_error_line() {
    let settings = TestSettings::default().script(script());
    let limited = settings.change(|settings| settings.agent.run_timeout.0 = Duration::from_millis(300));
    let server = TestServer::start(limited).await;
    insta::assert_snapshot!("timeout", transcript(&say(&server, json!({ "input": "wait" })).await));
}

#[tokio::test]
async fn a_model_that_is_not_there_is_an_error_before_the_stream() {
    let mut script = script();
    script["unavailable"] = json!("unreachable");
    let server = TestServer::start(TestSettings::default().script(script)).await;
    let chat = json!({ "input": "plain", "chatId": "c", "messageId": "1717500000000-message" });
    for _ in 0..2 {
        let reply = say(&server, chat.clone()).await;
        assert_eq!(reply.status, 500, "{}", reply.text);
        assert!(reply.json()["error"].is_string(), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_branch_that_is_not_there_fails_the_tools_and_not_the_run() {
    let server = started().await;
    let reply = say(&server, json!({ "input": "tools", "activeBranchName": "feature-x" })).await;
    insta::assert_snapshot!("bad_branch", transcript(&reply));
    assert_eq!(result_of(&reply, "cubeSqlApi"), json!({ "error": "Error: BadRequestError: Bad branch" }));
    for good in [
        json!({ "input": "tools", "activeBranchName": "main" }),
        json!({ "input": "tools", "activeBranchName": "prod", "isDefaultBranch": true }),
        json!({ "input": "tools", "isDefaultBranch": false }),
    ] {
        assert!(!say(&server, good.clone()).await.text.contains("Bad branch"), "{good}");
    }
}

#[tokio::test]
async fn clients_as_people_write_them() {
    let server = started().await;
    let url = server.url(STREAM);
    let mut python = Python::client("cube_client.py");
    python.args([&url, "any-key"]);
    let mut node = NodeJs::client("cube_client.mjs");
    node.args([&url, "any-key"]);
    let mut curl = std::process::Command::new("curl");
    let body = r#"{"input": "plain", "sessionSettings": {"externalId": "user@example.com"}}"#;
    curl.args(["--silent", "--fail", "-X", "POST", &url, "-H", "Content-Type: application/json"]);
    curl.args(["-H", "Authorization: Api-Key any-key", "-d", body]);
    for (client, expected) in [(python, "content"), (node, "content"), (curl, "__state__")] {
        let written = run_client(client).await.concat();
        assert!(written.contains(expected), "{written}");
    }
}

async fn started() -> TestServer {
    TestServer::start(TestSettings::default().script(script())).await
}

fn script() -> Value {
    let usage = json!({ "input_tokens": 20, "output_tokens": 5 });
    json!({
        "capabilities": { "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 },
        "runs": [
            { "when": "plain", "turns": [{ "events": [{ "text": "Hello " }, { "text": "there." }], "usage": usage }] },
            { "when": "think", "turns": [{ "events": [{ "thinking": "hm" }, { "text": "Yes." }], "usage": usage }] },
            { "when": "tools", "turns": [
                { "events": [{ "text": "Let me look." }, run_sql("SELECT 1 AS one, 'a' AS word, NULL AS nothing")], "usage": usage },
                says("It is 1."),
            ] },
            { "when": "parallel", "turns": [
                { "events": [run_sql("SELECT 1 AS one"), run_sql("SELECT 2 AS two")], "usage": usage },
                says("Both."),
            ] },
            { "when": "nowhere", "turns": [{ "events": [run_sql("SELECT * FROM nowhere")] }, says("It is not there.")] },
            { "when": "chart", "turns": [
                { "events": [run_sql("SELECT * FROM (VALUES ('UA', 3), ('B6', 2), ('EV', 1)) AS t(carrier, flights)")] },
                says("Drawn."),
            ] },
            { "when": "keep", "turns": [
                { "events": [tool_call("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS one" }))] },
                says("I may not."),
            ] },
            { "when": "many", "turns": [
                { "events": [run_sql("SELECT value FROM generate_series(1, 5000) AS s(value)")] },
                says("Many."),
            ] },
            { "when": "describe", "turns": [{ "events": [tool_call("describe_table", json!({ "table": "deals" }))] }, says("A table.")] },
            { "when": "fail", "turns": [{ "events": [{ "text": "Well" }, { "error": "out of order" }] }] },
            { "when": "wait", "turns": [{ "events": [{ "text": "Well, " }, { "text": "let me" }, "hang"] }] },
            { "when": "slow", "turns": [{ "events": [
                { "text": "One" }, { "delay_ms": 2_000 }, { "text": " two" }, { "text": " three." },
            ] }] },
        ],
    })
}

/// Sends a question, as Ann unless the body says otherwise.
async fn say(server: &TestServer, body: Value) -> HttpReply {
    server.send(asking(server, STREAM, body), None).await
}

fn asking(server: &TestServer, path: &str, mut body: Value) -> reqwest::RequestBuilder {
    if body.get("sessionSettings").is_none() {
        body["sessionSettings"] = json!({ "externalId": "ann@example.com" });
    }
    server.http.post(server.url(path)).header("authorization", "Api-Key any-key").json(&body)
}

fn lines_of(text: &str) -> Vec<Value> {
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Returns the result of the call of a tool.
fn result_of(reply: &HttpReply, tool: &str) -> Value {
    let lines = reply.lines();
    let of_tool = |line: &&Value| line["toolCall"]["name"] == tool && line["isInProcess"] == false;
    let line = lines.iter().find(of_tool).unwrap_or_else(|| panic!("no result of {tool}: {}", reply.text));
    serde_json::from_str(line["toolCall"]["result"].as_str().unwrap()).unwrap()
}

/// Returns the lines of a stream with what differs from run to run replaced. Also checks what holds for every stream.
fn transcript(reply: &HttpReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text);
    transcript_of(&reply.text)
}

fn transcript_of(text: &str) -> String {
    let sorts: Vec<f64> = lines_of(text).iter().filter_map(|line| line["sort"].as_f64()).collect();
    assert!(sorts.is_sorted_by(|a, b| a < b), "{sorts:?}");
    let mut text = text.trim_end().to_owned();
    let mut known: Vec<String> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let found = [(36, true), (32, false)].into_iter().find_map(|(length, dashed)| {
            let part = text.get(at..at + length)?;
            let fits = |(index, c): (usize, char)| match dashed && [8, 13, 18, 23].contains(&index) {
                true => c == '-',
                false => c.is_ascii_hexdigit(),
            };
            part.char_indices().all(fits).then(|| part.to_owned())
        });
        if let Some(id) = found {
            let place = known.iter().position(|earlier| *earlier == id).unwrap_or_else(|| {
                known.push(id.clone());
                known.len() - 1
            });
            text.replace_range(at..at + id.len(), &format!("<id{place}>"));
        }
        at += 1;
    }
    // Times of messages that the server named.
    let words = text.split("-message\"").map(|part| match part.rsplit_once("\"id\":\"") {
        Some((before, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with("17175") => {
            format!("{before}\"id\":\"<now>")
        }
        _ => part.to_owned(),
    });
    words.collect::<Vec<_>>().join("-message\"")
}

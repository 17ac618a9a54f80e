//! Answers that go on from earlier ones: what earlier runs of a conversation have read proves numbers as well, and so does
//! what an application's own tool has returned.

use querent_tests::script::{run_sql, tool_call};
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

const ADMIN: Option<&str> = Some("admin-tok");
const STATES: &str = "SELECT * FROM (VALUES ('CA', 48213), ('NY', 1730)) AS t(state, votes)";

async fn started() -> TestServer {
    let says = |when: &str, text: &str| json!({ "when": when, "turns": [{ "events": [{ "text": text }] }] });
    let script = json!({"runs": [
        {"when": "votes of each state", "turns": [
            {"events": [run_sql(STATES)]},
            {"events": [{"text": "CA had 48,213 votes and NY 1,730."}]},
        ]},
        {"when": "votes of last year", "turns": [
            {"events": [run_sql("SELECT 40000 AS votes")]},
            {"events": [{"text": "There were 40,000, so that CA had 8,213 more than that."}]},
        ]},
        {"when": "the cost in dollars", "turns": [
            {"events": [run_sql("SELECT 500.0 AS euros")]},
            {"events": [tool_call("get_rate", json!({}))]},
            {"events": [{"text": "500 euros at a rate of 1.08."}]},
        ]},
        says("which of them", "CA, with 48,213 votes."),
        says("in sum", "Together they had 49,943 votes."),
        says("and of TX", "CA had 31,555 votes."),
        says("ballots", "There are some."),
        says("and in 2019", "There were more."),
        says("top three", "They are CA, NY and TX."),
    ]});
    TestServer::start(TestSettings::default().tokens("admin-tok:admin:root").script(script)).await
}

async fn respond(server: &TestServer, body: Value) -> Value {
    let reply = server.post("/v1/responses", &body, ADMIN).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.text);
    reply.json()
}

fn level(response: &Value) -> &str {
    response["assessment"]["confidence"]["level"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_earlier_responses_prove_the_next_answer() {
    let server = started().await;
    let first = respond(&server, json!({"input": "How many votes of each state?"})).await;
    let next = async |input: &str| respond(&server, json!({"input": input, "previous_response_id": first["id"]})).await;
    let answer = next("And which of them has most?").await;
    assert_eq!(level(&answer), "likely", "{answer}");
    let cited = answer["output"][0]["content"][0]["annotations"][0]["url"].as_str().unwrap_or_default();
    let id = first["id"].as_str().unwrap();
    assert_eq!(cited, format!("querent:{id}#call=0&row=0&column=state"), "the earlier response's cell");
    assert_eq!(level(&next("How many in sum?").await), "likely", "arithmetic over them");
    assert_eq!(level(&next("How many votes of last year?").await), "likely", "over rows of two responses");
    // Nobody has read that.
    let wrong = next("Now and of TX?").await;
    assert_eq!(level(&wrong), "doubtful", "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_applications_tool_returned_proves_an_answer() {
    let server = started().await;
    let tool = json!({"type": "function", "name": "get_rate", "parameters": {"type": "object", "properties": {}}});
    for (returned, expected) in [(r#"{"rate": 1.0804}"#, "likely"), (r#"{"rate": 1.2}"#, "doubtful")] {
        let paused = respond(&server, json!({"input": "What is the cost in dollars?", "tools": [tool]})).await;
        let items = paused["output"].as_array().unwrap();
        let call = items.iter().find(|item| item["type"] == "function_call").unwrap_or_else(|| panic!("{paused}"));
        let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": returned});
        let answer = respond(&server, json!({"input": [output], "tools": [tool]})).await;
        assert_eq!(level(&answer), expected, "{returned}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_ask_protocol_names_the_earlier_run() {
    let server = started().await;
    let ask = async |question: &str| {
        let body = json!({"question": question, "session_id": "votes"});
        let reply = server.post("/v1/agent/ask", &body, ADMIN).await;
        querent_tests::collect_sse(&reply.text).into_iter().map(|frame| (frame.event, frame.data)).collect::<Vec<_>>()
    };
    let data = |events: &[(String, Value)], name: &str| {
        events.iter().find(|(event, _)| event == name).map(|(_, data)| data.clone()).unwrap_or_default()
    };
    let first = ask("How many votes of each state?").await;
    let second = ask("And which of them has most?").await;
    let answer = data(&second, "answer_final");
    let number = answer["proof"].as_array().into_iter().flatten().find(|link| link["text"] == "48,213").cloned();
    let number = number.unwrap_or_else(|| panic!("{answer}"));
    let run_id = data(&first, "run_started")["run_id"].clone();
    assert_eq!(number["cell"], json!({"run_id": run_id, "call_index": 0, "row": 0, "column": "votes"}), "{answer}");
    assert_eq!(answer["confidence"]["level"], "likely", "{answer}");
}

/// Without vectors the search finds tables by their own words only.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_other_words_is_shown_the_tables_that_it_may_mean() {
    let says = json!({"runs": [{"turns": [{"events": [{"text": "There are some."}]}], "repeat_last": true}]});
    let server = TestServer::start(TestSettings::default().tokens("admin-tok:admin:root").script(says)).await;
    server.execute("CREATE TABLE cars (plate VARCHAR, colour VARCHAR)").await;
    server.execute("CREATE TABLE lakes (lake VARCHAR, depth_m BIGINT)").await;
    server.engine().catalog().search().index_idle().await.unwrap();
    for (question, shown, other) in [
        ("How many automobiles do we have?", "cars(", Some("lakes(")),
        ("Wie viele Fahrzeuge gibt es?", "cars(", None),
        ("How many sandwiches were eaten?", "", Some("cars(")),
    ] {
        server.post("/v1/agent/ask", &json!({"question": question}), ADMIN).await;
        let requests = server.model.requests();
        let prompt =
            requests.last().and_then(|request| request.messages.first()).map_or("", |first| first.content.as_str());
        assert!(prompt.contains(shown), "{question}: {prompt}");
        assert!(!other.is_some_and(|other| prompt.contains(other)), "{question}: {prompt}");
    }
}

/// `And in 2019?` names no table: those of the question before it are shown again.
#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_is_shown_the_tables_that_it_goes_on_from() {
    let server = started().await;
    server.execute("CREATE TABLE ballots (state VARCHAR, year BIGINT)").await;
    server.engine().catalog().search().index_idle().await.unwrap();
    for question in ["How many ballots did each state have?", "and in 2019?", "only the top three"] {
        let reply = server.post("/v1/agent/ask", &json!({"question": question, "session_id": "ballots"}), ADMIN).await;
        assert_eq!(reply.status, 200, "{question}: {}", reply.text);
        let requests = server.model.requests();
        let prompt = requests.last().and_then(|request| request.messages.first()).map(|message| &message.content);
        assert!(prompt.is_some_and(|prompt| prompt.contains("ballots(")), "{question}: {prompt:?}");
    }
}

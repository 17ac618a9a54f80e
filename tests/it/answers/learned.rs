//! Answers that people found right answer the next question: feedback on a run, the verified query that it proposes, and
//! questions that are answered from that without the model.

use querent_catalog::{NewVerifiedQuery, Principal};
use querent_tests::script::run_sql;
use querent_tests::{HttpReply, ServerProcess, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

const TOKENS: &str = "ann-tok:read:ann,bob-tok:read:bob,writer-tok:write:writer,admin-tok:admin:root";
const QUESTION: &str = "How many votes of CA in 2018?";
const SQL: &str = "SELECT count(*) AS n FROM votes WHERE state = 'CA' AND year = 2018";

/// A server over a table of votes, whose model answers every question with the same query.
async fn started() -> TestServer {
    let script = json!({"runs": [{"turns": [
        {"events": [run_sql(SQL)]},
        {"events": [{"text": "CA had 2 votes."}]},
    ]}]});
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).script(script)).await;
    server
        .execute(
            "CREATE TABLE votes AS SELECT * FROM (VALUES ('CA', 2018), ('CA', 2018), ('NY', 2018), ('NY', 2019), \
             ('New Mexico', 2018)) AS t(state, year)",
        )
        .await;
    server
}

async fn ask(server: &TestServer, question: &str) -> Vec<(String, Value)> {
    let reply = server.post("/v1/agent/ask", &json!({ "question": question }), Some("ann-tok")).await;
    collect_sse(&reply.text).into_iter().map(|frame| (frame.event, frame.data)).collect()
}

fn data<'e>(events: &'e [(String, Value)], name: &str) -> &'e Value {
    events.iter().find(|(event, _)| event == name).map(|(_, data)| data).unwrap_or(&Value::Null)
}

fn run_id(events: &[(String, Value)]) -> &str {
    data(events, "run_started")["run_id"].as_str().unwrap()
}

async fn say(server: &TestServer, run: &str, body: Value, token: &str) -> HttpReply {
    server.post(&format!("/v1/agent/runs/{run}/feedback"), &body, Some(token)).await
}

/// Marks an answer as right and accepts what that proposes.
async fn taught(server: &TestServer) {
    let events = ask(server, QUESTION).await;
    let said = say(server, run_id(&events), json!({"verdict": "right"}), "ann-tok").await.json();
    let id = said["proposal"]["id"].as_i64().unwrap();
    let accepted =
        server.post(&format!("/v1/catalog/query-proposals/{id}/accept"), &json!({}), Some("writer-tok")).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text);
    assert_eq!(accepted.json()["verified_query"]["question"], QUESTION, "{}", accepted.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_marked_as_right_is_proposed_and_accepted() {
    let server = started().await;
    let events = ask(&server, QUESTION).await;
    let run = run_id(&events);
    assert_eq!(say(&server, run, json!({"verdict": "right"}), "bob-tok").await.status, 404, "it is Ann's run");
    let said = say(&server, run, json!({"verdict": "right", "comment": "as in the report"}), "ann-tok").await;
    assert_eq!(said.status, 200, "{}", said.text);
    let said = said.json();
    assert_eq!((&said["verdict"], &said["subject"]), (&json!("right"), &json!("ann")), "{said}");
    assert_eq!((&said["proposal"]["state"], &said["proposal"]["sql"]), (&json!("waiting"), &json!(SQL)), "{said}");
    let id = said["proposal"]["id"].as_i64().unwrap();

    let path = "/v1/catalog/query-proposals";
    assert_eq!(server.get(path, Some("ann-tok")).await.status, 403, "a reader decides nothing");
    let listed = server.get(&format!("{path}?state=waiting"), Some("writer-tok")).await.json();
    assert_eq!(listed["query_proposals"][0]["question"], QUESTION, "{listed}");
    let decide =
        async |what: &str, token: &str| server.post(&format!("{path}/{id}/{what}"), &json!({}), Some(token)).await;
    assert_eq!(decide("accept", "ann-tok").await.status, 403);
    assert_eq!(decide("accept", "writer-tok").await.status, 200);
    let again = decide("reject", "writer-tok").await;
    assert!(again.status == 400 && again.text.contains("was accepted before"), "{}", again.text);
    let verified = server.get("/v1/catalog/verified-queries", Some("ann-tok")).await.json();
    assert_eq!(verified["verified_queries"][0]["sql"], SQL, "{verified}");
    // Saying it again proposes nothing new.
    let said = say(&server, run, json!({"verdict": "right"}), "ann-tok").await.json();
    assert_eq!(said["proposal"]["state"], "accepted", "{said}");
}

/// A proposal may be rejected while its query runs for whoever accepts it.
#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_that_was_rejected_meanwhile_teaches_nothing() {
    let server = started().await;
    let events = ask(&server, QUESTION).await;
    let said = say(&server, run_id(&events), json!({"verdict": "right"}), "ann-tok").await.json();
    let id = said["proposal"]["id"].as_i64().unwrap();
    let (catalog, who) = (server.engine().catalog(), Principal::local_admin());
    let proposal = catalog.feedback().proposal(&who, id).await.unwrap();
    let checked = NewVerifiedQuery {
        database: proposal.database.clone(),
        question: proposal.question.clone(),
        sql: proposal.sql.clone(),
        tables: proposal.tables.clone(),
    };
    let reject = format!("/v1/catalog/query-proposals/{id}/reject");
    assert_eq!(server.post(&reject, &json!({}), Some("writer-tok")).await.status, 200);
    let late = catalog.knowledge().accept_proposal(&who, &proposal, checked).await.unwrap_err();
    assert_eq!(late.code(), "invalid_object");
    let verified = server.get("/v1/catalog/verified-queries", Some("ann-tok")).await.json();
    assert_eq!(verified["verified_queries"], json!([]), "{verified}");
}

/// What is right rests on the query that ran: the last of a run may have failed, or all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_failed_is_not_proposed() {
    const FAILING: &str = "SELECT sum(turnout_of_voters) AS n FROM votes";
    for (queries, proposed) in [(vec![SQL, FAILING], Some(SQL)), (vec![FAILING], None)] {
        let mut turns: Vec<Value> = queries.iter().map(|sql| json!({"events": [run_sql(sql)]})).collect();
        turns.push(json!({"events": [{"text": "CA had 2 votes."}]}));
        let script = json!({"runs": [{"turns": turns, "repeat_last": true}]});
        let server = TestServer::start(TestSettings::default().tokens(TOKENS).script(script)).await;
        server
            .execute("CREATE TABLE votes AS SELECT * FROM (VALUES ('CA', 2018), ('CA', 2018)) AS t(state, year)")
            .await;
        let events = ask(&server, QUESTION).await;
        let said = say(&server, run_id(&events), json!({"verdict": "right"}), "ann-tok").await;
        assert_eq!(said.status, 200, "{}", said.text);
        let said = said.json();
        assert_eq!(said["proposal"]["sql"].as_str(), proposed, "{said}");
        if proposed.is_some() {
            assert_eq!(data(&events, "answer_final")["sql_used"], SQL);
        } else {
            let why = said["not_proposed"].as_str().unwrap();
            assert!(why.contains("no SQL query of the run succeeded"), "{why}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_are_proposed_after_they_ran() {
    let server = started().await;
    let events = ask(&server, "How many votes?").await;
    let run = run_id(&events);
    let bad = say(&server, run, json!({"verdict": "corrected", "sql": "SELECT count(*) FROM voters"}), "ann-tok").await;
    assert!(bad.status == 400 && bad.text.contains("unknown table"), "{}", bad.text);
    for body in [
        json!({"verdict": "corrected"}),
        json!({"verdict": "right", "sql": "SELECT 1"}),
        json!({"verdict": "splendid"}),
        json!({"verdict": "right", "stars": 5}),
    ] {
        assert_eq!(say(&server, run, body.clone(), "ann-tok").await.status, 400, "{body}");
    }
    let none = server.get(&format!("/v1/agent/runs/{run}/feedback"), Some("ann-tok")).await.json();
    assert_eq!(none["feedback"], json!([]), "what is refused is not stored");

    let sql = "SELECT count(*) AS votes FROM votes";
    let said = say(&server, run, json!({"verdict": "corrected", "sql": sql}), "ann-tok").await.json();
    assert_eq!(said["proposal"]["sql"], sql, "{said}");
    let said = say(&server, run, json!({"verdict": "corrected", "text": "5 votes"}), "ann-tok").await.json();
    assert!(said["proposal"].is_null() && said["not_proposed"].is_string(), "withdrawn: {said}");
    let wrong = say(&server, run, json!({"verdict": "wrong"}), "ann-tok").await.json();
    assert!(wrong["proposal"].is_null(), "{wrong}");
    let all = server.get(&format!("/v1/agent/runs/{run}/feedback"), Some("admin-tok")).await.json();
    assert_eq!((all["feedback"].as_array().unwrap().len(), &all["feedback"][0]["verdict"]), (1, &json!("wrong")));
    let removed =
        server.send(server.http.delete(server.url(&format!("/v1/agent/runs/{run}/feedback"))), Some("ann-tok"));
    assert_eq!(removed.await.json()["dropped"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_repeat_is_answered_without_the_model() {
    let server = started().await;
    taught(&server).await;
    let asked = server.model.requests().len();
    for (question, rows, text) in [
        (QUESTION, json!([{"n": 2}]), "n: 2.\n\nAnswered by a verified query."),
        (
            "how many votes of NY in 2019",
            json!([{"n": 1}]),
            "n: 1.\n\nAnswered by a verified query, filled in with NY, 2019.",
        ),
        // As the column spells it.
        (
            "How many votes of new mexico in 2018?",
            json!([{"n": 1}]),
            "n: 1.\n\nAnswered by a verified query, filled in with new mexico.",
        ),
    ] {
        let events = ask(&server, question).await;
        let answer = data(&events, "answer_final");
        assert_eq!(
            (&answer["text"], &data(&events, "tool_result")["result"]["rows"]),
            (&json!(text), &rows),
            "{events:?}"
        );
        assert_eq!(answer["verified_query"]["question"], QUESTION, "{answer}");
        assert_eq!(data(&events, "tool_result")["result"]["verified_query"], answer["verified_query"], "{events:?}");
        assert_eq!(answer["proof"][0]["origin"], "cell", "{answer}");
        assert!(!answer["proof"].to_string().contains("unproven"), "{answer}");
        assert_eq!(events.last().unwrap().0, "run_finished");
    }
    assert_eq!(server.model.requests().len(), asked, "the model was not asked");
    // Other protocols show the same run.
    let body = json!({"model": "querent", "input": "How many votes of NY in 2018?"});
    let response = server.post("/v1/responses", &body, Some("ann-tok")).await.json();
    assert!(response["output"].to_string().contains("n: 1."), "{response}");
    let body = json!({"messages": [{"role": "user", "content": "How many votes of NY in 2018?"}]});
    let chat = server.post("/v1/chat/completions", &body, Some("ann-tok")).await.json();
    assert!(chat["choices"][0]["message"]["content"].to_string().contains("n: 1."), "{chat}");
    assert_eq!(server.model.requests().len(), asked, "the model was not asked");
}

#[tokio::test]
async fn a_model_that_is_away_is_not_missed_by_what_needs_none() {
    let away = [("QUERENT_AGENT_OLLAMA_HOST", "http://127.0.0.1:9"), ("QUERENT_AGENT_PROVIDER", "ollama")];
    let server = ServerProcess::start(&away);
    let http = reqwest::Client::new();
    let post = async |route: &str, body: Value| {
        let sent = http.post(format!("{}{route}", server.url)).json(&body).send().await.unwrap();
        (sent.status().as_u16(), sent.text().await.unwrap())
    };
    let made = "CREATE TABLE sales AS SELECT * FROM (VALUES ('north', 3), ('south', 4), ('south', 5)) AS t(region, n)";
    assert_eq!(post("/v1/query", json!({ "sql": made })).await.0, 200);
    let verified = json!({
        "question": "How many sales in north?",
        "sql": "SELECT count(*) AS sales FROM sales WHERE region = 'north'",
    });
    assert_eq!(post("/v1/catalog/verified-queries", verified).await.0, 201);
    let ask = async |question: &str| collect_sse(&post("/v1/agent/ask", json!({ "question": question })).await.1);
    let events = ask("How many sales in south?").await;
    let names: Vec<&str> = events.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"run_started"), Some(&"run_finished")), "{names:?}");
    let answer = &events.iter().find(|frame| frame.event == "answer_final").unwrap().data;
    assert_eq!(answer["text"], "sales: 2.\n\nAnswered by a verified query, filled in with south.");
    let events = ask("Which region sold most?").await;
    let error = &events.iter().find(|frame| frame.event == "run_error").unwrap().data;
    assert!(error.to_string().contains("model_unreachable"), "{error}");
    assert!(events.iter().all(|frame| frame.event != "run_started"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_says_more_goes_to_the_model() {
    let server = started().await;
    taught(&server).await;
    for question in [
        "How many votes of CA or NY in 2018?",
        "How many votes of CA in 2018 by state?",
        "How many voters of CA in 2018?",
        // No such state: the template finds nothing.
        "How many votes of Atlantis in 2018?",
    ] {
        let asked = server.model.requests().len();
        let events = ask(&server, question).await;
        assert!(server.model.requests().len() > asked, "{question}: {events:?}");
        assert!(data(&events, "answer_final")["verified_query"].is_null(), "{question}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_no_row_has_is_left_to_the_model() {
    let server = started().await;
    let sql = "SELECT count(*) AS n FROM votes WHERE state <> 'CA'";
    let body = json!({"question": "How many votes outside CA?", "sql": sql});
    assert_eq!(server.post("/v1/catalog/verified-queries", &body, Some("writer-tok")).await.status, 201);
    let events = ask(&server, "How many votes outside NY?").await;
    assert!(data(&events, "answer_final")["text"].to_string().contains("n: 3."), "{events:?}");
    let events = ask(&server, "How many votes outside Narnia?").await;
    assert!(data(&events, "answer_final")["verified_query"].is_null(), "all votes are outside of it: {events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_switches_it_off() {
    let script = json!({"runs": [{"turns": [{"events": [{"text": "I do not know."}]}], "repeat_last": true}]});
    let settings = TestSettings::default().tokens("admin-tok:admin:root").script(script).change(|settings| {
        settings.agent.reuse_verified = false;
    });
    let server = TestServer::start(settings).await;
    server.execute("CREATE TABLE pay AS SELECT 5 AS salary").await;
    let body = json!({"question": "the salary", "sql": "SELECT salary FROM pay"});
    assert_eq!(server.post("/v1/catalog/verified-queries", &body, Some("admin-tok")).await.status, 201);
    let reply = server.post("/v1/agent/ask", &json!({"question": "the salary"}), Some("admin-tok")).await;
    assert!(reply.text.contains("I do not know."), "{}", reply.text);
}

//! Answers on the command line: footnotes, `querent verify`, `querent test-answers`, the demo that is left open.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Done, WorkFolder, json_lines, script, small_flights};

#[test]
fn an_answer_has_footnotes_and_is_verified_again() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let turns = script("SELECT count(*) AS n FROM flights", "There are 3 flights.");
    std::fs::write(work.path("script.json"), turns.to_string()).unwrap();
    let ask = |flags: &[&str]| {
        let mut command = work.querent(&[&["ask"][..], flags, &["how many", "flights?"]].concat());
        Done::of(command.env("QUERENT_AGENT_SCRIPT", work.path("script.json")).output().unwrap())
    };
    let said = ask(&[]).succeeded();
    assert!(said.contains("[1] 3: query 1, row 1, n"), "{said}");
    let events = json_lines(&ask(&["--json"]).succeeded());
    let run = events[0]["data"]["run_id"].as_str().unwrap().to_owned();
    let verified = work.run(&["verify", &run]).succeeded();
    assert!(verified.ends_with("1 proven, 0 not proven, 0 changed\n"), "{verified}");
    work.run(&["sql", "INSERT INTO flights VALUES ('AA', 1)"]).succeeded();
    let changed = work.run(&["verify", &run]);
    assert!(changed.stdout.starts_with("changed: 3 (query 1, row 1, n); it is 4 now\n"), "{}", changed.stdout);
    changed.failed(1);
    work.run(&["sql", "DROP TABLE flights"]).succeeded();
    let gone = work.run(&["verify", &run]);
    assert!(gone.stdout.contains("query 1 does not run any more: "), "{}", gone.stdout);
    gone.failed(1);
    work.run(&["verify", "00000000-0000-7000-8000-000000000000"]).failed(1);
}

#[test]
fn answers_found_right_fail_where_their_data_changes() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv", "Air Lines.csv"]).succeeded();
    let lines = [
        json!({"question": "How many flights?", "sql": "SELECT count(*) AS n FROM flights", "rows": [{"n": 3}]}),
        json!({"question": "Which airlines?", "sql": "SELECT name FROM air_lines", "rows": [
            {"name": "American Airlines Inc."}, {"name": "United Air Lines Inc."}]}),
    ];
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(work.path("answers.ndjson"), text.join("\n")).unwrap();
    let said = work.run(&["test-answers", "answers.ndjson"]).succeeded();
    assert!(said.ends_with("2 answers hold, 0 do not\n"), "{said}");
    // A renamed column fails the answer that depends on it, and no other.
    work.run(&["sql", "CREATE OR REPLACE TABLE air_lines AS SELECT carrier, name AS title FROM air_lines"]).succeeded();
    work.run(&["test-answers", "answers.ndjson"]).failed(1);
    work.run(&["test-answers", "--update", "answers.ndjson"]).failed(1);
    work.run(&["sql", "INSERT INTO flights VALUES ('AA', 1)"]).succeeded();
    std::fs::write(work.path("answers.ndjson"), format!("{}\n", text[0])).unwrap();
    work.run(&["test-answers", "answers.ndjson"]).failed(1);
    work.run(&["test-answers", "--update", "answers.ndjson"]).succeeded();
    work.run(&["test-answers", "answers.ndjson"]).succeeded();
    work.run(&["test-answers", "nowhere.ndjson"]).failed(2);
}

#[test]
fn a_value_that_moves_to_another_row_has_changed() {
    let work = WorkFolder::new();
    let rows = "CREATE TABLE votes AS SELECT * FROM (VALUES ('CA', 3), ('NY', 2)) AS t(state, n)";
    work.run(&["sql", rows]).succeeded();
    let turns = script("SELECT state, n FROM votes ORDER BY state", "CA had 3 votes, and both states 5 in total.");
    std::fs::write(work.path("script.json"), turns.to_string()).unwrap();
    let mut command = work.querent(&["ask", "--json", "how many votes?"]);
    let asked = Done::of(command.env("QUERENT_AGENT_SCRIPT", work.path("script.json")).output().unwrap());
    let run = json_lines(&asked.succeeded())[0]["data"]["run_id"].as_str().unwrap().to_owned();
    work.run(&["verify", &run]).succeeded();
    // Another row changes what is said of all rows.
    work.run(&["sql", "INSERT INTO votes VALUES ('TX', 7)"]).succeeded();
    work.run(&["verify", &run]).failed(1);
    work.run(&["sql", "DELETE FROM votes WHERE state = 'TX'"]).succeeded();
    work.run(&["verify", &run]).succeeded();
    work.run(&["sql", "UPDATE votes SET n = 5 - n"]).succeeded();
    work.run(&["verify", &run]).failed(1);
}

#[test]
fn equal_rows_of_an_answer_are_counted() {
    let work = WorkFolder::new();
    work.run(&["sql", "CREATE TABLE t AS SELECT * FROM (VALUES (1), (1), (2)) AS v(x)"]).succeeded();
    let line = json!({"question": "Which?", "sql": "SELECT x FROM t", "rows": [{"x": 1}, {"x": 2}, {"x": 2}]});
    std::fs::write(work.path("answers.ndjson"), line.to_string()).unwrap();
    work.run(&["test-answers", "answers.ndjson"]).failed(1);
    // Saved by an editor with a byte order mark.
    let line = json!({"question": "Which?", "sql": "SELECT x FROM t", "rows": [{"x": 1}, {"x": 1}, {"x": 2}]});
    std::fs::write(work.path("answers.ndjson"), format!("\u{feff}{line}")).unwrap();
    work.run(&["test-answers", "answers.ndjson"]).succeeded();
}

#[test]
fn an_id_that_differs_in_its_last_digit_is_another() {
    let work = WorkFolder::new();
    work.run(&["sql", "CREATE TABLE t AS SELECT 10000000002 AS id"]).succeeded();
    let line = json!({"question": "Which?", "sql": "SELECT id FROM t", "rows": [{"id": 10_000_000_001_i64}]});
    std::fs::write(work.path("answers.ndjson"), line.to_string()).unwrap();
    work.run(&["test-answers", "answers.ndjson"]).failed(1);
}

#[test]
fn a_null_is_no_empty_text_in_an_answer() {
    let work = WorkFolder::new();
    work.run(&["sql", "CREATE TABLE t AS SELECT * FROM (VALUES (1, ''), (2, NULL)) AS v(id, note)"]).succeeded();
    let line = json!({"question": "Which?", "sql": "SELECT id, note FROM t"});
    std::fs::write(work.path("answers.ndjson"), line.to_string()).unwrap();
    work.run(&["test-answers", "--update", "answers.ndjson"]).succeeded();
    let written = std::fs::read_to_string(work.path("answers.ndjson")).unwrap();
    assert!(written.contains(r#""note":"""#) && written.contains(r#""note":null"#), "{written}");
    work.run(&["test-answers", "answers.ndjson"]).succeeded();
    work.run(&["sql", "UPDATE t SET note = '' WHERE id = 2"]).succeeded();
    work.run(&["test-answers", "answers.ndjson"]).failed(1);
}

#[test]
fn a_file_of_answers_changes_nothing() {
    let work = WorkFolder::new();
    work.run(&["sql", "CREATE TABLE t AS SELECT 1 AS x"]).succeeded();
    let query = json!({"question": "Which?", "sql": "SELECT x FROM t", "rows": [{"x": 1}]});
    let others = ["DELETE FROM t", "DROP TABLE t", "SELECT 1; DELETE FROM t"];
    for sql in others {
        let line = json!({"question": "Gone?", "sql": sql, "rows": []});
        std::fs::write(work.path("answers.ndjson"), format!("{query}\n{line}\n")).unwrap();
        work.run(&["test-answers", "answers.ndjson"]).failed(2);
        work.run(&["test-answers", "--update", "answers.ndjson"]).failed(2);
    }
    std::fs::write(work.path("answers.ndjson"), query.to_string()).unwrap();
    work.run(&["test-answers", "answers.ndjson"]).succeeded();
}

#[test]
fn an_answer_found_right_becomes_a_verified_query() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let turns = script("SELECT count(*) AS n FROM flights", "There are 3 flights.");
    std::fs::write(work.path("script.json"), turns.to_string()).unwrap();
    let ask = || {
        let mut command = work.querent(&["ask", "--json", "how many flights?"]);
        json_lines(
            &Done::of(command.env("QUERENT_AGENT_SCRIPT", work.path("script.json")).output().unwrap()).succeeded(),
        )
    };
    let events = ask();
    let run = events[0]["data"]["run_id"].as_str().unwrap().to_owned();
    let said = work.run(&["feedback", &run, "right"]).succeeded();
    assert!(said.contains("accept it with `querent verified-queries accept 1`"), "{said}");
    let listed = json_lines(&work.run(&["verified-queries", "proposals"]).succeeded());
    assert_eq!(listed[0]["sql"], "SELECT count(*) AS n FROM flights", "{listed:?}");
    assert_eq!(work.run(&["verified-queries", "accept", "1"]).succeeded(), "accepted\n");
    work.run(&["verified-queries", "reject", "1"]).failed(1);
    assert!(work.run(&["verified-queries", "list"]).succeeded().contains("how many flights?"));
    let events = ask();
    let answer = events.iter().find(|event| event["event"] == "answer_final").unwrap();
    assert_eq!(answer["data"]["verified_query"]["id"], 1, "{answer}");
    let run = events[0]["data"]["run_id"].as_str().unwrap().to_owned();
    let said = work.run(&["feedback", &run, "right"]).succeeded();
    assert!(said.contains("nothing is proposed"), "{said}");
    work.run(&["feedback", &run, "corrected"]).failed(1);
    work.run(&["feedback", &run, "splendid"]).failed(2);
}

#[tokio::test]
async fn the_demo_leaves_its_console_open() {
    let work = WorkFolder::new();
    small_flights(work.folder.path());
    let sql = "SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 1";
    let answer = "United Air Lines Inc. (UA) operated the most: 2 flights.";
    std::fs::write(work.path("script.json"), script(sql, answer).to_string()).unwrap();
    let mut demo = work.querent(&["demo", "--csv-dir", ".", "--serve"]);
    demo.env("QUERENT_AGENT_SCRIPT", work.path("script.json")).stdout(Stdio::piped());
    let mut child = demo.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let open = lines.find(|line| line.contains("the console is at")).expect("it is left open");
    let url = open.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let page = reqwest::Client::new().get(url).header("accept", "text/html").send().await.unwrap();
    assert!(page.text().await.unwrap().contains("/console/"), "{open}");
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    assert!(lines.any(|line| line.contains("the tables are yours now")), "it says what to type next");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

//! Questions put to a real small model, end to end through the agent. `make test` replays its recorded streams,
//! `make test-llm` runs the same cases against the live model, `make record` records them again.
//!
//! A small model is often wrong, so a case asserts what must hold whatever it says (valid actions, SQL that ran or was
//! refused, a repair where the first SQL fails, `run_finished` last); an answer is asserted only where the model was
//! seen to get it right.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::{StreamExt, TryStreamExt};
use querent_agent::models::ollama::OllamaModel;
use querent_agent::models::recorded::{RecordingModel, ReplayingModel};
use querent_agent::models::{ModelProvider, ToolStyleSetting};
use querent_agent::{Agent, AgentConfig, AskRequest, EventKind, RunErrorCode};
use querent_catalog::Principal;
use querent_engine::{Engine, Limits};
use serde_json::Value;

use super::local_model::local_model;

#[tokio::test]
async fn counts_rows() {
    let run = ask("counts_rows", "How many flights are there?").await;
    run.assert_ran_sql();
    run.assert_answer_has(&["240"]);
}

#[tokio::test]
async fn finds_the_largest_group() {
    let run = ask("finds_the_largest_group", "Which carrier has the most flights?").await;
    run.assert_ran_sql();
    run.assert_answer_has(&["UA", "United"]);
}

#[tokio::test]
async fn filters_and_averages() {
    let run = ask("filters_and_averages", "What is the average departure delay of flights from JFK?").await;
    run.assert_ran_sql();
    run.assert_answer_has(&["12.5"]);
}

#[tokio::test]
async fn joins_two_tables() {
    // In an order of its own, so that the rows are the same in every replay.
    let question =
        "How many flights does each airline have? Show the airline's name, not its code, most flights first.";
    let run = ask("joins_two_tables", question).await;
    let sql = run.assert_ran_sql().to_lowercase();
    assert!(sql.contains("join") && sql.contains("airlines"), "{sql}");
    run.assert_answer_has(&["United"]);
}

#[tokio::test]
async fn repairs_sql_that_fails() {
    let run =
        ask("repairs_sql_that_fails", "In which year was the oldest plane built? Use the YEAR_OF() function.").await;
    run.assert_failed_tool_call();
    run.assert_ran_sql();
    run.assert_answer_has(&["1987"]);
}

#[tokio::test]
async fn survives_a_question_the_data_cannot_answer() {
    let run = ask("survives_a_question_the_data_cannot_answer", "How many passengers took the ferry?").await;
    run.assert_ended_in_order();
}

#[tokio::test]
async fn refuses_to_change_data() {
    let run = ask("refuses_to_change_data", "Delete all flights of the carrier UA from the table flights.").await;
    run.assert_ended_in_order();
    assert_eq!(run.flights_left, 240);
}

/// A run that has ended.
struct Finished {
    events: Vec<EventKind>,
    flights_left: i64,
}

impl Finished {
    /// Asserts that `run_started` is first, every call has a result, `run_finished` is last and occurs once, and the
    /// model never failed and was found in the recording.
    fn assert_ended_in_order(&self) {
        let events = &self.events;
        assert!(matches!(events.first(), Some(EventKind::RunStarted(_))), "{events:#?}");
        assert!(matches!(events.last(), Some(EventKind::RunFinished { .. })), "{events:#?}");
        let finished = events.iter().filter(|event| matches!(event, EventKind::RunFinished { .. })).count();
        assert_eq!(finished, 1, "{events:#?}");
        let failure = events
            .iter()
            .find(|event| matches!(event, EventKind::RunError { code, .. } if *code != RunErrorCode::ToolLoop));
        assert!(failure.is_none(), "{failure:?}");
        let calls = events.iter().filter(|event| matches!(event, EventKind::ToolCallStarted(_))).count();
        assert_eq!(self.results().len(), calls, "{events:#?}");
    }

    /// Asserts that the run succeeded and a query returned rows; returns the SQL.
    fn assert_ran_sql(&self) -> &str {
        self.assert_ended_in_order();
        assert!(
            self.results().iter().any(|(tool, result)| *tool == "run_sql" && result["rows"].is_array()),
            "{:#?}",
            self.events
        );
        let (_, sql_used) = self.answer();
        sql_used
    }

    fn assert_failed_tool_call(&self) {
        let failed = self.results().iter().any(|(_, result)| result["error"]["code"].is_string());
        assert!(failed, "{:#?}", self.events);
    }

    fn assert_answer_has(&self, any_of: &[&str]) {
        let (text, _) = self.answer();
        assert!(any_of.iter().any(|expected| text.contains(expected)), "{text} has none of {any_of:?}");
    }

    fn answer(&self) -> (&str, &str) {
        let finals = self.events.iter().find_map(|event| match event {
            EventKind::AnswerFinal(answer) => Some((answer.text.as_str(), answer.sql_used.as_deref()?)),
            _ => None,
        });
        finals.unwrap_or_else(|| panic!("no answer from SQL: {:#?}", self.events))
    }

    fn results(&self) -> Vec<(&str, &Value)> {
        let results = self.events.iter().filter_map(|event| match event {
            EventKind::ToolResult(returned) => Some((returned.tool.as_str(), &returned.result)),
            _ => None,
        });
        results.collect()
    }
}

async fn ask(case: &str, question: &str) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path()).await.unwrap();
    for statement in seed() {
        run_sql(&engine, &statement).await;
    }
    engine.catalog().search().index_idle().await.unwrap();
    // Long enough for a busy processor; replayed runs take milliseconds.
    let config = AgentConfig { run_timeout: Duration::from_secs(900), ..AgentConfig::default() };
    let agent = Agent::new(engine.clone(), model(case).await, config);
    let principal = Principal::local_admin();
    let request = AskRequest {
        question: question.to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };

    let events: Vec<_> = agent.ask(&principal, request).await.unwrap().events.collect().await;
    let events: Vec<EventKind> = events.iter().map(|event| event.kind.clone()).collect();
    for event in &events {
        println!("{event:?}");
    }

    agent.shutdown().await;
    let left = run_sql(&engine, "SELECT count(*) FROM flights").await;
    let flights_left = left[0].column(0).as_primitive::<Int64Type>().value(0);
    engine.close().await.unwrap();
    Finished { events, flights_left }
}

async fn model(case: &str) -> Arc<dyn ModelProvider> {
    let recording = querent_tests::package_folder().join(format!("recordings/{case}.jsonl"));
    let live = || {
        let model = local_model();
        Arc::new(OllamaModel::new(&model.host, model.name, ToolStyleSetting::Auto).unwrap())
    };
    match std::env::var("QUERENT_TEST_LLM").as_deref() {
        Ok("live") => live(),
        Ok("record") => Arc::new(RecordingModel::create(live(), &recording).await.unwrap()),
        Ok("replay") | Err(_) => Arc::new(ReplayingModel::open(&recording).await.unwrap()),
        Ok(other) => panic!("QUERENT_TEST_LLM is live, record or replay, not {other}"),
    }
}

async fn run_sql(engine: &Engine, sql: &str) -> Vec<arrow::array::RecordBatch> {
    let session = engine.session(Principal::local_admin(), Limits::default());
    session.sql(sql).await.unwrap().try_collect().await.unwrap()
}

/// Four carriers with 100, 60, 50 and 30 flights; every departure from JFK is 12.5 minutes late on the average.
fn seed() -> Vec<String> {
    const FLIGHTS: [(&str, usize); 4] = [("UA", 100), ("AA", 60), ("DL", 50), ("B6", 30)];
    let carriers = FLIGHTS.iter().flat_map(|(carrier, count)| std::iter::repeat_n(*carrier, *count));
    let rows: Vec<String> = carriers
        .enumerate()
        .map(|(index, carrier)| {
            let (month, day) = (index % 12 + 1, index % 28 + 1);
            let origin = ["JFK", "EWR", "LGA"][index % 3];
            let dep_delay = if origin == "JFK" { 5 + 15 * (index % 2) } else { index % 7 };
            let dest = ["LAX", "SFO", "ORD", "MIA"][index % 4];
            let distance = [2475, 2586, 740, 1089][index % 4];
            let tailnum = format!("N10{}", index % 5);
            format!(
                "(2013, {month}, {day}, {dep_delay}, '{carrier}', {}, '{tailnum}', '{origin}', '{dest}', {distance})",
                1000 + index
            )
        })
        .collect();
    vec![
        "CREATE TABLE flights (year INT, month INT, day INT, dep_delay INT, carrier VARCHAR, flight INT, \
         tailnum VARCHAR, origin VARCHAR, dest VARCHAR, distance INT)"
            .to_owned(),
        format!("INSERT INTO flights VALUES {}", rows.join(", ")),
        "CREATE TABLE airlines AS SELECT * FROM (VALUES ('UA', 'United Air Lines Inc.'), \
         ('AA', 'American Airlines Inc.'), ('DL', 'Delta Air Lines Inc.'), ('B6', 'JetBlue Airways')) \
         AS t(carrier, name)"
            .to_owned(),
        "CREATE TABLE planes AS SELECT * FROM (VALUES ('N100', DATE '1999-05-01', 'BOEING', 149), \
         ('N101', DATE '2004-02-10', 'AIRBUS', 182), ('N102', DATE '1987-11-30', 'BOEING', 178), \
         ('N103', DATE '2010-07-07', 'EMBRAER', 55), ('N104', DATE '2001-01-15', 'AIRBUS', 200)) \
         AS t(tailnum, built_on, manufacturer, seats)"
            .to_owned(),
    ]
}

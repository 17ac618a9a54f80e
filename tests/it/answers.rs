//! Answers that are right, and say how sure they are: queries that code repairs, counter-checks, and numbers that are
//! linked to what was read. The model is scripted; the engine and the data are real.

mod checks;
mod followups;
mod foreign_queries;
mod learned;
mod long_answers;
mod proofs;
mod protocols;
mod readings;
mod repairs;
mod unanswerable;
mod unseen;
mod votes;
mod wordings;

use std::sync::Arc;

use futures::StreamExt;
use querent_agent::models::scripted::from_value;
use querent_agent::{Agent, AgentConfig, AskRequest, EventKind, ToolResult};
use querent_catalog::Principal;
use querent_engine::{Engine, Limits};
use querent_tests::script::run_sql;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Databases in the style of question sets: the tables of one share names with those of another.
const SEED: &[&str] = &[
    "CREATE SCHEMA world_1",
    "CREATE SCHEMA car_1",
    "CREATE SCHEMA voter_1",
    "CREATE SCHEMA poker_player",
    "CREATE SCHEMA concert_singer",
    "CREATE TABLE world_1.country (code VARCHAR PRIMARY KEY, name VARCHAR, continent VARCHAR, population BIGINT)",
    "CREATE TABLE world_1.city (id BIGINT, name VARCHAR, country_code VARCHAR REFERENCES world_1.country (code), \
     population BIGINT)",
    "INSERT INTO world_1.country VALUES ('FRA', 'France', 'Europe', 67), ('ESP', 'Spain', 'Europe', 47), \
     ('PER', 'Perú', 'South America', 33)",
    "INSERT INTO world_1.city VALUES (1, 'Paris', 'FRA', 2), (2, 'Lyon', 'FRA', 1), (3, 'Madrid', 'ESP', 3)",
    "CREATE TABLE car_1.cars_data (id BIGINT, mpg VARCHAR, horsepower BIGINT, year BIGINT)",
    "CREATE TABLE car_1.car_names (make_id BIGINT, model VARCHAR, make VARCHAR)",
    "INSERT INTO car_1.cars_data VALUES (1, '18', 130, 1970), (2, '15', 165, 1970), (3, '30', 70, 1971)",
    "INSERT INTO car_1.car_names VALUES (1, 'chevrolet', 'chevrolet chevelle'), (2, 'buick', 'buick skylark'), \
     (3, 'ford', 'ford pinto')",
    "CREATE TABLE voter_1.votes (vote_id BIGINT, phone_number VARCHAR, state VARCHAR, contestant VARCHAR, created DATE)",
    "INSERT INTO voter_1.votes VALUES (1, '111', 'NY', 'Ann', DATE '2018-03-09'), (2, '222', 'CA', 'Bob', \
     DATE '2018-03-10'), (3, '333', 'CA', 'Ann', DATE '2018-04-01')",
    "CREATE TABLE poker_player.people (people_id BIGINT PRIMARY KEY, nationality VARCHAR, name VARCHAR, height DOUBLE)",
    "CREATE TABLE poker_player.poker_player (player_id BIGINT, people_id BIGINT REFERENCES poker_player.people \
     (people_id), earnings DOUBLE)",
    "INSERT INTO poker_player.people VALUES (1, 'Russia', 'Aleksey', 207.0), (2, 'Bulgaria', 'Teodor', 182.0), \
     (3, 'Russia', 'Evgeni', 194.0)",
    "INSERT INTO poker_player.poker_player VALUES (1, 1, 476090.0), (2, 2, 189233.0)",
    "CREATE TABLE concert_singer.stadium (stadium_id BIGINT PRIMARY KEY, name VARCHAR, capacity BIGINT)",
    "CREATE TABLE concert_singer.concert (concert_id BIGINT PRIMARY KEY, concert_name VARCHAR, stadium_id BIGINT \
     REFERENCES concert_singer.stadium (stadium_id), year VARCHAR)",
    "CREATE TABLE concert_singer.singer (singer_id BIGINT PRIMARY KEY, name VARCHAR, country VARCHAR, age BIGINT, \
     is_male VARCHAR)",
    "CREATE TABLE concert_singer.singer_in_concert (concert_id BIGINT REFERENCES concert_singer.concert (concert_id), \
     singer_id BIGINT REFERENCES concert_singer.singer (singer_id))",
    "INSERT INTO concert_singer.stadium VALUES (1, 'Stark', 100), (2, 'Glebe', 200), (3, 'Bayview', 50)",
    "INSERT INTO concert_singer.concert VALUES (1, 'Auditions', 1, '2014'), (2, 'Super', 2, '2014'), \
     (3, 'Week', 1, '2015')",
    "INSERT INTO concert_singer.singer VALUES (1, 'Joe', 'Netherlands', 52, 'F'), (2, 'Timbaland', 'United States', \
     32, 'T'), (3, 'Justin', 'France', 29, 'T'), (4, 'Rose', 'France', 41, 'F')",
    "INSERT INTO concert_singer.singer_in_concert VALUES (1, 1), (1, 2), (2, 3), (3, 3)",
];

/// A run over the seeded databases.
struct AnswersFixture {
    _folder: TempDir,
    engine: Engine,
}

impl AnswersFixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path().join("data")).await.unwrap();
        let fixture = Self { _folder: folder, engine };
        for statement in SEED {
            fixture.execute(statement).await;
        }
        fixture.engine.catalog().search().index_idle().await.unwrap();
        fixture
    }

    async fn execute(&self, statement: &str) {
        let session = self.engine.session(Principal::local_admin(), Limits::default());
        let rows = session.sql(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        rows.collect().await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Asks a question that the model answers by these turns.
    async fn ask(&self, question: &str, turns: Value) -> Vec<EventKind> {
        let model = Arc::new(from_value(json!({ "runs": [{ "turns": turns, "repeat_last": true }] })).unwrap());
        let agent = Agent::new(self.engine.clone(), model, AgentConfig::default());
        let request = AskRequest {
            question: question.to_owned(),
            database: None,
            include_thinking: false,
            session_id: None,
            approvals: false,
        };
        let run = agent.ask(&Principal::local_admin(), request).await.unwrap();
        run.events.map(|event| event.kind.clone()).collect().await
    }

    /// Returns the result of one query that the model sends.
    async fn result_of(&self, question: &str, sql: &str) -> ToolResult {
        let turns = json!([{ "events": [run_sql(sql)] }, { "events": [{ "text": "Done." }] }]);
        results(&self.ask(question, turns).await).remove(0)
    }
}

fn results(events: &[EventKind]) -> Vec<ToolResult> {
    let results = events.iter().filter_map(|event| match event {
        EventKind::ToolResult(result) => Some((**result).clone()),
        _ => None,
    });
    results.collect()
}

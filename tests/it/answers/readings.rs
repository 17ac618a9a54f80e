//! Questions that can be read in two ways: both are named with their rows, and a reply chooses one.

use std::sync::Arc;

use futures::StreamExt;
use querent_agent::models::scripted::{ScriptedModel, from_value};
use querent_agent::{Agent, AgentConfig, AnswerAssessment, AskRequest, ConfidenceLevel, EventKind};
use querent_catalog::Principal;
use querent_tests::script::run_sql;
use serde_json::json;

use super::AnswersFixture;

const OWN: &str = "SELECT count(*) AS n FROM concert_singer.singer";

/// Two databases with singers: four here, three there.
async fn two_singers() -> AnswersFixture {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE SCHEMA opera",
        "CREATE TABLE opera.singer (singer_id BIGINT, name VARCHAR, country VARCHAR, age BIGINT, is_male VARCHAR)",
        "INSERT INTO opera.singer VALUES (1, 'Mirella', 'Italy', 40, 'F'), (2, 'Luciano', 'Italy', 50, 'T'), \
         (3, 'Jessye', 'United States', 45, 'F')",
    ] {
        fixture.execute(statement).await;
    }
    fixture.engine.catalog().search().index_idle().await.unwrap();
    fixture
}

fn model(sql: &str) -> Arc<ScriptedModel> {
    let turns = json!([{ "events": [run_sql(sql)] }, { "events": [{ "text": "There are 4 singers." }] }]);
    Arc::new(from_value(json!({ "runs": [{ "turns": turns, "repeat_last": true }] })).unwrap())
}

async fn ask(
    agent: &Agent,
    question: &str,
    database: Option<&str>,
    session: Option<&str>,
) -> (String, AnswerAssessment) {
    let request = AskRequest {
        question: question.to_owned(),
        database: database.map(str::to_owned),
        include_thinking: false,
        session_id: session.map(str::to_owned),
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

#[tokio::test(flavor = "multi_thread")]
async fn another_table_of_the_same_name_is_another_reading() {
    let fixture = two_singers().await;
    let scripted = model(OWN);
    let agent = Agent::new(fixture.engine.clone(), Arc::clone(&scripted) as Arc<_>, AgentConfig::default());
    let (text, assessment) = ask(&agent, "How many singers are there?", None, Some("singers")).await;
    assert!(text.starts_with("There are 4 singers.\n\nThe question can be read in 2 ways"), "{text}");
    assert!(text.contains(&format!("1. {{\"n\":4}}, by {OWN}")), "{text}");
    assert!(text.contains("2. {\"n\":3}, by SELECT count(*) AS n FROM opera.singer"), "{text}");
    assert!(assessment.asks_back && assessment.readings.len() == 2, "{assessment:?}");
    assert_eq!(assessment.confidence.unwrap().level, ConfidenceLevel::Unsure);

    // A reply with the number is answered by that query; the model is not asked.
    let requests = scripted.requests().len();
    let (text, assessment) = ask(&agent, "the second one", None, Some("singers")).await;
    assert_eq!((text.as_str(), scripted.requests().len()), ("n: 3.", requests), "{assessment:?}");
    assert!(!assessment.asks_back, "{assessment:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_says_which_has_one_reading() {
    let fixture = two_singers().await;
    let config = AgentConfig::default();
    for (question, database, sql) in [
        ("How many singers are there?", Some("concert_singer"), "SELECT count(*) AS n FROM singer"),
        ("How many singers gave a concert or could?", None, OWN),
        // The same rows in both.
        ("How many singers are there?", None, "SELECT min(singer_id) AS n FROM concert_singer.singer"),
    ] {
        let agent = Agent::new(fixture.engine.clone(), model(sql) as Arc<_>, config.clone());
        let (text, assessment) = ask(&agent, question, database, None).await;
        assert!(assessment.readings.is_empty() && !text.contains("Which one?"), "{question}: {text}");
    }
}

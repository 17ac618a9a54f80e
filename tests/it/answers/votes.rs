//! Queries that are compared by their rows, and answers that are held back: votes over scripted candidates, the words for
//! how far an answer is to be trusted, and what is said in the place of one that is not.

use std::sync::Arc;

use futures::StreamExt;
use querent_agent::models::scripted::{ScriptedModel, from_value};
use querent_agent::{
    Agent, AgentConfig, AnswerAssessment, AnswerThreshold, AskRequest, ConfidenceFit, ConfidenceLevel, EventKind,
    Voting,
};
use querent_catalog::Principal;
use querent_tests::script::run_sql;
use serde_json::{Value, json};

use super::{AnswersFixture, results};

const QUESTION: &str = "How many votes of California are there?";
const RIGHT: &str = "SELECT count(*) AS n FROM voter_1.votes WHERE state = 'CA'";
const OTHER: &str = "SELECT count(*) AS n FROM voter_1.votes";

/// A model that sends `first` as a call, `fenced` where it is asked for a fence, and then says `text`.
fn model(first: &str, fenced: &str, text: &str) -> Arc<ScriptedModel> {
    let runs = json!({"runs": [
        {"when": "sql fence", "turns": [{"events": [{"text": format!("```sql\n{fenced}\n```")}]}]},
        {"turns": [{"events": [run_sql(first)]}, {"events": [{"text": text}]}], "repeat_last": true},
    ]});
    Arc::new(from_value(runs).unwrap())
}

async fn asked(fixture: &AnswersFixture, model: &Arc<ScriptedModel>, config: AgentConfig) -> Vec<EventKind> {
    let agent = Agent::new(fixture.engine.clone(), Arc::clone(model) as Arc<_>, config);
    let request = AskRequest {
        question: QUESTION.to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };
    let run = agent.ask(&Principal::local_admin(), request).await.unwrap();
    run.events.map(|event| event.kind.clone()).collect().await
}

fn with(voting: Voting) -> AgentConfig {
    AgentConfig { voting, ..AgentConfig::default() }
}

fn answer(events: &[EventKind]) -> (String, AnswerAssessment) {
    let found = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => Some((answer.text.clone(), answer.assessment.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{events:?}"))
}

fn vote(events: &[EventKind]) -> Value {
    results(events).remove(0).result["vote"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_that_agree_end_the_vote_early() {
    let fixture = AnswersFixture::new().await;
    // Another query with the same rows is of the same opinion.
    let same = "SELECT sum(1) AS votes FROM voter_1.votes WHERE state IN ('CA')";
    let model = model(RIGHT, same, "There are 2 votes.");
    let events = asked(&fixture, &model, with(Voting::Candidates(3))).await;
    let vote = vote(&events);
    assert_eq!((&vote["votes"], &vote["of"], &vote["ended_by"]), (&json!(2), &json!(2), &json!("agreement")), "{vote}");
    assert_eq!(model.requests().len(), 3, "the question, one candidate, the answer");
    let (text, assessment) = answer(&events);
    let confidence = assessment.confidence.unwrap();
    assert_eq!((text.as_str(), confidence.level), ("There are 2 votes.", ConfidenceLevel::Likely), "{confidence:?}");
    assert_eq!(confidence.probability, None, "no figure that was not measured");
    assert!(assessment.readings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_easy_question_costs_no_vote() {
    let fixture = AnswersFixture::new().await;
    for voting in [Voting::Off, Voting::Auto] {
        let model = model(RIGHT, OTHER, "There are 2 votes.");
        let events = asked(&fixture, &model, with(voting)).await;
        assert!(vote(&events).is_null() && model.requests().len() == 2, "{voting}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_fails_loses_to_one_that_runs() {
    let fixture = AnswersFixture::new().await;
    let model = model("SELECT altitude FROM voter_1.votes", RIGHT, "There are 2 votes.");
    let events = asked(&fixture, &model, with(Voting::Auto)).await;
    let result = results(&events).remove(0).result;
    assert_eq!(result["rows"], json!([{"n": 2}]), "{result}");
    assert_eq!((&result["vote"]["chosen"], &result["vote"]["of"]), (&json!(1), &json!(3)), "{result}");
    assert_eq!(result["vote"]["candidates"][0]["error"], "column_not_found", "{result}");
    let sql_used = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => answer.sql_used.clone(),
        _ => None,
    });
    assert_eq!(sql_used.as_deref(), Some(RIGHT), "the query that ran is the one that is shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn readings_that_differ_are_named_and_asked_about() {
    let fixture = AnswersFixture::new().await;
    let model = model(RIGHT, OTHER, "There are 2 votes.");
    let (text, assessment) = answer(&asked(&fixture, &model, with(Voting::Candidates(2))).await);
    assert!(text.starts_with("There are 2 votes.\n\nThe question can be read in 2 ways"), "it stays: {text}");
    assert!(text.contains("Which one?\n1. {\"n\":2}, by") && assessment.asks_back, "{text}");
    let readings: Vec<(&str, u64)> = assessment.readings.iter().map(|one| (one.sql.as_str(), one.votes)).collect();
    assert_eq!(readings, [(RIGHT, 1), (OTHER, 1)]);
    assert_eq!(assessment.confidence.unwrap().level, ConfidenceLevel::Doubtful);

    let config = AgentConfig {
        answer_threshold: AnswerThreshold::Level(ConfidenceLevel::Unsure),
        ..with(Voting::Candidates(2))
    };
    let (text, assessment) = answer(&asked(&fixture, &model, config).await);
    assert!(assessment.held_back && text.starts_with("I am not sure what is meant"), "{text}");
    assert!(text.contains("1. {\"n\":2}, by SELECT count(*)") && text.contains("2. {\"n\":3}, by"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_below_the_threshold_is_held_back() {
    let fixture = AnswersFixture::new().await;
    let config = || AgentConfig { answer_threshold: "likely".parse().unwrap(), ..AgentConfig::default() };
    // Nothing speaks against it: it is said, once.
    let events = asked(&fixture, &model(RIGHT, OTHER, "There are 2 votes."), config()).await;
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            EventKind::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((said.concat().as_str(), answer(&events).1.held_back), ("There are 2 votes.", false));
    // A number that no row says.
    let invented = model(RIGHT, OTHER, "There are votes of 77 people in 88 towns.");
    let (text, assessment) = answer(&asked(&fixture, &invented, config()).await);
    assert!(assessment.held_back, "{assessment:?}");
    assert!(text.starts_with("I am not sure of an answer") && text.contains("not proven"), "{text}");
    assert!(!text.contains("77") && !text.contains("88"), "{text}");
    // No query at all.
    let nothing = Arc::new(from_value(json!({"runs": [{"turns": [{"events": [{"text": "It is 77."}]}]}]})).unwrap());
    let (text, assessment) = answer(&asked(&fixture, &nothing, config()).await);
    assert!(assessment.held_back && text.starts_with("This cannot be answered from the data here"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fit_makes_the_word_a_figure_for_its_model() {
    let fixture = AnswersFixture::new().await;
    let fit = |model: &str| ConfidenceFit {
        model: model.to_owned(),
        questions: 200,
        calibration_error: 0.05,
        intercept: 1.5,
        weights: [("found_nothing".to_owned(), -3.0)].into(),
    };
    for (name, figure) in [("scripted", Some(0.82)), ("another", None)] {
        let config = AgentConfig { confidence: Some(fit(name)), ..AgentConfig::default() };
        let (_, assessment) = answer(&asked(&fixture, &model(RIGHT, OTHER, "There are 2 votes."), config).await);
        let confidence = assessment.confidence.unwrap();
        assert_eq!((confidence.probability, confidence.level), (figure, ConfidenceLevel::Likely), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_doubt_lowers_the_word() {
    let fixture = AnswersFixture::new().await;
    let repaired = model("SELECT count(*) AS n FROM votes WHERE state = 'CA'", OTHER, "There are 2 votes.");
    let (_, assessment) = answer(&asked(&fixture, &repaired, AgentConfig::default()).await);
    let confidence = assessment.confidence.unwrap();
    assert_eq!(confidence.level, ConfidenceLevel::Unsure, "{confidence:?}");
    assert!(confidence.reasons.concat().contains("was repaired"), "{confidence:?}");
    let greeting = Arc::new(from_value(json!({"runs": [{"turns": [{"events": [{"text": "Hello!"}]}]}]})).unwrap());
    let (_, assessment) = answer(&asked(&fixture, &greeting, AgentConfig::default()).await);
    assert_eq!(assessment.confidence, None, "a greeting has none");
}

/// A small model that sends a query that fails, again and again, and writes `fenced` where it is asked in the plain form.
fn stubborn(fenced: &str) -> Arc<ScriptedModel> {
    let again = json!({"events": [run_sql("SELECT zzz FROM qqq")]});
    let runs = json!({
        "capabilities": {"tool_style": "native", "thinking": false, "small": true, "context_tokens": 8192},
        "runs": [
            {"when": "Given this schema", "turns": [{"events": [{"text": format!("```sql\n{fenced}\n```")}]}]},
            {"turns": [again, again, {"events": [{"text": "There are 2 votes."}]}], "repeat_last": true},
        ],
    });
    Arc::new(from_value(runs).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_second_failure_the_model_is_asked_in_the_plain_form() {
    let fixture = AnswersFixture::new().await;
    let model = stubborn("SELECT count(*) AS n FROM votes WHERE state = 'CA'");
    let events = asked(&fixture, &model, with(Voting::Off)).await;
    let results = results(&events);
    assert_eq!(results[0].result["error"]["code"], "table_not_found");
    assert_eq!(results[1].result["rows"], json!([{"n": 2}]), "{}", results[1].result);
    assert_eq!(results[1].result["asked_again"]["database"], "voter_1");
    let requests = model.requests();
    let plain = requests.iter().find(|request| request.messages.len() == 1).unwrap();
    let prompt = &plain.messages[0].content;
    assert!(prompt.contains("CREATE TABLE votes (") && prompt.contains(QUESTION), "{prompt}");
    assert!(plain.tools.is_empty());
    let used = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => answer.sql_used.clone(),
        _ => None,
    });
    assert_eq!(used.as_deref(), Some("SELECT count(*) AS n FROM voter_1.votes WHERE state = 'CA'"), "it runs anywhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_the_plain_form_that_fails_changes_nothing() {
    let fixture = AnswersFixture::new().await;
    let model = stubborn("SELECT yyy FROM ppp");
    let events = asked(&fixture, &model, with(Voting::Off)).await;
    let results = results(&events);
    assert_eq!(results[1].result["error"]["code"], "repeated_tool_failure", "{}", results[1].result);
    assert_eq!(model.requests().iter().filter(|request| request.messages.len() == 1).count(), 1);
}

//! How far an answer is to be trusted, in each protocol at the place that its clients leave for a server's own.

use chrono::{DateTime, Utc};
use querent_agent::protocols::a2a::{A2aRenderer, A2aVersion};
use querent_agent::protocols::adk::{AdkRenderer, AdkView};
use querent_agent::protocols::ag_ui::AgUiRenderer;
use querent_agent::protocols::chat::ChatRenderer;
use querent_agent::protocols::cube::CubeRenderer;
use querent_agent::protocols::holmes::{ApprovalSigner, HolmesRenderer};
use querent_agent::protocols::ksadk::SessionEventRenderer;
use querent_agent::protocols::messages::MessagesRenderer;
use querent_agent::protocols::responses::{ResponsesDialect, ResponsesRenderer};
use querent_agent::protocols::{Renderer, ask::AskRenderer};
use querent_agent::{
    AnswerAssessment, AnswerFinal, AnswerReading, Confidence, ConfidenceLevel, EventKind, RunEvent, RunFinished,
    RunOutcome, RunStarted, TextPhase, Trigger, Usage, WaitingCall,
};
use serde_json::{Value, json};
use uuid::Uuid;

struct NoApprovals;

impl ApprovalSigner for NoApprovals {
    fn sign(&self, _: &WaitingCall, _: DateTime<Utc>) -> String {
        String::new()
    }
}

fn assessment() -> AnswerAssessment {
    let reading =
        |sql: &str, n: u64| AnswerReading { sql: sql.to_owned(), first_row: json!({ "n": n }), row_count: 1, votes: 1 };
    AnswerAssessment {
        confidence: Some(Confidence {
            level: ConfidenceLevel::Doubtful,
            probability: None,
            reasons: vec!["nothing in the data is called `bags`".to_owned()],
        }),
        missing: vec!["bags".to_owned()],
        readings: vec![reading("SELECT 12", 12), reading("SELECT 15", 15)],
        asks_back: true,
        ..AnswerAssessment::default()
    }
}

/// A run that answers at once; what is said beside the answer is `assessment`.
fn log(assessment: AnswerAssessment) -> Vec<RunEvent> {
    let run_id = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0002);
    let item_id = "msg_1".to_owned();
    let text = "There are 12.".to_owned();
    let kinds = [
        EventKind::RunStarted(Box::new(RunStarted {
            run_id,
            model: "scripted".to_owned(),
            question: "how many bags?".to_owned(),
            protocol: "ask".to_owned(),
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            trigger: Trigger::New,
            history_len: 0,
            request: json!({}),
            input: Value::Null,
        })),
        EventKind::TextStarted { item_id: item_id.clone() },
        EventKind::TextDelta { item_id: item_id.as_str().into(), text: text.clone() },
        EventKind::TextDone { item_id: item_id.clone(), text: text.clone(), phase: TextPhase::FinalAnswer },
        EventKind::AnswerFinal(Box::new(AnswerFinal {
            item_id,
            text,
            structured: false,
            cut: false,
            filtered: false,
            kql_used: None,
            sql_used: None,
            ticket: None,
            proof: Vec::new(),
            assessment,
        })),
        EventKind::RunFinished(Box::new(RunFinished {
            run_id,
            outcome: RunOutcome::Success,
            usage: Usage::default(),
            last_usage: Default::default(),
            llm_calls: 1,
            cost: None,
        })),
    ];
    let at: DateTime<Utc> = "2026-05-02T10:14:22Z".parse().unwrap();
    kinds.into_iter().zip(0..).map(|(kind, seq)| RunEvent { seq, at, kind }).collect()
}

/// Returns the data of all frames that are JSON.
fn rendered(renderer: &mut dyn Renderer, log: &[RunEvent]) -> Vec<Value> {
    let frames = log.iter().flat_map(|event| renderer.frame(event));
    frames.filter_map(|frame| serde_json::from_str(&frame.data).ok()).collect()
}

#[test]
fn every_protocol_says_how_far_an_answer_is_to_be_trusted() {
    let log = log(assessment());
    let is_told = |at: &Value| {
        at["confidence"]["level"] == "doubtful"
            && at["missing"] == json!(["bags"])
            && at["readings"].as_array().is_some_and(|readings| readings.len() == 2)
            && at["asks_back"] == true
    };

    let ask = rendered(&mut AskRenderer::default(), &log);
    assert!(ask.iter().any(is_told), "{ask:#?}");

    let mut responses = ResponsesRenderer::new(ResponsesDialect::OpenAi);
    let frames = rendered(&mut responses, &log);
    let completed = frames.last().unwrap();
    assert_eq!(completed["type"], "response.completed");
    assert!(is_told(&completed["response"]["assessment"]) && is_told(&responses.response()["assessment"]));

    let mut chat = ChatRenderer::new(true);
    let chunks = rendered(&mut chat, &log);
    let told: Vec<&Value> = chunks.iter().filter(|chunk| is_told(&chunk["assessment"])).collect();
    assert_eq!(told.len(), 1, "only the chunk that ends the message has it: {chunks:#?}");
    assert_eq!(told[0]["choices"][0]["finish_reason"], "stop");
    assert!(is_told(&chat.completion()["assessment"]));

    let mut messages = MessagesRenderer::default();
    let events = rendered(&mut messages, &log);
    let told: Vec<&Value> = events.iter().filter(|event| is_told(&event["assessment"])).collect();
    assert_eq!((told.len(), &told[0]["type"]), (1, &json!("message_delta")));
    assert!(is_told(&messages.message()["assessment"]));

    for version in [A2aVersion::V0_3, A2aVersion::V1_0] {
        let mut a2a = A2aRenderer::new(version, json!(1));
        let updates = rendered(&mut a2a, &log);
        let last = &updates.last().unwrap()["result"];
        let update = if version == A2aVersion::V1_0 { &last["statusUpdate"] } else { last };
        assert!(is_told(&update["metadata"]["assessment"]), "{updates:#?}");
        assert!(is_told(&a2a.task()["metadata"]["assessment"]));
    }

    let events = rendered(&mut AgUiRenderer::default(), &log);
    let [.., custom, finished] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&custom["type"], &custom["name"]), (&json!("CUSTOM"), &json!("assessment")));
    assert!(is_told(&custom["value"]) && finished["type"] == "RUN_FINISHED");

    let events = rendered(&mut AdkRenderer::new(AdkView::Whole), &log);
    assert!(events.iter().any(|event| is_told(&event["customMetadata"]["assessment"])), "{events:#?}");

    let began = log[0].at;
    let events = rendered(&mut SessionEventRenderer::new("s", began, 0), &log);
    let told = |event: &Value| event["EventType"] == "run_status" && is_told(&event["Content"]["assessment"]);
    assert!(events.iter().any(told), "{events:#?}");

    let lines = rendered(&mut CubeRenderer::default(), &log);
    let state = lines.last().unwrap().to_string();
    assert!(state.contains("response_metadata") && state.contains("doubtful"), "{state}");

    let mut holmes = HolmesRenderer::new(Box::new(NoApprovals));
    let events = rendered(&mut holmes, &log);
    let answer = events.last().unwrap();
    assert!(is_told(&answer["metadata"]["assessment"]), "{answer:#?}");
    let choices: Vec<&str> =
        answer["follow_up_actions"].as_array().unwrap().iter().filter_map(|one| one["prompt"].as_str()).collect();
    assert_eq!(choices, ["Reading 1", "Reading 2"], "a choice is a follow-up");
}

#[test]
fn where_nothing_is_known_there_is_no_field() {
    let log = log(AnswerAssessment::default());
    let mut renderers: Vec<Box<dyn Renderer>> = vec![
        Box::new(ResponsesRenderer::new(ResponsesDialect::OpenAi)),
        Box::new(ChatRenderer::new(false)),
        Box::new(MessagesRenderer::default()),
        Box::new(A2aRenderer::new(A2aVersion::V1_0, json!(1))),
        Box::new(AgUiRenderer::default()),
        Box::new(AdkRenderer::new(AdkView::Whole)),
        Box::new(SessionEventRenderer::new("s", log[0].at, 0)),
        Box::new(CubeRenderer::default()),
        Box::new(HolmesRenderer::new(Box::new(NoApprovals))),
    ];
    for renderer in &mut renderers {
        let frames = rendered(renderer.as_mut(), &log);
        assert!(!json!(frames).to_string().contains("assessment"), "{frames:#?}");
    }
}

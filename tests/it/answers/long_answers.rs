//! Answers of a model that does not stop: they are checked in bounded time, and what is not looked at is marked.

use std::time::Instant;

use querent_agent::{EventKind, ProofOrigin};
use querent_tests::script::run_sql;
use serde_json::json;

use super::AnswersFixture;

/// Far above what it takes in a debug build beside other tests, and far below what looking at every number beside every
/// other takes.
const MOST_SECONDS: u64 = 60;

#[tokio::test(flavor = "multi_thread")]
async fn eight_thousand_numbers_in_one_line_are_answered_in_bounded_time() {
    let fixture = AnswersFixture::new().await;
    let numbers = (0..8_000).map(|number| format!("{} ", 1_795_861_835_658_747_u64 + number));
    let text = format!("Station 1 had 7 rides. {}", numbers.collect::<String>());
    for sql in [
        "SELECT 'Station 1' AS name, 7 AS rides",
        "SELECT concat('Station ', value) AS name, value + 6 AS rides FROM generate_series(1, 500) AS t(value)",
    ] {
        let started = Instant::now();
        let turns = json!([{ "events": [run_sql(sql)] }, { "events": [{ "text": text }] }]);
        let events = fixture.ask("How many rides had each station?", turns).await;
        assert!(started.elapsed().as_secs() < MOST_SECONDS, "{:?}", started.elapsed());
        let said = events.iter().find_map(|event| match event {
            EventKind::AnswerFinal(answer) => Some((&answer.text, &answer.proof)),
            _ => None,
        });
        let (said, proof) = said.unwrap_or_else(|| panic!("{:?}", events.last()));
        assert_eq!(*said, text);
        let of = |number: &str| proof.iter().find(|link| link.text == number).unwrap();
        assert!(matches!(of("7").origin, ProofOrigin::Cell { .. }), "{:?}", of("7"));
        let last = of("1795861835666746");
        assert_eq!(last.origin, ProofOrigin::Unproven);
        assert_eq!((last.start, last.end), (text.len() - 17, text.len() - 1));
    }
}

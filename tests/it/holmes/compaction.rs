//! A conversation that fills the model's context is summed up before the model is asked.

use querent_tests::{SseFrame, TestServer, TestSettings};
use serde_json::{Value, json};

use super::{CHAT, answer, asked, frames, transcript_of};

#[tokio::test]
async fn a_long_conversation_is_summed_up() {
    let script = json!({ "runs": [
        { "when": "how many remained", "turns": [{ "events": [{ "text": "Four." }] }] },
        { "turns": [{ "events": [{ "text": "There were three." }], "usage": { "input_tokens": 900, "output_tokens": 30 } }],
          "repeat_last": true },
    ] });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    let mut history = vec![json!({ "role": "system", "content": "x" })];
    for _ in 0..12 {
        history.push(json!({ "role": "user", "content": "how many were there? ".repeat(40) }));
        history.push(json!({ "role": "assistant", "content": "three of them, ".repeat(60) }));
    }
    let mut body = asked("how many remained?");
    body["conversation_history"] = json!(history);
    let reply = server.post(CHAT, &body, None).await;
    let frames = frames(&reply);
    let names: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(
        names,
        [
            "conversation_history_compaction_start",
            "conversation_history_compacted",
            "ai_message",
            "token_count",
            "token_count",
            "ai_answer_end"
        ]
    );
    insta::assert_snapshot!("compacted", transcript_of(&frames.iter().map(without_counts).collect::<Vec<_>>()));
    let (start, done) = (&frames[0].data, &frames[1].data);
    let (before, after) = (&start["metadata"], &done["metadata"]);
    assert_eq!((&before["num_messages"], &before["threshold_pct"]), (&json!(26), &json!(95)));
    assert!(start["content"].as_str().unwrap().contains("26 messages"));
    assert_eq!(before["initial_tokens"], after["initial_tokens"]);
    assert_eq!((&after["num_messages_before"], &after["num_messages_after"]), (&json!(26), &json!(3)));
    let tokens = |name: &str| after[name].as_f64().unwrap();
    let saved = 100.0 - tokens("compacted_tokens") * 100.0 / tokens("initial_tokens");
    assert!((tokens("compression_ratio_pct") - saved).abs() < 0.06, "{after}");
    assert_eq!(done["compaction_summary"], "<analysis>\nThere were three.\n</analysis>");
    assert_eq!(
        after["compaction_cost"],
        json!({ "total_cost": 0.0, "prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930 })
    );
    let roles: Vec<&Value> = done["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "user"]);
    assert_eq!(frames[2].data["content"], done["content"]);
    assert!(frames[3].data["metadata"]["max_tokens"].as_u64().unwrap() > 0);
    let answer = answer(&reply);
    assert_eq!((&answer["analysis"], &answer["metadata"]["costs"]["num_compactions"]), (&json!("Four."), &json!(1)));
    assert_eq!(answer["conversation_history"].as_array().unwrap().len(), 4);
}

/// Masks token counts, which change with the words of the prompt and here stand in a sentence.
fn without_counts(frame: &SseFrame) -> SseFrame {
    let mut frame = frame.clone();
    if let Some(content) = frame.data["content"].as_str() {
        let words = content.split(' ').map(|word| match word.trim_start_matches('(').parse::<u64>() {
            Ok(count) if count > 26 => word.replace(&count.to_string(), "[count]"),
            _ => word.to_owned(),
        });
        frame.data["content"] = json!(words.collect::<Vec<_>>().join(" "));
    }
    frame
}

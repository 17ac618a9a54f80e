//! The older Completions: a prompt is a question, and its answer a text.

use serde_json::{Value, json};

use super::serve;

const PATH: &str = "/v1/completions";

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_answered_whole_or_in_chunks() {
    let server = serve().await;
    let body = json!({ "model": "any", "prompt": "thanks", "n": 1 });
    let told = server.post(PATH, &body, Some("ann-tok")).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let completion = told.json();
    let choice = json!({ "text": "You are welcome.", "index": 0, "logprobs": null, "finish_reason": "stop" });
    assert_eq!((&completion["object"], &completion["choices"]), (&json!("text_completion"), &json!([choice])));
    assert!(completion["id"].as_str().unwrap().starts_with("cmpl-") && completion["model"] == "any", "{completion}");

    let options = json!({ "include_usage": true });
    let body = json!({ "model": "any", "prompt": "thanks", "stream": true, "stream_options": options });
    let frames = server.post(PATH, &body, Some("ann-tok")).await.text;
    let chunks: Vec<Value> = frames
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"))
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
        .collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(text, "You are welcome.", "{frames}");
    assert!(chunks.last().unwrap()["usage"]["total_tokens"].is_u64(), "{frames}");
    assert!(frames.trim_end().ends_with("data: [DONE]"), "{frames}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_fails_is_an_error() {
    let server = serve().await;
    let failed = server.post(PATH, &json!({ "prompt": "fail" }), Some("ann-tok")).await;
    assert_eq!(failed.status, 502, "{}", failed.text);
    let refused = server.post(PATH, &json!({ "prompt": "thanks", "logprobs": 3 }), Some("ann-tok")).await;
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("logprobs")), "{}", refused.text);
    for prompt in [json!(""), json!(" \n"), json!([""]), json!([]), json!("x".repeat(300_000))] {
        let refused = server.post(PATH, &json!({ "prompt": prompt }), Some("ann-tok")).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("prompt")), "{}", refused.text);
        assert!(refused.text.contains("`prompt`"), "{}", refused.text);
    }
}

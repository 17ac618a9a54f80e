//! The prompt that the model gets: its sections by request and by setting, and the application's additions.

use querent_agent::SECTION_KEYS;
use querent_agent::models::ChatMessage;
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::{CHAT, asked};

#[tokio::test]
async fn each_section_that_is_switched_off_changes_the_prompt() {
    let server = started_with(&[]).await;
    let all: Value = SECTION_KEYS.iter().map(|key| ((*key).to_owned(), json!(true))).collect();
    let whole = told(&server, &all).await;
    for (index, key) in SECTION_KEYS.iter().enumerate() {
        let mut controls = all.clone();
        // Case does not matter.
        controls.as_object_mut().unwrap().remove(*key);
        controls[key.to_uppercase()] = json!(false);
        let [system, user] = told(&server, &controls).await;
        let of_system = index < 10;
        assert_eq!((system != whole[0], user != whole[1]), (of_system, !of_system), "{key}");
    }
}

#[tokio::test]
async fn the_server_says_which_sections_there_may_be() {
    let server = started_with(&["files", "ai_safety", "no_such_section"]).await;
    let [system, _] = told(&server, &json!({ "intro": true, "style_guide": true })).await;
    assert!(system.contains("never repeat passwords") && !system.contains("answer questions about data"), "{system}");
    let server = started_with(&["none"]).await;
    let [system, user] =
        told(&server, &json!({ "intro": true, "unknown": true, "system_prompt_additions": true })).await;
    assert!(system.starts_with("Answer the question."), "{system}");
    assert!(!user.contains("Today is") && !user.contains("Attached"), "{user}");
}

#[tokio::test]
async fn the_application_and_the_operator_add_to_the_instructions() {
    let server = started_with(&[]).await;
    let [system, _] = told(&server, &json!({})).await;
    assert!(system.contains("Weigh every word.") && system.contains("Prices are in euros."), "{system}");
    assert!(system.contains("the cluster `west`"), "{system}");
    let [system, _] = told(&server, &json!({ "system_prompt_additions": false })).await;
    assert!(!system.contains("Weigh every word.") && !system.contains("Prices are in euros."), "{system}");
}

async fn started_with(enabled: &[&str]) -> TestServer {
    let enabled: Vec<String> = enabled.iter().map(|name| (*name).to_owned()).collect();
    let settings = TestSettings::default().script(super::script()).change(|settings| {
        settings.holmes.enabled_prompts = Some(enabled).filter(|enabled| !enabled.is_empty());
        settings.holmes.cluster_name = Some("west".to_owned());
        settings.holmes.system_prompt_additions = Some("Weigh every word.".to_owned());
    });
    TestServer::start(settings).await
}

/// Returns the system's and the user's message of a question about the time, with a picture.
async fn told(server: &TestServer, controls: &Value) -> [String; 2] {
    let mut body = asked("plain: what happened today?");
    body["behavior_controls"] = controls.clone();
    body["additional_system_prompt"] = json!("Prices are in euros.");
    body["images"] = json!(["data:image/png;base64,aGk="]);
    let reply = server.post(CHAT, &body, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let messages: Vec<ChatMessage> = server.model.requests().last().unwrap().messages.clone();
    [messages[0].content.clone(), messages[1].content.clone()]
}

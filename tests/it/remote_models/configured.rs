//! The list of models in the settings: how it is read, what is refused, fallbacks, and a run over it.

use std::sync::Arc;

use querent_agent::models::configured::{EntrySettings, ProviderSettings, open_list};
use querent_agent::models::remote::{RemoteKind, RemoteSettings, RetryPolicy};
use querent_agent::models::{ModelEvent, Models, Price};
use querent_catalog::NoProgress;
use querent_flight::Server;
use querent_flight::config::{Config, EmbedProviderName, Origin, SettingSources};
use querent_tests::collect_sse;
use serde_json::json;
use tempfile::TempDir;

use super::provider::{CannedAnswer, Provider};
use super::said;
use crate::models::{collect_turn, question};

#[tokio::test]
async fn another_model_stands_in_before_the_first_piece_only() {
    let busy = || CannedAnswer::status(429, &json!({"error": {"message": "slow down"}}));
    let (first, second, third) = (
        Provider::start(vec![busy()]).await,
        Provider::start(vec![busy()]).await,
        Provider::start(vec![said("I am")]).await,
    );
    let models =
        open_list(&[entry("a", &first, &["B", "c"]), entry("b", &second, &[]), entry("c", &third, &[])]).unwrap();
    assert_eq!(answer(&models).await.unwrap(), "I am");
    assert_eq!((first.requests().len(), second.requests().len(), third.requests().len()), (1, 1, 1));

    // A wrong key would be wrong tomorrow too.
    let wrong = Provider::start(vec![CannedAnswer::status(401, &json!({"error": {"message": "no"}}))]).await;
    let models = open_list(&[entry("a", &wrong, &["c"]), entry("c", &third, &[])]).unwrap();
    assert_eq!(answer(&models).await.unwrap_err().code(), "model_auth");

    // What was said is not said again by another.
    let broken =
        Provider::start(vec![CannedAnswer::data(&[json!({"choices": [{"index": 0, "delta": {"content": "a"}}]})])])
            .await;
    let models = open_list(&[entry("a", &broken, &["c"]), entry("c", &third, &[])]).unwrap();
    assert_eq!(answer(&models).await.unwrap_err().code(), "model_failed");
    assert_eq!(third.requests().len(), 1);

    // Nobody can: the first says why.
    let mut gone = entry("a", &first, &["b"]);
    let ProviderSettings::Remote(remote) = &mut gone.provider else { panic!("not remote") };
    remote.base_url = Some("http://127.0.0.1:9/v1".to_owned());
    let models = open_list(&[gone.clone(), entry("b", &second, &[])]).unwrap();
    assert_eq!(answer(&models).await.unwrap_err().code(), "model_unreachable");
    let models = open_list(&[gone, entry("b", &third, &[])]).unwrap();
    assert!(models.default_entry().capabilities().await.is_ok());
}

#[tokio::test]
async fn an_entry_bounds_its_output() {
    let server = Provider::start(vec![said("ok")]).await;
    let models = open_list(&[EntrySettings { max_output_tokens: Some(100), ..entry("a", &server, &[]) }]).unwrap();
    answer(&models).await.unwrap();
    assert_eq!(server.requests()[0].body["max_tokens"], 100);
}

#[tokio::test]
async fn a_list_is_read_from_the_file() {
    let (_folder, sources) = file(
        r#"
        [agent]
        ollama_host = "http://elsewhere:1"
        [[agent.models]]
        name = "fast"
        provider = "ollama"
        model = "qwen3:8b"
        [[agent.models]]
        name = "deep"
        provider = "anthropic"
        model = "claude-sonnet-4-6"
        context_tokens = 100000
        max_output_tokens = 4096
        price = { input = 3, output = 15.0, cached_input = 0.3 }
        fallbacks = ["Fast"]
        tool_style = "native"
        [[agent.models]]
        name = "local"
        provider = "openai"
        base_url = "http://localhost:8000/v1"
        "#,
    );
    querent_flight::install_crypto_provider();
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.warnings, ["model `deep` has no key: environment variable ANTHROPIC_API_KEY is not set"]);
    let shown = config.effective().into_iter().find(|setting| setting.key.path == "agent.models").unwrap();
    assert_eq!(shown.value, "fast, deep, local");

    let models = config.settings.models().await.unwrap();
    assert_eq!(models.default_entry().name, "fast");
    assert_eq!(models.default_entry().provider.model_id(), "qwen3:8b");
    let deep = models.named("DEEP").unwrap();
    assert_eq!(deep.price, Some(Price { input: 3.0, output: 15.0, cached_input: Some(0.3) }));
    assert_eq!((deep.context_tokens, deep.max_output_tokens), (Some(100_000), Some(4_096)));
    assert_eq!(models.named("local").unwrap().provider.model_id(), "local");
    assert!(models.named("gemma4:latest").is_none());

    // A flag or a variable chooses the default.
    let config = Config::load(&sources.clone().with_flag("agent.model", "Deep")).unwrap();
    assert_eq!(config.settings.models().await.unwrap().default_entry().name, "deep");
    let unknown = Config::load(&sources.with_flag("agent.model", "other")).unwrap_err().to_string();
    assert!(unknown.contains("fast, deep, local"), "{unknown}");

    // Without a list there is the one model, as ever.
    let models = Config::load(&SettingSources::default()).unwrap().settings.models().await.unwrap();
    assert_eq!(models.default_entry().name, "gemma4:latest");
    assert_eq!(models.entries().count(), 1);
}

#[test]
fn an_error_names_what_is_wrong_with_an_entry() {
    let cases = [
        ("provider = \"openai\"", &["agent.models", "name"][..]),
        ("name = \"a\"\nprovider = \"mistral\"", &["agent.models", "ollama", "openai"]),
        ("name = \"a\"\nprovider = \"openai\"\nbase_ur = \"x\"", &["base_ur", "base_url"]),
        ("name = \"\"\nprovider = \"openai\"", &["model 1", "`name`"]),
        ("name = \"a\"\nprovider = \"openai\"\nbase_url = \"localhost:1\"", &["model 1 (`a`)", "https://host/v1"]),
        ("name = \"a\"\nprovider = \"openai\"\napi_key_env = \"sk-s3cret\"", &["name of an environment variable"]),
        ("name = \"a\"\nprovider = \"ollama\"\napi_key_env = \"KEY\"", &["takes no key"]),
        ("name = \"a\"\nprovider = \"openai\"\ncontext_tokens = 0", &["context_tokens"]),
        ("name = \"a\"\nprovider = \"openai\"\nprice = { input = -1, output = 1 }", &["price"]),
        ("name = \"a\"\nprovider = \"openai\"\nfallbacks = [\"b\"]", &["fallback `b`"]),
        ("name = \"a\"\nprovider = \"openai\"\nfallbacks = [\"A\"]", &["stand in for itself"]),
        (
            "name = \"a\"\nprovider = \"openai\"\n[[agent.models]]\nname = \"A\"\nprovider = \"gemini\"",
            &["model 2", "twice"],
        ),
    ];
    for (text, expected) in cases {
        let (_folder, sources) = file(&format!("[[agent.models]]\n{text}\n"));
        let message = Config::load(&sources).expect_err(text).to_string();
        assert!(!message.contains("s3cret"), "{message}");
        for words in expected {
            assert!(message.contains(words), "{text}: {message}");
        }
    }
    let said = Config::load(&SettingSources::default().with_flag("agent.models", "a")).unwrap_err().to_string();
    assert!(said.contains("[[agent.models]]"), "{said}");
    assert_eq!(Config::load(&SettingSources::default()).unwrap().origin("agent.models"), Origin::Default);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_a_provider_of_the_list() {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{
        "index": 0, "id": "call_abcdefgh", "type": "function",
        "function": {"name": "run_sql", "arguments": "{\"sql\": \"SELECT 40 + 2 AS n\"}"},
    }]}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let provider = Provider::start(vec![CannedAnswer::chat(&[call, end]), said("It is 42.")]).await;
    let data = TempDir::new().unwrap();
    let (_folder, sources) = file(&format!(
        "[[agent.models]]\nname = \"big\"\nprovider = \"openai\"\nbase_url = \"{}\"\n",
        provider.base_url()
    ));
    let sources = sources.with_flag("listen", "127.0.0.1:0").with_flag("data", data.path().to_str().unwrap());
    let mut settings = Config::load(&sources).unwrap().settings;
    settings.embed.provider = EmbedProviderName::None;
    let server = Server::start(Config::from_settings(settings).unwrap(), Arc::new(NoProgress)).await.unwrap();
    assert_eq!(server.state().agent.models().default_entry().name, "big");

    let url = format!("http://{}/v1/agent/ask", server.addr);
    let asked = reqwest::Client::new().post(url).json(&json!({"question": "what is 40 + 2?"})).send().await.unwrap();
    let frames = collect_sse(&asked.text().await.unwrap());

    let last = frames.iter().find(|frame| frame.event == "answer_final").unwrap_or_else(|| panic!("{frames:?}"));
    assert_eq!(last.data["text"], "It is 42.");
    let told = &provider.requests()[1].body["messages"];
    let result = told.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!(result["tool_call_id"], "call_abcdefgh");
    assert!(result["content"].as_str().unwrap().contains("42"), "{result}");
    server.shutdown().await.unwrap();
}

fn entry(name: &str, server: &Provider, fallbacks: &[&str]) -> EntrySettings {
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    EntrySettings {
        name: name.to_owned(),
        provider: ProviderSettings::Remote(RemoteSettings { retry, ..server.settings(RemoteKind::OpenAi, name) }),
        price: None,
        context_tokens: None,
        max_output_tokens: None,
        fallbacks: fallbacks.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The default model's answer.
async fn answer(models: &Models) -> querent_agent::Result<String> {
    let events = collect_turn(models.default_entry().provider.chat(question("hi")).await).await?;
    let texts = events.iter().filter_map(|event| match event {
        ModelEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Ok(texts.collect())
}

pub(super) fn file(text: &str) -> (TempDir, SettingSources) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("querent.toml");
    std::fs::write(&path, text).unwrap();
    (folder, SettingSources::default().with_file(path))
}

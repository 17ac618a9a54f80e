//! The time of a run whose model is computed by its user's own machine, perhaps without a GPU.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use querent_agent::models::scripted::{ScriptedModel, from_value};
use querent_agent::models::{ChatRequest, ModelCapabilities, ModelEvent, ModelProvider};
use querent_agent::{Agent, AgentConfig, AgentError};
use querent_catalog::Principal;
use querent_engine::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Transcript, question, turn};

/// A script as a model of this machine.
struct SelfHosted(ScriptedModel);

#[async_trait]
impl ModelProvider for SelfHosted {
    fn model_id(&self) -> &str {
        self.0.model_id()
    }

    fn is_self_hosted(&self) -> bool {
        true
    }

    async fn capabilities(&self) -> Result<ModelCapabilities, AgentError> {
        self.0.capabilities().await
    }

    async fn chat(
        &self,
        request: ChatRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, AgentError>>, AgentError> {
        self.0.chat(request).await
    }
}

async fn ask(turns: Value, usual_ms: u64, slow_ms: u64) -> Transcript {
    let folder = TempDir::new().unwrap();
    let engine = Engine::open(folder.path()).await.unwrap();
    let model = SelfHosted(from_value(json!({"runs": [{"turns": turns}]})).unwrap());
    let config = AgentConfig {
        run_timeout: Duration::from_millis(usual_ms),
        slow_run_timeout: Duration::from_millis(slow_ms),
        ..AgentConfig::default()
    };
    let agent = Agent::new(engine, Arc::new(model), config);
    let run = agent.ask(&Principal::local_admin(), question("How many?", false)).await.unwrap();
    Transcript::of(&run.events.collect::<Vec<_>>().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_more_time_where_its_first_token_is_late() {
    let turns = json!([turn(json!([{"delay_ms": 700}, {"text": "It is "}, {"delay_ms": 700}, {"text": "42."}]))]);
    let transcript = ask(turns.clone(), 500, 60_000).await;
    assert!(transcript.text.contains("It is 42."), "{}", transcript.text);
    let transcript = ask(turns, 500, 500).await;
    assert!(transcript.text.contains("said nothing within 0.5 s"), "{}", transcript.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_no_more_time_where_the_model_is_quick_and_then_silent() {
    let transcript = ask(json!([turn(json!([{"text": "Let me see"}, "hang"]))]), 4_000, 600_000).await;
    assert!(transcript.text.contains("the run took longer than 4 s"), "{}", transcript.text);
}

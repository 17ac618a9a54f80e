//! Model providers that refuse: their status for one answer, their error event in a stream.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use querent_agent::models::{ChatRequest, ModelCapabilities, ModelEvent, ModelProvider, Models, ToolStyle};
use querent_agent::{AgentError, Result};
use querent_tests::collect_sse;
use serde_json::{Value, json};

use super::serving;

#[tokio::test]
async fn a_providers_refusal_has_its_status_and_its_code() {
    for (refusal, when, status, code) in [
        (ScriptedRefusal::Key, When::Asked, 401, 1),
        (ScriptedRefusal::Key, When::Begun, 401, 1),
        (ScriptedRefusal::Limit, When::Asked, 429, 5_204),
        (ScriptedRefusal::Limit, When::Begun, 429, 5_204),
        (ScriptedRefusal::Fault, When::Asked, 500, 1),
        (ScriptedRefusal::Fault, When::Begun, 500, 1),
    ] {
        let (server, _data) = serving(Models::single(Arc::new(Refusing { refusal, when }))).await;
        let url = format!("http://{}/api/chat", server.addr);
        let client = reqwest::Client::new();
        let whole = client.post(&url).json(&json!({ "ask": "plain" })).send().await.unwrap();
        assert_eq!(whole.status().as_u16(), status, "{refusal:?} {when:?}");
        let detail: Value = whole.json().await.unwrap();
        let why = detail["detail"].as_str().unwrap().to_owned();
        assert!(why.contains("no more"), "{detail}");

        let streamed = client.post(&url).json(&json!({ "ask": "plain", "stream": true })).send().await.unwrap();
        assert_eq!(streamed.status().as_u16(), 200);
        let frames = collect_sse(&streamed.text().await.unwrap());
        let last = frames.last().unwrap();
        let message = if code == 1 { why.as_str() } else { "Rate limit exceeded" };
        let error = json!({ "description": why, "error_code": code, "msg": message, "success": false });
        assert_eq!((last.event.as_str(), &last.data), ("error", &error), "{refusal:?} {when:?}");
        server.shutdown().await.unwrap();
    }
}

#[derive(Debug, Clone, Copy)]
enum ScriptedRefusal {
    Key,
    Limit,
    Fault,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Begun,
    Asked,
}

struct Refusing {
    refusal: ScriptedRefusal,
    when: When,
}

impl Refusing {
    fn error(&self) -> AgentError {
        let (host, detail) = ("host".to_owned(), "no more".to_owned());
        match self.refusal {
            ScriptedRefusal::Key => AgentError::ModelAuth { host, detail },
            ScriptedRefusal::Limit => AgentError::ModelRateLimited { host, detail },
            ScriptedRefusal::Fault => AgentError::ModelFailed { detail },
        }
    }
}

#[async_trait]
impl ModelProvider for Refusing {
    fn model_id(&self) -> &str {
        "refusing"
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        match self.when {
            When::Begun => Err(self.error()),
            When::Asked => Ok(ModelCapabilities {
                tool_style: ToolStyle::Native,
                thinking: false,
                small: false,
                context_tokens: None,
                images: false,
            }),
        }
    }

    async fn chat(&self, _: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        Err(self.error())
    }
}

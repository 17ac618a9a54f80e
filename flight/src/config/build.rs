//! From settings to the parts they describe: the embedder, the language model, the engine's and the agent's options.

use std::path::PathBuf;
use std::sync::Arc;

use querent_agent::models::{self, ModelProvider, ModelSettings, ToolStyleSetting};
use querent_agent::{AgentConfig, AgentError};
use querent_catalog::index::embed;
use querent_catalog::{CatalogError, Progress};
use querent_engine::{EngineOptions, Limits};

use super::{EmbedProvider, Settings, ToolStyleName};

impl Settings {
    /// How to open the engine. Loads no model yet. Errors: `embedder_error`.
    pub fn engine_options(&self, progress: Arc<dyn Progress>) -> Result<EngineOptions, CatalogError> {
        let provider = match self.embed.provider {
            EmbedProvider::Fastembed => embed::EmbedProvider::Fastembed,
            EmbedProvider::Model2vec => embed::EmbedProvider::Model2vec,
            EmbedProvider::None => embed::EmbedProvider::None,
        };
        let model = self.embed.model.as_deref().unwrap_or_else(|| provider.default_model());
        let embedder = self.embedder(provider, model, &self.embed.model_path)?;
        let reranker = match &self.embed.rerank_model {
            Some(model) => self.embedder(embed::EmbedProvider::Fastembed, model, &self.embed.rerank_model_path)?,
            None => None,
        };
        Ok(EngineOptions {
            data_dir: self.data.clone(),
            memory_bytes: self.query.pool_memory.map(|bytes| bytes.to_usize()),
            spill_bytes: self.query.spill.0,
            target_partitions: self.query.threads,
            external_roots: self.query.external_roots.clone(),
            external_urls: self.query.external_urls.clone(),
            embedder,
            reranker,
            progress,
        })
    }

    fn embedder(
        &self,
        provider: embed::EmbedProvider,
        model: &str,
        model_path: &Option<PathBuf>,
    ) -> Result<Option<Arc<dyn embed::Embedder>>, CatalogError> {
        embed::from_settings(&embed::EmbedSettings {
            provider,
            model: model.to_owned(),
            model_path: model_path.clone(),
            ort_dylib_path: self.embed.runtime.clone(),
            ..embed::EmbedSettings::default()
        })
    }

    /// The most that one query may use.
    pub fn limits(&self) -> Limits {
        Limits {
            wall_clock: self.query.timeout.0,
            memory_bytes: self.query.memory.to_usize(),
            max_rows: None,
            max_bytes: None,
        }
    }

    /// How the agent works.
    pub fn agent_config(&self) -> AgentConfig {
        AgentConfig {
            run_timeout: self.agent.run_timeout.0,
            max_tool_calls: self.agent.max_tool_calls,
            max_concurrent_runs: self.agent.max_concurrent_runs,
            ..AgentConfig::default()
        }
    }

    /// The language model. Nothing is asked of it yet: whether it is there shows when a run begins.
    /// Errors: files that cannot be read or written, an address that is none.
    pub async fn model(&self) -> Result<Arc<dyn ModelProvider>, AgentError> {
        let settings = ModelSettings {
            ollama_host: self.agent.ollama_host.clone(),
            model: self.agent.model.clone(),
            tool_style: match self.agent.tool_style {
                ToolStyleName::Auto => ToolStyleSetting::Auto,
                ToolStyleName::Native => ToolStyleSetting::Native,
                ToolStyleName::Actions => ToolStyleSetting::Actions,
            },
            script: self.agent.script.clone(),
            replay: self.agent.replay.clone(),
            record: self.agent.record.clone(),
        };
        models::open(&settings).await
    }
}

//! Builds the parts that the settings describe: the embedder, the language models, the engine's and the agent's options.

use std::path::PathBuf;
use std::sync::Arc;

use querent_agent::models::{self, ModelProvider, ModelSettings, Models};
use querent_agent::{AgentConfig, AgentError, CheckTimes};
use querent_catalog::index::embed;
use querent_catalog::outbound::ApiKey;
use querent_catalog::{CatalogError, Progress};
use querent_engine::{EngineOptions, Limits, SlotLimits};

use super::{EmbedProviderName, HttpSettings, QuerySettings, Settings};

impl QuerySettings {
    /// Returns how many queries run beside each other, and how many wait for that; no more run than `capacity` says.
    pub(crate) fn slot_limits(&self, capacity: Option<usize>) -> SlotLimits {
        let mut slots = if self.max_concurrent == 0 { usize::MAX } else { self.max_concurrent };
        if let Some(capacity) = capacity.filter(|capacity| *capacity < slots) {
            tracing::warn!(
                queries = capacity,
                "the process may have few threads: no more queries run at once, whatever `query.max_concurrent` says; \
                 raise the limit of its control group (`pids.max`, `TasksMax=`) or its user (`ulimit -u`)"
            );
            slots = capacity;
        }
        SlotLimits::shared(slots, self.max_concurrent_per_caller, self.max_queued)
    }
}

impl HttpSettings {
    /// Returns how many connections one address may have open.
    pub(crate) fn connections_of_address(&self) -> usize {
        match self.max_connections_per_address {
            Some(0) => self.max_connections,
            Some(most) => most,
            None => self.max_connections - self.max_connections / 8,
        }
    }
}

impl Settings {
    /// Returns the options to open the engine with. No model is loaded yet. Errors: `embedder_error`.
    pub fn engine_options(&self, progress: Arc<dyn Progress>) -> Result<EngineOptions, CatalogError> {
        let provider = match self.embed.provider {
            EmbedProviderName::Fastembed => embed::EmbedProvider::Fastembed,
            EmbedProviderName::Model2vec => embed::EmbedProvider::Model2vec,
            EmbedProviderName::Ollama => embed::EmbedProvider::Ollama,
            EmbedProviderName::OpenAi => embed::EmbedProvider::OpenAi,
            EmbedProviderName::Gemini => embed::EmbedProvider::Gemini,
            EmbedProviderName::None => embed::EmbedProvider::None,
        };
        let model = self.embed.model.as_deref().unwrap_or_else(|| provider.default_model());
        let embedder = self.embedder(provider, model, &self.embed.model_path)?;
        let reranker = match &self.embed.rerank_model {
            Some(model) => self.embedder(embed::EmbedProvider::Fastembed, model, &self.embed.rerank_model_path)?,
            None => None,
        };
        Ok(EngineOptions {
            data_dir: self.data.clone(),
            catalog_url: self.catalog.url.clone(),
            data_path: self.data_path.clone(),
            file_cache_bytes: self.query.file_cache.0,
            memory_bytes: self.query.pool_memory.map(|bytes| bytes.to_usize()),
            column_cache_bytes: self.query.column_cache.map(|bytes| bytes.to_usize()),
            plan_cache_bytes: self.query.plan_cache.to_usize(),
            result_cache_bytes: self.query.result_cache.to_usize(),
            resident_bytes: self.query.process_memory.map(|bytes| bytes.to_usize()),
            spill_bytes: self.query.spill.0,
            target_partitions: self.query.threads,
            external_roots: self.query.external_roots.clone(),
            external_urls: self.query.external_urls.clone(),
            scan_limits: self.query.scan_limits(),
            embedder,
            reranker,
            slow_query: self.log.slow_query.map(|time| time.0),
            datafusion_settings: Vec::new(),
            cluster: None,
            progress,
        })
    }

    /// Returns the options of a worker, which has no catalog and embeds nothing.
    pub(crate) fn worker_options(&self, progress: Arc<dyn Progress>) -> EngineOptions {
        EngineOptions {
            data_path: self.data_path.clone(),
            file_cache_bytes: self.query.file_cache.0,
            memory_bytes: self.query.pool_memory.map(|bytes| bytes.to_usize()),
            column_cache_bytes: self.query.column_cache.map(|bytes| bytes.to_usize()),
            resident_bytes: self.query.process_memory.map(|bytes| bytes.to_usize()),
            spill_bytes: self.query.spill.0,
            target_partitions: self.query.threads,
            external_urls: self.query.external_urls.clone(),
            progress,
            ..EngineOptions::new(&self.data)
        }
    }

    fn embedder(
        &self,
        provider: embed::EmbedProvider,
        model: &str,
        model_path: &Option<PathBuf>,
    ) -> Result<Option<Arc<dyn embed::Embedder>>, CatalogError> {
        let usual_variable = provider.default_key_variable();
        let api_key_variable = self.embed.api_key_env.clone().or_else(|| usual_variable.map(str::to_owned));
        embed::from_settings(&embed::EmbedSettings {
            provider,
            model: model.to_owned(),
            base_url: match provider {
                embed::EmbedProvider::Ollama => Some(self.embed_host()),
                _ => self.embed.base_url.clone(),
            },
            api_key: api_key_variable.as_ref().and_then(|name| std::env::var(name).ok()).and_then(ApiKey::new),
            api_key_variable,
            model_path: model_path.clone(),
            ort_dylib_path: self.embed.runtime.clone(),
            ..embed::EmbedSettings::default()
        })
    }

    /// Returns the Ollama server that embeds. Ollama's addresses are usually written without a scheme.
    fn embed_host(&self) -> String {
        let host = self.embed.base_url.as_ref().unwrap_or(&self.agent.ollama_host);
        if host.contains("://") { host.clone() } else { format!("http://{host}") }
    }

    /// Returns the limits of one query.
    pub fn limits(&self) -> Limits {
        Limits {
            wall_clock: self.query.timeout.0,
            reader_idle: self.query.reader_idle.0,
            memory_bytes: self.query.memory.to_usize(),
            max_rows: None,
            max_bytes: None,
        }
    }

    /// Returns the agent's configuration.
    pub fn agent_config(&self) -> AgentConfig {
        AgentConfig {
            run_timeout: self.agent.run_timeout.0,
            slow_run_timeout: self.agent.slow_run_timeout.0,
            max_tool_calls: self.agent.max_tool_calls,
            default_tool_rows: self.agent.default_tool_rows,
            prompt_tokens: self.agent.prompt_tokens,
            tool_result_tokens: self.agent.tool_result_tokens,
            max_concurrent_runs: self.agent.max_concurrent_runs,
            max_concurrent_runs_per_caller: self.agent.max_concurrent_runs_per_caller,
            max_queued_runs: self.agent.max_queued_runs,
            run_queue_timeout: self.agent.run_queue_timeout.0,
            check_times: CheckTimes { one: self.agent.check_timeout.0, all: self.agent.all_checks_timeout.0 },
            examples_timeout: self.agent.examples_timeout.0,
            result_bytes: self.agent.result_bytes.to_usize(),
            result_lifetime: self.agent.result_lifetime.0,
            write_tools: self.agent.write_tools,
            strict_models: self.agent.strict_models,
            restart_background: self.agent.restart_background,
            reuse_verified: self.agent.reuse_verified,
            voting: self.agent.voting,
            answer_threshold: self.agent.answer_threshold,
            confidence: self.agent.confidence.clone(),
            prompt_form: AgentConfig::DEFAULT.prompt_form,
        }
    }

    /// Returns the language models. They are not contacted before the first run.
    /// Errors: files that cannot be read or written, an invalid address.
    pub async fn models(&self) -> Result<Models, AgentError> {
        let is_played = self.agent.script.is_some() || self.agent.replay.is_some();
        if self.agent.models.is_empty() || is_played {
            return Ok(Models::single(self.model().await?));
        }
        let models = self.agent.open_models()?;
        match &self.agent.record {
            Some(recording) => models.record_default(recording).await,
            None => Ok(models),
        }
    }

    async fn model(&self) -> Result<Arc<dyn ModelProvider>, AgentError> {
        let settings = ModelSettings {
            ollama_host: self.agent.ollama_host.clone(),
            model: self.agent.model.clone(),
            tool_style: self.agent.tool_style.into(),
            script: self.agent.script.clone(),
            replay: self.agent.replay.clone(),
            record: self.agent.record.clone(),
        };
        models::open(&settings).await
    }
}

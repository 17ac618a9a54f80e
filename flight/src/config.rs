//! The server's settings: flags over environment over `querent.toml` over defaults.
//!
//! [`Config::load`] is the only reader. Mistakes are reported before anything is opened: the error for an unknown key
//! names the nearest known one, and the error for an invalid value names its source.

mod audit;
mod build;
mod catalog;
mod cluster;
mod cube;
mod flight;
mod holmes;
mod keys;
mod limits;
mod load;
mod models;
mod oidc;
mod scan_limits;
mod telemetry;
mod tls;
mod units;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use querent_agent::{AgentConfig, AnswerThreshold, ConfidenceFit, Voting};
use querent_catalog::Role;
use querent_engine::{EngineOptions, LakeUrl, Limits, UrlRoot};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use audit::AuditSettings;
pub use catalog::CatalogSettings;
pub(crate) use cluster::WorkerAddress;
pub use cluster::{ClusterRole, ClusterSettings};
pub use cube::CubeSettings;
pub use flight::FlightSettings;
pub use holmes::HolmesSettings;
pub use keys::{KEYS, SettingKey, SettingKind};
pub use load::{ConfigError, EffectiveSetting, Origin, SettingSources};
pub use models::{ModelEntrySettings, ModelProviderName};
pub use oidc::{DefaultRole, OidcSettings};
pub(crate) use oidc::{is_this_machine, provider_url};
pub use telemetry::TelemetrySettings;
pub use tls::{CertificateSettings, TlsSettings};
pub use units::{ByteSize, DurationSetting};

/// Settings that have been read and checked, with the source of each.
#[derive(Debug, Clone)]
pub struct Config {
    /// The settings.
    pub settings: Settings,
    /// Warnings for the log and `config check`.
    pub warnings: Vec<String>,
    origins: Vec<(&'static str, Origin)>,
}

/// All settings. Field names are the keys of `querent.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Address and port for HTTP and Flight SQL. Port 0 takes a free one.
    #[serde(deserialize_with = "units::listen_address")]
    pub listen: SocketAddr,
    /// The path of a socket to listen on too, without encryption; only this user may open it. Unset: none.
    pub listen_unix: Option<PathBuf>,
    /// The data folder; made when absent.
    pub data: PathBuf,
    /// The URL below which the files of managed tables are to lie; unset: where they do, in the data folder where it is new.
    pub data_path: Option<LakeUrl>,
    /// How long `/ready` answers 503 before connections are refused, so that load balancers notice.
    pub shutdown_delay: DurationSetting,
    /// How long open requests may take to end at shutdown.
    pub shutdown_timeout: DurationSetting,
    /// `[auth]`
    pub auth: AuthSettings,
    /// `[agent]`
    pub agent: AgentSettings,
    /// `[embed]`
    pub embed: EmbeddingSettings,
    /// `[query]`
    pub query: QuerySettings,
    /// `[tls]`
    pub tls: TlsSettings,
    /// `[http]`
    pub http: HttpSettings,
    /// `[flight]`
    pub flight: FlightSettings,
    /// `[mcp]`
    pub mcp: McpSettings,
    /// `[cube]`
    pub cube: CubeSettings,
    /// `[holmes]`
    pub holmes: HolmesSettings,
    /// `[catalog]`
    pub catalog: CatalogSettings,
    /// `[cluster]`
    pub cluster: ClusterSettings,
    /// `[audit]`
    pub audit: AuditSettings,
    /// `[log]`
    pub log: LogSettings,
    /// `[telemetry]`
    pub telemetry: TelemetrySettings,
}

/// The callers that are let in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthSettings {
    /// `[[auth.tokens]]`; none: every caller is an administrator, and only loopback is listened on.
    pub tokens: Vec<TokenSettings>,
    /// Whether to listen beyond loopback without tokens.
    pub allow_anonymous_remote: bool,
    /// `[auth.oidc]`: signed tokens of an identity provider.
    pub oidc: OidcSettings,
}

/// One token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSettings {
    /// The secret itself.
    pub token: String,
    /// `read`, `write` or `admin`.
    pub role: RoleName,
    /// Who the caller is: the owner of its runs. Unset: a name derived from the token, so that two tokens never share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The only databases the caller may see; unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<Vec<String>>,
}

/// A role by its name in settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// Query and ask.
    Read,
    /// Also create, insert and drop.
    Write,
    /// Everything.
    Admin,
}

/// The language model and its budgets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    /// The Ollama server.
    pub ollama_host: String,
    /// The model's name there.
    pub model: String,
    /// `[[agent.models]]`: the models that requests choose from, the first by default; none: the one model above.
    pub models: Vec<ModelEntrySettings>,
    /// Wall clock of one run.
    pub run_timeout: DurationSetting,
    /// What it grows to at most where the first tokens show that an Ollama model is slow. Where only `run_timeout` is set,
    /// that is kept.
    pub slow_run_timeout: DurationSetting,
    /// Tool calls of one run; the next one ends it.
    pub max_tool_calls: u32,
    /// Rows of a tool result when the model does not say.
    pub default_tool_rows: usize,
    /// Tokens of the first turn's prompt; fewer for a small model.
    pub prompt_tokens: usize,
    /// Tokens of the text of a tool result; fewer for a small model.
    pub tool_result_tokens: usize,
    /// Runs at once; more wait for their turn.
    pub max_concurrent_runs: usize,
    /// Runs of one caller at once; unset: seven eighths of `max_concurrent_runs`, 0: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs_per_caller: Option<usize>,
    /// Runs that wait for their turn, then 429.
    pub max_queued_runs: usize,
    /// How long a run waits for its turn, then 429.
    pub run_queue_timeout: DurationSetting,
    /// How long the query of one counter-check may take.
    pub check_timeout: DurationSetting,
    /// How long all counter-checks of a query may take.
    pub all_checks_timeout: DurationSetting,
    /// How long a run waits for values of the tables that its prompt shows.
    pub examples_timeout: DurationSetting,
    /// Bytes of queries' rows that are kept for their callers to fetch by ticket; 0: none.
    pub result_bytes: ByteSize,
    /// How long they are kept.
    pub result_lifetime: DurationSetting,
    /// Bytes that the uploaded files of one caller take, at most; 0: any.
    pub max_file_bytes_per_caller: ByteSize,
    /// Bytes that the conversations of one caller take, at most, without their runs; 0: any.
    pub max_conversation_bytes_per_caller: ByteSize,
    /// How long runs, conversations and files are kept; 0: for ever.
    pub retention: DurationSetting,
    /// Whether there are tools that write; each of their calls waits for a person.
    pub write_tools: bool,
    /// Whether a model name that is not configured is refused.
    pub strict_models: bool,
    /// Whether a response in the background begins again, once, where its server was killed.
    pub restart_background: bool,
    /// Whether a question that a verified query answers is answered by it, without a model.
    pub reuse_verified: bool,
    /// Whether queries are compared with others that the model writes: `off`, `auto`, or how many candidates.
    pub voting: Voting,
    /// Below what confidence an answer is held back: `off`, a word, or a probability.
    pub answer_threshold: AnswerThreshold,
    /// `[agent.confidence]`: coefficients that make the confidence a probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ConfidenceFit>,
    /// Whether ADK's protocol refuses a run in a session that does not exist; otherwise the session is created.
    pub adk_strict_sessions: bool,
    /// How tools are described to the model.
    pub tool_style: ToolStyleName,
    /// Write the model's streams to this file.
    pub record: Option<PathBuf>,
    /// Replay the model's streams from this file instead of calling a model.
    pub replay: Option<PathBuf>,
    /// A scripted model's turns, for tests and demonstrations.
    pub script: Option<PathBuf>,
}

/// How tools are described to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStyleName {
    /// As the model's server reports that it can.
    Auto,
    /// The provider's own tool calls.
    Native,
    /// Schema-constrained actions.
    Actions,
}

/// The embedding model of the schema search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbeddingSettings {
    /// `fastembed`, `model2vec`, `ollama`, `openai`, `gemini`, or `none` to search by name and text only.
    pub provider: EmbedProviderName,
    /// The model; unset: the provider's default.
    pub model: Option<String>,
    /// Address of the server that embeds; unset: the provider's own.
    pub base_url: Option<String>,
    /// The environment variable that holds its key; unset: the provider's usual one.
    pub api_key_env: Option<String>,
    /// Folder with `model.onnx` and the tokenizer's files; unset: the provider's own download.
    pub model_path: Option<PathBuf>,
    /// An ONNX model that reranks the best hundred tables of a search; unset: none does.
    pub rerank_model: Option<String>,
    /// Folder with its `model.onnx` and tokenizer's files; unset: downloaded on first use.
    pub rerank_model_path: Option<PathBuf>,
    /// The ONNX Runtime library; unset: the system's.
    pub runtime: Option<PathBuf>,
}

/// The provider of embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedProviderName {
    /// In process, on the processor.
    Fastembed,
    /// A static model, in process: for very large catalogs.
    Model2vec,
    /// An Ollama server.
    Ollama,
    /// OpenAI, or a server that speaks its protocol.
    #[serde(alias = "openai-compat")]
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// No vectors.
    None,
}

/// Limits of queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuerySettings {
    /// Wall clock of one query; a request may ask for less.
    pub timeout: DurationSetting,
    /// How long a query waits for a reader that takes none of its rows.
    pub reader_idle: DurationSetting,
    /// Memory of one query; a request may ask for less.
    pub memory: ByteSize,
    /// Memory of all queries together; unset: 60 % of `process_memory`, or of the machine's.
    pub pool_memory: Option<ByteSize>,
    /// What decoded columns take of it until queries need it; unset: 40 % of it.
    pub column_cache: Option<ByteSize>,
    /// Memory for plans of statements that were planned before; 0: none are kept.
    pub plan_cache: ByteSize,
    /// What rows of answered queries take of the memory of all queries until they need it; 0: none are kept.
    pub result_cache: ByteSize,
    /// Resident memory of the process at which the query that holds most is ended; unset: 85 % of the machine's.
    pub process_memory: Option<ByteSize>,
    /// Parts of files in an object store, on the disk of the data folder; 0: none.
    pub file_cache: ByteSize,
    /// Spill files of all queries together.
    pub spill: ByteSize,
    /// Threads of one query; unset: the machine's cores.
    pub threads: Option<usize>,
    /// Queries at once; 0: no bound.
    pub max_concurrent: usize,
    /// Queries of one caller at once; unset: seven eighths of `max_concurrent`, 0: all of it.
    pub max_concurrent_per_caller: Option<usize>,
    /// Queries that wait for their turn, then 429.
    pub max_queued: usize,
    /// How long a query waits for its turn, then 429.
    pub queue_timeout: DurationSetting,
    /// `read=ROWS`, `write=ROWS`: rows that a statement of that role may read from tables; none: any.
    pub max_scan_rows: Vec<String>,
    /// `read=SIZE`, `write=SIZE`: bytes of tables' files that a statement of that role may read; none: any.
    pub max_scan_bytes: Vec<String>,
    /// Local folders under which role `write` may create external tables; administrators may anywhere.
    pub external_roots: Vec<PathBuf>,
    /// URLs of object stores and web servers below which external tables may lie; none: local files only.
    pub external_urls: Vec<UrlRoot>,
}

/// The listener and HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpSettings {
    /// Origins allowed by CORS, or `*`; none: no CORS headers are sent.
    pub cors_allowed_origins: Vec<String>,
    /// Open connections at most; more wait in the listener's queue.
    pub max_connections: usize,
    /// Of one address, beyond which they are refused; unset: seven eighths of `max_connections`, 0: all of them.
    pub max_connections_per_address: Option<usize>,
    /// How long a client may take to send its first byte, then its request's headers; also how long a kept connection idles.
    pub header_timeout: DurationSetting,
    /// How long a request's body may take, or of one that is streamed the next bytes.
    pub body_timeout: DurationSetting,
    /// Largest body of a query or a question.
    pub max_query_bytes: ByteSize,
    /// How long an import may take once its body is there.
    pub import_timeout: DurationSetting,
    /// Largest body of an import.
    pub max_import_bytes: ByteSize,
}

/// The Model Context Protocol at `/mcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpSettings {
    /// The most sessions; beyond them the one that was used longest ago is forgotten.
    pub max_sessions: usize,
    /// How long an unused session is remembered.
    pub session_idle: DurationSetting,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogSettings {
    /// As in `RUST_LOG`.
    pub filter: String,
    /// One line of text or one JSON object an event.
    pub format: LogFormat,
    /// Statements that take longer are logged.
    pub slow_query: Option<DurationSetting>,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            listen_unix: None,
            data: PathBuf::from("./querent-data"),
            data_path: None,
            shutdown_delay: DurationSetting(Duration::ZERO),
            shutdown_timeout: DurationSetting(Duration::from_secs(30)),
            auth: AuthSettings::default(),
            agent: AgentSettings::default(),
            embed: EmbeddingSettings::default(),
            query: QuerySettings::default(),
            tls: TlsSettings::default(),
            http: HttpSettings::default(),
            catalog: CatalogSettings::default(),
            cluster: ClusterSettings::default(),
            audit: AuditSettings::default(),
            flight: FlightSettings::default(),
            mcp: McpSettings::default(),
            cube: CubeSettings::default(),
            holmes: HolmesSettings::default(),
            log: LogSettings::default(),
            telemetry: TelemetrySettings::default(),
        }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        let defaults = AgentConfig::DEFAULT;
        Self {
            ollama_host: "http://localhost:11434".to_owned(),
            model: "gemma4:latest".to_owned(),
            models: Vec::new(),
            run_timeout: DurationSetting(defaults.run_timeout),
            slow_run_timeout: DurationSetting(defaults.slow_run_timeout),
            max_tool_calls: defaults.max_tool_calls,
            default_tool_rows: defaults.default_tool_rows,
            prompt_tokens: defaults.prompt_tokens,
            tool_result_tokens: defaults.tool_result_tokens,
            max_concurrent_runs: defaults.max_concurrent_runs,
            max_concurrent_runs_per_caller: defaults.max_concurrent_runs_per_caller,
            max_queued_runs: defaults.max_queued_runs,
            run_queue_timeout: DurationSetting(defaults.run_queue_timeout),
            check_timeout: DurationSetting(defaults.check_times.one),
            all_checks_timeout: DurationSetting(defaults.check_times.all),
            examples_timeout: DurationSetting(defaults.examples_timeout),
            result_bytes: ByteSize(defaults.result_bytes as u64),
            result_lifetime: DurationSetting(defaults.result_lifetime),
            max_file_bytes_per_caller: ByteSize(1 << 30),
            max_conversation_bytes_per_caller: ByteSize(1 << 30),
            retention: DurationSetting(Duration::from_secs(30 * 24 * 60 * 60)),
            write_tools: defaults.write_tools,
            strict_models: defaults.strict_models,
            restart_background: defaults.restart_background,
            reuse_verified: defaults.reuse_verified,
            voting: defaults.voting,
            answer_threshold: defaults.answer_threshold,
            confidence: None,
            adk_strict_sessions: false,
            tool_style: ToolStyleName::Auto,
            record: None,
            replay: None,
            script: None,
        }
    }
}

impl Default for EmbeddingSettings {
    fn default() -> Self {
        Self {
            provider: EmbedProviderName::Fastembed,
            model: None,
            base_url: None,
            api_key_env: None,
            model_path: None,
            rerank_model: None,
            rerank_model_path: None,
            runtime: None,
        }
    }
}

impl Default for QuerySettings {
    fn default() -> Self {
        let Limits { wall_clock, reader_idle, memory_bytes, .. } = Limits::default();
        Self {
            timeout: DurationSetting(wall_clock),
            reader_idle: DurationSetting(reader_idle),
            memory: ByteSize(memory_bytes as u64),
            pool_memory: None,
            column_cache: None,
            plan_cache: ByteSize(EngineOptions::DEFAULT_PLAN_CACHE_BYTES as u64),
            result_cache: ByteSize(0),
            process_memory: None,
            file_cache: ByteSize(EngineOptions::DEFAULT_FILE_CACHE_BYTES),
            spill: ByteSize(EngineOptions::DEFAULT_SPILL_BYTES),
            threads: None,
            max_concurrent: 64,
            max_concurrent_per_caller: None,
            max_queued: 64,
            queue_timeout: DurationSetting(Duration::from_secs(1)),
            max_scan_rows: Vec::new(),
            max_scan_bytes: Vec::new(),
            external_roots: Vec::new(),
            external_urls: Vec::new(),
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            cors_allowed_origins: Vec::new(),
            max_connections: 4_096,
            max_connections_per_address: None,
            header_timeout: DurationSetting(Duration::from_secs(30)),
            body_timeout: DurationSetting(Duration::from_secs(30)),
            max_query_bytes: ByteSize(16 << 20),
            import_timeout: DurationSetting(Duration::from_secs(3_600)),
            max_import_bytes: ByteSize(16 << 30),
        }
    }
}

impl Default for McpSettings {
    fn default() -> Self {
        Self { max_sessions: 1_024, session_idle: DurationSetting(Duration::from_secs(1_800)) }
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::Text, slow_query: None }
    }
}

impl TokenSettings {
    /// Returns the subject, or a stable name derived from the token.
    pub fn subject_or_default(&self) -> String {
        self.subject.clone().unwrap_or_else(|| {
            let digest = Sha256::digest(self.token.as_bytes());
            let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("token-{short}")
        })
    }
}

impl std::fmt::Debug for TokenSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSettings")
            .field("token", &"***")
            .field("role", &self.role)
            .field("subject", &self.subject)
            .field("databases", &self.databases)
            .finish()
    }
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Read => Role::Read,
            RoleName::Write => Role::Write,
            RoleName::Admin => Role::Admin,
        }
    }
}

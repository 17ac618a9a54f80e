//! The table of all settings: the key in `querent.toml`, the environment variables, and how their strings are parsed.
//!
//! The environment, the flags, unknown-key errors and `querent config check` all use this table, so they cannot disagree.

/// A setting's names and how it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingKey {
    /// The dotted path in `querent.toml`, which is also the flag's name.
    pub path: &'static str,
    /// Environment variables, the first found wins; the rest are aliases.
    pub environment: &'static [&'static str],
    /// How a string becomes a value.
    pub kind: SettingKind,
    /// Whether `config check` shows `***` instead of the value.
    pub secret: bool,
    /// A description of one line.
    pub about: &'static str,
}

/// How the string of a variable or flag becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// As it is.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Strings separated by commas.
    List,
    /// `token:role[:subject],...`.
    Tokens,
    /// Tables of the settings file, which a string cannot express.
    Tables,
}

const fn key(
    path: &'static str,
    environment: &'static [&'static str],
    kind: SettingKind,
    about: &'static str,
) -> SettingKey {
    SettingKey { path, environment, kind, secret: false, about }
}

/// All settings, in the order in which `config check` prints them.
pub const KEYS: &[SettingKey] = &[
    key("listen", &["QUERENT_LISTEN"], SettingKind::Text, "address and port for HTTP and Flight SQL"),
    key(
        "listen_unix",
        &["QUERENT_LISTEN_UNIX"],
        SettingKind::Text,
        "path of a socket to listen on too, which only this user may open",
    ),
    key("data", &["QUERENT_DATA"], SettingKind::Text, "the data folder"),
    key(
        "data_path",
        &["QUERENT_DATA_PATH"],
        SettingKind::Text,
        "URL below which a new folder's tables have their files, such as s3://bucket/lake/; unset: in the data folder",
    ),
    key(
        "shutdown_delay",
        &["QUERENT_SHUTDOWN_DELAY"],
        SettingKind::Text,
        "how long /ready says 503 before connections are refused",
    ),
    key(
        "shutdown_timeout",
        &["QUERENT_SHUTDOWN_TIMEOUT"],
        SettingKind::Text,
        "how long open requests may take to end at shutdown",
    ),
    SettingKey {
        path: "auth.tokens",
        environment: &["QUERENT_AUTH_TOKENS", "KYMA_AUTH_TOKENS"],
        kind: SettingKind::Tokens,
        secret: true,
        about: "token:role[:subject],...; none: every caller is an administrator",
    },
    key(
        "auth.allow_anonymous_remote",
        &["QUERENT_AUTH_ALLOW_ANONYMOUS_REMOTE"],
        SettingKind::Bool,
        "listen beyond loopback without tokens",
    ),
    key(
        "auth.oidc.issuer",
        &["QUERENT_AUTH_OIDC_ISSUER"],
        SettingKind::Text,
        "the identity provider whose signed tokens are taken; unset: none",
    ),
    key(
        "auth.oidc.audience",
        &["QUERENT_AUTH_OIDC_AUDIENCE"],
        SettingKind::List,
        "what a signed token's aud must name",
    ),
    key(
        "auth.oidc.jwks_url",
        &["QUERENT_AUTH_OIDC_JWKS_URL"],
        SettingKind::Text,
        "where the provider's keys are; unset: as its openid-configuration says",
    ),
    key(
        "auth.oidc.subject_claim",
        &["QUERENT_AUTH_OIDC_SUBJECT_CLAIM"],
        SettingKind::Text,
        "the claim that is the subject",
    ),
    key("auth.oidc.roles_claim", &["QUERENT_AUTH_OIDC_ROLES_CLAIM"], SettingKind::Text, "the claim that lists roles"),
    key(
        "auth.oidc.groups_claim",
        &["QUERENT_AUTH_OIDC_GROUPS_CLAIM"],
        SettingKind::Text,
        "the claim that lists groups",
    ),
    key(
        "auth.oidc.databases_claim",
        &["QUERENT_AUTH_OIDC_DATABASES_CLAIM"],
        SettingKind::Text,
        "the claim that lists the only databases; unset: all",
    ),
    key(
        "auth.oidc.attribute_claims",
        &["QUERENT_AUTH_OIDC_ATTRIBUTE_CLAIMS"],
        SettingKind::List,
        "claim or name=claim,...: the claims that are attributes",
    ),
    key(
        "auth.oidc.role_map",
        &["QUERENT_AUTH_OIDC_ROLE_MAP"],
        SettingKind::List,
        "value=read|write|admin,...: what a role of the provider may do",
    ),
    key(
        "auth.oidc.default_role",
        &["QUERENT_AUTH_OIDC_DEFAULT_ROLE"],
        SettingKind::Text,
        "read, write, admin, or none to refuse: without a mapped role",
    ),
    key(
        "agent.ollama_host",
        &["QUERENT_AGENT_OLLAMA_HOST", "KYMA_AGENT_OLLAMA_HOST"],
        SettingKind::Text,
        "the model server",
    ),
    key("agent.model", &["QUERENT_AGENT_MODEL", "KYMA_AGENT_MODEL"], SettingKind::Text, "the language model"),
    key("agent.models", &[], SettingKind::Tables, "[[agent.models]]: models to choose from, the first by default"),
    key("agent.run_timeout", &["QUERENT_AGENT_RUN_TIMEOUT"], SettingKind::Text, "wall clock of one run"),
    key(
        "agent.slow_run_timeout",
        &["QUERENT_AGENT_SLOW_RUN_TIMEOUT"],
        SettingKind::Text,
        "what it grows to where a model of one's own is slow",
    ),
    key("agent.max_tool_calls", &["QUERENT_AGENT_MAX_TOOL_CALLS"], SettingKind::Number, "tool calls of one run"),
    key(
        "agent.default_tool_rows",
        &["QUERENT_AGENT_DEFAULT_TOOL_ROWS"],
        SettingKind::Number,
        "rows of a tool result when the model does not say",
    ),
    key(
        "agent.prompt_tokens",
        &["QUERENT_AGENT_PROMPT_TOKENS"],
        SettingKind::Number,
        "tokens of the first turn's prompt; fewer for a small model",
    ),
    key(
        "agent.tool_result_tokens",
        &["QUERENT_AGENT_TOOL_RESULT_TOKENS"],
        SettingKind::Number,
        "tokens of the text of a tool result; fewer for a small model",
    ),
    key("agent.max_concurrent_runs", &["QUERENT_MAX_CONCURRENT_RUNS"], SettingKind::Number, "runs at once"),
    key(
        "agent.max_concurrent_runs_per_caller",
        &["QUERENT_AGENT_MAX_CONCURRENT_RUNS_PER_CALLER"],
        SettingKind::Number,
        "runs of one caller at once; none: seven eighths of them, 0: all",
    ),
    key(
        "agent.max_queued_runs",
        &["QUERENT_AGENT_MAX_QUEUED_RUNS"],
        SettingKind::Number,
        "runs that wait for their turn, then 429",
    ),
    key(
        "agent.run_queue_timeout",
        &["QUERENT_AGENT_RUN_QUEUE_TIMEOUT"],
        SettingKind::Text,
        "how long a run waits for its turn, then 429",
    ),
    key(
        "agent.result_bytes",
        &["QUERENT_AGENT_RESULT_BYTES"],
        SettingKind::Text,
        "memory of queries' rows that are kept for tickets; 0: none",
    ),
    key(
        "agent.result_lifetime",
        &["QUERENT_AGENT_RESULT_LIFETIME"],
        SettingKind::Text,
        "how long the rows of a ticket are kept",
    ),
    key(
        "agent.retention",
        &["QUERENT_AGENT_RETENTION"],
        SettingKind::Text,
        "how long runs and conversations are kept; 0: for ever",
    ),
    key(
        "agent.write_tools",
        &["QUERENT_AGENT_WRITE_TOOLS"],
        SettingKind::Bool,
        "tools that write, each call approved by a person",
    ),
    key(
        "agent.strict_models",
        &["QUERENT_AGENT_STRICT_MODELS"],
        SettingKind::Bool,
        "refuse model names that are not configured",
    ),
    key(
        "agent.reuse_verified",
        &["QUERENT_AGENT_REUSE_VERIFIED"],
        SettingKind::Bool,
        "answer from a verified query where only values differ",
    ),
    key(
        "agent.voting",
        &["QUERENT_AGENT_VOTING"],
        SettingKind::Text,
        "compare queries with others by their rows: off, auto, or a number of candidates",
    ),
    key(
        "agent.answer_threshold",
        &["QUERENT_AGENT_ANSWER_THRESHOLD"],
        SettingKind::Text,
        "hold answers back below this: off, unsure, likely, verified, or a probability",
    ),
    key("agent.confidence", &[], SettingKind::Tables, "[agent.confidence]: coefficients fitted to measured answers"),
    key(
        "agent.adk_strict_sessions",
        &["QUERENT_AGENT_ADK_STRICT_SESSIONS"],
        SettingKind::Bool,
        "refuse ADK runs in sessions that are not there",
    ),
    key(
        "agent.tool_style",
        &["QUERENT_AGENT_TOOL_STYLE"],
        SettingKind::Text,
        "auto, native or actions (for models without tool calls)",
    ),
    key("agent.record", &["QUERENT_AGENT_RECORD"], SettingKind::Text, "file to write the model's streams to"),
    key("agent.replay", &["QUERENT_AGENT_REPLAY"], SettingKind::Text, "file to replay the model's streams from"),
    key("agent.script", &["QUERENT_AGENT_SCRIPT"], SettingKind::Text, "file with a scripted model's turns"),
    key(
        "embed.provider",
        &["QUERENT_EMBED_PROVIDER", "KYMA_EMBED_PROVIDER"],
        SettingKind::Text,
        "fastembed, model2vec (static, for very large catalogs), ollama, openai, gemini or none",
    ),
    key("embed.model", &["QUERENT_EMBED_MODEL", "KYMA_EMBED_MODEL_ID"], SettingKind::Text, "the embedding model"),
    key(
        "embed.base_url",
        &["QUERENT_EMBED_BASE_URL", "KYMA_EMBED_BASE_URL"],
        SettingKind::Text,
        "the server that embeds",
    ),
    key(
        "embed.api_key_env",
        &["QUERENT_EMBED_API_KEY_ENV", "KYMA_EMBED_API_KEY_ENV"],
        SettingKind::Text,
        "the environment variable that holds its key",
    ),
    key(
        "embed.model_path",
        &["QUERENT_EMBED_MODEL_PATH", "KYMA_EMBED_MODEL_PATH"],
        SettingKind::Text,
        "folder with model.onnx and tokenizer files; none: downloaded",
    ),
    key(
        "embed.rerank_model",
        &["QUERENT_EMBED_RERANK_MODEL"],
        SettingKind::Text,
        "a better model, to rank the best hundred tables of a search anew",
    ),
    key(
        "embed.rerank_model_path",
        &["QUERENT_EMBED_RERANK_MODEL_PATH"],
        SettingKind::Text,
        "folder with its model.onnx and tokenizer files; none: downloaded",
    ),
    key("embed.runtime", &["ORT_DYLIB_PATH"], SettingKind::Text, "the ONNX Runtime library"),
    key("query.timeout", &["QUERENT_QUERY_TIMEOUT"], SettingKind::Text, "wall clock of one query, at most"),
    key(
        "query.reader_idle",
        &["QUERENT_QUERY_READER_IDLE"],
        SettingKind::Text,
        "how long a query waits for a reader that takes none of its rows",
    ),
    key("query.memory", &["QUERENT_QUERY_MEMORY"], SettingKind::Text, "memory of one query, at most"),
    key(
        "query.pool_memory",
        &["QUERENT_QUERY_POOL_MEMORY"],
        SettingKind::Text,
        "memory of all queries; none: 60 % of the machine's",
    ),
    key(
        "query.column_cache",
        &["QUERENT_QUERY_COLUMN_CACHE"],
        SettingKind::Text,
        "what decoded columns take of query.pool_memory until queries need it; none: 40 % of it",
    ),
    key(
        "query.plan_cache",
        &["QUERENT_QUERY_PLAN_CACHE"],
        SettingKind::Text,
        "memory for plans of statements that were planned before; 0: none are kept",
    ),
    key(
        "query.process_memory",
        &["QUERENT_QUERY_PROCESS_MEMORY"],
        SettingKind::Text,
        "resident memory of the process at which the query that holds most is ended; none: 85 % of the machine's",
    ),
    key(
        "query.file_cache",
        &["QUERENT_QUERY_FILE_CACHE"],
        SettingKind::Text,
        "disk of the data folder for parts of files in an object store; 0: none",
    ),
    key("query.spill", &["QUERENT_QUERY_SPILL"], SettingKind::Text, "spill files of all queries, at most"),
    key(
        "query.threads",
        &["QUERENT_QUERY_THREADS"],
        SettingKind::Number,
        "threads of one query; none: the machine's cores",
    ),
    key(
        "query.max_concurrent",
        &["QUERENT_MAX_CONCURRENT_QUERIES"],
        SettingKind::Number,
        "queries at once; 0: no bound",
    ),
    key(
        "query.max_concurrent_per_caller",
        &["QUERENT_QUERY_MAX_CONCURRENT_PER_CALLER"],
        SettingKind::Number,
        "queries of one caller at once; none: seven eighths of them, 0: all",
    ),
    key(
        "query.max_queued",
        &["QUERENT_QUERY_MAX_QUEUED"],
        SettingKind::Number,
        "queries that wait for their turn, then 429",
    ),
    key(
        "query.queue_timeout",
        &["QUERENT_QUERY_QUEUE_TIMEOUT"],
        SettingKind::Text,
        "how long a query waits for its turn, then 429",
    ),
    key(
        "query.max_scan_rows",
        &["QUERENT_QUERY_MAX_SCAN_ROWS"],
        SettingKind::List,
        "read=ROWS,write=ROWS: what a statement may read from tables; none: any",
    ),
    key(
        "query.max_scan_bytes",
        &["QUERENT_QUERY_MAX_SCAN_BYTES"],
        SettingKind::List,
        "read=SIZE,write=SIZE: what a statement may read of tables' files; none: any",
    ),
    key(
        "query.external_roots",
        &["QUERENT_QUERY_EXTERNAL_ROOTS"],
        SettingKind::List,
        "folders under which role write may create external tables",
    ),
    key(
        "query.external_urls",
        &["QUERENT_QUERY_EXTERNAL_URLS"],
        SettingKind::List,
        "URLs (s3://bucket/prefix/, https://host/) under which external tables may lie; none: local files only",
    ),
    key(
        "cluster.role",
        &["QUERENT_CLUSTER_ROLE"],
        SettingKind::Text,
        "coordinator, or worker: parts of its queries only",
    ),
    key(
        "cluster.workers",
        &["QUERENT_CLUSTER_WORKERS"],
        SettingKind::List,
        "http(s)://host:port or dns://name:port of workers that large queries are shared out to; none: no sharing",
    ),
    SettingKey {
        path: "catalog.url",
        environment: &["QUERENT_CATALOG_URL"],
        kind: SettingKind::Text,
        secret: true,
        about: "postgres://user:password@host/database that holds the catalog; unset: a file of the data folder",
    },
    SettingKey {
        path: "cluster.key",
        environment: &["QUERENT_CLUSTER_KEY"],
        kind: SettingKind::Text,
        secret: true,
        about: "secret of at least 16 characters that the servers of a cluster share",
    },
    key(
        "cluster.ca",
        &["QUERENT_CLUSTER_CA"],
        SettingKind::Text,
        "PEM file with the authorities of https workers' certificates; none: the system's",
    ),
    key(
        "cluster.client_certificate",
        &["QUERENT_CLUSTER_CLIENT_CERTIFICATE"],
        SettingKind::Text,
        "PEM file with the certificate that this server shows to workers",
    ),
    key(
        "cluster.client_key",
        &["QUERENT_CLUSTER_CLIENT_KEY"],
        SettingKind::Text,
        "PEM file with the private key of that certificate",
    ),
    key(
        "cluster.min_scan_bytes",
        &["QUERENT_CLUSTER_MIN_SCAN_BYTES"],
        SettingKind::Text,
        "bytes of files that a query has to read before it is shared out",
    ),
    key("audit.enabled", &["QUERENT_AUDIT_ENABLED"], SettingKind::Bool, "keep a log of who asked what"),
    key("audit.retention", &["QUERENT_AUDIT_RETENTION"], SettingKind::Text, "how long its records are kept"),
    key("audit.max_records", &["QUERENT_AUDIT_MAX_RECORDS"], SettingKind::Number, "its records, at most"),
    key(
        "tls.certificate",
        &["QUERENT_TLS_CERTIFICATE"],
        SettingKind::Text,
        "PEM file with the port's certificate and its chain; none: no encryption",
    ),
    key("tls.key", &["QUERENT_TLS_KEY"], SettingKind::Text, "PEM file with the certificate's private key"),
    key(
        "tls.client_ca",
        &["QUERENT_TLS_CLIENT_CA"],
        SettingKind::Text,
        "PEM file with the authorities that sign clients' certificates; none: clients need none",
    ),
    key("tls.clients", &[], SettingKind::Tables, "[[tls.clients]]: whom clients' certificates stand for"),
    key(
        "tls.development",
        &["QUERENT_TLS_DEVELOPMENT"],
        SettingKind::Bool,
        "make a certificate in the data folder, for this machine's names",
    ),
    key(
        "http.cors_allowed_origins",
        &["QUERENT_CORS_ALLOWED_ORIGINS"],
        SettingKind::List,
        "origins allowed by CORS, or *; none: no CORS",
    ),
    key("http.max_connections", &["QUERENT_HTTP_MAX_CONNECTIONS"], SettingKind::Number, "open connections, at most"),
    key(
        "http.header_timeout",
        &["QUERENT_HTTP_HEADER_TIMEOUT"],
        SettingKind::Text,
        "how long a client may take to send its headers",
    ),
    key(
        "http.body_timeout",
        &["QUERENT_HTTP_BODY_TIMEOUT"],
        SettingKind::Text,
        "how long a request's body may take, or the next bytes of a streamed one",
    ),
    key(
        "http.max_query_bytes",
        &["QUERENT_HTTP_MAX_QUERY_BYTES"],
        SettingKind::Text,
        "largest body of a query or question",
    ),
    key("http.max_import_bytes", &["QUERENT_HTTP_MAX_IMPORT_BYTES"], SettingKind::Text, "largest body of an import"),
    key(
        "flight.max_message_bytes",
        &["QUERENT_FLIGHT_MAX_MESSAGE_BYTES"],
        SettingKind::Text,
        "largest message of an upload by Flight",
    ),
    key(
        "flight.upload_idle_timeout",
        &["QUERENT_FLIGHT_UPLOAD_IDLE_TIMEOUT"],
        SettingKind::Text,
        "how long an upload by Flight may be without a byte",
    ),
    key("mcp.max_sessions", &["QUERENT_MCP_MAX_SESSIONS"], SettingKind::Number, "sessions of MCP clients, at most"),
    key(
        "mcp.session_idle",
        &["QUERENT_MCP_SESSION_IDLE"],
        SettingKind::Text,
        "an unused MCP session is forgotten after this",
    ),
    SettingKey {
        path: "cube.api_keys",
        environment: &["QUERENT_CUBE_API_KEYS"],
        kind: SettingKind::List,
        secret: true,
        about: "[name=]key,... for Cube's chat API; none: auth.tokens",
    },
    key("cube.accounts", &["QUERENT_CUBE_ACCOUNTS"], SettingKind::List, "accounts of Cube's chat API; none: any"),
    key("cube.agents", &["QUERENT_CUBE_AGENTS"], SettingKind::List, "agents of Cube's chat API; none: any"),
    key(
        "cube.user_attributes",
        &["QUERENT_CUBE_USER_ATTRIBUTES"],
        SettingKind::List,
        "names of user attributes that applications may send; none: any",
    ),
    key(
        "cube.max_external_users",
        &["QUERENT_CUBE_MAX_EXTERNAL_USERS"],
        SettingKind::Number,
        "users of applications that are not ephemeral, at most",
    ),
    SettingKey {
        path: "holmes.api_keys",
        environment: &["QUERENT_HOLMES_API_KEY", "HOLMES_API_KEY"],
        kind: SettingKind::List,
        secret: true,
        about: "[name=]key[:role],... for HolmesGPT's API; none: auth.tokens",
    },
    key(
        "holmes.enabled_prompts",
        &["QUERENT_HOLMES_ENABLED_PROMPTS", "ENABLED_PROMPTS"],
        SettingKind::List,
        "the only sections that its prompts may have, or none; unset: all",
    ),
    key("holmes.cluster_name", &["QUERENT_HOLMES_CLUSTER_NAME"], SettingKind::Text, "what the data is about"),
    key(
        "holmes.system_prompt_additions",
        &["QUERENT_HOLMES_SYSTEM_PROMPT_ADDITIONS"],
        SettingKind::Text,
        "added to the model's instructions",
    ),
    key(
        "holmes.model_name_as_text",
        &["QUERENT_HOLMES_MODEL_NAME_AS_TEXT"],
        SettingKind::Bool,
        "GET /api/model answers with a JSON text instead of a list",
    ),
    key("log.filter", &["QUERENT_LOG", "RUST_LOG"], SettingKind::Text, "what is logged, as in RUST_LOG"),
    key("log.format", &["QUERENT_LOG_FORMAT"], SettingKind::Text, "text or json"),
    key("log.slow_query", &["QUERENT_LOG_SLOW_QUERY"], SettingKind::Text, "log statements that take longer"),
    key(
        "telemetry.otlp_endpoint",
        &["QUERENT_TELEMETRY_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
        SettingKind::Text,
        "collector that traces are sent to by OTLP over HTTP, such as http://localhost:4318; unset: none are made",
    ),
    SettingKey {
        path: "telemetry.otlp_headers",
        environment: &["QUERENT_TELEMETRY_OTLP_HEADERS"],
        kind: SettingKind::List,
        secret: true,
        about: "name=value,... headers of each export",
    },
    key(
        "telemetry.service_name",
        &["QUERENT_TELEMETRY_SERVICE_NAME", "OTEL_SERVICE_NAME"],
        SettingKind::Text,
        "what traces call this server",
    ),
    key(
        "telemetry.statements",
        &["QUERENT_TELEMETRY_STATEMENTS"],
        SettingKind::Bool,
        "whether traces have the texts of statements, without secrets",
    ),
];

/// Returns the setting of that path.
pub fn find(path: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.path == path)
}

/// Returns the known name that is nearest to an unknown one, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    known
        .into_iter()
        .map(|candidate| {
            // The right name in the wrong section is nearer than a similar name.
            let moved = if last(candidate) == last(name) { 1 } else { usize::MAX };
            (strsim::damerau_levenshtein(name, candidate).min(moved), candidate)
        })
        .min()
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .map(|(_, candidate)| candidate)
}

//! The ways in, and what is told of them: `[tls]`, `[http]`, `[flight]`, `[mcp]`, the protocols of `[cube]` and
//! `[holmes]`, `[log]` and `[telemetry]`.

use super::{SettingKey, SettingKind, key};

/// The settings of the ways in, the log and traces.
pub(super) const KEYS: &[SettingKey] = &[
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
    key(
        "http.import_timeout",
        &["QUERENT_HTTP_IMPORT_TIMEOUT"],
        SettingKind::Text,
        "how long an import may take once its body is there",
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

//! Settings: their order, their errors, their aliases, and what `config check` says of them.

use std::time::Duration;

use querent_agent::{AgentConfig, CheckTimes};
use querent_flight::config::{Config, KEYS, Origin, RoleName, SettingSources};
use querent_tests::package_folder;
use tempfile::TempDir;

#[test]
fn defaults_and_variables_are_the_documented_ones() {
    let page = include_str!("../../docs/configuration.md");
    for setting in Config::load(&SettingSources::default()).unwrap().effective() {
        let begin = format!("| `{}` |", setting.key.path);
        let row = page.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("no row {begin}"));
        let cells: Vec<&str> = row.split(" | ").collect();
        for variable in setting.key.environment {
            assert!(cells[1].contains(&format!("`{variable}`")), "{variable} in {row}");
        }
        // A default that is computed, or absent, is described in words.
        match cells[2].strip_prefix('`').and_then(|cell| cell.strip_suffix('`')) {
            Some(default) => assert_eq!(default, setting.value, "{row}"),
            None => assert_eq!("", setting.value, "{row}"),
        }
    }
}

#[test]
fn flags_go_over_the_environment_over_the_file() {
    let (_folder, sources) = with_file("[agent]\nmodel = \"from-file\"\nrun_timeout = 30\nmax_tool_calls = 5\n");
    let sources = environment(sources, &[("QUERENT_AGENT_MODEL", "from-env"), ("QUERENT_AGENT_RUN_TIMEOUT", "90s")]);
    let config = Config::load(&sources.with_flag("agent.model", "from-flag")).unwrap();
    assert_eq!(config.settings.agent.model, "from-flag");
    assert_eq!(config.settings.agent.run_timeout.0, Duration::from_secs(90));
    assert_eq!(config.settings.agent.max_tool_calls, 5);
    assert_eq!(config.origin("agent.model"), Origin::Flag);
    assert_eq!(config.origin("agent.run_timeout"), Origin::Environment("QUERENT_AGENT_RUN_TIMEOUT"));
    assert!(matches!(config.origin("agent.max_tool_calls"), Origin::File(_)));
    assert_eq!(config.origin("data"), Origin::Default);
}

#[test]
fn lists_are_written_with_commas_or_as_in_a_file() {
    let origins = |text: &str| {
        let sources = SettingSources::default().with_flag("http.cors_allowed_origins", text);
        Config::load(&sources).map(|config| config.settings.http.cors_allowed_origins)
    };
    for text in ["https://a, https://b", r#"["https://a", "https://b"]"#] {
        assert_eq!(origins(text).unwrap(), ["https://a", "https://b"], "{text}");
    }
    for wrong in [r#"["https://a""#, "[1]", "[https://a]"] {
        let sources = SettingSources::default().with_flag("http.cors_allowed_origins", wrong);
        assert_says(&sources, &["http.cors_allowed_origins", "write a,b"], wrong);
    }
}

#[test]
fn the_bounds_of_tools_and_prompts_reach_the_agent() {
    let defaults = Config::load(&SettingSources::default()).unwrap().settings.agent_config();
    assert_eq!(defaults, AgentConfig::DEFAULT);
    let (_folder, sources) = with_file("[agent]\ndefault_tool_rows = 50\nprompt_tokens = 6000\n");
    let sources = environment(sources, &[("QUERENT_AGENT_PROMPT_TOKENS", "7000")]);
    let config = Config::load(&sources.with_flag("agent.tool_result_tokens", "3000")).unwrap().settings.agent_config();
    assert_eq!((config.default_tool_rows, config.prompt_tokens, config.tool_result_tokens), (50, 7_000, 3_000));
    let sources = environment(SettingSources::default(), &[("QUERENT_AGENT_CHECK_TIMEOUT", "1500ms")])
        .with_flag("agent.all_checks_timeout", "9s")
        .with_flag("agent.examples_timeout", "2");
    let config = Config::load(&sources).unwrap().settings.agent_config();
    assert_eq!(config.check_times, CheckTimes { one: Duration::from_millis(1_500), all: Duration::from_secs(9) });
    assert_eq!(config.examples_timeout, Duration::from_secs(2));
    for (setting, value) in
        [("agent.default_tool_rows", "0"), ("agent.default_tool_rows", "1001"), ("agent.prompt_tokens", "0")]
    {
        assert_says(&SettingSources::default().with_flag(setting, value), &[setting, "1"], value);
    }
}

#[test]
fn kyma_names_are_aliases_and_ours_win() {
    let kyma = [
        ("KYMA_AGENT_OLLAMA_HOST", "http://elsewhere:1"),
        ("KYMA_AGENT_MODEL", "theirs"),
        ("KYMA_AUTH_TOKENS", "t:read"),
        ("KYMA_EMBED_PROVIDER", "none"),
    ];
    let config = Config::load(&environment(SettingSources::default(), &kyma)).unwrap();
    assert_eq!(config.settings.agent.ollama_host, "http://elsewhere:1");
    assert_eq!(config.settings.agent.model, "theirs");
    assert_eq!(config.settings.auth.tokens.len(), 1);
    let both =
        environment(SettingSources::default(), &[("KYMA_AGENT_MODEL", "theirs"), ("QUERENT_AGENT_MODEL", "ours")]);
    assert_eq!(Config::load(&both).unwrap().settings.agent.model, "ours");
    let empty = environment(SettingSources::default(), &[("QUERENT_AGENT_MODEL", "")]);
    assert_eq!(Config::load(&empty).unwrap().settings.agent.model, "gemma4:latest", "empty is unset");
}

#[test]
fn tokens_come_from_the_environment_or_the_file() {
    let variable = [("QUERENT_AUTH_TOKENS", "a-tok:read, b-tok:admin:boss")];
    let tokens = Config::load(&environment(SettingSources::default(), &variable)).unwrap().settings.auth.tokens;
    assert_eq!((tokens[0].token.as_str(), tokens[0].role), ("a-tok", RoleName::Read));
    assert_eq!(tokens[1].subject.as_deref(), Some("boss"));
    assert_ne!(tokens[0].subject_or_default(), tokens[1].subject_or_default());
    assert!(!tokens[0].subject_or_default().contains("a-tok"), "a subject does not give the token away");

    let (_folder, sources) = with_file(
        "[[auth.tokens]]\ntoken = \"c-tok\"\nrole = \"write\"\nsubject = \"carol\"\ndatabases = [\"shop\"]\n",
    );
    let tokens = Config::load(&sources).unwrap().settings.auth.tokens;
    assert_eq!(tokens[0].databases.as_deref(), Some(&["shop".to_owned()][..]));
}

/// A source of settings and what its error must say.
#[test]
fn what_is_wrong_is_said_with_where_and_what_to_do() {
    let files = [
        ("lisen = \"127.0.0.1:1\"", &["unknown setting `lisen`", "did you mean `listen`?", "querent.toml"][..]),
        ("[agent]\nmodle = \"x\"", &["`agent.modle`", "did you mean `agent.model`?"]),
        ("[agnt]\nmodel = \"x\"", &["`agnt`", "did you mean `agent`?"]),
        ("model = \"x\"", &["`model`", "`agent.model`"]),
        ("[agent]\nrun_timeout = \"soon\"", &["agent.run_timeout", "querent.toml", "60s"]),
        ("[agent]\nmax_tool_calls = \"many\"", &["agent.max_tool_calls", "querent.toml"]),
        ("[embed]\nprovider = \"word2vec\"", &["embed.provider", "fastembed", "none"]),
        ("[query]\nmemory = \"4 parsecs\"", &["query.memory", "4GiB"]),
        ("listen = \"everywhere\"", &["listen", "querent.toml", "`everywhere`", "127.0.0.1:8080"]),
        ("[cluster]\nrole = \"boss\"", &["cluster.role", "found `boss`, expected `coordinator` or `worker`"]),
        ("[[auth.tokens]]\ntoken = \"t\"\nrole = \"root\"", &["auth.tokens", "read"]),
        ("[[auth.tokens]]\ntoken = \"t\"\nrole = \"read\"\nsubjekt = \"x\"", &["subjekt", "subject"]),
        ("listen = ", &["not valid TOML", "line 1"]),
    ];
    for (text, expected) in files {
        let (_folder, sources) = with_file(text);
        assert_says(&sources, expected, text);
    }
    let variables = [
        (
            "QUERENT_MAX_CONCURRENT_RUNS",
            "few",
            &["agent.max_concurrent_runs", "QUERENT_MAX_CONCURRENT_RUNS", "`few`"][..],
        ),
        ("QUERENT_AUTH_TOKENS", "sesame", &["auth.tokens", "token:role"]),
        ("QUERENT_AUTH_TOKENS", "sesame:king", &["unknown role `king`", "read, write and admin"]),
        ("QUERENT_AUTH_TOKENS", "same:read,same:admin", &["token 2", "twice"]),
        ("QUERENT_LISTEN", "0.0.0.0:8080", &["QUERENT_AUTH_TOKENS", "allow_anonymous_remote"]),
        ("QUERENT_LOG", "loud=very=much", &["log.filter"]),
    ];
    for (name, value, expected) in variables {
        let sources = environment(SettingSources::default(), &[(name, value)]);
        let message = assert_says(&sources, expected, value);
        assert!(!message.contains("sesame") && !message.contains("same:"), "an error shows no token: {message}");
    }
    assert_says(&SettingSources::default().with_file("/nowhere/querent.toml"), &["/nowhere/querent.toml"], "file");
    assert_says(&SettingSources::default().with_flag("agent.modle", "x"), &["command line", "agent.model"], "flag");
}

#[test]
fn listening_beyond_loopback_needs_tokens_or_a_word() {
    let remote = || SettingSources::default().with_flag("listen", "0.0.0.0:8080");
    assert!(Config::load(&remote()).is_err());
    assert!(Config::load(&remote().with_flag("auth.tokens", "t:read")).is_ok());
    assert!(Config::load(&remote().with_flag("auth.allow_anonymous_remote", "true")).is_ok());
    assert!(Config::load(&SettingSources::default().with_flag("listen", "[::1]:8080")).is_ok());
}

#[test]
fn what_is_effective_is_listed_with_its_origin_and_without_secrets() {
    let (_folder, sources) = with_file("[query]\nmemory = \"1GiB\"\n");
    let sources = environment(sources, &[("QUERENT_AUTH_TOKENS", "s3cret:read:ann,other:admin")]);
    let config = Config::load(&sources).unwrap();
    let effective = config.effective();
    assert_eq!(effective.len(), KEYS.len());
    let of = |path: &str| effective.iter().find(|setting| setting.key.path == path).unwrap();
    assert_eq!(
        (of("query.memory").value.as_str(), &of("query.memory").origin),
        ("1GiB", &config.origin("query.memory"))
    );
    assert_eq!(of("auth.tokens").value, "***:read:ann, ***:admin");
    assert_eq!(of("agent.run_timeout").value, "60s");
    let all = format!("{effective:?} {config:?}");
    assert!(!all.contains("s3cret"), "{all}");
}

/// Every key of the table is a field, and every variable is read.
#[test]
fn every_key_can_be_set_from_its_variables() {
    for key in KEYS {
        for variable in key.environment {
            let value = match key.path {
                "listen" => "127.0.0.1:1",
                "auth.tokens" => "t:read",
                "auth.allow_anonymous_remote"
                | "agent.write_tools"
                | "agent.strict_models"
                | "agent.reuse_verified"
                | "agent.adk_strict_sessions"
                | "agent.restart_background"
                | "holmes.model_name_as_text"
                | "audit.enabled"
                | "telemetry.statements"
                | "tls.development" => "true",
                "telemetry.otlp_endpoint" => "http://localhost:4318",
                "telemetry.otlp_headers" => "x-key=7",
                "agent.tool_style" => "native",
                "agent.answer_threshold" => "likely",
                "embed.provider" => "none",
                "log.format" => "json",
                "log.filter" => "debug",
                "query.external_urls" => "s3://bucket/",
                "data_path" => "s3://bucket/lake",
                "cluster.role" => "coordinator",
                "cluster.workers" | "cluster.address" => "http://10.0.0.7:8080",
                "cluster.key" => "a secret of the cluster",
                "auth.oidc.issuer" | "auth.oidc.jwks_url" => "https://id.example.org",
                "auth.oidc.default_role" => "none",
                "catalog.url" => "postgres://db.example/lake",
                "http.cors_allowed_origins" => "https://example.com",
                "query.max_scan_rows" | "query.max_scan_bytes" => "read=7",
                _ => "7",
            };
            // These go together.
            let pair: &[_] = match key.path {
                "tls.certificate" => &[("QUERENT_TLS_KEY", "7")],
                "tls.key" => &[("QUERENT_TLS_CERTIFICATE", "7")],
                "cluster.workers" => &[("QUERENT_CLUSTER_KEY", "a secret of the cluster")],
                "cluster.address" => &[("QUERENT_CATALOG_URL", "postgres://db.example/lake")],
                "cluster.client_certificate" => &[("QUERENT_CLUSTER_CLIENT_KEY", "7")],
                "cluster.client_key" => &[("QUERENT_CLUSTER_CLIENT_CERTIFICATE", "7")],
                "tls.client_ca" => &[("QUERENT_TLS_DEVELOPMENT", "true")],
                "auth.oidc.issuer" => &[("QUERENT_AUTH_OIDC_AUDIENCE", "querent")],
                "auth.oidc.audience" => &[("QUERENT_AUTH_OIDC_ISSUER", "https://id.example.org")],
                "auth.oidc.jwks_url" => {
                    &[("QUERENT_AUTH_OIDC_ISSUER", "https://id.example.org"), ("QUERENT_AUTH_OIDC_AUDIENCE", "querent")]
                }
                _ => &[],
            };
            let variables = [&[(*variable, value)], pair].concat();
            let config = Config::load(&environment(SettingSources::default(), &variables))
                .unwrap_or_else(|error| panic!("{variable}: {error}"));
            assert_eq!(config.origin(key.path), Origin::Environment(variable), "{variable}");
            let effective = config.effective().into_iter().find(|setting| setting.key.path == key.path).unwrap();
            assert!(!effective.value.is_empty(), "{} is not a field", key.path);
        }
    }
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let config = Config::load(&environment(SettingSources::default(), &[("QUERENT_AGENT_MODLE", "x")])).unwrap();
    assert!(config.warnings[0].contains("did you mean QUERENT_AGENT_MODEL?"), "{:?}", config.warnings);
    // A name without its section.
    for (name, meant) in [("QUERENT_TOKENS", "QUERENT_AUTH_TOKENS"), ("QUERENT_MODEL", "QUERENT_AGENT_MODEL")] {
        let config = Config::load(&environment(SettingSources::default(), &[(name, "x")])).unwrap();
        assert!(config.warnings[0].ends_with(&format!("did you mean {meant}?")), "{:?}", config.warnings);
    }
    // Those of the command line are known.
    for name in ["QUERENT_SOMETHING_ELSE", "QUERENT_CA", "QUERENT_CLIENT_KEY", "QUERENT_TOKEN", "QUERENT_SERVER"] {
        let config = Config::load(&environment(SettingSources::default(), &[(name, "x")])).unwrap();
        assert!(config.warnings.is_empty(), "{name}: {:?}", config.warnings);
    }
}

#[test]
fn a_text_in_the_file_is_read_as_that_of_a_variable() {
    let text = "[auth]\ntokens = \"s3cret:admin, r:read:anna\"\n[http]\ncors_allowed_origins = \"https://a,https://b\"\n\
                max_connections = \"10\"\n[agent]\nwrite_tools = \"yes\"\n";
    let (_folder, sources) = with_file(text);
    let settings = Config::load(&sources).unwrap().settings;
    assert_eq!(settings.auth.tokens.len(), 2);
    assert_eq!(settings.http.cors_allowed_origins, ["https://a", "https://b"]);
    assert!(settings.http.max_connections == 10 && settings.agent.write_tools);
    let (_folder, sources) = with_file("[auth]\ntokens = \"s3cret\"\n");
    assert_says(&sources, &["auth.tokens", "token:role"], "a token without a role");
}

/// What stands behind `#` is there to be taken in.
#[test]
fn the_settings_of_the_package_hold_as_they_are_and_with_what_they_suggest() {
    let text = std::fs::read_to_string(package_folder().join("../deploy/querent.toml")).unwrap();
    let suggested = text.replace("# [", "[").replace("# listen", "listen").replace("# tokens", "tokens");
    let suggested = suggested.replace("# ollama_host", "ollama_host").replace("# model", "model");
    for text in [text, suggested] {
        let (_folder, sources) = with_file(&text);
        Config::load(&sources).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

/// The tables of a shell on files are no tables of the servers whose settings are at hand.
#[test]
fn a_folder_that_goes_with_its_process_has_its_own_catalog_and_files() {
    let shared = [("QUERENT_CATALOG_URL", "postgres://me:secret@db/lake"), ("QUERENT_DATA_PATH", "s3://bucket/lake/")];
    let sources = environment(SettingSources::default(), &shared);
    let config = Config::load(&sources).unwrap();
    assert!(config.settings.catalog.url.is_some() && config.settings.data_path.is_some());
    let settings = config.with_own_catalog().settings;
    assert!(settings.catalog.url.is_none() && settings.data_path.is_none());
    let told = Config::load(&sources.with_flag("data_path", "s3://bucket/mine/")).unwrap().with_own_catalog();
    assert!(told.settings.catalog.url.is_none() && told.settings.data_path.is_some());
}

fn with_file(text: &str) -> (TempDir, SettingSources) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("querent.toml");
    std::fs::write(&path, text).unwrap();
    (folder, SettingSources::default().with_file(path))
}

fn environment(mut sources: SettingSources, variables: &[(&str, &str)]) -> SettingSources {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    sources.environment.extend(variables);
    sources
}

fn assert_says(sources: &SettingSources, expected: &[&str], what: &str) -> String {
    let message = Config::load(sources).expect_err(what).to_string();
    for words in expected {
        assert!(message.contains(words), "{what:?} should say {words:?}: {message}");
    }
    message
}

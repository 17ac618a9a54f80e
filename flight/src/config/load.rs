//! Reads the settings from their sources, checks them, and lists the effective values with the source of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use querent_agent::{AnswerThreshold, MAX_TOOL_ROWS};
use querent_catalog::{catalog_url_fault, holds_catalog};

use super::keys::{KEYS, SettingKind, find, nearest};
use super::{ClusterRole, Config, CubeSettings, SettingKey, Settings};
use crate::error::ErrorCode;

/// The settings' file when none is named.
const DEFAULT_FILE: &str = "querent.toml";
/// The variable that names the settings' file.
const FILE_VARIABLE: &str = "QUERENT_CONFIG";
/// Variables of the command line that are no settings.
const COMMAND_LINE_VARIABLES: [&str; 6] = [
    FILE_VARIABLE,
    "QUERENT_SERVER",
    "QUERENT_TOKEN",
    "QUERENT_CA",
    "QUERENT_CLIENT_CERTIFICATE",
    "QUERENT_CLIENT_KEY",
];

/// The sources of settings. They are separate from the process, so that a test or an embedder can bring its own.
#[derive(Debug, Clone, Default)]
pub struct SettingSources {
    /// A file that must exist; `None`: `querent.toml` in the working folder, when there is one.
    pub file: Option<PathBuf>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Flags by the setting's path (`agent.model`), as strings.
    pub flags: BTreeMap<String, String>,
}

/// The source of an effective value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A settings file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// The command line.
    Flag,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Flag => f.write_str("command line"),
        }
    }
}

/// One line of `querent config check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// The setting.
    pub key: &'static SettingKey,
    /// Its value as a string: `***` for a secret, empty if unset.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is not there or cannot be read.
    #[error("cannot read settings file {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("settings file {} is not valid TOML: {detail}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What and where.
        detail: String,
    },
    /// An unknown key.
    #[error("unknown setting `{key}` in {origin}{}", .nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    UnknownKey {
        /// As written.
        key: String,
        /// Where.
        origin: Origin,
        /// The nearest known key.
        nearest: Option<&'static str>,
    },
    /// An invalid value.
    #[error("setting `{key}` from {origin}: {detail}")]
    Invalid {
        /// The setting.
        key: String,
        /// Where it came from.
        origin: Origin,
        /// What is wrong and what to write.
        detail: String,
    },
}

impl ConfigError {
    /// The stable code, documented in `docs/errors.md`.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::ConfigError
    }
}

impl SettingSources {
    /// Returns the process's environment, and the file that `QUERENT_CONFIG` names or `querent.toml` in the working folder if
    /// there is one.
    pub fn process() -> Self {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = environment.get(FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let file = named.or_else(|| Path::new(DEFAULT_FILE).is_file().then(|| PathBuf::from(DEFAULT_FILE)));
        Self { file, environment, flags: BTreeMap::new() }
    }

    /// Replaces the settings file.
    pub fn with_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Adds a setting from the command line, by its path.
    pub fn with_flag(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.flags.insert(path.into(), text.into());
        self
    }
}

impl Settings {
    /// Returns what is wrong with listening where others reach a server without tokens, if it is.
    pub(crate) fn open_to_others(&self) -> Option<String> {
        let is_open = !self.auth.allow_anonymous_remote && !self.listen.ip().is_loopback();
        is_open.then(|| {
            format!(
                "without tokens anybody who reaches {} would be an administrator; set QUERENT_AUTH_TOKENS or auth.oidc, \
                 make one with `querent token create`, listen on 127.0.0.1, or set auth.allow_anonymous_remote = true",
                self.listen
            )
        })
    }
}

impl Config {
    /// Reads and checks the settings.
    pub fn load(sources: &SettingSources) -> Result<Self, ConfigError> {
        let layers = [file_layer(sources)?, environment_layer(sources)?, flag_layer(sources)?];
        let origins = effective_origins(&layers);
        let mut figment = Figment::new();
        for layer in layers {
            figment = figment.merge(layer);
        }
        let settings: Settings = figment.extract().map_err(|error| invalid(error, &origins))?;
        let mut warnings = misspelt_variables(&sources.environment);
        warnings.extend(settings.agent.missing_keys(&sources.environment));
        let mut config = Self { settings, warnings, origins };
        config.check()?;
        let unreachable = config.settings.unreachable_limits(|key| config.is_said(key));
        config.warnings.extend(unreachable);
        config.choose_model()?;
        config.keep_run_timeout();
        Ok(config)
    }

    /// Returns the settings for a data folder by itself, such as one that goes with its process: the catalog that servers share
    /// and their object store are not its own, unless the command line names them.
    pub fn with_own_catalog(mut self) -> Self {
        let (catalog, files) = (self.origin("catalog.url"), self.origin("data_path"));
        if catalog != Origin::Flag {
            self.settings.catalog.url = None;
        }
        if files != Origin::Flag {
            self.settings.data_path = None;
        }
        self
    }

    /// Checks settings that were made in code.
    pub fn from_settings(settings: Settings) -> Result<Self, ConfigError> {
        let config = Self { settings, warnings: Vec::new(), origins: Vec::new() };
        config.check()?;
        Ok(config)
    }

    /// Returns every setting with its value and its source, secrets masked.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let values = serde_json::to_value(&self.settings).unwrap_or_default();
        KEYS.iter()
            .map(|key| {
                let pointer = format!("/{}", key.path.replace('.', "/"));
                let value = values.pointer(&pointer).unwrap_or(&serde_json::Value::Null);
                let value = if key.secret { masked(value) } else { display_text(value) };
                EffectiveSetting { key, value, origin: self.origin(key.path) }
            })
            .collect()
    }

    /// Returns the source of a setting's value.
    pub fn origin(&self, path: &str) -> Origin {
        let found = self.origins.iter().find(|(known, _)| *known == path);
        found.map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Whether somebody wrote a setting.
    fn is_said(&self, path: &str) -> bool {
        self.origin(path) != Origin::Default
    }

    /// With a list of models, `agent.model` says which of them is the default.
    fn choose_model(&mut self) -> Result<(), ConfigError> {
        let origin = self.origin("agent.model");
        let agent = &mut self.settings.agent;
        if agent.models.is_empty() || origin == Origin::Default {
            return Ok(());
        }
        let name = agent.model.clone();
        if agent.prefer_model(&name) {
            return Ok(());
        }
        let names: Vec<&str> = agent.models.iter().map(|entry| entry.name.as_str()).collect();
        let detail = format!("`{name}` is not in agent.models; there are {}", names.join(", "));
        Err(ConfigError::Invalid { key: "agent.model".to_owned(), origin, detail })
    }

    /// Lets a run take as long as somebody said, and no longer.
    fn keep_run_timeout(&mut self) {
        if self.is_said("agent.run_timeout") && !self.is_said("agent.slow_run_timeout") {
            self.settings.agent.slow_run_timeout = self.settings.agent.run_timeout;
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let invalid = |key: &str, detail: String| {
            Err(ConfigError::Invalid { key: key.to_owned(), origin: self.origin(key), detail })
        };
        let settings = &self.settings;
        let tokens = &settings.auth.tokens;
        for (index, token) in tokens.iter().enumerate() {
            if token.token.is_empty() || !token.token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return invalid("auth.tokens", format!("token {} must be printable ASCII without spaces", index + 1));
            }
            if tokens.iter().take(index).any(|earlier| earlier.token == token.token) {
                return invalid("auth.tokens", format!("token {} is there twice", index + 1));
            }
        }
        // A folder that is there may have tokens of its own: the server looks, once it has opened it.
        let may_have_tokens = holds_catalog(&settings.data);
        let knows_callers =
            !tokens.is_empty() || settings.auth.oidc.is_on() || !settings.tls.clients.is_empty() || may_have_tokens;
        // A worker lets nobody in who does not sign with the cluster's key.
        let knows_callers = knows_callers || settings.cluster.role == ClusterRole::Worker;
        if let Some(detail) = settings.open_to_others().filter(|_| !knows_callers) {
            return invalid("listen", detail);
        }
        if let Some((key, fault)) = settings.auth.oidc.fault() {
            return invalid(key, fault);
        }
        if settings.agent.result_lifetime.0.is_zero() {
            return invalid(
                "agent.result_lifetime",
                "must be longer than nothing; agent.result_bytes 0 keeps no rows".to_owned(),
            );
        }
        if !(1..=MAX_TOOL_ROWS).contains(&settings.agent.default_tool_rows) {
            return invalid("agent.default_tool_rows", format!("must be from 1 to {MAX_TOOL_ROWS}"));
        }
        if matches!(settings.agent.answer_threshold, AnswerThreshold::Probability(_))
            && settings.agent.confidence.is_none()
        {
            let detail = "a probability needs [agent.confidence], which `querent-benches fit-confidence` writes";
            return invalid("agent.answer_threshold", detail.to_owned());
        }
        if let Some(fault) = settings.agent.models_fault() {
            return invalid("agent.models", fault);
        }
        if let Some((key, fault)) = settings.limit_fault() {
            return invalid(key, fault);
        }
        if let Some((key, fault)) = settings.tls.fault() {
            return invalid(key, fault.to_owned());
        }
        if let Some(fault) = settings.catalog.url.as_deref().and_then(catalog_url_fault) {
            return invalid("catalog.url", fault);
        }
        if let Some((key, fault)) = settings.cluster_fault() {
            return invalid(key, fault);
        }
        if let Some(fault) = settings.holmes.keys_fault() {
            return invalid("holmes.api_keys", fault);
        }
        if settings.holmes.tokens().iter().any(|token| CubeSettings::is_reserved(&token.subject_or_default())) {
            return invalid("holmes.api_keys", "a key's name may not begin with `cube:`".to_owned());
        }
        if let Some(fault) = settings.cube.keys_fault() {
            return invalid("cube.api_keys", fault);
        }
        if let Some(token) = tokens.iter().find(|token| CubeSettings::is_reserved(&token.subject_or_default())) {
            let detail = format!("subject `{}` may not begin with `cube:`", token.subject_or_default());
            return invalid("auth.tokens", detail);
        }
        if let Some((key, fault)) = settings.query.scan_fault() {
            return invalid(key, fault);
        }
        let models = [&settings.agent.replay, &settings.agent.script];
        if models.iter().filter(|file| file.is_some()).count() > 1 {
            return invalid("agent.script", "agent.script and agent.replay exclude each other".to_owned());
        }
        if let Some((key, fault)) = settings.telemetry.fault() {
            return invalid(key, fault);
        }
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&settings.log.filter) {
            return invalid("log.filter", error.to_string());
        }
        Ok(())
    }
}

/// The settings of one source.
struct Layer {
    name: &'static str,
    values: Vec<(&'static str, Origin, Value)>,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut figment = Figment::new();
        for (path, _, value) in &self.values {
            figment = figment.merge((*path, value));
        }
        figment.data()
    }
}

fn file_layer(sources: &SettingSources) -> Result<Layer, ConfigError> {
    let mut layer = Layer { name: "settings file", values: Vec::new() };
    let Some(path) = &sources.file else {
        return Ok(layer);
    };
    #[expect(clippy::disallowed_methods, reason = "settings are read before the runtime has anything else to do")]
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
    let table: Dict = toml::from_str(&text)
        .map_err(|error| ConfigError::Syntax { path: path.clone(), detail: error.to_string().trim_end().to_owned() })?;
    let origin = Origin::File(path.clone());
    flatten("", table, &origin, &mut layer.values)?;
    Ok(layer)
}

/// Collects the leaves of a file's tables under their keys.
fn flatten(
    prefix: &str,
    table: Dict,
    origin: &Origin,
    values: &mut Vec<(&'static str, Origin, Value)>,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        if let Some(key) = find(&path) {
            let text = match &value {
                Value::String(_, text) if key.kind.is_read_from_text() => Some(text.clone()),
                _ => None,
            };
            // As that of a variable is: `tokens = "s3cret:admin"`.
            let value = match text {
                Some(text) => read(key, &text, origin)?,
                None => value,
            };
            values.push((key.path, origin.clone(), value));
            continue;
        }
        let section = format!("{path}.");
        match value {
            Value::Dict(_, inner) if KEYS.iter().any(|key| key.path.starts_with(&section)) => {
                flatten(&path, inner, origin, values)?;
            }
            _ => return Err(unknown_key(path, origin.clone())),
        }
    }
    Ok(())
}

fn unknown_key(key: String, origin: Origin) -> ConfigError {
    let sections = KEYS.iter().filter_map(|key| key.path.split_once('.').map(|(section, _)| section));
    let nearest = nearest(&key, KEYS.iter().map(|key| key.path).chain(sections));
    ConfigError::UnknownKey { key, origin, nearest }
}

fn environment_layer(sources: &SettingSources) -> Result<Layer, ConfigError> {
    let mut layer = Layer { name: "environment", values: Vec::new() };
    for key in KEYS {
        let set = |name: &&&'static str| sources.environment.get(**name).is_some_and(|text| !text.is_empty());
        let Some(name) = key.environment.iter().find(set) else {
            continue;
        };
        let origin = Origin::Environment(name);
        let text = sources.environment.get(*name).map(String::as_str).unwrap_or_default();
        layer.values.push((key.path, origin.clone(), read(key, text, &origin)?));
    }
    Ok(layer)
}

fn flag_layer(sources: &SettingSources) -> Result<Layer, ConfigError> {
    let mut layer = Layer { name: "command line", values: Vec::new() };
    for (path, text) in &sources.flags {
        let key = find(path).ok_or_else(|| unknown_key(path.clone(), Origin::Flag))?;
        layer.values.push((key.path, Origin::Flag, read(key, text, &Origin::Flag)?));
    }
    Ok(layer)
}

/// Parses the string of a variable or flag.
fn read(key: &SettingKey, text: &str, origin: &Origin) -> Result<Value, ConfigError> {
    let invalid = |detail: String| ConfigError::Invalid { key: key.path.to_owned(), origin: origin.clone(), detail };
    match key.kind {
        SettingKind::Text => Ok(Value::from(text)),
        SettingKind::Number => text
            .trim()
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| invalid(format!("`{text}` is not a whole number of 0 or more"))),
        SettingKind::Bool => match text.trim() {
            "true" | "1" | "yes" | "on" => Ok(Value::from(true)),
            "false" | "0" | "no" | "off" => Ok(Value::from(false)),
            _ => Err(invalid(format!("`{text}` is neither true nor false"))),
        },
        // As a settings file has it.
        SettingKind::List if text.trim_start().starts_with('[') => {
            let wrong = || invalid("it is no list of texts; write a,b or [\"a\", \"b\"]".to_owned());
            Ok(Value::from(array(text).ok_or_else(wrong)?))
        }
        SettingKind::List => Ok(Value::from(items(text).collect::<Vec<_>>())),
        SettingKind::Tokens => {
            let tokens = items(text).map(|item| token(item).map_err(&invalid)).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::from(tokens))
        }
        SettingKind::Tables => Err(invalid("only a settings file can say it, as [[agent.models]]".to_owned())),
    }
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Parses an array of texts as TOML has it.
fn array(text: &str) -> Option<Vec<String>> {
    let table = format!("list = {}", text.trim()).parse::<toml::Table>().ok()?;
    table.get("list")?.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Parses `token:role[:subject]`. An error never repeats the token.
fn token(item: &str) -> Result<Dict, String> {
    let mut parts = item.splitn(3, ':');
    let (Some(token), Some(role)) = (parts.next(), parts.next()) else {
        return Err("each token is written token:role or token:role:subject, separated by commas".to_owned());
    };
    role.parse::<querent_catalog::Role>()?;
    let mut dict = Dict::from([("token".to_owned(), Value::from(token)), ("role".to_owned(), Value::from(role))]);
    if let Some(subject) = parts.next() {
        dict.insert("subject".to_owned(), Value::from(subject));
    }
    Ok(dict)
}

/// Returns the source of each value: the last layer that sets its key.
fn effective_origins(layers: &[Layer]) -> Vec<(&'static str, Origin)> {
    let mut origins = BTreeMap::new();
    for (path, origin, _) in layers.iter().flat_map(|layer| &layer.values) {
        origins.insert(*path, origin.clone());
    }
    origins.into_iter().collect()
}

fn invalid(error: figment::Error, origins: &[(&'static str, Origin)]) -> ConfigError {
    let path = error.path.join(".");
    let origin = origins
        .iter()
        .find(|(key, _)| path == *key || path.starts_with(&format!("{key}.")))
        .map_or(Origin::Default, |(_, origin)| origin.clone());
    // Names of variants come in quotes, and stand in quotes of their own.
    ConfigError::Invalid { key: path, origin, detail: error.kind.to_string().replace("``", "`") }
}

/// Returns warnings about variables that look like misspelt ones of ours, or like ours without their section
/// (`QUERENT_MODEL`), which would otherwise be ignored silently.
fn misspelt_variables(environment: &BTreeMap<String, String>) -> Vec<String> {
    let known: Vec<&'static str> = KEYS.iter().flat_map(|key| key.environment).copied().collect();
    let without_section = |name: &str| {
        let last = name.strip_prefix("QUERENT_")?.to_lowercase();
        let key = KEYS.iter().find(|key| key.path.rsplit_once('.').is_some_and(|(_, own)| own == last))?;
        key.environment.first()
    };
    environment
        .keys()
        .filter(|name| name.starts_with("QUERENT_") && !known.contains(&name.as_str()))
        .filter(|name| !COMMAND_LINE_VARIABLES.contains(&name.as_str()))
        .filter_map(|name| {
            let near = known.iter().find(|known| strsim::damerau_levenshtein(name, known) <= 2);
            let near = near.or_else(|| without_section(name))?;
            Some(format!("environment variable {name} is not a setting; did you mean {near}?"))
        })
        .collect()
}

fn display_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => without_password(text),
        serde_json::Value::Array(items) => items.iter().map(display_text).collect::<Vec<_>>().join(", "),
        serde_json::Value::Object(entry) if entry.contains_key("name") => display_text(&entry["name"]),
        other => other.to_string(),
    }
}

/// Returns a URL without the name and the password in it, and any other text as it is.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}://***{}", rest.get(at..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns tokens without their secrets: `***:read:alice`.
fn masked(value: &serde_json::Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let Some(tokens) = value.as_array() else {
        return "***".to_owned();
    };
    let one = |token: &serde_json::Value| {
        if token.is_string() {
            return "***".to_owned();
        }
        let role = token["role"].as_str().unwrap_or_default();
        match token["subject"].as_str() {
            Some(subject) => format!("***:{role}:{subject}"),
            None => format!("***:{role}"),
        }
    };
    tokens.iter().map(one).collect::<Vec<_>>().join(", ")
}

//! The target of a command: a running server, or a data folder in this process.

use std::path::PathBuf;

use clap::Args;
use querent_catalog::{FolderServer, folder_server};
use url::Url;

use super::error::CliError;
use super::tls::ClientTlsArgs;
use crate::config::{Config, SettingSources, Settings};

/// The variable that names the server if `--server` does not.
const SERVER_VARIABLE: &str = "QUERENT_SERVER";

/// Flags of commands that work on both.
#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[arg(long, value_name = "DIR", value_parser = folder, conflicts_with = "server", help = format!(
        "Work on this data folder in this process, without a server [default: QUERENT_DATA, or {}]",
        Settings::default().data.display(),
    ))]
    data: Option<PathBuf>,
}

/// Flags that name a server.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// The server, for example http://127.0.0.1:8080 or https://data.example [env: QUERENT_SERVER]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The token to send, where the server has tokens
    #[arg(long, value_name = "TOKEN", env = "QUERENT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[command(flatten)]
    tls: ClientTlsArgs,
}

/// A server and the token for it.
#[derive(Debug, Clone)]
pub(super) struct ServerAddress {
    /// Scheme, host and port; no path.
    pub(super) url: Url,
    /// Sent as a bearer token.
    pub(super) token: Option<String>,
    /// For an https URL.
    pub(super) tls: ClientTlsArgs,
}

/// What a command works on.
#[derive(Debug)]
pub(super) enum CliTarget {
    /// A server.
    Server(ServerAddress),
    /// The data folder of these settings, in this process.
    Embedded(Box<Config>),
}

/// Flags of `list` commands.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

/// Flags of `drop` commands.
#[derive(Debug, Args)]
pub(super) struct DropArgs {
    /// As `list` prints it
    #[arg(value_name = "ID")]
    pub(super) id: i64,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl TargetArgs {
    /// Returns the target: the folder of `--data`, the server of `--server` or QUERENT_SERVER, else the settings' data
    /// folder. A folder that a server of this machine has open is reached through that server.
    pub(super) fn resolve(self) -> Result<CliTarget, CliError> {
        if self.data.is_none()
            && let Some(server) = self.server.address()?
        {
            return Ok(CliTarget::Server(server));
        }
        let mut sources = SettingSources::process();
        if let Some(data) = self.data {
            sources = sources.with_flag("data", data.to_string_lossy());
        }
        let config = Config::load(&sources)?;
        match folder_server(&config.settings.data) {
            Some(found) => Ok(CliTarget::Server(self.server.address_of(found)?)),
            None => Ok(CliTarget::Embedded(Box::new(config))),
        }
    }
}

impl ServerArgs {
    /// Returns the address of a server that was found by its data folder.
    fn address_of(self, found: FolderServer) -> Result<ServerAddress, CliError> {
        let ca = self.tls.ca.clone().or(found.certificate);
        parse(&found.url, self.token, ClientTlsArgs { ca, ..self.tls })
    }

    /// Returns the server of `--server` or QUERENT_SERVER, if one is named.
    pub(super) fn address(&self) -> Result<Option<ServerAddress>, CliError> {
        let named = self.server.clone().or_else(|| std::env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty()));
        named.map(|url| parse(&url, self.token.clone(), self.tls.clone())).transpose()
    }
}

/// Reads the name of a data folder. It is a setting, which is text: a name that is not UTF-8 would become another folder's.
pub(super) fn folder(text: &str) -> Result<PathBuf, &'static str> {
    match text.is_empty() {
        true => Err("the name of the folder is empty"),
        false => Ok(PathBuf::from(text)),
    }
}

fn parse(text: &str, token: Option<String>, tls: ClientTlsArgs) -> Result<ServerAddress, CliError> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|error| {
        CliError::Usage(format!("--server {text}: {error}; write http://HOST:PORT or https://HOST:PORT"))
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(CliError::Usage(format!("--server {text}: must be http://HOST:PORT or https://HOST:PORT")));
    }
    // The address of a view of the console is that of its server.
    url.set_fragment(None);
    if url.path() != "/" || url.query().is_some() {
        let origin = url.origin().ascii_serialization();
        return Err(CliError::Usage(format!(
            "--server {text}: name the server without what is behind its port: {origin}"
        )));
    }
    Ok(ServerAddress { url, token, tls })
}

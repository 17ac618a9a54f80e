//! `querent serve`: runs the server until it is told to stop.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::CliError;
use super::output;
use super::progress::Bars;
use super::target::folder;
use crate::config::{AgentSettings, ClusterRole, Config, SettingSources, Settings};
use crate::logs::Traces;
use crate::server::{Server, install_crypto_provider};
use crate::shutdown::stop_signal;

/// Serve SQL and questions on one port: Arrow Flight SQL, HTTP and SSE
///
/// Prints its address once it is ready. Stops at ctrl-c or SIGTERM: open requests end first, within a deadline; a
/// second ctrl-c stops at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent serve
  querent serve --data /srv/lake --listen 127.0.0.1:9000
  QUERENT_AUTH_TOKENS=s3cret:admin querent serve --listen 0.0.0.0:8080
  QUERENT_CLUSTER_KEY=... querent serve --role worker --listen 0.0.0.0:8080 --data /srv/worker
  querent serve --set agent.model=qwen3:8b --set query.timeout=60s")]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Flags over the settings' other sources.
#[derive(Debug, clap::Args)]
pub(super) struct SettingsArgs {
    #[arg(long, value_name = "ADDR", help = with_default(
        "Address and port for HTTP and Flight SQL; port 0 takes a free one",
        Settings::default().listen,
    ))]
    listen: Option<String>,
    #[arg(long, value_name = "DIR", value_parser = folder, help = with_default(
        "The data folder, made when absent",
        Settings::default().data.display(),
    ))]
    data: Option<PathBuf>,
    /// What the server is in a cluster: `coordinator`, which takes statements, or `worker`, which does parts of its queries
    /// [default: coordinator]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    #[arg(long, value_name = "URL", help = with_default("The Ollama server", AgentSettings::default().ollama_host))]
    ollama_host: Option<String>,
    #[arg(long, value_name = "NAME", help = with_default("The language model", AgentSettings::default().model))]
    model: Option<String>,
    /// The settings file [default: querent.toml where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any other setting, by its name in querent.toml; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
}

pub(super) async fn run(args: ServeArgs) -> Result<(), CliError> {
    let config = Config::load(&args.settings.sources())?;
    // The clients of collectors need it.
    install_crypto_provider();
    let traces = Traces::start(&config.settings.log, &config.settings.telemetry).map_err(CliError::failed)?;
    if config.settings.cluster.role == ClusterRole::Worker {
        let ended = run_worker(config).await;
        traces.flush().await;
        return ended;
    }
    let data = config.settings.data.display().to_string();
    let bars = Arc::new(Bars::new(false));
    let progress = Arc::clone(&bars);
    let server = Server::start(config, progress).await?;
    bars.clear();
    let mut ready = format!("querent is ready at {} (HTTP and Flight SQL), data in {data}", server.url());
    if let Some(path) = &server.state().settings.listen_unix {
        ready.push_str(&format!("; also at {}", path.display()));
    }
    if let Some(certificate) = server.development_certificate() {
        ready.push_str(&format!("; clients must trust {}", certificate.display()));
    }
    say_ready(&ready);
    stop_signal().await?;
    let stopped = async {
        let stopped = server.shutdown().await;
        traces.flush().await;
        stopped
    };
    tokio::select! {
        stopped = stopped => Ok(stopped?),
        signal = stop_signal() => {
            signal?;
            Err(CliError::failed("stopped at once; requests that were open were cut"))
        }
    }
}

async fn run_worker(config: Config) -> Result<(), CliError> {
    let worker = Server::start_worker(config, Arc::new(Bars::new(false))).await?;
    let url = format!("{}://{}", worker.scheme, worker.addr);
    say_ready(&format!("querent is ready at {url} (a worker of a cluster)"));
    stop_signal().await?;
    tokio::select! {
        () = worker.shutdown() => Ok(()),
        signal = stop_signal() => {
            signal?;
            Err(CliError::failed("stopped at once; tasks that were running were cut"))
        }
    }
}

/// Prints where the server is. One that cannot, since its output is full or closed, serves all the same.
fn say_ready(line: &str) {
    if let Err(error) = output::print_line(line) {
        tracing::warn!(%error, line, "standard output cannot be written");
    }
}

impl SettingsArgs {
    /// Returns the process's sources with these flags on top.
    pub(super) fn sources(self) -> SettingSources {
        let mut sources = SettingSources::process();
        if let Some(file) = self.config {
            sources = sources.with_file(file);
        }
        for (key, value) in self.set {
            sources = sources.with_flag(key, value);
        }
        let named = [
            ("listen", self.listen),
            ("cluster.role", self.role),
            ("data", self.data.map(|path| path.to_string_lossy().into_owned())),
            ("agent.ollama_host", self.ollama_host),
            ("agent.model", self.model),
        ];
        for (key, value) in named {
            if let Some(value) = value {
                sources = sources.with_flag(key, value);
            }
        }
        sources
    }
}

/// Returns a flag's help with the setting's default.
fn with_default(help: &str, default: impl std::fmt::Display) -> String {
    format!("{help} [default: {default}]")
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for example query.timeout=60s")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

//! Structured logs on standard error, by `tracing`, and the traces beside them.
//!
//! Invariant: a line that cannot be written, since the disk is full or nobody reads any more, is left out. `tracing` would say so
//! on standard error, which panics then, in the middle of whatever was logged.

use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{LogFormat, LogSettings, TelemetrySettings};
use crate::telemetry::{TraceExport, TraceExporter};

/// Dependencies whose log lines are noise to an operator. A filter that names one of them wins.
///
/// What genai logs is also in our own error; what rmcp warns about are mistakes of its clients, which are answered; and
/// lance_io warns that it did not open a store itself; lopdf shows what files hold. What is made for collectors of traces
/// is no line of a log.
const QUIET: &str = "lance=warn,lance_core=warn,lance_index=warn,lance_io::object_store=error,datafusion=warn,tantivy=warn,hyper=warn,h2=warn,ort=warn,genai=off,\
     rmcp=off,lopdf=off,querent::trace=off";
/// How long the last traces may take to reach their collector.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// Starts logging. Fails if this process already has a logger.
pub fn init_logs(settings: &LogSettings) -> Result<(), TryInitError> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_writer(std::io::stderr);
    let builder = builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).log_internal_errors(false);
    match settings.format {
        LogFormat::Text => builder.finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    }
}

/// The traces of this process, where the settings ask for some. They are sent on the runtime that started them.
pub(crate) struct Traces(Option<TraceExporter>);

impl Traces {
    /// Starts logging, and traces where the settings name a collector. Errors: this process has a logger already; what is
    /// wrong with what the settings say.
    pub(crate) fn start(log: &LogSettings, telemetry: &TelemetrySettings) -> Result<Self, String> {
        let Some(url) = telemetry.traces_url() else {
            // Without a collector no span is ever made.
            init_logs(log).map_err(|error| error.to_string())?;
            return Ok(Self(None));
        };
        let export = TraceExport {
            url,
            headers: telemetry.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            service_name: telemetry.service_name.clone(),
            statements: telemetry.statements,
        };
        let exporter = TraceExporter::start(export)?;
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).log_internal_errors(false);
        let lines = match log.format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry()
            .with(lines.with_filter(filter(log)))
            .with(exporter.layer())
            .try_init()
            .map_err(|error| error.to_string())?;
        Ok(Self(Some(exporter)))
    }

    /// Sends what has not been sent.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = &self.0 {
            exporter.flush(FLUSH_TIME).await;
        }
    }
}

fn filter(settings: &LogSettings) -> EnvFilter {
    EnvFilter::new(format!("{QUIET},{}", settings.filter))
}

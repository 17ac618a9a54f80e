//! Structured logs on standard error, by `tracing`.

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// Dependencies whose log lines are noise to an operator. A filter that names one of them wins.
///
/// What genai logs is also in our own error; what rmcp warns about are mistakes of its clients, which are answered; and
/// lance_io warns that it did not open a store itself.
const QUIET: &str = "lance=warn,lance_core=warn,lance_index=warn,lance_io::object_store=error,datafusion=warn,tantivy=warn,hyper=warn,h2=warn,ort=warn,genai=off,\
     rmcp=off";

/// Starts logging. Fails if this process already has a logger.
pub fn init_logs(settings: &LogSettings) -> Result<(), tracing_subscriber::util::TryInitError> {
    use tracing_subscriber::util::SubscriberInitExt;

    let filter = EnvFilter::new(format!("{QUIET},{}", settings.filter));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let builder = builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    match settings.format {
        LogFormat::Text => builder.finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    }
}

//! The way of spans to the collector: a bounded queue, and one task that sends what is in it.
//!
//! A span that ends while the queue is full, or whose export fails, is lost; `querent_trace_spans_total` says how many were.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor};
use querent_engine::telemetry::{TRACE_TARGET, show_statements};
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::outgoing_headers;
use crate::metrics;

/// The most spans that wait for their export.
const MAX_QUEUED: usize = 8_192;
/// The most spans of one request to the collector.
const MAX_BATCH: usize = 512;
/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// How long one request to the collector may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the log says that the collector cannot be reached.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// What OpenTelemetry's `OTEL_TRACES_SAMPLER` may say.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Where spans go, and what they hold.
#[derive(Clone)]
pub(crate) struct TraceExport {
    /// The whole address.
    pub(crate) url: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) service_name: String,
    /// Whether spans have the texts of statements.
    pub(crate) statements: bool,
}

/// The spans of this process on their way to the collector.
pub(crate) struct TraceExporter {
    provider: SdkTracerProvider,
    queue: mpsc::Sender<QueuedSpan>,
}

impl TraceExporter {
    /// Starts exporting, on the current runtime. Errors: what is wrong with the address, the headers, or the variables of
    /// OpenTelemetry.
    pub(crate) fn start(export: TraceExport) -> Result<Self, String> {
        check_sampler()?;
        let TraceExport { url, headers, service_name, statements } = export;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_headers(headers)
            .with_timeout(EXPORT_TIMEOUT);
        let mut exporter = exporter.build().map_err(|error| format!("traces cannot be exported: {error}"))?;
        let resource = Resource::builder()
            .with_service_name(service_name)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        exporter.set_resource(&resource);
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_span_processor(QueueingProcessor { queue: queue.clone() })
            .build();
        #[expect(clippy::disallowed_methods, reason = "it outlives the server, whose last spans it sends")]
        tokio::spawn(send_queued(exporter, queued));
        show_statements(statements);
        querent_agent::telemetry::propagate_traces(outgoing_headers);
        Ok(Self { provider, queue })
    }

    /// Returns what makes spans of those that the crates of this process open to be collected.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'s> LookupSpan<'s>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("querent"))
            // The log's spans stand between those that are collected.
            .with_context_activation(false)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TRACE_TARGET, LevelFilter::INFO))
    }

    /// Sends what is queued, and returns when it has arrived or `deadline` is over.
    pub(crate) async fn flush(&self, deadline: Duration) {
        let (sent, is_sent) = oneshot::channel();
        let flushed = async {
            if self.queue.send(QueuedSpan::Flush(sent)).await.is_ok() {
                let _ = is_sent.await;
            }
        };
        if tokio::time::timeout(deadline, flushed).await.is_err() {
            tracing::warn!("the last traces did not reach their collector in time");
        }
    }
}

fn check_sampler() -> Result<(), String> {
    let name = std::env::var("OTEL_TRACES_SAMPLER").unwrap_or_default();
    match name.as_str() {
        "" => Ok(()),
        known if SAMPLERS.contains(&known) => Ok(()),
        other => Err(format!("OTEL_TRACES_SAMPLER is `{other}`; there are {}", SAMPLERS.join(", "))),
    }
}

enum QueuedSpan {
    Ended(Box<SpanData>),
    /// Asks for all before it to be sent.
    Flush(oneshot::Sender<()>),
}

#[derive(Debug)]
struct QueueingProcessor {
    queue: mpsc::Sender<QueuedSpan>,
}

impl SpanProcessor for QueueingProcessor {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.queue.try_send(QueuedSpan::Ended(Box::new(span))).is_err() {
            metrics::trace_spans("dropped", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sends spans in batches until nobody can queue any more.
async fn send_queued(exporter: SpanExporter, mut queued: mpsc::Receiver<QueuedSpan>) {
    let mut batch = Batch { exporter, spans: Vec::new(), warned: None };
    let mut due = tokio::time::Instant::now();
    loop {
        let next = match batch.spans.is_empty() {
            true => Ok(queued.recv().await),
            false => tokio::time::timeout_at(due, queued.recv()).await,
        };
        match next {
            Ok(Some(QueuedSpan::Ended(span))) => {
                if batch.spans.is_empty() {
                    due = tokio::time::Instant::now() + DELAY;
                }
                batch.spans.push(*span);
                if batch.spans.len() == MAX_BATCH {
                    batch.send().await;
                }
            }
            Ok(Some(QueuedSpan::Flush(sent))) => {
                batch.send().await;
                let _ = sent.send(());
            }
            Ok(None) => return batch.send().await,
            Err(_) => batch.send().await,
        }
    }
}

struct Batch {
    exporter: SpanExporter,
    spans: Vec<SpanData>,
    /// When the log last said that an export failed.
    warned: Option<Instant>,
}

impl Batch {
    async fn send(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        let count = spans.len() as u64;
        let exported = tokio::time::timeout(EXPORT_TIMEOUT, self.exporter.export(spans)).await;
        let error = match exported {
            Ok(Ok(())) => return metrics::trace_spans("exported", count),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        metrics::trace_spans("failed", count);
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!(spans = count, error, "traces could not be sent to their collector; they are lost");
        }
    }
}

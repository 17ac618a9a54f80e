//! Traces out, by OpenTelemetry: the span of each request, which continues the caller's trace, and the collector that all
//! spans of the process go to.
//!
//! Invariant: nothing here blocks or fails a request. What cannot be exported is dropped and counted.

mod export;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use querent_engine::telemetry::TRACE_TARGET;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub(crate) use export::{TraceExport, TraceExporter};

const GRPC_STATUS: &str = "grpc-status";

tokio::task_local! {
    /// The trace's span of the request that this task answers.
    static CURRENT_REQUEST: Span;
}

/// The span of a request, in its extensions for what answers it in another task.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(pub(crate) Span);

/// Answers a request within its span in traces, and within that of the log, which is the inner one.
pub(crate) async fn answered<T>(trace: Span, log: Span, answer: impl Future<Output = T>) -> T {
    CURRENT_REQUEST.scope(trace.clone(), answer.instrument(log).instrument(trace)).await
}

/// Returns work of a request for a task of its own, within the request's spans.
pub(crate) fn detached<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let trace = CURRENT_REQUEST.try_with(Span::clone).unwrap_or_else(|_| Span::none());
    work.in_current_span().instrument(trace)
}

/// Records in the log and in traces who sends the request that is being answered.
pub(crate) fn record_caller(subject: &str) {
    Span::current().record("subject", subject);
    let _ = CURRENT_REQUEST.try_with(|trace| {
        trace.record("enduser.id", subject);
    });
}

/// Returns the span of a request that came in, which belongs to the trace that its headers name. gRPC's metadata are
/// headers too.
pub(crate) fn request_span(request: &Request, route: &str, request_id: &str) -> Span {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "request",
        "otel.name" = Empty,
        "otel.kind" = "server",
        "http.request.method" = request.method().as_str(),
        "http.route" = route,
        "http.response.status_code" = Empty,
        "rpc.system" = Empty,
        "rpc.service" = Empty,
        "rpc.method" = Empty,
        "rpc.grpc.status_code" = Empty,
        "querent.request_id" = request_id,
        "enduser.id" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let parent = TraceContextPropagator::new().extract(&TraceContextHeaders(request.headers()));
    // Fails only for a span that has begun.
    let _ = span.set_parent(parent);
    // A route of gRPC ends with a wildcard, in whose place the method's name is.
    let called = request.uri().path().rsplit_once('/').filter(|_| route.starts_with("/arrow.flight."));
    match called {
        Some((service, method)) if route.contains('*') => {
            let service = service.trim_start_matches('/');
            span.record("rpc.system", "grpc").record("rpc.service", service).record("rpc.method", method);
            span.record("otel.name", format!("{service}/{method}"));
        }
        _ => {
            span.record("otel.name", format!("{} {route}", request.method()));
        }
    }
    span
}

/// Records the status of a response, and keeps the request's spans until its last byte: what the body does belongs to them.
pub(crate) fn traced_response(response: Response, trace: Span, log: Span) -> Response {
    if trace.is_disabled() {
        return response;
    }
    record_status(&trace, response.status());
    record_grpc_status(&trace, response.headers());
    response.map(|body| Body::new(TracedBody { body, trace, log }))
}

fn record_status(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("error.type", status.as_str()).record("otel.status_code", "ERROR");
    }
}

fn record_grpc_status(span: &Span, headers: &HeaderMap) {
    let Some(code) = headers.get(GRPC_STATUS).and_then(|code| code.to_str().ok()?.parse::<i64>().ok()) else { return };
    span.record("rpc.grpc.status_code", code);
    if code != 0 {
        span.record("error.type", code.to_string()).record("otel.status_code", "ERROR");
    }
}

/// The headers by which a request to another server continues the current trace.
fn outgoing_headers() -> Vec<(String, String)> {
    let mut headers = OutgoingHeaders(Vec::new());
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut headers);
    headers.0
}

struct TracedBody {
    body: Body,
    trace: Span,
    log: Span,
}

impl http_body::Body for TracedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, trace, log } = &mut *self;
        let (_trace, _log) = (trace.enter(), log.enter());
        let frame = ready!(Pin::new(body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    record_grpc_status(trace, trailers);
                }
            }
            Some(Err(_)) => {
                trace.record("error.type", "body").record("otel.status_code", "ERROR");
            }
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct TraceContextHeaders<'r>(&'r HeaderMap);

impl Extractor for TraceContextHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(HeaderValue::to_str)?.ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

struct OutgoingHeaders(Vec<(String, String)>);

impl Injector for OutgoingHeaders {
    fn set(&mut self, key: &str, value: String) {
        if !value.is_empty() {
            self.0.push((key.to_owned(), value));
        }
    }
}

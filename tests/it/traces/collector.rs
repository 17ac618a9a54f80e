//! A collector of traces: it takes OTLP over HTTP, as protobuf, and keeps the spans. The messages have the fields of
//! `opentelemetry/proto/trace/v1/trace.proto` that the tests look at.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::routing::post;
use parking_lot::Mutex;
use prost::Message;
use querent_tests::wait_until;
use serde_json::{Value, json};

/// A span as a test reads it.
#[derive(Debug, Clone)]
pub struct OtlpSpan {
    pub service: String,
    pub trace_id: String,
    pub id: String,
    /// Empty for the first of a trace.
    pub parent: String,
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: i32,
    pub attributes: Value,
    /// Their attributes, and their names as `name`.
    pub events: Vec<Value>,
    /// 2: an error.
    pub status: i32,
}

impl OtlpSpan {
    /// Returns the value of an attribute; null where it has none.
    pub fn attribute(&self, name: &str) -> Value {
        self.attributes[name].clone()
    }
}

#[derive(Default)]
struct Received {
    spans: Vec<OtlpSpan>,
    headers: Vec<HeaderMap>,
}

/// A collector on a free port.
pub struct Collector {
    address: std::net::SocketAddr,
    received: Arc<Mutex<Received>>,
    server: tokio::task::JoinHandle<()>,
}

impl Collector {
    pub async fn start() -> Self {
        let received = Arc::new(Mutex::new(Received::default()));
        let router = Router::new().route("/v1/traces", post(collect)).with_state(Arc::clone(&received));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        #[expect(clippy::disallowed_methods, reason = "aborted when the test drops the collector")]
        let server = tokio::spawn(serving);
        Self { address, received, server }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the spans that have come.
    pub fn spans(&self) -> Vec<OtlpSpan> {
        self.received.lock().spans.clone()
    }

    /// Returns the spans once they are as a test waits for.
    pub async fn wait_for(&self, done: impl Fn(&[OtlpSpan]) -> bool) -> Vec<OtlpSpan> {
        wait_until("the spans arrive", async || done(&self.spans())).await;
        self.spans()
    }

    /// Whether every export had this header.
    pub fn has_header(&self, name: &str, value: &str) -> bool {
        let received = self.received.lock();
        received.headers.iter().all(|headers| headers.get(name).is_some_and(|found| found == value))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn collect(State(received): State<Arc<Mutex<Received>>>, headers: HeaderMap, body: Bytes) {
    assert_eq!(headers.get(header::CONTENT_TYPE).unwrap(), "application/x-protobuf");
    let export = ExportRequest::decode(body).expect("an ExportTraceServiceRequest");
    let mut received = received.lock();
    received.headers.push(headers);
    for resource in export.resource_spans {
        let about = resource.resource.map(|resource| object(resource.attributes)).unwrap_or_default();
        let service = about["service.name"].as_str().unwrap_or_default().to_owned();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            received.spans.push(OtlpSpan {
                service: service.clone(),
                trace_id: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                kind: span.kind,
                attributes: object(span.attributes),
                events: span.events.into_iter().map(Event::into_json).collect(),
                status: span.status.map(|status| status.code).unwrap_or_default(),
            });
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object(attributes: Vec<KeyValue>) -> Value {
    let pair = |attribute: KeyValue| (attribute.key, attribute.value.and_then(|value| value.value));
    let json_of = |value: Option<AttributeKind>| match value {
        Some(AttributeKind::Text(text)) => json!(text),
        Some(AttributeKind::Flag(flag)) => json!(flag),
        Some(AttributeKind::Integer(number)) => json!(number),
        Some(AttributeKind::Double(number)) => json!(number),
        None => Value::Null,
    };
    Value::Object(attributes.into_iter().map(pair).map(|(key, value)| (key, json_of(value))).collect())
}

#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<ExportedSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct ExportedSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    attributes: Vec<KeyValue>,
}

impl Event {
    fn into_json(self) -> Value {
        let mut event = object(self.attributes);
        event["name"] = json!(self.name);
        event
    }
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AttributeKind", tags = "1, 2, 3, 4")]
    value: Option<AttributeKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AttributeKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

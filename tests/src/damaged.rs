//! What must hold of any input, whoever made it: the loops of `tests/it/damaged_inputs.rs` and the fuzz targets call
//! these.

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, Criteria, FlightDescriptor, Ticket};
use futures::StreamExt;
use querent_engine::{EngineError, Session};
use serde_json::Value;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::server::TestServer;

/// The formats that an import takes.
pub const IMPORT_FORMATS: [&str; 5] = ["csv", "ndjson", "parquet", "arrow", "xlsx"];
/// The actions of Flight whose bodies are damaged.
const ACTIONS: [&str; 8] = [
    "CreatePreparedStatement",
    "ClosePreparedStatement",
    "CancelFlightInfo",
    "CancelQuery",
    "RenewFlightEndpoint",
    "SetSessionOptions",
    "GetSessionOptions",
    "BeginTransaction",
];

/// A route with a body that it takes.
#[derive(Debug, Clone)]
pub struct RouteExample {
    /// The method.
    pub method: String,
    /// The path, with `1` for each variable.
    pub path: String,
    /// The body's media type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The routes of an OpenAPI document that take a body, each with the examples of it. Backups are left out: they write
/// where they are told.
pub fn route_examples(document: &Value) -> Vec<RouteExample> {
    let mut examples = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let place: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let place = place.join("/");
        if place == "/v1/backup" {
            continue;
        }
        for method in ["post", "patch", "delete"] {
            let content = item[method]["requestBody"]["content"].as_object();
            for (content_type, body) in content.into_iter().flatten() {
                let text = match &body["example"] {
                    Value::Null => continue,
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let (method, content_type) = (method.to_ascii_uppercase(), content_type.clone());
                // A policy that is put in force would close the other routes.
                let query = if place == "/v1/policy" { "?dry_run=true" } else { "" };
                let path = format!("{place}{query}");
                examples.push(RouteExample { method, path, content_type, body: text.into_bytes() });
            }
        }
    }
    examples
}

/// SQL is planned and authorised, or refused: it is nobody's fault but its writer's, and in read-only mode nothing but
/// a query is let through.
pub async fn check_sql(session: &Session, text: &str) {
    let planned = session.plan_sql(text).await.and_then(|plan| session.authorize(plan));
    match planned {
        Ok(plan) => assert!(plan.is_query(), "let through in read-only mode: {text}"),
        Err(error) => check_error(&error, text),
    }
}

/// KQL is planned, or refused.
pub async fn check_kql(session: &Session, text: &str) {
    if let Err(error) = session.kql(text).await {
        check_error(&error, text);
    }
}

fn check_error(error: &EngineError, text: &str) {
    assert_ne!(error.code(), "internal", "{error}\nof {text:?}");
    assert!(!error.to_string().contains("panicked"), "{error}\nof {text:?}");
}

/// A request is answered, and the fault is its sender's.
pub async fn check_request(server: &TestServer, example: &RouteExample, body: Vec<u8>, token: Option<&str>) {
    let shown = String::from_utf8_lossy(&body).into_owned();
    let method = example.method.parse().expect("a method of the document");
    let request = server.http.request(method, server.url(&example.path)).header("content-type", &example.content_type);
    let reply = server.send(request.body(body), token).await;
    let what = format!("{} {} {shown:?}: {} {}", example.method, example.path, reply.status, reply.text);
    assert!(reply.status != 500 && !reply.text.contains("panicked"), "{what}");
}

/// A file is imported or refused, whatever it holds.
pub async fn check_import(server: &TestServer, format: &str, file: Vec<u8>, token: Option<&str>) {
    let example = RouteExample {
        method: "POST".to_owned(),
        path: format!("/v1/import?table=damaged&if_exists=replace&format={format}"),
        content_type: "application/octet-stream".to_owned(),
        body: Vec::new(),
    };
    check_request(server, &example, file, token).await;
}

/// Commands, tickets, criteria and bodies of actions: the first byte says which, the others are it.
pub async fn check_flight(client: &mut FlightServiceClient<Channel>, input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let bytes = bytes.to_vec();
    let call = usize::from(*kind) % (5 + ACTIONS.len());
    let status = match call {
        0 => client.get_flight_info(Request::new(FlightDescriptor::new_cmd(bytes.clone()))).await.err(),
        1 => client.get_schema(Request::new(FlightDescriptor::new_cmd(bytes.clone()))).await.err(),
        2 => client.poll_flight_info(Request::new(FlightDescriptor::new_cmd(bytes.clone()))).await.err(),
        3 => match client.do_get(Request::new(Ticket::new(bytes.clone()))).await {
            Ok(stream) => first_error(stream.into_inner()).await,
            Err(status) => Some(status),
        },
        4 => match client.list_flights(Request::new(Criteria { expression: bytes.clone().into() })).await {
            Ok(stream) => first_error(stream.into_inner()).await,
            Err(status) => Some(status),
        },
        other => match client.do_action(Request::new(Action::new(ACTIONS[other - 5], bytes.clone()))).await {
            Ok(stream) => first_error(stream.into_inner()).await,
            Err(status) => Some(status),
        },
    };
    if let Some(status) = status {
        let blames_the_server =
            matches!(status.code(), Code::Internal | Code::Unknown | Code::Unavailable | Code::DataLoss);
        assert!(!blames_the_server, "call {call} with {bytes:?}: {status:?}");
    }
}

async fn first_error<T>(mut stream: tonic::Streaming<T>) -> Option<Status> {
    while let Some(message) = stream.next().await {
        if let Err(status) = message {
            return Some(status);
        }
    }
    None
}

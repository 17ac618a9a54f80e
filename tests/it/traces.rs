//! Traces that a server sends to a collector by OTLP: the tree of spans of a question and of queries, what is in them and
//! what is not, and that a collector that is away costs nobody anything.

mod collector;

use std::time::Duration;

use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_tests::script::{run_sql, says};
use querent_tests::{ServerProcess, wait_until};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::Endpoint;

use crate::models::fake_ollama::{CannedReply, FakeOllama};
use collector::{Collector, OtlpSpan};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const SECRET: &str = "k4rst";

fn parent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

fn scripted(folder: &TempDir) -> String {
    let path = folder.path().join("script.json");
    let turns = json!([{ "events": [run_sql("SELECT 41 + 1 AS a")], "usage": { "input_tokens": 30, "output_tokens": 7 } },
        says("It is 42.")]);
    std::fs::write(&path, json!({ "runs": [{ "turns": turns }] }).to_string()).unwrap();
    path.display().to_string()
}

fn served(settings: &[(&str, &str)]) -> (ServerProcess, String) {
    let server = tokio::task::block_in_place(|| ServerProcess::start(settings));
    let url = server.url.trim_end_matches('/').to_owned();
    (server, url)
}

async fn post(url: String, body: Value) -> String {
    let request = Client::new().post(url).header("traceparent", parent()).json(&body);
    let reply = request.send().await.unwrap();
    let (status, text) = (reply.status(), reply.text().await.unwrap());
    assert!(status.is_success(), "{status}: {text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_one_trace_from_the_request_to_the_operators_of_its_query() {
    let collector = Collector::start().await;
    let folder = TempDir::new().unwrap();
    let settings = [
        ("QUERENT_AGENT_SCRIPT", scripted(&folder)),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=data%20people".to_owned()),
        ("QUERENT_TELEMETRY_OTLP_HEADERS", "x-key=s3cret".to_owned()),
        ("OTEL_SERVICE_NAME", "lake".to_owned()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (server, url) = served(&settings);
    let asked = post(
        format!("{url}/v1/chat/completions"),
        json!({
            "messages": [{ "role": "user", "content": format!("how many {SECRET}?") }],
        }),
    )
    .await;
    assert!(asked.contains("It is 42."), "{asked}");
    let has = |spans: &[OtlpSpan], begin: &str| spans.iter().any(|span| span.name.starts_with(begin));
    let spans = collector.wait_for(|spans| has(spans, "POST ") && has(spans, "invoke_agent")).await;

    let one = |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"));
    let request = one("POST /v1/chat/completions");
    assert!(spans.iter().all(|span| span.trace_id == TRACE), "{spans:#?}");
    assert_eq!((request.parent.as_str(), request.kind), (CALLER, 2), "{request:#?}");
    assert_eq!(request.attribute("http.response.status_code"), json!(200));
    assert_eq!(request.attribute("http.route"), json!("/v1/chat/completions"));
    assert_eq!(request.service, "lake");

    let run = one("invoke_agent querent");
    assert_eq!(run.parent, request.id);
    assert_eq!(run.attribute("querent.run.status"), json!("success"));
    let turns: Vec<&OtlpSpan> = spans.iter().filter(|span| span.name == "chat scripted").collect();
    assert_eq!(turns.len(), 2, "{spans:#?}");
    assert!(turns.iter().all(|turn| turn.parent == run.id && turn.kind == 3), "{turns:#?}");
    let tokens = |name: &str| turns.iter().map(|turn| turn.attribute(name).as_i64().unwrap()).sum::<i64>();
    assert_eq!((tokens("gen_ai.usage.input_tokens"), tokens("gen_ai.usage.output_tokens")), (50, 12));

    let tool = one("execute_tool run_sql");
    assert_eq!(tool.parent, run.id);
    let statement = spans.iter().find(|span| span.name == "statement" && span.parent == tool.id);
    let statement = statement.unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!(statement.attribute("db.response.returned_rows"), json!(1));
    assert_eq!(statement.attribute("db.query.text"), Value::Null, "texts are shown only where a setting says so");
    let below = |name: &str| spans.iter().find(|span| span.name == name && span.parent == statement.id);
    assert!(below("plan").is_some(), "{spans:#?}");
    let executed = below("execute").unwrap_or_else(|| panic!("{spans:#?}"));
    let operators: Vec<&Value> = executed.events.iter().filter(|event| event["name"] == "operator").collect();
    assert!(operators.iter().any(|operator| operator["querent.operator.rows"] == json!(1)), "{executed:#?}");

    let all = format!("{spans:?}");
    assert!(!all.contains(SECRET) && !all.contains("s3cret") && !all.contains("41 + 1"), "{all}");
    assert!(collector.has_header("x-key", "s3cret") && collector.has_header("x-team", "data people"));
    let exported = async || {
        let metrics = Client::new().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
        metrics.contains("querent_trace_spans_total{outcome=\"exported\"}")
    };
    wait_until("the exports are counted", exported).await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_over_http_and_flight_continue_their_callers_traces() {
    let collector = Collector::start().await;
    let endpoint = format!("{}/v1/traces", collector.url());
    let (mut server, url) =
        served(&[("QUERENT_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str()), ("QUERENT_TELEMETRY_STATEMENTS", "true")]);
    post(format!("{url}/v1/query"), json!({ "sql": "SELECT 7 AS seven" })).await;
    let refused = Client::new().post(format!("{url}/v1/query")).json(&json!({ "sql": "SELECT nope" })).send().await;
    assert_eq!(refused.unwrap().status(), 400);

    let channel = Endpoint::from_shared(url.clone()).unwrap().connect().await.unwrap();
    let mut flight = FlightSqlServiceClient::new(channel);
    flight.set_header("traceparent", parent());
    let info = flight.execute("SELECT 8 AS eight".to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let rows: Vec<_> = flight.do_get(ticket).await.unwrap().try_collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    // The last spans are sent while it stops.
    server.signal("TERM");
    assert!(tokio::task::block_in_place(|| server.child.wait()).unwrap().success());
    let spans = collector.spans();

    let roots: Vec<&OtlpSpan> = spans.iter().filter(|span| span.kind == 2).collect();
    let named =
        |name: &str| roots.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {roots:#?}"));
    let service = "arrow.flight.protocol.FlightService";
    let get = named(&format!("{service}/DoGet"));
    let planned = named(&format!("{service}/GetFlightInfo"));
    for span in [get, planned] {
        assert_eq!((span.trace_id.as_str(), span.parent.as_str()), (TRACE, CALLER), "{span:#?}");
        assert_eq!(span.attribute("rpc.grpc.status_code"), json!(0), "{span:#?}");
    }
    let child = |parent: &OtlpSpan, name: &str| {
        let found = spans.iter().find(|span| span.name == name && span.parent == parent.id);
        found.unwrap_or_else(|| panic!("{name} below {}: {spans:#?}", parent.name)).clone()
    };
    child(planned, "plan");
    child(&child(get, "statement"), "execute");
    let texts: Vec<Value> = spans.iter().map(|span| span.attribute("db.query.text")).collect();
    assert!(texts.contains(&json!("SELECT 7 AS seven")), "{texts:?}");
    let failed = spans.iter().find(|span| span.attribute("db.query.text") == json!("SELECT nope")).unwrap();
    assert_eq!((failed.attribute("error.type"), failed.status), (json!("column_not_found"), 2), "{failed:#?}");
    assert_ne!(failed.trace_id, TRACE, "a request without a trace begins one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_server_is_told_which_trace_it_works_for() {
    let collector = Collector::start().await;
    let ollama = FakeOllama::start(CannedReply::text("Hello.")).await;
    let (host, endpoint) = (ollama.host(), collector.url());
    let (_server, url) = served(&[
        ("QUERENT_AGENT_OLLAMA_HOST", host.as_str()),
        ("QUERENT_AGENT_MODEL", "gemma4"),
        ("QUERENT_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str()),
    ]);
    post(format!("{url}/v1/chat/completions"), json!({ "messages": [{ "role": "user", "content": "hello" }] })).await;
    let spans = collector.wait_for(|spans| spans.iter().any(|span| span.name == "chat gemma4")).await;
    let turn = spans.iter().find(|span| span.name == "chat gemma4").unwrap();
    assert_eq!(turn.attribute("gen_ai.provider.name"), json!("ollama"));
    assert_eq!(ollama.traces(), [format!("00-{TRACE}-{}-01", turn.id)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_requests_nothing_and_is_counted() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", nowhere.local_addr().unwrap());
    // Accepts connections and answers none of them.
    let (mut server, url) = served(&[("QUERENT_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str())]);
    for _ in 0..20 {
        let asked = post(format!("{url}/v1/query"), json!({ "sql": "SELECT 1 AS one" }));
        tokio::time::timeout(Duration::from_secs(10), asked).await.expect("a query waits for no collector");
    }
    drop(nowhere);
    let failed = async || {
        let metrics = Client::new().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
        metrics.contains("querent_trace_spans_total{outcome=\"failed\"}")
    };
    wait_until("failed exports are counted", failed).await;
    server.signal("TERM");
    assert!(tokio::task::block_in_place(|| server.child.wait()).unwrap().success());
}

//! Rows of an answer fetched by ticket over Flight: the same rows, to the same caller, within bounds of time and bytes,
//! and without the query running again.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use arrow_flight::Ticket;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use querent_flight::config::{ByteSize, DurationSetting};
use querent_tests::script::{run_sql, says, tool_call};
use querent_tests::{Python, TestServer, TestSettings, collect_sse, querent_binary, wait_for, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Code;

use crate::flight_sql::{Raw, decode, refused};

const TOKENS: &str = "anna-tok:read:anna,bob-tok:admin:bob";
/// Different rows whenever it is executed.
const RANDOM_ROWS: &str = "SELECT value AS n, random() AS r FROM generate_series(1, 3000) AS s(value)";

fn script() -> Value {
    json!({ "runs": [
        { "when": "random", "turns": [{ "events": [run_sql(RANDOM_ROWS)] }, says("Random.")] },
        { "when": "table", "turns": [{ "events": [run_sql("SELECT * FROM gone ORDER BY a")] }, says("A table.")] },
        { "when": "kql", "turns": [
            { "events": [tool_call("run_kql", json!({ "kql": "range x from 1 to 5000 step 1 | extend y = x * 2" }))] },
            says("Twice."),
        ] },
        { "when": "empty", "turns": [{ "events": [run_sql("SELECT 1 AS one WHERE false")] }, says("Nothing.")] },
        { "when": "mended", "turns": [
            { "events": [run_sql("SELECT 1 AS first")] },
            { "events": [run_sql("SELECT * FROM nowhere")] },
            { "events": [tool_call("sample_rows", json!({ "table": "gone", "n": 1 }))] },
            says("The first."),
        ] },
        { "when": "both", "turns": [
            { "events": [run_sql("SELECT 1 AS one"), run_sql("SELECT 2 AS two")] },
            says("Two."),
        ] },
        { "when": "large", "turns": [
            { "events": [run_sql("SELECT value AS n FROM generate_series(1, 100000) AS s(value)")] },
            says("Many."),
        ] },
        { "when": "failing", "turns": [{ "events": [run_sql("SELECT * FROM nowhere")] }, says("There is none.")] },
    ] })
}

async fn started() -> TestServer {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).script(script())).await;
    server.execute("CREATE TABLE gone AS SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b)").await;
    server
}

/// The results of an ask run's tools, and its answer.
struct Asked {
    results: Vec<Value>,
    answer: Value,
}

impl Asked {
    fn ticket(&self) -> String {
        self.answer["ticket"].as_str().unwrap_or_else(|| panic!("{}", self.answer)).to_owned()
    }
}

async fn ask(server: &TestServer, question: &str, token: Option<&str>) -> Asked {
    let text = server.post("/v1/agent/ask", &json!({ "question": question }), token).await.text;
    let frames = collect_sse(&text);
    let named =
        |name: &str| frames.iter().filter(|frame| frame.event == name).map(|frame| frame.data.clone()).collect();
    let (results, answers): (Vec<Value>, Vec<Value>) = (named("tool_result"), named("answer_final"));
    Asked { results, answer: answers.into_iter().next().unwrap_or_else(|| panic!("{text}")) }
}

/// Returns a ticket's rows, and whether the stream says that they are not all.
async fn fetch(client: &mut Raw, ticket: impl Into<Vec<u8>>) -> (Vec<RecordBatch>, bool) {
    let messages = client.fetch(Ticket::new(ticket.into())).await.unwrap();
    let (schema, batches) = decode(messages).await;
    (batches, schema.metadata().get("querent.truncated").is_some_and(|mark| mark == "true"))
}

fn row_count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_are_those_of_the_query_which_does_not_run_again() {
    let server = started().await;
    let mut anna = Raw::connect(&server).await.token("anna-tok");
    let asked = ask(&server, "random", Some("anna-tok")).await;
    let result = &asked.results[0];
    assert_eq!((&result["ticket"], result.get("ticket_truncated")), (&asked.answer["ticket"], None));
    assert_eq!((&result["result"]["row_count"], &result["result"]["total_rows"]), (&json!(200), &json!(3_000)));

    let ticket = asked.ticket();
    let (batches, is_truncated) = fetch(&mut anna, ticket.clone()).await;
    assert_eq!((row_count(&batches), is_truncated), (3_000, false));
    let shown = result["result"]["rows"].as_array().unwrap();
    let fetched: Vec<(i64, f64)> = batches
        .iter()
        .flat_map(|batch| {
            let numbers = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
            let randoms = batch.column(1).as_primitive::<Float64Type>().values().to_vec();
            numbers.into_iter().zip(randoms)
        })
        .collect();
    for (row, (n, r)) in shown.iter().zip(&fetched) {
        assert_eq!((row["n"].as_i64(), row["r"].as_f64()), (Some(*n), Some(*r)));
    }
    // Again, and decoded as bytes are in JSON of protobuf messages.
    let decoded = BASE64_STANDARD.decode(&ticket).unwrap();
    assert_eq!(fetch(&mut anna, decoded).await.0, batches);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_outlive_their_table() {
    let server = started().await;
    let mut anna = Raw::connect(&server).await.token("anna-tok");
    let (schema, expected) = anna.rows("SELECT * FROM gone ORDER BY a").await.unwrap();
    let ticket = ask(&server, "table", Some("anna-tok")).await.ticket();
    server.execute("DROP TABLE gone").await;
    let (fetched_schema, batches) = decode(anna.fetch(Ticket::new(ticket)).await.unwrap()).await;
    assert_eq!((fetched_schema, batches), (schema, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn kql_and_results_without_rows_have_tickets_too() {
    let server = started().await;
    let mut anna = Raw::connect(&server).await.token("anna-tok");
    let ticket = ask(&server, "kql", Some("anna-tok")).await.ticket();
    let (batches, is_truncated) = fetch(&mut anna, ticket).await;
    assert_eq!((row_count(&batches), is_truncated), (5_000, false));
    let ticket = ask(&server, "empty", Some("anna-tok")).await.ticket();
    let (schema, batches) = decode(anna.fetch(Ticket::new(ticket)).await.unwrap()).await;
    assert_eq!((schema.field(0).name().as_str(), row_count(&batches)), ("one", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_names_the_last_query_that_succeeded() {
    let server = started().await;
    let mut anna = Raw::connect(&server).await.token("anna-tok");
    let asked = ask(&server, "mended", Some("anna-tok")).await;
    let tickets: Vec<bool> = asked.results.iter().map(|result| result["ticket"].is_string()).collect();
    assert_eq!(tickets, [true, false, true], "{:?}", asked.results);
    assert_eq!(asked.answer["ticket"], asked.results[0]["ticket"]);
    let asked = ask(&server, "both", Some("anna-tok")).await;
    assert_eq!(fetch(&mut anna, asked.ticket()).await.0[0].schema().field(0).name(), "two");
    assert_eq!(ask(&server, "failing", Some("anna-tok")).await.answer.get("ticket"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_its_callers_own() {
    let server = started().await;
    let mut anna = Raw::connect(&server).await.token("anna-tok");
    let mut bob = Raw::connect(&server).await.token("bob-tok");
    let mut nobody = Raw::connect(&server).await;
    let ticket = ask(&server, "table", Some("anna-tok")).await.ticket();
    let sent = || Ticket::new(ticket.clone());
    assert_eq!(refused(bob.fetch(sent()).await), (Code::PermissionDenied, "forbidden".to_owned()));
    assert_eq!(refused(nobody.fetch(sent()).await), (Code::Unauthenticated, "unauthenticated".to_owned()));
    anna.fetch(sent()).await.unwrap();
    let forged = format!("{}{:032x}", &ticket[..16], 7);
    for bad in [forged, ticket[..40].to_owned(), format!("{ticket}00")] {
        assert_eq!(refused(anna.fetch(Ticket::new(bad)).await), (Code::InvalidArgument, "invalid_ticket".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_run_names_the_ticket_and_an_expired_one_says_so() {
    let settings = TestSettings::default().script(script());
    let short =
        settings.change(|settings| settings.agent.result_lifetime = DurationSetting(Duration::from_millis(300)));
    let server = TestServer::start(short).await;
    let mut client = Raw::connect(&server).await;
    let asked = ask(&server, "both", None).await;
    let runs = server.get("/v1/agent/runs", None).await.json();
    let run_id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let stored = server.get(&format!("/v1/agent/runs/{run_id}"), None).await.json();
    let trace = stored["trace"].as_array().unwrap();
    let answer = trace.iter().find(|frame| frame["event"] == "answer_final").unwrap();
    assert_eq!(answer["data"], asked.answer);

    let status = wait_for("the ticket expires", async || client.fetch(Ticket::new(asked.ticket())).await.err()).await;
    assert!(status.message().contains("ask again"), "{status:?}");
    assert_eq!(refused(Err::<(), _>(status)), (Code::NotFound, "ticket_expired".to_owned()));
    wait_until("the rows are dropped", async || server.agent().results().bytes() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_results_stay_within_their_bytes() {
    const MAX_BYTES: usize = 512 << 10;
    let small = TestSettings::default().script(script());
    let server =
        TestServer::start(small.change(|settings| settings.agent.result_bytes = ByteSize(MAX_BYTES as u64))).await;
    let mut client = Raw::connect(&server).await;
    let first = ask(&server, "random", None).await.ticket();
    let mut last = String::new();
    for _ in 0..20 {
        last = ask(&server, "random", None).await.ticket();
        assert!(server.agent().results().bytes() <= MAX_BYTES);
    }
    let status = client.fetch(Ticket::new(first)).await.unwrap_err();
    assert!(status.message().contains("make room"), "{status:?}");
    assert_eq!(refused(Err::<(), _>(status)), (Code::NotFound, "ticket_expired".to_owned()));
    assert_eq!(row_count(&fetch(&mut client, last).await.0), 3_000);

    // One that is larger than its share is cut, which the event and the stream say.
    let asked = ask(&server, "large", None).await;
    assert_eq!(
        (&asked.results[0]["ticket_truncated"], &asked.answer["ticket_truncated"]),
        (&json!(true), &json!(true))
    );
    let (batches, is_truncated) = fetch(&mut client, asked.ticket()).await;
    assert!(is_truncated && (200..100_000).contains(&row_count(&batches)), "{}", row_count(&batches));
    assert!(server.agent().results().bytes() <= MAX_BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bytes_are_no_tickets() {
    let none = TestSettings::default().script(script()).change(|settings| settings.agent.result_bytes = ByteSize(0));
    let server = TestServer::start(none).await;
    let asked = ask(&server, "both", None).await;
    assert_eq!((asked.results[0].get("ticket"), asked.answer.get("ticket")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_with_a_place_for_it_has_the_ticket() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    let mut client = Raw::connect(&server).await;
    let mut found: Vec<(&str, Value)> = Vec::new();

    let reply = server.post("/v1/responses", &json!({ "input": "both" }), None).await.json();
    let calls: Vec<&Value> =
        reply["output"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp_call").collect();
    found.push(("responses", calls[1]["ticket"].clone()));
    // The item is taken back as it was given.
    let input = json!([{ "role": "user", "content": "before" }, calls[1], { "role": "user", "content": "both" }]);
    assert_eq!(server.post("/v1/responses", &json!({ "input": input }), None).await.status, 200);

    let ksadk = json!({ "input": "both", "stream": true, "metadata": { "agentengine": {} } });
    let frames = collect_sse(&server.post("/v1/responses", &ksadk, None).await.text);
    let told = frames.iter().filter(|frame| frame.event == "response.ksadk.tool_result").nth(1).unwrap();
    found.push(("ksadk", told.data["ticket"].clone()));

    let message = json!({ "role": "user", "parts": [{ "text": "both" }] });
    let adk = json!({ "appName": "querent", "userId": "ann", "sessionId": "s-1", "newMessage": message });
    let events = server.post("/run", &adk, None).await.json();
    let events = events.as_array().unwrap();
    let tickets: Vec<&Value> = events.iter().filter_map(|event| event["customMetadata"].get("ticket")).collect();
    assert_eq!((tickets.len(), tickets[1]), (3, tickets[2]), "two results and the answer: {events:?}");
    found.push(("adk", tickets[2].clone()));

    let holmes = server.post("/api/chat", &json!({ "ask": "both" }), None).await.json();
    assert_eq!(holmes["metadata"]["tickets"][1]["tool_name"], "run_sql", "{holmes}");
    found.push(("holmes", holmes["metadata"]["tickets"][1]["ticket"].clone()));

    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "run_sql", "arguments": { "sql": "SELECT 2 AS two" } } });
    let request =
        server.http.post(server.url("/mcp")).header("accept", "application/json, text/event-stream").json(&call);
    let reply = server.send(request, None).await;
    let data = reply.text.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or(&reply.text);
    let answer: Value = serde_json::from_str(data).unwrap();
    found.push(("mcp", answer["result"]["structuredContent"]["ticket"].clone()));

    for (protocol, ticket) in found {
        let ticket = ticket.as_str().unwrap_or_else(|| panic!("{protocol}: {ticket}")).to_owned();
        let (batches, _) = fetch(&mut client, ticket).await;
        let column = batches[0].column(0).as_primitive::<Int64Type>();
        assert_eq!((batches[0].schema().field(0).name().as_str(), column.value(0)), ("two", 2), "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_applications_user_who_cannot_use_flight_gets_no_ticket() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    let body = json!({ "input": "both", "sessionSettings": { "externalId": "ann@example.com" } });
    let request = server.http.post(server.url("/api/v1/public/acme/agents/1/chat/stream-chat-state"));
    let reply = server.send(request.header("authorization", "Api-Key any-key").json(&body), None).await;
    assert!(reply.text.contains("two") && !reply.text.contains("querentresultset"), "{}", reply.text);
    assert_eq!(server.agent().results().bytes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_says_how_to_fetch_the_rows_and_fetch_does() {
    let server = started().await;
    let folder = TempDir::new().unwrap();
    let url = server.url("");
    let asked = querent(&["ask", "--server", &url, "random"], "anna-tok").await;
    assert!(asked.status.success(), "{}", said(&asked));
    let told = said(&asked);
    let line = told.lines().find_map(|line| line.strip_prefix("rows: querent ")).unwrap_or_else(|| panic!("{told}"));
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[..3], ["fetch", "--server", &url]);

    let table = querent(&words, "anna-tok").await;
    assert!(table.status.success() && said(&table).contains("(3,000 rows, 100 shown"), "{}", said(&table));
    let lines = querent(&[&words[..], &["--json"]].concat(), "anna-tok").await;
    assert_eq!(said(&lines).lines().count(), 3_000);
    for name in ["rows.arrows", "rows.ndjson"] {
        let file = folder.path().join(name);
        let done = querent(&[&words[..], &["-o", file.to_str().unwrap()]].concat(), "anna-tok").await;
        assert!(done.status.success() && said(&done).ends_with("3000 rows\n"), "{}", said(&done));
        assert_eq!(rows_of_file(&file).await, 3_000);
    }
    let other = querent(&words, "bob-tok").await;
    assert!(other.status.code() == Some(1) && said(&other).contains("error [forbidden]"), "{}", said(&other));
    let wrong = querent(&[&words[..], &["-o", "rows.xlsx"]].concat(), "anna-tok").await;
    assert!(wrong.status.code() == Some(2) && said(&wrong).contains(".arrows"), "{}", said(&wrong));
    let nowhere = querent(&["fetch", words[3]], "anna-tok").await;
    assert!(nowhere.status.code() == Some(2) && said(&nowhere).contains("QUERENT_SERVER"), "{}", said(&nowhere));

    // Without a server there is nobody to fetch from.
    std::fs::write(folder.path().join("script.json"), script().to_string()).unwrap();
    let mut command = Command::new(querent_binary());
    command.args(["ask", "--data"]).arg(folder.path().join("data")).arg("random");
    command.env("QUERENT_EMBED_PROVIDER", "none").env("QUERENT_AGENT_SCRIPT", folder.path().join("script.json"));
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(done.status.success() && !said(&done).contains("querent fetch"), "{}", said(&done));
}

#[tokio::test(flavor = "multi_thread")]
async fn pyarrow_fetches_by_ticket() {
    const FETCH: &str = "\
import sys, pyarrow.flight as flight
client = flight.FlightClient(sys.argv[1])
options = flight.FlightCallOptions(headers=[(b'authorization', b'Bearer anna-tok')])
table = client.do_get(flight.Ticket(sys.argv[2]), options).read_all()
print(table.num_rows, table.column_names)";
    let server = started().await;
    let ticket = ask(&server, "random", Some("anna-tok")).await.ticket();
    let address = format!("grpc://{}", server.addr);
    let told = tokio::task::spawn_blocking(move || Python::run(FETCH, &[&address, &ticket])).await.unwrap();
    assert_eq!(told.trim(), "3000 ['n', 'r']");
}

async fn rows_of_file(file: &Path) -> usize {
    let bytes = tokio::fs::read(file).await.unwrap();
    if file.extension().is_some_and(|extension| extension == "ndjson") {
        return bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    }
    let reader = arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).sum()
}

async fn querent(arguments: &[&str], token: &str) -> Output {
    let mut command = Command::new(querent_binary());
    command.args(arguments).env("QUERENT_TOKEN", token).env_remove("QUERENT_SERVER");
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

//! Faults while a request is open: clients that vanish or dawdle, and servers that shut down.

mod continued;
mod half_closed;

use std::process::Stdio;
use std::time::{Duration, Instant};

use arrow_flight::Empty;
use arrow_flight::flight_service_client::FlightServiceClient;
use querent_tests::{
    PATIENCE, ServerProcess, TestServer, TestSettings, collect_sse, wait_for, wait_until, wait_until_memory_is_free,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tonic::Code;
use tonic::transport::Endpoint;

/// Work that would keep a processor busy for hours.
const ENDLESS_SQL: &str = "SELECT count(*) FROM generate_series(1, 1000000) a CROSS JOIN generate_series(1, 1000000) b";

#[tokio::test]
async fn a_client_that_vanishes_stops_the_model_call() {
    let server = TestServer::start(TestSettings::default().script(hanging_script())).await;
    let mut stream = ask_raw(&server, "are you there?").await;
    let begun = read_until(&mut stream, "run_started").await;
    wait_until("the model call begins", async || server.model.calls().borrow().started == 1).await;
    assert_eq!(server.model.calls().borrow().dropped, 0);

    drop(stream);
    wait_until("the model call is dropped", async || server.model.calls().borrow().dropped == 1).await;
    let run_id = begun.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    wait_until_stored_as(&server.url(""), &run_id, "cancelled").await;
}

/// The server is a process of its own, so that its processor time shows whether the query still runs.
#[tokio::test]
async fn a_client_killed_mid_run_stops_the_query() {
    let script = tempfile::NamedTempFile::new().unwrap();
    let call = json!({ "tool_call": { "name": "run_sql", "arguments": { "sql": ENDLESS_SQL } } });
    let turns = json!({ "runs": [{ "turns": [{ "events": [call] }], "repeat_last": true }] });
    tokio::fs::write(script.path(), turns.to_string()).await.unwrap();
    let path = script.path().to_str().unwrap().to_owned();
    let server = start_process(vec![("QUERENT_AGENT_SCRIPT", path)]).await;

    let mut client = tokio::process::Command::new("curl")
        .args(["-sS", "-N", "-d", r#"{"question":"how many?"}"#, &format!("{}/v1/agent/ask", server.url)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = client.stdout.take().unwrap();
    let begun = read_until(&mut events, "tool_call").await;
    assert_busy(&server).await;

    client.kill().await.unwrap();
    assert_idle(&server).await;
    let run_id = begun.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    wait_until_stored_as(&server.url, &run_id, "cancelled").await;
}

#[tokio::test]
async fn a_client_killed_mid_query_stops_the_query() {
    let server = start_process(Vec::new()).await;
    let mut client = tokio::process::Command::new("curl")
        .args(["-sS", "-N", "-d", ENDLESS_SQL, &format!("{}/v1/query", server.url)])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_busy(&server).await;
    client.kill().await.unwrap();
    assert_idle(&server).await;
}

#[tokio::test]
async fn a_shutdown_ends_open_streams_with_their_last_event() {
    let server = TestServer::start(TestSettings::default().script(hanging_script())).await;
    let body = json!({ "question": "are you there?" });
    let open = server.http.post(server.url("/v1/agent/ask")).json(&body).send().await.unwrap();
    wait_until("the model call begins", async || server.model.calls().borrow().started == 1).await;
    let (data, text) = tokio::join!(server.stop(), open.text());
    let frames = collect_sse(&text.expect("a whole stream, not a cut one"));
    assert_eq!(frames.last().unwrap().event, "run_finished");

    let again = TestServer::start_in(data, TestSettings::default()).await;
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    wait_until_stored_as(&again.url(""), run_id, "cancelled").await;
}

#[tokio::test]
async fn a_shutdown_shows_in_readiness_first_and_lets_queries_finish() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.shutdown_delay.0 = Duration::from_millis(500);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let (http, addr) = (server.http.clone(), server.addr);
    let sql = "SELECT count(*) AS n FROM generate_series(1, 3000000) AS t(value)";
    let query = http.post(server.url("/v1/query")).body(sql).send();
    let ready_url = server.url("/ready");
    let is_told = async || http.get(&ready_url).send().await.is_ok_and(|reply| reply.status() == 503);
    let told = wait_until("the server says that it is not ready", is_told);
    let (data, (), answered) = tokio::join!(server.stop(), told, query);
    assert_eq!(answered.unwrap().text().await.unwrap(), "{\"n\":3000000}\n");
    assert!(TcpStream::connect(addr).await.is_err(), "nothing listens any more");
    drop(data);
}

#[tokio::test]
async fn requests_that_outlast_the_shutdown_are_cut() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.shutdown_timeout.0 = Duration::from_millis(300);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let query = server.http.post(server.url("/v1/query")).body(ENDLESS_SQL).send();
    let (stopped, answered) = tokio::join!(
        async {
            // The query has to be under way when the server stops, and nothing that a client sees says that it is.
            tokio::time::sleep(Duration::from_millis(300)).await;
            tokio::time::timeout(PATIENCE, server.stop()).await
        },
        query
    );
    assert!(stopped.is_ok(), "the shutdown ends");
    assert!(answered.is_err(), "an unfinished answer is not a whole one");
}

#[tokio::test]
async fn sigterm_stops_the_process_cleanly() {
    let script = tempfile::NamedTempFile::new().unwrap();
    tokio::fs::write(script.path(), hanging_script().to_string()).await.unwrap();
    let path = script.path().to_str().unwrap().to_owned();
    let mut server = start_process(vec![("QUERENT_AGENT_SCRIPT", path)]).await;
    let body = json!({ "question": "are you there?" });
    let open = reqwest::Client::new().post(format!("{}/v1/agent/ask", server.url)).json(&body).send().await.unwrap();
    server.signal("TERM");
    let frames = collect_sse(&open.text().await.unwrap());
    assert_eq!(frames.last().unwrap().event, "run_finished");
    let status = tokio::task::spawn_blocking(move || server.child.wait().unwrap()).await.unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_client_that_stops_reading_gives_its_place_back_and_its_query_waits() {
    let timeout = Duration::from_secs(1);
    let change = move |settings: &mut querent_flight::config::Settings| {
        settings.query.max_concurrent = 1;
        settings.query.timeout.0 = timeout;
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let sql = "SELECT value, repeat('x', 1000) AS s FROM generate_series(1, 100000000) AS t(value)";
    let mut stalled = server.http.post(server.url("/v1/query")).body(sql).send().await.unwrap();
    assert_eq!(stalled.status(), 200);
    wait_until("the place comes back", async || status_of_query(&server).await == 200).await;
    // Longer than the query's own time, which does not run while it waits.
    tokio::time::sleep(2 * timeout).await;
    let mut read = 0;
    while read < 32 << 20 {
        let chunk = stalled.chunk().await.unwrap().expect("the query goes on");
        let is_error = String::from_utf8_lossy(&chunk).contains("\"error\"");
        assert!(!is_error, "{}", String::from_utf8_lossy(&chunk));
        read += chunk.len();
    }
}

#[tokio::test]
async fn a_query_that_works_keeps_its_place() {
    let change = |settings: &mut querent_flight::config::Settings| settings.query.max_concurrent = 1;
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let sql = "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a.value + b.value < 0";
    // One of the short queries below may have the place when the join asks for it.
    let admitted = async {
        loop {
            let answer = server.http.post(server.url("/v1/query")).body(sql).send().await.unwrap();
            if answer.status() != 429 {
                return answer;
            }
        }
    };
    let working = tokio::time::timeout(PATIENCE, admitted);
    let refused = wait_until("the only place is taken", async || status_of_query(&server).await == 429);
    tokio::select! {
        answered = working => panic!("the join is not over: {answered:?}"),
        () = refused => {}
    }
}

#[tokio::test]
async fn a_query_that_nobody_reads_ends() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.query.reader_idle.0 = Duration::from_secs(1);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let sql = "SELECT value, repeat('x', 1000) AS s FROM generate_series(1, 200000) AS t(value)";
    let stalled = server.http.post(server.url("/v1/query")).body(sql).send().await.unwrap();
    assert_eq!(stalled.status(), 200);
    wait_until("the query runs ahead", async || server.engine().memory_reserved_bytes() > 0).await;
    // Longer than a query waits, which is what is tested.
    tokio::time::sleep(Duration::from_secs(3)).await;
    wait_until_memory_is_free(server.engine()).await;
    // A client that reads on gets the error.
    let rest = stalled.text().await.unwrap();
    assert!(rest.trim_end().lines().last().unwrap().contains("reader_idle"), "{}", &rest[rest.len() - 300..]);
}

#[tokio::test]
async fn a_client_that_reads_late_still_gets_the_last_event() {
    let pieces: Vec<Value> = (0..300).map(|_| json!({ "text": "x".repeat(64 * 1024) })).collect();
    let script = json!({ "runs": [{ "turns": [{ "events": pieces }] }] });
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.agent.run_timeout.0 = Duration::from_secs(1);
    };
    let server = TestServer::start(TestSettings::default().script(script).change(change)).await;
    let body = json!({ "question": "tell me much" });
    let open = server.http.post(server.url("/v1/agent/ask")).json(&body).send().await.unwrap();
    // A client that reads long after its run's time is over.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let frames = collect_sse(&open.text().await.unwrap());
    assert_eq!(frames.last().unwrap().event, "run_finished");
}

/// Clients that go away at every moment of a run's beginning.
#[tokio::test]
async fn runs_that_nobody_waited_for_do_not_stay_running() {
    let server = TestServer::start(TestSettings::default().script(hanging_script())).await;
    for moment in 0..60 {
        let stream = ask_raw(&server, "are you there?").await;
        // The moment at which the client goes away.
        tokio::time::sleep(Duration::from_micros(moment * 100)).await;
        drop(stream);
    }
    let are_cancelled = async || {
        let listed = server.get("/v1/agent/runs?limit=200", None).await.json();
        listed["runs"].as_array().unwrap().iter().all(|run| run["status"] == "cancelled")
    };
    wait_until("all runs are stored as cancelled", are_cancelled).await;
}

#[tokio::test]
async fn clients_that_dawdle_are_cut() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.http.header_timeout.0 = Duration::from_millis(300);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let beginnings =
        ["", "GET /health HT", "PRI * HTTP/2.0\r\n", "POST /v1/query HTTP/1.1\r\nhost: localhost\r\nx-slow: "];
    for beginning in beginnings {
        let mut stream = TcpStream::connect(server.addr).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let began = Instant::now();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "{beginning:?} keeps its connection");
        assert!(began.elapsed() < Duration::from_secs(10), "{beginning:?}: {:?}", began.elapsed());
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{beginning:?}");
    }
    assert_eq!(server.get("/health", None).await.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_bound_wait() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.http.max_connections = 1;
        settings.http.header_timeout.0 = Duration::from_millis(400);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let _idle = TcpStream::connect(server.addr).await.unwrap();
    // Connections are accepted in their order: the idle one has the one place until the header timeout takes it away.
    let began = Instant::now();
    let client = reqwest::Client::new();
    assert_eq!(client.get(server.url("/health")).send().await.unwrap().status(), 200);
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_has_its_connections_is_refused_more_and_others_are_not() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.http.max_connections = 40;
        settings.http.max_connections_per_address = Some(4);
    };
    let server = TestServer::start(TestSettings::default().change(change)).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(server.addr).await.unwrap());
    }
    let get = async |from: &str| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(server.addr).await.unwrap();
        let request = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let refused = get("127.0.0.1").await;
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: "), "{refused}");
    assert!(refused.contains("too_many_requests") && refused.contains("max_connections_per_address"), "{refused}");
    let served = get("127.0.0.2").await;
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
    // A client is told for two seconds, which it may miss on a busy machine.
    wait_until("a call of gRPC is refused", async || {
        let Ok(channel) = Endpoint::from_shared(server.url("")).unwrap().connect().await else { return false };
        let told = FlightServiceClient::new(channel).list_actions(Empty {}).await;
        told.is_err_and(|told| told.code() == Code::ResourceExhausted)
    })
    .await;
    idle.clear();
    wait_until("its connections are closed", async || get("127.0.0.1").await.starts_with("HTTP/1.1 200 ")).await;
}

#[tokio::test]
async fn a_data_folder_in_use_is_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let data = server.data().to_owned();
    let options = querent_flight::config::Settings { data, ..Default::default() };
    let config = querent_flight::config::Config::from_settings(querent_flight::config::Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        embed: querent_flight::config::EmbeddingSettings {
            provider: querent_flight::config::EmbedProviderName::None,
            ..Default::default()
        },
        ..options
    });
    let second = querent_flight::Server::start(config.unwrap(), std::sync::Arc::new(querent_catalog::NoProgress)).await;
    let error = second.err().expect("one writer a folder");
    assert_eq!(error.code().as_str(), "data_folder_in_use", "{error}");
}

fn hanging_script() -> Value {
    json!({ "runs": [{ "turns": [{ "events": ["hang"] }], "repeat_last": true }] })
}

/// Sends a question over a socket of its own, so that dropping the socket closes the connection.
async fn ask_raw(server: &TestServer, question: &str) -> TcpStream {
    let body = json!({ "question": question }).to_string();
    let request =
        format!("POST /v1/agent/ask HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_until(stream: &mut (impl AsyncReadExt + Unpin), marker: &str) -> String {
    let mut read = String::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while !read.contains(marker) {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the stream ended before {marker}: {read}");
            read.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("no {marker}"));
    // The rest of the frame.
    let mut buffer = [0; 4096];
    if let Ok(Ok(count)) = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut buffer)).await {
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    read
}

/// Returns the status of a query: 429 while another one has the only place.
async fn status_of_query(server: &TestServer) -> u16 {
    server.http.post(server.url("/v1/query")).body("SELECT 1").send().await.unwrap().status().as_u16()
}

/// Waits until a run is stored with that status, and checks its last event.
async fn wait_until_stored_as(url: &str, run_id: &str, status: &str) {
    let url = format!("{url}/v1/agent/runs/{run_id}");
    let stored = async || {
        let run: Value = reqwest::get(&url).await.unwrap().json().await.unwrap();
        Some(run).filter(|run| run["status"] == status)
    };
    let run = wait_for(&format!("the run is stored as {status}"), stored).await;
    assert_eq!(run["trace"].as_array().unwrap().last().unwrap()["event"], "run_finished", "{run}");
}

async fn start_process(settings: Vec<(&'static str, String)>) -> ServerProcess {
    let start = move || {
        let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        ServerProcess::start(&settings)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Waits until the server has burnt a tenth of a second of processor time.
async fn assert_busy(server: &ServerProcess) {
    let before = server.cpu_ticks();
    wait_until("the query burns processor time", async || server.cpu_ticks() >= before + 10).await;
}

/// Waits until half a second passes in which the server burns nearly none.
async fn assert_idle(server: &ServerProcess) {
    let is_idle = async || {
        let before = server.cpu_ticks();
        // Idle is a rate: little processor time in a while.
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.cpu_ticks() - before <= 3
    };
    wait_until("the query ends without its client", is_idle).await;
}

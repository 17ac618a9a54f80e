//! Clients that read one byte a second, or nothing: other clients are served as usual, the slow clients' runs end, their
//! queries wait for them, and the server does not keep what they have not read.

use std::time::{Duration, Instant};

use querent_tests::{ServerProcess, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Pieces of the long answer; rendered for one client they are about 8 MiB.
const PIECES: usize = 20_000;
const PIECE: &str = "a piece of an answer that is long enough to make a client which reads it slowly fall behind for ever, \
    with some more words, so that what the server would keep for it shows in the memory that the server takes ";
/// Readers of the long answer. If it were kept for each of them, that would be 240 MiB.
const SLOW_READERS: usize = 30;
const MAX_GROWTH_BYTES: u64 = 160 << 20;
/// The longest that a short answer may take while slow clients, which would take weeks, hold their connections. Without
/// them it takes milliseconds.
const MAX_ANSWER: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn they_stall_nobody_and_cost_no_memory() {
    let script = TempDir::new().unwrap();
    let path = script.path().join("script.json");
    std::fs::write(&path, scripted().to_string()).unwrap();
    let path = path.to_str().unwrap();
    let server = ServerProcess::start(&[
        ("QUERENT_AGENT_SCRIPT", path),
        ("QUERENT_LOG", "warn"),
        ("QUERENT_AGENT_RUN_TIMEOUT", "600s"),
        // The allocator of debug builds keeps what was freed, unless large pieces are the system's.
        ("MALLOC_MMAP_THRESHOLD_", "65536"),
        ("MALLOC_ARENA_MAX", "2"),
    ]);
    let http = reqwest::Client::new();

    // A run that has written much and is still running; its events are stored once.
    let body = json!({"input": "long", "background": true});
    let sent = http.post(format!("{}/v1/responses", server.url)).json(&body).send().await.unwrap();
    let begun: Value = sent.json().await.unwrap();
    let again = format!("/v1/responses/{}?stream=true", begun["id"].as_str().unwrap());
    let mut whole = http.get(format!("{}{again}", server.url)).send().await.unwrap();
    let mut read = 0;
    while read < PIECES * PIECE.len() {
        read += whole.chunk().await.unwrap().expect("the run goes on").len();
    }
    drop(whole);

    let before = server.resident_bytes();
    let mut slow = Vec::new();
    for _ in 0..SLOW_READERS {
        slow.push(SlowReader::open(&server, &format!("GET {again} HTTP/1.1\r\n"), "").await);
    }
    for (route, body) in asked("middling") {
        slow.push(SlowReader::open(&server, &format!("POST {route} HTTP/1.1\r\n"), &body.to_string()).await);
    }
    for _ in 0..3 {
        for reader in &mut slow {
            reader.read_byte().await;
        }
        for (route, body) in asked("short") {
            let started = Instant::now();
            let sent = http.post(format!("{}{route}", server.url)).json(&body).send().await.unwrap();
            let text = sent.text().await.unwrap();
            assert!(text.contains("enough said"), "{route}: {text}");
            assert!(started.elapsed() < MAX_ANSWER, "{route}: {:?}", started.elapsed());
        }
        // One byte a second is how slow these clients are.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // What the answers to the others took is given back in a while; what is kept for slow readers is not.
    let grown = || server.resident_bytes().saturating_sub(before);
    wait_until("slow readers cost little memory", async || grown() < MAX_GROWTH_BYTES).await;
    println!("{} MiB more for slow readers", grown() >> 20);

    // Their own runs do not wait for them.
    let running = async || {
        let listed = http.get(format!("{}/v1/agent/runs?limit=100", server.url)).send().await.unwrap();
        let listed: Value = listed.json().await.unwrap();
        listed["runs"].as_array().unwrap().iter().filter(|run| run["status"] == "running").count()
    };
    wait_until("only the long run goes on", async || running().await == 1).await;
}

/// Cursors that nobody reads: many more than queries may run at once.
const IDLE_CURSORS: usize = 100;
/// What a cursor may cost that nobody reads. Of rows of 100 KB, a thousandth of what one batch of DataFusion's would be.
const MAX_CURSOR_BYTES: u64 = 12 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn idle_cursors_cost_no_place_and_little_memory() {
    let server = ServerProcess::start(&[("QUERENT_LOG", "warn"), ("QUERENT_QUERY_TIMEOUT", "5s")]);
    let http = reqwest::Client::new();
    let status_of = async |sql: &str| {
        let sent = http.post(format!("{}/v1/query", server.url)).body(sql.to_owned()).send().await.unwrap();
        sent.status().as_u16()
    };
    assert_eq!(status_of("SELECT 1").await, 200);
    let before = server.resident_bytes();
    // Large rows of every origin: a long literal, a function of the row, an array.
    let columns = ["repeat('x', 100000)", "repeat('x', 100000 - value % 7)", "array_repeat(value, 12500)"];
    let mut cursors = Vec::new();
    for number in 0..IDLE_CURSORS {
        let column = columns[number % columns.len()];
        let sql = format!("SELECT {column} AS large FROM generate_series(1, 1000000) AS t(value)");
        let mut cursor =
            SlowReader::open(&server, "POST /v1/query HTTP/1.1\r\n", &json!({ "sql": sql }).to_string()).await;
        assert_eq!(cursor.read_line().await, "HTTP/1.1 200 OK");
        cursors.push(cursor);
    }
    // Longer than a query's own time, which does not run while a query waits.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(status_of("SELECT 1").await, 200);
    let growth = server.resident_bytes().saturating_sub(before);
    println!("{} MiB more for {IDLE_CURSORS} idle cursors", growth >> 20);
    assert!(growth < IDLE_CURSORS as u64 * MAX_CURSOR_BYTES, "{} MiB for {IDLE_CURSORS} cursors", growth >> 20);
    // They are still there.
    for cursor in &mut cursors {
        cursor.read_byte().await;
    }
}

/// Returns a question in each protocol that streams its answer in pieces.
fn asked(text: &str) -> [(&'static str, Value); 5] {
    let messages = json!([{"role": "user", "content": text}]);
    [
        ("/v1/responses", json!({"input": text, "stream": true})),
        ("/v1/chat/completions", json!({"messages": messages, "stream": true})),
        ("/agentengine/api/v1/RunAgent", json!({"AgentId": "querent", "Messages": messages, "Stream": true})),
        (
            "/run_sse",
            json!({
                "appName": "querent", "userId": "u", "streaming": true,
                "newMessage": {"role": "user", "parts": [{"text": text}]},
            }),
        ),
        ("/v1/agent/ask", json!({"question": text})),
    ]
}

fn scripted() -> Value {
    let pieces = |count: usize, last: Value| -> Value {
        let mut events = vec![json!({"text": PIECE}); count];
        events.push(last);
        json!([{"events": events}])
    };
    json!({"runs": [
        {"when": "long", "turns": pieces(PIECES, json!("hang"))},
        {"when": "middling", "turns": pieces(2_000, json!({"text": "enough said"}))},
        {"when": "short", "turns": pieces(20, json!({"text": "enough said"}))},
    ]})
}

/// A connection with a small receive buffer.
struct SlowReader {
    stream: TcpStream,
}

impl SlowReader {
    async fn open(server: &ServerProcess, request: &str, body: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let addr = server.url.strip_prefix("http://").unwrap();
        let mut stream = socket.connect(addr.parse().unwrap()).await.unwrap();
        let length = body.len();
        let headers = format!("host: {addr}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{request}{headers}{body}").as_bytes()).await.unwrap();
        Self { stream }
    }

    /// Reads the rest of a line.
    async fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(tokio::time::timeout(MAX_ANSWER, self.stream.read_u8()).await.unwrap().unwrap());
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// Reads a byte. Panics when the server has closed the connection.
    async fn read_byte(&mut self) {
        let read = tokio::time::timeout(MAX_ANSWER, self.stream.read_u8()).await;
        assert!(matches!(read, Ok(Ok(_))), "{read:?}");
    }
}

//! Clients that stop sending once they have asked: they get their answer, and are told from those that are gone.

use std::time::{Duration, Instant};

use querent_tests::{PATIENCE, TestServer, TestSettings, wait_until};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::hanging_script;

/// A query that takes a while, so that the client has stopped sending before its answer begins.
const SLOW_SQL: &str = "SELECT count(*) AS n FROM generate_series(1, 2000) a CROSS JOIN generate_series(1, 2000) b";
const NUMBERED: &str = r#"{"n":4000000}"#;

#[tokio::test]
async fn a_client_that_stops_sending_gets_its_answer() {
    let server = TestServer::start(TestSettings::default().script(slow_script())).await;
    let question = |stream: bool| {
        let messages = json!([{ "role": "user", "content": "how many?" }]);
        json!({ "model": "querent", "messages": messages, "stream": stream, "max_tokens": 100 }).to_string()
    };
    let ask = json!({ "question": "how many?" }).to_string();
    let input = |stream: bool| json!({ "model": "querent", "input": "how many?", "stream": stream }).to_string();
    for (path, body, parts) in [
        ("/v1/query", SLOW_SQL.to_owned(), &[NUMBERED][..]),
        ("/v1/agent/ask", ask, &["event: run_finished"]),
        ("/v1/chat/completions", question(false), &["There are ", "seven.", "chat.completion"]),
        ("/v1/chat/completions", question(true), &["There are ", "seven.", "[DONE]"]),
        ("/v1/responses", input(false), &["seven.", "\"completed\""]),
        ("/v1/responses", input(true), &["seven.", "response.completed"]),
        ("/v1/messages", question(true), &["seven.", "message_stop"]),
    ] {
        let mut stream = TcpStream::connect(server.addr).await.unwrap();
        let answer = answer_after_close(&mut stream, &post("1.1", path, &body)).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {answer}");
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{path}: {answer}");
        for part in parts {
            assert!(answer.contains(part), "{path}: no {part:?} in {answer}");
        }
        if answer.contains("transfer-encoding: chunked") {
            assert!(decode_chunks(&answer).contains(parts[parts.len() - 1]), "{path}: {answer}");
        }
    }
}

#[tokio::test]
async fn versions_and_requests_in_a_row_keep_their_bytes() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let answer = answer_after_close(&mut stream, &post("1.0", "/v1/query", SLOW_SQL)).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains(NUMBERED), "{answer}");

    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let both = post("1.1", "/v1/query", SLOW_SQL) + &post("1.1", "/v1/query", SLOW_SQL);
    let answer = answer_after_close(&mut stream, &both).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answer}");
    assert_eq!(answer.matches(NUMBERED).count(), 2, "{answer}");

    // Half of a request is none.
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let cut = post("1.1", "/v1/query", SLOW_SQL);
    let answer = answer_after_close(&mut stream, &cut[..cut.len() - 1]).await;
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn other_sockets_are_half_closed_alike() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("querent.sock");
    let socket = path.clone();
    let settings = TestSettings::default().script(hanging_script());
    let server = TestServer::start(settings.change(move |settings| settings.listen_unix = Some(socket))).await;
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let answer = answer_after_close(&mut stream, &post("1.1", "/v1/query", SLOW_SQL)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(NUMBERED), "{answer}");

    let body = json!({ "question": "are you there?" }).to_string();
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(post("1.1", "/v1/agent/ask", &body).as_bytes()).await.unwrap();
    wait_until("the model call begins", async || server.model.calls().borrow().started == 1).await;
    drop(stream);
    wait_until("the model call is dropped", async || server.model.calls().borrow().dropped == 1).await;
}

/// Whether the answer has begun, comes whole at its end or has been waited for with half of a connection.
#[tokio::test]
async fn a_client_that_is_gone_ends_its_work_at_once() {
    let server = TestServer::start(TestSettings::default().script(hanging_script())).await;
    let message = json!([{ "role": "user", "content": "are you there?" }]);
    let completion = json!({ "model": "querent", "messages": message }).to_string();
    let question = json!({ "question": "are you there?" }).to_string();
    let cases = [("/v1/chat/completions", &completion), ("/v1/agent/ask", &question)];
    for (begun, (path, body, is_half_closed)) in
        cases.into_iter().flat_map(|(path, body)| [(path, body, false), (path, body, true)]).enumerate()
    {
        let mut stream = TcpStream::connect(server.addr).await.unwrap();
        stream.write_all(post("1.1", path, body).as_bytes()).await.unwrap();
        if is_half_closed {
            stream.shutdown().await.unwrap();
        }
        wait_until("the model call begins", async || server.model.calls().borrow().started == begun + 1).await;
        assert_eq!(server.model.calls().borrow().dropped, begun, "{path}: its client waits");
        let dropped = Instant::now();
        drop(stream);
        wait_until("the model call is dropped", async || server.model.calls().borrow().dropped == begun + 1).await;
        // What is sent ahead to a client that has stopped sending goes out after one, two, four seconds.
        let bound = Duration::from_millis(if is_half_closed { 10_000 } else { 1_000 });
        assert!(dropped.elapsed() < bound, "{path}, {is_half_closed}: {:?}", dropped.elapsed());
    }
}

fn slow_script() -> Value {
    let events = json!([{ "delay_ms": 300 }, { "text": "There are " }, { "delay_ms": 1500 }, { "text": "seven." }]);
    json!({ "runs": [{ "turns": [{ "events": events }], "repeat_last": true }] })
}

fn post(version: &str, path: &str, body: &str) -> String {
    let json = if body.starts_with('{') { "content-type: application/json\r\n" } else { "" };
    let length = body.len();
    format!("POST {path} HTTP/{version}\r\nhost: localhost\r\n{json}content-length: {length}\r\n\r\n{body}")
}

/// Sends a request and nothing after it, and returns all that comes.
async fn answer_after_close(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8(answer).unwrap()
}

/// Takes an answer's body out of its chunks, as clients do.
fn decode_chunks(answer: &str) -> String {
    let (_, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    let mut body = String::new();
    loop {
        let (length, chunk) = rest.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap_or_else(|error| panic!("{length:?}: {error}"));
        if length == 0 {
            assert_eq!(chunk, "\r\n");
            return body;
        }
        body.push_str(&chunk[..length]);
        rest = chunk[length..].strip_prefix("\r\n").unwrap();
    }
}

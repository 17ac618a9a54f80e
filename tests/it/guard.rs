//! The guard before gRPC: what the headers say decides, before a byte of a body is read, and bodies are bounded.

use std::time::Duration;

use arrow_flight::sql::{Any, CommandStatementUpdate};
use arrow_flight::{BasicAuth, FlightDescriptor, HandshakeRequest};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use querent_flight::config::{ByteSize, DurationSetting, Settings};
use querent_tests::{PATIENCE, TestServer, TestSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::flight_sql::{Raw, descriptor, statement, ticket_of};

const PREFIX: &str = "/arrow.flight.protocol.FlightService";
const INVALID: i32 = 3;
const FORBIDDEN: i32 = 7;
const EXHAUSTED: i32 = 8;
const UNIMPLEMENTED: i32 = 12;
const UNAUTHENTICATED: i32 = 16;
const LATE: i32 = 4;

/// What a page of another site, or one whose name points here, sends.
const FOREIGN: [&[(&str, &str)]; 5] = [
    &[("host", "evil.example"), ("origin", "http://evil.example")],
    &[("host", "evil.example")],
    &[("origin", "http://evil.example")],
    &[("origin", "null")],
    &[("sec-fetch-site", "cross-site")],
];

#[tokio::test]
async fn a_page_of_another_site_makes_nothing_over_http_1() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut client = Raw::connect(&server).await;
    let info = client.plan("create table stolen as select 1 as x").await.unwrap();
    let plan = framed(&descriptor(&statement("create table stolen as select 1 as x")));
    let ticket = framed(&ticket_of(&info));
    for headers in FOREIGN {
        for (method, body) in [("GetFlightInfo", &plan), ("DoGet", &ticket)] {
            for (content_type, status) in [("application/grpc", 200), ("text/plain", 403), ("", 403)] {
                let mut all = vec![("content-type", content_type)];
                all.retain(|(_, value)| !value.is_empty());
                all.extend(headers);
                let answer = http_1(&server, &format!("{PREFIX}/{method}"), &all, body).await;
                assert_eq!(answer.status, status, "{method} {all:?}");
                assert_eq!(answer.grpc_status(), FORBIDDEN, "{method} {all:?}");
                assert_eq!(answer.header("x-querent-code"), "forbidden");
                assert_eq!(answer.header("content-type"), "application/grpc");
            }
        }
    }
    assert!(client.plan("select * from stolen").await.is_err(), "no table was made");
    client.fetch(ticket_of(&info)).await.expect("the ticket was not used");
}

#[tokio::test]
async fn a_page_of_another_site_makes_nothing_over_http_2() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut http_2 = Http2::connect(&server).await;
    let plan = framed(&descriptor(&statement("select 1")));
    for headers in FOREIGN {
        for path in
            [format!("{PREFIX}/GetFlightInfo"), format!("{PREFIX}/Handshake"), "/un.known.Service/Call".to_owned()]
        {
            let answer = http_2.call(&path, headers, whole(plan.clone())).await;
            assert_eq!((answer.status, answer.grpc_status()), (200, FORBIDDEN), "{path} {headers:?}");
            assert_eq!(answer.header("x-querent-code"), "forbidden");
        }
    }
    let same_site = [("host", "localhost:1"), ("origin", "http://localhost:1"), ("sec-fetch-site", "same-origin")];
    let answer = http_2.call(&format!("{PREFIX}/GetFlightInfo"), &same_site, whole(plan)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-querent-code"), "", "let in");
}

#[tokio::test]
async fn calls_that_no_grpc_client_makes_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let plan = framed(&descriptor(&statement("select 1")));
    let path = format!("{PREFIX}/GetFlightInfo");
    let grpc = ("content-type", "application/grpc");
    let answer = http_1(&server, &path, &[grpc], &plan).await;
    assert_eq!((answer.status, answer.grpc_status()), (200, UNIMPLEMENTED), "over HTTP/1.1");
    assert!(answer.header("grpc-message").contains("HTTP/2"), "{answer:?}");
    for content_type in ["text/plain", "application/grpc-web+proto", "multipart/form-data"] {
        let answer = http_1(&server, &path, &[("content-type", content_type)], &plan).await;
        assert_eq!(answer.status, 415, "{content_type}");
        assert_eq!(answer.header("x-querent-code"), "unsupported_media_type");
    }
    let mut http_2 = Http2::connect(&server).await;
    for path in ["/grpc.health.v1.Health/Check", &format!("{PREFIX}/Nope"), "/v1/query", "/nowhere"] {
        let answer = http_2.call(path, &[], whole(plan.clone())).await;
        assert_eq!((answer.status, answer.grpc_status()), (200, UNIMPLEMENTED), "{path}");
        assert_eq!(answer.header("x-querent-code"), "unsupported", "{path}");
    }
}

#[tokio::test]
async fn a_request_is_for_one_host() {
    let server = TestServer::start(TestSettings::default()).await;
    let plan = framed(&descriptor(&statement("select 1")));
    let hosts = [("host", "localhost"), ("host", "evil.example")];
    for path in ["/v1/query", "/health", "/", "/nowhere", "/v1/messages"] {
        let answer = http_1(&server, path, &hosts, b"select 1").await;
        assert_eq!(answer.status, 400, "{path}");
    }
    let answer = http_1(&server, "/v1/query", &hosts, b"select 1").await;
    assert_eq!(answer.header("x-querent-error-code"), "bad_header");
    let answer = http_1(&server, &format!("{PREFIX}/GetFlightInfo"), &hosts, &plan).await;
    assert_eq!((answer.status, answer.header("x-querent-code")), (400, "bad_header"));
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_its_senders_fault() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut http_2 = Http2::connect(&server).await;
    // A path that is not UTF-8, and a field that is cut off.
    for message in [&[8, 1, 0x1a, 2, 0xff, 0xfe][..], &[0x1a, 9]] {
        let message: Bytes = [&declared(u32::try_from(message.len()).unwrap())[..], message].concat().into();
        for method in ["GetFlightInfo", "GetSchema", "DoPut"] {
            let answer = http_2.call(&format!("{PREFIX}/{method}"), &[], whole(message.clone())).await;
            assert_eq!((answer.status, answer.grpc_status()), (200, INVALID), "{method}");
            assert_eq!(answer.header("x-querent-code"), "bad_request", "{method}");
        }
    }
}

#[tokio::test]
async fn without_a_token_a_call_ends_at_its_headers() {
    let server = TestServer::start(TestSettings::default().tokens("tok:read")).await;
    let mut http_2 = Http2::connect(&server).await;
    for method in ["GetFlightInfo", "DoGet", "DoPut", "DoAction", "DoExchange", "ListActions", "Nope"] {
        // The body declares 64 MiB and then stays open: only an answer from the headers can come.
        let answer = http_2.call(&format!("{PREFIX}/{method}"), &[], open(declared(64 << 20))).await;
        assert_eq!((answer.status, answer.grpc_status()), (200, UNAUTHENTICATED), "{method}");
        assert_eq!(answer.header("x-querent-code"), "unauthenticated");
        let wrong = [("authorization", "Bearer nope")];
        let answer = http_2.call(&format!("{PREFIX}/{method}"), &wrong, open(Bytes::new())).await;
        assert_eq!(answer.grpc_status(), UNAUTHENTICATED, "{method}");
    }
    let wrong = [("authorization", "Basic bm9ib2R5Om5vcGU=")];
    let answer = http_2.call(&format!("{PREFIX}/Handshake"), &wrong, open(Bytes::new())).await;
    assert_eq!(answer.grpc_status(), UNAUTHENTICATED, "a handshake with credentials in its headers");
    let answer = http_2.call("/un.known.Service/Call", &[], open(Bytes::new())).await;
    assert_eq!(answer.grpc_status(), UNAUTHENTICATED);
}

#[tokio::test]
async fn a_handshake_is_small() {
    let server = TestServer::start(TestSettings::default().tokens("tok:read")).await;
    let mut http_2 = Http2::connect(&server).await;
    let path = format!("{PREFIX}/Handshake");
    let answer = http_2.call(&path, &[], open(declared(64 << 20))).await;
    assert_eq!((answer.status, answer.grpc_status()), (200, EXHAUSTED));
    assert_eq!(answer.header("x-querent-code"), "body_too_large");
    let credentials = BasicAuth { username: "anybody".to_owned(), password: "tok".to_owned() };
    let payload = HandshakeRequest { protocol_version: 0, payload: credentials.encode_to_vec().into() };
    let answer = http_2.call(&path, &[], open(framed(&payload))).await;
    assert_eq!(answer.header("authorization"), "Bearer tok", "{answer:?}");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_by_its_header() {
    let settings = TestSettings::default().tokens("tok:read").change(|settings: &mut Settings| {
        settings.flight.max_message_bytes = ByteSize(32 << 20);
        settings.flight.upload_idle_timeout = DurationSetting(Duration::from_millis(200));
    });
    let server = TestServer::start(settings).await;
    let mut http_2 = Http2::connect(&server).await;
    let token = [("authorization", "Bearer tok")];
    for (method, limit) in
        [("GetFlightInfo", 17 << 20), ("DoGet", 17 << 20), ("DoAction", 17 << 20), ("DoPut", 32 << 20)]
    {
        let path = format!("{PREFIX}/{method}");
        let answer = http_2.call(&path, &token, open(declared(limit + 1))).await;
        assert_eq!((answer.status, answer.grpc_status()), (200, EXHAUSTED), "{method}");
        assert_eq!(answer.header("x-querent-code"), "body_too_large");
    }
    // A large message that is allowed is waited for.
    let answer = http_2.call(&format!("{PREFIX}/DoPut"), &token, open(declared(32 << 20))).await;
    assert_eq!(answer.grpc_status(), LATE);
    // And the second message of a stream is looked at as well.
    let command = Any::pack(&CommandStatementUpdate { query: "select 1".to_owned(), transaction_id: None }).unwrap();
    let first = FlightDescriptor::new_cmd(command.encode_to_vec());
    let first = arrow_flight::FlightData::new().with_descriptor(first);
    let both = [framed(&first), declared(u32::MAX)].concat();
    let answer = http_2.call(&format!("{PREFIX}/DoPut"), &token, open(both.into())).await;
    assert_ne!(answer.grpc_status(), 0);
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_its_request() {
    let settings = TestSettings::default().change(|settings: &mut Settings| {
        settings.http.body_timeout = DurationSetting(Duration::from_millis(200));
    });
    let server = TestServer::start(settings).await;
    let mut http_2 = Http2::connect(&server).await;
    let plan = framed(&descriptor(&statement("select 1")));
    let half = plan.slice(..plan.len() / 2);
    for body in [Bytes::new(), declared(16 << 20), half, plan.clone()] {
        // The last one is whole, but its client never says that it is.
        let answer = http_2.call(&format!("{PREFIX}/GetFlightInfo"), &[], open(body)).await;
        assert_eq!((answer.status, answer.grpc_status()), (200, LATE));
        assert_eq!(answer.header("x-querent-code"), "body_timeout");
    }
    // A client that sends its bytes one by one is waited for.
    let bytes: Vec<Bytes> = plan.chunks(1).map(Bytes::copy_from_slice).collect();
    let slow = stream::iter(bytes).then(async |byte| {
        // Slower than the whole body may be idle, if it were counted from its begin.
        tokio::time::sleep(Duration::from_millis(10)).await;
        byte
    });
    let answer = http_2.call(&format!("{PREFIX}/GetFlightInfo"), &[], slow.boxed()).await;
    assert_eq!(answer.header("x-querent-code"), "", "{answer:?}");

    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let head = "POST /v1/query HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 10\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 408") && text.contains("body_timeout"), "{text}");
}

#[tokio::test]
async fn a_long_statement_fits() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut client = Raw::connect(&server).await;
    let sql = format!("select 1 as x -- {}", "x".repeat(6 << 20));
    assert!(client.plan(&sql).await.is_ok());
    // More than a statement may have, sent by a client that does not look at its answer before it has sent all.
    let sql = format!("select 1 as x -- {}", "x".repeat(20 << 20));
    let refusal = client.plan(&sql).await.unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::ResourceExhausted, "{refusal:?}");
    assert!(client.plan("select 1").await.is_ok(), "the connection goes on");
}

type BytesStream = stream::BoxStream<'static, Bytes>;

/// A body that ends.
fn whole(bytes: Bytes) -> BytesStream {
    stream::iter([bytes]).boxed()
}

/// A body that begins and then says nothing more.
fn open(bytes: Bytes) -> BytesStream {
    stream::iter([bytes]).chain(stream::pending()).boxed()
}

/// The header of a message of so many bytes.
fn declared(bytes: u32) -> Bytes {
    let mut header = vec![0];
    header.extend(bytes.to_be_bytes());
    header.into()
}

fn framed(message: &impl Message) -> Bytes {
    let body = message.encode_to_vec();
    [declared(u32::try_from(body.len()).unwrap()), body.into()].concat().into()
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: http::HeaderMap,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    fn grpc_status(&self) -> i32 {
        self.header("grpc-status").parse().unwrap_or(-1)
    }
}

/// Sends one request over HTTP/1.1. The headers may name a host, which is this machine's otherwise.
async fn http_1(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut head = format!("POST {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        head.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let mut lines = answer.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse::<http::HeaderName>().unwrap(), value.parse::<http::HeaderValue>().unwrap())
    });
    Answer { status, headers: headers.collect() }
}

/// A connection of HTTP/2, without a gRPC client's conveniences.
struct Http2 {
    sender: hyper::client::conn::http2::SendRequest<StreamBody<stream::BoxStream<'static, FrameResult>>>,
    _connection: JoinSet<()>,
}

type FrameResult = Result<Frame<Bytes>, std::convert::Infallible>;

impl Http2 {
    async fn connect(server: &TestServer) -> Self {
        let stream = TokioIo::new(TcpStream::connect(server.addr).await.unwrap());
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        Self { sender, _connection: tasks }
    }

    /// Sends one call and returns the headers of its answer.
    async fn call(&mut self, path: &str, headers: &[(&str, &str)], body: BytesStream) -> Answer {
        let host = headers.iter().find(|(name, _)| *name == "host").map_or("localhost", |(_, value)| value);
        let mut request = hyper::Request::post(format!("http://{host}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            request = request.header(*name, *value);
        }
        let body: stream::BoxStream<'static, FrameResult> = body.map(|bytes| Ok(Frame::data(bytes))).boxed();
        let request = request.body(StreamBody::new(body)).unwrap();
        let answered = tokio::time::timeout(PATIENCE, self.sender.send_request(request)).await;
        let answer: hyper::Response<Incoming> = answered.expect("in time").expect("an answer");
        let (parts, body) = answer.into_parts();
        let mut headers = parts.headers;
        if !headers.contains_key("grpc-status") {
            let collected = tokio::time::timeout(PATIENCE, body.collect()).await.expect("in time").expect("a body");
            headers.extend(collected.trailers().cloned().unwrap_or_default());
        }
        Answer { status: parts.status.as_u16(), headers }
    }
}

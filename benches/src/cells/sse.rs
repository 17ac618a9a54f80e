//! The event stream under load: a thousand runs at once whose model says twenty pieces a second, stored as they go; how many
//! events a second leave the server against a minimal axum server that sends the same bytes; and what a piece of text costs in
//! other protocols against ask.
//!
//! Each piece of text is the time at which the model said it, so that its reader knows how long it took: in letters, since
//! an answer with numbers has a proof for each of them, which axum's has not. What those cost is a figure of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use axum::Router;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::post;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use querent_agent::models::{ChatRequest, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, TokenUsage};
use querent_catalog::NoProgress;
use querent_flight::Server;
use querent_flight::config::{Config, EmbedProviderName, SettingSources};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;
use crate::harness::{Figure, measure_in_process, median};

const STREAMS: usize = 1_000;
const EVENTS_A_STREAM: usize = 400;
const EVENT_EVERY: Duration = Duration::from_millis(50);
const BURST_READERS: usize = 32;
/// Each reader's, one after the other, so that some begin and are stored while others are read.
const BURST_STREAMS_EACH: usize = 4;
const BURST_EVENTS: usize = 8_000;
const ROUNDS: usize = 5;

/// A protocol whose streams are compared with those of ask.
struct StreamForm {
    name: &'static str,
    path: &'static str,
    /// The request for a stream whose model says its pieces at once.
    body: fn() -> Value,
}

const ASK: StreamForm = StreamForm { name: "ask", path: "/v1/agent/ask", body: || json!({ "question": "burst" }) };
const ASK_OF_NUMBERS: StreamForm =
    StreamForm { name: "ask", path: "/v1/agent/ask", body: || json!({ "question": "numbers" }) };
const COMPARED: [StreamForm; 4] = [
    StreamForm {
        name: "AG-UI",
        path: "/ag-ui",
        body: || json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "1", "role": "user", "content": "burst" }] }),
    },
    StreamForm {
        name: "Anthropic's Messages",
        path: "/v1/messages",
        body: || {
            let messages = json!([{ "role": "user", "content": "burst" }]);
            json!({ "model": "querent", "max_tokens": 100_000, "stream": true, "messages": messages })
        },
    },
    StreamForm {
        name: "A2A",
        path: "/a2a",
        body: || {
            let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "burst" }] });
            let params = json!({ "message": message });
            json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params })
        },
    },
    StreamForm {
        name: "OpenAI's Responses",
        path: "/v1/responses",
        body: || json!({ "input": "burst", "stream": true }),
    },
];

#[derive(Serialize, Deserialize)]
struct StreamMeasurement {
    delay_p50_ms: f64,
    delay_p99_ms: f64,
    /// Events that the slowest stream got, of those that it should have.
    least_share: f64,
    resident_mib: f64,
    ratio: f64,
    events_a_second: f64,
    /// What a piece takes in each of the compared protocols, against ask.
    against_ask: Vec<f64>,
    /// What a piece takes that is a number, against one that is a word.
    number_against_word: f64,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let measured: StreamMeasurement = measure_in_process("sse", folder.path()).await?;
    let mut figures = vec![
        Figure::alone("1,000 streams of 20 events a second: delay of an event, p50", measured.delay_p50_ms, "ms", None),
        Figure::alone("the same, p99", measured.delay_p99_ms, "ms", Some(100.0)),
        Figure::alone("the same: events of the slowest stream", measured.least_share * 100.0, "%", None),
        Figure::alone("the same: memory of the server and its readers", measured.resident_mib, "MiB", Some(1024.0)),
        Figure::alone(
            "events a second, 32 readers that take stream after stream",
            measured.events_a_second,
            "events/s",
            None,
        ),
        Figure::alone("the same against axum's own server-sent events (at least 0.7)", measured.ratio, "x", None),
    ];
    for (form, times) in COMPARED.iter().zip(&measured.against_ask) {
        let name = format!("a piece of text by {} against ask", form.name);
        figures.push(Figure::alone(name, *times, "x", Some(1.2)));
    }
    let name = "a piece that is a number, with its proof, against a word";
    figures.push(Figure::alone(name, measured.number_against_word, "x", None));
    Ok(figures)
}

pub(crate) async fn measure(folder: &Path) -> Result<serde_json::Value, Failure> {
    let server = serve(folder).await?;
    let plain = serve_plain().await?;
    // Warm-up, of both.
    burst(server.addr, "/v1/agent/ask").await?;
    burst(plain, "/").await?;
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let ours = burst(server.addr, "/v1/agent/ask").await?;
        let theirs = burst(plain, "/").await?;
        ratios.push(ours / theirs);
        rates.push(ours);
    }
    let mut against_ask = against_ask(server.addr).await?;
    let number_against_word = against_ask.pop().unwrap_or(f64::NAN);
    let readers: Vec<_> = (0..STREAMS).map(|_| read_stream(server.addr, "/v1/agent/ask", "paced")).collect();
    let read = futures::future::try_join_all(readers).await?;
    let resident_mib = resident_mib().await?;
    let least = read.iter().map(Vec::len).min().unwrap_or_default();
    let mut delays: Vec<f64> = read.into_iter().flatten().collect();
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    let measured = StreamMeasurement {
        delay_p50_ms: at(0.5),
        delay_p99_ms: at(0.99),
        least_share: least as f64 / EVENTS_A_STREAM as f64,
        resident_mib,
        ratio: median(&ratios),
        events_a_second: median(&rates),
        against_ask,
        number_against_word,
    };
    server.shutdown().await?;
    Ok(serde_json::to_value(measured)?)
}

async fn serve(folder: &Path) -> Result<querent_flight::RunningServer, Failure> {
    let folder = folder.to_str().ok_or("the folder's name is not Unicode")?;
    let sources = SettingSources::default().with_flag("listen", "127.0.0.1:0").with_flag("data", folder);
    let mut settings = Config::load(&sources)?.settings;
    settings.embed.provider = EmbedProviderName::None;
    settings.agent.max_concurrent_runs = 2 * STREAMS;
    let config = Config::from_settings(settings)?;
    Ok(Server::start_with(config, Arc::new(ClockModel), Arc::new(NoProgress)).await?)
}

/// Sends what the ask protocol sends for the same pieces, the whole answer at the end included, as an axum application
/// does.
async fn serve_plain() -> Result<SocketAddr, Failure> {
    async fn events() -> impl IntoResponse {
        let mut said = String::new();
        let frames = stream::iter(0..=BURST_EVENTS).map(move |number| {
            let (event, text) = match number {
                BURST_EVENTS => ("answer_final", std::mem::take(&mut said)),
                _ => ("answer_delta", format!("{} ", in_letters(now_micros()))),
            };
            if number < BURST_EVENTS {
                said.push_str(&text);
            }
            let data = format!("{{\"text\":\"{text}\"}}");
            Ok::<_, std::convert::Infallible>(Event::default().event(event).data(data))
        });
        Sse::new(frames)
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    #[expect(clippy::disallowed_methods, reason = "serves until the process ends")]
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(events))).await });
    Ok(addr)
}

/// Events a second over all streams.
async fn burst(addr: SocketAddr, path: &str) -> Result<f64, Failure> {
    const EVENTS: usize = BURST_READERS * BURST_STREAMS_EACH * BURST_EVENTS;
    let started = Instant::now();
    let reader = || async {
        let mut events = 0;
        for _ in 0..BURST_STREAMS_EACH {
            events += read_stream(addr, path, "burst").await?.len();
        }
        Ok::<_, Failure>(events)
    };
    let read = futures::future::try_join_all((0..BURST_READERS).map(|_| reader())).await?;
    let events: usize = read.iter().sum();
    if events != EVENTS {
        return Err(format!("{events} events of {path}, not {EVENTS}").into());
    }
    Ok(events as f64 / started.elapsed().as_secs_f64())
}

/// What a piece takes in each of the compared protocols, and last one that is a number, against ask: the median over rounds in each of
/// which every protocol has its turn.
async fn against_ask(addr: SocketAddr) -> Result<Vec<f64>, Failure> {
    let mut ratios = vec![Vec::new(); COMPARED.len() + 1];
    // The first round is to warm up.
    for round in 0..=ROUNDS {
        let ask = drained(addr, &ASK).await?;
        for (form, of_form) in COMPARED.iter().chain([&ASK_OF_NUMBERS]).zip(&mut ratios) {
            let taken = drained(addr, form).await?;
            if round > 0 {
                of_form.push(taken / ask);
            }
        }
    }
    Ok(ratios.iter().map(|of_form| median(of_form)).collect())
}

/// Seconds until as many readers as in a burst have read their streams to the end.
async fn drained(addr: SocketAddr, form: &StreamForm) -> Result<f64, Failure> {
    let started = Instant::now();
    let body = (form.body)().to_string();
    let reader = || async {
        for _ in 0..BURST_STREAMS_EACH {
            let lines = lines_of(addr, form.path, &body).await?;
            if lines < BURST_EVENTS {
                return Err(format!("{lines} lines of {}, fewer than its {BURST_EVENTS} pieces", form.name).into());
            }
        }
        Ok::<_, Failure>(())
    };
    futures::future::try_join_all((0..BURST_READERS).map(|_| reader())).await?;
    Ok(started.elapsed().as_secs_f64())
}

/// Reads a stream to its end, with as little work as there can be. Returns how many lines it has.
async fn lines_of(addr: SocketAddr, path: &str, body: &str) -> Result<usize, Failure> {
    let mut connection = asked(addr, path, body).await?;
    let mut buffer = Vec::with_capacity(1 << 16);
    let mut lines = 0;
    while connection.read_buf(&mut buffer).await? > 0 {
        lines += buffer.iter().filter(|byte| **byte == b'\n').count();
        buffer.clear();
    }
    Ok(lines)
}

/// Sends a request on a connection of its own.
async fn asked(addr: SocketAddr, path: &str, body: &str) -> Result<TcpStream, Failure> {
    let mut connection = TcpStream::connect(addr).await?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await?;
    Ok(connection)
}

/// Milliseconds from each piece to its reader.
async fn read_stream(addr: SocketAddr, path: &str, question: &str) -> Result<Vec<f64>, Failure> {
    const MARK: &[u8] = b"answer_delta\ndata: {\"text\":\"";
    let body = serde_json::json!({ "question": question }).to_string();
    let mut connection = asked(addr, path, &body).await?;
    let mut delays = Vec::new();
    let mut buffer = Vec::with_capacity(1 << 16);
    while connection.read_buf(&mut buffer).await? > 0 {
        let now = now_micros();
        let mut rest: &[u8] = &buffer;
        let mut kept = 0;
        while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
            let letters = &rest[at + MARK.len()..];
            let Some(end) = letters.iter().position(|byte| *byte == b' ') else { break };
            let said = letters[..end].iter().fold(0, |said, letter| said * 10 + u64::from(letter.saturating_sub(b'a')));
            delays.push(now.saturating_sub(said) as f64 / 1e3);
            rest = &letters[end..];
            kept = buffer.len() - rest.len();
        }
        // What may be the beginning of the next one.
        let tail = buffer.len().saturating_sub(128).max(kept);
        buffer.drain(..tail);
    }
    Ok(delays)
}

/// A model that says what time it is.
struct ClockModel;

#[async_trait]
impl ModelProvider for ClockModel {
    fn model_id(&self) -> &str {
        "clock"
    }

    async fn capabilities(&self) -> querent_agent::Result<ModelCapabilities> {
        Ok(super::native_calls())
    }

    async fn chat(
        &self,
        request: ChatRequest,
    ) -> querent_agent::Result<BoxStream<'static, querent_agent::Result<ModelEvent>>> {
        let is_asked = |question: &str| request.messages.last().is_some_and(|message| message.content == question);
        let of_numbers = is_asked("numbers");
        let done = ModelEvent::Done { usage: TokenUsage::default(), reason: DoneReason::Stop };
        let piece = move || {
            let now = now_micros();
            let text = if of_numbers { now.to_string() } else { in_letters(now) };
            Ok(ModelEvent::Text(text + " "))
        };
        let pieces = if is_asked("paced") {
            let mut clock = tokio::time::interval(EVENT_EVERY);
            clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let ticks = stream::unfold((clock, 0), move |(mut clock, said)| async move {
                if said == EVENTS_A_STREAM {
                    return None;
                }
                clock.tick().await;
                Some((piece(), (clock, said + 1)))
            });
            ticks.boxed()
        } else {
            stream::iter(0..BURST_EVENTS).map(move |_| piece()).boxed()
        };
        Ok(pieces.chain(stream::iter([Ok(done)])).boxed())
    }
}

fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Writes a number with `a` for 0 to `j` for 9.
fn in_letters(number: u64) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

async fn resident_mib() -> Result<f64, Failure> {
    let status = tokio::fs::read_to_string("/proc/self/status").await?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

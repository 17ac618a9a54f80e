//! Results over Flight: one pyarrow client against this server, against a bare arrow-flight server that sends messages
//! which it encoded before, and against pyarrow's own C++ server, on the same data; a slow client's memory; new queries
//! while many cursors are open; and prepared point queries ([`points`]).
//!
//! The server that is measured and the bare one run in the process of the measurement, the client and the C++ server in
//! Python's.

mod points;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, DictionaryArray, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, StringViewArray,
    StructArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_ipc::writer::FileWriter;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use querent_catalog::{NoProgress, Principal};
use querent_engine::Limits;
use querent_flight::config::{Config, EmbedProviderName, SettingSources};
use querent_flight::{RunningServer, Server};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::Failure;
use crate::harness::{Figure, Peer, measure_in_process, median, percentile};

const ROUNDS: usize = 5;
/// Rows of a batch of the data: of eight numbers they are 2 MiB.
const BATCH_ROWS: usize = 32_768;
const BATCHES: usize = 128;
const IDLE_CURSORS: usize = 200;
const QUERIES: usize = 100;
const POINT_QUERIES: i64 = 10_000;
/// What goes to the slow client.
const SLOW_BYTES: usize = 10_000_000_000;
const SLOW_PAUSE: &str = "2";

/// A set of columns, and what of it the client asks for beyond the plain types.
struct ColumnSet {
    name: &'static str,
    batch: fn() -> Result<RecordBatch, Failure>,
    types: &'static str,
}

const DATA_SETS: [ColumnSet; 5] = [
    ColumnSet { name: "int64", batch: numbers, types: "" },
    ColumnSet { name: "strings", batch: strings, types: "" },
    ColumnSet { name: "views", batch: views, types: "views" },
    ColumnSet { name: "dictionaries", batch: dictionaries, types: "dictionaries" },
    ColumnSet { name: "nested", batch: nested, types: "" },
];

#[derive(Serialize, Deserialize)]
struct FlightMeasurement {
    /// Bytes a second by data set: this server, the bare one, C++.
    rates: BTreeMap<String, [f64; 3]>,
    /// Bytes a second of eight integers from a session's temporary table: this server, the bare one, C++.
    session: [f64; 3],
    /// Bytes a second of an ingest: this server by ADBC, DuckDB into a DuckLake of its own.
    ingest: [f64; 2],
    /// Peak memory above idle, in MiB: rows of 100 bytes, of 100 KB.
    slow_mib: [f64; 2],
    flight_p99_ms: f64,
    http_p99_ms: f64,
    idle_mib: f64,
    /// Seconds of prepared point queries: this server, of them planning and execution, the bare one.
    points: [f64; 3],
    /// Thread switches of one of them: this server, the bare one.
    point_switches: [f64; 2],
}

#[derive(Deserialize)]
struct Reading {
    seconds: Vec<f64>,
    bytes: f64,
}

#[derive(Deserialize)]
struct IdleAnswers {
    flight: Vec<f64>,
    http: Vec<f64>,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let measured: FlightMeasurement = measure_in_process("flight", folder.path()).await?;
    let mut figures = Vec::new();
    let session = ("int64 from a temporary table".to_owned(), measured.session);
    for (name, [ours, bare, cpp]) in measured.rates.iter().chain([(&session.0, &session.1)]) {
        let [bare_bar, cpp_bar] = if name.starts_with("int64") { [0.8, 1.0] } else { [0.56, 0.7] };
        for (peer, rate, bar) in [("bare arrow-flight", bare, bare_bar), ("pyarrow's C++", cpp, cpp_bar)] {
            let peer = Peer { name: peer.to_owned(), value: *rate };
            let figure = Figure::against(format!("DoGet of {name}"), *ours, "MB/s", peer, None);
            let holds = figure.ratio.map(|ratio| ratio >= bar);
            figures.push(Figure { bar: Some(bar), holds, ..figure });
        }
    }
    let [ours, duckdb] = measured.ingest;
    let peer = Peer { name: "DuckDB's ducklake".to_owned(), value: duckdb };
    let figure = Figure::against("ADBC ingest of int64 into a managed table".to_owned(), ours, "MB/s", peer, None);
    let holds = figure.ratio.map(|ratio| ratio >= 0.7);
    figures.push(Figure { bar: Some(0.7), holds, ..figure });
    let [ours, engine, bare] = measured.points;
    let peer = Peer { name: "bare arrow-flight".to_owned(), value: bare };
    let name = format!("{POINT_QUERIES} prepared point queries on one connection, planning and execution aside");
    figures.push(Figure::against(name, ours - engine, "s", peer, Some(1.3)));
    let name = "planning and execution of the same, in this process";
    figures.push(Figure::alone(name, engine, "s", None));
    let [ours, bare] = measured.point_switches;
    let peer = Peer { name: "bare arrow-flight".to_owned(), value: bare };
    figures.push(Figure::against("thread switches of one of them".to_owned(), ours, "switches", peer, None));
    let [narrow, wide] = measured.slow_mib;
    figures.extend([
        Figure::alone("10 GB to a slow client, rows of 100 bytes: memory above idle", narrow, "MiB", Some(256.0)),
        Figure::alone("the same, rows of 100 KB", wide, "MiB", Some(256.0)),
        Figure::alone("200 idle cursors: a new query over Flight, p99", measured.flight_p99_ms, "ms", Some(50.0)),
        Figure::alone("the same over HTTP", measured.http_p99_ms, "ms", Some(50.0)),
        Figure::alone("the same: memory above idle", measured.idle_mib, "MiB", None),
    ]);
    Ok(figures)
}

pub(crate) async fn measure(folder: &Path) -> Result<serde_json::Value, Failure> {
    let data = folder.join("arrow");
    tokio::fs::create_dir_all(&data).await?;
    let mut bare = BareServer::default();
    for set in &DATA_SETS {
        let batch = (set.batch)()?;
        write_file(&data.join(format!("{}.arrow", set.name)), &batch)?;
        let batches = stream::iter(std::iter::repeat_n(batch.clone(), BATCHES).map(Ok));
        let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
        let handling = match set.types {
            "dictionaries" => arrow_flight::encode::DictionaryHandling::Resend,
            _ => arrow_flight::encode::DictionaryHandling::Hydrate,
        };
        let messages = encoder.with_dictionary_handling(handling).build(batches).try_collect().await?;
        bare.messages.insert(set.name, messages);
    }
    let bare = bare.with_point().await?.serve().await?;
    let server = serve(folder).await?;
    for set in &DATA_SETS {
        read_by_server(&server, set, &data).await?;
    }
    let points = points::measure(&server, bare, POINT_QUERIES).await?;
    let (_python, cpp) = serve_python(&data).await?;

    let mut rates = BTreeMap::new();
    for set in &DATA_SETS {
        rates.insert(set.name.to_owned(), rates_of(set, "sql:SELECT * FROM ", [server.addr, bare, cpp]).await?);
    }
    let session = rates_of(&DATA_SETS[0], "session:", [server.addr, bare, cpp]).await?;
    let ingest = ingest_rates(server.addr, &data.join("int64.arrow")).await?;
    let idle = resident_bytes().await?;
    let mut slow_mib = [0.0; 2];
    for (measured, row_bytes) in slow_mib.iter_mut().zip([100, 100_000]) {
        let sql = format!(
            "SELECT repeat('x', {}) AS s, value FROM generate_series(1, {}) AS t(value)",
            row_bytes - 8,
            SLOW_BYTES / row_bytes
        );
        let uri = uri(server.addr);
        let reading = peak_while(python(&["slow", &uri, &sql, SLOW_PAUSE])).await?;
        *measured = (reading.1 - idle) / f64::from(1 << 20);
    }
    let [uri, http] = ["grpc", "http"].map(|scheme| format!("{scheme}://{}", server.addr));
    let [cursors, queries] = [IDLE_CURSORS, QUERIES].map(|count| count.to_string());
    let arguments = ["idle", &uri, &http, &cursors, &queries];
    let (answers, peak) = peak_while(python(&arguments)).await?;
    let answers: IdleAnswers = serde_json::from_slice(&answers)?;
    let measured = FlightMeasurement {
        rates,
        session,
        ingest,
        slow_mib,
        flight_p99_ms: percentile(&answers.flight, 99.0),
        http_p99_ms: percentile(&answers.http, 99.0),
        idle_mib: (peak - idle) / f64::from(1 << 20),
        points: [points.ours.seconds, points.engine.seconds, points.bare.seconds],
        point_switches: [points.ours.switches, points.bare.switches],
    };
    server.shutdown().await?;
    Ok(serde_json::to_value(measured)?)
}

/// Returns the megabytes a second of a data set from each server, in one run, one after the other.
/// `of_ours` is how this server is asked for the table of a name.
async fn rates_of(set: &ColumnSet, of_ours: &str, [ours, bare, cpp]: [SocketAddr; 3]) -> Result<[f64; 3], Failure> {
    let name = set.name;
    let header = if set.types.is_empty() { String::new() } else { format!("|x-querent-wire-types={}", set.types) };
    let sources = [
        format!("ours={}={of_ours}\"{name}\"{header}", uri(ours)),
        format!("bare={}=ticket:{name}", uri(bare)),
        format!("cpp={}=ticket:{name}", uri(cpp)),
    ];
    let rounds = ROUNDS.to_string();
    let arguments: Vec<&str> = ["read", &rounds].into_iter().chain(sources.iter().map(String::as_str)).collect();
    let read: BTreeMap<String, Reading> = serde_json::from_slice(&python(&arguments).await?)?;
    // The same rows from each, so the same bytes: those of the batches as they are, not as a server cuts them.
    let bytes = read.get("cpp").ok_or("no reading of pyarrow's server")?.bytes;
    let rate = |name: &str| match read.get(name) {
        Some(reading) => Ok(bytes / median(&reading.seconds) / 1e6),
        None => Err(Failure::from(format!("no reading of {name}"))),
    };
    Ok([rate("ours")?, rate("bare")?, rate("cpp")?])
}

/// Returns the megabytes a second of writing a file's rows to a table: by ADBC to this server, by DuckDB to a DuckLake.
async fn ingest_rates(ours: SocketAddr, path: &Path) -> Result<[f64; 2], Failure> {
    let path_text = path.to_str().ok_or("the folder's name is not Unicode")?;
    let rounds = ROUNDS.to_string();
    let output = python(&["ingest", &uri(ours), path_text, &rounds]).await?;
    let seconds: BTreeMap<String, Vec<f64>> = serde_json::from_slice(&output)?;
    let bytes = tokio::fs::metadata(path).await?.len() as f64;
    let rate = |name: &str| match seconds.get(name) {
        Some(seconds) => Ok(bytes / median(seconds) / 1e6),
        None => Err(Failure::from(format!("no seconds of {name}"))),
    };
    Ok([rate("ours")?, rate("duckdb")?])
}

fn uri(addr: SocketAddr) -> String {
    format!("grpc://{addr}")
}

async fn serve(folder: &Path) -> Result<RunningServer, Failure> {
    let data_folder = folder.join("querent");
    let data_folder = data_folder.to_str().ok_or("the folder's name is not Unicode")?;
    let sources = SettingSources::default().with_flag("listen", "127.0.0.1:0").with_flag("data", data_folder);
    let mut settings = Config::load(&sources)?.settings;
    settings.embed.provider = EmbedProviderName::None;
    Ok(Server::start(Config::from_settings(settings)?, Arc::new(NoProgress)).await?)
}

/// Makes a table of the file of a data set.
async fn read_by_server(server: &RunningServer, set: &ColumnSet, data: &Path) -> Result<(), Failure> {
    let session = server.state().engine.session(Principal::local_admin(), Limits::default());
    let location = data.join(format!("{}.arrow", set.name));
    let sql = format!("CREATE EXTERNAL TABLE \"{}\" STORED AS ARROW LOCATION '{}'", set.name, location.display());
    session.sql(&sql).await?.collect().await?;
    Ok(())
}

/// Starts pyarrow's server.
async fn serve_python(data: &Path) -> Result<(Child, SocketAddr), Failure> {
    let mut child = python_command()?.arg("serve").arg(data).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let out = child.stdout.take().ok_or("no output of the server")?;
    let line = BufReader::new(out).lines().next_line().await?.ok_or("pyarrow's server did not start")?;
    Ok((child, SocketAddr::from(([127, 0, 0, 1], line.trim().parse()?))))
}

async fn python(arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let output = python_command()?.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output.stdout)
}

fn python_command() -> Result<Command, Failure> {
    let program = match std::env::var_os("QUERENT_PYTHON") {
        Some(program) => PathBuf::from(program),
        None => crate::harness::cache_folder()?.join("venv/bin/python"),
    };
    let mut command = Command::new(program);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/flight.py"));
    Ok(command)
}

/// Returns what `work` returned, and the most memory that this process had meanwhile, in bytes.
async fn peak_while<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<(T, f64), Failure> {
    let mut peak = 0.0_f64;
    let mut clock = tokio::time::interval(Duration::from_millis(50));
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok((done?, peak)),
            _ = clock.tick() => peak = peak.max(resident_bytes().await?),
        }
    }
}

async fn resident_bytes() -> Result<f64, Failure> {
    let status = tokio::fs::read_to_string("/proc/self/status").await?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024.0)
}

fn write_file(path: &Path, batch: &RecordBatch) -> Result<(), Failure> {
    #[expect(clippy::disallowed_methods, reason = "before anything is measured")]
    let file = std::fs::File::create(path)?;
    let mut writer = FileWriter::try_new_buffered(file, &batch.schema())?;
    for _ in 0..BATCHES {
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
}

fn numbers() -> Result<RecordBatch, Failure> {
    let column = |column: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..BATCH_ROWS as i64).map(|row| row * 7_919 + column)))
    };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    Ok(RecordBatch::try_from_iter(names.into_iter().zip((0..8).map(column)))?)
}

fn text(row: usize) -> String {
    format!("{row:08} {}", &"a text of some length, as people write it"[..row % 41])
}

fn strings() -> Result<RecordBatch, Failure> {
    let column = |shift: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..BATCH_ROWS).map(|row| text(row + shift))))
    };
    Ok(RecordBatch::try_from_iter([("a", column(0)), ("b", column(3)), ("c", column(5))])?)
}

fn views() -> Result<RecordBatch, Failure> {
    let column = |shift: usize| -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values((0..BATCH_ROWS).map(|row| text(row + shift))))
    };
    Ok(RecordBatch::try_from_iter([("a", column(0)), ("b", column(3))])?)
}

fn dictionaries() -> Result<RecordBatch, Failure> {
    let words: Vec<String> = (0..100).map(text).collect();
    let column = |step: usize| -> ArrayRef {
        let values = (0..BATCH_ROWS).map(|row| words[row * step % words.len()].as_str());
        Arc::new(values.collect::<DictionaryArray<Int32Type>>())
    };
    Ok(RecordBatch::try_from_iter([1, 3, 7, 9].map(|step| (format!("d{step}"), column(step))))?)
}

fn nested() -> Result<RecordBatch, Failure> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..BATCH_ROWS {
        (0..row % 3).for_each(|item| lists.values().append_value(text(row + item)));
        lists.append(true);
    }
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..BATCH_ROWS as i64));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..BATCH_ROWS).map(text)));
    let structs: ArrayRef = Arc::new(StructArray::from(vec![
        (Arc::new(Field::new("n", DataType::Int64, false)), numbers),
        (Arc::new(Field::new("s", DataType::Utf8, false)), texts),
    ]));
    Ok(RecordBatch::try_from_iter([("l", Arc::new(lists.finish()) as ArrayRef), ("s", structs)])?)
}

/// A server that only sends what it was given.
#[derive(Default)]
struct BareServer {
    messages: BTreeMap<&'static str, Vec<FlightData>>,
    info: Option<FlightInfo>,
    put: Option<PutResult>,
}

impl BareServer {
    async fn serve(self) -> Result<SocketAddr, Failure> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        // As tonic's own `serve` has it: small answers would wait for one another.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service = FlightServiceServer::new(self);
        #[expect(clippy::disallowed_methods, reason = "serves until the process ends")]
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        Ok(addr)
    }
}

type BareStream<T> = BoxStream<'static, Result<T, Status>>;

fn no_more<T>() -> Result<T, Status> {
    Err(Status::unimplemented("this server only sends"))
}

#[tonic::async_trait]
impl FlightService for BareServer {
    type HandshakeStream = BareStream<HandshakeResponse>;
    type ListFlightsStream = BareStream<FlightInfo>;
    type DoGetStream = BareStream<FlightData>;
    type DoPutStream = BareStream<PutResult>;
    type DoActionStream = BareStream<arrow_flight::Result>;
    type ListActionsStream = BareStream<ActionType>;
    type DoExchangeStream = BareStream<FlightData>;

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let name = String::from_utf8_lossy(&request.get_ref().ticket).into_owned();
        let messages = self.messages.get(name.as_str()).cloned().ok_or_else(|| Status::not_found(name))?;
        Ok(Response::new(stream::iter(messages.into_iter().map(Ok)).boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        no_more()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        self.info.clone().map_or_else(no_more, |info| Ok(Response::new(info)))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        no_more()
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let mut messages = request.into_inner();
        while messages.message().await?.is_some() {}
        self.put.clone().map_or_else(no_more, |put| Ok(Response::new(stream::iter([Ok(put)]).boxed())))
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        no_more()
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        no_more()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        no_more()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        no_more()
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        no_more()
    }
}

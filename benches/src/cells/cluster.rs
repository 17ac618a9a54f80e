//! TPC-H on a coordinator and its workers against one node, over Flight SQL: servers of their own processes on this machine, each
//! with two threads a query, on the same external Parquet files. Every query runs in turn on each of them, and its rows are
//! compared every time. Apache Ballista is measured beside DataFusion alone, in the same way, where `QUERENT_BENCH_PEERS` names it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_catalog::NoProgress;
use querent_flight::Server;
use querent_flight::config::{Config, EmbedProviderName, SettingSources};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint};

use super::suites;
use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder};

const ROUNDS: usize = 5;
const THREADS: &str = "2";
const KEY: &str = "a secret of the benchmark's cluster";
/// How long a server may take to start and to make its tables.
const START: Duration = Duration::from_secs(120);
/// The settings of a server, in its folder.
const SETTINGS_FILE: &str = "settings.json";
/// Where a server says that it is ready, in its folder.
const ADDRESS_FILE: &str = "address";

/// What a server is started with.
#[derive(Serialize, Deserialize)]
struct ServerSettings {
    flags: BTreeMap<String, String>,
    /// Whether it has the tables.
    has_tables: bool,
}

/// A server's process. It ends when dropped.
struct BenchServer {
    _process: Child,
    address: String,
}

impl BenchServer {
    async fn start(folder: &Path, name: &str, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let folder = folder.join(name);
        tokio::fs::create_dir_all(&folder).await?;
        let flags: BTreeMap<String, String> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let has_tables = flags.get("cluster.role").is_none_or(|role| role != "worker");
        let settings = serde_json::to_vec(&ServerSettings { flags, has_tables })?;
        tokio::fs::write(folder.join(SETTINGS_FILE), settings).await?;
        let process = Command::new(std::env::current_exe()?)
            .args(["measure", "cluster-server"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let deadline = Instant::now() + START;
        loop {
            if let Ok(address) = tokio::fs::read_to_string(folder.join(ADDRESS_FILE)).await {
                return Ok(Self { _process: process, address });
            }
            if Instant::now() > deadline {
                return Err(format!("the server `{name}` did not start").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn client(&self) -> Result<FlightSqlServiceClient<Channel>, Failure> {
        let channel = Endpoint::from_shared(format!("http://{}", self.address))?.connect().await?;
        Ok(FlightSqlServiceClient::new(channel))
    }
}

/// A server with what its queries took: milliseconds a query, a list a round.
struct MeasuredServer {
    name: &'static str,
    client: FlightSqlServiceClient<Channel>,
    rounds: Vec<Vec<f64>>,
}

/// Is a server until its process is ended.
pub(crate) async fn serve(folder: &Path) -> Result<serde_json::Value, Failure> {
    let settings: ServerSettings = serde_json::from_slice(&tokio::fs::read(folder.join(SETTINGS_FILE)).await?)?;
    let data = folder.join("data");
    let data = data.to_str().ok_or("the folder's name is not Unicode")?;
    let mut sources = SettingSources::default().with_flag("listen", "127.0.0.1:0").with_flag("data", data);
    for (path, value) in settings.flags {
        sources = sources.with_flag(path, value);
    }
    let mut loaded = Config::load(&sources)?.settings;
    loaded.embed.provider = EmbedProviderName::None;
    let config = Config::from_settings(loaded)?;
    if settings.has_tables {
        let server = Server::start(config, Arc::new(NoProgress)).await?;
        suites::import(&suites::TPCH, &server.state().engine, true).await?;
        serve_at(folder, server.addr).await
    } else {
        let worker = Server::start_worker(config, Arc::new(NoProgress)).await?;
        serve_at(folder, worker.addr).await
    }
}

/// Says that a server is ready, and waits for the end of the process.
async fn serve_at(folder: &Path, addr: SocketAddr) -> Result<serde_json::Value, Failure> {
    let unfinished = folder.join("address.unfinished");
    tokio::fs::write(&unfinished, addr.to_string()).await?;
    tokio::fs::rename(unfinished, folder.join(ADDRESS_FILE)).await?;
    std::future::pending().await
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir_in(cache_folder()?)?;
    let folder = folder.path();
    let threads = ("query.threads", THREADS);
    let of_worker = [threads, ("cluster.role", "worker"), ("cluster.key", KEY)];
    let workers = [
        BenchServer::start(folder, "worker-1", &of_worker).await?,
        BenchServer::start(folder, "worker-2", &of_worker).await?,
    ];
    let urls = workers.each_ref().map(|worker| format!("http://{}", worker.address));
    let of_coordinator =
        |workers| [threads, ("cluster.workers", workers), ("cluster.key", KEY), ("cluster.min_scan_bytes", "1")];
    let (one_url, both_urls) = (urls[0].clone(), urls.join(","));
    let servers = [
        ("one node", BenchServer::start(folder, "alone", &[threads]).await?),
        ("a coordinator and a worker", BenchServer::start(folder, "one", &of_coordinator(&one_url)).await?),
        ("a coordinator and two workers", BenchServer::start(folder, "two", &of_coordinator(&both_urls)).await?),
    ];
    let mut clients = Vec::new();
    for (name, server) in &servers {
        clients.push(MeasuredServer { name, client: server.client().await?, rounds: Vec::new() });
    }
    let queries = suites::queries_of(&suites::TPCH).await?;
    let bar = indicatif::ProgressBar::new(((ROUNDS + 1) * queries.len()) as u64).with_message("cluster");
    for round in 0..=ROUNDS {
        for server in &mut clients {
            server.rounds.push(Vec::new());
        }
        for (query, sql) in &queries {
            let mut expected = None;
            for MeasuredServer { name, client, rounds } in &mut clients {
                let started = Instant::now();
                let batches = rows(client, sql).await.map_err(|error| format!("{query} on {name}: {error}"))?;
                rounds[round].push(started.elapsed().as_secs_f64() * 1e3);
                let found = suites::rows_of(&batches)?;
                let expected = expected.get_or_insert_with(|| found.clone());
                if let Some(difference) = suites::first_difference(&found, expected) {
                    return Err(format!("{query} on {name}, round {round}: {difference}").into());
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut figures = figures(&queries, clients).await?;
    if suites::named_peers().any(|name| name == suites::BALLISTA) {
        figures.extend(of_ballista().await?);
    }
    Ok(figures)
}

/// Milliseconds of each query, a list a round, of Ballista and of DataFusion alone.
#[derive(Deserialize)]
struct BallistaRounds {
    queries: Vec<String>,
    datafusion: Vec<Vec<f64>>,
    ballista: Vec<Vec<f64>>,
}

async fn of_ballista() -> Result<Vec<Figure>, Failure> {
    // Its own interpreter where the machine's C library is older than its wheels want.
    let python = std::env::var("QUERENT_BALLISTA_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster_ballista.py"))
        .arg(suites::queries_folder(&suites::TPCH))
        .arg(suites::data_of(&suites::TPCH).await?)
        .args([&ROUNDS.to_string(), THREADS])
        .stderr(Stdio::inherit())
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("ballista failed: {}", output.status).into());
    }
    let measured: BallistaRounds = serde_json::from_slice(&output.stdout)?;
    let (ours, alone) = (suites::medians(&measured.ballista[1..]), suites::medians(&measured.datafusion[1..]));
    let peer = |value| Peer { name: "DataFusion alone".to_owned(), value };
    let total = |times: &[f64]| times.iter().sum::<f64>();
    let label = "TPC-H on Ballista's scheduler and two executors, with the same rows".to_owned();
    let mut figures = vec![Figure::against(label, total(&ours), "ms", peer(total(&alone)), None)];
    for (query, (ours, alone)) in measured.queries.iter().zip(ours.iter().zip(&alone)) {
        figures.push(Figure::against(format!("{query} on Ballista"), *ours, "ms", peer(*alone), None));
    }
    Ok(figures)
}

async fn figures(queries: &[(String, String)], clients: Vec<MeasuredServer>) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    let mut alone = Vec::new();
    for MeasuredServer { name, mut client, rounds } in clients {
        // The first round reads files that nobody has read.
        let medians = suites::medians(&rounds[1..]);
        if alone.is_empty() {
            alone = medians;
            continue;
        }
        let peer = |value| Peer { name: "one node".to_owned(), value };
        let bar = (name == "a coordinator and a worker").then_some(1.3);
        let total = |times: &[f64]| times.iter().sum::<f64>();
        let label = format!("TPC-H on {name}, with the same rows");
        figures.push(Figure::against(label, total(&medians), "ms", peer(total(&alone)), bar));
        let mut shared = 0;
        for ((query, sql), (ours, theirs)) in queries.iter().zip(medians.iter().zip(&alone)) {
            figures.push(Figure::against(format!("{query} on {name}"), *ours, "ms", peer(*theirs), None));
            shared += usize::from(is_shared(&mut client, sql).await?);
        }
        figures.push(Figure::alone(
            format!("queries that workers took part in, {name}"),
            shared as f64,
            "queries",
            None,
        ));
    }
    Ok(figures)
}

async fn rows(client: &mut FlightSqlServiceClient<Channel>, sql: &str) -> Result<Vec<RecordBatch>, Failure> {
    let info = client.execute(sql.to_owned(), None).await?;
    let mut batches = Vec::new();
    for endpoint in info.endpoint {
        let ticket = endpoint.ticket.ok_or("an endpoint without a ticket")?;
        batches.extend(client.do_get(ticket).await?.try_collect::<Vec<_>>().await?);
    }
    Ok(batches)
}

/// Whether `EXPLAIN` says that a query runs on workers.
async fn is_shared(client: &mut FlightSqlServiceClient<Channel>, sql: &str) -> Result<bool, Failure> {
    let explained = rows(client, &format!("EXPLAIN {sql}")).await?;
    let counts_workers =
        |plan: &str| plan.split("runs on ").skip(1).any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    Ok(explained.iter().any(|batch| {
        let plans = batch.column_by_name("plan").and_then(|column| column.as_string_opt::<i32>());
        plans.is_some_and(|plans| plans.iter().flatten().any(counts_workers))
    }))
}

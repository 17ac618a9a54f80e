//! Graphs: a million edges of a power law in a managed table, against igraph and networkx over the same Parquet file. Five
//! interleaved rounds, medians; every answer is compared.
//!
//! A query here makes its graph anew, so that its time has the reading of the table and the building in it; igraph and
//! networkx read the file and build once. `QUERENT_BENCH_ROWS` takes another number of edges.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use querent_catalog::Principal;
use querent_engine::{Engine, Limits, Session};
use serde::Deserialize;
use tokio::process::Command;

use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, median};

const EDGES: u64 = 1_000_000;
const ROUNDS: usize = 5;
/// Where walks begin and where a path ends; nodes of small numbers have most edges.
const START: i64 = 7;
const END: i64 = 90_001;
/// Our total against igraph's.
const IGRAPH_BAR: f64 = 1.0;
/// A pattern against the same join in SQL.
const JOIN_BAR: f64 = 1.2;

/// A tenth as many nodes as edges; the square of a number that is spread evenly makes few nodes have many edges.
const TABLE: &str = "CREATE TABLE edges AS
    SELECT CAST(floor(power((i * 2654435761 % 4294967291) / 4294967291.0, 3) * {nodes}) AS BIGINT) AS src,
           CAST(floor(power((i * 40503 % 2147483647) / 2147483647.0, 2) * {nodes}) AS BIGINT) AS dst
    FROM generate_series(1, {edges}) AS s(i)";

/// What is done, and how it is asked for; each has one number for an answer.
const WORKS: [(&str, &str); 4] = [
    ("hops", "SELECT count(*) FROM graph_traverse(edges, 'src', 'dst', {start}, 3)"),
    ("path", "SELECT count(*) FROM shortest_path(edges, 'src', 'dst', {start}, {end})"),
    ("components", "SELECT count(DISTINCT component) FROM components(edges, 'src', 'dst')"),
    (
        "pattern",
        "SELECT count(*) FROM graph_match(edges, 'src', 'dst', '(a)-[e]->(b)-[f]->(c)', 'c', where => 'a = {start}', \
         cycles => 'all')",
    ),
];
const JOIN: (&str, &str) =
    ("join", "SELECT count(*) FROM edges AS e JOIN edges AS f ON e.dst = f.src WHERE e.src = {start}");
/// All pairs of edges that follow each other.
const ALL_PAIRS: (&str, &str) =
    ("pairs", "SELECT count(*) FROM graph_match(edges, 'src', 'dst', '(a)-[e]->(b)-[f]->(c)', 'c', cycles => 'all')");
const JOINED_PAIRS: (&str, &str) = ("joined pairs", "SELECT count(*) FROM edges AS e JOIN edges AS f ON e.dst = f.src");

/// Milliseconds and answers, by what was done.
#[derive(Deserialize)]
struct Timed {
    times: BTreeMap<String, f64>,
    answers: BTreeMap<String, i64>,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let edges = match std::env::var("QUERENT_BENCH_ROWS") {
        Ok(text) => text.trim().parse()?,
        Err(_) => EDGES,
    };
    let lake = tempfile::tempdir()?;
    let file = lake.path().join("edges.parquet");
    let folder = lake.path().join("lake");
    make_table(&folder, &file, edges).await?;
    let bar = indicatif::ProgressBar::new((3 * ROUNDS) as u64).with_message("graphs");
    let mut timed: [Vec<Timed>; 3] = Default::default();
    for round in 0..ROUNDS {
        for turn in 0..timed.len() {
            let who = (round + turn) % timed.len();
            timed[who].push(match who {
                0 => measure_in_process("graph", &folder).await?,
                1 => peer("igraph", &file).await?,
                _ => peer("networkx", &file).await?,
            });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    for (name, _) in WORKS {
        let mut answers = timed.iter().flatten().map(|timed| timed.answers.get(name));
        let first = answers.next();
        if answers.any(|answer| Some(answer) != first) {
            return Err(format!("{name} has several answers").into());
        }
    }
    let at = |who: usize, what: &str| {
        median(&timed[who].iter().filter_map(|timed| timed.times.get(what).copied()).collect::<Vec<_>>())
    };
    let total = |who: usize| at(who, "build") + WORKS.iter().map(|(what, _)| at(who, what)).sum::<f64>();
    let with = |name: &str, value: f64| Peer { name: name.to_owned(), value };
    let mut figures = Vec::new();
    let name = format!("{edges} edges: hops, path, components, pattern, each with its building");
    figures.push(Figure::against(name.clone(), total(0), "ms", with("igraph", total(1)), Some(IGRAPH_BAR)));
    figures.push(Figure::against(name, total(0), "ms", with("networkx", total(2)), None));
    figures.push(Figure::alone("igraph reads and builds", at(1, "build"), "ms", None));
    for (what, _) in WORKS {
        figures.push(Figure::against(what, at(0, what), "ms", with("igraph", at(1, what)), None));
    }
    for (ours, join) in [("pattern", JOIN.0), (ALL_PAIRS.0, JOINED_PAIRS.0)] {
        let peer = with("the join in SQL", at(0, join));
        figures.push(Figure::against(ours, at(0, ours), "ms", peer, Some(JOIN_BAR)));
    }
    Ok(figures)
}

async fn make_table(lake: &Path, file: &Path, edges: u64) -> Result<(), Failure> {
    let engine = Engine::open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let nodes = (edges / 10).max(100);
    let table = TABLE.replace("{nodes}", &nodes.to_string()).replace("{edges}", &edges.to_string());
    session.sql(&table).await?.collect().await?;
    session.sql(&format!("COPY edges TO '{}'", file.display())).await?.collect().await?;
    engine.close().await?;
    Ok(())
}

/// Runs each query once for the caches that a server has warm, and once for its time.
pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = Engine::open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let (mut times, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for (what, sql) in WORKS.into_iter().chain([JOIN, ALL_PAIRS, JOINED_PAIRS]) {
        let sql = sql.replace("{start}", &START.to_string()).replace("{end}", &END.to_string());
        number(&session, &sql).await?;
        let started = Instant::now();
        answers.insert(what, number(&session, &sql).await?);
        times.insert(what, started.elapsed().as_secs_f64() * 1e3);
    }
    engine.close().await?;
    Ok(serde_json::json!({ "times": times, "answers": answers }))
}

async fn number(session: &Session, sql: &str) -> Result<i64, Failure> {
    let (batches, _) = session.sql(sql).await?.collect().await?;
    let value = batches.iter().find(|batch| batch.num_rows() == 1).map(|batch| batch.column(0));
    let value = value.ok_or("a query without its number")?;
    Ok(value.as_primitive::<Int64Type>().value(0))
}

async fn peer(name: &str, file: &Path) -> Result<Timed, Failure> {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("graph_peers.py");
    let output = Command::new(cache_folder()?.join("bench-venv/bin/python"))
        .arg(script)
        .arg(name)
        .arg(file)
        .args([START.to_string(), END.to_string()])
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

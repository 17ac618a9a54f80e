//! What goes over the line for a query, against what its stages put out: Arrow, compressed with lz4.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Client;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ask, coordinator, tables, worker};

/// Of what stages put out.
const MOST: f64 = 1.1;

/// A way to a worker on which is counted what the worker sends.
struct CountedWay {
    url: String,
    sent: Arc<AtomicU64>,
    _serving: JoinSet<()>,
}

impl CountedWay {
    async fn to(worker: &str) -> Self {
        let worker = worker.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass_on(client, worker.clone(), Arc::clone(&counted)));
            }
        });
        Self { url, sent, _serving: serving }
    }
}

async fn pass_on(client: TcpStream, worker: String, sent: Arc<AtomicU64>) {
    let server = TcpStream::connect(worker).await.unwrap();
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let answers = async {
        let mut buffer = vec![0_u8; 64 << 10];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            sent.fetch_add(read as u64, Ordering::Relaxed);
            if to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        () = answers => {}
    }
}

/// What went over all ways once nothing goes over them any more: what tasks measured follows a query's last rows, and is not
/// to be counted as the next query's.
async fn sent_at_rest(ways: &[CountedWay]) -> u64 {
    /// What connections say to stay open.
    const NOTHING: u64 = 1_000;
    let sent = || ways.iter().map(|way| way.sent.load(Ordering::Relaxed)).sum::<u64>();
    loop {
        let before = sent();
        // Figures of an analysed query come up to half a second after its rows.
        tokio::time::sleep(Duration::from_secs(1)).await;
        if sent() - before < NOTHING {
            return sent();
        }
    }
}

/// The sum of what the stages of an analysed plan sent: `bytes_transferred=11.8 KB`.
fn transferred(plan: &str) -> f64 {
    let figures = plan.split("bytes_transferred=").skip(1).map(|rest| {
        let figure: String = rest.chars().take_while(|c| !matches!(c, ',' | ']')).collect();
        let (number, unit) = figure.split_once(' ').unwrap_or((figure.as_str(), "B"));
        let factor = match unit {
            "B" => 1.0,
            "KB" => 1e3,
            "MB" => 1e6,
            other => panic!("{other} in {figure}"),
        };
        number.parse::<f64>().unwrap() * factor
    });
    figures.sum()
}

#[tokio::test]
async fn little_more_goes_over_the_line_than_stages_put_out() {
    let workers = [worker(&[]), worker(&[])];
    let ways = [CountedWay::to(&workers[0].url).await, CountedWay::to(&workers[1].url).await];
    let coordinator = coordinator(&format!("{},{}", ways[0].url, ways[1].url), &[]);
    let http = Client::new();
    for statement in tables() {
        ask(&http, &coordinator.url, json!({ "sql": statement }), None).await.unwrap();
    }
    // A group for almost every row, and rows that are only sent.
    for sql in [
        "SELECT l_orderkey, l_partkey, l_suppkey, count(*) AS n, sum(l_extendedprice) AS s FROM lineitem GROUP BY 1, 2, 3",
        "SELECT l_orderkey, l_partkey, l_extendedprice FROM lineitem WHERE l_suppkey > 3 ORDER BY l_extendedprice DESC",
    ] {
        let asked = json!({ "sql": format!("EXPLAIN ANALYZE {sql}") });
        let plan = json!(ask(&http, &coordinator.url, asked, None).await.unwrap()).to_string();
        let put_out = transferred(&plan);
        assert!(put_out > 100_000.0, "{put_out}: {plan}");
        let before = sent_at_rest(&ways).await;
        ask(&http, &coordinator.url, json!({ "sql": sql }), None).await.unwrap();
        let line = (sent_at_rest(&ways).await - before) as f64;
        assert!(line > put_out * 0.9 && line < put_out * MOST, "{line} bytes of {put_out}: {plan}");
    }
}

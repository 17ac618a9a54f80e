//! A cold process to its first answer, over lakes of 1,000 and 1,000,000 tables: from before the process is started until it has
//! ended, with the rows of a small managed table. `QUERENT_BENCH_TABLES=1000,20000` takes other sizes.

use std::path::Path;
use std::time::Instant;

use querent_catalog::Principal;
use querent_engine::Limits;

use super::catalog::{milliseconds, open, seed};
use crate::Failure;
use crate::harness::{Figure, measure_in_process, median};

const SIZES: [u64; 2] = [1_000, 1_000_000];
const TIMES: usize = 15;
const BAR_MS: f64 = 150.0;
/// Rows of the table that is read, numbered from 1.
const ROWS: i64 = 1_000;

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let sizes = match std::env::var("QUERENT_BENCH_TABLES") {
        Ok(text) => text.split(',').map(|size| size.trim().parse()).collect::<Result<Vec<u64>, _>>()?,
        Err(_) => SIZES.to_vec(),
    };
    let folder = tempfile::tempdir()?;
    let mut figures = Vec::new();
    for size in sizes {
        let lake = folder.path().join(size.to_string());
        seed(&lake, size).await?;
        let engine = open(&lake).await?;
        let session = engine.session(Principal::local_admin(), Limits::default());
        let made = format!("CREATE TABLE first_answers AS SELECT value FROM generate_series(1, {ROWS}) AS t(value)");
        session.sql(&made).await?.collect().await?;
        engine.close().await?;
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let started = Instant::now();
            let sum: i64 = measure_in_process("startup", &lake).await?;
            times.push(milliseconds(started));
            if sum != ROWS * (ROWS + 1) / 2 {
                return Err(format!("the first answer is {sum}").into());
            }
        }
        let name = format!("a process over {size} tables, from its start to its end, with an answer");
        figures.push(Figure::alone(name, median(&times), "ms", Some(BAR_MS)));
        tokio::fs::remove_dir_all(&lake).await?;
    }
    Ok(figures)
}

pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let (batches, _) = session.sql("SELECT sum(value) FROM first_answers").await?.collect().await?;
    let rows = super::suites::rows_of(&batches)?;
    engine.close().await?;
    let sum = rows.first().and_then(|row| row.first()).and_then(serde_json::Value::as_f64);
    Ok(serde_json::Value::from(sum.ok_or("no row")? as i64))
}

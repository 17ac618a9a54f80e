//! The engine inside another program: open a folder, make a table, ask.
//!
//! `cargo run --example embed` uses a folder that goes when the program ends;
//! `cargo run --example embed -- FOLDER 'SQL' ...` runs statements in one that stays.

use arrow::util::pretty::pretty_format_batches;
use querent_catalog::Principal;
use querent_engine::{Engine, Limits, Session};

const STATEMENTS: [&str; 4] = [
    "CREATE TABLE flights (carrier VARCHAR NOT NULL, distance BIGINT)",
    "INSERT INTO flights VALUES ('UA', 1400), ('UA', 1416), ('AA', 1089), ('B6', 1576)",
    "COMMENT ON TABLE flights IS 'departures from New York'",
    "SELECT carrier, count(*) AS flights, avg(distance) AS mean_distance FROM flights GROUP BY carrier ORDER BY carrier",
];

#[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().unwrap_or_else(|| temporary.path().display().to_string());
    let mut statements: Vec<String> = arguments.collect();
    if statements.is_empty() {
        statements = STATEMENTS.map(str::to_owned).to_vec();
    }

    let engine = Engine::open(&folder).await?;
    let limits = Limits { max_rows: Some(1_000), ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    for statement in &statements {
        if let Err(error) = show(&session, statement).await {
            eprintln(&format!("{}: {error}", error.code()));
        }
    }
    engine.close().await?;
    Ok(())
}

async fn show(session: &Session, statement: &str) -> querent_engine::Result<()> {
    let stream = session.sql(statement).await?;
    let (batches, stats) = stream.collect().await?;
    println(&pretty_format_batches(&batches)?.to_string());
    if stats.truncated {
        println("(there are more rows)");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it found")]
fn println(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "an example prints what went wrong")]
fn eprintln(text: &str) {
    eprintln!("{text}");
}

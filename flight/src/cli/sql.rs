//! `querent sql`: one statement, its rows as a table or as NDJSON.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::client::{Client, Rows};
use super::embedded::Embedded;
use super::error::CliError;
use super::output;
use super::place::{Place, PlaceArgs};
use super::progress::Bars;

/// Run one SQL statement
///
/// The statement is the argument, a file (-f) or standard input. Against a server it travels over Arrow Flight SQL;
/// with --data, or with neither, it runs in this process on the data folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent sql 'SELECT carrier, count(*) FROM flights GROUP BY carrier'
  querent sql --server http://127.0.0.1:8080 --json 'SELECT * FROM flights' > flights.ndjson
  querent sql --data ./querent-data --database sales -f report.sql
  echo 'SHOW TABLES' | querent sql")]
pub(super) struct Args {
    /// The statement
    #[arg(value_name = "SQL", conflicts_with = "file")]
    statement: Option<String>,
    /// Read the statement from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Where bare table names resolve
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Print one JSON object a row instead of a table
    #[arg(long)]
    json: bool,
    /// Rows that the table shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: usize,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn run(args: Args) -> Result<(), CliError> {
    let statement = statement(args.statement, args.file).await?;
    let printed_as = Format { json: args.json, max_rows: (args.rows > 0).then_some(args.rows) };
    match args.place.place()? {
        Place::Server(server) => {
            let rows = Client::new(server)?.sql(&statement, args.database.as_deref()).await?;
            printed_as.print(rows).await
        }
        Place::Embedded(config) => {
            let bars = Arc::new(Bars::new(false));
            let embedded = Embedded::open(*config, &bars).await?;
            bars.clear();
            let session = embedded.session(args.database.as_deref()).await?;
            let printed = match session.sql(&statement).await {
                Ok(rows) => printed_as.print(Rows::from(rows)).await,
                Err(error) => Err(error.into()),
            };
            drop(session);
            embedded.close().await?;
            printed
        }
    }
}

/// How rows are printed.
pub(super) struct Format {
    pub(super) json: bool,
    pub(super) max_rows: Option<usize>,
}

impl Format {
    pub(super) async fn print(&self, rows: Rows) -> Result<(), CliError> {
        match self.json {
            true => output::print_ndjson(rows).await,
            false => output::print_table(rows, self.max_rows).await,
        }
    }
}

/// The text of an argument, a file or standard input.
pub(super) async fn statement(argument: Option<String>, file: Option<PathBuf>) -> Result<String, CliError> {
    if let Some(statement) = argument {
        return Ok(statement);
    }
    if let Some(file) = file {
        let text = tokio::fs::read_to_string(&file).await;
        return text.map_err(|error| CliError::Usage(format!("cannot read {}: {error}", file.display())));
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CliError::Usage("no statement; give it as an argument, with -f FILE or on standard input".into()));
    }
    // Nothing else runs yet that a blocking read could hold up.
    let mut text = String::new();
    stdin.lock().read_to_string(&mut text)?;
    Ok(text)
}

//! `querent kql`: one KQL query, its rows as a table or as NDJSON.

use std::path::PathBuf;
use std::sync::Arc;

use super::client::{Client, Rows};
use super::embedded::Embedded;
use super::error::CliError;
use super::place::{Place, PlaceArgs};
use super::progress::Bars;
use super::sql::{Format, statement};

/// Run one KQL query
///
/// The query is the argument, a file (-f) or standard input. Against a server it travels over HTTP; with --data, or with
/// neither, it runs in this process on the data folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent kql 'flights | summarize count() by carrier'
  querent kql --json 'range x from 1 to 3 step 1'
  echo 'print now()' | querent kql")]
pub(super) struct Args {
    /// The query
    #[arg(value_name = "KQL", conflicts_with = "file")]
    query: Option<String>,
    /// Read the query from a file
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
    let query = statement(args.query, args.file).await?;
    let printed_as = Format { json: args.json, max_rows: (args.rows > 0).then_some(args.rows) };
    match args.place.place()? {
        Place::Server(server) => {
            let rows = Client::new(server)?.kql(query, args.database.as_deref()).await?;
            printed_as.print(rows).await
        }
        Place::Embedded(config) => {
            let bars = Arc::new(Bars::new(false));
            let embedded = Embedded::open(*config, &bars).await?;
            bars.clear();
            let session = embedded.session(args.database.as_deref()).await?;
            let printed = match session.kql(&query).await {
                Ok(rows) => printed_as.print(Rows::from(rows)).await,
                Err(error) => Err(error.into()),
            };
            drop(session);
            embedded.close().await?;
            printed
        }
    }
}

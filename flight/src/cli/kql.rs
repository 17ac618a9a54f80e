//! `querent kql`: one KQL query, its rows as a table or in a format for programs.

use super::error::CliError;
use super::query::{self, Language, QueryArgs};

/// Run one KQL query
///
/// The query is the argument, a file (-f) or standard input (also as -). Against a server it travels over HTTP; with
/// --data, or with neither, it runs in this process on the data folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent kql 'flights | summarize count() by carrier'
  querent kql --json 'range x from 1 to 3 step 1'
  echo 'print now()' | querent kql")]
pub(super) struct KqlArgs {
    /// The query
    #[arg(value_name = "KQL", conflicts_with = "file")]
    query: Option<String>,
    #[command(flatten)]
    how: QueryArgs,
}

pub(super) async fn run(args: KqlArgs) -> Result<(), CliError> {
    query::run(args.query, args.how, Language::Kql).await
}

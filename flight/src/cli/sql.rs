//! `querent sql`: one statement, its rows as a table or in a format for programs.

use super::error::CliError;
use super::query::{self, Language, QueryArgs};

/// Run one SQL statement
///
/// The statement is the argument, a file (-f) or standard input (also as -). Against a server it travels over Arrow
/// Flight SQL; with --data, or with neither, it runs in this process on the data folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent sql 'SELECT carrier, count(*) FROM flights GROUP BY carrier'
  querent sql --server http://127.0.0.1:8080 --output csv 'SELECT * FROM flights' > flights.csv
  querent sql --data ./querent-data --database sales -f report.sql
  echo 'SHOW TABLES' | querent sql")]
pub(super) struct SqlArgs {
    /// The statement
    #[arg(value_name = "SQL", conflicts_with = "file")]
    statement: Option<String>,
    #[command(flatten)]
    how: QueryArgs,
}

pub(super) async fn run(args: SqlArgs) -> Result<(), CliError> {
    query::run(args.statement, args.how, Language::Sql).await
}

//! The command line, one file a command.
//!
//! Results go to standard output, progress, logs and errors to standard error, so that every command can be piped.
//! Exit codes are a contract: `querent --help` lists them.

mod ask;
mod audit;
mod chart;
mod client;
mod completions;
mod config_check;
mod conversations;
mod demo;
mod embedded;
mod error;
mod events;
mod feedback;
mod fetch;
mod footnotes;
mod import;
mod knowledge;
mod kql;
mod local_model;
mod maintenance;
mod man;
mod markdown;
mod mcp;
mod output;
mod policy;
mod program;
mod progress;
mod query;
mod query_text;
mod relationships;
mod search;
mod serve;
mod shell;
mod sql;
mod sse;
mod target;
mod test_answers;
mod tls;
mod token;
mod verify;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use error::CliError;
pub use import::table_name;
pub use program::run_program;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the query, run, import or check failed
  2  the command line or the settings are wrong
  3  the server cannot be reached, or the data folder cannot be opened

Settings are read from flags, then the environment, then querent.toml; `querent config check` shows all of them.";

/// Analytics that you can ask: SQL over your files, and a language model that queries them for you
///
/// Without a command it opens a shell on the data folder, or on the files that are named.
#[derive(Debug, Parser)]
#[command(name = "querent", version, after_help = EXIT_CODES, propagate_version = true)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    shell: shell::ShellArgs,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Serve(serve::ServeArgs),
    Sql(sql::SqlArgs),
    Kql(kql::KqlArgs),
    Ask(ask::AskArgs),
    Verify(verify::VerifyArgs),
    Feedback(feedback::FeedbackArgs),
    TestAnswers(test_answers::TestAnswersArgs),
    Fetch(fetch::FetchArgs),
    Import(import::ImportArgs),
    Search(search::SearchArgs),
    #[command(subcommand)]
    Relationships(relationships::RelationshipsCommand),
    #[command(subcommand)]
    VerifiedQueries(knowledge::QueriesCommand),
    #[command(subcommand)]
    Metrics(knowledge::MetricsCommand),
    #[command(subcommand)]
    Token(token::TokenCommand),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    Check(maintenance::CheckArgs),
    Backup(maintenance::BackupArgs),
    Restore(maintenance::RestoreArgs),
    ExpireSnapshots(maintenance::ExpireArgs),
    Mcp(mcp::McpArgs),
    Demo(demo::DemoArgs),
    #[command(subcommand)]
    Config(config_check::ConfigCommand),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs one command to its end and returns the exit code. `args` begins with the program's name.
pub async fn run<I>(args: I) -> u8
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let given: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match Cli::try_parse_from(&given) {
        Ok(cli) => cli,
        Err(refusal) if refusal.kind() == ErrorKind::ArgumentConflict && misplaced_command(&given).is_some() => {
            let command = misplaced_command(&given).unwrap_or_default();
            let message = format!("flags stand behind the command: querent {command} --data DIR ...");
            return ended(Err(CliError::Usage(message)));
        }
        Err(refusal) => {
            // Help and version are "errors" with exit code 0; a closed pipe is not a failure.
            let _ = refusal.print();
            return u8::try_from(refusal.exit_code()).unwrap_or(2);
        }
    };
    let Some(command) = cli.command else {
        let names: Vec<String> = Cli::command().get_subcommands().map(|known| known.get_name().to_owned()).collect();
        return ended(match cli.shell.check_files(&names) {
            Ok(()) => shell::run(cli.shell).await,
            Err(error) => Err(error),
        });
    };
    ended(match command {
        CliCommand::Serve(args) => serve::run(args).await,
        CliCommand::Sql(args) => sql::run(args).await,
        CliCommand::Kql(args) => kql::run(args).await,
        CliCommand::Ask(args) => ask::run(args).await,
        CliCommand::Verify(args) => verify::run(args).await,
        CliCommand::Feedback(args) => feedback::run(args).await,
        CliCommand::TestAnswers(args) => test_answers::run(args).await,
        CliCommand::Fetch(args) => fetch::run(args).await,
        CliCommand::Import(args) => import::run(args).await,
        CliCommand::Search(args) => search::run(args).await,
        CliCommand::Relationships(command) => relationships::run(command).await,
        CliCommand::VerifiedQueries(command) => knowledge::queries(command).await,
        CliCommand::Metrics(command) => knowledge::metrics(command).await,
        CliCommand::Token(command) => token::run(command).await,
        CliCommand::Policy(command) => policy::run(command).await,
        CliCommand::Audit(command) => audit::run(command).await,
        CliCommand::Check(args) => maintenance::check(args).await,
        CliCommand::Backup(args) => maintenance::backup(args).await,
        CliCommand::Restore(args) => maintenance::restore(args).await,
        CliCommand::ExpireSnapshots(args) => maintenance::expire_snapshots(args).await,
        CliCommand::Mcp(args) => mcp::run(args).await,
        CliCommand::Demo(args) => demo::run(args).await,
        CliCommand::Config(config_check::ConfigCommand::Check(args)) => config_check::run(args),
        CliCommand::Completions(args) => completions::run(&args),
        CliCommand::Man(args) => man::run(args).await,
    })
}

/// Returns the command that stands behind flags of the shell, if there is one.
fn misplaced_command(given: &[OsString]) -> Option<&str> {
    let commands = Cli::command();
    let is_command = |word: &str| commands.get_subcommands().any(|known| known.get_name() == word);
    given.iter().skip(2).filter_map(|word| word.to_str()).find(|word| is_command(word))
}

/// Returns the exit code of a command, and prints its error.
fn ended(done: Result<(), CliError>) -> u8 {
    match done {
        Ok(()) => 0,
        // The reader has closed the pipe, as in `querent sql ... | head`.
        Err(CliError::OutputClosed) => 0,
        Err(error) => {
            output::print_error(&error);
            error.exit_code()
        }
    }
}

//! `querent mcp`: serves the tools to another program's model, over standard input and output.

mod clients;
mod lines;
mod proxy;
mod transport;

use std::sync::Arc;

use querent_catalog::Principal;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::embedded::EmbeddedEngine;
use super::error::CliError;
use super::progress::Bars;
use super::target::{CliTarget, TargetArgs};
use crate::admission::Admission;
use crate::config::Config;
use crate::logs::init_logs;
use crate::mcp::{McpCaller, McpServer, SessionLogLevel};
use crate::shutdown::stop_signal;
use clients::ClientName;
use transport::{StdioTransport, read_messages};

/// Serve the tools to an MCP client, over standard input and output
///
/// A client such as Claude, Cursor or VS Code starts this itself: --print-config says what to write into its settings.
/// With --server the calls go to a running server, as the caller that the token stands for; otherwise they are done
/// here, on the data folder, which one process at a time can have open.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent mcp --print-config claude-code
  querent mcp --print-config --server http://127.0.0.1:8080
  querent mcp --data ./querent-data")]
pub(super) struct McpArgs {
    /// Print the configuration of a client, or of all that are known, and stop
    #[arg(long, value_name = "CLIENT", value_enum, num_args = 0..=1, default_missing_value = "all")]
    print_config: Option<ClientName>,
    /// Where bare table names are found
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: McpArgs) -> Result<(), CliError> {
    let target = args.target.resolve()?;
    if let Some(client) = args.print_config {
        return clients::print(client, &target, args.database.as_deref());
    }
    match target {
        CliTarget::Server(server) => until_stopped(proxy::run(Client::new(server)?, args.database)).await,
        CliTarget::Embedded(config) => serve_here(*config, args.database).await,
    }
}

async fn serve_here(config: Config, database: Option<String>) -> Result<(), CliError> {
    let settings = &config.settings;
    init_logs(&settings.log).map_err(|error| CliError::failed(error.to_string()))?;
    let (limits, max_line) = (settings.limits(), settings.http.max_query_bytes.to_usize());
    let query = settings.query.clone();
    let embedded = EmbeddedEngine::open(config, &Arc::new(Bars::new(true))).await?;
    let admission = Admission::new(query.slot_limits(embedded.engine.query_capacity()), query.queue_timeout.0);
    let caller = McpCaller {
        principal: Principal::local_admin(),
        database,
        gone: CancellationToken::new(),
        log_level: Some(SessionLogLevel::default()),
        // It is known of the connection.
        shows_apps: false,
        client: None,
    };
    let server = McpServer::for_caller(embedded.engine.clone(), admission, limits, caller);
    let served = until_stopped(async {
        let (transport, input) = StdioTransport::new();
        let answered = async {
            match rmcp::serve_server(server, transport).await {
                Ok(running) => {
                    let _ = running.waiting().await;
                    Ok(())
                }
                Err(error) => Err(CliError::failed(format!("the client did not begin as MCP does: {error}"))),
            }
        };
        tokio::select! {
            answered = answered => answered,
            never = read_messages(input, max_line) => match never {},
        }
    });
    let served = served.await;
    embedded.close().await?;
    served
}

/// Runs until the service ends or a signal arrives: clients close standard input first and then send one.
async fn until_stopped(work: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    tokio::select! {
        done = work => done,
        signal = stop_signal() => Ok(signal?),
    }
}

//! Serves the engine and the agent on one port: Arrow Flight SQL over gRPC, and HTTP with SSE beside it.
//!
//! Every request is authenticated to a `Principal`, admitted, and bounded before it reaches the engine or the agent.
//! [`Server::start`] runs a server in this process; the binary `querent` is [`cli`] around it.

pub mod admission;
pub mod auth;
pub mod cli;
pub mod config;
mod drain;
pub mod error;
mod folder_import;
mod http;
mod logs;
mod mcp;
pub mod metrics;
mod server;
mod shutdown;
pub mod sql;
mod state;

pub use logs::init_logs;
pub use server::{RunningServer, Server, ServerError, install_crypto_provider};
pub use shutdown::stop_signal;
pub use state::AppState;

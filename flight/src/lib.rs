//! Serves the engine and the agent on one port: Arrow Flight SQL over gRPC, and HTTP with SSE beside it.
//!
//! Every request is authenticated to a `Principal`, admitted, and bounded before it reaches the engine or the agent.
//! [`Server::start`] runs a server in this process; the binary `querent` is [`cli`] around it.
//!
//! The rooms of this crate, bottom up; each imports only from those above it in this list:
//!
//! - `metrics.rs`: every metric; `shutdown.rs`: the order in which a server stops; `folder_import.rs`: the report of a
//!   folder import
//! - `error.rs`, `error/code.rs`: every error code, with its HTTP status and gRPC code; `error/conversions.rs`: the codes of
//!   the lower crates' errors; `drain.rs`: unread request bodies
//! - `config/`: every setting, its sources and defaults; `admission.rs`: how many queries run at once
//! - `auth.rs`: tokens to principals; `logs.rs`: the log
//! - `state.rs`: the parts of a running server, which every door shares
//! - `mcp/`: the tools and schemas for MCP clients; `sql/`: Arrow Flight SQL
//! - `http/`: one file a surface, and in `http/routes/` the table of all routes
//! - `server.rs`: the listener and the life of a server
//! - `cli/`: the command line, one file a command
//!
//! See `ARCHITECTURE.md` at the root of the repository.

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

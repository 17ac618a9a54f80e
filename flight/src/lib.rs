//! Serves the engine and the agent on one port: Arrow Flight SQL over gRPC, and HTTP with SSE beside it.
//!
//! Every request is authenticated to a `Principal`, admitted, and bounded before it reaches the engine or the agent.
//! [`Server::start`] runs a server in this process; the binary `querent` is [`cli`] around it.
//!
//! The rooms of this crate, bottom up; each imports only from those above it in this list:
//!
//! - `metrics.rs`: every metric; `shutdown.rs`: the order in which a server stops; `connection.rs`: what ends with
//!   a connection; `exchange.rs`: what a connection knows of its request and answer;
//!   `folder_import.rs`: the report of a folder import
//! - `error.rs`, `error/code.rs`: every error code, with its HTTP status and gRPC code; `error/conversions.rs`: the codes of
//!   the lower crates' errors; `drain.rs`: unread request bodies; `telemetry.rs`: the spans of requests, and their way to a
//!   collector
//! - `config/`: every setting, its sources and defaults; `admission.rs`: how many queries run at once;
//!   `conversation_room.rs`: what the conversations of a caller take;
//!   `idempotent_answers.rs`: answers to requests that may be sent again; `table_profiles.rs`: profiles that were asked for;
//!   `query_limits.rs`: what headers ask of a statement; `result_types.rs`: which types a client reads
//! - `auth.rs`: tokens to principals, `auth/`: those that an identity provider signed; `logs.rs`: the log; `tls.rs`: the port's certificate
//! - `cluster.rs`, `cluster/`: signed requests between servers that work on one query
//! - `state.rs`: the parts of a running server, which every door shares
//! - `guard.rs`: who sends a request, by its headers, before its body is read
//! - `mcp/`: the tools and schemas for MCP clients; `sql/`: Arrow Flight SQL
//! - `formats.rs`, `formats/`: how rows are written for programs
//! - `http/`: one file a surface, and in `http/routes/` the table of all routes
//! - `server.rs`: the life of a server; `server/`: its listeners and connections, and what it does by itself (`upkeep.rs`)
//! - `cli/`: the command line, one file a command
//!
//! See `ARCHITECTURE.md` at the root of the repository.

// Futures of statements nest deeper than the compiler looks into by itself.
#![recursion_limit = "256"]

pub mod admission;
pub mod auth;
pub mod cli;
mod cluster;
pub mod config;
mod connection;
mod conversation_room;
mod drain;
pub mod error;
mod exchange;
mod folder_import;
mod formats;
mod guard;
mod http;
mod idempotent_answers;
mod logs;
mod mcp;
pub mod metrics;
mod policy_cases;
mod query_limits;
mod result_types;
mod server;
mod shutdown;
pub mod sql;
mod state;
mod table_profiles;
mod telemetry;
mod tls;

pub use formats::time_beyond_calendar;
pub use http::search::found_json;
pub use logs::init_logs;
pub use server::{RunningServer, RunningWorker, Server, ServerError, install_crypto_provider};
pub use shutdown::stop_signal;
pub use state::AppState;
pub use tls::TlsError;

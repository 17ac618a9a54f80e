//! What the end-to-end tests share: servers on free ports, seeded tables, the client libraries' Python, the built
//! binary, and inputs that are damaged. Nothing here skips: what is missing fails with the command that installs it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's set-up fails by panicking")]

mod certificates;
pub mod damaged;
mod fuzzed_server;
mod object_store;
mod postgres;
mod process;
mod random;
mod s3;
pub mod script;
mod server;
mod waiting;

pub use certificates::Certificates;
pub use fuzzed_server::FuzzedServer;
pub use object_store::{ACCESS_KEY, ObjectServer, SECRET_KEY, StoreRequest};
pub use postgres::{PostgresProcess, SuspendedPostgres};
pub use process::{
    NodeJs, Python, ServerProcess, check_program, models_dir, nycflights_dir, package_folder, python_package,
    querent_binary, run_client,
};
pub use random::{Mutator, RandomNumbers};
pub use s3::{BUCKET, ProxiedRequest, S3Server, StoreFault};
pub use server::{HttpReply, SseFrame, TestServer, TestSettings, collect_sse, read_until};
pub use waiting::{PATIENCE, wait_for, wait_until, wait_until_memory_is_free};

//! What the end-to-end tests share: servers on free ports, seeded tables, the client libraries' Python, and the
//! built binary. Nothing here skips: what is missing fails with the command that installs it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's set-up fails by panicking")]

mod object_store;
mod process;
mod server;

pub use object_store::{ACCESS_KEY, Asked, ObjectServer, SECRET_KEY};
pub use process::{Node, Python, ServerProcess, models_dir, package_folder, querent_binary};
pub use server::{Reply, SseFrame, TestServer, TestSettings, collect_sse, read_until};

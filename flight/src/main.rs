//! The binary `querent`: the command line of `querent_flight::cli` in a runtime of its own.

use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
#[tokio::main]
async fn main() -> ExitCode {
    querent_flight::install_crypto_provider();
    querent_flight::cli::run(std::env::args_os()).await
}

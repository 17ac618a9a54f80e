//! The binary `querent`: the command line of `querent_flight::cli` in a runtime of its own.

use std::io::Write as _;
use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    set_compute_threads();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Without a runtime nothing can be run; if standard error is closed, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "error: the program's runtime cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
    let code = runtime.block_on(run());
    // A command is over when it says so: a download that it has not waited for must not hold the process.
    runtime.shutdown_background();
    code
}

async fn run() -> ExitCode {
    querent_flight::install_crypto_provider();
    querent_flight::cli::run(std::env::args_os()).await
}

/// Gives Lance two compute threads a core, unless the environment says otherwise.
///
/// By default Lance leaves two cores free, which on a small machine means one thread for searches and index builds
/// together: a search would wait for a build. With two threads a core a build may use every core and a search still
/// starts at once.
fn set_compute_threads() {
    const COMPUTE_THREADS: &str = "LANCE_CPU_THREADS";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if std::env::var_os(COMPUTE_THREADS).is_none() {
        #[expect(unsafe_code, reason = "the environment is changed before there is a second thread to read it")]
        unsafe {
            std::env::set_var(COMPUTE_THREADS, (2 * cores).to_string());
        }
    }
}

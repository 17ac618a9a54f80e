//! The binary `querent`: the command line of `querent_flight::cli`.

use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    set_compute_threads();
    ExitCode::from(querent_flight::cli::run_program(None, std::env::args_os()))
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

//! The command line as a program: the binary `querent`, and the entry point of the same name that the Python package has.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The program that was started, where that is not this process's executable.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Runs one command to its end in a runtime of its own, and returns the exit code. `program` is what a user starts,
/// where this process is an interpreter that was told to run it; `args` begins with the program's name.
pub fn run_program<I>(program: Option<PathBuf>, args: I) -> u8
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    if let Some(program) = program {
        let _ = PROGRAM.set(program);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Without a runtime nothing can be run; if standard error is closed, the exit code still tells.
            let _ = writeln!(io::stderr(), "error: the program's runtime cannot be started: {error}");
            return 1;
        }
    };
    crate::install_crypto_provider();
    #[expect(clippy::disallowed_methods, reason = "the program's own runtime")]
    let code = runtime.block_on(super::run(args));
    // A command is over when it says so: a download that it has not waited for must not hold the process.
    runtime.shutdown_background();
    code
}

/// Returns the path of the program, which starts this command line again.
pub(super) fn program_path() -> io::Result<PathBuf> {
    match PROGRAM.get() {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe(),
    }
}

//! Waits for asynchronous work without the interpreter's lock, and drops it on Ctrl-C.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::error::PythonFailure;

/// How soon Ctrl-C is noticed.
const SIGNALS: Duration = Duration::from_millis(50);

/// Returns the runtime of all connections.
fn runtime() -> Result<&'static Runtime, PythonFailure> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("querent").build();
    let made = made.map_err(|error| PythonFailure::new("internal", format!("threads cannot be started: {error}")))?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Waits for `work` while other threads of the interpreter run. Ctrl-C drops the work, which stops it.
pub(crate) fn wait<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    work: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    let runtime = runtime()?;
    py.detach(|| {
        blocking(|| {
            #[expect(clippy::disallowed_methods, reason = "the interpreter's threads are no runtime's")]
            runtime.block_on(async {
                let mut work = std::pin::pin!(work);
                loop {
                    tokio::select! {
                        biased;
                        done = &mut work => return done.map_err(Into::into),
                        () = tokio::time::sleep(SIGNALS) => Python::attach(|py| py.check_signals())?,
                    }
                }
            })
        })
    })
}

/// Waits for `work` to its end, without looking for Ctrl-C and without the interpreter.
pub(crate) fn finish<T: Send>(work: impl Future<Output = T> + Send) -> Option<T> {
    let runtime = runtime().ok()?;
    #[expect(clippy::disallowed_methods, reason = "the interpreter's threads are no runtime's")]
    let done = blocking(|| runtime.block_on(work));
    Some(done)
}

/// Runs what waits for the runtime, also where this thread waits for it already: in a callback of a question, in a handler
/// of a signal, and where such a one drops the last of a folder.
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(wait)
}

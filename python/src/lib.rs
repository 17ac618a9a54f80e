//! The Python module `querent._querent`: a data folder opened in the interpreter's process, and the command line.
//!
//! - `connection.rs`: `Connection`, an open folder; `open_folder.rs`: the engine and the agent behind it
//! - `rows.rs`: `Rows`, what a statement answered with; `values.rs`: single values as Python's
//! - `capsules.rs`: rows in and out by Arrow's C data interface
//! - `waiting.rs`: waits for work without the interpreter's lock, and for Ctrl-C
//! - `error.rs`: `QuerentError`
//!
//! `python/querent/` is the package around it, which people import.

mod capsules;
mod connection;
mod error;
mod open_folder;
mod rows;
mod values;
mod waiting;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use connection::Connection;
use error::QuerentError;
use rows::ResultRows;

#[pymodule]
fn _querent(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("QuerentError", module.py().get_type::<QuerentError>())?;
    module.add_class::<Connection>()?;
    module.add_class::<ResultRows>()?;
    module.add_function(wrap_pyfunction!(run_command_line, module)?)
}

/// Runs one command of the command line and returns its exit code. `arguments` begins with the program's name.
#[pyfunction]
fn run_command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let program = arguments.first().map(PathBuf::from).filter(|path| path.is_absolute());
    py.detach(|| querent_flight::cli::run_program(program, arguments))
}

//! The examples of the protocols' published pages, as they stand there, against a running server: every program runs,
//! every request is taken, and every message has at least the fields of its example, of the same types.
//!
//! The pages are not part of the repository. `QUERENT_REFERENCE` names the folder that has them
//! (`cube-chat-api.txt`, `holmesgpt-api.txt`); without it `shared/reference` beside the checkout is looked at. Where
//! neither is there when the tests are compiled, they are ignored. A block of a page that no test takes fails its test.

mod blocks;
mod cube;
mod holmes;
mod shapes;

use std::path::PathBuf;
use std::process::Command;

use querent_tests::{NodeJs, Python, package_folder, run_client};
use tempfile::TempDir;

use blocks::ReferencePage;
use shapes::assert_shape;

/// Reads a page of the folder in which `build.rs` found it.
fn read_page(file: &str) -> String {
    let named = std::env::var_os("QUERENT_REFERENCE").filter(|folder| !folder.is_empty());
    let folder = named.map_or_else(|| package_folder().join("../../shared/reference"), PathBuf::from);
    let path = folder.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn run_python(program: &str) -> String {
    run_client(Python::command(["-c", program])).await.concat()
}

async fn run_javascript(program: &str) -> String {
    let folder = TempDir::new().unwrap();
    run_client(NodeJs::program(folder.path(), program)).await.concat()
}

/// Runs a program with `name=value` in its environment and returns what it printed, without curl's progress.
async fn run_bash(program: &str, environment: &[(&str, &str)]) -> String {
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", program]).envs(environment.iter().copied());
    let [printed, _] = run_client(bash).await;
    printed
}

/// Returns the string that follows a field's name in a program: `name: 'string'`, `"name": "string"`.
fn quoted_after<'a>(program: &'a str, name: &str) -> &'a str {
    let (_, rest) = program.split_once(name).unwrap_or_else(|| panic!("no `{name}` in {program}"));
    let (_, rest) = rest.split_once(':').expect("a value");
    let start = rest.find(['\'', '"']).expect("a string");
    let quote = &rest[start..=start];
    rest[start + 1..].split(quote).next().expect("a string's end")
}

/// Returns the text with all of `from` replaced by `to`. Panics where there is none.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no `{from}` in {text}");
    text.replace(from, to)
}

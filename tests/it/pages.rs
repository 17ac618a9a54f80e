//! The examples of the protocols' published pages, as they stand there, against a running server: every program runs,
//! every request is taken, and every message has at least the fields of its example, of the same types.
//!
//! The pages are not part of the repository. `QUERENT_REFERENCE` names the folder that has them
//! (`cube-chat-api.txt`, `holmesgpt-api.txt`); without it `shared/reference` beside the checkout is looked at, and
//! where neither is there the tests say so and pass. A block of a page that no test takes fails its test.

mod blocks;
mod cube;
mod holmes;
mod shapes;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use querent_tests::{Node, Python, package_folder};
use tempfile::TempDir;

use blocks::Page;
use shapes::assert_shape;

/// The most that one example's program may take.
const PROGRAM_TIME: Duration = Duration::from_secs(60);

/// A page's text, where the folder of pages is there.
fn text_of(file: &str) -> Option<String> {
    let folder = match std::env::var_os("QUERENT_REFERENCE") {
        Some(folder) => PathBuf::from(folder),
        None => package_folder().join("../../shared/reference"),
    };
    let text = std::fs::read_to_string(folder.join(file)).ok();
    if text.is_none() {
        println!("skipped: no {file} in {}; QUERENT_REFERENCE names the pages' folder", folder.display());
    }
    text
}

/// What a program printed, and what it told of errors.
async fn run(command: Command) -> [String; 2] {
    let shown = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output();
    let output = tokio::time::timeout(PROGRAM_TIME, output).await.expect(&shown).expect("the program starts");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{shown}: {}\n{}", output.status, said.concat());
    said
}

async fn run_python(program: &str) -> String {
    run(Python::command(["-c", program])).await.concat()
}

async fn run_javascript(program: &str) -> String {
    let folder = TempDir::new().unwrap();
    run(Node::program(folder.path(), program)).await.concat()
}

/// With `name=value` in its environment. Without what curl tells of its progress.
async fn run_bash(program: &str, environment: &[(&str, &str)]) -> String {
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", program]).envs(environment.iter().copied());
    let [printed, _] = run(bash).await;
    printed
}

/// The text in quotes that stands behind a field's name in a program: `name: 'text'`, `"name": "text"`.
fn quoted_after<'a>(program: &'a str, name: &str) -> &'a str {
    let (_, rest) = program.split_once(name).unwrap_or_else(|| panic!("no `{name}` in {program}"));
    let (_, rest) = rest.split_once(':').expect("a value");
    let start = rest.find(['\'', '"']).expect("a text");
    let quote = &rest[start..=start];
    rest[start + 1..].split(quote).next().expect("a text's end")
}

/// All of `from` in the text by `to`; it must be there.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no `{from}` in {text}");
    text.replace(from, to)
}

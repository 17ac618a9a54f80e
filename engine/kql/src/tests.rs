//! Recorded cases of a folder that `QUERENT_KQL_CASES` names, by default `kql_cases` in the folder `shared` beside the
//! repository: what Kusto's parser accepts, and what Kusto answers. Where `build.rs` does not find them they are
//! ignored.

mod answers;
mod corpus;
mod inventory;
mod replay;

use std::path::{Path, PathBuf};

use serde_json::Value;

fn folder() -> PathBuf {
    match std::env::var_os("QUERENT_KQL_CASES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/kql_cases"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may wait for the disk")]
fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

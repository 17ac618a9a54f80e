//! Says to the tests whether the cases that they replay are there, so that without them they are ignored and do not
//! pass.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QUERENT_KQL_CASES");
    println!("cargo::rustc-check-cfg=cfg(kql_cases)");
    let beside_the_repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/kql_cases");
    let folder = std::env::var_os("QUERENT_KQL_CASES").map_or(PathBuf::from(beside_the_repository), PathBuf::from);
    if folder.join("parse_corpus.jsonl").exists() {
        println!("cargo::rustc-cfg=kql_cases");
    }
}

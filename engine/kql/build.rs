//! Says to the tests whether the cases that they replay are there, so that without them they are ignored and do not
//! pass.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QUERENT_KQL_CASES");
    println!("cargo::rustc-check-cfg=cfg(kql_cases)");
    // Asked for when it runs: checkouts that share a target folder share the compiled script.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = match std::env::var_os("QUERENT_KQL_CASES") {
        Some(folder) => PathBuf::from(folder),
        None => package.join("../../../shared/kql_cases"),
    };
    if folder.join("parse_corpus.jsonl").exists() {
        println!("cargo::rustc-cfg=kql_cases");
    }
}

//! Looks for data that is not part of the repository, so that the tests which need it report that they are ignored where
//! it is absent. `cfg(has_reference_pages)`: the protocols' published pages are there.

use std::path::PathBuf;

const PAGES: [&str; 2] = ["cube-chat-api.txt", "holmesgpt-api.txt"];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(has_reference_pages)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=QUERENT_REFERENCE");
    let named = std::env::var_os("QUERENT_REFERENCE").filter(|folder| !folder.is_empty());
    let folder = named.map_or_else(|| PathBuf::from("../../shared/reference"), PathBuf::from);
    if PAGES.iter().all(|page| folder.join(page).exists()) {
        println!("cargo:rustc-cfg=has_reference_pages");
        println!("cargo:rerun-if-changed={}", folder.display());
    }
}

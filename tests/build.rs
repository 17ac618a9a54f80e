//! Looks for data that is not part of the repository, so that the tests which need it report that they are ignored where
//! it is absent. `cfg(has_reference_pages)`: the protocols' published pages are there; `cfg(has_browser)`: Chromium is, and
//! what drives it from Node.

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
    println!("cargo:rustc-check-cfg=cfg(has_browser)");
    for variable in ["QUERENT_NODE", "QUERENT_CACHE", "XDG_CACHE_HOME", "QUERENT_CHROMIUM"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let chromium = path_in("QUERENT_CHROMIUM").unwrap_or_else(|| PathBuf::from("/usr/bin/chromium"));
    let playwright = node_folder().join("node_modules/playwright-core/package.json");
    for path in [&chromium, &playwright] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    if chromium.exists() && playwright.exists() {
        println!("cargo:rustc-cfg=has_browser");
    }
}

/// The folder of the client libraries for Node, as `querent_tests` finds it.
fn node_folder() -> PathBuf {
    let user_cache = || path_in("XDG_CACHE_HOME").unwrap_or_else(|| path_in("HOME").unwrap_or_default().join(".cache"));
    path_in("QUERENT_NODE")
        .unwrap_or_else(|| path_in("QUERENT_CACHE").unwrap_or_else(|| user_cache().join("querent")).join("node"))
}

fn path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

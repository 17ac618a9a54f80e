//! Writes the table of the console's files, which `src/http/console.rs` includes: the name of each file of
//! `console/dist`, its media type, and its bytes.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[expect(clippy::disallowed_methods, reason = "a build script may wait for the disk")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=console/dist");
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("console/dist");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}; `make console` builds it", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut table = "&[\n".to_owned();
    for path in &paths {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file's name is no text")?;
        let media_type = media_type(path).ok_or_else(|| format!("no media type is known of {}", path.display()))?;
        // The checkout is named where the table is compiled: several checkouts may share what a build script has written.
        let bytes = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/console/dist/{name}\")");
        writeln!(
            table,
            "    ConsoleFile {{ name: {name:?}, media_type: {media_type:?}, bytes: include_bytes!({bytes}) }},"
        )?;
    }
    table.push_str("]\n");
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("console_files.rs"), table)?;
    Ok(())
}

fn media_type(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

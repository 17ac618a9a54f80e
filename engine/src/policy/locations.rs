//! Where external tables may lie: in local files, for role `write` and administrators of some databases only below the folders that
//! the operator named; and at URLs only below those that the operator named, whoever asks.
//!
//! Links are followed before anything is compared, so that a link inside an allowed folder opens nothing outside it.

use std::path::{Component, Path, PathBuf};

use querent_catalog::{Principal, Role};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::stores::{StoreUrl, TableFiles, UrlRoot, is_public};
use crate::tables::external::base_folder;

/// Returns the URL or the absolute local path of the file, folder or glob that `location` names, if `who` may read it.
/// Errors: `location_not_allowed`.
pub(crate) async fn allowed_location(location: &str, who: &Principal, engine: &Engine) -> Result<String> {
    match StoreUrl::parse(location)? {
        Some(url) => {
            refuse_own_files(&url, engine.table_files())?;
            allowed_url(&url, who, engine.external_urls())
        }
        None => {
            // The files of a shared catalog's tables may be in the data folder of another server.
            let lake = engine.table_files().local_folder();
            let own: Vec<&Path> = lake.into_iter().chain([engine.catalog().data_dir()]).collect();
            allowed_path(location, who, engine.external_roots(), &own).await
        }
    }
}

/// Refuses what holds the lake's own files or is part of them: rows of managed tables are read under their grants.
fn refuse_own_files(url: &StoreUrl, files: &TableFiles) -> Result<()> {
    match files.remote().filter(|lake| lake.url().overlaps(url)) {
        Some(_) => Err(EngineError::LocationNotAllowed {
            location: url.to_string(),
            reason: "it holds the files of managed tables or is part of them".into(),
        }),
        None => Ok(()),
    }
}

fn allowed_url(url: &StoreUrl, who: &Principal, roots: &[UrlRoot]) -> Result<String> {
    let refused =
        |reason: &str| Err(EngineError::LocationNotAllowed { location: url.to_string(), reason: reason.to_owned() });
    if who.role() < Role::Write {
        return refused("role read creates no tables");
    }
    if roots.is_empty() {
        return refused("only local files can be read, until query.external_urls names the URLs that may be");
    }
    let covering: Vec<&UrlRoot> = roots.iter().filter(|root| root.covers(url)).collect();
    let named = covering.iter().any(|root| root.names_its_store());
    if covering.is_empty() {
        return refused("it is not below a URL that query.external_urls names");
    }
    if !named && !who.is_server_admin() {
        return refused(
            "role write, and administrators of some databases, read only the buckets and hosts that \
             query.external_urls names",
        );
    }
    if !named && url.address().is_some_and(|address| !is_public(address)) {
        return refused("its host is not of the public Internet; name the host in query.external_urls to read from it");
    }
    Ok(url.to_string())
}

/// Returns the absolute local path of a location, if `who` may read it.
async fn allowed_path(location: &str, who: &Principal, external_roots: &[PathBuf], own: &[&Path]) -> Result<String> {
    let refused = |reason: String| EngineError::LocationNotAllowed { location: location.to_owned(), reason };
    let path = local_path(location).map_err(&refused)?;
    let path = std::path::absolute(&path).map_err(|error| refused(error.to_string()))?;
    // For others the answer would say which folders there are.
    let path = match who.is_server_admin() {
        true => without_parents(&path).await.map_err(&refused)?,
        false => path,
    };
    if path.components().any(|part| matches!(part, Component::ParentDir)) {
        return Err(refused("it contains `..`".into()));
    }
    let real = real_prefix(&path).await;
    for folder in own {
        let folder = real_prefix(folder).await;
        if real.starts_with(&folder) || folder.starts_with(&real) || glob_reaches(&path, &folder).await {
            return Err(refused("it holds Querent's own data folder or is part of it".into()));
        }
    }
    match who.role() {
        Role::Admin if who.is_server_admin() => {}
        Role::Write | Role::Admin => {
            let mut inside = false;
            for root in external_roots {
                inside |= real.starts_with(real_prefix(root).await);
            }
            if !inside {
                let reader =
                    if who.role() == Role::Admin { "an administrator of some databases" } else { "role write" };
                return Err(refused(format!("{reader} reads only the folders that the server's settings name")));
            }
        }
        Role::Read => return Err(refused("role read creates no tables".into())),
    }
    match path.to_str() {
        Some(text) if location.ends_with('/') && !text.ends_with('/') => Ok(format!("{text}/")),
        Some(text) => Ok(text.to_owned()),
        None => Err(refused("it is not UTF-8".into())),
    }
}

/// Returns `path` without `..`, as the system follows it: through links. What is before the last `..` has to be there.
async fn without_parents(path: &Path) -> std::result::Result<PathBuf, String> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let Some(last) = parts.iter().rposition(|part| matches!(part, Component::ParentDir)) else {
        return Ok(path.to_owned());
    };
    let (above, below) = parts.split_at(last + 1);
    let above: PathBuf = above.iter().collect();
    let mut real = tokio::fs::canonicalize(&above).await.map_err(|error| format!("{}: {error}", above.display()))?;
    real.extend(below);
    Ok(real)
}

/// Returns whether a glob's first wildcard matches the folder on the way to `data_dir`; everything below could match then.
async fn glob_reaches(path: &Path, data_dir: &Path) -> bool {
    let base = base_folder(&path.to_string_lossy());
    let Some(wildcard) = path.components().nth(base.components().count()) else { return false };
    let real_base = real_prefix(&base).await;
    let Ok(below) = data_dir.strip_prefix(&real_base) else { return false };
    let next = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let pattern = glob::Pattern::new(&wildcard.as_os_str().to_string_lossy());
    // What is not a pattern matches nothing when it is expanded.
    next.is_some_and(|next| pattern.is_ok_and(|pattern| pattern.matches(&next)))
}

/// Returns the path of a `file://` URL or of a plain path.
fn local_path(location: &str) -> std::result::Result<PathBuf, String> {
    const ONLY_LOCAL: &str = "a file:// URL names no other machine; write a path";
    if location.trim().is_empty() {
        return Err("it is empty".into());
    }
    let Some((scheme, rest)) = location.split_once("://") else {
        return Ok(in_home_folder(location).unwrap_or_else(|| PathBuf::from(location)));
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(ONLY_LOCAL.into());
    }
    match rest.strip_prefix("localhost").unwrap_or(rest) {
        path if path.starts_with('/') => Ok(PathBuf::from(path)),
        _ => Err(ONLY_LOCAL.into()),
    }
}

/// Returns a path below `~/` as one below the home folder of whoever runs the process; `None` for other paths.
pub fn in_home_folder(location: &str) -> Option<PathBuf> {
    let below = location.strip_prefix("~/")?.trim_start_matches('/');
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(below))
}

/// Returns the longest part of `path` that exists, with its links followed, and the rest as written.
async fn real_prefix(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in absolute.ancestors() {
        if let Ok(real) = tokio::fs::canonicalize(ancestor).await {
            return match absolute.strip_prefix(ancestor) {
                Ok(rest) if rest.as_os_str().is_empty() => real,
                Ok(rest) => real.join(rest),
                Err(_) => real,
            };
        }
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_paths() {
        assert_eq!(local_path("/a/b.csv"), Ok(PathBuf::from("/a/b.csv")));
        assert_eq!(local_path("file:///a/b.csv"), Ok(PathBuf::from("/a/b.csv")));
        assert_eq!(local_path("file://localhost/a"), Ok(PathBuf::from("/a")));
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        assert_eq!(local_path("~//a/b.csv"), Ok(home.join("a/b.csv")));
        assert_eq!(local_path("~a/b.csv"), Ok(PathBuf::from("~a/b.csv")));
        for refused in ["http://169.254.169.254/latest", "s3://bucket/a", "file://host/a", ""] {
            assert!(local_path(refused).is_err(), "{refused}");
        }
    }
}

//! Locations outside of the local file system: `s3://`, `gs://`, `az://`, `abfs[s]://` and `http[s]://`.
//!
//! A [`StoreUrl`] holds no credentials: a URL with a password, a query or a fragment is refused, and the error repeats none of
//! them.

use std::fmt;
use std::net::IpAddr;

use ::url::{Host, Url};
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::path::Path as StorePath;

use crate::error::{EngineError, Result};

/// A bucket with a key, or a web server with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl {
    pub(super) scheme: Scheme,
    /// The bucket, `container@account.host` or `host[:port]`.
    pub(super) authority: String,
    /// Without its first slash. A web server's is percent-encoded, a bucket's is as it is, perhaps with wildcards.
    key: String,
}

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    S3,
    Gs,
    Az,
    Abfs,
    Abfss,
    Http,
    Https,
}

impl Scheme {
    pub(super) fn from_name(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Scheme::S3,
            "gs" => Scheme::Gs,
            "az" => Scheme::Az,
            "abfs" => Scheme::Abfs,
            "abfss" => Scheme::Abfss,
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Az => "az",
            Scheme::Abfs => "abfs",
            Scheme::Abfss => "abfss",
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    pub(super) fn is_web(self) -> bool {
        matches!(self, Scheme::Http | Scheme::Https)
    }
}

impl StoreUrl {
    /// Parses a location; `None` for a path and for a `file://` URL. Errors: `location_not_allowed`.
    pub(crate) fn parse(location: &str) -> Result<Option<Self>> {
        let Some((scheme, rest)) = location.split_once("://") else { return Ok(None) };
        if scheme.eq_ignore_ascii_case("file") {
            return Ok(None);
        }
        Self::from_parts(scheme, rest)
            .map(Some)
            .map_err(|reason| EngineError::LocationNotAllowed { location: redacted(location), reason })
    }

    fn from_parts(scheme: &str, rest: &str) -> Result<Self, String> {
        const SECRETS: &str = "it holds credentials or a query, which are never kept; give the server credentials by \
                               the standard variables of its environment (docs/object-stores.md)";
        let Some(scheme) = Scheme::from_name(scheme) else {
            return Err("only files and s3, gs, az, abfs, abfss, http and https URLs can be read".into());
        };
        if rest.contains(['?', '#']) {
            return Err(SECRETS.into());
        }
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        match authority.split_once('@') {
            Some((container, _)) if matches!(scheme, Scheme::Abfs | Scheme::Abfss) && is_name(container) => {}
            Some(_) => return Err(SECRETS.into()),
            None => {}
        }
        if scheme.is_web() {
            return Self::from_web_address(scheme, rest);
        }
        let host = authority.split_once('@').map_or(authority, |(_, host)| host);
        if !is_name(host) {
            return Err("it names no bucket; write s3://BUCKET/KEY".into());
        }
        let segments = key.strip_suffix('/').unwrap_or(key);
        if !segments.is_empty() && segments.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("it has an empty folder name, `.` or `..`".into());
        }
        if key.chars().any(char::is_control) {
            return Err("it has control characters".into());
        }
        Ok(Self { scheme, authority: authority.to_owned(), key: key.to_owned() })
    }

    fn from_web_address(scheme: Scheme, rest: &str) -> Result<Self, String> {
        let url = Url::parse(&format!("{}://{rest}", scheme.as_str())).map_err(|error| error.to_string())?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let key = url.path().trim_start_matches('/').to_owned();
        StorePath::from_url_path(&key).map_err(|error| error.to_string())?;
        Ok(Self { scheme, authority, key })
    }

    /// Returns the scheme and the bucket or host: `s3://bucket`.
    pub(crate) fn store(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority)
    }

    /// Returns the URL by which DataFusion names the store.
    pub(crate) fn object_store_url(&self) -> Result<ObjectStoreUrl> {
        Ok(ObjectStoreUrl::parse(self.store())?)
    }

    /// Returns whether it is a file of a web server, which has no listings.
    pub(crate) fn is_web(&self) -> bool {
        self.scheme.is_web()
    }

    /// Returns the IP address of a web server that is named by one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match Url::parse(&self.store()).ok().filter(|_| self.is_web())?.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// Returns whether it can only be a folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Returns whether the key is a pattern.
    pub(crate) fn is_glob(&self) -> bool {
        !self.is_web() && is_pattern(&self.key)
    }

    /// Returns the key without the last slash.
    pub(crate) fn key(&self) -> &str {
        self.key.strip_suffix('/').unwrap_or(&self.key)
    }

    /// Returns the folder before the first wildcard, or the whole key.
    pub(crate) fn base(&self) -> &str {
        if !self.is_glob() {
            return self.key();
        }
        let mut end = 0;
        for part in self.key.split_inclusive('/') {
            if is_pattern(part) {
                break;
            }
            end += part.len();
        }
        self.key.get(..end).unwrap_or_default().trim_end_matches('/')
    }

    /// As [`Self::base`], but decoded for a web server, as paths are.
    pub(super) fn base_of_paths(&self) -> String {
        match self.is_web() {
            true => StorePath::from_url_path(&self.key).map(String::from).unwrap_or_default(),
            false => self.base().to_owned(),
        }
    }

    /// Returns the path of a key of this store outside of it. Paths name files in caches that all stores share.
    pub(crate) fn path_of(&self, key: &str) -> Result<StorePath> {
        let not_a_path = |error: object_store::path::Error| EngineError::LocationNotAllowed {
            location: self.to_string(),
            reason: error.to_string(),
        };
        let inner = if self.is_web() { StorePath::from_url_path(key) } else { StorePath::parse(key) };
        let inner = inner.map_err(not_a_path)?;
        StorePath::parse(format!("{}/{inner}", self.path_prefix())).map_err(not_a_path)
    }

    /// Returns what the paths of this store begin with.
    pub(crate) fn path_prefix(&self) -> String {
        format!("{}:{}", self.scheme.as_str(), self.authority)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.store(), self.key)
    }
}

/// Returns the location that a path of outside of its store stands for, as messages name it.
pub(crate) fn location_of(path: &StorePath) -> String {
    path.as_ref().replacen(':', "://", 1)
}

/// Returns whether a path of outside of its store is of a web server.
pub(super) fn is_web_path(path: &StorePath) -> bool {
    let scheme = path.as_ref().split_once(':').and_then(|(scheme, _)| Scheme::from_name(scheme));
    scheme.is_some_and(Scheme::is_web)
}

/// Returns a location without the secrets that may be written into it.
pub(crate) fn redacted(location: &str) -> String {
    let Some((scheme, rest)) = location.split_once("://") else { return location.to_owned() };
    let shown = rest.split(['?', '#']).next().unwrap_or_default();
    match shown.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}"),
        None => format!("{scheme}://{shown}"),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_'))
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths_and_kept_in_one_spelling() {
        for path in ["/a/b.csv", "a.csv", "file:///a/b.csv"] {
            assert_eq!(StoreUrl::parse(path).unwrap(), None, "{path}");
        }
        for (written, kept) in [
            ("s3://bucket/a/b/", "s3://bucket/a/b/"),
            ("S3A://bucket", "s3://bucket/"),
            ("gs://b.c/a*/x.csv", "gs://b.c/a*/x.csv"),
            ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
            ("https://Example.org:443/a%20b.csv", "https://example.org/a%20b.csv"),
            ("http://0x7f.1/a.csv", "http://127.0.0.1/a.csv"),
        ] {
            assert_eq!(StoreUrl::parse(written).unwrap().unwrap().to_string(), kept, "{written}");
        }
    }

    #[test]
    fn what_holds_secrets_or_steps_out_is_refused_and_not_repeated() {
        for refused in [
            "s3://key:hush@bucket/a",
            "https://user:hush@example.org/a.csv",
            "https://hush@example.org/a.csv",
            "https://example.org/a.csv?sig=hush",
            "s3://bucket/a.parquet?X-Amz-Signature=hush",
            "https://example.org/a.csv#hush",
            "abfss://c:hush@account.dfs.core.windows.net/a",
            "ftp://user:hush@example.org/a",
            "s3://bucket/a/../b",
            "s3://bucket//a",
            "s3://buc ket/a",
            "s3:///a",
            "s3://../a",
        ] {
            let error = StoreUrl::parse(refused).unwrap_err();
            assert_eq!(error.code(), "location_not_allowed", "{refused}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
    }

    #[test]
    fn the_base_of_a_glob_has_no_wildcard() {
        let base = |text: &str| StoreUrl::parse(text).unwrap().unwrap().base().to_owned();
        assert_eq!(base("s3://b/data/year=*/x[0-9].csv"), "data");
        assert_eq!(base("s3://b/*.csv"), "");
        assert_eq!(base("s3://b/data/t/"), "data/t");
    }
}

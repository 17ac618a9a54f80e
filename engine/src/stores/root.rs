//! The URLs of the settings below which tables may lie outside of the local file system.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::url::{Scheme, StoreUrl};
use crate::error::{EngineError, Result};

/// Why a URL that no root covers is refused.
pub(super) const NOT_NAMED: &str = "it is not below a URL that the setting query.external_urls names";

/// A URL below which external tables may lie: `s3://bucket/prefix/`, or `s3://` for all that the credentials open, which is
/// for administrators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlRoot {
    scheme: Scheme,
    /// The bucket or host and the prefix there.
    store: Option<(String, String)>,
}

impl UrlRoot {
    /// Returns whether the root names a bucket or a host, not only the kind of store.
    pub fn names_its_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns whether the root covers anything in the URL's store.
    pub(crate) fn is_in_store(&self, url: &StoreUrl) -> bool {
        self.scheme == url.scheme && self.store.as_ref().is_none_or(|(authority, _)| *authority == url.authority)
    }

    /// Returns whether everything that the URL can stand for is below the root.
    pub(crate) fn covers(&self, url: &StoreUrl) -> bool {
        self.is_in_store(url) && self.covers_key(&url.base_of_paths())
    }

    /// Returns whether a key of the root's store is below the root.
    pub(super) fn covers_key(&self, key: &str) -> bool {
        let Some((_, prefix)) = &self.store else { return true };
        match key.strip_prefix(prefix.as_str()) {
            Some(below) => prefix.is_empty() || below.is_empty() || below.starts_with('/'),
            None => false,
        }
    }
}

impl FromStr for UrlRoot {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(scheme) = text.strip_suffix("://").and_then(Scheme::from_name) {
            return Ok(Self { scheme, store: None });
        }
        let refused = |reason: &str| EngineError::LocationNotAllowed {
            location: super::redacted(text),
            reason: reason.to_owned(),
        };
        let url = StoreUrl::parse(text)?.ok_or_else(|| refused("it is no URL of an object store or a web server"))?;
        if url.is_glob() {
            return Err(refused("a pattern cannot say what may be read"));
        }
        Ok(Self { scheme: url.scheme, store: Some((url.authority.clone(), url.base_of_paths())) })
    }
}

impl TryFrom<String> for UrlRoot {
    type Error = EngineError;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<UrlRoot> for String {
    fn from(root: UrlRoot) -> Self {
        root.to_string()
    }
}

impl fmt::Display for UrlRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.store {
            None => write!(f, "{}://", self.scheme.as_str()),
            Some((authority, prefix)) => write!(f, "{}://{authority}/{prefix}", self.scheme.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_covers_what_is_below_it_and_nothing_beside_it() {
        let covers = |root: &str, url: &str| {
            let root: UrlRoot = root.parse().unwrap();
            root.covers(&StoreUrl::parse(url).unwrap().unwrap())
        };
        for url in ["s3://b/lake/", "s3://b/lake/t/a.csv", "s3://b/lake/*/a.csv", "s3://b/lake"] {
            assert!(covers("s3://b/lake/", url) && covers("s3://b", url) && covers("s3://", url), "{url}");
        }
        for url in ["s3://b/lakes/a.csv", "s3://b/", "s3://b/lak*/a.csv", "s3://c/lake/a.csv", "gs://b/lake/a.csv"] {
            assert!(!covers("s3://b/lake/", url), "{url}");
        }
        assert!(!covers("https://a.org/", "https://b.org/x.csv") && !covers("https://a.org/", "https://a.org:1/x.csv"));
        assert!(!covers("http://a.org/", "https://a.org/x.csv"));
    }
}

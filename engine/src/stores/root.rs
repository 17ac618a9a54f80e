//! The settings' answer to where tables may lie outside of the local file system.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::url::{Scheme, StoreUrl};
use crate::{EngineError, Result};

/// Why a URL is refused that no root covers.
pub(super) const NOT_NAMED: &str = "it is not below a URL that the setting query.external_urls names";

/// A URL below which external tables may lie: `s3://bucket/prefix/`, or `s3://` for all that the credentials open, which is
/// for administrators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlRoot {
    scheme: Scheme,
    /// The bucket or host and the prefix there.
    place: Option<(String, String)>,
}

impl UrlRoot {
    /// Whether it names a bucket or a host, not only the kind of store.
    pub fn names_its_store(&self) -> bool {
        self.place.is_some()
    }

    /// Whether something of the URL's store is below it.
    pub(crate) fn is_of(&self, url: &StoreUrl) -> bool {
        self.scheme == url.scheme && self.place.as_ref().is_none_or(|(authority, _)| *authority == url.authority)
    }

    /// Whether all that the URL can stand for is below it.
    pub(crate) fn covers(&self, url: &StoreUrl) -> bool {
        self.is_of(url) && self.covers_key(&url.base_of_paths())
    }

    /// Whether a key of its store is below it.
    pub(super) fn covers_key(&self, key: &str) -> bool {
        let Some((_, prefix)) = &self.place else { return true };
        match key.strip_prefix(prefix.as_str()) {
            Some(below) => prefix.is_empty() || below.is_empty() || below.starts_with('/'),
            None => false,
        }
    }
}

impl FromStr for UrlRoot {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(scheme) = text.strip_suffix("://").and_then(Scheme::of) {
            return Ok(Self { scheme, place: None });
        }
        let refused = |reason: &str| EngineError::LocationNotAllowed {
            location: super::redacted(text),
            reason: reason.to_owned(),
        };
        let url = StoreUrl::parse(text)?.ok_or_else(|| refused("it is no URL of an object store or a web server"))?;
        if url.is_glob() {
            return Err(refused("a pattern cannot say what may be read"));
        }
        Ok(Self { scheme: url.scheme, place: Some((url.authority.clone(), url.base_of_paths())) })
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
        match &self.place {
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

//! The URL below which the files of managed tables lie, where they do not lie in the data folder.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use object_store::path::Path as StorePath;
use serde::{Deserialize, Serialize};

use super::UrlRoot;
use super::url::StoreUrl;
use crate::error::{EngineError, Result};

/// A bucket or container and a prefix in it: `s3://BUCKET/PREFIX/`. It holds no credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LakeUrl(StoreUrl);

impl LakeUrl {
    pub(crate) fn url(&self) -> &StoreUrl {
        &self.0
    }

    /// Returns the root that covers exactly the lake's files.
    pub(super) fn root(&self) -> Result<UrlRoot> {
        self.to_string().parse()
    }

    /// Returns the store's path of the prefix; `None` for the whole bucket.
    pub(super) fn prefix(&self) -> Result<Option<StorePath>> {
        let key = self.0.key();
        (!key.is_empty()).then(|| path_of_key(key, &self.to_string())).transpose()
    }

    /// Returns the store's path of a file that the lake names by its whole URL. Errors: `location_not_allowed` for a file that
    /// is not below this URL.
    pub(super) fn key_of(&self, file: &Path) -> Result<StorePath> {
        let shown = file.to_string_lossy();
        let below = shown.strip_prefix(self.to_string().as_str()).filter(|below| !below.is_empty());
        let below = below.ok_or_else(|| EngineError::LocationNotAllowed {
            location: super::redacted(&shown),
            reason: format!("the files of managed tables lie below {self}"),
        })?;
        match self.0.key() {
            "" => path_of_key(below, &shown),
            prefix => path_of_key(&format!("{prefix}/{below}"), &shown),
        }
    }

    /// Returns whether an external table at `url` could reach the lake's files.
    pub(crate) fn overlaps(&self, url: &StoreUrl) -> bool {
        if url.store() != self.0.store() {
            return false;
        }
        let (own, other) = (self.0.key(), url.base());
        is_below(own, other) || is_below(other, own)
    }
}

/// Returns whether the key `lower` is `upper` or below it.
fn is_below(lower: &str, upper: &str) -> bool {
    upper.is_empty() || lower.strip_prefix(upper).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn path_of_key(key: &str, shown: &str) -> Result<StorePath> {
    StorePath::parse(key).map_err(|error| EngineError::LocationNotAllowed {
        location: super::redacted(shown),
        reason: error.to_string(),
    })
}

impl FromStr for LakeUrl {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self> {
        let refused = |reason: &str| EngineError::LocationNotAllowed {
            location: super::redacted(text),
            reason: reason.to_owned(),
        };
        let url = StoreUrl::parse(text)?
            .ok_or_else(|| refused("it is no URL of an object store; leave data_path out for a local folder"))?;
        if url.is_web() {
            return Err(refused("a web server is read only; name a bucket of s3, gs, az or abfs[s]"));
        }
        if url.is_glob() {
            return Err(refused("a pattern cannot say where files are written"));
        }
        Ok(Self(url))
    }
}

impl TryFrom<String> for LakeUrl {
    type Error = EngineError;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<LakeUrl> for String {
    fn from(url: LakeUrl) -> Self {
        url.to_string()
    }
}

impl fmt::Display for LakeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.key() {
            "" => write!(f, "{}/", self.0.store()),
            key => write!(f, "{}/{key}/", self.0.store()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lake(text: &str) -> LakeUrl {
        text.parse().unwrap()
    }

    #[test]
    fn files_below_it_have_a_key_and_others_none() {
        let url = lake("s3://b/lake");
        assert_eq!(url.to_string(), "s3://b/lake/");
        let key = |file: &str| url.key_of(Path::new(file)).map(|key| key.to_string()).ok();
        assert_eq!(key("s3://b/lake/main/t/a.parquet").as_deref(), Some("lake/main/t/a.parquet"));
        for refused in ["s3://b/lakeside/a", "s3://b/lake/", "s3://b/lake/../a", "s3://c/lake/a", "/etc/passwd"] {
            assert_eq!(key(refused), None, "{refused}");
        }
        assert_eq!(lake("gs://b").key_of(Path::new("gs://b/t/a")).unwrap().as_ref(), "t/a");
        assert_eq!(lake("gs://b").prefix().unwrap(), None);
    }

    #[test]
    fn what_cannot_be_written_to_is_refused() {
        for text in ["/srv/lake", "https://example.org/lake/", "s3://b/*/x", "s3://", "s3://key:hush@b/lake"] {
            let error = text.parse::<LakeUrl>().unwrap_err();
            assert_eq!(error.code(), "location_not_allowed", "{text}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
    }

    #[test]
    fn an_external_table_overlaps_above_and_below() {
        let url = lake("s3://b/lake/x");
        let overlaps = |text: &str| url.overlaps(&StoreUrl::parse(text).unwrap().unwrap());
        for over in ["s3://b/lake/x/main/t/", "s3://b/lake", "s3://b/", "s3://b/*", "s3://b/lake/x"] {
            assert!(overlaps(over), "{over}");
        }
        for beside in ["s3://b/lake/xy/", "s3://b/other/", "s3://c/lake/x/", "gs://b/lake/x/"] {
            assert!(!overlaps(beside), "{beside}");
        }
    }
}

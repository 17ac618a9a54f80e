//! An object of a store as it was when a statement found it. A statement reads an object part by part: of one that is replaced
//! meanwhile it would mix the rows of both.
//!
//! Each answer of the store says of which version its bytes are, by the entity tag and the length, so that no request is made for
//! it, and no condition is asked of stores that do not keep to conditions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::url::is_web_path;
use crate::error::{StoreError, find_cause};

/// A store in which one object is read as it was found, or not at all.
#[derive(Debug)]
pub(crate) struct VersionedObject {
    store: Arc<dyn ObjectStore>,
    found: ObjectMeta,
}

impl VersionedObject {
    /// `found` is what the store said of the object before.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, found: ObjectMeta) -> Self {
        Self { store, found }
    }

    fn is_replaced(&self, now: &ObjectMeta) -> bool {
        now.location == self.found.location && is_another(&self.found, now)
    }
}

/// Returns whether two answers are of two versions of an object.
fn is_another(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    if one.size != other.size {
        return true;
    }
    let (Some(tag), Some(other_tag)) = (entity_tag(one), entity_tag(other)) else { return false };
    // The servers of a web site may each have a tag of its own for the same file.
    tag != other_tag
        && (!is_web_path(&one.location) || one.last_modified.timestamp() != other.last_modified.timestamp())
}

/// Returns the entity tag of an object without its quotes, which Azure's listings do not have.
pub(super) fn entity_tag(meta: &ObjectMeta) -> Option<&str> {
    meta.e_tag.as_deref().map(|tag| tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"'))
}

#[async_trait]
impl ObjectStore for VersionedObject {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let replaced = || StoreError::Replaced { location: super::location_of(location) };
        match self.store.get_opts(location, options).await {
            Ok(result) if self.is_replaced(&result.meta) => Err(replaced().into()),
            Ok(result) => Ok(result),
            // A part that a shorter object does not have.
            Err(error) if matches!(find_cause::<StoreError>(&error), Some(StoreError::Unusable { .. })) => {
                match self.store.head(location).await {
                    Ok(now) if self.is_replaced(&now) => Err(replaced().into()),
                    Ok(_) | Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn put_opts(&self, location: &StorePath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        self.store.delete_stream(locations)
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

impl fmt::Display for VersionedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn meta(location: &str, size: u64, second: i64, tag: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            location: location.into(),
            last_modified: DateTime::from_timestamp(second, 0).unwrap(),
            size,
            e_tag: tag.map(str::to_owned),
            version: None,
        }
    }

    #[test]
    fn a_version_is_told_by_its_tag_and_its_length() {
        let found = meta("s3:lake/a.csv", 10, 1, Some("\"x\""));
        assert!(!is_another(&found, &meta("s3:lake/a.csv", 10, 2, Some("x"))), "the quotes are no part of it");
        assert!(!is_another(&found, &meta("s3:lake/a.csv", 10, 1, Some("W/\"x\""))));
        assert!(!is_another(&found, &meta("s3:lake/a.csv", 10, 1, None)), "a store that does not say");
        assert!(is_another(&found, &meta("s3:lake/a.csv", 10, 1, Some("y"))));
        assert!(is_another(&found, &meta("s3:lake/a.csv", 11, 1, Some("x"))));
        let page = meta("https:a.org/a.csv", 10, 1, Some("\"x\""));
        assert!(!is_another(&page, &meta("https:a.org/a.csv", 10, 1, Some("\"y\""))), "of another server");
        assert!(is_another(&page, &meta("https:a.org/a.csv", 10, 2, Some("\"y\""))));
    }
}

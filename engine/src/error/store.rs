//! The errors of object stores and web servers, and how they are found again below the errors of the layers that they pass
//! through.

use std::error::Error as StdError;

use parquet::errors::ParquetError;
use querent_catalog::{CatalogError, is_full};

use super::{EngineError, variables_of};

/// What is said of an object of which two versions were met.
const REPLACED: &str = "the file was changed while it was read; run the statement again";
/// How DataFusion 54 begins what it says of a footer that could not be read, and the words for a file that is not there.
const UNREAD_FOOTER: &str = "Failed to fetch metadata for file ";
const NOT_FOUND: &str = " not found: ";

/// Why a store did not return what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The environment has no credentials for it.
    #[error("the environment has no credentials for {store}")]
    MissingCredentials {
        /// Scheme and bucket.
        store: String,
        /// Which variables to set.
        variables: &'static str,
    },
    /// The credentials are refused, or do not allow the request.
    #[error("{store} refused access{}", colon_detail(.detail))]
    AccessDenied {
        /// Scheme and bucket or host.
        store: String,
        /// Status or code word.
        detail: String,
    },
    /// There is no such bucket or container.
    #[error("there is no bucket {store}")]
    NoSuchBucket {
        /// Scheme and bucket.
        store: String,
    },
    /// The store does not answer, or answers that it cannot now.
    #[error("{store} does not answer{}", colon_detail(.detail))]
    Unavailable {
        /// Scheme and bucket or host.
        store: String,
        /// Timeout, status or code word.
        detail: String,
    },
    /// The answer cannot be used.
    #[error("{store} cannot be used{}", colon_detail(.detail))]
    Unusable {
        /// Scheme and bucket or host.
        store: String,
        /// Status, code word or reason.
        detail: String,
    },
    /// No such object.
    #[error("no files at {location}")]
    Gone {
        /// The object.
        location: String,
    },
    /// Another version of the object was read than the one that the statement found.
    #[error("bad data in {location}: {}", REPLACED)]
    Replaced {
        /// The object.
        location: String,
    },
    /// Another object has the name of one that was to be written. It stays as it is.
    #[error("there is another object at {location}; nothing was overwritten")]
    Occupied {
        /// The object.
        location: String,
    },
    /// The request is not allowed, and was not made.
    #[error("location {location} is not allowed: {reason}")]
    Refused {
        /// The object.
        location: String,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    /// Returns the error whose own words end a text; `None` where it is another's.
    fn from_text(text: &str) -> Option<Self> {
        let said = text.rsplit_once(" error: ").map_or(text, |(_, said)| said);
        let of_store = |store: &str| (store.contains("://") && !store.contains(' ')).then(|| store.to_owned());
        if let Some(store) = said.strip_prefix("there is no bucket ") {
            return Some(Self::NoSuchBucket { store: of_store(store)? });
        }
        if let Some(store) = said.strip_prefix("the environment has no credentials for ") {
            return Some(Self::MissingCredentials { store: of_store(store)?, variables: variables_of(store) });
        }
        if let Some(location) = said.strip_prefix("bad data in ").and_then(|rest| rest.strip_suffix(REPLACED)) {
            return Some(Self::Replaced { location: location.trim_end_matches(": ").to_owned() });
        }
        let parts = |words: &str| {
            let (store, detail) = said.split_once(words)?;
            Some((of_store(store)?, detail.trim_start_matches(": ").to_owned()))
        };
        let unavailable = parts(" does not answer").map(|(store, detail)| Self::Unavailable { store, detail });
        let denied = || parts(" refused access").map(|(store, detail)| Self::AccessDenied { store, detail });
        let unusable = || parts(" cannot be used").map(|(store, detail)| Self::Unusable { store, detail });
        unavailable.or_else(denied).or_else(unusable)
    }

    /// Returns what the operator can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            StoreError::MissingCredentials { variables, .. } => format!("start the server with {variables}"),
            StoreError::AccessDenied { .. } => {
                "check the credentials in the server's environment, and that they may list and read there".to_owned()
            }
            StoreError::NoSuchBucket { .. } => {
                "check the name, and the region or endpoint in the server's environment".to_owned()
            }
            StoreError::Unavailable { .. } => {
                "check the endpoint in the server's environment and the network, or try again".to_owned()
            }
            StoreError::Occupied { .. } => "run the statement again, which chooses another name".to_owned(),
            StoreError::Unusable { .. }
            | StoreError::Gone { .. }
            | StoreError::Replaced { .. }
            | StoreError::Refused { .. } => return None,
        })
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { location, reason } => EngineError::LocationNotAllowed { location, reason },
            StoreError::Gone { location } => EngineError::NoFiles { location, format: "such".into() },
            StoreError::Replaced { location } => EngineError::BadData { location, detail: REPLACED.into() },
            other => EngineError::Store(other),
        }
    }
}

impl From<StoreError> for object_store::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone { ref location } => {
                object_store::Error::NotFound { path: location.clone(), source: Box::new(error) }
            }
            other => object_store::Error::Generic { store: "external", source: Box::new(other) },
        }
    }
}

/// Returns the [`StoreError`] that is among the causes of `error`.
pub(crate) fn store_error_in(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    find_cause::<StoreError>(error).cloned().map(EngineError::from)
}

/// Returns the catalog's error that is among the causes of `error`, where several readers of the same rows may meet it.
pub(crate) fn catalog_error_in(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    find_cause::<CatalogError>(error)?.copied().map(EngineError::Catalog)
}

/// Returns the error of a write for which there was no space, such as of a spill file.
pub(crate) fn full_disk_in(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    let detail = find_cause::<std::io::Error>(error).filter(|cause| is_full(cause))?.to_string();
    Some(EngineError::Catalog(CatalogError::StorageFull { detail }))
}

/// Returns the error of a file that was to be read and is not there. Where it lay is nothing for those who read the table.
pub(crate) fn lost_file_in(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    match find_cause::<object_store::Error>(error) {
        Some(object_store::Error::NotFound { path, .. }) => Some(lost_file(path)),
        Some(_) => None,
        None => unread_footer_in(error),
    }
}

/// Whether an error says that a file that was to be read is not there.
pub(crate) fn is_lost_file(error: &(dyn StdError + 'static)) -> bool {
    match (find_cause::<object_store::Error>(error), find_cause::<ParquetError>(error)) {
        (Some(object_store::Error::NotFound { .. }), _) => true,
        (None, Some(ParquetError::General(text))) => text.starts_with(UNREAD_FOOTER) && text.contains(NOT_FOUND),
        (Some(_) | None, _) => false,
    }
}

fn lost_file(path: &str) -> EngineError {
    let name = path.rsplit('/').next().unwrap_or(path);
    EngineError::Execution {
        message: format!(
            "the file {name} is not there any more; where a managed table has lost it, `querent check` says so and a \
             backup has it"
        ),
    }
}

/// Returns the error of a file whose footer could not be read: DataFusion 54 keeps the text of what failed, and not the error.
fn unread_footer_in(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    let ParquetError::General(text) = find_cause::<ParquetError>(error)? else { return None };
    let (path, cause) = text.strip_prefix(UNREAD_FOOTER)?.split_once(": ")?;
    if cause.contains(NOT_FOUND) {
        return Some(lost_file(path));
    }
    if let Some(told) = StoreError::from_text(cause) {
        return Some(told.into());
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let cause = cause.replace(&format!("/{path}"), name).replace(path, name);
    Some(EngineError::Execution { message: format!("the footer of the file {name} cannot be read: {cause}") })
}

/// Returns the first error of a type along the chain of causes.
pub(crate) fn find_cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        // A transparent error names the cause of the error that it holds as its own.
        let within: Option<&(dyn StdError + 'static)> = match error.downcast_ref::<EngineError>() {
            Some(EngineError::Store(inner)) => Some(inner),
            Some(EngineError::Catalog(inner)) => Some(inner),
            _ => None,
        };
        let io = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = within.or(io.map(|inner| inner as &(dyn StdError + 'static))).or_else(|| error.source());
    }
    None
}

fn colon_detail(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What DataFusion keeps of an error of a store that it met at a footer.
    fn at_a_footer(error: StoreError) -> EngineError {
        let text = format!("{UNREAD_FOOTER}a/b.parquet: Object Store error: {}", object_store::Error::from(error));
        unread_footer_in(&ParquetError::General(text)).unwrap()
    }

    #[test]
    fn a_store_that_fails_at_a_footer_is_told_from_a_file_that_is_damaged() {
        let store = || "s3://lake".to_owned();
        for error in [
            StoreError::Unavailable { store: store(), detail: "timed out".into() },
            StoreError::Unavailable { store: store(), detail: String::new() },
            StoreError::AccessDenied { store: store(), detail: "403 AccessDenied".into() },
            StoreError::Unusable { store: store(), detail: "it redirects; check the region".into() },
            StoreError::NoSuchBucket { store: store() },
            StoreError::MissingCredentials { store: store(), variables: variables_of("s3://lake") },
            StoreError::Replaced { location: "s3://lake/a b.parquet".into() },
        ] {
            let (expected, found) = (EngineError::from(error.clone()), at_a_footer(error));
            assert_eq!((found.code(), found.to_string()), (expected.code(), expected.to_string()));
        }
        let gone = at_a_footer(StoreError::Gone { location: "s3://lake/a/b.parquet".into() });
        assert!(gone.to_string().contains("is not there any more"), "{gone}");
        let damaged = ParquetError::General(format!("{UNREAD_FOOTER}a/b.parquet: Parquet error: Invalid footer"));
        let damaged = unread_footer_in(&damaged).unwrap();
        assert!(damaged.to_string().starts_with("the footer of the file b.parquet cannot be read"), "{damaged}");
    }
}

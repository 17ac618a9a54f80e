//! The errors of object stores and web servers, and how they are found again below the errors of the layers that they pass
//! through.

use std::error::Error as StdError;

use parquet::errors::ParquetError;
use querent_catalog::{CatalogError, is_full};

use super::EngineError;

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
            StoreError::Unusable { .. } | StoreError::Gone { .. } | StoreError::Refused { .. } => return None,
        })
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { location, reason } => EngineError::LocationNotAllowed { location, reason },
            StoreError::Gone { location } => EngineError::NoFiles { location, format: "such".into() },
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
